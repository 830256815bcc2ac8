"""Many questions under one budget: all are read and planned first, then asked one after the other while they fit.

Each is an ask like any other: its worst price is reserved, what it used is settled, and only then the next is planned,
with what was left over.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import BudgetExceeded, FarthingError, InvalidTarget, UnsupportedQuery
from farthing.rounding import coins_down
from farthing.session.answering.bounds import FOR_NOW
from farthing.session.batches.draft import Draft
from farthing.session.batches.largest_counts import largest
from farthing.session.batches.shared_loss import together
from farthing.session.questions.methods import Questions
from farthing.session.reading.request import WIDTHS, Request
from farthing.workload import Workload, all_met

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from farthing.planning import Plan
    from farthing.privacy.loss import Booked, Loss
    from farthing.query import AutoBounds, Bounds
    from farthing.release import Answer
    from farthing.session.answering.bounds import Read
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import QuestionReader

ORDERS: Final = ("given", "cheapest")
STRATEGIES: Final = ("each", "together", "largest")
METHODS: Final = (
    "count", "count_distinct", "sum", "mean", "variance", "quantile", "histogram", "sql", "ratio", "difference",
    "correlation", "covariance", "slope",
)  # fmt: skip
"""What an item may ask; the names of the methods."""

_GOALS: Final = frozenset({"loss", *WIDTHS})


class Drafts(Questions):
    """The methods of a session, of which none asks: each returns what would be asked."""

    def __init__(self, context: Context, reader: QuestionReader) -> None:
        self._context = context
        self._reader = reader

    def draft(self, name: str, item: object, how: Mapping[str, Any]) -> Draft:
        """Return the draft of one item, with the common target where it names none of its own."""
        asked = {"ask": "sql", "text": item} if isinstance(item, str) else dict(_checked(item))
        method = asked.pop("ask", "sql" if "text" in asked else "count")
        if method not in METHODS:
            raise _refused(f"ask={method!r}")
        how = {key: value for key, value in how.items() if key not in _GOALS or not self._has_goal(method, asked)}
        problem = ""
        try:
            signature(getattr(self, method)).bind(**(how | asked))
        except TypeError as error:
            problem = str(error)
        if problem:
            raise _refused(problem)
        made = getattr(self, method)(**(how | asked))
        if not isinstance(made, Draft):
            raise _refused("EXPLAIN" if method == "sql" else "explain=True")
        if made.request.on_miss == "raise":
            raise _no_raise()
        if method == "sql" and made.read(FOR_NOW).lists:
            raise UnsupportedQuery(
                "grouping sets in a workload",
                construct="grouping sets",
                rule="the questions of a workload have one plain GROUP BY each, or none",
                next_step="ask it by itself: session.sql(...)",
            )
        return replace(made, name=name)

    def _has_goal(self, method: str, asked: Mapping[str, Any]) -> bool:
        """Return whether an item, or its text, names a target or a price of its own."""
        if not _GOALS.isdisjoint(asked):
            return True
        if method != "sql" or "text" not in asked:
            return False
        read = self._reader.sql(asked["text"], asked.get("keys"), FOR_NOW).asked
        return read is not None and any(
            getattr(read.options, name) is not None for name in ("relative", "absolute", "epsilon")
        )

    def _answered(self, read: Read, given: Bounds | AutoBounds, request: Request) -> Any:
        """Return what would be asked, in place of the answer."""
        return Draft(self._context, read, given, request)


def workload(
    context: Context,
    reader: QuestionReader,
    items: object,
    *,
    order: str,
    strategy: str,
    cap: Loss | str | None,
    max_epsilon: float | None,
    dry_run: bool,
    how: Mapping[str, Any],
) -> Workload:
    """Answer as many questions as the budget allows; see `Session.workload`.

    Guarantee: everything that leaves is as private as what the ledger charged, whatever order the questions take.
    Proof: docs/proofs/session.batches.workload.md.
    Assumes: nothing beyond a single ask: each is one.
    Rounds: nothing.
    """
    if order not in ORDERS:
        raise InvalidTarget(
            "unknown order", rule=" or ".join(ORDERS), got=repr(order), next_step='order="cheapest", or leave it out'
        )
    if strategy not in STRATEGIES:
        raise InvalidTarget(
            "unknown strategy",
            rule=" or ".join(STRATEGIES),
            got=repr(strategy),
            next_step='strategy="together", or leave it out',
        )
    if not isinstance(dry_run, bool):
        raise InvalidTarget(
            "dry_run is yes or no", rule="a boolean", got=repr(dry_run), next_step="dry_run=True asks nothing"
        )
    drafts = read_all(context, reader, items, how)
    allowed = _allowed(context, cap, max_epsilon)
    plans = {draft.name: _planned(draft) for draft in drafts}
    if strategy == "together":
        return together(context, drafts, plans, allowed, dry_run=dry_run)
    if strategy == "largest":
        return largest(context, drafts, plans, allowed, dry_run=dry_run)
    run = _WorkloadRun(context, drafts, plans, allowed, cheapest=order == "cheapest")
    return run.dry() if dry_run else run.asked()


def read_all(context: Context, reader: QuestionReader, items: object, how: Mapping[str, Any]) -> list[Draft]:
    """Return the drafts of all items; refuse all of them where one cannot be read, or two are one question."""
    drafts = Drafts(context, reader)
    found: dict[str, Draft] = {}
    names: dict[str, str] = {}
    for name, item in _named(items):
        if name in found:
            raise _duplicate(f"two questions are called {name!r}", name, name, "give one of them another name")
        with about(name):
            draft = drafts.draft(name, item, how)
            identity = draft.identity
        if identity in names:
            advice = "drop one of them; ask it with the tighter of the two targets"
            raise _duplicate(f"{names[identity]!r} and {name!r} are the same question", names[identity], name, advice)
        found[name], names[identity] = draft, name
    return list(found.values())


@contextmanager
def about(name: str) -> Iterator[None]:
    """Let refusals say which question they are about."""
    try:
        yield
    except FarthingError as error:
        error.within(f"in question {name!r}")
        raise


def _planned(draft: Draft) -> Plan:
    """Return the plan of a question, before anything is asked."""
    with about(draft.name):
        return draft.plan


def _named(items: object) -> Iterator[tuple[str, object]]:
    """Give the items with their names: given ones, or q1, q2, ... by their places."""
    if isinstance(items, Mapping):
        items = items.items()
    items = list(items) if isinstance(items, Iterable) and not isinstance(items, str | bytes) else items
    if not isinstance(items, list) or not items:
        raise UnsupportedQuery(
            "a workload is a list of questions" if items else "a workload without questions",
            construct="workload",
            rule="a list of SQL texts, of dictionaries of arguments, or of (name, one of these); or a mapping",
            got=repr(items)[:80],
            next_step='session.workload(["SELECT COUNT(*) AS n FROM data", {"where": "x > 1"}], absolute=50)',
        )
    for place, item in enumerate(items, start=1):
        pair = isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and item[0] != ""
        yield item if pair else (f"q{place}", item)


def _checked(item: object) -> Mapping[str, Any]:
    """Return an item that is a mapping of arguments."""
    if not isinstance(item, Mapping) or not all(isinstance(key, str) for key in item):
        raise _refused(repr(item)[:80])
    return item


def _refused(got: str) -> UnsupportedQuery:
    """Return the refusal of an item that cannot be read."""
    return UnsupportedQuery(
        "this is not a question of a workload",
        construct="workload",
        rule='SQL, or the arguments of a method that "ask" names: ' + ", ".join(METHODS),
        got=got,
        next_step='{"ask": "sum", "value": "fare", "lower": 0, "upper": 200, "relative": 0.05}',
    )


def _duplicate(what: str, first: str, second: str, advice: str) -> UnsupportedQuery:
    """Return the refusal of a duplicate."""
    return UnsupportedQuery(
        what,
        construct="workload",
        rule="each question once, under a name of its own; its answer serves again free of charge",
        got=f"{first!r} and {second!r}",
        next_step=advice,
    )


def _no_raise() -> InvalidTarget:
    """Return the refusal of a question that would end the workload where it misses its target."""
    return InvalidTarget(
        'on_miss="raise" in a workload',
        rule="a workload returns what it has, with `met` beside it",
        got="on_miss='raise'",
        next_step='leave it out, or on_miss="drop"',
    )


def _allowed(context: Context, cap: Loss | str | None, max_epsilon: float | None) -> Booked | None:
    """Return what the whole workload may cost, or None for all that is left."""
    request = Request.of(absolute=1.0, cap=cap, max_epsilon=max_epsilon)
    if request.max_epsilon is not None:
        return context.loss(coins_down(context.budget.loss(request.max_epsilon).amount))
    if request.cap is None or isinstance(request.cap, str):
        return None
    if type(request.cap) is not context.budget.currency:
        currency = context.budget.currency.__name__
        raise InvalidTarget(
            "the cap is in another currency than the ledger",
            rule=f"this ledger is kept in {currency}",
            got=type(request.cap).__name__,
            next_step=f"pass a {currency}",
        )
    return context.loss(coins_down(request.cap.amount))


@dataclass(slots=True)
class _WorkloadRun:
    """A workload while it is asked.

    Attributes:
        context: the data and the books.
        drafts: the questions.
        plans: their plans before the first was asked.
        allowed: what all may cost together, or None for all that is left.
        cheapest: whether the cheapest is asked first.
        answers: what was answered.
        failed: what ended the run.
        paid: farthings paid.
    """

    context: Context
    drafts: Sequence[Draft]
    plans: Mapping[str, Plan]
    allowed: Booked | None
    cheapest: bool
    answers: dict[str, Answer] = field(default_factory=dict)
    failed: dict[str, FarthingError] = field(default_factory=dict)
    paid: int = 0

    def dry(self) -> Workload:
        """Return what would fit if every question cost its worst price."""
        spent, unanswered = 0, {}
        for _, place in sorted(self._line()):
            name = self.drafts[place].name
            if self.drafts[place].refused(self.plans[name]):
                unanswered[name] = self.plans[name]
                continue
            price = int(self.plans[name].worst_price.farthings)
            if spent + price <= self._room:
                spent += price
            else:
                unanswered[name] = self.plans[name]
        return self._workload(unanswered, dry=True)

    def asked(self) -> Workload:
        """Ask what fits, one after the other.

        A question is planned again just before it is asked, and goes back in line where another seems cheaper now.
        Those that did not fit are priced once more in the end.
        """
        line = self._line()
        while line and not self.failed:
            _, place = heapq.heappop(line)
            draft = self.drafts[place]
            plan = draft.plan
            price = int(plan.worst_price.farthings)
            if self.cheapest and line and price > line[0][0]:
                heapq.heappush(line, (price, place))
            elif price <= self._room and not draft.refused(plan):
                self._ask(draft, plan)
        done = {*self.answers, *self.failed}
        return self._workload({draft.name: draft.plan for draft in self.drafts if draft.name not in done})

    def _ask(self, draft: Draft, plan: Plan) -> None:
        """Ask one question; where another process was quicker at the budget, it is left unanswered."""
        try:
            self.answers[draft.name] = answer = draft.ask()
        except BudgetExceeded:
            return
        except FarthingError as error:
            self.failed[draft.name] = error
            self.paid += int(plan.worst_price.farthings)  # there is no refund
            return
        self.paid += int(answer.paid.farthings)

    def _line(self) -> list[tuple[int, int]]:
        """Return the questions in line, as a heap: (what it is ordered by, place)."""
        prices = [int(self.plans[draft.name].worst_price.farthings) for draft in self.drafts]
        return sorted((price if self.cheapest else 0, place) for place, price in enumerate(prices))

    @property
    def _room(self) -> int:
        """What one question may reserve now, in farthings."""
        left = int(self.context.ledger.remaining)
        return left if self.allowed is None else min(left, int(self.allowed.farthings) - self.paid)

    def _workload(self, unanswered: Mapping[str, Plan], *, dry: bool = False) -> Workload:
        """Return what became of the workload."""
        return Workload(
            answers=self.answers,
            unanswered=unanswered,
            plans=self.plans,
            paid=self.context.loss(self.paid),
            allowed=self.allowed,
            remaining=self.context.loss(self.context.ledger.remaining),
            delta=self.context.budget.report_delta,
            failed=self.failed,
            dry=dry,
            short={
                name: plan.advice
                for name, plan in self.plans.items()
                if plan.fits and not plan.reachable and self._short(name, plan, unanswered, dry=dry)
            },
        )

    def _short(self, name: str, plan: Plan, unanswered: Mapping[str, Plan], *, dry: bool) -> bool:
        """Return whether the question's own cap is too small: not asked for that, or answered and not met."""
        if plan.hopeless and name in unanswered:
            return True
        return name not in unanswered if dry else name in self.answers and not all_met(self.answers[name])
