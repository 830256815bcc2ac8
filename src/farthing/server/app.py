"""HTTP: one JSON shape for answers, one for errors, tokens in a header, and no log that depends on a row."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from farthing.client import RefusedRequest
from farthing.errors import FarthingError
from farthing.server import formats, openapi, shapes, static
from farthing.server.guard import HEADERS, Counts, Guard, Limits, Repeats, body_of
from farthing.server.people import LONGEST_TOKEN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.requests import Request

    from farthing.advice import Face
    from farthing.server.clock import PublicClock
    from farthing.server.people import PeopleSource, Person
    from farthing.server.service import Service
    from farthing.server.shared import Shared


@dataclass(frozen=True, slots=True)
class Faces:
    """What the routes share."""

    service: Service
    people: PeopleSource
    limits: Limits
    repeats: Repeats
    counts: Counts

    async def person(self, request: Request) -> Person:
        """Return who asks; RefusedRequest with 401 if nobody that is known."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        person = None
        if kind.lower() == "bearer" and 0 < len(token) <= LONGEST_TOKEN:
            person = await run_in_threadpool(self.people.entering, token)
        if person is None:
            self.limits.take(f"stranger {request.client.host if request.client else ''}")
            raise RefusedRequest(
                "who asks is not known",
                status=401,
                rule="each request carries a token of this server that has neither ended nor been revoked",
                next_step="send Authorization: Bearer TOKEN; the owner gives tokens with `farthing token add`",
            )
        self.limits.take(person.name)
        return person

    async def health(self, _: Request) -> Response:
        """Tell that the server runs."""
        return _json({"status": "ok"})

    async def schema(self, _: Request) -> Response:
        """Tell what can be asked of the server."""
        return _json(openapi.document())

    async def me(self, request: Request) -> Response:
        """Tell who asks."""
        person = await self.person(request)
        return _json({"name": person.name, "role": person.role})

    async def everybody(self, request: Request) -> Response:
        """Tell who may ask, and what share of the budgets they have."""
        person = await self.person(request)
        return _json({"people": await run_in_threadpool(self.service.people, person, self.people.everybody())})

    async def metrics(self, request: Request) -> Response:
        """Tell how many requests there were, for Prometheus."""
        self.service.require(await self.person(request), "owner", "auditor")
        return Response(self.counts.written(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def datasets(self, request: Request) -> Response:
        """Tell the data sets."""
        person = await self.person(request)
        return _json({"datasets": await run_in_threadpool(self.service.visible, person)})

    async def history(self, request: Request) -> Response:
        """Tell what was asked."""
        person = await self.person(request)
        limit = _limit(request.query_params.get("limit", "100"))
        name = request.query_params.get("dataset")
        return _json({"history": await run_in_threadpool(self.service.history, person, name, limit)})

    async def plan(self, request: Request) -> Response:
        """Price a question."""
        person = await self.person(request)
        asked = await body_of(request)
        told = await run_in_threadpool(self.service.plan, person, asked)
        return _json(shapes.in_face(told, shapes.face_of(request.headers)))

    async def ask(self, request: Request) -> Response:
        """Answer a question: as JSON, as Arrow, or as events while it closes in."""
        person = await self.person(request)
        asked, face = await body_of(request), shapes.face_of(request.headers)
        written = formats.wanted(request.headers.get("accept", ""))
        if "text/event-stream" in request.headers.get("accept", ""):
            told = self._events(person, asked, face, written)
            return StreamingResponse(told, media_type="text/event-stream", headers=HEADERS)

        async def work() -> Any:
            """Answer it."""
            return await run_in_threadpool(self.service.ask, person, asked)

        key = request.headers.get("idempotency-key")
        came = await self.repeats.once(person.name, key, json.dumps(asked, sort_keys=True), work)
        value = shapes.in_face(came, face)
        if written is not None and "answers" in value:
            return Response(await run_in_threadpool(written[1], value), media_type=written[0])
        return _json(value)

    async def verify(self, request: Request) -> Response:
        """Check the books of a data set."""
        person = await self.person(request)
        asked = await body_of(request)
        return _json(await run_in_threadpool(self.service.verify, person, str(asked.get("dataset", ""))))

    async def freeze(self, request: Request) -> Response:
        """Stop the charges of a data set or an analyst."""
        person = await self.person(request)
        asked = await body_of(request)
        return _json(await run_in_threadpool(self.service.freeze, person, asked))

    async def thaw(self, request: Request) -> Response:
        """Let them go on."""
        person = await self.person(request)
        asked = await body_of(request)
        return _json(await run_in_threadpool(partial(self.service.freeze, person, asked, frozen=False)))

    async def _events(
        self, person: Person, asked: Mapping[str, Any], face: Face, written: formats.Written | None
    ) -> AsyncIterator[str]:
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
            answer = shapes.in_face(await shapes.only_ours(work), face)
            yield _event("answer", answer if written is None else formats.enclosed(written, answer))
        except FarthingError as error:
            yield _event("error", shapes.of_error(error, face))


def app(
    service: Service,
    people: PeopleSource,
    *,
    limits: Limits | None = None,
    clock: PublicClock | None = None,
    shared: Shared | None = None,
    worker: int | None = None,
) -> Starlette:
    """Return the server as an ASGI application.

    Args:
        service: plans, asks and tells.
        people: who may come in.
        limits: how many requests they may make.
        clock: when answers leave.
        shared: what other processes of this server know.
        worker: which of several processes this is, for its counts.
    """
    faces = Faces(service, people, limits or Limits(), Repeats(shared), Counts(worker=worker))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        """Close the sessions at the end."""
        yield
        await run_in_threadpool(service.close)

    routes = [
        Route("/health", faces.health),
        Route("/", static.page),
        Route("/page/{name}", static.part),
        Route("/openapi.json", faces.schema),
        Route("/metrics", faces.metrics),
        Route("/v1/me", faces.me),
        Route("/v1/people", faces.everybody),
        Route("/v1/datasets", faces.datasets),
        Route("/v1/history", faces.history),
        Route("/v1/plan", faces.plan, methods=["POST"]),
        Route("/v1/ask", faces.ask, methods=["POST"]),
        Route("/v1/verify", faces.verify, methods=["POST"]),
        Route("/v1/freeze", faces.freeze, methods=["POST"]),
        Route("/v1/thaw", faces.thaw, methods=["POST"]),
    ]
    made = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={FarthingError: _refused, 404: _unknown, 405: _unknown, Exception: _broken},
    )
    made.router.redirect_slashes = False  # a redirect would name the host that the client named
    made.add_middleware(Guard, counts=faces.counts, clock=clock)
    return made


def _json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return plain values as JSON."""
    return Response(shapes.dumped(value), status, headers, media_type="application/json")


def _limit(given: str) -> int:
    """Return how many entries are wanted."""
    if not (given.isascii() and given.isdigit() and len(given) < 6 and 0 < int(given) <= 10_000):
        raise RefusedRequest(
            "limit is out of range", status=400, rule="1 to 10,000 entries", got=given[:20], next_step="limit=100"
        )
    return int(given)


def _event(name: str, value: Mapping[str, Any]) -> str:
    """Return one server-sent event."""
    return f"event: {name}\ndata: {shapes.dumped(value)}\n\n"


async def _refused(request: Request, error: Exception) -> Response:
    """Tell an error."""
    assert isinstance(error, FarthingError)  # noqa: S101  # by registration
    headers = {"WWW-Authenticate": "Bearer"} if shapes.status_of(error) == 401 else None
    return _json(shapes.of_error(error, shapes.face_of(request.headers)), shapes.status_of(error), headers)


async def _unknown(_: Request, error: Exception) -> Response:
    """Tell that a path or method is not there."""
    status = getattr(error, "status_code", 404)
    facts = {"rule": "GET /openapi.json tells the paths and their methods", "next_step": "check the address"}
    told = shapes.of_error(RefusedRequest("there is nothing at this address", status=status, **facts))
    return _json(told, status, getattr(error, "headers", None))  # of 405: which methods there are


async def _broken(_: Request, __: Exception) -> Response:
    """Tell that something went wrong inside, without its cause."""
    return _json(shapes.of_error(shapes.inside()), 500)
