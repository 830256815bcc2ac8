"""A pilot: groups are measured, and nothing is claimed, until it is clear what a claim will take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.joint_prices import in_blocks, turns

if TYPE_CHECKING:
    from farthing.accuracy.joint_claims import ClaimPurse
    from farthing.accuracy.joint_prices import Floats, Ints, JointPrices

_MOST: Final = 0.5  # of the cap that a pilot takes; the rest is for the claim
_FIRST_GRAINS: Final = 16
_ENOUGH: Final = 0.7
_EVEN: Final = 0.15  # of a pilot's grains go to all lanes alike
_GROWTH: Final = 0.4  # a pilot that goes on grows by this part at least
_STEP: Final = 4.0  # of what it holds, the most that a pilot grows by while its price says little
_STEPS: Final = 7.0  # the same while nothing is seen
_BOLD: Final = 2.0  # of the pilot that a group seems to need of which nothing is seen, for it needs more
_BLANK: Final = 1.5  # standard deviations of a lane below which nothing is seen of it
_SURE: Final = 0.5  # of a pilot for what every group surely pays, the first measurement
_FIRST_SHIFT: Final = 44  # the first pilot is no less than the cap shifted by this


def pilot(prices: JointPrices, purse: ClaimPurse, groups: Ints, beta: float) -> None:
    """Measure groups, claiming nothing, until they hold a small part of the price that they seem to have.

    Denominators, without which no price means much, are measured alone if they alone are still unclear.
    """
    for at in turns(len(groups)):
        mine = purse.of(groups[at])
        _measure(prices, mine, beta)
        purse.put(groups[at], mine)


def _measure(prices: JointPrices, purse: ClaimPurse, beta: float) -> None:
    """Do the same with all groups of a purse, whose arrays fit in cache together."""
    even = (prices.used / prices.used.sum())[:, None]
    groups = np.arange(purse.means.shape[1])
    _begin(prices, purse, groups[~purse.information.any(axis=0)], beta)
    while len(groups):
        some = purse.of(groups)
        grains = in_blocks(lambda m, i: _next(prices, m, i, beta, even), some.means, some.information)
        groups = groups[grains.any(axis=0)]
        if len(groups):
            purse.buy(grains[:, grains.any(axis=0)].astype(np.int64), groups)


def _next(prices: JointPrices, means: Floats, information: Ints, beta: float, even: Floats) -> Floats:
    """Return what groups of a pilot buy next, in whole grains, float64[lanes, groups]; 0 where the pilot has ended."""
    held, variances = information.sum(axis=0), prices.variances(information)
    vague, growth = prices.unclear(means, information, variances)
    more = growth.sum(axis=0)
    known = prices.named_loss  # what is wanted in all; in what proportions is asked of those that go on alone
    early = (held < _ENOUGH * (prices.pilot * prices.cap)) | (vague > 0) | (not known)
    wanted = prices.roughly(means, variances, beta, early)
    rough = wanted.sum(axis=0)
    price = np.full(rough.shape, float(prices.cap)) if known else rough.copy()
    if len(dear := np.flatnonzero(price > prices.cap)):  # a rough price may be too high
        price[dear] = prices.price(means[:, dear], information[:, dear], beta)
    goal = prices.pilot * np.minimum(price, prices.cap)
    early = (held < _ENOUGH * goal) | (vague > 0)
    unclear = more / np.maximum(information[prices.counts].sum(axis=0), 1) * (price <= prices.cap)
    least = np.maximum(np.maximum(vague, _GROWTH), unclear) * held
    bought = np.where(early, np.maximum(goal - held, least), more)
    unsure = (more > 0) | ((vague > 0) & bool(prices.spreads))
    doubtful = early & ((price > prices.cap) | unsure)  # it may be given up soon
    bought = np.where(doubtful, np.minimum(bought, _STEP * held), bought)
    bought = np.minimum(bought, _MOST * prices.cap - held - len(even))  # whole grains are rounded up
    going = (early | (more > 0)) & (bought > 0) & ~prices.beyond(price, means, information, prices.cap)
    shape = np.where(
        early, (1 - _EVEN) * (wanted / np.maximum(rough, 1.0)) + _EVEN * even, growth / np.maximum(more, 1.0)
    )
    return np.asarray(np.ceil(shape * np.where(going, bought, 0.0)))


def _begin(prices: JointPrices, purse: ClaimPurse, groups: Ints, beta: float) -> None:
    """Measure groups of which nothing is known until something is.

    What every group surely pays is known: a pilot begins with a part of that. Else denominators (all lanes where there
    are none) grow together from next to nothing: as long as a group's are smaller than their noise it is like any other
    of which nothing is known, and one of these tells for all how far they go.
    """
    used = prices.used[:, None]
    least = max(_FIRST_GRAINS, prices.cap >> _FIRST_SHIFT) * int(prices.used.sum())
    least = max(min(least, prices.cap // (8 * len(used))), 1)
    sure = np.minimum(_SURE * prices.pilot * prices.sure(beta), prices.cap / (8 * len(used)))
    if sure.any():
        grains = np.where(used, np.maximum(np.ceil(sure), least), 0).astype(np.int64)
        if len(groups):
            purse.buy(np.repeat(grains, len(groups), axis=1), groups)
        return
    lanes = np.isin(np.arange(len(used)), prices.counts)[:, None] if prices.counts else used
    held, more = 0, least
    while len(groups):
        held += more
        purse.buy(np.repeat(np.where(lanes, more, 0), len(groups), axis=1), groups)
        some = purse.means[lanes[:, 0]][:, groups]
        signal = (some if prices.counts else np.abs(some)) * np.sqrt(held * prices.worth[lanes[:, 0]])
        blank = np.asarray((signal < _BLANK).all(axis=0))
        more = int(held * _climb(prices, np.where(used, held, 0), beta))
        if held + more > min(prices.pilot, _MOST) * prices.cap / len(used):
            blank[:] = False
        rest = np.where(used & ~lanes, held, 0)
        if rest.any() and not blank.all():
            purse.buy(np.repeat(rest, len(blank) - blank.sum(), axis=1), groups[~blank])
        groups = groups[blank]


def _climb(prices: JointPrices, information: Ints, beta: float) -> float:
    """Return how many times what it holds is bought next of a group of which nothing is seen at that information."""
    wanted = prices.wanted_of(np.zeros(information.shape), information, beta)
    goal = prices.pilot * min(_BOLD * float(wanted.sum()), prices.cap)
    return min(max(goal / float(information.sum()), 1.0), _STEPS)
