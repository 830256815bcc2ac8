"""`farthing workload`, and the looks that `farthing ask` shows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from farthing.cli.app import app

pytestmark = pytest.mark.thorough

SQL = """
-- name: zones
SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone;
SELECT COUNT(*) AS n FROM rides WHERE zone = 'a;b'; -- no split in a text
;
-- name: mean
SELECT AVG(CLAMP(minutes, 0, 60)) AS m FROM rides
"""
TOML = """
[zones]
sql = "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"
keys = ["zone=b,c"]
absolute = 60
[expensive]
sql = "SELECT COUNT(*) AS n FROM rides"
absolute = 0.5
cap = "mu=0.9"
max-rows = 1
"""


def run(*args: str):
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(args))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with a table, its settings and two files of questions."""
    monkeypatch.chdir(tmp_path)
    zones = ["a"] * 9_000 + ["b"] * 3_000 + ["c"] * 400
    pq.write_table(pa.table({"zone": zones, "minutes": [20.0] * len(zones)}), "rides.parquet")
    made = run("init", "rides.parquet", "--epsilon", "1", "--delta", "1e-6", "--keys", "zone=a,b,c")
    assert made.exit_code == 0, made.stderr
    Path("report.sql").write_text(SQL, encoding="utf-8")
    Path("report.toml").write_text(TOML, encoding="utf-8")
    return tmp_path


def test_a_file_of_statements():
    """Statements are split at semicolons outside of texts, named by comments, and answered in order."""
    ended = run("workload", "report.sql", "--relative", "5%", "--absolute", "50", "--json")
    assert 0 == ended.exit_code, ended.stderr
    facts = json.loads(ended.stdout)

    assert ["zones", "q2", "mean"] == list(facts["answers"])
    assert ["a", "b", "c"] == [row["zone"] for row in facts["answers"]["zones"]["answers"]]
    assert facts["complete"]
    again = run("workload", "report.sql", "--relative", "5%", "--absolute", "50")
    assert 3 == again.stdout.count("  free ")
    assert "3 of 3 questions answered" in again.stdout


def test_a_table_of_questions_with_options_of_their_own():
    """Options of a question go before the common ones; what does not fit ends with code 3 and says what would."""
    ended = run("workload", "report.toml", "--relative", "5%", "--absolute", "50", "--json")
    assert 3 == ended.exit_code, ended.stderr
    facts = json.loads(ended.stdout)

    assert (["zones"], ["expensive"]) == (list(facts["answers"]), list(facts["unanswered"]))
    assert ["b", "c"] == [row["zone"] for row in facts["answers"]["zones"]["answers"]]
    assert ["within 60", "within 0.5"] == [row["goal"] for row in facts["questions"]]
    shown = run("workload", "report.toml", "--absolute", "50", "--order", "cheapest")
    assert 3 == shown.exit_code
    assert "it would fit" in shown.stdout


def test_a_dry_run_and_a_cap():
    """Nothing is spent by a dry run; --max-epsilon is for all together."""
    ended = run("workload", "report.sql", "--absolute", "50", "--dry-run", "--max-epsilon", "0.2")
    assert 3 == ended.exit_code
    assert "of 3 questions fit, at their worst prices" in ended.stdout
    assert "allowed epsilon 0.2" in ended.stdout
    assert 0 == json.loads(run("status", "--json").stdout)["spent"]["mu"]


def test_sharing_a_loss():
    """--strategy together spends the cap; what cannot share is refused in the words of the command line."""
    Path("counts.sql").write_text(SQL[: SQL.index("-- name: mean")], encoding="utf-8")
    ended = run("workload", "counts.sql", "--absolute", "5", "--strategy", "together", "--cap", "mu=0.1", "--json")
    assert 0 == ended.exit_code, ended.stderr
    assert 0.09 < json.loads(ended.stdout)["paid"]["mu"] <= 0.1
    refused = run("workload", "report.sql", "--absolute", "5", "--strategy", "together")
    assert 2 == refused.exit_code
    assert "'mean' cannot share a loss" in refused.stderr
    assert "leave --strategy out" in refused.stderr


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.sql", None, "the questions cannot be read"),
        ("empty.sql", "-- nothing", "no question in the file"),
        ("broken.sql", "SELECT 'x", "the file is not SQL"),
        ("broken.toml", "[a", "the file is not TOML"),
        ("bare.toml", "a = 3", "'a' is not a question"),
        ("odd.toml", '[a]\nsql = "SELECT COUNT(*) AS n FROM rides"\nabsolut = 3', "did you mean 'absolute'?"),
        ("twice.sql", "-- name: a\nSELECT 1;\n-- name: a\nSELECT 2", "two questions are called 'a'"),
        ("bad.sql", "SELECT COUNT(*) AS n FROM rides; SELECT nope FROM rides", "in question 'q2'"),
        ("same.sql", "SELECT COUNT(*) AS n FROM rides; SELECT COUNT(*) AS m FROM rides", "are the same question"),
        ("kind.txt", "SELECT 1", "unknown kind of file"),
    ],
)
def test_refused_in_one_line(name, text, said):
    """Bad files are refused before anything is asked."""
    if text is not None:
        Path(name).write_text(text, encoding="utf-8")
    ended = run("workload", name, "--absolute", "50")

    assert ended.exit_code in {2, 4}
    assert said in ended.stderr
    assert 1 == len(ended.stderr.splitlines())
    assert 0 == json.loads(run("status", "--json").stdout)["spent"]["mu"]


TOTAL = "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone ORDER BY n DESC LIMIT 1"


def test_ask_shows_its_looks():
    """--trace prints them below the answer, as a list in JSON, and to stderr beside CSV; --trace-chart draws them."""
    how = ("--relative", "5%", "--absolute", "50")
    shown = run("ask", TOTAL, *how, "--trace", "--trace-chart", "looks.svg")
    assert 0 == shown.exit_code, shown.stderr
    assert "only a group's last interval is promised" in shown.stdout
    assert "<svg" in Path("looks.svg").read_text(encoding="utf-8")
    facts = json.loads(run("ask", TOTAL, "--relative", "2%", "--absolute", "50", "--trace", "--json").stdout)
    assert facts["answers"][0]["n"] == facts["trace"][-1]["value"]
    assert {"a"} == {row["zone"] for row in facts["trace"]}
    assert "trace" not in json.loads(run("ask", TOTAL, *how, "--json").stdout)
    rows = run("ask", TOTAL, *how, "--trace", "--csv")
    assert 2 == len(rows.stdout.splitlines())
    assert "final" in rows.stderr


def test_explain_has_no_looks():
    """A plan has nothing to trace, and a picture that cannot be written is refused before anything is paid."""
    ended = run("ask", f"EXPLAIN {TOTAL}", "--absolute", "50", "--trace")
    assert "EXPLAIN has no rows" in ended.stderr
    assert "unknown chart format" in run("ask", TOTAL, "--absolute", "50", "--trace-chart", "looks.pdf").stderr


def test_a_miss_that_raises_is_refused():
    """--on-miss raise would end the workload at its first miss; for all questions or for one it is refused."""
    Path("own.toml").write_text('[a]\nsql = "SELECT COUNT(*) AS n FROM rides"\non-miss = "raise"', encoding="utf-8")
    for ended in (
        run("workload", "report.sql", "--absolute", "50", "--on-miss", "raise"),
        run("workload", "own.toml", "--absolute", "50"),
    ):
        assert 2 == ended.exit_code
        assert "in a workload" in ended.stderr
    assert 0 == json.loads(run("status", "--json").stdout)["spent"]["mu"]


def test_a_target_out_of_reach_is_told():
    """A dry run says so in the words of the command line."""
    ended = run("workload", "report.sql", "--absolute", "0.1", "--dry-run")
    assert "out of reach" in ended.stdout
    assert "fits this cap" in ended.stdout


@pytest.mark.parametrize(("option", "typed"), [("--trials", "0"), ("--trials", "-1"), ("--seed", "-1")])
def test_compare_refuses_numbers_below_their_least(option, typed):
    """The refusal has the least number and an example of the option."""
    ended = run("compare", option, typed)
    assert 2 == ended.exit_code
    assert ("write it as in --trials 1000" if option == "--trials" else "write it as in --seed 1") in ended.stderr


@pytest.mark.thorough
def test_the_picture_of_a_comparison_tells_what_it_cannot_draw():
    """A logarithmic axis has no zero: methods that return next to nothing are named above the picture."""
    ended = run("compare", "--quick", "--task", "zipf300", "--trials", "2", "--chart", "zipf.svg")
    assert 0 == ended.exit_code, ended.stderr
    assert "not drawn: at epsilon 0.1" in Path("zipf.svg").read_text(encoding="utf-8")


def test_the_largest_first():
    """--strategy largest spends the cap on the largest counts; exit code 3 tells that not all were picked."""
    names = [f"-- name: {zone}\nSELECT COUNT(*) AS n FROM rides WHERE zone = '{zone}'" for zone in "abc"]
    Path("counts.sql").write_text(";\n".join(names), encoding="utf-8")
    ended = run("workload", "counts.sql", "--relative", "10%", "--strategy", "largest", "--cap", "mu=0.02", "--json")
    assert ended.exit_code in {0, 3}, ended.stderr
    facts = json.loads(ended.stdout)
    assert "a" in facts["answers"]
    assert facts["paid"]["mu"] <= 0.02
