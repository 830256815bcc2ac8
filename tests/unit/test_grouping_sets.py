"""CUBE, ROLLUP and GROUPING SETS: rows of tables that agree, NULL where a column is rolled up, and refusals by name."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import farthing
from farthing import Budget, Session
from farthing.cli.app import app
from farthing.engines.duck.engine import DuckDBEngine
from farthing.errors import InvalidBounds, InvalidKeys, InvalidOption, InvalidTarget, OutOfReach, UnsupportedQuery
from farthing.query.schema import Schema, Type
from farthing.sql import parse
from farthing.workloads import marginals

ROWS = 20_000
RANDOM = np.random.default_rng(11)
A = np.array(["x", "y", None], object)[RANDOM.integers(0, 3, ROWS)]
B = RANDOM.integers(0, 4, ROWS)
DAYS = np.datetime64("2024-01-01") + RANDOM.integers(0, 60, ROWS)
TABLE = pa.table({"a": pa.array(A.tolist()), "b": B, "day": pa.array(DAYS)})
KEYS = {"a": ["x", "y", None], "b": range(4)}
CUBE = "SELECT a, b, GROUPING(a, b) AS level, COUNT(*) AS n FROM t GROUP BY CUBE (a, b)"
SCHEMA = Schema.of({"a": Type.STRING, "b": Type.INTEGER, "day": Type.DATE})


def opened(**options):
    """Open the table with a large budget."""
    return Session(TABLE, **{"budget": Budget(mu=6), "name": "t"} | options)


def sets(grouped: str) -> tuple[tuple[str, ...], ...]:
    """Return the grouping sets of a GROUP BY."""
    return parse(f"SELECT COUNT(*) FROM t GROUP BY {grouped}", table="t", schema=SCHEMA).sets


@pytest.mark.parametrize(
    ("grouped", "expected"),
    [
        ("CUBE (a, b)", [("a", "b"), ("a",), ("b",), ()]),
        ("ROLLUP (a, b, day)", [("a", "b", "day"), ("a", "b"), ("a",), ()]),
        ("ROLLUP (a, (b, day))", [("a", "b", "day"), ("a",), ()]),
        ("GROUPING SETS ((a, b), b, ())", [("a", "b"), ("b",), ()]),
        ("GROUPING SETS (day, CUBE (a))", [("day",), ("a",), ()]),
        ("a, CUBE (b)", [("a", "b"), ("a",)]),
        ("ROLLUP (a), ROLLUP (b)", [("a", "b"), ("a",), ("b",), ()]),
        ("a, b", []),
    ],
)
def test_sets_are_those_of_sql(grouped, expected):
    """Parts that stand beside each other are crossed, as SQL has it; a plain GROUP BY has no sets."""
    assert sets(grouped) == tuple(expected)


def test_rows_are_the_counts_of_every_set():
    """Each row is near the count of its set; a rolled-up column is NULL, and GROUPING tells it from a key of NULL."""
    with opened() as session:
        rows = session.sql(CUBE, keys=KEYS, absolute=10, confidence=0.999999, cap="all").rows()
    exact = Counter(zip(A.tolist(), B.tolist(), strict=True))
    assert len(rows) == 12 + 3 + 4 + 1
    assert [row["level"] for row in rows] == [0] * 12 + [1] * 3 + [2] * 4 + [3]
    for row in rows:
        by_a, by_b = not row["level"] & 2, not row["level"] & 1
        truth = sum(
            many for (a, b), many in exact.items() if (not by_a or a == row["a"]) and (not by_b or b == row["b"])
        )
        assert row["n_lower"] <= truth <= row["n_upper"]
        assert abs(row["n"] - truth) <= 10
        assert (row["b"] is None) is not by_b
        assert row["met"]


def test_all_sets_agree_and_cost_what_their_release_costs():
    """Rows of one set add up to those of another; the price is the release's, paid once by whichever asks first."""
    with opened() as session:
        answer = session.sql(CUBE, keys=KEYS, absolute=40)
        rows = answer.rows()
        total = rows[-1]["n"]
        for level in (0, 1, 2):
            assert sum(row["n"] for row in rows if row["level"] == level) == pytest.approx(total)
        again = session.release(marginals(["a", "b"], up_to=True), keys=KEYS, absolute=40)
        assert answer.paid.amount > again.paid.amount == 0
        assert again["a", "b"].value.reshape(-1) == pytest.approx([row["n"] for row in rows[:12]])
        assert session.spent == answer.paid
        sharper = answer.refine(absolute=20)
        assert sharper.to_arrow().column_names == ["a", "b", "level", "n", "n_lower", "n_upper", "met", "paid"]
        assert float(sharper.paid.amount) == pytest.approx(3 * float(answer.paid.amount), rel=1e-6)
        assert 0.85 < sharper.confidence_together < answer.confidence_together == answer.confidence
        assert 1 <= sharper.optimality().ratio < 1.02
        assert answer.trace().to_arrow().num_rows == 20


def test_the_data_are_asked_once(monkeypatch):
    """One question to the engine for all sets; HAVING, ORDER BY and LIMIT read what was released."""
    asked, real = [], DuckDBEngine.crossed
    monkeypatch.setattr(DuckDBEngine, "crossed", lambda *given: asked.append(1) or real(*given))
    after = " HAVING GROUPING(a, b) > 0 AND n > 100 ORDER BY level, n DESC LIMIT 2"
    with opened() as session:
        first = session.sql(CUBE + after, keys=KEYS, absolute=40).rows()
        whole = session.sql(CUBE, keys=KEYS, absolute=40).rows()
    assert len(asked) == 1
    by_a = sorted((row for row in whole if row["level"] == 1), key=lambda row: -row["n"])
    assert [row["n"] for row in first] == [row["n"] for row in by_a[:2]]


def test_expressions_and_conditions_by_sets():
    """Grouping columns may be expressions, rows may be filtered: the numbers are those of the filtered rows."""
    text = (
        "SELECT DATE_TRUNC('month', day) AS month, b, COUNT(*) AS n FROM t WHERE b < 2 "
        "GROUP BY ROLLUP (1, b) ORDER BY month, b"
    )
    keys = {"month": [date(2024, 1, 1), date(2024, 2, 1)], "b": [0, 1]}
    with opened() as session:
        rows = session.sql(text, keys=keys, absolute=15, confidence=0.999999, cap="all").rows()
    january = DAYS < np.datetime64("2024-02-01")
    truths = [((january == first) & (B == b)).sum() for first in (True, False) for b in (0, 1)]
    wanted = [truths[0], truths[1], sum(truths[:2]), truths[2], truths[3], sum(truths[2:]), sum(truths)]
    assert len(rows) == 7
    assert all(abs(row["n"] - truth) <= 15 for row, truth in zip(rows, wanted, strict=True))
    assert [row["b"] for row in rows] == [0, 1, None, 0, 1, None, None]


def test_grouping_of_an_alias_is_that_of_its_expression():
    """GROUPING(early) tells of what is grouped by under that name, also in HAVING, and ORDER BY may name it."""
    text = "SELECT b < 2 AS early, a, GROUPING(early) AS level, COUNT(*) AS n FROM t GROUP BY ROLLUP (early, a)"
    with opened() as session:
        keys = {"early": [True, False], "a": KEYS["a"]}
        answer = session.sql(f"{text} HAVING GROUPING(early) = 1", keys=keys, absolute=40)
        assert [(row["early"], row["a"], row["level"]) for row in answer.rows()] == [(None, None, 1)]


def test_grouping_within_an_expression_is_refused_with_what_would_do():
    """CASE WHEN GROUPING(a) = 1 says to select it by itself."""
    text = "SELECT CASE WHEN GROUPING(a) = 1 THEN 'all' ELSE a END AS c, COUNT(*) AS n FROM t GROUP BY ROLLUP (a)"
    with opened() as session, pytest.raises(UnsupportedQuery, match="select it by itself"):
        session.sql(text, keys=KEYS, absolute=40)


def test_explain_and_plan_tell_the_price():
    """EXPLAIN and plan say what is paid, and nothing is paid for them; a refusal has the plan's words."""
    with opened() as session:
        plan = session.sql("EXPLAIN " + CUBE, keys=KEYS, absolute=40)
        assert plan.worst_price == session.plan(CUBE, keys=KEYS, absolute=40).worst_price
        assert not session.history()
        served = plan.to_dict()
        assert (served["advice"], served["prices"], served["fits"]) == ("", [], True)
        assert any("residuals" in step for step in plan.steps)
        with pytest.raises(OutOfReach) as refused:
            session.sql(CUBE, keys=KEYS, absolute=0.1)
        hard = session.plan(CUBE, keys=KEYS, absolute=0.1)
        assert hard.advice in str(refused.value)
        assert session.sql(CUBE, keys=KEYS, absolute=40).paid == plan.worst_price


REFUSED = {
    "a sum": (UnsupportedQuery, "SELECT a, SUM(CLAMP(b, 0, 3)) FROM t GROUP BY CUBE (a)", {}),
    "a count and a mean": (UnsupportedQuery, "SELECT COUNT(*), AVG(CLAMP(b, 0, 3)) FROM t GROUP BY CUBE (a)", {}),
    "a count of values": (UnsupportedQuery, "SELECT COUNT(b) FROM t GROUP BY ROLLUP (a)", {}),
    "a filtered count": (UnsupportedQuery, "SELECT COUNT(*) FILTER (WHERE b > 1) FROM t GROUP BY ROLLUP (a)", {}),
    "a set twice": (UnsupportedQuery, "SELECT COUNT(*) FROM t GROUP BY a, CUBE (a, b)", {}),
    "no columns": (UnsupportedQuery, "SELECT COUNT(*) FROM t GROUP BY GROUPING SETS (())", {}),
    "WITH ROLLUP": (UnsupportedQuery, "SELECT COUNT(*) FROM t GROUP BY a WITH ROLLUP", {}),
    "GROUP BY ALL": (UnsupportedQuery, "SELECT a, COUNT(*) FROM t GROUP BY ALL, CUBE (b)", {}),
    "too many sets": (
        UnsupportedQuery,
        f"SELECT COUNT(*) FROM t GROUP BY CUBE ({', '.join(f'b + {n}' for n in range(13))})",
        {},
    ),
    "GROUPING without sets": (UnsupportedQuery, "SELECT GROUPING(a), COUNT(*) FROM t GROUP BY a", {}),
    "GROUPING of another column": (UnsupportedQuery, "SELECT GROUPING(b), COUNT(*) FROM t GROUP BY CUBE (a)", {}),
    "GROUPING of nothing": (UnsupportedQuery, "SELECT GROUPING(), COUNT(*) FROM t GROUP BY CUBE (a)", {}),
    "GROUPING that is not selected": (
        UnsupportedQuery,
        "SELECT COUNT(*) FROM t GROUP BY CUBE (a) HAVING GROUPING(a) = 1",
        {},
    ),
    "no keys": (InvalidKeys, CUBE, {"keys": None}),
    "keys of one column": (InvalidKeys, CUBE, {"keys": {"a": ["x"]}}),
    "private keys": (InvalidKeys, CUBE, {"keys": "private"}),
    "a share": (InvalidTarget, CUBE, {"share": 0.9}),
    "no negative values": (InvalidTarget, CUBE, {"nonnegative": True}),
    "dropped rows": (InvalidTarget, CUBE, {"on_miss": "drop"}),
    "a mechanism": (InvalidTarget, CUBE, {"mechanism": "log", "relative": 0.1}),
    "bounds that are chosen": (InvalidBounds, CUBE, {"bounds": farthing.Bounds.auto()}),
    "too many cells": (InvalidOption, CUBE, {"keys": {"a": [f"{n}" for n in range(20_000)], "b": range(10_000)}}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_refused_by_name_and_free(case):
    """Each refusal is an error of its own kind; nothing is charged."""
    kind, text, options = REFUSED[case]
    with opened() as session:
        with pytest.raises(kind):
            session.sql(text, **{"keys": KEYS, "absolute": 40} | options)
        assert not session.history()


def test_a_workload_of_questions_refuses_sets():
    """A file of questions has plain ones only: grouping sets are one question with many tables."""
    with opened() as session, pytest.raises(UnsupportedQuery, match="grouping sets"):
        session.workload({"all": {"text": CUBE, "keys": KEYS}}, absolute=40)


def test_a_join_beside_sets_is_refused():
    """Tables at once are of the protected table alone."""
    with (
        opened(public={"names": pa.table({"b": [0, 1], "name": ["p", "q"]})}) as session,
        pytest.raises(UnsupportedQuery, match="beside a join"),
    ):
        session.sql("SELECT a, COUNT(*) FROM t JOIN names USING (b) GROUP BY CUBE (a)", keys={"a": ["x"]}, absolute=40)


def test_the_command_line_asks_and_plans_by_sets(tmp_path, monkeypatch):
    """`farthing ask` and `farthing plan` take CUBE as any question; EXPLAIN shows the plan."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "t.parquet")

    def run(*args):
        """Run the command line in this process."""
        ended = CliRunner().invoke(app, list(args))
        assert ended.exit_code == 0, ended.output
        return ended.stdout

    run("init", "t.parquet", "--epsilon", "2", "--delta", "1e-6", "--keys", "b=0..3")
    asked = (CUBE, "--keys", "a=x,y,NULL", "--absolute", "60")
    assert "residuals" in run("ask", "EXPLAIN " + CUBE, *asked[1:])
    priced = json.loads(run("plan", *asked, "--json"))
    facts = json.loads(run("ask", *asked, "--json"))
    assert len(facts["answers"]) == 20
    assert facts["paid"] == priced["worst_price"]
    assert "NULL" in run("ask", *asked, "--chart", "answer.svg")
    assert Path("answer.svg").exists()
