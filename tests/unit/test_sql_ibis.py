"""ibis expressions into the closed language: the same trees as SQL, and the same refusals."""

from __future__ import annotations

import ibis
import pytest
from ibis import _

from farthing.errors import UnsupportedQuery
from farthing.query import Schema, Type
from farthing.sql import from_ibis, ibis_predicate, is_ibis, parse_predicate, parse_scalar

SCHEMA = Schema.of(
    {
        "x": Type.INTEGER,
        "fare": Type.FLOAT,
        "tip": Type.DECIMAL,
        "zone": Type.STRING,
        "ok": Type.BOOLEAN,
        "day": Type.DATE,
        "at": Type.TIMESTAMP,
        "blob": Type.OTHER,
        "zones.borough": Type.STRING,
    }
)

VALUES = [
    (_.fare, "fare"),
    (_["zones.borough"], '"zones.borough"'),
    ((_.x + 1) * 2 - _.x, "(x + 1) * 2 - x"),
    (_.x / 3, "x / 3"),
    (_.x % 3, "x % 3"),
    (-_.fare, "-fare"),
    (_.fare**2, "fare ^ 2"),
    ((_.fare / 10).floor() * 10, "floor(fare / 10) * 10"),
    (_.fare.ceil() + _.fare.round(2), "ceil(fare) + round(fare, 2)"),
    (_.fare.round(), "round(fare)"),
    (_.x.abs() * _.x.sign(), "abs(x) * sign(x)"),
    (_.fare.sqrt() + _.fare.exp() + _.fare.ln() + _.fare.log10(), "sqrt(fare) + exp(fare) + ln(fare) + log10(fare)"),
    (ibis.least(_.x, 3), "least(x, 3)"),
    (ibis.greatest(_.x, 3), "greatest(x, 3)"),
    (ibis.coalesce(_.x, 0), "coalesce(x, 0)"),
    (_.x.fill_null(0), "ifnull(x, 0)"),
    (_.x.nullif(0), "nullif(x, 0)"),
    (_.fare.clip(0, 5), "CLAMP(fare, 0, 5)"),
    (_.fare.clip(lower=0), "CASE WHEN fare IS NOT NULL THEN greatest(fare, 0) END"),
    (_.zone.lower() + _.zone.upper(), "lower(zone) || upper(zone)"),
    (_.zone.length(), "length(zone)"),
    (_.zone.substr(0, 3), "substring(zone, 1, 3)"),
    (_.zone.left(2), "left(zone, 2)"),
    (_.zone.substr(_.x), "substr(zone, x + 1)"),
    (_.zone.strip() + _.zone.lstrip() + _.zone.rstrip(), "trim(zone) || ltrim(zone) || rtrim(zone)"),
    (_.day.truncate("M"), "date_trunc('month', day)"),
    (_.at.truncate("h"), "date_trunc('hour', at)"),
    (_.day.year() * 100 + _.day.month(), "year(day) * 100 + month(day)"),
    (_.day.quarter() + _.day.day(), "quarter(day) + day(day)"),
    (_.at.hour() + _.at.minute() + _.at.second(), "hour(at) + minute(at) + second(at)"),
    (_.day.day_of_year() + _.day.week_of_year(), "extract(doy FROM day) + week(day)"),
    (_.day.day_of_week.index(), "isodow(day) - 1"),
    (_.day.delta(ibis.date("2013-01-01"), unit="day"), "date_diff('day', DATE '2013-01-01', day)"),
    (_.at.date(), "CAST(at AS DATE)"),
    (_.zone.cast("int64"), "CAST(zone AS BIGINT)"),
    (_.zone.try_cast("float64"), "CAST(zone AS DOUBLE)"),
    (_.x.cast("string"), "x::text"),
    (_.ok.cast("int64"), "ok::int"),
    (
        ibis.cases((_.x > 2, "b"), (_.x > 1, "a"), else_="c"),
        "CASE WHEN x > 2 THEN 'b' WHEN x > 1 THEN 'a' ELSE 'c' END",
    ),
    (_.x.cases((1, "a"), (2, "b")), "CASE x WHEN 1 THEN 'a' WHEN 2 THEN 'b' END"),
    (ibis.ifelse(_.ok, 1, 0), "IF(ok, 1, 0)"),
    (ibis.ifelse(_.ok, ibis.null(), _.x), "IF(ok, NULL, x)"),
]


@pytest.mark.parametrize(("expression", "text"), VALUES, ids=[text for _, text in VALUES])
def test_values(expression, text):
    """An ibis value is the tree of the SQL that says the same."""
    assert parse_scalar(text, SCHEMA) == from_ibis(expression, SCHEMA)


CONDITIONS = [
    (_.x > 3, "x > 3"),
    ((_.x > 3) & (_.fare <= 2.5) & (_.zone != "a"), "x > 3 AND fare <= 2.5 AND zone <> 'a'"),
    ((_.x > 3) | (_.x < 1) | (_.x == 2), "x > 3 OR x < 1 OR x = 2"),
    (~(_.x >= 3), "NOT x >= 3"),
    (_.x.isin([1, 2]), "x IN (1, 2)"),
    (_.zone.notin(["a"]), "zone NOT IN ('a')"),
    (_.x.between(1, 3), "x BETWEEN 1 AND 3"),
    (_.x.isnull() | _.zone.notnull(), "x IS NULL OR zone IS NOT NULL"),
    (_.blob.isnull(), "blob IS NULL"),
    (_.x.identical_to(1), "x IS NOT DISTINCT FROM 1"),
    (_.day >= "2013-01-31", "day >= '2013-01-31'"),
    (_.at < ibis.timestamp("2013-01-31 10:00:00"), "at < '2013-01-31 10:00:00'"),
    (
        _.zone.startswith("a") & _.zone.endswith("b") & _.zone.contains("c") & _.zone.like("%d_"),
        "starts_with(zone, 'a') AND ends_with(zone, 'b') AND contains(zone, 'c') AND zone LIKE '%d_'",
    ),
    (_.zone.replace("a", "b") == "bc", "replace(zone, 'a', 'b') = 'bc'"),
]


@pytest.mark.parametrize(("expression", "text"), CONDITIONS, ids=[text for _, text in CONDITIONS])
def test_conditions(expression, text):
    """An ibis condition is the predicate of the SQL that says the same."""
    assert parse_predicate(text, SCHEMA) == ibis_predicate(expression, SCHEMA)


def test_a_condition_is_a_predicate_and_a_value_a_scalar():
    """A column of truth values is a scalar by itself, and a predicate where one is asked for."""
    assert parse_predicate("x > 3", SCHEMA) == from_ibis(_.x > 3, SCHEMA)
    assert parse_scalar("ok", SCHEMA) == from_ibis(_.ok, SCHEMA)
    assert parse_predicate("ok", SCHEMA) == ibis_predicate(_.ok, SCHEMA)
    with pytest.raises(UnsupportedQuery):
        ibis_predicate(_.x + 1, SCHEMA)


def test_columns_of_any_table_go_by_name():
    """An expression of a table of the user's own names columns; what was computed before is refused."""
    table = ibis.table({"x": "int8", "fare": "float32", "other": "string"}, name="mine")

    assert parse_predicate("x + 1 > 3", SCHEMA) == ibis_predicate(table.x + 1 > 3, SCHEMA)
    with pytest.raises(UnsupportedQuery, match="of Project"):
        from_ibis(table.mutate(y=table.x + 1).y, SCHEMA)
    with pytest.raises(UnsupportedQuery, match="unknown column 'other'"):
        from_ibis(table.other, SCHEMA)


@ibis.udf.scalar.builtin
def steal(x: int) -> int:
    """A function of the user's own."""


TABLE = ibis.table({"x": "int64", "fare": "float64", "zone": "string", "day": "date"}, name="t")

REFUSED = [
    (TABLE.x.sum(), "aggregate or window Sum"),
    (TABLE.x.mean() > 1, "aggregate or window Mean"),
    (TABLE.x.lag(), "aggregate or window Lag"),
    (TABLE.x.sum().over(ibis.window(group_by="zone")), "aggregate or window WindowFunction"),
    (ibis.random(), "ibis operation RandomScalar"),
    (ibis.now(), "ibis operation TimestampNow"),
    (TABLE.x // 2, "ibis operation FloorDivide"),
    (TABLE.zone.re_search("a"), "ibis operation RegexSearch"),
    (TABLE.zone.ilike("a"), "ibis operation StringSQLILike"),
    (TABLE.x.isin(TABLE.x), "a subquery (InSubquery)"),
    (TABLE.view().x.max() > TABLE.x, "aggregate or window Max"),
    (TABLE.x.cast("decimal(9, 2)"), "cast to decimal(9, 2)"),
    (steal(TABLE.x), "ibis operation steal_0"),
    (TABLE.x.isin([TABLE.fare, 1]), "isin of anything but constants"),
    (TABLE.x + ibis.null("int64"), "NULL as a value"),
    (TABLE, "Table"),
    (TABLE.count(), "aggregate or window CountStar"),
]


@pytest.mark.parametrize(("expression", "construct"), REFUSED, ids=[construct for _, construct in REFUSED])
def test_everything_else_is_refused_by_name(expression, construct):
    """Aggregates, windows, chance, clocks, functions of the user's own: refused by the operation's name."""
    with pytest.raises(UnsupportedQuery) as caught:
        from_ibis(expression, SCHEMA)

    assert construct == caught.value.construct
    assert caught.value.next_step


@pytest.mark.parametrize("expression", [_.nothing > 1, _.x.nothing(), _.zone.sqrt()], ids=["column", "method", "type"])
def test_what_does_not_fit_the_table_is_refused(expression):
    """A deferred expression that cannot be bound to the columns says which there are."""
    with pytest.raises(UnsupportedQuery, match="name columns of the table"):
        from_ibis(expression, SCHEMA)


def test_deep_expressions_are_refused():
    """An expression of hundreds of levels is refused; a long chain of conditions is one level."""
    deep = TABLE.x
    for _step in range(200):
        deep = deep + 1
    with pytest.raises(UnsupportedQuery, match="deep"):
        from_ibis(deep, SCHEMA)
    chain = TABLE.x > 0
    for least in range(1, 200):
        chain = chain & (TABLE.x > least)
    assert len(ibis_predicate(chain, SCHEMA).operands) == 200


def test_telling_ibis_apart():
    """Expressions and deferred ones are ibis', texts are not."""
    assert is_ibis(_.x > 1)
    assert is_ibis(TABLE.x)
    assert not is_ibis("x > 1")
