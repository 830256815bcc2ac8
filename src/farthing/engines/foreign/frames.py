"""Tables of other libraries as what the engines take: ibis tables as Arrow, Spark frames as ibis tables."""

from __future__ import annotations

import uuid
from contextlib import suppress
from functools import cache
from typing import Any

from farthing.engines.own import busy
from farthing.engines.sources import Arrow, from_relation


def from_ibis(table: Any) -> Arrow:
    """Return an ibis table of DuckDB or Polars as a source: it runs on its own connection and streams into ours."""
    connection = table.get_backend()
    if connection.name == "duckdb":
        import duckdb

        with suppress(duckdb.Error):
            return from_relation(connection.con.sql(str(connection.compile(table))), connection)
        raise busy()

    def read(columns: tuple[str, ...] | None) -> Any:
        return (table.limit(0) if columns is None else table.select(list(columns))).to_pyarrow()

    return Arrow(read)


@cache
def connected(session: Any) -> Any:
    """Return the ibis connection of a Spark session, one for each; the session's time zone stays as it is."""
    import ibis

    zone = session.conf.get("spark.sql.session.timeZone")
    connection = ibis.pyspark.connect(session)
    session.conf.set("spark.sql.session.timeZone", zone)  # ibis sets it to UTC
    return connection


def from_frame(frame: Any) -> Any:
    """Return a Spark frame as an ibis table."""
    view = f"farthing_{uuid.uuid4().hex[:12]}"
    frame.createOrReplaceTempView(view)
    return connected(frame.sparkSession).table(view)
