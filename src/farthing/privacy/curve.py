"""The curve of (epsilon, delta) that a privacy loss promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import ArrayLike, NDArray

    from farthing.privacy.numbers import Number

    Floats: TypeAlias = NDArray[np.float64]


class Promised(Protocol):
    """Whatever promises a delta at each epsilon."""

    def delta(self, epsilon: Number) -> float:
        """Return the least known delta at one epsilon, rounded up."""

    def epsilon(self, delta: Number) -> float:
        """Return the least known epsilon at one delta, rounded up."""

    def deltas(self, epsilons: Floats) -> Floats:
        """Return delta at each epsilon, rounded up."""


@dataclass(frozen=True, slots=True)
class Profile:
    """All the (epsilon, delta) that a loss promises, as one falling curve.

    Attributes:
        loss: the loss.

    Guarantee: every point of the curve is a true (epsilon, delta) statement.
    Proof: the loss's own conversion; docs/proofs/privacy.convert.md.
    Assumes: the mechanism has the loss.
    Rounds: up, in both coordinates.

    >>> from farthing import Gdp
    >>> Gdp(1).profile().deltas([0.0, 1.0]).round(4)
    array([0.3829, 0.1269])
    """

    loss: Promised

    def delta(self, epsilon: Number) -> float:
        """Return delta at one epsilon, rounded up."""
        return self.loss.delta(epsilon)

    def epsilon(self, delta: Number) -> float:
        """Return epsilon at one delta, rounded up."""
        return self.loss.epsilon(delta)

    def deltas(self, epsilons: ArrayLike) -> Floats:
        """Return delta at each epsilon, rounded up; float64[...]."""
        return self.loss.deltas(np.asarray(epsilons, dtype=np.float64))
