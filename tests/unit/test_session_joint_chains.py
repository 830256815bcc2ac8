"""Several quantiles of one column under a pure budget: one question in the books, in plans, and when asked again."""

import numpy as np
import pytest
from unit.test_session_joint_quantiles import BY, SQL, ask, asked, opened

from farthing import Budget
from farthing.accuracy.joint_chains import ShownJointRanks
from farthing.errors import LedgerError
from farthing.mechanisms.gaussian import worst_cost
from farthing.session.answering.joint_chains import blob_of, standing_in
from farthing.session.core.records import write_blob

PURE = Budget(epsilon=50)


@pytest.fixture
def bought(monkeypatch):
    """Every farthing that is shown, by group."""
    farthings, honest = np.zeros(3, np.int64), ShownJointRanks.show

    def show(noisy, held, level, groups):
        np.add.at(farthings, groups, level - held.farthings)
        return honest(noisy, held, level, groups)

    monkeypatch.setattr(ShownJointRanks, "show", show)
    return farthings


def test_the_books_hold_what_was_shown(bought):
    """One question is charged, for the groups that pay most; a sharper one the difference, the same again nothing."""
    session = opened(PURE)
    for rank in (0.2, 0.1, 0.15):
        before = session.spent.amount
        plan = session.plan(SQL.replace("COUNT(*) AS n, ", ""), keys=BY["keys"], rank=rank, cap="all")
        answer = ask(session, rank=rank)
        assert answer.met.all()
        assert answer.paid <= plan.worst_price
        assert session.spent.amount * 2**40 == worst_cost(bought, 2)
        assert (session.spent.amount > before) is (rank != 0.15)
        assert not ask(session, rank=rank).paid
    assert asked(session) == 2


@pytest.mark.thorough
def test_together_costs_less_and_plans_as_one():
    """Quartiles together pay less than each by itself, and are named as one measurement beside a count."""
    together, alone = opened(PURE), opened(PURE)
    for q in (0.25, 0.5, 0.75):
        ask(alone, q, rank=0.1)
    ask(together, rank=0.1)
    steps = together.plan(SQL, keys=BY["keys"], rank=0.05, absolute={"n": 100}).pricing.steps

    assert together.spent.amount < 0.9 * alone.spent.amount
    assert sum("together" in step for step in steps) == 1


def test_a_cap_that_is_too_small_is_kept():
    """Nothing above the cap is charged, and what was not met is marked; a larger cap goes on from there."""
    session = opened(PURE)

    poor = ask(session, rank=0.01, cap=None, max_epsilon=0.01)
    rich = ask(session, rank=0.1)

    assert not poor.met.any()
    assert all(entry.settled <= entry.reserved for entry in session.history())
    assert rich.met.all()


def test_a_record_is_read_as_it_was_written():
    """What the ledger keeps comes back to the last bit; what is of another form is refused."""
    session = opened(PURE)
    ask(session, (0.25, 0.5, 0.75), rank=0.3)
    (question,) = {entry.question for entry in session.history()}
    standing = standing_in(session._context.ledger.load(question).blob)

    again = standing_in(blob_of(standing))

    for name in ("rounds", "levels", "places", "owners", "shown", "paid"):
        assert getattr(standing.trail, name).size
        assert np.array_equal(getattr(again.trail, name), getattr(standing.trail, name))
    with pytest.raises(LedgerError):
        standing_in(write_blob({}, {b"farthing-pure-quantiles-1": b'[[{"rank": 1}]]'}))
