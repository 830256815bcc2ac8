"""`farthing release`: many tables at once, shown, written or priced, with the right exit codes."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from farthing.cli.app import app
from farthing.cli.run.progress import working

pytestmark = pytest.mark.thorough

KEYS = ("--keys", "zone=a,b,c,d", "--keys", "late=true,false")
THREE = ("--columns", "zone,late,day", *KEYS)


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
    """A folder with 12,400 rides by zone, day and lateness; the settings list the days."""
    monkeypatch.chdir(tmp_path)
    zones = ["a"] * 9_000 + ["b"] * 3_000 + ["c"] * 400
    table = {"zone": zones, "late": [False] * 9_000 + [True] * 3_400, "day": [row % 3 for row in range(12_400)]}
    pq.write_table(pa.table(table), "rides.parquet")
    made = run("init", "rides.parquet", "--epsilon", "2", "--delta", "1e-6", "--keys", "day=0..2")
    assert made.exit_code == 0, made.stderr
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_tables_are_near_the_truth_and_agree():
    """One object for machines: a table a pair of columns, priced as planned, free when asked again."""
    priced = told("release", *THREE, "--absolute", "100", "--dry-run")
    assert told("status")["spent"]["mu"] == 0
    facts = told("release", "--marginals", "2", *THREE, "--absolute", "100")
    assert priced["worst_price"]["mu"] == facts["paid"]["mu"] > 0
    assert [["zone", "late"], ["zone", "day"], ["late", "day"]] == [table["columns"] for table in facts["tables"]]
    assert [8, 12, 6] == [table["cells"] for table in facts["tables"]]
    assert all(table["half_width"] <= 100 * (1 + 1e-9) for table in facts["tables"])
    zones, days = facts["tables"][:2]
    found = {(row["zone"], row["late"]): row["count"] for row in zones["rows"]}
    assert abs(found["a", False] - 9_000) < 300
    by_day = sum(row["count"] for row in days["rows"] if row["zone"] == "a")
    assert by_day == pytest.approx(found["a", False] + found["a", True])
    again = told("release", *THREE, "--relative", "5%", "--absolute", "100")
    assert again["paid"]["mu"] == 0
    assert {"goal", "confidence", "rmse", "remaining", "about"} < set(facts)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "how",
    [
        ("--absolute", "100"),
        ("--loss", "mu=0.2", "--cap", "all"),
        pytest.param(("--loss", "mu=0.2", "--cap", "all", "--mechanism", "tree"), marks=pytest.mark.thorough),
    ],
)
def test_synthetic_rows_are_written(how):
    """--synthetic writes rows of the released tables or of a model, and tells how near each table is: free again."""
    facts = told("release", *THREE, *how, "--synthetic", "rows.parquet")
    rows = pq.read_table("rows.parquet")
    assert rows.num_rows == facts["synthetic"]["rows"] == pytest.approx(12_400, rel=0.05)
    assert sorted(rows.column_names) == ["day", "late", "zone"]
    assert [0 <= one["error_lower"] <= one["error_upper"] for one in facts["synthetic"]["errors"]] == [True] * 3
    again = run("release", *THREE, *how, "--synthetic", "rows.parquet")
    assert (again.exit_code, "there already" in again.stderr) == (2, True)
    shown = run("release", *THREE, *how, "--synthetic", "more.parquet")
    assert "synthetic rows, seed 0" in shown.stdout
    assert pq.read_table("more.parquet").equals(rows)
    assert told("status")["spent"]["mu"] == facts["paid"]["mu"]


@pytest.mark.thorough
@pytest.mark.usefixtures("folder")
def test_a_model_of_prefix_sums_has_rows_too():
    """Any workload by a mechanism that holds the domain: errors of its products, rows by the lower edges of bins."""
    how = ("--prefixes", "day=0,1,2,3", "--loss", "mu=0.2", "--cap", "all", "--mechanism", "projection")
    facts = told("release", *how, "--synthetic", "rows.parquet")
    assert pq.read_table("rows.parquet").column_names == ["day_from"]
    assert [one["product"] for one in facts["tables"]] == ["prefixes of day"]
    assert "prefixes of day" in run("release", *how).stdout


@pytest.mark.usefixtures("folder")
def test_all_that_a_release_leaves_out_is_named_at_once():
    """Target, bounds and keys of all columns in one message; what is given is named no more; nothing is paid."""
    made = run(
        "init",
        "rides.parquet",
        "--epsilon",
        "2",
        "--delta",
        "1e-6",
        "--unit",
        "zone",
        "--force",
        "--ledger",
        "new.ledger",
    )
    assert made.exit_code == 0, made.stderr
    said = {"target": "no accuracy was asked for", "bounds": "needs bounds", "keys": "day, late without keys"}
    given = {"target": ("--rms", "9"), "bounds": ("--max-rows", "2", "--max-groups", "2"), "nothing": ()}
    for part, options in given.items():
        ended = run("release", "--columns", "day,late", *options)
        assert ended.exit_code == 2
        assert [one != part for one in said] == [words in ended.stderr for words in said.values()]
    assert told("status")["spent"]["mu"] == 0


@pytest.mark.usefixtures("folder")
def test_tables_are_written_to_a_folder():
    """--to writes a file a table and shows none; a folder with files is refused before anything is paid."""
    facts = told("release", *THREE, "--rms", "40", "--up-to", "--to", "tables")
    assert len(facts["tables"]) == 7
    assert all("rows" not in table for table in facts["tables"])
    written = {table["file"]: pq.read_table(table["file"]) for table in facts["tables"]}
    assert sorted(written) == sorted(map(str, Path("tables").iterdir()))
    assert {"count", "count_lower", "count_upper", "met", "paid"} <= set(next(iter(written.values())).column_names)
    spent = told("status")["spent"]["mu"]
    again = run("release", *THREE, "--rms", "5", "--cap", "all", "--to", "tables")
    assert again.exit_code == 2
    assert "there already" in again.stderr
    assert spent == told("status")["spent"]["mu"]
    shown = run("release", *THREE, "--rms", "40", "--to", "more")
    assert "more/001-zone_late.parquet" in shown.stdout.replace("\\", "/")
    assert "paid epsilon 0" in shown.stdout


@pytest.mark.usefixtures("folder")
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_paid():
    """A folder within a file."""
    ended = run("release", *THREE, "--rms", "40", "--to", "rides.parquet/tables")
    assert (4, 0) == (ended.exit_code, told("status")["spent"]["mu"])
    assert "cannot be written" in ended.stderr


@pytest.mark.usefixtures("folder")
def test_an_empty_folder_that_is_there_gets_the_files():
    """By its name and by a link; a link that leads nowhere is refused before anything is paid, as is a price too high.

    Neither leaves a folder.
    """
    Path("real").mkdir()
    for link, real in (("link", "real"), ("lost", "nowhere"), ("rows.parquet", "nowhere")):
        Path(link).symlink_to(real)
    there = Path("real").stat().st_ino
    for refused in (("--to", "lost"), ("--synthetic", "rows.parquet")):
        assert run("release", *THREE, "--rms", "40", *refused).exit_code == 2
    assert run("release", *THREE, "--absolute", "0.001", "--to", "new/deep/out").exit_code == 3
    assert (0, False) == (told("status")["spent"]["mu"], Path("new").exists())
    facts = told("release", *THREE, "--rms", "40", "--to", "link")
    assert sorted(table["file"] for table in facts["tables"]) == sorted(map(str, Path("link").iterdir()))
    assert there == Path("real").stat().st_ino


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("problem", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_files_are_there_whole_or_not_at_all(problem, monkeypatch):
    """What stops the second file of a folder, or the one of rows, leaves nothing; a folder is made where none is."""
    real = pq.write_table
    seen = []

    def stops(table, where):
        seen.append(real(table, where))
        if len(seen) > 1 or "rows" in str(where):
            raise problem

    before = sorted(Path.cwd().iterdir())
    for place in (("--to", "tables"), ("--synthetic", "rows.parquet")):
        with monkeypatch.context() as patched:
            patched.setattr(pq, "write_table", stops)
            ended = run("release", *THREE, "--rms", "40", *place)
        assert 0 != ended.exit_code
        assert isinstance(problem, KeyboardInterrupt) or "No space left" in ended.stderr
    assert {"rides.ledger"} >= {path.name for path in {*Path.cwd().iterdir()} - {*before}}
    made = told("release", *THREE, "--rms", "40", "--to", "deep/tables")["tables"]
    assert 1 < len(made) == len(list(Path("deep/tables").iterdir()))


def test_a_terminal_shows_what_a_search_does(monkeypatch):
    """The words and the time since, on stderr, gone at the end; nothing where nobody watches."""
    for watched in (True, False):
        screen = io.StringIO()
        screen.isatty = lambda watched=watched: watched
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stderr", screen)
            with working("looking"):
                pass
        assert watched == ("looking" in screen.getvalue())


@pytest.mark.usefixtures("folder")
def test_tables_are_shown():
    """People see every table, its half-width, the promise and the price; --rows keeps the largest cells."""
    shown = run("release", *THREE, "--loss", "mu=0.1", "--where", "zone <> 'b'")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.count("each within +/-") == 3
    assert "the least mean error" in shown.stdout or "mean squared error" in shown.stdout
    assert "(mu 0.1)" in shown.stdout
    few = run("release", *THREE, "--loss", "mu=0.1", "--where", "zone <> 'b'", "--rows", "2").stdout
    assert "the 2 largest of 12 cells" in few
    plan = run("release", *THREE, "--absolute", "100", "--simultaneous", "--dry-run").stdout
    assert "at once" in plan
    assert "residuals" in plan


@pytest.mark.usefixtures("folder")
def test_rows_for_a_price_are_made_by_the_better_mechanism(monkeypatch):
    """--synthetic with --loss takes "rows"; with a folder of tables or a named mechanism all is as it was."""
    from farthing.mechanisms.adaptive_tables import AdaptiveTables

    monkeypatch.setattr(AdaptiveTables, "first_deviation", lambda *_: 1e-3)
    how = ("release", *THREE, "--loss", "mu=0.2", "--cap", "all")
    assert "by adaptive" in run(*how, "--synthetic", "a.parquet").stdout
    assert pq.read_table("a.parquet").num_rows > 12_000
    for options in (
        ("--to", "tables", "--synthetic", "b.parquet"),
        ("--mechanism", "auto", "--synthetic", "c.parquet"),
    ):
        assert told(*how, *options)["mechanism"] == "residuals"
    assert told(*how)["mechanism"] == "residuals"


SETS = ("ask", "SELECT zone, late, COUNT(*) AS n FROM rides GROUP BY CUBE (zone, late)")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("asked", [SETS, (*SETS, "--keys", "private"), ("release", *THREE[:2], "--keys", "private")])
def test_tables_at_once_do_not_advise_to_find_groups(asked):
    """What they refuse they do not suggest; the listed values are what is missing."""
    ended = run(*asked, "--absolute", "100")
    assert ended.exit_code == 2
    assert "next: --keys zone=A,B,C" in ended.stderr or "next: --keys day=A,B,C" in ended.stderr
    assert "--keys private finds" not in ended.stderr


@pytest.mark.usefixtures("folder")
def test_a_price_out_of_reach_is_told_with_what_would_fit():
    """In the words of the command line: the plan's note, and its advice for machines."""
    plan = ("release", *THREE, "--absolute", "1", "--dry-run")
    assert "note: this is out of reach: --absolute " in run(*plan).stdout
    assert told(*plan)["advice"].startswith("--absolute ")
    assert "--cap all raises the cap" in told(*plan)["advice"]


BAD = {
    "no goal": (2, (*THREE,)),
    "two goals": (2, (*THREE, "--absolute", "100", "--rms", "4")),
    "no columns": (2, (*KEYS, "--absolute", "100")),
    "no keys": (2, ("--columns", "zone,late", "--absolute", "100")),
    "private keys": (2, ("--columns", "zone,late", "--keys", "private", "--absolute", "100")),
    "keys of another column": (2, ("--columns", "zone,day", *KEYS, "--absolute", "100")),
    "an unknown column": (2, ("--columns", "zoen,late", *KEYS, "--absolute", "100")),
    "a column twice": (2, ("--columns", "zone,zone", *KEYS, "--absolute", "100")),
    "more ways than columns": (2, (*THREE, "--marginals", "4", "--absolute", "100")),
    "ways that are none": (2, (*THREE, "--marginals", "two", "--absolute", "100")),
    "a target by name": (2, (*THREE, "--absolute", "zone=100")),
    "an error that is none": (2, (*THREE, "--rms", "few")),
    "synthetic rows of a plan": (2, (*THREE, "--rms", "5", "--dry-run", "--synthetic", "a.parquet")),
    "synthetic rows of prefix sums": (2, ("--prefixes", "day=0,1,2", "--rms", "5", "--synthetic", "a.parquet")),
    "synthetic rows as CSV": (2, (*THREE, "--rms", "5", "--synthetic", "a.csv")),
    "synthetic rows in no folder": (2, (*THREE, "--rms", "5", "--synthetic", "none/a.parquet")),
    "a folder of a model": (2, (*THREE, "--loss", "mu=0.1", "--mechanism", "tree", "--to", "tables")),
    "a model with a target": (2, (*THREE, "--absolute", "100", "--mechanism", "tree")),
    "a relative target alone": (2, (*THREE, "--relative", "5%")),
    "a price and a folder": (2, (*THREE, "--absolute", "100", "--dry-run", "--to", "tables")),
    "rows that are none": (2, (*THREE, "--absolute", "100", "--rows", "few")),
    "out of reach": (3, (*THREE, "--absolute", "2")),
    "more than is left": (3, (*THREE, "--absolute", "2", "--max-epsilon", "100000")),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case):
    """Each mistake has its exit code and one line in the words of the command line, and nothing is paid."""
    code, options = BAD[case]
    ended = run("release", *options)
    assert ended.exit_code == code, ended.output
    assert "Traceback" not in ended.output
    assert "absolute=" not in ended.stderr
    assert "rms=" not in ended.stderr
    if case == "no keys":
        assert "--keys private" not in ended.stderr
    assert told("status")["spent"]["mu"] == 0


def test_a_unit_column_needs_bounds(tmp_path, monkeypatch):
    """Without bounds it is refused; with them the price grows with what one unit adds."""
    monkeypatch.chdir(tmp_path)
    table = {"who": [row // 4 for row in range(8_000)], "zone": ["a", "b"] * 4_000, "day": [1, 2, 3, 4] * 2_000}
    pq.write_table(pa.table(table), "rides.parquet")
    made = run("init", "rides.parquet", "--unit", "who", "--epsilon", "2", "--delta", "1e-6")
    assert made.exit_code == 0, made.stderr
    asked = ("release", "--columns", "zone,day", "--keys", "zone=a,b", "--keys", "day=1..4", "--absolute", "400")
    assert "--max-rows 20 --max-groups 5" in run(*asked).stderr
    one = told(*asked, "--max-groups", "1", "--max-rows", "1", "--dry-run")
    four = told(*asked, "--max-groups", "4", "--max-rows", "1", "--dry-run")
    assert four["worst_price"]["mu"] == pytest.approx(4 * one["worst_price"]["mu"], rel=1e-5)


PART = """
[[part]]
marginals = ["zone"]
ways = 1
prefixes = {day = [0, 1, 2, 3]}
weight = 2

[[part]]
conditions = ["late", "day = 1"]

[[part]]
matrix = [[1, -1]]
over = ["late"]
"""


@pytest.mark.usefixtures("folder")
def test_prefixes_conditions_and_files_are_released(tmp_path):
    """Options and a file name any workload; what a file says is what the options say."""
    typed = ("--prefixes", "day=0,1,2,3", "--ranges", "day=0,1,3", "--condition", "late", "--condition", "day = 1")
    facts = told("release", *typed, "--absolute", "200")
    assert ["prefixes of day", "ranges of day", "late", "day = 1"] == [table["words"] for table in facts["tables"]]
    assert abs(facts["tables"][2]["rows"][0]["count"] - 3_400) < 600
    shown = run("release", *typed, "--columns", "zone", "--marginals", "1", *KEYS[:2], "--absolute", "200")
    assert shown.exit_code == 0, shown.stderr
    assert "prefixes of day, each within" in shown.stdout
    (tmp_path / "wanted.toml").write_text(PART)
    facts = told("release", "--workload", "wanted.toml", *KEYS, "--absolute", "200", "--cap", "all")
    assert ["2 x zone * prefixes of day", "late", "day = 1"] == [table["words"] for table in facts["tables"]][:3]
    assert facts["tables"][0]["half_width"] <= 100 * (1 + 1e-9)
    priced = told("release", "--workload", "wanted.toml", *KEYS, "--absolute", "200", "--dry-run")
    assert priced["free"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "nothing to release"),
        (("--marginals", "1"), "--marginals without --columns"),
        (("--prefixes", "day"), "--prefixes has no edges"),
        (("--prefixes", "day=0,x"), "--prefixes has no edges"),
        (("--prefixes", "day=2,1"), "rising edges"),
        (("--condition", "late +"), "unreadable SQL"),
        (("--workload", "none.toml"), "no workload"),
        (("--workload", "bad.toml"), "not understood"),
        (("--workload", "empty.toml"), "a part of the file is empty"),
        (("--workload", "bad.toml", "--columns", "zone"), "beside other tables"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_workloads_that_are_none_are_refused_free(tmp_path, args, said):
    """What names no workload is refused in words, and nothing is charged."""
    (tmp_path / "bad.toml").write_text('[[part]]\nmargins = ["zone"]\n')
    (tmp_path / "empty.toml").write_text("[[part]]\nprefixes = {}\n")
    ended = run("release", *args, *KEYS, "--absolute", "200")
    assert ended.exit_code != 0
    assert said in ended.stderr
    assert told("status")["spent"]["mu"] == 0
