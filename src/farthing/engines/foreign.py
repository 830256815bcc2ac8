"""Any ibis table, on its own backend: the whole question is one ibis expression, run where the rows are.

The backend's own rules for NaN and for the order of texts apply. What a backend cannot express (many have no hash that
could choose groups) is refused by name in `fingerprint`, before anything is charged.
"""

from __future__ import annotations

import hashlib
import threading
from datetime import date, datetime
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import TYPE_CHECKING, Any, assert_never

from farthing.engines.engine import PARTS_SALT, engine_failed
from farthing.errors import UnsupportedQuery
from farthing.query.expressions import (
    And,
    Between,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Operand,
    Operator,
    Or,
    operand_type,
)
from farthing.query.schema import REAL_TYPES, Schema, Type

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from farthing.query.query import Query

_COMPARE = {
    Operator.EQ: eq,
    Operator.NE: ne,
    Operator.LT: lt,
    Operator.LE: le,
    Operator.GT: gt,
    Operator.GE: ge,
}


_GIVEN_UP = "groups beyond max_groups, and parts of a unit but one, are given up by a hash, in the engine"

# Stand for NULL beside a flag that says so: joins compare NULLs in ways that differ between backends.
_STAND_INS = {
    Type.STRING: "",
    Type.BOOLEAN: False,
    Type.DATE: date(1970, 1, 1),
    Type.TIMESTAMP: datetime(1970, 1, 1),  # noqa: DTZ001  # times here have no zone
}


class IbisEngine:
    """Exact bounded counts of an ibis table, by its own backend. Calls from several threads take turns."""

    def __init__(self, table: Any, name: str) -> None:
        self._table = table
        self._name = name
        self._backend = table.get_backend()
        self._schema = Schema.of({column: _canonical_type(kind) for column, kind in table.schema().items()})
        self._turn = threading.Lock()

    @property
    def name(self) -> str:
        """The table's name in SQL."""
        return self._name

    @property
    def schema(self) -> Schema:
        """The table's columns."""
        return self._schema

    def check(self) -> None:
        """Do nothing: asking a remote backend is no cheap check."""

    def fingerprint(self, query: Query) -> str:
        """Return the identity of the hash that chooses groups and parts; refuse what the backend cannot express."""
        import ibis
        from ibis.common.exceptions import IbisError

        try:
            self._backend.compile(self._counting(query, 0))
            if not query.cuts_groups and not query.cuts_parts:
                return ""
            value = ibis.literal("probe").hash()
            with self._turn:
                shown = str(self._backend.execute(_mixed(value, value, 5)))
        except (IbisError, NotImplementedError) as problem:
            raise UnsupportedQuery(
                f"the {self._backend.name} backend cannot run this question",
                construct=type(problem).__name__,
                rule=_GIVEN_UP if query.cuts_groups or query.cuts_parts else "",
                next_step="use max_groups of at least the number of groups, or export the table to Parquet",
            ) from None
        return f"ibis {self._backend.name} {hashlib.sha256(shown.encode()).hexdigest()[:16]}"

    def measure(self, query: Query, hash_key: int) -> NDArray[np.int64]:
        """Return the exact bounded measures, int64[measures, groups]; see `Engine.measure`."""
        import numpy as np

        answer = np.zeros((1, query.groups), np.int64)
        try:
            with self._turn:
                found = self._counting(query, hash_key).to_pyarrow()
            places, values = (found.column(name).to_numpy() for name in ("i", "n"))
        except Exception:  # noqa: BLE001  # every backend has errors of its own, and any of them may quote rows
            raise engine_failed() from None
        np.add.at(answer[0], places, np.nan_to_num(values).astype(np.int64))
        return answer

    def _counting(self, query: Query, hash_key: int) -> Any:
        """Return the ibis expression of a question: a table (i, n)."""
        import ibis

        rows = self._table
        if query.unit.column is not None:
            rows = rows.filter(rows[query.unit.column].notnull())
        if query.cuts_parts:
            cells = self._cells_of_part(query, rows, hash_key)
            kept = self._chosen(query, cells, hash_key)
            return kept.group_by("i").agg(n=kept.c.sum())
        if query.rows is not None:
            rows = rows.filter(self._predicate(query.rows))
        if query.unit.is_row:
            return self._row_counts(query, rows)
        cells = rows.select(u=rows[query.unit.column], **self._group_columns(query))
        if query.keys is None:
            cells = cells.group_by("u").agg(c=ibis.least(cells.count(), query.max_rows)).mutate(i=0)
        else:
            cells = self._placed(query, cells)
            cells = cells.group_by("u", "i").agg(c=ibis.least(cells.count(), query.max_rows))
        cells = self._chosen(query, cells, hash_key)
        return cells.group_by("i").agg(n=cells.c.sum())

    def _chosen(self, query: Query, cells: Any, hash_key: int) -> Any:
        """Return the cells that are kept where a unit is in more groups than it may count in."""
        import ibis

        if not query.cuts_groups:
            return cells
        ranked = cells.mutate(h=_mixed(cells.u.hash(), cells.i.hash(), hash_key))
        window = ibis.window(group_by=ranked.u, order_by=[ranked.h, ranked.i])
        ranked = ranked.mutate(r=ibis.row_number().over(window))
        return ranked.filter(ranked.r < query.max_groups)

    def _cells_of_part(self, query: Query, rows: Any, hash_key: int) -> Any:
        """Return the cells (u, i, c) of the units that are kept in the part; chosen before WHERE, of all its rows."""
        import ibis

        part = query.part
        assert part is not None  # noqa: S101  # callers ask for a part
        tests = [(self._predicate(part.condition(place)), place) for place in range(len(part.choices))]
        counted = ibis.literal(value=True) if query.rows is None else self._predicate(query.rows)
        rows = rows.select(
            u=rows[query.unit.column],
            p=ibis.cases(*tests, else_=None).cast("int32"),
            w=ibis.ifelse(counted, 1, 0),
            **self._group_columns(query),
        )
        rows = rows.filter(rows.p.notnull())
        placed = rows.mutate(i=0) if query.keys is None else self._placed(query, rows, how="left")
        every = placed.group_by("u", "p", "i").agg(c=ibis.least(placed.w.sum(), query.max_rows))
        ranked = every.mutate(h=_mixed(every.u.hash(), every.p.hash(), hash_key ^ PARTS_SALT))
        window = ibis.window(group_by=ranked.u, order_by=[ranked.h, ranked.p])
        marked = ranked.mutate(home=ranked.p.first().over(window))
        kept = marked.filter(marked.p == marked.home, marked.p == part.place, marked.i.notnull(), marked.c > 0)
        return kept.select("u", "i", "c")

    def _row_counts(self, query: Query, rows: Any) -> Any:
        """Return the expression for one row as unit: group first, then find each group's place."""
        if query.keys is None:
            return rows.agg(n=rows.count()).mutate(i=0)
        groups = rows.select(**self._group_columns(query))
        groups = groups.group_by(groups.columns).agg(n=groups.count())
        return self._placed(query, groups).select("i", "n")

    def _group_columns(self, query: Query) -> dict[str, Any]:
        """Return the grouping columns as k0, k1, ...; where NULL is listed, m0, m1, ... tell NULLs."""
        columns: dict[str, Any] = {}
        for place, column in enumerate(query.by):
            value = self._read(column)
            if query.keys is not None and query.keys.column(column).null_count:
                columns[f"m{place}"] = value.isnull()
                value = value.fill_null(_STAND_INS.get(self._schema.require(column), 0))
            columns[f"k{place}"] = value
        return columns

    def _placed(self, query: Query, rows: Any, how: str = "inner") -> Any:
        """Return rows with the place i of their group; rows of unlisted groups are dropped, or have none (left)."""
        import ibis
        import numpy as np
        import pyarrow as pa

        listed: dict[str, Any] = {"i": pa.array(np.arange(query.groups, dtype=np.int64))}
        for place, column in enumerate(query.by):
            values = query.keys.column(column) if query.keys is not None else pa.array([])
            if values.null_count:
                listed[f"m{place}"] = values.is_null()
                values = values.fill_null(_STAND_INS.get(self._schema.require(column), 0))
            listed[f"k{place}"] = values.cast(pa.string()) if pa.types.is_large_string(values.type) else values
        keys = ibis.memtable(pa.table(listed))
        same = [rows[name] == keys[name] for name in listed if name != "i"]
        joined = rows.join(keys, same, how=how)
        return joined.select(*[rows[name] for name in rows.columns if name not in listed], joined.i)

    def _read(self, name: str) -> Any:
        """Return a column in the type in which it is compared and grouped."""
        column = self._table[name]
        if self._schema.require(name) in REAL_TYPES:
            return column.cast("float64") + 0.0  # one zero: joins on the bare column may tell -0.0 from 0.0
        return column

    def _predicate(self, expression: Expression) -> Any:  # noqa: PLR0911  # one return a case
        """Return a predicate as an ibis expression."""
        match expression:
            case Compare(left, operator, right):
                return _COMPARE[operator](*self._sides(left, right))
            case And(operands):
                return reduce(and_, map(self._predicate, operands))
            case Or(operands):
                return reduce(or_, map(self._predicate, operands))
            case Not(operand):
                return ~self._predicate(operand)
            case IsNull(column):
                return self._table[column.name].isnull()
            case In(column, choices):
                return reduce(or_, (eq(*self._sides(column, choice)) for choice in choices))
            case Between():
                return reduce(and_, map(self._predicate, expression.comparisons))
            case _:
                assert_never(expression)

    def _sides(self, left: Operand, right: Operand) -> tuple[Any, Any]:
        """Return both sides of a comparison, as doubles unless both are integers (or no numbers at all)."""
        import ibis

        kinds = operand_type(left, self._schema), operand_type(right, self._schema)
        real = bool(REAL_TYPES & set(kinds))
        sides = []
        for side, kind in zip((left, right), kinds, strict=True):
            value = ibis.literal(_sendable(side)) if isinstance(side, Literal) else self._read(side.name)
            sides.append(value.cast("float64") if real and kind is Type.INTEGER else value)
        return sides[0], sides[1]


def _sendable(literal: Literal) -> Any:
    """Return a constant's value; refuse a text that cannot travel in a backend's SQL."""
    if isinstance(literal.value, str) and "\0" in literal.value:
        raise UnsupportedQuery(
            "a text with a NUL letter",
            construct="NUL",
            next_step="export the table to Parquet",
            rule="this engine cannot carry NUL in a text",
        )
    return literal.value


def _mixed(first: Any, second: Any, hash_key: int) -> Any:
    """Return the hash that ranks the groups of a unit, from the hashes of unit and place."""
    signed = hash_key - 2**64 if hash_key >= 2**63 else hash_key
    return (first ^ (second ^ signed).hash()).hash()


def _canonical_type(kind: Any) -> Type:
    """Return our type of an ibis type."""
    tests = (
        (kind.is_integer(), Type.INTEGER),
        (kind.is_floating(), Type.FLOAT),
        (kind.is_decimal(), Type.DECIMAL),
        (kind.is_string(), Type.STRING),
        (kind.is_boolean(), Type.BOOLEAN),
        (kind.is_date(), Type.DATE),
        (kind.is_timestamp() and kind.timezone is None, Type.TIMESTAMP),
    )
    return next((ours for found, ours in tests if found), Type.OTHER)
