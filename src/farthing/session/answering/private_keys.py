"""Groups that are found privately: a noisy threshold on the units of every group that exists, booked with its delta.

The keys that were found are kept in the ledger: asking again finds the same ones free of charge.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidKeys, InvalidTarget
from farthing.mechanisms.gaussian import GRAIN
from farthing.mechanisms.keys import GaussianKeys, OptimalKeys
from farthing.planning.private_keys import plan_private_keys
from farthing.privacy.loss import Pure, Zcdp
from farthing.query import Keys, Schema
from farthing.query.aggregates import Count, CountUnits
from farthing.query.keys import empty_keys
from farthing.query.share_of_total import ShareOfTotal
from farthing.query.words import about, describe
from farthing.release import Answer, Cells
from farthing.rounding import DELTA_COIN, coins_up
from farthing.session.answering import mixed_question, optimality, reuse
from farthing.session.answering.one_question import frame_of, plan_afresh, refuse_hopeless
from farthing.session.core.booked_question import Bill
from farthing.session.core.merging import merge
from farthing.session.core.records import read_keys, write_keys
from farthing.session.core.transaction import answer_and_book, stored_measurement
from farthing.session.reading.reader import kinds_of
from farthing.trace import trace

if TYPE_CHECKING:
    import pyarrow as pa

    from farthing.ledger.entry import Receipt, Stored
    from farthing.planning import Plan
    from farthing.privacy.loss import Booked
    from farthing.query import Query
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion
    from farthing.session.reading.request import Request

HALF: Final = 2
"""A search may cost half of what its question may, the answers on what was found the other half."""


@dataclass(frozen=True, slots=True)
class KeySearch:
    """A search for the groups of a question.

    Attributes:
        question: its identity in the ledger.
        rule: which groups are told.
        found_above: units, from which groups are found with the confidence.
        price: the loss of telling, delta apart.
        stored: the keys that were found before, or None.
    """

    question: str
    rule: GaussianKeys | OptimalKeys
    found_above: int
    price: Booked
    stored: pa.Table | None

    @property
    def delta(self) -> float:
        """The delta that the search is charged."""
        return float(self.rule.delta_coins * DELTA_COIN)

    @property
    def about(self) -> str:
        """What the search promises, in words."""
        return (
            f"groups found privately: one of at least {self.found_above:,} units is told with the confidence; "
            f"delta {self.delta:.3g} of those set aside for keys"
        )


def plan(context: Context, question: CheckedQuestion, request: Request) -> Plan:
    """Return the plan of a question whose groups are to be found. Touches no data and is free."""
    search = _search(context, question, request)
    if search.stored is not None and search.stored.num_rows:
        return mixed_question.plan(context, _on(context, question, search.stored), request)
    asked = replace(question.query, outputs=question.outputs, by=(), groupings=())
    frame = frame_of(context, asked, request, HALF)
    made = plan_private_keys(frame, search.price, search.about, question.query.by)
    made = replace(made, hopeless=_hopeless(context, asked, request))
    words = describe(asked) + f" BY {', '.join(question.query.by)} [groups to be found]"
    return replace(made, question=words, about=f"{about(question.query)}; {search.about}")


def _hopeless(context: Context, asked: Query, request: Request) -> bool:
    """Return whether no group can be within its target, whichever are found."""
    rest = _rest(request)
    kinds = mixed_question.kinds(context, asked, rest)
    return any(plan_afresh(context, part, rest.about(part, len(asked.outputs)), len(kinds)).hopeless for part in kinds)


def ask(context: Context, question: CheckedQuestion, request: Request) -> Answer:
    """Find the groups of a question and answer it for them.

    Guarantee: the keys leave at the price of the rule, in loss and delta, charged before anything is drawn.
    Proof: docs/proofs/mechanisms.keys.md.
    Assumes: an engine that keeps the contract of `engines.Engine.found`.
    Rounds: the price up to whole farthings, delta up to whole coins.
    """
    search = _search(context, question, request)
    if search.stored is None:
        refuse_hopeless(plan(context, question, request), spend=request.spend)
    keys, paid = answer_and_book(
        context, search.question, lambda stored: _BookedSearch(context, question.query, search, stored)
    )
    kept = stored_measurement(context, search.question)
    keys = keys if kept is None else read_keys(kept.blob)
    if not keys.num_rows:
        return _nothing(context, question, request, search, paid)
    made = mixed_question.ask(context, _on(context, question, keys), _rest(request))
    return replace(made, paid=made.paid + paid, about=f"{made.about}; {search.about}")


def _nothing(context: Context, question: CheckedQuestion, request: Request, search: KeySearch, paid: Booked) -> Answer:
    """Return the answer of a search that found no group: no rows, and what it cost."""
    none, names = np.zeros(0), tuple(output.name for output in question.outputs)
    query = question.query
    return Answer(
        names=names,
        columns=tuple(Cells(none, none, none, np.zeros(0, np.bool_)) for _ in names),
        keys=empty_keys(kinds_of(context.engine, query)),
        paid_by_group=none,
        target=None,
        goal=request.goal(replace(query, outputs=question.outputs, by=(), groupings=())),
        confidence=request.confidence,
        paid=paid,
        remaining=context.loss(context.ledger.remaining),
        delta=context.budget.report_delta,
        about=f"{about(query)}; {search.about}; no group was found; {context.where_kept}",
        _doubling=lambda: None,
        _refine=lambda **changes: ask(context, question, request.changed(**changes)),
        _strict=none,
        _by_size=False,
        _optimality=lambda: optimality.refuse(query),
        _trace=lambda: trace(
            names, [(none, none, none)] * len(names), none, (), parameter=paid.parameter, goal=""
        ).keep(none.astype(np.int64), empty_keys(kinds_of(context.engine, query))),
    )


def _rest(request: Request) -> Request:
    """Return the request as the answers on the groups that were found may spend it."""
    return replace(request, shares=HALF)


def _on(context: Context, question: CheckedQuestion, keys: pa.Table) -> Query:
    """Return a question on the groups that were found."""
    query = question.query
    kinds = kinds_of(context.engine, query)
    return replace(query, outputs=question.outputs, keys=Keys.of(query.by, keys, Schema.of(kinds)))


def _search(context: Context, question: CheckedQuestion, request: Request) -> KeySearch:
    """Return the search of a question, and what it found if it was made before."""
    query = question.query
    above = _found_above(question, request)
    promise = json.dumps([query.canonical(), query.max_groups, above, request.confidence])
    identity = reuse.identity(context.data(query), query.family(), promise)
    stored = stored_measurement(context, identity)
    rule = _rule(context, query, above, request.confidence)
    price = _price(context, rule)
    cap = frame_of(context, replace(query, outputs=question.outputs, by=(), groupings=()), request, HALF).cap
    if stored is None and cap is not None and price > cap:
        raise InvalidTarget(
            "finding groups that small costs more than half of what the question may",
            rule=f"price of the keys <= {cap!r}",
            got=f"{price!r} for groups of {above:,} units",
            next_step="raise found_above, or allow more with cap= or max_epsilon=",
        )
    if stored is None:
        _check_shares(question)
    return KeySearch(identity, rule, above, price, None if stored is None else read_keys(stored.blob))


def _check_shares(question: CheckedQuestion) -> None:
    """Refuse shares of a total before any group was found: of one group alone there is none, and that was paid for."""
    shares = [output.name for output in question.outputs if isinstance(output.aggregate, ShareOfTotal)]
    if shares:
        raise InvalidKeys(
            "shares of a total of groups that were not found yet",
            rule="a share is that of one group in the total of several",
            got=f"keys='private' for {', '.join(shares)}",
            next_step="list the groups; or find them first, with COUNT(*) under the same found_above and confidence",
        )


def _found_above(question: CheckedQuestion, request: Request) -> int:
    """Return the size from which groups are to be found: as asked, or twice the absolute target of a count."""
    if request.found_above is not None:
        above = request.found_above
        if isinstance(above, bool) or not isinstance(above, int) or above < 2:
            raise InvalidTarget(
                "found_above is out of range",
                rule="a whole number of units, at least 2",
                got=repr(above),
                next_step="found_above=100 finds groups of 100 units with the confidence",
            )
        return above
    targets = [request.target(output.name) for output in question.outputs]
    counts = all(isinstance(output.aggregate, Count | CountUnits) for output in question.outputs)
    if counts and all(target is not None and target.absolute for target in targets):
        return max(2, math.ceil(2 * min(target.absolute for target in targets if target is not None)))
    raise InvalidTarget(
        "the size from which groups are found is missing",
        rule="found_above= units, where the target does not say",
        got="keys='private'",
        next_step="found_above=100 finds groups of 100 units with the confidence",
    )


def _rule(context: Context, query: Query, above: int, confidence: float) -> GaussianKeys | OptimalKeys:
    """Return the cheapest rule in the ledger's currency, at a tenth of the delta that is set aside."""
    delta = context.key_coins() * DELTA_COIN
    kind = OptimalKeys if context.budget.currency is Pure else GaussianKeys
    return kind.plan(above, confidence=confidence, delta=delta, max_groups=query.max_groups)


def _price(context: Context, rule: GaussianKeys | OptimalKeys) -> Booked:
    """Return the loss of a rule in the ledger's currency, in whole farthings."""
    currency = context.budget.currency
    if isinstance(rule, OptimalKeys):
        return Pure.of_farthings(rule.farthings)
    amount = rule.cost_grains * GRAIN
    return currency.of_farthings(coins_up(amount / 2 if currency is Zcdp else amount))


@dataclass(frozen=True, slots=True)
class _BookedSearch:
    """A search, as a transaction books it."""

    context: Context
    query: Query
    search: KeySearch
    stored: Stored | None

    @property
    def bill(self) -> Bill | None:
        """The price of the search; None where it was made before."""
        if self.stored is not None:
            return None
        return Bill(
            self.search.price,
            self.search.price,
            f"groups of {self.query.table} BY {', '.join(self.query.by)}",
            lambda: "raise found_above=: larger groups are found for less",
            f"of {self.search.found_above} units or more",
            self.search.rule.delta_coins,
            "the search for groups",
        )

    def stored_answer(self) -> tuple[pa.Table, Booked]:
        """Return the groups that were found before."""
        assert self.stored is not None  # noqa: S101  # there is no bill
        return read_keys(self.stored.blob), self.context.loss(0)

    def measured(self, receipt: Receipt) -> tuple[tuple[pa.Table, Booked], Booked]:
        """Find the groups."""
        there = self.context.engine.found(self.query, self.search.rule.shares, receipt)
        told = np.flatnonzero(self.search.rule.found(there.units))
        table = there.keys.take(told).sort_by([(name, "ascending") for name in self.query.by])
        return (table, self.search.price), self.search.price

    def merged(self, current: bytes | None, answer: tuple[pa.Table, Booked], receipt: Receipt) -> bytes:
        """Return the groups that are kept: those that were found first."""
        return merge(current, write_keys(answer[0]), receipt, read=None, full=True)
