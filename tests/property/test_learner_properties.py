"""Private learners: mistakes are those of the predictions, neighbours stay as close as booked, by enumeration."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.mechanisms import DecisionStumps, Exponential, FiniteClass, FiniteClassLearner, GlobalStability, Points
from farthing.mechanisms.hypotheses import Thresholds, mistakes_of
from farthing.mechanisms.learner import samples_limit, samples_needed
from farthing.mechanisms.stable_learner import points_needed, stable_point

VALUES = st.sampled_from([-3, 0, 1, 2, 2.5, 4, 7, 1e9])
ROWS = st.lists(st.tuples(VALUES, VALUES, st.integers(0, 1)), max_size=12)
GRIDS = st.lists(VALUES, min_size=1, max_size=6, unique=True).map(sorted)


def columns(rows):
    """Return features [rows, 2] and labels."""
    table = np.array(rows, np.float64).reshape(-1, 3)
    return table[:, :2], table[:, 2].astype(np.int64)


@given(rows=ROWS, first=GRIDS, second=GRIDS)
@settings(max_examples=150, deadline=None)
def test_counted_mistakes_are_those_of_the_predictions(rows, first, second):
    """The one pass over sorted rows counts what each hypothesis, asked alone, gets wrong."""
    features, labels = columns(rows)
    stumps, thresholds = DecisionStumps({0: first, 1: second}), Thresholds(first)

    assert FiniteClass(list(map(stumps.__getitem__, range(len(stumps))))).mistakes(features, labels).tolist() == (
        stumps.mistakes(features, labels).tolist()
    )
    assert [mistakes_of(thresholds[i], features[:, 0], labels) for i in range(len(first))] == (
        thresholds.mistakes(features[:, 0], labels).tolist()
    )


@given(points=st.lists(st.tuples(st.integers(-2, 9), st.integers(0, 1)), max_size=12), size=st.integers(1, 8))
@settings(max_examples=150, deadline=None)
def test_points_count_alike(points, size):
    """Points outside of the domain, negative ones too, are no point of the class."""
    values, labels = np.array(points, np.int64).reshape(-1, 2).T

    assert [mistakes_of(Points(size)[i], values, labels) for i in range(size)] == (
        Points(size).mistakes(values, labels).tolist()
    )


@given(rows=ROWS, fresh=st.tuples(VALUES, VALUES, st.integers(0, 1)), first=GRIDS, second=GRIDS)
@settings(max_examples=150, deadline=None)
def test_one_row_more_moves_all_mistakes_one_way(rows, fresh, first, second):
    """Each count rises by 0 or 1, so the log-ratios of the choice lie within an interval of length epsilon."""
    stumps = DecisionStumps({0: first, 1: second})
    before, after = stumps.mistakes(*columns(rows)), stumps.mistakes(*columns([*rows, fresh]))
    law = [np.log(Exponential(0.7).probabilities(-each, monotone=True)) for each in (before, after)]

    assert {0, 1} >= set((after - before).tolist())
    assert np.ptp(law[0] - law[1]) <= 0.7 + 1e-12


def test_a_replaced_row_costs_twice():
    """A planted bug: the price of one row for a replaced one. The log-ratios spread to 2 epsilon, no further."""
    thresholds = Thresholds([0])
    stumps = DecisionStumps({0: thresholds.cuts})
    one, other = (stumps.mistakes(np.array([[x]]), np.array([1])) for x in (-1.0, 1.0))
    law = [np.log(Exponential(0.7).probabilities(-each, monotone=True)) for each in (one, other)]

    assert np.ptp(law[0] - law[1]) == pytest.approx(1.4)
    assert np.ptp(law[0] - law[1]) > FiniteClassLearner(stumps, 0.7).loss.value
    assert np.ptp(law[0] - law[1]) <= FiniteClassLearner(stumps, 0.7).loss.for_group(2).value + 1e-12


@given(
    size=st.integers(2, 2**60),
    error=st.sampled_from([0.01, 0.1, 0.3, 0.49]),
    failure=st.sampled_from([0.001, 0.05, 0.4]),
    epsilon=st.sampled_from([0.01, 0.3, 1, 5]),
)
@settings(max_examples=150, deadline=None)
def test_more_is_never_harder(size, error, failure, epsilon):
    """Fewer hypotheses, more error, more failure or more epsilon never need more rows; nor does realizable data."""
    for agnostic in (False, True):
        rows = samples_needed(size, error, failure, epsilon, agnostic=agnostic)
        easier = ((size // 2, error, failure, epsilon), (size, error * 1.5, failure, epsilon))
        easier += ((size, error, failure * 1.5, epsilon), (size, error, failure, 2 * epsilon))
        assert all(samples_needed(*each, agnostic=agnostic) <= rows for each in easier)
    assert samples_needed(size, error, failure, epsilon) <= rows
    assert samples_limit(size - 1, error, failure, epsilon) <= samples_needed(size, error, failure, epsilon)


def told(count, q, threshold):
    """Return the law of one count's answer, None or a noisy number, cut off far out."""
    if not count:
        return {None: 1.0}
    numbers = range(threshold, threshold + 60)
    law = {v: (1 - q) / (1 + q) * q ** abs(v - count) for v in numbers}
    law[None] = (
        1 - q ** abs(threshold - count) / (1 + q) if threshold > count else q ** (count - threshold + 1) / (1 + q)
    )
    return law


def hockey_stick(one, other, epsilon):
    """Return sum max(0, P - e^eps Q) over the answers of two counts with independent noise."""
    return sum(
        max(0.0, one[0][a] * one[1][b] - math.exp(epsilon) * other[0].get(a, 0.0) * other[1].get(b, 0.0))
        for a, b in itertools.product(*one)
    )


@pytest.mark.parametrize("counts", list(itertools.product((1, 2, 5), (0, 1, 4))))
def test_two_counts_keep_delta_once(counts):
    """A vote that changes sides moves two counts: (epsilon, delta) holds both ways, with delta once."""
    learner = GlobalStability(stable_point, epsilon=1, delta=0.01, parts=50, moves=2)
    laws = [
        [told(n, math.exp(-learner.rate), learner.threshold) for n in each]
        for each in (counts, (counts[0] - 1, counts[1] + 1))
    ]
    slack = float(learner.loss.slack)

    truth = max(hockey_stick(*laws, 1.0), hockey_stick(*laws[::-1], 1.0))

    assert truth <= slack * (1 + 1e-9) + 1e-12


def test_delta_is_reached_and_planted_bugs_are_caught():
    """One vote against another reaches delta; the price of one count, or a threshold one lower, is too little."""
    learner = GlobalStability(stable_point, epsilon=1, delta=0.01, parts=50, moves=2)
    slack = float(learner.loss.slack)
    q = math.exp(-learner.rate)

    def worst(counts, threshold, epsilon):
        laws = [[told(n, q, threshold) for n in each] for each in (counts, (counts[0] - 1, counts[1] + 1))]
        return max(hockey_stick(*laws, epsilon), hockey_stick(*laws[::-1], epsilon))

    assert worst((1, 0), learner.threshold, 1.0) == pytest.approx(slack, rel=1e-9)
    assert worst((1, 0), learner.threshold - 1, 1.0) > 1.5 * slack
    assert worst((9, 7), learner.threshold, 0.5) > 4 * slack


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), max_size=8), fresh=st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_a_point_never_changes_for_another(rows, fresh):
    """One row more makes, keeps or silences the vote of a part: one count moves, by one."""
    values, labels = np.array(rows, np.int64).reshape(-1, 2).T
    before = stable_point(values, labels)
    after = stable_point(np.append(values, fresh), np.append(labels, 1))

    assert before is None or after is None or before == after
    assert before == stable_point(np.append(values, fresh), np.append(labels, 0))


def test_rows_for_points_by_brute_force():
    """The least number of rows is that of the law of occupied parts, enumerated part by part."""
    learner = GlobalStability(stable_point, epsilon=4, delta=0.01, parts=400, moves=1)
    rows = points_needed(learner, 0.3, 0.05)
    q, total = math.exp(-learner.rate), learner.parts

    def occupied(k):
        law = Counter({0: Fraction(1)})
        for _ in range(k):
            law = sum(
                (Counter({v: p * Fraction(v, total), v + 1: p * Fraction(total - v, total)}) for v, p in law.items()),
                Counter(),
            )
        return law

    def fails(n):
        hidden = [
            float(sum(p * Fraction(told(v, q, learner.threshold)[None]) for v, p in occupied(k).items()))
            for k in range(n + 1)
        ]
        return sum(math.comb(n, k) * 0.3**k * 0.7 ** (n - k) * hidden[k] for k in range(n + 1))

    assert fails(rows) <= 0.05 < fails(rows - 1)
    assert rows <= points_needed(learner, 0.29, 0.05)
