"""Connections of the PostgreSQL wire: a codec decides what the bytes mean, a desk what is done."""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pygwire import BackendConnection, PygwireError, TransactionStatus, messages

from farthing.advice import Face
from farthing.client import RefusedRequest
from farthing.errors import FarthingError
from farthing.server import shapes
from farthing.server.clock import PublicClock
from farthing.server.people import LONGEST_TOKEN
from farthing.server.wire import values
from farthing.server.wire.desk import REPORTED, Desk, Result

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from pygwire.messages import PGMessage

    from farthing.server.people import PeopleSource, Person
    from farthing.server.service import Service
    from farthing.server.wire.catalog import EmptyTables

LOG: Final = logging.getLogger("farthing.server.wire")
LARGEST: Final = 1 << 20
"""The largest message of a client, in bytes."""
MOST_OPEN: Final = 1_000
"""Connections at a time, of all clients together."""
MOST_STATEMENTS, MOST_PORTALS = 500, 50
"""What one connection may have prepared, and bound, at a time: a portal holds an answer."""
LONGEST_TEXTS: Final = 4 << 20
"""The characters of all that one connection has prepared or bound."""
_FORGOTTEN: Final = re.compile(
    r"\s*(?:DISCARD\s+ALL|DEALLOCATE\s+(?:PREPARE\s+)?(\"[^\"]*\"|\w+))\s*;?\s*", re.IGNORECASE
)
"""How a statement says that prepared statements are done with."""
_PATIENCE: Final = 30.0
"""Seconds in which a stranger has to say who it is."""
_GRACE: Final = 60.0
"""Seconds in which what is under way is answered when the server stops."""
_CODES: Final = {401: "28P01", 402: "53400", 403: "42501", 404: "42P01", 422: "42601", 429: "53300"}


@dataclass(slots=True)
class Prepared:
    """A statement with its parameters' types, or a portal with its result."""

    text: str
    types: list[int] = field(default_factory=list)
    formats: list[int] = field(default_factory=list)
    result: Result | None = None
    sent: int = 0


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
        client = Client(writer, *self._shared, clock=self._clock, full=len(self._open) > MOST_OPEN)
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


class Client:
    """One connection: who it is, what it prepared, and what it is told."""

    def __init__(
        self,
        writer: asyncio.StreamWriter,
        service: Service,
        people: PeopleSource,
        catalog: EmptyTables,
        take: Callable[[str], None],
        *,
        clock: PublicClock | None = None,
        full: bool = False,
    ) -> None:
        self._clock = clock or PublicClock()
        self._full = full
        self.gone = False
        self.desk: Desk | None = None
        self._wire = BackendConnection()
        self._writer = writer
        self._service, self._people, self._catalog, self._take = service, people, catalog, take
        self._user = ""
        self._statements: dict[str, Prepared] = {}
        self._portals: dict[str, Prepared] = {}
        self._failed = False
        self._waiting = 0

    async def fed(self, data: bytes) -> None:
        """Take bytes from the client, and do what they say."""
        self._waiting += len(data)
        if self._waiting > LARGEST:
            raise ValueError("too large")
        for message in self._wire.receive(data):
            self._waiting = 0
            await self._take_message(message)
        await self._writer.drain()

    async def _take_message(self, message: PGMessage) -> None:
        """Do what one message says; an error is told, and in the extended protocol skips to the next Sync."""
        if self._failed and not isinstance(message, messages.Sync | messages.Terminate):
            return
        try:
            await shapes.only_ours(self._handled(message))
        except FarthingError as error:
            told = error
        else:
            return
        self._tell_error(told)
        if isinstance(message, messages.Query):
            self._ready()
        else:
            self._failed = self.desk is not None

    async def _handled(self, message: PGMessage) -> None:
        """Do what one message says."""
        if isinstance(message, messages.Terminate | messages.CancelRequest):
            self.gone = True
        elif self.desk is None:
            await self._greeted(message)
        elif isinstance(message, messages.Query):
            await self._simple(message.query_string)
        else:
            await self._extended(message)

    async def _greeted(self, message: PGMessage) -> None:
        """Find out who connects."""
        match message:
            case messages.SSLRequest():
                self._send(messages.SSLResponse(accepted=False))
            case messages.GSSEncRequest():
                self._send(messages.GSSResponse(accepted=False))
            case messages.StartupMessage(params=params):
                self._require_room()
                self._user = params.get("user", "")
                self._send(messages.AuthenticationCleartextPassword())
            case messages.PasswordMessage(password=password):
                await self._enter(password if isinstance(password, str) else password.decode())
            case _:
                raise _stranger()

    async def _extended(self, message: PGMessage) -> None:
        """Do one step of the extended protocol: prepare, bind, describe, execute."""
        match message:
            case messages.Parse(statement=name, query=text, param_types=types):
                self._keep(self._statements, name, Prepared(text, list(types)), MOST_STATEMENTS)
                self._send(messages.ParseComplete())
            case messages.Bind():
                self._bind(message)
            case messages.Describe(kind=kind, name=name):
                await self._describe(kind, name)
            case messages.Execute(portal=name, max_rows=most):
                await self._execute(name, most)
            case messages.Close(kind=kind, name=name):
                (self._statements if kind == "S" else self._portals).pop(name, None)
                self._send(messages.CloseComplete())
            case messages.Sync():
                self._failed = False
                self._ready()
            case messages.Flush():
                pass
            case _:
                raise values.unsupported(type(message).__name__)

    async def _enter(self, password: str) -> None:
        """Let somebody in by their token, whose name has to be the user's."""
        person: Person | None = await asyncio.to_thread(self._people.entering, password[:LONGEST_TOKEN])
        if person is None or person.name != self._user:
            self.gone = True
            self._take(f"stranger {_address(self._writer)}")  # so that guesses shut out no name
            raise _stranger()
        self.desk = Desk(self._service, person, self._catalog)
        self._send(messages.AuthenticationOk())
        for name, value in REPORTED.items():
            self._send(messages.ParameterStatus(name=name, value=value))
        self._send(messages.BackendKeyData(process_id=1, secret_key=b"\0\0\0\0"))
        self._ready()

    async def _simple(self, text: str) -> None:
        """Do a simple query: its rows leave as text."""
        if not text.strip().strip(";").strip():
            self._send(messages.EmptyQueryResponse())
        else:
            result = await self._done(text)
            if result.table is not None:
                self._send(_description(result, []))
                self._rows(result, [], 0, 0)
            self._complete(result)
        self._ready()

    async def _done(self, text: str) -> Result:
        """Do one statement, in a thread; what it comes to, an error too, leaves at a tick of the public clock."""
        if self.desk is None:
            raise _stranger()
        self._take(self.desk.person.name)
        self._forget(text)
        try:
            return await asyncio.to_thread(self.desk.done, text)
        finally:
            await self._clock.tick()

    def _forget(self, text: str) -> None:
        """Forget what was prepared where a statement says so."""
        told = _FORGOTTEN.fullmatch(text)
        if told is not None:
            name = (told[1] or "ALL").strip('"')
            for one in [name] if name.upper() != "ALL" else list(self._statements):
                self._statements.pop(one, None)

    def _bind(self, message: messages.Bind) -> None:
        """Put parameters into a prepared statement."""
        made = self._statements.get(message.statement)
        if made is None:
            raise values.unsupported("an unknown prepared statement")
        text = values.bound(made.text, made.types, message.param_formats, message.param_values)
        self._keep(self._portals, message.portal, Prepared(text, formats=list(message.result_formats)), MOST_PORTALS)
        self._send(messages.BindComplete())

    def _require_room(self) -> None:
        """Refuse a connection beyond those that are served at a time."""
        if self._full:
            self.gone = True
            raise RefusedRequest(
                "too many connections are open",
                status=429,
                rule=f"at most {MOST_OPEN:,} connections to one process of the server",
                next_step="close some, or connect later",
            )

    def _keep(self, place: dict[str, Prepared], name: str, made: Prepared, most: int) -> None:
        """Keep what was prepared or bound, in the place of what had its name; refuse more than one client may have."""
        others = [one for one in (*self._statements.values(), *self._portals.values()) if one is not place.get(name)]
        if len(place) - (name in place) >= most or sum(len(one.text) for one in (made, *others)) > LONGEST_TEXTS:
            raise RefusedRequest(
                "too much is prepared in this connection",
                status=429,
                rule=f"at most {MOST_STATEMENTS} prepared statements and {MOST_PORTALS} portals, "
                f"of {LONGEST_TEXTS:,} characters together",
                next_step="close those that are done (DEALLOCATE), or connect again",
            )
        place[name] = made

    async def _describe(self, kind: str, name: str) -> None:
        """Tell the columns of what was prepared: a portal's question is answered for it, once."""
        if kind == "S":
            made = self._statements.get(name)
            if made is None:
                raise values.unsupported("an unknown prepared statement")
            if self.desk is not None:
                made.types = self.desk.types(made.text, made.types)
            self._send(messages.ParameterDescription(type_oids=made.types))
            result = None if made.types else await self._result(made)
        else:
            made = self._portal(name)
            result = await self._result(made)
        if result is None or result.table is None:
            self._send(messages.NoData())
        else:
            self._send(_description(result, made.formats))

    async def _execute(self, name: str, most: int) -> None:
        """Send the rows of a portal, at most so many at a time."""
        made = self._portal(name)
        result = await self._result(made)
        if result.table is not None:
            made.sent = self._rows(result, made.formats, made.sent, most)
            if made.sent < result.table.num_rows:
                self._send(messages.PortalSuspended())
                return
        self._complete(result)

    async def _result(self, made: Prepared) -> Result:
        """Return what a portal came to; it is done once."""
        if made.result is None:
            made.result = await self._done(made.text)
        return made.result

    def _portal(self, name: str) -> Prepared:
        """Return a portal."""
        made = self._portals.get(name)
        if made is None:
            raise values.unsupported("an unknown portal")
        return made

    def _rows(self, result: Result, formats: list[int], start: int, most: int) -> int:
        """Send rows from a place on; return where it ended."""
        assert result.table is not None  # noqa: S101  # asked by the caller
        kinds = [oid for _, oid in result.columns]
        chosen = result.table.slice(start, most or None)
        for row in zip(*(column.to_pylist() for column in chosen.columns), strict=True):
            cells = [
                values.encoded(value, oid, binary=values.format_of(formats, place) == 1)
                for place, (value, oid) in enumerate(zip(row, kinds, strict=True))
            ]
            self._send(messages.DataRow(columns=cells))
        return int(start + chosen.num_rows)

    def _complete(self, result: Result) -> None:
        """End a statement, with what else is to be said."""
        if result.notice:
            notice = {"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": result.notice}
            self._send(messages.NoticeResponse(fields=notice))
        self._send(messages.CommandComplete(tag=result.tag))

    def _ready(self) -> None:
        """Say that the next statement may come."""
        self._send(messages.ReadyForQuery(status=TransactionStatus.IDLE))

    def _tell_error(self, error: FarthingError) -> None:
        """Tell an error: what, the rule, the next step."""
        what, rule, step = (
            shapes.in_words(error, text, Face.WIRE) for text in (error.what, error.rule, error.next_step)
        )
        facts = {"S": "ERROR", "V": "ERROR", "C": _CODES.get(shapes.status_of(error), "XX000"), "M": what}
        detail = "; ".join(part for part in (rule and f"rule: {rule}", error.got and f"got: {error.got}") if part)
        facts |= {"D": detail} if detail else {}
        facts |= {"H": step} if step else {}
        self._send(messages.ErrorResponse(fields={code: text.replace("\0", "") for code, text in facts.items()}))

    def _send(self, message: PGMessage) -> None:
        """Send a message."""
        self._writer.write(self._wire.send(message))


def _description(result: Result, formats: list[int]) -> Any:
    """Return the description of a result's columns."""
    return messages.RowDescription(
        fields=[
            messages.FieldDescription(
                name=name,
                type_oid=oid,
                type_size=values.SIZES[oid],
                type_modifier=-1,
                format_code=values.format_of(formats, place),
            )
            for place, (name, oid) in enumerate(result.columns)
        ]
    )


def _address(writer: Any) -> str:
    """Return where a connection comes from."""
    peer = writer.get_extra_info("peername")
    return str(peer[0]) if peer else ""


def _stranger() -> FarthingError:
    """Return the refusal of somebody who is not known."""
    return RefusedRequest(
        "who connects is not known",
        status=401,
        rule="the user is the name of a token, and the password is the token",
        next_step="the owner gives tokens with `farthing token add`",
    )
