"""HTTP connections that do not wait for ever: who begins a request has some seconds to name it whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

PATIENCE: Final = 20.0
"""Seconds in which the head of a request has to arrive, from the first byte or from the connection on."""


class TimedConnection(H11Protocol):
    """A connection that is closed where the head of its next request does not arrive in time.

    uvicorn itself waits for ever for the rest of a head, so that a client who sends a byte now and then holds a place.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take bytes; while no request runs the clock does, and more bytes do not stop it."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Stop the clock of the request before: uvicorn has one of its own for idle connections."""
        self._stop()
        super().on_response_complete()

    def _wait(self) -> None:
        """Start the clock, unless it runs."""
        if self._timer is None:
            self._timer = self.loop.call_later(PATIENCE, self.transport.close)

    def _stop(self) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
