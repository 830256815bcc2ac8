"""Two-sided geometric noise on integer answers, in one look: what a pure budget buys."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.noise.laplace import two_sided_geometric
from farthing.rounding import FARTHING, down
from farthing.sealed import Sealed, opened, sealed

if TYPE_CHECKING:
    from farthing.noise.bits import BitSource

Int64 = np.typing.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GeometricRelease:
    """Add two-sided geometric noise, P[k] ~ exp(-rate |k|), to integer answers.

    Attributes:
        truth: int64[groups], the exact answers; never leaves this object.
        sensitivity: the most that one privacy unit can move one group's answer, a whole number >= 1.
        max_groups: the most groups one privacy unit can move at all.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: a release at `farthings` a group is epsilon-DP for epsilon = max_groups * farthings * 2^-40.
    Proof: [GhoshRS12]; each moved group costs rate * sensitivity, and independent noise adds.
    Assumes: add/remove one unit moves at most `max_groups` answers by at most `sensitivity` each; exact sampler.
    Rounds: the rate down, so a release costs no more than its farthings.

    >>> GeometricRelease(np.array([500])).release(1 << 40).shape
    (1,)
    """

    truth: Int64 | Sealed = field(repr=False)
    sensitivity: int = 1
    max_groups: int = 1
    bits: BitSource | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", sealed(self.truth))

    def release(self, farthings: int) -> Int64:
        """Return the noisy answers, int64[groups], at a price of `farthings` of epsilon a group."""
        truth: Int64 = opened(self.truth)
        return truth + two_sided_geometric(rate_of(farthings, self.sensitivity), len(truth), self.bits)


def rate_of(farthings: int, sensitivity: int) -> float:
    """Return the decay of the noise per step that costs at most `farthings` of epsilon a group, rounded down."""
    return down(farthings * FARTHING / sensitivity)


def half_width(farthings: int, sensitivity: int, beta: float) -> int:
    """Return the least whole A with P[|noise| > A] <= beta.

    >>> half_width(1 << 40, 1, 0.05)
    3
    """
    rate = rate_of(farthings, sensitivity)
    # P[|noise| >= m] = 2 q^m / (1 + q) with q = exp(-rate).
    m = (math.log(2 / beta) - math.log1p(math.exp(-rate))) / rate
    return max(0, math.ceil(m * (1 + 1e-12)) - 1)


_FAR: Final = 2.0**1000  # steps: one farthing is more than enough


def price_of(absolute: float, sensitivity: int, beta: float) -> int:
    """Return the least farthings of epsilon a group whose noise stays within `absolute` with probability 1 - beta.

    >>> half_width(price_of(100, 1, 0.05), 1, 0.05)
    100
    """
    wanted = math.floor(min(absolute, _FAR))
    low, high = 0, 1
    while half_width(high, sensitivity, beta) > wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if half_width(middle, sensitivity, beta) <= wanted else (middle, high)
    return high
