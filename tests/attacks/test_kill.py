"""kill -9 at random points: whatever was shown is booked, and the budget never comes back.

Workers ask one ledger file through the public Session, write each answer that they were given to a file and sync it,
and are killed in the middle of it. When all of a round are dead, the ledger is opened again and checked.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from sweeps import sweep

from farthing import Budget, Session

ROWS = 4_000
BUDGET = Budget(mu=0.9)  # so small that long runs spend it to the end
TABLE = pa.table({"x": range(ROWS)})

WORKER = f"""
import json, os, random, sys
import pyarrow as pa
from farthing import Budget, BudgetExceeded, Session

folder, name = sys.argv[1], sys.argv[2]
rng = random.Random(name)
session = Session(pa.table({{"x": range({ROWS})}}), budget=Budget(mu={BUDGET.mu}), ledger=folder + "/a.ledger")
out = os.open(folder + "/shown", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

def show(where, how, answer, farthings):
    plan = session.plan(where=where, **how)
    line = [where, how, f"{{plan.question}}, within {{plan.target}}, 0.95", farthings, answer.value]
    os.write(out, (json.dumps(line) + "\\n").encode())
    os.fsync(out)

coarse, fine = {{"relative": 0.2, "absolute": 100.0}}, {{"relative": 0.2, "absolute": 60.0}}
for how in (coarse, fine):
    session.plan(**how)  # the calibration of a target takes longest, and nothing is at stake in it
print("ready", flush=True)
for i in range(10**9):
    # Most questions are this worker's own; some are everybody's, and always to the same target.
    where = f"x > {{rng.randrange(5)}}" if rng.random() < 0.2 else f"x <> {{name}}{{i:05d}}"
    try:
        answer = session.count(where=where, **coarse)
        show(where, coarse, answer, answer.paid.farthings)
        if "<>" in where and rng.random() < 0.3:
            answer = answer.refine(**fine)
            show(where, fine, answer, answer.paid.farthings)
    except BudgetExceeded:
        pass
"""


FORGETFUL = WORKER.replace('ledger=folder + "/a.ledger"', "ledger=None")


BETWEEN = 8
"""How many answers are shown between two kills, at least."""


def start(folder, number, program):
    """Start a worker; numbers make its questions its own."""
    command = [sys.executable, "-c", program, str(folder), str(1000 + number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_round(folder, first, workers, rng, program):
    """Let workers ask until each is killed at a random moment, some answers after the one before."""
    running = [start(folder, first + i, program) for i in range(workers)]
    for worker in running:
        assert "ready\n" == worker.stdout.readline()
    for worker in running:
        many, until = len(shown(folder)) + BETWEEN, time.monotonic() + 20
        while len(shown(folder)) < many and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.1))
        assert worker.poll() is None
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
        assert -signal.SIGKILL == worker.returncode


def shown(folder):
    """Return what was shown: where, target, label, farthings and value of every answer."""
    path = Path(folder, "shown")
    # A line that was cut off by the kill was not shown whole: its answer may be booked or not.
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def check(folder, spent_before, sample):
    """Check the books of a ledger whose users are all dead; return what they charge."""
    answers = shown(folder)
    with Session(TABLE, budget=BUDGET, ledger=folder / "a.ledger") as session:
        session._ledger.verify()  # the books' own proof that they sum up
        history = session.history()
        booked = Counter(
            (f"{entry.label}, {entry.target}", entry.settled) for entry in history if entry.state == "settled"
        )
        paid = Counter((label, farthings) for _, _, label, farthings, _ in answers if farthings)
        assert Counter() == paid - booked
        assert not any(entry.alive for entry in session.history() if entry.state == "open")
        spent = session.spent
        assert spent_before <= spent <= BUDGET.total
        assert sum(entry.charged for entry in history) == spent.farthings
        for where, how, _, _, _ in sample(answers):
            assert not session.count(where=where, **how).paid
        assert spent == session.spent
    return spent


def run(folder, rounds, workers, seed, program=WORKER):
    """Return how many answers were shown in so many rounds of kills, all of them checked."""
    rng = random.Random(seed)
    spent = BUDGET.total - BUDGET.total
    for number in range(rounds):
        kill_round(folder, number * workers, workers, rng, program)
        spent = check(folder, spent, lambda answers: rng.sample(answers, min(len(answers), 20)))
    check(folder, spent, lambda answers: answers)
    return len(shown(folder))


pytestmark = [pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX"), pytest.mark.thorough]


def test_every_answer_shown_is_booked_after_kills(tmp_path):
    """Kills, and many asks: every answer shown is booked, spent only rises, and asking again is free."""
    assert 50 < run(tmp_path, rounds=2, workers=sweep(3, 5), seed=1)


@pytest.mark.slow
def test_every_answer_shown_is_booked_after_hundreds_of_kills(tmp_path):
    """300 kills, thousands of asks."""
    assert 3_000 < run(tmp_path, rounds=60, workers=5, seed=2)


def test_books_that_forget_are_caught(tmp_path):
    """Power: workers that keep their books in memory are found out at the first reopening."""
    with pytest.raises(AssertionError):
        run(tmp_path, rounds=1, workers=3, seed=3, program=FORGETFUL)
    assert shown(tmp_path)
