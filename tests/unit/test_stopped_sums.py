"""Totals of cells that stopped alone: the martingale behind their interval, and that no truth it allows is left out."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from farthing.accuracy import stopped_laws
from farthing.accuracy.stopped_laws import (
    GAUSSIAN_STOPS,
    LaplaceStops,
    StopView,
    exponential_shifts,
    gaussian_mixture,
    tilted_end,
)
from farthing.accuracy.stopped_sums import StoppedSums

RULE = {"relative": 0.1, "floor": 10.0, "critical": 1.985}


@pytest.mark.parametrize(("shift", "time", "mean", "spread"), [(3.0, 2.0, 0.5, 0.3), (-1.0, 0.4, 2.0, 5.0)])
def test_a_mixture_is_its_integral(shift, time, mean, spread):
    """The closed form is the integral over theta."""
    law = norm(mean, math.sqrt(spread))
    whole, _ = quad(lambda theta: law.pdf(theta) * math.exp(theta * shift - theta**2 * time / 2), -60, 60, limit=400)

    assert math.log(whole) == pytest.approx(float(gaussian_mixture(shift, time, mean, np.array(spread))), rel=1e-9)


def view_of(sums, truth, tilt, sign, cells=12):
    """Return what a law sees of equal cells of one truth."""
    variance = sums.variance(np.full((1, cells), truth))
    information = np.broadcast_to(sums.information, (1, cells))
    return StopView(information, np.full((1, 1), tilt / math.sqrt(variance[0, 0])), variance, 0.1 / 1.985, sign)


def mean_of_g(sign, truth, time):
    """Return E G for one cell measured with a fixed information, over normal noise."""
    steps = np.linspace(-250, 250, 100_001)
    sums = StoppedSums(np.zeros((1, 1)), np.full((1, 1), time), **RULE)
    view = view_of(sums, truth, 0.3, sign)
    moment = GAUSSIAN_STOPS.log_mixture((steps / math.sqrt(time))[:, None, None] * np.ones((1, 12)), view)
    return float(np.trapezoid(np.exp(moment[:, 0, 0] + norm.logpdf(steps)), steps))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("truth", [0.0, 80.0, 3_000.0])
def test_g_is_a_martingale(sign, truth, monkeypatch):
    """E G = 1 at every information, which is what the bound rests on; without the law's own norm it is not."""
    time = 0.3 / float(StoppedSums(np.zeros((1, 1)), np.ones((1, 1)), **RULE).variance(np.array(truth)))

    assert mean_of_g(sign, truth, time) == pytest.approx(1, rel=1e-6)
    honest = gaussian_mixture
    monkeypatch.setattr(stopped_laws, "gaussian_mixture", lambda b, t, u, w: honest(b, t, u, w) + np.log1p(w * t) / 2)
    assert mean_of_g(sign, truth, time) > 1.001


STEP = 2.0**-8  # of decay a step at the finest rate: four times what rules allow, so that steps are seen


def geometric(rate, steps):
    """Return the chances of two-sided geometric noise, whose rate is a step's."""
    return np.tanh(rate / 2) * np.exp(-rate * np.abs(steps))


def finer_mean(values, steps, coarse, fine):
    """Return, at each step of the coarse noise, the mean of values of the finer noise, by Bayes and `back`."""
    stays = (math.sinh(coarse / 2) / math.sinh(fine / 2)) ** 2
    weights, kernel = values * geometric(fine, steps), geometric(coarse, steps)
    size = 2 * len(steps) - 1
    spread = np.fft.irfft(np.fft.rfft(weights, size) * np.fft.rfft(kernel, size), size)
    middle = len(steps) // 2
    spread = spread[middle : middle + len(steps)]
    return (stays * weights + (1 - stays) * spread) / geometric(coarse, steps)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("truth", [0.0, 130.0, 3_000.0])
def test_g_of_a_chain_is_a_supermartingale(sign, truth):
    """From each rate to a finer one, on whole steps, the mean of G does not rise; it begins at 1."""
    law, rule = LaplaceStops(1.3), {"relative": 0.1, "floor": 3.1, "critical": 3.1}
    blank = StoppedSums(np.zeros((1, 1)), np.ones((1, 1)), **rule, law=law)
    typical = math.sqrt(2 / float(blank.variance(np.array(truth))))
    steps, step = np.arange(-(1 << 14), (1 << 14) + 1), STEP / (1.3 * typical)

    def g(rate, steps=steps):
        """Return G at each step of the noise."""
        sums = StoppedSums(np.zeros((1, 1)), np.full((1, 1), rate), **rule, law=law)
        view = view_of(sums, truth, 0.5, sign, cells=1)
        return np.exp(law.log_mixture((steps * step)[:, None, None], view)[:, 0, 0])

    near = np.abs(steps) < 3_000  # further out the sums are cut off
    for coarse, fine in ((0.6, 0.9), (0.9, 1.0), (1.0, 1.3)):
        rates = coarse * typical, fine * typical
        before, finest = g(rates[0]), g(rates[1])
        there = finer_mean(finest, steps, rates[0] * step, rates[1] * step)
        assert (there[near] <= before[near] * (1 + STEP**2)).all()
        assert (before * geometric(rates[0] * step, steps)).sum() <= 1 + STEP**2
        assert (1.001 * there[near] > before[near]).any() or fine * typical > law.most


def test_parts_of_g_are_their_integrals():
    """The closed forms are the integrals over shifts, and over where finer noise may be."""
    for off in (-2.0, -0.1, 0.0, 0.7, 5.0):
        shifts, _ = quad(
            lambda d, b=off: 0.6 * math.exp(-0.6 * d + 1.3 * (abs(b) - abs(b - d))), 0, 60, points=[max(off, 1e-9)]
        )
        assert math.log(shifts) == pytest.approx(float(exponential_shifts(np.array(off), 1.3, 0.6)), rel=1e-7)
        jumps, _ = quad(
            lambda n, b=off: math.exp(0.8 * min(n, 0) - 1.7 * abs(n) - 1.3 * (abs(b - n) - abs(b))) * 0.85,
            -40, 40, points=[0.0, off], limit=400,
        )  # fmt: skip
        share = 1.3 / 1.7
        stays = share * math.exp(0.8 * min(off, 0) - 0.4 * abs(off))
        whole = (stays + (1 - share**2) * jumps) / (0.5 + 0.85 / 2.5)
        assert math.log(whole) == pytest.approx(float(tilted_end(np.array(off), 1.3, 1.7, 0.8)), rel=1e-7)
    assert tilted_end(np.array(0.0), np.array(2.0), np.array(1.7), np.array(0.8)) == -np.inf


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 3_000), st.floats(-2.5, 2.5), st.floats(0.3, 3)), min_size=1, max_size=6),
    st.sampled_from([1, -1]),
)
def test_no_truth_that_passes_is_left_out(cells, sign):
    """Truths in their ranges, whose G are not too large together, are within the bound of the means."""
    truth, off, pace = (np.array(one) for one in zip(*cells, strict=True))
    blank = StoppedSums(truth[None], np.ones_like(truth)[None], **RULE)
    information = pace / blank.variance(truth)
    means = truth + sign * off / np.sqrt(information)
    sums = StoppedSums(means[None], information[None], **RULE)
    level, beta = math.log(2 / 0.045), 0.05
    low, high = sums.range(0.005 / len(truth))
    spread = 1.25 ** math.ceil(math.log(blank.variance(truth).sum()) / math.log(1.25))
    tilt = np.full((1, 1), math.sqrt(2 * level / spread))
    view = StopView(information[None], tilt, blank.variance(truth)[None], 0.1 / 1.985, sign)
    moments = GAUSSIAN_STOPS.log_mixture(sign * (means - truth)[None], view)
    assume(moments.sum() <= level and (low <= truth).all() and (truth <= high).all())
    lower, upper = sums.ends(beta)

    assert lower[0] - 1e-6 <= truth.sum() <= upper[0] + 1e-6


def test_it_grows_with_the_root_of_the_cells():
    """A hundred cells are told at three tenths of their added half-widths; never narrower than fixed noise is."""
    for cells, most in ((2, 1.2), (12, 0.55), (100, 0.29)):
        sums = StoppedSums(np.full((1, cells), 500.0), np.full((1, cells), (1.985 / 50) ** 2), **RULE)
        lower, upper = sums.ends(0.05)
        added = cells * 50.0
        assert sums.least(0.05)[0] < upper[0] - 500.0 * cells < 500.0 * cells - lower[0] < most * added


def test_sums_do_not_see_one_another():
    """Sums that are computed together are what each of them is alone, whatever the blocks."""
    rng = np.random.default_rng(5)
    means, information = rng.uniform(20, 2_000, (3, 4)), rng.uniform(1e-4, 4e-2, (3, 4))
    together = StoppedSums(means, information, **RULE).ends(0.05)
    alone = [StoppedSums(means[[one]], information[[one]], **RULE).ends(0.05) for one in range(3)]

    np.testing.assert_allclose(together, np.concatenate(alone, axis=1), rtol=1e-12)
