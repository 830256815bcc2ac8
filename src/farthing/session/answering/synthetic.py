"""A model of a table, measured in one transaction: its whole loss is charged first, and its errors are told with it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import InvalidOption, InvalidTarget
from farthing.mechanisms.linear_queries import MOST_CELLS, TableQueries
from farthing.mechanisms.multiplicative_weights import Mwem
from farthing.mechanisms.noisy_answers import deviation, noisy_answers, shared
from farthing.mechanisms.projection import Projection
from farthing.mechanisms.small_database import MOST_DATABASES, SmallDatabase, databases
from farthing.mechanisms.spanning_tree import MeasuredTree, SpanningTree, sums_of
from farthing.planning import Frame
from farthing.planning.synthetic import SyntheticPlan
from farthing.privacy.loss import Pure
from farthing.query.words import about
from farthing.released_synthetic import SyntheticRelease
from farthing.sealed import opened, sealed
from farthing.session.answering import reuse
from farthing.session.answering.crossed_counts import crossed_counts
from farthing.session.answering.release_request import MOST_CELLS as MOST_RELEASED
from farthing.session.answering.release_request import MOST_COLUMNS, check_name
from farthing.session.answering.synthetic_record import from_bytes, to_bytes
from farthing.session.core.booked_question import Bill
from farthing.session.core.ceiling import ceiling
from farthing.session.core.merging import merge
from farthing.session.core.transaction import answer_and_book, stored_measurement
from farthing.session.reading.request import Request
from farthing.synthetic.model import HistogramModel, forest, pairs_of, spread_out
from farthing.synthetic.rows import base_counts, base_rows
from farthing.workloads import Marginals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from farthing.ledger.entry import Receipt, Stored
    from farthing.mechanisms.projection import HistogramEstimate
    from farthing.privacy.loss import Booked
    from farthing.query import Query
    from farthing.query.keys import Keys
    from farthing.sealed import Sealed
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import QuestionReader
    from farthing.synthetic import RowModel

    Float64 = NDArray[np.float64]

TREE: Final = "tree"
MWEM: Final = "mwem"
PROJECTION: Final = "projection"
SMALL: Final = "small database"

MECHANISMS: Final = (TREE, MWEM, PROJECTION, SMALL)
"""The mechanisms whose error is not known beforehand: they take a loss, and tell their errors."""

CHECK: Final = 9
"""One part in so many more of a loss measures the errors."""

_SMALL_ROWS: Final = 4
_OPTIONS: Final = ("loss", "confidence", "simultaneous", "max_epsilon", "cap", "at_most")


@dataclass(frozen=True, slots=True)
class SyntheticRequest:
    """A release by a model, read and checked.

    Attributes:
        context: the data and the books.
        query: the rows, the unit and the bounds, by all columns in the order of their names.
        lists: the listed values of each column, in one order.
        workload: the tables whose errors are told, and which the model is made for.
        request: the price and the confidence.
        mechanism: how.
        name: the answer column.
    """

    context: Context
    query: Query
    lists: tuple[Keys, ...]
    workload: Marginals
    request: Request
    mechanism: str
    name: str

    @property
    def reach(self) -> int:
        """The most rows that one unit adds."""
        return self.query.max_rows * min(self.query.max_groups, math.prod(map(len, self.lists)))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(map(len, self.lists))

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The places of the columns of each table, in rising order."""
        place = {name: at for at, name in enumerate(self.query.by)}
        return tuple(tuple(sorted(place[column] for column in table)) for table in self.workload.tables)

    @property
    def words(self) -> str:
        """The question in words."""
        where = f" WHERE {self.query.where}" if self.query.where is not None else ""
        part = f" [part {self.query.part}]" if self.query.part is not None else ""
        return f"{self.workload!r} by {self.mechanism} FROM {self.query.table}{part}{where}"

    def question(self, loss: Booked) -> str:
        """Return its identity in the ledger."""
        facts = [self.query.canonical(), self.query.max_groups, *(keys.fingerprint for keys in self.lists)]
        facts += [self.workload.tables, self.mechanism, loss.farthings]
        return reuse.identity(self.context.data(self.query), f"synthetic {self.query.family()}", json.dumps(facts))


def read(  # noqa: PLR0917  # what a release is asked by
    context: Context,
    reader: QuestionReader,
    workload: object,
    keys: Any,
    options: Mapping[str, Any],
    about_what: Mapping[str, Any],
) -> SyntheticRequest:
    """Return a release by a model, read and checked; nothing is charged.

    Args:
        context: the data and the books.
        reader: reads keys and conditions.
        workload: the tables.
        keys: the listed values of each column.
        options: mechanism, loss, confidence, simultaneous, max_epsilon, cap, at_most.
        about_what: where, bounds, name.
    """
    mechanism = str(options["mechanism"])
    if not isinstance(workload, Marginals) or not 1 <= len(workload.columns) <= MOST_COLUMNS:
        raise InvalidOption(
            f"{mechanism!r} is for tables",
            rule=f"a workload of marginals over 1 to {MOST_COLUMNS} columns",
            got=type(workload).__name__,
            next_step='marginals(["sex", "age"], ways=2); mechanism="auto" for prefixes, ranges and conditions',
        )
    given = {name: value for name, value in options.items() if name != "mechanism" and value is not None}
    unknown = sorted(set(given) - set(_OPTIONS))
    if unknown or given.get("loss") is None:
        raise InvalidTarget(
            f"the error of {mechanism!r} is not known before it is paid",
            rule="it takes loss=, and tells the error of every table with its answer",
            got=", ".join(unknown) or "no loss",
            next_step='loss=farthing.Gdp(0.1); mechanism="auto" takes absolute=, relative= and rms=',
        )
    names = tuple(sorted(workload.columns))
    query, shown = reader.crossing(names, keys=keys, where=about_what.get("where"), bounds=about_what.get("bounds"))
    name = about_what.get("name", "count")
    check_name(name, query.by)
    lists = tuple(one.arranged() for one in shown)
    asked = SyntheticRequest(context, query, lists, workload, Request.of(**given), mechanism, name)
    _check_sizes(asked)
    return asked


def _check_sizes(asked: SyntheticRequest) -> None:
    """Refuse domains and tables that a mechanism cannot hold: with their size, the limit, and what would do."""
    cells = math.prod(asked.sizes)
    tables = {*asked.tables, *(pairs_of([tuple(range(len(asked.sizes)))]) if asked.mechanism == TREE else ())}
    told = sum(math.prod(asked.sizes[at] for at in table) for table in tables)
    if told > MOST_RELEASED:
        raise _too_large("tables", told, MOST_RELEASED, "fewer ways, fewer columns, or fewer listed values")
    if asked.mechanism != TREE and cells > MOST_CELLS:
        raise _too_large(
            f"{asked.mechanism!r}", cells, MOST_CELLS, 'mechanism="tree" and "residuals" never hold the domain'
        )
    if asked.mechanism == SMALL and databases(cells, _SMALL_ROWS) > MOST_DATABASES:
        raise _too_large(
            f"{SMALL!r}",
            databases(cells, _SMALL_ROWS),
            MOST_DATABASES,
            '"mwem" chooses tables, not databases',
            counted="databases",
        )


def _too_large(what: str, size: int, most: int, instead: str, *, counted: str = "cells") -> InvalidOption:
    """Return the refusal of a domain."""
    return InvalidOption(
        f"the domain is too large for {what}",
        rule=f"at most {most:,} {counted}",
        got=f"{size:,}",
        next_step=instead,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _BookedSynthetic:
    """A release by a model with what stands in the ledger about it, as a transaction books it."""

    asked: SyntheticRequest
    plan: SyntheticPlan
    kept: tuple[RowModel, Float64] | None

    @property
    def bill(self) -> Bill | None:
        """What it is to be charged: the whole loss, before anything is read."""
        if self.kept is not None:
            return None
        price = self.plan.loss
        return Bill(price, price, self.plan.question, lambda: "name a smaller loss", "named loss", name="the release")

    def stored_answer(self) -> tuple[RowModel, Float64, Booked]:
        """Return what was measured before."""
        assert self.kept is not None  # noqa: S101  # there is no bill
        return (*self.kept, self.asked.context.loss(0))

    def measured(self, receipt: Receipt) -> tuple[tuple[RowModel, Float64, Booked], Booked]:
        """Count, measure the model, then its errors."""
        asked, loss = self.asked, self.plan.loss
        main, check = shared(loss, CHECK, 1)
        counts = _counts(asked, receipt)
        model = _MEASURED[asked.mechanism](asked, counts, main)
        return (model, _errors(asked, counts, model, check), loss), loss

    def merged(self, current: bytes | None, answer: tuple[RowModel, Float64, Booked], receipt: Receipt) -> bytes:
        """Return what the ledger is to keep: one of those that were paid for, the first."""
        return merge(current, to_bytes(answer[0], answer[1]), receipt, read=None, both=lambda theirs, _: theirs)


def plan(asked: SyntheticRequest) -> SyntheticPlan:
    """Return the price of a release by a model; it spends nothing."""
    loss = _loss(asked)
    return _find(asked, loss, stored_measurement(asked.context, asked.question(loss))).plan


def release(asked: SyntheticRequest) -> SyntheticRelease:
    """Measure a model for a named loss, and book it.

    Guarantee: what leaves is as private as what the ledger charged.
    Proof: docs/proofs/mechanisms.spanning_tree.md and docs/proofs/mechanisms.linear_queries.md for what is measured;
        docs/proofs/session.answering.one_question.md for the books.
    Assumes: an engine that keeps the contract of `engines.Engine`; the ledger is durable.
    Rounds: the loss down to whole farthings.
    """
    context, loss = asked.context, _loss(asked)
    with ceiling(context, asked.request.at_most):
        model, apart, price = answer_and_book(context, asked.question(loss), lambda stored: _find(asked, loss, stored))
    request, many = asked.request, len(asked.tables)
    sd = deviation(shared(loss, CHECK, 1)[1], squares=many * asked.reach**2, total=many * asked.reach)
    return SyntheticRelease(
        name=asked.name,
        tables=asked.workload.tables,
        mechanism=asked.mechanism,
        paid=context.loss(price.farthings),
        remaining=context.loss(context.ledger.remaining),
        delta=context.budget.report_delta,
        confidence=request.confidence,
        about=f"{about(asked.query)}; a row counts if its value is listed in every column; {context.where_kept}",
        _keys={name: one.column(name) for name, one in zip(asked.query.by, asked.lists, strict=True)},
        _model=model,
        _apart=apart,
        _slack=critical(context, request.beta(many if request.simultaneous else 1)) * sd,
    )


def critical(context: Context, beta: float) -> float:
    """Return the half-width of an interval, in standard deviations of its noise.

    Geometric noise of rate a has deviation sqrt(2)/a nearly, and is beyond t/a with a chance of at most 2 exp(-t).
    """
    from scipy.special import ndtri

    pure = context.budget.currency is Pure
    return math.log(2 / beta) + 1 if pure else float(-ndtri(beta / 2))


def _loss(asked: SyntheticRequest) -> Booked:
    """Return the loss that was named, in whole farthings, within the limit that was named beside it."""
    context, request = asked.context, asked.request
    frame = Frame.of(
        asked.query,
        request=request,
        limit=None,
        parts=1,
        budget=context.budget,
        remaining=context.loss(context.ledger.remaining),
    )
    assert frame.cap is not None  # noqa: S101  # a loss was named
    return frame.cap


def _find(asked: SyntheticRequest, loss: Booked, stored: Stored | None) -> _BookedSynthetic:
    """Plan a release by a model under what is known of it."""
    context = asked.context
    kept = None if stored is None or stored.blob is None else from_bytes(stored.blob)
    made = SyntheticPlan(
        question=asked.words,
        loss=loss,
        worst_price=context.loss(0) if kept is not None else loss,
        remaining=context.loss(context.ledger.remaining),
        delta=context.budget.report_delta,
        about=about(asked.query),
        confidence=asked.request.confidence,
    )
    return _BookedSynthetic(asked, made, kept)


def _counts(asked: SyntheticRequest, receipt: Receipt) -> Sealed:
    """Return the exact counts that are needed, sealed: of the tables, and of all pairs or of all columns together."""
    every = tuple(range(len(asked.sizes)))
    more = {*((at,) for at in every), *pairs_of([every])} if asked.mechanism == TREE else {every}
    return crossed_counts(asked.context, asked.query, asked.lists, {*asked.tables, *more}, receipt)


def _tree(asked: SyntheticRequest, counts: Sealed, loss: Booked) -> RowModel:
    """Return the model of a spanning tree."""
    found = SpanningTree(loss, asked.reach).run(counts, len(asked.sizes))
    return tree_model(found)


def tree_model(found: MeasuredTree) -> RowModel:
    """Return the model of a measured tree, from released numbers alone."""
    sums = [sums_of(one, places) for one, places in zip(found.ones, found.kept, strict=True)]
    narrow = forest(sums, dict(zip(found.edges, found.pairs, strict=True)), found.total, found.edges)
    return spread_out(narrow, found.ones, found.kept)


def _histogram(
    measuring: Callable[[Booked, int, int], Any],
) -> Callable[[SyntheticRequest, Sealed, Booked], RowModel]:
    """Return how a mechanism that holds the histogram is run."""

    def measured(asked: SyntheticRequest, counts: Sealed, loss: Booked) -> RowModel:
        """Return the model of the histogram."""
        queries = TableQueries(asked.sizes, asked.tables)
        cells = opened(counts)[tuple(range(len(asked.sizes)))]
        found: HistogramEstimate = measuring(loss, asked.reach, len(asked.tables)).run(sealed(cells), queries)
        return HistogramModel(asked.sizes, found.weights, found.total)

    return measured


_MEASURED: Final[Mapping[str, Callable[[SyntheticRequest, Any, Booked], RowModel]]] = {
    TREE: _tree,
    MWEM: _histogram(lambda loss, reach, tables: Mwem(loss, min(2 * tables, 20), reach)),
    PROJECTION: _histogram(lambda loss, reach, _: Projection(loss, reach)),
    SMALL: _histogram(lambda loss, reach, _: SmallDatabase(loss, _SMALL_ROWS, reach)),
}


def _errors(asked: SyntheticRequest, counts: Sealed, model: RowModel, loss: Booked) -> Float64:
    """Return how far each table of the model's rows is from the truth, in the sum over cells, with noise.

    Guarantee: it costs at most `loss`: one row moves each distance by at most one.
    Proof: docs/proofs/synthetic.rows.md, section 1.
    Assumes: the model was released.
    Rounds: noise up.
    """
    rows, exact = base_rows(model), opened(counts)
    apart = [
        int(abs(exact[table] - base_counts(rows, model.total, asked.sizes, table)).sum()) for table in asked.tables
    ]
    many, reach = len(apart), asked.reach
    return noisy_answers(np.array(apart, np.int64), loss, squares=many * reach**2, total=many * reach)
