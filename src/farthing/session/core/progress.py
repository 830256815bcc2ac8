"""Where a refinement stands, as it is told to whoever waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.privacy.loss import Booked


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a refinement stands; made from released numbers only.

    Attributes:
        look: how many looks were taken, 1 at the first.
        groups: how many groups the question has.
        done: how many of them need no further look.
        half_width: the widest interval half-width among the groups, in answer units.
        furthest: the half-width of the group that is furthest from its target; None where that is not known on the way.
        target: the half-width at which that group is done; likewise.
        paid: the price of this ask so far; None where it is one release, or not known before the end.
    """

    look: int
    groups: int
    done: int
    half_width: float
    furthest: float | None = None
    target: float | None = None
    paid: Booked | None = None


Watcher: TypeAlias = "Callable[[Progress], None]"
"""Who waits for a refinement: called after every look, with released numbers only."""
