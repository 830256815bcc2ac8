"""One count or sum: refined in looks with Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.accuracy.baselines import doubling_cost
from farthing.accuracy.report import IntervalReport, reported, reread
from farthing.accuracy.schedule import FIRST_GRAINS
from farthing.accuracy.stored_promise import HeldIntervals, OwnPromises, StoredPromise
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, GaussianMeasurements, Measured, worst_cost
from farthing.planning.gaussian_count import GaussianCountPricing, coin_of, plan_gaussian_count
from farthing.planning.stored_measurements import HeldMeasurements
from farthing.release import Cells
from farthing.session.answering import optimality
from farthing.session.answering.looks import BegunLooks, BegunMeasurements, in_looks
from farthing.session.answering.method import AskOutcome
from farthing.session.answering.refinement_loop import BLOCK, refine
from farthing.session.answering.share_of_groups import reached, refine_share
from farthing.session.answering.traced import Watched
from farthing.session.core.merging import merge
from farthing.session.core.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.jumps import Ints
    from farthing.ledger.entry import Receipt
    from farthing.planning import Frame, Plan
    from farthing.planning.laplace_count import LaplaceCountPricing
    from farthing.privacy.loss import Booked
    from farthing.progress import Watcher
    from farthing.query import Query
    from farthing.session.answering.refinement_loop import Measurements
    from farthing.session.core.context import Context
    from farthing.trace import TraceLook


@dataclass(frozen=True, slots=True)
class GaussianCountMethod:
    """A question whose answer is one measure.

    Attributes:
        query: the question, arranged.
        blob: what the ledger keeps of it, or None.
        record: the same, read.
    """

    query: Query
    blob: bytes | None
    record: Record | None

    @classmethod
    def of(cls, query: Query, blob: bytes | None) -> GaussianCountMethod:
        """Return the method of a question."""
        return cls(query, blob, None if blob is None else Record.from_bytes(blob))

    def plan(self, frame: Frame) -> Plan[GaussianCountPricing]:
        """Return the plan, given what was released before."""
        record = self.record
        standing = None
        if record is not None:
            top = np.sort(record.measured.information)[-self.query.max_groups :]
            kept = reached(record.kept, record.measured, coin_of(frame).per_grain)
            standing = HeldMeasurements(held_in(record, kept), tuple(int(n) for n in top))
        return plan_gaussian_count(frame, standing)

    def stored_answer(self, plan: Plan[GaussianCountPricing]) -> AskOutcome:
        """Return the answer of a free plan: what was released before."""
        assert self.record is not None  # noqa: S101  # a plan is free where something stands
        return self._outcome(plan, self.record.measured, self.record.measured, plan.worst_price, None)

    def measured(
        self, context: Context, plan: Plan[GaussianCountPricing], receipt: Receipt, watcher: Watcher | None
    ) -> AskOutcome:
        """Ask the engine, draw noise, and price what was drawn as the receipt says."""
        before = Measured.nothing(self.query.groups) if self.record is None else self.record.measured
        after, price, looks = self._refined(context, plan, receipt, before, watcher)
        return replace(self._outcome(plan, before, after, price, self._record(plan, after)), looks=looks)

    def _refined(
        self,
        context: Context,
        plan: Plan[GaussianCountPricing],
        receipt: Receipt,
        before: Measured,
        watcher: Watcher | None,
    ) -> tuple[Measured, Booked, tuple[TraceLook, ...]]:
        """Return what was released, its price, and the looks; what is exact is gone by then."""
        query, pricing = self.query, plan.pricing
        step_log2 = query.measures[0].step_log2
        mechanism = GaussianMeasurements(
            context.engine.measure(query, receipt)[0], query.sensitivity, query.max_groups, step_log2=step_log2
        )

        def price(information: Ints) -> Booked:
            """Return the price of a run that came to these informations."""
            if receipt.exclusive:
                grains = worst_cost(information, query.max_groups) - worst_cost(before.information, query.max_groups)
            else:
                grains = worst_cost(information - before.information, query.max_groups)
            return pricing.coin.loss(grains)

        each = partial(parameter_of, price=plan.worst_price)
        begun: Measurements = mechanism
        if in_looks(pricing):
            looks = BegunLooks(receipt, before.information, query.max_groups, pricing.coin.loss)
            begun = BegunMeasurements(mechanism, looks)
        watched = Watched(begun, pricing.schedule, query.outputs[0].name, before, price, each)
        told = watched.telling(watcher)
        if pricing.share < 1:
            after = refine_share(watched, pricing.schedule, pricing.share, before, told)
        else:
            after = refine(watched, pricing.schedule, before, told, settled=pricing.settled)
        return after, price(after.information), tuple(watched.looks)

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep: see `merging`."""
        assert outcome.blob is not None  # noqa: S101  # something was measured
        return merge(current, outcome.blob, receipt, read=self.blob, serves=partial(_serves, outcome.blob))

    def _record(self, plan: Plan[GaussianCountPricing], after: Measured) -> bytes:
        """Return what the ledger keeps of new measurements."""
        pricing = plan.pricing
        kept = StoredPromise.of(pricing.schedule, pricing.beta, share=pricing.share)
        return Record.of(self.query, after, kept, kept_of(pricing)).to_bytes()

    def _outcome(
        self,
        plan: Plan[GaussianCountPricing],
        before: Measured,
        after: Measured,
        price: Booked,
        blob: bytes | None,
    ) -> AskOutcome:
        """Return what released measurements tell."""
        again = _again(after, blob)
        return AskOutcome(
            (cells_of(plan, after),),
            _paid(before, after, price),
            price,
            blob,
            lambda: _doubling(plan, self.query, again()),
            optimality=lambda: optimality.of_measured(self.query, plan.pricing, again()),
        )


def _again(measured: Measured, blob: bytes | None) -> Callable[[], Measured]:
    """Return what gives measurements again: those of very many groups are read from their record, which is smaller."""
    if blob is None or len(measured.mean) <= BLOCK:
        return lambda: measured
    return lambda: Record.from_bytes(blob).measured


def _serves(ours: bytes, theirs: bytes) -> bool:
    """Tell whether another record keeps the promise of ours."""
    kept = Record.from_bytes(ours).kept
    return Record.from_bytes(theirs).kept.covers(kept.relative, kept.absolute, kept.beta, kept.grains, kept.share)


def summed(plan: Plan, report: IntervalReport) -> AskOutcome:
    """Return the outcome of a free answer that adds up cells of another question."""
    cells = Cells(report.value, report.lower, report.upper, report.met, report.estimate)
    return AskOutcome((cells,), np.zeros(len(report.value)), plan.worst_price)


def met(plan: Plan, values: Any, report: IntervalReport) -> Any:
    """Return which intervals are as narrow as was asked; all of them where a loss was named instead."""
    if plan.target is None:
        return np.ones(len(values), np.bool_)
    half = (report.upper - report.lower) / 2
    return half <= np.maximum(plan.target.relative * np.abs(values), plan.target.absolute) * (1 + 1e-9)


def held_in(record: Record, kept: StoredPromise) -> HeldIntervals:
    """Return the intervals that a record holds, by a promise that its groups keep."""
    measured = record.measured
    own = OwnPromises.none(len(measured.mean)) if record.own is None else record.own
    return HeldIntervals(kept, own, measured.values, measured.information)


def kept_of(pricing: GaussianCountPricing | LaplaceCountPricing) -> OwnPromises | None:
    """Return the claims that groups keep from before; None for none."""
    claims, settled = pricing.claims, pricing.settled
    if claims is None or settled is None:
        return None
    return OwnPromises(np.where(settled, claims.half, np.nan), np.where(settled, claims.beta, np.nan))


def cells_of(plan: Plan[GaussianCountPricing | LaplaceCountPricing], measured: Measured) -> Cells:
    """Return the numbers that are shown of released measurements, made block by block."""
    groups = len(measured.mean)
    value, lower, upper = (np.empty(groups) for _ in range(3))
    apart = plan.pricing.schedule.relative > 0 or plan.pricing.settled is not None
    estimate = np.empty(groups) if apart else value  # without a relative target the value is no other
    inside = np.empty(groups, np.bool_)
    for first in range(0, groups, BLOCK):
        at = slice(first, first + BLOCK)
        block = Measured(measured.mean[at], measured.information[at], measured.unit_log2)
        report = _report(plan, block, at)
        value[at], lower[at], upper[at] = report.value, report.lower, report.upper
        if apart:
            estimate[at] = report.estimate
        inside[at] = met(plan, block.values, report)
    return Cells(value, lower, upper, inside, estimate)


def _report(plan: Plan[GaussianCountPricing | LaplaceCountPricing], measured: Measured, at: slice) -> IntervalReport:
    """Return values and intervals of some groups: by the latest rule, or as they stood before."""
    pricing = plan.pricing
    schedule = pricing.schedule
    futile = ~schedule.stopped(measured.information, measured.values)
    latest = reported(measured.values, measured.information, schedule, futile)
    if pricing.claims is None or pricing.settled is None:
        return latest
    relative, absolute = schedule.relative, schedule.absolute
    if plan.target is not None:
        relative, absolute = plan.target.relative, plan.target.absolute
    stood, settled = reread(measured.values, pricing.claims.half[at], relative, absolute), pricing.settled[at]
    return IntervalReport(*(np.where(settled, old, new) for old, new in zip(stood, latest, strict=True)))


def parameter_of(grains: Any, price: Booked) -> Any:
    """Return grains of mu^2 as the parameter of a currency, mu or rho, rounded up."""
    gained = grains.astype(np.float64) * float(GRAIN)
    parameter = np.sqrt(gained) if price.parameter == "mu" else gained / 2
    return parameter * (1 + 2.0**-50)


def _paid(before: Measured, after: Measured, price: Booked) -> Any:
    """Return what members of each group paid, float64[groups], made block by block."""
    paid = np.empty(len(after.mean))
    for first in range(0, len(paid), BLOCK):
        at = slice(first, first + BLOCK)
        paid[at] = parameter_of(after.information[at] - before.information[at], price)
    return paid


def _doubling(plan: Plan[GaussianCountPricing], query: Query, measured: Measured) -> Booked | None:
    """Return what the doubling baseline would have paid for these released answers."""
    pricing = plan.pricing
    if plan.target is None:
        return None
    per_grain = pricing.coin.per_grain
    cost = doubling_cost(
        np.abs(measured.values) if pricing.schedule.signed else np.maximum(measured.values, 0.0),
        plan.target.relative,
        plan.target.absolute,
        pricing.beta,
        first=FIRST_GRAINS * per_grain,
        last=int(pricing.schedule.looks[-1]) * per_grain,
    )
    return replace(pricing.coin, max_groups=1).loss(
        worst_cost(np.minimum(np.rint(cost / per_grain), MOST_GRAINS).astype(np.int64), query.max_groups)
    )
