"""What the owner has frozen is charged no more, in any process, by any kind of question; what is known stays free."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
import servers

import farthing
from farthing.errors import Frozen
from farthing.ledger import booking, freezing
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

TERMS = Terms("gdp", budget=1000, delta=0, keys_delta=0, unit="row", description="1000 farthings")


def charge(ledger, question="q", **how):
    """Reserve and settle 10 farthings."""
    receipt = ledger.reserve(increase=10, fresh=10, question=question, version=0, label="COUNT", **how)
    ledger.settle(receipt, 10, lambda _: b"released")


def test_nothing_is_charged_until_thawed():
    """Everybody is frozen: no charge; what was released is read; thawed, all goes on, and the books agree."""
    with Ledger.open(None, TERMS, who="alice") as ledger:
        charge(ledger)
        ledger.freeze()
        with pytest.raises(Frozen):
            charge(ledger, "r")
        assert ledger.load("q").blob == b"released"
        ledger.freeze(frozen=False)
        charge(ledger, "r")
        ledger.verify()
        assert ledger.spent == 20
        labels = [entry.label for entry in ledger.history()]
        assert labels == ["COUNT", "the owner thawed the data set", "the owner froze the data set", "COUNT"]


def test_one_analyst_is_frozen_by_name_or_by_share(tmp_path):
    """Whoever asks under the name, or draws on its share, is charged nothing; others are."""
    path = tmp_path / "a.ledger"
    with Ledger.open(path, TERMS, who="owner") as owner, Ledger.open(path, TERMS, who="alice") as alice:
        owner.allot("alice", 500)
        owner.freeze("alice")
        owner.freeze("alice")  # twice is once
        charge(owner)
        for asked in ({"ledger": alice}, {"ledger": owner, "allotment": "alice"}):
            with pytest.raises(Frozen):
                charge(question="r", **asked)
        owner.freeze(frozen=False)  # everybody, of whom alice was frozen apart
        with pytest.raises(Frozen):
            charge(alice, "r")
        assert owner.frozen == ("alice",)
        owner.freeze("alice", frozen=False)
        charge(alice, "r")
        assert owner.frozen == ()
        owner.verify()


def test_what_was_reserved_before_is_finished():
    """A freeze ends no ask that has its receipt; `spent` rises no more from then on."""
    with Ledger.open(None, TERMS) as ledger:
        receipt = ledger.reserve(increase=10, fresh=10, question="q", version=0, label="COUNT")
        ledger.freeze()
        before = ledger.spent
        ledger.settle(receipt, 4, lambda _: b"released")
        assert (before, ledger.spent) == (10, 4)


def test_parts_are_frozen_with_the_whole():
    """A part of a partition draws on the same word."""
    with Ledger.open(None, TERMS, who="alice") as ledger:
        ledger.freeze("alice")
        with pytest.raises(Frozen):
            charge(ledger.part(partition="zone", name="a"))


def test_a_check_that_is_forgotten_is_seen(monkeypatch):
    """Planted: a reservation that does not read the word charges what is frozen."""
    monkeypatch.setattr(booking.freezing, "require_thawed", lambda *_: None)
    with Ledger.open(None, TERMS) as ledger:
        ledger.freeze()
        charge(ledger)
        assert ledger.spent == 10


def test_a_word_that_nobody_wrote_is_frozen():
    """Unknown words of a newer version are not a leave to charge."""
    assert freezing.is_frozen(freezing_word(b"until Monday"))
    assert not freezing.is_frozen(freezing_word(b"thawed"))
    assert not freezing.is_frozen(None)


def freezing_word(blob):
    """Return a stored word."""
    from farthing.ledger.entry import Stored

    return Stored(1, blob)


@pytest.fixture
def world(tmp_path):
    """A server with one table."""
    made = servers.World(tmp_path)
    yield made
    made.close()


def stop(world, who="owner", verb="freeze", **whom):
    """Freeze or thaw over HTTP."""
    return world.request("POST", f"/v1/{verb}", who, json={"dataset": "rides"} | whom)


def test_the_owner_freezes_a_data_set(world):
    """403 for what costs, a plan says so before, free repeats stay; thawed, it is answered."""
    world.ask("alice")
    plan = world.request("POST", "/v1/plan", "bob", json=servers.COUNT | {"relative": 0.05}).json()
    assert stop(world).json() == {"dataset": "rides", "frozen": True, "frozen_analysts": []}
    for asked in ({"relative": 0.05}, {"sql": "SELECT COUNT(*) AS n FROM rides"}):
        came = world.ask("bob", **asked)
        assert (403, "Frozen") == (came.status_code, came.json()["error"]["kind"])
        told = world.request("POST", "/v1/plan", "bob", json=servers.COUNT | asked).json()
        assert (True, False) == (told["frozen"], told["fits"])
    assert world.request("POST", "/v1/ask", "bob", json={"plan": plan["plan"]}).status_code == 403
    assert world.ask("bob").json()["paid"]["mu"] == 0
    assert not world.request("POST", "/v1/plan", "bob", json=servers.COUNT).json()["frozen"]
    assert stop(world, verb="thaw").json()["frozen"] is False
    assert world.request("POST", "/v1/ask", "bob", json={"plan": plan["plan"]}).status_code == 200


def test_the_owner_freezes_an_analyst(world):
    """Alice is charged nothing and sees that she is frozen; bob asks, and does not see it."""
    assert stop(world, analyst="alice").json()["frozen_analysts"] == ["alice"]
    assert world.ask("alice").status_code == 403
    assert world.ask("bob").status_code == 200
    seen = {who: world.request("GET", "/v1/datasets", who).json()["datasets"][0] for who in ("alice", "bob", "eve")}
    assert [True, False, False] == [seen[who]["frozen"] for who in seen]
    assert seen["eve"]["frozen_analysts"] == ["alice"]
    assert "frozen_analysts" not in seen["bob"]


@pytest.mark.parametrize("who", ["alice", "eve"])
@pytest.mark.parametrize("verb", ["freeze", "thaw"])
def test_only_an_owner_freezes(world, who, verb):
    """Analysts and auditors are refused."""
    assert stop(world, who, verb).status_code == 403
    assert world.ask("alice").status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [({"dataset": "x"}, 404), ({}, 404), ({"dataset": "rides", "analyst": 3}, 400),
     ({"dataset": "rides", "analyst": ""}, 400), ({"dataset": "rides", "analyst": "a\0"}, 400),
     ({"dataset": "rides", "who": "x"}, 400), ({"dataset": "rides", "analyst": "\ud800"}, 400)],
)  # fmt: skip
def test_bad_requests_freeze_nothing(world, body, status):
    """One clear error, and nobody is frozen."""
    sent = json.dumps(body)
    came = world.request("POST", "/v1/freeze", "owner", content=sent)
    assert came.status_code == status
    assert world.ask("alice").status_code == 200


def test_another_process_sees_it(tmp_path):
    """Two sessions on one ledger: what one freezes the other does not charge."""
    table = pa.table({"x": range(5000)})
    own = {"budget": servers.BUDGET, "ledger": tmp_path / "x.ledger", "name": "x"}
    with farthing.Session(table, **own, analyst="owner") as owner, farthing.Session(table, **own, analyst="a") as other:
        owner.freeze("a")
        with pytest.raises(Frozen):
            other.count(absolute=100)
        owner.thaw("a")
        assert other.count(absolute=100).met
