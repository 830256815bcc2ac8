"""The nodes of the expression language: scalars have a value or NULL, predicates are TRUE, FALSE or unknown.

The tree is the whitelist: what has no node here cannot be asked. The rules of every function are in
docs/reference/language.md; `engines.evaluate` is their definition in code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, TypeAlias

from farthing.query.expressions.values import FunctionName, Literal, Operand, Operator
from farthing.query.schema import Type


@dataclass(frozen=True, slots=True)
class Call:
    """A function of scalars. Units and parts of dates, digits and patterns are constants in their argument's place."""

    function: FunctionName
    arguments: tuple[Scalar, ...]

    def canonical(self) -> str:
        """Return the identity text."""
        return f"({self.function.value} {' '.join(map(_typed, self.arguments))})"

    def __str__(self) -> str:
        shown = [str(argument) for argument in self.arguments]
        if self.function is FunctionName.NEGATE:
            return f"(-{shown[0]})"
        if not self.function.value.isidentifier():
            return f"({f' {self.function.value} '.join(shown)})"
        return f"{self.function.value}({', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class Cast:
    """The operand as another type; NULL where it has no value of that type."""

    operand: Scalar
    type: Type

    def canonical(self) -> str:
        """Return the identity text."""
        return f"(cast {self.type.value} {_typed(self.operand)})"

    def __str__(self) -> str:
        return f"CAST({self.operand} AS {self.type.value.upper()})"


@dataclass(frozen=True, slots=True)
class Case:
    """The value beside the first condition that is TRUE; else `otherwise`, NULL where that is None."""

    branches: tuple[tuple[Expression, Scalar], ...]
    otherwise: Scalar | None = None

    def canonical(self) -> str:
        """Return the identity text."""
        parts = [f"{condition.canonical()} {_typed(value)}" for condition, value in self.branches]
        return f"(case {' '.join(parts)} {'null' if self.otherwise is None else _typed(self.otherwise)})"

    def __str__(self) -> str:
        parts = "".join(f" WHEN {condition} THEN {value}" for condition, value in self.branches)
        return f"CASE{parts}{'' if self.otherwise is None else f' ELSE {self.otherwise}'} END"


Scalar: TypeAlias = Operand | Call | Cast | Case
"""What has a value, or NULL, on a row."""


@dataclass(frozen=True, slots=True)
class Compare:
    """Left compared with right; unknown when either is NULL. A truth value stands as predicate by x = TRUE."""

    left: Scalar
    operator: Operator
    right: Scalar

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


def all_of(*conditions: Expression) -> Expression:
    """Return the condition that all of one or more conditions hold."""
    return conditions[0] if len(conditions) == 1 else And(conditions)


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
    """TRUE when the operand has no value, FALSE otherwise: never unknown."""

    operand: Scalar

    def canonical(self) -> str:
        """Return the identity text."""
        return f"({self.operand.canonical()} is null)"

    def __str__(self) -> str:
        return f"{self.operand} IS NULL"


MOST_CHOICES: Final = 10_000
"""The most constants that one IN may have: longer lists are keys, or a table that is joined."""


@dataclass(frozen=True, slots=True)
class In:
    """TRUE when the operand equals one of the constants; unknown for NULL."""

    operand: Scalar
    choices: tuple[Literal, ...]

    def canonical(self) -> str:
        """Return the identity text: order and repetition do not matter."""
        return f"({self.operand.canonical()} in {', '.join(sorted({c.canonical() for c in self.choices}))})"

    def __str__(self) -> str:
        return f"{self.operand} IN ({', '.join(map(str, self.choices))})"


@dataclass(frozen=True, slots=True)
class Between:
    """TRUE when low <= operand <= high; the same as two comparisons joined by AND."""

    operand: Scalar
    low: Scalar
    high: Scalar

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

Node: TypeAlias = Expression | Scalar


def _inner(expression: Expression) -> str:
    """Return an operand of AND or OR as people read it, in parentheses where they matter."""
    return f"({expression})" if isinstance(expression, And | Or) else str(expression)


def _joined(word: str, operands: tuple[Expression, ...]) -> str:
    """Return sorted, deduplicated identity texts under one connective."""
    texts = sorted({operand.canonical() for operand in operands})
    return texts[0] if len(texts) == 1 else f"({word} {' '.join(texts)})"


def _typed(scalar: Scalar) -> str:
    """Return the identity text of a part of a scalar, where 15.0 and 15 are two constants: their types decide."""
    if isinstance(scalar, Literal) and isinstance(scalar.value, float):
        return f"{Type.FLOAT.value} {json.dumps(scalar.value + 0.0)}"
    return scalar.canonical()
