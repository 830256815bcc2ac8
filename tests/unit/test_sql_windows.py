"""Windows by the unit and UNION ALL in a subquery: what they answer, in any order of rows, and what is refused."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import farthing
from farthing.engines import open_table
from farthing.engines.duck.per_row import DuckWindows
from farthing.errors import UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Schema, Type
from farthing.query.per_row import Window
from farthing.session.reading.reader import QuestionReader
from farthing.sql import parse

DAY = dt.date(2024, 1, 1)
SCHEMA = Schema.of({"rider": Type.STRING, "zone": Type.INTEGER, "fare": Type.FLOAT, "day": Type.DATE})
TABLES = {
    "zones": Schema.of({"id": Type.INTEGER, "borough": Type.STRING}),
    "visits": Schema.of({"rider": Type.STRING, "shop": Type.STRING, "spent": Type.FLOAT}),
}
ROWS = [
    *(("a", 1, 1.0, DAY), ("a", 1, 2.0, DAY + dt.timedelta(3)), ("a", 2, 4.0, DAY + dt.timedelta(9))),
    *(("b", 1, 10.0, DAY), ("b", 3, float("nan"), DAY), ("c", 2, None, DAY), (None, 9, 99.0, DAY)),
]
VISITS = [("a", "s", 5.0), ("a", "t", 6.0), ("c", "s", 7.0), ("d", "s", 8.0)]


def table(rows, names):
    """Return rows as a table."""
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def opened(rows):
    """Open rows beside a public table and one of the same unit."""
    zones, visits = pa.table({"id": [1, 2], "borough": ["N", "S"]}), table(VISITS, TABLES["visits"].names)
    return open_table(table(rows, SCHEMA.names), name="rides", public={"zones": zones}, protected={"visits": visits})


ENGINE = opened(ROWS)


def asked(text, unit="rider"):
    """Parse a question over the rides and the tables beside them."""
    return parse(text, table="rides", schema=SCHEMA, tables=TABLES, public=frozenset({"zones"}), unit=unit)


def exact(text, engine=ENGINE):
    """Return the exact first measure of a text's question."""
    reader = QuestionReader(engine, PrivacyUnit("rider"), Bounds(3, 5))
    return int(engine.measure(reader.sql(f"SELECT COUNT(*) FROM {text}", None, None).query, 5)[0, 0])


BY = "PARTITION BY rider ORDER BY day"
OVER = f"OVER ({BY})"
BOTH = "SELECT rider, fare FROM rides UNION ALL SELECT rider, spent FROM visits"
ZONED = "SELECT rider, zone, COUNT(*) AS n FROM rides GROUP BY ALL"
COUNTED = [
    (f"(SELECT *, ROW_NUMBER() {OVER} AS n FROM rides) WHERE n = 1 AND zone < 3", 3),
    (f"(SELECT zone FROM rides QUALIFY ROW_NUMBER() {OVER} = 1) WHERE zone = 1", 2),
    (f"(SELECT zone AS z, ROW_NUMBER() {OVER} AS n FROM rides QUALIFY n = 2) WHERE z = 3", 1),
    (f"(SELECT day - LAG(day) {OVER} AS gap FROM rides) WHERE gap = 6", 1),
    (f"(SELECT LEAD(day, 2) {OVER} - day AS gap FROM rides) WHERE gap = 9", 1),
    (f"(SELECT LAG(zone, 0) {OVER} AS z, zone FROM rides) WHERE z = zone", 6),
    (f"(SELECT SUM(zone) {OVER} AS s FROM rides) WHERE s = 4", 3),
    (f"(SELECT fare, SUM(fare) {OVER} AS s, AVG(fare) {OVER} AS m FROM rides) WHERE s = 3 AND m = 1.5", 1),
    (f"(SELECT RANK() {OVER} AS r, DENSE_RANK() {OVER} AS d FROM rides) WHERE r = 1 AND d = 1", 4),
    ("(SELECT COUNT(*) OVER (PARTITION BY rider) AS n FROM rides) WHERE n = 3", 3),
    ("(SELECT COUNT(fare) OVER (PARTITION BY rider, zone) AS n FROM rides) WHERE n = 0", 2),
    ("(SELECT COUNT(*) FILTER (WHERE fare > 1) OVER w AS n FROM rides WINDOW w AS (PARTITION BY rider)) WHERE n=2", 5),
    (f"(SELECT MAX(zone) OVER ({BY} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS z FROM rides) WHERE z = 2", 2),
    (f"(SELECT SUM(fare) OVER ({BY} ROWS 1 PRECEDING) AS s FROM rides) WHERE s = 6", 1),
    ("(SELECT FIRST_VALUE(fare) OVER (PARTITION BY rider ORDER BY fare DESC) AS f FROM rides) WHERE f = 4", 3),
    (f"(SELECT LAST_VALUE(zone) OVER ({BY} ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS z FROM rides) WHERE z=3", 2),
    ("(SELECT SUM(spent) OVER (PARTITION BY v.rider) AS s FROM visits v JOIN zones ON id = 1) WHERE s > 10", 2),
    (f"rides JOIN (SELECT rider, zone AS z FROM rides QUALIFY ROW_NUMBER() {OVER} = 1) f USING (rider) WHERE z = 1", 5),
    (f"(SELECT rider, MAX(g) AS m FROM (SELECT rider, day - LAG(day) {OVER} AS g FROM rides) GROUP BY 1) WHERE m=6", 1),
    (f"(SELECT AVG(n) OVER (PARTITION BY rider ORDER BY zone) AS m FROM ({ZONED})) WHERE m = 1.5", 1),
    ("(SELECT rider, zone FROM rides UNION ALL SELECT rider, 7 FROM visits) WHERE zone IN (1, 7)", 6 + 1),
    ("(SELECT fare f FROM rides UNION ALL (SELECT spent FROM visits) UNION ALL SELECT zone FROM rides) WHERE f>1", 11),
    (f"(SELECT rider, SUM(fare) AS t FROM ({BOTH}) GROUP BY rider) WHERE t = 18", 1),
    ("(SELECT * FROM rides UNION ALL SELECT * FROM rides WHERE zone = 1) AS u(who, z) WHERE z = 1", 6),
]  # fmt: skip


@pytest.mark.parametrize(("text", "many"), COUNTED)
def test_windows_and_unions_are_what_sql_says(text, many):
    """Places, neighbours, running sums, frames, named windows, QUALIFY and UNION ALL, joined, nested and grouped."""
    assert many == exact(text)


ORDERED = (
    "(SELECT zone, ROW_NUMBER() OVER (PARTITION BY rider ORDER BY day) AS n, SUM(fare) OVER (PARTITION BY rider ORDER "
    "BY day ROWS UNBOUNDED PRECEDING) AS s, ROW_NUMBER() OVER (PARTITION BY rider ORDER BY zone DESC) AS m FROM rides) "
    "WHERE n = m AND (s IS NULL OR s < 6)"
)
TIED = [("a", place % 2, float(place % 3), DAY) for place in range(12)]


def test_ties_do_not_go_by_the_order_of_rows(monkeypatch):
    """Rows with equal keys have one order, whatever the table's; without it, planted, answers depend on the table."""
    orders = [TIED, TIED[::-1], TIED[5:] + TIED[:5], TIED[::2] + TIED[1::2]]

    assert 1 == len({exact(ORDERED, opened(rows)) for rows in orders})
    monkeypatch.setattr(Window, "ties", False)
    assert len({exact(ORDERED, opened(rows)) for rows in orders}) > 1


def test_a_window_that_forgets_the_unit_is_seen(monkeypatch):
    """Planted: a window over all units; the rows of one tell of another, which the honest one never does."""
    text = f"(SELECT LAG(zone) {OVER} AS z FROM rides) WHERE z IS NOT NULL"
    fewer = opened([row for row in ROWS if row[0] != "b"])

    assert (3, 2) == (exact(text), exact(text, fewer))
    monkeypatch.setattr(DuckWindows, "_parted", lambda self, one: "")  # noqa: ARG005
    assert (5, 3) == (exact(text), exact(text, fewer))


def test_the_first_row_of_a_unit_needs_no_bounds():
    """A unit's one first row needs no bound and pays for one; a first row by zone is one of several."""
    first = (
        "SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY rider{} ORDER BY day) AS n FROM rides) WHERE"
    )
    reader = QuestionReader(ENGINE, PrivacyUnit("rider"), Bounds(max_rows=7))
    texts = (f"{first.format('')} n = 1", f"{first.format('')} 1 = n AND zone > 0")
    several = (f"{first.format(', zone')} n = 1", f"{first.format('')} n <= 1", f"{first.format('')} n = 1 OR zone = 1")

    assert [1, 1] == [reader.sql(text, None, None).query.max_rows for text in texts]
    assert [7, 7, 7] == [reader.sql(text, None, None).query.max_rows for text in several]


def test_a_session_answers_and_charges():
    """Days between the first and the second visit, in one SELECT; the same text again is free."""
    rows = {"rider": [n % 500 for n in range(2000)], "day": [DAY + dt.timedelta(n // 500 * 3) for n in range(2000)]}
    session = farthing.Session(
        pa.table(rows), name="rides", budget=farthing.Budget(epsilon=9, delta=1e-6), unit="rider"
    )
    text = f"SELECT AVG(CLAMP(gap, 0, 30)) AS gap FROM (SELECT LEAD(day) {OVER} - day AS gap FROM rides QUALIFY "
    answer = session.sql(f"{text} ROW_NUMBER() {OVER} = 1)", absolute=1)

    assert abs(answer.value - 3) < 1.5
    assert 0 == session.sql(f"{text} ROW_NUMBER() {OVER} = 1)", absolute=1).paid.mu


REFUSED = [
    ("(SELECT ROW_NUMBER() OVER (PARTITION BY zone ORDER BY day) AS n FROM rides)", "a window (OVER) of several units"),
    ("(SELECT SUM(fare) OVER (ORDER BY day) AS n FROM rides)", "a window (OVER) of several units"),
    ("(SELECT SUM(fare) OVER () AS n FROM rides)", "a window (OVER) of several units"),
    ("(SELECT SUM(fare) OVER (PARTITION BY UPPER(rider)) AS n FROM rides)", "a window (OVER) of several units"),
    ("(SELECT SUM(id) OVER (PARTITION BY id) AS n FROM zones)", "a window (OVER) of several units"),
    ("(SELECT ROW_NUMBER() OVER (PARTITION BY rider) AS n FROM rides)", "ROW_NUMBER without ORDER BY"),
    ("(SELECT RANK() OVER (PARTITION BY rider ORDER BY 1) AS n FROM rides)",
     "ORDER BY of a constant or of another type"),
    ("(SELECT NTILE(4) OVER (PARTITION BY rider ORDER BY day) AS n FROM rides)", "the window NTILE"),
    (f"(SELECT LAG(zone, 1, 0) {OVER} AS n FROM rides)", "LAG with 3 arguments"),
    (f"(SELECT LAG(zone, day) {OVER} AS n FROM rides)", "a number of rows"),
    (f"(SELECT LAG(zone IGNORE NULLS) {OVER} AS n FROM rides)", "LAG with IGNORE NULLS, DISTINCT or ORDER BY"),
    (f"(SELECT FIRST_VALUE(zone) IGNORE NULLS {OVER} AS n FROM rides)", "the window IGNORENULLS"),
    (f"(SELECT LAST_VALUE(zone) {OVER} AS n FROM rides)", "LAST_VALUE without a frame"),
    (f"(SELECT COUNT(DISTINCT zone) {OVER} AS n FROM rides)", "COUNT DISTINCT as a window"),
    (f"(SELECT ARG_MAX(zone, day) {OVER} AS n FROM rides)", "ARG_MAX as a window"),
    (f"(SELECT SUM(fare) OVER ({BY} RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM rides)",
     "a frame by RANGE or GROUPS"),
    ("(SELECT SUM(fare) OVER (PARTITION BY rider ROWS 2 PRECEDING) AS n FROM rides)", "a frame without ORDER BY"),
    (f"(SELECT SUM(fare) OVER ({BY} ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING) AS n FROM rides)",
     "a frame that ends before it starts"),
    ("(SELECT SUM(fare) OVER v AS n FROM rides)", "the window 'v'"),
    (f"(SELECT ROW_NUMBER() {OVER} FROM rides)", "a value without a name in a subquery"),
    (f"(SELECT zone, ROW_NUMBER() {OVER} AS n FROM rides LIMIT 3)", "LIMIT in a subquery"),
    (f"(SELECT rider, COUNT(*) AS n, RANK() {OVER} AS r FROM rides GROUP BY rider)",
     "a window (OVER) beside GROUP BY in a subquery"),
    ("(SELECT zone FROM rides QUALIFY zone = 1)", "QUALIFY without a window"),
    ("(SELECT zone FROM rides UNION SELECT zone FROM rides)", "UNION in a subquery"),
    ("(SELECT zone FROM rides UNION ALL BY NAME SELECT zone FROM rides)", "UNION ALL with BY_NAME"),
    ("(SELECT zone FROM rides UNION ALL SELECT zone FROM rides LIMIT 3)", "UNION ALL with LIMIT"),
    ("(SELECT zone FROM rides UNION ALL SELECT id FROM zones)", "UNION ALL of table 'zones'"),
    ("(SELECT zone FROM rides UNION ALL SELECT zone, fare FROM rides)", "UNION ALL of 1 and 2 columns"),
    ("(SELECT zone FROM rides UNION ALL SELECT shop FROM visits)", "UNION ALL of integer and string in 'zone'"),
    ("(SELECT zone FROM rides UNION ALL SELECT COUNT(*) FROM rides)", "an aggregate in a subquery"),
    ("(SELECT zone FROM rides INTERSECT SELECT zone FROM rides)", "INTERSECT in a subquery"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "construct"), REFUSED)
def test_what_mixes_units_is_refused_by_name(text, construct):
    """Windows of several units or without the order they need, and unions of rows without one, by name and place."""
    with pytest.raises(UnsupportedQuery) as caught:
        asked(f"SELECT COUNT(*) FROM {text}")
    assert construct == caught.value.construct
    assert "line 1, column" in str(caught.value)


@pytest.mark.parametrize(
    "text", [f"(SELECT RANK() {OVER} AS n FROM rides)", "(SELECT 1 AS x FROM rides UNION ALL SELECT 2 FROM rides)"]
)
def test_rows_as_units_have_no_neighbours(text):
    """Where each row is a unit, no window reads another row, and no row is there twice."""
    with pytest.raises(UnsupportedQuery, match="where each row is a unit"):
        asked(f"SELECT COUNT(*) FROM {text}", unit=None)


def test_a_union_of_units_of_two_types_is_refused():
    """Numbers and texts as the unit in two tables: no cast makes them one."""
    engine = open_table(
        pa.table({"rider": [1], "zone": [1]}),
        name="rides",
        protected={"other": pa.table({"rider": ["1"], "zone": [1]})},
    )
    reader = QuestionReader(engine, PrivacyUnit("rider"), Bounds(max_rows=1))
    text = "SELECT COUNT(*) FROM (SELECT zone FROM rides UNION ALL SELECT zone FROM other)"
    with pytest.raises(UnsupportedQuery, match="do not carry the unit alike"):
        engine.fingerprint(reader.sql(text, None, None).query)
