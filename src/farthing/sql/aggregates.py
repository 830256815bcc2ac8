"""The aggregates of the SELECT list: what each is called, what it takes, and where its value's bounds come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from farthing.errors import InvalidBounds
from farthing.query.aggregates import Aggregate, Count, CountUnits, Mean, Quantile, Sum, Variance, ratio_of
from farthing.query.counts import CountValues
from farthing.query.expressions import Case, Column, Expression, Literal, Scalar
from farthing.query.measures import Total
from farthing.query.pairs import Pair
from farthing.query.reading import DECLARE
from farthing.query.schema import NUMBER_TYPES, Type
from farthing.sql.asked_numbers import Read
from farthing.sql.nodes import holds
from farthing.sql.ranges import as_number, range_of, when_one, wide

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.privacy.unit import PrivacyUnit
    from farthing.query.bounding import Bounds
    from farthing.sql.nodes import NodeReader
    from farthing.sql.text import Node


@dataclass(frozen=True, slots=True)
class Parts:
    """An aggregate taken apart.

    Attributes:
        node: the function.
        name: its name in capitals.
        arguments: what stands between its brackets, without named arguments.
        named: the named arguments.
        condition: the condition of FILTER, or None.
        order: the one key of WITHIN GROUP (ORDER BY ...), or None.
    """

    node: Node
    name: str
    arguments: list[Node]
    named: dict[str, Node]
    condition: Node | None
    order: Node | None


def inner(node: Node) -> Node | None:
    """Return the aggregate function that a node of the SELECT list is, or one over another; else None."""
    while type(node).__name__ in ("Filter", "WithinGroup", "Window", "Paren", "IgnoreNulls", "RespectNulls"):
        node = node.this
    if _is(node, "Div"):
        return node if all(inner(side) is not None for side in (node.this, node.expression)) else None
    return node if _is(node, "Anonymous") and str(node.name).upper() in NAMES else None


@dataclass(frozen=True, slots=True)
class Aggregates:
    """Reads aggregates.

    Attributes:
        reader: reads what is within them.
        unit: the privacy unit.
        bounds: the bounds of values that name none.
    """

    reader: NodeReader
    unit: PrivacyUnit
    bounds: Bounds

    def read(self, node: Node) -> Read:
        """Return an aggregate.

        Raises:
            UnsupportedQuery: another aggregate, or arguments it does not take.
            InvalidBounds: a value without bounds, or with bounds that are not a range.
        """
        while _is(node, "Paren"):
            node = node.this
        if _is(node, "Div"):
            return self._ratio(node)
        parts = self._parts(node)
        with self.reader.source.located(parts.node):
            return _rules()[parts.name](self, parts)

    def _ratio(self, node: Node) -> Read:
        """Return one aggregate over another."""
        top, bottom = self.read(node.this), self.read(node.expression)
        with self.reader.source.located(node):
            made = ratio_of(top.aggregate, bottom.aggregate)
        if top.max_rows != bottom.max_rows and None not in (top.max_rows, bottom.max_rows):
            raise self.reader.source.refuse(
                "two bounds on rows", "one question has one bound on the rows of a unit in a group", node
            )
        return Read(made, "ratio", top.max_rows or bottom.max_rows)

    def _parts(self, node: Node) -> Parts:
        """Return an aggregate taken apart; refuse windows."""
        refuse = self.reader.source.refuse
        condition = order = None
        whole = node
        while type(node).__name__ != "Anonymous":
            match type(node).__name__:
                case "Filter":
                    condition = node.expression.this
                case "WithinGroup":
                    order = self._key(node.expression)
                case "Window":
                    raise refuse("a window (OVER)", "ask an aggregate with GROUP BY", whole)
                case "IgnoreNulls" | "RespectNulls":
                    raise refuse("IGNORE NULLS", "leave it out: NULLs do not count", whole)
            node = node.this
        named = {str(part.this.name).lower(): part.expression for part in node.expressions if _is(part, "Kwarg")}
        arguments = [part for part in node.expressions if not _is(part, "Kwarg")]
        for word in named:
            if word not in _BOUNDING:
                raise refuse(f"argument {word[:60]}", "the named argument is contribution_bounds_per_group", node)
        return Parts(node, str(node.name).upper(), arguments, named, condition, order)

    def _key(self, order: Node) -> Node:
        """Return the one key of WITHIN GROUP (ORDER BY ...)."""
        if len(order.expressions) != 1:
            raise self.reader.source.refuse("WITHIN GROUP of several columns", "order by one value", order)
        return order.expressions[0]

    def count(self, parts: Parts) -> Read:
        """Return COUNT(*), COUNT(x) or COUNT(DISTINCT x)."""
        self._no_order(parts)
        if len(parts.arguments) > 1:
            raise self._arguments(parts, "COUNT(*), COUNT(x) or COUNT(DISTINCT x)")
        most = self._most_rows(parts)
        first = parts.arguments[0] if parts.arguments else None
        if first is not None and _is(first, "Distinct"):
            return self._distinct(parts, list(first.expressions), most)
        if first is None or _is(first, "Star") or (_is(first, "Literal") and parts.condition is None):
            if first is not None:
                self.reader.only(first, "this", "is_string")
            value: Scalar | None = None if parts.condition is None else self._filtered(parts, Literal(1))
            return Read(Count(value), "count", most)
        scalar = self.reader.scalar(first)
        if not isinstance(scalar, Column):
            self.reader.typed(first)
        return Read(Count(self._filtered(parts, scalar)), self._named("count", first), most)

    def count_if(self, parts: Parts) -> Read:
        """Return COUNT_IF(condition)."""
        self._no_order(parts)
        if len(parts.arguments) != 1:
            raise self._arguments(parts, "COUNT_IF(condition)")
        value = Case(((self.reader.whole(parts.arguments[0]), Literal(1)),))
        return Read(Count(self._filtered(parts, value)), "count_if", self._most_rows(parts))

    def distinct(self, parts: Parts) -> Read:
        """Return APPROX_COUNT_DISTINCT(x)."""
        self._no_order(parts)
        return self._distinct(parts, parts.arguments, self._most_rows(parts))

    def _distinct(self, parts: Parts, columns: list[Node], most: int | None) -> Read:
        """Return the count of privacy units, or of the different values of something else."""
        refuse = self.reader.source.refuse
        if len(columns) != 1:
            raise refuse("COUNT(DISTINCT ...) of several values", "name one: COUNT(DISTINCT CONCAT(a, b))", parts.node)
        scalar, kind = self.reader.typed(columns[0])
        name = self._named("count_distinct", columns[0])
        if self.unit.column is None or scalar != Column(self.unit.column):
            if kind is Type.OTHER:
                raise refuse("COUNT(DISTINCT ...) of a type that is not read", f"count a value; {DECLARE}", columns[0])
            return Read(CountValues(self._filtered(parts, scalar)), name, most)
        if parts.condition is not None:
            raise refuse("FILTER of COUNT(DISTINCT unit)", "put the condition in WHERE", parts.node)
        return Read(CountUnits(), name)

    def amount(self, parts: Parts) -> Read:
        """Return SUM, AVG, the variances and standard deviations, MIN, MAX and MEDIAN: aggregates of one value."""
        self._no_order(parts)
        if len(parts.arguments) != 1:
            raise self._arguments(parts, f"{parts.name}(x)")
        if parts.name == "SUM" and not parts.named:
            ones = self._ones(parts)
            if ones is not None:
                return ones
        build = self._ranked(_RANKS[parts.name]) if parts.name in _RANKS else _AMOUNTS[parts.name]
        return self._bounded(parts, parts.arguments[0], build)

    def _ones(self, parts: Parts) -> Read | None:
        """Return the count that a sum of 1s and 0s is; None for another sum."""
        node = parts.arguments[0]
        scalar, kind = self.reader.typed(node)
        if scalar == Literal(1):
            value = None if parts.condition is None else self._filtered(parts, Literal(1))
            return Read(Count(value), "sum")
        condition = holds(scalar) if kind is Type.BOOLEAN else when_one(scalar, self.reader)
        if condition is None:
            return None
        value = Case(((condition, Literal(1)),))
        return Read(Count(self._filtered(parts, value)), self._named("sum", node))

    def quantile(self, parts: Parts) -> Read:
        """Return PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x), PERCENTILE_CONT(x, q) or QUANTILE(x, q)."""
        written = f"{parts.name}(x, 0.9)"
        if parts.order is not None:
            if len(parts.arguments) != 1:
                raise self._arguments(parts, f"{parts.name}(0.9) WITHIN GROUP (ORDER BY x)")
            value, share = parts.order.this, self._constant(parts.arguments[0], written)
            share = 1 - share if parts.order.args.get("desc") else share
        elif len(parts.arguments) == 2:
            value, share = parts.arguments[0], self._constant(parts.arguments[1], written)
        else:
            raise self._arguments(parts, f"{written} or {parts.name}(0.9) WITHIN GROUP (ORDER BY x)")
        return self._bounded(parts, value, self._ranked(share))

    def pair(self, parts: Parts) -> Read:
        """Return CORR(x, y), COVAR_POP(x, y), COVAR_SAMP(x, y), REGR_SLOPE(y, x) or REGR_INTERCEPT(y, x)."""
        self._no_order(parts)
        if len(parts.arguments) != 2 or parts.named:
            raise self._arguments(parts, f"{parts.name}(CLAMP(x, 0, 10), CLAMP(y, 0, 80))")
        (x, x_range, _), (y, y_range, _) = (self._amount(parts, node) for node in parts.arguments)
        kind = _PAIRS[parts.name]
        if kind in ("slope", "intercept"):
            x, x_range, y, y_range = y, y_range, x, x_range
        sample = parts.name == "COVAR_SAMP"
        made = Pair(kind, self._filtered(parts, x), y, x_range, y_range, sample)
        return Read(made, parts.name.lower())

    def _ranked(self, share: float) -> Callable[[Scalar, float, float], Aggregate]:
        """Return what makes a quantile of a value and its bounds."""
        return lambda value, lower, upper: Quantile.of(value, self.reader.type(value), share, lower, upper)

    def _bounded(self, parts: Parts, node: Node, build: Callable[[Scalar, float, float], Aggregate]) -> Read:
        """Return an aggregate of a value that is a number, with its bounds."""
        scalar, (lower, upper), stripped = self._amount(parts, node)
        aggregate = build(self._filtered(parts, scalar), lower, upper)
        return Read(aggregate, self._named(parts.name.lower(), stripped))

    def _amount(self, parts: Parts, node: Node) -> tuple[Scalar, tuple[float, float], Node]:
        """Return a value that is a number, its bounds, and the node that it is without a clamp."""
        stripped, clamp = self._clamp(node)
        scalar, kind = self.reader.typed(stripped)
        if kind is Type.BOOLEAN and parts.name in _OF_TRUTHS:
            scalar, kind = as_number(scalar, self.reader), Type.INTEGER
        if kind not in NUMBER_TYPES:
            advice = "count where it holds: COUNT_IF(x)" if kind is Type.BOOLEAN else f"aggregate a number; {DECLARE}"
            raise self.reader.source.refuse(f"{parts.name} of a {kind}", advice, node)
        lower, upper = (end + 0.0 for end in self._bounds(parts, scalar, clamp))  # -0.0 is 0.0: one question
        Total(scalar, lower, upper)  # refuses bounds that are not a range
        return scalar, (lower, upper), stripped

    def _bounds(self, parts: Parts, value: Scalar, clamp: tuple[float, float] | None) -> tuple[float, float]:
        """Return the bounds that the text names, or else those given beside it."""
        for node in parts.named.values():
            if not _is(node, "Tuple") or len(node.expressions) != 2:
                raise self.reader.source.refuse("contribution bounds", "write => (lower, upper)", parts.node)
            lower, upper = (self._constant(end, "=> (lower, upper)") for end in node.expressions)
            return lower, upper
        found = clamp or range_of(value)
        if found is not None:
            return clamp or wide(found)
        if self.bounds.lower is None or self.bounds.upper is None:
            name = str(value) if isinstance(value, Column) else "x"
            raise InvalidBounds(
                f"{parts.name} of a value without bounds",
                rule="values are clamped into [lower, upper], so that no unit weighs more than that",
                next_step=f"write {parts.name}(CLAMP({name}, 0, 200)), with numbers that fit the data, "
                "or pass lower=0, upper=200",
                missing="clamps",
            )
        return float(self.bounds.lower), float(self.bounds.upper)

    def _clamp(self, node: Node) -> tuple[Node, tuple[float, float] | None]:
        """Return what CLAMP(x, lower, upper) clamps and its bounds; any other value as it is."""
        while _is(node, "Paren"):
            node = node.this
        if not _is(node, "Anonymous") or str(node.name).upper() != "CLAMP" or len(node.expressions) != 3:
            return node, None
        value, lower, upper = node.expressions
        written = "CLAMP(x, 0, 200)"
        return value, (self._constant(lower, written), self._constant(upper, written))

    def _most_rows(self, parts: Parts) -> int | None:
        """Return the most rows of one unit in a group, from a count's own bounds (0, rows)."""
        for node in parts.named.values():
            if _is(node, "Tuple") and len(node.expressions) == 2:
                lower, upper = (self._constant(end, "=> (0, rows)") for end in node.expressions)
                if upper >= 1 and upper.is_integer() and abs(lower) <= 0:
                    return int(upper)
            raise self.reader.source.refuse(
                "contribution bounds of a count", "write => (0, rows), the most rows of a unit", parts.node
            )
        return None

    def _constant(self, node: Node, written: str) -> float:
        """Return a number that is written out."""
        scalar = self.reader.scalar(node)
        match scalar:
            case Literal(int() | float() as value) if not isinstance(value, bool):
                return float(value)
            case _:
                raise self.reader.source.refuse("a bound or share that is not a number", f"write {written}", node)

    def _filtered(self, parts: Parts, value: Scalar) -> Scalar:
        """Return a value that is NULL where the condition of FILTER is not TRUE."""
        if parts.condition is None:
            return value
        condition: Expression = self.reader.within("FILTER").whole(parts.condition)
        return Case(((condition, value),))

    def _named(self, function: str, node: Node) -> str:
        """Return the name of an answer column: that of the function and of the column it is of."""
        while _is(node, "Paren"):
            node = node.this
        return f"{function}_{self.reader.named(node)[0].rpartition('.')[2]}" if _is(node, "Column") else function

    def _no_order(self, parts: Parts) -> None:
        """Refuse WITHIN GROUP where it means nothing."""
        if parts.order is not None:
            raise self.reader.source.refuse(f"{parts.name} WITHIN GROUP", f"write {parts.name}(x)", parts.node)

    def _arguments(self, parts: Parts, written: str) -> Exception:
        """Return the refusal of a wrong number of arguments."""
        count = len(parts.arguments)
        return self.reader.source.refuse(f"{parts.name} with {count} arguments", f"write {written}", parts.node)


def _is(node: Node, kind: str) -> bool:
    """Return whether a node is of a kind, by its name."""
    return type(node).__name__ == kind


_OF_TRUTHS: Final = ("SUM", "AVG", "MEAN")
"""Aggregates of truth values, as 1 and 0."""

_BOUNDING: Final = ("contribution_bounds_per_group", "contribution_bounds_per_row")

_AMOUNTS: Final[dict[str, Callable[[Scalar, float, float], Aggregate]]] = {
    "SUM": Sum,
    **dict.fromkeys(("AVG", "MEAN"), Mean),
    "VAR_POP": Variance,
    **dict.fromkeys(("VAR_SAMP", "VARIANCE"), partial(Variance, sample=True)),
    "STDDEV_POP": partial(Variance, root=True),
    **dict.fromkeys(("STDDEV_SAMP", "STDDEV"), partial(Variance, sample=True, root=True)),
}

_RANKS: Final = {"MIN": 0.0, "MAX": 1.0, "MEDIAN": 0.5}

_PAIRS: Final = {
    "CORR": "correlation",
    "COVAR_POP": "covariance",
    "COVAR_SAMP": "covariance",
    "REGR_SLOPE": "slope",
    "REGR_INTERCEPT": "intercept",
}

NAMES: Final = frozenset(
    {"COUNT", "COUNT_IF", "COUNTIF", "APPROX_COUNT_DISTINCT", *_AMOUNTS, *_RANKS, *_PAIRS}
    | {"PERCENTILE_CONT", "QUANTILE", "QUANTILE_CONT", "APPROX_QUANTILE"}
)
"""Every aggregate that is understood."""


@cache
def _rules() -> dict[str, Callable[[Aggregates, Parts], Read]]:
    """Return the whole whitelist of aggregates."""
    return {
        "COUNT": Aggregates.count,
        **dict.fromkeys(("COUNT_IF", "COUNTIF"), Aggregates.count_if),
        "APPROX_COUNT_DISTINCT": Aggregates.distinct,
        **dict.fromkeys((*_AMOUNTS, *_RANKS), Aggregates.amount),
        **dict.fromkeys(_PAIRS, Aggregates.pair),
        **dict.fromkeys(("PERCENTILE_CONT", "QUANTILE", "QUANTILE_CONT", "APPROX_QUANTILE"), Aggregates.quantile),
    }
