"""Groups that are found privately: booked with their delta, kept, found again free of charge, refused clearly."""

import numpy as np
import pyarrow as pa
import pytest
from asks import ASKS, BY, opened_session

from farthing import Bounds, Budget, BudgetExceeded, InvalidTarget, Session
from farthing.engines.duck.engine import DuckDBEngine

SIZES = {"big": 30_000, "middle": 5_000, "small": 400, "tiny": 3, "one": 1}
TABLE = pa.table({
    "zone": np.repeat(list(SIZES), list(SIZES.values())),
    "who": np.arange(sum(SIZES.values())) // 2,
    "x": np.arange(sum(SIZES.values())) % 10,
})  # fmt: skip
BUDGET = Budget(epsilon=2, delta=1e-6, keys_delta=1e-7)


def opened(**options):
    """Open the table."""
    return Session(TABLE, **({"budget": BUDGET} | options))


def test_large_groups_are_found_and_single_units_are_not():
    """Groups far above the promise are told, those of a few units never are; the answer says what was promised."""
    with opened() as session:
        answer = session.count(by="zone", keys="private", absolute=50)

        assert ["big", "middle", "small"] == answer.keys.column("zone").to_pylist()
        assert np.abs(answer.value - [30_000, 5_000, 400]).max() < 200
        assert "at least 100 units" in answer.about
        assert session.spent == answer.paid


def test_the_same_groups_are_found_again_for_nothing():
    """Asking again, in a new session on the same books too, draws nothing again."""
    with opened() as session:
        first = session.count(by="zone", keys="private", absolute=50)
        left = session.status()["keys_delta"]["left"]
        again = session.count(by="zone", keys="private", absolute=50)
        other = session.sum("x", lower=0, upper=9, by="zone", keys="private", found_above=100, absolute=5_000)

        assert not again.paid
        assert first.rows()[0]["zone"] == again.rows()[0]["zone"] == other.rows()[0]["zone"]
        assert left == session.status()["keys_delta"]["left"] or other.paid


def test_delta_is_booked_and_runs_out():
    """Each new search is charged its delta; when it is used up the books refuse, and nothing else is charged."""
    with opened() as session:
        for place in range(10):
            session.count(by="zone", keys="private", where=f"x >= {place - 20}", absolute=200)
        spent = session.spent
        with pytest.raises(BudgetExceeded, match="set aside for keys"):
            session.count(by="zone", keys="private", where="x >= -99", absolute=200)

        assert spent == session.spent
        assert 0 <= session.status()["keys_delta"]["left"] < 1e-8
        session.verify()


def test_units_in_several_groups_pay_for_all_of_them():
    """With max_groups groups a unit the same promise is more expensive."""
    prices = []
    for groups in (1, 4):
        with opened(unit="who", bounds=Bounds(max_groups=groups, max_rows=2)) as session:
            answer = session.count(by="zone", keys="private", found_above=300, absolute=300)
            prices.append(answer.paid)
            assert {"big", "middle"} <= set(answer.keys.column("zone").to_pylist())
            assert not {"tiny", "one"} & set(answer.keys.column("zone").to_pylist())

    assert prices[0] < prices[1]


@pytest.mark.parametrize("kind", [*ASKS, "most_common", "plan", "explain", "workload"])
def test_the_size_of_groups_is_refused_where_none_are_to_be_found(kind):
    """Whatever is asked of listed groups, or of none, found_above= is refused, and nothing is charged."""
    asks = ASKS | {
        "most_common": lambda s, **how: s.most_common("g", k=2, keys=BY["keys"], absolute=50, **how),
        "plan": lambda s, **how: s.plan(**BY, absolute=50, **how),
        "explain": lambda s, **how: s.sql("EXPLAIN SELECT COUNT(*) AS n FROM data", absolute=50, **how),
        "workload": lambda s, **how: s.workload([BY | how], absolute=50),
    }
    with opened_session() as session:
        with pytest.raises(InvalidTarget, match="found_above"):
            asks[kind](session, found_above=50)
        assert not session.spent


@pytest.mark.parametrize("budget", [BUDGET, Budget(epsilon=2, delta=1e-7, keys_delta=1e-7)])
def test_units_of_few_groups_make_their_groups_easier_to_find(budget):
    """With 16 groups allowed, groups of units that are in one each are found below the size that is promised."""
    table = pa.table({"zone": np.arange(4_000) % 8, "who": np.arange(4_000), "x": np.zeros(4_000)})
    with Session(table, unit="who", bounds=Bounds(max_groups=16, max_rows=1), budget=budget) as session:
        answer = session.count(by="zone", keys="private", found_above=900, absolute=300, cap="all")

        assert answer.keys.column("zone").to_pylist() == list(range(8))


def test_a_pure_ledger_with_delta_for_keys_alone():
    """keys_delta = delta keeps the answers pure: groups are found by the optimal rule, at (epsilon, delta)."""
    with opened(budget=Budget(epsilon=2, delta=1e-7, keys_delta=1e-7)) as session:
        answer = session.count(by="zone", keys="private", absolute=100)

        assert {"big", "middle"} <= set(answer.keys.column("zone").to_pylist())
        assert "epsilon" == answer.paid.parameter
        assert 1e-7 == session.guarantee().delta


def test_plans_tell_of_the_search_and_spend_nothing():
    """Before the groups are known a plan has the price of the search and what the question may cost; after, its own."""
    with opened() as session:
        plan = session.plan(by="zone", keys="private", absolute=50)
        assert not session.spent
        assert "units of every zone" in plan.steps[0]
        assert session.count(by="zone", keys="private", absolute=50).paid <= plan.worst_price
        assert session.plan(by="zone", keys="private", absolute=50).free


@pytest.mark.parametrize(("asking", "error", "told"), [
    ({"relative": 0.1}, InvalidTarget, "found_above"),
    ({"absolute": 50, "found_above": 1}, InvalidTarget, "at least 2"),
    ({"absolute": 50, "found_above": 4}, InvalidTarget, "half of what"),
])  # fmt: skip
def test_refusals(asking, error, told):
    """What cannot be found is refused in our own words; what was drawn by then stays charged."""
    with opened() as session, pytest.raises(error, match=told):
        session.count(by="zone", keys="private", **asking)


def test_a_search_may_find_nothing():
    """No group is an answer like any other: no rows, a price, and what was promised."""
    with opened() as session:
        answer = session.count(by="zone", keys="private", absolute=50, found_above=10_000_000)

        assert [] == answer.rows()
        assert ["zone", "count", "count_lower", "count_upper", "met", "paid"] == answer.to_arrow().column_names
        assert session.spent == answer.paid
        assert "no group was found" in answer.about
        assert "count" in repr(answer)


def test_an_engine_that_fails_keeps_the_charge(monkeypatch):
    """Noise may have been drawn when it failed: loss and delta stay charged."""

    def fail(*_):
        raise MemoryError

    with opened() as session:
        monkeypatch.setattr(DuckDBEngine, "found", fail)
        with pytest.raises(MemoryError):
            session.count(by="zone", keys="private", absolute=50)

        assert session.spent
        assert session.status()["keys_delta"]["left"] < 1e-7
        assert ["failed"] == [entry.state for entry in session.history()]
