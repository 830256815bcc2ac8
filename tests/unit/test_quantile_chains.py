"""Quantiles by rank under a pure budget: chains at thresholds, what they prove, what they cost, and going on."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from farthing import Bounds, Budget, Pure, Session
from farthing.accuracy.quantile_chain_run import LEVELS, QuantileChainRun, reach
from farthing.accuracy.quantile_chains import QuantileChains, ShownRanks
from farthing.accuracy.quantile_ranks import QuantileGoal, Ranks
from farthing.accuracy.quantile_trail import Trail
from farthing.errors import InvalidBounds, InvalidTarget
from farthing.ledger.entry import Receipt
from farthing.noise.bits import seeded
from farthing.planning.quantile_sought import QuantileFound, QuantileSought, QuantileStanding
from farthing.session.answering import quantile as answering

CAP = 1 << 46
RNG = np.random.default_rng(5)
VALUES = RNG.normal(30, 10, 20_000).clip(0, 60)
TABLE = pa.table({"v": VALUES, "g": np.where(np.arange(20_000) < 300, "few", "many")})
BY = {"by": "g", "keys": {"g": ["many", "few"]}}


def goal(q=0.5, rank=0.05, max_rows=1):
    """A quantile of 1,024 leaves."""
    return QuantileGoal(q, 0.0, 1024.0, leaves_log2=10, max_rows=max_rows, rank=rank)


def ranks_of(counts):
    """Return groups that are all alike: rows by leaf."""
    leaf = np.array(sorted(counts))
    return Ranks.of(0 * leaf, leaf, np.array([counts[one] for one in leaf.tolist()]), groups=1, leaves_log2=10)


def exact(ranks):
    """Show ranks without noise."""

    def show(place, _held, _farthings, groups):
        below = ranks.below(place, groups)
        return below.astype(float), (ranks.rows[groups] - below).astype(float)

    return show


def kept(state, counts, asked):
    """Tell whether the leaf of the answer is within the rank target, and the interval holds the quantile."""
    rows, step = sum(counts.values()), 1.0
    shown = np.ceil(state.value[0] / step) - 1
    low = sum(many for leaf, many in counts.items() if leaf < shown) / rows
    high = sum(many for leaf, many in counts.items() if leaf <= shown) / rows
    ordered, wanted = sorted(counts), asked.steps / 2**20 * rows
    upto = np.cumsum([counts[leaf] for leaf in ordered])
    truth = ordered[int(np.searchsorted(upto, wanted - 1e-9))]
    inside = state.lower[0] <= truth and truth + 1 <= state.upper[0]
    return inside and low <= asked.q + asked.rank + 1e-9 and high >= asked.q - asked.rank - 1e-9


@settings(max_examples=8)
@given(
    counts=st.dictionaries(st.integers(0, 1023), st.integers(1, 5_000), min_size=1, max_size=12),
    q=st.sampled_from([0.0, 0.01, 0.3, 0.5, 0.9, 1.0]),
    rank=st.sampled_from([0.01, 0.05, 0.3]),
)
def test_without_noise_every_group_is_right(counts, q, rank):
    """Whatever the histogram, the quantile and the target: lumps, gaps and ends of the range."""
    counts = {leaf: 1_000 * many for leaf, many in counts.items()}
    asked = goal(q, rank)

    state = QuantileChains(asked, 0.05, CAP).run(exact(ranks_of(counts)), groups=1)

    assert state.met.all()
    assert state.by_rank.all()
    assert kept(state, counts, asked)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.49, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("chance", [0.2, 0.02, 1e-6])
def test_the_reach_is_a_quantile_from_above(share, chance):
    """Of (1 - share) X - share Y, by integrating one of the two: passed with the chance at most, and nearly with it."""
    far = float(reach(share, np.array([chance]))[0])

    def beyond(y):
        bound = (far + share * y) / (1 - share)
        tail = np.exp(-bound) / 2 if bound > 0 else 1 - np.exp(bound) / 2
        return tail * np.exp(-abs(y)) / 2

    kink = -far / share if share else None
    ends = [-60.0, *([kink] if kink and kink > -60 else []), 0.0, 60.0]
    tail = np.exp(-far) / 2 if share == 1 else sum(
        quad(beyond, low, high, epsabs=0, epsrel=1e-9, limit=200)[0] for low, high in pairwise(ends)
    )  # fmt: skip
    assert 0.7 * chance < tail <= chance * (1 + 1e-6)
    assert np.isinf(reach(share, np.array([0.0]))).all()


def test_what_chains_may_use_up_adds_up_to_beta():
    """The parts of all chains of each group, over all their levels, and those of the interval."""
    plan, groups = QuantileChains(goal(0.3, 0.002), 0.05, CAP), 200
    cells = np.arange(groups).repeat(4), np.tile([100, 101, 103, 500], groups), np.tile([2_000, 900, 10, 6_000], groups)
    ranks = Ranks.of(*cells, groups=groups, leaves_log2=10)
    run = QuantileChainRun.of(plan, Trail.nothing(groups), np.zeros(groups, bool), ShownRanks(ranks, 1, seeded(3)).show)
    parts = []
    while run.active.any():
        before = run.left.copy()
        run.look(np.flatnonzero(run.active))
        parts.append(before - run.left)

    each, later = np.array(parts), np.arange(400)
    assert each.min() >= 0
    assert (each.sum(axis=0) <= 1).all()
    assert 0.5 < each.sum(axis=0).mean()
    assert max(plan.share(group, later[:, None]).sum() for group in each.T) <= 0.9 * 0.05 * (1 + 1e-9)
    assert sum(plan.beside(np.array(i), later).sum() for i in range(400)) <= 0.1 * 0.05


def test_a_search_goes_on_where_an_earlier_one_stopped():
    """A sharper rank shows no look twice; what is held is read again without measuring, to the same answer."""
    ranks, looks = ranks_of(dict.fromkeys(range(1024), 40)), []
    wide, sharp = (QuantileChains(goal(rank=rank), 0.05, CAP) for rank in (0.1, 0.01))

    def counting(seed):
        show = ShownRanks(ranks, 1, seeded(seed)).show

        def counted(place, held, farthings, groups):
            looks.append((int(place[0]), int(farthings[0]), int(farthings[0] - held.farthings[0])))
            return show(place, held, farthings, groups)

        return counted

    first = wide.run(counting(1), groups=1)
    again = wide.run(None, groups=1, held=first.trail)
    second = sharp.run(counting(2), groups=1, held=first.trail)
    waits = sharp.run(None, groups=1, held=first.trail)

    assert again.value == first.value
    assert not again.waits.any()
    assert waits.waits.all()
    assert first.paid < second.paid
    assert sum(increase for _, _, increase in looks) == second.paid == second.trail.grains.sum()
    assert len(looks) == (second.trail.thresholds >= 0).sum()
    assert {level for _, level, _ in looks} <= set(LEVELS.tolist())


def test_a_price_in_looks_is_refined_for_the_difference():
    """A sharper quantile pays less than it would alone, is free again, and so is the wider one."""
    with Session(TABLE, budget=Budget(epsilon=4)) as session:
        wide = session.quantile("v", 0.5, lower=0, upper=60, rank=0.1, cap="all")
        sharp = wide.refine(rank=0.02)
        spent = session.spent
        again = session.quantile("v", 0.5, lower=0, upper=60, rank=0.02, cap="all")
        earlier = session.quantile("v", 0.5, lower=0, upper=60, rank=0.1, cap="all")

    assert wide.met
    assert sharp.met
    assert wide.paid + sharp.paid == spent
    assert not again.paid
    assert not earlier.paid
    assert again.value == sharp.value
    assert 0.48 <= (VALUES <= sharp.value).mean() <= 0.52


def test_a_group_too_small_is_given_up_for_little():
    """It pays a small part of its cap, the other is met; with on_miss="spend" it goes on; the plan says so."""
    with Session(TABLE, budget=Budget(epsilon=4)) as session:
        asked = {"lower": 0, "upper": 60, "rank": 0.002, "cap": Pure(0.9), **BY}
        plan = session.plan("SELECT MEDIAN(v) FROM data", lower=0, upper=60, rank=0.002, cap=Pure(0.9))
        answer = session.quantile("v", 0.5, **asked)
        more = session.quantile("v", 0.5, **asked, on_miss="spend")

    paid, later = (one.to_arrow()["paid"].to_pylist()[1] for one in (answer, more))
    assert "by a search" in plan.steps[0]
    assert "given up early" in str(plan)
    assert not answer.met[1]
    assert 0 < paid < 0.1 < later
    assert paid + later <= 0.9


@pytest.mark.parametrize("rank", [0.05, 0.1, 0.2])
def test_groups_without_rows_pay_about_the_rank_of_their_cap(rank):
    """A group is left as soon as its noise is so small that a count of noise alone is too few rows: about rank cap."""
    groups = 100
    none = Ranks.of(np.arange(groups), np.zeros(groups, int), np.zeros(groups, int), groups=groups, leaves_log2=10)

    state = QuantileChains(goal(rank=rank), 0.05, CAP).run(ShownRanks(none, 1, seeded(8)).show, groups=groups)

    assert not state.met.any()
    assert rank <= state.paid.mean() / CAP < 1.25 * rank


def test_who_does_not_hold_the_chains_alone_begins_others(monkeypatch, tmp_path):
    """While another ask of the question is open, its looks are not carried on: all is shown again and paid in full."""
    ledger = tmp_path / "books.ledger"
    asked = {"lower": 0, "upper": 60, "cap": Pure(1.5)}
    budget = Budget(epsilon=8)
    with Session(TABLE, budget=budget, ledger=ledger) as one, Session(TABLE, budget=budget, ledger=ledger) as two:
        one.quantile("v", 0.5, rank=0.4, **asked)
        held, paid, whole = [], [], answering.searched

        def noted(pricing, ranks, watcher, looks):
            held.append(pricing.held is not None)
            if len(held) == 1:
                paid.append(two.quantile("v", 0.5, rank=0.005, **asked).paid)
            return whole(pricing, ranks, watcher, looks)

        monkeypatch.setattr(answering, "searched", noted)
        paid.append(one.quantile("v", 0.5, rank=0.003, **asked).paid)
        one.verify()

    assert held == [True, False]
    assert all(paid)


def stopped(_progress):
    """Stop an ask as Ctrl-C does."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("name", ["mean", "quantile"])
def test_all_that_is_left_pays_after_an_ask_that_was_interrupted(name, delta):
    """All is charged from the beginning then: a plan of all that is left asks for no more than that, and is kept to."""
    asked = {"lower": 0, "upper": 60, "cap": "all"}
    wide, sharp = ({"relative": 0.1}, {"relative": 0.004}) if name == "mean" else ({"rank": 0.2}, {"rank": 0.02})
    with Session(TABLE, budget=Budget(epsilon=1, delta=delta)) as session:
        ask = session.mean if name == "mean" else lambda column, **more: session.quantile(column, 0.5, **more)
        paid = ask("v", **asked, **wide).paid
        with pytest.raises(KeyboardInterrupt):
            ask("v", **asked, **sharp, progress=stopped)
        left = session.remaining
        sql = "SELECT AVG(v) FROM data" if name == "mean" else "SELECT MEDIAN(v) FROM data"
        plan = session.plan(sql, **asked, **sharp)
        answer = ask("v", **asked, **sharp)
        session.verify()

    assert paid
    assert plan.fits
    assert plan.worst_price.farthings > 0.99 * left.farthings
    assert answer.met
    assert 0 < answer.paid.farthings < left.farthings


def test_what_cannot_be_asked_is_refused_before_anything_is_paid():
    """Ranks out of range, units of too many rows, and plans of no target."""
    with Session(TABLE, budget=Budget(epsilon=1)) as session:
        for rank in (0, 1e-4, 0.5, True):
            with pytest.raises(InvalidTarget, match=r"2\^-12 <= rank < 1/2"):
                session.quantile("v", 0.5, lower=0, upper=60, rank=rank)
        assert not session.spent
    with Session(TABLE, unit="g", bounds=Bounds(1, 1 << 20), budget=Budget(epsilon=1)) as session:
        with pytest.raises(InvalidBounds, match="too many rows"):
            session.quantile("v", 0.5, lower=0, upper=60, rank=0.1, cap=Pure(2.0**-30))
        assert not session.spent
    for wrong in ({"beta": 0.0}, {"cap": 0}, {"asked": goal(rank=0.0)}, {"absolute": 1.0}):
        with pytest.raises(InvalidTarget, match="by rank"):
            QuantileChains(**({"asked": goal(), "beta": 0.05, "cap": 1 << 40} | wrong))
    with pytest.raises(InvalidTarget, match="out of range"):
        QuantileChains(goal(rank=0.0), 0.05, 1 << 40, relative=1.0)


def test_a_search_that_begins_again_leaves_what_cost_more():
    """What a more expensive search measured stays, beside the answers of both; one that cost as much replaces it."""

    def blob(*ranks, paid):
        trail, none = Trail.nothing(2), np.zeros(2)
        trail.paid = np.array(paid)
        sought = (QuantileSought(rank, 0.0, 0.0, 0.05, 1 << 40) for rank in ranks)
        found = (QuantileFound(one, none, none, none, none > 0, none > 0) for one in sought)
        return answering.blob_of(QuantileStanding(tuple(found), trail))

    receipt, theirs = Receipt(7, "books", 10, "q", 1, exclusive=False), blob(0.01, paid=[4, 7])
    for paid, stays in (([9, 0], [9, 0]), ([2, 5], [4, 7]), ([4, 7], [4, 7]), ([0, 8], [0, 8]), ([6, 6], [4, 7])):
        method = answering.QuantileMethod(SimpleNamespace(max_groups=1), QuantileStanding(), theirs)
        outcome = SimpleNamespace(blob=blob(0.01, 0.2, paid=paid))
        merged = answering.standing_in(method.merged(theirs, outcome, receipt))

        assert merged.trail.paid.tolist() == stays
        assert [one.sought.rank for one in merged.found] == [0.01, 0.2]
