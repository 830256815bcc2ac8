"""`farthing publish`: the same bytes again, free of charge; whole or not at all; totals that add up."""

from __future__ import annotations

import hashlib
import json
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from farthing.cli.app import app
from farthing.publication import files

REPORT = """
[publication]
title = "Rides <script>alert(1)</script>"
curators = ["City of X"]
[all]
sql = "SELECT COUNT(*) AS n FROM rides"
absolute = 60
whole = true
nonnegative = true
[zones]
sql = "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"
absolute = 90
adds_to = "all"
whole = true
nonnegative = true
["mean minutes"]
sql = "SELECT zone, AVG(CLAMP(minutes, 0, 60)) AS m FROM rides GROUP BY zone"
keys = ["zone=a"]
absolute = 6
"""


def run(*args: str):
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(args))


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    """A folder with a table of few in some zones, its settings, a file of questions, and `one`, made of it."""
    here = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        zones = ["a"] * 1_000 + ["b"] * 300 + ["=c"] * 2
        pq.write_table(pa.table({"zone": zones, "minutes": [20.0] * len(zones)}), "rides.parquet")
        made = run("init", "rides.parquet", "--epsilon", "1", "--delta", "1e-6", "--keys", 'zone=a,b,"=c",d')
        assert made.exit_code == 0, made.stderr
        Path("report.toml").write_text(REPORT, encoding="utf-8")
        Path("told").write_text(ok("--to", "one").stdout, encoding="utf-8")
    return here


@pytest.fixture(autouse=True)
def _there(published, monkeypatch) -> None:
    """Work in that folder, with the file as it was."""
    monkeypatch.chdir(published)
    Path("report.toml").write_text(REPORT, encoding="utf-8")


def digest(place: str) -> dict[str, str]:
    """Return the SHA-256 of every file of a folder."""
    return {
        path.relative_to(place).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in Path(place).rglob("*")
        if path.is_file()
    }


def books() -> dict:
    """Return what the ledger has."""
    facts = json.loads(run("export").stdout)
    return {name: facts[name] for name in ("head", "records", "spent")}


def ok(*args: str):
    """Publish; it must work."""
    ended = run("publish", "report.toml", "--cap", "all", *args)
    assert ended.exit_code == 0, ended.output
    return ended


def test_again_is_free_and_the_same_bytes():
    """A second folder has the same SHA-256 file by file, and the ledger did not move; the first one is `unchanged`."""
    before = books()
    ok("--to", "two")
    again = ok("--to", "one")

    assert digest("one") == digest("two")
    assert before == books()
    assert "unchanged: one: 3 tables, " in again.stdout
    sums = dict(reversed(line.split("  ")) for line in Path("one/SHA256SUMS").read_text().splitlines())
    assert sums == {path: sha for path, sha in digest("one").items() if path != "SHA256SUMS"}
    assert {"all", "zones", "mean-minutes"} == {path.stem for path in Path("one/tables").iterdir()}


def test_totals_add_up_in_whole_numbers_that_are_not_negative():
    """The printed parts sum to the printed total exactly, and the released numbers and the bias stand beside them."""
    total = pq.read_table("one/tables/all.parquet").to_pylist()[0]
    zones = pq.read_table("one/tables/zones.parquet")
    numbers = zones.column("n").to_pylist()

    assert total["n"] == sum(numbers)
    assert all(number >= 0 and number == int(number) for number in numbers)
    assert "n_released" in zones.column_names
    assert all(row["n_lower"] >= 0 for row in zones.to_pylist())
    facts = json.loads(zones.schema.metadata[b"farthing"])
    assert any("so that tables add up" in line for line in facts["footnotes"])
    assert any("were below zero as released" in line for line in facts["footnotes"])
    assert {"version", "data", "unit", "bounds", "keys", "targets", "confidence"} <= set(facts)
    assert pc.read_csv("one/tables/zones.csv").column("zone").to_pylist() == ["a", "b", "'=c", "d"]


class Seen(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.text = set(), ""

    def handle_starttag(self, tag, _attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


def test_the_statement_says_what_is_promised_and_obeys_no_text():
    """Budget, groups of k, bounds, silences and the head are on the page; a title cannot become a part of it."""
    ended = json.loads(ok("--to", "one", "--json").stdout)
    seen = Seen()
    seen.feed(Path("one/statement.html").read_text(encoding="utf-8"))

    assert "script" not in seen.tags
    assert "link" not in seen.tags
    for words in ("<script>alert(1)</script>", "epsilon 1", "any 10 rows together", "do not say", "bounds cut"):
        assert words in seen.text
    page = Path("one/statement.html").read_text(encoding="utf-8")
    assert "books in" not in page  # where the owner keeps them is the owner's
    assert page.count("<table>") == page.count('<div class="wide"><table>') == 1 + 3
    assert 'name="viewport"' in page
    assert ended["head"] in seen.text
    assert books()["head"] == ended["head"]


def test_the_record_has_the_fields_of_the_public_registry():
    """Sections and names are those of the registry's schema; what was not said is marked, and told on the terminal."""
    record = json.loads(Path("one/record.json").read_text(encoding="utf-8"))
    found = record["registry"]["deployment"]

    assert list(found) == ["basic", "dp_variant", "privacy_loss", "deployment_model", "accounting", "implementation",
                           "administrative"]  # fmt: skip
    assert found["basic"]["data_curators"] == ["City of X"]
    assert found["basic"]["intended_use"] == "to be filled in"
    assert "description, purpose, region" in Path("told").read_text(encoding="utf-8")
    assert found["privacy_loss"]["privacy_parameters"] == {"epsilon": pytest.approx(1), "delta": 1e-6}
    assert record["ledger"]["head"] == books()["head"]
    assert {table["name"] for table in record["tables"]} == {"all", "zones", "mean minutes"}


BAD = {
    "adds_to nothing": (REPORT.replace('adds_to = "all"', 'adds_to = "everything"'), "cannot add up"),
    "a circle": (REPORT.replace("absolute = 60\n", 'absolute = 60\nadds_to = "zones"\n'), "cannot add up"),
    "other shape": (REPORT.replace("absolute = 60\nwhole = true", "absolute = 60"), "the same for tables"),
    "other rows": (
        REPORT.replace("AS n FROM rides GROUP", "AS n FROM rides WHERE minutes > 3 GROUP"),
        "WHERE and joins",
    ),
    "a mean": (REPORT.replace('keys = ["zone=a"]', 'adds_to = "zones"'), "do not add up"),
    "setting": (REPORT.replace("title", "tilte"), "did you mean title"),
    "type": (REPORT.replace("whole = true", 'whole = "yes"'), "wrong type"),
    "question": (REPORT.replace("AVG(CLAMP", "FOO(CLAMP"), "mean minutes"),
    "price": (REPORT.replace("absolute = 60", "absolute = 0.5"), "not all questions fit"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_published_costs_nothing_and_leaves_nothing(case):
    """A file that is wrong, or too expensive, is refused by name before anything is asked; no folder is begun."""
    text, words = BAD[case]
    Path("report.toml").write_text(text, encoding="utf-8")
    before, there = books(), sorted(Path().iterdir())
    ended = run("publish", "report.toml", "--cap", "all", "--to", "new")

    assert ended.exit_code in {2, 3}
    assert words in ended.stderr
    assert before == books()
    assert there == sorted(Path().iterdir())


@pytest.mark.parametrize("place", ["full", "file", "missing/one"])
def test_a_place_that_cannot_be_used_is_refused_before_anything_is_paid(place):
    """Other files, a file in place of a folder, and a folder that is not there: nothing is asked."""
    Path("full").mkdir(exist_ok=True)
    Path("full/mine.txt").write_text("mine", encoding="utf-8")
    Path("file").write_text("mine", encoding="utf-8")
    Path("report.toml").write_text(REPORT.replace("absolute = 60", "absolute = 59"), encoding="utf-8")
    before = books()
    ended = run("publish", "report.toml", "--cap", "all", "--to", place)

    assert ended.exit_code in {2, 4}
    assert before == books()
    assert Path("full/mine.txt").read_text(encoding="utf-8") == "mine"


def test_a_failure_while_writing_leaves_no_half_of_a_folder(monkeypatch):
    """A full disk in the middle: an error, no folder, nothing beside it; the next run is free."""
    written = Path.write_bytes

    def full(path, data):
        if path.name == "record.json":
            raise OSError(28, "No space left on device")
        return written(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    before, there = books(), sorted(Path().iterdir())
    ended = run("publish", "report.toml", "--cap", "all", "--to", "new")

    assert (4, True) == (ended.exit_code, "No space left" in ended.stderr)
    assert before == books()
    assert there == sorted(Path().iterdir())


def test_an_empty_folder_that_is_there_stays_and_gets_all_files():
    """Its rights stay; asked again, it is compared."""
    Path("mine").mkdir(mode=0o750)
    before = Path("mine").stat()
    ok("--to", "mine")

    assert (before.st_ino, before.st_mode) == (Path("mine").stat().st_ino, Path("mine").stat().st_mode)
    assert {"SHA256SUMS", "record.json", "statement.html", "tables"} == {path.name for path in Path("mine").iterdir()}
    ok("--to", "mine")


def test_a_dry_run_tells_prices_and_makes_nothing():
    """--dry-run prices every question, and asks none."""
    before = books()
    ended = ok("--to", "new", "--dry-run")

    assert "3 of 3 questions fit" in ended.stdout
    assert before == books()
    assert not Path("new").exists()


def test_workload_reads_the_same_file():
    """What is only for print is no question and no option of one."""
    ended = run("workload", "report.toml", "--dry-run")
    assert ended.exit_code == 0, ended.stderr


def test_names_of_files_are_plain_and_differ():
    """Names that differ only by case or by odd letters get files of their own."""
    assert ["a", "A-2", "a-b", "table"] == files.file_names(["a", "A", "../a b", "…"])


def test_the_export_has_the_released_numbers_and_what_they_are_of():
    """Each measurement has data version, unit, bounds, keys, targets and confidence, and is tied to its entries."""
    facts = json.loads(run("export").stdout)
    entries = {entry["identity"] for entry in facts["entries"]}

    assert len(facts["measurements"]) >= 3
    for one in facts["measurements"]:
        assert {"version", "data", "unit", "bounds", "keys", "targets", "confidence", "released"} <= set(one)
        assert one["identity"] in entries
    zones = next(one for one in facts["measurements"] if one["keys"].get("zone") == ["=c", "a", "b", "d"])
    assert zones["data"] == "table 'rides', version '1'"
    assert zones["released"]["value"][1] == pytest.approx(1_000, abs=120)


def test_rows_that_miss_are_told():
    """The command says which tables have rows that miss their target, as each table's `met` does."""
    from farthing.cli.run.publish import _missed

    class Table:
        """As much of a printed table as is asked."""

        def __init__(self, name, met):
            self.name, self.rows = name, pa.table({"met": met})

    assert _missed([Table("a", [True, False, False]), Table("b", [True])]) == {"a": 2}
    facts = json.loads(ok("--to", "one", "--json").stdout)
    found = {path.stem: pq.read_table(path).column("met").to_pylist() for path in Path("one/tables").glob("*.parquet")}
    assert sum(facts["missed"].values()) == sum(not met for each in found.values() for met in each)
