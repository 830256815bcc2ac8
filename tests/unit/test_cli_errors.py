"""Bad input at the command line: one line, the right exit code, and nothing charged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from farthing import charts
from farthing.cli.app import app
from farthing.errors import FarthingError

GOLDEN = Path(__file__).parents[1] / "golden" / "cli" / "errors.json"
ZONES = "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"
CASES = json.loads(GOLDEN.read_text(encoding="utf-8"))


def run(*args: str):
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(args))


def said(text: str, folder: Path) -> str:
    """Return a message without the folder of this test."""
    return text.replace(str(folder), "FOLDER").strip()


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a table and its settings."""
    folder = tmp_path_factory.mktemp("made")
    pq.write_table(pa.table({"zone": ["a", "b"] * 300, "day": [1, 2, 3] * 200}), folder / "rides.parquet")
    (folder / "zones.csv").write_text("id\na\nb\na\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as there:
        there.chdir(folder)
        assert run("init", "rides.parquet", "--epsilon", "1", "--delta", "1e-6").exit_code == 0
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch) -> Path:
    """A copy of it, and the command line in it."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_bad_input_is_explained_and_free(folder, case):
    """The exit code, and what went wrong by which rule, are the golden ones; the books stay empty."""
    args = [arg.replace("ZONES", ZONES) for arg in case["args"]]
    ended = run(*args)
    assert case["exit_code"] == ended.exit_code
    assert said(ended.stderr, folder).startswith(case["says"])
    assert len(ended.stderr.splitlines()) == 1
    assert "; rule: " in ended.stderr or "; next: " in ended.stderr
    assert ended.stdout == ""
    if args[0] != "init":
        facts = json.loads(run(*args, "--json").stdout)["error"]
        assert case["kind"] == facts["kind"]
        assert ended.exit_code == facts["exit_code"]
    books = json.loads(run("status", "--json").stdout)
    assert ([], 0) == (books["history"], books["spent"]["mu"])


@pytest.mark.parametrize(
    ("words", "what", "command"),
    [
        (("ask", ZONES, "--wibble"), "no such option: --wibble", "farthing ask"),
        (("ask",), "missing argument 'SQL'", "farthing ask"),
        (("ask", ZONES, "--relative"), "option '--relative' requires an argument", "farthing"),
        (("bogus",), "no such command 'bogus'", "farthing"),
        (("token", "bogus"), "no such command 'bogus'", "farthing token"),
        (("--nope",), "no such option: --nope", "farthing"),
    ],
)
def test_words_that_fit_no_command_are_an_error_like_any_other(words, what, command):
    """One line on stderr, with the rule and the next step; with --json also an object; the exit code of usage."""
    told = run(*words)
    said_as_json = run(*words, "--json")
    facts = json.loads(said_as_json.stdout)["error"] if words[-1] != "--relative" else None

    assert told.exit_code == said_as_json.exit_code == 2
    assert told.stdout == ""
    assert told.stderr.startswith(f"farthing: {what}")
    assert told.stderr.rstrip().endswith(f"next: {command} -h")
    assert told.stderr.count("\n") == 1
    if facts:
        assert facts["what"].startswith(what)
        assert facts["kind"] == "InvalidOption"


def test_every_command_says_so():
    """All that there are, in groups too: an option that none has is one line, and an object."""

    def named(command, words=()):
        yield words
        for name, one in getattr(command, "commands", {}).items():
            yield from named(one, (*words, name))

    found = list(named(typer.main.get_command(app)))
    assert len(found) > len(app.registered_commands)
    for words in found:
        told = run(*words, "--no-such-option", "--json")
        assert told.exit_code == 2, words
        assert json.loads(told.stdout)["error"]["next_step"] == " ".join(["farthing", *words, "-h"])
        assert told.stderr.startswith("farthing: no such option")
        assert "--no-such-option" in told.stderr
        assert told.stderr.count("\n") == 1


def test_a_group_of_commands_alone_prints_its_help():
    """As `farthing` alone does."""
    for words in ((), ("token",), ("attack",)):
        assert "Usage" in (shown := run(*words)).stdout + shown.stderr
        assert "next:" not in shown.stderr


@pytest.mark.usefixtures("folder")
def test_two_shapes_on_stdout_are_refused():
    """--json and --csv exclude each other."""
    ended = run("ask", ZONES, "--absolute", "50", "--keys", "zone=a", "--json", "--csv")
    assert ended.exit_code == 2
    assert json.loads(ended.stdout)["error"]["kind"] == "InvalidOption"


@pytest.mark.usefixtures("folder")
def test_a_budget_that_is_used_up_ends_with_three():
    """When nothing is left the ask is refused, and the books do not change."""
    run("ask", "SELECT COUNT(*) FROM rides", "--absolute", "1", "--cap", "all", "--on-miss", "spend")
    before = run("status", "--json").stdout
    refused = run("ask", "SELECT COUNT(*) FROM rides WHERE day = 1", "--absolute", "50", "--json")
    assert refused.exit_code == 3
    assert json.loads(refused.stdout)["error"]["kind"] == "BudgetExceeded"
    assert before == run("status", "--json").stdout


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("content", [b"", b"not a ledger at all, but some text that is long enough " * 20])
def test_a_ledger_that_is_none_ends_with_four(content):
    """A file that is no ledger is refused by ask, plan and status, and left as it was."""
    Path("rides.ledger").unlink()
    Path("rides.ledger").write_bytes(content)
    for args in (["ask", ZONES, "--absolute", "50", "--keys", "zone=a"], ["status"], ["status", "rides.ledger"]):
        ended = run(*args)
        assert ended.exit_code == 4
        assert "Traceback" not in ended.stderr
        assert len(ended.stderr.splitlines()) == 1
    assert content == Path("rides.ledger").read_bytes()


@pytest.mark.usefixtures("folder")
def test_a_ledger_that_is_gone_is_not_made_again():
    """Forgetting the books would forget what was spent; only init makes new ones."""
    Path("rides.ledger").unlink()
    ended = run("ask", ZONES, "--absolute", "50", "--keys", "zone=a")
    assert ended.exit_code == 4
    assert "would forget what was spent" in ended.stderr
    assert not Path("rides.ledger").exists()


@pytest.mark.usefixtures("folder")
def test_another_budget_in_the_settings_is_refused():
    """The budget is fixed in the ledger; changing the settings does not raise it."""
    settings = Path("farthing.toml")
    settings.write_text(settings.read_text(encoding="utf-8").replace("1.0", "2.0"), encoding="utf-8")
    ended = run("ask", "SELECT COUNT(*) FROM rides", "--absolute", "50")
    assert ended.exit_code == 4
    assert "other terms" in ended.stderr


@pytest.mark.usefixtures("folder")
def test_a_missing_chart_extra_is_said_before_anything_is_paid(monkeypatch):
    """Without altair or its renderer nothing is asked."""
    monkeypatch.setattr(charts, "find_spec", lambda _: None)
    ended = run("ask", "SELECT COUNT(*) FROM rides", "--absolute", "50", "--chart", "x.svg")
    assert ended.exit_code == 4
    assert "farthing[charts]" in ended.stderr
    assert json.loads(run("status", "--json").stdout)["history"] == []


@pytest.mark.usefixtures("folder")
def test_no_error_of_ours_is_a_traceback():
    """Whatever kind of error a session raises, the command line explains it."""
    kinds = FarthingError.__subclasses__()
    assert {kind.exit_code for kind in kinds} <= {2, 3, 4}
    Path("rides.parquet").unlink()
    ended = run("ask", "SELECT COUNT(*) FROM rides", "--absolute", "50")
    assert (4, True) == (ended.exit_code, ended.stderr.startswith("farthing: no such file"))
