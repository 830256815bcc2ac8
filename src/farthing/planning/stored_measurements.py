"""What stored measurements do for a plan: which of their intervals serve, and the looks that are left to take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.mechanisms.gaussian import worst_cost

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.schedule import Schedule
    from farthing.accuracy.stored_promise import HeldIntervals, OwnPromises, StoredPromise
    from farthing.planning.frame import Frame


@dataclass(frozen=True, slots=True)
class HeldMeasurements:
    """What a plan needs to know of the measurements that a question has already.

    Attributes:
        held: the intervals of the groups, and the promise they keep.
        top: the largest informations of the groups, as many as one unit can touch, in grains.
    """

    held: HeldIntervals
    top: tuple[int, ...]

    @property
    def kept(self) -> StoredPromise:
        """The latest rule."""
        return self.held.kept

    def cost_at_end(self, settled: NDArray[np.bool_] | None, most: int) -> int:
        """Return the sum of the largest informations, of as many groups as one unit can touch, at the end of all looks.

        Groups that are `settled` stay where they are; None for none.
        """
        return worst_cost(self._at_end(settled, most), len(self.top))

    def new_until_end(self, settled: NDArray[np.bool_] | None, most: int) -> int:
        """Return the same of the measurements that are still to be made alone, as if nothing stood before them."""
        return max(1, worst_cost(self._at_end(settled, most) - self.held.information, len(self.top)))

    def _at_end(self, settled: NDArray[np.bool_] | None, most: int) -> NDArray[np.int64]:
        """Return the informations of all groups at the end of all looks."""
        raised = np.maximum(self.held.information, most)
        return raised if settled is None else np.where(settled, self.held.information, raised)


@dataclass(frozen=True, slots=True)
class Stands:
    """What released intervals do for a target.

    Attributes:
        claims: the intervals.
        settled: bool[groups], the groups that are answered by them; None where the latest rule answers all.
        free: whether nothing has to be measured.
        all_met: whether every interval is as narrow as was asked.
        widest: the largest half-width.
    """

    claims: OwnPromises
    settled: NDArray[np.bool_] | None
    free: bool
    all_met: bool
    widest: float


@dataclass(frozen=True, slots=True)
class PlannedLooks:
    """The looks that a target needs, and what stands of before.

    Attributes:
        schedule: the looks.
        beta: the failure probability a group that they are made for.
        stands: what released intervals do for the target; None where nothing was released.
    """

    schedule: Schedule
    beta: float
    stands: Stands | None

    @property
    def free(self) -> bool:
        """Whether nothing has to be measured."""
        return self.stands is not None and self.stands.free

    @property
    def settled(self) -> NDArray[np.bool_] | None:
        """The groups that are answered by what was released: bool[groups], or None."""
        return None if self.stands is None else self.stands.settled

    @property
    def claims(self) -> OwnPromises | None:
        """The intervals that the groups had before, where some of them may serve."""
        return None if self.stands is None else self.stands.claims

    @property
    def half_width(self) -> float:
        """The largest half-width that a group ends with."""
        return self.stands.widest if self.stands is not None and self.stands.free else self.schedule.floor

    def reaches(self, absolute: float) -> bool:
        """Return whether every group comes within an absolute target, infinite for none."""
        met = self.stands is not None and self.stands.all_met
        return self.schedule.floor <= absolute * (1 + 1e-9) or met

    def prices(self, standing: HeldMeasurements | None, max_groups: int, *, goes_on: bool) -> tuple[int, int]:
        """Return what all looks cost at most, as an increase over what is held, and on their own.

        Args:
            standing: what is held, or None.
            max_groups: the most groups that one unit can move.
            goes_on: whether new measurements go on from what is held then, too; else they begin from nothing.
        """
        if self.free:
            return 0, 0
        most = int(self.schedule.looks[-1])
        whole = most * max_groups
        if standing is None:
            return whole, whole
        increase = standing.cost_at_end(self.settled, most) - sum(standing.top)
        return increase, standing.new_until_end(self.settled, most) if goes_on else whole


def looks_for(  # noqa: PLR0917  # a question, its unit of price, what is asked, what stands, and what else to do
    frame: Frame,
    per_grain: float,
    target: tuple[float, float],
    limit: int,
    stored: tuple[StoredPromise | None, HeldMeasurements | None],
    sharper: Callable[[HeldIntervals | None], Schedule],
) -> PlannedLooks:
    """Return the looks that a target needs: none where what stands serves, else those of new measurements.

    Args:
        frame: what is asked.
        per_grain: precision, or its square, that one grain or farthing buys.
        target: r and a of what is asked.
        limit: the most grains of a group.
        stored: the latest rule, at the failure probability that is asked, and the measurements; None for none.
        sharper: returns the looks of new measurements, from the intervals that are held or from nothing.
    """
    kept, standing = stored
    if kept is None or standing is None:
        return PlannedLooks(sharper(None), frame.beta, None)
    stands = _latest(frame, standing.held, kept, per_grain, target, limit)
    if not stands.free:
        schedule = sharper(standing.held)
        stands = _each(frame, standing.held, stands.claims, target, schedule.strictest / kept.critical)
        if not stands.free:
            return PlannedLooks(schedule, frame.beta, stands)
    return PlannedLooks(kept.schedule(per_grain), kept.beta, stands)


def _latest(  # noqa: PLR0917  # a question, what stands, and what is asked
    frame: Frame, held: HeldIntervals, kept: StoredPromise, per_grain: float, target: tuple[float, float], limit: int
) -> Stands:
    """Return what is known already, where the latest rule serves as it is, and the claims that stand.

    Args:
        frame: what is asked.
        held: the intervals of the groups.
        kept: the latest rule, at the failure probability that is asked where it is known there.
        per_grain: precision, or its square, that one grain or farthing buys.
        target: r and a of what is asked.
        limit: the most grains of a group.
    """
    claims = held.claims(kept, frame.beta, per_grain)
    met = held.serving(claims, *target)
    earlier = ~np.isnan(held.own.half)
    serves = kept.covers(*target, frame.beta, limit, frame.share) and bool(met[earlier].all())
    return Stands(claims, earlier if earlier.any() else None, serves, bool(met.all()), kept.floor)


def _each(frame: Frame, held: HeldIntervals, claims: OwnPromises, target: tuple[float, float], room: float) -> Stands:
    """Return which groups' intervals serve a target that the latest rule as a whole does not."""
    met = held.serving(claims, *target, room=room)
    free = float(met.mean()) >= frame.share
    one_rule = not free and frame.share < 1  # a share of the groups is counted by one rule
    return Stands(claims, None if one_rule or not met.any() else met, free, bool(met.all()), float(claims.half.max()))
