"""Releases of prefix sums, ranges, conditions, matrices and their products: near the truth, near the least price."""

import math
import pickle
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sweeps import sweep

import farthing
from farthing import Bounds, Budget, BudgetExceeded, Gdp, Session, Target, Zcdp
from farthing.engines.duck.engine import DuckDBEngine
from farthing.errors import DataError, InvalidKeys, InvalidOption, InvalidTarget, OutOfReach, UnsupportedQuery
from farthing.session.answering import products as releasing
from farthing.workloads import Marginals, Products, conditions, marginals, matrix, prefixes, ranges

ROWS = 6_000
RANDOM = np.random.default_rng(11)
AGE = np.where(np.arange(ROWS) % 50 == 0, np.nan, RANDOM.integers(-5, 105, ROWS))
SEX = np.where(np.arange(ROWS) % 3 == 0, "f", "m")
LATE = [None if at % 7 == 0 else at % 2 == 0 for at in range(ROWS)]
TABLE = pa.table({"age": AGE, "sex": SEX, "late": LATE, "u": np.arange(ROWS) // 3})
EDGES = [0, 18, 40, 65, 100]
KEYS = {"sex": ["m", "f"]}
IN = (AGE >= 0) & (AGE <= 100)
BIN = np.clip(np.searchsorted(EDGES, np.nan_to_num(AGE, nan=-1), side="right") - 1, 0, 3)
BIN[AGE == 100] = 3
W = np.array([[1.0, -1.0], [0.5, 0.25]])
PRE, RAN = prefixes("age", EDGES), ranges("age", EDGES)
MANY = conditions(["age < 18", "age >= 65 OR sex = 'f'", "late"])


def opened(table=TABLE, **options):
    """Open the table with a large budget."""
    return Session(table, **{"budget": Budget(mu=6), "name": "data"} | options)


def counts(inside=IN, by=(BIN,), sizes=(4,)):
    """Return the counts of rows by some codes."""
    table = np.zeros(sizes)
    np.add.at(table, tuple(code[inside] for code in by), 1)
    return table


MALE_FIRST = (SEX == "f").astype(int)
LOW, HIGH = np.triu_indices(4)
TRUTHS = {
    "prefixes": (PRE, None, [np.cumsum(counts())]),
    "ranges": (RAN, None, [np.array([counts()[i : j + 1].sum() for i, j in zip(LOW, HIGH, strict=True)])]),
    "matrix": (matrix(W, over="sex"), KEYS, [W @ counts(np.ones(ROWS, bool), (MALE_FIRST,), (2,))]),
    "product": (
        marginals(["sex"], ways=1) * PRE,
        KEYS,
        [np.cumsum(counts(by=(MALE_FIRST, BIN), sizes=(2, 4)), axis=1)],
    ),
    "product of matrices": (
        matrix(W, over="sex") * RAN,
        KEYS,
        [
            np.array(
                [
                    (W @ counts(by=(MALE_FIRST, BIN), sizes=(2, 4)))[:, i : j + 1].sum(axis=1)
                    for i, j in zip(LOW, HIGH, strict=True)
                ]
            ).T
        ],
    ),
    "conditions": (
        MANY,
        None,
        [
            np.array([np.sum(AGE < 18)]),
            np.array([np.sum((AGE >= 65) | np.isnan(AGE) | (SEX == "f"))]),
            np.array([sum(late is True for late in LATE)]),
        ],
    ),
    "union": (
        PRE + 2 * matrix(W, over="sex") + marginals(["sex"], ways=1),
        KEYS,
        [
            np.cumsum(counts()),
            W @ counts(by=(MALE_FIRST,), sizes=(2,)),
            counts(by=(MALE_FIRST,), sizes=(2,)),
        ],
    ),
}


@pytest.mark.parametrize("mechanism", ["auto", "factors", "total and factors", "matrix"])
@pytest.mark.parametrize("case", TRUTHS)
def test_answers_are_the_sums_within_their_intervals(case, mechanism):
    """Each answer of each kind of workload is near its sum of the rows that are listed, in every way to measure it."""
    workload, keys, truths = TRUTHS[case]
    with opened() as session:
        try:
            release = session.release(
                workload, keys=keys, absolute=12, confidence=0.999999, cap="all", mechanism=mechanism
            )
        except InvalidTarget:
            assert mechanism not in {"auto", "factors"}
            assert len(workload.products) == 1
            return
        assert mechanism in {release.mechanism, "auto"}
        assert len(release) == len(truths)
        for words, truth in zip(release, truths, strict=True):
            table = release[words]
            assert table.value.shape == truth.shape
            assert (abs(table.value - truth) <= table.half_width).all()
            assert (table.half_width <= 12 * (1 + 1e-9)).all()
            assert table.met.all()
            assert not np.allclose(table.value, np.round(table.value), atol=1e-4)
        assert len(release.to_arrow()) == sum(truth.size for truth in truths)


@pytest.mark.parametrize("case", TRUTHS)
def test_the_cheapest_way_is_taken(case):
    """What is taken costs what the contest says, the least of all, and for a named loss is the most accurate."""
    workload, keys, _ = TRUTHS[case]
    with opened() as session:
        for goal in ({"absolute": 60}, {"rms": 30}):
            plan = session.plan_release(workload, keys=keys, **goal)
            release = session.release(workload, keys=keys, **goal)
            assert plan.worst_price == release.paid or plan.free
            assert 1 <= release.optimality().ratio < 1.05
            assert plan.mechanism == plan.contest[0].name
            assert plan.contest[0].price.value == pytest.approx(
                math.sqrt(float(plan.design.total * 2.0**-56)), rel=1e-6
            )
        errors = [one.rmse for one in session.plan_release(workload, keys=keys, loss=Gdp(0.1)).contest]
        assert errors == sorted(errors)


LISTED = marginals(["sex"], ways=1)
SAME = PRE + LISTED + LISTED * RAN + conditions(["late"])


def totals_of(release):
    """Return the total of all rows as each product tells it, where it does."""
    return [release[PRE].value[-1], release["sex"].value.sum(), release["sex * ranges of age"].value[:, 3].sum()]


def test_products_tell_one_total():
    """Whatever way they are measured, totals are the same number, near the truth, and a repeat tells them again."""
    with opened() as session:
        for mechanism in ("factors", "matrix"):
            how = {"keys": KEYS, "absolute": 60, "cap": "all", "mechanism": mechanism}
            release = session.release(SAME, **how)
            assert release.mechanism == mechanism
            assert totals_of(release) == pytest.approx([totals_of(release)[0]] * 3)
            assert abs(totals_of(release)[0] - IN.sum()) < 120
            assert np.array_equal(session.release(SAME, **how)[PRE].value, release[PRE].value)


@pytest.mark.thorough
def test_one_total_makes_no_answer_worse():
    """Errors stay centred and are at most as wide as is told."""
    found, truth = [], np.concatenate([np.cumsum(counts()), counts(by=(MALE_FIRST,), sizes=(2,))])
    with opened(budget=Budget(mu=50)) as session:
        for number in range(sweep(60, 200)):
            how = {"keys": KEYS, "absolute": 60, "cap": "all", "mechanism": "factors", "where": f"age > -{number + 9}"}
            release = session.release(PRE + LISTED, **how)
            found.append(np.concatenate([release[PRE].value, release["sex"].value]) - truth)
    errors = np.array(found) / (60 / 1.959964)
    assert abs(errors.mean(axis=0)).max() < 5 / np.sqrt(len(errors))
    assert (errors**2).mean() < 1.1
    assert np.allclose(errors[:, 3], errors[:, 4] + errors[:, 5])


def test_goals_are_reached():
    """A mean error, a loss and simultaneous intervals are what was asked; weights sharpen."""
    with opened() as session:
        assert session.release(RAN, rms=20).rmse == pytest.approx(20, rel=1e-6)
        named = session.release(RAN, loss=Gdp(0.3), where="sex = 'm'")
        assert named.paid.amount <= Gdp(0.3).amount
        assert float(named.paid.amount) == pytest.approx(0.09, rel=1e-6)
        once = session.release(RAN, absolute=60, simultaneous=True)
        assert "every answer within 60 for all answers at once" in once.goal
        assert once["ranges of age"].half_width.max() == pytest.approx(60, rel=1e-6)
        both = session.release(PRE + 2 * MANY, absolute=60)
        assert both["2 x late"].half_width.max() <= 30 * (1 + 1e-9)
        assert both["2 x late"].met.all()


def test_what_was_released_is_free_and_the_rest_costs_the_difference():
    """Repeats and looser targets are free; sharper ones cost what is missing, from the same strategies."""
    with opened() as session:
        first = session.release(RAN, absolute=60)
        again = session.release(RAN, absolute=60)
        assert not again.paid
        assert np.array_equal(first["ranges of age"].value, again[RAN].value)
        assert not session.release(RAN, absolute=90).paid
        assert session.plan_release(RAN, absolute=60).free
        sharper = first.refine(absolute=30)
        assert float(sharper.paid.amount) == pytest.approx(3 * float(first.paid.amount), rel=1e-6)
        assert float(session.spent.amount) == pytest.approx(4 * float(first.paid.amount), rel=1e-6)
        assert first.refine(rms=20).rmse == pytest.approx(20, rel=1e-6)


@pytest.mark.parametrize("case", ["prefixes", "tables"])
def test_confidence_of_releases_together(case):
    """Each sharper release lowers it, a free one does not; together=True keeps it, for a wider interval each time."""
    workload, keys = (PRE, None) if case == "prefixes" else (marginals(["sex", "late"]), KEYS | {"late": [True, False]})
    with opened() as session:
        first = session.release(workload, keys=keys, absolute=60)
        assert first.confidence_together == first.confidence == 0.95
        assert session.release(workload, keys=keys, absolute=70).confidence_together == 0.95
        second = first.refine(absolute=40)
        assert 0.85 < second.confidence_together < 0.9
        assert "together with earlier answers" in second.caption
        assert first.refine(absolute=30).confidence_together < second.confidence_together
        assert first.refine(absolute=30).confidence_together < second.confidence_together
    with opened() as session:
        how = {"keys": keys, "together": True}
        plain = session.plan_release(workload, keys=keys, absolute=60).worst_price
        release = session.release(workload, absolute=60, **how)
        assert release.paid > plain
        assert not session.release(workload, absolute=60, **how).paid
        for absolute in (50, 40, 30):
            release = release.refine(absolute=absolute)
            assert release.confidence_together >= 0.95
            assert release.to_dict()["confidence_together"] == release.confidence_together


def test_the_strategy_is_kept_with_what_it_measured(monkeypatch):
    """Another machine that would find another strategy goes on with the one that was measured."""
    from farthing.limits import strategies

    with opened() as session:
        first = session.release(RAN, absolute=60)
        monkeypatch.setattr(strategies, "_ROUNDS", (1, 1))
        strategies._factorized.cache_clear()
        try:
            assert np.array_equal(session.release(RAN, absolute=60)[RAN].value, first[RAN].value)
            assert session.release(RAN, absolute=30)[RAN].met.all()
        finally:
            strategies._factorized.cache_clear()


def test_the_data_are_asked_once(monkeypatch):
    """One question to the engine for a release, none for a free one."""
    asked = []
    real = DuckDBEngine.crossed
    monkeypatch.setattr(DuckDBEngine, "crossed", lambda *given: asked.append(given[2].sets) or real(*given))
    with opened() as session:
        session.release(PRE + MANY, absolute=60)
        session.release(PRE + MANY, absolute=60)
    assert len(asked) == 1


@pytest.mark.parametrize("bounds", [Bounds(1, 1), Bounds(2, 3), Bounds(10**6, 1)])
def test_a_unit_of_several_rows_pays_for_its_reach(bounds):
    """The price is that of one row, times the squared number of rows that a unit may add."""
    with opened(unit="u", bounds=bounds) as session, opened() as rows:
        plan = session.plan_release(RAN, absolute=60, cap="all")
        one = rows.plan_release(RAN, absolute=60)
        reach = bounds.max_rows * min(bounds.max_groups, 4)
        assert float(plan.worst_price.amount) == pytest.approx(reach**2 * float(one.worst_price.amount), rel=1e-6)


@pytest.mark.parametrize("budget", [Budget(rho=5), Budget(mu=5), Budget(epsilon=10, delta=1e-6)])
def test_every_gaussian_currency(budget):
    """The same noise costs rho = mu^2/2."""
    with opened(budget=budget) as session:
        release = session.release(RAN, absolute=60)
        amount = float(release.paid.amount) * (2 if isinstance(release.paid, Zcdp) else 1)
        assert amount == pytest.approx(release._plan.design.total * 2.0**-56, rel=1e-5)


def test_two_at_once_keep_what_both_paid(monkeypatch):
    """Whoever is passed by pays for what it measured, and the ledger keeps both: the next answer is sharper."""
    with opened() as session:
        real, gate = releasing._tables, threading.Event()

        def slow(*given):
            """Let another release of the same rows in between."""
            if not gate.is_set():
                gate.set()
                session.release(PRE, absolute=60)
            return real(*given)

        monkeypatch.setattr(releasing, "_tables", slow)
        paid = session.release(PRE, absolute=60).paid
        assert session.spent.amount == 2 * paid.amount
        assert session.plan_release(PRE, absolute=60 / math.sqrt(2) * 1.001).free


def test_a_failure_is_charged_and_shows_nothing(monkeypatch):
    """An engine that fails leaves the price of the first look and no number; the next ask pays, and is answered."""
    with opened() as session:
        price = session.plan_release(PRE, absolute=60).worst_price
        with monkeypatch.context() as broken:
            broken.setattr(
                DuckDBEngine, "crossed", lambda *_: (_ for _ in ()).throw(DataError("gone", rule="", next_step=""))
            )
            with pytest.raises(DataError):
                session.release(PRE, absolute=60)
        assert 0 < session.spent.amount < price.amount / 60
        assert session.release(PRE, absolute=60).paid == price


def test_the_default_target_of_a_session_is_used():
    """Releases without a goal are within the session's target, of marginals too; a goal of their own goes before."""
    with opened(target=Target(absolute=70, confidence=0.9)) as session:
        release = session.release(PRE)
        assert release["prefixes of age"].half_width.max() == pytest.approx(70, rel=1e-6)
        assert release.confidence == 0.9
        tables = session.release(marginals(["sex"], ways=1), keys=KEYS)
        assert tables["sex"].half_width == pytest.approx(70, rel=1e-6)
        assert tables.confidence == 0.9
        assert session.plan_release(marginals(["sex"], ways=1), keys=KEYS, rms=5).goal.absolute is None
        assert session.release(PRE, rms=40).rmse <= 40 * (1 + 1e-9)
        assert session.release(PRE, loss=Gdp(0.2)).paid
    with opened(target=Target(relative=0.1, absolute=70)) as session:
        assert "within 10 % or 70" in session.release(marginals(["sex"], ways=1), keys=KEYS).goal
        assert "within 10 % or 70" in session.release(PRE).goal


def test_default_keys_of_a_session_are_used():
    """A release lists only what the session does not."""
    with opened(keys=KEYS) as session:
        assert session.release(marginals(["sex"], ways=1) * PRE, absolute=60).rmse > 0
        assert session.release(marginals(["sex"], ways=1), absolute=60).rmse > 0


def test_words_and_files(tmp_path):
    """The text names the promise and the price; each product becomes a file, and none is written over."""
    with opened() as session:
        release = session.release(PRE + marginals(["sex"], ways=1) * RAN, keys=KEYS, absolute=60)
    assert "24 answers, every answer within 60" in repr(release)
    assert "prefixes of age" in repr(release[PRE])
    assert "<table>" in release._repr_html_()
    assert list(release) == ["prefixes of age", "sex * ranges of age"]
    assert release["sex * ranges of age"].to_arrow().column_names == [
        "sex", "age_from", "age_to", "count", "count_lower", "count_upper", "met", "paid",
    ]  # fmt: skip
    files = release.to_parquet(tmp_path / "tables")
    assert pq.read_table(files[0]).equals(release[PRE].to_arrow())
    with pytest.raises(InvalidOption, match="already"):
        release.to_parquet(tmp_path / "tables")
    with pytest.raises(UnsupportedQuery, match="no product"):
        release["age"]
    with pytest.raises((TypeError, AttributeError)):
        pickle.dumps(release)


SEVENTY = [f"age < {at}" for at in range(70)]
REFUSED = {
    "keys of bins": (InvalidKeys, lambda s: s.release(PRE, keys={"age_from": [1]}, absolute=60)),
    "no keys of a matrix": (InvalidKeys, lambda s: s.release(matrix(W, "sex"), absolute=60)),
    "keys of another column": (InvalidKeys, lambda s: s.release(PRE, keys=KEYS, absolute=60)),
    "private keys": (InvalidKeys, lambda s: s.release(matrix(W, "sex"), keys="private", absolute=60)),
    "too few keys": (InvalidOption, lambda s: s.release(matrix(W, "sex"), keys={"sex": ["m"]}, absolute=60)),
    "bins of texts": (UnsupportedQuery, lambda s: s.release(prefixes("sex", EDGES), absolute=60)),
    "an unknown column": (UnsupportedQuery, lambda s: s.release(prefixes("x", EDGES), absolute=60)),
    "a condition that is none": (UnsupportedQuery, lambda s: s.release(conditions(["age + 1"]), absolute=60)),
    "a condition of rows": (UnsupportedQuery, lambda s: s.release(conditions(["COUNT(*) > 1"]), absolute=60)),
    "no goal": (InvalidTarget, lambda s: s.release(PRE)),
    "two goals": (InvalidTarget, lambda s: s.release(PRE, absolute=60, rms=3)),
    "a relative goal alone": (InvalidTarget, lambda s: s.release(PRE, relative=0.1)),
    "another currency": (InvalidTarget, lambda s: s.release(PRE, loss=Zcdp(0.1))),
    "an unknown mechanism": (InvalidTarget, lambda s: s.release(PRE, absolute=60, mechanism="residuals")),
    "a mechanism of several": (InvalidTarget, lambda s: s.release(PRE, absolute=60, mechanism="matrix")),
    "a taken name": (UnsupportedQuery, lambda s: s.release(PRE, absolute=60, name="age_from")),
    "out of reach": (OutOfReach, lambda s: s.release(PRE, absolute=1)),
    "more than is left": (BudgetExceeded, lambda s: s.release(PRE, loss=Gdp(7))),
    "absurdly sharp": (OutOfReach, lambda s: s.release(PRE, rms=1e-100, cap="all")),
    "too many conditions": (InvalidOption, lambda s: s.release(conditions(SEVENTY), absolute=60)),
    "too many cells": (
        InvalidOption,
        lambda s: s.release(
            prefixes("age", range(401)) * prefixes("u", range(401)) * matrix(np.eye(27), "sex"),
            keys={"sex": [chr(at) for at in range(64, 91)]},
            absolute=60,
        ),
    ),
    "an empty workload": (InvalidOption, lambda _: Products(())),
    "the same twice": (InvalidOption, lambda _: PRE + prefixes("age", EDGES)),
    "a column by itself": (InvalidOption, lambda _: PRE * RAN),
    "marginals by themselves": (InvalidOption, lambda _: marginals(["a"], 1) * marginals(["a"], 1)),
    "edges that fall": (InvalidOption, lambda _: prefixes("age", [3, 2])),
    "one edge": (InvalidOption, lambda _: prefixes("age", [3])),
    "an edge that is no number": (InvalidOption, lambda _: ranges("age", [0, math.nan])),
    "edges as a text": (InvalidOption, lambda _: prefixes("age", "012")),
    "too many ranges": (InvalidOption, lambda _: ranges("age", range(1000))),
    "a NaN in a matrix": (InvalidOption, lambda _: matrix([[1, math.nan]], "sex")),
    "a row of zeros": (InvalidOption, lambda _: matrix([[1, 0], [0, 0]], "sex")),
    "a matrix that is none": (InvalidOption, lambda _: matrix([[1], [1, 2]], "sex")),
    "a matrix over nothing": (InvalidOption, lambda _: matrix([[1]], [])),
    "conditions as a text": (InvalidOption, lambda _: conditions("age < 3")),
    "no conditions": (InvalidOption, lambda _: conditions([])),
    "a condition twice": (InvalidOption, lambda _: conditions(["late", "late"])),
    "a condition twice in other letters": (
        InvalidOption,
        lambda s: s.release(conditions(["late", "LATE"]), absolute=60),
    ),
    "a weight of nothing": (InvalidOption, lambda _: 0 * PRE),
    "a weight that is no number": (TypeError, lambda _: "2" * PRE),
    "a sum with a number": (TypeError, lambda _: PRE + 2),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_costs_nothing(case):
    """Each refusal is an error of its own kind, and leaves the books as they were."""
    kind, ask = REFUSED[case]
    with opened() as session:
        with pytest.raises(kind) as refused:
            ask(session)
        assert not session.history()
        assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([[1, 0], [math.nan, 1]], "nan in row 1, column 0"),
        ([[1, math.inf]], "inf in row 0, column 1"),
        ([[1, 0], [0, 0]], "only zeros in row 1"),
        ([[1e7, 0], [0, 1]], "largest entries from 1 to 1e+07"),
        ([[1], [1, 2]], "another shape or type"),
    ],
)
def test_a_matrix_is_refused_by_what_is_wrong_with_it(entries, said):
    """The message names the entry or the row, not all that could be wrong."""
    with pytest.raises(InvalidOption) as refused:
        matrix(entries, "sex")
    assert refused.value.got == said or refused.value.got.startswith(said)


def test_a_pure_budget_is_refused():
    """Laplace noise is another mechanism; said before anything is charged."""
    with opened(budget=Budget(epsilon=1)) as session, pytest.raises(UnsupportedQuery, match="delta"):
        session.release(PRE, absolute=60)


def test_workloads_add_and_multiply():
    """Unions and products are workloads; those of marginals alone are marginals; weights multiply."""
    assert isinstance(marginals(["a"], 1) * marginals(["b"], 1), Marginals)
    assert [one.words for one in (marginals(["a"], 1) + PRE).products] == ["a", "prefixes of age"]
    assert [one.weight for one in (2 * (3 * marginals(["a"], 1) * PRE)).products] == [6.0]
    assert len((MANY * (PRE + marginals(["a"], 1))).products) == 6
    assert farthing.ProductRelease.__name__ == "ProductRelease"
