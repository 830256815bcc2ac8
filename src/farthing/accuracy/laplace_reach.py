"""Which groups a mean or a variance can be told of under a pure budget: what targets take at any mean and variance.

The way is that of `reach`: an epsilon that a group may pay says how many rows it must seem to have when it has paid it,
at each mean and variance, and what coarse looks show more than the last one is noise of known size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.laplace_intervals import laplace_quantile
from farthing.accuracy.reach import FUTILE_SHARE, MANY, column, directions, least_near

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.joint_prices import Flags, Floats, Ints
    from farthing.accuracy.statistics import Statistic

_TURNS: Final = 30
_MOST: Final = 2.0  # change of a width in one of them


@dataclass(frozen=True, slots=True)
class LaplaceReach:
    """What groups take, by mean and variance.

    Attributes:
        ways: float64[lanes, n], what one row adds to the lanes, at every other mean and variance that is tried.
        needed: float64[n], the ticks that a group of one row would take there or at the next ones that are tried, the
            least of these.
        scale: float64[lanes], the scales of noise after one tick.
        noise: float64[n], how far the noise of one tick moves the rows that are estimated, times their weight.

    Guarantee: a group whose shown values would have one of these means and variances, and be within its target, when it
        has paid all that it may pay, is called too small at a fixed coarser look with probability FUTILE_SHARE beta at
        most, whatever it holds; that follows from shown values alone.
    Proof: docs/proofs/accuracy.laplace_looks.md, claim 3.
    Assumes: lanes of one shape, on one chain each, as `LaplaceLooks` has them; targets that scale with the rows.
    Rounds: to nearest; what lies between means and variances that are tried is held against simulations.
    """

    ways: Floats
    needed: Floats
    scale: Floats
    noise: Floats

    @classmethod
    def of(cls, only: Statistic, b: Floats, beta: float, wide: Callable[[Floats, Floats], Floats]) -> LaplaceReach:
        """Return that of one mean or variance.

        Args:
            only: the mean or variance.
            b: float64[lanes], the scales of noise after one tick.
            beta: the failure probability of the answer.
            wide: returns by what factor looks are too wide, by values and scales, float64[lanes, n].
        """
        lanes, half = column((only,))
        each = np.array(list(directions(half, squares=len(lanes) == 3))).T[np.argsort(lanes)]
        ticks = np.full(each.shape[1], float((b / np.abs(each).max(axis=1)).max()) / MANY)
        for _ in range(_TURNS):
            found = wide(each * MANY, b[:, None] / ticks)
            ticks = ticks * np.clip(np.where(np.isfinite(found), found, _MOST), 1 / _MOST, _MOST)
        chosen, needed = least_near(ticks * MANY)
        kept = each[:, chosen]
        noise = laplace_quantile(np.abs(kept) / b[:, None], 2 * FUTILE_SHARE * beta)
        return cls(kept, needed, b, noise)

    def too_small(self, values: Floats, ticks: Ints, most: int) -> Flags:
        """Return which groups surely hold too little to be within their targets, bool[n].

        Args:
            values: float64[lanes, n], what lanes show.
            ticks: int64[n], after so many ticks.
            most: the ticks that groups may come to.
        """
        weights = self.ways / self.scale[:, None] ** 2
        enough = (self.needed * (weights * self.ways).sum(axis=0) / max(most, 1))[:, None]
        doubt = self.noise[:, None] / np.maximum(ticks, 1)
        return np.asarray((weights.T @ values < enough - doubt).all(axis=0))
