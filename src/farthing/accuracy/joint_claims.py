"""Buying measurements: a claim in weighted stages.

Stage k of a claim is t_k *ticks* long; one tick is the same grains in each lane for all stages (the shape). Its fresh
means X_k have errors Z_k / sqrt(t_k) with Z_k ~ N(0, D), whatever was seen before, D being the variances of one tick.
The weights w_k^2 add up to 1 and were fixed beforehand. So

    sum_k w_k sqrt(t_k) (X_k - x)  =  sum_k w_k Z_k  ~  N(0, D)        exactly, however t_k was chosen,

and the weighted mean `sum w_k sqrt(t_k) X_k / C`, with the *clock* `C = sum w_k sqrt(t_k)`, is as good as one fixed
measurement of C^2 ticks. With t_k in proportion to w_k^2, C^2 is all that was bought.

A later, sharper claim goes on from there: that sum, times sqrt(1 - part), is its beginning, and its fresh stages share
`part` of the final variance, which follows from the targets and what the pilot told, from nothing that came after.

The weights need not be fixed beforehand: it is enough that each is known before its stage is measured, and that the
squares add up to 1 in the end. So a claim whose cap runs out is *paused*: a larger cap goes on from the sum so far, and
gives what is left of the squares to its own stages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.joint_pivot import Pivot
from farthing.accuracy.joint_prices import Flags, Floats, Ints, JointPrices, in_blocks, in_parts, run_of

if TYPE_CHECKING:
    from collections.abc import Callable


WEIGHTS: Final = (0.03, 0.05, 0.08, 0.11, 0.13, 0.14, 0.13, 0.11, 0.08, 0.06, 0.04, 0.025, 0.015)
"""The parts w^2 of the final variance that a claim's stages take; they add up to 1."""

COARSE: Final = 0.15
"""Beyond this relative target answers are steep, and stages are more: of what the last may move less is spared."""
WEIGHTS_COARSE: Final = (*WEIGHTS[:-2], 0.02, 0.012, 0.006, 0.002)

GIVEN_UP: Final = 16
"""A group that is given up pays as much again as its looks, for an interval; at most what it may pay, over this."""

PARTS: Final = 128
"""One tick is about this many grains, in whole numbers a lane: stages are exactly in proportion."""

CAUTION: Final = 3.0
"""By how many of its own standard deviations the last stage may move an answer without a repair."""

HOPELESS: Final = 4
"""No claim is planned for more than this many times what a group may pay."""

STRAIGHT: Final = 0.7
"""A claim's shape is that of a target so many times as wide: it serves sharper ones that go on from it, too."""

EVENLY: Final = 0.4
"""Where several answers are weighed, at most this part of a claim's grains goes to all lanes alike: all of it"""

DOUBTFUL: Final = 0.5
"""where a standard deviation of what the pilot told changes the clock by this part, or more; else in proportion."""

_TURNS: Final = 4  # of the fixed point that tells how far the clock has to run
_TURN: Final = 3.0  # most change in one of them
_BEYOND: Final = 2.0  # no stage believes that intervals need more than this many times the clock of the price


@dataclass(slots=True)
class ClaimPurse:
    """Measurements on their way: what all lanes hold, and how to buy more.

    Attributes:
        means: float64[lanes, groups], precision-weighted means.
        information: int64[lanes, groups], grains.
        measure: the source of fresh values.
    """

    means: Floats
    information: Ints
    measure: Callable[[Ints, Ints], Floats]

    def buy(self, grains: Ints, groups: Ints) -> Floats:
        """Measure some groups again, add that to their means, and return the fresh values; 0 in lanes left out."""
        some = self.of(groups)
        fresh = some.buy_all(grains)
        self.put(groups, some)
        return fresh

    def buy_all(self, grains: Ints) -> Floats:
        """Do the same with all groups."""
        fresh = np.where(grains > 0, self.measure(grains, np.arange(grains.shape[1])), 0.0)
        self.information += grains
        part = grains / np.maximum(self.information, 1)
        self.means += (fresh - self.means) * part
        return fresh

    def of(self, groups: Ints) -> ClaimPurse:
        """Return some groups, in their order, on their own until they are put back; all of them as they are.

        Groups that follow one another are not copied: what is bought of them is here at once.
        """
        if len(groups) == self.means.shape[1]:
            return self
        at = run_of(groups)

        def measure(grains: Ints, places: Ints) -> Floats:
            """Measure places among those groups."""
            return self.measure(grains, groups if len(places) == len(groups) else groups[places])

        return ClaimPurse(self.means[:, at], self.information[:, at], measure)

    def put(self, groups: Ints, some: ClaimPurse) -> None:
        """Put them back."""
        if some is self or isinstance(run_of(groups), slice):
            return
        self.means[:, groups], self.information[:, groups] = some.means, some.information


def ticks(prices: JointPrices, guess: Floats, shape: Ints, beta: float) -> Floats:
    """Return the ticks of that shape, float64[groups], with which all targets would be met if the guess were true.

    At most HOPELESS times what the cap allows.
    """
    size = np.maximum(shape.sum(axis=0), 1)
    most = np.maximum(prices.cap / size, 1.0)
    if prices.named_loss:
        return np.asarray(most)
    most *= HOPELESS

    def run(guess: Floats, shape: Floats, most: Floats, size: Floats) -> Floats:
        tick = np.maximum(shape, 1) * prices.worth
        found = np.clip(prices.wanted(guess, np.zeros_like(guess), beta).sum(axis=0) / size, 1.0, most)
        for _ in range(_TURNS):
            excess = prices.excess(guess, 1 / (tick * found), beta)
            found = np.clip(found * np.clip(excess, 1 / _TURN, _TURN) ** 2, 1.0, most)
        return np.asarray(found)

    return in_blocks(run, guess, shape, most, size)


def claim_or_give_up(
    prices: JointPrices,
    purse: ClaimPurse,
    groups: Ints,
    *,
    beta: float,
    held: Pivot,
    part: Floats,
    before: tuple[Floats, Floats] | None,
) -> tuple[Floats, Floats, Pivot]:
    """Return the intervals of groups after a claim on them, a small one where they are given up, and what it leaves.

    Of two intervals of one promise, this one and that of `before`, the one nearer its target is kept.
    """
    mine = purse.of(groups)
    means, information = mine.means, mine.information
    room = prices.cap - information.sum(axis=0)
    hopeless = (part >= 1) & (not prices.named_loss)
    if hopeless.any():
        hopeless &= prices.beyond(prices.price(means, information, beta), means, information, room)
    looks = np.clip(information.sum(axis=0), 2 * PARTS, np.maximum(room // GIVEN_UP, np.minimum(room, 2 * PARTS)))
    outputs, stages = (len(prices.relative), len(groups)), WEIGHTS_COARSE if prices.relative.max() > COARSE else WEIGHTS
    lower, upper, after = np.empty(outputs), np.empty(outputs), held
    for some, weights, most in (
        (hopeless, (1.0,), looks),
        (~hopeless, (1.0,) if prices.named_loss else stages, room),
    ):
        chosen = np.flatnonzero(some)
        if not len(chosen):
            continue
        low, high, made = claim(
            prices, purse, groups[chosen], most[chosen], beta=beta, weights=weights,
            held=held.of(chosen), part=part[chosen],
        )  # fmt: skip
        if before is None:  # who was paused goes on, whatever the interval says: so it does not say "within the target"
            low, high = prices.outside(low, high, made.done < 1)
        else:
            old = (before[0][:, chosen], before[1][:, chosen])
            better = prices.ratio(low, high) < np.where(np.isfinite(old[1]), prices.ratio(*old), np.inf)
            low, high = np.where(better, low, old[0]), np.where(better, high, old[1])
        lower[:, chosen], upper[:, chosen] = low, high
        after = after.put(chosen, made if weights is stages or prices.named_loss else made.only_told())
    return lower, upper, after


def claim(
    prices: JointPrices,
    purse: ClaimPurse,
    groups: Ints,
    room: Ints,
    *,
    beta: float,
    weights: tuple[float, ...],
    held: Pivot,
    part: Floats,
) -> tuple[Floats, Floats, Pivot]:
    """Measure groups in stages until all targets seem met, or until `room` grains are spent; return fresh intervals.

    Args:
        prices: the targets.
        purse: what is known, and how to learn more.
        groups: int64[n], which groups.
        room: int64[n], the most grains that each may pay, at least a tick a stage.
        beta: failure probability of each of the intervals.
        weights: w^2 of the stages, in order; they add up to 1.
        held: what was claimed of these groups before.
        part: float64[n], the part of the final variance that fresh stages share; 1 for a claim that begins again.

    Returns:
        (lower, upper), float64[outputs, n], and what the next claim may go on from.

    Guarantee: each interval misses its truth with probability beta at most: given all that was seen before, where
        `part` is 1; else given what was seen before the first of the claims that it goes on from.
    Proof: docs/proofs/accuracy.joint_measures.md.
    Assumes: fresh, independent Gaussian noise of variance 1/(grains * worth) in every lane; `part` was fixed by the
        targets and by what was seen before that first claim.
    Rounds: nothing; every stage is a whole number of ticks.
    """
    mine, anew = purse.of(groups), part >= 1
    shape = np.where(anew, _shape(prices, mine.means, mine.information, beta), held.shape)
    guess = np.where(anew, mine.means, held.guess)
    size = shape.sum(axis=0)
    kept, used = np.sqrt(1 - part) * held.begun, (1 - part) * held.done
    spare = CAUTION * min(weights[-1], WEIGHTS[-1]) ** 0.5
    now = _Clock(prices, beta, np.maximum(shape, 1) * prices.worth, kept * held.base, kept, used, spare)
    left, fresh_part = room // size, 1 - used
    planned = np.where(anew, np.minimum(ticks(prices, guess, shape, beta), left), held.planned)
    pause, lost = _Pause.none(shape), np.zeros(len(groups), np.bool_)
    may_end = (anew | (held.done < 1)) & (prices.patience <= 1)
    for stage, weight in enumerate(weights):
        rest, later = sum(weights[stage:]), len(weights) - 1 - stage
        more = now.missing(mine.means, mine.information, turns=_TURNS if stage in (0, len(weights) - 1) else 1)
        if stage and later:  # every later stage is as short as it can be
            short = prices.short((more / rest) ** 2 * rest / fresh_part, left, rest)
            price = (now.time + more) ** 2 * size
            lost |= may_end & (short | prices.beyond(price, mine.means, mine.information, room))
            pause.at(now, short | lost)
        most = np.floor((left - later) * (weight / rest))
        wished = np.maximum(np.ceil(np.minimum(weight * (more / rest) ** 2 / fresh_part, most)), 1.0)
        wished = np.where(lost, 1.0, wished)
        bought = np.minimum(wished.astype(np.int64), left - later)  # beyond 2^53 the product above may round up
        now.tell(mine.buy_all(shape * bought), fresh_part * weight, bought)
        left = left - bought
    purse.put(groups, mine)
    return *now.ends(), pause.left(now, shape, guess, planned)


def _shape(prices: JointPrices, means: Floats, information: Ints, beta: float) -> Ints:
    """Return the grains of one tick as a pilot tells them; where that is vague and fixed for several, more evenly."""
    wanted = prices.wanted_of(means, information, beta, STRAIGHT)
    if len(prices.statistics) > 1:
        doubt = in_blocks(prices.doubt, means, prices.variances(information))
        part = EVENLY * np.minimum(doubt / DOUBTFUL, 1.0)
        even = (prices.used / prices.used.sum())[:, None]
        wanted = (1 - part) * wanted + part * even * wanted.sum(axis=0)
    return in_parts(wanted, prices.used, PARTS)


@dataclass(slots=True)
class _Clock:
    """Where a claim stands.

    Attributes:
        prices: the targets.
        beta: the failure probability.
        tick: float64[lanes, n], the information of one tick; anything in lanes not in use.
        weighted: float64[lanes, n], the sum of w sqrt(t) X.
        time: float64[n], the sum of w sqrt(t).
        used: float64[n], the sum of w^2.
        caution: by how much of their standard deviations it is to run on for what the last stage may move.
        end: float64[n], where the clock seemed to end when that was looked for last; 0 before.
    """

    prices: JointPrices
    beta: float
    tick: Floats
    weighted: Floats
    time: Floats
    used: Floats
    caution: float
    end: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.end = np.zeros_like(self.time)

    def tell(self, fresh: Floats, part: Floats, bought: Ints) -> None:
        """Add a stage's fresh means, of w^2 and t."""
        gain = np.sqrt(part * bought)
        self.weighted = self.weighted + gain * fresh
        self.time = self.time + gain
        self.used = self.used + part

    def ends(self) -> tuple[Floats, Floats]:
        """Return the intervals at the end."""
        values, variances = self.weighted / self.time, 1 / (self.tick * self.time**2)
        low, high = in_blocks(lambda v, u: np.stack(self.prices.intervals(v, u, self.beta)), values, variances)
        return low, high

    def missing(self, means: Floats, information: Ints, turns: int) -> Floats:
        """Return how far the clock still has to run, by all means so far; infinite for a named loss.

        Args:
            means: float64[lanes, n], what is known of the groups.
            information: int64[lanes, n], by how many grains.
            turns: of the fixed point, which begins where it ended last.
        """
        if self.prices.named_loss:
            return np.full(self.time.shape, np.inf)

        def run(means: Floats, information: Ints, weighted: Floats, tick: Floats, clock: Floats) -> Floats:
            time, last = clock
            seems = self.prices.straight(means, self.prices.variances(information), tick, self.beta)
            most = np.maximum(_BEYOND * np.sqrt(np.maximum(seems, 1.0)), time)
            end = np.minimum(np.maximum(np.where(last > 0, last, most / _BEYOND), time), most)
            doubt: Floats | None = None
            for _ in range(turns):
                values = (weighted + (end - time) * means) / end
                variances = 1 / (tick * end**2)
                doubt = self.caution * self.prices.doubt(values, variances) if doubt is None else doubt
                excess = self.prices.excess(values, variances, self.beta, doubt)
                end = np.maximum(end * np.clip(excess, 1 / _TURN, _TURN), time)
            return np.asarray(np.minimum(end, most))

        self.end = in_blocks(run, means, information, self.weighted, self.tick, np.stack([self.time, self.end]))
        return np.asarray(self.end - self.time)


@dataclass(slots=True)
class _Pause:
    """Where groups' claims stood when what they may pay was seen not to be enough: a larger cap goes on from there.

    Attributes:
        base, begun, done: as in `Pivot`; of groups that were paused.
        paused: bool[n], which groups.
    """

    base: Floats
    begun: Floats
    done: Floats
    paused: Flags

    @classmethod
    def none(cls, shape: Ints) -> _Pause:
        """Return that of groups none of which was paused."""
        groups = shape.shape[1]
        return cls(np.zeros(shape.shape), np.zeros(groups), np.ones(groups), np.zeros(groups, np.bool_))

    def at(self, now: _Clock, groups: Flags) -> None:
        """Pause groups that are not yet: whether they are is known before the next stage is measured."""
        fresh = groups & ~self.paused
        self.base = np.where(fresh, now.weighted / np.where(now.time > 0, now.time, 1.0), self.base)
        self.begun, self.done = np.where(fresh, now.time, self.begun), np.where(fresh, now.used, self.done)
        self.paused = self.paused | fresh

    def left(self, now: _Clock, shape: Ints, guess: Floats, planned: Floats) -> Pivot:
        """Return what the claim leaves at its end."""
        shown = now.weighted / now.time
        base, begun = np.where(self.paused, self.base, shown), np.where(self.paused, self.begun, now.time)
        return Pivot(shape, shown, now.time, guess, planned, base, begun, self.done)
