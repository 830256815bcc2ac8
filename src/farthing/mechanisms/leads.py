"""How far each chosen option is ahead of the next one that raced: told at the price of the choice itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import InvalidOption
from farthing.mechanisms.noises import noise_rate, noisy_field
from farthing.mechanisms.noisy_max import NoisyMax, PermuteAndFlip
from farthing.mechanisms.scores import checked_scores
from farthing.mechanisms.top_k import TopK
from farthing.noise.races import LEAD_BITS, leads
from farthing.normal import ndtri

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from farthing.mechanisms.noises import Noise
    from farthing.mechanisms.select import Selection
    from farthing.noise.bits import BitSource
    from farthing.privacy.numbers import Number

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]


_FREE: Final = ("exponential", "gaussian")
"""With Laplace noise leads are free as well, but exponential noise is better at the same price."""


@dataclass(frozen=True, slots=True)
class Led:
    """The chosen options, and how far each was ahead.

    Attributes:
        places: int64[k], the indices of the chosen options, best first.
        ahead: float64[k], the noisy score of each less that of the next in the race, in the scores' unit; one fewer
            where all options were chosen.
        slack: a lead less it is at most the true difference of any option above to any below, where that is positive:
            all leads at once with the confidence.
    """

    places: Int64
    ahead: Float64
    slack: float

    @property
    def settled(self) -> NDArray[np.bool_]:
        """Whether each place is right, all of them at once with the confidence: bool[k]."""
        sure = np.append(self.ahead > self.slack, np.ones(len(self.places) - len(self.ahead), np.bool_))
        return np.asarray(sure & np.append([True], sure[:-1]))


def tells_leads(mechanism: Selection | Any) -> bool:
    """Tell whether a selection can tell leads at its own price.

    >>> tells_leads(TopK(2, 1, "exponential")), tells_leads(TopK(2, 1, "gumbel"))
    (True, False)
    """
    return _noise(mechanism) is not None


def choose_with_leads(
    mechanism: Selection,
    scores: ArrayLike,
    sensitivity: Number = 1,
    *,
    monotone: bool = False,
    moved: int | None = None,
    confidence: float = 0.95,
    bits: BitSource | None = None,
) -> Led:
    """Choose as a selection does, and tell how far each chosen option was ahead of the next.

    Args:
        mechanism: a noisy maximum, permute and flip, or a top-k; with exponential or Gaussian noise.
        scores: int64 or float64[options], at least two and at least k of them.
        sensitivity: the most that one unit moves a score.
        monotone: whether one unit moves all scores the same way.
        moved: the most scores that one unit moves at all; it matters for Gaussian noise only.
        confidence: of `settled`.
        bits: where random bits come from; by default the operating system.

    Raises:
        InvalidOption: Gumbel noise (the exponential mechanism), whose bounded range leads would double, or Laplace.
        NoiseError: scores that are not numbers, or too few.

    Guarantee: the choice and all leads together have the selection's own loss; each of `settled` is right, all of them
        at once, with the confidence.
    Proof: docs/proofs/mechanisms.select.md, "Leads"; after [DingWZK19], who have Laplace noise.
    Assumes: as the selection.
    Rounds: each lead to a step of 2^-10 of the noise, once it is certain; the slack up by a step.

    >>> led = choose_with_leads(TopK(2, 1, "exponential"), [0, 900, 2000, 0])
    >>> led.places.tolist(), led.settled.tolist(), bool(abs(led.ahead[0] - 1100) < 99)
    ([2, 1], [True, True], True)
    """
    noise = _noise(mechanism)
    if noise is None:
        raise InvalidOption(
            "this selection has no leads to tell",
            rule="leads are told with exponential and Gaussian noise; with Gumbel noise they are not free",
            got=type(mechanism).__name__,
            next_step='TopK(k, epsilon, "exponential"), or PermuteAndFlip(epsilon)',
        )
    k = mechanism.k if isinstance(mechanism, TopK) else 1
    table = checked_scores(scores, at_least=max(2, k), one_row=True)
    terms: dict[str, Any] = {"monotone": monotone, "moved": moved}
    field = noisy_field(table, noise, mechanism.epsilon, sensitivity=sensitivity, **terms)
    rate = noise_rate(noise, mechanism.epsilon, len(table), sensitivity, **terms)
    told = min(k, len(table) - 1)
    places, ahead = leads(field, told, bits)
    if told < k:
        places = np.append(places, np.setdiff1d(np.arange(k), places))
    return Led(places, ahead / rate, (reach(noise, told, confidence) + 2.0**-LEAD_BITS) / rate)


def reach(noise: Noise, leads_told: int, confidence: float) -> float:
    """Return above which lead, in the noise's unit, an order is right: of so many leads all, with the confidence.

    It does not depend on how many options there are.

    Guarantee: P[some lead is above it, and an option above it is truly below one that is below it] <= 1 - confidence.
    Proof: docs/proofs/mechanisms.select.md, "Leads", "What a lead proves".
    Assumes: exponential or Gaussian noise, independent.
    Rounds: nothing; the slack is raised by a step.

    >>> round(reach("exponential", 1, 0.95), 3), round(reach("gaussian", 1, 0.95), 3)
    (2.996, 2.772)
    """
    share = (1 - confidence) / leads_told
    return -math.sqrt(2) * float(ndtri(share / 2)) if noise == "gaussian" else -math.log(share)


def _noise(mechanism: Any) -> Noise | None:
    """Return the noise of a selection whose leads are free, else None."""
    if isinstance(mechanism, PermuteAndFlip):
        return "exponential"
    if isinstance(mechanism, NoisyMax | TopK) and mechanism.noise in _FREE:
        return mechanism.noise
    return None
