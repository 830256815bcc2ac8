"""The largest groups in the right order: which of them are settled, and which have to be measured again.

A *block* is a run of places whose groups are known, not their order. All groups start in one block, and all members of
a block hold the same information. At a look a block is cut in two wherever everything above the cut leads everything
below it by more than the noise could. Blocks of one group, and those beyond the last place wanted, are settled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.noise_laws import GAUSSIAN, LAPLACE, NoiseLaw
from farthing.accuracy.ranking_bounds import (
    half_width_of,
    laplace_half_widths,
    laplace_leads,
    proved_leads_of,
    stepped,
)
from farthing.accuracy.ranking_chances import Weights
from farthing.normal import ndtr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Floats, Ints

FIRST_GRAINS: Final = 1 << 20
"""Looks begin at 2^-36 of mu^2: there a count has an error of 2^18."""

RATIO: Final = 1.05
"""The growth of information from one look to the next."""

PILOT: Final = 0.02
"""The part of the cap at which the pilot ends."""

_CLEAR: Final = 0.7  # standard deviations of the pilot: it ends where no lead is smaller, if one place is close
_SHARED: Final = 3.0  # the same: places with smaller leads are close, and have the same part of the chances
_LIKELY: Final = 1.0  # the same: leads are not taken to be smaller
_FAR: Final = 4.0  # times the distance that was foreseen: leads are not taken to be larger, where ties are told
_STEEP: Final = 2.0  # how fast a place's weight falls with its lead
_SURE: Final = 1.4  # times its lead is what noise has to pass for the pilot to be wrong; its lead under Laplace noise
_EVEN: Final = 0.02  # of all weights goes to all groups alike


@dataclass(frozen=True, slots=True, eq=False)
class RankingPlaces:
    """How the first k places are settled, given what a pilot showed.

    Attributes:
        k: how many places are wanted.
        beta: the chance that anything that is told as settled is wrong; the same for the intervals.
        per_grain: information (1/variance, in answer units) that one grain buys.
        pilot: float64[groups], what the pilot showed; nothing else of it is used.
        pilot_grains: the information of the pilot.
        foreseen: (k, apart) as they were when the pilot was read.
        apart: groups are told as tied where no later one is larger by that much, in answer units; 0 for none.
        relative: the same, as a part of the larger of two.
        law: the law of the noise; per_grain is in its terms.

    Guarantee: with probability at least 1 - beta, all cuts are right, so that no group above one is smaller than one
        below it; and of groups told as tied none is smaller than a later one by as much as they may be apart. With
        probability at least 1 - beta, all intervals hold their truths at once.
    Proof: docs/proofs/accuracy.ranking_places.md.
    Assumes: means of the looks are N(truth, 1/(grains per_grain)), of independent groups, independent of the pilot, and
        leads have at most the noise that follows; or means have Laplace noise of scale 1/(grains per_grain).
    Rounds: nothing.

    >>> known = RankingPlaces(2, 0.05, 2.0**-56, np.array([900.0, 600.0, 40.0, 30.0]), 1 << 40, (2, 0.0))
    >>> shown = np.array([905.0, 598.0, 35.0, 41.0])
    >>> [block.tolist() for block in known.cut(np.arange(4), shown, 1 << 45, known.beside([np.arange(4)]))]
    [[0], [1], [3, 2]]
    """

    k: int
    beta: float
    per_grain: float
    pilot: Floats
    pilot_grains: int
    foreseen: tuple[int, float]
    apart: float = 0.0
    relative: float = 0.0
    law: NoiseLaw = GAUSSIAN
    _foresight: tuple[Weights, Floats] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_foresight", (self.weights(), self.likely()))

    @property
    def ties(self) -> bool:
        """Whether groups may be told as tied."""
        return self.apart > 0 or self.relative > 0

    @property
    def _noise(self) -> float:
        """The standard deviation of the lead of two groups in the pilot."""
        return math.sqrt(2 * self.law.variance) / float(self.law.precision(self.pilot_grains, self.per_grain))

    def _shown(self) -> tuple[Ints, Floats]:
        """Return the groups in the order of the pilot, and their leads there, float64[groups - 1].

        They are those of each wanted place over the next one, then those of the last wanted place over the others.
        """
        order = np.argsort(-self.pilot, kind="stable")
        shown, k = self.pilot[order], min(self.foreseen[0], len(order))
        return order, np.concatenate([(shown[:-1] - shown[1:])[:k], shown[k - 1] - shown[k + 1 :]])

    def vague(self) -> bool:
        """Return whether the pilot is too coarse to say which places are close: one lead of several is small soon."""
        leads = self._shown()[1]
        close = max(1, int((leads[: self.foreseen[0]] < _SHARED * self._noise).sum()))
        return max(float(leads.min()), self.foreseen[1]) < _CLEAR / math.sqrt(close) * self._noise

    def weights(self) -> Weights:
        """Return how the chance of an error is shared: the closer two groups are, and the surer to be larger, the more.

        A group leads the next one in the pilot, or, where the two are the other way round, the one before it.
        """
        order, leads = self._shown()
        k, ahead, behind = self.foreseen[0], np.zeros(len(order)), np.zeros(len(order))
        sure = _SURE if self.law is GAUSSIAN else 1.0
        hard = np.maximum(np.maximum(leads, _SHARED * self._noise), self.foreseen[1]) ** -_STEEP
        ahead[: len(hard[:k])] = hard[:k]
        behind[1:] = hard * ndtr(-sure * leads / self._noise)
        behind += _EVEN / len(order) * ahead.sum()
        place = np.argsort(order)
        return Weights(place, np.maximum(ahead, behind)[place], behind[place])

    def likely(self) -> Floats:
        """Return about how far each group leads the next one, or is led by the last wanted one, float64[groups]."""
        order, leads = self._shown()
        last = min(self.foreseen[0], len(leads)) - 1
        lead = np.concatenate([leads[: last + 1], leads[last:]])
        return stepped(np.maximum(lead, max(_LIKELY * self._noise, self.foreseen[1]))[np.argsort(order)], 4)

    def beside(self, blocks: Sequence[Ints]) -> Floats:
        """Return what all others weigh at most beside a group that may have to lead another, float64[groups]."""
        return self._foresight[0].beside(blocks)

    def cut(self, block: Ints, values: Floats, grains: int, beside: Floats) -> list[Ints]:
        """Return a block, in the order of what was shown, cut wherever the order is settled.

        Args:
            block: int64[n], groups that hold the same information.
            values: float64[groups], by which they are put in order.
            grains: that information: the leads of two of them have the noise of two groups that hold so much each.
            beside: float64[groups], what all others weigh.
        """
        order = block[np.argsort(-values[block], kind="stable")]
        shown = values[order]
        ahead, behind = (_leads(shown, shown, reach) for reach in self._reaches(order, grains, beside))
        return self._split(order, ahead, behind)

    def cut_core(
        self,
        block: Ints,
        core: NDArray[np.bool_],
        by_leads: tuple[Floats, int],
        alone: tuple[Floats, int],
        beside: Floats,
    ) -> list[Ints]:
        """Return the same of a block of which some groups are known by their leads over one another.

        Args:
            block: int64[n], groups whose own numbers hold the same information.
            core: bool[n], which of them were measured by their leads.
            by_leads: values, float64[groups], by which the block is put in order and two of the core are compared, and
                the grains that these leads are known with.
            alone: their own numbers, by which all other pairs are compared, and the grains of these.
            beside: float64[groups], what all others weigh.
        """
        order = np.argsort(-by_leads[0][block], kind="stable")
        block, core = block[order], core[order]
        shown, own = by_leads[0][block], alone[0][block]

        def settled(reach: Floats, own_reach: Floats) -> NDArray[np.bool_]:
            """Return where a cut is settled, given by how much a group has to lead."""
            least_own = own - own_reach
            among = _settled(np.where(core, shown - reach, np.inf), np.where(core, shown, -np.inf))
            over_others = _settled(least_own, np.where(core, -np.inf, own))
            over_core = _settled(np.where(core, np.inf, least_own), np.where(core, own, -np.inf))
            return np.asarray(among & over_others & over_core)

        reaches = (self._reaches(block, grains, beside) for grains in (by_leads[1], alone[1]))
        ahead, behind = (settled(*reach) for reach in zip(*reaches, strict=True))
        return self._split(block, ahead, behind)

    def _split(self, order: Ints, ahead: NDArray[np.bool_], behind: NDArray[np.bool_]) -> list[Ints]:
        """Return groups in order, cut where it is settled: for those that the pilot showed so, and for any."""
        return np.split(order, 1 + np.flatnonzero(np.where(self._foresight[0].foretold(order), ahead, behind)))

    def _reaches(self, groups: Ints, grains: int, beside: Floats) -> tuple[Floats, Floats]:
        """Return by how much groups have to lead others of their blocks, float64[n]: ones shown behind, and any."""
        beta, (weights, likely) = self.beta / 2 if self.ties else self.beta, self._foresight
        chances = (weights.chances(groups, beside, foretold=foretold) for foretold in (True, False))
        ahead, behind = (self._reach(beta * chance, likely[groups], grains) for chance in chances)
        return ahead, behind

    def tied(self, block: Ints, start: int, values: Floats, grains: int) -> bool:
        """Return whether the wanted places of a block, in order, may be told as tied; `start` places are before it."""
        if not self.ties:
            return False
        shown = values[block]
        reach = self._tie_reach(block, grains)
        close = shown * (1 - self.relative) - self.apart
        return bool(_leads(shown, close, reach)[: self.k - start].all())

    def surely_tied(self, groups: Ints, grains: int) -> bool:
        """Return whether groups that hold so much are told as tied, or cut, whatever is shown."""
        return bool((self._tie_reach(groups, grains) < self.apart).all())

    def open(self, blocks: Sequence[Ints], values: Floats, information: Ints) -> list[int]:
        """Return the places in the list of the blocks that are not settled."""
        found, start = [], 0
        for number, block in enumerate(blocks):
            grains = int(information[block[0]])
            unclear = len(block) > 1 and (grains == 0 or not self.tied(block, start, values, grains))
            if start < self.k and unclear:
                found.append(number)
            start += len(block)
        return found

    def half_widths(self, information: Ints) -> Floats:
        """Return the half-widths of intervals that hold for all groups at once, float64[groups]; infinite at 0."""
        width, likely = np.full(len(information), np.inf), self._foresight[1]
        chances = self._foresight[0].alone
        for grains in np.unique(information[information > 0]).tolist():
            here = np.flatnonzero(information == grains)
            if self.law is LAPLACE:
                width[here] = laplace_half_widths(self.beta * chances[here], likely[here], grains * self.per_grain)
            else:
                width[here] = half_width_of(self._reach(self.beta / 2 * chances[here], likely[here], grains))
        return width

    def _tie_reach(self, groups: Ints, grains: int) -> Floats:
        """Return the same for ties: no lead far above the distance that was foreseen is likely."""
        chances, likely = self._foresight[0].alone[groups], self._foresight[1][groups]
        most = _FAR * self.foreseen[1] or math.inf
        return self._reach(self.beta / 2 / self.k * chances, np.minimum(likely, most), grains)

    def _reach(self, chances: Floats, likely: Floats, grains: int) -> Floats:
        """Return by how much groups have to lead, float64[n], at their chances of an error."""
        leads = laplace_leads if self.law is LAPLACE else proved_leads_of
        return leads(chances, likely, grains * self.per_grain)


def looks(start: int, most: int, law: NoiseLaw = GAUSSIAN) -> Ints:
    """Return the looks, int64, from the first of at least `start` grains up to `most`: the same for all questions.

    Those at Laplace noise are every fourth, since each has its own part of the chance of an error.

    >>> looks(1 << 20, 1153434).tolist()
    [1048576, 1101005]
    """
    count = math.floor(math.log(max(most / FIRST_GRAINS, 1)) / math.log(RATIO)) + 2
    levels = np.rint(FIRST_GRAINS * RATIO ** np.arange(count)).astype(np.int64)[:: 4 if law is LAPLACE else 1]
    return np.asarray(levels[(levels >= start) & (levels <= most)])


def _leads(shown: Floats, close: Floats, reach: Floats) -> NDArray[np.bool_]:
    """Return after which of the groups, in order, every one so far leads every later one: bool[n - 1].

    Args:
        shown: float64[n], falling.
        close: float64[n], falling: what a group is led by, the same as shown or less.
        reach: float64[n], what has to be exceeded.
    """
    return _settled(shown - reach, close)


def _settled(least: Floats, most: Floats) -> NDArray[np.bool_]:
    """Return after which of the groups, in order, `least` of every one so far is above `most` of every later one."""
    later = np.maximum.accumulate(most[::-1])[::-1]
    return np.asarray(np.minimum.accumulate(least)[:-1] > later[1:])
