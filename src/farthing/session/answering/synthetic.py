"""A model of a table, measured in one transaction: its whole loss is charged first, and its errors are told with it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.mechanisms.adaptive_tables import AdaptiveRounds, AdaptiveTables
from farthing.mechanisms.multiplicative_weights import Mwem
from farthing.mechanisms.noisy_answers import deviation, noisy_answers, shared
from farthing.mechanisms.projection import Projection
from farthing.mechanisms.small_database import SmallDatabase
from farthing.mechanisms.spanning_tree import MeasuredTree, SpanningTree, sums_of
from farthing.planning import Frame
from farthing.planning.synthetic import CHECK, SyntheticPlan
from farthing.privacy.loss import Pure
from farthing.query.words import about
from farthing.released_synthetic import SyntheticProducts, SyntheticRelease
from farthing.sealed import opened, sealed
from farthing.session.answering.crossed_counts import crossed_counts
from farthing.session.answering.release_options import ADAPTIVE, MWEM, PROJECTION, SMALL, TREE
from farthing.session.answering.synthetic_products import SyntheticProductsRequest
from farthing.session.answering.synthetic_record import from_bytes, rounds_to_bytes, to_bytes
from farthing.session.answering.synthetic_request import SMALL_ROWS, SyntheticRequest
from farthing.session.core.booked_question import Bill
from farthing.session.core.ceiling import ceiling
from farthing.session.core.merging import merge
from farthing.session.core.transaction import answer_and_book, begin_look, stored_measurement
from farthing.synthetic.cliques import CliqueFit, clique_model
from farthing.synthetic.model import HistogramModel, forest, spread_out
from farthing.synthetic.rows import base_counts, base_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from farthing.ledger.entry import Receipt, Stored
    from farthing.mechanisms.projection import HistogramEstimate
    from farthing.privacy.loss import Booked
    from farthing.sealed import Sealed
    from farthing.session.core.context import Context
    from farthing.synthetic import RowModel

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _BookedSynthetic:
    """A release by a model with what stands in the ledger about it, as a transaction books it."""

    asked: SyntheticRequest
    plan: SyntheticPlan
    kept: tuple[RowModel, Float64] | AdaptiveRounds | None

    @property
    def bill(self) -> Bill | None:
        """What it is to be charged: the whole loss, or what is left of a run that was interrupted; before anything is
        read.
        """
        if isinstance(self.kept, tuple):
            return None
        price, looks = self.plan.worst_price, self.asked.mechanism == ADAPTIVE
        words = self.plan.question
        return Bill(price, price, words, lambda: "name a smaller loss", "named loss", name="the release", looks=looks)

    def stored_answer(self) -> tuple[RowModel, Float64, Booked]:
        """Return what was measured before."""
        assert isinstance(self.kept, tuple)  # noqa: S101  # there is no bill
        return (*self.kept, self.asked.context.loss(0))

    def measured(self, receipt: Receipt) -> tuple[tuple[RowModel, Float64, Booked], Booked]:
        """Count, measure the model, then its errors."""
        asked, price = self.asked, self.plan.worst_price
        main, check = shared(self.plan.loss, CHECK, 1)
        counts = _counts(asked, receipt)
        if asked.mechanism == ADAPTIVE:
            model = self._adaptive(counts, main, check, receipt)
        else:
            model = _MEASURED[asked.mechanism](asked, counts, main)
        return (model, _errors(asked, counts, model, check), price), price

    def _adaptive(self, counts: Sealed, loss: Booked, check: Booked, receipt: Receipt) -> RowModel:
        """Return the model of tables that were chosen one after the other.

        Guarantee: each round is begun in the ledger, at the price of all on this receipt, before it is drawn; and so is
            the look at the errors.
        Proof: docs/proofs/mechanisms.adaptive_tables.md, section 3; docs/proofs/ledger.store.md, "Look by look".
        Assumes: what is measured after this costs at most `check`.
        Rounds: the price up to whole farthings.
        """
        asked, going = self.asked, self.kept if isinstance(self.kept, AdaptiveRounds) else None
        paid = [Fraction(0)]

        def begun(price: Booked, before: AdaptiveRounds | None) -> None:
            """Begin a round; with it, store what was measured before."""
            paid.append(paid[-1] + price.amount)
            so_far = asked.context.loss(type(price).of_amount(paid[-1]).farthings)
            begin_look(receipt, so_far, None if before is None else partial(_further, before, receipt))

        rule = AdaptiveTables(loss, asked.tables, asked.workload.weights, asked.reach)
        found = rule.run(counts, len(asked.sizes), CliqueFit, going=going, begun=begun)
        nothing = type(check).of_amount(Fraction(0))
        begun(check, AdaptiveRounds(found, nothing, nothing))
        return clique_model(found)

    def merged(self, current: bytes | None, answer: tuple[RowModel, Float64, Booked], receipt: Receipt) -> bytes:
        """Return what the ledger is to keep: one of those that were paid for and are done, the first."""
        ours, currency = to_bytes(answer[0], answer[1]), self.asked.context.budget.currency

        def done(theirs: bytes, own: bytes) -> bytes:
            """Return theirs, if that is done, too."""
            return theirs if isinstance(from_bytes(theirs, currency), tuple) else own

        return merge(current, ours, receipt, read=None, both=done)


def _further(ours: AdaptiveRounds, receipt: Receipt, current: bytes | None) -> bytes:
    """Return which of two runs that are not done the ledger keeps: the one that has less left; one that is done stays.

    Each of them was paid in full: a round costs the same whatever was measured before it.
    """

    def further(theirs: bytes, own: bytes) -> bytes:
        """Return theirs, if that has less left, or nothing."""
        found = from_bytes(theirs, type(ours.left))
        return own if isinstance(found, AdaptiveRounds) and ours.left <= found.left else theirs

    return merge(current, rounds_to_bytes(ours), receipt, read=None, both=further)


def plan(asked: SyntheticRequest) -> SyntheticPlan:
    """Return the price of a release by a model; it spends nothing."""
    loss = _loss(asked)
    return _find(asked, loss, stored_measurement(asked.context, asked.question(loss))).plan


def release(asked: SyntheticRequest) -> SyntheticRelease | SyntheticProducts:
    """Measure a model for a named loss, and book it.

    Guarantee: what leaves is as private as what the ledger charged.
    Proof: docs/proofs/mechanisms.spanning_tree.md, docs/proofs/mechanisms.adaptive_tables.md and
        docs/proofs/mechanisms.linear_queries.md for what is measured;
        docs/proofs/session.answering.one_question.md for the books.
    Assumes: an engine that keeps the contract of `engines.Engine`; the ledger is durable.
    Rounds: the loss down to whole farthings.
    """
    context, loss = asked.context, _loss(asked)
    with ceiling(context, asked.request.at_most):
        model, apart, price = answer_and_book(context, asked.question(loss), lambda stored: _find(asked, loss, stored))
    request, sd = asked.request, _slack(asked, shared(loss, CHECK, 1)[1])
    told: dict[str, Any] = {
        "name": asked.name,
        "mechanism": asked.mechanism,
        "paid": context.loss(price.farthings),
        "remaining": context.loss(context.ledger.remaining),
        "delta": context.budget.report_delta,
        "confidence": request.confidence,
        "about": f"{about(asked.query)}; a row counts if it is in every column's list; {context.where_kept}",
        "_keys": {name: one.column(name) for name, one in zip(asked.query.by, asked.lists, strict=True)},
        "_model": model,
        "_apart": apart,
        "_slack": critical(context, request.beta(len(sd) if request.simultaneous else 1)) * sd,
    }
    if isinstance(asked, SyntheticProductsRequest):
        axes = {axis: asked.lists[place].column(asked.query.by[place]) for axis, place in asked.places.items()}
        return SyntheticProducts(**told, workload=asked.workload, _axes=axes, _told=asked.products)
    return SyntheticRelease(**told, tables=asked.workload.tables)


def _slack(asked: SyntheticRequest, loss: Booked) -> Float64:
    """Return the deviation of each distance that is measured, at a loss for all of them, in rows."""
    if isinstance(asked, SyntheticProductsRequest):
        products = asked.products
        each = shared(loss, *[1] * len(products))[0]
        moves = [told.queries.total() * asked.reach for told in products]
        pairs = zip(products, moves, strict=True)
        return np.array([deviation(each, squares=move**2, total=move) * told.step for told, move in pairs])
    many = len(asked.tables)
    return np.full(many, deviation(loss, squares=many * asked.reach**2, total=many * asked.reach))


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
    kept = None if stored is None or stored.blob is None else from_bytes(stored.blob, context.budget.currency)
    made = SyntheticPlan(
        question=asked.words,
        loss=loss,
        worst_price=_left(asked, loss, kept),
        remaining=context.loss(context.ledger.remaining),
        delta=context.budget.report_delta,
        about=about(asked.query),
        confidence=asked.request.confidence,
        contest=asked.contest,
    )
    return _BookedSynthetic(asked, made, kept)


def _left(asked: SyntheticRequest, loss: Booked, kept: tuple[RowModel, Float64] | AdaptiveRounds | None) -> Booked:
    """Return what is still to be paid: the loss, what an interrupted run has left of it with the errors, or nothing."""
    if isinstance(kept, AdaptiveRounds):
        check = shared(loss, CHECK, 1)[1]
        return asked.context.loss(type(loss).of_amount(kept.left.amount + check.amount).farthings)
    return loss if kept is None else asked.context.loss(0)


def _counts(asked: SyntheticRequest, receipt: Receipt) -> Sealed:
    """Return the exact counts that are needed, sealed: of the tables, and of what the mechanism reads beside them."""
    return crossed_counts(asked.context, asked.query, asked.lists, asked.counted, receipt)


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
        queries = asked.queries
        cells = opened(counts)[tuple(range(len(asked.sizes)))]
        found: HistogramEstimate = measuring(loss, asked.reach, len(queries.groups)).run(sealed(cells), queries)
        return HistogramModel(asked.sizes, found.weights, found.total)

    return measured


_MEASURED: Final[Mapping[str, Callable[[SyntheticRequest, Any, Booked], RowModel]]] = {
    TREE: _tree,
    MWEM: _histogram(lambda loss, reach, tables: Mwem(loss, min(2 * tables, 20), reach)),
    PROJECTION: _histogram(lambda loss, reach, _: Projection(loss, reach)),
    SMALL: _histogram(lambda loss, reach, _: SmallDatabase(loss, SMALL_ROWS, reach)),
}


def _errors(asked: SyntheticRequest, counts: Sealed, model: RowModel, loss: Booked) -> Float64:
    """Return how far each table of the model's rows is from the truth, in the sum over cells, with noise.

    Guarantee: it costs at most `loss`: one row moves each distance by at most one.
    Proof: docs/proofs/synthetic.rows.md, section 1.
    Assumes: the model was released.
    Rounds: noise up.
    """
    rows, exact = base_rows(model), opened(counts)
    if isinstance(asked, SyntheticProductsRequest):
        return _product_errors(asked, exact, model, rows, loss)
    apart = [
        int(abs(exact[table] - base_counts(rows, model.total, asked.sizes, table)).sum()) for table in asked.tables
    ]
    many, reach = len(apart), asked.reach
    return noisy_answers(np.array(apart, np.int64), loss, squares=many * reach**2, total=many * reach)


def _product_errors(
    asked: SyntheticProductsRequest,
    exact: Mapping[tuple[int, ...], Int64],
    model: RowModel,
    rows: Int64,
    loss: Booked,
) -> Float64:
    """Return how far the answers of each product of the model's rows are from the truth, in the sum, with noise.

    Guarantee: it costs at most `loss`, an equal share for each: a row moves a distance by at most `queries.total()`.
    Proof: docs/proofs/synthetic.rows.md, section 1.
    Assumes: the model was released.
    Rounds: noise up; weights of answers to 2^-16 of the largest of a product.
    """
    products, found = asked.products, []
    each = shared(loss, *[1] * len(products))[0]
    for told in products:
        rising = tuple(sorted(told.places))
        truth = told.exact(exact[rising].transpose([rising.index(place) for place in told.places]))
        base = told.exact(base_counts(rows, model.total, asked.sizes, told.places))
        apart = np.minimum(abs(truth - base), (1 << 61) // len(truth)).sum(keepdims=True)
        move = told.queries.total() * asked.reach
        found.append(noisy_answers(apart, each, squares=move**2, total=move)[0] * told.step)
    return np.array(found)
