"""Cursors by name: a question is asked once, when its cursor is declared, and its rows are fetched in portions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from farthing.server.wire import values
from farthing.server.wire.desk import Result
from farthing.server.wire.kept import Prepared

if TYPE_CHECKING:
    from farthing.server.wire.kept import Kept

_NAME: Final = r'("[^"]+"|\w+)'
_DECLARED: Final = re.compile(
    rf"(\s*DECLARE\s+{_NAME}\s+(?:BINARY\s+|ASENSITIVE\s+|INSENSITIVE\s+|(?:NO\s+)?SCROLL\s+)*"
    r"CURSOR\s+(?:(WITH|WITHOUT)\s+HOLD\s+)?FOR\s+)(.*)",
    re.IGNORECASE | re.DOTALL,
)
_FETCHED: Final = re.compile(
    r"\s*(FETCH|MOVE)(?:\s+FORWARD)?(?:\s+(NEXT|ALL|FIRST|ABSOLUTE\s+\d{1,9}|\d{1,9}))?(?:\s+(?:FROM|IN))?"
    rf"\s+{_NAME}\s*;?\s*",
    re.IGNORECASE,
)
_CLOSED: Final = re.compile(rf"\s*CLOSE\s+{_NAME}\s*;?\s*", re.IGNORECASE)
_CURSOR: Final = re.compile(r"\s*(?:DECLARE|FETCH|MOVE|CLOSE)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Declared:
    """A cursor that a statement declares.

    >>> Declared.of('DECLARE "c" NO SCROLL CURSOR WITH HOLD FOR SELECT 1')
    Declared(name='c', question='SELECT 1', held=True)
    """

    name: str
    question: str
    held: bool

    @classmethod
    def of(cls, text: str) -> Declared | None:
        """Return what a statement declares; None where it is another one."""
        told = _DECLARED.fullmatch(text)
        return None if told is None else cls(_plain(told[2]), told[4], (told[3] or "").upper() == "WITH")

    def open(self, kept: Kept, result: Result) -> Result:
        """Keep the answer for those who fetch it."""
        if result.table is None:
            raise values.unsupported("a cursor over a statement that gives no rows")
        kept.open(self.name, Prepared(self.question, result=result, held=self.held))
        return Result("DECLARE CURSOR", notice=result.notice)


def question_in(text: str) -> tuple[str, str]:
    """Return what stands before the question of a statement, and the question: parameters stand in the latter.

    >>> question_in("DECLARE c CURSOR FOR SELECT 1")
    ('DECLARE c CURSOR FOR ', 'SELECT 1')
    """
    told = _DECLARED.fullmatch(text)
    return ("", text) if told is None else (told[1], told[4])


def is_of_cursors(text: str) -> bool:
    """Whether a statement declares, reads or closes a cursor."""
    return _CURSOR.match(text) is not None


def fetched_from(kept: Kept, text: str) -> Prepared | None:
    """Return the cursor that a statement fetches rows of, if it does."""
    told = _FETCHED.fullmatch(text)
    return kept.portal(_plain(told[3])) if told is not None and told[1].upper() == "FETCH" else None


def read(kept: Kept, text: str) -> Result:
    """Fetch rows of a cursor, move in it, or close it."""
    closed = _CLOSED.fullmatch(text)
    if closed is not None:
        return _closed(kept, closed[1])
    told = _FETCHED.fullmatch(text)
    if told is None:
        raise values.unsupported("a cursor that does not go forward")
    made = kept.portal(_plain(told[3]))
    table = made.result.table if made.result is not None else None
    if table is None:
        raise values.unsupported("a portal that gives no rows")
    start, stop = _range(told[2], made.sent, table.num_rows)
    made.sent, rows = stop, table.slice(start, stop - start)
    word = told[1].upper()
    return Result(f"{word} {rows.num_rows}", rows if word == "FETCH" else None)


def _range(how: str | None, sent: int, rows: int) -> tuple[int, int]:
    """Return the rows from a place on that a statement names, and up to which.

    >>> _range(None, 3, 10), _range("ALL", 3, 10), _range("20", 3, 10), _range("ABSOLUTE 2", 9, 10)
    ((3, 4), (3, 10), (3, 10), (1, 2))
    """
    word = (how or "NEXT").upper()
    if word == "FIRST" or word.startswith("ABSOLUTE"):
        stop = min(1 if word == "FIRST" else int(word.split()[1]), rows)
        return max(0, stop - 1), stop
    many = {"NEXT": 1, "ALL": rows}.get(word)
    return sent, min(rows, sent + (int(word) if many is None else many))


def _closed(kept: Kept, name: str) -> Result:
    """Close one cursor, or all."""
    if name.upper() == "ALL":
        kept.portals.clear()
        return Result("CLOSE CURSOR ALL")
    kept.portal(_plain(name))
    kept.close("P", _plain(name))
    return Result("CLOSE CURSOR")


def _plain(name: str) -> str:
    """Return a name as PostgreSQL reads it."""
    return name[1:-1] if name.startswith('"') else name.lower()
