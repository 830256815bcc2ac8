"""The Laplace chain: only the last level is paid, in a pure ledger, for one line of looks."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from farthing.errors import InvalidBudget, NoiseError
from farthing.mechanisms import LaplaceChain, Shown
from farthing.mechanisms.laplace import MOST_FARTHINGS, price_of_cap, rates_of
from farthing.noise.bits import seeded
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.rounding import FARTHING

ONE = 1 << 40  # epsilon = 1 in farthings
REACH = 60
K = np.arange(-REACH, REACH + 1)


def law(rate, k):
    """Return P[k] of the two-sided geometric law."""
    return np.tanh(rate / 2) * np.exp(-rate * np.abs(k))


def forth(old, new, x):
    """Return P[shown next = z | shown = y], rows y, columns z, for truth x, by Bayes' rule."""
    w = (math.sinh(old / 2) / math.sinh(new / 2)) ** 2
    y, z = np.meshgrid(K, K, indexing="ij")
    return law(new, z - x) * (w * (y == z) + (1 - w) * law(old, y - z)) / law(old, y - x)


def outcomes(x):
    """Return the probabilities of all paths of a run with an adaptive stop and levels, and their last levels.

    Levels 0.4, then 0.9 or 0.6 by what was shown, then 1.5; a first look at 0 or less ends it, or a repeated value.
    """
    first = law(0.4, K - x)
    chances, levels = [first[K <= 0]], [np.full((K <= 0).sum(), 0.4)]
    for level, here in ((0.6, (K > 0) & (K <= 2)), (0.9, K > 2)):
        second = (first[:, None] * forth(0.4, level, x))[here]
        again = K[here][:, None] == K[None]
        third = second[~again][:, None] * forth(level, 1.5, x)[np.nonzero(~again)[1]]
        chances += [second[again], third.ravel()]
        levels += [np.full(again.sum(), level), np.full(third.size, 1.5)]
    return np.concatenate(chances), np.concatenate(levels)


def test_an_adaptive_run_costs_its_last_level():
    """Path by path the loss is within the last level, and reaches it at every level: a lower price would be wrong."""
    (here, levels), (there, _) = outcomes(0), outcomes(1)
    losses = np.abs(np.log(here / there))

    assert 1 == pytest.approx(here.sum(), abs=1e-9)
    assert (losses <= levels + 1e-9).all()
    assert {0.4, 0.6, 0.9, 1.5} == set(levels[losses > levels - 1e-9])


def test_in_zcdp_the_last_level_underpays():
    """Levels 0.5 and 1.5, stopped at 0 or less: the expected loss passes the zCDP price of the last level."""
    coarse = {x: law(0.5, K - x) for x in (0, 1)}
    joint = {x: coarse[x][:, None] * forth(0.5, 1.5, x) for x in (0, 1)}
    early = (coarse[0] * np.log(coarse[0] / coarse[1]))[K <= 0].sum()
    late = (joint[0] * np.log(joint[0] / joint[1]))[K > 0].sum()
    price = {level: level * math.tanh(level / 2) for level in (0.5, 1.5)}
    share = coarse[0][K <= 0].sum()
    booked = share * price[0.5] + (1 - share) * price[1.5]

    assert 0.4984 == pytest.approx(early + late, abs=1e-4)
    assert 0.4359 == pytest.approx(booked, abs=1e-4)
    assert 1.0152 == pytest.approx(price[1.5] + early + late - booked, abs=1e-4)
    assert price_of_cap(Pure(1.5), Zcdp).rho == pytest.approx(price[1.5], rel=1e-6)
    assert early + late < price[1.5]


def test_two_lines_of_looks_cost_more_than_the_increase():
    """Two looks at 1 from the same look at 0.5 can lose 2.5, which paying the increase would not cover."""
    last = {x: forth(0.5, 1.0, x) for x in (0, 1)}
    loss = {
        (y, z, v): math.log(law(0.5, K[y]) / law(0.5, K[y] - 1))
        + math.log(last[0][y, z] / last[1][y, z])
        + math.log(last[0][y, v] / last[1][y, v])
        for y, z, v in itertools.product(range(REACH - 3, REACH + 4), repeat=3)
    }

    assert 2.5 == pytest.approx(max(loss.values()))
    assert 0.5 + 2 * (1.0 - 0.5) < max(loss.values())


@pytest.mark.parametrize("sensitivity", [1, 3, 1000])
def test_rates_cost_at_most_their_farthings(sensitivity):
    """Exactly: each level's rate times the sensitivity is at most its epsilon, and rises with it."""
    levels = np.array([1, 2, 12_345, ONE // 3, ONE // 3 + 1, ONE, 7 * ONE, MOST_FARTHINGS - 1, MOST_FARTHINGS])
    rates = rates_of(levels, sensitivity)

    for level, rate in zip(levels.tolist(), rates.tolist(), strict=True):
        assert level * FARTHING * (1 - Fraction(1, 2**50)) < Fraction(rate) * sensitivity <= level * FARTHING
    assert (np.diff(rates) > 0).all()
    assert [0.0] == rates_of(np.array([0]), sensitivity).tolist()


def test_groups_stop_alone():
    """Only the groups asked for are looked at, each from its own level; the worst unit pays the largest levels."""
    chain = LaplaceChain(np.array([100, 200, 300]), max_groups=2, bits=seeded(1))
    state = chain.measure(Shown.nothing(3), np.array([40 * ONE, 30 * ONE, 20 * ONE]))
    part = chain.measure(state.take(np.array([2])), np.array([50 * ONE]), np.array([2]))

    assert [100, 200, 300] == state.value.tolist()
    assert ([300], [50 * ONE]) == (part.value.tolist(), part.farthings.tolist())
    assert Pure(70) == chain.loss(state)


def test_values_are_told_in_answer_units():
    """A step is a power of two of an answer."""
    state = LaplaceChain(np.array([100]), step_log2=-3).measure(Shown.nothing(1), np.array([500 * ONE]))

    assert [12.5] == state.values.tolist()
    assert -3 == state.step_log2


def test_a_path_rises_to_its_last_level():
    """A path drawn from its fine end has the levels asked for, coarse to fine, for every group."""
    levels = np.array([ONE // 10, ONE, 60 * ONE])
    path = LaplaceChain(np.array([5, 6]), bits=seeded(2)).path(levels)

    assert levels.tolist() == [look.farthings[0] for look in path]
    assert [5, 6] == path[-1].value.tolist()


def test_another_ledger_charges_the_cap():
    """In zCDP and GDP a chain costs what one release at its cap would."""
    assert Pure(0.5).to(Zcdp) == price_of_cap(Pure(0.5), Zcdp)
    assert Pure(0.5).to(Gdp) == price_of_cap(Pure(0.5), Gdp)


@pytest.mark.parametrize("farthings", [[0], [-1], [ONE], [ONE - 1], [MOST_FARTHINGS + 1], [2 * ONE, 2 * ONE]])
def test_levels_that_do_not_rise_are_refused(farthings):
    """A look is finer than the last, and within what can be drawn."""
    chain = LaplaceChain(np.array([5]))
    with pytest.raises(InvalidBudget, match="above its last one"):
        chain.measure(Shown(np.array([4]), np.array([ONE])), np.array(farthings))


def test_states_of_other_steps_and_huge_answers_are_refused():
    """A chain is carried on in its own steps, and noise must fit beside the answer."""
    with pytest.raises(NoiseError, match="other steps"):
        LaplaceChain(np.array([5])).measure(Shown(np.array([4]), np.array([1]), -2), np.array([ONE]))
    with pytest.raises(NoiseError, match="too large"):
        LaplaceChain(np.array([1 << 61])).measure(Shown.nothing(1), np.array([ONE]))


def test_the_truth_does_not_show():
    """No repr of what leaves tells the truth."""
    state = LaplaceChain(np.array([123_456_789])).measure(Shown.nothing(1), np.array([ONE // 1000]))

    assert "123456789" not in repr(state)
