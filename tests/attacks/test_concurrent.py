"""Half-refined answers, several open at once, sharpened in any order from threads and processes: the filter holds."""

import json
import random
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest

from farthing import Budget, BudgetExceeded, Gdp, Session

pytestmark = pytest.mark.thorough

GROUPS = [f"g{i}" for i in range(5)]
SIZES = np.array([0, 50, 500, 3_000, 9_000])
TABLE = pa.table({"k": np.repeat(GROUPS, SIZES), "x": np.arange(SIZES.sum()) % 4})
BY = {"by": "k", "keys": {"k": GROUPS}}
ASKS = [{"where": f"x <> {i}"} for i in range(4)]
OTHERS = [np.asarray(TABLE["k"])[np.asarray(TABLE["x"]) != i] for i in range(4)]
TRUTH = [np.array([np.sum(keys == group) for group in GROUPS]) for keys in OTHERS]
STEPS = ({"absolute": 200}, {"relative": 0.2, "absolute": 100}, {"absolute": 60}, {"relative": 0.1, "absolute": 40})
BUDGET = Budget(mu=1)
SURE = 6 / 1.96  # of the half-width: twelve standard deviations are more than the code can miss by chance

WORKER = f"""
import json, random, sys
import numpy as np, pyarrow as pa
from farthing import Budget, Session

groups, sizes = {GROUPS!r}, np.array({SIZES.tolist()!r})
table = pa.table({{"k": np.repeat(groups, sizes), "x": np.arange(sizes.sum()) % 4}})
session = Session(table, budget=Budget(mu=1), ledger=sys.argv[1])
by = {{"by": "k", "keys": {{"k": groups}}}}
order = random.Random(int(sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()
answers = [session.count(**by, **ask, absolute=200) for ask in {ASKS!r}]
paid, seen = sum(a.paid.farthings for a in answers), []
waiting = [i for i in range(4) for _ in range(3)]
order.shuffle(waiting)
done = [0] * 4
for i in waiting:
    done[i] += 1
    answers[i] = answers[i].refine(**{STEPS!r}[done[i]])
    paid += answers[i].paid.farthings
    seen.append([i, answers[i].value.tolist(), answers[i].lower.tolist(), answers[i].upper.tolist()])
print(json.dumps([paid, seen]))
"""


def wide(answer_lower, answer_upper, truth):
    """Tell whether every truth is within three times the interval around its middle."""
    middle, half = (answer_lower + answer_upper) / 2, (answer_upper - answer_lower) / 2
    return bool((np.abs(truth - middle) <= SURE * half).all())


def whole(session):
    """Check the books against their entries: nothing open, nothing failed, sums exact."""
    session._ledger.verify()
    entries = session.history()
    assert {"settled"} == {entry.state for entry in entries}
    assert sum(entry.charged for entry in entries) == session.spent.farthings
    assert session.spent <= BUDGET.total


def test_threads_refine_each_others_answers(tmp_path):
    """Four open answers, six threads, any order: books exact, every interval good, no deadlock, the end is free."""
    session = Session(TABLE, budget=BUDGET, ledger=tmp_path / "a.ledger")
    answers = [session.count(**BY, **ask, absolute=200) for ask in ASKS]
    paid, faults = [sum(answer.paid.farthings for answer in answers)], []
    start = threading.Barrier(6)

    def work(seed):
        order = random.Random(seed)
        turns = [(i, step) for i in range(4) for step in STEPS[1:]]
        order.shuffle(turns)
        start.wait()
        for i, step in turns:
            finer = answers[i].refine(**step)
            paid.append(finer.paid.farthings)
            if not wide(finer.lower, finer.upper, TRUTH[i]):
                faults.append((i, step))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert not any(thread.is_alive() for thread in threads)
    assert [] == faults
    assert sum(paid) == session.spent.farthings
    whole(session)
    assert not any(answer.refine(**STEPS[-1]).paid for answer in answers)


def test_processes_refine_the_same_questions(tmp_path):
    """Three processes hold the same four answers half refined, each in an order of its own."""
    path = tmp_path / "a.ledger"
    Session(TABLE, budget=BUDGET, ledger=path).close()
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path), str(seed)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for seed in range(3)
    ]  # fmt: skip
    for worker in workers:
        assert "ready\n" == worker.stdout.readline()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    results = [json.loads(worker.communicate(timeout=120)[0]) for worker in workers]

    with Session(TABLE, budget=BUDGET, ledger=path) as session:
        assert sum(paid for paid, _ in results) == session.spent.farthings
        whole(session)
        for _, seen in results:
            for i, _, lower, upper in seen:
                assert wide(np.array(lower), np.array(upper), TRUTH[i])
        free = [session.count(**BY, **ask, **STEPS[-1]) for ask in ASKS]
        assert not any(answer.paid for answer in free)


def test_open_answers_cost_no_more_than_their_ends():
    """Interleaved refinements are charged where they end, not how often or in which order they were looked at."""
    straight, mixed = (Session(TABLE, budget=BUDGET) for _ in range(2))
    for ask in ASKS:
        straight.count(**BY, **ask, absolute=40)
    answers = [mixed.count(**BY, **ask, absolute=200) for ask in ASKS]
    for absolute in (120, 80, 40):
        for i in (2, 0, 3, 1):
            answers[i] = answers[i].refine(absolute=absolute)

    assert 0 <= mixed.spent.farthings - straight.spent.farthings <= 4 * 4  # each ask rounds up to whole farthings


def test_the_filter_holds_while_answers_are_open():
    """A refine that does not fit is refused and leaves every open answer as it was, to be asked for less."""
    session = Session(TABLE, budget=Budget(mu=0.2))
    answers = [session.count(**BY, **ask, absolute=60, cap=Gdp(0.2)) for ask in ASKS]
    spent = session.spent
    with pytest.raises(BudgetExceeded):
        answers[2].refine(absolute=10)

    assert spent == session.spent
    assert answers[1].refine(absolute=30).paid
    assert not answers[2].refine(absolute=60).paid
    session._ledger.verify()


def test_open_answers_in_parts_and_whole(tmp_path):
    """Threads refine answers of several parts and of the whole at once; the books are those of one after the other."""

    def run(path, *, together):
        session = Session(TABLE, budget=BUDGET, ledger=path)
        parts = session.partition(by="k", keys=GROUPS)
        asks = [*(part.count for part in parts.values()), session.count]

        def work(ask):
            ask(absolute=200).refine(absolute=100).refine(absolute=50)

        threads = [threading.Thread(target=work, args=(ask,)) for ask in asks]
        for thread in threads:
            thread.start()
            if not together:
                thread.join(timeout=60)
        for thread in threads:
            thread.join(timeout=60)
        session._ledger.verify()
        return session.spent

    assert run(tmp_path / "a.ledger", together=True) == run(tmp_path / "b.ledger", together=False)
