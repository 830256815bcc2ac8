"""The least that any rule pays in the mean over truths, biased or not, and however it decides when to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import log_ndtr, ndtri

from farthing.errors import InvalidOption
from farthing.limits.factorization import gamma_2

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Float64 = NDArray[np.float64]

_SHAVE: Final = 1 - 2e-3
"""For the meshes, whose errors are below a thousandth."""

_LEAST_BETA: Final = 1e-6


@dataclass(frozen=True, slots=True)
class SizesLimit:
    """What a relative target costs at least in the mean over sizes, as parts of the price of one who knows them.

    Attributes:
        mu_squared: the least mean of mu squared over (z/(relative x))^2, z the two-sided quantile of a Gaussian.
        epsilon: the least mean of epsilon over log(1/beta)/(relative x).
    """

    mu_squared: float
    epsilon: float


def sizes_limit(relative: float, *, beta: float) -> SizesLimit:
    """Return the least that a rule pays for counts or sums within a relative target, in the mean over their sizes.

    Args:
        relative: the target, as a part of the truth, from 0.01 to 0.9.
        beta: the chance of a miss that is allowed at each size, at least 10^-6.

    Returns:
        The limits, in the mean over sizes x from an exponential law of whatever mean.

    Guarantee: no rule of Gaussian measurements of sums over rows that misses with probability at most beta pays less
        than `mu_squared`, and no rule that is epsilon-DP ex post less than `epsilon`.
    Proof: docs/proofs/limits.any_rule.md, sections 2 and 3.
    Assumes: sizes are real numbers; so limits are of counts whose target is well above one row. No absolute target.
    Rounds: down; by two thousandths, since minima are taken over meshes.

    >>> limit = sizes_limit(0.3, beta=0.05)
    >>> f"{limit.mu_squared:.3f} {limit.epsilon:.3f}"
    '0.998 0.983'
    """
    if not 0.01 <= relative <= 0.9 or not _LEAST_BETA <= beta < 0.5:
        raise InvalidOption(
            "a limit in the mean of sizes is of a relative target",
            rule=f"0.01 <= relative <= 0.9; {_LEAST_BETA} <= beta < 0.5",
            got=f"relative={relative}, beta={beta}",
            next_step="ask for one target at a time",
        )
    z, nats = -float(ndtri(beta / 2)), math.log(1 / beta)
    worth = z / math.exp(-z * z / 2) * math.sqrt(2 * math.pi)  # of a miss: any number is right, this one is best
    unseen = (1 - relative) / (1 + relative)  # the least chance of a miss where no size is likelier than smaller ones
    gaussian = min(float((_gaussian(relative) @ np.array([1.0, worth])).min()), worth * unseen) - worth * beta
    pure = min(float((_pure(relative, tilt) @ np.array([1.0, 1 / beta])).min()) for tilt in _TILTS)
    pure = min(pure, unseen / beta) - 1
    return SizesLimit(max(gaussian / z**2 * _SHAVE, 0.0), max(pure / nats * _SHAVE, 0.0))


def answers_limit(workload: ArrayLike, widths: ArrayLike, *, beta: float) -> float:
    """Return the least mu squared of a rule that tells linear answers within absolute targets, in the mean over truths.

    Args:
        workload: float64[answers, kinds], what a row of each kind adds to each answer.
        widths: float64[answers], the half-widths, > 0.
        beta: the chance of a miss of each answer.

    Guarantee: no rule of Gaussian measurements of sums over rows that misses each answer with probability at most beta
        pays less in the mean over truths from wide normal laws (a deviation of s rows of each kind takes 1/s^2 off).
    Proof: docs/proofs/limits.any_rule.md, section 1: z^2 gamma_2^2 of the answers over their widths.
    Assumes: each row is a privacy unit of its own; neighbours have one row more or less.
    Rounds: down, as `gamma_2`.

    >>> f"{answers_limit([[1.0]], [10.0], beta=0.05):.5f}"
    '0.03841'
    """
    W, h = np.atleast_2d(np.asarray(workload, np.float64)), np.asarray(widths, np.float64)
    if not 0 < beta < 0.5 or h.shape != W.shape[:1] or not (np.isfinite(h) & (h > 0)).all():
        raise InvalidOption(
            "a limit of answers is of half-widths",
            rule="one half-width above 0 an answer; 0 < beta < 0.5",
            got=f"answers of shape {W.shape}, widths of shape {h.shape}, beta={beta}",
            next_step="give each answer its half-width",
        )
    return float(ndtri(beta / 2)) ** 2 * gamma_2(W / h[:, None]) ** 2 * (1 - 1e-9)


_TILTS: Final = (*np.arange(0, 1, 0.05).tolist(), 0.999)
"""Of the prior law's slope, as parts of epsilon."""


def _gaussian(relative: float) -> Float64:
    """Return float64[truths, 2]: the price (relative K)^2, in the mean, and the least chance of a miss, where the truth
    is K noises and K is normal, of mean m and variance 1, but for values below 0.
    """
    m = np.concatenate([np.linspace(-30, 0, 100), np.arange(0, 7.5, 0.01) / relative])[:, None]
    hazard = np.exp(-(m**2) / 2 - log_ndtr(m)) / math.sqrt(2 * math.pi)
    price = relative**2 * (1 + m**2 + m * hazard)
    middle = np.maximum(m, 0) + np.where(m > 0, np.linspace(-0.5, 5.5, 300), np.geomspace(1e-3, 12, 300))
    low, high = np.maximum(middle * (1 - relative), 0), np.maximum(middle, 0) * (1 + relative)
    positive = log_ndtr(m)
    missed = np.exp(log_ndtr(m - high) - positive) - np.expm1(log_ndtr(m - low) - positive)
    return np.hstack([price, np.min(missed, axis=1, keepdims=True)])


def _pure(relative: float, tilt: float) -> Float64:
    """Return float64[truths x answers, 2]: the price, relative K in the mean, and the chance of a miss, where K has a
    density that rises with the rate 1 - tilt from 0 up to s and falls with the rate 1 + tilt from there on.
    """
    rises, falls = 1 - tilt, 1 + tilt
    s = np.concatenate([np.linspace(0, 1, 60)[:-1], np.linspace(relative, 16, 500) / relative])[:, None]
    middle = s + np.linspace(-0.3, 0.5, 161) * s + np.where(s < 3, np.linspace(0, 4, 161), 0.0)
    low, high = middle * (1 - relative), middle * (1 + relative)
    below, whole = np.exp(-rises * s), (1 - np.exp(-rises * s)) / rises + 1 / falls
    first = (s / rises - (1 - below) / rises**2 + s / falls + 1 / falls**2) / whole
    left = np.where(
        low <= s,
        (np.exp(-rises * np.maximum(s - low, 0)) - below) / rises,
        (1 - below) / rises + (1 - np.exp(-falls * np.maximum(low - s, 0))) / falls,
    )
    right = np.where(
        high >= s,
        np.exp(-falls * np.maximum(high - s, 0)) / falls,
        1 / falls + (1 - np.exp(-rises * np.maximum(s - high, 0))) / rises,
    )
    missed = (left + right) / whole
    return np.column_stack([np.broadcast_to(relative * first, missed.shape).ravel(), missed.ravel()])
