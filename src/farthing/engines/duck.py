"""The embedded engine: a DuckDB of our own, locked down before the first question."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.duck_sql import (
    KEYS,
    TABLE,
    canonical_type,
    columns_read,
    counting,
    hash_probe,
    quoted,
    reader,
)
from farthing.engines.engine import engine_failed
from farthing.errors import DataError
from farthing.query.schema import Schema

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from farthing.engines.sources import Source
    from farthing.query.query import Query

_SETTINGS: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "preserve_insertion_order": "false",
}


class DuckDBEngine:
    """Exact bounded counts of files or Arrow data, by an embedded DuckDB.

    The database is in memory, reads the table's own files and nothing else, writes nothing but its spill files, loads
    no extension, sees no Python variable, and its settings are frozen. Calls may come from several threads: each has
    its own cursor.
    """

    def __init__(self, source: Source, name: str) -> None:
        self._source = source
        self._name = name
        self._connection = _locked(source)
        self._native = native = self._describe()
        self._read = {column: reader(column, kind) for column, kind in native.items()}
        self._schema = Schema.of({column: canonical_type(kind) for column, kind in native.items()})
        self._probe = self._hash_function()

    @property
    def name(self) -> str:
        """The table's name in SQL."""
        return self._name

    @property
    def schema(self) -> Schema:
        """The table's columns."""
        return self._schema

    def check(self) -> None:
        """Find out cheaply that the table is still there; DataError otherwise."""
        self._source.check()

    def fingerprint(self, query: Query) -> str:
        """Return the identity of the hash that chooses groups and parts, "" when none has to be given up."""
        if not query.cuts_groups and not query.cuts_parts:
            return ""
        native = self._native[query.unit.column or ""]
        return f"duckdb {native} {self._probe}"

    def measure(self, query: Query, hash_key: int) -> NDArray[np.int64]:
        """Return the exact bounded measures, int64[measures, groups]; see `Engine.measure`."""
        import duckdb
        import numpy as np
        import pyarrow as pa

        answer = np.zeros((1, query.groups), np.int64)
        cursor = self._connection.cursor()
        try:
            self._hand_over(cursor, query)
            found = cursor.execute(counting(query, hash_key, self._schema, self._read)).fetchnumpy()
        except (duckdb.Error, pa.ArrowException, OSError, RuntimeError, MemoryError):
            raise engine_failed() from None
        finally:
            cursor.close()
        np.add.at(answer[0], np.asarray(found["i"]), np.asarray(found["n"]))
        return answer

    def _hand_over(self, cursor: Any, query: Query) -> None:
        """Give a cursor the rows (unless it scans files) and the keys."""
        import numpy as np
        import pyarrow as pa

        if self._source.scan() is None:
            # A scan needs one column even where the question reads none.
            columns = columns_read(query) or self._schema.names[:1]
            cursor.register(TABLE, self._source.load(columns))
        if query.keys is not None:
            places = {"i": pa.array(np.arange(query.groups, dtype=np.int32))}
            named = {f"k{place}": query.keys.column(column) for place, column in enumerate(query.by)}
            cursor.register(KEYS, pa.table({**places, **named}))

    def _describe(self) -> dict[str, str]:
        """Return the native type of every column, from metadata."""
        import duckdb
        import pyarrow as pa

        cursor = self._connection.cursor()
        try:
            if self._source.scan() is None:
                cursor.register(TABLE, self._source.load(None))
            return {row[0]: row[1] for row in cursor.execute(f"DESCRIBE {TABLE}").fetchall()}
        except (duckdb.Error, pa.ArrowException, OSError, RuntimeError):
            raise _unreadable(self._source) from None
        finally:
            cursor.close()

    def _hash_function(self) -> str:
        """Return a short name of DuckDB's hash function, from what it makes of constants."""
        cursor = self._connection.cursor()
        try:
            values = cursor.execute(hash_probe()).fetchone()
        finally:
            cursor.close()
        return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


def _locked(source: Source) -> Any:
    """Return a DuckDB that can read the source's files and do nothing else."""
    import duckdb

    connection = duckdb.connect(":memory:", config=dict(_SETTINGS))
    spill = Path(tempfile.gettempdir()) / f"farthing-spill-{id(connection):x}"
    try:
        connection.execute(f"SET temp_directory = {_text(str(spill))}")
        scan = source.scan()
        if scan is not None:
            connection.execute(f"CREATE VIEW {quoted(TABLE)} AS SELECT * FROM {scan}")
            connection.execute(f"SET allowed_paths = [{', '.join(map(_text, source.files))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except duckdb.Error:
        connection.close()
        raise _unreadable(source) from None
    return connection


def _text(value: str) -> str:
    """Return a text constant."""
    return "'" + value.replace("'", "''") + "'"


def _unreadable(source: Source) -> DataError:
    """Return the error of a table that cannot be opened."""
    return DataError(
        "the table cannot be read",
        rule="a table is a Parquet file, or a CSV file with a header",
        got=", ".join(source.files[:3]),
        next_step="open it with DuckDB to see why: its own words may quote rows, so they are not repeated here",
    )
