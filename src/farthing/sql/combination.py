"""Counts and sums that are added, multiplied by numbers, and divided by one of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farthing.query.aggregates import Mean, Quantile, Single


@dataclass(frozen=True, slots=True)
class Combination:
    """A number, plus numbers times counts and sums, over one count or sum if there is one below.

    Or a number, plus a number times one mean or quantile, which is `alone`.

    Attributes:
        constant: the number that is added.
        terms: numbers, and the counts and sums that they multiply.
        below: what all is divided by, the constant too; None where there is none.
        alone: a mean or a quantile; the only term is then its factor.
        max_rows: the most rows of one unit in a group, where a count's own bounds say so.
    """

    constant: float = 0.0
    terms: tuple[tuple[float, Single], ...] = ()
    below: Single | None = None
    alone: Mean | Quantile | None = None
    factor: float = 1.0
    max_rows: int | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is a constant."""
        return not self.terms and self.alone is None

    @property
    def merged(self) -> Combination:
        """The same with every count and sum once, and without those that cancel out."""
        found: dict[str, tuple[float, Single]] = {}
        for factor, part in self.terms:
            before = found.get(part.canonical(), (0.0, part))[0]
            found[part.canonical()] = (before + factor, part)
        left = {text: term for text, term in found.items() if abs(term[0]) > 0}
        own = None if self.below is None else self.below.canonical()
        if self.terms and (not left or left.keys() == {own}):
            return Combination(self.constant + sum(factor for factor, _ in left.values()), max_rows=self.max_rows)
        return replace(self, terms=tuple(left.values()))

    def times(self, number: float) -> Combination:
        """Return it times a number."""
        terms = tuple((number * factor, part) for factor, part in self.terms)
        return replace(self, constant=number * self.constant, terms=terms, factor=number * self.factor)
