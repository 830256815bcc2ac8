"""What any rule pays for the first places in order: the rows that turn it round, and prices above it."""

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accuracy.ranking import RankingContest
from farthing.errors import InvalidOption
from farthing.limits import ranking_limit, unknown_lead_limit
from farthing.limits.ranking_sizes import least_cost
from farthing.normal import ndtri

GRAIN = 2.0**-56


def right(counts, told):
    """Return whether groups that are told in order are the largest, by the definition."""
    rest = [own for group, own in enumerate(counts) if group not in told]
    shown = [counts[group] for group in told]
    return all(a >= b for a, b in pairwise(shown)) and min(shown) >= max(rest, default=0)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=6), st.data())
def test_so_many_rows_make_every_right_order_wrong(counts, data):
    """Some group exists to which they are added; fewer leave an order right, where the first places have no ties."""
    k = data.draw(st.integers(1, len(counts)))
    limit = ranking_limit(counts, k, beta=0.05)
    orders = [told for told in permutations(range(len(counts)), k) if right(counts, told)]

    def turned(rows):
        """Return whether rows more in one group make all of these orders wrong."""
        lumps = ([own + rows * (place == group) for place, own in enumerate(counts)] for group in range(len(counts)))
        return any(not any(right(lump, told) for told in orders) for lump in lumps)

    if limit.rows:
        assert turned(limit.rows)
        ranked = sorted(counts, reverse=True)
        if len(set(ranked[: k + 1])) == len(ranked[: k + 1]):
            assert not any(turned(rows) for rows in range(1, limit.rows))
    else:
        assert len(set(sorted(counts)[::-1][: k + 1])) == 1


def test_the_limits_are_those_of_coins():
    """By hand, for a lead of 500; ties that are not of the first places count for nothing."""
    coin = 0.9 * math.log(19)
    limit = ranking_limit([3_000, 10_000, 10_500, 3_000, 3_000], 2, beta=0.05)

    assert limit.rows == 501
    assert limit.mu_squared == pytest.approx(2 * coin / 501**2)
    assert limit.epsilon == pytest.approx(coin / 501)
    assert ranking_limit([7, 7, 7, 1], 2, beta=0.05).mu_squared == 0.0
    assert ranking_limit([7, 7, 7, 1], 3, beta=0.05).rows == 7


@pytest.mark.parametrize(
    ("counts", "k", "more"),
    [([300, 200], 1, 1), ([300, 200, 100], 2, 1.33), ([400, 300, 200, 100], 3, 1.43), ([700, 700, 400, 300], 2, 1.16)],
)
def test_several_leads_cost_more_than_one(counts, k, more):
    """As much as a search found that is not of this code; measuring all leads alike costs as much, or more."""
    limit, groups = ranking_limit(counts, k, beta=0.05, together=True), len(counts)

    assert limit.measured == pytest.approx(more * limit.mu_squared, rel=0.01)
    assert limit.measured <= limit.mu_squared * 2 * (groups - 1) / groups * (1 + 1e-9)


@given(st.integers(0, 2**32), st.integers(2, 5))
@settings(max_examples=8, deadline=None)
def test_whatever_is_measured_some_way_is_told_too_seldom(seed, groups):
    """Below the limit some change that makes the order wrong is told less than the two coins are."""
    rng = np.random.default_rng(seed)
    counts = np.sort(rng.choice(np.arange(1, 400), groups, replace=False))[::-1]
    k = int(rng.integers(1, groups + 1))
    limit = ranking_limit(counts, k, beta=0.05, together=True)
    measured = rng.standard_normal((groups, groups))
    measured *= math.sqrt(0.999 * limit.measured / (measured**2).sum(axis=0).max())  # no row pays more than that
    shape, told = np.linalg.inv(measured.T @ measured), []
    for p in range(min(k, groups - 1)):
        for q in range(p + 1, groups if p == k - 1 else p + 2):
            turned = np.eye(groups)[q] - np.eye(groups)[p]
            way = shape @ turned / (turned @ shape @ turned) * (counts[p] - counts[q] + 1)
            told.append(float(((measured @ way) ** 2).sum() / 2))

    assert min(told) < 0.9 * math.log(19)


def test_no_rule_pays_less():
    """A ranking that proves its order, and one look that is right at these groups and at none beside them."""
    truth, rng, runs = np.array([600.0, 500.0, 100.0]), np.random.default_rng(2), 10

    def noise(grains):
        return rng.standard_normal(len(grains)) / np.sqrt(grains * GRAIN)

    def paid():
        end = RankingContest(1, 0.05, GRAIN, 1 << 56).run(
            None,
            3,
            lambda grains, groups: truth[groups] + noise(grains),
            lead=lambda grains, first, second: truth[first] - truth[second] + noise(grains),
        )
        assert end.blocks[0].tolist() == [0]
        return end.paid.max() * GRAIN

    least = ranking_limit(truth.astype(int), 1, beta=0.05).mu_squared
    one_test = (2 * ndtri(0.95) / 101) ** 2  # of the lead, against no lead at all: it knows both

    assert least < one_test
    assert least < np.mean([paid() for _ in range(runs)])


@pytest.mark.parametrize(
    ("counts", "k", "beta"),
    [([5], 1, 0.05), ([5, 4], 3, 0.05), ([5, 4], 0, 0.05), ([5, -4], 1, 0.05), ([5.5, 4], 1, 0.05), ([5, 4], 1, 0.5)],
)
def test_what_is_no_ranking_is_refused(counts, k, beta):
    """One group, too many places or none, what is no count, and a chance that a coin has."""
    with pytest.raises(InvalidOption, match="rows of groups"):
        ranking_limit(counts, k, beta=beta)


def test_one_lead_that_is_known_costs_what_walds_test_does():
    """Who tests one lead against none pays 2 kl(1 - beta, beta) at best; the recursion is below that, and near it."""
    for beta in (0.01, 0.05, 0.2):
        odds = (1 - beta) / beta
        wrong, missed = 2 * (odds - 1 / odds), 4 * math.log(odds)
        walds = 2 * (1 - 2 * beta) * math.log(odds)
        assert 0.98 * walds < least_cost(np.ones(1), wrong, missed) - beta * (wrong + missed) <= walds
        assert unknown_lead_limit(0, beta=beta) == pytest.approx(walds, rel=2e-3)


def test_a_rule_that_knows_no_lead_pays_the_limit_at_one_of_them():
    """A mixture of likelihood ratios, which Ville's inequality keeps right and which never gives up, pays more."""
    beta, leads, rng = 0.05, 2.0 ** -np.arange(9), np.random.default_rng(4)
    times = 0.05 * 1.03 ** np.arange(700)
    spread = np.sqrt(np.diff(times, prepend=0.0))
    paid = []
    for lead in leads:
        moved = np.cumsum(rng.normal(size=(400, len(times))) * spread, axis=1) + lead * times
        ratios = np.exp(np.minimum(leads[:, None, None] * moved - (leads**2)[:, None, None] * times / 2, 600)).mean(0)
        proved = ratios >= 1 / beta
        assert proved.any(axis=1).all()
        ends = times[proved.argmax(axis=1)] * lead**2
        paid.append(ends.mean() + 4 * ends.std() / 20)
    assert unknown_lead_limit(8, beta=beta) < max(paid) < 2 * unknown_lead_limit(8, beta=beta)


def test_more_leads_cost_more_and_a_finer_grid_as_much():
    """More that is not known costs more; half of the steps change less than what is taken off."""
    least = [unknown_lead_limit(doublings, beta=0.05) for doublings in (0, 1, 4, 8)]
    assert least == sorted(least)
    leads, wrong, missed = 2.0 ** -np.arange(3), 40.0, 12.0
    coarse, fine = (least_cost(leads, wrong, missed, growth=g, step=s) for g, s in ((1.03, 0.03), (1.03, 0.015)))
    assert coarse == pytest.approx(fine, rel=1e-3)
    assert coarse < least_cost(leads, wrong, missed, growth=1.015) < 1.03 * coarse


@pytest.mark.parametrize(("doublings", "beta"), [(-1, 0.05), (41, 0.05), (True, 0.05), (1.0, 0.05), (1, 0.5), (1, 0.0)])
def test_a_limit_of_unknown_leads_refuses_what_it_is_not_about(doublings, beta):
    with pytest.raises(InvalidOption, match="whole number of doublings"):
        unknown_lead_limit(doublings, beta=beta)
