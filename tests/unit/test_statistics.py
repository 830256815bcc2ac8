"""Counts, means and variances as functions of noisy measures."""

import math
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np
import pytest

from farthing.accuracy.fieller import fieller
from farthing.accuracy.forms import FORMS, from_aggregates
from farthing.accuracy.joint_prices import JointPrices
from farthing.accuracy.statistics import Linear, RatioStatistic, VarianceStatistic
from farthing.accuracy.stop_rule import two_sided
from farthing.engines.contributions import contribution
from farthing.errors import UnsupportedQuery
from farthing.query.aggregates import Aggregate, Count, CountUnits, Mean, NamedAggregate, Quantile, Sum
from farthing.query.aggregates import Ratio as Quotient
from farthing.query.aggregates import Variance as Spread
from farthing.query.expressions import Column
from farthing.query.measures import Rows, Total
from farthing.query.shared_measures import needed

MEAN = RatioStatistic(0, 1, 50.0, 0.0, 100.0)
LESS = 50.0**2 / 2
KINDS = [(sample, root) for sample in (False, True) for root in (False, True)]
SPREADS = [VarianceStatistic(0, 1, 2, 50.0, *kind, less=LESS) for kind in KINDS]
X = np.random.default_rng(1).uniform(0, 100, 400)
LANES = np.array([[X.size], [(X - 50).sum()], [((X - 50) ** 2 - LESS).sum()]])
NONE = np.zeros_like(LANES)


def test_estimates_are_those_of_the_rows():
    """Noiseless lanes give the mean, variance and standard deviation that numpy computes from the rows."""
    assert X.mean() == pytest.approx(float(MEAN.estimate(LANES)[0]))
    for spread in SPREADS:
        plain = np.var(X, ddof=1 if spread.sample else 0)
        assert (plain**0.5 if spread.root else plain) == pytest.approx(float(spread.estimate(LANES)[0]))


@pytest.mark.parametrize("statistic", [Linear((1, 0), (1.0, 50.0)), MEAN, *SPREADS], ids=repr)
def test_without_noise_the_interval_is_the_estimate(statistic):
    """Variances of zero leave nothing open."""
    lower, upper = statistic.interval(LANES, NONE, 0.05)

    assert float(statistic.estimate(LANES)[0]) == pytest.approx(float(lower[0]), rel=1e-9)
    assert float(statistic.estimate(LANES)[0]) == pytest.approx(float(upper[0]), rel=1e-9)


@pytest.mark.parametrize("statistic", [MEAN, *SPREADS], ids=repr)
def test_hopeless_noise_gives_the_whole_range(statistic):
    """Where N may be zero the interval is everything that is possible."""
    lower, upper = statistic.interval(LANES, np.full_like(LANES, 1e12), 0.05)

    assert float(lower[0]) == 0.0
    assert float(upper[0]) >= 50.0


@pytest.mark.parametrize("statistic", [Linear((1, 0), (1.0, 50.0)), MEAN, SPREADS[0]], ids=repr)
def test_slopes_are_derivatives(statistic):
    """At zero width, slopes are the derivatives of the estimate (up to sign)."""
    slopes = statistic.slopes(LANES, np.zeros(1))[:, 0]
    for lane in statistic.reads:
        step = np.zeros_like(LANES)
        step[lane] = 1e-4 * np.abs(LANES[lane])
        rise = float((statistic.estimate(LANES + step) - statistic.estimate(LANES - step))[0] / (2 * step[lane][0]))
        assert abs(rise) == pytest.approx(abs(slopes[lane]), rel=1e-5)


def test_variance_ends_bound_the_union_over_every_mean():
    """The two ends are outside of d^2 + Fieller's set for every d of a dense grid in the mean's interval."""
    variances = np.array([[9.0], [9.0 * 50**2], [9.0 * 50**4]])
    lower, upper = SPREADS[0].interval(LANES, variances, 0.05)
    n, s, q = LANES[:, 0]
    low, high = fieller(s, n, *variances[[1, 0], 0], two_sided(0.005))
    for d in np.linspace(low, high, 301):
        below, above = fieller(
            q - 2 * d * s, n, variances[2, 0] + 4 * d * d * variances[1, 0], variances[0, 0], two_sided(0.045)
        )
        below, above = below + LESS, above + LESS
        assert lower[0] <= d * d + below + 1e-9
        assert d * d + above - 1e-9 <= upper[0]


def test_fieller_solves_its_quadratic():
    """At both ends the pivot is exactly z; with an unclear denominator there are no ends."""
    top, bottom, z = 30.0, 20.0, 1.5
    for end in fieller(np.array(top), np.array(bottom), np.array(4.0), np.array(9.0), z):
        assert z * np.sqrt(4.0 + end**2 * 9.0) == pytest.approx(abs(top - end * bottom))
    assert [-np.inf, np.inf] == [
        float(x) for x in fieller(np.array(top), np.array(1.0), np.array(4.0), np.array(9.0), z)
    ]


def test_aggregates_become_lanes_and_statistics():
    """Outputs share measures; a sum is read from the centred sum and count of a mean of the same values."""
    fare = Column("fare")
    aggregates = (
        Count(),
        CountUnits(),
        Sum(fare, 0, 100),
        Mean(fare, 0, 100),
        Spread(fare, 0, 100, sample=True, root=True),
    )
    statistics = from_aggregates(
        [NamedAggregate(str(i), aggregate) for i, aggregate in enumerate(aggregates)], needed(aggregates)
    )

    assert 5 == len(needed(aggregates))
    assert [(0,), (1,), (3, 2), (2, 3), (2, 3, 4)] == [statistic.reads for statistic in statistics]
    assert VarianceStatistic(2, 3, 4, 50.0, sample=True, root=True, less=LESS) == statistics[-1]


@pytest.mark.parametrize("bounds", [(0, 100), (-3.5, 11), (1e-20, 3e-20), (-7, 1e6)])
def test_squares_are_taken_from_half_of_the_largest(bounds):
    """What one row adds to the squares of a variance is half of the largest square, at both ends and at the centre."""
    _, total, squares = Spread(Column("fare"), *bounds).measures
    most = squares.sensitivity(1) * squares.step

    assert most == pytest.approx((total.sensitivity(1) * total.step) ** 2 / 2, rel=1e-5)
    for value in (*bounds, total.centre):
        added = contribution(squares, [value], 1)
        assert abs(added) <= squares.finest(1)
        assert added == pytest.approx(
            math.ldexp((value - total.centre) ** 2 - squares.less, -squares.fine_log2), rel=1e-5
        )


@pytest.mark.parametrize(("mean", "variance"), [(50.0, 2500 / 3), (60.0, 800.0), (30.0, 100.0), (80.0, 50.0)])
def test_a_fine_variance_costs_what_its_one_contrast_would(mean, variance):
    """At a fine target, lanes cost what (v - mean)^2 - V in a lane of its own would; plain squares up to four times."""
    offset, price = mean - 50, {}
    for less in (0.0, LESS):
        largest = max(2500 - less, less)
        prices = JointPrices(
            (VarianceStatistic(0, 1, 2, 50.0, less=less),),
            np.array([[1e-7]]), np.zeros((1, 1)), np.array([[1.0], [50.0**-2], [largest**-2.0]]), 1 << 60,
        )  # fmt: skip
        truth = np.array([[1e4], [1e4 * offset], [1e4 * (variance + offset**2 - less)]])
        price[less] = float(prices.wanted(truth, np.zeros((3, 1)), 0.05).sum())
    alone = (two_sided(0.05) * ((50 + abs(offset)) ** 2 - variance) / (1e4 * 1e-7 * variance)) ** 2

    assert price[LESS] == pytest.approx(alone, rel=0.01)
    assert price[0.0] >= price[LESS] * 0.999


def test_a_sum_that_a_ratio_needs_stays():
    """Beside a mean, SUM(fare) / SUM(tip) is still of the sums themselves."""
    fare, tip = (Sum(Column(name), 0, 100) for name in ("fare", "tip"))
    aggregates = (fare, Mean(Column("fare"), 0, 100), Quotient(fare, tip))

    assert {*fare.measures, *tip.measures} <= set(needed(aggregates))


def test_a_sum_alone_is_its_own_lane():
    """Without a mean beside it a sum is one lane, and so is a sum of other bounds."""
    fare = Column("fare")
    for asked in ([Sum(fare, 0, 100)], [Sum(fare, 0, 100), Mean(fare, 0, 90)]):
        statistics = from_aggregates(
            [NamedAggregate(str(i), aggregate) for i, aggregate in enumerate(asked)], needed(asked)
        )
        assert Linear((0,), (1.0,), 50.0) == statistics[0]


def test_quantiles_are_refused_by_name():
    """A quantile is not a function of counts and sums."""
    with pytest.raises(UnsupportedQuery, match="not a function of counts"):
        from_aggregates([NamedAggregate("q", Quantile(Column("fare"), 0.5, 0, 100))], ())


def test_every_aggregate_has_the_function_of_its_form():
    """Which function of its measures an aggregate is, it says itself; ranks, shares and running sums are others."""
    forms = {aggregate.form for aggregate in get_args(Aggregate)}

    assert {*FORMS, "rank", "share", "running"} == forms


@dataclass(frozen=True, slots=True)
class _RootMeanSquare:
    """An aggregate that somebody adds without saying which function of its two measures it is."""

    value: Column
    lower: float
    upper: float
    form: ClassVar[str] = "a form of nobody"

    @property
    def measures(self):
        """The count and the sum of squares."""
        return Rows(self.value), Total(self.value, self.lower, self.upper, power=2)


def test_a_new_aggregate_is_not_taken_for_a_mean():
    """Two measures do not make a mean: an aggregate of a form that nobody wrote a function for is refused."""
    made = _RootMeanSquare(Column("fare"), -20, 20)

    with pytest.raises(UnsupportedQuery, match="not a function of counts and sums"):
        from_aggregates([NamedAggregate("rms", made)], needed([made]))
