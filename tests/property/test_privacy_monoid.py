"""Losses form an ordered monoid, and every conversion is monotone and safe."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.rounding import coins_down, coins_up, down, sqrt_down, sqrt_up, up

amounts = st.fractions(min_value=0, max_value=50, max_denominator=10**12)
kinds = st.sampled_from([Gdp, Zcdp, Pure])


@given(kinds, amounts, amounts, amounts)
def test_ordered_monoid(kind: type[Gdp | Zcdp | Pure], a: Fraction, b: Fraction, c: Fraction) -> None:
    """Addition is associative, commutative, has zero, and keeps order."""
    x, y, z = (kind.of_amount(v) for v in (a, b, c))
    zero = kind.of_amount(Fraction(0))

    assert (x + y) + z == x + (y + z)
    assert x + y == y + x
    assert x + zero == x
    assert x + y >= x
    assert (x <= y) == (x + z <= y + z)
    assert x.farthings + y.farthings >= (x + y).farthings


@settings(deadline=None, max_examples=40)
@given(amounts, amounts)
def test_epsilon_grows_with_the_loss(a: Fraction, b: Fraction) -> None:
    """A larger loss never has a smaller epsilon, up to the last digits of the search."""
    small, large = sorted((a, b))
    for kind in (Gdp, Zcdp):
        assert kind.of_amount(small).epsilon(1e-6) <= kind.of_amount(large).epsilon(1e-6) * (1 + 1e-9) + 1e-12


@settings(deadline=None, max_examples=40)
@given(amounts)
def test_gdp_is_never_dearer_than_its_zcdp(a: Fraction) -> None:
    """The exact GDP epsilon is at most the zCDP one of the same Gaussian."""
    assert Gdp.of_amount(a).epsilon(1e-6) <= Zcdp.of_amount(a / 2).epsilon(1e-6) * (1 + 1e-9) + 1e-12


@given(st.fractions(min_value=0, max_value=10**9))
def test_rounding_directions(x: Fraction) -> None:
    """Up is above, down is below, coins too, and roots."""
    assert down(x) <= x <= up(x)
    assert coins_down(x) * Fraction(1, 1 << 40) <= x <= coins_up(x) * Fraction(1, 1 << 40)
    assert Fraction(sqrt_down(x)) ** 2 <= x <= Fraction(sqrt_up(x)) ** 2
