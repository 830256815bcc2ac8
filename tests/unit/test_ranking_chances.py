"""The chance of an error is shared among pairs of neighbours: in every order that may be the true one."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest

from farthing.accuracy.ranking_chances import Weights


def weights_of(seed, groups):
    """Return weights of groups that a pilot put in any order."""
    rng = np.random.default_rng(seed)
    ahead = rng.exponential(size=groups) ** 3 + 1e-3
    return Weights(rng.permutation(groups), ahead, ahead * rng.uniform(0.01, 1, groups))


def weight(weights, before, after):
    """Return what a pair of neighbours weighs, the second of which may be told to lead the first."""
    foretold = weights.place[after] < weights.place[before]
    return float((weights.ahead if foretold else weights.behind)[after]), foretold


@pytest.mark.parametrize("sizes", [(5,), (1, 4), (2, 3), (1, 2, 2), (2, 1, 2), (1, 1, 1, 1, 1), (3, 2)])
@pytest.mark.parametrize("seed", range(6))
def test_no_pair_has_more_than_its_part_in_any_order(sizes, seed):
    """Cut in blocks, groups are in any order that these allow: a pair within one has its part at most."""
    weights = weights_of(seed, 5)
    blocks = np.split(np.random.default_rng(seed).permutation(5), np.cumsum(sizes)[:-1])
    beside, block_of = (
        weights.beside(blocks),
        np.repeat(np.arange(len(sizes)), sizes)[np.argsort(np.concatenate(blocks))],
    )
    for parts in product(*(permutations(block.tolist()) for block in blocks)):
        order = [group for part in parts for group in part]
        whole = sum(weight(weights, *pair)[0] for pair in pairwise(order))
        for before, after in pairwise(order):
            own, foretold = weight(weights, before, after)
            if block_of[before] == block_of[after]:
                assert weights.chances(np.array([after]), beside, foretold=foretold)[0] <= own / whole * (1 + 1e-12)


def test_the_last_pair_has_nearly_all_of_it():
    """What is settled as the pilot showed it weighs little: the last two of ten groups have most of the chance."""
    weights = Weights(np.arange(10), np.ones(10), np.full(10, 0.01))
    all_open = weights.chances(np.arange(10), weights.beside([np.arange(10)]), foretold=True)
    blocks = [*np.arange(8)[:, None], np.arange(8, 10)]

    assert all_open.max() < 0.12
    assert weights.chances(np.array([8]), weights.beside(blocks), foretold=True)[0] > 0.9


def test_a_pair_that_turns_out_the_other_way_round_has_its_part_of_what_is_left():
    """Its weight is small, and so is that of all others: the chance is not."""
    weights = Weights(np.arange(4), np.ones(4), np.array([1e-4, 0.1, 1e-4, 1e-4]))
    blocks = [np.arange(2), np.arange(2, 3), np.arange(3, 4)]

    assert weights.chances(np.array([1]), weights.beside(blocks), foretold=False)[0] > 0.9


def test_a_cut_is_foretold_where_all_before_it_were_before_in_the_pilot():
    """In an order with two neighbours the other way round, every cut but that between them."""
    weights = Weights(np.array([0, 2, 1, 3]), np.ones(4), np.ones(4))

    assert [True, False, True] == weights.foretold(np.arange(4)).tolist()
