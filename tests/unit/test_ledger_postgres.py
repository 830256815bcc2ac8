"""Books on a PostgreSQL server: made once, shared by processes, refused with a reason, and never telling a password."""

import contextlib
import logging
import os
import socket
import subprocess
import sys
import threading
import traceback

import pytest
from ledger_servers import fresh_schema, raw
from sqlalchemy import make_url

from farthing.errors import BudgetExceeded, LedgerError, LedgerMismatch
from farthing.ledger.entry import Stored, Terms
from farthing.ledger.postgres import PostgresStore
from farthing.ledger.store import Ledger

TERMS = Terms("gdp", budget=100, delta=0, keys_delta=0, unit="row", description="100 farthings")


@pytest.fixture
def url():
    with fresh_schema() as named:
        yield named


def reserve(ledger, price, question="q"):
    return ledger.reserve(increase=price, fresh=price, question=question, version=0, label="COUNT(*)")


def test_reopened_ledger_is_the_same(url):
    """What was charged, stored and drawn is there again."""
    with Ledger.open(url, TERMS) as first:
        key = first.hash_key
        first.settle(reserve(first, 10), 4, lambda _: b"released\x00")
    with Ledger.open(url, TERMS) as ledger, Ledger.inspect(url) as looking:
        assert (4, key, TERMS) == (ledger.spent, ledger.hash_key, ledger.terms)
        assert Stored(1, b"released\x00") == ledger.load("q") == looking.load("q")
        with pytest.raises(LedgerError, match="opened for reading"):
            reserve(looking, 1)


def test_other_terms_are_refused(url):
    """A ledger is opened with the terms it was made with."""
    Ledger.open(url, TERMS).close()
    with pytest.raises(LedgerMismatch, match=f"budget is {100 / 2**40:.6g}, asked for {101 / 2**40:.6g}"):
        Ledger.open(url, Terms("gdp", 101, 0, 0, "row", "101"))


def test_inspect_makes_nothing(url):
    """Looking at an empty schema is an error, and leaves it empty."""
    with pytest.raises(LedgerError, match="no ledger here"):
        Ledger.inspect(url)
    with raw(url) as hand:
        assert [] == hand.execute("SELECT 1 FROM pg_namespace WHERE nspname = current_schema()").fetchall()


def test_foreign_schema_is_refused(url):
    """Somebody else's tables are left alone."""
    with raw(url) as hand:
        hand.execute(f"CREATE SCHEMA {url.partition('schema=')[2]}; CREATE TABLE terms (theirs text)")
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger.open(url, TERMS)


@pytest.mark.parametrize(("version", "told"), [(6, "newer version"), (1, "damaged"), (0, "damaged")])
def test_other_formats_are_refused(url, version, told):
    """A ledger from the future is refused, and a number that no ledger on a server ever had."""
    Ledger.open(url, TERMS).close()
    with raw(url) as hand:
        hand.execute("UPDATE format SET version = %s", (version,))
    for opened in (lambda: Ledger.open(url, TERMS), lambda: Ledger.inspect(url)):
        with pytest.raises(LedgerError, match=told):
            opened()


def test_many_create_the_same_ledger_at_once(url):
    """Those who create a ledger at the same moment all get the one that came first."""
    found, gate = [], threading.Barrier(6)

    def work():
        gate.wait()
        with Ledger.open(url, TERMS) as ledger:
            found.append((ledger.identity, reserve(ledger, 1, str(threading.get_ident())).id))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 == len({identity for identity, _ in found})
    assert list(range(1, 7)) == sorted(number for _, number in found)


@pytest.mark.parametrize("table", ["terms", "reservations", "settlements", "acts"])
@pytest.mark.parametrize("change", ["DELETE FROM {}", "UPDATE {0} SET {1} = {1}", "TRUNCATE {} CASCADE"])
def test_entries_are_only_added(url, table, change):
    """The database itself refuses to change or delete what was booked."""
    import psycopg

    Ledger.open(url, TERMS).close()
    column = "identity" if table == "terms" else "seq"
    with raw(url) as hand, pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="only ever added"):
        hand.execute(change.format(table, column))


def test_commits_are_durable_and_waits_end(url):
    """Every commit waits for the disk, whatever the server's default; no wait is for ever."""
    with Ledger.open(url, TERMS, timeout_s=7) as ledger, ledger._books.reading() as connection:
        names = ("synchronous_commit", "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
        shown = {name: connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in names}
    assert ["on", "5600ms", "6300ms", "12600ms"] == list(shown.values())


def test_locked_ledger_is_refused_after_the_timeout(url):
    """A writer that stays longer than the timeout is told as a lock; reading goes on."""
    with Ledger.open(url, TERMS, timeout_s=1) as ledger, raw(url) as hand:
        hand.execute("BEGIN; SELECT 1 FROM totals FOR UPDATE")
        with pytest.raises(LedgerError, match="locked"):
            reserve(ledger, 1)
        assert 0 == ledger.spent
        hand.execute("ROLLBACK")
        reserve(ledger, 1)


def test_a_slow_statement_is_not_told_as_a_lock(url):
    """What takes longer than the time limit is told as slow: there may be no other writer at all."""
    with Ledger.open(url, TERMS, timeout_s=2) as ledger:
        with pytest.raises(LedgerError, match="did not answer in time"), ledger._books.reading() as connection:
            connection.exec_driver_sql("SELECT pg_sleep(60)")
        reserve(ledger, 1)


def test_a_schema_that_may_not_be_used_is_not_told_as_damaged(url):
    """Without USAGE no table can be seen; that is told as it is, to who opens the books and to who has them open."""
    schema, role = url.partition("schema=")[2], "farthing_no_usage"
    made = make_url(url)
    Ledger.open(url, TERMS).close()
    with raw(url) as hand:
        hand.execute(f"DROP ROLE IF EXISTS {role}")
        hand.execute(f"CREATE ROLE {role} LOGIN")
        try:
            theirs = made.set(username=role, password=None).render_as_string(hide_password=False)
            for opened in (lambda: Ledger.open(theirs, TERMS), lambda: Ledger.inspect(theirs)):
                with pytest.raises(LedgerError, match="may not be opened") as refused:
                    opened()
                assert "USAGE" in refused.value.rule
            hand.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
            with pytest.raises(LedgerError, match="may not be opened"):
                Ledger.inspect(theirs)
            hand.execute(f"REVOKE USAGE ON SCHEMA {schema} FROM {role}")
        finally:
            hand.execute(f"DROP ROLE {role}")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://user:s3cr%2Ft@127.0.0.1:1/db",
        "postgresql+psycopg://user:s3cr%2Ft@127.0.0.1:1/db?schema=mine&sslpassword=s3cr/t",
        "postgresql+psycopg://user@127.0.0.1:1/db?password=s3cr/t",
        "mysql://user:s3cr/t@host/db",
        "postgresql+psycopg://user:s3cr/t@127.0.0.1:notaport/db",
        "postgresql+psycopg://user:s3cr/t@host",
        "postgresql+psycopg://user:s3cr%2Ft@127.0.0.1:1/db?schema=s3cr/t",
        "://s3cr/t",
        "postgresql+psycopg://user:p@s3cr@127.0.0.1:1/db",
    ],
)
def test_passwords_are_never_told(url, caplog):
    """No error, its cause, its traceback nor a log holds the password, however wrong the URL is."""
    pytest.importorskip("psycopg")
    caplog.set_level(logging.DEBUG)
    with pytest.raises(LedgerError) as told:
        Ledger.open(url, TERMS, timeout_s=0.1)
    text = "".join(traceback.format_exception(told.value)) + str(vars(told.value)) + caplog.text
    text = text.replace(repr(url), "")  # pytest's own source line of this test
    assert "s3cr" not in text
    assert told.value.next_step


def test_place_is_shown_without_secrets():
    """The path and the repr of a store show user, host and schema, and nothing else."""
    settings = "schema=mine&password=s3cret&sslmode=require&Password=s3cret&options=-cx%3Ds3cret&sslkey=s3cret"
    store = PostgresStore.of(f"postgres://user:s3cret@host:5432/db?{settings}")
    assert "postgresql+psycopg://user@host:5432/db?schema=mine&sslmode=require" == store.place
    assert "s3cret" not in repr(store)
    assert "failed for *** *** *** " == store._without_secrets("failed for s3cret s3cret s3cret ") + " "


def test_missing_driver_is_told(monkeypatch):
    """Without psycopg the error says what to install."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match="driver is missing") as told:
        Ledger.open("postgresql://user@127.0.0.1:1/db", TERMS)
    assert "farthing[postgres]" in told.value.next_step


def test_server_that_does_not_sync_is_refused(url, monkeypatch):
    """A server with fsync=off could forget a charge: it may be looked at, not written."""
    Ledger.open(url, TERMS).close()
    shown = PostgresStore._require_durable

    class Off:
        """A connection whose server has fsync off."""

        def __init__(self, inner):
            self.inner = inner

        def exec_driver_sql(self, _):
            return self.inner.exec_driver_sql("SELECT 'off'")

        def close(self):
            self.inner.close()

    monkeypatch.setattr(PostgresStore, "_require_durable", lambda store, inner: shown(store, Off(inner)))
    with pytest.raises(LedgerError, match="does not wait for its disk"):
        Ledger.open(url, TERMS)
    with Ledger.inspect(url) as ledger:
        assert 0 == ledger.spent


RACER = """
import random, sys
from farthing.errors import BudgetExceeded
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

url, name = sys.argv[1:]
terms = Terms("gdp", budget=1000, delta=0, keys_delta=0, unit="row", description="shared")
rng = random.Random(name)
print("ready", flush=True)
sys.stdin.readline()
with Ledger.open(url, terms) as ledger:
    refused = 0
    while refused < 3:
        reserved = rng.randrange(1, 30)
        try:
            receipt = ledger.reserve(increase=reserved, fresh=reserved, question=name, label="race",
                                     version=getattr(ledger.load(name), "version", 0))
        except BudgetExceeded:
            refused += 1
            continue
        ledger.settle(receipt, rng.randrange(reserved // 2, reserved + 1), lambda blob: (blob or b"") + b"x")
"""


def test_racing_processes_never_overdraw(url):
    """Four processes make one ledger at the same moment and spend it to the end: no overdraft, no deadlock."""
    pipe = subprocess.PIPE
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, url, f"racer {i}"], stdin=pipe, stdout=pipe, text=True)
        for i in range(4)
    ]
    for racer in racers:
        assert "ready\n" == racer.stdout.readline()
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        racer.communicate(timeout=60)
        assert 0 == racer.returncode
    with Ledger.open(url, Terms("gdp", 1000, 0, 0, "row", "shared")) as ledger:
        ledger.verify()
        assert 1000 - 30 < ledger.spent <= 1000
        assert [] == ledger.open_reservations
        with pytest.raises(BudgetExceeded):
            reserve(ledger, 1001 - ledger.spent)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_has_its_own_connection(url):
    """A fork connects again on both sides: neither closes the other's connection."""
    script = (
        "import os, sys\n"
        "from farthing.ledger.entry import Terms\n"
        "from farthing.ledger.store import Ledger\n"
        "terms = Terms('gdp', budget=100, delta=0, keys_delta=0, unit='row', description='100 farthings')\n"
        "ask = dict(increase=1, fresh=1, version=0, label='fork')\n"
        "with Ledger.open(sys.argv[1], terms) as ledger:\n"
        "    ledger.reserve(question='before', **ask)\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        ledger.reserve(question='child', **ask)\n"
        "        os._exit(0)\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
        "    ledger.reserve(question='after', **ask)\n"
        "    assert ledger.spent == 3\n"
        "    ledger.verify()\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script, url], check=True, timeout=60)


class Proxy:
    """A road to the server that can be made to stand still: bytes are taken, and go nowhere."""

    def __init__(self, url):
        self.target = make_url(url)
        self.door = socket.create_server(("127.0.0.1", 0))
        self.open = threading.Event()
        self.open.set()
        self.ends = []
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        """The URL of the server behind this road."""
        host, port = self.door.getsockname()
        return self.target.set(host=host, port=port).render_as_string(hide_password=False)

    def accept(self):
        """Take connections, and carry their bytes both ways."""
        while True:
            try:
                near, _ = self.door.accept()
            except OSError:
                return
            far = socket.create_connection((self.target.host, self.target.port))
            self.ends += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def carry(self, one, other):
        """Carry bytes one way, while the road is open."""
        with contextlib.suppress(OSError):
            while sent := one.recv(65536):
                self.open.wait()
                other.sendall(sent)
            other.close()

    def close(self):
        """End it."""
        self.open.set()
        for end in [self.door, *self.ends]:
            end.close()


@pytest.fixture
def stalling(url):
    """Give a proxy to the server."""
    proxy = Proxy(url)
    yield proxy
    proxy.close()


@pytest.mark.thorough
def test_a_server_that_stalls_is_given_up(stalling):
    """No wait is longer than the time limit: asking, reading and opening all say that there was no answer."""
    with Ledger.open(stalling.url, TERMS, timeout_s=1) as ledger:
        held = reserve(ledger, 1)
        stalling.open.clear()
        works = (lambda: reserve(ledger, 2), lambda: ledger.spent, lambda: ledger.settle(held, 0, None),
                 lambda: Ledger.open(stalling.url, TERMS, timeout_s=1))  # fmt: skip
        for work in works:
            with pytest.raises(LedgerError, match="cannot be reached, or was lost"):
                work()
        stalling.open.set()
        assert 1 <= ledger.spent <= 3
        reserve(ledger, 1, "another")
        ledger.verify()


def test_many_threads_behind_a_stalled_server_all_end(stalling):
    """Whoever waits for the thread that waits gives up, too."""
    ends = []

    def work(number):
        with contextlib.suppress(LedgerError):
            _ = reserve(ledger, 1, f"q{number}") if number % 2 else ledger.spent
        ends.append(number)

    with Ledger.open(stalling.url, TERMS, timeout_s=1) as ledger:
        stalling.open.clear()
        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert list(range(6)) == sorted(ends)
        stalling.open.set()
        ledger.verify()


def test_a_role_with_another_encoding_writes_any_text(url):
    """The client speaks UTF-8, whatever the role or the database would have."""
    with raw(url) as hand:
        hand.execute("ALTER ROLE CURRENT_USER SET client_encoding = 'LATIN1'")
    try:
        with Ledger.open(url, TERMS) as ledger:
            receipt = reserve(ledger, 1, "WHERE city = '\u0141\u00f3d\u017a \u4e1c\u4eac'")
            ledger.settle(receipt, 1, lambda _: b"kept")
            assert b"kept" == ledger.load("WHERE city = '\u0141\u00f3d\u017a \u4e1c\u4eac'").blob
            ledger.verify()
    finally:
        with raw(url) as hand:
            hand.execute("ALTER ROLE CURRENT_USER RESET client_encoding")
