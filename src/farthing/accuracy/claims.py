"""Buying measurements: a pilot that claims nothing, and a claim in weighted stages.

Stage k of a claim is t_k *ticks* long; one tick is the same grains in each lane for all stages (the shape). Its fresh
means X_k have errors Z_k / sqrt(t_k) with Z_k ~ N(0, D), whatever was seen before, D being the variances of one tick.
The weights w_k^2 add up to 1 and were fixed beforehand. So

    sum_k w_k sqrt(t_k) (X_k - x)  =  sum_k w_k Z_k  ~  N(0, D)        exactly, however t_k was chosen,

and the weighted mean `sum w_k sqrt(t_k) X_k / C`, with the *clock* `C = sum w_k sqrt(t_k)`, is as good as one fixed
measurement of C^2 ticks. With t_k in proportion to w_k^2, C^2 is all that was bought.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.prices import Floats, Ints, Prices, in_blocks, in_parts

if TYPE_CHECKING:
    from collections.abc import Callable

WEIGHTS: Final = (0.1, 0.2, 0.25, 0.2, 0.13, 0.07, 0.035, 0.015)
"""The parts w^2 of the final variance that a claim's stages take; they add up to 1."""

PARTS: Final = 128
"""One tick is about this many grains, in whole numbers a lane: stages are exactly in proportion."""

CAUTION: Final = 2.5
"""By how many of its own standard deviations the last stage may move an answer without a repair."""

HOPELESS: Final = 4
"""A group is given up where its targets seem to cost more than this many times what it may still pay."""

_FIRST_GRAINS: Final = 16
_ENOUGH: Final = 0.7
_EVEN: Final = 0.15  # of a pilot's grains go to all lanes alike
_GROWTH: Final = 1.0  # a pilot that goes on grows by this part at least
_FIRST_SHIFT: Final = 44  # the first pilot is no less than the cap shifted by this
_TURNS: Final = 4  # of the fixed point that tells how far the clock has to run
_TURN: Final = 3.0  # most change in one of them
_BEYOND: Final = 2.0  # no stage believes that intervals need more than this many times the clock of the price


@dataclass(slots=True)
class Purse:
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
        """Measure some groups anew, add that to their means, and return the fresh values; 0 in lanes left out."""
        fresh = np.where(grains > 0, self.measure(grains, groups), 0.0)
        total = self.information[:, groups] + grains
        held = self.means[:, groups]
        self.means[:, groups] = held + (fresh - held) * (grains / np.maximum(total, 1))
        self.information[:, groups] = total
        return np.asarray(fresh)


def pilot(prices: Prices, purse: Purse, groups: Ints, beta: float) -> None:
    """Measure groups, claiming nothing, until they hold a small part of the price that they seem to have.

    Denominators, without which no price means much, are measured alone if they alone are still unclear.
    """
    even = (prices.used / prices.used.sum())[:, None]
    first = max(_FIRST_GRAINS, prices.cap >> _FIRST_SHIFT) * int(prices.used.sum())
    while len(groups):
        means, information = purse.means[:, groups], purse.information[:, groups]
        held = information.sum(axis=0)
        wanted = prices.wanted_of(means, information, beta)
        price = wanted.sum(axis=0)
        goal = prices.pilot * np.minimum(price, prices.cap)
        vague, growth = prices.unseen(means, information)
        early = (held < _ENOUGH * goal) | vague
        bought = np.where(early, np.maximum(goal - held, _GROWTH * held), growth.sum(axis=0))
        bought = np.minimum(bought, prices.cap // 2 - held)
        shape = np.where(early, (1 - _EVEN) * wanted / np.maximum(price, 1.0) + _EVEN * even, 0.0)
        shape = np.where(early, shape, growth / np.maximum(growth.sum(axis=0), 1.0))
        going = (early | growth.any(axis=0)) & (price <= HOPELESS * prices.cap) & (bought > 0)
        grains = np.where(held > 0, shape * bought, even * first)
        going |= held == 0
        groups = groups[going]
        if len(groups):
            purse.buy(np.ceil(grains[:, going]).astype(np.int64), groups)


def claim(
    prices: Prices, purse: Purse, groups: Ints, room: Ints, *, beta: float, weights: tuple[float, ...]
) -> tuple[Floats, Floats]:
    """Measure groups in stages until all targets seem met, or until `room` grains are spent; return fresh intervals.

    Args:
        prices: the targets.
        purse: what is known, and how to learn more.
        groups: int64[n], which groups.
        room: int64[n], the most grains that each may pay, at least a tick a stage.
        beta: failure probability of each of the intervals.
        weights: w^2 of the stages, in order; they add up to 1.

    Returns:
        (lower, upper), float64[outputs, n].

    Guarantee: each interval misses its truth with probability beta at most, given all that was seen before.
    Proof: docs/proofs/accuracy.joint.md.
    Assumes: fresh, independent Gaussian noise of variance 1/(grains * worth) in every lane.
    Rounds: nothing; every stage is a whole number of ticks.
    """
    wanted = prices.wanted_of(purse.means[:, groups], purse.information[:, groups], beta)
    shape = in_parts(wanted, prices.used, PARTS)
    size = shape.sum(axis=0)
    now = _Clock(prices, beta, np.maximum(shape, 1) * prices.worth, np.zeros(shape.shape), np.zeros(len(groups)))
    left = room // size
    for stage, weight in enumerate(weights):
        rest, later = sum(weights[stage:]), len(weights) - 1 - stage
        guess = np.sqrt(wanted.sum(axis=0) / size)
        more = now.missing(purse.means[:, groups], guess)
        most = np.floor((left - later) * (weight / rest))
        wished = np.maximum(np.ceil(np.minimum(weight * (more / rest) ** 2, most)), 1.0)
        ticks = np.minimum(wished.astype(np.int64), left - later)  # beyond 2^53 the product above may round up
        fresh = purse.buy(shape * ticks, groups)
        now.tell(fresh, np.sqrt(weight * ticks))
        left = left - ticks
        if later:
            wanted = prices.wanted_of(purse.means[:, groups], purse.information[:, groups], beta)
    return now.ends()


@dataclass(slots=True)
class _Clock:
    """Where a claim stands.

    Attributes:
        prices: the targets.
        beta: the failure probability.
        tick: float64[lanes, n], the information of one tick; anything in lanes not in use.
        weighted: float64[lanes, n], the sum of w sqrt(t) X.
        time: float64[n], the sum of w sqrt(t).
    """

    prices: Prices
    beta: float
    tick: Floats
    weighted: Floats
    time: Floats

    def tell(self, fresh: Floats, gain: Floats) -> None:
        """Add a stage's fresh means, with w sqrt(t)."""
        self.weighted = self.weighted + gain * fresh
        self.time = self.time + gain

    def ends(self) -> tuple[Floats, Floats]:
        """Return the intervals at the end."""
        values, variances = self.weighted / self.time, 1 / (self.tick * self.time**2)
        low, high = in_blocks(lambda v, u: np.stack(self.prices.intervals(v, u, self.beta)), values, variances)
        return low, high

    def missing(self, means: Floats, guess: Floats) -> Floats:
        """Return how far the clock still has to run, by all means so far; infinite for a named loss.

        Args:
            means: float64[lanes, n], what is known of the groups.
            guess: float64[n], where the clock should end by the price that is wanted.
        """
        if self.prices.named_loss:
            return np.full(self.time.shape, np.inf)

        def run(means: Floats, weighted: Floats, time: Floats, tick: Floats, guess: Floats) -> Floats:
            end = np.maximum(guess, time)
            for _ in range(_TURNS):
                values = (weighted + (end - time) * means) / end
                excess = self.prices.excess(values, 1 / (tick * end**2), self.beta, CAUTION * WEIGHTS[-1] ** 0.5)
                end = np.maximum(end * np.clip(excess, 1 / _TURN, _TURN), time)
            return np.asarray(np.maximum(np.minimum(end, _BEYOND * guess) - time, 0.0))

        return in_blocks(run, means, self.weighted, self.time, self.tick, np.maximum(guess, 1.0))
