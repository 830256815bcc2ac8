"""What a transaction needs to know of a question: its bill, and how it is answered, measured and kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.ledger.entry import Receipt
    from farthing.privacy.loss import Booked

T = TypeVar("T")


class Begun(NamedTuple):
    """A look that was begun.

    Attributes:
        farthings: up to which all that the receipt measures may now cost.
        written: whether the ledger was told, and with it what it is to keep: not if so much was begun before.
    """

    farthings: int
    written: bool


@dataclass(frozen=True, slots=True)
class Bill:
    """What a question is to be charged at most, under what stands now.

    Attributes:
        increase: the worst price over what is stored.
        fresh: the worst price of the new measurements alone.
        label: the question as people read it.
        fitting: says what would fit, where this does not.
        target: the accuracy that is asked, as people read it.
        delta: coins of the delta that is set aside for keys.
        name: what is refused, in words.
        looks: whether every look is begun by `begin_look` before it is measured. If so, what fails or is killed is
            charged up to the look that it was in; otherwise its worst price.
    """

    increase: Booked
    fresh: Booked
    label: str
    fitting: Callable[[], str]
    target: str = ""
    delta: int = 0
    name: str = "the question"
    looks: bool = False


class BookedQuestion(Protocol[T]):
    """A question, planned under what stands in the ledger: all that a transaction needs to know of it."""

    @property
    def bill(self) -> Bill | None:
        """What is to be charged; None where what was released before already answers."""

    def stored_answer(self) -> T:
        """Return the answer that costs nothing."""

    def measured(self, receipt: Receipt) -> tuple[T, Booked]:
        """Ask the engine and draw noise; return the answer, and its price as the receipt says."""

    def merged(self, current: bytes | None, answer: T, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep, given what stands there now."""
