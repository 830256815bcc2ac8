"""Lower bounds on a loss: the formulas, their inversions, and what is refused."""

from math import inf, log

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from farthing import Gdp, Pure, Zcdp, audit
from farthing.audit.bounds import rate_lower, rate_upper
from farthing.audit.cells import OutputCells
from farthing.audit.guessing import p_value
from farthing.audit.looks import always_lower, always_upper
from farthing.errors import InvalidTarget
from farthing.privacy.loss import Approx


def test_rates_invert_the_curve_of_every_currency():
    """The best test of a mechanism at its exact rates gives back the very loss that it has."""
    response = audit.Rates(1 / (1 + np.exp(-1.5)), 1 / (1 + np.exp(1.5)))

    assert pytest.approx(1.5, rel=1e-12) == response.epsilon()
    assert pytest.approx(0.7, rel=1e-12) == audit.Rates(ndtr(1.2), ndtr(0.5)).mu
    assert pytest.approx(1.5 * np.tanh(0.75), rel=1e-12) == response.rho  # the exact zCDP of randomised response


def test_delta_and_epsilon_are_one_curve():
    """Delta at an epsilon and epsilon at that delta belong together."""
    rates = audit.Rates(0.7, 0.2)

    assert pytest.approx(0.7 - np.exp(0.9) * 0.2) == rates.delta(0.9)
    assert pytest.approx(0.9) == rates.epsilon(rates.delta(0.9))


def test_the_complement_is_read_too():
    """What hardly ever happens without the unit's absence tells as much as what does."""
    assert pytest.approx(log(0.5 / 0.1)) == audit.Rates(0.9, 0.5).epsilon()
    assert audit.Rates(0.9, 0.5).epsilon() == pytest.approx(audit.Rates(0.5, 0.1).epsilon())


def test_rates_that_tell_nothing_bound_nothing():
    """An event that is not surely likelier gives zero everywhere; a sure one an infinite loss."""
    nothing = audit.Rates(0.3, 0.4)

    assert (0, 0, 0, 0) == (nothing.epsilon(), nothing.mu, nothing.rho, nothing.delta(0))
    assert inf == audit.Rates(1.0, 0.0).epsilon()
    assert inf == audit.Rates(0.5, 0.0).rho


@pytest.mark.parametrize(("claim", "told"), [(Pure(1), log(19)), (Gdp(1), 2 * ndtri(0.95)), (Zcdp(1), 0.9 * log(19))])
def test_price_floors(claim, told):
    """An interval at 95 % that tells one unit costs 2.94 in epsilon, 3.29 in mu, 2.65 in rho; groups share it."""
    assert pytest.approx(told) == audit.floor_of(claim, 0.95)
    assert pytest.approx(told / (9 if claim.parameter == "rho" else 3)) == audit.floor_of(claim, 0.95, units=3)


def test_a_delta_is_subtracted():
    """The floor of an (epsilon, delta) promise is log((1 - b - delta) / b)."""
    assert pytest.approx(log((0.95 - 0.01) / 0.05)) == audit.floor_of(Approx(1, 0.01), 0.95)


def test_a_loss_without_a_bound_is_refused():
    """What nothing here bounds is refused by name."""
    with pytest.raises(InvalidTarget, match="cannot be audited"):
        audit.Rates(0.9, 0.1).against(Zcdp(1, 0.01))


@pytest.mark.parametrize(("right", "guesses", "epsilon"), [(455, 455, 4.18), (428, 450, 2.33), (130, 200, 0.16)])
def test_one_run_gives_the_known_numbers(right, guesses, epsilon):
    """Guesses that were published, at 99.9 %."""
    assert pytest.approx(epsilon, abs=0.006) == audit.one_run(right, guesses).epsilon_lower


def test_one_run_lets_the_innocent_go():
    """The largest counts that an honest mechanism of this epsilon may reach."""
    assert 0 == audit.one_run(120, 200).epsilon_lower
    for epsilon, guesses, most in ((0.1, 200, 127), (1, 200, 165), (2, 200, 189), (0.5, 1000, 669), (1, 1000, 774)):
        assert epsilon >= audit.one_run(most, guesses).epsilon_lower
        assert epsilon < audit.one_run(most + 1, guesses).epsilon_lower


def test_one_run_with_delta_is_the_theorem():
    """The p-value is the binomial tail plus the correction, term by term."""
    rate, right, guesses, secrets, delta = 1 / (1 + np.exp(-0.5)), 70, 90, 120, 1e-4
    pmf = binom.pmf(np.arange(guesses + 1), guesses, rate)
    steps = [pmf[right - i : right].sum() / i for i in range(1, right + 1)]

    expected = pmf[right:].sum() + 2 * secrets * delta * max(steps)

    assert pytest.approx(expected) == p_value(right, guesses, secrets, 0.5, delta)
    assert 0 < audit.one_run(90, 90, delta=1e-5).epsilon_lower < audit.one_run(90, 90).epsilon_lower


def test_one_run_agrees_with_the_verdict_of_attacks():
    """Two implementations of the one-run theorem say the same."""
    verdict = pytest.importorskip("farthing.attacks.verdict")

    for right, delta in ((180, 0.0), (180, 1e-5), (150, 1e-4)):
        other = verdict.epsilon_lower(right, 200, delta=delta)
        assert pytest.approx(other, abs=1e-6) == audit.one_run(right, 200, delta=delta).epsilon_lower


def test_rates_are_bounded_exactly():
    """Clopper-Pearson: passed with at most its significance, computed from exact binomials."""
    counts = np.arange(201)
    lower = np.array([rate_lower(int(k), 200, 1e-3) for k in counts])
    upper = np.array([rate_upper(int(k), 200, 1e-3) for k in counts])

    for rate in (0.001, 0.2, 0.5, 0.97):
        chances = binom.pmf(counts, 200, rate)
        assert chances[lower > rate].sum() <= 1e-3 * (1 + 1e-9)
        assert chances[upper < rate].sum() <= 1e-3 * (1 + 1e-9)


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.9])
def test_looking_at_every_run_is_still_valid(rate):
    """The chance that some bound among the first 120 runs is wrong is below its significance, over all paths."""
    significance = 0.05
    alive, wrong = np.array([1.0]), 0.0  # the chance of each count of hits, while no bound was wrong
    for runs in range(1, 121):
        alive = np.append(alive * (1 - rate), 0) + np.append(0, alive * rate)
        if runs % 4 == 0:
            bad = np.array([always_lower(k, runs, significance) > rate for k in range(runs + 1)])
            wrong += alive[bad].sum()
            alive = np.where(bad, 0, alive)

    assert significance >= wrong
    assert 1 - always_lower(7, 20, 0.01) == always_upper(13, 20, 0.01)


def test_looks_add_up():
    """Batches are counted together, and the bound comes close to the truth."""
    rng = np.random.default_rng(1)
    looks = audit.Looks(lambda outputs: outputs > 0, confidence=0.99)
    for _ in range(20):
        found = looks.add(rng.random(1000) - 0.9, rng.random(1000) - 0.1)

    assert (20_000, 20_000) == found.samples
    assert 2.0 < found.epsilon_lower <= log(9)


@pytest.mark.parametrize(
    "event", [lambda outputs: np.ones(50 * len(outputs), dtype=bool), lambda outputs: outputs * 1.0, lambda _: True]
)
def test_an_event_tells_of_each_output(event):
    """Another number of truth values, or other values, are no event; nothing is counted."""
    looks = audit.Looks(event)
    with pytest.raises(InvalidTarget, match="one truth value an output"):
        looks.add(np.zeros(20), np.ones(20))


@pytest.mark.parametrize("kind", ["numbers", "names", "nan"])
def test_two_samples_of_anything(kind):
    """Numbers, names, and outputs that are NaN where they should not be: all are told apart."""
    samples = {
        "numbers": ([0.0] * 400, [1.0] * 400),
        "names": (["a"] * 400, ["b"] * 400),
        "nan": ([0.0] * 400, [np.nan] * 400),
    }[kind]
    found = audit.two_samples(*samples)

    assert 3 < found.epsilon_lower
    assert found.exceeds(Pure(3))
    assert not found.exceeds(Pure(6))
    assert 0 == audit.two_samples(samples[0], samples[0]).epsilon_lower


def test_an_aim_chooses_its_event():
    """The event for delta is not that for epsilon: rare outputs tell epsilon, common ones delta."""
    rng = np.random.default_rng(3)
    without, present = rng.normal(0, 1, 20_000), rng.normal(1, 1, 20_000)
    at_zero = audit.two_samples(without, present, aim="delta", epsilon=0.0)

    truth = ndtr(0.5) - ndtr(-0.5)
    assert truth - 0.05 < at_zero.delta_lower(0.0) <= truth
    assert 0.85 < audit.two_samples(without, present, aim="mu").mu_lower <= 1
    assert 0.2 < audit.two_samples(without, present, aim="rho").rho_lower <= 0.5


def test_renyi_divergence_from_a_histogram():
    """The bound is below the divergence of two normals, mu^2 at order 2, and above half of it."""
    rng = np.random.default_rng(4)

    found = audit.renyi_lower(rng.normal(0, 1, 40_000), rng.normal(1, 1, 40_000), order=2.0)

    assert 0.5 < found.epsilon_lower <= 1
    assert "D_2" in found.event


@pytest.mark.parametrize(
    "call",
    [
        lambda: audit.two_samples([1, 2], [1, 2]),
        lambda: audit.two_samples([[1, 2]] * 5, [[1, 2]] * 5),
        lambda: audit.two_samples([1] * 9, [2] * 9, confidence=1.0),
        lambda: audit.two_samples([1] * 9, [2] * 9, confidence=float("nan")),
        lambda: audit.two_samples([1] * 9, [2] * 9, delta=1.0),
        lambda: audit.renyi_lower([1] * 9, [2] * 9, order=1.0),
        lambda: audit.one_run(5, 4),
        lambda: audit.one_run(0, 0),
        lambda: audit.one_run(5, 9, secrets=8),
        lambda: audit.one_run(5, 9, delta=0.1),
        lambda: audit.one_run(9, 9).mu_lower,
    ],
)
def test_bad_input_is_refused(call):
    """Too few outputs, counts that are none, confidences and deltas out of range: refused with rule and next step."""
    with pytest.raises(InvalidTarget) as refused:
        call()

    assert refused.value.rule
    assert refused.value.next_step


def test_events_in_words():
    """Events say what they are: a threshold, a set of cells, names."""
    cells = OutputCells.of(np.array([0.0, 1.0, 2.0]))
    names = OutputCells.of(np.array(["a", "b"]))

    assert "output at most 1" == cells.words(np.array([True, True, False, False, False]))
    assert "output in 2 of 5 cells" == cells.words(np.array([True, False, True, False, False]))
    assert "output in b" == names.words(np.array([False, True, False]))
    assert [0, 1, 1] == names.counts(np.array(["b", "zz"])).tolist()
