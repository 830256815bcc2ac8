"""How one kind of question is planned, measured, kept and told: what `ask` needs of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from farthing.planning import Pricing

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from farthing.ledger.entry import Receipt
    from farthing.limits import Limit
    from farthing.planning import Frame, Plan
    from farthing.privacy.loss import Booked
    from farthing.progress import Watcher
    from farthing.release import Cells
    from farthing.session.core.context import Context
    from farthing.trace import TraceLook


P = TypeVar("P", bound=Pricing)


def _nothing() -> None:
    """Tell nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class AskOutcome:
    """What an ask released, and its price.

    Attributes:
        columns: the numbers of every output, in the order of the arranged keys.
        paid: float64[groups], each group's own loss in this ask, in the currency's parameter, rounded up.
        price: the loss of this ask.
        blob: what the ledger keeps of the question from now on; None if nothing is new.
        doubling: tells what the doubling baseline would have paid, or None where that says nothing.
        strict: float64[groups], where a policy promised each group its own loss: its value at the released size.
        optimality: tells the least loss that any unbiased mechanism could have paid, where that is known.
        looks: what was released on the way, where it is kept.
        claims: the chance of a miss, for one number, of each claim that the question made, this one included.
    """

    columns: tuple[Cells, ...]
    paid: NDArray[np.float64]
    price: Booked
    blob: bytes | None = None
    doubling: Callable[[], Booked | None] = _nothing
    strict: NDArray[np.float64] | None = None
    optimality: Callable[[], Limit] | None = None
    looks: tuple[TraceLook, ...] = ()
    claims: tuple[float, ...] = ()


class AnswerMethod(Protocol[P]):
    """One question, arranged, with what stands in the ledger about it; `P` is how its plans are priced."""

    def plan(self, frame: Frame) -> Plan[P]:
        """Return the plan, given what was released before."""

    def stored_answer(self, plan: Plan[P]) -> AskOutcome:
        """Return the answer of a free plan: what was released before."""

    def measured(self, context: Context, plan: Plan[P], receipt: Receipt, watcher: Watcher | None) -> AskOutcome:
        """Ask the engine, draw noise, and price what was drawn as the receipt says.

        A watcher is told of every look. The price is at most what the plan reserved: `worst_price`, or `fresh_price`
        where the receipt is not exclusive.
        """

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep, given what stands there now, perhaps sharpened by others meanwhile."""
