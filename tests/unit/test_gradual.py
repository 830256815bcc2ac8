"""The chain of two-sided geometric noise: its kernel is Bayes' rule, its draws are exact, and it refuses the rest."""

import math

import numpy as np
import pytest

from farthing.errors import NoiseError
from farthing.noise.bits import seeded
from farthing.noise.gradual import SLACK, Added, Finer, coarser_geometric, finer_geometric

RATES = [(0.3, 0.9), (0.05, 0.06), (1.0, 5.0), (0.01, 2.0), (1e-3, 1.001e-3), (2.0, 2.0 + 2**-30)]


def law(rate, k):
    """Return P[k] of the two-sided geometric law."""
    return np.tanh(rate / 2) * np.exp(-rate * np.abs(k))


def keep(old, new):
    """Return the probability that the coarse noise is the fine noise."""
    return (math.sinh(old / 2) / math.sinh(new / 2)) ** 2


def bayes(old, new, m, j):
    """Return P[N = j | X = m] by Bayes' rule from the two steps of the chain."""
    w = keep(old, new)
    moved = (1 - w) * math.tanh(new / 2) * np.exp(-new * np.abs(j) - old * (np.abs(m - j) - m))
    return moved + (j == m) * w * math.tanh(new / 2) / math.tanh(old / 2) * math.exp(-(new - old) * m)


def tails(old, new, m, j):
    """Return P[N = j | X = m] from the three tails of the module."""
    q, c = math.exp(-(new - old)), math.exp(-(new + old))
    whole = 1 - c * q
    beyond = np.maximum(j - m, 0.0)
    stay = q**m * ((1 - c) ** 2 + c * (q - c)) / whole
    inside = (1 - c) * -math.expm1(-(new - old)) * np.exp(-(new - old) * np.clip(j, 0, m)) / whole
    outside = -math.expm1(-(new - old)) * (1 - c) / whole
    out = np.where(j < 0, outside * np.exp(-(new + old) * np.abs(j)), inside)
    out = np.where(j > m, outside * q**m * np.exp(-(new + old) * beyond), out)
    return np.where(j == m, stay, out)


@pytest.mark.parametrize(("old", "new"), RATES)
@pytest.mark.parametrize("m", [0, 1, 7, 200])
def test_the_tails_are_bayes_rule(old, new, m):
    """The three tails are the conditional law to the last digits, and sum to one."""
    j = np.arange(-200 - int(40 / new), 400 + int(40 / new))
    gap = np.abs(tails(old, new, m, j) - bayes(old, new, m, j))

    assert 4e-16 > gap[np.arange(len(j)) != np.flatnonzero(j == m)].max()
    assert 1e-13 > gap.max()  # where it stays: the test's own w takes a difference of two numbers next to each other
    assert 1 == pytest.approx(bayes(old, new, m, j).sum(), abs=1e-12)


def test_a_level_in_between_changes_nothing():
    """Two steps of the chain are one step, both ways."""
    j = np.arange(-300, 301)
    through = sum(tails(0.2, 0.5, 5, np.array([x]))[0] * signed(0.5, 0.9, x, j) for x in range(-200, 201))

    assert 1e-14 > np.abs(through - tails(0.2, 0.9, 5, j)).max()
    assert keep(0.2, 0.9) == pytest.approx(keep(0.2, 0.5) * keep(0.5, 0.9))


def signed(old, new, x, j):
    """Return P[N = j | X = x] for x of either sign."""
    return tails(old, new, abs(x), j if x >= 0 else -j)


def test_the_mean_of_the_noise_is_what_the_chain_says():
    """E[N X] is the variance of N: the coarse noise is the fine noise and something independent."""
    old, new, reach = 0.4, 0.9, 200
    x = np.arange(-reach, reach + 1)
    product = sum(law(old, k) * k * (x * signed(old, new, k, x)).sum() for k in range(-reach, reach + 1))

    assert (law(new, x) * x**2).sum() == pytest.approx(product, rel=1e-9)


@pytest.mark.parametrize(("old", "new"), [(0.3, 0.9), (1.0, 5.0), (1e-6, 2e-6), (0.5, 0.5 + 2**-20), (3.0, 700.0)])
@pytest.mark.parametrize("m", [0, 3, 10**6])
@pytest.mark.parametrize("kind", [Finer, Added])
def test_the_fast_path_is_near_the_balls(old, new, m, kind):
    """In float64 the variable is within 2^-44 of ball arithmetic, in the slack's own units; the slack allows 2^-33."""
    arb, rng = pytest.importorskip("flint").arb, np.random.default_rng(5)
    beyond = np.concatenate([0.5 * rng.random(300), 2.0 ** -rng.uniform(1, 21.9, 300)])
    side = np.where(rng.random(600) < 0.5, -1.0, 1.0)
    chain = Finer(old, new, np.full(600, m)) if kind is Finer else Added(old, new)
    values = beyond.copy()
    chain.floats(values, side, slice(None))
    exact = [float(chain.ball(arb(u), upper=s > 0, index=i)) for i, (u, s) in enumerate(zip(beyond, side, strict=True))]
    unit = chain.slack(slice(None)) / SLACK

    assert 2.0**-44 > (np.abs(values - exact) / (unit + np.abs(exact))).max()


class Words:
    """Bits that say what they are told to."""

    def __init__(self, first, after=0):
        self.left, self.after = list(first), after

    def words(self, count, /):
        """Return the next words."""
        out = [self.left.pop(0) if self.left else self.after for _ in range(count)]
        return np.array(out, np.uint64)


def chance(old, new, m, j):
    """Return P[N >= j] in ball arithmetic."""
    from flint import arb

    q, c = (arb(old) - arb(new)).exp(), (-(arb(old) + arb(new))).exp()
    if j <= 0:
        return 1 - c ** (1 - j) * (1 - q) / (1 - c * q)
    return (q**j * (1 - c) if j <= m else q**m * c ** (j - m) * (1 - q)) / (1 - c * q)


@pytest.mark.parametrize("j", [-2, 0, 1, 4, 5, 6, 9])
def test_a_boundary_is_settled_by_further_bits(j):
    """At the very word in which a tail falls, the same bits are read on, and decide on either side of it."""
    from flint import ctx

    with ctx.workprec(400):
        above = chance(0.3, 0.35, 5, j)
        upper = above < 0.5
        place = int(((above if upper else 1 - above) * 2**64).floor().unique_fmpz())
    word = place if upper else 2**64 - 1 - place
    near, far = (finer_geometric(np.array([5]), 0.3, 0.35, Words([word], more))[0] for more in (0, 2**64 - 1))

    assert [j, j - 1] == ([near, far] if upper else [far, near])


@pytest.mark.parametrize("direction", [1, -1])
def test_the_noise_is_told_in_the_direction_of_what_was_shown(direction):
    """The same bits on mirrored noise give mirrored noise."""
    shown = np.arange(200)
    drawn = finer_geometric(direction * shown, 0.1, 0.2, seeded(3))

    assert (direction * finer_geometric(shown, 0.1, 0.2, seeded(3)) == drawn).all()


def test_a_rate_for_each_sample():
    """Each sample has its own rates; where nothing was shown the noise is fresh."""
    old, new = np.array([0.0, 0.1, 0.2, 0.0]), np.array([50.0, 60.0, 0.3, 51.0])
    drawn = finer_geometric(np.array([99, 5, 5, -99]), old, new, seeded(4))

    assert [0, 0, 0] == drawn[[0, 1, 3]].tolist()
    assert (0,) == finer_geometric(np.empty(0, np.int64), 0.0, 1.0).shape


def test_nearly_equal_rates_are_drawn_in_balls():
    """Rates that differ by less than float64 can settle give what was shown, or a step beside it, exactly."""
    drawn = finer_geometric(np.full(200, 9), 1.0, 1.0 + 2**-45, seeded(6))

    assert (drawn == 9).all()


@pytest.mark.parametrize(
    ("shown", "old", "new"),
    [
        ([1], 0.5, 0.5),
        ([1], 0.6, 0.5),
        ([1], -0.1, 0.5),
        ([1], math.nan, 0.5),
        ([1], 0.1, math.inf),
        ([1, 2], [0.1, 0.1, 0.1], 0.5),
        ([[1]], 0.1, 0.5),
        ([1 << 62], 0.1, 0.5),
    ],
)
def test_what_is_no_step_of_the_chain_is_refused(shown, old, new):
    """Rates rise strictly and are finite, shapes fit, and noise fits in 64 bits."""
    with pytest.raises(NoiseError, match="rule"):
        finer_geometric(np.array(shown), old, new)


def test_coarser_noise_needs_a_lower_rate():
    """The way back refuses rates that do not fall."""
    with pytest.raises(NoiseError, match="rule"):
        coarser_geometric(np.array([1]), new=0.5, old=0.5)
