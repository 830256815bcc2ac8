"""The largest groups, chosen privately: only their names leave, most often in order, at the price of a selection.

Scores are the bounded counts or sums of the groups. A selection's price does not grow with the number of groups, and
hardly with how many of them a unit moves. Groups that nobody lists are chosen from those that exist, at a price in
delta; fewer may come back then, and only these are paid.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import InvalidTarget, UnsupportedQuery
from farthing.mechanisms.joint_top_k import JointTopK
from farthing.mechanisms.leads import choose_with_leads, tells_leads
from farthing.mechanisms.noisy_max import NoisyMax
from farthing.mechanisms.refined_max import RefinedMax, check_target
from farthing.mechanisms.select import choose_mechanism, named
from farthing.mechanisms.top_k import TopK
from farthing.mechanisms.unknown_top_k import UnknownTopK
from farthing.privacy.loss import Gdp, Loss, Pure, Zcdp
from farthing.privacy.numbers import exact
from farthing.privacy.words import said
from farthing.query.aggregates import Count, CountUnits, Sum
from farthing.rounding import DELTA_COIN
from farthing.session.answering import reuse
from farthing.session.choosing.leads import describe_choice, with_leads, without_order
from farthing.session.core.booked_question import Bill
from farthing.session.core.merging import merge
from farthing.session.core.records import read_keys, write_keys
from farthing.session.core.transaction import answer_and_book, stored_measurement

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from farthing.chosen import Chosen
    from farthing.ledger.entry import Receipt, Stored
    from farthing.mechanisms.select import Selection
    from farthing.privacy.loss import Booked
    from farthing.privacy.numbers import Number
    from farthing.query import Query
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion

CANDIDATES: Final = 4
"""Of groups that are not listed, so many times k of the largest take part."""


REFINED: Final = "a refined maximum"

WORTH: Final = 2
"""A refined maximum is taken where at worst it costs at most this many times the cheapest fixed selection."""


@dataclass(frozen=True, slots=True)
class TopKRequest:
    """Which groups are wanted, how surely, and at what price at most.

    Attributes:
        k: how many, best first.
        epsilon: the price of one of the k choices, or None.
        within: how much less than the true k-th largest a chosen group may have, in answer units, or None.
        order: the chance that the chosen are the largest, in the right order, or None.
        confidence: the chance that the promise of `within` holds.
    """

    k: int
    epsilon: Number | None = None
    within: float | None = None
    order: float | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise InvalidTarget(
                "k is not a number of groups", rule="a whole number >= 1", got=repr(self.k), next_step="k=10"
            )
        if sum(wanted is not None for wanted in (self.epsilon, self.within, self.order)) != 1:
            raise InvalidTarget(
                "the choice has no stated quality or price",
                rule="one of within= (accuracy), order_correct= (order) and epsilon= (the price of one choice)",
                got=f"within={self.within!r}, order_correct={self.order!r}, epsilon={self.epsilon!r}",
                next_step="within=50 chooses groups that are at most 50 below the true k-th",
                missing="" if self.epsilon or self.within or self.order else "target",
            )
        if self.epsilon is not None and not exact(self.epsilon, "epsilon"):
            raise InvalidTarget(
                "epsilon is zero",
                rule="epsilon > 0, the price of one choice",
                got=self.epsilon,
                next_step="epsilon=0.1",
            )
        check_target(1.0 if self.within is None else self.within, self.confidence if self.order is None else self.order)

    @property
    def words(self) -> str:
        """What is asked for, in words."""
        if self.epsilon is not None:
            return f"epsilon {float(self.epsilon):g} for each of {self.k} choices"
        if self.order is not None:
            return f"in the right order, {self.order:.4g} confidence"
        return f"at most {self.within:,.6g} below the true rank {self.k}, {self.confidence:.4g} confidence"

    @property
    def canonical(self) -> str:
        """The identity text."""
        price = None if self.epsilon is None else str(exact(self.epsilon, "epsilon"))
        return json.dumps([self.k, price, self.within, self.order, self.confidence])


@dataclass(frozen=True, slots=True)
class SelectionOffer:
    """The selection that is bought.

    Attributes:
        mechanism: the cheapest in the ledger's currency; a refined maximum where that may well be cheaper.
        price: of all k choices, in whole farthings; the most that a refined maximum can cost.
        compared: the selections that give the same promise, with their prices, cheapest first.
    """

    mechanism: Selection | RefinedMax
    price: Booked
    compared: tuple[tuple[str, Booked], ...]

    @property
    def name(self) -> str:
        """What people call the selection."""
        return REFINED if isinstance(self.mechanism, RefinedMax) else named(self.mechanism)


def offer(context: Context, query: Query, wanted: TopKRequest) -> SelectionOffer:
    """Return the cheapest selection in the ledger's currency that keeps a promise about the first aggregate."""
    currency, measure = context.budget.currency, query.measures[0]
    if wanted.epsilon is not None:
        mechanism = TopK(wanted.k, wanted.epsilon, "exponential" if currency is Pure else "gumbel")
        price = _whole(context, mechanism.price(currency))
        return SelectionOffer(mechanism, price, ((named(mechanism), price),))
    assert wanted.within is not None  # noqa: S101  # an order is asked of counts
    best = choose_mechanism(
        currency,
        options=query.groups,
        within=wanted.within / measure.step,
        confidence=wanted.confidence,
        k=wanted.k,
        sensitivity=measure.sensitivity(query.max_rows),
        monotone=monotone(query),
        moved=query.max_groups,
    )
    compared = tuple((named(one), _whole(context, price)) for one, price in best.compared)
    made = SelectionOffer(best.mechanism, _whole(context, best.price), compared)
    return made if currency is Pure or wanted.k > 1 else _refined(context, query, wanted, made)


def _refined(context: Context, query: Query, wanted: TopKRequest, made: SelectionOffer) -> SelectionOffer:
    """Return a refined maximum instead, where at worst it costs little more: it stops as soon as the lead is plain."""
    assert wanted.within is not None  # noqa: S101  # what it keeps to
    mechanism = RefinedMax(
        wanted.within / query.measures[0].step, wanted.confidence, query.sensitivity, query.max_groups
    )
    most = _whole(context, mechanism.most(query.groups, Zcdp if context.budget.currency is Zcdp else Gdp))
    if most.amount > made.price.amount * WORTH:
        return made
    return SelectionOffer(mechanism, most, ((f"{REFINED}, at most", most), *made.compared))


def monotone(query: Query) -> bool:
    """Return whether one unit moves all groups the same way: counts, and sums of values of one sign."""
    match query.aggregate:
        case Count() | CountUnits():
            return True
        case Sum(lower=lower, upper=upper):
            return lower >= 0 or upper <= 0
        case _:
            return False


def choose(context: Context, question: CheckedQuestion, wanted: TopKRequest, cap: Booked | None) -> Chosen:
    """Return the k largest groups, chosen privately.

    Args:
        context: the data and the books.
        question: one count or sum, by groups.
        wanted: which groups, how surely.
        cap: the most that the choice may cost, or None for all that is left.

    Guarantee: the choice is as private as what the ledger charged for it.
    Proof: docs/proofs/session.choosing.top_k.md.
    Assumes: an engine that keeps the contract of `engines.Engine`; certified races.
    Rounds: the price up to whole farthings.
    """
    check(question, wanted)
    return (_unlisted if question.private else _listed)(context, question, wanted, cap)


def _listed(context: Context, question: CheckedQuestion, wanted: TopKRequest, cap: Booked | None) -> Chosen:
    """Choose among listed groups."""
    query = question.query.arranged()
    made = offer(context, query, wanted)

    def chosen(receipt: Receipt) -> tuple[pa.Table, Booked]:
        """Measure the scores and choose."""
        scores = context.engine.measure(query, receipt)[0]
        assert query.keys is not None  # noqa: S101  # there are groups
        if isinstance(made.mechanism, RefinedMax):
            best = made.mechanism.choose(scores)
            paid = best.price(Zcdp if context.budget.currency is Zcdp else Gdp)
            return query.keys.table.take([best.index]), _whole(context, paid)
        how: dict[str, Any] = {"monotone": monotone(query)}
        if tells_leads(made.mechanism) and query.groups > 1:
            how |= {"moved": query.max_groups, "confidence": wanted.confidence}
            led = choose_with_leads(made.mechanism, scores, query.sensitivity, **how)
            return with_leads(query.keys.table.take(led.places), led, query.measures[0].step), made.price
        if isinstance(made.mechanism, TopK | NoisyMax):
            how["moved"] = query.max_groups
        places = np.atleast_1d(made.mechanism.choose(scores, query.sensitivity, **how))
        names = query.keys.table.take(places)
        return without_order(names) if isinstance(made.mechanism, JointTopK) else names, made.price

    keys, paid = _booked(context, question, wanted, _ChoicePrice(made.price, cap), chosen)
    note = f"chosen by {made.name} from {query.groups:,} listed groups"
    return describe_choice(context, question, (wanted.k, wanted.words), keys, paid, note, made.compared)


def _unlisted(context: Context, question: CheckedQuestion, wanted: TopKRequest, cap: Booked | None) -> Chosen:
    """Choose among the groups that exist: fewer than k may come back, and only these are paid, and the stop."""
    if wanted.epsilon is None:
        raise InvalidTarget(
            "groups that are not listed are chosen at a price",
            rule='keys="private" takes epsilon=, the price of one choice',
            got=wanted.words,
            next_step="epsilon=0.1, or list the keys",
        )
    import pyarrow.compute as pc

    query, currency, coins = question.query, context.budget.currency, context.key_coins()
    rule = UnknownTopK(wanted.k, CANDIDATES * wanted.k, wanted.epsilon, coins * DELTA_COIN, moved=query.max_groups)

    def chosen(receipt: Receipt) -> tuple[pa.Table, Booked]:
        """Find the groups that exist and choose among the largest; ties among them go by name."""
        there = context.engine.found(query, (), receipt)
        by_name = pc.sort_indices(there.keys, [(name, "ascending") for name in query.by]).to_numpy()
        largest = by_name[np.argsort(-there.units[by_name], kind="stable")][: rule.k_bar + 1]
        made = rule.choose(there.units[largest], 1, monotone=True)
        return there.keys.take(largest[made.places]), _whole(context, rule.price(currency, made.peels))

    price = _ChoicePrice(_whole(context, rule.price(currency)), cap, coins)
    keys, paid = _booked(context, question, wanted, price, chosen)
    note = (
        f"chosen by their {'rows' if query.unit.is_row else 'units'} from groups that were not listed, at delta "
        f"{float(coins * DELTA_COIN):.3g} of those set aside for keys; one of about "
        f"{rule.needed(wanted.confidence):,.0f} more than the {rule.k_bar + 1}-th largest stands out"
    )
    return describe_choice(context, question, (wanted.k, wanted.words), keys, paid, note)


def check(question: CheckedQuestion, wanted: TopKRequest) -> None:
    """Refuse what no selection can answer."""
    query, outputs = question.query, question.outputs
    allowed = Count | CountUnits if question.private else Count | CountUnits | Sum
    if len(outputs) != 1 or not isinstance(outputs[0].aggregate, allowed) or not query.by:
        raise UnsupportedQuery(
            "groups are chosen by one count or sum",
            construct="top_k",
            rule="the groups of a column, by their rows, or by a value that is added up where the groups are listed",
            got=", ".join(str(output.aggregate) for output in outputs) + (" of unlisted groups" * question.private),
            next_step='session.top_k("dest", k=10, keys=..., within=50)',
        )
    if not question.private and wanted.k > query.groups:
        raise InvalidTarget(
            "more groups are wanted than are listed",
            rule="k <= the number of keys",
            got=f"k={wanted.k}, {query.groups} keys",
            next_step="lower k, or list more keys",
        )


@dataclass(frozen=True, slots=True)
class _ChoicePrice:
    """What a choice may cost: its price, the cap of it or None, and coins of delta."""

    most: Booked
    cap: Booked | None
    delta: int = 0


@dataclass(frozen=True, slots=True)
class _BookedChoice:
    """A choice, as a transaction books it: charged, made and kept once; told again free of charge."""

    context: Context
    label: str
    target: str
    price: _ChoicePrice
    chosen: Callable[[Receipt], tuple[pa.Table, Booked]]
    stored: Stored | None

    @property
    def bill(self) -> Bill | None:
        """The price of the choice, None where it was made before; refused above its cap."""
        if self.stored is not None:
            return None
        price, cap, delta = self.price.most, self.price.cap, self.context.budget.report_delta
        if cap is not None and price > cap:
            raise InvalidTarget(
                "the choice costs more than the question may",
                rule=f"price <= {said(cap, delta)}",
                got=said(price, delta),
                next_step="allow more with cap= or max_epsilon=, or ask for less: a larger within=, a smaller k",
            )
        fitting = "ask for less: a larger within=, a smaller epsilon=, a smaller k"
        return Bill(price, price, self.label, lambda: fitting, self.target, self.price.delta, "the choice")

    def stored_answer(self) -> tuple[pa.Table, Booked]:
        """Return the groups that were chosen before."""
        assert self.stored is not None  # noqa: S101  # there is no bill
        return read_keys(self.stored.blob), self.context.loss(0)

    def measured(self, receipt: Receipt) -> tuple[tuple[pa.Table, Booked], Booked]:
        """Choose."""
        keys, paid = self.chosen(receipt)
        return (keys, paid), paid

    def merged(self, current: bytes | None, answer: tuple[pa.Table, Booked], receipt: Receipt) -> bytes:
        """Return the choice that is kept: the one that was made first."""
        return merge(current, write_keys(answer[0]), receipt, read=None, full=True)


def _booked(
    context: Context,
    question: CheckedQuestion,
    wanted: TopKRequest,
    price: _ChoicePrice,
    chosen: Callable[[Receipt], tuple[pa.Table, Booked]],
) -> tuple[pa.Table, Booked]:
    """Charge a choice, make it, and keep it; a choice that was made before is told again free of charge."""
    by = ", ".join(question.query.by)
    label = f"the {wanted.k} largest {by} of {question.query.table} by {question.outputs[0].aggregate}"
    identity = identity_of(context, question, wanted)
    keys, paid = answer_and_book(
        context, identity, lambda stored: _BookedChoice(context, label, wanted.words, price, chosen, stored)
    )
    kept = stored_measurement(context, identity)
    return (keys if kept is None else read_keys(kept.blob)), paid


def identity_of(context: Context, question: CheckedQuestion, wanted: TopKRequest) -> str:
    """Return the identity of a choice in the ledger; its family is none of counts, so no count is read from it."""
    query = question.query.arranged()
    facts = [query.canonical(), question.outputs[0].aggregate.canonical(), wanted.canonical]
    return reuse.identity(context.data(query), f"choice {query.family()}", json.dumps(facts))


def stored_choice(context: Context, question: CheckedQuestion, wanted: TopKRequest) -> pa.Table | None:
    """Return the groups of a choice that was made before, or None."""
    stored = stored_measurement(context, identity_of(context, question, wanted))
    return None if stored is None else read_keys(stored.blob).replace_schema_metadata(None)


def cap_of(context: Context, limit: Loss | str | None, *, default: bool) -> Booked | None:
    """Return the most that a choice may cost, or None for all that is left.

    Args:
        context: the data and the books.
        limit: a loss, "all", or None.
        default: whether None is a tenth of the budget; else it is all that is left.
    """
    if limit == "all" or (limit is None and not default):
        return None
    if not isinstance(limit, Loss):
        return context.loss(context.budget.total.farthings // 10)
    if type(limit) is not context.budget.currency:
        raise InvalidTarget(
            "the cap is in another currency than the ledger",
            rule=f"this ledger is kept in {context.budget.currency.__name__}",
            got=type(limit).__name__,
            next_step=f"pass a {context.budget.currency.__name__}, or max_epsilon=",
        )
    return limit


def _whole(context: Context, price: Booked) -> Booked:
    """Return a price in whole farthings, rounded up."""
    return context.loss(price.farthings)
