"""What a question counts, step by step: the one description of bounded cells, which every backend prints or runs.

A *cell* is what one unit has in one group. Which rows come into it, what drops rows before what, where a unit is kept
and how much of it counts is decided here and nowhere else: backends read nothing of a `Query` (a test asserts that).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from farthing.query.aggregates import Quantile
from farthing.query.expressions import Column
from farthing.query.joins import Join
from farthing.query.measures import Distinct
from farthing.query.normal import conjunction
from farthing.query.per_unit import PerUnit

if TYPE_CHECKING:
    from farthing.privacy.unit import PrivacyUnit
    from farthing.query.expressions import Compare, Expression, Scalar
    from farthing.query.keys import Keys
    from farthing.query.measures import Measure
    from farthing.query.per_unit import Derived, Part
    from farthing.query.query import Query

PARTS_SALT: Final = 0x70617274
"""Joined to the hash key where the part of a unit is chosen, so that it tells nothing of the groups that it keeps."""


@dataclass(frozen=True, slots=True)
class KeepHome:
    """Keep the rows, in the part that is asked, of the units whose home it is.

    Of the parts in which a unit has rows, its home is the one whose keyed hash of (unit, part's place) comes first,
    ties by place. A row is in the first part whose condition is TRUE, if any.

    Attributes:
        parts: the conditions of all parts, on columns of the protected table.
        place: which of them is asked.
    """

    parts: tuple[Compare, ...]
    place: int

    def key(self, hash_key: int) -> int:
        """Return the key of the hash that chooses.

        >>> KeepHome((), 0).key(7) == 7
        False
        """
        return hash_key ^ PARTS_SALT


@dataclass(frozen=True, slots=True)
class KeepWhere:
    """Keep the rows whose unit is not NULL and on which a condition is TRUE.

    Attributes:
        condition: in normal form; None for all.
    """

    condition: Expression | None


Step: TypeAlias = KeepHome | Join | KeepWhere
"""What is done to the rows so far. A join puts beside each row those that it meets: see `query.joins`."""


@dataclass(frozen=True, slots=True)
class BoundedQuery:
    """A question as steps: rows of the protected table, then every step in order, then cells, each cut, then groups.

    Rows that are left belong to a unit and, by the grouping scalars, to a group; those of no listed group are dropped.
    A cell adds at most `max_rows` rows. Of its cells a unit keeps those of `max_groups` groups whose keyed hash of
    (unit, group's place) comes first, ties by place; where keys are to be found, of (unit, key), and NaN is not a key.

    Guarantee: of all questions that differ in the part of one partition that they ask, one unit counts in one only.
    Proof: docs/proofs/engines.bounded.md, "Parts": `KeepHome` comes first of the steps, so that it sees all rows of a
        unit in the protected table, and reads nothing that such questions do not share.
    Assumes: backends do the steps in their order, which one generator of questions checks on each of them.
    Rounds: nothing.

    Attributes:
        unit: whose presence is hidden.
        steps: `KeepHome` first, if a unit may have rows in several parts; the joins; `KeepWhere` last, always.
        groupings: the grouping scalars, in order, with their names.
        keys: the public groups, None without groups and where they are to be found.
        groups: the number of groups that are answered.
        measures: what is told of every group.
        quantiles: whose histograms are told.
        max_rows: the most rows of one unit that count in one group.
        max_groups: the most groups that a unit keeps; None where it cannot have more.
        derived: what stands for the protected table, or is joined: rows made of one unit's rows each, in order.
        source: which of these the steps begin with, or None for the protected table.
    """

    unit: PrivacyUnit
    steps: tuple[Step, ...]
    groupings: tuple[tuple[str, Scalar], ...]
    keys: Keys | None
    groups: int
    measures: tuple[Measure, ...]
    quantiles: tuple[Quantile, ...]
    max_rows: int
    max_groups: int | None
    derived: tuple[Derived, ...] = ()
    source: str | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """Return the names of the grouping scalars."""
        return tuple(name for name, _ in self.groupings)

    @property
    def joins(self) -> tuple[Join, ...]:
        """Return the tables that come beside the protected one, in order."""
        return tuple(step for step in self.steps if isinstance(step, Join))

    @property
    def finds(self) -> bool:
        """Return whether groups are to be found, and nothing is told of them but their units."""
        return not (self.measures or self.quantiles)

    @property
    def early(self) -> Expression | None:
        """Return a condition by which rows may be dropped as they are read, before any step.

        Where homes are chosen there is none: that takes all rows of a unit.
        """
        last = self.steps[-1]
        return last.condition if isinstance(last, KeepWhere) and not self.parted else None

    @property
    def parted(self) -> bool:
        """Return whether each unit's part has to be chosen."""
        return any(isinstance(step, KeepHome) for step in self.steps)

    @property
    def chooses(self) -> bool:
        """Return whether a hash chooses anything of a unit: its part, groups, values, or rows in a histogram."""
        ranks = bool(self.quantiles) or any(isinstance(measure, Distinct) for measure in self.measures)
        return self.max_groups is not None or self.parted or (ranks and not self.unit.is_row)

    @property
    def passes(self) -> tuple[tuple[list[int], BoundedQuery], ...]:
        """Return the measures that one pass over the cells gives, as questions, each with their places in this one.

        What cells add is added in one; different values of units are told apart in a pass for each measure of them.
        """
        places = range(len(self.measures))
        alone = [at for at in places if isinstance(self.measures[at], Distinct) and not self.unit.is_row]
        added = [at for at in places if at not in alone]
        split = [*([added] if added else []), *([at] for at in alone)]
        return tuple((few, replace(self, measures=tuple(self.measures[at] for at in few))) for few in split)


def bounded(query: Query) -> BoundedQuery:
    """Return what a question counts, step by step.

    >>> from farthing.privacy.unit import PrivacyUnit
    >>> from farthing.query import Bounds, Query, counting
    >>> query = Query("data", (), None, None, counting("n"), PrivacyUnit("u"), Bounds(max_rows=2))
    >>> bounded(query).steps
    (KeepWhere(condition=None),)
    """
    known = dict(query.groupings)
    return BoundedQuery(
        unit=query.unit,
        steps=(*_home(query), *query.joins, KeepWhere(query.rows)),
        groupings=tuple((name, known.get(name, Column(name))) for name in query.by),
        keys=query.keys,
        groups=query.groups,
        measures=query.measures,
        quantiles=tuple(output.aggregate for output in query.outputs if isinstance(output.aggregate, Quantile)),
        max_rows=query.max_rows,
        max_groups=query.max_groups if query.cuts_groups else None,
        derived=query.derived,
        source=query.source,
    )


def gathering(each: Part, query: BoundedQuery) -> BoundedQuery:
    """Return the rows of which a question's derived ones are made, as steps; and its groups beside the unit."""
    return BoundedQuery(
        unit=query.unit,
        steps=(*each.joins, KeepWhere(None if each.where is None else conjunction((each.where,)))),
        groupings=each.by if isinstance(each, PerUnit) else (),
        keys=None,
        groups=1,
        measures=(),
        quantiles=(),
        max_rows=1,
        max_groups=None,
        source=each.source,
    )


def _home(query: Query) -> tuple[KeepHome, ...]:
    """Return the choice of each unit's part, if it may have rows in several."""
    part = query.part
    if part is None or not query.cuts_parts:
        return ()
    return (KeepHome(tuple(map(part.condition, range(len(part.choices)))), part.place),)
