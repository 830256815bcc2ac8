"""What the relative-noise mechanisms share: Gaussian noise on a transform f of a count, then an inverse of f.

Adding or removing a record moves x by one and f(x) by the less, the flatter f is there. So noise of one size on f(x)
protects a member of a large group better than one of a small group, and the output's error grows with the group.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from farthing.errors import DataError, InvalidBounds, InvalidTarget, NoiseError
from farthing.mechanisms.relative_error import expected
from farthing.noise.transformed import rounded_around
from farthing.privacy.policy import LARGEST_SIZE, UP, Policy

if TYPE_CHECKING:
    from flint import arb
    from numpy.typing import ArrayLike, NDArray

    from farthing.mechanisms.relative_error import Metric
    from farthing.noise.bits import BitSource

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]

FINEST_BITS: Final = 10
"""Outputs lie on a grid, in f, of at most sigma / 2^10: rounding adds less than 2^-23 of the noise's variance."""

ERROR: Final = 2.0**-45
"""How far a float64 transform can be from the true one, over 1 + |f|: allowed; measured at 2^-51."""

LEAST: Final = 2.0**-20
"""The least offset, kink or noise scale; smaller ones serve no count."""

MOST: Final = 2.0**50
"""The largest; beyond it a count of 2^52 would hardly show."""

LARGEST_LOG_SIGMA: Final = 16.0
"""The largest noise on a logarithm: it already mistakes 1 for a million."""


class Transformed(ABC):
    """Gaussian noise on f(x), rounded to a public grid, and an inverse of f.

    Subclasses are frozen values with a `sigma` (the noise on f), a `sensitivity` (the most records, or clamped units
    of a sum, that one member adds) and the parameters of their f, which must rise, be concave from 0 on, and come in
    float64 and in balls.
    """

    __slots__ = ()
    sigma: float
    sensitivity: int

    @abstractmethod
    def transform(self, x: Floats) -> Floats:
        """Return f(x), nearly; errs by at most `ERROR * (1 + |f|)`."""

    @abstractmethod
    def transform_ball(self, x: arb) -> arb:
        """Return a ball around f(x)."""

    @abstractmethod
    def gap(self, low: Floats, by: float) -> Floats:
        """Return f(low + by) - f(low) without cancellation; errs by at most 2^-48 of it."""

    @abstractmethod
    def value(self, level: Floats) -> Floats:
        """Return the estimate of x from a released f(x) + noise: post-processing."""

    @property
    def grid_log2(self) -> int:
        """The exponent of the public grid of f on which outputs lie: sigma / 2^it is in [2^10, 2^11)."""
        return math.frexp(self.sigma)[1] - 1 - FINEST_BITS

    @property
    def spread(self) -> float:
        """The standard deviation of f's noise with the grid's rounding counted."""
        return math.sqrt(self.sigma**2 + math.ldexp(1.0, 2 * self.grid_log2) / 12)

    @property
    def shrink(self) -> float:
        """The factor by which exp(rounded noise) is too large on average, inverted: e^(-s^2/2) (H/2)/sinh(H/2)."""
        half = math.ldexp(0.5, self.grid_log2)
        return math.exp(-(self.sigma**2) / 2) * half / math.sinh(half)

    @property
    def policy(self) -> Policy:
        """The loss of a member as a function of the size of the group; call it for rho, see `Policy` for more."""
        return Policy.of(self)

    @property
    def gaussian(self) -> bool:
        """True: the release is the Gaussian mechanism on f(x), so distances are mu of Gaussian DP."""
        return True

    def distance(self, sizes: Integers, members: int) -> Floats:
        """Return how many sigma f can move when `members` join or leave a group of each size; rounded up.

        f is concave, so the way down is the longer one, and below `members` the longest starts at 0: the same bound
        is used for all sizes there, and never grows with the size.
        """
        by = members * self.sensitivity
        if by > LARGEST_SIZE:
            raise InvalidBounds(
                "the members together add more than any group has",
                rule="members * sensitivity <= 2^52",
                got=by,
                next_step="fewer members",
            )
        low = np.maximum(sizes, by) - by
        return np.asarray(self.gap(low.astype(np.float64), float(by)) / self.sigma * UP)

    def release(self, counts: ArrayLike, bits: BitSource | None = None) -> Floats:
        """Return a noisy count for every group; float64 of the shape of `counts`.

        Args:
            counts: whole numbers from 0 to 2^52, the exact sizes of the groups.
            bits: where random bits come from; None is the system's stream cipher.

        Guarantee: a member of a group of x pays `policy(x)` in zCDP and `policy.mu(x)` in Gaussian DP, for every x at
            once; groups are disjoint, so the release costs nobody more than `policy.worst()`.
        Proof: docs/proofs/mechanisms.relative.md.
        Assumes: add/remove one member moves one count by at most `sensitivity`; exact sampler; float64 transforms err
            by at most 2^-45 (1 + |f|).
        Rounds: f(x) + noise to a public grid; the values are a function of the grid points alone.
        """
        return self.value(np.ldexp(self.indices(counts, bits).astype(np.float64), self.grid_log2))

    def indices(self, counts: ArrayLike, bits: BitSource | None = None) -> Integers:
        """Return what a release is made of: whole numbers of grid steps in f; int64 of the shape of `counts`."""
        exact = private_counts(counts)
        flat = exact.ravel()
        f = self.transform(flat.astype(np.float64))
        scaled = rounded_around(
            math.ldexp(self.sigma, -self.grid_log2),
            np.ldexp(f, -self.grid_log2),
            error=np.ldexp(self.error(f), -self.grid_log2),
            ball=lambda index: self._exact_mean(int(flat[index])),
            bits=bits,
        )
        return scaled.reshape(exact.shape)

    def error(self, f: Floats) -> Floats:
        """Return how far `transform` can be from the truth."""
        return np.asarray(ERROR * (1 + np.abs(f)))

    def expected_error(self, sizes: ArrayLike, metric: Metric = "mae") -> Floats:
        """Return the error of the released value for each size; float64, in records, to 1 part in 10^5.

        Args:
            sizes: numbers from 0 to 2^52; public ones.
            metric: "mae" for E|error|, "rmse" for the root of E[error^2], ("ci", 0.95) for the half-width that holds
                the error with that probability (rounded up, by 1 part in 10^3 at most).
        """
        return expected(self, sizes, metric)

    def bias(self, sizes: ArrayLike) -> Floats:
        """Return E[released value] - x for each size; float64, in records; 0 within 10^-8 where it is unbiased."""
        return expected(self, sizes, "bias")

    def _exact_mean(self, count: int) -> arb:
        """Return a ball around f(count) in grid steps."""
        from flint import arb

        return self.transform_ball(arb(count)) * arb(math.ldexp(1.0, -self.grid_log2))


def checked(sigma: float, sensitivity: int, *, least: float = LEAST, most: float = MOST, **positive: float) -> None:
    """Refuse parameters that no mechanism can have."""
    if not (_number(sigma) and least <= sigma <= most):
        raise NoiseError(
            "sigma is out of range",
            rule=f"{least:.3g} <= sigma <= {most:.3g}, the noise on the transformed count",
            got=sigma,
            next_step="for_relative_error(0.1, x0=50) chooses it",
        )
    for name, value in positive.items():
        if not (_number(value) and LEAST <= value <= MOST):
            raise InvalidTarget(
                f"{name} is out of range",
                rule=f"2^-20 <= {name} <= 2^50: at 0 the transform is infinitely steep, and a group of 1 unprotected",
                got=value,
                next_step=f"{name}=50, the size below which an absolute error is fine",
            )
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, int) or not 1 <= sensitivity <= LARGEST_SIZE:
        raise InvalidBounds(
            "sensitivity is not a whole number of records",
            rule="1 <= sensitivity <= 2^52: the most that one member adds to a group",
            got=sensitivity,
            next_step="sensitivity=1, for one record a member",
        )


def private_counts(counts: ArrayLike) -> Integers:
    """Return exact counts as int64; refuse what are none, without a word about their values."""
    given = np.asarray(counts)
    whole = given.dtype.kind in "iuf" and bool(np.all((given >= 0) & (given <= LARGEST_SIZE)))
    if not whole or (given.dtype.kind == "f" and not bool(np.all(np.floor(given) >= given))):
        raise DataError(
            "the counts are not whole numbers in range",
            rule="0 <= count <= 2^52, without NaN",
            next_step="count rows; clamp and round sums to whole units, not below 0",
        )
    return given.astype(np.int64)


def _number(value: object) -> bool:
    """Tell whether a value is an int or float, NaN excluded."""
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
