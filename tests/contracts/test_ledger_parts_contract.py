"""Allotments, parts, history and chain: what every ledger does with them, in memory, in a file, on a server."""

from datetime import timedelta
from fractions import Fraction

import pytest
from ledger_servers import fresh_schema

from farthing.errors import BudgetExceeded, LedgerError
from farthing.ledger import rows
from farthing.ledger.entry import Stored, Terms
from farthing.ledger.store import Ledger

pytestmark = pytest.mark.thorough

TERMS = Terms("zcdp", budget=100, delta=10**21, keys_delta=7, unit="row", description="100 farthings")


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
        opened.verify()


def reserve(ledger, price, question="q", version=0, **facts):
    return ledger.reserve(increase=price, fresh=price, question=question, version=version, label="COUNT(*)", **facts)


def ask(ledger, price, used, question="q", **facts):
    ledger.settle(reserve(ledger, price, question, **facts), used, lambda _: b"released")


def test_allotment_is_limited_by_its_share_and_by_the_total(ledger):
    """Alice can spend neither more than her share nor more than the whole budget has left."""
    ledger.allot("alice", Fraction(1, 2))
    ledger.allot("bob", 90)
    reserve(ledger, 40, allotment="alice")
    with pytest.raises(BudgetExceeded, match="allotment of 'alice'") as refused:
        reserve(ledger, 11, "other", allotment="alice")
    assert (11, 10) == (refused.value.needed, refused.value.left)
    with pytest.raises(BudgetExceeded, match="the budget does not"):
        reserve(ledger, 61, "other", allotment="bob")
    reserve(ledger, 60, "other", allotment="bob")

    assert (100, 0) == (ledger.spent, ledger.remaining)
    held = ledger.allotments
    assert [("alice", 50, 40, 0), ("bob", 90, 60, 0)] == [(a.name, a.share, a.spent, a.left) for a in held.values()]


def test_settling_gives_back_to_the_allotment(ledger):
    """What was reserved and not used is an allotment's again."""
    ledger.allot("alice", 50)
    ask(ledger, 50, 20, allotment="alice")
    assert (20, 30) == (ledger.allotments["alice"].spent, ledger.allotments["alice"].left)


def test_ledger_opened_for_an_allotment_draws_on_it(place):
    """A session that was given an allotment needs to say nothing more."""
    if place is None:
        pytest.skip("books in memory are opened once")
    with Ledger.open(place, TERMS) as owner:
        owner.allot("alice", 30)
        with Ledger.open(place, TERMS, allotment="alice", who="alice@example.org") as hers:
            assert ("alice", 30) == (hers.allotment, hers.remaining)
            reserve(hers, 10)
            assert (10, 20, 90) == (hers.spent, hers.remaining, owner.remaining)
            assert ("alice@example.org", "alice") == ((e := hers.history()[0]).who, e.allotment)
            with pytest.raises(BudgetExceeded):
                reserve(hers, 21, "other")


def test_unknown_allotment_is_refused(ledger, place):
    """A share is allotted before it is drawn on, and a misspelt one opens nothing."""
    with pytest.raises(LedgerError, match="no such allotment"):
        reserve(ledger, 1, allotment="alice")
    with pytest.raises(LedgerError, match="no such allotment"):
        Ledger.open(place, TERMS, allotment="alice")
    assert [] == ledger.history()


@pytest.mark.parametrize("share", [71, Fraction(71, 100), 9, -1, 1.5, "20", Fraction(3, 2), None, True and 2**70])
def test_impossible_shares_are_refused(ledger, share):
    """More than is left, less than was spent, and what is no share: refused, and nothing changes."""
    ledger.allot("alice", 40)
    reserve(ledger, 10, allotment="alice")
    reserve(ledger, 30)
    with pytest.raises(LedgerError):
        ledger.allot("alice", share)
    assert (40, 10) == (ledger.allotments["alice"].share, ledger.allotments["alice"].spent)


def test_share_may_be_changed_and_is_recorded(ledger):
    """Every change of a share is in the history; the last one holds."""
    for share in (40, 70, 15):
        ledger.allot("alice", share)
    assert 15 == ledger.allotments["alice"].share
    assert [("allotted", "alice", n) for n in (40, 70, 15)] == [
        (a["kind"], a["name"], a["amount"]) for a in ledger.acts()
    ]


def test_share_in_another_currency_is_refused(ledger):
    """A share is a loss in the ledger's own currency."""
    from farthing.privacy.loss import Gdp, Zcdp

    with pytest.raises(LedgerError, match="another currency"):
        ledger.allot("alice", Gdp(2.0**-20))
    ledger.allot("alice", Zcdp(50 * 2.0**-40))
    assert 50 == ledger.allotments["alice"].share


def test_disjoint_parts_cost_their_maximum(ledger):
    """Three parts that spend 40, 60 and 30 cost 60 together, and each sees its own."""
    parts = [ledger.part(partition="region", name=name) for name in ("EU", "US", "")]
    for part, price in zip(parts, (40, 60, 30), strict=True):
        reserve(part, price)

    assert 60 == ledger.spent
    assert [(40, 60), (60, 40), (30, 70)] == [(part.spent, part.remaining) for part in parts]


def test_a_part_is_refused_at_the_budget(ledger):
    """A part may use what others' maximum has paid for already, and no more than the rest of the budget."""
    eu, us = (ledger.part(partition="region", name=name) for name in ("EU", "US"))
    reserve(ledger, 30, "of all rows")
    reserve(eu, 50)
    assert (20, 70) == (ledger.remaining, us.remaining)
    with pytest.raises(BudgetExceeded) as refused:
        reserve(us, 71)
    assert (71, 70) == (refused.value.needed, refused.value.left)
    reserve(us, 70)
    assert (100, 0, 20) == (ledger.spent, ledger.remaining, eu.remaining)


def test_two_partitions_add_up(ledger):
    """A row is in one region and in one month: the maxima of two partitions are added."""
    reserve(ledger.part(partition="region", name="EU"), 10)
    reserve(ledger.part(partition="month", name="May"), 20)
    assert 30 == ledger.spent


def test_settling_a_part_lowers_the_maximum_to_the_next(ledger):
    """When the most expensive part is settled, the charge falls to the part that is then the most expensive."""
    eu, us = (ledger.part(partition="region", name=name) for name in ("EU", "US"))
    dear = reserve(eu, 60)
    reserve(us, 40)
    eu.settle(dear, 10, lambda _: b"EU")
    assert (40, 10, 40) == (ledger.spent, eu.spent, us.spent)


def test_failed_part_is_not_refunded(ledger):
    """A failure in a part stays charged, in the part and in the maximum."""
    eu = ledger.part(partition="region", name="EU")
    eu.fail(reserve(eu, 25))
    assert (25, 25) == (eu.spent, ledger.spent)


def test_parts_keep_their_questions_apart(ledger):
    """The same question asked of two parts has two measurements, versions and histories."""
    eu, us = (ledger.part(partition="region", name=name) for name in ("EU", "US"))
    eu.settle(reserve(eu, 5), 5, lambda _: b"EU")

    assert (Stored(1, b"EU"), None, None) == (eu.load("q"), us.load("q"), ledger.load("q"))
    assert (["q"], [], ["q"]) == (eu.stored("q"), us.stored("q"), [e.question for e in eu.history()])
    assert ([], 1, [("region", "EU")]) == (
        us.history(), len(ledger.history()), [(e.partition, e.part) for e in ledger.entries()])  # fmt: skip
    assert reserve(us, 5).exclusive
    assert not reserve(us, 5).exclusive
    assert ["q", "q"] == [e.question for e in us.open_reservations]


def test_part_has_the_interface_of_a_ledger(ledger):
    """Terms, key, path and receipts of a part are the ledger's; closing it leaves the ledger open."""
    part = ledger.part(partition="region", name="EU")
    assert (ledger.terms, ledger.hash_key, ledger.path) == (part.terms, part.hash_key, part.path)
    receipt = reserve(part, 10, request="r")
    assert receipt == reserve(part, 10, request="r")
    part.close()
    ledger.settle(receipt, 4, lambda _: b"settled through the whole")
    assert 4 == part.spent == ledger.spent
    with pytest.raises(LedgerError, match="no parts"):
        part.part(partition="month", name="May")


def test_allotment_in_parts_is_charged_its_own_maximum(ledger):
    """What alice spends in parallel parts counts at its maximum for her share too, apart from what bob spends."""
    ledger.allot("alice", 50)
    eu, us = (ledger.part(partition="region", name=name) for name in ("EU", "US"))
    reserve(eu, 30, allotment="alice")
    reserve(us, 40, allotment="alice")
    reserve(us, 25, "bob's")
    assert (40, 65) == (ledger.allotments["alice"].spent, ledger.spent)
    with pytest.raises(BudgetExceeded, match="alice"):
        reserve(us, 11, "more", allotment="alice")
    reserve(eu, 20, "more", allotment="alice")
    assert (50, 65) == (ledger.allotments["alice"].spent, ledger.spent)


def test_stored_questions_are_found_by_their_beginning(ledger):
    """Questions are listed in order by what they begin with, whatever letters they have."""
    for question in ("ab", "a", "b", "a%", "aé", "A"):
        ask(ledger, 1, 1, question)
    reserve(ledger, 1, "a open")
    assert ["a", "a%", "ab", "aé"] == ledger.stored("a")
    assert [] == ledger.stored("c")


def test_history_says_who_and_at_which_target(place):
    """Every entry names the analyst and the target."""
    with Ledger.open(place, TERMS, who="Ada") as ledger:
        reserve(ledger, 5, target="within 5%")
        assert ("Ada", "within 5%", None, None) == ((e := ledger.history()[0]).who, e.target, e.allotment, e.part)
    with pytest.raises(LedgerError, match="who must be text"):
        Ledger.open(place, TERMS, who="")


def test_chain_grows_by_one_link_a_record(ledger):
    """Every record moves the head; a noted head stays in the chain."""
    heads = [ledger.seal.head]
    receipt = reserve(ledger, 5)
    heads.append(ledger.seal.head)
    ledger.settle(receipt, 2, lambda _: b"x")
    heads.append(ledger.seal.head)
    ledger.allot("alice", 5)
    ledger.fail(reserve(ledger, 1, "other"))

    assert (5, 3) == (ledger.seal.records, len(set(heads)))
    assert heads[2] == ledger.history()[1].hash
    for head in heads:
        assert ledger.seal == ledger.verify(noted=head)
    with pytest.raises(LedgerError, match="not in the chain"):
        ledger.verify(noted="0" * 64)


def test_clock_that_goes_backwards_is_recorded_monotonically(ledger, monkeypatch):
    """A clock that falls behind stops nothing: the latest moment is written again, with how far behind it was."""
    now = rows.now()
    clock = iter([now + 10, now + 20, now - 5_000_000, now + 30])
    monkeypatch.setattr(rows, "now", lambda: next(clock))
    receipt = reserve(ledger, 5)
    ledger.settle(receipt, 2, lambda _: b"x")
    reserve(ledger, 5, "behind")
    reserve(ledger, 5, "again")

    again, behind, first = ledger.history()
    assert [timedelta(0), timedelta(microseconds=5_000_020), timedelta(0)] == [
        again.clock_behind, behind.clock_behind, first.clock_behind]  # fmt: skip
    assert first.opened_at < first.closed_at == behind.opened_at < again.opened_at


def test_entries_come_in_pages(ledger, monkeypatch):
    """All entries are given in order, however small the pages are."""
    monkeypatch.setattr("farthing.ledger.told._PAGE", 2)
    for number in range(5):
        reserve(ledger, 1, f"q{number}")
    assert [1, 2, 3, 4, 5] == [entry.id for entry in ledger.entries()]
