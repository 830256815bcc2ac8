"""Made-up rows for a release: how they are shared out, and how random their numbers are, so that members pay the least.

The search goes down the slope of what rows of a tree pay in the mean, in the shares of all made-up rows at once, with
the noise always as large as the room in the cells allows. Where members then pay less than they are spared for,
the noise shrinks again, first where it moves many cells together. The search need not find the best: what it found is
checked, and what members pay is computed from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.mechanisms.shared_noise import SharedNoise, crossed, summed
from farthing.planning.release_rows import frequent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from farthing.mechanisms.shared_noise import Information
    from farthing.planning.release_rows import RowTree

    Float64 = NDArray[np.float64]
    Single = NDArray[np.float32]
    Int64 = NDArray[np.int64]
    Subset = tuple[int, ...]

MOST_SHARED: Final = 1 << 18
"""The most cells of all tables for which rows are made up: more take too long."""

MOST_SHARES: Final = 1 << 21
"""The most shares of values, of all made-up rows: more take too long, and the ledger keeps them."""

_ROWS: Final = 300
_BATCH: Final = 500  # rows of the tree that stand for the members in one turn
_TURNS: Final = 400
_WORK: Final = 3e11  # about the most multiplications of a search
_CELL: Final = 1_500  # what powers of a cell take, for each column of its table, in multiplications
_STEEP: Final = (4.0, 48.0)  # powers by which the cells with the least room count
_STEPS: Final = (0.1, 0.04)  # of the logarithms of variances, and of shares
_AT_LAST: Final = 0.03  # of a step, in the last turn
_KEPT: Final = (0.9, 0.98)  # of the mean slope and of its square, in the next turn
_NOTHING: Final = 1e-9
_ENOUGH: Final = 0.3  # of what rows pay without made-up rows: where the mean one pays less, there is more than enough
_CALMING: Final = 150  # turns
_STEPPING: Final = 2.0  # in one of these turns, the most by which a variance changes
_BELOW: Final = 1 - 2.0**-9  # of the room, for what looks and grids take


@dataclass(frozen=True, eq=False)
class SharedProgram:
    """What the made-up rows of a release are chosen from.

    Attributes:
        tables: the places of the columns of each table, one or more each.
        room: for each table, the variance that each cell has room for, > 0.
        own: for each table, the variance that each cell has without made-up rows, the same in all of them.
        told: what the other noise tells of rows.
        tree: rows as the pilot tells of them.
    """

    tables: tuple[Subset, ...]
    room: tuple[Float64, ...]
    own: tuple[float, ...]
    told: Information
    tree: RowTree

    def best(self, grains: float) -> SharedNoise:
        """Return noise with which members pay little in the mean, where the total's residual has such grains.

        Guarantee: no cell has more variance of it than it has room for; the shares of each row add up to one.
        Proof: docs/proofs/mechanisms.residuals.md, section 6; it is checked, not trusted.
        Assumes: nothing.
        Rounds: to the nearest.
        """
        unit = 1 / float(self.told.of(self.tree.members[:1])[0])  # of variances, in float32 as near to one as may be
        near = replace(
            self,
            room=tuple(each / unit for each in self.room),
            own=tuple(each / unit for each in self.own),
            told=replace(self.told, noises={subset: noise / unit for subset, noise in self.told.noises.items()}),
        )
        patterns, numbers = near.fitting(*near.searched())
        numbers = near.calmed(patterns, numbers) * unit
        return SharedNoise(tuple(patterns), numbers * (grains * _BELOW))

    def searched(self) -> tuple[list[Float64], Float64]:
        """Return by column how made-up rows are shared out, and the variances of their numbers up to one factor."""
        most = most_rows(self.tree.sizes, self.told.noises)
        patterns = [each.astype(np.float32) for each in frequent(self.tree, most)]
        logs = np.zeros(len(patterns[0]), np.float32)
        turns, moves = self._turns(len(logs)), [_Moves() for _ in range(len(patterns) + 1)]
        for turn in range(turns):
            power = _STEEP[0] * (_STEEP[1] / _STEEP[0]) ** (turn / turns)
            length = 1 - (1 - _AT_LAST) * turn / turns
            height, slope, slopes = self.slopes(patterns, np.exp(logs), self._batch(turn), power)
            logs = (logs - math.log(height) - length * _STEPS[0] * moves[-1].next(slope)).astype(np.float32)
            for place, each in enumerate(slopes):  # each row stays of sum 1
                move = _centred(moves[place].next(_centred(each)))
                patterns[place] = (patterns[place] - length * _STEPS[1] * move).astype(np.float32)
        return [each.astype(np.float64) for each in patterns], np.exp(logs.astype(np.float64))

    def slopes(
        self, patterns: Sequence[Single], numbers: Single, rows: Int64, power: float
    ) -> tuple[float, Single, list[Single]]:
        """Return by which number variances are too large, and the slopes of the mean loss of rows once they fit: in the
        logarithms of the variances, and by column in the shares.

        Args:
            patterns: by column, how made-up rows are shared out.
            numbers: the variance of the number of each.
            rows: int64[rows, columns], whose loss it is.
            power: how steeply the fullest cells count.
        """
        height, rising, pushing = self._height(patterns, numbers, power)
        gains, paid = self._loss(patterns, numbers / height, rows)
        more = float((gains / numbers).sum())  # of the loss, as the height grows
        slope = more * rising - gains * height / numbers**2
        return height, slope * numbers, [own + more * push for own, push in zip(paid, pushing, strict=True)]

    def _loss(self, patterns: Sequence[Single], numbers: Single, rows: Int64) -> tuple[Single, list[Single]]:
        """Return the slopes of the mean loss of rows, over what they pay without made-up rows: in one over each
        variance, and by column in the shares.
        """
        weights = self.told.weights
        own, crossing = {}, {}
        for place, each in weights.items():
            scaled, most = (patterns[place] / each).astype(np.float32), np.float32(1 / each.sum())
            own[place] = scaled @ patterns[place].T - most
            crossing[place] = scaled[:, rows[:, place]] - most
        within, inner = self.told.slopes(own)
        across, outer = self.told.slopes(crossing)
        left = np.linalg.inv(within.astype(np.float64) + np.diag(1 / numbers.astype(np.float64))).astype(np.float32)
        held = left @ across
        unit, found = np.float32(1 / self.told.of(rows).sum()), []
        square = unit * held @ held.T
        for place, each in weights.items():
            slope = 2 * (square * inner[place]) @ patterns[place]
            order = np.argsort(rows[:, place], kind="stable")
            values, starts = np.unique(rows[order, place], return_index=True)
            slope[:, values] -= 2 * unit * np.add.reduceat((held * outer[place])[:, order], starts, axis=1)
            found.append((slope / each).astype(np.float32))
        return np.diag(square), found

    def _height(self, patterns: Sequence[Single], numbers: Single, power: float) -> tuple[float, Single, list[Single]]:
        """Return a norm of variances over the room, a little above the largest; and its slopes, in variances and by
        column in shares.
        """
        every: Any = numbers
        squares: list[Any] = [each**2 for each in patterns]
        full = [
            summed(every, [squares[place] for place in table]) / room
            for table, room in zip(self.tables, self._small, strict=True)
        ]
        most = max(float(each.max()) for each in full)
        height = most * math.fsum(float(((each / most) ** power).sum()) for each in full) ** (1 / power)
        rising, pushing = np.zeros_like(numbers), [np.zeros_like(each) for each in patterns]
        for table, own, room in zip(self.tables, full, self._small, strict=True):
            press = (own / height) ** (power - 1) / room
            for axis, place in enumerate(table):
                others = [squares[other] for other in table if other != place]
                flat = np.moveaxis(press, axis, -1).reshape(-1, press.shape[axis])
                pushed = crossed(np.ones_like(every), others) @ flat
                pushing[place] += 2 * numbers[:, None] * patterns[place] * pushed
            rising += (pushed * squares[table[-1]]).sum(axis=1)
        return height, rising, pushing

    def fitting(self, patterns: Sequence[Float64], numbers: Float64) -> tuple[list[Float64], Float64]:
        """Return rows whose shares add up to one, and variances as large as the fullest cell has room for."""
        patterns = [each + (1 - each.sum(axis=1, keepdims=True)) / each.shape[1] for each in patterns]
        squares = [each**2 for each in patterns]
        pairs = zip(self.tables, self.room, strict=True)
        full = [summed(numbers, [squares[place] for place in table]) / room for table, room in pairs]
        fitting = numbers / max(float(each.max()) for each in full)
        return patterns, np.maximum(fitting, fitting.max() * _NOTHING)

    def calmed(self, patterns: Sequence[Float64], numbers: Float64) -> Float64:
        """Return variances, none larger than before, at which cells move together less and the mean row still pays
        little enough; the same ones where it pays more already.

        What is made small is the mean square of the covariance that made-up rows give two cells, each over the variance
        of its own. It and what rows pay are convex in the variances, and each has its slope; a multiplier of the first
        goes up while rows pay less than enough.

        Args:
            patterns: by column, how made-up rows are shared out.
            numbers: the variance of the number of each.
        """
        rows = self._batch(0)
        within, crossing = self.told.between(patterns, patterns), self.told.told(rows, patterns)
        without, together = float(self.told.of(rows).mean()), self.together(patterns)
        found = best = numbers
        least, most, weight = math.inf, float(numbers @ together @ numbers), 1.0
        for _ in range(_CALMING):
            held = crossing @ np.linalg.inv(within + np.diag(1 / found))
            paid = 1 - float((held * crossing).sum(axis=1).mean()) / without
            pressing = together @ found
            if paid <= _ENOUGH and found @ pressing < least:
                best, least = found, float(found @ pressing)
            if not math.isfinite(least):
                break
            weight *= (_ENOUGH / max(paid, _NOTHING)) ** 2
            gains = (held**2).mean(axis=0) / (without * found**2)
            step = np.sqrt(gains / (weight * pressing / most))
            found = np.clip(found * np.clip(step, 1 / _STEPPING, _STEPPING), numbers.max() * _NOTHING, numbers)
        return best

    def together(self, patterns: Sequence[Float64]) -> Float64:
        """Return float64[rows, rows], for two made-up rows the square of the mean, over cells, of the product of what
        they add to it over the cell's own variance: with variances on both sides, the mean square of covariances.
        """
        grams = [each @ each.T for each in patterns]
        cells = sum(room.size for room in self.room)
        pairs = zip(self.tables, self.own, strict=True)
        parts = [np.prod([grams[place] for place in table], axis=0) / (own * cells) for table, own in pairs]
        return np.asarray(sum(parts) ** 2)

    @cached_property
    def _small(self) -> list[Single]:
        """The room, in float32."""
        return [each.astype(np.float32) for each in self.room]

    def _turns(self, many: int) -> int:
        """Return how many turns are taken, with so many made-up rows."""
        products = sum(len(subset) for subset in self.told.noises) * many * (many + _BATCH)
        cells = sum(len(table) * room.size for table, room in zip(self.tables, self.room, strict=True))
        shares = sum(self.tree.sizes) * many * (2 * many + _BATCH)
        return max(1, min(_TURNS, int(_WORK / (products + shares + cells * (4 * many + _CELL)))))

    def _batch(self, turn: int) -> Int64:
        """Return the rows of the tree that stand for the members in one turn."""
        start = turn * _BATCH % len(self.tree.members)
        return self.tree.members[start : start + _BATCH]


def most_rows(sizes: Sequence[int], subsets: Iterable[Subset]) -> int:
    """Return how many rows are made up at most: as many as the residuals have numbers.

    Args:
        sizes: how many values each column has.
        subsets: the places of the columns of each residual.
    """
    return min(_ROWS, sum(math.prod(sizes[place] - 1 for place in subset) for subset in subsets))


def few_enough(sizes: Sequence[int], tables: Iterable[Subset], subsets: Iterable[Subset]) -> bool:
    """Return whether rows are made up for tables, by their sizes alone: the search and what is kept of it stay small.

    Args:
        sizes: how many values each column has.
        tables: the places of the columns of each table.
        subsets: those of each residual.
    """
    cells = sum(math.prod(sizes[place] for place in table) for table in tables)
    return cells <= MOST_SHARED and sum(sizes) * most_rows(sizes, subsets) <= MOST_SHARES


def _centred(table: Single) -> Single:
    """Return a table less the mean of each of its rows."""
    return np.asarray(table - table.mean(axis=1, keepdims=True))


@dataclass(slots=True)
class _Moves:
    """Steps down a slope of which only rough values are known, each number by its own size [KingmaB15]."""

    mean: Single = field(default_factory=lambda: np.zeros(1, np.float32))
    square: Single = field(default_factory=lambda: np.zeros(1, np.float32))
    many: int = 0

    def next(self, slope: Single) -> Single:
        """Return the next step, of about one, up the slope."""
        self.many += 1
        self.mean = _KEPT[0] * self.mean + (1 - _KEPT[0]) * slope
        self.square = _KEPT[1] * self.square + (1 - _KEPT[1]) * slope**2
        mean, square = self.mean / (1 - _KEPT[0] ** self.many), self.square / (1 - _KEPT[1] ** self.many)
        return np.asarray(mean / (np.sqrt(square) + 1e-12))
