"""What the books mean: the terms of a ledger, its entries, receipts, and stored measurements.

Losses are whole farthings of the ledger's one additive currency; measurements are opaque bytes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from farthing.errors import InvalidBudget, LedgerError, LedgerMismatch

if TYPE_CHECKING:
    from datetime import datetime

State = Literal["open", "settled", "failed"]

CURRENCIES: Final = ("gdp", "zcdp", "pure")

MOST_FARTHINGS: Final = 1 << 62
"""The largest budget: sums of two charges still fit a signed 64-bit column."""

MOST_DELTA: Final = 1 << 80
"""Coins in a delta of one."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is fixed when a ledger is made; a ledger never serves two promises.

    Attributes:
        currency: what a farthing measures: "gdp" (mu^2), "zcdp" (rho) or "pure" (epsilon).
        budget: the most that may ever be charged, in farthings; 1 to 2^62.
        delta: coins of 2^-80 in the promise's delta; 0 for a pure one.
        keys_delta: the part of delta set aside for keys that are found privately, in the same coins.
        unit: whose presence is hidden: "row" or "column:<name>".
        description: the budget as the owner wrote it, for people to read; it is not compared.

    >>> Terms("gdp", budget=1 << 40, delta=0, keys_delta=0, unit="row", description="mu=1").budget
    1099511627776
    """

    currency: str
    budget: int
    delta: int
    keys_delta: int
    unit: str
    description: str

    def __post_init__(self) -> None:
        if self.currency not in CURRENCIES:
            raise InvalidBudget(
                "unknown currency",
                rule=f"one of {', '.join(CURRENCIES)}",
                got=repr(self.currency),
                next_step="name the currency of the budget",
            )
        _check_range("budget", self.budget, 1, MOST_FARTHINGS)
        _check_range("delta", self.delta, 0, MOST_DELTA - 1)
        _check_range("keys_delta", self.keys_delta, 0, self.delta)
        if self.unit != "row" and not (self.unit.startswith("column:") and self.unit != "column:"):
            raise LedgerError(
                "unknown privacy unit", rule='"row" or "column:<name>"', got=repr(self.unit), next_step="name the unit"
            )

    def require(self, asked: Terms) -> None:
        """Raise LedgerMismatch when a ledger with these terms is opened with others, naming every difference."""
        pairs = (
            ("currency", self.currency, asked.currency, 0),
            ("budget", self.budget, asked.budget, 40),
            ("delta", self.delta, asked.delta, 80),
            ("keys_delta", self.keys_delta, asked.keys_delta, 80),
            ("unit", self.unit, asked.unit, 0),
        )
        differences = [
            f"{name} is {_worth(has, bits)}, asked for {_worth(wants, bits)}"
            for name, has, wants, bits in pairs
            if has != wants
        ]
        if differences:
            raise LedgerMismatch(
                f"the ledger was made with other terms ({self.description})",
                rule="unit, budget and currency are fixed when a ledger is made",
                got=f"{asked.description}: {'; '.join(differences)}",
                next_step="open it with the terms it was made with, or name a new ledger file",
            )


def _worth(fact: str | int, bits: int) -> str:
    """Return a fact as people read it: coins of 2^-bits as the number they are worth."""
    return fact if isinstance(fact, str) else f"{fact / 2**bits:.6g}"


def _check_range(name: str, value: int, least: int, most: int) -> None:
    """Refuse a number of coins that is not whole or out of range."""
    if type(value) is not int or not least <= value <= most:
        raise InvalidBudget(
            f"{name} is out of range",
            rule=f"a whole number of coins from {least} to {most}",
            got=repr(value),
            next_step=f"give a larger, smaller or rounded {name}",
        )


@dataclass(frozen=True, slots=True)
class Receipt:
    """The right to measure one question once, at up to the reserved loss.

    Attributes:
        id: the number of the reservation in its ledger.
        ledger: the identity of the ledger that gave it.
        reserved: farthings charged until it is settled; the most that settling may charge.
        question: the identity of the question.
        version: the stored measurement that the question was to sharpen; 0 for none.
        exclusive: whether the increase was charged. If so the settled amount is the increase over what was stored at
            `version`; if not, it is the full price of the new measurements alone.
        repeated: whether this request was reserved before. Noise may have been drawn on it then, so whoever is handed
            a repeated receipt must not draw again unless it knows that nobody did.
    """

    id: int
    ledger: str
    reserved: int
    question: str
    version: int
    exclusive: bool
    repeated: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Stored:
    """A question's released measurement: public, so it may be kept and shown again for free.

    Attributes:
        version: how often it was sharpened; at least 1.
        blob: the measurement, opaque to the ledger.
    """

    version: int
    blob: bytes

    @cached_property
    def digest(self) -> str:
        """The measurement's SHA-256, computed once: measurements of many groups have hundreds of megabytes."""
        return hashlib.sha256(self.blob).hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """One reservation and what became of it.

    Attributes:
        id: numbers the reservations of a ledger in order.
        request: the caller's unique id, or None.
        question: the identity of the question.
        label: the question as people read it.
        reserved: farthings charged when it was made.
        settled: farthings charged once it was closed, or None while it is open.
        state: "open", "settled", or "failed" (which keeps the whole reservation charged).
        exclusive: whether the increase was charged, and not the full price.
        version: the stored measurement it was to sharpen; 0 for none.
        opened_at: when it was reserved, UTC.
        closed_at: when it was settled or failed, UTC, or None.
        pid: the process that reserved.
        host: the machine that reserved.
        alive: whether that process still runs, as well as this machine can tell; None when closed or unknown.
        who: the analyst's name as it was given, or the operating system's user; "" in entries of format 1.
        target: the accuracy that was asked, as people read it; "" where the label says it.
        allotment: the allotment it draws on, or None.
        partition: the partition of the data that was asked, or None.
        part: the part of it, or None.
        clock_behind: by how much the clock was behind the ledger's latest moment, which was then written instead.
        hash: the newest link of the chain that is about this entry.
    """

    id: int
    request: str | None
    question: str
    label: str
    reserved: int
    settled: int | None
    state: State
    exclusive: bool
    version: int
    opened_at: datetime
    closed_at: datetime | None
    pid: int
    host: str
    alive: bool | None
    who: str = ""
    target: str = ""
    allotment: str | None = None
    partition: str | None = None
    part: str | None = None
    clock_behind: timedelta = timedelta(0)
    hash: str = ""

    @property
    def charged(self) -> int:
        """Farthings that this entry takes from the budget now."""
        return self.reserved if self.settled is None else self.settled


@dataclass(frozen=True, slots=True)
class Allotment:
    """A share of the budget that the owner gave to an analyst or a project.

    Attributes:
        name: whose it is.
        share: the most farthings that may be charged to it.
        spent: farthings charged to it.
        total_left: what is left of the whole budget, which every allotment draws on.
    """

    name: str
    share: int
    spent: int
    total_left: int

    @property
    def left(self) -> int:
        """Farthings that may still be charged to it: no more than the whole budget has left.

        >>> Allotment("alice", share=50, spent=20, total_left=10).left
        10
        """
        return min(self.share - self.spent, self.total_left)


@dataclass(frozen=True, slots=True)
class Seal:
    """What `verify` found good: note it, and later see that nothing before it was rewritten.

    Attributes:
        records: how many records the chain has.
        head: the hash of the last one.
    """

    records: int
    head: str
