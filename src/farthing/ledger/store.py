"""The durable books: charge before noise is drawn, settle after, never pass the budget, forget no measurement."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Self

import sqlalchemy as sa

from farthing.errors import BudgetExceeded, LedgerError
from farthing.ledger import tables
from farthing.ledger.books import Books
from farthing.ledger.checking import check
from farthing.ledger.entry import Entry, Receipt, Stored, Terms
from farthing.ledger.opening import build, create, header, inspected, located, require_writable
from farthing.ledger.rows import Reservation, add_reservation, add_settlement, entry, load, sharpen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from farthing.ledger.entry import State
    from farthing.ledger.opening import Header


class Ledger:
    """Books of one privacy budget, in a file that processes share, or in memory.

    Open them with `Ledger.open` (or `Ledger.inspect` to look only); close them with `close` or a `with` block.

    Guarantee: at any time, crashes included, the losses of all measurements whose receipts this ledger gave sum to at
        most `spent`, and `spent` never passes `terms.budget`.
    Proof: docs/proofs/ledger.store.md; that such a sum may be adaptive is the filter's theorem, in `farthing.privacy`.
    Assumes: noise is drawn only after `reserve` returned a receipt that is not `repeated`; the caller's `increase`,
        `fresh` and settled amounts are prices as `reserve` and `settle` define them; the file is not rolled back to an
        older copy; the disk keeps what it has synced.
    Rounds: nothing; farthings are whole, and callers round them up.

    >>> terms = Terms("gdp", budget=100, delta=0, keys_delta=0, unit="row", description="100 farthings")
    >>> with Ledger.open(None, terms) as ledger:
    ...     receipt = ledger.reserve(increase=60, fresh=60, question="q", version=0, label="COUNT(*)")
    ...     reserved = ledger.spent
    ...     ledger.settle(receipt, 25, lambda stored: b"released")
    ...     (reserved, ledger.spent, ledger.remaining, ledger.load("q"))
    (60, 25, 75, Stored(version=1, blob=b'released'))
    """

    def __init__(self, books: Books, header: Header) -> None:
        self._books = books
        self._header = header

    @classmethod
    def open(cls, path: str | Path | None, terms: Terms, *, timeout_s: float = 30.0) -> Self:
        """Open the ledger at a path, making it if there is none; None keeps the books in memory.

        Args:
            path: the ledger's file, in a folder that exists, or None.
            terms: the promise. A ledger that was made with others is refused, whatever it holds.
            timeout_s: how long to wait for another writer, in seconds.

        Raises:
            LedgerMismatch: the ledger was made with other terms.
            LedgerError: the file is no ledger, or cannot be read and written. It is not changed.
        """
        if path is None:
            books = Books(None, timeout_s=timeout_s)
            build(books, terms)
            return cls(books, header(books))
        place = located(path)
        if not place.exists():
            create(place, terms)
        reader, found = inspected(place, timeout_s)
        reader.close()
        found.terms.require(terms)
        require_writable(place)
        books = Books(place, timeout_s=timeout_s)
        return cls(books, header(books))

    @classmethod
    def inspect(cls, path: str | Path, *, timeout_s: float = 30.0) -> Self:
        """Open an existing ledger to look at it, whatever its terms; charging it is refused."""
        return cls(*inspected(located(path), timeout_s))

    @property
    def terms(self) -> Terms:
        """What was fixed when the ledger was made."""
        return self._header.terms

    @property
    def path(self) -> Path | None:
        """Where the file is; None for books in memory."""
        return self._books.path

    @property
    def identity(self) -> str:
        """A random name that tells this ledger apart from every other."""
        return self._header.identity

    @property
    def hash_key(self) -> int:
        """64 random bits, drawn when the ledger was made: the salt with which engines choose rows. A secret."""
        return self._header.hash_key

    @property
    def spent(self) -> int:
        """Farthings charged: settled, open and failed. Takes the same time however many entries there are."""
        with self._books.reading() as connection:
            return int(connection.execute(sa.select(tables.TOTALS.c.spent)).scalar_one())

    @property
    def remaining(self) -> int:
        """Farthings that may still be reserved."""
        return self.terms.budget - self.spent

    @property
    def open_reservations(self) -> list[Entry]:
        """Reservations neither settled nor failed, newest first: work under way, or what a dead process left."""
        with self._books.reading() as connection:
            return [entry(row) for row in connection.execute(tables.OPEN)]

    def history(self, limit: int | None = None) -> list[Entry]:
        """Return the entries, newest first: all, or the last `limit`."""
        with self._books.reading() as connection:
            return [entry(row) for row in connection.execute(tables.HISTORY.limit(limit))]

    def load(self, question: str) -> Stored | None:
        """Return what was released for a question, or None. It is public: reading it is free."""
        with self._books.reading() as connection:
            return load(connection, question)

    def reserve(
        self, *, increase: int, fresh: int, question: str, version: int, label: str, request: str | None = None
    ) -> Receipt:
        """Charge a question's worst price, durably, before any noise is drawn.

        Charged is the `increase` if the stored measurement is still the one it would sharpen and nobody else's
        measurement of the question may be out; else the `fresh` price.

        Args:
            increase: farthings by which Q grows from what is stored at `version`, at worst.
            fresh: farthings of Q of the new measurements alone, at worst; at least `increase`.
            question: the identity of the question.
            version: the stored measurement that `increase` refers to (`Stored.version`), 0 for none.
            label: the question as people read it.
            request: a unique id of this ask. Reserving it again charges nothing and returns the same receipt, marked
                `repeated`.

        Returns:
            The receipt; its `exclusive` tells which price was charged, and so which price to settle.

        Raises:
            BudgetExceeded: it would pass the budget. Nothing was charged; a smaller one may still fit.

        Guarantee: the prices charged for a question sum to at least Q of all its measurements, released or not, stored
            or lost; Q(t) is the sum of the K largest c_i^2 t_i.
        Proof: docs/proofs/ledger.store.md: the increases telescope, and Q is subadditive.
        Assumes: Q's increase from what is stored at `version` is at most `increase`, Q of the new measurements alone is
            at most `fresh`, whichever the stops turn out to be.
        Rounds: nothing.
        """
        increase, fresh, version = _whole("increase", increase), _whole("fresh", fresh), _whole("version", version)
        question, label = _text("question", question), _text("label", label)
        request = None if request is None else _text("request", request)
        if fresh < increase:
            raise LedgerError(
                "the prices contradict each other",
                rule="new measurements alone never cost less than what they add (Q is subadditive)",
                got=f"increase {increase}, fresh {fresh}",
                next_step="price the question again",
            )
        with self._books.writing() as connection:
            if request is not None and (row := connection.execute(tables.BY_REQUEST, {"request": request}).first()):
                return self._again(row, increase, fresh, question, version)
            standing = connection.execute(tables.STANDING, {"question": question}).one()
            exclusive = standing.version == version and not standing.others
            amount = increase if exclusive else fresh
            self._require_room(standing.spent, amount)
            reservation = Reservation(
                question=question, reserved=amount, exclusive=exclusive, version=version, label=label, request=request
            )
            number = add_reservation(connection, reservation)
        return Receipt(number, self.identity, amount, question, version, exclusive)

    def settle(self, receipt: Receipt, amount: int, merge: Callable[[bytes | None], bytes] | None) -> None:
        """Lower a reservation to what was used, and store what was measured, in one transaction.

        Args:
            receipt: what `reserve` gave.
            amount: farthings used, at most `receipt.reserved`, priced as `receipt.exclusive` says: the increase over
                what was stored at `receipt.version`, or else the new measurements alone.
            merge: given the question's current blob (None at first; perhaps sharpened by others since `version`),
                returns the one to store. It may leave out only what was paid for alone, at a fresh price: never what
                an increase was charged for, or over. None when nothing was measured, or it is never sharpened.

        Raises:
            LedgerError: the receipt is another ledger's or closed, or the amount is out of range. The reservation stays
                as it was.
        """
        amount = _whole("amount", amount)
        if amount > receipt.reserved:
            raise LedgerError(
                "more was used than reserved",
                rule="settling may lower a charge, never raise it",
                got=f"{amount} farthings of {receipt.reserved}",
                next_step="stop measuring at what was reserved",
            )
        if merge is None and amount > 0 and receipt.exclusive and receipt.version > 0:
            raise LedgerError(
                "a measurement would be forgotten",
                rule="what was measured at the price of an increase is stored",
                got="no merge",
                next_step="pass a merge, or reserve with increase = fresh",
            )
        with self._books.writing() as connection:
            state = self._state(connection, receipt)
            if state != "open":
                raise LedgerError(
                    f"the reservation is already {state}",
                    rule="a reservation is closed once",
                    got=f"entry {receipt.id}",
                    next_step="reserve again before measuring again",
                )
            if merge is not None:
                sharpen(connection, receipt.question, merge)
            add_settlement(connection, receipt.id, "settled", amount)
            connection.execute(tables.SETTLED, {"question": receipt.question, "id": receipt.id})
            if amount != receipt.reserved:
                connection.execute(tables.ADD_SPENT, {"change": amount - receipt.reserved})

    def fail(self, receipt: Receipt) -> None:
        """Close a reservation whose measurement went wrong. There is no refund: it stays charged whole.

        Noise may have been drawn and seen before the failure, so later asks of the question pay the fresh price.
        What is closed already stays as it is: this may be called on every way out.
        """
        with self._books.writing() as connection:
            if self._state(connection, receipt) == "open":
                add_settlement(connection, receipt.id, "failed", receipt.reserved)

    def verify(self) -> None:
        """Recompute the books from their entries.

        Raises:
            LedgerError: the file is damaged, or the books contradict themselves; says every way in which they do.
        """
        with self._books.reading() as connection:
            faults = check(connection, self.terms.budget)
        if faults:
            raise LedgerError(
                "the books contradict themselves",
                rule="the running total is what the entries sum to",
                got="; ".join(faults),
                next_step="restore the ledger from a copy, and charge nothing more to it",
            )

    def close(self) -> None:
        """Close the ledger. Reservations that are open stay charged. Closing twice is fine."""
        self._books.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "memory" if self._books.path is None else str(self._books.path)
        return f"<Ledger in {where}: {self.terms.description}, unit {self.terms.unit}>"

    def _again(self, row: Any, increase: int, fresh: int, question: str, version: int) -> Receipt:
        """Return the receipt of a request that was reserved before, if it is the same request."""
        price = increase if row.exclusive else fresh
        if (row.question, row.version, row.reserved) != (question, version, price):
            raise LedgerError(
                "this request was reserved for something else",
                rule="a request id names one ask",
                got=f"request {row.request!r} of entry {row.id}",
                next_step="draw a new request id",
            )
        return Receipt(row.id, self.identity, row.reserved, question, version, row.exclusive, repeated=True)

    def _require_room(self, spent: int, amount: int) -> None:
        """Refuse what would pass the budget."""
        left = self.terms.budget - spent
        if amount > left:
            raise BudgetExceeded(
                "the budget does not cover this question",
                needed=amount,
                left=left,
                rule="charged + reserved <= budget",
                got=f"needs {amount} farthings, {left} of {self.terms.budget} are left",
                next_step="ask for less accuracy; what was released before stays free to read",
            )

    def _state(self, connection: sa.Connection, receipt: Receipt) -> State:
        """Return the state of a receipt's reservation; refuse a receipt that this ledger did not give."""
        row = connection.execute(tables.STATE_OF, {"id": receipt.id}).first()
        if row is None or receipt != Receipt(
            row.id, self.identity, row.reserved, row.question, row.version, row.exclusive
        ):
            raise LedgerError(
                "this receipt is not from this ledger",
                rule="a reservation is closed with the receipt it was given",
                got=receipt,
                next_step="settle it in the ledger that gave it",
            )
        state: State = row.state or "open"
        return state


def _whole(name: str, value: int) -> int:
    """Return a whole number of at least zero, of any integer type."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise LedgerError(
            f"{name} must be a whole number of at least 0",
            got=repr(value),
            rule="farthings are whole",
            next_step="round a cost up, a budget down",
        )
    return number


def _text(name: str, value: str) -> str:
    """Return text that can be written, not empty."""
    try:
        good = bool(value) and len(value.encode()) > 0
    except (AttributeError, UnicodeEncodeError):
        good = False
    if not good:
        raise LedgerError(
            f"{name} must be text, not empty",
            got=repr(value),
            rule="text identifies what is booked",
            next_step="pass a text",
        )
    return value
