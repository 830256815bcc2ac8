"""What `logging` is told: one of a few texts with the number of an entry, whatever is asked and whatever fails."""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path

import pyarrow as pa
import pytest
from asks import ASKS, SILENT, opened_session

import farthing
from farthing.log import LOGGER, Event

SOURCE = Path(farthing.__file__).parent
TEXTS = {event.words.replace("%d", r"\d+") for event in Event}
DOORS = {"log.py", "server/guard.py", "server/shapes.py", "server/wire/listener.py", "cli/run/serve.py",
         "server/workers.py"}  # fmt: skip  # which only ends it

ENDING = "Event.BOOKED if self._settled else Event.ENDED"


def told(caplog) -> list[str]:
    """Return what was logged since, on our loggers."""
    lines = [record.getMessage() for record in caplog.records if record.name.partition(".")[0] == LOGGER.name]
    caplog.clear()
    return lines


def test_nothing_else_logs():
    """Only the one door, and the server's log of requests, import logging; the door takes an event and a number."""
    importing, calls = set(), []
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "logging" not in text and "farthing.log import" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Import(names=names) if any(name.name.partition(".")[0] == "logging" for name in names):
                    importing.add(path.relative_to(SOURCE).as_posix())
                case ast.ImportFrom(module="logging"):
                    importing.add(path.relative_to(SOURCE).as_posix())
                case ast.Call(func=ast.Name(id="log"), args=[first, *more]) if "farthing.log import" in text:
                    calls.append((ast.unparse(first), [ast.unparse(one) for one in more]))
    assert importing == DOORS
    assert {first for first, _ in calls} == {"Event.OPENED", "Event.FREE", "Event.WAITED", ENDING}
    assert all(more in ([], ["self._receipt.id"]) for _, more in calls)


def test_every_text_is_constant():
    """A text has no more than one place, for a whole number."""
    for event in Event:
        assert re.findall("%.", event.words) in ([], ["%d"])


@pytest.mark.thorough
def test_every_kind_of_ask_logs_only_these(caplog):
    """Of every kind of question, paid and then free, only these texts are logged, at the most detailed level."""
    caplog.set_level(logging.DEBUG, LOGGER.name)
    seen = set()
    with opened_session() as session:
        for ask in (*ASKS.values(), *SILENT.values()):
            ask(session)
            for line in told(caplog):
                assert any(re.fullmatch(text, line) for text in TEXTS), line
                seen.add(re.sub(r"\d+", "%d", line))
    assert {"a session was opened", "entry %d was answered and charged"} <= seen


def test_paid_free_and_failed(caplog, monkeypatch):
    """A charge, a repeat, a refusal and a failure: each has its line, or none."""
    caplog.set_level(logging.DEBUG, LOGGER.name)
    rides = pa.table({"zone": ["a"] * 900})
    with farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6)) as session:
        assert told(caplog) == ["a session was opened"]
        session.count(absolute=50)
        assert told(caplog) == ["entry 1 was answered and charged"]
        session.count(absolute=50)
        assert told(caplog) == ["answered free of charge"]
        with pytest.raises(farthing.BudgetExceeded):
            session.count(where="zone = 'a'", absolute=0.001)
        assert told(caplog) == []
        monkeypatch.setattr(session._context.engine.__class__, "measure", lambda *_: 1 / 0, raising=False)
        with pytest.raises(Exception):  # noqa: B017  # whatever it is
            session.count(where="zone = 'b'", absolute=50)
        assert told(caplog) == ["entry 2 ended without an answer"]


def test_nothing_is_printed_by_default(capsys):
    """Without a handler of the user's the log goes nowhere."""
    with farthing.Session(pa.table({"x": [1]}), budget=farthing.Budget(epsilon=1, delta=1e-6)) as session:
        session.count(absolute=50)
    assert capsys.readouterr() == ("", "")
