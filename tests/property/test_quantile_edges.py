"""The interval of a quantile holds the value of constant data, wherever it lies and however its range is clamped."""

import math

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sweeps import sweep

from farthing import Budget, Session
from farthing.accuracy.quantile_ranks import QuantileGoal
from farthing.engines.contributions import leaf
from farthing.planning.quantile_sought import goal_of
from farthing.query.aggregates import Quantile
from farthing.query.expressions import Column
from farthing.query.schema import Type

ENDS = st.floats(-1e9, 1e9, allow_subnormal=False) | st.floats(-1e-9, 1e-9) | st.decimals(-99, 99, places=2).map(float)


@given(lower=ENDS, width=st.floats(1e-12, 1e9), share=st.floats(0, 1), leaves=st.sampled_from([1, 7, 16]))
@example(lower=-26.63, width=7.29 + 26.63, share=(26.63 - 9.67) / (7.29 + 26.63), leaves=16)
@settings(max_examples=sweep(600, 2_000), deadline=None)
def test_a_leaf_holds_its_values(lower, width, share, leaves):
    """Every value is between the ends of the leaf that it is counted in; the ends stay within the clamps."""
    upper = lower + width
    if not lower < upper:
        return
    asked = QuantileGoal(0.5, lower, upper, leaves)
    value = min(max(lower + share * width, lower), upper)
    for each in (value, math.nextafter(value, -math.inf), math.nextafter(value, math.inf), float(f"{value:.2f}")):
        inside = min(max(each, lower), upper)
        place = np.array([leaf(Quantile(Column("x"), 0.5, lower, upper, leaves), inside)])
        low, high = asked.ends(place, place)

        assert lower <= low[0] <= inside <= high[0] <= upper


@given(lower=st.integers(-(2**51), 2**51), more=st.integers(1, 2**16 - 1), value=st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=sweep(600, 2_000), deadline=None)
def test_a_whole_number_is_told_as_itself(lower, more, value):
    """The leaf of a clamped whole number begins and ends at it, and is shown as it."""
    upper = lower + more
    quantile = Quantile.of(Column("x"), Type.INTEGER, 0.5, float(lower), float(upper))
    asked = goal_of(quantile, 1, None)
    for each in (value, lower + value % (more + 1)):
        place = np.array([leaf(quantile, each)])
        inside = float(min(max(each, lower), upper))

        assert ([inside], [inside]) == tuple(end.tolist() for end in asked.ends(place, place))
        assert [inside] == asked.middle(place, place).tolist() == asked.most(place).tolist()


def test_the_interval_of_constant_data_holds_them():
    """Asked of a session: all values -9.67, clamped to [-26.63, 7.29], and others that fall on an edge."""
    for lower, upper, value in [(-26.63, 7.29, -9.67), (0.1, 0.7, 0.4), (-1.1, 3.3, 1.1), (1e15, 1e15 + 3, 1e15 + 1.5)]:
        with Session(pa.table({"x": [value] * 4_000}), budget=Budget(mu=9)) as session:
            answer = session.quantile("x", 0.5, lower=lower, upper=upper, absolute=(upper - lower) / 2**15)

        assert answer.lower <= value <= answer.upper
