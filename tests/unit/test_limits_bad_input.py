"""What the limits refuse, and in which words."""

import math

import numpy as np
import pytest

from farthing.errors import FarthingError, InvalidBudget, InvalidOption, InvalidTarget
from farthing.limits import (
    MeanPoint,
    for_query,
    gamma_2,
    gamma_f,
    group_lower_bound,
    identity_and_total,
    marginals,
    prefix_sums,
    unbiased_error,
)
from farthing.privacy.loss import Approx, BoundedRange, Pure, Zcdp

MATRICES = {
    "text": ([["a", "b"]], "not numeric"),
    "ragged": ([[1], [1, 2]], "not numeric"),
    "objects": ([[None, 1]], "not numeric"),
    "complex": ([[1j]], "not numeric"),
    "truth values": ([[True]], "not numeric"),
    "nan": ([[math.nan, 1]], "not finite"),
    "inf": ([[math.inf]], "not finite"),
    "empty": ([[]], "not a matrix"),
    "no rows": (np.empty((0, 3)), "not a matrix"),
    "a list": ([1, 2], "not a matrix"),
    "a number": (3.0, "not a matrix"),
    "a cube": (np.ones((2, 2, 2)), "not a matrix"),
    "huge entries": ([[1e200]], "out of range"),
    "tiny entries": ([[1e-200]], "out of range"),
}


def assert_helpful(error, words):
    """An error says what, by which rule, and what to do."""
    assert words in str(error.value)
    assert error.value.rule
    assert error.value.next_step


@pytest.mark.parametrize("norm", [gamma_f, gamma_2, lambda W: unbiased_error(W, Zcdp(0.1)), lambda W: MeanPoint(W, 5)])
@pytest.mark.parametrize(("W", "words"), MATRICES.values(), ids=MATRICES)
def test_matrices(norm, W, words):
    """What is no finite, non-empty matrix of numbers is refused."""
    with pytest.raises(InvalidOption) as error:
        norm(W)
    assert_helpful(error, words)


def test_rank_deficient_and_integer_matrices_work():
    """Rank 1, repeated rows, zero rows and columns, and whole numbers are workloads like others."""
    W = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 0]])

    assert math.sqrt(2) == pytest.approx(gamma_f(W), rel=1e-5)
    assert 1 == pytest.approx(gamma_2(W), rel=1e-5)


def test_huge_workloads_say_their_cost_first():
    """A workload of which one round does not fit in the time is refused at once, with the cost in words."""
    W = np.broadcast_to(1.0, (4000, 4000))
    with pytest.raises(InvalidOption) as error:
        gamma_f(W, seconds=10)
    assert_helpful(error, "a workload of 4,000 x 4,000 takes about 96 s a round")
    assert "closed form" in error.value.next_step


@pytest.mark.parametrize("options", [{"tolerance": 0}, {"tolerance": -1}, {"seconds": 0}, {"seconds": math.nan}])
def test_limits_of_the_iteration(options):
    """Tolerances and times are above 0."""
    with pytest.raises(InvalidOption):
        gamma_f([[1, 1]], **options)


def test_nothing_to_bound():
    """No factors, one cell to replace in, products of differences, unknown neighbours."""
    with pytest.raises(InvalidOption, match="no workload"):
        gamma_f()
    with pytest.raises(InvalidOption, match="cannot be replaced"):
        unbiased_error([[1]], Zcdp(0.1), neighbours="replace-one")
    with pytest.raises(InvalidOption, match="Kronecker"):
        unbiased_error([[1, 1]], Zcdp(0.1), times=([[1]],), neighbours="replace-one")
    with pytest.raises(InvalidOption, match="add-remove or replace-one"):
        unbiased_error([[1, 1]], Zcdp(0.1), neighbours="bounded")


@pytest.mark.parametrize("relative", [0, 1, -0.1, 1.5, math.nan, math.inf, "a", True, None])
def test_relative_errors(relative):
    """A relative error is strictly between 0 and 1."""
    with pytest.raises(InvalidTarget) as error:
        group_lower_bound([10], relative)
    assert_helpful(error, "0 < relative < 1")


@pytest.mark.parametrize(
    ("sizes", "kind", "words"),
    [
        ([-1], InvalidTarget, "size >= 0"),
        ([], InvalidTarget, "at least one size"),
        ([0], InvalidTarget, "no noise at all, which no finite loss allows"),
        ([math.nan], InvalidOption, "not finite"),
        (["ten"], InvalidOption, "not numeric"),
    ],
)
def test_sizes(sizes, kind, words):
    """Sizes are numbers of units; an empty group has no relative error, and the message says why."""
    with pytest.raises(kind) as error:
        group_lower_bound(sizes)
    assert_helpful(error, words)


def test_currencies_of_the_group_bound():
    """Approx needs a delta, the others must not have one, and other kinds have no bound."""
    for options in ({"kind": Approx}, {"delta": 1e-6}, {"kind": BoundedRange}):
        with pytest.raises(InvalidBudget, match="kind"):
            group_lower_bound([10], **options)
    for wrong in ({"absolute": -1}, {"absolute": math.inf}):
        with pytest.raises(InvalidTarget, match="absolute"):
            group_lower_bound([10], **wrong)
    with pytest.raises(InvalidOption, match="moves"):
        group_lower_bound([10], moves=0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "neither"),
        ({"sds": [1.0], "half_widths": [1.0]}, "both"),
        ({"sds": []}, "sds"),
        ({"sds": [0.0]}, "every entry of sds > 0"),
        ({"sds": [math.inf]}, "not finite"),
        ({"half_widths": [1.0], "confidence": 1}, "0 < confidence < 1"),
        ({"sds": [1.0, 2.0], "sensitivity": [1, 2, 3]}, "3 for 2 groups"),
        ({"sds": [1.0], "sensitivity": -1}, "sensitivity"),
        ({"sds": [1.0], "max_groups": 0}, "max_groups"),
        ({"sds": [1.0], "max_groups": 1.5}, "max_groups"),
    ],
)
def test_released_answers(options, words):
    """Deviations, widths, sensitivities and bounds are checked by name."""
    with pytest.raises(InvalidOption) as error:
        for_query(Zcdp(0.1), **options)
    assert_helpful(error, words)


@pytest.mark.parametrize("paid", [Approx(1, 1e-6), BoundedRange(1), Zcdp(0.1, 1e-6), Zcdp(0)])
def test_losses_that_cannot_be_compared(paid):
    """A loss with a delta of its own, or none at all, has no least to stand beside."""
    with pytest.raises(InvalidBudget):
        for_query(paid, sds=[1.0])


def test_noise_for_the_wrong_loss():
    """Gaussian noise has no pure loss, Laplace noise is asked for one, and (eps, delta) has no bound here."""
    problem = MeanPoint([[1.0]], records=3)
    for call, loss in ((problem.gaussian, Pure(1)), (problem.laplace, Zcdp(1)), (problem.least_error, Approx(1, 1e-6))):
        with pytest.raises(InvalidBudget) as error:
            call(loss)
        assert error.value.next_step
    with pytest.raises(InvalidOption, match="records"):
        MeanPoint([[1.0]], records=0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: identity_and_total(0),
        lambda: prefix_sums(2.5),
        lambda: prefix_sums(10**9),
        lambda: marginals([], 0),
        lambda: marginals([2, 2], 3),
        lambda: marginals([2, 2], -1),
        lambda: marginals([2, 0], 1),
        lambda: marginals([2] * 60, 30),
    ],
)
def test_closed_forms(call):
    """Sizes of closed forms are whole numbers, and not beyond what can be summed."""
    with pytest.raises(FarthingError) as error:
        call()
    assert error.value.rule
    assert error.value.next_step
