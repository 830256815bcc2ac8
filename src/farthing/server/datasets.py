"""What may be asked: tables as their owner declares them, and a session of each person over each of them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from farthing.privacy.words import state

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from farthing.privacy.budget import Budget
    from farthing.session import Session


@dataclass(frozen=True, slots=True)
class ServedTable:
    """A protected table that a server answers questions about.

    Attributes:
        name: the table's name in SQL, and the data set's in requests.
        opened: opens a session: takes the arguments `analyst` and `allotment`.
        budget: the total of its ledger.
        unit: whose presence is hidden, in words.
        columns: the table's columns with their types.
        keys: the public group keys of columns, for questions that name none.
        defaults: the target of questions that name none, as options of an ask.
        askers: the names of those who may ask; None for every analyst.
    """

    name: str
    opened: Callable[..., Session]
    budget: Budget
    unit: str
    columns: Mapping[str, str]
    keys: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    askers: frozenset[str] | None = None

    def state(self, farthings: int) -> dict[str, float]:
        """Return farthings of its ledger as plain values."""
        return state(self.budget.currency.of_farthings(farthings), self.budget.report_delta)

    def open_to(self, name: str) -> bool:
        """Whether an analyst of this name may ask."""
        return self.askers is None or name in self.askers


class Sessions:
    """The open sessions of a server: one for each person and data set, opened when it is first needed.

    Guarantee: whoever has a share of a ledger by their name draws on it, from the moment that it is given.
    Proof: `of` asks the ledger for its shares each time; a session with a share refuses what passes it.
    Assumes: nobody but the server opens the ledger under these names.
    Rounds: nothing.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, str, bool], Session] = {}
        self._lock = threading.Lock()

    def of(self, data_set: ServedTable, name: str) -> Session:
        """Return somebody's session over a data set."""
        with self._lock:
            whole = self._opened(data_set, name, shared=False)
            return self._opened(data_set, name, shared=True) if name in whole.allotments else whole

    def _opened(self, data_set: ServedTable, name: str, *, shared: bool) -> Session:
        """Return a session that draws on somebody's share, or on the whole."""
        place = (data_set.name, name, shared)
        if place not in self._open:
            self._open[place] = data_set.opened(analyst=name, allotment=name if shared else None)
        return self._open[place]

    def close(self) -> None:
        """Close all sessions."""
        with self._lock:
            for session in self._open.values():
                session.close()
            self._open.clear()
