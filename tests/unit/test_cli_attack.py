"""`farthing attack`: what is attacked, what is shown, and how it ends."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from farthing import attacks
from farthing.attacks import demonstration
from farthing.attacks.demonstration import Case
from farthing.attacks.published import hashed
from farthing.cli.app import app

pytestmark = pytest.mark.thorough

FUNCTIONS = """
from farthing.attacks import People, Refused
people = People.read("people.csv")
def answer(chosen):
    return int((chosen & people.bits).sum())
def sql(text):
    return Refused("no " + text[:6])
class Kept:
    five = staticmethod(lambda chosen: 5 * round(answer(chosen) / 5))
"""

ODD = """
from farthing.attacks import People, Refused
people, asked = People.read("people.csv"), []
number = 3
def sql(text):
    return len(text.split())
def ends(chosen):
    asked.append(1)
    return int((chosen & people.bits).sum()) if len(asked) <= 80 else Refused("budget used up", "budget")
"""


def unknown(address):
    """Return the exit code, and whether the kind of address is called unknown."""
    code, output = run("run", address, "--secrets", "people.csv")
    return code, "unknown kind of address" in output


def run(*arguments):
    """Return the exit code and the output of a command."""
    ended = CliRunner().invoke(app, ["attack", *map(str, arguments)])
    assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
    return ended.exit_code, ended.output


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Return people whose secrets were drawn by the command, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    assert 0 == run("secrets", "people.csv", "--n", 120, "--seed", 4)[0]
    return attacks.People.read("people.csv")


def test_secrets_are_drawn_once(people):
    """The file holds the people, is never written over, and says what to do next."""
    code, output = run("secrets", "people.csv")
    more, said = run("secrets", "more.parquet", "--attributes", 3)

    assert (2, 120) == (code, people.n)
    assert "exists" in output
    assert 0 == more
    assert "farthing attack run TARGET --secrets more.parquet" in said
    assert ["id", "age", "sex", "area", "a1", "a2", "a3", "secret"] == pq.read_table("more.parquet").column_names


@pytest.mark.parametrize(
    ("arguments", "code", "verdict"),
    [
        (["rounded", "--attack", "linear", "--attack", "membership"], 10, "broken"),
        (["subsample", "--attack", "least-squares"], 10, "broken"),
        (["suppressed", "--attack", "averaging"], 11, "undecided"),
        (["honest"], 0, "holds"),
        (["leaky-ledger"], 10, "broken"),
        (["off-by-two", "--claim-epsilon", "1.5", "--attack", "single-target"], 0, "holds"),
        (["off-by-two", "--claim-epsilon", "3", "--attack", "single-target"], 11, "undecided"),
        (["float-noise", "--attack", "precision"], 10, "broken"),
        (["diffix-cedar", "--attack", "dick-joseph-schutzman"], 10, "broken"),
        (["diffix-birch", "--attack", "cohen-nissim", "--claim-epsilon", "1"], 10, "broken"),
        (["fresh-noise", "--claim-epsilon", "20", "--claim-change", "bit"], 11, "undecided"),
    ],
)
def test_built_in_targets(arguments, code, verdict):
    """Each ends with the code of its verdict, with a claim of its own or a named one."""
    ended, output = run("run", *arguments, "--queries", 1200, "--json")
    found = json.loads(output)

    assert (code, verdict) == (ended, found["verdict"])
    assert code == found["exit_code"]
    assert set(arguments[2:3]) & set(attacks.ATTACKS) <= {one["attack"] for one in found["attacks"]}


@pytest.mark.usefixtures("people")
def test_a_report_in_words():
    """A row an attack, the claim, the refusals, the verdict; and a picture."""
    promise = ["--claim-epsilon", 1, "--claim-delta", "1e-6"]
    code, output = run(
        "run", "exact", "--secrets", "people.csv", *promise, "--attack", "linear", "--chart", "exact.svg"
    )

    assert 10 == code
    assert "100.0%" in output
    assert "claim    epsilon 1, delta 1e-06 for a change of one person" in output
    assert "verdict  BROKEN, p < 0.001" in output
    assert "<svg" in Path("exact.svg").read_text(encoding="utf-8")


@pytest.mark.usefixtures("people")
def test_functions():
    """A module of this folder: vectors, SQL, and names within classes."""
    Path("mine_to_attack.py").write_text(FUNCTIONS, encoding="utf-8")
    assert 10 == run("run", "mine_to_attack:answer", "--secrets", "people.csv")[0]
    assert 10 == run("run", "mine_to_attack:Kept.five", "--secrets", "people.csv", "--attack", "linear")[0]
    sql = ["mine_to_attack:sql", "--speaks", "sql", "--attack", "linear"]
    code, output = run("run", *sql, "--secrets", "people.csv")
    assert 11 == code
    assert "no SELECT" in output
    assert "needs    answers; none of 960 questions got one" in output
    Path("odd_to_attack.py").write_text(ODD, encoding="utf-8")
    code, output = run("run", "odd_to_attack:sql", "--secrets", "people.csv")
    assert (11, True) == (code, "add --speaks sql" in output)
    code, output = run("run", "odd_to_attack:number", "--secrets", "people.csv")
    assert (2, True) == (code, "this is not a function" in output)
    assert (4, True) == unknown("ftp://host/file")
    code, output = run("run", "mine_to_attack:gone", "--secrets", "people.csv")
    assert (2, True) == (code, "no such function" in output)


def test_a_database(people):
    """Any database URL; SQL names of its own."""
    rows = [(int(one), "C" if bit else "D") for one, bit in zip(people.ids, people.bits, strict=True)]
    with closing(sqlite3.connect("people.db")) as books, books:
        books.execute("CREATE TABLE clients (client INT, status TEXT)")
        books.executemany("INSERT INTO clients VALUES (?, ?)", rows)
    table = people.to_arrow().rename_columns(["client", "age", "sex", "area", "secret"])
    pq.write_table(table, "clients.parquet")
    names = ["--table", "clients", "--where", "status = 'C'", "--id", "client"]
    how = ["--compiler", "ids", "--attack", "linear", "--json"]
    code, output = run("run", "sqlite:///people.db", "--secrets", "clients.parquet", *names, *how)
    assert 10 == code
    assert 1.0 == json.loads(output)["attacks"][0]["accuracy"]
    assert 4 == run("run", "nonsense://host/db", "--secrets", "people.csv")[0]


@pytest.mark.usefixtures("people")
def test_exact_answers_that_stop_are_broken():
    """A question about each of some people comes first; one attack alone that got too little says so."""
    Path("ending_to_attack.py").write_text(ODD, encoding="utf-8")
    named = ["ending_to_attack:ends", "--secrets", "people.csv", "--claim-epsilon", 1]
    code, output = run("run", *named, "--json")
    assert (10, "one-each", 80) == (code, *[json.loads(output)["attacks"][0][key] for key in ("attack", "answered")])
    Path("alone_to_attack.py").write_text(ODD, encoding="utf-8")
    code, output = run("run", "alone_to_attack:ends", *named[1:], "--attack", "single-target")
    assert 11 == code
    assert "at least 56 guesses" in output


@pytest.mark.usefixtures("people")
def test_a_farthing_toml():
    """The whole budget is attacked on books in memory: it holds, and the ledger has spent nothing."""
    assert 0 == CliRunner().invoke(app, ["init", "people.csv", "--epsilon", "1", "--delta", "1e-6"]).exit_code
    how = ["--queries", 130, "--attack", "linear", "--json"]
    code, output = run("run", "farthing.toml", "--secrets", "people.csv", *how)
    found = json.loads(output)
    assert (0, "holds") == (code, found["verdict"])
    assert 130 == found["attacks"][0]["answered"]
    assert 2 < found["claim"]["epsilon"] < 2.2
    code, output = run("run", ".", "--secrets", "people.csv", "--queries", 20, "--claim-epsilon", 0.5)
    assert "epsilon 0.5 for a change of one person" in output
    assert "nothing was asked yet" in CliRunner().invoke(app, ["status"]).output


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["exact", "--claim-epsilon", "0"], 2, "epsilon is finite and > 0"),
        (["exact", "--claim-epsilon", "-1"], 2, "out of range"),
        (["exact", "--claim-epsilon", "much"], 2, "not a number"),
        (["exact", "--claim-delta", "1e-6"], 2, "a claim without an epsilon"),
        (["exact", "--claim-epsilon", "1", "--claim-delta", "1"], 2, "delta is in"),
        (["exact", "--claim-epsilon", "1", "--claim-change", "row"], 2, "the change is unknown"),
        (["exakt"], 2, "did you mean 'exact'?"),
        (["exact", "--attack", "linnear"], 2, "the attack is unknown"),
        (["exact", "--chart", "x.bmp"], 2, "chart format"),
        (["http://127.0.0.1:9/query"], 2, "--secrets people.csv"),
        (["http://127.0.0.1:9/query", "--secrets", "none.csv"], 4, "cannot be read"),
        (["http://127.0.0.1:9/query", "--secrets", "people.csv", "--speaks", "latin"], 2, "sql or vector"),
        (["http://127.0.0.1:9/query", "--secrets", "people.csv", "--header", "token"], 2, "NAME: VALUE"),
        (["http://127.0.0.1:9/query", "--secrets", "uneven.csv"], 4, "not drawn by fair coins"),
        (["http://127.0.0.1:9/query", "--secrets", "people.csv", "--attack", "linear"], 4, "cannot be asked"),
    ],
)
def test_bad_input(arguments, code, said):
    """Claims that are none, targets that are not there, files that do not do."""
    Path("uneven.csv").write_text("id,secret\n" + "".join(f"{one},0\n" for one in range(100)), encoding="utf-8")
    ended, output = run("run", *arguments)

    assert code == ended
    assert said in " ".join(output.split())


def recorded(n=80, wrong=0):
    """Write the answers of a made-up system and its people; a few secrets are not those that it answered by."""
    coins = attacks.Coins(1, "recorded")
    ids, bits = np.sort(2001 + coins.order(998)[:n]), coins.bits(n)
    exponents = [k / 10 for k in range(5, 20) if k != 10]
    constants = [(e, p, o) for e in exponents for p in (2, 3, 5, 7) for o in (10, 100, 1_000)]
    counts = [int((hashed(ids.astype(float), *one) & bits).sum()) for one in constants]
    asked = [f"2000,3000,{e},{p},{o},{count}" for (e, p, o), count in zip(constants, counts, strict=True)]
    Path("answers.csv").write_text(
        "\n".join(["range_low,range_high,exponent,multiplier,offset,answer", *asked]), encoding="utf-8"
    )
    bits[:wrong] ^= True
    known = [f"2000,3000,{one},{int(bit)}" for one, bit in zip(ids, bits, strict=True)]
    Path("people.csv").write_text(
        "\n".join(["range_low,range_high,client_id,status_is_c", *known]) + "\n", encoding="utf-8"
    )


def test_replay(tmp_path, monkeypatch):
    """Recorded answers are solved, and the wrong guesses counted; the verdict is the exit code."""
    monkeypatch.chdir(tmp_path)
    recorded(wrong=2)
    code, output = run("replay", "--answers", "answers.csv", "--people", "people.csv", "--json")
    found = json.loads(output)

    assert (10, 80, 2, "broken") == (code, found["people"], found["wrong"], found["verdict"])
    code, output = run("replay", "--answers", "answers.csv", "--people", "people.csv", "--claim-epsilon", "9")
    assert 11 == code
    assert "78 of 80 secrets guessed right" in output
    assert 4 == run("replay", "--answers", "people.csv", "--people", "people.csv")[0]
    assert 2 == run("replay", "--answers", "answers.csv")[0]


def some(*, lie=False):
    """Return a short demonstration; with a lie, one whose honest target is broken."""
    bits = attacks.secrets(60, seed=1).bits
    exact = Case("exact", "linear", honest=lie, run=lambda: attacks.linear(attacks.targets.Exact(bits)))
    honest = Case("kept", "linear", honest=True, run=lambda: attacks.linear(attacks.targets.Honest(bits, 1, 240)))
    return [exact, honest]


def test_demo(tmp_path, monkeypatch):
    """A table, the curves, a picture, JSON; it fails where the suite is wrong about a target."""
    monkeypatch.chdir(tmp_path)
    drawn = {"Diffix Birch": {10: 0.5, 20: 1.0}, "farthing": {10: 0.5, 20: 0.5}}
    monkeypatch.setattr(demonstration, "curves", lambda _: drawn)
    monkeypatch.setattr(demonstration, "cases", lambda _: some())
    code, output = run("demo", "--chart", "demo.html")
    assert 0 == code
    assert "2 systems, 2 attacks\nhonest, and called broken: none" in output
    assert "<script" in (tmp_path / "demo.html").read_text(encoding="utf-8")
    code, output = run("demo", "--json")
    assert ["broken", "holds"] == [row["verdict"] for row in json.loads(output)["attacks"]]
    monkeypatch.setattr(demonstration, "cases", lambda _: some(lie=True))
    assert 10 == run("demo")[0]
    monkeypatch.setattr(demonstration, "cases", lambda _: [Case("kept", "linear", honest=False, run=some()[1].run)])
    assert (11, True) == (run("demo")[0], "not found to be: kept" in run("demo")[1])
