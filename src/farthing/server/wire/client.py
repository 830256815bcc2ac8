"""One connection of the PostgreSQL wire: a codec decides what the bytes mean, a desk what is done."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from pygwire import BackendConnection, messages

from farthing.client import RefusedRequest
from farthing.errors import FarthingError
from farthing.server import shapes
from farthing.server.clock import PublicClock
from farthing.server.people import LONGEST_TOKEN
from farthing.server.wire import cursors, rows, values
from farthing.server.wire.desk import REPORTED, Desk, Result
from farthing.server.wire.kept import Kept, Prepared
from farthing.server.wire.statements import readable, statements
from farthing.server.wire.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pygwire.messages import PGMessage

    from farthing.server.people import PeopleSource, Person
    from farthing.server.service import Service
    from farthing.server.wire.catalog import EmptyTables

LARGEST: Final = 1 << 20
"""The largest message of a client, in bytes."""


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
        beyond: int = 0,
    ) -> None:
        self._clock = clock or PublicClock()
        self._beyond = beyond
        self.gone = False
        self.desk: Desk | None = None
        self._wire = BackendConnection()
        self._writer = writer
        self._service, self._people, self._catalog, self._take = service, people, catalog, take
        self._user = ""
        self._kept = Kept()
        self._transaction = Transaction()
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
        self._transaction.failed()
        self._send(rows.told(told))
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
                self._kept.prepare(name, Prepared(readable(text), list(types)))
                self._send(messages.ParseComplete())
            case messages.Bind():
                await self._bind(message)
            case messages.Describe(kind="S", name=name):
                await self._describe_statement(self._kept.statement(name))
            case messages.Describe(name=name):
                await self._describe_portal(self._kept.portal(name))
            case messages.Execute(portal=name, max_rows=most):
                await self._execute(self._kept.portal(name), most)
            case messages.Close(kind=kind, name=name):
                self._kept.close(kind, name)
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
        """Do a simple query, one statement after another: their rows leave as text."""
        parts = await asyncio.to_thread(statements, text)
        if not parts:
            self._send(messages.EmptyQueryResponse())
        for part in parts:
            result = await self._done(part)
            if result.table is not None:
                self._send(rows.described(result.columns, []))
                self._send_rows(result, result.columns, [], 0, 0)
            self._complete(result)
        self._ready()

    async def _done(self, text: str) -> Result:
        """Do one statement; a transaction that has failed takes its end only."""
        self._transaction.before(text)
        declared = cursors.Declared.of(text)
        if declared is not None:
            result = declared.open(self._kept, await self._asked(declared.question))
        elif cursors.is_of_cursors(text):
            result = cursors.read(self._kept, text)
        else:
            result = await self._asked(text)
        if self._transaction.after(text, result.tag):
            self._kept.ended()
        return result

    async def _asked(self, text: str) -> Result:
        """Ask the desk, in a thread; what it comes to, an error too, leaves at a tick of the public clock."""
        if self.desk is None:
            raise _stranger()
        self._take(self.desk.person.name)
        self._kept.forget(text)
        try:
            return await asyncio.to_thread(self.desk.done, text)
        finally:
            await self._clock.tick()

    async def _bind(self, message: messages.Bind) -> None:
        """Put parameters into a prepared statement."""
        made = self._kept.statement(message.statement)
        before, question = cursors.question_in(made.text)
        given = made.types, message.param_formats, message.param_values
        text = before + await asyncio.to_thread(values.bound, question, *given)
        self._kept.open(message.portal, Prepared(text, formats=list(message.result_formats), columns=made.columns))
        self._send(messages.BindComplete())

    def _require_room(self) -> None:
        """Refuse a connection beyond those that are served at a time."""
        if self._beyond:
            self.gone = True
            raise RefusedRequest(
                "too many connections are open",
                status=429,
                rule=f"at most {self._beyond:,} connections to one process of the server",
                next_step="close some, or connect later",
            )

    async def _describe_statement(self, made: Prepared) -> None:
        """Tell the parameters and the columns of what was prepared, without asking it."""
        if self.desk is None:
            raise _stranger()
        of, cursor = cursors.question_in(made.text)[1], cursors.is_of_cursors(made.text)
        made.types = await asyncio.to_thread(self.desk.types, of, made.types)
        self._send(messages.ParameterDescription(type_oids=made.types))
        fetched = cursors.fetched_from(self._kept, made.text)
        if fetched is not None and fetched.result is not None:
            made.columns = fetched.result.columns
        elif not cursor:
            self._take(self.desk.person.name)
            made.columns = await asyncio.to_thread(self.desk.described, of, made.types)
        self._send(rows.described(made.columns, []) if made.columns else messages.NoData())

    async def _describe_portal(self, made: Prepared) -> None:
        """Tell the columns of a portal: its question is answered for it, once."""
        result = await self._result(made)
        if result.table is None:
            self._send(messages.NoData())
        else:
            self._send(rows.described(made.columns or result.columns, made.formats))

    async def _execute(self, made: Prepared, most: int) -> None:
        """Send the rows of a portal, at most so many at a time."""
        result = await self._result(made)
        if result.table is not None:
            made.sent = self._send_rows(result, made.columns or result.columns, made.formats, made.sent, most)
            if made.sent < result.table.num_rows:
                self._send(messages.PortalSuspended())
                return
        self._complete(result)

    async def _result(self, made: Prepared) -> Result:
        """Return what a portal came to; it is done once."""
        if made.result is None:
            made.result = await self._done(made.text)
        return made.result

    def _send_rows(
        self, result: Result, columns: Sequence[tuple[str, int]], formats: list[int], start: int, most: int
    ) -> int:
        """Send rows from a place on; return where it ended."""
        for row in rows.rows_of(result, columns, formats, start, most):
            self._send(row)
            start += 1
        return start

    def _complete(self, result: Result) -> None:
        """End a statement, with what else is to be said."""
        if result.notice:
            self._send(rows.notice(result.notice))
        self._send(messages.CommandComplete(tag=result.tag))

    def _ready(self) -> None:
        """Say that the next statement may come."""
        self._send(messages.ReadyForQuery(status=self._transaction.status))

    def _send(self, message: PGMessage) -> None:
        """Send a message."""
        self._writer.write(self._wire.send(message))


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
