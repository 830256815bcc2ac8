"""The door to the engine: what describes a table is free, what reads its rows takes a receipt that was paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from farthing.errors import LedgerError
from farthing.session.core.patience import patiently

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.engines import Engine
    from farthing.engines.engine import FoundGroups, Histogram, Shares, Spread
    from farthing.ledger.entry import Receipt
    from farthing.ledger.store import Ledger
    from farthing.query import Query
    from farthing.query.aggregates import Quantile
    from farthing.query.crossing import Crossing
    from farthing.query.expressions import Scalar
    from farthing.query.schema import Schema

_LOOKED: Final[set[tuple[str, int]]] = set()
"""The receipts, by ledger and number, for which the door was opened and whose asks are under way."""


class Door:
    """An engine that answers about rows for a receipt only: one that the ledger says is open and has charged.

    Names, types, fingerprints and the values of public tables are told to anybody: no private row is read for them.

    Args:
        engine: the protected table.
        ledger: the books, or those of a part, whose reservations open the door.

    Guarantee: no private row is read before a positive price is charged durably, and none after the receipt is closed.
    Proof: the six ways to the rows, below, begin with `_paid`, which asks the ledger's own record of the reservation.
    Assumes: a ledger that keeps the contract of `Ledger.reserve`; `check` and `fingerprint` of the engine read no row.
    Rounds: nothing.
    """

    __slots__ = ("_engine", "_ledger")

    def __init__(self, engine: Engine, ledger: Ledger) -> None:
        self._engine = engine
        self._ledger = ledger

    def of(self, ledger: Ledger) -> Door:
        """Return the door to the same table for the receipts of a part's books."""
        return Door(self._engine, ledger)

    @property
    def name(self) -> str:
        """The table's name in SQL."""
        return self._engine.name

    @property
    def schema(self) -> Schema:
        """The table's columns."""
        return self._engine.schema

    @property
    def tables(self) -> Mapping[str, Schema]:
        """The columns of the tables that questions may join, by name."""
        return self._engine.tables

    @property
    def public(self) -> frozenset[str]:
        """Which of these are public; the others carry the unit column."""
        return self._engine.public

    def check(self, *, after_failure: bool = False) -> None:
        """Find out cheaply that the table is still there, and after a failure as it was; DataError otherwise."""
        self._engine.check(after_failure=after_failure)

    def fingerprint(self, query: Query) -> str:
        """Return the identity of the hash that chooses groups and parts, "" when none has to be given up."""
        return self._engine.fingerprint(query)

    def listed(self, column: str, table: str | None) -> pa.Array:
        """Return the distinct values of a column of a public table; without a table, the categories of its type."""
        return self._engine.listed(column, table)

    def measure(self, query: Query, receipt: Receipt) -> NDArray[np.int64]:
        """Return the exact bounded measures, int64[measures, groups]; see `Engine.measure`."""
        self._paid(receipt)
        return self._engine.measure(query, self._ledger.hash_key)

    def histogram(self, query: Query, quantile: Quantile, receipt: Receipt) -> Histogram:
        """Return the bounded rows by group and leaf; see `Engine.histogram`."""
        self._paid(receipt)
        return self._engine.histogram(query, quantile, self._ledger.hash_key)

    def found(self, query: Query, shares: Shares, receipt: Receipt) -> FoundGroups:
        """Return the groups that exist and their units; see `Engine.found`."""
        self._paid(receipt)
        return self._engine.found(query, self._ledger.hash_key, shares)

    def spread(self, query: Query, value: Scalar | None, receipt: Receipt) -> Spread:
        """Return how much units would contribute without any bounds; see `Engine.spread`."""
        self._paid(receipt)
        return self._engine.spread(query, value, self._ledger.hash_key)

    def crossed(self, query: Query, crossing: Crossing, receipt: Receipt) -> list[NDArray[np.int64]]:
        """Return the bounded rows by every set of columns; see `Engine.crossed`."""
        self._paid(receipt)
        return self._engine.crossed(query, crossing, self._ledger.hash_key)

    def outside(self, receipt: Receipt) -> None:
        """Let somebody else's mechanism read the rows: no engine is asked, and what follows stays charged."""
        self._paid(receipt)

    def _paid(self, receipt: Receipt) -> None:
        """Refuse a receipt of another ledger, one that is closed, and one that cost nothing; note one that passes."""
        if not patiently(lambda: self._ledger.stands(receipt)):
            raise LedgerError(
                "rows were read without a price",
                rule="rows are read for a reservation that is open and has charged more than nothing",
                got=f"entry {receipt.id}, {receipt.reserved} farthings",
                next_step="reserve the price first",
            )
        _LOOKED.add((receipt.ledger, receipt.id))


def was_opened(receipt: Receipt) -> bool:
    """Tell whether a row may have been read for a receipt, since it was given or last forgotten."""
    return (receipt.ledger, receipt.id) in _LOOKED


def forget(receipt: Receipt) -> None:
    """Forget a receipt that is closed: the door stays closed for it."""
    _LOOKED.discard((receipt.ledger, receipt.id))
