"""Selections: prices, edges, races from scripted bits, plans, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest

from farthing.errors import FarthingError, InvalidBudget, InvalidOption, InvalidTarget, NoiseError
from farthing.mechanisms import (
    AboveThreshold,
    Exponential,
    LargeMargin,
    NoisyMax,
    Passed,
    PermuteAndFlip,
    RefinedMax,
    TopK,
    UnknownTopK,
    choose_mechanism,
    for_regret,
)
from farthing.mechanisms.noises import NOISES, length_of
from farthing.mechanisms.scores import field_of
from farthing.mechanisms.select import choose_from, confidence_of, named
from farthing.mechanisms.winning import chance_within, winning_chances
from farthing.noise import races
from farthing.noise.bits import seeded
from farthing.privacy import Gdp, Pure, Zcdp
from farthing.privacy.loss import Approx, BoundedRange
from farthing.privacy.residue import choices


class Script:
    """A bit source that says what it is told, and then what a stream says."""

    def __init__(self, *words):
        self.left, self.rest = list(words), seeded(0)

    def words(self, count, /):
        said, self.left = self.left[:count], self.left[count:]
        return np.concatenate([np.array(said, np.uint64), self.rest.words(count - len(said))])


def fields(rng, races_, options):
    """Return a random field of every noise."""
    table = rng.integers(-12, 1, (races_, options))
    return [field_of(table, 0.5, noise) for noise in NOISES]


def test_float64_and_balls_agree(monkeypatch):
    """From the same words, races that float64 settles and races that balls alone settle have the same leaders."""
    for number, field in enumerate(fields(np.random.default_rng(1), 300, 6)):
        fast = races.leaders(field, 3, seeded(number)).tolist()
        with monkeypatch.context() as patch:
            patch.setattr(races, "MARGIN", 1e3)
            slow = races.leaders(field, 3, seeded(number)).tolist()
        assert fast == slow


def test_lifts_that_cancel_are_enclosed(monkeypatch):
    """A lift as large as the gap it makes up for leaves a float error of its own size, which the margin covers."""
    lift = np.array([0.0, 1e15])
    field = field_of(np.array([[0, -(3 * 10**15) - 1]] * 200), 1 / 3, "gumbel", lift)
    fast = races.leaders(field, bits=seeded(11)).tolist()
    monkeypatch.setattr(races, "MARGIN", 1e3)

    assert abs(field.centres[0, 1] - field.exact(0, 1)) > 1e-3
    assert fast == races.leaders(field, bits=seeded(11)).tolist()


def test_long_races_look_at_chunks(monkeypatch):
    """A race in chunks has the leaders of the same race as one block."""
    for number, field in enumerate(fields(np.random.default_rng(2), 1, 1000)):
        whole = races.leaders(field, 5, seeded(number)).tolist()
        with monkeypatch.context() as patch:
            patch.setattr(races, "CHUNK", 64)
            assert whole == races.leaders(field, 5, seeded(number)).tolist()


def test_equal_numbers_read_on_in_their_bits():
    """Two equal scores with the same 64 bits are told apart by the bits after them, and each can win."""
    same = 1 << 60
    first = NoisyMax(1, "exponential").choose([7, 7], bits=Script(same, same, 0, 1 << 63))
    second = NoisyMax(1, "exponential").choose([7, 7], bits=Script(same, same, 1 << 63, 0))

    assert {0, 1} == {first, second}


@pytest.mark.parametrize("noise", NOISES)
def test_options_of_astronomic_odds_can_win(noise):
    """A score 800/epsilon behind wins if its probability beyond begins with 1216 zero bits."""
    scores, half = [0, -1600 if noise != "gaussian" else -40], 1 << 62
    reads = [word for width in (1, 2, 4, 8) for word in [0] * width + [half] * width]
    bits = Script(half, 0, *reads, *[0] * 3, *[half] * 13, *[half] * 16)

    assert 1 == NoisyMax(1, noise).choose(scores, monotone=noise == "gaussian", bits=bits)
    assert 0 == NoisyMax(1, noise).choose(scores, bits=seeded(3))


def test_probabilities_of_astronomic_odds():
    """Neither NaN nor underflow to zero where float64 has the number."""
    tiny = Exponential(1).probabilities([0, -1400])[1]

    assert math.isclose(math.exp(-700), tiny, rel_tol=1e-9)
    assert math.isclose(math.exp(-700) / 2, PermuteAndFlip(1).probabilities([0, -1400])[1], rel_tol=1e-9)
    assert np.isfinite(NoisyMax(1, "gaussian").probabilities([0, -(2**61)])).all()


def test_long_rows_choose_by_race():
    """Two million options are chosen among by one race; only differences of scores count."""
    scores = np.arange(2**21) + 2**60

    assert 2**21 - 1 == Exponential(200).choose(scores, bits=seeded(4))


def test_prices_in_every_currency():
    """Each mechanism has the price of its theorem, in the tightest known form."""
    assert BoundedRange(1) == Exponential(1).loss
    assert Pure(1) == Exponential(1).price(Pure) == PermuteAndFlip(1).price(Pure) == NoisyMax(1).loss
    assert Exponential(1).price(Zcdp) < Zcdp(Fraction(1, 8))
    assert BoundedRange(1).to(Gdp) == Exponential(1).price(Gdp)
    assert math.isclose(math.tanh(0.5), PermuteAndFlip(1).price(Zcdp).rho)
    assert Zcdp(Fraction(1, 8)) == NoisyMax(1, "gaussian").price(Zcdp)
    assert Gdp(0.5) == NoisyMax(1, "gaussian").loss == TopK(9, 1, "gaussian").loss
    assert Exponential(1).price(Zcdp) * 10 == TopK(10, 1).loss == TopK(10, 1).price(Zcdp)
    assert Pure(10) == TopK(10, 1).price(Pure) == TopK(10, 1, "exponential").loss
    assert Pure(10).to(Zcdp) == TopK(10, 1, "laplace").price(Zcdp)
    assert Approx(1, 0.25) == LargeMargin(1, 0.25).loss
    assert Pure(1) == LargeMargin(1, 0.25, k=3).price(Pure)
    assert Pure(1).to(Gdp) == LargeMargin(1, 0.25).price(Gdp) == AboveThreshold(0, 1).price(Gdp)
    assert Pure(1.5) == AboveThreshold(0, 1).price(Pure, Pure(0.5))
    assert UnknownTopK(3, 5, 1, 0.25).price(Gdp, 2) == choices(BoundedRange(1), 2, Gdp) == TopK(2, 1).price(Gdp)
    assert UnknownTopK(3, 5, 1, 0.25).price(Zcdp, 2) == Exponential(1).price(Zcdp) * 2
    assert Fraction(1, 4) == UnknownTopK(3, 5, 1, 0.25).loss.slack


def test_gaussian_noise_has_no_pure_price():
    """A tail without an end is never pure."""
    with pytest.raises(InvalidBudget):
        NoisyMax(1, "gaussian").price(Pure)


@pytest.mark.parametrize(
    ("monotone", "moved"), [(True, 1), (True, 3), (True, None), (False, 1), (False, 2), (False, 5)]
)
def test_the_length_is_that_of_the_worst_change(monotone, moved):
    """Over all changes of the allowed kind, the largest part across (1, ..., 1) is the length."""
    options = 5
    steps = (0, 1) if monotone else (-1, 0, 1)
    changes = np.array(np.meshgrid(*[steps] * options)).reshape(options, -1).T
    changes = changes[(changes != 0).sum(axis=1) <= (moved or options)]
    across = changes - changes.mean(axis=1, keepdims=True)

    assert math.isclose(np.sqrt((across**2).sum(axis=1).max()), length_of(options, 1, monotone=monotone, moved=moved))


def test_one_option_is_chosen():
    """Where there is one option it is chosen, at any price and by any noise."""
    for noise in NOISES:
        assert 0 == NoisyMax(1, noise).choose([3.5])
    assert [0] == TopK(1, 1).choose([-7]).tolist()
    assert 0 == Exponential(1).choose([2])


def test_rows_of_scores_are_choices_each():
    """Scores of shape (..., options) give indices of shape (...) or (..., k)."""
    scores = np.zeros((4, 3, 5))
    scores[..., 2] = 900

    assert [[2] * 3] * 4 == NoisyMax(1).choose(scores).tolist()
    assert (4, 3, 2) == TopK(2, 1).choose(scores).shape


def test_options_need_not_be_hashable():
    """Options are handed back as they were given."""
    options = [{"code": "JFK"}, {"code": "LGA"}, {"code": "EWR"}]

    assert {"code": "EWR"} == choose_from(Exponential(1), options, [0, 1, 900])
    assert [{"code": "EWR"}, {"code": "LGA"}] == choose_from(TopK(2, 1), options, [0, 900, 1900])
    with pytest.raises(NoiseError):
        choose_from(Exponential(1), options, [0, 1])


def test_the_regret_bound_is_inverted():
    """At the planned epsilon the chance at the worst scores is the confidence; 2 % cheaper misses it."""
    for noise in ("gumbel", "exponential", "laplace"):
        for k in (1, 4):
            mechanism = for_regret(noise, options=30, within=40, confidence=0.9, k=k)
            reached = confidence_of(noise, mechanism.epsilon, options=30, within=40, k=k)
            assert 0.9 <= reached < 0.9 + 1e-6
            assert confidence_of(noise, mechanism.epsilon * 0.98, options=30, within=40, k=k) < 0.9


def test_the_worst_scores_are_the_worst():
    """Moving the others farther behind, or raising more options among the good, never lowers the chance."""
    for noise in NOISES:
        worst = chance_within(noise, 1, 6, 3.0)
        assert math.isclose(winning_chances(noise, np.array([0.0] + [-3.0] * 5))[0], worst, rel_tol=1e-9)
        for centres in ([0, -3, -3, -3, -3, -9], [0, -2, -3, -3, -3, -3], [0, 0, 0, -3, -4, -5]):
            good = np.array(centres) > -3
            assert winning_chances(noise, np.array(centres, float))[good].sum() >= worst


@pytest.mark.parametrize(
    ("currency", "options", "moved", "wanted"),
    [
        (Pure, 50, 1, "permute and flip"),
        (Zcdp, 50, None, "the exponential mechanism"),
        (Zcdp, 10**6, 1, "noisy maximum (gaussian)"),
        (Gdp, 8, None, "the exponential mechanism"),
        (Gdp, 200, 1, "noisy maximum (gaussian)"),
    ],
)
def test_the_cheapest_depends_on_the_currency(currency, options, moved, wanted):
    """The planner takes the least price and tells the others."""
    choice = choose_mechanism(currency, options=options, within=50, monotone=True, moved=moved)

    assert wanted == named(choice.mechanism)
    assert choice.price == min(price for _, price in choice.compared)
    assert len(choice.compared) == (3 if currency is Pure else 4)
    assert wanted in str(choice)


def test_permute_and_flip_is_as_good_and_up_to_twice_as_good():
    """Its expected regret is at most the exponential mechanism's in every case, and nearly half of it in some."""
    rng, best = np.random.default_rng(7), 0.0
    for _ in range(400):
        scores = -rng.exponential(10 ** rng.uniform(-1, 1.5), rng.integers(2, 12))
        scores[0] = 0
        epsilon = float(10 ** rng.uniform(-1, 1))
        flip, exponential = (kind(epsilon).probabilities(scores) @ -scores for kind in (PermuteAndFlip, Exponential))
        assert flip <= exponential * (1 + 1e-9)
        best = max(best, exponential / flip if flip else 1)

    assert 1.95 < best <= 2 + 1e-9


def test_a_large_margin_is_found():
    """A gap of `needed` is found with the confidence; the threshold is that of the proof."""
    margin = LargeMargin(1, 1e-6, k=2)
    gap = margin.needed(0.95)

    assert math.isclose(0.95, 1 - margin.probabilities([0, -1, -1 - gap, -1 - gap])[-1], rel_tol=1e-9)
    assert math.isclose(0.5 + math.log(1 / 2e-6), margin.threshold)
    assert margin.choose([900, 900, 0, 0], bits=seeded(5)) in {0, 1}
    assert margin.choose([900, 900, 899, 0], bits=seeded(5)) is None


def test_a_run_ends_where_a_score_passes():
    """AboveThreshold answers no, no, yes, and then nothing more; an empty batch asks nothing."""
    watch = AboveThreshold(1000, epsilon=1).start(seeded(6))

    assert watch.first([]) is None
    assert not watch.above(3)
    assert not watch.above(4.5)
    assert watch.above(2000)
    assert watch.stopped
    with pytest.raises(NoiseError):
        watch.above(2000)
    assert AboveThreshold(1000, 1).first(np.zeros(10_000)) is None


def test_the_gap_is_told_where_a_run_ends():
    """The same score passes from the same bits with a gap and without; near the truth, and less a slack below it."""
    scores = [0, 3, 1700, 4]
    passed = AboveThreshold(1000, epsilon=1).first_with_gap(scores, bits=seeded(7))
    watch = AboveThreshold(1000, epsilon=1).start(seeded(8))

    assert AboveThreshold(1000, epsilon=1).first(scores, bits=seeded(7)) == passed.place == 2
    assert 600 < passed.at_least(0.999) < passed.at_least(0.9) < passed.gap < 800
    assert -math.inf == Passed(0, 1.0, 0.25).at_least(0.9)
    assert watch.first_with_gap([]) is None
    assert watch.first_with_gap(scores[:2]) is None
    assert watch.first_with_gap(scores).place == 2
    assert watch.stopped
    with pytest.raises(NoiseError, match="ended"):
        watch.first_with_gap(scores)
    with pytest.raises(InvalidTarget):
        passed.at_least(1.0)


def test_unknown_options_come_back_as_far_as_they_stand_out():
    """Options far ahead come back and are paid; those of single units do not; no option at all is a stop."""
    top = UnknownTopK(k=3, k_bar=4, epsilon=1, delta=1e-6)
    found = top.choose([900, 700, 500, 3, 1], bits=seeded(7))

    assert [0, 1, 2] == found.places.tolist()
    assert not found.stopped
    assert 3 == found.peels
    assert 1 == top.choose([], bits=seeded(7)).peels
    assert top.choose([1], bits=seeded(7)).stopped


def test_a_refined_maximum_pays_less_for_a_larger_lead():
    """The price falls with the gap, never passes what was reserved, and the answer holds the noisy values."""
    mechanism = RefinedMax(within=50)
    prices = [mechanism.choose([gap, 0, 0], bits=seeded(8)).price(Gdp) for gap in (0, 150, 2000)]

    assert prices[2] < prices[1] < prices[0] <= mechanism.most(3)
    assert 3 == len(mechanism.choose([1, 2, 3], bits=seeded(8)).measured.values)
    assert RefinedMax(50, moved=2).most(3).amount == 2 * mechanism.most(3).amount
    schedule = mechanism.schedule(3)
    assert 0 == schedule.leads[-1]
    assert list(schedule.leads) == sorted(schedule.leads, reverse=True)


NAN, INF = math.nan, math.inf
BAD_SCORES = [[], 3, [NAN, 1.0], [INF, 1.0], [-INF, 1.0], ["a", "b"], [2**62, 0], [None, 1], [1j, 2j]]
CHOOSERS = [
    Exponential(1),
    PermuteAndFlip(1),
    *[NoisyMax(1, noise) for noise in NOISES],
    TopK(1, 1),
    LargeMargin(1, 0.25),
    RefinedMax(10),
]


@pytest.mark.parametrize("scores", BAD_SCORES, ids=str)
@pytest.mark.parametrize("mechanism", CHOOSERS, ids=lambda each: type(each).__name__)
def test_scores_that_are_none_are_refused(mechanism, scores):
    """Empty, not finite, not numbers, too large: refused by every mechanism, without telling a score."""
    with pytest.raises(NoiseError) as caught:
        mechanism.choose(scores)

    assert caught.value.rule
    assert "nan" not in str(caught.value)


@pytest.mark.parametrize("sensitivity", [0, -1, NAN, INF, "1", True, 1e-300])
def test_sensitivities_that_are_none_are_refused(sensitivity):
    """Sensitivity is a positive, finite number."""
    for mechanism in (Exponential(1), PermuteAndFlip(1), NoisyMax(1, "gaussian"), TopK(1, 1), LargeMargin(1, 0.25)):
        with pytest.raises(InvalidBudget):
            mechanism.choose([1, 2, 3], sensitivity)
    with pytest.raises(InvalidBudget):
        AboveThreshold(0, 1, sensitivity=sensitivity)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TopK(0, 1),
        lambda: TopK(-1, 1),
        lambda: TopK(1.5, 1),
        lambda: TopK("3", 1),
        lambda: TopK(3, 1).choose([1, 2]),
        lambda: TopK(3, 0),
        lambda: PermuteAndFlip(0),
        lambda: NoisyMax(-1),
        lambda: NoisyMax(1, "cauchy"),
        lambda: NoisyMax(1, "gaussian").choose([1, 2], moved=0),
        lambda: LargeMargin(1, 0),
        lambda: LargeMargin(1, 1),
        lambda: LargeMargin(1, 0.5, share=1),
        lambda: LargeMargin(1, 0.5, k=2).choose([1, 2]),
        lambda: LargeMargin(1, 0.5).choose([[1, 2], [3, 4]]),
        lambda: AboveThreshold(NAN, 1),
        lambda: AboveThreshold("1", 1),
        lambda: AboveThreshold(0, 1).start().above(NAN),
        lambda: UnknownTopK(3, 2, 1, 0.5),
        lambda: UnknownTopK(1, 2, 1, 0.5, moved=0),
        lambda: UnknownTopK(1, 2, 1, 0.5).choose([4, 3, 2, 1]),
        lambda: UnknownTopK(1, 2, 1, 0.5).choose([3, 4]),
        lambda: UnknownTopK(1, 2, 1, 0.5).choose([3, 0]),
        lambda: UnknownTopK(1, 2, 1, 0.5).price(Pure, 2),
        lambda: RefinedMax(0),
        lambda: RefinedMax(NAN),
        lambda: RefinedMax(5, confidence=0.5),
        lambda: RefinedMax(5, confidence=1),
        lambda: RefinedMax(5, sensitivity=1.5),
        lambda: RefinedMax(5).choose([1.5, 2.5]),
        lambda: RefinedMax(5).choose([1]),
        lambda: RefinedMax(1e-6).choose([1, 2]),
        lambda: for_regret("gumbel", options=3, within=5, k=3),
        lambda: for_regret("gumbel", options=3, within=-5),
        lambda: for_regret("cauchy", options=3, within=5),
        lambda: Exponential(1).choose([0, 0], weights=[1, 2, 3]),
    ],
)
def test_what_is_no_selection_is_refused(make):
    """Counts, prices, deltas, thresholds and targets out of range: refused with the rule and what to do."""
    with pytest.raises(FarthingError) as caught:
        make()

    assert isinstance(caught.value, InvalidBudget | InvalidOption | InvalidTarget | NoiseError)
    assert caught.value.rule
    assert caught.value.next_step


def test_bits_that_never_differ_fail_closed():
    """Contenders whose bits never differ end in an error, not in a guess."""

    class Same:
        def words(self, count, /):
            return np.full(count, 1 << 60, np.uint64)

    with pytest.raises(NoiseError):
        NoisyMax(1).choose([1, 1], bits=Same())
