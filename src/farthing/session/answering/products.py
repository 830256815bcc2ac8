"""Many sums of cells at once: the cheapest way measured with as much noise as the goal allows, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import InvalidTarget
from farthing.limits.divergence import least_amount
from farthing.limits.query import Limit
from farthing.mechanisms.gaussian import Coin
from farthing.mechanisms.strategy import StrategyMeasurements
from farthing.planning import Frame
from farthing.planning.products import ProductDesign, ProductPlan, contest, design_for
from farthing.planning.ways import Way, Ways, ways_of
from farthing.query.words import about
from farthing.released_products import ProductRelease
from farthing.sealed import Sealed, opened, sealed
from farthing.session.answering.crossed_counts import crossed_counts
from farthing.session.answering.product_record import KeptStrategies
from farthing.session.answering.product_request import MECHANISMS, ProductRequest
from farthing.session.answering.release import bill_of
from farthing.session.answering.release_request import wanted
from farthing.session.core.ceiling import ceiling
from farthing.session.core.merging import merge
from farthing.session.core.transaction import Bill, answer_and_book, stored_measurement

if TYPE_CHECKING:
    from farthing.ledger.entry import Receipt, Stored
    from farthing.planning.release import Goal
    from farthing.privacy.loss import Booked


@dataclass(frozen=True, slots=True, eq=False)
class _BookedProducts:
    """A release of products with what stands in the ledger about it, as a transaction books it."""

    asked: ProductRequest
    plan: ProductPlan
    kept: KeptStrategies

    @property
    def bill(self) -> Bill | None:
        """What it is to be charged; None if there is nothing. Refused above its cap."""
        return bill_of(self.plan, least="row")

    def stored_answer(self) -> tuple[ProductPlan, KeptStrategies, Booked]:
        """Return the release that was measured before."""
        return self.plan, self.kept, self.asked.context.loss(0)

    def measured(self, receipt: Receipt) -> tuple[tuple[ProductPlan, KeptStrategies, Booked], Booked]:
        """Count, and measure each strategy that is to be sharper."""
        way, made = self.plan.design.way, self.plan
        tables = _tables(self.asked, way, receipt)
        measuring = StrategyMeasurements(tables, way.strategies, self.asked.reach)
        states, paid = list(self.kept.states), 0
        for number, more in _more(self.kept, made.design).items():
            states[number] = measuring.measure(number, states[number], more)
            paid += more
        price = made.coin.loss(paid)
        return (made, KeptStrategies(way.strategies, tuple(states)), price), price

    def merged(
        self, current: bytes | None, answer: tuple[ProductPlan, KeptStrategies, Booked], receipt: Receipt
    ) -> bytes:
        """Return what the ledger is to keep: every measurement, ours and others', each of them paid in full."""

        def both(theirs: bytes, _: bytes) -> bytes:
            """Return a record of all measurements."""
            return KeptStrategies.from_bytes(theirs).with_all(self.kept, answer[1]).to_bytes()

        return merge(current, answer[1].to_bytes(), receipt, read=None, both=both)


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
        made, kept, price = answer_and_book(context, question, lambda stored: _find(asked, chosen, stored))
    means = [state.mean for state in kept.states]
    return ProductRelease(
        name=asked.name,
        workload=asked.workload,
        paid=context.loss(price.farthings),
        remaining=context.loss(context.ledger.remaining),
        delta=context.budget.report_delta,
        about=f"{made.about}; a row counts if it is in every column's list and between all edges; {context.where_kept}",
        _keys={axis: asked.lists[place].column(asked.query.by[place]) for axis, place in asked.places.items()},
        _values=tuple(
            np.asarray(sum(use.of(means[use.strategy]) for use in uses), np.float64) for uses in made.design.way.uses
        ),
        _plan=made,
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
    paid = made.coin.loss(design.total)
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
    frame, goal = _frame(asked)
    best = contest(ways, goal, Coin(frame.gaussian, 1, asked.reach), asked.reach)[0].name
    return _Chosen(ways, names[asked.mechanism or best])


def _frame(asked: ProductRequest) -> tuple[Frame, Goal]:
    """Return what the plan begins with, and the goal."""
    context, request = asked.context, asked.request
    limit = context.budget.loss(request.max_epsilon) if request.max_epsilon is not None else request.cap
    frame = Frame.of(
        asked.query,
        request=request,
        limit=limit,
        parts=1,
        budget=context.budget,
        remaining=context.loss(context.ledger.remaining),
    )
    goal = asked.goal(request.beta(asked.answers if request.simultaneous else 1))
    return frame, goal if goal.loss is None else replace(goal, loss=frame.cap)  # in whole farthings, as it is booked


def _find(asked: ProductRequest, chosen: _Chosen, stored: Stored | None) -> _BookedProducts:
    """Plan a release of products under what is known of it."""
    context, way = asked.context, chosen.way
    kept = KeptStrategies.nothing(way.strategies)
    if stored is not None and stored.blob is not None:
        kept = KeptStrategies.from_bytes(stored.blob)
        way = replace(way, strategies=kept.strategies)
    frame, goal = _frame(asked)
    coin = Coin(frame.gaussian, 1, asked.reach)
    before = ProductDesign(way, asked.reach, kept.grains)
    design = design_for(way, coin, goal, kept.grains, asked.reach)
    needed = sum(_more(kept, design).values())
    made = ProductPlan(
        question=asked.words,
        goal=goal,
        ways=chosen.ways,
        design=design,
        before=before,
        worst_price=context.loss(coin.loss(needed).farthings),
        cap=frame.cap or frame.remaining,
        remaining=frame.remaining,
        delta=context.budget.report_delta,
        about=about(asked.query),
        coin=coin,
        most_rows=asked.query.max_rows,
        free=not needed,
    )
    return _BookedProducts(asked, made, kept)


def _more(kept: KeptStrategies, design: ProductDesign) -> dict[int, int]:
    """Return what each strategy is to pay on top of what it has, where that is anything: whole grains, exactly."""
    pairs = zip(kept.states, map(int, design.grains.tolist()), strict=True)
    found = {number: grains - state.grains for number, (state, grains) in enumerate(pairs)}
    return {number: more for number, more in found.items() if more > 0}


def _refined(asked: ProductRequest, **changes: Any) -> ProductRelease:
    """Return a sharper release of the same products."""
    absolute, rms = asked.errors
    options: dict[str, Any] = {
        "absolute": absolute,
        "rms": rms,
        "loss": asked.request.loss,
        "confidence": asked.request.confidence,
        "simultaneous": asked.request.simultaneous,
        "max_epsilon": asked.request.max_epsilon,
        "cap": asked.request.cap,
    }
    goals = {"absolute", "rms", "loss"}
    options |= dict.fromkeys(goals, None) if goals & set(changes) else {}
    options |= dict.fromkeys({"max_epsilon", "cap"}, None) if {"max_epsilon", "cap"} & set(changes) else {}
    request, errors, _ = wanted(options | changes, MECHANISMS)
    return release(replace(asked, request=request, errors=errors))


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
