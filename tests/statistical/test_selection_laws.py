"""Selections have the laws they claim: exact probabilities fit, parameters off by a little and planted bugs do not."""

import itertools
import math

import numpy as np
import pytest
from levels import dkw_band

from farthing.mechanisms import (
    AboveThreshold,
    Exponential,
    JointTopK,
    LargeMargin,
    NoisyMax,
    PermuteAndFlip,
    RefinedMax,
    TopK,
    UnknownTopK,
    for_regret,
)
from farthing.mechanisms.scores import field_of
from farthing.noise.bits import seeded
from farthing.noise.races import enclose, leaders

pytestmark = pytest.mark.thorough

N = 300_000
SCORES = np.array([0, -4, -1, 3, -900, 2, -2])


def gap(chosen, law):
    """Return the largest distance between the CDFs of draws and of a law over the outcomes."""
    seen = np.bincount(chosen, minlength=len(law)) / len(chosen)
    return np.abs(np.cumsum(seen) - np.cumsum(law)).max()


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["exponential", "gaussian", "gumbel", "laplace"])
def test_noisy_maxima_fit(noise):
    """Inside the band of the exact probabilities; a price 10 % off, or another noise of that price, is outside."""
    mechanism, band = NoisyMax(1.5, noise), dkw_band(N)
    chosen = mechanism.choose(np.broadcast_to(SCORES, (N, 7)), 2, moved=1, bits=seeded(701))

    assert gap(chosen, mechanism.probabilities(SCORES, 2, moved=1)) < band
    assert gap(chosen, NoisyMax(1.65, noise).probabilities(SCORES, 2, moved=1)) > band
    others = {"exponential", "gaussian", "gumbel", "laplace"} - {noise}
    assert all(gap(chosen, NoisyMax(1.5, other).probabilities(SCORES, 2, moved=1)) > band for other in others)


@pytest.mark.statistical
def test_two_roads_of_the_exponential_mechanism_agree():
    """Running sums and the Gumbel race have one law, that of the probabilities."""
    table, law = np.broadcast_to(SCORES, (N, 7)), Exponential(0.8).probabilities(SCORES)
    sums = Exponential(0.8).choose(table, bits=seeded(702))
    race = leaders(field_of(table, Exponential(0.8).rate(), "gumbel"), bits=seeded(703))[:, 0]

    assert max(gap(sums, law), gap(race, law)) < dkw_band(N, 1e-12)
    assert gap(race, Exponential(0.84).probabilities(SCORES)) > dkw_band(N)


def flips(scores, rate, count, seed):
    """Return the choices of permute and flip as its name says it: in random order, keep with exp(rate * gap)."""
    rng = np.random.default_rng(seed)
    kept = np.exp(rate * (scores - scores.max()))
    chosen = np.full(count, -1)
    order = rng.permuted(np.broadcast_to(np.arange(len(scores)), (count, len(scores))), axis=1)
    for place in range(len(scores)):
        tried = order[:, place]
        taken = (chosen < 0) & (rng.random(count) < kept[tried])
        chosen[taken] = tried[taken]
    return chosen


@pytest.mark.statistical
def test_permute_and_flip_is_the_race_with_exponential_noise():
    """The coins of its definition and the race have one law, and it is not the exponential mechanism's."""
    law = PermuteAndFlip(1).probabilities(SCORES)
    race = PermuteAndFlip(1).choose(np.broadcast_to(SCORES, (N, 7)), bits=seeded(704))

    assert gap(flips(SCORES, 0.5, N, 704), law) < dkw_band(N, 1e-12)
    assert gap(race, law) < dkw_band(N, 1e-12)
    assert gap(race, Exponential(1).probabilities(SCORES)) > dkw_band(N)


@pytest.mark.statistical
def test_ties_are_broken_at_random():
    """Equal scores are equally likely, for every noise; a first-comes rule for one in a hundred is seen."""
    for noise in ("exponential", "gaussian", "gumbel", "laplace"):
        chosen = NoisyMax(1, noise).choose(np.zeros((N, 5)), bits=seeded(705))
        assert gap(chosen, np.full(5, 0.2)) < dkw_band(N, 1e-12)
        biased = np.where(np.arange(N) % 50 == 0, 0, chosen)
        assert gap(biased, np.full(5, 0.2)) > dkw_band(N)


@pytest.mark.statistical
def test_top_k_is_peeling():
    """One-shot Gumbel top-2 and two choices in turn have one law on ordered pairs; Laplace noise has another."""
    scores, count = np.array([3, 1, 0, 2]), 60_000
    ordered = list(itertools.permutations(range(4), 2))
    place = {pair: at for at, pair in enumerate(ordered)}
    p = Exponential(1).probabilities(scores)
    law = np.array([p[a] * p[b] / (1 - p[a]) for a, b in ordered])
    table = np.broadcast_to(scores, (count, 4))

    def code(pairs):
        return np.array([place[tuple(pair)] for pair in pairs.tolist()])

    shot = code(TopK(2, 1).choose(table, bits=seeded(706)))
    first = Exponential(1).choose(table, bits=seeded(707))
    weights = (np.arange(4) != first[:, None]).astype(float)
    second = Exponential(1).choose(table, weights=weights, bits=seeded(708))

    assert gap(shot, law) < dkw_band(count, 1e-12)
    assert gap(code(np.stack([first, second], axis=1)), law) < dkw_band(count, 1e-12)
    assert gap(code(TopK(2, 1, "laplace").choose(table, bits=seeded(706))), law) > dkw_band(count)


@pytest.mark.statistical
def test_planned_choices_are_good_enough():
    """At the worst scores every planned top-3 is good with its confidence, no more and no less."""
    count, confidence = 10_000, 0.8
    scores = np.broadcast_to(np.array([100] * 3 + [59] * 9), (count, 12))
    for noise in ("exponential", "gaussian", "gumbel", "laplace"):
        mechanism = for_regret(noise, options=12, within=41, confidence=confidence, k=3, monotone=True, moved=1)
        chosen = mechanism.choose(scores, monotone=True, moved=1, bits=seeded(709))
        good = (chosen < 3).all(axis=1).mean()
        assert abs(good - confidence) < dkw_band(count, 1e-12)


@pytest.mark.statistical
def test_large_margins_fit():
    """The chance to find a gap, and the choice in front of it, fit; half the noise on the gap does not."""
    count, scores, bits = 20_000, [5, 9, 0, 9], seeded(710)
    margin = LargeMargin(1.5, 0.02, k=3)
    chosen = [margin.choose(scores, bits=bits) for _ in range(count)]
    chosen = np.array([4 if place is None else place for place in chosen])

    assert gap(chosen, margin.probabilities(scores)) < dkw_band(count)
    assert gap(chosen, LargeMargin(1.5, 0.08, k=3).probabilities(scores)) > dkw_band(count)


@pytest.mark.statistical
def test_above_threshold_fits():
    """Where a run stops fits the integral over its noise; noise for twice the price does not."""
    scores, count, bits = [-4, 1, -2, 3, 0], 10_000, seeded(711)
    watch = AboveThreshold(2, 1.2)
    seen = np.array([5 if (place := watch.first(scores, bits=bits)) is None else place for _ in range(count)])

    def law(bar_rate, rate):
        z = (np.arange(40_000) + 0.5) / 400
        weight = bar_rate * np.exp(-bar_rate * z) / 400
        ahead = 2 + z - 1 / bar_rate + 1 / rate
        above = np.exp(-rate * np.maximum(ahead[:, None] - np.asarray(scores), 0))
        passed = np.cumprod(np.concatenate([np.ones((len(z), 1)), 1 - above], axis=1), axis=1)
        return np.append((weight[:, None] * passed[:, :-1] * above).sum(axis=0), (weight * passed[:, -1]).sum())

    assert gap(seen, law(*watch.rates)) < dkw_band(count)
    assert gap(seen, law(*np.multiply(watch.rates, 2))) > dkw_band(count)


@pytest.mark.statistical
def test_joint_choices_fit():
    """Which set comes fits the law by enumeration; that of half the noise does not."""
    scores, count, bits = [5, 4, 4, 2, 0], 6000, seeded(732)
    joint = JointTopK(2, 4)
    law, sharp = (each.probabilities(scores) for each in (joint, JointTopK(2, 8)))
    places = {one: place for place, one in enumerate(law)}
    seen = np.array([places[frozenset(joint.choose(scores, bits=bits).tolist())] for _ in range(count)])

    assert gap(seen, np.array(list(law.values()))) < dkw_band(count)
    assert gap(seen, np.array(list(sharp.values()))) > dkw_band(count)


@pytest.mark.statistical
@pytest.mark.parametrize("monotone", [False, True])
def test_a_gap_proves_as_much_as_it_says(monotone):
    """Past a score at or below the threshold, gaps are exponential, wherever a run ends; they prove more at 2/3."""
    watch, count, bits = AboveThreshold(0, 2, monotone=monotone), 3000, seeded(731)
    found = [watch.first_with_gap([-1, 0, -3, 0] * 8, bits=bits) for _ in range(count)]
    gaps = np.sort([passed.gap * passed.rate for passed in found if passed is not None])
    seen, wrong = np.arange(1, len(gaps) + 1) / len(gaps), [each.at_least(0.8) > 0 for each in found if each]

    assert len(gaps) > 2500
    assert abs(seen + np.expm1(-gaps)).max() < dkw_band(len(gaps)) + 2.0**-9
    assert abs(seen + np.expm1(-gaps * 1.5)).max() > dkw_band(len(gaps)) + 2.0**-9
    assert np.mean(wrong) < 0.2 + dkw_band(len(gaps))
    assert np.mean(gaps > -math.log(0.2) * 2 / 3) > 0.2 + dkw_band(len(gaps))


@pytest.mark.statistical
def test_unknown_options_fit():
    """What comes back, and when the stop is drawn, fit the peels; a lead without epsilon does not."""
    count, bits = 10_000, seeded(712)
    top, counts = UnknownTopK(2, 3, 1.0, 0.3), [6, 5, 4, 2]
    outcomes = [(), (0,), (1,), (2,), *itertools.permutations(range(3), 2)]
    found = [tuple(top.choose(counts, bits=bits).places.tolist()) for _ in range(count)]
    seen = np.array([outcomes.index(each) for each in found])

    def law(lead):
        masses, stop = np.exp(np.array(counts[:3], float)), math.exp(counts[3] + lead)
        whole = masses.sum() + stop
        one = [masses[i] / whole * stop / (whole - masses[i]) for i in range(3)]
        two = [masses[i] / whole * masses[j] / (whole - masses[i]) for i, j in itertools.permutations(range(3), 2)]
        return np.array([stop / whole, *one, *two])

    assert gap(seen, law(top.lead)) < dkw_band(count)
    assert gap(seen, law(top.lead - 1)) > dkw_band(count)


@pytest.mark.statistical
def test_refined_maxima_keep_their_confidence():
    """At the worst gap, just over `within`, a wrong option is chosen in at most 1 - confidence; bare leads pass it."""
    count, bits = 1000, seeded(713)
    mechanism = RefinedMax(within=100, confidence=0.75)
    wrong = np.mean([mechanism.choose([101, 0, 0], bits=bits).index > 0 for _ in range(count)])

    assert wrong < 0.25 + dkw_band(count)
    # A rule that stops at the first bare lead has the chance of its first look alone.
    first = mechanism.schedule(3).information[0]
    words = seeded(714).words(3 * 20_000).view(np.int64).reshape(-1, 3)
    low, high = enclose("gaussian", np.array([101 * math.sqrt(first), 0, 0]) + np.zeros((20_000, 3)), words)
    careless = np.mean(np.argmax(low + high, axis=1) > 0)
    assert careless > 0.25 + dkw_band(20_000) + 0.1
