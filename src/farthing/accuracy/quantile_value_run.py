"""One run of a search for a quantile by value, or by value or rank: looks that find a place, and looks that prove it.

Each look is kept as it was measured, with what it is to prove. A later run reads them in the same order, bets on the
same ones, and goes on from there at its own target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.quantile_bets import Ladder
from farthing.accuracy.quantile_picture import RankPicture
from farthing.accuracy.quantile_rank_run import UP, RankRun, started, surely
from farthing.accuracy.quantile_ranks import WHOLE
from farthing.accuracy.quantile_trail import BEFORE, PAST, made_by_value
from farthing.accuracy.quantile_value import ValueTarget, within
from farthing.accuracy.quantile_value_bets import Bet, ValueBets, still_inside
from farthing.accuracy.quantile_windows import USUAL, KnownBets, NextLook, Windows
from farthing.mechanisms.gaussian import MOST_GRAINS

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

    from farthing.accuracy.quantile_bets import Places
    from farthing.accuracy.quantile_plan import BisectionPlan
    from farthing.accuracy.quantile_rank_run import Measure, MeasureCount
    from farthing.accuracy.quantile_trail import Trail

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

CLEARLY: Final = 3.0
"""Rows are roughly known when there are this many times their noise."""

AHEAD: Final = 1
"""Until then each next look counts with so many times the grains of all before it."""

HOPEFUL: Final = 0.8
"""Until then a group is given up where so many noises more than what was counted could not be enough."""

BESIDE: Final = 0.03
"""The count has at least this part of the information of the best known place."""

PATIENCE: Final = 0.3
"""Once it has paid this part of its cap, a group is given up where what is likely to be needed is more than is left."""

TOGETHER: Final = 20_000
"""So many groups are looked at together, so that memory does not grow with all of them."""


@dataclass(slots=True)
class ValueRun(RankRun):
    """Where each group stands; all arrays have one entry a group.

    Guarantee: with probability at least 1 - beta, the quantile is always in `low` to `high`, and no threshold that is
        too high for a rank target is ever in `most` or below, none that is too low in `least` or above.
    Proof: docs/proofs/accuracy.quantile_bisection.md, "By value".
    Assumes: as `quantile_bisection.QuantileBisection`; what earlier runs were asked was named without looking.
    Rounds: nothing; float64.
    """

    sides: ValueBets
    aims: Int64  # what the next look is to prove: 1, -1, or 0 for nothing
    rates: Float64  # how much is bet on it
    needs: Float64  # information that it takes at best to prove a window

    @classmethod
    def of(
        cls,
        plan: BisectionPlan,
        held: Trail,
        settled: Flags,
        measure: Measure | None,
        measure_count: MeasureCount | None,
    ) -> Self:
        """Return the start: the whole range, nothing read. Groups that are settled already are left alone."""
        groups = len(held.paid)
        trail = held.only(int(made_by_value(plan.asked.lane_steps, 0)))
        run = cls(
            **started(plan, trail, settled, measure, measure_count),
            sides=ValueBets.none(groups), aims=np.zeros(groups, np.int64), rates=np.zeros(groups),
            needs=np.zeros(groups),
        )  # fmt: skip
        run.active &= ~run.within(np.arange(groups))
        return run

    def within(self, at: Int64) -> Flags:
        """Return where every number in the range is within the value target of its middle."""
        asked = self.plan.asked
        lower, upper = asked.least(self.low[at]), asked.most(self.high[at])
        return within(lower, upper, self.plan.relative, self.plan.absolute)

    def guessed(self, at: Int64) -> Float64:
        """Return values of groups that nothing is claimed of: where their ranks seem to pass what is looked for."""
        asked, crossing = self.plan.asked, (self.low[at] + self.high[at]) // 2
        for part in _parts(np.flatnonzero(self._clear(at))):
            crossing[part] = self._windows(at[part]).picture.crossing
        crossing = np.clip(crossing, self.low[at], self.high[at])
        return np.asarray((asked.least(crossing) + asked.most(crossing)) / 2)

    @property
    def _target(self) -> ValueTarget:
        return ValueTarget(self.plan.asked, self.plan.relative, self.plan.absolute)

    def next(self, at: Int64) -> tuple[Int64, Int64, Int64]:
        """Return the next threshold of each group, and the grains of D and of the count there."""
        plan, known = self.plan, self._clear(at)
        place, grains, rows = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64), self._rough(at, AHEAD)
        self.aims[at], self.rates[at], self.needs[at] = 0, 0.0, self._least_needed(at)
        for part in _parts(np.flatnonzero(known)):
            found, some = self._windows(at[part]).next(), at[part]
            late = self.spent[some] > PATIENCE * plan.cap_grains
            self.aims[some], self.rates[some] = found.side, found.rate
            self.needs[some] = np.where(late, found.likely, found.least)
            wanted, counted = self._by_rank(some, found)
            place[part] = wanted[0]
            wanted_grains = np.maximum(np.ceil(wanted[1] / plan.per_grain), 1)
            grains[part] = np.minimum(wanted_grains, MOST_GRAINS // 2).astype(np.int64)
            rows[part] = np.where(counted, np.ceil(wanted_grains * plan.count_share), self._behind(some))
        return place, grains, np.minimum(rows, MOST_GRAINS // 2).astype(np.int64)

    def _by_rank(self, at: Int64, found: NextLook) -> tuple[tuple[Int64, Float64], Flags]:
        """Return where to look and how much information to add, and whether to count; by rank where that is cheaper."""
        counted = np.full(len(at), bool(self.plan.asked.beside))
        if not self.plan.asked.rank:
            return (found.place, found.information), counted
        ranks = self._scouts(at).next()
        cheaper = self.plan.asked.slack * self.rows[at] > found.ends
        self.aims[at] = np.where(cheaper, 0, found.side)
        place = np.where(cheaper, ranks.place, found.place)
        return (place, np.where(cheaper, ranks.information, found.information)), counted | (cheaper & ranks.bets)

    @property
    def _tells_none(self) -> float:
        """The grains of a count by which a group is given up that seems to have no rows."""
        by_one = 8 * USUAL * self.plan.count_per_grain / HOPEFUL**2
        return self.plan.cap_grains * self.plan.per_grain / (by_one + self.plan.per_grain)

    def _behind(self, at: Int64) -> Float64:
        """Return the grains by which the count is behind the places: one that was too high is found out so."""
        wanted = BESIDE * self.places.information[:, at].max(axis=0, initial=0.0) - self.counted[at]
        return np.asarray(np.ceil(np.maximum(wanted, 0.0) / self.plan.count_per_grain))

    def _windows(self, at: Int64) -> Windows:
        """Return what the searches of these groups see."""
        asked, ladder = self.plan.asked, Ladder.of(self.places, at)
        self.sides.grow(len(self.places.thresholds))

        def ordered(values: Float64) -> Float64:
            return np.asarray(np.take_along_axis(values[:, at], ladder.order, axis=0))

        known = KnownBets(*map(ordered, (self.sides.information, self.sides.past, self.sides.before)))
        picture = RankPicture(ladder, self.rows[at], asked.lane_steps / WHOLE, asked.beside, self._target)
        return Windows(picture, known, self.low[at] - 1, self.high[at], self._leaves_out)

    @property
    def _leaves_out(self) -> float:
        """The logarithm of what has to be won to leave leaves out."""
        return -float(np.log(self.plan.beta * self.plan.interval_share))

    def keep(self, at: Int64, place: Int64, ranks: tuple[Float64, Int64], counts: tuple[Float64, Int64]) -> None:
        """Keep the next look of groups as it was measured, and how much is bet on it."""
        RankRun.keep(self, at, place, ranks, counts)  # slots: there is no super() without arguments
        self.trail.shown[self.depth[at], at] = np.where(self.aims[at] != 0, self.rates[at], 0.0)

    def _bet_on_sides(
        self,
        places: Places,
        at: Int64,
        row: Int64,
        fresh: Float64,  # noqa: ARG002  # the look says how much is bet on it
        seen: tuple[Float64, Float64],
    ) -> None:
        """Settle bets on looks that are to prove a side; on others, and for much wider targets, nothing is bet."""
        look = self.depth[at] - 1
        kinds, wide = self.trail.kinds[look, at], self._target.much_narrower_than(self.trail.targets(look, at))
        side = np.where(wide, 0, np.where(kinds & PAST, 1, np.where(kinds & BEFORE, -1, 0)))
        some = np.flatnonzero((side != 0) & (seen[1] > 0))
        if not some.size:
            return
        row, at, look, side = row[some], at[some], look[some], side[some]
        needs = self._needed_there(places, row, at, side)
        bet = Bet(self.trail.shown[look, at], needs, surely(self.trail.grains[look, at]))
        won = self.sides.add(row, at, side, (seen[0][some], seen[1][some]), bet)
        places.past[row, at], places.before[row, at] = won

    def _needed_there(self, places: Places, row: Int64, at: Int64, side: Int64) -> Float64:
        """Return the logarithm of what all that is won at places has to come to, to prove a side."""
        ladder, columns = Ladder.of(places, at), np.arange(len(at))
        mine = (ladder.order == row).argmax(axis=0)
        past, before = still_inside(ladder, self.low[at] - 1, self.high[at])
        shown = np.where(side > 0, past[mine, columns], before[mine + 1, columns])
        there = np.where(side > 0, places.past[row, at], places.before[row, at])
        return np.asarray(there + self._leaves_out * UP - shown)

    def _aside(self, depth: Int64, at: Int64) -> Flags:  # noqa: ARG002  # no look was made for a rank
        """Return no look."""
        return np.zeros(len(at), np.bool_)

    def _made_for(self, at: Int64) -> Int64:
        """Return what the trail says of the next looks."""
        return made_by_value(self.plan.asked.lane_steps, self.aims[at], self._target.code)

    def _clear(self, at: Int64) -> Flags:
        """Return which groups' rows stand out from the noise."""
        return np.asarray(self.total[at] > CLEARLY * np.sqrt(self.counted[at]))

    def _least_needed(self, at: Int64) -> Float64:
        """Return about what proves a window at best: where half of the rows lie at either end of it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            counted = np.maximum(self.total[at] / self.counted[at], 0) + HOPEFUL / np.sqrt(self.counted[at])
            return np.where(self.counted[at] > 0, 2 * USUAL / (counted / 2) ** 2, 0.0)

    def _hopeless(self, at: Int64) -> Flags:
        """Return which groups the rest of their cap does not bring to their target, most likely."""
        room = (self.plan.cap_grains - self.spent[at]) * self.plan.per_grain
        hopeless = np.asarray((self.needs[at] > room) & (not self.plan.spend))
        return hopeless & RankRun._hopeless(self, at) if self.plan.asked.rank else hopeless  # noqa: SLF001  # slots


def _parts(some: Int64) -> list[Int64]:
    """Return places of groups in parts that are looked at together; none of them empty."""
    return [part for part in np.split(some, np.arange(TOGETHER, len(some), TOGETHER)) if part.size]
