"""Rows that come as a stream are all there for every scan of a question that reads its table more than once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from farthing import Bounds, Budget, Csv, Session
from farthing.engines import open_table
from farthing.engines.duck.streams import rescanned
from farthing.errors import DataError
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Query, counting

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = pa.table({
    "rider": np.arange(30_000) % 5_000,
    "zone": np.repeat(["centre", "port", "north"], [15_000, 10_000, 5_000]),
})  # fmt: skip
FEATURES = "SELECT rider, COUNT(*) AS {} FROM rides {} GROUP BY rider"
N, M = FEATURES.format("n", ""), FEATURES.format("m", "WHERE zone = 'port'")
TEXTS = {
    f"SELECT COUNT(*) FROM rides JOIN ({N}) AS t USING (rider) WHERE n > 5": 30_000,
    f"WITH a AS ({N}), b AS ({M}) SELECT COUNT(*) FROM a JOIN b ON a.rider = b.rider WHERE n > m": 5_000,
    "SELECT COUNT(*) FROM (SELECT rider FROM rides WHERE zone = 'port' UNION ALL SELECT rider FROM rides) u": 40_000,
}


HARMLESS = ("an unfinished result",) if duckdb.__version__ < "2" else ()
CONNECTION = duckdb.connect()
"""It stays open: in DuckDB 1.4 a relation does not hold its connection."""


def _source(kind: str, folder: Path) -> Any:
    """Return the rows as a source of some kind."""
    if kind == "a CSV file":
        pyarrow.csv.write_csv(ROWS, folder / "rides.csv")
        return Csv(folder / "rides.csv", columns={"rider": "integer"})
    if kind == "text that is not UTF-8":
        zones = pa.array([zone.encode() for zone in ROWS["zone"].to_pylist()] + [b"\xff"], pa.binary())
        bad = pa.StringArray.from_buffers(30_001, *zones.cast(pa.binary()).buffers()[1:])
        rows = pa.table({"rider": [*ROWS["rider"].to_pylist(), 1], "zone": bad})
        pyarrow.parquet.write_table(rows, folder / "rides.parquet")
        return folder / "rides.parquet"
    return CONNECTION.from_arrow(ROWS)


@pytest.mark.parametrize("kind", ["a CSV file", "a DuckDB relation", "text that is not UTF-8"])
def test_a_stream_is_read_again_for_each_scan(kind: str, tmp_path: Path) -> None:
    """Answers are those of a table, not of what another scan left over."""
    how: dict[str, Any] = {"unit": "rider", "bounds": Bounds(3, 20), "budget": Budget(rho=4_000), "name": "rides"}
    with Session(_source(kind, tmp_path), **how) as session:
        for text, truth in TEXTS.items():
            answer = session.sql(text, absolute=1_000, confidence=0.999999, cap="all")
            assert answer.lower <= truth <= answer.upper, text
            assert answer.met


def test_two_relations_of_one_connection_in_one_question() -> None:
    """Each stream of a connection ends the one before: a table and those beside it have all their rows nevertheless."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rides AS SELECT i % 5000 AS rider, i % 7 AS zone FROM range(30000) AS t(i)")
    connection.execute("CREATE TABLE zones AS SELECT i AS zone, i % 2 AS inner FROM range(7) AS t(i)")
    connection.execute("CREATE TABLE rents AS SELECT i AS rider, i % 3 AS many FROM range(5000) AS t(i)")
    table, public, protected = map(connection.table, ("rides", "zones", "rents"))
    arrow = pa.table({"rider": [*range(5_000)] * 6, "zone": [0] * 30_000})
    beside: dict[str, Any] = {"public": {"zones": public, "more": public}, "protected": {"rents": protected}}
    asked = {
        "SELECT COUNT(*) FROM rides JOIN zones ON rides.zone = zones.zone": 30_000,
        "SELECT COUNT(*) FROM rides JOIN zones ON rides.zone = zones.zone JOIN more ON rides.zone = more.zone": 30_000,
        "SELECT COUNT(*) FROM rides JOIN (SELECT rider, SUM(many) AS m FROM rents GROUP BY rider) AS t USING (rider)"
        " WHERE m < 5": 30_000,
        f"SELECT COUNT(*) FROM rides JOIN ({N}) AS t USING (rider) JOIN zones ON rides.zone = zones.zone": 30_000,
    }
    for own in (table, arrow):
        how: dict[str, Any] = {"unit": "rider", "bounds": Bounds(3, 20), "budget": Budget(rho=4_000), "name": "rides"}
        with Session(own, **beside, **how) as session:
            for text, truth in asked.items():
                answer = session.sql(text, absolute=1_000, confidence=0.999999, cap="all")
                assert answer.lower <= truth <= answer.upper, text


def test_threads_take_turns_at_a_connection() -> None:
    """Questions of several threads, of two tables of one connection, have all their rows; none fails."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rides AS SELECT i % 1000 AS rider FROM range(100000) AS t(i)")
    connection.execute("CREATE TABLE rents AS SELECT * FROM rides")
    engines = [open_table(connection.table(name), name) for name in ("rides", "rents")]
    query = Query("t", (), None, None, counting("n"), PrivacyUnit("rider"), Bounds(max_rows=1_000))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda place: engines[place % 2].measure(query, 1).tolist(), range(12)))

    assert [[[100_000]]] * 12 == found


WAYS: dict[str, Callable[[duckdb.DuckDBPyConnection], object]] = {
    "an unfinished result": lambda own: own.execute("SELECT * FROM range(9000)").fetchone(),
    "a failed transaction": lambda own: own.begin().execute("SELECT error('no')"),
    "a closed connection": lambda own: own.close(),
    "a dropped table": lambda own: own.execute("DROP TABLE rides"),
    "a column of another name": lambda own: own.execute("ALTER TABLE rides RENAME zone TO place"),
    "a column of another type": lambda own: own.execute("ALTER TABLE rides ALTER zone TYPE VARCHAR"),
}
"""What people do to the connection of a relation: DuckDB then reads nothing of it, of the first from DuckDB 2 on."""


@pytest.mark.parametrize("way", WAYS)
def test_a_relation_that_cannot_be_read_costs_nothing(way: str) -> None:
    """It is refused where it is opened and where it is asked, free; DuckDB 1 ends an unfinished result and answers."""
    for when in ("opening", "asking"):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE rides AS SELECT i % 7 AS zone FROM range(9000) AS t(i)")
        relation, hindered = connection.table("rides"), pytest.raises(DataError, match="own connection to DuckDB")
        answers = nullcontext() if way in HARMLESS else hindered
        if when == "opening":
            with suppress(duckdb.Error):
                WAYS[way](connection)
            if not way.startswith("a column"):  # then it is opened as it is now, or refused
                with answers:
                    Session(relation, budget=Budget(rho=1)).close()
            continue
        with Session(relation, budget=Budget(rho=1)) as session:
            with suppress(duckdb.Error):
                WAYS[way](connection)
            with answers:
                session.count(absolute=9_000)
            assert way in HARMLESS or not session.history()


def test_the_first_stream_is_used_and_later_ones_are_loaded() -> None:
    """A question that reads its table once loads it once; a table is handed over as it is."""
    loaded: list[pa.RecordBatchReader] = []

    def load() -> pa.RecordBatchReader:
        loaded.append(ROWS.to_reader())
        return loaded[-1]

    connection = duckdb.connect()
    connection.register("once", rescanned(load))
    assert connection.sql("SELECT count(*) FROM once").fetchall() == [(30_000,)]
    assert len(loaded) == 1
    assert connection.sql("SELECT count(*) FROM once AS a JOIN once AS b ON a.rider + 1 = b.rider").fetchall() == [
        (179_964,)
    ]
    assert rescanned(lambda: ROWS) is ROWS
