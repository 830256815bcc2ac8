"""What leaves: the shape of answers, missed targets, what hangs on an answer."""

import dataclasses
import pickle

import numpy as np
import pyarrow as pa
import pytest
from rides import BY, KEYS, SIZES, opened, same

from farthing import Answer, Budget, Gdp, Session, TargetMissed
from farthing.query import Schema, Type
from farthing.sql import parse


@pytest.fixture
def session():
    """A session on the rides, books in memory."""
    with opened() as asked:
        yield asked


def test_a_single_number(session):
    """Without by= value, lower, upper, met and group_paid are plain numbers."""
    answer = session.count(absolute=50)

    assert [float, float, float, bool, float] == [
        type(getattr(answer, name)) for name in ("value", "lower", "upper", "met", "group_paid")
    ]
    assert answer.lower < answer.value < answer.upper
    assert ["count", "count_lower", "count_upper", "met", "paid"] == answer.to_arrow().column_names


def test_one_row_a_listed_key(session):
    """Keys come back in their order, also those without rows; the columns have one shape."""
    table = session.count("k", keys=KEYS, name="rides", absolute=50).to_arrow()

    assert ["k", "rides", "rides_lower", "rides_upper", "met", "paid"] == table.column_names
    assert KEYS["k"] == table.column("k").to_pylist()


def test_rows_pandas_polars_and_arrow_agree(session):
    """Every form has the same rows."""
    answer = session.count("k", keys=KEYS, absolute=50)
    rows = answer.to_arrow().to_pylist()

    assert rows == answer.rows()
    assert rows == answer.to_pandas().to_dict("records")
    assert rows == answer.to_polars().to_dicts()


MISSING = {"relative": 0.1, "cap": Gdp(0.02)}  # a floor of 98 or more: only "many" is within 10 %


def test_missed_groups_are_marked(session):
    """By default they come back with met False and an honest, wider interval."""
    answer = session.count(**BY, **MISSING)

    assert [False, False, False, True] == answer.met.tolist()
    assert (answer.upper - answer.lower)[:3].min() > 100
    assert "met by 1 of 4" in repr(answer)


def test_missed_groups_can_be_dropped(session):
    """on_miss="drop" leaves out their rows, key and all."""
    answer = session.count(**BY, **MISSING, on_miss="drop")

    assert ["many"] == answer.to_arrow().column("k").to_pylist()
    assert 1 == len(answer.value)


def test_missed_groups_can_raise(session):
    """on_miss="raise" books first, and the error carries the answer."""
    with pytest.raises(TargetMissed, match="3 of 4") as missed:
        session.count(**BY, **MISSING, on_miss="raise")

    assert isinstance(missed.value.answer, Answer)
    assert missed.value.answer.paid == session.spent > Gdp(0)
    assert "settled" == session.history()[0].state
    assert same(missed.value.answer, session.count(**BY, **MISSING))


def test_an_answer_holds_no_raw_aggregates(session):
    """Whatever hangs on an answer, its refine included, no array in it is the truth."""
    answer = session.count(**BY, relative=0.1, absolute=20)
    truth = np.array(SIZES)
    arrays, forbidden = [], ("GaussianMeasurements", "GeometricRelease")

    for thing in reachable(answer):
        assert type(thing).__name__ not in forbidden
        if isinstance(thing, np.ndarray) and thing.shape == truth.shape and thing.dtype.kind in "iuf":
            arrays.append(thing)

    assert len(arrays) >= 4
    assert not any(np.array_equal(array, truth) for array in arrays)


def reachable(root):
    """Walk an object graph: attributes, slots, containers and closures of our own objects, but not the table itself."""
    seen, waiting = {}, [root]
    while waiting:
        thing = waiting.pop()
        home = type(thing).__module__.partition(".")[0]
        if id(thing) in seen or home not in {"farthing", "builtins", "numpy", "functools"} or isinstance(thing, type):
            continue
        seen[id(thing)] = thing
        yield thing
        if isinstance(thing, dict):
            waiting += [*thing.keys(), *thing.values()]
        elif isinstance(thing, list | tuple | set | frozenset):
            waiting += thing
        waiting += [cell.cell_contents for cell in getattr(thing, "__closure__", None) or ()]
        if home == "farthing":
            waiting += list(getattr(thing, "__dict__", {}).values())
            slots = [slot for kind in type(thing).__mro__ for slot in getattr(kind, "__slots__", ())]
            waiting += [getattr(thing, slot) for slot in slots if hasattr(thing, slot)]


def test_answers_do_not_pickle(session):
    """An answer can ask again, so it holds its session; pickling would take the table along, and is refused."""
    answer = session.count(**BY, absolute=50)

    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        pickle.dumps(answer)
    assert answer.rows() == pickle.loads(pickle.dumps(answer.to_arrow())).to_pylist()


def test_representations(session):
    """Text and notebook show the rows, the promise, the price, and escape what the user named."""
    answer = session.count("k", keys={"k": [f"<{i}>" for i in range(20)]}, absolute=50)

    assert "8 more rows" in repr(answer)
    assert "count within 50, 0.95 confidence, met by 20 of 20" in repr(answer)
    assert "paid Gdp(mu=" in repr(answer)
    assert "&lt;3&gt;" in answer._repr_html_()
    assert "<3>" not in answer._repr_html_()


def test_answers_are_frozen(session):
    """An answer is a value."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        session.count(absolute=50).goal = "other"


def test_no_array_of_an_answer_is_the_truth_after_a_refine(session):
    """The refined answer and the callable that sharpens it hold public numbers only."""
    answer = session.count(**BY, absolute=50).refine(absolute=20)

    names = {type(thing).__name__ for thing in reachable(answer)}
    assert {"Answer", "Cells", "Context", "Request", "Query"} <= names  # the walk went through the refine callable


@pytest.mark.parametrize("column", ["met", "paid", "n_lower"])
def test_key_columns_survive(column):
    """A grouping column named like one of the answer's own columns is refused, or keeps its keys."""
    session = Session(pa.table({column: ["a", "b"]}), budget=opened()._context.budget)
    try:
        table = session.count(column, keys={column: ["a", "b"]}, name="n", absolute=50).to_arrow()
    except ValueError:
        return
    assert ["a", "b"] == table.column(0).to_pylist()


def test_columns_may_not_share_a_name(session):
    """An answer cannot be named like its key column, nor "met" or "paid"."""
    for name in ("k", "met", "paid", ""):
        with pytest.raises(ValueError, match="name"):
            session.count(**BY, name=name, absolute=50)

    assert not session.spent


def test_nothing_is_clamped(session):
    """Values of empty groups fall on both sides of zero: clamping would bias every total."""
    signs = {bool(session.count(where=f"x > {10 + i}", absolute=60).value > 0) for i in range(40)}

    assert {True, False} == signs


def test_estimates_stand_beside_the_contract():
    """Rows keep their columns; estimates are an attribute, and columns of their own when they are asked for."""
    table = pa.table({"zone": ["a"] * 9_000 + ["b"] * 4_000})
    session = Session(table, budget=Budget(epsilon=1, delta=1e-6))
    zones = {"by": "zone", "keys": {"zone": ["b", "a"]}}
    answer = session.count(**zones, relative=0.3, absolute=30)
    plain = session.count(**zones, where="zone > ''", absolute=30)

    assert ["zone", "count", "count_lower", "count_upper", "met", "paid"] == answer.to_arrow().column_names
    assert "count_estimate" in answer.to_arrow(estimate=True).column_names
    assert answer.to_arrow(estimate=True).column("count_estimate").to_pylist() == answer.estimate.tolist()
    assert (answer.value < answer.estimate).all()
    assert (answer.estimate < answer.upper).all()
    assert (plain.value == plain.estimate).all()


def test_order_by_reads_estimates_and_having_reads_values():
    """A row's place is decided by its estimate; whether it is shown, by the value that is shown."""
    aftermath = parse(
        "SELECT zone, COUNT(*) AS n FROM t GROUP BY zone HAVING n > 2 ORDER BY n DESC",
        table="t",
        schema=Schema.of({"zone": Type.STRING}),
    ).aftermath
    values, estimates = np.array([3.0, 4.0, 1.0]), np.array([6.0, 5.0, 9.0])
    keys = pa.table({"zone": ["a", "b", "c"]})

    assert [1, 0] == aftermath.arranged({"n": values}, keys).tolist()
    assert [0, 1] == aftermath.arranged({"n": values}, keys, {"n": estimates}).tolist()
