"""Running the server: HTTP and the PostgreSQL wire in one process, until it is told to stop."""

from __future__ import annotations

import asyncio
import secrets
import signal
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing.server.app import app
from farthing.server.guard import Limits
from farthing.server.service import Service
from farthing.server.tickets import Tickets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from farthing.server.datasets import ServedTable
    from farthing.server.people import Register


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens.

    Attributes:
        host: the name or number of the machine's interface.
        port: the port of HTTP; 0 for any that is free.
        postgres: the port of the PostgreSQL wire; 0 for any free one, None for no wire.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    postgres: int | None = None


def serve(
    data_sets: Mapping[str, ServedTable],
    people: Register,
    address: Address,
    *,
    key: bytes | None = None,
    open_history: bool = False,
    ready: Callable[[int, int | None], Any] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; running questions are finished, and what they cost is settled.

    Args:
        data_sets: what may be asked, by name.
        people: who may ask.
        address: where to listen.
        key: signs the ids of plans; the same for all workers. By default a fresh one, for one process.
        open_history: whether analysts see each other's questions.
        ready: called with the ports when both are open.
    """
    service = Service(data_sets, Tickets(key or secrets.token_bytes(32)), open_history)
    with suppress(KeyboardInterrupt), _ended_by_us():  # told to stop, and stopped
        asyncio.run(_served(service, people, address, ready))


@contextmanager
def _ended_by_us() -> Iterator[None]:
    """Let SIGTERM end the server and not the process: uvicorn raises it once more when it has stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


async def _served(
    service: Service, people: Register, address: Address, ready: Callable[[int, int | None], Any] | None
) -> None:
    """Serve both faces in one loop."""
    import uvicorn

    from farthing.server.connections import TimedConnection

    limits = Limits()
    config = uvicorn.Config(
        app(service, people, limits=limits),
        http=TimedConnection,
        lifespan="off",  # the sessions are closed below, when the other wire has answered as well
        host=address.host,
        port=address.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=60,
        limit_concurrency=2000,
    )
    server = uvicorn.Server(config)
    listener = None
    wire = None
    if address.postgres is not None:
        from farthing.server.wire.listener import Listener

        listener = Listener(service, people, service.catalog(), limits.take)
        wire = await listener.start(address.host, address.postgres)
    running = asyncio.ensure_future(server.serve())
    while not server.started and not running.done():  # noqa: ASYNC110
        await asyncio.sleep(0.01)  # uvicorn tells by no event that it has started
    if server.started and ready is not None:
        ready(server.servers[0].sockets[0].getsockname()[1], wire)
    await running
    if listener is not None:
        await listener.stop()
    await asyncio.to_thread(service.close)
