"""What bounds cut: shares with intervals, chosen bounds, warnings."""

import math

import numpy as np
import pytest
from levels import ALPHA
from scipy.stats import binom

from farthing.accuracy import Target
from farthing.accuracy.contribution_report import (
    BUCKETS,
    ChosenBounds,
    NoisySpread,
    auto_bounds,
    magnitudes,
    report,
    sigma_for,
    warns,
)
from farthing.errors import InvalidTarget
from farthing.privacy.loss import Gdp


def place(value):
    """Return the place of a value among the 129, as the engine counts it."""
    if abs(value) < 2.0**-32:
        return 64
    k = min(math.frexp(abs(value))[1] + 32, 64)
    return 64 + k if value > 0 else 64 - k


def population(rng, units=50_000):
    """Return (groups, rows, least, greatest) of random units."""
    groups = np.minimum(rng.geometric(0.3, units), 60)
    rows = np.ceil(rng.pareto(1.5, units) * 3).clip(1, 5000).astype(np.int64)
    greatest = rng.lognormal(2.0, 1.2, units)
    people = groups, rows, greatest * rng.uniform(-0.3, 1.0, units), greatest
    common = np.ones(units, bool)  # what is rarer than the noise is left out, as the report says
    for places in (np.log2(groups), np.log2(rows), *([place(x) for x in each] for each in people[2:])):
        whole = np.array(places).astype(int)
        common &= np.bincount(whole)[whole] > 200
    return tuple(each[common] for each in people)


def spread_of(rng, people, *, sigma):
    """Return the noisy histograms of a population."""
    groups, rows, least, greatest = people

    def noisy(places, size):
        return np.bincount(places, minlength=size) + rng.normal(0, sigma, size)

    return NoisySpread(
        noisy(np.log2(groups).astype(int), 32),
        noisy(np.log2(rows).astype(int), 32),
        noisy([place(x) for x in least], BUCKETS),
        noisy([place(x) for x in greatest], BUCKETS),
        sigma=sigma,
    )


def test_places_of_values():
    """The ends of the 129 places are those that the engine counts by."""
    low, high = magnitudes()
    for value in (-(2.0**40), -5.0, -1.0, -(2.0**-33), 0.0, 2.0**-32, 1.0, 1.5, 2.0, 1e9):
        k = place(value)
        near, far = sorted((abs(low[k]), abs(high[k])))

        assert (near <= abs(value) < far) or k in {0, 64, 128}


@pytest.mark.parametrize("seed", range(6))
def test_intervals_hold_the_true_shares(seed):
    """For a heavy-tailed population, every share of the report lies in its interval."""
    rng = np.random.default_rng(seed)
    groups, rows, least, greatest = people = population(rng)
    spread = spread_of(rng, people, sigma=20.0)
    lower, upper = [(0.0, 50.0), (-1.0, 10.0), (-100.0, 1e6)][seed % 3]
    cut = report(spread, max_groups=3, max_rows=10, lower=lower, upper=upper)
    size = np.abs(least).sum() + np.abs(greatest).sum()
    beyond = np.maximum(lower - least, 0).clip(max=np.abs(least)).sum() + np.maximum(greatest - upper, 0).sum()
    truth = {
        "units_groups": (groups > 3).mean(),
        "groups": np.maximum(groups - 3, 0).sum() / groups.sum(),
        "rows": np.maximum(rows - 10, 0).sum() / rows.sum(),
        "units_value": ((least < lower) | (greatest > upper)).mean(),
        "value": beyond / size,
    }
    for name, share in truth.items():
        seen = getattr(cut, name)
        assert seen.lower <= share <= seen.upper, name
        assert 0 <= seen.lower <= seen.value <= seen.upper <= 1


@pytest.mark.statistical
def test_what_hides_in_the_noise_is_allowed_for():
    """Of 20,400 units 400 have a sixth of the rows cut, in sizes that do not stand out: "0 %" has room for them."""
    missed, runs = 0, 60
    rng = np.random.default_rng(3)
    rows = np.concatenate([rng.integers(1, 5, 20_000), rng.integers(9, 60, 400)])
    truth = np.maximum(rows - 8, 0).sum() / rows.sum()
    for _ in range(runs):
        spread = spread_of(rng, (rows * 0 + 1, rows, rows * 1.0, rows * 1.0), sigma=100.0)
        share = report(spread, max_groups=1, max_rows=8).rows
        missed += not share.lower <= truth <= share.upper

    assert 0.15 < truth
    assert "0 %" == str(share).partition(" (")[0]
    assert missed <= binom.ppf(1 - ALPHA, runs, 0.05)  # in every run, where the largest size that stands out ends all


def test_a_report_reads():
    """It says what is cut by what, how surely, and that places are powers of two."""
    rng = np.random.default_rng(1)
    cut = report(spread_of(rng, population(rng), sigma=20.0), max_groups=2, max_rows=8, lower=0.0, upper=20.0)

    text = str(cut)

    assert "max_groups cuts" in text
    assert "powers of two" in text
    assert "lower and upper cut" in text
    assert "95 %" in text
    assert "lower and upper" not in str(report(spread_of(rng, population(rng), sigma=20.0), max_groups=2, max_rows=8))


def test_noise_alone_is_no_news():
    """Without units every interval is wide, nothing raises, and bounds are still chosen."""
    rng = np.random.default_rng(2)
    spread = NoisySpread(*(rng.normal(0, 50, n) for n in (32, 32, 129, 129)), sigma=50.0)

    cut = report(spread, max_groups=2, max_rows=8, lower=0.0, upper=20.0)

    assert cut.rows.upper > 0.99
    assert cut.rows.lower < 0.01
    assert auto_bounds(spread, lambda b: b.max_groups * b.max_rows * (b.upper - b.lower)).max_rows >= 1


def test_chosen_bounds_beat_both_ends():
    """The true error of the chosen bounds is far below that of cutting nothing, and of cutting nearly all."""
    rng = np.random.default_rng(3)
    groups, rows, _, _ = people = population(rng)
    spread = spread_of(rng, people, sigma=20.0)

    def noise(bounds):
        return 300 * math.sqrt(bounds.max_groups) * bounds.max_rows

    def error(bounds):
        kept = np.minimum(groups, bounds.max_groups) * np.minimum(rows, bounds.max_rows)
        return (groups * rows - kept).sum() + noise(bounds)

    chosen = auto_bounds(spread, noise, of_values=False)
    grid = [ChosenBounds(1 << k, 1 << c, None, None) for k in range(7) for c in range(14)]

    assert error(chosen) < 1.3 * min(error(each) for each in grid)
    assert error(chosen) < 0.7 * min(error(ChosenBounds(64, 8192, None, None)), error(ChosenBounds(1, 1, None, None)))


def test_chosen_clamps_follow_the_price_of_noise():
    """More expensive noise buys narrower clamps, and all clamps hold lower < upper."""
    rng = np.random.default_rng(4)
    spread = spread_of(rng, population(rng), sigma=20.0)
    widths = []
    for price in (1.0, 100.0, 10_000.0):
        chosen = auto_bounds(
            spread, lambda b, price=price: price * b.max_groups**0.5 * b.max_rows * max(-b.lower, b.upper)
        )
        assert chosen.lower < chosen.upper
        widths.append(chosen.upper - chosen.lower)

    assert widths == sorted(widths, reverse=True)
    assert widths[0] > widths[-1]


def test_warnings_compare_with_the_target():
    """A cut above a relative, an absolute or a value target is told, one below is not."""
    rng = np.random.default_rng(5)
    spread = spread_of(rng, population(rng), sigma=20.0)
    tight = report(spread, max_groups=1, max_rows=2)
    loose = report(spread, max_groups=64, max_rows=8192, lower=-1e6, upper=1.0)

    assert "raise max_groups or max_rows" in warns(tight, Target(relative=0.05))
    assert "raise max_groups" in warns(tight, Target(absolute=10))
    assert "" == warns(tight, Target(absolute=1e9))
    assert "widen lower and upper" in warns(loose, Target(relative=0.05))
    assert "" == warns(report(spread, max_groups=64, max_rows=8192), Target(relative=0.05))


def test_all_four_cost_two_sensitivities():
    """The four cost mu = 2/sigma: a unit has one place in each of four histograms."""
    sigma = sigma_for(Gdp(0.1))
    empty = NoisySpread(np.zeros(32), np.zeros(32), np.zeros(129), np.zeros(129), sigma=sigma)

    assert math.isclose(20, sigma)
    assert empty.loss <= Gdp(0.1)
    with pytest.raises(InvalidTarget):
        NoisySpread(np.zeros(31), np.zeros(32), np.zeros(129), np.zeros(129), sigma=sigma)
    with pytest.raises(InvalidTarget):
        NoisySpread(np.zeros(32), np.zeros(32), np.zeros(129), np.zeros(129), sigma=0.0)
