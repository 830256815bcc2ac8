"""The slow, obvious engine: plain Python over a list of rows. Tests hold the others against it."""

from __future__ import annotations

import hashlib
import math
import operator
from collections import Counter, defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any, assert_never

from farthing.engines.engine import PARTS_SALT
from farthing.query.expressions import (
    And,
    Between,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Operand,
    Operator,
    Or,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from farthing.query.query import Query
    from farthing.query.schema import Schema

_COMPARE = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


def _keyed_hash(unit: object, place: int, hash_key: int) -> int:
    """Return 64 bits that depend on unit, place of the group and hash key."""
    return int.from_bytes(hashlib.blake2b(repr((unit, place, hash_key)).encode(), digest_size=8).digest())


class MemoryEngine:
    """Exact bounded counts of a list of rows.

    Args:
        rows: the rows, each a mapping from column name to a Python value; None is NULL.
        schema: their columns.
        name: the table's name in SQL.
        keyed_hash: (unit, place of the group, hash key) -> rank; another engine's hash makes answers comparable.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        schema: Schema,
        name: str = "data",
        keyed_hash: Callable[[Any, int, int], int] = _keyed_hash,
    ) -> None:
        self._rows = rows
        self._schema = schema
        self._name = name
        self._hash = keyed_hash

    @property
    def name(self) -> str:
        """The table's name in SQL."""
        return self._name

    @property
    def schema(self) -> Schema:
        """The table's columns."""
        return self._schema

    def check(self) -> None:
        """Rows in memory stay."""

    def fingerprint(self, query: Query) -> str:
        """Return the identity of the hash that chooses groups, "" when none has to be given up."""
        return f"memory {self._hash(0, 0, 5)}" if query.cuts_groups or query.cuts_parts else ""

    def measure(self, query: Query, hash_key: int) -> NDArray[np.int64]:
        """Return the exact bounded measures, int64[measures, groups]; see `Engine.measure`."""
        import numpy as np

        places = _places(query)
        cells: defaultdict[Any, Counter[int]] = defaultdict(Counter)
        units: dict[Any, Any] = {}
        homes = self._homes(query, hash_key) if query.cuts_parts else {}
        here = None if query.part is None else query.part.place

        def counts(row: Mapping[str, Any]) -> bool:
            inside = query.part is None or holds(query.part.condition(), row) is True
            return inside and (query.where is None or holds(query.where, row) is True)

        for number, row in enumerate(self._rows):
            place = places.get(tuple(_key(row[column]) for column in query.by))
            unit = number if query.unit.column is None else row[query.unit.column]
            if place is None or unit is None or not counts(row) or homes.get(_key(unit, exact=True), here) != here:
                continue
            units[_key(unit, exact=True)] = unit
            cells[_key(unit, exact=True)][place] += 1
        answer = np.zeros((1, query.groups), np.int64)
        for key, groups in cells.items():
            ranked = sorted(groups, key=lambda place: (self._hash(units[key], place, hash_key), place))
            for place in ranked[: query.max_groups] if query.cuts_groups else ranked:
                answer[0, place] += min(groups[place], query.max_rows)
        return answer

    def _homes(self, query: Query, hash_key: int) -> dict[Any, int]:
        """Return the part in which each unit is kept, of those in which it has rows."""
        assert query.part is not None  # noqa: S101  # only asked where a unit may have rows in several parts
        found: defaultdict[Any, set[int]] = defaultdict(set)
        units: dict[Any, Any] = {}
        for row in self._rows:
            unit = row[query.unit.column or ""]
            for place in range(len(query.part.choices)):
                if unit is not None and holds(query.part.condition(place), row):
                    units[_key(unit, exact=True)] = unit
                    found[_key(unit, exact=True)].add(place)
        salt = hash_key ^ PARTS_SALT
        return {
            key: min(places, key=lambda place: (self._hash(units[key], place, salt), place))
            for key, places in found.items()
        }


def _places(query: Query) -> dict[tuple[Any, ...], int]:
    """Return the place of every listed key."""
    if query.keys is None:
        return {(): 0}
    columns = [query.keys.column(name).to_pylist() for name in query.by]
    return {tuple(map(_key, key)): place for place, key in enumerate(zip(*columns, strict=True))}


def _key(value: Any, *, exact: bool = False) -> Any:
    """Return a value that equals another exactly where the two group together."""
    if isinstance(value, Decimal) and not exact:
        value = float(value)
    if isinstance(value, float):
        return "NaN", math.isnan(value), 0.0 if math.isnan(value) else value + 0.0
    return value


def holds(expression: Expression, row: Mapping[str, Any]) -> bool | None:  # noqa: PLR0911  # one return a case
    """Return the truth of a predicate on a row; None is unknown."""
    match expression:
        case Compare(left, comparison, right):
            return _compare(_value(left, row), comparison, _value(right, row))
        case And(operands):
            return _all([holds(operand, row) for operand in operands])
        case Or(operands):  # De Morgan
            return holds(Not(And(tuple(map(Not, operands)))), row)
        case Not(operand):
            return _not(holds(operand, row))
        case IsNull(column):
            return row[column.name] is None
        case In(column, choices):
            return _not(_all([_not(_compare(row[column.name], Operator.EQ, choice.value)) for choice in choices]))
        case Between():
            return _all([holds(comparison, row) for comparison in expression.comparisons])
        case _:
            assert_never(expression)


def _value(operand: Operand, row: Mapping[str, Any]) -> Any:
    """Return the value of a column or constant."""
    return operand.value if isinstance(operand, Literal) else row[operand.name]


def _all(truths: list[bool | None]) -> bool | None:
    """Return the three-valued AND."""
    return False if False in truths else None if None in truths else True


def _not(truth: bool | None) -> bool | None:
    """Return the three-valued NOT."""
    return None if truth is None else not truth


def _compare(left: Any, comparison: Operator, right: Any) -> bool | None:
    """Compare two values of one type; numbers as doubles unless both are integers, NaN above all."""
    if left is None or right is None:
        return None
    if isinstance(left, float | Decimal) or isinstance(right, float | Decimal):
        first, second = ((math.isnan(side), 0.0 if math.isnan(side) else float(side)) for side in (left, right))
        return bool(_COMPARE[comparison](first, second))
    return bool(_COMPARE[comparison](left, right))
