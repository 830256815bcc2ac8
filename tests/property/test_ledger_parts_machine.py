"""Allotments and parts against a simple model: every unit's own losses, and every analyst's, added up one by one."""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from farthing.errors import BudgetExceeded, LedgerError
from farthing.ledger import accounts
from farthing.ledger.entry import Receipt, Terms
from farthing.ledger.store import Ledger

pytestmark = pytest.mark.thorough

BUDGET = 60
TERMS = Terms("gdp", budget=BUDGET, delta=0, keys_delta=0, unit="row", description="60 farthings")
PARTITIONS = {"region": ("EU", "US", "AS"), "month": ("May", "June")}
PLACES = [None, *((partition, part) for partition, parts in PARTITIONS.items() for part in parts)]
OWNERS = (None, "alice", "bob")


@dataclass(frozen=True)
class Ask:
    """One ask in the model."""

    receipt: Receipt
    owner: str | None
    place: tuple[str, str] | None
    charged: int
    open: bool = True


@lru_cache(maxsize=1)
def units():
    """Give every kind of row: one part of each partition, or none of it."""
    kinds = product(*[(*[(name, part) for part in parts], None) for name, parts in PARTITIONS.items()])
    return [{place for place in kind if place} for kind in kinds]


def lost(asks, unit):
    """Return what a row lost: what was asked of everybody, and of the parts it is in."""
    return sum(ask.charged for ask in asks if ask.place is None or ask.place in unit)


def worst(asks):
    """Return the most that any row lost."""
    return max(lost(asks, unit) for unit in units())


class Parts(RuleBasedStateMachine):
    """An owner, analysts and parts that are asked in any order."""

    asks = Bundle("asks")

    def __init__(self):
        super().__init__()
        self.ledger = Ledger.open(None, TERMS)
        self.model: dict[int, Ask] = {}
        self.shares: dict[str, int] = {}

    def teardown(self):
        self.ledger.close()

    def total(self, owner=None):
        return worst([ask for ask in self.model.values() if owner is None or ask.owner == owner])

    @rule(owner=st.sampled_from(OWNERS[1:]), share=st.integers(0, BUDGET + 5))
    def allot(self, owner, share):
        spent = self.total(owner)
        if spent <= share <= spent + BUDGET - self.total():
            self.ledger.allot(owner, share)
            self.shares[owner] = share
        else:
            with pytest.raises(LedgerError, match="allotted than"):
                self.ledger.allot(owner, share)

    @rule(
        target=asks,
        owner=st.sampled_from(OWNERS),
        place=st.sampled_from(PLACES),
        amount=st.integers(0, 25),
        question=st.sampled_from("pq"),
    )
    def reserve(self, owner, place, amount, question):
        if owner is not None and owner not in self.shares:
            return None
        books = self.ledger if place is None else self.ledger.part(partition=place[0], name=place[1])
        if owner is None:
            assert books.remaining == self.room(None, place)
        facts = {"increase": amount, "fresh": amount, "question": question, "version": 0, "label": question}
        left = min(self.room(who, place) for who in {None, owner})
        if amount > left:
            with pytest.raises(BudgetExceeded) as refused:
                books.reserve(**facts, allotment=owner)
            assert left == refused.value.left
            return None
        receipt = books.reserve(**facts, allotment=owner)
        self.model[receipt.id] = Ask(receipt, owner, place, amount)
        return receipt.id

    def room(self, owner, place):
        """Return what is left to the row that lost most among those that are asked here."""
        asks = [ask for ask in self.model.values() if owner is None or ask.owner == owner]
        limit = BUDGET if owner is None else self.shares[owner]
        here = [unit for unit in units() if place is None or place in unit]
        return limit - max(lost(asks, unit) for unit in here)

    @rule(number=consumes(asks), part=st.integers(0, 100))
    def settle(self, number, part):
        if number is None:
            return
        ask = self.model[number]
        used = ask.charged * part // 100
        self.ledger.settle(ask.receipt, used, lambda _: b"x")
        self.model[number] = replace(ask, charged=used, open=False)

    @rule(number=consumes(asks))
    def fail(self, number):
        if number is not None:
            self.ledger.fail(self.model[number].receipt)

    @invariant()
    def books_are_the_model(self):
        """The total is what the worst row lost, within the budget; each analyst's likewise; each part its own."""
        assert self.ledger.spent == self.total() <= BUDGET
        held = self.ledger.allotments
        assert self.shares == {name: allotment.share for name, allotment in held.items()}
        for name, allotment in held.items():
            assert allotment.spent == self.total(name) <= allotment.share
        for partition, part in filter(None, PLACES):
            own = sum(ask.charged for ask in self.model.values() if ask.place == (partition, part))
            assert own == self.ledger.part(partition=partition, name=part).spent
        self.ledger.verify()


SETTINGS = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    print_blob=False,
)


def test_parts_and_allotments_match_the_model():
    """Through any sequence, nobody's row loses more than the ledger charged, and no share is passed."""
    run_state_machine_as_test(Parts, settings=SETTINGS)


@pytest.mark.slow
def test_parts_and_allotments_match_the_model_at_length():
    """The same, over many and longer sequences."""
    run_state_machine_as_test(Parts, settings=settings(SETTINGS, max_examples=200, stateful_step_count=50))


def overtake():
    """Let one part spend less than another, and then more."""
    parts = Parts()
    try:
        for place, amount in (("US", 20), ("EU", 15), ("EU", 10)):
            parts.reserve(None, ("region", place), amount, "p")
            parts.books_are_the_model()
    finally:
        parts.teardown()


def test_forgetting_the_part_itself_is_caught(monkeypatch):
    """A ledger that charges nothing while another part costs more, whatever this one adds, is caught; ours is not."""
    overtake()
    monkeypatch.setattr(accounts.Owner, "change", lambda purse, amount: 0 if purse.others > purse.own else amount)
    with pytest.raises(AssertionError):
        overtake()
