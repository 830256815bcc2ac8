"""`farthing check`: what a table's owner is shown, counted by hand; and that it writes down a reading, once."""

import ast
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sources import nodes
from typer.testing import CliRunner

import farthing
from farthing.cli.app import app

pytestmark = pytest.mark.thorough


def run(*args):
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(args))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a German export, of which one line, one date and one number do not fit."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{place % 40};J\xfcrgen;{'ab'[place % 2]};{place},5;2024-01-{place % 28 + 1:02}" for place in range(200)]
    lines += ["7;too;few", "8;odd;a;3,5;2024-13-45", "9;odd;c;n/a;2024-01-01", ""]
    Path("rides.csv").write_bytes("\n".join(["user_id;name;zone;amount;day", *lines]).encode("latin-1"))
    return tmp_path


def told(*args):
    """Return what is printed as JSON."""
    ended = run("check", *args, "--json")
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout)


def test_a_csv_of_which_nothing_is_said():
    """Encoding, separator and decimal mark; the line and the values that do not fit; clamps, and people."""
    found = told("rides.csv")
    columns = {column["name"]: column for column in found["columns"]}

    assert (found["rows"], found["lines"], found["dropped"]) == (202, 203, 1)
    assert (found["reading"]["delimiter"], found["reading"]["decimal"]) == (";", ",")
    assert found["reading"]["encoding"] in {"latin-1", "windows-1252"}
    assert [columns[name]["type"] for name in columns] == ["integer", "string", "string", "float", "date"]
    assert (columns["day"]["unread"], columns["day"]["examples"]) == (1, ["2024-13-45"])
    assert columns["amount"]["missing"] == 1
    assert (columns["amount"]["least"], columns["amount"]["greatest"]) == (0.5, 199.5)
    assert columns["amount"]["lower"] <= 2.5
    assert 0 <= columns["amount"]["beyond"] <= 0.02
    assert "user_id seems to name people" in run("check", "rides.csv").stdout


def test_units_and_keys():
    """What max_rows and max_groups cut, keys that no row has, and rows outside of the keys."""
    found = told("rides.csv", "--unit", "user_id", "--keys", "zone=a,b,z")
    rows, groups = found["cuts"]

    assert (rows["bound"], rows["units"], rows["most"]) == ("max_rows", 40, [[5, pytest.approx(2 / 202)], [6, 0.0]])
    assert (groups["bound"], groups["most"]) == ("max_groups by zone", [[1, pytest.approx(1 / 41)], [2, 0.0]])
    (keys,) = found["keys"]
    assert (keys["listed"], keys["without"], keys["examples"]) == (3, 1, ["z"])
    assert keys["outside"] == pytest.approx(1 / 202)


@pytest.mark.thorough
def test_a_reading_is_written_where_it_is_not_declared_yet():
    """The settings that name the table get its section, once, and nothing else of them is changed."""
    assert (
        run("init", "rides.csv", "--unit", "user_id", "--epsilon", "1", "--delta", "1e-6", "--drop-lines").exit_code
        == 0
    )
    file = Path("farthing.toml")
    whole = file.read_text(encoding="utf-8")
    start = whole.index("# How the CSV table")
    bare = whole[:start] + whole[whole.index("# The books") :]
    file.write_text(bare, encoding="utf-8")

    assert "wrote [csv.rides] into farthing.toml" in run("check").stdout
    written = file.read_text(encoding="utf-8")
    assert written.startswith(bare.rstrip())
    assert 'encoding = "' in written
    assert "wrote" not in run("check").stdout
    assert written == file.read_text(encoding="utf-8")
    assert run("ask", "SELECT COUNT(*) FROM rides", "--absolute", "200", "--max-rows", "6").exit_code == 0


def test_parquet_and_what_cannot_be_checked():
    """Parquet has no lines; NaN is missing; a server, a file that is not there and unknown columns are refused."""
    pq.write_table(pa.table({"x": [1.0, float("nan"), float("inf"), None], "s": ["a", "b", None, "c"]}), "t.parquet")
    found = told("t.parquet", "--keys", "s=a,b")

    assert (found["rows"], found["lines"], found["reading"]) == (4, None, None)
    assert [column["missing"] for column in found["columns"]] == [2, 1]
    assert (found["columns"][0]["lower"], found["columns"][0]["upper"]) == (1.0, 1.0)
    for wrong, code in ((["postgresql://x/y"], 2), (["none.csv"], 4), (["t.parquet", "--unit", "nobody"], 4)):
        ended = run("check", *wrong)
        assert (ended.exit_code, ended.stdout) == (code, "")
        assert "; rule: " in ended.stderr


def test_nothing_is_charged():
    """The owner's look at the rows is not in the books."""
    run("init", "rides.csv", "--unit", "user_id", "--epsilon", "1", "--delta", "1e-6", "--drop-lines")
    told()

    assert json.loads(run("status", "--json").stdout)["history"] == []


def test_settings_stay_as_they_are_where_the_check_fails(monkeypatch):
    """A column that is not there, or a disk that is full: nothing is written, and nothing is left beside it."""
    run("init", "rides.csv", "--unit", "user_id", "--epsilon", "1", "--delta", "1e-6", "--drop-lines")
    file = Path("farthing.toml")
    text = file.read_text(encoding="utf-8")
    bare = text[: text.index("# How the CSV table")] + text[text.index("# The books") :]
    file.write_text(bare, encoding="utf-8")

    assert run("check", "--unit", "nobody").exit_code == 4
    with monkeypatch.context() as full:
        full.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
        ended = run("check")
    assert (ended.exit_code, ended.stdout) == (4, "")
    assert "the settings cannot be written" in ended.stderr
    assert bare == file.read_text(encoding="utf-8")
    assert not list(Path().glob("*.part"))


def test_only_the_command_reads_rows_as_they_are():
    """What is exact is reached by one module alone: no session, server or answer imports it."""
    source = Path(farthing.__file__).parent
    users = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom) and "table_check" in ast.unparse(node)
    }

    assert users == {"cli/run/check.py", "cli/run/init.py"}
