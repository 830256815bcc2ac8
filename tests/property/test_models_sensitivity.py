"""What one row moves: the statistics, the minimiser and the score, by brute force over neighbours."""

from dataclasses import replace

import numpy as np
import pytest

from farthing.models.problems import Logistic, Ridge
from farthing.models.rows import UnitBallFrame
from farthing.models.stops import CEILING, best_score, score_of
from farthing.models.vectors import Output, Statistics

STRENGTH = 0.05


def rows(rng, count, columns, norm):
    """Return features and responses far beyond their bounds, corners and multiples of unit vectors among them."""
    features = rng.normal(size=(count, columns)) * rng.choice([0.1, 1, 1e6], size=(count, 1))
    features[::3] = np.eye(columns)[rng.integers(0, columns, len(features[::3]))] * rng.choice([-7, 7], (1, 1))
    features[1::7] = rng.choice([-1e3, 1e3], size=features[1::7].shape)
    frame = UnitBallFrame(1.5, 2.0, norm, intercept=False)
    return frame.points(features), frame.responses(rng.choice([-9.0, 9.0, 0.3], size=count), count)


def norm_of(move, norm):
    """Return the length of a move in steps."""
    return float(np.linalg.norm(move.astype(float), ord=1 if norm == "l1" else 2))


@pytest.mark.parametrize("columns", [1, 3, 12])
@pytest.mark.parametrize("rows_in", ["l1", "l2"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_one_row_moves_the_statistics_by_no_more_than_they_say(columns, rows_in, norm):
    """No row passes the sensitivity; in l2, and in l1 for l1 rows, the worst comes within a thousandth of it."""
    rng = np.random.default_rng(columns)
    points, responses = rows(rng, 400, columns, rows_in)
    moved = [Statistics.of(Ridge(points[[i]], responses[[i]], 10, STRENGTH), rows_in).truth for i in range(len(points))]
    vector = Statistics.of(Ridge(points, responses, 10, STRENGTH), rows_in)
    worst = max(norm_of(move, norm) for move in moved)

    assert np.array_equal(np.sum(moved, axis=0), vector.truth)
    assert worst <= vector.sensitivity(norm)
    if norm == "l2" or rows_in == "l1":
        assert worst >= 0.999 * vector.sensitivity(norm)


def test_the_statistics_show_a_forgotten_clamp_and_a_half_sensitivity():
    """A row outside of the unit ball, or a sensitivity of half the size, breaks the bound."""
    vector = Statistics.of(Ridge(np.array([[1.2]]), np.array([1.0]), 10, STRENGTH), "l2")
    honest = Statistics.of(Ridge(np.array([[1.0]]), np.array([1.0]), 10, STRENGTH), "l2")

    assert norm_of(vector.truth, "l2") > vector.sensitivity("l2")
    assert norm_of(honest.truth, "l2") > honest.sensitivity("l2") / 2


def neighbours(rng, kind, columns, count):
    """Return a problem on some rows and the same with one row more, an extreme one."""
    points, responses = rows(rng, count + 1, columns, "l2")
    signed = points * np.sign(responses)[:, None]
    few = slice(0, count)
    if kind is Ridge:
        return Ridge(points[few], responses[few], 20, STRENGTH), Ridge(points, responses, 20, STRENGTH)
    return Logistic(signed[few], 20, STRENGTH), Logistic(signed, 20, STRENGTH)


@pytest.mark.parametrize("kind", [Ridge, Logistic])
def test_one_row_moves_the_minimiser_by_no_more_than_it_says(kind):
    """No pair of neighbours passes the sensitivity, also where there are far more rows than N."""
    worst = 0.0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        pair = neighbours(rng, kind, int(rng.integers(1, 5)), int(rng.choice([1, 3, 20, 90])))
        without, present = (Output.of(problem) for problem in pair)
        for norm in ("l1", "l2"):
            share = norm_of(present.truth - without.truth, norm) / without.sensitivity(norm)
            worst = max(worst, share)

    assert 0.1 < worst <= 1


def test_the_move_of_a_logistic_minimiser_is_nearly_attained():
    """From no rows but one that says nothing, a row at the rim moves the minimiser by almost what the bound allows."""
    weak = Logistic(np.zeros((1, 1)), 10_000, 1.0)
    strong = Logistic(np.array([[0.0], [1.0]]), 10_000, 1.0)
    moved = norm_of(Output.of(strong).truth - Output.of(weak).truth, "l2")

    assert 0.49 < moved / Output.of(weak).sensitivity("l2") <= 1  # the slope at 0 is a half of the longest


@pytest.mark.parametrize("kind", [Ridge, Logistic])
def test_one_row_moves_the_score_by_no_more_than_one(kind):
    """Given a hypothesis, near or far, the score of neighbours differs by at most 1; the worst is not far from it."""
    worst = 0.0
    for seed in range(1500):
        rng = np.random.default_rng(seed)
        columns = int(rng.integers(1, 4))
        without, present = neighbours(rng, kind, columns, int(rng.choice([1, 3, 20, 60])))
        theta = without.minimiser() + rng.normal(size=columns) * rng.choice([0, 0.01, 0.1, 1])
        target = float(rng.choice([1e-4, 1e-2, 0.3]))
        worst = max(worst, abs(score_of(present, theta, target) - score_of(without, theta, target)))

    assert 0.25 < worst <= 1


def test_a_score_without_the_ridge_curvature_or_of_the_excess_itself_is_caught():
    """Half of the move is passed by some neighbours: the bound on the root of the excess has little to spare."""
    without = Logistic(np.zeros((1, 1)), 10_000, 1e-4)
    present = Logistic(np.array([[0.0], [1.0]]), 10_000, 1e-4)
    theta = np.array([-20.0])
    moved = abs(score_of(present, theta, 10.0) - score_of(without, theta, 10.0))

    assert 0.9 < moved <= 1


def test_the_score_is_at_most_that_of_a_perfect_hypothesis():
    """The best score is public; what is twice the target's root away scores no less than minus that."""
    rng = np.random.default_rng(3)
    problem, _ = neighbours(rng, Ridge, 3, 30)
    best = best_score(problem, problem.minimiser(), 0.01)

    assert best * 0.99 < score_of(problem, problem.minimiser(), 0.01) <= best
    far = problem.minimiser() + 100
    assert score_of(problem, far, 0.01) == pytest.approx((1 - CEILING) * best_score(problem, far, 0.01))


def test_a_grid_that_is_rounded_after_the_sum_would_be_told_apart():
    """The sum of rounded rows is what neighbours differ by: one row is exactly its own rounded products."""
    rng = np.random.default_rng(4)
    points, responses = rows(rng, 50, 3, "l2")
    whole = Statistics.of(Ridge(points, responses, 50, STRENGTH), "l2")
    shuffled = rng.permutation(50)

    assert np.array_equal(whole.truth, Statistics.of(Ridge(points[shuffled], responses[shuffled], 50, 1.0), "l2").truth)
    assert replace(whole, rows=7).truth is whole.truth
