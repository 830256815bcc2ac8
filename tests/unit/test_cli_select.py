"""`farthing select`: the largest groups of the table, and how a choice among public scores goes."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from farthing.cli.app import app
from farthing.mechanisms import Exponential, PermuteAndFlip

pytestmark = pytest.mark.thorough


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
    """A folder with rides in three zones, and a fourth zone without any."""
    monkeypatch.chdir(tmp_path)
    zones = ["a"] * 9_000 + ["b"] * 3_000 + ["c"] * 400
    pq.write_table(pa.table({"zone": zones, "late": [1.0] * 9_000 + [9.0] * 3_400}), "rides.parquet")
    budget = ("--epsilon", "2", "--delta", "1e-6", "--keys-delta", "1e-7")
    made = run("init", "rides.parquet", *budget, "--keys", "zone=a,b,c,d")
    assert made.exit_code == 0, made.stderr
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_largest_groups_by_rows_and_by_a_sum():
    """Best first, with rank, price and promise; by a value that is added up the order is another."""
    facts = told("select", "zone", "-k", "2", "--within", "500")
    assert [{"rank": 1, "zone": "a"}, {"rank": 2, "zone": "b"}] == facts["chosen"]
    assert facts["paid"]["mu"] == facts["compared"][0]["price"]["mu"]
    late = told("select", "zone", "-k", "1", "--value", "late", "--lower", "0", "--upper", "9", "--epsilon", "0.1")
    assert ["b"] == [row["zone"] for row in late["chosen"]]
    shown = run("select", "zone", "-k", "2", "--within", "500").stdout
    assert ["1", "a"] == shown.splitlines()[3].split()
    assert "at most 500 below the true rank 2, 0.95 confidence" in shown
    assert "paid epsilon 0 at delta 1e-06 (mu 0)" in shown
    assert "top-2 (gaussian)" in shown


@pytest.mark.usefixtures("folder")
def test_an_order_is_proved():
    """--order-correct says whether the order is proved."""
    assert "proved by released intervals" in run("select", "zone", "-k", "2", "--order-correct", "95%").stdout
    facts = told("select", "zone", "-k", "3", "--keys", "zone=b,d", "--order-correct", "0.9", "-k", "1")
    assert (True, ["b"]) == (facts["proved"], [row["zone"] for row in facts["chosen"]])


@pytest.mark.usefixtures("folder")
def test_groups_that_are_not_listed():
    """--keys private chooses from those that exist, by an expression too."""
    facts = told("select", "zone", "-k", "2", "--keys", "private", "--epsilon", "0.5", "--cap", "all")
    assert ["a", "b"] == [row["zone"] for row in facts["chosen"]]
    facts = told("select", "name=UPPER(zone)", "-k", "1", "--keys", "name=A,B", "--within", "500")
    assert [{"rank": 1, "name": "A"}] == facts["chosen"]


@pytest.mark.usefixtures("folder")
def test_prices_are_drawn():
    """--chart draws the prices that were compared."""
    assert 0 == run("select", "zone", "-k", "2", "--within", "500", "--chart", "prices.svg").exit_code
    assert "gumbel" in Path("prices.svg").read_text(encoding="utf-8")
    assert 0 == run("select", "zone", "-k", "2", "--order-correct", "0.9", "--chart", "order.svg").exit_code


def test_public_scores_need_no_table(tmp_path, monkeypatch):
    """Both mechanisms side by side, as the library has them; nothing is opened, and a chart is drawn."""
    monkeypatch.chdir(tmp_path)
    facts = told("select", "--scores", "120,100,90", "--epsilon", "0.1")
    scores = [120.0, 100.0, 90.0]
    assert Exponential(0.1).probabilities(scores).tolist() == facts["probabilities"]["exponential"]
    assert PermuteAndFlip(0.1).probabilities(scores).tolist() == facts["probabilities"]["permute and flip"]
    assert facts["regret"]["permute and flip"] < facts["regret"]["exponential"]
    both = ("--sensitivity", "2", "--monotone", "--chart", "choice.svg")
    shown = run("select", "--scores", "120,100,90", "--epsilon", "0.1", *both).stdout
    assert ["120", f"{Exponential(0.1).probabilities(scores, 2, monotone=True)[0]:.4g}"] == shown.splitlines()[
        3
    ].split()[:2]
    assert "expected below the best" in shown
    assert "permute and flip" in Path("choice.svg").read_text(encoding="utf-8")


BAD = {
    "nothing": (),
    "both": ("zone", "--scores", "1,2"),
    "no goal": ("zone",),
    "two goals": ("zone", "--within", "5", "--epsilon", "1"),
    "k is 0": ("zone", "-k", "0", "--within", "5"),
    "k above the keys": ("zone", "-k", "5", "--epsilon", "0.1"),
    "k is not a number": ("zone", "-k", "two", "--within", "5"),
    "unknown column": ("zoen", "--within", "5"),
    "unlisted within": ("zone", "--keys", "private", "--within", "5"),
    "scores without a price": ("--scores", "1,2"),
    "scores that are none": ("--scores", "1,x", "--epsilon", "1"),
    "scores that are NaN": ("--scores", "1,nan", "--epsilon", "1"),
    "no scores": ("--scores", "", "--epsilon", "1"),
    "sensitivity 0": ("--scores", "1,2", "--epsilon", "1", "--sensitivity", "0"),
    "an unknown chart": ("zone", "-k", "2", "--within", "500", "--chart", "x.bmp"),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case):
    """Every mistake ends with a usage code and one line, and nothing is paid."""
    ended = run("select", *BAD[case])
    assert ended.exit_code in {2, 4}, ended.output
    assert "Traceback" not in ended.output
    assert 0 == told("status")["spent"]["mu"]
