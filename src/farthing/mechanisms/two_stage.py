"""Algorithm 1 of the open problem of larger groups: Gaussian noise, then more of it in proportion to the noisy count.

By strict group-wise zCDP it protects a member of a group of a million no better than half as much again as a member of
a group of one: docs/proofs/mechanisms.two_stage.md. At bounded orders, or as (epsilon, delta), it is close to the best
there is: `renyi`, `tcdp` and `delta` measure how close.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, overload

import numpy as np

from farthing.errors import DataError, InvalidBudget, InvalidTarget
from farthing.mechanisms.product import ProductPair, rounded_product
from farthing.mechanisms.product_balls import ProductBalls
from farthing.mechanisms.relative_error import checked_target
from farthing.mechanisms.transformed import checked, private_counts
from farthing.privacy.certified import CertainEnds, CertifiedDivergences
from farthing.privacy.evaluator import LARGEST_ORDER, Divergences
from farthing.privacy.policy import LARGEST_SIZE, Constant, Policy
from farthing.privacy.renyi import Tcdp
from farthing.rounding import up

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import ArrayLike, NDArray

    from farthing.mechanisms.relative_error import Metric
    from farthing.noise.bits import BitSource

    Floats: TypeAlias = NDArray[np.float64]

GRID_BITS: Final = 4
"""Outputs lie on a grid of at most sigma / 2^4: rounding adds at most 1/3072 of sigma^2."""

LEAST_EVALUATED: Final = 0.1
"""The evaluator covers sigma from here on; below, the first stage alone has rho > 50 and hides nobody."""

FIRST_ORDER: Final = 1.0625
"""Where the sweep over orders begins; from 1 to here the chord covers them."""

STRIDE: Final = 1.25
"""Orders of the sweep rise by this factor; convexity covers those between."""

_CAUTION: Final = 1 - 2.0**-16
_REACH: Final = 9.0


class TcdpRegion(NamedTuple):
    """The orders up to which a line holds: D_a <= rho a for 1 < a <= omega, in both directions.

    Attributes:
        rho: the slope.
        omega: the last order; infinite where the line is strict zCDP.
    """

    rho: float
    omega: float

    @property
    def loss(self) -> Tcdp:
        """The region as a loss, which adds up, converts to (epsilon, delta) and is restated for several members."""
        return Tcdp(self.rho, self.omega)


@dataclass(frozen=True, slots=True)
class TwoStage:
    """Release Y ~ N(X, (relative X)^2) with X ~ N(x, sigma^2): Algorithm 1.

    Attributes:
        sigma: standard deviation of the first stage, in records.
        relative: standard deviation of the second stage over |X|, > 0 and at most 2.

    Guarantee: 1/(2 sigma^2)-zCDP and (1/sigma)-GDP at every size. No better than 1/(4 sigma^2)-zCDP at any size.
    Proof: post-processing of the first stage [BunS16, Lemma 2.3]; docs/proofs/mechanisms.two_stage.md for the limit.
    Assumes: a member adds one record to one group; counts as `release` has them.
    Rounds: the policy up. `renyi`, `tcdp` and `delta` are measured by quadrature, with their estimated error added.

    >>> from farthing.mechanisms import TwoStage
    >>> mechanism = TwoStage(sigma=10, relative=0.3)
    >>> mechanism.policy([1, 1_000_000]).round(6)
    array([0.005, 0.005])
    >>> f"{mechanism.renyi(500, 8) / 8:.2g} {mechanism.renyi(500, 1e5) / 1e5:.2g}"
    '2.7e-05 0.0025'
    """

    sigma: float
    relative: float

    def __post_init__(self) -> None:
        checked(self.sigma, 1)
        relative = self.relative
        if isinstance(relative, bool) or not isinstance(relative, int | float) or not 2.0**-20 <= relative <= 2:
            raise InvalidTarget(
                "the second stage is out of range",
                rule="2^-20 <= relative <= 2, the second noise over the noisy count",
                got=relative,
                next_step="relative=0.1 for about ten percent",
            )

    @classmethod
    def for_relative_error(
        cls, relative: float, *, x0: float = 1.0, metric: Metric = "mae", overhead: float = 1.25
    ) -> TwoStage:
        """Return the mechanism whose error is at most relative * max(x, x0) at every size.

        Args:
            relative: the relative error, in (0, 1).
            x0: the size below which the absolute error relative * x0 is fine.
            metric: "mae", "rmse" or ("ci", confidence).
            overhead: how the error of a group of x0 is shared out: the second stage has 1/overhead of its variance, and
                the strict loss is the price of the rest; > 1.

        >>> mechanism = TwoStage.for_relative_error(0.1, x0=50)
        >>> float((mechanism.expected_error([50]) / 50).round(4)[0])
        0.1
        """
        checked_target(relative, x0, metric)
        if isinstance(overhead, bool) or not isinstance(overhead, int | float) or not 1 < overhead <= 100:
            raise InvalidTarget(
                "overhead is out of range", rule="1 < overhead <= 100", got=overhead, next_step="overhead=1.25"
            )
        sizes = x0 * np.array([0.0, *np.exp(np.linspace(-2, 3, 41)), 1e3])

        def at(size: float) -> TwoStage:
            return cls(x0 * size * math.sqrt(1 - 1 / overhead), size / math.sqrt(overhead))

        low, high = 0.25 * relative, 1.3 * relative
        for _ in range(40):
            middle = (low + high) / 2
            fits = bool((at(middle).expected_error(sizes, metric) <= relative * np.maximum(sizes, x0)).all())
            low, high = (middle, high) if fits else (low, middle)
        return at(low * _CAUTION)

    @property
    def step(self) -> float:
        """The public grid of the outputs, a power of two."""
        return math.ldexp(1.0, math.frexp(self.sigma)[1] - 1 - GRID_BITS)

    @property
    def policy(self) -> Policy:
        """The strict group-wise loss: 1/(2 sigma^2) at every size, which is at most twice the least that is true."""
        return Policy.of(Constant(up(1 / Fraction(self.sigma))))

    def limit(self, x: float, *, reverse: bool = False) -> float:
        """Return the limit of D_a(M(x+1) || M(x)) / a for growing orders a, or of D_a(M(x) || M(x+1)) / a if reverse.

        Guarantee: no rho below it is a zCDP of the pair.
        Proof: docs/proofs/mechanisms.two_stage.md.
        Assumes: x >= 0.
        Rounds: to the nearest float.

        >>> TwoStage(10, 0.3).limit(10**6), TwoStage(10, 0.3).limit(10**6, reverse=True)
        (0.0025, 0.0)
        """
        slope = 1.0 if not reverse else min(1.0, max(0.0, 2 * (self.sigma / self.relative - _size(x)) - 1))
        return slope**2 / (4 * self.sigma**2)

    @overload
    def renyi(self, x: float, order: float, *, reverse: bool = False) -> float: ...
    @overload
    def renyi(self, x: float, order: list[float] | Floats, *, reverse: bool = False) -> Floats: ...
    def renyi(self, x: float, order: float | list[float] | Floats, *, reverse: bool = False) -> float | Floats:
        """Return D_order(M(x+1) || M(x)), or D_order(M(x) || M(x+1)) if reverse; 1 < order <= 10^6, one or several."""
        laws = self.divergences(x)
        if isinstance(order, int | float):
            return laws.renyi(float(order), reverse=reverse).value
        at = np.asarray(order, dtype=np.float64)
        values = [laws.renyi(each, reverse=reverse).value for each in at.ravel().tolist()]
        return np.array(values, dtype=np.float64).reshape(at.shape)

    def divergences(self, x: float) -> Divergences:
        """Return the two laws, at x + 1 and at x, for the evaluator: every divergence with its error."""
        return _divergences(_size(x), float(self.sigma), float(self.relative))

    def certified_renyi(self, x: float, order: float, *, reverse: bool = False) -> CertainEnds:
        """Return certain ends of what `renyi` measures, about 10^-9 of it apart; it takes ten seconds or more.

        Guarantee: the divergence of the two laws lies between the ends.
        Proof: docs/proofs/mechanisms.two_stage.md, "The certificate".
        Assumes: python-flint's balls hold what they compute.
        Rounds: outward.
        """
        near = self.divergences(x).renyi(order, reverse=reverse).value
        return self._certified(x).renyi(order, reverse=reverse, near=near)

    def certified_delta(self, x: float, epsilon: float) -> CertainEnds:
        """Return certain ends of what `delta` measures, the worse direction of two, as `certified_renyi`."""
        laws, measured = self._certified(x), self.divergences(x)
        both = [
            laws.hockey_stick(epsilon, reverse=way, near=measured.hockey_stick(epsilon, reverse=way).value)
            for way in (False, True)
        ]
        return CertainEnds(max(each.lower for each in both), max(each.upper for each in both))

    def _certified(self, x: float) -> CertifiedDivergences:
        """Return the two laws in ball arithmetic."""
        return CertifiedDivergences(ProductBalls(_size(x), float(self.sigma), float(self.relative)))

    def tcdp(self, x: float, rho: float | None = None) -> TcdpRegion:
        """Return (rho, omega): the largest omega found with D_a <= rho a for 1 < a <= omega, between x and x + 1.

        Orders that are not evaluated are covered by convexity: (a - 1) D_a lies below its chords.

        Args:
            x: the smaller of the two sizes, >= 0.
            rho: the slope; by default twice what D_a / a is at low orders, or 1/(2 sigma^2) if that is less.

        Returns:
            omega is infinite for rho >= 1/(2 sigma^2), and at most 10^6 otherwise: the evaluator stops there.

        Guarantee: (rho, omega)-tCDP for the pair, up to the error of the quadrature.
        Proof: docs/proofs/mechanisms.two_stage.md, "Bounded orders".
        Assumes: the estimated error, which is added, covers the real one.
        Rounds: omega down, to 1 part in 1000.

        >>> rho, omega = TwoStage(sigma=10, relative=0.3).tcdp(1000)
        >>> f"{rho:.2e} {omega:.0f}"
        '1.31e-05 263'
        """
        strict = up(1 / (2 * Fraction(self.sigma) ** 2))
        lowest = self._largest(x, FIRST_ORDER) / FIRST_ORDER
        slope = min(strict, 2 * lowest) if rho is None else rho
        if slope >= strict:
            return TcdpRegion(slope, math.inf)
        if not slope > lowest:
            raise InvalidBudget(
                "no order has so little loss",
                rule=f"rho > {lowest:.3g}, which D_a / a is at low orders",
                got=rho,
                next_step="leave rho out, for twice that",
            )
        good, failed = (1.0, 0.0), math.inf
        while failed > good[0] * 1.001 and good[0] < LARGEST_ORDER:
            ahead = max(FIRST_ORDER, min(LARGEST_ORDER, good[0] * STRIDE))
            order = ahead if math.isinf(failed) else (good[0] + failed) / 2
            point = (order, (order - 1) * self._largest(x, order))
            good, failed = (point, failed) if _under(slope, good, point) else (good, order)
        return TcdpRegion(slope, good[0])

    def _largest(self, x: float, order: float) -> float:
        """Return the larger divergence of the two directions, with its error."""
        laws = self.divergences(x)
        return max(laws.renyi(order).upper, laws.renyi(order, reverse=True).upper)

    def delta(self, x: float, epsilon: float) -> float:
        """Return the least delta at epsilon between x and x + 1, in the worse direction, with its estimated error.

        >>> f"{TwoStage(sigma=10, relative=0.3).delta(1000, 0.02):.1e}"
        '1.8e-06'
        """
        if not 0 <= epsilon < math.inf:
            raise InvalidBudget(
                "epsilon is out of range", rule="epsilon >= 0, finite", got=epsilon, next_step="epsilon=0.1"
            )
        laws = self.divergences(x)
        return min(1.0, max(laws.hockey_stick(epsilon, reverse=way).upper for way in (False, True)))

    def profile(self, x: float, epsilons: ArrayLike) -> Floats:
        """Return delta at each epsilon, float64[...]: the curve of what a member of the larger of x and x + 1 loses."""
        at = np.asarray(epsilons, dtype=np.float64)
        return np.array([self.delta(x, each) for each in at.ravel().tolist()], dtype=np.float64).reshape(at.shape)

    def epsilon(self, x: float, delta: float) -> float:
        """Return the least epsilon at delta between x and x + 1, rounded up by at most 1 part in 10^4."""
        if not 0 < delta < 1:
            raise InvalidBudget("delta is out of range", rule="0 < delta < 1", got=delta, next_step="1e-6 is usual")
        low, high = 0.0, 1 / math.hypot(self.sigma, self.relative * x)
        while self.delta(x, high) > delta:
            low, high = high, 2 * high
        while high - low > 1e-4 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(x, middle) <= delta else (middle, high)
        return high

    def expected_error(self, sizes: ArrayLike, metric: Metric = "mae") -> Floats:
        """Return the error for each size, float64[...]: "mae", "rmse" or ("ci", confidence); the grid is counted.

        >>> TwoStage(sigma=10, relative=0.3).expected_error([10_000], "rmse").round(3)
        array([3000.018])
        """
        checked_target(0.5, 1.0, metric)
        at = np.asarray(sizes, dtype=np.float64)
        if not ((at >= 0) & (at <= LARGEST_SIZE)).all():
            raise InvalidTarget(
                "a group size is out of range", rule="0 <= size <= 2^52", got=sizes, next_step="give sizes of groups"
            )
        if metric == "rmse":
            second = self.relative**2 * (at**2 + self.sigma**2)
            return np.asarray(np.sqrt(self.sigma**2 + second + self.step**2 / 12))
        errors = [self._error(x, metric) for x in at.ravel().tolist()]
        return np.array(errors, dtype=np.float64).reshape(at.shape)

    def _error(self, x: float, metric: Metric) -> float:
        """Return one error. Given X, the output is normal: what is left is one integral over the first stage."""
        from scipy.special import erf, ndtr

        z, weights = _first_stage()
        off = self.sigma * z
        spread = np.hypot(self.relative * (x + off), self.step / math.sqrt(12))
        if metric == "mae":
            folded = spread * math.sqrt(2 / math.pi) * np.exp(-((off / spread) ** 2) / 2)
            return float(weights @ (folded + off * erf(off / (spread * math.sqrt(2)))))
        low, high = 0.0, _REACH * float(spread.max() + off.max())
        for _ in range(60):
            middle = (low + high) / 2
            held = weights @ (ndtr((middle - off) / spread) - ndtr((-middle - off) / spread))
            low, high = (low, middle) if held >= float(metric[1]) else (middle, high)
        return high

    def release(self, counts: ArrayLike, bits: BitSource | None = None) -> Floats:
        """Return one noisy count a group, float64[groups], on the grid `step`.

        Args:
            counts: whole numbers from 0 to 2^52, and at most 2^56 steps.
            bits: where random bits come from; None is the system's stream cipher.

        Guarantee: each output is Algorithm 1's real number rounded to a public grid: all that is proved or measured of
            its law, at any order, holds for what is released, and nothing of the count is in the last bits.
        Proof: docs/proofs/mechanisms.two_stage.md, "The release".
        Assumes: secret uniform bits; a member adds one record to one group.
        Rounds: to the nearest grid point, in one exact step for both stages.

        >>> TwoStage(sigma=10, relative=0.3).release([10, 10_000]).shape
        (2,)
        """
        exact = private_counts(counts)
        if len(np.atleast_1d(exact)) and float(exact.max()) > 2.0**56 * self.step:
            raise DataError(
                "the counts are too large for noise this small",
                rule="count <= 2^56 grid steps",
                next_step="a larger sigma",
            )
        noisy = rounded_product(
            exact.ravel(), sigma=float(self.sigma), relative=float(self.relative), step=self.step, bits=bits
        )
        return np.asarray(noisy.reshape(exact.shape) * self.step, dtype=np.float64)


def _size(x: float) -> float:
    """Return a group size; refuse what is none."""
    if isinstance(x, bool) or not isinstance(x, int | float | np.integer | np.floating) or not 0 <= x <= LARGEST_SIZE:
        raise InvalidTarget("a group size is out of range", rule="0 <= size <= 2^52", got=x, next_step="x=1000")
    return float(x)


@lru_cache(maxsize=64)
def _divergences(x: float, sigma: float, relative: float) -> Divergences:
    """Return the laws of one pair, with whatever of them was evaluated before."""
    if sigma < LEAST_EVALUATED:
        raise InvalidBudget(
            "sigma is too small to evaluate",
            rule=f"sigma >= {LEAST_EVALUATED}: below, the first stage hides nobody",
            got=sigma,
            next_step="policy, the strict loss",
        )
    return Divergences(ProductPair(x, sigma, relative).branches())


def _under(slope: float, one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Tell whether the chord between two points (a, (a - 1) D_a) is below slope a (a - 1) all the way."""
    (start, low), (end, high) = one, other
    chord = (high - low) / (end - start)
    worst = min(end, max(start, (chord / slope + 1) / 2))  # where the chord is closest
    return all(low + chord * (a - start) <= slope * a * (a - 1) for a in (worst, end))


@lru_cache(maxsize=1)
def _first_stage() -> tuple[Floats, Floats]:
    """Return nodes and weights of the standard normal, fine about 0, where the folded error has its kink."""
    u, weights = np.polynomial.legendre.leggauss(160)
    half = (u + 1) / 2
    z = _REACH * half**3
    mass = weights * half**2 * np.exp(-(z**2) / 2)
    both = np.concatenate([mass, mass])
    return np.concatenate([-z, z]).astype(np.float64), np.asarray(both / both.sum(), dtype=np.float64)
