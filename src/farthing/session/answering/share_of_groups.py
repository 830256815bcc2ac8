"""Refining until enough of the groups are within their target, and stopping the others with them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from farthing.mechanisms.gaussian import Measured
from farthing.session.answering.refinement_loop import seen

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.schedule import Schedule
    from farthing.accuracy.stored_promise import StoredPromise
    from farthing.progress import Progress
    from farthing.session.answering.refinement_loop import Measurements


def refine_share(
    mechanism: Measurements,
    schedule: Schedule,
    share: float,
    state: Measured,
    progress: Callable[[Progress], None] | None = None,
) -> Measured:
    """Measure groups side by side, from meeting to meeting, until that share of them is within the target.

    Up to a meeting each group goes its own way, and every group that goes on looks there. So the others that stop with
    a meeting hold the same information, and no more than the most expensive group that is done.

    Guarantee: read as `accuracy.report.reported` reads groups that were given up, the groups that stop with the others
        are covered with probability at least 1 - beta, and so are those that stopped by themselves.
    Proof: docs/proofs/session.answering.share_of_groups.md.
    Assumes: a schedule with meetings; noise of different groups is independent.
    Rounds: the share up to whole groups.
    """
    state = state.in_unit(min(state.unit_log2, mechanism.unit_for(int(schedule.looks[-1]))))
    mean, information, unit = state.mean.copy(), state.information.copy(), state.unit_log2
    groups, look = len(mean), 0
    enough = math.ceil(share * groups * (1 - 1e-12))
    going = ~schedule.stopped(information, state.values)
    given_up = np.zeros(groups, np.bool_)
    for meeting in schedule.meetings.tolist():
        while len(active := np.flatnonzero(going & (information < meeting))):
            part = Measured(mean[active], information[active], unit)
            bought = schedule.next_look(part.information, part.values) - part.information
            part = mechanism.measure(part, bought, active)
            mean[active], information[active] = part.mean, part.information
            given_up[active] = schedule.futile(part.information, part.values)
            going[active] = ~(schedule.stopped(part.information, part.values) | given_up[active])
            look += 1
            if progress is not None:
                progress(seen(look, groups - int(going.sum()), schedule, Measured(mean, information, unit)))
        if groups - int((going | given_up).sum()) >= enough:
            break
    return Measured(mean, information, unit)


def reached(kept: StoredPromise, measured: Measured, per_grain: float) -> StoredPromise:
    """Return a promise with the share of these groups that stopped by themselves, which may be above what was asked."""
    if kept.share >= 1:
        return kept
    done = kept.schedule(per_grain).stopped(measured.information, measured.values)
    return replace(kept, share=float(done.mean()))
