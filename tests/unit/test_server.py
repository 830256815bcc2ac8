"""The server over HTTP: who may do what, one shape for answers and errors, plans that are confirmed."""

from __future__ import annotations

import asyncio
import json

import pyarrow as pa
import pytest
import servers

import farthing
from farthing.client import RefusedRequest
from farthing.errors import DataError, FarthingError
from farthing.server import openapi, shapes
from farthing.server.guard import LARGEST, Limits
from farthing.server.tickets import LASTS, Ticket, Tickets
from farthing.session.core import transaction


@pytest.fixture
def world(tmp_path):
    """A server with one table."""
    made = servers.World(tmp_path)
    yield made
    made.close()


def spent(world) -> farthing.Loss:
    """Return what the ledger has charged."""
    with world.opened(analyst="test") as session:
        return session.spent


def test_health_needs_no_token(world):
    """Health and the interface are open; everything else is not."""
    assert world.request("GET", "/health").json() == {"status": "ok"}
    paths = openapi.document()["paths"]
    for path, methods in paths.items():
        for method in methods:
            answer = world.request(method.upper(), path, json=servers.COUNT if method == "post" else None)
            assert answer.status_code == (200 if path == "/health" else 401), path


def test_an_answer_has_rows_its_price_and_what_is_left(world):
    """The rows are those of the library, with the default keys and target of the data set."""
    told = world.ask("alice").json()
    assert [row["zone"] for row in told["answers"]] == servers.ZONES
    assert set(told["answers"][0]) == {"zone", "n", "n_lower", "n_upper", "met", "paid"}
    assert 0 < told["paid"]["epsilon"] < told["remaining"]["epsilon"] < 1
    assert told["goal"] == "within 10 % or 50"


def test_the_same_question_is_free_for_everybody(world):
    """What was released to one analyst is free for another."""
    first, second = world.ask("alice").json(), world.ask("bob").json()
    assert second["paid"]["mu"] == 0
    assert [row["n"] for row in first["answers"]] == [row["n"] for row in second["answers"]]


def test_a_plan_is_free_and_confirms_its_question(world):
    """Asked by its plan's id, a question costs at most what the plan told."""
    plan = world.request("POST", "/v1/plan", "alice", json=servers.COUNT).json()
    assert plan["fits"]
    assert not spent(world)
    told = world.request("POST", "/v1/ask", "alice", json={"plan": plan["plan"]}).json()
    assert 0 < told["paid"]["mu"] <= plan["worst_price"]["mu"]
    again = world.request("POST", "/v1/ask", "alice", json={"plan": plan["plan"]}).json()
    assert again["paid"]["mu"] == 0


@pytest.mark.parametrize(
    "change", [{"relative": 0.01}, {"sql": "SELECT COUNT(*) FROM rides"}, {"keys": {"zone": ["a"]}}]
)
def test_a_plan_confirms_no_other_question(world, change):
    """An id that is sent with another question is refused, free."""
    plan = world.request("POST", "/v1/plan", "alice", json=servers.COUNT).json()["plan"]
    answer = world.ask("alice", plan=plan, **change)
    assert answer.status_code == 409
    assert not spent(world)


def test_a_plan_whose_price_has_risen_is_refused(world):
    """Where the price would be higher than the plan told, nothing is charged."""
    cheap = world.service.tickets.written(Ticket("alice", servers.COUNT, 1))
    answer = world.request("POST", "/v1/ask", "alice", json={"plan": cheap})
    assert answer.status_code == 409
    assert not spent(world)


def test_a_plan_is_kept_while_somebody_else_measures_the_same(world, monkeypatch):
    """Whoever no longer waits for another's measurement would pay afresh: never more than the plan told."""
    monkeypatch.setattr(transaction, "PATIENCE_S", 0)
    world.ask("alice", **servers.COUNT)
    plan = world.request("POST", "/v1/plan", "alice", json=servers.COUNT | {"absolute": 30}).json()
    assert plan["worst_price"]["mu"] > 0
    with world.opened() as other:
        asked = other.history(1)[0].question
        other._ledger.reserve(increase=1, fresh=1, question=asked, version=1, label="the same")
        before = other.spent
        answer = world.request("POST", "/v1/ask", "alice", json={"plan": plan["plan"]})
        assert before == other.spent
    assert (409, "PriceRisen") == (answer.status_code, answer.json()["error"]["kind"])


def test_nobody_else_can_confirm_a_plan(world):
    """An id is its maker's, for an hour, as it was written."""
    plan = world.request("POST", "/v1/plan", "alice", json=servers.COUNT).json()["plan"]
    for who, written in [("bob", plan), ("alice", plan[:-2] + "xx"), ("alice", "x"), ("alice", "é")]:
        assert world.request("POST", "/v1/ask", who, json={"plan": written}).status_code == 409
    now = [0.0]
    tickets = Tickets(b"k" * 32, clock=lambda: now[0])
    written = tickets.written(Ticket("alice", {}, 3))
    assert tickets.read(written, "alice").most == 3
    now[0] = LASTS + 1.0
    with pytest.raises(RefusedRequest):
        tickets.read(written, "alice")


def test_roles(world):
    """Analysts ask, auditors read and check, owners do both."""
    asked = {who: world.ask(who).status_code for who in servers.ROLES}
    assert asked == {"owner": 200, "alice": 200, "bob": 200, "eve": 403}
    checked = {
        who: world.request("POST", "/v1/verify", who, json={"dataset": "rides"}).status_code for who in servers.ROLES
    }
    assert checked == {"owner": 200, "alice": 403, "bob": 403, "eve": 200}


def test_analysts_see_their_own_questions_only(world):
    """History shows an analyst what they asked; owners and auditors see all."""
    world.ask("alice")
    seen = {who: len(world.request("GET", "/v1/history", who).json()["history"]) for who in servers.ROLES}
    assert seen == {"owner": 1, "alice": 1, "bob": 0, "eve": 1}


def test_a_data_set_that_is_not_open_to_somebody_is_not_there(tmp_path):
    """A data set of others cannot be told from one that does not exist."""
    world = servers.World(tmp_path, askers=frozenset({"bob"}))
    mine, other = world.ask("alice"), world.ask("alice", dataset="nothing")
    assert mine.status_code == other.status_code == 404
    assert mine.json()["error"]["message"] == other.json()["error"]["message"]
    assert world.request("GET", "/v1/datasets", "alice").json() == {"datasets": []}
    assert world.ask("bob").status_code == 200
    world.close()


def test_a_share_limits_its_analyst(tmp_path):
    """Who has an allotment of the ledger is refused beyond it, with the price."""
    world = servers.World(tmp_path)
    with world.opened(analyst="owner") as session:
        session.allot("alice", farthing.Gdp(0.001))
    answer = world.ask("alice", relative=0.02, max_epsilon=0.5)
    assert answer.status_code == 402
    assert answer.json()["error"]["kind"] == "BudgetExceeded"
    assert world.ask("bob").status_code == 200
    world.close()


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"sql": "SELECT * FROM rides"}, 422),
        ({"sql": "SELECT zone, COUNT(*) FROM rides GROUP BY zone; DROP TABLE rides"}, 422),
        ({"sql": "x" * 70_000}, 400),
        ({"sql": None}, 400),
        ({"relative": "much"}, 400),
        ({"relative": True}, 400),
        ({"relative": -1}, 422),
        ({"keys": [1]}, 400),
        ({"keys": {"zone": 3}}, 400),
        ({"keys": {"zone": [""] * 200_001}}, 400),
        ({"dataset": "../rides"}, 404),
        ({"dataset": ["rides"]}, 400),
        ({"color": "red"}, 400),
        ({"absolute": 0.001, "relative": 0}, 402),
        ({"progress": 1}, 400),
        ({"cap": "some"}, 422),
    ],
)
def test_bad_requests_get_one_clear_error_and_cost_nothing(world, asked, status):
    """Each is refused with its four facts, and nothing is charged."""
    answer = world.ask("alice", **asked)
    assert answer.status_code == status, answer.text
    assert set(answer.json()["error"]) == {"kind", "message", "rule", "got", "next"}
    assert not spent(world)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b"\xff", b'{"relative": NaN}', b"[" * 100_000])
def test_what_is_no_json_object_is_refused(world, body):
    """Neither NaN nor nesting without end reaches the service."""
    answer = world.request("POST", "/v1/ask", "alice", content=body)
    assert answer.status_code == 400


def test_large_bodies_are_refused(world):
    """A body is read up to the limit only."""
    assert world.request("POST", "/v1/ask", "alice", content=b" " * (LARGEST + 1)).status_code == 413


@pytest.mark.parametrize("token", ["", "alice", "alice.", "alice.wrong", "nobody.x", "é", "x" * 1_000, ".", "alice.é"])
def test_wrong_tokens(world, token):
    """Whoever has no token of the server stays outside."""
    header = {"Authorization": f"Bearer {token}".encode()}
    assert world.request("GET", "/v1/datasets", headers=header).status_code == 401


def test_requests_are_limited_by_token(world):
    """Beyond its bucket a token gets 429, and the others go on."""
    limits = Limits(a_minute=0.001, burst=3)

    async def many() -> list[int]:
        """Ask four times with one server."""
        async with world.client(limits=limits) as client:
            headers = {"Authorization": f"Bearer {world.tokens['alice']}"}
            return [(await client.get("/v1/history", headers=headers)).status_code for _ in range(4)]

    assert asyncio.run(many()) == [200, 200, 200, 429]


def test_an_idempotency_key_stands_for_one_request(world):
    """A retry gets the very same answer; another request under the key is refused."""

    async def retried() -> tuple[list[str], int]:
        """Ask twice under one key, then something else."""
        async with world.client() as client:
            headers = {"Authorization": f"Bearer {world.tokens['alice']}", "Idempotency-Key": "k1"}
            same = [client.post("/v1/ask", json=servers.COUNT, headers=headers) for _ in range(3)]
            texts = [answer.text for answer in await asyncio.gather(*same)]
            other = await client.post("/v1/ask", json=servers.COUNT | {"relative": 0.2}, headers=headers)
            return texts, other.status_code

    texts, status = asyncio.run(retried())
    assert len(set(texts)) == 1
    assert json.loads(texts[0])["paid"]["mu"] > 0
    assert status == 409


def test_events_tell_looks_and_end_with_the_answer(world):
    """A stream tells what was released on the way; its answer is the one that is kept."""
    answer = world.request("POST", "/v1/ask", "alice", json=servers.COUNT, headers={"Accept": "text/event-stream"})
    events = [part.split("\n") for part in answer.text.strip().split("\n\n") if not part.startswith(":")]
    names = [name.removeprefix("event: ") for name, _ in events]
    assert names[-1] == "answer"
    assert set(names[:-1]) == {"look"}
    told = json.loads(events[-1][1].removeprefix("data: "))
    assert [row["n"] for row in told["answers"]] == [row["n"] for row in world.ask("alice").json()["answers"]]


def test_events_end_with_an_error(world):
    """A refusal comes as the last event."""
    answer = world.request(
        "POST", "/v1/ask", "alice", json=servers.COUNT | {"sql": "SELECT"}, headers={"Accept": "text/event-stream"}
    )
    assert "event: error" in answer.text


def test_arrow(world):
    """The rows leave as Arrow on demand, with the price in the metadata."""
    header = {"Accept": "application/vnd.apache.arrow.stream"}
    answer = world.request("POST", "/v1/ask", "alice", json=servers.COUNT, headers=header)
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.column_names == ["zone", "n", "n_lower", "n_upper", "met", "paid"]
    assert json.loads(table.schema.metadata[b"paid"])["mu"] > 0


def test_every_error_has_a_status():
    """No error of ours leaves as one of the server's."""
    kinds = {FarthingError}
    while more := {child for kind in kinds for child in kind.__subclasses__()} - kinds:
        kinds |= more
    ours = [kind for kind in kinds if kind.__module__ == "farthing.errors" and kind is not FarthingError]
    assert ours
    unnamed = [kind.__name__ for kind in ours if not any(issubclass(kind, known) for known, _ in shapes._STATUS)]
    assert unnamed == ["NoiseError"]  # a fault of ours, not of the request


def test_what_breaks_inside_is_told_without_its_cause(world, monkeypatch):
    """An unexpected error may hold data: one constant text leaves."""

    def broken(*_: object, **__: object) -> None:
        """Fail with a private value in the message."""
        raise RuntimeError("salary 24171")

    monkeypatch.setattr(type(world.service), "ask", broken)

    async def asked() -> str:
        """Ask, with errors answered as a server does."""
        import httpx

        from farthing.server.app import app

        transport = httpx.ASGITransport(app=app(world.service, world.people), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            headers = {"Authorization": f"Bearer {world.tokens['alice']}"}
            texts = [(await client.post("/v1/ask", json=servers.COUNT, headers=headers)).text]
            streamed = headers | {"Accept": "text/event-stream"}
            return "".join([*texts, (await client.post("/v1/ask", json=servers.COUNT, headers=streamed)).text])

    text = asyncio.run(asked())
    assert "24171" not in text
    assert text.count("the server could not answer") == 2


def test_headers_are_safe(world):
    """No response can be framed, sniffed or cached."""
    for path in ("/health", "/v1/datasets", "/nothing"):
        headers = world.request("GET", path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_trouble_with_the_data_is_the_servers():
    """A ledger or a table that cannot be used is the server's trouble: 503."""
    assert shapes.status_of(DataError("gone")) == 503


def test_every_address_is_in_the_interface(world):
    """What a server answers at is what its own document tells, beside the page and the document."""
    from farthing.server.app import app

    there = {route.path for route in app(world.service, world.people).routes}
    assert there - {"/", "/page/{name}", "/openapi.json"} == set(openapi.document()["paths"])


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "TRACE"])
def test_another_method_is_told_which_there_are(world, method):
    """405 comes with the methods that are allowed."""
    came = world.request(method, "/v1/ask", "alice")
    assert came.status_code == 405
    assert "POST" in came.headers["allow"]


def test_an_error_after_the_answer_was_paid_for_carries_it(world):
    """With on_miss="raise" the rows that were paid for come beside the error."""
    came = world.ask("alice", relative=0.001, absolute=10, on_miss="raise", max_epsilon=0.2)
    assert came.status_code == 409
    assert came.json()["error"]["kind"] == "TargetMissed"
    assert len(came.json()["answers"]) == 3


def test_a_plan_is_planned_again_with_changes(world):
    """A plan's id with another target prices that, under a new id; the old id keeps its question."""
    first = world.request("POST", "/v1/plan", "alice", json=servers.COUNT).json()
    finer = world.request("POST", "/v1/plan", "alice", json={"plan": first["plan"], "relative": 0.02}).json()
    assert finer["plan"] != first["plan"]
    assert "2 %" in finer["goal"]
    assert not spent(world)


def test_people_and_their_shares_are_for_owners_and_auditors(world):
    """Names, roles and shares, without any token or hash; an analyst is refused."""
    from fractions import Fraction

    with world.opened(analyst="owner") as session:
        session.allot("alice", Fraction(1, 5))
    assert world.request("GET", "/v1/people", "alice").status_code == 403
    came = world.request("GET", "/v1/people", "eve")
    people = {one["name"]: one for one in came.json()["people"]}
    assert set(people["alice"]["shares"]["rides"]) == {"share", "spent", "left"}
    assert "argon2" not in came.text
