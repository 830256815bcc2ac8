"""Aggregates, groups and names in SQL: every spelling, where bounds come from, and what answer columns are called."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from farthing.errors import InvalidBounds, UnsupportedQuery
from farthing.query import Bounds, Schema, Type
from farthing.query.aggregates import Count, CountUnits, Mean, NamedAggregate, Quantile, Sum, Variance
from farthing.query.expressions import Call, Case, Column, Compare, FunctionName, Literal, Operator
from farthing.query.pairs import Pair
from farthing.sql import parse, parse_scalar
from farthing.sql.aggregates import NAMES

SCHEMA = Schema.of(
    {
        "rider": Type.STRING,
        "zone": Type.STRING,
        "fare": Type.FLOAT,
        "tip": Type.DECIMAL,
        "seats": Type.INTEGER,
        "paid": Type.BOOLEAN,
        "day": Type.DATE,
        "at": Type.TIMESTAMP,
        "blob": Type.OTHER,
    }
)
FARE, TIP, SEATS = Column("fare"), Column("tip"), Column("seats")
HALF = Call(FunctionName.DIVIDE, (SEATS, Literal(2)))


def read(text, unit="rider", bounds=None):
    """Parse a question over the rides."""
    return parse(text, table="rides", schema=SCHEMA, unit=unit, bounds=bounds)


def one(aggregate, **how):
    """Return the only output of a SELECT of one aggregate."""
    (output,) = read(f"SELECT {aggregate} FROM rides", **how).outputs
    return output


CLAMPED, TIPS = "CLAMP(fare, 0, 50)", "CLAMP(tip, 0, 9)"
SPELLINGS = [
    ("COUNT(*)", "count", Count()),
    ("COUNT(fare)", "count_fare", Count(FARE)),
    ("COUNT(blob)", "count_blob", Count(Column("blob"))),
    ("COUNT(fare * 2)", "count", Count(Call(FunctionName.MULTIPLY, (FARE, Literal(2))))),
    ("COUNT(DISTINCT rider)", "count_distinct_rider", CountUnits()),
    ("APPROX_COUNT_DISTINCT(rider)", "count_distinct_rider", CountUnits()),
    (f"SUM({CLAMPED})", "sum_fare", Sum(FARE, 0.0, 50.0)),
    ("SUM(CLAMP(tip, -1.5, 1e2))", "sum_tip", Sum(Column("tip"), -1.5, 100.0)),
    (f"AVG({CLAMPED})", "avg_fare", Mean(FARE, 0.0, 50.0)),
    ("AVG(fare, contribution_bounds_per_group => (0, 50))", "avg_fare", Mean(FARE, 0.0, 50.0)),
    ("AVG(fare, contribution_bounds_per_row => (-1, 50))", "avg_fare", Mean(FARE, -1.0, 50.0)),
    (f"VAR_POP({CLAMPED})", "var_pop_fare", Variance(FARE, 0.0, 50.0)),
    (f"VAR_SAMP({CLAMPED})", "var_samp_fare", Variance(FARE, 0.0, 50.0, sample=True)),
    (f"VARIANCE({CLAMPED})", "variance_fare", Variance(FARE, 0.0, 50.0, sample=True)),
    (f"STDDEV({CLAMPED})", "stddev_fare", Variance(FARE, 0.0, 50.0, sample=True, root=True)),
    (f"STDDEV_SAMP({CLAMPED})", "stddev_samp_fare", Variance(FARE, 0.0, 50.0, sample=True, root=True)),
    (f"STDDEV_POP({CLAMPED})", "stddev_pop_fare", Variance(FARE, 0.0, 50.0, root=True)),
    (f"CORR({CLAMPED}, {TIPS})", "corr", Pair("correlation", FARE, TIP, (0.0, 50.0), (0.0, 9.0))),
    (f"COVAR_POP({CLAMPED}, {TIPS})", "covar_pop", Pair("covariance", FARE, TIP, (0.0, 50.0), (0.0, 9.0))),
    (
        f"COVAR_SAMP({TIPS}, {CLAMPED})",
        "covar_samp",
        Pair("covariance", TIP, FARE, (0.0, 9.0), (0.0, 50.0), sample=True),
    ),
    (f"REGR_SLOPE({TIPS}, {CLAMPED})", "regr_slope", Pair("slope", FARE, TIP, (0.0, 50.0), (0.0, 9.0))),
    (f"REGR_INTERCEPT({TIPS}, {CLAMPED})", "regr_intercept", Pair("intercept", FARE, TIP, (0.0, 50.0), (0.0, 9.0))),
    (f"MIN({CLAMPED})", "min_fare", Quantile(FARE, 0.0, 0.0, 50.0)),
    (f"MAX({CLAMPED})", "max_fare", Quantile(FARE, 1.0, 0.0, 50.0)),
    (f"median({CLAMPED})", "median_fare", Quantile(FARE, 0.5, 0.0, 50.0)),
    (f"QUANTILE({CLAMPED}, 0.9)", "quantile_fare", Quantile(FARE, 0.9, 0.0, 50.0)),
    (f"quantile_cont({CLAMPED}, .25)", "quantile_cont_fare", Quantile(FARE, 0.25, 0.0, 50.0)),
    (f"APPROX_QUANTILE({CLAMPED}, 1)", "approx_quantile_fare", Quantile(FARE, 1.0, 0.0, 50.0)),
    (f"PERCENTILE_CONT({CLAMPED}, 0.9)", "percentile_cont_fare", Quantile(FARE, 0.9, 0.0, 50.0)),
    ("MEDIAN(CLAMP(seats, 1, 9))", "median_seats", Quantile(SEATS, 0.5, 1.0, 9.0, 4, whole=True)),
    ("MAX(CLAMP(seats, 1, 8))", "max_seats", Quantile(SEATS, 1.0, 1.0, 8.0, 3, whole=True)),
    ("MIN(CLAMP(seats, 0.5, 9))", "min_seats", Quantile(SEATS, 0.0, 0.5, 9.0)),
    ("MEDIAN(CLAMP(seats, 0, 65535))", "median_seats", Quantile(SEATS, 0.5, 0.0, 65535.0, 16, whole=True)),
    ("MEDIAN(CLAMP(seats, 0, 65536))", "median_seats", Quantile(SEATS, 0.5, 0.0, 65536.0)),
    ("QUANTILE(CLAMP(seats / 2, 0, 9), .5)", "quantile", Quantile(HALF, 0.5, 0.0, 9.0)),
    (
        f"PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {CLAMPED})",
        "percentile_cont_fare",
        Quantile(FARE, 0.9, 0.0, 50.0),
    ),
    (
        f"PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY {CLAMPED} DESC)",
        "percentile_cont_fare",
        Quantile(FARE, 0.75, 0.0, 50.0),
    ),
]


@pytest.mark.parametrize(("text", "name", "aggregate"), SPELLINGS)
def test_every_spelling_of_an_aggregate(text, name, aggregate):
    """Each aggregate is read in the spellings of the three dialects, and named by function and column."""
    assert NamedAggregate(name, aggregate) == one(text)


def test_every_aggregate_is_on_the_page_of_sql():
    """Whoever adds an aggregate says on the page what it is: each name that is understood is there."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "sql.md").read_text(encoding="utf-8")

    assert set() == {name for name in NAMES if not re.search(rf"`{name}\b", page)}


@pytest.mark.parametrize("aggregate", ["MEDIAN", "SUM", "AVG"])
def test_a_bound_of_minus_zero_is_zero(aggregate):
    """A question is not paid twice for how its bound is written."""
    found = {one(f"{aggregate}(CLAMP(fare, {zero}, 9))").aggregate.canonical() for zero in ("0", "-0.0", "0.0")}

    assert 1 == len(found)


def test_a_condition_of_one_aggregate_is_folded_into_its_value():
    """FILTER leaves the value out where the condition is not TRUE; COUNT(*) counts ones."""
    dear = Compare(FARE, Operator.GT, Literal(9))

    assert Count(Case(((dear, Literal(1)),))) == one("COUNT(*) FILTER (WHERE fare > 9)").aggregate
    assert Count(Case(((dear, Literal(1)),))) == one("COUNT_IF(fare > 9)").aggregate
    assert Sum(Case(((dear, FARE),)), 0.0, 50.0) == one(f"SUM({CLAMPED}) FILTER (WHERE fare > 9)").aggregate
    assert (
        Quantile(Case(((dear, FARE),)), 0.5, 0.0, 50.0)
        == one(f"PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY {CLAMPED}) FILTER (WHERE fare > 9)").aggregate
    )


@pytest.mark.parametrize(
    "text",
    [
        "LEAST(GREATEST(fare, 0), 50)",
        "least(50, greatest(0, fare))",
        "GREATEST(LEAST(fare, 50), 0)",
        "GREATEST(0, LEAST(50, fare))",
    ],
)
def test_bounds_of_least_and_greatest(text):
    """A value that is written within bounds has them, and stays as written: LEAST and GREATEST skip NULLs."""
    aggregate = one(f"SUM({text})").aggregate

    assert (0.0, 50.0) == (aggregate.lower, aggregate.upper)
    assert parse_scalar(text, SCHEMA) == aggregate.value


def test_bounds_of_the_session_are_the_last_resort():
    """What the text says comes first; then what was passed beside it; then a refusal that says how."""
    given = Bounds(lower=-5, upper=5)

    assert Sum(FARE, -5, 5) == one("SUM(fare)", bounds=given).aggregate
    assert Sum(FARE, 0.0, 50.0) == one(f"SUM({CLAMPED})", bounds=given).aggregate
    with pytest.raises(InvalidBounds, match=r"SUM\(CLAMP\(fare, 0, 200\)\).*lower=0, upper=200"):
        one("SUM(fare)")


@pytest.mark.parametrize(
    "text",
    [
        "SUM(CLAMP(fare, 9, 1))",
        "AVG(CLAMP(fare, 1, 1))",
        "VAR_POP(fare, contribution_bounds_per_group => (3, 2))",
        "QUANTILE(CLAMP(fare, 0, 9), 1.5)",
        "PERCENTILE_CONT(-0.1) WITHIN GROUP (ORDER BY CLAMP(fare, 0, 9))",
        "MEDIAN(CLAMP(fare, 5, 2))",
    ],
)
def test_bounds_that_are_no_range_say_where(text):
    """Bounds with lower >= upper and quantiles outside of [0, 1] are refused with their place."""
    with pytest.raises(InvalidBounds, match="line 1, column 8") as caught:
        one(text)

    assert caught.value.rule
    assert caught.value.next_step


REFUSED = [
    ("COUNT(DISTINCT zone, rider)", "COUNT(DISTINCT ...) of several values"),
    ("COUNT(DISTINCT rider) FILTER (WHERE paid)", "FILTER of COUNT(DISTINCT unit)"),
    ("COUNT(fare, tip)", "COUNT with 2 arguments"),
    ("COUNT_IF()", "COUNT_IF with 0 arguments"),
    ("SUM()", "SUM with 0 arguments"),
    ("MAX(paid)", "MAX of a boolean"),
    ("SUM(zone)", "SUM of a string"),
    ("MAX(day)", "MAX of a date"),
    ("AVG(blob)", "AVG of a other"),
    ("AVG(fare, bounds => (0, 1))", "argument bounds"),
    ("AVG(fare, contribution_bounds_per_group => 5)", "contribution bounds"),
    ("AVG(CLAMP(fare, tip, 5))", "a bound or share that is not a number"),
    ("QUANTILE(CLAMP(fare, 0, 1), [0.1, 0.9])", "a list"),
    ("QUANTILE(CLAMP(fare, 0, 1))", "QUANTILE with 1 arguments"),
    ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY fare, tip)", "WITHIN GROUP of several columns"),
    ("SUM(CLAMP(fare, 0, 1)) WITHIN GROUP (ORDER BY fare)", "SUM WITHIN GROUP"),
    ("SUM(CLAMP(fare, 0, 1)) OVER (PARTITION BY zone)", "a window (OVER)"),
    ("SUM(fare ORDER BY tip)", "ORDER BY within a function"),
    ("COUNT(*, contribution_bounds_per_group => (1, 5))", "contribution bounds of a count"),
    ("AVG(*)", "*"),
    ("ANY_VALUE(fare)", "function ANY_VALUE"),
    ("ARRAY_AGG(fare)", "function ARRAY_AGG"),
    ("SUM(SUM(fare))", "aggregate SUM in an aggregate"),
]


@pytest.mark.parametrize(("text", "construct"), REFUSED)
def test_other_aggregates_are_refused_by_name(text, construct):
    """What no aggregate of the language is says its name, its place and what to write."""
    with pytest.raises(UnsupportedQuery) as caught:
        one(text)

    assert construct == caught.value.construct
    assert caught.value.position is not None
    assert caught.value.next_step


def test_names_differ():
    """Aggregates without an alias get names that nobody else has."""
    asked = read(
        f"SELECT COUNT(*), COUNT(*) FILTER (WHERE paid), SUM({CLAMPED}), sum(clamp(fare, 0, 9)), zone AS count_3, "
        "COUNT(*) FILTER (WHERE fare > 1) AS count_2 FROM rides GROUP BY zone"
    )

    assert ["count", "count_4", "sum_fare", "sum_fare_2", "count_2"] == [output.name for output in asked.outputs]
    assert ("count", "count_4", "sum_fare", "sum_fare_2", "count_3", "count_2") == asked.columns


GROUPS = [
    ("zone AS z", "zone", "z", "zone"),
    ("date_trunc('month', day) AS m", "2", "m", "date_trunc('month', day)"),
    ("DATE_TRUNC(day, MONTH) AS m", "m", "m", "date_trunc('month', day)"),
    ("TIMESTAMP_TRUNC(at, HOUR) AS h", "h", "h", "date_trunc('hour', at)"),
    ("DATE_TRUNC(day, WEEK(MONDAY)) w", "w", "w", "date_trunc('week', day)"),
    ("floor(fare/10)*10 AS b", "floor(fare/10)*10", "b", "(floor((fare / 10)) * 10)"),
    ("EXTRACT(year FROM day)", "EXTRACT(YEAR FROM day)", "extract_year_day", "extract('year', day)"),
    ("year(day) AS y", "date_part('year', day)", "y", "extract('year', day)"),
    ("extract(dow FROM day) AS d", "2", "d", "(extract('dow', day) % 7)"),
    ("extract(isodow FROM day) AS d", "2", "d", "extract('dow', day)"),
    ("date_trunc('month', day)", "2", "date_trunc_month_day", "date_trunc('month', day)"),
    ("CASE WHEN paid THEN 'y' ELSE 'n' END", "2", "case", "CASE WHEN paid = TRUE THEN 'y' ELSE 'n' END"),
    (
        "fare > 9 AS expensive",
        "expensive",
        "expensive",
        "CASE WHEN fare > 9 THEN TRUE WHEN NOT (fare > 9) THEN FALSE END",
    ),
    ("DIV(seats, 2) AS s", "seats // 2", "s", "(seats // 2)"),
    ("date(at) AS d", "at::date", "d", "CAST(at AS DATE)"),
    ("left(zone, 2) AS p", "substr(zone, 1, 2)", "p", "substring(zone, 1, 2)"),
]


@pytest.mark.parametrize(("item", "group", "name", "shown"), GROUPS)
def test_groups_are_columns_and_expressions(item, group, name, shown):
    """GROUP BY takes expressions, places and aliases, in the spellings of three dialects."""
    asked = read(f"SELECT COUNT(*), {item} FROM rides GROUP BY {group}")

    assert (name,) == asked.by
    assert ((name, shown),) == tuple((column, str(scalar)) for column, scalar in asked.groupings)
    assert ("count", name) == asked.columns


def test_a_group_without_a_name_gets_one():
    """A grouping expression that is not selected is named by its words, and never like a column of the table."""
    asked = read("SELECT COUNT(*) FROM rides GROUP BY floor(fare/10)*10, upper(zone), upper(zone) || 'x'")

    assert ("floor_fare_10_10", "upper_zone", "upper_zone_x") == asked.by


def test_a_column_wins_over_an_alias():
    """GROUP BY zone is the column, whatever else is called so; by its place, a value may have the name of a column."""
    with pytest.raises(UnsupportedQuery, match="outside of GROUP BY"):
        read("SELECT upper(zone) AS zone, COUNT(*) FROM rides GROUP BY zone")
    asked = read("SELECT upper(zone) AS zone, COUNT(*) FROM rides GROUP BY 1 ORDER BY zone")
    assert ("zone",) == asked.by
    assert "upper(zone)" == str(dict(asked.groupings)["zone"])


SAME = [
    ("a.b", "SAFE_DIVIDE(fare, tip)", "fare / tip"),
    ("safe", "SAFE.SQRT(fare)", "sqrt(fare)"),
    ("casts", "SAFE_CAST(zone AS INT64)", "zone::bigint"),
    ("casts", "TRY_CAST(zone AS FLOAT64)", "CAST(zone AS double precision)"),
    ("ifnull", "IFNULL(fare, 0)", "COALESCE(fare, 0)"),
    ("if", "IF(paid, 1, 0)", "CASE WHEN paid THEN 1 ELSE 0 END"),
    ("case", "CASE zone WHEN 'a' THEN 1 END", "CASE WHEN zone = 'a' THEN 1 ELSE NULL END"),
    ("power", "fare ^ 2", "POW(fare, 2)"),
    ("power", "fare ** 2", "POWER(fare, 2)"),
    ("mod", "MOD(seats, 3)", "seats % 3"),
    ("concat", "CONCAT(zone, '-')", "zone || '-'"),
    ("length", "CHAR_LENGTH(zone)", "len(zone)"),
    ("substring", "SUBSTRING(zone FROM 2 FOR 3)", "SUBSTR(zone, 2, 3)"),
    ("trim", "TRIM(LEADING FROM zone)", "LTRIM(zone)"),
    ("trim", "TRIM(BOTH ' ' FROM zone)", "BTRIM(zone)"),
    ("ceil", "CEILING(fare)", "ceil(fare)"),
    ("days", "DATE_DIFF(day, DATE '2013-01-01', DAY)", "date_diff('day', DATE '2013-01-01', day)"),
    ("days", "day - DATE '2013-01-01'", "DATEDIFF('day', '2013-01-01', day)"),
    ("clamp", "CLAMP(fare, 0, 9)", "CASE WHEN fare IS NOT NULL THEN least(greatest(fare, 0), 9) END"),
    ("date", "DATE('2013-01-01')", "'2013-01-01'::DATE"),
    ("names", "`fare` + 1", 'rides."fare" + 1'),
    ("like", "zone LIKE 'a%'", "like(zone, 'a%')"),
    ("prefix", "starts_with(zone, 'a')", "prefix(zone, 'a')"),
]


@pytest.mark.parametrize(("one", "other"), [case[1:] for case in SAME])
def test_spellings_of_one_value(one, other):
    """DuckDB, PostgreSQL and BigQuery spell one value in their ways."""
    assert parse_scalar(one, SCHEMA) == parse_scalar(other.replace("rides.", ""), SCHEMA)


def test_division_is_real_and_then_means_nothing_but_nulls():
    """CASE with NULL in the middle keeps the order of its branches."""
    shown = str(parse_scalar("CASE WHEN paid THEN NULL WHEN seats > 1 THEN 1 / 2 END", SCHEMA))

    assert (
        "CASE WHEN CASE WHEN paid = TRUE THEN TRUE ELSE FALSE END = FALSE THEN CASE WHEN seats > 1 THEN (1 / 2) END END"
        == shown
    )


def test_many_columns_are_refused_soon():
    """Ten thousand columns are one refusal; a table of ten thousand is no trouble."""
    with pytest.raises(UnsupportedQuery, match="more than 100 columns"):
        read("SELECT " + ", ".join(["COUNT(*)"] * 9_000) + " FROM rides")
    with pytest.raises(UnsupportedQuery, match="more than 100 columns"):
        read("SELECT COUNT(*) FROM rides GROUP BY " + ", ".join(["fare"] * 10_000))
    wide = Schema.of({f"c{place}": Type.FLOAT for place in range(10_000)})
    asked = parse("SELECT c9999, SUM(CLAMP(c5, 0, 1)) s FROM t WHERE c7 > 1 GROUP BY c9999", table="t", schema=wide)

    assert ("c9999",) == asked.by
    with pytest.raises(UnsupportedQuery, match="did you mean"):
        parse("SELECT COUNT(*) FROM t WHERE c10001 > 1", table="t", schema=wide)
