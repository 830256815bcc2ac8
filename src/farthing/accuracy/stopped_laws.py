"""Martingales of cells that stop alone, at a supposed truth, under each law of noise.

How likely what a cell has shown is at another truth, over how likely at the supposed one, is a martingale that begins
at 1, whatever looks were chosen. So is its mean over other truths of any law. What is shown last says it all: earlier
looks are, given the last one, noise alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from farthing.accuracy.noise_laws import COARSEST, GAUSSIAN, LAPLACE
from farthing.accuracy.stop_rule import two_sided

if TYPE_CHECKING:
    from farthing.accuracy.jumps import Floats
    from farthing.accuracy.noise_laws import NoiseLaw

_SCALES: Final = 63  # of information: from a grain to 2^62; of levels: from a farthing to 2^62
_TYPICAL: Final = 3.8  # log(1/beta) of a side at 95 %

_UPWARD: Final = 1.6  # how spread theta is, where means are too large; any number gives a valid bound
_DOWNWARD: Final = 0.1  # the same where they are too small
_REST: Final = 0.1  # of one cell in all: the part of the law of other truths that is spread widely
_WIDE: Final = tuple(8.0 * 4.0**power for power in range(4))  # how widely, in squares of what is expected

_STEEPEST: Final = 0.65  # of the rate of Laplace noise: the most that errors are tilted by
_BENT: Final = 3.0  # how much more slowly the shifts fall, in boundaries, where means are too large
_FAR: Final = 0.1  # of the shifts: those that reach truths which are much smaller
_FAR_DECAY: Final = 0.1  # of the rate at which a cell of that truth stops: how these fall
_LEAST_DECAY: Final = 0.05  # of that rate
_LATE: Final = 8.0  # how many scales after its time a cell is still followed on the other side
_BROAD_REST: Final = 0.3  # of one cell in all: the part of the shifts that are wide
_BROAD: Final = (0.5, 0.125, 0.03)  # of the rate at which a cell of that truth stops: how wide shifts fall
_BETWEEN: Final = (2.0**-4.5, 2.0**-3.5)  # of the rate: where one of the decays of `reach` is
_BEYOND: Final = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class StopView:
    """What a law sees of cells at supposed truths, from one side.

    Attributes:
        information: float64[..., cells], what each look has cost, times what a unit of it buys.
        tilt: float64[..., 1], by how much errors count.
        variance: float64[..., cells], about that with which a cell of that truth stops.
        steep: r/c of the rule.
        sign: 1 where means are above truths, -1 where they are below.
    """

    information: Floats
    tilt: Floats
    variance: Floats
    steep: float
    sign: int

    @property
    def cells(self) -> int:
        """How many cells there are in one sum."""
        return int(self.information.shape[-1])


class StopLaw(Protocol):
    """What the bound on sums of stopped cells needs of a law of noise."""

    @property
    def noise(self) -> NoiseLaw:
        """The law itself."""

    @property
    def uneven(self) -> float:
        """By how much the logarithm of G may be above that of a supermartingale: what steps of noise add."""

    def reach(self, information: Floats, beta: float) -> Floats:
        """Return how far a truth may be from its mean, but for a chance of beta, wherever the cell stopped."""

    def log_mixture(self, off: Floats, view: StopView) -> Floats:
        """Return the logarithm of a martingale of mean 1, at errors seen from one side; at most that of one."""

    def breaks(self, information: Floats, rule: tuple[float, float, float]) -> tuple[Floats, ...]:
        """Return truths just beyond those at which it breaks, by r, a* and c."""


@dataclass(frozen=True, slots=True)
class GaussianStops:
    """Brownian motions: G = E exp(theta B - theta^2 t/2), B being the error times the information t."""

    noise: NoiseLaw = GAUSSIAN
    uneven: float = 0.0

    def reach(self, information: Floats, beta: float) -> Floats:
        """Return how far a truth may be from its mean, but for a chance of beta, wherever the cell stopped."""
        level = math.log(_SCALES / beta)
        spreads = (8 * 2**0.5, 8 / 2**0.5)  # of theta, in units of the information: one of the scales is in between
        most = max(math.sqrt(2 * (1 + one) / one * (level + math.log1p(one) / 2)) for one in spreads)
        return np.asarray(most / np.sqrt(information))

    def breaks(self, information: Floats, rule: tuple[float, float, float]) -> tuple[Floats, ...]:  # noqa: ARG002
        """Return none: it is smooth."""
        return ()

    def log_mixture(self, off: Floats, view: StopView) -> Floats:
        """Return log G: of E exp(theta B - theta^2 t/2), for a law of theta that depends on the truth alone.

        Theta is Gaussian around its mean, a little spread, or widely spread around 0 with a small chance.

        Args:
            off: the errors, seen from one side.
            view: the cells; one over their variance is the unit of theta's spread.

        Guarantee: for one truth, G is a martingale in t with G = 1 at t = 0.
        Proof: docs/proofs/accuracy.stopped_sums.md.
        Assumes: tilt, variance and the number of cells do not depend on what was measured.
        Rounds: to nearest.
        """
        time, cells, variance = view.information, view.cells, view.variance
        shift, mean = off * time, view.tilt * variance
        bent = 4 * math.sqrt(2 * _TYPICAL) * view.steep / math.sqrt(cells)
        spread = max((_UPWARD if view.sign > 0 else _DOWNWARD) * bent, 1e-6)
        rest = _REST / cells
        found = math.log1p(-rest) + gaussian_mixture(shift, time, mean, spread * variance)
        for wide in _WIDE:
            one = gaussian_mixture(shift, time, 0.0, wide * variance)
            found = np.logaddexp(found, math.log(rest / len(_WIDE)) + one)
        return np.asarray(found)


def gaussian_mixture(shift: Floats, time: Floats, mean: Floats | float, spread: Floats) -> Floats:
    """Return log E exp(theta B - theta^2 t/2) for theta ~ N(mean, spread).

    >>> float(gaussian_mixture(np.array(3.0), np.array(2.0), 0.5, np.array(0.0)))
    1.25
    """
    wider = 1 + spread * time
    return np.asarray((spread * shift**2 + 2 * mean * shift - mean**2 * time) / (2 * wider) - np.log(wider) / 2)


GAUSSIAN_STOPS: Final = GaussianStops()


@dataclass(frozen=True, slots=True)
class LaplaceStops:
    """Laplace chains: shifts of the truth to one side, and an end that is tilted to the other.

    Attributes:
        most: the rate, one over the noise's scale, beyond which no cell of the rule is measured, and up to which noise
            decays by at most `COARSEST` a step.
    """

    most: float
    noise: NoiseLaw = LAPLACE
    uneven: float = COARSEST**2

    def reach(self, information: Floats, beta: float) -> Floats:
        """Return how far a truth may be from its mean, but for a chance of beta, wherever the cell stopped."""
        level = math.log(2 * _SCALES / beta)
        return np.asarray(max((level + math.log1p(1 / one)) / (1 - one) for one in _BETWEEN) / information)

    def breaks(self, information: Floats, rule: tuple[float, float, float]) -> tuple[Floats, ...]:
        """Return the truths beyond which a cell was measured later than it is followed."""
        relative, _, critical = rule
        if relative == 0:
            return ()
        late = 1 + self._late(information.shape[-1]) * relative / critical
        return (np.asarray(late * critical / (relative * information) * _BEYOND),)

    def log_mixture(self, off: Floats, view: StopView) -> Floats:
        """Return the logarithm of a mixture of three parts, in units of the rate at which a cell of that truth stops.

        Shifts to the side from which errors are seen, exponential: they grow like the exponential of a large error.
        An end tilted to the other side: it falls like the exponential of the error below zero. And wide shifts.

        Args:
            off: the errors, seen from one side.
            view: the cells, whose information is the rate.

        Guarantee: for one truth, G is at most exp(2^-20) times a supermartingale that begins at 1.
        Proof: docs/proofs/accuracy.stopped_sums.md, "Laplace chains".
        Assumes: tilt, variance and the number of cells do not depend on what was measured; up to `most` the noise
            decays by at most `COARSEST` a step.
        Rounds: to nearest.
        """
        rate, cells = view.information, view.cells
        typical = np.sqrt(self.noise.variance / view.variance)
        tilt, rest = np.minimum(view.tilt / typical, _STEEPEST), _BROAD_REST / cells
        end = np.minimum(typical * (1 + self._late(cells) * view.steep), self.most)
        if view.sign > 0:
            shifted, far, decay = tilt / (1 + tilt), _FAR * tilt / (1 + tilt), 1 - tilt - _BENT * view.steep
            parts = [(far, exponential_shifts(off, rate, _FAR_DECAY * typical))]
        else:
            shifted, far, decay, parts = tilt, 0.0 * tilt, 1 - tilt, []
        decay = np.maximum(decay, _LEAST_DECAY)
        parts.append((shifted, exponential_shifts(off, rate, decay * typical)))
        parts.append((1 - shifted - far, tilted_end(off, rate, end, np.minimum(tilt * typical, end))))
        found = np.asarray(math.log1p(-rest) + _log_sum(parts))
        for wide in _BROAD:
            for side in (off, -off):
                one = exponential_shifts(side, rate, wide * typical)
                found = np.logaddexp(found, math.log(rest / (2 * len(_BROAD))) + one)
        return np.asarray(found)

    @staticmethod
    def _late(cells: int) -> float:
        """Return how many scales after its time a cell is followed: more where one of more cells may be late."""
        return _LATE + math.log(10 * cells)


def exponential_shifts(off: Floats, rate: Floats, decay: Floats) -> Floats:
    """Return log E exp(rate (|off| - |off - d|)) for shifts d >= 0 of density decay exp(-decay d).

    >>> float(exponential_shifts(np.array(0.0), np.array(3.0), np.array(1.0)))  # log 1/4
    -1.3862943611198906
    """
    above = np.maximum(off, 0.0)
    gap = np.abs(rate - decay)
    grown = (rate - decay) * above
    with np.errstate(divide="ignore", invalid="ignore"):
        before = np.where(gap * above > 1e-12, -np.expm1(-gap * above) / gap, above)
    beyond = np.exp(np.minimum(grown, 0.0)) / (rate + decay)
    return np.asarray(np.log(decay * (before + beyond)) + np.maximum(grown, 0.0))


def tilted_end(off: Floats, rate: Floats, end: Floats, decay: Floats) -> Floats:
    """Return log E[f(N_end) | N_rate = off] - log E f(N_end), f(n) = exp(decay min(n, 0)); -inf where rate > end.

    >>> at_end = tilted_end(np.array([-1.0, 1.0]), np.array(2.0), np.array(2.0), np.array(2.0))
    >>> [round(float(one), 4) for one in at_end]  # E f is 3/4
    [-1.7123, 0.2877]
    """
    size, gap, left = np.abs(off), np.maximum(end - rate, 0.0), off < 0
    steeper, stays = np.where(left, gap + decay, gap), rate / end
    kept = np.exp(-steeper * size)
    with np.errstate(divide="ignore", invalid="ignore"):
        within = np.where(steeper * size > 1e-12, -np.expm1(-steeper * size) / steeper, size)
    before = 1 / (end + rate + np.where(left, 0.0, decay))
    beyond = kept / (end + rate + np.where(left, decay, 0.0))
    moved = (1 - stays**2) * end / 2 * (before + within + beyond)
    whole = 0.5 + end / (2 * (end + decay))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log((stays * kept + moved) / whole)
    return np.where(rate <= end * _BEYOND, found, -np.inf)


def _log_sum(parts: list[tuple[Floats, Floats]]) -> Floats:
    """Return the logarithm of a sum of parts, each with its share."""
    return np.asarray(np.logaddexp.reduce([np.log(share) + part for share, part in parts]))


def least_half_width(law: StopLaw, information: Floats, beta: float) -> Floats:
    """Return what fixed information would give, float64[sums]: below it no interval of a sum is.

    Under Laplace noise it is that of normal noise of the same variance, nearly.
    """
    variance = law.noise.variance / law.noise.precision(information, 1.0) ** 2
    return np.asarray(two_sided(beta) * np.sqrt(variance.sum(axis=-1)))
