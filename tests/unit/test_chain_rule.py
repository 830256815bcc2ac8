"""The rule on a chain of Laplace noise: critical values, the recursion behind them, schedules."""

import math

import numpy as np
import pytest

from farthing.accuracy import Schedule, critical_value
from farthing.accuracy import laplace_stop_rule as rules
from farthing.accuracy.critical_search import largest
from farthing.accuracy.jumps import JumpMap
from farthing.accuracy.laplace_stop_rule import GATE, LaplaceLookChain, gate, gates
from farthing.accuracy.laplace_stop_rule import critical_value as chain_value
from farthing.accuracy.noise_laws import COARSEST, GAUSSIAN, LAPLACE
from farthing.accuracy.stop_rule import ABSURD, step_ratio, tamed

pytestmark = pytest.mark.thorough

PER = 2.0**-40


def chain(relative, critical, *, gates_passed=2, signed=False, times=1.0):
    """Return the recursion of one c."""
    ratio = step_ratio(relative)
    span, boundary = gates_passed * gate(ratio), critical / relative
    jumps = JumpMap(boundary, ratio, gates(span, ratio), law=LAPLACE)
    most = largest(relative) * boundary * times
    return LaplaceLookChain.run(relative, critical, span=span, jumps=jumps, beta=0.05, largest=most, signed=signed)


@pytest.mark.parametrize(("relative", "times"), [(0.05, 1.014), (0.1, 1.026), (0.2, 1.054), (0.3, 1.094)])
def test_the_mean_paid_is_near_the_oracle(relative, times):
    """Well above the kink, at beta = .05: at most 1.1 times what the best single release pays that knows the truth."""
    critical = chain_value(relative, 0.05, 2 * gate(step_ratio(relative)), step_ratio(relative))
    rule = chain(relative, critical)
    signal = 0.99 * largest(relative) * rule.map.boundary

    assert times > float(rule.paid(np.array([signal]))[0]) * signal * relative / math.log(20)


@pytest.mark.parametrize("relative", [0.1, 0.3, 0.5])
def test_every_truth_is_covered(relative):
    """At the critical value, over a sweep finer and wider than the search's."""
    ratio = step_ratio(relative)
    rule = chain(relative, chain_value(relative, 0.05, 2 * gate(ratio), ratio), times=8)
    theta = np.concatenate([np.linspace(0, 2, 400), np.geomspace(2, 8 * largest(relative), 200)])

    assert 0.05 >= rule.misses(theta * rule.map.boundary).max()


@pytest.mark.parametrize("relative", [0.1, 0.3, 0.5])
def test_a_plain_rule_is_caught(relative):
    """The c of a single look, or that of Gaussian noise, misses too often."""
    theta = np.linspace(0.5, 1.2, 100)
    plain, gaussian = math.log(20), critical_value(relative, 0.05, 640, step_ratio(relative))

    assert 0.0525 < chain(relative, plain).misses(theta * plain / relative).max()
    assert 0.09 < chain(relative, gaussian).misses(theta * gaussian / relative).max()


def test_far_below_the_kink_a_miss_is_one_tail():
    """There no look stops early, and the last is Y +- a*."""
    assert math.exp(-3.1) == pytest.approx(float(chain(0.05, 3.1).misses(np.array([0.0]))[0]), rel=1e-6)


def test_signed_rules_cost_more_at_large_targets():
    """Stops on the wrong side of zero only matter where the boundary is near."""
    small, large = ([chain_value(r, 0.05, 160, 1.02, signed=signed) for signed in (False, True)] for r in (0.1, 0.5))

    assert small[0] == pytest.approx(small[1], rel=1e-4)
    assert large[0] < large[1]


@pytest.mark.parametrize(("relative", "times"), [(1e-6, 1.03), (0.001, 1.03), (0.0011, 1.01), (0.004, 1.01)])
def test_small_targets_are_one_look(relative, times):
    """Looks far apart: hardly more than the c of a single one."""
    assert 1 < chain_value(relative, 0.05, 1248, step_ratio(relative)) / math.log(20) < times


def test_bounds_of_integer_noise_are_in_the_tail():
    """P[|N| > h] <= beta for the integer law, at its coarsest step, whatever h is between steps."""
    q, c = math.exp(-COARSEST), LAPLACE.two_sided(0.05)
    steps = math.floor(c / COARSEST) + 1

    assert 2 * q**steps / (1 + q) <= 0.05


def test_a_schedule_of_epsilons():
    """Epsilon, not its square, rises from look to look; the floor is the target; every gate is a look."""
    plan = Schedule.plan(0.1, 50.0, 0.05, per_grain=PER, cap_grains=1 << 41, law=LAPLACE)
    ratio = plan.looks[-1] / plan.looks[-2]

    assert math.sqrt(1.01) == pytest.approx(ratio, rel=1e-6)
    assert plan.critical / 50 / PER == pytest.approx(int(plan.looks[-1]), abs=2)
    assert 0.999 * 50 < plan.floor <= 50
    assert {0, gate(1.01)} < {len(plan.looks) - 1 - int(i) for i in np.flatnonzero(plan.looks)}
    assert gates(len(plan.looks) - 1, 1.01) == plan.jumps.public


def test_laws_agree_with_their_names():
    """Precision and amount are inverse; epsilon grows by the root of the ratio."""
    for law in (GAUSSIAN, LAPLACE):
        assert 7.0 == pytest.approx(law.amount(law.precision(7.0, 0.3), 0.3))
        assert law.precision(law.growth(1.21), 1.0) == pytest.approx(1.1)


@pytest.mark.parametrize("beta", [0.3, 0.05, 1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("relative", [0.0015, 0.0031, 0.01, 0.09, 0.14, 0.99])
def test_looks_are_followed_once(relative, beta, monkeypatch):
    """The table is so near that a plan follows its looks once, mostly; each look has few enough cells."""
    relative = tamed(relative, beta, LAPLACE)
    ratio = step_ratio(relative)
    runs, honest = [], LaplaceLookChain.run.__func__
    monkeypatch.setattr(
        LaplaceLookChain, "run", classmethod(lambda *given, **more: runs.append(honest(*given, **more)) or runs[-1])
    )
    rules.critical_value.__wrapped__(relative, beta, 4 * gate(ratio), ratio, signed=True)

    assert len(runs) <= (2 if relative < 0.5 else 3)
    assert sum(len(look.chance) for look in runs[0].looks) < 2_500_000


def test_every_rule_with_steps_has_a_hint():
    """The table has no gap between its bands, and reaches up to the largest target there is."""
    for beta in np.geomspace(1e-12, 0.1, 12):
        for asked in [*np.geomspace(0.0031, 0.15, 60), *np.linspace(0.1501, 0.9999, 60)]:
            relative = tamed(float(asked), float(beta), LAPLACE)

            assert rules.hint(relative, float(beta), step_ratio(relative)) > LAPLACE.two_sided(float(beta))


@pytest.mark.parametrize("told", [0.97, 1.0, 1.1])
def test_a_wrong_table_changes_no_constant_by_much(told, monkeypatch):
    """A hint that is too low is raised, and one that is too high is lowered: to within half a percent."""
    span, plain = 2 * gate(1.01), 3.0639
    monkeypatch.setattr(rules, "hint", lambda *_: told * plain)

    assert rules.critical_value.__wrapped__(0.1, 0.05, span, 1.01) == pytest.approx(plain, rel=0.005)


def test_no_exponent_overflows_at_small_targets():
    """At high confidence the boundary is thousands of noise scales away: c is hardly above that of a single look."""
    for relative in (0.0011, 0.003, 0.0031, 0.006):
        assert 1 <= chain_value(relative, 1e-12, 3 * 832, step_ratio(relative)) / LAPLACE.two_sided(1e-12) < 1.001


def test_loose_targets_tell_no_group_ten_times_too_much():
    """By the recursion over a third of all looks: the rule that is made stays below a half of one in ten million."""
    ratio = 1.02
    span = 4 * gate(ratio)
    for relative, likely in ((tamed(0.3, 0.05, LAPLACE), (0.0, ABSURD / 2)), (0.3, (100 * ABSURD, 1.0))):
        critical = rules.hint(relative, 0.05, ratio) or rules.critical_value(relative, 0.05, span, ratio, signed=True)
        jumps = JumpMap(critical / relative, ratio, gates(span, ratio), law=LAPLACE)
        rule = LaplaceLookChain.run(
            relative, critical, span=span, jumps=jumps, beta=1e-13, largest=jumps.boundary * GATE**3.0, signed=True
        )
        worst = max(rule.absurd(x) for x in (0.0, 1.0, 4.0, 30.0, 1e3))
        assert likely[0] <= worst < likely[1]
