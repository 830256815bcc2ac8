"""Coverage of free sums, through the Session: the interval of a sum of released cells holds the sum of their truths.

Size: a healthy farthing fails with probability at most ALPHA a test (exact binomial at the promised miss rate).
Power: an interval of seven tenths of its width is caught; for the bound on stopped cells, which is never tight, one of
less than the cells' own width; under a pure budget, where the largest cell leads, .15 of it.
"""

import numpy as np
import pyarrow as pa
import pytest
from levels import ALPHA
from scipy.stats import binom

from farthing import Budget, Session
from farthing.accuracy import cell_sums
from farthing.accuracy.stopped_sums import StoppedSums
from farthing.session.core.records import Record

COPIES = 2_500
FEW = 400
CELLS = 4
SIZES = (0, 40, 60, 300)  # of the cells of one sum: below the kink, around it, beyond
TABLE = pa.table({
    "k": np.tile(np.repeat(np.arange(COPIES), sum(SIZES)), 1),
    "c": np.tile(np.repeat(np.arange(CELLS), SIZES), COPIES),
})  # fmt: skip
BOTH = {"by": ["k", "c"], "keys": {"k": range(COPIES), "c": range(CELLS)}}
TOTALS = {"by": "k", "keys": {"k": range(COPIES)}, "where": "c IN (0, 1, 2, 3)"}
MOST = int(binom.isf(ALPHA, COPIES, 0.05))


def asked(budget=None, **how):
    """Return a session whose cells were released."""
    session = Session(TABLE, budget=budget or Budget(mu=50))
    session.count(**BOTH, cap="all", **how)
    return session


def misses(session, absolute):
    """Return how many free totals miss their truth."""
    answer = session.count(**TOTALS, absolute=absolute)
    assert not answer.paid
    return int(((answer.lower > sum(SIZES)) | (answer.upper < sum(SIZES))).sum())


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("budget", "how", "absolute"),
    [
        (Budget(mu=50), {"absolute": 5}, 10.1),
        (Budget(mu=50), {"absolute": 5, "relative": 0.1}, 100),
        (Budget(epsilon=50), {"absolute": 5}, 30),
    ],
    ids=["even", "stopped", "pure"],
)
def test_free_sums_cover(budget, how, absolute):
    """At most one sum in twenty misses, whether its cells stopped together, alone, or had geometric noise."""
    assert MOST >= misses(asked(budget, **how), absolute)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("budget", "times", "covers"),
    [
        (Budget(mu=50), 1.0, True),
        (Budget(mu=50), 0.35, False),
        pytest.param(Budget(epsilon=50), 1.0, True, marks=pytest.mark.thorough),
        pytest.param(Budget(epsilon=50), 0.15, False, marks=pytest.mark.thorough),
    ],
    ids=["size", "power", "pure, size", "pure, power"],
)
def test_few_stopped_cells_cover(budget, times, covers, monkeypatch):
    """Totals of few enough cells are told by the bound on stopped sums; a part of its width is caught."""
    honest = StoppedSums.ends

    def told(sums, beta):
        middle = sums.means.sum(axis=1)
        return tuple(middle + times * (end - middle) for end in honest(sums, beta))

    monkeypatch.setattr(StoppedSums, "ends", told)
    cells = asked(budget, absolute=5, relative=0.1)
    answer = cells.count(**TOTALS | {"keys": {"k": range(FEW)}}, absolute=300)
    missed = int(((answer.lower > sum(SIZES)) | (answer.upper < sum(SIZES))).sum())

    assert not answer.paid
    assert covers == (missed <= int(binom.isf(ALPHA, FEW, 0.05)))


@pytest.mark.statistical
def test_narrow_sums_are_caught(monkeypatch):
    """Seven tenths of the width miss far too often."""
    honest = cell_sums.even
    monkeypatch.setattr(cell_sums, "even", lambda *how: 0.7 * honest(*how))

    assert MOST < misses(asked(absolute=5), 10.1)


@pytest.mark.statistical
@pytest.mark.parametrize(("times", "covers"), [(1.0, True), (0.6, False)], ids=["size", "power"])
def test_stretched_cells_cover(times, covers):
    """Each stopped cell misses its stretched interval at most as often as promised, below, at and above the kink."""
    session = asked(absolute=5, relative=0.1)
    record = Record.from_bytes(session._ledger.load(session.history()[0].question).blob)
    value = record.measured.values.reshape(CELLS, COPIES)  # arranged by column name: c first
    kept = record.kept
    half = times * cell_sums.stretch(kept, 0.05) * np.maximum(kept.relative * np.abs(value), kept.floor)
    missed = (np.abs(value - np.array(SIZES)[:, None]) > half).sum(axis=1)

    assert covers == bool((missed <= int(binom.isf(ALPHA / CELLS, COPIES, 0.05))).all())
