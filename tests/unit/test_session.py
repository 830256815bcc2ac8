"""The Session: what an ask charges, what stays free, what is another question."""

import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from rides import BUDGET, BY, KEYS, SIZES, TABLE, opened, same

from farthing import Bounds, Budget, DataError, Gdp, LedgerMismatch, Pure, Session, Zcdp
from farthing.rounding import FARTHING


@pytest.fixture
def session():
    """A session on the rides, books in memory."""
    with opened() as asked:
        yield asked


def test_answers_are_near_the_truth(session):
    """A hundred standard deviations from nothing: the counts are those of the table."""
    answer = session.count("k", keys=KEYS, absolute=20, where="x < 5")

    assert np.array(SIZES) / 2 == pytest.approx(answer.value, abs=200)


def test_spent_is_what_was_paid(session):
    """The answer's price, the books and what remains add up."""
    answer = session.count("k", keys=KEYS, relative=0.1, absolute=20)

    assert answer.paid == session.spent
    assert BUDGET.total == session.spent + session.remaining
    assert answer.remaining == session.remaining


def test_price_of_an_absolute_target_is_the_closed_form(session):
    """z^2/a^2 of mu^2, a farthing more at most."""
    answer = session.count(absolute=50)

    price = Fraction(1.959963984540054) ** 2 / 2500
    assert 0 <= answer.paid.amount - price < price * Fraction(1, 10**5)


def test_large_groups_pay_less(session):
    """Each group stops alone: its members pay for their own size."""
    paid = session.count("k", keys=KEYS, relative=0.1, absolute=20).group_paid

    assert paid[3] < paid[2] / 2
    assert paid[0] == max(paid) <= session.spent.mu


@pytest.mark.parametrize("again", [
    lambda s: s.count("k", keys=KEYS, relative=0.1, absolute=30),
    lambda s: s.count("k", keys=KEYS, relative=0.2, absolute=60),
    lambda s: s.count("k", keys=KEYS, relative=0.1, absolute=30, confidence=0.9),
    lambda s: s.count("k", keys=KEYS, relative=0.1, absolute=30, cap="all"),
    lambda s: s.sql("SELECT k, COUNT(*) AS rides FROM data GROUP BY k", keys=KEYS, relative=0.1, absolute=30),
    lambda s: s.sql("select count(*), k from data group by 2", keys=pa.table(KEYS), relative=0.1, absolute=30),
])  # fmt: skip
def test_asking_again_is_free(session, again):
    """The same question, or a looser one, in any words, shows the same numbers free of charge."""
    first = session.count("k", keys=KEYS, relative=0.1, absolute=30)
    spent, entries = session.spent, len(session.history())

    second = again(session)

    assert np.array_equal(first.value, second.value)
    assert not second.paid
    assert [0.0] * 4 == second.group_paid.tolist()
    assert (spent, entries) == (session.spent, len(session.history()))


def test_asking_again_shows_the_same_intervals(session):
    """The very same question gives the very same answer."""
    ask = {"relative": 0.1, "absolute": 30}

    assert same(session.count(**BY, **ask), session.count(**BY, **ask))


def test_asking_again_from_another_session_is_free(tmp_path):
    """The ledger remembers: another session on its file, with the same data and name, pays nothing."""
    path = tmp_path / "a.ledger"
    with opened(ledger=path) as first:
        answer = first.count(**BY, absolute=50)
    with opened(ledger=str(path)) as second:
        again = second.count(**BY, absolute=50)

        assert same(answer, again)
        assert not again.paid
        assert answer.paid == second.spent


@pytest.mark.parametrize("other", [
    {"version": "2"},
    {"name": "other"},
])  # fmt: skip
def test_another_data_set_is_another_question(tmp_path, other):
    """A new version, or a table of another name, starts from scratch and pays."""
    path = tmp_path / "a.ledger"
    first = opened(ledger=path).count(absolute=50)
    second = opened(ledger=path, **other).count(absolute=50)

    assert first.paid == second.paid
    assert first.value != second.value


def test_another_schema_is_another_data_set(tmp_path):
    """A table with other columns starts from scratch."""
    path = tmp_path / "a.ledger"
    first = opened(ledger=path).count(absolute=50)
    wider = Session(TABLE.append_column("y", TABLE.column("x")), budget=BUDGET, ledger=path)

    assert first.paid == wider.count(absolute=50).paid


@pytest.mark.parametrize("other", [
    {"where": "x < 5"},
    {"bounds": Bounds(max_groups=2, max_rows=3)},
    {"bounds": Bounds(max_groups=1, max_rows=2)},
    {"keys": {"k": ["few", "many"]}},
])  # fmt: skip
def test_different_questions_pay(other):
    """Another filter, other bounds or other keys are another question."""
    session = opened(unit="u", bounds=Bounds(max_groups=2, max_rows=2))
    session.count(**BY, absolute=50)
    spent = session.spent

    answer = session.count(**(BY | other), absolute=50)

    assert answer.paid
    assert spent + answer.paid == session.spent


def test_bounds_beyond_the_keys_are_no_other_question():
    """More groups than there are keys changes neither truth nor price."""
    session = opened(unit="u", bounds=Bounds(max_groups=4, max_rows=2))
    session.count(**BY, absolute=50)

    assert not session.count(**BY, absolute=50, bounds=Bounds(max_groups=9, max_rows=2)).paid


@pytest.mark.parametrize("budget", [Budget(mu=1), Budget(rho=0.5), Budget(epsilon=5, delta=1e-6)])
def test_refining_pays_the_difference(budget):
    """Groups at the floor have paid, after a refine, exactly what the finer target costs at once."""
    direct, stepwise = opened(budget=budget), opened(budget=budget)
    finer = direct.count(**BY, absolute=40)
    coarse = stepwise.count(**BY, absolute=100)
    refined = coarse.refine(absolute=60).refine(absolute=40)

    assert 0 <= stepwise.spent.farthings - direct.spent.farthings <= 2  # each ask rounds up to whole farthings
    assert refined.paid < finer.paid
    assert np.allclose(finer.upper - finer.lower, refined.upper - refined.lower)


def test_refining_next_week(tmp_path):
    """Another session asks the finer question and pays the difference."""
    path = tmp_path / "a.ledger"
    opened(ledger=path).count(**BY, absolute=100)
    later = opened(ledger=path)
    later.count(**BY, absolute=40)

    assert later.spent.mu == pytest.approx(1.959964 / 40, rel=1e-5)


def test_refining_keeps_what_is_not_changed(session):
    """Target, confidence, cap and on_miss carry over."""
    coarse = session.count(**BY, relative=0.2, absolute=100, confidence=0.9, cap="all")
    fine = coarse.refine(absolute=50)

    assert (0.2, 50, 0.9) == (fine.target.relative, fine.target.absolute, fine.confidence)
    assert fine.upper[0] - fine.lower[0] < 101


def test_refining_looser_is_free(session):
    """A refine to less is the stored answer."""
    answer = session.count(**BY, absolute=50)

    assert not answer.refine(absolute=80).paid


@pytest.mark.parametrize(("budget", "loss"), [
    (Budget(mu=1), Gdp(0.3)),
    (Budget(rho=1), Zcdp(0.05)),
    (Budget(epsilon=1), Pure(0.3)),
])  # fmt: skip
def test_a_named_loss_is_paid(budget, loss):
    """The classic way: name the price, see the accuracy."""
    session = opened(budget=budget)
    answer = session.count(**BY, loss=loss)

    assert answer.target is None
    assert answer.met.all()
    assert 0 == pytest.approx(float(session.spent.amount - loss.amount), abs=float(FARTHING))
    assert "at the loss you named" in repr(answer)


def test_simultaneous_is_wider_or_dearer(session):
    """All groups at once costs more than each by itself."""
    alone = session.count(**BY, absolute=50, confidence=0.95)
    together = session.count(**BY, absolute=50, confidence=0.95, simultaneous=True)

    assert together.paid
    assert session.spent > alone.paid
    assert "for all groups at once" in repr(together)


def test_a_pure_budget_answers_absolute_targets():
    """One look of two-sided geometric noise: whole numbers, epsilon booked."""
    session = opened(budget=Budget(epsilon=1))
    answer = session.count(**BY, absolute=50)

    assert np.array_equal(answer.value, np.rint(answer.value))
    assert isinstance(session.spent, Pure)
    assert {50.0} == set(answer.upper - answer.value)
    assert 0.05 < session.spent.epsilon() < 0.07


def test_a_pure_budget_refines():
    """Large groups stop early and pay less; a relative target is met by all."""
    session = opened(budget=Budget(epsilon=1))
    answer = session.count(**BY, relative=0.1, absolute=50)

    assert answer.met.all()
    assert session.spent.value == max(answer.to_pandas()["paid"])


def test_asking_again_is_free_under_a_pure_budget():
    """Whatever was asked in between, a question that was answered stays free."""
    session = opened(budget=Budget(epsilon=10))
    session.count(absolute=10, confidence=0.99)
    session.count(absolute=8, confidence=0.5)

    assert not session.count(absolute=10, confidence=0.99).paid


def test_an_engine_that_fails_keeps_the_charge(session, monkeypatch):
    """No refund after a reservation: an error is an output. The message says nothing of rows."""
    from farthing.engines.duck.engine import DuckDBEngine
    from farthing.engines.engine import engine_failed

    def fail(*_):
        raise engine_failed()

    worst = session.plan(**BY, absolute=50).worst_price
    with monkeypatch.context() as planted:
        planted.setattr(DuckDBEngine, "measure", fail)
        with pytest.raises(DataError, match="the engine could not finish"):
            session.count(**BY, absolute=50)

    assert worst.farthings == session.spent.farthings
    assert "failed" == session.history()[0].state
    assert (
        worst.farthings == session.count(**BY, absolute=50).paid.farthings
    )  # nothing was shown, so the whole price again


def test_an_error_of_the_callback_keeps_the_charge(session):
    """Noise was drawn when the progress function failed."""

    def fail(_):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        session.count(**BY, relative=0.1, absolute=50, progress=fail)

    assert "failed" == session.history()[0].state
    again = session.plan(**BY, relative=0.1, absolute=50)
    assert 0 < session.spent.farthings < again.fresh_price.farthings == again.worst_price.farthings


def test_progress_is_told(session):
    """The callback sees looks rising from 1, done groups never falling, all done at the end."""
    seen = []
    session.count(**BY, relative=0.1, absolute=20, progress=seen.append)

    assert list(range(1, len(seen) + 1)) == [progress.look for progress in seen]
    assert 4 == seen[-1].done == seen[-1].groups
    assert [p.done for p in seen] == sorted(p.done for p in seen)


def test_a_table_without_rows_answers():
    """Zero rows are a legal data set."""
    session = Session(TABLE.slice(0, 0), budget=BUDGET)

    assert [0] * 4 == pytest.approx(session.count(**BY, absolute=50).value.tolist(), abs=500)
    assert 0 == pytest.approx(session.count(absolute=50).value, abs=500)


def test_nobody_is_no_unit():
    """Rows whose unit is NULL are left out; NULL is a key only where it is listed."""
    rows = {"k": ["a"] * 3_000 + [None] * 3_000 + ["a"] * 3_000, "u": [*range(6_000)] + [None] * 3_000}
    session = Session(pa.table(rows), unit="u", bounds=Bounds(max_groups=1, max_rows=1), budget=BUDGET)

    assert [3000] == pytest.approx(session.count("k", keys={"k": ["a"]}, absolute=50).value.tolist(), abs=500)
    assert [3000, 3000] == pytest.approx(
        session.count("k", keys={"k": ["a", None]}, absolute=50).value.tolist(), abs=500
    )
    assert 6000 == pytest.approx(session.count(absolute=50).value, abs=500)


def test_a_unit_column_says_what_its_numbers_are_about():
    """One line: whose presence is hidden, and what the bounds keep."""
    session = opened(unit="u", bounds=Bounds(max_groups=2, max_rows=3))

    about = session.count(**BY, absolute=50).about

    assert re.search(r"each u counts in at most 2 groups.* at most 3 rows in each", about)


def test_a_ledger_is_kept_to_its_terms(tmp_path):
    """Opening it with another unit or budget is refused, and says what differs."""
    path = tmp_path / "a.ledger"
    opened(ledger=path)

    for other in ({"budget": Budget(mu=2)}, {"budget": Budget(rho=0.5)}, {"unit": "u"}):
        with pytest.raises(LedgerMismatch, match=r"unit|budget|currency"):
            opened(ledger=path, **other)


def test_books_in_memory_say_so(session):
    """Without a ledger file the answer says that nothing outlives the session."""
    assert "books in memory only" in session.count(absolute=50).about
    assert "books in memory only" in repr(session)


def test_status_and_history_are_plain(session):
    """The state of the books, and every entry with its label."""
    session.count(**BY, absolute=50, where="x < 5")
    status = session.status()

    assert "row" == status["unit"]
    assert session.spent.mu == status["spent"]["mu"]
    assert [] == status["open"]
    assert "COUNT(*) AS count FROM data WHERE x < 5 BY k [4 groups]" == session.history()[0].label
    assert "within 50, 0.95" == session.history()[0].target
