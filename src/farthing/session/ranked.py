"""One quantile: found by a noisy bisection of the range, or by one private choice."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.accuracy.ranks import NoisyRanks, Ranks
from farthing.accuracy.stopping import two_sided
from farthing.mechanisms import geometric
from farthing.mechanisms.gaussian import GRAIN, GaussianMeasurements, Measured, worst_cost
from farthing.planning.ranked import Bisection, Choice, Sought, plan_ranked
from farthing.privacy.loss import BoundedRange, Pure
from farthing.query.aggregates import Quantile
from farthing.release import Cells
from farthing.rounding import FARTHING
from farthing.session.direct import parameter_of
from farthing.session.merging import merge
from farthing.session.method import Outcome
from farthing.session.progress import Progress
from farthing.session.records import read_blob, write_blob
from farthing.session.shield import hand_over

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from farthing.accuracy.quantiles import QuantileState
    from farthing.engines.engine import Histogram
    from farthing.ledger.entry import Receipt
    from farthing.planning import Frame, Plan
    from farthing.privacy.loss import Booked
    from farthing.query import Query
    from farthing.session.context import Context
    from farthing.session.request import Request

_FORMAT = b"farthing-quantile-2"
_FIRST_FORMAT = b"farthing-quantile-1"
_COLUMNS = ("value", "lower", "upper", "met")


@dataclass(frozen=True, slots=True)
class Ranked:
    """A question for one quantile.

    Attributes:
        query: the question, arranged.
        found: what earlier answers looked for, and what they found, newest last.
    """

    query: Query
    found: tuple[Found, ...] = ()

    @classmethod
    def of(cls, query: Query, blob: bytes | None) -> Ranked:
        """Return the method of a question."""
        return cls(query, () if blob is None else found_in(blob))

    def plan(self, frame: Frame) -> Plan:
        """Return the plan, given what was released before."""
        return plan_ranked(frame, [(one.sought, one.met) for one in self.found])

    def told(self, plan: Plan) -> Outcome:
        """Return the answer of a free plan: what was released before."""
        sought = _sought(plan)
        one = next(one for one in reversed(self.found) if one.sought.serves(sought, met=one.met))
        return Outcome((one.cells,), np.zeros(self.query.groups), plan.worst_price)

    def measured(self, context: Context, plan: Plan, receipt: Receipt, request: Request) -> Outcome:
        """Ask the engine, draw noise, and price what was drawn."""
        pricing, aggregate = plan.pricing, self.query.aggregate
        assert isinstance(aggregate, Quantile)  # noqa: S101  # the question of this method
        ranks = _ranks(context.engine.histogram(self.query, aggregate, receipt), self.query, aggregate)
        if isinstance(pricing, Choice):
            cells, price, paid = chosen(pricing, ranks)
            price = context.loss(min(receipt.reserved, price.farthings))
        else:
            assert isinstance(pricing, Bisection)  # noqa: S101  # the two kinds of plan of this method
            state = bisected(pricing, ranks, request)
            cells = Cells(state.value, state.lower, state.upper, state.met)
            price = pricing.coin.loss(worst_cost(state.paid, self.query.max_groups))
            paid = parameter_of(state.paid, price)
        return Outcome((cells,), paid, price, blob_of([Found(pricing.sought, cells)]))

    def merged(self, current: bytes | None, outcome: Outcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep: every answer, each paid for whole, that no newer one serves for."""
        assert outcome.blob is not None  # noqa: S101  # something was measured
        return merge(current, outcome.blob, receipt, read=None, both=_side_by_side)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """One answer: public, free to keep.

    Attributes:
        sought: what was looked for.
        cells: what was found.
    """

    sought: Sought
    cells: Cells

    @property
    def met(self) -> bool:
        """Whether all groups met their target."""
        return bool(self.cells.met.all())


def blob_of(found: Sequence[Found]) -> bytes:
    """Return the blob that the ledger stores."""
    columns = {f"{name}{place}": getattr(one.cells, name) for place, one in enumerate(found) for name in _COLUMNS}
    return write_blob(columns, {_FORMAT: json.dumps([one.sought.facts() for one in found]).encode()})


def found_in(blob: bytes) -> tuple[Found, ...]:
    """Return the answers in a blob, also in one of the first format, which held one; LedgerError for another form."""
    columns, facts = read_blob(blob, _FORMAT, _FIRST_FORMAT)
    if isinstance(facts, dict):
        return (Found(Sought(**facts), Cells(*(columns[name] for name in _COLUMNS))),)
    return tuple(
        Found(Sought(**one), Cells(*(columns[f"{name}{place}"] for name in _COLUMNS)))
        for place, one in enumerate(facts)
    )


def _side_by_side(theirs: bytes, ours: bytes) -> bytes:
    """Return both records as one, without answers that a newer one serves for."""
    new = found_in(ours)
    return blob_of([
        *(one for one in found_in(theirs) if not any(last.sought.serves(one.sought, met=last.met) for last in new)),
        *new,
    ])  # fmt: skip


def _sought(plan: Plan) -> Sought:
    """Return what a plan of this method looks for."""
    assert isinstance(plan.pricing, Bisection | Choice)  # noqa: S101  # the two kinds of plan of this method
    return plan.pricing.sought


def _ranks(found: Histogram, query: Query, aggregate: Quantile) -> Ranks:
    """Return a histogram as ranks, which show nothing."""
    return Ranks.of(found.groups, found.leaves, found.counts, groups=query.groups, leaves_log2=aggregate.leaves_log2)


def bisected(pricing: Bisection, ranks: Ranks, request: Request) -> QuantileState:
    """Find a quantile of every group by bisection.

    Guarantee: mu-GDP for mu^2 = the sum over the `max_groups` dearest groups of all grains spent on the group.
    Proof: [SmithT22]; docs/proofs/accuracy.quantiles.md.
    Assumes: one unit moves the rows at or below any threshold, less q of the rows, by at most `asked.sensitivity`.
    Rounds: as `mechanisms.gaussian.GaussianMeasurements`.
    """
    noisy = NoisyRanks(ranks, pricing.descent.asked)
    tell = request.progress
    return pricing.descent.run(
        noisy.measure,
        noisy.measure_count,
        groups=ranks.groups,
        progress=None if tell is None else lambda *facts: hand_over(tell, Progress(*facts)),
    )


def chosen(pricing: Choice, ranks: Ranks) -> tuple[Cells, Booked, NDArray[np.float64]]:
    """Choose a quantile of every group by the exponential mechanism, and return it, its price and each group's own.

    The count tells how large an epsilon the rank target needs; all groups are chosen for at the largest of these.

    Guarantee: as the sum of its parts, in each of a unit's groups: one count, one choice.
    Proof: docs/proofs/accuracy.quantiles.md; the choice's price follows from the released count.
    Assumes: as `accuracy.picked.ExponentialQuantile`.
    Rounds: the price up to whole farthings.
    """
    quantile, beta = pricing.quantile, pricing.sought.beta / 2
    ends = np.full(ranks.groups, quantile.asked.lower), np.full(ranks.groups, quantile.asked.upper)
    own = np.full(ranks.groups, float(_one(pricing, pricing.most).value) * (1 + 2.0**-50))
    if not pricing.count:
        value = quantile.values(quantile.choose(ranks, pricing.most))
        return Cells(value, *ends, np.ones(ranks.groups, np.bool_)), pricing.loss(pricing.most), own
    least = _least_rows(pricing, ranks, beta)
    wanted = max(quantile.price(max(1.0, quantile.asked.slack * rows), beta=beta) for rows in least.tolist())
    farthings = min(pricing.most, wanted)
    value = quantile.values(quantile.choose(ranks, farthings))
    met = quantile.rows_off(farthings, beta=beta) <= quantile.asked.slack * least
    own = np.full(ranks.groups, float(_one(pricing, farthings).value) * (1 + 2.0**-50))
    return Cells(value, *ends, met), pricing.loss(farthings), own


def _one(pricing: Choice, farthings: int) -> Booked:
    """Return the loss of a unit in one group."""
    if pricing.currency is Pure:
        return Pure.of_farthings(pricing.count + farthings)
    counted = pricing.currency.of_amount(pricing.count * GRAIN / (1 if pricing.currency.parameter == "mu" else 2))
    return BoundedRange.of_amount(farthings * FARTHING).to(pricing.currency) + counted


def _least_rows(pricing: Choice, ranks: Ranks, beta: float) -> NDArray[np.float64]:
    """Return what the rows of each group are at least, from a noisy count."""
    max_rows = pricing.quantile.asked.max_rows
    if pricing.currency is Pure:
        noisy = geometric.GeometricRelease(ranks.rows, max_rows).release(pricing.count)
        return np.asarray(noisy - float(geometric.half_width(pricing.count, max_rows, beta)))
    lane = GaussianMeasurements(ranks.rows, max_rows)
    grains = np.full(ranks.groups, pricing.count, np.int64)
    shown = lane.measure(Measured.nothing(ranks.groups), grains).values
    return np.asarray(shown - two_sided(beta) * max_rows / np.sqrt(pricing.count * float(GRAIN)))
