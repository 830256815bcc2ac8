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

from starlette.requests import ClientDisconnect

from farthing.client import RefusedRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

LOG: Final = logging.getLogger("farthing.server")
LARGEST: Final = 1 << 20
"""The largest body of a request, in bytes."""
SLOWEST: Final = 30.0
"""Seconds in which a request's body has to arrive."""
_REMEMBERED: Final = 10_000
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
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)

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
    _made: dict[tuple[str, int], tuple[int, float]] = field(default_factory=dict)

    def add(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        number, whole = self._made.get((route, status), (0, 0.0))
        self._made[(route, status)] = (number + 1, whole + seconds)

    def written(self) -> str:
        """Return the counts as Prometheus reads them."""
        lines = ["# TYPE farthing_requests_total counter"]
        lines += [f"farthing_requests_total{_where(place)} {number}" for place, (number, _) in self._made.items()]
        lines += ["# TYPE farthing_request_seconds_total counter"]
        lines += [f"farthing_request_seconds_total{_where(place)} {s:.3f}" for place, (_, s) in self._made.items()]
        lines += ["# TYPE farthing_requests_open gauge", f"farthing_requests_open {self.under_way}"]
        return "\n".join(lines) + "\n"


def _where(place: tuple[str, int]) -> str:
    """Return the labels of a count."""
    return f'{{route="{place[0]}",status="{place[1]}"}}'


@dataclass(slots=True)
class Repeats:
    """Answers by idempotency key: the same request again gets the same answer, while the server runs.

    The ledger keeps answers for good, so a repeat after that is free as well, and never charged twice.
    """

    _kept: OrderedDict[tuple[str, str], asyncio.Future[tuple[str, int, Any]]] = field(default_factory=OrderedDict)

    async def once(self, name: str, key: str | None, body: str, work: Callable[[], Awaitable[tuple[int, Any]]]) -> Any:
        """Return what a request came to: of one that was made before, what that came to."""
        if key is None:
            return await work()
        place = (name, key)
        if place in self._kept:
            same, status, value = await asyncio.shield(self._kept[place])
            if same != body:
                raise RefusedRequest(
                    "this idempotency key was used for another request",
                    status=409,
                    rule="a key stands for one request",
                    next_step="choose a new key for each request",
                )
            return status, value
        made: asyncio.Future[tuple[str, int, Any]] = asyncio.get_running_loop().create_future()
        self._kept[place] = made
        while len(self._kept) > _REMEMBERED:
            self._kept.popitem(last=False)
        try:
            status, value = await work()
        except BaseException:
            self._kept.pop(place, None)
            made.cancel()
            raise
        made.set_result((body, status, value))
        return status, value


class Guard:
    """Secure headers on every response, one line in the log for each request, and no request that is too large."""

    def __init__(self, app: Any, *, counts: Counts) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def guarded(message: Any) -> None:
            """Send with our headers."""
            nonlocal status
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
