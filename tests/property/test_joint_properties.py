"""Laws of joint questions."""

import numpy as np
from accuracy.lanes import DEVIATION, MEAN, PER_GRAIN, SAMPLE, SUM, VARIANCE, lanes, source
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState

STATISTICS = (SUM, MEAN, VARIANCE, DEVIATION, SAMPLE)
subsets = st.lists(st.sampled_from(STATISTICS), min_size=1, max_size=3, unique=True).map(tuple)
fractions = st.sampled_from([0.0, 0.01, 0.1, 0.5])
widths = st.sampled_from([0.0, 1.0, 1e3])


@settings(deadline=None, max_examples=25)
@given(subsets, fractions, widths, st.integers(0, 2**58), st.integers(0, 2**32))
def test_any_question_ends_with_ordered_intervals_within_the_cap(statistics, relative, absolute, cap, seed):
    """Whatever is asked of whatever groups: within the cap, lower <= value <= upper, and free when asked again."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([[0.0, 1.0, -3.0], 10 ** rng.uniform(0, 7, 5)])
    truth = np.stack([lanes(size, rng.uniform(0, 100), rng.uniform(0, 900)) for size in sizes], axis=1)
    question = JointMeasures(statistics, ((relative, absolute),) * len(statistics), 0.05, PER_GRAIN, cap)
    state = question.run(JointState.nothing(3, len(statistics), len(sizes)), source(truth, rng))

    assert state.paid.max(initial=0) <= cap
    assert (state.lower <= state.value).all()
    assert (state.value <= state.upper).all()
    assert question.worst(state) >= state.paid.max()


@settings(deadline=None, max_examples=50)
@given(
    st.sampled_from(STATISTICS), st.floats(-10, 1e6), st.floats(-1e7, 1e7), st.floats(-1e9, 1e9), st.floats(1e-6, 1e9)
)
def test_a_smaller_beta_never_narrows_an_interval(statistic, count, total, squares, noise):
    """Intervals are nested in beta, and hold their estimate."""
    values = np.array([[count], [total], [squares]])
    variances = np.array([[noise], [noise * 50**2], [noise * 50**4]])
    (low, high), (lower, higher) = (statistic.interval(values, variances, beta) for beta in (0.1, 0.01))
    slack = 1e-9 * (1 + np.abs(low) + np.abs(high))

    assert (lower <= low + slack).all()
    assert (high <= higher + slack).all()
    assert (low <= high + slack).all()
