"""Any ibis table, on its own backend: the whole question is one ibis expression, run where the rows are.

What a backend cannot express is refused by name in `fingerprint`, before anything is charged. Only one row per group, a
leaf or a place of a histogram comes back.
"""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from farthing.engines.bounded import bounded
from farthing.engines.engine import BUCKETS, FoundGroups, Histogram, Shares, Spread, engine_failed, filled
from farthing.engines.foreign.backend import nothing
from farthing.engines.foreign.keys import KEYS, listed, numbered, portable
from farthing.engines.foreign.measures import crossed, found, histogram, measuring, spreading
from farthing.engines.foreign.per_unit import check, made
from farthing.engines.foreign.rows import IbisCatalog, IbisRelation, told_apart
from farthing.engines.foreign.scalars import sendable
from farthing.engines.foreign.terms import canonical_type
from farthing.engines.own import require_own
from farthing.errors import DataError, FarthingError, InvalidKeys, UnsupportedQuery
from farthing.query.expressions import Literal
from farthing.query.schema import Schema, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.engines.bounded import BoundedQuery
    from farthing.engines.foreign.backend import Backend
    from farthing.query.aggregates import Quantile
    from farthing.query.crossing import Crossing
    from farthing.query.expressions import Scalar
    from farthing.query.query import Query

_GIVEN_UP = "groups beyond max_groups, and parts of a unit but one, are given up by a hash, in the engine"


class IbisEngine:
    """Exact bounded measures of an ibis table, by its own backend.

    Args:
        table: the protected table, of ibis or a Spark frame.
        name: its name in SQL.
        public: tables that hold nobody's rows and may be joined, by name: of the same connection, or Arrow tables.
        protected: tables of the same backend that carry the unit column and may be joined, by name.
        close: closes what was opened for this engine alone; by default nothing, since the connection is the user's own.
    """

    def __init__(
        self,
        table: Any,
        name: str,
        public: Mapping[str, Any] | None = None,
        protected: Mapping[str, Any] | None = None,
        close: Callable[[], None] = nothing,
    ) -> None:
        self._name, self._opened_by, self._close = name, os.getpid(), close
        table = _table(table)
        self._connection = table.get_backend()
        self._backend = _backend_of(self._connection)
        self._shipped: dict[str, pa.Table] = {}
        joined = {other: self._relation(one, other, public=False) for other, one in (protected or {}).items()}
        joined |= {other: self._relation(one, other, public=True) for other, one in (public or {}).items()}
        self._catalog = IbisCatalog(self._relation(table, name, public=False), joined)
        self._turn = threading.Lock()
        self._probe = ""
        self._prepared = lru_cache(maxsize=4)(self._printed)
        self._told_apart: set[str] = set()

    @property
    def name(self) -> str:
        """The table's name in SQL."""
        return self._name

    @property
    def schema(self) -> Schema:
        """The table's columns."""
        return self._catalog.own.schema

    @property
    def tables(self) -> Mapping[str, Schema]:
        """The columns of the tables that questions may join, by name."""
        return {name: relation.schema for name, relation in self._catalog.joined.items()}

    @property
    def public(self) -> frozenset[str]:
        """Which of these are public; the others carry the unit column."""
        return frozenset(name for name, relation in self._catalog.joined.items() if relation.public)

    def check(self, *, after_failure: bool = False) -> None:  # noqa: ARG002  # the backend is asked in any case
        """Find out cheaply that the table is still there; DataError otherwise."""
        require_own(self._opened_by)
        self._run(self._catalog.own.table.limit(0).aggregate(n=lambda table: table.count()))

    def close(self) -> None:
        """Close what was opened for this engine; another connection is the user's own."""
        self._close()

    def identity(self) -> str:
        """Nothing: what the rows are cannot be told without looking at them."""
        return ""

    def fingerprint(self, query: Query) -> str:
        """Return the identity of the hash that chooses groups and parts, "" when none has to be given up."""
        from ibis.common.exceptions import IbisError

        asked = bounded(query)
        check(asked, self._catalog, self._backend)
        self._check_units(asked)
        self._check_keys(asked)
        try:
            for prepare in self._prepared(asked):
                with self._turn:
                    prepare()
            # Where the tables met before homes were chosen, other rows were counted: what was measured then is useless.
            order = " home first" if asked.parted and asked.joins else ""
            return f"ibis {self._backend.name} {self._hash_function(asked)}{order}" if asked.chooses else ""
        except (IbisError, NotImplementedError, RecursionError) as problem:
            construct = type(problem).__name__
        raise UnsupportedQuery(
            f"the {self._backend.name} backend cannot run this question",
            construct=construct,
            rule=_GIVEN_UP if asked.chooses else "the backend has to know every function of a question",
            next_step="use max_groups of at least the number of groups, or export the table to Parquet",
        )

    def measure(self, query: Query, hash_key: int) -> NDArray[np.int64]:
        """Return the exact bounded measures, int64[measures, groups]; see `Engine.measure`."""
        import numpy as np

        asked = bounded(query)
        answer = np.zeros((len(asked.measures), asked.groups), np.int64)
        for places, each in asked.passes:
            table = self._run(measuring(each, self._seen(each), self._backend, hash_key), each)
            for column, place in enumerate(places):
                np.add.at(answer[place], _integers(table, "i"), _integers(table, f"m{column}"))
        return answer

    def histogram(self, query: Query, quantile: Quantile, hash_key: int) -> Histogram:
        """Return the bounded rows by group and leaf; see `Engine.histogram`."""
        import numpy as np

        asked = bounded(query)
        table = self._run(histogram(asked, quantile, self._seen(asked), self._backend, hash_key), asked)
        groups, leaves, counts = (_integers(table, name) for name in ("i", "leaf", "n"))
        order = np.lexsort((leaves, groups))
        return Histogram(groups[order], leaves[order], counts[order])

    def found(self, query: Query, hash_key: int, shares: Shares = ()) -> FoundGroups:
        """Return the groups that exist and their units; see `Engine.found`."""
        import pyarrow as pa

        asked = bounded(query)
        table = self._run(found(asked, self._seen(asked), self._backend, hash_key, shares), asked)
        keys = {name: _canonical(table.column(f"k{place}")) for place, name in enumerate(asked.by)}
        return FoundGroups(pa.table(keys), _integers(table, "n"))

    def crossed(self, query: Query, crossing: Crossing, hash_key: int) -> list[NDArray[np.int64]]:
        """Return the bounded rows by every set of columns, int64[sizes] each; see `Engine.crossed`."""
        asked = bounded(query)
        beside = {f"{KEYS}_{place}": numbered(values) for place, values in enumerate(crossing.lists)}
        table = self._run(crossed(asked, crossing, self._seen(asked), self._backend, hash_key), asked, beside)
        return filled(crossing, *(_integers(table, name) for name in ("s", "i", "n")))

    def listed(self, column: str, table: str | None) -> pa.Array:
        """Return the distinct values of a column of a public table, without NULL and NaN, in order."""
        import pyarrow as pa
        import pyarrow.compute as pc

        relation = self._catalog.joined[table] if table in self.public else None
        if relation is None:
            raise InvalidKeys(
                "the column has no categories",
                rule="categories are those that a column's type declares, which is known of files and frames alone",
                got=column,
                next_step="list the keys, or name a column of a public table",
            )
        value = self._backend.read(relation.table[column], relation.schema.require(column))
        values = self._run(relation.table.select(k=value).distinct())
        found = _canonical(values.column("k")).combine_chunks().drop_null()
        found = found.filter(pc.invert(pc.is_nan(found))) if pa.types.is_floating(found.type) else found
        return found.take(pc.sort_indices(found))

    def spread(self, query: Query, value: Scalar | None, hash_key: int) -> Spread:
        """Return how much units would contribute without any bounds; see `Engine.spread`."""
        import numpy as np

        asked = bounded(query)
        table = self._run(spreading(asked, value, self._seen(asked), self._backend, hash_key), asked)
        which, places, counts = (_integers(table, name) for name in ("which", "place", "n"))
        histograms = [np.zeros(size, np.int64) for size in (32, 32, BUCKETS, BUCKETS)]
        for number, one in enumerate(histograms):
            here = which == number
            np.add.at(one, np.minimum(places[here], len(one) - 1), counts[here])
        return Spread(*histograms)

    def _seen(self, query: BoundedQuery) -> IbisCatalog:
        """Return the tables that a question sees, its derived rows among them."""
        return made(query, self._catalog, self._backend)

    def _printed(self, query: BoundedQuery) -> tuple[Callable[[], None], ...]:
        """Return what has the backend prepare a question: printing takes ibis long, and an ask prepares it often."""
        beside = {**self._shipped, **listed(query)}
        with self._turn:
            return tuple(self._backend.prepared(question, beside) for question in self._questions(query))

    def _questions(self, query: BoundedQuery) -> Iterator[Any]:
        """Yield what a question will ask of the backend."""
        if query.finds:
            yield found(query, self._seen(query), self._backend, 0)
        for _, each in query.passes:
            yield measuring(each, self._seen(each), self._backend, 0)
        for quantile in query.quantiles:
            yield histogram(query, quantile, self._seen(query), self._backend, 0)

    def _run(
        self, question: Any, query: BoundedQuery | None = None, lists: Mapping[str, pa.Table] | None = None
    ) -> pa.Table:
        """Run a question; whatever goes wrong is one constant error."""
        beside = {} if query is None else {**listed(query), **(lists or {})}
        try:
            with self._turn:
                return self._backend.run(question, {**self._shipped, **beside})
        except FarthingError:
            raise
        except Exception:  # noqa: BLE001, S110  # every backend has errors of its own, and any of them may quote rows
            pass
        raise engine_failed()  # outside of any handler: what the backend said is not even its context

    def _relation(self, table: Any, name: str, *, public: bool) -> IbisRelation:
        """Return a table of the backend, or rows that travel with every question."""
        import pyarrow as pa

        if isinstance(table, pa.Table):
            shipped = f"farthing_joined_{len(self._shipped)}"
            self._shipped[shipped] = portable(table)
            beside = self._backend.beside(self._shipped[shipped], shipped)
            return IbisRelation(beside, _schema(beside.schema()), public)
        table = _table(table)
        if table.get_backend() is not self._connection:
            raise DataError(
                f"the table {name!r} is on another connection",
                rule="tables that are joined come from one ibis connection; public ones may also be frames or files",
                got=str(table.get_backend().name),
                next_step="open both tables with the same connection",
            )
        opened, kinds = self._backend.opened(table)
        return IbisRelation(opened, _schema(kinds), public)

    def _check_units(self, query: BoundedQuery) -> None:
        """Refuse units of a type that has no equality, order or hash; the backend says so of a NULL, once, by itself.

        Types that this library computes with have all three.
        """
        unit = query.unit.column or ""
        own = [self._catalog.own, *(each for each in self._catalog.joined.values() if not each.public)]
        odd = [each for each in own if unit in each.schema.names and each.schema.require(unit) is Type.OTHER]
        if not odd or self._backend.plans or unit in self._told_apart:
            return
        with suppress(FarthingError):
            for relation in odd:
                self._run(told_apart(relation, unit, self._backend))
            self._told_apart.add(unit)
        if unit not in self._told_apart:
            self.check()  # a server that is gone is told as one
            raise UnsupportedQuery(
                f"the values of the unit column {unit!r} cannot be told apart",
                construct=unit,
                rule=f"the type of a unit has an equality, an order and a hash on the {self._backend.name} backend",
                next_step="make a view in which it is a text or a number, and ask that",
            )

    def _check_keys(self, query: BoundedQuery) -> None:
        """Refuse keys that cannot travel."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for keys in () if query.keys is None else map(query.keys.column, query.by):
            if pa.types.is_large_string(keys.type) and pc.any(pc.match_substring(keys, "\0")).as_py():
                sendable(Literal("\0"))

    def _hash_function(self, query: BoundedQuery) -> str:
        """Return a short name of the hash, from the backend's version and what it makes of constants."""
        import ibis

        unit = self._seen(query).own.table[query.unit.column or ""].type()
        if not self._probe:
            places = [ibis.literal(7).cast("int64"), ibis.literal(3).cast("int64")]
            hashed = self._backend.hash(ibis.literal("N14228"), places, 5)
            self._probe = str(self._run(hashed.name("h").as_table()).to_pylist())
        return hashlib.sha256(f"{self._backend.version} {unit} {self._probe}".encode()).hexdigest()[:16]


def _table(table: Any) -> Any:
    """Return an ibis table; a Spark frame becomes one."""
    if any(kind.__module__.partition(".")[0] == "pyspark" for kind in type(table).__mro__):
        from farthing.engines.foreign.frames import from_frame

        return from_frame(table)
    return table


def _backend_of(connection: Any) -> Backend:
    """Return the class of a backend."""
    from farthing.engines.foreign.bigquery import BigQueryBackend
    from farthing.engines.foreign.clickhouse import ClickHouseBackend
    from farthing.engines.foreign.databricks import DatabricksBackend
    from farthing.engines.foreign.datafusion import DataFusionBackend
    from farthing.engines.foreign.plain import PlainBackend
    from farthing.engines.foreign.postgres import PostgresBackend
    from farthing.engines.foreign.snowflake import SnowflakeBackend
    from farthing.engines.foreign.spark import SparkBackend
    from farthing.engines.foreign.sqlite import SqliteBackend
    from farthing.engines.foreign.trino import TrinoBackend

    kinds: dict[str, Callable[[Any], Backend]] = {
        "bigquery": BigQueryBackend,
        "clickhouse": ClickHouseBackend,
        "datafusion": DataFusionBackend,
        "databricks": DatabricksBackend,
        "postgres": PostgresBackend,
        "pyspark": SparkBackend,
        "snowflake": SnowflakeBackend,
        "sqlite": SqliteBackend,
        "trino": TrinoBackend,
    }
    return kinds.get(connection.name, PlainBackend)(connection)


def _integers(table: pa.Table, name: str) -> NDArray[np.int64]:
    """Return a column of whole numbers."""
    import numpy as np

    return np.asarray(table.column(name).to_numpy(), np.int64)


def _canonical(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return found keys in the types in which keys are listed."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_string(kind):
        return column.cast(pa.large_string())
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return column.cast(pa.int64())
    return column.cast(pa.timestamp("us")) if pa.types.is_timestamp(kind) else column


def _schema(kinds: Mapping[str, Any]) -> Schema:
    """Return our types of ibis types."""
    return Schema.of({name: canonical_type(kind) for name, kind in kinds.items()})
