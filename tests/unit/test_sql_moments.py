"""Names of days and months, and moments spelled by a form: what DuckDB gives, on every engine by the same words."""

from __future__ import annotations

import datetime as dt

import duckdb
import pytest

from farthing.engines.evaluate import evaluate
from farthing.errors import UnsupportedQuery
from farthing.query.schema import Schema, Type
from farthing.sql import parse_scalar

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
        expected = duckdb.execute(f"SELECT {text.format(f'CAST(? AS {kind})')}", [row[column]]).fetchone()[0]

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
