"""What a run of a noisy bisection knows of its plan: the same for all groups of a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from farthing.normal import ndtri

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_ranks import QuantileGoal

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]


class BisectionPlan(Protocol):
    """What a run knows of its plan: the same for all groups of a question."""

    @property
    def asked(self) -> QuantileGoal:
        """Which quantile is asked for, and how near in rank."""

    @property
    def cap_grains(self) -> int:
        """The most that a group may pay."""

    @property
    def relative(self) -> float:
        """The error allowed, in parts of the value; 0 for none."""

    @property
    def absolute(self) -> float:
        """The error allowed, in units of the value; 0 for none."""

    @property
    def beta(self) -> float:
        """The chance of a miss that is allowed, a group."""

    @property
    def spend(self) -> bool:
        """Whether groups that are too small for their target go on."""

    @property
    def scouts(self) -> bool:
        """Whether a search chooses the thresholds."""

    @property
    def z_last(self) -> float:
        """The critical value of the first threshold's last look."""

    @property
    def per_grain(self) -> float:
        """Information on a rank that one grain buys."""

    @property
    def count_per_grain(self) -> float:
        """Information on a count that one grain buys."""

    @property
    def count_share(self) -> float:
        """The grains of a count beside a look by rank, over those of the rank."""

    @property
    def beside_count(self) -> float:
        """How many times the grains a look by rank takes, with its count."""

    @property
    def count_width(self) -> float:
        """How far a count may be off, as a share of it."""

    def z(self, look: Int64) -> Float64:
        """Return the critical values of looks at a threshold."""

    def z_count(self, attempt: int) -> float:
        """Return the critical value of a count."""

    def last_grains(self, slack: Float64) -> Int64:
        """Return the grains that settle a threshold."""


def spent(beta: float, look: Int64 | int) -> Float64 | float:
    """Return the share of beta for a look counted from 0: 1/2, 1/6, 1/12, ... add up to 1."""
    return beta / ((look + 1) * (look + 2))


def one_sided(chance: Float64 | float) -> Float64:
    """Return the one-sided critical value that Gaussian noise passes with this chance."""
    return np.asarray(-ndtri(chance))
