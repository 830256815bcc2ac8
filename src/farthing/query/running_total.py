"""What the groups of a question add up to, in an order: SUM(COUNT(*)) OVER (ORDER BY month)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from farthing.query.share_of_total import Counted, ShareOfTotal, check_total

if TYPE_CHECKING:
    from farthing.query.key_order import OrderKey
    from farthing.query.measures import Measure


@dataclass(frozen=True, slots=True)
class RunningTotal:
    """A count or a sum of a group and of all before it, of the groups that are asked; or the part that it is of all.

    Attributes:
        part: what is counted or added up; it is never below zero.
        over: the grouping columns in which the groups of one total are alike; none for one total of all groups.
        order: the keys of the order; groups that are alike in them are added up together, and none is all of a total.
        divided: whether it is told as a part of the whole total.
        factor: what it is multiplied by: 100 for percent.
    """

    part: Counted
    over: tuple[str, ...] = ()
    order: tuple[OrderKey, ...] = ()
    divided: bool = False
    factor: float = 1.0
    form: ClassVar[str] = "running"

    def __post_init__(self) -> None:
        check_total(("a total", "over groups"), self.part, self.factor)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measure that it is a function of, of all groups of its total."""
        return self.part.measures

    def canonical(self) -> str:
        """Return the identity text: the factor is the unit in which the same number is told."""
        order = [[key.column, key.descending, key.nulls_first] for key in self.order]
        return json.dumps(["running", self.part.canonical(), sorted(self.over), order, self.divided])

    def __str__(self) -> str:
        within = f"PARTITION BY {', '.join(self.over)}" if self.over else ""
        order = f"ORDER BY {', '.join(map(str, self.order))}" if self.order else ""
        times = "" if self.factor == 1 else f"{self.factor:g} * "
        below = f" / SUM({self.part}) OVER ({within})" if self.divided else ""
        return f"{times}SUM({self.part}) OVER ({' '.join(filter(None, (within, order)))}){below}"


OverGroups: TypeAlias = ShareOfTotal | RunningTotal
"""What is told of several groups at once."""
