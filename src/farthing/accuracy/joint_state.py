"""What was released about a question of several measures so far: public, and enough to go on from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from farthing.accuracy.joint_pivot import Pivot
    from farthing.accuracy.joint_prices import Flags, Floats, Ints


@dataclass(frozen=True, slots=True)
class JointState:
    """What was released about a question so far: public, enough to go on from, or to answer again free of charge.

    Attributes:
        means: float64[lanes, groups], precision-weighted means of all measurements, in value units.
        information: int64[lanes, groups], the grains that each lane has been measured with.
        value, lower, upper: float64[outputs, groups], the answers and their intervals; infinite where nothing is known.
        met: bool[outputs, groups], whether value and interval are within the target.
        stages: the claims made so far.
        beta: the failure probability of each interval; 0 before the first.
        since: the claims made before the present promise, of which each later one has a failure probability of its own.
        promise: the targets, beta and cap that it was made for; empty where it is not known.
        pivot: what the first claim of the present promise leaves to a sharper one; None where nothing was claimed.
        critical: the largest critical value of the looks that `pivot` comes from; 0 where it comes from a claim.
    """

    means: Floats
    information: Ints
    value: Floats
    lower: Floats
    upper: Floats
    met: Flags
    stages: int = 0
    beta: float = 0.0
    since: int = 0
    promise: tuple[float, ...] = ()
    pivot: Pivot | None = None
    critical: float = 0.0

    @classmethod
    def nothing(cls, lanes: int, outputs: int, groups: int) -> JointState:
        """Return the state before any measurement.

        >>> JointState.nothing(3, 1, 2).paid.tolist()
        [0, 0]
        """
        shape = (outputs, groups)
        return cls(
            means=np.zeros((lanes, groups)),
            information=np.zeros((lanes, groups), np.int64),
            value=np.zeros(shape),
            lower=np.full(shape, -np.inf),
            upper=np.full(shape, np.inf),
            met=np.zeros(shape, np.bool_),
        )

    @property
    def untouched(self) -> bool:
        """Whether nothing was measured: every group is like every other."""
        return not self.stages and self.pivot is None and not self.information.any()

    @property
    def paid(self) -> Ints:
        """The grains that a member of each group has paid, int64[groups]."""
        return np.asarray(self.information.sum(axis=0), dtype=np.int64)

    def answers(self, promise: tuple[float, ...]) -> bool:
        """Return whether it was made for this very promise: asked again, the question is answered as it was."""
        return self.stages > 0 and self.promise == promise
