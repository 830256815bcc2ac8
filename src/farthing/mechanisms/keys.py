"""Group keys found privately: which of the groups that exist are told, from the number of units in each.

A unit counts by 1 in at most `max_groups` groups. A group that exists for one unit alone must stay hidden but for a
chance delta, which counts all the groups that one unit can create, not one of them. `GaussianKeys` pays in mu^2 and
delta, `OptimalKeys` in epsilon and delta with the highest chances that any rule can give. A unit in fewer groups
counts by more than 1 in each, as far as the same price and delta allow: its `shares`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidBounds, InvalidBudget, InvalidTarget
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, sigma_of
from farthing.mechanisms.group_shares import ONE, check_shares, shares_of
from farthing.noise.bits import system_bits
from farthing.noise.gaussian import rounded_gaussian
from farthing.normal import ndtri
from farthing.privacy.balls import ball, lower, upper, working
from farthing.privacy.convert.gdp import normal_tail
from farthing.privacy.loss import Approx, Gdp
from farthing.rounding import DELTA_COIN, FARTHING, coins_up, down

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.mechanisms.group_shares import Shares
    from farthing.noise.bits import BitSource

    Int64 = NDArray[np.int64]
    Flags = NDArray[np.bool_]

CHANCE_BITS: Final = 128
"""Chances of `OptimalKeys` are whole numbers of 2^-128, each rounded down: two words decide a draw exactly."""

MOST_STEPS: Final = 1 << 20
"""The longest table of chances; a smaller epsilon a group needs a longer one, and is refused."""
WHOLE_BITS: Final = 42
"""Thresholds are below 2^42 units, so that their parts of 1/ONE are exact in a float64."""

_UP: Final = 1 + 2.0**-30


@dataclass(frozen=True, slots=True)
class GaussianKeys:
    """Tell group g if units_g + sigma Z_g > threshold.

    Attributes:
        grains: the cost a group, in 2^-56 of mu^2; sigma = 1/mu, rounded up.
        threshold: in units, >= 1; a float64 is the exact number it is.
        max_groups: K, the most groups that one unit counts in.
        bits: where random bits come from; None is the system's stream cipher.
        shares: by how much a unit of so many groups counts in each, in 1/ONE; empty for 1. `plan` gives the largest
            that cost nothing: min(sqrt(K/k), what keeps delta) for k groups.

    Guarantee: but for events of chance `delta`, mu-GDP with mu^2 = K/sigma^2; so (epsilon, delta + delta')-DP wherever
        mu-GDP gives (epsilon, delta'). `delta` is the largest 1 - Phi((threshold - share)/sigma)^k, k <= K: all groups
        of a unit may be new.
    Proof: docs/proofs/mechanisms.keys.md; shares of sqrt(1/k) are those of [GopiGKSSY20].
    Assumes: add/remove one unit; only groups with units >= 1 are passed, and their keys leave in an order that the
        units do not choose; exact sampler.
    Rounds: sigma up; delta up to whole coins of 2^-80.

    >>> keys = GaussianKeys.plan(100, confidence=0.95, delta=1e-7, max_groups=5)
    >>> f"{keys.sigma:.2f} {keys.threshold:.2f} {keys.loss.mu:.4f}", keys.shares[0]
    ('13.87 77.18 0.1612', (1, 2289))
    >>> keys.found(np.array([1, 500]) * 1024).tolist()
    [False, True]
    """

    grains: int
    threshold: float
    max_groups: int = 1
    bits: BitSource | None = None
    shares: Shares = ()

    def __post_init__(self) -> None:
        _check_groups(self.max_groups)
        check_shares(self.shares, self.max_groups)
        if not 1 <= self.grains <= MOST_GRAINS:
            raise InvalidBudget(
                "the cost is out of range",
                rule=f"1 <= grains <= {MOST_GRAINS}",
                got=self.grains,
                next_step="use GaussianKeys.plan",
            )
        if not 1 <= self.threshold < 2.0**WHOLE_BITS:
            raise InvalidTarget(
                "the threshold is out of range",
                rule=f"1 <= threshold < 2^{WHOLE_BITS} units",
                got=self.threshold,
                next_step="use GaussianKeys.plan",
            )

    @classmethod
    def plan(
        cls,
        found_above: int,
        *,
        confidence: float,
        delta: Fraction | float,
        max_groups: int = 1,
        bits: BitSource | None = None,
    ) -> GaussianKeys:
        """Return the cheapest rule that finds each group of at least that many units with the confidence.

        Args:
            found_above: units, >= 2.
            confidence: the chance, for each such group alone, in [0.5, 1).
            delta: the chance that may be booked, in [2^-80, 1).
            max_groups: K.
            bits: for the release.

        Guarantee: `.delta <= delta`, and P[found] >= confidence for every group of at least `found_above` units.
        Proof: docs/proofs/mechanisms.keys.md.
        Assumes: nothing.
        Rounds: the cost up, by 2^-30 of it; the threshold up; shares down, never below 1.
        """
        allowed = _checked(found_above, confidence, delta, max_groups)
        hide, find = _hiding(allowed, max_groups), float(ndtri(confidence)) * _UP + 1e-9
        if hide <= 0:
            raise InvalidTarget(
                "delta is too large", rule="delta / max_groups < 1/2", got=float(delta), next_step="1e-7 is usual"
            )
        grains = math.ceil(((hide + find) / (found_above - 1)) ** 2 * _UP / GRAIN)
        if grains > MOST_GRAINS:
            raise InvalidTarget(
                "groups this small cannot be told apart from noise",
                rule="noise of mu = 8 or less a group",
                got=f"found_above={found_above}, delta={float(delta):.3g}",
                next_step="raise found_above, or lower the confidence",
            )
        sigma = float(sigma_of(np.array([grains]), 1)[0])
        threshold = max(1.0, 1 + hide * sigma)

        def most(groups: int) -> int:
            """Return the largest share at which neither the price nor delta rises."""
            free = (threshold - _hiding(allowed, groups) * sigma) * ONE
            return min(math.isqrt(max_groups * ONE * ONE // groups), math.floor(free))

        return cls(grains, threshold, max_groups, bits, shares_of(max_groups, most, one=ONE))

    @property
    def sigma(self) -> float:
        """The noise in units."""
        return float(sigma_of(np.array([self.grains]), 1)[0])

    @property
    def cost_grains(self) -> int:
        """The cost in grains of 2^-56 of mu^2, for a unit in all its K groups."""
        return self.grains * self.max_groups

    @property
    def loss(self) -> Gdp:
        """The mu-GDP part of the price."""
        return Gdp.of_amount(self.cost_grains * GRAIN)

    @property
    def delta_coins(self) -> int:
        """Delta in coins of 2^-80, rounded up: the largest of 1 - Phi((threshold - share)/sigma)^k."""
        with working() as flint:
            tails = [
                (most, normal_tail(flint, (flint.arb(share) / ONE - flint.arb(self.threshold)) / self.sigma))
                for most, share in self.shares or ((self.max_groups, ONE),)
            ]
            return coins_up(max(upper(-(most * (-tail).log1p()).expm1()) for most, tail in tails), DELTA_COIN)

    @property
    def delta(self) -> Fraction:
        """Delta as it is booked."""
        return self.delta_coins * DELTA_COIN

    def chance(self, units: float) -> float:
        """Return the chance that a group is told in which units count by so much in all."""
        from scipy.special import ndtr

        return float(ndtr((units - self.threshold) / self.sigma)) if units else 0.0

    def found(self, units: Int64) -> Flags:
        """Return which groups are told, bool[groups]; groups without units never are.

        Args:
            units: int64[groups], the exact sums of what units count by in the groups that exist: with shares, in 1/ONE.
        """
        # With 1/2 - threshold = part - whole, exactly, units + sigma Z > threshold says that
        # units - whole + round(part + sigma Z) >= 1: the comparison is the sampler's certified rounding.
        one = ONE if self.shares else 1
        threshold, sigma = self.threshold * one, self.sigma * one  # exact: `one` is a power of two
        whole = math.floor(threshold)
        part = 0.5 - (threshold - whole)
        noisy = units - whole + rounded_gaussian(sigma, offset=part, size=units.shape, bits=self.bits)
        return np.asarray((noisy >= 1) & (units > 0))


@dataclass(frozen=True, slots=True)
class OptimalKeys:
    """Tell group g with chance pi(units_g), the largest chances that (epsilon, delta)-DP allows at every count.

    pi(0) = 0 and pi(n+1) is the least of e^eps pi(n) + d, 1 - e^-eps (1 - pi(n) - d) and 1, for eps = epsilon/K and
    d = 1 - (1 - delta)^(1/K): K groups then make up exactly epsilon and delta.

    Attributes:
        farthings: epsilon, for a unit in all its K groups, in 2^-40.
        delta: the chance, exact.
        max_groups: K, the most groups that one unit counts in, by its `shares` or by 1 in each.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: (epsilon, delta)-DP.
    Proof: docs/proofs/mechanisms.keys.md; the recursion is that of [DesfontainesVGM22].
    Assumes: add/remove one unit; only groups with units >= 1 are passed, and their keys leave in an order that the
        units do not choose.
    Rounds: each chance down to a multiple of 2^-128 inside the recursion, so the numbers drawn with obey it exactly.

    >>> keys = OptimalKeys.plan(100, confidence=0.95, delta=1e-7, max_groups=5)
    >>> f"{keys.loss.value:.3f}", keys.chance(99) < 0.95 < keys.chance(100), keys.found(np.array([1, 500])).tolist()
    ('0.885', True, [False, True])
    """

    farthings: int
    delta: Fraction
    max_groups: int = 1
    bits: BitSource | None = None
    _table: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_groups(self.max_groups)
        if self.farthings < 1 or not DELTA_COIN <= self.delta < 1:
            raise InvalidBudget(
                "the price is out of range",
                rule="epsilon > 0, 2^-80 <= delta < 1",
                got=f"{self.farthings} farthings, delta={float(self.delta):.3g}",
                next_step="use OptimalKeys.plan",
            )
        table = _chances(self.farthings, self.delta, self.max_groups, MOST_STEPS)
        if len(table) > MOST_STEPS:
            raise InvalidBudget(
                "epsilon is too small for a table of chances",
                rule=f"at most {MOST_STEPS} units until a group is surely found",
                got=float(self.farthings * FARTHING),
                next_step="use GaussianKeys, or a larger epsilon",
            )
        object.__setattr__(self, "_table", table)

    @classmethod
    def plan(
        cls,
        found_above: int,
        *,
        confidence: float,
        delta: Fraction | float,
        max_groups: int = 1,
        bits: BitSource | None = None,
    ) -> OptimalKeys:
        """Return the cheapest rule that finds each group of at least that many units with the confidence.

        The arguments are those of `GaussianKeys.plan`. Epsilon is least to within 2^-20 of itself.
        """
        allowed = _checked(found_above, confidence, delta, max_groups)
        if found_above > MOST_STEPS // 2:
            raise InvalidTarget(
                "groups this large are found without this rule",
                rule=f"found_above <= {MOST_STEPS // 2}",
                got=found_above,
                next_step="use GaussianKeys",
            )
        wanted = math.ceil(Fraction(confidence) * (1 << CHANCE_BITS))

        def finds(farthings: int) -> bool:
            table = _chances(farthings, allowed, max_groups, found_above)
            return table[min(found_above, len(table) - 1)] >= wanted

        low, high = 0, max(1, (max_groups << 40) // found_above)
        while not finds(high):
            low, high = high, 2 * high
        while high - low > max(1, high >> 20):
            middle = (low + high) // 2
            low, high = (low, middle) if finds(middle) else (middle, high)
        return cls(high, allowed, max_groups, bits)

    @property
    def loss(self) -> Approx:
        """The price, (epsilon, delta)."""
        return Approx.of_parts(amount=self.farthings * FARTHING, slack=self.delta)

    @property
    def delta_coins(self) -> int:
        """Delta in coins of 2^-80."""
        return coins_up(self.delta, DELTA_COIN)

    @property
    def shares(self) -> Shares:
        """By how much a unit of so many groups counts in each: what k groups allow at the same epsilon and delta.

        Guarantee: (epsilon, delta)-DP if a unit of k groups counts by its share j in each, as if it counted by 1 in K.
        Proof: docs/proofs/mechanisms.keys.md: k j <= K, and 1 - (1 - d (1 + e^eps + ... + e^((j-1) eps)))^k <= delta.
        Assumes: add/remove one unit.
        Rounds: shares down, to whole numbers.
        """
        with working(2 * CHANCE_BITS + 64) as flint:
            epsilon = ball(flint, self.farthings * FARTHING) / self.max_groups
            whole = (-ball(flint, self.delta)).log1p()
            one = -(whole / self.max_groups).expm1()

            def most(groups: int) -> int:
                """Return the largest share that k groups allow."""
                ratio = -(whole / groups).expm1() / one
                longest = (ratio * epsilon.expm1()).log1p() / epsilon
                return min(self.max_groups // groups, math.floor(lower(longest)))

            return shares_of(self.max_groups, most, one=1)

    def chance(self, units: int) -> float:
        """Return the chance that a group of that many units is told."""
        return down(Fraction(self._table[min(units, len(self._table) - 1)], 1 << CHANCE_BITS))

    def found(self, units: Int64) -> Flags:
        """Return which groups are told, bool[groups]: a uniform number of 128 bits below the group's chance.

        Args:
            units: int64[groups], the exact sums of what units count by in the groups that exist.
        """
        place = np.minimum(units, len(self._table) - 1)
        kinds, where = np.unique(place, return_inverse=True)
        chances = [self._table[kind] for kind in kinds.tolist()]
        high = np.array([min(chance >> 64, (1 << 64) - 1) for chance in chances], np.uint64)[where]
        low = np.array([chance & ((1 << 64) - 1) for chance in chances], np.uint64)[where]
        sure = np.array([chance >> CHANCE_BITS > 0 for chance in chances], np.bool_)[where]
        source = system_bits() if self.bits is None else self.bits
        words = source.words(2 * len(units)).reshape(2, len(units))
        return np.asarray(sure | (words[0] < high) | ((words[0] == high) & (words[1] < low)))


@lru_cache(maxsize=128)
def _chances(farthings: int, delta: Fraction, max_groups: int, most: int) -> tuple[int, ...]:
    """Return pi(0), pi(1), ... in 2^-128, each rounded down, until it is 1 or `most` units are reached.

    The numbers obey pi(n+1) <= e^eps pi(n) + d and 1 - pi(n) <= e^eps (1 - pi(n+1)) + d exactly: every rounding lowers
    pi(n+1), which both inequalities bound from above, given pi(n) as it was rounded.
    """
    one = 1 << CHANCE_BITS
    with working(2 * CHANCE_BITS + 64) as flint:
        growth = (ball(flint, farthings * FARTHING) / max_groups).exp()
        share = -((-ball(flint, delta)).log1p() / max_groups).expm1()
        rise = math.floor(lower(growth) * one)  # e^eps and d rounded down, e^-eps up: each lowers the next chance
        fall = math.ceil(upper(1 / growth) * one)
        fresh = math.floor(lower(share) * one)
    chances = [0]
    while chances[-1] < one and len(chances) <= most:
        last = chances[-1]
        kept = max(0, one - last - fresh)
        chances.append(min((rise * last >> CHANCE_BITS) + fresh, one - -(-(fall * kept) >> CHANCE_BITS), one))
    return tuple(chances)


def _check_groups(max_groups: int) -> None:
    """Refuse what is not a bound on the groups of a unit."""
    if isinstance(max_groups, bool) or not isinstance(max_groups, int) or max_groups < 1:
        raise InvalidBounds(
            "max_groups is not a usable bound",
            rule="a whole number >= 1",
            got=repr(max_groups),
            next_step="give the most groups that one unit counts in",
        )


def _hiding(delta: Fraction, groups: int) -> float:
    """Return how many sigmas above its share a unit of so many new groups must have the threshold, rounded up."""
    one = -math.expm1(math.log1p(-float(delta)) / groups)  # the chance that one of them is told
    return float(-ndtri(one)) * _UP + 1e-9


def _checked(found_above: int, confidence: float, delta: Fraction | float, max_groups: int) -> Fraction:
    """Return delta as it may be booked, rounded down to whole coins; refuse what cannot be planned."""
    _check_groups(max_groups)
    if isinstance(found_above, bool) or not isinstance(found_above, int) or found_above < 2:
        raise InvalidTarget(
            "no rule can find such groups",
            rule="found_above is a whole number >= 2: a group of one unit must stay hidden",
            got=repr(found_above),
            next_step="for example found_above=50",
        )
    if not 0.5 <= confidence < 1:
        raise InvalidTarget(
            "the confidence is out of range", rule="0.5 <= confidence < 1", got=confidence, next_step="0.95 is usual"
        )
    coins = math.floor(Fraction(delta) / DELTA_COIN) if 0 < delta < 1 else 0
    if not coins:
        raise InvalidBudget(
            "delta is out of range",
            rule="2^-80 <= delta < 1",
            got=float(delta),
            next_step="set aside some: Budget(..., keys_delta=1e-7)",
        )
    return coins * DELTA_COIN
