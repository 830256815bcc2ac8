"""The functions of the language as guarded ibis expressions: total, each the same as `engines.evaluate` tells it.

What is here holds for every backend; what differs is behind `Backend`. Where a function could raise, its argument
itself is replaced where it would (ln(CASE WHEN x > 0 THEN x END)): an optimizer may compute what stands beside a guard,
but not what has no argument.
"""

from __future__ import annotations

from functools import reduce
from operator import add, and_, mul, sub
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.foreign.terms import LEAST_INTEGER, IbisTerm, null, real, whole
from farthing.query.expressions import FunctionName
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from farthing.engines.foreign.backend import Backend

MOST_LETTERS: Final = 2**20
_FAR: Final = 2**30
"""No text is longer on any backend."""

_MONTHS: Final = (
    "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
)
_YEAR: Final = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_LEAP: Final = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
DAY: Final = f"({_YEAR}-{_MONTHS}|{_LEAP}-02-29)"
"""Texts that are dates which exist, leap days included."""

_CLOCK: Final = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?"
_DIGITS: Final = "|".join(["[0-9]{1,15}", *(f"[0-9]{{{all_}}}[.][0-9]{{1,{15 - all_}}}" for all_ in range(1, 15))])
SPELLINGS: Final = {
    Type.INTEGER: "[+-]?[0-9]{1,18}",
    Type.FLOAT: f"[+-]?({_DIGITS})([eE][+-]?[0-9]{{1,2}})?",
    Type.DATE: DAY,
    Type.TIMESTAMP: f"{DAY}[ T]{_CLOCK}",
}


class IbisFunctions:
    """Calls and casts as ibis expressions.

    Args:
        backend: what is particular to the backend.
        bind: gives a long expression a name of its own, so that it can be repeated without being computed again.
    """

    def __init__(self, backend: Backend, bind: Callable[[IbisTerm], IbisTerm]) -> None:
        self._backend = backend
        self._bind = bind

    def tamed(self, number: IbisTerm) -> IbisTerm:
        """Return a number as a double that no operation can overflow: NULL where too large, 0 where too small."""
        import ibis

        if number.tame or not number.real:
            return IbisTerm(number.double, Type.FLOAT, tame=True)
        x = self._bind(number).expr
        flushed = ibis.ifelse(x.abs() >= real(1e-150), x, real(0))
        return IbisTerm(ibis.cases((x.abs() <= real(1e150), flushed)), Type.FLOAT, tame=True)

    def call(self, function: FunctionName, arguments: Sequence[IbisTerm], constants: Sequence[object]) -> IbisTerm:
        """Return a call.

        Args:
            function: which.
            arguments: its arguments.
            constants: their values where they are constants, else None.
        """
        self._backend.require(function)
        match function:
            case FunctionName.DATE_TRUNC:
                moment = self._bind(arguments[1])
                return IbisTerm(self._backend.truncated(str(constants[0]), moment), moment.type)
            case FunctionName.EXTRACT:
                return IbisTerm(self._backend.part(str(constants[0]), self._bind(arguments[1])), Type.INTEGER)
            case FunctionName.DAYS_BETWEEN:
                return IbisTerm(self._backend.days(*(self._day(each) for each in arguments)), Type.INTEGER)
        tables = ((_ARITHMETIC, self._arithmetic), (_ROUNDING, self._rounding), (_REAL, self._real))
        for names, build in tables:
            if function in names:
                return build(function, arguments, constants)
        if function in _CHOOSING:
            return self._choosing(function, arguments)
        return self._textual(function, arguments, constants)

    def _day(self, moment: IbisTerm) -> Any:
        """Return the date of a date or time."""
        return moment.expr if moment.type is Type.DATE else moment.expr.cast("date")

    def _arithmetic(
        self, function: FunctionName, arguments: Sequence[IbisTerm], constants: Sequence[object]
    ) -> IbisTerm:
        """Return + - * / // % - abs sign."""
        if function is not FunctionName.DIVIDE and not any(argument.real for argument in arguments):
            return IbisTerm(self._whole(function, arguments, constants), Type.INTEGER)
        operands = [self.tamed(argument).expr for argument in arguments]
        match function:
            case FunctionName.NEGATE:
                expr = -operands[0]
            case FunctionName.ABS:
                expr = operands[0].abs()
            case FunctionName.SIGN:
                expr = _sign(self._bind(IbisTerm(operands[0], Type.FLOAT)).expr, real)
            case FunctionName.DIVIDE:
                expr = operands[0] / operands[1].nullif(real(0))
            case _:
                expr = _SIGNS[function][1](*operands)
        return IbisTerm(expr, Type.FLOAT, tame=len(operands) == 1)

    def _whole(self, function: FunctionName, arguments: Sequence[IbisTerm], constants: Sequence[object]) -> Any:
        """Return arithmetic on integers, NULL outside int64."""
        import ibis

        backend = self._backend
        match function:
            case FunctionName.NEGATE:
                return backend.integers("-", whole(0), arguments[0].expr)
            case FunctionName.ABS:
                x = self._bind(arguments[0]).expr
                return ibis.cases((x >= 0, x), (x > LEAST_INTEGER, -x))
            case FunctionName.SIGN:
                return _sign(self._bind(arguments[0]).expr, whole)
            case FunctionName.INTEGER_DIVIDE | FunctionName.MODULO:
                return self._quotient(
                    "div" if function is FunctionName.INTEGER_DIVIDE else "mod", arguments, constants[1]
                )
            case _:
                return backend.integers(_SIGNS[function][0], arguments[0].expr, arguments[1].expr)

    def _quotient(self, word: str, arguments: Sequence[IbisTerm], divisor: object) -> Any:
        """Return the quotient or remainder of integers; NULL for the divisor 0, and where it is outside int64."""
        import ibis

        if isinstance(divisor, int) and divisor > 0:
            return self._backend.divided(word, arguments[0].expr, arguments[1].expr)
        above, below = (self._bind(argument).expr for argument in arguments)
        negated = self._backend.integers("-", whole(0), above)
        negative = negated if word == "div" else ibis.cases((above.notnull(), whole(0)))
        safe = ibis.cases((below > 0, below), (below < -1, below))
        return ibis.ifelse(below == -1, negative, self._backend.divided(word, above, safe))

    def _rounding(self, function: FunctionName, arguments: Sequence[IbisTerm], constants: Sequence[object]) -> IbisTerm:
        """Return floor, ceil, trunc and round; integers stay as they are."""
        number = arguments[0]
        digits = int(str(constants[1])) if len(arguments) > 1 else 0
        if not number.real:
            return number if digits >= 0 else IbisTerm(self._round_whole(number, 10**-digits), Type.INTEGER)
        x = self._bind(self.tamed(number))
        if function is not FunctionName.ROUND:
            return IbisTerm(self._backend.rounded(function.value, x.expr), Type.FLOAT, tame=True)
        if digits == 0:
            return IbisTerm(self.nearest(x), Type.FLOAT, tame=True)
        unit = real(10 ** abs(digits))
        there = IbisTerm(x.expr * unit if digits > 0 else x.expr / unit, Type.FLOAT)
        near = self.nearest(self._bind(there))
        return IbisTerm(near / unit if digits > 0 else near * unit, Type.FLOAT)

    def nearest(self, number: IbisTerm) -> Any:
        """Return the whole number next to a bound double, halves away from zero."""
        import ibis

        x = number.expr
        cut = self._bind(IbisTerm(self._backend.rounded("trunc", x), Type.FLOAT)).expr
        return cut + ibis.ifelse((x - cut).abs() >= real(0.5), _sign(x, real), real(0))

    def _round_whole(self, number: IbisTerm, unit: int) -> Any:
        """Return an integer rounded to a power of ten, halves away from zero."""
        import ibis

        x, backend = self._bind(number).expr, self._backend
        left = backend.divided("mod", x, whole(unit))
        step = ibis.cases((left >= unit // 2, whole(1)), (left <= -(unit // 2), whole(-1)), else_=whole(0))
        steps = backend.integers("+", backend.divided("div", x, whole(unit)), step)
        return backend.integers("*", steps, whole(unit))

    def _real(self, function: FunctionName, arguments: Sequence[IbisTerm], _: Sequence[object]) -> IbisTerm:
        """Return sqrt, exp, ln, log10 and power."""
        import ibis

        operands = [self._bind(self.tamed(argument)).expr for argument in arguments]
        x = operands[0]
        match function:
            case FunctionName.SQRT:
                expr = ibis.cases((x >= real(0), x)).sqrt()
            case FunctionName.LN:
                expr = ibis.cases((x > real(0), x)).ln()
            case FunctionName.LOG10:
                expr = self._backend.logarithm(ibis.cases((x > real(0), x)))
            case FunctionName.EXP:
                expr = ibis.ifelse(x < real(-345), real(0), ibis.cases((x.abs() <= real(345), x)).exp())
            case _:
                return IbisTerm(self._power(x, operands[1]), Type.FLOAT)
        return IbisTerm(expr, Type.FLOAT, tame=True)

    def _power(self, base: Any, exponent: Any) -> Any:
        """Return a power; NULL where it is not real, or too large or too small."""
        import ibis

        there = (base > real(0)) | (exponent == self._backend.rounded("trunc", exponent))
        size = exponent * base.abs().nullif(real(0)).ln()
        safe = ibis.cases((there & (size.abs() <= real(345)), base))
        of_zero = ibis.cases((exponent > real(0), real(0)))
        return ibis.cases(
            (exponent == real(0), ibis.ifelse(self._backend.is_null(base), null("float64"), real(1))),
            (base == real(0), of_zero),
            else_=safe ** ibis.cases((size.abs() <= real(345), exponent)),
        )

    def _choosing(self, function: FunctionName, arguments: Sequence[IbisTerm]) -> IbisTerm:
        """Return least, greatest, coalesce and nullif: numbers of both kinds are doubles."""
        import ibis

        if function is FunctionName.NULLIF:
            first, second = self._bind(arguments[0]), arguments[1]
            left, right = alike((first, second))
            differ = ~ibis.coalesce(left.expr == right.expr, ibis.literal(value=False))
            expr = ibis.cases((differ, first.expr))
            return IbisTerm(expr, first.type, tame=first.tame)
        same = alike(arguments)
        values, tame = [value.expr for value in same], all(value.tame for value in same)
        if function is FunctionName.COALESCE:
            return IbisTerm(ibis.coalesce(*values), same[0].type, tame)
        if same[0].type is Type.STRING:
            return reduce(lambda one, other: self._first(one, other, function), same)
        choose = ibis.least if function is FunctionName.LEAST else ibis.greatest
        return IbisTerm(choose(*values), same[0].type, tame)

    def _first(self, one: IbisTerm, other: IbisTerm, function: FunctionName) -> IbisTerm:
        """Return the lesser or greater text of two."""
        import ibis

        left, right = self._bind(one).expr, self._bind(other).expr
        sign = "<=" if function is FunctionName.LEAST else ">="
        wins = self._backend.ordered(left, sign, right)
        return IbisTerm(ibis.cases((right.isnull(), left), (wins, left), else_=right), Type.STRING)

    def _textual(  # noqa: PLR0911  # one return a kind
        self, function: FunctionName, arguments: Sequence[IbisTerm], constants: Sequence[object]
    ) -> IbisTerm:
        """Return the functions of texts."""
        import ibis

        values = [argument.expr for argument in arguments]
        match function:
            case FunctionName.SUBSTRING:
                return self._substring(arguments)
            case FunctionName.CONCAT:
                parts = [self._bind(argument).expr for argument in arguments]
                letters = reduce(add, (self._backend.textual("length", part) for part in parts))
                return IbisTerm(ibis.cases((letters <= MOST_LETTERS, reduce(add, parts))), Type.STRING)
            case FunctionName.REPLACE:
                return self._replaced(*(self._bind(argument).expr for argument in arguments))
            case FunctionName.LIKE:
                return IbisTerm(values[0].like(str(constants[1]).replace("\\", "\\\\")), Type.BOOLEAN)
            case FunctionName.LENGTH:
                return IbisTerm(self._backend.textual("length", values[0]), Type.INTEGER)
            case FunctionName.STARTS_WITH | FunctionName.ENDS_WITH | FunctionName.CONTAINS:
                return IbisTerm(self._backend.textual(function.value, *values), Type.BOOLEAN)
            case _:
                return IbisTerm(self._backend.textual(function.value, *values), Type.STRING)

    def _replaced(self, text: Any, part: Any, by: Any) -> IbisTerm:
        """Return a text with every part replaced; NULL if it could become too long."""
        import ibis

        letters, each = (self._backend.textual("length", one) for one in (text, by))
        few = letters * ibis.greatest(each, whole(1)) <= MOST_LETTERS
        return IbisTerm(ibis.cases((few, self._backend.textual("replace", text, part, by))), Type.STRING)

    def _substring(self, arguments: Sequence[IbisTerm]) -> IbisTerm:
        """Return letters from a place on: 1 is the first; NULL for places below 1 and lengths below 0."""
        import ibis

        text, *numbers = arguments
        bound = [self._bind(number).expr for number in numbers]
        limits = [
            ibis.cases((number >= least, ibis.ifelse(number < _FAR, number, whole(_FAR)))).cast("int32")
            for number, least in zip(bound, (1, 0), strict=False)
        ]
        there = reduce(and_, (limit.notnull() for limit in limits))
        sound = [ibis.coalesce(limit, ibis.literal(1).cast("int32")) for limit in limits]
        expr = self._backend.substring(text.expr, sound[0], sound[1] if len(sound) > 1 else None)
        return IbisTerm(ibis.cases((there, expr)), Type.STRING)

    def cast(self, operand: IbisTerm, kind: Type) -> IbisTerm:  # noqa: PLR0911  # one return a kind
        """Return a value as another type, NULL where it has none there."""
        import ibis

        if kind is operand.type or (kind in (Type.FLOAT, Type.DECIMAL) and operand.real):
            return operand
        if kind in (Type.FLOAT, Type.DECIMAL) and operand.type is Type.INTEGER:
            return IbisTerm(operand.double, Type.FLOAT, tame=True)
        if operand.type is Type.STRING:
            if kind is Type.BOOLEAN:
                x, truths = self._bind(operand).expr, {"true": True, "false": False}
                return IbisTerm(
                    ibis.cases(*((x == word, ibis.literal(value=truth)) for word, truth in truths.items())), kind
                )
            return IbisTerm(self._backend.parsed(operand.expr, SPELLINGS[kind], kind), kind)
        if kind is Type.STRING:
            return IbisTerm(self._backend.spelled(self._bind(operand)), kind)
        if kind is Type.INTEGER and operand.real:
            x = self._bind(operand)
            inside = ibis.cases(((x.expr >= real(-(2.0**63))) & (x.expr < real(2.0**63)), x.expr))
            return IbisTerm(self.nearest(self._bind(IbisTerm(inside, Type.FLOAT))).cast("int64"), kind)
        if kind is Type.INTEGER:
            return IbisTerm(ibis.cases((operand.expr, whole(1)), (~operand.expr, whole(0))), kind)
        return IbisTerm(
            self._backend.midnight(operand.expr) if kind is Type.TIMESTAMP else operand.expr.cast("date"), kind
        )


def alike(values: Sequence[IbisTerm]) -> tuple[IbisTerm, ...]:
    """Return values in one type: doubles where numbers of both kinds meet."""
    if not any(value.real for value in values):
        return tuple(values)
    return tuple(value if value.real else IbisTerm(value.double, Type.FLOAT, tame=True) for value in values)


def _sign(x: Any, number: Callable[[int], Any]) -> Any:
    """Return the sign of a number, as a number of the same kind."""
    import ibis

    return ibis.cases((x > number(0), number(1)), (x < number(0), number(-1)), (x == number(0), number(0)))


_SIGNS: Final = {
    FunctionName.ADD: ("+", add),
    FunctionName.SUBTRACT: ("-", sub),
    FunctionName.MULTIPLY: ("*", mul),
}
_ARITHMETIC: Final = frozenset(
    {
        *_SIGNS,
        FunctionName.NEGATE,
        FunctionName.DIVIDE,
        FunctionName.INTEGER_DIVIDE,
        FunctionName.MODULO,
        FunctionName.ABS,
        FunctionName.SIGN,
    }
)
_ROUNDING: Final = frozenset({FunctionName.FLOOR, FunctionName.CEIL, FunctionName.TRUNC, FunctionName.ROUND})
_REAL: Final = frozenset({FunctionName.SQRT, FunctionName.EXP, FunctionName.LN, FunctionName.LOG10, FunctionName.POWER})
_CHOOSING: Final = frozenset({FunctionName.LEAST, FunctionName.GREATEST, FunctionName.COALESCE, FunctionName.NULLIF})
