"""The best of many candidates: what is told, what is not, what is charged, and refusals."""

import math
import traceback

import numpy as np
import pyarrow as pa
import pytest

from farthing import Budget, BudgetExceeded, Gdp, InvalidTarget, Pure, Session, Zcdp
from farthing.errors import InvalidBudget, InvalidOption
from farthing.mechanisms import BestOfMany
from farthing.noise.bits import seeded
from farthing.privacy import BoundedRange
from farthing.privacy.loss import Approx

TABLE = pa.table({"x": [1, 2, 3]})


class Counted:
    """A candidate that notes how often it was called, and says what it is told to."""

    def __init__(self, *said):
        self.calls, self.said = 0, said

    def __call__(self):
        self.calls += 1
        one = self.said[self.calls % len(self.said)]
        if isinstance(one, BaseException):
            raise one
        return one


@pytest.mark.parametrize(
    "said", [[(1, "a")], [ValueError("row 17")], [SystemExit(3)], [None], [(math.nan, 1)], [("5", 1)], [(10**400, 1)]]
)
def test_all_runs_are_made_whatever_they_give(said):
    """As many runs for a result as for errors, exits and scores that are none; none of these is told."""
    candidate = Counted(*said)
    found = BestOfMany(37).choose(candidate)

    assert 37 == candidate.calls
    assert (found is not None) == (said == [(1, "a")])


def test_the_first_of_the_best_that_count_is_told():
    """A run without a result is behind every other; equal scores tell the first; whole scores stay whole."""
    for seed in range(40):
        best = BestOfMany(3, "uniform").choose(
            Counted(MemoryError(), (2**60, "b"), (2**60 + 1, "c")), bits=seeded(seed)
        )
        assert best.result in {"b", "c"}
        assert best.score == 2**60 + (best.result == "c")
    runs = iter(range(9))
    assert 0 == BestOfMany(9).choose(lambda: (5, next(runs))).result


def test_an_interrupt_is_not_held_up():
    """Ctrl-C ends the runs: it is the asker's, and no result of one."""
    with pytest.raises(KeyboardInterrupt):
        BestOfMany(5).choose(Counted(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt) as told:
        BestOfMany(5).choose(Counted(KeyboardInterrupt("of one row")))
    assert ((), None, None) == (told.value.args, told.value.__cause__, told.value.__context__)


@pytest.mark.parametrize(
    "bad",
    [{"runs": 0}, {"runs": 1e3}, {"runs": 5000}, {"runs": 5, "law": "flat"}, {"runs": 5, "fading": 1}],
)
def test_what_is_no_rule_is_refused(bad):
    """Runs, a law and how it fades."""
    with pytest.raises(InvalidBudget):
        BestOfMany(**bad)


def test_prices_take_the_best_theorem():
    """Pure, by the shape; few runs by composition; many by divergences; no theorem, no price."""
    for law, times in (("uniform", 3), ("logarithmic", 2), ("steep", 1.5)):
        assert Pure(0.5 * times) == BestOfMany(100, law).price(Pure(0.5), Pure)
        assert Approx(0.5 * times, 1e-7).amount == BestOfMany(100, law).approximate(Approx(0.5, 1e-9)).amount
    assert Pure(0.5) == BestOfMany(1).price(Pure(0.5), Pure)
    assert Gdp(0.2) == BestOfMany(4).price(Gdp(0.1), Gdp)
    assert BestOfMany(4000).price(Zcdp(1e-3), Zcdp).amount < Zcdp(1e-3).amount * 400
    assert BestOfMany(100).price(BoundedRange(1), Zcdp) <= BestOfMany(100).price(Pure(1), Zcdp)
    assert BestOfMany(100).approximate(Approx(0.5, 1e-9)).slack < 16e-9
    for price in (lambda loss: BestOfMany(9).price(loss, Zcdp), BestOfMany(9).renyi):
        with pytest.raises(InvalidBudget, match="without delta"):
            price(Zcdp(0.1, 1e-9))
    with pytest.raises(InvalidBudget, match="no conversion"):
        BestOfMany(100).price(Zcdp(0.1), Pure)


@pytest.mark.parametrize(("budget", "loss"), [(Budget(epsilon=2), Pure(0.05)), (Budget(mu=1), Gdp(0.01))])
def test_a_session_charges_all_of_it_before_the_first_run(budget, loss):
    """The books know the price when a run is made, and keep it whatever the runs come to; each ask is paid."""
    with Session(TABLE, budget=budget) as session:
        charged = []

        def run():
            charged.append(session.history()[0].reserved)
            return np.float64(2.5), charged

        price = BestOfMany(60).price(loss, budget.currency)
        best = session.best_of(run, loss=loss, runs=60, name="a model", cap="all")
        none = session.best_of(Counted(ValueError("x is 3")), loss=loss, runs=60, cap="all")

        assert [price.farthings] * 60 == charged
        assert (best.score, best.result) == (2.5, charged)
        assert (none.score, none.result) == (None, None)
        assert price.farthings == best.paid.farthings == none.paid.farthings
        assert session.spent.farthings == 2 * price.farthings
        assert session.remaining == none.remaining
        assert "no result: the best of at most 60 runs" in str(none)
        assert "the best of many: a model" == session.history()[1].label


def test_nothing_told_depends_on_a_run_but_the_best():
    """Two tables, in one of which every other run fails: the books, and all that is told beside the best, are alike."""
    told = []
    for candidate in (Counted((1, 1)), Counted((1, 1), ValueError("a row")), Counted(SystemExit("a row"))):
        with Session(TABLE, budget=Budget(epsilon=2)) as session:
            best = session.best_of(candidate, loss=Pure(0.05), runs=64)
            entry = session.history()[0]
            told.append((candidate.calls, best.paid, entry.label, entry.target, entry.charged, entry.state, best.about))
    assert told[0] == told[1] == told[2]


def test_an_interrupt_stays_charged_without_its_frames():
    """Who stops the runs may have seen them: all of it is charged, and no frame of the measurement leaves."""
    with Session(TABLE, budget=Budget(epsilon=2)) as session:
        with pytest.raises(KeyboardInterrupt) as raised:
            session.best_of(Counted((1, 1), KeyboardInterrupt()), loss=Pure(0.05), runs=20)

        assert session.spent.farthings == Pure(0.1).farthings
        frames = {frame.name for frame in traceback.extract_tb(raised.value.__traceback__)}
        assert not {"choose", "_run", "__call__"} & frames


@pytest.mark.parametrize(
    ("run", "given", "error"),
    [
        (5, {}, InvalidOption),
        (lambda: (1, 1), {"loss": 0.1}, InvalidOption),
        (lambda: (1, 1), {"loss": Pure(0)}, InvalidOption),
        (lambda: (1, 1), {"loss": Approx(0.1, 1e-9)}, InvalidOption),
        (lambda: (1, 1), {"loss": Zcdp(0.1)}, InvalidBudget),
        (lambda: (1, 1), {"loss": Pure(0.3)}, InvalidTarget),
        (lambda: (1, 1), {"loss": Pure(3), "cap": "all"}, BudgetExceeded),
        (lambda: (1, 1), {"runs": 0}, InvalidBudget),
    ],
)
def test_refusals_are_free(run, given, error):
    """What is no candidate, has no price, or does not fit is refused before a run is made."""
    with Session(TABLE, budget=Budget(epsilon=2)) as session:
        with pytest.raises(error):
            session.best_of(run, **({"loss": Pure(0.01), "runs": 20} | given))
        assert not session.spent


def test_a_part_books_no_mechanism_of_the_callers_own():
    """What it reads is not cut to the part, and the price of a part is shared with the others."""
    with Session(TABLE, budget=Budget(epsilon=2)) as session:
        assert not hasattr(session.partition("x", [1, 2])[1], "best_of")
        assert hasattr(session, "best_of")
