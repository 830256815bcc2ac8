"""Coverage, through the Session: intervals hold the bounded truth and values are within the target, at every size.

Size: a cell is refuted when its misses exceed the exact binomial quantile at the stated rate; all cells of a test share
ALPHA. Power: with a critical value of 1.0 in place of the calibrated one every cell is refuted but with probability
below 1e-6 (`test_planted_critical_value_is_caught` shows it, `test_power` computes it).
"""

import numpy as np
import pyarrow as pa
import pytest
from levels import ALPHA
from scipy.special import ndtr
from scipy.stats import binom
from sweeps import sweep

from farthing import Bounds, Budget, Gdp, Pure, Session, Zcdp

pytestmark = pytest.mark.thorough

SMALL = (0, 3, 30, 100, 300, 1_000, 3_000)
COPIES = 24  # groups of each small size
LARGE = (100_000,) * 10 + (300_000,) * 4 + (1_000_000,)  # one cell: at these sizes only the relative target counts
SIZES = np.array([size for size in SMALL for _ in range(COPIES)] + list(LARGE))
CELLS = np.array([size for size in SMALL for _ in range(COPIES)] + [-1] * len(LARGE))
ASKS = sweep(16, 20)
KEYS = {"k": range(len(SIZES))}
PLENTY = Budget(mu=8)


@pytest.fixture(scope="module")
def table():
    """One group a size and copy."""
    return pa.table({"k": np.repeat(np.arange(len(SIZES), dtype=np.int32), SIZES)})


@pytest.fixture(scope="module")
def shared():
    """Units of three rows, in groups of SMALL sizes counted in units; two rows of each count."""
    units = np.arange(SIZES[: len(SMALL) * COPIES].sum())
    group = np.repeat(np.arange(len(SMALL) * COPIES), SIZES[: len(SMALL) * COPIES])
    return pa.table({"k": np.repeat(group, 3), "u": np.repeat(units, 3)})


def misses(session, asking, truth, *, relative=0.0, absolute=0.0):
    """Return [asks, groups]: whether the interval missed the truth, or a value that met its target was further off."""
    seen = []
    for i in range(ASKS):
        answer = asking(session, f"k >= -{i}")  # another question each time, about the same rows
        outside = (answer.lower > truth) | (answer.upper < truth)
        allowed = np.maximum(relative * truth, absolute)
        seen.append(outside | (answer.met & (np.abs(answer.value - truth) > allowed)))
    return np.array(seen)


def refuted(missed, cells, rate):
    """Return the cells whose misses refute a miss rate of at most `rate`; none are in a healthy farthing."""
    names = np.unique(cells)
    counts = {int(name): missed[:, cells == name] for name in names}
    return [
        name for name, cell in counts.items() if binom.sf(int(cell.sum()) - 1, cell.size, rate) < ALPHA / len(names)
    ]


def ask(how):
    """Return a question with these options."""
    return lambda session, where: session.count("k", keys=KEYS, where=where, **how)


SLOW = {"zcdp", "pure wide", "capped zcdp", "capped pure", "pure loss", "more often", "after a cap", "after a loss"}
"""Cases of which the gate has a neighbour."""


def cases(named):
    """Return the cases of a table, those in SLOW in the slow tier."""
    return [pytest.param(*case, id=name, marks=[pytest.mark.slow] * (name in SLOW)) for name, case in named.items()]


TARGETS = {
    "relative": (PLENTY, {"relative": 0.1, "absolute": 30, "cap": "all"}, 0.05),
    "wide": (PLENTY, {"relative": 0.3, "absolute": 10, "cap": "all", "confidence": 0.9}, 0.1),
    "absolute": (PLENTY, {"absolute": 30, "cap": "all"}, 0.05),
    "zcdp": (Budget(rho=30), {"relative": 0.1, "absolute": 30, "cap": "all"}, 0.05),
    "pure": (Budget(epsilon=30), {"absolute": 30.5, "cap": "all"}, 0.05),
    "pure relative": (Budget(epsilon=30), {"relative": 0.1, "absolute": 30, "cap": "all"}, 0.05),
    "pure wide": (Budget(epsilon=30), {"relative": 0.3, "absolute": 3, "cap": "all", "confidence": 0.9}, 0.1),
    "capped": (PLENTY, {"relative": 0.1, "cap": Gdp(0.02)}, 0.05),
    "capped zcdp": (Budget(rho=30), {"relative": 0.2, "absolute": 5, "cap": Zcdp(0.0005)}, 0.05),
    "capped pure": (Budget(epsilon=30), {"absolute": 5, "cap": Pure(0.05), "on_miss": "spend"}, 0.05),
    "loss": (PLENTY, {"loss": Gdp(0.05)}, 0.05),
    "capped pure relative": (Budget(epsilon=30), {"relative": 0.1, "cap": Pure(0.02)}, 0.05),
    "pure loss": (Budget(epsilon=30), {"loss": Pure(0.1)}, 0.05),
}


@pytest.mark.statistical
@pytest.mark.parametrize(("budget", "how", "rate"), cases(TARGETS))
def test_coverage(table, budget, how, rate):
    """The interval holds the truth, and a met target is kept, as often as was asked, whatever the size."""
    session = Session(table, budget=budget)
    target = {name: how[name] for name in ("relative", "absolute") if name in how}

    assert [] == refuted(misses(session, ask(how), SIZES, **(target or {"absolute": np.inf})), CELLS, rate)


REFINEMENTS = {
    "finer": ({"relative": 0.3, "absolute": 100}, [{"relative": 0.1, "absolute": 30}]),
    "in steps": ({"absolute": 100}, [{"relative": 0.2, "absolute": 60}, {"relative": 0.1, "absolute": 30}]),
    "more often": ({"relative": 0.1, "absolute": 30, "confidence": 0.8}, [{"confidence": 0.95}]),
    "after a cap": ({"relative": 0.1, "cap": Gdp(0.02)}, [{"absolute": 30.0, "cap": "all"}]),
    "given up, capped again": ({"relative": 0.1, "cap": Gdp(0.01)}, [{"cap": Gdp(0.02)}, {"cap": Gdp(0.03)}]),
    "looser": ({"relative": 0.1, "absolute": 30}, [{"relative": 0.3, "absolute": 60}]),
    "after a loss": ({"loss": Gdp(0.02)}, [{"relative": 0.1, "absolute": 30.0}]),
}


@pytest.mark.statistical
@pytest.mark.parametrize(("first", "steps"), cases(REFINEMENTS))
def test_coverage_of_refined_answers(table, first, steps):
    """An answer that was sharpened, once or twice, covers as one that was asked at once."""
    session = Session(table, budget=PLENTY)

    def refined(session, where):
        answer = session.count(
            "k", keys=KEYS, where=where, **({"cap": "all"} | first if "loss" not in first else first)
        )
        for step in steps:
            answer = answer.refine(**step)
        return answer

    target = {name: value for name, value in (first | steps[-1]).items() if name in {"relative", "absolute"}}

    assert [] == refuted(misses(session, refined, SIZES, **target), CELLS, 0.05)


@pytest.mark.statistical
def test_coverage_of_the_bounded_truth(shared):
    """With a unit column the truth is that of the bounded data: two rows of each unit, not three."""
    truth, cells = 2 * SIZES[: len(SMALL) * COPIES], CELLS[: len(SMALL) * COPIES]
    session = Session(shared, unit="u", bounds=Bounds(max_groups=1, max_rows=2), budget=PLENTY)
    how = {"relative": 0.1, "absolute": 30, "cap": "all"}

    def asking(session, where):
        return session.count("k", keys={"k": range(len(truth))}, where=where, **how)

    assert [] == refuted(misses(session, asking, truth, relative=0.1, absolute=30), cells, 0.05)


@pytest.mark.statistical
def test_simultaneous_coverage(table):
    """All groups at once: most asks have no miss at all."""
    session = Session(table, budget=PLENTY)
    how = {"relative": 0.1, "absolute": 30, "cap": "all", "simultaneous": True}
    missed = misses(session, ask(how), SIZES, relative=0.1, absolute=30).any(axis=1)

    assert [] == refuted(missed[:, None], np.zeros(1), 0.05)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("relative", {0, 100, -1}),
        ("absolute", {0, 100, -1}),
        ("zcdp", {0, 100, -1}),
        ("pure relative", {0, 100, -1}),
        ("capped", {1_000, 3_000, -1}),  # smaller groups are given up, with an interval of their own
        ("loss", {0, 100, -1}),
    ],
)
def test_planted_critical_value_is_caught(table, name, sizes, monkeypatch):
    """With c = 1.0 in place of the calibrated one, small and large sizes are refuted."""
    from farthing.accuracy import laplace_stop_rule, schedule

    monkeypatch.setattr(schedule, "critical_value", lambda *_, **__: 1.0)
    monkeypatch.setattr(laplace_stop_rule, "critical_value", lambda *_, **__: 1.0)
    budget, how, rate = TARGETS[name]
    target = {key: how[key] for key in ("relative", "absolute") if key in how} or {"absolute": np.inf}
    caught = refuted(misses(Session(table, budget=budget), ask(how), SIZES, **target), CELLS, rate)

    assert sizes <= set(caught)


def test_power():
    """A miss rate of a cell with c = 1.0, 32 %, is refuted but with probability below 1e-6."""
    for size in (COPIES * ASKS, len(LARGE) * ASKS):
        most = int(binom.isf(ALPHA / 8, size, 0.05))  # more than this is refuted
        assert 1e-6 > binom.cdf(most, size, 2 * ndtr(-1.0))


KINK = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.3, 2.0)  # truths over absolute/relative of the last step


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("steps", [
    [{"absolute": 30}],
    [{"absolute": 100}, {"absolute": 80}, {"absolute": 60}, {"absolute": 45}, {"absolute": 30}],
    [{"absolute": 33}, {"absolute": 32}, {"absolute": 31}, {"absolute": 30}],
    [{"absolute": 30, "relative": 0.3}, {"relative": 0.2}, {"relative": 0.1}],
    [{"absolute": 30, "confidence": 0.8}, {"confidence": 0.9}, {"confidence": 0.95}],
], ids=["at once", "five steps", "small steps", "relative", "confidence"])  # fmt: skip
def test_refined_coverage_at_the_kink(steps):
    """Where coverage is tightest, 90,000 runs a truth: a miss rate of 5.6 % would be refuted nine times in ten."""
    sizes = np.repeat(np.rint(np.array(KINK) * 300).astype(int), 600)
    keys = {"k": range(len(sizes))}
    session = Session(pa.table({"k": np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)}), budget=PLENTY)
    missed = np.zeros((150, len(sizes)), bool)
    for i in range(len(missed)):
        answer = session.count("k", keys=keys, where=f"k >= -{i}", **({"relative": 0.1, "cap": Gdp(0.2)} | steps[0]))
        for step in steps[1:]:
            answer = answer.refine(**step)
        missed[i] = (answer.lower > sizes) | (answer.upper < sizes)
        missed[i] |= np.abs(answer.value - sizes) > np.maximum(0.1 * sizes, 30)

    assert [] == refuted(missed, sizes, 0.05)
