"""Quantiles by value under a pure budget: rounds of thresholds around the quantile, what they prove, and going on."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing import Budget, Pure, Session
from farthing.accuracy.joint_chains import ShownJointRanks
from farthing.accuracy.quantile_chains import QuantileChains
from farthing.accuracy.quantile_ranks import QuantileGoal, Ranks
from farthing.accuracy.quantile_round_run import QuantileRoundRun
from farthing.accuracy.quantile_trail import LOOK, ROUND, Trail, made_for
from farthing.errors import InvalidTarget
from farthing.noise.bits import seeded

CAP = 1 << 46
VALUES = np.random.default_rng(5).normal(30, 10, 20_000).clip(0, 60)
TABLE = pa.table({"v": VALUES, "g": np.where(np.arange(20_000) < 100, "few", "many")})
ENDS = {"lower": 0, "upper": 60}


def plan_of(q=0.5, lower=0.0, **target):
    """Search for a quantile among 1,024 leaves, each of width 1."""
    return QuantileChains(QuantileGoal(q, lower, lower + 1024, leaves_log2=10), 0.05, CAP, **target)


def ranks_of(counts, groups=1):
    """Return groups that are all alike: rows by leaf."""
    leaf = np.array(sorted(counts))
    many = np.array([counts[one] for one in leaf.tolist()])
    group = np.repeat(np.arange(groups), len(leaf))
    return Ranks.of(group, np.tile(leaf, groups), np.tile(many, groups), groups=groups, leaves_log2=10)


def exact(ranks):
    """Show ranks without noise."""

    def show(held, _farthings, groups):
        upto = [np.where(one >= 0, ranks.below(np.maximum(one, 0), groups), ranks.rows[groups]) for one in held.places]
        return np.diff(np.vstack([0 * groups, *upto, ranks.rows[groups]]), axis=0)

    return show


@settings(max_examples=10)
@given(
    counts=st.dictionaries(st.integers(0, 1023), st.integers(1, 5_000), min_size=1, max_size=12),
    q=st.sampled_from([0.01, 0.3, 0.5, 0.9]),
    lower=st.sampled_from([0.0, -512.0, -2000.0]),
    target=st.sampled_from([{"absolute": 40.0}, {"absolute": 1.0}, {"relative": 0.1, "absolute": 3.0}]),
)
def test_without_noise_the_interval_holds_the_quantile_and_is_narrow(counts, q, lower, target):
    """Whatever the histogram, the quantile and the target: lumps, gaps, values below zero and across it."""
    counts = {leaf: 1_000 * many for leaf, many in counts.items()}
    plan = plan_of(q, lower, **target)

    state = plan.run(exact(ranks_of(counts)), groups=1)

    ordered, rows = sorted(counts), sum(counts.values())
    upto = np.cumsum([counts[leaf] for leaf in ordered])
    beside = upto[:-1] - plan.asked.lane_steps / 2**20 * rows
    truth = ordered[int(np.searchsorted(upto, plan.asked.lane_steps / 2**20 * rows - 1e-9))]
    low, high = state.lower[0] - lower, state.upper[0] - lower
    assert low <= truth
    assert truth + 1 <= high
    if not (np.abs(beside) < 30).any():  # else a gap is at the rank: no price tells on which side of it
        assert state.met.all()
        nearest = 0 if state.lower[0] <= 0 <= state.upper[0] else min(abs(state.lower[0]), abs(state.upper[0]))
        error = max(target["absolute"], target.get("relative", 0) * nearest)
        assert high - low <= 2 * error * (1 + 1e-9)


def test_what_rounds_may_use_up_adds_up_to_beta():
    """The parts of all rounds of each group, over all their levels."""
    groups, plan = 20, plan_of(0.3, absolute=30.0)
    ranks = ranks_of(dict.fromkeys(range(1024), 20), groups)
    run = QuantileRoundRun.of(
        plan, Trail.nothing(groups), np.zeros(groups, bool), ShownJointRanks(ranks, 1, seeded(3)).show
    )
    parts = []
    while run.active.any():
        before = run.left.copy()
        run.look(np.flatnonzero(run.active))
        parts.append(before - run.left)

    each = np.array(parts)
    assert each.min() >= 0
    assert (each.sum(axis=0) <= 1 + 1e-12).all()
    assert 0.5 < each.sum(axis=0).mean()
    assert run.within(np.arange(groups)).mean() > 0.9


def test_a_sharper_value_goes_on_and_what_is_known_is_free():
    """It is paid beside what was paid before; asked again both are free, and so is a rank that the looks prove."""
    with Session(TABLE, budget=Budget(epsilon=4)) as session:
        asked = {**ENDS, "cap": "all"}
        wide = session.quantile("v", 0.5, absolute=3, **asked)
        sharp = wide.refine(absolute=0.5)
        spent = session.spent
        again = [session.quantile("v", 0.5, absolute=one, **asked) for one in (3, 0.5)]
        known = session.quantile("v", 0.5, absolute=30, **asked)
        session.verify()

    truth = np.quantile(VALUES, 0.5)
    assert wide.met
    assert sharp.met
    assert wide.paid + sharp.paid == spent
    assert not any(one.paid for one in (*again, known))
    for answer, error in ((wide, 3), (sharp, 0.5)):
        assert answer.upper - answer.lower <= 2 * error
        assert answer.lower <= truth <= answer.upper


def test_a_group_too_small_is_given_up_and_one_without_rows_for_little():
    """Neither reaches its target, the empty one pays a small part of the cap; the plan says that groups are left."""
    groups = 50
    none = Ranks.of(np.arange(groups), np.zeros(groups, int), np.zeros(groups, int), groups=groups, leaves_log2=10)
    state = plan_of(absolute=2.0).run(ShownJointRanks(none, 1, seeded(8)).show, groups=groups)
    with Session(TABLE, budget=Budget(epsilon=4)) as session:
        asked = {**ENDS, "absolute": 0.3, "cap": Pure(0.9)}
        plan = session.plan("SELECT MEDIAN(v) FROM data", **asked)
        answer = session.quantile("v", 0.5, **asked, by="g", keys={"g": ["many", "few"]})

    assert not state.met.any()
    assert state.paid.mean() / CAP < 0.3
    assert "around the likely place" in str(plan)
    assert "given up early" in str(plan)
    assert answer.met.tolist() == [True, False]


def test_a_narrow_range_is_an_answer_already():
    """Nothing is paid where the clamps are within the target; MIN and MAX, and two targets at once, are refused."""
    with Session(TABLE, budget=Budget(epsilon=4)) as session:
        answer = session.quantile("v", 0.5, absolute=31, cap="all", **ENDS)
        with pytest.raises(InvalidTarget, match="neighbours on one side"):
            session.sql("SELECT MAX(v) AS most FROM data", absolute=1, **ENDS)
        with pytest.raises(InvalidTarget, match="by rank or by value"):
            session.quantile("v", 0.5, rank=0.1, absolute=1, **ENDS)

    assert answer.met
    assert not answer.paid
    assert (answer.lower, answer.value, answer.upper) == (0, 30, 60)


@pytest.mark.parametrize("budget", [Budget(epsilon=8), Budget(epsilon=8, delta=1e-6)], ids=["pure", "GDP"])
def test_a_target_that_was_met_is_told_as_met_after_a_sharper_one_was_not(budget):
    """What serves a group is told, not what a sharper target that it did not meet said of it; nothing is paid again."""
    rows = pa.table({"g": np.repeat([0, 1], [3_000, 20]), "v": np.random.default_rng(3).normal(30, 10, 3_020)})
    asked = {"by": "g", "keys": {"g": [0, 1]}, "lower": 0, "upper": 60, "max_epsilon": 0.5}
    with Session(rows, budget=budget) as session:
        first = session.quantile("v", 0.5, absolute=8, **asked)
        session.quantile("v", 0.5, absolute=1e-3, **asked)
        spent = session.spent
        again = session.quantile("v", 0.5, absolute=8, **asked)
        assert session.spent == spent

    assert first.met.tolist() == again.met.tolist() == [True, False]


@pytest.mark.parametrize("budget", [Budget(epsilon=1), Budget(mu=1)], ids=["pure", "GDP"])
def test_what_the_range_says_already_is_planned_as_free(budget):
    """A plan says what an ask does: nothing is reserved, with nothing left either."""
    with Session(pa.table({"v": [1.0, 2.0]}), budget=budget) as session:
        text = "SELECT MEDIAN(CLAMP(v, 0, 60)) AS m FROM data"
        assert session.plan(text, absolute=31, cap="all").free
        session.count(loss=session.remaining)
        assert session.sql(text, absolute=31, cap="all").met
        assert session.spent == budget.total


@given(st.integers(0, 1 << 20), st.integers(0, 1 << 20), st.floats(1e-6, 1))
def test_rounds_never_pass_for_looks(sought, rank, slack):
    """A search by value goes on from rounds for its own rank alone, one by rank from looks; slacks do not matter."""
    held, no = Trail.nothing(1), np.zeros(1, np.int64)
    kinds = (ROUND + sought, LOOK + rank, made_for(rank, slack))
    for kind in kinds:
        held.grow(0)
        held.keep(no, no + 3, (no + 1.0, no + 16), (no + 0.0, no), no, kind)

        went_on = [other for other in kinds if held.only(other).thresholds[0, 0] == 3]
        assert went_on == [kinds[0]] if kind == kinds[0] else kinds[1:] == tuple(went_on)
