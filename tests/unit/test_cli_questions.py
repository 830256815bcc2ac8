"""Every kind of question on the command line: several aggregates, joins, found keys, chosen bounds, plans in SQL."""

from __future__ import annotations

import csv
import io
import json
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from farthing.cli import show
from farthing.cli.app import app

pytestmark = pytest.mark.thorough

BOTH = "SELECT zone, COUNT(*) AS n, AVG(fare) AS mean FROM rides GROUP BY zone"
CLAMPS = ("--lower", "0", "--upper", "20")
ERRORS = ("--absolute", "n=150", "--absolute", "mean=1")


def run(*args: str):
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(args))


def told(*args: str) -> dict:
    """Return what a command prints for machines."""
    ended = run(*args, "--json")
    assert ended.exit_code == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with 12,000 rides of 300 riders, public zones and protected payments."""
    monkeypatch.chdir(tmp_path)
    rows = range(12_000)
    rides = {
        "rider": [i % 300 for i in rows],
        "zone": ["abc"[i % 3] for i in rows],
        "fare": [float(i % 20) if i % 7 else None for i in rows],
        "day": [date(2024, 1, 1) + timedelta(days=i % 60) for i in rows],
    }
    pq.write_table(pa.table(rides), "rides.parquet")
    pq.write_table(pa.table({"rider": list(range(300)), "card": [i % 2 == 0 for i in range(300)]}), "riders.parquet")
    Path("zones.csv").write_text("id,area\na,1\nb,1\nc,2\nd,2\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def rows(folder) -> Path:
    """The same, each ride a unit, with the zones declared public."""
    budget = ("--epsilon", "2", "--delta", "1e-6", "--keys-delta", "1e-7")
    made = run(
        "init", "rides.parquet", "--unit", "row", *budget, "--public", "zones=zones.csv", "--keys", "zone=zones.id"
    )
    assert made.exit_code == 0, made.stderr
    return folder


@pytest.fixture
def riders(folder) -> Path:
    """The same, each rider a unit, with a protected table beside the rides."""
    made = run("init", "rides.parquet", "--unit", "rider", "--mu", "1", "--protected", "riders.parquet",
               "--public", "zones.csv", "--max-rows", "40", "--max-groups", "2")  # fmt: skip
    assert made.exit_code == 0, made.stderr
    assert "protected table riders: rider (integer), card (boolean)" in made.stdout
    return folder


@pytest.mark.usefixtures("rows")
def test_several_aggregates_have_a_value_and_an_interval_each():
    """The table, JSON and CSV hold the columns of every aggregate, in the order of SELECT."""
    shown = run("ask", BOTH, *CLAMPS, *ERRORS).stdout
    assert ["zone", "n", "95%", "interval", "mean", "95%", "interval", "met"] == shown.splitlines()[1].split()[:8]
    assert "within 150 of n; 1 of mean" in shown
    facts = told("ask", BOTH, *CLAMPS, *ERRORS)
    names = ["zone", "n", "n_lower", "n_upper", "mean", "mean_lower", "mean_upper", "met", "paid"]
    assert names == list(facts["answers"][0])
    assert (0.0, "within 150 of n; 1 of mean") == (facts["paid"]["mu"], facts["goal"])
    table = csv.DictReader(io.StringIO(run("ask", BOTH, *CLAMPS, *ERRORS, "--csv").stdout))
    assert names == table.fieldnames


@pytest.mark.usefixtures("rows")
def test_the_column_that_missed_is_named():
    """Of several columns the table says which one is wider than was asked; zone d has no rides."""
    shown = run("ask", BOTH, *CLAMPS, *ERRORS).stdout
    assert ["a", "b", "c", "d"] == [line.split()[0] for line in shown.splitlines() if " .. " in line]
    assert "no: " in next(line for line in shown.splitlines() if line.startswith(" d"))


@pytest.mark.usefixtures("rows")
def test_order_of_the_sql_is_the_order_of_the_rows():
    """ORDER BY decides which rows come first and which are cut; without it the largest do."""
    sql = "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"
    first = run("ask", f"{sql} ORDER BY n LIMIT 3", "--absolute", "150", "--rows", "1").stdout
    assert ["d"] == [line.split()[0] for line in first.splitlines() if " .. " in line]
    assert "the first 1 of 3 groups" in first
    assert "the 1 largest of 4 groups" in run("ask", sql, "--absolute", "150", "--rows", "1").stdout


@pytest.mark.usefixtures("rows")
def test_keys_are_of_the_alias_and_its_type():
    """An expression's keys go by its alias: calendars, ranges with steps, columns of public tables."""
    month = "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM rides GROUP BY month"
    found = told("ask", month, "--keys", "month=2024-01..2024-03", "--absolute", "200")["answers"]
    assert ["2024-01-01", "2024-02-01", "2024-03-01"] == [row["month"] for row in found]
    band = "SELECT floor(fare / 5) * 5 AS band, COUNT(*) AS n FROM rides GROUP BY band"
    found = told("ask", band, "--keys", "band=0..15..5", "--absolute", "200")["answers"]
    assert [0.0, 5.0, 10.0, 15.0] == [row["band"] for row in found]
    area = "SELECT z.area, COUNT(*) AS n FROM rides JOIN zones z ON zone = z.id GROUP BY z.area"
    found = told("ask", area, "--keys", "area=zones.area", "--absolute", "200", "--max-rows", "1")["answers"]
    assert [1, 2] == [row["area"] for row in found]


@pytest.mark.usefixtures("rows")
def test_ranks_quantiles_and_clamps_reach_the_session():
    """A plain --rank is for the quantile alone; --nonnegative is said."""
    sql = "SELECT COUNT(*) AS n, MEDIAN(fare) AS m FROM rides"
    facts = told("ask", sql, *CLAMPS, "--absolute", "n=150", "--rank", "5%", "--nonnegative")
    assert facts["goal"] == "within 150 of n; 5 % of the ranks of m"
    assert "below zero are shown as zero" in facts["about"]
    assert 7 < facts["answers"][0]["m"] < 13


@pytest.mark.usefixtures("rows")
def test_private_keys_are_found_and_kept():
    """--keys private tells the zones that exist, and finds the same ones again free of charge."""
    args = ("ask", "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone", "--keys", "private", "--absolute", "200",
            "--found-above", "400")  # fmt: skip
    first, again = told(*args), told(*args)
    assert {"a", "b", "c"} == {row["zone"] for row in first["answers"]}
    assert first["paid"]["mu"] > 0 == again["paid"]["mu"]


@pytest.mark.usefixtures("rows")
def test_explain_is_a_plan_and_free():
    """EXPLAIN in the text prints what `farthing plan` prints, and spends nothing."""
    sql = "SELECT COUNT(*) AS n FROM rides"
    assert run("ask", f"EXPLAIN {sql}", "--absolute", "50").stdout == run("plan", sql, "--absolute", "50").stdout
    assert "worst_price" in told("ask", f"EXPLAIN {sql}", "--absolute", "50")
    assert [] == told("status")["history"]


@pytest.mark.usefixtures("rows")
def test_googlesql_runs_as_pasted():
    """A target or a loss in the text needs none beside it."""
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({}) COUNT(*) AS n FROM rides"
    assert told("ask", clause.format("absolute_error = 150"))["target"]["absolute"] == 150
    assert 0 < told("ask", clause.format("epsilon = 0.1") + " WHERE fare > 3")["paid"]["epsilon"] <= 0.1


@pytest.mark.usefixtures("rows")
def test_charts_are_of_one_column():
    """--column names which one; by default it is the first."""
    first, other = (("--chart", "first.svg"), ("--chart", "other.svg", "--column", "mean"))
    assert [0, 0] == [run("ask", BOTH, *CLAMPS, *ERRORS, *how).exit_code for how in (first, other)]
    drawn = [Path(name).read_text(encoding="utf-8") for name in ("first.svg", "other.svg")]
    assert [False, True] == [">mean<" in svg for svg in drawn]


@pytest.mark.usefixtures("riders")
def test_protected_tables_are_joined_by_the_unit():
    """A second protected table is part of the question."""
    sql = "SELECT card, COUNT(*) AS n FROM rides JOIN riders USING (rider) GROUP BY card"
    assert [True, False] == [
        row["card"] for row in told("ask", sql, "--keys", "card=true,false", "--absolute", "2000")["answers"]
    ]


@pytest.mark.usefixtures("riders")
def test_bounds_are_reported_in_words_and_as_json():
    """The report is paid for once; other bounds of the same question are free."""
    shown = run("bounds", "fare", "--lower", "0", "--upper", "4", "--loss", "mu=0.3")
    assert shown.exit_code == 0, shown.stderr
    assert all(
        word in shown.stdout for word in ("max_rows cuts", "lower and upper cut", "paid epsilon", "left epsilon")
    )
    facts = told("bounds", "fare", "--lower", "0", "--upper", "19", "--loss", "mu=0.3", "--max-rows", "60")
    assert {"cut", "total_rows", "confidence", "hidden", "paid", "remaining"} == set(facts)
    assert {"value", "lower", "upper"} == set(facts["cut"]["value"])
    assert facts["paid"]["mu"] == 0


@pytest.mark.usefixtures("riders")
def test_bounds_of_groups_and_expressions():
    """--by takes columns and named expressions, with their keys; --where the condition."""
    by = ("--by", "zone", "--by", "month=DATE_TRUNC('month', day)", "--keys", "zone=zones.id", "--keys",
          "month=2024-01..2024-02", "--where", "fare > 2")  # fmt: skip
    facts = told("bounds", *by, "--loss", "mu=0.3", "--confidence", "90%")
    assert (0.9, None) == (facts["confidence"], facts["cut"]["value"])


@pytest.mark.usefixtures("riders")
def test_bounds_may_be_chosen():
    """--bounds auto chooses clamps and rows for one question, and says which."""
    facts = told("ask", "SELECT AVG(fare) AS mean FROM rides", "--bounds", "auto:mu=0.3", "--absolute", "3")
    assert "fare clamped into" in facts["about"]
    assert "rows" in facts["about"]


@pytest.mark.usefixtures("riders")
def test_missing_bounds_say_how():
    """A unit column needs bounds, whatever the question; settings may hold clamps too."""
    settings = Path("farthing.toml")
    text = settings.read_text(encoding="utf-8").replace("max_rows = 40", "lower = 0\nupper = 20")
    settings.write_text(text, encoding="utf-8")
    ended = run("ask", "SELECT AVG(fare) AS mean FROM rides", "--absolute", "3")
    assert (2, True) == (ended.exit_code, "add --max-rows 20" in ended.stderr)
    planned = told("plan", "SELECT AVG(fare) AS mean FROM rides", "--absolute", "3", "--max-rows", "5")
    assert "clamped into [0, 20]" in planned["about"]


@pytest.mark.usefixtures("rows")
def test_a_narrow_terminal_loses_no_digit(monkeypatch):
    """A table that is wider than the terminal keeps every number whole."""
    out = Console(width=40, file=io.StringIO(), force_terminal=True, color_system=None)
    monkeypatch.setattr(show, "console", lambda: out)
    assert run("ask", BOTH, *CLAMPS, *ERRORS).exit_code == 0
    text = out.file.getvalue()
    assert "…" not in text
    assert 40 == out.width
