"""What SQL text asks for, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farthing.query.aftermath import Aftermath
from farthing.query.running_total import OverGroups

if TYPE_CHECKING:
    from farthing.query.aggregates import NamedAggregate
    from farthing.query.expressions import Expression, Scalar
    from farthing.query.joins import Join
    from farthing.query.per_unit import Derived


@dataclass(frozen=True, slots=True)
class Options:
    """What the text itself set in `SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (...)`; None for what it left out.

    Attributes:
        relative: wanted half-width as a fraction of the truth, in [0, 1).
        absolute: wanted half-width in answer units, > 0.
        confidence: the chance that the promise holds, in (0, 1).
        epsilon, delta: the loss to pay, or with a target the most to pay.
        max_epsilon: the most to pay.
        unit: the privacy unit column that the text names; it is the session's.
        max_groups, max_rows: contribution bounds.
    """

    relative: float | None = None
    absolute: float | None = None
    confidence: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    max_epsilon: float | None = None
    unit: str | None = None
    max_groups: int | None = None
    max_rows: int | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What SQL text asks for.

    Attributes:
        by: the names of the grouping columns, in the order of GROUP BY.
        where: the rows that count, or None for all.
        outputs: the aggregates with their names, in the order of the SELECT list.
        groupings: what the grouping columns are that the table does not have: (name, scalar) pairs.
        joins: the tables beside the protected one, in order.
        aftermath: what is done to the released answer: HAVING, ORDER BY, LIMIT, OFFSET.
        columns: the names of the SELECT list, in its order.
        explain: whether the text began with EXPLAIN: a price is asked, nothing else.
        options: what the text set itself.
        sets: the grouping columns of each set of CUBE, ROLLUP, GROUPING SETS, () the total; none for a plain GROUP BY.
        levels: (name, columns) of each GROUPING of the SELECT list.
        derived: the rows that are made of one unit's rows each, in order.
        source: which of these the question is of, or None for the protected table.
    """

    by: tuple[str, ...]
    where: Expression | None
    outputs: tuple[NamedAggregate, ...]
    groupings: tuple[tuple[str, Scalar], ...] = ()
    joins: tuple[Join, ...] = ()
    aftermath: Aftermath = field(default_factory=Aftermath)
    columns: tuple[str, ...] = ()
    explain: bool = False
    options: Options = field(default_factory=Options)
    sets: tuple[tuple[str, ...], ...] = ()
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    derived: tuple[Derived, ...] = ()
    source: str | None = None

    @property
    def shows_answer(self) -> bool:
        """Whether the answer is shown as it is."""
        return self.aftermath == Aftermath()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of the numbers that are shown, beside what they are about."""
        shown = {one.name for one in self.outputs} | {one.name for one in self.aftermath.comparisons}
        rounded = ", ".join(f"{name} to {how}" for name, how in self.aftermath.rounded if name in shown)
        found = [f"rounded: {rounded}, ends outward; targets are those of the numbers before"] if rounded else []
        totals = any(isinstance(output.aggregate, OverGroups) for output in self.outputs)
        if totals and self.aftermath.having is not None:
            found.append("groups that HAVING, QUALIFY or WHERE of the answer hides are in the totals")
        for one in self.aftermath.comparisons:
            columns = ", ".join(dict.fromkeys(name for name, _ in one.cells))
            many = f": its interval holds where those of the {len(one.cells)} numbers do" if len(one.cells) > 1 else ""
            found.append(f"{one.name} is computed of {columns} as released{many}")
        if self.aftermath.having is not None and any(
            where for one in self.aftermath.comparisons for _, where in one.cells
        ):
            found.append("groups that HAVING, QUALIFY or WHERE of the answer hides count as groups before and after")
        return tuple(found)

    @property
    def name(self) -> str:
        """The name of the first answer column."""
        return self.outputs[0].name
