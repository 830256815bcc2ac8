"""What the books tell to anybody: entries, open reservations, released measurements. Reading them is free."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from farthing.ledger import rows, rules, tables
from farthing.ledger.entry import Receipt, Seal

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from farthing.ledger.accounts import Scope
    from farthing.ledger.books import Books
    from farthing.ledger.entry import Entry, Stored
    from farthing.ledger.shaping import Header

_PAGE: Final = 1000
_RECENT: Final = 16
"""So many closed reservations are looked at for failures in a row."""


class Told:
    """The part of a ledger that is only read."""

    _books: Books
    _header: Header
    _scope: Scope

    @property
    def identity(self) -> str:
        """A random name that tells this ledger apart from every other."""
        return self._header.identity

    @property
    def seal(self) -> Seal:
        """The end of the hash chain; noted elsewhere, `verify` tells later that nothing was rewritten."""
        with self._books.reading() as connection:
            tip = rows.totals(connection).tip
        return Seal(tip.records, tip.head)

    @property
    def open_reservations(self) -> list[Entry]:
        """Reservations neither settled nor failed, newest first: work under way, or what a dead process left."""
        with self._books.reading() as connection:
            return [self._entry(row) for row in connection.execute(self._mine(tables.OPEN))]

    def history(self, limit: int | None = None) -> list[Entry]:
        """Return the entries, newest first: all, or the last `limit`."""
        with self._books.reading() as connection:
            return [self._entry(row) for row in connection.execute(self._mine(tables.HISTORY).limit(limit))]

    def entries(self) -> Iterator[Entry]:
        """Give the entries, oldest first, without ever holding all of them or keeping others from the ledger."""
        last, page = 0, [0]
        while page:
            with self._books.reading() as connection:
                found = connection.execute(self._mine(tables.PAGE).limit(_PAGE), {"after": last}).all()
            page = [row.id for row in found]
            yield from map(self._entry, found)
            last = max(page, default=last)

    def acts(self) -> list[dict[str, Any]]:
        """Return what the owner did, oldest first: shares that were allotted, and formats that were carried over."""
        with self._books.reading() as connection:
            return [dict(row) for row in connection.execute(tables.ACTED).mappings()]

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

    def receipt(self, request: str) -> Receipt | None:
        """Return the receipt of a request that was reserved, marked `repeated`; None if it never was."""
        with self._books.reading() as connection:
            row = connection.execute(tables.REQUESTED, {"request": request}).first()
        if row is None:
            return None
        return Receipt(row.id, self.identity, row.reserved, row.question, row.version, row.exclusive, repeated=True)

    def failures(self, prefix: str) -> int:
        """Return how many of the latest requests that begin so failed in a row, none of them settled since.

        Those that their askers interrupted are passed over: they say nothing of the data.
        """
        with self._books.reading() as connection:
            recent = connection.execute(tables.CLOSED.limit(_RECENT)).all()
        states = [row.state for row in recent if (row.request or "").startswith(prefix)]
        return next((place for place, state in enumerate(states) if state != "failed"), len(states))

    def _mine(self, statement: sa.Select[Any]) -> sa.Select[Any]:
        """Return a statement about this handle's entries only."""
        return tables.of_part(statement, self._scope.partition, self._scope.part)

    def _entry(self, row: Any) -> Entry:
        """Read an entry; a part sees its questions as it asked them."""
        return rows.entry(row, self._scope.prefix)
