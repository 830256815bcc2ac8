"""Processes, or threads, race on one ledger: never overdrawn, nobody waits for ever, every answer is good."""

import json
import subprocess
import sys
import threading

import pyarrow as pa
import pytest
from sweeps import sweep

from farthing import Budget, BudgetExceeded, Gdp, Session

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("race")]  # one race for all

RACERS = sweep(4, 8)
ROWS = 3_000
BUDGET = Budget(mu=0.1)
TABLE = pa.table({"x": range(ROWS)})
PRICE = {"loss": Gdp(0.016)}  # 39 of them fit: fewer than the racers would like
SURE = 10 / 0.016  # ten standard deviations of an answer

RACER = f"""
import json, sys
import pyarrow as pa
from farthing import Budget, BudgetExceeded, Gdp, Session

session = Session(pa.table({{"x": range({ROWS})}}), budget=Budget(mu={BUDGET.mu}), ledger=sys.argv[1])
price = {{"loss": Gdp({PRICE["loss"].mu})}}
print("ready", flush=True)
sys.stdin.readline()
same = session.count(where="x >= 0", **price)
seen = []
for i in range(10**9):
    try:
        answer = session.count(where=f"x <> {{sys.argv[2]}}{{i:05d}}", **price)
    except BudgetExceeded:
        break
    seen.append([answer.value, answer.paid.farthings])
print(json.dumps([[same.value, same.paid.farthings], seen]))
"""


@pytest.fixture(scope="module")
def race(tmp_path_factory):
    """Let processes ask the same question at the same moment, then questions of their own until all is spent."""
    path = tmp_path_factory.mktemp("race") / "a.ledger"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(path), str(1000 + i)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for i in range(RACERS)
    ]  # fmt: skip
    for racer in racers:
        assert "ready\n" == racer.stdout.readline()
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    results = [json.loads(racer.communicate(timeout=120)[0]) for racer in racers]
    assert [0] * RACERS == [racer.returncode for racer in racers]
    with Session(TABLE, budget=BUDGET, ledger=path) as session:
        session._ledger.verify()
        yield results, session


def test_processes_never_overdraw(race):
    """The books hold what the racers paid, to the farthing, and the budget was spent but not passed."""
    results, session = race
    paid = sum(same[1] + sum(price for _, price in seen) for same, seen in results)

    assert paid == session.spent.farthings
    assert BUDGET.total - PRICE["loss"] < session.spent <= BUDGET.total
    assert [] == [entry for entry in session.history() if entry.state != "settled"]


def test_the_same_question_at_once(race):
    """Every racer gets the same answer to the same question: one of them paid for it, and no other paid anything."""
    same = [first for first, _ in race[0]]

    assert 1 == len([price for _, price in same if price])
    assert 1 == len({value for value, _ in same})
    most = PRICE["loss"].farthings
    assert {price for _, price in same} <= {0, most - 1, most}  # a limit is rounded down to whole farthings
    assert all(abs(value - ROWS) < SURE for value, _ in same)


def test_what_was_paid_for_stays_free(race):
    """After the race the shared question costs nothing, though nothing is left."""
    _, session = race

    answer = session.count(where="x >= 0", **PRICE)

    assert not answer.paid
    with pytest.raises(BudgetExceeded):
        session.count(where="x > 17", **PRICE)


@pytest.mark.parametrize("shared", [True, False], ids=["one session", "a session each"])
def test_threads_never_overdraw(tmp_path, shared):
    """Threads of one process race too, on one session or on one each."""
    path = tmp_path / "a.ledger"
    common = Session(TABLE, budget=BUDGET, ledger=path)
    results, start = [], threading.Barrier(RACERS)

    def ask(number):
        session = common if shared else Session(TABLE, budget=BUDGET, ledger=path)
        start.wait()
        paid = session.count(where="x >= 0", **PRICE).paid
        for i in range(1000):
            try:
                paid += session.count(where=f"x <> {number}{i:05d}", **PRICE).paid
            except BudgetExceeded:
                break
        results.append(paid)

    threads = [threading.Thread(target=ask, args=(1000 + i,)) for i in range(RACERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert RACERS == len(results)
    assert sum(paid.farthings for paid in results) == common.spent.farthings
    assert BUDGET.total - PRICE["loss"] < common.spent <= BUDGET.total
    common._ledger.verify()
