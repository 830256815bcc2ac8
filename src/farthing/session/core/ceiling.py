"""The most that one ask may be charged, as it was confirmed: over all transactions that it takes."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from farthing.errors import InvalidTarget, PriceRisen
from farthing.privacy.words import said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from farthing.privacy.loss import Booked
    from farthing.session.core.context import Context


class Ceiling:
    """The most that one ask may be charged, and what it has been.

    Args:
        most: farthings.
    """

    def __init__(self, most: int) -> None:
        self.most, self.charged = most, 0

    def left(self, increase: Booked) -> int:
        """Return how much may be reserved now: what costs nothing is reserved as one farthing, and settled to none."""
        return max(self.most - self.charged, 0 if increase.farthings else 1)


CEILING: Final[ContextVar[Ceiling | None]] = ContextVar("ceiling", default=None)
"""What the ask that runs now was confirmed at."""


@contextmanager
def ceiling(context: Context, most: Booked | None) -> Iterator[None]:
    """Charge whatever is asked within at most so much in all; None sets no limit, and lifts none.

    Guarantee: the charges of all transactions within sum to at most `most` at any time.
    Proof: each reserves at most what is left of it, in the ledger's own transaction; settling lowers.
    Assumes: an ask books in the thread that it was begun in; tests/unit/test_transaction.py looks for others.
    Rounds: a question whose price is zero is reserved, and if it fails is charged, one farthing.
    """
    if most is None:
        yield
        return
    if most.currency != context.budget.currency.currency:
        raise InvalidTarget(
            "at_most is in another currency",
            rule=f"a {context.budget.currency.__name__}, as `plan.worst_price` is",
            got=repr(most),
            next_step="at_most=plan.worst_price",
        )
    before = CEILING.set(Ceiling(most.farthings))
    try:
        yield
    finally:
        CEILING.reset(before)


def require_below_ceiling(context: Context, price: Booked) -> None:
    """Refuse an ask of several transactions whose whole price is above its ceiling, before the first is paid."""
    limit = CEILING.get()
    if limit is not None and price.farthings > limit.most:
        raise risen(context, price.farthings, limit)


def risen(context: Context, needed: object, limit: Ceiling) -> PriceRisen:
    """Return the refusal of an ask that has become more expensive than it was confirmed at."""
    assert isinstance(needed, int)  # noqa: S101  # the ledger's own farthings
    price, most, delta = context.loss(needed + limit.charged), context.loss(limit.most), context.budget.report_delta
    return PriceRisen(
        "the price has risen since the question was planned",
        needed=price,
        left=most,
        rule=f"an ask is charged at most what was confirmed; {'no more' if limit.charged else 'nothing'} was charged",
        got=f"costs at most {said(price, delta)}, confirmed were {said(most, delta)}",
        next_step="plan it again",
    )
