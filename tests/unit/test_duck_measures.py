"""Measures, histograms, found keys and spreads of the embedded engine: as the slow one, and within their bounds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from unittest import mock

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sweeps import sweep

from farthing.engines import open_table
from farthing.engines.bounded import BoundedQuery
from farthing.engines.duck import cells as duck_cells
from farthing.engines.duck import engine as duck
from farthing.engines.duck import measures as duck_measures
from farthing.engines.duck.terms import keyed_hash
from farthing.engines.memory.engine import Beside, MemoryEngine
from farthing.errors import DataError, InvalidKeys, UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type
from farthing.query.aggregates import Count, CountUnits, Mean, NamedAggregate, Quantile, Sum, Variance
from farthing.query.expressions import And, Call, Case, Column, Compare, FunctionName, Literal, Operator
from farthing.query.joins import Join
from farthing.query.measures import Total
from farthing.query.part import QueryPart
from farthing.query.ranges import FINE_BITS

SCHEMA = Schema.of({"u": Type.STRING, "z": Type.INTEGER, "x": Type.FLOAT, "i": Type.INTEGER, "p": Type.STRING})
ARROW = pa.schema([("u", pa.string()), ("z", pa.int64()), ("x", pa.float64()), ("i", pa.int64()), ("p", pa.string())])
VALUES = {
    "u": [None, "ann", "bob", "cy"],
    "z": [None, 1, 2, 3],
    "x": [None, math.nan, math.inf, -math.inf, -1.0, 0.0, 0.1, 1 / 3, 2.5, 7.25, 10.0, 1e300],
    "i": [None, 0, 3, -5, 2**62],
    "p": [None, "a", "b"],
}
ZONES = [{"id": 1, "n": "one"}, {"id": 2, "n": "two"}, {"id": 2, "n": "zwei"}, {"id": None, "n": "nil"}]
OWNED = [{"u": "ann", "w": 1}, {"u": "ann", "w": 2}, {"u": "bob", "w": 1}, {"u": None, "w": 1}]
ZONE_SCHEMA = Schema.of({"id": Type.INTEGER, "n": Type.STRING})
OWNED_SCHEMA = Schema.of({"u": Type.STRING, "w": Type.INTEGER})
X, WHOLE, Z = Column("x"), Column("i"), Column("z")
HALF = Call(FunctionName.DIVIDE, (WHOLE, Literal(2)))
OUTPUTS = tuple(
    NamedAggregate(f"o{place}", aggregate)
    for place, aggregate in enumerate(
        [
            Count(),
            Count(X),
            Count(WHOLE),
            CountUnits(),
            Sum(X, -2, 5),
            Mean(X, 0, 3),
            Variance(X, -1, 9),
            Sum(HALF, -3, 3),
        ]
    )
)
QUANTILE = Quantile(X, 0.5, -1, 9, leaves_log2=4)
CONNECTION = duckdb.connect()

rows = st.lists(st.fixed_dictionaries({name: st.sampled_from(v) for name, v in VALUES.items()}), max_size=25)
units = st.sampled_from([None, "u"])
wheres = st.sampled_from(
    [
        None,
        Compare(Call(FunctionName.ADD, (WHOLE, Literal(1))), Operator.GT, Literal(0)),
        Compare(Call(FunctionName.SQRT, (Call(FunctionName.ABS, (X,)),)), Operator.LE, Literal(2.0)),
        Compare(Column("p"), Operator.EQ, Literal("a")),
    ]
)
groupings = st.sampled_from(
    [
        ((), None, ()),
        (("z",), {"z": [2, 1, None, 9]}, ()),
        (("z", "p"), {"z": [1, 2, 3], "p": ["a", "b"]}, ()),
        (("g",), {"g": [0, 1]}, (("g", Call(FunctionName.MODULO, (Z, Literal(2)))),)),
        (("g",), {"g": [0.0, 2.0]}, (("g", Call(FunctionName.MULTIPLY, (X, Literal(0.0)))),)),
        (
            ("g",),
            {"g": ["low", "high"]},
            (("g", Case(((Compare(X, Operator.LT, Literal(1)), Literal("low")),), Literal("high"))),),
        ),
    ]
)
joins = st.sampled_from(
    [
        (),
        (Join("zones", Compare(Z, Operator.EQ, Column("zones.id")), fan_out=2),),
        (Join("zones", Compare(Z, Operator.EQ, Column("zones.id")), left=True, fan_out=1),),
        (
            Join(
                "zones",
                And(
                    (
                        Compare(Z, Operator.EQ, Column("zones.id")),
                        Compare(Column("zones.n"), Operator.NE, Literal("two")),
                    )
                ),
                fan_out=1,
            ),
        ),
    ]
)


@cache
def duck_hash(unit, chosen, hash_key):
    """Return DuckDB's keyed hash of what a unit may keep."""
    several = chosen if isinstance(chosen, tuple) else (chosen,)
    kinds = {int: "INTEGER", float: "DOUBLE", str: "VARCHAR"}
    shown = ", ".join(f"?::{kinds.get(type(one), 'INTEGER')}" for one in several)
    return CONNECTION.execute(f"SELECT {keyed_hash('?::VARCHAR', shown, hash_key)}", [unit, *several]).fetchone()[0]


def slow(table):
    """Return the slow engine, with DuckDB's hash."""
    beside = {"zones": Beside(ZONES, ZONE_SCHEMA), "owned": Beside(OWNED, OWNED_SCHEMA, public=False)}
    return MemoryEngine(table, SCHEMA, keyed_hash=duck_hash, beside=beside)


def fast(table):
    """Return the embedded engine of the same rows."""
    kinds = {"zones": [("id", pa.int64()), ("n", pa.string())], "owned": [("u", pa.string()), ("w", pa.int64())]}
    zones, owned = (pa.Table.from_pylist(data, pa.schema(kinds[n])) for n, data in (("zones", ZONES), ("owned", OWNED)))
    return open_table(pa.Table.from_pylist(table, ARROW), public={"zones": zones}, protected={"owned": owned})


@st.composite
def questions(draw, outputs=OUTPUTS, unit=units):
    """Return a question of several measures."""
    by, lists, named = draw(groupings)
    kinds = {"g": Type.INTEGER if lists and lists.get("g") == [0, 1] else Type.STRING}
    if lists and isinstance(next(iter(lists.values()))[0], float):
        kinds["g"] = Type.FLOAT
    keys = Keys.of(by, lists, Schema((*SCHEMA.columns, *kinds.items()))) if outputs or not by else None
    bounds = Bounds(draw(st.integers(1, 3)), draw(st.integers(1, 4)))
    part = draw(st.none() | st.integers(0, 1).map(lambda at: QueryPart("p", (Literal("a"), Literal("b")), at)))
    own = PrivacyUnit(draw(unit))
    beside = draw(joins)
    if own.column is not None:
        beside = tuple(replace(join, fan_out=None) for join in beside)
        if draw(st.booleans()):
            beside += (Join("owned", Compare(Column("u"), Operator.EQ, Column("owned.u")), public=False),)
    return Query("data", by, keys, draw(wheres), outputs, own, bounds, part, named, beside)


@given(rows, questions(), st.sampled_from([0, 2**64 - 1]), st.sampled_from([1, 2, 1 << 20]))
@settings(max_examples=sweep(25, 50))
def test_measures_are_those_of_the_slow_engine(table, query, hash_key, at_once):
    """Every measure of every question, side by side, exactly; joins, groupings and parts too; few groups at a time."""
    engine, oracle = fast(table), slow(table)
    expected = oracle.measure(query, hash_key)

    assert bool(engine.fingerprint(query)) == (query.cuts_groups or query.cuts_parts)
    with mock.patch.object(duck, "_MOST_AT_ONCE", at_once):
        assert expected.tolist() == engine.measure(query, hash_key).tolist()


def test_units_that_choose_groups_are_asked_about_all_of_them():
    """A part of the groups at a time, a unit would be kept in its share of groups once for each part."""
    query, engine = several(bounds=Bounds(1, 2)), fast(SKEWED)
    expected = slow(SKEWED).measure(query, 1).tolist()
    with mock.patch.object(duck, "_MOST_AT_ONCE", 1):
        assert query.cuts_groups
        assert expected == engine.measure(query, 1).tolist()
        with mock.patch.object(BoundedQuery, "chooses", new=False):
            assert expected != engine.measure(query, 1).tolist()


@given(rows, questions((NamedAggregate("q", QUANTILE),)), st.sampled_from([0, 5]))
@settings(max_examples=sweep(20, 40))
def test_histograms_are_those_of_the_slow_engine(table, query, hash_key):
    """Groups, leaves and rows kept by the hash."""
    expected = slow(table).histogram(query, QUANTILE, hash_key)
    found = fast(table).histogram(query, QUANTILE, hash_key)

    for one, other in ((expected.groups, found.groups), (expected.leaves, found.leaves)):
        assert one.tolist() == other.tolist()
    assert expected.counts.tolist() == found.counts.tolist()


@given(rows, questions(()), st.sampled_from([0, 5]), st.sampled_from([(), ((9, 9),), ((1, 9), (2, 5), (9, 3))]))
@settings(max_examples=sweep(20, 40))
def test_found_keys_are_those_of_the_slow_engine(table, query, hash_key, shares):
    """The groups that exist, with what units count by: the same sum where a choice is made, else the same groups."""
    if not query.by:
        return
    expected, found = (engine(table).found(query, hash_key, shares) for engine in (slow, fast))
    mine, theirs = (
        dict(zip(zip(*each.keys.to_pydict().values(), strict=True), each.units.tolist(), strict=True))
        for each in (found, expected)
    )

    assert sum(theirs.values()) == sum(mine.values())
    if query.unit.is_row:
        assert theirs == mine


@given(rows, questions(), st.sampled_from([None, X, HALF]))
@settings(max_examples=sweep(20, 40))
def test_spreads_are_those_of_the_slow_engine(table, query, value):
    """Units by groups, rows, least and greatest value."""
    expected, found = (engine(table).spread(query, value, 3) for engine in (slow, fast))

    for name in ("groups", "rows", "least", "greatest"):
        assert getattr(expected, name).tolist() == getattr(found, name).tolist()


def changes(table, query, hash_key=3):
    """Return, for each row or unit taken away, what it changed in every measure and group."""
    whole = fast(table).measure(query, hash_key)
    names = range(len(table)) if query.unit.is_row else sorted({row["u"] for row in table} - {None})
    for gone in names:
        left = [row for at, row in enumerate(table) if (at if query.unit.is_row else row["u"]) != gone]
        yield np.abs(whole - fast(left).measure(query, hash_key))


def within(table, query):
    """Tell whether every neighbour differs by no more than the sensitivities."""
    limits = [measure.sensitivity(query.max_rows) for measure in query.measures]
    return all(
        (found <= np.array(limits)[:, None]).all() and ((found > 0).any(axis=0).sum() <= query.max_groups)
        for found in changes(table, query)
    )


@given(rows, questions())
@settings(max_examples=10)
def test_neighbours_differ_within_the_sensitivities(table, query):
    """A unit more or less changes each measure by its sensitivity at most, in max_groups groups at most."""
    assert within(table, query)


def planted(x, u="ann", z=1):
    """Return one row."""
    return {"u": u, "z": z, "x": x, "i": 1, "p": "a"}


def several(outputs=OUTPUTS, *, where=None, bounds=None):
    """Return a question about two zones with a unit column."""
    keys = Keys.of(("z",), {"z": [1, 2]}, SCHEMA)
    return Query("data", ("z",), keys, where, outputs, PrivacyUnit("u"), bounds or Bounds(2, 2))


SKEWED = [
    *(planted(9.9) for _ in range(7)),
    *(planted(x, z=2) for x in (1 / 3, 1 / 3, math.nan)),
    planted(None),
    planted(3.3, "bob"),
]


def each_row_in_steps(plant):
    right = duck_cells.on_grid

    def coarse(rows, total):
        text = right(rows, total)
        return duck_cells.Text(f"(({text.sql} + {2**39 + 2**15}) // {2**16} - {2**23}) * {2**16}", Type.INTEGER, 1)

    plant.setattr(duck_measures, "on_grid", coarse)


def rows_not_cut(plant):
    plant.setattr(Query, "max_rows", property(lambda _: 10**6))


def groups_not_cut(plant):
    plant.setattr(Query, "cuts_groups", property(lambda _: False))


def nan_is_a_value(plant):
    plant.setattr(duck_cells, "INFINITY", "'nan'::DOUBLE")


def cut_before_where(plant):
    honest = duck_measures.DuckRows._kept
    cut = "(SELECT * FROM {} QUALIFY row_number() OVER (PARTITION BY u) <= 2)"

    def early(rows, where):
        step = honest(rows, where)
        return lambda relation: step(cut.format(relation))

    plant.setattr(duck_measures.DuckRows, "_kept", early)


@pytest.mark.parametrize(
    "bug", [each_row_in_steps, rows_not_cut, nan_is_a_value, cut_before_where], ids=lambda bug: bug.__name__
)
def test_a_planted_bug_is_caught(bug, monkeypatch):
    """A grid that is too coarse, rows that are not cut, NaN as a value, a cut before WHERE: the slow engine differs."""
    where = Compare(X, Operator.NE, Literal(9.9)) if bug is cut_before_where else None
    query = several(where=where)
    expected = slow(SKEWED).measure(query, 1).tolist()

    assert expected == fast(SKEWED).measure(query, 1).tolist()
    bug(monkeypatch)
    assert expected != fast(SKEWED).measure(query, 1).tolist()


def test_groups_that_are_not_cut_break_the_sensitivity(monkeypatch):
    """The neighbour test has power: it sees a unit that counts in more groups than it may."""
    table = [planted(1.0, z=z) for z in (1, 2)]
    query = several(bounds=Bounds(1, 2))

    assert within(table, query)
    groups_not_cut(monkeypatch)
    assert not within(table, query)


def test_a_total_is_exact_on_its_grid():
    """Hand-computed: seven rows of 9.9 clamped to 5 and cut to two, on a grid of 2^-17."""
    (total,) = Sum(X, -2, 5).measures
    found = fast(SKEWED).measure(several((NamedAggregate("s", Sum(X, -2, 5)),)), 1)[0]
    more, thirds = (math.floor(each * 2**17 + 0.5) for each in (3.3, 2 / 3))

    assert (total.step_log2, total.fine_log2) == (-17, -33)
    assert [2 * 5 * 2**17 + more, thirds] == found.tolist()


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1e-24), (-1e24, 1e24), (0.0, 2e-23), (1e17, 1e17 + 64)])
def test_grids_of_any_size(lower, upper):
    """Bounds near the ends of doubles: the power of two of the grid alone may not be one, its product is."""
    table = [planted(value) for value in (lower, upper, upper / 3, 1.0, -math.inf)]
    query = several(
        (NamedAggregate("s", Sum(X, lower, upper)), NamedAggregate("m", Mean(X, lower, upper))), bounds=Bounds(2, 10)
    )

    assert slow(table).measure(query, 1).tolist() == fast(table).measure(query, 1).tolist()


def test_bounds_on_a_row_are_met_where_floats_round():
    """The largest magnitude of a row is never above its sensitivity, whatever the bounds."""
    generator = np.random.default_rng(5)
    for lower, width in zip(generator.normal(0, 100, 60), generator.lognormal(0, 4, 60), strict=True):
        for power, centre in itertools.product((1, 2), (0.0, lower + width / 3)):
            total = Total(X, lower, lower + width, centre, power)
            ends = [math.prod([end - centre] * power) for end in (lower, lower + width)]
            steps = [abs(math.floor(math.ldexp(end, -total.step_log2) + 0.5)) for end in ends]

            assert max(steps) <= total.sensitivity(1) <= 2**20


VARIED = [
    planted(x, u, z) | {"i": i}
    for x, u, z, i in itertools.product(VALUES["x"], VALUES["u"], VALUES["z"][:3], VALUES["i"][:4])
]


@pytest.mark.parametrize("unit", [None, "u"])
def test_dictionaries_change_nothing(unit, tmp_path):
    """Columns that a file stores as short dictionaries are computed entry by entry, with the same numbers."""
    pq.write_table(pa.Table.from_pylist(VARIED, ARROW), tmp_path / "data.parquet")
    engine, oracle = open_table(tmp_path / "data.parquet"), slow(VARIED)
    keys = Keys.of(("z",), {"z": [1, None]}, SCHEMA)
    outputs = (*OUTPUTS, NamedAggregate("w", Sum(WHOLE, -4, 2)), NamedAggregate("v", Variance(WHOLE, -1, 9)))
    query = Query(
        "data", ("z",), keys, Compare(X, Operator.NE, Literal(7.25)), outputs, PrivacyUnit(unit), Bounds(1, 3)
    )

    assert {"x", "i", "z"} <= engine._catalog.own.packed
    assert oracle.measure(query, 1).tolist() == engine.measure(query, 1).tolist()
    for quantile in (QUANTILE, replace(QUANTILE, value=WHOLE), Quantile.of(WHOLE, Type.INTEGER, 0.5, -1.0, 9.0)):
        expected, found = (each.histogram(query, quantile, 1) for each in (oracle, engine))
        assert expected.groups.tolist() == found.groups.tolist()
        assert expected.leaves.tolist() == found.leaves.tolist()
        assert expected.counts.tolist() == found.counts.tolist()


def test_columns_of_few_repetitions_are_no_dictionaries(tmp_path):
    """A column with a value of its own on every row is computed row by row, and so is one without a dictionary."""
    table = pa.table({"same": [1.5] * 2000, "own": [place / 7 for place in range(2000)]})
    for packed, options in (({"same"}, {}), (set(), {"use_dictionary": False})):
        pq.write_table(table, tmp_path / "t.parquet", **options)

        assert packed == open_table(tmp_path / "t.parquet")._catalog.own.packed


@pytest.mark.parametrize("unit", [None, "u"])
def test_many_equal_rows_are_rounded_once(unit):
    """However many rows are alike, a group's total is within half a step of them, and a little for each row."""
    for value, rows in ((19.95, 30_000), (-3.3, 20_000), (99.99, 10_000)):
        table = pa.table({"x": [value] * rows, "u": list(range(rows))})
        query = Query("data", (), None, None, (NamedAggregate("s", Sum(X, -20, 100)),), PrivacyUnit(unit), Bounds(1, 3))
        (total,) = query.measures
        found = open_table(table).measure(query, 1)[0, 0]
        exact = Fraction(value) * rows / Fraction(total.step)

        assert abs(found - exact) <= Fraction(1, 2) + Fraction(rows, 1 << (FINE_BITS + 1))


def test_cells_that_are_too_large_for_doubles_are_added_in_integers(monkeypatch):
    """Beyond a number of rows a cell the question is asked again; up to it, once; both give the same."""
    asked = []

    def recorded(*arguments, whole=False, part=False):
        asked.append(whole)
        return duck_measures.measuring(*arguments, whole=whole, part=part)

    monkeypatch.setattr(duck, "measuring", recorded)
    engine, longest = fast(SKEWED), 8
    expected = slow(SKEWED).measure(several(), 1).tolist()
    for most, runs in ((longest, [False]), (longest - 1, [False, True])):
        monkeypatch.setattr(duck, "MOST_ROWS", most)
        asked.clear()

        assert expected == engine.measure(several(), 1).tolist()
        assert runs == asked


def test_joins_that_could_stretch_a_row_are_refused():
    """Before anything is charged: no equality, no fan-out, a protected table beside rows that are units."""
    engine = fast([planted(1.0)])
    less = Compare(Z, Operator.LT, Column("zones.id"))
    same = Compare(Z, Operator.EQ, Column("zones.id"))
    one = Query("data", (), None, None, OUTPUTS[:1], PrivacyUnit(), Bounds())
    for join in (
        Join("zones", less, fan_out=2),
        Join("zones", same),
        Join("owned", Compare(Column("u"), Operator.EQ, Column("owned.u")), public=False, fan_out=1),
        Join("nowhere", less, fan_out=1),
    ):
        with pytest.raises(UnsupportedQuery):
            engine.fingerprint(replace(one, joins=(join,)))
    with pytest.raises(UnsupportedQuery, match="twice"):
        engine.fingerprint(replace(one, joins=(Join("zones", same, fan_out=1), Join("zones", same, fan_out=1))))
    assert engine.fingerprint(replace(one, joins=(Join("zones", same, fan_out=1),))) == ""


def test_a_protected_table_without_the_unit_is_refused():
    """The joined table carries the unit column, of the same type."""
    engine = open_table(pa.table({"u": ["a"], "k": [1]}), protected={"other": pa.table({"u": [1], "k": [1]})})
    join = Join("other", Compare(Column("k"), Operator.EQ, Column("other.k")), public=False)
    query = Query("data", (), None, None, OUTPUTS[:1], PrivacyUnit("u"), Bounds(1, 1), joins=(join,))

    with pytest.raises(UnsupportedQuery, match="does not carry the unit"):
        engine.fingerprint(query)


def test_names_that_collide_are_refused():
    """Two tables of one name, or a column that reads like one of a joined table."""
    table, zones = pa.table({"zones.n": [1]}), pa.table({"id": [1]})
    for options in ({"public": {"zones": zones}}, {"public": {"data": zones}}, {"public": {"a.b": zones}}):
        with pytest.raises(DataError, match="names of tables collide"):
            open_table(table, **options)
    with pytest.raises(DataError, match="names of tables collide"):
        open_table(zones, public={"t": zones}, protected={"T": zones})


def test_keys_of_public_tables_and_enums():
    """Distinct values of a public column without NULL; the categories that an ENUM declares, used or not."""
    connection = duckdb.connect()
    connection.execute("CREATE TYPE size AS ENUM ('s', 'm', 'l'); CREATE TABLE t AS SELECT 'm'::size AS size, 1 AS n")
    engine = open_table(connection.table("t"))
    frame = pl.DataFrame({"size": pl.Series(["m"], dtype=pl.Enum(["s", "m", "l"]))})

    assert open_table(frame).listed("size", None).to_pylist() == ["s", "m", "l"]
    assert fast([]).listed("id", "zones").to_pylist() == [1, 2]
    assert engine.listed("size", None).to_pylist() == ["s", "m", "l"]
    with pytest.raises(InvalidKeys, match="no categories"):
        engine.listed("n", None)


@given(st.integers(-(1 << 114), 1 << 114), st.integers(0, 1 << 40))
@example(0, 0)
@example(-(1 << 15), 1 << 16)
@example(-(1 << 15) - 1, 1 << 16)
@example(1 << 114, 1 << 40)
@example(-(1 << 114), 1 << 40)
@settings(max_examples=40, deadline=None)
def test_totals_are_rounded_as_whole_numbers_are(total, near):
    """The text that rounds a total gives floor(T 2^-16 + 1/2), below zero too, up to 2^115 on the way."""
    text = duck_measures._rounded("total").removesuffix("::BIGINT")
    totals = [total, total + near, total - near, -total]
    shown = ", ".join(f"('{each}'::HUGEINT)" for each in totals)
    found = duckdb.connect().sql(f"SELECT {text} FROM (VALUES {shown}) AS t (total)").fetchall()

    assert [(each + (1 << 15)) // (1 << FINE_BITS) for each in totals] == [row[0] for row in found]
