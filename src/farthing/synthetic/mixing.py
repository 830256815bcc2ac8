"""Numbers that look random and are a public function of a seed: for the order of synthetic rows, never for noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GOLDEN: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1


def mixed(seed: int, stream: int, size: int) -> NDArray[np.uint64]:
    """Return uint64[size] by SplitMix64 from a seed and a stream's number.

    >>> mixed(0, 0, 2).tolist() == mixed(0, 0, 3)[:2].tolist(), bool(mixed(0, 0, 1)[0] == mixed(0, 1, 1)[0])
    (True, False)
    """
    start = (seed * 0xD1342543DE82EF95 + (stream + 1) * 0xDA942042E4DD58B5) & _MASK
    with np.errstate(over="ignore"):
        z = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(_GOLDEN) + np.uint64(start)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def shuffled(seed: int, stream: int, size: int) -> NDArray[np.int64]:
    """Return the numbers below `size` in a mixed order.

    >>> sorted(shuffled(1, 0, 4).tolist())
    [0, 1, 2, 3]
    """
    return np.argsort(mixed(seed, stream, size), kind="stable").astype(np.int64)


def apportioned(weights: NDArray[np.float64], rows: int) -> NDArray[np.int64]:
    """Return whole numbers that add up to `rows`, as near as can be in proportion to weights: running sums are rounded.

    Each number, and each sum of neighbours, is within one of its share. All alike where there is no weight.

    >>> apportioned(np.array([1.0, 1.0, 2.0]), 6).tolist()
    [2, 1, 3]
    """
    held = np.maximum(np.nan_to_num(weights, posinf=0.0), 0.0)
    held = held if held.sum() > 0 else np.ones(len(held))
    ends = np.cumsum(held)
    places = np.floor(ends * (rows / ends[-1]) + 0.5).astype(np.int64)
    places[-1] = rows
    return np.asarray(np.diff(np.minimum(places, rows), prepend=0), np.int64)
