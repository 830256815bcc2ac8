"""The loop of a refinement: look, stop the groups that are done, look again at the others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from farthing.mechanisms.gaussian import Measured
from farthing.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Ints
    from farthing.accuracy.schedule import Schedule


BLOCK: Final = 1 << 17
"""How many groups are refined at once."""


class Measurements(Protocol):
    """What a refinement looks through: a mechanism and the truth inside it."""

    def measure(self, state: Measured, grains: Ints, groups: Ints | None = None) -> Measured:
        """Return the state of some groups after each has paid so many grains more."""

    def unit_for(self, grains: int) -> int:
        """Return the exponent of a unit, in answer units, fine enough for all that is measured up to so many grains."""


def refine(
    mechanism: Measurements,
    schedule: Schedule,
    state: Measured,
    progress: Callable[[Progress], None] | None = None,
    *,
    settled: NDArray[np.bool_] | None = None,
) -> Measured:
    """Measure each group until the schedule says stop; return the public state after the last look.

    Groups that are `settled` by what was released before are left as they are.

    Groups do not see each other, so very many are measured block by block, and the memory is that of one block.

    Every decision (which groups go on, how far each jumps) is made from released values alone, so the whole run is one
    adaptive sequence of measurements and costs the information it ends with.
    """
    unit = min(state.unit_log2, mechanism.unit_for(int(schedule.looks[-1])))
    groups, look, done, widest, last = len(state.mean), 0, 0, 0.0, 0.0
    mean, information = np.zeros(groups, np.int64), np.zeros(groups, np.int64)  # no memory that was used before

    def tell(told: Progress) -> None:
        """Tell of a look at a block as one of all groups: those of later blocks are not done."""
        nonlocal look, last
        look, last = look + 1, max(widest, told.half_width)
        if progress is not None:
            progress(replace(told, look=look, groups=groups, done=done + told.done, half_width=last))

    for first in range(0, groups, BLOCK):
        at = slice(first, first + BLOCK)
        block = Measured(state.mean[at], state.information[at], state.unit_log2).in_unit(unit)
        kept = None if settled is None else settled[at]
        after = _refined(mechanism, schedule, block, None if progress is None else tell, settled=kept, first=first)
        mean[at], information[at] = after.mean, after.information
        done, widest = done + len(after.mean), last
    return Measured(mean, information, unit)


def _refined(
    mechanism: Measurements,
    schedule: Schedule,
    state: Measured,
    progress: Callable[[Progress], None] | None,
    *,
    settled: NDArray[np.bool_] | None,
    first: int,
) -> Measured:
    """Measure the groups of one block, from its first on, until the schedule says stop."""
    mean, information = state.mean.copy(), state.information.copy()
    done = schedule.stopped(information, state.values)
    active = np.flatnonzero(~done if settled is None else ~(done | settled))
    part, values = state.take(active), state.values[active]
    behind = schedule.behind(part.information)
    reached = schedule.behind(schedule.looks)
    look = 0
    while len(active):
        ahead = schedule.leap(behind, part.information, values)
        part = mechanism.measure(part, schedule.looks[ahead] - part.information, first + active)
        mean[active], information[active] = part.mean, part.information
        values = part.values
        going = np.flatnonzero(
            ~(schedule.stopped(part.information, values) | schedule.futile(part.information, values))
        )
        active, part, values, behind = active[going], part.take(going), values[going], reached[ahead[going]]
        look += 1
        if progress is not None:
            progress(seen(look, len(mean) - len(active), schedule, Measured(mean, information, state.unit_log2)))
    return Measured(mean, information, state.unit_log2)


def seen(look: int, done: int, schedule: Schedule, state: Measured) -> Progress:
    """Return where a refinement stands after a look."""
    half = schedule.critical / schedule.precision(state.information)
    target = np.maximum(schedule.relative * np.abs(state.values), schedule.floor)
    furthest = int(np.argmax(half / target))
    return Progress(look, len(half), done, float(half.max()), float(half[furthest]), float(target[furthest]))
