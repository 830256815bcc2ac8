"""The refusals of a question: it does not fit, would be measured free of charge, or its table keeps failing."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from farthing.errors import BudgetExceeded, DataError, InvalidTarget
from farthing.planning.frame import LEFT_OVER
from farthing.privacy.words import said

if TYPE_CHECKING:
    from farthing.privacy.loss import Booked
    from farthing.session.core.context import Context

MOST_FAILURES: Final = 2
"""After so many failures in a row, each of which stays charged, nothing is charged until the owner says resume."""


def refusal(context: Context, name: str, needed: Booked, fitting: str) -> BudgetExceeded:
    """Return the refusal of a question that does not fit in what is left, with what would.

    What questions under way have reserved is in the books already: much of it may come back when they are answered.
    """
    left, delta = context.loss(context.ledger.remaining), context.budget.report_delta
    held = sum(entry.reserved for entry in context.ledger.open_reservations if entry.alive)
    some = left.farthings > LEFT_OVER
    used_up, next_step = "the budget is used up", fitting
    if held:
        used_up = "nothing is left while other questions are answered"
        again = f"they hold {said(context.loss(held), delta)}: ask again when they are answered, the rest comes back"
        next_step = f"other questions are under way; {again}" + (f"; {fitting}" if some else "")
    return BudgetExceeded(
        f"{name} does not fit in the budget" if some else used_up,
        needed=needed,
        left=left,
        rule="worst price <= what is left; nothing was charged",
        got=f"needs {said(needed, delta)}, left {said(left, delta)}"
        if some or needed > left
        else "nothing to ask with",
        next_step=next_step,
    )


def priceless(name: str, price: Booked) -> InvalidTarget:
    """Return the refusal of a question that would be measured free of charge."""
    return InvalidTarget(
        f"the price of {name} is zero",
        rule="data are read under a price above zero: at least one farthing, 2^-40 of mu^2, rho or epsilon",
        got=repr(price),
        next_step="allow more with cap=, max_epsilon= or loss=",
    )


def require_readable(context: Context) -> None:
    """Refuse to charge where the table is gone; after failures look closer, and in the end leave it to the owner.

    What was charged and failed is in the books, so this holds in every process. The look reads public metadata only.
    """
    failed = context.ledger.failures(request_tag(context.data_set))
    context.engine.check(after_failure=failed > 0)
    if failed >= MOST_FAILURES:
        raise DataError(
            f"the last {failed} asks of this table failed, and each was charged",
            rule=f"after {MOST_FAILURES} failures in a row nothing is charged until the owner says resume",
            got=f"{failed} failed, none answered since",
            next_step="check that the table can be read, then session.resume(), or `farthing resume`",
        )


def request_tag(data_set: str) -> str:
    """Return a short name of the data that a request is about."""
    return hashlib.sha256(data_set.encode()).hexdigest()[:16]
