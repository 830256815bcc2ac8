"""Questions that are measured look by look: what fails or is killed costs the look that it was in, and no more."""

import os
import signal
from functools import partial
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing import Budget, Gdp, Session
from farthing.errors import LedgerError
from farthing.ledger.entry import Terms
from farthing.ledger.process import Process
from farthing.ledger.store import Ledger
from farthing.privacy.loss import Pure
from farthing.session.answering.looks import BegunLooks
from farthing.session.core import transaction
from farthing.session.core.booked_question import Begun
from farthing.workloads import marginals

TERMS = Terms("gdp", budget=1000, delta=0, keys_delta=0, unit="row", description="1000 farthings")
RESERVED = partial(Ledger.reserve, increase=640, fresh=640, question="q", version=0, label="q", first=10)
KEYS = {"amount": [float(amount) for amount in range(50)]}
SMALL = {"by": "amount", "keys": KEYS, "relative": 0.2, "absolute": 20}
WAYS = marginals(["zone", "amount"], ways=2)
ASKS = {
    "mean": lambda session: session.mean("amount", lower=0, upper=50, absolute=0.5),
    "variance": lambda session: session.variance("amount", lower=0, upper=50, relative=0.2),
    "quantile": lambda session: session.quantile("amount", 0.5, lower=0, upper=50, rank=0.02),
    "count": lambda session: session.count(by="amount", keys=KEYS, relative=0.2, absolute=30),
    "count of most groups": lambda session: session.count(by="amount", keys=KEYS, relative=0.2, absolute=30, share=0.9),
    "sum": lambda session: session.sum("amount", lower=0, upper=50, where="amount < 2", relative=0.2, absolute=900),
    "pure count": lambda session: session.count(by="amount", keys=KEYS, relative=0.4, absolute=300),
    "ranking": lambda session: session.ranking("amount", k=2, keys=KEYS, apart=20),
    "pure ranking": lambda session: session.ranking("amount", k=2, keys=KEYS, apart=20),
    "pure quartiles": lambda session: session.quantile("amount", (0.25, 0.5, 0.75), lower=0, upper=50, rank=0.1),
    "together": lambda session: session.workload({"n": SMALL}, strategy="together", cap=Gdp(0.07)),
    "largest": lambda session: session.workload({"n": SMALL}, strategy="largest", cap=Gdp(0.07)),
    "release": lambda session: session.release(WAYS, keys=KEYS | {"zone": ["a", "b"]}, relative=0.2, absolute=150),
}
"""One ask of every kind that `test_transaction.IN_LOOKS` names, and of all aggregates of each."""

QUICK = ("mean", "quantile", "count")
NAMES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough) for name in ASKS]


def worst(session):
    """Return what a question costs at most, where it names no cap."""
    return session._ledger.terms.budget // 10


@pytest.fixture
def opened(tmp_path, request):
    """Return how to open a table of a file, on books in a file."""
    table = tmp_path / "rides.parquet"
    pq.write_table(pa.table({"amount": [float(row % 50) for row in range(3000)], "zone": ["a", "b"] * 1500}), table)
    pure = "pure" in request.node.name
    budget = Budget(epsilon=1) if pure else Budget(epsilon=1, delta=1e-6)
    return partial(Session, table, budget=budget, ledger=tmp_path / "a.ledger")


def killed(opened, ask):
    """Ask in a process that is killed as soon as it has begun a look of more than its first; return up to what."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        begin, transaction.FIRST_SHARE = transaction._Work.begin, 10**9

        def dies(work, *look):
            first, begun = work._begun, begin(work, *look)
            if begun.farthings > first:
                os.write(writing, str(begun.farthings).encode())
                os.kill(os.getpid(), signal.SIGKILL)
            return begun

        transaction._Work.begin = dies
        try:
            with opened() as session:
                ask(session)
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as told:
        return int(told.read())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", NAMES)
def test_a_kill_costs_the_look_it_was_in(opened, name):
    """What a killed ask holds is given back when the books are opened next, but for the looks that were begun."""
    begun = killed(opened, ASKS[name])
    with opened() as session:
        assert begun == session._ledger.spent < worst(session) / 4
        assert [] == session.status()["open"]
        assert "failed" == session.history()[0].state
        ASKS[name](session)
        session._ledger.verify()


@pytest.mark.parametrize("name", NAMES)
def test_a_failure_costs_the_look_it_was_in(opened, name, monkeypatch):
    """An ask that fails in its first look keeps that look charged, and the next is answered."""

    def fail(*_):
        raise RuntimeError

    with opened() as session:
        with monkeypatch.context() as broken:
            broken.setattr(transaction._Work, "begin", fail)
            with pytest.raises(RuntimeError):
                ASKS[name](session)
        assert 0 < session._ledger.spent <= worst(session) // transaction.FIRST_SHARE + 1
        ASKS[name](session)
        session._ledger.verify()


@pytest.mark.parametrize("name", NAMES)
def test_looks_that_were_not_begun_are_not_settled(opened, name, monkeypatch):
    """Noise that is drawn without a look is found when it is paid for: it would be free if the process died."""
    monkeypatch.setattr(transaction._Work, "begin", lambda *_: Begun(0, written=False))
    monkeypatch.setattr(transaction, "FIRST_SHARE", 10**9)
    with opened() as session, pytest.raises(LedgerError, match="more was used than the looks"):
        ASKS[name](session)


def test_a_look_is_refused_once_it_was_given_up(tmp_path, monkeypatch):
    """Who is taken for dead and lives draws no more: giving up is safe whether it was dead or not."""
    with Ledger.open(tmp_path / "a.ledger", TERMS) as ledger:
        receipt = RESERVED(ledger)
        ledger.look(receipt, 100)
        ledger.look(receipt, 50)
        assert 640 == ledger.spent
        assert 0 == ledger.give_up()
        monkeypatch.setattr(Process, "alive", lambda _: None)
        assert (0, 1) == (ledger.give_up(), ledger.give_up(unknown=True))
        assert 100 == ledger.spent
        for refused in (partial(ledger.look, receipt, 200), partial(ledger.settle, receipt, 90, None)):
            with pytest.raises(LedgerError, match="already failed"):
                refused()
        ledger.verify()


def test_more_than_the_looks_is_not_settled():
    """What was used is at most what the looks that were begun may have used; and no look is above its reservation."""
    with Ledger.open(None, TERMS) as ledger:
        receipt = RESERVED(ledger)
        with pytest.raises(LedgerError, match="more was used than the looks"):
            ledger.settle(receipt, 11, lambda _: b"kept")
        with pytest.raises(LedgerError, match="more was used than reserved"):
            ledger.look(receipt, 641)
        ledger.look(receipt, 11)
        ledger.settle(receipt, 11, lambda _: b"kept")
        assert 11 == ledger.spent
        ledger.verify()


def test_what_was_measured_is_stored_as_the_next_look_begins():
    """It stays when the reservation fails, and is in the chain; a look that was begun already stores nothing."""
    with Ledger.open(None, TERMS) as ledger:
        receipt = RESERVED(ledger)
        ledger.look(receipt, 100, lambda _: b"one look")
        ledger.look(receipt, 100, lambda _: b"none")
        ledger.look(receipt, 200, lambda current: current + b", two looks")
        ledger.fail(receipt)
        assert (2, b"one look, two looks") == (ledger.load("q").version, ledger.load("q").blob)
        assert 200 == ledger.spent
        assert ["carried"] * 2 == [act["kind"] for act in ledger.acts()]
        ledger.verify()
        with pytest.raises(LedgerError, match="already failed"):
            ledger.look(receipt, 300, lambda _: b"after the end")
        assert 2 == ledger.load("q").version


def test_parts_and_shares_get_back_what_was_not_begun():
    """A part's and an allotment's accounts are lowered as the ledger is."""
    with Ledger.open(None, TERMS) as ledger:
        ledger.allot("alice", 800)
        part = ledger.part(partition="zone", name="a")
        ledger.fail(RESERVED(part, allotment="alice"))
        assert (10, 10, 10) == (ledger.spent, part.spent, ledger.allotments["alice"].spent)
        ledger.verify()


def test_many_dead_reservations_are_closed_a_few_at_a_time(monkeypatch):
    """However many there are, a call closes a bounded number, and looks at a bounded number."""
    with Ledger.open(None, TERMS) as ledger:
        for number in range(100):
            RESERVED(ledger, increase=5, fresh=5, question=f"q {number}", first=1)
        monkeypatch.setattr(Process, "alive", lambda _: False)
        closed = [ledger.give_up() for _ in range(8)]
        assert [16] * 6 + [4, 0] == closed
        assert 100 == ledger.spent


@pytest.mark.parametrize("groups", [[0, 2, 3], [3, 0, 2], [2, 2, 0]])
def test_every_grain_of_a_look_is_begun_in_any_order(groups, monkeypatch):
    """Groups in order are added up at once; others one by one, and one that is named twice pays twice."""
    begun = []
    monkeypatch.setattr("farthing.session.answering.looks.begin_look", lambda _, price: begun.append(price) or price)
    looks = BegunLooks(SimpleNamespace(exclusive=False), np.zeros(4, np.int64), 2, Pure.of_farthings)
    looks.begin(np.array([5, 7, 11]), np.array(groups))
    paid = np.bincount(groups, [5, 7, 11], 4)

    assert [Pure.of_farthings(int(np.sort(paid)[-2:].sum()))] == begun


@pytest.mark.parametrize("grains", [[5, -1], [[10, 5], [-5, 1]]])
def test_fewer_grains_than_none_are_not_begun(grains, monkeypatch):
    """They would lower the price of what the same group is measured with besides, in another lane or look."""
    monkeypatch.setattr("farthing.session.answering.looks.begin_look", lambda _, price: price)
    looks = BegunLooks(SimpleNamespace(exclusive=False), np.zeros(2, np.int64), 1, Pure.of_farthings)

    with pytest.raises(LedgerError, match="grains must be"):
        looks.begin(np.array(grains), np.arange(2))
    assert not looks._new.any()
