"""Several quantiles of one column: one measurement, in the books, in plans, when asked again, more sharply or alone."""

import json

import numpy as np
import pyarrow as pa
import pytest

from farthing import Bounds, Budget, Session
from farthing.accuracy.joint_quantiles import NoisyJointRanks
from farthing.errors import InvalidTarget, LedgerError
from farthing.mechanisms.gaussian import GRAIN, worst_cost
from farthing.session.answering.joint_quantiles import blob_of, standing_in
from farthing.session.core.records import read_blob, write_blob

RNG = np.random.default_rng(12)
ROWS = 24_000
TABLE = pa.table({
    "unit": RNG.integers(0, 12_000, ROWS),
    "g": RNG.choice(3, ROWS, p=[0.5, 0.3, 0.2]),
    "v": RNG.gamma(2.0, 15.0, ROWS),
    "w": RNG.gamma(2.0, 15.0, ROWS),
})  # fmt: skip
BY = {"by": "g", "keys": {"g": [0, 1, 2]}}
CLAMPS = {"lower": 0, "upper": 100}
GDP = Budget(mu=8)
QUARTILES = (0.25, 0.5, 0.75)
SQL = "SELECT g, QUANTILE(v, .75) AS c, COUNT(*) AS n, QUANTILE(v, .25) AS a, MEDIAN(v) AS b FROM data GROUP BY g"


def opened(budget=GDP):
    """A session of its own."""
    return Session(TABLE, unit="unit", bounds=Bounds(2, 2, lower=0, upper=100), budget=budget)


def ask(session, q=QUARTILES, **how):
    """Ask for quantiles of every group."""
    return session.quantile("v", q, **BY, **({"rank": 0.1, "cap": "all"} | how))


def asked(session):
    """How many questions were charged."""
    return sum(entry.settled is not None and entry.settled > 0 for entry in session.history())


@pytest.fixture
def bought(monkeypatch):
    """Every grain that is measured, by group."""
    grains = np.zeros(3, np.int64)
    honest, counted = NoisyJointRanks.measure, NoisyJointRanks.measure_count

    def measure(noisy, strategy, thresholds, amount, groups):
        np.add.at(grains, groups, amount)
        return honest(noisy, strategy, thresholds, amount, groups)

    def measure_count(noisy, amount, groups):
        np.add.at(grains, groups, amount)
        return counted(noisy, amount, groups)

    monkeypatch.setattr(NoisyJointRanks, "measure", measure)
    monkeypatch.setattr(NoisyJointRanks, "measure_count", measure_count)
    return grains


@pytest.mark.parametrize(
    "budget", [Budget(mu=8), pytest.param(Budget(rho=30), marks=pytest.mark.thorough)], ids=["GDP", "zCDP"]
)
def test_the_books_hold_what_was_measured(budget, bought):
    """One question is charged, for the groups that pay most; a sharper one the difference, the same again nothing."""
    session = opened(budget)
    for rank in (0.2, 0.1, 0.15):
        before = session.spent.amount
        answer = ask(session, rank=rank)
        mu_squared = float(worst_cost(bought, 2) * GRAIN)
        spent = session.spent.amount * (1 if session.spent.parameter == "mu" else 2)

        assert answer.met.all()
        assert mu_squared <= spent <= mu_squared + 24 * 2.0**-40
        assert (session.spent.amount > before) is (rank != 0.15)
        assert not ask(session, rank=rank).paid
    assert asked(session) == 2


def test_plan_and_answer_say_the_same():
    """A plan names one measurement for all, and a worst price that holds; in whatever order they are named."""
    session = opened()
    plan = session.plan(SQL, keys=BY["keys"], rank=0.1, absolute={"n": 100})
    answer = session.sql(SQL, keys=BY["keys"], rank=0.1, absolute={"n": 100})
    again = SQL.replace("QUANTILE(v, .75) AS c, ", "").replace("AS b", "AS b, QUANTILE(v, .75) AS c")

    assert sum("together" in step for step in plan.pricing.steps) == 1
    assert answer.paid <= plan.worst_price
    assert list(answer.names) == ["c", "n", "a", "b"]
    assert asked(session) == 2
    assert not session.sql(again, keys=BY["keys"], rank=0.1, absolute={"n": 100}).paid
    values = answer.to_arrow().to_pydict()
    assert all(np.less(values["a"], values["b"]))
    assert all(np.less(values["b"], values["c"]))


def test_what_was_asked_alone_is_told_again():
    """A median that stands is free beside quartiles; and what is asked twice under two names is asked once."""
    session = opened()
    median = session.quantile("v", 0.5, **BY, rank=0.05, cap="all")

    answer = session.sql(SQL, keys=BY["keys"], rank=0.1, absolute={"n": 100})
    twice = "SELECT g, MEDIAN(v) AS x, QUANTILE(v, .5) AS y, QUANTILE(v, .9) AS z FROM data GROUP BY g"
    both = session.sql(twice, keys=BY["keys"], rank=0.1).to_arrow()

    assert np.array_equal(answer.to_arrow()["b"], median.value)
    assert both["x"] == both["y"]


def test_each_pays_alone_where_nothing_is_shared():
    """By value, of other columns, and under a pure budget where a rank is far finer: each is a question of its own."""
    pure = opened(Budget(epsilon=50))
    ask(pure, (0.25, 0.5), rank={"quantile_0.25": 0.4, "quantile_0.5": 0.05})
    by_value = opened()
    ask(by_value, (0.25, 0.5), rank=None, absolute=8)
    columns = opened()
    columns.sql("SELECT MEDIAN(v) AS a, MEDIAN(w) AS b FROM data", rank=0.1)

    assert asked(pure) == 2
    assert asked(by_value) == 2
    assert asked(columns) == 2


@pytest.mark.thorough
def test_nine_deciles_cost_less_than_four_of_them_alone():
    """Together they pay a fraction of what nine questions pay."""
    deciles = tuple(k / 10 for k in range(1, 10))
    one, nine = opened(), opened()
    for q in deciles:
        ask(one, q, rank=0.05)
    ask(nine, deciles, rank=0.05)

    assert nine.spent.amount < one.spent.amount * 4 / 9


def test_targets_of_their_own():
    """Each quantile has its own rank target, by the name of its column."""
    widths = {"quantile_0.25": 0.2, "quantile_0.5": 0.05, "quantile_0.75": 0.2}

    answer = ask(opened(), rank=widths)

    assert answer.met.all()
    assert answer.names == tuple(widths)
    assert ask(opened(), (0, 0.5, 1), rank=0.1, simultaneous=True, confidence=0.9).met.all()


def test_a_cap_that_is_too_small_is_kept():
    """Nothing above the cap is charged, and what was not met is marked; a larger cap goes on from there."""
    session = opened()

    poor = ask(session, rank=0.01, cap=None, max_epsilon=0.01)
    rich = ask(session, rank=0.1)

    assert not poor.met.any()
    assert all(entry.settled <= entry.reserved for entry in session.history())
    assert rich.met.all()


@pytest.mark.parametrize("q", [(), "0.5", (0.5, "x"), None, {"a"}])
def test_what_is_no_quantile_is_refused(q):
    """Nothing is charged for what is not a number."""
    session = opened()
    with pytest.raises(InvalidTarget, match="these are not quantiles"):
        ask(session, q)

    assert not session.spent


@pytest.fixture(scope="module")
def standing():
    """What the ledger keeps of two quantiles that were asked, and then asked more sharply."""
    session = opened()
    ask(session, (0.25, 0.75), rank=0.3)
    ask(session, (0.25, 0.75), rank=0.15)
    (question,) = {entry.question for entry in session.history()}
    return standing_in(session._context.ledger.load(question).blob)


def test_a_record_is_read_as_it_was_written(standing):
    """What the ledger keeps comes back to the last bit; what is of another form is refused."""
    assert [[one.sought.rank for one in each.found] for each in standing.each] == [[0.15]] * 2

    again = standing_in(blob_of(standing))

    assert again.trail.paid.tolist() == standing.trail.paid.tolist()
    for mine, kept in zip(again.trail.each, standing.trail.each, strict=True):
        assert mine.thresholds.size
        for name in set(mine.__slots__) - {"paid"}:
            assert np.array_equal(getattr(mine, name), getattr(kept, name))
    with pytest.raises(LedgerError):
        standing_in(write_blob({}, {b"farthing-quantiles-2": b'[[{"rank": 1}]]'}))


def test_an_older_record_keeps_its_answers_and_what_was_paid(standing):
    """Thresholds that were proven in another way are not read; what was paid for them stays paid."""
    columns, facts = read_blob(blob_of(standing), b"farthing-quantiles-2")
    told = {name: one for name, one in columns.items() if not name[0].isdigit()}
    columns = told | {"thresholds0.0": np.zeros(3, np.int64), "leaves0.0": np.zeros(3, np.int64)}

    older = standing_in(write_blob(columns, {b"farthing-quantiles-1": json.dumps(facts).encode()}))

    assert older.trail.paid.tolist() == standing.trail.paid.tolist()
    assert [len(one.thresholds) for one in older.trail.each] == [0, 0]
    assert np.array_equal(older.each[0].found[0].value, standing.each[0].found[0].value)
