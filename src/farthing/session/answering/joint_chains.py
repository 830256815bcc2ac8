"""Several quantiles of one column in the same groups under a pure budget: one search, through bins of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.accuracy.joint_chain_run import JointChainTrail
from farthing.accuracy.joint_chains import ShownJointRanks
from farthing.planning.joint_chains import JointChainsPricing, plan_joint_chains
from farthing.planning.joint_quantiles import JointStanding
from farthing.privacy.loss import Pure
from farthing.progress import Progress
from farthing.query.aggregates import Quantile
from farthing.session.answering.joint_quantiles import read, told_again, written
from farthing.session.answering.laplace_count import epsilons
from farthing.session.answering.looks import BegunLooks
from farthing.session.answering.method import AskOutcome
from farthing.session.answering.quantile import cells_of, merged, ranks_of
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
        return cls(query, JointStanding.nothing(len(query.outputs)) if blob is None else standing_in(blob), blob)

    def plan(self, frame: Frame) -> Plan[JointChainsPricing]:
        """Return the plan, given what was released before."""
        return plan_joint_chains(frame, self.standing)

    def stored_answer(self, plan: Plan[JointChainsPricing]) -> AskOutcome:
        """Return the answer of a free plan: what was released before."""
        return told_again(plan, self.standing, self.query.groups)

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
        blob = blob_of(self.standing.then(found, state.trail))
        return AskOutcome(tuple(map(cells_of, found)), epsilons(paid), looks.price(paid), blob)

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep, by `merged`."""
        form, most = (standing_in, blob_of), self.query.max_groups
        return merged(current, outcome, receipt, read=self.blob, max_groups=most, form=form)


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
    return written(_FORMAT, standing.each, {} if standing.trail is None else _columns_of(standing.trail))


def _columns_of(trail: JointChainTrail) -> dict[str, Any]:
    """Return the columns that keep what was shown."""
    columns: dict[str, Any] = {"paid": trail.paid}
    for look in range(len(trail.rounds)):
        columns |= {f"{name}{look}": getattr(trail, name)[look] for name in _LOOK}
        for name in _WIDE:
            columns |= {f"{name}{look}.{row}": one for row, one in enumerate(getattr(trail, name)[look])}
    return columns


def standing_in(blob: bytes) -> JointStanding[JointChainTrail]:
    """Return what stands in a blob; LedgerError for one of another form."""
    return read(blob, _trail_in, _FORMAT)


def _trail_in(columns: dict[str, Any], many: int) -> JointChainTrail:
    """Return what was shown."""
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
