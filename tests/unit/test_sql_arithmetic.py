"""Arithmetic with aggregates, sums of 0 and 1, and ranges that the text gives: one aggregate, or a formula."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import farthing
from farthing.accuracy.forms import from_aggregates
from farthing.engines import open_table
from farthing.engines.memory.engine import MemoryEngine
from farthing.errors import FarthingError, UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Query, Schema, Type
from farthing.query.aggregates import Count, CountUnits, Formula, Mean, Ratio, Sum
from farthing.query.measures import Rows, Total, Units
from farthing.query.pairs import Pair
from farthing.sql import parse

SCHEMA = Schema.of({"u": Type.STRING, "a": Type.INTEGER, "f": Type.FLOAT, "on": Type.BOOLEAN})
ROWS = [
    {"u": u, "a": a, "f": f, "on": on}
    for u, a, f, on in [
        ("x", 1, 2.5, True), ("x", 4, math.nan, False), ("y", None, 1.0, None), ("y", 7, None, True),
        ("z", -3, -8.0, True), ("z", 2, 30.0, False), ("w", 9, 0.25, None),
    ]
]  # fmt: skip
TABLE = pa.table({
    "u": [row["u"] for row in ROWS], "a": pa.array([row["a"] for row in ROWS], pa.int64()),
    "f": pa.array([row["f"] for row in ROWS], pa.float64()), "on": pa.array([row["on"] for row in ROWS], pa.bool_()),
})  # fmt: skip
A, F = "SUM(CLAMP(a, 0, 5))", "SUM(CLAMP(f, -2, 10))"
TRUTHS = {"COUNT(*)": 7, "COUNT(a)": 6, "COUNT(f)": 5, 'COUNT("on")': 5, A: 17, F: 11.75}  # fmt: skip


def read(text, bounds=None):
    """Return the aggregates of a question."""
    return [one.aggregate for one in parse(text, table="t", schema=SCHEMA, unit="u", bounds=bounds).outputs]


def exact(aggregate, engine):
    """Return an aggregate of an engine's rows without noise."""
    outputs = parse("SELECT COUNT(*) FROM t", table="t", schema=SCHEMA).outputs
    query = Query("t", (), None, None, tuple(type(outputs[0])("n", aggregate) for _ in "1"), PrivacyUnit("u"),
                  Bounds(100, 100))  # fmt: skip
    found = dict(zip(query.measures, engine.measure(query, hash_key=1)[:, 0].tolist(), strict=True))

    def number(measure):
        return found[measure] * (measure.step if isinstance(measure, Total) else 1)

    match aggregate:
        case Mean():
            rows, total = aggregate.measures
            return total.centre + number(total) / number(rows)
        case Ratio(top, bottom):
            return number(top.measures[0]) / number(bottom.measures[0])
        case _:
            return number(aggregate.measures[0])


SUMS = [
    ("COUNT(*) - COUNT(a)", lambda t: t["COUNT(*)"] - t["COUNT(a)"]),
    ("2 * COUNT(f) - COUNT(*) / 4", lambda t: 2 * t["COUNT(f)"] - t["COUNT(*)"] / 4),
    (f"{A} + {F}", lambda t: t[A] + t[F]),
    (f"-({A} - 3 * {F})", lambda t: -(t[A] - 3 * t[F])),
    (f"COALESCE({A}, 0) * 1.5", lambda t: t[A] * 1.5),
    ("COUNT(*) * 1.0", lambda t: t["COUNT(*)"]),
    ("100.0 * COUNT(a) / COUNT(*)", lambda t: 100 * t["COUNT(a)"] / t["COUNT(*)"]),
    ("COUNT(f) / COUNT(*) * 100", lambda t: 100 * t["COUNT(f)"] / t["COUNT(*)"]),
    ("1 - COUNT(f) / COUNT(*)", lambda t: 1 - t["COUNT(f)"] / t["COUNT(*)"]),
    (f"({A} - {F}) / COUNT(*)", lambda t: (t[A] - t[F]) / t["COUNT(*)"]),
    (f"{F} / NULLIF({A}, 0)", lambda t: t[F] / t[A]),
    (f"CAST({F} AS DOUBLE) / NULLIF({A}, 0) - 2", lambda t: t[F] / t[A] - 2),
    (f"{F} / COUNT(a) - COUNT(f) / COUNT(a)", lambda t: (t[F] - t["COUNT(f)"]) / t["COUNT(a)"]),
    (f"{F} / (COUNT(a) + COUNT(*))", lambda t: t[F] / (t["COUNT(a)"] + t["COUNT(*)"])),
    ("AVG(CLAMP(a, 0, 5)) * 60 - 32", lambda t: t[A] / t["COUNT(a)"] * 60 - 32),
    ("SUM(1)", lambda t: t["COUNT(*)"]),
    ("SUM(3)", lambda t: 3 * t["COUNT(*)"]),
    ('SUM("on")', lambda _: 3),
    ('AVG("on")', lambda _: 3 / 5),
    ('SUM(CASE WHEN "on" THEN 1 ELSE 0 END)', lambda _: 3),
    ("SUM(CASE WHEN a > 3 THEN 1 WHEN a < 0 THEN 0 WHEN a = 2 THEN 1 END)", lambda _: 4),
    ("SUM(IF(a > 3, 1, 0)) FILTER (WHERE f < 5)", lambda _: 1),
    ("SUM((a > 3)::int) * 100.0 / COUNT(*)", lambda t: 300 / t["COUNT(*)"]),
    ("AVG(CASE WHEN a > 3 THEN 1.0 ELSE 0 END)", lambda t: 3 / t["COUNT(*)"]),
    ("SUM(CASE WHEN a > 3 THEN CLAMP(f, 0, 2) ELSE -1 END)", lambda _: -4 + 0.25 + 2),
]  # fmt: skip


@pytest.mark.parametrize(("text", "truth"), SUMS)
def test_arithmetic_is_one_aggregate_of_the_same_truth(text, truth):
    """Without noise both engines give what the exact aggregates give, NULL and NaN left out as in each of them."""
    (aggregate,) = read(f"SELECT {text} AS n FROM t")

    assert isinstance(aggregate, Count | Sum | Mean | Ratio)
    for engine in (MemoryEngine(ROWS, SCHEMA, "t"), open_table(TABLE, "t")):
        assert truth(TRUTHS) == pytest.approx(exact(aggregate, engine), abs=2e-4), str(aggregate)


def test_sums_of_ones_are_counts():
    """SUM(1) is COUNT(*), and a sum of 1s and 0s the count of its condition, which needs no bounds."""
    ones = ["CASE WHEN a > 3 THEN 1 ELSE 0 END", "IF(a > 3, 1, 0)", "a > 3", "CAST(a > 3 AS INTEGER)"]
    found = [read(f"SELECT SUM({one}) FROM t") for one in ones]

    assert [read("SELECT COUNT_IF(a > 3) FROM t")] * 4 == found
    assert [Count()] == read("SELECT SUM(1) FROM t")
    assert read("SELECT COUNT_IF(a > 3) / COUNT(*) FROM t") == read(f"SELECT SUM({ones[0]}) / COUNT(*) FROM t")


RANGES = [
    ("CASE WHEN a > 3 THEN 5 ELSE -2.5 END", (-2.5, 5)),
    ("CASE a WHEN 1 THEN 4 END", (0, 4)),
    ("LEAST(GREATEST(f, 1), 9)", (1, 9)),
    ("GREATEST(1, LEAST(9, f))", (1, 9)),
    ("2 * CLAMP(f, 0, 3) - 1", (-1, 5)),
    ("ABS(CLAMP(f, -4, 3))", (0, 4)),
    ("COALESCE(CLAMP(f, 2, 3), 0)", (0, 3)),
    ("NULLIF(CLAMP(f, 2, 3), 3) + CASE WHEN a > 1 THEN CLAMP(a, 1, 2) ELSE 7 END", (3, 10)),
    ("7", (0, 7)),
    ("-7", (-7, 0)),
]


@pytest.mark.parametrize(("text", "found"), RANGES)
def test_the_text_gives_ranges(text, found):
    """Constants, clamps and choices among them bound a value, before bounds that are passed beside the text."""
    (total,) = read(f"SELECT SUM({text}) FROM t", Bounds(lower=-1000, upper=1000))

    assert found == (total.lower, total.upper)


@pytest.mark.parametrize("text", ["CASE WHEN a > 3 THEN f ELSE 0 END", "LEAST(f, 3)", "GREATEST(f, a, 0)", "f * 0"])
def test_what_the_text_does_not_bound_needs_bounds(text):
    """A value that one row could make large says so."""
    with pytest.raises(FarthingError, match="without bounds"):
        read(f"SELECT SUM({text}) FROM t")


M, V = (lambda t: t[A] / t["COUNT(a)"]), (lambda t: t[F] / t["COUNT(f)"])
Q, R = (lambda t: t["COUNT(a)"] / t["COUNT(*)"]), (lambda t: t["COUNT(f)"] / t["COUNT(a)"])
ONE, OTHER = np.array([1, 0, 2, 5]), np.array([2.5, -2, 10, 0.25])
LINE, AVERAGE = "(CLAMP(f, -2, 10), CLAMP(a, 0, 5))", "AVG(CLAMP(a, 0, 5))"
FORMULAS = [
    (f"{AVERAGE} - AVG(CLAMP(f, -2, 10))", lambda t: M(t) - V(t)),
    ("COUNT(*) + 1", lambda t: t["COUNT(*)"] + 1),
    ("-(3 + COUNT(*) * COUNT(a))", lambda t: -3 - t["COUNT(*)"] * t["COUNT(a)"]),
    ("2 * COUNT(DISTINCT u)", lambda _: 8),
    (f"COUNT(*) / {AVERAGE}", lambda t: t["COUNT(*)"] / M(t)),
    (f"AVG(CLAMP(f, -2, 10)) / NULLIF({AVERAGE}, 0) - 1", lambda t: V(t) / M(t) - 1),
    ("COUNT(a) / COUNT(*) + COUNT(f) / COUNT(a)", lambda t: Q(t) + R(t)),
    (f"(COUNT(f) - COUNT(a)) / COUNT(a) * {AVERAGE}", lambda t: (R(t) - 1) * M(t)),
    (f"100.0 * ({AVERAGE} - AVG(CLAMP(f, -2, 10))) / 4", lambda t: 25 * (M(t) - V(t))),
    ("2 * STDDEV_POP(CLAMP(a, 0, 5))", lambda _: 2 * np.std([1, 4, 5, 0, 2, 5])),
    (f"COVAR_POP{LINE}", lambda _: np.cov(ONE, OTHER, ddof=0)[0, 1]),
    (f"COVAR_SAMP{LINE}", lambda _: np.cov(ONE, OTHER)[0, 1]),
    (f"CORR{LINE}", lambda _: np.corrcoef(ONE, OTHER)[0, 1]),
    (f"REGR_SLOPE{LINE}", lambda _: np.polyfit(ONE, OTHER, 1)[0]),
    (f"REGR_INTERCEPT{LINE} + 1", lambda _: 1 + np.polyfit(ONE, OTHER, 1)[1]),
    (f"REGR_SLOPE{LINE} FILTER (WHERE a < 5)", lambda _: np.polyfit(ONE[:3], OTHER[:3], 1)[0]),
]


@pytest.mark.parametrize(("text", "made"), FORMULAS)
def test_a_formula_of_several_aggregates_has_the_same_truth(text, made):
    """Without noise both engines give what SQL gives, computed from the exact aggregates."""
    (aggregate,) = read(f"SELECT {text} AS n FROM t")
    outputs = parse("SELECT COUNT(*) FROM t", table="t", schema=SCHEMA).outputs
    query = Query("t", (), None, None, (type(outputs[0])("n", aggregate),), PrivacyUnit("u"), Bounds(100, 100))
    (statistic,) = from_aggregates(query.outputs, query.measures)
    steps = np.array([[measure.step] for measure in query.measures])

    assert isinstance(aggregate, Formula | Pair)
    for engine in (MemoryEngine(ROWS, SCHEMA, "t"), open_table(TABLE, "t")):
        lanes = engine.measure(query, hash_key=1) * steps
        assert made(TRUTHS) == pytest.approx(float(statistic.estimate(lanes)[0]), rel=1e-3, abs=1e-3), str(aggregate)


REFUSED = [
    ("COUNT(*) / 0", "arithmetic with an aggregate"),
    ("1 / COUNT(*)", "division by an aggregate"),
    ("COUNT(*) / AVG(CLAMP(f, -1, 9))", "division by an aggregate"),
    ("AVG(CLAMP(f, 0, 9)) + MEDIAN(CLAMP(f, 0, 9))", "arithmetic"),
    ("2 + 2 * MIN(CLAMP(f, 0, 9)) - COUNT(*)", "arithmetic"),
    ("0 * AVG(CLAMP(f, 0, 9))", "arithmetic with an aggregate"),
    ("COUNT(*) % 2", "arithmetic with an aggregate"),
    ("ROUND(AVG(CLAMP(f, 0, 9)), 2) - ROUND(COUNT(*))", "ROUND of an aggregate"),
    ("COUNT(*) - COUNT(*)", "a number that no row changes: 0"),
    ("3 * COUNT(*) / COUNT(*) + 1", "a number that no row changes: 4"),
    ("AVG(CLAMP(f, 0, 9)) - AVG(CLAMP(f, 0, 9))", "a number that no row changes: 0"),
    ("COALESCE(COUNT(*), 5)", "COALESCE of an aggregate"),
    ("CAST(COUNT(*) AS VARCHAR)", "CAST of an aggregate"),
    ("COUNT(*) * 1e308 * 1e308", "number out of range"),
    ("COUNT(*, contribution_bounds_per_group => (0, 2)) - COUNT(a, contribution_bounds_per_group => (0, 3))",
     "two bounds on rows"),
    ("CASE WHEN COUNT(*) > 3 THEN 1 END", "arithmetic with an aggregate"),
    ("MAX(a > 3)", "MAX of a boolean"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "construct"), REFUSED)
def test_other_arithmetic_is_refused_by_name(text, construct):
    """What has no interval of its own is refused; the refusal says what to write."""
    with pytest.raises(UnsupportedQuery) as caught:
        read(f"SELECT {text} AS n FROM t")

    assert construct == caught.value.construct
    assert caught.value.next_step
    assert caught.value.position


def test_counts_of_units_may_be_below():
    """What a unit adds on average is a ratio, scaled or not."""
    (plain,), (cents,) = (read(f"SELECT {text} / COUNT(DISTINCT u) FROM t") for text in (A, f"100 * {A}"))

    assert CountUnits() == plain.bottom == cents.bottom
    assert (Rows, Units) == (type(Count().measures[0]), type(CountUnits().measures[0]))
    assert (plain.top.upper, cents.top.upper) == (5, 500)


def test_arithmetic_is_answered_in_its_own_units_and_read_by_having():
    """A target of 6 is 6 percentage points; HAVING and ORDER BY may name the arithmetic again."""
    table = pa.table({"g": ["x", "y"] * 3000, "a": ([1] * 900 + [None] * 300) * 5})
    text = (
        "SELECT g, 100.0 * COUNT(a) / COUNT(*) AS pct FROM t GROUP BY g "
        "HAVING 100.0 * COUNT(a) / COUNT(*) > 1 ORDER BY 100.0 * COUNT(a) / COUNT(*) DESC"
    )
    with farthing.Session(table, budget=farthing.Budget(epsilon=5, delta=1e-6), name="t") as session:
        answer = session.sql(text, keys={"g": ["x", "y"]}, absolute=6)

    assert answer.met.all()
    assert np.all(np.abs(answer.value - 75) < 12)
    assert np.all(answer.upper - answer.lower <= 12.001)


@pytest.mark.thorough
def test_a_formula_is_answered_sharpened_and_read_by_having():
    """By group: within its target, refined for the difference, free when asked again, and named again by HAVING."""
    rng = np.random.default_rng(4)
    one = rng.uniform(0, 10, 20_000)
    table = pa.table({"g": ["x", "y"] * 10_000, "a": one, "b": one / 2 + rng.uniform(0, 5, 20_000)})
    apart = "AVG(CLAMP(a, 0, 10)) - AVG(CLAMP(b, 0, 10))"
    text = (
        f"SELECT g, {apart} AS d, CORR(CLAMP(a, 0, 10), CLAMP(b, 0, 10)) AS r FROM t GROUP BY g HAVING {apart} > -5 "
        "ORDER BY CORR(CLAMP(a, 0, 10), CLAMP(b, 0, 10)) DESC"
    )
    with farthing.Session(table, budget=farthing.Budget(epsilon=9, delta=1e-6), name="t") as session:
        how = {"keys": {"g": ["x", "y"]}, "cap": "all"}
        plan = session.sql(f"EXPLAIN {text}", absolute={"d": 0.5, "r": 0.2}, **how)
        answer = session.sql(text, absolute={"d": 0.5, "r": 0.2}, **how)
        spent = session.spent
        sharper = answer.refine(absolute={"d": 0.2, "r": 0.1})
        again = session.sql(text, absolute={"d": 0.3, "r": 0.15}, **how)
        total = session.spent

    assert plan.worst_price >= answer.paid
    assert total > spent
    assert not again.paid
    for found, width, near in ((answer, 0.5, 0.2), (sharper, 0.2, 0.1)):
        d, r = (found.to_arrow()[name].to_numpy() for name in ("d", "r"))
        assert np.all(np.abs(d) <= 2 * width)
        assert np.all(np.abs(r - 0.7) <= 2 * near)
