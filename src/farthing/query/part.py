"""One of several disjoint parts of the data, by the values of a column."""

from __future__ import annotations

import json
from dataclasses import dataclass

from farthing.query.expressions import Column, Compare, Literal, Operator


@dataclass(frozen=True, slots=True)
class QueryPart:
    """The rows of one part of a partition.

    Guarantee: one unit counts in at most one part of a partition. Adding or removing it leaves all others as they are.
    Proof: docs/proofs/session.partition.md.
    Assumes: an engine that keeps the contract of `engines.Engine.measure`.
    Rounds: nothing.

    Attributes:
        column: the column whose values tell the parts apart.
        choices: the values of all parts, each once, in one order.
        place: which of them this part is.

    >>> part = QueryPart("region", (Literal("north"), Literal("south")), 1)
    >>> str(part)
    "region = 'south'"
    """

    column: str
    choices: tuple[Literal, ...]
    place: int

    def condition(self, place: int | None = None) -> Compare:
        """Return the condition of the rows of this part, or of another one of its partition."""
        return Compare(Column(self.column), Operator.EQ, self.choices[self.place if place is None else place])

    @property
    def partition(self) -> str:
        """The identity text of the whole partition."""
        return json.dumps([self.column, [choice.canonical() for choice in self.choices]])

    def canonical(self) -> str:
        """Return the identity text of this part, its partition included."""
        return json.dumps([self.partition, self.place])

    def __str__(self) -> str:
        return str(self.condition())
