"""The books against a simple model, through settling, failing, refusing, crashing and reopening."""

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test
from sweeps import sweep

from farthing.errors import BudgetExceeded
from farthing.ledger import tables
from farthing.ledger.entry import Receipt, Terms
from farthing.ledger.store import Ledger

pytestmark = pytest.mark.thorough

BUDGET = 60
TERMS = Terms("gdp", budget=BUDGET, delta=0, keys_delta=0, unit="row", description="60 farthings")
GROUPS = 3
QUESTIONS = ("p", "q")

vectors = st.tuples(*[st.integers(0, 4)] * GROUPS)


def price(information):
    """Q for a unit in one group: the largest."""
    return max(information)


def plus(a, b):
    return tuple(x + y for x, y in zip(a, b, strict=True))


def decoded(blob):
    return (0,) * GROUPS if blob is None else tuple(json.loads(blob))


@dataclass
class Ask:
    """One ask in the model: what it saw stored, the most it may measure, and what it was charged."""

    receipt: Receipt
    seen: tuple[int, ...]
    most: tuple[int, ...]
    charged: int
    out: tuple[int, ...]


class Books(RuleBasedStateMachine):
    """A session's asks, priced by a real Q, beside a model that never forgets a measurement."""

    asks = Bundle("asks")

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "a.ledger"
        self.ledger = Ledger.open(self.path, TERMS)
        self.model: list[Ask] = []
        self.loaded = dict.fromkeys(QUESTIONS)

    def teardown(self):
        self.ledger.close()
        shutil.rmtree(self.folder)

    @rule(question=st.sampled_from(QUESTIONS))
    def load(self, question):
        """Look at what is stored, as a session does before it prices a question; later asks may be stale."""
        self.loaded[question] = self.ledger.load(question)

    @rule(target=asks, question=st.sampled_from(QUESTIONS), most=vectors)
    def reserve(self, question, most):
        stored = self.loaded[question]
        version, seen = (0, decoded(None)) if stored is None else (stored.version, decoded(stored.blob))
        increase, fresh, before = price(plus(seen, most)) - price(seen), price(most), self.ledger.spent
        facts = {"increase": increase, "fresh": fresh, "question": question, "version": version, "label": question}
        if before + fresh > BUDGET and before + increase > BUDGET:
            with pytest.raises(BudgetExceeded):
                self.ledger.reserve(**facts)
            assert before == self.ledger.spent
            return None
        try:
            receipt = self.ledger.reserve(**facts)
        except BudgetExceeded:  # only the fresh price may have been too much
            assert before + fresh > BUDGET
            return None
        assert receipt.reserved == (increase if receipt.exclusive else fresh)
        ask = Ask(receipt, seen, most, receipt.reserved, most)  # until it is settled, all of it may be out
        self.model.append(ask)
        return ask

    @rule(ask=consumes(asks), cut=vectors, alone=st.booleans())
    def settle(self, ask, cut, alone=False):
        """Settle what was used; `alone` stores as little as is allowed: no measurement that was charged fresh."""
        if ask is None:
            return
        used = tuple(min(a, b) for a, b in zip(ask.most, cut, strict=True))
        amount = price(plus(ask.seen, used)) - price(ask.seen) if ask.receipt.exclusive else price(used)
        before = self.ledger.load(ask.receipt.question)

        def merge(blob):
            if alone:
                return json.dumps(plus(ask.seen, used) if ask.receipt.exclusive else decoded(blob)).encode()
            return json.dumps(plus(decoded(blob), used)).encode()

        self.ledger.settle(ask.receipt, amount, merge)
        after = self.ledger.load(ask.receipt.question)
        assert (0 if before is None else before.version) + 1 == after.version
        ask.charged, ask.out = amount, used

    @rule(ask=consumes(asks))
    def fail(self, ask):
        if ask is not None:
            self.ledger.fail(ask.receipt)

    @rule(ask=consumes(asks))
    def withdraw(self, ask):
        """Give a reservation back under which nothing was measured."""
        if ask is not None:
            self.ledger.withdraw(ask.receipt)
            ask.charged, ask.out = 0, (0,) * len(ask.out)

    @rule(ask=consumes(asks))
    def die(self, ask):
        """Forget a receipt, as a killed process does: the reservation stays open for good."""

    @rule()
    def reopen(self):
        self.ledger.close()
        self.ledger = Ledger.open(self.path, TERMS)

    @invariant()
    def books_are_the_model(self):
        """The total is the model's, within the budget, and the entries agree."""
        assert sum(ask.charged for ask in self.model) == self.ledger.spent <= BUDGET
        assert [ask.charged for ask in reversed(self.model)] == [entry.charged for entry in self.ledger.history()]
        self.ledger.verify()

    @invariant()
    def nothing_is_undercharged(self):
        """What was charged for a question covers Q of everything that may have been seen of it."""
        for question in QUESTIONS:
            asks = [ask for ask in self.model if ask.receipt.question == question]
            out = decoded(None)
            for ask in asks:
                out = plus(out, ask.out)
            assert price(out) <= sum(ask.charged for ask in asks), f"{question} is undercharged"


SETTINGS = settings(
    max_examples=sweep(15, 30),
    stateful_step_count=25,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


def test_books_match_the_model():
    """Through any sequence of asks, the books are the model's and no question is undercharged."""
    run_state_machine_as_test(Books, settings=SETTINGS)


@pytest.mark.slow
def test_books_match_the_model_at_length():
    """The same, over many and longer sequences."""
    run_state_machine_as_test(Books, settings=settings(SETTINGS, max_examples=150, stateful_step_count=60))


def two_at_once(books):
    """Two asks sharpen the same measurement at the same time."""
    return [books.reserve("q", (0, 1, 0)), books.reserve("q", (0, 1, 0))]


def one_stale(books):
    """An ask sharpens what another has sharpened since it looked."""
    first = books.reserve("q", (0, 1, 0))
    books.settle(first, (0, 1, 0))
    return [books.reserve("q", (0, 1, 0))]


def run(course):
    """Store (1, 0, 0), then let asks add twice (0, 1, 0): each adds nothing to the largest, both together add one."""
    books = Books()
    try:
        books.settle(books.reserve("q", (1, 0, 0)), (1, 0, 0))
        books.load("q")
        for ask in course(books):
            books.settle(ask, (0, 1, 0))
        books.nothing_is_undercharged()
    finally:
        books.teardown()


@pytest.mark.parametrize(
    ("course", "name", "planted"),
    [(two_at_once, "others", sa.literal(value=False)), (one_stale, "version", sa.literal(1))],
)
def test_forgetting_half_the_pricing_rule_is_caught(monkeypatch, course, name, planted):
    """A ledger that charges the increase beside an unsettled ask, or over a stale version, undercharges; ours not."""
    run(course)
    columns = {column.name: column for column in tables.STANDING.selected_columns}
    monkeypatch.setattr(tables, "STANDING", sa.select(*(columns | {name: planted.label(name)}).values()))
    with pytest.raises(AssertionError, match="undercharged"):
        run(course)
