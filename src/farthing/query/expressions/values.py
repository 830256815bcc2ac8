"""The leaves of expressions, columns and constants, and the names of comparisons and functions."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import TypeAlias

from farthing.errors import UnsupportedQuery
from farthing.query.schema import Type

Value: TypeAlias = bool | int | float | str | date | datetime


class Operator(StrEnum):
    """The six comparisons."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def flipped(self) -> Operator:
        """Return the operator for swapped sides: a < b is b > a."""
        return _FLIPPED[self]


_FLIPPED = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table, by name."""

    name: str

    def canonical(self) -> str:
        """Return the identity text."""
        return "column " + json.dumps(self.name)

    def __str__(self) -> str:
        return self.name if self.name.isidentifier() else '"' + self.name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant: a truth value, a 64-bit integer, a finite number, a text, a date or a time without zone.

    1, 1.0 and TRUE are three constants: x + 1 is an integer where x is, x + 1.0 never is.
    """

    value: Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    def __post_init__(self) -> None:
        value = self.value
        if isinstance(value, float) and not math.isfinite(value):
            raise refused("number out of range", "a number in a question is finite", value)
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise refused("number out of range", "a whole number in a question fits in 64 bits", value)
        if isinstance(value, datetime) and value.tzinfo is not None:
            step = "write the time without zone, in UTC where the table has zones"
            raise refused("time zone", "times in a question have no zone", value, step)
        if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise refused("broken text", "text in a question is valid Unicode", ascii(value))

    @property
    def type(self) -> Type:
        """Return the type of the constant."""
        for python, kind in _LITERAL_TYPES:
            if isinstance(self.value, python):
                return kind
        raise refused("literal", "a constant is a truth value, number, text, date or time", type(self.value).__name__)

    def canonical(self) -> str:
        """Return the identity text; 15.0 and 15 are one constant, and so are 0.0 and -0.0."""
        value = self.value
        if type(value) is int:  # of long lists most are
            return f"{_INTEGER} {value}"
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            return f"{_INTEGER} {int(value)}"
        kind = self.type
        shown = json.dumps(value) if isinstance(value, str | bool | int | float) else value.isoformat()
        return f"{kind.value} {shown}"

    def __str__(self) -> str:
        match self.value:
            case bool():
                return str(self.value).upper()
            case int() | float():
                return repr(self.value)
            case _:
                return "'" + str(self.value).replace("'", "''") + "'"


_INTEGER = Type.INTEGER.value

# bool before int and datetime before date: each is a subclass of the other.
_LITERAL_TYPES: tuple[tuple[type, Type], ...] = (
    (bool, Type.BOOLEAN),
    (int, Type.INTEGER),
    (float, Type.FLOAT),
    (str, Type.STRING),
    (datetime, Type.TIMESTAMP),
    (date, Type.DATE),
)


class FunctionName(StrEnum):
    """Every function of the language. Arguments are checked by `typing`; each is total: NULL where it has no value."""

    NEGATE = "-x"
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    INTEGER_DIVIDE = "//"
    MODULO = "%"
    ABS = "abs"
    SIGN = "sign"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"
    TRUNC = "trunc"
    SQRT = "sqrt"
    EXP = "exp"
    LN = "ln"
    LOG10 = "log10"
    POWER = "power"
    LEAST = "least"
    GREATEST = "greatest"
    COALESCE = "coalesce"
    NULLIF = "nullif"
    LOWER = "lower"
    UPPER = "upper"
    LENGTH = "length"
    SUBSTRING = "substring"
    TRIM = "trim"
    LTRIM = "ltrim"
    RTRIM = "rtrim"
    CONCAT = "||"
    REPLACE = "replace"
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    CONTAINS = "contains"
    LIKE = "like"
    DATE_TRUNC = "date_trunc"
    EXTRACT = "extract"
    DAYS_BETWEEN = "days_between"


Operand: TypeAlias = Column | Literal


def refused(
    construct: str, rule: str, got: object, next_step: str = "compare columns with constants, joined by AND, OR, NOT"
) -> UnsupportedQuery:
    """Return the refusal of an ill-formed or ill-typed expression."""
    return UnsupportedQuery(
        f"{construct} in an expression", construct=construct, rule=rule, got=got, next_step=next_step
    )
