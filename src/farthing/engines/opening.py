"""Any table to an engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from farthing.engines.duck import DuckDBEngine
from farthing.engines.sources import from_arrow, from_pandas, from_path, from_polars, from_relation
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.engines.engine import Engine
    from farthing.engines.sources import Source


def open_table(source: Any, name: str | None = None) -> Engine:
    """Return the engine of a table.

    Args:
        source: a Parquet or CSV path or glob, a pandas frame, a Polars frame or lazy frame, an Arrow table, a DuckDB
            relation, or any ibis table (which runs on its own backend).
        name: the table's name in SQL; by default the file's stem, else "data".

    Raises:
        DataError: the source is no table, or cannot be read.

    >>> import pyarrow as pa
    >>> engine = open_table(pa.table({"dest": ["ORD", "ATL"]}), name="flights")
    >>> engine.name, engine.schema.names
    ('flights', ('dest',))
    """
    if isinstance(source, str | Path):
        return DuckDBEngine(from_path(source), name or _stem(Path(source)))
    if _library(source, "ibis"):
        from farthing.engines.foreign import IbisEngine

        return IbisEngine(source, name or "data")
    for library, kinds, reader in _KINDS:
        if _library(source, library) and type(source).__name__ in kinds:
            return DuckDBEngine(reader(source), name or "data")
    raise DataError(
        "not a table",
        rule="a table is a path, or a pandas, Polars, Arrow, DuckDB or ibis table",
        got=type(source).__name__,
        next_step="pass one of these",
    )


_KINDS: tuple[tuple[str, tuple[str, ...], Callable[[Any], Source]], ...] = (
    ("pyarrow", ("Table",), from_arrow),
    ("pandas", ("DataFrame",), from_pandas),
    ("polars", ("DataFrame", "LazyFrame"), from_polars),
    ("duckdb", ("DuckDBPyRelation",), from_relation),
    ("_duckdb", ("DuckDBPyRelation",), from_relation),
)


def _library(source: object, library: str) -> bool:
    """Return whether a value's class (or a parent of it) comes from a library, without importing it."""
    return any(kind.__module__.partition(".")[0] == library for kind in type(source).__mro__)


def _stem(path: Path) -> str:
    """Return a file's name up to the first dot; "data" for a pattern."""
    pattern = any(letter in path.name for letter in "*?[")
    return "data" if pattern else path.name.split(".")[0] or "data"
