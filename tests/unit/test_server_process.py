"""`farthing serve` as its own process: it starts, answers, tells its log and ends when it is told to."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import servers
import uvicorn
from typer.testing import CliRunner

from farthing.cli.app import app
from farthing.server import running
from farthing.server.service import Service
from farthing.server.wire.listener import Listener

ROOT = Path(__file__).parents[2]
RUN = "from farthing.cli import main; main()"
SQL = "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"


def command(*words):
    """Run a command here; return what it printed."""
    ended = CliRunner().invoke(app, list(words))
    assert ended.exit_code == 0, ended.output
    return ended.stdout


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a table, its settings and two tokens."""
    for name in ("rides.csv", "zones.csv"):
        shutil.copy(ROOT / "docs" / "examples" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    command(
        "init",
        "rides.csv",
        "--unit",
        "row",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--public",
        "zones.csv",
        "--keys",
        "zone=zones.id",
    )
    with Path("farthing.toml").open("a") as file:
        file.write("\n[target]\nrelative = 0.2\nabsolute = 60\n")
    return tmp_path


@pytest.mark.thorough
def test_it_serves_and_stops(folder):
    """From settings to an answer over HTTP; the log has no question; SIGTERM ends it with 0."""
    token = json.loads(command("token", "add", "alice", "--share", "30%", "--json"))["token"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    words = [sys.executable, "-c", RUN, "serve", "--port", "0", "--postgres", "0"]
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        address = process.stdout.readline().split()[-1]
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.post(f"{address}/v1/ask", json={"dataset": "rides", "sql": SQL}, headers=headers, timeout=60)
        sets = httpx.get(f"{address}/v1/datasets", headers=headers, timeout=60).json()["datasets"]
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(answer.json()["answers"]) == 8
    assert sets[0]["remaining"]["epsilon"] < sets[0]["total"]["epsilon"] * 0.7  # the share
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line["route"] for line in lines] == ["/v1/ask", "/v1/datasets"]
    assert "zone" not in log


@pytest.mark.thorough
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serve"], "nobody has a token"),
        (["serve", "--token-file", "x"], "--token-file without --demo"),
        (["serve", "farthing.toml", "--demo"], "settings and --demo"),
        (["serve", "farthing.toml", "farthing.toml"], "two data sets are called"),
        (["token", "revoke", "nobody"], "nobody of this name"),
        (["token", "add", "a b"], "cannot be given a token"),
        (["token", "add", "eve", "--role", "king"], "the role is unknown"),
        (["mcp", "farthing.toml", "--url", "http://x"], "settings and --url"),
    ],
)
def test_what_cannot_be_served_is_told(words, said):
    """A mistake ends with 2 and the words for it, before anything listens."""
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 2
    assert said in ended.stderr


@pytest.mark.thorough
def test_workers_answer_die_and_are_replaced(folder):
    """Two processes behind one port; one is killed and another takes its place; SIGTERM ends all, in order."""
    token = json.loads(command("token", "add", "alice", "--json"))["token"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    words = [sys.executable, "-u", "-c", RUN, "serve", "--port", "0", "--workers", "2"]
    headers = {"Authorization": f"Bearer {token}"}
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        address = process.stdout.readline().split()[-1]
        before = children(process.pid)
        body = {"dataset": "rides", "sql": SQL}
        plan = httpx.post(f"{address}/v1/plan", json=body, headers=headers, timeout=60).json()["plan"]
        paid = [asked(address, {"plan": plan}, headers).json()["paid"]["mu"] for _ in range(6)]
        os.kill(before[0], signal.SIGKILL)
        until = time.monotonic() + 60
        while len(set(children(process.pid)) - set(before)) < 1 and time.monotonic() < until:
            time.sleep(0.1)
        after = [asked(address, {"plan": plan}, headers).status_code for _ in range(4)]
        last = children(process.pid)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=90)
    assert process.returncode == 0
    assert len(last) == 2
    assert paid[0] > 0
    assert not any(paid[1:])
    assert set(after) == {200}
    assert not [one for one in last if Path(f"/proc/{one}").exists()]


def asked(address, body, headers):
    """Ask; a connection that a killed process had taken is tried again."""
    for _ in range(20):
        try:
            return httpx.post(f"{address}/v1/ask", json=body, headers=headers, timeout=60)
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError


def children(process):
    """Return the processes that a process started to answer."""
    found = subprocess.run(
        ["pgrep", "-P", str(process), "-f", "spawn_main"], capture_output=True, text=True, check=False
    )
    return [int(line) for line in found.stdout.split()]


def test_sessions_are_closed_after_both_faces(tmp_path, monkeypatch):
    """What the wire has under way is answered before the sessions are closed: HTTP ends first, the sessions last."""
    order = []

    async def served(server: uvicorn.Server, **_: object) -> None:
        """Begin and end at once."""
        server.started = True
        order.append("HTTP")

    stop = Listener.stop

    async def stopped(listener: Listener) -> None:
        """Note the end of the wire."""
        order.append("wire")
        await stop(listener)

    world = servers.World(tmp_path)
    monkeypatch.setattr(uvicorn.Server, "serve", served)
    monkeypatch.setattr(Listener, "stop", stopped)
    monkeypatch.setattr(Service, "close", lambda _: order.append("sessions"))
    address = running.Address(port=0, postgres=0)
    running.serve(world.service.data_sets, world.people, address)
    world.service.sessions.close()
    assert order == ["HTTP", "wire", "sessions"]
