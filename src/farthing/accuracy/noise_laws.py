"""The two laws of noise that looks are made with: how finely one look shows, and how far it may be from the truth.

A look that has cost `n` shows the truth plus noise; its *precision* is one over the noise's scale: `sqrt(n per_grain)`
for Gaussian noise (n counts information, per_grain is that of one grain), `n per_grain` for Laplace noise (n counts
epsilon). What it shows times its precision is its *signal*: the truth's, plus a standard Gaussian or Laplace variable.
Rules, jumps and intervals speak of signals and precisions only, and so serve both laws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from farthing.normal import ndtri

CAUTION: Final = 2.0
"""k: how many standard deviations below the boundary a jump aims. Costs looks; buys less overshoot."""

PASSED: Final = 0.02
"""How likely finer Laplace noise may be to pass the boundary on a jump. Costs looks; buys less overshoot."""

COARSEST: Final = 2.0**-10
"""The largest decay a step of integer noise that this library's rules call Laplace noise: proof page
accuracy.laplace_stop_rule.
"""


class NoiseLaw(Protocol):
    """One law of noise."""

    @property
    def name(self) -> str:
        """What records call it."""

    @property
    def first(self) -> int:
        """What the first look costs, about: too little to matter, enough to place a count of 10^6 or 10^8."""

    @property
    def variance(self) -> float:
        """The variance of noise of scale 1."""

    @property
    def least_signal(self) -> float:
        """The least boundary that noise alone does not pass, over all looks, with a chance of 10^-7."""

    def precision(self, amount: Any, per_grain: float) -> Any:
        """Return one over the noise's scale after that amount was paid."""

    def amount(self, precision: Any, per_grain: float) -> Any:
        """Return what a precision costs."""

    def growth(self, ratio: float) -> float:
        """Return by what the cost grows while the square of the precision grows by `ratio`."""

    def two_sided(self, beta: float) -> float:
        """Return z with P[|noise| > z scales] at most beta."""

    def threshold(self, boundary: float, ratio: float, steps: int) -> float:
        """Return the largest signal from which a jump of so many steps of `ratio` is harmless; <= 0 for none."""


@dataclass(frozen=True, slots=True)
class GaussianLaw:
    """Independent Gaussian measurements, averaged."""

    name: str = "gaussian"
    first: int = 16
    variance: float = 1.0
    least_signal: float = 6.2

    def precision(self, amount: Any, per_grain: float) -> Any:
        """Return sqrt(information).

        >>> float(GAUSSIAN.precision(4, 0.25))
        1.0
        """
        return np.sqrt(amount * per_grain)

    def amount(self, precision: Any, per_grain: float) -> Any:
        """Return the grains of an information."""
        return precision**2 / per_grain

    def growth(self, ratio: float) -> float:
        """Return the growth of information: ratio itself."""
        return ratio

    def two_sided(self, beta: float) -> float:
        """Return z with P[|N(0,1)| > z] = beta, accurate for beta down to 1e-300.

        >>> round(GAUSSIAN.two_sided(0.05), 6)
        1.959964
        """
        return float(-ndtri(beta / 2))

    def threshold(self, boundary: float, ratio: float, steps: int) -> float:
        """Return the y with y w + 2 sqrt(w^2 - 1) = b, w^2 = ratio^steps.

        >>> round(GAUSSIAN.threshold(20.0, 1.02, 8), 2)
        17.71
        """
        growth = ratio ** (steps / 2)
        return float((boundary - CAUTION * math.sqrt(growth * growth - 1)) / growth)


@dataclass(frozen=True, slots=True)
class LaplaceLaw:
    """A chain of Laplace noise that gets finer, on a grid too fine to matter (`COARSEST`)."""

    name: str = "laplace"
    first: int = 1 << 20
    variance: float = 2.0
    least_signal: float = 21.4

    def precision(self, amount: Any, per_grain: float) -> Any:
        """Return epsilon over the sensitivity.

        >>> LAPLACE.precision(4, 0.25)
        1.0
        """
        return amount * per_grain

    def amount(self, precision: Any, per_grain: float) -> Any:
        """Return the farthings of a precision."""
        return precision / per_grain

    def growth(self, ratio: float) -> float:
        """Return the growth of epsilon: the root of the ratio.

        >>> LAPLACE.growth(1.21)
        1.1
        """
        return math.sqrt(ratio)

    def two_sided(self, beta: float) -> float:
        """Return c with P[|noise| > c] <= beta for two-sided geometric noise that decays by at most COARSEST a step.

        >>> round(LAPLACE.two_sided(0.05), 4)
        2.9962
        """
        return math.log((1 + COARSEST / 2) / beta)

    def threshold(self, boundary: float, ratio: float, steps: int) -> float:
        """Return a signal y = b ratio^(-k/2), k whole, from which the finer one is above b with chance PASSED at most.

        The shown value stays with probability 1/w^2, w^2 = ratio^steps, else Laplace noise is added to it (the truth
        has a flat prior): above b with probability (1 - 1/w^2) exp(-(b/w - y)) / 2.

        >>> y = LAPLACE.threshold(20.0, 1.02, 8)
        >>> round(y, 2), round(2 * math.log(20 / y) / math.log(1.02), 6)
        (17.07, 16.0)
        """
        if math.isinf(boundary):
            return boundary
        growth = ratio ** (steps / 2)
        raw = boundary / growth - max(0.0, math.log((1 - growth**-2) / (2 * PASSED)))
        if raw <= 0:
            return 0.0
        whole = math.ceil(2 * math.log(boundary / raw) / math.log(ratio) - 1e-9)
        return float(boundary * ratio ** (-whole / 2))


GAUSSIAN: Final = GaussianLaw()
LAPLACE: Final = LaplaceLaw()
LAWS: Final[dict[str, NoiseLaw]] = {law.name: law for law in (GAUSSIAN, LAPLACE)}
