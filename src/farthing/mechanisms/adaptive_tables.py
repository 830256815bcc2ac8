"""Tables chosen one after the other: each time privately the one that a model of those before tells worst.

First every column by itself; values that are too rare to be seen are merged. Then rounds: a choice among the tables of
the workload and those over fewer of their columns, the chosen one measured with noise, the model fitted again. Where a
table taught less than its noise, later ones are measured twice as precisely. It ends when the loss is spent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from farthing.mechanisms.noisy_answers import chooser, deviation, noisy_answers, shared
from farthing.mechanisms.spanning_tree import RARE, merged
from farthing.privacy.loss import Pure
from farthing.sealed import Sealed, opened, sealed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from farthing.noise.bits import BitSource
    from farthing.privacy.loss import Booked

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]
    Columns = tuple[int, ...]

SHARES: Final = (Fraction(2, 10), Fraction(8, 10))
"""What the columns by themselves and the rounds get of a loss."""

CHOICE: Final = (Fraction(1, 10), Fraction(9, 10))
"""What the choice and the measurement get of a round."""

ROUNDS: Final = 4
"""How many rounds a column there are, before any of them is made more precise; one under a pure budget."""

WAYS: Final = 3
"""Of tables over more columns than so many, the tables over so many and themselves are candidates, no others."""

MOST_CELLS: Final = 1 << 18
"""The most cells that the cliques of a model may have together, when all of the loss is spent."""

_WEIGHT: Final = 1 << 16
_MOST: Final = 1 << 40


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredTable:
    """A table as it was measured: public.

    Attributes:
        columns: the places of its columns, in rising order.
        counts: float64, shaped as their sizes.
        variance: of the noise of each cell, > 0.
    """

    columns: Columns
    counts: Float64
    variance: float


class Model(Protocol):
    """What measured tables tell of others: a function of released numbers alone."""

    def counts(self, columns: Columns) -> Float64:
        """Return the counts by some columns, shaped as their sizes."""
        ...

    def cells(self, columns: Columns) -> int:
        """Return how many cells it would have if the table of these columns were measured, too."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredTables:
    """What was released: public.

    Attributes:
        ones: float64[values] of each column, the noisy counts of its values.
        kept: int64[values] of each column, the merged value that each value is in; what is too rare is in the last.
        tables: what was measured, over merged values: the columns, then what was chosen, in that order.
    """

    ones: tuple[Float64, ...]
    kept: tuple[Int64, ...]
    tables: tuple[MeasuredTable, ...]

    @property
    def total(self) -> float:
        """How many rows there are, at least 1: the mean over columns."""
        return max(1.0, float(np.mean([one.sum() for one in self.ones])))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many merged values each column has."""
        return tuple(int(places.max()) + 1 for places in self.kept)

    @property
    def chosen(self) -> tuple[Columns, ...]:
        """The columns of what was chosen, in order."""
        return tuple(table.columns for table in self.tables[len(self.ones) :])

    def more(self, table: MeasuredTable) -> MeasuredTables:
        """Return this with one more table."""
        return MeasuredTables(self.ones, self.kept, (*self.tables, table))


@dataclass(frozen=True, slots=True, eq=False)
class AdaptiveRounds:
    """What was released by some round, and what is left to pay: all that later rounds need, and public.

    Attributes:
        found: what was measured.
        left: the loss that later rounds have.
        price: what the next of them takes of it, if it does not take all.
    """

    found: MeasuredTables
    left: Booked
    price: Booked


def not_told(price: Booked, before: AdaptiveRounds | None) -> None:
    """Tell nobody what is about to be measured."""


@dataclass(frozen=True, slots=True)
class AdaptiveTables:
    """Measure columns; then choose the table that is told worst, measure it, and learn, until the loss is spent.

    Attributes:
        loss: what a release costs.
        tables: the places of the columns of each table of the workload, in rising order.
        weights: what each of them counts, > 0; all alike by default.
        reach: the most rows that one unit adds.

    Guarantee: a release costs at most `loss`: prices of rounds depend on released numbers alone and add up to it. A run
        that goes on after a round costs what was left after it, and nothing is measured before `begun` is told.
    Proof: docs/proofs/mechanisms.adaptive_tables.md; after [McKennaMSM22].
    Assumes: add/remove one unit adds or removes at most `reach` rows; all tables are of the same rows; `model_of` reads
        nothing but its argument.
    Rounds: noise up, epsilon of the choices down.
    """

    loss: Booked
    tables: tuple[Columns, ...]
    weights: tuple[float, ...] | None = None
    reach: int = 1

    @property
    def candidates(self) -> tuple[Columns, ...]:
        """The tables that are chosen from: those of the workload, and those over fewer of their columns."""
        return candidates_of(self.tables)

    @property
    def worth(self) -> Int64:
        """What each candidate counts, int64[candidates] from 1 to 2^16: columns in common with tables of the workload.

        >>> from farthing.privacy.loss import Gdp
        >>> AdaptiveTables(Gdp(1), ((0, 1), (0, 2))).worth.tolist()
        [43691, 21845, 21845, 65536, 65536]
        """
        weights = self.weights or (1.0,) * len(self.tables)
        columns = dict.fromkeys({at for table in self.tables for at in table}, 0.0)
        for table, weight in zip(self.tables, weights, strict=True):
            columns |= {at: columns[at] + weight for at in table}
        found = np.array([sum(columns[at] for at in one) for one in self.candidates], np.float64)
        return np.asarray(np.maximum(np.rint(found / found.max() * _WEIGHT), 1), np.int64)

    def rounds(self, columns: int) -> int:
        """Return how many rounds there are, if none is made more precise."""
        return columns * (1 if isinstance(self.loss, Pure) else ROUNDS)

    def first_deviation(self, columns: int) -> float:
        """Return the standard deviation of a cell of the first table that is chosen.

        >>> from farthing.privacy.loss import Gdp
        >>> round(AdaptiveTables(Gdp(1), ((0, 1),)).first_deviation(2), 3)
        3.333
        """
        price = shared(shared(self.loss, *SHARES)[1], 1, self.rounds(columns) - 1)[0]
        return self._deviation(shared(price, *CHOICE)[1])

    def run(
        self,
        counts: Mapping[Columns, Int64] | Sealed,
        columns: int,
        model_of: Callable[[MeasuredTables], Model],
        *,
        going: AdaptiveRounds | None = None,
        begun: Callable[[Booked, AdaptiveRounds | None], None] = not_told,
        bits: BitSource | None = None,
    ) -> MeasuredTables:
        """Return what was measured.

        Args:
            counts: the counts of each column and each candidate, plain or sealed.
            columns: how many columns there are.
            model_of: makes a model of what was measured.
            going: where a run goes on that was interrupted: what it then pays is what was left there.
            begun: is told the price of what is measured next before it is drawn, and what was released before it.
            bits: where random bits come from.
        """
        exact: Mapping[Columns, Int64] = opened(sealed(counts))
        ones_loss, rounds_loss = shared(self.loss, *SHARES)
        if going is None:
            begun(ones_loss, None)
            found, truth = self._ones(exact, columns, ones_loss, bits)
            going = AdaptiveRounds(found, rounds_loss, shared(rounds_loss, 1, self.rounds(columns) - 1)[0])
        else:
            truth = self._narrowed(exact, going.found.kept)
        model = model_of(going.found)
        while going.left.amount:
            price = going.left if going.left.amount < 2 * going.price.amount else going.price
            begun(price, going)
            left = type(price).of_amount(going.left.amount - price.amount)
            table = self._round(truth, model, price, 1 - left.amount / rounds_loss.amount, bits)
            before, found = model, going.found.more(table)
            model = model_of(found)
            more = 1 if _taught(before, model, table) else (2 if isinstance(price, Pure) else 4)
            going = AdaptiveRounds(found, left, type(price).of_amount(price.amount * more))
        return going.found

    def _round(
        self, truth: tuple[Int64, ...], model: Model, price: Booked, spent: Fraction, bits: BitSource | None
    ) -> MeasuredTable:
        """Return the table that was chosen, as it was measured: choice and measurement cost the price."""
        choice, measurement = shared(price, *CHOICE)
        scores = self.scores(truth, model, self._deviation(measurement), spent)
        at = list(scores)[int(chooser(choice).choose(list(scores.values()), self.moves, bits=bits))]
        return self._measured(self.candidates[at], truth[at], measurement, bits)

    def _ones(
        self, counts: Mapping[Columns, Int64], columns: int, loss: Booked, bits: BitSource | None
    ) -> tuple[MeasuredTables, tuple[Int64, ...]]:
        """Return the columns as they were measured, and the exact candidates over merged values."""
        each = shared(loss, *[1] * columns)[0]
        told = tuple(self._measured((at,), _held(counts[at,]), each, bits) for at in range(columns))
        kept = tuple(merged(one.counts, RARE * math.sqrt(one.variance)) for one in told)
        narrow = []
        for one, places in zip(told, kept, strict=True):
            sums: Float64 = np.bincount(places, one.counts).astype(np.float64)
            narrow.append(MeasuredTable(one.columns, sums, one.variance * len(places) / len(sums)))
        return MeasuredTables(tuple(one.counts for one in told), kept, tuple(narrow)), self._narrowed(counts, kept)

    def _narrowed(self, counts: Mapping[Columns, Int64], kept: tuple[Int64, ...]) -> tuple[Int64, ...]:
        """Return the exact candidates over merged values."""
        return tuple(narrowed(counts[one], [kept[at] for at in one]) for one in self.candidates)

    def _measured(self, columns: Columns, table: Int64, loss: Booked, bits: BitSource | None) -> MeasuredTable:
        """Return a table with noise: one row moves one cell by one."""
        noisy = noisy_answers(table, loss, squares=self.reach**2, total=self.reach, bits=bits)
        return MeasuredTable(columns, noisy, self._deviation(loss) ** 2)

    def _deviation(self, loss: Booked) -> float:
        """Return the standard deviation of the noise on a cell."""
        return deviation(loss, squares=self.reach**2, total=self.reach)

    def scores(self, truth: tuple[Int64, ...], model: Model, sd: float, spent: Fraction) -> dict[int, int]:
        """Return how badly a model tells each candidate that it has room for, by the candidate's place.

        Args:
            truth: the candidates over merged values.
            model: of what was measured.
            sd: the standard deviation of the next measurement's noise.
            spent: the share of the loss that is spent after it: so much of `MOST_CELLS` is the room.

        Guarantee: which candidates have a score is public, and one unit moves each by at most `moves`.
        Proof: docs/proofs/mechanisms.adaptive_tables.md, section 2.
        Assumes: the model is a function of released numbers.
        Rounds: to whole rows.
        """
        room, candidates, worth = int(MOST_CELLS * spent), self.candidates, self.worth.tolist()
        fitting = [at for at, one in enumerate(candidates) if len(one) == 1 or model.cells(one) <= room]
        return {at: worth[at] * _gain(truth[at], model.counts(candidates[at]), sd) for at in fitting}

    @property
    def moves(self) -> int:
        """The most that one unit moves a score: its rows, each at what the heaviest candidate counts."""
        return int(self.worth.max()) * self.reach


def candidates_of(tables: Sequence[Columns]) -> tuple[Columns, ...]:
    """Return what is chosen from: tables, and those over up to three of their columns; fewest columns first.

    >>> candidates_of([(0, 1), (0, 2)])
    ((0,), (1,), (2,), (0, 1), (0, 2))
    """
    fewer = {one for table in tables for many in range(1, WAYS + 1) for one in combinations(table, many)}
    return tuple(sorted(fewer | {table for table in tables if table}, key=lambda one: (len(one), one)))


def narrowed(table: Int64, places: Sequence[Int64]) -> Int64:
    """Return a table over merged values, of counts that are held at 2^40.

    >>> narrowed(np.array([[1, 2, 3], [4, 5, 6]]), [np.array([0, 1]), np.array([0, 1, 1])]).tolist()
    [[1, 5], [4, 11]]
    """
    found = np.zeros([int(one.max()) + 1 for one in places], np.int64)
    np.add.at(found, np.ix_(*places), np.asarray(table, np.int64))
    return _held(found)


def _held(table: Int64) -> Int64:
    """Return counts held at 2^40: each moves no further than it did."""
    return np.clip(np.asarray(table, np.int64), 0, _MOST)


def _gain(truth: Int64, told: Float64, sd: float) -> int:
    """Return how many rows a table is from what a model tells, less what noise would make of it, below 2^42 in size.

    One row moves it by at most one: told counts and noise are public whole numbers, and holding moves nothing further.
    """
    model = np.rint(np.clip(told, 0, _MOST)).astype(np.int64)
    apart = min(int(np.minimum(abs(truth - model), (1 << 62) // truth.size).sum()), _MOST)
    return apart - int(min(math.sqrt(2 / math.pi) * sd * truth.size, _MOST))


def _taught(before: Model, after: Model, table: MeasuredTable) -> bool:
    """Tell whether a measured table moved the model by more than its noise would: released numbers alone."""
    moved = float(abs(after.counts(table.columns) - before.counts(table.columns)).sum())
    return moved > math.sqrt(2 / math.pi * table.variance) * table.counts.size
