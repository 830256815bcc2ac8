"""The gradual-release chain on the integers: finer noise from the coarser that was shown, and coarser from finer.

From fine to coarse the chain is simple: the noise N of rate n is kept with probability sinh^2(o/2)/sinh^2(n/2), else an
independent two-sided geometric number of rate o is added to it; the sum X has rate o. The other way round, with
m = |X|, q = exp(-(n - o)), c = exp(-(n + o)) and N told in the direction of X, Bayes' rule leaves three tails:

    P[N >= j]     = q^j (1 - c) / (1 - cq)         0 <= j <= m
    P[N >= m + k] = q^m c^k (1 - q) / (1 - cq)     k >= 1
    P[N <= -k]    =     c^k (1 - q) / (1 - cq)     k >= 1

so N is a monotone function of a single uniform number, drawn exactly by `farthing.noise.certified`. Nothing of an
earlier draw is kept or used again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import NoiseError
from farthing.noise.certified import RATES, ULPS, at_block, at_index, draw, parameter
from farthing.noise.laplace import two_sided_geometric

if TYPE_CHECKING:
    from flint import arb
    from numpy.typing import ArrayLike

    from farthing.noise.bits import BitSource
    from farthing.noise.certified import Floats, Integers, Parameter

SLACK: Final = 2.0**-33
"""How far the float64 of (n - o) times the drawn variable can be from the truth: docs/proofs/noise.gradual.md."""

LARGEST: Final = 1 << 62
"""Shown noise is smaller than this."""


@dataclass(frozen=True, slots=True)
class Finer:
    """The real variable whose rounding is the finer noise N, in the direction of the noise shown.

    Attributes:
        old, new: the rates o < n, the exact dyadic numbers they are.
        shown: int64[samples], m = |X|.

    One half less than Y is, on the upper side, min(J, m + 1/2) + max(K - 1/2, 0), where U falls below q^J (1-c)/(1-cq)
    and below q^m c^K (1-q)/(1-cq); on the lower side min(J, m + 1/2) where 1 - U does, and 1 - K where it has K > 1.
    """

    old: Parameter
    new: Parameter
    shown: Integers

    def floats(self, beyond: Floats, side: Floats, at: slice) -> None:
        """Overwrite the tail probability by the signed finer noise."""
        old, new, m = at_block(self.old, at), at_block(self.new, at), self.shown[at].astype(np.float64)
        apart, together, both = new - old, new + old, np.expm1(-2.0 * new)
        inner, outer = np.log(np.expm1(-together) / both), np.log(np.expm1(-apart) / both)
        lower = np.signbit(side)
        above = np.log(beyond)
        k = (outer - above) / together
        np.copyto(above, np.log1p(-beyond), where=lower)
        np.subtract(inner, above, out=beyond)
        beyond /= apart
        np.clip(beyond, 0.0, m + 0.5, out=beyond)
        beyond += np.where(lower, np.minimum(1.0 - k, 0.0), np.maximum(k - m * apart / together - 0.5, 0.0))
        beyond -= 0.5

    def slack(self, at: slice) -> Parameter:
        """Return how far `floats` can be from the truth."""
        return SLACK / (at_block(self.new, at) - at_block(self.old, at)) + ULPS

    def ball(self, beyond: arb, *, upper: bool, index: int) -> arb:
        """Return the same in balls."""
        from flint import arb

        old, new, m = arb(at_index(self.old, index)), arb(at_index(self.new, index)), arb(int(self.shown[index]))
        apart, together, both, half = new - old, new + old, (-2 * new).expm1(), arb(0.5)
        inner, outer = ((-together).expm1() / both).log(), ((-apart).expm1() / both).log()
        k = (outer - beyond.log()) / together
        j = (inner - (beyond.log() if upper else (-beyond).log1p())) / apart
        beyond_m = (k - m * apart / together - half).max(arb(0)) if upper else (1 - k).min(arb(0))
        return j.max(arb(0)).min(m + half) + beyond_m - half


def finer_geometric(shown: Integers, old: ArrayLike, new: ArrayLike, bits: BitSource | None = None) -> Integers:
    """Draw the finer noise of the gradual-release chain, given the coarser noise that was shown, exactly.

    Args:
        shown: int64[samples], the shown noise X = shown value - truth, in grid steps; ignored where `old` is 0.
        old: its rate o per grid step, one number or one a sample; 0 where nothing was shown yet: a fresh draw.
        new: the rate n > o of the noise to draw, one number or one a sample; at least 2^-56.
        bits: where the bits come from; by default the operating system.

    Returns:
        int64[samples]: noise with P[k] proportional to exp(-n |k|), whose joint law with X is that of the chain.

    Raises:
        NoiseError: rates out of range or not rising, or shown noise of 2^62 or more.

    Guarantee: exactly the conditional law of the finer noise given X; the chain up to here is epsilon-DP at the rate n.
    Proof: docs/proofs/noise.gradual.md; [KoufogiannisHP16].
    Assumes: secret uniform bits; numpy's log, log1p and expm1 err by at most 2^-40 relative. Timing is not hidden.
    Rounds: nothing: the law lives on the integers, and rates are the exact dyadic numbers they are.

    >>> finer_geometric(np.array([7, -7, 0]), old=0.1, new=50.0).tolist()
    [0, 0, 0]
    """
    coarse, rates = parameter("old", old, within=(0.0, RATES[1])), parameter("new", new, within=RATES)
    noise = np.asarray(shown, np.int64)
    _check(noise, coarse, rates)
    before = coarse > 0
    if before.all():
        return _given(noise, coarse, rates, bits)
    if not before.any():
        return two_sided_geometric(rates, len(noise), bits)
    out = np.empty(len(noise), np.int64)
    coarse, rates = np.broadcast_to(coarse, noise.shape), np.broadcast_to(rates, noise.shape)
    out[before] = _given(noise[before], coarse[before], rates[before], bits)
    out[~before] = two_sided_geometric(rates[~before], bits=bits)
    return out


@dataclass(frozen=True, slots=True)
class Added:
    """The real variable whose rounding is what is added to noise of rate n to make it noise of rate o < n.

    It is 0 with probability w and two-sided geometric of rate o else. So with a = exp(-o) and b = exp(-n) it is k or
    more with probability (1 - w) a^k / (1 + a), k >= 1, where 1 - w = (1 - exp(-(n+o))) (1 - exp(-(n-o))) / (1 - b)^2.
    """

    old: Parameter
    new: Parameter

    def floats(self, beyond: Floats, side: Floats, at: slice) -> None:
        """Overwrite the tail probability by the signed magnitude, less a half."""
        old, new = at_block(self.old, at), at_block(self.new, at)
        moved = np.expm1(-(new + old)) * np.expm1(old - new) / np.expm1(-new) ** 2
        np.log(beyond, out=beyond)
        beyond -= np.log(moved / (1.0 + np.exp(-old)))
        beyond /= -old
        beyond -= 0.5
        np.maximum(beyond, 0.0, out=beyond)
        np.copysign(beyond, side, out=beyond)

    def slack(self, at: slice) -> Parameter:
        """Return how far `floats` can be from the truth."""
        return SLACK / at_block(self.old, at) + ULPS

    def ball(self, beyond: arb, *, upper: bool, index: int) -> arb:
        """Return the same in balls."""
        from flint import arb

        old, new = arb(at_index(self.old, index)), arb(at_index(self.new, index))
        moved = (-(new + old)).expm1() * (old - new).expm1() / (-new).expm1() ** 2
        magnitude = (((moved / (1 + (-old).exp())).log() - beyond.log()) / old - arb(0.5)).max(arb(0))
        return magnitude if upper else -magnitude


def coarser_geometric(fine: Integers, new: ArrayLike, old: ArrayLike, bits: BitSource | None = None) -> Integers:
    """Draw the coarser noise of the gradual-release chain from the finer, exactly: nothing but the noise is looked at.

    Args:
        fine: int64[samples], noise of rate `new`, in grid steps.
        new: its rate n, one number or one a sample.
        old: the rate o < n of the coarser noise, at least 2^-56, one number or one a sample.
        bits: where the bits come from; by default the operating system.

    Returns:
        int64[samples]: noise of rate o whose joint law with the finer is that of the chain.

    Raises:
        NoiseError: rates out of range or not falling, or noise of 2^62 or more.

    Guarantee: exactly the law of the chain; added to what was released it is post-processing.
    Proof: docs/proofs/noise.gradual.md; [KoufogiannisHP16].
    Assumes: secret uniform bits; numpy's log, log1p and expm1 err by at most 2^-40 relative. Timing is not hidden.
    Rounds: nothing: the law lives on the integers, and rates are the exact dyadic numbers they are.

    >>> coarser_geometric(np.array([0, 3]), new=51.0, old=50.0).tolist()
    [0, 3]
    """
    coarse, rates = parameter("old", old, within=RATES), parameter("new", new, within=RATES)
    noise = np.asarray(fine, np.int64)
    _check(noise, coarse, rates)
    return noise + draw(Added(_plain(coarse), _plain(rates)), noise.shape, bits)


def _given(noise: Integers, old: Floats, new: Floats, bits: BitSource | None) -> Integers:
    """Draw where something was shown: in the direction of what was shown, then turned back."""
    law = Finer(_plain(old), _plain(new), np.abs(noise))
    return np.where(noise < 0, -1, 1) * draw(law, noise.shape, bits)


def _plain(rate: Floats) -> Parameter:
    """Return one rate as a float, many as they are."""
    return float(rate) if rate.ndim == 0 else rate


def _check(noise: Integers, old: Floats, new: Floats) -> None:
    """Refuse rates that do not rise, shapes that do not fit and noise out of range."""
    shapes = {old.shape, new.shape} - {()}
    if noise.ndim != 1 or shapes - {noise.shape}:
        raise NoiseError(
            "shapes do not fit",
            rule="one line of shown noise; each rate one number, or one a sample",
            got=f"{noise.shape}, {old.shape}, {new.shape}",
            next_step="give one number, or one for each sample",
        )
    if not (old < new).all():
        raise NoiseError(
            "the noise would not get finer",
            rule="new > old, exactly",
            got=f"old up to {old.max()}, new from {new.min()}",
            next_step="leave out what is fine enough, or raise the rate",
        )
    if len(noise) and not -LARGEST < noise.min() <= noise.max() < LARGEST:
        raise NoiseError("the shown noise is too large", rule="|shown| < 2^62", next_step="a coarser grid")
