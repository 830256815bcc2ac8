"""How far a noisy model can be from the best one: from what was shown, or from theory alone.

`shown_bound` reads only released statistics, so a stop by it costs nothing. `theory_bound` reads nothing: turned round,
it is the privacy that theory asks for, the baseline of noise reduction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.models.vectors import SUM_BITS, Statistics

if TYPE_CHECKING:
    from farthing.models.problems import Problem
    from farthing.models.purses import Purse
    from farthing.models.rows import Float64
    from farthing.models.vectors import Vector

GRID: Final = 2.0**-11
"""A measurement's rounding moves a value by at most this part of its sigma."""


@dataclass(frozen=True, slots=True)
class StatisticsNoise:
    """Gaussian noise on the statistics of N rows, as it enters the second derivative of F.

    Attributes:
        sigma: of each entry.
        columns: d.
        rounding: the most that all rounding moves an entry.
    """

    sigma: float
    columns: int
    rounding: float

    @classmethod
    def of(cls, vector: Statistics, purse: Purse, coins: int, looks: int) -> StatisticsNoise:
        """Return the noise after a look at a level, the `looks`-th."""
        sigma = purse.spread(coins, vector.sensitivity("l2")) * 2.0**vector.step_log2 / vector.rows
        return cls(sigma, vector.columns, 2.0 ** -(SUM_BITS + 1) + sigma * math.sqrt(looks) * GRID)

    def size(self, failure: float) -> float:
        """Return what the noise's largest eigenvalue stays within, in size: 2 sigma (sqrt d + sqrt log(2/failure))."""
        gaussian = 2 * self.sigma * (math.sqrt(self.columns) + math.sqrt(math.log(2 / failure)))
        return gaussian + self.columns * self.rounding

    def factor(self, inverse: float, least: float, tilt: float, failure: float) -> float:
        """Return f with excess <= f s^2, s^2 = sigma^2 (1 + |theta*|^2).

        Args:
            inverse: a bound on the trace of the inverse second derivative.
            least: a lower bound on its least eigenvalue.
            tilt: the noise's size over that, below 1.
            failure: the chance that the bound fails.
        """
        random = math.sqrt(inverse + 1 / least) + math.sqrt(4 * math.log(1 / failure) / least)
        rounded = math.sqrt(2) * self.columns * self.rounding / self.sigma / math.sqrt(least)
        return (random + rounded) ** 2 / (2 * (1 - tilt) ** 2)


def shown_bound(vector: Statistics, values: Float64, noise: StatisticsNoise, failure: float) -> float:
    """Return a bound on the excess risk of `vector.hypothesis(values)`, from the noisy values alone; inf if none holds.

    Guarantee: it holds with probability 1 - failure.
    Proof: docs/proofs/models.regressions.md, "A stop that reads released numbers only".
    Assumes: Gaussian noise; at most N rows for the rounding.
    Rounds: in float64, within 2^-40 of itself; nothing private depends on it.
    """
    hessian, _ = vector.noisy(values)
    found, size = np.linalg.eigvalsh(hessian), noise.size(failure / 2)
    least = float(found[0]) - size
    if least <= size or float(found[0]) < vector.regularisation / 2:
        return math.inf
    factor = noise.factor(float((1 / (found - size)).sum()), least, size / least, failure / 2)
    length = float(np.linalg.norm(vector.hypothesis(values)))
    # s^2 = sigma^2 (1 + (length + p s)^2) with p^2 = 2 factor/least; its larger root bounds s.
    sigma, p = noise.sigma, math.sqrt(2 * factor / least)
    left = 1 - (sigma * p) ** 2
    if left <= 0:
        return math.inf
    half = sigma**2 * length * p / left
    s = half + math.sqrt(half**2 + sigma**2 * (1 + length**2) / left)
    return factor * s**2


def theory_bound(problem: Problem, vector: Vector, purse: Purse, coins: int, failure: float) -> float:
    """Return a bound on the excess risk at a level that holds for every data set; inf if none is known.

    Guarantee: it holds with probability 1 - failure, whatever the rows are.
    Proof: docs/proofs/models.regressions.md, "Theory".
    Assumes: at most N rows.
    Rounds: in float64; nothing private depends on it.
    """
    if isinstance(vector, Statistics):
        if purse.gaussian:
            return _gaussian_statistics(vector, StatisticsNoise.of(vector, purse, coins, 1), failure)
        return _chain_statistics(vector, purse.spread(coins, vector.sensitivity("l1")), failure)
    spread = purse.spread(coins, vector.sensitivity(purse.norm)) * 2.0**vector.step_log2
    shape = (problem.regularisation, problem.curvature, len(vector.truth))
    return (_gaussian_output if purse.gaussian else _chain_output)(*shape, spread, failure)


def _gaussian_statistics(vector: Statistics, noise: StatisticsNoise, failure: float) -> float:
    """Return the bound with every eigenvalue at lambda and |theta*|^2 at 1/lambda."""
    strength = vector.regularisation
    tilt = noise.size(failure / 2) / strength
    if tilt >= 0.5:
        return math.inf
    factor = noise.factor(vector.columns / strength, strength, tilt, failure / 2)
    return factor * noise.sigma**2 * (1 + 1 / strength)


def _chain_statistics(vector: Statistics, spread: float, failure: float) -> float:
    """Return the bound with every entry's noise at its union bound."""
    strength, columns = vector.regularisation, vector.columns
    entry = (spread * math.log(2 * len(vector.truth) / failure) + 1) * 2.0**vector.step_log2 / vector.rows
    entry += 2.0 ** -(SUM_BITS + 1)
    tilt = columns * entry / strength
    if tilt >= 0.5:
        return math.inf
    away = math.sqrt(columns) * entry * (1 + math.sqrt(columns / strength))
    return away**2 / (2 * strength * (1 - tilt) ** 2)


def _gaussian_output(strength: float, curvature: float, columns: int, sigma: float, failure: float) -> float:
    """Return half the quantile of a quadratic form with weights lambda, but for one of lambda + curvature."""
    exponent, top = math.log(1 / failure), strength + curvature
    trace = columns * strength + curvature
    root = math.sqrt((columns - 1) * strength**2 + top**2)
    form = trace + 2 * root * math.sqrt(exponent) + 2 * top * exponent
    return form * (sigma * (1 + columns * GRID)) ** 2 / 2


def _chain_output(strength: float, curvature: float, columns: int, spread: float, failure: float) -> float:
    """Return lambda/2 |w|^2 + curvature/2 <u, w>^2 with |w|_2 <= |w|_1, a sum of exponentials, and |<u, w>| alike."""
    from scipy.special import gammainccinv

    total = float(gammainccinv(columns, failure / 2))
    largest = math.sqrt(columns) * math.log(2 * columns / failure)
    length = min(total, largest)
    return (strength + curvature) / 2 * (spread * length * (1 + columns * GRID)) ** 2


def theory_coins(problem: Problem, vector: Vector, purse: Purse, target: float, failure: float) -> int | None:
    """Return the least level at which theory promises the target, or None if no level can be drawn that does."""

    def promised(coins: int) -> bool:
        return theory_bound(problem, vector, purse, coins, failure) <= target

    low, high = 0, purse.finest
    if not promised(high):
        return None
    while high - low > max(1, high >> 20):
        middle = (low + high) // 2
        low, high = (low, middle) if promised(middle) else (middle, high)
    return high
