"""Numbers computed from several others: arithmetic of answers, covariances, correlations, slopes of lines.

Their intervals are exact as those of `statistics` are, by one way for all: see `CurvedStatistic.interval`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy.enclosures import Enclosure
from farthing.accuracy.stop_rule import two_sided

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from farthing.accuracy.jumps import Floats

_BOX_SHARE: Final = 0.1
"""The part of beta that the box takes, in which all lanes lie."""

_BEND: Final = 4.0
"""What bends add to squared slopes, over width: about what they add to an interval's square, over z^2."""

_STEEPEST: Final = 1e60
_TURNS: Final = 4  # of the fixed point in which lanes share what bends add
_TYPICAL: Final = 0.5  # the correlation that plans assume
_OFF_CENTRE: Final = 0.25


class CurvedStatistic:
    """A number with two derivatives, computed from lanes.

    Guarantee: `interval` misses with probability beta at most; where a count that is divided by is 0, no number misses.
    Proof: docs/proofs/accuracy.joint_measures.md (claim 5).
    Assumes: independent Gaussian lanes; the ratios of their variances were fixed before they were measured.
    Rounds: nothing.
    """

    __slots__ = ()
    scales: tuple[float, ...]

    @property
    def reads(self) -> tuple[int, ...]:
        """The lanes it is a function of."""
        raise NotImplementedError

    def enclosed(self, lanes: dict[int, Enclosure]) -> Enclosure:
        """Return what it can be for lanes in their intervals."""
        raise NotImplementedError

    def estimate(self, values: Floats) -> Floats:
        """Return its value, float64[groups], at lanes float64[lanes, groups]; 0 where it could be anything."""
        low, high = _at(self, values[list(self.reads)], bent=False).value
        with np.errstate(invalid="ignore"):
            middle = low + (high - low) / 2
        return np.where(np.isfinite(middle), middle, 0.0)

    def size(self, values: Floats) -> Floats:
        """Return the magnitude that a relative target is about."""
        return np.abs(self.estimate(values))

    def width(self, size: Floats, relative: float, absolute: float) -> Floats:
        """Return the half-width that a target allows at that magnitude."""
        return np.asarray(np.maximum(relative * size, absolute))

    def slopes(self, values: Floats, width: Floats) -> Floats:
        """Return the derivatives, with about what bends add to an interval of that half-width."""
        lanes, slopes = values[list(self.reads)], np.zeros_like(values)
        point, scale = (
            _at(self, lanes, bent=True),
            np.array([self.scales[lane] for lane in self.reads])[:, None],
        )
        with np.errstate(invalid="ignore", over="ignore"):
            steep = _at_most(_largest(point.slopes) * scale)
            bend = _at_most(_largest(point.bends) * scale[:, None] * scale[None] * (_BEND * width))
        found = np.sqrt(steep**2 + bend.sum(axis=1) + 1 / _STEEPEST)
        for _ in range(_TURNS):
            root = np.sqrt(found)
            found = np.sqrt(steep**2 + root * (bend / root[None]).sum(axis=1) + 1 / _STEEPEST)
        slopes[list(self.reads)] = found / scale
        return slopes

    @property
    def even(self) -> bool:
        """Whether an absolute target allows the same half-width at every magnitude."""
        return True

    def squared_slopes(self, values: Floats, width: Floats) -> dict[int, Floats]:
        """Return the squares of the slopes in the lanes that it reads."""
        slopes = self.slopes(values, width)
        return {lane: slopes[lane] ** 2 for lane in self.reads}

    def interval(self, values: Floats, variances: Floats, beta: float) -> tuple[Floats, Floats]:
        """Return its interval at failure probability beta.

        Except with a tenth of beta, every lane is within its reach r. Over that box the number is in `hull`, and no
        second derivative is above `bends`. From the truth x to what was measured, X, it moves by f'(x) (X - x), which
        is Gaussian, and by (X - x) f'' (X - x) / 2; f'(x) is within `bends` times r of f'(X).
        """
        reads = list(self.reads)
        variance = variances[reads]
        reach = two_sided(beta * _BOX_SHARE / len(reads)) * np.sqrt(variance)

        def half_of(slopes: Floats) -> Floats:
            """Return how far noise may move the number, at these slopes at most."""
            return np.asarray(two_sided(beta * (1 - _BOX_SHARE)) * np.sqrt((slopes**2 * variance).sum(axis=0)))

        return bent_interval(self, values[reads], reach, half_of)


@dataclass(frozen=True, slots=True)
class FormulaStatistic(CurvedStatistic):
    """The sum or the product of two numbers, of which at least one is a statistic.

    Attributes:
        left, right: a statistic, or a number.
        product: the product instead of the sum.
        scales: what a row adds to each lane of the question at most; for prices only.

    >>> from farthing.accuracy.statistics import RatioStatistic
    >>> apart = FormulaStatistic(RatioStatistic(0, 1, 5.0, 0.0, 10.0), FormulaStatistic(
    ...     -1.0, RatioStatistic(2, 3, 5.0, 0.0, 10.0), product=True))
    >>> lanes = np.array([[1000.0], [2000.0], [500.0], [500.0]])
    >>> apart.estimate(lanes).tolist()
    [1.0]
    >>> [round(float(end[0]), 2) for end in apart.interval(lanes, np.array([[25.0], [600.0]] * 2), 0.05)]
    [0.87, 1.13]
    """

    left: Any
    right: Any
    product: bool = False
    scales: tuple[float, ...] = ()

    @property
    def _parts(self) -> list[Any]:
        """The statistics among the two."""
        return [part for part in (self.left, self.right) if not isinstance(part, float)]

    @property
    def reads(self) -> tuple[int, ...]:
        """The lanes it is a function of."""
        return tuple(sorted({lane for part in self._parts for lane in part.reads}))

    @property
    def counts(self) -> tuple[int, ...]:
        """The lanes it divides by."""
        return tuple(sorted({lane for part in self._parts for lane in part.counts}))

    @property
    def spreads(self) -> tuple[Any, ...]:
        """The variances that it divides by, or of which it has roots."""
        return tuple(dict.fromkeys(spread for part in self._parts for spread in part.spreads))

    def enclosed(self, lanes: dict[int, Enclosure]) -> Enclosure:
        """Return what it can be for lanes in their intervals."""
        if isinstance(self.left, float) or isinstance(self.right, float):
            number, part = (self.left, self.right) if isinstance(self.left, float) else (self.right, self.left)
            made: Enclosure = part.enclosed(lanes)
            return made.times(number) if self.product else made + number
        left, right = self.left.enclosed(lanes), self.right.enclosed(lanes)
        return left * right if self.product else left + right  # type: ignore[no-any-return]  # of Enclosures

    def profile(self, size: float) -> dict[int, float]:
        """Return the lanes of a group of `size` rows, as plans assume them."""
        return {lane: value for part in self._parts for lane, value in part.profile(size).items()}


@dataclass(frozen=True, slots=True)
class PairStatistic(CurvedStatistic):
    """A covariance of two clamped values, their correlation, or the line of y through x.

    Attributes:
        kind: "covariance", "correlation", "slope" or "intercept".
        product: the lane of the sum of (x - centre) (y - centre).
        x, y: each value's variance, a `VarianceStatistic`; it has the lanes of rows, of the centred sum and of squares.
        centres: the centres of x and y.
        sample: a covariance by n - 1 instead of n.
        lanes: the lanes it reads.
        scales: what a row adds to each lane of the question at most; for prices only.
    """

    kind: str
    product: int
    x: Any
    y: Any
    centres: tuple[float, float]
    sample: bool
    lanes: tuple[int, ...]
    scales: tuple[float, ...] = ()

    @property
    def reads(self) -> tuple[int, ...]:
        """The lanes it is a function of."""
        return self.lanes

    @property
    def counts(self) -> tuple[int, ...]:
        """The lanes it divides by."""
        return (self.x.count,)

    @property
    def spreads(self) -> tuple[Any, ...]:
        """The variances that it divides by, or of which it has roots."""
        return tuple(spread for spread in (self.x, self.y) if spread.squares in self.lanes)

    def enclosed(self, lanes: dict[int, Enclosure]) -> Enclosure:
        """Return what it can be for lanes in their intervals."""
        rows, most = lanes[self.x.count], self.x.half * self.y.half
        x, y = (lanes[each.total].over(rows).within(-each.half, each.half) for each in (self.x, self.y))
        both = (lanes[self.product].over(rows).within(-most, most) - x * y).within(-most, most)
        match self.kind:
            case "covariance":
                return both.sampled(rows) if self.sample else both
            case "correlation":
                apart = self.x.enclosed(lanes).root() * self.y.enclosed(lanes).root()
                return both.over(apart).within(-1.0, 1.0)
            case "slope":
                return both.over(self.x.enclosed(lanes))
            case _:
                slope = both.over(self.x.enclosed(lanes))
                return y + self.centres[1] - slope * (x + self.centres[0])

    def profile(self, size: float) -> dict[int, float]:
        """Return the lanes of a group of `size` rows, as plans assume them: uniform values, half correlated."""
        scale = self.x.half * self.y.half
        product = {self.product: size * scale * (_TYPICAL / 3 + _OFF_CENTRE**2)}
        found = self.x.profile(size) | self.y.profile(size) | product
        return {lane: value for lane, value in found.items() if lane in self.lanes}


def bent_interval(
    statistic: Any, lanes: Floats, reach: Floats, half_of: Callable[[Floats], Floats]
) -> tuple[Floats, Floats]:
    """Return the interval of a number with two derivatives, for noise of any law.

    Args:
        statistic: what `enclosed` is asked of, and `reads`.
        lanes: float64[lanes that it reads, groups], what was measured.
        reach: the same shape, how far the truth may be from that, all lanes together, but for the chance of the box.
        half_of: returns how far noise moves a number with slopes of at most these magnitudes, but for the rest of beta.

    Guarantee: it misses with the two chances together at most.
    Proof: docs/proofs/accuracy.joint_measures.md (claim 5); docs/proofs/accuracy.laplace_measures.md (claim 3).
    Assumes: `half_of` grows with each slope.
    Rounds: nothing.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        hull = _over(statistic, lanes - reach, lanes + reach, bent=False).value
        bends = _largest(_over(statistic, lanes - reach, lanes + reach, bent=True).bends)
        point = _at(statistic, lanes, bent=True)
        turned = np.einsum("lkg,kg->lg", bends, reach)
        half = half_of(_largest(point.slopes) + turned) + (turned * reach).sum(axis=0) / 2
        low, high = point.value[0] - half, point.value[1] + half
    low = np.fmax(np.where(np.isnan(low), -np.inf, low), hull[0])
    high = np.fmin(np.where(np.isnan(high), np.inf, high), hull[1])
    return np.minimum(low, high), np.maximum(low, high)


def _at(statistic: Any, lanes: Floats, *, bent: bool) -> Enclosure:
    """Return a number at lanes, with its derivatives if bent; the latest are kept, since looks ask for one again."""
    return _kept(statistic, lanes.shape, lanes.tobytes(), bent)


@lru_cache(maxsize=8)
def _kept(statistic: Any, shape: tuple[int, ...], lanes: bytes, bent: bool) -> Enclosure:  # a key
    """Return the same of lanes as bytes: what lanes are alike is told by every bit of them."""
    values = np.frombuffer(lanes).reshape(shape)
    return _over(statistic, values, values, bent=bent)


def _over(statistic: Any, low: Floats, high: Floats, *, bent: bool) -> Enclosure:
    """Return a number over a box, float64[lanes that it reads, groups] twice; with its derivatives if bent."""
    reads = statistic.reads
    lanes = {
        lane: Enclosure.of((low[place], high[place]), place if bent else None, len(reads))
        for place, lane in enumerate(reads)
    }
    with np.errstate(invalid="ignore", over="ignore"):
        made: Enclosure = statistic.enclosed(lanes)
    return made


def _at_most(steep: Floats) -> Floats:
    """Return derivatives that can be computed with."""
    return np.minimum(np.where(np.isnan(steep), _STEEPEST, steep), _STEEPEST)


def _largest(ends: Any) -> Floats:
    """Return the largest magnitude in intervals."""
    low, high = ends
    found: Floats = np.maximum(np.abs(low), np.abs(high))
    return np.where(np.isnan(found), np.inf, found)


def at_least(values: Floats, variances: Floats, spreads: Sequence[Any], times: float) -> tuple[Floats, Floats, Floats]:
    """Return lanes in which no variance is below so many of its standard deviations, and how clear variances are.

    Args:
        values: float64[lanes, groups], of which no count is zero.
        variances: those of the lanes.
        spreads: variances, each a `VarianceStatistic`.
        times: of how many standard deviations each is at least.

    Returns:
        The lanes; the variances as they are, over these standard deviations, and as they are then, likewise: the least
        of all spreads, float64[groups].
    """
    lanes, seems, then = values.copy(), np.full(values.shape[1], np.inf), np.full(values.shape[1], np.inf)
    for spread in spreads:
        count = np.maximum(lanes[spread.count], 1e-12)
        now = lanes[spread.squares] / count + spread.less - (lanes[spread.total] / count) ** 2
        slopes = spread.slopes(lanes, np.zeros(lanes.shape[1]))
        deviation = np.maximum(np.sqrt((slopes * slopes * variances).sum(axis=0)), 1e-100)
        more = np.maximum(times * deviation - now, 0.0)
        lanes[spread.squares] = lanes[spread.squares] + more * count
        seems, then = np.minimum(seems, now / deviation), np.minimum(then, (now + more) / deviation)
    return lanes, seems, then
