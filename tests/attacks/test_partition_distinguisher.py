"""A distinguisher against partitions: parts are charged in parallel, so one unit may count in one of them only.

Trials are those of `test_distinguisher`: thousands of neighbouring pairs side by side in the groups of one question.
The one unit of a trial has rows in every part; the attacker asks all parts and adds the answers up. If the unit counted
in each of m parts the sum would tell sqrt(m) times the loss that the maximum charges.

Size: a healthy farthing is called broken with probability at most ALPHA a verdict (exact, at any noise).
Power: every bug planted here doubles mu; `test_power_of_the_harness` shows that 40 % more escapes with probability
below 1e-9.
"""

import numpy as np
import pyarrow as pa
import pytest
from attacks.test_distinguisher import TRIALS, transcript

from farthing import Bounds, Budget

PARTS = 4
KEYS = {"k": range(TRIALS)}
ASK = {"by": "k", "keys": KEYS, "cap": "all"}
BUDGET = Budget(mu=4)


def everywhere(extra):
    """Return a table where the unit of each trial, in D' only, has three rows in every part."""
    trial = np.repeat(np.arange(TRIALS if extra else 0), PARTS * 3)
    part = np.tile(np.repeat(np.arange(PARTS), 3), TRIALS if extra else 0)
    return pa.table({"k": np.append(trial, -1), "u": np.append(trial, -1), "r": np.append(part, 0)})


def one_row(extra):
    """Return a table where each trial has, in D' only, one row: in part 2 of every partition."""
    trial = np.arange(TRIALS if extra else 0)
    columns = {f"r{place}": np.full(trial.size + 1, 2) for place in range(PARTS)}
    return pa.table({"k": np.append(trial, -1)} | columns)


def unit_in_every_part():
    """A unit column: the score is the sum of the answers of all parts."""

    def ask(session):
        parts = session.partition(by="r", keys=range(PARTS))
        return np.sum([part.count(**ASK, absolute=6).value for part in parts.values()], axis=0)

    return transcript(everywhere, ask, unit="u", bounds=Bounds(max_groups=1, max_rows=3), budget=BUDGET)


def row_in_one_part():
    """One row as the unit: the score is again the sum over all parts."""

    def ask(session):
        parts = session.partition(by="r0", keys=range(PARTS))
        return np.sum([part.count(**ASK, absolute=2, on_miss="spend").value for part in parts.values()], axis=0)

    return transcript(one_row, ask, budget=BUDGET)


def row_in_several_partitions():
    """Partitions overlap: the score is the sum over one part of each."""

    def ask(session):
        parts = [session.partition(by=f"r{place}", keys=[2])[2] for place in range(PARTS)]
        return np.sum([part.count(**ASK, absolute=2, on_miss="spend").value for part in parts], axis=0)

    return transcript(one_row, ask, budget=BUDGET)


def asking_the_right_part():
    """The attacker knows where the row is: no loss is left on the table."""

    def ask(session):
        return session.partition(by="r0", keys=range(PARTS))[2].count(**ASK, absolute=2, on_miss="spend").value

    return transcript(one_row, ask, budget=BUDGET)


def units_not_kept_in_one_part(plant):
    from farthing.query import Query
    from farthing.query.normal import conjunction

    def everywhere(query, where):
        here = None if query.part is None else query.part.condition()
        return conjunction(tuple(part for part in (where, here) if part is not None))

    plant.setattr(Query, "cuts_parts", property(lambda _: False))
    plant.setattr(Query, "_rows", everywhere)


def parts_that_overlap(plant):
    from farthing.query import Query
    from farthing.query.normal import normal

    plant.setattr(Query, "rows", property(lambda query: None if query.where is None else normal(query.where)))


def partitions_taken_for_one(plant):
    from farthing.ledger.store import Ledger

    honest = Ledger.part
    plant.setattr(Ledger, "part", lambda books, partition, name: honest(books, partition="one", name=partition + name))


ATTACKS = (unit_in_every_part, row_in_one_part, row_in_several_partitions, asking_the_right_part)
BUGS = (
    (units_not_kept_in_one_part, unit_in_every_part),
    (parts_that_overlap, row_in_one_part),
    (partitions_taken_for_one, row_in_several_partitions),
)


@pytest.mark.statistical
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_parts_keep_the_promise(attack):
    """Whatever is asked of the parts, the distinguisher stays below what the ledger says."""
    assert "holds" == attack().verdict()


@pytest.mark.statistical
@pytest.mark.parametrize(("bug", "attack"), BUGS, ids=lambda part: part.__name__)
def test_planted_bugs_of_partitions_are_caught(bug, attack, monkeypatch):
    """A unit in several parts, parts that overlap, partitions charged as one: each is proved to break the promise."""
    bug(monkeypatch)

    assert "broken" == attack().verdict()


@pytest.mark.statistical
def test_the_right_part_tells_nearly_all():
    """The bound comes close to the promise, so that a bug has little room below it."""
    seen = asking_the_right_part()

    assert 0.75 * seen.promise.mu < seen.lower() <= seen.promise.mu
