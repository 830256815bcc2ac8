"""`farthing history`, `export`, `verify` and `allot`: the books on the command line."""

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest
from ledger_servers import fresh_schema
from typer.testing import CliRunner

from farthing.cli.app import app
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

TERMS = Terms("gdp", budget=1 << 34, delta=1 << 60, keys_delta=0, unit="row", description="mu=0.125")


@pytest.fixture(params=["file", "postgres"])
def place(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if request.param == "file":
        yield "a.ledger"
        return
    with fresh_schema() as url:
        yield url


@pytest.fixture
def books(place):
    """A ledger with an allotment, a part, a settled and an open entry, closed."""
    with Ledger.open(place, TERMS, who="Ada") as ledger:
        ledger.allot("alice", 1 << 33)
        part = ledger.part(partition="region", name="EU")
        ask = {"version": 0, "label": "COUNT(*) AS n", "target": "within 5%", "question": "q"}
        receipt = part.reserve(increase=1 << 30, fresh=1 << 30, allotment="alice", **ask)
        part.settle(receipt, 1 << 28, lambda _: b"released")
        ledger.reserve(increase=1 << 20, fresh=1 << 20, **ask)
    return place


def run(*args):
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(args))


def test_history_tells_who_what_and_paid_what(books):
    """Each line has analyst, question, target, price, state, and what it drew on."""
    shown = run("history", books)
    assert 0 == shown.exit_code
    for word in ("Ada", "COUNT(*) AS n, within 5%", "settled", "open", "alice, part EU", "0.01562"):
        assert word in shown.stdout
    entries = json.loads(run("history", books, "--json", "--rows", "1").stdout)["history"]
    assert [("open", "Ada", None, "within 5%")] == [(e["state"], e["who"], e["part"], e["target"]) for e in entries]


def test_status_shows_allotments(books):
    """Shares, what was spent of them, and what is left."""
    facts = json.loads(run("status", books, "--json").stdout)
    held = facts["allotments"]["alice"]
    assert (2**-3.5, 2**-6) == (pytest.approx(held["share"]["mu"]), pytest.approx(held["spent"]["mu"]))
    assert "alice" in run("status", books).stdout


def test_export_is_everything_but_the_secret(books):
    """JSON holds terms, chain, acts, every entry in order and what was released of it; the hash key stays."""
    shown = run("export", books)
    facts = json.loads(shown.stdout)
    assert [1, 2] == [entry["id"] for entry in facts["entries"]]
    assert (1 << 28, "EU", "alice") == tuple(
        facts["entries"][0][name] for name in ("paid_farthings", "part", "allotment")
    )
    assert (4, ["allotted"]) == (facts["records"], [act["kind"] for act in facts["acts"]])
    assert facts["entries"][1]["hash"] == facts["head"]
    with Ledger.inspect(books) as ledger:
        assert str(ledger.hash_key) not in shown.stdout
    assert {"identity", "released"} <= set(facts["measurements"][0])


def test_export_as_csv_into_a_new_file(books):
    """CSV has a line an entry, and never writes over a file."""
    assert 0 == run("export", books, "--csv", "--out", "history.csv").exit_code
    lines = list(csv.DictReader(io.StringIO(Path("history.csv").read_text(encoding="utf-8"))))
    assert ["settled", "open"] == [line["state"] for line in lines]
    assert 2**-6 == pytest.approx(float(lines[0]["paid"]))
    assert "exists already" in (again := run("export", books, "--out", "history.csv")).stderr
    assert 2 == again.exit_code == run("export", books, "--csv", "--json").exit_code


def test_verify_tells_the_head(books):
    """Good books are exit code 0, with the head to note; a head that is not in the chain is 4."""
    facts = json.loads(run("verify", books, "--json").stdout)
    assert (True, 4) == (facts["good"], facts["records"])
    assert 0 == run("verify", books, "--head", facts["head"]).exit_code
    assert 4 == (wrong := run("verify", books, "--head", "f" * 64)).exit_code
    assert "not in the chain" in wrong.stderr


def test_verify_finds_an_edit(tmp_path, monkeypatch):
    """Books that were edited by hand are exit code 4, and say what was."""
    monkeypatch.chdir(tmp_path)
    Ledger.open("a.ledger", TERMS).close()
    with sqlite3.connect("a.ledger") as hand:
        hand.execute("UPDATE totals SET spent = 7")
    hand.close()
    shown = run("verify", "a.ledger", "--json")
    assert (4, "LedgerError") == (shown.exit_code, json.loads(shown.stdout)["error"]["kind"])
    assert "the running total is not what was written" in shown.stderr


def test_allot_gives_a_share(books):
    """A part of the budget or a loss; more than is left is refused and changes nothing."""
    assert 0 == run("allot", "bob", "20%", books).exit_code
    assert 0 == run("allot", "carol", "mu=0.0625", books, "--json").exit_code
    with Ledger.inspect(books) as ledger:
        assert ((1 << 34) // 5, 1 << 32) == tuple(ledger.allotments[name].share for name in ("bob", "carol"))
    assert "bob" in run("allot", "bob", "1%", books).stdout
    for share, code in (("100%", 4), ("rho=0.001", 4), ("lots", 2), ("-5%", 2), ("200%", 2)):
        assert code == run("allot", "dora", share, books).exit_code, share
    with Ledger.inspect(books) as ledger:
        assert {"alice", "bob", "carol"} == set(ledger.allotments)


def test_ledger_of_the_settings(books):
    """Without a name the ledger is the one in farthing.toml, be it a file or a server."""
    Path("farthing.toml").write_text(
        f'[table]\npath = "t.csv"\nname = "t"\n[budget]\nmu = 0.125\n[ledger]\npath = "{books}"\n', encoding="utf-8"
    )
    for command in ("status", "history", "export", "verify"):
        assert 0 == run(command).exit_code, command
    assert 0 == run("allot", "bob", "20%").exit_code


@pytest.mark.parametrize("command", ["status", "history", "export", "verify"])
def test_no_ledger_is_made_by_looking(tmp_path, monkeypatch, command):
    """A ledger that is not there is exit code 4, and still not there."""
    monkeypatch.chdir(tmp_path)
    assert 4 == run(command, "a.ledger").exit_code
    assert [] == list(tmp_path.iterdir())


def test_passwords_are_never_printed():
    """An unreachable server is told without the password of its URL."""
    shown = run("status", "postgresql+psycopg://user:s3cret@127.0.0.1:1/db")
    assert 4 == shown.exit_code
    assert "s3cret" not in shown.stdout + shown.stderr
