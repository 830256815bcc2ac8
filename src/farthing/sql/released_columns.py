"""The columns of an answer, as HAVING, ORDER BY and a SELECT above name them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from farthing.errors import FarthingError
from farthing.query.expressions import Column, Scalar
from farthing.query.rounding import UNROUNDED
from farthing.query.schema import Schema, Type
from farthing.sql.aggregates import Aggregates, inner
from farthing.sql.arithmetic import is_arithmetic, read_arithmetic
from farthing.sql.compared import neighbour_in
from farthing.sql.grouping_sets import is_level
from farthing.sql.listing import level_of, read_over_groups, within
from farthing.sql.names import Names, Place
from farthing.sql.released_numbers import Numbers, told_alike
from farthing.sql.rounded import peeled
from farthing.sql.total import function_name, total_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.query.aggregates import NamedAggregate
    from farthing.query.comparison import ComputedNumber
    from farthing.query.rounding import Rounding
    from farthing.sql.text import Node

ENDS = ("_lower", "_upper")
"""The ends of an interval are answer columns, too: n_lower and n_upper."""

EVERY = tuple(end + before for before in ("", UNROUNDED) for end in ("", *ENDS))
"""What is added to the name of an aggregate: for its number and its ends, as they are shown and before rounding."""


@dataclass(frozen=True, slots=True)
class ReleasedColumns:
    """The columns of an answer.

    Attributes:
        columns: the names of the SELECT list, in its order.
        groups: (name, scalar) of every grouping column.
        outputs: the aggregates.
        aggregates: reads an aggregate in HAVING or ORDER BY.
        levels: (name, columns) of each GROUPING.
        select: the question.
        bodies: what each column is in the text, by its name in small letters.
        first: (name, scalar) of every grouping column as the question itself names it: bodies have these names.
        rounded: what is done to columns that are shown in fewer digits, by their names.
        comparisons: what is computed of released numbers.
    """

    columns: tuple[str, ...]
    groups: tuple[tuple[str, Scalar], ...]
    outputs: tuple[NamedAggregate, ...]
    aggregates: Aggregates
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    select: Node | None = None
    bodies: Mapping[str, Node] = field(default_factory=dict)
    first: tuple[tuple[str, Scalar], ...] = ()
    rounded: Mapping[str, Rounding] = field(default_factory=dict)
    comparisons: tuple[ComputedNumber, ...] = ()

    def __post_init__(self) -> None:
        refuse = self.aggregates.reader.source.refuse
        ends = {(name + end).casefold(): name for name in self.numbers for end in (*ENDS, "_estimate")}
        for name in dict.fromkeys((*self.columns, *dict(self.groups), *self.numbers)):
            if name.casefold().endswith(UNROUNDED):
                what, advice = f"a name that ends in {UNROUNDED.strip()!r}", "numbers that are rounded have such names"
                raise refuse(what, f"{advice}: choose another", self.select)
            if name.casefold() in ends:
                advice = f"the answer to {ends[name.casefold()]!r} has a column of that name: choose another alias"
                raise refuse(f"the name {name!r}", advice, self.bodies.get(name.casefold(), self.select))
        for one in self.comparisons:
            if one.name in ("", "met", "paid"):
                raise refuse(f"the name {one.name!r}", "every answer has met and paid: choose another", self.select)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of all numbers: what is measured, and what is computed of it."""
        return (*(one.name for one in self.outputs), *(one.name for one in self.comparisons))

    @property
    def names(self) -> Names:
        """What names mean after the release."""
        reader = self.aggregates.reader
        kinds = {name: reader.type(scalar) for name, scalar in self.groups}
        kinds |= {name: Type.INTEGER for name, _ in self.levels}
        for name in self.numbers:
            kinds[name] = Type.FLOAT
            for end in EVERY if name in self.rounded else ENDS:
                kinds.setdefault(name + end, Type.FLOAT)
        return Names((Place.of("the answer", None, Schema.of(kinds)),))

    def stands_for(self, node: Node) -> Scalar | None:  # noqa: PLR0911  # one a kind of node
        """Return the answer column that a node is: an aggregate of the SELECT list, or a grouping expression.

        Raises:
            UnsupportedQuery: an aggregate that is not in the SELECT list.
        """
        body, rounding = peeled(node, self.aggregates.reader.source)
        if rounding is not None:
            return self._rounded(body, rounding)
        if self.select is not None and total_in(node) is not None:
            return self._share(node, self.select)
        if is_arithmetic(node):
            return self._computed(node)
        if inner(node) is not None:
            return self._aggregate(node)
        if is_level(node):
            return self._level(node)
        kind = type(node).__name__
        if kind in ("Literal", "Boolean", "Paren", "Null") or (kind == "Column" and self._is_answer(node)):
            return None
        try:
            scalar = self.aggregates.reader.scalar(node)
        except FarthingError:  # no expression of the table: its parts may be answer columns
            return None
        text = scalar.canonical()
        return next((Column(name) for name, group in self.groups if group.canonical() == text), None)

    def _is_answer(self, node: Node) -> bool:
        """Return whether a column is named as the answer names it."""
        known = {name.casefold() for name, _ in self.groups}
        known |= {name.casefold() for name, _ in self.levels}
        known |= {name.casefold() + end for name in self.numbers for end in ("", *ENDS)}
        return node.args.get("table") is None and str(node.name).casefold() in known

    def _level(self, node: Node) -> Scalar:
        """Return the column of a GROUPING(...)."""
        reader = self.aggregates.reader
        columns = level_of(node, reader, {scalar.canonical(): name for name, scalar in self.groups})
        found = next((name for name, of in self.levels if of == columns), None)
        if found is None:
            raise reader.source.refuse("GROUPING that is not selected", "put it in the SELECT list", node)
        return Column(found)

    def _rounded(self, body: Node, rounding: Rounding) -> Scalar | None:
        """Return the column of a rounded number of the SELECT list; None for another, which is rounded afterwards."""
        found = self.stands_for(body)
        name = found.name.removesuffix(UNROUNDED) if isinstance(found, Column) else ""
        return Column(name) if self.rounded.get(name) == rounding else None

    def _column(self, name: str) -> Column:
        """Return the column of an aggregate, as it was before it was rounded."""
        return Column(name + UNROUNDED if name in self.rounded else name)

    def _share(self, node: Node, select: Node) -> Scalar | None:
        """Return the column of a share of a total, or of LAG; None for other arithmetic, whose parts may be."""
        reader, named = self.aggregates.reader, {scalar.canonical(): name for name, scalar in self.groups}
        read = read_over_groups(node, self.aggregates, select)
        assert read is not None  # noqa: S101  # there is a total in it
        if read.compared is None:
            asked = within(read, named, reader)
            name = next((one.name for one in self.outputs if told_alike(one.aggregate, asked)), None)
        else:
            made = Numbers(list(self.outputs), set(), named, reader).made(read)
            name = next((one.name for one in self.comparisons if replace(one, name="") == made), None)
        if name is None and type(node).__name__ == "Window":
            advice = "put the number that it is part of in the SELECT list, and compare its alias"
            what = "a total over groups" if neighbour_in(node) is None else f"{function_name(node.this)} over groups"
            raise reader.source.refuse(f"{what} that is not selected", advice, node)
        return None if name is None else self._column(name)

    def _computed(self, node: Node) -> Scalar | None:
        """Return the column of arithmetic that is in the SELECT list; None for other arithmetic, whose parts may be."""
        try:
            text = read_arithmetic(node, self.aggregates).aggregate.canonical()
        except FarthingError:  # no one aggregate: it is computed of answer columns
            return None
        same = (output.name for output in self.outputs if output.aggregate.canonical() == text)
        return next((self._column(name) for name in same), None)

    def _aggregate(self, node: Node) -> Scalar | None:
        """Return the column of an aggregate; None for a ratio that is none, whose parts may be."""
        text = self.aggregates.read(node).aggregate.canonical()
        for output in self.outputs:
            if output.aggregate.canonical() == text:
                return self._column(output.name)
        if type(inner(node)).__name__ == "Div":
            return None
        raise self.aggregates.reader.source.refuse(
            "an aggregate that is not selected", "put it in the SELECT list, so that it is released", node
        )
