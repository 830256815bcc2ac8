"""One quantile: found by a noisy bisection of the range, a search through Laplace chains, or one private choice."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from farthing.accuracy.joint_chains import ShownJointRanks
from farthing.accuracy.quantile_chains import ShownRanks
from farthing.accuracy.quantile_ranks import NoisyRanks, Ranks
from farthing.accuracy.quantile_trail import Trail
from farthing.mechanisms.gaussian import worst_cost
from farthing.planning.quantile import (
    QuantileBisectionPricing,
    QuantileChoicePricing,
    QuantilePricing,
    plan_quantile,
)
from farthing.planning.quantile_chains import QuantileChainsPricing
from farthing.planning.quantile_sought import QuantileFound, QuantileSought, QuantileStanding
from farthing.privacy.loss import BoundedRange, Pure
from farthing.progress import Progress
from farthing.query.aggregates import Quantile
from farthing.release import Cells
from farthing.rounding import FARTHING
from farthing.session.answering.gaussian_count import parameter_of
from farthing.session.answering.laplace_count import epsilons
from farthing.session.answering.looks import BegunLooks
from farthing.session.answering.method import AskOutcome
from farthing.session.core.merging import merge
from farthing.session.core.records import read_blob, unreadable, write_blob
from farthing.session.core.shield import hand_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

    from farthing.accuracy.joint_chain_run import JointChainTrail
    from farthing.accuracy.joint_quantile_run import JointTrail
    from farthing.accuracy.quantile_bisection import QuantileState
    from farthing.accuracy.quantile_chain_run import ShownSides
    from farthing.accuracy.quantile_trail import ShownBins
    from farthing.engines.engine import Histogram
    from farthing.ledger.entry import Receipt
    from farthing.planning import Frame, Plan
    from farthing.planning.joint_quantiles import JointStanding
    from farthing.privacy.loss import Booked
    from farthing.progress import Watcher
    from farthing.query import Query
    from farthing.session.core.context import Context

    S = TypeVar("S", QuantileStanding, JointStanding[JointTrail], JointStanding[JointChainTrail])

_FORMAT = b"farthing-quantile-5"
_OLDER = (b"farthing-quantile-4", b"farthing-quantile-3", b"farthing-quantile-2", b"farthing-quantile-1")
_COLUMNS = ("value", "lower", "upper", "met", "by_rank")
_LANES = ("counts", "counted")
_KEPT = ("counted", "thresholds")
_DEPTHS = ("thresholds", "starts", "kinds", "means", "grains", "places", "shown")


@dataclass(frozen=True, slots=True)
class QuantileMethod:
    """A question for one quantile.

    Attributes:
        query: the question, arranged.
        standing: what earlier answers looked for and found, and what was measured for them.
        blob: the same, as the ledger keeps it.
    """

    query: Query
    standing: QuantileStanding
    blob: bytes | None = None

    @classmethod
    def of(cls, query: Query, blob: bytes | None) -> QuantileMethod:
        """Return the method of a question."""
        return cls(query, QuantileStanding() if blob is None else standing_in(blob), blob)

    def plan(self, frame: Frame) -> Plan[QuantilePricing]:
        """Return the plan, given what was released before."""
        return plan_quantile(frame, self.standing)

    def stored_answer(self, plan: Plan[QuantilePricing]) -> AskOutcome:
        """Return the answer of a free plan: what was released before."""
        pricing = plan.pricing
        found = self.standing.answer(pricing.sought)
        if found is None and not isinstance(pricing, QuantileChoicePricing):  # a choice is free where it was made
            found = QuantileFound.of(pricing.sought, pricing.replayed(self.query.groups), pricing.served)
        assert found is not None  # noqa: S101  # a plan is free where something stands
        return AskOutcome((cells_of(found),), np.zeros(self.query.groups), plan.worst_price)

    def measured(
        self, context: Context, plan: Plan[QuantilePricing], receipt: Receipt, watcher: Watcher | None
    ) -> AskOutcome:
        """Ask the engine, draw noise, and price what was drawn."""
        pricing, aggregate = plan.pricing, self.query.aggregate
        assert isinstance(aggregate, Quantile)  # noqa: S101  # the question of this method
        ranks = ranks_of(context.engine.histogram(self.query, aggregate, receipt), self.query, aggregate)
        if isinstance(pricing, QuantileChainsPricing):
            return self._searched(pricing, ranks, receipt, watcher)
        if isinstance(pricing, QuantileChoicePricing):
            found, price, paid = chosen(pricing, ranks)
            price = context.loss(min(receipt.reserved, price.farthings))
            return self._outcome(found, paid, price, self.standing.trail)
        before = np.zeros(ranks.groups, np.int64) if pricing.held is None else pricing.held.paid
        looks = BegunLooks(receipt, before, pricing.coin.max_groups, pricing.coin.loss)
        state = bisected(pricing, ranks, watcher, looks)
        price = looks.price(state.paid - before)
        found = QuantileFound.of(pricing.sought, state, pricing.served)
        return self._outcome(found, parameter_of(state.paid - before, price), price, state.trail)

    def _searched(
        self, pricing: QuantileChainsPricing, ranks: Ranks, receipt: Receipt, watcher: Watcher | None
    ) -> AskOutcome:
        """Search by Laplace chains: whoever does not hold them alone begins others, and pays these in full."""
        if not receipt.exclusive:
            pricing = replace(pricing, held=None, served=None)
        before = np.zeros(ranks.groups, np.int64) if pricing.held is None else pricing.held.paid
        looks = BegunLooks(receipt, before, pricing.max_groups, Pure.of_farthings)
        state = searched(pricing, ranks, watcher, looks)
        found = QuantileFound.of(pricing.sought, state, pricing.served)
        paid = state.paid - before
        return self._outcome(found, epsilons(paid), looks.price(paid), state.trail)

    def _outcome(
        self, found: QuantileFound, paid: NDArray[np.float64], price: Booked, trail: Trail | None
    ) -> AskOutcome:
        """Return what was found, beside what was found before, and what was measured for it."""
        return AskOutcome((cells_of(found),), paid, price, blob_of(self.standing.then(found, trail)))

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep, by `merged`."""
        form, most = (standing_in, blob_of), self.query.max_groups
        return merged(current, outcome, receipt, read=self.blob, max_groups=most, form=form)


def merged(
    current: bytes | None,
    outcome: AskOutcome,
    receipt: Receipt,
    *,
    read: bytes | None,
    max_groups: int,
    form: tuple[Callable[[bytes], S], Callable[[S], bytes]],
) -> bytes:
    """Return what the ledger is to keep of quantiles: one trail, by the rule of `merging`, and every answer.

    `read` stood there when our search was planned, `form` reads and writes. A search that begins again takes the place
    of one that cost as much, or less.
    """
    (standing_in, blob_of), ours = form, outcome.blob
    assert ours is not None  # noqa: S101  # something was measured

    def worth(theirs: bytes) -> bool:
        """Tell whether what our trail holds has cost as much as another one."""
        mine, other = (standing_in(blob).trail for blob in (ours, theirs))
        if mine is None or other is None:
            return other is None
        return worst_cost(mine.paid, max_groups) >= worst_cost(other.paid, max_groups)

    kept = merge(current, ours, receipt, read=read, worth=worth)
    if current is None or (current == read and kept == ours):
        return kept
    return blob_of(standing_in(current).then(standing_in(ours).newest, standing_in(kept).trail))


def cells_of(found: QuantileFound) -> Cells:
    """Return the numbers of an answer."""
    return Cells(found.value, found.lower, found.upper, found.met)


def blob_of(standing: QuantileStanding) -> bytes:
    """Return the blob that the ledger stores."""
    columns: dict[str, Any] = {}
    for place, one in enumerate(standing.found):
        columns |= {f"{name}{place}": getattr(one, name) for name in _COLUMNS}
    if standing.trail is not None:
        columns["paid"] = standing.trail.paid
        columns |= columns_of(standing.trail)
    return write_blob(columns, {_FORMAT: json.dumps([one.sought.facts() for one in standing.found]).encode()})


def standing_in(blob: bytes) -> QuantileStanding:
    """Return what stands in a blob; LedgerError for one of another form.

    Older forms hold answers without what was measured for them: the first one answer, the second any number.
    """
    columns, facts = read_blob(blob, _FORMAT, *_OLDER)
    try:
        if isinstance(facts, dict):
            facts, columns = [facts], {f"{name}0": column for name, column in columns.items()}
        return QuantileStanding(
            tuple(_found_in(columns, one, place) for place, one in enumerate(facts)), _trail_in(columns)
        )
    except (KeyError, TypeError, ValueError) as error:
        problem = error
    raise unreadable(problem)


def _found_in(columns: dict[str, Any], facts: dict[str, Any], place: int) -> QuantileFound:
    """Return one answer; older forms did not keep whether it was the rank that was met."""
    sought = QuantileSought(**facts)
    value, lower, upper, met = (columns[f"{name}{place}"] for name in ("value", "lower", "upper", "met"))
    only_rank = sought.rank > 0 and not (sought.relative or sought.absolute)
    return QuantileFound(sought, value, lower, upper, met, columns.get(f"by_rank{place}", met & only_rank))


def _trail_in(columns: dict[str, Any]) -> Trail | None:
    """Return what was measured, where that is kept."""
    if "paid" not in columns:
        return None
    trail = trail_in(columns, len(columns["paid"]))
    trail.paid = columns["paid"]
    return trail


def columns_of(trail: Trail, before: str = "") -> dict[str, Any]:
    """Return the columns that keep what was measured; their names begin as said."""
    trail = trail.trimmed()
    return {
        f"{before}{name}{place}": row
        for name in (*_LANES, *_DEPTHS)
        for place, row in enumerate(getattr(trail, name))
        if name in _KEPT or (row != _usual(name)).any()
    }


def trail_in(columns: dict[str, Any], groups: int, before: str = "") -> Trail:
    """Return what `columns_of` keeps; what was paid is not in it."""
    trail = Trail.nothing(groups)
    many = {name: sum(f"{before}{name}{place}" in columns for place in range(len(columns))) for name in _KEPT}
    for name in (*_LANES, *_DEPTHS):
        none = np.full_like(getattr(trail, name), _usual(name), shape=groups)
        kept = many["counted" if name in _LANES else "thresholds"]
        rows = [columns.get(f"{before}{name}{place}", none) for place in range(kept)]
        setattr(trail, name, np.array(rows) if rows else getattr(trail, name))
    return trail


def _usual(name: str) -> int:
    """Return what a column of a trail holds where nothing is known: such columns are not stored."""
    return -1 if name == "places" else 0


def ranks_of(found: Histogram, query: Query, aggregate: Quantile) -> Ranks:
    """Return a histogram as ranks, which show nothing."""
    return Ranks.of(found.groups, found.leaves, found.counts, groups=query.groups, leaves_log2=aggregate.leaves_log2)


def bisected(
    pricing: QuantileBisectionPricing, ranks: Ranks, watcher: Watcher | None, looks: BegunLooks
) -> QuantileState:
    """Find a quantile of every group by bisection, each look begun in the ledger before it is measured.

    Guarantee: over all runs of a question, each on the trail of those before, mu-GDP for mu^2 = the sum over the
        `max_groups` most expensive groups of the state's `paid`.
    Proof: [SmithT22]; docs/proofs/accuracy.quantile_bisection.md.
    Assumes: one unit moves the rows at or below any threshold, less q of the rows, by at most `lane_sensitivity`.
    Rounds: as `mechanisms.gaussian.GaussianMeasurements`.
    """
    noisy = NoisyRanks(ranks, pricing.descent.asked)

    def measure(thresholds: Ints, grains: Ints, groups: Ints) -> NDArray[np.float64]:
        """Begin a look at thresholds, then measure it."""
        looks.begin(grains, groups)
        return noisy.measure(thresholds, grains, groups)

    def measure_count(grains: Ints, groups: Ints) -> NDArray[np.float64]:
        """Begin a look at rows, then measure it."""
        looks.begin(grains, groups)
        return noisy.measure_count(grains, groups)

    return pricing.descent.run(
        measure,
        measure_count,
        groups=ranks.groups,
        held=pricing.held,
        settled=pricing.settled(ranks.groups),
        progress=None if watcher is None else lambda *facts: hand_over(watcher, Progress(*facts)),
    )


def searched(pricing: QuantileChainsPricing, ranks: Ranks, watcher: Watcher | None, looks: BegunLooks) -> QuantileState:
    """Find a quantile of every group by Laplace chains, each look begun in the ledger before it is shown.

    Guarantee: over all runs of a question on one line of looks, epsilon-DP ex post for epsilon = the sum over the
        `max_groups` most expensive groups of the state's `paid`.
    Proof: docs/proofs/accuracy.quantile_chains.md; docs/proofs/session.answering.laplace_count.md for the books.
    Assumes: a pure ledger; chains that are held are carried on by one line of looks; an engine that keeps `max_rows`.
    Rounds: nothing.
    """
    max_rows = pricing.search.asked.max_rows
    noisy, rounds = ShownRanks(ranks, max_rows), ShownJointRanks(ranks, max_rows)

    def show(thresholds: Ints, held: ShownSides, farthings: Ints, groups: Ints) -> tuple[Floats, Floats]:
        """Begin looks, then show them: what is paid is by how much the chains rise."""
        looks.begin(farthings - held.farthings, groups)
        return noisy.show(thresholds, held, farthings, groups)

    def show_bins(held: ShownBins, farthings: Ints, groups: Ints) -> Ints:
        """Do the same with the bins of a round."""
        looks.begin(farthings - held.farthings, groups)
        return rounds.show(held, farthings, groups)

    return pricing.search.run(
        show_bins if pricing.search.by_value else show,
        groups=ranks.groups,
        held=pricing.held,
        settled=pricing.settled(ranks.groups),
        progress=None if watcher is None else lambda *facts: hand_over(watcher, Progress(*facts)),
    )


def chosen(pricing: QuantileChoicePricing, ranks: Ranks) -> tuple[QuantileFound, Booked, NDArray[np.float64]]:
    """Choose a quantile of every group by the exponential mechanism, and return it, its price and each group's own.

    Guarantee: as the mechanism, in each of a unit's groups: one choice.
    Proof: docs/proofs/accuracy.quantile_bisection.md.
    Assumes: as `accuracy.quantile_choice.ExponentialQuantile`.
    Rounds: nothing.
    """
    quantile = pricing.quantile
    ends = np.full(ranks.groups, quantile.asked.lower), np.full(ranks.groups, quantile.asked.upper)
    own = np.full(ranks.groups, float(_one(pricing).value) * (1 + 2.0**-50))
    value = quantile.values(quantile.choose(ranks, pricing.most))
    met = np.ones(ranks.groups, np.bool_)
    return QuantileFound(pricing.sought, value, *ends, met, ~met), pricing.loss(pricing.most), own


def _one(pricing: QuantileChoicePricing) -> Booked:
    """Return the loss of a unit in one group."""
    if pricing.currency is Pure:
        return Pure.of_farthings(pricing.most)
    return BoundedRange.of_amount(pricing.most * FARTHING).to(pricing.currency)
