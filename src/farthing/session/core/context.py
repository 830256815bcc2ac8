"""What every ask of a session shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import BudgetExceeded
from farthing.privacy.words import state
from farthing.rounding import DELTA_COIN

if TYPE_CHECKING:
    from farthing.ledger.store import Ledger
    from farthing.privacy.budget import Budget
    from farthing.privacy.loss import Booked
    from farthing.query import Query
    from farthing.session.core.door import Door


KEYS_SHARE: Final = 10
"""One search for groups may use one part in so many of the delta that is set aside for keys."""


@dataclass(frozen=True, slots=True)
class Context:
    """The data, the books, and what ties them together.

    Attributes:
        engine: the door to the protected table.
        ledger: the books.
        budget: the total, as the owner wrote it.
        data_set: the identity of the data as its owner declares it.
    """

    engine: Door
    ledger: Ledger
    budget: Budget
    data_set: str

    def loss(self, farthings: int) -> Booked:
        """Return a ledger's farthings as a loss of its currency."""
        return self.budget.currency.of_farthings(farthings)

    def data(self, query: Query) -> str:
        """Return the identity of the bounded data that a question is about: of the rows, and of the hash that cuts."""
        return f"{self.data_set} {self.engine.fingerprint(query)}"

    def key_coins(self) -> int:
        """Return the coins of delta that one search for groups may use; refuse where none is set aside."""
        coins = self.ledger.terms.keys_delta // KEYS_SHARE
        if not coins:
            raise BudgetExceeded(
                "no delta is set aside for keys",
                needed=self.loss(0),
                left=self.loss(self.ledger.remaining),
                rule="groups that are not listed are found at a price in delta",
                got=self.budget.describe(),
                next_step="list the keys; or open a ledger with Budget(epsilon=1, delta=1e-6, keys_delta=1e-7)",
            )
        return int(coins)

    @property
    def where_kept(self) -> str:
        """Where the books are, in words that tell nothing of the machine: no folder, no host."""
        match self.ledger.path:
            case None:
                return "books in memory only, forgotten with the session"
            case str():
                return "books on a server"
            case path:
                return f"books in {path.name}"

    def status(self) -> dict[str, Any]:
        """Return the state of the books as plain values."""
        delta = self.budget.report_delta
        spent = self.ledger.spent
        return {
            "budget": self.budget.describe(),
            "unit": self.ledger.terms.unit,
            "ledger": None if self.ledger.path is None else str(self.ledger.path),
            "total": state(self.budget.total, delta),
            "spent": state(self.loss(spent), delta),
            "remaining": state(self.budget.total - self.loss(spent), delta),
            "keys_delta": {
                "total": self.ledger.terms.keys_delta * float(DELTA_COIN),
                "left": self.ledger.keys_delta_left * float(DELTA_COIN),
            },
            "open": [
                {"label": entry.label, "reserved": state(self.loss(entry.reserved), delta), "pid": entry.pid,
                 "host": entry.host, "alive": entry.alive}
                for entry in self.ledger.open_reservations
            ],
        }  # fmt: skip
