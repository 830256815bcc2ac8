"""`farthing groups`: the loss by size, on the command line and as a picture."""

import json

import pytest
from typer.testing import CliRunner

from farthing import charts
from farthing.cli.app import app
from farthing.mechanisms import LinearLog

OURS = "gaussian,sqrt,log,linear-log,asinh"


def run(*args):
    """Run the command line in this process."""
    return CliRunner().invoke(app, ["groups", *args])


def facts(*args):
    """Return what --json prints."""
    ended = run(*args, "--json")
    assert 0 == ended.exit_code, ended.output
    return json.loads(ended.stdout)


def test_a_row_a_size_and_a_column_a_mechanism():
    """The table names every size, every mechanism, the oracle and the bound; then what each mechanism is."""
    shown = run("--sizes", "1,10,1000", "--relative", "0.1", "--x0", "50", "--mechanism", OURS).output
    for word in ("1,000", *OURS.split(","), "knows the size", "lower bound", "max(size, 50)", "rho at its worst"):
        assert word in shown


def test_json_has_the_policy_itself():
    """The numbers are those of the mechanism; the oracle is met within 1 %, and the bound holds."""
    found = facts("--sizes", "10,100000", "--relative", "10%", "--x0", "50", "--metric", "rmse", "--mechanism", OURS)
    mechanism = LinearLog.for_relative_error(0.1, x0=50, metric="rmse")
    assert [float(mechanism.policy(x)) for x in (10, 100000)] == [row["rho"]["linear-log"] for row in found["groups"]]
    assert {"sigma": mechanism.sigma, "x0": 50, "sensitivity": 1} == next(
        each["settings"] for each in found["mechanisms"] if each["name"] == "linear-log"
    )
    for row in found["groups"]:
        assert all(error <= row["target_error"] for error in row["expected_error"].values())
        assert all(rho >= row["lower_bound_rho"] for rho in row["rho"].values())
        assert row["oracle_rho"] >= row["lower_bound_rho"]
    assert found["groups"][1]["rho"]["linear-log"] < 1.05 * found["groups"][1]["oracle_rho"]
    assert found["groups"][1]["rho"]["gaussian"] > 1e6 * found["groups"][1]["oracle_rho"]


def test_every_mechanism_is_compared_by_default():
    """Six of them, the two-stage mechanism with its strict loss, which is flat."""
    found = facts("--sizes", "1,10,100,1000", "--relative", "0.1")
    assert ["gaussian", "two-stage", "sqrt", "log", "linear-log", "asinh"] == [m["name"] for m in found["mechanisms"]]
    assert 1 == len({row["rho"]["two-stage"] for row in found["groups"]})
    assert 1 == found["x0"]
    assert "mae" == found["metric"]


@pytest.mark.parametrize(("metric", "told"), [("rmse", "root mean square"), ("95%", "0.95 confidence half-width")])
def test_metrics(metric, told):
    """A target is a mean, a root mean square or a confidence."""
    assert told in run("--sizes", "5", "--relative", "0.2", "--metric", metric, "--mechanism", "asinh").output


def test_sizes_from_a_file(tmp_path):
    """FILE:COLUMN, or FILE with one column."""
    (tmp_path / "a.csv").write_text("zone,riders\nx,10\ny,1000\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("size\n7\n", encoding="utf-8")
    asked = ("--relative", "0.1", "--mechanism", "asinh")
    assert [10, 1000] == [row["size"] for row in facts("--csv", f"{tmp_path}/a.csv:riders", *asked)["groups"]]
    assert [7] == [row["size"] for row in facts("--csv", f"{tmp_path}/b.csv", *asked)["groups"]]
    assert 2 == run("--csv", f"{tmp_path}/a.csv", *asked).exit_code
    assert 2 == run("--csv", f"{tmp_path}/a.csv:cars", *asked).exit_code
    assert 4 == run("--csv", f"{tmp_path}/none.csv:cars", *asked).exit_code
    (tmp_path / "c.csv").write_text("size\n", encoding="utf-8")
    assert 2 == run("--csv", f"{tmp_path}/c.csv", *asked).exit_code
    (tmp_path / "d.csv").write_bytes(b"size\n\xff\xfe\n")
    assert 4 == run("--csv", f"{tmp_path}/d.csv", *asked).exit_code


def test_a_chart(tmp_path):
    """One line a mechanism and two for the ideals, in the order of the table."""
    path = tmp_path / "loss.svg"
    ended = run("--sizes", "1,100", "--relative", "0.1", "--mechanism", "log,asinh", "--chart", str(path))
    assert 0 == ended.exit_code, ended.output
    drawn = path.read_text(encoding="utf-8")
    for name in ("log", "asinh", "lower bound", "knows the size"):
        assert name in drawn


def test_curves_keep_their_order_and_leave_out_zeros():
    """A logarithmic axis has no zero."""
    chart = charts.policy_chart([1, 10], {"b": [0.1, 0.0], "a": [0.2, 0.1]}, title="t")
    assert 3 == len(chart.data.values)
    assert ["b", "a"] == chart.to_dict()["encoding"]["color"]["scale"]["domain"]


@pytest.mark.parametrize("text", ["0", "1,0,5", "-3", "1.5", "x", "", "1,,2", "1e30", "nan", "inf"])
def test_sizes_that_are_none_are_refused(text):
    """By name, as usage."""
    ended = run("--sizes", text, "--relative", "0.1")
    assert 2 == ended.exit_code
    assert "group" in ended.output


def test_a_group_of_zero_is_refused_with_the_reason():
    """No relative error can be had of nothing."""
    assert "infinite loss" in run("--sizes", "0", "--relative", "0.1").output


@pytest.mark.parametrize(
    "options",
    [
        ("--relative", "0.1"),
        ("--relative", "0.1", "--sizes", "1", "--csv", "x.csv"),
        ("--relative", "0", "--sizes", "1"),
        ("--relative", "2", "--sizes", "1"),
        ("--relative", "-0.1", "--sizes", "1"),
        ("--relative", "0.1", "--sizes", "1", "--x0", "0"),
        ("--relative", "0.1", "--sizes", "1", "--x0", "many"),
        ("--relative", "0.1", "--sizes", "1", "--metric", "median"),
        ("--relative", "0.1", "--sizes", "1", "--metric", "20%"),
        ("--relative", "0.1", "--sizes", "1", "--mechanism", "cube"),
        ("--relative", "0.1", "--sizes", "1", "--chart", "x.pdf"),
    ],
)
def test_options_that_cannot_be_are_refused(options):
    """One line on stderr and exit code 2; with --json an object on stdout."""
    ended = run(*options, "--json")
    assert 2 == ended.exit_code
    assert "error" in json.loads(ended.stdout)
    assert "farthing: " in ended.stderr
