"""The share of each group in the sum of several, and running sums: a pilot, then one claim as fine as it says.

All groups of one total are measured alike. So is the total, by itself, as far as that is cheaper than the sum of many
noisy groups; the two are put together. The interval of a share is Fieller's, from the joint law of group and total.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.group_guess import DOUBT, TINY, GroupGuess
from farthing.accuracy.stop_rule import two_sided
from farthing.accuracy.total_state import TotalState, measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.joint_prices import Flags, Floats, Ints
    from farthing.accuracy.running_sums import RunningSums

FIRST_SHARE: Final = 0.9
"""The part of beta that a first claim takes; the k-th one after a larger pilot takes (1 - FIRST_SHARE) 2^-k."""

GIVEN_UP: Final = 16
"""A total of which no share can be within its target pays this part of what it may pay, for an interval."""

SURELY: Final = 2.5
"""Before, it is held to be so many standard deviations larger than it seems, and than 0 at least."""

MIDDLE: Final = 0.5
"""Of the least share, 0, and the greatest, 1."""

MOST_REPAIRS: Final = 4
"""A claim that falls short is made part of the pilot, and made again, so often at most."""

_LEAST_PILOT: Final = 0.03  # of the price
_MOST_PILOT: Final = 4  # a pilot takes at most this part of what may be paid
_WIDER: Final = 1.03  # of the price: an exact interval is a little wider than its first order
_FIRST_SHIFT: Final = 40  # the first look of a pilot is the cap, shifted by this
_LEAST: Final = 16  # grains of a look
_NEARLY: Final = 1 + 1e-9
_UNKNOWN: Final = 1e60  # the variance of what was not measured
_WEIGHTS: Final = np.array((0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0))
"""What a total may cost, over what a group costs."""


@dataclass(frozen=True, slots=True)
class SharesOfTotal:
    """How groups and their totals are measured until the share of each is within its target.

    Attributes:
        places: int64[groups], which total a group is part of: 0, 1, ...
        target: (relative, absolute) of the shares; (0, 0) where a loss was named.
        beta: the failure probability of each interval.
        per_grain: the information about a group, in value units, that one grain buys.
        together: in how many groups of one total one unit can be at most.
        cap_grains: the most grains that a member of a group may pay.
        spend: whether the cap is to be spent on totals, too, whose shares surely cost more.
        running: which groups are added up for each number; None where each is a group by itself.
        divided: whether numbers are parts of their totals; if not, they are counts or sums, as they are.

    Guarantee: each interval misses its share with probability beta at most, whatever the truths (none of them below
        zero, nor their sum zero), for targets that do not depend on earlier answers of the question.
    Proof: docs/proofs/accuracy.share_of_total.md.
    Assumes: `measure` adds independent Gaussian noise: of variance 1/(grains per_grain) to each group, and of
        together/(shared per_grain) to each total.
    Rounds: prices up to whole grains.

    >>> one = SharesOfTotal(np.zeros(3, np.int64), (0.0, 0.02), 0.05, 2.0**-56, 1, 1 << 56)
    >>> own, total = (np.tile(row, (2, 1)) for row in ([300.0, 500.0, 200.0], [1000.0] * 3))
    >>> state = TotalState(own, total, np.full((2, 3), 1 << 50), np.zeros((2, 3), np.int64), np.zeros(3, np.int64))
    >>> low, high = one.intervals(state)
    >>> [f"{a:.3f} .. {b:.3f}" for a, b in zip(low, high)]
    ['0.287 .. 0.313', '0.486 .. 0.514', '0.186 .. 0.214']
    """

    places: Ints
    target: tuple[float, float]
    beta: float
    per_grain: float
    together: int
    cap_grains: int
    spend: bool = False
    running: RunningSums | None = None
    divided: bool = True
    sizes: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", np.bincount(self.places)[self.places].astype(np.float64))

    @property
    def named_loss(self) -> bool:
        """Whether a loss was named in place of a target."""
        return not any(self.target)

    @property
    def public(self) -> bool:
        """Whether the middle of 0 and 1 is within the target of every share: then nothing is measured.

        >>> SharesOfTotal(np.zeros(3, np.int64), (0.0, 0.5), 0.05, 2.0**-56, 1, 1 << 56).public
        True
        """
        return self.divided and self.target[1] >= MIDDLE

    @property
    def steady(self) -> bool:
        """Whether what is measured is known beforehand: sums to a distance. No pilot is needed."""
        return not self.divided and self.target[0] <= 0 < self.target[1]

    @property
    def hopeless(self) -> bool:
        """Whether public facts show that some sum can't be within its target under the cap."""
        return self.steady and self._steadily > self.cap_grains and not self.spend

    def free(self, state: TotalState) -> bool:
        """Return whether the state answers: all that the pilots say was measured, and what falls short is given up."""
        return self.public or not (self._begins(state) | self._behind(state) | self._short(state)).any()

    def worst(self, state: TotalState) -> int:
        """Return the most grains that a member of a group can have paid after a run."""
        held = int(state.paid.max(initial=0))
        if self.steady and not self._short(state).any():
            return int(np.max(state.paid + sum(self._more(state)), initial=0))
        return held if self.free(state) else max(held, self.cap_grains)

    @property
    def _steadily(self) -> int:
        """The grains of a claim of all sums to a distance, from nothing."""
        nothing = np.zeros(len(self.places))
        costs = self._costs(GroupGuess(*[nothing] * 5), self._z(0))
        chosen = np.array([_largest(cost, self.places) for cost in costs])
        grains, shared = _split(np.asarray(chosen.min(axis=0)), _WEIGHTS[chosen.argmin(axis=0)])
        return max(int((grains + shared).max()), 2 * _LEAST + 1)

    def typical(self, size: float) -> int:
        """Return about the grains that members of a group of `size` rows pay where all groups of a total are alike."""
        if self.named_loss:
            return self.cap_grains
        if self.public:
            return 0
        part = max(size, 1.0) * self._many
        share = self._many / self.sizes
        nothing = np.zeros(len(part))
        costs = self._costs(GroupGuess(part, part / share, share, nothing, nothing), self._z(0)).min(axis=0)
        return int(min((1.01 if self.steady else 1.2) * float(costs.max()), self.cap_grains))

    def run(
        self,
        state: TotalState,
        measure: Callable[[Ints, Ints], tuple[Floats, Floats]],
        progress: Callable[[TotalState], None] | None = None,
    ) -> TotalState:
        """Measure totals and their groups until all shares are within the target, given up, or at the cap.

        Args:
            state: what was released before.
            measure: returns fresh noisy values of all groups and of their totals, float64[groups] each, from the grains
                of each group and what it pays for its total (0: not measured).
            progress: told the state after each claim.
        """
        while not self.free(state):
            state = state.known.where(self._short(state), state)
            state = self._piloted(state, measure)
            state = measured(state, 1, *self._more(state), measure)
            if progress is not None:
                progress(state)
        return state

    def intervals(self, state: TotalState) -> tuple[Floats, Floats]:
        """Return lower and upper ends of all numbers, float64[groups], by what was claimed; of shares 0 and 1 without.

        A group that is the whole of its total has the share 1.
        """
        z2 = self._z(state.repairs) ** 2
        part, total, variance, covariance, spread = self._estimates(state, 1)
        if not self.divided:
            half = np.where(state.grains[1] > 0, np.sqrt(z2 * variance), math.inf)
            return part - half, part + half
        leading = total**2 - z2 * spread
        known = (leading > 0) & (state.grains[1] > 0)
        leading = np.where(known, leading, 1.0)
        middle = part * total - z2 * covariance
        root = np.sqrt(np.maximum(middle**2 - leading * (part**2 - z2 * variance), 0.0))
        low, high = np.clip((middle - root) / leading, 0, 1), np.clip((middle + root) / leading, 0, 1)
        return np.where(self._whole, 1.0, np.where(known, low, 0.0)), np.where(known & ~self._whole, high, 1.0)

    def judged(self, state: TotalState) -> tuple[Floats, Floats, Floats, Flags]:
        """Return values, lower and upper ends, float64[groups], and which are within the target.

        A value serves if it is within max(r s, a) of every share s of its interval.
        """
        lower, upper = self.intervals(state)
        above, below = self._allowed(upper), self._allowed(lower)
        told = state.grains[1] > 0
        met = (told | self._whole | self.public) & (self.named_loss | (upper - lower <= (above + below) * _NEARLY))
        fit = met & (not self.named_loss)
        with np.errstate(invalid="ignore"):  # of what was not measured
            least = np.where(fit, np.maximum(upper - above, lower), lower)
            most = np.where(fit, np.minimum(lower + below, upper), upper)
        guess = self._guess(state, 1)
        share = np.where(told | (not self.public), guess.share, MIDDLE) if self.divided else guess.part
        return np.clip(share, np.minimum(least, most), most), lower, upper, met

    def planned(self, state: TotalState) -> tuple[Ints, Ints]:
        """Return the grains of groups and of their totals, int64[groups], that a claim is to hold, by the pilot alone.

        Nothing that was claimed has a part in it: so what is claimed is plain Gaussian noise at any time.
        """
        pilot = state.grains[0] + state.shared[0]
        room = np.maximum(self.cap_grains - pilot, 0) * ((pilot > 0) | self.steady)
        if self.named_loss:
            weight = self.sizes / (self.sizes + self.together) / 2
            room = np.maximum(room - 8, 0)  # what doubles may round up by
            return np.floor(room * (1 - weight)).astype(np.int64), np.floor(room * weight).astype(np.int64)
        guess = self._guess(state, 0)
        costs = self._costs(guess.surely, self._z(state.repairs))
        able = costs.min(axis=0) <= (math.inf if self.spend else room)
        chosen = np.array([_largest(np.where(able, cost, 0.0), self.places) for cost in costs])
        best = chosen.argmin(axis=0)
        cost, weight = chosen.min(axis=0), _WEIGHTS[best]
        hopeless = (cost <= 0) | ~self._clear(guess)
        rest = np.where(self._lost(state), 0.0, room / GIVEN_UP)
        cost, weight = np.where(hopeless, rest, cost), np.where(hopeless, 1.0, weight)
        grains, shared = _split(np.minimum(cost, room) * (room > 2 * _LEAST), weight)
        grains = np.minimum(grains, room)
        return grains, np.minimum(shared, room - grains)

    def _costs(self, guess: GroupGuess, z: Floats) -> Floats:
        """Return the grains, float64[weights, groups], that a number takes if its total has that weight."""
        (relative, absolute), count, many = self.target, self.sizes, self._many
        share = guess.share if self.divided else np.zeros(1)
        width = np.maximum(np.maximum(relative * guess.part, absolute * self._unit(guess)), TINY)
        scale = (_WIDER if self.divided else 1.0) * (z / width) ** 2 / self.per_grain
        alone = scale * (many - many**2 / count)
        shared = scale * (many**2 / count - 2 * share * many + share**2 * count)
        return np.array([(1 + w) * (alone + shared / (1 + count * w / self.together)) for w in _WEIGHTS])

    def least(self, total: Floats, z: Floats) -> Floats:
        """Return the grains, float64[groups], that the cheapest of all shares takes of totals of that size at most.

        Within a part of itself that is the whole of a total; within a width that is the same for all, an even share.

        Guarantee: no share, of whatever size, of a total that is no larger takes less, but for what rounding does.
        Proof: docs/proofs/accuracy.share_of_total.md, "What is chosen, and what it costs".
        Assumes: shares, no sums as they are.
        Rounds: to nearest.
        """
        relative, absolute = self.target
        even = (z / np.maximum(max(self.target) * total, TINY)) ** 2 / self.per_grain * (1 - 1 / self.sizes)
        if self.running is not None or relative <= absolute:
            return np.asarray(even)
        ones, none = np.ones(len(total)), np.zeros(len(total))
        whole = self._costs(GroupGuess(total, total, ones, none, none), z).min(axis=0)
        return np.asarray(np.minimum(whole, even * (relative / absolute) ** 2) if absolute else whole)

    def _begins(self, state: TotalState) -> Flags:
        """Return where nothing was measured, and there is room for a pilot."""
        room = (self.cap_grains - state.paid >= 16 * _LEAST) & (not self.steady)
        return np.asarray((state.grains[0] == 0) & room & ~self._whole & ~self._lost(state))

    def _lost(self, state: TotalState) -> Flags:
        """Return the totals, not clear, that a pilot of them alone says are surely too small: the rest is saved."""
        if self.named_loss or self.spend or not self.divided:
            return np.zeros(len(self.places), np.bool_)
        guess = self._guess(state, 0)
        least = self.least(np.maximum(guess.total, 0.0) + SURELY * guess.doubt, self._z(state.repairs))
        room = self.cap_grains - (state.grains[0] + state.shared[0])
        return np.asarray((state.shared[0] > 0) & ~guess.clear & (least > room))

    @property
    def _whole(self) -> Flags:
        """Which groups are the whole of their totals: nothing is measured of them."""
        return np.asarray((self.sizes == 1) & self.divided)

    @property
    def _many(self) -> Floats:
        """How many groups are added up for each number, float64[groups]."""
        return np.ones(len(self.places)) if self.running is None else self.running.many

    def _unit(self, guess: GroupGuess) -> Floats:
        """Return what one unit of an absolute target is, in the unit of the groups."""
        return guess.total if self.divided else np.ones(1)

    def _clear(self, guess: GroupGuess) -> Flags:
        """Return where what targets are parts of is clearly not zero."""
        return np.asarray(guess.clear | (not self.divided and self.target[1] > 0))

    def _behind(self, state: TotalState) -> Flags:
        """Return where the pilot says that more is to be measured."""
        return np.asarray(sum(self._more(state)) > 0)

    def _missing(self, state: TotalState) -> tuple[Ints, Ints]:
        """Return the grains of groups and of their totals that a claim lacks, by its pilot, int64[groups]."""
        grains, shared = self.planned(state)
        return np.maximum(grains - state.grains[1], 0), np.maximum(shared - state.shared[1], 0)

    def _more(self, state: TotalState) -> tuple[Ints, Ints]:
        """Return the grains by which a claim grows now: what it lacks, groups first, as far as the cap goes.

        Earlier targets may have bought other parts of groups and totals, so that both together are beyond the cap. It
        follows from the pilot and these targets: nothing that was claimed has a part in it.
        """
        grains, shared = self._missing(state)
        left = np.maximum(self.cap_grains - state.paid, 0)
        grains = np.minimum(grains, left)
        return grains, np.minimum(shared, left - grains)

    def _crowded(self, state: TotalState) -> Flags:
        """Return where what a claim holds and lacks is beyond the cap."""
        return np.asarray(sum(self._missing(state)) > np.maximum(self.cap_grains - state.paid, 0))

    def _short(self, state: TotalState) -> Flags:
        """Return the groups of totals of which a share fell short, and is likely to get there by one more claim.

        So is a claim that can't grow as its pilot says, since earlier targets bought other parts of it.
        """
        if self.named_loss:
            return np.zeros(len(self.places), np.bool_)
        *_, met = self.judged(state)
        guess = self._guess(known := state.known, 0)
        cost = self._costs(guess.surely, self._z(known.repairs)).min(axis=0)
        crowded = self._crowded(state)
        hope = (~met | crowded) & (cost <= self.cap_grains - state.paid) & self._clear(guess)
        done = (state.grains[1] > 0) & (~self._behind(state) | crowded) & (state.repairs < MOST_REPAIRS)
        return np.asarray(done & (_largest(hope.astype(np.float64), self.places) > 0))

    def _piloted(self, state: TotalState, measure: Callable[[Ints, Ints], tuple[Floats, Floats]]) -> TotalState:
        """Return the state after pilots: of totals alone until these are clear, then of groups, too.

        Looks are at most as expensive as all before them: what a vague one says of the price must not be believed. A
        pilot ends when it has cost its part of the price, and its total is still clear: a total that seems clear by
        luck is looked at again, until a pilot may cost no more.
        """
        going = self._begins(state)
        left = np.maximum(self.cap_grains - state.paid, 0)  # by what sums to a distance claimed without a pilot
        most = np.maximum(left // (2 * _MOST_PILOT), _LEAST)
        more = np.where(going, _LEAST if self.named_loss else np.maximum(_LEAST, left >> _FIRST_SHIFT), 0)
        while more.any():
            state = measured(state, 0, np.zeros_like(more), more, measure)
            vague = ~self._clear(self._guess(state, 0)) & (2 * state.shared[0] <= most) & (not self.named_loss)
            going &= ~self._lost(state)
            more = np.where(going & vague, state.shared[0], 0)
        more = np.where(going, state.shared[0], 0)
        while more.any():
            state = measured(state, 0, *self._alike(state, more), measure)
            going = more > 0
            held = state.grains[0]
            goal = np.where(self._clear(self._guess(state, 0)), np.clip(self._goal(state), 0, most), most)
            more = np.where(going & (not self.named_loss), goal - held, 0)
            more = np.where(more > held / 4, np.minimum(np.ceil(more), held), 0).astype(np.int64)
        return state

    @staticmethod
    def _alike(state: TotalState, more: Ints) -> tuple[Ints, Ints]:
        """Return what is to be paid for groups, which are to hold so much more, and for totals, which hold as much."""
        return more, np.maximum(np.where(more > 0, state.grains[0] + more - state.shared[0], 0), 0)

    def _goal(self, state: TotalState) -> Floats:
        """Return the grains at which a pilot of groups ends, and one of their totals as well, float64[groups]."""
        held, guess = state.grains[0], self._guess(state, 0)
        cost = self._costs(guess, self._z(0)).min(axis=0)
        needed = np.minimum(_largest(cost, self.places), self.cap_grains)
        vague = _largest(
            np.where(cost >= needed / 2, guess.vague(*self.target, divided=self.divided), 0.0), self.places
        )
        vague = vague * np.sqrt(2 * held / np.maximum(needed, 1.0))  # if all were spent on a pilot
        return np.asarray(np.clip((DOUBT * vague) ** (2 / 3), _LEAST_PILOT, 1.0) * needed / 2)

    def _guess(self, state: TotalState, lane: int) -> GroupGuess:
        """Return what one lane says of groups and totals."""
        part, total, variance, _, spread = self._estimates(state, lane)
        share = np.clip(part / np.where(total > 0, total, math.inf), 0, 1)
        return GroupGuess(part, total, share, np.sqrt(variance), np.sqrt(spread))

    def _estimates(self, state: TotalState, lane: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return groups and totals by all of one lane: values, variance of the group, covariance, of the total."""
        variance = _variance(state.grains[lane], self.per_grain)
        other = _variance(state.shared[lane], self.per_grain / self.together)
        sums, spread = (np.bincount(self.places, one)[self.places] for one in (state.own[lane], variance))
        both = spread + other
        off = np.where(state.shared[lane] > 0, state.total[lane] - sums, 0.0)
        rest = other / both
        own = state.own[lane]
        if self.running is not None:
            own, variance = self.running.summed(own), self.running.many * variance  # alike within a total
        return (
            own + variance / both * off,
            sums + spread / both * off,
            variance * ((np.maximum(spread - variance, 0.0) + other) / both),
            variance * rest,
            spread * rest,
        )

    def _allowed(self, share: Floats) -> Floats:
        """Return how far answers may be from those shares."""
        relative, absolute = self.target
        return np.maximum(relative * np.abs(share) if relative else 0.0, absolute)

    def _z(self, repairs: Ints | int) -> Floats:
        """Return the critical value of a claim, after so many larger pilots."""
        later = [(1 - FIRST_SHARE) * 0.5**many for many in range(1, MOST_REPAIRS + 2)]
        return np.array([two_sided(self.beta * part) for part in (FIRST_SHARE, *later)])[repairs]


def _split(cost: Floats, weight: Floats) -> tuple[Ints, Ints]:
    """Return the grains of groups and of their totals that a cost is, of which totals have that weight, rounded up."""
    return np.ceil(cost / (1 + weight)).astype(np.int64), np.ceil(cost * weight / (1 + weight)).astype(np.int64)


def _variance(grains: Ints, per_grain: float) -> Floats:
    """Return the variance of what was measured with so many grains; very large where it was not."""
    return np.where(grains > 0, 1 / (np.maximum(grains, 1) * per_grain), _UNKNOWN)


def _largest(values: Floats, places: Ints) -> Floats:
    """Return the largest value, none below 0, of all groups that are part of the same total, float64[groups]."""
    most = np.zeros(int(places.max(initial=0)) + 1)
    np.maximum.at(most, places, values)
    return most[places]
