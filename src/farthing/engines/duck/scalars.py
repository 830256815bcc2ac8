"""Scalars and predicates of the language as DuckDB SQL that cannot fail on a row.

A guard repeats what it guards, so text written in place would double with every level of nesting. What is repeated is
given a name instead, in a chain of stages: each is a SELECT over the one before it that adds columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from farthing.engines.duck.functions import DuckFunctions, Text, alike, chosen
from farthing.engines.duck.terms import constant
from farthing.query.expressions import (
    And,
    Between,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
    Scalar,
)
from farthing.query.schema import NUMBER_TYPES, Type

if TYPE_CHECKING:
    from collections.abc import Callable

LONG: Final = 2_000
"""Longer texts get a name too: DuckDB takes no deeply nested expression."""

UNFOLDED: Final = "random() >= 0"
"""TRUE on every row. A filter with it stays where it is written: DuckDB would else write the stages out in place."""


class DuckScalars:
    """The scalars and predicates of one question, as text.

    Args:
        read: the text of a column.
        staged: whether repeated texts may be named; in the condition of a join they are written out.
    """

    def __init__(self, read: Callable[[str], Text], *, staged: bool = True) -> None:
        self._read = read
        self._staged = staged
        self._stages: list[dict[str, str]] = []
        self._functions = DuckFunctions(self.bind)

    def bind(self, text: Text) -> Text:
        """Return a name for a text that is repeated."""
        if text.plain or not self._staged:
            return text
        while len(self._stages) <= text.level:
            self._stages.append({})
        stage = self._stages[text.level]
        name = stage.setdefault(text.sql, f"e{text.level}_{len(stage)}")
        return Text(name, text.type, text.level + 1, plain=True, tame=text.tame, wide=text.wide)

    def over(self, relation: str, early: str = "TRUE") -> str:
        """Return a relation with all stages on top, rows filtered by an early condition first."""
        if early != "TRUE":
            relation = f"(SELECT * FROM {relation} WHERE {early})"
        for stage in self._stages:
            named = ", ".join(f"{sql} AS {name}" for sql, name in stage.items())
            relation = f"(SELECT *, {named} FROM {relation})"
        return relation

    def scalar(self, scalar: Scalar) -> Text:
        """Return the text of a scalar."""
        match scalar:
            case Column(name):
                return self._read(name)
            case Literal():
                return _constant(scalar)
            case Call(function, arguments):
                values = [argument.value if isinstance(argument, Literal) else None for argument in arguments]
                text = self._functions.call(function, [self.scalar(argument).narrow for argument in arguments], values)
            case Cast(operand, kind):
                text = self._functions.cast(self.scalar(operand).narrow, kind)
            case Case():
                text = self._case(scalar)
            case _:
                assert_never(scalar)
        return self.bind(text) if len(text.sql) > LONG else text

    def predicate(self, expression: Expression) -> Text:
        """Return the text of a predicate, in parentheses."""
        match expression:
            case Compare(left, operator, right):
                return _compared(self.scalar(left), operator, self.scalar(right))
            case And(operands) | Or(operands):
                word = " AND " if isinstance(expression, And) else " OR "
                texts = [self.predicate(operand) for operand in operands]
                return _truth(word.join(text.sql for text in texts), *texts)
            case Not(operand):
                text = self.predicate(operand)
                return _truth(f"NOT {text.sql}", text)
            case IsNull(operand):
                value = self.scalar(operand)
                # DuckDB 2 does not read a text of which only its presence is asked: one that is not UTF-8 is NULL, too
                read = isinstance(operand, Column) and value.type is Type.STRING
                return _truth(f"length({value.sql}) IS NULL" if read else f"{value.sql} IS NULL", value)
            case In(operand, choices):
                return self._membership(self.scalar(operand), choices)
            case Between(operand, low, high):
                value = self.bind(self.scalar(operand))
                least = _compared(value, Operator.GE, self.scalar(low))
                most = _compared(value, Operator.LE, self.scalar(high))
                return _truth(f"{least.sql} AND {most.sql}", least, most)
            case _:
                assert_never(expression)

    def number(self, scalar: Scalar) -> Text:
        """Return a numeric scalar as a double that is NULL where it is NaN; always NULL for what is not a number."""
        value = self.scalar(scalar)
        if value.type not in NUMBER_TYPES:
            return Text("NULL::DOUBLE", Type.FLOAT, plain=True)
        if not value.real:
            return Text(value.double, Type.FLOAT, value.level)
        x = self.bind(value)
        return Text(f"CASE WHEN {x.sql} <= 'infinity'::DOUBLE THEN {x.sql} END", Type.FLOAT, x.level)

    def group(self, scalar: Scalar) -> Text:
        """Return a scalar in the form in which it is grouped: one zero, not two."""
        value = self.scalar(scalar)
        if isinstance(scalar, Column) or not value.real:
            return value
        return Text(f"({value.sql} + 0::DOUBLE)", Type.FLOAT, value.level)

    def _case(self, case: Case) -> Text:
        """Return the text of CASE: branches of one type."""
        conditions = [self.predicate(condition) for condition, _ in case.branches]
        values = [self.scalar(value).narrow for _, value in case.branches]
        values += [] if case.otherwise is None else [self.scalar(case.otherwise).narrow]
        same = alike(values)
        parts = [f"WHEN {condition.sql} THEN {value.sql}" for condition, value in zip(conditions, same, strict=False)]
        parts += [] if case.otherwise is None else [f"ELSE {same[-1].sql}"]
        return chosen(f"CASE {' '.join(parts)} END", (*conditions, *same), same)

    def _membership(self, value: Text, choices: tuple[Literal, ...]) -> Text:
        """Return the text of a membership test; as in comparisons, integers meet integers exactly."""
        real = [choice for choice in choices if value.real or choice.type is Type.FLOAT]
        whole = [choice for choice in choices if not (value.real or choice.type is Type.FLOAT)]
        operand = self.bind(value) if real and whole else value
        tests = []
        if real:
            tests.append(f"{operand.double} IN ({', '.join(constant(choice, real=True) for choice in real)})")
        if whole:  # pyarrow would take no list with a number beyond 64 bits with sign; a column of 128 is not its own
            wide = any(_constant(choice).wide for choice in whole)
            sql = f"CAST({operand.sql} AS HUGEINT)" if wide else operand.sql
            tests.append(f"{sql} IN ({', '.join(map(constant, whole))})")
        return _truth(" OR ".join(tests), operand)


def _constant(literal: Literal) -> Text:
    """Return the text of a constant."""
    wide = literal.type is Type.INTEGER and not -(2**63) <= int(str(literal.value)) < 2**63
    tame = isinstance(literal.value, float) and 1e-150 <= abs(literal.value) <= 1e150
    return Text(constant(literal), literal.type, plain=True, tame=tame, wide=wide)


def _compared(left: Text, operator: Operator, right: Text) -> Text:
    """Return the text of a comparison: doubles unless both sides are integers (or no numbers at all)."""
    first, second = alike((left, right))
    return _truth(f"{first.sql} {operator.value} {second.sql}", left, right)


def _truth(sql: str, *parts: Text) -> Text:
    """Return the text of a truth value."""
    return Text(f"({sql})", Type.BOOLEAN, max((part.level for part in parts), default=0))
