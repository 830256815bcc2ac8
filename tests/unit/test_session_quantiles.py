"""Quantiles through the session: a sharper one pays for what is new, in the books too, and what is known is free."""

import json

import numpy as np
import pyarrow as pa
import pytest

from farthing import Bounds, Budget, Gdp, Pure, Session
from farthing.accuracy.quantile_ranks import NoisyRanks
from farthing.accuracy.quantile_trail import Trail
from farthing.errors import InvalidTarget, LedgerError
from farthing.mechanisms.gaussian import GRAIN, worst_cost
from farthing.session.answering.quantile import blob_of, standing_in
from farthing.session.core.records import read_blob, write_blob

RNG = np.random.default_rng(12)
ROWS = 24_000
TABLE = pa.table({
    "unit": RNG.integers(0, 12_000, ROWS),
    "g": RNG.choice(4, ROWS, p=[0.5, 0.3, 0.19, 0.01]),
    "v": RNG.gamma(2.0, 15.0, ROWS),
})  # fmt: skip
BY = {"by": "g", "keys": {"g": [0, 1, 2, 3]}}
CLAMPS = {"lower": 0, "upper": 100}
GDP, ZCDP = Budget(mu=8), Budget(rho=30)
CHAINS = {
    "rank": [{"rank": 0.2}, {"rank": 0.1}, {"rank": 0.1, "confidence": 0.99}, {"rank": 0.05, "confidence": 0.99}],
    "value": [{"absolute": 20}, {"relative": 0.2}, {"relative": 0.05, "absolute": 1}],
    "both": [{"rank": 0.2}, {"absolute": 8}, {"rank": 0.05}],
}


def opened(budget=GDP):
    """A session of its own."""
    return Session(TABLE, unit="unit", bounds=Bounds(max_groups=2, max_rows=2), budget=budget)


def ask(session, q=0.5, cap="all", **how):
    """Ask for a quantile of every group."""
    return session.quantile("v", q, **CLAMPS, **BY, cap=cap, **how)


@pytest.fixture
def bought(monkeypatch):
    """Every grain that is measured, by group."""
    grains = np.zeros(4, np.int64)
    honest = {name: getattr(NoisyRanks, name) for name in ("measure", "measure_count")}

    def measure(noisy, thresholds, amount, groups):
        np.add.at(grains, groups, amount)
        return honest["measure"](noisy, thresholds, amount, groups)

    def measure_count(noisy, amount, groups):
        np.add.at(grains, groups, amount)
        return honest["measure_count"](noisy, amount, groups)

    monkeypatch.setattr(NoisyRanks, "measure", measure)
    monkeypatch.setattr(NoisyRanks, "measure_count", measure_count)
    return grains


def charged(session, chain, bought, q=0.5):
    """Ask a chain; check that the books hold what was measured, in the groups that pay most, and each plan its cost."""
    for how in chain:
        before, plan = session.spent, ask.plan(session, q, **how)
        answer = ask(session, q, **how)
        mu_squared = float(worst_cost(bought, 2) * GRAIN)
        spent = session.spent.amount * (1 if session.spent.parameter == "mu" else 2)

        assert mu_squared <= spent <= mu_squared + 8 * len(chain) * 2.0**-40
        assert session.spent.amount - before.amount <= plan.worst_price.amount
        assert bool(answer.paid) is not plan.free
        assert not ask(session, q, **how).paid
    return session


def _plan(session, q=0.5, cap="all", **how):
    """Plan what `ask` asks."""
    inside = {name: how.pop(name) for name in ("rank",) if name in how}
    text = f"SELECT g, QUANTILE(CLAMP(v, 0, 100), {q}) AS q FROM data GROUP BY g"
    return session.plan(text, keys=BY["keys"], cap=cap, **inside, **how)


ask.plan = _plan


@pytest.mark.parametrize(
    ("budget", "chain"),
    [
        *(pytest.param(GDP, chain, id=f"{name}-gdp") for name, chain in CHAINS.items()),
        pytest.param(ZCDP, CHAINS["value"], id="value-zcdp"),
        *(pytest.param(ZCDP, CHAINS[name], id=f"{name}-zcdp", marks=pytest.mark.thorough) for name in ("rank", "both")),
    ],
)
def test_the_books_hold_what_was_measured(budget, chain, bought):
    """Over chains of every kind, in both currencies, a unit in two groups: no grain is free, none paid twice."""
    charged(opened(budget), chain, bought)


def test_the_ends_go_on_too(bought):
    """MIN and MAX, whose place moves with the target."""
    charged(opened(), CHAINS["rank"][:2], bought, q=0)


@pytest.mark.parametrize("chain", ["value", "rank"])
def test_a_charge_that_is_forgotten_is_caught(chain, bought, monkeypatch):
    """The planted bug: what is measured at a threshold is not counted, by a search by value and by rank."""
    honest = Trail.keep

    def forgetful(trail, *given):
        paid = trail.paid.copy()
        honest(trail, *given)
        trail.paid = paid

    monkeypatch.setattr(Trail, "keep", forgetful)
    with pytest.raises(AssertionError):
        charged(opened(), CHAINS[chain], bought)


def test_more_confidence_is_paid_and_less_is_free():
    """What was decided at 95 % is not told again at 99.9 %."""
    session = opened()
    ask(session, rank=0.1)

    assert not ask(session, rank=0.1, confidence=0.9).paid
    assert ask(session, rank=0.1, confidence=0.999).paid


def test_a_confidence_that_was_not_paid_is_caught(monkeypatch):
    """The planted bug: what was decided at one confidence serves at any other."""
    monkeypatch.setattr("farthing.planning.quantile_sought._NEARLY", 1e9)
    with pytest.raises(AssertionError):
        test_more_confidence_is_paid_and_less_is_free()


def test_what_an_interval_meets_is_free_by_any_road():
    """After 5 or 1 %: any width that its intervals have, whatever it is called; and groups that have it pay nothing."""
    session = opened()
    first = ask(session, absolute=5, relative=0.01)
    half = (first.upper - first.lower) / 2
    assert first.met.all()
    again = ask(session, relative=float((half / first.lower).max() * 1.01))

    assert not again.paid
    assert np.array_equal(again.lower, first.lower)
    assert not first.refine(absolute=6).paid
    width = float(half.max()) * 0.9
    some = ask(session, absolute=width)

    assert some.met.all()
    assert (some.paid_by_group[half <= width] == 0).all()
    assert some.paid_by_group[half > width].all()


def test_older_records_are_read():
    """Answers without what was measured for them are told again; a sharper one begins again. Others are refused."""
    session = opened()
    ask(session, rank=0.1)
    (stored,) = _stored(session)
    standing = standing_in(stored)
    one = standing.found[0]
    columns = {name: getattr(one, name) for name in ("value", "lower", "upper", "met")}
    first = write_blob(columns, {b"farthing-quantile-1": json.dumps(one.sought.facts()).encode()})
    second = write_blob(
        {f"{name}0": column for name, column in columns.items()},
        {b"farthing-quantile-2": json.dumps([one.sought.facts()]).encode()},
    )

    for blob in (first, second):
        assert standing_in(blob).trail is None
        assert standing_in(blob).found[0].by_rank.tolist() == one.by_rank.tolist()
    again = standing_in(blob_of(standing))
    assert all(np.array_equal(getattr(again.trail, name), getattr(standing.trail, name)) for name in Trail.__slots__)
    held, facts = read_blob(stored, b"farthing-quantile-5")
    older = {name: column for name, column in held.items() if not name.startswith("kinds")}
    third = standing_in(write_blob(older, {b"farthing-quantile-3": json.dumps(facts).encode()}))
    assert third.trail.thresholds.tolist() == standing.trail.thresholds.tolist()
    assert not third.trail.kinds.any()
    assert third.trail.kinds.shape == third.trail.thresholds.shape
    for damaged in (
        write_blob({"x": np.zeros(4)}, {b"farthing-quantile-5": b"[{}]"}),
        write_blob({}, {b"other": b"1"}),
    ):
        with pytest.raises(LedgerError):
            standing_in(damaged)


def _stored(session):
    """Every record in the session's ledger."""
    ledger = session._ledger
    for question in {entry.question for entry in ledger.entries()}:
        stored = ledger.load(question)
        if stored is not None:
            yield stored.blob


def test_an_interval_of_another_rank_is_no_answer():
    """Near the ends a rank target looks for the middle of the ranks that will do: its interval is not that of q."""
    table = pa.table({"v": np.where(np.arange(30_000) < 600, 10.0, 90.0)})
    session = Session(table, budget=Budget(mu=4))
    clamps = {"lower": 0, "upper": 100, "cap": Gdp(0.3)}
    first = session.quantile("v", 0.01, rank=0.4, **clamps)
    again = session.quantile("v", 0.01, absolute=30.0, **clamps)

    assert first.value > 50 > again.value
    assert again.paid > Gdp(0)
    assert session.quantile("v", 0.01, rank=0.4, **clamps).paid == Gdp(0)


@pytest.mark.parametrize("asks", [[{"absolute": 2}, {"rank": 0.02}], [{"rank": 0.02}, {"absolute": 0.5}]])
@pytest.mark.parametrize("seed", range(3))
def test_a_cap_of_a_pure_budget_counts_what_a_search_of_the_other_kind_has_paid(asks, seed):
    """One by value begins again after one by rank, and the reverse; both together stay within the cap."""
    rows = pa.table({"v": np.random.default_rng(seed).normal(30, 10, 2_000).clip(0, 60)})
    with Session(rows, budget=Budget(epsilon=8)) as session:
        for target in asks:
            session.quantile("v", 0.5, lower=0, upper=60, cap=Pure(0.5), **target)
        assert float(session.spent.value) <= 0.5


MEDIAN = "SELECT g, MEDIAN(CLAMP(v, 0, 100)) FROM data GROUP BY g"


@pytest.mark.parametrize("budget", [GDP, ZCDP, Budget(epsilon=30)])
@pytest.mark.parametrize("how", [{"absolute": 0.0007}, {"relative": 1e-6}, {"relative": 1e-6, "absolute": 1e-9}])
def test_a_target_finer_than_values_are_told_apart_is_refused_free(budget, how, bought):
    """Plan and ask say the same: half a step of the range is nearest, and what it advises can be met."""
    session, keys = opened(budget), BY["keys"]
    with pytest.raises(InvalidTarget) as planned:
        session.plan(MEDIAN, keys=keys, cap="all", **how)
    with pytest.raises(InvalidTarget) as asked:
        session.sql(MEDIAN, keys=keys, cap="all", **how)
    with pytest.raises(InvalidTarget) as called:
        ask(session, **how)

    assert str(asked.value) == str(planned.value) == str(called.value)
    assert "half a step is 0.000763" in asked.value.got
    assert "absolute=0.00077" in asked.value.next_step
    assert not bought.any()
    assert not session.spent
    assert session.plan(MEDIAN, keys=keys, cap="all", absolute=0.00077)


def test_finer_targets_of_whole_numbers_of_a_rank_or_for_what_the_cap_allows_are_asked():
    """Whole numbers are told apart one by one; a rank will do beside; who wants the narrowest answer pays for it."""
    numbers = TABLE.set_column(2, "v", TABLE["v"].cast("int64", safe=False))
    whole = Session(numbers, unit="unit", bounds=Bounds(max_groups=2, max_rows=2), budget=GDP)
    terms = {"keys": BY["keys"], "absolute": 1e-6}

    assert whole.plan(MEDIAN, **terms)
    assert opened().plan(MEDIAN, **terms, rank=0.05)
    assert opened().plan(MEDIAN, **terms, on_miss="spend")
