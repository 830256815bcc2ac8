"""Targets that are somebody's own system: a function, a SQL function, a database connection, an HTTP endpoint.

Whatever such a system does - refuse, hang, break, say NaN or a text - comes back as a `Refused` with plain words.
"""

from __future__ import annotations

import json
import ssl
import threading
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from farthing.attacks.target import Claim, People, Question, Refused, Speaks, number
from farthing.attacks.targets.plain import vector_of
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MOST_HANGS: Final = 3
"""After so many questions in a row without an answer in time a target is not asked again."""

_LETTERS: Final = 120
_MOST_BYTES: Final = 1 << 20
_GIVEN_UP: Final = Refused(f"not asked: {MOST_HANGS} questions in a row got no answer in time", "failure")


class Function:
    """A Python function of a 0/1 vector.

    Args:
        answer: takes bool[n] in the order of the people, returns one number or a `Refused`.
        people: the secrets, or `People`.
        claim: what it promises.
        name: what reports call it.
        timeout_s: how long it may take for one answer, in seconds; None for ever, and without a thread.

    >>> Function(lambda chosen: "many", [1, 0, 1]).ask(Question(chosen=[1, 0, 0]))
    Refused(reason='the answer is not one number: str', why='failure')
    """

    speaks: Speaks = "vector"

    def __init__(
        self,
        answer: Callable[[Any], Any],
        people: Any,
        *,
        claim: Claim | None = None,
        name: str | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.people = people if isinstance(people, People) else People.of(people)
        self.claim, self.name = claim, name or str(getattr(answer, "__name__", "a function"))
        self._answer, self._patience = _callable(answer), _Patience(timeout_s)

    def ask(self, question: Question, /) -> float | Refused:
        """Answer a question about a 0/1 vector."""
        chosen = vector_of(question, self.people)
        return self._patience.wait(lambda: self._answer(chosen))


class SqlFunction:
    """A Python function of SQL text.

    Args:
        answer: takes SQL that counts people, returns one number or a `Refused`.
        people: whom the SQL is about.
        claim, name, timeout_s: as `Function`.
    """

    speaks: Speaks = "sql"

    def __init__(
        self,
        answer: Callable[[str], Any],
        people: People,
        *,
        claim: Claim | None = None,
        name: str | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.people, self.claim = people, claim
        self.name = name or getattr(answer, "__name__", "a function of SQL")
        self._answer, self._patience = _callable(answer), _Patience(timeout_s)

    def ask(self, question: Question, /) -> float | Refused:
        """Answer a question in SQL."""
        text = sql_of(question)
        return self._patience.wait(lambda: self._answer(text))


class Database:
    """A database connection: DB-API, SQLAlchemy engine or connection, or a database URL of SQLAlchemy.

    A query that takes too long is interrupted where the driver can interrupt (SQLite, DuckDB, psycopg).

    Args:
        connection: a connection, an engine, or a URL such as "postgresql+psycopg://analyst@host/db".
        people: whom it holds.
        claim, name: as `Function`.
        timeout_s: how long one query may take, in seconds.
    """

    speaks: Speaks = "sql"

    def __init__(
        self,
        connection: Any,
        people: People,
        *,
        claim: Claim | None = None,
        name: str = "a database",
        timeout_s: float = 30.0,
    ) -> None:
        self.people, self.claim, self.name, self._timeout_s = people, claim, name, timeout_s
        self._run, self._stop = _opened(connection)

    def ask(self, question: Question, /) -> float | Refused:
        """Answer a question in SQL."""
        late = threading.Event()

        def interrupt() -> None:
            late.set()
            self._stop()

        timer = threading.Timer(self._timeout_s, interrupt)
        timer.daemon = True
        timer.start()
        try:
            said = said_by(lambda: self._run(sql_of(question)))
        finally:
            timer.cancel()
        return Refused(f"no answer in {self._timeout_s:g} s", "failure") if late.is_set() else said


class Endpoint:
    """An HTTP endpoint that is POSTed JSON, {"sql": text} or {"query": [0, 1, ...]}, and replies with a number.

    The reply is JSON: a number, or an object with the number under `field`, or with "refused" and a reason, and
    "budget": true if no further question will be answered. Any other status than 200 is a refusal.

    Args:
        url: http or https.
        people: whom it is about.
        claim, name: as `Function`.
        speaks: "sql" or "vector".
        timeout_s: how long one answer may take, in seconds.
        headers: sent with each question, such as an authorisation.
        field: where in an object the number is.
    """

    def __init__(
        self,
        url: str,
        people: People,
        *,
        claim: Claim | None = None,
        name: str | None = None,
        speaks: Speaks = "sql",
        timeout_s: float = 30.0,
        headers: Mapping[str, str] | None = None,
        field: str = "answer",
    ) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise DataError(
                "not an address of a web service",
                rule="http://host or https://host",
                got=url[:_LETTERS],
                next_step="Endpoint('https://host/query', people)",
            )
        self.url, self.people, self.claim, self.speaks, self.name = url, people, claim, speaks, name or url
        self._headers, self._field, self._patience = dict(headers or {}), field, _Patience(timeout_s)

    def ask(self, question: Question, /) -> float | Refused:
        """Send one question."""
        if self.speaks == "sql":
            body: dict[str, Any] = {"sql": sql_of(question)}
        else:
            body = {"query": vector_of(question, self.people).astype(int).tolist()}
        return self._patience.wait(lambda: self._post(json.dumps(body).encode()))

    @cached_property
    def _authorities(self) -> ssl.SSLContext:
        """Return whose certificates are trusted; reading them takes longer than an answer."""
        return ssl.create_default_context()

    def _post(self, body: bytes) -> Any:
        """Return the reply as a number or a refusal."""
        import httpx

        headers = {"Content-Type": "application/json", **self._headers}
        how: dict[str, Any] = {"timeout": self._patience.timeout_s, "verify": self._authorities}
        problem: Exception | None = None
        try:
            with httpx.stream("POST", self.url, content=body, headers=headers, **how) as response:
                status, reply = response.status_code, _first_bytes(response.iter_bytes())
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            problem = error
        if problem is not None:
            said = f"the endpoint was not reached: {str(problem)[:_LETTERS]}"
            return Refused(said, "closed" if isinstance(problem, httpx.ConnectError) else "failure")
        if status != HTTPStatus.OK:
            refused = _refusal_of(reply, f"HTTP status {status}")
            return Refused(refused.reason, "closed") if status == HTTPStatus.UNAUTHORIZED else refused
        return self._number(reply)

    def _number(self, reply: bytes) -> Any:
        """Return the number in a reply."""
        try:
            said = json.loads(reply)
        except (ValueError, RecursionError):
            return Refused("the reply is not JSON", "failure")
        if not isinstance(said, dict):
            return said
        if "refused" in said:
            return _refusal_of(reply, "refused")
        if self._field not in said:
            return Refused(f"the reply has no {self._field!r}", "failure")
        return said[self._field]


def _first_bytes(parts: Iterable[bytes]) -> bytes:
    """Return the beginning of a reply: one without an end is not waited for."""
    found = b""
    for part in parts:
        found += part
        if len(found) >= _MOST_BYTES:
            break
    return found[:_MOST_BYTES]


def sql_of(question: Question) -> str:
    """Return the SQL of a question, or refuse a vector."""
    if question.text is None:
        raise DataError(
            "a target that speaks SQL was asked with a vector",
            rule="Question(text=...)",
            got="Question(chosen=...)",
            next_step='compiler="ids" or "hashes" say subsets in SQL',
        )
    return question.text


def _callable(answer: Any) -> Any:
    """Return a function; refuse what cannot be called."""
    if not callable(answer):
        raise DataError(
            "this is not a function",
            rule="what is attacked can be called with a question",
            got=type(answer).__name__,
            next_step="name a function, such as module:answer",
        )
    return answer


def said_by(answer: Callable[[], Any]) -> float | Refused:
    """Return what a system says, whatever it does."""
    try:
        return number(_guarded(answer))
    except DataError as error:
        return Refused(error.got, "failure")


def _guarded(answer: Callable[[], Any]) -> Any:
    """Return what a system says; whatever it raises becomes one error."""
    try:
        return answer()
    except (Exception, SystemExit) as error:
        raise DataError(
            "the target failed",
            rule="a target answers or refuses",
            got=f"{type(error).__name__}: {error}"[:_LETTERS],
            next_step="look into the target's log",
        ) from error


@dataclass(slots=True)
class _Patience:
    """How long a target may take, and how often it hung."""

    timeout_s: float | None
    hangs: int = field(default=0)

    def wait(self, answer: Callable[[], Any]) -> float | Refused:
        """Return what is said in time. A call that hangs is left behind in a thread that ends with the program."""
        if self.timeout_s is None:
            return said_by(answer)
        if self.hangs >= MOST_HANGS:
            return _GIVEN_UP
        said: list[float | Refused] = []

        def call() -> None:
            try:
                said.append(said_by(answer))
            except KeyboardInterrupt:  # the target's own: nobody interrupts this thread
                said.append(Refused("KeyboardInterrupt", "failure"))

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(self.timeout_s)
        if not said:
            self.hangs += 1
            return Refused(f"no answer in {self.timeout_s:g} s", "failure")
        self.hangs = 0
        return said[0]


def _refusal_of(reply: bytes, otherwise: str) -> Refused:
    """Return the refusal in a reply, in its own words where it has any."""
    try:
        said = json.loads(reply)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict) and "refused" in said:
        return Refused(str(said["refused"])[:_LETTERS], "budget" if said.get("budget") is True else "policy")
    return Refused(otherwise, "failure")


def _opened(connection: Any) -> tuple[Callable[[str], Any], Callable[[], None]]:
    """Return how to run SQL on a connection, and how to interrupt it."""
    from sqlalchemy import Connection, Engine, create_engine

    if isinstance(connection, str):
        connection = create_engine(connection)
    if isinstance(connection, Engine):
        connection = connection.connect()
    if isinstance(connection, Connection):
        alchemy = connection
        return lambda text: _only(alchemy.exec_driver_sql(text)), _interrupter(alchemy.connection.dbapi_connection)

    def run(text: str) -> Any:
        cursor = connection.cursor()
        cursor.execute(text)
        try:
            return _only(cursor)
        finally:
            cursor.close()

    return run, _interrupter(connection)


def _only(result: Any) -> Any:
    """Return the one number of a result."""
    row = result.fetchone()
    more = result.fetchone()
    if row is None or more is not None or len(row) != 1:
        return Refused("the answer is not one number: " + ("no row" if row is None else "several"), "failure")
    return row[0]


def _interrupter(connection: Any) -> Callable[[], None]:
    """Return the driver's way to interrupt a query, or nothing."""
    return getattr(connection, "interrupt", None) or getattr(connection, "cancel", None) or (lambda: None)
