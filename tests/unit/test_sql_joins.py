"""Joins in SQL: which tables, under which names, and what keeps each unit's rows to itself."""

from __future__ import annotations

import pytest

from farthing.errors import UnsupportedQuery
from farthing.query import Schema, Type
from farthing.query.expressions import And, Column, Compare, Literal, Operator
from farthing.query.joins import Join
from farthing.sql import parse

RIDES = Schema.of({"rider": Type.STRING, "zone": Type.INTEGER, "fare": Type.FLOAT, "day": Type.DATE})
TABLES = {
    "zones": Schema.of({"id": Type.INTEGER, "borough": Type.STRING, "day": Type.DATE}),
    "Days": Schema.of({"day": Type.DATE, "weather": Type.STRING}),
    "visits": Schema.of({"rider": Type.STRING, "shop": Type.STRING, "spent": Type.FLOAT}),
}


def read(text, unit="rider"):
    """Parse a question over the rides and the tables beside them."""
    return parse(text, table="rides", schema=RIDES, tables=TABLES, public=frozenset({"zones", "Days"}), unit=unit)


def equal(left, right):
    """Return the equality of two columns."""
    return Compare(Column(left), Operator.EQ, Column(right))


def test_public_tables_join_on_any_condition():
    """JOIN and LEFT JOIN, with aliases; joined columns are named by table and column."""
    asked = read(
        "SELECT z.borough, COUNT(*) FROM rides r JOIN zones AS z ON r.zone = z.id AND z.id < 9 "
        "LEFT JOIN days ON days.day >= r.day WHERE weather = 'rain' GROUP BY z.borough"
    )

    few = Compare(Column("zones.id"), Operator.LT, Literal(9))
    assert (
        Join("zones", And((equal("zone", "zones.id"), few))),
        Join("Days", Compare(Column("Days.day"), Operator.GE, Column("day")), left=True),
    ) == asked.joins
    assert (("borough", Column("zones.borough")),) == asked.groupings
    assert Compare(Column("Days.weather"), Operator.EQ, Literal("rain")) == asked.where


def test_using_makes_columns_one():
    """USING is the equality of both columns, and the name alone is then the protected table's."""
    asked = read("SELECT day, COUNT(*) FROM rides JOIN Days USING (day) GROUP BY day")

    assert (Join("Days", equal("day", "Days.day")),) == asked.joins
    assert (("day",), ()) == (asked.by, asked.groupings)


def test_protected_tables_join_by_their_unit():
    """Two protected tables meet where the unit column is equal in both, and more may be asked."""
    for written in (
        "JOIN visits USING (rider)",
        "JOIN visits v ON v.rider = rides.rider",
        "INNER JOIN visits ON rides.rider = visits.rider AND visits.spent > fare",
        "LEFT OUTER JOIN visits ON (spent > 3 AND rides.rider = visits.rider)",
    ):
        (join,) = read(f"SELECT COUNT(*) FROM rides {written}").joins
        assert ("visits", False) == (join.table, join.public)


REFUSED = [
    ("rides JOIN visits ON rides.fare = visits.spent", "JOIN of 'visits' without the unit column", (1, 33)),
    (
        "rides JOIN visits ON rides.rider = visits.rider OR fare > 1",
        "JOIN of 'visits' without the unit column",
        (1, 33),
    ),
    ("rides JOIN visits ON NOT rides.rider = visits.rider", "JOIN of 'visits' without the unit column", (1, 33)),
    ("rides JOIN visits ON rides.rider = rides.rider", "JOIN of 'visits' without the unit column", (1, 33)),
    ("rides JOIN visits ON rides.rider <= visits.rider", "JOIN of 'visits' without the unit column", (1, 33)),
    ("rides JOIN shops ON TRUE", "JOIN of table 'shops'", (1, 33)),
    ("rides JOIN rides ON TRUE", "JOIN of table 'rides'", (1, 33)),
    ("rides JOIN zones ON zone = id JOIN zones z ON zone = z.id", "table 'zones' twice", (1, 57)),
    ("rides z JOIN zones z ON zone = id", "table 'zones' twice", (1, 35)),
    ("rides RIGHT JOIN zones ON zone = id", "RIGHT JOIN", (1, 39)),
    ("rides FULL OUTER JOIN zones ON zone = id", "FULL OUTER JOIN", (1, 44)),
    ("rides CROSS JOIN zones", "CROSS JOIN", (1, 39)),
    ("rides NATURAL JOIN zones", "NATURAL JOIN", (1, 41)),
    ("rides SEMI JOIN zones ON zone = id", "SEMI JOIN", (1, 38)),
    ("rides ASOF JOIN zones ON zone = id", "ASOF JOIN", (1, 38)),
    ("rides JOIN zones", "JOIN without ON", (1, 33)),
    ("rides, zones", "JOIN without ON", (1, 29)),
    ("rides JOIN LATERAL (SELECT 1) AS x ON TRUE", "a table function", None),
    ("rides JOIN (SELECT 1) AS x ON TRUE", "SELECT without FROM", None),
    ("rides JOIN range(9) AS x ON TRUE", "a table function", None),
    ("rides JOIN zones ON zone = borough", "type mismatch", None),
    ("rides JOIN zones USING (zone)", "unknown column", None),
    ("rides JOIN zones USING (borough)", "unknown column", None),
    ("zones JOIN rides ON zone = id", "table 'zones'", (1, 22)),
    ("rides JOIN zones ON rides.day = zones.day WHERE day = '2013-01-01'", "ambiguous column 'day'", (1, 70)),
    ("rides JOIN zones ON zone = id GROUP BY zones.id, rides.id", "unknown column", None),
]


@pytest.mark.parametrize(("text", "construct", "position"), REFUSED)
def test_other_joins_are_refused_by_name(text, construct, position):
    """Whatever is no JOIN or LEFT JOIN of a declared table says its name, its place and what to write."""
    with pytest.raises(UnsupportedQuery) as caught:
        read(f"SELECT COUNT(*) FROM {text}")

    assert construct == caught.value.construct
    assert position is None or position == caught.value.position
    assert caught.value.next_step


def test_a_row_as_unit_joins_public_tables_only():
    """Without a unit column there is nothing that two protected tables could share."""
    with pytest.raises(UnsupportedQuery, match="public tables only"):
        read("SELECT COUNT(*) FROM rides JOIN visits USING (rider)", unit=None)


def test_a_column_cannot_be_taken_for_a_joined_one():
    """A table with a column "zones.id" does not join a table zones with a column id."""
    odd = Schema.of({"zone": Type.INTEGER, "zones.id": Type.INTEGER})

    with pytest.raises(UnsupportedQuery, match="named like a joined one"):
        parse(
            "SELECT COUNT(*) FROM t JOIN zones ON zone = id",
            table="t", schema=odd, tables=TABLES, public=frozenset(TABLES),
        )  # fmt: skip
