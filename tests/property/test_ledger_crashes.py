"""Processes that are killed at random points, and processes that race: nothing shown is unbooked, nothing overdrawn."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

pytestmark = pytest.mark.thorough

# Children are forked from a small process of one thread, which starts them faster than a new interpreter could.
KILLER = """
import json, os, random, signal, sys, time
from farthing.errors import BudgetExceeded
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

folder, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
path, shown = folder + "/a.ledger", folder + "/shown"
terms = Terms("gdp", budget=200 * kills, delta=0, keys_delta=0, unit="row", description="shared")

def ask_and_show(name, rng):
    ledger = Ledger.open(path, terms)
    out = os.open(shown, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for i in range(10**9):
        question, request = f"q{rng.randrange(3)}", f"{name}-{i}"
        stored = ledger.load(question)
        fresh = rng.choice((1, 2, 5, 40))
        try:
            receipt = ledger.reserve(increase=rng.randrange(fresh + 1), fresh=fresh, question=question, label="killed",
                                     version=stored.version if stored else 0, request=request)
        except BudgetExceeded:
            continue
        amount = rng.randrange(min(receipt.reserved, 2) + 1)
        if rng.random() < 0.02:
            ledger.fail(receipt)
            continue
        ledger.settle(receipt, amount, lambda blob: (blob or b"") + request.encode() + b"\\n")
        os.write(out, (json.dumps([request, question, amount]) + "\\n").encode())
        os.fsync(out)

def child(name):
    pid = os.fork()
    if pid == 0:
        try:
            ask_and_show(name, random.Random(name))
        finally:
            os._exit(1)  # only reached by an error: it must be killed
    return pid

def wait_for(answers):
    start, goal = time.monotonic(), size() + 25 * answers
    while size() < goal and time.monotonic() < start + 10:
        time.sleep(0.001)

def size():
    return os.path.getsize(shown) if os.path.exists(shown) else 0

rng = random.Random(seed)
children = {child(f"{seed}-0"): None, child(f"{seed}-1"): None}
spent = 0
for kill in range(kills):
    wait_for(rng.randrange(30))
    time.sleep(rng.uniform(0.0, 0.01))
    victim = rng.choice(sorted(children))
    os.kill(victim, signal.SIGKILL)
    status = os.waitpid(victim, 0)[1]
    assert os.WIFSIGNALED(status), f"a worker died by itself: {status}"
    del children[victim]
    if kill % 5 == 4:  # a crash of everyone: the next to open recovers the log
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        children.clear()
        with Ledger.open(path, terms) as ledger:
            ledger.verify()
            assert ledger.spent <= terms.budget
            settled = sum(entry.charged for entry in ledger.history())
            assert settled == ledger.spent
        children[child(f"{seed}-{kill}-extra")] = None
    children[child(f"{seed}-{kill}-next")] = None
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""

RACER = """
import os, random, sys, time
from farthing.errors import BudgetExceeded
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

path, name = sys.argv[1:]
terms = Terms("gdp", budget=1000, delta=0, keys_delta=0, unit="row", description="shared")
rng = random.Random(name)
print("ready", flush=True)
sys.stdin.readline()
with Ledger.open(path, terms) as ledger:
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


def check(folder, kills):
    """Return how many answers were shown, once every one of them is known to be booked."""
    terms = Terms("gdp", budget=200 * kills, delta=0, keys_delta=0, unit="row", description="shared")
    lines = Path(folder, "shown").read_text(encoding="utf-8").splitlines()
    with Ledger.open(folder / "a.ledger", terms) as ledger:
        ledger.verify()
        entries = {entry.request: entry for entry in ledger.history()}
        released = {question: ledger.load(question).blob.decode().splitlines() for question in ("q0", "q1", "q2")}
        assert sum(entry.charged for entry in entries.values()) == ledger.spent <= terms.budget
        assert not any(entry.alive for entry in ledger.open_reservations)
    for line in lines:
        request, question, amount = json.loads(line)
        assert ("settled", amount) == (entries[request].state, entries[request].settled)
        assert request in released[question]
    settled = {entry.request for entry in entries.values() if entry.state == "settled"}
    assert settled == {request for requests in released.values() for request in requests}
    return len(lines)


def kill(folder, kills, seed):
    """Run workers under kills, and check what they left."""
    subprocess.run([sys.executable, "-c", KILLER, folder, str(kills), str(seed)], check=True, timeout=60 + kills)
    return check(folder, kills)


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is POSIX")
def test_every_answer_shown_is_booked_after_kills(tmp_path):
    """Two workers under 25 kills: every answer that was shown is booked and stored, and the books agree."""
    assert 200 < kill(tmp_path, kills=25, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 13))
def test_every_answer_shown_is_booked_after_hundreds_of_kills(tmp_path, seed):
    """The same under hundreds of kills and thousands of asks."""
    assert 2000 < kill(tmp_path, kills=300, seed=seed)


def test_racing_processes_never_overdraw(tmp_path):
    """Eight processes make one ledger at the same moment and spend it to the end: no overdraft, no deadlock."""
    path = tmp_path / "a.ledger"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, path, f"racer {i}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for i in range(8)
    ]
    for racer in racers:
        assert "ready\n" == racer.stdout.readline()
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        racer.communicate(timeout=60)
        assert 0 == racer.returncode

    terms = Terms("gdp", budget=1000, delta=0, keys_delta=0, unit="row", description="shared")
    with Ledger.open(path, terms) as ledger:
        ledger.verify()
        assert 1000 - 30 < ledger.spent <= 1000
        assert [] == ledger.open_reservations
        assert len(ledger.history()) == sum(
            ledger.load(f"racer {i}").version for i in range(8) if ledger.load(f"racer {i}")
        )
    assert ["a.ledger", "a.ledger-head"] == sorted(file.name for file in tmp_path.iterdir())
