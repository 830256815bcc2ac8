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

    @property
    def closing(self) -> str:
        """How near a refinement has come, in words: the group furthest from its target, and what was paid so far.

        >>> from farthing import Gdp
        >>> Progress(look=3, groups=8, done=2, half_width=412.3, furthest=412.3, target=50.0, paid=Gdp(0.01)).closing
        ': +/-412 on the way to +/-50, paid mu 0.01'
        """
        if self.furthest is None or self.target is None:
            return ""
        paid = "" if self.paid is None else f", paid {self.paid.parameter} {self.paid.value:.3g}"
        return f": +/-{_short(self.furthest)} on the way to +/-{_short(self.target)}{paid}"


Watcher: TypeAlias = "Callable[[Progress], None]"
"""Who waits for a refinement: called after every look, with released numbers only."""


def _short(width: float) -> str:
    """Return a half-width with three figures."""
    return f"{width:,.0f}" if width >= 100 else f"{width:.3g}"
