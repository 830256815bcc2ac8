"""Several quantiles of one column in the same groups: one search for all of them, through shared noise."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from farthing.accuracy.joint_quantile_run import JointTrail
from farthing.accuracy.joint_quantiles import NoisyJointRanks
from farthing.planning.joint_quantiles import JointQuantilePricing, JointStanding, plan_joint_quantiles
from farthing.planning.quantile_sought import QuantileFound, QuantileSought, QuantileStanding
from farthing.progress import Progress
from farthing.query.aggregates import Quantile
from farthing.session.answering.gaussian_count import parameter_of
from farthing.session.answering.looks import BegunLooks
from farthing.session.answering.method import AskOutcome
from farthing.session.answering.quantile import cells_of, columns_of, merged, ranks_of, trail_in
from farthing.session.core.records import read_blob, unreadable, write_blob
from farthing.session.core.shield import hand_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

    from farthing.accuracy.joint_quantiles import JointQuantilesState
    from farthing.accuracy.quantile_ranks import Ranks
    from farthing.ledger.entry import Receipt
    from farthing.mechanisms.joint_ranks import RankStrategy
    from farthing.planning import Frame, Plan
    from farthing.planning.joint_chains import JointChainsPricing
    from farthing.progress import Watcher
    from farthing.query import Query
    from farthing.session.core.context import Context

_FORMAT = b"farthing-quantiles-2"
_OLDER = b"farthing-quantiles-1"
_COLUMNS = ("value", "lower", "upper", "met", "by_rank")

T = TypeVar("T")


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
        return cls(query, JointStanding.nothing(len(query.outputs)) if blob is None else standing_in(blob), blob)

    def plan(self, frame: Frame) -> Plan[JointQuantilePricing]:
        """Return the plan, given what was released before."""
        return plan_joint_quantiles(frame, self.standing)

    def stored_answer(self, plan: Plan[JointQuantilePricing]) -> AskOutcome:
        """Return the answer of a free plan: what was released before."""
        return told_again(plan, self.standing, self.query.groups)

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
        found, paid = pricing.found(state), parameter_of(state.trail.paid - before, price)
        blob = blob_of(self.standing.then(found, state.trail))
        return AskOutcome(tuple(map(cells_of, found)), paid, price, blob)

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep, by `merged`."""
        form, most = (standing_in, blob_of), self.query.max_groups
        return merged(current, outcome, receipt, read=self.blob, max_groups=most, form=form)


def told_again(
    plan: Plan[JointQuantilePricing] | Plan[JointChainsPricing], standing: JointStanding[Any], groups: int
) -> AskOutcome:
    """Return the answer of a free plan: what was released before."""
    pricing = plan.pricing
    found = standing.answer(pricing.sought) or pricing.found(pricing.replayed(groups))
    return AskOutcome(tuple(map(cells_of, found)), np.zeros(groups), plan.worst_price)


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
    return written(_FORMAT, standing.each, {} if standing.trail is None else _columns_of(standing.trail))


def _columns_of(trail: JointTrail) -> dict[str, Any]:
    """Return the columns that keep what was measured."""
    columns: dict[str, Any] = {"paid": trail.paid}
    for number, one in enumerate(trail.each):
        columns |= columns_of(one, f"{number}.")
    return columns


def written(form: bytes, each: tuple[QuantileStanding, ...], trail: dict[str, Any]) -> bytes:
    """Return a blob of the answers of each quantile, and of the columns that keep what was measured for them."""
    columns = {
        f"{name}{number}.{place}": getattr(one, name)
        for number, told in enumerate(each)
        for place, one in enumerate(told.found)
        for name in _COLUMNS
    }
    facts = [[one.sought.facts() for one in told.found] for told in each]
    return write_blob(columns | trail, {form: json.dumps(facts).encode()})


def standing_in(blob: bytes) -> JointStanding[JointTrail]:
    """Return what stands in a blob; LedgerError for one of another form.

    The older form kept thresholds that were proven in another way: what was paid for them is kept, not what they said.
    """
    return read(blob, _trail_in, _FORMAT, _OLDER)


def read(blob: bytes, trail_in: Callable[[dict[str, Any], int], T], *forms: bytes) -> JointStanding[T]:
    """Return what stands in a blob of one of the forms, given how to read what so many quantiles were measured with."""
    columns, facts = read_blob(blob, *forms)
    try:
        each = tuple(
            QuantileStanding(tuple(_found_in(columns, one, f"{number}.{place}") for place, one in enumerate(told)))
            for number, told in enumerate(facts)
        )
        return JointStanding(each, trail_in(columns, len(each)) if "paid" in columns else None)
    except (KeyError, TypeError, ValueError) as error:
        problem = error
    raise unreadable(problem)


def _found_in(columns: dict[str, Any], facts: dict[str, Any], place: str) -> QuantileFound:
    """Return one answer of one quantile."""
    return QuantileFound(QuantileSought(**facts), *(columns[f"{name}{place}"] for name in _COLUMNS))


def _trail_in(columns: dict[str, Any], many: int) -> JointTrail:
    """Return what was measured."""
    paid = columns["paid"]
    return JointTrail(tuple(trail_in(columns, len(paid), f"{number}.") for number in range(many)), paid)
