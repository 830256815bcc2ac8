"""Several answers from shared measures under a pure budget: a pilot, then a chain of ever finer claims.

Each measure of a group is shown twice over, by two chains of noise that are independent of each other. The *pilot*
gets finer until it tells about what the targets need; from that and from public facts alone follow the *ladder* of
levels at which the other chain may be shown. Each rung of the ladder claims its intervals at a failure probability of
its own, so they hold whichever rung a group stops at. Of each chain the last look alone is paid.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.joint_prices import Flags, Floats, Ints, in_blocks
from farthing.accuracy.joint_promise import is_sharper
from farthing.accuracy.laplace_intervals import laplace_interval
from farthing.accuracy.laplace_looks import LaplaceLooks
from farthing.accuracy.laplace_prices import LaplacePrices
from farthing.accuracy.laplace_state import LaplaceState, ShownLanes
from farthing.accuracy.statistics import Linear
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from collections.abc import Callable


FIRST_SHARE: Final = 0.75
"""The part of beta that a promise's first rung takes; the k-th later one takes LATER_SHARE 2^-k."""

LATER_SHARE: Final = 0.15

READ_SHARE: Final = 0.05
"""The part that what older promises showed takes together, where it is told again; and a wide interval at the end."""

PILOT: Final = 0.15
"""A pilot ends when it has cost this part of the price that it predicts,"""

MOST_PILOT: Final = 0.125
"""or this part of what a group may pay,"""

DOUBTFUL_PILOT: Final = 0.25
"""or this one where it tells a price of more than half of that."""


RUNG: Final = 1.35
"""Growth of the level from one rung to the next."""

_TINY: Final = 1e-100
_UNKNOWN: Final = 1e100
_RUNGS: Final = 16
_CAUTION: Final = 1.2  # by how much more than what a pilot predicts the first rung buys
_SURELY: Final = 1.2  # a group is given up where even a large count would need so many times what it may pay
_FIRST: Final = 1 << 20  # farthings of a pilot's first look, at least
_BEGINS: Final = 14  # it is 2^-14 of the cap: earlier ones, of very wide noise, would take long to draw
_FITS: Final = 4  # of a price to the intervals that it buys
_PARTS: Final = 1 << 12  # the proportions of lanes are told in so many parts
_ROOM: Final = 64 * _PARTS  # farthings; a group that may pay less is not measured
_FAR: Final = 1e40  # the scale of what was not shown, where only prices are told


@dataclass(frozen=True, slots=True)
class LaplaceMeasures(LaplacePrices):
    """How the groups of one question are measured under a pure budget until all their outputs are within their targets.

    Attributes, beside those of the prices:
        least: the fewest farthings of a lane.
        spend: whether groups are measured, too, whose targets seem to cost more than that.
        places: int64[groups], which total each group is part of, where the last lane is of totals: groups of one total
            are then shown together, at the same levels. None where groups have nothing in common.

    Guarantee: each interval of the state that `run` returns misses its truth with probability beta at most, for targets
        and caps that do not depend on earlier answers of the question.
    Proof: docs/proofs/accuracy.laplace_measures.md.
    Assumes: `measure` carries two chains of two-sided geometric noise on, as `mechanisms.laplace.LaplaceChain` does,
        each lane by itself and the two independent of one another.
    Rounds: nothing; levels up to whole farthings.
    """

    least: int = 1
    spend: bool = False
    places: Ints | None = None

    @property
    def steady(self) -> bool:
        """Whether the one rung of every group is known beforehand: counts and sums to distances."""
        linear = all(isinstance(statistic, Linear) for statistic in self.statistics)
        return linear and not any(relative for relative, _ in self.targets) and not self.prices.named_loss

    @property
    def hopeless(self) -> bool:
        """Whether public facts show that no group can be within its targets under the cap, whatever it holds."""
        if self.prices.named_loss:
            return False
        if self.cap < _ROOM:
            return True
        pairs = zip(self.statistics, self.targets, strict=True)
        fixed = [(one, aim) for one, aim in pairs if isinstance(one, Linear) and not aim[0] and aim[1]]
        if not fixed:
            return False
        alone = replace(self, statistics=tuple(one for one, _ in fixed), targets=tuple(aim for _, aim in fixed))
        return float(alone.needed(self._zeros(1), self._zeros(1), self.beta).sum()) > self.cap

    def worst(self, state: LaplaceState) -> int:
        """Return the most farthings that any group can hold after a run."""
        held = int(state.paid.max(initial=0))
        if self.free(state):
            return held
        if self.steady and not state.promises:
            return max(held, self._steady_total())
        return max(held, self.cap)

    def free(self, state: LaplaceState) -> bool:
        """Return whether what was told answers: nothing sharper is asked, or nothing more may be paid."""
        if not state.promises:
            return False
        if not self._sharper(state):
            return True
        within = self._met(state.lower, state.upper).all(axis=0) & (state.beta <= self.beta * (1 + 1e-9))
        return bool(not self.prices.named_loss and within.all()) or not (self.cap - state.paid >= _ROOM).any()

    def typical(self, size: float) -> int:
        """Return about the farthings that a group of `size` rows pays from scratch."""
        if self.steady:
            return self._steady_total()
        if self.prices.named_loss:
            return self.cap
        if (looks := self._looks(self._nothing(1))) is not None:
            return looks.typical(size)
        values = self._zeros(1)
        for statistic in self.statistics:
            for lane, value in statistic.profile(size).items():
                values[lane] = value
        price = self.needed(values, np.zeros_like(values), self.beta * FIRST_SHARE).sum()
        return int(min(self.cap, max(1.0, price * _CAUTION * (1 + PILOT))))

    def run(
        self,
        state: LaplaceState,
        pilot: Callable[[Ints, Ints], Ints],
        claim: Callable[[Ints, Ints], Ints],
        progress: Callable[[LaplaceState, int], None] | None = None,
    ) -> LaplaceState:
        """Measure every group until its outputs are within their targets, given up, or at the cap.

        Args:
            state: what was shown before.
            pilot: shows some groups again by the pilots' chain: from levels int64[lanes, n] above the last ones, and
                group indices int64[n], it returns the shown values, int64[lanes, n].
            claim: the same by the claims' chain.
            progress: told (the state, groups done) after each rung.
        """
        now = replace(state, promises=state.promises + 1, beta=self.beta, promise=self._promise)
        if (looks := self._looks(state)) is not None:
            return looks.run(now, claim, progress)
        now = self._read(state, now)
        if not self.steady:
            now = self._piloted(now, pilot)
        first, shape, given_up = self._ladder(now)
        now = replace(now, shape=shape, looked=0.0)
        going = self._any(~self._done(now) & ~given_up) & ~self._whole
        for rung in range(_RUNGS):
            groups, levels = self._rung(now, first, rung, going)
            if len(groups):
                now = self._claimed(now, claim, groups, levels, rung)
            done = self._done(now) | given_up
            going &= self._any(~done) & (now.paid < self.cap)
            if progress is not None and len(groups):
                progress(now, int(done.sum()))
            if not going.any():
                break
        return now

    def told(self, state: LaplaceState) -> tuple[Floats, Floats, Floats, Flags]:
        """Return values, lower and upper ends and verdicts of every output: the values that serve these targets best.

        A value serves if it is within max(r |x|, a) of every x of the interval.
        """
        if state.beta > self.beta * (1 + 1e-9):
            state = self._read(state, state)
        whole = self._whole
        prices, lower, upper = self.prices, np.where(whole, 1.0, state.lower), np.where(whole, 1.0, state.upper)
        met = self._met(lower, upper)
        fit = met & prices.asked
        with np.errstate(invalid="ignore"):
            least = np.where(fit, np.maximum(upper - prices.allowed(upper), lower), lower)
            most = np.where(fit, np.minimum(lower + prices.allowed(lower), upper), upper)
        shown = self.values(state.claimed.value)
        best = np.stack([statistic.estimate(shown) for statistic in self.statistics])
        return np.clip(best, np.minimum(least, most), most), lower, upper, met

    def by_looks(self, state: LaplaceState) -> bool:
        """Return whether a run shows a mean or a variance by looks, without a pilot."""
        return self._looks(state) is not None

    def _looks(self, state: LaplaceState) -> LaplaceLooks | None:
        """Return the looks of a mean or a variance alone that begin, or go on, from a state; None for claims."""
        if self.spend or self.places is not None or (state.promises and not state.looked):
            return None
        found = LaplaceLooks.of(self, self.least, state.looked)
        if found is None or not state.promises:
            return found
        beta, _, *target = state.promise
        before = LaplaceLooks.of(
            replace(self, targets=((target[0], target[1]),)), self.least
        )  # goes on wherever that one did
        sharper = before is not None and all(map(operator.le, found.target, before.target))
        return found if sharper and self.beta <= beta else None

    def _nothing(self, groups: int) -> LaplaceState:
        """Return the state before any look."""
        return LaplaceState.nothing(len(self.unit), len(self.statistics), groups)

    @property
    def _promise(self) -> tuple[float, ...]:
        """What is asked for, in numbers of which smaller ones are sharper."""
        return (self.beta, -float(self.cap), *(width for target in self.targets for width in target))

    def _sharper(self, state: LaplaceState) -> bool:
        """Return whether more is asked for than was promised last."""
        return is_sharper(self._promise, state.promise)

    def _intervals(self, value: Ints, level: Ints, beta: float) -> tuple[Floats, Floats]:
        """Return the intervals of every output at what a chain shows, float64[outputs, groups] twice."""
        steps = 2 * np.array(self.step)[:, None]

        def ends(value: Ints, level: Ints) -> Floats:
            values, scales = self.values(value), self.scales(level)
            return np.stack([
                np.stack(laplace_interval(one, values, scales, steps, beta)) for one in self.statistics
            ])  # fmt: skip

        both = in_blocks(ends, value, level)
        return both[:, 0], both[:, 1]

    def _met(self, lower: Floats, upper: Floats) -> Flags:
        """Return which outputs are within their targets."""
        prices, known = self.prices, np.isfinite(upper - lower)
        with np.errstate(invalid="ignore"):
            near = upper - lower <= (prices.allowed(upper) + prices.allowed(lower)) * (1 + 1e-9)
        return np.asarray((known & (~prices.asked | near)) | self._whole)

    def _done(self, state: LaplaceState) -> Flags:
        """Return which groups need no more; none of them where a loss is to be spent, until it is."""
        room = self.cap - state.paid >= _ROOM
        if self.prices.named_loss:
            return np.asarray(~room)
        return np.asarray(self._met(state.lower, state.upper).all(axis=0) | ~room)

    def _read(self, before: LaplaceState, now: LaplaceState) -> LaplaceState:
        """Return the state with the intervals that what was shown gives to a new promise, at shares of its own."""
        lower, upper = np.full_like(now.lower, -np.inf), np.full_like(now.upper, np.inf)
        for made, rung in sorted({*zip(before.made.tolist(), before.rung.tolist(), strict=True)}):
            if rung < 0:
                continue
            groups = np.flatnonzero((before.made == made) & (before.rung == rung))
            share = self.beta * READ_SHARE * 2.0 ** -(made + 1) * 2.0 ** -(rung + 1)
            lower[:, groups], upper[:, groups] = self._intervals(
                before.claimed.value[:, groups], before.claimed.level[:, groups], share
            )
        return replace(now, lower=lower, upper=upper)

    def _steady_levels(self) -> Ints:
        """Return the farthings, int64[lanes], of a steady question."""
        return np.ceil(self.needed(self._zeros(1), self._zeros(1), self._share(0))[:, 0]).astype(np.int64)

    def _steady_total(self) -> int:
        """Return the farthings that each group of a steady question pays, where nothing was shown before."""
        state = self._nothing(1)
        first, shape, _ = self._ladder(state)
        _, levels = self._rung(replace(state, shape=shape), first, 0, np.ones(1, np.bool_))
        return int(levels.sum())

    def _share(self, rung: int) -> float:
        """Return the failure probability of a rung; a steady question has one, and nothing else to tell."""
        if rung == 0:
            return self.beta * (1 - READ_SHARE if self.steady else FIRST_SHARE)
        return self.beta * LATER_SHARE * 2.0**-rung

    def _price(self, shown: ShownLanes) -> Floats:
        """Return what the first rung seems to need by a pilot, in farthings, float64[lanes, groups]."""

        def price(value: Ints, level: Ints) -> Floats:
            return self.needed(self.values(value), np.minimum(self.scales(level), _FAR), self._share(0))

        return in_blocks(price, *shown)

    def _beyond(self, price: Floats) -> Flags:
        """Return which groups surely need more than they may pay, bool[groups]."""
        return np.asarray((price > _SURELY * self.cap) & (not self.prices.named_loss and not self.spend))

    def _fitted(self, shown: ShownLanes, wanted: Floats) -> Floats:
        """Return the farthings at which intervals, at what a pilot shows, are as narrow as the targets ask."""
        if self.prices.named_loss:
            return wanted
        steps = 2 * np.array(self.step)[:, None]

        def fit(value: Ints, level: Ints, wanted: Floats) -> Floats:
            seen = self._doubted(self.values(value), np.minimum(self.scales(level), _FAR))
            for _ in range(_FITS):
                scales = np.minimum(np.array(self.unit)[:, None] / (np.maximum(wanted, 1) * float(FARTHING)), _FAR)
                ends = [laplace_interval(one, seen, scales, steps, self._share(0)) for one in self.statistics]
                wide = self.prices.ratio(np.stack([low for low, _ in ends]), np.stack([high for _, high in ends]))
                wanted = wanted * np.clip(np.where(np.isnan(wide), 1.0, wide), 0.5, 2.0).max(axis=0)
            return wanted

        return in_blocks(fit, *shown, wanted)

    def _piloted(self, state: LaplaceState, pilot: Callable[[Ints, Ints], Ints]) -> LaplaceState:
        """Return the state with a pilot of every group that has none and may pay for one.

        One that a smaller cap cut off before it was clear goes on, and its group has another shape from there on.
        """
        lanes, more = len(self.unit), state.pilot.level.sum(axis=0) == 0
        value, level = state.pilot.value.copy(), state.pilot.level.copy()
        first = max(self.least, _FIRST // lanes, self.cap >> _BEGINS)
        last = np.full(level.shape[1], int(self.cap * MOST_PILOT) // lanes)
        if self.places is None and len(cut := np.flatnonzero(~more)):
            shown = ShownLanes(value[:, cut], level[:, cut])
            more[cut] = ~(self._clear(shown) | self._beyond(self._price(shown).sum(axis=0)))
        going = np.flatnonzero(more & (last >= self.least) & ~self._whole)
        while len(going := going[level[0, going] < last[going]]):
            wanted = np.repeat(np.clip(2 * level[:1, going], first, last[going]), lanes, axis=0)
            value[:, going], level[:, going] = pilot(wanted, going), wanted
            shown = ShownLanes(value[:, going], level[:, going])
            price, open_still = self._price(shown).sum(axis=0), np.zeros(level.shape[1], np.bool_)
            open_still[going] = ~((wanted.sum(axis=0) >= PILOT * price) & self._clear(shown) | self._beyond(price))
            if self.places is None:
                last[going[price > self.cap / 2]] = int(self.cap * DOUBTFUL_PILOT) // lanes
            going = np.flatnonzero(self._any(open_still))
        shape = np.where(level > state.pilot.level, 0, state.shape)
        return replace(state, pilot=ShownLanes(value, level), shape=shape)

    def _ladder(self, state: LaplaceState) -> tuple[Floats, Ints, Flags]:
        """Return the level of each group's first rung, its lanes' shape, and whether it is given up.

        All of it follows from pilots and public facts, and from the shape of earlier claims.
        """
        given_up = np.zeros(state.pilot.level.shape[1], np.bool_)
        if self.steady:
            wanted = np.repeat(self._steady_levels()[:, None].astype(np.float64), state.pilot.level.shape[1], axis=1)
        else:
            wanted = self._price(state.pilot)
            given_up = self._beyond(wanted.sum(axis=0)) | (state.pilot.level == 0).all(axis=0)
            wanted = self._alike(self._fitted(state.pilot, wanted) * _CAUTION, given_up)
        room = np.maximum(self.cap - state.pilot.level.sum(axis=0), 0)
        total = wanted.sum(axis=0)
        named = self.prices.named_loss
        parts = np.ceil(_PARTS * wanted / np.maximum(total, _TINY) + _TINY).astype(np.int64)
        shape = np.where(state.shape.sum(axis=0) > 0, state.shape, np.maximum(parts, 1))
        first = (wanted * (shape.sum(axis=0) / shape)).max(axis=0)
        first = np.where(self._any(~given_up), first, state.pilot.level.sum(axis=0))
        return np.asarray(room if named else first, np.float64), shape, np.asarray(given_up)

    @property
    def _whole(self) -> Flags:
        """Which groups are the whole of their totals: nothing is measured of them; one False where there are none."""
        return np.zeros(1, np.bool_) if self.places is None else np.bincount(self.places)[self.places] == 1

    def _any(self, flags: Flags) -> Flags:
        """Return which groups are so themselves, or with them another one of their total."""
        if self.places is None:
            return flags
        return np.asarray(np.bincount(self.places, flags)[self.places] > 0)

    def _alike(self, wanted: Floats, given_up: Flags) -> Floats:
        """Return the farthings of lanes: for all groups of a total what one that is not given up wants at most."""
        if self.places is None:
            return wanted
        most = np.zeros((len(wanted), int(self.places.max(initial=0)) + 1))
        for lane, row in zip(most, np.where(given_up, 1.0, wanted), strict=True):
            np.maximum.at(lane, self.places, row)
        return most[:, self.places]

    def _rung(self, state: LaplaceState, first: Floats, rung: int, going: Flags) -> tuple[Ints, Ints]:
        """Return the groups that are shown at a rung, and the levels of their lanes, above those of earlier ones."""
        room = np.maximum(self.cap - state.pilot.level.sum(axis=0), 0)
        parts = state.shape.sum(axis=0)
        each = np.minimum(np.ceil(np.minimum(first * RUNG**rung, _UNKNOWN) / parts), room // parts)
        levels = np.maximum(each.astype(np.int64) * state.shape, 0)
        above = (levels > state.claimed.level).all(axis=0) & (levels >= self.least).all(axis=0)
        groups = np.flatnonzero(going & above)
        return groups, levels[:, groups]

    def _claimed(
        self, state: LaplaceState, claim: Callable[[Ints, Ints], Ints], groups: Ints, levels: Ints, rung: int
    ) -> LaplaceState:
        """Return the state after some groups were shown at a rung, with the intervals that it claims."""
        value, level = state.claimed.value.copy(), state.claimed.level.copy()
        value[:, groups], level[:, groups] = claim(levels, groups), levels
        lower, upper = state.lower.copy(), state.upper.copy()
        lower[:, groups], upper[:, groups] = self._intervals(value[:, groups], levels, self._share(rung))
        made, number = state.made.copy(), state.rung.copy()
        made[groups], number[groups] = state.promises - 1, rung
        return replace(state, claimed=ShownLanes(value, level), lower=lower, upper=upper, made=made, rung=number)
