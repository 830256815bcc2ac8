"""Shares of a total as SQL writes them, what is refused beside them; grouping sets take what GROUP BY takes."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from farthing import Budget, Session
from farthing.errors import InvalidBounds, UnsupportedQuery
from farthing.query import Schema, Type
from farthing.sql import parse

SCHEMA = Schema.of({"zone": Type.STRING, "fare": Type.FLOAT, "month": Type.INTEGER})
ROWS = pa.table({"zone": np.repeat(["centre", "port"], [900, 300]), "month": np.arange(1200) % 12 + 1})
SHARES = {
    "COUNT(*) / SUM(COUNT(*)) OVER ()": ("COUNT(*)", (), 1),
    "100.0 * COUNT(*) / SUM(COUNT(*)) OVER ()": ("COUNT(*)", (), 100),
    "COUNT(*) * 100.0 / NULLIF(SUM(COUNT(*)) OVER (), 0)": ("COUNT(*)", (), 100),
    "(CAST(COUNT(*) AS DOUBLE) / SUM(COUNT(*)) OVER (PARTITION BY zone)) * 100": ("COUNT(*)", ("zone",), 100),
    "COUNT(*)::FLOAT / SUM(COUNT(*)) OVER (PARTITION BY 7 - month, zone)": ("COUNT(*)", ("late", "zone"), 1),
    "SUM(CLAMP(fare, 0, 9)) / SUM(SUM(CLAMP(fare, 0, 9))) OVER ()": ("SUM(fare in [0, 9])", (), 1),
    "COUNT(fare) / SUM(COUNT(fare)) OVER ()": ("COUNT(fare)", (), 1),
    "SUM(1) / (2 * SUM(SUM(1)) OVER ())": ("COUNT(*)", (), 0.5),
    "COUNT(*) * 1.0 / (SELECT COUNT(*) FROM t WHERE fare > 2)": ("COUNT(*)", (), 1),
    "COUNT(*) / NULLIF((SELECT COUNT(*) AS n FROM t WHERE fare > 2), 0)": ("COUNT(*)", (), 1),
    "RATIO_TO_REPORT(COUNT(*)) OVER ()": ("COUNT(*)", (), 1),
    "100 * RATIO_TO_REPORT(SUM(CLAMP(fare, 0, 9))) OVER (PARTITION BY zone)": ("SUM(fare in [0, 9])", ("zone",), 100),
}
RUNNING = {
    "SUM(COUNT(*)) OVER ()": ("COUNT(*)", (), "", False, 1),
    "SUM(COUNT(*)) OVER (ORDER BY zone)": ("COUNT(*)", (), "zone", False, 1),
    "SUM(COUNT(*)) OVER (PARTITION BY zone ORDER BY 7 - month DESC)": ("COUNT(*)", ("zone",), "late DESC", False, 1),
    "SUM(COUNT(*)) OVER (ORDER BY zone, late ROWS UNBOUNDED PRECEDING)": ("COUNT(*)", (), "zone, late", False, 1),
    "SUM(SUM(CLAMP(fare, 0, 9))) OVER (ORDER BY late NULLS FIRST RANGE UNBOUNDED PRECEDING) / 60":
        ("SUM(fare in [0, 9])", (), "late NULLS FIRST", False, 1 / 60),
    "100.0 * SUM(COUNT(*)) OVER (ORDER BY late) / SUM(COUNT(*)) OVER ()": ("COUNT(*)", (), "late", True, 100),
    "SUM(COUNT(*)) OVER (ORDER BY late) / (SELECT COUNT(*) FROM t WHERE fare > 2)": ("COUNT(*)", (), "late", True, 1),
}  # fmt: skip
REFUSED = {
    "SUM(COUNT(*)) OVER (PARTITION BY zone) / SUM(COUNT(*)) OVER ()": ("a share of a total", 13),
    "SQRT(COUNT(*) / SUM(COUNT(*)) OVER ())": ("SQRT of a share", 13),
    "COUNT(*) / SUM(COUNT(fare)) OVER ()": ("a share of a total", 24),
    "COUNT(*) / MAX(COUNT(*)) OVER ()": ("MAX over groups (OVER)", 24),
    "SUM(COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY zone)) OVER ()": ("a window beside LAG over groups", 17),
    "RANK() OVER (ORDER BY COUNT(*) DESC)": ("RANK over groups (OVER)", 13),
    "COUNT(*) / SUM(COUNT(*)) OVER (ORDER BY zone)": ("a share of a total", 24),
    "SUM(COUNT(*)) OVER (ORDER BY COUNT(*))": ("aggregate COUNT in ORDER BY", 39),
    "SUM(COUNT(*)) OVER (ORDER BY zone, zone)": ("ORDER BY of another value", 48),
    "SUM(COUNT(*)) OVER (ORDER BY late ROWS UNBOUNDED PRECEDING)": (
        "a running total over ROWS that are alike in ORDER BY",
        42,
    ),
    "SUM(COUNT(*)) OVER (ORDER BY zone ROWS 2 PRECEDING)": ("a moving window over groups", 13),
    "SUM(COUNT(*)) OVER (ORDER BY zone ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)": (
        "a moving window over groups",
        13,
    ),
    "SUM(COUNT(*)) OVER w": ("a window with more than PARTITION BY and ORDER BY", 13),
    "SUM(COUNT(*)) OVER (PARTITION BY zone ORDER BY late) / SUM(COUNT(*)) OVER ()": ("a share of a total", 13),
    "SUM(AVG(CLAMP(fare, 0, 9))) OVER (ORDER BY zone)": ("a share of a total", 13),
    "COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY month)": ("PARTITION BY of another value", 50),
    "COUNT(*) * COUNT(*) / SUM(COUNT(*)) OVER ()": ("a share of a total", 35),
    "AVG(CLAMP(fare, 0, 9)) / SUM(AVG(CLAMP(fare, 0, 9))) OVER ()": ("a share of a total", 38),
    "NULLIF(COUNT(*), 0) / SUM(COUNT(*)) OVER ()": ("NULLIF of a share", 13),
    "COUNT(*) / SUM(COUNT(*)) OVER () / 1e-320": (
        "a share of a total times a number that is too large or too small",
        24,
    ),
    "COUNT(*) / SUM(COUNT(*)) OVER () / 1e200 / 1e200": (
        "a share of a total times a number that is too large or too small",
        24,
    ),
    "-1 * COUNT(*) / SUM(COUNT(*)) OVER ()": ("a share of a total", 29),
    "COUNT(*) / (SELECT COUNT(*) FROM t)": ("a share of a total of other rows", 25),
    "COUNT(*) / (SELECT COUNT(*) FROM t WHERE fare > 2 LIMIT 1)": ("a share of a total of other rows", 25),
    "COUNT(*) / (SELECT COUNT(*) FROM u WHERE fare > 2)": ("a share of a total of other rows", 25),
}


def _text(share):
    """Return a question with a share among its columns."""
    return f"SELECT zone, {share} AS share, 7 - month AS late FROM t WHERE fare > 2 GROUP BY zone, 7 - month"


def refusal(text):
    """Return the refusal of a question."""
    with pytest.raises(UnsupportedQuery) as caught:
        parse(text, table="t", schema=SCHEMA)
    return caught.value


@pytest.mark.parametrize("share", SHARES)
def test_shares_of_a_total_are_read(share):
    """As people and tools write them: windows over aggregates, a subquery about the same rows, with numbers around."""
    asked = parse(_text(share), table="t", schema=SCHEMA)
    (output,) = asked.outputs

    part, over, factor = SHARES[share]
    assert "share" == output.aggregate.form
    assert (part, over, factor) == (str(output.aggregate.part), output.aggregate.over, output.aggregate.factor)


@pytest.mark.parametrize("number", RUNNING)
def test_running_totals_are_read(number):
    """As people and tools write them: in an order of grouping columns, within partitions, as parts of the whole."""
    (output,) = parse(_text(number), table="t", schema=SCHEMA).outputs
    told, order = output.aggregate, ", ".join(map(str, output.aggregate.order))

    assert "running" == told.form
    assert RUNNING[number] == (str(told.part), told.over, order, told.divided, pytest.approx(told.factor))


@pytest.mark.parametrize("share", REFUSED)
def test_other_arithmetic_with_totals_is_refused_with_its_place(share):
    """Totals by themselves, of other things or rows, running ones, and what computes with a share: by name, free."""
    refused = refusal(_text(share))
    construct, place = REFUSED[share]

    assert construct == refused.construct
    assert 1 == refused.position[0]
    assert abs(refused.position[1] - place) <= 15


def test_shares_need_groups():
    """Without groups there is one total and no part; values that may be negative have no shares."""
    share = "COUNT(*) / SUM(COUNT(*)) OVER ()"

    assert "a share of a total" == refusal(f"SELECT {share} FROM t").construct
    with pytest.raises(InvalidBounds, match="values that may be negative"):
        parse(_text("SUM(CLAMP(fare, -1, 9)) / SUM(SUM(CLAMP(fare, -1, 9))) OVER ()"), table="t", schema=SCHEMA)


def test_a_share_is_ordered_by_its_text_or_its_place():
    """ORDER BY takes the same text, the alias, or the number of the column."""
    for order in ("COUNT(*) / SUM(COUNT(*)) OVER ()", "share", "2"):
        text = f"SELECT zone, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM t GROUP BY zone ORDER BY {order} DESC"
        assert "share" == parse(text, table="t", schema=SCHEMA).aftermath.order[0].key.name


def test_having_and_qualify_hide_groups_of_which_totals_are_made():
    """A share that is shown beside a condition is that of all groups, and the answer and its plan say so."""
    share = "100 * COUNT(*) / SUM(COUNT(*)) OVER ()"
    named = {"keys": {"zone": ["centre", "port"]}, "absolute": 5, "confidence": 0.999}
    with Session(ROWS, name="t", budget=Budget(mu=20)) as session:
        for cut in (f"HAVING {share} > 50", "QUALIFY pct > 50", "HAVING pct > 50 QUALIFY pct < 99"):
            text = f"SELECT zone, {share} AS pct FROM t GROUP BY zone {cut}"
            answer = session.sql(text, **named)
            assert ["centre"] == answer.keys["zone"].to_pylist()
            assert abs(answer.value[0] - 75) < 10
            assert "hides are in the totals" in answer.about
            assert "hides are in the totals" in session.plan(text, **named).about


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
    """Both ways: a share of a total, and one share without groups."""
    advice = refusal("SELECT zone, COUNT(*) / SUM(COUNT(fare)) OVER () FROM t GROUP BY zone").next_step
    running = re.search(r"SUM\(COUNT\(\*\)\) OVER \(ORDER BY zone\)", advice).group()
    whole = re.search(r"COUNT\(\*\) / SUM\(COUNT\(\*\)\) OVER \(\)", advice).group()
    single = re.search(r"COUNT\(\*\) FILTER .* COUNT\(\*\)$", advice).group()
    with Session(ROWS, name="t", budget=Budget(mu=20)) as session:
        shares = session.sql(f"SELECT zone, {whole} AS share FROM t GROUP BY zone", keys={"zone": ["centre", "port"]},
                             absolute=0.05, confidence=0.999)  # fmt: skip
        sums = session.sql(f"SELECT zone, {running} AS n FROM t GROUP BY zone", keys={"zone": ["port", "centre"]},
                           absolute=30, confidence=0.999999)  # fmt: skip
        share = session.sql(f"SELECT {single} AS share FROM t", absolute=0.05, confidence=0.999)

    assert np.abs(shares.value - [0.75, 0.25]).max() < 0.1
    assert np.abs(sums.value - [1200, 900]).max() <= 30
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


def test_a_share_that_is_only_compared_is_refused_with_what_to_write():
    """It is a number of its own, which needs a target and an interval."""
    text = "SELECT zone, COUNT(*) AS c FROM t GROUP BY zone QUALIFY COUNT(*) / SUM(COUNT(*)) OVER () > 0.2"
    with pytest.raises(UnsupportedQuery, match="not selected") as caught:
        parse(text, table="t", schema=SCHEMA)

    assert "compare its alias" in caught.value.next_step
