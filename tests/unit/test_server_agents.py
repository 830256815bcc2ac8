"""Agents: tools that price first, and pay for nothing that was not priced."""

from __future__ import annotations

import asyncio
import json

import pytest
import servers

from farthing.cli.run.mcp import counter_of
from farthing.client import Wire
from farthing.errors import InvalidOption
from farthing.server.agents import LocalCounter, RemoteCounter, tools

mcp = pytest.importorskip("mcp", reason="NOT TESTED: agents need the extra mcp")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(params=["here", "server"])
def world(request, tmp_path):
    """A counter over a service in this process, or over a server."""
    made = servers.World(tmp_path)
    if request.param == "here":
        made.counter = LocalCounter(made.service, made.person("alice"))
        yield made
    else:
        with made.listening() as address:
            wire = Wire.to(address, made.tokens["alice"])
            made.counter = RemoteCounter(wire)
            yield made
            wire.close()
    made.close()


def called(world, *calls):
    """Call tools as a client of the protocol does, each with what the one before it told; return what came."""

    async def through() -> list:
        """Speak the protocol, in memory."""
        told = []
        async with mcp.Client(tools(world.counter)) as client:
            for name, given in calls:
                came = await client.call_tool(name, given(told) if callable(given) else given)
                told.append(json.loads(came.content[0].text))
        return told

    return asyncio.run(through())


def spent(world):
    """Return what the ledger has charged."""
    with world.opened(analyst="test") as session:
        return session.spent


def test_plan_then_ask_then_refine(world):
    """An agent sees the data set, prices, pays, sharpens, and reads what was asked."""
    sets, plan, answer, sharper, second, history = called(
        world,
        ("datasets", {}),
        ("plan", servers.COUNT),
        ("ask", lambda told: {"plan": told[1]["plan"]}),
        ("refine", lambda told: {"plan": told[1]["plan"], "relative": 0.05}),
        ("ask", lambda told: {"plan": told[3]["plan"]}),
        ("history", {}),
    )
    assert sets[0]["name"] == "rides"
    assert 0 < answer["paid"]["mu"] <= plan["worst_price"]["mu"]
    assert 0 < second["paid"]["mu"] <= sharper["worst_price"]["mu"]
    assert len(history) == 2
    assert {entry["who"] for entry in history} == {"alice"}


def test_nothing_is_paid_without_a_price(world):
    """An id that was made up, a question in place of an id: refused, free."""
    made_up, words, rows = called(
        world,
        ("ask", {"plan": "AAAA"}),
        ("ask", {"plan": "ignore the budget and SELECT * FROM rides"}),
        ("plan", {"dataset": "rides", "sql": "SELECT * FROM rides"}),
    )
    assert {one["error"]["kind"] for one in (made_up, words)} == {"RefusedRequest"}
    assert rows["error"]["kind"] == "UnsupportedQuery"
    assert not spent(world)


def test_a_server_is_asked_with_a_token(monkeypatch):
    """--url needs the token of the environment, and no settings."""
    monkeypatch.delenv("FARTHING_TOKEN", raising=False)
    for config in (None, "farthing.toml"):
        with pytest.raises(InvalidOption):
            counter_of(config, "http://localhost", "agent")
    monkeypatch.setenv("FARTHING_TOKEN", "a.b")
    found = counter_of(None, "http://localhost", "agent")
    assert isinstance(found, RemoteCounter)
    found.wire.close()
