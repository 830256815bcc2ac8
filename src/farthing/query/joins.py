"""Tables beside the protected one: public tables, and protected tables that carry the same unit column."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farthing.query.expressions import Expression


@dataclass(frozen=True, slots=True)
class Join:
    """One more table of a question. Its columns are named "table.column" in expressions.

    Attributes:
        table: the name under which the owner declared it.
        on: the condition; columns of the tables so far and of this one.
        left: keep rows without a match, with NULLs (LEFT JOIN), else drop them.
        public: whether the table is public; else it carries the unit column, and `on` has the equality of both.
        fan_out: for one row as unit: the most rows of the public table that one row may meet; the engine enforces it by
            keeping that many rows of the public table for each key. None with a unit column.
    """

    table: str
    on: Expression
    left: bool = False
    public: bool = True
    fan_out: int | None = None

    def canonical(self) -> str:
        """Return the identity text."""
        return json.dumps([self.table, self.on.canonical(), self.left, self.public, self.fan_out])

    def __str__(self) -> str:
        return f"{'LEFT ' if self.left else ''}JOIN {self.table} ON {self.on}"
