"""The durable books: charge before noise is drawn, settle after, never pass the budget, forget no measurement."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

from farthing.errors import LedgerError
from farthing.ledger import booking, freezing, rules, tables, tags
from farthing.ledger.accounts import Scope, allot
from farthing.ledger.data import DataSet
from farthing.ledger.opening import looked_at, opened
from farthing.ledger.process import Process, user
from farthing.ledger.told import Told

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction
    from pathlib import Path

    from farthing.ledger.books import Books
    from farthing.ledger.entry import Receipt, Terms
    from farthing.ledger.shaping import Header
    from farthing.ledger.tags import Tags


class Ledger(Told):
    """Books of one privacy budget, in a file or a PostgreSQL database that processes share, or in memory.

    Open them with `Ledger.open` (or `Ledger.inspect` to look only); close them with `close` or a `with` block.
    `part` gives a handle with the same interface for one part of a partition of the data.

    Guarantee: at any time, crashes included, the losses of all measurements whose receipts this ledger gave sum to at
        most `spent`, and `spent` never passes `terms.budget`.
    Proof: docs/proofs/ledger.store.md, and docs/proofs/ledger.accounts.md for parts, where "sum" reads "for each unit";
        that such a sum may be adaptive is the filter's theorem, in `farthing.privacy`.
    Assumes: noise is drawn only after `reserve` returned a receipt that is not `repeated`; the caller's `increase`,
        `fresh` and settled amounts are prices as `reserve` and `settle` define them; the file and its
        witness are not rolled back to an older copy together; the disk keeps what it has synced.
    Rounds: nothing; farthings are whole, and callers round them up.

    >>> from farthing.ledger.entry import Terms
    >>> terms = Terms("gdp", budget=100, delta=0, keys_delta=0, unit="row", description="100 farthings")
    >>> with Ledger.open(None, terms) as ledger:
    ...     receipt = ledger.reserve(increase=60, fresh=60, question="q", version=0, label="COUNT(*)")
    ...     reserved = ledger.spent
    ...     ledger.settle(receipt, 25, lambda stored: b"released")
    ...     (reserved, ledger.spent, ledger.remaining, ledger.load("q"))
    (60, 25, 75, Stored(version=1, blob=b'released'))
    """

    def __init__(
        self,
        books: Books,
        header: Header,
        *,
        scope: Scope | None = None,
        who: str | None = None,
        owns: bool = True,
        data: DataSet | None = None,
    ) -> None:
        self._books = books
        self._header = header
        self._scope = scope or Scope()
        self.allotment = self._scope.allotment or None
        self._who = user() if who is None else rules.text("who", who)
        self._owns = owns
        self._data = data
        self._booking = booking.Booking(header.terms, header.identity, self._who)

    @classmethod
    def open(
        cls,
        path: str | Path | None,
        terms: Terms,
        *,
        timeout_s: float = 30.0,
        allotment: str | None = None,
        who: str | None = None,
    ) -> Self:
        """Open the ledger at a path or URL, making it if there is none; None keeps the books in memory.

        Args:
            path: the ledger's file, in a folder that exists; or "postgresql+psycopg://USER@HOST:5432/DATABASE", with
                "?schema=NAME" for a schema other than "farthing"; or None.
            terms: the promise. A ledger that was made with others is refused, whatever it holds.
            timeout_s: how long to wait for another writer, in seconds.
            allotment: the allotment that reservations draw on unless they name another.
            who: the analyst's name in the history; by default the operating system's user.

        Raises:
            LedgerMismatch: the ledger was made with other terms.
            LedgerError: the place holds no ledger, or cannot be read and written, or there is no such allotment.
                It is not changed.
        """
        scope = Scope("" if allotment is None else rules.text("allotment", allotment))
        ledger = cls(*opened(path, terms, timeout_s), scope=scope, who=who)
        try:
            ledger._found()
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def inspect(cls, path: str | Path, *, timeout_s: float = 30.0) -> Self:
        """Open an existing ledger to look at it, whatever its terms; charging it is refused."""
        return cls(*looked_at(path, timeout_s))

    def part(self, *, partition: str, name: str) -> Ledger:
        """Return a handle for one part of a partition of the data: what all parts are charged is their maximum.

        It has the interface of a ledger. Its `spent` is the part's own; its `remaining` is what may still be reserved
        in it; its questions, measurements and history are its own. Closing it leaves this ledger open.

        Args:
            partition: the identity of the partition; every part of it passes the same.
            name: which part.

        Guarantee: for every privacy unit, the losses of all measurements whose receipts this ledger gave sum to at most
            the ledger's `spent`.
        Proof: docs/proofs/ledger.accounts.md.
        Assumes: each unit is in at most one part of the partition, decided before and apart from every answer.
        Rounds: nothing.

        >>> from farthing.ledger.entry import Terms
        >>> terms = Terms("gdp", budget=100, delta=0, keys_delta=0, unit="row", description="100 farthings")
        >>> ledger = Ledger.open(None, terms)
        >>> parts = [ledger.part(partition="region", name=name) for name in ("EU", "US")]
        >>> asks = [part.reserve(increase=60, fresh=60, question="q", version=0, label="COUNT(*)") for part in parts]
        >>> (ledger.spent, parts[0].spent, parts[0].remaining)
        (60, 60, 40)
        """
        if self._scope.partition:
            raise LedgerError("a part has no parts", rule="one partition at a time", next_step="use the whole ledger")
        scope = Scope(self._scope.allotment, rules.text("partition", partition), rules.text("name", name, empty=True))
        return Ledger(self._books, self._header, scope=scope, who=self._who, owns=False, data=self._data)

    def over(self, name: str, label: str, identity: Callable[[], str], *, same: bool = False) -> Ledger:
        """Return a handle whose charges are tied to one state of the data: see `farthing.ledger.data`.

        Args:
            name: the identity of the data, as their owner declares it.
            label: the same, as people read it.
            identity: returns what anyone may know of the data's present state, without reading rows; or "".
            same: the owner's word that these are the data that were charged under this name before.

        Raises:
            DataError: they are not in the state in which they were charged first; nothing is charged.
        """
        data = DataSet.of(rules.text("name", name), label, self.hash_key, identity)
        handle = Ledger(self._books, self._header, scope=self._scope, who=self._who, owns=False, data=data)
        if same:
            self._books.write(lambda connection: data.declare(connection, self._who))
        else:
            with self._books.reading() as connection:
                recorded = data.recorded(connection)
            data.require_known(recorded)
        return handle

    def allot(self, name: str, share: int | Fraction | rules.BookableLoss) -> None:
        """Give an analyst or a project a share of the budget, or change it; the owner's act.

        Shares may add up to more than the budget: all of them draw on the one total, which nobody can pass, alone or
        together. To raise one every month on data that do not change promises nothing; nothing here does so by itself.

        Args:
            name: whose share it is.
            share: the most that may ever be charged to it: farthings, a fraction of the budget (rounded down), or a
                loss in the ledger's currency.

        Raises:
            LedgerError: more than is left, or less than was already spent of it; the share stays as it was.

        >>> from farthing.ledger.entry import Terms
        >>> terms = Terms("gdp", budget=100, delta=0, keys_delta=0, unit="row", description="100 farthings")
        >>> ledger = Ledger.open(None, terms)
        >>> ledger.allot("alice", 20)
        >>> _ = ledger.reserve(increase=8, fresh=8, question="q", version=0, label="COUNT(*)", allotment="alice")
        >>> ledger.allotments["alice"].left
        12
        """
        name, farthings = rules.text("name", name), rules.share_of(self.terms, share)
        self._books.write(lambda connection: allot(connection, self.terms.budget, name, farthings, self._who))

    def freeze(self, analyst: str | None = None, *, frozen: bool = True) -> None:
        """Charge nothing more to an analyst, or to anybody, until they are thawed; the owner's act.

        It holds for whoever asks under this name or draws on its share, in every process; what was reserved before is
        finished, and what was released stays free. `frozen=False` thaws; each name apart, None for everybody.
        """
        name = freezing.EVERYBODY if analyst is None else rules.text("analyst", analyst)
        self._books.write(lambda connection: booking.freeze(self._booking, connection, name, frozen=frozen))

    def reserve(
        self,
        *,
        increase: int,
        fresh: int,
        question: str,
        version: int,
        label: str,
        request: str | None = None,
        target: str = "",
        allotment: str | None = None,
        delta: int = 0,
        alone: bool = False,
        at_most: int | None = None,
        first: int | None = None,
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
            target: the accuracy that was asked, as people read it.
            allotment: whose share it draws on, besides the whole budget; by default the one the ledger was opened with.
            delta: coins of 2^-80 of the delta that is set aside for keys; charged for good, whatever becomes of it.
            alone: charge only if the stored measurement is still the one at `version`, and no process that still runs
                has the question open. Both are seen in the transaction that charges, so of all who ask a question
                alone at the same time one is charged.
            at_most: the most farthings that may be charged, whichever of the two prices it is; None for no limit.
            first: the question is measured look by look, at first up to so many farthings: see `look`. None to let all
                that is reserved be measured at once.

        Returns:
            The receipt; its `exclusive` tells which price was charged, and so which price to settle.

        Raises:
            BudgetExceeded: it would pass the budget, or the allotment's share. Nothing was charged; a smaller one
                may still fit.
            PriceRisen: it would be charged more than `at_most`. Nothing was charged.
            Contested: `alone` was asked, and it is not. Nothing was charged.

        Guarantee: the prices charged for a question sum to at least Q of all its measurements, released or not, stored
            or lost; Q(t) is the sum of the K largest c_i^2 t_i.
        Proof: docs/proofs/ledger.store.md: the increases telescope, and Q is subadditive.
        Assumes: Q's increase from what is stored at `version` is at most `increase`, Q of the new measurements alone is
            at most `fresh`, whichever the stops turn out to be.
        Rounds: nothing.
        """
        scope = self._scope if allotment is None else replace(self._scope, allotment=rules.text("allotment", allotment))
        question = scope.question(rules.text("question", question))
        asked = rules.asked(increase=increase, fresh=fresh, question=question, version=version)
        label, target = rules.text("label", label), rules.text("target", target, empty=True)
        request = None if request is None else rules.text("request", request)
        if self._data is not None:
            self._data.require_unchanged()
        facts = booking.ReservationFacts(
            asked, label, request, target, delta, self._data, alone=alone, at_most=at_most, first=first
        )
        return self._books.write(lambda connection: booking.reserve(self._booking, connection, scope, facts))

    def look(self, receipt: Receipt, amount: int, merge: Callable[[bytes | None], bytes] | None = None) -> None:
        """Let a reservation be measured up to a price, durably, before the noise of that look is drawn.

        All that is reserved stays charged while it is open; what fails or dies is closed at its last look.

        Args:
            receipt: what `reserve` gave, with `first`.
            amount: farthings of all that it measures, this look included, priced as `receipt.exclusive` says.
            merge: stores what was measured in the looks before, as `settle` does, so that it serves whatever becomes
                of this one; for questions that are never charged an increase. None where there is nothing.

        Raises:
            LedgerError: the reservation is closed, by whoever took its process for dead: nothing more may be drawn.
        """
        amount = rules.used(receipt, amount, stores=True)
        if merge is not None and self._data is not None:
            self._data.require_unchanged()
        stores = None if merge is None else booking.Stores(merge, None)
        self._books.write(lambda connection: booking.look(self._booking, connection, receipt, amount, stores))

    def settle(
        self,
        receipt: Receipt,
        amount: int,
        merge: Callable[[bytes | None], bytes] | None,
        *,
        tagged: Callable[[bytes], Tags] | None = None,
    ) -> None:
        """Lower a reservation to what was used, and store what was measured, in one transaction.

        Args:
            receipt: what `reserve` gave.
            amount: farthings used, at most `receipt.reserved`, priced as `receipt.exclusive` says: the increase over
                what was stored at `receipt.version`, or else the new measurements alone.
            merge: given the question's current blob (None at first; perhaps sharpened by others since `version`),
                returns the one to store. It may leave out only what was paid for alone, at a fresh price: never what
                an increase was charged for, or over. None when nothing was measured, or it is never sharpened.
            tagged: returns by which tags the stored blob is found.

        Raises:
            LedgerError: the receipt is another ledger's or closed, or the amount is out of range. The reservation stays
                as it was.
        """
        amount = rules.used(receipt, amount, stores=merge is not None)
        if self._data is not None:
            self._data.require_unchanged()
        found = None if tagged is None else lambda blob: self._scope.tagged(tagged(blob))
        stores = None if merge is None else booking.Stores(merge, found)
        self._books.write(lambda connection: booking.settle(self._booking, connection, receipt, amount, stores))

    def fail(self, receipt: Receipt, *, interrupted: bool = False) -> None:
        """Close a reservation whose measurement went wrong, at what may have been measured: there is no refund.

        That is all of it; or the price of the last look that was begun, if it is measured look by look.

        Args:
            receipt: what `reserve` gave.
            interrupted: whether its asker stopped it: `failures` does not count it then.

        Noise may have been drawn and seen before the failure, so later asks of the question pay the fresh price.
        What is closed already stays as it is: this may be called on every way out.
        """
        self._books.write(lambda connection: booking.fail(self._booking, connection, receipt, interrupted=interrupted))

    def withdraw(self, receipt: Receipt) -> None:
        """Close a reservation under which no row was read: nothing is charged. What is closed already stays as it is.

        Guarantee: the prices charged for a question still sum to at least Q of all its measurements.
        Proof: docs/proofs/ledger.store.md: nothing was measured under it, so it is settled to nothing.
        Assumes: the caller read no row under this receipt, and reads none after; delta that is set aside for keys stays
            charged.
        Rounds: nothing.
        """
        self._books.write(lambda connection: booking.withdraw(self._booking, connection, receipt))

    def give_up(self, *, unknown: bool = False) -> int:
        """Close reservations of dead processes that were measured look by look, each at its last look; count them.

        Args:
            unknown: also those of processes on other machines, which are refused their next look if they are alive.
        """

        def dead(process: Process) -> bool:
            alive = process.alive()
            return alive is False or (unknown and alive is None)

        with self._books.reading() as connection:
            left = connection.execute(tables.OPEN_LOOKING).all()
        if not any(dead(Process(row.pid, row.host, row.started)) for row in left):
            return 0
        return self._books.write(lambda connection: booking.give_up(self._booking, connection, dead))

    def tag(self, question: str, found: Tags) -> None:
        """Write by which tags a stored question is found, where an older version did not."""
        question, found = self._scope.question(question), self._scope.tagged(found)
        self._books.write(lambda connection: tags.write(connection, question, found))

    def stands(self, receipt: Receipt) -> bool:
        """Tell whether a reservation is open and has charged more than nothing: whether there is a right to measure.

        Raises:
            LedgerError: the receipt is another ledger's.
        """
        with self._books.reading() as connection:
            return rules.reserved(connection, receipt, self.identity).state is None and receipt.reserved > 0

    def close(self) -> None:
        """Close the ledger. Reservations that are open stay charged. Closing twice is fine."""
        if self._owns:
            self._books.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        part = f", part {self._scope.part} of {self._scope.partition}" if self._scope.partition else ""
        return f"<Ledger in {self.path or 'memory'}: {self.terms.description}, unit {self.terms.unit}{part}>"
