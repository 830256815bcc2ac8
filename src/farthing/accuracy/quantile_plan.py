"""What a run of a noisy search knows of its plan: the same for all groups of a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from farthing.accuracy.quantile_ranks import QuantileGoal


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
    def interval_share(self) -> float:
        """The part of beta that the interval may use up."""

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
