"""Running the server: HTTP and the PostgreSQL wire in one process, until it is told to stop."""

from __future__ import annotations

import asyncio
import secrets
import signal
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from farthing.server.app import app
from farthing.server.guard import Limits
from farthing.server.service import Service
from farthing.server.tickets import Tickets
from farthing.session.core.transaction import catch_up

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping

    from uvicorn import Server

    from farthing.server.clock import PublicClock
    from farthing.server.datasets import ServedTable
    from farthing.server.people import PeopleSource
    from farthing.server.shared import Shared
    from farthing.server.wire.listener import Listener


_TENDED_S: Final = 1.0
"""Seconds between two looks for what asks of this process owe to books whose server was lost."""


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


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a server behaves, whatever it serves.

    Attributes:
        open_history: whether analysts see each other's questions.
        clock: when answers leave; None as soon as they are ready.
        shared: what its processes share: the key of plans, and requests by idempotency key. None where there is one
            process whose plans end with it.
        worker: which of several processes this is; None for the only one.
        sockets: what several processes listen on together: for HTTP, and for the PostgreSQL wire where it is served.
    """

    open_history: bool = False
    clock: PublicClock | None = None
    shared: Shared | None = None
    worker: int | None = None
    sockets: tuple[socket.socket, ...] = ()


def serve(
    data_sets: Mapping[str, ServedTable],
    people: PeopleSource,
    address: Address,
    conduct: Conduct | None = None,
    *,
    ready: Callable[[int, int | None], Any] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; running questions are finished, and what they cost is settled.

    Args:
        data_sets: what may be asked, by name.
        people: who may ask.
        address: where to listen.
        conduct: how it behaves.
        ready: called with the ports when both are open.
    """
    how = conduct or Conduct()
    key = secrets.token_bytes(32) if how.shared is None else how.shared.key()
    service = Service(data_sets, Tickets(key), how.open_history)
    with suppress(KeyboardInterrupt), _ended_by_us():  # told to stop, and stopped
        asyncio.run(_served(service, people, address, how, ready))
    if how.shared is not None:
        how.shared.close()


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
    service: Service,
    people: PeopleSource,
    address: Address,
    how: Conduct,
    ready: Callable[[int, int | None], Any] | None,
) -> None:
    """Serve both faces in one loop."""
    limits = Limits()
    server = _http(service, people, address, how, limits)
    listener, wire = await _wire(service, people, address, how, limits)
    tending = asyncio.ensure_future(_tended())
    running = asyncio.ensure_future(server.serve(sockets=list(how.sockets[:1]) or None))
    while not server.started and not running.done():  # noqa: ASYNC110
        await asyncio.sleep(0.01)  # uvicorn tells by no event that it has started
    if server.started and ready is not None:
        ready(server.servers[0].sockets[0].getsockname()[1], wire)
    await running
    tending.cancel()
    if listener is not None:
        await listener.stop()
    await asyncio.to_thread(service.close)


def _http(service: Service, people: PeopleSource, address: Address, how: Conduct, limits: Limits) -> Server:
    """Return the server of HTTP."""
    import uvicorn

    from farthing.server.connections import TimedConnection

    config = uvicorn.Config(
        app(service, people, limits=limits, clock=how.clock, shared=how.shared, worker=how.worker),
        http=TimedConnection,
        lifespan="off",  # the sessions are closed here, when the other wire has answered as well
        host=address.host,
        port=address.port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=60,
        limit_concurrency=2000,
    )
    return uvicorn.Server(config)


async def _wire(
    service: Service, people: PeopleSource, address: Address, how: Conduct, limits: Limits
) -> tuple[Listener | None, int | None]:
    """Open the PostgreSQL wire where it is served; return who listens, and the port."""
    if address.postgres is None:
        return None, None
    from farthing.server.wire.listener import Listener

    listener = Listener(service, people, service.catalog(), limits.take, clock=how.clock)
    bound = how.sockets[1] if how.sockets else None
    return listener, await listener.start(address.host, address.postgres, bound=bound)


async def _tended() -> None:
    """Close what asks of this process owe, as soon as the server of their books is back: others wait for it."""
    while True:
        await asyncio.sleep(_TENDED_S)
        await asyncio.to_thread(catch_up)
