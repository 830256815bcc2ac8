"""A count or sum of a group over what several groups add up to."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from farthing.errors import InvalidBounds, UnsupportedQuery

if TYPE_CHECKING:
    from farthing.query.measures import Measure


class Counted(Protocol):
    """A count or a sum: one measure, as it is."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The one measure that it is."""

    def canonical(self) -> str:
        """Return the identity text."""


def check_total(words: tuple[str, str], part: Counted, factor: float, *, why: str = "") -> None:
    """Refuse what is told of a total whose values may be negative, or that is multiplied by a number not above zero.

    Args:
        words: what it is: "a share", "of a total".
        part: what is counted or added up.
        factor: what is multiplied by.
        why: what the rule of values adds.
    """
    told, of = words
    if getattr(part, "lower", 0.0) < 0:
        raise InvalidBounds(
            f"{told} {of} of values that may be negative",
            rule=f"lower >= 0 for the values that are added up{why}",
            got=str(part),
            next_step="pass lower=0, if the values are not negative",
        )
    if not 0 < factor < math.inf:
        raise UnsupportedQuery(
            f"{told} {of} times a number that is not above zero",
            construct=f"{told} {of}",
            rule=f"{told} may be multiplied by a number above 0, such as 100",
            got=repr(factor),
            next_step="multiply the answer",
        )


@dataclass(frozen=True, slots=True)
class ShareOfTotal:
    """A count or sum of a group over the sum of the same of several groups: COUNT(*) / SUM(COUNT(*)) OVER ().

    The total is that of the groups that are asked. Where it is zero there is no share, and no number is wrong.

    Attributes:
        part: what is counted or added up; it is never below zero.
        over: the grouping columns in which the groups of one total are alike; none for one total of all groups.
        factor: what the share is multiplied by: 100 for percent.
    """

    part: Counted
    over: tuple[str, ...] = ()
    factor: float = 1.0
    form: ClassVar[str] = "share"

    def __post_init__(self) -> None:
        why = ": near a total of zero a share says nothing"
        check_total(("a share", "of a total"), self.part, self.factor, why=why)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measure that it is a function of, of all groups of its total."""
        return self.part.measures

    def canonical(self) -> str:
        """Return the identity text: the factor is the unit in which the same share is told."""
        return json.dumps(["share", self.part.canonical(), sorted(self.over)])

    def __str__(self) -> str:
        within = f"PARTITION BY {', '.join(self.over)}" if self.over else ""
        times = "" if self.factor == 1 else f"{self.factor:g} * "
        return f"{times}{self.part} / SUM({self.part}) OVER ({within})"
