"""Many sums of cells at once: the cheapest way measured with as much noise as the goal allows, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from farthing.errors import InvalidTarget
from farthing.limits.divergence import least_amount
from farthing.limits.query import Limit
from farthing.mechanisms.strategy import StrategyMeasurements
from farthing.planning.product_pilot import ProductPilot
from farthing.planning.products import ProductDesign, ProductPlan, contest, design_for
from farthing.planning.same_total import answers_of
from farthing.planning.ways import Way, Ways, ways_of
from farthing.released_products import ProductRelease
from farthing.sealed import Sealed, opened, sealed
from farthing.session.answering.crossed_counts import crossed_counts
from farthing.session.answering.product_record import KeptStrategies
from farthing.session.answering.product_request import MECHANISMS, ProductRequest
from farthing.session.answering.release_booking import BookedRelease, booked, refined_options
from farthing.session.answering.release_options import wanted
from farthing.session.core.ceiling import ceiling
from farthing.session.core.transaction import answer_and_book, stored_measurement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.ledger.entry import Receipt, Stored
    from farthing.mechanisms.strategy import StrategyState
    from farthing.planning.release_plan import Goal
    from farthing.privacy.loss import Booked


class _BookedProducts(BookedRelease[ProductPlan, KeptStrategies]):
    """A release of products, as a transaction books it."""

    asked: ProductRequest
    pilot: ProductPilot | None = None

    def measure(self, receipt: Receipt) -> tuple[ProductPlan, KeptStrategies, Booked]:
        """Count, look with a pilot where the target is relative, and measure each strategy that is to be sharper."""
        way, made, kept = self.plan.design.way, self.plan, self.kept
        measuring = StrategyMeasurements(_tables(self.asked, way, receipt), way.strategies, self.asked.reach)
        if self.pilot is not None:
            while (level := self.pilot.next(kept.pilot)) is not None:
                kept = self._sharpened(measuring, receipt, kept, "pilot", level)
            looked = sum(state.grains for state in kept.pilot)
            made = replace(made, design=self.pilot.design(kept.pilot, kept.grains), pilot=looked)
        kept = self._sharpened(measuring, receipt, kept, "states", made.design.grains)
        return made, kept, made.coin.loss(self.paid)

    def _sharpened(
        self, measuring: StrategyMeasurements, receipt: Receipt, kept: KeptStrategies, name: str, grains: Any
    ) -> KeptStrategies:
        """Return what is kept with each strategy, for the answers or of the pilot, at so many grains."""
        states: list[StrategyState] = list(getattr(kept, name))

        def now() -> KeptStrategies:
            """Return what is kept, with all that was measured by now."""
            return kept.with_states(name, tuple(states))

        for number, more in self.looks(_more(states, grains), receipt, now):
            states[number] = measuring.measure(number, states[number], more)
        return now()


def plan(asked: ProductRequest) -> ProductPlan:
    """Return the price of a release of products; it spends nothing."""
    chosen = _chosen(asked)
    return _find(asked, chosen, stored_measurement(asked.context, asked.question(chosen.way.name))).plan


def release(asked: ProductRequest) -> ProductRelease:
    """Measure a release of products in the cheapest way that reaches its goal, and book it.

    Guarantee: what leaves is as private as what the ledger charged.
    Proof: mechanisms.strategy for what is measured; docs/proofs/session.answering.one_question.md for the books.
    Assumes: an engine that keeps the contract of `engines.Engine`; the ledger is durable.
    Rounds: prices up to whole farthings.
    """
    context, chosen = asked.context, _chosen(asked)
    question = asked.question(chosen.way.name)
    with ceiling(context, asked.request.at_most):
        done = answer_and_book(context, question, lambda stored: _find(asked, chosen, stored))
    made, kept = done.plan, done.kept
    means = [state.mean for state in kept.states]
    return ProductRelease(
        **asked.told(done),
        workload=asked.workload,
        about=f"{made.about}; a row counts if it is in every column's list and between all edges; {context.where_kept}",
        _keys={axis: asked.lists[place].column(asked.query.by[place]) for axis, place in asked.places.items()},
        _values=answers_of(made.design.way, means, made.design.noises),
        _refine=partial(_refined, asked),
        _limit=partial(limit_of, made),
    )


def limit_of(made: ProductPlan) -> Limit:
    """Return the least loss of any unbiased mechanism of the same errors, beside what was paid in all.

    Guarantee: no unbiased mechanism with these errors has a smaller loss.
    Proof: docs/proofs/limits.strategies.md, section 4.
    Assumes: some unit may add `most_rows` rows to one cell.
    Rounds: the least loss down.
    """
    design, ways = made.design, made.ways
    chi = ways.least_mean**2 / float(sum(each.sum() for each in design.counted))
    if made.goal.absolute is not None:
        chi = max(chi, ways.least**2 / design.largest**2)
    paid = made.coin.loss(design.total + made.pilot)
    least = least_amount(type(paid), chi * made.most_rows**2)
    return Limit(type(paid).of_amount(least), paid, sum(len(each) for each in design.variances))


@dataclass(frozen=True, slots=True, eq=False)
class _Chosen:
    """All ways to answer, and the one that was named or is the cheapest."""

    ways: Ways
    way: Way


def _chosen(asked: ProductRequest) -> _Chosen:
    """Return the way that is taken: the one that was named, else the cheapest for the goal, whatever is held."""
    ways = ways_of(asked.workload, asked.sizes, largest=asked.largest)
    names = {way.name: way for way in ways.ways}
    if asked.mechanism is not None and asked.mechanism not in names:
        raise InvalidTarget(
            "the mechanism is not one for this workload",
            rule='"total and factors" has products of one factor each; "matrix" several products of at most 256 cells '
            "together",
            got=repr(asked.mechanism),
            next_step='"auto", ' + ", ".join(map(repr, names)),
        )
    best = contest(ways, asked.goal(), asked.coin, asked.reach)[0].name
    return _Chosen(ways, names[asked.mechanism or best])


def _find(asked: ProductRequest, chosen: _Chosen, stored: Stored | None) -> BookedRelease[ProductPlan, KeptStrategies]:
    """Plan a release of products under what is known of it."""
    way, kept = chosen.way, KeptStrategies.nothing(chosen.way.strategies)
    if stored is not None and stored.blob is not None:
        kept = KeptStrategies.from_bytes(stored.blob)
        way = replace(way, strategies=kept.strategies)
    coin = asked.coin
    before = ProductDesign(way, asked.reach, kept.grains)

    def find(goal: Goal, claims: tuple[float, ...]) -> _BookedProducts:
        """Plan it for a goal."""
        design, pilot, looks = design_for(way, coin, goal, kept.grains, asked.reach), None, {}
        if goal.relative and design.total > before.total:
            pilot = ProductPilot(way, coin, goal, asked.reach)
            if pilot.next(kept.pilot) is None:
                design = pilot.design(kept.pilot, kept.grains)
            else:
                looks = _more(kept.pilot, pilot.most)
        needed = sum(_more(kept.states, design.grains).values()) + sum(looks.values())
        made = ProductPlan(
            **asked.priced(goal, needed),
            ways=chosen.ways,
            design=design,
            before=before,
            pilot=sum(state.grains for state in kept.pilot) + sum(looks.values()) if pilot is not None else 0,
        )
        found = _BookedProducts(asked, made, kept, claims, "row")
        found.pilot = pilot
        return found

    return booked(asked, stored, find)


def _more(states: Sequence[StrategyState], wanted: Any) -> dict[int, int]:
    """Return what each strategy is to pay on top of what it has, where that is anything: whole grains, exactly."""
    pairs = zip(states, map(int, wanted.tolist()), strict=True)
    found = {number: grains - state.grains for number, (state, grains) in enumerate(pairs)}
    return {number: more for number, more in found.items() if more > 0}


def _refined(asked: ProductRequest, **changes: Any) -> ProductRelease:
    """Return a sharper release of the same products."""
    request, errors, relative = wanted(refined_options(asked, changes), MECHANISMS)
    return release(replace(asked, request=request, errors=errors, relative=relative))


def _tables(asked: ProductRequest, way: Way, receipt: Receipt) -> Sealed:
    """Return the exact counts that each strategy measures, sealed, as the strategy has its cells."""
    places = [tuple(asked.places[axis] for axis in axes) for axes in way.axes]
    counted = crossed_counts(asked.context, asked.query, asked.lists, {tuple(sorted(one)) for one in places}, receipt)
    return sealed({
        number: opened(counted)[tuple(sorted(one))]
        .transpose([sorted(one).index(place) for place in one])
        .reshape(strategy.sizes)
        for number, (one, strategy) in enumerate(zip(places, way.strategies, strict=True))
    })  # fmt: skip
