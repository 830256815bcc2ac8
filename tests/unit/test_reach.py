"""Which groups can be within their targets at all: seldom denied of those that can, soon seen of those without rows."""

import numpy as np
import pytest
from accuracy.lanes import FIVE, MEAN, PER_GRAIN, VARIANCE, joint, lanes, source, start

from farthing.accuracy.reach import FUTILE_SHARE, about_one
from farthing.accuracy.statistics import Linear

WORTH = np.array(PER_GRAIN)[:, None]


def needed(rule, truth):
    """Return a tick's grains, int64[lanes, 1], and the ticks at which a group would be within its targets."""
    shape, ticks = rule.shape(truth, np.full(truth.shape, 1 << 60)), 1.0
    for _ in range(60):
        ticks *= float(np.clip(rule._excess(truth, 1 / (np.maximum(shape, 1e-100) * ticks * WORTH))[0], 0.3, 3)) ** 2
    return shape, ticks


def called_too_small(statistics, relative, truth, part, *, holds, runs=20_000, seed=1):
    """Return the part of groups called too small, at that part of what a group of that truth takes, which hold that."""
    question = joint(statistics, relative)
    rule = question.looks(start(question, 1))
    shape, ticks = needed(rule, truth[:, None])
    information = shape * ticks * part * WORTH
    noise = np.random.default_rng(seed).standard_normal((3, runs)) / np.sqrt(np.maximum(information, 1e-300))
    most = np.full(runs, int((shape * ticks).sum()))
    values = holds[:, None] + np.where(shape > 0, noise, 0.0)
    return float(rule.reach.too_small(values, np.broadcast_to(information, values.shape), most, 0.05).mean())


@pytest.mark.parametrize(("statistics", "relative", "part", "place"), [
    (FIVE, 0.3, 0.5, (62.5, 0.9)),
    (FIVE, 0.1, 0.1, (57.0, 0.8)),
    ((MEAN,), 0.1, 0.3, (81.0, 0.45)),
])  # fmt: skip
def test_groups_that_just_reach_their_targets_are_seldom_called_too_small(statistics, relative, part, place):
    """At a look with probability .02 beta at means and variances that are tried, a few times that between."""
    mean, spread = place
    truth = lanes(1e4, mean, spread * (2500 - (mean - 50) ** 2))
    reaches = called_too_small(statistics, relative, truth, part, holds=truth)
    empty = called_too_small(statistics, relative, truth, part, holds=np.zeros(3))

    assert reaches <= 2.5 * FUTILE_SHARE * 0.05
    assert empty > 0.5


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
