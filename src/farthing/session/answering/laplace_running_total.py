"""Running totals under a pure budget: one look at all groups on Laplace chains, and what they add up to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from farthing.mechanisms.laplace import MOST_FARTHINGS
from farthing.planning.laplace_running_total import LaplaceRunningTotalPricing, half_widths, largest, target_of_largest
from farthing.planning.share_of_total import places_of, share_of, sums_of
from farthing.query.aggregates import NamedAggregate, Single
from farthing.release import Cells
from farthing.session.answering.laplace_count import LaplaceCountMethod

if TYPE_CHECKING:
    from farthing.ledger.entry import Receipt
    from farthing.planning import Frame, Plan
    from farthing.planning.laplace_count import LaplaceCountPricing
    from farthing.progress import Watcher
    from farthing.query import Query
    from farthing.session.answering.method import AskOutcome
    from farthing.session.core.context import Context


@dataclass(frozen=True, slots=True)
class LaplaceRunningTotalMethod:
    """A question under a pure budget whose answers are sums of one measure over groups, in an order.

    The record is that of the groups, under the question's own name: it holds nothing that stopped by what it showed.

    Attributes:
        query: the question, arranged.
        cells: how its groups are measured.
    """

    query: Query
    cells: LaplaceCountMethod

    @classmethod
    def of(cls, query: Query, blob: bytes | None) -> LaplaceRunningTotalMethod:
        """Return the method of a question."""
        part = share_of(query).part
        assert isinstance(part, Single)  # noqa: S101  # a count or a sum is all that is added up
        groups = replace(query, outputs=(NamedAggregate(query.outputs[0].name, part),))
        return cls(query, LaplaceCountMethod.of(groups, blob))

    def plan(self, frame: Frame) -> Plan[LaplaceRunningTotalPricing]:
        """Return the plan, given what was shown before."""
        cells, target, factor = self.cells, frame.target, share_of(self.query).factor
        sums = sums_of(self.query, places_of(self.query))
        assert sums is not None  # noqa: S101  # it is a running total
        each = None if target is None else target_of_largest(target, factor)
        made = cells.plan(replace(frame, query=cells.query, targets=(each,)), largest(sums))
        pricing = LaplaceRunningTotalPricing(made.pricing, sums, factor, frame.beta)
        served = target is not None and pricing.widest(MOST_FARTHINGS) <= target.absolute
        return frame.plan(
            cap=made.cap,
            target_price=made.target_price if served else None,
            worst_price=made.worst_price,
            fresh_price=made.fresh_price,
            half_width=factor * made.half_width,
            reachable=made.reachable,
            hopeless=made.hopeless,
            free=made.free,
            pricing=pricing,
        )

    def stored_answer(self, plan: Plan[LaplaceRunningTotalPricing]) -> AskOutcome:
        """Return the answer of a free plan: what was shown before."""
        assert self.cells.record is not None  # noqa: S101  # a plan is free where something stands
        level = int(self.cells.record.measured.information.min())
        return _summed(plan, self.cells.stored_answer(_of_cells(plan)), level)

    def measured(
        self,
        context: Context,
        plan: Plan[LaplaceRunningTotalPricing],
        receipt: Receipt,
        watcher: Watcher | None,
    ) -> AskOutcome:
        """Ask the engine, look once at all groups, and price that.

        Guarantee: as `LaplaceCountMethod.measured`, of which this is a function; each interval misses its truth with
            the probability of the plan at most.
        Proof: docs/proofs/session.answering.laplace_count.md for the loss; `half_widths` for the intervals.
        Assumes: as these.
        Rounds: as these.
        """
        found = self.cells.measured(context, _of_cells(plan), receipt, watcher)
        return _summed(plan, found, int(plan.pricing.cells.schedule.looks[-1]))

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep, one line of looks."""
        return self.cells.merged(current, outcome, receipt)


def _summed(plan: Plan[LaplaceRunningTotalPricing], found: AskOutcome, level: int) -> AskOutcome:
    """Return the sums of what groups were shown, each at one level."""
    pricing, target = plan.pricing, plan.target
    (groups,) = found.columns
    half = pricing.factor * half_widths(pricing.sums.many, pricing.cells.grid, level, pricing.beta)
    value = pricing.factor * pricing.sums.summed(groups.value)
    allowed = np.inf if target is None else np.maximum(target.absolute, target.relative * (value - half))
    cells = Cells(value, value - half, value + half, half <= allowed * (1 + 1e-9))
    return replace(found, columns=(cells,), looks=(), optimality=None)


def _of_cells(plan: Plan[LaplaceRunningTotalPricing]) -> Plan[LaplaceCountPricing]:
    """Return the plan of the groups of a plan of their sums."""
    return replace(plan, pricing=plan.pricing.cells)  # type: ignore[arg-type, return-value]
