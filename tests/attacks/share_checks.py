"""What mutants of shares of a total are put to: what is paid, how large the noise of totals is, intervals that hold."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pyarrow as pa

import farthing
from farthing.accuracy.running_sums import RunningSums
from farthing.accuracy.share_of_total import SharesOfTotal
from farthing.accuracy.total_state import TotalState
from farthing.mechanisms.gaussian import GaussianMeasurements, Measured
from farthing.session.answering.laplace_measures import state_of as pure_state_of
from farthing.session.answering.share_of_total import TotalLanes, state_of

RUNS = 20_000
WORST = 0.06
"""Of 5 % that may be missed: 6.5 deviations above."""
TEXT = "SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM data GROUP BY g"
ROWS = pa.table({"u": np.arange(9_000) // 3, "g": np.arange(9_000) % 3})
KEYS = {"g": [0, 1, 2]}


def shares() -> tuple[str, ...]:
    """Hold what shares hold in the books against their price; measure totals; count the misses of intervals."""
    return (*_charged(), *_moved(), *_missed(), *_alike(), *_grown(), *_compared(), *_pure_sums())


def _opened() -> farthing.Session:
    """Open a table of units that have a row in each of three groups."""
    return farthing.Session(
        ROWS, unit="u", bounds=farthing.Bounds(3, 1), budget=farthing.Budget(mu=20, delta=1e-6), name="data"
    )


def _charged() -> tuple[str, ...]:
    """Return whether shares were charged less than a unit of all groups pays for them and for their total."""
    with _opened() as session:
        paid = session.sql(TEXT, keys=KEYS, absolute=0.02).paid.farthings
        state = state_of(session._ledger.load(session.history()[-1].question).blob)
    held = int((state.grains + state.shared).sum()) >> 16  # grains of 2^-56 as farthings of 2^-40
    return (f"{paid} farthings paid for {held}",) * (paid < held)


def _moved() -> tuple[str, ...]:
    """Return whether a total is measured with less noise than one unit of three groups, all of which count, needs."""
    found: list[TotalLanes] = []
    made = TotalLanes.of.__func__  # type: ignore[attr-defined]

    def watched(*given: object) -> TotalLanes:
        found.append(made(TotalLanes, *given))
        return found[-1]

    with mock.patch.object(TotalLanes, "of", watched), _opened() as session:
        session.sql(TEXT, keys=KEYS, absolute=0.05)
    (lanes,) = found
    assert isinstance(lanes.totals, GaussianMeasurements)
    grains = np.full(1, 1 << 50)
    drawn = [float(lanes.totals.measure(Measured.nothing(1), grains).values[0]) for _ in range(400)]
    needed = 3 * 2.0**28 / 2.0**25
    return (f"a total told within {np.std(drawn):.3g}, not {needed:.3g}",) * bool(np.std(drawn) < 0.8 * needed)


def _alike() -> tuple[str, ...]:
    """Return whether a pure total was shown finer than the members of some of its groups paid for."""
    rows = pa.table({"g": np.repeat([0, 1, 2], [8_000, 900, 100])})
    with farthing.Session(rows, budget=farthing.Budget(epsilon=100), name="data") as session:
        session.sql(TEXT, keys=KEYS, relative=0.1, absolute=0.001)
        state, _ = pure_state_of(session._ledger.load(session.history()[-1].question).blob)
    levels = [sorted(set(lanes.level[1].tolist())) for lanes in (state.pilot, state.claimed)]
    return (f"a pure total at levels {levels}",) * any(len(found) > 1 for found in levels)


def _grown() -> tuple[str, ...]:
    """Return how far targets of either kind, sharper and looser, under caps that change, went beyond these."""
    rng, truth, far = np.random.default_rng(0), np.array([2400.0, *[60.0] * 39]), 0
    places = np.zeros(len(truth), np.int64)

    def measure(grains: np.ndarray, shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own = rng.standard_normal(len(truth)) * 2.0**28 / np.sqrt(np.maximum(grains, 1))
        total = rng.standard_normal() * 2.0**28 / np.sqrt(np.maximum(shared, 1))
        return truth + own, truth.sum() + total

    for _ in range(20):
        state, first = TotalState.nothing(len(truth)), int(rng.integers(1 << 50, 1 << 53))
        for target in [(0.3, 0.0), (0.0, 0.02), *rng.permutation([(0.4, 0.0), (0.05, 0.15), (0.0, 0.05), (0.0, 0.0)])]:
            cap, held = int(first * rng.choice([1, 1, 1, 0.5, 4])), int(state.paid.max())
            rule = SharesOfTotal(places, (float(target[0]), float(target[1])), 0.05, 2.0**-56, 1, cap)
            state = rule.run(state, measure)
            far = max(far, int(state.paid.max()) - max(cap, held))
    return (f"{far} grains beyond a cap",) * (far > 0)


def _compared() -> tuple[str, ...]:
    """Return whether differences of neighbours miss more often than they say, or say what their numbers cannot."""
    groups = 2_000
    rows, keys = pa.table({"g": np.zeros(1, np.int64)}), {"g": range(groups)}
    text = "SELECT g, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY g) AS more FROM data GROUP BY g"
    with farthing.Session(rows, budget=farthing.Budget(mu=20), name="data") as session:
        answer = session.sql(text, keys=keys, absolute=50, cap="all", confidence=0.6)
    more, said = answer["more"], answer.confidence_of("more")
    missed = float(((more.lower > 1) | (more.upper < -1))[1:].mean())
    found = (f"{missed:.1%} of differences missed, {1 - said:.1%} said",) * (missed > 1 - said)
    return (*found, *(f"a difference {said} sure, of numbers that are {answer.confidence}",) * (said > 0.2 + 1e-9))


def _pure_sums() -> tuple[str, ...]:
    """Return whether totals of twenty groups under a pure budget miss more often than they may."""
    keys = pa.table({"run": np.repeat(np.arange(500), 20), "g": np.tile(np.arange(20), 500)})
    text = "SELECT run, g, SUM(COUNT(*)) OVER (PARTITION BY run) AS n FROM data GROUP BY run, g"
    with farthing.Session(keys.slice(0, 0), budget=farthing.Budget(epsilon=20), name="data") as session:
        answer = session.sql(text, keys=keys, absolute=50, cap="all", confidence=0.8)
    missed = float(((answer.lower > 0) | (answer.upper < 0))[::20].mean())
    return (f"{missed:.1%} of pure totals missed",) * (missed > 0.32)  # of 20 %: 6.7 deviations above


def _missed() -> tuple[str, ...]:
    """Return which shares and running totals are missed more often than they may be, of three groups and of twenty."""
    rng, found = np.random.default_rng(3), []
    for sizes in (np.array([3000.0, 2000.0, 1000.0]), np.array([3000.0, *[150.0] * 20])):
        runs = RUNS // len(sizes)
        places, truth = np.repeat(np.arange(runs), len(sizes)), np.tile(sizes, runs)

        def measure(grains: np.ndarray, shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            own = truth + rng.standard_normal(len(truth)) * 2.0**28 / np.sqrt(np.maximum(grains, 1))  # noqa: B023
            noise = rng.standard_normal(runs)[places] * 2.0**28 / np.sqrt(np.maximum(shared, 1))  # noqa: B023
            return own, sizes.sum() + noise  # noqa: B023

        rule = SharesOfTotal(places, (0.0, 0.02), 0.05, 2.0**-56, 1, 1 << 56)
        low, high = rule.intervals(rule.run(TotalState.nothing(len(truth)), measure))
        missed = ((truth / sizes.sum() < low) | (truth / sizes.sum() > high)).reshape(runs, -1).mean(axis=0)
        limit = WORST + 4 * (0.05 / runs) ** 0.5
        found += [f"{100 * missed[0]:.1f} % of the largest share missed"] * bool(missed[0] > limit)
        sums = RunningSums.of(places, np.tile(np.arange(len(sizes)), runs))
        rule = SharesOfTotal(places, (0.0, 100.0), 0.05, 2.0**-56, 1, 1 << 56, running=sums, divided=False)
        low, high = rule.intervals(rule.run(TotalState.nothing(len(truth)), measure))
        missed = ((sums.summed(truth) < low) | (sums.summed(truth) > high)).reshape(runs, -1).mean(axis=0)
        found += [f"{100 * missed[-1]:.1f} % of whole totals missed"] * bool(missed[-1] > limit)
    return tuple(found)
