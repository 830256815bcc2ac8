"""Names of days and months, and moments spelled by a form: what DuckDB gives, on every engine by the same words."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest

from farthing.engines.evaluate import evaluate
from farthing.errors import UnsupportedQuery
from farthing.query.schema import Schema, Type
from farthing.sql import parse_predicate, parse_scalar

SCHEMA = Schema.of({"d": Type.DATE, "t": Type.TIMESTAMP})
MOMENTS = [dt.datetime(2013, 1, 31, 7, 5, 9), dt.datetime(1969, 12, 1, 23, 59, 59), dt.datetime(987, 6, 15)]  # noqa: DTZ001
TEXTS = ("DAYNAME({})", "MONTHNAME({})", "STRFTIME({}, '%Y-%m')", "STRFTIME({}, '%d.%m.%Y %H:%M:%S')",
         "STRFTIME({}, 'at %H %%')")  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("column", ["d", "t"])
def test_spelled_as_duckdb_does(text, column):
    """Each form of each moment, of a date too; NULL stays NULL."""
    told = parse_scalar(text.format(column), SCHEMA)
    for moment in MOMENTS:
        row = {"d": moment.date(), "t": moment}
        kind = "DATE" if column == "d" else "TIMESTAMP"
        expected = duckdb.connect().execute(f"SELECT {text.format(f'CAST(? AS {kind})')}", [row[column]]).fetchone()[0]

        assert expected == evaluate(told, row)
    assert None is evaluate(told, {"d": None, "t": None})


def test_arguments_in_either_order():
    """SQLite and BigQuery put the form first."""
    assert parse_scalar("STRFTIME('%Y', t)", SCHEMA) == parse_scalar("STRFTIME(t, '%Y')", SCHEMA)


@pytest.mark.parametrize("text", ["STRFTIME(t, '%j')", "STRFTIME(t, 'x')", "STRFTIME(t, '')", "STRFTIME(t, d)",
                                  "DAYNAME()", "STRFTIME(t, '%')", "STRFTIME(t, '%F')"])  # fmt: skip
def test_other_forms_are_refused(text):
    """By name, with what is understood."""
    with pytest.raises(UnsupportedQuery):
        parse_scalar(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("d >= TIMESTAMP '2013-01-31 00:00:00'", "d >= DATE '2013-01-31'"),
        ("t >= timestamp with time zone '2013-01-31 10:00:00.000Z'", "t >= TIMESTAMP '2013-01-31 10:00:00'"),
        ("t >= '2013-01-31T10:00:00+00:00'::timestamptz", "t >= TIMESTAMP '2013-01-31 10:00:00'"),
        ("t::timestamptz >= TO_TIMESTAMP(1359626400)", "t >= TIMESTAMP '2013-01-31 10:00:00'"),
        ("d > MAKE_DATE(2013, 1, 31)", "d > DATE '2013-01-31'"),
        ("TIME_BUCKET('1 hour', t) = DATE_TRUNC('hour', t)", "DATE_TRUNC('hour', t) = TIME_BUCKET('3600.000s', t)"),
        ("TIME_BUCKET(INTERVAL '1 week', d) = d", "DATE_TRUNC('week', d) = d"),
        ("TO_CHAR(t, 'YYYY-MM-DD HH24:MI:SS') = 'x'", "STRFTIME(t, '%Y-%m-%d %H:%M:%S') = 'x'"),
        ("EXTRACT(YEAR FROM t) IN ('2013', '-1')", "EXTRACT(YEAR FROM t) IN (2013, -1)"),
        ("EXTRACT(YEAR FROM t) = '2013'", "EXTRACT(YEAR FROM t) = 2013"),
        ("STRFTIME(t, '%Y') ILIKE '20A%'", "LOWER(STRFTIME(t, '%Y')) LIKE '20a%'"),
    ],
)
def test_other_words_for_one_condition(text, same):
    """What tools write is the condition that it stands for, and has its identity."""
    assert parse_predicate(same, SCHEMA).canonical() == parse_predicate(text, SCHEMA).canonical()


@pytest.mark.parametrize(
    "text",
    ["d >= TIMESTAMP '2013-01-31 10:00:00'", "t >= timestamp with time zone '2013-01-31 10:00:00+02'",
     "STRFTIME(t, '%Y')::timestamptz > t", "TIME_BUCKET('5 minutes', t) = t", "TIME_BUCKET('300.000s', t) = t",
     "TO_CHAR(t, 'SSSS') = '1'", "TO_CHAR(t, 'YYYY-DDDD') = '1'", "TO_CHAR(t, 'Month') = 'May'",
     "TO_CHAR(t, d) = 'x'", "MAKE_DATE(2013, 2, 30) > d", "MAKE_DATE(2013, d, 1) > d",
     "TO_TIMESTAMP(1e30) > t", "TO_TIMESTAMP(99999999999) > t", "EXTRACT(YEAR FROM t) = '2013.5'",
     "EXTRACT(YEAR FROM t) IN ('2013', 'x')", "STRFTIME(t, '%Y') = 2013", "STRFTIME(t, '%Y') ILIKE 'Ä'",
     "STRFTIME(t, '%Y') ILIKE STRFTIME(d, '%Y')"],
)  # fmt: skip
def test_what_is_not_surely_that_is_refused(text):
    """Times within a day, other zones, buckets of several units, and texts that are no number."""
    with pytest.raises(UnsupportedQuery):
        parse_predicate(text, SCHEMA)
