"""The Session: one protected table, one budget, one ledger; every method is a question."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Self

from farthing.engines import open_table
from farthing.errors import InvalidBudget
from farthing.history import History, Status
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger
from farthing.log import Event, log
from farthing.privacy.budget import Budget
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds
from farthing.rounding import DELTA_COIN, coins_down
from farthing.session.batches.methods import Batches
from farthing.session.core.context import Context
from farthing.session.core.door import Door
from farthing.session.core.transaction import catch_up, give_up, resume
from farthing.session.guarantee import Guarantee, Of, guarantee
from farthing.session.partition import Partition, partition
from farthing.session.questions.mechanisms import OwnMechanisms
from farthing.session.reading.reader import QuestionReader
from farthing.tabular import Lines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction
    from pathlib import Path

    from farthing.accuracy.target import Target
    from farthing.privacy.loss import Booked, Loss

ROW = "row"
"""`unit="row"` is the same as no unit: each row is somebody."""


class Session(Batches, Lines, OwnMechanisms):
    """Ask a protected table for answers at the accuracy you name, and pay the least privacy loss for them.

    Args:
        table: a Parquet path or glob, a `farthing.Csv` (files, and how they are read), a pandas or Polars frame, an
            Arrow table, a DuckDB relation, any ibis table, or the address of one: "postgresql://user@host/city#trips".
        unit: the column whose values are the privacy unit (a person, a plane), or None when each row is one.
        budget: the total loss that may ever be spent, over all sessions on this ledger.
        bounds: the default contribution bounds of one unit; every question may pass its own.
        ledger: a file, or a "postgresql+psycopg://user@host:5432/db", that keeps the books and the released
            measurements; None keeps them in memory only, and they are forgotten with the session.
        name: the table's name in SQL; by default the file's stem, else "data".
        version: the owner's name for this state of the data. Charges of parts, and of groups of which a unit is in a
            few only, count in parallel within one version and add up over versions, since a unit may have moved. Data
            from files that are not those that were charged under this version are refused; rows are never compared.
        same_data: the owner's word, given once, that the files of this version were copied or touched and not one row
            differs.
        allotment: the share of the budget that this session draws on, as its owner allotted it; None for the whole.
        analyst: who asks, for the history; by default the operating system's user.
        public: tables that questions may join and take keys from, by name; nothing in them is private.
        protected: further protected tables that questions may join, by name; each carries the unit column.
        keys: the public keys of grouping columns, by their names, for questions that list none for them.
        target: the accuracy of questions that name neither an accuracy nor a loss.

    Raises:
        InvalidOption: a table is of CSV files, and nothing says how they are read.
        DataError: the table cannot be read, or its files are not those that were charged under this version.
        LedgerMismatch: the ledger was made with another unit or budget.
        UnsupportedQuery: the table has no column of the unit's name.

    >>> import pyarrow as pa
    >>> import farthing
    >>> rides = pa.table({"zone": ["a"] * 900 + ["b"] * 40})
    >>> session = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> answer = session.count(by="zone", keys={"zone": ["a", "b"]}, relative=0.1, absolute=50)
    >>> answer.to_arrow().column_names
    ['zone', 'count', 'count_lower', 'count_upper', 'met', 'paid']
    >>> session.spent == answer.paid
    True
    """

    def __init__(
        self,
        table: Any,
        *,
        unit: str | None = None,
        budget: Budget,
        bounds: Bounds | None = None,
        ledger: str | Path | None = None,
        name: str | None = None,
        version: str = "1",
        same_data: bool = False,
        allotment: str | None = None,
        analyst: str | None = None,
        public: Mapping[str, Any] | None = None,
        protected: Mapping[str, Any] | None = None,
        keys: Mapping[str, Any] | None = None,
        target: Target | None = None,
    ) -> None:
        _require_budget(budget)
        self._engine = open_table(table, name=name, public=public, protected=protected)
        try:
            self._unit = PrivacyUnit(None if unit in {None, ROW} else unit)
            if self._unit.column is not None:
                self._engine.schema.require(self._unit.column)
                for beside in protected or {}:
                    self._engine.tables[beside].require(self._unit.column)
            self._ledger = Ledger.open(ledger, _terms(budget, self._unit), allotment=allotment, who=analyst)
        except BaseException:
            self._engine.close()
            raise
        data_set, label = self._data_set(version), f"table {self._engine.name!r}, version {str(version)!r}"
        try:
            books = self._ledger.over(data_set, label, self._engine.identity, same=same_data)
        except BaseException:
            self.close()
            raise
        self._context = Context(Door(self._engine, books), books, budget, data_set)
        give_up(self._context)
        self._reader = QuestionReader(
            self._context.engine, self._unit, bounds or Bounds(), keys=dict(keys or {}), target=target
        )
        log(Event.OPENED)

    def partition(self, by: str, keys: Any) -> Partition:
        """Return disjoint parts of the data, to be asked one by one and charged in parallel.

        A unit counts in one part only, so the whole ledger is charged what the part that spends most has spent. With a
        unit column a unit may have rows in several parts: it is kept in one of them, chosen by a hash with the ledger's
        secret key among the listed parts in which it has rows, the same for every question; answers say so. Rows where
        the column is NULL, or has a value that is not listed, are in no part.

        Args:
            by: the column whose values tell the parts apart.
            keys: the values, each of them a part.

        Returns:
            A mapping from each value to its `Part`, which has count, sql, plan, refine, spent and remaining.

        Raises:
            InvalidKeys, UnsupportedQuery: nothing is charged.

        >>> import pyarrow as pa
        >>> import farthing
        >>> rides = pa.table({"zone": ["a"] * 900 + ["b"] * 400})
        >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> zones = s.partition(by="zone", keys=["a", "b"])
        >>> prices = [zones[zone].count(absolute=50).paid for zone in zones]
        >>> s.spent == max(prices)
        True
        """
        return partition(self._context, by, keys, self._reader)

    def guarantee(
        self, group: int = 1, *, size: int | None = None, of: Of | None = None, delta: float | None = None
    ) -> Guarantee:
        """Return what the books promise to a group of privacy units together.

        A promise about rows says what a user with `group` rows is promised, one about days what a month is. That is
        more expensive than it looks: the loss of a group of k is k times epsilon or mu, and k^2 times rho.

        Args:
            group: how many units are to be hidden together, >= 1.
            size: what is promised where every group that these units are counted in has at least that size: releases
                with `mechanism=` cost them less than the ledger charges. It is about what was charged so far.
            of: "budget" for everything that may ever be released, "spent" for what was charged so far.
            delta: the delta at which epsilon is stated; by default the budget's own.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(mu=0.25))
        >>> s.guarantee(group=2).loss
        Gdp(mu=0.5)
        """
        return guarantee(self._context, self._unit, group=group, size=size, of=of, delta=delta)

    @property
    def schema(self) -> dict[str, str]:
        """The table's columns and their types, which are public."""
        return {name: kind.name.lower() for name, kind in self._engine.schema.columns}

    @property
    def tables(self) -> dict[str, dict[str, str]]:
        """The tables that questions may join, by name, with their columns and types, which are public."""
        return {
            table: {name: kind.name.lower() for name, kind in schema.columns}
            for table, schema in self._engine.tables.items()
        }

    @property
    def spent(self) -> Booked:
        """What the ledger has charged, by everybody, answered or not."""
        return self._context.loss(self._ledger.spent)

    @property
    def remaining(self) -> Booked:
        """What the ledger may still charge."""
        return self._context.loss(self._ledger.remaining)

    def history(self, limit: int | None = None) -> History:
        """Return the ledger's entries, newest first: a list of `Entry` that is shown as a table."""
        return History(self._ledger.history(limit), self._context.loss)

    def allot(self, name: str, share: Fraction | Loss) -> None:
        """Give an analyst or a project a share of the budget; all shares draw on the one total.

        Args:
            name: who may draw on it, with `Session(..., allotment=name)`.
            share: a fraction of the total, or a loss in the ledger's currency.

        Raises:
            LedgerError: more than the ledger has left, or less than the share has spent.

        >>> from fractions import Fraction
        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.allot("alice", Fraction(1, 5))
        >>> list(s.status()["allotments"])
        ['alice']
        """
        self._ledger.allot(name, share)

    @property
    def allotments(self) -> tuple[str, ...]:
        """The names of those who have a share of the budget.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.allotments
        ()
        """
        return tuple(self._ledger.allotments)

    def resume(self) -> None:
        """Go on after asks that failed; the owner's act, which is booked and costs nothing.

        A failure stays charged, since it is an output. So that a damaged table does not use up the budget, nothing is
        charged after two failures in a row, in any process, until an ask of the same data is answered; this lets the
        next ones through.

        Raises:
            DataError: the table is gone, or its columns are not those it was opened with.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.resume()
        >>> s.spent
        Gdp(mu=0)
        """
        self._engine.check(after_failure=True)
        resume(self._context)

    def freeze(self, analyst: str | None = None) -> None:
        """Charge nothing more until `thaw`, to an analyst or to anybody; the owner's act, which is booked and is free.

        What was released before stays free to ask again: showing a released answer once more adds no loss. Asks that
        have reserved their price already are finished.

        Args:
            analyst: who, as in `Session(..., analyst=name)` or `allotment=name`; None for everybody.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.freeze()
        >>> s.count(absolute=50)
        Traceback (most recent call last):
        farthing.errors.Frozen: the owner has frozen this data set; rule: ...
        >>> s.thaw()
        >>> s.count(absolute=50).met
        True
        """
        self._ledger.freeze(analyst)

    def thaw(self, analyst: str | None = None) -> None:
        """End a `freeze` of the same name.

        Args:
            analyst: as in `freeze`; whoever was frozen apart stays so when everybody is thawed.
        """
        self._ledger.freeze(analyst, frozen=False)

    @property
    def frozen(self) -> tuple[str, ...]:
        """The names of those whom the owner has frozen; "" stands for everybody.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.freeze("alice")
        >>> s.frozen
        ('alice',)
        """
        return self._ledger.frozen

    def verify(self) -> str:
        """Recompute the books from their entries and check their hash chain; LedgerError where they disagree.

        Returns:
            The head of the chain: noted elsewhere, `farthing verify --head` tells later that nothing was rewritten.
        """
        return self._ledger.verify().head

    def status(self) -> Status:
        """Return the state of the books as a mapping: spent, remaining, what is open, allotments, who is frozen."""
        give_up(self._context)
        shares = {
            name: {part: self._context.loss(getattr(held, part)) for part in ("share", "spent", "left")}
            for name, held in self._ledger.allotments.items()
        }
        frozen = list(self.frozen)
        return Status(self._context.status(), allotment=self._ledger.allotment, allotments=shares, frozen=frozen)

    def close(self) -> None:
        """Close the ledger, and the embedded engine with its threads. What was reserved stays charged."""
        catch_up(self._ledger)
        self._ledger.close()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<farthing.Session on {self._engine.name!r}, unit {self._unit.label}, {self._context.budget.describe()}; "
            f"left {self.remaining!r}; {self._context.where_kept}>"
        )

    def _data_set(self, version: str) -> str:
        """Return the identity of the data set as its owner declares it."""
        facts = [self._engine.name, self._engine.schema.fingerprint, self._unit.label, str(version)]
        facts += [f"{name} {self._engine.tables[name].fingerprint}" for name in sorted(self._engine.tables)]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _require_budget(budget: object) -> None:
    """Refuse everything but a budget."""
    if not isinstance(budget, Budget):
        raise InvalidBudget(
            "no budget was given" if budget is None else "the budget is of another type",
            rule="budget is a farthing.Budget",
            got=type(budget).__name__,
            next_step="budget=farthing.Budget(epsilon=1, delta=1e-6)",
        )


def _terms(budget: Budget, unit: PrivacyUnit) -> Terms:
    """Return what a ledger fixes when it is made."""
    return Terms(
        currency=budget.currency.currency,
        budget=budget.total.farthings,
        delta=coins_down(budget.answers_delta, DELTA_COIN) + budget.keys_coins,
        keys_delta=budget.keys_coins,
        unit=unit.label,
        description=budget.describe(),
    )
