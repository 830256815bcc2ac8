"""What any rule pays for a rank target: the lumps leave one right leaf, and the bounds are those of coins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.errors import InvalidOption
from farthing.limits.quantiles import divergence, one_side, quantile_limit, rows_more, search_limit

COUNTS = st.lists(st.integers(0, 60), min_size=2, max_size=12).filter(any)


def right(counts, q, rank):
    """Return the right leaves, by their definition."""
    upto, n = np.cumsum(counts), sum(counts)
    return [
        leaf
        for leaf, (most, own) in enumerate(zip(upto, counts, strict=True))
        if most - own <= (q + rank) * n and most >= (q - rank) * n
    ]


@given(COUNTS, st.sampled_from([(0.5, 0.125), (0.75, 0.125), (0.25, 0.0625)]))
def test_a_lump_leaves_one_right_leaf(counts, asked):
    """So many rows more in a leaf make it the only right one; fewer do not, unless one row is the least there is."""
    q, rank = asked
    for leaf, more in enumerate(rows_more(np.array(counts), q, rank).tolist()):
        lump = [own + more * (place == leaf) for place, own in enumerate(counts)]
        fewer = [own + (more - 1) * (place == leaf) for place, own in enumerate(counts)]

        assert right(lump, q, rank) == [leaf]
        assert more == 1 or right(fewer, q, rank) != [leaf] or _vacuous(fewer, leaf, q, rank)


@given(COUNTS, st.sampled_from([(0.5, 0.125), (0.75, 0.125), (0.25, 0.0625), (0.875, 0.0625)]))
def test_so_many_rows_make_one_side_of_a_threshold_wrong(counts, asked):
    """All leaves above it, or all others: by rows that go or rows more, and by none fewer."""
    q, rank = asked
    for at, (up, down) in enumerate(zip(*one_side(np.array(counts), q, rank), strict=True)):
        for rows, above in ((up, True), (down, False)):
            wrong = [_one_side_wrong(counts, at, k, asked, above=above) for k in range(max(rows - 1, 0), rows + 1)]

            assert wrong == ([False] if rows else []) + [True]


def _one_side_wrong(counts, at, rows, asked, *, above):
    """Whether no leaf above a threshold (or none up to it) is right, after so many rows more or fewer, the best way."""
    gone, more = list(counts), list(counts)
    more[0 if above else -1] += rows
    order = range(len(counts) - 1, at, -1) if above else range(at + 1)
    left = rows
    for leaf in order:
        left, gone[leaf] = left - min(left, gone[leaf]), gone[leaf] - min(left, gone[leaf])
    found = [more] if left else [more, gone]
    return any(not any((leaf > at) == above for leaf in right(each, *asked)) for each in found)


def test_a_threshold_bounds_whoever_is_not_told_the_rows():
    """By hand, at the median of even data within 20 %: 286 rows of 1,000 make either side wrong. A sequential test that
    holds to both sides, whatever it is told besides, pays a third more; were the rows known, half the bound would do.
    """
    limit, k = quantile_limit([1] * 1000, 0.5, rank=0.2, beta=0.05).here, 286
    bounds = one_side(np.ones(1000, np.int64), 0.5, 0.2)
    sequential = (math.log(0.95 / 0.05) / 2) ** 2 / k**2  # Brownian motion that is stopped where the odds are 19

    assert (bounds[0][499], bounds[1][499]) == (k, k)
    assert limit == pytest.approx(2 * float(divergence(0.5, 0.05)) / k**2, rel=1e-6)
    assert limit < sequential < 1.4 * limit
    assert 2 * float(divergence(0.5, 0.05)) / (k / 1.4) ** 2 > sequential  # a bound by fewer rows is refuted by it


def _vacuous(counts, leaf, q, rank):
    """Whether leaves without rows beside this one are wrong already, where the proof asks for more than that."""
    upto, n = np.cumsum(counts), sum(counts)
    low = leaf == 0 or upto[leaf - 1] < (q - rank) * n
    high = leaf == len(counts) - 1 or upto[leaf] > (q + rank) * n
    return not (low and high)


def test_the_bounds_are_those_of_coins():
    """By hand, for even data: of the 18 leaves around the median, one is told with an eighteenth at most."""
    limit = quantile_limit([1] * 1000, 0.5, rank=0.05, beta=0.05)
    more = rows_more(np.ones(1000, np.int64), 0.5, 0.05)
    coin = 0.95 * math.log(0.95 * 18) + 0.05 * math.log(0.05 * 18 / 17)

    assert limit.lumps.tolist() == np.flatnonzero(more <= limit.rows).tolist()
    assert limit.beside == pytest.approx(2 * coin / limit.rows**2, rel=1e-6)
    assert limit.here == max(_at(more, many) for many in range(2, 1001))


def _at(more, many):
    """Return the bound of so many leaves."""
    return float(2 * divergence(1 - 1 / many, 0.05) / float(np.sort(more)[many - 1]) ** 2) * (1 - 1e-9)


def test_a_rule_that_pays_less_misses_at_some_lump():
    """The rule that measures the rows up to the median, and tells the leaf that this hits if rows are spread evenly:
    at a third of the bound it misses at nearly all lumps; no rule at that price could keep its promise at all.
    """
    limit, rng = quantile_limit([1] * 1000, 0.5, rank=0.05, beta=0.05), np.random.default_rng(3)
    noise = rng.standard_normal(2000) * 0.5 / math.sqrt(limit.here / 3)
    told = np.rint(499.5 - noise).astype(int)

    assert np.mean(np.isin(told, right([1] * 1000, 0.5, 0.05))) > 0.6  # at x itself most of what it tells is right
    for leaf in limit.lumps:
        lump = np.ones(1000, int)
        lump[leaf] += limit.rows
        assert np.mean(np.isin(told, right(lump.tolist(), 0.5, 0.05))) < 0.1


def test_there_is_no_bound_at_the_ends():
    """Where an end of the range may be right for all data."""
    for q, rank in ((0.0, 0.05), (1.0, 0.05), (0.1, 0.1), (0.9, 0.2), (0.58, 0.42), (0.5, 0.4999)):
        limit = quantile_limit([1] * 100, q, rank=rank, beta=0.05)
        assert (limit.here, limit.beside, limit.rows, limit.lumps.size) == (0.0, 0.0, 0, 0)


def test_rows_are_counted_exactly():
    """Where 0.58 + 0.32 is 0.9 and so many rows leave a leaf right by a hair; and of nearly 2^50 rows."""
    assert rows_more(np.array([37_889, 4_211]), 0.58, 0.32).tolist() == [11, 103_627]
    many = (1 << 50) - 4
    assert rows_more(np.array([many, 3]), 0.3, 0.2).tolist() == [1, 9 * many - 3 + 1]


def test_a_small_chance_of_a_miss_has_a_finite_limit():
    """It is about 2 log(1/beta)/k^2: for chances that 1 - beta does not show, too."""
    for beta in (1e-9, 5e-17, 1e-300):
        limit = quantile_limit([1] * 1000, 0.5, rank=0.05, beta=beta)
        assert limit.here * 126**2 / 2 == pytest.approx(-math.log(beta), rel=0.2)


@pytest.mark.parametrize("q", [math.nan, -0.1, 1.1, math.inf])
def test_what_is_no_quantile_is_refused(q):
    """Not a number, and shares out of range."""
    with pytest.raises(InvalidOption, match="0 <= q <= 1"):
        quantile_limit([1] * 100, q, rank=0.05, beta=0.05)


@pytest.mark.parametrize(
    ("counts", "rank", "beta"),
    [
        ([], 0.1, 0.05),
        ([[1, 2]], 0.1, 0.05),
        ([-1, 2], 0.1, 0.05),
        ([1, 2], 0.0, 0.05),
        ([1], 0.1, 0.5),
        ([1.5, 2.0], 0.1, 0.05),
        ([10**18, 10**18], 0.1, 0.05),
        ([1 << 50], 0.1, 0.05),
    ],
)
def test_what_is_no_histogram_is_refused(counts, rank, beta):
    """Counts of no leaves, below zero, of two axes or parts of rows, targets and chances out of range."""
    with pytest.raises(InvalidOption, match="rows in leaves"):
        quantile_limit(counts, 0.5, rank=rank, beta=beta)


@given(st.integers(1, 99), st.sampled_from([(0.5, 0.125), (0.75, 0.125), (0.875, 0.0625), (0.25, 0.1875)]))
def test_wherever_the_lump_is_its_leaf_alone_is_right(rows, asked):
    """And with a row less in the lump, before or behind it, others are right too."""
    limit = search_limit(4, rows, asked[0], rank=asked[1], beta=0.05)
    behind = rows - limit.below - limit.lump
    if not limit.lump:
        return
    for leaf in range(1, 5):
        counts = [limit.below, *(limit.lump * (place == leaf) for place in range(1, 5)), behind]
        assert right(counts, *asked) == [leaf]
        for end in (0, -1):
            counts[leaf], counts[end] = counts[leaf] - 1, counts[end] + 1
            assert right(counts, *asked) != [leaf]
            counts[leaf], counts[end] = counts[leaf] + 1, counts[end] - 1


def test_the_limits_of_a_search_are_those_of_coins():
    """By hand, for a median of 100 rows within 10 %, and of a higher quantile by ranks alone; none at an end."""
    coin = 0.95 * math.log(0.95 * 62) + 0.05 * math.log(0.05 * 62 / 61)
    limit = search_limit(62, 100, 0.5, rank=0.1, beta=0.05)

    assert (limit.below, limit.lump) == (39, 22)
    assert limit.mu_squared == limit.of_ranks == pytest.approx(2 * coin / 22**2)
    assert limit.epsilon == pytest.approx(0.95 * math.log(0.95 * 62) / 22)
    assert search_limit(62, 1000, 0.9, rank=0.05, beta=0.05).of_ranks == pytest.approx(8 * 0.81 * coin / 102**2)
    assert (
        search_limit(62, 100, 0.1, rank=0.1, beta=0.05).lump == search_limit(62, 3, 0.5, rank=0.5, beta=0.1).lump == 0
    )


def searched(places, sure, rng):
    """Return the information of looks of a search for a step from -1 to 1, and whether it found the place.

    It knows that a step is all there is, looks where half of what it believes lies on either side, and stops when it
    believes one place as much as `sure`.
    """
    truth, belief, paid = rng.integers(places), np.full(places, 1 / places), 0.0
    while belief.max() < sure:
        upto = np.cumsum(belief)
        at = int(np.argmin(np.abs(upto - 0.5)))
        shown = (1.0 if at >= truth else -1.0) + rng.standard_normal() / math.sqrt(0.3)
        paid += 0.3
        belief = belief * np.exp(0.3 * shown * np.where(np.arange(places) <= at, 1.0, -1.0))
        belief /= belief.sum()
    return paid, int(belief.argmax()) == truth


def test_the_best_search_pays_little_more_than_the_limit():
    """A search that knows all but the place: one that pays less is wrong too often."""
    rng, coin = np.random.default_rng(4), float(divergence(0.95, 1 / 64))
    for sure, right_often in ((0.92, True), (0.5, False)):
        paid, found = np.array([searched(64, sure, rng) for _ in range(300)]).T
        assert (found.mean() > 0.93) == right_often
        assert (paid.mean() > 2 * coin) == right_often  # 8 kl/lump^2 where the lump is 2 of these rows
        assert paid.mean() < 2.8 * coin


@pytest.mark.parametrize(
    ("places", "rows", "q"),
    [(1, 10, 0.5), (2.5, 10, 0.5), (True, 10, 0.5), (10, 0, 0.5), (10, 1 << 50, 0.5), (10, 10, math.nan)],
)
def test_what_is_no_search_is_refused(places, rows, q):
    """One place, no rows, too many, no quantile."""
    with pytest.raises(InvalidOption, match="rows and places"):
        search_limit(places, rows, q, rank=0.1, beta=0.05)
