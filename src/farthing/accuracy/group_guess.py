"""What a pilot says of groups and their totals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from farthing.accuracy.joint_prices import Flags, Floats

CLEAR: Final = 3.0
"""Standard deviations of a total from 0, at the end of a pilot."""

DOUBT: Final = 2.0
"""Standard deviations by which groups and totals may be smaller than a pilot says."""

TINY: Final = 1e-100


@dataclass(frozen=True, slots=True)
class GroupGuess:
    """About how large groups and totals are.

    Attributes:
        part, total, share: float64[groups].
        off, doubt: the standard deviations of the first two.
    """

    part: Floats
    total: Floats
    share: Floats
    off: Floats
    doubt: Floats

    @property
    def clear(self) -> Flags:
        """Whether a total is clearly not zero."""
        return np.asarray(self.total >= CLEAR * self.doubt)

    @property
    def surely(self) -> GroupGuess:
        """The same with groups and totals as small as they may well be."""
        part = np.maximum(self.part - DOUBT * self.off, self.part / 2)
        return replace(self, part=part, total=np.maximum(self.total - DOUBT * self.doubt, self.total / 2))

    def vague(self, relative: float, absolute: float, *, divided: bool) -> Floats:
        """Return the standard deviation of what a target allows, over that."""
        own = relative * self.part >= absolute * (self.total if divided else 1.0)
        if not divided:
            return np.where(own, np.minimum(self.off / np.maximum(self.part, TINY), 1.0), 0.0)
        off, size = np.where(own, self.off, self.doubt), np.where(own, self.part, self.total)
        return np.asarray(np.minimum(off / np.maximum(size, TINY), 1.0))
