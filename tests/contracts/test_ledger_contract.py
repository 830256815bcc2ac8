"""What every ledger does: in memory, in a file, and on a PostgreSQL server."""

import threading
from datetime import UTC, datetime, timedelta

import pytest
from ledger_servers import fresh_schema

from farthing.errors import BudgetExceeded, LedgerError
from farthing.ledger.entry import Receipt, Stored, Terms
from farthing.ledger.store import Ledger

TERMS = Terms("gdp", budget=100, delta=10**21, keys_delta=7, unit="row", description="100 farthings")


@pytest.fixture(params=["memory", "file", "postgres"])
def place(request, tmp_path):
    if request.param != "postgres":
        yield None if request.param == "memory" else tmp_path / "a.ledger"
        return
    with fresh_schema() as url:
        yield url


@pytest.fixture
def ledger(place):
    with Ledger.open(place, TERMS) as opened:
        yield opened


def reserve(ledger, increase=10, fresh=None, *, question="q", version=0, request=None):
    fresh = increase if fresh is None else fresh
    return ledger.reserve(
        increase=increase, fresh=fresh, question=question, version=version, label="COUNT(*)", request=request
    )


def append(more):
    return lambda stored: (stored or b"") + more


def test_new_ledger_has_spent_nothing(ledger):
    """A new ledger has its terms, the whole budget, and no entries."""
    assert TERMS == ledger.terms
    assert (0, 100) == (ledger.spent, ledger.remaining)
    assert [] == ledger.history() == ledger.open_reservations
    assert ledger.load("q") is None
    ledger.verify()


def test_hash_key_is_64_random_bits(ledger):
    """The hash key is drawn per ledger and stays."""
    with Ledger.open(None, TERMS) as other:
        assert other.hash_key != ledger.hash_key
        assert other.identity != ledger.identity
    assert 0 <= ledger.hash_key < 2**64
    assert ledger.hash_key == ledger.hash_key


def test_reserve_charges_before_settle_lowers(ledger):
    """A reservation is charged whole at once, and settling lowers it to what was used."""
    receipt = reserve(ledger, 60)
    assert (60, 40) == (ledger.spent, ledger.remaining)

    ledger.settle(receipt, 25, append(b"x"))

    assert (25, 75) == (ledger.spent, ledger.remaining)
    ledger.verify()


def test_receipt_says_what_was_charged(ledger):
    """A first ask is exclusive, priced at its increase."""
    assert Receipt(1, ledger.identity, 10, "q", 0, exclusive=True) == reserve(ledger, 10, 12)


def test_settle_stores_the_measurement(ledger):
    """Each settling stores the merge of what was there, one version up."""
    ledger.settle(reserve(ledger), 5, append(b"one "))
    ledger.settle(reserve(ledger, version=1), 5, append(b"two"))

    assert Stored(2, b"one two") == ledger.load("q")
    assert ledger.load("another") is None


def test_large_measurement_round_trips(ledger):
    """A measurement of a few megabytes comes back byte by byte."""
    blob = bytes(range(256)) * 16_000
    ledger.settle(reserve(ledger), 5, lambda _: blob)

    assert Stored(1, blob) == ledger.load("q")


def test_settle_without_merge_keeps_what_is_stored(ledger):
    """A free repeat settles nothing new and keeps the version."""
    ledger.settle(reserve(ledger), 5, append(b"x"))
    ledger.settle(reserve(ledger, 0, 0, version=1), 0, None)

    assert Stored(1, b"x") == ledger.load("q")
    assert 2 == len(ledger.history())


def test_zero_reservation_is_booked_even_when_all_is_spent(ledger):
    """Asking again for free is legal with nothing left, and is an entry."""
    ledger.settle(reserve(ledger, 100), 100, append(b"x"))
    receipt = reserve(ledger, 0, 0, version=1)

    assert 0 == receipt.reserved
    assert [receipt.id] == [entry.id for entry in ledger.open_reservations]


def test_refusal_costs_nothing_and_closes_nothing(ledger):
    """A reservation that does not fit charges nothing; a smaller one still fits."""
    reserve(ledger, 60)
    with pytest.raises(BudgetExceeded) as refused:
        reserve(ledger, 41, question="other", request="r")

    assert (41, 40) == (refused.value.needed, refused.value.left)
    assert (60, 1) == (ledger.spent, len(ledger.history()))
    assert 40 == reserve(ledger, 40, question="other", request="r").reserved
    assert 0 == ledger.remaining


def test_astronomical_price_is_refused_as_over_budget(ledger):
    """A price that fits no 64-bit column is an ordinary refusal."""
    with pytest.raises(BudgetExceeded):
        reserve(ledger, 2**80)
    assert 1 == reserve(ledger, 1, 2**80).reserved


def test_increase_is_charged_for_sharpening_what_is_stored(ledger):
    """Sharpening the current version alone pays the increase."""
    ledger.settle(reserve(ledger, 10), 10, append(b"x"))
    receipt = reserve(ledger, 3, 8, version=1)

    assert (3, True) == (receipt.reserved, receipt.exclusive)


@pytest.mark.parametrize("version", [0, 2])
def test_fresh_is_charged_for_another_version(ledger, version):
    """An increase over something else than what is stored says nothing: the full price is charged."""
    ledger.settle(reserve(ledger, 10), 10, append(b"x"))
    receipt = reserve(ledger, 3, 8, version=version)

    assert (8, False) == (receipt.reserved, receipt.exclusive)


@pytest.mark.parametrize("how", ["open", "failed"])
def test_fresh_is_charged_while_another_is_unsettled(ledger, how):
    """While another reservation of the question is open or failed, its measurement may be out."""
    other = reserve(ledger, 10)
    if how == "failed":
        ledger.fail(other)

    assert (False, 8) == ((receipt := reserve(ledger, 3, 8)).exclusive, receipt.reserved)
    assert reserve(ledger, 3, 8, question="other").exclusive


def test_increase_is_charged_again_once_all_are_settled(ledger):
    """Two at once are settled, in any order; the next pays the increase over both."""
    first, second = reserve(ledger, 10), reserve(ledger, 3, 8)
    ledger.settle(second, 8, append(b"b"))
    third = reserve(ledger, 1, 2, version=1)
    ledger.settle(first, 10, append(b"a"))
    ledger.settle(third, 0, None)

    assert not third.exclusive  # the first was still out

    assert Stored(2, b"ba") == ledger.load("q")
    assert reserve(ledger, 1, 2, version=2).exclusive


def test_two_free_increases_together_cost_one(ledger):
    """N=(1,0) stored, twice (0,1) added at once: each adds nothing to the largest, both together add one."""
    stored, more = (1, 0), (0, 1)
    ledger.settle(reserve(ledger, max(stored)), 1, append(b"N"))
    increase = max(a + b for a, b in zip(stored, more, strict=True)) - max(stored)
    first, second = (reserve(ledger, increase, max(more), version=1) for _ in range(2))

    assert [(0, True), (1, False)] == [(r.reserved, r.exclusive) for r in (first, second)]
    ledger.settle(first, 0, append(b"1"))
    ledger.settle(second, 1, append(b"2"))
    assert max(a + 2 * b for a, b in zip(stored, more, strict=True)) <= ledger.spent
    assert Stored(3, b"N12") == ledger.load("q")


def test_same_request_is_charged_once(ledger):
    """A request that is reserved twice gets the same receipt, marked as handed out before."""
    first, second = reserve(ledger, 10, request="r"), reserve(ledger, 10, request="r")

    assert first == second
    assert (False, True) == (first.repeated, second.repeated)
    assert (10, 1) == (ledger.spent, len(ledger.history()))


def test_same_request_keeps_its_price(ledger):
    """A repeated request that was charged fresh is not taken for another by its own open reservation."""
    reserve(ledger, 10)
    first, second = reserve(ledger, 3, 8, request="r"), reserve(ledger, 3, 8, request="r")

    assert first == second
    assert not second.exclusive


@pytest.mark.parametrize("other", [{"question": "p"}, {"version": 1}, {"increase": 11}])
def test_request_for_something_else_is_refused(ledger, other):
    """One request id names one ask."""
    reserve(ledger, 10, request="r")
    with pytest.raises(LedgerError, match="a request id names one ask"):
        reserve(ledger, **{"increase": 10, "request": "r"} | other)
    assert 10 == ledger.spent


def test_failure_is_not_refunded(ledger):
    """A failed measurement stays charged whole."""
    ledger.fail(reserve(ledger, 30))

    assert 30 == ledger.spent
    assert [] == ledger.open_reservations
    assert ("failed", 30, 30) == ((entry := ledger.history()[0]).state, entry.settled, entry.charged)
    ledger.verify()


@pytest.mark.parametrize("first", ["settle", "fail"])
def test_settling_what_is_closed_is_an_error(ledger, first):
    """A reservation is closed once, and a second settling changes nothing."""
    receipt = reserve(ledger, 10)
    if first == "settle":
        ledger.settle(receipt, 4, append(b"x"))
    else:
        ledger.fail(receipt)
    spent = ledger.spent
    with pytest.raises(LedgerError, match="already"):
        ledger.settle(receipt, 0, append(b"y"))
    assert spent == ledger.spent
    ledger.verify()


def test_failing_what_is_closed_keeps_it(ledger):
    """A failure after the books were closed, on the way out, changes nothing."""
    receipt = reserve(ledger, 10)
    ledger.settle(receipt, 4, append(b"x"))
    ledger.fail(receipt)

    assert (4, "settled") == (ledger.spent, ledger.history()[0].state)
    assert reserve(ledger, 1, 2, version=1).exclusive


def test_what_is_withdrawn_is_free(ledger):
    """A reservation under which nothing was read gives all back, and leaves its question as it was."""
    ledger.settle(reserve(ledger, 10), 10, append(b"x"))
    before = reserve(ledger, 30, 40, version=1)
    ledger.withdraw(before)
    ledger.withdraw(before)

    assert (10, []) == (ledger.spent, ledger.open_reservations)
    assert reserve(ledger, 5, 7, version=1).exclusive
    assert 0 == ledger.failures("")
    ledger.verify()


@pytest.mark.parametrize("close", [lambda ledger, one: ledger.settle(one, 4, append(b"x")), Ledger.fail])
def test_what_is_closed_is_not_withdrawn(ledger, close):
    """Whatever was charged for a closed reservation stays so."""
    receipt = reserve(ledger, 10)
    close(ledger, receipt)
    spent = ledger.spent
    ledger.withdraw(receipt)

    assert spent == ledger.spent
    ledger.verify()


@pytest.mark.parametrize(
    "change", [{"id": 99}, {"ledger": "other"}, {"reserved": 90}, {"question": "p"}, {"exclusive": False}]
)
def test_foreign_receipt_is_refused(ledger, change):
    """A receipt that this ledger did not give closes nothing."""
    receipt = reserve(ledger, 10)
    facts = {name: getattr(receipt, name) for name in ("id", "ledger", "reserved", "question", "version", "exclusive")}
    forged = Receipt(**facts | change)
    with pytest.raises(LedgerError, match="not from this ledger"):
        ledger.settle(forged, 5, append(b"x"))
    with pytest.raises(LedgerError, match="not from this ledger"):
        ledger.fail(forged)
    with pytest.raises(LedgerError, match="not from this ledger"):
        ledger.withdraw(forged)
    assert 10 == ledger.spent
    assert ledger.load("q") is None


@pytest.mark.parametrize("amount", [-1, 11, 1.5, None])
def test_settled_amount_must_be_covered(ledger, amount):
    """Settling may lower a charge, never raise it, and never below zero."""
    receipt = reserve(ledger, 10)
    with pytest.raises(LedgerError):
        ledger.settle(receipt, amount, append(b"x"))
    assert 10 == ledger.spent
    assert ledger.load("q") is None


def test_increase_without_merge_is_refused(ledger):
    """What was measured at the price of an increase must not be forgotten."""
    ledger.settle(reserve(ledger, 10), 10, append(b"x"))
    with pytest.raises(LedgerError, match="forgotten"):
        ledger.settle(reserve(ledger, 3, 8, version=1), 2, None)
    ledger.settle(reserve(ledger, 8, 8, version=0), 8, None)


@pytest.mark.parametrize("prices", [(2, 1), (-1, 0), (1.0, 2), ("1", 2), (None, 1), (0, float("nan"))], ids=str)
def test_impossible_prices_are_refused(ledger, prices):
    """Prices are whole, not negative, and fresh is at least the increase."""
    with pytest.raises(LedgerError):
        reserve(ledger, *prices)
    assert [] == ledger.history()


@pytest.mark.parametrize("texts", [{"question": ""}, {"question": 3}, {"question": "\ud800"}, {"request": ""}])
def test_texts_must_be_texts(ledger, texts):
    """Questions and requests are text that can be written."""
    with pytest.raises(LedgerError, match="must be text"):
        reserve(ledger, **texts)


def test_failing_merge_leaves_the_reservation(ledger):
    """An error inside a merge stores nothing and settles nothing."""
    receipt = reserve(ledger, 10)
    with pytest.raises(ZeroDivisionError):
        ledger.settle(receipt, 5, lambda _: bytes([1 // 0]))
    with pytest.raises(LedgerError, match="bytes"):
        ledger.settle(receipt, 5, lambda _: "text")
    with pytest.raises(LedgerError, match="inside its own merge"):
        ledger.settle(receipt, 5, lambda _: ledger.load("q").blob)

    assert 10 == ledger.spent
    assert ledger.load("q") is None
    ledger.settle(receipt, 5, append(b"x"))
    ledger.verify()


def test_history_tells_newest_first(ledger):
    """Each entry says what, when, who and how much; a limit keeps the newest."""
    before = datetime.now(UTC) - timedelta(seconds=1)
    ledger.settle(reserve(ledger, 10, question="a", request="r"), 4, append(b"x"))
    reserve(ledger, 20, 25, question="b")
    newest, oldest = ledger.history()

    assert ("b", "open", 20, None, None, True) == (
        newest.question, newest.state, newest.charged, newest.settled, newest.closed_at, newest.alive)  # fmt: skip
    assert ("a", "settled", "r", 10, 4, 4) == (
        oldest.question, oldest.state, oldest.request, oldest.reserved, oldest.settled, oldest.charged)  # fmt: skip
    assert before < oldest.opened_at <= oldest.closed_at <= newest.opened_at
    assert [newest] == ledger.history(limit=1)
    assert [newest] == ledger.open_reservations
    assert 24 == sum(entry.charged for entry in ledger.history()) == ledger.spent


def test_closed_ledger_refuses(ledger):
    """A closed ledger says so; closing twice is fine."""
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        _ = ledger.spent


def test_threads_share_a_ledger(ledger):
    """Threads never overdraw together, and each one's charge is booked."""
    refused, errors = [], []

    def work(name):
        try:
            for i in range(10):
                try:
                    ledger.settle(reserve(ledger, 3, question=f"{name}-{i}"), 3, append(b"x"))
                except BudgetExceeded:
                    refused.append(name)
        except Exception as error:  # noqa: BLE001  a thread's error must reach the test
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == errors
    assert (99, 50 - 33) == (ledger.spent, len(refused))
    ledger.verify()
