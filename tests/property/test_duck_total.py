"""The embedded engine computes every expression, on every value, as the evaluator does, and never raises."""

# ruff: noqa: DTZ001  times in questions have no zone

from __future__ import annotations

import datetime as dt
import itertools
import math
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hostile import HOSTILE, NUL_STRINGS, PATTERNS, beside_constants, oracle, predicates, rows, same, scalars
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farthing.engines import open_table
from farthing.engines.bounded import bounded
from farthing.engines.duck.rows import DuckRows
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Query, Schema, Type, counting
from farthing.query.expressions import Call, Case, Cast, Column, Compare, FunctionName, IsNull, Literal, Operator, check
from farthing.query.expressions import Not as Negation
from farthing.query.expressions.signatures import CASTS, CLOCK_UNITS, DAY_PARTS, DAY_UNITS, SIGNATURES
from farthing.query.expressions.typing import type_of

NATIVE = {
    Type.INTEGER: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.STRING: pa.string(),
    Type.BOOLEAN: pa.bool_(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us"),
}
INEXACT = {FunctionName.EXP, FunctionName.LN, FunctionName.LOG10, FunctionName.POWER}
SCHEMA = Schema.of({f"{kind.value}{place}": kind for kind in NATIVE for place in (0, 1)})
ULPS = 4
RANDOM = {kind: scalars(SCHEMA, kind, 3, without=frozenset(INEXACT)) for kind in NATIVE}
REALS = scalars(SCHEMA, Type.FLOAT, 3)
PREDICATES = predicates(SCHEMA, 3, without=frozenset(INEXACT))
SETTINGS = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def table(found, schema=SCHEMA):
    """Return rows as Arrow, numbered."""
    columns = {name: pa.array([row[name] for row in found], NATIVE[kind]) for name, kind in schema.columns}
    return pa.table(columns | {"row": pa.array(range(len(found)), pa.int64())})


@cache
def opened(schema):
    """Return the engine of a table without rows."""
    return open_table(schema.empty_table())


def computed(data, trees):
    """Return what DuckDB makes of scalars, and of predicates, on every row: one list of values for each tree."""
    engine = opened(data.schema)
    query = Query("data", (), None, None, counting("n"), PrivacyUnit(), Bounds())
    built = DuckRows(bounded(query), engine._catalog)
    texts = [
        built.scalars.predicate(tree)
        if not isinstance(tree, Column | Literal | Call | Cast | Case)
        else built.scalars.scalar(tree)
        for tree in trees
    ]
    names, number = [built.show(text, "v") for text in texts], built.show(built.scalars.scalar(Column("row")), "n")
    cursor = engine._connection.cursor()
    cursor.register("farthing_table", data)
    cursor.execute(f"SELECT {', '.join([number, *names])} FROM ({built.sql()}) ORDER BY {number}")
    answer = list(zip(*cursor.fetchall(), strict=True))
    return [list(column) for column in answer[1:]]


def close(one, other):
    """Tell whether two reals are the same up to a few last digits."""
    if isinstance(one, float) and isinstance(other, float) and math.isfinite(one) and math.isfinite(other):
        return abs(one - other) <= ULPS * max(math.ulp(one), math.ulp(other))
    return same(one, other)


def compare(tree, found, data, alike=same):
    """Hold DuckDB's values of one tree against the evaluator's."""
    expected = oracle(tree, SCHEMA)
    (values,) = computed(data, [tree])
    for row, value in zip(found, values, strict=True):
        assert alike(expected(row), value), (str(tree), row, expected(row), value)


def pairs(first, second):
    """Return rows of all pairs of hostile values of two types, NULL among them; long texts meet a few only."""
    sides = [[None, *HOSTILE[kind], *(NUL_STRINGS if kind is Type.STRING else [])] for kind in (first, second)]
    short = [[value for value in side if not isinstance(value, str) or len(value) < 40] for side in sides]
    few = [value for value in short[1] if not isinstance(value, str) or len(value) < 8][:25]
    empty = dict.fromkeys(SCHEMA.names)
    names = (f"{first.value}0", f"{second.value}1")
    found = [*itertools.product(short[0], few if isinstance(few[-1], str) else short[1])]
    found += [*zip(sides[0][::-1], sides[1], strict=False), *zip(sides[0], sides[1], strict=False)]
    return [empty | dict(zip(names, pair, strict=True)) for pair in found]


def unary():
    """Return every function of one column, every cast, and every constant argument."""
    for function, signature in SIGNATURES.items():
        if signature.constant is not None or len(signature.takes) - signature.optional != 1:
            continue
        yield from (Call(function, (Column(f"{kind.value}0"),)) for kind in sorted(signature.takes[0]))
    for kind, sources in CASTS.items():
        yield from (Cast(Column(f"{source.value}0"), kind) for source in sorted(sources))
    for digits in range(-15, 16):
        yield from (Call(FunctionName.ROUND, (Column(name), Literal(digits))) for name in ("integer0", "float0"))
    yield from (Call(FunctionName.LIKE, (Column("string0"), Literal(pattern))) for pattern in PATTERNS)
    texts = [Column("string0"), *map(Literal, ("", "a", " ", "éé"))]
    yield from (Call(FunctionName.REPLACE, three) for three in itertools.product(texts, texts, texts))
    for name, clock in (("date0", ()), ("timestamp0", CLOCK_UNITS)):
        yield from (Call(FunctionName.DATE_TRUNC, (Literal(unit), Column(name))) for unit in (*DAY_UNITS, *clock))
        yield from (Call(FunctionName.EXTRACT, (Literal(part), Column(name))) for part in (*DAY_PARTS, *clock))


def binary():
    """Return every function of two columns, for all types that it takes."""
    for function, signature in SIGNATURES.items():
        if signature.constant is not None or len(signature.takes) < 2:
            continue
        for first, second in itertools.product(sorted(signature.takes[0]), sorted(signature.takes[1])):
            tree = Call(function, (Column(f"{first.value}0"), Column(f"{second.value}1")))
            try:
                type_of(tree, SCHEMA)
            except ValueError:
                continue
            yield first, second, tree


@cache
def hostile_rows():
    """Return rows that hold every hostile value of every type."""
    longest = max(map(len, HOSTILE.values())) + len(NUL_STRINGS)
    lists = {kind: [None, *values, *(NUL_STRINGS if kind is Type.STRING else [])] for kind, values in HOSTILE.items()}
    return [
        {name: lists[kind][place % len(lists[kind])] for name, kind in SCHEMA.columns} for place in range(longest + 1)
    ]


def test_every_function_and_cast_on_every_hostile_value():
    """Functions of one argument and casts, with all their constants: the evaluator's value, and no exception."""
    found = hostile_rows()
    trees = [*unary(), *beside_constants()]
    values = computed(table(found), trees)

    assert len(trees) > 150
    for tree, column in zip(trees, values, strict=True):
        expected = oracle(tree, SCHEMA)
        alike = close if isinstance(tree, Call) and tree.function in INEXACT else same
        for row, value in zip(found, column, strict=True):
            assert alike(expected(row), value), (str(tree), row, expected(row), value)


@pytest.mark.parametrize(("first", "second", "tree"), list(binary()), ids=str)
def test_every_function_of_two_on_all_pairs(first, second, tree):
    """Functions of two arguments on all pairs of hostile values."""
    found = pairs(first, second)

    compare(tree, found, table(found), close if tree.function in INEXACT else same)


@pytest.mark.slow
@given(st.data())
@settings(SETTINGS, max_examples=2_000)
def test_many_random_scalars(data):
    """Two thousand random scalars."""
    one_random_scalar(data)


@given(st.data())
@SETTINGS
def test_random_scalars(data):
    """Random well-typed scalars on random hostile rows."""
    one_random_scalar(data)


def one_random_scalar(data):
    """Draw a scalar and rows, and compare."""
    kind = data.draw(st.sampled_from(list(NATIVE)))
    tree = data.draw(RANDOM[kind])
    found = data.draw(st.lists(rows(SCHEMA), min_size=1, max_size=8))

    compare(tree, found, table(found))


@given(st.data())
@SETTINGS
def test_random_predicates(data):
    """Random predicates, as they are."""
    tree = data.draw(PREDICATES)
    found = data.draw(st.lists(rows(SCHEMA), min_size=1, max_size=8))

    compare(tree, found, table(found))


@given(st.data())
@SETTINGS
def test_random_scalars_with_logarithms_do_not_raise(data):
    """With exp, ln, log10 and power inside, last digits may differ; nothing raises, types stay."""
    tree = data.draw(REALS)
    found = data.draw(st.lists(rows(SCHEMA), min_size=1, max_size=8))
    (values,) = computed(table(found), [tree])

    assert all(value is None or isinstance(value, float) for value in values)


def test_nesting_costs_no_more_than_its_length():
    """Guards repeat what they guard: 60 levels of them are quick all the same, in SELECT and in WHERE."""
    tree = Column("float0")
    for level in range(28):
        tree = Call(FunctionName.ADD, (Call(FunctionName.SQRT, (tree,)), Literal(float(level))))
    check(Compare(tree, Operator.GT, Literal(1.5)), SCHEMA)
    data = table(hostile_rows())
    where = Compare(tree, Operator.GT, Literal(1.5))
    engine = open_table(data)
    query = Query("data", (), None, where, counting("n"), PrivacyUnit(), Bounds())

    assert sum(oracle(where, SCHEMA)(row) is True for row in hostile_rows()) == engine.measure(query, 1)[0, 0]


def test_unsigned_columns_and_days_out_of_range():
    """Integers beyond int64 are NULL inside functions, and days and times outside the years 1 to 9999 everywhere."""
    data = pa.table(
        {
            "x": pa.array([2**64 - 1, 5, None], pa.uint64()),
            "d": pa.array([2**31 - 1, 0, -(2**31)], pa.int32()).cast(pa.date32()),
            "t": pa.array([2**63 - 1, 0, -(2**63)], pa.int64()).cast(pa.timestamp("us")),
            "row": pa.array([0, 1, 2]),
        }
    )
    x, d, t = map(Column, "xdt")
    found = computed(
        data,
        [
            Call(FunctionName.ADD, (x, Literal(0))),
            Compare(x, Operator.GT, Literal(2**63)),
            Call(FunctionName.EXTRACT, (Literal("year"), d)),
            Call(FunctionName.DATE_TRUNC, (Literal("week"), t)),
            Cast(t, Type.DATE),
            Negation(IsNull(d)),
        ],
    )
    epoch = dt.datetime(1970, 1, 1)

    assert found[0] == [None, 5, None]
    assert found[1] == [True, False, None]
    assert found[2] == [None, 1970, None]
    assert found[3] == [None, epoch - dt.timedelta(days=3), None]
    assert found[4] == [None, epoch.date(), None]
    assert found[5] == [False, True, False]


def test_dictionaries_and_constants_are_no_way_around_the_guards(tmp_path):
    """Columns stored as dictionaries or as one repeated value are computed as a whole by DuckDB: guards hold there."""
    import pyarrow.parquet as pq

    floats = [value for value in HOSTILE[Type.FLOAT] for _ in range(50)]
    data = pa.table({"f": pa.array(floats), "one": pa.array([-1.0] * len(floats))})
    pq.write_table(data, tmp_path / "f.parquet", use_dictionary=True)
    engine = open_table(tmp_path / "f.parquet")
    for name, function in itertools.product(
        ("f", "one"), (FunctionName.SQRT, FunctionName.LN, FunctionName.LOG10, FunctionName.EXP)
    ):
        tree = Call(function, (Column(name),))
        where = Compare(tree, Operator.GE, Literal(0.5))
        expected = oracle(where, engine.schema)
        count = sum(expected({"f": value, "one": -1.0}) is True for value in floats)

        query = Query("f", (), None, where, counting("n"), PrivacyUnit(), Bounds())
        assert np.array([[count]]).tolist() == engine.measure(query, 1).tolist()
