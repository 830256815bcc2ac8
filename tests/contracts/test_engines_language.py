"""PostgreSQL and Spark compute every expression, on every hostile value, as the evaluator does, and never raise."""

from __future__ import annotations

import itertools
import math
from functools import cache

import pytest
from backends import ARROW, FOREIGN, GATED, IN_PROCESS, SPOKEN_IN_SHORT, kept, table_on
from hostile import HOSTILE, PATTERNS, beside_constants, oracle, predicates, same, scalars
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sweeps import sweep

from farthing.engines import open_table
from farthing.engines.bounded import bounded
from farthing.engines.foreign.rows import IbisRows
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Query, Schema, Type, counting
from farthing.query.expressions import Call, Case, Cast, Column, Compare, FunctionName, IsNull, Literal, Operator
from farthing.query.expressions.signatures import CASTS, CLOCK_UNITS, DAY_PARTS, DAY_UNITS, SIGNATURES
from farthing.query.expressions.typing import type_of

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")
INEXACT = {FunctionName.EXP, FunctionName.LN, FunctionName.LOG10, FunctionName.POWER}
KINDS = {f"{kind.value}{place}": kind for kind in ARROW for place in (0, 1)}
SCHEMA = Schema.of(KINDS)
NEGATED = Call(FunctionName.NEGATE, (Column("float0"),))
ULPS = 4
BATCH = 40
CONFIG = settings(max_examples=sweep(6, 240), deadline=None,
                  derandomize=True, suppress_health_check=list(HealthCheck))  # fmt: skip


def unary():
    """Return every function of one column, every cast, and every constant argument."""
    for function, signature in SIGNATURES.items():
        if signature.constant is None and len(signature.takes) - signature.optional == 1:
            yield from (Call(function, (Column(f"{kind.value}0"),)) for kind in sorted(signature.takes[0]))
    for kind, sources in CASTS.items():
        yield from (Cast(Column(f"{source.value}0"), kind) for source in sorted(sources))
    for digits in sweep((-15, -1, 0, 2, 15), range(-15, 16)):
        yield from (Call(FunctionName.ROUND, (Column(name), Literal(digits))) for name in ("integer0", "float0"))
    yield from (Call(FunctionName.LIKE, (Column("string0"), Literal(pattern))) for pattern in PATTERNS)
    texts = [Column("string0"), *map(Literal, ("", "a", " ", "éé"))]
    yield from (Call(FunctionName.REPLACE, three) for three in itertools.product(texts, texts, texts))
    for name, clock in (("date0", ()), ("timestamp0", CLOCK_UNITS)):
        yield from (Call(FunctionName.DATE_TRUNC, (Literal(unit), Column(name))) for unit in (*DAY_UNITS, *clock))
        yield from (Call(FunctionName.EXTRACT, (Literal(part), Column(name))) for part in (*DAY_PARTS, *clock))


def binary():
    """Return every function of two columns, for all types that it takes, by those types."""
    found = {}
    for function, signature in SIGNATURES.items():
        if signature.constant is not None or len(signature.takes) < 2:
            continue
        for first, second in itertools.product(sorted(signature.takes[0]), sorted(signature.takes[1])):
            tree = Call(function, (Column(f"{first.value}0"), Column(f"{second.value}1")))
            try:
                type_of(tree, SCHEMA)
            except ValueError:
                continue
            found.setdefault((first, second), []).append(tree)
    return found


def comparisons(kind):
    """Return all comparisons of two columns of a type, and whether one is NULL, which NaN is not."""
    signs = [Operator.EQ, Operator.NE] if kind is Type.BOOLEAN else list(Operator)
    left, right = Column(f"{kind.value}0"), Column(f"{kind.value}1")
    return [IsNull(left), *(Compare(left, sign, right) for sign in signs)]


@cache
def hostile_rows():
    """Return rows that hold every hostile value of every type."""
    lists = {kind: [None, *values] for kind, values in HOSTILE.items()}
    longest = max(map(len, lists.values()))
    return [{name: lists[kind][place % len(lists[kind])] for name, kind in KINDS.items()} for place in range(longest)]


def pairs(first, second):
    """Return rows of all pairs of hostile values of two types; long texts meet a few only."""
    small = (value for value in [None, *HOSTILE[second]] if not isinstance(value, str) or len(value) < 8)
    few = list(itertools.islice(small, sweep(14, 40)))
    empty = dict.fromkeys(SCHEMA.names)
    names = (f"{first.value}0", f"{second.value}1")
    met = [
        (one, other)
        for one in [None, *HOSTILE[first]]
        for other in (
            few if not isinstance(one, str) or len(one) < 1000 else [*few[:4], *([one] if first is second else [])]
        )
    ]
    return [empty | dict(zip(names, pair, strict=True)) for pair in met]


def engine_of(kind, rows):
    """Return the engine of numbered rows."""
    numbered = [row | {"row": place} for place, row in enumerate(rows)]
    return open_table(table_on(kind, numbered, KINDS | {"row": Type.INTEGER}), name="data")


@cache
def hostile_engine(kind):
    """Return the engine of all hostile rows, once for all tests."""
    return engine_of(kind, kept(kind, hostile_rows()))


def computed(engine, trees):
    """Return what an engine makes of scalars, and of predicates, on every row: one list of values for each tree."""
    query = Query("data", (), None, None, counting("n"), PrivacyUnit(), Bounds())
    rows = IbisRows(bounded(query), engine._catalog, engine._backend)
    scalar = Column | Literal | Call | Cast | Case
    exprs = [
        rows.scalars.scalar(tree).expr if isinstance(tree, scalar) else rows.scalars.predicate(tree) for tree in trees
    ]
    names, number = [rows.show(expr, "v") for expr in exprs], rows.show(rows.scalars.scalar(Column("row")).expr, "n")
    table = engine._backend.run(rows.table(), {}).sort_by(number)
    return [table.column(name).to_pylist() for name in names]


def close(one, other):
    """Tell whether two reals are the same up to a few last digits."""
    if isinstance(one, float) and isinstance(other, float) and math.isfinite(one) and math.isfinite(other):
        return abs(one - other) <= ULPS * max(math.ulp(one), math.ulp(other))
    return same(one, other)


def agree(engine, rows, trees):
    """Hold an engine's values of trees against the evaluator's."""
    for tree, values in zip(trees, computed(engine, trees), strict=True):
        expected = oracle(tree, SCHEMA)
        alike = close if isinstance(tree, Call) and tree.function in INEXACT else same
        for row, value in zip(rows, values, strict=True):
            assert alike(expected(row), value), (str(tree), row, expected(row), value)


@pytest.mark.parametrize("kind", FOREIGN)
def test_every_function_and_cast_on_every_hostile_value(kind):
    """Functions of one argument and casts, with all their constants: the evaluator's value, and no exception."""
    trees = list(unary())

    assert len(trees) > sweep(100, 150)
    for start in range(0, len(trees), BATCH):
        agree(hostile_engine(kind), kept(kind, hostile_rows()), trees[start : start + BATCH])


@pytest.mark.parametrize("kind", GATED)
def test_what_optimizers_rewrite_beside_constants(kind):
    """No text becomes a pattern, and what leaves 64 bits is NULL, where a constant stands beside it."""
    rows = kept(kind, short_rows())
    agree(engine_of(kind, rows), rows, beside_constants())


@pytest.mark.parametrize("kind", FOREIGN)
def test_every_function_of_two_on_all_pairs(kind):
    """Functions of two arguments on all pairs of hostile values."""
    for (first, second), trees in binary().items():
        rows = kept(kind, pairs(first, second))
        agree(engine_of(kind, rows), rows, [*trees, *(comparisons(first) if first is second else [])])


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [*IN_PROCESS, "databricks", "snowflake", "trino"])
def test_comparisons_of_all_pairs_of_reals(kind):
    """NULL beside NaN is unknown, whichever comes first."""
    rows = pairs(Type.FLOAT, Type.FLOAT)
    agree(engine_of(kind, rows), rows, comparisons(Type.FLOAT))


@pytest.mark.parametrize("kind", FOREIGN)
@CONFIG
@given(data=st.data())
def test_random_expressions(kind, data):
    """Random well-typed scalars and predicates on all hostile rows."""
    of = data.draw(st.sampled_from(list(ARROW)))
    exact = frozenset(INEXACT)
    tree = data.draw(scalars(SCHEMA, of, 4, without=exact) | predicates(SCHEMA, 3, without=exact))

    agree(hostile_engine(kind), kept(kind, hostile_rows()), [tree])


def test_sqlite_in_short():
    """Some functions on some values; all of them on all values take minutes."""
    row = dict.fromkeys(SCHEMA.names)
    rows = [row | {"integer0": 7, "integer1": -2, "string0": "aB%"}, row | {"integer0": 2**63 - 1, "integer1": 2}]
    names = (FunctionName.ADD, FunctionName.MODULO, FunctionName.LEAST)
    trees = [Call(each, (Column("integer0"), Column("integer1"))) for each in names]

    agree(engine_of("sqlite", rows), rows, [*trees, Call(FunctionName.LIKE, (Column("string0"), Literal("a_%")))])


def short_rows():
    """Return the hostile rows without the long texts."""
    return [row for row in hostile_rows() if len(row["string0"] or "") < 100]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [*IN_PROCESS, *(pytest.param(k, marks=marks) for k, marks in SPOKEN_IN_SHORT.items())])
def test_engines_in_process_in_short(kind):
    """Every fifth function and cast on every short hostile value; the others, and all pairs, are in the slow tier."""
    rows, trees = short_rows(), [*unary(), *(tree for trees in binary().values() for tree in trees)]
    engine = engine_of(kind, rows)
    agree(engine, rows, trees[:: sweep(5, 1)])


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "word", "bug", "tree"), [
    ("clickhouse", "multiply", "{0} * {1}", Call(FunctionName.MULTIPLY, (Column("integer0"), Column("integer1")))),
    ("clickhouse", "equal", "{0} = {1}", Compare(Column("float0"), Operator.EQ, Column("float1"))),
    pytest.param("bigquery", "equal", "{0} = {1}", Compare(Column("float0"), Operator.EQ, Column("float1")),
                 marks=SPOKEN_IN_SHORT["bigquery"]),
    ("databricks", "upper", "UPPER({0})", Call(FunctionName.UPPER, (Column("string0"),))),
    ("snowflake", "mod", "MOD({0}, {1} + 1)", Call(FunctionName.MODULO, (Column("integer0"), Literal(3)))),
    ("trino", "days", "DATE_DIFF('DAY', {1}, {0})",
     Call(FunctionName.DAYS_BETWEEN, (Column("date0"), Cast(Column("timestamp1"), Type.DATE)))),
    ("clickhouse", "length", "toInt64(length({0}))", Call(FunctionName.LENGTH, (Column("string0"),))),
    ("datafusion", "equal", "{0} = {1}", Compare(NEGATED, Operator.EQ, Literal(0.0))),
    ("datafusion", "starts_with", "starts_with({0}, {1})",
     Call(FunctionName.STARTS_WITH, (Column("string0"), Literal("_")))),
    ("datafusion", "subtract", "TRY_CAST(CAST({0} AS DECIMAL(38, 0)) - CAST({1} AS DECIMAL(38, 0)) AS BIGINT)",
     Compare(Call(FunctionName.SUBTRACT, (Column("integer0"), Literal(1))), Operator.LT, Literal(0))),
    ("datafusion", "lower", "lower({0})", Call(FunctionName.LOWER, (Column("string0"),))),
])  # fmt: skip
def test_a_word_that_is_spelled_as_the_engine_would_have_it_is_seen(kind, word, bug, tree, monkeypatch):
    """Planted: products that wrap, NaN that equals nothing, two zeros, letters counted in bytes, letters of Unicode."""
    rows = short_rows()
    engine = engine_of(kind, rows)
    agree(engine, rows, [tree])
    monkeypatch.setitem(engine._backend.dialect.words, word, bug)
    with pytest.raises(AssertionError):
        agree(engine, rows, [tree])


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "word", "bug", "tree"), [
    ("clickhouse", "div", "intDiv({0}, 0)", Call(FunctionName.INTEGER_DIVIDE, (Column("integer0"), Literal(3)))),
    ("datafusion", "matching", "{0}", Cast(Column("string0"), Type.TIMESTAMP)),
    ("datafusion", "first_of_quarter", "make_date(date_part('year', {0}), date_part('quarter', {0}) * 3 - 2, 1)",
     Call(FunctionName.DATE_TRUNC, (Literal("quarter"), Column("date0")))),
])  # fmt: skip
def test_a_word_that_fails_on_a_row_is_seen(kind, word, bug, tree, monkeypatch):
    """Planted: quotients, texts and days without a value that fail; one row decides between an answer and an error."""
    rows = short_rows()
    engine = engine_of(kind, rows)
    monkeypatch.setitem(engine._backend.dialect.words, word, bug)
    with pytest.raises(Exception, match=r"(?i)division by zero|parsing|parse date|could not"):
        agree(engine, rows, [tree])


@pytest.mark.parametrize("kind", FOREIGN)
def test_nesting_costs_no_more_than_its_length(kind):
    """Guards repeat what they guard: deep nests of them are computed all the same."""
    tree = Column("float0")
    for level in range(28):
        tree = Call(FunctionName.ADD, (Call(FunctionName.SQRT, (tree,)), Literal(float(level))))

    agree(hostile_engine(kind), kept(kind, hostile_rows()), [tree])


def test_the_comparison_sees_a_wrong_value():
    """The suite would notice a last digit, a lost sign of NULL, or another type."""
    assert not same(1.0, math.nextafter(1.0, 2))
    assert not same(None, 0)
    assert not same(1, 1.0)
    assert not close(1.0, 1.0 + 1e-14)
