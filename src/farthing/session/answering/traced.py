"""A mechanism that is watched: its looks are kept for the answer, and told to whoever waits for it.

A watcher sees what the mechanism releases and nothing else, so it costs nothing and decides nothing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from farthing.session.core.shield import hand_over
from farthing.trace import MOST_GROUPS, MOST_LOOKS, TraceLook

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.jumps import Floats, Ints
    from farthing.accuracy.schedule import Schedule
    from farthing.mechanisms.gaussian import Measured
    from farthing.privacy.loss import Booked
    from farthing.progress import Progress
    from farthing.session.answering.refinement_loop import Measurements


@dataclass(slots=True)
class Watched:
    """Measurements, watched.

    Attributes:
        mechanism: what measures.
        schedule: the looks, and the constant by which intervals are told.
        name: the answer column.
        before: what was released before this ask.
        price: the price of the run, from the informations int64[groups] that it has come to.
        paid: float64[n], what members of groups pay, from the information that each gained.
        information: int64[groups], what the groups have come to; kept only where somebody is told.
        looks: what was released, where it is kept.
    """

    mechanism: Measurements
    schedule: Schedule
    name: str
    before: Measured
    price: Callable[[Ints], Booked]
    paid: Callable[[Ints], Floats]
    information: Ints | None = field(init=False, default=None)
    looks: deque[TraceLook] = field(init=False)
    _taken: int = 0

    def __post_init__(self) -> None:
        self.looks = deque(maxlen=MOST_LOOKS)
        known = np.flatnonzero(self.before.information[: MOST_GROUPS + 1])
        if len(known) and len(self.before.information) <= MOST_GROUPS:
            self._keep(self.before.take(known), known)

    def measure(self, state: Measured, grains: Ints, groups: Ints | None = None) -> Measured:
        """Return what the mechanism releases, and keep it."""
        seen = self.mechanism.measure(state, grains, groups)
        at = np.arange(len(self.before.information)) if groups is None else groups
        if self.information is not None:
            self.information[at] = seen.information
        self._taken += 1
        self._keep(seen, at)
        return seen

    def unit_for(self, grains: int) -> int:
        """Return the exponent of the mechanism's unit."""
        return self.mechanism.unit_for(grains)

    def telling(self, progress: Callable[[Progress], None] | None) -> Callable[[Progress], None] | None:
        """Return a callback that adds what was paid so far; None for None."""
        if progress is None:
            return None
        self.information = self.before.information.copy()

        def tell(seen: Progress) -> None:
            """Tell what was paid so far, in whole farthings."""
            assert self.information is not None  # noqa: S101  # kept from here on
            paid = self.price(self.information)
            hand_over(progress, replace(seen, paid=type(paid).of_farthings(paid.farthings)))

        return tell

    def _keep(self, seen: Measured, groups: Ints) -> None:
        """Keep one look, as value and interval, unless there are too many groups."""
        if len(self.before.information) > MOST_GROUPS:
            return
        half = self.schedule.critical / self.schedule.precision(seen.information)
        value, gained = seen.values, seen.information - self.before.information[groups]
        self.looks.append(
            TraceLook(self.name, self._taken, groups.copy(), value, value - half, value + half, self.paid(gained))
        )
