"""Filters as state machines: order never matters to a sum, a no changes nothing, and less never fits worse."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import sweep

from farthing.errors import BudgetExceeded
from farthing.privacy.ex_post import ExPost, LinearBoundary, MixtureBoundary
from farthing.privacy.filters import (
    GdpFilter,
    PureFilter,
    RogersConcurrentFilter,
    RogersExPostFilter,
    RogersUnifiedFilter,
    RogersZcdpFilter,
    ZcdpFilter,
)
from farthing.privacy.loss import BoundedRange, Gdp, Pure, Zcdp
from farthing.privacy.odometers import FilterLikeOdometer, MixtureOdometer

small = st.fractions(min_value=0, max_value=Fraction(1, 4), max_denominator=10**6)
deltas = st.sampled_from([Fraction(0), Fraction(1, 10**8), Fraction(1, 10**7)])
ADDITIVE = [
    (PureFilter.from_epsilon(1, delta=Fraction(1, 10**7)), Pure),
    (ZcdpFilter(Zcdp(Fraction(1, 2)), set_aside=Fraction(1, 10**7)), Zcdp),
    (GdpFilter(Gdp.of_amount(Fraction(1, 2)), set_aside=Fraction(1, 10**7)), Gdp),
    (RogersZcdpFilter(6, Fraction(1, 10**6), set_aside=Fraction(1, 10**7)), Zcdp),
    (RogersUnifiedFilter(6, Fraction(1, 10**6), set_aside=Fraction(1, 10**7)), Gdp),
    (RogersExPostFilter(1, Fraction(1, 10**7)), Pure),
    (RogersConcurrentFilter.from_epsilon(12, delta=Fraction(1, 10**6)), BoundedRange),
]
each = pytest.mark.parametrize(("books", "kind"), ADDITIVE, ids=[type(books).__name__ for books, _ in ADDITIVE])


def let_through(books, asks):
    """Return the filter after all asks that fit, in order."""
    return reduce(lambda state, ask: state.spend(ask) if state.can_spend(ask) else state, asks, books)


def all_fit(books, asks):
    """Tell whether every ask fits after those before it."""
    return all(let_through(books, asks[:n]).can_spend(ask) for n, ask in enumerate(asks))


@each
@settings(max_examples=sweep(15, 30))
@given(amounts=st.lists(small, max_size=6), shuffle=st.randoms(use_true_random=False))
def test_order_of_spends_never_matters(books, kind, amounts, shuffle) -> None:
    """Losses that all fit in one order all fit in every order, and leave the same."""
    asks = [kind.of_amount(amount) for amount in amounts]
    other_way = let_through(books, shuffle.sample(asks, len(asks)))
    if all_fit(books, asks):
        assert all_fit(books, list(reversed(asks)))
        assert let_through(books, asks).remaining == other_way.remaining
    assert other_way.remaining <= books.remaining


@each
@settings(max_examples=sweep(15, 30))
@given(amount=st.fractions(min_value=100, max_value=10**6), delta=deltas)
def test_refusing_changes_nothing(books, kind, amount, delta) -> None:
    """After a no the filter is the one before, and raises the same no again."""
    before, too_much = hash(books), kind.of_amount(amount)

    assert not books.can_spend(too_much, delta=delta)
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            books.spend(too_much, delta=delta)
    assert before == hash(books)


@each
@settings(max_examples=sweep(15, 30))
@given(spends=st.lists(small, max_size=3), pair=st.tuples(small, small), delta=deltas)
def test_less_never_fits_worse(books, kind, spends, pair, delta) -> None:
    """If a loss fits, a smaller one does, and it did before anything else was spent, and without its delta."""
    less, more = sorted(pair)
    after = let_through(books, [kind.of_amount(amount) for amount in spends])
    if after.can_spend(kind.of_amount(more), delta=delta):
        assert after.can_spend(kind.of_amount(less), delta=delta)
        assert after.can_spend(kind.of_amount(more))
        assert books.can_spend(kind.of_amount(more), delta=delta)


@given(runs=st.lists(st.tuples(small, st.fractions(min_value=0, max_value=1)), max_size=12))
def test_realised_losses_never_pass_epsilon(runs) -> None:
    """Whatever caps are declared and whatever they turn out to lose, the sum stays within epsilon."""
    books, lost = RogersExPostFilter(1), Fraction(0)
    for cap, part in runs:
        if cap and books.can_spend(ExPost(Pure.of_amount(cap))):
            books = books.spend(ExPost(Pure.of_amount(cap))).settle(Pure.of_amount(cap * part))
            lost += cap * part
    assert lost <= 1
    assert Pure.of_amount(lost) == books.spent


@given(steps=st.lists(small, min_size=1, max_size=5))
def test_odometers_only_rise(steps) -> None:
    """A bound never falls, and does not depend on the order of what was spent."""
    for odometer in (FilterLikeOdometer(1e-6, tight_at=1), MixtureOdometer(1e-6, gamma=0.01)):
        seen = [odometer]
        for step in steps:
            seen.append(seen[-1].spend(Zcdp(step)))
        backwards = reduce(lambda state, step: state.spend(Zcdp(step)), reversed(steps), odometer)
        assert sorted(state.epsilon for state in seen) == [state.epsilon for state in seen]
        assert backwards == seen[-1]


@given(
    v=st.fractions(min_value=Fraction(1, 10**4), max_value=10**8, max_denominator=10**6),
    factor=st.fractions(min_value=1, max_value=100),
    delta=st.sampled_from([Fraction(99, 100), Fraction(1, 2), Fraction(1, 10**6)]),
)
def test_statements_fall_as_the_noise_grows(v, factor, delta) -> None:
    """A noisier answer never has a larger ex-post loss: the cap at the finest look bounds all others."""
    for psi in (LinearBoundary(delta, tight_at=10), MixtureBoundary(delta, r=10)):
        assert psi.at(v * factor) <= psi.at(v) == psi.until(v).cap
