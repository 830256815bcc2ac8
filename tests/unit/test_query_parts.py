"""Units, schemas, bounds, expressions and the query that joins them."""

# ruff: noqa: DTZ001  times in questions have no zone

from __future__ import annotations

import dataclasses
import datetime as dt
import math

import pytest

from farthing.errors import InvalidBounds, InvalidKeys, UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type, counting
from farthing.query.expressions import (
    And,
    Between,
    Column,
    Compare,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    check,
    columns_of,
)

SCHEMA = Schema.of(
    {"dest": Type.STRING, "delay": Type.FLOAT, "month": Type.INTEGER, "tail": Type.STRING, "o": Type.OTHER}
)


def query(by=("dest",), keys=("ATL", "ORD", "JFK"), *, unit=None, bounds=None, where=None, name="n"):
    """Return a question."""
    found = Keys.of(by, {"dest": list(keys)} if by else None, SCHEMA)
    return Query("flights", by, found, where, counting(name), PrivacyUnit(unit), bounds or Bounds())


def test_unit_labels():
    """A unit says in one word what it is."""
    assert PrivacyUnit().label == "row"
    assert PrivacyUnit("tail").label == "column:tail"
    with pytest.raises(dataclasses.FrozenInstanceError):
        PrivacyUnit().column = "x"


@pytest.mark.parametrize("bad", [0, -1, 1.0, 1.5, "1", True, math.nan, 2**31])
def test_bounds_are_whole_numbers_from_one(bad):
    """A bound that is no whole number of at least one is refused, truth values included."""
    with pytest.raises(InvalidBounds, match="max_groups"):
        Bounds(max_groups=bad)
    with pytest.raises(InvalidBounds, match="max_rows"):
        Bounds(max_rows=bad)


def test_schema_identity_and_neighbours():
    """A schema's fingerprint follows names, types and order; unknown columns name their neighbour."""
    one = Schema.of({"a": Type.STRING, "b": Type.STRING})
    others = [
        Schema.of({"b": Type.STRING, "a": Type.STRING}),
        Schema.of({"a": Type.STRING, "b": Type.FLOAT}),
        Schema.of({"a": Type.STRING}),
    ]

    assert one.fingerprint == Schema.of({"a": Type.STRING, "b": Type.STRING}).fingerprint
    assert one.fingerprint not in {other.fingerprint for other in others}
    with pytest.raises(UnsupportedQuery, match="did you mean 'dest'"):
        SCHEMA.require("DEST")
    with pytest.raises(UnsupportedQuery, match="the columns are dest"):
        SCHEMA.require("qqq")


def test_row_unit_has_sensitivity_one():
    """One row is in one group, once, whatever the bounds say."""
    plain = query(bounds=Bounds(3, 7))

    assert (1, 1, False) == (plain.max_groups, plain.sensitivity, plain.cuts_groups)
    assert plain.canonical() == query().canonical()


def test_unit_column_takes_its_bounds():
    """Sensitivities come from the bounds; more groups than there are count as all of them."""
    some, every = query(unit="tail", bounds=Bounds(2, 7)), query(unit="tail", bounds=Bounds(99, 7))
    whole = query(by=(), unit="tail", bounds=Bounds(max_rows=7))

    assert (2, 7, True) == (some.max_groups, some.sensitivity, some.cuts_groups)
    assert (3, 7, False) == (every.max_groups, every.sensitivity, every.cuts_groups)
    assert (1, 7, False, 1) == (whole.max_groups, whole.sensitivity, whole.cuts_groups, whole.groups)
    assert every.canonical() == query(unit="tail", bounds=Bounds(3, 7)).canonical()


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (Bounds(), "max_groups and max_rows missing"),
        (Bounds(max_rows=1), "max_groups missing"),
        (Bounds(max_groups=1), "max_rows missing"),
    ],
)
def test_unit_column_needs_bounds(bounds, words):
    """A unit column without bounds is refused; the message shows how to give them."""
    with pytest.raises(InvalidBounds, match=words + r".*'tail'.*Bounds\(max_groups"):
        query(unit="tail", bounds=bounds)


def test_whole_table_needs_max_rows_only():
    """Without groups only the bound on rows is missing."""
    with pytest.raises(InvalidBounds, match=r"^max_rows missing"):
        query(by=(), unit="tail")


def test_ill_formed_queries_are_refused():
    """Keys of other columns, a column twice and a name that clashes are refused."""
    keys = Keys.of(("dest",), {"dest": ["ORD"]}, SCHEMA)
    with pytest.raises(InvalidKeys):
        Query("flights", ("month",), keys, None, counting("n"), PrivacyUnit(), Bounds())
    with pytest.raises(InvalidKeys):
        Query("flights", ("dest",), None, None, counting("n"), PrivacyUnit(), Bounds())
    with pytest.raises(UnsupportedQuery, match="twice"):
        Query("flights", ("dest", "dest"), keys, None, counting("n"), PrivacyUnit(), Bounds())
    with pytest.raises(UnsupportedQuery, match="have one name"):
        query(name="dest")


def test_identity_follows_what_matters():
    """Anything that changes the bounded truth or its price changes the identity; the answer's name does not."""
    late = Compare(Column("delay"), Operator.GT, Literal(15))
    changed = [
        query(keys=("ORD", "ATL", "JFK")),
        query(where=late),
        query(by=()),
        query(unit="tail", bounds=Bounds(1, 1)),
        query(unit="tail", bounds=Bounds(2, 1)),
        query(unit="tail", bounds=Bounds(1, 2)),
        query(unit="dest", bounds=Bounds(1, 1)),
    ]

    assert query().canonical() == query(name="other").canonical()
    assert len({one.canonical() for one in [query(), *changed]}) == len(changed) + 1


def test_canonical_text_forgets_how_it_was_written():
    """Order, repetition, direction and the spelling of numbers do not change what is asked."""
    a, b = Compare(Column("delay"), Operator.GT, Literal(15.0)), IsNull(Column("dest"))
    same = [
        (And((a, b)), And((b, a, b))),
        (Or((a, b)), Or((b, a))),
        (a, Compare(Literal(15), Operator.LT, Column("delay"))),
        (And((a,)), a),
        (In(Column("month"), (Literal(1), Literal(2))), In(Column("month"), (Literal(2), Literal(1), Literal(2)))),
        (
            Between(Column("month"), Literal(1), Literal(2)),
            And((Compare(Column("month"), Operator.LE, Literal(2)), Compare(Literal(1), Operator.LE, Column("month")))),
        ),
    ]
    different = [a, b, Not(a), And((a, b)), Or((a, b)), Compare(Column("delay"), Operator.GE, Literal(15))]
    values = [1, True, "1", 1.5, "true", dt.date(2013, 1, 1), dt.datetime(2013, 1, 1), "2013-01-01", 2.0**60, 2**60]

    assert all(one.canonical() == other.canonical() for one, other in same)
    assert len({one.canonical() for one in different}) == len(different)
    assert len({Literal(value).canonical() for value in values}) == len(values)
    assert Literal(0.0).canonical() == Literal(-0.0).canonical()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (Compare(Column("dest"), Operator.GT, Literal(1)), "type mismatch"),
        (Compare(Column("dest"), Operator.EQ, Column("month")), "type mismatch"),
        (Compare(Column("o"), Operator.EQ, Literal(1)), "column type"),
        (Compare(Literal(value=True), Operator.LT, Literal(value=False)), "order of truth values"),
        (In(Column("dest"), (Literal("a"), Literal(1))), "type mismatch"),
        (Between(Column("month"), Literal("a"), Literal(2)), "type mismatch"),
        (Not(Compare(Column("dset"), Operator.EQ, Literal("a"))), "unknown column"),
        (IsNull(Column("dset")), "unknown column"),
    ],
)
def test_types_are_checked_before_any_engine(bad, words):
    """A comparison of types that do not compare is refused by name."""
    with pytest.raises(UnsupportedQuery, match=words):
        check(And((bad,)), SCHEMA)


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, 2**64, -(2**63) - 1, "\ud800", dt.datetime(2013, 1, 1, tzinfo=dt.UTC)]
)
def test_literals_are_plain_values(bad):
    """Constants are finite, 64 bits wide, without zone and valid Unicode."""
    with pytest.raises(UnsupportedQuery):
        Literal(bad)


def test_columns_of_finds_every_column():
    """An expression knows what it reads."""
    late = Compare(Column("delay"), Operator.GT, Literal(15))
    everything = Or(
        (
            Not(late),
            And((IsNull(Column("o")), In(Column("dest"), (Literal("a"),)))),
            Between(Column("month"), Literal(1), Column("tail")),
        )
    )

    assert {"delay", "o", "dest", "month", "tail"} == columns_of(everything)
