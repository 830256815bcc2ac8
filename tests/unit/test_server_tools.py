"""Drivers of other tools on the wire, as strangers use them: JDBC, ODBC, asyncpg, SQLAlchemy's reflection, pandas.

They are what DBeaver, Metabase and Tableau (JDBC), Power BI (ODBC) and Superset (SQLAlchemy) ask with.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
import servers
import sqlalchemy as sa

from farthing.server.wire.listener import Listener

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]  # of the drivers
BY_ZONE = "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"
JAR = Path("/usr/share/java/postgresql.jar")
JAVA = """
import java.sql.*;
public class Reads {
    public static void main(String[] given) throws Exception {
        String url = "jdbc:postgresql://127.0.0.1:" + given[0] + "/farthing?prepareThreshold=1";
        try (Connection one = DriverManager.getConnection(url, "alice", given[1])) {
            DatabaseMetaData meta = one.getMetaData();
            show("table", meta.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME");
            show("column", meta.getColumns(null, "public", "rides", "%"), "COLUMN_NAME", "TYPE_NAME");
            show("key", meta.getPrimaryKeys(null, "public", "rides"), "COLUMN_NAME");
            show("foreign", meta.getImportedKeys(null, "public", "rides"), "FKCOLUMN_NAME");
            show("index", meta.getIndexInfo(null, "public", "rides", false, false), "INDEX_NAME");
            for (int again = 0; again < 2; again++)
                show("row", one.createStatement().executeQuery(given[2]), "zone", "n");
            PreparedStatement asked = one.prepareStatement("SELECT COUNT(*) AS n FROM rides WHERE x < ?");
            asked.setInt(1, 20);
            show("prepared", asked.executeQuery(), "n");
            one.setAutoCommit(false);
            Statement portions = one.createStatement();
            portions.setFetchSize(2);
            show("portion", portions.executeQuery(given[2]), "zone");
            try {
                one.createStatement().executeQuery("SELECT * FROM rides");
            } catch (SQLException error) {
                System.out.println("refused|" + error.getSQLState());
            }
        }
    }
    static void show(String what, ResultSet rows, String... columns) throws SQLException {
        while (rows.next()) {
            StringBuilder line = new StringBuilder(what);
            for (String column : columns) line.append('|').append(rows.getString(column));
            System.out.println(line);
        }
    }
}
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A server whose wire is open on a free port."""
    made = servers.World(tmp_path_factory.mktemp("wire"))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    tables = made.service.catalog()
    listener = Listener(made.service, made.people, tables, lambda _: None)
    made.port = asyncio.run_coroutine_threadsafe(listener.start("127.0.0.1", 0), loop).result()
    yield made
    asyncio.run_coroutine_threadsafe(listener.stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    tables.close()
    made.close()


@pytest.fixture
def told(world):
    """The rows that HTTP tells, which everybody else is to be told."""
    return [(row["zone"], row["n"]) for row in world.ask("bob").json()["answers"]]


@pytest.mark.skipif(
    not JAR.exists() or shutil.which("java") is None, reason="NOT TESTED: JDBC, libpostgresql-jdbc-java"
)
def test_jdbc(world, told, tmp_path):
    """Tables, columns, keys and indexes are listed; questions are answered, prepared, and in portions."""
    (tmp_path / "Reads.java").write_text(JAVA)
    command = ["java", "-cp", str(JAR), str(tmp_path / "Reads.java"), str(world.port), world.tokens["alice"], BY_ZONE]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert ["table|rides", "column|zone|varchar", "column|x|float8"] == lines[:3]
    rows = [line.split("|") for line in lines if line.startswith("row|")]
    assert 2 * [zone for zone, _ in told] == [row[1] for row in rows]
    assert 2 * [number for _, number in told] == [float(row[2]) for row in rows]
    assert 3 == sum(line.startswith("portion|") for line in lines)
    assert 1 == sum(line.startswith("prepared|") for line in lines)
    assert "refused|42601" == lines[-1]


def test_odbc(world, told):
    """Tables and columns are listed; a parameter that travels as a text is the number that it stands for."""
    pyodbc = pytest.importorskip("pyodbc", reason="NOT TESTED: ODBC needs pyodbc")
    if "PostgreSQL Unicode" not in pyodbc.drivers():
        pytest.skip("NOT TESTED: ODBC needs odbc-postgresql")
    facts = f"SERVER=127.0.0.1;PORT={world.port};DATABASE=farthing;UID=alice;PWD={world.tokens['alice']}"
    client = pyodbc.connect(f"DRIVER={{PostgreSQL Unicode}};{facts};SSLmode=disable", autocommit=True)
    cursor = client.cursor()
    assert ["rides"] == [row.table_name for row in cursor.tables(schema="public")]
    assert [("zone", "varchar"), ("x", "float8")] == [
        (row.column_name, row.type_name) for row in cursor.columns(table="rides")
    ]
    assert told == [tuple(row) for row in cursor.execute(BY_ZONE).fetchall()]
    assert cursor.execute("SELECT COUNT(*) FROM rides WHERE x < ?", 10.0).fetchone()[0] > 0
    with pytest.raises(pyodbc.Error, match="42601"):
        cursor.execute("SELECT * FROM rides")
    client.close()


def test_asyncpg(world, told):
    """Questions are answered, in the binary format; errors have their codes."""
    asyncpg = pytest.importorskip("asyncpg", reason="NOT TESTED: asyncpg is not installed")

    async def asked():
        """Ask."""
        facts = {"host": "127.0.0.1", "port": world.port, "user": "alice", "password": world.tokens["alice"]}
        client = await asyncpg.connect(**facts, database="farthing", ssl=False)
        rows = [tuple(row) for row in await client.fetch(BY_ZONE)]
        with pytest.raises(asyncpg.PostgresError, match="refused"):
            await client.fetch("SELECT * FROM rides")
        await client.close()
        return rows

    assert told == asyncio.run(asked())


def test_superset_reflects_and_pandas_reads(world, told):
    """SQLAlchemy lists schemas, tables, columns, keys, indexes and comments; a table that it reflected is asked."""
    pandas = pytest.importorskip("pandas")
    facts = {"username": "alice", "password": world.tokens["alice"], "host": "127.0.0.1", "port": world.port}
    engine = sa.create_engine(sa.URL.create("postgresql+psycopg", **facts, database="farthing"))
    seen = sa.inspect(engine)
    assert (["public"], ["rides"], []) == (seen.get_schema_names(), seen.get_table_names(), seen.get_view_names())
    assert [("zone", "VARCHAR"), ("x", "DOUBLE PRECISION")] == [
        (column["name"], str(column["type"])) for column in seen.get_columns("rides")
    ]
    assert not seen.get_indexes("rides")
    assert not seen.get_foreign_keys("rides")
    assert not seen.get_pk_constraint("rides")["constrained_columns"]
    frame = pandas.read_sql(BY_ZONE, engine)
    assert told == list(frame.itertuples(index=False, name=None))
    tables = sa.MetaData()
    tables.reflect(engine)
    rides = tables.tables["rides"]
    question = sa.select(rides.c.zone, sa.func.count().label("n")).group_by(rides.c.zone)
    with engine.connect() as client:
        assert told == [tuple(row) for row in client.execute(question)]
    engine.dispose()
