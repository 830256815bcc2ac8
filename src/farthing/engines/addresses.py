"""Tables named by an address: where a server is, and which of its tables, in one text."""

from __future__ import annotations

import glob
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import url2pathname

from farthing.engines.foreign.frames import from_frame
from farthing.errors import DataError
from farthing.folders import shares_files
from farthing.query.reading import Csv
from farthing.urls import SECRETS, is_address, shown_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Marks = frozenset[str]

POSTGRES: Final = ("postgres", "postgresql", "postgresql+psycopg")
SPARK: Final = "spark"
SYSTEM: Final = "system"
"""The mark of what a server keeps about all of its tables: statistics have values of rows, sequences their number."""

_FORMS: Final = "postgresql://user@host:5432/database#schema.table, or spark://host:7077#database.table"


@dataclass(slots=True)
class Addresses:
    """The tables that one session has by address; those on one server share a connection, so that they can be joined.

    Attributes:
        servers: the connection of each server.
    """

    servers: dict[str, Any] = field(default_factory=dict)

    def at(self, source: Any) -> Any:
        """Return the ibis table or the Spark frame at an address; anything else as it is.

        Raises:
            DataError: the address is none, the server cannot be reached, or has no such table.
        """
        kind = _kind_of(source)
        if kind is None:
            return source
        server, _, table = str(source).rpartition("#")
        if not server or not table:
            raise DataError(
                "the address names no table",
                rule=f"a table on a server is {_FORMS}",
                got=shown_address(source),
                next_step="add # and the table's name",
            )
        if server not in self.servers:
            self.servers[server] = _tried(source, lambda: kind.connect(server))
        return _tried(source, lambda: kind.find(self.servers[server], unquote(table)))

    def each(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """Return several tables, by name."""
        return {name: self.at(table) for name, table in tables.items()}

    def refuse_exposed(self, protected: Iterable[Any], public: Mapping[str, Any]) -> None:
        """Refuse a public address of a protected table, or of what has rows in common with it, however it is written.

        Raises:
            DataError: a server tells that both are one table, cannot tell which tables they are, or keeps the public
                one about its own tables.
        """
        protected = list(protected)
        self._refuse_files(protected, public)
        private = [(kind, source) for source in protected if (kind := _kind_of(source)) is not None]
        named = [(kind, name) for name, source in public.items() if (kind := _kind_of(source)) is not None]
        known = {mark for each in private for mark in self._marks(*each)} if named else set()
        for kind, name in named if known else ():
            marks = self._marks(kind, public[name])
            if (known | {SYSTEM}) & marks:
                raise _exposed(name, public[name], "reads the server's own tables" if SYSTEM in marks else _SHARED)

    def _refuse_files(self, protected: Iterable[Any], public: Mapping[str, Any]) -> None:
        """Refuse a public table that reads a file of a protected one, where one of the two is read at an address."""
        for mine in protected:
            for name, other in public.items():
                pair = [_kind_of(mine), _kind_of(other)]
                if pair != [None, None] and any(
                    shares_files(one, another) for one in self._files(mine) for another in self._files(other)
                ):
                    raise _exposed(name, other, _SHARED)

    def _files(self, source: Any) -> tuple[str, ...]:
        """Return the paths or patterns of a table's files on this machine."""
        kind, path = _kind_of(source), source.path if isinstance(source, Csv) else source
        if kind is None:
            return (str(path),) if isinstance(path, str | Path) else ()
        server, _, table = str(source).rpartition("#")
        return _tried(source, lambda: kind.files(self.servers[server], unquote(table)))  # type: ignore[no-any-return]

    def rows(self, source: Any, table: Any) -> Any:
        """Return all rows of the table at an address, as Arrow; no word of the driver comes through."""
        kind = _kind_of(source)
        return table if kind is None else _tried(source, lambda: kind.rows(table))

    def _marks(self, kind: _Kind, source: str) -> Marks:
        """Return what tells the table at an address from others; two that share a mark hold the same rows."""
        server, _, table = source.rpartition("#")
        told: Marks = _tried(source, lambda: kind.tell(self.servers[server], unquote(table)))
        return told

    def close(self) -> None:
        """Close the connections that were made here. Spark goes on: others in the process may use it."""
        for connection in self.servers.values():
            if hasattr(connection, "disconnect"):
                with suppress(Exception):  # a server that is gone needs no goodbye
                    connection.disconnect()


def _postgres(server: str) -> Any:
    """Return a connection to PostgreSQL; passwords are read by its driver."""
    import ibis

    parts = urlsplit(server)
    given = dict(parse_qsl(parts.query))
    if parts.password is not None or any(secret in given for secret in SECRETS):
        raise DataError(
            "the address of a table holds a password",
            rule="addresses are kept in settings and shown in messages",
            got=shown_address(server),
            next_step="leave it out: the driver reads ~/.pgpass and PGPASSWORD",
        )
    where = {"host": parts.hostname, "port": parts.port, "user": parts.username and unquote(parts.username),
             "database": unquote(parts.path.lstrip("/")) or None}  # fmt: skip
    return ibis.postgres.connect(**{name: value for name, value in where.items() if value is not None}, **given)


def _of_postgres(connection: Any, table: str) -> Any:
    """Return a table of PostgreSQL, of the named schema or the first on the search path.

    Raises:
        DataError: more than a schema is named: which table that is would be told apart by another reading of it.
    """
    schema, dot, name = table.rpartition(".")
    if "." in schema:
        raise DataError(
            "the address names more than a schema and a table",
            rule=f"a table on a server is {_FORMS}",
            got=table,
            next_step="leave the database out after the #: it is named before",
        )
    return connection.table(name, database=schema) if dot else connection.table(name)


def _told_by_postgres(connection: Any, table: str) -> Marks:
    """Return the numbers of cluster, database and relation, the same by each host, port, schema and spelling.

    Of a view there are those of all that it reads, of a table those of its partitions and heirs: a view, a partition
    and a table that have rows in common have a number in common. What reads the server's own tables, or is a sequence,
    has a mark of its own. The server notes no dependence on tables of its own: they are in the text of a view's plan.

    Raises:
        DataError: the server knows no such table.
    """
    named = ".".join('"' + part.replace('"', '""') + '"' for part in table.rpartition(".")[::2] if part)
    with connection.con.cursor() as cursor, connection.con.transaction():
        cursor.execute(_WHICH, {"table": named})
        found = cursor.fetchall()
    if any(relation is None for _, _, relation, _ in found):
        raise DataError(
            "a server cannot tell which table an address names",
            rule="beside a protected table, a public one is told apart from it by its server",
            got=table,
            next_step="write it as schema.table",
        )
    return frozenset([*(" ".join(map(str, row[:3])) for row in found), *(SYSTEM for row in found if row[3])])


_WHICH: Final = """
WITH RECURSIVE read (relation) AS (
    SELECT pg_catalog.to_regclass(%(table)s)::oid
    UNION
    SELECT beyond.relation FROM read CROSS JOIN LATERAL (
        SELECT inhrelid FROM pg_catalog.pg_inherits WHERE inhparent = read.relation
        UNION ALL
        SELECT refobjid
        FROM pg_catalog.pg_rewrite JOIN pg_catalog.pg_depend ON objid = pg_rewrite.oid
        WHERE ev_class = read.relation AND ev_type = '1'
          AND classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
          AND refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
        UNION ALL
        SELECT number[1]::pg_catalog.oid
        FROM pg_catalog.pg_rewrite
        CROSS JOIN LATERAL pg_catalog.regexp_matches(ev_action::text, ' :relid ([1-9][0-9]*)', 'g') AS found (number)
        WHERE ev_class = read.relation AND ev_type = '1'
    ) AS beyond (relation)
)
SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()),
       (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()),
       relation,
       nspname ~ '^(pg_|information_schema$)' OR relkind NOT IN ('r', 'p', 'v', 'm', 'f')
FROM read
LEFT JOIN pg_catalog.pg_class ON pg_class.oid = relation
LEFT JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
"""


def _spark(server: str) -> Any:
    """Return a Spark session on a master: that of the process, if it runs there."""
    from pyspark.sql import SparkSession

    place = server.partition("://")[2]
    master = place if place.startswith("local") else server
    session = SparkSession.builder.master(master).config("spark.ui.showConsoleProgress", "false").getOrCreate()
    running = session.sparkContext.master
    if running != master:
        raise DataError(
            "another Spark runs in this process",
            rule="one process has one Spark session",
            got=running,
            next_step="name that one, or pass its frame",
        )
    return session


def _of_spark(session: Any, table: str) -> Any:
    """Return a table of the catalog of Spark, or the Parquet files of a path that has a slash."""
    return session.read.parquet(table) if "/" in table else session.table(table)


def _told_by_spark(session: Any, table: str) -> Marks:
    """Return the hash of the plan that reads a table, and its files: they are the same by each name and path of it."""
    frame = _of_spark(session, table)
    return frozenset([str(frame.semanticHash()), *frame.inputFiles()])


def _files_of_spark(session: Any, table: str) -> tuple[str, ...]:
    """Return patterns of the files on this machine that Spark reads of a table: each finds one."""
    found = _of_spark(session, table).inputFiles()
    return tuple(glob.escape(url2pathname(urlsplit(file).path)) for file in found if file.startswith("file:"))


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of server.

    Attributes:
        connect: returns the connection to a server.
        find: returns a table of a connection.
        tell: returns what tells that table from others.
        rows: returns all rows of a table that was found, as Arrow.
        files: returns the patterns of the files on this machine that a table is read of.
    """

    connect: Callable[[str], Any]
    find: Callable[[Any, str], Any]
    tell: Callable[[Any, str], Marks]
    rows: Callable[[Any], Any]
    files: Callable[[Any, str], tuple[str, ...]] = lambda *_: ()


_OPENED: Final[dict[str, _Kind]] = {
    **dict.fromkeys(POSTGRES, _Kind(_postgres, _of_postgres, _told_by_postgres, lambda table: table.to_pyarrow())),
    SPARK: _Kind(_spark, _of_spark, _told_by_spark, lambda frame: from_frame(frame).to_pyarrow(), _files_of_spark),
}


_SHARED: Final = "is a protected table, or has rows of one"


def _exposed(name: str, source: Any, what: str) -> DataError:
    """Return the refusal of a public table."""
    return DataError(
        f"the public table {name!r} {what}",
        rule="a public table holds facts that anyone may know",
        got=shown_address(source) if is_address(source) else str(source.path if isinstance(source, Csv) else source),
        next_step="declare it as protected, or drop it; what a protected view reads beside rows of units "
        "is left out of the view, and joined in questions",
    )


def _kind_of(source: Any) -> _Kind | None:
    """Return the kind of server of an address; None of anything else."""
    return _OPENED.get(str(source).partition("://")[0].lower()) if is_address(source) else None


def _tried(address: str, do: Callable[[], Any]) -> Any:
    """Do what asks a server; whatever goes wrong is an error without the driver's words, which may hold secrets."""
    try:
        return do()
    except DataError:
        raise
    except ImportError as missing:
        what, next_step = f"{missing.name} is not installed", "pip install 'farthing[postgres]', or 'farthing[spark]'"
    except Exception as wrong:  # noqa: BLE001  every driver has errors of its own
        what, next_step = type(wrong).__name__, "check the address, the rights of the role, and that the server runs"
    raise DataError(
        "the table at an address cannot be opened",
        rule=f"a table on a server is {_FORMS}",
        got=f"{shown_address(address)}: {what}",
        next_step=next_step,
    )
