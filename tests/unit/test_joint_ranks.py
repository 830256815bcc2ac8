"""Ranks of several thresholds measured at once: what a row moves is booked, and what is told has the noise it tells."""

from fractions import Fraction

import numpy as np
import pytest
from attacks.mutant_checks import several_ranks
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.mechanisms.joint_ranks import JointRanks, directions, rank_strategy
from farthing.noise.bits import seeded

WHOLE = 1 << 20
DECILES = tuple((k * WHOLE) // 10 for k in range(1, 10))


@st.composite
def asked(draw):
    """Shares of the rows, an order of thresholds, and scales."""
    steps = draw(st.lists(st.integers(0, WHOLE), min_size=1, max_size=7, unique=True))
    order = draw(st.permutations(range(len(steps))))
    scales = draw(st.lists(st.sampled_from([1.0, 1.5, 7.0, 64.0]), min_size=len(steps), max_size=len(steps)))
    return tuple(steps), tuple(order), tuple(scales)


@settings(max_examples=40, deadline=None)
@given(asked(), st.lists(st.integers(0, 6), min_size=1, max_size=5), st.data())
def test_no_unit_moves_what_is_measured_further_than_is_booked(given_, many, data):
    """Rows of one unit, in whatever bins, together move it by no more than `length` each."""
    strategy = rank_strategy(*given_)
    bins = [data.draw(st.integers(0, len(given_[0]))) for _ in many]
    columns = [np.array(strategy.matrix[:, place].tolist(), object) for place in bins]
    moved = sum(column * rows for column, rows in zip(columns, many, strict=True))

    squared = Fraction(int((moved**2).sum()), 1 << (2 * strategy.places))
    assert squared <= (sum(many) * Fraction(strategy.length)) ** 2


@settings(max_examples=40, deadline=None)
@given(asked())
def test_ranks_are_told_unbiased_and_as_exactly_as_booked(given_):
    """Turned back, mixtures are the ranks again; at next to no noise the exact ones are told."""
    strategy = rank_strategy(*given_)
    bins = np.arange(1, len(given_[0]) + 2)[:, None] * 1000

    shown = JointRanks(1, seeded(3)).measure(strategy, bins, np.array([1 << 62]))
    exact = directions(given_[0], given_[1]) @ bins[:, 0] / WHOLE

    information = strategy.information(np.array([1 << 62]), 1)[0]
    assert (np.abs(shown[0] - exact) * np.sqrt(information) < 9).all()
    assert strategy.information(np.ceil(strategy.grains(information[None], 1)), 1)[0] == pytest.approx(information)


def test_nine_deciles_cost_less_than_two_of_them():
    """The price at the noise of one: 1.37 of the most expensive, 2.06 of their mean."""
    alone = np.array([max(step, WHOLE - step) / WHOLE for step in DECILES]) ** 2
    together = rank_strategy(DECILES, tuple(range(9)), (1.0,) * 9).price

    assert together < 1.38 * alone.max()
    assert together < 2.07 * alone.mean()
    assert rank_strategy((WHOLE // 2,), (0,), (1.0,)).price == pytest.approx(0.25)


@pytest.mark.statistical
def test_the_noise_hides_what_is_booked():
    """Neighbours cannot be told apart better than their price says."""
    assert not several_ranks()


@pytest.mark.statistical
def test_a_look_booked_as_one_count_is_caught(monkeypatch):
    """The planted bug: of what a row moves, one measurement is booked."""
    strategy = type(rank_strategy(DECILES, tuple(range(9)), (1.0,) * 9))
    one = property(lambda self: float(np.abs(self.matrix[-1]).max()) / 2.0**self.places)
    monkeypatch.setattr(strategy, "length", one)

    assert several_ranks()
