"""Numbers of other groups, and what computes with released numbers: read, told with honest ends, or refused by name."""

import json
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from levels import ALPHA
from scipy.stats import binom

from farthing import Budget, Session
from farthing.cells import Cells
from farthing.errors import InvalidTarget, UnsupportedQuery
from farthing.query import Schema, Type
from farthing.query.comparison import ComputedNumber, Neighbour, Polynomial
from farthing.query.key_order import OrderKey
from farthing.query.outward import dumped
from farthing.sql import parse

SCHEMA = Schema.of({"month": Type.INTEGER, "zone": Type.STRING, "fare": Type.FLOAT})
MONTHS = "OVER (PARTITION BY zone ORDER BY month)"
N, FARE = "COUNT(*)", "AVG(CLAMP(fare, 0, 9))"
CHANGED = "AVG(CLAMP(fare - 6, -5, 5))"
SHARE = f"{N} / SUM({N}) OVER ()"
READ = {
    f"LAG({N}) {MONTHS}": "LAG(n, 1) OVER (PARTITION BY zone ORDER BY month)",
    f"{N} - LAG({N}, 12) {MONTHS}": "n - LAG(n, 12) OVER (PARTITION BY zone ORDER BY month)",
    f"100.0 * ({N} / LAG({N}) {MONTHS} - 1)":
        "(100 * n - 100 * LAG(n, 1) OVER (PARTITION BY zone ORDER BY month))"
        " / (LAG(n, 1) OVER (PARTITION BY zone ORDER BY month))",
    f"({N} - LAG({N}) {MONTHS}) * 1.0 / NULLIF(LAG({N}) {MONTHS}, 0)":
        "(n - LAG(n, 1) OVER (PARTITION BY zone ORDER BY month))"
        " / (LAG(n, 1) OVER (PARTITION BY zone ORDER BY month))",
    f"CASE WHEN LAG({N}) {MONTHS} > 0 THEN {N} / LAG({N}) {MONTHS} ELSE 0 END":
        "(n) / (LAG(n, 1) OVER (PARTITION BY zone ORDER BY month))",
    f"CASE WHEN LAG({N}) {MONTHS} IS NOT NULL THEN 1.0 * {N} / LAG({N}) {MONTHS} END":
        "(n) / (LAG(n, 1) OVER (PARTITION BY zone ORDER BY month))",
    f"CASE WHEN 2 * LAG({N}) {MONTHS} > 0 THEN {N} / (LAG({N}) {MONTHS} * LEAD({N}) {MONTHS}) END":
        "(n) / (LAG(n, 1) OVER (PARTITION BY zone ORDER BY month)"
        " * LEAD(n, 1) OVER (PARTITION BY zone ORDER BY month))",
    f"CASE WHEN LAG({CHANGED}) {MONTHS} <> 0 THEN {CHANGED} / LAG({CHANGED}) {MONTHS} END":
        "(avg) / (LAG(avg, 1) OVER (PARTITION BY zone ORDER BY month))",
    f"{N} - COALESCE(LAG({N}, 1, 5) {MONTHS} + 5, 0)":
        "-5 + n - LAG(n, 1, 5) OVER (PARTITION BY zone ORDER BY month)",
    f"LEAD({N}, 2, 0) {MONTHS} + 1": "1 + LEAD(n, 2, 0) OVER (PARTITION BY zone ORDER BY month)",
    f"COALESCE(LAG({N}) {MONTHS}, 0)": "LAG(n, 1) OVER (PARTITION BY zone ORDER BY month)",
    f"{N} - COALESCE(LAG({N}) {MONTHS}, 0)": "n - LAG(n, 1, 0) OVER (PARTITION BY zone ORDER BY month)",
    f"CAST({N} AS DOUBLE) / FIRST_VALUE({N}) {MONTHS}":
        "(n) / (FIRST_VALUE(n) OVER (PARTITION BY zone ORDER BY month))",
    f"LAST_VALUE({N}) OVER (ORDER BY zone DESC, month ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)":
        "LAST_VALUE(n) OVER (ORDER BY zone DESC, month)",
    f"{FARE} - LAG({FARE}) {MONTHS}": "a - LAG(a, 1) OVER (PARTITION BY zone ORDER BY month)",
    f"SUM(CLAMP(fare, 0, 9)) / {N} - LAG(SUM(CLAMP(fare, 0, 9)) / {N}) {MONTHS}":
        "ratio - LAG(ratio, 1) OVER (PARTITION BY zone ORDER BY month)",
    f"1 - {SHARE}": "1 - share",
    f"100 * (1 - {SHARE})": "100 - 100 * share",
    f"-({SHARE})": "-share",
    f"{SHARE} - SUM(CLAMP(fare, 0, 9)) / SUM(SUM(CLAMP(fare, 0, 9))) OVER ()": "share - share_2",
    f"SUM({N}) OVER () - {N}": "total - n",
    f"({SHARE}) - LAG({SHARE}) {MONTHS}": "share - LAG(share, 1) OVER (PARTITION BY zone ORDER BY month)",
}  # fmt: skip
REFUSED = {
    f"LAG({N}) OVER ()": "LAG without ORDER BY",
    f"LAG({N}) OVER (ORDER BY month)": "neighbours that are alike in ORDER BY",
    f"LAG({N}) OVER (PARTITION BY zone ORDER BY {N})": "aggregate COUNT in ORDER BY",
    f"LAG({N}) OVER (PARTITION BY zone ORDER BY fare)": "ORDER BY of another value",
    f"LAG({N}, -1) {MONTHS}": "a number of groups",
    f"LAG({N}, month) {MONTHS}": "a number of groups",
    f"LAG({N}, 1, 0, 0) {MONTHS}": "LAG written like this",
    f"LAG({N} IGNORE NULLS) {MONTHS}": "LAG written like this",
    f"LAG({N}, 1, month) {MONTHS}": "a default of LAG that is not a number",
    f"LAG({N}) OVER (PARTITION BY zone ORDER BY month ROWS 1 PRECEDING)": "LAG of a frame",
    f"LAST_VALUE({N}) {MONTHS}": "LAST_VALUE of less than all groups",
    f"LAG(ROUND({FARE}, 1)) {MONTHS}": "ROUND within LAG",
    f"LAG(LAG({N}) {MONTHS}) {MONTHS}": "LAG of what is computed of other groups",
    f"{N} * LAG({N}) {MONTHS} * {N}": "a released number twice in a product",
    f"SQRT({N} - LAG({N}) {MONTHS})": "SQRT beside LAG over groups",
    f"{N} - LAG({N}) {MONTHS} / 0": "division by zero",
    f"LAG({N}) {MONTHS} - LAG({N}) {MONTHS}": "a number that no row changes",
    f"LAG({N}) {MONTHS} * 1e200 * 1e200": "a number that is too large",
    f"CASE WHEN LAG({N}) {MONTHS} > 5 THEN 1 END": "CASE beside LAG over groups",
    f"CASE WHEN {N} > 0 THEN {N} / LAG({N}) {MONTHS} END": "CASE beside LAG over groups",
    f"CASE WHEN LAG({N}) {MONTHS} > 0 THEN {N} / LAG({N}) {MONTHS} ELSE month END": "CASE beside LAG over groups",
    f"CASE WHEN LAG({N}) {MONTHS} - 1000 > 0 THEN {N} / LAG({N}) {MONTHS} ELSE 0 END": "CASE beside LAG over groups",
    f"CASE WHEN LAG({N}) {MONTHS} + 1 <> 0 THEN {N} / LAG({N}) {MONTHS} END": "CASE beside LAG over groups",
    f"CASE WHEN -LAG({N}) {MONTHS} > 0 THEN {N} / LAG({N}) {MONTHS} ELSE 0 END": "CASE beside LAG over groups",
    f"CASE WHEN 1 / LAG({N}) {MONTHS} > 0 THEN {N} / LAG({N}) {MONTHS} END": "CASE beside LAG over groups",
    f"CASE WHEN LAG({CHANGED}) {MONTHS} > 0 THEN {CHANGED} / LAG({CHANGED}) {MONTHS} ELSE 0 END":
        "CASE beside LAG over groups",
    f"CASE WHEN {N} - LAG({N}) {MONTHS} > 0 THEN 1 / ({N} - LAG({N}) {MONTHS}) END": "CASE beside LAG over groups",
    f"CASE WHEN LAG({N}) {MONTHS} > 0 THEN {N} / (LAG({N}) {MONTHS} + 5) ELSE 0 END": "CASE beside LAG over groups",
    f"CASE WHEN LAG({N}) {MONTHS} > 0 THEN LAG({N}, 12) {MONTHS} / LAG({N}) {MONTHS} ELSE 0 END":
        "CASE beside LAG over groups",
    f"100 * COALESCE({N} - LAG({N}) {MONTHS}, 0)": "COALESCE beside LAG over groups",
    f"1 + IFNULL({N} - LAG({N}) {MONTHS}, 0)": "IFNULL beside LAG over groups",
    f"{N} - COALESCE(LAG({N}) {MONTHS} + 5, 0)": "COALESCE beside LAG over groups",
    f"{N} - COALESCE(NULLIF(LAG({N}) {MONTHS}, 0), 0)": "COALESCE beside LAG over groups",
    f"{N} > LAG({N}) {MONTHS}": "a comparison beside LAG over groups",
    f"LAG({N}) {MONTHS} || ' %'": "|| beside LAG over groups",
    f"{N} + {' + '.join(f'LAG({N}, {back}) {MONTHS}' for back in range(1, 8))}":
        "a number of more than 6 released ones",
    f"RANK() OVER (ORDER BY {N})": "RANK over groups (OVER)",
}  # fmt: skip


def question(number, *more):
    """Return a question with a number beside a count, a mean and a share."""
    return (
        f"SELECT zone, month, {', '.join((f'{N} AS n', f'{FARE} AS a', *more, f'{number} AS x'))} FROM t GROUP BY 1, 2"
    )


def read(text):
    """Return what a text asks for."""
    return parse(text, table="t", schema=SCHEMA)


@pytest.mark.parametrize("number", READ)
def test_numbers_of_other_groups_are_read(number):
    """As analysts write them: of what is selected where it is, else of what joins it unseen; below and in WITH."""
    asked = read(question(number))
    (made,) = asked.aftermath.comparisons

    assert READ[number] == str(made)
    assert ("zone", "month", "n", "a", "x") == asked.columns
    assert {name for name, _ in made.cells} <= {output.name for output in asked.outputs}


def test_they_are_read_of_columns_below():
    """A SELECT above computes with columns of WITH by their names, under new names of keys, in several steps."""
    counts = f"WITH c AS (SELECT zone, month, {N} AS n FROM t GROUP BY 1, 2)"
    steps = f"{counts}, d AS (SELECT zone AS z, month AS m, n, LAG(n) {MONTHS} AS b FROM c)"
    asked = read(
        f"{steps} SELECT z, m, ROUND(100.0 * (n - b) / b, 1) AS growth FROM d WHERE m > 2 ORDER BY growth DESC"
    )
    (growth,) = asked.aftermath.comparisons

    where = "LAG(n, 1) OVER (PARTITION BY z ORDER BY m)"
    assert f"(100 * n - 100 * {where}) / ({where})" == str(growth)
    assert ("z", "m", "growth") == asked.columns
    assert ["n"] == [output.name for output in asked.outputs]
    assert "growth" == asked.aftermath.order[0].key.name
    assert ["growth"] == [name for name, _ in asked.aftermath.rounded]
    plain = read(f"{counts} SELECT *, n - LAG(n) {MONTHS} AS d FROM c")
    assert ("zone", "month", "n", "d") == plain.columns
    assert "n - LAG(n, 1) OVER (PARTITION BY zone ORDER BY month)" == str(plain.aftermath.comparisons[0])
    with pytest.raises(UnsupportedQuery, match="of an answer that was cut"):
        read(f"{counts} SELECT zone, month, n - LAG(n) {MONTHS} AS d FROM c WHERE n > 5")


BELOW = (
    f"SELECT zone, month, {N} AS n, LAG({N}) {MONTHS} AS b, SUM({N}) {MONTHS} AS r, {SHARE} AS s FROM t GROUP BY 1, 2"
)
CUT = {
    "WHERE": (BELOW, "WHERE n > 600"),
    "a WHERE of keys": (BELOW, "WHERE month > 1"),
    "HAVING": (f"{BELOW} HAVING n > 600", ""),
    "LIMIT": (f"{BELOW} ORDER BY n DESC LIMIT 2", ""),
}


@pytest.mark.parametrize("cut", CUT)
@pytest.mark.parametrize("number", [
    f"LAG(n) {MONTHS}", f"ROUND(LAG(n) {MONTHS}, 0)", f"SUM(n) {MONTHS}", "ROUND(n / SUM(n) OVER (), 1)",
    "n / SUM(n) OVER ()", "n * 1.0 / (SELECT SUM(n) FROM c)",
])  # fmt: skip
def test_no_number_of_several_groups_is_computed_of_a_cut_answer(number, cut):
    """SQL would compute it of the groups that are left: also where the same number of all groups stands below."""
    below, where = CUT[cut]
    with pytest.raises(UnsupportedQuery, match="of an answer that was cut"):
        read(f"WITH c AS ({below}) SELECT zone, month, {number} AS x FROM c {where}")
    assert ("zone", "month", "x") == read(f"WITH c AS ({BELOW}) SELECT zone, month, {number} AS x FROM c").columns
    assert ("b", "s") == read(f"WITH c AS ({below}) SELECT b, ROUND(s, 1) AS s FROM c {where}").columns


def test_the_same_neighbour_by_another_name_is_one_number():
    """ORDER BY an alias, other letters, or the column itself: the bound counts each number that is told once."""
    over = "OVER (ORDER BY {}, zone)"
    for other in ("MONTH", "m", "t.month"):
        one, two = (f"LAG({N}) {over.format(key)}" for key in ("month", other))
        (made,) = read(
            f"SELECT zone, month AS m, ({N} - {one}) / {two} AS x FROM t GROUP BY 1, 2"
        ).aftermath.comparisons
        assert 2 == len(made.cells)
        assert "(count - LAG(count, 1) OVER (ORDER BY m, zone)) / (LAG(count, 1) OVER (ORDER BY m, zone))" == str(made)
        (square,) = read(f"SELECT zone, month AS m, {one} * {two} AS x FROM t GROUP BY 1, 2").aftermath.comparisons
        assert 2 == len(square.cells)
        assert square == square.joined


CHANGE = f"WITH c AS (SELECT month, {N} - LAG({N}) OVER (ORDER BY month) AS d FROM t GROUP BY month)"


def test_names_of_numbers_that_are_not_shown_make_way(session):
    """What a question measures unseen has no name that an alias of a SELECT above could meet; each keeps its own."""
    for alias in ("count", "COUNT", "count_lower"):
        asked = read(f"{CHANGE} SELECT month, d AS {alias} FROM c WHERE d > 5 ORDER BY d")
        (made,) = asked.aftermath.comparisons
        assert ("month", alias, alias) == (*asked.columns, asked.aftermath.order[0].key.name)
        assert {name for name, _ in made.cells} == {output.name for output in asked.outputs}
        assert alias not in {output.name for output in asked.outputs}
    shares = f"WITH c AS (SELECT zone, 1 - {SHARE} AS d FROM t GROUP BY zone)"
    assert ("zone", "share") == read(f"{shares} SELECT zone, d AS share FROM c").columns
    means = read(f"SELECT zone, a AS n FROM (SELECT zone, {N} AS n, {FARE} AS a FROM t GROUP BY zone) WHERE n > 5")
    assert {"n": "AVG", "n_2": "COU"} == {one.name: str(one.aggregate)[:3] for one in means.outputs}
    assert {"n_2"} == set(means.aftermath.columns)
    text = f"{CHANGE} SELECT month, d - 5 AS count, d - 1005 AS e, d FROM c WHERE month > 1"
    answer = session.sql(text, keys={"month": [1, 13]}, absolute=10, cap="all")
    assert [5, 1005] == [pytest.approx((answer["d"].value - answer[name].value)[0]) for name in ("count", "e")]


@pytest.mark.parametrize("number", REFUSED)
def test_others_are_refused_by_name(number):
    """Windows without an order, of noise, of frames; arithmetic of which no interval is known."""
    with pytest.raises(UnsupportedQuery) as caught:
        read(question(number))

    assert REFUSED[number] == caught.value.construct
    assert caught.value.position is not None


def test_they_need_groups_of_one_kind():
    """Without GROUP BY there is no other group, and grouping sets have no one order."""
    with pytest.raises(UnsupportedQuery, match="it needs GROUP BY"):
        read(f"SELECT LAG({N}) OVER (ORDER BY month) FROM t")
    with pytest.raises(UnsupportedQuery, match="grouping sets of anything but"):
        read(f"SELECT zone, LAG({N}) OVER (ORDER BY zone) FROM t GROUP BY CUBE (zone)")


def test_having_order_and_qualify_repeat_them():
    """By the same text or the alias; what is not selected is refused."""
    change = f"{N} - LAG({N}) OVER (ORDER BY month)"
    text = f"SELECT month, {change} AS d FROM t GROUP BY month"
    for tail in (f"QUALIFY {change} > 5 ORDER BY {change}", "HAVING d > 5 ORDER BY 2"):
        after = read(f"{text} {tail}").aftermath
        assert ("d", {"d"}) == (after.order[0].key.name, set(after.columns))
    with pytest.raises(UnsupportedQuery, match="not selected"):
        read(f"{text} HAVING LEAD({N}) OVER (ORDER BY month) > 5")


ENDS = {
    "n, n_lower": (f"{N} AS n, {N} AS n_lower", "the name 'n_lower'"),
    "letters": (f"{N} AS n, SUM(CLAMP(fare, 0, 9)) AS N_Upper", "the name 'N_Upper'"),
    "estimate": (f"{N} AS n, {FARE} AS n_estimate", "the name 'n_estimate'"),
    "computed": (f"{N} AS n, 1 - {SHARE} AS d, {FARE} AS d_upper", "the name 'd_upper'"),
    "of computed": (f"{N} AS n, 1 - {SHARE} AS n_lower", "the name 'n_lower'"),
    "met": (f"{N} AS n, 1 - {SHARE} AS met", "the name 'met'"),
}


@pytest.mark.parametrize("case", ENDS)
def test_no_alias_is_the_end_of_another_interval(case):
    """HAVING n_lower > 5 has one meaning; below, and above in a SELECT that renames."""
    items, construct = ENDS[case]
    with pytest.raises(UnsupportedQuery) as caught:
        read(f"SELECT zone, {items} FROM t GROUP BY zone HAVING n_lower > 5")

    assert construct == caught.value.construct
    assert "n_lower" in read(f"SELECT zone, {N} AS n FROM t GROUP BY zone HAVING n_lower > 5").aftermath.columns
    with pytest.raises(UnsupportedQuery, match="the name 'n_lower'"):
        read(f"SELECT zone, n, a AS n_lower FROM (SELECT zone, {N} AS n, {FARE} AS a FROM t GROUP BY zone)")


@pytest.fixture(scope="module")
def session():
    """Open 40 rows in each month that is no multiple of three, ten times as many in the second year."""
    months = np.repeat(
        np.arange(1, 25), [0 if month % 3 == 0 else 40 if month <= 12 else 400 for month in range(1, 25)]
    )
    with Session(pa.table({"month": months}), name="t", budget=Budget(mu=200)) as opened:
        yield opened


def test_the_answer_is_that_of_its_cells(session):
    """A group without rows is a group; NULL where there is none; ends hold exactly what those of two cells leave."""
    change, growth = f"{N} - LAG({N}, 12) OVER (ORDER BY month)", f"{N} / LAG({N}, 12) OVER (ORDER BY month) - 1"
    text = (
        f"SELECT month, {N} AS n, LAG({N}) OVER (ORDER BY month) AS b, {change} AS d, {growth} AS g FROM t GROUP BY 1"
    )
    months = [*range(24, 0, -1)]
    answer = session.sql(text, keys={"month": months}, absolute=10, cap="all")
    n, b, d, g = (answer[name] for name in ("n", "b", "d", "g"))
    rows = answer.to_arrow().to_pylist()

    assert n.value[1:].tolist() == b.value[:-1].tolist()
    assert n.lower[1:].tolist() == b.lower[:-1].tolist()
    assert (n.value[:12] - n.value[12:]).tolist() == d.value[:12].tolist()
    assert (n.lower[:12] - n.upper[12:]).tolist() == d.lower[:12].tolist()
    assert (n.upper[:12] - n.lower[12:]).tolist() == d.upper[:12].tolist()
    known = n.lower[12:] > 0
    assert (n.upper[:12] / n.lower[12:] - 1)[known] == pytest.approx(g.upper[:12][known])
    assert np.isinf(g.upper[:12][~known]).all()
    assert (g.lower[:12] >= -1).all()
    assert [None] * 12 == [row["d"] for row in rows[12:]] == [row["d_lower"] for row in rows[12:]]
    assert {"n": 0.95, "b": 0.95, "d": 0.9, "g": 0.9} == {name: answer.confidence_of(name) for name in "nbdg"}
    assert answer.caption.startswith("n within 10")
    assert answer.caption.endswith("computed of them, with confidence: d 0.9, g 0.9")
    assert "d is computed of n as released: its interval holds where those of the 2 numbers do" in answer.about
    assert answer.met.all()
    assert json.loads(dumped(answer.to_dict()))


def test_it_costs_nothing_more_and_reads_what_is_shown(session):
    """Free where its cells are known; HAVING, ORDER BY, LIMIT and ROUND come after; all at once they hold together."""
    keys = {"keys": {"month": range(1, 25)}, "absolute": 10, "cap": "all"}
    paid = session.sql(f"SELECT month, {N} AS n FROM t GROUP BY month", **keys)
    change = f"ROUND({N} - LAG({N}, 12) OVER (ORDER BY month), -1)"
    text = f"SELECT month, {change} AS d FROM t GROUP BY month HAVING month <> 13 ORDER BY d DESC, month LIMIT 6"
    answer = session.sql(text, **keys)

    assert session.plan(text, **keys).free
    assert (0, 6) == (answer.paid.farthings, len(answer.keys))
    assert 13 not in answer.keys["month"].to_pylist()
    assert set((answer["d"].value % 10).tolist()) <= {0.0}
    own = dict(zip(paid.keys["month"].to_pylist(), paid.value.tolist(), strict=True))
    differences = [own[month] - own[month - 12] for month in answer.keys["month"].to_pylist()]
    assert np.abs(answer["d"].value - differences).max() <= 5
    assert "count as groups before and after" in answer.about
    together = session.sql(text, **{**keys, "absolute": 30}, simultaneous=True)
    assert 0.95 == together.confidence_of("d")
    sharper = answer.refine(absolute=8)
    assert ["month", "d", "d_lower", "d_upper"] == sharper.to_arrow().column_names[:4]


def test_targets_are_those_of_what_is_measured(session):
    """A target for a difference, and groups left out beside it, are refused before anything is paid, also in a plan."""
    text = f"SELECT month, {N} - LAG({N}) OVER (ORDER BY month) AS d FROM t GROUP BY month"
    keys, spent = {"keys": {"month": [1, 2]}}, session.spent
    for ask in (session.sql, session.plan):
        with pytest.raises(InvalidTarget, match="computed of released numbers"):
            ask(text, absolute={"d": 5}, **keys)
        with pytest.raises(InvalidTarget, match="left out where others are told of them"):
            ask(text, absolute=5, on_miss="drop", **keys)
    assert spent == session.spent
    assert session.sql(text, absolute={"count": 30}, **keys).caption.startswith("count within 30")


PAIR = (("n", None), ("n", Neighbour((OrderKey("m"),))))
FORMS = (
    (Polynomial.of({(0,): 1.0, (1,): -1.0}), Polynomial.number(1.0)),
    (Polynomial.of({(0,): 100.0, (1,): -100.0}), Polynomial.of({(1,): 1.0})),
    (Polynomial.of({(0,): 2.0, (): 1.0}), Polynomial.of({(0,): 1.0, (1,): 1.0})),
    (Polynomial.of({(0, 1): 1.0}), Polynomial.number(3.0)),
)
NUMBERS = st.floats(-50, 50).map(lambda x: round(x, 1))


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=2, max_size=2), st.sampled_from(FORMS), st.booleans())
def test_ends_hold_what_any_truths_between_the_ends_give(pairs, form, positive):
    """No truths within the intervals of two cells, zero or above where that is known, give a number outside."""
    low, high = (np.array([pick(pair) for pair in pairs]) for pick in (min, max))
    columns = {"n": Cells((low + high) / 2, low, high, np.ones(2, np.bool_))}
    made = ComputedNumber("x", PAIR, *form, (positive, positive))
    _, lower, upper, _ = made.told(columns, pa.table({"m": [1, 2]}))
    grids = [np.linspace(one, two, 5) for one, two in zip(low, high, strict=True)]
    for before, now in product(*grids):
        cells = np.array([[now], [before]])
        below = form[1].at(cells)[0]
        if abs(below) > 1e-9 and not (positive and min(before, now) < 0):
            truth = form[0].at(cells)[0] / below
            assert lower[1] - 1e-9 * max(1, abs(truth)) <= truth <= upper[1] + 1e-9 * max(1, abs(truth))


EMPTY = Cells(np.array([9.0, -3.0]), np.array([6.0, -5.0]), np.array([12.0, -1.0]), np.ones(2, np.bool_))
HOPELESS = {
    "n / LAG(n)": (Polynomial.of({(0,): 1.0}), (0.0, 0.0, np.inf)),
    "100 * (n - LAG(n)) / LAG(n)": (Polynomial.of({(0,): 100.0, (1,): -100.0}), (-100.0, -100.0, np.inf)),
    "-n / LAG(n)": (Polynomial.of({(0,): -1.0}), (0.0, -np.inf, 0.0)),
}


@pytest.mark.parametrize("number", HOPELESS)
def test_a_divisor_that_is_told_below_zero_leaves_all_that_can_be(number):
    """Its interval missed; no truth is known to be beyond all numbers, and none is told as that."""
    above, expected = HOPELESS[number]
    made = ComputedNumber("x", PAIR, above, Polynomial.of({(1,): 1.0}), (True, True))
    for end in (-1.0, 0.0):
        told = made.told(
            {"n": Cells(EMPTY.value, EMPTY.lower, np.array([12.0, end]), EMPTY.met)}, pa.table({"m": [2, 1]})
        )
        assert expected == tuple(float(one[0]) for one in told[:3])
        assert np.isnan(told[0][1])


@pytest.mark.parametrize("number", [
    f"{N} / LAG({N}, 1, 0) OVER (ORDER BY month)", f"{N} / COALESCE(LAG({N}) OVER (ORDER BY month), 0)",
    f"1 / ({N} * LAG({N}, 1, 0) OVER (ORDER BY month))", f"{N} / (3 + LAG({N}, 1, -3) OVER (ORDER BY month))",
])  # fmt: skip
def test_a_division_by_a_default_of_zero_is_null(session, number):
    """There is no number and no interval, or what COALESCE says; all groups that have one before them are told."""
    text, how = "SELECT month, {} AS g FROM t GROUP BY month", {"keys": {"month": [1, 2]}, "absolute": 10, "cap": "all"}
    first, second = session.sql(text.format(number), **how).to_arrow().to_pylist()
    assert [None] * 3 == [first[name] for name in ("g", "g_lower", "g_upper")]
    assert np.isfinite([second[name] for name in ("g", "g_lower", "g_upper")]).all()
    filled = session.sql(text.format(f"COALESCE({number}, 7)"), **how).to_arrow().to_pylist()[0]
    assert [7] * 3 == [filled[name] for name in ("g", "g_lower", "g_upper")]


PAIRS, ROUNDS = 800, 4


@pytest.mark.thorough
@pytest.mark.statistical
def test_differences_and_growth_are_covered_after_stopping():
    """Each misses at most as often as its two cells together may, though each cell stopped by what it showed.

    Power: a quarter of one cell's own interval misses the difference seven times in ten at least.
    """
    sizes = np.random.default_rng(7).integers(40, 4_000, 2 * PAIRS)
    keys = pa.table({"zone": np.repeat(np.arange(PAIRS), 2), "month": np.tile([1, 2], PAIRS)})
    rows = pa.table({name: np.repeat(keys[name].to_numpy(), sizes) for name in keys.column_names})
    before = f"LAG({N}) OVER (PARTITION BY zone ORDER BY month)"
    text = f"SELECT zone, month, {N} AS n, {N} - {before} AS d, {N} / {before} AS g FROM t GROUP BY 1, 2"
    missed = np.zeros(3)
    for _ in range(ROUNDS):
        with Session(rows, name="t", budget=Budget(mu=100)) as opened:
            answer = opened.sql(text, keys=keys, relative=0.05, absolute=20, cap="all", confidence=0.8)
        for place, (name, truth) in enumerate({"d": sizes[1::2] - sizes[::2], "g": sizes[1::2] / sizes[::2]}.items()):
            told = answer[name]
            missed[place] += ((told.lower[1::2] > truth) | (told.upper[1::2] < truth)).sum()
        n, d = answer["n"], answer["d"]
        half = ((n.upper - n.lower) / 2)[1::2]
        missed[2] += (np.abs(d.value[1::2] - (sizes[1::2] - sizes[::2])) > half / 4).sum()
    allowed = binom.isf(ALPHA / 2, PAIRS * ROUNDS, 1 - answer.confidence_of("d"))

    assert max(missed[:2]) <= allowed
    assert missed[2] > allowed
    assert binom.cdf(allowed, PAIRS * ROUNDS, 0.7) < 1e-9
