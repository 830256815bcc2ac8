"""The slow, obvious engine: plain Python over a list of rows. Tests hold the others against it."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing.engines.contributions import bucket, contribution, leaf, number
from farthing.engines.engine import BUCKETS, PARTS_SALT, Found, Histogram, Spread, scope
from farthing.engines.evaluate import evaluate, holds
from farthing.engines.memory.rows import NAN, Beside, as_read, joined, key_of, order_of
from farthing.errors import InvalidKeys
from farthing.query.aggregates import Quantile, Total
from farthing.query.expressions import Column, explicit, type_of
from farthing.query.ranges import rounded
from farthing.query.schema import Schema, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.query.expressions import Scalar
    from farthing.query.query import Query

__all__ = ["Beside", "MemoryEngine", "holds"]


def _keyed_hash(unit: Any, place: Any, hash_key: int) -> int:
    """Return 64 bits that depend on unit, on what is chosen, and on the hash key."""
    return int.from_bytes(hashlib.blake2b(repr((unit, place, hash_key)).encode(), digest_size=8).digest())


@dataclass(frozen=True, slots=True)
class _Unit:
    """One privacy unit with its rows that count, by group: a place in the list of keys, or the key itself."""

    value: Any
    groups: dict[Any, list[Mapping[str, Any]]]


class MemoryEngine:
    """Exact bounded measures of a list of rows.

    Args:
        rows: the rows, each a mapping from column name to a Python value; None is NULL.
        schema: their columns.
        name: the table's name in SQL.
        keyed_hash: (unit, what is chosen, hash key) -> rank; another engine's hash makes answers comparable. Chosen is
            a group's place, a part's place, a (group's place, leaf) pair of a histogram, or a key that was found.
        beside: the tables that questions may join, by name.

    >>> from farthing.privacy.unit import PrivacyUnit
    >>> from farthing.query import Bounds, Query, counting
    >>> engine = MemoryEngine([{"x": 1}, {"x": 2}], Schema.of({"x": Type.INTEGER}))
    >>> engine.measure(Query("data", (), None, None, counting("n"), PrivacyUnit(), Bounds()), hash_key=0).tolist()
    [[2]]
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        schema: Schema,
        name: str = "data",
        keyed_hash: Callable[[Any, Any, int], int] = _keyed_hash,
        beside: Mapping[str, Beside] | None = None,
    ) -> None:
        self._rows = as_read(rows, schema)
        self._schema = schema
        self._name = name
        self._hash = keyed_hash
        self._beside = dict(beside or {})

    @property
    def name(self) -> str:
        """The table's name in SQL."""
        return self._name

    @property
    def schema(self) -> Schema:
        """The table's columns."""
        return self._schema

    @property
    def tables(self) -> Mapping[str, Schema]:
        """The columns of the tables that questions may join, by name."""
        return {name: table.schema for name, table in self._beside.items()}

    @property
    def public(self) -> frozenset[str]:
        """Which of these are public; the others carry the unit column."""
        return frozenset(name for name, table in self._beside.items() if table.public)

    def check(self) -> None:
        """Rows in memory stay."""

    def fingerprint(self, query: Query) -> str:
        """Return the identity of the hash that chooses groups, parts and rows, "" when none has to be given up."""
        ranked = not query.unit.is_row and any(isinstance(output.aggregate, Quantile) for output in query.outputs)
        chooses = query.cuts_groups or query.cuts_parts or ranked
        return f"memory {self._hash(0, 0, 5)}" if chooses else ""

    def measure(self, query: Query, hash_key: int) -> NDArray[np.int64]:
        """Return the exact bounded measures, int64[measures, groups]; see `Engine.measure`."""
        import numpy as np

        measures = [(place, measure, self._ready(measure.value, query)) for place, measure in enumerate(query.measures)]
        answer = [[0] * query.groups for _ in measures]
        for unit in self._kept(query, hash_key):
            for group, rows in unit.groups.items():
                for place, measure, scalar in measures:
                    values = rows if scalar is None else [evaluate(scalar, row) for row in rows]
                    answer[place][group] += contribution(measure, values, query.max_rows)
        for place, measure, _ in measures:
            if isinstance(measure, Total):
                answer[place] = [rounded(total) for total in answer[place]]
        return np.array(answer, np.int64).reshape(len(measures), query.groups)

    def histogram(self, query: Query, quantile: Quantile, hash_key: int) -> Histogram:
        """Return the bounded rows by group and leaf; of more than max_rows of a unit a hash chooses which count."""
        import numpy as np

        scalar = explicit(quantile.value, self._scope(query))
        cells: Counter[tuple[int, int]] = Counter()
        for unit in self._kept(query, hash_key):
            for group, rows in unit.groups.items():
                values = [found for row in rows if (found := number(evaluate(scalar, row))) is not None]
                leaves = Counter(leaf(quantile, value) for value in values)
                left = query.max_rows
                for place in self._ranked(unit.value, [(group, place) for place in leaves], hash_key):
                    count = min(left, leaves[place[1]])
                    left -= count
                    cells[place] += count
        found_cells = sorted((group, place, count) for (group, place), count in cells.items() if count)
        columns = np.array(found_cells, np.int64).reshape(-1, 3).T
        return Histogram(columns[0], columns[1], columns[2])

    def found(self, query: Query, hash_key: int) -> Found:
        """Return the groups that exist and their units, for a question without outputs. NaN is no key."""
        import numpy as np
        import pyarrow as pa

        units = Counter(group for unit in self._kept(query, hash_key) for group in unit.groups)
        keys = sorted(units, key=order_of)
        kinds = [type_of(scalar, self._scope(query)) for scalar in _groups(query)]
        columns = {
            name: pa.array([key[place] for key in keys], _arrow(kinds[place])) for place, name in enumerate(query.by)
        }
        return Found(pa.table(columns), np.array([units[key] for key in keys], np.int64))

    def listed(self, column: str, table: str | None) -> pa.Array:
        """Return the distinct values of a column of a public table, without NULL and NaN, in order."""
        import pyarrow as pa

        if table is None:
            raise InvalidKeys(
                "the column has no categories",
                rule="categories are those that a column's type declares",
                got=column,
                next_step="list the keys, or name a column of a public table",
            )
        beside = self._beside[table]
        kind = beside.schema.require(column)
        found = {key_of(row[column]) for row in beside.rows} - {None, NAN}
        return pa.array(sorted(found), _arrow(kind))

    def spread(self, query: Query, value: Scalar | None, hash_key: int) -> Spread:
        """Return how much units would contribute without any bounds, before anything is cut."""
        import numpy as np

        groups, rows = np.zeros(32, np.int64), np.zeros(32, np.int64)
        least, greatest = np.zeros(BUCKETS, np.int64), np.zeros(BUCKETS, np.int64)
        scalar = self._ready(value, query)
        for unit in self._units(query, hash_key):
            groups[len(unit.groups).bit_length() - 1] += 1
            rows[max(map(len, unit.groups.values())).bit_length() - 1] += 1
            values = [number(evaluate(scalar, row)) for some in unit.groups.values() for row in some if scalar]
            there = [one for one in values if one is not None]
            if there:
                least[bucket(min(there))] += 1
                greatest[bucket(max(there))] += 1
        return Spread(groups, rows, least, greatest)

    def _kept(self, query: Query, hash_key: int) -> Iterator[_Unit]:
        """Yield the units with the groups that they keep."""
        for unit in self._units(query, hash_key):
            if query.cuts_groups:
                ranked = self._ranked(unit.value, list(unit.groups), hash_key)
                yield _Unit(unit.value, {group: unit.groups[group] for group in ranked[: query.max_groups]})
            else:
                yield unit

    def _ranked(self, unit: Any, choices: list[Any], hash_key: int) -> list[Any]:
        """Return what a unit may keep, first choice first."""
        return sorted(choices, key=lambda choice: (self._hash(unit, choice, hash_key), order_of(choice)))

    def _units(self, query: Query, hash_key: int) -> Iterator[_Unit]:
        """Yield the units with all their rows that count: in listed groups, WHERE is TRUE, unit not NULL."""
        places = _places(query)
        scalars = [explicit(scalar, self._scope(query)) for scalar in _groups(query)]
        units: dict[Any, _Unit] = {}
        for unit, row in self._counting(query, hash_key):
            key = tuple(key_of(evaluate(scalar, row)) for scalar in scalars)
            group = places.get(key) if places is not None else None if NAN in key else key
            if group is not None:
                mine = units.setdefault(key_of(unit, exact=True), _Unit(unit, defaultdict(list)))
                mine.groups[group].append(row)
        yield from units.values()

    def _counting(self, query: Query, hash_key: int) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        """Yield the joined rows that count, each with its unit."""
        where = None if query.rows is None else explicit(query.rows, self._scope(query))
        homes = self._homes(query, hash_key) if query.cuts_parts else {}
        here = None if query.part is None else query.part.place
        inside = None if query.part is None else explicit(query.part.condition(), self._schema)
        rows = [
            (unit, row)
            for place, row in enumerate(self._rows)
            if (unit := place if query.unit.column is None else row[query.unit.column]) is not None
            and homes.get(key_of(unit, exact=True), here) == here
            and (inside is None or holds(inside, row) is True)
        ]
        for join in query.joins:
            rows = joined(rows, join, self._beside, query, self._scope(query))
        yield from ((unit, row) for unit, row in rows if where is None or holds(where, row) is True)

    def _homes(self, query: Query, hash_key: int) -> dict[Any, int]:
        """Return the part in which each unit is kept, of those in which it has rows: whatever is asked or joined."""
        part = query.part
        assert part is not None  # noqa: S101  # only asked where a unit may have rows in several parts
        conditions = [explicit(part.condition(place), self._schema) for place in range(len(part.choices))]
        found: defaultdict[Any, set[int]] = defaultdict(set)
        units: dict[Any, Any] = {}
        for row in self._rows:
            unit = row[query.unit.column or ""]
            for place, condition in enumerate(conditions):
                if unit is not None and holds(condition, row):
                    units[key_of(unit, exact=True)] = unit
                    found[key_of(unit, exact=True)].add(place)
        return {key: self._ranked(units[key], list(places), hash_key ^ PARTS_SALT)[0] for key, places in found.items()}

    def _scope(self, query: Query) -> Schema:
        """Return the columns that the expressions of a question may name."""
        return scope(self, query.joins)

    def _ready(self, scalar: Scalar | None, query: Query) -> Scalar | None:
        """Return a scalar as the evaluator takes it."""
        return None if scalar is None else explicit(scalar, self._scope(query))


def _groups(query: Query) -> list[Scalar]:
    """Return the scalars that rows are grouped by."""
    known = dict(query.groupings)
    return [known.get(name, Column(name)) for name in query.by]


def _places(query: Query) -> dict[tuple[Any, ...], int] | None:
    """Return the place of every listed key; None where keys are to be found."""
    if query.keys is None:
        return None if query.by else {(): 0}
    columns = [query.keys.column(name).to_pylist() for name in query.by]
    return {tuple(map(key_of, key)): place for place, key in enumerate(zip(*columns, strict=True))}


def _arrow(kind: Type) -> pa.DataType | None:
    """Return the Arrow type of keys of a type; None where their values tell it: integers of 64 bits, signed or not."""
    import pyarrow as pa

    kinds = {
        Type.FLOAT: pa.float64(),
        Type.DECIMAL: pa.float64(),
        Type.STRING: pa.large_string(),
        Type.BOOLEAN: pa.bool_(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
    }
    return kinds.get(kind)
