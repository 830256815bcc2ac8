"""Declared keys of a column serve expressions of it, by their values on them; names of columns are not mistaken."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import farthing
from farthing.errors import InvalidKeys

DAYS = [dt.date(2013, 1, 30), dt.date(2013, 1, 31), dt.date(2013, 2, 1)]
TABLE = pa.table({"day": DAYS * 400, "zone": ["a", "b", "B"] * 400})
KEYS = {"day": DAYS, "zone": ["a", "b", "B"], "size": ["large", "small"]}


@pytest.fixture
def session():
    """A session with declared keys."""
    budget = farthing.Budget(epsilon=5, delta=1e-6)
    with farthing.Session(TABLE, budget=budget, name="t", keys=KEYS, target=farthing.Target(absolute=60)) as made:
        yield made


@pytest.mark.parametrize(
    ("value", "name", "keys"),
    [
        ("DATE_TRUNC('month', day)", "day", [dt.date(2013, 1, 1), dt.date(2013, 2, 1)]),
        ("UPPER(zone)", "zone", ["A", "B"]),
        ("EXTRACT(month FROM day)", "m", [1, 2]),
        ("CASE WHEN zone = 'a' THEN 'first' END", "c", ["first", None]),
        ("COALESCE(zone, 'x')", "size", ["large", "small"]),
        ("zone", "zone", ["a", "b", "B"]),
        ("zone", "z", ["a", "b", "B"]),
    ],
)
def test_an_expression_of_a_column_has_its_values_on_the_declared_keys(session, value, name, keys):
    """A truncated date is asked without listing months; a name that is no column has the keys declared for it."""
    answer = session.sql(f'SELECT {value} AS "{name}", COUNT(*) AS n FROM t GROUP BY {value}')

    assert keys == answer.keys[name].to_pylist()
    assert answer.met.all()


@pytest.mark.parametrize(
    ("value", "keys"),
    [
        ("CASE WHEN zone < 'b' THEN 'low' WHEN day IS NULL THEN 'none' ELSE 'low' END", ["low", "none"]),
        ("CASE WHEN zone = 'a' THEN 1 WHEN zone = 'b' THEN 2.5 END", [1.0, 2.5, None]),
        ("zone > 'a'", [True, False, None]),
    ],
)
def test_a_case_of_constants_has_them_as_keys_where_none_are_declared(value, keys):
    """What it can be is in the text, in its order; groups without rows are told like others."""
    with farthing.Session(TABLE, budget=farthing.Budget(epsilon=5, delta=1e-6), name="t") as session:
        answer = session.sql(f"SELECT {value} AS b, COUNT(*) AS n FROM t GROUP BY 1", absolute=60)

        assert keys == answer.keys["b"].to_pylist()
        with pytest.raises(InvalidKeys, match="GROUP BY without keys"):
            session.sql(
                "SELECT CASE WHEN zone = 'a' THEN zone ELSE 'x' END AS b, COUNT(*) FROM t GROUP BY 1", absolute=60
            )


def test_keys_of_the_question_come_first_and_two_columns_have_none(session):
    """What the question lists counts; an expression of two columns has no declared keys."""
    answer = session.sql("SELECT UPPER(zone) AS zone, COUNT(*) AS n FROM t GROUP BY 1", keys={"zone": ["A"]})

    assert ["A"] == answer.keys["zone"].to_pylist()
    with pytest.raises(InvalidKeys, match="keys"):
        session.sql("SELECT CASE WHEN zone = 'a' THEN day END AS x, COUNT(*) AS n FROM t GROUP BY 1")


def test_the_same_name_of_another_value_is_another_question(session):
    """DATE_TRUNC('month', day) AS day is never answered with what was measured of day itself."""
    days = session.sql("SELECT day, COUNT(*) AS n FROM t GROUP BY day", keys={"day": [dt.date(2013, 1, 1), DAYS[2]]})
    text = "SELECT DATE_TRUNC('month', day) AS day, COUNT(*) AS n FROM t GROUP BY DATE_TRUNC('month', day)"
    months = session.sql(text)

    assert days.keys.equals(months.keys)
    assert months.paid
    assert abs(days.value[0]) < 200 < months.value[0]
