"""Rows that stay rows, each of one unit: beside what windows by the unit tell of them, or those of several tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from farthing.query.expressions import Column, Compare, Literal, Operator, Scalar, type_of
from farthing.query.normal import conjuncts
from farthing.query.schema import Schema, Type

if TYPE_CHECKING:
    from farthing.query.expressions import Expression
    from farthing.query.joins import Join


class WindowKind(StrEnum):
    """What a window may tell of a row."""

    ROW_NUMBER = "row_number"
    RANK = "rank"
    DENSE_RANK = "dense_rank"
    LAG = "lag"
    LEAD = "lead"
    FIRST_VALUE = "first_value"
    LAST_VALUE = "last_value"
    COUNT = "count"
    SUM = "sum"
    MEAN = "avg"
    MIN = "min"
    MAX = "max"


PLACES: Final = frozenset({WindowKind.ROW_NUMBER, WindowKind.RANK, WindowKind.DENSE_RANK})
"""Windows that tell where a row stands, of no value."""

ONE_ROW: Final = frozenset({WindowKind.LAG, WindowKind.LEAD, WindowKind.FIRST_VALUE, WindowKind.LAST_VALUE})
"""Windows that tell the value of one row."""

FRAMED: Final = frozenset({WindowKind.FIRST_VALUE, WindowKind.LAST_VALUE})
"""Windows that tell the value of one row of a frame."""

AGGREGATES: Final = frozenset(WindowKind) - PLACES - ONE_ROW
"""Windows that tell an aggregate of a frame; `FeatureKind` has the same words."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """One key of an order: a value, its direction, and where NULL stands; NaN is NULL."""

    value: Scalar
    descending: bool = False
    nulls_first: bool = False

    def canonical(self) -> str:
        """Return the identity text."""
        return json.dumps([self.value.canonical(), self.descending, self.nulls_first])

    def __str__(self) -> str:
        return f"{self.value}{' DESC' * self.descending}{' NULLS FIRST' * self.nulls_first}"


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """The rows of a window from `start` to `end` places after a row; before it where negative, None for all."""

    start: int | None
    end: int | None

    def __str__(self) -> str:
        ends = ("UNBOUNDED PRECEDING" if self.start is None else _end(self.start),
                "UNBOUNDED FOLLOWING" if self.end is None else _end(self.end))  # fmt: skip
        return f" ROWS BETWEEN {ends[0]} AND {ends[1]}"


@dataclass(frozen=True, slots=True)
class Window:
    """One value that is told of a row by the rows of its unit. NULL and NaN do not count as values.

    Rows with equal keys have an order where one is needed: see `Windowed`.

    Guarantee: it depends on the rows of one unit alone, and not on their order in a table.
    Proof: docs/proofs/query.per_row.md.
    Assumes: rows that each belong to one unit.
    Rounds: reals that are added, each to 2^-32.

    Attributes:
        kind: what is told.
        value: of what; None for places and for COUNT(*).
        by: what the rows have in common beside the unit.
        order: their order.
        frame: which of them are read, by an aggregate or the first or last value; None for all without an order, and
            with one for those up to the row and its equals.
        offset: how many places away the row of LAG and LEAD is.
    """

    kind: WindowKind
    value: Scalar | None = None
    by: tuple[Scalar, ...] = ()
    order: tuple[SortKey, ...] = ()
    frame: WindowFrame | None = None
    offset: int = 1

    @property
    def scalars(self) -> tuple[Scalar, ...]:
        """The scalars that it reads."""
        return (*(() if self.value is None else (self.value,)), *self.by, *(key.value for key in self.order))

    @property
    def rows(self) -> WindowFrame | None:
        """The rows that a value or an aggregate reads; None where the order alone says it, or nothing is read."""
        if self.kind in FRAMED:
            return self.frame or WindowFrame(None, 0 if self.order else None)
        return self.frame if self.kind in AGGREGATES else None

    @property
    def ties(self) -> bool:
        """Return whether rows with equal keys need an order among themselves."""
        if self.kind in ONE_ROW or self.kind is WindowKind.ROW_NUMBER:
            return True
        return self.kind not in PLACES and self.frame is not None and self.frame != WindowFrame(None, None)

    def type(self, schema: Schema) -> Type:
        """Return the type of the value, of rows with some columns."""
        if self.kind in PLACES or self.kind is WindowKind.COUNT or self.value is None:
            return Type.INTEGER
        return Type.FLOAT if self.kind is WindowKind.MEAN else type_of(self.value, schema)

    def canonical(self) -> str:
        """Return the identity text."""
        value = "" if self.value is None else self.value.canonical()
        frame = None if self.frame is None else [self.frame.start, self.frame.end]
        by, order = [one.canonical() for one in self.by], [key.canonical() for key in self.order]
        return json.dumps([self.kind.value, value, by, order, frame, self.offset])

    def __str__(self) -> str:
        value = "*" if self.kind is WindowKind.COUNT and self.value is None else self.value
        far = f", {self.offset}" if self.kind in (WindowKind.LAG, WindowKind.LEAD) else ""
        order = f" ORDER BY {', '.join(map(str, self.order))}" if self.order else ""
        by = "".join(f", {one}" for one in self.by)
        return f"{self.kind.value.upper()}({value or ''}{far}) OVER (BY unit{by}{order}{self.frame or ''})"


@dataclass(frozen=True, slots=True)
class Windowed:
    """Rows with some of their columns, and beside these what windows by the unit tell.

    Rows of one unit have an order: by their columns, one after the other, and then by what windows read, least
    first, NULL last and NaN before it. Rows with equal keys come in it.

    Guarantee: every row is one row of its source, has its unit, and is a function of the rows of that unit.
    Proof: docs/proofs/query.per_row.md.
    Assumes: every row of its source belongs to one unit.
    Rounds: nothing but what windows do.

    Attributes:
        name: what joins and questions call these rows; no table has that name.
        source: the rows that they are: an earlier name, another table of the same unit, or None for the protected one.
        joins: the tables beside these, in order.
        where: the rows that count, or None for all.
        columns: the names of the columns that stay, and what they are.
        windows: the names of the other columns, and what they are.
    """

    name: str
    source: str | None
    joins: tuple[Join, ...]
    where: Expression | None
    columns: tuple[tuple[str, Scalar], ...]
    windows: tuple[tuple[str, Window], ...]

    def canonical(self) -> str:
        """Return the identity text."""
        joins = [join.canonical() for join in self.joins]
        where = "" if self.where is None else self.where.canonical()
        made = [[name, one.canonical()] for name, one in (*self.columns, *self.windows)]
        return json.dumps(["windows", self.name, self.source, joins, where, len(self.columns), made])

    def __str__(self) -> str:
        shown = ", ".join(f"{one} AS {name}" for name, one in (*self.columns, *self.windows))
        return f"{self.name} = ({shown} FROM {_from(self)})"

    def first(self, condition: Expression | None, prefix: str = "") -> bool:
        """Return whether a condition leaves one row of each unit: the one that a window numbers 1.

        Args:
            condition: the condition, of these rows where they are read.
            prefix: what names have before them there.

        >>> by_day = Window(WindowKind.ROW_NUMBER, order=(SortKey(Column("day")),))
        >>> rows = Windowed("r", None, (), None, (), (("w0", by_day),))
        >>> rows.first(Compare(Column("w0"), Operator.EQ, Literal(1))), rows.first(None)
        (True, False)
        """
        numbers = {f"{prefix}{name}" for name, one in self.windows if one.kind is WindowKind.ROW_NUMBER and not one.by}
        parts = () if condition is None else conjuncts(condition)
        return any(
            isinstance(part, Compare)
            and part.operator is Operator.EQ
            and any(_numbered(*sides, numbers) for sides in ((part.left, part.right), (part.right, part.left)))
            for part in parts
        )


@dataclass(frozen=True, slots=True)
class StackedPart:
    """What one SELECT of UNION ALL is: a source, what is beside it, which rows count, and its columns."""

    source: str | None
    joins: tuple[Join, ...]
    where: Expression | None
    values: tuple[Scalar, ...]

    def canonical(self) -> str:
        """Return the identity text."""
        joins = [join.canonical() for join in self.joins]
        where = "" if self.where is None else self.where.canonical()
        return json.dumps([self.source, joins, where, [one.canonical() for one in self.values]])

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.values))} FROM {_from(self)}"


@dataclass(frozen=True, slots=True)
class Stacked:
    """The rows of several sources, one below the other, each of the unit that it has there: UNION ALL.

    Guarantee: every row is one row of one branch, and has its unit.
    Proof: docs/proofs/query.per_row.md.
    Assumes: every row of every source belongs to one unit; unit columns of one type.
    Rounds: whole numbers beyond 64 bits, to NULL.

    Attributes:
        name: what joins and questions call these rows; no table has that name.
        columns: the names of the columns.
        branches: what the rows are of; the same types of values in each.
    """

    name: str
    columns: tuple[str, ...]
    branches: tuple[StackedPart, ...]

    def canonical(self) -> str:
        """Return the identity text."""
        return json.dumps(["union", self.name, self.columns, [branch.canonical() for branch in self.branches]])

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.columns)}) = ({' UNION ALL '.join(map(str, self.branches))})"


def _numbered(side: Scalar, other: Scalar, numbers: set[str]) -> bool:
    """Return whether one side of an equality is a number of rows, and the other 1."""
    return isinstance(side, Column) and side.name in numbers and other == Literal(1)


def _end(place: int) -> str:
    """Return one end of a frame."""
    return "CURRENT ROW" if not place else f"{abs(place)} {'PRECEDING' if place < 0 else 'FOLLOWING'}"


def _from(of: Windowed | StackedPart) -> str:
    """Return where rows are from, in words."""
    where = "" if of.where is None else f" WHERE {of.where}"
    return f"{of.source or 'the table'}{''.join(f' {join}' for join in of.joins)}{where}"
