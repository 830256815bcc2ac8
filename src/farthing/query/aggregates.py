"""What is computed for every group: aggregates as people name them, and the whole numbers that engines return for them.

An *aggregate* is what an analyst asks for. A *measure* is one bounded whole number a group, with a known sensitivity:
all that an engine ever computes. Every aggregate but a quantile is a function of a few measures, so several aggregates
of one question share measures, one pass over the rows and one cut of each unit's contribution.

Its `form` says which function: `accuracy.forms.FORMS` has one for each but "rank", which is a quantile's.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from farthing.errors import InvalidBounds, UnsupportedQuery
from farthing.query.counts import CountValues
from farthing.query.expressions import And, Case, Literal
from farthing.query.measures import Rows, Total, Units
from farthing.query.pairs import Pair
from farthing.query.ranges import check_range, middle
from farthing.query.running_total import OverGroups, RunningTotal
from farthing.query.schema import Type
from farthing.query.share_of_total import ShareOfTotal

if TYPE_CHECKING:
    from farthing.query.expressions import Expression, Scalar
    from farthing.query.measures import Measure


MOST_MEASURES = 16
"""The most measures of a formula: its interval looks at each pair of them, in every group."""

LEAVES_LOG2 = 16
"""Values of a quantile are told apart on 2^16 leaves at most."""

_MOST_EXACT = 2.0**52  # whole numbers below are exact as doubles, and so are their differences


@dataclass(frozen=True, slots=True)
class Count:
    """COUNT(*), or COUNT(value): rows where the value is there."""

    value: Scalar | None = None
    form: ClassVar[str] = "linear"

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures it is a function of."""
        return (Rows(self.value),)

    def canonical(self) -> str:
        """Return the identity text."""
        return self.measures[0].canonical()

    def __str__(self) -> str:
        return "COUNT(*)" if self.value is None else f"COUNT({self.value})"


@dataclass(frozen=True, slots=True)
class CountUnits:
    """COUNT(DISTINCT unit)."""

    form: ClassVar[str] = "linear"

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures it is a function of."""
        return (Units(),)

    def canonical(self) -> str:
        """Return the identity text."""
        return "count units"

    def __str__(self) -> str:
        return "COUNT(DISTINCT unit)"


@dataclass(frozen=True, slots=True)
class Sum:
    """SUM(value) of clamped values.

    Attributes:
        value: a numeric scalar.
        lower, upper: the clamps, lower < upper.
        words: what is added up, for people, where the value itself is hard to read; it is not part of the question.
    """

    value: Scalar
    lower: float
    upper: float
    words: str = field(default="", compare=False)
    form: ClassVar[str] = "linear"

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures it is a function of."""
        return (Total(self.value, self.lower, self.upper),)

    def canonical(self) -> str:
        """Return the identity text."""
        return self.measures[0].canonical()

    def __str__(self) -> str:
        return f"SUM({self.value} in [{self.lower:g}, {self.upper:g}])"


Counts: TypeAlias = Count | CountUnits | CountValues
"""What counts something: nothing is clamped."""

Single: TypeAlias = Counts | Sum
"""What is one measure, as it is."""


@dataclass(frozen=True, slots=True)
class Mean:
    """AVG(value): the clamped sum over the count of values."""

    value: Scalar
    lower: float
    upper: float
    form: ClassVar[str] = "mean"

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures it is a function of: N and the centred sum S, so that the mean is centre + S/N."""
        return Rows(self.value), Total(self.value, self.lower, self.upper, middle(self.lower, self.upper))

    def canonical(self) -> str:
        """Return the identity text."""
        return json.dumps(["mean", self.value.canonical(), self.lower, self.upper])

    def __str__(self) -> str:
        return f"AVG({self.value} in [{self.lower:g}, {self.upper:g}])"


@dataclass(frozen=True, slots=True)
class Variance:
    """VAR_POP(value), or its square root: from the count, the centred sum and the centred sum of squares.

    Attributes:
        sample: divide by n - 1 instead of n.
        root: the standard deviation instead of the variance.
    """

    value: Scalar
    lower: float
    upper: float
    sample: bool = False
    root: bool = False
    form: ClassVar[str] = "variance"

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures it is a function of: N, the centred sum, and that of centred squares less half the largest.

        With h half of the range, (v - c)^2 - h^2/2 is at most h^2/2 in magnitude: half of what the square may be.
        """
        centre = middle(self.lower, self.upper)
        half = max(self.upper - centre, centre - self.lower)
        return (
            Rows(self.value),
            Total(self.value, self.lower, self.upper, centre),
            Total(self.value, self.lower, self.upper, centre, power=2, less=half * half / 2),
        )

    def canonical(self) -> str:
        """Return the identity text."""
        return json.dumps(["variance", self.value.canonical(), self.lower, self.upper, self.sample, self.root])

    def __str__(self) -> str:
        name = ("STDDEV" if self.root else "VAR") + ("_SAMP" if self.sample else "_POP")
        return f"{name}({self.value} in [{self.lower:g}, {self.upper:g}])"


@dataclass(frozen=True, slots=True)
class Ratio:
    """One count or sum over another: SUM(tip) / SUM(fare). The bottom is never below zero.

    Where the bottom is zero there is no ratio, and no number is wrong. A part of a count over the whole count is better
    asked as the mean of 0 and 1, see `ratio_of`.
    """

    top: Single
    bottom: Single
    form: ClassVar[str] = "ratio"

    def __post_init__(self) -> None:
        wrong = [part for part in (self.top, self.bottom) if not isinstance(part, Single)]
        if wrong or self.top == self.bottom:
            raise UnsupportedQuery(
                "this is not a ratio of two counts or sums",
                construct="ratio",
                rule="COUNT or SUM over another COUNT or SUM",
                got=f"{self.top} / {self.bottom}",
                next_step="ask for each aggregate in a question of its own, and compute with the answers",
            )
        if least(self.bottom) < 0:
            raise InvalidBounds(
                "the bottom of a ratio may be negative",
                rule="lower >= 0 for the values below the line: near a sum of zero a ratio says nothing",
                got=str(self.bottom),
                next_step="pass lower=0 for the bottom, if its values are not negative",
            )

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures it is a function of: first what it divides by."""
        return (*self.bottom.measures, *self.top.measures)

    @property
    def least(self) -> float:
        """The least that the ratio can be."""
        return -math.inf if least(self.top) < 0 else 0.0

    @property
    def typical(self) -> tuple[float, float]:
        """What a row adds to the bottom and to the top, about."""
        return _row(self.bottom), _row(self.top)

    def canonical(self) -> str:
        """Return the identity text."""
        return json.dumps(["ratio", self.top.canonical(), self.bottom.canonical()])

    def __str__(self) -> str:
        return f"{self.top} / {self.bottom}"


def _row(part: Single) -> float:
    """Return what a row adds to a count or a sum, about."""
    return max(abs(part.lower), abs(part.upper)) / 2 if isinstance(part, Sum) else 1.0


def ratio_of(top: Aggregate, bottom: Aggregate) -> Mean | Ratio:
    """Return one aggregate over another.

    Rows that meet a condition over all rows are the mean of 0 and 1: measured from the middle, that is up to nine times
    cheaper than two counts.

    >>> from farthing.query.expressions import Case, Column, Compare, Literal, Operator
    >>> late = Case(((Compare(Column("delay"), Operator.GT, Literal(15)), Literal(1)),))
    >>> str(ratio_of(Count(late), Count()))
    'AVG(CASE WHEN delay > 15 THEN 1 ELSE 0 END in [0, 1])'
    """
    match top, bottom:
        case Count(value=Case(branches=((condition, Literal()),), otherwise=None)), Count(value=None):
            return part_of(condition, None)
        case _:
            return Ratio(top, bottom)  # type: ignore[arg-type]  # refused there


def part_of(condition: Expression, whole: Expression | None) -> Mean:
    """Return the part of the rows (of a whole, or all) that meet a condition: the mean of 0 and 1."""
    one, none = Literal(1), Literal(0)
    if whole is None:
        return Mean(Case(((condition, one),), none), 0.0, 1.0)
    return Mean(Case(((And((whole, condition)), one), (whole, none))), 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Quantile:
    """The q-quantile of clamped values; MIN is q = 0, MAX is q = 1, MEDIAN is q = 1/2.

    Attributes:
        value: a numeric scalar.
        q: in [0, 1].
        lower, upper: the clamps, lower < upper.
        leaves_log2: values are told apart on a public grid of 2^leaves_log2 equal steps from lower to upper.
        whole: values are whole numbers, as both clamps are: each of them is a leaf, and there are at most
            2^leaves_log2.
    """

    value: Scalar
    q: float
    lower: float
    upper: float
    leaves_log2: int = LEAVES_LOG2
    whole: bool = False
    form: ClassVar[str] = "rank"

    @classmethod
    def of(cls, value: Scalar, kind: Type, q: float, lower: float, upper: float) -> Quantile:
        """Return the quantile of values of a type: whole numbers each have a leaf, where there are not too many.

        >>> from farthing.query.expressions import Column
        >>> ages = Quantile.of(Column("age"), Type.INTEGER, 0.5, 0.0, 120.0)
        >>> ages.whole, ages.leaves, ages.leaves_log2
        (True, 121, 7)
        >>> Quantile.of(Column("weight"), Type.FLOAT, 0.5, 0.0, 120.0).leaves
        65536
        """
        check_range(lower, upper)
        whole = kind is Type.INTEGER and not lower % 1 and not upper % 1
        if not whole or upper - lower >= 1 << LEAVES_LOG2 or max(abs(lower), abs(upper)) >= _MOST_EXACT:
            return cls(value, q, lower, upper)
        return cls(value, q, lower, upper, int(upper - lower).bit_length(), whole=True)

    def __post_init__(self) -> None:
        check_range(self.lower, self.upper)
        if not 0 <= self.q <= 1:
            raise InvalidBounds(
                "the quantile is out of range",
                rule="0 <= q <= 1",
                got=repr(self.q),
                next_step="0.5 is the median, 0 the least value, 1 the greatest",
            )

    @property
    def measures(self) -> tuple[Measure, ...]:
        """None: a quantile is found from a histogram."""
        return ()

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return int(self.upper - self.lower) + 1 if self.whole else 1 << self.leaves_log2

    @property
    def width(self) -> float:
        """How wide the grid is: leaf k holds the values from lower + k width/2^leaves_log2 on."""
        return float(1 << self.leaves_log2) if self.whole else self.upper - self.lower

    def canonical(self) -> str:
        """Return the identity text."""
        grid = [self.leaves_log2, "whole"] if self.whole else [self.leaves_log2]
        return json.dumps(["quantile", self.value.canonical(), self.q, self.lower, self.upper, *grid])

    def __str__(self) -> str:
        return f"QUANTILE({self.value} in [{self.lower:g}, {self.upper:g}], {self.q:g})"


@dataclass(frozen=True, slots=True)
class Formula:
    """The sum or the product of two answers, or of an answer and a number: AVG(a) - AVG(b).

    Its interval is told from what all its parts are measured by, at once: see `accuracy.formulas`.

    Attributes:
        left, right: an aggregate that is a function of measures, or a number; at least one is an aggregate.
        product: the product instead of the sum.
    """

    left: Aggregate | float
    right: Aggregate | float
    product: bool = False
    form: ClassVar[str] = "formula"

    def __post_init__(self) -> None:
        sides = (self.left, self.right)
        if any(isinstance(side, Quantile | OverGroups) for side in sides) or all(
            isinstance(side, float) for side in sides
        ):
            raise UnsupportedQuery(
                "this is not arithmetic with counts, sums, means and variances",
                construct="arithmetic",
                rule="a quantile is found by a search of its own, a share of a total is of other groups, too, and "
                "numbers alone need no data",
                got=str(self),
                next_step="select that by itself, and compute with the answer: that is free",
            )
        if len(self.measures) > MOST_MEASURES:
            raise UnsupportedQuery(
                "arithmetic with too many aggregates at once",
                construct="arithmetic",
                rule=f"what is computed is measured by at most {MOST_MEASURES} counts and sums",
                got=f"{len(self.measures)}",
                next_step="select the aggregates by themselves, and compute with the answer: that is free",
            )

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures it is a function of."""
        sides = (side for side in (self.left, self.right) if not isinstance(side, float))
        return tuple(dict.fromkeys(measure for side in sides for measure in side.measures))

    def canonical(self) -> str:
        """Return the identity text."""
        sides = [side if isinstance(side, float) else side.canonical() for side in (self.left, self.right)]
        return json.dumps(["product" if self.product else "sum", *sides])

    def __str__(self) -> str:
        left, right = (f"{side:g}" if isinstance(side, float) else str(side) for side in (self.left, self.right))
        return f"({left} {'*' if self.product else '+'} {right})"


Aggregate: TypeAlias = Single | Mean | Variance | Ratio | Pair | Formula | Quantile | OverGroups


def clamping(aggregate: Aggregate) -> tuple[Sum | Mean | Variance | Quantile, ...]:
    """Return the aggregates of one clamped value that an aggregate is made of; none for a count.

    >>> from farthing.query.expressions import Column
    >>> [str(part) for part in clamping(Ratio(Sum(Column("tip"), 0, 9), Count()))]
    ['SUM(tip in [0, 9])']
    """
    match aggregate:
        case Count() | CountUnits() | CountValues():
            return ()
        case ShareOfTotal() | RunningTotal():
            return (aggregate.part,) if isinstance(aggregate.part, Sum) else ()
        case Ratio(left, right) | Formula(left, right):
            sides = (side for side in (left, right) if not isinstance(side, float))
            return tuple(part for side in sides for part in clamping(side))
        case Pair():
            return Mean(aggregate.x, *aggregate.x_range), Mean(aggregate.y, *aggregate.y_range)
        case _:
            return (aggregate,)


def least(aggregate: Aggregate) -> float:
    """Return what an aggregate of one row is at least; below zero where the aggregate itself may be negative."""
    match aggregate:
        case Sum() | Mean() | Quantile():
            return aggregate.lower
        case Ratio():
            return aggregate.least
        case Pair() | Formula():
            return -math.inf
        case _:
            return 0.0


@dataclass(frozen=True, slots=True)
class NamedAggregate:
    """An aggregate with the name of its answer column."""

    name: str
    aggregate: Aggregate


def counting(name: str) -> tuple[NamedAggregate, ...]:
    """Return COUNT(*) under a name, alone."""
    return (NamedAggregate(name, Count()),)
