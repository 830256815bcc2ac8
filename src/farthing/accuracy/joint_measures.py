"""Several answers from shared measures, each within its own target, at the least cost: pilot, stages, repair.

A *pilot* of a few percent of the price tells roughly what each group holds; it fixes in what proportions its lanes are
measured. Then come a few weighted stages (`claims`), each as long as all before it make it seem right; what they claim
in the end is claimed at a failure probability of its own. The rare group that is not within its targets then makes
another claim, at the next one. Both go on from what was claimed before; so does a sharper ask later, as a new promise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.joint_claims import PARTS, WEIGHTS, ClaimPurse, claim_or_give_up, ticks
from farthing.accuracy.joint_looks import JointLooks, least_critical
from farthing.accuracy.joint_pilot import pilot
from farthing.accuracy.joint_pivot import Pivot
from farthing.accuracy.joint_prices import Floats, Ints, JointPrices, turns
from farthing.accuracy.joint_promise import is_no_easier, is_sharper
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.ratio_looks import LATER_SHARE, RatioLooks, goes_on
from farthing.accuracy.statistics import Linear
from farthing.accuracy.stop_rule import two_sided
from farthing.accuracy.variance_looks import VarianceLooks

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.joint_prices import Flags
    from farthing.accuracy.statistics import Statistic

FIRST_SHARE: Final = 0.9
"""The part of beta that a promise's first claim takes; the k-th later one takes (1 - FIRST_SHARE) 2^-k."""

AFRESH: Final = 0.03
"""A claim that holds less than this part of what a sharper one needs is not gone on from: it is a pilot."""

NEVER: Final = 1e9
"""Where a loss is to be spent whatever comes, a group is given up that needs so many times what it may pay: none is."""

AFFORDABLE: Final = 2
"""A group makes another claim only where it seems to cost this many times less than what it may still pay."""

ANEW: Final = 1.2
"""A sharper claim begins again where going on costs this many times the least price: beginning costs more than that."""

OUT: Final = 1.5
"""A group is left as it is where its first look told that a sharper target costs this many times what it may pay."""

_LEAST_ROOM: Final = 2 * PARTS * len(WEIGHTS)  # grains; a group that may pay less is not measured
_CLAIMS: Final = 6  # most claims of one run
_SPENT: Final = 1 + 2.0**-20  # to spend a cap promises a little more than to stop within it, and less than a larger one
_UP: Final = 1 + 2.0**-40  # an exact price is rounded up past every float error
_NEARLY: Final = 1 + 1e-9
_MUCH: Final = 1 << 62  # grains that leave no doubt
_TRUSTED: Final = 0.85  # power of what the targets say of how much more is needed
_TINY: Final = 1e-100
_LEAST_PART: Final = 1e-3  # of the final variance that is fresh where a claim is repaired


@dataclass(frozen=True, slots=True)
class JointMeasures:
    """How the groups of one question are measured until all their outputs are within their targets.

    Attributes:
        statistics: one an output, over shared lanes.
        targets: (relative, absolute) of each output; (0, 0) for one that only comes along. Where all are, a loss was
            named: groups are measured with all of `cap_grains`, in proportions good for every output.
        beta: the failure probability of each interval.
        per_grain: the information in value units that one grain buys, a lane.
        cap_grains: the most grains that a group may hold in all lanes together, over its life.
        spend: whether the cap is to be spent on groups, too, whose targets surely cost more.

    Guarantee: each interval of the state that `run` returns misses its truth with probability beta at most, for targets
        that do not depend on earlier answers of the question; where it does not and the output is met, the value is
        within max(relative |truth|, absolute) of the truth.
    Proof: docs/proofs/accuracy.joint_measures.md.
    Assumes: `measure` adds independent Gaussian noise of variance 1/(grains per_grain) to every lane.
    Rounds: nothing; prices known beforehand up to whole grains.

    >>> from farthing.accuracy.statistics import Linear
    >>> pair = JointMeasures((Linear((0,)), Linear((1,))), ((0.0, 50.0), (0.0, 20.0)), 0.05, (2.0**-56,) * 2, 2**56)
    >>> round(pair.worst(JointState.nothing(2, 2, 9)) * 2.0**-56, 6), round(1.959964**2 * (1 / 50**2 + 1 / 20**2), 6)
    (0.01114, 0.01114)
    """

    statistics: tuple[Statistic, ...]
    targets: tuple[tuple[float, float], ...]
    beta: float
    per_grain: tuple[float, ...]
    cap_grains: int
    spend: bool = False

    @property
    def prices(self) -> JointPrices:
        """The targets in arrays."""
        relative, absolute = np.array(self.targets, dtype=np.float64).T[:, :, None]
        worth = np.array(self.per_grain)[:, None]
        return JointPrices(self.statistics, relative, absolute, worth, self.cap_grains, NEVER if self.spend else 1.0)

    def worst(self, state: JointState) -> int:
        """Return the most grains that any group can hold after a run: the exact price where that is known."""
        held = int(state.paid.max(initial=0))
        if self.free(state):
            return held
        return max(held, int(self._level().sum()) if self._steady(state) else self.cap_grains)

    def free(self, state: JointState) -> bool:
        """Return whether the state answers at this beta: every group is within its targets or cannot get there."""
        return not len(self._open(state))

    def hopeless(self, state: JointState) -> bool:
        """Return whether public facts show that no group can be within its targets under the cap, whatever it holds.

        They do where the absolute targets of counts and sums alone cost more, or where no group may pay for a look.
        What else is asked of a group depends on what it holds.

        >>> pair = JointMeasures((Linear((0,)), Linear((1,))), ((0.0, 50.0), (0.0, 20.0)), 0.05, (2.0**-56,) * 2, 2**49)
        >>> pair.hopeless(JointState.nothing(2, 2, 9))
        True
        """
        if self.prices.named_loss:
            return False
        if not self._steady(state) and self.cap_grains < 4 * _LEAST_ROOM:
            return True
        pairs = zip(self.statistics, self.targets, strict=True)
        fixed = [pair for pair in pairs if isinstance(pair[0], Linear) and not pair[1][0] and pair[1][1]]
        if not fixed:
            return False
        statistics, targets = zip(*fixed, strict=True)
        alone = replace(self, statistics=statistics, targets=targets)
        return float(alone.wanted().sum()) > self.cap_grains

    def typical(self, size: float) -> int:
        """Return about the grains that a group of `size` rows pays from scratch.

        Plans assume means a quarter of the half range off the middle, values as spread as the uniform law on their
        range, and rows of half the largest magnitude in sums.
        """
        if self._steady(JointState.nothing(len(self.per_grain), len(self.statistics), 0)):
            return int(self._level().sum())
        values = np.zeros((len(self.per_grain), 1))
        for statistic in self.statistics:
            for lane, value in statistic.profile(size).items():
                values[lane] = value
        looks = self.looks(JointState.nothing(*values.shape, 0))
        beta, more = (self._share(0), 2 * self.prices.pilot) if looks is None else (looks.told, looks.overhead)
        price = float(self.prices.wanted(values, np.zeros_like(values), beta).sum())
        return int(min(self.cap_grains, max(1.0, price * (1 + more))))

    def run(
        self,
        state: JointState,
        measure: Callable[[Ints, Ints], Floats],
        progress: Callable[[JointState, int], None] | None = None,
    ) -> JointState:
        """Measure every group until its outputs are within their targets, given up, or at the cap.

        Args:
            state: what was released before; its measurements serve as pilot.
            measure: returns fresh noisy values float64[lanes, n], in value units, of n groups, from grains
                int64[lanes, n] (0: not measured) and group indices int64[n].
            progress: told (the state, groups done) after each claim.
        """
        purse = ClaimPurse(state.means.copy(), state.information.copy(), measure)
        now = replace(state, beta=self.beta) if state.untouched else self._current(state)
        now = replace(now, means=purse.means, information=purse.information)
        if self._steady(state):
            return self._topped_up(now, purse)
        sharper = self._sharper(now)
        if (looks := self.next_looks(state)) is not None:
            now = self._looked(now, purse, looks, np.asarray(~state.met.all(axis=0)))
            if progress is not None:
                progress(now, now.met.shape[1] - len(self._going(now)))
            return now
        if sharper and now.critical:  # looks that this question does not go on from are a pilot
            now = replace(now, pivot=None, critical=0.0)
        groups = np.arange(0) if state.answers(self._promise) else self._going(now)
        if not len(groups):
            return self._judged(now, now.lower, now.upper)
        for turn in range(_CLAIMS):
            now = self._promised(now, purse) if turn == 0 and sharper else self._claimed(now, purse, groups)
            groups = self._going(now)
            if progress is not None:
                progress(now, now.met.shape[1] - len(groups))
            if not len(groups):
                break
        return now

    @property
    def _promise(self) -> tuple[float, ...]:
        """What is asked for, in numbers of which smaller ones are sharper."""
        widths = (width for target in self.targets for width in target)
        return (self.beta, -float(self.cap_grains) * (_SPENT if self.spend else 1.0), *widths)

    def _sharper(self, state: JointState) -> bool:
        """Return whether a promise is to be made that the state's present one does not hold."""
        return not state.stages or (bool(state.promise) and is_sharper(self._promise, state.promise))

    def _share(self, number: int) -> float:
        """Return the failure probability of a promise's claim by its number, from 0."""
        return self.beta * (FIRST_SHARE if number == 0 else (1 - FIRST_SHARE) * 2.0**-number)

    def _next_share(self, state: JointState) -> float:
        """Return the failure probability of the promise's next claim; after looks little of beta is left."""
        number = state.stages - state.since
        return self.beta * LATER_SHARE * 2.0**-number if state.critical and number else self._share(number)

    def _steady(self, state: JointState) -> bool:
        """Return whether groups are measured alike whatever is seen: only linear outputs with absolute targets."""
        linear = all(isinstance(statistic, Linear) for statistic in self.statistics)
        return linear and not any(relative for relative, _ in self.targets) and state.stages == 0

    def _level(self) -> Ints:
        """Return the grains, int64[lanes], of a steady question's lanes, for every group alike."""
        wanted = self.wanted()
        level = np.ceil(wanted)
        if level.sum() > self.cap_grains:
            level = np.floor(wanted * (self.cap_grains / wanted.sum()) / _UP**2)
        return level.astype(np.int64)

    def wanted(self) -> Floats:
        """Return the grains, float64[lanes], that a steady question's targets take."""
        nothing = np.zeros((len(self.per_grain), 1))
        return np.asarray(self.prices.wanted(nothing, nothing, self.beta)[:, 0] * _UP)

    def _topped_up(self, state: JointState, purse: ClaimPurse) -> JointState:
        """Return the state with every lane raised to its level: one Gaussian mean of known variance each."""
        grains = np.maximum(self._level()[:, None] - purse.information, 0)
        groups = np.flatnonzero(grains.any(axis=0))
        if len(groups):
            purse.buy(grains[:, groups], groups)
        return self._judged(state, *self.prices.plain(purse.means, purse.information, self.beta))

    def _current(self, state: JointState) -> JointState:
        """Return the state with verdicts on these targets; what was claimed at a larger beta is read at this one."""
        lower, upper = state.lower, state.upper
        kept = 0 < state.beta <= self.beta * _NEARLY and not (state.critical and self._sharper(state))
        if not kept or self._was_steady(state):
            lower, upper = self._read(state)
        return replace(self._judged(state, lower, upper), beta=self.beta)

    def _read(self, state: JointState) -> tuple[Floats, Floats]:
        """Return the intervals that stored measurements give at this beta."""
        if state.critical:
            return self._seen(state)
        if state.pivot is not None:
            return state.pivot.intervals(self.prices, self._share(0))
        if state.beta and (self._steady(state) or self._was_steady(state)):
            beta = self.beta if self._steady(state) else self._share(1)
            return self.prices.plain(state.means, state.information, beta)
        return np.full_like(state.lower, -np.inf), np.full_like(state.upper, np.inf)

    def _seen(self, state: JointState) -> tuple[Floats, Floats]:
        """Return the intervals of looks that would be the last for these targets, too; the whole line elsewhere."""
        lower, upper = np.full_like(state.lower, -np.inf), np.full_like(state.upper, np.inf)
        looks = self.looks(state)
        if looks is None or state.pivot is None or not self._goes_on(state):
            return lower, upper
        there = np.flatnonzero(state.pivot.clock > 0)
        held = state.pivot.of(there)
        variances = 1 / (np.maximum(held.shape * held.clock**2, 0.5) * self.prices.worth)
        low, high, fits = looks.intervals(held.shown, variances)
        lower[:, there], upper[:, there] = np.where(fits, low, -np.inf), np.where(fits, high, np.inf)
        return lower, upper

    def _was_steady(self, state: JointState) -> bool:
        """Return whether groups that were measured alike told intervals, and claims may follow these.

        Such an interval took all of beta. Which of the two is shown depends on what they say, so it is read at the
        share of a promise's second claim, and the claims that follow leave that share out: together they are missed
        with beta at most.
        """
        told = bool(state.beta and not state.stages and np.isfinite(state.upper - state.lower).any())
        return told and not self._steady(state)

    def _judged(self, state: JointState, lower: Floats, upper: Floats) -> JointState:
        """Return the state with these intervals, verdicts, and the values that serve best."""
        value, met = self.prices.judged(state.means, lower, upper)
        return replace(state, value=value, lower=lower, upper=upper, met=met)

    def looks(self, state: JointState) -> RatioLooks | None:
        """Return the rule of looks by which the outputs are measured; None where claims are made in stages."""
        if state.pivot is not None and not state.critical:  # what an earlier ask claimed is gone on from
            return None
        held = state.critical if self._goes_on(state) else 0.0
        least = least_critical(held, state.promise, self._promise) if held else 0.0
        known = self.prices, self.beta
        return RatioLooks.of(*known, held) or VarianceLooks.of(*known, held) or JointLooks.of(*known, least)

    def next_looks(self, state: JointState) -> RatioLooks | None:
        """Return the rule of the looks that a run takes next; None where it takes none, or makes claims in stages."""
        return None if self._steady(state) or not self._sharper(state) else self.looks(state)

    def in_shape(self, state: JointState) -> bool:
        """Return whether every group has its shape from looks that are gone on from, so that no pilot is made."""
        return self._goes_on(state) and state.pivot is not None and bool(state.pivot.clock.all())

    def _goes_on(self, state: JointState) -> bool:
        """Return whether looks of the last promise would all have gone on at this one, too; by the targets alone."""
        return bool(state.critical) and goes_on(state.promise, self._promise)

    def _looked(self, state: JointState, purse: ClaimPurse, looks: RatioLooks, unmet: Flags) -> JointState:
        """Return the state after all groups were followed until they are within the target, given up or at the cap.

        Those that the last ask left unmet stand at a look that was fixed beforehand, and may be given up there again.
        """
        lanes, count = state.means.shape
        on = self._goes_on(state)
        pivot = state.pivot if on and state.pivot is not None else Pivot.nothing(lanes, count)
        anew = np.flatnonzero((pivot.clock == 0) & (self.cap_grains - state.paid >= _LEAST_ROOM))
        looks.pilot(purse, anew)
        shape = pivot.shape.copy()
        shape[:, anew] = looks.shape(purse.means[:, anew], purse.information[:, anew])
        going = np.union1d(np.flatnonzero(pivot.clock > 0), anew)
        held = np.rint(pivot.clock[going] ** 2).astype(np.int64)
        asks = 1 + (state.stages if on else 0)
        low, high, shown, ticks = looks.follow(
            purse, going, shape[:, going], pivot.shown[:, going], held, again=unmet[going], asks=asks
        )
        clock = np.sqrt(ticks.astype(np.float64))
        left = Pivot(shape[:, going], shown, clock, shown, ticks.astype(np.float64), shown, clock, np.ones(len(going)))
        lower, upper = state.lower.copy(), state.upper.copy()
        lower[:, going], upper[:, going] = low, high
        made = replace(
            state, stages=state.stages + 1, since=state.stages, promise=self._promise, critical=looks.critical
        )
        return replace(self._judged(made, lower, upper), pivot=pivot.put(going, left))

    def _open(self, state: JointState) -> Ints:
        """Return the groups to measure: not within their targets, and able to get there with what they may pay."""
        groups = state.means.shape[1]
        if groups > 1 and state.untouched:  # one is like all
            alike = JointState.nothing(len(state.means), len(state.value), 1)
            return np.arange(groups if len(self._open(alike)) else 0)
        return np.arange(0) if state.answers(self._promise) else self._going(self._current(state))

    def _going(self, now: JointState) -> Ints:
        """Return the same of a state with verdicts on these targets."""
        prices = self.prices
        room = self.cap_grains - now.paid
        enough = (room >= _LEAST_ROOM) & (self.cap_grains >= 4 * _LEAST_ROOM)  # a pilot may take half of the cap
        going = np.flatnonzero((prices.named_loss | ~now.met.all(axis=0)) & enough)
        if prices.named_loss or not len(going):
            return going
        if now.pivot is not None and self._goes_on(now) and (looks := self.looks(now)) is not None:
            going = going[~looks.left(now.pivot.of(going), room[going])]
        known = np.isfinite(now.upper[:, going] - now.lower[:, going]).all(axis=0)
        sharper, told = self._sharper(now), (now.means[:, going], now.information[:, going])
        price = prices.price(*told, self._share(0) if sharper else self._next_share(now))
        if now.pivot is not None:  # where a group was given up, and would be again, an interval without an end is known
            again = is_no_easier(self._promise, now.promise) if sharper else prices.beyond(price, *told, room[going])
            known |= now.pivot.of(going).given_up & again
        if now.pivot is not None and (not now.critical or self._goes_on(now)):  # what claims hold is not bought again
            held = now.pivot.of(going)
            price = np.maximum(price - held.begun**2 * held.shape.sum(axis=0), price / 4)
        anyway = self.spend and now.stages - now.since <= 1
        return going[~known | anyway | (AFFORDABLE * price <= room[going])]

    def _promised(self, state: JointState, purse: ClaimPurse) -> JointState:
        """Return the state after the first claim of a new promise, on all groups alike, whether they were lucky or not.

        Which part of the final variance is fresh follows from the targets and from what each group's pilot told,
        before anything was claimed: only so is what was claimed before still plain Gaussian noise.
        """
        prices, beta = self.prices, self._share(0)
        pivot = Pivot.nothing(*state.means.shape) if state.pivot is None else state.pivot.copy()
        out_of_reach, part, planned = np.zeros(pivot.clock.shape, np.bool_), pivot.done, pivot.planned
        if state.pivot is not None:
            needed = ticks(prices, pivot.guess, pivot.shape, beta)
            most = self.cap_grains / np.maximum(pivot.shape.sum(axis=0), 1)
            out_of_reach = (needed >= max(OUT, prices.patience) * most) & (pivot.clock > 0)
            no_easier = is_no_easier(self._promise, state.promise)  # where the guess of a group says little
            out_of_reach = np.where(pivot.given_up, no_easier, out_of_reach) & (not prices.named_loss)
            part, planned = self._fresh(state, pivot, needed, most)
        state = replace(state, since=state.stages, promise=self._promise, pivot=pivot)
        room = self.cap_grains - purse.information.sum(axis=0)
        affordable = (room >= _LEAST_ROOM) & (self.cap_grains >= 4 * _LEAST_ROOM)
        going = ((part > 0) | (pivot.done < 1)) & ~out_of_reach & affordable
        pilot(prices, purse, np.flatnonzero(going & (part >= 1)), beta)
        second = self._was_steady(state)  # what was told before stands in the place of the second claim
        made = self._bought(state, purse, np.flatnonzero(going), replace(pivot, planned=planned), part)
        return replace(made, stages=made.stages + 1) if second else made

    def _fresh(self, state: JointState, pivot: Pivot, needed: Floats, most: Floats) -> tuple[Floats, Floats]:
        """Return the part of the final variance that is to be fresh, and the ticks that are planned with it.

        A guess may be rough. To plan for too many fresh ticks costs little, for too few much: so it is for no fewer
        than about what the targets say.
        """
        size = np.maximum(pivot.shape.sum(axis=0), 1)
        best = self.prices.wanted_of(pivot.guess, np.full_like(pivot.shape, _MUCH), self._share(0)).sum(axis=0) / size
        needed = np.minimum(needed, most)
        afresh = (pivot.planned < AFRESH * needed) | (needed - pivot.planned > ANEW * best)
        more = np.maximum(needed / np.maximum(pivot.planned, 1e-9), self._sharpened(state, pivot.guess) ** _TRUSTED)
        more = np.clip(more, 1.0, 1 / AFRESH)
        return np.where(afresh, 1.0, 1 - 1 / more), np.where(afresh, 0.0, np.minimum(pivot.planned * more, most))

    def _sharpened(self, state: JointState, guess: Floats) -> Floats:
        """Return how many times more the sharpest of these targets needs than in the last promise, by a guess."""
        last, now = np.array(state.promise[2:]).reshape(-1, 2), np.array(self.targets)
        more = np.ones(guess.shape[1])
        if last.shape != now.shape or self.prices.named_loss or not state.promise:
            return more
        for statistic, old, new in zip(self.statistics, last.tolist(), now.tolist(), strict=True):
            size = statistic.size(guess)
            wide, narrow = statistic.width(size, *old), statistic.width(size, *new)
            more = np.where(
                (wide > narrow) & (narrow > 0), np.maximum(more, (wide / np.maximum(narrow, _TINY)) ** 2), more
            )
        z = two_sided(self._share(0)) / two_sided(state.promise[0] * FIRST_SHARE)
        return np.asarray(more * max(z, 1.0) ** 2)

    def _claimed(self, state: JointState, purse: ClaimPurse, groups: Ints) -> JointState:
        """Return the state after one more claim on groups that fell short; it goes on from the promise's first."""
        beta = self._next_share(state)
        pivot = Pivot.nothing(*state.means.shape) if state.pivot is None else state.pivot
        on = (pivot.clock > 0) & (state.stages - state.since == 1)  # a second repair takes a shape of its own
        on &= ~pivot.given_up & (state.critical == 0)  # the errors of looks that have stopped are not normal
        part = np.where(on, 1 - (two_sided(self._share(0)) / two_sided(beta)) ** 2, 1.0)
        pilot(self.prices, purse, groups[part[groups] >= 1], beta)
        after = self._bought(state, purse, groups, pivot.copy(), np.maximum(part, _LEAST_PART))
        if after.pivot is not None and len(fresh := groups[pivot.clock[groups] == 0]):
            pivot = pivot.put(fresh, after.pivot.of(fresh))
        return replace(after, pivot=pivot, promise=state.promise or self._promise)

    def _bought(self, state: JointState, purse: ClaimPurse, groups: Ints, pivot: Pivot, part: Floats) -> JointState:
        """Return the state after a claim on these groups, a part of them at a time; `pivot` becomes its own."""
        lower, upper = state.lower.copy(), state.upper.copy()
        first, beta = state.stages == state.since, self._next_share(state)
        for at in turns(len(groups)):
            some = groups[at]
            before = None if first else (lower[:, some], upper[:, some])
            lower[:, some], upper[:, some], made = claim_or_give_up(
                self.prices, purse, some, beta=beta, held=pivot.of(some), part=part[some], before=before
            )
            pivot.fill(some, made)
        return replace(self._judged(state, lower, upper), stages=state.stages + 1, pivot=pivot)
