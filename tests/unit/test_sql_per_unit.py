"""Subqueries that make one row of a unit's rows: what they stand for, what they answer, and what is refused."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace

import pyarrow as pa
import pytest

import farthing
from farthing.engines import open_table
from farthing.engines.duck.features import DuckFeatures
from farthing.engines.memory.per_unit import total
from farthing.errors import UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Query, Schema, Type
from farthing.query.aggregates import Count, Mean, NamedAggregate
from farthing.query.expressions import Column, Compare, Literal, Operator
from farthing.query.joins import Join
from farthing.query.part import QueryPart
from farthing.query.per_unit import Feature, FeatureKind, PerUnit
from farthing.session.reading.reader import QuestionReader
from farthing.sql import parse

RIDES = Schema.of({"rider": Type.STRING, "zone": Type.INTEGER, "fare": Type.FLOAT, "day": Type.DATE, "k0": Type.STRING})
TABLES = {
    "zones": Schema.of({"id": Type.INTEGER, "borough": Type.STRING}),
    "visits": Schema.of({"rider": Type.STRING, "shop": Type.STRING, "spent": Type.FLOAT}),
}
DAY = dt.date(2024, 1, 1)
ROWS = pa.table({
    "rider": ["a", "a", "a", "b", "b", "c", None],
    "zone": [1, 1, 2, 1, 3, 2, 9],
    "fare": [1.0, 2.0, 4.0, 10.0, math.nan, None, 99.0],
    "day": [DAY, DAY + dt.timedelta(3), DAY + dt.timedelta(9), DAY, DAY, DAY, DAY],
    "k0": ["x", "y", "z", "x", "w", None, "v"],
})  # fmt: skip
VISITS = pa.table({"rider": ["a", "a", "c", "d"], "shop": ["s", "t", "s", "s"], "spent": [5.0, 6.0, 7.0, 8.0]})
ENGINE = open_table(
    ROWS, name="rides", public={"zones": pa.table({"id": [1, 2], "borough": ["N", "S"]})}, protected={"visits": VISITS}
)


def read(text, unit="rider"):
    """Parse a question over the rides and the tables beside them."""
    return parse(text, table="rides", schema=RIDES, tables=TABLES, public=frozenset({"zones"}), unit=unit)


def exact(text, unit="rider", bounds=Bounds(3, 5)):  # noqa: B008  # frozen
    """Return the exact measures of a text's question, those of its first group."""
    reader = QuestionReader(ENGINE, PrivacyUnit(unit), bounds)
    return ENGINE.measure(reader.sql(text, None, None).query, 5)[:, 0].tolist()


SPEND = "SELECT rider, SUM(fare) AS spend, COUNT(*) AS rides FROM rides GROUP BY rider"
COUNTED = [
    ("COUNT(*) FROM (SELECT rider FROM rides GROUP BY rider HAVING COUNT(*) >= 3)", 1),
    ("COUNT(*) FROM (SELECT rider, COUNT(*) AS n FROM rides GROUP BY 1 HAVING n >= 2) WHERE n < 3", 1),
    ("COUNT(spend) FROM (SELECT rider, SUM(fare) AS spend FROM rides GROUP BY rider)", 2),
    ("COUNT(*) FROM (SELECT DISTINCT rider, zone FROM rides)", 5),
    ("COUNT(*) FROM (SELECT rider AS who, zone, COUNT(*) AS n FROM rides GROUP BY ALL) WHERE n > 1", 1),
    (("COUNT(*) FROM (SELECT rider, MAX(n) AS m FROM (SELECT rider, zone, COUNT(*) AS n FROM rides GROUP BY ALL)"
     " GROUP BY rider) WHERE m = 2"), 1),
    ("COUNT(*) FROM (SELECT rider, MAX(day) - MIN(day) AS d FROM rides GROUP BY rider) WHERE d = 9", 1),
    ("COUNT(*) FROM (SELECT rider, ARG_MAX(k0, day) AS last FROM rides GROUP BY rider) WHERE last = 'z'", 1),
    ("COUNT(*) FROM (SELECT rider, ARG_MAX(k0, day) AS last FROM rides GROUP BY rider) WHERE last = 'w'", 1),
    ("COUNT(*) FROM (SELECT rider, ANY_VALUE(k0) AS one FROM rides GROUP BY rider) WHERE one = 'w'", 1),
    ("COUNT(*) FROM (SELECT rider, COUNT(DISTINCT zone) AS z FROM rides GROUP BY rider) WHERE z = 2", 2),
    ("COUNT(*) FROM (SELECT rider, COUNT(*) FILTER (WHERE fare > 1) AS n FROM rides GROUP BY rider) WHERE n = 2", 2),
    (("COUNT(*) FROM (SELECT rider, COUNT(*) AS n FROM rides GROUP BY rider) a JOIN (SELECT v.rider, SUM(v.spent) AS s"
     " FROM visits AS v WHERE v.shop = 's' GROUP BY v.rider) b ON a.rider = b.rider WHERE s > 6"), 1),
    ("COUNT(*) FROM (SELECT rider, COUNT(*) AS n FROM visits GROUP BY rider) WHERE n >= 1", 3),
    ("COUNT(*) FROM (SELECT RIDER, COUNT(*) AS N FROM Rides GROUP BY Rider HAVING n > 2)", 1),
    (("COUNT(*) FROM (SELECT rides.rider, MIN(day) AS next FROM rides JOIN (SELECT rider, MIN(day) AS first FROM rides"
     " GROUP BY rider) f ON rides.rider = f.rider WHERE day > first GROUP BY ALL) WHERE next = DATE '2024-01-04'"),
     1),
    ("COUNT(*) FROM (SELECT rider, AVG(fare) AS mean FROM rides GROUP BY rider) WHERE mean = 10", 1),
    (("COUNT(*) FROM (SELECT rider, SUM(CASE WHEN zone = 1 THEN 1 END) / COUNT(*) AS s FROM rides GROUP BY rider)"
     " WHERE s = 0.5"), 1),
    (("COUNT(*) FROM rides r JOIN (SELECT rider, COUNT(*) AS n FROM rides GROUP BY rider) f ON r.rider = f.rider"
     " WHERE f.n = 3"), 3),
    (("COUNT(*) FROM (SELECT rider u, COUNT(*) AS n FROM rides GROUP BY rider) a JOIN (SELECT rider, SUM(spent) AS s"
     " FROM rides JOIN visits USING (rider) GROUP BY rider) b ON a.u = b.rider WHERE b.s > a.n"), 2),
    (("COUNT(*) FROM (SELECT rider, COUNT(*) AS n FROM rides GROUP BY rider) a LEFT JOIN (SELECT rider, MAX(zone) AS z"
     " FROM rides WHERE fare > 5 GROUP BY rider) b USING (rider) WHERE b.z IS NULL"), 2),
    (("COUNT(*) FROM (SELECT rides.rider, borough, COUNT(*) AS n FROM rides JOIN zones ON zone = id"
     " GROUP BY rides.rider, borough) WHERE borough = 'N' AND n = 2"), 1),
]  # fmt: skip


@pytest.mark.parametrize(("text", "many"), COUNTED)
def test_rows_of_a_unit_are_what_sql_says(text, many):
    """Groups of the unit, one feature or several, nested and joined, counted: NULL, NaN and no unit are no values."""
    assert [many] == exact(f"SELECT {text}")


def test_with_is_the_same_as_a_subquery_and_is_read_once():
    """WITH names rows of units as it names rows; named twice they are one, and new names of columns hold."""
    asked = read(f"WITH f(who, total) AS ({SPEND}), g AS (SELECT * FROM f) SELECT COUNT(*) FROM g WHERE total > 3")
    nested = read(f"SELECT COUNT(*) FROM ({SPEND}) WHERE spend > 3")

    assert (nested.derived, nested.source, nested.where) == (asked.derived, asked.source, asked.where)


def test_one_row_a_unit_needs_no_bounds_and_pays_for_one_row():
    """Where a unit has one row, no bound is asked for, none is paid for, and nothing has to choose."""
    reader = QuestionReader(ENGINE, PrivacyUnit("rider"), Bounds(7, 100))
    query = reader.sql(f"SELECT AVG(CLAMP(spend, 0, 20)) FROM ({SPEND})", None, None).query
    bare = (
        QuestionReader(ENGINE, PrivacyUnit("rider"), Bounds()).sql(f"SELECT COUNT(*) FROM ({SPEND})", None, None).query
    )
    wide = reader.sql("SELECT COUNT(*) FROM (SELECT rider, zone FROM rides GROUP BY ALL)", None, None).query

    assert (1, 1, False) == (query.max_rows, query.max_groups, query.cuts_groups)
    assert (True, 1, 1) == (bare.one_row, bare.max_rows, bare.sensitivity)
    assert (False, 100) == (wide.one_row, wide.max_rows)
    assert query.canonical() != reader.sql("SELECT AVG(CLAMP(fare, 0, 20)) FROM rides", None, None).query.canonical()


@pytest.mark.parametrize("bounds", [Bounds(), Bounds.auto()])
def test_a_session_answers_and_charges(bounds):
    """One SELECT, one answer: average spend, riders with many rides, days between the first and the last."""
    many = pa.table({"rider": [n % 500 for n in range(3000)], "fare": [float(n % 7) for n in range(3000)]})
    session = farthing.Session(many, name="rides", budget=farthing.Budget(epsilon=9, delta=1e-6), unit="rider")
    text = "SELECT AVG(CLAMP(s, 0, 40)) AS mean FROM (SELECT rider, SUM(fare) AS s FROM rides GROUP BY rider)"
    answer = session.sql(text, absolute=1, bounds=bounds)

    assert abs(answer.value - sum(many["fare"].to_pylist()) / 500) < 1.5
    assert "1 row" in str(answer.about)


REFUSED = [
    ("SELECT AVG(CLAMP(n, 0, 1)) FROM (SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone)", "GROUP BY in a subquery"),
    ("SELECT AVG(CLAMP(n, 0, 1)) FROM (SELECT MAX(zone) AS n FROM rides)", "an aggregate in a subquery"),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT zone FROM rides)", "DISTINCT in a subquery"),
    ("SELECT COUNT(*) FROM (SELECT UPPER(rider) AS r, COUNT(*) AS n FROM rides GROUP BY UPPER(rider))",
     "GROUP BY in a subquery"),
    ("SELECT COUNT(*) FROM (SELECT rider, zone, COUNT(*) AS n FROM rides GROUP BY rider)",
     "column 'zone' outside of GROUP BY"),
    (("SELECT COUNT(*) FROM (SELECT zone, MAX(n) AS n FROM (SELECT rider, zone, COUNT(*) AS n FROM rides GROUP BY ALL)"
     " GROUP BY zone)"), "GROUP BY in a subquery"),
    ("SELECT COUNT(*) FROM (SELECT rider, COUNT(*) AS n FROM rides GROUP BY rider LIMIT 3)", "LIMIT in a subquery"),
    ("SELECT COUNT(*) FROM (SELECT rider, MAX(SUM(fare)) AS n FROM rides GROUP BY rider)", "MAX with 1 arguments"),
    ("SELECT COUNT(*) FROM (SELECT rider, SUM(day) AS n FROM rides GROUP BY rider)", "SUM of a date"),
    ("SELECT COUNT(*) FROM (SELECT rider, COUNT(*) FROM rides GROUP BY rider)", "a value without a name in a subquery"),
    ("SELECT COUNT(*) FROM (SELECT rider, STRING_AGG(k0) AS n FROM rides GROUP BY rider)", "STRING_AGG"),
    ("SELECT COUNT(*) FROM (SELECT rider, COUNT(*) AS n FROM rides GROUP BY CUBE (rider))",
     "GROUP BY CUBE in a subquery"),
    ("SELECT COUNT(*) FROM (SELECT id, COUNT(*) AS n FROM zones GROUP BY id)", "GROUP BY in a subquery"),
    (f"SELECT COUNT(*) FROM rides r JOIN ({SPEND}) f ON r.zone = f.rides",
     "JOIN of 'subquery 1' without the unit column"),
    (f"WITH f AS ({SPEND}) SELECT COUNT(*) FROM rides r JOIN f ON r.rider = f.rider JOIN f g ON g.rider = r.rider",
     "table 'g' twice"),
    (f"WITH f AS ({SPEND}) SELECT COUNT(*) FROM f a JOIN f b ON a.rider = b.rider", "table 'b' twice"),
    ("SELECT COUNT(*) FROM (SELECT v.rider, COUNT(*) AS n FROM visits v JOIN visits w ON v.rider = w.rider GROUP BY 1)",
     "table 'visits' twice"),
    ("SELECT COUNT(*) FROM (SELECT v.shop, COUNT(*) AS n FROM visits v GROUP BY v.shop)", "GROUP BY in a subquery"),
    ("SELECT COUNT(*) FROM visits", "table 'visits'"),
    ("WITH a AS (SELECT rider, COUNT(*) AS n FROM a GROUP BY rider) SELECT COUNT(*) FROM a", "WITH that reads 'a'"),
    ("SELECT COUNT(*) FROM (SELECT rider, a + 1 AS b, b + 1 AS a, COUNT(*) AS n FROM rides GROUP BY rider)",
     "unknown column"),
    ((f"SELECT COUNT(*) FROM (SELECT rider, COUNT(*) AS a0, {', '.join(f'a{n} + a{n} AS a{n + 1}' for n in range(30))}"
     " FROM rides GROUP BY rider HAVING a30 > 1)"), "unknown column"),
    ("SELECT COUNT(*) FROM " + "(SELECT rider, COUNT(*) AS n FROM " * 13 + "rides" + " GROUP BY rider)" * 13,
     "more than 12 subqueries with GROUP BY"),
    ("SELECT COUNT(*) FROM (SELECT rider, " + ", ".join(f"SUM(fare + {n}) AS s{n}" for n in range(51))
     + " FROM rides GROUP BY rider)", "more than 50 aggregates in a subquery"),
    ("WITH rides AS (SELECT rider, COUNT(*) AS n FROM rides GROUP BY rider) SELECT COUNT(*) FROM rides",
     "WITH of the name 'rides'"),
    (("SELECT COUNT(*) FROM (SELECT rider, (SELECT COUNT(*) FROM rides s WHERE s.rider = r.rider) AS n FROM rides r"
     " GROUP BY rider)"), "a subquery"),
    ("SELECT COUNT(*) FROM (SELECT rider, COUNT(*) AS n FROM (SELECT zone AS rider FROM rides) GROUP BY rider)",
     "GROUP BY in a subquery"),
    ("SELECT COUNT(*) FROM (SELECT rider, ROW_NUMBER() OVER () AS n, COUNT(*) AS m FROM rides GROUP BY rider)",
     "a window (OVER) beside GROUP BY in a subquery"),
    (f"SELECT k0, COUNT(*) FROM ({SPEND}) GROUP BY CUBE (spend)", "unknown column"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "construct"), REFUSED)
def test_what_mixes_units_is_refused_at_its_place(text, construct):
    """What would make one row of several units' says its name, its place, and what to write."""
    with pytest.raises(UnsupportedQuery) as caught:
        read(text)

    assert construct in caught.value.construct
    assert caught.value.position is not None
    assert caught.value.next_step


def test_rows_as_units_and_parts_are_refused():
    """Without a unit column, and in a part of a partition, nothing is made of several rows."""
    with pytest.raises(UnsupportedQuery, match="GROUP BY in a subquery"):
        read(f"SELECT COUNT(*) FROM ({SPEND})", unit=None)
    each = PerUnit("f", None, (), None, (), (("f0", Feature(FeatureKind.COUNT)),))
    part = QueryPart("zone", (Literal(1), Literal(2)), 0)
    outputs = (NamedAggregate("n", Count()),)
    for unit, place in ((None, None), ("rider", part)):
        with pytest.raises(UnsupportedQuery, match="with GROUP BY, windows or UNION ALL"):
            Query("rides", (), None, None, outputs, PrivacyUnit(unit), Bounds(), place, derived=(each,), source="f")


def test_rows_are_not_joined_with_themselves():
    """An engine refuses rows of a unit joined with the same ones, whose columns have the same names."""
    each = PerUnit("f", None, (), None, (), (("f0", Feature(FeatureKind.COUNT)),))
    join = Join("f", Compare(Column("rider"), Operator.EQ, Column("f.rider")), public=False)
    outputs = (NamedAggregate("n", Count()),)
    query = Query("rides", (), None, None, outputs, PrivacyUnit("rider"), Bounds(max_rows=1), derived=(each,))
    assert "" == ENGINE.fingerprint(replace(query, joins=(join,)))
    with pytest.raises(UnsupportedQuery, match="joined twice"):
        ENGINE.fingerprint(replace(query, joins=(join,), source="f"))


@pytest.mark.parametrize("unit", ["k0", "F0"])
def test_a_unit_keeps_its_name_beside_what_is_made(unit):
    """A unit column that is called as columns of ours are is still the unit: nothing else has its name."""
    table = pa.table({unit: ["a", "a", "b"], "x": [1, 2, 3]})
    engine = open_table(table, name="rides")
    text = f'SELECT COUNT(*) FROM (SELECT "{unit}", x, COUNT(*) AS n FROM rides GROUP BY ALL) WHERE n = 1 AND x > 1'
    reader = QuestionReader(engine, PrivacyUnit(unit), Bounds(max_rows=9))

    assert [[2]] == engine.measure(reader.sql(text, None, None).query, 5).tolist()


def test_sums_do_not_depend_on_the_order_of_rows(monkeypatch):
    """A unit's sum is one number whatever else is in the table; planted: a sum of doubles is not."""
    values = [0.1, 1e3, -1e3, 1e-3] * 500
    each = PerUnit("f", None, (), None, (), (("f0", Feature(FeatureKind.SUM, Column("x"))),))
    ends = total(values, whole=False) - 1e-6, total(values, whole=False) + 1e-6
    query = Query("data", (), None, None, (NamedAggregate("s", Mean(Column("f0"), *ends)),), PrivacyUnit("u"), Bounds(),
                  derived=(each,), source="f")  # fmt: skip

    def sums():
        found = set()
        for rows in (values, values[::-1], sorted(values)):
            engine = open_table(pa.table({"u": ["a"] * len(rows), "x": rows}))
            found.add(tuple(engine.measure(query, 5)[1].tolist()))
        return found

    assert 1 == len(sums())
    monkeypatch.setattr(DuckFeatures, "_added", lambda self, x, _: f"sum(t.{self._rows.show(x, 'p')})")
    assert 1 < len(sums())


def test_whole_sums_beyond_64_bits_are_null_and_reals_are_clamped():
    """A sum that does not fit is no value; infinite and huge reals are added as 2^62; nothing fails."""
    table = pa.table({"u": ["a", "a", "b"], "i": [2**63 - 1, 1, 7], "x": [math.inf, 1e300, -math.inf]})
    engine = open_table(table, name="rides")
    made = "(SELECT u, SUM(i) AS s, SUM(x) AS t FROM rides GROUP BY u)"
    reader = QuestionReader(engine, PrivacyUnit("u"), Bounds())

    def count(where):
        return engine.measure(reader.sql(f"SELECT COUNT(*) FROM {made} WHERE {where}", None, None).query, 5).tolist()

    assert [[1]] == count("s = 7")
    assert [[1]] == count("s IS NULL")
    assert [[1]] == count(f"t = {2.0**63!r}")
    assert [[1]] == count(f"t = {-(2.0**62)!r}")
