"""What any rule pays in the mean over truths: beside direct minima, and rules that stop where they like."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

from farthing.errors import InvalidOption
from farthing.limits import answers_limit, sizes_limit
from farthing.normal import ndtri

BETA = 0.05
Z = -ndtri(BETA / 2)


def test_the_limit_of_sizes_is_a_least_value():
    """Of price and misses, found once more by a search without a mesh."""
    relative, worth = 0.5, Z / (math.exp(-Z * Z / 2) / math.sqrt(2 * math.pi))

    def charged(at):
        m, middle = at
        hazard = math.exp(-m * m / 2 - log_ndtr(m)) / math.sqrt(2 * math.pi)
        served = (ndtr(middle * (1 + relative) - m) - ndtr(middle * (1 - relative) - m)) / ndtr(m)
        return relative**2 * (1 + m * m + m * hazard) + worth * (1 - served)

    least = min(minimize(charged, [m, m + 0.3], method="Nelder-Mead").fun for m in (1.0, 3.6, 6.0))

    assert sizes_limit(relative, beta=BETA).mu_squared == pytest.approx((least - worth * BETA) / Z**2, rel=3e-3)
    assert sizes_limit(relative, beta=BETA).mu_squared < (least - worth * BETA) / Z**2


def test_the_limit_of_sizes_under_a_pure_budget_is_a_least_value():
    """Without a mesh too: of two-sided exponential laws, integrated by numbers."""
    relative = 0.3

    def charged(at):
        top, middle, tilt = at[0], at[1], 0.98 / (1 + math.exp(-at[2]))
        if min(top, middle) <= 0:
            return 1e9
        low, high = middle * (1 - relative), middle * (1 + relative)

        def density(k):
            return math.exp((1 - tilt) * (k - top) if k < top else -(1 + tilt) * (k - top))

        ends = sorted({0.0, top, low, high, top + 60})
        whole, first, served = 0.0, 0.0, 0.0
        for left, right in pairwise(ends):
            mass = quad(density, left, right)[0]
            whole, served = whole + mass, served + mass * (low <= (left + right) / 2 <= high)
            first += quad(lambda k: k * density(k), left, right)[0]
        return relative * first / whole + (1 - served / whole) / BETA

    starts = [(10.0, 10.5, -4.0), (8.0, 9.0, 0.0)]
    least = min(minimize(charged, at, method="Nelder-Mead", options={"maxfev": 250}).fun for at in starts)
    limit = sizes_limit(relative, beta=BETA).epsilon * math.log(1 / BETA)

    assert limit == pytest.approx(least - 1, rel=5e-3)
    assert limit < least - 1


def stopped(signal, relative, runs, rng):
    """Return the price over that of one who knows, and misses, of a rule that stops where its signal is so large."""
    truth = rng.exponential(size=runs)
    information = np.full(runs, 4.0)
    walk = information * truth + np.sqrt(information) * rng.standard_normal(runs)
    active = np.arange(runs)
    while active.size:
        more = information[active] * 0.05
        walk[active] += more * truth[active] + np.sqrt(more) * rng.standard_normal(active.size)
        information[active] += more
        active = active[(walk[active] < signal * np.sqrt(information[active])) & (information[active] < 1e7)]
    return (relative * truth) ** 2 * information / Z**2, np.abs(walk / information - truth) > relative * truth


def test_no_rule_pays_less_and_one_who_knows_pays_that():
    """A rule that stops early misses more: with misses at their worth it stays above the limit, however early.

    Whoever knows the size pays a hundredth more than the limit at most: so nearly nothing is given away.
    """
    relative, rng = 0.3, np.random.default_rng(5)
    worth = 1 / (math.exp(-Z * Z / 2) / math.sqrt(2 * math.pi)) / Z
    limit = sizes_limit(relative, beta=BETA).mu_squared

    charged = []
    for signal in (5.0, 6.8, 8.5):
        paid, missed = stopped(signal, relative, 10_000, rng)
        charged.append(float(np.mean(paid + worth * (missed - BETA))))

    assert 0.99 < limit < 1 < min(charged) < 1.6


def test_answers_cost_what_the_best_matrix_mechanism_pays():
    """One count; two equal counts; and nine deciles beside a Gaussian mechanism of each by itself."""
    q = np.arange(1, 10)[:, None] / 10
    moves = (np.arange(10) <= np.arange(9)[:, None]) - q
    limit = answers_limit(moves, np.ones(9), beta=BETA)

    assert answers_limit([[1.0]], [10.0], beta=BETA) == pytest.approx((Z / 10) ** 2)
    assert answers_limit(np.eye(2), [10.0, 10.0], beta=BETA) == pytest.approx((Z / 10) ** 2, rel=1e-5)
    assert answers_limit([[1.0], [1.0]], [5.0, 10.0], beta=BETA) == pytest.approx((Z / 5) ** 2, rel=1e-5)
    assert Z**2 * 0.81 < limit < Z**2 * (moves**2).sum(axis=0).max()


def test_wider_answers_in_the_mean_over_truths_are_refuted():
    """The best fixed rule that pays a tenth less misses more often than it may, in the mean over truths."""
    rng, h = np.random.default_rng(6), 10.0
    for part, right in ((1.0, True), (0.9, False)):
        information = answers_limit([[1.0]], [h], beta=BETA) * part
        noise = rng.standard_normal(400_000) / math.sqrt(information)
        assert (np.mean(np.abs(noise) > h) < BETA * 1.05) == right


@pytest.mark.parametrize(("relative", "beta"), [(0.001, 0.05), (0.95, 0.05), (0.1, 0.5), (0.1, 1e-9), (math.nan, 0.1)])
def test_what_is_no_relative_target_is_refused(relative, beta):
    """Targets that nobody asks for, and chances of a coin."""
    with pytest.raises(InvalidOption, match="mean of sizes"):
        sizes_limit(relative, beta=beta)


@pytest.mark.parametrize("widths", [[0.0], [1.0, 2.0], [math.inf], [math.nan], [[1.0]]])
def test_what_are_no_half_widths_is_refused(widths):
    """None, too many, without an end."""
    with pytest.raises(InvalidOption, match="half-width"):
        answers_limit([[1.0]], widths, beta=BETA)
