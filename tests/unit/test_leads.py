"""How far ahead the chosen options were: shapes, what is settled, refusals, and draws deep in the tail."""

import math
from fractions import Fraction

import numpy as np
import pytest

from farthing.errors import InvalidOption, NoiseError
from farthing.mechanisms import Exponential, NoisyMax, PermuteAndFlip, TopK
from farthing.mechanisms.leads import Led, choose_with_leads, reach, tells_leads
from farthing.noise.bits import seeded
from farthing.noise.races import Field, Noisy, leads

SCORES = [0, 5_000, 9_000, 5_001, 100]


@pytest.mark.parametrize("noise", ["exponential", "gaussian"])
@pytest.mark.parametrize("k", [1, 2, 4, 5])
def test_the_choice_is_that_of_the_selection(noise, k):
    """The same options as from the same bits without leads; leads near the true differences, one fewer of all."""
    mechanism = TopK(k, 1, noise)
    led = choose_with_leads(mechanism, SCORES, bits=seeded(7))
    plain = mechanism.choose(SCORES, bits=seeded(7)).tolist()
    apart = -np.diff(np.array(SCORES)[led.places])

    assert {2} == {plain[0], led.places[0]}
    assert sorted(led.places.tolist()) == sorted(plain) or k == 2  # a tie, but for one unit
    assert min(k, 4) == len(led.ahead)
    assert np.abs(led.ahead[: k - 1] - apart).max(initial=0) < 60
    assert 0 < led.slack < 30
    assert k == len(led.settled)


def test_a_place_is_settled_by_the_leads_above_and_below_it():
    """A lead settles the cut below its winner; the last of all options needs the one above it only."""
    led = Led(np.array([4, 1, 0, 2]), np.array([9.0, 0.5, 3.0, 8.0]), 2.0)
    every = Led(np.array([1, 0, 2]), np.array([9.0, 3.0]), 2.0)

    assert [True, False, False, True] == led.settled.tolist()
    assert [True, True, True] == every.settled.tolist()


def test_gumbel_noise_tells_no_leads():
    """The exponential mechanism and Gumbel races are refused by name, and Laplace races."""
    for mechanism in (Exponential(1), TopK(2, 1), NoisyMax(1, "gumbel"), NoisyMax(1)):
        assert not tells_leads(mechanism)
        with pytest.raises(InvalidOption, match="Gumbel"):
            choose_with_leads(mechanism, SCORES)
    assert all(tells_leads(each) for each in (PermuteAndFlip(1), NoisyMax(1, "exponential"), TopK(3, 1, "gaussian")))


@pytest.mark.parametrize("scores", [[1], [[1, 2], [3, 4]], [1.0, float("nan")]])
def test_scores_without_a_lead_are_refused(scores):
    """One option is ahead of nothing."""
    with pytest.raises(NoiseError):
        choose_with_leads(PermuteAndFlip(1), scores)


def test_the_reach_grows_with_the_leads_and_the_confidence():
    """All leads that are told share the chance of a wrong order."""
    for noise in ("exponential", "gaussian"):
        assert reach(noise, 10, 0.9) < reach(noise, 10, 0.99) < reach(noise, 1000, 0.99)
    assert reach("exponential", 1, 0.9) == pytest.approx(math.log(10))


def test_leads_are_exact_in_the_tail():
    """A contender whose first 64 bits say nothing but "far out" is read on until its lead is certain."""
    field = Field("exponential", np.zeros((1, 2)), lambda _, __: Fraction(0))
    far, near = (Noisy(field.contender(0, 0, word, seeded(1)).law, Fraction(0), Fraction(1), word, seeded(1))
                 for word in (0, 1 << 62))  # fmt: skip

    assert 30 < far.ahead_of(near) < 200
    assert leads(field, 1, seeded(3))[1][0] > 0
