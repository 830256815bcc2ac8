"""LIMIT and OFFSET: how many groups of an answer are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.sql.text import Node, SqlText


def read_limit(source: SqlText, select: Node) -> tuple[int | None, int]:
    """Return LIMIT (or FETCH FIRST) and OFFSET."""
    limit, offset = select.args.get("limit"), select.args.get("offset")
    most = None
    if limit is not None:
        count = limit.args.get("count") if type(limit).__name__ == "Fetch" else limit.expression
        extra = limit.args.get("limit_options")
        if (extra is not None and (extra.args.get("percent") or extra.args.get("with_ties"))) or any(
            value and part not in ("expression", "count", "direction", "limit_options", "offset")
            for part, value in limit.args.items()
        ):
            raise source.refuse("LIMIT with more than a number", "write LIMIT 10", limit, "LIMIT")
        offset = offset or limit.args.get("offset")
        most = _whole(source, count, "LIMIT")
    inside = getattr(offset, "expression", None) if type(offset).__name__ == "Offset" else offset
    return most, 0 if inside is None else _whole(source, inside, "OFFSET")


def _whole(source: SqlText, node: Any, word: str) -> int:
    """Return a whole number that is written out."""
    digits = "" if node is None else str(node.name)
    if type(node).__name__ != "Literal" or not digits.isdigit() or len(digits) > 15:
        raise source.refuse(f"{word} of anything but a number", f"write {word} 10", node, word)
    return int(digits)
