"""What the simulator knows of its table before any question: users, isolating columns, frequent values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from farthing.attacks.diffix.evaluation import Array, Columns

ISOLATING: Final = 0.8
SHADOW_VALUES: Final = 200
SHADOW_USERS: Final = 10


@dataclass(frozen=True, slots=True)
class DiffixFacts:
    """A table of one row or more per user.

    Attributes:
        name: what it is called behind FROM.
        unit: the column that tells the users apart.
        columns: one array per column, all of one length.
        users: for each row the number of its user, from 0 on.
    """

    name: str
    unit: str
    columns: Columns
    users: Array
    _isolating: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, table: Any, *, name: str, unit: str) -> DiffixFacts:
        """Return the facts of a table: of Arrow, or a mapping of columns.

        Raises:
            DataError: a column that is missing, of another length, or with NULLs.
        """
        columns = {str(column).lower(): _array(str(column), values) for column, values in _named(table)}
        if unit.lower() not in columns:
            raise DataError(
                "the column of users is missing", rule="one of the table", got=unit, next_step="name it with unit="
            )
        if len({len(values) for values in columns.values()}) != 1:
            raise DataError("columns differ in length", rule="one value per row", next_step="pass a whole table")
        users = np.unique(columns[unit.lower()], return_inverse=True)[1]
        return cls(name.lower(), unit.lower(), columns, users.reshape(-1))

    def part(self, names: Iterable[str], rows: Array) -> Columns:
        """Return columns of some rows."""
        return {name: self.columns[name][rows] for name in names}

    def isolating(self, column: str) -> bool:
        """Tell whether most values of a column belong to one user each."""
        if column not in self._isolating:
            self._isolating[column] = bool(np.mean(self._users_of(column)[1] == 1) > ISOLATING)
        return self._isolating[column]

    def frequent(self, column: str) -> frozenset[Any]:
        """Return the shadow table of a column: its most frequent values, each of enough users."""
        values, users = self._users_of(column)
        most = np.argsort(-users, kind="stable")[:SHADOW_VALUES]
        return frozenset(values[most][users[most] >= SHADOW_USERS].tolist())

    def _users_of(self, column: str) -> tuple[Array, Array]:
        """Return the distinct values of a column and how many users have each."""
        values, codes = np.unique(self.columns[column], return_inverse=True)
        pairs = np.unique(codes.reshape(-1) * (int(self.users.max()) + 1) + self.users)
        return values, np.bincount(pairs // (int(self.users.max()) + 1), minlength=len(values))


def _named(table: Any) -> list[tuple[str, Any]]:
    """Return the columns of a mapping or an Arrow table with their names."""
    if isinstance(table, Mapping):
        return list(table.items())
    if hasattr(table, "column_names") and hasattr(table, "column"):
        return [(name, table.column(name)) for name in table.column_names]
    raise DataError(
        "no table", rule="an Arrow table or a mapping of columns", got=type(table).__name__, next_step="convert it"
    )


def _array(name: str, values: Any) -> Array:
    """Return a column as an array of numbers, text or times."""
    if getattr(values, "null_count", 0):
        raise DataError("a column has NULLs", rule="a value in every row", got=name, next_step="leave these rows out")
    array = np.asarray(values.to_numpy(zero_copy_only=False) if _of_arrow(values) else values)
    array = array.astype(np.str_) if array.dtype.kind == "O" else array
    if array.dtype.kind not in "biufUM" or array.ndim != 1:
        raise DataError(
            "a column of another type", rule="numbers, text or times", got=f"{name}: {array.dtype}", next_step="cast it"
        )
    return array


def _of_arrow(values: Any) -> bool:
    """Tell whether values are an Arrow column."""
    return hasattr(values, "null_count") and hasattr(values, "to_numpy")
