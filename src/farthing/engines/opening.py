"""Any table to an engine."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.addresses import Addresses
from farthing.engines.duck.engine import DuckDBEngine
from farthing.engines.foreign.frames import from_ibis
from farthing.engines.reading.declared import require_declared
from farthing.engines.sources import from_arrow, from_pandas, from_path, from_polars, from_relation
from farthing.errors import DataError
from farthing.query.reading import Csv
from farthing.urls import is_address, name_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import pyarrow as pa

    from farthing.engines.engine import Engine
    from farthing.engines.sources import RowSource


def open_table(
    source: Any,
    name: str | None = None,
    public: Mapping[str, Any] | None = None,
    protected: Mapping[str, Any] | None = None,
) -> Engine:
    """Return the engine of a table.

    Args:
        source: a Parquet path or glob, a `Csv` (CSV files, and how they are read), a pandas frame, a Polars frame
            or lazy frame, an Arrow table, a DuckDB relation, a Spark frame, any ibis table (Spark and ibis tables
            stay on their own backend), or the address of a table in PostgreSQL or Spark.
        name: the table's name in SQL; by default the file's stem, else "data".
        public: tables that questions may join, by name, of the same kinds: facts that anyone may know.
        protected: tables that questions may join, by name, which carry the same unit column.

    Raises:
        DataError: the source is not a table, or cannot be read; or names collide.
        InvalidOption: a table is of CSV files, and nothing says how they are read.

    >>> import pyarrow as pa
    >>> engine = open_table(pa.table({"dest": ["ORD", "ATL"]}), name="flights")
    >>> engine.name, engine.schema.names
    ('flights', ('dest',))
    """
    named = name or default_name(source)
    require_declared({named: source, **(public or {}), **(protected or {})})
    addresses = Addresses()
    try:
        return _opened(addresses, source, named, public or {}, protected or {})
    except BaseException:
        addresses.close()
        raise


def _opened(
    addresses: Addresses, source: Any, name: str, public: Mapping[str, Any], protected: Mapping[str, Any]
) -> Engine:
    """Return the engine of tables of which some are addresses."""
    table, beside, private = addresses.at(source), addresses.each(public), addresses.each(protected)
    addresses.refuse_exposed([source, *protected.values()], public)
    if is_foreign(table):
        return _foreign(table, name, beside, private, addresses.close)
    there = next((other for other, each in private.items() if addresses.servers and is_foreign(each)), None)
    if there is not None:
        raise _elsewhere(there, private[there])
    rows = {other: addresses.rows(public[other], each) for other, each in beside.items()}
    engine = _embedded(table, name, rows, private)
    addresses.close()
    return engine


def _embedded(source: Any, name: str, public: Mapping[str, Any], protected: Mapping[str, Any]) -> Engine:
    """Return the engine of tables in files and in memory."""
    engine = DuckDBEngine(
        source_of(source),
        name,
        {other: source_of(table) for other, table in public.items()},
        {other: source_of(table) for other, table in protected.items()},
    )
    check_names(engine.name, engine.schema.names, public, protected)
    return engine


def is_foreign(table: Any) -> bool:
    """Return whether a table's questions run elsewhere; ibis tables of DuckDB and Polars are handed over as Arrow."""
    return _library(table, "pyspark") or (_library(table, "ibis") and table.get_backend().name not in EMBEDDED)


def _foreign(
    source: Any, name: str, public: Mapping[str, Any], protected: Mapping[str, Any], close: Callable[[], None]
) -> Engine:
    """Return the engine of a table on another backend."""
    from farthing.engines.foreign.engine import IbisEngine

    beside = {other: table if is_foreign(table) else arrow_of(source_of(table)) for other, table in public.items()}
    here = next((other for other, table in protected.items() if not is_foreign(table)), None)
    if here is not None:
        raise _elsewhere(here, protected[here])
    engine = IbisEngine(source, name, beside, protected, close)
    check_names(engine.name, engine.schema.names, public, protected)
    return engine


def _elsewhere(name: str, table: Any) -> DataError:
    """Return the error of a protected table that is not where the first one is."""
    return DataError(
        f"the protected table {name!r} is not on the backend of the first one",
        rule="protected tables that are joined live on one backend: rows of units are not moved",
        got=type(table).__name__,
        next_step="copy it there first",
    )


def arrow_of(source: RowSource) -> pa.Table:
    """Return all rows of a source."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    scan = source.scan()
    if scan is not None:
        with suppress(duckdb.Error), duckdb.connect() as connection:
            return connection.sql(f"SELECT * FROM {scan}").to_arrow_table()
        return source.load(tuple(pq.read_schema(source.files[0]).names)).read_all()
    names = source.load(None).schema.names
    rows = source.load(tuple(names))
    return rows if isinstance(rows, pa.Table) else rows.read_all()


def source_of(table: Any) -> RowSource:
    """Return the rows of a path or frame, for the embedded engine.

    Raises:
        DataError: it is not a table, or cannot be read.
    """
    if isinstance(table, str | Path | Csv):
        return from_path(table)
    for library, kinds, reader in _KINDS:
        if _library(table, library) and type(table).__name__ in kinds:
            return reader(table)
    raise DataError(
        "not a table",
        rule="a table is a path, or a pandas, Polars, Arrow, DuckDB or ibis table",
        got=type(table).__name__,
        next_step="pass one of these",
    )


def default_name(source: Any) -> str:
    """Return the name of a table that was given none."""
    if is_address(source):
        return name_at(source) or "data"
    path = source.path if isinstance(source, Csv) else source
    return _stem(Path(path)) if isinstance(path, str | Path) else "data"


def check_names(name: str, columns: Collection[str], public: Collection[str], protected: Collection[str]) -> None:
    """Refuse names of tables that could be taken for one another.

    Raises:
        DataError: two tables of one name, whatever its case; or a column that reads like one of a joined table.
    """
    names = [each.casefold() for each in (name, *public, *protected)]
    beside = {each.casefold() for each in (*public, *protected)}
    repeated = next((each for each in names if names.count(each) > 1), None)
    taken = next((each for each in columns if "." in each and each.partition(".")[0].casefold() in beside), None)
    dotted = next((each for each in beside if not each or "." in each), None)
    found = next((each for each in (repeated, taken, dotted) if each is not None), None)
    if found is not None:
        raise DataError(
            "names of tables collide",
            rule="tables have names that differ, without dots, and no column starts with such a name and a dot",
            got=repr(found),
            next_step="give the table another name",
        )


EMBEDDED: Final = ("duckdb", "polars")
"""Backends of ibis whose tables run in the embedded engine."""

_KINDS: tuple[tuple[str, tuple[str, ...], Callable[[Any], RowSource]], ...] = (
    ("pyarrow", ("Table",), from_arrow),
    ("pandas", ("DataFrame",), from_pandas),
    ("polars", ("DataFrame", "LazyFrame"), from_polars),
    ("duckdb", ("DuckDBPyRelation",), from_relation),
    ("_duckdb", ("DuckDBPyRelation",), from_relation),
    ("ibis", ("Table", "CachedTable"), from_ibis),
)


def _library(source: object, library: str) -> bool:
    """Return whether a value's class (or a parent of it) comes from a library, without importing it."""
    return any(kind.__module__.partition(".")[0] == library for kind in type(source).__mro__)


def _stem(path: Path) -> str:
    """Return a file's name up to the first dot; "data" for a pattern."""
    pattern = any(letter in path.name for letter in "*?[")
    return "data" if pattern else path.name.split(".")[0] or "data"
