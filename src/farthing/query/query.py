"""One question: exact, bounded aggregates over public groups, as a value."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from farthing.errors import InvalidBounds, InvalidKeys, UnsupportedQuery
from farthing.query.measures import Total
from farthing.query.normal import conjunction
from farthing.query.per_unit import one_row
from farthing.query.ranges import ADDED
from farthing.query.shared_measures import needed

if TYPE_CHECKING:
    from typing import Self

    from farthing.privacy.unit import PrivacyUnit
    from farthing.query.aggregates import Aggregate, NamedAggregate
    from farthing.query.bounding import Bounds
    from farthing.query.expressions import Expression, Scalar
    from farthing.query.joins import Join
    from farthing.query.keys import Keys
    from farthing.query.measures import Measure
    from farthing.query.part import QueryPart
    from farthing.query.per_unit import Derived


@dataclass(frozen=True, slots=True)
class Query:
    """A question with everything that decides its true, bounded answer and its sensitivity.

    Guarantee: adding or removing one unit changes each measure in at most `max_groups` groups, each by at most the
        measure's `sensitivity(max_rows)`.
    Proof: [design, bound last] a unit's kept cells are a function of its own rows, the keys and the hash key alone;
        at most `max_groups` cells are kept and each holds at most `max_rows` rows. One row falls in at most one group,
        as the keys are distinct.
    Assumes: an engine that keeps the contract of `engines.Engine.measure`.
    Rounds: nothing; measures are integers.

    Attributes:
        table: the table's name in SQL.
        by: the names of the grouping columns; empty for one answer over the whole table.
        keys: the public groups, None exactly when `by` is empty.
        where: the rows that count, or None for all.
        outputs: what is computed for every group; names are not part of the identity. None is a search for keys: the
            groups are not known yet.
        unit: whose presence is hidden.
        bounds: the contribution bounds; both are needed for a unit column (max_groups only with groups).
        part: the part of a partition that is asked, or None for all rows.
        groupings: what the grouping columns are that the table does not have: (name, scalar) pairs.
        joins: the tables beside the protected one, in order.
        derived: the rows that are made of one unit's rows each, in an order in which each may name those before it.
        source: which of these the question is of, or None for the protected table.
    """

    table: str
    by: tuple[str, ...]
    keys: Keys | None
    where: Expression | None
    outputs: tuple[NamedAggregate, ...]
    unit: PrivacyUnit
    bounds: Bounds
    part: QueryPart | None = None
    groupings: tuple[tuple[str, Scalar], ...] = ()
    joins: tuple[Join, ...] = ()
    derived: tuple[Derived, ...] = ()
    source: str | None = None

    def __post_init__(self) -> None:
        if len(set(self.by)) != len(self.by):
            raise UnsupportedQuery(
                "a grouping column is named twice",
                construct="GROUP BY",
                got=", ".join(self.by),
                rule="each grouping column once",
                next_step="drop the repetition",
            )
        names = [*self.by, *(output.name for output in self.outputs)]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise UnsupportedQuery(
                "two columns of the answer have one name",
                construct="alias",
                got=repeated,
                next_step="give the aggregate another name: COUNT(*) AS n",
                rule="column names of an answer differ",
            )
        if self.outputs and (self.keys.names if self.keys is not None else ()) != self.by:
            raise InvalidKeys(
                "the keys are not those of the grouping columns",
                got=", ".join(self.by),
                rule="one key column for each grouping column, in order",
                next_step="build the keys with Keys.of",
            )
        if self.derived:
            self._check_derived()
        if not self.unit.is_row:
            self._require_bounds()

    def _check_derived(self) -> None:
        """Refuse rows made of a unit's rows where there is no unit column, or only a part of a unit's rows is asked."""
        if self.unit.is_row or self.part is not None:
            raise UnsupportedQuery(
                "a subquery with GROUP BY, windows or UNION ALL",
                construct="a subquery",
                rule="it reads several rows: all rows of one unit, which a unit column tells",
                got="one row as the unit" if self.unit.is_row else f"the part where {self.part}",
                next_step="ask the whole table, with the column of the privacy unit named at opening",
            )

    def _require_bounds(self) -> None:
        """Refuse a unit column without the bounds that make its sensitivity finite."""
        if self.one_row:
            return
        missing = [] if self.bounds.max_groups is not None or not self.by else ["max_groups"]
        missing += [] if self.bounds.max_rows is not None else ["max_rows"]
        if missing:
            raise InvalidBounds(
                f"{' and '.join(missing)} missing for the privacy unit {self.unit.column!r}",
                rule="a unit column needs a bound on the groups a unit is counted in and on its rows in each",
                next_step="pass bounds=Bounds(max_groups=5, max_rows=20), with numbers that fit the data",
                missing="bounds",
            )

    @property
    def groups(self) -> int:
        """Return the number of rows of the answer."""
        return 1 if self.keys is None else len(self.keys)

    @property
    def one_row(self) -> bool:
        """Return whether a unit has at most one row, whatever its bounds: no bound is needed, and nothing is cut."""
        return one_row(self.derived, self.source, self.joins, self.where)

    @property
    def max_groups(self) -> int:
        """Return the most groups one unit can be counted in."""
        most = self.fan_out if self.unit.is_row else self.bounds.max_groups or 1
        most = 1 if self.one_row else most
        return min(most, self.groups) if self.outputs else most

    @property
    def max_rows(self) -> int:
        """Return the most rows of one unit that count in one group."""
        if self.one_row:
            return 1
        return self.fan_out if self.unit.is_row else self.bounds.max_rows or 1

    @property
    def fan_out(self) -> int:
        """Return the most rows that one row of the table can become by joins, where one row is the unit."""
        return math.prod(join.fan_out or 1 for join in self.joins)

    @property
    def name(self) -> str:
        """Return the name of the first answer column."""
        return self.outputs[0].name

    @property
    def aggregate(self) -> Aggregate:
        """Return the first aggregate."""
        return self.outputs[0].aggregate

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Return what an engine computes: the measures that the aggregates need, each once."""
        return needed(output.aggregate for output in self.outputs)

    @property
    def sensitivity(self) -> int:
        """Return the most that one unit can add to one group of the first measure (of the rows, without any)."""
        return self.measures[0].sensitivity(self.max_rows) if self.measures else self.max_rows

    @property
    def cuts_groups(self) -> bool:
        """Return whether a unit may have to give up groups, so that a keyed hash has to choose."""
        if self.one_row and self.outputs:
            return False
        return not self.unit.is_row and (not self.outputs or self.max_groups < self.groups)

    @property
    def cuts_parts(self) -> bool:
        """Return whether a unit may have rows in several parts, so that a keyed hash has to choose one."""
        return not self.unit.is_row and self.part is not None

    @property
    def rows(self) -> Expression | None:
        """Return the condition of the rows that count, in normal form: what engines run. None for all rows.

        A part of a partition by rows is one more condition; with a unit column it is for the engine to choose.
        """
        return self._rows(self.where)

    def arranged(self) -> Self:
        """Return the same question with its keys in their one order, whichever way they were listed."""
        if self.keys is None or (self.keys.order is None and list(self.by) == sorted(self.by)):
            return self
        return replace(self, by=tuple(sorted(self.by)), keys=self.keys.arranged())

    def family(self, by: tuple[str, ...] | None = None, where: Expression | None = None) -> str:
        """Return the identity text without keys and bounds on groups.

        Args:
            by: the grouping columns of another question, to tell its family; None for this one's.
            where: the predicate of that other question.
        """
        columns, rows = (self.by, self.rows) if by is None else (by, self._rows(where))
        beside = [join.canonical() for join in self.joins]
        named = [[name, scalar.canonical()] for name, scalar in sorted(self.groupings, key=lambda pair: pair[0])]
        return json.dumps(
            [
                self.table,
                "; ".join(output.aggregate.canonical() for output in self.outputs),
                list(columns),
                "" if rows is None else rows.canonical(),
                "" if self.part is None else self.part.canonical(),
                self.unit.label,
                self.max_rows,
                *([named, beside] if named or beside or self.derived else []),
                *([self.source, [each.canonical() for each in self.derived]] if self.derived else []),
                *([ADDED] if any(isinstance(measure, Total) for measure in self.measures) else []),
            ]
        )

    def _rows(self, where: Expression | None) -> Expression | None:
        """Return the normal form of a predicate on the rows that are asked."""
        here = self.part.condition() if self.part is not None and self.unit.is_row else None
        return conjunction(tuple(part for part in (where, here) if part is not None))

    def canonical(self) -> str:
        """Return the identity text: equal texts ask for the same bounded truth of the same data set.

        Keys in another order are another text: `arranged` comes first.

        >>> from farthing.privacy.unit import PrivacyUnit
        >>> from farthing.query.aggregates import counting
        >>> from farthing.query.bounding import Bounds
        >>> one = Query("flights", (), None, None, counting("n"), PrivacyUnit(), Bounds())
        >>> one.canonical() == replace(one, outputs=counting("count")).canonical()
        True
        """
        return json.dumps([self.family(), "" if self.keys is None else self.keys.fingerprint, self.max_groups])
