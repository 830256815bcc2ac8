"""Quantiles of the normal law for single numbers are as near to the truth as those for arrays."""

import numpy as np
from flint import arb, ctx

from farthing.normal import ndtr, ndtri


def test_a_quantile_of_one_number_errs_by_far_less_than_is_allowed():
    """Chances from 1e-300 to nearly 1, against balls."""
    chance = np.random.default_rng(20)
    chances = [*(10.0 ** (-300 * chance.random(300))), *chance.random(300), *(1 - 10.0 ** (-15 * chance.random(100)))]
    worst, before = 0.0, ctx.prec
    ctx.prec = 200
    try:
        for each in map(float, chances):
            low = each if each < 0.5 else 1 - arb(each)
            distance = arb(2).sqrt() * (2 * arb(low)).erfcinv()
            truth = -distance if each < 0.5 else distance
            worst = max(worst, float(abs(arb(ndtri(each)) - truth) / (1 + abs(truth))))
    finally:
        ctx.prec = before
    assert worst < 2**-50


def test_arrays_and_ends_are_taken_as_scipy_takes_them():
    """An array goes to scipy; chances of 0 and 1 are infinite; a chance of one number and its quantile agree."""
    assert ndtri(np.array([0.25, 0.75])).tolist() == [-ndtri(0.75), ndtri(0.75)]
    assert (ndtri(0.0), ndtri(1.0)) == (-np.inf, np.inf)
    assert abs(ndtr(ndtri(1e-20)) / 1e-20 - 1) < 1e-13
