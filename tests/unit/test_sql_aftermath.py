"""HAVING, ORDER BY, LIMIT and OFFSET: read in terms of answer columns, and done to released numbers only."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from farthing.errors import UnsupportedQuery
from farthing.query import Schema, Type
from farthing.query.aftermath import Aftermath, Order
from farthing.query.expressions import Call, Column, Compare, FunctionName, Literal, Operator
from farthing.sql import parse

SCHEMA = Schema.of({"dest": Type.STRING, "fare": Type.FLOAT, "month": Type.INTEGER, "day": Type.DATE})
HEAD = "SELECT dest, day AS d, COUNT(*) AS n, SUM(CLAMP(fare, 0, 9)) AS s, COUNT(fare) FROM t GROUP BY dest, day "
N = Column("n")

KEYS = pa.table(
    {
        "dest": pa.array(["b", "a", None, "c", "b"]).dictionary_encode(),
        "d": pa.array([dt.date(2013, 1, day) for day in (1, 2, 3, 4, 5)]),
    }
)
COLUMNS = {
    "n": np.array([5, 2, 9, 2, 7]),
    "n_lower": np.array([4.0, 1.0, 8.0, 1.5, 6.0]),
    "s": np.array([0.0, 4.0, np.nan, 3.0, 14.0]),
    "count_fare": np.array([5, 1, 9, 2, 7]),
}


def read(text):
    """Return the aftermath of a question."""
    return parse(HEAD + text, table="t", schema=SCHEMA).aftermath


def shown(text):
    """Return which groups a question shows, in order."""
    return read(text).arranged(COLUMNS, KEYS).tolist()


SHOWN = [
    ("", [0, 1, 2, 3, 4]),
    ("HAVING n > 2", [0, 2, 4]),
    ("HAVING COUNT(*) > 2", [0, 2, 4]),
    ("HAVING COUNT(*) > 2 ORDER BY COUNT(*) DESC", [2, 4, 0]),
    ("HAVING s >= 3 AND NOT dest = 'c'", [1, 4]),
    ("HAVING s IS NULL OR dest IS NULL", [2]),
    ("HAVING dest IN ('a', 'b') AND n BETWEEN 3 AND 6", [0]),
    ("HAVING day >= '2013-01-04'", [3, 4]),
    ("HAVING d < DATE '2013-01-02'", [0]),
    ("HAVING '2013-01-04' <= d", [3, 4]),
    ("HAVING s / n > 1.6", [1, 4]),
    ("HAVING SUM(CLAMP(fare, 0, 9)) / COUNT(*) > 1.6", [1, 4]),
    ("HAVING n / s > 0", [1, 3, 4]),
    ("HAVING abs(n - count_fare) >= 1", [1]),
    ("HAVING n_lower > 5", [2, 4]),
    ("HAVING COUNT(fare) = 1", [1]),
    ("ORDER BY n", [1, 3, 0, 4, 2]),
    ("ORDER BY n DESC", [2, 4, 0, 1, 3]),
    ("ORDER BY 3 DESC, 1 DESC", [2, 4, 0, 3, 1]),
    ("ORDER BY dest", [1, 0, 4, 3, 2]),
    ("ORDER BY dest DESC NULLS FIRST, n DESC", [2, 3, 4, 0, 1]),
    ("ORDER BY s", [0, 3, 1, 4, 2]),
    ("ORDER BY -s", [4, 1, 3, 0, 2]),
    ("ORDER BY n - count_fare DESC, d DESC", [1, 4, 3, 2, 0]),
    ("ORDER BY day DESC LIMIT 2", [4, 3]),
    ("ORDER BY day DESC LIMIT 2 OFFSET 1", [3, 2]),
    ("LIMIT 0", []),
    ("OFFSET 3", [3, 4]),
    ("OFFSET 9", []),
    ("LIMIT 2 OFFSET 4", [4]),
    ("ORDER BY n FETCH FIRST 2 ROWS ONLY", [1, 3]),
    ("HAVING n > 100 ORDER BY n", []),
]


@pytest.mark.parametrize(("text", "expected"), SHOWN)
def test_what_is_shown(text, expected):
    """Aggregates, aliases, grouping expressions, ends of intervals and arithmetic; NULL is not shown and comes last."""
    assert expected == shown(text)


def test_what_is_read():
    """The aftermath is a value, and tells which columns it reads."""
    aftermath = read("HAVING n > 2 ORDER BY s / n DESC LIMIT 3")

    share = Call(FunctionName.DIVIDE, (Column("s"), N))
    assert Aftermath(Compare(N, Operator.GT, Literal(2)), (Order(share, descending=True),), 3) == aftermath
    assert frozenset({"n", "s"}) == aftermath.columns
    assert not aftermath.shows_all
    assert read("").shows_all


def test_one_answer_without_groups():
    """HAVING of an answer over the whole table shows it or not."""
    aftermath = parse("SELECT COUNT(*) FROM t HAVING count > 3", table="t", schema=SCHEMA).aftermath

    assert [0] == aftermath.arranged({"count": np.array([4])}, None).tolist()
    assert [] == aftermath.arranged({"count": np.array([3])}, None).tolist()


REFUSED = [
    ("HAVING AVG(CLAMP(fare, 0, 9)) > 1", "an aggregate that is not selected"),
    ("HAVING SUM(CLAMP(fare, 0, 10)) > 1", "an aggregate that is not selected"),
    ("ORDER BY MAX(CLAMP(fare, 0, 9))", "an aggregate that is not selected"),
    ("HAVING fare > 1", "unknown column"),
    ("HAVING month > 1", "unknown column"),
    ("HAVING t.month > 1", "table 't'"),
    ("HAVING n", "type mismatch"),
    ("HAVING dest > 1", "type mismatch"),
    ("HAVING sqrt(n) > 1", "SQRT"),
    ("HAVING CASE WHEN n > 1 THEN TRUE END", "Case"),
    ("HAVING (SELECT 1) = n", "a subquery"),
    ("HAVING random() > n", "function RANDOM"),
    ("ORDER BY random()", "function RANDOM"),
    ("ORDER BY upper(dest)", "UPPER"),
    ("ORDER BY 9", "ORDER BY 9"),
    ("ORDER BY nn", "unknown column"),
    ("ORDER BY COUNT(*) OVER ()", "a window (OVER)"),
    ("LIMIT n", "LIMIT of anything but a number"),
    ("LIMIT -1", "LIMIT of anything but a number"),
    ("LIMIT 1.5", "LIMIT of anything but a number"),
    ("LIMIT 10%", "LIMIT with more than a number"),
    ("LIMIT (SELECT 1)", "LIMIT of anything but a number"),
    ("OFFSET n", "OFFSET of anything but a number"),
    ("FETCH FIRST 5 ROWS WITH TIES", "LIMIT with more than a number"),
]


@pytest.mark.parametrize(("text", "construct"), REFUSED)
def test_what_is_no_function_of_the_answer_is_refused(text, construct):
    """Raw columns, aggregates that are not released and other functions are refused with their place."""
    with pytest.raises(UnsupportedQuery) as caught:
        read(text)

    assert construct == caught.value.construct
    assert caught.value.next_step
    assert caught.value.position is not None


def test_grouping_expressions_are_known_after_the_release():
    """ORDER BY repeats the expression of GROUP BY, or names it."""
    text = "SELECT date_trunc('month', day) AS m, COUNT(*) FROM t GROUP BY 1 ORDER BY {} DESC"
    asked = [parse(text.format(key), table="t", schema=SCHEMA) for key in ("m", "date_trunc('month', day)", "1")]

    assert asked[0] == asked[1] == asked[2]
    assert (Order(Column("m"), descending=True),) == asked[0].aftermath.order
