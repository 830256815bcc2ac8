"""The product X V of two independent Gaussians, X ~ N(x, sigma^2) and V ~ N(1, r^2): its density, and exact draws.

It is the law of Algorithm 1 of the open problem. `Y ~ N(X, (rX)^2)` means Y = X + r|X| W with W standard normal; W has
no side, so r|X| W may be written r X W, and Y = X (1 + r W). The count meets an additive and a multiplicative noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.noise.bits import system_bits
from farthing.noise.certified import TAIL, draw
from farthing.noise.gaussian import SLACK, Gaussian
from farthing.privacy.evaluator import Branch

if TYPE_CHECKING:
    from typing import TypeAlias

    from flint import arb
    from numpy.typing import NDArray

    from farthing.noise.bits import BitSource

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]

DEPTH: Final = 45.0
"""Of each integral over X, what is below e^-45 of the highest point is left out."""

NODES: Final = (512, 4096)
"""Trapezoids of one integral over X: usually, and where the window spans more than LONG e-folds."""

LONG: Final = 8.0

LOWEST: Final = -46.0
"""Outputs closer to zero than e^-46 of the count's size are left out: all of their mass is below that."""

FARTHEST: Final = 2e6
"""The outputs that matter most for an order a lie near |Y| = (a/2)^2 r/sigma; orders up to 10^6 are covered."""

_ROWS: Final = 4096
_STANDARD: Final = Gaussian(1.0, 0.0)
_WIDEST: Final = 5.1  # |z| of a normal variable whose tail probability is at least TAIL


@dataclass(frozen=True, slots=True)
class ProductPair:
    """The laws of the output at two neighbouring counts, x and x + 1.

    In u = log(|Y|/c) and v = log(|X|/c), with c = max(x, sigma), the density is an integral over v of the exponential
    of `-((X - x)/sigma)^2/2 - ((Y/X - 1)/r)^2/2`, once for each sign of X: smooth and falling doubly exponentially on
    both ends, so the trapezoidal rule converges faster than any power. The integral over v of the same exponent,
    tilted by the log-ratio of the two laws of X, gives the log-ratio of the two laws of Y.

    Attributes:
        x: the smaller count, >= 0.
        sigma: standard deviation of X.
        relative: r, the standard deviation of V.
    """

    x: float
    sigma: float
    relative: float

    @property
    def unit(self) -> float:
        """The unit c of the coordinates."""
        return max(self.x, self.sigma)

    def branches(self) -> tuple[Branch, Branch]:
        """Return the positive and the negative outputs, with Q the law at x and P that at x + 1."""
        last = max(self.x, self.sigma / self.relative, self.sigma, FARTHEST)
        top = math.log(last**2 * self.relative / (self.sigma * self.unit)) + 2
        spread = math.hypot(self.relative * math.hypot(self.x, self.sigma), self.sigma) / self.unit
        flanks = (-32, -8, -4, -2, -1, 0, 1, 2, 4, 8, 32)
        bump = (math.log(max(self.x, self.sigma) / self.unit * max(1 + k * spread, 1e-9)) for k in flanks)
        inner = {edge for edge in (*bump, 0.0) if LOWEST < edge < top}
        edges = tuple(sorted({LOWEST, top, *inner, *np.arange(LOWEST + 6, top, 6).tolist()}))
        return Branch(lambda u: self._rows(u, 1), edges), Branch(lambda u: self._rows(u, -1), edges)

    def _rows(self, u: Floats, side: int) -> tuple[Floats, Floats]:
        """Return the log density of log(|Y|/c) at x, and its log-ratio to that at x + 1, on one side of zero."""
        parts = [self._terms(u[i : i + _ROWS], side) for i in range(0, len(u), _ROWS)]
        return np.concatenate([base for base, _ in parts]), np.concatenate([ratio for _, ratio in parts])

    def _terms(self, u: Floats, side: int) -> tuple[Floats, Floats]:
        """Return the same for few points: both signs of X, each over its own window of v."""
        here, there, excess = np.full(len(u), -np.inf), np.full(len(u), -np.inf), np.zeros(len(u))
        for sign in (1, -1):
            low, high = self._window(u, side, sign)
            for count, rows in zip(NODES, (high - low <= LONG, high - low > LONG), strict=True):
                if rows.any():
                    at, then, more = self._integrals(u[rows], (low[rows], high[rows]), (side, sign), count)
                    both = np.logaddexp(here[rows], at)
                    excess[rows] = excess[rows] * np.exp(here[rows] - both) + more * np.exp(at - both)
                    here[rows], there[rows] = both, np.logaddexp(there[rows], then)
        near = np.abs(excess) < 0.5
        ratio = np.where(near, np.log1p(np.where(near, excess, 0.0)), there - here)
        return here + u + math.log(self.unit / (2 * math.pi * self.relative * self.sigma)), ratio

    def _integrals(
        self, u: Floats, window: tuple[Floats, Floats], signs: tuple[int, int], count: int
    ) -> tuple[Floats, Floats, Floats]:
        """Return, for one sign of X, the log integrals over v at x and x + 1, and their relative difference."""
        low, high = window
        step = (high - low) / (count - 1)
        v = low[:, None] + step[:, None] * np.arange(count)
        values = self._exponent(u[:, None], v, *signs, self.x)
        tilt = (self._distance(v, signs[1]) - 0.5) / self.sigma**2
        total = _log_sums(values)
        with np.errstate(over="ignore", invalid="ignore"):  # where this overflows the difference of logs is used
            excess = (np.exp(values - total[:, None]) * np.expm1(tilt)).sum(axis=1)
        return total + np.log(step), _log_sums(values + tilt) + np.log(step), np.nan_to_num(excess, nan=np.inf)

    def _distance(self, v: Floats, sign: int) -> Floats:
        """Return X - x, with all its digits also where X is near a large x."""
        if sign > 0:
            return np.asarray(self.unit * np.expm1(v) + (self.unit - self.x))
        return np.asarray(-self.unit * np.exp(v) - self.x)

    def _exponent(self, u: Floats, v: Floats, side: int, sign: int, centre: float) -> Floats:
        """Return -((X - centre)/sigma)^2/2 - ((Y/X - 1)/r)^2/2."""
        off = (self._distance(v, sign) - (centre - self.x)) / self.sigma
        ratio = np.expm1(u - v) if side == sign else 1 + np.exp(u - v)
        return np.asarray(-off * off / 2 - (ratio / self.relative) ** 2 / 2)

    def _slope(self, u: Floats, v: Floats, signs: tuple[int, int], centre: float) -> Floats:
        """Return the derivative of the exponent in v."""
        side, sign = signs
        grown = np.exp(u - v)
        off = self._distance(v, sign) - (centre - self.x)
        ratio = np.expm1(u - v) if side == sign else -(1 + grown)
        toward = ratio * grown if side == sign else -ratio * grown
        return np.asarray(toward / self.relative**2 - off * sign * self.unit * np.exp(v) / self.sigma**2)

    def _window(self, u: Floats, side: int, sign: int) -> tuple[Floats, Floats]:
        """Return where the exponent is within DEPTH of its highest point, at x or at x + 1."""
        ends = [self._window_at(u, (side, sign), centre) for centre in (self.x, self.x + 1)]
        return np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])

    def _window_at(self, u: Floats, signs: tuple[int, int], centre: float) -> tuple[Floats, Floats]:
        """Return the window of one count: bracket it, find its highest point, then bisect to both ends."""
        side, sign = signs

        def exponent(v: Floats) -> Floats:
            return self._exponent(u if v.ndim == 1 else u[:, None], v, side, sign, centre)

        guesses = self._guesses(u, centre)
        depth = DEPTH - exponent(guesses).max(axis=1)
        low = u - np.log1p(self.relative * np.sqrt(2 * depth) + 1e-9)
        high = np.log((centre + self.sigma * np.sqrt(2 * depth)) / self.unit) + 1e-9
        grid = np.sort(np.concatenate([low[:, None] + (high - low)[:, None] * np.linspace(0, 1, 65), guesses], axis=1))
        grid = np.clip(grid, low[:, None], high[:, None])
        seen = exponent(grid)
        best = seen.argmax(axis=1)
        top = _bisect(_at(grid, best - 1), _at(grid, best + 1), lambda v: self._slope(u, v, signs, centre) > 0)
        least = np.maximum(exponent(top), _at(seen, best)) - DEPTH
        inside = (seen >= least[:, None]) | (np.arange(grid.shape[1]) == best[:, None])
        first, last = inside.argmax(axis=1), grid.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
        left = np.where(_at(seen, first) >= least, _at(grid, first), top)
        right = np.where(_at(seen, last) >= least, _at(grid, last), top)
        left = _bisect(_at(grid, first - 1), left, lambda v: exponent(v) < least)
        right = _bisect(_at(grid, last + 1), right, lambda v: exponent(v) < least)
        return left, right

    def _guesses(self, u: Floats, centre: float) -> Floats:
        """Return v where X = centre, where X = |Y|, and where far outputs come from, |X|^2 = |Y| sigma/r."""
        far = (u + math.log(self.sigma / (self.relative * self.unit))) / 2
        middle = np.full_like(u, math.log(max(centre, self.sigma) / self.unit))
        return np.stack([middle, u, far], axis=1)


def _at(grid: Floats, index: Integers) -> Floats:
    """Return one entry of each row; beyond the ends, the last one."""
    return np.asarray(grid[np.arange(len(grid)), np.clip(index, 0, grid.shape[1] - 1)])


def _bisect(outside: Floats, inside: Floats, is_outside: object) -> Floats:
    """Return a point just on the first side of where the predicate changes between the two."""
    for _ in range(44):
        middle = (outside + inside) / 2
        still = is_outside(middle)  # type: ignore[operator]
        outside, inside = np.where(still, middle, outside), np.where(still, inside, middle)
    return outside


def _log_sums(values: Floats) -> Floats:
    """Return the log of the sum of exponentials of each row."""
    most = values.max(axis=1)
    return np.asarray(np.log(np.exp(values - most[:, None]).sum(axis=1)) + most)


@dataclass(frozen=True, slots=True)
class Product:
    """The law of X V in grid steps: V from the bits that are being rounded, X from bits of its own, read as far.

    Both are real numbers with infinitely many bits: the draw is the exact product, rounded once.

    Attributes:
        mean: float64[draws], the exact counts.
        sigma: standard deviation of X.
        relative: standard deviation of V.
        step: the grid, a power of two.
        words: int64[draws], the first 64 bits of each X.
        bits: where more of them come from.
    """

    mean: Floats
    sigma: float
    relative: float
    step: float
    words: Integers
    bits: BitSource
    _x: Floats = field(init=False, repr=False)
    _slack: Floats = field(init=False, repr=False)
    _read: dict[int, tuple[int, int]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        normal, certain = _standard(self.words)
        x = self.mean + self.sigma * normal
        off = self.sigma * SLACK + 2.0**-51 * (np.abs(self.mean) + self.sigma * _WIDEST)
        most = 1 + self.relative * _WIDEST
        slack = (np.abs(x) * (self.relative * SLACK + 2.0**-50 * most) + most * 2 * off) / self.step + 2.0**-50
        object.__setattr__(self, "_x", x / self.step)
        object.__setattr__(self, "_slack", np.where(certain, slack, np.inf))

    def floats(self, beyond: Floats, side: Floats, at: slice) -> None:
        """Overwrite the tail probability of V by the product."""
        _STANDARD.floats(beyond, side, at)
        beyond *= self.relative
        beyond += 1.0
        beyond *= self._x[at]

    def slack(self, at: slice) -> Floats:
        """Return how far `floats` can be from the truth; infinite where float64 does not hold X."""
        return self._slack[at]

    def ball(self, beyond: arb, *, upper: bool, index: int) -> arb:
        """Return the product in balls. Each call for a draw doubles the bits of V, and so those of X."""
        from flint import arb

        word = int(self.words[index])
        prefix, width = self._read.get(index, (0, 0))
        fresh = [word if word >= 0 else ~word] if not width else self.bits.words(width // 64).tolist()
        for each in fresh:
            prefix = prefix << 64 | each
        width = 2 * width or 64
        self._read[index] = prefix, width
        own = arb(2 * prefix + 1, 1) / (1 << (width + 1))
        x = arb(float(self.mean[index])) + arb(self.sigma) * _STANDARD.ball(own, upper=word >= 0, index=index)
        v = 1 + arb(self.relative) * _STANDARD.ball(beyond, upper=upper, index=index)
        return x * v / arb(self.step)


def _standard(words: Integers) -> tuple[Floats, np.typing.NDArray[np.bool_]]:
    """Return the standard normals that begin with these bits, in float64, and where that is good enough."""
    side = np.asarray(words * 2.0**-64, dtype=np.float64)
    beyond = np.abs(side)
    certain = beyond >= TAIL
    beyond = np.asarray(np.maximum(beyond, TAIL), dtype=np.float64)
    _STANDARD.floats(beyond, side, slice(None))
    return beyond, certain


def rounded_product(
    counts: Integers, *, sigma: float, relative: float, step: float, bits: BitSource | None = None
) -> Integers:
    """Draw round(X V / step) for each count x, X ~ N(x, sigma^2), V ~ N(1, relative^2), exactly.

    Guarantee: each draw has the law of Algorithm 1's real output, rounded to the grid: whatever holds for that law, at
        any Renyi order or epsilon, holds for the draw.
    Proof: docs/proofs/mechanisms.two_stage.md, "The release"; rounding is post-processing.
    Assumes: secret uniform bits; counts below 2^53 and step a power of two, so that float64 holds them exactly.
    Rounds: to the nearest grid point, once.

    >>> rounded_product(np.array([1000]), sigma=1e-9, relative=1e-9, step=1.0).tolist()
    [1000]
    """
    source = system_bits() if bits is None else bits
    words = source.words(len(counts)).view(np.int64)
    law = Product(counts.astype(np.float64), sigma, relative, step, words, source)
    return draw(law, (len(counts),), source)
