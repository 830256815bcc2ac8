"""Leads are free: the exact density of winners and leads moves by no more than the price of the winners alone."""

import math

import numpy as np
import pytest

RATE, SPREAD = 1.0, 0.7
EPSILON = RATE * SPREAD
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def density(scores, winners, ahead, rate=RATE):
    """Return the density of the winners, in order, with these leads, under exponential noise; by quadrature."""
    above = np.cumsum(ahead[::-1])[::-1]
    needed = [scores[winner] - lead for winner, lead in zip(winners, above, strict=True)]
    rest = np.array([score for place, score in enumerate(scores) if place not in winners])
    start = max(*needed, rest.max())
    ends = start + np.arange(25) * 1.5 / rate
    ends = np.concatenate([ends, rest[rest > start], [ends[-1] + 1 / rate]])
    ends.sort()
    half, middle = np.diff(ends)[:, None] / 2, (ends[1:] + ends[:-1])[:, None] / 2
    m, weight = (middle + half * NODES).ravel(), (half * WEIGHTS).ravel()
    each = np.maximum(m[:, None] - rest, 0)
    below, dense = -np.expm1(-rate * each), rate * np.exp(-rate * each)
    largest = sum(dense[:, j] * np.prod(np.delete(below, j, axis=1), axis=1) for j in range(len(rest)))
    return rate ** len(winners) * float(weight @ (largest * np.exp(-rate * sum(m - a for a in needed))))


def ratios(k, cases, rate=RATE, told=None):
    """Return log-ratios of the densities of neighbours, over random scores, changes, winners and leads."""
    rng, found = np.random.default_rng(5), []
    for _ in range(cases):
        scores = rng.choice([0.0, 0.2, 1.0, 2.5], 4) + rng.random(4) * rng.integers(0, 2)
        change = rng.choice([0.0, 0.3, SPREAD], 4)
        winners = rng.permutation(4)[:k].tolist()
        ahead = rng.exponential(rng.choice([0.1, 1.0, 3.0]), k)
        one, other = density(scores, winners, ahead, rate), density(scores + change, winners, ahead, rate)
        found.append(math.log(other / one))
    return np.abs(found) / (told or k)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_winners_and_leads_move_by_the_price_of_the_winners(k):
    """Within k epsilon in both directions, and up to it; at a rate a tenth higher they move more."""
    found = ratios(k, 400)

    assert found.max() <= EPSILON * (1 + 1e-9)
    assert found.max() > 0.99 * EPSILON
    assert ratios(k, 400, rate=1.1 * RATE).max() > 1.05 * EPSILON


def test_the_density_is_that_of_draws():
    """Summed over who wins and over leads it is 1, and it has the chance of each winner."""
    scores, grid = np.array([0.0, 0.7, -0.4]), (np.arange(60) + 0.5) * 0.25
    chances = [sum(density(scores, [i], np.array([g])) for g in grid) * 0.25 for i in range(3)]
    draws = scores + np.random.default_rng(1).exponential(size=(200_000, 3))

    assert sum(chances) == pytest.approx(1, abs=0.01)
    assert chances == pytest.approx(np.bincount(draws.argmax(axis=1)) / 200_000, abs=0.01)


def test_leads_of_two_at_the_price_of_one_are_caught():
    """Planted: two winners with their leads, booked as one choice."""
    assert ratios(2, 200, told=1).max() > 1.5 * EPSILON


def test_gumbel_leads_range_over_more_than_the_bounded_range():
    """Why none is told with Gumbel noise: over winners and leads the log-ratio ranges over nearly twice epsilon."""
    scores, change, leads = np.zeros(3), np.array([SPREAD, 0, 0]), np.linspace(-12, 12, 97)

    def logistic(table):
        """Return log densities of each winner's lead: positive arguments are the lead itself."""
        behind = [table[i] - np.log(np.exp(np.delete(table, i)).sum()) for i in range(3)]
        return np.array([-(leads[leads > 0] - b) - 2 * np.log1p(np.exp(-(leads[leads > 0] - b))) for b in behind])

    moved = logistic(scores + change) - logistic(scores)

    assert np.ptp(moved) > 1.5 * EPSILON
    assert np.abs(moved).max() <= EPSILON * (1 + 1e-9)
