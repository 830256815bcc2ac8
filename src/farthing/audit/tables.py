"""A small town to audit in: fifty people, one of them with most of the purchases; and the town without somebody."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from farthing.privacy.budget import Budget
from farthing.query import Bounds
from farthing.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

PEOPLE: Final = 50
HEAVY: Final = 7
"""The person with many purchases."""

MANY: Final = 304
"""How many: so many rows of the heavy person join to one."""

STATES: Final = ("A", "B", "C")
GROUPS: Final = (0, 1, 2, 3, 4)
TIGHT: Final = Bounds(max_groups=5, max_rows=3)
"""Bounds that cut the heavy person's purchases."""

ONCE: Final = Bounds(max_groups=1, max_rows=1)
"""Bounds that cut nothing of `u` alone, where each person has one row."""


class SeededChoices:
    """Choices that can be made again from the same seed, by a hash. Nothing here protects anybody.

    >>> SeededChoices(1, "a").below(1000) == SeededChoices(1, "a").below(1000)
    True
    """

    __slots__ = ("_key", "_step")

    def __init__(self, seed: int, label: str) -> None:
        self._key = f"{seed} {label}"
        self._step = 0

    def below(self, bound: int) -> int:
        """Return a whole number from 0 to bound - 1."""
        self._step += 1
        digest = hashlib.sha256(f"{self._key} {self._step}".encode()).digest()
        return int.from_bytes(digest[:8], "big") % bound

    def of(self, options: Sequence[Any]) -> Any:
        """Return one of several."""
        return options[self.below(len(options))]


@dataclass(frozen=True, slots=True, eq=False)
class Town:
    """Three tables: `u` (uid, s, x, y, g), one row per person; `o` (uid, oid, amt, friend), purchases; `cat`, public.

    Attributes:
        u, o, cat: Arrow tables.
    """

    u: pa.Table
    o: pa.Table
    cat: pa.Table

    def without(self, *people: int) -> Town:
        """Return the town without some people, in all tables: k units fewer."""
        import pyarrow as pa
        import pyarrow.compute as pc

        gone = pa.array(people, pa.int64())
        u, o = (table.filter(pc.invert(pc.is_in(table.column("uid"), gone))) for table in (self.u, self.o))
        return Town(u, o, self.cat)

    def changed(self, person: int, **values: Any) -> Town:
        """Return the town where a person has other values in `u`, such as x=None or y=nan."""
        rows = [row | values if row["uid"] == person else row for row in self.u.to_pylist()]
        import pyarrow as pa

        return Town(pa.Table.from_pylist(rows, schema=self.u.schema), self.o, self.cat)

    def session(self, budget: Budget | None = None, bounds: Bounds = TIGHT) -> Session:
        """Open a session on the town, its books in memory; by default with more budget than any audit needs."""
        return Session(
            self.u,
            unit="uid",
            name="u",
            budget=budget or Budget(mu=1_000),
            bounds=bounds,
            protected={"o": self.o},
            public={"cat": self.cat},
        )

    def people(self) -> Session:
        """Open a session on `u` alone, as `session` does."""
        return Session(self.u, unit="uid", name="u", budget=Budget(mu=1_000), bounds=TIGHT)

    def raw(self, sql: str) -> list[tuple[Any, ...]]:
        """Return what a plain DuckDB answers on the three tables: the truth, with no code of ours in between."""
        import duckdb

        with duckdb.connect() as connection:
            for name in ("u", "o", "cat"):
                connection.register(name, getattr(self, name))
            return connection.execute(sql).fetchall()


def town() -> Town:
    """Return the town.

    >>> here = town()
    >>> here.u.num_rows, here.without(7).u.num_rows
    (50, 49)
    >>> here.raw("SELECT COUNT(*) FROM o WHERE uid = 7")
    [(304,)]
    """
    import pyarrow as pa

    people = range(PEOPLE)
    choices = SeededChoices(0, "town")
    u = {
        "uid": pa.array(people, pa.int64()),
        "s": [STATES[choices.below(3)] for _ in people],
        "x": pa.array([50 + choices.below(50) for _ in people], pa.int64()),
        "y": [choices.below(1000) / 10 for _ in people],
        "g": pa.array([choices.below(5) for _ in people], pa.int64()),
    }
    buyers = [person for person in people for _ in range(MANY if person == HEAVY else 1 + choices.below(4))]
    o = {
        "uid": pa.array(buyers, pa.int64()),
        "oid": pa.array(range(len(buyers)), pa.int64()),
        "amt": pa.array([HEAVY if buyer == HEAVY else choices.below(40) for buyer in buyers], pa.int64()),
        "friend": pa.array([choices.below(PEOPLE) for _ in buyers], pa.int64()),
    }
    cat = {"g": pa.array(GROUPS, pa.int64()), "label": ["one", "two", "three", "four", "five"]}
    return Town(pa.table(u), pa.table(o), pa.table(cat))
