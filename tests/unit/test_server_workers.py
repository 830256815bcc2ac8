"""Several processes over one ledger: one key for plans, one memory of idempotency keys, one door."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import threading
from pathlib import Path

import httpx
import ledger_servers
import pytest
import servers
import sqlalchemy as sa

from farthing.client import RefusedRequest
from farthing.errors import DataError, InvalidOption
from farthing.server import running, shared, workers
from farthing.server.app import app
from farthing.server.service import Service
from farthing.server.shared import Shared
from farthing.server.tickets import Tickets

ROOT = Path(__file__).parents[2]


@pytest.fixture
def both(tmp_path):
    """Two workers of one server: a service, a memory and an application each, over one ledger."""
    world = servers.World(tmp_path)
    made = []
    for number in range(2):
        beside = Shared.beside(tmp_path / "rides.ledger")
        service = Service(world.service.data_sets, Tickets(beside.key()))
        made.append((service, beside, app(service, world.people, shared=beside, worker=number)))
    yield world, [one for _, _, one in made]
    for service, beside, _ in made:
        service.close()
        beside.close()
    world.close()


def send(world, one, path, who="alice", **how):
    """Make one request of one worker."""
    headers = {"Authorization": f"Bearer {world.tokens[who]}"} | how.pop("headers", {})

    async def made():
        """Make it."""
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=one), base_url="http://farthing") as client:
            return await client.post(path, headers=headers, **how) if how else await client.get(path, headers=headers)

    return asyncio.run(made())


def test_a_plan_of_one_worker_is_confirmed_by_another(both):
    """The key is the same, so a plan's id is read by both; nobody else's."""
    world, (first, second) = both
    plan = send(world, first, "/v1/plan", json=servers.COUNT).json()["plan"]
    assert send(world, second, "/v1/ask", json={"plan": plan}).status_code == 200
    assert send(world, second, "/v1/ask", "bob", json={"plan": plan}).status_code == 409


def test_a_retry_at_another_worker_is_told_the_same(both):
    """Rows and price are those of the first; the key stands for no other request, of anybody else it does."""
    world, (first, second) = both
    key = {"Idempotency-Key": "k"}
    told = send(world, first, "/v1/ask", json=servers.COUNT, headers=key).json()
    assert told["paid"]["mu"] > 0
    assert send(world, second, "/v1/ask", json=servers.COUNT, headers=key).json() == told
    other = servers.COUNT | {"absolute": 90}
    assert send(world, second, "/v1/ask", json=other, headers=key).status_code == 409
    assert send(world, second, "/v1/ask", "bob", json=other, headers=key).status_code == 200


def test_a_key_whose_request_failed_can_be_used_again(both):
    """What was refused is not remembered: the corrected question goes under the same key."""
    world, (first, second) = both
    key = {"Idempotency-Key": "k"}
    assert send(world, first, "/v1/ask", json=servers.COUNT | {"absolute": -1}, headers=key).status_code == 422
    assert send(world, second, "/v1/ask", json=servers.COUNT, headers=key).status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_keys_have_a_length(both, key):
    """An empty or long key is refused before anything is asked."""
    world, (first, _) = both
    assert send(world, first, "/v1/ask", json=servers.COUNT, headers={"Idempotency-Key": key}).status_code == 400


def test_a_request_of_a_worker_that_died_is_made_again(tmp_path):
    """A note without an answer stops nobody: the ledger has the answer, or charges it once."""
    first, second = (Shared.beside(tmp_path / "x.ledger") for _ in range(2))
    assert first.begun("alice", "k", "{}") is None
    assert second.begun("alice", "k", "{}") is None
    second.ended("alice", "k", json.dumps({"answers": []}))
    assert first.begun("alice", "k", "{}") == {"answers": []}
    with pytest.raises(RefusedRequest):
        first.begun("alice", "k", "[]")


def test_what_is_old_is_forgotten(tmp_path, monkeypatch):
    """A day later the key is free again, and a clock that goes back harms nothing."""
    beside, now = Shared.beside(tmp_path / "x.ledger"), [1e9]
    monkeypatch.setattr(shared.time, "time", lambda: now[0])
    beside.begun("alice", "k", "{}")
    now[0] -= 1e6
    with pytest.raises(RefusedRequest):
        beside.begun("alice", "k", "[]")
    now[0] = 1e9 + shared.LASTS_S + 1
    assert beside.begun("alice", "k", "[]") is None


def test_one_key_for_all_who_begin_at_once(tmp_path):
    """Of many processes that begin together one draws the key; only the owner of the file reads it."""
    found, start = set(), threading.Barrier(6)

    def one():
        """Begin."""
        start.wait()
        found.add(Shared.beside(tmp_path / "x.ledger").key())

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1
    assert len(found.pop()) == 32
    assert (tmp_path / "x.ledger-server").stat().st_mode & 0o777 == 0o600


def test_what_is_kept_tells_no_question(tmp_path):
    """Of a request a digest is kept, and no file is where the ledger is in memory of one process."""
    beside = Shared.beside(tmp_path / "x.ledger")
    beside.begun("alice", "k", "SELECT secret")
    with beside._engine.begin() as connection:
        rows = connection.execute(sa.text("SELECT * FROM server_repeats")).all()
    assert "secret" not in str(rows)


def test_a_place_that_cannot_be_used_is_one_error(tmp_path):
    """No path, no URL and no password in it."""
    for place in (tmp_path / "none" / "x.ledger", "postgresql+psycopg://u:secret@127.0.0.1:1/x"):
        with pytest.raises(DataError) as refused:
            Shared.beside(place)
        assert "secret" not in str(refused.value)
        assert str(tmp_path) not in str(refused.value)
        assert refused.value.__context__ is None


@pytest.mark.thorough
def test_on_postgresql_it_lies_in_a_schema_of_its_own():
    """Two processes on a ledger of a server share key and requests."""
    with ledger_servers.fresh_schema() as url:
        first, second = Shared.beside(url), Shared.beside(url)
        assert first.key() == second.key()
        assert first.begun("alice", "k", "{}") is None
        first.ended("alice", "k", json.dumps({"answers": []}))
        assert second.begun("alice", "k", "{}") == {"answers": []}
        with pytest.raises(RefusedRequest):
            second.begun("alice", "k", "[]")
        with ledger_servers.raw(url) as connection:
            connection.execute(f"DROP SCHEMA {url.partition('?schema=')[2]}_server CASCADE")
        first.close()
        second.close()


class FakeProcess:
    """A process that lives for so many looks."""

    exitcode = 1

    def __init__(self, lives):
        self.lives = lives

    def is_alive(self):
        """Look."""
        self.lives -= 1
        return self.lives >= 0


@pytest.mark.parametrize("early", [False, True])
def test_who_dies_is_replaced_and_who_cannot_begin_ends_all(monkeypatch, early):
    """After all have begun whoever dies is started again, at once if need be; before, the server ends with an error."""
    monkeypatch.setattr(workers.time, "sleep", lambda _: None)
    begun, stopping, started = [threading.Event(), threading.Event()], [], []
    for event in begun[early:]:
        event.set()

    def start(worker):
        """Start another, which dies before it has begun, three times."""
        started.append(worker)

        return FakeProcess(0 if len(started) < 3 else 99)

    running_now = [FakeProcess(2), FakeProcess(99)]
    if early:
        with pytest.raises(DataError, match="before it had begun"):
            workers._watch(running_now, begun, start, stopping, lambda: None)
        return
    monkeypatch.setattr(workers.time, "sleep", lambda _: len(started) == 3 and stopping.append(15))
    workers._watch(running_now, begun, start, stopping, lambda: started.append("ready"))
    assert started[:3] == ["ready", 0, 0]


def test_a_worker_that_is_done_ends_at_once(monkeypatch):
    """Whatever a process has still to take apart, it ends when its work is done, with all that it had to say."""
    told = []
    monkeypatch.setattr(workers.os, "_exit", told.append)
    monkeypatch.setattr(workers.logging, "shutdown", lambda: told.append("logs"))
    monkeypatch.setattr(workers.multiprocessing, "parent_process", lambda: None)
    monkeypatch.setattr(workers.threading, "Thread", lambda **_: Quiet())
    workers._begun(lambda **how: told.append(how), worker=3)
    assert told == [{"worker": 3}, "logs", 0]


class Quiet:
    """A thread that is not started."""

    def start(self):
        """Do nothing."""


@pytest.mark.parametrize("number", [0, 65])
def test_so_many_workers_cannot_be(number):
    """From one to sixty-four."""
    with pytest.raises(InvalidOption):
        workers.serve_many(print, running.Address(), number)


def test_each_worker_counts_for_itself(both):
    """The counts of several processes are told apart by a label."""
    world, (_, second) = both
    send(world, second, "/v1/me")
    assert 'route="/v1/me",status="200",worker="1"} 1' in send(world, second, "/metrics", "owner").text


def test_the_example_for_several_machines_is_one_that_can_be_started():
    """Its services name files that are there, options that `farthing serve` has, and one ledger for all."""
    import yaml
    from typer.main import get_command

    from farthing.cli.app import app as cli

    place = ROOT / "docs" / "examples" / "compose"
    told = yaml.safe_load((place / "compose.yaml").read_text(encoding="utf-8"))
    assert set(told["services"]) == {"books", "farthing", "proxy"}
    serve = get_command(cli).commands["serve"]
    options = {flag for one in serve.params for flag in one.opts}
    words = shlex.split(told["services"]["farthing"]["command"])
    assert words[:2] == ["farthing", "serve"]
    assert {word for word in words if word.startswith("--")} <= options
    assert "--workers" in words
    for service in told["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in told["volumes"] or (place / source).exists(), volume
    for name in told["secrets"].values():
        assert name["file"].startswith("./")
    settings = (place / "farthing.toml").read_text(encoding="utf-8")
    assert re.search(r'path = "postgresql\+psycopg://\w+@books:5432/\w+"', settings)
    assert told["services"]["proxy"]["depends_on"] == ["farthing"]
    assert "ports" not in told["services"]["farthing"]  # only the proxy is reached from outside
