"""A small server for tests: one table, four people, requests without a network."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pyarrow as pa
from argon2 import PasswordHasher

import farthing
from farthing.server.app import app
from farthing.server.connections import TimedConnection
from farthing.server.datasets import ServedTable
from farthing.server.people import Register
from farthing.server.service import Service
from farthing.server.tickets import Tickets

if TYPE_CHECKING:
    from pathlib import Path

    from farthing.server.guard import Limits

TABLE = pa.table(
    {"zone": ["a"] * 9_000 + ["b"] * 2_000 + ["<script>"] * 300, "x": [float(n % 50) for n in range(11_300)]}
)
ZONES = ["a", "b", "<script>"]
BUDGET = farthing.Budget(epsilon=1, delta=1e-6)
COUNT = {"dataset": "rides", "sql": "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"}
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)  # tests need no strength
ROLES = {"owner": "owner", "alice": "analyst", "bob": "analyst", "eve": "auditor"}


class World:
    """A service, its people and their tokens."""

    def __init__(self, folder: Path, *, table: Any = TABLE, **settings: Any) -> None:
        self.table = table
        self.folder = folder
        self.people = Register(folder / "tokens.json", hasher=QUICK)
        self.tokens = {name: self.people.add(name, role) for name, role in ROLES.items()}  # type: ignore[arg-type]
        columns = {"zone": "string", "x": "float"}
        one = ServedTable("rides", self.opened, BUDGET, "row", columns, keys={"zone": ZONES}, **settings)
        self.service = Service({"rides": one}, Tickets(b"k" * 32))

    def opened(self, **who: Any) -> farthing.Session:
        """Open somebody's session."""
        target = farthing.Target(relative=0.1, absolute=50)
        ledger = self.folder / "rides.ledger"
        return farthing.Session(
            self.table, name="rides", budget=BUDGET, ledger=ledger, keys={"zone": ZONES}, target=target, **who
        )

    def person(self, name: str) -> Any:
        """Return somebody as the server knows them."""
        return self.people.entering(self.tokens[name])

    @asynccontextmanager
    async def client(self, *, limits: Limits | None = None) -> Any:
        """Give a client that speaks to the server without a network."""
        transport = httpx.ASGITransport(app=app(self.service, self.people, limits=limits))
        async with httpx.AsyncClient(transport=transport, base_url="http://farthing") as client:
            yield client

    @contextmanager
    def listening(self) -> Any:
        """Listen on a free port of this machine, in a thread; give the address."""
        import uvicorn

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        config = uvicorn.Config(
            app(self.service, self.people), port=port, log_config=None, lifespan="off", http=TimedConnection
        )
        running = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(running.serve()), daemon=True)
        thread.start()
        while not running.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}/"
        running.should_exit = True
        thread.join()

    @contextmanager
    def wired(self) -> Any:
        """Open the PostgreSQL wire on a free port, in a thread; give the port."""
        from farthing.server.wire.listener import Listener

        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        tables = self.service.catalog()
        listener = Listener(self.service, self.people, tables, lambda _: None)
        yield asyncio.run_coroutine_threadsafe(listener.start("127.0.0.1", 0), loop).result()
        asyncio.run_coroutine_threadsafe(listener.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        tables.close()

    def request(self, method: str, path: str, who: str | None = None, **how: Any) -> httpx.Response:
        """Make one request and return what came."""
        limits = how.pop("limits", None)
        headers = how.pop("headers", {}) | ({} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"})

        async def made() -> httpx.Response:
            """Make it."""
            async with self.client(limits=limits) as client:
                return await client.request(method, path, headers=headers, **how)

        return asyncio.run(made())

    def ask(self, who: str, **asked: Any) -> httpx.Response:
        """Ask a question."""
        return self.request("POST", "/v1/ask", who, json=COUNT | asked)

    def close(self) -> None:
        """Close all sessions."""
        self.service.close()
