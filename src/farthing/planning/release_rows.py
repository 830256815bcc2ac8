"""Made-up rows for a release: which rows, and how random their numbers may be, so that members pay the least.

The rows are like those that a pilot shows: a tree of pairs of columns, by what its tables of two columns tell. Rare
values are taken together, so that the noise in each of their cells is small. How random the numbers are is a convex
program: the least mean loss of rows of the tree at which every cell keeps its width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.shared_noise import SharedNoise, pressed, summed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from farthing.mechanisms.shared_noise import Information

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Subset = tuple[int, ...]

MOST_SHARED: Final = 1 << 18
"""The most cells of all tables for which rows are made up: more take too long."""

_ROWS: Final = 450
_MODEL, _MEMBERS = 3_000, 1_500  # rows of the tree that are counted, and those that stand for members
_RARE: Final = (0.03, 0.1, 0.3)  # values of smaller parts of the rows are taken together
_CLEAR: Final = 4.0  # deviations by which a pair has to differ from what its columns alone would tell
_TURNS: Final = 30
_STEEP: Final = (4.0, 32.0)  # powers by which the cells with the least room count
_FACTOR: Final = 50.0
_GOLDEN: Final = 0x9E3779B97F4A7C15
_NOTHING: Final = 1e-9
_BELOW: Final = 1 - 2.0**-9  # of the room, for what looks and grids take


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
                gains[one, other] = gains[other, one] = _gain(self.pair(one, other))
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
        found[:, 0] = _picked(np.broadcast_to(self.parts[0], (many, self.sizes[0])), uniform[:, 0])
        for one, other in self.edges:
            pair = self.pair(one, other) + 1e-12 * self.parts[other]
            found[:, other] = _picked((pair / pair.sum(axis=1, keepdims=True))[found[:, one]], uniform[:, other])
        return found

    @cached_property
    def members(self) -> Int64:
        """int64[rows, columns], rows that stand for the members."""
        return self.rows(_MODEL + _MEMBERS)[_MODEL:]


@dataclass(frozen=True, eq=False)
class SharedProgram:
    """What the made-up rows of a release are chosen from.

    Attributes:
        tables: the places of the columns of each table, one or more each.
        room: for each table, the variance that each cell has room for, > 0.
        told: what the other noise tells of rows.
        tree: rows as the pilot tells of them.
    """

    tables: tuple[Subset, ...]
    room: tuple[Float64, ...]
    told: Information
    tree: RowTree

    def best(self, grains: float) -> SharedNoise:
        """Return the noise with which members pay the least in the mean, where the total's residual has such grains.

        Guarantee: no cell has more variance of it than it has room for.
        Proof: docs/proofs/mechanisms.residuals.md, section 6; it is checked, not trusted.
        Assumes: nothing.
        Rounds: to the nearest.
        """
        noise = made_up(self.tree)
        numbers, least = np.ones(len(noise.rows)), math.inf
        within = self.told.between(noise.patterns, noise.patterns)
        crossing, own = self.told.told(self.tree.members, noise.patterns), self.told.of(self.tree.members)
        found = numbers
        for turn in range(_TURNS):
            power = _STEEP[0] * (_STEEP[1] / _STEEP[0]) ** (turn / _TURNS)
            numbers, fitting, press = self._pressed(noise, numbers, power)
            loss = float((own - ((crossing @ _inverse(within, fitting)) * crossing).sum(axis=1)).mean())
            if loss < least:
                least, found = loss, fitting
            gain = (((crossing @ _inverse(within, numbers)) / numbers) ** 2).mean(axis=0) / press
            gain /= (gain * numbers * press).sum() / (numbers * press).sum()
            numbers = numbers * np.sqrt(np.clip(gain, 1 / _FACTOR, _FACTOR))
        return SharedNoise(noise.rows, noise.groups, np.maximum(found, found.max() * _NOTHING) * (grains * _BELOW))

    def _pressed(self, noise: SharedNoise, numbers: Float64, power: float) -> tuple[Float64, Float64, Float64]:
        """Return variances of numbers, scaled to the room by a norm and by the largest excess; and its slopes."""
        along = [[noise.patterns[place] ** 2 for place in table] for table in self.tables]
        excess = [summed(numbers, each) / room for each, room in zip(along, self.room, strict=True)]
        most = max(float(each.max()) for each in excess)
        norm = most * math.fsum(float(((each / most) ** power).sum()) for each in excess) ** (1 / power)
        slopes = np.zeros(len(numbers))
        for each, own, room in zip(along, excess, self.room, strict=True):
            slopes += pressed((own / norm) ** (power - 1) / room, each)
        return numbers / norm, numbers / most, slopes


def made_up(tree: RowTree) -> SharedNoise:
    """Return rows that are frequent in a tree, rare values taken together in groups; the scales are all 1."""
    rows = tree.rows(_MODEL)
    groups = [np.array([(parts < rare) & (len(parts) > 2) for rare in _RARE]) for parts in tree.parts]
    ranked: dict[bytes, tuple[int, int, Int64]] = {}
    for number in range(len(_RARE)):
        each = rows.copy()
        for place, masks in enumerate(groups):
            each[masks[number][rows[:, place]], place] = -1 - number
        found, times = np.unique(each, axis=0, return_counts=True)
        for rank, at in enumerate(np.argsort(-times, kind="stable")[:_ROWS].tolist()):
            key = _content(found[at], groups)
            ranked.setdefault(key, (rank, number, found[at]))
    chosen = sorted(ranked.values(), key=lambda one: one[:2])[:_ROWS]
    return SharedNoise(np.array([row for _, _, row in chosen]), tuple(groups), np.ones(len(chosen)))


def _content(row: Int64, groups: Sequence[NDArray[np.bool_]]) -> bytes:
    """Return which values a row stands for, by column."""
    said = []
    for value, masks in zip(row.tolist(), groups, strict=True):
        one = masks[-1 - value] if value < 0 else np.arange(masks.shape[1]) == value
        said.append(np.packbits(one).tobytes())
    return b"".join(said)


def _inverse(within: Float64, numbers: Float64) -> Float64:
    """Return (K + 1/V)^-1 for variances of numbers."""
    return np.asarray(np.linalg.inv(within + np.diag(1 / numbers)))


def _gain(pair: Float64) -> float:
    """Return how much two columns tell of one another."""
    apart = np.outer(pair.sum(axis=1), pair.sum(axis=0))
    some = pair > 0
    return float((pair[some] * np.log(pair[some] / apart[some])).sum())


def _picked(parts: Float64, uniform: Float64) -> Int64:
    """Return for each row the value at which its running sum of parts passes a number."""
    found = (np.cumsum(parts, axis=1) < uniform[:, None]).sum(axis=1)
    return np.asarray(np.minimum(found, parts.shape[1] - 1), np.int64)


def _mixed(many: int) -> Float64:
    """Return numbers in [0, 1) that look random and are always the same, by SplitMix64: they hide nothing."""
    with np.errstate(over="ignore"):
        z = np.arange(1, many + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 2.0**53)
