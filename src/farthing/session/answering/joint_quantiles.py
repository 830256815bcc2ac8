"""Several quantiles of one column in the same groups: one search for all of them, through shared noise."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.accuracy.joint_quantile_run import JointTrail
from farthing.accuracy.joint_quantiles import NoisyJointRanks
from farthing.planning.joint_quantiles import JointQuantilePricing, JointStanding, plan_joint_quantiles
from farthing.planning.quantile_sought import QuantileFound, QuantileSought, QuantileStanding, without_older
from farthing.progress import Progress
from farthing.query.aggregates import Quantile
from farthing.release import Cells
from farthing.session.answering.gaussian_count import parameter_of
from farthing.session.answering.looks import BegunLooks
from farthing.session.answering.method import AskOutcome
from farthing.session.answering.quantile import columns_of, ranks_of, trail_in
from farthing.session.core.merging import merge
from farthing.session.core.records import read_blob, unreadable, write_blob
from farthing.session.core.shield import hand_over

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

    from farthing.accuracy.joint_quantiles import JointQuantilesState
    from farthing.accuracy.quantile_ranks import Ranks
    from farthing.ledger.entry import Receipt
    from farthing.mechanisms.joint_ranks import RankStrategy
    from farthing.planning import Frame, Plan
    from farthing.progress import Watcher
    from farthing.query import Query
    from farthing.session.core.context import Context

_FORMAT = b"farthing-quantiles-2"
_OLDER = b"farthing-quantiles-1"
_COLUMNS = ("value", "lower", "upper", "met", "by_rank")


@dataclass(frozen=True, slots=True)
class JointQuantilesMethod:
    """A question for several quantiles of one column.

    Attributes:
        query: the question, arranged; its outputs in rising order, each another quantile.
        standing: what earlier answers looked for and found, and what was measured for them.
        blob: the same, as the ledger keeps it.
    """

    query: Query
    standing: JointStanding[JointTrail]
    blob: bytes | None = None

    @classmethod
    def of(cls, query: Query, blob: bytes | None) -> JointQuantilesMethod:
        """Return the method of a question."""
        nothing: JointStanding[JointTrail] = JointStanding((QuantileStanding(),) * len(query.outputs))
        return cls(query, nothing if blob is None else standing_in(blob), blob)

    def plan(self, frame: Frame) -> Plan[JointQuantilePricing]:
        """Return the plan, given what was released before."""
        return plan_joint_quantiles(frame, self.standing)

    def stored_answer(self, plan: Plan[JointQuantilePricing]) -> AskOutcome:
        """Return the answer of a free plan: what was released before."""
        pricing = plan.pricing
        pairs = zip(self.standing.each, pricing.sought, strict=True)
        found = [each.answer(one) for each, one in pairs]
        if not all(found):
            found = list(pricing.found(pricing.replayed(self.query.groups)))
        return AskOutcome(tuple(cells_of(one) for one in found if one), np.zeros(self.query.groups), plan.worst_price)

    def measured(
        self, context: Context, plan: Plan[JointQuantilePricing], receipt: Receipt, watcher: Watcher | None
    ) -> AskOutcome:
        """Ask the engine, draw noise, and price what was drawn."""
        pricing, aggregate, query = plan.pricing, self.query.aggregate, self.query
        assert isinstance(aggregate, Quantile)  # noqa: S101  # the question of this method
        ranks = ranks_of(context.engine.histogram(query, aggregate, receipt), query, aggregate)
        before = np.zeros(query.groups, np.int64) if pricing.held is None else pricing.held.paid
        looks = BegunLooks(receipt, before, pricing.coin.max_groups, pricing.coin.loss)
        state = searched(pricing, ranks, watcher, looks)
        price = looks.price(state.trail.paid - before)
        found = pricing.found(state)
        each = tuple(
            QuantileStanding(without_older(old.found, (new,)))
            for old, new in zip(self.standing.each, found, strict=True)
        )
        blob = blob_of(JointStanding(each, state.trail))
        paid = parameter_of(state.trail.paid - before, price)
        return AskOutcome(tuple(cells_of(one) for one in found), paid, price, blob)

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep: one trail, by the rule of `merging`, and every answer."""
        ours = outcome.blob
        assert ours is not None  # noqa: S101  # something was measured
        kept = merge(current, ours, receipt, read=self.blob)
        if current is None or current == self.blob:
            return kept
        pairs = zip(standing_in(current).each, standing_in(ours).each, strict=True)
        each = tuple(QuantileStanding(without_older(theirs.found, mine.found[-1:])) for theirs, mine in pairs)
        return blob_of(JointStanding(each, standing_in(kept).trail))


def cells_of(found: QuantileFound) -> Cells:
    """Return the numbers of an answer."""
    return Cells(found.value, found.lower, found.upper, found.met)


def searched(
    pricing: JointQuantilePricing, ranks: Ranks, watcher: Watcher | None, looks: BegunLooks
) -> JointQuantilesState:
    """Find several quantiles of every group, each look begun in the ledger before it is measured.

    Guarantee: over all runs of a question, each on the trail of those before, mu-GDP for mu^2 = the sum over the
        `max_groups` most expensive groups of the trail's `paid`.
    Proof: docs/proofs/accuracy.joint_quantiles.md, "What one row moves".
    Assumes: one unit adds or removes at most `max_rows` rows of a group, in at most `max_groups` groups.
    Rounds: as `mechanisms.joint_ranks.JointRanks`.
    """
    noisy = NoisyJointRanks(ranks, pricing.search.reach)

    def measure(strategy: RankStrategy, thresholds: Ints, grains: Ints, groups: Ints) -> Floats:
        """Begin a look at thresholds, then measure it."""
        looks.begin(grains, groups)
        return noisy.measure(strategy, thresholds, grains, groups)

    def measure_count(grains: Ints, groups: Ints) -> Floats:
        """Begin a look at rows, then measure it."""
        looks.begin(grains, groups)
        return noisy.measure_count(grains, groups)

    return pricing.search.run(
        measure,
        measure_count,
        groups=ranks.groups,
        held=pricing.held,
        settled=pricing.settled(ranks.groups),
        progress=None if watcher is None else lambda *facts: hand_over(watcher, Progress(*facts)),
    )


def blob_of(standing: JointStanding[JointTrail]) -> bytes:
    """Return the blob that the ledger stores."""
    columns = found_columns(standing.each)
    if standing.trail is not None:
        columns["paid"] = standing.trail.paid
        for number, trail in enumerate(standing.trail.each):
            columns |= columns_of(trail, f"{number}.")
    facts = [[one.sought.facts() for one in each.found] for each in standing.each]
    return write_blob(columns, {_FORMAT: json.dumps(facts).encode()})


def found_columns(each: tuple[QuantileStanding, ...]) -> dict[str, Any]:
    """Return the columns that keep the answers of each quantile."""
    return {
        f"{name}{number}.{place}": getattr(one, name)
        for number, told in enumerate(each)
        for place, one in enumerate(told.found)
        for name in _COLUMNS
    }


def standing_in(blob: bytes) -> JointStanding[JointTrail]:
    """Return what stands in a blob; LedgerError for one of another form.

    The older form kept thresholds that were proven in another way: what was paid for them is kept, not what they said.
    """
    columns, facts = read_blob(blob, _FORMAT, _OLDER)
    try:
        each = tuple(
            QuantileStanding(tuple(found_in(columns, one, f"{number}.{place}") for place, one in enumerate(told)))
            for number, told in enumerate(facts)
        )
        return JointStanding(each, _trail_in(columns, len(each)))
    except (KeyError, TypeError, ValueError) as error:
        problem = error
    raise unreadable(problem)


def found_in(columns: dict[str, Any], facts: dict[str, Any], place: str) -> QuantileFound:
    """Return one answer of one quantile."""
    return QuantileFound(QuantileSought(**facts), *(columns[f"{name}{place}"] for name in _COLUMNS))


def _trail_in(columns: dict[str, Any], many: int) -> JointTrail | None:
    """Return what was measured, where that is kept."""
    if "paid" not in columns:
        return None
    paid = columns["paid"]
    return JointTrail(tuple(trail_in(columns, len(paid), f"{number}.") for number in range(many)), paid)
