"""What an oracle says: nothing where a promise holds, a finding where it is broken."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken promise.

    Attributes:
        oracle: which oracle found it.
        question: what was asked, in SQL or in words.
        what: what differs, or what was told too cheaply.

    >>> print(Finding("price floor", "SELECT COUNT(*) FROM u", "paid mu 0.1, at least 3.29 is needed"))
    price floor: SELECT COUNT(*) FROM u: paid mu 0.1, at least 3.29 is needed
    """

    oracle: str
    question: str
    what: str

    def __str__(self) -> str:
        return f"{self.oracle}: {self.question}: {self.what}"
