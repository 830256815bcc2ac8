"""Arithmetic with aggregates: what is one aggregate of another value is read as that; the rest is refused by name."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from farthing.query.aggregates import (
    Aggregate,
    Count,
    CountUnits,
    Formula,
    Mean,
    Quantile,
    Ratio,
    Single,
    Sum,
    least,
    ratio_of,
)
from farthing.query.counts import CountValues
from farthing.query.expressions import Call, Case, Expression, FunctionName, IsNull, Literal, Not, Scalar
from farthing.query.schema import Type
from farthing.sql.aggregates import Aggregates, inner
from farthing.sql.asked_numbers import Read
from farthing.sql.combination import Combination
from farthing.sql.ranges import clamped, wide

if TYPE_CHECKING:
    from farthing.sql.nodes import NodeReader
    from farthing.sql.text import Node

ARITHMETIC: Final = frozenset({"Add", "Sub", "Mul", "Div", "Neg", "Cast", "TryCast"})
_CHOICES: Final = frozenset({"COALESCE", "IFNULL", "NULLIF"})


def is_arithmetic(node: Node) -> bool:
    """Return whether a node of the SELECT list computes with aggregates."""
    while type(node).__name__ == "Paren":
        node = node.this
    kind = type(node).__name__
    if kind not in ARITHMETIC and not (kind == "Anonymous" and str(node.name).upper() in _CHOICES):
        return False
    return any(inner(part) is not None for part in node.walk())


def read_arithmetic(node: Node, aggregates: Aggregates) -> Read:
    """Return the aggregate that arithmetic with aggregates is: one of another value, or else a formula of several.

    Sums and counts that are added, subtracted and multiplied by numbers are one sum; over a count or a sum they are a
    ratio, over COUNT(*) a mean; a mean or a quantile may be scaled and shifted. The largest parts of which that is true
    are one aggregate each, and the whole is a formula of them: a difference of two means, a product, ...

    Raises:
        UnsupportedQuery: a quantile in a formula, a division by what may be below zero.
    """
    whole = _Arithmetic(aggregates, node)
    part = whole.read(node)
    if isinstance(part.aggregate, float):
        what = f"a number that no row changes: {part.aggregate:g}"
        raise aggregates.reader.source.refuse(what, "leave it out: it is known, and costs nothing", node)
    return Read(part.aggregate, part.name, part.max_rows)


class _SeveralAggregatesError(Exception):
    """What is read is not one aggregate alone."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of arithmetic.

    Attributes:
        aggregate: what it is, or a number.
        name: the name of the column where the text gives none.
        max_rows: the most rows of one unit in a group, where a count's own bounds say so.
    """

    aggregate: Aggregate | float
    name: str = "formula"
    max_rows: int | None = None


@dataclass(frozen=True, slots=True)
class _Arithmetic:
    """Reads arithmetic.

    Attributes:
        aggregates: reads aggregates.
        node: the whole, for places in messages.
    """

    aggregates: Aggregates
    node: Node

    @property
    def reader(self) -> NodeReader:
        """Reads what is within aggregates."""
        return self.aggregates.reader

    def read(self, node: Node) -> _Part:
        """Return a part: as one aggregate if it is one, else as a formula."""
        with suppress(_SeveralAggregatesError):
            return self._one(node)
        kind = type(node).__name__
        if kind in ("Paren", "Cast", "TryCast"):
            return self.read(node.this)
        if kind == "Anonymous" and str(node.name).upper() in _CHOICES and self._is_chosen(node):
            return self.read(node.expressions[0])
        if kind == "Neg":
            return self._formula(_Part(-1.0), self.read(node.this), product=True)
        if kind in ("Add", "Sub", "Mul", "Div"):
            left, right = self.read(node.this), self.read(node.expression)
            with self.reader.source.located(node):
                match kind:
                    case "Sub":
                        right = self._formula(_Part(-1.0), right, product=True)
                    case "Div":
                        right = self._inverse(right, node.expression)
                return self._formula(left, right, product=kind in ("Mul", "Div"))
        if inner(node) is not None:
            read = self.aggregates.read(node)
            return _Part(read.aggregate, read.name, read.max_rows)
        raise self.refused(node)

    def _one(self, node: Node) -> _Part:
        """Return a part that is one aggregate, or a number."""
        made = self.combination(node).merged
        if made.is_number:
            return _Part(made.constant)
        with self.reader.source.located(node):
            return _Part(self.aggregate(made), self.name(made), made.max_rows)

    def _formula(self, left: _Part, right: _Part, *, product: bool) -> _Part:
        """Return the sum or the product of two parts."""
        sides = left.aggregate, right.aggregate
        one, other = sides
        if isinstance(one, float) and isinstance(other, float):
            return _Part(one * other if product else one + other)
        for number, side in (sides, sides[::-1]):
            if isinstance(number, float) and isinstance(side, Formula) and side.product == product:
                inner_number, rest = (side.left, side.right)
                if isinstance(inner_number, float):
                    one, other = (number * inner_number if product else number + inner_number), rest
        named = {part.max_rows for part in (left, right) if part.max_rows is not None}
        if len(named) > 1:
            raise self._two_bounds()
        if isinstance(one, float) and product and not abs(one) > 0:
            raise self.refused(self.node)
        if isinstance(other, float):
            one, other = other, one
        return _Part(Formula(one, other, product), max_rows=next(iter(named), None))

    def _inverse(self, part: _Part, node: Node) -> _Part:
        """Return one over a number, a count, a sum, a mean or a ratio of what is never below zero."""
        match part.aggregate:
            case float(number):
                if abs(number) > 0:
                    return replace(part, aggregate=1.0 / number)
                raise self.refused(self.node)
            case Mean(value, lower, upper) if lower >= 0:
                return replace(part, aggregate=Ratio(Count(value), Sum(value, lower, upper)))
            case Ratio(top, bottom) if least(top) >= 0:
                return replace(part, aggregate=Ratio(bottom, top))
        raise self.reader.source.refuse(
            "division by an aggregate",
            "divide counts and sums by one of them, and anything by a mean of values that are never below 0",
            node,
        )

    def combination(self, node: Node) -> Combination:  # noqa: PLR0911  # one a kind of node
        """Return what a node is."""
        kind = type(node).__name__
        if kind == "Paren":
            return self.combination(node.this)
        if inner(node) is not None and kind != "Div":
            return self._leaf(node)
        match kind:
            case "Neg":
                return self.combination(node.this).times(-1.0)
            case "Cast" | "TryCast":
                return self._cast(node)
            case "Anonymous":
                return self._choice(node)
            case "Literal" if not node.is_string:
                return Combination(self._number(node))
            case "Add" | "Sub" | "Mul" | "Div":
                left, right = self.combination(node.this), self.combination(node.expression)
                right = right.times(-1.0) if kind == "Sub" else right
                joined = {"Mul": self._product, "Div": self._quotient}.get(kind, self._sum)(left, right)
                return replace(joined, max_rows=self._most(left, right))
        raise self.refused(node)

    def aggregate(self, made: Combination) -> Aggregate:
        """Return the one aggregate that a combination is."""
        if made.alone is not None:
            return self._shifted(made.alone, made.factor, made.constant)
        if made.is_number:
            raise _SeveralAggregatesError
        whole = isinstance(made.below, Count) and made.below.value is None
        if whole and not self._plain(made):
            value, low, high = self._value(made)
            return Mean(value, low, high)
        if made.below is not None:
            constant = (made.constant, made.below)
            top = self._total(made.terms if not abs(made.constant) > 0 else (*made.terms, constant))
            return ratio_of(top, made.below)
        if abs(made.constant) > 0:
            raise _SeveralAggregatesError
        return self._total(made.terms)

    def name(self, made: Combination) -> str:
        """Return the name of the column where the text gives none."""
        if made.alone is not None:
            return "avg" if isinstance(made.alone, Mean) else "quantile"
        return "sum" if made.below is None else "ratio"

    def _leaf(self, node: Node) -> Combination:
        """Return an aggregate as a combination of itself."""
        read = self.aggregates.read(node)
        match read.aggregate:
            case Count() | CountUnits() | CountValues() | Sum() as part:
                return Combination(terms=((1.0, part),), max_rows=read.max_rows)
            case Mean() | Quantile() as alone:
                return Combination(alone=alone, max_rows=read.max_rows)
            case _:
                raise _SeveralAggregatesError

    def _cast(self, node: Node) -> Combination:
        """Return what is cast: answers are real numbers already."""
        from farthing.sql.scalars import cast_type

        if cast_type(self.reader, node.args["to"], node) is not Type.FLOAT:
            raise self.reader.source.refuse("CAST of an aggregate", "leave it out: answers are real numbers", node)
        return self.combination(node.this)

    def _choice(self, node: Node) -> Combination:
        """Return NULLIF(aggregate, 0) and COALESCE(aggregate, 0) as the aggregate: it is never NULL."""
        if self._is_chosen(node):
            return self.combination(node.expressions[0])
        raise self.reader.source.refuse(f"{str(node.name).upper()[:40]} of an aggregate", _OUTSIDE, node)

    def _is_chosen(self, node: Node) -> bool:
        """Return whether a call is NULLIF(aggregate, 0) or COALESCE(aggregate, 0), or the like."""
        if str(node.name).upper() not in _CHOICES or len(node.expressions) != 2:
            return False
        other = node.expressions[1]
        return type(other).__name__ == "Literal" and not other.is_string and not abs(self._number(other)) > 0

    def _number(self, node: Node) -> float:
        """Return a constant."""
        scalar = self.reader.scalar(node)
        match scalar:
            case Literal(int() | float() as value) if not isinstance(value, bool):
                return float(value)
            case _:
                raise self.refused(node)

    def _sum(self, left: Combination, right: Combination) -> Combination:
        """Return a sum of two combinations over the same thing."""
        if left.is_number or right.is_number:
            number, other = (left, right) if left.is_number else (right, left)
            return replace(other, constant=other.constant + number.constant)
        if left.alone is not None and left.alone == right.alone:
            factor, constant = left.factor + right.factor, left.constant + right.constant
            return replace(left, factor=factor, constant=constant) if abs(factor) > 0 else Combination(constant)
        if left.alone is not None or right.alone is not None or left.below != right.below:
            raise _SeveralAggregatesError
        return Combination(left.constant + right.constant, (*left.terms, *right.terms), left.below)

    def _product(self, left: Combination, right: Combination) -> Combination:
        """Return a combination times a number."""
        if left.is_number:
            return right.times(left.constant)
        if right.is_number:
            return left.times(right.constant)
        raise _SeveralAggregatesError

    def _quotient(self, left: Combination, right: Combination) -> Combination:
        """Return a combination over a number, or over counts and sums."""
        if right.is_number and abs(right.constant) > 0:
            return left.times(1.0 / right.constant)
        if right.is_number or right.alone is not None or right.below is not None or abs(right.constant) > 0:
            raise _SeveralAggregatesError
        if left.alone is not None or left.below is not None or left.is_number or abs(left.constant) > 0:
            raise _SeveralAggregatesError
        below = self._total(right.terms)
        return Combination(terms=left.terms, below=below)

    def _plain(self, made: Combination) -> bool:
        """Return whether a combination over another thing is one aggregate over another, as it is."""
        (factor, _), *more = made.terms
        return not more and not abs(made.constant) > 0 and not abs(factor - 1.0) > 0

    def _total(self, terms: tuple[tuple[float, Single], ...]) -> Single:
        """Return counts and sums, each times a number, added up: one sum of one value."""
        (factor, part), *more = terms
        if not more and not abs(factor - 1.0) > 0:
            return part
        value, low, high = self._value(Combination(terms=terms))
        return Sum(value, low, high)

    def _value(self, made: Combination) -> tuple[Scalar, float, float]:
        """Return what one row adds, and its range: every value clamped as in its own aggregate, and 0 where NULL."""
        values: list[Scalar] = []
        low = high = made.constant
        for factor, part in made.terms:
            value, least, most = self._row(part)
            values.append(value if not abs(factor - 1.0) > 0 else _times(value, factor))
            ends = (factor * least + 0.0, factor * most + 0.0)
            low, high = low + min(ends), high + max(ends)
        if abs(made.constant) > 0:
            values.append(_literal(made.constant))
        total = values[0]
        for value in values[1:]:
            total = Call(FunctionName.ADD, (total, value))
        return (total, *wide((low, high)))

    def _row(self, part: Single) -> tuple[Scalar, float, float]:
        """Return what one row adds to a count or a sum, and its range."""
        match part:
            case Count(value=value):
                if value is None:
                    return Literal(1), 1.0, 1.0
                return Case(((self._there(value), Literal(1)),), Literal(0)), 0.0, 1.0
            case Sum(value=value, lower=lower, upper=upper):
                return clamped(value, (lower, upper), self.reader, 0), min(lower, 0.0), max(upper, 0.0)
            case _:
                raise _SeveralAggregatesError

    def _there(self, value: Scalar) -> Expression:
        """Return the condition that a value is there; NaN and infinities are not values in arithmetic."""
        match value:
            case Case(branches=((condition, Literal()),), otherwise=None):
                return condition
        real = self.reader.type(value) in (Type.FLOAT, Type.DECIMAL)
        return Not(IsNull(Call(FunctionName.ADD, (value, Literal(0.0))) if real else value))

    def _shifted(self, alone: Mean | Quantile, factor: float, constant: float) -> Aggregate:
        """Return a mean or a quantile, scaled and shifted: of values that are."""
        if not abs(factor - 1.0) > 0 and not abs(constant) > 0:
            return alone
        if not abs(factor) > 0:
            raise _SeveralAggregatesError
        number: Scalar = clamped(alone.value, (alone.lower, alone.upper), self.reader, None)
        value = _times(number, factor) if abs(factor - 1.0) > 0 else number
        value = Call(FunctionName.ADD, (value, _literal(constant))) if abs(constant) > 0 else value
        low, high = sorted(factor * end + constant + 0.0 for end in (alone.lower, alone.upper))
        if isinstance(alone, Quantile):
            share = alone.q if factor > 0 else 1 - alone.q
            return Quantile.of(value, self.reader.type(value), share, low, high)
        return Mean(value, low, high)

    def _most(self, left: Combination, right: Combination) -> int | None:
        """Return the most rows of one unit in a group that both sides name."""
        named = {made.max_rows for made in (left, right) if made.max_rows is not None}
        if len(named) > 1:
            raise self._two_bounds()
        return next(iter(named), None)

    def _two_bounds(self) -> Exception:
        """Return the refusal of two bounds on rows."""
        advice = "one question has one bound on the rows of a unit in a group"
        return self.reader.source.refuse("two bounds on rows", advice, self.node)

    @staticmethod
    def _first(node: Node) -> Node:
        """Return the first aggregate within a node, or the node."""
        return next((part for part in node.walk() if inner(part) is not None), node)

    def refused(self, node: Node) -> Exception:
        """Return the refusal of other arithmetic."""
        return self.reader.source.refuse("arithmetic with an aggregate", ADVICE, self._first(node))


ADVICE: Final = (
    "counts, sums, means and variances may be added, subtracted, multiplied, and divided by counts, and by sums and "
    "means of values of 0 or more; select other aggregates by themselves, and compute with the answer: that is free"
)


_OUTSIDE: Final = (
    "write ROUND, FLOOR and CEIL around all of it; leave other functions out: an answer has a number for every group"
)


def _literal(number: float) -> Literal:
    """Return a constant; a whole number as one."""
    whole = math.isfinite(number) and number.is_integer() and abs(number) < 2**53
    return Literal(int(number) if whole else number)


def _times(value: Scalar, factor: float) -> Scalar:
    """Return a value times a number; a choice of constants is one of their products."""
    match value:
        case Literal(int() | float() as one) if not isinstance(one, bool):
            return _literal(one * factor)
        case Case(branches, otherwise) if all(
            isinstance(scalar, Literal) for scalar in (*(chosen for _, chosen in branches), otherwise)
        ):
            scaled = tuple((test, _times(chosen, factor)) for test, chosen in branches)
            return Case(scaled, None if otherwise is None else _times(otherwise, factor))
        case _:
            return Call(FunctionName.MULTIPLY, (value, _literal(factor)))
