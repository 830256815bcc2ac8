"""A variance or standard deviation alone: looks at growing precision, as at a mean.

Rows, sum and squares are measured in one shape; the first look whose interval fits into the target is the last. What
the interval has beyond a plain one, for the unknown mean, is the same at every look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.joint_claims import PARTS
from farthing.accuracy.joint_prices import in_parts
from farthing.accuracy.ratio_looks import BETAS, RatioLooks
from farthing.accuracy.ratio_shapes import LOOKS_SHARE, PILOT
from farthing.accuracy.statistics import VarianceStatistic
from farthing.accuracy.stop_rule import two_sided

if TYPE_CHECKING:
    from farthing.accuracy.joint_prices import Flags, Floats, Ints, JointPrices

SHARES: Final = (0.28, 0.43, 0.29)
"""The parts of a tick that go to rows, sum and squares where all groups have one shape."""

APART: Final = 2.0
"""Other shapes give each of them no less than its part over this, nor more than so many times that."""

PUBLIC_OVER: Final = 0.09
"""A pilot costs more than it saves where the target changes by this part of itself, or more, within its own width."""

TILTED: Final = 0.6
"""The largest such part that c is calibrated for."""

SLOPE, SLOPE_STEEP = 0.5, 0.75
"""How c grows with it, times z: up to the following part, and above."""

STEEP: Final = 0.44
"""A part from which noise of the earliest looks counts, too."""

_SURER: Final = 0.04
_UNSURE: Final = 0.45  # by what part of itself that of steep targets is more, for each unit of z below that of 95 %
_NEARLY: Final = 1e-9
_TINY: Final = 1e-100


@dataclass(frozen=True, slots=True)
class VarianceLooks(RatioLooks):
    """How a variance or its root alone is measured.

    Attributes:
        prices: its target.
        beta: the failure probability of its interval.
        critical: c; intervals are those of a single look whose chance of a miss is that of c.
        least: not used.
        public: whether all groups have one shape.

    Guarantee: the interval of every group misses its variance with probability beta at most, whatever that is.
    Proof: docs/proofs/accuracy.variance_looks.md.
    Assumes: fresh, independent Gaussian noise of variance 1/(grains * worth); targets that do not depend on earlier
        answers of the question.
    Rounds: looks are whole numbers of ticks; c is held against simulations of this code.
    """

    @classmethod
    def of(cls, prices: JointPrices, beta: float, held: float = 0.0) -> VarianceLooks | None:
        """Return the rule of a question, or None: it is not one variance, or its target is too coarse or absolute.

        Args:
            prices: the targets.
            beta: the failure probability.
            held: the critical value of the looks that are gone on from; it is not lowered.
        """
        only = prices.statistics[0]
        if len(prices.statistics) > 1 or not isinstance(only, VarianceStatistic) or prices.named_loss:
            return None
        if not only.centred or prices.patience > 1 or not BETAS[0] <= beta <= BETAS[1]:
            return None
        relative, absolute = float(prices.relative[0, 0]), float(prices.absolute[0, 0])
        most = relative * (2 if only.root else 1)
        if most > TILTED + _NEARLY or (only.root and absolute):  # near 0 a root may change by any part of itself
            return None
        return cls(prices, beta, max(critical_value(beta, most), held), 0.0, most >= PUBLIC_OVER)

    @property
    def _variance(self) -> VarianceStatistic:
        """The variance."""
        (only,) = self.prices.statistics
        assert isinstance(only, VarianceStatistic)  # noqa: S101  # `of` makes sure
        return only

    @property
    def count(self) -> int:
        """The lane of the rows."""
        return self._variance.count

    def shape(self, means: Floats, information: Ints) -> Ints:
        """Return the grains of one tick, int64[lanes, groups], by what a pilot told, or the public ones."""
        only, even = self._variance, np.zeros((len(self.prices.worth), 1))
        even[[only.count, only.total, only.squares], 0] = SHARES
        wanted = np.broadcast_to(even, means.shape)
        if not self.public:
            best = self.prices.wanted_of(means, information, self.told)
            wanted = np.clip(best / np.maximum(best.sum(axis=0), 1e-100), even / APART, even * APART)
        return in_parts(wanted, self.prices.used, PARTS)

    @property
    def overhead(self) -> float:
        """About what a pilot, or the one shape of all groups, adds to the price."""
        return PILOT

    def _told(self, values: Floats, variances: Floats) -> tuple[Floats, Floats]:
        """Return the intervals that looks tell at c, float64[1, n]."""
        return self.prices.intervals(values, variances, self.told)

    def _excess_at(self, values: Floats, variances: Floats) -> Floats:
        """Return by what factor intervals are too wide at c; infinite where they are the whole line.

        Of steep targets they are cut where a variance can be no larger: there c has room for that.
        """
        ((relative,),), ((absolute,),) = self.prices.relative.tolist(), self.prices.absolute.tolist()
        return too_wide(self._variance, (relative, absolute), values, variances, self.told, cut=self.public)

    def _near_end(self, values: Floats, variances: Floats, growth: float) -> Flags:  # noqa: ARG002  # all are alike
        """Return none: looks end at c or not at all."""
        return np.zeros(values.shape[1], np.bool_)

    def _excess_cut(self, values: Floats, variances: Floats) -> Floats:  # noqa: ARG002  # all are cut at c
        """Return infinity: none is cut at a larger c."""
        return np.full(values.shape[1], np.inf)


def critical_value(beta: float, most: float) -> float:
    """Return c for a target that changes by at most that part of itself within its own width.

    >>> round(critical_value(0.05, 0.0), 3), round(critical_value(0.05, 0.6), 3)
    (1.975, 2.205)
    """
    z = two_sided(beta)
    surer = z - two_sided(0.05)
    slope = (SLOPE if most <= STEEP else SLOPE_STEEP) * max(1.0, 1 + _SURER * surer)
    if most > STEEP:
        slope *= max(1.0, 1 - _UNSURE * surer)
    return two_sided(beta * LOOKS_SHARE) + slope / z * most


def too_wide(
    one: VarianceStatistic,
    target: tuple[float, float],
    values: Floats,
    variances: Floats,
    told: float,
    *,
    cut: bool,
) -> Floats:
    """Return by what factor intervals of a variance are too wide; infinite where they are the whole line.

    Args:
        one: the variance, or its root.
        target: relative and absolute.
        values: float64[lanes, groups], what lanes seem to hold.
        variances: float64[lanes, groups], of their noise.
        told: the failure probability of the intervals.
        cut: whether they end where a variance can be no larger.
    """
    low, high = one.ends(values, variances, told)
    known = np.isfinite(high - low)
    if cut:
        known &= low < one.half**2
        high = np.minimum(high, one.half**2)
    if one.sample:
        low, high = one.sampled(low, high, values, variances, told)
    low, high = np.where(known, low, 0.0), np.where(known, high, 1.0)
    possible = [np.maximum(end, 0.0) for end in (low, high)]  # what a target allows below 0 is what it does at 0
    if one.root:
        known &= low > 0
        low, high = possible = [np.sqrt(end) for end in possible]
    allowed = sum(np.maximum(target[0] * end, target[1]) for end in possible)
    return np.where(known, (high - low) / np.maximum(allowed, _TINY), np.inf)
