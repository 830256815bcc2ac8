"""The refusals of a question: one that does not fit in what is left, and one that would be measured free of charge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing.errors import BudgetExceeded, InvalidTarget
from farthing.privacy.words import said

if TYPE_CHECKING:
    from farthing.privacy.loss import Booked
    from farthing.session.core.context import Context


def refusal(context: Context, name: str, needed: Booked, fitting: str) -> BudgetExceeded:
    """Return the refusal of a question that does not fit in what is left, with what would."""
    left, delta = context.loss(context.ledger.remaining), context.budget.report_delta
    return BudgetExceeded(
        f"{name} does not fit in the budget" if left else "the budget is used up",
        needed=needed,
        left=left,
        rule="worst price <= what is left; nothing was charged",
        got=f"needs {said(needed, delta)}, left {said(left, delta)}",
        next_step=fitting,
    )


def priceless(name: str, price: Booked) -> InvalidTarget:
    """Return the refusal of a question that would be measured free of charge."""
    return InvalidTarget(
        f"the price of {name} is zero",
        rule="data are read under a price above zero: at least one farthing, 2^-40 of mu^2, rho or epsilon",
        got=repr(price),
        next_step="allow more with cap=, max_epsilon= or loss=",
    )
