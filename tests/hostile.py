"""Hostile values of every type, and random well-typed expressions over the whole language.

Whoever compares an engine with the evaluator draws `scalars(schema, type)` or `predicates(schema)`, and rows from
`rows(schema)`; `oracle(tree, schema)` is the evaluator as a function of a row. Results are compared by `same`.
"""

# ruff: noqa: DTZ001  times in questions have no zone

from __future__ import annotations

import datetime as dt
import math
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from farthing.query.expressions import (
    And,
    Between,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    FunctionName,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    Scalar,
    explicit,
)
from farthing.query.expressions.signatures import CASTS, CLOCK_UNITS, DAY_PARTS, DAY_UNITS, MOMENT, NUMBER
from farthing.query.schema import REAL_TYPES, Schema, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

INTEGERS = [
    *(0, 1, -1, 2, 7, -7, 100, 2**31, -(2**31), 10**15, 3037000500, -3037000500),
    *(2**53 - 1, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1),
]
FLOATS = [
    *(0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.5, -2.5, 0.1, 1 / 3, 0.49999999999999994, 4503599627370497.5),
    *(345.0, 345.1, -345.0, -346.0, 709.0, 1e15, 2.0**53, 2.0**63, -(2.0**63), 9.223372036854775e18, 1e19),
    *(1e150, 1.1e150, -1e150, 1e-150, 0.9e-150, 1e300, -1e300, 1.7976931348623157e308, 5e-324, -5e-324, 2.3e-308),
    *(math.inf, -math.inf, math.nan),
]
STRINGS = [
    *(
        "",
        " ",
        "  a  ",
        "a",
        "A",
        "aA",
        "zZ[`@{",
        "%",
        "_",
        "\\",
        "\\%",
        "a_b%c",
        "'",
        '"',
        "--",
        "NULL",
        "\n",
        "\t a\r\n",
    ),
    *(
        "é",
        "É",
        "e\u0301",
        "ß",
        "İ",
        "ı",
        "ſ",
        "K",
        "日本語",
        "\u202e",
        "\u200d",
        "\ufeff",
        "\U0001f600",
        "👩‍👩‍👧",
        "\U0010ffff",
    ),
    *(
        "0",
        "-0",
        "+1",
        "007",
        " 1",
        "1 ",
        "1.",
        ".5",
        "1.5",
        "-1.5e3",
        "1e99",
        "1e-99",
        "1e100",
        "1E5",
        "1e+05",
        "0x10",
    ),
    *("1_000", "1,5", "٣", "１", "²", "nan", "NaN", "inf", "Infinity", "-", "+", "e5", "1e", "123456789012345678"),
    *("1234567890123456789", "-9223372036854775808", "123456789012345", "1234567890123456", "0.1234567890123456"),
    *("true", "false", "TRUE", "t", "1970-01-01", "2013-02-29", "2012-02-29", "0000-01-01", "0001-01-01", "9999-12-31"),
    *("10000-01-01", "2013-1-1", "2013-01-01 ", "2013-13-01", "2013-01-01 00:00:00", "2013-01-01T23:59:59.999999"),
    *("2013-01-01 24:00:00", "2013-01-01 23:59:60", "2013-01-01 12:30:00.5", "2013-01-01 12:30:00.1234567"),
    *("2013-01-01 12:30", "2013-01-01 12:30:00Z", "2013-01-01\n", "infinity", "epoch", "now", "today"),
    *("ab" * 3000, "é" * 2**16, "x" * 2**19),
]
"""Text without U+0000, which PostgreSQL cannot hold; NUL_STRINGS is for the engines that can."""

NUL_STRINGS = ["\x00", "a\x00b", "1\x00"]
BOOLEANS = [True, False]
DATES = [
    *(dt.date(1, 1, 1), dt.date(1, 1, 2), dt.date(1582, 10, 10), dt.date(1900, 2, 28), dt.date(1969, 12, 31)),
    *(dt.date(1970, 1, 1), dt.date(2000, 2, 29), dt.date(2012, 12, 31), dt.date(2013, 1, 31), dt.date(2016, 1, 3)),
    *(dt.date(2021, 1, 3), dt.date(2024, 12, 30), dt.date(9999, 12, 30), dt.date(9999, 12, 31)),
]
TIMES = [
    *(dt.datetime(1, 1, 1), dt.datetime(1, 1, 1, 0, 0, 0, 1), dt.datetime(1883, 11, 18, 12, 3, 58)),
    *(dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1), dt.datetime(2013, 3, 31, 2, 30)),
    *(dt.datetime(2013, 1, 31, 12, 30, 1, 5), dt.datetime(2013, 1, 31, 12, 30, 1, 500000)),
    *(dt.datetime(2016, 12, 31, 23, 59, 59), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)),
]
HOSTILE: dict[Type, list[Any]] = {
    Type.INTEGER: INTEGERS,
    Type.FLOAT: FLOATS,
    Type.STRING: STRINGS,
    Type.BOOLEAN: BOOLEANS,
    Type.DATE: DATES,
    Type.TIMESTAMP: TIMES,
}
PATTERNS = [
    "",
    "%",
    "_",
    "a%",
    "%a",
    "%a%",
    "a_",
    "__",
    "%\\%",
    "1%-%",
    "%_b\\%c",
    "é%",
    "_\U0001f600",
    "[a]",
    ".*",
    "^a$",
]
TYPES = list(HOSTILE)
MARKS = ["", "_", "%", "\\", "a_", "\\%", "_b%", "%c", "[a", "'"]
"""Constant texts with letters that a pattern would read as more than letters."""


def rows(schema: Schema) -> st.SearchStrategy[dict[str, Any]]:
    """Return rows of hostile values, NULL among them."""
    columns = {name: st.none() | st.sampled_from(HOSTILE[_plain(kind)]) for name, kind in schema.columns}
    return st.fixed_dictionaries(columns)


def oracle(tree: Any, schema: Schema) -> Callable[[Mapping[str, Any]], Any]:
    """Return what a scalar or predicate is on a row, by the evaluator."""
    from farthing.engines.evaluate import evaluate, holds

    ready = explicit(tree, schema)
    return lambda row: evaluate(ready, row) if isinstance(ready, Scalar) else holds(ready, row)


def same(one: Any, other: Any, *, near: bool = False) -> bool:
    """Tell whether two values are one: NaN is NaN, zero has no sign; `near` forgives the last digits of a real."""
    if isinstance(one, float) and isinstance(other, float) and not isinstance(one, bool):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other or (near and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12))
    return type(one) is type(other) and one == other


def literals(kind: Type) -> st.SearchStrategy[Literal]:
    """Return constants of a type; short ones, as people write them."""
    return st.sampled_from([value for value in HOSTILE[kind] if _may_be_constant(value)]).map(Literal)


@cache
def scalars(
    schema: Schema, kind: Type, depth: int = 4, without: frozenset[FunctionName] = frozenset()
) -> st.SearchStrategy[Any]:
    """Return well-typed random scalars of a type, at most `depth` functions deep.

    Args:
        schema: the columns.
        kind: the type of the scalar; not DECIMAL, not OTHER.
        depth: how deep functions may be nested.
        without: functions that are left out: EXP, LN, LOG10 and POWER, say, where last digits matter.
    """
    names = [name for name, of in schema.columns if _plain(of) is kind]
    leaf = literals(kind)
    if names:
        leaf = st.sampled_from(names).map(Column) | leaf
    if depth <= 0:
        return leaf
    inside = {of: st.deferred(lambda of=of: scalars(schema, of, depth - 1, without)) for of in TYPES}
    tests = st.deferred(lambda: predicates(schema, depth - 1, without))
    calls = [draw for function, draw in _calls(kind, inside) if function not in without]
    casts = [st.builds(Cast, inside[of], st.just(kind)) for of in TYPES if of in CASTS[kind]]
    cases = st.builds(
        Case, st.lists(st.tuples(tests, inside[kind]), min_size=1, max_size=2).map(tuple), st.none() | inside[kind]
    )
    return st.one_of(leaf, *calls, *casts, cases)


@cache
def predicates(
    schema: Schema, depth: int = 4, without: frozenset[FunctionName] = frozenset()
) -> st.SearchStrategy[Any]:
    """Return well-typed random predicates, at most `depth` functions and connectives deep."""

    def compared(kind: Type) -> st.SearchStrategy[Any]:
        side = scalars(schema, kind, depth - 1, without)
        other = scalars(schema, Type.FLOAT, depth - 1, without) | side if kind is Type.INTEGER else side
        signs = [Operator.EQ, Operator.NE] if kind is Type.BOOLEAN else list(Operator)
        choices = st.lists(literals(kind), min_size=1, max_size=4).map(tuple)
        tests = [
            st.builds(Compare, side, st.sampled_from(signs), other),
            st.builds(In, side, choices),
            st.builds(IsNull, side),
        ]
        return st.one_of(*tests, *([] if kind is Type.BOOLEAN else [st.builds(Between, side, other, side)]))

    leaf = st.sampled_from(TYPES).flatmap(compared)
    if depth <= 1:
        return leaf
    inside = st.deferred(lambda: predicates(schema, depth - 1, without))
    several = st.lists(inside, min_size=1, max_size=3).map(tuple)
    return st.one_of(leaf, st.builds(And, several), st.builds(Or, several), st.builds(Not, inside))


def beside_constants() -> list[Any]:
    """Return what optimizers rewrite where a constant stands beside it, over integer0, integer1, float0 and string0."""
    text, tests = Column("string0"), (FunctionName.STARTS_WITH, FunctionName.ENDS_WITH, FunctionName.CONTAINS)
    found: list[Any] = [Call(test, (text, Literal(mark))) for test in tests for mark in MARKS]
    found += [Call(FunctionName.REPLACE, (text, Literal(mark), Literal("%_"))) for mark in MARKS]
    casts: list[Call | Cast] = [Cast(Column("float0"), Type.INTEGER), Cast(text, Type.INTEGER)]
    for value in [*_near_the_ends(), *casts]:
        found += [Compare(value, sign, Literal(0)) for sign in Operator]
        found += [In(value, (Literal(7), Literal(-(2**63) + 1))), Between(value, Literal(-7), Literal(2**63 - 1))]
    return found


def _near_the_ends() -> list[Call]:
    """Return arithmetic that leaves 64 bits on some rows."""
    x, y, unit = Column("integer0"), Column("integer1"), Literal(1)
    sides: list[tuple[Column | Literal, ...]] = [(x, y), (x, unit), (unit, x)]
    two = (FunctionName.ADD, FunctionName.SUBTRACT, FunctionName.MULTIPLY)
    found = [Call(function, both) for function in two for both in sides]
    found += [Call(function, (x,)) for function in (FunctionName.NEGATE, FunctionName.ABS)]
    found += [Call(FunctionName.INTEGER_DIVIDE, (x, other)) for other in (y, Literal(-1))]
    return [*found, Call(FunctionName.ROUND, (x, Literal(-1)))]


def _may_be_constant(value: Any) -> bool:
    """Tell whether a value is finite and short."""
    return math.isfinite(value) if isinstance(value, float) else not isinstance(value, str) or len(value) < 100


def _plain(kind: Type) -> Type:
    """Return the type in which a column is read."""
    return Type.FLOAT if kind in REAL_TYPES else kind


def _calls(
    kind: Type, inside: Mapping[Type, st.SearchStrategy[Any]]
) -> list[tuple[FunctionName, st.SearchStrategy[Any]]]:
    """Return strategies of calls that give a type."""
    made = _of_any(kind, inside)
    if kind in NUMBER:
        made += _of_numbers(kind, inside)
    match kind:
        case Type.FLOAT:
            number = inside[Type.FLOAT] | inside[Type.INTEGER]
            ones = (FunctionName.SQRT, FunctionName.EXP, FunctionName.LN, FunctionName.LOG10)
            made += [_call(function, number) for function in ones]
            made += [_call(function, number, number) for function in (FunctionName.DIVIDE, FunctionName.POWER)]
        case Type.INTEGER:
            made += _of_whole(inside)
        case Type.STRING:
            made += _of_text(inside)
        case Type.BOOLEAN:
            text = inside[Type.STRING]
            tests = (FunctionName.STARTS_WITH, FunctionName.ENDS_WITH, FunctionName.CONTAINS)
            made += [_call(function, text, text) for function in tests]
            made.append(_call(FunctionName.LIKE, text, st.sampled_from(PATTERNS).map(Literal)))
        case Type.DATE | Type.TIMESTAMP:
            units = DAY_UNITS if kind is Type.DATE else DAY_UNITS + CLOCK_UNITS
            made.append(_call(FunctionName.DATE_TRUNC, st.sampled_from(units).map(Literal), inside[kind]))
    return made


def _of_any(
    kind: Type, inside: Mapping[Type, st.SearchStrategy[Any]]
) -> list[tuple[FunctionName, st.SearchStrategy[Any]]]:
    """Return strategies of the calls whose type is that of their arguments; reals may meet integers."""
    one = inside[kind]
    other = one | inside[Type.INTEGER] if kind is Type.FLOAT else one
    made = [_call(FunctionName.COALESCE, other, one), _call(FunctionName.COALESCE, one, other, one)]
    made.append(_call(FunctionName.NULLIF, one, inside[Type.FLOAT] | one if kind in NUMBER else one))
    if kind is not Type.BOOLEAN:
        made += [_call(function, one, other) for function in (FunctionName.LEAST, FunctionName.GREATEST)]
        made.append(_call(FunctionName.LEAST, one, one, other))
    return made


def _of_numbers(kind: Type, inside: Mapping[Type, st.SearchStrategy[Any]]) -> list[tuple[FunctionName, Any]]:
    """Return strategies of arithmetic; a real needs one real operand."""
    one = inside[kind]
    other = one | inside[Type.INTEGER]
    two = (FunctionName.ADD, FunctionName.SUBTRACT, FunctionName.MULTIPLY)
    single = (
        FunctionName.NEGATE,
        FunctionName.ABS,
        FunctionName.SIGN,
        FunctionName.FLOOR,
        FunctionName.CEIL,
        FunctionName.TRUNC,
        FunctionName.ROUND,
    )
    made = [_call(function, one, other) for function in two] + [_call(function, other, one) for function in two]
    made += [_call(function, one) for function in single]
    return [*made, _call(FunctionName.ROUND, one, st.integers(-15, 15).map(Literal))]


def _of_whole(inside: Mapping[Type, st.SearchStrategy[Any]]) -> list[tuple[FunctionName, st.SearchStrategy[Any]]]:
    """Return strategies of calls that give integers only."""
    whole, text = inside[Type.INTEGER], inside[Type.STRING]
    made = [_call(function, whole, whole) for function in (FunctionName.INTEGER_DIVIDE, FunctionName.MODULO)]
    made.append(_call(FunctionName.LENGTH, text))
    for moment in sorted(MOMENT):
        parts = DAY_PARTS if moment is Type.DATE else DAY_PARTS + CLOCK_UNITS
        made.append(_call(FunctionName.EXTRACT, st.sampled_from(parts).map(Literal), inside[moment]))
        made.append(_call(FunctionName.DAYS_BETWEEN, inside[moment], inside[Type.DATE]))
    return made


def _of_text(inside: Mapping[Type, st.SearchStrategy[Any]]) -> list[tuple[FunctionName, st.SearchStrategy[Any]]]:
    """Return strategies of calls that give text."""
    whole, text = inside[Type.INTEGER], inside[Type.STRING]
    ones = (FunctionName.LOWER, FunctionName.UPPER, FunctionName.TRIM, FunctionName.LTRIM, FunctionName.RTRIM)
    made = [_call(function, text) for function in ones]
    made += [_call(FunctionName.SUBSTRING, text, whole), _call(FunctionName.SUBSTRING, text, whole, whole)]
    made.append(_call(FunctionName.REPLACE, text, text, text))
    return [*made, _call(FunctionName.CONCAT, text, text), _call(FunctionName.CONCAT, text, text, text)]


def _call(function: FunctionName, *arguments: st.SearchStrategy[Any]) -> tuple[FunctionName, st.SearchStrategy[Any]]:
    """Return a function with the strategy of its calls."""
    return function, st.tuples(*arguments).map(lambda drawn: Call(function, drawn))
