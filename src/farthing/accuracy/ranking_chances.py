"""How the chance of an error is shared among those who may have to lead another one, as places are settled."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from farthing.accuracy.ranking_bounds import stepped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Floats, Ints

_STEPS = 16
"""Chances are rounded down to so many steps in a factor of 2."""


class Weights(NamedTuple):
    """What a pilot says of how likely a group has to lead one that is just before it in the order: public.

    Attributes:
        place: int64[groups], each group's place in the pilot, from 0.
        ahead: float64[groups], above 0, its weight where the pilot showed that other one behind it.
        behind: float64[groups], above 0 and at most `ahead`, its weight where the pilot showed it before.

    Guarantee: as long as all cuts are right, the chances of all pairs of true neighbours add up to at most 1.
    Proof: docs/proofs/accuracy.ranking_places.md, "The chances".
    Assumes: all three depend on the pilot alone.
    Rounds: chances down.

    >>> weights = Weights(np.arange(3), np.array([4.0, 4.0, 1.0]), np.ones(3))
    >>> for blocks in ([np.arange(3)], [np.arange(1), np.arange(1, 3)]):
    ...     beside = weights.beside(blocks)
    ...     print(weights.chances(np.arange(1, 3), beside, foretold=True).round(2))
    [0.44 0.11]
    [0.65 0.32]
    """

    place: Ints
    ahead: Floats
    behind: Floats

    @property
    def alone(self) -> Floats:
        """Each group's part of the chance, whoever it leads, float64[groups]: they add up to at most 1."""
        return stepped(self.ahead / self.ahead.sum(), _STEPS)

    def beside(self, blocks: Sequence[Ints]) -> Floats:
        """Return what all other true neighbours weigh at most where one of its block is just before a group.

        Args:
            blocks: runs of places, best first, each the groups that hold them.

        Returns:
            float64[groups]. A group follows one of its block or of the block before; of two groups in a block, where
            one follows the other, that one follows the block before.
        """
        found, total, before = np.zeros(len(self.place)), 0.0, -1
        for block in blocks:
            last = int(self.place[block].max())
            each = self._after(block, max(last, before))
            total += float(each.sum())
            found[block] -= each
            if len(block) == 2:
                found[block] -= (each - self._after(block, before))[::-1]
            before = last
        return np.maximum(found + total, 0.0)

    def foretold(self, order: Ints) -> NDArray[np.bool_]:
        """Return after which of some groups in order the pilot showed all so far before all later ones: bool[n - 1]."""
        place = self.place[order]
        return np.asarray(np.maximum.accumulate(place)[:-1] < np.minimum.accumulate(place[::-1])[::-1][1:])

    def chances(self, groups: Ints, beside: Floats, *, foretold: bool) -> Floats:
        """Return the parts of the chance of an error of groups that lead others of their blocks, float64[n].

        Args:
            groups: int64[n].
            beside: what all others weigh at most, float64[groups].
            foretold: whether the pilot showed those others behind.
        """
        weight = (self.ahead if foretold else self.behind)[groups]
        return stepped(weight / (weight + beside[groups]), _STEPS)

    def _after(self, block: Ints, last: int) -> Floats:
        """Return what each of a block weighs at most after groups whose last place in the pilot is known."""
        return np.where(self.place[block] < last, self.ahead[block], self.behind[block])
