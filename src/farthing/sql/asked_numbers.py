"""Numbers of the SELECT list as they were read: aggregates, and what is computed of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.query.aggregates import least
from farthing.query.comparison import ComputedNumber, Neighbour

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.query.aggregates import Aggregate
    from farthing.query.comparison import Polynomial
    from farthing.query.key_order import OrderKey
    from farthing.query.rounding import Rounding
    from farthing.sql.text import Node


@dataclass(frozen=True, slots=True)
class Read:
    """One aggregate as it was read.

    Attributes:
        aggregate: what is computed.
        name: the column's name where the text gives none.
        max_rows: the most rows of one unit in a group, where a count's own bounds say so.
        over: of what is told of several groups, the grouping columns in which the groups of one total are alike.
        order: of a running total, the keys in whose order groups are added up.
        each: whether these must tell every group of a total from the others.
        rounding: what is done to the released number, or None.
        compared: where it is computed of released numbers, of which and how; the aggregate is then that of the first.
    """

    aggregate: Aggregate
    name: str
    max_rows: int | None = None
    over: tuple[Node, ...] = ()
    order: tuple[Node, ...] = ()
    each: bool = False
    rounding: Rounding | None = None
    compared: Compared | None = None


@dataclass(frozen=True, slots=True)
class Other:
    """Which group a number is of, as the text says it.

    Attributes:
        node: the window.
        over, order: what PARTITION BY and ORDER BY name.
        back: how many groups before it; None for the first or the last.
        last: whether it is the last, where `back` is None.
        default: the number where there is no such group, or None.
    """

    node: Node
    over: tuple[Node, ...]
    order: tuple[Node, ...]
    back: int | None
    last: bool = False
    default: float | None = None

    @property
    def may_be_none(self) -> bool:
        """Whether some groups have no such other one, so that the number is NULL there."""
        return self.back not in (None, 0) and self.default is None


def never_negative(read: Read, other: Other | None) -> bool:
    """Return whether the truth of a number is never below zero."""
    return least(read.aggregate) >= 0 and (other is None or (other.default or 0.0) >= 0)


@dataclass(frozen=True, slots=True)
class Compared:
    """What is computed of released numbers, as it was read.

    Attributes:
        cells: the numbers, and which group each is of; None for the group itself.
        above, below: the sums that it is, one over the other.
        otherwise: the number where there is none, or None.
    """

    cells: tuple[tuple[Read, Other | None], ...]
    above: Polynomial
    below: Polynomial
    otherwise: float | None = None

    def named(
        self,
        name: str,
        column: Callable[[Read], str],
        keys: Callable[[Other], tuple[tuple[str, ...], tuple[OrderKey, ...]]],
    ) -> ComputedNumber:
        """Return it with the names of the answer's columns.

        Args:
            name: its own.
            column: the name of the column that a number is.
            keys: the grouping columns that PARTITION BY names, and the keys of ORDER BY.
        """
        cells, positive = [], []
        for read, other in self.cells:
            where = None
            if other is not None:
                over, order = keys(other)
                where = Neighbour(order, over, other.back, other.last, other.default)
            cells.append((column(read), where))
            positive.append(never_negative(read, other))
        return ComputedNumber(name, tuple(cells), self.above, self.below, tuple(positive), self.otherwise).joined
