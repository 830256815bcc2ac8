"""Tables named by an address: where a server is, and which of its tables, in one text."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from farthing.errors import DataError
from farthing.query.reading import is_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

POSTGRES: Final = ("postgres", "postgresql", "postgresql+psycopg")
SPARK: Final = "spark"
_SECRETS: Final = ("password", "sslpassword")
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
        opened = _OPENED.get(str(source).partition("://")[0].lower()) if is_address(source) else None
        if opened is None:
            return source
        server, _, table = str(source).rpartition("#")
        if not server or not table:
            raise DataError(
                "the address names no table",
                rule=f"a table on a server is {_FORMS}",
                got=_shown(source),
                next_step="add # and the table's name",
            )
        connect, find = opened
        if server not in self.servers:
            self.servers[server] = _tried(source, lambda: connect(server))
        return _tried(source, lambda: find(self.servers[server], unquote(table)))

    def each(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """Return several tables, by name."""
        return {name: self.at(table) for name, table in tables.items()}

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
    if parts.password is not None or any(secret in given for secret in _SECRETS):
        raise DataError(
            "the address of a table holds a password",
            rule="addresses are kept in settings and shown in messages",
            got=_shown(server),
            next_step="leave it out: the driver reads ~/.pgpass and PGPASSWORD",
        )
    where = {"host": parts.hostname, "port": parts.port, "user": parts.username and unquote(parts.username),
             "database": unquote(parts.path.lstrip("/")) or None}  # fmt: skip
    return ibis.postgres.connect(**{name: value for name, value in where.items() if value is not None}, **given)


def _of_postgres(connection: Any, table: str) -> Any:
    """Return a table of PostgreSQL, of the named schema or the first on the search path."""
    schema, dot, name = table.rpartition(".")
    return connection.table(name, database=schema) if dot else connection.table(name)


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


_OPENED: Final[dict[str, tuple[Callable[[str], Any], Callable[[Any, str], Any]]]] = {
    **dict.fromkeys(POSTGRES, (_postgres, _of_postgres)),
    SPARK: (_spark, _of_spark),
}


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
        got=f"{_shown(address)}: {what}",
        next_step=next_step,
    )


def _shown(address: str) -> str:
    """Return an address without what could be a password.

    >>> _shown("postgresql://me:secret@host/db?password=x#trips"), _shown("spark://host:7077#trips")
    ('postgresql://me@host/db#trips', 'spark://host:7077#trips')
    """
    scheme, _, rest = address.partition("://")
    place, mark, table = rest.partition("#")
    who, at, host = place.partition("?")[0].rpartition("@")
    return f"{scheme}://{who.partition(':')[0]}{at}{host}{mark}{table}"
