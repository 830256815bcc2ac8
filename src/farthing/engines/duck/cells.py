"""Cells of one unit and one group, as DuckDB SQL."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from farthing.engines.bounded import KeepHome, KeepWhere
from farthing.engines.duck.functions import Text
from farthing.engines.duck.rows import home_of
from farthing.engines.duck.terms import KEYS, double
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from farthing.engines.bounded import BoundedQuery
    from farthing.engines.duck.rows import DuckRows
    from farthing.query.aggregates import Quantile
    from farthing.query.expressions import Scalar
    from farthing.query.measures import Total

INFINITY: Final = "'infinity'::DOUBLE"


class DuckCells:
    """One row per cell: the unit, the group, and what is asked of the rows that count there.

    Where homes are chosen and nothing is joined, one pass does both: all rows of the listed parts go into cells of
    (unit, part, group), in which those count where the condition holds, and homes are chosen by a window over a unit's
    own cells. That gives what the steps give one after another, and sorts cells where the steps sort rows.
    """

    def __init__(self, query: BoundedQuery, rows: DuckRows) -> None:
        self._query = query
        self._rows = rows
        self._columns: dict[str, str] = {}
        self._unit = f"t.{rows.number()} AS u" if query.unit.is_row else "t.u"
        self._counts: Text | None = None
        self._home: KeepHome | None = None
        match query.steps:
            case (KeepHome() as home, KeepWhere(condition)):
                self._home = home
                self._counts = None if condition is None else rows.scalars.bind(rows.scalars.predicate(condition))
        self.found = self.column(
            f"count({self.value(Text('TRUE', Type.BOOLEAN, plain=True))})" if self._counts else "count(*)"
        )

    def value(self, text: Text) -> str:
        """Show a value of the rows that count; return its name."""
        if self._counts is None:
            return self._rows.show(text, "v")
        kept = f"CASE WHEN {self._counts.sql} THEN {text.sql} END"
        return self._rows.show(Text(kept, text.type, max(text.level, self._counts.level)), "v")

    def column(self, aggregate: str) -> str:
        """Return the name of what an aggregate makes of each cell."""
        return self._columns.setdefault(aggregate, f"a{len(self._columns)}")

    def sql(self, groups: Sequence[str], hash_key: int, *, listed: bool, part: bool = False) -> str:
        """Return the SELECT of (u, i, other groups, aggregates).

        Args:
            groups: shown columns that tell cells of one unit apart, the key columns first.
            hash_key: chooses the part in which a unit is kept.
            listed: whether the key columns are looked up in the list of keys; i is the place there, 0 without keys.
            part: whether that list is a part of the keys.
        """
        shown, joins, there = [f"t.{name}" for name in groups], "", "TRUE"
        keys = len(self._query.by) if listed else 0
        if keys:
            place, there = None if part else self._counted(groups[:keys]), "i IS NOT NULL"
            if place is None:
                place, kind = "k.i", "JOIN" if self._home is None else "LEFT JOIN"
                joins = f" {kind} {KEYS} AS k ON {same_key(self._query, shown[:keys])}"
            shown = [f"{place} AS i", *shown[keys:]]
        elif listed:
            shown = ["0::INTEGER AS i", *shown]
        aggregates = [f"{sql} AS {name}" for sql, name in self._columns.items()]
        if self._home is None:
            select = f"SELECT {', '.join([self._unit, *shown, *aggregates])} FROM ({self._rows.sql()}) AS t{joins}"
            return f"{select} WHERE {there} GROUP BY ALL"
        name = self._rows.show(self._rows.place_of(self._home), "p")
        told = ", ".join([self._unit, f"t.{name} AS p", *shown, *aggregates])
        every = f"SELECT {told} FROM ({self._rows.unfiltered()}) AS t{joins} WHERE t.{name} IS NOT NULL GROUP BY ALL"
        marked = f"SELECT *, {home_of(self._home, hash_key)} AS home FROM ({every})"
        kept = f"p = home AND p = {self._home.place} AND {self.found} > 0 AND {there}"
        return f"SELECT * EXCLUDE (p, home) FROM ({marked}) WHERE {kept}"

    def _counted(self, names: Sequence[str]) -> str | None:
        """Return the place of a row's keys in a list that counts up; None for other lists.

        To look each row up in a list takes longer than all else that a count does.

        Guarantee: the place, NULL for keys that are not in the list.
        Proof: `Keys.ranges`: the list is the product of these ranges, the first varying slowest.
        Assumes: CASE runs its branch only on rows that reach it, where each difference is a place in its range.
        Rounds: nothing.
        """
        ranges = None if self._query.keys is None else self._query.keys.ranges
        if ranges is None or not all(self._rows.counts(name) for name in names):
            return None
        inside, place = [], "0"
        for name, values in zip(names, ranges, strict=True):
            key = f"t.{name}::BIGINT"
            inside.append(f"{key} BETWEEN ({values[0]})::BIGINT AND ({values[-1]})::BIGINT")
            place = f"({place}) * {len(values)} + ({key} - ({values[0]})::BIGINT)"
        return f"CASE WHEN {' AND '.join(inside)} THEN ({place})::INTEGER END"


def same_key(query: BoundedQuery, values: Sequence[str]) -> str:
    """Return the join condition with the list of keys; NULL matches a listed NULL only."""
    assert query.keys is not None  # noqa: S101  # callers handle the question without groups
    parts = []
    for place, (column, value) in enumerate(zip(query.by, values, strict=True)):
        equal = "IS NOT DISTINCT FROM" if query.keys.column(column).null_count else "="
        parts.append(f"{value} {equal} k.key{place}")
    return " AND ".join(parts)


def present(rows: DuckRows, value: Scalar) -> Text:
    """Return a text that is NULL exactly where a value is not there: NULL or NaN."""
    text = rows.measured(value)
    if not text.real:
        return text
    x = rows.scalars.bind(text)
    return Text(f"CASE WHEN {x.sql} <= {INFINITY} THEN {x.sql} END", Type.FLOAT, x.level)


def on_grid(rows: DuckRows, total: Total) -> Text:
    """Return the whole number of fine steps that a row gives to a total, NULL without a value.

    Guarantee: at most `total.finest(1)` in magnitude, and so at most 2^36.
    Proof: docs/proofs/engines.bounded.md.
    Assumes: float64 arithmetic rounds monotonically, as IEEE 754 asks.
    Rounds: each row's value to the fine grid, to the nearest, of two to the even one, before anything is added.
    """
    x, ends = _number(rows, total.value), (double(total.lower), double(total.upper))

    def inside(v: Text) -> str:
        return _clamped(v, total.lower, total.upper, v.double, ends)

    def placed(v: Text) -> str:
        moved = f"({v.sql} - {double(total.centre)})" if total.centre else v.sql
        power = f"({moved} * {moved})" if total.power == 2 else moved
        power = f"({power} - {double(total.less)})" if total.less else power
        return f"TRY_CAST({scaled(power, -total.fine_log2)} AS BIGINT)"

    if x.sql in rows.packed and not rows.shares(total):  # one pass over the entries of a dictionary, not two
        return _each(rows, x, lambda v: placed(Text(f"({inside(v)})", Type.FLOAT)), Type.INTEGER)
    if x.sql in rows.packed:  # entries are few: clamped again for every total
        return _each(rows, x, placed, Type.INTEGER, first=inside)
    return _each(rows, rows.bind(_each(rows, x, inside)), placed, Type.INTEGER)


def _number(rows: DuckRows, value: Scalar) -> Text:
    """Return a numeric scalar that may be repeated: a double, or a column that is stored as a dictionary."""
    text = rows.measured(value)
    if text.sql in rows.packed:
        return text
    return rows.scalars.bind(Text(text.double, Type.FLOAT, text.level, text.plain and text.real))


def _each(
    rows: DuckRows,
    x: Text,
    of: Callable[[Text], str],
    kind: Type = Type.FLOAT,
    *,
    first: Callable[[Text], str] | None = None,
) -> Text:
    """Return what a formula makes of a value: once for each entry of a dictionary, where it is stored as one.

    Another formula, that gives a double, may come first; only for such a dictionary.

    DuckDB does so by itself for functions of one column that cannot fail, but takes + and * for ones that can, on
    doubles too. A formula inside of list_transform is computed as part of that function, which it takes for safe.
    """
    if x.sql not in rows.packed:
        return Text(of(x), kind, x.level)
    entries, kept = f"[{x.sql}]", x.type
    if first is not None:
        entries, kept = f"list_transform({entries}, lambda v: {first(Text('v', kept, plain=True))})", Type.FLOAT
    sql = f"list_transform({entries}, lambda v: {of(Text('v', kept, plain=True))})[1]"
    rows.packed.add(sql)
    return Text(sql, kind, x.level)


def _clamped(x: Text, lower: float, upper: float, inside: str, beyond: tuple[str, str]) -> str:
    """Return what a row gives: between the clamps, below and above them; NULL for NULL and NaN.

    Clamping by CASE leaves little to do on most rows: it takes half the time of DuckDB's LEAST and GREATEST.
    """
    return (
        f"CASE WHEN {x.double} BETWEEN {double(lower)} AND {double(upper)} THEN {inside} "
        f"WHEN {x.double} < {double(lower)} THEN {beyond[0]} WHEN {x.double} <= {INFINITY} THEN {beyond[1]} END"
    )


def scaled(sql: str, exponent: int) -> str:
    """Return a double times a power of two: in steps, as the power alone may be out of range."""
    while abs(exponent) > 1000:
        step = math.copysign(1000, exponent)
        sql, exponent = f"({sql} * {double(math.ldexp(1.0, int(step)))})", exponent - int(step)
    return f"{sql} * {double(math.ldexp(1.0, exponent))}"


def leaf(rows: DuckRows, quantile: Quantile) -> Text:
    """Return which of the equal steps from lower to upper a row's clamped value is in; NULL without a value."""
    last, steps = quantile.leaves - 1, 2.0**quantile.leaves_log2

    def placed(v: Text) -> str:
        share = f"({v.double} - {double(quantile.lower)}) / {double(quantile.width)}"
        place = f"CAST(least(floor({share} * {double(steps)}), {double(float(last))}) AS INTEGER)"
        return _clamped(v, quantile.lower, quantile.upper, place, ("0", str(last)))

    return _each(rows, _number(rows, quantile.value), placed, Type.INTEGER)


def log2(count: str) -> str:
    """Return floor(log2) of a count >= 1."""
    return f"(length(ltrim(bin({count}::BIGINT), '0')) - 1)"


def bucket(name: str) -> str:
    """Return the place of a value by sign and magnitude (`engines.engine.BUCKETS`), NULL without one.

    The logarithm may be one off next to a power of two, so it is held against the powers themselves.
    """
    a = f"least(greatest(abs({name}), {double(2.0**-33)}), {double(2.0**32)})"
    k = f"CAST(floor(log2({a})) AS INTEGER)"
    exact = f"({k} - ({a} < pow(2::DOUBLE, {k}))::INTEGER + ({a} >= pow(2::DOUBLE, {k} + 1))::INTEGER)"
    steps = f"least(greatest({exact} + 33, 0), 64)"
    return f"CASE WHEN {name} IS NOT NULL THEN 64 + CAST(sign({name}) AS INTEGER) * {steps} END"
