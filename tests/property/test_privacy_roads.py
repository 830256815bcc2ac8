"""For any losses: conversions are monotone and safe, chains are never shorter than straight roads, groups grow."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.privacy import Approx, BoundedRange, Gdp, Loss, Pure, Rdp, Tcdp, Zcdp, convert
from farthing.privacy.roads import RULES, find

amounts = st.fractions(min_value=Fraction(1, 10**4), max_value=20, max_denominator=10**6)
deltas = st.sampled_from([1e-3, 1e-6, 1e-9])
kinds = st.sampled_from([Pure, Gdp, Zcdp, BoundedRange])


def every(amount: Fraction) -> list[Loss]:
    """Return a loss of each kind of about one size."""
    return [
        Pure(amount), Gdp(amount), Zcdp(amount), BoundedRange(amount), Approx(amount, 1e-12), Tcdp(amount, 40),
        Rdp({2: 2 * amount, 40: 40 * amount}),
    ]  # fmt: skip


@settings(max_examples=15)
@given(amounts, amounts, deltas)
def test_conversions_are_monotone(a: Fraction, b: Fraction, delta: float) -> None:
    """A larger loss is never cheaper in any other currency, up to the last digits of a search."""
    small, large = sorted((a, b))
    for less, more in zip(every(small), every(large), strict=True):
        assert less.epsilon(delta) <= more.epsilon(delta) * (1 + 1e-9) + 1e-12
        assert less.delta(0.5) <= more.delta(0.5) * (1 + 1e-9) + 1e-300
        for kind in {rule.target for rule in RULES if rule.source is type(less)} & {Pure, Gdp, Zcdp}:
            if not (kind is Pure and less.slack) and not (isinstance(less, Tcdp)):
                assert less.to(kind).amount <= more.to(kind).amount * (1 + Fraction(1, 10**9))


@settings(max_examples=15)
@given(amounts)
def test_no_chain_undercuts_what_find_says(amount: Fraction) -> None:
    """The road that is taken is the least of all roads, and a detour through a third kind never lowers it."""
    for kind, target in ((Pure, Zcdp), (Pure, Gdp), (BoundedRange, Zcdp), (BoundedRange, Gdp), (BoundedRange, Pure)):
        found = find(kind(amount), target)
        assert all(found.result <= other for other, _ in found.longer)
        for middle in (Pure, Gdp, Zcdp, BoundedRange):
            reach = {rule.target for rule in RULES if rule.source is middle} | {middle}
            if middle in {rule.target for rule in RULES if rule.source is kind} and target in reach:
                detour = kind(amount).to(middle).to(target).amount
                assert found.result.amount <= detour * (1 + Fraction(1, 10**12))


@settings(max_examples=15)
@given(amounts, st.integers(1, 6), st.integers(1, 6), deltas)
def test_groups_of_groups(amount: Fraction, j: int, k: int, delta: float) -> None:
    """A group of j groups of k is a group of jk; larger groups are promised less; a group of one is the unit."""
    for kind in (Pure, Gdp, Zcdp, BoundedRange):
        loss = kind(amount)
        assert loss.for_group(j).for_group(k) == loss.for_group(j * k)
        assert loss.for_group(k).epsilon(delta) <= loss.for_group(k + 1).epsilon(delta) * (1 + 1e-9) + 1e-12
    line = Tcdp(amount, 400)
    assert line.for_group(j).for_group(k) == line.for_group(j * k)


@settings(max_examples=25)
@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=30), deltas)
def test_arrays_are_the_scalars(values: list[float], delta: float) -> None:
    """For any values and order the array is monotone, and never below nor far above the scalar function."""
    losses = np.array(values)
    pairs = (
        (convert.gdp_epsilons(losses, delta), [convert.gdp_epsilon(Fraction(v) ** 2, delta) for v in values]),
        (convert.zcdp_epsilons(losses, delta), [convert.zcdp_epsilon(v, delta) for v in values]),
        (convert.gdp_deltas(losses, 1), [convert.gdp_delta(Fraction(v) ** 2, 1) for v in values]),
        (convert.zcdp_deltas(losses, 1), [convert.zcdp_delta(v, 1) for v in values]),
    )
    for ours, exactly in pairs:
        assert np.all(np.diff(ours[np.argsort(losses, kind="stable")]) >= 0)
        assert ours.tolist() == pytest.approx(exactly, rel=2e-9, abs=1e-300)
