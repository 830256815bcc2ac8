"""Which groups can be within their targets at all: seldom denied of those that can, soon seen of those without rows."""

from dataclasses import replace

import numpy as np
import pytest
from accuracy.lanes import FIVE, MEAN, PER_GRAIN, VARIANCE, joint, lanes, source, start

from farthing.accuracy.laplace_looks import LaplaceLooks
from farthing.accuracy.laplace_measures import LaplaceMeasures
from farthing.accuracy.reach import FUTILE_SHARE, about_one
from farthing.accuracy.statistics import Linear, RatioStatistic

WORTH = np.array(PER_GRAIN)[:, None]


def needed(rule, truth):
    """Return a tick's grains, int64[lanes, 1], and the ticks at which a group would be within its targets."""
    shape, ticks = rule.shape(truth, np.full(truth.shape, 1 << 60)), 1.0
    for _ in range(60):
        ticks *= float(np.clip(rule._excess(truth, 1 / (np.maximum(shape, 1e-100) * ticks * WORTH))[0], 0.3, 3)) ** 2
    return shape, ticks


def called_too_small(statistics, relative, truth, part, *, holds, runs=20_000, seed=1):
    """Return the part of groups called too small at that part of what a group of that truth takes, which hold that.

    And the part that are called so and would be within their targets when they had paid all of it.
    """
    question, rng = joint(statistics, relative), np.random.default_rng(seed)
    rule = question.looks(start(question, 1))
    shape, ticks = needed(rule, truth[:, None])
    whole, size = shape * ticks * WORTH, float((shape * ticks).sum())
    soon, later = (
        holds[:, None] + np.where(shape > 0, rng.standard_normal((3, runs)) / np.sqrt(np.maximum(each, 1e-300)), 0.0)
        for each in (whole * part, whole * (1 - part))
    )
    most, spent = np.full(runs, int(size)), np.full(runs, int(size * part))
    called = rule.reach.too_small(soon, np.broadcast_to(whole * part, soon.shape), most, 0.05, spent)
    variances = np.broadcast_to(1 / np.maximum(whole, 1e-300), soon.shape)
    met = rule._excess(part * soon + (1 - part) * later, variances) <= 1
    return float(called.mean()), float((called & met).mean())


@pytest.mark.parametrize(("statistics", "relative", "part", "place"), [
    (FIVE, 0.3, 0.5, (62.5, 0.9)),
    (FIVE, 0.1, 0.1, (57.0, 0.8)),
    ((MEAN,), 0.1, 0.3, (81.0, 0.45)),
    ((MEAN,), 0.3, 0.8, (50.0, 0.5)),
])  # fmt: skip
def test_groups_that_would_be_met_are_seldom_called_too_small(statistics, relative, part, place):
    """With probability .02 beta at a look at means and variances that are tried, a few times that between."""
    mean, spread = place
    truth = lanes(1e4, mean, spread * (2500 - (mean - 50) ** 2))
    _, met = called_too_small(statistics, relative, truth, part, holds=truth)
    empty, _ = called_too_small(statistics, relative, truth, part, holds=np.zeros(3))

    assert met <= 2.5 * FUTILE_SHARE * 0.05
    assert empty > 0.5


@pytest.mark.parametrize(("only", "relative", "part"), [(MEAN, 0.1, 0.5), (VARIANCE, 0.3, 1 / 3)])
def test_groups_that_would_be_met_under_a_pure_budget_are_seldom_called_too_small(only, relative, part):
    """A coarse look shows a finer one and more noise, on top of it: what that is says who could still be met."""
    unit = (1.0, 50.0, 1250.0)[: len(only.reads)]
    rule = LaplaceLooks.of(LaplaceMeasures((only,), ((relative, 0.0),), 0.05, unit, (2.0**-12,) * len(unit), 2**40), 1)
    truth, rng, runs = lanes(1e4, 56.25, 1500.0)[: len(unit), None], np.random.default_rng(2), 20_000
    most = 1e6
    for _ in range(80):
        most *= float(np.clip(rule._wide(truth, rule._scales(np.array([most])))[0][0], 0.5, 2))
    scale = rule._scales(np.array([most]))
    last = truth + rng.laplace(size=(len(unit), runs)) * scale
    moved = rng.uniform(size=last.shape) < 1 - part**2
    soon, ticks = rng.laplace(size=last.shape) * scale / part * moved, np.full(runs, int(part * most))
    called = rule.reach.too_small(last + soon, ticks, int(most))
    met = rule._wide(last, np.repeat(scale, runs, axis=1))[0] <= 1
    empty = rule.reach.too_small(last - truth + soon, ticks, int(most))

    assert (called & met).mean() <= FUTILE_SHARE * 0.05
    assert met.mean() > 0.3
    assert empty.mean() > 0.4


@pytest.mark.parametrize("only", [MEAN, VARIANCE, replace(VARIANCE, root=True)])
@pytest.mark.parametrize("times", [2.0**-40, 2.0**20, 2.0**40])
def test_what_a_pure_budget_takes_is_the_same_at_any_range(only, times):
    """Values in other units take as many ticks: a range of a million or more had none of its groups met."""

    def needed(half):
        """Return that of a range so large, whose lower end is 0."""
        wide = (
            replace(only, half=half, less=half**2 / 2)
            if only is not MEAN
            else RatioStatistic(0, 1, half, 0.0, 2 * half)
        )
        unit = (1.0, half, half**2 / 2)[: len(only.reads)]
        steps = tuple(2.0**-12 * each for each in (1.0, half / 50, (half / 50) ** 2))[: len(unit)]
        return LaplaceLooks.of(LaplaceMeasures((wide,), ((0.3, 0.0),), 0.05, unit, steps, 2**40), 1).reach.needed

    assert needed(50.0 * times) == pytest.approx(needed(50.0), rel=1e-3)


def test_other_columns_and_absolute_counts_have_no_part_in_it():
    """A target that does not scale with the rows is left out, and so is one about other lanes: each is one to meet."""
    question = joint((MEAN, VARIANCE, Linear((3,)), Linear((0,))), 0.1)
    kept = about_one(question.prices)
    wide = joint((MEAN, Linear((0,))), 0.1, 5.0)

    assert kept.statistics == (MEAN, VARIANCE, Linear((0,)))
    assert about_one(wide.prices).statistics == (MEAN,)


def test_a_group_without_rows_pays_little_and_nothing_when_it_is_asked_again():
    """Five answers at 30 %: at most a fifth of the cap in the mean, where half was paid; given up, it stays so."""
    question, truth = joint(FIVE, 0.3, cap=2**50), np.zeros((3, 1_000))
    measure = source(truth, np.random.default_rng(3))
    state = question.run(start(question, 1_000), measure)

    assert state.paid.mean() < 0.2 * 2**50
    assert question.free(state)
    assert not state.met.all(axis=0).any()
