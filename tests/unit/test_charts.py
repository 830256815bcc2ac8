"""Charts: what is drawn, what is written, and what is refused."""

from __future__ import annotations

import json
import re
from datetime import date
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

import farthing
from farthing import charts
from farthing.errors import DataError, FarthingError, InvalidOption
from farthing.privacy import profile

pytestmark = pytest.mark.thorough


def rows(groups: int, missed: int = 0) -> pa.Table:
    """Return an answer's rows: groups of rising size, the first ones missed."""
    value = [100.0 * i for i in range(groups)]
    return pa.table(
        {
            "zone": [f"zone {i}" for i in range(groups)],
            "n": value,
            "n_lower": [x - 50 for x in value],
            "n_upper": [x + 50 for x in value],
            "met": [i >= missed for i in range(groups)],
            "paid": [0.01] * groups,
        }
    )


def draw(table: pa.Table, title: str = "n within 50, 0.95 confidence"):
    """Return the chart of an answer's rows."""
    return charts.answer_chart(table, keys=("zone",), name="n", title=title, parameter="mu")


def values(chart) -> list[dict]:
    """Return the rows of a chart's data."""
    return chart.to_dict()["data"]["values"]


def shown(table: pa.Table) -> list[dict]:
    """Return the rows that are drawn of a table."""
    return values(draw(table))


@pytest.mark.parametrize("groups", [1, 2, 40])
def test_few_groups_are_all_drawn(groups):
    """Up to forty groups are drawn, the largest first, and no subtitle speaks of a part."""
    assert [f"zone {i}" for i in reversed(range(groups))] == [row["group"] for row in shown(rows(groups))]
    assert "subtitle" not in json.dumps(draw(rows(groups)).to_dict()["title"].get("subtitle") or "")


def test_many_groups_are_cut_to_the_largest_and_it_is_said():
    """Of 1,458 groups the forty largest are drawn."""
    assert len(shown(rows(1458))) == 40
    assert "zone 1457" == shown(rows(1458))[0]["group"]
    assert ["the 40 largest answers of 1,458 groups"] == draw(rows(1458)).to_dict()["title"]["subtitle"]


def test_missed_targets_differ_in_colour_and_shape():
    """A legend appears only where a target was missed; states differ in shape too."""
    all_met, some = draw(rows(3)).to_dict(), draw(rows(3, missed=1)).to_dict()
    layer = some["hconcat"][0]["layer"][1]["encoding"]
    assert ["target met", "target missed"] == layer["color"]["scale"]["domain"]
    assert ["circle", "diamond"] == layer["shape"]["scale"]["range"]
    assert all_met["hconcat"][0]["layer"][1]["encoding"]["color"]["legend"] is None
    assert layer["color"]["legend"] is not None


def test_groups_of_equal_text_stay_apart():
    """NULL and the text NULL, or keys that join to one text, are two rows of the picture."""
    table = rows(2).set_column(0, "zone", pa.array([None, "NULL"]))
    assert ["NULL", "NULL"] == [row["group"] for row in shown(table)]
    assert [0, 1] == [row["place"] for row in shown(table)]


def test_a_single_number_is_drawn_too():
    """Without keys the row has the answer's name."""
    table = rows(1).drop_columns(["zone"])
    chart = charts.answer_chart(table, keys=(), name="n", title="n", parameter="rho")
    assert "n" == values(chart)[0]["group"]
    assert "paid (rho)" in json.dumps(chart.to_dict())


def test_long_titles_are_wrapped_not_cut():
    """Every word of the promise stays in the title."""
    title = "flights " + "within 10 % or 100 " * 10
    lines = draw(rows(2), title).to_dict()["title"]["text"]
    assert title.split() == " ".join(lines).split()
    assert max(map(len, lines)) <= 84


@pytest.mark.parametrize("end", [".svg", ".png", ".html", ".SVG"])
def test_every_format_is_written(tmp_path, end):
    """Each ending gives a file of its kind."""
    path = tmp_path / f"chart{end}"
    charts.save(draw(rows(5)), path)
    start = {".png": b"\x89PNG", ".svg": b"<svg", ".html": b"<!DOCTYPE html>"}[end.lower()]
    assert path.read_bytes().lstrip().startswith(start)


@pytest.mark.thorough
def test_html_needs_no_network(tmp_path):
    """The page carries its scripts: nothing is loaded from anywhere."""
    charts.save(draw(rows(5)), tmp_path / "chart.html")
    page = (tmp_path / "chart.html").read_text(encoding="utf-8")
    assert re.findall(r"""<(?:script|link|img)[^>]*(?:src|href)\s*=\s*["']?https?:""", page) == []
    assert "import(" not in page.split("<script", 1)[0]


def test_nothing_of_the_picture_is_clipped(tmp_path):
    """Every text of the drawing starts inside it, long names included."""
    table = rows(60, missed=3).set_column(0, "zone", pa.array([f"a rather long name of zone {i}" for i in range(60)]))
    charts.save(draw(table), tmp_path / "chart.svg")
    svg = ET.fromstring((tmp_path / "chart.svg").read_text(encoding="utf-8"))  # noqa: S314  we wrote it
    words = ["".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert "a rather long name of zone 59" in words
    assert not any(word.endswith("…") for word in words)


@pytest.mark.parametrize("name", ["chart.pdf", "chart", "chart.svg.gz", ""])
def test_other_endings_are_refused_as_usage(name):
    """An unknown ending names the known ones."""
    with pytest.raises(InvalidOption, match=r"\.svg, \.png, \.html") as refused:
        charts.require_format(name)
    assert refused.value.exit_code == 2


def test_places_that_cannot_be_written_are_refused(tmp_path):
    """A folder that is missing, or a folder in place of the file, is a data error."""
    (tmp_path / "folder.svg").mkdir()
    for path in (tmp_path / "nowhere" / "x.svg", tmp_path / "folder.svg"):
        with pytest.raises(DataError):
            charts.require_format(path)


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_missing_libraries_say_what_to_install(monkeypatch, missing):
    """Both the library and its renderer are needed."""
    monkeypatch.setattr(charts, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(FarthingError, match=r"farthing\[charts\]"):
        charts.require_charts()


def test_an_answer_draws_itself(tmp_path):
    """answer.chart() gives a chart for a notebook, and with a path writes it."""
    session = farthing.Session(pa.table({"zone": ["a"] * 300}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    answer = session.count(by="zone", keys={"zone": ["a", "b"]}, absolute=50)
    assert 2 == len(values(answer.chart()))
    answer.chart(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").stat().st_size > 1000


def test_loss_distributions_are_drawn_as_delta_against_epsilon(tmp_path):
    """One line a mechanism, at the deltas that its hockey stick tells."""
    laws = {"smooth": profile.gaussian(1), "catastrophic": profile.name_and_shame(1e-3)}
    chart = charts.loss_chart(laws, [0.0, 1.0, 3.0])
    smooth = [row["delta"] for row in chart.data.values if row["mechanism"] == "smooth"]

    assert [laws["smooth"].hockey_stick(epsilon) for epsilon in (0.0, 1.0, 3.0)] == smooth
    assert {"smooth", "catastrophic"} == {row["mechanism"] for row in chart.data.values}
    charts.save(chart, tmp_path / "loss.svg")
    assert "<svg" in (tmp_path / "loss.svg").read_text(encoding="utf-8")


def test_months_run_in_order_and_bins_rise():
    """Keys that have an order are drawn in it, with short labels; of many the largest are chosen, then ordered."""
    days = [date(2013, month, 1) for month in (3, 1, 2)]
    assert ["2013-01", "2013-02", "2013-03"] == [row["group"] for row in shown(rows(3).set_column(0, "zone", [days]))]
    bins = rows(1458).set_column(0, "zone", [[float(i % 50) for i in range(1458)]])
    drawn = [float(row["group"]) for row in shown(bins)]
    assert 40 == len(drawn)
    assert sorted(drawn) == drawn


def test_a_histogram_is_drawn_with_rising_bins():
    """What `histogram` returns is drawn bin by bin, whatever the counts are."""
    table = pa.table({"x": [1.0] * 900 + [5.0] * 300 + [9.0] * 2000})
    session = farthing.Session(table, budget=farthing.Budget(epsilon=1, delta=1e-6))
    answer = session.histogram("x", edges=[0, 2, 4, 6, 8, 10], absolute=80)
    drawn = [row["group"] for row in values(answer.chart())]
    assert ["0 .. 2", "2 .. 4", "4 .. 6", "6 .. 8", "8 .. 10"] == drawn
