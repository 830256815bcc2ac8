"""The loop of a refinement: look, stop the groups that are done, look again at the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.schedule import Schedule
    from farthing.mechanisms.gaussian import GaussianRefinement, Measured


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a refinement stands; made from released numbers only.

    Attributes:
        look: how many looks were taken, 1 at the first.
        groups: how many groups the question has.
        done: how many of them need no further look.
        half_width: the widest interval half-width among the groups, in answer units.
    """

    look: int
    groups: int
    done: int
    half_width: float


def refine(
    mechanism: GaussianRefinement,
    schedule: Schedule,
    state: Measured,
    progress: Callable[[Progress], None] | None = None,
) -> Measured:
    """Measure each group until the schedule says stop; return the public state after the last look.

    Every decision (which groups go on, how far each jumps) is made from released values alone, so the whole run is one
    adaptive sequence of measurements and costs the information it ends with.
    """
    groups = len(state.information)
    active = np.flatnonzero(~schedule.stopped(state.information, state.values))
    look = 0
    while len(active):
        information = state.information[active]
        target = schedule.next_look(information, state.values[active])
        state = mechanism.measure(state, target - information, active)
        information, values = state.information[active], state.values[active]
        active = active[~(schedule.stopped(information, values) | schedule.futile(information, values))]
        look += 1
        if progress is not None:
            width = schedule.critical / np.sqrt(float(state.information.min()) * schedule.per_grain)
            progress(Progress(look, groups, groups - len(active), float(width)))
    return state
