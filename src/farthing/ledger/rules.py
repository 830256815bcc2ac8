"""What the books refuse, and why: each rule with its facts and the next step."""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from farthing.errors import BudgetExceeded, Contested, LedgerError, PriceRisen
from farthing.ledger import tables
from farthing.ledger.entry import Receipt
from farthing.ledger.process import Process

if TYPE_CHECKING:
    from collections.abc import Sequence

    import sqlalchemy as sa

    from farthing.ledger.entry import Terms


MOST: Final = (1 << 63) - 1
"""The largest number that a column holds."""


class BookableLoss(Protocol):
    """A loss that knows its currency and its whole farthings."""

    @property
    def currency(self) -> str:
        """The currency's name, as in `Terms`."""
        ...

    @property
    def farthings(self) -> int:
        """The loss in whole farthings."""
        ...


class Room(Protocol):
    """What an owner may still spend."""

    @property
    def owner(self) -> str:
        """The allotment; "" for the whole ledger."""
        ...

    @property
    def limit(self) -> int:
        """The most that its total may be."""
        ...

    @property
    def room(self) -> int:
        """The most that may be spent here."""
        ...


class ReservationRequest(NamedTuple):
    """What a reservation asks for, checked."""

    increase: int
    fresh: int
    question: str
    version: int


def asked(*, increase: int, fresh: int, question: str, version: int) -> ReservationRequest:
    """Return what is asked for, in whole farthings; refuse prices that contradict each other."""
    facts = ReservationRequest(whole("increase", increase), whole("fresh", fresh), question, whole("version", version))
    if facts.version > MOST:
        raise LedgerError(
            "there is no such version of a measurement",
            rule="versions are numbered below 2^63",
            got=repr(version)[:80],
            next_step="load the question again",
        )
    if facts.fresh < facts.increase:
        raise LedgerError(
            "the prices contradict each other",
            rule="new measurements alone never cost less than what they add (Q is subadditive)",
            got=f"increase {increase}, fresh {fresh}",
            next_step="price the question again",
        )
    return facts


def used(receipt: Receipt, amount: int, *, stores: bool) -> int:
    """Return what was used in whole farthings; refuse more than was reserved, and measurements that would be lost."""
    amount = whole("amount", amount)
    if amount > receipt.reserved:
        raise LedgerError(
            "more was used than reserved",
            rule="settling may lower a charge, never raise it",
            got=f"{amount} farthings of {receipt.reserved}",
            next_step="stop measuring at what was reserved",
        )
    if not stores and amount > 0 and receipt.exclusive and receipt.version > 0:
        raise LedgerError(
            "a measurement would be forgotten",
            rule="what was measured at the price of an increase is stored",
            got="no merge",
            next_step="pass a merge, or reserve with increase = fresh",
        )
    return amount


def require_open(row: Any) -> None:
    """Refuse to close a reservation twice."""
    if row.state is not None:
        raise LedgerError(
            f"the reservation is already {row.state}",
            rule="a reservation is closed once",
            got=f"entry {row.id}",
            next_step="reserve again before measuring again",
        )


def require_allowed(row: Any, amount: int) -> None:
    """Refuse to settle more than the looks that were begun may have used: noise was drawn without asking first."""
    if amount > row.allowed:
        raise LedgerError(
            "more was used than the looks that were begun",
            rule="a look is begun before its noise is drawn",
            got=f"{amount} farthings, begun were looks up to {row.allowed}",
            next_step="begin each look before it is measured",
        )


def share_of(terms: Terms, share: int | Fraction | BookableLoss) -> int:
    """Return a share in whole farthings."""
    if isinstance(share, Fraction):
        if not 0 <= share <= 1:
            raise LedgerError(
                "a share is out of range",
                rule="a fraction from 0 to 1",
                got=share,
                next_step="Fraction(1, 5) is a fifth",
            )
        return int(share * terms.budget)
    if not isinstance(share, int) and hasattr(share, "currency"):
        if share.currency != terms.currency:
            raise LedgerError(
                "the share is of another currency",
                rule=f"a loss in the ledger's currency, {terms.currency}",
                got=repr(share),
                next_step="give a fraction of the budget, or such a loss",
            )
        return whole("share", share.farthings)
    return whole("share", cast("int", share))


def require_share(name: str, share: int, *, spent: int, left: int) -> None:
    """Refuse a share that promises more than is left, or takes back what was spent."""
    if spent <= share <= spent + left:
        return
    what = "more is allotted than is left" if share > spent else "less is allotted than was spent"
    raise LedgerError(
        what,
        rule="what an allotment spent <= its share <= what it spent + what is left of the budget",
        got=f"{share} farthings for {name!r}, which spent {spent}; {left} are left of the budget",
        next_step=f"allot from {spent} to {spent + left} farthings",
    )


def again(row: Any, wanted: ReservationRequest, allotment: str, ledger: str) -> Receipt:
    """Return the receipt of a request that was reserved before, if it is the same request."""
    price = wanted.increase if row.exclusive else wanted.fresh
    before = (row.question, row.version, row.reserved, row.allotment)
    if before != (wanted.question, wanted.version, price, allotment):
        raise LedgerError(
            "this request was reserved for something else",
            rule="a request id names one ask",
            got=f"request {row.request!r} of entry {row.id}",
            next_step="draw a new request id",
        )
    return Receipt(row.id, ledger, row.reserved, row.question, row.version, row.exclusive, repeated=True)


def require_alone(connection: sa.Connection, standing: Any, wanted: ReservationRequest) -> None:
    """Refuse to charge what others have sharpened meanwhile, or what a process that still runs has open."""
    moved = standing.version != wanted.version
    held = connection.execute(tables.OPEN_OF, {"question": wanted.question}).all() if standing.others else []
    if moved or any(Process(row.pid, row.host, row.started).alive() for row in held):
        raise Contested(
            "the question was answered meanwhile" if moved else "the question is being answered",
            rule="one reservation of a question at a time, over what is stored now",
            got=f"version {standing.version}, {len(held)} open" if moved else f"entry {held[0].id} is open",
            next_step="read what is stored, and plan again",
        )


def require_room(found: Sequence[Room], amount: int) -> None:
    """Refuse what would pass the budget, or an allotment's share."""
    least = min(found, key=lambda purse: purse.room)
    if amount > least.room:
        whose = f"the allotment of {least.owner!r}" if least.owner else "the budget"
        raise BudgetExceeded(
            f"{whose} does not cover this question",
            needed=amount,
            left=least.room,
            rule="charged + reserved <= budget, and <= the allotment's share",
            got=f"needs {amount} farthings, {least.room} of {least.limit} are left",
            next_step="ask for less accuracy; what was released before stays free to read",
        )


def require_delta(terms: Terms, spent: int, delta: int) -> None:
    """Refuse what would pass the delta that is set aside for keys."""
    if delta < 0 or spent + delta > terms.keys_delta:
        raise BudgetExceeded(
            "the delta that is set aside for keys does not cover this question",
            needed=delta,
            left=terms.keys_delta - spent,
            rule="delta charged for keys <= keys_delta of the budget",
            got=f"needs {delta / 2**80:.3g}, {(terms.keys_delta - spent) / 2**80:.3g} is left",
            next_step="list the keys, or ask again for keys that were found before: that is free",
        )


def require_at_most(most: int | None, amount: int) -> None:
    """Refuse to reserve more than whoever asks was ready to pay."""
    if most is not None and amount > most:
        raise PriceRisen(
            "the price has risen",
            needed=amount,
            left=most,
            rule="no more is reserved than at_most; nothing was charged",
            got=f"{amount} farthings, at most {most}",
            next_step="price the question again",
        )


def reserved(connection: sa.Connection, receipt: Receipt, ledger: str) -> Any:
    """Return a receipt's reservation and the totals; refuse a receipt that this ledger did not give."""
    row = connection.execute(tables.STATE_OF, {"id": receipt.id}).one()
    if receipt != Receipt(row.id, ledger, row.reserved, row.question, row.version, row.exclusive):
        raise LedgerError(
            "this receipt is not from this ledger",
            rule="a reservation is closed with the receipt it was given",
            got=receipt,
            next_step="settle it in the ledger that gave it",
        )
    return row


def whole(name: str, value: int) -> int:
    """Return a whole number of at least zero, of any integer type."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise LedgerError(
            f"{name} must be a whole number of at least 0",
            got=repr(value)[:80],
            rule="farthings are whole",
            next_step="round a cost up, a budget down",
        )
    return number


def text(name: str, value: str, *, empty: bool = False) -> str:
    """Return text that can be written, not empty unless that is allowed."""
    try:
        good = (len(value.encode()) > 0 or empty) and "\0" not in value  # PostgreSQL has no text with a zero byte
    except (AttributeError, UnicodeEncodeError):
        good = False
    if not good:
        raise LedgerError(
            f"{name} must be text, not empty, without zero bytes",
            got=repr(value),
            rule="text identifies what is booked",
            next_step="pass a text",
        )
    return value
