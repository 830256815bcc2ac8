"""Shares of a total and running totals cover the truth at the stated confidence, whatever the pilot chose."""

import numpy as np
import pytest
from accuracy.runs import surely_above
from levels import ALPHA
from sweeps import sweep

from farthing.accuracy.laplace_measures import LaplaceMeasures
from farthing.accuracy.laplace_state import LaplaceState
from farthing.accuracy.running_sums import RunningSums
from farthing.accuracy.share_of_total import SharesOfTotal
from farthing.accuracy.statistics import RatioStatistic
from farthing.accuracy.total_state import TotalState
from farthing.mechanisms.laplace import LaplaceChain
from farthing.session.answering.laplace_measures import MeasureChains

pytestmark = pytest.mark.thorough

WORTH = 2.0**-56
DATA = {
    "three": np.array([3000.0, 2000.0, 1000.0]),
    "one large": np.array([3000.0, *[100.0] * 15]),
    "small and empty": np.array([40.0, 9.0, 1.0, 0.0]),
}
CHAINS = {
    "absolute": ((0.0, 0.05),),
    "relative": ((0.2, 0.02),),
    "refined": ((0.0, 0.08), (0.0, 0.04), (0.1, 0.02)),
}
NUMBERS = {
    "absolute": ((0.0, 60.0),),
    "relative": ((0.2, 20.0),),
    "refined": ((0.0, 90.0), (0.2, 40.0), (0.0, 30.0)),
}
CAP = 1 << 54


def missed(sizes, chain, runs, *, together=1, cap=CAP, noisier=1.0, seed=0, divided=None):
    """Return in how many of the runs the worst number was missed, and the part of numbers that was met.

    Shares of single groups; or running totals, which may be divided by the whole.
    """
    rng, count, whole = np.random.default_rng(seed), len(sizes), sizes.sum()
    places, truth = np.repeat(np.arange(runs), count), np.tile(sizes, runs)

    def measure(grains, shared):
        own = noisier * rng.standard_normal(len(truth)) / np.sqrt(np.maximum(grains, 1) * WORTH)
        total = noisier * rng.standard_normal(runs)[places] * np.sqrt(together / (np.maximum(shared, 1) * WORTH))
        return truth + own, whole + total

    running = None if divided is None else RunningSums.of(places, np.tile(np.arange(count), runs))
    truths = np.tile(sizes if divided is None else np.cumsum(sizes), runs) / (1.0 if divided is False else whole)
    state = TotalState.nothing(len(truth))
    for target in chain:
        shares = SharesOfTotal(
            places, target, 0.05, WORTH, together, cap, running=running, divided=divided is not False
        )
        state = shares.run(state, measure)
        assert shares.free(state)
    _, low, high, met = shares.judged(state)
    outside = (truths < low - 1e-9) | (truths > high + 1e-9)
    return int(outside.reshape(runs, count).sum(axis=0).max()), float(met.mean())


@pytest.mark.statistical
@pytest.mark.parametrize("data", DATA)
def test_every_share_is_covered(data):
    """Of few and many groups, large and empty ones, with targets of either kind, refined, and under a small cap."""
    sizes, runs = DATA[data], sweep(500, 6_000)
    cells = [(chain, together, cap) for chain in CHAINS.values() for together in (1, 3) for cap in (CAP, 1 << 44)]
    refuted = []
    for seed, (chain, together, cap) in enumerate(cells):
        count, met = missed(sizes, chain, runs, together=together, cap=cap, seed=seed)
        if surely_above(count, runs, 0.05, ALPHA / len(cells) / len(sizes)):
            refuted.append((chain, together, cap))
        assert met > 0.99 or cap < CAP or data == "small and empty"

    assert [] == refuted


@pytest.mark.statistical
@pytest.mark.parametrize("divided", [True, False])
def test_every_running_total_is_covered(divided):
    """As parts of the whole and as numbers, with targets of either kind, refined, and under a small cap."""
    chains = CHAINS if divided else NUMBERS
    cells = [(data, chain, cap) for data in DATA for chain in chains.values() for cap in (CAP, 1 << 44)]
    runs, refuted = sweep(400, 4_000), []
    for seed, (data, chain, cap) in enumerate(cells):
        count, met = missed(DATA[data], chain, runs, together=3, cap=cap, seed=seed, divided=divided)
        if surely_above(count, runs, 0.05, ALPHA / len(cells) / 16):
            refuted.append((data, chain, cap))
        assert met > 0.99 or cap < CAP or data == "small and empty"

    assert [] == refuted


def pure_missed(sizes, target, runs, *, cap=1 << 44, smaller=1.0):
    """Return in how many of the runs the worst share was missed under a pure budget, and the part that was met."""
    count, fine = len(sizes), 1 << 12
    places = np.repeat(np.arange(runs), count)
    truths = np.tile(sizes, runs).astype(np.int64) * fine, np.full(runs, sizes.sum(), np.int64) * fine
    share = RatioStatistic(1, 0, 0.0, 0.0, 1.0, (count, 1.0))
    rule = LaplaceMeasures((share,), (target,), 0.05, (1.0, 1.0), (1 / fine,) * 2, cap, places=places)
    before = LaplaceState.nothing(2, 1, len(places))
    chains = MeasureChains(tuple(LaplaceChain(truth, int(fine / smaller)) for truth in truths), before, places)
    state = rule.run(before, lambda *how: chains.show(0, *how), lambda *how: chains.show(1, *how))
    for level in (state.pilot.level, state.claimed.level):
        assert (level.reshape(2, runs, count) == level.reshape(2, runs, count)[:, :, :1]).all()  # they are paid alike
    assert rule.free(state)
    _, low, high, met = (one[0] for one in rule.told(state))
    truth = np.tile(sizes / sizes.sum(), runs)
    return int(((truth < low) | (truth > high)).reshape(runs, count).sum(axis=0).max()), float(met.mean())


@pytest.mark.statistical
def test_every_share_is_covered_under_a_pure_budget():
    """Whichever rung a total stops at, with targets of either kind, and under a small cap; larger noise is seen."""
    runs, refuted = sweep(300, 3_000), []
    cells = [
        (data, target, cap) for data in DATA for target in ((0.0, 0.05), (0.2, 0.02)) for cap in (1 << 44, 1 << 34)
    ]
    for data, target, cap in cells:
        count, met = pure_missed(DATA[data], target, runs, cap=cap)
        if surely_above(count, runs, 0.05, ALPHA / len(cells) / 16):
            refuted.append((data, target, cap))
        assert met > 0.99 or cap < 1 << 44 or data == "small and empty"

    assert [] == refuted
    assert surely_above(pure_missed(DATA["three"], (0.0, 0.05), 3_000, smaller=0.4)[0], 3_000, 0.05, ALPHA)


@pytest.mark.statistical
def test_noise_that_is_larger_than_it_says_is_caught():
    """Had measurements a quarter more noise than they say, shares would miss far more than 5 %: the test sees it."""
    for noisier, seen in ((1.25, True), (1.0, False)):
        for divided, chain in ((None, CHAINS), (True, CHAINS), (False, NUMBERS)):
            count, _ = missed(DATA["three"], chain["absolute"], 8_000, noisier=noisier, seed=9, divided=divided)
            assert seen == surely_above(count, 8_000, 0.05, ALPHA)
