"""The embedded database: locked down before the first question, one of each process's own, with a private folder."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from farthing.engines.duck.terms import quoted, text
from farthing.engines.own import Own
from farthing.engines.reading.version import shown
from farthing.engines.sources import Files
from farthing.engines.spill import Spill, place
from farthing.errors import DataError
from farthing.forked import abandon

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.engines.sources import RowSource

_SETTINGS: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "preserve_insertion_order": "false",
    "disabled_optimizers": "join_filter_pushdown",
}
"""The last one: where tables meet, DuckDB would make filters of the rows of one and hand them to what reads the other.
pyarrow reads tables in memory, and fails on some filters (whole numbers from 2^63 on, days after 9999, views of text):
a row of one table would decide between an answer and an error."""


_DEFAULT: Final[list[Any]] = []
"""The connection of DuckDB's own, which it makes when it scans Arrow, and closes when the process ends."""


def _leave_default() -> None:
    """Leave it alone, in a forked child: to close it waits for threads that are the parent's."""
    for connection in _DEFAULT:
        abandon(connection)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_default)


class OpenedDatabase(NamedTuple):
    """A connection, and the folder of its own."""

    connection: Any
    spill: Spill | None


def database(sources: Mapping[str, RowSource]) -> Own:
    """Return a DuckDB that can read the sources' files and do nothing else, opened in each process when it is used."""
    return Own(lambda: _opened(sources), _close, _leave)


def _opened(sources: Mapping[str, RowSource]) -> OpenedDatabase:
    """Open one, with a folder for what does not fit into memory."""
    where = place()
    spill = None if where is None else Spill(where)
    try:
        return OpenedDatabase(_locked(sources, "" if spill is None else str(spill.path)), spill)
    except BaseException:
        if spill is not None:
            spill.remove()
        raise


def _close(opened: OpenedDatabase) -> None:
    """Close one, wait for its threads, and remove its folder."""
    opened.connection.close()
    if opened.spill is not None:
        opened.spill.remove()


def _leave(opened: OpenedDatabase) -> None:
    """Leave the parent's alone."""
    abandon(opened.connection)
    if opened.spill is not None:
        opened.spill.leave()


def _locked(sources: Mapping[str, RowSource], spill: str) -> Any:
    """Return a DuckDB that can read the sources' files, and write into its folder, and do nothing else."""
    import duckdb

    _DEFAULT[:] = [duckdb.default_connection()]
    connection = duckdb.connect(":memory:", config=dict(_SETTINGS))
    source = next(iter(sources.values()))
    with suppress(duckdb.Error):
        connection.execute(f"SET temp_directory = {text(spill)}")
        with suppress(duckdb.CatalogException):  # without ICU the zone is UTC anyway
            connection.execute("SET GLOBAL TimeZone = 'UTC'")  # in which CSV text without a zone is read
        for view, source in sources.items():  # the last one is what failed
            scan = source.scan()
            if scan is not None:
                connection.execute(f"CREATE VIEW {quoted(view)} AS {selected(source, scan)}")
        paths = [path for each in sources.values() if each.scan() is not None for path in each.files]
        if paths:
            connection.execute(f"SET allowed_paths = [{', '.join(map(text, paths))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection
    connection.close()
    raise unreadable(source)


def selected(source: RowSource, scan: str) -> str:
    """Return the SELECT of a table's columns from a scan of it, NULL for those that DuckDB does not scan."""
    nulls = ", ".join(f"NULL AS {quoted(name)}" for name in sorted(held_back(source)))
    return f"SELECT * REPLACE ({nulls}) FROM {scan}" if nulls else f"SELECT * FROM {scan}"


def of_numbers(source: RowSource) -> str:
    """Return the SELECT of a table of files for a question that reads no NaN of it."""
    assert isinstance(source, Files), "others are not scanned"  # noqa: S101
    return selected(source, source.scan_of_numbers())


def held_back(source: RowSource) -> frozenset[str]:
    """Return the columns of files that DuckDB does not scan, and whose statistics it does not see."""
    return source.coarse if isinstance(source, Files) else frozenset()


def unreadable(source: RowSource) -> DataError:
    """Return the error of a table that cannot be opened."""
    return DataError(
        "the table cannot be read",
        rule="a table is a Parquet file, or a CSV file with a header",
        got=", ".join(map(shown, source.files[:3])),
        next_step="open it with DuckDB to see why: its own words may quote rows, so they are not repeated here",
    )
