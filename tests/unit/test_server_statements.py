"""Transactions, cursors and prepared statements on the wire: as drivers expect them, and nothing is paid to prepare."""

from __future__ import annotations

import socket

import psycopg
import pytest
import servers
from psycopg.generators import execute
from psycopg.pq import ExecStatus, TransactionStatus

from farthing.server.service import LONGEST_SQL, OPTIONS
from farthing.server.wire.desk import Desk

BY_ZONE = "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"


@pytest.fixture(scope="module")
def wired(tmp_path_factory):
    """A server whose wire is open."""
    world = servers.World(tmp_path_factory.mktemp("wire"))
    with world.wired() as port:
        yield world, port
    world.close()


@pytest.fixture
def client(wired):
    """Alice's connection, and a function that tells what the books have charged."""
    world, port = wired
    facts = {"host": "127.0.0.1", "port": port, "user": "alice", "password": world.tokens["alice"], "dbname": "x"}
    with psycopg.connect(**facts, autocommit=True) as made:
        yield made


def spent(wired):
    """Return what the books have charged."""
    with wired[0].opened(analyst="test") as session:
        return session.spent


def status(client):
    """Return whether the server says that a transaction is open."""
    return client.pgconn.transaction_status


def sent(client, how, *given, **more):
    """Send one message of the extended protocol, and return what comes."""
    getattr(client.pgconn, f"send_{how}")(*given, **more)
    (came,) = client.wait(execute(client.pgconn))
    assert came.status in {ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK}, came.error_message
    return came


def test_a_transaction_is_open_until_it_ends(client):
    """BEGIN opens one, an error stops it until it is rolled back, and what was answered in it stays answered."""
    assert status(client) == TransactionStatus.IDLE
    client.execute("BEGIN")
    assert status(client) == TransactionStatus.INTRANS
    rows = client.execute(BY_ZONE).fetchall()
    with pytest.raises(psycopg.Error):
        client.execute("SELECT * FROM rides")
    assert status(client) == TransactionStatus.INERROR
    with pytest.raises(psycopg.errors.InFailedSqlTransaction, match="an earlier statement"):
        client.execute(BY_ZONE)
    client.execute("ROLLBACK")
    assert status(client) == TransactionStatus.IDLE
    assert client.execute(BY_ZONE).fetchall() == rows


def test_a_savepoint_goes_on_after_an_error(client):
    """ROLLBACK TO leaves the transaction open: drivers put a savepoint before each statement."""
    client.execute("BEGIN")
    client.execute("SAVEPOINT a")
    with pytest.raises(psycopg.Error):
        client.execute("SELECT nonsense")
    client.execute("ROLLBACK TO SAVEPOINT a")
    assert status(client) == TransactionStatus.INTRANS
    assert client.execute("SELECT 1").fetchone() == (1,)
    client.execute("COMMIT")
    assert status(client) == TransactionStatus.IDLE


@pytest.mark.parametrize("binary", [False, True])
def test_a_named_cursor_gives_its_rows_in_portions(wired, client, binary):
    """The question is asked once, with its parameters; the rows are those of a plain one, and then there are none."""
    asked, limit = f"{BY_ZONE.replace('GROUP', 'WHERE x < %s GROUP')}", 30
    whole = client.execute(asked, (limit,)).fetchall()
    before = spent(wired)
    with client.transaction(), client.cursor("some rows") as cursor:
        cursor.execute(asked, (limit,), binary=binary)
        assert [one.name for one in cursor.description] == ["zone", "n"]
        assert [*cursor.fetchmany(2), *cursor.fetchmany(2)] == whole
        assert cursor.fetchall() == []
        cursor.scroll(1, mode="absolute")
        assert cursor.fetchone() == whole[1]
    assert spent(wired) == before


def test_a_cursor_ends_with_its_transaction_unless_it_is_held(client):
    """COMMIT closes it; WITH HOLD keeps it until CLOSE."""
    client.execute("BEGIN; DECLARE a CURSOR FOR SELECT 1; DECLARE b CURSOR WITH HOLD FOR SELECT 2; COMMIT")
    assert client.execute("FETCH ALL FROM b").fetchall() == [(2,)]
    for text in ("FETCH a", "CLOSE a", "FETCH BACKWARD 1 FROM b", "DECLARE c CURSOR FOR SET x = 1"):
        with pytest.raises(psycopg.Error, match="refused"):
            client.execute(text)
    client.execute("CLOSE ALL")
    with pytest.raises(psycopg.Error, match="unknown portal"):
        client.execute("FETCH b")


def test_several_statements_in_one_text(client):
    """Each is done, in order, up to the first error; a semicolon in a text is none, and there are not too many."""
    client.execute("BEGIN; SELECT ';' AS a; SELECT 2")
    assert status(client) == TransactionStatus.INTRANS
    with pytest.raises(psycopg.Error, match="does not answer"):
        client.execute("ROLLBACK; SELECT * FROM nothing_here; BEGIN")
    assert status(client) == TransactionStatus.IDLE
    with pytest.raises(psycopg.Error, match="more than 100 statements"):
        client.execute("SELECT 1;" * 101)
    client.execute("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL")  # as a pool cleans up


def test_each_option_of_a_question_is_a_setting():
    """What advice tells to set can be set: numbers, words, switches."""
    desk = Desk(None, None, None)
    given = {str: "all", bool: "on", int: "7", float: "5%", dict: "5%"}
    for name, kinds in OPTIONS.items():
        desk.done(f"SET farthing.{name} = '{given[kinds[0]] if len(kinds) == 1 else '5%'}'")
    told = desk._options()
    assert set(told) == set(OPTIONS)
    assert all(isinstance(told[name], kinds) for name, kinds in OPTIONS.items())


@pytest.mark.parametrize("intervals", [False, True])
def test_a_prepared_statement_tells_its_columns_and_is_not_asked(wired, client, intervals):
    """Names and types stand before any parameter, for nothing; the rows that follow are of these types."""
    client.execute(f"SET farthing.intervals = {'on' if intervals else 'off'}")
    text = b"SELECT zone, COUNT(*) AS n, AVG(x) FROM rides WHERE x < $1 AND zone <> $2 GROUP BY zone"
    before = spent(wired)
    sent(client, "prepare", b"made", text)
    told = sent(client, "describe_prepared", b"made")
    assert spent(wired) == before
    assert [told.param_type(place) for place in range(told.nparams)] == [701, 25]
    ends = [(b"n_lower", 701), (b"n_upper", 701), (b"avg_x", 701), (b"avg_x_lower", 701), (b"avg_x_upper", 701)]
    more = [*ends, (b"met", 16), (b"paid", 701)] if intervals else [ends[2]]
    columns = [(told.fname(place), told.ftype(place)) for place in range(told.nfields)]
    assert columns == [(b"zone", 25), (b"n", 701), *more]
    client.execute("SET farthing.absolute = 300")
    client.execute("SET farthing.lower = 0; SET farthing.upper = 50; SET farthing.nonnegative = on")
    came = sent(client, "query_prepared", b"made", [b"25", b"c"], result_format=1)
    assert {len(came.get_value(0, place)) for place, (_, oid) in enumerate(columns) if oid == 701} == {8}
    assert [(came.fname(place), came.ftype(place)) for place in range(came.nfields)] == columns


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (b"EXPLAIN SELECT COUNT(*) FROM rides WHERE x < $1", [b"QUERY PLAN"]),
        (b"SHOW server_version", [b"server_version"]),
        (b"SELECT table_name FROM information_schema.tables WHERE table_name = $1", [b"table_name"]),
        (b"SET farthing.relative = '5%'", []),
    ],
)
def test_other_statements_are_described_as_well(client, text, columns):
    """Plans, settings and the catalog: nothing is done before it is executed."""
    sent(client, "prepare", b"other", text)
    told = sent(client, "describe_prepared", b"other")
    assert [told.fname(place) for place in range(told.nfields)] == columns
    assert client.execute("SHOW farthing.relative").fetchone() == ("",)


def test_rows_are_not_described(client):
    """A prepared * is refused for what it asks."""
    client.pgconn.send_prepare(b"rows", b"SELECT * FROM rides WHERE x < $1")
    client.wait(execute(client.pgconn))
    client.pgconn.send_describe_prepared(b"rows")
    (came,) = client.wait(execute(client.pgconn))
    assert b"no rows" in came.error_message


def until(raw, end):
    """Read up to the bytes that the server is to end with, in however many parts they come."""
    raw.settimeout(30)
    came = b""
    while not came.endswith(end):
        part = raw.recv(65_536)
        assert part, came
        came += part


def test_a_password_of_odd_bytes_is_wrong(wired):
    """Bytes that are no text are no token: who sends them is not known, and nothing breaks inside."""
    start = b"\0\3\0\0user\0alice\0\0"
    with socket.create_connection(("127.0.0.1", wired[1])) as raw:
        raw.sendall((len(start) + 4).to_bytes(4, "big") + start)
        raw.recv(100)
        raw.sendall(b"p\0\0\0\x07\xff\xfe\0")
        assert b"28P01" in raw.recv(10_000)


def test_a_query_follows_a_flush(wired):
    """After Flush a plain query may come without a Sync, as asyncpg sends it."""
    world, port = wired
    start = b"\0\3\0\0user\0alice\0\0"
    password = world.tokens["alice"].encode() + b"\0"
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall((len(start) + 4).to_bytes(4, "big") + start)
        raw.recv(100)
        raw.sendall(b"p" + (len(password) + 4).to_bytes(4, "big") + password)
        until(raw, b"Z\0\0\0\5I")
        raw.sendall(b"P\0\0\0\x11a\0SELECT 1\0\0\0" + b"H\0\0\0\4")
        until(raw, b"1\0\0\0\4")
        raw.sendall(b"Q\0\0\0\x0bBEGIN;\0")
        until(raw, b"BEGIN\0Z\0\0\0\5T")


def test_a_statement_has_a_length(client):
    """What no question may be is not read, and the connection goes on."""
    with pytest.raises(psycopg.Error, match="characters"):
        client.execute("SELECT 1 " + "-" * LONGEST_SQL)
    assert client.execute("SELECT 1").fetchone() == (1,)
