"""Plans of one count or sum under a pure budget: a chain of two-sided geometric noise that gets finer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy import cell_sums
from farthing.accuracy.jumps import JumpMap
from farthing.accuracy.noise_laws import COARSEST, LAPLACE
from farthing.accuracy.schedule import Schedule, StopRule
from farthing.errors import InvalidTarget
from farthing.mechanisms import geometric
from farthing.mechanisms.gaussian import highest_level
from farthing.mechanisms.laplace import MOST_FARTHINGS
from farthing.planning.gaussian_count import AFTER_ONE_LOOK, BEYOND_ALL, meets_of, others_stop
from farthing.planning.stored_measurements import looks_for
from farthing.privacy.loss import Booked, Pure
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.stored_promise import HeldIntervals, OwnPromises, StoredPromise
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.planning.stored_measurements import HeldMeasurements
    from farthing.query.measures import Measure
    from farthing.query.query import Query

LARGEST_SCALE: Final = 1 << 52
"""The largest scale of noise, in steps, that a plan asks for: a draw beyond 2^61 then has a chance below 2^-700."""

_MOST_STEPS: Final = 1 << 31  # a sensitivity in more of them is told in coarser ones
_APART: Final = 1.25
"""Growth of epsilon from one look to the next where all looks hold at once: more looks need a larger constant."""

_ROUNDS: Final = 4

_TRACE: Final = 2.0**-30  # a width that is exactly zero would be no promise to sharpen or to divide by


@dataclass(frozen=True, slots=True)
class Grid:
    """The steps that noise is drawn in.

    A chain that groups leave by what it showed is calibrated for Laplace noise: its steps are so fine that integer
    noise is Laplace noise for all purposes, whatever the question costs. Where every group takes the same look the
    integer law itself serves, on the steps of the answer. Where one unit can move an answer by more than 2^31 steps,
    answers are rounded to coarser ones first: numbers that are D coarse steps apart, D whole, are so when rounded.

    Attributes:
        max_groups: the most groups that one unit can move.
        sensitivity: by how many steps it can move each.
        step_log2: a step is 2^step_log2 in answer units.
        many: how many groups are added up for each number that is told, all measured at one level.
    """

    max_groups: int
    sensitivity: int
    step_log2: int
    many: int = 1

    @classmethod
    def of(cls, query: Query, total: Booked, *, flat: bool) -> Grid:
        """Return the grid of a new chain under a budget: the answer's if `flat`, else one of decay COARSEST a step."""
        return cls.of_measure(query, query.measures[0], total, flat=flat)

    @classmethod
    def of_measure(cls, query: Query, measure: Measure, total: Booked, *, flat: bool = False) -> Grid:
        """Return the grid of one measure of a question."""
        most = measure.sensitivity(query.max_rows)
        wanted = 0 if flat else math.ceil(math.log2(total.value / COARSEST / most))
        coarser = max(0, (most - 1).bit_length() - (_MOST_STEPS.bit_length() - 1))
        return cls.measured_at(query, measure, measure.step_log2 - (max(0, wanted) if wanted > 0 else -coarser))

    @classmethod
    def at(cls, query: Query, step_log2: int) -> Grid:
        """Return the grid on which a chain began."""
        return cls.measured_at(query, query.measures[0], step_log2)

    @classmethod
    def measured_at(cls, query: Query, measure: Measure, step_log2: int) -> Grid:
        """Return the grid on which a chain of one measure of a question began."""
        finer, most = measure.step_log2 - step_log2, measure.sensitivity(query.max_rows)
        steps = most << finer if finer >= 0 else -(-most >> -finer)
        return cls(query.max_groups, steps, step_log2)

    @property
    def step(self) -> float:
        """A step in answer units."""
        return math.ldexp(1.0, self.step_log2)

    @property
    def per_farthing(self) -> float:
        """One over the noise's scale, in answer units, at one farthing of epsilon."""
        return float(FARTHING) / (self.sensitivity * self.step)

    @property
    def least(self) -> int:
        """The least farthings of a group that keep the noise's scale within `LARGEST_SCALE` steps."""
        return max(1, math.ceil(self.sensitivity / FARTHING / LARGEST_SCALE))

    @property
    def finest(self) -> int:
        """The most farthings of a group at which the noise is Laplace noise for all purposes."""
        return min(MOST_FARTHINGS, math.floor(COARSEST * self.sensitivity / FARTHING))

    def half_width(self, farthings: int, beta: float) -> float:
        """Return the half-width of one look, in answer units, by the integer law itself; where it is sure, a trace."""
        if self.many > 1:
            rate = geometric.rate_of(min(farthings, MOST_FARTHINGS), self.sensitivity)
            whole = math.floor(cell_sums.geometric(self.many, rate, beta) * (1 + 1e-9))  # noise is whole steps
            return max(whole, _TRACE) * self.step
        return max(geometric.half_width(farthings, self.sensitivity, beta), _TRACE) * self.step

    def price_of(self, absolute: float, beta: float) -> int:
        """Return the least farthings a group whose noise stays within a distance in answer units.

        Of sums of groups it is at most one more than `MOST_FARTHINGS`, which stands for none.
        """
        if self.many == 1:
            return geometric.price_of(absolute / self.step, self.sensitivity, beta)
        low, high = 0, MOST_FARTHINGS + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.half_width(middle, beta) <= absolute else (middle, high)
        return high


@dataclass(frozen=True, slots=True)
class LaplaceCountPricing:
    """A chain of looks at one measure, each group until it is within its target; the last look alone is paid.

    Attributes:
        asked: the aggregate in words.
        schedule: the looks, in farthings of epsilon a group.
        grid: the steps of the noise.
        beta: the failure probability a group that the schedule is calibrated for.
        top: the largest farthings of the groups already, as many as one unit can touch.
        share: the part of the groups that are refined until they are within the target; the rest stops with them.
        claims: the intervals that the groups had before, where some of them may serve.
        settled: bool[groups], the groups that are answered by these; None for none.
    """

    asked: str
    schedule: Schedule
    grid: Grid
    beta: float
    top: tuple[int, ...]
    share: float = 1.0
    claims: OwnPromises | None = None
    settled: NDArray[np.bool_] | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        if len(self.schedule.looks) == 1:
            return (f"{self.asked} with two-sided geometric noise, once",)
        looks = "in looks that get finer, each group until it is within the target; the last look alone is paid"
        told = f"{self.asked} with two-sided geometric noise, {looks}"
        return (told,) if self.share >= 1 else (told, others_stop(self.share))

    @property
    def gives_up(self) -> bool:
        """Whether groups for which the target is hopeless are given up early."""
        return self.schedule.futility is not None

    def price(self, size: float) -> Booked:
        """Return about what the members of a group with this answer would pay."""
        farthings = int(self.schedule.typical(np.array([size]))[0])
        return Pure.of_farthings(min(farthings, int(self.schedule.looks[-1])))

    def width(self, size: float) -> float:
        """Return the half-width that such a group ends with."""
        return float(self.schedule.half_width(np.array([size]))[0])

    @property
    def stands(self) -> Booked:
        """What the groups have cost so far."""
        return Pure.of_farthings(sum(self.top))

    def affordable(self, remaining: Booked) -> float:
        """Return the half-width that this loss would reach for every group; infinite if none."""
        level = min(highest_level(remaining.farthings, self.top), MOST_FARTHINGS)
        return self.grid.half_width(level, self.beta) if level else math.inf


def plan_laplace_count(
    frame: Frame, standing: HeldMeasurements | None = None, grid: Grid | None = None, many: int = 1
) -> Plan[LaplaceCountPricing]:
    """Return the plan of a chain of looks; without a cap it may use all that is left.

    Args:
        frame: what is asked.
        standing: what was shown before, or None.
        grid: the steps of what was shown before, or None.
        many: how many groups are added up for the widest number that is told.
    """
    target = frame.target
    if grid is None:
        flat = target is None or target.relative == 0
        grid = Grid.of(frame.query, frame.budget.total, flat=flat)
    grid = replace(grid, many=many)
    top = standing.top if standing is not None else (0,) * grid.max_groups
    cap, limit = _limit(frame, top, grid)
    relative = 0.0 if target is None else target.relative
    widest = grid.half_width(grid.least, frame.beta)
    absolute = grid.half_width(limit, frame.beta) if target is None else min(target.absolute, widest)
    kept = None if standing is None else _at(standing.kept, grid, frame.beta)

    def sharper(held: HeldIntervals | None) -> Schedule:
        """Return the looks of new measurements, from what is held."""
        known = None if held is None else kept
        return _sharper(frame, grid, relative, absolute, limit=limit, held=held, kept=known)

    looks = looks_for(frame, grid.per_farthing, (relative, absolute), limit, (kept, standing), sharper)
    schedule = looks.schedule
    increase, fresh = looks.prices(standing, grid.max_groups, goes_on=False)
    asked = math.inf if target is None else target.absolute
    needed = grid.price_of(min(asked, widest), frame.beta) if 0 < asked < math.inf else None
    reachable = looks.reaches(asked)
    return frame.plan(
        cap=cap,
        target_price=None if needed is None else Pure.of_farthings(_needed(schedule, asked, needed) * grid.max_groups),
        worst_price=Pure.of_farthings(increase),
        fresh_price=Pure.of_farthings(fresh),
        half_width=looks.half_width,
        reachable=reachable,
        hopeless=not reachable and not looks.free and not relative,
        free=looks.free,
        pricing=LaplaceCountPricing(
            str(frame.query.aggregate), schedule, grid, looks.beta, top, frame.share, looks.claims, looks.settled
        ),
    )


def _needed(schedule: Schedule, absolute: float, flat: int) -> int:
    """Return the farthings a group that the target can cost at most, from those of a single look."""
    if schedule.relative == 0:
        return flat
    needed = math.ceil(Fraction(schedule.critical) / Fraction(absolute) / Fraction(schedule.per_grain))
    return min(max(flat, needed), BEYOND_ALL)


def _limit(frame: Frame, top: tuple[int, ...], grid: Grid) -> tuple[Booked, int]:
    """Return the most that the question may cost in all, and the level that each group may be raised to."""
    if frame.cap is None:
        cap: Booked = Pure.of_farthings(sum(top)) + frame.remaining
        level = highest_level(frame.remaining.farthings, top)
        return cap, max(grid.least, min(level, MOST_FARTHINGS))
    level = frame.cap.farthings // len(top)
    if frame.target is None and level > MOST_FARTHINGS:
        raise InvalidTarget(
            "the loss is more than one question can hold",
            rule=f"at most {Pure.of_farthings(MOST_FARTHINGS * len(top))!r} for this question",
            got=repr(frame.cap),
            next_step="name less: at that loss noise is far below one anyway",
        )
    if level < grid.least:
        raise InvalidTarget(
            "the price allowed is too small for what one unit may add",
            rule=f"at least {Pure.of_farthings(grid.least * len(top))!r} for this question",
            got=repr(frame.cap),
            next_step="allow more, or bound max_groups and max_rows",
        )
    return frame.cap, min(level, MOST_FARTHINGS)


def _at(kept: StoredPromise, grid: Grid, beta: float) -> StoredPromise:
    """Return the promise of what stands, at another failure probability where that is known.

    Where every group was shown at the same level, whatever came out, its noise is plain and serves at any confidence.
    """
    if kept.relative > 0:
        return kept
    floor = grid.half_width(kept.grains, beta)
    return replace(kept, law=LAPLACE.name, beta=beta, floor=floor, critical=floor * grid.per_farthing * kept.grains)


def _sharper(
    frame: Frame,
    grid: Grid,
    relative: float,
    absolute: float,
    *,
    limit: int,
    held: HeldIntervals | None,
    kept: StoredPromise | None,
) -> Schedule:
    """Return the looks of new measurements: those of the target that is asked now, from what is held.

    Where an earlier rule was looser in the relative target, the new one is made to go on wherever that one did. Steps
    are too coarse for the rules of Laplace noise where a question was first asked without a relative target: there
    the looks are few and far apart, and all of them hold at once.
    """
    beta, limit = frame.beta, limit if kept is None else max(limit, kept.grains)
    if relative == 0:
        least = limit if frame.target is None else 0 if kept is None else kept.grains
        return _flat(grid, absolute, beta, limit=limit, least=least)
    signed = getattr(frame.query.aggregate, "lower", 0.0) < 0
    if held is not None and kept is not None and limit > grid.finest:
        return union(grid, (relative, absolute), beta, limit=limit, first=int(held.information.min()), signed=signed)
    waits = kept is not None and kept.relative == 0
    return Schedule.plan(
        relative, absolute, beta * (AFTER_ONE_LOOK if waits else 1.0), per_grain=grid.per_farthing,
        cap_grains=min(limit, grid.finest), after=None if kept is None else StopRule(kept.relative, kept.critical, 0),
        signed=signed, meets=meets_of(frame, kept), law=LAPLACE,
    )  # fmt: skip


def union(  # a target, and where it begins and ends
    grid: Grid, target: tuple[float, float], beta: float, *, limit: int, first: int, signed: bool
) -> Schedule:
    """Return looks on whole steps, each `_APART` times as fine as the one before: all their intervals hold at once.

    Guarantee: P[|value - truth| > max(r |truth|, a*)] <= beta for every truth, whenever a group stops.
    Proof: docs/proofs/accuracy.laplace_stop_rule.md, "Whole steps": the union bound.
    Assumes: two-sided geometric noise; looks that were chosen before anything of them was seen.
    Rounds: up.
    """
    relative, absolute = target
    decay = limit * float(FARTHING) / grid.sensitivity
    last, critical, many = limit, 0.0, 1
    for _ in range(_ROUNDS):  # fewer looks need less, and a smaller constant fewer looks
        many = 1 + max(0, math.ceil(math.log(last / first) / math.log(_APART)))
        critical = math.log(many / beta) + decay / 2
        if absolute > 0:
            last = max(first, min(limit, math.ceil(critical / absolute / grid.per_farthing)))
    looks = np.rint(last / _APART ** np.arange(many - 1, -1, -1.0)).astype(np.int64)
    looks[-1] = last
    floor = critical / (last * grid.per_farthing)
    return Schedule(
        relative, absolute, critical, grid.per_farthing, looks, JumpMap(critical / relative, _APART**2, law=LAPLACE),
        None, floor > absolute, signed, law=LAPLACE,
    )  # fmt: skip


def _flat(grid: Grid, absolute: float, beta: float, *, limit: int, least: int) -> Schedule:
    """Return the one look of an absolute target, priced by the integer law itself."""
    level = max(min(grid.price_of(absolute, beta), limit), least)
    one = Schedule.plan(0.0, absolute, beta, per_grain=grid.per_farthing, cap_grains=level, law=LAPLACE)
    floor = grid.half_width(level, beta)
    critical = floor * grid.per_farthing * level
    return replace(one, critical=critical, looks=np.array([level], np.int64), capped=floor > absolute)
