"""What each ibis operation is in the closed expression language: the whole whitelist, by the operations' names."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from farthing.errors import UnsupportedQuery
from farthing.query.expressions import (
    MOST_CHOICES,
    And,
    Between,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Expression,
    FunctionName,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    Scalar,
)
from farthing.query.schema import Type
from farthing.sql.meeting import Meeting, alike
from farthing.sql.scalars import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.query.schema import Schema

RULE: Final = "an ibis expression is made of columns, constants and the functions of the language"


class OperationReader(Meeting, Protocol):
    """Reads the operations of one ibis expression; `sql.from_ibis` has what does."""

    @property
    def schema(self) -> Schema:
        """The columns of the table."""

    def predicate(self, operation: Any, depth: int) -> Expression:
        """Return a predicate."""

    def scalar(self, operation: Any, depth: int) -> Scalar:
        """Return a scalar."""

    def arguments(self, operation: Any, depth: int) -> tuple[Scalar, ...]:
        """Return every argument of an operation, a list of them in their place."""


Rule: TypeAlias = "Callable[[OperationReader, Any, int], Any]"
"""What an operation is in the language."""


def refused(construct: str, next_step: str) -> UnsupportedQuery:
    """Return a refusal by name."""
    return UnsupportedQuery(f"refused: {construct}", construct=construct, rule=RULE, next_step=next_step)


def _field(reader: OperationReader, operation: Any, depth: int) -> Scalar:  # noqa: ARG001  # all rules are called alike
    """Return a column of the table itself, not one that was computed before."""
    import ibis.expr.operations as ops

    if not isinstance(operation.rel, ops.PhysicalTable):
        raise refused(
            f"column {operation.name!r} of {type(operation.rel).__name__}", "write it with columns of the table itself"
        )
    reader.schema.require(operation.name)
    return Column(operation.name)


def _literal(reader: OperationReader, operation: Any, depth: int) -> Scalar:  # noqa: ARG001
    """Return a constant."""
    value = operation.value
    if isinstance(value, Decimal):
        value = float(value)
    if value is None:
        raise refused("NULL as a value", "test with .isnull(), or leave the value out")
    if not isinstance(value, bool | int | float | str | date | datetime):
        raise refused(f"a constant of type {type(value).__name__}", "use numbers, texts, truth values, dates, times")
    return Literal(value)


def _call(function: FunctionName) -> Rule:
    """Return the rule of an operation that is a function of all its arguments."""
    return lambda reader, operation, depth: Call(function, reader.arguments(operation, depth))


def _rounded(reader: OperationReader, operation: Any, depth: int) -> Scalar:
    """Return a rounded number; no digits are none."""
    value, *digits = reader.arguments(operation, depth)
    return Call(FunctionName.ROUND, (value, *(place for place in digits if place != Literal(0))))


def _extract(part: str) -> Rule:
    """Return the rule of a part of a date."""
    return lambda reader, operation, depth: Call(
        FunctionName.EXTRACT, (Literal(part), reader.scalar(operation.arg, depth))
    )


def _truncate(reader: OperationReader, operation: Any, depth: int) -> Scalar:
    """Return a truncated date or time."""
    unit = operation.unit.name.lower()
    return Call(FunctionName.DATE_TRUNC, (Literal(unit), reader.scalar(operation.arg, depth)))


def _weekday(reader: OperationReader, operation: Any, depth: int) -> Scalar:
    """Return the day of the week, Monday 0."""
    day = Call(FunctionName.EXTRACT, (Literal("dow"), reader.scalar(operation.arg, depth)))
    return Call(FunctionName.SUBTRACT, (day, Literal(1)))


def _substring(reader: OperationReader, operation: Any, depth: int) -> Scalar:
    """Return a part of a text; ibis counts from 0."""
    text, start = reader.scalar(operation.arg, depth), reader.scalar(operation.start, depth)
    match start:
        case Literal(int() as first):
            start = Literal(first + 1)
        case _:
            start = Call(FunctionName.ADD, (start, Literal(1)))
    rest = () if operation.length is None else (reader.scalar(operation.length, depth),)
    return Call(FunctionName.SUBSTRING, (text, start, *rest))


def _cast(reader: OperationReader, operation: Any, depth: int) -> Scalar:
    """Return a cast."""
    to = operation.to
    for test, kind in (
        (to.is_boolean, Type.BOOLEAN),
        (to.is_integer, Type.INTEGER),
        (to.is_floating, Type.FLOAT),
        (to.is_string, Type.STRING),
        (to.is_date, Type.DATE),
        (to.is_timestamp, Type.TIMESTAMP),
    ):
        if test() and not getattr(to, "timezone", None):
            return Cast(reader.scalar(operation.arg, depth), kind)
    raise refused(f"cast to {to}", "cast to boolean, int64, float64, string, date or timestamp")


def _date(reader: OperationReader, operation: Any, depth: int) -> Scalar:
    """Return the date of a time."""
    return Cast(reader.scalar(operation.arg, depth), Type.DATE)


def _days(reader: OperationReader, operation: Any, depth: int) -> Scalar:
    """Return the days between two dates: left - right."""
    part = getattr(operation, "part", None)
    if getattr(part, "value", "day") != "day":
        raise refused("a difference in other units", 'write a.delta(b, unit="day")')
    before, after = reader.scalar(operation.right, depth), reader.scalar(operation.left, depth)
    return Call(FunctionName.DAYS_BETWEEN, (before, after))


def _clip(reader: OperationReader, operation: Any, depth: int) -> Scalar:
    """Return a clamped value: NULL stays NULL."""
    value = clamped = reader.scalar(operation.arg, depth)
    for end, function in ((operation.lower, FunctionName.GREATEST), (operation.upper, FunctionName.LEAST)):
        if end is not None:
            clamped = Call(function, (clamped, reader.scalar(end, depth)))
    return Case(((Not(IsNull(value)), clamped),))


def _searched(reader: OperationReader, operation: Any, depth: int) -> Scalar:
    """Return a CASE with conditions."""
    return _chosen(reader, list(operation.cases), operation, depth)


def _simple(reader: OperationReader, operation: Any, depth: int) -> Scalar:
    """Return a CASE that compares one value with others."""
    import ibis.expr.operations as ops

    conditions = [ops.Equals(operation.base, case) for case in operation.cases]
    return _chosen(reader, conditions, operation, depth)


def _chosen(reader: OperationReader, conditions: list[Any], operation: Any, depth: int) -> Scalar:
    """Return a CASE; NULL results leave the value out."""
    read = [reader.predicate(condition, depth) for condition in conditions]
    values = [_value(reader, result, depth) for result in operation.results]
    found = cases(list(zip(read, values, strict=True)), _value(reader, operation.default, depth))
    return _some(found)


def _if_else(reader: OperationReader, operation: Any, depth: int) -> Scalar:
    """Return one of two values."""
    branch = reader.predicate(operation.bool_expr, depth), _value(reader, operation.true_expr, depth)
    return _some(cases([branch], _value(reader, operation.false_null_expr, depth)))


def _some(scalar: Scalar | None) -> Scalar:
    """Refuse a CASE without a value."""
    if scalar is None:
        raise refused("a case without a value", "give one branch a value that is not NULL")
    return scalar


def _value(reader: OperationReader, operation: Any, depth: int) -> Scalar | None:
    """Return a value, None for NULL."""
    name = type(operation).__name__
    if operation is None or (name == "Literal" and operation.value is None):
        return None
    if name == "Cast" and type(operation.arg).__name__ == "Literal" and operation.arg.value is None:
        return None
    return reader.scalar(operation, depth)


def _compared(operator: Operator) -> Rule:
    """Return the rule of a comparison."""

    def rule(reader: OperationReader, operation: Any, depth: int) -> Expression:
        left, right = alike(reader, *reader.arguments(operation, depth))
        return Compare(left, operator, right)

    return rule


def _chain(reader: OperationReader, operation: Any, depth: int) -> Expression:
    """Return a chain of one connective, without recursing along it."""
    parts, waiting = [], [operation]
    while waiting:
        current = waiting.pop()
        if type(current) is type(operation):
            waiting += [current.right, current.left]
        else:
            parts.append(reader.predicate(current, depth))
    return And(tuple(parts)) if type(operation).__name__ == "And" else Or(tuple(parts))


def _among(reader: OperationReader, operation: Any, depth: int) -> Expression:
    """Return a membership test over constants."""
    value = reader.scalar(operation.value, depth)
    if len(operation.options) > MOST_CHOICES:
        raise refused(
            f"isin of more than {MOST_CHOICES:,} constants", "list them in keys=, or join a public table of them"
        )
    choices = [alike(reader, reader.scalar(option, depth), value)[0] for option in operation.options]
    constants = tuple(choice for choice in choices if isinstance(choice, Literal))
    if not constants or len(constants) < len(choices):
        raise refused("isin of anything but constants", "write column.isin([1, 2, 3])")
    return In(value, constants)


def _identical(reader: OperationReader, operation: Any, depth: int) -> Expression:
    """Return a comparison for which NULL is one more value."""
    left, right = alike(reader, *reader.arguments(operation, depth))
    there = And((Not(IsNull(left)), Not(IsNull(right)), Compare(left, Operator.EQ, right)))
    return Or((And((IsNull(left), IsNull(right))), there))


@cache
def predicates() -> dict[str, Rule]:
    """Return the whole whitelist of predicates, by the names of ibis' operations."""
    return {
        "Equals": _compared(Operator.EQ),
        "NotEquals": _compared(Operator.NE),
        "Less": _compared(Operator.LT),
        "LessEqual": _compared(Operator.LE),
        "Greater": _compared(Operator.GT),
        "GreaterEqual": _compared(Operator.GE),
        **dict.fromkeys(("And", "Or"), _chain),
        "Not": lambda reader, operation, depth: Not(reader.predicate(operation.arg, depth)),
        "IsNull": lambda reader, operation, depth: IsNull(reader.scalar(operation.arg, depth)),
        "NotNull": lambda reader, operation, depth: Not(IsNull(reader.scalar(operation.arg, depth))),
        "Between": lambda reader, operation, depth: Between(*alike(reader, *reader.arguments(operation, depth))),
        "InValues": _among,
        "IdenticalTo": _identical,
    }


@cache
def scalars() -> dict[str, Rule]:
    """Return the whole whitelist of values, by the names of ibis' operations."""
    plain = {
        "Add": FunctionName.ADD, "Subtract": FunctionName.SUBTRACT, "Multiply": FunctionName.MULTIPLY, "Divide":
        FunctionName.DIVIDE, "Modulus": FunctionName.MODULO, "Negate": FunctionName.NEGATE, "Power":
        FunctionName.POWER, "Abs": FunctionName.ABS, "Sign": FunctionName.SIGN, "Floor": FunctionName.FLOOR, "Ceil":
        FunctionName.CEIL, "Sqrt": FunctionName.SQRT, "Exp": FunctionName.EXP, "Ln": FunctionName.LN, "Log10":
        FunctionName.LOG10, "Least": FunctionName.LEAST, "Greatest": FunctionName.GREATEST, "Coalesce":
        FunctionName.COALESCE, "NullIf": FunctionName.NULLIF, "Lowercase": FunctionName.LOWER, "Uppercase":
        FunctionName.UPPER, "StringLength": FunctionName.LENGTH, "StringConcat": FunctionName.CONCAT, "StartsWith":
        FunctionName.STARTS_WITH, "EndsWith": FunctionName.ENDS_WITH, "StringContains": FunctionName.CONTAINS,
        "StringSQLLike": FunctionName.LIKE, "Strip": FunctionName.TRIM, "LStrip": FunctionName.LTRIM, "RStrip":
        FunctionName.RTRIM, "StringReplace": FunctionName.REPLACE,
    }  # fmt: skip
    parts = {
        "ExtractYear": "year", "ExtractQuarter": "quarter", "ExtractMonth": "month", "ExtractDay": "day",
        "ExtractHour": "hour", "ExtractMinute": "minute", "ExtractSecond": "second", "ExtractDayOfYear": "doy",
        "ExtractWeekOfYear": "week",
    }  # fmt: skip
    return {
        "Field": _field,
        "Literal": _literal,
        **{name: _call(function) for name, function in plain.items()},
        **{name: _extract(part) for name, part in parts.items()},
        "Round": _rounded,
        "DayOfWeekIndex": _weekday,
        **dict.fromkeys(("DateTruncate", "TimestampTruncate"), _truncate),
        **dict.fromkeys(("Cast", "TryCast"), _cast),
        "Date": _date,
        **dict.fromkeys(("DateDelta", "TimestampDelta", "DateDiff"), _days),
        "Substring": _substring,
        "Clip": _clip,
        "SearchedCase": _searched,
        "SimpleCase": _simple,
        "IfElse": _if_else,
    }
