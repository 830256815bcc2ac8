"""The hash chain: each record's SHA-256 over its content and the hash before it, so that a change by hand shows.

The totals are sealed too: a hash over the row and the end of the chain, which everybody checks who reads them.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from farthing.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Mapping

_quoted: Final = json.encoder.encode_basestring_ascii

_SEALS: Final = 1 << 256
"""Seals of working copies are added up as numbers below this."""


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


class Totals(NamedTuple):
    """The one row that every charge reads and writes; see `tables.TOTALS`.

    Guarantee: a row in which any bit was changed, and nothing else, is refused by `of`.
    Proof: docs/proofs/ledger.chain.md.
    Assumes: SHA-256 has no collisions that chance finds.
    Rounds: nothing.

    Attributes:
        spent: farthings charged.
        tip: the end of the chain.
        coins: coins of 2^-80 charged to the delta that is set aside for keys.
        copies: the sum of the seals of all rows of the working copies, modulo 2^256.
        terms: the hash of the terms.
    """

    spent: int
    tip: Tip
    coins: int
    copies: int
    terms: str

    @classmethod
    def of(cls, row: Any) -> Totals:
        """Return the totals that a row holds; LedgerError where it is not as it was written."""
        facts = {name: getattr(row, name) for name in ("spent", "records", "head", "clock", "coins", "copies", "terms")}
        if row.seal != link(str(row.head), "totals", facts):
            raise damaged("the running total is not what was written", "the totals carry a hash of their own")
        tip = Tip(row.records, row.head, row.clock)
        return cls(row.spent, tip, int(row.coins), int(row.copies, 16), row.terms)

    def row(self) -> dict[str, Any]:
        """Return the row, sealed."""
        facts = {
            "spent": self.spent,
            **self.tip._asdict(),
            "coins": str(self.coins),
            "copies": f"{self.copies:064x}",
            "terms": self.terms,
        }
        return facts | {"seal": link(self.tip.head, "totals", facts)}

    def after(self, tip: Tip, *, change: int = 0, copies: int = 0, coins: int = 0) -> Totals:
        """Return the totals after more records: with another end, and what they add."""
        return self._replace(
            spent=self.spent + change, tip=tip, coins=self.coins + coins, copies=(self.copies + copies) % _SEALS
        )


def sealed(kind: str, **content: Any) -> str:
    """Return the hash of a row of a working copy.

    >>> sealed("accounts", part="EU", spent=5) == sealed("accounts", spent=5, part="EU")
    True
    """
    return link("", kind, content)


def unsettled(question: str, reservation: int) -> int:
    """Return what a reservation that is open or failed adds to the sum of the working copies."""
    text = f'["","unsettled",{{"question":{_quoted(question)},"reservation":{reservation}}}]'  # as `link` writes it
    return int.from_bytes(hashlib.sha256(text.encode()).digest())


def damaged(what: str, rule: str, got: object = "") -> LedgerError:
    """Return the error of books that are not as they were written."""
    return LedgerError(
        what,
        rule=rule,
        got=got,
        next_step="restore the ledger from a copy, and count what it had charged since as spent",
    )


def link(previous: str, kind: str, content: Mapping[str, Any]) -> str:
    """Return a record's hash: SHA-256 of the hash before it, its kind, and every column but `hash`, as JSON.

    >>> link("", "settled", {"amount": 5, "hash": "mine"}) == link("", "settled", {"amount": 5})
    True
    >>> link("", "settled", {"amount": 5}) == link("", "settled", {"amount": 6})
    False
    """
    facts = dict(content)
    facts.pop("hash", None)
    return hashlib.sha256(_ENCODER.encode([previous, kind, facts]).encode()).hexdigest()


def _plain(value: object) -> str:
    """Return bytes as JSON text; the only other kind of value a table of ours holds."""
    return f"bytes {value.hex()}" if isinstance(value, bytes) else f"{type(value).__name__} {value}"


_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_plain)
