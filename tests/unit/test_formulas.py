"""Numbers computed from several answers: their derivatives, what encloses them, and their intervals."""

import numpy as np
import pytest
from accuracy.runs import surely_above
from levels import ALPHA
from work import calls_of

from farthing.accuracy import formulas
from farthing.accuracy.enclosures import Enclosure
from farthing.accuracy.forms import from_aggregates
from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.errors import UnsupportedQuery
from farthing.query.aggregates import (
    Count,
    Formula,
    Mean,
    NamedAggregate,
    Quantile,
    Ratio,
    Sum,
    Variance,
    clamping,
)
from farthing.query.expressions import Column
from farthing.query.measures import Rows, Total
from farthing.query.pairs import KINDS, Pair
from farthing.query.shared_measures import needed

RNG = np.random.default_rng(3)
X = RNG.uniform(0, 10, 4000)
Y = np.clip(3 * X + RNG.normal(0, 8, X.size) + 5, -20, 60)
RANGES = ((0.0, 10.0), (-20.0, 60.0))
A, B = Column("x"), Column("y")
PAIRS = [Pair(kind, A, B, *RANGES) for kind in KINDS] + [Pair("covariance", A, B, *RANGES, sample=True)]
APART = Formula(Mean(A, 0, 10), Formula(-1.0, Mean(B, -20, 60), product=True))
MIXED = Formula(Formula(Variance(B, -20, 60, sample=True, root=True), Ratio(Count(A), Sum(A, 0, 10)), product=True),
                Count(B))  # fmt: skip
KINDS_OF = [*PAIRS, APART, MIXED]


def lanes(aggregate):
    """Return the exact lanes of an aggregate of the rows above, and its statistic."""
    measures = needed([aggregate])
    (statistic,) = from_aggregates([NamedAggregate("n", aggregate)], measures)
    values = {}
    if isinstance(aggregate, Pair):
        cx, cy = aggregate.centres
        values = dict(zip(aggregate.places, (None, X - cx, Y - cy, (X - cx) * (Y - cy)), strict=False))

    def lane(measure):
        if isinstance(measure, Rows):
            return float(X.size)
        found = values.get(measure)
        if found is None:
            column = X if "x" in str(measure.value) and "y" not in str(measure.value) else Y
            side = column if not isinstance(aggregate, Pair) else (X if measure is aggregate.places[4] else Y)
            if isinstance(aggregate, Pair):
                side = X if measure == aggregate.places[4] else Y
            found = (side - measure.centre) ** measure.power - measure.less
        return float(np.sum(found))

    return statistic, np.array([[lane(measure)] for measure in measures])


def truth(aggregate):
    """Return what numpy makes of the rows."""
    match aggregate:
        case Pair(kind="correlation"):
            return np.corrcoef(X, Y)[0, 1]
        case Pair(kind="covariance"):
            return np.cov(X, Y, ddof=1 if aggregate.sample else 0)[0, 1]
        case Pair():
            slope, intercept = np.polyfit(X, Y, 1)
            return slope if aggregate.kind == "slope" else intercept
        case _:
            return X.mean() - Y.mean() if aggregate is APART else Y.std(ddof=1) / X.mean() + Y.size


@pytest.mark.parametrize("aggregate", KINDS_OF, ids=str)
def test_without_noise_it_is_what_numpy_says(aggregate):
    """Exact lanes give the number of the rows, and without noise the interval is that number."""
    statistic, values = lanes(aggregate)

    assert truth(aggregate) == pytest.approx(float(statistic.estimate(values)[0]), rel=1e-9)
    for end in statistic.interval(values, np.zeros_like(values), 0.05):
        assert truth(aggregate) == pytest.approx(float(end[0]), rel=1e-9)


@pytest.mark.parametrize("aggregate", KINDS_OF, ids=str)
def test_a_box_encloses_numbers_slopes_and_bends(aggregate):
    """At points of a box numbers are in the hull, and differences along every lane and pair of lanes are enclosed."""
    statistic, values = lanes(aggregate)
    reads, centre = list(statistic.reads), values[list(statistic.reads)]
    reach = 0.02 * np.maximum(np.abs(centre), 0.05 * np.array(statistic.scales)[reads][:, None] * X.size)
    hull = formulas._over(statistic, centre - reach, centre + reach, bent=False).value
    box = formulas._over(statistic, centre - reach, centre + reach, bent=True)
    for _ in range(20):
        at = centre + reach * RNG.uniform(-1, 1, centre.shape)
        point = formulas._over(statistic, at, at, bent=True)
        assert hull[0] <= point.value[0] <= hull[1]
        for place in range(len(reads)):
            step = np.zeros_like(at)
            step[place] = 1e-4 * reach[place]
            above, below = (formulas._over(statistic, moved, moved, bent=True) for moved in (at + step, at - step))
            rise = (above.value[0] - below.value[0]) / (2 * step[place])
            assert rise == pytest.approx(point.slopes[0][place], rel=1e-3, abs=1e-9)
            bend = (above.slopes[0] - below.slopes[0]) / (2 * step[place])
            assert bend == pytest.approx(point.bends[0][place], rel=1e-2, abs=1e-3 * np.abs(point.bends[0]).max())
        for ends, found in ((box.slopes, point.slopes[0]), (box.bends, point.bends[0])):
            slack = 1e-9 * np.abs(found).max()
            assert np.all((ends[0] <= found + slack) & (found <= ends[1] + slack))


@pytest.mark.parametrize("aggregate", KINDS_OF, ids=str)
def test_a_number_is_straight_up_to_its_bends(aggregate):
    """For any lanes within the reach the number is within the slopes at the truth and half of the bends: the proof."""
    statistic, values = lanes(aggregate)
    variances = (0.004 * X.size * np.array(statistic.scales)[:, None]) ** 2
    errors = RNG.uniform(-3, 3, (len(values), 400)) * np.sqrt(variances)
    low, high = statistic.interval(values + errors, np.repeat(variances, 400, axis=1), 0.05)

    assert np.isfinite(low).all()
    steep = np.abs(formulas._over(statistic, *[values[list(statistic.reads)]] * 2, bent=True).slopes[0])
    spread = np.sqrt((steep**2 * variances[list(statistic.reads)]).sum())
    straight = (formulas._over(statistic, *[values[list(statistic.reads)]] * 2, bent=True).slopes[0]
                * errors[list(statistic.reads)]).sum(axis=0)  # fmt: skip
    inside = np.abs(straight) <= 1.96 * spread
    assert inside.sum() > 50
    assert np.all((low <= truth(aggregate)) & (truth(aggregate) <= high) | ~inside)


@pytest.mark.parametrize("aggregate", KINDS_OF, ids=str)
def test_hopeless_noise_gives_all_that_is_possible(aggregate):
    """Where counts may be zero, the interval is the whole range: [-1, 1] of a correlation."""
    statistic, values = lanes(aggregate)
    low, high = statistic.interval(values, np.full_like(values, 1e40), 0.05)

    ends = {"correlation": (-1, 1), "covariance": (-200, 200)}.get(getattr(aggregate, "kind", ""))
    if aggregate is APART:
        ends = (-60, 30)
    if ends is None or getattr(aggregate, "sample", False):
        assert low[0] < -300
        assert high[0] > 300
    else:
        assert ends == pytest.approx((float(low[0]), float(high[0])), rel=1e-3)


def measured(aggregate, absolute, groups, seed=0, cap=2**56):
    """Return the state of groups that are alike, and their truth."""
    statistic, values = lanes(aggregate)
    worth = np.array([2.0**-56 / scale**2 for scale in statistic.scales])
    values = np.repeat(values, groups, axis=1)
    rng = np.random.default_rng(seed)

    def measure(grains, chosen):
        deviation = 1 / np.sqrt(np.maximum(grains, 1) * worth[:, None])
        return values[:, chosen] + deviation * rng.standard_normal(grains.shape)

    joint = JointMeasures((statistic,), ((0.0, absolute),), 0.05, tuple(worth), cap)
    return joint.run(JointState.nothing(len(values), 1, groups), measure), float(statistic.estimate(values[:, :1])[0])


def test_targets_are_met_and_no_group_pays_ten_times_what_is_usual():
    """A correlation within 0.05: every group gets there; a pilot that cannot see a variance yet gives up nobody."""
    state, exact = measured(PAIRS[1], 0.05, 20)

    assert state.met.all()
    assert np.abs(state.value - exact).max() <= 0.05
    assert state.paid.max() <= 10 * np.median(state.paid)


@pytest.mark.thorough
@pytest.mark.statistical
@pytest.mark.parametrize(("aggregate", "absolute"), [(APART, 0.1), (PAIRS[0], 1.5), (PAIRS[1], 0.03), (MIXED, 20.0)],
                         ids=str)  # fmt: skip
def test_intervals_hold_at_the_stated_confidence(aggregate, absolute):
    """Groups that are alike, each measured until it is within its target: no more than 5 % miss."""
    state, exact = measured(aggregate, absolute, 250, seed=5, cap=2**60)

    assert state.met.mean() > 0.95
    assert not surely_above(int(((state.lower > exact) | (state.upper < exact)).sum()), 250, 0.05, ALPHA / 4)


def test_an_interval_without_bends_would_miss(monkeypatch):
    """Planted: were a mean taken to be straight in a rough count, 1.9 deviations of that would be outside at z = 2."""
    statistic, values = lanes(Formula(Mean(A, 0, 8), 1.0))
    variances = np.array([[(0.2 * X.size) ** 2], [1e-6]])
    exact, rough = float(statistic.estimate(values)[0]), values + 1.9 * np.sqrt(variances)

    def holds():
        low, high = statistic.interval(rough, variances, 0.05)
        return bool(low[0] <= exact <= high[0])

    assert holds()
    honest = formulas._over

    def straight(statistic, low, high, *, bent):
        made = honest(statistic, low, high, bent=bent)
        return Enclosure(made.value, made.slopes, tuple(0 * end for end in made.bends)) if bent else made

    monkeypatch.setattr(formulas, "_over", straight)
    assert not holds()


def each_anew(plant):
    """Compute everything where it is asked for, and keep nothing."""
    plant.setattr(formulas, "_at", lambda statistic, lanes, *, bent: formulas._over(statistic, lanes, lanes, bent=bent))
    plant.setattr(Enclosure, "over", lambda one, other: one * Enclosure.inverse(Enclosure(*ends(other))))


def ends(made):
    """Return what an enclosure says, without what it keeps."""
    return made.value, made.slopes, made.bends


@pytest.mark.parametrize("place", range(len(KINDS_OF)))
def test_what_is_kept_changes_no_bit(place, monkeypatch):
    """Estimates, slopes and intervals are those of computing everything again, also where denominators are 0."""
    statistic, values = lanes(KINDS_OF[place])
    rough = values * RNG.normal(1, 0.3, (len(values), 40))
    rough[:, 0], rough[0, 1] = 0.0, -1.0
    variances = (0.1 * values) ** 2 + 1.0

    def told():
        widths = np.full(40, 0.5), np.full(40, 0.01)
        slopes = [statistic.slopes(rough, width) for width in widths]
        return np.concatenate(
            [np.stack([statistic.estimate(rough), *statistic.interval(rough, variances, 0.05)]), *slopes]
        )

    quick = told()
    with monkeypatch.context() as plant:
        each_anew(plant)
        assert quick.tobytes() == told().tobytes()


def test_one_number_is_computed_once_for_several_looks(monkeypatch):
    """Slopes for two widths, an interval and its doubt take one evaluation at the lanes, not one each."""
    statistic, values = lanes(PAIRS[0])

    def look():
        for width in (0.5, 0.1, 0.02):
            statistic.slopes(values, np.full(1, width))
            statistic.estimate(values)

    formulas._kept.cache_clear()
    quick = calls_of(look)
    each_anew(monkeypatch)
    assert quick < calls_of(look) / 2


def test_quantiles_and_too_much_at_once_are_refused():
    """A quantile has no lanes; more than sixteen measures are refused."""
    with pytest.raises(UnsupportedQuery, match="arithmetic"):
        Formula(Quantile(A, 0.5, 0, 1), 2.0, product=True)
    many = Count()
    for place in range(7):
        many = Formula(many, Mean(Column(f"c{place}"), 0, 1))
    with pytest.raises(UnsupportedQuery, match="too many"):
        Formula(many, Mean(A, 0, 1))


def test_clamps_are_those_of_every_part():
    """What is said of clamps names each value once for each of its ranges."""
    assert ["AVG(x in [0, 10])", "AVG(y in [-20, 60])"] == [str(part) for part in clamping(APART)]
    assert ["AVG(x in [0, 10])", "AVG(y in [-20, 60])"] == [str(part) for part in clamping(PAIRS[0])]


def test_a_pair_is_of_rows_where_both_values_are_there():
    """All its lanes are of the same rows."""
    rows, *totals = (measure for measure in PAIRS[1].places)
    assert isinstance(rows, Rows)
    assert all(isinstance(total, Total) for total in totals)
    assert {str(rows.value)} == {str(totals[0].value)}
