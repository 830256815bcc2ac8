"""What one connection keeps: prepared statements, portals and cursors, up to a number and a length."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from farthing.client import RefusedRequest
from farthing.server.wire import values

if TYPE_CHECKING:
    from farthing.server.wire.desk import Result

MOST_STATEMENTS, MOST_PORTALS = 500, 50
"""What one connection may have prepared, and bound, at a time: a portal holds an answer."""
LONGEST_TEXTS: Final = 4 << 20
"""The characters of all that one connection has prepared or bound."""
_FORGOTTEN: Final = re.compile(
    r"\s*(?:DISCARD\s+ALL|DEALLOCATE\s+(?:PREPARE\s+)?(\"[^\"]*\"|\w+))\s*;?\s*", re.IGNORECASE
)
"""How a statement says that prepared statements are done with."""


@dataclass(slots=True)
class Prepared:
    """A statement with its parameters' types, or a portal or cursor with its result.

    Attributes:
        text: the statement.
        types: the numbers of the types of its parameters.
        formats: the formats of its columns, 1 for bytes.
        columns: the columns that a client was told, with the numbers of their types; None where it was not told yet.
        result: what it came to; None until it is asked.
        sent: how many rows were sent.
        held: whether it outlasts its transaction.
    """

    text: str
    types: list[int] = field(default_factory=list)
    formats: list[int] = field(default_factory=list)
    columns: list[tuple[str, int]] | None = None
    result: Result | None = None
    sent: int = 0
    held: bool = True


@dataclass(slots=True)
class Kept:
    """The prepared statements of a connection, and its portals; a cursor is a portal whose rows are fetched by SQL."""

    statements: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Prepared] = field(default_factory=dict)

    def prepare(self, name: str, made: Prepared) -> None:
        """Keep a statement, in the place of what had its name."""
        self._keep(self.statements, name, made, MOST_STATEMENTS)

    def open(self, name: str, made: Prepared) -> None:
        """Keep a portal, in the place of what had its name."""
        self._keep(self.portals, name, made, MOST_PORTALS)

    def statement(self, name: str) -> Prepared:
        """Return a prepared statement."""
        made = self.statements.get(name)
        if made is None:
            raise values.unsupported("an unknown prepared statement")
        return made

    def portal(self, name: str) -> Prepared:
        """Return a portal."""
        made = self.portals.get(name)
        if made is None:
            raise values.unsupported("an unknown portal")
        return made

    def close(self, kind: str, name: str) -> None:
        """Forget a statement, or a portal."""
        (self.statements if kind == "S" else self.portals).pop(name, None)

    def forget(self, text: str) -> None:
        """Forget what was prepared where a statement says so."""
        told = _FORGOTTEN.fullmatch(text)
        if told is not None:
            name = (told[1] or "ALL").strip('"')
            for one in [name] if name.upper() != "ALL" else list(self.statements):
                self.statements.pop(one, None)

    def ended(self) -> None:
        """Forget the cursors that end with their transaction."""
        for name in [name for name, made in self.portals.items() if not made.held]:
            del self.portals[name]

    def _keep(self, place: dict[str, Prepared], name: str, made: Prepared, most: int) -> None:
        """Keep what was prepared or bound; refuse more than one client may have."""
        others = [one for one in (*self.statements.values(), *self.portals.values()) if one is not place.get(name)]
        if len(place) - (name in place) >= most or sum(len(one.text) for one in (made, *others)) > LONGEST_TEXTS:
            raise RefusedRequest(
                "too much is prepared in this connection",
                status=429,
                rule=f"at most {MOST_STATEMENTS} prepared statements and {MOST_PORTALS} portals, "
                f"of {LONGEST_TEXTS:,} characters together",
                next_step="close those that are done (DEALLOCATE), or connect again",
            )
        place[name] = made
