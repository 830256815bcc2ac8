"""What a released interval meets already is free, by every road; only the other groups are asked again."""

import numpy as np
import pyarrow as pa
import pytest

import farthing
from farthing.accuracy.report import reread
from farthing.accuracy.stored_promise import HeldIntervals, OwnPromises, StoredPromise

KEYS = {"zone": ["large", "small"]}
TABLE = pa.table({"zone": ["large"] * 200_000 + ["small"] * 300})
BUDGETS = {
    "gdp": farthing.Budget(epsilon=1, delta=1e-6),
    "zcdp": farthing.Budget(rho=0.05),
    "pure": farthing.Budget(epsilon=1),
}


def ask(session, road, **target):
    """Ask the counts of both zones by one road."""
    if road == "count":
        return session.count(by="zone", keys=KEYS, **target)
    text = "SELECT zone, COUNT(*) AS n FROM trips GROUP BY zone"
    assert road == "sql"
    assert session.plan(text, keys=KEYS, **target).worst_price.farthings >= 0
    return session.sql(text, keys=KEYS, **target)


def opened(kind="gdp"):
    """Return a session of one large and one small group."""
    return farthing.Session(TABLE, budget=BUDGETS[kind], name="trips")


@pytest.mark.parametrize("kind", list(BUDGETS))
@pytest.mark.parametrize("road", ["count", "sql"])
def test_a_distance_that_every_relative_interval_meets_is_free(kind, road):
    """5 % of 200,000 is within 20,000: nothing is paid for that, and the plan says so."""
    session = opened(kind)
    first = ask(session, "count", relative=0.05, absolute=1000)
    plan = session.plan("SELECT zone, COUNT(*) AS n FROM trips GROUP BY zone", keys=KEYS, absolute=20_000)
    again = ask(session, road, absolute=20_000)

    assert plan.free
    assert plan.reachable
    assert not again.paid
    assert again.met.all()
    assert again.lower.tolist() == first.lower.tolist()


@pytest.mark.parametrize("kind", list(BUDGETS))
def test_refining_to_what_is_known_is_free(kind):
    """`refine` asks for no more than what its target needs."""
    first = opened(kind).count(by="zone", keys=KEYS, relative=0.05, absolute=1000)

    assert not first.refine(relative=0.0, absolute=20_000).paid


@pytest.mark.parametrize("kind", list(BUDGETS))
def test_only_groups_that_miss_the_new_target_pay(kind):
    """After an absolute target a relative one costs the small group alone; the large one keeps its interval."""
    session = opened(kind)
    first = ask(session, "count", absolute=1000)
    second = ask(session, "count", relative=0.1, absolute=150)

    assert second.paid_by_group[0] == 0
    assert second.paid_by_group[1] > 0
    assert second.met.all()
    assert (second.lower[0], second.upper[0]) == (first.lower[0], first.upper[0])


@pytest.mark.parametrize(("kind", "times"), [("gdp", 1.5), ("zcdp", 1.5), ("pure", 3.2)])
def test_a_relative_target_after_an_absolute_one_costs_little(kind, times):
    """1 % of a large count, asked after a loose distance, costs what it costs alone, not the distance squared.

    Under a pure budget the looks of a count that was asked without a relative target first hold all at once.
    """
    alone = opened(kind).count(where="zone = 'large'", relative=0.01, cap="all").paid
    session = opened(kind)
    session.count(where="zone = 'large'", absolute=5_000)
    after = session.count(where="zone = 'large'", relative=0.01, cap="all")

    assert np.all(after.met)
    assert float(after.paid.amount) <= times * float(alone.amount)


def test_a_distance_after_a_relative_target_costs_large_groups_alone():
    """Under a pure budget, too: the small group's interval is within the distance already, and it pays nothing."""
    session = opened("pure")
    ask(session, "count", relative=0.1, absolute=150)
    second = ask(session, "count", absolute=1000)
    third = ask(session, "count", absolute=1000, relative=0.1)

    assert second.paid_by_group[1] == 0 < second.paid_by_group[0]
    assert second.met.all()
    assert not third.paid


@pytest.mark.parametrize("kind", list(BUDGETS))
def test_groups_keep_their_claims_through_the_ledger(tmp_path, kind):
    """Another session on the same books tells the same intervals, group by group, free of charge."""
    books = tmp_path / "trips.ledger"
    targets = [{"absolute": 1000}, {"relative": 0.1, "absolute": 150}]
    with farthing.Session(TABLE, budget=BUDGETS[kind], ledger=books, name="trips") as session:
        answers = [ask(session, "count", **target) for target in targets]
    with farthing.Session(TABLE, budget=BUDGETS[kind], ledger=books, name="trips") as session:
        again = ask(session, "count", **targets[1])

    assert not again.paid
    assert again.lower.tolist() == answers[1].lower.tolist()
    assert again.value.tolist() == answers[1].value.tolist()


def test_a_claim_at_less_confidence_does_not_serve_more():
    """Intervals of a relative rule hold at the confidence that they were made for, and at less."""
    session = opened()
    session.count(by="zone", keys=KEYS, relative=0.05, absolute=1000)

    assert session.count(by="zone", keys=KEYS, absolute=20_000, confidence=0.999_999).paid_by_group[0]
    assert not session.count(by="zone", keys=KEYS, absolute=20_000, confidence=0.9).paid


def test_groups_that_wait_at_their_floor_must_show_a_little_more():
    """A group that a fixed look chose stops by the new rule's constant, not by its own smaller one."""
    kept = StoredPromise(0.0, 100.0, 100.0, 0.05, 1.96, 1 << 40)
    held = HeldIntervals(kept, OwnPromises.none(2), np.array([1005.0, 1020.0]), np.array([1 << 40, 1 << 40]))
    claims = OwnPromises(np.array([100.0, 100.0]), np.array([0.05, 0.05]))

    assert held.serving(claims, 0.1, 0.0, room=1.99 / 1.96).tolist() == [False, True]
    assert held.serving(claims, 0.1, 100.0, room=1.99 / 1.96).tolist() == [True, True]


@pytest.mark.parametrize("relative", [0.0, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("absolute", [0.0, 10.0, 300.0])
def test_a_value_that_is_reread_keeps_the_target_everywhere_in_its_interval(relative, absolute):
    """Wherever in the interval the truth lies, the value that is told is within the target of it."""
    value, half = (grid.ravel() for grid in np.meshgrid(np.linspace(-2000, 2000, 81), np.linspace(0.1, 900, 40)))
    told = reread(value, half, relative, absolute)
    for at in np.linspace(0, 1, 21):
        truth = told.lower + at * (told.upper - told.lower)
        reach = np.maximum(relative * np.abs(truth), absolute) * (1 + 1e-9) + 1e-9
        assert (np.abs(told.value - truth)[told.met] <= reach[told.met]).all()
    assert ((told.lower <= told.value) & (told.value <= told.upper)).all()
