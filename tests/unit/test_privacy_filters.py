"""Filters as values: one face, by theorem, exact sums, refusals that change nothing, and the table of the docs."""

import importlib.util
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from farthing.errors import BudgetExceeded, InvalidBudget
from farthing.privacy import Rdp, convert
from farthing.privacy.ex_post import BrownianRun, ExPost, LinearBoundary, MixtureBoundary
from farthing.privacy.filters import (
    AdditiveFilter,
    GdpFilter,
    PureFilter,
    RenyiFilter,
    ResidueFilter,
    RogersConcurrentFilter,
    RogersExPostFilter,
    RogersUnifiedFilter,
    RogersZcdpFilter,
    ZcdpFilter,
)
from farthing.privacy.loss import Approx, BoundedRange, Gdp, Loss, Pure, Zcdp

ROOT = Path(__file__).parents[2]
GAINS = {"0.1": (1.781, 2.104), "0.5": (1.495, 1.733), "1": (1.394, 1.604), "2": (1.305, 1.487)} | {
    "5": (1.202, 1.351),
    "10": (1.138, 1.262),
}
CLASSIC = {"0.1": 0.0001803, "0.5": 0.0044438, "1": 0.017469, "2": 0.067574, "5": 0.38535, "10": 1.353}
FILTERS = [
    PureFilter.from_epsilon(1),
    ZcdpFilter.from_epsilon(1, delta=1e-6),
    GdpFilter.from_epsilon(1, delta=1e-6),
    ResidueFilter.from_epsilon(1, delta=1e-6),
    RenyiFilter.from_epsilon(1, delta=1e-6, order=24),
    RogersZcdpFilter.from_epsilon(1, delta=1e-6),
    RogersUnifiedFilter.from_epsilon(1, delta=1e-6),
    RogersExPostFilter.from_epsilon(1, delta=1e-6),
    RogersConcurrentFilter.from_epsilon(1, delta=1e-6),
]
each_filter = pytest.mark.parametrize("books", FILTERS, ids=lambda books: type(books).__name__)


@pytest.fixture(scope="module")
def bench():
    """The script that prints the comparison."""
    spec = importlib.util.spec_from_file_location("bench_filters", ROOT / "bench" / "accuracy" / "filters.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@each_filter
def test_one_face(books):
    """Every filter takes a pure loss, gives the next state, and refuses what is too much."""
    after = books.spend(Pure(0.01))

    assert type(books) is type(after)
    assert books != after
    assert not after.can_spend(Pure(10))
    with pytest.raises(BudgetExceeded) as refused:
        after.spend(Pure(10))
    assert "Pure(epsilon=10)" == refused.value.got
    assert refused.value.rule
    assert refused.value.next_step


@each_filter
def test_a_filter_is_a_value(books):
    """Frozen, equal by content, usable as a key."""
    with pytest.raises((AttributeError, TypeError)):
        books.spent = Pure(0)
    assert 1 == len({books, books.spend(Pure(0.01)), books} - {books.spend(Pure(0.01))})


@each_filter
@pytest.mark.parametrize("delta", [-1e-9, math.nan, math.inf, "0.1", True])
def test_bad_deltas_are_refused(books, delta):
    """A delta that is no number >= 0 is an error, not a no."""
    with pytest.raises(InvalidBudget):
        books.can_spend(Pure(0.01), delta=delta)


@pytest.mark.parametrize("epsilon", GAINS)
def test_totals_are_those_of_the_theory(epsilon):
    """At delta 1e-6: sharper zCDP buys 1.138 to 1.781 times the classic conversion, exact GDP 1.262 to 2.104 times."""
    e = Fraction(epsilon)
    classic = RogersZcdpFilter(e, 1e-6).remaining.amount
    sharper = ZcdpFilter.from_epsilon(e, delta=1e-6).remaining.amount
    gaussian = GdpFilter.from_epsilon(e, delta=1e-6).remaining.amount / 2

    assert math.isclose(CLASSIC[epsilon], classic, rel_tol=3e-4)
    assert GAINS[epsilon] == (
        pytest.approx(float(sharper / classic), abs=6e-4),
        pytest.approx(gaussian / classic, 6e-4),
    )


@pytest.mark.parametrize("epsilon", GAINS)
def test_equal_gaussian_answers_in_the_ratio_of_the_theory(bench, epsilon):
    """Counting whole answers, ours are 1.26 to 2.1 times the classic filter's at delta 1e-6."""
    rows = {row["filter"]: row for row in bench.counts(Fraction(epsilon), 1e-6)}
    ours, classic = rows["GdpFilter"]["gaussian"], rows["RogersZcdpFilter"]["gaussian"]

    assert math.isclose(GAINS[epsilon][1], ours / classic, rel_tol=2 / classic + 4e-4)
    assert classic == rows["RogersUnifiedFilter"]["gaussian"]


def test_theorem_2_is_its_inequality():
    """The last Gaussian that fits keeps rho + 2 sqrt(rho log(1/delta)) at most epsilon; the next one would not."""
    books, one = RogersZcdpFilter(Fraction(1, 2), 1e-6), Zcdp(0.0005)
    count = 0
    while books.can_spend(one):
        books, count = books.spend(one), count + 1

    def classic(rho):
        return rho + 2 * math.sqrt(rho * math.log(1e6))

    assert 8 == count
    assert classic(0.0005 * count) <= 0.5 < classic(0.0005 * (count + 1))


@pytest.mark.thorough
def test_the_table_counts_what_the_filters_do(bench):
    """The n that is printed, asked for at once, is the n that one gets by asking one by one."""
    for row in bench.counts(Fraction(1, 10), 1e-6)[:2]:
        kind, books = {
            "GdpFilter": (Gdp, GdpFilter.from_epsilon(0.1, delta=1e-6)),
            "ZcdpFilter": (Zcdp, ZcdpFilter.from_epsilon(0.1, delta=1e-6)),
        }[row["filter"]]
        for name, turns in {
            "gaussian": [bench.GAUSSIAN],
            "selection": [bench.SELECTION],
            "mixed": [bench.GAUSSIAN, bench.SELECTION],
        }.items():
            state, count = books, 0
            while state.can_spend(turns[count % len(turns)].to(kind)):
                state, count = state.spend(turns[count % len(turns)]), count + 1
            assert row[name] == pytest.approx(count, abs=1)


def test_the_page_shows_what_the_script_prints(bench):
    """docs/reference/filters.md holds the current table."""
    page = (ROOT / "docs" / "reference" / "filters.md").read_text(encoding="utf-8")

    assert bench.markdown(bench.run()) in page


def test_prices_of_other_currencies():
    """A selection costs eta^2/8 in zCDP and pi/2 times that in GDP; zCDP has no way into a GDP or a pure filter."""
    eta = BoundedRange(Fraction(1, 100))
    zcdp, gdp = ZcdpFilter(Zcdp(1)).spend(eta), GdpFilter(Gdp(1)).spend(eta)

    assert Fraction(1, 80_000) == zcdp.spent.amount
    assert math.isclose(math.pi / 2, gdp.spent.amount / 2 / zcdp.spent.amount, rel_tol=1e-4)
    for books in (GdpFilter(Gdp(1)), PureFilter(Pure(1)), RogersExPostFilter(1, 1e-6)):
        with pytest.raises(InvalidBudget, match="no conversion"):
            books.can_spend(Zcdp(0.001))


def test_approximate_terms_use_what_was_set_aside():
    """Deltas add up to set_aside and no further; without one, every approximate term is refused."""
    books = GdpFilter.from_epsilon(1, delta=1e-6, set_aside=1e-7).spend(Gdp(0.01), delta=6e-8)

    assert not books.can_spend(Gdp(0.01), delta=5e-8)
    assert books.spend(Gdp(0.01), delta=4e-8).can_spend(Gdp(0.01))
    assert Fraction(1e-7) - Fraction(6e-8) == books.delta_left
    assert not GdpFilter.from_epsilon(1, delta=1e-6).can_spend(Gdp(0), delta=1e-30)
    assert books.total < GdpFilter.from_epsilon(1, delta=1e-6).total
    with pytest.raises(BudgetExceeded, match="delta 5e-08"):
        books.spend(Gdp(0.01), delta=5e-8)
    with pytest.raises(InvalidBudget, match="nothing is left of delta"):
        ZcdpFilter.from_epsilon(1, delta=1e-6, set_aside=1e-6)


def test_losses_that_leave_events_out_use_it_too():
    """Approx(eps, delta) is Pure(eps) but for delta, in every filter; an approximate Zcdp brings its own delta."""
    for books in (
        PureFilter.from_epsilon(1, delta=1e-6),
        ZcdpFilter.from_epsilon(1, delta=1e-6, set_aside=1e-7),
        GdpFilter.from_epsilon(1, delta=1e-6, set_aside=1e-7),
        RogersZcdpFilter(1, 1e-6, set_aside=1e-7),
        RogersExPostFilter(1, 1e-6),
    ):
        assert books.spend(Approx(0.01, 1e-8)) == books.spend(Pure(0.01), delta=1e-8)
        assert not books.can_spend(Approx(0.01, 1e-3))
    books = ZcdpFilter(Zcdp(1), set_aside=1e-7)
    assert books.spend(Zcdp(0.5, 1e-8)) == books.spend(Zcdp(0.5), delta=1e-8)
    assert not books.can_spend(Zcdp(0.5, 6e-8), delta=6e-8)


def test_rogers_zcdp_with_approximate_terms():
    """Theorem 2 with delta' for the conversion and delta'' for the terms."""
    books = RogersZcdpFilter(1, 1e-6, set_aside=5e-7)

    assert convert.zcdp_from_epsilon_classic(1, Fraction(1e-6) - Fraction(5e-7)) == books.remaining.amount
    assert not books.spend(Zcdp(0.001), delta=3e-7).can_spend(Zcdp(0.001), delta=3e-7)


def test_ex_post_declares_then_settles():
    """The cap is booked before, the realised loss after; the delta stays."""
    books = RogersExPostFilter(epsilon=1, delta=1e-6)
    running = books.spend(ExPost(cap=Pure(0.75), delta=4e-7))
    done = running.settle(Pure(0.25))

    assert Pure(0.25) == running.remaining
    assert Pure(0.75) == done.remaining
    assert not running.can_spend(Pure(0.5))
    assert done.can_spend(ExPost(cap=Pure(0.75), delta=6e-7))
    assert not done.can_spend(ExPost(cap=Pure(0.76), delta=0))
    assert not done.can_spend(ExPost(cap=Pure(0.1), delta=7e-7))


@pytest.mark.parametrize("books", [RogersExPostFilter(1, 1e-6), RogersConcurrentFilter.from_epsilon(2, delta=1e-6)])
def test_settling_is_once_and_below_the_cap(books):
    """Nothing is settled above its cap, twice, without a run, or after the next one began."""
    running = books.spend(ExPost(cap=Pure(0.5)))
    for state, realised in (
        (books, Pure(0)),
        (running, Pure(0.51)),
        (running.settle(Pure(0.25)), Pure(0.25)),
        (running.spend(ExPost(cap=Pure(0.25))), Pure(0.3)),
    ):
        with pytest.raises(InvalidBudget, match="not one that was let through"):
            state.settle(realised)


def test_unified_charges_a_run_for_where_it_stopped():
    """Information t costs t D^2/2, in however many looks."""
    books = RogersUnifiedFilter(1, 1e-6)
    run = BrownianRun(stop=Fraction(1, 900), sensitivity=3)
    second = run.further(Fraction(2, 900))
    looks = books.spend(run).spend(second).spend(second.further(Fraction(3, 900)))

    assert Zcdp(Fraction(3, 900) * 9 / 2) == looks.spent
    assert looks.spent == books.spend(BrownianRun(stop=Fraction(3, 900), sensitivity=3)).spent
    assert not looks.can_spend(BrownianRun(stop=Fraction(4, 900), start=Fraction(3, 900), sensitivity=3))


def test_theorem_2_takes_no_brownian_run():
    """Only the filter whose theorem covers stopped runs takes them by that name; ours do, as fresh measurements."""
    run = BrownianRun(stop=0.001)

    with pytest.raises(InvalidBudget, match="RogersUnifiedFilter"):
        RogersZcdpFilter(1, 1e-6).can_spend(run)
    with pytest.raises(InvalidBudget, match="no conversion"):
        PureFilter(Pure(1)).can_spend(run)
    assert GdpFilter(Gdp(1)).spend(run).spent.amount == Fraction(0.001)
    assert ZcdpFilter(Zcdp(1)).can_spend(run)


def test_concurrent_keeps_two_totals():
    """What is left on one side cannot be moved to the other; the promise is the sum."""
    books = RogersConcurrentFilter(RogersZcdpFilter(0.5, 1e-7), RogersExPostFilter(0.25, 1e-7))
    full = books.spend(ExPost(cap=Pure(0.25)))

    assert Fraction(3, 4) == books.epsilon
    assert 2 * Fraction(1e-7) == books.delta
    assert Pure(0) == full.remaining.ex_post
    assert books.remaining.zcdp == full.remaining.zcdp
    assert not full.can_spend(ExPost(cap=Pure(0.01)))
    assert full.can_spend(Pure(0.01))


def test_a_hundred_runs_are_charged_eleven():
    """Runs that together fit (1, 1e-6) in the zCDP filter add up to 11.4 by ex-post statements of delta/100 each."""
    total = RogersZcdpFilter(1, 1e-6).remaining.amount
    variance = 1 / (2 * total / 100)
    one = LinearBoundary(delta=Fraction(1e-6) / 100, tight_at=variance).at(variance)

    assert math.isclose(11.4, (one * 100).value, abs_tol=0.05)
    assert one * 100 > Pure(1)


def test_boundaries_are_their_formulas():
    """Both as in theory, rounded up by at most a farthing, falling as the variance grows."""
    d, delta = 3, 1e-4
    log = math.log(1 / delta)
    linear, mixture = LinearBoundary(delta, tight_at=50, sensitivity=d), MixtureBoundary(delta, r=7, sensitivity=d)
    a, b = math.sqrt(50 * log / 2), math.sqrt(log / 100)
    for v in (1.0, 50.0, 2000.0):
        line = d**2 / (2 * v) + d * b + d * a / v
        mix = d**2 / (2 * v) + d / v * math.sqrt(2 * (v + 7) * math.log(math.sqrt((v + 7) / 7) / delta))
        assert math.isclose(line, linear.at(v).value, rel_tol=1e-10)
        assert math.isclose(mix, mixture.at(v).value, rel_tol=1e-10)
        assert linear.at(v) > linear.at(v + 1)
        assert mixture.at(v) > mixture.at(v + 1)
    assert ExPost(cap=mixture.at(50), delta=delta) == mixture.until(50)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PureFilter(1),
        lambda: GdpFilter(Zcdp(1)),
        lambda: ZcdpFilter.from_epsilon(0, delta=1e-6),
        lambda: ZcdpFilter.from_epsilon(1, delta=0),
        lambda: GdpFilter.from_epsilon(math.nan, delta=1e-6),
        lambda: GdpFilter.from_epsilon(1, delta=1),
        lambda: RogersZcdpFilter(-1, 1e-6),
        lambda: RogersZcdpFilter(1, 0),
        lambda: RogersExPostFilter(1, 1.5),
        lambda: RogersConcurrentFilter.from_epsilon(1, delta=1e-6, share=1),
        lambda: ExPost(cap=Zcdp(1)),
        lambda: ExPost(cap=Pure(1), delta=1),
        lambda: BrownianRun(stop=1, start=1),
        lambda: BrownianRun(stop=1, sensitivity=0),
        lambda: BrownianRun(stop=1).further(1),
        lambda: LinearBoundary(delta=0, tight_at=1),
        lambda: MixtureBoundary(delta=0.1, r=0),
        lambda: LinearBoundary(delta=0.1, tight_at=1).at(0),
        lambda: GdpFilter(Gdp(1)).can_spend(ExPost(Pure(1))),
        lambda: GdpFilter(Gdp(1)).can_spend(0.1),
        lambda: RogersZcdpFilter(1, 1e-6).can_spend(0.1),
    ],
)
def test_bad_input_is_refused_by_name(make):
    """Totals, deltas, runs and losses that are none say the rule and the next step."""
    with pytest.raises(InvalidBudget) as refused:
        make()
    assert refused.value.rule


def test_the_old_name_still_sums():
    """AdditiveFilter works for any one currency."""
    books = AdditiveFilter(total=Zcdp(1)).spend(Zcdp(0.25)).spend(Pure(1))

    assert isinstance(books.remaining, Loss)
    assert Zcdp(0.25) + Zcdp(convert.pure_zcdp(1)) == books.spent


def test_the_renyi_filter_keeps_to_one_order():
    """It adds divergences at its own order, and what it lets through is (epsilon, delta)-DP at that order alone."""
    books = RenyiFilter.from_epsilon(1, delta=1e-6, order=24)
    after = books.spend(Gdp(0.1)).spend(BoundedRange(0.05))

    (order, spent), total = after.spent.curve[0], books.total
    assert 24 == order
    assert math.isclose(spent, 24 * 0.005 + convert.bounded_range_renyi(0.05, 24), rel_tol=1e-9)
    assert total.epsilon(1e-6) <= 1 < Rdp(24, total.curve[0][1] + Fraction(1, 2**30)).epsilon(1e-6)


@pytest.mark.parametrize("eta", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("order", [1.125, 2, 24, 256])
def test_the_renyi_curve_of_a_choice_is_its_worst_interval(eta, order):
    """The closed form is the largest divergence over all intervals of losses, and below the zCDP line and the range."""
    t = np.linspace(1e-6, 1 - 1e-6, 20001) * eta
    high = -np.expm1(t - eta) / -math.expm1(-eta)  # the chance under P of the larger loss t, the other being t - eta
    moment = np.logaddexp(np.log(high) + (order - 1) * t, np.log(1 - high) + (order - 1) * (t - eta))
    worst = float(moment.max()) / (order - 1)

    assert worst <= convert.bounded_range_renyi(eta, order) + 1e-13
    assert math.isclose(worst, convert.bounded_range_renyi(eta, order), rel_tol=1e-5)
    assert convert.bounded_range_renyi(eta, order) <= min(order * eta**2 / 8, eta)
