"""Two askers of one question: nothing finer is lost, nobody waits for himself, and what was released serves again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from farthing import Budget, Session
from farthing.session.core import transaction

if TYPE_CHECKING:
    from pathlib import Path

TABLE = pa.table({"x": range(3000)})
BUDGET = Budget(epsilon=5, delta=1e-6)


def opened(path: Path | None = None) -> Session:
    return Session(TABLE, budget=BUDGET, ledger=path)


def test_a_finer_answer_that_came_in_between_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two first answers to a question the finer is kept: both askers may read it free of charge."""
    monkeypatch.setattr(transaction, "PATIENCE_S", 0)
    slow, quick = opened(tmp_path / "a.ledger"), opened(tmp_path / "a.ledger")
    between: list[object] = []

    def answer_in_between(_: object) -> None:
        if not between:
            between.append(quick.count(absolute=20).paid)

    slow.count(absolute=100, relative=0.01, progress=answer_in_between)

    assert not quick.count(absolute=20).paid
    assert not slow.count(absolute=100, relative=0.01).paid
    slow._ledger.verify()


def test_what_an_increase_was_paid_for_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sharpening that paid a difference keeps its record, whatever a fully paid one wrote in between."""
    monkeypatch.setattr(transaction, "PATIENCE_S", 0)
    slow, quick = opened(tmp_path / "a.ledger"), opened(tmp_path / "a.ledger")
    slow.count(absolute=100)
    between: list[object] = []

    def answer_in_between(_: object) -> None:
        if not between:
            between.append(quick.count(absolute=20).paid)

    slow.count(absolute=50, progress=answer_in_between)

    assert not slow.count(absolute=50).paid
    assert quick.count(absolute=20).paid  # paid for in full, and forgotten: never the other way round
    slow._ledger.verify()


def test_an_asker_does_not_wait_for_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking the same question from inside its own progress goes on at once, at the full price."""
    session = opened()
    inner: list[object] = []

    def again(_: object) -> None:
        if not inner:
            inner.append(session.count(absolute=30).paid)

    monkeypatch.setattr(transaction.time, "sleep", lambda _: pytest.fail("it waits"))
    session.count(absolute=30, progress=again)

    assert inner[0]


@pytest.mark.parametrize(("first", "second", "free"), [(0.99, 0.5, True), (0.5, 0.99, False)])
def test_one_look_serves_at_any_confidence(first: float, second: float, free: bool) -> None:
    """An absolute answer is Gaussian: at another confidence it is reread, if it is narrow enough there."""
    session = opened()
    session.count(absolute=10, confidence=first)
    again = session.count(absolute=10, confidence=second)

    assert free is not bool(again.paid)
    assert again.met
    assert again.upper - again.lower <= 20 + 1e-6


def test_a_huge_price_of_the_baseline_is_no_overflow() -> None:
    """The doubling baseline of a tiny target is a number, however large."""
    session = Session(TABLE, budget=Budget(mu=20))

    assert session.count(relative=0.1, absolute=0.3, cap="all").doubling
