"""The embedded engine: a DuckDB of our own, locked down before the first question."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.bounded import bounded, gathering
from farthing.engines.duck.cells import INFINITY
from farthing.engines.duck.database import database, held_back, of_numbers, unreadable
from farthing.engines.duck.measures import MOST_ROWS, SelectText, crossed, found, histogram, measuring, spreading
from farthing.engines.duck.per_unit import check, made
from farthing.engines.duck.rows import DuckCatalog, DuckRelation
from farthing.engines.duck.stored import compared
from farthing.engines.duck.streams import rescanned, turn
from farthing.engines.duck.terms import KEYS, TABLE, canonical_type, hash_probe, reader, row
from farthing.engines.engine import BUCKETS, FoundGroups, Histogram, Shares, Spread, engine_failed, filled
from farthing.engines.reading.footers import packed
from farthing.engines.sources import Arrow, Files
from farthing.errors import InvalidKeys
from farthing.plain_arrays import arrow_array, numbers_of
from farthing.query.per_unit import parts_of
from farthing.query.schema import REAL_TYPES, Schema, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.engines.bounded import BoundedQuery
    from farthing.engines.sources import RowSource
    from farthing.query.aggregates import Quantile
    from farthing.query.crossing import Crossing
    from farthing.query.expressions import Expression, Scalar
    from farthing.query.query import Query


_MOST_AT_ONCE: Final = 1 << 20
"""How many groups one query is asked about, where no unit has to choose among all of them."""

_STOPPED: Final = re.compile(
    r"Query interrupted"
    r"|(Invalid Input Error: [a-z ]+ the object registered as '\w+' failed: )?KeyboardInterrupt: (<EMPTY MESSAGE>)?"
)
"""Ctrl-C, in DuckDB's words while it works or reads a table of Python's: DuckDB 1 mostly names it as its cause.

It is the whole of what DuckDB says, so that no text of a row, which may be quoted in an error, is taken for Ctrl-C.
"""


class DuckDBEngine:
    """Exact bounded measures of files or Arrow data, by an embedded DuckDB.

    The database is in memory, reads the tables' own files and nothing else, writes nothing but its spill files, loads
    no extension, sees no Python variable, and its settings are frozen. Calls may come from several threads: each has
    its own cursor; and from forked processes: each has its own database.

    Args:
        source: the protected table.
        name: its name in SQL.
        public: tables that hold nobody's rows and may be joined, by name.
        protected: tables that carry the unit column and may be joined, by name.
    """

    def __init__(
        self,
        source: RowSource,
        name: str,
        public: Mapping[str, RowSource] | None = None,
        protected: Mapping[str, RowSource] | None = None,
    ) -> None:
        self._name = name
        beside = {**(protected or {}), **(public or {})}
        self._public = frozenset(public or {})
        self._views = {other: f"farthing_joined_{place}" for place, other in enumerate(beside)}
        self._sources = {TABLE: source} | {self._views[other]: beside[other] for other in beside}
        self._database = database(self._sources)
        joined = {other: self._describe(view, public=other in self._public) for other, view in self._views.items()}
        self._catalog = DuckCatalog(self._describe(TABLE), joined)
        self._probe = self._hash_function()
        self._numbers: dict[tuple[str, str], bool] = {}

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
        return self._public

    def check(self, *, after_failure: bool = False) -> None:
        """Find out cheaply that the tables are still there, and after a failure as they were; DataError otherwise."""
        for view, source in self._sources.items():
            source.check()
            known = self._relation(view)
            if after_failure and self._describe(view, public=known.public).native != known.native:
                raise unreadable(source)

    def close(self) -> None:
        """Close the database, its threads and its folder; nothing can be asked after that."""
        self._database.close()
        for source in self._sources.values():
            source.close()

    @property
    def _connection(self) -> Any:
        """This process's own connection."""
        return self._database.get().connection

    def identity(self) -> str:
        """Return what tells one state of the tables' files from another; see `Engine.identity`."""
        known = [source.identity() for source in self._sources.values()]
        return json.dumps(known) if any(known) else ""

    def fingerprint(self, query: Query) -> str:
        """Return the identity of the hash that chooses groups and parts, "" when none has to be given up."""
        asked = bounded(query)
        check(asked, self._catalog)
        if not asked.chooses:
            return ""
        native = made(asked, self._catalog).catalog.own.native[asked.unit.column or ""]
        return f"duckdb {native} {self._probe}"

    def measure(self, query: Query, hash_key: int) -> NDArray[np.int64]:
        """Return the exact bounded measures, int64[measures, groups]; see `Engine.measure`."""
        import numpy as np

        asked = bounded(query)
        answer = np.zeros((len(asked.measures), asked.groups), np.int64)
        for places, each in asked.passes:
            answer[places] = self._pass(each, hash_key)
        return answer

    def _pass(self, asked: BoundedQuery, hash_key: int) -> NDArray[np.int64]:
        """Return the measures that one pass over the cells gives."""
        found = made(asked, self._catalog)
        step = asked.groups if asked.chooses else _MOST_AT_ONCE
        part = step < asked.groups
        answer, most = self._summed(asked, found.around(measuring(asked, found.catalog, hash_key, part=part)), step)
        if most > MOST_ROWS:
            whole = measuring(asked, found.catalog, hash_key, whole=True, part=part)
            answer, _ = self._summed(asked, found.around(whole), step)
        return answer

    def _summed(self, asked: BoundedQuery, question: SelectText, step: int) -> tuple[NDArray[np.int64], int]:
        """Return the measures of all groups, and the most rows of a cell.

        Very many groups are asked a part at a time, where no unit has to choose among them: each group's measures are
        those that it has alone, and the memory is that of one part.
        """
        import numpy as np
        import pyarrow as pa

        answer, most = np.zeros((len(asked.measures), asked.groups), np.int64), 0
        for first in range(0, asked.groups, step):
            columns = self._run(asked, question, _arrays, slice(first, min(first + step, asked.groups)))
            most = max(most, int(columns.get("most", answer[0, :0]).max(initial=0)))
            for place in range(len(asked.measures)):
                np.add.at(answer[place], columns["i"], columns[f"m{place}"])
            if step < asked.groups:
                pa.default_memory_pool().release_unused()
        return answer, most

    def histogram(self, query: Query, quantile: Quantile, hash_key: int) -> Histogram:
        """Return the bounded rows by group and leaf; see `Engine.histogram`."""
        import numpy as np

        asked = bounded(query)
        of = made(asked, self._catalog)
        columns = self._run(asked, of.around(histogram(asked, quantile, of.catalog, hash_key)), _arrays)
        order = np.lexsort((columns["leaf"], columns["i"]))
        groups, leaves, counts = (columns[name][order].astype(np.int64) for name in ("i", "leaf", "n"))
        return Histogram(groups, leaves, counts)

    def found(self, query: Query, hash_key: int, shares: Shares = ()) -> FoundGroups:
        """Return the groups that exist and their units; see `Engine.found`."""
        import numpy as np

        asked = bounded(query)
        of = made(asked, self._catalog)
        text = of.around(found(asked, of.catalog, hash_key, shares))
        table = self._run(asked, text, _table)
        units = np.asarray(numbers_of(table.column("n")), np.int64)
        return FoundGroups(table.drop_columns(["n"]).rename_columns(list(asked.by)), units)

    def crossed(self, query: Query, crossing: Crossing, hash_key: int) -> list[NDArray[np.int64]]:
        """Return the bounded rows by every set of columns, int64[sizes] each; see `Engine.crossed`."""
        asked = bounded(query)
        of = made(asked, self._catalog)
        found = self._run(asked, of.around(crossed(asked, crossing, of.catalog, hash_key)), _arrays)
        return filled(crossing, *(found[name] for name in ("s", "i", "n")))

    def listed(self, column: str, table: str | None) -> pa.Array:
        """Return the distinct values of a column of a public table; without a table, the categories of its type."""
        import pyarrow as pa

        if table is None:
            self.schema.require(column)
            declared = self._sources[TABLE].categories.get(column)
            if declared is None:
                raise _no_categories(column)
            return pa.array(declared, pa.string())
        relation = self._catalog.joined[table]
        number = f" AND x <= {INFINITY}" if relation.schema.require(column) in REAL_TYPES else ""
        rows = f"SELECT DISTINCT {reader(column, relation.native[column])} AS x FROM {relation.view} AS r"
        sql = f"SELECT x FROM ({rows}) WHERE x IS NOT NULL{number} ORDER BY x"
        found = self._run(None, SelectText(sql, {relation.view: {column}}), _table)
        return pa.concat_arrays(found.column("x").chunks) if len(found) else pa.array([], found.schema[0].type)

    def spread(self, query: Query, value: Scalar | None, hash_key: int) -> Spread:
        """Return how much units would contribute without any bounds; see `Engine.spread`."""
        import numpy as np

        asked = bounded(query)
        of = made(asked, self._catalog)
        columns = self._run(asked, of.around(spreading(asked, value, of.catalog, hash_key)), _arrays)
        histograms = [np.zeros(size, np.int64) for size in (32, 32, BUCKETS, BUCKETS)]
        for which, units in enumerate(histograms):
            here = columns["which"] == which
            np.add.at(units, np.minimum(columns["place"][here], len(units) - 1), columns["n"][here])
        return Spread(*histograms)

    def _without_nan(self, query: BoundedQuery, read: Collection[str]) -> bool:
        """Return whether a reader may skip by a comparison as if no column of reals that is read held NaN.

        Each is looked through once for each state of the files, and only where one of them is compared with a number.
        What is answered does not depend on it. It is asked within a question that is paid, as all rows are.
        """
        own = self._catalog.own
        reals = sorted(name for name in read if own.native[name] in ("FLOAT", "DOUBLE"))
        if not own.scanned or compared(*_conditions(query)).isdisjoint(reals):
            return False
        state = self.identity()
        new = [name for name in reals if (state, name) not in self._numbers]
        if new:
            told = (f"coalesce(bool_or(isnan({row(name)})), FALSE)::INTEGER AS n{at}" for at, name in enumerate(new))
            question = SelectText(f"SELECT {', '.join(told)} FROM {own.view} AS r", {own.view: set(new)})
            found = self._run(None, question, _arrays)
            self._numbers |= {(state, name): not found[f"n{at}"][0] for at, name in enumerate(new)}
        return all(self._numbers[state, name] for name in reals)

    def _run(
        self,
        query: BoundedQuery | None,
        question: SelectText,
        fetch: Callable[[Any], Any],
        groups: slice = slice(None),
    ) -> Any:
        """Run a question about some of its groups on a cursor of its own; whatever goes wrong is one constant error."""
        import duckdb
        import pyarrow as pa

        numbers = query is not None and self._without_nan(query, question.columns.get(TABLE, ()))
        held = {view for view, read in question.columns.items() if self._is_held(view, read)}
        anew = {view for view, read in question.columns.items() if self._scans_text(view, read)} - held
        streams = any(_is_stream(self._sources[view]) for view in question.columns)
        for loaded in (held, held | anew) if anew else (held,):  # a second time without text that is not UTF-8
            try:
                with turn(taken=streams), closing(self._connection.cursor()) as cursor:
                    self._hand_over(cursor, query, question, loaded, groups)
                    if numbers and TABLE not in loaded:
                        cursor.execute(f"CREATE TEMP VIEW {TABLE} AS {of_numbers(self._sources[TABLE])}")
                    if fetch is _table:  # of what `execute` returns a table would be a copy
                        return fetch(cursor.sql(question.sql))
                    return fetch(cursor.execute(question.sql))
            except (duckdb.Error, pa.ArrowException, OSError, RuntimeError, MemoryError, ValueError) as error:
                stopped = _is_interrupt(error)
            if stopped:
                raise KeyboardInterrupt
        raise engine_failed()  # outside of any handler: what the engine said is not even its context

    def _scans_text(self, view: str, read: Collection[str]) -> bool:
        """Return whether DuckDB scans text of a table, which it refuses as a whole if one value is not UTF-8."""
        native = self._relation(view).native
        return self._sources[view].scan() is not None and any(_holds_text(native[column]) for column in read)

    def _is_held(self, view: str, read: Collection[str]) -> bool:
        """Return whether a question reads columns of files that DuckDB does not scan."""
        return not held_back(self._sources[view]).isdisjoint(read)

    def _hand_over(
        self, cursor: Any, query: BoundedQuery | None, question: SelectText, loaded: Collection[str], groups: slice
    ) -> None:
        """Give a cursor the rows (unless it scans files that are not to be loaded) and the keys of some groups."""
        import numpy as np

        streams = {view for view in question.columns if _is_stream(self._sources[view])}
        for view, read in sorted(question.columns.items(), key=lambda named: named[0] == TABLE):  # our own last
            source, relation = self._sources[view], self._relation(view)
            if source.scan() is None or view in loaded:
                # A scan needs one column even where the question reads none.
                names = tuple(sorted(read)) or relation.schema.names[:1]
                others = len(streams) > 1 and view != TABLE  # each stream ends the one before: one may stay, the last
                alone = view in streams and (others or question.sql.count(view) > 1)
                cursor.register(view, rescanned(partial(source.load, names), alone=alone))
        for view, table in question.beside.items():
            cursor.register(view, table)
        if query is not None and query.keys is not None:
            first, stop, _ = groups.indices(query.groups)
            columns = [query.keys.column(column).slice(first, stop - first) for column in query.by]
            cursor.register(KEYS, _numbered(columns, np.arange(first, stop, dtype=np.int32)))

    def _relation(self, view: str) -> DuckRelation:
        """Return the table of a view."""
        return next(each for each in (self._catalog.own, *self._catalog.joined.values()) if each.view == view)

    def _describe(self, view: str, *, public: bool = False) -> DuckRelation:
        """Return a table with the native type of every column, from metadata."""
        import duckdb
        import pyarrow as pa

        source, short = self._sources[view], None
        with (
            suppress(duckdb.Error, pa.ArrowException, OSError, RuntimeError),
            turn(taken=_is_stream(source)),
            closing(self._connection.cursor()) as cursor,
        ):
            if source.scan() is None:
                cursor.register(view, source.load(None))
            described = cursor.execute(f"DESCRIBE SELECT * FROM {source.scan() or view}").fetchall()
            native = {row[0]: row[1] for row in described}
            apart = _apart(cursor, source, native)
            short = _packed(source)
        if short is None:
            raise unreadable(source)
        schema = Schema.of({column: canonical_type(kind) for column, kind in native.items() if column not in apart})
        return DuckRelation(view, native, schema, public, short, scanned=isinstance(source, Files) and source.parquet)

    def _hash_function(self) -> str:
        """Return a short name of DuckDB's hash function, from what it makes of constants."""
        cursor = self._connection.cursor()
        try:
            values = cursor.execute(hash_probe()).fetchone()
        finally:
            cursor.close()
        return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


def _numbered(columns: list[pa.Array], places: NDArray[np.int32]) -> Any:
    """Return the keys of some groups with their places, as DuckDB is to read them.

    Whole numbers are handed over as NumPy has them: for an Arrow table DuckDB imports pyarrow's datasets, and these
    import pandas where it is installed.
    """
    import pyarrow as pa

    named = {f"key{place}": column for place, column in enumerate(columns)}
    if all(pa.types.is_integer(column.type) and not column.null_count for column in columns):
        return {"i": places, **{name: numbers_of(column) for name, column in named.items()}}
    return pa.table({"i": arrow_array(places), **named})


def _arrays(result: Any) -> dict[str, NDArray[np.int64]]:
    """Return an answer as whole numbers, column by column."""
    import numpy as np

    return {name: np.asarray(column) for name, column in result.fetchnumpy().items()}


def _table(relation: Any) -> pa.Table:
    """Return an answer as a table."""
    return relation.to_arrow_table()


def _conditions(query: BoundedQuery) -> list[Expression | None]:
    """Return the conditions by which a question's readers may drop rows: its own, and those of its derived rows."""
    return [query.early, *(gathering(part, query).early for each in query.derived for part in parts_of(each))]


def _is_interrupt(error: Exception) -> bool:
    """Return whether DuckDB stopped because of Ctrl-C."""
    return isinstance(error.__cause__, KeyboardInterrupt) or _STOPPED.fullmatch(str(error)) is not None


def _is_stream(source: RowSource) -> bool:
    """Return whether rows come from something that may hand over one stream at a time, as a connection does."""
    return isinstance(source, Arrow) and source.opened_by is not None


def _holds_text(kind: str) -> bool:
    """Return whether values of a type of DuckDB are text or hold some: JSON, lists, structs and maps of it."""
    return "VARCHAR" in kind or "JSON" in kind


def _apart(cursor: Any, source: RowSource, native: Mapping[str, str]) -> Collection[str]:
    """Return the columns that no question may read, since pyarrow and DuckDB read them in Parquet as different types.

    pyarrow reads where text is not UTF-8, and times of milliseconds: so these columns, where there are such beside
    them, would let one row decide between an answer and an error. Lists and structs of such times are among them:
    DuckDB converts what they hold. From metadata alone.
    """
    import duckdb
    import pyarrow as pa

    from farthing.engines.reading import text as reading

    held = held_back(source)
    if not (isinstance(source, Files) and source.parquet and (held or any(map(_holds_text, native.values())))):
        return frozenset()
    alike = set()
    for field in reading.types(source.files):
        with suppress(duckdb.Error, pa.ArrowException, RuntimeError):
            cursor.register(KEYS, pa.schema([field]).empty_table())
            alike |= {tuple(row[:2]) for row in cursor.execute(f"DESCRIBE {KEYS}").fetchall()}
    nested = {column for column in held if canonical_type(native[column]) is Type.OTHER}
    return nested.union(column for column, kind in native.items() if (column, kind) not in alike)


def _packed(source: RowSource) -> frozenset[str]:
    """Return the columns that Parquet stores as dictionaries much shorter than themselves, going by the first file."""
    return packed(source.files[0]) if isinstance(source, Files) and source.parquet else frozenset()


def _no_categories(column: str) -> InvalidKeys:
    """Return the error of a column whose type does not list its values."""
    return InvalidKeys(
        "the column has no categories",
        rule="categories are those that a column's type declares, as ENUM does",
        got=column,
        next_step="list the keys, or name a column of a public table",
    )
