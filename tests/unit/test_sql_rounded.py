"""ROUND and its like around what is released: read, refused by place, and done to numbers with their intervals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from farthing import Budget, Session
from farthing.errors import UnsupportedQuery
from farthing.query import Schema, Type
from farthing.query.aftermath import Aftermath
from farthing.query.expressions import Call, Column, Compare, FunctionName, Literal, Operator
from farthing.query.rounding import WAYS, Rounding
from farthing.sql import parse

SCHEMA = Schema.of({"zone": Type.STRING, "fare": Type.FLOAT})
ROWS = pa.table({"zone": np.repeat(["centre", "port"], [900, 300]), "fare": np.linspace(0, 9, 1200)})
KEYS = {"zone": ["centre", "port"]}
MEAN = "AVG(CLAMP(fare, 0, 9))"
SHARE = "COUNT(*) / SUM(COUNT(*)) OVER ()"
SPELLINGS = {
    f"ROUND({MEAN}, 2)": (0.01, "ROUND"),
    f"ROUND({MEAN})": (1, "ROUND"),
    "ROUND(COUNT(*), -2)": (100, "ROUND"),
    f"TRUNC({MEAN}, 1)": (0.1, "TRUNC"),
    f"CEILING({MEAN})": (1, "CEIL"),
    f"CAST({MEAN} AS INTEGER)": (1, "ROUND"),
    f"{MEAN}::DECIMAL(10, 2)": (0.01, "ROUND"),
    f"ROUND({MEAN}::NUMERIC, 1)": (0.1, "ROUND"),
    f"ROUND(100.0 * {SHARE}, 1)": (0.1, "ROUND"),
    f"100 * ROUND({SHARE}, 3)": (0.1, "ROUND"),
    f"ROUND({MEAN}, 2) / 4": (0.0025, "ROUND"),
    f"ROUND(FLOOR({MEAN}), 2)": (1, "FLOOR"),
    f"ROUND({MEAN} - AVG(CLAMP(fare, 0, 5)), 1)": (0.1, "ROUND"),
}


@pytest.mark.parametrize("number", SPELLINGS)
def test_rounded_numbers_are_read(number):
    """As people and tools write them; the number itself is that without rounding, however it is scaled."""
    asked = parse(f"SELECT zone, {number} AS n FROM t GROUP BY zone", table="t", schema=SCHEMA)
    ((name, how),) = asked.aftermath.rounded

    assert name == "n"
    assert (pytest.approx(how.step), how.way) == SPELLINGS[number]
    assert "rounded: n to" in asked.notes[0]


@pytest.mark.parametrize(
    ("number", "construct"),
    [
        (f"ROUND({MEAN}, 1.5)", "ROUND to that many places"),
        (f"ROUND({MEAN}, COUNT(*))", "ROUND to that many places"),
        (f"ROUND({MEAN}, 16)", "ROUND to that many places"),
        (f"CEIL({MEAN}, 1)", "CEIL of an aggregate"),
        (f"ROUND({MEAN}) - ROUND(COUNT(*))", "ROUND of an aggregate"),
        (f"1 / ROUND({MEAN})", "ROUND of an aggregate"),
    ],
)
def test_other_rounding_is_refused(number, construct):
    """Places that are not written out, and rounding within arithmetic."""
    with pytest.raises(UnsupportedQuery) as caught:
        parse(f"SELECT zone, {number} AS n FROM t GROUP BY zone", table="t", schema=SCHEMA)

    assert construct == caught.value.construct


@example(1.1, 0.0, 0.0, 0.01, "CEIL")
@given(
    st.floats(-1e12, 1e12),
    st.floats(0, 1e6),
    st.floats(0, 1),
    st.sampled_from([1e-15, 1e-6, 0.01, 0.1, 0.25, 0.3, 1.0, 7.0, 100.0, 1e15]),
    st.sampled_from(sorted(WAYS)),
)
def test_rounded_intervals_hold_the_truth_and_what_rounding_makes_of_it(lower, width, place, step, way):
    """Ends go outward, by less than two steps; a truth within stays within, rounded or not; so does the value."""
    upper, how = lower + width, Rounding(step, way)
    truth = min(max(lower + place * width, lower), upper)
    value, low, high = (float(column[0]) for column in how.told(*(np.array([one]) for one in (truth, lower, upper))))

    assert lower - 2 * step <= low <= min(lower, truth)
    assert max(upper, truth) <= high <= upper + 2 * step
    assert low <= value <= high
    assert low <= float(how.rounded(np.array([truth]))[0]) <= high


def test_having_reads_the_number_and_its_alias_what_is_shown():
    """The aggregate's own text is the released number before rounding; the alias, and ROUND again, the rounded one."""
    text = f"SELECT zone, ROUND({MEAN}) AS m FROM t GROUP BY zone"
    named = {"keys": KEYS, "absolute": 0.4, "confidence": 0.999}
    with Session(ROWS, name="t", budget=Budget(mu=20)) as session:
        plain = session.sql(f"SELECT zone, {MEAN} AS m FROM t GROUP BY zone", **named)
        shown = session.sql(text, **named)
        first, rounded = float(plain.value[0]), float(shown.value[0])
        cut = f"HAVING {MEAN} >= {first!r} AND m = {rounded!r} AND ROUND({MEAN}) = m_upper - 1"
        kept = session.sql(f"{text} {cut} ORDER BY ROUND({MEAN}) DESC", **named)
        sharper = shown.refine(absolute=0.2)

    assert np.array_equal(np.round(plain.value), shown.value)
    assert np.array_equal(np.floor(plain.lower), shown.lower)
    assert np.array_equal(np.ceil(plain.upper), shown.upper)
    assert not shown.paid
    assert len(kept.value) <= 1
    assert np.array_equal(np.round(sharper.value), sharper.value)


def test_a_select_above_rounds_what_it_shows():
    """Under the same alias or another one, sorted by it, over a condition."""
    below = f"SELECT zone, 100 * {SHARE} AS pct FROM t GROUP BY zone"
    with Session(ROWS, name="t", budget=Budget(mu=20)) as session:
        for alias in ("pct", "p"):
            text = f"SELECT zone, ROUND(pct, 0) AS {alias} FROM ({below}) AS s WHERE pct > 1 ORDER BY {alias} DESC"
            answer = session.sql(text, keys=KEYS, absolute=5, confidence=0.999)
            assert (alias,) == answer.names
            assert ["centre", "port"] == answer.keys["zone"].to_pylist()
            assert np.array_equal(np.round(answer.value), answer.value)


@pytest.mark.parametrize(
    ("way", "numbers", "step", "shown"),
    [
        ("ROUND", [0.5, 1.5, 2.5, -0.5, -2.5, 0.49999999999999994, -0.2], 1.0, [1, 2, 3, -1, -3, 0, 0]),
        ("ROUND", [5, 15, 25, -5, -25, 4, -4], 10.0, [10, 20, 30, -10, -30, 0, 0]),
        ("ROUND", [2.0**52 + 1, -(2.0**53), np.inf, np.nan], 1.0, [2.0**52 + 1, -(2.0**53), np.inf, np.nan]),
        ("CEIL", [-0.5, 0.5], 1.0, [0, 1]),
        ("TRUNC", [-0.5, -1.5], 1.0, [0, -1]),
    ],
)
def test_halves_go_away_from_zero(way, numbers, step, shown):
    """As the language says for ROUND of rows, and without a zero that has a sign."""
    rounded = Rounding(step, way).rounded(np.array(numbers, np.float64))

    assert np.array_equal(shown, rounded, equal_nan=True)
    assert not np.signbit(rounded[rounded == 0]).any()


def test_halves_go_away_from_zero_in_having_and_order_by():
    """ROUND of an answer column rounds as ROUND around it does."""
    columns = {"n": np.array([0.5, 1.5, 2.5, -0.5, -2.5])}
    for number, shown in zip(columns["n"], Rounding(1.0).rounded(columns["n"]), strict=True):
        same = Compare(Call(FunctionName.ROUND, (Column("n"),)), Operator.EQ, Literal(float(shown)))
        assert number in columns["n"][Aftermath(same).arranged(columns, pa.table({"zone": list("abcde")}))]


@pytest.mark.parametrize(
    ("number", "numbers", "shown"),
    [
        ("CEIL(ROUND(COUNT(*) / 10))", [101, 105, 109], [10, 11, 11]),
        ("CEIL(ROUND(COUNT(*) / 10, 1))", [100.1, 100.6, 109], [10, 11, 11]),
        ("ROUND(ROUND(COUNT(*) / 10, 1))", [104.6, 104.4], [11, 10]),
        ("FLOOR(ROUND(COUNT(*), -1) / 4)", [96, 104], [25, 25]),
        ("ROUND(CAST(COUNT(*) / 10 AS DECIMAL(10, 1)), 2)", [104.6], [10.5]),
        ("10 * FLOOR(ROUND(COUNT(*) / 10, 1))", [99.6, 99.4], [100, 90]),
    ],
)
def test_roundings_of_roundings_are_done_in_order(number, numbers, shown):
    """From within; a finer one of multiples changes nothing; intervals hold what becomes of the truth."""
    asked = parse(f"SELECT zone, {number} AS n FROM t GROUP BY zone", table="t", schema=SCHEMA)
    ((_, how),) = asked.aftermath.rounded
    scaled = np.array(numbers) / (1 if number.startswith("10 ") else 4 if "/ 4" in number else 10)

    assert shown == pytest.approx(how.rounded(scaled).tolist())
    value, low, high = how.told(scaled, scaled - 0.3, scaled + 0.3)
    assert (value == how.rounded(scaled)).all()
    assert ((low <= scaled - 0.3) & (low <= value) & (value <= high) & (high >= scaled + 0.3)).all()


GROUPED = "FROM t GROUP BY zone"
BELOW = f"SELECT zone, COUNT(*) AS n {GROUPED}"
TENS = f"SELECT zone, ROUND(COUNT(*), -1) AS n {GROUPED}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"SELECT zone, ROUND(n, -3) AS r FROM ({BELOW}) AS b WHERE n < 600", ["port"]),
        (f"SELECT zone, ROUND(n, -3) AS r FROM ({BELOW}) AS b WHERE b.n_upper > 600", ["centre"]),
        (f"SELECT zone, ROUND(n, -4) AS r FROM ({BELOW}) AS b ORDER BY n LIMIT 1", ["port"]),
        (f"SELECT zone, ROUND(n, -4) AS r FROM ({BELOW}) AS b ORDER BY r LIMIT 1", ["centre"]),
        (f"SELECT zone, ROUND(n, -4) AS n FROM ({BELOW}) AS b ORDER BY b.n LIMIT 1", ["port"]),
        (f"SELECT zone, ROUND(n, -4) AS n FROM ({BELOW}) AS b ORDER BY n LIMIT 1", ["centre"]),
        (f"SELECT zone, ROUND(n, -4) AS r FROM ({BELOW} HAVING n > 600) AS b", ["centre"]),
        (f"SELECT zone, ROUND(n, -4) AS r FROM ({BELOW} ORDER BY n LIMIT 1) AS b", ["port"]),
        (f"SELECT zone, ROUND(n, -2) AS r, ROUND(n, -1) AS s FROM ({BELOW}) AS b WHERE n < 600", ["port"]),
        (f"SELECT zone, ROUND(n, -3) AS r FROM ({TENS} HAVING COUNT(*) < 600) AS b WHERE n < 400", ["port"]),
        (
            f"SELECT zone, ROUND(COUNT(*), -3) AS n, -COUNT(*) AS n_unrounded {GROUPED} ORDER BY COUNT(*) LIMIT 1",
            ["port"],
        ),
    ],
)
def test_what_is_shown_rounded_is_compared_as_it_was(text, shown):
    """Names below a SELECT are the numbers there, whatever the SELECT rounds; its own aliases are what it shows."""
    with Session(ROWS, name="t", budget=Budget(mu=20)) as session:
        assert shown == session.sql(text, keys=KEYS, absolute=20, confidence=0.999999).keys["zone"].to_pylist()


def test_a_column_that_is_rounded_twice_is_not_compared_in_between():
    """Under its own name there are no words for the number that was rounded once."""
    below = f"SELECT zone, ROUND({MEAN}, 1) AS m FROM t GROUP BY zone"
    with pytest.raises(UnsupportedQuery, match="rounded twice"):
        parse(f"SELECT zone, ROUND(m) AS m FROM ({below}) AS b WHERE m > 3", table="t", schema=SCHEMA)
    for inner in (below, f"SELECT zone, ROUND(m, 1) AS m FROM (SELECT zone, {MEAN} AS m {GROUPED}) AS a"):
        for name in ("m", "r"):
            text = f"SELECT zone, ROUND(m) AS {name} FROM ({inner}) AS b ORDER BY {name}_lower"
            asked = parse(text, table="t", schema=SCHEMA)
            assert Rounding(1.0, "ROUND", Rounding(0.1)) == dict(asked.aftermath.rounded)[name]
    with pytest.raises(UnsupportedQuery, match="unknown column"):
        parse(f"SELECT zone AS z, m FROM ({below}) AS b ORDER BY z_lower", table="t", schema=SCHEMA)
    asked = parse(f"SELECT zone, ROUND(m) AS m FROM ({below}) AS b ORDER BY m", table="t", schema=SCHEMA)

    assert Rounding(1.0, "ROUND", Rounding(0.1)) == dict(asked.aftermath.rounded)["m"]


@pytest.mark.parametrize("name", ["n before rounding", "N Before Rounding"])
def test_no_name_is_taken_for_a_number_before_rounding(name):
    """Neither of a number nor of a key, nor above a question."""
    for text in (
        f'SELECT zone, ROUND(COUNT(*), -1) AS n, -COUNT(*) AS "{name}" {GROUPED}',
        f'SELECT zone AS "{name}", ROUND(COUNT(*), -1) AS n {GROUPED}',
        f'SELECT zone, n AS "{name}" FROM ({BELOW}) AS b',
    ):
        with pytest.raises(UnsupportedQuery, match="ends in 'before rounding'"):
            parse(text, table="t", schema=SCHEMA)
