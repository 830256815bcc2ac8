"""The bound on what any rule pays on a Laplace chain: it is below what rules pay, and near what the best of them do."""

import math

import numpy as np
import pytest
from accuracy.runs import bench

from farthing.accuracy import laplace_stop_rule as chains
from farthing.accuracy.jumps import JumpMap
from farthing.accuracy.noise_laws import LAPLACE

RELATIVE, GROWTH, BOUNDARY = 0.3, 1.05, 14.0


@pytest.fixture(scope="module")
def least():
    """Looks and sizes 5 % apart."""
    return bench("absurd_least").LeastOnChain(RELATIVE, growth=GROWTH)


@pytest.mark.thorough
def test_no_line_is_below_the_bound_and_a_good_one_is_near(least):
    """Whatever the prices, the bound at a line's own chance is below what it pays; at the right ones, not by much."""
    sizes = round(8 * math.log(2) / math.log(GROWTH))
    for boundary in (20.0, 26.0):
        paid, chance = least.line(sizes, boundary)
        beta = math.exp(-RELATIVE * boundary / (1 + RELATIVE))  # at most so many of its answers miss
        bounds = [
            least.least(sizes, times / chance, 2 * paid, beta=beta, rare=chance) / paid for times in (0.1, 1.0, 10.0)
        ]
        assert max(bounds) < 1
        assert bounds[1] > 0.9


@pytest.mark.thorough
def test_a_rule_that_may_miss_pays_less(least):
    """Of twenty truths one may be told anything: that is worth a twentieth of the price and little more."""
    sizes = round(8 * math.log(2) / math.log(GROWTH))
    paid, chance = least.line(sizes, BOUNDARY)
    bound = least.least(sizes, 1 / chance, paid * 1.05, beta=0.05, rare=chance)
    assert 0.85 * paid < bound < 0.96 * paid


def test_what_a_line_pays_is_what_the_rule_is_computed_to_pay(least):
    """The library's own recursion says the same of a line."""
    span = 4 * chains.gate(GROWTH**2)
    jumps = JumpMap(BOUNDARY, GROWTH**2, chains.gates(span, GROWTH**2), law=LAPLACE)
    rule = chains.LaplaceLookChain.run(RELATIVE, RELATIVE * BOUNDARY, span=span, jumps=jumps, beta=1e-6, largest=400.0)
    signals = 100.0 * GROWTH ** (np.arange(20) / 20)
    paid, _ = least.line(40, BOUNDARY)
    assert float((signals * rule.paid(signals)).mean()) == pytest.approx(paid, rel=0.02)


@pytest.mark.thorough
def test_the_least_of_pure_measures_is_below_what_one_who_knows_pays():
    """The two bounds beside means and variances, and their form for a count, whose next neighbour is one row away."""
    joint, pure = bench("joint"), bench("pure_measures")
    count = joint.least_pure((joint.COUNT,), pure.lanes(60.0, 800.0), 0.1)
    assert count == pytest.approx(2 * math.asinh(1.959964 / (2 * 0.1 * pure.ROWS)), rel=1e-6)
    for _, statistic, many in pure.ASKED[:2]:
        truth = pure.lanes(20.0, 100.0)
        known = pure.oracle(pure.question(statistic, many, 0.1), truth[:many])
        assert known / 3 < joint.least_pure((statistic,), truth, 0.1) < known
        assert known / 4 < joint.any_rule((statistic,), truth, 0.1, pure=True) < known
