"""What the books tell to anybody: entries, open reservations, released measurements. Reading them is free."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from farthing.ledger import freezing, proving, rows, rules, tables, tags
from farthing.ledger.accounts import purses, require_few_copies, shares
from farthing.ledger.checking import require_good
from farthing.ledger.entry import Allotment, Receipt, Seal
from farthing.ledger.process import Process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import sqlalchemy as sa

    from farthing.ledger.accounts import Owner, Scope
    from farthing.ledger.books import Books
    from farthing.ledger.data import DataSet
    from farthing.ledger.entry import Entry, Stored, Terms
    from farthing.ledger.shaping import Header
    from farthing.ledger.tags import Tags

_PAGE: Final = 1000
_BEYOND: Final = 1 << 62
"""More than any entry's number."""

_MOST_SHOWN: Final = 100

_RECENT: Final = 16
"""So many closed reservations are looked at for failures in a row."""


class Told:
    """The part of a ledger that is only read."""

    _books: Books
    _header: Header
    _scope: Scope
    _data: DataSet | None

    @property
    def identity(self) -> str:
        """A random name that tells this ledger apart from every other."""
        return self._header.identity

    @property
    def closed(self) -> bool:
        """Whether it was closed: nothing can be read or written."""
        return self._books.closed

    @property
    def allotments(self) -> dict[str, Allotment]:
        """Every allotment, by name."""
        with self._books.reading() as connection:
            totals = rows.totals(connection)
            require_few_copies(connection, totals)
            left, held = self.terms.budget - totals.spent, shares(connection)
        return {row.allotment: Allotment(row.allotment, row.share, row.spent, left) for row in held}

    @property
    def terms(self) -> Terms:
        """What was fixed when the ledger was made."""
        return self._header.terms

    @property
    def path(self) -> Path | str | None:
        """Where the file is, or the URL without its secrets; None for books in memory."""
        return self._books.store.place

    @property
    def hash_key(self) -> int:
        """64 random bits, drawn when the ledger was made: the salt with which engines choose rows. A secret."""
        return self._header.hash_key

    @property
    def spent(self) -> int:
        """Farthings charged: settled, open and failed; of a part its own. The same time however many entries."""
        whole = self._found()[0]
        return whole.own if self._scope.partition else whole.spent

    @property
    def remaining(self) -> int:
        """Farthings that may still be reserved here: of the budget, and of the allotment if there is one."""
        return min(purse.room for purse in self._found())

    @property
    def data_label(self) -> str:
        """The data that charges are tied to, as people read it; "" for none."""
        return "" if self._data is None else self._data.label

    @property
    def keys_delta_left(self) -> int:
        """Coins of 2^-80 that searches for keys may still be charged, of the delta that is set aside for them."""
        if not self.terms.keys_delta:
            return 0
        with self._books.reading() as connection:
            return self.terms.keys_delta - rows.totals(connection).coins

    @property
    def seal(self) -> Seal:
        """The end of the hash chain; noted elsewhere, `verify` tells later that nothing was rewritten."""
        with self._books.reading() as connection:
            tip = rows.totals(connection).tip
        return Seal(tip.records, tip.head)

    @property
    def open_reservations(self) -> list[Entry]:
        """Reservations neither settled nor failed, newest first: work under way, or what a dead process left.

        Of many the newest hundred. Where a thousand are open or failed, those that are shown are checked one by one,
        and whether one is missing is left to `verify`.
        """
        with self._books.reading() as connection:
            if require_few_copies(connection, rows.totals(connection)):
                proving.require_opened(connection)
            found = connection.execute(self._mine(tables.OPEN_ONES).limit(_MOST_SHOWN)).all()
            proving.require_entries(connection, found)
        return [self._entry(row) for row in found]

    def open_of(self, question: str) -> list[Entry]:
        """Return the newest open reservations of one question, newest first; however many others have left."""
        with self._books.reading() as connection:
            found = connection.execute(tables.OPEN_OF, {"question": self._scope.question(question)}).all()
            proving.require_entries(connection, found)
        return [self._entry(row) for row in found]

    def charged_fresh(self, question: str) -> bool:
        """Tell whether the next measurement of a question is charged at the fresh price, whatever is stored of it.

        So it is after a failure, and while a reservation of it is open whose process is gone or not known to run.
        """
        with self._books.reading() as connection:
            found = connection.execute(tables.LEFT_OF, {"question": self._scope.question(question)}).all()
        if len(found) > tables.MOST_OPEN:
            return True
        return any(row.state is not None or not Process(row.pid, row.host, row.started).alive() for row in found)

    def history(self, limit: int | None = None, *, before: int | None = None) -> list[Entry]:
        """Return the entries, newest first: all, or the last `limit`; a thousand are read at a time.

        Args:
            limit: how many at most.
            before: only those with smaller numbers (`Entry.id`), to go on where another call ended.

        Raises:
            LedgerError: an entry is not what was written, or is missing: nothing of it is shown.
        """
        told: list[Entry] = []
        before = _BEYOND if before is None else before
        while before > 1 and (limit is None or len(told) < limit):
            size = _PAGE if limit is None else min(_PAGE, limit - len(told))
            found = self._page_before(before, size)
            told += map(self._entry, found)
            before = found[-1].id if len(found) == size else 1
        return told

    def entries(self) -> Iterator[Entry]:
        """Give the entries, oldest first, without ever holding all of them or keeping others from the ledger.

        Raises:
            LedgerError: an entry is not what was written, or is missing.
        """
        last, seq, size = 0, 0, _PAGE
        while size == _PAGE:
            with self._books.reading() as connection:
                found = connection.execute(self._mine(tables.PAGE).limit(_PAGE), {"after": last}).all()
                size, numbers = len(found), [row.id for row in found]
                proving.require_entries(connection, found)
                seq = found[-1].seq if found else seq
                if not self._scope.partition:
                    proving.require_next(numbers, last, 1)
                    if size < _PAGE:
                        proving.require_newest(connection, seq)
            yield from map(self._entry, found)
            last = max(numbers, default=last)

    def acts(self) -> list[dict[str, Any]]:
        """Return what stands beside entries, oldest first: shares, formats, measurements that were carried over."""
        with self._books.reading() as connection:
            found = [dict(row) for row in connection.execute(tables.ACTED).mappings()]
            proving.require_acts(connection, found)
        return found

    def load(self, question: str) -> Stored | None:
        """Return what was released for a question, or None. It is public: reading it is free."""
        with self._books.reading() as connection:
            return rows.load(connection, self._scope.question(question))

    def stored(self, prefix: str) -> list[str]:
        """Return the questions that begin so and have a stored measurement, in order: what was released is public."""
        first = self._scope.question(rules.text("prefix", prefix))
        with self._books.reading() as connection:
            bounds = {"first": first, "end": first + chr(sys.maxunicode)}
            found = connection.execute(tables.BEGINNING, bounds).scalars()
            return [question.removeprefix(self._scope.prefix) for question in found]

    def holding(self, prefix: str, sought: Sequence[Tags], most: int) -> list[str]:
        """Return the sharpest stored questions that begin so and may hold what is sought, by their tags.

        Args:
            prefix: how they begin.
            sought: ways to look: the tags of some groups, or one tag; how many groups there are, and their bits.
            most: how many at most, of each way.
        """
        first = self._scope.question(rules.text("prefix", prefix))
        with self._books.reading() as connection:
            found = tags.holding(connection, [self._scope.tagged(way) for way in sought], most)
        own = self._scope.prefix
        return [question.removeprefix(own) for question in dict.fromkeys(found) if question.startswith(first)]

    def untagged(self, prefix: str) -> list[str]:
        """Return the stored questions that begin so and that older versions stored, without tags."""
        first = self._scope.question(rules.text("prefix", prefix))
        with self._books.reading() as connection:
            return [question.removeprefix(self._scope.prefix) for question in tags.untagged(connection, first)]

    def measurements(self) -> Iterator[tuple[str, Stored]]:
        """Give every question that has a stored measurement, in order, with what was released."""
        with self._books.reading() as connection:
            found = connection.execute(tables.BEGINNING, {"first": "", "end": chr(sys.maxunicode)}).scalars().all()
        for question in found:
            with self._books.reading() as connection:
                stored = rows.load(connection, question)
            if stored is not None:
                yield question, stored

    @property
    def frozen(self) -> tuple[str, ...]:
        """The names of those whom the owner has frozen, in order; "" stands for everybody."""
        with self._books.reading() as connection:
            bounds = {"first": freezing.PREFIX, "end": freezing.PREFIX + chr(sys.maxunicode)}
            found = connection.execute(tables.BEGINNING, bounds).scalars().all()
            held = [place for place in found if freezing.is_frozen(rows.load(connection, place))]
        return tuple(place.removeprefix(freezing.PREFIX) for place in held)

    def receipt(self, request: str) -> Receipt | None:
        """Return the receipt of a request that was reserved, marked `repeated`; None if it never was."""
        with self._books.reading() as connection:
            row = connection.execute(tables.REQUESTED, {"request": request}).first()
            proving.require_reservation(connection, row)
        if row is None:
            return None
        return Receipt(row.id, self.identity, row.reserved, row.question, row.version, row.exclusive, repeated=True)

    def settled(self, receipt: Receipt) -> bool:
        """Tell whether a reservation was settled: of one whose server was lost meanwhile its asker cannot know."""
        with self._books.reading() as connection:
            state: str | None = rules.reserved(connection, receipt, self.identity).state
        return state == "settled"

    def failures(self, prefix: str) -> int:
        """Return how many of the latest requests that begin so failed in a row, none of them settled since.

        Those that their askers interrupted are passed over: they say nothing of the data.
        """
        with self._books.reading() as connection:
            recent = connection.execute(tables.CLOSED.limit(_RECENT)).all()
        states = [row.state for row in recent if (row.request or "").startswith(prefix)]
        return next((place for place, state in enumerate(states) if state != "failed"), len(states))

    def verify(self, noted: str | None = None, *, since: str | None = None) -> Seal:
        """Recompute the books from their entries, and the hash chain from its content.

        Args:
            noted: the head of a seal that was noted earlier. If it is not in the chain, the ledger was rewritten since,
                or replaced by an older copy.
            since: the head of a seal that was found good earlier: the hashes of the records up to it are not computed
                again. Totals are, from all entries.

        Returns:
            The seal of the chain as it is now.

        Raises:
            LedgerError: the file is damaged, or the books contradict themselves; says in which ways.
        """
        with self._books.reading() as connection:
            return require_good(connection, noted, since=since)

    def _page_before(self, before: int, size: int) -> Sequence[Any]:
        """Return the newest entries with numbers below one, checked: what they say, and that none is missing."""
        with self._books.reading() as connection:
            found = connection.execute(self._mine(tables.NEWEST).limit(size), {"before": before}).all()
            proving.require_entries(connection, found)
            if not self._scope.partition:
                first = found[0].id if found else 0
                if first != before - 1:
                    proving.require_newest(connection, found[0].seq if found else 0)
                ended = [0] if len(found) < size else []
                proving.require_next([*(row.id for row in found), *ended], first + 1, -1)
        return found

    def _mine(self, statement: sa.Select[Any]) -> sa.Select[Any]:
        """Return a statement about this handle's entries only."""
        return tables.of_part(statement, self._scope.partition, self._scope.part)

    def _entry(self, row: Any) -> Entry:
        """Read an entry; a part sees its questions as it asked them."""
        return rows.entry(row, self._scope.prefix)

    def _found(self) -> list[Owner]:
        """Return the purses that a charge here draws on, as they stand."""
        with self._books.reading() as connection:
            return purses(connection, self._scope, self.terms.budget, rows.totals(connection).spent)
