"""How a release of any kind is asked: which rows, with which goal; what all kinds refuse is refused here."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from farthing.accuracy.target import Target
from farthing.errors import InvalidTarget, UnsupportedQuery, whole
from farthing.privacy.loss import Pure
from farthing.query import Bounds
from farthing.session.answering import reuse
from farthing.session.reading.reader import LATER
from farthing.session.reading.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from farthing.query import Query
    from farthing.query.expressions import Scalar
    from farthing.query.keys import Keys
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import QuestionReader


T = TypeVar("T")

Read: TypeAlias = "tuple[Query, tuple[Keys, ...]]"
"""The rows of a release: the question by all its columns, and the listed values of each."""

Wanted: TypeAlias = tuple[Request, tuple[float | None, float | None], float]
"""The goal of a release: its request, the errors that were asked for (of every cell, in the mean), the relative one."""

MOST_COLUMNS: Final = 60
"""The most columns of one release: engines tell the sets of columns apart by their bits."""

TREE: Final = "tree"
ADAPTIVE: Final = "adaptive"
MWEM: Final = "mwem"
PROJECTION: Final = "projection"
SMALL: Final = "small database"

MODELS: Final = (TREE, ADAPTIVE, MWEM, PROJECTION, SMALL)
"""The mechanisms whose error is not known beforehand: they take a loss, and tell their errors."""

ROWS: Final = "rows"
"""What stands for residuals or `ADAPTIVE`, whichever is better for synthetic rows by what is public."""

_ROWS: Final = ("keys", "where", "bounds", "name")


@dataclass(frozen=True, slots=True, eq=False)
class AskedRows:
    """Which rows a release is of, as it was asked.

    Attributes:
        keys: the listed values of each column.
        where: a predicate, or None.
        bounds: contribution bounds, instead of the session's.
        name: the name of the answer column.
    """

    keys: Any = None
    where: Any = None
    bounds: Any = None
    name: str = "count"

    @classmethod
    def of(cls, wanted: Mapping[str, Any]) -> tuple[AskedRows, dict[str, Any]]:
        """Return the rows of what is wanted, and the rest of it: the goal and the price."""
        rows = {name: wanted[name] for name in _ROWS if name in wanted}
        return cls(**rows), {name: value for name, value in wanted.items() if name not in _ROWS}

    def filled(self, reader: QuestionReader, left: frozenset[str]) -> AskedRows:
        """Return these rows with stand-ins for what they are known to leave out, see `errors.whole`."""
        found = replace(self, keys=LATER) if "keys" in left else self
        bounds = reader.bounds if self.bounds is None else self.bounds
        if "bounds" in left and isinstance(bounds, Bounds):
            found = replace(
                found, bounds=replace(bounds, max_groups=bounds.max_groups or 1, max_rows=bounds.max_rows or 1)
            )
        return found

    def read(
        self,
        reader: QuestionReader,
        columns: tuple[str, ...],
        *,
        keys: Any,
        groupings: Mapping[str, Scalar] | None = None,
        taken: tuple[str, ...] = (),
    ) -> tuple[Query, tuple[Keys, ...]]:
        """Return the query by some columns and their listed values, checked, with the name of the answer column.

        Args:
            reader: reads keys and conditions.
            columns: what the query is by.
            keys: the listed values of each of them.
            groupings: what those are that are not columns of the table.
            taken: more names that the answer column may not have.
        """
        query, lists = reader.crossing(
            columns, keys=keys, where=self.where, bounds=self.bounds, groupings=groupings or {}
        )
        check_name(self.name, (*query.by, *taken))
        return query, lists


def rows_and_goal(
    reader: QuestionReader,
    rows: AskedRows,
    options: Mapping[str, Any],
    read: Callable[[AskedRows], Read],
    goal: tuple[Callable[[Mapping[str, Any]], T], Mapping[str, Any]],
) -> tuple[Read, T]:
    """Return the rows of a release and its goal, as they are read; refuse all that is left out at once.

    Args:
        reader: of the session.
        rows: which rows, as it was asked.
        options: the goal and the price, as they were named.
        read: reads the rows; no row of the table.
        goal: reads the goal, and what stands in for one that is left out.
    """

    def begun(left: frozenset[str]) -> tuple[Read, T]:
        """Return both, read once with stand-ins for what is left out."""
        found = read(rows.filled(reader, left))
        return found, goal[0]({**options, **goal[1]} if "target" in left else options)

    return whole(begun)


def reach_of(query: Query, lists: Sequence[Keys]) -> int:
    """Return the most rows that one unit adds to any table by listed columns."""
    return query.max_rows * min(query.max_groups, math.prod(map(len, lists)))


def source_of(query: Query) -> str:
    """Return which rows are counted, in words: FROM, the part, WHERE."""
    part = f" [part {query.part}]" if query.part is not None else ""
    return f"FROM {query.table}{part}" + (f" WHERE {query.where}" if query.where is not None else "")


def identity_of(context: Context, query: Query, lists: Sequence[Keys], kind: str, facts: Sequence[Any] = ()) -> str:
    """Return the identity in the ledger of what is measured of rows by listed columns.

    Args:
        context: the data.
        query: the rows, the unit and the bounds.
        lists: the listed values of each column.
        kind: what is measured.
        facts: what else decides on it.
    """
    rows = [query.canonical(), query.max_groups, *(keys.fingerprint for keys in lists)]
    return reuse.identity(context.data(query), f"{kind} {query.family()}", json.dumps([*rows, *facts]))


def refuse_pure(context: Context) -> None:
    """Refuse a release under a pure budget."""
    if context.budget.currency is Pure:
        raise UnsupportedQuery(
            "a release needs Gaussian noise, and so a delta > 0",
            construct="release",
            rule="its noise is shared among all tables, which Laplace noise does badly",
            got="a pure budget",
            next_step="open the ledger with Budget(epsilon=1, delta=1e-6), or ask for each table with count",
        )


def wanted(options: Mapping[str, Any], mechanisms: tuple[str, ...]) -> Wanted:
    """Return the request of a release, the errors that are asked, and the relative one; refuse none, and several."""
    given = dict(options)
    mechanism = given.pop("mechanism", None)
    if mechanism not in (None, *mechanisms):
        raise InvalidTarget(
            "a release has no mechanism of that name",
            rule=", ".join(mechanisms),
            got=repr(mechanism),
            next_step='leave mechanism= out: "auto" takes the cheapest; models of tables for a loss are '
            + ", ".join(map(repr, (*MODELS, ROWS))),
        )
    absolute, rms, relative = (given.pop(one, None) for one in ("absolute", "rms", "relative"))
    if relative is not None and absolute is None:
        raise InvalidTarget(
            "a relative target of tables has a floor",
            rule="relative= goes with absolute=, the half-width that is fine for small cells, and with nothing else",
            got=f"relative={relative!r} alone",
            next_step="relative=0.1, absolute=50 means within 10 % or 50, whichever is larger",
            missing="" if rms is not None or given.get("loss") is not None else "target",
        )
    named = [
        name for name, one in (("absolute", absolute), ("rms", rms), ("loss", given.get("loss"))) if one is not None
    ]
    if len(named) != 1:
        raise InvalidTarget(
            "the release has several goals" if named else "the release has no accuracy and no price",
            rule="one of absolute= (every cell), rms= (the mean error) and loss= (the price)",
            got=", ".join(named) or "none of them",
            next_step="absolute=50: the interval of every cell is at most that to each side",
            missing="" if named else "target",
        )
    asked = absolute if absolute is not None else rms
    error = None if asked is None else Target(absolute=asked).absolute
    request = Request.of(**({} if error is None else {"absolute": error}), **given)
    share = 0.0 if relative is None or error is None else Target(relative=relative, absolute=error).relative
    return request, (error, None) if absolute is not None else (None, error), share


def check_name(name: object, columns: tuple[str, ...]) -> None:
    """Refuse a name of the answer column that is none, or taken."""
    taken = {*columns, "met", "paid"}
    if not isinstance(name, str) or not name or {name, f"{name}_lower", f"{name}_upper"} & taken:
        raise UnsupportedQuery(
            "the answer column has no usable name",
            construct="alias",
            rule='a text other than "met", "paid" and the columns of the tables',
            got=repr(name),
            next_step='name="rows"',
        )
