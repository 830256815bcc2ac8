"""The delta that is set aside for keys: charged with a reservation, for good, and never overdrawn, on every store."""

import psycopg
import pytest
from ledger_servers import fresh_schema, raw

from farthing.errors import BudgetExceeded, LedgerError
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

TERMS = Terms("gdp", budget=100, delta=10**21, keys_delta=10, unit="row", description="100 farthings")


@pytest.fixture(params=["memory", "file", "server"])
def place(request, tmp_path):
    """Where the books are."""
    if request.param == "server":
        with fresh_schema() as url:
            yield url
    else:
        yield None if request.param == "memory" else tmp_path / "some.ledger"


def reserve(ledger, delta, increase=1):
    """Reserve a search for keys."""
    return ledger.reserve(increase=increase, fresh=increase, question="keys", version=0, label="keys", delta=delta)


def test_delta_is_charged_once_and_never_given_back(place):
    """Settled or failed, the delta stays charged; the farthings are settled as always."""
    with Ledger.open(place, TERMS) as ledger:
        ledger.settle(reserve(ledger, 4, increase=5), 2, lambda _: b"found")
        ledger.fail(reserve(ledger, 3))

        assert 3 == ledger.keys_delta_left
        assert 2 + 1 == ledger.spent
        ledger.verify()


def test_delta_is_never_overdrawn(place):
    """What does not fit is refused whole: neither delta nor farthings are charged."""
    with Ledger.open(place, TERMS) as ledger:
        reserve(ledger, 8)
        with pytest.raises(BudgetExceeded, match="set aside for keys"):
            reserve(ledger, 3)

        assert 2 == ledger.keys_delta_left
        assert 1 == ledger.spent
        reserve(ledger, 2)
        assert 0 == ledger.keys_delta_left


def test_nothing_set_aside_refuses(place):
    """Without keys_delta no search for keys can be booked."""
    terms = Terms("gdp", budget=100, delta=10**21, keys_delta=0, unit="row", description="100 farthings")
    with Ledger.open(place, terms) as ledger, pytest.raises(BudgetExceeded):
        reserve(ledger, 1)


def without_looks(hand):
    """Take away what format 5 added."""
    hand.execute("DROP TABLE tags, opened, looks")
    hand.execute("ALTER TABLE measurements DROP COLUMN tagged")


def older(hand):
    """Take away what formats 4 and 5 added."""
    without_looks(hand)
    hand.execute("DROP TABLE data_sets")
    hand.execute("ALTER TABLE totals DROP COLUMN coins, DROP COLUMN copies, DROP COLUMN terms, DROP COLUMN seal")
    hand.execute("ALTER TABLE accounts DROP COLUMN seal")
    hand.execute("ALTER TABLE measurements DROP COLUMN digest")


def test_a_server_of_format_3_is_carried_over():
    """Books on PostgreSQL without hashes of their totals, accounts and measurements are verified once, and sealed."""
    with fresh_schema() as url:
        with Ledger.open(url, TERMS) as ledger:
            receipt = reserve(ledger.part(partition="p", name="a"), 6)
            ledger.settle(receipt, 1, lambda _: b"kept")
        with raw(url) as hand:
            older(hand)
            hand.execute("UPDATE format SET version = 3")
        with Ledger.open(url, TERMS) as ledger:
            assert b"kept" == ledger.part(partition="p", name="a").load("keys").blob
            ledger.verify()


def test_a_server_of_format_4_is_carried_over():
    """Books on PostgreSQL without looks get their tables, with what is open; the chain is as it was."""
    with fresh_schema() as url:
        with Ledger.open(url, TERMS) as ledger:
            reserve(ledger, 3)
            kept = ledger.reserve(increase=1, fresh=1, question="q", version=0, label="q")
            ledger.settle(kept, 1, lambda _: b"kept")
            head = ledger.seal.head
        with raw(url) as hand:
            without_looks(hand)
            hand.execute("UPDATE format SET version = 4")
        with Ledger.open(url, TERMS) as ledger:
            assert head == ledger.verify().head
            assert ["keys"] == [entry.question for entry in ledger.open_reservations]
            assert ["q"] == ledger.untagged("q")


def test_a_server_of_format_2_is_carried_over():
    """Books on PostgreSQL that knew no deltas get their table when they are opened to write."""
    with fresh_schema() as url:
        Ledger.open(url, TERMS).close()
        with raw(url) as hand:
            hand.execute("DROP TABLE key_deltas")
            older(hand)
            hand.execute("UPDATE format SET version = 2")
        with pytest.raises(LedgerError, match="older format"):
            Ledger.inspect(url)
        with Ledger.open(url, TERMS) as ledger:
            reserve(ledger, 6)
            ledger.verify()
        with raw(url) as hand, pytest.raises(psycopg.Error, match="only ever added"):
            hand.execute("DELETE FROM key_deltas")
