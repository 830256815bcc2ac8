"""HTTP: one JSON shape for answers, one for errors, tokens in a header, and no log that depends on a row."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from farthing.errors import FarthingError
from farthing.server import openapi, shapes
from farthing.server.shapes import RefusedRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from starlette.requests import Request

    from farthing.server.people import Person, Register
    from farthing.server.service import Service

LOG: Final = logging.getLogger("farthing.server")
LARGEST: Final = 1 << 20
"""The largest body of a request, in bytes."""
SLOWEST: Final = 30.0
"""Seconds in which a request's body has to arrive."""
_REMEMBERED: Final = 10_000
_HEADERS: Final = {
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
        """Count one request of somebody; Refused with 429 if it is one too many."""
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


@dataclass(frozen=True, slots=True)
class Faces:
    """What the routes share."""

    service: Service
    people: Register
    limits: Limits
    repeats: Repeats

    async def person(self, request: Request) -> Person:
        """Return who asks; Refused with 401 if nobody that is known."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        person = None
        if kind.lower() == "bearer" and 0 < len(token) <= 512:  # longer than any token
            person = await run_in_threadpool(self.people.entering, token)
        if person is None:
            self.limits.take(f"stranger {request.client.host if request.client else ''}")
            raise RefusedRequest(
                "who asks is not known",
                status=401,
                rule="each request carries a token that was given here, has not ended and was not revoked",
                next_step="send Authorization: Bearer TOKEN; the owner gives tokens with `farthing token add`",
            )
        self.limits.take(person.name)
        return person

    async def health(self, _: Request) -> Response:
        """Tell that the server runs."""
        return JSONResponse({"status": "ok"})

    async def schema(self, _: Request) -> Response:
        """Tell what can be asked of the server."""
        return JSONResponse(openapi.document())

    async def datasets(self, request: Request) -> Response:
        """Tell the data sets."""
        person = await self.person(request)
        return JSONResponse({"datasets": await run_in_threadpool(self.service.told, person)})

    async def history(self, request: Request) -> Response:
        """Tell what was asked."""
        person = await self.person(request)
        limit = _limit(request.query_params.get("limit", "100"))
        name = request.query_params.get("dataset")
        return JSONResponse({"history": await run_in_threadpool(self.service.history, person, name, limit)})

    async def plan(self, request: Request) -> Response:
        """Price a question."""
        person = await self.person(request)
        asked = await _body(request)
        return JSONResponse(await run_in_threadpool(self.service.plan, person, asked))

    async def ask(self, request: Request) -> Response:
        """Answer a question: as JSON, as Arrow, or as events while it closes in."""
        person = await self.person(request)
        asked = await _body(request)
        if "text/event-stream" in request.headers.get("accept", ""):
            return StreamingResponse(self._events(person, asked), media_type="text/event-stream", headers=_HEADERS)

        async def work() -> tuple[int, Any]:
            """Answer it."""
            return 200, await run_in_threadpool(self.service.ask, person, asked)

        key = request.headers.get("idempotency-key")
        status, value = await self.repeats.once(person.name, key, json.dumps(asked, sort_keys=True), work)
        if "application/vnd.apache.arrow.stream" in request.headers.get("accept", "") and "answers" in value:
            return Response(_arrow(value), media_type="application/vnd.apache.arrow.stream")
        return JSONResponse(value, status)

    async def verify(self, request: Request) -> Response:
        """Check the books of a data set."""
        person = await self.person(request)
        asked = await _body(request)
        return JSONResponse(await run_in_threadpool(self.service.verify, person, str(asked.get("dataset", ""))))

    async def _events(self, person: Person, asked: Mapping[str, Any]) -> AsyncIterator[str]:
        """Yield what a refinement tells on its way, and its answer or its error at the end."""
        loop, seen = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any]]()

        def tell(told: dict[str, Any]) -> None:
            """Hand over what a thread tells."""
            loop.call_soon_threadsafe(seen.put_nowait, told)

        work = asyncio.ensure_future(run_in_threadpool(self.service.ask, person, asked, tell))
        while not work.done():
            waited = asyncio.ensure_future(seen.get())
            await asyncio.wait({work, waited}, return_when=asyncio.FIRST_COMPLETED, timeout=15)
            if waited.done():
                yield _event("look", waited.result())
            else:
                waited.cancel()
                yield ": still at work\n\n"
        while not seen.empty():
            yield _event("look", seen.get_nowait())
        try:
            yield _event("answer", await work)
        except FarthingError as error:
            yield _event("error", shapes.of_error(error))
        except Exception:  # noqa: BLE001  # what went wrong inside may hold data: it is told as one constant error
            yield _event("error", shapes.of_error(shapes.inside()))


def app(service: Service, people: Register, *, limits: Limits | None = None) -> Starlette:
    """Return the server as an ASGI application."""
    faces = Faces(service, people, limits or Limits(), Repeats())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        """Close the sessions at the end."""
        yield
        await run_in_threadpool(service.close)

    routes = [
        Route("/health", faces.health),
        Route("/openapi.json", faces.schema),
        Route("/v1/datasets", faces.datasets),
        Route("/v1/history", faces.history),
        Route("/v1/plan", faces.plan, methods=["POST"]),
        Route("/v1/ask", faces.ask, methods=["POST"]),
        Route("/v1/verify", faces.verify, methods=["POST"]),
    ]
    made = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={FarthingError: _refused, 404: _unknown, 405: _unknown, Exception: _broken},
    )
    made.add_middleware(Guard)
    return made


class Guard:
    """Secure headers on every response, one line in the log for each request, and no request that is too large."""

    def __init__(self, app: Any) -> None:
        self._app = app

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
                more = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in more if pair[0] not in there)]
            await send(message)

        await self._app(scope, receive, guarded)
        LOG.info("%s %s %s %.0f ms", scope["method"], scope["path"], status, 1000 * (time.monotonic() - began))


async def _body(request: Request) -> Mapping[str, Any]:
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
    except (ValueError, RecursionError):
        whole = None
    if not isinstance(whole, dict):
        raise RefusedRequest(
            "the request is no JSON object",
            status=400,
            rule="a body is one JSON object, without NaN or infinity",
            next_step='{"dataset": "flights", "sql": "SELECT COUNT(*) FROM flights", "absolute": 50}',
        )
    return whole


def _refuse_constant(name: str) -> None:
    """Refuse NaN and infinities, which JSON does not have."""
    raise ValueError(name)


def _limit(given: str) -> int:
    """Return how many entries are wanted."""
    if not (given.isascii() and given.isdigit() and len(given) < 6 and 0 < int(given) <= 10_000):
        raise RefusedRequest(
            "limit is out of range", status=400, rule="1 to 10,000 entries", got=given[:20], next_step="limit=100"
        )
    return int(given)


def _arrow(value: Mapping[str, Any]) -> bytes:
    """Return the rows of an answer as an Arrow stream; what is not a row is in the schema's metadata."""
    import pyarrow as pa

    facts = {name: json.dumps(fact) for name, fact in value.items() if name != "answers"}
    table = pa.Table.from_pylist(value["answers"]).replace_schema_metadata(facts)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _event(name: str, value: Mapping[str, Any]) -> str:
    """Return one server-sent event."""
    return f"event: {name}\ndata: {json.dumps(value)}\n\n"


async def _refused(_: Request, error: Exception) -> Response:
    """Tell an error."""
    assert isinstance(error, FarthingError)  # noqa: S101  # by registration
    headers = {"WWW-Authenticate": "Bearer"} if shapes.status_of(error) == 401 else None
    return JSONResponse(shapes.of_error(error), shapes.status_of(error), headers)


async def _unknown(_: Request, error: Exception) -> Response:
    """Tell that a path or method is not there."""
    status = getattr(error, "status_code", 404)
    facts = {"rule": "GET /openapi.json tells the paths and their methods", "next_step": "check the address"}
    return JSONResponse(
        shapes.of_error(RefusedRequest("there is nothing at this address", status=status, **facts)), status
    )


async def _broken(_: Request, __: Exception) -> Response:
    """Tell that something went wrong inside, without its cause."""
    return JSONResponse(shapes.of_error(shapes.inside()), 500)
