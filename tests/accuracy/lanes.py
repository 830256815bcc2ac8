"""Groups of values in [0, 100] as lanes (N, S, Q) centred at 50, squares less LESS, measured by a seeded generator."""

from dataclasses import replace

import numpy as np

from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.statistics import Linear, RatioStatistic, VarianceStatistic

GRAIN = 2.0**-56
HALF = 50.0
LESS = HALF**2 / 2
PER_GRAIN = (GRAIN, GRAIN / HALF**2, GRAIN / LESS**2)
COUNT, SUM = Linear((0,)), Linear((1, 0), (1.0, HALF), HALF)
MEAN = RatioStatistic(0, 1, HALF, 0.0, 2 * HALF)
VARIANCE = VarianceStatistic(0, 1, 2, HALF, less=LESS)
DEVIATION, SAMPLE = replace(VARIANCE, root=True), replace(VARIANCE, sample=True)
FIVE = (COUNT, SUM, MEAN, SAMPLE, DEVIATION)


def lanes(size, mean, variance):
    """Return N, S, Q of a group."""
    offset = mean - HALF
    return np.array([size, size * offset, size * (variance + offset**2 - LESS)], dtype=float)


def source(truth, rng, *, smaller=1.0, log=None, per_grain=PER_GRAIN):
    """Return a `measure` that adds Gaussian noise; `smaller` than it should be, if a bug is planted."""

    def measure(grains, groups):
        if log is not None:
            log.append((grains.copy(), groups.copy()))
        sigma = 1 / np.sqrt(np.maximum(grains, 1) * np.array(per_grain)[:, None])
        return truth[:, groups] + sigma / smaller * rng.standard_normal(grains.shape)

    return measure


def joint(statistics, relative, absolute=0.0, *, beta=0.05, cap=2**56):
    """Return a question with the same target for every output."""
    return JointMeasures(statistics, ((relative, absolute),) * len(statistics), beta, PER_GRAIN, cap)


def in_claims(statistics, relative, absolute=0.0, **how):
    """Return the same beside a count without a target: such questions make claims in stages."""
    question = joint((*statistics, COUNT), relative, absolute, **how)
    return replace(question, targets=(*question.targets[:-1], (0.0, 0.0)))


def start(question, groups):
    """Return the state before anything."""
    return JointState.nothing(3, len(question.statistics), groups)


def truths(question, truth):
    """Return the true answers, float64[outputs, groups]."""
    return np.stack([statistic.estimate(truth) for statistic in question.statistics])


def misses(question, state, truth):
    """Return how often intervals miss, or met values are further off than they may be: int64[outputs]."""
    answers = truths(question, truth)
    allowed = np.stack([np.maximum(r * np.abs(x), a) for (r, a), x in zip(question.targets, answers, strict=True)])
    outside = (answers < state.lower * (1 - 1e-12) - 1e-9) | (answers > state.upper * (1 + 1e-12) + 1e-9)
    asked = np.array([r + a > 0 for r, a in question.targets])[:, None]
    off = (np.abs(state.value - answers) > allowed * (1 + 1e-9)) & state.met & asked
    return (outside | off).sum(axis=1)
