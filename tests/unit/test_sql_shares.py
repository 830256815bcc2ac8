"""Shares of a total are refused by name, with ways that work; grouping sets take what GROUP BY takes."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from farthing import Budget, Session
from farthing.errors import UnsupportedQuery
from farthing.query import Schema, Type
from farthing.sql import parse

SCHEMA = Schema.of({"zone": Type.STRING, "fare": Type.FLOAT, "month": Type.INTEGER})
ROWS = pa.table({"zone": np.repeat(["centre", "port"], [900, 300]), "month": np.arange(1200) % 12 + 1})
SHARES = {
    "100.0 * COUNT(*) / SUM(COUNT(*)) OVER ()": 29,
    "ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1)": 35,
    "SUM(COUNT(*)) OVER (PARTITION BY zone)": 13,
    "SUM(CLAMP(fare, 0, 9)) / SUM(SUM(CLAMP(fare, 0, 9))) OVER ()": 38,
    "COUNT(*) * 1.0 / (SELECT COUNT(*) FROM t)": 35,
    "COUNT(*) / NULLIF((SELECT COUNT(*) FROM t), 0)": 36,
    "RATIO_TO_REPORT(COUNT(*)) OVER ()": 13,
}


def refusal(text):
    """Return the refusal of a question."""
    with pytest.raises(UnsupportedQuery) as caught:
        parse(text, table="t", schema=SCHEMA)
    return caught.value


@pytest.mark.parametrize("share", SHARES)
def test_a_share_of_a_total_is_refused_with_its_place(share):
    """As a window over aggregates or beside a subquery, in arithmetic or alone, by one name, free."""
    refused = refusal(f"SELECT zone, {share} AS share FROM t GROUP BY zone")

    assert "a share of a total" == refused.construct
    assert refused.position[0] == 1
    assert SHARES[share] - 3 <= refused.position[1] <= SHARES[share] + 12


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("SELECT COUNT(*) OVER () FROM t", "a window (OVER)"),
        ("SELECT SUM(CLAMP(fare, 0, 9)) OVER (PARTITION BY zone) FROM t", "a window (OVER)"),
        ("SELECT COUNT(*) FILTER (WHERE fare > (SELECT AVG(fare) FROM t)) / COUNT(*) FROM t", "a subquery"),
        ("SELECT (SELECT 1), COUNT(*) FROM t", "a subquery"),
    ],
)
def test_other_windows_and_subqueries_keep_their_names(text, construct):
    """What is no share is refused for what it is."""
    assert construct == refusal(text).construct


def test_what_the_refusal_says_instead_works():
    """Both ways: counts that hold together are divided by their sum, and one share has an interval of its own."""
    advice = refusal("SELECT zone, COUNT(*) / SUM(COUNT(*)) OVER () FROM t GROUP BY zone").next_step
    single = re.search(r"COUNT\(\*\) FILTER .* COUNT\(\*\)$", advice).group()
    with Session(ROWS, name="t", budget=Budget(mu=20)) as session:
        counts = session.sql("SELECT zone, COUNT(*) AS n FROM t GROUP BY zone", keys={"zone": ["centre", "port"]},
                             absolute=40, together=True)  # fmt: skip
        share = session.sql(f"SELECT {single} AS share FROM t", absolute=0.05, confidence=0.999)

    assert np.abs(counts.value / counts.value.sum() - [0.75, 0.25]).max() < 0.1
    assert share.lower <= 0.75 <= share.upper


def test_sets_of_conditions_and_values():
    """ROLLUP, CUBE and GROUPING SETS take comparisons, logic and arithmetic, as GROUP BY does."""
    text = "SELECT month > 6 AS late, zone, COUNT(*) AS n FROM t GROUP BY ROLLUP (month > 6, zone)"
    keys = {"late": [False, True], "zone": ["centre", "port"]}
    with Session(ROWS, name="t", budget=Budget(mu=20)) as session:
        answer = session.sql(text, keys=keys, absolute=30).to_arrow().to_pylist()
    told = {(row["late"], row["zone"]): row["n"] for row in answer}

    assert {(True, "port"), (False, None), (None, None)} <= set(told)
    assert abs(told[True, "centre"] - 450) < 60
    for sets in ("CUBE (month > 6, zone = 'a' OR zone = 'b')", "GROUPING SETS ((month > 6, zone), month + 1 > 3, ())",
                 "ROLLUP ((month > 6, zone), NOT month = 2)"):  # fmt: skip
        assert parse(f"SELECT COUNT(*) FROM t GROUP BY {sets}", table="t", schema=SCHEMA).sets
