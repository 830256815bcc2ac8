"""What a question may cost is kept whatever stands of it, also after an ask that failed."""

import numpy as np
import pyarrow as pa
import pytest

from farthing import Bounds, Budget, Gdp, Pure, Session
from farthing.errors import BudgetExceeded, InvalidTarget

SIZES = (20, 200, 2_000, 20_000)
BY = {"by": "g", "keys": {"g": list("abcd")}}
FIRST, SHARPER = {"relative": 0.3, "absolute": 20.0}, {"relative": 0.05, "absolute": 20.0}
INNER = {Gdp: "gaussian_count.refine", Pure: "laplace_count.refine"}
BUDGETS = {Gdp: Budget(mu=1), Pure: Budget(epsilon=3)}


@pytest.fixture(scope="module")
def table():
    """Four groups of very different sizes; each unit has two rows."""
    many = sum(SIZES)
    values = np.random.default_rng(3).uniform(0, 10, many)
    return pa.table({"g": np.repeat(list("abcd"), SIZES), "u": np.arange(many) // 2, "v": values})


def opened(table, currency, groups):
    """Return a session in which a unit is in so many groups."""
    if groups == 1:
        return Session(table, budget=BUDGETS[currency], ledger=None)
    return Session(table, unit="u", bounds=Bounds(max_groups=groups, max_rows=2), budget=BUDGETS[currency], ledger=None)


def failing(monkeypatch, inner, ask):
    """Let an ask fail after its first look was begun."""
    with monkeypatch.context() as planted:
        planted.setattr(f"farthing.session.answering.{inner}", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ask()


def told(ask):
    """Return (what is told, None), or (None, the refusal)."""
    try:
        return ask(), None
    except InvalidTarget as refused:
        return None, str(refused)


@pytest.mark.thorough
@pytest.mark.parametrize("failed", [False, True], ids=["", "after a failure"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("currency", [Gdp, Pure])
def test_a_sharper_count_stays_within_its_cap(table, monkeypatch, currency, groups, failed):
    """Looks go on to where the earlier ones ended: where that may cost more than is allowed, nothing is asked."""
    session = opened(table, currency, groups)
    session.count(**BY, **FIRST, cap="all")
    if failed:
        failing(monkeypatch, INNER[currency], lambda: session.count(**BY, relative=0.01, absolute=2, cap="all"))
    for cap in map(currency, (0.02, 0.1)):
        spent = session.spent
        plan, refused = told(lambda cap=cap: session.plan(**BY, **SHARPER, cap=cap))
        answer, again = told(lambda cap=cap: session.count(**BY, **SHARPER, cap=cap))

        assert refused == again
        if refused:
            assert groups == 2 or failed
            assert session.spent == spent
        else:
            assert answer.paid <= plan.worst_price <= cap
    assert not session.count(**BY, **FIRST, cap="all").paid
    assert session.count(**BY, **SHARPER, cap="all").met.all()


@pytest.mark.parametrize(
    ("groups", "failed"), [(2, False), pytest.param(1, True, marks=pytest.mark.thorough)], ids=["", "after a failure"]
)
def test_a_cap_below_what_looks_may_come_to_is_refused(table, monkeypatch, groups, failed):
    """Where groups of a unit are at different levels, or a failure is paid, looks to the last level may cost more."""
    session = opened(table, Gdp, groups)
    session.count(**BY, **FIRST, cap="all")
    if failed:
        failing(monkeypatch, INNER[Gdp], lambda: session.count(**BY, relative=0.01, absolute=2, cap="all"))
    spent = session.spent
    with pytest.raises(InvalidTarget, match="a cap counts what a question has cost before"):
        session.count(**BY, **SHARPER, cap=Gdp(0.02))
    assert session.spent == spent


@pytest.mark.parametrize("failed", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=["", "after a failure"])
def test_what_was_released_is_free_under_any_cap(table, monkeypatch, failed):
    """Cells of another question answer this one: no cap is too small for what costs nothing, in plan and answer."""
    session, few = opened(table, Gdp, 1 if failed else 4), {"by": "g", "keys": {"g": list("abc")}}
    session.count(**few, **FIRST, cap="all")
    if failed:
        failing(monkeypatch, INNER[Gdp], lambda: session.count(**few, relative=0.01, absolute=2, cap="all"))
    refused = "a cap counts what a question has cost before"
    with pytest.raises(InvalidTarget, match=refused):
        session.plan(**few, **SHARPER, cap=Gdp(0.02))
    session.count(**BY, absolute=4, cap="all", on_miss="spend")
    spent = session.spent
    for cap in (Gdp(0.02), "all"):
        assert session.plan(**few, **SHARPER, cap=cap).free
        assert not session.count(**few, **SHARPER, cap=cap).paid
    assert session.spent == spent


@pytest.mark.thorough
def test_after_a_failure_new_measurements_alone_are_priced(table, monkeypatch):
    """What stands is gone on from, also then: only what is added has to fit in what is left."""
    session = opened(table, Gdp, 1)
    session.count(**BY, absolute=10)
    increase = session.plan(**BY, absolute=5, cap="all").worst_price
    failing(monkeypatch, "gaussian_count.refine", lambda: session.count(**BY, relative=0.001, absolute=1, cap="all"))

    assert session.plan(**BY, absolute=5, cap="all").worst_price == increase
    spent = session.spent
    assert session.count(**BY, absolute=5, cap="all").met.all()
    assert session.spent.amount - spent.amount == increase.amount


@pytest.mark.thorough
def test_a_pure_mean_that_begins_again_needs_no_more_than_its_cap(table, monkeypatch):
    """What other looks have cost is no part of a line of its own, and does not make it too dear to begin."""
    session, mean = opened(table, Pure, 1), {"value": "v", "lower": 0, "upper": 10, **BY}
    session.mean(**mean, relative=0.1, absolute=0.2, cap=Pure(2))
    failing(
        monkeypatch,
        "laplace_measures.MeasureChains.show",
        lambda: session.mean(**mean, relative=0.01, absolute=0.02, cap=Pure(2.5)),
    )
    plan = session.plan(
        "SELECT g, AVG(CLAMP(v, 0, 10)) AS m FROM data GROUP BY g", keys=BY["keys"], relative=0.05, cap=Pure(0.1)
    )
    spent = session.spent
    answer = session.mean(**mean, relative=0.05, cap=Pure(0.1))

    assert plan.worst_price <= Pure(0.1)
    assert 0 < answer.paid.value <= 0.1
    assert session.spent.value - spent.value <= 0.1
    assert not session.mean(**mean, relative=0.1, absolute=0.2, cap=Pure(2)).paid


ASKS = {
    "count": (None, {"absolute": 10}),
    "mean": ("SELECT AVG(CLAMP(v, 0, 10)) AS m FROM data", {"relative": 0.1}),
    "two kinds": ("SELECT COUNT(*) AS n, MEDIAN(CLAMP(v, 0, 10)) AS m FROM data", {"absolute": {"n": 9, "m": 1}}),
}


@pytest.mark.parametrize(
    "budget",
    [Budget(epsilon=1, delta=1e-6), pytest.param(Budget(epsilon=1), marks=pytest.mark.thorough)],
    ids=["gdp", "pure"],
)
def test_all_that_is_left_beside_an_open_ask_is_nothing(table, budget):
    """What rounding leaves answers nothing: it is refused, as the plan says, until the other ask is answered."""
    session, seen = Session(table, budget=budget, ledger=None), []
    known = session.count(absolute=50, where="v > 5")

    def nested(_):
        if seen:
            return
        spent = session.spent
        for text, target in ASKS.values():
            ask, plan = (session.count, session.plan) if text is None else (session.sql, session.plan)
            given = [] if text is None else [text]
            with pytest.raises(BudgetExceeded, match="nothing is left while other questions are answered") as refused:
                ask(*given, **target, cap="all")
            assert not plan(*given, **target, cap="all").fits
            seen.append(refused.value.next_step)
        assert session.spent == spent
        assert not session.count(absolute=50, where="v > 5", cap="all").paid

    session.count(**BY, relative=0.3, cap="all", progress=nested)

    assert known.paid
    assert len(seen) == len(ASKS)
    assert all("ask again when they are answered, the rest comes back" in told for told in seen)


def test_nothing_left_is_told_so(table):
    """Also where no other ask is open: two farthings answer nothing, but what was rounded up may be asked further."""
    session = Session(table, budget=Budget(mu=0.001), ledger=None)
    session.count(absolute=10, cap="all", on_miss="spend")
    with pytest.raises(BudgetExceeded, match="the budget is used up"):
        session.count(absolute=10, where="v > 5", cap="all", on_miss="spend")
    assert session.count(absolute=5, cap="all", on_miss="spend").paid.farthings <= 2
