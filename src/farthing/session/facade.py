"""The Session: one protected table, one budget, one ledger; every method is a question."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from farthing.engines import open_table
from farthing.errors import InvalidBounds, InvalidBudget, UnsupportedQuery
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger
from farthing.privacy.budget import Budget
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, counting
from farthing.rounding import DELTA_COIN, coins_down
from farthing.session.ask import Context, ask, plan_for
from farthing.session.checks import check_expression, check_names, columns_of
from farthing.session.guarantee import Guarantee, Of, guarantee
from farthing.session.partition import Partition, partition
from farthing.session.request import Request
from farthing.sql import parse, parse_predicate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction
    from pathlib import Path

    from farthing.ledger.entry import Entry
    from farthing.planning import Plan
    from farthing.privacy.loss import Booked, Loss
    from farthing.query.expressions import Expression
    from farthing.release import Answer
    from farthing.session.refine import Progress

ROW = "row"
"""`unit="row"` is the same as no unit: each row is somebody."""


class How(TypedDict, total=False):
    """How accurate, how sure, and at what price at most: the options of every question.

    Keys:
        relative: wanted half-width as a fraction of the truth, 0 <= relative < 1.
        absolute: wanted half-width in answer units, > 0; the target is the larger of the two.
        confidence: the chance that the promise holds, in [0.5, 1); default 0.95.
        simultaneous: whether it holds for all groups at once instead of for each; default False.
        loss: a loss to pay instead of a target (Gdp, Zcdp or Pure, in the ledger's currency).
        max_epsilon: the most epsilon that this question may cost.
        cap: the most this question may cost: a loss, or "all" of what is left; default a tenth of the budget.
        on_miss: what to do with groups that miss their target: "return" (default), "drop" or "raise".
        progress: called after every look with a `Progress`.
    """

    relative: float
    absolute: float
    confidence: float
    simultaneous: bool
    loss: Booked | None
    max_epsilon: float | None
    cap: Loss | str | None
    on_miss: str
    progress: Callable[[Progress], None] | None


class Session:
    """Ask a protected table for answers at the accuracy you name, and pay the least privacy loss for them.

    Args:
        table: a Parquet or CSV path or glob, a pandas or Polars frame, an Arrow table, a DuckDB relation, or any ibis
            table.
        unit: the column whose values are the privacy unit (a person, a plane), or None when each row is one.
        budget: the total loss that may ever be spent, over all sessions on this ledger.
        bounds: the default contribution bounds of one unit; every question may pass its own.
        ledger: a file, or a "postgresql+psycopg://user@host:5432/db", that keeps the books and the released
            measurements; None keeps them in memory only, and they are forgotten with the session.
        name: the table's name in SQL; by default the file's stem, else "data".
        version: the owner's name for this state of the data. A change of the data is a change of the version; content
            is never looked at to find out.
        allotment: the share of the budget that this session draws on, as its owner allotted it; None for the whole.
        analyst: who asks, for the history; by default the operating system's user.

    Raises:
        DataError: the table cannot be read.
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
        allotment: str | None = None,
        analyst: str | None = None,
    ) -> None:
        if not isinstance(budget, Budget):
            raise InvalidBudget(
                "no budget was given",
                rule="budget is a farthing.Budget",
                got=type(budget).__name__,
                next_step="budget=farthing.Budget(epsilon=1, delta=1e-6)",
            )
        self._engine = open_table(table, name=name)
        self._unit = PrivacyUnit(None if unit in {None, ROW} else unit)
        if self._unit.column is not None:
            self._engine.schema.require(self._unit.column)
        self._bounds = bounds or Bounds()
        self._ledger = Ledger.open(ledger, _terms(budget, self._unit), allotment=allotment, who=analyst)
        self._context = Context(self._engine, self._ledger, budget, self._data_set(version))

    def count(
        self,
        by: str | Sequence[str] | None = None,
        *,
        keys: Any = None,
        where: str | Expression | None = None,
        name: str = "count",
        bounds: Bounds | None = None,
        **how: Unpack[How],
    ) -> Answer:
        """Count rows, by public groups if `by` is given.

        Args:
            by: a grouping column, or several.
            keys: the public groups: {"dest": [...]} with one list a column (their cross product), or a table of
                combinations. Listed groups without rows answer like any other; groups not listed are not answered.
            where: a predicate as text, such as "dep_delay > 15".
            name: the name of the answer column.
            bounds: contribution bounds of this question, instead of the session's.
            **how: the target and the price, see `How`.

        Raises:
            InvalidTarget, InvalidKeys, InvalidBounds, UnsupportedQuery: nothing is charged.
            BudgetExceeded: the worst price does not fit; nothing is charged.
            TargetMissed: with on_miss="raise"; paid for, and the answer is attached.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.count(where="x < 100", absolute=40).met
        True
        """
        return ask(self._context, self._query(by, keys, where, name, bounds), Request.of(**how))

    def sql(self, text: str, *, keys: Any = None, bounds: Bounds | None = None, **how: Unpack[How]) -> Answer:
        """Answer one SELECT with COUNT(*), optional WHERE and GROUP BY.

        Args:
            text: the SQL, such as "SELECT dest, COUNT(*) AS flights FROM flights GROUP BY dest".
            keys: the public groups, as in `count`.
            bounds: contribution bounds of this question, instead of the session's.
            **how: the target and the price, see `How`.

        Raises:
            UnsupportedQuery: outside the language; says what, where, and what to write instead.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.sql("SELECT COUNT(*) AS n FROM data", absolute=40).name
        'n'
        """
        return ask(self._context, self._parsed(text, keys, bounds), Request.of(**how))

    def plan(
        self,
        text: str | None = None,
        *,
        by: str | Sequence[str] | None = None,
        keys: Any = None,
        where: str | Expression | None = None,
        name: str = "count",
        bounds: Bounds | None = None,
        **how: Unpack[How],
    ) -> Plan:
        """Price a question, as SQL text or as in `count`, before anything is paid. Touches no data and is free.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.plan("SELECT COUNT(*) FROM data", absolute=100).worst_price
        Gdp(mu=0.0195996)
        """
        query = self._asked(text, by=by, keys=keys, where=where, name=name, bounds=bounds)
        return plan_for(self._context, query, Request.of(**how))

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
        return partition(self._context, by, keys, self._asked)

    def guarantee(self, group: int = 1, *, of: Of = "budget", delta: float | None = None) -> Guarantee:
        """Return what the books promise to a group of privacy units together.

        A promise about rows says what a user with `group` rows is promised, one about days what a month is. That is
        dearer than it looks: the loss of a group of k is k times epsilon or mu, and k^2 times rho.

        Args:
            group: how many units are to be hidden together, >= 1.
            of: "budget" for everything that may ever be released, "spent" for what was charged so far.
            delta: the delta at which epsilon is stated; by default the budget's own.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(mu=0.25))
        >>> s.guarantee(group=2).loss
        Gdp(mu=0.5)
        """
        return guarantee(self._context.budget, self._unit, self.spent, group=group, of=of, delta=delta)

    @property
    def schema(self) -> dict[str, str]:
        """The table's columns and their types, which are public."""
        return {name: kind.name.lower() for name, kind in self._engine.schema.columns}

    @property
    def spent(self) -> Booked:
        """What the ledger has charged, by everybody, answered or not."""
        return self._context.loss(self._ledger.spent)

    @property
    def remaining(self) -> Booked:
        """What the ledger may still charge."""
        return self._context.loss(self._ledger.remaining)

    def history(self, limit: int | None = None) -> list[Entry]:
        """Return the ledger's entries, newest first."""
        return self._ledger.history(limit)

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

    def verify(self) -> None:
        """Recompute the books from their entries and check their hash chain; LedgerError where they disagree."""
        self._ledger.verify()

    def status(self) -> dict[str, Any]:
        """Return the state of the books as plain values: spent, remaining, open reservations, allotments."""
        return self._context.status() | {
            "allotment": self._ledger.allotment,
            "allotments": {
                name: {part: self._context.loss(getattr(held, part)) for part in ("share", "spent", "left")}
                for name, held in self._ledger.allotments.items()
            },
        }

    def close(self) -> None:
        """Close the ledger. What was reserved and not settled stays charged."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<farthing.Session on {self._engine.name!r}, unit {self._unit.label}, {self._context.budget.describe()}; "
            f"left {self.remaining!r}; {self._context.where_kept}>"
        )

    def _asked(
        self,
        text: str | None = None,
        *,
        by: str | Sequence[str] | None = None,
        keys: Any = None,
        where: str | Expression | None = None,
        name: str = "count",
        bounds: Bounds | None = None,
    ) -> Query:
        """Return the checked query of a text, or of a method call without one."""
        return self._query(by, keys, where, name, bounds) if text is None else self._parsed(text, keys, bounds)

    def _parsed(self, text: str, keys: Any, bounds: Bounds | None) -> Query:
        """Return the query of a SQL text."""
        if not isinstance(text, str):
            raise UnsupportedQuery(
                "the question is no text",
                construct="SQL",
                rule="SQL is a text",
                got=type(text).__name__,
                next_step='"SELECT COUNT(*) FROM data"',
            )
        parsed = parse(text, table=self._engine.name, schema=self._engine.schema)
        return self._query(parsed.by, keys, parsed.where, parsed.name, bounds)

    def _query(
        self,
        by: str | Sequence[str] | None,
        keys: Any,
        where: str | Expression | None,
        name: str,
        bounds: Bounds | None,
    ) -> Query:
        """Return the checked query of a method call."""
        schema = self._engine.schema
        columns = columns_of(by)
        for column in columns:
            schema.require(column)
        if isinstance(where, str):
            where = parse_predicate(where, schema)
        elif where is not None:
            check_expression(where, schema)
        check_names(name, columns)
        if bounds is not None and not isinstance(bounds, Bounds):
            raise InvalidBounds(
                "bounds are no Bounds",
                rule="bounds=farthing.Bounds(max_groups=, max_rows=)",
                got=type(bounds).__name__,
                next_step="pass a farthing.Bounds",
            )
        return Query(
            table=self._engine.name,
            by=columns,
            keys=Keys.of(columns, keys, schema),
            where=where,
            outputs=counting(name),
            unit=self._unit,
            bounds=bounds or self._bounds,
        )

    def _data_set(self, version: str) -> str:
        """Return the identity of the data set as its owner declares it."""
        facts = [self._engine.name, self._engine.schema.fingerprint, self._unit.label, str(version)]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


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
