"""Books that grow: an ask is no more work, whatever is stored, was left open or failed; free answers stay free."""

import dataclasses
import itertools
from functools import partial

import pyarrow as pa
import pytest
from work import calls_of

from farthing import Budget, Session
from farthing.errors import InvalidKeys, LedgerError
from farthing.ledger import accounts, checking, tables, tags
from farthing.ledger.chain import link
from farthing.ledger.entry import Terms
from farthing.ledger.process import Process
from farthing.ledger.store import Ledger
from farthing.planning import frame
from farthing.session.core import transaction
from farthing.session.core.records import Record, keys_to_bytes
from farthing.session.core.tags import FAMILY, MOST_GROUPS, tags_of

pytestmark = pytest.mark.thorough

ZONES = [f"z{number:03d}" for number in range(300)]
BUDGET = Budget(epsilon=1, delta=1e-6)
MANY = (20, 200)


@pytest.fixture
def session():
    """Return a session whose books are in memory."""
    with Session(pa.table({"zone": ZONES * 10, "amount": [1.0] * 3000}), budget=BUDGET) as opened:
        yield opened


def count(session, zones, absolute=2000.0):
    """Count some zones."""
    return session.count(by="zone", keys={"zone": list(zones)}, absolute=absolute)


def stored(session, many):
    """Store so many questions of one family, each of three zones, as if they had been asked."""
    ledger = session._ledger
    count(session, ZONES[:3])
    asked = session.history()[0].question
    record = Record.from_bytes(ledger.load(asked).blob)
    for number, zones in enumerate(itertools.islice(itertools.combinations(ZONES[3:], 3), many)):
        blob = dataclasses.replace(record, listed=keys_to_bytes(pa.table({"zone": zones}))).to_bytes()
        question = f"{asked[:FAMILY]}{number:032x}"
        receipt = ledger.reserve(increase=1, fresh=1, question=question, version=0, label="stored")
        ledger.settle(receipt, 1, lambda _, blob=blob: blob, tagged=lambda blob, name=question: tags_of(name, blob))


def test_an_ask_is_no_more_work_with_many_stored_questions():
    """What other questions of its family hold is found by tags: with many more of them an ask takes as many calls."""
    work = []
    for many in MANY:
        with Session(pa.table({"zone": ZONES * 10}), budget=BUDGET) as session:
            stored(session, many)
            count(session, ZONES[:3], 1900)
            work.append(calls_of(lambda session=session: count(session, ["z003", "z004", "z299"], 1800)))
    assert work[1] < 1.3 * work[0]


def test_the_index_matters(monkeypatch):
    """Planted: an index that gives every stored question makes the test above fail."""
    monkeypatch.setattr(tags, "holding", lambda connection, *_: list(
        connection.execute(tables.BEGINNING, {"first": "", "end": chr(0x10FFFF)}).scalars()))  # fmt: skip
    with pytest.raises(AssertionError):
        test_an_ask_is_no_more_work_with_many_stored_questions()


def test_the_sharpest_that_holds_all_groups_is_found(session):
    """Among many that hold some of the groups, or all of them and too roughly, the one that answers is found."""
    for number in range(20):
        count(session, (*ZONES[:4], ZONES[number + 5]), 2000)
    count(session, (*ZONES[:4], ZONES[200]), 500)
    assert not count(session, ZONES[1:4], 500).paid
    assert count(session, (ZONES[1], ZONES[201]), 500).paid
    assert count(session, ZONES[1:4], 400).paid


def test_a_question_of_many_groups_answers_one_of_few(session):
    """Questions of more groups than have tags are found by a tag of their own, for few groups and for many."""
    count(session, ZONES, 500)
    assert len(ZONES) > MOST_GROUPS
    assert not count(session, ZONES[7:9], 500).paid
    assert not count(session, ZONES[: MOST_GROUPS + 3], 500).paid


def test_what_an_older_version_stored_gets_its_tags(session):
    """Measurements without tags are tagged by the first who looks for them, and answer as all others do."""
    count(session, ZONES[:9], 500)
    with session._ledger._books.writing() as connection:
        connection.exec_driver_sql("DELETE FROM tags")
        connection.exec_driver_sql("UPDATE measurements SET tagged = 0")
    assert not count(session, ZONES[2:5], 500).paid
    with session._ledger._books.reading() as connection:
        assert 9 == connection.exec_driver_sql("SELECT count(*) FROM tags").scalar_one()


def test_parts_have_tags_of_their_own():
    """What was released of one part answers no question about another."""
    table = pa.table({"zone": ZONES * 10, "half": ["a", "b"] * 1500})
    with Session(table, budget=BUDGET) as session:
        parts = session.partition(by="half", keys=["a", "b"])
        asked = {"by": "zone", "absolute": 500}
        assert parts["a"].count(keys={"zone": ZONES[:9]}, **asked).paid
        assert parts["b"].count(keys={"zone": ZONES[:3]}, **asked).paid
        assert not parts["a"].count(keys={"zone": ZONES[:3]}, **asked).paid


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("failed", [True, False])
def test_an_ask_is_no_more_work_after_many_that_died(same, failed, monkeypatch):
    """Open and failed reservations, of the same question or of others, are not gone through one by one."""
    monkeypatch.setattr(Process, "alive", lambda _: False)
    monkeypatch.setattr(accounts, "MOST_COMPARED", 50)
    work, shown = [], []
    for many in (120, 900):
        with Session(pa.table({"amount": [1.0] * 3000}), budget=BUDGET) as session:
            session.count(absolute=900)
            ledger, asked = session._ledger, session.history()[0].question
            for number in range(many):
                question = asked if same else f"q {number}"
                left = ledger.reserve(increase=1, fresh=1, question=question, version=0, label="left")
                if failed:
                    ledger.fail(left, interrupted=True)
            work.append(calls_of(lambda session=session: session.count(absolute=800)))
            shown.append(calls_of(session.status))
    assert work[1] < 1.3 * work[0]
    assert shown[1] < 1.3 * shown[0]


def test_what_was_verified_before_is_not_hashed_again(tmp_path, monkeypatch):
    """From a head on, `verify` hashes what was written since; a head that is gone is refused."""
    terms = Terms("gdp", budget=10**6, delta=0, keys_delta=0, unit="row", description="many")
    with Ledger.open(tmp_path / "a.ledger", terms) as ledger:
        left = partial(ledger.reserve, increase=1, fresh=1, version=0, label="left")
        for number in range(30):
            ledger.settle(left(question=f"q {number}"), 1, None)
        head = ledger.verify().head
        left(question="after")
        hashed = []
        monkeypatch.setattr(checking, "link", lambda *given: hashed.append(given) or link(*given))
        ledger.verify(since=head)
        assert len(hashed) < 10
        assert ledger.verify() == ledger.verify(since=head)
        with pytest.raises(LedgerError, match="not in the chain"):
            ledger.verify(since="0" * 64)
        with ledger._books.writing() as connection:
            connection.exec_driver_sql("DROP TRIGGER reservations_refuse_update")
            connection.exec_driver_sql("UPDATE reservations SET label = 'other' WHERE question = 'after'")
        with pytest.raises(LedgerError, match="was changed"):
            ledger.verify(since=head)


def test_a_record_that_does_not_fit_is_refused_by_the_plan(session, monkeypatch):
    """Plan and ask say the same words, and nothing is charged; a mean has larger records than a count."""
    by = {"keys": {"zone": ZONES}, "absolute": 0.5}
    monkeypatch.setattr(frame, "MOST_BYTES", len(ZONES) * 60)
    assert count(session, ZONES, 500).met.all()
    spent = session.spent
    mean = ("SELECT zone, AVG(CLAMP(amount, 0, 2)) FROM data GROUP BY zone",)
    words = set()
    for method in (lambda: session.sql(*mean, **by), lambda: session.plan(*mean, **by)):
        with pytest.raises(InvalidKeys, match="too large to keep") as refused:
            method()
        words.add(str(refused.value))
    assert 1 == len(words)
    assert spent == session.spent


def test_records_are_smaller_than_they_are_taken_for(session):
    """What the ledger keeps of each group is less than what the plan counts, for every kind that has one record."""
    by = {"by": "zone", "keys": {"zone": ZONES}}
    within = {"lower": 0, "upper": 2}
    asks = {
        frame._COUNT_BYTES: lambda: count(session, ZONES, 500),
        2 * frame._LANE_BYTES + frame._OUTPUT_BYTES: lambda: session.mean("amount", **by, **within, absolute=0.9),
        frame._QUANTILE_BYTES: lambda: session.quantile("amount", 0.5, **by, **within, rank=0.4),
        2 * frame._JOINT_QUANTILE_BYTES: lambda: session.quantile("amount", (0.4, 0.6), **by, **within, rank=0.3),
    }
    for each, ask in asks.items():
        ask()
        blob = session._ledger.load(session.history()[0].question).blob
        fixed = 4000 + len(keys_to_bytes(pa.table({"zone": ZONES})))
        with pa.ipc.open_stream(blob) as stream:
            assert stream.read_all().nbytes <= each * len(ZONES) + fixed
    assert transaction.FIRST_SHARE > 1
