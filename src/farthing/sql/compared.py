"""Numbers of other groups in the SELECT list, and what computes with them: LAG, LEAD, 1 - share, year over year."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from farthing.errors import FarthingError, UnsupportedQuery
from farthing.query.comparison import MOST_CELLS, Polynomial
from farthing.query.expressions import Literal
from farthing.sql.aggregates import Aggregates, inner
from farthing.sql.arithmetic import is_arithmetic, read_arithmetic
from farthing.sql.asked_numbers import Compared, Other, Read, never_negative
from farthing.sql.rounded import peeled
from farthing.sql.total import REALS, function_name, is_whole_frame, read_share, total_in

if TYPE_CHECKING:
    from farthing.sql.text import Node

NEIGHBOURS: Final = {"LAG": 3, "LEAD": 3, "FIRST_VALUE": 1, "LAST_VALUE": 1}
"""Functions that tell a number of another group, with the most arguments that they take."""

FARTHEST: Final = 10_000
"""The most groups away that LAG and LEAD may name."""

_OPERATORS: Final = ("Add", "Sub", "Mul", "Div", "Neg")
_COMPARISONS: Final = ("GT", "GTE", "LT", "LTE", "EQ", "NEQ")
_CALLED: Final = {"Window": "a window", "DPipe": "||", **dict.fromkeys(_COMPARISONS, "a comparison")}
_FREE: Final = "select the aggregates, and compute with the answer: that is free"
_PRODUCT: Final = (
    "add, subtract and divide released numbers, each of them once above and once below the line at most: "
    "100.0 * (n - LAG(n) OVER (ORDER BY month)) / LAG(n) OVER (ORDER BY month)"
)


def neighbour_in(node: Node) -> Node | None:
    """Return the part of a number of the SELECT list that tells a number of another group, if there is one."""
    for part in node.walk():
        if type(part).__name__ == "Window" and function_name(_function(part)) in NEIGHBOURS:
            within = (one for argument in _function(part).expressions for one in argument.walk())
            if any(inner(one) is not None for one in within):
                return part
    return None


def is_sum_of(node: Node) -> bool:
    """Return whether a node adds, subtracts or scales, within brackets and signs: 1 - share, 100 * (1 - share)."""
    kind = type(node).__name__
    if kind in ("Paren", "Neg"):
        return kind == "Neg" or is_sum_of(node.this)
    if kind in ("Mul", "Div"):
        return any(is_sum_of(side) for side in (node.this, node.expression))
    return kind in ("Add", "Sub") or (kind == "Anonymous" and function_name(node) in ("COALESCE", "IFNULL"))


def read_plain(node: Node, aggregates: Aggregates, select: Node) -> Read | None:
    """Return the measured number that a node is: an aggregate, arithmetic that is one, a share; None for none.

    Raises:
        UnsupportedQuery: arithmetic that is none of these.
    """
    if total_in(node) is not None:
        return read_share(node, aggregates, select)
    if is_arithmetic(node):
        return read_arithmetic(node, aggregates)
    return aggregates.read(node) if inner(node) is not None else None


def read_compared(node: Node, aggregates: Aggregates, select: Node) -> Read:
    """Return what a node computes of released numbers of a group and of others.

    Args:
        node: the number of the SELECT list, without the rounding around it.
        aggregates: reads aggregates.
        select: the question.

    Raises:
        UnsupportedQuery: a window without an order, arithmetic of which no interval is known, and all else.
    """
    window = neighbour_in(node)
    source = aggregates.reader.source
    if window is not None and select.args.get("group") is None:
        raise source.refuse(f"{_word(window)} over groups", "it needs GROUP BY: another group is told of", window)
    reader = _FractionReader(aggregates, select, node)
    body, otherwise = reader.chosen(node)
    above, below = reader.fraction(body)
    if below.constant is not None:
        above, below = reader.scaled(above, 1 / below.constant), Polynomial.number(1.0)
    used = above.cells | below.cells
    if not used:
        advice = "leave it out: it is known, and costs nothing"
        raise source.refuse("a number that no row changes", advice, window or node)
    if len(used) > MOST_CELLS:
        raise source.refuse(f"a number of more than {MOST_CELLS} released ones", _FREE, window or node)
    kept = sorted(used)
    cells = tuple(reader.cells[cell] for cell in kept)
    made = Compared(cells, _numbered(above, kept), _numbered(below, kept), otherwise)
    name = _word(window).lower() if window is not None else "computed"
    bounds = {read.max_rows for read, _ in cells} - {None}
    if len(bounds) > 1:
        raise source.refuse("two bounds on rows", "one question has one bound on the rows of a unit in a group", node)
    return Read(cells[0][0].aggregate, name, next(iter(bounds), None), compared=made)


@dataclass(slots=True)
class _FractionReader:
    """Reads one number.

    Attributes:
        aggregates: reads aggregates.
        select: the question.
        whole: the number, for places in messages.
        cells: what was found.
    """

    aggregates: Aggregates
    select: Node
    whole: Node
    cells: list[tuple[Read, Other | None]] = field(default_factory=list)
    _known: set[str] | None = None

    def fraction(self, node: Node) -> tuple[Polynomial, Polynomial]:
        """Return one sum over another."""
        kind = type(node).__name__
        if kind == "Paren" or (kind in ("Cast", "TryCast") and node.args["to"].sql().upper() in REALS):
            return self.fraction(node.this)
        if kind == "Literal" and not node.is_string:
            return Polynomial.number(float(node.this)), Polynomial.number(1.0)
        if kind == "Window" and function_name(_function(node)) in NEIGHBOURS:
            return self._neighbour(node, None)
        if kind == "Anonymous" and function_name(node) in ("NULLIF", "COALESCE", "IFNULL"):
            return self._choice(node)
        if neighbour_in(node) is None:
            found = self._measured(node)
            if found is not None:
                return found
        if kind in _OPERATORS:
            return self._computed(node)
        raise self._refused(node)

    def scaled(self, terms: Polynomial, number: float) -> Polynomial:
        """Return a sum times a number; refuse what is too large."""
        return self._times(terms, Polynomial.number(number), self.whole)

    def chosen(self, node: Node) -> tuple[Node, float | None]:
        """Return a node without the COALESCE around all of it, and the number that stands where there is none."""
        while type(node).__name__ == "Paren":
            node = node.this
        if type(node).__name__ == "Case":
            return self._guarded(node)
        if type(node).__name__ != "Anonymous" or function_name(node) not in ("COALESCE", "IFNULL"):
            return node, None
        number = self._number(node.expressions[1]) if len(node.expressions) == 2 else None
        if number is None:
            raise self._refused(node)
        return node.expressions[0], number

    def _guarded(self, node: Node) -> tuple[Node, float | None]:
        """Return what CASE WHEN number > 0 THEN ... ELSE ... END guards against division by nothing, and what is else.

        The number is one that all of the divisor is multiplied by; so what is tested has no meaning but that. As with
        NULLIF(number, 0), a number is told wherever there is a group: where it may be divided by nothing its interval
        has no end.
        """
        branches, default = list(node.args.get("ifs") or []), node.args.get("default")
        nothing = default is None or type(default).__name__ == "Null"
        last = None if nothing else self._number(default)
        if node.args.get("this") is not None or len(branches) != 1 or (last is None and not nothing):
            raise self._refused(node)
        test, body = branches[0].this, branches[0].args["true"]
        told = type(test).__name__ == "Not" and type(test.this).__name__ == "Is"
        if told:
            against, known = test.this.this, type(test.this.expression).__name__ == "Null"
        else:
            against, known = test.this, type(test).__name__ in ("GT", "NEQ") and self._number(test.expression) == 0.0
        cell = self._only(against, above_zero=type(test).__name__ == "GT") if known else None
        above, below = self.fraction(body)
        none = {one for one in above.cells | below.cells if self._may_be_none(one)}
        if (
            cell is None
            or not below.cells
            or not all(cell in cells for cells, _ in below.parts)
            or (last is not None and not none <= {cell})
        ):
            raise self._refused(node)
        return body, last

    def _only(self, node: Node, *, above_zero: bool) -> int | None:
        """Return the released number that a node is, times a number; None for anything else.

        Args:
            node: the number.
            above_zero: whether it has to be above zero wherever it is not zero.
        """
        above, below = self.fraction(node)
        match above.parts, below.constant:
            case (((int(cell),), times),), float(under):
                sure = times / under > 0 and never_negative(*self.cells[cell])
                return cell if sure or not above_zero else None
        return None

    def _may_be_none(self, cell: int) -> bool:
        """Return whether a number is NULL for some groups."""
        other = self.cells[cell][1]
        return other is not None and other.may_be_none

    def _measured(self, node: Node) -> tuple[Polynomial, Polynomial] | None:
        """Return a part without other groups as the number that it is; None where it is computed of several.

        What the question names elsewhere, or tells of another group, is one number; so is a share.
        """
        computes = type(node).__name__ in _OPERATORS
        if total_in(node) is not None:
            try:
                read = read_share(node, self.aggregates, self.select)
            except UnsupportedQuery:
                if computes and (type(node).__name__ in ("Add", "Sub", "Neg") or self._is_scaled(node)):
                    return None
                raise
            return self._cell(read, None)
        if computes:
            with suppress(FarthingError):
                read = read_arithmetic(node, self.aggregates)
                if _text(read) in self.known:
                    return self._cell(read, None)
            return None
        found = read_plain(node, self.aggregates, self.select)
        return None if found is None else self._cell(found, None)

    @property
    def known(self) -> set[str]:
        """The numbers that stand in the SELECT list by themselves, or are told of another group here."""
        if self._known is None:
            bodies = [one.this if type(one).__name__ == "Alias" else one for one in self.select.expressions]
            for part in self.whole.walk():
                if type(part).__name__ == "Window" and function_name(_function(part)) in NEIGHBOURS:
                    bodies += _function(part).expressions[:1]
            self._known = set()
            for body in bodies:
                with suppress(FarthingError):
                    plain = peeled(body, self.aggregates.reader.source)[0]
                    read = None if neighbour_in(plain) else read_plain(plain, self.aggregates, self.select)
                    self._known |= set() if read is None else {_text(read)}
        return self._known

    def _is_scaled(self, node: Node) -> bool:
        """Return whether a node is a product with a number, or a quotient by one."""
        sides = [node.expression] if type(node).__name__ == "Div" else [node.this, node.expression]
        return any(self._number(side) is not None for side in sides)

    def _computed(self, node: Node) -> tuple[Polynomial, Polynomial]:
        """Return what an operator makes of its sides."""
        kind = type(node).__name__
        above, below = self.fraction(node.this)
        if kind == "Neg":
            return self._times(above, Polynomial.number(-1.0), node), below
        other, under = self.fraction(node.expression)
        if kind in ("Mul", "Div"):
            other, under = (under, other) if kind == "Div" else (other, under)
            if under.constant == 0.0:
                raise self.aggregates.reader.source.refuse("division by zero", "write another number", node)
            return self._times(above, other, node), self._times(below, under, node)
        other = self._times(other, Polynomial.number(-1.0), node) if kind == "Sub" else other
        if below == under:
            return above.plus(other), below
        crossed = self._times(above, under, node).plus(self._times(other, below, node))
        return crossed, self._times(below, under, node)

    def _times(self, left: Polynomial, right: Polynomial, node: Node) -> Polynomial:
        """Return a product; refuse one with a number twice."""
        found = left.times(right)
        if found is not None and not all(math.isfinite(times) for _, times in found.parts):
            raise self.aggregates.reader.source.refuse("a number that is too large", _FREE, node)
        if found is None or len(found.parts) > 2**MOST_CELLS:
            raise self.aggregates.reader.source.refuse("a released number twice in a product", _PRODUCT, node)
        return found

    def _choice(self, node: Node) -> tuple[Polynomial, Polynomial]:
        """Return NULLIF(number, 0) as the number, and COALESCE(LAG(...) OVER (...), 0) as LAG with a default."""
        first, number = node.expressions[0], None
        if len(node.expressions) == 2:
            number = self._number(node.expressions[1])
        while type(first).__name__ == "Paren":
            first = first.this
        tells = type(first).__name__ == "Window" and function_name(_function(first)) in NEIGHBOURS
        if number is not None and tells and function_name(node) != "NULLIF":
            return self._neighbour(first, number)
        if number != 0.0:
            raise self._refused(node)
        found = self.fraction(first)
        if function_name(node) != "NULLIF" and any(map(self._may_be_none, found[0].cells | found[1].cells)):
            raise self._refused(node)
        return found

    def _neighbour(self, window: Node, default: float | None) -> tuple[Polynomial, Polynomial]:
        """Return the number of another group."""
        word, function, refuse = _word(window), _function(window), self.aggregates.reader.source.refuse
        arguments = list(function.expressions)
        told = [*arguments, window.this]
        if (
            any(type(one).__name__ in ("IgnoreNulls", "Distinct", "Order") for one in told)
            or not 1 <= len(arguments) <= NEIGHBOURS[word]
            or function is not window.this
        ):
            raise refuse(f"{word} written like this", f"write {word}(COUNT(*)) OVER (ORDER BY month)", window)
        over, order = window.args.get("partition_by") or (), window.args.get("order")
        if order is None or window.args.get("alias") or window.args.get("first"):
            advice = f"write {word}(COUNT(*)) OVER (ORDER BY month), with a column of GROUP BY"
            raise refuse(f"{word} without ORDER BY", advice, window)
        self._check_frame(window, word)
        moves = word in ("LAG", "LEAD")
        back = (self._places(arguments[1]) if len(arguments) > 1 else 1) if moves else None
        if len(arguments) > 2:
            stated = self._number(arguments[2])
            if stated is None and type(arguments[2]).__name__ != "Null":
                raise refuse(f"a default of {word} that is not a number", f"write {word}(COUNT(*), 1, 0)", window)
            default = default if stated is None else stated
        body, rounding = peeled(arguments[0], self.aggregates.reader.source)
        if rounding is not None:
            raise refuse(f"ROUND within {word}", "write ROUND around all of it", window)
        others = [one for one in body.walk() if type(one).__name__ == "Window" and _word(one) in NEIGHBOURS]
        read = None if others else read_plain(body, self.aggregates, self.select)
        if read is None:
            raise refuse(f"{word} of what is computed of other groups", _FREE, window)
        signed = back if back is None or word == "LAG" else -back
        last = word == "LAST_VALUE"
        return self._cell(read, Other(window, tuple(over), tuple(order.expressions), signed, last, default))

    def _check_frame(self, window: Node, word: str) -> None:
        """Refuse frames: the first and the last are those of the whole partition, and LAG knows none."""
        spec, refuse = window.args.get("spec"), self.aggregates.reader.source.refuse
        if word == "LAST_VALUE" and (spec is None or not is_whole_frame(spec)):
            advice = "write the frame out: ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
            raise refuse("LAST_VALUE of less than all groups", advice, window)
        if spec is not None and not is_whole_frame(spec):
            raise refuse(f"{word} of a frame", "leave the frame out", window)

    def _cell(self, read: Read, other: Other | None) -> tuple[Polynomial, Polynomial]:
        """Return a released number; the same one twice is one."""
        known = [(_text(one), _where(where)) for one, where in self.cells]
        text = (_text(read), _where(other))
        if text not in known:
            self.cells.append((read, other))
        place = [*known, text].index(text)
        return Polynomial.of({(place,): 1.0}), Polynomial.number(1.0)

    def _places(self, node: Node) -> int:
        """Return a number of groups."""
        digits = str(node.this) if type(node).__name__ == "Literal" and not node.is_string else ""
        if not digits.isdigit() or len(digits) > 5 or int(digits) > FARTHEST:
            advice = f"write a whole number from 0 to {FARTHEST:,}"
            raise self.aggregates.reader.source.refuse("a number of groups", advice, node)
        return int(digits)

    def _number(self, node: Node) -> float | None:
        """Return a number that is written out; None for anything else."""
        if type(node).__name__ not in ("Literal", "Neg", "Paren"):
            return None
        with suppress(FarthingError):
            match self.aggregates.reader.scalar(node):
                case Literal(int() | float() as value) if not isinstance(value, bool):
                    return float(value)
        return None

    def _refused(self, node: Node) -> Exception:
        """Return the refusal of what no interval is known of."""
        window, kind = neighbour_in(self.whole), type(node).__name__
        word = "a share of a total" if window is None else f"{_word(window)} over groups"
        what = _CALLED.get(kind) or function_name(node)[:40] or kind.upper()
        return self.aggregates.reader.source.refuse(f"{what} beside {word}", _FREE, node)


def _numbered(terms: Polynomial, kept: list[int]) -> Polynomial:
    """Return a sum with the places of its cells counted among some of them."""
    return Polynomial.of({tuple(kept.index(cell) for cell in cells): times for cells, times in terms.parts})


def _function(window: Node) -> Node:
    """Return the function of a window."""
    function = window.this
    while type(function).__name__ in ("IgnoreNulls", "RespectNulls", "Paren", "Filter"):
        function = function.this
    return function


def _word(window: Node) -> str:
    """Return the name of the function of a window."""
    return function_name(_function(window))


def _text(read: Read) -> str:
    """Return what tells a number from others, in its unit."""
    nodes = [*(one.sql() for one in read.over), "", *(one.sql() for one in read.order)]
    return repr((read.aggregate.canonical(), getattr(read.aggregate, "factor", 1), nodes))


def _where(other: Other | None) -> object:
    """Return what tells the group that a number is of from others."""
    if other is None:
        return None
    nodes = tuple(one.sql() for one in other.over), tuple(one.sql() for one in other.order)
    return replace(other, node=None, over=(), order=()), nodes
