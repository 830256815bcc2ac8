"""The statements of a text, as clients send several at once."""

from __future__ import annotations

from typing import Final

from farthing.server.service import LONGEST_SQL
from farthing.server.wire import values

_MOST_TOGETHER: Final = 100


def statements(text: str) -> list[str]:
    """Return the statements of a text.

    Raises:
        UnsupportedQuery: it is too long, or has too many.

    >>> statements("BEGIN; SELECT ';' ;"), statements(" ; ")
    (['BEGIN', "SELECT ';'"], [])
    """
    import sqlglot

    readable(text)
    if ";" not in text.strip().rstrip("; \n\t"):
        return [text] if text.strip("; \n\t\r") else []
    try:
        ends = [one.start for one in sqlglot.tokenize(text, read="postgres") if one.token_type.name == "SEMICOLON"]
    except sqlglot.errors.SqlglotError:
        ends = []
    parts = [text[start:end] for start, end in zip([0, *(end + 1 for end in ends)], [*ends, len(text)], strict=True)]
    found = [part.strip() for part in parts if part.strip()]
    if len(found) > _MOST_TOGETHER:
        raise values.unsupported(f"more than {_MOST_TOGETHER} statements at once")
    return found


def readable(text: str) -> str:
    """Return a statement; refuse one that is longer than any question may be.

    Raises:
        UnsupportedQuery: it is too long.
    """
    if len(text) > LONGEST_SQL:
        raise values.unsupported(f"a statement of more than {LONGEST_SQL:,} characters")
    return text
