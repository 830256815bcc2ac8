"""The PostgreSQL wire: clients connect as to any database, see tables without a row, and pay for questions only."""

from __future__ import annotations

import asyncio
import re
import select
import shutil
import socket
import subprocess
import threading
from decimal import Decimal

import psycopg
import pytest
import servers

from farthing.errors import UnsupportedQuery
from farthing.server.guard import Limits
from farthing.server.wire import catalog, listener, prepared, values
from farthing.server.wire.catalog import EmptyTables
from farthing.server.wire.listener import Listener

pytestmark = pytest.mark.thorough

BY_ZONE = "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"


@pytest.fixture
def world(tmp_path):
    """A server whose wire is open on a free port."""
    made = servers.World(tmp_path)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    tables = made.service.catalog()
    made.loop, made.listener = loop, Listener(made.service, made.people, tables, lambda _: None)
    made.port = asyncio.run_coroutine_threadsafe(made.listener.start("127.0.0.1", 0), loop).result()
    yield made
    asyncio.run_coroutine_threadsafe(made.listener.stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    tables.close()
    made.close()


def connected(world, who="alice", **how):
    """Connect as somebody."""
    facts = {"host": "127.0.0.1", "port": world.port, "user": who, "password": world.tokens[who], "dbname": "farthing"}
    return psycopg.connect(**facts | how, autocommit=True)


@pytest.mark.parametrize("binary", [False, True])
def test_a_question_is_answered(world, binary):
    """The rows are those of HTTP, and cost nothing the second time."""
    with connected(world) as client:
        rows = client.execute(BY_ZONE, binary=binary).fetchall()
    told = world.ask("bob").json()
    assert told["paid"]["mu"] == 0
    assert rows == [(row["zone"], row["n"]) for row in told["answers"]]


def test_the_question_of_a_dashboard_is_answered(world):
    """Quoted and qualified names, a subquery and arithmetic: a text that names no keys is answered."""
    text = (
        'SELECT UPPER("source"."zone") AS "zone", 100.0 * SUM(CASE WHEN "source"."x" < 25 THEN 1 ELSE 0 END) / '
        'COUNT(*) AS "share" FROM (SELECT "public"."rides"."zone" AS "zone", "public"."rides"."x" AS "x" '
        'FROM "public"."rides" WHERE "public"."rides"."x" >= 0) AS "source" '
        'GROUP BY UPPER("source"."zone") ORDER BY "zone" ASC LIMIT 2000'
    )
    with connected(world) as client:
        client.execute("SET farthing.absolute = 40")
        rows = client.execute(text).fetchall()
        zones = [zone for zone, _ in client.execute(BY_ZONE).fetchall()]
    assert sorted(zone.upper() for zone in zones) == [zone for zone, _ in rows]
    assert all(-40 <= share <= 140 for _, share in rows)


def test_parameters_are_literals(world):
    """A parameter takes the place of a literal and can be nothing else."""
    with connected(world) as client:
        some = client.execute("SELECT COUNT(*) AS n FROM rides WHERE zone = %s", ("b",)).fetchone()[0]
        none = client.execute("SELECT COUNT(*) AS n FROM rides WHERE zone = %s", ("b' OR '1'='1",)).fetchone()[0]
        number = client.execute("SELECT COUNT(*) AS n FROM rides WHERE x < %s", (25,)).fetchone()[0]
    assert abs(some - 2_000) < 400
    assert abs(none) < 200
    assert abs(number - 5_650) < 1_200


def test_settings_change_the_target(world):
    """SET farthing.relative holds for the questions that follow, and intervals come on wish."""
    with connected(world) as client:
        notices = []
        client.add_notice_handler(lambda notice: notices.append(notice.message_primary))
        client.execute("SET farthing.relative = '20%'")
        client.execute("SET farthing.intervals TO on")
        found = client.execute(BY_ZONE)
        names = [column.name for column in found.description]
        assert client.execute("SHOW farthing.relative").fetchone() == ("20%",)
        client.execute("SET farthing.relative = DEFAULT")
        assert client.execute("SHOW farthing.relative").fetchone() == ("",)
    assert names == ["zone", "n", "n_lower", "n_upper", "met", "paid"]
    assert "within 20 %" in notices[0]
    assert "paid epsilon" in notices[0]


@pytest.mark.parametrize(
    "text",
    [
        "SET farthing.color = 'red'",
        "SET farthing.relative = 'much'",
        "SELECT * FROM rides",
        "SELECT zone FROM rides LIMIT 1",
        "SELECT * FROM (SELECT * FROM rides) AS t",
        "INSERT INTO rides VALUES ('a', 1)",
        "COPY rides TO '/etc/passwd'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "ATTACH 'x.db'",
        "SELECT getenv('HOME')",
        "SELECT nonsense",
        "(" * 40,
    ],
)
def test_what_is_no_question_is_refused(world, text):
    """An error of the wire with what, rule and next step; the connection goes on, and nothing is charged."""
    with connected(world) as client:
        with pytest.raises(psycopg.Error) as error:
            client.execute(text)
        assert error.value.diag.message_primary
        assert error.value.diag.message_hint
        assert client.execute("SELECT 1").fetchone() == (1,)
    with world.opened(analyst="test") as session:
        assert not session.spent


def test_a_question_over_the_cap_is_refused_with_its_price(world):
    """What no group can meet under the connection's cap is refused, free, and the hint tells what fits."""
    with connected(world) as client:
        client.execute("SET farthing.relative = 0")
        client.execute("SET farthing.absolute = 0.01")
        with pytest.raises(psycopg.Error, match="out of reach") as error:
            client.execute(BY_ZONE)
    assert error.value.sqlstate == "53400"
    assert "epsilon" in error.value.diag.message_hint


def test_tables_are_seen_without_a_row(world):
    """Clients find tables, columns and types, and no row of them."""
    with connected(world) as client:
        found = client.execute("SELECT table_name FROM information_schema.tables").fetchall()
        columns = client.execute("SELECT column_name, data_type FROM information_schema.columns").fetchall()
        empty = client.execute("SELECT * FROM rides LIMIT 0")
        assert [column.name for column in empty.description] == ["zone", "x"]
        assert empty.fetchall() == []
        assert client.execute("SELECT version()").fetchone()[0].startswith("PostgreSQL ")
        assert client.execute("SHOW server_version").fetchone() == ("16.0",)
    assert found == [("rides",)]
    assert [name for name, _ in columns] == ["zone", "x"]


def test_a_table_is_reflected_as_in_any_database(world):
    """SQLAlchemy, as dashboards use it, finds columns with their types, and no keys, indexes or views."""
    import sqlalchemy

    address = ("postgresql+psycopg", "alice", world.tokens["alice"], "127.0.0.1", world.port, "farthing")
    engine = sqlalchemy.create_engine(sqlalchemy.URL.create(*address))
    seen = sqlalchemy.inspect(engine)
    for schema in (None, "public"):
        columns = {one["name"]: str(one["type"]) for one in seen.get_columns("rides", schema=schema)}
        assert columns == {"zone": "VARCHAR", "x": "DOUBLE PRECISION"}
        assert seen.get_table_names(schema) == ["rides"]
        parts = (seen.get_foreign_keys, seen.get_indexes, seen.get_unique_constraints, seen.get_check_constraints)
        assert [part("rides", schema=schema) for part in parts] == [[], [], [], []]
        assert seen.get_pk_constraint("rides", schema=schema)["constrained_columns"] == []
        assert [seen.get_view_names(schema), seen.get_materialized_view_names(schema)] == [[], []]
        assert seen.get_table_comment("rides", schema=schema) == {"text": None}
    engine.dispose()


def test_pandas_reads_as_from_any_database(world):
    """The usual libraries need no dialect of ours."""
    import pandas as pd
    import sqlalchemy

    address = sqlalchemy.URL.create(
        "postgresql+psycopg", "alice", world.tokens["alice"], "127.0.0.1", world.port, "farthing"
    )
    engine = sqlalchemy.create_engine(address)
    with engine.connect() as connection:
        frame = pd.read_sql(BY_ZONE, connection)
    engine.dispose()
    assert list(frame.columns) == ["zone", "n"]
    assert frame["zone"].tolist() == servers.ZONES


@pytest.mark.parametrize(
    ("who", "password"), [("alice", "wrong"), ("alice", ""), ("nobody", "nobody.x"), ("alice", "bob's")]
)
def test_strangers_stay_outside(world, who, password):
    """The user is the token's name: another one's token opens nothing."""
    secret = world.tokens["bob"] if password.endswith("'s") else password
    with pytest.raises(psycopg.OperationalError, match=r"who connects is not known|no password supplied"):
        psycopg.connect(host="127.0.0.1", port=world.port, user=who, password=secret, dbname="x")


@pytest.mark.parametrize("how", ["revoked", "ended", "replaced"])
def test_a_token_that_is_no_longer_good(world, how, monkeypatch):
    """What was taken back, has ended or was given anew opens nothing, here and over HTTP."""
    old = world.tokens["alice"]
    if how == "revoked":
        world.people.revoke("alice")
    elif how == "replaced":
        world.people.add("alice", "analyst")
    else:
        monkeypatch.setattr(type(world.people.everybody()[0]), "welcome", lambda *_: False)
    with pytest.raises(psycopg.OperationalError, match="who connects is not known"):
        connected(world, password=old)
    assert world.request("POST", "/v1/ask", "alice", json=servers.COUNT).status_code == 401


def test_guesses_shut_nobody_out(world):
    """Guesses are counted by address and only where they are wrong: whoever has the token comes in."""
    world.listener._shared = (*world.listener._shared[:3], Limits(burst=3).take)
    told = []
    for _ in range(5):
        with pytest.raises(psycopg.OperationalError) as refused:
            connected(world, password="alice.guess")  # noqa: S106
        told.append("too many requests" in str(refused.value))
    assert told == [False, False, False, True, True]
    with connected(world) as client:
        assert client.execute("SELECT 1").fetchone() == (1,)


def test_a_statement_of_a_megabyte_ends_its_connection(world):
    """It is read up to the limit; nothing is charged, and others go on."""
    with connected(world) as client, pytest.raises(psycopg.OperationalError):
        client.execute("SELECT COUNT(*) FROM rides WHERE zone IN (" + "'a'," * (1 << 18) + "'b')")
    with connected(world) as client:
        assert client.execute("SELECT 1").fetchone() == (1,)
    with world.opened(analyst="test") as session:
        assert not session.spent


def test_an_auditor_cannot_ask(world):
    """Roles hold on the wire, too."""
    with connected(world, "eve") as client, pytest.raises(psycopg.errors.InsufficientPrivilege):
        client.execute(BY_ZONE)


def test_rows_come_in_portions(world):
    """A client that fetches some rows at a time gets all of them, and the question is asked once."""
    with connected(world) as client:
        whole = client.execute(BY_ZONE).fetchall()
        with client.cursor() as cursor:
            streamed = list(cursor.stream(BY_ZONE))
    assert streamed == whole


@pytest.mark.parametrize(
    "data", [b"\0", b"\xff" * 64, b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x08\x04\xd2\x16\x2f" + b"Q" * 50]
)
def test_what_is_no_message_ends_the_connection(world, data):
    """Bytes of another protocol end their own connection and no other."""
    with socket.create_connection(("127.0.0.1", world.port)) as raw:
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        raw.settimeout(60)
        while raw.recv(4096):
            pass
    with connected(world) as client:
        assert client.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.skipif(shutil.which("psql") is None, reason="NOT TESTED: psql is not installed")
def test_psql(world):
    """The usual client shows tables, columns, databases, answers and notices."""
    where = ["psql", "-X", "-h", "127.0.0.1", "-p", str(world.port), "-U", "alice", "-d", "farthing"]
    asked = [word for text in (r"\dt+", r"\d rides", r"\d+ rides", r"\l", BY_ZONE) for word in ("-c", text)]
    env = {"PGPASSWORD": world.tokens["alice"], "PATH": "/usr/bin:/bin"}
    told = subprocess.run([*where, *asked], env=env, capture_output=True, text=True, check=True)
    assert "rides" in told.stdout
    assert 2 == told.stdout.count('Table "public.rides"')
    assert 2 == len(re.findall(r"zone +\| character varying", told.stdout))
    assert 2 == len(re.findall(r"x +\| double precision", told.stdout))
    assert "(3 rows)" in told.stdout
    assert "paid epsilon" in told.stderr
    assert "ERROR" not in told.stderr


def test_what_a_connection_has_prepared_is_bounded(world, monkeypatch):
    """Statements and portals are kept up to a number and a length; what is done with makes room; others go on."""
    monkeypatch.setattr(prepared, "MOST_STATEMENTS", 3)
    with connected(world) as client:
        for number in range(3):
            client.execute(f"SELECT {number}", prepare=True)
        with pytest.raises(psycopg.Error, match="too much is prepared in this connection"):
            client.execute("SELECT 3", prepare=True)
        client.execute("DEALLOCATE ALL")
        monkeypatch.setattr(prepared, "LONGEST_TEXTS", 100)
        client.execute("SELECT 4", prepare=True)
        with pytest.raises(psycopg.Error, match="too much is prepared in this connection"):
            client.execute(f"SELECT '{'x' * 100}'", prepare=True)
        with connected(world, "bob") as other:
            assert (5,) == other.execute("SELECT 5", prepare=True).fetchone()
    assert not world.opened(analyst="test").spent


def test_connections_are_bounded(world, monkeypatch):
    """Beyond so many at a time a client is told, and those that are open go on."""
    monkeypatch.setattr(listener, "MOST_OPEN", 1)
    with connected(world) as client:
        with pytest.raises(psycopg.OperationalError, match="too many connections are open"):
            connected(world, "bob")
        assert (1,) == client.execute("SELECT 1").fetchone()


@pytest.mark.parametrize("oid", list(values.SIZES))
def test_null_is_null_in_every_type(oid):
    """A value that is not there has no bytes."""
    assert values.encoded(None, oid, binary=True) is None
    assert values.decoded(None, oid, binary=True) is None


@pytest.mark.parametrize("given", [b"", b"abc", b"\xff"])
def test_parameters_that_are_no_numbers(given):
    """Bytes that are no value are an error of the parameter, not of the server."""
    for binary in (True, False):
        with pytest.raises(ValueError, match=r"parameter|invalid|decode"):
            values.decoded(given, values.INT8, binary=binary)


def test_decimals_and_texts():
    """What has no type of its own leaves as text; a zero byte cannot."""
    assert values.encoded(Decimal("1.50"), values.FLOAT8, binary=False) == b"1.5"
    assert values.encoded("a\0b", values.TEXT, binary=False) == "a\N{REPLACEMENT CHARACTER}b".encode()


ENDLESS = [
    "SELECT COUNT(*) FROM range(100000000000)",
    "SELECT COUNT(*) FROM generate_series(1, 100000000000)",
    "SELECT LENGTH(REPEAT('x', 2000000000))",
    "SELECT LENGTH(LPAD('x', 2000000000, 'y'))",
    "SELECT LENGTH(FORMAT('{:>2000000000}', 'x'))",
    "SELECT LEN(LIST_SORT(RANGE(100000000)))",
    "SELECT LENGTH(REGEXP_REPLACE(table_name, '', 'x', 'g')) FROM information_schema.tables",
    "SELECT LEVENSHTEIN('a', 'b')",
]


def test_what_makes_much_of_little_is_refused():
    """A function that is not listed is not called, however little it is given."""
    tables = EmptyTables({"rides": {"zone": "string"}})
    for text in ENDLESS:
        with pytest.raises(UnsupportedQuery):
            tables.asked(text)


def test_a_long_statement_is_interrupted(monkeypatch):
    """Work without an end ends, and the next client is answered."""
    tables = EmptyTables({"rides": {"zone": "string"}})
    monkeypatch.setattr(catalog, "_LIMIT_S", 0.05)
    many = ", ".join(f"pg_type c{place}" for place in range(9))
    for text in (
        f"SELECT COUNT(*) FROM {many}",
        "WITH RECURSIVE t AS (SELECT 1 n UNION ALL SELECT n FROM t) SELECT COUNT(*) FROM t",
    ):
        with pytest.raises(UnsupportedQuery, match="takes too long"):
            tables.asked(text)
    monkeypatch.undo()
    assert ["zone"] == tables.asked("SELECT * FROM rides").column_names


def test_nobody_waits_for_ever_for_another_client(monkeypatch):
    """While a statement runs, others are told so after a while."""
    tables = EmptyTables({"rides": {"zone": "string"}})
    monkeypatch.setattr(catalog, "_WAIT_S", 0.01)
    with tables._turn(), pytest.raises(UnsupportedQuery, match="the catalog is busy"):
        tables.asked("SELECT 1")
    assert 1 == tables.asked("SELECT 1").num_rows


def test_there_is_one_database_and_it_is_named():
    """Lists of databases and of tables name it alike, and nothing of the engine beside it."""
    tables = EmptyTables({"rides": {"zone": "string"}})
    named = tables.asked("SELECT datname FROM pg_catalog.pg_database").to_pylist()
    assert named == [{"datname": "farthing"}]
    for place, view in (("table_catalog", "tables"), ("catalog_name", "schemata"), ("table_catalog", "columns")):
        found = tables.asked(f"SELECT DISTINCT {place} AS name FROM information_schema.{view}").column("name")
        assert set(found.to_pylist()) - {"system", "temp"} == {"farthing"}
    assert tables.asked("SELECT current_database() AS name").to_pylist() == [{"name": "farthing"}]
    tables.close()


def test_the_catalog_has_little_to_work_with():
    """No way out, one thread, little memory, and settings that nobody changes; few rows leave."""
    tables = EmptyTables({"rides": {"zone": "string"}})
    names = ("enable_external_access", "threads", "memory_limit", "lock_configuration")
    told = tables._engine.execute(f"SELECT {', '.join(f'current_setting({name!r})' for name in names)}").fetchall()
    assert [(False, 1, "61.0 MiB", True)] == told
    pairs = tables.asked(
        "SELECT a.typname FROM pg_type a, pg_type b, pg_type c, pg_type d, pg_type e, pg_type f LIMIT 1000000"
    )
    assert catalog._MOST_ROWS == pairs.num_rows
    assert 3 == tables.asked("SELECT a.typname FROM pg_type a FETCH FIRST 3 ROWS ONLY").num_rows


def test_what_is_under_way_is_answered_when_it_stops(world, monkeypatch):
    """A client that waits is sent away at once; one whose question runs gets its answer first."""
    begun, go, asked = threading.Event(), threading.Event(), world.service.ask

    def slow(*given: object) -> object:
        """Answer when it is told to."""
        begun.set()
        assert go.wait(60)
        return asked(*given)

    monkeypatch.setattr(type(world.service), "ask", lambda _, *given: slow(*given))
    rows: list[object] = []
    with connected(world) as idle, connected(world, "bob") as busy:
        question = threading.Thread(target=lambda: rows.extend(busy.execute(BY_ZONE).fetchall()))
        question.start()
        assert begun.wait(60)
        stopped = asyncio.run_coroutine_threadsafe(world.listener.stop(), world.loop)
        assert select.select([idle.fileno()], [], [], 60)[0]  # its end
        with pytest.raises(psycopg.OperationalError):
            idle.execute("SHOW server_version")
        assert not stopped.done()
        go.set()
        question.join(60)
        stopped.result(60)
    assert len(rows) == 3
