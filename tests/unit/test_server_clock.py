"""Whatever the server says leaves at a tick of the public clock, whatever it was and however long it took."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
import servers
from pygwire import messages

from farthing.errors import InvalidOption
from farthing.server import guard
from farthing.server.app import app
from farthing.server.clock import PublicClock
from farthing.server.wire.client import Client
from farthing.server.wire.desk import Desk

pytestmark = pytest.mark.thorough


class FakeTime:
    """A time that passes only where somebody sleeps, or says that work took some."""

    def __init__(self):
        self.seconds = 100.25

    def now(self):
        """Return the time."""
        return self.seconds

    async def sleep(self, seconds):
        """Let time pass."""
        self.seconds += seconds

    def clock(self):
        """Return a public clock of one second."""
        return PublicClock(1.0, self.now, self.sleep)


@pytest.fixture
def world(tmp_path):
    """A server with one table, whose every answer takes 0.3 s."""
    made = servers.World(tmp_path)
    made.time = FakeTime()
    for name in ("ask", "plan", "history", "visible"):
        slowed(made, name)
    yield made
    made.close()


def slowed(world, name):
    """Let something take 0.3 s, whether it ends well or not."""
    real = getattr(type(world.service), name)

    def slow(self, *given, **named):
        """Do it."""
        world.time.seconds += 0.3
        return real(self, *given, **named)

    world.patched = getattr(world, "patched", {}) | {name: real}
    object.__setattr__(world, "slow_" + name, slow)


def left(world, method, path, *, who="alice", body=None, accept="application/json"):
    """Make one request; return the status, and when each part of the response left."""
    sent, bodies = [], [True, False]

    async def asked():
        """Ask by ASGI itself, whose messages have a time."""
        content = b"" if body is None else json.dumps(body).encode()
        headers = [(b"authorization", f"Bearer {world.tokens.get(who, who)}".encode()), (b"accept", accept.encode())]
        scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b"",
                 "client": ("test", 1), "server": ("test", 80), "scheme": "http", "root_path": ""}  # fmt: skip

        async def receive():
            """Give the body, once."""
            if bodies.pop():
                await asyncio.Event().wait()
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message):
            """Keep when it left."""
            sent.append((message, world.time.now()))

        await app(world.service, world.people, clock=world.time.clock())(scope, receive, send)

    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in world.patched:
            patch.setattr(type(world.service), name, getattr(world, "slow_" + name))
        asyncio.run(asked())
    return sent[0][0]["status"], [when for _, when in sent]


REQUESTS = {
    "an answer": (200, ("POST", "/v1/ask"), {"body": servers.COUNT}),
    "a plan": (200, ("POST", "/v1/plan"), {"body": servers.COUNT}),
    "a refusal": (402, ("POST", "/v1/ask"), {"body": servers.COUNT | {"absolute": 0.01, "cap": "all"}}),
    "an error": (422, ("POST", "/v1/ask"), {"body": servers.COUNT | {"sql": "SELECT x FROM rides"}}),
    "a bad request": (400, ("POST", "/v1/ask"), {"body": {"dataset": "rides"}}),
    "a role that may not": (403, ("POST", "/v1/ask"), {"body": servers.COUNT, "who": "eve"}),
    "a stranger": (401, ("POST", "/v1/ask"), {"body": servers.COUNT, "who": "mallory.x"}),
    "an unknown data set": (404, ("POST", "/v1/ask"), {"body": servers.COUNT | {"dataset": "x"}}),
    "the data sets": (200, ("GET", "/v1/datasets"), {}),
    "the history": (200, ("GET", "/v1/history"), {}),
    "the counts": (200, ("GET", "/metrics"), {"who": "owner"}),
    "CSV": (200, ("POST", "/v1/ask"), {"body": servers.COUNT, "accept": "text/csv"}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_it_leaves_at_a_tick(world, name):
    """Status, headers and body leave together, at a whole second."""
    status, request, how = REQUESTS[name]
    came, times = left(world, *request, **how)
    assert came == status
    assert len(set(times)) == 1
    assert times[0] == int(times[0]) > 100.25


def test_each_look_leaves_at_a_tick(world):
    """Of a stream every part has a tick of its own."""
    status, times = left(world, "POST", "/v1/ask", body=servers.COUNT, accept="text/event-stream")
    assert status == 200
    assert len(times) > 2
    assert all(when == int(when) for when in times)


@pytest.mark.parametrize("path", [*sorted(guard._WITHOUT_DATA), "/page/style.css"])
def test_what_is_the_same_for_all_does_not_wait(world, path):
    """Health, the page and the interface tell nothing of the data."""
    assert left(world, "GET", path) == (200, [100.25] * 2)


@pytest.mark.parametrize(
    "text", ["SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone", "SELECT x FROM rides", "SHOW x"]
)
def test_the_wire_has_the_same_clock(world, text, monkeypatch):
    """Rows and errors of the PostgreSQL wire leave at a tick."""
    catalog, times = world.service.catalog(), []
    client = Client(None, world.service, world.people, catalog, lambda _: None, clock=world.time.clock())
    client.desk = Desk(world.service, world.person("alice"), catalog)
    monkeypatch.setattr(client, "_send", lambda _: times.append(world.time.now()))
    asyncio.run(client._take_message(messages.Query(query_string=text)))
    catalog.close()
    assert len(times) > 1
    assert {101.0} == set(times)


def test_without_a_clock_nothing_waits():
    """The default sends what is ready."""

    async def never(_):
        """Be called by nobody."""
        raise AssertionError

    asyncio.run(PublicClock(sleep=never).tick())


@pytest.mark.parametrize("written", ["", "1", "1m", "0s", "5ms", "61s", "-1s", "1e3s", "1s 1s"])
def test_clocks_that_cannot_be_used(written):
    """From 10 ms to a minute."""
    with pytest.raises(InvalidOption):
        PublicClock.of(written)
