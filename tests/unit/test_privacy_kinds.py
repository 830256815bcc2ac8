"""Every kind of loss: its contract, its curve, its refusals, and the roads between kinds."""

import copy
import math
import pickle
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import pytest

import farthing.privacy.roads as map_
from farthing.errors import InvalidBudget
from farthing.privacy import Approx, BoundedRange, Gdp, Pure, Rdp, Tcdp, Zcdp, convert
from farthing.privacy.roads import RULES, advice, reachable

DELTA = 1e-6
ONE_OF_EACH = [
    Pure(1), Approx(1, 1e-9), Rdp({2: 0.1, 8: 0.4, 32: 1.6}), Zcdp(0.1), Zcdp(0.1, delta=1e-9), Tcdp(0.1, 64), Gdp(0.5),
    BoundedRange(1),
]  # fmt: skip


def test_the_contract():
    """The figures that the theory states."""
    assert Gdp(0.5).epsilon(delta=DELTA) == pytest.approx(2.254085, abs=1e-6)
    assert Zcdp(0.1).epsilon(delta=DELTA) == pytest.approx(2.141939, abs=1e-6)
    assert Zcdp(0.1).epsilon(delta=DELTA, route="classic") == pytest.approx(2.450788, abs=1e-6)
    assert Gdp.from_epsilon(1, delta=DELTA).mu == pytest.approx(0.236704, abs=1e-6)
    assert Zcdp.from_epsilon(1, delta=DELTA).rho == pytest.approx(0.02435, abs=1e-5)
    assert 1 / 8 == BoundedRange(1).to(Zcdp).rho
    assert BoundedRange(1).to(Gdp).mu == pytest.approx(0.62354, abs=1e-3)
    assert Pure(1).to(Zcdp).rho == pytest.approx(math.tanh(0.5), rel=1e-12)
    assert Gdp(1.5) == Gdp(0.5).for_group(3)
    assert Zcdp(9 * Fraction(0.1)) == Zcdp(0.1).for_group(3)
    assert Approx(1, 1e-6).for_group(3).value == 3
    expected = 1e-6 * (1 + math.e + math.e**2)
    assert float(Approx(1, 1e-6).for_group(3).slack) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", ONE_OF_EACH, ids=repr)
def test_values(loss):
    """Losses are frozen, hashable, equal to their copies, and pickle exactly."""
    assert loss == pickle.loads(pickle.dumps(loss))
    assert loss == copy.deepcopy(loss)
    assert hash(loss) == hash(copy.copy(loss))
    assert type(loss).__name__ in repr(loss)
    assert loss == loss.to(type(loss))
    with pytest.raises(AttributeError):
        loss.amount = Fraction(0)


@pytest.mark.parametrize("loss", ONE_OF_EACH, ids=repr)
def test_epsilon_and_delta_are_one_curve(loss):
    """The delta at the epsilon of delta is at most delta, and a little below that epsilon it is more."""
    for delta in (1e-3, 1e-6):
        epsilon = loss.epsilon(delta)
        assert loss.delta(epsilon) <= delta * (1 + 1e-9)
        assert loss.delta(epsilon * (1 - 1e-6)) > delta
        assert loss.profile().epsilon(delta) == epsilon
    assert loss.profile().deltas([0.0, 0.5]).tolist() == pytest.approx([loss.delta(0), loss.delta(0.5)], rel=1e-9)


@pytest.mark.parametrize("loss", ONE_OF_EACH, ids=repr)
def test_no_other_road_to_epsilon_is_shorter(loss):
    """What `epsilon` says is the least of all roads to (epsilon, delta)."""
    explained = loss.explain(Approx, delta=DELTA)

    assert explained.result.value == loss.epsilon(DELTA)
    assert 1 == len(explained.rules)
    assert all(other.amount >= explained.result.amount for other, _ in explained.longer)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_each_rule_holds_for_a_pair_that_has_its_source(rule):
    """What a rule says is never below the profile of a real pair: randomised response, or Gaussian noise."""
    pair = {Gdp: Gdp(1), Zcdp: Zcdp(0.5), Tcdp: Tcdp(0.5, math.inf), Rdp: Zcdp(0.5).to(Rdp)}
    pair |= {Pure: Pure(1), BoundedRange: BoundedRange(2), Approx: Approx(1, 0)}
    result = rule.step(pair[rule.source], Fraction(1e-6))
    bounded = rule.source in {Pure, BoundedRange, Approx}
    for epsilon in (0.0, 0.3, 0.7):
        true_delta = convert.pure_delta(1, epsilon) if bounded else convert.gdp_delta(1, epsilon)
        assert result.delta(epsilon) >= true_delta * (1 - 1e-12)


def test_the_shortest_road_is_taken():
    """By value, not by steps: wide bounded ranges go through pure; narrow ones straight; and it can be seen."""
    wide, narrow = BoundedRange(20).explain(Zcdp), BoundedRange(1).explain(Zcdp)

    assert [Pure, Zcdp] == [rule.target for rule in wide.rules]
    assert [Zcdp] == [rule.target for rule in narrow.rules]
    assert wide.result.rho < 20**2 / 8
    assert "eta^2/8 [CesarR21]" in str(narrow)
    assert "longer: Zcdp(rho=0.462117) by Pure" in str(narrow)
    assert "already" in str(Gdp(1).explain(Gdp))
    assert Zcdp(0.5) == Gdp(1).to(Zcdp)
    assert Gdp(1).to(Rdp).tau(8) == 4


def test_routes_by_name():
    """A named route is taken even where another is shorter, and an unknown one is refused."""
    assert BoundedRange(2).to(Zcdp, route="tight").rho == convert.bounded_range_zcdp(2)
    assert Zcdp(0.1).to(Approx, delta=DELTA, route="classic").value == Zcdp(0.1).epsilon(DELTA, route="classic")
    for ask in (lambda: BoundedRange(2).to(Zcdp, route="scenic"), lambda: Zcdp(0.1).epsilon(DELTA, route="scenic")):
        with pytest.raises(InvalidBudget, match="scenic"):
            ask()


def test_the_tight_price_of_a_bounded_range_holds_at_every_order():
    """The tight rho bounds D_a / a of two-point laws on every interval, for orders to 2000; order 1 attains it."""
    for eta in (0.3, 1.0, 2.0, 6.0, 12.0):
        ratios = []
        for order in (1.0001, 1.1, 1.7, 3, 10, 80, 2000):
            for share in (i / 200 for i in range(1, 200)):
                t = -eta * share
                p = math.expm1(t) / math.expm1(-eta)
                high, low = (order - 1) * (t + eta) + math.log(p), (order - 1) * t + math.log1p(-p)
                top = max(high, low)
                moment = top + math.log(math.exp(high - top) + math.exp(low - top))
                ratios.append(moment / (order - 1) / order)
        assert max(ratios) <= convert.bounded_range_zcdp(eta) * (1 + 1e-9)
        assert max(ratios) == pytest.approx(convert.bounded_range_zcdp(eta), rel=2e-3)


@pytest.mark.parametrize("eta", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_the_curve_of_a_bounded_range_is_its_worst_interval(eta, share):
    """The closed form is the largest delta over all positions of the interval, at 50 digits."""
    epsilon = share * eta
    with mp.workdps(50):
        n, e = mp.mpf(eta), mp.mpf(epsilon)

        def at(s):
            return (1 - mp.exp(s - n)) / (1 - mp.exp(-n)) * max(mp.mpf(0), 1 - mp.exp(e - s))

        worst = max(at(n * i / 2000) for i in range(2001))
        assert convert.bounded_range_delta(eta, epsilon) >= worst
        assert convert.bounded_range_delta(eta, epsilon) == pytest.approx(float(worst), rel=1e-5)


def test_the_renyi_curve_of_randomised_response():
    """pure_renyi is the sum over its two outcomes, at 50 digits, never below and within 1e-12."""
    with mp.workdps(50):
        for epsilon in (0.01, 1.0, 30.0):
            p = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
            for order in (1.125, 2, 64, 1000):
                a = mp.mpf(order)
                truth = mp.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)
                ours = mp.mpf(convert.pure_renyi(epsilon, order))
                assert 0 <= ours - truth <= truth * mp.mpf("1e-12")


def test_renyi_orders_give_the_bound_of_their_theorem():
    """One order gives tau + log(1-1/a) - log(a delta)/(a-1) [CanonneKS20, Prop. 12], at 50 digits."""
    with mp.workdps(50):
        for order, tau in ((2, 0.1), (10, 0.5), (Fraction(3, 2), 0.01)):
            a = mp.mpf(Fraction(order).numerator) / Fraction(order).denominator
            truth = mp.mpf(tau) + mp.log(1 - 1 / a) - mp.log(a * mp.mpf(DELTA)) / (a - 1)
            ours = mp.mpf(Rdp(order, tau).epsilon(DELTA))
            assert 0 <= ours - truth <= truth * mp.mpf("1e-12")
    assert Rdp({2: 0.1, 10: 0.5}).epsilon(DELTA) == min(Rdp(2, 0.1).epsilon(DELTA), Rdp(10, 0.5).epsilon(DELTA))


def test_truncated_lines():
    """A tCDP loss with a large omega is zCDP; a small omega costs; infinite omega leads back to zCDP."""
    assert Zcdp(0.1).epsilon(DELTA) == pytest.approx(Tcdp(0.1, 1000).epsilon(DELTA), rel=1e-9)
    assert Tcdp(0.1, 4).epsilon(DELTA) > 1.5 * Zcdp(0.1).epsilon(DELTA)
    assert Tcdp(0.1, 4).epsilon(DELTA) == pytest.approx(Rdp(4, 0.4).epsilon(DELTA), rel=1e-9)
    assert Zcdp(0.1) == Zcdp(0.1).to(Tcdp).to(Zcdp)
    assert "omega=inf" in repr(Zcdp(0.1).to(Tcdp))
    with pytest.raises(InvalidBudget, match="no conversion"):
        Tcdp(0.1, 64).to(Zcdp)


def test_curves_between_their_orders():
    """Between orders a curve is bounded by convexity, below its first by monotony, beyond its last by nothing."""
    curve = Rdp({2: 0.2, 4: 0.4})

    assert 0.2 == curve.tau(1.5)
    assert Fraction(0.2) < curve.bound(Fraction(3)) < Fraction(0.4)
    assert curve.tau(3) >= 0.3 * (1 - 1e-12)  # the line of zCDP itself
    assert ((2, 1), (8, 1)) == tuple((int(a), int(t)) for a, t in Rdp({2: 5, 8: 1}).curve)
    with pytest.raises(InvalidBudget, match="does not reach"):
        curve.tau(5)


def test_sums_and_order_of_the_new_kinds():
    """Approx adds both numbers, Tcdp keeps the smaller omega, curves add order by order; order is partial."""
    assert Approx(3, 0.375) == Approx(1, 0.25) + Approx(2, 0.125)
    assert Approx(1, 0.125) == Approx(3, 0.375) - Approx(2, 0.25)
    assert Approx(2, 0.5) == Approx(1, 0.25) * 2
    assert not Approx(1, 0.25) <= Approx(2, 0.125)
    assert not Approx(1, 0.25) >= Approx(2, 0.125)
    assert Zcdp(0.5, delta=0.25) == Zcdp(0.25, delta=0.125) * 2
    assert Tcdp(0.75, 8) == Tcdp(0.25, 8) + Tcdp(0.5, 16)
    assert Tcdp(0.25, 16) < Tcdp(0.25, 8)
    assert Tcdp(0.25, 8) == Tcdp(0.5, 8) - Tcdp(0.25, 16)
    assert Rdp({2: 0.5, 8: 1.25}) == Rdp({2: 0.25, 8: 0.625}) * 2
    assert Rdp({2: 0.25, 8: 1}) == Rdp({2: 0.5, 8: 1.25}) - Rdp({2: 0.25, 8: 0.25})
    assert Rdp({2: 0.5, 8: 1.25}) > Rdp({2: 0.25, 8: 0.5})
    assert Rdp(8, 1) != Rdp(4, 1)


def test_bounded_ranges_do_not_add():
    """Adaptively chosen intervals shift with the past, so a sum of bounded ranges is none: price them first."""
    for ask in (lambda: BoundedRange(1) + BoundedRange(1), lambda: BoundedRange(1) * 2):
        with pytest.raises(InvalidBudget, match=r"loss\.to\(Zcdp\)"):
            ask()
    assert Zcdp(0.25) == BoundedRange(1).to(Zcdp) + BoundedRange(1).to(Zcdp)


def test_approximate_zcdp():
    """What is left out is paid from delta; an (epsilon, delta) promise becomes such a loss."""
    loss = Approx(1, 1e-9).to(Zcdp)

    assert Fraction(1e-9) == loss.slack
    assert loss.epsilon(DELTA) > Zcdp(convert.pure_zcdp(1)).epsilon(DELTA)
    for delta in (1e-9, 1e-10):
        with pytest.raises(InvalidBudget, match="left out"):
            loss.epsilon(delta)
    with pytest.raises(InvalidBudget, match=r"to\(Approx, delta=1e-6\)\.for_group\(3\)"):
        loss.for_group(3)
    assert loss.to(Approx, delta=DELTA).for_group(3).slack > 3 * Fraction(DELTA)
    for kind in (Rdp, Tcdp, Gdp):
        with pytest.raises(InvalidBudget, match="no conversion"):
            loss.to(kind)


@pytest.mark.parametrize(
    ("given", "wanted", "hint"),
    [
        (Zcdp(1), Gdp, "can be converted to Approx, Rdp, Tcdp; to Gdp from BoundedRange, Pure"),
        (Gdp(1), Pure, "can be converted to Approx, Rdp, Tcdp, Zcdp"),
        (Rdp(8, 1), Zcdp, "can be converted to Approx"),
        (Approx(1, 1e-6), Gdp, "can be converted to"),
        (Gdp(1), Approx, "1e-6 is usual"),
    ],
)
def test_refusals_say_which_conversion_would_do(given, wanted, hint):
    """Where no theorem leads the refusal names the roads that there are."""
    with pytest.raises(InvalidBudget, match=hint):
        given.to(wanted)


def test_another_currency_is_told_the_way():
    """Adding or comparing two kinds names the conversion that would bring them together."""
    with pytest.raises(InvalidBudget, match=r"state the Pure as loss\.to\(Gdp\)"):
        Gdp(1) + Pure(1)
    with pytest.raises(InvalidBudget, match=r"state the Gdp as loss\.to\(Zcdp\); no road"):
        assert Gdp(1) < Zcdp(1)
    assert "Approx" in advice(Rdp, Approx)
    assert "state both as" in advice(Rdp, BoundedRange) or "loss.to" in advice(Rdp, BoundedRange)
    assert {Approx} == reachable(Rdp)


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, -math.inf, 1e308, "1", None, True])
def test_no_parameter(bad):
    """Every parameter of every kind refuses what is negative, NaN, infinite, overflowing or no number."""
    asks = [
        lambda: Approx(bad, 1e-6), lambda: Approx(1, bad), lambda: Rdp(bad, 1), lambda: Rdp(8, bad),
        lambda: Rdp({8: bad}), lambda: Tcdp(bad, 8),
        lambda: Zcdp(1, delta=bad), lambda: Gdp(1).delta(bad), lambda: Zcdp(1).delta(bad),
        lambda: Pure(1).delta(bad), lambda: Gdp.from_epsilon(bad, delta=1e-6), lambda: Zcdp.from_epsilon(1, delta=bad),
        lambda: Gdp(1).epsilon(bad), lambda: Rdp(8, 1).epsilon(bad), lambda: Gdp(bad), lambda: BoundedRange(bad),
        lambda: convert.gdp_delta(bad, 1), lambda: convert.pure_zcdp(bad), lambda: Gdp(1).to(Approx, delta=bad),
    ]  # fmt: skip
    for ask in asks:
        if bad is None and ask is asks[-1]:
            continue
        with pytest.raises(InvalidBudget, match="rule:"):
            ask()


def test_more_that_is_refused():
    """Orders from 1 down, empty curves, orders without tau, booking a curve, delta 0 with a tail."""
    asks = [
        lambda: Rdp(1, 1), lambda: Rdp({}), lambda: Rdp(8), lambda: Tcdp(1, 1), lambda: Rdp.of_farthings(5),
        lambda: Tcdp.of_farthings(5), lambda: Approx(1, 1), lambda: Zcdp(1, delta=1),
    ]  # fmt: skip
    for ask in asks:
        with pytest.raises(InvalidBudget, match="rule:"):
            ask()
    for loss in (Gdp(1), Zcdp(1), Rdp(8, 1), Tcdp(1, 8)):
        with pytest.raises(InvalidBudget, match="never pure"):
            loss.epsilon(0)


def test_large_losses_convert_at_once():
    """Losses up to the largest that may be named convert without overflow or delay."""
    for value in (1e3, 1e6, 1e9, 1e12):
        assert Gdp(value).epsilon(DELTA) >= value**2 / 2
        assert Zcdp(value).epsilon(DELTA) >= value
        assert Pure(value).to(Zcdp).rho == pytest.approx(value)
        assert Pure(value).to(Gdp).mu == pytest.approx(math.sqrt(8 * value), rel=1e-2)
        assert BoundedRange(value).to(Zcdp).rho <= value * (1 + 1e-15)
        assert 1.0 == Gdp(value).delta(1)


def test_the_page_of_conversions_has_a_row_for_each_rule():
    """docs/reference/conversions.md lists every rule of the map with its theorem."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "conversions.md").read_text(encoding="utf-8")
    for rule in map_.RULES:
        assert f"| {rule.source.__name__} | {rule.target.__name__} | `{rule.formula}` | {rule.theorem} |" in page, str(
            rule
        )
