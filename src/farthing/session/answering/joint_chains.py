"""Several quantiles of one column in the same groups under a pure budget: one search, through bins of rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.accuracy.joint_chain_run import JointChainTrail
from farthing.accuracy.joint_chains import ShownJointRanks
from farthing.mechanisms.gaussian import worst_cost
from farthing.planning.joint_chains import JointChainsPricing, plan_joint_chains
from farthing.planning.joint_quantiles import JointStanding
from farthing.planning.quantile_sought import QuantileStanding, without_older
from farthing.privacy.loss import Pure
from farthing.progress import Progress
from farthing.query.aggregates import Quantile
from farthing.session.answering.joint_quantiles import cells_of, found_columns, found_in
from farthing.session.answering.laplace_count import epsilons
from farthing.session.answering.looks import BegunLooks
from farthing.session.answering.method import AskOutcome
from farthing.session.answering.quantile import ranks_of
from farthing.session.core.merging import merge
from farthing.session.core.records import read_blob, unreadable, write_blob
from farthing.session.core.shield import hand_over

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

    from farthing.accuracy.joint_chains import JointChainsState
    from farthing.accuracy.quantile_ranks import Ranks
    from farthing.accuracy.quantile_trail import ShownBins
    from farthing.ledger.entry import Receipt
    from farthing.planning import Frame, Plan
    from farthing.progress import Watcher
    from farthing.query import Query
    from farthing.session.core.context import Context

_FORMAT = b"farthing-pure-quantiles-2"
_LOOK = ("rounds", "levels")
_WIDE = ("places", "owners", "shown")


@dataclass(frozen=True, slots=True)
class JointChainsMethod:
    """A question for several quantiles of one column, in a pure ledger.

    Attributes:
        query: the question, arranged; its outputs in rising order, each another quantile.
        standing: what earlier answers looked for and found, and what was shown for them.
        blob: the same, as the ledger keeps it.
    """

    query: Query
    standing: JointStanding[JointChainTrail]
    blob: bytes | None = None

    @classmethod
    def of(cls, query: Query, blob: bytes | None) -> JointChainsMethod:
        """Return the method of a question."""
        nothing: JointStanding[JointChainTrail] = JointStanding((QuantileStanding(),) * len(query.outputs))
        return cls(query, nothing if blob is None else standing_in(blob), blob)

    def plan(self, frame: Frame) -> Plan[JointChainsPricing]:
        """Return the plan, given what was released before."""
        return plan_joint_chains(frame, self.standing)

    def stored_answer(self, plan: Plan[JointChainsPricing]) -> AskOutcome:
        """Return the answer of a free plan: what was released before."""
        pricing = plan.pricing
        pairs = zip(self.standing.each, pricing.sought, strict=True)
        found = [each.answer(one) for each, one in pairs]
        if not all(found):
            found = list(pricing.found(pricing.replayed(self.query.groups)))
        return AskOutcome(tuple(cells_of(one) for one in found if one), np.zeros(self.query.groups), plan.worst_price)

    def measured(
        self, context: Context, plan: Plan[JointChainsPricing], receipt: Receipt, watcher: Watcher | None
    ) -> AskOutcome:
        """Ask the engine, draw noise, and price what was drawn.

        Whoever does not hold the chains alone begins others, and pays these in full.
        """
        pricing, aggregate, query = plan.pricing, self.query.aggregate, self.query
        assert isinstance(aggregate, Quantile)  # noqa: S101  # the question of this method
        ranks = ranks_of(context.engine.histogram(query, aggregate, receipt), query, aggregate)
        if not receipt.exclusive:
            pricing = replace(pricing, held=None, served=(None,) * len(pricing.served))
        before = np.zeros(query.groups, np.int64) if pricing.held is None else pricing.held.paid
        looks = BegunLooks(receipt, before, pricing.max_groups, Pure.of_farthings)
        state = searched(pricing, ranks, watcher, looks)
        found, paid = pricing.found(state), state.trail.paid - before
        each = tuple(
            QuantileStanding(without_older(old.found, (new,)))
            for old, new in zip(self.standing.each, found, strict=True)
        )
        blob = blob_of(JointStanding(each, state.trail))
        return AskOutcome(tuple(cells_of(one) for one in found), epsilons(paid), looks.price(paid), blob)

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep: one trail, by the rule of `merging`, and every answer."""
        ours = outcome.blob
        assert ours is not None  # noqa: S101  # something was measured
        kept = merge(current, ours, receipt, read=self.blob, worth=partial(self._worth, ours))
        if current is None or (current == self.blob and kept == ours):
            return kept
        pairs = zip(standing_in(current).each, standing_in(ours).each, strict=True)
        each = tuple(QuantileStanding(without_older(theirs.found, mine.found[-1:])) for theirs, mine in pairs)
        return blob_of(JointStanding(each, standing_in(kept).trail))

    def _worth(self, ours: bytes, theirs: bytes) -> bool:
        """Tell whether what one trail holds has cost as much as another one."""
        mine, other = (standing_in(blob).trail for blob in (ours, theirs))
        if mine is None or other is None:
            return other is None
        return worst_cost(mine.paid, self.query.max_groups) >= worst_cost(other.paid, self.query.max_groups)


def searched(pricing: JointChainsPricing, ranks: Ranks, watcher: Watcher | None, looks: BegunLooks) -> JointChainsState:
    """Find several quantiles of every group, each look begun in the ledger before it is shown.

    Guarantee: over all runs of a question on one line of looks, epsilon-DP ex post for epsilon = the sum over the
        `max_groups` most expensive groups of the trail's `paid`.
    Proof: docs/proofs/accuracy.joint_chains.md, claim 1; docs/proofs/session.answering.laplace_count.md for the books.
    Assumes: a pure ledger; chains that are held are carried on by one line of looks; an engine that keeps `max_rows`.
    Rounds: nothing.
    """
    noisy = ShownJointRanks(ranks, pricing.search.asked[0].max_rows)

    def show(held: ShownBins, farthings: Ints, groups: Ints) -> Ints:
        """Begin looks, then show them: what is paid is by how much the chains rise."""
        looks.begin(farthings - held.farthings, groups)
        return noisy.show(held, farthings, groups)

    return pricing.search.run(
        show,
        groups=ranks.groups,
        held=pricing.held,
        settled=pricing.settled(ranks.groups),
        progress=None if watcher is None else lambda *facts: hand_over(watcher, Progress(*facts)),
    )


def blob_of(standing: JointStanding[JointChainTrail]) -> bytes:
    """Return the blob that the ledger stores."""
    columns, trail = found_columns(standing.each), standing.trail
    if trail is not None:
        columns["paid"] = trail.paid
        for look in range(len(trail.rounds)):
            columns |= {f"{name}{look}": getattr(trail, name)[look] for name in _LOOK}
            for name in _WIDE:
                columns |= {f"{name}{look}.{row}": one for row, one in enumerate(getattr(trail, name)[look])}
    facts = [[one.sought.facts() for one in each.found] for each in standing.each]
    return write_blob(columns, {_FORMAT: json.dumps(facts).encode()})


def standing_in(blob: bytes) -> JointStanding[JointChainTrail]:
    """Return what stands in a blob; LedgerError for one of another form."""
    columns, facts = read_blob(blob, _FORMAT)
    try:
        each = tuple(
            QuantileStanding(tuple(found_in(columns, one, f"{number}.{place}") for place, one in enumerate(told)))
            for number, told in enumerate(facts)
        )
        return JointStanding(each, _trail_in(columns, len(each)))
    except (KeyError, TypeError, ValueError) as error:
        problem = error
    raise unreadable(problem)


def _trail_in(columns: dict[str, Any], many: int) -> JointChainTrail | None:
    """Return what was shown, where that is kept."""
    if "paid" not in columns:
        return None
    trail = JointChainTrail.nothing(len(columns["paid"]), many)
    looks = sum(name.startswith("rounds") for name in columns)
    trail.grow(looks - 1)
    for look in range(looks):
        for name in _LOOK:
            getattr(trail, name)[look] = columns[f"{name}{look}"]
        for name in _WIDE:
            table = getattr(trail, name)[look]
            for row in range(len(table)):
                table[row] = columns[f"{name}{look}.{row}"]
    trail.paid = columns["paid"]
    return trail
