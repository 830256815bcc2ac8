"""Text on its way out: keys, aliases and names are other people's text, and a terminal or a spreadsheet obeys some."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

_ORDERS: Final = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
)
"""Characters that a terminal acts on, that turn the direction of writing, or that cannot be written."""

_IN_LINES: Final = re.compile(f"[{_ORDERS}]")
_IN_A_LINE: Final = re.compile(f"[{_ORDERS}\\t\\n]")
_FORMULA: Final = re.compile(r"\s*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def line(text: str) -> str:
    r"""Return a text for one line or cell of a terminal: what a terminal would act on is written as an escape.

    >>> print(line("\x1b[31mred"), line("a\nb"), line("zoë"))
    \x1b[31mred a\nb zoë
    """
    return _IN_A_LINE.sub(_escaped, text)


def lines(text: str) -> str:
    r"""Return a text for a terminal that may have several lines, else as `line`.

    >>> print(lines("two\nlines\x9b"))
    two
    lines\x9b
    """
    return _IN_LINES.sub(_escaped, text)


def drawn(text: str) -> str:
    r"""Return a text for a chart: Vega obeys escapes in titles, so that none is written, and no backslash.

    >>> drawn("\x1b[31mred") == "\ufffd[31mred", drawn("a\\x1b") == "a\u2216x1b"
    (True, True)
    """
    return _IN_A_LINE.sub("\ufffd", text).replace("\\", "\u2216")


def cell(text: str) -> str:
    """Return a text for a cell of CSV: an apostrophe before what a spreadsheet would take for a formula.

    >>> [cell(text) for text in ("=1+1", "@SUM(A1)", "-2", "centre", "a=b")]
    ["'=1+1", "'@SUM(A1)", "'-2", 'centre', 'a=b']
    """
    return f"'{text}" if _FORMULA.match(text) else text


def dumped(value: Any, **how: Any) -> str:
    r"""Return plain values as JSON, exact, in which no character stands as it is that a terminal acts on.

    What is not finite is null: JSON has no other word for it.

    >>> print(dumped({"key": "a\x9b", "city": "Köln", "r_upper": float("inf")}))
    {"key": "a\u009b", "city": "Köln", "r_upper": null}
    """
    text = json.dumps(finite(value), ensure_ascii=False, default=str, allow_nan=False, **how)
    return _IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def finite(value: Any) -> Any:
    """Return plain values in which what is not finite is None."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {name if isinstance(name, str) else str(name): finite(one) for name, one in value.items()}
        case list() | tuple():
            return [finite(one) for one in value]
        case _:
            return value


def _escaped(found: re.Match[str]) -> str:
    """Return a character as Python writes it."""
    return found[0].encode("unicode_escape", "surrogatepass").decode()
