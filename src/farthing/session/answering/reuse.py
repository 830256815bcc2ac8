"""Answers that follow from released cells, free of charge: some of the stored groups, or sums over them.

What was released may be computed with for free. An answer is taken from the cells of another question only where both
speak of the same bounded truth, and only where its own interval meets the target that is asked.

A stored question is found by its identity, which begins with that of its *family*: rows, grouping columns, aggregate,
unit. The families that can hold an answer are few and known from the question itself: its own, for a part of the groups
that were asked before; and, for each set of columns that the predicate holds to listed constants, the family that
groups by these columns too. Within a family the ledger finds by tags which questions may hold the groups, so that the
work does not grow with what is stored: the sharpest few are read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import chain, combinations, islice, product
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy import cell_sums
from farthing.accuracy.report import IntervalReport, estimated
from farthing.accuracy.stopped_laws import GAUSSIAN_STOPS, LaplaceStops
from farthing.accuracy.stopped_sums import MOST_CELLS, StoppedSums
from farthing.errors import InvalidKeys
from farthing.mechanisms.geometric import rate_of
from farthing.planning.gaussian_count import GaussianCountPricing
from farthing.planning.laplace_count import Grid
from farthing.query.arrange import places
from farthing.query.keys import Keys
from farthing.query.normal import conjunction, conjuncts, constants, normal
from farthing.session.core.records import Record, keys_from_bytes
from farthing.session.core.transaction import stored_holding

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Floats
    from farthing.accuracy.stopped_laws import StopLaw
    from farthing.planning import Frame, Pricing
    from farthing.query import Query, Schema
    from farthing.query.expressions import Expression, Literal
    from farthing.session.core.context import Context

_MOST_COLUMNS: Final = 4
"""How many columns of constants are looked at; with n of them there are 3^n families."""

_MOST_FAMILIES: Final = 16
"""How many predicates are tried for each set of columns: all that four conditions can be left of."""

_MOST_TRIED: Final = 16
"""How many stored questions of a family are read, the sharpest of those that may hold the groups."""

_MOST_CELLS: Final = 10**7
"""How many stored cells one free answer may be made of."""


@dataclass(frozen=True, slots=True)
class ReusableCells:
    """Released cells from which a question can be answered.

    Attributes:
        record: what was released of the other question.
        cells: int64[groups, cells a group], the places of the cells whose sum is each group's answer.
    """

    record: Record
    cells: NDArray[np.int64]

    @property
    def chosen(self) -> Record:
        """The record of the chosen cells alone, where each group is one cell."""
        chosen, own = self.cells[:, 0], self.record.own
        return Record(
            self.record.measured.take(chosen),
            self.record.kept,
            self.record.keys,
            own=None if own is None else own.take(chosen),
        )


def identity(data: str, family: str, canonical: str) -> str:
    """Return the identity of a question: what tells its family comes first."""
    return prefix(data, family) + _hash([canonical])


def prefix(data: str, family: str) -> str:
    """Return how the identities of a family begin."""
    return _hash([data, family])


def found(context: Context, query: Query) -> Iterator[ReusableCells]:
    """Give the stored questions that hold the same bounded truth as an arranged query: whole groups, then sums.

    Guarantee: the sum of the chosen cells' bounded truths is the bounded truth of each group.
    Proof: docs/proofs/session.answering.reuse.md.
    Assumes: equal identities mean equal truths; the stored question gives up no group of any unit.
    Rounds: nothing.
    """
    if query.cuts_groups:
        return
    data = context.data(query)
    for columns, where in _families(query):
        wanted = _wanted(query, columns, context.engine.schema)
        if wanted is None:
            continue
        names = tuple(sorted((*query.by, *columns)))
        for stored in stored_holding(context, prefix(data, query.family(names, where)), wanted, _MOST_TRIED):
            record = Record.from_bytes(stored.blob)
            at = places(keys_from_bytes(record.listed), wanted)
            if at is not None:
                yield ReusableCells(record, at.reshape(query.groups, -1))


def _families(query: Query) -> Iterator[tuple[dict[str, list[Literal | None]], Expression | None]]:
    """Give the columns, with their constants, and the predicate of each family that may hold the answer."""
    if query.by:
        yield {}, query.where
    if not query.unit.is_row or query.where is None or query.joins or query.groupings:
        return
    parts = conjuncts(normal(query.where))
    held = {part: known for part in parts if (known := constants(part)) is not None and known[0] not in query.by}
    names = sorted({name for name, _ in held.values()})
    if len(names) > _MOST_COLUMNS:
        return
    for chosen in chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1)):
        mine = [part for part in parts if part in held and held[part][0] in chosen]
        columns = {name: _common([held[part][1] for part in mine if held[part][0] == name]) for name in chosen}
        for dropped in islice(product((True, False), repeat=len(mine)), _MOST_FAMILIES):
            gone = {part for part, drop in zip(mine, dropped, strict=True) if drop}
            yield columns, conjunction(tuple(part for part in parts if part not in gone))


def _common(lists: list[tuple[Literal | None, ...]]) -> list[Literal | None]:
    """Return the constants that are in every list."""
    return [value for value in lists[0] if all(value in other for other in lists[1:])]


def _wanted(query: Query, columns: dict[str, list[Literal | None]], schema: Schema) -> pa.Table | None:
    """Return the keys of each group's cells, group by group; None where no record can hold them."""
    import pyarrow as pa

    many = int(np.prod([len(values) for values in columns.values()], initial=1))
    if not 0 < many * query.groups <= _MOST_CELLS:
        return None
    wanted = pa.table({}) if query.keys is None else query.keys.table
    if not columns:
        return wanted
    lists = {name: [None if value is None else value.value for value in given] for name, given in columns.items()}
    try:
        extra = Keys.of(tuple(lists), lists, schema)
    except InvalidKeys:  # a constant that no row can hold, such as 1.5 for a whole number
        return None
    assert extra is not None  # noqa: S101  # there are columns
    group, cell = np.repeat(np.arange(query.groups), many), np.tile(np.arange(many), query.groups)
    named = {name: wanted.column(name).take(pa.array(group)) for name in wanted.column_names}
    return pa.table(named | {name: extra.column(name).take(pa.array(cell)) for name in extra.names})


def summed(found: ReusableCells, frame: Frame, pricing: Pricing) -> IntervalReport | None:
    """Return the sums of released cells with intervals at failure probability beta; None where one misses the target.

    Guarantee: each interval holds its truth with probability at least 1 - beta, and wherever it does the value is
        within the target of the truth.
    Proof: docs/proofs/session.answering.reuse.md.
    Assumes: the cells' truths are >= 0; noise of different cells is independent.
    Rounds: nothing.

    Args:
        found: the cells.
        frame: what is asked of each sum.
        pricing: how the question would be measured if it were paid.
    """
    target, beta, query = frame.target, frame.beta, frame.query
    if target is None or getattr(query.aggregate, "lower", 0.0) < 0:
        return None
    cells = _SummedCells.of(found, query, pricing)
    wanted = np.maximum(target.relative * np.abs(cells.values.sum(axis=1)), target.absolute)
    ends = cells.ends(beta, wanted)
    if ends is None:
        return None
    lower, upper = ends
    estimate = np.clip(cells.estimates.sum(axis=1), lower, upper)
    nearest = np.maximum(np.maximum(lower, -upper), 0.0)  # of all truths there, the one of the tightest target
    farthest = np.maximum(upper - estimate, estimate - lower)
    met = farthest <= np.maximum(target.relative * nearest, target.absolute) * (1 + 1e-12)
    return IntervalReport(estimate, lower, upper, met, estimate) if bool(met.all()) else None


@dataclass(frozen=True, slots=True)
class _SummedCells:
    """Released cells to be added up, under the law of their noise.

    Attributes:
        found: which cells.
        per_grain: what one unit of information buys.
        law: how such cells stop.
        grid: the steps of a chain; None for Gaussian noise.
    """

    found: ReusableCells
    per_grain: float
    law: StopLaw
    grid: Grid | None

    @classmethod
    def of(cls, found: ReusableCells, query: Query, pricing: Pricing) -> _SummedCells:
        """Return the cells, read as the question's books keep them."""
        if isinstance(pricing, GaussianCountPricing):
            return cls(found, pricing.coin.per_grain, GAUSSIAN_STOPS, None)
        grid = Grid.at(query, found.record.measured.unit_log2)
        most = min(found.record.kept.grains, grid.finest) * grid.per_farthing
        return cls(found, grid.per_farthing, LaplaceStops(most), grid)

    @property
    def values(self) -> Floats:
        """What was released of each cell, float64[groups, cells a group]."""
        return np.asarray(self.found.record.measured.values[self.found.cells])

    @property
    def information(self) -> NDArray[np.int64]:
        """What each cell has cost, int64[groups, cells a group]."""
        return np.asarray(self.found.record.measured.information[self.found.cells])

    @property
    def estimates(self) -> Floats:
        """Nearly unbiased estimates of the cells; the means of those that stopped by an earlier rule."""
        record = self.found.record
        estimates = estimated(self.values, record.kept.schedule(self.per_grain))
        if record.own is None:
            return estimates
        return np.where(np.isnan(record.own.half[self.found.cells]), estimates, self.values)

    def ends(self, beta: float, wanted: Floats) -> tuple[Floats, Floats] | None:
        """Return the ends of each sum's interval; None where it is surely wider than wanted, or not known."""
        kept, information = self.found.record.kept, self.information
        middle, schedule = self.values.sum(axis=1), kept.schedule(self.per_grain)
        stopped = self.found.record.own is None and bool(schedule.stopped(information, self.values).all())
        if stopped and kept.relative == 0 and information.min() == information.max():
            half = self._even(int(information.min()), beta)
            return middle - half, middle + half
        if not information.min():
            return None
        if information.size <= MOST_CELLS:
            held = np.float64(self.per_grain) * information
            sums = StoppedSums(self.values, held, kept.relative, schedule.floor, kept.critical, self.law)
            return sums.ends(beta) if bool((sums.least(beta) <= 1.5 * wanted).all()) else None
        if not stopped or kept.relative == 0 or self.grid is not None:
            return None
        each = np.maximum(kept.relative * np.abs(self.values), schedule.floor)
        half = cell_sums.stretch(kept, beta / information.shape[1]) * each.sum(axis=1)
        return middle - half, middle + half

    def _even(self, information: int, beta: float) -> Floats:
        """Return the half-width of sums of cells that were all measured once, float64[groups]."""
        groups, many = self.found.cells.shape
        if self.grid is None:
            half = cell_sums.even(many, information * self.per_grain, beta)
        else:
            half = cell_sums.geometric(many, rate_of(information, self.grid.sensitivity), beta) * self.grid.step
        return np.full(groups, half)


def _hash(facts: list[str]) -> str:
    """Return 32 hexadecimal digits of the SHA-256 of some texts."""
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
