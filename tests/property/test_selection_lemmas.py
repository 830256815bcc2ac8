"""Each lemma behind the prices of selections, on random finite mechanisms and by exact enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from sweeps import sweep

from farthing.mechanisms import (
    AboveThreshold,
    Exponential,
    JointTopK,
    LargeMargin,
    NoisyMax,
    PermuteAndFlip,
    UnknownTopK,
)
from farthing.mechanisms.exponential import Exponential as Choice
from farthing.mechanisms.joint_top_k import chance_jointly
from farthing.privacy import Zcdp, convert

ORDERS = (1.0001, 1.5, 2, 4, 16, 200)


def pairs(count, seed):
    """Yield random pairs of full laws on a few outcomes, some of them close, some of them extreme."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        outcomes = int(rng.integers(2, 8))
        first = rng.dirichlet(np.full(outcomes, 10 ** rng.uniform(-1, 1))) + 1e-12
        ratio = np.exp(rng.uniform(0, 10 ** rng.uniform(-2, 0.8), outcomes))
        second = first * ratio
        yield first / first.sum(), second / second.sum()


def losses(first, second):
    """Return the privacy loss of each outcome."""
    return np.log(first / second)


def renyi(first, second, order):
    """Return the Renyi divergence of one order."""
    terms = np.log(first) + (order - 1) * losses(first, second)
    return (terms.max() + np.log(np.exp(terms - terms.max()).sum())) / (order - 1)


def test_lemma_bounded_range_and_pure():
    """A range of eta has losses within eta; losses within epsilon have a range of at most 2 epsilon."""
    for first, second in pairs(500, 1):
        loss = losses(first, second)
        eta, epsilon = np.ptp(loss), np.abs(loss).max()
        assert epsilon <= eta + 1e-12
        assert eta <= 2 * epsilon + 1e-12
        assert loss.min() <= 1e-12 <= loss.max() + 2e-12  # some outcome gains, some outcome loses


def test_lemma_exponential_mechanism_has_bounded_range():
    """With scores that change by numbers at most R apart, log-ratios lie in an interval of length epsilon."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        scores, spread, shift = rng.normal(0, 5, 9), 10 ** rng.uniform(-1, 1), rng.normal(0, 9)
        moved = scores + shift + rng.uniform(0, spread, 9)
        first, second = (Choice(0.8).probabilities(each, spread, monotone=True) for each in (scores, moved))
        assert np.ptp(losses(first, second)) <= 0.8 + 1e-9


def test_lemma_hoeffding():
    """A variable in an interval of length eta has log E exp(s (Z - E Z)) <= s^2 eta^2 / 8, for either sign of s."""
    rng = np.random.default_rng(3)
    for first, second in pairs(300, 3):
        loss = losses(first, second)
        eta, mean, s = np.ptp(loss), first @ loss, rng.normal(0, 3)
        assert np.log(first @ np.exp(s * (loss - mean))) <= s * s * eta * eta / 8 + 1e-9


def test_lemma_mean_loss():
    """The mean privacy loss is at most eta^2/8: Hoeffding's lemma at s = -1, where E exp(-Z) = 1."""
    for first, second in pairs(500, 4):
        loss = losses(first, second)
        assert math.isclose(1, first @ np.exp(-loss), rel_tol=1e-9)
        assert 0 <= first @ loss + 1e-12 <= np.ptp(loss) ** 2 / 8 + 2e-12


def test_theorem_bounded_range_is_concentrated():
    """Every Renyi divergence of order a is at most a eta^2/8, and at most a times the tight price."""
    worst = 0.0
    for first, second in pairs(500, 5):
        eta = float(np.ptp(losses(first, second)))
        for order in ORDERS:
            divergence = renyi(first, second, order)
            assert divergence <= order * eta * eta / 8 + 1e-9
            assert divergence <= order * convert.bounded_range_zcdp(eta) + 1e-9
            worst = max(worst, divergence / (order * eta * eta / 8)) if eta > 0.05 else worst

    assert worst > 0.5  # the bound is no idle one


@pytest.mark.parametrize("eta", [0.05, 0.5, 2.0, 5.0])
def test_the_tight_price_is_tight(eta):
    """Two outcomes whose losses are the ends of the interval come up to the tight price as the order falls to 1."""
    best = max(renyi(np.array([p, 1 - p]), second_of(p, eta), 1 + 1e-7) for p in np.linspace(1e-4, 1 - 1e-4, 20_001))

    assert math.isclose(convert.bounded_range_zcdp(eta), best, rel_tol=1e-5)


def second_of(p, eta):
    """Return the law whose loss against (p, 1 - p) is t + eta on the first outcome and t on the other."""
    # p exp(-t - eta) + (1 - p) exp(-t) = 1
    t = math.log(p * math.exp(-eta) + 1 - p)
    return np.array([p * math.exp(-t - eta), (1 - p) * math.exp(-t)])


def neighbours(rng, options, sensitivity, *, monotone):
    """Return two rows of scores that one unit can make of each other."""
    scores = rng.integers(-6, 7, options) * 1.0
    return scores, scores + rng.uniform(0 if monotone else -sensitivity, sensitivity, options)


@pytest.mark.parametrize("noise", ["laplace", "exponential", "gumbel"])
def test_noisy_maxima_are_pure(noise):
    """Over random neighbours no log-ratio passes epsilon, and with the rate of monotone scores some would."""
    rng, worst = np.random.default_rng(6), 0.0
    for _ in range(150):
        for monotone in (False, True):
            first, second = neighbours(rng, 4, 2, monotone=monotone)
            laws = [NoisyMax(1.0, noise).probabilities(each, 2, monotone=monotone) for each in (first, second)]
            assert np.abs(losses(*laws)).max() <= 1 + 1e-7
    for second in ([-2.0, 2.0, 2.0], [2.0, -2.0, -2.0]):
        laws = [NoisyMax(1.0, noise).probabilities(each, 2, monotone=True) for each in ([0.0, 0.0, 0.0], second)]
        worst = max(worst, np.abs(losses(*laws)).max())

    assert worst > 1.1


def test_gaussian_maxima_are_gdp():
    """For every set of outcomes the trade-off stays above that of N(0,1) against N(mu,1); a tenth less noise passes."""
    from scipy.special import ndtr, ndtri

    rng = np.random.default_rng(7)

    def strongest(epsilon, mu):
        """Return by how much the most telling set of outcomes beats mu-GDP."""
        worst = -1.0
        for first, second in cases:
            laws = [
                NoisyMax(epsilon, "gaussian").probabilities(each, monotone=True, moved=1) for each in (first, second)
            ]
            for chosen in itertools.product((0, 1), repeat=len(first)):
                p, q = (float(law @ np.array(chosen)) for law in laws)
                if 1e-9 < p < 1 - 1e-9:
                    worst = max(worst, q - ndtr(ndtri(p) + mu))
        return worst

    cases = [(np.zeros(2), np.array([1.0, 0])), (np.zeros(3), np.array([1.0, 0, 0]))]
    for _ in range(30):
        scores = rng.uniform(-2, 2, 3)
        cases.append((scores, scores + np.eye(3)[rng.integers(3)]))

    assert strongest(2.0, 1.0) <= 1e-8
    assert strongest(2.2, 1.0) > 1e-3


def test_permute_and_flip_has_no_bounded_range_of_epsilon():
    """Its bounded range reaches epsilon + log(2 - exp(-epsilon)), so that it is priced as epsilon-DP."""
    for epsilon in (0.3, 1.0):
        laws = [PermuteAndFlip(epsilon).probabilities(each, monotone=True) for each in ([0, 1], [1, 0])]
        up = [PermuteAndFlip(epsilon).probabilities(each) for each in ([0, 0], [1, -1])]
        assert np.abs(losses(*up)).max() <= epsilon + 1e-9
        assert np.ptp(losses(*up)) >= epsilon + math.log(2 - math.exp(-epsilon)) - 1e-9
        assert np.ptp(losses(*laws)) > epsilon


def margin_excess(margin, *, monotone):
    """Return the largest excess delta of a large margin over all neighbours among scores 0 ... 4 of three options."""
    table = {each: margin.probabilities(each, monotone=monotone) for each in itertools.product(range(5), repeat=3)}
    steps = [each for each in itertools.product((-1, 0, 1), repeat=3) if not monotone or min(each) * max(each) >= 0]
    growth, worst = math.exp(float(margin.epsilon)), 0.0
    for scores, law in table.items():
        for step in steps:
            other = table.get(tuple(a + b for a, b in zip(scores, step, strict=True)))
            if other is not None:
                worst = max(worst, float(np.maximum(law - growth * other, 0).sum()))
    return worst


class Careless(LargeMargin):
    """A planted bug: the threshold forgets that a gap of R is none."""

    __slots__ = ()

    @property
    def threshold(self):
        return -math.log(2 * float(self.delta))


@pytest.mark.parametrize(("monotone", "k"), [(True, 1), (False, 1), (True, 2)])
def test_a_large_margin_keeps_its_delta(monotone, k):
    """By enumeration delta is kept and, for one in front, used up; without the R in the threshold it
    is passed.
    """
    worst = margin_excess(LargeMargin(1, 0.05, k=k), monotone=monotone)

    assert worst <= 0.05 + 1e-12
    assert worst > (0.03 if k == 1 else 0)
    if k == 1:
        assert margin_excess(Careless(1, 0.05, k=k), monotone=monotone) > 0.05


def unknown_law(counts, mechanism, lead):
    """Return the exact law of a choice from unknown options: {(names, stopped): probability}."""
    top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    top = [item for item in top if item[1] > 0][: mechanism.k_bar + 1]
    padded = top + [("", 0)] * (mechanism.k_bar + 1 - len(top))
    rate = float(mechanism.epsilon)
    runners = {name: math.exp(rate * count) for name, count in padded[: mechanism.k_bar] if name}
    phantoms = sum(1 for name, _ in padded[: mechanism.k_bar] if not name)
    stop = phantoms + math.exp(rate * padded[-1][1] + lead)
    law = {}

    def peel(chosen, chance):
        if len(chosen) == mechanism.k:
            law[(chosen, False)] = chance
            return
        left = {name: mass for name, mass in runners.items() if name not in chosen}
        total = stop + sum(left.values())
        law[(chosen, True)] = chance * stop / total
        for name, mass in left.items():
            peel((*chosen, name), chance * mass / total)

    peel((), 1.0)
    return law


def unknown_excess(mechanism, lead, cases):
    """Return the largest excess of any neighbours' laws over e^(epsilon * choices made), either way."""
    worst = 0.0
    for counts, other in cases:
        for a, b in ((counts, other), (other, counts)):
            first, second = unknown_law(a, mechanism, lead), unknown_law(b, mechanism, lead)
            excess = 0.0
            for (names, stopped), chance in first.items():
                growth = math.exp(float(mechanism.epsilon) * (len(names) + stopped))
                excess += max(0.0, chance - growth * second.get((names, stopped), 0.0))
            worst = max(worst, excess)
    return worst


def unknown_cases(moved):
    """Return all neighbours with counts up to 2 or 3 of four options, one unit counting in at most `moved`."""
    steps = [each for each in itertools.product((0, 1), repeat=4) if 0 < sum(each) <= moved]
    for counts in itertools.product(range(sweep(3, 4)), repeat=4):
        for step in steps:
            yield tuple(
                dict(zip("ABab", each, strict=True))
                for each in (counts, tuple(a + b for a, b in zip(counts, step, strict=True)))
            )


@pytest.mark.parametrize(("moved", "k", "k_bar"), [(1, 1, 2), (2, 2, 2), (2, 1, 3), (None, 2, 2)])
def test_unknown_options_keep_their_delta(moved, k, k_bar):
    """By enumeration delta is kept and used up; a lead without R, or for one option only, passes it."""
    mechanism = UnknownTopK(k, k_bar, Fraction(1, 2), Fraction(1, 20), moved=moved)
    cases, most = list(unknown_cases(moved or 4)), min(moved or k_bar, k_bar)
    worst = unknown_excess(mechanism, mechanism.lead, cases)

    assert worst <= 0.05 + 1e-12
    assert worst > 0.048  # what is missing is the chance of those who stay in front
    assert unknown_excess(mechanism, mechanism.lead - 0.5, cases) > 0.05  # a lead of log(d (1 - delta)/delta) alone
    if most > 1:
        assert unknown_excess(mechanism, mechanism.lead - math.log(most), cases) > 0.05


def test_above_threshold_is_pure():
    """By quadrature no answer's log-ratio passes epsilon over random neighbours; half the noise passes it."""
    rng = np.random.default_rng(8)

    def law(scores, bar_rate, rate):
        z = (np.arange(40_000) + 0.5) / 1000
        weight = bar_rate * np.exp(-bar_rate * z) / 1000
        above = np.exp(-rate * np.maximum(z[:, None] - np.asarray(scores), 0))
        passed = np.cumprod(np.concatenate([np.ones((len(z), 1)), 1 - above], axis=1), axis=1)
        return np.append((weight[:, None] * passed[:, :-1] * above).sum(axis=0), (weight * passed[:, -1]).sum())

    worst = 0.0
    for _ in range(40):
        for monotone in (False, True):
            first = rng.uniform(-3, 3, 4)
            step = rng.integers(0 if monotone else -1, 2, 4)
            rates = AboveThreshold(0, 1, monotone=monotone).rates
            ratio = losses(law(first, *rates), law(first + step, *rates))
            assert np.abs(ratio).max() <= 1 + 1e-2
    for length in (4, 30):
        scores, step = np.zeros(length), np.full(length, 1.0)
        step[-1] = -1
        rates = np.array(AboveThreshold(0, 1).rates)
        worst = max(worst, np.abs(losses(law(scores - 1, *rates * 2), law(scores + step - 1, *rates * 2))).max())

    assert worst > 1


def test_a_joint_choice_has_its_bounded_range_and_its_confidence():
    """The range of the losses of all sets keeps epsilon, and half of R does not; choices are as good as is told."""
    rng, worst = np.random.default_rng(19), {}
    for _ in range(150):
        monotone, k, wide = bool(rng.integers(2)), int(rng.integers(1, 4)), int(rng.integers(1, 6))
        scores = rng.integers(0, wide, 5)
        step = rng.integers(0 if monotone else -1, 2, 5) * rng.choice([-1, 1])
        laws = [JointTopK(k, 1).probabilities(each, monotone=monotone) for each in (scores, scores + step)]
        spread = float(np.ptp(losses(*(np.array(list(law.values())) for law in laws))))
        worst[monotone] = max(worst.get(monotone, 0), spread)
        sets, gap, kth = JointTopK(k, 8).probabilities(scores, monotone=monotone), rng.integers(3), np.sort(scores)[-k]
        short = {one: kth - min(scores[list(one)]) > gap for one in sets}
        left = {one: max(scores[list({*range(5)} - one)]) - kth > 3 * gap for one in sets}
        bad = sum(share for one, share in sets.items() if short[one] or left[one])
        assert bad <= 1 - chance_jointly(k, 5, 8 * 3 * gap / (4 if monotone else 8)) + 1e-12

    assert max(worst.values()) <= 1 + 1e-9
    assert min(worst.values()) > 0.75
    tied = JointTopK(2, 4).probabilities([5, 5, 5, 4, 4], monotone=True)
    bad = sum(share for one, share in tied.items() if one & {3, 4})
    assert bad > (1 - chance_jointly(2, 5, 3)) / 3  # next to the worst case


def passing_density(scores, bar_rate, rate, gaps):
    """Return the density of where a run stops and of the gap there, by quadrature over the threshold's noise."""
    z = (np.arange(20_000) + 0.5) / 500
    weight = bar_rate * np.exp(-bar_rate * z) / 500
    above = np.exp(-rate * np.maximum(z[:, None] - np.asarray(scores), 0))
    missed = np.cumprod(np.concatenate([np.ones((len(z), 1)), 1 - above], axis=1), axis=1)[:, :-1]
    out = []
    for gap in gaps:
        at = z[:, None] + gap - np.asarray(scores)
        there = np.where(at >= 0, rate * np.exp(-rate * np.maximum(at, 0)), 0)
        out.append((weight[:, None] * missed * there).sum(axis=0))
    return np.concatenate(out)


def test_the_gap_of_above_threshold_is_free():
    """The density of the place and the gap together keeps epsilon over random neighbours; half the noise passes it."""
    rng, gaps = np.random.default_rng(18), (0.01, 0.7, 1.9, 4.0)
    for _ in range(25):
        for monotone in (False, True):
            scores = rng.uniform(-3, 3, 4)
            step = rng.integers(0 if monotone else -1, 2, 4) * rng.choice([-1, 1])
            rates = np.array(AboveThreshold(0, 1, monotone=monotone).rates)
            laws = [passing_density(each, *rates, gaps) for each in (scores, scores + step)]
            both = (laws[0] > 0) & (laws[1] > 0)
            assert np.abs(np.log(laws[0][both] / laws[1][both])).max() <= 1 + 1e-2
            assert max(each[~both].max(initial=0) for each in laws) < 1e-9
    step, rates = np.array([1.0] * 29 + [-1.0]), np.array(AboveThreshold(0, 1).rates)
    laws = [passing_density(each - 1, *rates * 2, gaps) for each in (np.zeros(30), step)]
    worst = np.abs(np.log(laws[0][29::30] / laws[1][29::30])).max()

    assert worst > 1


def test_the_price_of_the_exponential_mechanism_is_that_of_its_losses():
    """The zCDP price covers every random pair of neighbours at every order."""
    rng = np.random.default_rng(9)
    price = Exponential(1.5).price(Zcdp).rho
    for _ in range(200):
        first, second = neighbours(rng, 5, 1, monotone=False)
        laws = [Exponential(1.5).probabilities(each) for each in (first, second)]
        assert all(renyi(*laws, order) <= order * price + 1e-9 for order in ORDERS)
