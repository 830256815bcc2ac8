"""One transaction: nobody else charges, one of all who ask at once pays, and nothing is asked free of charge."""

from __future__ import annotations

import ast
import importlib
import math
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sources import nodes
from sweeps import sweep
from work import calls_of

import farthing
from farthing import Bounds, Budget, Gdp, Pure, Session
from farthing.engines.duck.engine import DuckDBEngine
from farthing.engines.duck.measures import SelectText
from farthing.errors import (
    Contested,
    DataError,
    FarthingError,
    Frozen,
    InvalidTarget,
    LedgerError,
    LedgerLost,
    PriceRisen,
)
from farthing.ledger import rules
from farthing.ledger.books import Books
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger
from farthing.session.core import patience, transaction
from farthing.session.core.door import Door
from farthing.session.core.transaction import answer_and_book
from farthing.workloads import marginals, prefixes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from farthing.session.core.booked_question import Bill

SRC = Path(farthing.__file__).parent
VERBS = frozenset(
    {"reserve", "look", "settle", "fail", "give_up", "withdraw", "load", "receipt", "open_of", "open_reservations",
     "charged_fresh"}
)  # fmt: skip
"""What a ledger is written with, and what is read in order to write."""

ITS_OWN = frozenset({"reserve", "fail", "give_up", "withdraw", "open_of", "open_reservations", "charged_fresh"})
"""Those of them that nothing but a ledger has, by whatever name it goes."""

TABLE = pa.table({
    "who": [place // 3 for place in range(2100)],
    "zone": [("a", "b", "c")[place // 3 % 3] for place in range(2100)],
    "amount": [float(place % 50) for place in range(2100)],
})  # fmt: skip
BUDGET = Budget(mu=5, delta=1e-3, keys_delta=1e-4)
KEYS = {"zone": ["a", "b", "c"]}
PART = {"relative": 0.2, "absolute": 80}
TWO = marginals(["zone", "amount"])
UNEVEN = {"by": "zone", "keys": {"zone": ["a", "none"]}}

KINDS: dict[str, Callable[[Session], Any]] = {
    "count": lambda s: s.count(absolute=30),
    "count by group": lambda s: s.count(by="zone", keys=KEYS, relative=0.2, absolute=50),
    "count, released once": lambda s: s.count(relative=0.3, absolute=100, mechanism="asinh"),
    "mean": lambda s: s.mean("amount", lower=0, upper=50, absolute=3),
    "quantile": lambda s: s.quantile("amount", 0.5, lower=0, upper=50, rank=0.1),
    "quartiles": lambda s: s.quantile("amount", (0.25, 0.5, 0.75), lower=0, upper=50, rank=0.2),
    "private keys": lambda s: s.count(by="zone", keys="private", found_above=150, absolute=60),
    "top k": lambda s: s.top_k("zone", k=1, keys=KEYS, within=200),
    "top k, private": lambda s: s.top_k("zone", k=1, keys="private", epsilon=0.1),
    "most common": lambda s: s.most_common("zone", k=1, keys=KEYS, absolute=100),
    "ranking": lambda s: s.ranking("zone", k=2, keys=KEYS, apart=300),
    "bounds report": lambda s: s.bounds_report("amount"),
    "release": lambda s: s.release(marginals(["zone"], ways=1), keys=KEYS, absolute=80, cap="all"),
    "release, relative": lambda s: s.release(TWO, keys=KEYS | {"amount": [0.0, 1.0]}, **PART, cap="all"),
    "release, products": lambda s: s.release(prefixes("amount", [0, 20, 50]), absolute=80, cap="all"),
    "release, model": lambda s: s.release(
        marginals(["zone"], ways=1), keys=KEYS, loss=Gdp(0.1), mechanism="projection"
    ),
    "release, adaptive": lambda s: s.release(
        marginals(["zone"], ways=1), keys=KEYS, loss=Gdp(0.1), mechanism="adaptive"
    ),
    "chosen bounds": lambda s: s.count(absolute=60, bounds=Bounds.auto(Gdp(0.3))),
    "together": lambda s: s.workload({"n": {"absolute": 50}}, strategy="together", cap=Gdp(0.2)),
    "largest": lambda s: s.workload({"n": {"relative": 0.2}}, strategy="largest", cap=Gdp(0.2)),
}
"""Every kind of question that is paid for once, and shown again free of charge."""

ANEW: dict[str, Callable[[Session], Any]] = {
    "best of": lambda s: s.best_of(lambda: (1, "a"), loss=Gdp(0.01), runs=9),
    "online": lambda s: s.online(keys=KEYS, absolute=4_000, queries=9, rows=9_000).ask(zone=["a"]),
}
"""What is paid each time that it is begun: it ends with the object that was asked."""


IN_LOOKS = {
    *("count by group", "mean", "quantile", "quartiles", "ranking", "together", "largest"),
    *("release", "release, relative", "release, products", "release, adaptive"),
}
"""What is measured in several looks, each of which is begun in the ledger before: a kill costs the look it was in.

All others draw once, at their price: a count to a distance, a choice, a search, a report, a release by another model.
"""


def opened(path: Path | None = None) -> Session:
    """Open the table, three rows a unit."""
    return Session(TABLE, unit="who", bounds=Bounds(max_groups=1, max_rows=3), budget=BUDGET, ledger=path)


def price(result: Any) -> float:
    """Return what a question was told to have cost."""
    return float(result.paid.amount)


def asked_together(path: str, kind: str, start: Any, told: Any) -> None:
    """Ask one question as soon as all are ready, in a process of its own."""
    with opened(Path(path)) as session:
        start.wait()
        told.put(price(KINDS[kind](session)))


def verbs(path: Path) -> set[str]:
    """Return the ledger's verbs that a module uses."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and node.attr in VERBS:
            owner = ast.unparse(node.value)
            if node.attr in ITS_OWN or "ledger" in owner or "books" in owner:
                found.add(node.attr)
    return found


def modules() -> list[Path]:
    """Return every module outside of the ledger itself."""
    return [path for path in SRC.rglob("*.py") if "ledger" not in path.relative_to(SRC).parts]


def modules_that_ask() -> dict[str, str]:
    """Return the modules that answer by a transaction, each with the name that it has for one there."""
    found = {}
    for path in modules():
        if path.is_relative_to(SRC / "session") and path.stem not in {"__init__", "transaction"}:
            name = ".".join(("farthing", *path.relative_to(SRC).with_suffix("").parts))
            for key, value in vars(importlib.import_module(name)).items():
                if value is answer_and_book:
                    found[name] = key
    return found


@pytest.mark.xdist_group("syntax")
def test_the_verbs_of_a_ledger_stand_in_one_module() -> None:
    """No module but the transaction's reserves, settles, fails or loads; three look for what is open, to tell it."""
    users = {str(path.relative_to(SRC)): found for path in modules() if (found := verbs(path))}

    assert users == {
        "session/core/transaction.py": VERBS - {"open_reservations"},
        "session/core/context.py": {"open_reservations"},
        "session/core/refused.py": {"open_reservations"},
        "cli/run/ledger.py": {"open_reservations"},
    }


@pytest.mark.xdist_group("syntax")
def test_the_kinds_are_all_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every module that answers by a transaction is reached by one of the kinds that the other tests go through."""
    reached = set()
    asking = modules_that_ask()
    for name, key in asking.items():

        def seen(*args: Any, name: str = name) -> Any:
            reached.add(name)
            return answer_and_book(*args)

        monkeypatch.setattr(f"{name}.{key}", seen)
    in_looks, begin = set(), transaction._Work.__init__

    def noted(work: Any, context: Any, question: str, bill: Bill, *, alone: bool) -> None:
        begin(work, context, question, bill, alone=alone)
        if bill.looks:
            in_looks.add(kind)

    monkeypatch.setattr(transaction._Work, "__init__", noted)
    with opened() as session:
        for kind, ask in (KINDS | ANEW).items():  # noqa: B007  `noted` reads it
            ask(session)

    assert set(asking) == reached
    assert len(reached) >= 6
    assert in_looks == IN_LOOKS


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_one_of_several_threads_pays(kind: str) -> None:
    """Threads that ask the same together are charged as one that asks alone."""
    with opened() as session:
        start = threading.Barrier(3)

        def ask(_: int) -> float:
            start.wait()
            return price(KINDS[kind](session))

        with ThreadPoolExecutor(3) as threads:
            paid = list(threads.map(ask, range(3)))

        assert sum(paid) == session.spent.amount
        assert once(session)


def test_sixteen_threads_have_one_payer(tmp_path: Path) -> None:
    """On books in a file, whose threads share commits: one of sixteen that ask the same at once is charged."""
    with opened(tmp_path / "a.ledger") as session:
        start = threading.Barrier(16)

        def ask(_: int) -> float:
            start.wait()
            return price(KINDS["count"](session))

        with ThreadPoolExecutor(16) as threads:
            paid = list(threads.map(ask, range(16)))

        assert 1 == sum(amount > 0 for amount in paid) == len(session.history())
        assert sum(paid) == session.spent.amount


def test_dead_reservations_of_others_do_not_slow_an_ask(tmp_path: Path) -> None:
    """An ask that waits looks at the open reservations of its own question: more of others are no more work."""
    work = []
    with opened(tmp_path / "a.ledger") as session:
        for many in (20, 200):
            for left in range(many):
                session._ledger.reserve(increase=1, fresh=1, question=f"{many} {left}", version=0, label="left")
            work.append(calls_of(lambda: transaction._wait(session._ledger, "asked", math.inf)))
    assert work[1] < 1.3 * work[0]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_one_of_several_processes_pays(kind: str, tmp_path: Path) -> None:
    """Processes that ask the same together are charged as one that asks alone."""
    path = tmp_path / "a.ledger"
    with opened(path) as session:
        start_processes(path, kind)

        assert session.spent.amount > 0
        assert once(session)
        assert not price(KINDS[kind](session))
        session.verify()


def start_processes(path: Path, kind: str) -> None:
    """Ask the same in two processes that start together."""
    context = get_context("fork")
    start, told = context.Barrier(2), context.Queue()
    both = [context.Process(target=asked_together, args=(str(path), kind, start, told)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
    assert [0, 0] == [one.exitcode for one in both]


def once(session: Session) -> bool:
    """Tell whether no question was charged twice."""
    entries = [entry.question for entry in session.history() if entry.charged]
    return len(entries) == len(set(entries)) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_asked_of_an_engine_without_a_charge(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever the engine is asked, an open reservation above zero is in the books."""
    with opened() as session:
        open_then = []
        for name in ("measure", "histogram", "found", "spread", "crossed"):
            honest = getattr(type(session._engine), name)

            def watched(self: Any, *args: Any, honest: Any = honest) -> Any:
                open_then.append(max((entry.reserved for entry in session._ledger.open_reservations), default=0))
                return honest(self, *args)

            monkeypatch.setattr(type(session._engine), name, watched)
        KINDS[kind](session)

        assert open_then
        assert min(open_then) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_is_charged_while_the_owner_has_frozen_it(kind: str) -> None:
    """Whatever asks: nothing is charged, nothing is left open, and the error is the owner's word."""
    with opened() as session:
        session.freeze()
        with pytest.raises(Frozen):
            KINDS[kind](session)
        assert not session.spent
        assert not session.status()["open"]


def test_a_price_of_nothing_is_refused_before_anything_is_asked() -> None:
    """A spread for less than a farthing is no measurement free of charge."""
    with opened() as session, pytest.raises(InvalidTarget, match="the price is too small for a spread"):
        session.bounds_report("amount", loss=Gdp(1e-30))


def test_the_first_report_is_kept() -> None:
    """A report as coarse as the one that stands, or coarser, leaves it and costs nothing."""
    with opened() as session:
        first = session.bounds_report("amount", loss=Gdp(0.2))

        assert str(first.report) == str(session.bounds_report("amount", loss=Gdp(0.1)).report)
        assert session.spent == first.paid


def test_a_reservation_that_is_to_be_alone_is_refused_among_others() -> None:
    """A question that a living process has open, or that was sharpened meanwhile, is charged to nobody else."""
    terms = Terms("gdp", budget=100, delta=0, keys_delta=0, unit="row", description="100 farthings")
    facts = {"increase": 10, "fresh": 10, "question": "q", "label": "COUNT(*)", "alone": True}
    with Ledger.open(None, terms) as ledger:
        receipt = ledger.reserve(**facts, version=0)
        with pytest.raises(Contested, match="is being answered"):
            ledger.reserve(**facts, version=0)
        ledger.settle(receipt, 5, lambda _: b"released")
        with pytest.raises(Contested, match="was answered meanwhile"):
            ledger.reserve(**facts, version=0)

        assert 5 == ledger.spent
        assert ledger.reserve(**facts, version=1).exclusive


class _Interrupted:
    """Raises an exception at one line of the transaction's module, counted from 1."""

    def __init__(self, at: int, kind: type[BaseException]) -> None:
        self.lines, self._at, self._kind = 0, at, kind

    def __call__(self, frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != transaction.__file__:
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self._at:
                raise self._kind
        return self


def interrupted_at(session: Session, ask: Callable[[Session], Any], at: int, kind: type[BaseException]) -> int:
    """Ask, interrupted at one line; return how many lines there were until then."""
    before, trace = sys.gettrace(), _Interrupted(at, kind)
    sys.settrace(trace)
    try:
        ask(session)
    except (kind, LedgerError):  # the ledger says in its own words that memory ran out while it wrote
        pass
    finally:
        sys.settrace(before)
    return trace.lines


def no_waiting(seconds: float) -> None:
    """Stand for `time.sleep` where nobody who asks may wait; threads of other libraries may."""
    if threading.current_thread() is not threading.main_thread():
        threading.Event().wait(seconds)
        return
    raise AssertionError(f"waited {seconds}")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [KeyboardInterrupt, pytest.param(MemoryError, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_line_leaves_nothing_open(
    kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever an ask is interrupted, nothing is open afterwards, and the same question does not wait."""
    monkeypatch.setattr(transaction.time, "sleep", no_waiting)
    ask = KINDS["top k"]
    with opened() as session:
        every = interrupted_at(session, ask, 0, kind)
    assert every > 40

    for at in range(1, every + 1, sweep(3, 1)):
        with opened() as session:
            assert at == interrupted_at(session, ask, at, kind)
            assert not session.status()["open"], at
            ask(session)
            assert not session.status()["open"], at


def test_what_ends_before_a_row_is_read_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever an ask is interrupted, it is charged if and only if the engine was asked for it."""
    heard, honest = [], DuckDBEngine.measure
    monkeypatch.setattr(DuckDBEngine, "measure", lambda *given: heard.append(1) or honest(*given))
    seen = set()
    with opened() as session:
        every = interrupted_at(session, KINDS["count"], 0, KeyboardInterrupt)
        for at in range(1, every + 1):
            heard.clear()
            before, entries = session.spent.farthings, len(session.history())
            interrupted_at(
                session, lambda s, at=at: s.count(where=f"amount <> {-at}", absolute=60), at, KeyboardInterrupt
            )
            made = session.history(len(session.history()) - entries)
            assert bool(heard) == (session.spent.farthings > before) == any(entry.charged for entry in made), at
            seen.add((bool(heard), *(entry.state for entry in made)))
        session.verify()
    assert {(False,), (False, "settled"), (True, "failed"), (True, "settled")} == seen


def test_a_failure_after_a_row_was_read_that_is_withdrawn_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: where nobody notes that the door was opened, a failure after the answer would cost nothing."""
    for planted in (False, True):
        if planted:
            monkeypatch.setattr(transaction, "was_opened", lambda _: False)
        with opened() as session:
            with pytest.raises(ZeroDivisionError):
                session.count(absolute=30, progress=lambda _: 1 / 0)
            assert planted == (not session.spent.amount)


def test_what_ends_before_a_row_is_read_ends_no_row_of_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ask that is withdrawn costs nothing, leaves its question as it was, and neither ends nor makes failures."""

    def refused(*_: Any) -> bool:
        raise LedgerError("the ledger is busy")

    path = a_file(tmp_path)
    ruined(path)
    for place in range(2):
        with of_file(path) as session:
            with pytest.raises(DataError, match="the engine could not finish"):
                session.count(absolute=60 + place)
            spent = session.spent
            with monkeypatch.context() as broken:
                broken.setattr(Ledger, "stands", refused)
                with pytest.raises(LedgerError if not place else DataError):
                    session.count(absolute=30)
            assert spent == session.spent
    with of_file(path) as session, pytest.raises(DataError, match="the last 2 asks of this table failed"):
        session.count(absolute=60)


@pytest.mark.thorough
def test_an_interrupt_of_a_failing_ask_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt while a failure is booked is no way out either."""
    monkeypatch.setattr(transaction.time, "sleep", no_waiting)

    def failing(session: Session) -> None:
        def fail(_: object) -> None:
            raise ArithmeticError

        with suppress(ArithmeticError):
            session.count(absolute=30, progress=fail)

    with opened() as session:
        every = interrupted_at(session, failing, 0, KeyboardInterrupt)
    for at in range(1, every + 1):
        with opened() as session:
            interrupted_at(session, failing, at, KeyboardInterrupt)
            assert not session.status()["open"], at


def test_what_no_thread_works_on_is_closed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where even the closing was prevented, whoever asks next in this process closes it, and does not wait."""
    monkeypatch.setattr(transaction.time, "sleep", no_waiting)
    with opened() as session:
        with monkeypatch.context() as broken:
            broken.setattr(transaction._Work, "ended", lambda _: True)
            with pytest.raises(ZeroDivisionError):
                session.count(absolute=30, progress=lambda _: 1 / 0)
            assert session.status()["open"]

        session.count(absolute=30)

        assert not session.status()["open"]
        assert ["settled", "failed"] == [entry.state for entry in session.history()]


class AtMost:
    """A session all of whose asks say how much they may be charged."""

    def __init__(self, session: Session, most: Any) -> None:
        self._session, self._most = session, most

    def __getattr__(self, name: str) -> Any:
        return partial(getattr(self._session, name), at_most=self._most)


@pytest.mark.parametrize("kind", KINDS)
def test_a_ceiling_is_kept_or_unknown(kind: str) -> None:
    """Every kind of ask refuses a price above `at_most`, free; or says that it has no such option: none ignores it."""
    with opened() as session:
        with pytest.raises((FarthingError, TypeError)) as refused:
            KINDS[kind](AtMost(session, Gdp.of_farthings(1)))

        assert not session.history()
        if not isinstance(refused.value, PriceRisen):
            words = (
                "unknown option|unexpected keyword|no question .* has one to itself|cap of its own|are not chosen yet"
            )
            assert re.search(words, str(refused.value)), refused.value


BY_PLAN = {
    "count": "SELECT COUNT(*) AS n FROM data",
    "groups": "SELECT zone, COUNT(*) AS n FROM data GROUP BY zone",
    "several kinds": "SELECT COUNT(*) AS n, AVG(amount) AS m, MEDIAN(amount) AS q FROM data",
    "the first": "SELECT zone, COUNT(*) AS n FROM data GROUP BY zone ORDER BY n DESC LIMIT 1",
    "sets": "SELECT zone, COUNT(*) AS n FROM data GROUP BY ROLLUP(zone)",
    "found": "SELECT zone, COUNT(*) AS n FROM data GROUP BY zone",
}


@pytest.mark.parametrize("name", BY_PLAN)
def test_a_plan_can_be_confirmed(name: str) -> None:
    """Asked at most at its plan's price an ask is answered, for no more; a farthing less, and it is refused, free."""
    keys = {"groups": KEYS, "the first": KEYS, "sets": KEYS, "found": "private"}.get(name)
    how = {"absolute": 150, "keys": keys, "lower": 0, "upper": 50, "confidence": 0.9}
    if name == "several kinds":
        how |= {"absolute": {"n": 150, "m": 5}, "rank": {"q": 0.1}}
    with opened() as session:
        price = session.plan(BY_PLAN[name], **how).worst_price
        with pytest.raises(PriceRisen, match=r"the price has risen .* nothing was charged"):
            session.sql(BY_PLAN[name], **how, at_most=Gdp.of_farthings(price.farthings - 1))
        assert not session.history()
        session.sql(BY_PLAN[name], **how, at_most=price)
        assert 0 < session.spent.farthings <= price.farthings
        assert not session.sql(BY_PLAN[name], **how, at_most=Gdp.of_farthings(0)).paid


def refined(session: Session) -> tuple[Any, Any]:
    """Ask two counts, of which one pays more, and plan sharper ones; return their plan and how they are asked."""
    session.count(**UNEVEN, relative=0.3, absolute=40)
    return session.plan(**UNEVEN, absolute=20), partial(session.count, **UNEVEN, absolute=20)


def test_a_question_that_another_has_open_is_confirmed_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever does not wait longer pays afresh: not if that is more than the plan told."""
    monkeypatch.setattr(transaction, "PATIENCE_S", 0)
    with opened() as session:
        plan, ask = refined(session)
        kept = {"question": session.history(1)[0].question, "version": 1, "label": "another's"}
        other = session._ledger.reserve(increase=1, fresh=1, **kept)
        spent = session.spent
        with pytest.raises(PriceRisen, match="nothing was charged"):
            ask(at_most=plan.worst_price)
        assert spent == session.spent

        session._ledger.settle(other, 0, None)
        paid = ask(at_most=plan.worst_price).paid
        assert paid
        assert paid <= plan.worst_price


def test_a_plan_knows_that_an_ask_failed() -> None:
    """After a failure a question is charged from the beginning; its plan says so, and can be confirmed."""
    with opened() as session:
        before, ask = refined(session)
        with pytest.raises(ZeroDivisionError):
            ask(progress=lambda _: 1 / 0)
        after, spent = session.plan(**UNEVEN, absolute=20), session.spent
        with pytest.raises(PriceRisen, match="nothing was charged"):
            ask(at_most=before.worst_price)
        assert spent == session.spent
        assert before.worst_price.farthings < after.worst_price.farthings == after.fresh_price.farthings

        ask(at_most=after.worst_price)
        assert after.worst_price.farthings == session.history(1)[0].reserved


def test_a_ceiling_that_is_not_handed_down_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: where reserving does not know of it, the race above is charged more than its plan told."""
    monkeypatch.setattr(transaction, "PATIENCE_S", 0)
    monkeypatch.setattr(rules, "require_at_most", lambda *_: None)
    with opened() as session:
        plan, ask = refined(session)
        kept = {"question": session.history(1)[0].question, "version": 1, "label": "another's"}
        session._ledger.reserve(increase=1, fresh=1, **kept)
        ask(at_most=plan.worst_price)
        assert session.history(1)[0].reserved > plan.worst_price.farthings


def test_an_answer_is_refined_without_the_ceiling_of_its_ask() -> None:
    """What was confirmed was one ask: a sharper answer has its own price."""
    with opened() as session:
        answer = session.count(absolute=60, at_most=session.plan(absolute=60).worst_price)
        assert answer.refine(absolute=20).met
        with pytest.raises(InvalidTarget, match="at_most is in another currency"):
            session.count(absolute=10, at_most=Pure(1))


def test_no_module_of_the_session_begins_a_thread() -> None:
    """A ceiling belongs to the thread of its ask: nothing in the session asks in another."""
    begun = {
        (path.name, node.attr if isinstance(node, ast.Attribute) else node.id)
        for path in (SRC / "session").rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Attribute | ast.Name)
        and (node.attr if isinstance(node, ast.Attribute) else node.id)
        in {"Thread", "ThreadPoolExecutor", "ProcessPoolExecutor", "Process", "Pool", "to_thread", "run_in_executor"}
    }
    assert not begun


READING = "Invalid Input Error: reading the schema of the object registered as 'farthing_table' failed: "
STOPS = {
    "DuckDB 1 at work": (RuntimeError("Query interrupted"), KeyboardInterrupt()),
    "DuckDB 1 reading": (duckdb.Error("KeyboardInterrupt: <EMPTY MESSAGE>"), None),
    "DuckDB 2 at work": (RuntimeError("Query interrupted"), None),
    "DuckDB 2 reading": (duckdb.InvalidInputException(f"{READING}KeyboardInterrupt: "), None),
}
QUOTED = [f"{READING}KeyboardInterrupt: of a row", "Conversion Error: KeyboardInterrupt: ", "Query interrupted: a row"]


@pytest.mark.parametrize("words", STOPS)
def test_an_interrupt_of_the_engine_stays_one(words: str) -> None:
    """DuckDB says that a query was interrupted; farthing says that it was Ctrl-C, and books it like any failure."""

    def stopped(_: Any) -> Any:
        said, cause = STOPS[words]
        raise said from cause

    with opened() as session, pytest.raises(KeyboardInterrupt) as caught:
        session._engine._run(None, SelectText("SELECT 1", {}), stopped)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("said", QUOTED)
def test_no_text_of_a_row_is_taken_for_an_interrupt(said: str) -> None:
    """An engine may quote a row in what it says: a row that holds the words of an interrupt gives the usual error."""

    def failed(_: Any) -> Any:
        raise duckdb.Error(said)

    with opened() as session, pytest.raises(DataError, match="the engine could not finish"):
        session._engine._run(None, SelectText("SELECT 1", {}), failed)


def a_file(folder: Path) -> Path:
    """Write the table into a file."""
    path = folder / "rows.parquet"
    pq.write_table(TABLE, path)
    return path


def ruined(path: Path) -> None:
    """Overwrite the rows of a file; its footer stays."""
    raw = path.read_bytes()
    end = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    path.write_bytes(raw[:4] + b"\x01" * (end - 4) + raw[end:])


def of_file(path: Path, *, same_data: bool = False) -> Session:
    """Open a file, with a ledger beside it: a session of its own, as a command has."""
    bounds = Bounds(max_groups=1, max_rows=3)
    where = path.with_name("a.ledger")
    return Session(str(path), unit="who", bounds=bounds, budget=BUDGET, ledger=where, same_data=same_data)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_table_is_charged_for_twice_at_most(kind: str, tmp_path: Path) -> None:
    """Failing asks in sessions of their own, as of a loop of commands, use up two prices and no more."""
    path, spent = a_file(tmp_path), []
    ruined(path)
    for _ in range(5):
        with of_file(path) as session:
            with pytest.raises(DataError):
                KINDS[kind](session)
            spent.append(session.spent.amount)

    assert 0 < spent[0] < spent[1]
    assert spent[1:] == [spent[1]] * 4


def test_the_owner_says_go_on(tmp_path: Path) -> None:
    """What is refused after two failures goes on once the table is whole and the owner says so, at no price."""
    path = a_file(tmp_path)
    ruined(path)
    with of_file(path) as session:
        for _ in range(2):
            with pytest.raises(DataError, match="the engine could not finish"):
                session.count(absolute=60)
        with pytest.raises(DataError, match="the last 2 asks of this table failed"):
            session.count(absolute=60)
    a_file(tmp_path)
    with of_file(path, same_data=True) as session:
        with pytest.raises(DataError, match="the last 2 asks of this table failed"):
            session.count(absolute=60)
        spent = session.spent
        session.resume()

        assert spent == session.spent
        assert session.count(absolute=60).met
        assert ["settled", "settled", "failed", "failed"] == [entry.state for entry in session.history()]
        session.verify()


SIGNALLED = """
import os, signal, sys, threading
import duckdb
import pyarrow as pa
import farthing
session = farthing.Session(pa.table({"x": range(2_000_000)}), budget=farthing.Budget(mu=5), ledger=sys.argv[1])
measure = type(session._engine).measure
def press_in(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
def press_again(lost):  # Python drops an interrupt that comes while it runs a finalizer, and says so here alone
    press_in(0.002) if lost.exc_type is KeyboardInterrupt else sys.__unraisablehook__(lost)
sys.unraisablehook = press_again
def slow(*given):
    press_in(0.0025 * (1 + time % 20))
    for _ in range(10_000):
        measure(*given)
type(session._engine).measure = slow
for time in range(80):
    try:
        session.count(where="x % 7 = 3", absolute=500)
    except farthing.FarthingError:
        sys.exit(5)
    except KeyboardInterrupt:
        continue
    sys.exit(6)
type(session._engine).measure = measure
assert not session.status()["open"] and session.count(where="x % 7 = 3", absolute=500).met
assert ["settled", *["failed"] * 80] == [entry.state for entry in session.history()]
session.verify()
"""


@pytest.mark.thorough
def test_a_real_signal_stops_an_ask(tmp_path: Path) -> None:
    """Ctrl-C while the engine reads or works is an interrupt in each of 80 asks, never an error a loop would catch."""
    run = [sys.executable, "-c", SIGNALLED, str(tmp_path / "a.ledger")]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=200, check=False)
    assert (0, "") == (ended.returncode, ended.stderr)


def test_interrupts_are_charged_and_are_no_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C as often as one likes holds nothing up, and hides no failure."""

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    path = a_file(tmp_path)
    with of_file(path) as session:
        for times in range(1, 4):
            spent = session.spent.amount
            with pytest.raises(KeyboardInterrupt):
                session.count(absolute=60 + times, progress=stop)
            assert session.spent.amount > spent
        assert session.count(absolute=60).met
        assert ["settled", "failed", "failed", "failed"] == [entry.state for entry in session.history()]
        session.verify()
    ruined(path)
    with of_file(path, same_data=True) as session:
        for place in range(2):
            with pytest.raises(DataError, match="the engine could not finish"):
                session.count(absolute=30 + place)
            with monkeypatch.context() as broken:
                broken.setattr(type(session._engine), "measure", lambda *_: stop(None))
                with pytest.raises(KeyboardInterrupt if not place else DataError):
                    session.count(absolute=20 + place)
        with pytest.raises(DataError, match="the last 2 asks of this table failed"):
            session.count(absolute=10)


def test_another_table_of_the_ledger_is_not_held_up(tmp_path: Path) -> None:
    """Failures of one table are not those of another that is kept in the same books."""
    path = a_file(tmp_path)
    ruined(path)
    with of_file(path) as session:
        for _ in range(2):
            with pytest.raises(DataError):
                session.count(absolute=60)
    with Session(TABLE, name="whole", unit="who", bounds=Bounds(max_groups=1, max_rows=3), budget=BUDGET,
                 ledger=tmp_path / "a.ledger") as whole:  # fmt: skip
        assert whole.count(absolute=60).met


def test_other_columns_after_a_failure_are_refused(tmp_path: Path) -> None:
    """After one failure the columns are looked at: a file that was replaced by another is charged no more."""
    path = a_file(tmp_path)
    with of_file(path) as session:
        ruined(path)
        with pytest.raises(DataError):
            session.count(absolute=60)
        spent = session.spent
        pq.write_table(TABLE.rename_columns(["who", "place", "amount"]), path)
        with pytest.raises(DataError, match="have changed since the session was opened"):
            session.count(absolute=60)

        assert spent == session.spent


TIERS = {"count": (), "mean": (pytest.mark.thorough,), "top k": (pytest.mark.thorough,)}
"""A kind that is measured at once, one that is measured look by look, and one that is chosen; all others are slow."""
WAYS = ("measure", "histogram", "found", "spread", "crossed")


class Losing:
    """The books, whose server is lost at one of their uses, and stays away until it is told to come back.

    Args:
        monkeypatch: puts it in their place.
        at: which use, counted from 1; 0 for none.
        after: whether the use is done, and only its asker does not hear of it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, *, after: bool) -> None:
        self.uses, self.lost, self.asked, self.drawn = 0, False, 0, 0
        self._at, self._after, self._begun = at, after, False
        write, reading = Books.write, Books.reading

        def written(books: Books, work: Any) -> Any:
            """Write, unless the server is lost; it may be lost afterwards. Before the first time nothing is counted."""
            self._begun = True
            self._lose(before=True)
            told = write(books, work)
            self._lose(before=False)
            return told

        @contextmanager
        def read(books: Books) -> Iterator[Any]:
            """Read, unless the server is lost."""
            self._lose(before=True)
            with reading(books) as connection:
                yield connection
            self._lose(before=False)

        monkeypatch.setattr(Books, "write", written)
        monkeypatch.setattr(Books, "reading", read)
        for way in WAYS:
            monkeypatch.setattr(Door, way, self._noted(getattr(Door, way)))
        settle = transaction._Work._settle
        monkeypatch.setattr(transaction._Work, "_settle", self._settled(settle))

    def _lose(self, *, before: bool) -> None:
        """Count a use; lose the server at the one that was told."""
        self.uses += before and self._begun
        self.lost = self.lost or (self.uses == self._at and before != self._after)
        if self.lost:
            raise LedgerLost("the ledger's server cannot be reached, or was lost")

    def _noted(self, honest: Any) -> Any:
        """Note at which use the engine is asked first."""

        def asked(*given: Any) -> Any:
            told = honest(*given)
            self.asked = self.asked or self.uses
            return told

        return asked

    def _settled(self, honest: Any) -> Any:
        """Note after which use all was drawn."""

        def settled(*given: Any) -> Any:
            self.drawn = self.drawn or self.uses
            return honest(*given)

        return settled


def swept(monkeypatch: pytest.MonkeyPatch, kind: str, *, after: bool) -> list[list[str]]:
    """Ask with the server lost at each of the uses in turn, and again when it is back; return how entries ended."""
    monkeypatch.setattr(patience, "PATIENCE_S", -1.0)
    told, at = [], 0
    while True:
        at += 1
        with opened() as session, monkeypatch.context() as patched:
            losing = Losing(patched, at, after=after)
            try:
                KINDS[kind](session)
            except LedgerLost:
                told.append(again(session, losing, kind, at))
                continue
        return told


def again(session: Session, losing: Losing, kind: str, at: int) -> list[str]:
    """Ask again when the server is back; nothing is open, and only what was begun and not ended is charged apart."""
    begun, drawn = bool(losing.asked), bool(losing.drawn)
    losing.lost, losing._at = False, 0
    answer = KINDS[kind](session)
    assert not session.status()["open"], at
    entries = [entry for entry in session.history() if entry.charged]
    if drawn or not begun:
        assert ["settled"] * len(entries) == [entry.state for entry in entries], (at, drawn)
        assert len(entries) == len({entry.question for entry in entries}), at
    if drawn and len(entries) == 1:
        assert not answer.paid, at
    session.verify()
    return [str(entry.state) for entry in session.history()]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=TIERS.get(kind, pytest.mark.slow)) for kind in KINDS])
def test_a_server_that_is_lost_at_any_use_costs_nothing(
    kind: str, *, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the engine was asked nothing is charged; what was drawn is settled when the server is back: then free."""
    told = swept(monkeypatch, kind, after=after)
    assert len(told) >= 3
    assert any(states[0] == "settled" for states in told)


@pytest.mark.parametrize("planted", ["forgotten", "closed as failed"])
def test_an_answer_that_is_not_kept_while_its_books_are_lost_is_seen(
    planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: an answer that is forgotten, or a reservation that is failed by whoever asks next, is paid twice."""
    if planted == "forgotten":
        monkeypatch.setattr(transaction._Work, "_stored", lambda *_: False)
    else:
        monkeypatch.setattr(transaction, "_OWED", {})
        monkeypatch.setattr(transaction, "catch_up", lambda *_: transaction._OWED.clear())
    with pytest.raises(AssertionError):
        swept(monkeypatch, "count", after=False)
