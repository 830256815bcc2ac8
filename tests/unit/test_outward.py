"""Keys, aliases and names are other people's text: no terminal, page or spreadsheet obeys what leaves of it."""

import ast
import csv
import io
import json
import os
import pty
import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sources import nodes
from typer.testing import CliRunner

import farthing
from farthing.cli import show
from farthing.cli.app import app
from farthing.query import outward

CLI = Path(farthing.__file__).parent / "cli"
KEYS = [
    "\x1b[31mred",
    "a\nb",
    "\x9b2J",
    "[red]plain[/red]",
    "=1+1",
    "@SUM(A1)",
    "\u202eltr",
    "-2",
    "+3",
    "\tx",
    "</script><b>&",
]
ALIAS = "n\\x1b\x1b]0;title\x07"
_TURNING = {"LRE", "LRO", "RLE", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
BUDGET = farthing.Budget(epsilon=20, delta=1e-6, keys_delta=1e-7)


def obeyed(text):
    """Return the characters of a text that a terminal acts on; line breaks between rows are ours."""
    return {
        letter for letter in text if letter != "\n" and unicodedata.category(letter) in {"Cc", "Cf", "Zl", "Zp", "Cs"}
    }


@pytest.fixture
def session():
    """Return a session on a table of hostile keys, with a hostile name for a column."""
    table = pa.table({"zo\x1bne": KEYS * 300, "x": pa.array([1.0] * (300 * len(KEYS)))})
    return farthing.Session(table, name="t", budget=BUDGET)


def released(session):
    """Return one of everything that a session hands out and that shows itself."""
    by, keys = "zo\x1bne", {"zo\x1bne": KEYS}
    sql = f'SELECT "zo\x1bne", COUNT(*) AS "{ALIAS}" FROM t GROUP BY "zo\x1bne"'
    answer = session.sql(sql, keys=keys, absolute=60)
    yield answer
    yield answer.trace()
    yield session.plan(sql, keys=keys, absolute=50)
    yield session.top_k(by, 3, keys=keys, epsilon=1)
    yield session.top_k(by, 2, keys=keys, order_correct=0.9)
    yield session.workload({"q\x1b": f'SELECT COUNT(*) AS "{ALIAS}" FROM t'}, absolute=60)


def test_nothing_that_shows_itself_gives_orders_to_a_terminal(session):
    """Each repr, str and page of a notebook has every hostile key, harmless."""
    for thing in released(session):
        pages = [getattr(thing, name)() for name in ("__repr__", "__str__", "_repr_html_") if hasattr(thing, name)]
        assert [set()] * len(pages) == [obeyed(page) for page in pages], type(thing)
        assert all("<b>" not in page for page in pages[2:])


def test_every_command_shows_hostile_text_harmless(tmp_path, monkeypatch):
    """As a table, CSV or JSON, with looks, plans, errors, charts, history and exports."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"zone": KEYS * 300}), "t.parquet")
    pq.write_table(pa.table({"id": KEYS}), "keys.parquet")
    sql = f'SELECT zone, COUNT(*) AS "{ALIAS}" FROM t GROUP BY zone'
    ask = [sql, "--keys", "zone=@keys.parquet:id", "--absolute", "60"]
    runs = [
        ["init", "t.parquet", "--epsilon", "20", "--delta", "1e-6", "--keys-delta", "1e-7"],
        ["plan", *ask],
        ["plan", *ask, "--json"],
        ["ask", *ask, "--rows", "all", "--trace", "--chart", "c.svg"],
        ["ask", *ask, "--csv", "--trace"],
        ["ask", *ask, "--json"],
        ["ask", "SELECT \x1b[31m FROM", "--absolute", "5"],
        ["ask", "SELECT nothing\x1b FROM t", "--absolute", "5", "--json"],
        ["ask", sql, "--keys", "zone=a\x1b", "--keys", "zone=b", "--absolute", "60"],
        ["status"],
        ["status", "--json"],
        ["history"],
        ["export", "--csv"],
        ["export"],
        ["select", "zone", "-k", "3", "--keys", "zone=@keys.parquet:id", "--epsilon", "1"],
    ]
    out = []
    for run in runs:
        done = CliRunner().invoke(app, run)
        kept = done.output if "--csv" in run else "".join(done.output)
        out.append(done)
        if "--csv" not in run:
            assert set() == obeyed(kept), run
    assert [0, 0, 0, 0, 0, 0, 2, 2, 2, 0, 0, 0, 0, 0, 0] == [done.exit_code for done in out]
    answers, told = out[4], out[5]
    assert {row["zone"] for row in json.loads(told.stdout)["answers"]} == set(KEYS)
    rows = list(csv.reader(io.StringIO(answers.stdout, newline="")))
    assert {row[0].removeprefix("'") for row in rows[1:]} == set(KEYS)
    assert not [row for row in rows if row[0][:1] in tuple("=+-@\t\r")]
    assert all(float(cell) is not None for row in rows[1:] for cell in row[1:4])


def test_a_table_prints_markup_as_text_and_keeps_rows_in_their_lines(capsys):
    """`[red]` is a key like any other, and a line break inside a key starts no row."""
    show.console().print(show.columns_table([("z\x1bone", False)], [[key] for key in KEYS]))
    told = capsys.readouterr().out

    assert set() == obeyed(told)
    assert "[red]plain[/red]" in told
    assert r"a\nb" in told
    assert r"\x1b[31mred" in told


@pytest.mark.thorough
def test_charts_draw_hostile_text_and_pages_keep_it_out_of_their_script(session, tmp_path):
    """A key that would end the script of a page is a text in it, and an escape in a name ends no process."""
    answer = next(released(session))
    for thing in (answer, answer.trace()):
        for kind in ("svg", "html"):
            thing.chart(tmp_path / f"chart.{kind}")
            drawn = (tmp_path / f"chart.{kind}").read_text(encoding="utf-8")
            assert "</script><b>" not in drawn
            assert not {"\x1b", "\x9b", "\u202e"} & set(drawn.rpartition("vegaEmbed")[2])


def test_csv_on_a_screen_gives_no_orders(monkeypatch):
    """Into a file the bytes stay, but for the apostrophe; on a terminal they are shown as escapes."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as screen:
        monkeypatch.setattr("sys.stdout", screen)
        show.echo_csv(pa.table({"zone": KEYS[:1]}))
    told = os.read(ours, 10_000).decode()

    assert told.replace('"', "").split() == ["zone", r"\x1b[31mred"]


@pytest.mark.xdist_group("syntax")
def test_one_place_writes():
    """In the command line nothing but `show` and the two lines of errors and versions writes to a stream."""
    found = set()
    for path in CLI.rglob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name in {"print", "typer.echo"} or name.endswith(("stdout.write", "stderr.write", "stream.write")):
                    found.add((path.name, name, "outward" in ast.unparse(node) or "VERSION" in ast.unparse(node)))
    streams = {("show.py", name, True) for name in ("sys.stdout.write", "stream.write")}
    assert streams == {each for each in found if each[0] == "show.py"}
    assert all(guarded or name == "failing.py" for name, _, guarded in found)
    assert {"show.py", "failing.py", "version.py"} == {name for name, _, _ in found}


@pytest.mark.parametrize("text", [*KEYS, ALIAS, "".join(map(chr, range(0x3000)))])
def test_the_guard_is_total(text):
    """One line has no line break; JSON is read back as it was; a cell of CSV starts no formula."""
    kept = outward.lines(text)
    assert {each for each in kept if unicodedata.category(each) in {"Cc", "Zl", "Zp", "Cs"}} <= {"\t", "\n"}
    assert not {each for each in kept if unicodedata.bidirectional(each) in _TURNING}
    assert "\n" not in outward.line(text)
    assert text == json.loads(outward.dumped(text))
    assert outward.cell(text)[:1] not in tuple("=+-@\t\r\n")


def test_json_holds_no_number_without_end(capsys):
    """An interval without an end is null there, within lists and under any key: JSON has no word for infinity."""
    show.echo_json({"rows": [{"r": 2.5, "r_upper": float("inf")}, (float("nan"),)], 3: -float("inf")})

    def refused(word):
        raise AssertionError(word)

    found = json.loads(capsys.readouterr().out, parse_constant=refused)
    assert {"rows": [{"r": 2.5, "r_upper": None}, [None]], "3": None} == found
