"""COUNT(DISTINCT value): different values above groups, of each unit at most max_rows; every road that answers it."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from farthing import Bounds, Budget, Session
from farthing.engines import open_table
from farthing.engines.bounded import BoundedQuery, bounded
from farthing.engines.duck import measures as duck_measures
from farthing.engines.memory.engine import MemoryEngine
from farthing.errors import UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Keys, Query, Schema, Type
from farthing.query.aggregates import Count, CountUnits, Formula, NamedAggregate, Ratio, Sum
from farthing.query.counts import CountValues
from farthing.query.expressions import Case, Column
from farthing.sql import parse

SCHEMA = Schema.of({"u": Type.STRING, "g": Type.INTEGER, "x": Type.FLOAT, "s": Type.STRING})
ROWS = [
    *({"u": "ann", "g": 1, "x": float(n), "s": "same"} for n in range(5)),
    *({"u": "bob", "g": 1, "x": x, "s": s} for x, s in ((0.0, "same"), (-0.0, None), (math.nan, "other"))),
    {"u": "bob", "g": 2, "x": None, "s": ""},
    {"u": None, "g": 2, "x": 7.0, "s": "nobody's"},
]
VALUES = tuple(NamedAggregate(name, CountValues(Column(name))) for name in "xs")
LOTS = Budget(mu=20)


def asked(*outputs, unit="u", most=2, rows=9):
    """Return a question about two groups."""
    keys = Keys.of(("g",), {"g": [2, 1]}, SCHEMA)
    return Query("data", ("g",), keys, None, outputs or VALUES, PrivacyUnit(unit), Bounds(most, rows))


def both(query, rows=ROWS, key=7):
    """Return what the slow engine and the embedded one say."""
    kinds = [("u", pa.string()), ("g", pa.int64()), ("x", pa.float64()), ("s", pa.string())]
    engines = MemoryEngine(rows, SCHEMA), open_table(pa.Table.from_pylist(rows, pa.schema(kinds)), name="data")
    return [engine.measure(query, key).tolist() for engine in engines]


def test_values_of_several_units_count_once():
    """NULL and NaN are no values, there is one zero, rows without a unit count nowhere, and nothing is cut by 9."""
    assert [[[0, 5], [1, 2]]] * 2 == both(asked())
    assert [[[1, 5], [2, 2]]] * 2 == both(asked(unit=None))  # here each row is a unit


def test_beside_other_aggregates_every_measure_has_its_place():
    """Sums, counts and values in any order are what each of them is alone."""
    outputs = (VALUES[1], NamedAggregate("n", Count()), VALUES[0], NamedAggregate("t", Sum(Column("x"), 0.0, 1.0)))
    alone = [both(asked(one))[1][0] for one in outputs]

    assert alone == both(asked(*outputs))[1]
    assert [[1, 3], [0], [2]] == [places for places, _ in bounded(asked(*outputs)).passes]


def test_of_one_unit_max_rows_values_count_the_same_ones_each_time():
    """Of five values two count, by the hash key; a unit that keeps one group counts in one of them."""
    fives = [{"u": "ann", "g": g, "x": float(n), "s": "a"} for n in range(5) for g in (1, 2)]
    (_, (found, _)) = both(asked(rows=2), fives)

    assert [2, 2] == found
    assert 2 == sum(both(asked(rows=2, most=1), fives)[1][0])


def test_whose_values_are_cut_decides_the_fingerprint():
    """What a hash chooses is part of a question's identity: of values it always does, unless rows are units."""
    assert bounded(asked()).chooses
    assert not bounded(asked(unit=None)).chooses
    assert not bounded(asked(NamedAggregate("n", Count()))).chooses


def moved(query, rows=ROWS):
    """Return the most that taking a unit away changes one group."""
    whole = np.array(both(query, rows)[1])
    units = {row["u"] for row in rows} - {None}
    return max(np.abs(whole - both(query, [row for row in rows if row["u"] != gone])[1]).max() for gone in units)


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_a_unit_moves_a_group_within_the_sensitivity(rows):
    """Neighbours differ by max_rows at most."""
    assert moved(asked(rows=rows)) <= bounded(asked(rows=rows)).measures[0].sensitivity(rows) == rows


def test_a_cut_that_is_forgotten_is_seen(monkeypatch):
    """Planted: all values of a unit count; a unit moves a group by more than its sensitivity."""
    honest = duck_measures._told_apart
    monkeypatch.setattr(
        duck_measures,
        "_told_apart",
        lambda query, *rest: honest(BoundedQuery(**{**_fields(query), "max_rows": 10**6}), *rest),
    )
    assert moved(asked(rows=2)) > 2


def _fields(query):
    """Return the fields of a question."""
    return {name: getattr(query, name) for name in BoundedQuery.__slots__}


READ = [
    ("COUNT(DISTINCT s)", "count_distinct_s", CountValues(Column("s"))),
    ("APPROX_COUNT_DISTINCT(s)", "count_distinct_s", CountValues(Column("s"))),
    ("COUNT(DISTINCT u)", "count_distinct_u", CountUnits()),
]


@pytest.mark.parametrize(("text", "name", "aggregate"), READ, ids=lambda value: str(value)[:20])
def test_sql_reads_it(text, name, aggregate):
    """Of the unit it counts units, of anything else values; the name is the column's."""
    (output,) = parse(f"SELECT {text} FROM t", table="t", schema=SCHEMA, unit=PrivacyUnit("u")).outputs

    assert (name, aggregate) == (output.name, output.aggregate)


def test_sql_computes_with_it():
    """FILTER, bounds of its own, rows over it, arithmetic; several columns are refused by name, with the place."""

    def one(text, unit="u"):
        asked = parse(f"SELECT {text} AS n FROM t", table="t", schema=SCHEMA, unit=PrivacyUnit(unit))
        return asked.outputs[0].aggregate

    assert isinstance(one("COUNT(DISTINCT s) FILTER (WHERE x > 1)").value, Case)
    assert CountValues(Column("u")) == one("COUNT(DISTINCT u)", unit=None)
    assert Ratio(Count(), CountValues(Column("s"))) == one("COUNT(*) / COUNT(DISTINCT s)")
    assert isinstance(one("COUNT(DISTINCT s) - COUNT(DISTINCT u)"), Formula)
    limited = parse("SELECT APPROX_COUNT_DISTINCT(s, contribution_bounds_per_group => (0, 4)) FROM t", table="t",
                    schema=SCHEMA, unit=PrivacyUnit("u"))  # fmt: skip
    assert 4 == limited.options.max_rows
    with pytest.raises(UnsupportedQuery, match=r"of several values.*line 1, column 8"):
        one("COUNT(DISTINCT s, x)")


SOLD = pa.table(
    {
        "buyer": np.repeat(np.arange(2_000), 6),
        "zone": np.tile(["a", "b"], 6_000),
        "product": np.arange(12_000) * 7 % 900,
        "price": np.arange(12_000) % 50 * 1.0,
    }
)
BY_ZONE = "SELECT zone, COUNT(DISTINCT product) AS n FROM t GROUP BY zone"
ZONES = {"zone": ["a", "b"]}


def opened(budget=LOTS):
    """Return a session on what buyers bought."""
    return Session(SOLD, name="t", unit="buyer", bounds=Bounds(2, 3), budget=budget)


@pytest.mark.parametrize("budget", [LOTS, Budget(epsilon=80)], ids=["delta", "pure"])
def test_a_session_answers_refines_and_repeats_it(budget):
    """Within the target by groups; asked again it is free, sharper it costs the difference, Python asks the same."""
    with opened(budget) as session:
        first = session.sql(BY_ZONE, keys=ZONES, absolute=60, cap="all")
        again = session.count_distinct("zone", value="product", keys=ZONES, absolute=60)
        sharper = first.refine(absolute=30)

    assert first.met.all()
    assert sharper.met.all()
    assert np.abs(sharper.value - 450).max() < 60
    assert not again.paid
    assert again.value.tolist() == first.value.tolist()
    assert "at most 3" in first.about


def test_the_price_is_that_of_as_many_rows():
    """A unit adds up to three values to a group, as it adds three rows: both have one worst price."""
    with opened() as session:
        plans = [session.plan(f"SELECT zone, {what} AS n FROM t GROUP BY zone", keys=ZONES, absolute=60)
                 for what in ("COUNT(DISTINCT product)", "COUNT(*)")]  # fmt: skip
    assert plans[0].worst_price == plans[1].worst_price


def test_beside_a_mean_and_in_a_formula():
    """Several aggregates at once and arithmetic hold their truths."""
    text = (
        "SELECT COUNT(DISTINCT product) AS n, AVG(CLAMP(price, 0, 50)) AS m, "
        "SUM(CLAMP(price, 0, 50)) / COUNT(DISTINCT product) AS each FROM t WHERE zone = 'a'"
    )
    with opened() as session:
        answer = session.sql(text, absolute={"n": 60, "m": 3, "each": 60}, cap="all", confidence=0.999)
    table = answer.to_arrow()
    truth = {"n": 450.0, "m": 24.0, "each": 6_000 * 24 / 450}

    assert all(table[f"{name}_lower"][0].as_py() <= exact <= table[f"{name}_upper"][0].as_py()
               for name, exact in truth.items())  # fmt: skip


def test_what_it_is_not_for_is_refused_by_name():
    """Noise that grows with the count is for counts of rows and units: refused free, by what it takes."""
    with opened() as session:
        with pytest.raises(UnsupportedQuery, match="releases one count"):
            session.sql(BY_ZONE, keys=ZONES, relative=0.1, absolute=9, mechanism="asinh")
        assert not session.spent
