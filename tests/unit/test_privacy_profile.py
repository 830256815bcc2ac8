"""Laws of the privacy loss: they sum to one, weigh as they must, and their hockey stick is the curve of the loss."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from farthing.errors import InvalidBudget
from farthing.privacy import BoundedRange, Gdp, Pure, Zcdp, convert
from farthing.privacy.profile import (
    bounded_range,
    gaussian,
    name_and_shame,
    plot_points,
    randomised_response,
    two_sided_geometric,
)

LAWS = {
    "gaussian": gaussian(0.7),
    "geometric": two_sided_geometric(1.5, 6),
    "response": randomised_response(1),
    "range": bounded_range(1.5, -0.4),
    "shame": name_and_shame(1e-3),
}
DISCRETE = [name for name in LAWS if name != "gaussian"]


@pytest.mark.parametrize("name", DISCRETE)
def test_masses(name):
    """Masses sum to one, and E[exp(-Z)] is the other data set's mass where the first has any."""
    losses, masses = LAWS[name].pmf()

    assert masses.sum() == pytest.approx(1, rel=1e-15)
    finite = np.isfinite(losses)
    assert np.sum(masses[finite] * np.exp(-losses[finite])) == pytest.approx(1 - masses[~finite].sum(), rel=1e-14)
    assert np.all(np.diff(losses) > 0)


@pytest.mark.parametrize("name", LAWS)
def test_tail_cdf_and_hockey_stick_agree(name):
    """The tail is one less cdf, and delta at e the integral of exp(e - z) P[Z > z] over z > e."""
    law = LAWS[name]
    for epsilon in (0.0, 0.4, 1.2):
        assert law.tail(epsilon) == pytest.approx(1 - float(law.cdf(epsilon)), abs=1e-12)
        assert law.hockey_stick(epsilon) <= law.tail(epsilon) + 1e-15
        if name != "gaussian":
            z = np.linspace(epsilon, epsilon + 30, 400_001)
            tails = 1 - law.cdf(z)
            integral = np.sum((np.exp(epsilon - z) * tails)[:-1]) * (z[1] - z[0])
            assert law.hockey_stick(epsilon) == pytest.approx(integral, abs=2e-4)


def test_the_gaussian_law():
    """Z is N(mu^2/2, mu^2); its hockey stick is the exact curve; the tail at epsilon is larger than delta."""
    law = gaussian(0.7)

    assert law.mean == pytest.approx(0.245)
    assert float(law.cdf(0.245)) == pytest.approx(0.5)
    grid = np.linspace(-6, 6, 4001)
    assert np.sum(law.pdf(grid)) * (grid[1] - grid[0]) == pytest.approx(1)
    assert law.hockey_stick(1) == Gdp(0.7).delta(1)
    assert law.tail(1) > 2 * law.hockey_stick(1)


def test_the_geometric_law_is_the_sum_over_its_outputs():
    """Enumerating the outputs of the noise and of its shifted self gives the same delta, to 40 digits."""
    with mp.workdps(40):
        for epsilon, steps in ((1.5, 6), (1, 1), (0.3, 2)):
            rate = mp.mpf(epsilon) / steps
            q = mp.exp(-rate)

            def mass(j, q=q):
                return (1 - q) / (1 + q) * q ** abs(j)

            for target in (0.0, 0.1, 0.29):
                lift = mp.exp(mp.mpf(target))
                spread = int(110 / rate)
                truth = mp.fsum(max(mp.mpf(0), mass(j) - lift * mass(j - steps)) for j in range(-spread, spread))
                ours = two_sided_geometric(epsilon, steps).hockey_stick(target)
                assert ours == pytest.approx(float(truth), rel=1e-12)
                assert ours >= truth * (1 - mp.mpf("1e-30"))


def test_worst_cases_meet_their_currency():
    """Randomised response meets the pure curve, the best interval the bounded-range curve, the mean rho."""
    for epsilon in (0.0, 0.2, 0.8):
        assert randomised_response(1).hockey_stick(epsilon) == pytest.approx(Pure(1).delta(epsilon), rel=1e-14)
        best = bounded_range(1, (epsilon + 1) / 2 - 1).hockey_stick(epsilon)
        assert best == pytest.approx(BoundedRange(1).delta(epsilon), rel=1e-12)
        assert bounded_range(1).hockey_stick(epsilon) <= BoundedRange(1).delta(epsilon)
    assert randomised_response(1).mean == pytest.approx(Pure(1).to(Zcdp).rho, rel=1e-12)
    assert two_sided_geometric(1, 5).mean == pytest.approx(convert.geometric_zcdp(1, 5), rel=1e-12)
    assert gaussian(0.5).mean == pytest.approx(Gdp(0.5).to(Zcdp).rho)


def test_two_mechanisms_with_the_same_delta():
    """At one (epsilon, delta) name-and-shame and Gaussian noise look alike; a little further on they do not."""
    shame = name_and_shame(DELTA := 1e-6)
    noise = Gdp.from_epsilon(1, delta=DELTA)

    assert shame.hockey_stick(1) == pytest.approx(noise.delta(1), rel=1e-6)
    assert shame.hockey_stick(3) == DELTA
    assert noise.delta(3) < 1e-30
    assert math.inf == shame.mean
    assert 0.0 == randomised_response(1).tail(1)


def test_points_of_a_picture():
    """plot_points gives one number a loss; delta begins at zero."""
    points = plot_points(gaussian(1), [-1.0, 0.0, 1.0])

    assert math.isnan(points["delta"][0])
    assert points["delta"][1] == convert.gdp_delta(1, 0)
    assert np.all(np.diff(points["tail"]) < 0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: gaussian(0), lambda: gaussian(-1), lambda: gaussian(math.nan), lambda: randomised_response(0),
        lambda: two_sided_geometric(1, 0), lambda: two_sided_geometric(1, 1.5),
        lambda: two_sided_geometric(1, steps=True),
        lambda: two_sided_geometric(1, 10**9), lambda: bounded_range(0), lambda: bounded_range(1, 0.5),
        lambda: bounded_range(1, -2), lambda: name_and_shame(0), lambda: name_and_shame(1), lambda: gaussian(1e308),
        lambda: gaussian(1).hockey_stick(-1), lambda: name_and_shame(0.5).hockey_stick(math.nan),
    ],
)  # fmt: skip
def test_no_law(ask):
    """Parameters without a law are refused."""
    with pytest.raises(InvalidBudget, match="rule:"):
        ask()


def test_ends_of_the_interval():
    """An interval that begins or ends at zero is no loss at all: its other end has no mass."""
    assert [1.0, 0.0] == bounded_range(1, 0).pmf()[1].tolist()
    assert bounded_range(1, -1).pmf()[1].tolist() == pytest.approx([0.0, 1.0], abs=1e-50)
    assert Fraction(0) == bounded_range(1, 0).infinite
