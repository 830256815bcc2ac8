"""The critical value against theory, its own discretisation, and a plain simulation."""

import itertools
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from levels import ALPHA, dkw_band

from farthing.accuracy import Schedule, critical_value
from farthing.accuracy.critical_search import computed_once
from farthing.accuracy.jumps import JumpMap, critical_of, lines, stride
from farthing.accuracy.noise_laws import GAUSSIAN, LAPLACE
from farthing.accuracy.stop_rule import ABSURD, GaussianLookChain, step_ratio, tamed, two_sided

THEORY = {
    (0.05, 1.02): {0.2: 2.008, 0.3: 2.041, 0.5: 2.144},
    (0.05, 1.05): {0.2: 2.003, 0.3: 2.031, 0.5: 2.125},
    (0.01, 1.02): {0.2: 2.610, 0.3: 2.634, 0.5: 2.705},
}


def chain_for(relative, critical, span, ratio, *, jumps=True, beta=0.05, largest=3.0):
    """Return the chain of a rule, for truths up to `largest` kinks."""
    shape = lines(relative, critical, ratio) if jumps else JumpMap(critical / relative, ratio, (), jumps)
    most = largest * shape.boundary
    return GaussianLookChain.run(relative, critical, span=span, jumps=shape, beta=beta, largest=most)


@pytest.mark.parametrize(
    ("beta", "ratio", "relative", "expected"),
    [(beta, ratio, r, c) for (beta, ratio), row in THEORY.items() for r, c in row.items()],
)
def test_fine_grid_reproduces_theory(beta, ratio, relative, expected):
    """Without jumps the recursion gives the constants tabulated independently, margin included."""
    span = round(6 / math.log(ratio))

    assert expected == pytest.approx(critical_value(relative, beta, span, ratio, jumps=False), abs=0.0032)


@pytest.mark.parametrize("relative", [0.05, 0.1])
def test_small_relative_targets_need_a_little_more_than_the_table(relative):
    """At r <= .1 truths on the cusps need about .01 more than a sweep between them shows; still under 1.015 z."""
    critical = critical_value(relative, 0.05, 300, 1.02, jumps=False)

    assert 1.975 < critical < 1.015 * 1.96


def test_absolute_targets_need_z_exactly():
    """A single look at a fixed time needs no calibration."""
    assert two_sided(0.05) == critical_value(0.0, 0.05, 0, 1.02)
    assert two_sided(1e-12) == critical_value(0.3, 1e-12, 0, 1.02)


def test_below_the_floor_coverage_is_exact():
    """A truth of zero misses with the tail of one Gaussian at the last look."""
    chain = chain_for(0.1, 2.0, 1600, 1.01)

    assert 0.0455 == pytest.approx(chain.miss(0.0), abs=1e-5)


@pytest.mark.parametrize(
    ("relative", "critical", "span"), [(0.1, 1.98, 480), (0.3, 1.97, 480), (0.5, 2.15, 480), (0.9, 3.0, 160)]
)
def test_miss_agrees_with_a_simulation_of_the_chain(relative, critical, span):
    """The recursion's miss rate is that of the chain, drawn path by path."""
    ratio, runs = 1.02, 40_000
    chain = chain_for(relative, critical, span, ratio)
    boundary = critical / relative
    rng = np.random.default_rng(77)

    for theta in (1 - 0.9 * relative, 1.0, 1.8, 3.0):
        drawn = simulate(chain, theta * boundary, runs, rng)
        assert chain.miss(theta * boundary) == pytest.approx(drawn, abs=dkw_band(runs, 1e-6))


def simulate(chain, signal, runs, rng):
    """Return the share of misses in `runs` paths of the chain."""
    index, y = stopped_at(chain, signal, runs, rng)
    half = np.maximum(chain.relative * y, np.where(index == 0, chain.critical, 0.0))
    return float(np.mean(np.abs(y - signal * chain.map.ratio ** (-index / 2)) > half))


def stopped_at(chain, signal, runs, rng):
    """Return the index and the signal at which each of `runs` paths of the chain stopped."""
    index = np.full(runs, chain.span)
    root = chain.map.ratio ** (-index / 2)
    brown = rng.standard_normal(runs) * root
    active = np.arange(runs)
    while True:
        y = (signal * root**2 + brown) / root
        active = np.flatnonzero((y < chain.map.line(index)) & (index > 0))
        if not active.size:
            break
        index[active] = chain.map.targets(index[active], y[active])
        after = chain.map.ratio ** (-index / 2)
        brown += np.sqrt(after**2 - root**2) * rng.standard_normal(runs)
        root = after
    return index, y


@pytest.mark.thorough
@pytest.mark.parametrize(("relative", "beta"), [(0.01, 0.05), (0.1, 0.05), (0.3, 0.01), (0.5, 1e-12), (0.7, 0.5)])
def test_no_truth_between_the_swept_ones_misses_more_than_beta(relative, beta):
    """A dense sweep, far beyond the calibrated one, finds no miss rate above beta."""
    ratio = step_ratio(relative)
    span = 16 * round(8 / math.log(ratio) / 16)
    critical = critical_value(relative, beta, span, ratio)
    chain = chain_for(relative, critical, span, ratio, beta=beta, largest=6.0)
    near = np.linspace(1 - 1.2 * relative, 1 + 1.2 * relative, 150)
    far = np.linspace(1.2, 6.0, 60)

    worst = max(chain.miss(theta * chain.map.boundary) for theta in (*near, *far))

    assert beta * 0.98 < worst <= beta


def test_a_quarter_of_the_panel_changes_nothing(monkeypatch):
    """Quadrature error is a hundredth of the margin."""
    coarse = [chain_for(0.5, 2.15, 320, 1.02).miss(x) for x in (1.0, 2.4, 4.0, 6.0)]
    monkeypatch.setattr("farthing.accuracy.stop_rule._FINENESS", 0.17)
    fine = [chain_for(0.5, 2.15, 320, 1.02).miss(x) for x in (1.0, 2.4, 4.0, 6.0)]

    assert fine == pytest.approx(coarse, rel=3e-5)


def test_jumps_change_the_constant_little():
    """Skipping looks far from the boundary moves c by less than a hundredth."""
    fine = critical_value(0.1, 0.05, 320, 1.02, jumps=False)

    assert fine == pytest.approx(critical_value(0.1, 0.05, 320, 1.02), abs=0.01)


@pytest.mark.thorough
@pytest.mark.parametrize("beta", [0.05, 0.01, 1e-4])
@pytest.mark.parametrize("relative", [0.11, 0.2, 0.3, 0.5])
def test_a_looser_target_costs_small_groups_little(relative, beta):
    """A higher line near the last look brings c near to that of a single one, and large groups pay about the same."""
    relative = tamed(relative, beta)
    ratio, z = step_ratio(relative), two_sided(beta)
    span = 16 * round(6 / math.log(ratio) / 16)
    least = critical_value(relative, beta, span, ratio)

    assert (least / z) ** 2 < 1.034
    plain = critical_value(relative, beta, span, ratio, jumps=False)
    assert (lines(relative, least, ratio).boundary * relative / plain) ** 2 < 1.015  # large groups pay about the same


def test_one_line_for_all_looks_would_cost_more():
    """The plain rule at r = .316, and the higher line with the plain rule's misses: why the line is where it is."""
    plain, least = (critical_value(0.316, 0.05, 320, 1.02, jumps=jumps) for jumps in (False, True))
    low = chain_for(0.316, least, 320, 1.02, jumps=False)

    assert 1.08 < (plain / 1.96) ** 2 < 1.11
    assert max(low.miss(theta * low.map.boundary) for theta in np.linspace(0.7, 1.4, 15)) > 0.053


@pytest.mark.parametrize("relative", [0.05, 0.1, 0.11, 0.3, 0.9])
def test_the_least_c_of_a_line(relative):
    """Its even lines are no lower than the line that it was found for, but for the last bits."""
    for line in (7 / relative, 20 / relative):
        found = lines(relative, critical_of(line, relative), 1.02, even=True)

        assert line == pytest.approx(found.boundary)
        assert found.boundary == found.near


def test_near_one_the_whole_span_counts():
    """At r = .95 noise alone can stop a group of one line anywhere, so a longer schedule needs a larger c."""
    short, long = (critical_value(0.95, 0.05, span, 1.02, jumps=False) for span in (160, 640))

    assert 1.3 * 1.96 < short < long - 0.1


def test_jumps_never_pass_a_public_look():
    """Every jump from above a public look lands on it or above it."""
    jumps = JumpMap(20.0, 1.01, public=(288, 176, 64))
    index = np.repeat(np.arange(1, 700), 40)
    signal = np.tile(np.linspace(-3, 20, 40), 699)
    after = jumps.targets(index, signal)

    assert (after < index).all()
    for public in (288, 176, 64):
        assert (after[index > public] >= public).all()


def test_jumps_land_on_multiples_of_their_stride():
    """Where no look is public, landing places are round numbers."""
    jumps = JumpMap(50.0, 1.02)

    for position, level in enumerate(jumps.levels):
        index = np.arange(level + 1, 3000)
        landing = jumps.landing(index, np.full(index.size, position))
        assert (landing % stride(level) == 0).all()
        assert (index - landing <= level).all()
        assert (index - landing > level - stride(level)).all()


@pytest.mark.slow
def test_no_bound_holds_by_luck():
    """Over a wide grid of targets, spans and truths no miss rate is above beta."""
    for relative, beta, folds in itertools.product(
        (0.003, 0.03, 0.2, 0.6, 0.99), (0.5, 0.05, 1e-6, 1e-12), (2, 12, 28)
    ):
        ratio = step_ratio(relative)
        span = 16 * round(folds / math.log(ratio) / 16)
        critical = critical_value(relative, beta, span, ratio)
        chain = chain_for(relative, critical, span, ratio, beta=beta, largest=8.0)
        for theta in np.concatenate([np.linspace(0, 1 + 1.2 * relative, 120), np.geomspace(1, 8, 80)]):
            assert chain.miss(theta * chain.map.boundary) <= beta


def test_false_alarm_level_is_finite_sample():
    """The band used above is far wider than the suite's level needs at that size."""
    assert dkw_band(40_000, ALPHA) < 0.02


def told_absurdly(relative, beta, *, signed, held_back=True):
    """Return the largest chance, over truths small and large, that a group is told beyond ten times truth and floor."""
    span = 2096
    critical = critical_value(relative, beta, span, 1.02, signed=signed)
    shape = lines(relative, critical, 1.02) if held_back else JumpMap(critical / relative, 1.02)
    chain = GaussianLookChain.run(relative, critical, span=span, jumps=shape, beta=1e-15, largest=2e9, signed=signed)
    return max(chain.absurd(float(x)) for x in (0.0, 0.1, 1.0, 3.0, 10.0, 1e3, 1e6))


@pytest.mark.thorough
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(
    ("relative", "beta"),
    [
        (0.5, 0.05),
        pytest.param(0.5, 0.01, marks=pytest.mark.slow),
        pytest.param(0.9, 0.2, marks=pytest.mark.slow),
        pytest.param(0.99, 1e-3, marks=pytest.mark.slow),
    ],
)
def test_loose_targets_tell_no_group_ten_times_too_much(relative, beta, signed):
    """By the recursion the chance is below one in ten million at every truth; for the rule as it is asked it is not."""
    assert told_absurdly(tamed(relative, beta), beta, signed=signed) < ABSURD
    assert told_absurdly(relative, beta, signed=signed, held_back=False) > 100 * ABSURD


def test_absurd_values_agree_with_a_simulation():
    """The recursion's chance is that of the chain, drawn path by path, where it is large enough to be seen."""
    low = JumpMap(2.0, 1.02)
    chain = GaussianLookChain.run(0.6, 1.2, span=480, jumps=low, beta=1e-12, largest=6.0)
    rng, runs = np.random.default_rng(5), 40_000

    for signal in (0.0, 2.0):
        index, y = stopped_at(chain, signal, runs, rng)
        root = chain.map.ratio ** (-index / 2)
        told = (1 - 0.6**2) * y
        seen = np.mean((y >= chain.map.boundary) & (told > 10 * np.maximum(signal, chain.critical) * root))
        assert chain.absurd(signal) == pytest.approx(float(seen), abs=dkw_band(runs, 1e-6))
        assert chain.absurd(signal) > dkw_band(runs, 1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("beta", [pytest.param(0.5, marks=pytest.mark.slow), 0.05, 1e-3])
@pytest.mark.parametrize("relative", [0.1, pytest.param(0.5, marks=pytest.mark.slow), 0.99])
def test_schedules_stop_at_no_low_signal(relative, beta, law):
    """Every schedule of counts and sums has the least boundary of its noise, also one that refines another."""
    made = {"per_grain": 2.0**-40, "cap_grains": 2**50, "law": law}
    first = Schedule.plan(relative, 10.0, beta, **made)
    later = Schedule.plan(relative, 5.0, beta / 4, **made, after=first.rule)

    assert first.jumps.boundary >= law.least_signal
    assert first.relative <= relative
    assert later.jumps.boundary >= first.jumps.boundary * (1 - 1e-9)


def test_threads_that_want_one_critical_value_compute_it_once():
    """Eight threads want a value that nobody has computed: one computes it, the others wait for it, and no longer."""
    computed, start = [], threading.Barrier(8)

    @computed_once
    def value(number: int) -> int:
        computed.append(number)
        threading.Event().wait(0.02)
        return number

    def wanted(_: int) -> int:
        start.wait()
        return value(3)

    with ThreadPoolExecutor(8) as threads:
        assert [3] * 8 == list(threads.map(wanted, range(8)))
    assert [3] == computed
