"""The hash chain: each record's SHA-256 over its content and the hash before it, so that a change by hand shows."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Tip(NamedTuple):
    """The end of the chain, as the running totals hold it.

    Attributes:
        records: how many records there are; the last one's number.
        head: the last one's hash.
        clock: the latest moment that was recorded, in microseconds since 1970, UTC.
    """

    records: int
    head: str
    clock: int

    def stamp(self, now: int) -> tuple[int, int]:
        """Return the moment to record, never before the last one, and by how much the clock was behind it.

        >>> Tip(1, "", clock=100).stamp(130), Tip(1, "", clock=100).stamp(90)
        ((130, 0), (100, 10))
        """
        return max(now, self.clock), max(0, self.clock - now)


def link(previous: str, kind: str, content: Mapping[str, Any]) -> str:
    """Return a record's hash: SHA-256 of the hash before it, its kind, and every column but `hash`, as JSON.

    >>> link("", "settled", {"amount": 5, "hash": "mine"}) == link("", "settled", {"amount": 5})
    True
    >>> link("", "settled", {"amount": 5}) == link("", "settled", {"amount": 6})
    False
    """
    facts = {name: value for name, value in content.items() if name != "hash"}
    text = json.dumps([previous, kind, facts], sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: object) -> str:
    """Return bytes as JSON text; the only other kind of value a table of ours holds."""
    return f"bytes {value.hex()}" if isinstance(value, bytes) else f"{type(value).__name__} {value}"
