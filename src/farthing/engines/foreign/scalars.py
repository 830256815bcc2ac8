"""Scalars and predicates of the language as ibis expressions that cannot fail on a row.

A guard repeats what it guards, so an expression written in place would double with every level of nesting. What is long
and repeated is given a name instead, in a chain of stages: each is a projection of the one before it that adds columns.
"""

from __future__ import annotations

from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import TYPE_CHECKING, Any, Final, assert_never

from farthing.engines.foreign.functions import IbisFunctions, alike
from farthing.engines.foreign.terms import IbisTerm, constant, null, placed, real, symbol, weight
from farthing.errors import UnsupportedQuery
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
    from collections.abc import Callable, Sequence

    from farthing.engines.foreign.backend import Backend

SHORT: Final = 12
"""Expressions of at most so many operations are repeated as they are."""

LONG: Final = 120
"""Longer ones get a name too: backends take no deeply nested expression."""

FENCE: Final = "fence"
COMPARE: Final = {
    Operator.EQ: eq,
    Operator.NE: ne,
    Operator.LT: lt,
    Operator.LE: le,
    Operator.GT: gt,
    Operator.GE: ge,
}


class IbisScalars:
    """The scalars and predicates of one question.

    Args:
        backend: what is particular to the backend.
        read: the term of a column.
        staged: whether repeated expressions may be named; in the condition of a join they are written out.
        prefix: what such names begin with.
    """

    def __init__(
        self, backend: Backend, read: Callable[[str], IbisTerm], *, staged: bool = True, prefix: str = ""
    ) -> None:
        self._prefix = prefix
        self._backend = backend
        self._read = read
        self._staged = staged
        self._stages: list[dict[Any, str]] = []
        self._levels: dict[str, int] = {}
        self._functions = IbisFunctions(backend, self.bind)

    def level(self, expr: Any) -> int:
        """Return the first stage that has all names of an expression."""
        import ibis.expr.operations as ops

        return max((self._levels.get(field.name, 0) for field in expr.op().find(ops.Field)), default=0)

    def bind(self, term: IbisTerm, most: int = SHORT) -> IbisTerm:
        """Return a name for an expression that is repeated, if it is not short."""
        if not self._staged or weight(term.expr, self._backend.copies) <= most:
            return term
        level, node = self.level(term.expr), term.expr.op()
        while len(self._stages) <= level:
            self._stages.append({})
        stage = self._stages[level]
        name = stage.setdefault(node, f"{self._prefix}e{level}_{len(stage)}")
        self._levels[name] = level + 1
        return IbisTerm(symbol(name, term.expr.type()), term.type, term.tame)

    def over(self, table: Any) -> Any:
        """Return a table with all stages on top, each fenced off from the next."""
        for stage in self._stages:
            named = {name: placed(node.to_expr(), table) for node, name in stage.items()}
            table = table.mutate(**named, **{FENCE: self._backend.fence()})
        return table

    def scalar(self, scalar: Scalar) -> IbisTerm:
        """Return the term of a scalar."""
        match scalar:
            case Column(name):
                return self._read(name)
            case Literal(value):
                if scalar.type in (Type.DATE, Type.TIMESTAMP):
                    return IbisTerm(self._backend.moment(value), scalar.type)
                return constant(sendable(scalar))
            case Call(function, arguments):
                values = [argument.value if isinstance(argument, Literal) else None for argument in arguments]
                term = self._functions.call(function, [self.scalar(argument).narrow for argument in arguments], values)
            case Cast(operand, kind):
                term = self._functions.cast(self.scalar(operand).narrow, kind)
            case Case():
                term = self._case(scalar)
            case _:
                assert_never(scalar)
        return self.bind(term, LONG)

    def predicate(self, expression: Expression) -> Any:  # noqa: PLR0911  # one return a case
        """Return a predicate as an ibis expression."""
        match expression:
            case Compare(left, operator, right):
                return self._compared(self.scalar(left), operator, self.scalar(right))
            case And(operands):
                return balanced(and_, [self.predicate(operand) for operand in operands])
            case Or(operands):
                return balanced(or_, [self.predicate(operand) for operand in operands])
            case Not(operand):
                return ~self.predicate(operand)
            case IsNull(operand):
                return self._backend.is_null(self.scalar(operand).expr)
            case In(operand, choices):
                return self._membership(self.scalar(operand), choices)
            case Between(operand, low, high):
                value = self.bind(self.scalar(operand))
                least = self._compared(value, Operator.GE, self.scalar(low))
                return least & self._compared(value, Operator.LE, self.scalar(high))
            case _:
                assert_never(expression)

    def number(self, scalar: Scalar) -> IbisTerm:
        """Return a numeric scalar as a double that is NULL where it is NaN; always NULL for what is not a number."""
        import ibis

        value = self.scalar(scalar)
        if value.type not in NUMBER_TYPES:
            return IbisTerm(null("float64"), Type.FLOAT)
        if not value.real:
            return IbisTerm(value.double, Type.FLOAT)
        x = self.bind(value).expr
        return IbisTerm(ibis.cases((x <= real(float("inf")), x)), Type.FLOAT)

    def group(self, scalar: Scalar) -> IbisTerm:
        """Return a scalar in the form in which it is grouped: one zero, not two."""
        value = self.scalar(scalar)
        return IbisTerm(value.expr + real(0), Type.FLOAT) if value.real else value

    def _case(self, case: Case) -> IbisTerm:
        """Return CASE: branches of one type."""
        import ibis

        conditions = [self.predicate(condition) for condition, _ in case.branches]
        values = [self.scalar(value).narrow for _, value in case.branches]
        values += [] if case.otherwise is None else [self.scalar(case.otherwise).narrow]
        same = alike(values)
        pairs = [(condition, value.expr) for condition, value in zip(conditions, same, strict=False)]
        otherwise = None if case.otherwise is None else same[-1].expr
        return IbisTerm(ibis.cases(*pairs, else_=otherwise), same[0].type, all(value.tame for value in same))

    def _membership(self, value: IbisTerm, choices: tuple[Literal, ...]) -> Any:
        """Return a membership test; as in comparisons, integers meet integers exactly."""
        if value.type is Type.BOOLEAN:  # no IN: ibis leaves out parentheses around what is tested
            return balanced(or_, [value.expr == self.scalar(choice).expr for choice in choices])
        real_ones = [choice for choice in choices if value.real or choice.type is Type.FLOAT]
        others = [choice for choice in choices if not (value.real or choice.type is Type.FLOAT)]
        operand = self.bind(value) if real_ones and others else value
        tests = []
        if real_ones:
            tests.append(operand.double.isin([self.scalar(choice).double for choice in real_ones]))
        if others:
            tests.append(operand.expr.isin([self.scalar(choice).expr for choice in others]))
        return balanced(or_, tests)

    def _compared(self, left: IbisTerm, operator: Operator, right: IbisTerm) -> Any:
        """Return a comparison: doubles unless both sides are integers (or no numbers at all)."""
        first, second = alike((left, right))
        if first.type is Type.STRING and operator not in (Operator.EQ, Operator.NE):
            return self._backend.ordered(first.expr, operator.value, second.expr)
        return COMPARE[operator](first.expr, second.expr)


def balanced(operator: Callable[[Any, Any], Any], operands: Sequence[Any]) -> Any:
    """Return operands under one connective, halved again and again: what walks over it may recurse."""
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    return operator(balanced(operator, operands[:middle]), balanced(operator, operands[middle:]))


def sendable(literal: Literal) -> Literal:
    """Return a constant; refuse a text that cannot travel in a backend's SQL."""
    if isinstance(literal.value, str) and "\0" in literal.value:
        raise UnsupportedQuery(
            "a text with a NUL letter",
            construct="NUL",
            next_step="leave the letter out, or export the table to Parquet",
            rule="this engine cannot carry NUL in a text",
        )
    return literal
