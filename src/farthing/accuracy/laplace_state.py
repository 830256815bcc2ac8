"""What was shown of a question of several measures under a pure budget: public, and enough to go on from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from farthing.accuracy.joint_prices import Floats, Ints


STANDS: Final = -1
"""A group that looks gave up: it stands at a look that was fixed beforehand, where the next ask may judge it again."""


class ShownLanes(NamedTuple):
    """What a chain has shown last, lane by lane.

    Attributes:
        value: int64[lanes, groups], in steps.
        level: int64[lanes, groups], the farthings of epsilon that it has cost.
    """

    value: Ints
    level: Ints


@dataclass(frozen=True, slots=True)
class LaplaceState:
    """What was shown of a question so far: public, enough to go on from, or to answer again free of charge.

    Attributes:
        pilot, claimed: what the two chains have shown last.
        shape: int64[lanes, groups], the parts in which the lanes of a group are measured; 0 before its first claim.
        lower, upper: float64[outputs, groups], the intervals; infinite where nothing is known.
        rung: int64[groups], the rung that was shown last; -1 before any.
        made: int64[groups], the number of the promise that it was shown for; `STANDS` where looks gave the group up.
        promises: how many promises were made.
        beta: the failure probability of each interval; 0 before the first.
        promise: the targets, beta and cap of the last promise.
        looked: the failure probability of each look, where all of them were made by `laplace_looks`; else 0.
    """

    pilot: ShownLanes
    claimed: ShownLanes
    shape: Ints
    lower: Floats
    upper: Floats
    rung: Ints
    made: Ints
    promises: int = 0
    beta: float = 0.0
    promise: tuple[float, ...] = ()
    looked: float = 0.0

    @classmethod
    def nothing(cls, lanes: int, outputs: int, groups: int) -> LaplaceState:
        """Return the state before any look.

        >>> LaplaceState.nothing(3, 1, 2).paid.tolist()
        [0, 0]
        """

        def whole(rows: int) -> Ints:
            return np.zeros((rows, groups), np.int64)

        return cls(
            ShownLanes(whole(lanes), whole(lanes)),
            ShownLanes(whole(lanes), whole(lanes)),
            whole(lanes),
            np.full((outputs, groups), -np.inf),
            np.full((outputs, groups), np.inf),
            whole(1)[0] - 1,
            whole(1)[0],
        )

    @property
    def paid(self) -> Ints:
        """The farthings that a member of each group has paid, int64[groups]."""
        return np.asarray((self.pilot.level + self.claimed.level).sum(axis=0), np.int64)
