"""The port of the PostgreSQL wire: who connects, how many at a time, and how they are sent away."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pygwire import PygwireError

from farthing.server.wire.client import Client

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from farthing.server.clock import PublicClock
    from farthing.server.people import PeopleSource
    from farthing.server.service import Service
    from farthing.server.wire.catalog import EmptyTables

LOG: Final = logging.getLogger("farthing.server.wire")
MOST_OPEN: Final = 1_000
"""Connections at a time, of all clients together."""
_PATIENCE: Final = 30.0
"""Seconds in which a stranger has to say who it is."""
_GRACE: Final = 60.0
"""Seconds in which what is under way is answered when the server stops."""


class Listener:
    """Serves the wire on one port."""

    def __init__(
        self,
        service: Service,
        people: PeopleSource,
        catalog: EmptyTables,
        take: Callable[[str], None],
        *,
        clock: PublicClock | None = None,
    ) -> None:
        self._shared = (service, people, catalog, take)
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.Task[None], asyncio.StreamReader] = {}

    async def start(self, host: str, port: int, *, bound: socket.socket | None = None) -> int:
        """Begin to listen, on a socket of several processes or on one of its own; return the port."""
        where: dict[str, Any] = {"host": host, "port": port} if bound is None else {"sock": bound}
        self._server = await asyncio.start_server(self._connected, **where)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening: who waits is sent away, and what is under way is answered first."""
        if self._server is None:
            return
        self._server.close()
        for reader in self._open.values():
            reader.feed_eof()
        if self._open:
            await asyncio.wait(set(self._open), timeout=_GRACE)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._server.wait_closed(), _GRACE)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client, and know it until it has gone."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a connection is served by a task of its own
        self._open[task] = reader
        try:
            await self._served(reader, writer)
        finally:
            del self._open[task]

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client to its end."""
        client = Client(writer, *self._shared, clock=self._clock, beyond=MOST_OPEN * (len(self._open) > MOST_OPEN))
        try:
            while not client.gone:
                waits = _PATIENCE if client.desk is None else None
                data = await asyncio.wait_for(reader.read(65_536), waits)
                if not data:
                    break
                await client.fed(data)
        except (TimeoutError, ConnectionError, PygwireError, ValueError, UnicodeError):
            LOG.info("a connection ended early")
        finally:
            writer.close()
