"""A real PostgreSQL that goes away under an ask and comes back: that of the books, and that of the data."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from backends import postgres
from ledger_servers import fresh_schema, postgres_url
from sqlalchemy import make_url

import farthing
from farthing.errors import DataError, LedgerLost
from farthing.session.core import patience
from farthing.session.core.door import Door

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = pa.table({"x": range(500)})
BUDGET = farthing.Budget(mu=5, delta=1e-6)
pytestmark = pytest.mark.thorough


class Line:
    """The way to a server, which can be cut and mended; who comes while it is cut is turned away."""

    def __init__(self, url: str) -> None:
        self._to = make_url(url)
        self._ends: list[socket.socket] = []
        self._up, self._listener = True, socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self._taker = threading.Thread(target=self._taking)
        self._open = True
        self._taker.start()

    @property
    def url(self) -> str:
        """Return the server's URL by this way."""
        host, port = self._listener.getsockname()
        return self._to.set(host=host, port=port).render_as_string(hide_password=False)

    def cut(self, *, mended_s: float | None = None) -> None:
        """Cut it; mend it after a while, at once (0), or not at all."""
        self._up = False
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._ends = []
        if mended_s is not None:
            threading.Timer(mended_s, self.mend).start() if mended_s else self.mend()

    def mend(self) -> None:
        """Mend it."""
        self._up = True

    def close(self) -> None:
        """End all."""
        self.cut()
        self._open = False
        self._taker.join()
        self._listener.close()

    def _taking(self) -> None:
        """Take who comes."""
        while self._open:
            with suppress(TimeoutError):
                near, _ = self._listener.accept()
                near.settimeout(None)
                if not self._up:
                    near.close()
                    continue
                far = socket.create_connection((self._to.host, self._to.port or 5432))
                self._ends += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._passing, args=pair, daemon=True).start()

    def _passing(self, one: socket.socket, other: socket.socket) -> None:
        """Pass on what comes."""
        with suppress(OSError):
            while part := one.recv(65_536):
                other.sendall(part)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)
        one.close()


@pytest.fixture
def books() -> Iterator[Line]:
    """The way to books of their own."""
    with fresh_schema() as url:
        line = Line(url)
        yield line
        line.close()


def cut_after(line: Line, monkeypatch: pytest.MonkeyPatch, **how: Any) -> None:
    """Cut a line as soon as the engine has been asked, once."""
    measure, cuts = Door.measure, [how]

    def cutting(*given: Any) -> Any:
        """Measure, then cut."""
        told = measure(*given)
        if cuts:
            line.cut(**cuts.pop())
        return told

    monkeypatch.setattr(Door, "measure", cutting)


def test_books_that_come_back_soon_are_waited_for(books: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of the books stops when the noise is about to be drawn, and starts again: the ask is answered."""
    with farthing.Session(TABLE, budget=BUDGET, ledger=books.url) as session:
        cut_after(books, monkeypatch, mended_s=0.4)
        assert session.count(absolute=50).paid
        assert ["settled"] == [entry.state for entry in session.history()]
        session.verify()


def test_books_that_come_back_late_have_the_answer(books: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay away for longer than an ask waits: it fails, is settled when they are back, and is free then."""
    monkeypatch.setattr(patience, "PATIENCE_S", -1.0)
    with farthing.Session(TABLE, budget=BUDGET, ledger=books.url) as session:
        cut_after(books, monkeypatch)
        with pytest.raises(LedgerLost, match="cannot be reached, or was lost"):
            session.count(absolute=50)
        books.mend()
        assert not session.count(absolute=50).paid
        assert ["settled"] == [entry.state for entry in session.history()]
        assert not session.status()["open"]


def test_data_that_come_back_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of the data is lost before an ask, or while it computes one: that is answered, and charged once."""
    import ibis

    plain = postgres()
    name = "t_that_stops"
    plain.raw_sql(f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} AS SELECT generate_series(1, 500) AS x").close()
    line = Line(postgres_url())
    try:
        table = ibis.connect(line.url.replace("postgresql+psycopg://", "postgres://")).table(name)
        with farthing.Session(table, budget=BUDGET, ledger=None) as session:
            line.cut(mended_s=0)
            assert session.count(absolute=50).paid
            send, cuts = type(session._engine._backend)._send, [1]

            def cutting(backend: Any, *given: Any) -> Any:
                """Cut the line when a question is under way."""
                if cuts and "count" in given[0].lower():
                    cuts.pop()
                    line.cut(mended_s=0.3)
                return send(backend, *given)

            monkeypatch.setattr(type(session._engine._backend), "_send", cutting)
            assert session.count(absolute=40).paid
            assert ["settled", "settled"] == [entry.state for entry in session.history()]
            spent = session.spent
            monkeypatch.setattr("farthing.engines.foreign.postgres._BACK_S", 0.0)
            line.cut()
            with pytest.raises(DataError):
                session.count(absolute=30)
            assert spent == session.spent
    finally:
        plain.raw_sql(f"DROP TABLE {name}").close()
        line.close()
