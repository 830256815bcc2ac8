"""A plan that can be confirmed: its id names the question and the most that it may be charged, and cannot be forged."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from farthing.client import RefusedRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LASTS: Final = 3600
"""Seconds for which a plan can be confirmed: prices may have changed afterwards."""

_MAC: Final = 16
_LARGEST: Final = 1 << 21
"""The largest question that a ticket is unpacked to, in bytes."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What was planned.

    Attributes:
        who: who planned it; nobody else can confirm it.
        question: the request as it was planned, without its price.
        most: the most that it may be charged, in farthings of the ledger.
    """

    who: str
    question: Mapping[str, Any]
    most: int


class Tickets:
    """Writes plans into ids and reads them back. No id is kept: what it says is signed.

    Guarantee: an id is read only as it was written here, by the person it was written for, within an hour; so the price
        that it confirms is one that a plan told.
    Proof: an id carries an HMAC-SHA-256 of what it says, under a key that never leaves the server.
    Assumes: all workers of a server share the key, and HMAC-SHA-256 cannot be forged.
    Rounds: nothing.

    >>> tickets = Tickets(b"k" * 32)
    >>> made = tickets.written(Ticket("alice", {"sql": "SELECT COUNT(*) FROM t"}, 17))
    >>> tickets.read(made, "alice").most
    17
    """

    def __init__(self, key: bytes, *, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._clock = clock

    def written(self, ticket: Ticket) -> str:
        """Return the id of a plan."""
        facts = {"w": ticket.who, "q": ticket.question, "m": ticket.most, "t": int(self._clock()) + LASTS}
        body = zlib.compress(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode(), 9)
        return base64.urlsafe_b64encode(self._signature(body) + body).decode().rstrip("=")

    def read(self, written: str, who: str) -> Ticket:
        """Return the plan that an id stands for; RefusedRequest if it is not one, is somebody else's, or too old."""
        facts: dict[str, Any] = {}
        try:
            whole = base64.urlsafe_b64decode(written + "=" * (-len(written) % 4))
            signature, body = whole[:_MAC], whole[_MAC:]
            if hmac.compare_digest(signature, self._signature(body)):
                facts = json.loads(zlib.decompressobj().decompress(body, _LARGEST))
        except (ValueError, binascii.Error, zlib.error):
            facts = {}
        if not facts or facts["w"] != who or facts["t"] < self._clock():
            raise RefusedRequest(
                "this plan cannot be confirmed",
                status=409,
                rule="a plan is confirmed by the person who made it, within an hour, with its id",
                next_step="plan the question again",
            )
        return Ticket(facts["w"], facts["q"], facts["m"])

    def _signature(self, body: bytes) -> bytes:
        """Return the mark that tells our ids from others."""
        return hmac.new(self._key, body, hashlib.sha256).digest()[:_MAC]
