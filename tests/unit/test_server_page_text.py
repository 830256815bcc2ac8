"""What the page may do with texts, and what other sites may do with a server, read from the files and the routes."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import servers

from farthing.server import formats, static
from farthing.server.app import app

PAGE = Path(static.__file__).parent / "page"
SCRIPTS = {path.name: path.read_text("utf-8") for path in sorted(PAGE.glob("*.js"))}
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|DOMParser|document\.write|\beval\b|new Function"
    r"|srcdoc|setHTML|javascript:|Timeout\(\s*[\"'`]|\.style\b|import\("
)
"""Whatever turns a text into markup or into a script."""

HARMLESS = frozenset(
    {"type", "class", "scope", "role", "aria-label", "aria-valuetext", "title", "value", "text-anchor"}
    | {"d", "r", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "viewBox", "points", "fill"}
    | {"preserveAspectRatio"}
)
"""Attributes in which no text is an address, a script or a style."""


def test_no_script_turns_a_text_into_markup():
    """No script of the page uses what makes markup, a script or a style of a text."""
    assert not [(name, found) for name, text in SCRIPTS.items() for found in MARKUP.findall(text)]
    assert len(SCRIPTS) >= 7


@pytest.mark.parametrize("bad", ["node.innerHTML = x", "setTimeout('x')", "eval(x)", "a.insertAdjacentHTML(x)"])
def test_the_search_finds_markup(bad):
    """The pattern above has power."""
    assert MARKUP.search(bad)


def test_nodes_and_attributes_are_made_at_one_door():
    """Two functions make elements, and one line a link for files; one sets attributes, and knows harmless ones."""
    whole = {name: re.findall(r"createElement(?:NS)?\(|createTextNode", text) for name, text in SCRIPTS.items()}
    assert {name: len(found) for name, found in whole.items() if found} == {"dom.js": 2, "taking.js": 1}
    doors = {name: text.count("ttribute(") + text.count("ttributeNS(") for name, text in SCRIPTS.items()}
    assert {name: count for name, count in doors.items() if count} == {"dom.js": 1}
    named = re.search(r"HARMLESS = new Set\(\((.*?)\)\.split", SCRIPTS["dom.js"], re.DOTALL).group(1)
    assert set(re.findall(r"[\w-]+", named)) <= HARMLESS


def test_the_page_is_markup_without_scripts_of_its_own():
    """The one document has no inline script, style or handler; each of its files is one that the server gives."""
    text = (PAGE / "index.html").read_text("utf-8")
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:|https?://", text)
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL) == [""]
    asked = set(re.findall(r'(?:src|href)="/page/([^"]+)"', text))
    asked |= {name for script in SCRIPTS.values() for name in re.findall(r'from "\./([^"]+)"', script)}
    assert asked | {"index.html"} == set(static.FILES) == {path.name for path in PAGE.iterdir()}


def test_the_policy_lets_nothing_else_in():
    """Every file of the page comes with the policy: own files only, no inline script, no frame, no form elsewhere."""
    for name in static.FILES:
        policy = dict(
            part.strip().split(" ", 1) for part in static.served(name).headers["content-security-policy"].split(";")
        )
        assert (
            policy["default-src"]
            == policy["form-action"]
            == policy["frame-ancestors"]
            == policy["base-uri"]
            == "'none'"
        )
        assert {value for kind, value in policy.items() if kind.endswith("-src") and kind != "default-src"} == {
            "'self'"
        }


@pytest.fixture
def world(tmp_path):
    """A server with one table."""
    made = servers.World(tmp_path)
    yield made
    made.close()


def test_no_other_site_can_ask_or_read(world):
    """At every address: no other origin is allowed, no cookie is set; who has cookies alone is a stranger."""
    foreign = {"Origin": "https://elsewhere.example", "Cookie": f"token={world.tokens['owner']}; session=1"}
    open_to_all = {"/", "/page/{name}", "/health", "/openapi.json"}
    for route in app(world.service, world.people).routes:
        path = route.path.replace("{name}", "page.js")
        preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        assert world.request("OPTIONS", path, headers=foreign | preflight).status_code == 405
        for method in route.methods - {"HEAD"}:
            form = {"data": {"dataset": "rides"}} if method == "POST" else {}
            came = world.request(method, path, headers=foreign, **form)
            assert came.status_code == (200 if route.path in open_to_all else 401), path
            assert not [name for name in came.headers if name.startswith("access-control") or name == "set-cookie"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", " =", "＝"])
def test_no_cell_of_csv_is_a_formula(start):
    """Keys and names of columns that begin as formulas do are texts in CSV; Parquet and Arrow keep them as they are."""
    key = f"{start}HYPERLINK(A1)"
    told = {"answers": [{"zone": key, f"{start}n": 1.5, "met": True}], "paid": {"mu": 0.1}}
    written = formats.wanted("text/csv")[1](told).decode()
    cells = [cell for line in written.splitlines() for cell in line.split(",")]
    assert not [cell for cell in cells if re.match(r'"?\s*[=+\-@＝]', cell)]
    arrow = formats.wanted("application/vnd.apache.arrow.stream")[1](told)
    assert pa.ipc.open_stream(arrow).read_all()["zone"].to_pylist() == [key]
    parquet = formats.wanted("application/vnd.apache.parquet")[1](told)
    assert pq.read_table(pa.BufferReader(parquet))["zone"].to_pylist() == [key]
