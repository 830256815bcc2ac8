"""Who wins a noisy race: the chance of each option, and that all winners are good enough. In float64, for plans."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.scores import refused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.mechanisms.noises import Noise

    Float64 = NDArray[np.float64]

MOST_OPTIONS: Final = 1 << 12
"""Options whose probabilities are integrated: the work grows with their square."""

REACH: Final = 45.0
"""Standard noise beyond it has probability below 2^-64 for every law."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def winning_chances(noise: Noise, centres: Float64) -> Float64:
    """Return P[option i has the largest centre + noise] for each i, to about 10 digits, absolutely.

    >>> winning_chances("exponential", np.array([0.0, -1.0])).tolist()
    [0.8160602794142..., 0.1839397205857...]
    >>> bool(np.allclose(winning_chances("gaussian", np.zeros(4)), 0.25))
    True
    """
    centres = centres - centres.max()
    if noise == "gumbel":
        mass = np.exp(centres)
        return np.asarray(mass / mass.sum())
    if len(centres) > MOST_OPTIONS:
        raise refused(f"probabilities of at most {MOST_OPTIONS} options", len(centres))
    if noise == "exponential":
        return _flip_chances(centres)
    near = centres[(centres > -2 * REACH) & (noise == "laplace")]
    values, weights = _panels(-REACH, REACH, near)
    below = _log_below(noise, values[:, None] - centres)
    rest = below.sum(axis=1, keepdims=True) - below
    with np.errstate(under="ignore"):
        chances = np.exp(_log_density(noise, values[:, None] - centres) + rest)
    return np.asarray(weights @ chances)


def _flip_chances(centres: Float64) -> Float64:
    """Return the chances of permute-and-flip: e^c_i times the integral over x in (0, 1) of prod_{j != i} (1 - x e^c_j).

    In a random order option i comes at time x; each j was tried before with probability x and kept with e^c_j. The
    integrand is a polynomial of degree options - 1, which Gauss's rule integrates exactly.
    """
    nodes, weights = np.polynomial.legendre.leggauss(len(centres) // 2 + 1)
    kept = np.exp(centres)
    log = np.log1p(-np.multiply.outer((nodes + 1) / 2, kept))
    with np.errstate(under="ignore"):
        return np.asarray(kept * ((weights / 2) @ np.exp(log.sum(axis=1, keepdims=True) - log)))


def chance_within(noise: Noise, k: int, options: int, distance: float) -> float:
    """Return the least chance that the k first of a race are all good, the others being `distance` behind or more.

    Good are the options whose score is at least that of the true k-th, less what `distance` stands for. The chance is
    least when k options are good, all tied, and all others lie exactly `distance` behind:
    docs/proofs/mechanisms.select.md, "How good the choice is".

    >>> round(chance_within("gumbel", 1, 100, math.log(99 * 19)), 6)
    0.95
    """
    bad = options - k
    if noise == "gumbel":
        left = np.arange(1, k + 1)
        return math.exp(-float(np.log1p(bad * math.exp(-distance) / left).sum()))
    values, weights = _panels(-REACH, REACH, np.array([0.0, -distance]))
    log = math.log(k) + _log_density(noise, values) + (k - 1) * _log_below(noise, -values, mirrored=True)
    with np.errstate(under="ignore"):
        return float(weights @ np.exp(log + bad * _log_below(noise, values + distance)))


def distance_for(noise: Noise, k: int, options: int, confidence: float) -> float:
    """Return the least distance, in standard noise, at which `chance_within` reaches the confidence, rounded up.

    >>> round(distance_for("gumbel", 1, 100, 0.95), 4) == round(math.log(99 * 19), 4)
    True
    """
    wanted = confidence + min(1e-9, (1 - confidence) / 1000)
    low, high = 0.0, 1.0
    while chance_within(noise, k, options, high) < wanted and high < REACH * 4:
        low, high = high, 2 * high
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if chance_within(noise, k, options, middle) >= wanted else (middle, high)
    return high


def _panels(low: float, high: float, kinks: Float64) -> tuple[Float64, Float64]:
    """Return nodes and weights of Gauss's rule on panels of 1/4 that end at every kink."""
    inside = kinks[(kinks > low) & (kinks < high)]
    ends = np.unique(np.concatenate([np.arange(low, high + 0.125, 0.25), inside]))
    half = np.diff(ends) / 2
    nodes = (ends[:-1] + half)[:, None] + half[:, None] * _NODES
    return nodes.ravel(), (half[:, None] * _WEIGHTS).ravel()


def _log_density(noise: Noise, at: Float64) -> Float64:
    """Return the log density of standard noise."""
    if noise == "gaussian":
        return np.asarray(-at * at / 2 - math.log(2 * math.pi) / 2)
    if noise == "laplace":
        return np.asarray(-np.abs(at) - math.log(2))
    return np.where(at >= 0, -at, -np.inf)


def _log_below(noise: Noise, at: Float64, *, mirrored: bool = False) -> Float64:
    """Return log P[noise <= at]; of minus the noise if mirrored, which matters for exponential noise alone."""
    if noise == "gaussian":
        from scipy.special import log_ndtr

        return np.asarray(log_ndtr(at))
    with np.errstate(divide="ignore"):
        if noise == "laplace":
            upper = np.log1p(-np.exp(-np.maximum(at, 0)) / 2)
            return np.where(at < 0, at - math.log(2), upper)
        if mirrored:
            return np.minimum(at, 0.0)
        return np.log(-np.expm1(-np.maximum(at, 0)))
