"""Free answers: one identity for every spelling, and answers that follow from released cells."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import sweep

from farthing import Bounds, Budget, Pure, Session
from farthing.accuracy import cell_sums
from farthing.accuracy.stored_promise import StoredPromise
from farthing.engines.memory.engine import holds
from farthing.query.arrange import arrangement, places
from farthing.query.expressions import And, Between, Column, Compare, In, IsNull, Literal, Not, Operator, Or
from farthing.query.normal import constants, normal
from farthing.session.core.records import keys_from_bytes, keys_to_bytes

BUDGET = Budget(mu=1)
MONTHS, DESTS = list(range(1, 5)), ["ATL", "BOS", "ORD"]
SIZES = np.arange(1, 13) * 500
TABLE = pa.table({
    "dest": np.repeat(np.repeat(DESTS, 4), SIZES),
    "month": np.repeat(np.tile(MONTHS, 3), SIZES),
    "u": np.arange(SIZES.sum()) // 3,
    "x": np.arange(SIZES.sum()) % 10,
})  # fmt: skip
KEYS = {"dest": DESTS, "month": MONTHS}
BOTH = {"by": ["dest", "month"], "keys": KEYS}
TRUTH = SIZES.reshape(3, 4)
ONE_ROW = Bounds(max_groups=1, max_rows=1)


def opened(**options):
    """Open the table, with a budget of mu = 1 unless told otherwise."""
    return Session(TABLE, **({"budget": BUDGET} | options))


@pytest.mark.parametrize(("first", "second"), [
    ("x < 5 AND month = 2", "month = 2 AND x < 5"),
    ("x < 5 OR month = 2", "2 = month OR 5 > x"),
    ("x BETWEEN 2 AND 5", "x >= 2 AND 5 >= x"),
    ("x NOT BETWEEN 2 AND 5", "x > 5 OR x < 2"),
    ("month IN (2)", "month = 2.0"),
    ("month IN (1, 2)", "month = 2 OR month = 1 OR month = 1"),
    ("month NOT IN (1, 2)", "month <> 2 AND NOT (month = 1)"),
    ("NOT (NOT (x < 5))", "x < 5"),
    ("NOT (x < 5 AND month = 2)", "x >= 5 OR month <> 2"),
    ("(x < 5 AND month = 2) AND dest = 'ATL'", "x < 5 AND (dest = 'ATL' AND (month = 2))"),
    ("x < 5 AND x < 5", "x < 5.0"),
    ("dest IS NOT NULL", "NOT (dest IS NULL)"),
])  # fmt: skip
def test_one_identity_for_every_spelling(first, second):
    """The same rows in other words are the same question, and free; by method or by SQL."""
    session = opened()
    answer = session.count(where=first, absolute=50)

    for again in (
        session.count(where=second, absolute=60),
        session.sql(f"SELECT COUNT(*) FROM data WHERE {second}", absolute=50),
    ):
        assert answer.value == again.value
        assert not again.paid


@pytest.mark.parametrize("budget", [Budget(mu=1), Budget(rho=0.5), Budget(epsilon=5)], ids=["gdp", "zcdp", "pure"])
def test_absolute_answers_are_reread_at_any_confidence(budget):
    """The same noise is narrower less surely: free both ways, and a finer target pays what is missing only."""
    session, direct = opened(budget=budget), opened(budget=budget)
    first = session.count(absolute=60, confidence=0.95)
    narrow = session.count(absolute=25, confidence=0.5)
    sure = session.count(absolute=100, confidence=0.98)
    half = [(answer.upper - answer.lower) / 2 for answer in (narrow, first, sure)]

    assert not narrow.paid
    assert not sure.paid
    assert first.value == narrow.value == sure.value
    assert half == sorted(half)
    session.count(absolute=30, confidence=0.9)
    direct.count(absolute=30, confidence=0.9)
    if budget.currency is not Pure:
        assert float(direct.spent.amount) == pytest.approx(float(session.spent.amount), rel=1e-5)
    assert not session.count(absolute=60, confidence=0.95).paid


def test_other_rows_are_another_question():
    """What only looks alike pays."""
    session = opened()
    session.count(where="x < 5 AND month = 2", absolute=50)

    for where in ("x < 5 OR month = 2", "x <= 5 AND month = 2", "x < 5", "x < 5 AND month = 3"):
        assert session.count(where=where, absolute=50).paid


NAMES = ["i", "f", "s"]
ROWS = [
    {"i": i, "f": f, "s": s}
    for i in (None, 0, 1, 2)
    for f in (None, 0.0, 1.0, 1.5, float("inf"), float("nan"))
    for s in (None, "", "a")
]
numbers = st.sampled_from([Literal(0), Literal(1), Literal(1.0), Literal(1.5), Literal(-0.0)])
texts = st.sampled_from([Literal(""), Literal("a")])
leaves = st.one_of(
    st.builds(Compare, st.sampled_from([Column("i"), Column("f")]), st.sampled_from(list(Operator)), numbers),
    st.builds(Compare, numbers, st.sampled_from(list(Operator)), st.sampled_from([Column("i"), Column("f")])),
    st.builds(Compare, st.just(Column("s")), st.sampled_from(list(Operator)), texts),
    st.builds(Compare, st.just(Column("i")), st.sampled_from(list(Operator)), st.just(Column("f"))),
    st.builds(In, st.just(Column("i")), st.lists(numbers, min_size=1, max_size=3).map(tuple)),
    st.builds(Between, st.just(Column("f")), numbers, numbers),
    st.builds(IsNull, st.sampled_from([Column(name) for name in NAMES])),
)
predicates = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Or(tuple(parts))),
        inner.map(Not),
    ),
    max_leaves=6,
)


@settings(max_examples=sweep(60, 150))
@given(predicates)
def test_the_normal_form_is_true_where_the_predicate_is(predicate):
    """Truth, falsehood and unknown agree on every row, NULL and NaN among them; it is its own normal form."""
    form = normal(predicate)

    assert [holds(predicate, row) for row in ROWS] == [holds(form, row) for row in ROWS]
    assert form == normal(form)
    assert form == normal(Not(Not(predicate)))


def test_a_planted_wrong_identity_is_seen():
    """The rows tell apart a NOT that forgets NaN: power of the test above."""
    wrong = Compare(Column("f"), Operator.LT, Literal(1))  # "not f > 1" without the equal and NaN cases

    right = Not(Compare(Column("f"), Operator.GT, Literal(1)))

    assert [holds(wrong, row) for row in ROWS] != [holds(right, row) for row in ROWS]


@pytest.mark.parametrize("again", [
    {"by": ["month", "dest"], "keys": KEYS},
    {"by": ["dest", "month"], "keys": {"dest": DESTS[::-1], "month": MONTHS}},
    {"by": ["month", "dest"], "keys": {"month": [3, 1, 4, 2], "dest": ["BOS", "ORD", "ATL"]}},
])  # fmt: skip
@pytest.mark.parametrize("options", [{}, {"unit": "u", "bounds": Bounds(max_groups=2, max_rows=2)}], ids=["row", "u"])
def test_keys_in_another_order_are_the_same_question(again, options):
    """Columns and keys may be listed in any order: each cell keeps its number."""
    session = opened(**options)
    first = session.count(**BOTH, absolute=100).to_arrow().to_pylist()
    second = session.count(**again, absolute=100)
    numbers = {(row["dest"], row["month"]): row["count"] for row in first}

    assert not second.paid
    assert len(numbers) == len(second.value)
    for row in second.rows():
        assert numbers[row["dest"], row["month"]] == row["count"]


def test_keys_in_another_order_are_refined_in_place():
    """A refine of re-ordered keys pays the difference and shows each truth at its key."""
    session = opened()
    session.count(**BOTH, absolute=100)
    fine = session.count(by=["month", "dest"], keys={"month": MONTHS[::-1], "dest": DESTS}, absolute=20, on_miss="drop")

    assert TRUTH.T[::-1].ravel() == pytest.approx(fine.value, abs=200)
    assert 1.96 / 20 == pytest.approx(session.spent.mu, rel=1e-3)


@pytest.mark.parametrize("how", [{"absolute": 50}, {"relative": 0.1, "absolute": 50}])
def test_some_of_the_stored_keys_are_free(how):
    """Groups that were asked among others show the same numbers free of charge; a finer target pays."""
    session = opened()
    whole = session.count(**BOTH, **how)
    some = session.count(by=["month", "dest"], keys=[{"month": 4, "dest": "ATL"}, {"month": 2, "dest": "ORD"}], **how)

    assert [whole.value[3], whole.value[9]] == some.value.tolist()
    assert not some.paid
    assert "released before" in some.about
    assert some.refine(relative=0.01, absolute=20).paid
    assert session.count(by="dest", keys={"dest": ["ATL", "LAX"]}, **how).paid


def test_some_of_the_keys_pay_where_groups_are_given_up():
    """A unit that may give up groups keeps others among fewer keys: another truth, and no free answer."""
    few, all_ = Bounds(max_groups=2, max_rows=2), Bounds(max_groups=12, max_rows=2)
    session = opened(unit="u", bounds=few)
    session.count(**BOTH, absolute=100)
    session.count(**BOTH, absolute=100, bounds=all_)
    keys = {"dest": ["ATL"], "month": [1, 2, 3, 4]}

    assert session.count(**(BOTH | {"keys": keys}), absolute=100).paid
    assert not session.count(**(BOTH | {"keys": keys}), absolute=100, bounds=all_).paid


@pytest.mark.parametrize("ask", [
    ({"by": "dest", "keys": {"dest": DESTS}, "where": "month IN (1, 2, 3, 4)"}, TRUTH.sum(axis=1)),
    ({"by": "dest", "keys": {"dest": ["ORD"]}, "where": "month = 1 OR month = 3"}, TRUTH[2:, [0, 2]].sum(axis=1)),
    ({"by": "month", "keys": {"month": [4]}, "where": "dest IN ('ATL', 'BOS')"}, TRUTH[:2, 3:].sum(axis=0)),
    ({"where": "dest IN ('ATL', 'BOS') AND month IN (4, 3)"}, [TRUTH[:2, 2:].sum()]),
])  # fmt: skip
def test_coarser_groups_are_sums_of_stored_cells(ask):
    """A total over listed keys, or a coarser grouping, is free where its own interval meets the target."""
    session = opened()
    session.count(**BOTH, absolute=50)
    spent = session.spent
    question, truth = ask
    answer = session.count(**question, absolute=120)
    value = np.atleast_1d(answer.value)

    assert not answer.paid
    assert spent == session.spent
    assert "sum of" in answer.about
    assert np.asarray(truth) == pytest.approx(value, abs=500)
    assert np.all(np.atleast_1d(answer.upper) - value <= 120 * (1 + 1e-9))


def test_one_stored_cell_is_free_by_its_predicate():
    """count(where dest = .. AND month = ..) is one stored cell."""
    session = opened()
    cells = session.count(**BOTH, relative=0.1, absolute=50)
    answer = session.count(where="month = 2 AND dest = 'BOS'", relative=0.1, absolute=50)

    assert cells.value[5] == answer.value
    assert not answer.paid


def test_sums_over_a_stored_predicate():
    """The stored question's own predicate stays; what comes on top may only list constants of its keys."""
    session = opened()
    session.count(**BOTH, where="x < 5", absolute=50)
    by = {"by": "dest", "keys": {"dest": DESTS}, "absolute": 200}

    assert not session.count(**by, where="x < 5 AND month IN (1, 2)").paid
    assert session.count(**by, where="month IN (1, 2)").paid
    assert session.count(**by, where="x < 4 AND month IN (1, 2)").paid
    assert session.count(**by, where="x < 5 AND month < 3").paid
    assert session.count(**by, where="x < 5 AND month IN (1, 5)").paid
    assert session.count(**by, where="x < 5").paid


def test_sums_that_miss_the_target_are_measured():
    """Where the sum is too wide the question is asked, and paid for."""
    session = opened()
    session.count(**BOTH, absolute=50)

    assert session.count(by="dest", keys={"dest": DESTS}, where="month IN (1, 2, 3, 4)", absolute=60).paid


def test_units_in_several_cells_have_no_sums():
    """With a unit column the bounded total is not the sum of bounded cells."""
    session = opened(unit="u", bounds=Bounds(max_groups=12, max_rows=2))
    session.count(**BOTH, absolute=50)

    assert session.count(by="dest", keys={"dest": DESTS}, where="month IN (1, 2, 3, 4)", absolute=500).paid


def test_a_plan_tells_that_a_sum_is_free():
    """Before asking, the plan says so, and what it is made of."""
    session = opened()
    session.count(**BOTH, absolute=50)
    plan = session.plan(by="dest", keys={"dest": DESTS}, where="month IN (1, 2, 3, 4)", absolute=120)

    assert plan.free
    assert not plan.worst_price
    assert "sum of 4 groups" in plan.about
    assert 100 == pytest.approx(plan.half_width, rel=1e-3)  # 50 sqrt(4)


def test_free_answers_outlive_the_session(tmp_path):
    """The index is in the ledger: another session finds the cells."""
    path = tmp_path / "a.ledger"
    opened(ledger=path).count(**BOTH, absolute=50)
    later = opened(ledger=path)

    assert not later.count(by="dest", keys={"dest": DESTS}, where="month IN (1, 2)", absolute=120).paid
    assert opened(ledger=path, version="2").count(by="dest", keys={"dest": DESTS}, where="month = 1", absolute=120).paid


def test_a_free_sum_is_refined_for_its_price():
    """Refining a free sum asks the question itself, from nothing."""
    session = opened()
    session.count(**BOTH, absolute=50)
    free = session.count(where="dest = 'ATL' AND month IN (1, 2)", absolute=80)
    finer = free.refine(absolute=40)

    assert not free.paid
    assert free.doubling is None
    assert 1.959964 / 40 == pytest.approx(finer.paid.mu, rel=1e-4)


def test_pure_sums_are_free_too():
    """Under a pure budget the sum has a Chernoff interval, narrower than the sum of the intervals."""
    session = opened(budget=Budget(epsilon=1))
    session.count(**BOTH, absolute=50)
    answer = session.count(by="dest", keys={"dest": DESTS}, where="month IN (1, 2, 3, 4)", absolute=160)

    assert not answer.paid
    assert TRUTH.sum(axis=1) == pytest.approx(answer.value, abs=1000)
    assert session.count(by="dest", keys={"dest": DESTS}, where="month IN (1, 2, 3, 4)", absolute=70).paid


@settings(max_examples=sweep(30, 60))
@given(
    st.lists(st.tuples(st.sampled_from([None, "a", "b", "é", ""]), st.integers(0, 4)), min_size=1, unique=True),
    st.randoms(use_true_random=False),
)
def test_arrangement_is_one_order(rows, random):
    """However rows are shuffled they arrange alike; places finds each, and refuses what is not there."""
    shuffled = random.sample(rows, len(rows))
    names = pa.schema([("s", pa.string()), ("i", pa.int64())])
    tables = [pa.Table.from_pylist([{"s": s, "i": i} for s, i in given], schema=names) for given in (rows, shuffled)]
    orders = [arrangement(table) for table in tables]
    one, other = (t if o is None else t.take(o) for t, o in zip(tables, orders, strict=True))

    assert one.equals(other)
    assert arrangement(one) is None
    assert tables[1].take(places(tables[1], tables[0])).equals(tables[0])
    assert places(tables[0], tables[0].append_column("z", tables[0].column("i"))) is None
    assert places(tables[0], pa.table({"s": ["q"], "i": [0]})) is None


def test_keys_travel_as_lists_where_they_are_a_product():
    """A full cross product is stored by its lists, anything else row by row; both come back as they were."""
    whole = pa.table({"a": np.repeat(np.arange(1000), 50), "b": np.tile(np.arange(50), 1000)})
    part = whole.slice(1)

    assert whole.equals(keys_from_bytes(keys_to_bytes(whole)))
    assert part.equals(keys_from_bytes(keys_to_bytes(part)))
    assert 10_000 > len(keys_to_bytes(whole))


def test_constants_of_a_predicate():
    """Only what holds a column to listed constants is a list of constants."""
    x = Column("x")

    assert ("x", (Literal(1),)) == constants(Compare(x, Operator.EQ, Literal(1)))
    assert ("x", (None,)) == constants(IsNull(x))
    for other in (Compare(x, Operator.NE, Literal(1)), Compare(x, Operator.EQ, Column("y")), Not(IsNull(x))):
        assert constants(other) is None


@pytest.mark.parametrize("relative", [0.05, 0.1, 0.2, 0.3])
def test_stretch_grows_with_confidence_and_may_give_up(relative):
    """A smaller chance of a miss is wider; where the bound gives none it says infinite, never less."""
    rule = StoredPromise(relative, 50.0, 50.0, 0.05, 1.98, 1 << 50)
    times = [cell_sums.stretch(rule, beta) for beta in (0.05, 0.01, 1e-3, 1e-4)]

    assert times == sorted(times)
    assert 1.2 < times[0] < 1.7
    assert times[-1] < 1 / relative
    assert np.inf == cell_sums.stretch(StoredPromise(0.9, 50.0, 50.0, 0.05, 2.3, 1 << 50), 1e-9)


def test_sums_of_relative_cells_are_made_of_estimates():
    """What a sum of cells tells is the sum of their estimates, inside of the interval around the means."""
    session = opened()
    cells = session.count(**BOTH, relative=0.1, absolute=50)
    total = session.count(by="dest", keys={"dest": DESTS}, where="month IN (1, 2, 3, 4)", relative=0.5, absolute=2000)

    assert not total.paid
    assert cells.estimate.sum() == pytest.approx(total.value.sum(), rel=1e-12)
    assert (total.estimate == total.value).all()
    assert ((total.lower < total.value) & (total.value < total.upper)).all()


def test_sums_of_cells_that_stopped_by_several_rules_are_free_too():
    """Cells of which some keep an earlier target's interval still come to a total with a valid one."""
    session = opened()
    session.count(**BOTH, absolute=60)
    cells = session.count(**BOTH, relative=0.1, absolute=30)
    total = session.count(by="dest", keys={"dest": DESTS}, where="month IN (1, 2, 3, 4)", relative=0.5, absolute=2000)

    assert cells.met.all()
    assert not total.paid
    assert ((total.lower <= TRUTH.sum(axis=1)) & (TRUTH.sum(axis=1) <= total.upper)).all()


ASKED = {
    "count": ("COUNT(*) AS a", {"relative": 0.1, "absolute": 5}),
    "sum": ("SUM(x) AS a", {"relative": 0.2, "absolute": 50}),
    "mean": ("AVG(x) AS a", {"relative": 0.1}),
    "coarse mean": ("AVG(x) AS a", {"relative": 0.3}),
    "variance": ("VAR_POP(x) AS a", {"relative": 0.2}),
    "standard deviation": ("STDDEV(x) AS a", {"absolute": 0.4}),
    "several": ("COUNT(*) AS a, SUM(x) AS b, AVG(x) AS c, STDDEV(x) AS d", {"relative": 0.2, "absolute": 5}),
    "ratio": ("SUM(x) / SUM(y) AS a", {"relative": 0.3}),
    "ratio within": ("SUM(x) / SUM(y) AS a", {"absolute": 0.1}),
    "correlation": ("CORR(x, y) AS a", {"absolute": 0.3}),
    "covariance": ("COVAR_POP(x, y) AS a", {"absolute": 1}),
    "slope": ("REGR_SLOPE(y, x) AS a", {"absolute": 1}),
    "median": ("MEDIAN(x) AS a", {"relative": 0.2}),
    "median by rank": ("MEDIAN(x) AS a", {"rank": 0.1}),
    "median by either": ("MEDIAN(x) AS a", {"rank": 0.02, "absolute": 2}),
    "quartiles": ("QUANTILE(x, 0.25) AS a, MEDIAN(x) AS b, QUANTILE(x, 0.75) AS c", {"relative": 0.3}),
    "quartiles by rank": ("QUANTILE(x, 0.25) AS a, MEDIAN(x) AS b, QUANTILE(x, 0.75) AS c", {"rank": 0.1}),
    "greatest": ("MAX(x) AS a", {"rank": 0.05}),
    "mean and median": ("AVG(x) AS a, MEDIAN(x) AS b", {"relative": 0.2}),
}
"""A question of each kind, with a target that some groups meet under their cap and others do not."""


@pytest.mark.parametrize("budget", [Budget(epsilon=4, delta=1e-6), Budget(epsilon=4)], ids=["gdp", "pure"])
@pytest.mark.parametrize("kind", ASKED)
def test_a_question_asked_twice_is_free_and_answered_alike(kind, budget):
    """Whether its groups are met, given up or at their cap: the plan is free, and every number is the same."""
    sizes = np.array([0, 3, 20, 60, 150, 400, 1000, 2500])
    group = np.repeat(np.arange(8), sizes)
    rng = np.random.default_rng(7)
    table = pa.table({"k": group, "x": rng.uniform(0, 10, len(group)), "y": rng.integers(0, 11, len(group))})
    if kind == "median by either" and budget.currency is Pure:
        pytest.skip("a pure budget has one of both")
    select, how = ASKED[kind]
    text = f"SELECT k, {select} FROM data GROUP BY k"  # no text from outside
    asked = {"keys": {"k": list(range(8))}, "bounds": ONE_ROW, "lower": 0, "upper": 10, **how}
    with Session(table, budget=budget) as session:
        first = session.sql(text, **asked)
        plan, again = session.plan(text, **asked), session.sql(text, **asked)

    assert not first.met.all()
    assert first.met.any() or kind in {"slope", "covariance"}
    assert plan.free
    assert not again.paid
    assert first.to_arrow().drop_columns(["paid"]).equals(again.to_arrow().drop_columns(["paid"]))


@pytest.mark.parametrize("budget", [Budget(epsilon=40, delta=1e-6), Budget(epsilon=40)], ids=["gdp", "pure"])
@pytest.mark.parametrize(("select", "how"), [
    ("SUM(x) / SUM(y) AS a", {"relative": 0.1}),
    ("COUNT(*) AS a, SUM(x) AS b, AVG(x) AS c, STDDEV(x) AS d", {"relative": 0.2, "absolute": 10}),
    ("COVAR_POP(x, y) AS a", {"absolute": 2}),
    ("REGR_SLOPE(y, x) AS a", {"absolute": 0.3}),
], ids=["ratio", "several", "covariance", "slope"])  # fmt: skip
def test_a_cap_that_was_far_too_small_leaves_no_trace(select, how, budget):
    """Asked again with enough, groups are met, and all pay about what they would have paid at once."""
    group, rng = np.repeat(np.arange(20), 1_500), np.random.default_rng(8)
    table = pa.table({"k": group, "x": rng.uniform(0, 10, len(group)), "y": rng.integers(0, 11, len(group))})
    text, currency = f"SELECT k, {select} FROM data GROUP BY k", budget.currency  # no text from outside
    asked = {"keys": {"k": list(range(20))}, "bounds": ONE_ROW, "lower": 0, "upper": 10, **how}
    adds_up = 1 if currency is Pure else 2

    def met_and_paid(*caps):
        """Ask once with each cap; return which groups are met in the end, and what all asks were charged."""
        with Session(table, budget=budget) as session:
            answers = [session.sql(text, **asked, cap=cap) for cap in caps]
            return answers[-1].met.mean(), float(session.spent.value)

    need = met_and_paid("all")[1]
    enough = currency(2 * need)
    met, paid = met_and_paid(currency(need / 20), enough)

    assert met > 0.9
    assert paid**adds_up < 1.75 * met_and_paid(enough)[1] ** adds_up
