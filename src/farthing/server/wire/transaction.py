"""Transactions as clients see them: nothing here is undone, but drivers go by whether they are in one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pygwire import TransactionStatus

from farthing.client import RefusedRequest

_ENDS: Final = re.compile(r"\s*(?:COMMIT|END|ROLLBACK|ABORT)\b(?!\s+(?:WORK\s+|TRANSACTION\s+)?TO\b)", re.IGNORECASE)
_BACK: Final = re.compile(r"\s*ROLLBACK\s+(?:WORK\s+|TRANSACTION\s+)?TO\b", re.IGNORECASE)


@dataclass(slots=True)
class Transaction:
    """Where a connection stands.

    >>> one = Transaction()
    >>> one.after("BEGIN", "BEGIN"), one.status.value
    (False, 'T')
    >>> one.failed()
    >>> one.after("ROLLBACK", "ROLLBACK"), one.status.value
    (True, 'I')
    """

    status: TransactionStatus = TransactionStatus.IDLE

    def before(self, text: str) -> None:
        """Refuse what comes after an error in a transaction, until that ends; as PostgreSQL does."""
        if self.status is TransactionStatus.ERROR_TRANSACTION and not (_ENDS.match(text) or _BACK.match(text)):
            raise RefusedRequest(
                "an earlier statement of this transaction failed",
                status=424,
                rule="after an error a transaction ends before the next statement",
                next_step="ROLLBACK; what was answered before is free to ask again",
            )

    def after(self, text: str, tag: str) -> bool:
        """Note a statement that was done, by its text and its tag; return whether it ended a transaction."""
        if tag == "BEGIN":
            self.status = TransactionStatus.IN_TRANSACTION
        elif _ENDS.match(text):
            self.status = TransactionStatus.IDLE
            return True
        elif _BACK.match(text) and self.status is not TransactionStatus.IDLE:
            self.status = TransactionStatus.IN_TRANSACTION
        return False

    def failed(self) -> None:
        """Note an error."""
        if self.status is not TransactionStatus.IDLE:
            self.status = TransactionStatus.ERROR_TRANSACTION
