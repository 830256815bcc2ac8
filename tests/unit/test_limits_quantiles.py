"""What any rule pays for a rank target: the lumps leave one right leaf, and the bounds are those of coins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.errors import InvalidOption
from farthing.limits.quantiles import divergence, quantile_limit, rows_more

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
