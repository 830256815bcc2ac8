"""One count or sum under a pure budget: a chain of looks that get finer, of which the last alone is paid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from farthing.accuracy.stored_promise import StoredPromise
from farthing.mechanisms.gaussian import Measured, worst_cost
from farthing.mechanisms.laplace import LaplaceChain, Shown
from farthing.planning.laplace_count import Grid, LaplaceCountPricing, plan_laplace_count
from farthing.planning.stored_measurements import HeldMeasurements
from farthing.privacy.loss import Pure
from farthing.rounding import FARTHING
from farthing.session.answering import optimality
from farthing.session.answering.gaussian_count import cells_of, held_in, kept_of
from farthing.session.answering.looks import BegunLooks, BegunMeasurements, in_looks
from farthing.session.answering.method import AskOutcome
from farthing.session.answering.refinement_loop import refine
from farthing.session.answering.share_of_groups import reached, refine_share
from farthing.session.answering.traced import Watched
from farthing.session.core.merging import merge
from farthing.session.core.records import Record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.ledger.entry import Receipt
    from farthing.planning import Frame, Plan
    from farthing.progress import Watcher
    from farthing.query import Query
    from farthing.session.answering.refinement_loop import Measurements
    from farthing.session.core.context import Context

    Int64 = NDArray[np.int64]

_BITS = 60
"""Answers stay below 2^60 steps of noise."""


@dataclass(frozen=True, slots=True)
class LaplaceCountMethod:
    """A question under a pure budget whose answer is one measure.

    What the ledger keeps is a `Record` whose means are the shown values and whose informations are farthings.

    Attributes:
        query: the question, arranged.
        blob: what the ledger keeps of it, or None.
        record: the same, read.
    """

    query: Query
    blob: bytes | None
    record: Record | None

    @classmethod
    def of(cls, query: Query, blob: bytes | None) -> LaplaceCountMethod:
        """Return the method of a question."""
        return cls(query, blob, None if blob is None else Record.from_bytes(blob))

    @property
    def anew(self) -> LaplaceCountMethod:
        """The method of a line that begins again, on steps and looks of its own; what stands is only merged with.

        Guarantee: nothing that was shown before is carried on: all that it measures is charged, whatever its receipt.
        Proof: docs/proofs/session.answering.laplace_count.md.
        Assumes: nothing.
        Rounds: nothing.
        """
        return replace(self, record=None)

    def plan(self, frame: Frame, many: int = 1) -> Plan[LaplaceCountPricing]:
        """Return the plan, given what was shown before, where so many groups at most are added up for what is told."""
        record = self.record
        if record is None:
            return plan_laplace_count(frame, many=many)
        top = np.sort(record.measured.information)[-self.query.max_groups :]
        grid = Grid.at(self.query, record.measured.unit_log2)
        kept = reached(record.kept, record.measured, grid.per_farthing)
        standing = HeldMeasurements(held_in(record, kept), tuple(int(n) for n in top))
        return plan_laplace_count(frame, standing, grid, many)

    def stored_answer(self, plan: Plan[LaplaceCountPricing]) -> AskOutcome:
        """Return the answer of a free plan: what was shown before."""
        assert self.record is not None  # noqa: S101  # a plan is free where something stands
        return self._outcome(plan, self.record.measured, 0, 0 * self.record.measured.information)

    def measured(
        self, context: Context, plan: Plan[LaplaceCountPricing], receipt: Receipt, watcher: Watcher | None
    ) -> AskOutcome:
        """Ask the engine, look until every group is within its target, and price the last looks.

        A chain is carried on by one line of looks: whoever does not hold it alone begins another, and pays it in full.

        Guarantee: everything shown is epsilon-DP ex post, for epsilon = the sum of the K largest last levels; the
            charges of a question sum to that of every chain begun for it.
        Proof: docs/proofs/mechanisms.laplace.md for a chain; [RogersSRW23, Lemma 5.2] for the sum over questions;
            docs/proofs/session.answering.laplace_count.md for the books.
        Assumes: a pure ledger; an exclusive receipt means that no other line of looks leaves from what is stored.
        Rounds: nothing.
        """
        plan = plan if receipt.exclusive else _anew(plan)
        pricing = plan.pricing
        grid, groups = pricing.grid, self.query.groups
        step_log2 = self.query.measures[0].step_log2
        looks = _LaplaceLooks(chain_of(context.engine.measure(self.query, receipt)[0], step_log2, grid))
        before = Measured(np.zeros(groups, np.int64), np.zeros(groups, np.int64), grid.step_log2)
        if self.record is not None and receipt.exclusive:
            before = self.record.measured

        def price(information: Int64) -> int:
            """Return the farthings of a run that came to these levels."""
            return worst_cost(information, grid.max_groups) - worst_cost(before.information, grid.max_groups)

        begun: Measurements = looks
        if in_looks(pricing):
            begun = BegunMeasurements(
                looks, BegunLooks(receipt, before.information, grid.max_groups, Pure.of_farthings)
            )
        watched = Watched(
            begun, pricing.schedule, self.query.outputs[0].name, before,
            lambda levels: Pure.of_farthings(price(levels)), epsilons,
        )  # fmt: skip
        told = watched.telling(watcher)
        if pricing.share < 1:
            after = refine_share(watched, pricing.schedule, pricing.share, before, told)
        else:
            after = refine(watched, pricing.schedule, before, told, settled=pricing.settled)
        outcome = self._outcome(plan, after, price(after.information), after.information - before.information)
        return replace(outcome, blob=self._record(plan, after), looks=tuple(watched.looks))

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep, one line of looks: see `merging`."""
        assert outcome.blob is not None  # noqa: S101  # something was measured
        ours = outcome.blob
        return merge(
            current, ours, receipt, read=self.blob, serves=partial(_serves, ours), worth=partial(self._worth, ours)
        )

    def _worth(self, ours: bytes, theirs: bytes) -> bool:
        """Tell whether a line keeps the promise of another one, or has cost as much."""
        mine, other = (
            worst_cost(Record.from_bytes(blob).measured.information, self.query.max_groups) for blob in (ours, theirs)
        )
        return mine >= other or _serves(theirs, ours)

    def _record(self, plan: Plan[LaplaceCountPricing], after: Measured) -> bytes:
        """Return what the ledger keeps of the last looks."""
        kept = StoredPromise.of(plan.pricing.schedule, plan.pricing.beta, share=plan.pricing.share)
        return Record.of(self.query, after, kept, kept_of(plan.pricing)).to_bytes()

    def _outcome(self, plan: Plan[LaplaceCountPricing], shown: Measured, price: int, paid: Int64) -> AskOutcome:
        """Return what was shown, at a price in farthings, of which each group's own are `paid`."""
        pricing = plan.pricing
        return AskOutcome(
            (cells_of(plan, shown),),
            epsilons(paid),
            Pure.of_farthings(price),
            optimality=partial(optimality.of_chain, self.query, pricing, shown),
        )


def _anew(plan: Plan[LaplaceCountPricing]) -> Plan[LaplaceCountPricing]:
    """Return the plan of a line that begins again: no group is answered by what another line showed."""
    return replace(plan, pricing=replace(plan.pricing, claims=None, settled=None))


def _serves(ours: bytes, theirs: bytes) -> bool:
    """Tell whether another line keeps the promise of ours."""
    kept = Record.from_bytes(ours).kept
    return Record.from_bytes(theirs).kept.covers(kept.relative, kept.absolute, kept.beta, kept.grains, kept.share)


@dataclass(frozen=True, slots=True)
class _LaplaceLooks:
    """A chain as the refinement loop sees it: levels as informations, shown values as means."""

    chain: LaplaceChain

    def measure(self, state: Measured, grains: Int64, groups: Int64 | None = None) -> Measured:
        """Return what is shown after each group was raised by so many farthings."""
        before = Shown(state.mean, state.information, state.unit_log2)
        shown = self.chain.measure(before, state.information + grains, groups)
        return Measured(shown.value, shown.farthings, shown.step_log2)

    def unit_for(self, grains: int) -> int:  # noqa: ARG002  # one grid for all looks
        """Return the exponent of the chain's grid."""
        return self.chain.step_log2


def epsilons(farthings: Int64) -> NDArray[np.float64]:
    """Return farthings as epsilons."""
    return np.asarray(farthings * float(FARTHING), np.float64)


def chain_of(truth: Int64, step_log2: int, grid: Grid) -> LaplaceChain:
    """Return the chain of a truth, told in the grid's steps: finer ones exactly, coarser ones rounded, halves up.

    The truth is in steps of 2^step_log2.

    Answers beyond 2^60 steps are shown as that: an error would tell of rows.

    Guarantee: one unit that moves the truth by at most the question's sensitivity moves this by the grid's at most.
    Proof: docs/proofs/mechanisms.laplace.md, "Steps of a session's sums": rounding keeps whole distances, and being
        held within a range shortens them.
    Assumes: the grid is one of `Grid.at`.
    Rounds: to the nearest step, once.
    """
    finer = step_log2 - grid.step_log2
    if finer < 0:
        told = (truth + (1 << (-finer - 1))) >> -finer
    else:
        told = np.clip(truth, -(1 << (_BITS - finer)), 1 << (_BITS - finer)) << finer
    return LaplaceChain(told, grid.sensitivity, grid.max_groups, step_log2=grid.step_log2)
