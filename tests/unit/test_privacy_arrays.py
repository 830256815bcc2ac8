"""The conversions for arrays: never below 50 digits, within 1e-9 above, monotone, and equal to the scalar functions."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from work import calls_of

from farthing.errors import InvalidBudget
from farthing.privacy import convert
from farthing.privacy.convert import arrays

DIGITS = 60
MUS = np.concatenate([np.geomspace(1e-7, 1e4, 34), [0.0699999, 0.07, 0.0700001, 1.0, 2.0]])
RHOS = np.geomspace(1e-9, 1e4, 40)
DELTAS = [0.4, 1e-3, 1e-6, 1e-9, 1e-30, 1e-200]
EPSILONS = [0.0, 1e-6, 0.01, 0.7, 3.0, 40.0, 500.0]


def gdp_delta(mu, epsilon):
    """Return delta of mu-GDP at DIGITS digits; digits that cancel are added first."""
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    with mp.workdps(DIGITS + int(2 * abs(mp.log10(mu))) + 40):
        near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        return mp.erfc(near / mp.sqrt(2)) / 2 - mp.exp(epsilon) * mp.erfc(far / mp.sqrt(2)) / 2


def zcdp_epsilon(rho, delta):
    """Return the least epsilon over all orders at DIGITS digits; the best solves rho x^2 + log(1+x) = log(1/delta)."""
    with mp.workdps(DIGITS):
        rho, log_inverse = mp.mpf(rho), -mp.log(mp.mpf(delta))
        x = mp.sqrt(log_inverse / rho)
        for _ in range(200):
            step = (rho * x * x + mp.log1p(x) - log_inverse) / (2 * rho * x + 1 / (1 + x))
            x = max(x - step, x / 8)
        a = 1 + x
        return max(mp.mpf(0), a * rho - mp.log1p(1 / x) + (log_inverse - mp.log1p(x)) / x)


def zcdp_delta(rho, epsilon):
    """Return the least delta over all orders at DIGITS digits, by bisection for the best order."""
    with mp.workdps(DIGITS):
        rho, epsilon = mp.mpf(rho), mp.mpf(epsilon)
        low, high = mp.mpf(10) ** -30, mp.mpf(10) ** 30
        for _ in range(260):
            x = mp.sqrt(low * high)
            low, high = (low, x) if (2 * x + 1) * rho - epsilon - mp.log1p(1 / x) > 0 else (x, high)
        return min(mp.mpf(1), mp.exp(x * ((1 + x) * rho - epsilon - mp.log1p(1 / x)) - mp.log1p(x)))


def never_below(values, truths, floor=0.0):
    """Check each value against its truth: not below, and above by at most a relative 1e-9."""
    with mp.workdps(DIGITS):
        for ours, truth in zip(values, truths, strict=True):
            assert mp.mpf(float(ours)) >= truth
            assert mp.mpf(float(ours)) <= max(truth * (1 + mp.mpf("1e-9")), floor)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gdp_deltas(epsilon):
    """Every delta of the array is safe and close."""
    never_below(convert.gdp_deltas(MUS, epsilon), [gdp_delta(mu, epsilon) for mu in MUS], floor=1e-300)


@pytest.mark.parametrize("delta", DELTAS)
def test_gdp_epsilons(delta):
    """At each epsilon of the array delta is kept, and at one a relative 1e-9 lower it is not."""
    for mu, epsilon in zip(MUS, convert.gdp_epsilons(MUS, delta), strict=True):
        assert gdp_delta(mu, epsilon) <= mp.mpf(delta)
        assert epsilon == 0 or gdp_delta(mu, mp.mpf(epsilon) * (1 - mp.mpf("1e-9"))) > mp.mpf(delta)


@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_epsilons(delta):
    """Every epsilon of the array is safe and close."""
    never_below(convert.zcdp_epsilons(RHOS, delta), [zcdp_epsilon(rho, delta) for rho in RHOS])


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_zcdp_deltas(epsilon):
    """Every delta of the array is safe and close."""
    never_below(convert.zcdp_deltas(RHOS, epsilon), [zcdp_delta(rho, epsilon) for rho in RHOS], floor=1e-300)


def test_the_margin_is_honest():
    """On the arguments that are used, scipy and numpy err by an eighth at most of what the bound allows."""
    at = np.concatenate([np.linspace(-0.05, 28, 90), np.geomspace(1e-6, 1e6, 60)])
    with mp.workdps(60):
        truths = {
            np.exp: lambda x: mp.exp(-x),
            np.log: mp.log,
            np.log1p: mp.log1p,
            arrays.ndtr: lambda x: mp.erfc(-x / mp.sqrt(2)) / 2,
            arrays.erfcx: lambda x: (
                mp.exp(x * x) * mp.erfc(x) if x < 99 else mp.hyperu(0.5, 0.5, x * x) / mp.sqrt(mp.pi)
            ),
        }
        for function, truth in truths.items():
            given = at[at > 0] if function in {np.log, np.log1p} else at[at < 700]
            for ours, x in zip(function(-given if function is np.exp else given), given, strict=True):
                exactly = truth(mp.mpf(float(x)))
                assert abs(mp.mpf(float(ours)) - exactly) <= arrays.ULPS / 8 * abs(exactly), function


def test_where_float_is_not_sure_balls_decide(monkeypatch):
    """With no trust in float64 at all every element is settled by the scalar function, to the same figures."""
    fast = [convert.gdp_epsilons(MUS, 1e-6), convert.zcdp_epsilons(RHOS, 1e-6), convert.gdp_deltas(MUS, 1.0)]
    monkeypatch.setattr(arrays, "MARGIN", -1.0)
    slow = [convert.gdp_epsilons(MUS, 1e-6), convert.zcdp_epsilons(RHOS, 1e-6), convert.gdp_deltas(MUS, 1.0)]

    for ours, exact in zip(fast, slow, strict=True):
        assert ours == pytest.approx(exact, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(
    ("function", "second", "direction"),
    [
        (convert.gdp_epsilons, 1e-6, 1),
        (convert.gdp_deltas, 0.5, 1),
        (convert.zcdp_epsilons, 1e-6, 1),
        (convert.zcdp_deltas, 0.5, 1),
    ],
)
def test_monotone_and_in_vectors(function, second, direction):
    """100,000 neighbouring values rise without one step back, and no function is called for each."""
    losses = 1 + np.arange(100_000) * 2.0**-48
    assert np.all(direction * np.diff(function(losses, second)) >= 0)
    spread = np.geomspace(1e-3, 30, 100_000)
    made = []
    assert calls_of(lambda: made.append(function(spread, second))) < 20_000  # bench/speed/conversions.py has the speed
    (values,) = made
    assert np.all(np.diff(values) >= 0)


def test_deltas_fall_with_epsilon():
    """Along a curve delta never rises."""
    epsilons = np.linspace(0, 30, 3001)

    assert np.all(np.diff(convert.gdp_deltas(1.0, epsilons)) <= 0)
    assert np.all(np.diff(convert.zcdp_deltas(0.5, epsilons)) <= 0)


def test_the_ends_of_the_floats():
    """From the least float to 2^40, at any delta, nothing overflows, and each array agrees with its scalar function."""
    ends = np.array([0, 5e-324, 1e-310, 1e-200, 1e-30, 1.0, 1e6, 2.0**40])
    for delta in (1e-290, 1e-6, 0.999999):
        exactly = [convert.zcdp_epsilon(rho, delta) for rho in ends.tolist()]
        assert convert.zcdp_epsilons(ends, delta) == pytest.approx(exactly, rel=2e-9, abs=1e-300)
        exactly = [convert.gdp_epsilon(Fraction(mu) ** 2, delta) for mu in ends.tolist()]
        assert convert.gdp_epsilons(ends, delta) == pytest.approx(exactly, rel=2e-9, abs=1e-300)
    for epsilon in (0.0, 5e-324, 1e-6, 1e6, 2.0**40):
        exactly = [convert.gdp_delta(Fraction(mu) ** 2, epsilon) for mu in ends.tolist()]
        assert convert.gdp_deltas(ends, epsilon) == pytest.approx(exactly, rel=2e-9, abs=1e-300)
        exactly = [convert.zcdp_delta(rho, epsilon) for rho in ends.tolist()]
        assert convert.zcdp_deltas(ends, epsilon) == pytest.approx(exactly, rel=2e-9, abs=1e-300)


def test_shapes_and_zero():
    """Arrays broadcast, keep their shape, and a loss of zero costs nothing."""
    assert (2, 3) == convert.gdp_deltas([[1.0], [2.0]], [0.0, 1.0, 2.0]).shape
    assert (0,) == convert.zcdp_epsilons(np.array([]), 1e-6).shape
    assert [0.0, 0.0] == [convert.gdp_epsilons(0, 1e-6), convert.zcdp_epsilons(0, 1e-6)]
    assert [0.0, 0.0] == [convert.gdp_deltas(0, 1), convert.zcdp_deltas(0, 1)]
    assert convert.gdp_epsilons([0.25], Fraction(1, 3)) == pytest.approx([0.0])


@pytest.mark.parametrize("bad", [[-1.0], [np.nan], [np.inf], [1e308], ["1"], [None], [True], [1j]])
def test_no_losses(bad):
    """Negative, NaN, infinite, overflowing and non-numeric elements are refused by name."""
    for function in (convert.gdp_epsilons, convert.zcdp_epsilons):
        with pytest.raises(InvalidBudget, match="rule:"):
            function(bad, 1e-6)
    for function in (convert.gdp_deltas, convert.zcdp_deltas):
        with pytest.raises(InvalidBudget, match="rule:"):
            function([1.0], bad)


@pytest.mark.parametrize("delta", [0, 1, -1e-6, np.nan, 2, Fraction(1, 10**400)])
def test_no_delta(delta):
    """A delta of 0 with a Gaussian ask, 1, negative, NaN, and below the least float are refused."""
    with pytest.raises(InvalidBudget):
        convert.gdp_epsilons([1.0], delta)
    with pytest.raises(InvalidBudget):
        convert.zcdp_epsilons([1.0], delta)
