"""The demo as strangers meet it: each client that can be run here asks by the words of the docs, and pays nothing."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = (DOCS / "how-to" / "connect-a-tool.md").read_text("utf-8")
RUN = "import sys; from farthing.cli import main; sys.argv[0] = 'farthing'; main()"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
QUESTIONS = (
    "SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin",
    "SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest",
    "SELECT month, SUM(CLAMP(distance, 0, 5000)) AS n FROM flights GROUP BY month",
)
"""What the demo is asked; the first is the one of the guide."""

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("page")]


def examples(heading):
    """Return the blocks of a section of the guide."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", GUIDE, re.MULTILINE | re.DOTALL)
    return re.findall(r"^```\w+\n(.*?)^```", section.group(1), re.MULTILINE | re.DOTALL)


class Demo:
    """A demo that runs, and what its people do with it."""

    def __init__(self, port, wire, tokens):
        self.port, self.wire, self.tokens = port, wire, tokens

    def written(self, heading, question, block=0):
        """Return an example of the guide with this server's ports, and another question in place of its own."""
        text = examples(heading)[block].replace("8080", str(self.port)).replace("5433", str(self.wire))
        return text.replace(QUESTIONS[0], question)

    def used(self):
        """Return the part of the budget that is used."""
        headers = {"Authorization": f"Bearer {self.tokens['owner']}"}
        told = httpx.get(f"http://127.0.0.1:{self.port}/v1/datasets", headers=headers, timeout=60).json()
        return told["datasets"][0]["used"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """`farthing serve --demo`, as its own process."""
    folder = tmp_path_factory.mktemp("demo")
    words = ["serve", "--demo", "--port", "0", "--postgres", "0", "--token-file", "tokens.json"]
    command = [sys.executable, "-c", RUN, *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        ports = [int(server.stdout.readline().strip().rpartition(separator)[2]) for separator in (":", " ")]
        yield Demo(*ports, json.loads((folder / "tokens.json").read_text("utf-8")))
        server.terminate()


@pytest.fixture(scope="module")
def paid(demo):
    """What alice saw in the browser, who paid for all questions: rows by question."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="NOT TESTED: the page needs playwright")
    if CHROMIUM is None:
        pytest.skip("NOT TESTED: the page needs Chromium, apt-get install chromium")
    seen = {}
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"http://localhost:{demo.port}")
        page.fill("#token", demo.tokens["alice"])
        page.keyboard.press("Enter")
        for question in QUESTIONS:
            page.wait_for_selector("#pay:not([disabled])")
            page.fill("#sql", question)
            page.wait_for_selector("#pay[disabled]")
            page.wait_for_selector("#pay:not([disabled])")
            with page.expect_response(lambda came: "/v1/datasets" in came.url):  # what follows an answer
                page.click("#pay")
            with page.expect_download() as taken:
                page.click("#to-csv")
            lines = [line.split(",") for line in taken.value.path().read_text().splitlines()[1:]]
            seen[question] = {line[0].strip('"'): float(line[1]) for line in lines}
        browser.close()
    return seen


@contextmanager
def free(demo):
    """Let somebody ask, and see that nothing was paid."""
    before = demo.used()
    assert before > 0
    yield
    assert demo.used() == before


def same(rows, seen):
    """Whether rows of keys and numbers are the answer that was paid for: the wire writes counts as whole numbers."""
    found = {str(key): float(value) for key, value in rows}
    assert found == pytest.approx(seen, abs=0.51)


def test_psql(demo, paid):
    """psql, as a command of a shell."""
    with free(demo):
        for question, seen in paid.items():
            command = demo.written("psql", question).replace(" -c ", " -qAt -F , -c ")
            env = os.environ | {"FARTHING_TOKEN": demo.tokens["bob"]}
            told = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=True)
            same([line.split(",") for line in told.stdout.splitlines()], seen)


@pytest.mark.parametrize("heading", [pytest.param("pandas", marks=pytest.mark.slow), "farthing.connect"])
def test_python(demo, paid, monkeypatch, heading):
    """Ask by pandas over SQLAlchemy and psycopg, and farthing.connect, as scripts."""
    monkeypatch.setenv("FARTHING_TOKEN", demo.tokens["bob"])
    with free(demo):
        for question, seen in paid.items():
            names = {}
            exec(demo.written(heading, question), names)  # noqa: S102  # what the guide says
            same(names["frame"].iloc[:, :2].itertuples(index=False), seen)
            if "session" in names:
                names["session"].close()
            names.clear()
            gc.collect()  # an engine that the guide leaves open is closed here, not in another test


def test_notebook(demo, paid, monkeypatch):
    """Cells of a notebook, with the magic."""
    interactive = pytest.importorskip("IPython.core.interactiveshell", reason="NOT TESTED: notebooks need IPython")
    monkeypatch.setenv("FARTHING_TOKEN", demo.tokens["bob"])
    from traitlets.config import Config

    shell = interactive.InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    with free(demo):
        for question, seen in paid.items():
            for block in (0, 1):
                shell.run_cell(demo.written("Notebook", question, block), silent=True).raise_error()
            same(shell.user_ns["answer"].to_pandas().iloc[:, :2].itertuples(index=False), seen)
            shell.user_ns["session"].close()


def test_agent(demo, paid, tmp_path):
    """An MCP client that starts the server of the guide's file, and prices before it asks."""
    stdio = pytest.importorskip("mcp.client.stdio", reason="NOT TESTED: agents need the extra mcp")
    import mcp

    (given,) = json.loads(demo.written("Agent", QUESTIONS[0]))["mcpServers"].values()
    assert given["command"] == "farthing"
    env = os.environ | {"FARTHING_TOKEN": demo.tokens["bob"]}
    words = stdio.StdioServerParameters(command=sys.executable, args=["-c", RUN, *given["args"]], env=env, cwd=tmp_path)

    async def asked():
        """Speak the protocol over a pipe; return the plans and the answers."""
        found = []
        async with stdio.stdio_client(words) as (read, write), mcp.ClientSession(read, write) as session:
            await session.initialize()
            for question in paid:
                priced = await session.call_tool("plan", {"dataset": "flights", "sql": question})
                plan = json.loads(priced.content[0].text)
                came = await session.call_tool("ask", {"plan": plan["plan"]})
                found.append((plan, json.loads(came.content[0].text)))
        return found

    with free(demo):
        for (plan, answer), (question, seen) in zip(asyncio.run(asked()), paid.items(), strict=True):
            assert plan["free"], question
            same([(next(iter(row.values())), row["n"]) for row in answer["answers"]], seen)


def test_curl(demo, paid):
    """Plain HTTP, planned and confirmed."""
    headers = {"Authorization": f"Bearer {demo.tokens['bob']}"}
    with free(demo), httpx.Client(base_url=f"http://127.0.0.1:{demo.port}", headers=headers, timeout=60) as client:
        for question, seen in paid.items():
            plan = client.post("/v1/plan", json={"dataset": "flights", "sql": question}).json()["plan"]
            rows = client.post("/v1/ask", json={"plan": plan}).json()["answers"]
            same([(next(iter(row.values())), row["n"]) for row in rows], seen)


def test_every_section_of_the_guide_is_run_or_says_that_it_is_not():
    """Sections with an example are those that are run above; the table says of the others that the program is not."""
    with_examples = {heading for heading in re.findall(r"^## (.*)$", GUIDE, re.MULTILINE) if examples(heading)}
    assert with_examples == {"psql", "pandas", "farthing.connect", "Notebook", "Agent"}
    line = next(line for line in GUIDE.splitlines() if "[DBeaver]" in line)
    assert all(f"[{tool}]" in line for tool in ("Metabase", "Superset", "Tableau", "Grafana"))
    assert "not the programs" in line
