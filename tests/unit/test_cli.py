"""The command line: every command, what it prints, what it costs, and how it ends."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

from farthing import __version__, errors
from farthing.cli.app import app
from farthing.cli.failing import in_flags
from farthing.cli.run import ask as run_ask
from farthing.errors import FarthingError

ZONES = "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"
TOTAL = "SELECT COUNT(*) AS n FROM rides"
COMMANDS = {
    "publish",
    "attack",
    "audit",
    "compare",
    "workload",
    "demo",
    "init",
    "ask",
    "plan",
    "release",
    "select",
    "bounds",
    "check",
    "status",
    "history",
    "export",
    "verify",
    "allot",
    "freeze",
    "thaw",
    "same-data",
    "resume",
    "groups",
    "version",
    "serve",
    "mcp",
    "token",
}
SOURCE = str(Path(__file__).parents[2] / "src")
RUN = "import sys; sys.argv[0] = 'farthing'; from farthing.cli import main; main()"


def run(*args: str):
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(args))


def process(*args: str, **how):
    """Run the command line in a process of its own, with pipes for its output."""
    env = os.environ | {"PYTHONPATH": SOURCE, "COLUMNS": "80", **how.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-c", RUN, *args], capture_output=True, text=True, env=env, check=False, **how
    )


def test_the_package_runs_as_the_command():
    """`python -m farthing` is the command, where no script is on the path."""
    env = os.environ | {"PYTHONPATH": SOURCE}
    told = subprocess.run(
        [sys.executable, "-m", "farthing", "version"], check=True, capture_output=True, text=True, env=env
    )

    assert (0, run("version").stdout) == (told.returncode, told.stdout)


def spent() -> float:
    """Return what the folder's ledger has charged."""
    return json.loads(run("status", "--json").stdout)["spent"]["mu"]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder with a table of 60 riders, and the command line in it."""
    monkeypatch.chdir(tmp_path)
    rows = range(6000)
    table = {"rider_id": [i % 60 for i in rows], "zone": ["ab"[i % 3 == 0] for i in rows], "day": [i % 7 for i in rows]}
    pq.write_table(pa.table(table), "rides.parquet")
    Path("zones.csv").write_text("id\na\nb\nc\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def ready(folder) -> Path:
    """The same, after `farthing init`."""
    made = run(
        "init", "rides.parquet", "--unit", "row", "--epsilon", "1", "--delta", "1e-6", "--keys", "zone=@zones.csv:id"
    )
    assert made.exit_code == 0, made.stderr
    return folder


def commands() -> dict:
    """Return the commands with their parameters."""
    return typer.main.get_command(app).commands


def test_every_command_and_option_is_explained():
    """Help knows every command, and every option has its line in it, in 80 columns."""
    assert set(commands()) == COMMANDS
    for name, command in commands().items():
        shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"})
        assert shown.exit_code == 0
        assert max(map(len, shown.stdout.splitlines())) <= 80
        assert "\\" not in shown.stdout.replace("\\ ", "").replace("\\\n", "")
        for option in command.params:
            assert option.help, (name, option.name)
            if option.param_type_name == "option":
                assert all(flag in shown.stdout for flag in option.opts)


def test_help_is_quick():
    """Help of the program and of each command loads neither numpy nor an engine: imports are all that could be slow."""
    heavy = "{'numpy', 'scipy', 'ibis', 'duckdb', 'pyarrow', 'sqlalchemy', 'altair', 'pandas', 'polars'}"
    look = (
        "import sys; from typer.testing import CliRunner; from farthing.cli.app import app\n"
        "for words in ([], *([name] for name in sys.argv[1:])):\n"
        "    assert CliRunner().invoke(app, [*words, '--help']).exit_code == 0, words\n"
        f"    assert not {heavy} & set(sys.modules), (words, sorted({heavy} & set(sys.modules)))"
    )
    names = sorted(typer.main.get_command(app).commands)
    subprocess.run([sys.executable, "-c", look, *names], check=True, env=os.environ | {"PYTHONPATH": SOURCE})


def test_version_is_printed():
    """It prints the version alone."""
    assert run("version").stdout == run("--version").stdout == f"{__version__}\n"


@pytest.mark.usefixtures("ready")
def test_init_writes_what_ask_plan_and_status_read():
    """After init the other commands need no option, and the example that init printed runs as it stands."""
    again = run("init", "rides.parquet", "--unit", "row", "--epsilon", "1", "--delta", "1e-6", "--force")
    assert again.exit_code == 0
    example = next(line for line in again.stdout.splitlines() if line.strip().startswith("farthing ask"))
    asked = subprocess.run(
        ["sh", "-c", example.replace("farthing", f'"{sys.executable}" -c "{RUN}"', 1)],
        env=os.environ | {"PYTHONPATH": SOURCE},
        check=False,
        capture_output=True,
        text=True,
    )
    assert asked.returncode == 0, asked.stderr
    assert "yes" in asked.stdout


@pytest.mark.usefixtures("folder")
def test_init_lists_the_columns_and_suggests_keys():
    """Without keys the example names a plausible column, from the types alone."""
    shown = run("init", "rides.parquet", "--unit", "rider_id", "--rho", "0.02").stdout
    assert all(f"{name}" in shown for name in ("rider_id", "integer", "zone", "string"))
    assert "--keys zone=A,B,C" in shown
    assert "--max-groups 5 --max-rows 20" in shown


@pytest.mark.usefixtures("ready")
def test_init_replaces_nothing_unless_told():
    """A second init is refused; --force replaces the settings, never the ledger."""
    before = Path("farthing.toml").read_text(encoding="utf-8")
    refused = run("init", "rides.parquet", "--unit", "row", "--epsilon", "1", "--delta", "1e-6")
    assert refused.exit_code == 2
    assert before == Path("farthing.toml").read_text(encoding="utf-8")
    other = run("init", "rides.parquet", "--unit", "row", "--epsilon", "2", "--delta", "1e-6", "--force")
    assert (other.exit_code, before) == (4, Path("farthing.toml").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("folder")
def test_a_failed_init_leaves_no_file():
    """A mistake in any option is found before anything is written."""
    mistakes = (
        ["nowhere.parquet", "--epsilon", "1"],
        ["rides.parquet"],
        ["rides.parquet", "--epsilon", "-1"],
        ["rides.parquet", "--epsilon", "1", "--delta", "1"],
        ["rides.parquet", "--epsilon", "1", "--keys-delta", "0.1"],
        ["rides.parquet", "--epsilon", "1", "--mu", "1"],
        ["rides.parquet", "--epsilon", "nan"],
        ["rides.parquet", "--epsilon", "1", "--unit", "ride"],
        ["rides.parquet", "--epsilon", "1", "--max-groups", "0"],
        ["rides.parquet", "--epsilon", "1", "--keys", "zne=a"],
        ["rides.parquet", "--epsilon", "1", "--keys", "zone=a,a"],
        ["rides.parquet", "--epsilon", "1", "--keys", "zone=@rides.parquet:zone"],
    )
    for args in mistakes:
        ended = run("init", *args, *(() if "--unit" in args else ("--unit", "row")))
        assert ended.exit_code in {2, 4}, args
        assert "Traceback" not in ended.stderr
    assert sorted(path.name for path in Path().iterdir()) == ["rides.parquet", "zones.csv"]


@pytest.mark.usefixtures("ready")
def test_ask_shows_a_table_and_its_price():
    """The table has keys, answers, intervals, met and paid; below it stand the price and the promise."""
    shown = run("ask", ZONES, "--relative", "5%", "--absolute", "200")
    assert shown.exit_code == 0
    for word in ("zone", "95% interval", "met", "paid (mu)", "met by 3 of 3", "left epsilon", "privacy unit: one row"):
        assert word in shown.stdout
    assert [line.split()[0] for line in shown.stdout.splitlines() if " .. " in line] == ["a", "b", "c"]


@pytest.mark.usefixtures("ready")
def test_asking_again_is_free_and_sharper_pays_the_difference():
    """The second ask costs nothing; a sharper one costs less than it would from the start."""
    args = ("ask", ZONES, "--absolute", "200", "--json")
    first, again = json.loads(run(*args).stdout), json.loads(run(*args).stdout)
    sharper = json.loads(run("ask", ZONES, "--absolute", "150", "--json").stdout)
    assert first["paid"]["mu"] > 0
    assert again["paid"] == {"mu": 0.0, "epsilon": 0.0, "delta": 1e-6}
    assert 0 < sharper["paid"]["mu"] < 0.014
    assert spent() == pytest.approx((first["paid"]["mu"] ** 2 + sharper["paid"]["mu"] ** 2) ** 0.5, rel=1e-6)


@pytest.mark.usefixtures("ready")
def test_json_csv_and_table_show_the_same_rows():
    """One row shape everywhere."""
    args = ("ask", ZONES, "--relative", "0.05", "--absolute", "200", "--confidence", "90%")
    first = json.loads(run(*args, "--json").stdout)
    assert {"answers", "paid", "remaining", "target", "about"} <= set(first)
    assert list(first["answers"][0]) == ["zone", "n", "n_lower", "n_upper", "met", "paid"]
    assert first["target"] == {"relative": 0.05, "absolute": 200.0, "confidence": 0.9, "simultaneous": False}
    told = run(*args, "--csv")
    rows = list(csv.DictReader(io.StringIO(told.stdout)))
    assert [row["n"] for row in first["answers"]] == [float(row["n"]) for row in rows]
    assert told.stderr.startswith("paid epsilon 0")


@pytest.mark.usefixtures("ready")
def test_a_pipe_gets_every_row_a_terminal_the_largest():
    """Rows are cut only where asked for or on a terminal, and the cut is said."""
    cut = run("ask", TOTAL.replace("COUNT", "day, COUNT") + " GROUP BY day", "--keys", "day=0..6", "--absolute", "200",
              "--rows", "2").stdout  # fmt: skip
    assert sum(" .. " in line for line in cut.splitlines()) == 2
    assert "the 2 largest of 7 groups" in cut


@pytest.mark.usefixtures("ready")
def test_options_change_the_question():
    """Keys, simultaneity, drop, caps and losses reach the session."""
    one = json.loads(run("ask", ZONES, "--absolute", "200", "--keys", "zone=b", "--simultaneous", "--json").stdout)
    assert [row["zone"] for row in one["answers"]] == ["b"]
    assert one["target"]["simultaneous"]
    capped = run("ask", ZONES, "--relative", "0.1%", "--max-epsilon", "0.05", "--on-miss", "drop", "--json")
    assert json.loads(capped.stdout)["answers"] == []
    assert 0 < json.loads(capped.stdout)["paid"]["epsilon"] <= 0.05
    named = json.loads(run("ask", TOTAL, "--loss", "mu=0.01", "--json").stdout)
    assert named["paid"]["mu"] == pytest.approx(0.01, rel=1e-4)
    assert named["target"] is None


@pytest.mark.usefixtures("ready")
def test_a_hopeless_target_is_paid_only_where_that_is_said(monkeypatch):
    """It is refused free, with the words of the plan and the option; a terminal asks, and takes no for the default."""
    args = ("ask", TOTAL, "--absolute", "1")
    refused = run(*args)
    advice = json.loads(run("plan", TOTAL, "--absolute", "1", "--json").stdout)["advice"]
    assert 3 == refused.exit_code
    assert 0 == spent()
    assert "--on-miss spend" in refused.stderr
    assert in_flags(advice) in refused.stderr

    monkeypatch.setattr(run_ask, "_on_terminal", lambda: True)
    assert 3 == CliRunner().invoke(app, list(args), input="\n").exit_code
    assert 0 == spent()
    paid = CliRunner().invoke(app, list(args), input="y\n")
    assert 0 == paid.exit_code
    assert "met by 0 of 1" in paid.stdout
    assert 0 < spent()
    assert 0 == run(*args, "--on-miss", "spend").exit_code


@pytest.mark.usefixtures("ready")
def test_a_missed_target_that_raises_still_shows_what_was_paid_for():
    """--on-miss raise ends with 3 and shows the answer, in every shape."""
    args = ("ask", TOTAL, "--relative", "0.1%", "--max-epsilon", "0.05", "--on-miss", "raise")
    shown = run(*args)
    assert shown.exit_code == 3
    assert "met by 0 of 1" in shown.stdout
    assert "missed the target" in shown.stderr
    facts = json.loads(run(*args, "--json").stdout)
    assert ("TargetMissed", 1) == (facts["error"]["kind"], len(facts["answers"]))


@pytest.mark.usefixtures("ready")
def test_plan_is_free_and_takes_the_same_options():
    """A plan prices with the options of ask, says so as text and as JSON, and charges nothing."""
    asks = {flag for option in commands()["ask"].params for flag in option.opts}
    plans = {flag for option in commands()["plan"].params for flag in option.opts}
    assert asks - plans == {"--csv", "--chart", "--column", "--rows", "--trace", "--trace-chart", "--wide"}
    assert "worst price" in run("plan", ZONES, "--relative", "10%", "--absolute", "100").stdout
    plan = json.loads(run("plan", ZONES, "--absolute", "1", "--cap", "all", "--json").stdout)
    assert not plan["reachable"]
    assert spent() == 0


@pytest.mark.usefixtures("folder")
def test_bounds_of_an_ask_replace_those_of_the_settings():
    """A unit column needs bounds: from the settings, or from the ask."""
    run("init", "rides.parquet", "--unit", "rider_id", "--epsilon", "1", "--delta", "1e-6", "--max-rows", "200")
    missing = run("ask", ZONES, "--absolute", "5000", "--keys", "zone=a,b")
    assert missing.exit_code == 2
    assert "--max-groups 5" in missing.stderr
    given = ("plan", ZONES, "--absolute", "50", "--keys", "zone=a,b", "--max-groups", "1", "--max-rows", "3", "--json")
    assert "at most 3 rows" in json.loads(run(*given).stdout)["about"]


@pytest.mark.usefixtures("ready")
def test_status_shows_totals_history_and_open_reservations():
    """The books are read without opening the table, from the settings or the ledger's own path."""
    run("ask", TOTAL, "--absolute", "200")
    Path("rides.parquet").unlink()
    facts = json.loads(run("status", "--json").stdout)
    names = ["ledger", "budget", "unit", "total", "spent", "remaining", "allotments", "frozen", "open", "history"]
    assert list(facts) == names
    assert facts["total"]["mu"] ** 2 == pytest.approx(facts["spent"]["mu"] ** 2 + facts["remaining"]["mu"] ** 2)
    assert [entry["state"] for entry in facts["history"]] == ["settled"]
    assert facts == json.loads(run("status", "rides.ledger", "--json").stdout)
    assert facts == json.loads(run("status", "farthing.toml", "--json").stdout)
    shown = run("status", "--rows", "all").stdout
    assert all(word in shown for word in ("total", "spent", "remaining", "COUNT(*)", "reserved", "settled"))


@pytest.mark.usefixtures("ready")
def test_status_tells_a_dead_process_from_a_live_one():
    """A reservation that a dead process left is shown as such, and stays charged."""
    reserve = (
        "import sys; from farthing.ledger.store import Ledger\n"
        "terms = Ledger.inspect('rides.ledger').terms\n"
        "Ledger.open('rides.ledger', terms).reserve(increase=9, fresh=9, question='q', version=0, label='lost')"
    )
    subprocess.run([sys.executable, "-c", reserve], check=True, env=os.environ | {"PYTHONPATH": SOURCE})
    facts = json.loads(run("status", "--json").stdout)
    assert [False] == [entry["alive"] for entry in facts["open"]]
    assert facts["spent"]["mu"] > 0
    assert "dead: stays charged" in run("status").stdout


@pytest.mark.usefixtures("ready")
def test_a_chart_is_drawn_beside_the_answer():
    """--chart writes the picture and leaves stdout as it was."""
    shown = run("ask", ZONES, "--absolute", "200", "--json", "--chart", "out.svg")
    assert len(json.loads(shown.stdout)["answers"]) == 3
    assert "<svg" in Path("out.svg").read_text(encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.usefixtures("ready")
def test_pipes_get_neither_colours_nor_progress():
    """In pipes there is no escape code on either stream, and JSON is alone on stdout."""
    shown = process("ask", ZONES, "--relative", "5%", "--absolute", "200")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "\x1b" not in shown.stdout
    machine = process("ask", ZONES, "--relative", "5%", "--absolute", "200", "--json")
    assert json.loads(machine.stdout)["paid"]["mu"] == 0
    assert machine.stderr == ""


@pytest.mark.thorough
@pytest.mark.usefixtures("ready")
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_a_terminal_gets_progress_on_stderr_only():
    """When stderr is a terminal the refinement draws its bar there; stdout stays clean."""
    master, terminal = os.openpty()
    args = [sys.executable, "-c", RUN, "ask", ZONES, "--relative", "5%", "--absolute", "200", "--json"]
    env = os.environ | {"PYTHONPATH": SOURCE, "TERM": "xterm", "NO_COLOR": "1"}
    drawn = b""
    with (
        subprocess.Popen(args, stdout=subprocess.PIPE, stderr=terminal, env=env) as asking,
        os.fdopen(master, "rb") as seen,
    ):
        os.close(terminal)
        with contextlib.suppress(OSError):  # a terminal whose last writer is gone
            while more := seen.raw.read(4096):
                drawn += more
        answer = json.loads(asking.stdout.read())
    assert b"3/3 groups" in drawn
    assert len(answer["answers"]) == 3


def test_ask_and_status_work_from_elsewhere_with_config(ready, monkeypatch):
    """--config names the settings from any folder; their paths start where they are."""
    monkeypatch.chdir("/")
    config = str(ready / "farthing.toml")
    assert run("ask", ZONES, "--absolute", "200", "--config", config).exit_code == 0
    assert json.loads(run("status", "--config", str(ready), "--json").stdout)["spent"]["mu"] > 0


@pytest.mark.usefixtures("folder")
def test_files_that_were_written_anew_need_a_version_or_the_owners_word():
    """The error tells both ways out: version in farthing.toml, or farthing same-data."""
    assert 0 == run("init", "rides.parquet", "--unit", "row", "--mu", "1").exit_code
    question = ("ask", "SELECT COUNT(*) AS n FROM rides", "--absolute", "100", "--json")
    assert 0 == run(*question).exit_code
    os.utime("rides.parquet", ns=(1, 1))
    refused = run(*question)
    assert 4 == refused.exit_code
    assert "farthing same-data" in refused.stderr
    assert "in farthing.toml, under [table]" in refused.stderr
    assert 0 == run("same-data").exit_code
    before = spent()
    assert 0 == run(*question).exit_code
    assert before == spent()
    os.utime("rides.parquet", ns=(2, 2))
    text = Path("farthing.toml").read_text(encoding="utf-8")
    Path("farthing.toml").write_text(text.replace('version = "1"', 'version = "2"'), encoding="utf-8")
    assert 0 == run(*question).exit_code
    assert before < spent()


@pytest.mark.usefixtures("folder")
def test_a_ledger_that_went_back_is_accepted_by_name():
    """`farthing verify --accept-head` goes on with an older copy."""
    assert 0 == run("init", "rides.parquet", "--unit", "row", "--mu", "1").exit_code
    older = Path("rides.ledger").read_bytes()
    assert 0 == run("ask", "SELECT COUNT(*) AS n FROM rides", "--absolute", "100").exit_code
    Path("rides.ledger").write_bytes(older)
    refused = run("verify")
    assert 4 == refused.exit_code
    head = refused.stderr.split("--accept-head ")[1][:12]
    assert 4 == run("verify", "--accept-head", "0" * 12).exit_code
    assert 0 == run("verify", "--accept-head", head).exit_code
    assert 0 == run("verify").exit_code


CSV = "rider_id,zone,day\n" + "".join(f"{place % 60},{'ab'[place % 3 == 0]},{place % 7}\n" for place in range(600))


def without_readings(settings):
    """Return settings without any [csv.TABLE]."""
    return re.sub(r"(?ms)^\[csv\..*?(?=^\[(?!csv\.)|\Z)", "", settings)


@pytest.mark.usefixtures("folder")
def test_init_writes_a_csv_as_parquet():
    """--parquet converts the declared CSV, names the new file in the settings, and replaces none unasked."""
    Path("trips.csv").write_text(CSV, encoding="utf-8")
    made = run("init", "trips.csv", "--unit", "row", "--epsilon", "1", "--delta", "1e-6", "--parquet")

    assert 0 == made.exit_code, made.stderr
    assert 600 == pq.read_table("trips.parquet").num_rows
    assert 'path = "trips.parquet"' in Path("farthing.toml").read_text(encoding="utf-8")
    assert "[csv.trips]" not in Path("farthing.toml").read_text(encoding="utf-8")
    assert 0 == run("plan", "SELECT COUNT(*) FROM trips", "--absolute", "200").exit_code


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("rides.parquet", "--parquet"), "--parquet for a table that is not a CSV file"),
        (("trips.csv", "--parquet"), "there is a Parquet file of that name"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_parquet_that_cannot_be_written_is_refused(args, words):
    """A table that is no CSV, and a file that is there: exit code 2, and nothing is written."""
    Path("trips.csv").write_text(CSV, encoding="utf-8")
    Path("trips.parquet").write_text("mine", encoding="utf-8")
    refused = run("init", *args, "--unit", "row", "--epsilon", "1", "--delta", "1e-6")

    assert 2 == refused.exit_code
    assert words in refused.stderr
    assert "mine" == Path("trips.parquet").read_text(encoding="utf-8")
    assert not Path("farthing.toml").exists()


@pytest.mark.parametrize(
    ("lines", "words", "code"),
    [
        ("[csv.trips]\ndelimeter = ','", "delimeter", 2),
        ("[csv.trips]\ndelimiter = 5", "csv.trips.delimiter", 2),
        ("[csv.trips]\ndelimiter = 'ab'", "delimiter", 4),
        ("[csv.trips]\nquote = 'ab'", "quote", 4),
        ("[csv.trips]\nnull = 'NA'", "csv.trips.null", 2),
        ("[csv.trips]\ndates = 'no form'", "dates", 4),
        ("[csv.trips.columns]\nday = 'number'", "number", 4),
        ("[csv.trips.columns]\nnight = 'integer'", "night", 4),
        ("[csv.trips]\ncolumns = 'integer'", "columns", 2),
        ("csv = 'trips'", "csv", 2),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_bad_reading_in_the_settings_is_refused(lines, words, code):
    """Unknown settings, wrong types and values: one clear error that names them, exit code 2 or 4, nothing charged."""
    Path("trips.csv").write_text(CSV, encoding="utf-8")
    assert 0 == run("init", "trips.csv", "--unit", "row", "--epsilon", "1", "--delta", "1e-6").exit_code
    before = Path("farthing.toml").read_text(encoding="utf-8")
    kept = without_readings(before)
    kept = f"{lines}\n{kept}" if lines.startswith("csv =") else f"{kept}\n{lines}\n"
    Path("farthing.toml").write_text(kept, encoding="utf-8")
    refused = run("ask", "SELECT COUNT(*) FROM trips", "--absolute", "200")

    assert code == refused.exit_code, refused.stderr
    assert words in refused.stderr
    assert "Traceback" not in refused.stderr
    Path("farthing.toml").write_text(before, encoding="utf-8")
    assert 0 == spent()


@pytest.mark.usefixtures("folder")
def test_a_csv_without_a_declaration_is_refused():
    """Whatever is in it: whether a line would be left out is a secret. `check` declares how it is read."""
    Path("trips.csv").write_text(CSV, encoding="utf-8")
    assert 0 == run("init", "trips.csv", "--unit", "row", "--epsilon", "1", "--delta", "1e-6").exit_code
    before = Path("farthing.toml").read_text(encoding="utf-8")
    Path("farthing.toml").write_text(without_readings(before), encoding="utf-8")
    question = ("plan", "SELECT SUM(day) FROM trips", "--lower", "0", "--upper", "6", "--absolute", "200")
    refused = run(*question)
    Path("trips.csv").write_text(CSV + "a line, that, does, not, fit\n", encoding="utf-8")
    ragged = run(*question)

    assert 2 == refused.exit_code == ragged.exit_code
    assert "nothing says how the CSV table 'trips' is read" in refused.stderr
    assert refused.stderr == ragged.stderr
    for pattern in ("trip*", "trips.cs[v]", "*.c?v", str(Path("trip*").absolute())):
        settings = without_readings(before).replace('path = "trips.csv"', f'path = "{pattern}"')
        Path("farthing.toml").write_text(settings, encoding="utf-8")
        found = run(*question)
        assert (2, True) == (found.exit_code, "nothing says how the CSV table" in found.stderr), pattern
    Path("farthing.toml").write_text(without_readings(before), encoding="utf-8")
    assert 0 == run("check").exit_code
    assert 0 == run(*question).exit_code


def test_a_public_pattern_that_finds_the_protected_file_is_refused(ready):
    """However it is written: nothing is opened and nothing charged."""
    before = (ready / "farthing.toml").read_text(encoding="utf-8")
    for public in ("rides.parquet", "ri*.parquet", "[r]ides.parquet"):
        settings = re.sub(r"\n\[public\]\n|\Z", f'\n[public]\nother = "{public}"\n', before, count=1)
        (ready / "farthing.toml").write_text(settings, encoding="utf-8")
        refused = run("plan", "SELECT COUNT(*) FROM rides", "--absolute", "200")
        assert (2, True) == (refused.exit_code, "'other' is a protected table" in refused.stderr), refused.stderr


@pytest.mark.usefixtures("folder")
def test_init_tells_the_lines_that_would_be_left_out():
    """Where, how many and why; nothing is written; with --drop-lines they are left out."""
    Path("trips.csv").write_text(CSV + 'too,few\n"a\nb",c,1\n', encoding="utf-8")
    asked = ("init", "trips.csv", "--unit", "row", "--epsilon", "1", "--delta", "1e-6")
    refused = run(*asked)

    assert 2 == refused.exit_code
    told = " ".join(refused.stderr.split())
    assert "3 lines of 603 in trips.csv would be left out" in told
    assert "line 602: 2 fields, where the header has 3" in told
    assert "lines 603, 604: a quote out of place" in told
    assert not Path("farthing.toml").exists()
    assert 0 == run(*asked, "--drop-lines").exit_code


@pytest.mark.usefixtures("folder")
def test_init_tells_of_a_broken_parquet_file_that_it_is_broken():
    """A file that is named Parquet and is none is not taken for a CSV that was declared."""
    Path("trips.parquet").write_bytes(b"PAR1" + bytes(100))
    refused = run("init", "trips.parquet", "--unit", "row", "--epsilon", "1", "--delta", "1e-6")

    assert 4 == refused.exit_code
    assert "a Parquet file is whole: its rows and its footer are there" in " ".join(refused.stderr.split())


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("part", [slice(12), slice(-4000), "flipped"])
def test_init_and_check_tell_of_a_packed_file_that_is_not_whole(part):
    """One that was cut, or of which one bit is wrong, ends both with words and leaves nothing behind."""
    packed = gzip.compress(b"zone,x\n" + random.Random(1).randbytes(30_000).hex().encode(), mtime=0)
    wrong = packed[:9_000] + bytes([packed[9_000] ^ 1]) + packed[9_001:] if part == "flipped" else packed[part]
    Path("trips.csv.gz").write_bytes(wrong)

    for asked in (
        ("init", "trips.csv.gz", "--unit", "row", "--epsilon", "1", "--delta", "1e-6"),
        ("check", "trips.csv.gz"),
    ):
        refused = run(*asked)
        assert 4 == refused.exit_code
        assert "one that ends in .gz can be unpacked" in " ".join(refused.stderr.split())
    assert ["trips.csv.gz"] == [
        path.name for path in Path().iterdir() if "trips" in path.name or path.suffix == ".toml"
    ]


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("ending", ["HAVING n > 1e9", "ORDER BY n DESC LIMIT 0"])
def test_an_answer_without_a_row_is_shown(ending):
    """What hides all groups was paid for, and is said to be none."""
    asked = ("--max-groups", "1", "--max-rows", "1", "--absolute", "40", "--cap", "all")
    shown = run("ask", f"SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone {ending}", *asked)

    assert 0 == shown.exit_code
    assert "met by 0 of 0" in " ".join(shown.stdout.split())


@pytest.mark.usefixtures("ready")
def test_an_ask_draws_on_a_share_and_never_beyond_it(monkeypatch):
    """--allotment, or FARTHING_ALLOTMENT, names the share; what does not fit in it is refused."""
    assert run("allot", "alice", "1%").exit_code == 0
    question = ("ask", "SELECT COUNT(*) AS n FROM rides", "--max-groups", "1", "--max-rows", "1")
    assert run(*question, "--absolute", "40", "--cap", "all", "--allotment", "alice").exit_code == 3
    monkeypatch.setenv("FARTHING_ALLOTMENT", "alice")
    assert run(*question, "--loss", "mu=0.01", "--json").exit_code == 0
    monkeypatch.delenv("FARTHING_ALLOTMENT")
    (entry,) = json.loads(run("history", "--json").stdout)["history"]
    assert entry["allotment"] == "alice"


@pytest.mark.usefixtures("ready")
def test_the_settings_may_be_named_by_the_environment(tmp_path, monkeypatch):
    """FARTHING_CONFIG stands in where --config is left out."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run("status").exit_code == 2
    monkeypatch.setenv("FARTHING_CONFIG", str(tmp_path))
    assert run("status").exit_code == 0


def test_a_notebook_shows_an_error_in_one_line():
    """IPython asks an exception what to show: its one line, not the frames of the library."""
    for kind in {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, FarthingError)}:
        more = {"answer": None} if kind is errors.TargetMissed else {}
        (line,) = kind("no such column", next_step="did you mean zone?", **more)._render_traceback_()
        assert line == f"{kind.__name__}: no such column; next: did you mean zone?"
