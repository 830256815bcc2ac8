"""The engine contract: every engine, on every kind of table, counts what the slow, obvious one counts."""

# ruff: noqa: DTZ001  times in questions have no zone

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from functools import cache

import duckdb
import ibis
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farthing import Budget, Session
from farthing.engines import open_table
from farthing.engines.duck.terms import keyed_hash
from farthing.engines.foreign import sqlite
from farthing.engines.foreign.plain import PlainBackend
from farthing.engines.memory.engine import MemoryEngine
from farthing.errors import FarthingError, UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type, counting
from farthing.query.expressions import And, Between, Column, Compare, In, IsNull, Literal, Not, Operator, Or
from farthing.query.part import QueryPart

pytestmark = pytest.mark.thorough

SCHEMA = Schema.of(
    {
        "s": Type.STRING,
        "i": Type.INTEGER,
        "f": Type.FLOAT,
        "b": Type.BOOLEAN,
        "d": Type.DATE,
        "t": Type.TIMESTAMP,
        "z": Type.TIMESTAMP,
        "u": Type.STRING,
        "v": Type.INTEGER,
    }
)
ARROW = pa.schema(
    [
        ("s", pa.string()),
        ("i", pa.int64()),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us")),
        ("z", pa.timestamp("us", tz="America/St_Johns")),
        ("u", pa.string()),
        ("v", pa.int32()),
    ]
)
STRINGS = ["", "a", "A", "b", "é", "e\u0301", "日本", "a\x00b", "'", '"', "\u202e", "NULL", "\U0001f600", " a"]
INTEGERS = [0, 1, -1, 2, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, 1.5, -1.5, math.inf, -math.inf, math.nan, 1e300, 5e-324]
DATES = [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2013, 1, 31), dt.date(9999, 12, 31)]
TIMES = [dt.datetime(1, 1, 1), dt.datetime(2013, 1, 31, 12, 30, 1, 5), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]
VALUES = {
    "s": STRINGS,
    "i": INTEGERS,
    "f": FLOATS,
    "b": [True, False],
    "d": DATES,
    "t": TIMES,
    "z": TIMES,
    "u": ["", "ann", "bob", "cy"],
    "v": [0, 1, 2],
}
KINDS = ["arrow", "chunked", "parquet", "polars", "lazy", "relation", "ibis"]

rows = st.lists(
    st.fixed_dictionaries({name: st.sampled_from([None, *values]) for name, values in VALUES.items()}), max_size=40
)


def literals(column):
    """Return literals that compare with a column."""
    numbers = [Literal(x) for x in (0, 1, -1, 1.5, 2**53 + 1, 2**63 - 1, -(2**63), 1e300)]
    if column in "if":
        return st.sampled_from(numbers)
    return st.sampled_from([Literal(x) for x in VALUES[column]])


@st.composite
def leaves(draw):
    """Return a well-typed leaf of a predicate."""
    column = draw(st.sampled_from("sifbdtzv"))
    literal = literals("i" if column == "v" else column)
    operators = [Operator.EQ, Operator.NE] if column == "b" else list(Operator)
    kind = draw(st.sampled_from(["compare", "flip", "in", "null", "between", "columns"]))
    if kind == "null":
        return IsNull(Column(column))
    if kind == "in":
        return In(Column(column), tuple(draw(st.lists(literal, min_size=1, max_size=3))))
    if kind == "between" and column != "b":
        return Between(Column(column), draw(literal), draw(literal))
    if kind == "columns" and column in "if":
        return Compare(Column("i"), draw(st.sampled_from(operators)), Column(draw(st.sampled_from("fvi"))))
    operator = draw(st.sampled_from(operators))
    if kind == "flip":
        return Compare(draw(literal), operator, Column(column))
    return Compare(Column(column), operator, draw(literal))


predicates = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Or(tuple(parts))),
        inner.map(Not),
    ),
    max_leaves=5,
)


@st.composite
def queries(draw):
    """Return a question over the test table."""
    by = tuple(draw(st.lists(st.sampled_from("sifbdtz"), max_size=2, unique=True)))
    lists = {}
    for column in by:
        listed = [x for x in VALUES[column] if not (isinstance(x, float) and (math.isnan(x) or str(x) == "-0.0"))]
        lists[column] = draw(st.lists(st.sampled_from([None, *listed]), min_size=1, max_size=6, unique=True))
    unit = draw(st.sampled_from([None, "u", "v"]))
    bounds = Bounds(draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    where = draw(st.none() | predicates)
    part = draw(st.none() | parts())
    return Query(
        "data", by, Keys.of(by, lists or None, SCHEMA), where, counting("n"), PrivacyUnit(unit), bounds, part=part
    )


@st.composite
def parts(draw):
    """Return a part of the test table."""
    column = draw(st.sampled_from("sibdtzv"))
    choices = draw(st.lists(st.sampled_from(VALUES[column]), min_size=1, max_size=4, unique=True))
    return QueryPart(column, tuple(map(Literal, choices)), draw(st.integers(0, len(choices) - 1)))


CONNECTION = duckdb.connect()


def opened(kind, data, folder):  # noqa: PLR0911  one return a kind
    """Return the table opened as one kind of source."""
    match kind:
        case "arrow":
            return open_table(data)
        case "chunked":
            return open_table(pa.concat_tables([data.slice(0, 3), data.slice(3)]))
        case "parquet":
            pq.write_table(data, folder / "data.parquet")
            return open_table(folder / "data.parquet")
        case "polars":
            return open_table(pl.from_arrow(data))
        case "lazy":
            return open_table(pl.from_arrow(data).lazy())
        case "relation":
            return open_table(CONNECTION.from_arrow(data))
        case _:
            return open_table(ibis.duckdb.connect().create_table("data", data))


@cache
def duck_hash(native, unit, place, hash_key):
    """Return DuckDB's keyed hash."""
    sql = f"SELECT {keyed_hash(f'?::{native}', '?::INTEGER', hash_key)}"
    return CONNECTION.execute(sql, [unit, place]).fetchall()[0][0]


def oracle(table, query):
    """Return the slow engine with DuckDB's hash."""
    native = "INTEGER" if query.unit.column == "v" else "VARCHAR"
    return MemoryEngine(table, SCHEMA, keyed_hash=lambda unit, place, key: duck_hash(native, unit, place, key))


def agrees(kind, table, query, hash_key, tmp_path):
    """Hold one engine against the slow one."""
    engine = opened(kind, pa.Table.from_pylist(table, schema=ARROW), tmp_path)

    assert engine.schema == SCHEMA
    assert oracle(table, query).measure(query, hash_key)[0].tolist() == engine.measure(query, hash_key)[0].tolist()


questions = given(table=rows, query=queries(), hash_key=st.sampled_from([0, 7, 2**63, 2**64 - 1]))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@questions
def test_engine_agrees_with_the_oracle(kind, table, query, hash_key, tmp_path):
    """Every kind of table gives the bounded counts of the slow engine, NULL, NaN and odd text included."""
    agrees(kind, table, query, hash_key, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@questions
def test_engine_agrees_with_the_oracle_at_length(kind, table, query, hash_key, tmp_path):
    """The same over many more tables and questions."""
    agrees(kind, table, query, hash_key, tmp_path)


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(table=rows, query=queries(), hash_key=st.integers(0, 2**64 - 1), data=st.data())
def test_one_unit_moves_the_counts_within_the_bounds(table, query, hash_key, data):
    """Removing one unit changes at most max_groups counts, each by at most the sensitivity."""
    if query.unit.is_row:
        gone = data.draw(st.integers(0, max(0, len(table) - 1)))
        rest = table[:gone] + table[gone + 1 :]
    else:
        gone = data.draw(st.sampled_from([None, *VALUES[query.unit.column]]))
        rest = [row for row in table if row[query.unit.column] != gone]
    full, less = (
        open_table(pa.Table.from_pylist(part, schema=ARROW)).measure(query, hash_key)[0] for part in (table, rest)
    )

    assert query.max_groups >= np.count_nonzero(full != less)
    assert query.sensitivity >= np.abs(full - less).max()


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(table=rows, query=queries(), hash_key=st.integers(0, 2**64 - 1), data=st.data())
def test_one_unit_moves_one_part(table, query, hash_key, data):
    """Of all the parts of a partition, removing one unit changes the counts of one at most."""
    kind = data.draw(st.sampled_from(["arrow", "ibis"]))
    part = data.draw(parts())
    every = [replace(query, part=replace(part, place=place)) for place in range(len(part.choices))]
    if query.unit.is_row:
        gone = data.draw(st.integers(0, max(0, len(table) - 1)))
        rest = table[:gone] + table[gone + 1 :]
    else:
        gone = data.draw(st.sampled_from([None, *VALUES[query.unit.column]]))
        rest = [row for row in table if row[query.unit.column] != gone]
    engines = [opened(kind, pa.Table.from_pylist(some, schema=ARROW), None) for some in (table, rest)]
    moved = [(engines[0].measure(one, hash_key)[0] != engines[1].measure(one, hash_key)[0]).any() for one in every]

    assert sum(moved) <= 1


@pytest.fixture
def plain(monkeypatch):
    """Take SQLite for a backend that farthing does not know: it reads 'inf' as 0, and has no hash."""
    monkeypatch.setattr(sqlite, "SqliteBackend", PlainBackend)


# ibis' own conversion of SQLite results asks pandas for an option that pandas has deprecated.
@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated")
@pytest.mark.usefixtures("plain")
def test_an_engine_of_no_class_of_its_own_counts_rows_and_refuses_to_choose_groups():
    """A backend without a hash answers questions where nothing is given up, and refuses the others by name."""
    table = [{"s": s, "i": i, "u": u} for s, i, u in [("a", 1, "x"), ("a", 2, "x"), (None, 3, "y"), ("b", 1, None)]]
    data = pa.Table.from_pylist(table)
    engine = open_table(ibis.sqlite.connect().create_table("data", data))
    keys = Keys.of(("s",), {"s": ["b", "a", None, "z"]}, engine.schema)
    where = Compare(Column("i"), Operator.LT, Literal(3))
    row = Query("data", ("s",), keys, None, counting("n"), PrivacyUnit(), Bounds())
    unit = Query("data", ("s",), keys, where, counting("n"), PrivacyUnit("u"), Bounds(4, 1))
    whole = Query("data", (), None, where, counting("n"), PrivacyUnit("u"), Bounds(max_rows=1))
    chosen = Query("data", ("s",), keys, None, counting("n"), PrivacyUnit("u"), Bounds(1, 1))

    assert engine.measure(row, 0)[0].tolist() == [1, 2, 1, 0]
    assert engine.measure(unit, 0)[0].tolist() == [0, 1, 0, 0]
    assert engine.measure(whole, 0)[0].tolist() == [1]
    assert engine.fingerprint(row) == ""
    with pytest.raises(UnsupportedQuery, match="sqlite"):
        engine.fingerprint(chosen)


def test_polars_through_ibis_counts_rows():
    """The Polars backend of ibis answers the row unit."""
    backend = ibis.polars.connect()
    engine = open_table(backend.create_table("data", pa.table({"s": ["a", "a", None, "b"], "x": [1, 2, 3, 4]})))
    keys = Keys.of(("s",), {"s": ["b", "a", None, "z"]}, engine.schema)
    where = Compare(Column("x"), Operator.GT, Literal(1))
    query = Query("data", ("s",), keys, where, counting("n"), PrivacyUnit(), Bounds())

    assert engine.fingerprint(query) == ""
    assert engine.measure(query, 0)[0].tolist() == [1, 1, 1, 0]


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated")
@pytest.mark.parametrize("text", [
    "COUNT(x)", "SUM(CLAMP(x, 0, 1))", "COUNT(*) FILTER (WHERE x > 0)", "COUNT(*) FILTER (WHERE ABS(i) > 1)",
    "COUNT(SQRT(i))", "COUNT(*) FILTER (WHERE s LIKE 'a%')", "COUNT(*) FILTER (WHERE GREATEST(i, 2) > 1)",
    "COUNT(i * 1.5)", "COUNT(i + 1)",
])  # fmt: skip
@pytest.mark.usefixtures("plain")
def test_other_backends_refuse_reals_and_functions_by_name(text):
    """What no test compares with the slow engine is refused before anything is charged: SQLite reads 'inf' as 0."""
    data = pa.table({"s": ["a", "b"], "i": [1, 2], "x": [1.5, -1.0]})
    table = ibis.sqlite.connect().create_table("data", data)
    with Session(table, budget=Budget(epsilon=1, delta=1e-6)) as session:
        with pytest.raises(UnsupportedQuery, match="on the sqlite backend"):
            session.sql(f"SELECT {text} AS n FROM data", absolute=50)
        assert not session.history()


@pytest.mark.parametrize("kind", KINDS)
def test_zero_rows_are_a_legal_table(kind, tmp_path):
    """A table without rows answers zeros."""
    engine = opened(kind, ARROW.empty_table(), tmp_path)
    keys = Keys.of(("s",), {"s": ["a", None]}, SCHEMA)
    for unit, bounds in ((None, Bounds()), ("u", Bounds(1, 1)), ("u", Bounds(2, 5))):
        query = Query("data", ("s",), keys, None, counting("n"), PrivacyUnit(unit), bounds)
        whole = Query("data", (), None, None, counting("n"), PrivacyUnit(unit), bounds)

        assert engine.measure(query, 0)[0].tolist() == [0, 0]
        assert engine.measure(whole, 0)[0].tolist() == [0]


def test_kept_groups_are_chosen_evenly():
    """Which group a unit keeps depends on neither its place nor its size, and changes with the hash key."""
    units, groups = 6000, 6
    table = pa.table(
        {
            "u": np.repeat(np.arange(units), groups + 2),
            "g": np.tile(np.array([0, 0, 0, *range(1, groups)]), units),
        }
    )
    engine = open_table(table)
    keys = Keys.of(("g",), {"g": range(groups)}, engine.schema)
    query = Query("data", ("g",), keys, None, counting("n"), PrivacyUnit("u"), Bounds(2, 1))
    first, second = engine.measure(query, 1)[0], engine.measure(query, 2)[0]

    assert 2 * units == first.sum() == second.sum()
    assert 6 * math.sqrt(units / 3 * 2 / 3) > np.abs(first - units / 3).max()
    assert first.tolist() != second.tolist()
    assert first.tolist() == engine.measure(query, 1)[0].tolist()


def test_fingerprint_names_the_hash():
    """The fingerprint is empty where nothing is given up, and tells unit types apart where something is."""
    engine = open_table(pa.Table.from_pylist([], schema=ARROW))
    keys = Keys.of(("s",), {"s": ["a", "b"]}, SCHEMA)
    names = {
        column: engine.fingerprint(Query("data", ("s",), keys, None, counting("n"), PrivacyUnit(column), Bounds(1, 1)))
        for column in (None, "u", "v")
    }

    assert names[None] == ""
    assert len({names["u"], names["v"], ""}) == 3
    assert engine.fingerprint(Query("data", ("s",), keys, None, counting("n"), PrivacyUnit("u"), Bounds(2, 1))) == ""


def test_engine_errors_are_constant(tmp_path):
    """A file that is broken after opening gives one constant message, without the engine's words."""
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"s": ["secret"] * 100}), path)
    engine = open_table(path)
    path.write_bytes(b"PAR1" + b"secret" * 100 + b"PAR1")
    query = Query("data", (), None, None, counting("n"), PrivacyUnit(), Bounds())
    with pytest.raises(FarthingError, match="the engine could not finish the query") as caught:
        engine.measure(query, 0)[0]

    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
