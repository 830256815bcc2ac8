"""The expression language of WHERE: small, closed, total and free of side effects.

Every expression has a value on every row: TRUE, FALSE or unknown (NULL), by SQL's three-valued logic; a row counts only
where it is TRUE. Types are checked against the schema before any engine sees the expression, so that no engine casts a
row's value in a way that could fail. The rules that engines differ on are fixed here:

* numbers are compared as integers when both sides are integers, as doubles otherwise (DECIMAL is read as a double);
* NaN equals NaN and is greater than every number, infinity included; -0.0 equals 0.0;
* strings are compared by code points, case included;
* a comparison with NULL is unknown.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import TypeAlias, assert_never

from farthing.errors import UnsupportedQuery
from farthing.query.schema import NUMBER_TYPES, Schema, Type

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


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: a truth value, a 64-bit integer, a finite number, a text, a date or a time without zone."""

    value: Value

    def __post_init__(self) -> None:
        value = self.value
        if isinstance(value, float) and not math.isfinite(value):
            raise _refused("number out of range", "a number in a question is finite", value)
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise _refused("number out of range", "a whole number in a question fits in 64 bits", value)
        if isinstance(value, datetime) and value.tzinfo is not None:
            raise _refused("time zone", "times in a question have no zone", value)
        if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise _refused("broken text", "text in a question is valid Unicode", ascii(value))

    @property
    def type(self) -> Type:
        """Return the type of the constant."""
        for python, kind in _LITERAL_TYPES:
            if isinstance(self.value, python):
                return kind
        raise _refused("literal", "a constant is a truth value, number, text, date or time", type(self.value).__name__)

    def canonical(self) -> str:
        """Return the identity text; 15.0 and 15 are one constant, and so are 0.0 and -0.0."""
        value = self.value
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            value = int(value)
        kind = Type.INTEGER if type(value) is int else self.type
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


# bool before int and datetime before date: each is a subclass of the other.
_LITERAL_TYPES: tuple[tuple[type, Type], ...] = (
    (bool, Type.BOOLEAN),
    (int, Type.INTEGER),
    (float, Type.FLOAT),
    (str, Type.STRING),
    (datetime, Type.TIMESTAMP),
    (date, Type.DATE),
)


class Function(StrEnum):
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
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    CONTAINS = "contains"
    LIKE = "like"
    DATE_TRUNC = "date_trunc"
    EXTRACT = "extract"
    DAYS_BETWEEN = "days_between"


@dataclass(frozen=True, slots=True)
class Call:
    """A function of scalars. Units and parts of dates, digits and patterns are constants in their argument's place."""

    function: Function
    arguments: tuple[Scalar, ...]

    def canonical(self) -> str:
        """Return the identity text."""
        return f"({self.function.value} {' '.join(argument.canonical() for argument in self.arguments)})"

    def __str__(self) -> str:
        return f"{self.function.name.lower()}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Cast:
    """The operand as another type; NULL where it has no such value."""

    operand: Scalar
    type: Type

    def canonical(self) -> str:
        """Return the identity text."""
        return f"(cast {self.type.value} {self.operand.canonical()})"

    def __str__(self) -> str:
        return f"CAST({self.operand} AS {self.type.value.upper()})"


@dataclass(frozen=True, slots=True)
class Case:
    """The value beside the first condition that is TRUE; else `otherwise`, NULL where that is None."""

    branches: tuple[tuple[Expression, Scalar], ...]
    otherwise: Scalar | None = None

    def canonical(self) -> str:
        """Return the identity text."""
        parts = [f"{condition.canonical()} {value.canonical()}" for condition, value in self.branches]
        return f"(case {' '.join(parts)} {'null' if self.otherwise is None else self.otherwise.canonical()})"

    def __str__(self) -> str:
        parts = "".join(f" WHEN {condition} THEN {value}" for condition, value in self.branches)
        return f"CASE{parts}{'' if self.otherwise is None else f' ELSE {self.otherwise}'} END"


Operand: TypeAlias = Column | Literal


@dataclass(frozen=True, slots=True)
class Compare:
    """Left compared with right; unknown when either is NULL."""

    left: Operand
    operator: Operator
    right: Operand

    def canonical(self) -> str:
        """Return the identity text: a < b and b > a are one."""
        left, right = self.left.canonical(), self.right.canonical()
        return min(f"({left} {self.operator} {right})", f"({right} {self.operator.flipped} {left})")

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class And:
    """TRUE when all operands are; at least one operand."""

    operands: tuple[Expression, ...]

    def canonical(self) -> str:
        """Return the identity text: order and repetition do not matter."""
        return _joined("and", self.operands)

    def __str__(self) -> str:
        return " AND ".join(map(_inner, self.operands))


@dataclass(frozen=True, slots=True)
class Or:
    """TRUE when any operand is; at least one operand."""

    operands: tuple[Expression, ...]

    def canonical(self) -> str:
        """Return the identity text: order and repetition do not matter."""
        return _joined("or", self.operands)

    def __str__(self) -> str:
        return " OR ".join(map(_inner, self.operands))


@dataclass(frozen=True, slots=True)
class Not:
    """TRUE when the operand is FALSE; unknown stays unknown."""

    operand: Expression

    def canonical(self) -> str:
        """Return the identity text."""
        return f"(not {self.operand.canonical()})"

    def __str__(self) -> str:
        return f"NOT ({self.operand})"


@dataclass(frozen=True, slots=True)
class IsNull:
    """TRUE when the column has no value, FALSE otherwise: never unknown."""

    column: Column

    def canonical(self) -> str:
        """Return the identity text."""
        return f"({self.column.canonical()} is null)"

    def __str__(self) -> str:
        return f"{self.column} IS NULL"


@dataclass(frozen=True, slots=True)
class In:
    """TRUE when the column equals one of the constants; unknown for NULL."""

    column: Column
    choices: tuple[Literal, ...]

    def canonical(self) -> str:
        """Return the identity text: order and repetition do not matter."""
        return f"({self.column.canonical()} in {', '.join(sorted({c.canonical() for c in self.choices}))})"

    def __str__(self) -> str:
        return f"{self.column} IN ({', '.join(map(str, self.choices))})"


@dataclass(frozen=True, slots=True)
class Between:
    """TRUE when low <= operand <= high; the same as two comparisons joined by AND."""

    operand: Operand
    low: Operand
    high: Operand

    @property
    def comparisons(self) -> tuple[Compare, Compare]:
        """Return the two comparisons this stands for."""
        return Compare(self.operand, Operator.GE, self.low), Compare(self.operand, Operator.LE, self.high)

    def canonical(self) -> str:
        """Return the identity text of the two comparisons."""
        return And(self.comparisons).canonical()

    def __str__(self) -> str:
        return f"{self.operand} BETWEEN {self.low} AND {self.high}"


Expression: TypeAlias = Compare | And | Or | Not | IsNull | In | Between
"""What is TRUE, FALSE or unknown on a row: a predicate."""

Scalar: TypeAlias = Operand | Call | Cast | Case
"""What has a value, or NULL, on a row."""


def _inner(expression: Expression) -> str:
    """Return an operand of AND or OR as people read it, in parentheses where they matter."""
    return f"({expression})" if isinstance(expression, And | Or) else str(expression)


def check(expression: Expression, schema: Schema) -> None:
    """Refuse, by name, an expression that is not well typed for a schema.

    Raises:
        UnsupportedQuery: an unknown column, or a comparison of types that do not compare.

    >>> schema = Schema.of({"dest": Type.STRING})
    >>> check(Compare(Column("dest"), Operator.EQ, Literal("ORD")), schema)
    """
    match expression:
        case Compare(left, operator, right):
            _check_comparison(left, operator, right, schema)
        case And(operands) | Or(operands):
            for operand in operands:
                check(operand, schema)
        case Not(operand):
            check(operand, schema)
        case IsNull(column):
            schema.require(column.name)
        case In(column, choices):
            for choice in choices:
                _check_comparison(column, Operator.EQ, choice, schema)
        case Between():
            for comparison in expression.comparisons:
                check(comparison, schema)
        case _:
            assert_never(expression)


def operand_type(operand: Operand, schema: Schema) -> Type:
    """Return the type of a column or constant."""
    return operand.type if isinstance(operand, Literal) else schema.require(operand.name)


def columns_of(expression: Expression) -> frozenset[str]:
    """Return the names of the columns an expression reads."""
    match expression:
        case Compare(left, _, right):
            return _names(left, right)
        case And(operands) | Or(operands):
            return frozenset().union(*(columns_of(operand) for operand in operands))
        case Not(operand):
            return columns_of(operand)
        case IsNull(column) | In(column, _):
            return _names(column)
        case Between(operand, low, high):
            return _names(operand, low, high)
        case _:
            assert_never(expression)


def _names(*operands: Operand) -> frozenset[str]:
    """Return the names among operands."""
    return frozenset(operand.name for operand in operands if isinstance(operand, Column))


def _joined(word: str, operands: tuple[Expression, ...]) -> str:
    """Return sorted, deduplicated identity texts under one connective."""
    texts = sorted({operand.canonical() for operand in operands})
    return texts[0] if len(texts) == 1 else f"({word} {' '.join(texts)})"


def _check_comparison(left: Operand, operator: Operator, right: Operand, schema: Schema) -> None:
    """Refuse a comparison whose sides do not compare."""
    kinds = operand_type(left, schema), operand_type(right, schema)
    if Type.OTHER in kinds:
        raise _refused("column type", "only numbers, texts, truth values, dates and times compare", _shown(left, right))
    if kinds[0] != kinds[1] and not set(kinds) <= NUMBER_TYPES:
        raise _refused(
            "type mismatch",
            "both sides of a comparison are of one type",
            f"{kinds[0]} {operator} {kinds[1]} in {_shown(left, right)}",
        )
    if kinds[0] is Type.BOOLEAN and operator not in (Operator.EQ, Operator.NE):
        raise _refused("order of truth values", "truth values are compared with = or <>", _shown(left, right))


def _shown(*operands: Operand) -> str:
    """Return operands as the asker wrote them, for a message."""
    return ", ".join(o.name if isinstance(o, Column) else repr(o.value)[:80] for o in operands)


def _refused(construct: str, rule: str, got: object) -> UnsupportedQuery:
    """Return the refusal of an ill-typed expression."""
    return UnsupportedQuery(
        f"{construct} in a predicate",
        construct=construct,
        rule=rule,
        got=got,
        next_step="compare columns with constants, joined by AND, OR, NOT",
    )
