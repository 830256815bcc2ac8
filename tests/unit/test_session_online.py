"""Online queries through a session: a run is paid once, and answered by one process, one query at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from farthing import Budget, Gdp, Session, Zcdp
from farthing.errors import InvalidTarget, PriceRisen
from farthing.mechanisms.online_weights import OnlineRun

RIDES = pa.table({"zone": ["a"] * 9_000 + ["b"] * 400})


@pytest.fixture(name="online")
def _online():
    """Open online queries, of which one run is paid."""
    with Session(RIDES, budget=Budget(mu=2)) as session:
        asked = session.online(keys={"zone": ["a", "b"]}, absolute=4_000, queries=100, rows=20_000)
        assert asked.ask(zone=["a", "b"]).paid
        yield asked


def test_threads_ask_one_after_the_other(online, monkeypatch):
    """Two at once could both be measured by a run that is paid for one measurement."""
    real, inside, most = OnlineRun.ask, threading.Semaphore(1), []

    def alone(run, query):
        most.append(inside.acquire(blocking=False))
        threading.Event().wait(0.01)
        inside.release()
        return real(run, query)

    monkeypatch.setattr(OnlineRun, "ask", alone)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: online.ask(zone=["a"]), range(8)))

    assert most == [True] * 8


def test_a_forked_process_pays_for_a_run_of_its_own(online):
    """A run that was paid by the parent is not gone on with by its child, who would be measured, too."""
    online.ask(zone=["a", "b"])
    before = online.measured
    run = online._run
    online._process = -1  # who paid for it was another process
    answer = online.ask(zone=["a", "b"])

    assert online._run is not run
    assert answer.paid
    assert online.measured >= before


def test_all_runs_together_are_charged_at_most_what_was_allowed():
    """A run that would pass at_most is refused free of charge; so is another currency, and what is no loss."""
    promise = {"keys": {"zone": ["a", "b"]}, "absolute": 4_000, "queries": 100, "rows": 20_000}
    with Session(RIDES, budget=Budget(mu=2)) as session:
        enough = session.online(**promise, at_most=Gdp(0.18))  # two runs, and not three
        for _ in range(2):
            enough.ask(zone=["a"])
            enough._run.ended = True
        assert enough.paid.farthings <= enough.at_most.farthings
        spent = session.spent
        with pytest.raises(PriceRisen, match="at_most"):
            enough.ask(zone=["b"])
        for few in (Gdp(1e-4), Gdp(0)):
            with pytest.raises(PriceRisen, match="at_most"):
                session.online(**promise, at_most=few).ask(zone=["a"])
        for other in (Zcdp(1), 5):
            with pytest.raises(InvalidTarget, match="at_most"):
                session.online(**promise, at_most=other)
        assert session.spent == spent
