"""Hostile clients and bad days: one clear error each, nothing charged, no row and no path in what is told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import time

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import servers
from hypothesis import given, settings
from hypothesis import strategies as st
from pygwire import PygwireError, messages
from sweeps import sweep

import farthing
from farthing.server import connections, guard, static
from farthing.server.app import app
from farthing.server.guard import Limits
from farthing.server.wire.client import Client
from farthing.server.wire.desk import Desk

pytestmark = pytest.mark.thorough


@pytest.fixture
def world(tmp_path):
    """A server with one table."""
    made = servers.World(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def unpaid(tmp_path_factory):
    """A server of which nothing is ever bought."""
    made = servers.World(tmp_path_factory.mktemp("unpaid"))
    yield made
    made.close()


def spent(world):
    """Return what the ledger has charged."""
    with world.opened(analyst="test") as session:
        return session.spent


def test_two_servers_on_one_ledger_are_one_budget(tmp_path, world):
    """A second server over the same file sees what the first charged, answers it free, and adds to the same sum."""
    second = servers.World(tmp_path)  # it gives new tokens, which both servers know from the file
    world.tokens = second.tokens
    first = world.ask("alice").json()
    assert second.ask("bob").json()["paid"]["mu"] == 0
    more = second.ask("bob", relative=0.05).json()
    assert more["paid"]["mu"] > 0
    assert spent(world).value ** 2 == pytest.approx(first["paid"]["mu"] ** 2 + more["paid"]["mu"] ** 2)
    second.close()


def test_a_table_that_is_replaced_is_refused(tmp_path):
    """Other rows under the same name and version: an error of the server, without a path, and nothing is charged."""
    place = tmp_path / "rides.parquet"
    pq.write_table(servers.TABLE, place)
    world = servers.World(tmp_path, table=str(place))
    assert world.ask("alice").status_code == 200
    before = spent(world)
    time.sleep(0.01)
    pq.write_table(pa.concat_tables([servers.TABLE, servers.TABLE]), place)
    for asked in ({}, {"absolute": 20}, {"sql": "SELECT COUNT(*) FROM rides"}):
        answer = world.ask("bob", **asked)
        assert answer.status_code == 503
        assert str(tmp_path) not in answer.text
    world.close()
    pq.write_table(servers.TABLE, place)
    with farthing.Session(
        str(place), name="rides", budget=servers.BUDGET, ledger=tmp_path / "rides.ledger", same_data=True
    ) as s:
        assert s.spent == before


@pytest.mark.parametrize("path", ["/v1/plan", "/v1/ask"])
def test_no_answer_tells_a_path_of_the_machine(world, path):
    """Neither answers nor plans name a folder."""
    assert str(world.folder) not in world.request("POST", path, "alice", json=servers.COUNT).text


@pytest.mark.thorough
def test_ten_thousand_plans_at_once_are_bounded_work(world, monkeypatch):
    """Plans are free, and limited: of ten thousand at once about the burst is computed, the others get 429."""
    made = []
    monkeypatch.setattr(type(world.service), "plan", lambda *_: made.append(1) or {})
    monkeypatch.setattr(guard.time, "monotonic", lambda: 0.0)  # the bucket does not fill up meanwhile

    async def flood():
        """Send them all."""
        async with world.client(limits=Limits(burst=120)) as client:
            headers = {"Authorization": f"Bearer {world.tokens['alice']}"}
            sent = [client.post("/v1/plan", json=servers.COUNT, headers=headers) for _ in range(10_000)]
            return [(await one).status_code for one in asyncio.as_completed(sent)]

    statuses = asyncio.run(flood())
    assert statuses.count(200) == len(made) == 120
    assert statuses.count(429) == 9_880


def test_guesses_are_limited(world):
    """Who guesses tokens is stopped after a burst; who has one is not."""
    limits = Limits(burst=3)

    async def guessing():
        """Guess five times, then come with a token."""
        async with world.client(limits=limits) as client:
            wrong = {"Authorization": "Bearer alice.guess"}
            statuses = [(await client.get("/v1/me", headers=wrong)).status_code for _ in range(5)]
            right = {"Authorization": f"Bearer {world.tokens['alice']}"}
            return [*statuses, (await client.get("/v1/me", headers=right)).status_code]

    assert asyncio.run(guessing()) == [401, 401, 401, 429, 429, 200]


def test_a_slow_body_ends(world, monkeypatch):
    """A body that does not arrive in time is no request; nothing is charged."""
    monkeypatch.setattr(guard, "SLOWEST", 0.05)

    async def slow():
        """Send half of a body, and wait."""
        yield b'{"dataset": '
        await asyncio.sleep(1)

    async def asked():
        """Ask slowly."""
        headers = [(b"authorization", f"Bearer {world.tokens['alice']}".encode())]
        scope = {"type": "http", "method": "POST", "path": "/v1/ask", "headers": headers, "query_string": b"",
                 "client": ("test", 1), "server": ("test", 80), "scheme": "http", "root_path": ""}  # fmt: skip
        parts, told = slow(), []

        async def receive():
            """Give the next part."""
            return {"type": "http.request", "body": await anext(parts), "more_body": True}

        async def send(message):
            """Keep what is sent."""
            told.append(message)

        await app(world.service, world.people)(scope, receive, send)
        return told[0]["status"]

    assert asyncio.run(asked()) == 400
    assert not spent(world)


def test_a_slow_head_ends_its_connection(world, monkeypatch):
    """Who names a request byte by byte is cut off; others are served meanwhile."""
    monkeypatch.setattr(connections, "PATIENCE", 1.0)
    with (
        world.listening() as address,
        socket.create_connection(("127.0.0.1", int(address.rsplit(":")[-1][:-1]))) as raw,
    ):
        raw.settimeout(60)
        raw.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
        assert httpx.get(address + "health", timeout=60).status_code == 200
        assert drips(raw) < 100


def drips(raw):
    """Send a header every now and then; return how many went out before the other side hung up."""
    for sent in range(100):
        try:
            raw.sendall(b"A: b\r\n")
        except (BrokenPipeError, ConnectionResetError):
            return sent
        time.sleep(0.05)
    return 100


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
def test_other_sites_get_nothing(world, origin):
    """No answer allows another origin, and what a browser asks before is not granted."""
    for method, path in (("OPTIONS", "/v1/ask"), ("GET", "/v1/datasets"), ("GET", "/")):
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        came = world.request(method, path, headers=headers)
        assert not [name for name in came.headers if name.startswith("access-control")]
        assert not came.headers.get("set-cookie")


HOSTILE = {
    "a megabyte of SQL": ({"sql": "SELECT COUNT(*) FROM rides WHERE zone = '" + "x" * (1 << 20) + "'"}, 413),
    "a long SQL": ({"sql": "SELECT COUNT(*) FROM rides WHERE zone = '" + "x" * (1 << 17) + "'"}, 400),
    "a million keys": ({"keys": {"zone": ["k"] * 1_000_000}}, 413),
    "many short keys": ({"keys": {"zone": [1] * 200_001}}, 400),
    "many columns of keys": ({"keys": {f"c{n}": ["a"] for n in range(20_000)}}, 422),
    "nested parentheses": ({"sql": "SELECT COUNT(*) FROM rides WHERE " + "(" * 20_000 + "1=1" + ")" * 20_000}, 422),
    "many conditions": ({"sql": "SELECT COUNT(*) FROM rides WHERE " + " AND ".join(["x > 1"] * 5_000)}, 422),
    "a file": ({"sql": "SELECT COUNT(*) FROM '/etc/passwd'"}, 422),
    "a row": ({"sql": "SELECT zone FROM rides LIMIT 1"}, 422),
    "a name of a path": ({"dataset": "../../etc/passwd"}, 404),
    "half a character": ({"sql": "SELECT '\ud800'"}, 400),
    "a zero byte": ({"sql": "SELECT COUNT(*) FROM rides WHERE zone = '\0'"}, 400),
    "a zero byte in a key": ({"keys": {"zo\0ne": ["a"]}}, 422),
}


@pytest.mark.parametrize("plan", [7, ["x"], {}, True, "", "x", "A" * 70_000])
def test_what_is_no_plan_is_told_so_by_both(world, plan):
    """A plan's id is a text that was written here, whether it is to be confirmed or planned anew."""
    for path in ("/v1/plan", "/v1/ask"):
        came = world.request("POST", path, "alice", json=servers.COUNT | {"plan": plan})
        assert came.status_code == (409 if isinstance(plan, str) else 400)
    assert not spent(world)


@pytest.mark.parametrize("name", HOSTILE)
def test_one_clear_error_and_nothing_else(unpaid, name, caplog):
    """Of each a status, four short facts, no charge; no row, path, token or question in the error or the log."""
    caplog.set_level(logging.DEBUG, logger="farthing")
    asked, status = HOSTILE[name]
    came = unpaid.request("POST", "/v1/ask", "alice", content=json.dumps(servers.COUNT | asked))
    assert came.status_code == status, came.text[:300]
    assert set(came.json()["error"]) == {"kind", "message", "rule", "got", "next"}
    assert len(came.text) < 5_000
    assert str(unpaid.folder) not in came.text
    assert not [word for word in ("<script>", "root:", unpaid.tokens["alice"]) if word in came.text + caplog.text]
    assert "SELECT" not in caplog.text
    assert not spent(unpaid)


def test_strangers_from_everywhere_take_a_bounded_memory(monkeypatch):
    """Of addresses there is no end: so many are remembered, and one that was limited just now still is."""
    monkeypatch.setattr(guard, "_MOST_NAMES", 10)
    limits = Limits(a_minute=0.001, burst=1)
    for number in range(100):
        limits.take(f"stranger {number}")
    assert len(limits._left) == 10
    with pytest.raises(farthing.FarthingError):
        limits.take("stranger 99")


@pytest.mark.parametrize("days", [-400, 400])
def test_a_clock_that_jumps_changes_no_price(world, monkeypatch, days):
    """A day back or forth a plan costs at most what it told or is refused, a repeat is free, and the books agree."""
    plan = world.request("POST", "/v1/plan", "alice", json=servers.COUNT | {"relative": 0.05}).json()
    paid = world.ask("alice").json()["paid"]["mu"]
    real, shift = time.time_ns, days * 86_400 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: real() + shift)
    monkeypatch.setattr(world.service.tickets, "_clock", lambda: (real() + shift) / 1e9)
    came = world.request("POST", "/v1/ask", "alice", json={"plan": plan["plan"]})
    assert came.status_code == (200 if days < 0 else 409)
    assert world.ask("bob").json()["paid"]["mu"] == 0
    assert spent(world).value >= paid > 0
    assert world.request("POST", "/v1/verify", "owner", json={"dataset": "rides"}).status_code == 200


def test_a_replayed_request_pays_nothing(world):
    """Whoever sends a request that was sent before gets the answer that was paid for."""
    world.ask("alice")
    before = spent(world)
    for _ in range(3):
        assert world.ask("alice").json()["paid"]["mu"] == 0
    assert spent(world) == before


@pytest.mark.parametrize("name", ["../rides", "rides/../rides", "%2e%2e/rides", "rides\0", "C:\\rides", "", "x" * 1000])
def test_names_of_data_sets_are_looked_up_and_nothing_else(world, name):
    """A name that is no data set's is unknown, whatever it looks like."""
    assert world.request("POST", "/v1/ask", "alice", json=servers.COUNT | {"dataset": name}).status_code == 404


@pytest.mark.parametrize("name", ["../app.py", "..%2fapp.py", "app.py", "page.js/", "", "%00"])
def test_only_the_page_is_served(world, name):
    """Files beside the page are not there, and nobody is sent elsewhere."""
    assert world.request("GET", f"/page/{name}").status_code == 404


@pytest.mark.parametrize("path", ["/v1/ask/", "/health/", "/v1//ask"])
def test_nobody_is_sent_elsewhere(world, path):
    """An address that is nearly one of ours is unknown: a redirect would go to whatever host the request names."""
    came = world.request("GET", path, headers={"Host": "elsewhere.example"})
    assert came.status_code == 404
    assert "location" not in came.headers


def test_the_page_allows_its_own_files_only(world):
    """No script but ours, no form target, no frame; the files have nothing of other sites in them."""
    came = world.request("GET", "/")
    policy = came.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for name in static.FILES:
        text = world.request("GET", f"/page/{name}").text
        assert "innerHTML" not in text
        assert "https://" not in text.replace("http://www.w3.org", "")


def test_a_formula_in_a_key_is_text_in_csv(tmp_path):
    """CSV for a spreadsheet: a key that begins as a formula gets an apostrophe."""
    world = servers.World(tmp_path)
    asked = servers.COUNT | {"keys": {"zone": ["=1+1", "a"]}}
    text = world.request("POST", "/v1/ask", "alice", json=asked, headers={"Accept": "text/csv"}).text
    assert "'=1+1" in text
    world.close()


def test_metrics_and_logs_hold_no_question(world, caplog):
    """Counts by route and status for owners and auditors; lines of method, route, status and time."""
    caplog.set_level(logging.INFO, logger="farthing")

    async def asked():
        """Ask, then read the counts."""
        async with world.client() as client:
            auth = {name: {"Authorization": f"Bearer {token}"} for name, token in world.tokens.items()}
            await client.post("/v1/ask", json=servers.COUNT, headers=auth["alice"])
            await client.get("/v1/history?dataset=rides", headers=auth["alice"])
            refused = await client.get("/metrics", headers=auth["alice"])
            return refused.status_code, (await client.get("/metrics", headers=auth["eve"])).text

    status, text = asyncio.run(asked())
    assert status == 403
    assert 'farthing_requests_total{route="/v1/ask",status="200"} 1' in text
    logged = "\n".join(caplog.messages)  # as the program wrote them: another library may have set the format
    for place in (text, logged, caplog.text):
        assert not [word for word in ("rides", "zone", "COUNT", "alice", "<script>") if word in place]
    assert '"route": "/v1/ask"' in logged


class Deaf:
    """A writer that keeps nothing."""

    def write(self, _):
        """Take bytes."""

    async def drain(self):
        """Have nothing to wait for."""


FRAMES = st.tuples(st.sampled_from(b"QPBDESCHXFdcfp"), st.binary(max_size=80)).map(
    lambda frame: bytes([frame[0]]) + (len(frame[1]) + 4).to_bytes(4, "big") + frame[1]
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A server for many short connections."""
    made = servers.World(tmp_path_factory.mktemp("fuzz"))
    made.catalog = made.service.catalog()
    yield made
    made.catalog.close()
    made.close()


@pytest.mark.thorough
@given(data=st.lists(FRAMES | st.binary(max_size=40), max_size=6), known=st.booleans())
@settings(max_examples=150, deadline=None)
def test_bytes_on_the_wire_end_in_an_error_of_the_wire(shared, data, known):
    """Whatever bytes come, before or after the password: an error message, or the end of that connection."""
    client = Client(Deaf(), shared.service, shared.people, shared.catalog, lambda _: None)

    async def fed():
        """Feed them, as the listener does."""
        if known:
            await client._take_message(messages.StartupMessage(params={"user": "alice"}))
            client.desk = Desk(shared.service, shared.person("alice"), shared.catalog)
        for part in data:
            await client.fed(part)

    with contextlib.suppress(PygwireError, ValueError):  # the listener ends the connection
        asyncio.run(fed())
    assert not spent(shared)


TEXTS = st.text(max_size=200) | st.builds(
    "{} {} FROM {}{}".format,
    st.sampled_from(["SELECT", "EXPLAIN SELECT", "WITH x AS (SELECT", "COPY", "SET", "SHOW", "/*"]),
    st.sampled_from(["*", "zone", "x + 1", "version()", "pg_sleep(9)", "zone, x", "1;2", "(SELECT x FROM rides)"]),
    st.sampled_from(["rides", "public.rides", "pg_class", "rides, rides", "read_text('/etc/passwd')", "(VALUES (1))"]),
    st.sampled_from(["", " LIMIT 0", " WHERE 1=0", ";", " UNION SELECT zone FROM rides", " --"]),
)


@given(text=TEXTS)
@settings(max_examples=sweep(30, 150), deadline=None)
def test_statements_of_rows_tell_no_row(shared, text):
    """No text of a statement brings a row out: what is told has the declared names, or is an error."""
    desk = Desk(shared.service, shared.person("alice"), shared.catalog)
    try:
        result = desk.done(text)
    except farthing.FarthingError as error:
        assert "root:" not in str(error)  # noqa: PT017
        return
    if result.table is not None:
        found = [value for column in result.table.columns for value in column.to_pylist()]
        assert not {"a", "b", "<script>"} & {value for value in found if isinstance(value, str)}
    assert not spent(shared)
