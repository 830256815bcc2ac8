"""How far a group has to lead before its lead is proved, at any number of looks: a mixture of likelihood ratios."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.noise_laws import COARSEST

if TYPE_CHECKING:
    from farthing.accuracy.jumps import Floats

_AROUND: Final = np.concatenate([np.arange(-30, -10), np.arange(-40, 41) / 4])  # log2 of a lead over the likely one
_WEIGHTS: Final = np.maximum(np.where(_AROUND < 0, 2.0**_AROUND, 2.0 ** (-3 * _AROUND)), 2.0**-8)
_PARTS: Final = np.log(_WEIGHTS / _WEIGHTS.sum())
_ROUNDS: Final = 40

GROWTH: Final = 1.05**4
"""The growth of epsilon from one look at Laplace noise to the next."""

_NEEDED: Final = 9.0  # scales of Laplace noise in a lead that is about to be proved
_WIDTH: Final = math.log(3)  # how far around the look where that seems likely most of a group's chance lies
_NORM: Final = math.pi * _WIDTH / math.log(GROWTH) + 1  # at least the sum of 1/(1 + (x/_WIDTH)^2) over all looks


def proved_leads(chances: Floats, likely: Floats, information: float) -> Floats:
    """Return the leads, float64[n], that noise passes at any look of a group with at most some chance.

    Of two groups that each hold information t, the lead Y of the noise has variance 2/t. It passes what is returned, at
    any t that is looked at, with probability at most `chances`.

    Args:
        chances: float64[n], above 0.
        likely: float64[n], above 0, the leads for which the bound is made; any others only make it larger.
        information: t, of each of the two groups.

    Guarantee: the bound holds over all looks at once, whatever number of them there is.
    Proof: docs/proofs/accuracy.ranking_places.md, "A bound over all looks"; after [HowardRMS21].
    Assumes: what seems likely and the chances do not depend on the noise.
    Rounds: up: Newton's steps begin above the solution of a convex equation, and stay there.

    >>> proved_leads(np.array([0.05]), np.array([1.0]), 16.0).round(2)
    array([0.96])
    """
    lead = likely[:, None] * 2.0**_AROUND
    goal, parts = -np.log(chances), _PARTS - lead * lead * (information / 4)
    sums = ((goal[:, None] - parts) * 2 / lead).min(axis=1)
    for _ in range(_ROUNDS):
        powers = lead * sums[:, None] / 2 + parts
        most = powers.max(axis=1)
        weights = np.exp(powers - most[:, None])
        total = weights.sum(axis=1)
        above = np.log(total) + most - goal
        sums = sums - np.maximum(above, 0) * total / (weights * lead / 2).sum(axis=1)
        if above.max() < 2.0**-30:
            break
    return np.asarray(sums / information)


def stepped(values: Floats, steps: int) -> Floats:
    """Return numbers above 0 rounded down to so many steps in a factor of 2, so that few differ.

    >>> stepped(np.array([1.0, 1.1, 1.3]), 4).round(3)
    array([1.   , 1.   , 1.189])
    """
    return np.asarray(2.0 ** (np.floor(np.log2(values) * steps) / steps))


def proved_leads_of(chances: Floats, likely: Floats, information: float) -> Floats:
    """Return the same where few pairs of a chance and a likely lead differ: each pair is computed once."""
    pairs, which = np.unique(chances + 1j * likely, return_inverse=True)  # complex: one sort of both
    return np.asarray(proved_leads(pairs.real, pairs.imag, information)[which])


def half_width_of(lead: Floats) -> Floats:
    """Return the bound on one group's noise where `lead` bounds that of two: it has half the variance.

    >>> half_width_of(np.array([1.0])).round(3)
    array([0.707])
    """
    return np.asarray(lead / math.sqrt(2))


def laplace_leads(chances: Floats, likely: Floats, precision: float) -> Floats:
    """Return the same for Laplace noise of scale 1/precision, at looks of which each has its part of the chance.

    Guarantee: over all looks at precisions that grow by `GROWTH`, what is returned is passed with at most the chances.
    Proof: docs/proofs/accuracy.ranking_places.md, "Under a pure budget".
    Assumes: integer noise that decays by at most `COARSEST` a step.
    Rounds: up: the solution of q = log((1 + q/2)/(2 chance)) is approached from above.

    >>> laplace_leads(np.array([0.05]), np.array([9.0]), 1.0).round(2)
    array([6.7])
    """
    chance = _part(chances, likely, precision)
    scales = 2 - 2 * np.log(2 * chance)
    for _ in range(_ROUNDS):
        scales = np.log((1 + scales / 2) / (2 * chance))
    return np.asarray((scales + 2.0**-30 + 2 * COARSEST) / precision)


def laplace_half_widths(chances: Floats, likely: Floats, precision: float) -> Floats:
    """Return what one group's Laplace noise passes on either side, at any look, with at most the chances in all."""
    return np.asarray((COARSEST - np.log(_part(chances, likely, precision))) / precision)


def _part(chances: Floats, likely: Floats, precision: float) -> Floats:
    """Return the part of the chances that a look has: they add up to less than the chances over all looks."""
    away = np.log(precision * likely / _NEEDED) / _WIDTH
    return np.asarray(chances / (1 + away * away) / _NORM)
