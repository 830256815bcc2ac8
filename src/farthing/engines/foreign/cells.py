"""Cells of one unit and one group, as ibis tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from farthing.engines.foreign.keys import with_places
from farthing.engines.foreign.terms import IbisTerm, real, whole
from farthing.query.ranges import FINE_BITS
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.engines.bounded import BoundedQuery
    from farthing.engines.foreign.rows import IbisRows
    from farthing.query.aggregates import Quantile
    from farthing.query.expressions import Scalar
    from farthing.query.measures import Total


class IbisCells:
    """One row per cell: the unit, the group, and what is asked of the rows that count there."""

    def __init__(self, query: BoundedQuery, rows: IbisRows) -> None:
        self._query = query
        self._rows = rows
        self._columns: dict[tuple[str, str], str] = {}
        self._unit = rows.number() if query.unit.is_row else "u"
        self.found = self.column("count", "")

    def value(self, expr: Any) -> str:
        """Show a value of the rows that count; return its name."""
        return self._rows.show(expr, "v")

    def column(self, aggregate: str, name: str) -> str:
        """Return the name of count (of all rows without a name), sum, min or max of a shown value in each cell."""
        return self._columns.setdefault((aggregate, name), f"a{len(self._columns)}")

    def table(self, groups: Sequence[str], *, listed: bool) -> Any:
        """Return the table of (u, i, other groups, aggregates).

        Args:
            groups: shown columns that tell cells of one unit apart, the key columns first.
            listed: whether the key columns are looked up in the list of keys; i is the place there, 0 without keys.
        """
        told, rows = list(groups), self._rows.table()
        if listed:
            keys = told[: len(self._query.by)]
            rows = with_places(self._query, self._rows.backend, rows, keys)
            told = ["i", *told[len(keys) :]]
        made = {name: _aggregate(rows, *what) for what, name in self._columns.items()}
        cells = rows.group_by([self._unit, *told]).agg(**made)
        return cells if self._unit == "u" else cells.rename(u=self._unit)


def _aggregate(rows: Any, aggregate: str, name: str) -> Any:
    """Return an aggregate of a column, or the number of rows."""
    return getattr(rows[name], aggregate)() if name else rows.count()


def present(rows: IbisRows, value: Scalar) -> Any:
    """Return an expression that is NULL exactly where a value is not there: NULL or NaN."""
    term = rows.scalars.scalar(value)
    return rows.scalars.number(value).expr if term.real else term.expr


def on_grid(rows: IbisRows, total: Total) -> tuple[Any, Any]:
    """Return the whole number of fine steps that a row gives to a total, NULL without a value: in two parts.

    It is the first part times 2^FINE_BITS, plus the second one, of at most 2^(FINE_BITS-1) in magnitude. Both fit
    32 bits, and their sums 64, on every backend. Values so near the centre that they give what it gives are taken for
    it: scaled down they could be too small for a double, which some backends report as an error.

    Guarantee: at most `total.finest(1)` in magnitude.
    Proof: docs/proofs/engines.bounded.md.
    Assumes: float64 arithmetic rounds monotonically, as IEEE 754 asks.
    Rounds: each row's value to the fine grid, to the nearest, of two to the even one, before anything is added.
    """
    import ibis

    x = rows.scalars.bind(rows.scalars.number(total.value)).expr
    inside = ibis.least(ibis.greatest(x, real(total.lower)), real(total.upper)) - real(total.centre)
    moved = rows.scalars.bind(IbisTerm(inside, Type.FLOAT)).expr
    least = math.ldexp(1.0, (total.fine_log2 - 1) // total.power - 10)
    seen = ibis.ifelse(moved.abs() >= real(least), moved, real(0)) if least > 0 else moved
    if total.power == 2:
        seen = rows.scalars.bind(IbisTerm(seen, Type.FLOAT)).expr
        seen = seen * seen - real(total.less) if total.less else seen * seen
    y = rows.scalars.bind(IbisTerm(scaled(seen, -total.fine_log2), Type.FLOAT)).expr
    near = rows.scalars.bind(IbisTerm(rows.backend.rounded("floor", y + real(0.5)), Type.FLOAT)).expr
    odd = near != rows.backend.rounded("floor", near * real(0.5)) * real(2)
    steps = rows.scalars.bind(
        IbisTerm(ibis.ifelse((near - y == real(0.5)) & odd, near - real(1), near), Type.FLOAT)
    ).expr
    whole_steps = rows.backend.rounded("floor", steps * real(2.0**-FINE_BITS) + real(0.5))
    high = rows.scalars.bind(IbisTerm(whole_steps, Type.FLOAT)).expr
    rest = steps - high * real(2.0**FINE_BITS)
    return ibis.cases((x.notnull(), high.cast("int32"))), ibis.cases((x.notnull(), rest.cast("int32")))


def scaled(value: Any, exponent: int) -> Any:
    """Return a double times a power of two: in steps, as the power alone may be out of range."""
    while abs(exponent) > 1000:
        step = int(math.copysign(1000, exponent))
        value, exponent = value * real(math.ldexp(1.0, step)), exponent - step
    return value * real(math.ldexp(1.0, exponent))


def leaf(rows: IbisRows, quantile: Quantile) -> Any:
    """Return which of the equal steps from lower to upper a row's clamped value is in; NULL without a value."""
    import ibis

    x = rows.scalars.bind(rows.scalars.number(quantile.value)).expr
    lower, width = real(quantile.lower), quantile.width
    above = ibis.least(ibis.greatest(x, lower), real(quantile.upper)) - lower
    least = width * 2.0**-60  # below, the first leaf: a quotient could be too small for a double
    seen = ibis.ifelse(above >= real(least), above, real(0)) if least > 0 else above
    place = rows.backend.rounded("floor", seen / real(width) * real(2**quantile.leaves_log2))
    return ibis.cases((x.notnull(), ibis.least(place, real(quantile.leaves - 1)).cast("int64")))


def log2(count: Any) -> Any:
    """Return floor(log2) of a count >= 1."""
    return _ladder(count, [(whole(2**power), power) for power in range(1, 32)], 0)


def bucket(value: Any) -> Any:
    """Return the place of a value by sign and magnitude (`engines.engine.BUCKETS`), NULL without one."""
    import ibis

    steps = _ladder(value.abs(), [(real(2.0 ** (step - 33)), step) for step in range(1, 65)], 0)
    return ibis.cases((value >= real(0), whole(64) + steps), (value < real(0), whole(64) - steps))


def _ladder(value: Any, rungs: Sequence[tuple[Any, int]], below: int) -> Any:
    """Return the number of the highest rung that a value reaches, by halving: exact, unlike a logarithm."""
    import ibis

    if not rungs:
        return whole(below)
    middle = len(rungs) // 2
    limit, number = rungs[middle]
    upper, lower = _ladder(value, rungs[middle + 1 :], number), _ladder(value, rungs[:middle], below)
    return ibis.ifelse(value >= limit, upper, lower)
