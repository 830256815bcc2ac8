"""Totals of cells that stopped alone: the martingale behind their interval, and that no truth it allows is left out."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from farthing.accuracy import stopped_sums
from farthing.accuracy.stopped_sums import StoppedSums, gaussian_mixture, log_mixture

RULE = {"relative": 0.1, "floor": 10.0, "critical": 1.985}


@pytest.mark.parametrize(("shift", "time", "mean", "spread"), [(3.0, 2.0, 0.5, 0.3), (-1.0, 0.4, 2.0, 5.0)])
def test_a_mixture_is_its_integral(shift, time, mean, spread):
    """The closed form is the integral over theta."""
    law = norm(mean, math.sqrt(spread))
    whole, _ = quad(lambda theta: law.pdf(theta) * math.exp(theta * shift - theta**2 * time / 2), -60, 60, limit=400)

    assert math.log(whole) == pytest.approx(float(gaussian_mixture(shift, time, mean, np.array(spread))), rel=1e-9)


def mean_of_g(sign, truth, time, cells=12):
    """Return E G for one cell measured with a fixed information, over normal noise."""
    steps = np.linspace(-250, 250, 100_001)
    shift = steps * math.sqrt(time)
    sums = StoppedSums(np.zeros((1, cells)), np.full((1, 1), time), **RULE)
    variance = sums.variance(np.array(truth))
    moment = log_mixture(sums, shift[:, None, None], 0.3 / np.sqrt(variance) * variance, variance, sign)
    return float(np.trapezoid(np.exp(moment[:, 0, 0] + norm.logpdf(steps)), steps))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("truth", [0.0, 80.0, 3_000.0])
def test_g_is_a_martingale(sign, truth, monkeypatch):
    """E G = 1 at every information, which is what the bound rests on; without the law's own norm it is not."""
    time = 0.3 / float(StoppedSums(np.zeros((1, 1)), np.ones((1, 1)), **RULE).variance(np.array(truth)))

    assert mean_of_g(sign, truth, time) == pytest.approx(1, rel=1e-6)
    honest = gaussian_mixture
    monkeypatch.setattr(stopped_sums, "gaussian_mixture", lambda b, t, u, w: honest(b, t, u, w) + np.log1p(w * t) / 2)
    assert mean_of_g(sign, truth, time) > 1.001


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
    variance = blank.variance(truth)[None]
    shift = sign * (means - truth)[None] * information
    moments = log_mixture(sums, shift, math.sqrt(2 * level / spread) * variance, variance, sign)
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
