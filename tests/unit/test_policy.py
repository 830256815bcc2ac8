"""Policies: group-wise losses as values."""

import math

import numpy as np
import pytest

from farthing.errors import InvalidBounds, InvalidBudget, InvalidTarget
from farthing.mechanisms import Asinh, LinearLog, Log, PlainGaussian
from farthing.privacy import Gdp, Pure, Zcdp
from farthing.privacy.policy import Brackets, Constant, Policy, along

STATED = Policy.of(Brackets((0, 10, 100), (0.5, 0.125, 0.02)))
SIZES = np.array([0, 1, 9, 10, 11, 99, 100, 101, 5000, 10**9])


def test_calling_a_policy_gives_rho():
    """Both policy(x), policy.rho(x) and mu^2/2 are one number, rounded up."""
    policy = LinearLog(0.1, x0=50).policy
    assert policy(SIZES).tolist() == policy.rho(SIZES).tolist()
    assert (policy.mu(SIZES) ** 2 / 2 >= policy(SIZES)).all()
    np.testing.assert_allclose(policy.mu(SIZES) ** 2 / 2, policy(SIZES), rtol=1e-12)


def test_the_worst_is_at_size_zero():
    """What a filter charges is the loss of an absent member, which is that of a group of one."""
    policy = Asinh(0.1, x0=50).policy
    assert policy.worst() == policy.loss(0) == policy.loss(1)
    assert isinstance(policy.worst(), Zcdp)
    assert isinstance(policy.worst(Gdp), Gdp)
    assert max(policy(SIZES)) == policy.worst().rho


def test_losses_are_values_that_convert():
    """A size's loss composes and converts as any other."""
    policy = Policy.of(Constant(0.2))
    assert math.isclose(0.02, policy.loss(5).rho, rel_tol=1e-12)
    assert policy.loss(5, Gdp).epsilon(1e-6) < policy.loss(5).epsilon(1e-6)


def test_releases_by_the_same_groups_add():
    """Rho adds, mu adds in squares, size by size."""
    first, second = LinearLog(0.1, x0=50).policy, Log(0.2, offset=1).policy
    both = first + second
    np.testing.assert_allclose(first(SIZES) + second(SIZES), both(SIZES), rtol=1e-12)
    np.testing.assert_allclose(np.hypot(first.mu(SIZES), second.mu(SIZES)), both.mu(SIZES), rtol=1e-12)
    assert (both(SIZES) >= first(SIZES) + second(SIZES) * (1 - 2**-52)).all()


def test_a_record_adds_along_its_groups():
    """Small in one release and large in another: each at its own size, exactly added."""
    first, second = LinearLog(0.1, x0=50).policy, Log(0.2, offset=1).policy
    assert first.loss(7) + second.loss(4000) == along([first, second], [7, 4000])
    assert first.loss(7, Gdp) + second.loss(4000, Gdp) == along([first, second], [7, 4000], Gdp)
    with pytest.raises(InvalidBudget, match="without a size"):
        along([first, second], [7])


@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_members_at_once_move_along_the_chain(k):
    """Distances add: exactly the mechanism's own for k records, and never more than k times one member's."""
    one, wide = LinearLog(0.1, x0=50), LinearLog(0.1, x0=50, sensitivity=k)
    group = one.policy.for_group(k)
    assert wide.policy(SIZES).tolist() == group(SIZES).tolist()
    assert (group(SIZES) <= k**2 * one.policy(np.maximum(SIZES, k) - k + 1) * (1 + 1e-12)).all()
    chain = [sum(one.policy.mu(np.maximum(x, k) - j) for j in range(k)) for x in SIZES]
    np.testing.assert_allclose(chain, group.mu(SIZES), rtol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 5, 40, 1000])
def test_members_of_a_stated_policy_add_their_distances(k):
    """The root of 2 rho adds along the steps; checked step by step."""
    for x in SIZES[:-1].tolist():
        top = max(x, k)
        chain = math.fsum(math.sqrt(2 * float(STATED(t))) for t in range(top - k + 1, top + 1))
        assert math.isclose(chain**2 / 2, float(STATED.for_group(k)(x)), rel_tol=1e-10)


def test_a_constant_policy_is_the_usual_group_privacy():
    """For k members of a constant loss: k^2 rho and k mu."""
    policy = PlainGaussian(10.0).policy
    assert math.isclose(9 * 0.005, float(policy.for_group(3)(7)), rel_tol=1e-12)
    assert math.isclose(0.3, float(policy.for_group(3).mu(7)), rel_tol=1e-12)


def test_three_of_the_members_of_groups_are_a_group_of_six():
    """Calling for_group(2).for_group(3) is for_group(6)."""
    assert STATED.for_group(2).for_group(3) == STATED.for_group(6)


def test_what_the_theory_refuses_is_refused():
    """No mu from zCDP, no pure loss, no policy that rises, no mix of numbers of members."""
    with pytest.raises(InvalidBudget, match="zCDP only"):
        STATED.mu(5)
    with pytest.raises(InvalidBudget, match="zCDP only"):
        (STATED + PlainGaussian(1.0).policy).mu(5)
    with pytest.raises(InvalidBudget, match="currency"):
        STATED.loss(5, Pure)
    with pytest.raises(InvalidBudget, match="rises"):
        Brackets((0, 100), (0.1, 0.2))
    with pytest.raises(InvalidBudget, match="members"):
        STATED + STATED.for_group(2)
    with pytest.raises(InvalidBudget, match="no steps"):
        Policy(())
    with pytest.raises(InvalidBudget, match="whole number of units"):
        STATED.for_group(0)
    with pytest.raises(InvalidBounds, match="members"):
        PlainGaussian(1.0).policy.for_group(2**53)(1)


@pytest.mark.parametrize(
    ("sizes", "rhos"), [((), ()), ((1, 10), (1, 0.5)), ((0, 10), (1,)), ((0, 10, 10), (3, 2, 1)), ((0,), (-1,))]
)
def test_size_classes_must_cover_every_size(sizes, rhos):
    """From 0 up, rising, one rho for each."""
    with pytest.raises(InvalidBudget):
        Brackets(sizes, rhos)


@pytest.mark.parametrize("sizes", [[-1], [0.5], [math.nan], ["3"], [2**53], [None]])
def test_sizes_are_whole_numbers(sizes):
    """A negative or fractional group does not exist."""
    with pytest.raises(InvalidTarget, match="whole number"):
        STATED(sizes)


def test_constants_are_losses():
    """A negative or infinite mu is none."""
    for mu in (-1.0, math.inf, math.nan):
        with pytest.raises(InvalidBudget):
            Constant(mu)
    with pytest.raises(InvalidBudget, match="zCDP only"):
        Policy.of(Constant(1.0, gaussian=False)).mu(1)
