"""Where rows come from, for the embedded engine: files that DuckDB scans, or Arrow that it is handed."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from farthing.engines.duck.streams import turn
from farthing.engines.duck.terms import quoted
from farthing.engines.engine import engine_failed
from farthing.engines.own import busy, require_own
from farthing.engines.reading import lakehouse, text
from farthing.engines.reading.declared import PARQUET, matching, missing
from farthing.engines.reading.footers import coarse, footer, require_alike
from farthing.engines.reading.source import from_csv
from farthing.engines.reading.version import shown
from farthing.errors import DataError
from farthing.query.reading import CSV_NAMES, Csv
from farthing.urls import shown_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from farthing.engines.reading.version import Version


class RowSource(Protocol):
    """Rows for one engine."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that may be read: absolute paths, perhaps none."""

    @property
    def categories(self) -> Mapping[str, tuple[str, ...]]:
        """The values that the type of a column declares, by column: no facts about rows."""

    def scan(self) -> str | None:
        """Return the DuckDB table function that scans the files; None when rows are handed over as Arrow."""

    def load(self, columns: tuple[str, ...] | None) -> Any:
        """Return the given columns as Arrow; None: all columns, no rows."""

    def check(self) -> None:
        """Find out cheaply that the rows are still there; DataError otherwise."""

    def close(self) -> None:
        """Close what reads them."""

    def identity(self) -> list[list[int]]:
        """Return what tells one state of the rows from another without looking at them; nothing where that is unknown.

        For files: size, time of the last change and place on the disk of each, which count as public.
        """


@dataclass(frozen=True, slots=True)
class Files:
    """Parquet or CSV files, listed when the table was opened: files that appear later are not part of it.

    Attributes:
        files: their absolute paths.
        parquet: whether they are Parquet.
        coarse: the columns that DuckDB does not scan: times of milliseconds, which it may fail to convert.
    """

    files: tuple[str, ...]
    parquet: bool
    coarse: frozenset[str] = frozenset()

    @property
    def categories(self) -> Mapping[str, tuple[str, ...]]:
        """None: dictionaries in files list the values that occur."""
        return {}

    def scan(self) -> str:
        """Return the scan of exactly these files, which are Parquet: CSV is read by `engines.reading`.

        Guarantee: what is computed of one row does not depend on the rows beside it.
        Proof: [PR 17883 of DuckDB] the statistics of a column of reals leave NaN out, and DuckDB would take conditions
            for TRUE that all but NaN meet: always on a column as it is stored, from DuckDB 2 on in arithmetic with it,
            too. `can_have_nan` says that the greatest value may be NaN.
        Assumes: the files' statistics are true of all other values.
        Rounds: nothing.
        """
        return self._scan(", can_have_nan = true")

    def scan_of_numbers(self) -> str:
        """Return the scan for questions that read no column with NaN: of any condition it skips what it can."""
        return self._scan("")

    def _scan(self, options: str) -> str:
        """Return a scan of the files."""
        paths = ", ".join("'" + path.replace("'", "''") + "'" for path in self.files)
        return f"read_parquet([{paths}]{options})"

    def load(self, columns: tuple[str, ...] | None) -> Any:
        """Return a stream of columns in which text that is not UTF-8 is NULL, where DuckDB could not scan them.

        So are times more than 292,000 years from 1970.
        """
        return text.parquet(self.files, columns or ())

    def check(self) -> None:
        """Refuse a file that is gone, a folder or empty."""
        for path in self.files:
            _usable(Path(path))

    def close(self) -> None:
        """Nothing is open."""

    def identity(self) -> list[list[int]]:
        """Return size, time of the last change and inode of each file, in an order of their own: names may change."""
        found = []
        for path in self.files:
            _usable(Path(path))
            about = Path(path).stat()
            found.append([about.st_size, about.st_mtime_ns, about.st_ino])
        return sorted(found)


@dataclass(frozen=True, slots=True)
class Arrow:
    """Rows handed over as Arrow, column by column, each time they are asked for.

    Attributes:
        read: returns the named columns as an Arrow table or stream; None: all columns, no rows.
        files: none.
        categories: the values that the type of a column declares, by column. Those of an Arrow dictionary or a pandas
            category are not declared: they may be the ones that occur.
        opened_by: the process that alone can read them, if not every one can.
        reached: raises DataError where what reads them could not read even no rows now; None where nothing can hinder.
    """

    read: Callable[[tuple[str, ...] | None], Any]
    files: tuple[str, ...] = ()
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    opened_by: int | None = None
    reached: Callable[[], None] | None = None

    def scan(self) -> None:
        """Nothing to scan."""

    def load(self, columns: tuple[str, ...] | None) -> Any:
        """Return the columns, times with a zone in UTC without one: Arrow holds both as the same integers.

        DuckDB's own reading of zoned seconds and milliseconds fails where they are out of its range.
        """
        rows = self.read(columns)
        plain = _in_utc(rows.schema)
        return rows if plain == rows.schema else rows.cast(plain)

    def check(self) -> None:
        """Rows in memory stay; what reads them may belong to another process, or be busy."""
        if self.opened_by is not None:
            require_own(self.opened_by)
        if self.reached is not None:
            self.reached()

    def close(self) -> None:
        """They are not ours to close."""

    def identity(self) -> list[list[int]]:
        """Nothing: what came from memory cannot be told apart without looking at it."""
        return []


@dataclass(frozen=True, slots=True)
class Lake:
    """A version of a Delta or Iceberg table that its own library reads.

    Attributes:
        rows: what it hands over.
        listed: the files that it reads.
        marks: what tells a file apart beside the file itself, such as the values that it is a part by; by path.
    """

    rows: Arrow
    listed: Files
    marks: Mapping[str, list[int]]

    @property
    def files(self) -> tuple[str, ...]:
        """None that the embedded engine may read."""
        return ()

    @property
    def categories(self) -> Mapping[str, tuple[str, ...]]:
        """None."""
        return {}

    def scan(self) -> None:
        """Nothing to scan."""

    def load(self, columns: tuple[str, ...] | None) -> Any:
        """Return the columns."""
        return self.rows.load(columns)

    def check(self) -> None:
        """Refuse a file that is gone, a folder or empty, and another process: the library runs threads."""
        self.rows.check()
        self.listed.check()

    def close(self) -> None:
        """Nothing is open."""

    def identity(self) -> list[list[int]]:
        """Return what tells one state of the files, and of the values that are told beside them, from another."""
        alone = [(path, Files((path,), parquet=True).identity()) for path in self.listed.files]
        return sorted([*about, *self.marks.get(path, [])] for path, (about,) in alone)


def _in_utc(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose times have no zone."""
    import pyarrow as pa

    fields = []
    for column in schema:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        fields.append(column.with_type(pa.timestamp(kind.unit)) if pa.types.is_timestamp(kind) else column)
    return pa.schema(fields, schema.metadata)


def from_path(path: str | Path | Csv) -> RowSource:
    """Return the files of a path or glob; CSV is read as it is declared.

    Raises:
        DataError: nothing there, a folder without a Delta or Iceberg table, an empty file, neither Parquet nor CSV, a
            header that does not fit, a Parquet file that was cut off, or one of other columns or types than the first.
    """
    named = str(path.path if isinstance(path, Csv) else path)
    version = lakehouse.version_of(Path(named).absolute()) if os.path.isdir(named) else None  # noqa: PTH112  # of no name it fails
    if version is not None and not isinstance(path, Csv):
        return _of_version(version)
    if "://" in named:
        raise DataError(
            "not a local file",
            got=shown_address(named),
            next_step="open it with ibis and pass the ibis table, or copy the file here",
            rule="a path names a file on this machine, an address one table of PostgreSQL or Spark",
        )
    found = matching(named)
    kinds = {_is_parquet(Path(name)) for name in found}
    if len(kinds) > 1:
        raise DataError(
            "Parquet and CSV files in one table",
            got=named,
            next_step="give a pattern for one kind",
            rule="all files of a table are of one kind",
        )
    files = Files(found, parquet=kinds.pop())
    files.check()
    if not files.parquet:
        return from_csv(files, path if isinstance(path, Csv) else Csv(path))
    if isinstance(path, Csv):
        raise DataError(
            "a Parquet file was declared as CSV",
            rule="Csv declares how a CSV file is read; Parquet files say it themselves",
            got=named,
            next_step="pass the path alone",
        )
    require_alike(files.files)
    return replace(files, coarse=coarse(files.files[0]))


def _of_version(version: Version) -> Files | Lake:
    """Return the files of a Delta or Iceberg table where they are the table, else what its library reads of them."""
    files = Files(version.files, parquet=True)
    files.check()
    footers = {footer(each) for each in files.files}  # all are whole
    if version.plain and [{name.partition(".")[0] for name, *_ in each} for each in footers] == [{*version.names}]:
        return replace(files, coarse=coarse(files.files[0])) if files.files else files
    version = version.readable()
    listed = Files(version.files + version.beside, parquet=True)
    return Lake(Arrow(version.read, opened_by=os.getpid()), listed, version.marks)


def _is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet; refuse what is neither Parquet nor CSV."""
    if os.path.isdir(path):  # noqa: PTH112  # of no name it fails
        raise DataError(
            "a folder is not a table",
            got=path,
            next_step=f"give a pattern: {path}/*.parquet",
            rule="a table is a file, a pattern, or a folder with a Delta or Iceberg table",
        )
    if path.name.lower().endswith(PARQUET):
        return True
    if path.name.lower().endswith(CSV_NAMES):
        return False
    if not os.path.exists(path):  # noqa: PTH110
        raise missing(path)
    what, next_step = next(
        (told for names, told in _OTHERS.items() if path.name.lower().endswith(names)),
        ("the name says neither Parquet nor CSV", "rename the file, or open it with DuckDB or ibis and pass the table"),
    )
    raise DataError(
        what,
        rule="names end in " + ", ".join(PARQUET + CSV_NAMES),
        got=shown(path),
        next_step=next_step,
    )


_OTHERS: Final = {
    (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers"): (
        "a workbook is not a table",
        "save the sheet as CSV in UTF-8, or write it as Parquet, as pandas does",
    ),
    (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"): (
        "JSON is not read: one line could change how others are typed",
        "write it as Parquet, with types of yours, as DuckDB and pandas do",
    ),
    (".arrow", ".feather", ".ipc"): (
        "a file in Arrow's format is not read by its path",
        "write it as Parquet, or read it with pyarrow and pass the table",
    ),
    (".zip", ".7z", ".tar", ".tgz", ".tar.gz", ".rar", ".bz2", ".xz", ".zst", ".gz"): (
        "an archive is not a table",
        "unpack it; .csv.gz is read as it is",
    ),
    (".db", ".sqlite", ".sqlite3", ".duckdb"): (
        "a database is not a table",
        "open it with ibis or DuckDB, and pass a table of it",
    ),
    (".sas7bdat", ".xpt", ".sav", ".dta", ".orc", ".avro", ".rds", ".rdata"): (
        "the file's format is not read",
        "write it as Parquet: pandas, pyarrow or DuckDB read this format",
    ),
}
"""What files of other formats are, and what can be done with them."""


def _usable(path: Path) -> None:
    """Refuse a file that cannot hold a table."""
    size = None
    with suppress(OSError, ValueError):
        size = path.stat().st_size
    if size is None:
        raise missing(path)
    if not path.is_file():
        raise DataError("not a file", got=shown(path), rule="a table is a regular file", next_step="check the path")
    if size == 0:
        raise DataError(
            "the file is empty",
            got=shown(path),
            next_step="a table without rows still needs its header",
            rule="a file holds at least its header",
        )


def from_arrow(table: pa.Table) -> Arrow:
    """Return an Arrow table as a source."""
    table = text.valid(table)
    names = [name.casefold() for name in table.column_names]
    if len(set(names)) != len(names):
        raise DataError(
            "two columns have the same name",
            rule="names differ in more than upper and lower case",
            next_step="rename one of them",
        )
    return Arrow(lambda columns: table.slice(0, 0) if columns is None else table.select(list(columns)))


def from_pandas(frame: Any) -> Arrow:
    """Return a pandas frame as a source; it is converted once, so that mixed columns show at opening."""
    import pyarrow as pa

    with suppress(pa.ArrowException, TypeError, ValueError):
        return from_arrow(pa.Table.from_pandas(frame, preserve_index=False))
    raise DataError(
        "the pandas frame has a column of mixed or unknown type",
        rule="every column has one type that Arrow knows",
        next_step="convert the column first, for example with .astype(str)",
    )


def from_polars(frame: Any) -> Arrow:
    """Return a Polars frame or lazy frame as a source; only the columns of a question are collected."""
    from polars.exceptions import PolarsError

    lazy = frame.lazy()

    def read(columns: tuple[str, ...] | None) -> Any:
        with suppress(PolarsError):  # what a lazy frame fails with may quote a row
            return (lazy.limit(0) if columns is None else lazy.select(list(columns))).collect().to_arrow()
        raise engine_failed()

    kinds = lazy.collect_schema().items()
    declared = {name: tuple(kind.categories) for name, kind in kinds if type(kind).__name__ == "Enum"}
    return Arrow(read, categories=declared, opened_by=os.getpid())


def from_relation(relation: Any, connection: Any = None) -> Arrow:
    """Return a DuckDB relation as a source: it runs on its own connection and streams into ours.

    Args:
        relation: the relation.
        connection: its connection, where nobody else keeps it: in DuckDB 1.4 the relation does not.

    UHUGEINT is read as DOUBLE: DuckDB hands it over as decimals of 128 bits with a sign, negative from 2^127 on.
    """
    import pyarrow as pa

    kinds = _kinds(relation)
    wide = [quoted(name) for name, kind in kinds if kind.id == "uhugeint"]
    if wide:
        doubles = ", ".join(f"CAST({name} AS DOUBLE) AS {name}" for name in wide)
        relation = relation.project(f"* REPLACE ({doubles})")

    def read(columns: tuple[str, ...] | None, _kept: Any = connection) -> Any:
        chosen = relation.limit(0) if columns is None else relation.project(", ".join(map(quoted, columns)))
        return pa.RecordBatchReader.from_stream(chosen)

    opened = _kinds(relation)

    def reached() -> None:
        if _kinds(relation, [name for name, _ in opened]) != opened:
            raise busy()

    declared = {name: tuple(kind.children[0][1]) for name, kind in kinds if kind.id == "enum"}
    return Arrow(read, categories=declared, opened_by=os.getpid(), reached=reached)


def _kinds(relation: Any, names: Sequence[str] = ()) -> list[tuple[str, Any]]:
    """Return columns of a relation with their types, all if none is named; refuse one that cannot run now."""
    import duckdb

    with suppress(duckdb.Error), turn(taken=True):
        empty = (relation.project(", ".join(map(quoted, names))) if names else relation).limit(0)
        empty.fetchall()
        return list(zip(empty.columns, empty.types, strict=True))
    raise busy()
