"""Aggregates of two values: covariance, correlation, and the line of one through the other."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from farthing.query.expressions import And, Call, Case, FunctionName, IsNull, Literal, Not, Scalar
from farthing.query.measures import Rows, Total
from farthing.query.ranges import check_range, middle

if TYPE_CHECKING:
    from farthing.query.expressions import Expression
    from farthing.query.measures import Measure

Range: TypeAlias = "tuple[float, float]"

KINDS: Final = {"covariance": "COVAR_POP", "correlation": "CORR", "slope": "REGR_SLOPE", "intercept": "REGR_INTERCEPT"}
"""What may be asked of two values, and its name in SQL."""

_SQUARES: Final = {"covariance": (False, False), "correlation": (True, True)}
"""Whether the squares of x and of y are needed; those of x for a line."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A covariance, a correlation, or the line of y through x, of the rows where both values are there.

    Rows with NULL, NaN or an infinity in one of them do not count. SQL writes a line as REGR_SLOPE(y, x).

    Attributes:
        kind: "covariance", "correlation", "slope" or "intercept".
        x, y: numeric scalars.
        x_range, y_range: what they are clamped into.
        sample: a covariance divided by n - 1 instead of n.
    """

    kind: str
    x: Scalar
    y: Scalar
    x_range: Range
    y_range: Range
    sample: bool = False
    form: ClassVar[str] = "pair"

    def __post_init__(self) -> None:
        for low, high in (self.x_range, self.y_range):
            check_range(low, high)
        assert self.measures  # noqa: S101  # which refuses products that are too large to be added up

    @property
    def centres(self) -> tuple[float, float]:
        """The middles of the two ranges."""
        return middle(*self.x_range), middle(*self.y_range)

    @property
    def halves(self) -> tuple[float, float]:
        """The most that a value is from its centre."""
        ranges = zip((self.x_range, self.y_range), self.centres, strict=True)
        x, y = (max(high - centre, centre - low) for (low, high), centre in ranges)
        return x, y

    @property
    def places(self) -> tuple[Measure | None, ...]:
        """The rows, the two centred sums, the sum of products, and the two of squares; None for what is not needed."""
        (x, y), (c, d), (h, k) = self._values, self.centres, self.halves
        product = Call(FunctionName.MULTIPLY, (_less(x, c), _less(y, d)))
        sides = zip((x, y), (self.x_range, self.y_range), (c, d), (h, k), strict=True)
        needed = _SQUARES.get(self.kind, (True, False))
        squares = [
            Total(value, *ends, centre, power=2, less=half * half / 2) if there else None
            for there, (value, ends, centre, half) in zip(needed, sides, strict=True)
        ]
        sums = Total(x, *self.x_range, c), Total(y, *self.y_range, d)
        return Rows(x), *sums, Total(product, -h * k, h * k), *squares

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures it is a function of."""
        return tuple(measure for measure in self.places if measure is not None)

    @property
    def _values(self) -> tuple[Scalar, Scalar]:
        """The two values, clamped, where both are there; else NULL."""
        x, y = (Call(FunctionName.ADD, (value, Literal(0.0))) for value in (self.x, self.y))
        both: Expression = And((Not(IsNull(x)), Not(IsNull(y))))
        return Case(((both, _within(x, self.x_range)),)), Case(((both, _within(y, self.y_range)),))

    def canonical(self) -> str:
        """Return the identity text."""
        values = [self.x.canonical(), self.y.canonical(), *self.x_range, *self.y_range]
        return json.dumps(["pair", self.kind, *values, self.sample])

    def __str__(self) -> str:
        sides = [f"{value} in [{low:g}, {high:g}]" for value, (low, high) in (
            (self.x, self.x_range), (self.y, self.y_range))]  # fmt: skip
        name = "COVAR_SAMP" if self.sample else KINDS[self.kind]
        return f"{name}({', '.join(sides[::-1] if self.kind in ('slope', 'intercept') else sides)})"


def _within(value: Scalar, ends: Range) -> Scalar:
    """Return a value clamped into a range."""
    low, high = map(Literal, ends)
    return Call(FunctionName.LEAST, (Call(FunctionName.GREATEST, (value, low)), high))


def _less(value: Scalar, centre: float) -> Scalar:
    """Return a value less its centre."""
    return Call(FunctionName.SUBTRACT, (value, Literal(centre))) if abs(centre) > 0 else value
