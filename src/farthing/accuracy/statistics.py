"""Answers that are functions of a few noisy measures: counts and sums, means, variances and standard deviations.

The measures of a question are its *lanes*. Each statistic here names the lanes it reads and knows its estimate, how
steeply it depends on each lane, and an interval that is exact in this sense: given lanes with independent Gaussian
errors of known variance, it misses the truth with probability at most beta, whatever the truth is. No error is
linearised; where a lane is so noisy that nothing can be said, the interval is the whole range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from farthing.accuracy.fieller import fieller
from farthing.accuracy.formulas import FormulaStatistic, PairStatistic
from farthing.accuracy.stop_rule import two_sided

if TYPE_CHECKING:
    from collections.abc import Iterable

    from farthing.accuracy.enclosures import Enclosure
    from farthing.accuracy.jumps import Floats

_MEAN_SHARE: Final = 0.1
"""The part of a variance's beta that its unknown mean takes."""

_COUNT_SHARE: Final = 0.02
"""The part of a sample variance's beta that its unknown n takes."""

_BEND: Final = 4.0
"""What an unknown mean adds to a variance's squared slope, over width: twice (z of its share / z of the rest)^2."""

_BULGE: Final = 2**0.5
"""The root of what an uncertain denominator adds to a squared slope, over width^2."""

_BULGE_OF_SPREAD: Final = 2.5
"""The same for a variance, of which the mean's own interval has a smaller chance of a miss, and so a larger z."""

_CUT: Final = 1.5
"""An upper end seems cut where so many widths more are beyond the largest variance: it lies further out."""

_OFF_CENTRE: Final = 0.25
"""Where plans assume a mean to lie: this part of the half range off the middle."""

_MIDDLE: Final = 1e-9
"""A centre may be off the middle by this part of the half range, as floats are rounded."""

_TINY: Final = 1e-12


def added(terms: Iterable[Any]) -> Any:
    """Return the sum of one or more arrays; `sum` would add the first to zero, which takes as long as any other.

    >>> added([np.array([1.0]), np.array([2.0])]).tolist()
    [3.0]
    """
    return reduce(add, terms)


@dataclass(frozen=True, slots=True)
class Linear:
    """A weighted sum of lanes: a count, a sum, or a sum put together from a centred sum and a count.

    Attributes:
        lanes: the lanes it reads.
        weights: by what each is multiplied.
        row: what one row adds to it, about; for plans only.

    Guarantee: `interval` misses with probability beta at most.
    Proof: docs/proofs/accuracy.joint_measures.md.
    Assumes: independent Gaussian lanes whose variances were fixed before they were measured.
    Rounds: nothing.

    >>> total = Linear((0, 1), (1.0, 50.0))
    >>> total.estimate(np.array([[200.0], [10.0]])).tolist()
    [700.0]
    """

    lanes: tuple[int, ...]
    weights: tuple[float, ...] = (1.0,)
    row: float = 1.0

    @property
    def reads(self) -> tuple[int, ...]:
        """The lanes it is a function of."""
        return self.lanes

    @property
    def counts(self) -> tuple[int, ...]:
        """The lanes it divides by."""
        return ()

    @property
    def even(self) -> bool:
        """Whether an absolute target allows the same half-width at every magnitude."""
        return True

    def estimate(self, values: Floats) -> Floats:
        """Return its value, float64[groups], at lanes float64[lanes, groups]."""
        return np.asarray(added(weight * values[lane] for lane, weight in zip(self.lanes, self.weights, strict=True)))

    def size(self, values: Floats) -> Floats:
        """Return the magnitude that a relative target is about."""
        return np.abs(self.estimate(values))

    def width(self, size: Floats, relative: float, absolute: float) -> Floats:
        """Return the half-width that a target allows at that magnitude."""
        return np.asarray(np.maximum(relative * size, absolute))

    def slopes(self, values: Floats, width: Floats) -> Floats:  # noqa: ARG002  # straight at every width
        """Return how much it moves with each lane, float64[lanes, groups]."""
        slopes = np.zeros_like(values)
        slopes[list(self.lanes)] = np.array(self.weights)[:, None]
        return slopes

    def squared_slopes(self, values: Floats, width: Floats) -> dict[int, Floats]:  # noqa: ARG002
        """Return their squares in the lanes that it reads."""
        return {lane: np.asarray(weight * weight) for lane, weight in zip(self.lanes, self.weights, strict=True)}

    def interval(self, values: Floats, variances: Floats, beta: float) -> tuple[Floats, Floats]:
        """Return its interval at failure probability beta."""
        value = self.estimate(values)
        pairs = zip(self.lanes, self.weights, strict=True)
        half = two_sided(beta) * np.sqrt(added(weight * weight * variances[lane] for lane, weight in pairs))
        return value - half, value + half

    @property
    def spreads(self) -> tuple[VarianceStatistic, ...]:
        """The variances that a formula of it has roots of: none."""
        return ()

    def enclosed(self, lanes: dict[int, Enclosure]) -> Enclosure:
        """Return what it can be for lanes in their intervals."""
        first, *others = (lanes[lane].times(weight) for lane, weight in zip(self.lanes, self.weights, strict=True))
        return sum(others, first)

    def profile(self, size: float) -> dict[int, float]:
        """Return the lanes of a group of `size` rows, as plans assume them."""
        return {self.lanes[0]: size * self.row / self.weights[0]} if len(self.lanes) == 1 else {}


@dataclass(frozen=True, slots=True)
class RatioStatistic:
    """A mean of clamped values, centre + S/N; or one count or sum S over another, N, with centre 0.

    Attributes:
        count: the lane of N, the rows, or what is divided by; never below zero.
        total: the lane of S, the sum of (value - centre), or what is divided.
        centre: the middle of the range, or 0.
        lower, upper: the range; it may be without end.
        row: what one row adds to N and to S, about, where that does not follow from a range; for plans only.

    Guarantee: `interval` misses with probability beta at most; where N = 0, no number in the range is a miss.
    Proof: docs/proofs/accuracy.joint_measures.md (Fieller's set).
    Assumes: independent Gaussian lanes; the ratio of their variances was fixed before they were measured.
    Rounds: nothing.

    >>> mean = RatioStatistic(0, 1, 50.0, 0.0, 100.0)
    >>> values, variances = np.array([[1000.0], [5000.0]]), np.array([[100.0], [250_000.0]])
    >>> [round(float(end[0]), 2) for end in mean.interval(values, variances, 0.05)]
    [54.02, 55.99]
    """

    count: int
    total: int
    centre: float
    lower: float
    upper: float
    row: tuple[float, float] | None = None

    @property
    def half(self) -> float:
        """Half of the range."""
        return (self.upper - self.lower) / 2

    @property
    def centred(self) -> bool:
        """Whether the centre is the middle of a bounded range: else it is not a mean of values in that range."""
        return bool(0 < self.half < np.inf and abs(self.lower + self.half - self.centre) <= _MIDDLE * self.half)

    @property
    def reads(self) -> tuple[int, ...]:
        """The lanes it is a function of."""
        return (self.count, self.total)

    @property
    def counts(self) -> tuple[int, ...]:
        """The lanes it divides by."""
        return (self.count,)

    @property
    def even(self) -> bool:
        """Whether an absolute target allows the same half-width at every magnitude."""
        return True

    def estimate(self, values: Floats) -> Floats:
        """Return the mean, within its range; the centre where there seem to be no rows."""
        offset = _over(values[self.total], values[self.count])
        return np.clip(self.centre + offset, self.lower, self.upper)

    def size(self, values: Floats) -> Floats:
        """Return the magnitude that a relative target is about."""
        return np.abs(self.estimate(values))

    def width(self, size: Floats, relative: float, absolute: float) -> Floats:
        """Return the half-width that a target allows at that magnitude."""
        return np.asarray(np.maximum(relative * size, absolute))

    def slopes(self, values: Floats, width: Floats) -> Floats:
        """Return the derivatives: 1/N of S, (mean - centre)/N of N, with what an uncertain N adds to that width.

        Fieller's set is `1/(1 - g)` times as wide as the derivatives say, `g = z^2 var(N)/N^2`; to first order in g,
        as if N's slope had `2 (width/N)^2` more in its square.
        """
        slopes, count = np.zeros_like(values), np.maximum(values[self.count], _TINY)
        slopes[self.total] = 1 / count
        slopes[self.count] = np.hypot(self.centre - self.estimate(values), _BULGE * width) / count
        return slopes

    def squared_slopes(self, values: Floats, width: Floats) -> dict[int, Floats]:
        """Return their squares in the lanes that it reads."""
        total = np.maximum(values[self.count], _TINY) ** -2
        return {
            self.count: ((self.estimate(values) - self.centre) ** 2 + _BULGE**2 * width**2) * total,
            self.total: total,
        }

    def interval(self, values: Floats, variances: Floats, beta: float) -> tuple[Floats, Floats]:
        """Return Fieller's set, cut to the range."""
        low, high = fieller(
            values[self.total], values[self.count], variances[self.total], variances[self.count], two_sided(beta)
        )
        return (
            np.clip(self.centre + low, self.lower, self.upper),
            np.clip(self.centre + high, self.lower, self.upper),
        )

    @property
    def spreads(self) -> tuple[VarianceStatistic, ...]:
        """The variances that a formula of it has roots of: none."""
        return ()

    def enclosed(self, lanes: dict[int, Enclosure]) -> Enclosure:
        """Return what it can be for lanes in their intervals."""
        return (lanes[self.total].over(lanes[self.count]) + self.centre).within(self.lower, self.upper)

    def profile(self, size: float) -> dict[int, float]:
        """Return the lanes of a group of `size` rows, as plans assume them."""
        if self.row is not None:
            return {self.count: size * self.row[0], self.total: size * self.row[1]}
        return {self.count: size, self.total: size * _OFF_CENTRE * self.half}


@dataclass(frozen=True, slots=True)
class VarianceStatistic:
    """A variance of clamped values, or its root: V = Q/N + less - (S/N)^2, within [0, half^2].

    Attributes:
        count: the lane of N, the rows.
        total: the lane of S, the sum of (value - centre).
        squares: the lane of Q, the sum of (value - centre)^2 - less.
        half: half of the range, so that |value - centre| <= half.
        less: what is subtracted from each square; half^2/2 makes it as small as it can be.
        sample: V N/(N - 1) instead; 0 where N < 2.
        root: its square root.

    Guarantee: `interval` misses with probability beta at most; where N = 0, no number in the range is a miss.
    Proof: docs/proofs/accuracy.joint_measures.md.
    Assumes: independent Gaussian lanes; the ratios of their variances were fixed before they were measured.
    Rounds: nothing.

    >>> spread = VarianceStatistic(0, 1, 2, 50.0, root=True, less=1250.0)
    >>> values = np.array([[1e4], [5e4], [-3.5e6]])
    >>> round(float(spread.estimate(values)[0]), 2)
    29.58
    """

    count: int
    total: int
    squares: int
    half: float
    sample: bool = False
    root: bool = False
    less: float = 0.0

    @property
    def centred(self) -> bool:
        """Whether as much is subtracted from each square as makes it as small as it can be."""
        return bool(abs(self.less - self.half**2 / 2) <= _MIDDLE * self.half**2)

    @property
    def reads(self) -> tuple[int, ...]:
        """The lanes it is a function of."""
        return (self.count, self.total, self.squares)

    @property
    def counts(self) -> tuple[int, ...]:
        """The lanes it divides by."""
        return (self.count,)

    def _plain(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (rows, mean - centre, population variance), each within its range."""
        count = np.maximum(values[self.count], _TINY)
        offset = np.clip(values[self.total] / count, -self.half, self.half)
        variance = np.clip(values[self.squares] / count + self.less - offset**2, 0.0, self.half**2)
        return count, offset, variance

    @property
    def even(self) -> bool:
        """Whether an absolute target allows the same half-width at every magnitude."""
        return not self.root

    def estimate(self, values: Floats) -> Floats:
        """Return the variance, or its root."""
        count, _, variance = self._plain(values)
        if self.sample:
            rows = np.maximum(count, 2.0)
            variance = variance * rows / (rows - 1)
        return np.sqrt(variance) if self.root else variance

    def size(self, values: Floats) -> Floats:
        """Return the population variance: for prices, a target of a root is one of the variance, twice as wide."""
        return self._plain(values)[2]

    def width(self, size: Floats, relative: float, absolute: float) -> Floats:
        """Return the half-width of the variance that a target allows at that magnitude."""
        if not self.root:
            return np.asarray(np.maximum(relative * size, absolute))
        root = np.sqrt(size)
        width = np.maximum(relative * root, absolute)
        return np.asarray((2 * root + width) * width)

    def slopes(self, values: Floats, width: Floats) -> Floats:
        """Return the derivatives of the variance (before the root), with what uncertain means and N add to that width.

        An unknown mean adds `z^2 var(mean)` to an interval, beside `z` times a standard deviation that is about
        `width`: together about as much as if S's slope had `_BEND * width` more in its square. N is as in a ratio. If
        an upper end seems cut, the lower one alone counts: N's slope is its pivot's, at a variance less by the width.
        """
        count, offset, variance = self._plain(values)
        slopes, tilt = np.zeros_like(values), offset**2 - variance + self.less
        cut = variance + _CUT * width >= self.half**2
        steep = np.where(cut, np.hypot(tilt + width, _BULGE * width), np.hypot(tilt, _BULGE_OF_SPREAD * width))
        slopes[self.squares] = 1 / count
        slopes[self.total] = np.sqrt(4 * offset**2 + _BEND * width) / count
        slopes[self.count] = steep / count
        return slopes

    def squared_slopes(self, values: Floats, width: Floats) -> dict[int, Floats]:
        """Return their squares in the lanes that it reads."""
        slopes = self.slopes(values, width)
        return {lane: slopes[lane] ** 2 for lane in self.reads}

    def interval(self, values: Floats, variances: Floats, beta: float) -> tuple[Floats, Floats]:
        """Return an interval of the variance or its root, cut to what a range allows."""
        lower, upper = self.ends(values, variances, beta)
        lower, upper = (np.clip(end, 0.0, self.half**2) for end in (lower, upper))
        if self.sample:
            lower, upper = self.sampled(lower, upper, values, variances, beta)
        return (np.sqrt(lower), np.sqrt(upper)) if self.root else (lower, upper)

    def sampled(
        self, lower: Floats, upper: Floats, values: Floats, variances: Floats, beta: float
    ) -> tuple[Floats, Floats]:
        """Return the ends of an interval of the sample variance, from those of the population variance."""
        reach = two_sided(beta * _COUNT_SHARE) * np.sqrt(variances[self.count])
        return _sampled(lower, upper, values[self.count], reach)

    def ends(self, values: Floats, variances: Floats, beta: float) -> tuple[Floats, Floats]:
        """Return an interval of the population variance that is not cut; its ends may be infinite.

        `Q - 2 d S + (d^2 + less - V) N` is centred at the true d = mean - centre, so V lies in Fieller's set at d; the
        union over an interval of d holds V. Its upper end is convex in d; its lower one is the sum of a parabola and a
        concave function: both are bounded from the two ends of the interval of d.
        """
        n, s, q = (values[lane] for lane in (self.count, self.total, self.squares))
        n_var, s_var, q_var = (variances[lane] for lane in (self.count, self.total, self.squares))
        ends = [
            np.clip(end, -self.half, self.half) for end in fieller(s, n, s_var, n_var, two_sided(beta * _MEAN_SHARE))
        ]
        tilt = 2 * _over(s, n)
        z = two_sided(beta * (1 - _MEAN_SHARE - (_COUNT_SHARE if self.sample else 0.0)))
        sets = [fieller(q - 2 * d * s, n, q_var + 4 * d * d * s_var, n_var, z) for d in ends]
        upper = np.maximum(*(d * d + above for d, (_, above) in zip(ends, sets, strict=True)))
        vertex = np.clip(tilt / 2, *ends)
        lower = vertex * (vertex - tilt) + np.minimum(
            *(below + tilt * d for d, (below, _) in zip(ends, sets, strict=True))
        )
        return lower + self.less, upper + self.less

    @property
    def spreads(self) -> tuple[VarianceStatistic, ...]:
        """The variances that a formula of it has roots of."""
        return (replace(self, root=False, sample=False),) if self.root else ()

    def enclosed(self, lanes: dict[int, Enclosure]) -> Enclosure:
        """Return what it can be for lanes in their intervals."""
        rows, most = lanes[self.count], self.half**2
        offset = lanes[self.total].over(rows).within(-self.half, self.half)
        plain = (lanes[self.squares].over(rows) + self.less - offset.squared()).within(0.0, most)
        made = plain.sampled(rows) if self.sample else plain
        return made.root() if self.root else made

    def profile(self, size: float) -> dict[int, float]:
        """Return the lanes of a group of `size` rows, as plans assume them: as spread as the uniform law."""
        offset = _OFF_CENTRE * self.half
        square = self.half**2 / 3
        return {self.count: size, self.total: size * offset, self.squares: size * (square - self.less)}


Statistic: TypeAlias = Linear | RatioStatistic | VarianceStatistic | FormulaStatistic | PairStatistic


def _over(top: Floats, bottom: Floats) -> Floats:
    """Return top / bottom where bottom is positive, else 0."""
    return np.where(bottom > 0, top / np.maximum(bottom, _TINY), 0.0)


def _sampled(lower: Floats, upper: Floats, count: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """Return the ends of V n/(n - 1) for every n >= 2 in count +- reach; from 0 where n may be less."""
    least, most = count - reach, np.maximum(count + reach, 2.0)
    known = least >= 2
    few = np.maximum(least, 2.0)
    return np.where(known, lower * most / (most - 1), 0.0), upper * few / (few - 1)
