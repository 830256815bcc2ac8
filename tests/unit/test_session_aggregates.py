"""Every aggregate, asked of a session: exact where noise is tiny, free when asked again, booked and refused as told."""

import re
from datetime import date

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from farthing import (
    Bounds,
    Budget,
    BudgetExceeded,
    Gdp,
    InvalidBounds,
    InvalidKeys,
    InvalidTarget,
    LedgerError,
    Plan,
    Session,
    TargetMissed,
    UnsupportedQuery,
    Zcdp,
    calendar,
)
from farthing.accuracy.joint_measures import JointMeasures
from farthing.accuracy.joint_state import JointState
from farthing.accuracy.statistics import VarianceStatistic
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Query
from farthing.query.aggregates import Mean, NamedAggregate, Sum, Variance
from farthing.query.expressions import Column
from farthing.session.answering.joint_measures import JointMeasuresMethod, blob_of, state_of, subtracted

RNG = np.random.default_rng(7)
N = 60_000
ZONES = ["north", "south", "west"]
RIDES = pa.table({
    "zone": RNG.choice(ZONES, N, p=[0.6, 0.3, 0.1]),
    "fare": np.where(RNG.random(N) < 0.02, np.nan, RNG.gamma(2.0, 8.0, N)),
    "tip": pa.array(RNG.normal(0, 5, N), mask=RNG.random(N) < 0.1),
    "day": pa.array(RNG.integers(0, 90, N).astype("int32")).cast(pa.date32()),
    "rider": RNG.integers(0, 9_000, N),
})  # fmt: skip
ZONE = {"by": "zone", "keys": {"zone": ZONES}}
BUDGET = Budget(mu=4)
AREAS = pa.table({"zone": [*ZONES, "east"], "area": ["cold", "warm", "warm", "cold"]})


def opened(**options):
    """Open the rides."""
    return Session(RIDES, **({"budget": BUDGET, "public": {"areas": AREAS}} | options))


@pytest.fixture
def session():
    """A session with much to spend."""
    with opened() as asked:
        yield asked


def exact(select, by="zone", order=None):
    """Return what SQL says of the rides."""
    rides, areas = RIDES, AREAS  # noqa: F841  DuckDB reads them by name
    query = f"SELECT {by}, {select} AS x FROM rides GROUP BY ALL ORDER BY {order or by}"
    return np.array([row[1] for row in duckdb.connect().sql(query).fetchall()], float)


TIPS = "sum(least(greatest(tip, -10), 10)) FILTER (tip IS NOT NULL)"
FARE = "least(greatest(fare, 0), 50)) FILTER (WHERE NOT isnan(fare)"


@pytest.mark.parametrize(("ask", "select", "within"), [
    (lambda s: s.count(**ZONE, absolute=20), "count(*)", 20),
    (lambda s: s.count(**ZONE, value="tip", absolute=20), "count(tip)", 20),
    (lambda s: s.sum("fare", lower=0, upper=50, **ZONE, absolute=2_000), f"sum({FARE})", 2_000),
    (lambda s: s.sum("tip", lower=-10, upper=10, **ZONE, absolute=500), TIPS, 500),
    (lambda s: s.sum("tip * 2", lower=-20, upper=20, **ZONE, absolute=900), f"2 * {TIPS}", 900),
    (lambda s: s.mean("fare", lower=0, upper=50, **ZONE, absolute=0.3), f"avg({FARE})", 0.3),
    (lambda s: s.variance("fare", lower=0, upper=50, **ZONE, absolute=8), f"var_pop({FARE})", 8),
    (lambda s: s.variance("fare", lower=0, upper=50, sample=True, root=True, **ZONE, absolute=1),
     f"stddev_samp({FARE})", 1),
    (lambda s: s.quantile("fare", 0.5, lower=0, upper=50, **ZONE, absolute=0.5), f"median({FARE})", 0.6),
], ids=range(9))  # fmt: skip
def test_answers_are_near_what_sql_says(session, ask, select, within):
    """Each aggregate is near the exact one of the clamped rows: six standard deviations is three times its target."""
    answer = ask(session)

    assert answer.met.all()
    assert (np.abs(answer.value - exact(select)) <= 3 * within).all()
    assert (answer.lower - 2 * within <= exact(select)).all()
    assert (exact(select) <= answer.upper + 2 * within).all()


def test_count_distinct_counts_units():
    """With a unit column each unit counts once, whatever its rows; the cut is said."""
    with opened(unit="rider", bounds=Bounds(max_groups=3, max_rows=1)) as session:
        answer = session.count_distinct(**ZONE, absolute=100)

    assert answer.met.all()
    assert np.abs(answer.value - exact("count(DISTINCT rider)")).max() < 300
    assert "at most 3 groups" in answer.about


def test_unit_bounds_scale_sums_down():
    """Of n rows of a unit only max_rows count, as a share of their sum: a tenth of the rows, a tenth of the sum."""
    table = pa.table({"u": np.repeat(np.arange(500), 10), "x": np.full(5_000, 3.0)})
    with Session(table, unit="u", budget=BUDGET, bounds=Bounds(max_rows=1, lower=0, upper=4)) as session:
        answer = session.sum("x", absolute=10)

    assert abs(answer.value - 1_500) < 40
    assert "x clamped into [0, 4]" in answer.about


def test_several_aggregates_of_one_select(session):
    """One SELECT gives one column triple for each aggregate, in the order that was written."""
    answer = session.sql(
        "SELECT AVG(CLAMP(fare, 0, 50)) AS mean_fare, zone, COUNT(*) AS n, MEDIAN(CLAMP(tip, -10, 10)) AS tip "
        "FROM data GROUP BY zone",
        keys={"zone": ZONES},
        absolute={"mean_fare": 0.5, "n": 50},
        rank={"tip": 0.03},
    )

    assert ["mean_fare", "mean_fare_lower", "mean_fare_upper", "zone", "n", "n_lower", "n_upper", "tip", "tip_lower",
            "tip_upper", "met", "paid"] == answer.to_arrow().column_names  # fmt: skip
    assert answer.met.all()
    assert np.abs(answer["n"].value - exact("count(*)")).max() < 200
    assert answer.names == ("mean_fare", "n", "tip")
    assert session.spent == answer.paid


def test_asked_again_is_free_and_sharper_costs(session):
    """What was released answers again; a tighter target measures more and says so."""
    asking = ZONE | {"lower": 0, "upper": 50}
    first = session.mean("fare", **asking, absolute=2)
    again = session.mean("fare", **asking, absolute=2)
    sharper = first.refine(absolute=0.5)

    assert not again.paid
    assert again.value.tolist() == first.value.tolist()
    assert sharper.paid
    assert (sharper.upper - sharper.lower < first.upper - first.lower).all()
    assert not session.quantile("fare", 0.9, **asking, rank=0.05).refine(rank=0.06).paid


@pytest.mark.parametrize("budget", [Budget(mu=4), Budget(rho=8)])
@pytest.mark.parametrize("method", ["sum", "mean", "variance"])
def test_a_named_loss_is_spent(budget, method):
    """A loss instead of a target: nearly all of it is paid, never more."""
    loss = Gdp(0.5) if budget.mu else Zcdp(0.125)
    with opened(budget=budget) as session:
        answer = getattr(session, method)("fare", lower=0, upper=50, **ZONE, loss=loss)

        assert 0.95 * loss.amount < answer.paid.amount <= loss.amount
        assert session.spent == answer.paid
        assert "at the loss you named" in answer.caption


def test_plans_are_free_and_bound_the_price(session):
    """EXPLAIN and plan spend nothing; asking costs at most the worst price."""
    text = "SELECT zone, AVG(CLAMP(fare, 0, 50)) AS m, STDDEV(CLAMP(fare, 0, 50)) AS sd FROM data GROUP BY zone"
    how = {"keys": {"zone": ZONES}, "relative": 0.1}
    plan = session.sql(f"EXPLAIN {text}", **how)

    assert isinstance(plan, Plan)
    assert not session.spent
    assert str(plan) == str(session.plan(text, **how))
    assert session.sql(text, **how).paid <= plan.worst_price


@pytest.mark.parametrize("rows", ["", "COUNT(*) AS n, "])
def test_plans_say_what_is_measured(rows):
    """A coarse look where a pilot is made; looks where they are; stages where an older version had begun these."""
    text, how = f"SELECT zone, {rows}AVG(CLAMP(fare, 0, 50)) AS m FROM data GROUP BY zone", {"keys": {"zone": ZONES}}
    with opened() as session:
        coarse, fine = (session.sql(f"EXPLAIN {text}", **how, relative=relative) for relative in (0.3, 0.05))
        session.sql(text, **how, relative=0.05)
        sharper = session.sql(f"EXPLAIN {text}", **how, relative=0.04)

    assert [len(plan.steps) for plan in (coarse, fine, sharper)] == [1, 2, 1]
    assert all("less and less" in plan.steps[-1] for plan in (coarse, fine, sharper))
    assert "a coarse look at" in fine.steps[0]


def test_a_plan_for_what_was_claimed_in_stages_says_stages(monkeypatch):
    """A record of an older version is gone on from in stages, as its plan says; such questions go by looks now."""
    text = "SELECT zone, COUNT(*) AS n, AVG(CLAMP(fare, 0, 50)) AS m FROM data GROUP BY zone"
    with opened() as session:
        with monkeypatch.context() as older:
            older.setattr(JointMeasures, "looks", lambda *_: None)
            session.sql(text, keys={"zone": ZONES}, relative=0.05)
        plan = session.sql(f"EXPLAIN {text}", keys={"zone": ZONES}, relative=0.04)

    assert "one look at each" in plan.steps[1]


def test_pure_budgets():
    """A pure ledger counts, sums, averages and ranks; a quantile has a target of the rank or of the value, not both."""
    with opened(budget=Budget(epsilon=4)) as session:
        assert session.sum("fare", lower=0, upper=50, **ZONE, absolute=3_000).met.all()
        median = session.quantile("fare", 0.5, lower=0, upper=50, **ZONE, rank=0.05)
        assert median.met.all()
        assert np.abs(median.value - exact(f"median({FARE})")).max() < 3
        assert session.spent.value < 1
        mean = session.mean("fare", lower=0, upper=50, **ZONE, absolute=2)
        assert mean.met.all()
        assert np.abs(mean.value - exact(f"avg({FARE})")).max() < 6
        near = session.quantile("fare", 0.5, lower=0, upper=50, **ZONE, absolute=3)
        assert near.met.all()
        assert np.abs(near.value - exact(f"median({FARE})")).max() < 9
        with pytest.raises(InvalidTarget, match="by rank or by value"):
            session.quantile("fare", 0.5, lower=0, upper=50, rank=0.05, absolute=1)


def test_histograms_and_cross_tables(session):
    """Bins are [edge, next edge), the last one closed; further columns make a cross table."""
    answer = session.histogram("tip", [-10, 0, 10], absolute=60, by="zone", keys={"zone": ZONES})
    rows = answer.rows()

    assert ["zone", "tip_from", "tip_to"] == answer.keys.column_names
    assert [("north", -10, 0), ("north", 0, 10)] == [(r["zone"], r["tip_from"], r["tip_to"]) for r in rows[:2]]
    lows = "SELECT count(*) FROM RIDES WHERE zone = 'north' AND tip >= -10 AND tip < 0"
    low = duckdb.connect().sql(lows).fetchall()[0][0]
    assert abs(rows[0]["count"] - low) < 240


def test_groups_by_expressions_and_the_calendar(session):
    """Groups may be expressions, with keys from the calendar."""
    months = calendar("1970-01-01", "1970-03-31", "month")
    answer = session.sql(
        "SELECT date_trunc('month', day) AS month, COUNT(*) AS n FROM data GROUP BY 1",
        keys={"month": months},
        absolute=60,
    )
    method = session.count(by={"month": "date_trunc('month', day)"}, keys={"month": months}, absolute=60)

    assert [date(1970, 1, 1), date(1970, 2, 1), date(1970, 3, 1)] == months
    assert np.abs(answer.value - exact("count(*)", "date_trunc('month', day)")).max() < 240
    assert not method.paid
    assert answer.value.tolist() == method.value.tolist()


def test_joins_with_public_tables(session):
    """A public table may be joined and grouped by, and its columns give keys."""
    session = opened(unit="rider", bounds=Bounds(max_groups=2, max_rows=30))
    answer = session.sql(
        "SELECT areas.area, COUNT(*) AS n FROM data JOIN areas ON data.zone = areas.zone GROUP BY areas.area",
        keys={"area": "areas.area"},
        absolute=1_500,
    )
    by_area = {"cold": 0.6 * N, "warm": 0.4 * N}

    assert sorted(by_area) == sorted(answer.keys.column("area").to_pylist())
    assert all(abs(row["n"] - by_area[row["area"]]) < 5_000 for row in answer.rows())
    assert 4 == len(session.count(by="zone", keys={"zone": "areas.zone"}, absolute=2_000).value)


def test_having_order_and_limit_are_free(session):
    """What is done to released numbers costs nothing more than the numbers."""
    plain = session.sql("SELECT zone, COUNT(*) AS n FROM data GROUP BY zone", keys={"zone": ZONES}, absolute=50)
    shown = session.sql(
        "SELECT zone, COUNT(*) AS n FROM data GROUP BY zone HAVING n > 1000 ORDER BY n LIMIT 2",
        keys={"zone": ZONES},
        absolute=50,
    )

    assert not shown.paid
    assert sorted(plain.value)[:2] == shown.value.tolist()
    assert ["west", "south"] == shown.keys.column("zone").to_pylist()


def test_nonnegative_is_said(session):
    """Answers below zero may be shown as zero; the answer says that this biases totals."""
    answer = session.count(by="zone", keys={"zone": [f"z{i}" for i in range(40)]}, absolute=50, nonnegative=True)

    assert 0 <= answer.value.min()
    assert 0 < (answer.value == 0).sum() < 40
    assert "biases totals" in answer.about


def test_extremes_say_what_they_are(session):
    """MIN and MAX are quantiles at the ends of the ranks."""
    answer = session.sql("SELECT MAX(CLAMP(fare, 0, 50)) AS top FROM data", rank=0.01)

    assert 30 < answer.value <= 50
    assert "rank of the greatest" in answer.about


def test_on_miss_speaks_of_all_aggregates(session):
    """A group counts as missed when any of its aggregates is; drop and raise act on whole groups."""
    text = "SELECT zone, COUNT(*) AS n, AVG(CLAMP(fare, 0, 50)) AS m FROM data GROUP BY zone"
    keys = {"zone": [*ZONES, "nowhere"]}
    answer = session.sql(text, keys=keys, absolute={"n": 100, "m": 1})
    kept = session.sql(text, keys=keys, absolute={"n": 100, "m": 1}, on_miss="drop")

    assert [True, True, True, False] == answer.met.tolist()
    assert ZONES == kept.keys.column("zone").to_pylist()
    with pytest.raises(TargetMissed) as told:
        session.sql(text, keys=keys, absolute={"n": 100, "m": 1}, on_miss="raise")
    assert 4 == len(told.value.answer.value)


def test_parts_answer_every_aggregate(session):
    """A part of a partition is asked like the whole."""
    parts = session.partition(by="zone", keys=ZONES)
    means = [parts[zone].mean("fare", lower=0, upper=50, absolute=0.5) for zone in ZONES]

    assert np.abs(np.array([m.value for m in means]) - exact(f"avg({FARE})")).max() < 2
    assert session.spent == max(m.paid for m in means)


@pytest.mark.parametrize(("ask", "error", "told"), [
    (lambda s: s.sum("fare", absolute=5), InvalidBounds, "lower and upper"),
    (lambda s: s.sum("fare", lower=5, upper=5, absolute=5), InvalidBounds, "lower < upper|not below"),
    (lambda s: s.sum("zone", lower=0, upper=5, absolute=5), UnsupportedQuery, "numbers"),
    (lambda s: s.sum("fair", lower=0, upper=5, absolute=5), UnsupportedQuery, "fare"),
    (lambda s: s.quantile("fare", 1.5, lower=0, upper=5, rank=0.1), InvalidBounds, "0 <= q <= 1"),
    (lambda s: s.quantile("fare", 0.5, lower=0, upper=5, rank=0.7), InvalidTarget, "rank"),
    (lambda s: s.quantile("fare", 0, lower=0, upper=5, absolute=1), InvalidTarget, "rank"),
    (lambda s: s.histogram("fare", [1, 1], absolute=5), InvalidKeys, "rise"),
    (lambda s: s.count(by={"h": "floor(fair)"}, keys={"h": [1]}, absolute=5), UnsupportedQuery, "fare"),
    (lambda s: s.count(by="zone", keys={"zone": "nowhere.zone"}, absolute=5), InvalidKeys, "areas"),
    (lambda s: s.count(by="zone", keys={"zone": "enum"}, absolute=5), InvalidKeys, "categories"),
    (lambda s: s.count(absolute={"m": 5}), InvalidTarget, "not asked"),
    (lambda s: s.sql("SELECT COUNT(*) AS n, AVG(CLAMP(fare, 0, 5)) AS m FROM data", absolute={"n": 5}),
     InvalidTarget, "'m'"),
    (lambda s: s.count(by="zone", keys="private", absolute=5), BudgetExceeded, "keys_delta"),
    (lambda s: s.bounds_report(loss=Zcdp(0.1)), InvalidTarget, "currency"),
])  # fmt: skip
def test_bad_questions_cost_nothing(session, ask, error, told):
    """Refused in our own words, with the rule and the next step; nothing is charged."""
    with pytest.raises(error) as problem:
        ask(session)

    assert re.search(told, str(problem.value))
    assert problem.value.next_step
    assert not session.spent


def test_a_record_of_other_measures_is_not_read():
    """What an older version kept of a question, with a measure that is no longer needed, is refused and not misread."""
    fare = Column("fare")
    outputs = (NamedAggregate("total", Sum(fare, 0, 100)), NamedAggregate("mean", Mean(fare, 0, 100)))
    query = Query("data", (), None, None, outputs, PrivacyUnit(), Bounds())

    assert 2 == len(JointMeasuresMethod.of(query, blob_of(JointState.nothing(2, 2, 1))).state.means)
    with pytest.raises(LedgerError, match="cannot be read"):
        JointMeasuresMethod.of(query, blob_of(JointState.nothing(3, 2, 1)))


def older_record(state, runs, less=0.0):
    """Return what a question of a variance holds whose squares were measured less that much, of a group of 60 +- 28."""
    grain, rng = 2.0**-56, np.random.default_rng(4)
    worth = np.array([1.0, 50.0**-2, (2500 - less) ** -2.0])[:, None] * grain
    truth = np.array([1e5, 1e6, 1e5 * (900 - less)])[:, None]
    joint = JointMeasures(
        (VarianceStatistic(0, 1, 2, 50.0, less=less),), ((0.1, 0.0),), 0.05, tuple(worth[:, 0]), 2**58
    )

    def measure(grains, _):
        return truth + rng.standard_normal(grains.shape) / np.sqrt(np.maximum(grains, 1) * worth)

    return joint.run(JointState.nothing(3, 1, runs) if state is None else state, measure)


def test_a_record_of_plain_squares_is_read_as_what_it_is():
    """What an older version measured of plain squares tells the same answer, and is a pilot of what is measured now."""
    query = Query(
        "data", (), None, None, (NamedAggregate("v", Variance(Column("x"), 0, 100)),), PrivacyUnit(), Bounds()
    )
    older = older_record(None, 1)
    read = JointMeasuresMethod.of(query, blob_of(older)).state

    assert older.pivot is not None
    assert read.pivot is None
    for name in ("value", "lower", "upper", "met", "information"):
        assert np.array_equal(getattr(older, name), getattr(read, name))
    now = VarianceStatistic(0, 1, 2, 50.0, less=1250.0)
    assert now.estimate(read.means) == pytest.approx(VarianceStatistic(0, 1, 2, 50.0).estimate(older.means))
    assert older_record(read, 1, 1250.0).paid.tolist() == older.paid.tolist(), "the same answer is free"
    kept = older_record(None, 1, 1250.0)
    again = JointMeasuresMethod.of(query, blob_of(kept, subtracted(query))).state
    assert np.array_equal(kept.means, again.means)
    for name in kept.pivot.__slots__:
        assert np.array_equal(getattr(kept.pivot, name), getattr(again.pivot, name))


def test_a_record_that_knows_of_no_pause_goes_on_from_its_whole_claim(monkeypatch):
    """Older versions paused no claims: what they stored is read as claims that went to their end."""
    kept = older_record(None, 1, 1250.0)
    monkeypatch.setattr("farthing.session.answering.joint_measures._PAUSED", ())
    blob = blob_of(kept)
    monkeypatch.undo()
    read, _ = state_of(blob)

    assert np.array_equal(kept.pivot.shown, read.pivot.base)
    assert np.array_equal(kept.pivot.clock, read.pivot.begun)
    assert [1.0] == read.pivot.done.tolist()
