"""The residue filter: prices of choices beside their least, the certificate of the constants, the best adversary."""

import importlib.util
import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr
from sweeps import sweep

from farthing.errors import BudgetExceeded
from farthing.privacy.filters import GdpFilter, ResidueFilter
from farthing.privacy.loss import BoundedRange, Gdp, Pure, Zcdp
from farthing.privacy.residue import LEAST_KAPPA, MOST_KAPPA, choice_cost, choice_price, choices, choices_price

ROOT = Path(__file__).parents[2]
BEST = Fraction(1, 10)


def _bench():
    """The script that certifies the constants."""
    spec = importlib.util.spec_from_file_location("bench_residue", ROOT / "bench" / "accuracy" / "residue.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BENCH = _bench()


def put(x, variance):
    """The hockey-stick divergence of N(0,1) against N(mu,1) at epsilon = log x, mu^2 = variance."""
    if variance == 0:
        return np.maximum(0.0, 1 - x)
    mu, e = math.sqrt(variance), np.log(x)
    return np.exp(log_ndtr(mu / 2 - e / mu)) - x * np.exp(log_ndtr(-mu / 2 - e / mu))


def worst_choice(g, x, eta):
    """The largest chord of log-length eta of a convex function, at each x, over many places of the chord."""
    best = np.zeros_like(x)
    for part in np.linspace(0, 1, 401):
        low = x * math.exp(-part * eta)
        share = (x - low) / (low * math.expm1(eta))
        best = np.maximum(best, (1 - share) * g(low) + share * g(low * math.exp(eta)))
    return best


@pytest.mark.parametrize("eta", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("kappa", [0.0625, 0.25, 1.0, 4.0, 30.0])
def test_a_choice_is_worth_its_price_against_every_chord(eta, kappa):
    """T put_v <= put_(v+c) at every epsilon, for small and large ranges, found without the reduction of the proof."""
    left = kappa * eta**2
    price = float(choice_price(eta, left))
    x = np.exp(np.linspace(-4, 4, 161) * (math.sqrt(left + price) + eta / 2))

    assert (worst_choice(lambda at: put(at, left), x, eta) <= put(x, left + price) + 1e-15).all()


def test_a_cheaper_choice_is_caught():
    """The same comparison refutes a price that is 2 % lower, and the zCDP price where little is left."""
    eta, left = 0.1, 0.01
    x = np.exp(np.linspace(-0.5, 0.5, 101))
    price = float(choice_price(eta, left))

    assert (worst_choice(lambda at: put(at, left), x, eta) > put(x, left + 0.98 * price)).any()
    assert (worst_choice(lambda at: put(at, left / 4), x, eta) > put(x, left / 4 + eta**2 / 4)).any()


def test_the_certificate_holds():
    """At every step of kappa the inequality of the proof holds with a margin; a sample of steps in the quick tier."""
    points = BENCH.kappas()

    assert 1 / 16 == points[0]
    assert float(MOST_KAPPA) <= points[-1] * BENCH.RATIO
    assert all(high <= low * BENCH.RATIO * (1 + 1e-12) for low, high in pairwise(points))
    assert BENCH.certified(sweep(points[::47], points)) > 1e-5


def test_the_certificate_refutes_a_smaller_constant():
    """With a charge below what the middle needs, the least margin is negative."""
    for kappa in (0.1, 1.0):
        assert BENCH.margin(kappa, BENCH.least(kappa) * 0.999) < 0 < BENCH.margin(kappa, BENCH.allowed(kappa))


def test_the_formula_is_what_is_charged():
    """The script certifies the formula that the library uses, at every kappa of its steps."""
    for kappa in (*BENCH.kappas()[::10], 4.0, 100.0):
        price = choice_price(BEST, Fraction(kappa) * BEST**2)
        assert math.isclose(BENCH.allowed(kappa), price / BEST**2, rel_tol=1e-9)
        assert price >= Fraction(BENCH.least(min(kappa, 50.0))) * BEST**2
    assert choice_price(BEST, LEAST_KAPPA * BEST**2 * Fraction(99, 100)) == BoundedRange(BEST).to(Gdp).amount


@given(st.fractions(Fraction(1, 10**6), 3), st.fractions(0, 20), st.fractions(0, 20))
def test_prices_fall_as_more_is_left_and_rise_with_the_range(eta, one, other):
    """A choice never costs more than alone, nor less than its zCDP price; more left never costs more."""
    low, high = sorted((one * eta**2, other * eta**2))

    assert eta**2 / 4 < choice_price(eta, high) <= choice_price(eta, low) or eta > 1
    assert choice_price(eta, high) <= choice_price(eta, low) <= BoundedRange(eta).to(Gdp).amount
    assert choice_price(eta, low) <= choice_price(eta * 2, low)


@given(st.fractions(Fraction(1, 1000), 1), st.fractions(0, 30))
def test_what_is_taken_is_priced_by_what_is_left_after_it(eta, left):
    """`choice_cost` returns a price that is enough for what it leaves, or the price alone, which does not fit."""
    left *= eta**2
    price = choice_cost(eta, left)

    assert price >= choice_price(eta, left - price) if price <= left else price == choice_price(eta, 0)


def test_several_choices_are_one_at_first_and_nearly_their_zcdp_price_at_last():
    """One choice costs what it costs alone; a hundred 2 % more than in zCDP; other currencies add."""
    one = BoundedRange(Fraction(1, 100))

    assert choices(one, 1, Gdp) == one.to(Gdp)
    assert choices(one, 7, Zcdp) == one.to(Zcdp) * 7
    assert choices(one, 7, Pure) == one.to(Pure) * 7
    assert 1 < choices_price(one.amount, 100) / (100 * one.amount**2 / 4) < 1.02
    assert 1 < choices_price(one.amount, 10**9) / (10**9 * one.amount**2 / 4) < 1.012


@pytest.mark.parametrize("many", [1, 2, 3, 5])
def test_the_best_adversary_against_several_choices_stays_below_their_price(many):
    """Chords of chords: the exact value of the best adaptive choices, at every epsilon, is below the Gaussian's."""
    eta, points = 0.2, 40
    x = np.exp(np.arange(-points * many, points * many + 1) * eta / points)
    value = np.maximum(0.0, 1 - x)
    for _ in range(many):
        padded = np.concatenate([1 - x[0] * np.exp(-eta * np.arange(points, 0, -1) / points), value, np.zeros(points)])
        new = np.zeros_like(value)
        for down in range(points + 1):
            at = np.arange(len(x)) + points - down
            share = -math.expm1(-down * eta / points) * math.exp(down * eta / points) / math.expm1(eta)
            new = np.maximum(new, (1 - share) * padded[at] + share * padded[at + points])
        value = new

    price = float(choices_price(Fraction(1, 5), many))
    assert (value <= put(x, price) + 1e-12).all()
    assert (value > put(x, price * (0.99 if many < 2 else 0.9))).any()  # what is left is priced as Gaussian noise is


def stopped(eta, many, charged):
    """The least margin of put_S over an adversary who ends after any choice, and spends all but what is charged.

    S is the price of all `many` choices; ending after m of them leaves S - charged(m).
    """
    total = float(choices_price(eta, many))
    size = float(eta)
    logs = np.linspace(-3, 3, 601) * (math.sqrt(total) + many * size)
    x = np.exp(logs)
    value = put(x, 0.0)
    for made in reversed(range(many)):

        def after(at, value=value, made=made):
            """What comes after the choice: it goes on, or ends and spends what is left."""
            going = np.interp(np.log(at), logs, value, left=np.nan, right=0.0)
            going = np.where(np.isnan(going), 1 - at, going)
            return np.maximum(going, put(at, max(total - charged(made + 1), 0.0)))

        value = worst_choice(after, x, size)
    return float((put(x, total) - value).min())


@pytest.mark.parametrize("many", [2, 3, 5])
def test_the_data_may_decide_how_many_choices_are_made(many):
    """Whoever ends early is charged for what was made, and cannot spend the rest to a better end; half is caught."""
    eta = Fraction(1, 2)

    assert stopped(eta, many, lambda made: float(choices_price(eta, made))) > -1e-4
    assert stopped(eta, many, lambda made: float(choices_price(eta, made)) / 2) < -1e-3


def test_books_of_choices_and_gaussians():
    """Choices come off what is left at nearly their zCDP price, Gaussians at mu^2, pure losses as twice the range."""
    books = ResidueFilter.from_epsilon(1, delta=1e-6)
    choice = BoundedRange(Fraction(1, 50))
    after = books.spend(choice)

    assert after.spent.amount == choice_cost(choice.amount, books.total.amount)
    assert after.spent.amount < Fraction(102, 100) * choice.amount**2 / 4
    assert books.spend(Pure(Fraction(1, 100))) == after
    assert after.spend(Gdp(0.1)).spent.amount == after.spent.amount + Gdp(0.1).amount
    with pytest.raises(BudgetExceeded):
        books.spend(BoundedRange(1))


def test_the_filter_lets_as_many_choices_through_as_they_are_worth_together():
    """Asked one by one, choices end where their price together passes the total, and well after the plain filter."""
    books, choice = ResidueFilter(Gdp(Fraction(1, 10))), BoundedRange(Fraction(1, 50))
    plain, counts = GdpFilter(Gdp(Fraction(1, 10))), []
    for state in (books, plain):
        made, now = 0, state
        while now.can_spend(choice):
            now, made = now.spend(choice), made + 1
        counts.append(made)

    together = max(k for k in range(200) if choices_price(choice.amount, k) <= books.total.amount)
    assert together - 1 <= counts[0] <= together
    assert counts[0] > 1.4 * counts[1]


releases = st.lists(st.tuples(st.sampled_from([0.02, 0.1, 0.3, 1.0]), st.booleans()), min_size=1, max_size=25)


def spent_on(books, path):
    """Return books after choices of some ranges, and Gaussian noise of a fifth of the range as mu, one by one."""
    for size, choice in path:
        books = books.spend(BoundedRange(size) if choice else Gdp(size / 5))
    return books


def fits(path, total):
    """Return whether a rule that starts with a total lets releases through, each choice at its least price; floats."""
    left = total
    for size, choice in path:
        eta = Fraction(size)
        if not choice:
            left -= (size / 5) ** 2
            continue
        low, high = eta**2 / 16, Fraction(max(left, 0.0))
        alone = left - float(choice_price(eta, 0))
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if middle + choice_price(eta, middle) <= left else (low, middle)
        left = max(alone, float(low) if low + choice_price(eta, low) <= left else -1.0)
        if left < 0:
            return False
    return left >= 0


@given(releases)
@settings(max_examples=15)
def test_what_holds_is_the_least_total_that_lets_it_through(path):
    """A rule that starts with it lets the same releases through, with 1 % less it does not; and it never falls."""
    books = spent_on(ResidueFilter(Gdp(100)), path)
    least = books.holds.amount

    assert books.spent.amount <= least <= spent_on(GdpFilter(Gdp(100)), path).spent.amount
    assert fits(path, float(least) * (1 + 1e-6))
    assert not fits(path, float(least) * 0.99)
    for more in (BoundedRange(0.01), Gdp(0.001)):
        assert books.spend(more).holds >= books.holds


@pytest.mark.parametrize("many", [1, 2, 3, 10, 40])
def test_choices_of_one_range_hold_together_as_they_are_priced_together(many):
    """What holds after k choices is `choices_price` of k, and after much Gaussian noise nearly their zCDP price."""
    books = spent_on(ResidueFilter(Gdp(10)), [(0.1, True)] * many)

    assert books.holds.amount == choices_price(BoundedRange(0.1).amount, many)
    after = books.spend(Gdp(1))
    assert after.holds == after.spent


def test_reading_what_was_spent_as_what_holds_is_caught():
    """Planted: one choice, randomised response at half its range, is easier to test than what it took out says."""
    books = ResidueFilter(Gdp(10)).spend(BoundedRange(1))
    apart = math.tanh(1 / 4)

    assert apart > 2 * ndtr(books.spent.value / 2) - 1 + 0.01
    assert apart <= 2 * ndtr(books.holds.value / 2) - 1 + 1e-9


def test_the_page_shows_what_the_script_prints():
    """docs/proofs/privacy.residue.md holds the current table."""
    assert BENCH.table() in (ROOT / "docs" / "proofs" / "privacy.residue.md").read_text(encoding="utf-8")
