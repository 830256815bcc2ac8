"""How far off a relative-noise mechanism is, and the noise that meets a relative target.

The target for a group of x is `relative * max(x, x0)`: relative from x0 on, absolute below.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

import numpy as np

from farthing.errors import InvalidTarget
from farthing.privacy.policy import LARGEST_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]

Metric: TypeAlias = Literal["mae", "rmse", "bias"] | tuple[str, float]

REACH: Final = 9.0
"""Noise is integrated out to this many sigma; 2e-19 of it lies beyond."""

PER_SIGMA: Final = 128
"""Nodes per sigma. The kink of |error| costs less than 10^-5 of the mean absolute error; the rest is exact."""

PER_SIGMA_OF_INTERVALS: Final = 512
"""Cells per sigma for quantiles, which are rounded up to the next cell: by 1 part in 10^3 at most."""

CAUTION: Final = 1 - 2.0**-16
"""Chosen noise is this much smaller than what meets the target, to cover the error of the integrals."""

_BLOCK: Final = 256

_TURNS: Final = 8  # of looking between the probes
_PIECES: Final = 33
_PEAKS: Final = 3
_NEAR: Final = 0.01  # how far below the worst, in parts, a peak is still looked around


class NoisyTransform(Protocol):
    """What the error of a mechanism follows from: a transform, its inverse, and the noise between them."""

    @property
    def spread(self) -> float:
        """The standard deviation of the noise on the transform."""

    def transform(self, x: Floats) -> Floats:
        """Return f(x), nearly."""

    def gap(self, low: Floats, by: float) -> Floats:
        """Return f(low + by) - f(low) without cancellation."""

    def value(self, level: Floats) -> Floats:
        """Return what a noisy level is told as."""


def expected(mechanism: NoisyTransform, sizes: ArrayLike, metric: Metric) -> Floats:
    """Return the error of a mechanism for each size, in the metric; float64."""
    measure = _measure(metric)
    at = np.asarray(sizes, dtype=np.float64)
    if not ((at >= 0) & (at <= LARGEST_SIZE)).all():
        raise InvalidTarget(
            "a group size is out of range", rule="0 <= size <= 2^52", got=sizes, next_step="give sizes of groups"
        )
    flat = at.ravel()
    blocks = [measure(mechanism, flat[start : start + _BLOCK]) for start in range(0, len(flat), _BLOCK)]
    return np.concatenate([np.zeros(0), *blocks]).reshape(at.shape)


def noise_for(build: Callable[[float], NoisyTransform], relative: float, *, x0: float, metric: Metric) -> float:
    """Return the sigma, rounded down, at which the mechanism errs by at most relative * max(x, x0) at every size.

    Args:
        build: returns the mechanism of a sigma; its error must rise with sigma.
        relative: the relative error, in (0, 1).
        x0: the size below which the absolute error relative * x0 is fine.
        metric: "mae", "rmse" or ("ci", confidence).
    """
    checked_target(relative, x0, metric)
    probes = np.unique(_probes(relative, x0))

    def above(log_sigma: float, sizes: Floats) -> Floats:
        errors = expected(build(math.exp(log_sigma)), sizes, metric)
        return np.log(errors / (relative * np.maximum(sizes, x0)))

    def excess(log_sigma: float) -> float:
        return float(above(log_sigma, probes).max())

    from scipy.optimize import brentq

    low = high = math.log(_first_guess(build, relative, float(x0)))
    while excess(low) > 0:
        low -= 0.5
    while excess(high) <= 0:
        high += 0.5
    root = brentq(excess, low, high, xtol=2e-6)
    root -= 4e-6  # brentq ends within xtol of the root; one more tolerance below it, the target holds at the probes
    between = _between(probes, above(root, probes))
    for _ in range(_TURNS):
        over = float(above(root, between).max())
        if over <= 0:
            break
        root -= over + 1e-6
    return math.exp(root) * CAUTION


def _between(sizes: Floats, ratios: Floats) -> Floats:
    """Return sizes between the probes: around each of the worst that is worse than both its neighbours."""
    beside = np.pad(ratios, 1, constant_values=-np.inf)
    peaks = np.flatnonzero((ratios >= np.maximum(beside[:-2], beside[2:])) & (ratios >= ratios.max() - _NEAR))
    last = len(sizes) - 1
    pieces = [np.linspace(sizes[max(at - 1, 0)], sizes[min(at + 1, last)], _PIECES) for at in peaks[:_PEAKS].tolist()]
    return np.asarray(np.unique(np.concatenate(pieces)))


def checked_target(relative: float, x0: float, metric: Metric) -> None:
    """Refuse a target that no mechanism meets, or none at all."""
    if isinstance(relative, bool) or not isinstance(relative, int | float) or not 0 < relative < 1:
        raise InvalidTarget(
            "the relative error is out of range",
            rule="0 < relative < 1: at 0 nothing is private, and at 1 the answer 0 would always do",
            got=relative,
            next_step="relative=0.1 for ten percent",
        )
    if isinstance(x0, bool) or not isinstance(x0, int | float) or not 0 < x0 <= LARGEST_SIZE:
        raise InvalidTarget(
            "x0 is out of range",
            rule="0 < x0 <= 2^52: ten percent of a group of 0 is an error of 0, which no finite loss can pay for",
            got=x0,
            next_step="x0=50: groups below 50 get the absolute error of a group of 50",
        )
    _measure(metric)
    if metric == "bias":
        raise InvalidTarget(
            "a bias is not a target", rule='"mae", "rmse" or ("ci", confidence)', got=metric, next_step='metric="mae"'
        )


def _measure(metric: Metric) -> Callable[[NoisyTransform, Floats], Floats]:
    """Return the integral of a metric."""
    match metric:
        case "mae":
            return lambda mechanism, at: _mean(mechanism, at, np.abs)
        case "rmse":
            return lambda mechanism, at: np.sqrt(_mean(mechanism, at, np.square))
        case "bias":
            return lambda mechanism, at: _mean(mechanism, at, np.asarray)
        case ("ci", int() | float() as confidence) if 0.5 <= confidence <= 1 - 1e-9:
            return lambda mechanism, at: _half_width(mechanism, at, confidence)
    raise InvalidTarget(
        "unknown metric of an error",
        rule='"mae", "rmse" or ("ci", confidence), 0.5 <= confidence < 1',
        got=metric,
        next_step='metric="mae", the mean absolute error',
    )


def _mean(mechanism: NoisyTransform, at: Floats, of: Callable[[Floats], Floats]) -> Floats:
    """Return E[of(error)] by the trapezoidal rule, which converges faster than any power for smooth integrands."""
    z = np.arange(-REACH, REACH + 1 / PER_SIGMA, 1 / PER_SIGMA)
    weights = np.exp(-(z**2) / 2)
    return np.asarray(of(_errors(mechanism, at, z)) @ (weights / weights.sum()))


def _half_width(mechanism: NoisyTransform, at: Floats, confidence: float) -> Floats:
    """Return the least half-width that holds the error with the confidence, rounded up to the next cell."""
    from scipy.special import ndtr

    z = np.arange(-REACH, REACH + 1 / PER_SIGMA_OF_INTERVALS, 1 / PER_SIGMA_OF_INTERVALS)
    ends = np.abs(_errors(mechanism, at, z))
    cells = np.maximum(ends[:, 1:], ends[:, :-1])
    masses = np.diff(ndtr(z))
    order = np.argsort(cells, axis=1)
    held = np.cumsum(masses[order], axis=1)
    last = np.argmax(held >= confidence, axis=1)
    return np.take_along_axis(cells, np.take_along_axis(order, last[:, None], axis=1), axis=1)[:, 0]


def _errors(mechanism: NoisyTransform, at: Floats, z: Floats) -> Floats:
    """Return the error of every size at every z; float64[sizes, nodes]."""
    levels = mechanism.transform(at)[:, None] + mechanism.spread * z
    return mechanism.value(levels) - at[:, None]


def _probes(relative: float, x0: float) -> Floats:
    """Return the sizes, in multiples of x0, at which the error can come closest to its target.

    For a transform without a kink that is x0 itself: the error rises with x, and over x it falls. The linear-log
    mechanism has its worst within a few sigma of its kink, wherever x0 is, and its sigma is about the relative error.
    """
    logs = np.concatenate([relative * np.linspace(-3, 9, 49), [-2.0, -1.0, 1.0, 2.0, 4.0, 8.0, 14.0]])
    return np.append(np.minimum(x0 * np.exp(logs), LARGEST_SIZE), 0.0)


def _first_guess(build: Callable[[float], NoisyTransform], relative: float, x0: float) -> float:
    """Return a sigma of the right order: the one whose error in x is relative * x0 if f were straight there."""
    near = build(0.5)
    slope = float(near.gap(np.array([x0]), 1e-3 * x0)[0]) / (1e-3 * x0)
    return relative * x0 * slope
