"""Around every request: how many, how large, how slow; secure headers; one line in the log, without data."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from farthing.client import RefusedRequest
from farthing.server.clock import PublicClock
from farthing.server.shapes import dumped
from farthing.server.shared import used_for_another

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from farthing.server.shared import Shared

LOG: Final = logging.getLogger("farthing.server")
LARGEST: Final = 1 << 20
"""The largest body of a request, in bytes."""
SLOWEST: Final = 30.0
"""Seconds in which a request's body has to arrive."""
_REMEMBERED: Final = 10_000
_MOST_NAMES: Final = 100_000
_LONGEST_KEY: Final = 200
_WITHOUT_DATA: Final = frozenset({"/", "/health", "/openapi.json"})
"""What does not wait for the public clock: it is the same for everybody, whatever the data."""
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(slots=True)
class Limits:
    """How many requests a token may make: a bucket that fills up again.

    Attributes:
        a_minute: requests a minute and token, on average.
        burst: requests at once.
    """

    a_minute: float = 600.0
    burst: float = 120.0
    _left: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, name: str) -> None:
        """Count one request of somebody; RefusedRequest with 429 if it is one too many."""
        now = time.monotonic()
        left, then = self._left.get(name, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.a_minute / 60)
        if left < 1:
            raise RefusedRequest(
                "too many requests",
                status=429,
                rule=f"at most {self.a_minute:g} a minute, {self.burst:g} at once",
                next_step="wait, and send fewer at once",
            )
        self._left[name] = (left - 1, now)
        self._left.move_to_end(name)
        while len(self._left) > _MOST_NAMES:  # of addresses there is no end; who was not seen for longest has most left
            self._left.popitem(last=False)


@dataclass(slots=True)
class Counts:
    """How many requests there were and how long they took, by route and status: nothing of what was asked or by whom.

    >>> counts = Counts()
    >>> counts.add("/v1/ask", 200, 0.25)
    >>> print(counts.written(), end="")
    # TYPE farthing_requests_total counter
    farthing_requests_total{route="/v1/ask",status="200"} 1
    # TYPE farthing_request_seconds_total counter
    farthing_request_seconds_total{route="/v1/ask",status="200"} 0.250
    # TYPE farthing_requests_open gauge
    farthing_requests_open 0
    """

    under_way: int = 0
    worker: int | None = None
    _made: dict[tuple[str, int], tuple[int, float]] = field(default_factory=dict)

    def add(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        number, whole = self._made.get((route, status), (0, 0.0))
        self._made[(route, status)] = (number + 1, whole + seconds)

    def written(self) -> str:
        """Return the counts as Prometheus reads them."""
        lines = ["# TYPE farthing_requests_total counter"]
        lines += [f"farthing_requests_total{self._where(*place)} {number}" for place, (number, _) in self._made.items()]
        lines += ["# TYPE farthing_request_seconds_total counter"]
        lines += [f"farthing_request_seconds_total{self._where(*at)} {s:.3f}" for at, (_, s) in self._made.items()]
        lines += ["# TYPE farthing_requests_open gauge", f"farthing_requests_open{self._where()} {self.under_way}"]
        return "\n".join(lines) + "\n"

    def _where(self, route: str | None = None, status: int = 0) -> str:
        """Return the labels of a count; of several processes each counts for itself."""
        labels = [] if route is None else [f'route="{route}"', f'status="{status}"']
        labels += [] if self.worker is None else [f'worker="{self.worker}"']
        return "{" + ",".join(labels) + "}" if labels else ""


@dataclass(slots=True)
class Repeats:
    """Requests by idempotency key: the same one again gets the same answer, from whichever process it is asked.

    The ledger keeps answers for good, so a repeat after that is free as well, and never charged twice.

    Attributes:
        shared: what other processes know; None where there is one process, and nothing is to outlast it.
    """

    shared: Shared | None = None
    _kept: OrderedDict[tuple[str, str], asyncio.Future[tuple[str, Any]]] = field(default_factory=OrderedDict)

    async def once(self, name: str, key: str | None, body: str, work: Callable[[], Awaitable[Any]]) -> Any:
        """Return what a request came to: of one that was made before, what that came to."""
        if key is None:
            return await work()
        if not 0 < len(key) <= _LONGEST_KEY:
            raise RefusedRequest(
                "the idempotency key is empty or too long",
                status=400,
                rule=f"1 to {_LONGEST_KEY} characters",
                next_step="a random one, such as a UUID",
            )
        place = (name, key)
        if place in self._kept:
            same, value = await asyncio.shield(self._kept[place])
            if same != body:
                raise used_for_another()
            return value
        made: asyncio.Future[tuple[str, Any]] = asyncio.get_running_loop().create_future()
        self._kept[place] = made
        while len(self._kept) > _REMEMBERED:
            self._kept.popitem(last=False)
        try:
            value = await self._made(name, key, body, work)
        except BaseException:
            self._kept.pop(place, None)
            made.cancel()
            raise
        made.set_result((body, value))
        return value

    async def _made(self, name: str, key: str, body: str, work: Callable[[], Awaitable[Any]]) -> Any:
        """Return what a request comes to that this process has not made; another one may have."""
        if self.shared is None:
            return await work()
        known = await run_in_threadpool(self.shared.begun, name, key, body)
        if known is not None:
            return known
        try:
            value = await work()
        except BaseException:
            await run_in_threadpool(self.shared.failed, name, key)
            raise
        await run_in_threadpool(self.shared.ended, name, key, dumped(value))
        return value


class Guard:
    """Secure headers on every response, one line in the log for each request, and no request that is too large."""

    def __init__(self, app: Any, *, counts: Counts, clock: PublicClock | None = None) -> None:
        self._app = app
        self._counts = counts
        self._clock = clock or PublicClock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, streams = time.monotonic(), 0, False
        clock = PublicClock() if scope["path"] in _WITHOUT_DATA or scope["path"].startswith("/page/") else self._clock

        async def guarded(message: Any) -> None:
            """Send with our headers, at a tick: a whole response at one, each part of a stream at its own."""
            nonlocal status, streams
            streams = streams or bool(message.get("more_body"))
            if message["type"] == "http.response.start" or streams:
                await clock.tick()
            if message["type"] == "http.response.start":
                status = message["status"]
                there = {name.lower() for name, _ in message["headers"]}
                more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in more if pair[0] not in there)]
            await send(message)

        self._counts.under_way += 1
        try:
            await self._app(scope, receive, guarded)
        finally:
            self._counts.under_way -= 1
            took, route = time.monotonic() - began, getattr(scope.get("route"), "path", "other")
            self._counts.add(route, status, took)
            facts = {"method": scope["method"], "route": route, "status": status, "seconds": round(took, 3)}
            LOG.info(json.dumps({"at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"} | facts))


async def body_of(request: Request) -> Mapping[str, Any]:
    """Return the body of a request as a mapping; refuse what is too large, too slow or no JSON object."""
    found, whole = b"", None
    try:
        async with asyncio.timeout(SLOWEST):
            async for part in request.stream():
                found += part
                if len(found) > LARGEST:
                    raise RefusedRequest(
                        "the request is too large",
                        status=413,
                        rule=f"at most {LARGEST:,} bytes",
                        next_step="ask with fewer keys, or name a column of a public table as keys",
                    )
    except (TimeoutError, ClientDisconnect):
        found = b""
    try:
        whole = json.loads(found, parse_constant=_refuse_constant)
        json.dumps(whole, ensure_ascii=False).encode()  # half a character is a text that nothing else takes
    except (ValueError, RecursionError):
        whole = None
    if not isinstance(whole, dict):
        raise RefusedRequest(
            "the request is not a JSON object",
            status=400,
            rule="a body is one JSON object, without NaN, infinity or half a character",
            next_step='{"dataset": "flights", "sql": "SELECT COUNT(*) FROM flights", "absolute": 50}',
        )
    return whole


def _refuse_constant(name: str) -> None:
    """Refuse NaN and infinities, which JSON does not have."""
    raise ValueError(name)
