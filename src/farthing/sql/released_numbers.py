"""The measured numbers of a question, and what is computed of them, by the names of their columns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from farthing.query.aggregates import NamedAggregate
from farthing.query.running_total import OverGroups, RunningTotal
from farthing.sql.listing import Listed, free_name, groups_of, order_of, within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from farthing.query.aggregates import Aggregate
    from farthing.query.comparison import ComputedNumber
    from farthing.query.key_order import OrderKey
    from farthing.sql.asked_numbers import Compared, Other, Read
    from farthing.sql.nodes import NodeReader


def told_alike(one: Aggregate, other: Aggregate) -> bool:
    """Return whether two aggregates are the same number: shares of a total times the same factor, too."""
    return one.canonical() == other.canonical() and getattr(one, "factor", 1) == getattr(other, "factor", 1)


@dataclass(slots=True)
class Numbers:
    """The measured numbers of a question, to which those join that others are computed of.

    Attributes:
        outputs: the aggregates.
        taken: the names of all columns, in small letters.
        named: the names of the grouping columns, by their canonical texts.
        reader: reads columns.
        now: the present names of grouping columns that a SELECT above renamed.
    """

    outputs: list[NamedAggregate]
    taken: set[str]
    named: Mapping[str, str]
    reader: NodeReader
    now: Mapping[str, str] = field(default_factory=dict)

    def made(self, read: Read) -> NamedAggregate | ComputedNumber:
        """Return a number without a name: an aggregate, or what is computed of released numbers."""
        return NamedAggregate("", self._told(read)) if read.compared is None else self.computed(read.compared)

    def computed(self, compared: Compared, name: str = "") -> ComputedNumber:
        """Return what is computed of released numbers, which join the others where they are not there."""
        return compared.named(name, self._column, self._keys)

    def _told(self, read: Read) -> Aggregate:
        """Return an aggregate with the present names of the grouping columns that it names."""
        return renamed_over(within(read, self.named, self.reader), self._now)

    def _now(self, name: str) -> str:
        """Return the present name of a grouping column."""
        return self.now.get(name, name)

    def _column(self, read: Read) -> str:
        """Return the name of a measured number; one that is not there joins the others, and is not shown."""
        told = self._told(read)
        found = next((one.name for one in self.outputs if told_alike(one.aggregate, told)), None)
        if found is None:
            found = free_name(read.name, self.taken)
            self.taken.add(found.casefold())
            self.outputs.append(NamedAggregate(found, told))
        return found

    def _keys(self, other: Other) -> tuple[tuple[str, ...], tuple[OrderKey, ...]]:
        """Return the columns in which groups are neighbours, and their order, which must leave no two alike."""
        over = groups_of("PARTITION BY", other.over, self.reader, self.named)
        order = order_of(other.order, self.reader, self.named)
        if set(self.named.values()) - {*over, *(key.column for key in order)}:
            advice = "add the other columns of GROUP BY to ORDER BY or PARTITION BY"
            raise self.reader.source.refuse("neighbours that are alike in ORDER BY", advice, other.order[0])
        return tuple(sorted(map(self._now, over))), tuple(replace(key, column=self._now(key.column)) for key in order)


def renamed_over(aggregate: Aggregate, name: Callable[[str], str]) -> Aggregate:
    """Return an aggregate; what is told of several groups with the new names of the columns that it names."""
    if not isinstance(aggregate, OverGroups):
        return aggregate
    over = tuple(sorted(map(name, aggregate.over)))
    if isinstance(aggregate, RunningTotal):
        order = tuple(replace(key, column=name(key.column)) for key in aggregate.order)
        return replace(aggregate, over=over, order=order)
    return replace(aggregate, over=over)


def comparisons(listed: Listed, columns: tuple[str, ...], numbers: Numbers) -> tuple[ComputedNumber, ...]:
    """Return what a SELECT list computes of released numbers, by the names of all items."""
    pairs = [(item.read, name) for item, name in zip(listed.items, columns, strict=True)]
    return tuple(numbers.computed(read.compared, name) for read, name in pairs if read and read.compared)
