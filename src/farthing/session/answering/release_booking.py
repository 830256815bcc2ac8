"""What releases of every kind have in common: how they are asked, billed, booked, and refined."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from farthing.accuracy.claim_chances import holds, next_chance, together
from farthing.errors import InvalidTarget, OutOfReach
from farthing.mechanisms.gaussian import Coin
from farthing.planning import Frame
from farthing.planning.release_plan import Goal
from farthing.privacy.words import said
from farthing.query.words import about
from farthing.session.answering.release_options import reach_of, source_of
from farthing.session.core.booked_question import Bill
from farthing.session.core.merging import merge
from farthing.session.core.records import claims_of, with_claims
from farthing.session.core.transaction import begin_look

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from farthing.ledger.entry import Receipt, Stored
    from farthing.planning.release_plan import BaseReleasePlan
    from farthing.privacy.loss import Booked
    from farthing.query import Query
    from farthing.query.keys import Keys
    from farthing.session.core.context import Context
    from farthing.session.reading.request import Request

LOOKS: Final = 8
"""A release is measured in so many looks: one that is killed loses the one that it was in."""

MOST_KEPT: Final = 1 << 20
"""The most numbers of a release whose looks are stored one by one: larger ones are stored when all is measured."""

T = TypeVar("T")
P = TypeVar("P", bound="BaseReleasePlan")
K = TypeVar("K", bound="KeptRelease")


@dataclass(frozen=True, slots=True)
class BaseReleaseRequest:
    """A release of any kind, read and checked.

    Attributes:
        context: the data and the books.
        query: the rows, the unit and the bounds, by all that the release is by.
        lists: the values of each grouping of the query, in the order of its cells.
        workload: what is wanted.
        request: the price and the confidence.
        errors: the half-width and the mean error that are asked, each a number or None.
        name: the answer column.
        relative: the half-width as a fraction of the cell, where that is more; 0 for none.
        many: how many numbers are released.
        what: what a number is called: a cell, or an answer.
    """

    context: Context
    query: Query
    lists: tuple[Keys, ...]
    workload: Any
    request: Request
    errors: tuple[float | None, float | None]
    name: str
    relative: float
    many: int
    what: str

    @property
    def reach(self) -> int:
        """The most rows that one unit adds to any table."""
        return reach_of(self.query, self.lists)

    @property
    def words(self) -> str:
        """The question in words."""
        many = f"{self.many:,} {self.what}{'s' if self.many > 1 else ''}"
        return f"{self.workload!r} {source_of(self.query)} [{many}]"

    @property
    def coin(self) -> Coin:
        """How information turns into loss."""
        return Coin(self.frame.gaussian, 1, self.reach)

    @property
    def frame(self) -> Frame:
        """What the plan begins with."""
        context, request = self.context, self.request
        limit = context.budget.loss(request.max_epsilon) if request.max_epsilon is not None else request.cap
        return Frame.of(
            self.query,
            request=request,
            limit=limit,
            parts=1,
            budget=context.budget,
            remaining=context.loss(context.ledger.remaining),
        )

    @property
    def beta(self) -> float:
        """The chance of a miss of each number, where no answers before it are counted."""
        return self.request.beta(self.many if self.request.simultaneous else 1)

    def goal(self, beta: float | None = None) -> Goal:
        """Return what is asked, at a chance of a miss a number; a named loss in whole farthings, as it is booked."""
        request = self.request
        return Goal(
            *self.errors,
            None if request.loss is None else self.frame.cap,
            request.confidence,
            self.beta if beta is None else beta,
            request.simultaneous,
            self.relative,
            self.what,
        )

    def priced(self, goal: Goal, needed: int) -> dict[str, Any]:
        """Return what plans of every kind say of a goal that takes so many more grains."""
        context, frame, coin = self.context, self.frame, self.coin
        return {
            "question": self.words,
            "goal": goal,
            "worst_price": context.loss(coin.loss(needed).farthings),
            "cap": frame.cap or frame.remaining,
            "remaining": frame.remaining,
            "delta": context.budget.report_delta,
            "about": about(self.query),
            "coin": coin,
            "most_rows": self.query.max_rows,
            "free": not needed,
        }

    def told(self, done: Released[P, K]) -> dict[str, Any]:
        """Return what releases of every kind tell of how they were made and paid."""
        context = self.context
        return {
            "name": self.name,
            "paid": context.loss(done.price.farthings),
            "remaining": context.loss(context.ledger.remaining),
            "delta": context.budget.report_delta,
            "_plan": done.plan,
            "_together": done.together(self),
        }


class KeptRelease(Protocol):
    """What the ledger keeps of a release."""

    def to_bytes(self) -> bytes:
        """Return the blob that the ledger stores."""

    def joined(self, read: Any, theirs: bytes) -> bytes:
        """Return a blob with what somebody else stored, and what of this came on top of what was read."""


@dataclass(frozen=True, slots=True)
class Released(Generic[P, K]):
    """A release as a transaction leaves it.

    Attributes:
        plan: its plan, as it was carried out.
        kept: all that was measured.
        price: what this ask was charged.
        claims: the chances of a miss of all that the question has shown, this release included.
    """

    plan: P
    kept: K
    price: Booked
    claims: tuple[float, ...]

    def together(self, asked: BaseReleaseRequest) -> float:
        """Return the confidence with which this release and those before it hold together."""
        return together(self.claims, asked.many if asked.request.simultaneous else 1)


class BookedRelease(Generic[P, K]):
    """A release with what stands in the ledger about it, as a transaction books it.

    Args:
        asked: the release.
        plan: its plan.
        kept: what was measured before.
        claims: the chances of a miss of what was shown before.
        least: what the noise of the sharpest release is far below, in words.
    """

    def __init__(self, asked: BaseReleaseRequest, plan: P, kept: K, claims: tuple[float, ...], least: str) -> None:
        self.asked, self.plan, self.kept, self.claims, self.least = asked, plan, kept, claims, least
        self._booked, self.paid = kept, 0  # what of it the ledger has; the grains of all looks that were begun

    @property
    def bill(self) -> Bill | None:
        """What it is to be charged; None if there is nothing. Refused above its cap."""
        made = self.plan
        if made.free:
            return None
        if not made.reachable:
            needed, most = (said(loss, made.delta) for loss in (made.worst_price, made.cap))
            limit = "under the cap of the question" if made.cap < made.remaining else "of what is left"
            raise OutOfReach(
                f"the target is out of reach {limit}",
                needed=made.worst_price,
                left=made.cap,
                rule="nothing is paid for a target that cannot be met; nothing was charged",
                got=f"{made.goal.words} takes {needed}, at most {most}",
                next_step=made.advice,
            )
        if made.too_much:
            raise InvalidTarget(
                "the goal takes more than one question can hold",
                rule=f"at most mu = 8 a question: noise is far below one {self.least} then",
                got=made.goal.words,
                next_step="allow a larger error",
            )
        words = f"{made.goal.words.removesuffix(' (named)')}, {made.goal.confidence:.4g}"
        price, name = made.worst_price, "the release"
        return Bill(price, price, made.question, lambda: made.fitting, words, name=name, looks=True)

    def stored_answer(self) -> Released[P, K]:
        """Return the release that was measured before: the claims that stand, the last one at what is told now."""
        *before, last = self.claims or (0.0,)
        claims = (*before, max(last, self.plan.goal.beta))
        return Released(self.plan, self.kept, self.asked.context.loss(0), claims)

    def measured(self, receipt: Receipt) -> tuple[Released[P, K], Booked]:
        """Count, and measure what is to be sharper."""
        made, kept, price = self.measure(receipt)
        return Released(made, kept, price, (*self.claims, self.plan.goal.beta)), price

    def measure(self, receipt: Receipt) -> tuple[P, K, Booked]:
        """Return the plan as it was carried out, all that was measured, and the price of it."""
        raise NotImplementedError

    def looks(
        self, more: Mapping[T, int], receipt: Receipt, kept: Callable[[], K], *, alike: bool = False
    ) -> Iterator[tuple[T, int]]:
        """Give what is to be measured, in looks that are begun before: whoever is killed loses the one that it was in.

        Guarantee: what a look gives is within what the ledger lets the receipt measure, durably.
        Proof: docs/proofs/ledger.store.md, "Look by look".
        Assumes: all that is measured on the receipt is given here.
        Rounds: the price up to whole farthings.

        Args:
            more: grains.
            receipt: what it is measured on.
            kept: returns all that was measured by then.
            alike: whether each look has about the same part of everything, in the same order.
        """
        for part in _alike(more) if alike else _parts(more):
            self.paid += sum(grains for _, grains in part)
            stored = kept() if self.asked.many <= MOST_KEPT else None
            joined = None if stored is None else partial(self._joined, stored, receipt, ())
            begun = begin_look(receipt, self.plan.coin.loss(self.paid), joined)
            if begun.written and stored is not None:
                self._booked = stored
            yield from part

    def merged(self, current: bytes | None, answer: Released[P, K], receipt: Receipt) -> bytes:
        """Return what the ledger is to keep: every measurement, ours and others', each of them paid in full."""
        return self._joined(answer.kept, receipt, (self.plan.goal.beta,), current)

    def _joined(self, kept: K, receipt: Receipt, claims: tuple[float, ...], current: bytes | None) -> bytes:
        """Return what the ledger is to keep, given what stands there now, and the claims that were made."""

        def both(theirs: bytes, _: bytes) -> bytes:
            """Return a record of all measurements."""
            return kept.joined(self._booked, theirs)

        found = merge(current, kept.to_bytes(), receipt, read=None, both=both)
        return with_claims(found, (*(claims_of(current) or self.claims), *claims))


def _parts(more: Mapping[T, int]) -> Iterator[list[tuple[T, int]]]:
    """Give what is to be measured in parts of about equal grains, at most a few more than `LOOKS`.

    >>> list(_parts({"a": 2, "b": 14}))
    [[('a', 2)], [('b', 2)], [('b', 2)], [('b', 2)], [('b', 2)], [('b', 2)], [('b', 2)], [('b', 2)]]
    """
    each = max(1, -(-sum(more.values()) // LOOKS))
    part, full = [], 0
    for key, grains in more.items():
        rest = grains
        while rest:
            took = min(rest, each - full)
            part.append((key, took))
            rest, full = rest - took, full + took
            if full == each:
                yield part
                part, full = [], 0
    if part:
        yield part


def _alike(more: Mapping[T, int]) -> Iterator[list[tuple[T, int]]]:
    """Give what is to be measured in `LOOKS` parts, each with about the same share of everything.

    >>> [part for part in _alike({"a": 8, "b": 20})][:2]
    [[('a', 1), ('b', 2)], [('a', 1), ('b', 3)]]
    """
    for look in range(LOOKS):
        yield [(key, all_of * (look + 1) // LOOKS - all_of * look // LOOKS) for key, all_of in more.items()]


def booked(
    asked: BaseReleaseRequest, stored: Stored | None, find: Callable[[Goal, tuple[float, ...]], BookedRelease[P, K]]
) -> BookedRelease[P, K]:
    """Return a release as it is booked, at the chance of a miss that its claim has.

    Where all releases of a question have to hold together, the one that stands is told again if it serves; else the
    next one takes its part of what is left of the chance.

    Args:
        asked: the release.
        stored: what the ledger keeps of it.
        find: plans it for a goal, after the claims that stand.
    """
    blob, beta = (None if stored is None else stored.blob), asked.beta
    claims = claims_of(blob)
    if claims is None:  # of a ledger whose entries do not tell: each of them counts as a claim at the present chance
        claims = (beta,)
    if not asked.request.together:
        return find(asked.goal(), claims)
    if claims and holds(claims, beta):
        standing = find(asked.goal(claims[-1]), claims)
        if standing.plan.free:
            return standing
    return find(asked.goal(next_chance(claims, beta)), claims)


def refined_options(asked: BaseReleaseRequest, changes: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a sharper release of the same: what is not changed stays; goals replace one another."""
    absolute, rms = asked.errors
    request = asked.request
    options: dict[str, Any] = {"absolute": absolute, "rms": rms, "relative": asked.relative or None}
    options |= {name: getattr(request, name) for name in _STAYING}
    goals = _GOALS & set(changes)
    options |= _none(_GOALS) if goals else {}
    options |= _none({"relative"}) if goals - {"absolute"} else {}
    options |= _none(_LIMITS) if _LIMITS & set(changes) else {}
    return options | changes


def _none(names: Collection[str]) -> dict[str, None]:
    """Return options that are left out."""
    return dict.fromkeys(names)


_GOALS = {"absolute", "rms", "loss"}
_LIMITS = {"max_epsilon", "cap"}
_STAYING = ("loss", "confidence", "simultaneous", "together", "max_epsilon", "cap")

__all__ = ["BaseReleaseRequest", "BookedRelease", "Released", "booked", "refined_options"]
