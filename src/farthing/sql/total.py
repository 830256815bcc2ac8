"""Shares of a total and running totals in the SELECT list: sums over the groups that are asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from farthing.query.aggregates import Single
from farthing.query.running_total import RunningTotal
from farthing.query.share_of_total import ShareOfTotal
from farthing.sql.aggregates import Aggregates, inner
from farthing.sql.asked_numbers import Read

if TYPE_CHECKING:
    from farthing.sql.text import Node, SqlText

ADVICE: Final = (
    "write COUNT(*) / SUM(COUNT(*)) OVER () with GROUP BY: one count or sum over the sum of the same, or SUM(COUNT(*)) "
    "OVER (ORDER BY zone), or that over the whole sum, times a number if you like; or single shares without GROUP BY: "
    "COUNT(*) FILTER (WHERE zone = 'centre') / COUNT(*)"
)
CONSTRUCT: Final = "a share of a total"

_QUERIES: Final = ("Subquery", "Select")
_REPORT: Final = "RATIO_TO_REPORT"
_CHOICES: Final = ("NULLIF", "COALESCE", "IFNULL")
"""Choices beside 0; NULLIF below the line only: a group without rows has the share 0, not NULL."""


def total_in(node: Node) -> Node | None:
    """Return the part of a number of the SELECT list that is a total over other groups than its own, if there is one.

    It is a window over aggregates, or a subquery beside one.
    """
    parts = list(node.walk(prune=_whole))
    for part in parts:
        kind = type(part).__name__
        report = kind == "Window" and function_name(part.this) == _REPORT
        totals = kind == "Window" and any(inner(one) is not None for one in _within(part))
        beside = kind in _QUERIES and any(type(one).__name__ not in _QUERIES and inner(one) for one in parts)
        if report or totals or beside:
            return part
    return None


def read_share(node: Node, aggregates: Aggregates, select: Node) -> Read:
    """Return a share of a total, with the nodes that PARTITION BY names.

    Args:
        node: the number of the SELECT list, in which there is a total.
        aggregates: reads aggregates.
        select: the question, whose groups are added up.

    Raises:
        UnsupportedQuery: any other arithmetic with a total, or a total of anything else.
    """
    source = aggregates.reader.source
    total = total_in(node)
    windowed = total is not None and type(total).__name__ == "Window"
    if total is not None and windowed and function_name(total.this) not in ("SUM", _REPORT):
        what = f"{function_name(total.this)[:40] or 'a window'} over groups (OVER)"
        raise source.refuse(what, "select the aggregates, and compute with the answer: that is free", total)
    if total is not None and windowed:
        _check_frame(total, source)
    if select.args.get("group") is None:
        raise source.refuse(CONSTRUCT, "it needs GROUP BY: the total is that of the groups", total_in(node) or node)
    factors = _Factors(source)
    factors.take(node)
    return factors.share(aggregates, select, node)


def is_whole_frame(spec: Node) -> bool:
    """Return whether the frame of a window is all of it, from the first row to the last."""
    ends = [str(spec.args.get(part)) for part in ("start", "start_side", "end", "end_side")]
    return ends == ["UNBOUNDED", "PRECEDING", "UNBOUNDED", "FOLLOWING"] and not spec.args.get("exclude")


@dataclass(slots=True)
class _Factors:
    """What is multiplied and divided: a number, and all that is none.

    Attributes:
        source: the text, for places in messages.
        number: the constants, multiplied.
        above, below: the rest.
    """

    source: SqlText
    number: float = 1.0
    above: list[Node] = field(default_factory=list)
    below: list[Node] = field(default_factory=list)

    def take(self, node: Node, *, over: bool = False) -> None:
        """Take a node apart; `over` tells whether it stands below the line."""
        match type(node).__name__:
            case "Paren":
                self.take(node.this, over=over)
            case "Mul" | "Div" as kind:
                self.take(node.this, over=over)
                self.take(node.expression, over=over != (kind == "Div"))
            case "Cast" | "TryCast" if node.args["to"].sql().upper() in REALS:
                self.take(node.this, over=over)
            case "Anonymous" if (
                function_name(node) in _CHOICES
                and (over or function_name(node) != "NULLIF")
                and len(node.expressions) == 2
                and _is_zero(node.expressions[1])
            ):
                self.take(node.expressions[0], over=over)
            case "Literal" if not node.is_string and float(node.this) > 0:
                self.number = self.number / float(node.this) if over else self.number * float(node.this)
            case "Anonymous" if inner(node) is None:
                what = f"{function_name(node)[:40]} of a share"
                raise self.source.refuse(what, "leave it out, and compute with the answer: that is free", node)
            case _:
                (self.below if over else self.above).append(node)

    def share(self, aggregates: Aggregates, select: Node, node: Node) -> Read:
        """Return the share that all this is."""
        total = total_in(node) or node
        if not 0 < self.number < math.inf:
            what = f"{CONSTRUCT} times a number that is too large or too small"
            raise self.source.refuse(what, "leave it out, and multiply the answer: that is free", total)
        if len(self.above) != 1 or len(self.below) > 1:
            raise self._refused(total)
        (top,), bottom = self.above, self.below[0] if self.below else None
        running = _is_sum(top)
        parts, over = self._parts(top, bottom, select)
        if not parts or any(type(part).__name__ == "Window" or inner(part) is None for part in parts):
            raise self._refused(total)
        read = [aggregates.read(part) for part in parts]
        part = read[0].aggregate
        if not isinstance(part, Single) or any(one.aggregate.canonical() != part.canonical() for one in read):
            raise self._refused(total)
        if len(read) != (1 if bottom is None else 2):
            raise self._refused(total)
        with self.source.located(total):
            if not running:
                return Read(ShareOfTotal(part, (), self.number), "share", read[0].max_rows, over)
            made = RunningTotal(part, (), (), bottom is not None, self.number)
        keys = tuple(top.args["order"].expressions) if top.args.get("order") else ()
        if _partition(top) != over or (bottom is not None and not keys):
            raise self._refused(total)
        spec = top.args.get("spec")
        each = bool(keys) and spec is not None and str(spec.args.get("kind")).upper() == "ROWS"
        return Read(made, "running" if keys else "total", read[0].max_rows, over, keys, each=each)

    def _parts(self, top: Node, bottom: Node | None, select: Node) -> tuple[list[Node], tuple[Node, ...]]:
        """Return the aggregates that stand above and below the line, and what PARTITION BY names; none for others."""
        within = list(top.this.expressions) if type(top).__name__ == "Window" else []
        if bottom is None:
            told = _is_sum(top) or (bool(within) and function_name(top.this) == _REPORT)
            return (within, _partition(top)) if told else ([], ())
        above = within if _is_sum(top) else [top]
        if _is_sum(bottom) and not bottom.args.get("order"):
            return [*above, *bottom.this.expressions], _partition(bottom)
        return ([*above, *self._alone(bottom, select)], ()) if type(bottom).__name__ in _QUERIES else ([], ())

    def _alone(self, query: Node, select: Node) -> list[Node]:
        """Return the aggregate of a subquery about the same rows as the question; refuse any other."""
        query = query.this if type(query).__name__ == "Subquery" else query
        clauses = {name.rstrip("_") for name, value in query.args.items() if value}
        same = all(query.args.get(name) == select.args.get(name) for name in ("from", "from_", "joins", "where"))
        if not same or clauses - {"expressions", "from", "joins", "where", "kind"} or type(query).__name__ != "Select":
            raise self.source.refuse(
                f"{CONSTRUCT} of other rows",
                "the subquery must have the FROM and the WHERE of the question, and nothing else: or write "
                "SUM(COUNT(*)) OVER ()",
                query,
            )
        return [one.this if type(one).__name__ == "Alias" else one for one in query.expressions]

    def _refused(self, node: Node) -> Exception:
        """Return the refusal of other arithmetic with a total."""
        return self.source.refuse(CONSTRUCT, ADVICE, node)


REALS: Final = frozenset({"DOUBLE", "FLOAT", "REAL", "DOUBLE PRECISION", "NUMERIC", "DECIMAL", "FLOAT64"})


def _is_sum(node: Node) -> bool:
    """Return whether a node is a sum over groups."""
    return type(node).__name__ == "Window" and function_name(node.this) == "SUM"


def _check_frame(window: Node, source: SqlText) -> None:
    """Refuse windows other than those from the first group to the present one, or over all."""
    spec, order = window.args.get("spec"), window.args.get("order")
    advice = "write SUM(COUNT(*)) OVER (ORDER BY month): all groups up to the present one"
    if (
        window.args.get("first")
        or window.args.get("alias")
        or (order is not None and function_name(window.this) == _REPORT)
    ):
        raise source.refuse("a window with more than PARTITION BY and ORDER BY", advice, window)
    if spec is not None and not order and is_whole_frame(spec):
        return
    parts = {} if spec is None else {name: value for name, value in spec.args.items() if value}
    if spec is None or (not order and parts.get("kind")):
        if spec is not None:
            raise source.refuse("a frame without ORDER BY", advice, window)
        return
    wanted = {"start": "UNBOUNDED", "start_side": "PRECEDING", "end": "CURRENT ROW"}
    plain = {name: str(parts.get(name)).upper() for name in wanted}
    if plain["end"] == "NONE":
        plain["end"] = wanted["end"]
    if plain != wanted or str(parts.get("kind")).upper() not in ("ROWS", "RANGE") or parts.get("exclude"):
        raise source.refuse("a moving window over groups", advice, window)


def _partition(window: Node) -> tuple[Node, ...]:
    """Return what a window's PARTITION BY names."""
    return tuple(window.args.get("partition_by") or ())


def _is_zero(node: Node) -> bool:
    """Return whether a node is the number 0."""
    return type(node).__name__ == "Literal" and not node.is_string and not abs(float(node.this)) > 0


def function_name(node: Node) -> str:
    """Return the name of a function, in capitals; "" for anything else."""
    return str(node.name).upper() if type(node).__name__ == "Anonymous" else ""


def _whole(node: Node) -> bool:
    """Return whether a node is an aggregate or a subquery, of which nothing within is divided by anything."""
    kind = type(node).__name__
    return kind in ("Window", "Filter", "WithinGroup", *_QUERIES) or (kind == "Anonymous" and inner(node) is not None)


def _within(window: Node) -> list[Node]:
    """Return what the function of a window is of, and what orders it, to any depth."""
    function = window.this
    while type(function).__name__ in ("Filter", "WithinGroup", "IgnoreNulls", "RespectNulls"):
        function = function.this
    order = window.args.get("order")
    return [one for part in (*function.expressions, *([] if order is None else [order])) for one in part.walk()]
