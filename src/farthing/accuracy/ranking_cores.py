"""Which groups of a ranking are measured by their leads: a few whose places are wanted, and how much of the price."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from farthing.accuracy.jumps import Floats, Ints

OWN: Final = 8
"""Of what groups pay that are measured by leads, one part in so many goes to their own numbers, at least."""

FEW: Final = 12
"""The groups of a core at most: of n groups, leads are known n/(n - 1) times as well for the same price."""

_GAIN: Final = 1.15  # how many times as well leads have to be known for a core to be chosen among others
_APART: Final = 2.0  # standard deviations by which the others have to be behind it
_SPARE: Final = 1.5  # times what their distance seems to need goes to their own numbers


class Core(NamedTuple):
    """The groups of a block that are measured by leads, and the part of their price that is for their own numbers."""

    groups: Ints
    own: float


def core_of(block: Ints, wanted: int, values: Floats, noise: float, begun: Ints, *, whole: bool) -> Core | None:
    """Return the core of a block; None where every group is to be measured by itself.

    Args:
        block: int64[n], groups that hold the same information.
        wanted: how many of the first places of the block are wanted.
        values: float64[groups], about what the groups have.
        noise: the standard deviation of a difference of two of these.
        begun: int64[m], the groups of the block of which leads were measured.
        whole: whether a core has to be the whole block.

    What is chosen is about the price alone: docs/proofs/accuracy.ranking_places.md, "Small blocks, and cores".

    >>> core_of(np.arange(9), 1, np.array([90.0, 80, 20, 19, 18, 17, 16, 15, 14]), 5.0, np.arange(0), whole=False)
    Core(groups=array([0, 1]), own=0.125)
    """
    if len(begun) in {1, len(block)} or (not len(begun) and len(block) <= FEW and whole):
        return None if len(begun) == 1 else Core(block, 1 / OWN)
    if whole:
        return None
    order = block[np.argsort(-values[block], kind="stable")]
    shown, wanted = values[order], min(wanted, len(block) - 1)
    if len(begun):
        outside = np.setdiff1d(block, begun)
        behind = float(shown[wanted - 1] - values[outside].max())
        return Core(begun, _own(shown, wanted, behind, noise, len(begun)))
    found, best = None, _GAIN
    for size in range(max(2, wanted), min(FEW, len(block)) + 1):
        behind = float(shown[wanted - 1] - shown[size]) if size < len(block) else math.inf
        own = _own(shown, wanted, behind, noise, size)
        known = own + (1 - own) * size / (size - 1)
        if behind > _APART * noise and (known > best or (size == len(block) and found is None)):
            found, best = Core(np.sort(order[:size]), own), known
    return found


def _own(shown: Floats, wanted: int, behind: float, noise: float, size: int) -> float:
    """Return the part for own numbers with which the others are proved to be behind when the core is settled."""
    least = max(float((shown[:-1] - shown[1:])[:wanted].min()), noise)
    part = _SPARE * (least / behind) ** 2 * size / (size - 1) if behind > noise else 1.0
    return min(max(part, 1 / OWN), 1.0)
