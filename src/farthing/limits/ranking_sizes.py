"""The least that a rule pays for a close pair in order which does not know how close the two are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidOption
from farthing.limits.quantiles import divergence
from farthing.normal import ndtr

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GROWTH: Final = 1.015  # of information, from one look that a rule may stop at to the next
_STEP: Final = 0.03  # of X over the root of the information
_ENDS: Final = (-5.0, 7.0)  # of these
_FIRST: Final = 0.05  # of information, over one over the square of the largest lead
_LAST: Final = 150.0  # the same, of the smallest one: to go on from there costs nothing
_SHAVE: Final = 0.999  # for the grid of X: a finer one changes the number by less than a tenth of that
_MOST: Final = 40


def unknown_lead_limit(doublings: int, *, beta: float) -> float:
    """Return what a rule pays, as mu squared times (lead + 1)^2, at one of several leads at least.

    Args:
        doublings: how many times the smallest lead and one has to be doubled to be the largest lead and one, 0 to 40;
            each of the leads between is one of them.
        beta: the chance of a wrong order that is allowed on any data.

    Returns:
        The number; at 0 doublings it is that of `ranking_limit`, where the lead is known.

    Guarantee: a rule of Gaussian measurements of sums over rows that tells a wrong order with probability at most beta
        on all data, and the right one with probability at least 1 - beta at each of the leads, pays in the mean, at one
        of them at least, what is returned over (lead + 1)^2 or more.
    Proof: docs/proofs/limits.ranking.md, "A lead of unknown size".
    Assumes: the two groups are next to each other among the first places, and no other one is between them whichever of
        the leads it is; each row is a privacy unit of its own.
    Rounds: to nearest in a recursion on a grid of X, without interval arithmetic, then down by a thousandth: finer
        grids change it by less than a tenth of that. Looks that are 1.5 % apart make it smaller, by about a hundredth.

    >>> f"{unknown_lead_limit(16, beta=0.05) / unknown_lead_limit(0, beta=0.05):.2f}"
    '1.70'
    """
    if type(doublings) is not int or not (0 <= doublings <= _MOST and 0 < beta < 0.5):
        raise InvalidOption(
            "a limit of a lead of unknown size is of doublings",
            rule=f"a whole number of doublings from 0 to {_MOST}; 0 < beta < 0.5",
            got=f"doublings={doublings!r}, beta={beta!r}",
            next_step="doublings=16, beta=0.05",
        )
    leads = np.exp2(-np.arange(doublings + 1.0))
    odds, more = (1 - beta) / beta, doublings / 64  # these costs of errors are about the best; all are proved
    wrong, missed = 2 * (odds - 1 / odds) * (1 + more), 4 * math.log(odds) * (1 + more / 2)
    worth = least_cost(leads, wrong, missed) - beta * (wrong + missed)
    return max(float(worth), 2 * float(divergence(1 - beta, beta))) * _SHAVE


def least_cost(
    leads: NDArray[np.float64], wrong: float, missed: float, *, growth: float = _GROWTH, step: float = _STEP
) -> float:
    """Return the least mean cost of watching a Brownian motion, whose drift is none or one of some leads.

    Args:
        leads: float64[m], above 0.
        wrong: the cost of telling that there is a drift where there is none.
        missed: the cost of not telling it, in the mean over the leads.
        growth: of times, from each to the next.
        step: of X over the root of the time, on the grid.

    Returns:
        The mean over the leads of the time, times the square of the lead, and the costs of errors, where the best rule
        watches; a rule that stops between two times of the grid pays up to the earlier one, and is told the later one.

    >>> f"{least_cost(np.ones(1), 38.0, 12.0) - 0.05 * 50:.2f} of {1.8 * math.log(19):.2f}, which Wald's test costs"
    "5.24 of 5.30, which Wald's test costs"
    """
    first, last = _FIRST / leads.max() ** 2, _LAST / leads.min() ** 2
    times = first * growth ** np.arange(int(math.log(last / first) / math.log(growth)) + 2)
    shown = np.arange(_ENDS[0], _ENDS[1] + step / 2, step)
    ahead, value = _transition(shown, growth), np.zeros(len(shown))
    for time, before in zip(times[::-1], [*times[-2::-1], 0.0], strict=True):
        ratio = np.exp(np.minimum(leads * (shown[:, None] * math.sqrt(time)) - leads * leads * (time / 2), 600.0))
        go_on = ahead @ value + (ratio @ (leads * leads)) * ((time - before) / len(leads))
        value = np.minimum(np.minimum(go_on, ratio.mean(axis=1) * missed), wrong)
    begun = np.exp(-shown * shown / 2)
    return float(begun @ value / begun.sum())


def _transition(shown: NDArray[np.float64], growth: float) -> NDArray[np.float64]:
    """Return how X over the root of the time moves to the next time, by straight lines between the points of a grid.

    Straight lines are as if X were rounded to one of two neighbours: this spreads it by a sixth of the squared step.
    """
    step = shown[1] - shown[0]
    spread = math.sqrt((growth - 1) / growth - step * step / 6)
    away = (shown[None, :] - shown[:, None] / math.sqrt(growth)) / spread
    above = spread * (away * ndtr(away) + np.exp(-away * away / 2) / math.sqrt(2 * math.pi))
    found = np.zeros_like(above)
    found[:, 1:-1] = (above[:, 2:] - 2 * above[:, 1:-1] + above[:, :-2]) / step
    found[:, -1] = 1 - (above[:, -1] - above[:, -2]) / step
    found[:, 0] = 1 - found.sum(axis=1)
    return np.asarray(found)
