"""The shape of a table: column names and our own small set of types."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from farthing.errors import UnsupportedQuery

if TYPE_CHECKING:
    from collections.abc import Mapping


COLUMNS: Final = "a question names columns of its tables"
"""The rule that an unknown column breaks."""


class Type(StrEnum):
    """What a column holds, as far as questions care.

    DECIMAL is read as a double wherever it is compared or grouped; TIMESTAMP is without time zone, read to the
    microsecond, and in UTC where the table has zones; OTHER (nested values, integers beyond 64 bits, ...) can only be
    counted, tested for NULL, or serve as the privacy unit.
    """

    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    STRING = "string"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    OTHER = "other"


REAL_TYPES = frozenset({Type.FLOAT, Type.DECIMAL})
NUMBER_TYPES = REAL_TYPES | {Type.INTEGER}


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of one table, in order.

    Attributes:
        columns: (name, type) pairs in the table's order; names differ.

    >>> schema = Schema.of({"dest": Type.STRING, "dep_delay": Type.FLOAT})
    >>> schema.names
    ('dest', 'dep_delay')
    >>> schema.require("dest").value
    'string'
    """

    columns: tuple[tuple[str, Type], ...]

    @classmethod
    def of(cls, columns: Mapping[str, Type]) -> Schema:
        """Return the schema of a name -> type mapping."""
        return cls(tuple(columns.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the column names in order."""
        return tuple(name for name, _ in self.columns)

    @property
    def fingerprint(self) -> str:
        """Return a sha256 (hex) of names and types, in order: part of a data set's identity."""
        text = json.dumps([[name, kind.value] for name, kind in self.columns], ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def require(self, column: str) -> Type:
        """Return the type of a column; refuse an unknown one with the nearest match.

        Raises:
            UnsupportedQuery: the table has no column of that name.
        """
        for name, kind in self.columns:
            if name == column:
                return kind
        near = get_close_matches(column, self.names, n=1, cutoff=0.5) or [
            name for name in self.names if name.casefold() == column.casefold()
        ]
        raise UnsupportedQuery(
            f"unknown column {column!r}",
            construct="unknown column",
            rule=COLUMNS,
            next_step=f"did you mean {near[0]!r}?" if near else "the columns are " + ", ".join(self.names[:20]),
        )
