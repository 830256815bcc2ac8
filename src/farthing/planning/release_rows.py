"""Rows like those that a pilot shows: a tree of pairs of columns, by what its tables of two columns tell.

They stand for the members of a release, and the search for the noise that spares members most begins with the frequent
ones among them, rare values taken together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.shared_noise import patterns_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Subset = tuple[int, ...]

_MODEL, _MEMBERS = 3_000, 12_000  # rows of the tree that are counted, and those that stand for members
_RARE: Final = (0.03, 0.1, 0.3)  # values of smaller parts of the rows are taken together
_CLEAR: Final = 4.0  # deviations by which a pair has to differ from what its columns alone would tell
_GOLDEN: Final = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class RowTree:
    """Rows as a pilot tells of them: columns that depend on one another in a tree of pairs.

    Attributes:
        sizes: how many values each column has.
        counts: by subset, about how many rows each cell has.
        deviations: by subset, the standard deviation of these counts.
    """

    sizes: tuple[int, ...]
    counts: Mapping[Subset, Float64]
    deviations: Mapping[Subset, float]

    @cached_property
    def parts(self) -> list[Float64]:
        """By column, about which part of the rows has each value: of sum 1."""
        found = []
        for place, size in enumerate(self.sizes):
            counts = np.maximum(self.counts.get((place,), np.ones(size)), 0) + 1e-3
            found.append(counts / counts.sum())
        return found

    def pair(self, one: int, other: int) -> Float64:
        """Return about which part of the rows has each two values of two columns: of sum 1."""
        apart = np.outer(self.parts[one], self.parts[other])
        subset = (min(one, other), max(one, other))
        if subset not in self.counts:
            return apart
        total = max(float(self.counts[()]), 1.0)
        seen = self.counts[subset] / total
        seen = seen if one < other else seen.T
        clear = abs(seen - apart) > _CLEAR * self.deviations.get(subset, 0.0) / total
        found = np.maximum(np.where(clear, seen, apart), 0)
        return np.asarray(found / found.sum())

    @cached_property
    def edges(self) -> list[tuple[int, int]]:
        """The pairs of the tree, from its root on: those whose columns tell the most of one another."""
        many = len(self.sizes)
        gains = np.full((many, many), -1.0)
        for one in range(many):
            for other in range(one + 1, many):
                known = (one, other) in self.counts
                gains[one, other] = gains[other, one] = _gain(self.pair(one, other)) if known else 0.0
        inside, found = [0], []
        while len(inside) < many:
            rest = [place for place in range(many) if place not in inside]
            best = max(((one, other) for one in inside for other in rest), key=lambda edge: gains[edge])
            found.append(best)
            inside.append(best[1])
        return found

    def rows(self, many: int) -> Int64:
        """Return int64[many, columns], rows of the tree: a function of it alone."""
        uniform = _mixed(many * len(self.sizes)).reshape(many, len(self.sizes))
        found = np.zeros((many, len(self.sizes)), np.int64)
        found[:, 0] = _picked(self.parts[0], uniform[:, 0])
        for one, other in self.edges:
            if (min(one, other), max(one, other)) not in self.counts:
                found[:, other] = _picked(self.parts[other], uniform[:, other])
                continue
            pair = self.pair(one, other) + 1e-12 * self.parts[other]
            for value in np.unique(found[:, one]).tolist():
                those = found[:, one] == value
                found[those, other] = _picked(pair[value] / pair[value].sum(), uniform[those, other])
        return found

    @cached_property
    def members(self) -> Int64:
        """int64[rows, columns], rows that stand for the members."""
        return self.rows(_MODEL + _MEMBERS)[_MODEL:]


def frequent(tree: RowTree, most: int) -> tuple[Float64, ...]:
    """Return by column float64[rows, size], how the most frequent rows of a tree are shared out over the values.

    Rare values are taken together in groups, and a row in one of them is shared out evenly.

    Args:
        tree: rows as a pilot tells of them.
        most: how many rows there may be.
    """
    rows = tree.rows(_MODEL)
    groups = [np.array([(parts < rare) & (len(parts) > 2) for rare in _RARE]) for parts in tree.parts]
    ranked: dict[bytes, tuple[int, int, Int64]] = {}
    for number in range(len(_RARE)):
        each = rows.copy()
        for place, masks in enumerate(groups):
            each[masks[number][rows[:, place]], place] = -1 - number
        found, times = np.unique(each, axis=0, return_counts=True)
        for rank, at in enumerate(np.argsort(-times, kind="stable")[:most].tolist()):
            key = _content(found[at], groups)
            ranked.setdefault(key, (rank, number, found[at]))
    chosen = np.array([row for _, _, row in sorted(ranked.values(), key=lambda one: one[:2])[:most]])
    return tuple(patterns_of(chosen[:, place], each) for place, each in enumerate(groups))


def _content(row: Int64, groups: Sequence[NDArray[np.bool_]]) -> bytes:
    """Return which values a row stands for, by column."""
    said = []
    for value, masks in zip(row.tolist(), groups, strict=True):
        one = masks[-1 - value] if value < 0 else np.arange(masks.shape[1]) == value
        said.append(np.packbits(one).tobytes())
    return b"".join(said)


def _gain(pair: Float64) -> float:
    """Return how much two columns tell of one another."""
    apart = np.outer(pair.sum(axis=1), pair.sum(axis=0))
    some = pair > 0
    return float((pair[some] * np.log(pair[some] / apart[some])).sum())


def _picked(parts: Float64, uniform: Float64) -> Int64:
    """Return for each number the value at which the running sum of parts passes it."""
    return np.asarray(np.minimum(np.searchsorted(np.cumsum(parts), uniform), len(parts) - 1), np.int64)


def _mixed(many: int) -> Float64:
    """Return numbers in [0, 1) that look random and are always the same, by SplitMix64: they hide nothing."""
    with np.errstate(over="ignore"):
        z = np.arange(1, many + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 2.0**53)
