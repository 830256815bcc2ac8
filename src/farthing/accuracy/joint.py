"""Several answers from shared measures, each within its own target, at the least cost: pilot, stages, repair.

A *pilot* of a few percent of the price tells roughly what each group holds; it fixes in what proportions the group's
lanes are measured. Then come a few weighted stages (`claims`), each as long as all before it make it seem right; what
they claim in the end is claimed at a failure probability of its own. The rare group that is not within its targets
then, and any group that is asked to be sharper later, makes another claim, at the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.claims import HOPELESS, PARTS, WEIGHTS, Purse, claim, pilot
from farthing.accuracy.prices import Flags, Floats, Ints, Prices
from farthing.accuracy.statistics import Linear

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.statistics import Statistic

FIRST_SHARE: Final = 0.9
"""The part of beta that a question's first claim takes; the k-th later one takes (1 - FIRST_SHARE) 2^-k."""

GIVEN_UP: Final = 16
"""A group that is given up pays what it may still pay, divided by this, for an interval."""

AFFORDABLE: Final = 2
"""A group makes another claim only where it seems to cost this many times less than what it may still pay."""

_LEAST_ROOM: Final = 2 * PARTS * len(WEIGHTS)  # grains; a group that may pay less is not measured
_CLAIMS: Final = 6  # most claims of one run
_UP: Final = 1 + 2.0**-40  # an exact price is rounded up past every float error
_NEARLY: Final = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class State:
    """What was released about a question so far: public, enough to go on from, or to answer again for nothing.

    Attributes:
        means: float64[lanes, groups], precision-weighted means of all measurements, in value units.
        information: int64[lanes, groups], the grains that each lane has been measured with.
        value, lower, upper: float64[outputs, groups], the answers and their intervals; infinite where nothing is known.
        met: bool[outputs, groups], whether value and interval are within the target.
        stages: the claims made so far, each with a failure probability of its own.
        beta: the failure probability of each interval; 0 before the first.
    """

    means: Floats
    information: Ints
    value: Floats
    lower: Floats
    upper: Floats
    met: Flags
    stages: int = 0
    beta: float = 0.0

    @classmethod
    def nothing(cls, lanes: int, outputs: int, groups: int) -> State:
        """Return the state before any measurement.

        >>> State.nothing(3, 1, 2).paid.tolist()
        [0, 0]
        """
        shape = (outputs, groups)
        return cls(
            means=np.zeros((lanes, groups)),
            information=np.zeros((lanes, groups), np.int64),
            value=np.zeros(shape),
            lower=np.full(shape, -np.inf),
            upper=np.full(shape, np.inf),
            met=np.zeros(shape, np.bool_),
        )

    @property
    def paid(self) -> Ints:
        """The grains that a member of each group has paid, int64[groups]."""
        return np.asarray(self.information.sum(axis=0), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Joint:
    """How the groups of one question are measured until all their outputs are within their targets.

    Attributes:
        statistics: one an output, over shared lanes.
        targets: (relative, absolute) of each output; (0, 0) for one that only comes along. Where all are, a loss was
            named: groups are measured with all of `cap_grains`, in proportions good for every output.
        beta: the failure probability of each interval.
        per_grain: the information in value units that one grain buys, a lane.
        cap_grains: the most grains that a group may hold in all lanes together, over its life.

    Guarantee: each interval of the state that `run` returns misses its truth with probability beta at most, over the
        whole life of the question; where it does not and the output is met, the value is within
        max(relative |truth|, absolute) of the truth.
    Proof: docs/proofs/accuracy.joint.md.
    Assumes: `measure` adds independent Gaussian noise of variance 1/(grains per_grain) to every lane.
    Rounds: nothing; prices known beforehand up to whole grains.

    >>> from farthing.accuracy.statistics import Linear
    >>> two_counts = Joint((Linear((0,)), Linear((1,))), ((0.0, 50.0), (0.0, 20.0)), 0.05, (2.0**-56,) * 2, 2**56)
    >>> round(two_counts.worst(State.nothing(2, 2, 9)) * 2.0**-56, 6), round(1.959964**2 * (1 / 50**2 + 1 / 20**2), 6)
    (0.01114, 0.01114)
    """

    statistics: tuple[Statistic, ...]
    targets: tuple[tuple[float, float], ...]
    beta: float
    per_grain: tuple[float, ...]
    cap_grains: int

    @property
    def prices(self) -> Prices:
        """The targets in arrays."""
        relative, absolute = np.array(self.targets, dtype=np.float64).T[:, :, None]
        return Prices(self.statistics, relative, absolute, np.array(self.per_grain)[:, None], self.cap_grains)

    def worst(self, state: State) -> int:
        """Return the most grains that any group can hold after a run: the exact price where that is known."""
        held = int(state.paid.max(initial=0))
        if self.free(state):
            return held
        return max(held, int(self._level().sum()) if self._steady(state) else self.cap_grains)

    def free(self, state: State) -> bool:
        """Return whether the state answers at this beta: every group is within its targets or cannot get there."""
        return not len(self._open(state))

    def typical(self, size: float) -> int:
        """Return about the grains that a group of `size` rows pays from scratch.

        Plans assume means a quarter of the half range off the middle, values as spread as the uniform law on their
        range, and rows of half the largest magnitude in sums.
        """
        if self._steady(State.nothing(len(self.per_grain), len(self.statistics), 0)):
            return int(self._level().sum())
        values = np.zeros((len(self.per_grain), 1))
        for statistic in self.statistics:
            for lane, value in statistic.profile(size).items():
                values[lane] = value
        price = float(self.prices.wanted(values, np.zeros_like(values), self._share(0)).sum())
        return int(min(self.cap_grains, max(1.0, price * (1 + 2 * self.prices.pilot))))

    def run(
        self,
        state: State,
        measure: Callable[[Ints, Ints], Floats],
        progress: Callable[[State, int], None] | None = None,
    ) -> State:
        """Measure every group until its outputs are within their targets, given up, or at the cap.

        Args:
            state: what was released before; its measurements serve as pilot.
            measure: returns fresh noisy values float64[lanes, n], in value units, of n groups, from grains
                int64[lanes, n] (0: not measured) and group indices int64[n].
            progress: told (the state, groups done) after each claim.
        """
        purse = Purse(state.means.copy(), state.information.copy(), measure)
        now = replace(self._current(state), means=purse.means, information=purse.information)
        if self._steady(state):
            return self._topped_up(now, purse)
        for _ in range(_CLAIMS):
            groups = self._open(now)
            if not len(groups):
                break
            pilot(self.prices, purse, groups, self._share(now.stages))
            now = self._claimed(now, purse, groups)
            if progress is not None:
                progress(now, now.met.shape[1] - len(self._open(now)))
        return now

    def _share(self, number: int) -> float:
        """Return the failure probability of a claim by its number, from 0."""
        return self.beta * (FIRST_SHARE if number == 0 else (1 - FIRST_SHARE) * 2.0**-number)

    def _steady(self, state: State) -> bool:
        """Return whether groups are measured alike whatever is seen: only linear outputs with absolute targets."""
        linear = all(isinstance(statistic, Linear) for statistic in self.statistics)
        return linear and not any(relative for relative, _ in self.targets) and state.stages == 0

    def _level(self) -> Ints:
        """Return the grains, int64[lanes], of a steady question's lanes, for every group alike."""
        nothing = np.zeros((len(self.per_grain), 1))
        wanted = self.prices.wanted(nothing, nothing, self.beta)[:, 0] * _UP
        level = np.ceil(wanted)
        if level.sum() > self.cap_grains:
            level = np.floor(wanted * (self.cap_grains / wanted.sum()) / _UP**2)
        return level.astype(np.int64)

    def _topped_up(self, state: State, purse: Purse) -> State:
        """Return the state with every lane raised to its level: one Gaussian mean of known variance each."""
        grains = np.maximum(self._level()[:, None] - purse.information, 0)
        groups = np.flatnonzero(grains.any(axis=0))
        if len(groups):
            purse.buy(grains[:, groups], groups)
        lower, upper = self.prices.intervals(purse.means, self.prices.variances(purse.information), self.beta)
        return self._judged(state, lower, upper)

    def _current(self, state: State) -> State:
        """Return the state with verdicts on these targets, without intervals of a larger beta.

        What groups that were measured alike told took all of beta. Where claims may follow, it becomes the first of
        them, told anew at that one's share: its interval beside a claim's own would be missed with 1.9 beta.
        """
        told = state.beta > 0 and bool(np.isfinite(state.upper).any())
        if told and not state.stages and not self._steady(state):
            first = self.prices.intervals(state.means, self.prices.variances(state.information), self._share(0))
            state = replace(state, lower=first[0], upper=first[1], stages=1, beta=self.beta)
        live = 0 < state.beta <= self.beta * _NEARLY
        ends = (state.lower, state.upper) if live else (np.full_like(state.lower, end) for end in (-np.inf, np.inf))
        return replace(self._judged(state, *ends), beta=self.beta)

    def _judged(self, state: State, lower: Floats, upper: Floats) -> State:
        """Return the state with these intervals, verdicts, and the values that serve best.

        A value serves if it is within max(r |x|, a) of every x of the interval: it lies between the bounds that the two
        ends give, which leave room if the output is met. The best estimate is moved there.
        """
        prices = self.prices
        known = np.isfinite(upper - lower)
        above, below = prices.allowed(upper), prices.allowed(lower)
        met = known & (~prices.asked | (upper - lower <= (above + below) * _NEARLY))
        fit = met & prices.asked
        least, most = np.where(fit, upper - above, lower), np.where(fit, lower + below, upper)
        best = np.stack([statistic.estimate(state.means) for statistic in self.statistics])
        value = np.clip(best, np.minimum(least, most), most)
        return replace(state, value=value, lower=lower, upper=upper, met=met)

    def _open(self, state: State) -> Ints:
        """Return the groups to measure: not within their targets, and able to get there with what they may pay."""
        now, prices = self._current(state), self.prices
        room = self.cap_grains - now.paid
        enough = (room >= _LEAST_ROOM) & (self.cap_grains >= 4 * _LEAST_ROOM)  # a pilot may take half of the cap
        going = np.flatnonzero((prices.named_loss | ~now.met.all(axis=0)) & enough)
        if prices.named_loss or not len(going):
            return going
        known = np.isfinite(now.upper[:, going] - now.lower[:, going]).all(axis=0)
        price = prices.price(now.means[:, going], now.information[:, going], self._share(now.stages))
        return going[~known | (AFFORDABLE * price <= room[going])]

    def _claimed(self, state: State, purse: Purse, groups: Ints) -> State:
        """Return the state after one more claim on these groups; of two intervals, that nearer its target is kept."""
        prices, beta = self.prices, self._share(state.stages)
        room = self.cap_grains - purse.information[:, groups].sum(axis=0)
        price = prices.price(purse.means[:, groups], purse.information[:, groups], beta)
        hopeless = (price > HOPELESS * room) & (not prices.named_loss)
        lower, upper = state.lower.copy(), state.upper.copy()
        for some, weights, most in (
            (hopeless, (1.0,), np.maximum(room // GIVEN_UP, np.minimum(room, 2 * PARTS))),
            (~hopeless, (1.0,) if prices.named_loss else WEIGHTS, room),
        ):
            chosen = groups[some]
            if len(chosen):
                low, high = claim(prices, purse, chosen, most[some], beta=beta, weights=weights)
                held = (lower[:, chosen], upper[:, chosen])
                better = prices.ratio(low, high) < np.where(np.isfinite(held[1]), prices.ratio(*held), np.inf)
                lower[:, chosen], upper[:, chosen] = np.where(better, low, held[0]), np.where(better, high, held[1])
        return replace(self._judged(state, lower, upper), stages=state.stages + 1)
