"""Which statistic each aggregate of a question is, by its form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from farthing.accuracy.formulas import FormulaStatistic, PairStatistic
from farthing.accuracy.statistics import Linear, RatioStatistic, VarianceStatistic
from farthing.errors import UnsupportedQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from farthing.accuracy.statistics import Statistic


class _NamedAggregate(Protocol):
    """A named aggregate."""

    @property
    def aggregate(self) -> Any:
        """The aggregate, of which `measures` are read, and bounds where it has several."""


def from_aggregates(outputs: Sequence[_NamedAggregate], measures: Sequence[Any]) -> tuple[Statistic, ...]:
    """Return every output as a statistic of the measures of a question, in values: whole numbers times their step.

    Which function an aggregate is, its form says. A sum whose centred sum and count are there for another output is
    read from these.

    >>> from farthing.query.aggregates import Mean, NamedAggregate, Sum
    >>> from farthing.query.shared_measures import needed
    >>> from farthing.query.expressions import Column
    >>> outputs = [NamedAggregate("a", Sum(Column("fare"), 0, 100)), NamedAggregate("b", Mean(Column("fare"), 0, 100))]
    >>> measures = needed(output.aggregate for output in outputs)
    >>> len(measures), from_aggregates(outputs, measures)[0]
    (2, Linear(lanes=(1, 0), weights=(1.0, 50.0), row=50.0))
    """
    return tuple(_statistic(output.aggregate, measures) for output in outputs)


def _statistic(aggregate: Any, measures: Sequence[Any]) -> Statistic:
    """Return an aggregate as a function of lanes: the one of its form, never one guessed from how many it reads."""
    if aggregate.form not in FORMS:
        raise UnsupportedQuery(
            "this aggregate is not a function of counts and sums",
            construct=type(aggregate).__name__,
            got=str(aggregate),
            rule="counts, sums, means and variances are answered together",
            next_step="ask for it in a question of its own",
        )
    return FORMS[aggregate.form](aggregate, measures)


def _places(aggregate: Any, measures: Sequence[Any]) -> list[int]:
    """Return the lanes of an aggregate's measures."""
    return [measures.index(measure) for measure in aggregate.measures]


def _mean(aggregate: Any, measures: Sequence[Any]) -> RatioStatistic:
    """Return a mean of clamped values: the centre of their sum, and the sum over the count."""
    count, total = _places(aggregate, measures)
    return RatioStatistic(count, total, measures[total].centre, aggregate.lower, aggregate.upper)


def _ratio(aggregate: Any, measures: Sequence[Any]) -> RatioStatistic:
    """Return one count or sum over another."""
    bottom, top = _places(aggregate, measures)
    return RatioStatistic(bottom, top, 0.0, aggregate.least, np.inf, aggregate.typical)


def _variance(aggregate: Any, measures: Sequence[Any]) -> VarianceStatistic:
    """Return a variance or its root."""
    count, total, squares = _places(aggregate, measures)
    centre, less = measures[total].centre, measures[squares].less
    half = max(aggregate.upper - centre, centre - aggregate.lower)
    return VarianceStatistic(count, total, squares, half, aggregate.sample, aggregate.root, less)


def _formula(aggregate: Any, measures: Sequence[Any]) -> FormulaStatistic:
    """Return a sum or product of aggregates and numbers."""
    sides = (aggregate.left, aggregate.right)
    left, right = (side if isinstance(side, float) else _statistic(side, measures) for side in sides)
    return FormulaStatistic(left, right, aggregate.product, _scales(measures))


def _pair(aggregate: Any, measures: Sequence[Any]) -> PairStatistic:
    """Return a covariance, a correlation, or the line of y through x."""
    count, x, y, product = (measures.index(measure) for measure in aggregate.places[:4])
    sides = zip((x, y), aggregate.places[4:], aggregate.halves, strict=True)
    first, second = (_variance_of(count, total, squares, half, measures) for total, squares, half in sides)
    used = tuple(sorted(_places(aggregate, measures)))
    return PairStatistic(
        aggregate.kind, product, first, second, aggregate.centres, aggregate.sample, used, _scales(measures)
    )


def _scales(measures: Sequence[Any]) -> tuple[float, ...]:
    """Return what a row adds to each lane at most."""
    return tuple(measure.sensitivity(1) * measure.step for measure in measures)


def _variance_of(count: int, total: int, squares: Any, half: float, measures: Sequence[Any]) -> VarianceStatistic:
    """Return the variance of one of two values; without a measure of squares nothing but its mean is read of it."""
    if squares is None:
        return VarianceStatistic(count, total, -1, half)
    return VarianceStatistic(count, total, measures.index(squares), half, less=squares.less)


def _linear(aggregate: Any, measures: Sequence[Any]) -> Linear:
    """Return a count or a sum; a sum through its centred sum and count, where other outputs need both.

    With centre c and half-width h of the range, |lower|, |upper| <= h + |c|: nothing is lost by putting it together.
    """
    (measure,) = aggregate.measures
    if not hasattr(aggregate, "lower"):
        return Linear((measures.index(measure),))
    row = max(abs(aggregate.lower), abs(aggregate.upper)) / 2
    counts = [
        place for place, other in enumerate(measures) if other.canonical() == f"count({measure.value.canonical()})"
    ]
    for place, other in enumerate(measures):
        if counts and getattr(other, "power", 0) == 1 and other != measure and _same_values(measure, other):
            return Linear((place, counts[0]), (1.0, other.centre), row)
    return Linear((measures.index(measure),), (1.0,), row)


def _same_values(one: Any, other: Any) -> bool:
    """Tell whether two sums are of the same clamped values."""
    return (one.value, one.lower, one.upper) == (other.value, other.lower, other.upper)


FORMS: Final[dict[str, Callable[[Any, Sequence[Any]], Statistic]]] = {
    "formula": _formula,
    "linear": _linear,
    "mean": _mean,
    "pair": _pair,
    "ratio": _ratio,
    "variance": _variance,
}
"""The function of each form of aggregates."""
