"""A release that is interrupted or killed shows nothing, keeps its charge, and is resumed for the difference."""

import multiprocessing
import os
import signal
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing import Budget, Gdp, Session
from farthing.session.answering import release_booking, synthetic
from farthing.session.core import transaction
from farthing.workloads import marginals, prefixes

RANDOM = np.random.default_rng(3)
TABLE = pa.table({name: RANDOM.integers(0, size, 20_000) for name, size in {"a": 5, "b": 4, "c": 3}.items()})
KEYS = {"a": range(5), "b": range(4), "c": range(3)}
TWO = partial(Session.release, workload=marginals(["a", "b", "c"], ways=2), keys=KEYS, cap="all")
ASKS = {
    "absolute": partial(TWO, absolute=20),
    "relative": partial(TWO, relative=0.1, absolute=20),
    "rms": partial(TWO, rms=10),
    "relative prefixes": partial(
        Session.release, workload=prefixes("a", range(-1, 6)), relative=0.1, absolute=30, cap="all"
    ),
    "prefixes": partial(Session.release, workload=prefixes("a", range(6)), absolute=30, cap="all"),
}


@pytest.fixture
def opened(tmp_path):
    """Return how to open a table of a file, on books in a file."""
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    return partial(Session, tmp_path / "rows.parquet", budget=Budget(mu=4), ledger=tmp_path / "a.ledger")


def stopping(at, stop):
    """Return how looks begin, until one of them stops the work as soon as it was begun."""
    begin, begun = transaction.begin_look, []

    def look(receipt, price, merge=None):
        written = begin(receipt, price, merge)
        begun.append(price)
        if len(begun) == at:
            stop()
        return written

    return look


def stop():
    """Stop as Ctrl-C does."""
    raise KeyboardInterrupt


def dies(ask, opened):
    """Ask in a process that is killed in the middle of its looks."""
    release_booking.begin_look = stopping(6, partial(os.kill, os.getpid(), signal.SIGKILL))
    with opened() as session:
        ask(session)


@pytest.mark.parametrize(
    "name", ["absolute", *(pytest.param(name, marks=pytest.mark.thorough) for name in ASKS if name != "absolute")]
)
def test_an_interrupted_release_is_resumed_for_the_difference(opened, name, monkeypatch):
    """What was measured before the look that was interrupted is paid for once; the answer is as accurate as ever."""
    with Session(TABLE, budget=Budget(mu=4)) as other:
        whole = ASKS[name](other)
    with opened() as session:
        with monkeypatch.context() as broken:
            broken.setattr(release_booking, "begin_look", stopping(6, stop))
            with pytest.raises(KeyboardInterrupt):
                ASKS[name](session)
        lost = session._ledger.spent
        assert 0 < lost < whole.paid.farthings
        assert "failed" == session.history()[0].state
        release = ASKS[name](session)
        paid, look = release.paid.farthings, whole.paid.farthings * 0.3
        assert 0 < paid < whole.paid.farthings - lost + look
        assert session._ledger.spent == lost + paid
        assert release.rmse == pytest.approx(whole.rmse, rel=0.05)
        again = ASKS[name](session)
        assert 0 == again.paid.farthings
        assert all(np.array_equal(again[one].value, release[one].value) for one in release)
        session._ledger.verify()


CHOSEN = partial(Session.release, workload=ASKS["absolute"].keywords["workload"], keys=KEYS, cap="all")
ADAPTIVE = partial(CHOSEN, loss=Gdp(0.5), mechanism="adaptive")


@pytest.mark.thorough
@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_interrupted_model_is_resumed_for_the_difference(opened, at, monkeypatch):
    """What rounds measured before the one that was interrupted is paid for once, and told in the plan; then it is free.

    Interrupted in its first look, nothing was shown by then and it is paid anew.
    """
    with opened() as session:
        with monkeypatch.context() as broken:
            broken.setattr(synthetic, "begin_look", stopping(at, stop))
            with pytest.raises(KeyboardInterrupt):
                ADAPTIVE(session)
        lost = Fraction(session.spent.amount)
        planned = session.plan_release(**{**ADAPTIVE.keywords, "cap": None})
        release = ADAPTIVE(session)
        paid, whole = Fraction(release.paid.amount), Fraction(1, 4)
        assert planned.worst_price == release.paid
        assert (paid == whole) == (at == 1)
        assert 0 < lost < whole
        assert whole <= paid + lost < whole * Fraction(3, 2)
        assert Fraction(session.spent.amount) == lost + paid
        assert 0 == ADAPTIVE(session).paid.amount
        assert ADAPTIVE(session).synthetic(500).table.equals(release.synthetic(500).table)
        session._ledger.verify()


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", ["absolute", "relative"])
def test_a_killed_release_is_resumed_for_the_difference(opened, name):
    """What a process had measured when it was killed is in the books, at the price of the look that it was in."""
    child = multiprocessing.get_context("fork").Process(target=dies, args=(ASKS[name], opened))
    child.start()
    child.join()
    assert -signal.SIGKILL == child.exitcode
    with opened() as session:
        lost = session._ledger.spent
        release = ASKS[name](session)
        with Session(TABLE, budget=Budget(mu=4)) as other:
            whole = ASKS[name](other).paid.farthings
        assert 0 < lost < whole
        assert release.paid.farthings < 1.3 * whole - lost
        session._ledger.verify()
