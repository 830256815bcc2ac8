"""The slow, obvious engine: plain Python over a list of rows. Tests hold the others against it."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from farthing.engines.bounded import KeepHome, KeepWhere, bounded, gathering
from farthing.engines.contributions import bucket, contribution, leaf, number
from farthing.engines.engine import BUCKETS, FoundGroups, Histogram, Shares, Spread, scope
from farthing.engines.evaluate import evaluate, holds
from farthing.engines.memory.per_row import stacked, windowed
from farthing.engines.memory.per_unit import gathered, missing
from farthing.engines.memory.rows import NAN, Beside, as_read, joined, key_of, order_of
from farthing.errors import InvalidKeys
from farthing.query.expressions import explicit, type_of
from farthing.query.joins import Join
from farthing.query.measures import Distinct, Total
from farthing.query.per_row import Stacked, Windowed
from farthing.query.per_unit import PerUnit, columns_of_source, parts_of, scoped
from farthing.query.ranges import rounded
from farthing.query.schema import Schema, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.engines.bounded import BoundedQuery
    from farthing.query.aggregates import Quantile
    from farthing.query.crossing import Crossing
    from farthing.query.expressions import Scalar
    from farthing.query.measures import Measure
    from farthing.query.per_unit import Derived
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
            a group's place, a part's place, a (group's place, leaf) pair of a histogram, a (group's place, (value,))
            pair of a count of values, or a key that was found.
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

    def check(self, *, after_failure: bool = False) -> None:
        """Rows in memory stay."""

    def close(self) -> None:
        """Nothing is open."""

    def identity(self) -> str:
        """Nothing: what the rows are cannot be told without looking at them."""
        return ""

    def fingerprint(self, query: Query) -> str:
        """Return the identity of the hash that chooses groups, parts and rows, "" when none has to be given up."""
        return f"memory {self._hash(0, 0, 5)}" if bounded(query).chooses else ""

    def measure(self, query: Query, hash_key: int) -> NDArray[np.int64]:
        """Return the exact bounded measures, int64[measures, groups]; see `Engine.measure`."""
        import numpy as np

        asked = bounded(query)
        kept = list(self._kept(asked, hash_key))
        answer = [self._measured(asked, kept, measure, hash_key) for measure in asked.measures]
        return np.array(answer, np.int64).reshape(len(asked.measures), asked.groups)

    def _measured(self, asked: BoundedQuery, kept: list[_Unit], measure: Measure, hash_key: int) -> list[int]:
        """Return one measure of every group."""
        if isinstance(measure, Distinct):
            return self._told_apart(asked, kept, measure, hash_key)
        scalar, answer = self._ready(measure.value, asked), [0] * asked.groups
        for unit in kept:
            for group, rows in unit.groups.items():
                values = rows if scalar is None else [evaluate(scalar, row) for row in rows]
                answer[group] += contribution(measure, values, asked.max_rows)
        return [rounded(total) for total in answer] if isinstance(measure, Total) else answer

    def _told_apart(self, asked: BoundedQuery, kept: list[_Unit], measure: Distinct, hash_key: int) -> list[int]:
        """Return the number of different values of every group; of more than max_rows of a unit a hash chooses."""
        scalar, found = explicit(measure.value, self._scope(asked)), [set[Any]() for _ in range(asked.groups)]
        for unit in kept:
            for group, rows in unit.groups.items():
                values = {key_of(evaluate(scalar, row)) for row in rows} - {None, NAN}
                ranked = self._ranked(unit.value, [(group, (value,)) for value in values], hash_key)
                found[group].update(value for _, value in ranked[: asked.max_rows])
        return list(map(len, found))

    def histogram(self, query: Query, quantile: Quantile, hash_key: int) -> Histogram:
        """Return the bounded rows by group and leaf; of more than max_rows of a unit a hash chooses which count."""
        import numpy as np

        asked = bounded(query)
        scalar = explicit(quantile.value, self._scope(asked))
        cells: Counter[tuple[int, int]] = Counter()
        for unit in self._kept(asked, hash_key):
            for group, rows in unit.groups.items():
                values = [found for row in rows if (found := number(evaluate(scalar, row))) is not None]
                leaves = Counter(leaf(quantile, value) for value in values)
                left = asked.max_rows
                for place in self._ranked(unit.value, [(group, place) for place in leaves], hash_key):
                    count = min(left, leaves[place[1]])
                    left -= count
                    cells[place] += count
        found_cells = sorted((group, place, count) for (group, place), count in cells.items() if count)
        columns = np.array(found_cells, np.int64).reshape(-1, 3).T
        return Histogram(columns[0], columns[1], columns[2])

    def found(self, query: Query, hash_key: int, shares: Shares = ()) -> FoundGroups:
        """Return the groups that exist and their units, for a question without outputs. NaN is not a key."""
        import numpy as np
        import pyarrow as pa

        asked = bounded(query)
        units: Counter[Any] = Counter()
        for unit in self._kept(asked, hash_key):
            share = next((share for most, share in shares if len(unit.groups) <= most), 1)
            units.update(dict.fromkeys(unit.groups, share))
        keys = sorted(units, key=order_of)
        kinds = [_arrow(type_of(scalar, self._scope(asked))) for _, scalar in asked.groupings]
        columns = {name: pa.array([key[place] for key in keys], kinds[place]) for place, name in enumerate(asked.by)}
        return FoundGroups(pa.table(columns), np.array([units[key] for key in keys], np.int64))

    def crossed(self, query: Query, crossing: Crossing, hash_key: int) -> list[NDArray[np.int64]]:
        """Return the bounded rows by every set of columns; see `Engine.crossed`."""
        import numpy as np

        asked = bounded(query)
        lists = [values.column(values.names[0]).to_pylist() for values in crossing.lists]
        places = [{key_of(value): place for place, value in enumerate(values)} for values in lists]
        counts = [np.zeros(crossing.shape(columns), np.int64) for columns in crossing.sets]
        for unit in self._units(asked, hash_key):
            cells = {
                tuple(known[value] for known, value in zip(places, key, strict=True)): len(rows)
                for key, rows in unit.groups.items()
                if all(value in known for known, value in zip(places, key, strict=True))
            }
            kept = list(cells)
            if asked.max_groups is not None:
                kept = self._ranked(unit.value, kept, hash_key)[: asked.max_groups]
            for cell in kept:
                for columns, one in zip(crossing.sets, counts, strict=True):
                    one[tuple(cell[column] for column in columns)] += min(cells[cell], asked.max_rows)
        return counts

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
        asked = bounded(query)
        scalar = self._ready(value, asked)
        for unit in self._units(asked, hash_key):
            told = [[evaluate(scalar, row) if scalar else 0 for row in some] for some in unit.groups.values()]
            most = max(sum(not missing(one) for one in some) for some in told)
            if not most:
                continue
            groups[len(unit.groups).bit_length() - 1] += 1
            rows[most.bit_length() - 1] += 1
            values = [number(one) for some in told for one in some if scalar]
            there = [one for one in values if one is not None]
            if there:
                least[bucket(min(there))] += 1
                greatest[bucket(max(there))] += 1
        return Spread(groups, rows, least, greatest)

    def _kept(self, query: BoundedQuery, hash_key: int) -> Iterator[_Unit]:
        """Yield the units with the groups that they keep."""
        for unit in self._units(query, hash_key):
            if query.max_groups is None:
                yield unit
            else:
                ranked = self._ranked(unit.value, list(unit.groups), hash_key)
                yield _Unit(unit.value, {group: unit.groups[group] for group in ranked[: query.max_groups]})

    def _ranked(self, unit: Any, choices: list[Any], hash_key: int) -> list[Any]:
        """Return what a unit may keep, first choice first."""
        return sorted(choices, key=lambda choice: (self._hash(unit, choice, hash_key), order_of(choice)))

    def _units(self, query: BoundedQuery, hash_key: int) -> Iterator[_Unit]:
        """Yield the units with all their rows that are left after all steps, by group."""
        places = _places(query)
        scalars = [explicit(scalar, self._scope(query)) for _, scalar in query.groupings]
        units: dict[Any, _Unit] = {}
        for unit, row in self._counting(query, hash_key):
            key = tuple(key_of(evaluate(scalar, row)) for scalar in scalars)
            group = places.get(key) if places is not None else None if NAN in key else key
            if group is not None:
                mine = units.setdefault(key_of(unit, exact=True), _Unit(unit, defaultdict(list)))
                mine.groups[group].append(row)
        yield from units.values()

    def _counting(self, query: BoundedQuery, hash_key: int) -> list[tuple[Any, dict[str, Any]]]:
        """Return the rows that are left after all steps, each with its unit."""
        known: dict[str | None, Beside] = {None: Beside(self._rows, self._schema, public=False)}
        known.update(self._beside)
        schemas = scoped(self._schema, self.tables, query.unit.column, query.derived)
        for each in query.derived:
            scopes = [columns_of_source(schemas, part.source, part.joins) for part in parts_of(each)]
            rows = [
                self._stepped(gathering(part, query), known, scope_, hash_key)
                for part, scope_ in zip(parts_of(each), scopes, strict=True)
            ]
            made = _derived(each, rows, query.unit.column or "", scopes)
            known[each.name] = Beside(made, schemas[each.name], public=False)
        return self._stepped(query, known, self._scope(query), hash_key)

    def _stepped(
        self, query: BoundedQuery, known: Mapping[str | None, Beside], scope_: Schema, hash_key: int
    ) -> list[tuple[Any, dict[str, Any]]]:
        """Return the rows of one source that are left after the steps, each with its unit."""
        unit = query.unit.column
        found = [dict(row) for row in known[query.source].rows]
        rows = [(place if unit is None else row[unit], row) for place, row in enumerate(found)]
        beside = {name: table for name, table in known.items() if name is not None}
        for step in query.steps:
            match step:
                case KeepHome():
                    rows = self._at_home(rows, step, hash_key)
                case Join():
                    rows = joined(rows, step, beside, query.unit, scope_)
                case KeepWhere(condition):
                    where = None if condition is None else explicit(condition, scope_)
                    rows = [(own, row) for own, row in rows if own is not None and (where is None or holds(where, row))]
                case _:
                    assert_never(step)
        return rows

    def _at_home(
        self, rows: list[tuple[Any, dict[str, Any]]], home: KeepHome, hash_key: int
    ) -> list[tuple[Any, dict[str, Any]]]:
        """Return the rows, in the part that is asked, of the units whose home it is."""
        parts = [explicit(condition, self._schema) for condition in home.parts]
        placed = [
            (unit, row, next((place for place, part in enumerate(parts) if holds(part, row)), None))
            for unit, row in rows
            if unit is not None
        ]
        found: defaultdict[Any, set[int]] = defaultdict(set)
        for unit, _, place in placed:
            if place is not None:
                found[key_of(unit, exact=True)].add(place)
        return [
            (unit, row)
            for unit, row, place in placed
            if place == home.place
            and self._ranked(unit, list(found[key_of(unit, exact=True)]), home.key(hash_key))[0] == place
        ]

    def _scope(self, query: BoundedQuery) -> Schema:
        """Return the columns that the expressions of a question may name."""
        return scope(self, query.joins, unit=query.unit.column, derived=query.derived, source=query.source)

    def _ready(self, scalar: Scalar | None, query: BoundedQuery) -> Scalar | None:
        """Return a scalar as the evaluator takes it."""
        return None if scalar is None else explicit(scalar, self._scope(query))


def _derived(
    each: Derived, rows: list[list[tuple[Any, dict[str, Any]]]], unit: str, scopes: list[Schema]
) -> list[dict[str, Any]]:
    """Return derived rows of the rows that are left of each of its parts, each with its unit."""
    match each:
        case PerUnit():
            return gathered(each, rows[0], unit, scopes[0])
        case Windowed():
            return windowed(each, rows[0], unit, scopes[0])
        case Stacked():
            return stacked(each, rows, unit, scopes)
        case _:
            assert_never(each)


def _places(query: BoundedQuery) -> dict[tuple[Any, ...], int] | None:
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
