"""Plans: prices before anything is paid, caps, and what would fit."""

from fractions import Fraction

import pytest
from rides import BY, KEYS, opened

from farthing import Bounds, Budget, BudgetExceeded, Gdp, InvalidTarget, Pure, Zcdp
from farthing.accuracy.stored_promise import StoredPromise
from farthing.errors import OutOfReach
from farthing.rounding import FARTHING

ONE = float(FARTHING)


@pytest.fixture
def session():
    """A session on the rides, books in memory."""
    with opened() as asked:
        yield asked


def test_plan_spends_nothing_and_touches_no_data(session, monkeypatch):
    """Pricing asks no engine for counts and books nothing."""
    from farthing.engines.duck.engine import DuckDBEngine

    monkeypatch.setattr(DuckDBEngine, "measure", lambda *_: pytest.fail("touched the data"))
    plan = session.plan("SELECT k, COUNT(*) FROM data GROUP BY k", keys=KEYS, relative=0.1, absolute=50)

    assert plan.fits
    assert not session.spent
    assert [] == session.history()


def test_the_plan_of_sql_and_of_a_method_agree(session):
    """One question, one price."""
    text = session.plan("SELECT k, COUNT(*) FROM data WHERE x < 5 GROUP BY k", keys=KEYS, relative=0.1, absolute=50)
    method = session.plan(**BY, where="x < 5", relative=0.1, absolute=50)

    assert text.to_dict() == method.to_dict()


def test_the_worst_price_is_what_an_empty_group_pays(session):
    """A group of nobody goes to the floor: what is paid is the worst price, in whole farthings."""
    plan = session.plan("SELECT COUNT(*) FROM data WHERE x > 99", absolute=50)

    assert (
        plan.worst_price.farthings == session.sql("SELECT COUNT(*) FROM data WHERE x > 99", absolute=50).paid.farthings
    )


def test_nobody_pays_more_than_the_worst_price(session):
    """Whatever the groups turn out to be."""
    ask = BY | {"relative": 0.1, "absolute": 20}
    worst = session.plan(**ask).worst_price

    assert session.count(**ask).paid.farthings <= worst.farthings


def test_prices_fall_with_size(session):
    """Larger groups pay less, and a group at the floor pays the worst price."""
    plan = session.plan(**BY, relative=0.1, absolute=50)
    paid = [row["paid"] for row in plan.prices]

    assert paid == sorted(paid, reverse=True)
    assert plan.worst_price.mu == pytest.approx(paid[0], rel=1e-9)
    assert 100 == pytest.approx(paid[0] / paid[4] / (10_000 * 0.1 / 50) * 100, rel=1e-3)


def test_a_plan_after_an_answer_is_free(session):
    """What was released answers again; the plan says so."""
    session.count(**BY, absolute=50)
    plan = session.plan(**BY, absolute=60)

    assert plan.free
    assert not plan.worst_price
    assert "already paid for: free" in str(plan)


def test_a_plan_of_a_refine_is_the_difference(session):
    """The finer question's plan charges what is added."""
    fresh = session.plan(**BY, absolute=30).worst_price
    coarse = session.count(**BY, absolute=60).paid

    assert float((fresh - coarse).amount) == pytest.approx(
        float(session.plan(**BY, absolute=30).worst_price.amount), abs=2 * ONE
    )


def test_a_plan_is_text_and_json(session):
    """The printed plan has the price, the cap, the prices by size; the dictionary is plain."""
    import json

    plan = session.plan(**BY, relative=0.1, absolute=50)
    text = str(plan)

    assert all(word in text for word in ("worst price", "cap", "left", "half-width", "1,000,000", "privacy unit"))
    assert json.loads(json.dumps(plan.to_dict())) == plan.to_dict()


def test_what_the_plan_says_of_an_unreachable_target(session):
    """Not reachable, with the absolute error that the cap allows; that one is reachable."""
    plan = session.plan(**BY, relative=0.1)
    width = float(plan.advice.split("absolute=")[1].split()[0].rstrip(";,"))

    assert not plan.reachable
    assert session.plan(**BY, relative=0.1, absolute=width).reachable
    assert plan.half_width <= width <= 1.2 * plan.half_width


def test_a_refused_question_costs_nothing_and_says_what_fits(session):
    """It closes nothing either: what it says would fit does fit."""
    session.count(absolute=2.2, cap="all")
    spent, entries = session.spent, session.history()

    with pytest.raises(BudgetExceeded, match="it would fit") as refusal:
        session.count(where="x < 5", absolute=2.2, cap=Gdp(1))

    assert (spent, entries) == (session.spent, session.history())
    assert refusal.value.needed > refusal.value.left == session.remaining
    width = float(refusal.value.next_step.split("+/-")[1].split()[0])
    assert session.count(where="x < 5", absolute=width, cap=Gdp(1)).met


def test_default_cap_is_a_tenth(session):
    """Unless told otherwise, a question uses at most a tenth of the budget (of its additive amount)."""
    answer = session.count(**BY, absolute=1, on_miss="spend")

    assert not answer.met.any()
    assert Fraction(99, 1000) < answer.paid.amount < Fraction(1, 10) + FARTHING


def test_the_whole_budget_if_you_say_so(session):
    """cap="all" may spend everything."""
    session.count(absolute=1, cap="all", on_miss="spend")

    assert session.remaining < Gdp(0.01)


def test_a_cap_is_close(session):
    """A loss as cap, or a most epsilon, is what an unreachable target spends."""
    capped = session.count(**BY, absolute=1, cap=Gdp(0.2), on_miss="spend")
    limited = session.count(**BY, absolute=1, max_epsilon=0.5, where="x < 5", on_miss="spend")

    assert 0.2 == pytest.approx(capped.paid.mu, rel=1e-6)
    assert 0.5 == pytest.approx(limited.paid.epsilon(1e-6), rel=1e-3)


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(mu=1), {"absolute": 1, "cap": Gdp(0.2)}),
        (Budget(mu=1), {"loss": Gdp(0.3)}),
        (Budget(mu=1), {"absolute": 1}),
        (Budget(rho=1), {"absolute": 1, "cap": Zcdp(0.05)}),
        (Budget(epsilon=1), {"loss": Pure(0.3)}),
        (Budget(epsilon=1), {"absolute": 1}),
    ],
)
def test_a_limit_is_never_passed(budget, limit):
    """What a question may cost at most is a promise: it rounds down."""
    session = opened(budget=budget)
    named = limit.get("cap") or limit.get("loss")
    most = budget.total.amount / 10 if named is None else named.amount

    assert session.count(**BY, **limit, on_miss="spend").paid.amount <= most


def test_refining_within_all_that_is_left(session):
    """cap="all" after a cap spends what is left on top of what the question has."""
    capped = session.count(absolute=1.9, cap=Gdp(0.5), on_miss="spend")
    whole = capped.refine(cap="all")

    assert not capped.met
    assert 4 == pytest.approx(((capped.upper - capped.lower) / (whole.upper - whole.lower)) ** 2, rel=0.01)
    assert session.remaining < Gdp(0.01)


def test_a_unit_pays_for_all_its_groups():
    """K groups and c rows in each cost K c^2 times a row's price."""
    row, unit = opened(), opened(unit="u", bounds=Bounds(max_groups=2, max_rows=3))
    row.count(**BY, absolute=100)
    unit.count(**BY, absolute=100)

    assert 18 == pytest.approx(float(unit.spent.amount / row.spent.amount), rel=1e-6)


@pytest.mark.parametrize("loss", [Zcdp(0.1), Pure(0.1)])
def test_limits_are_in_the_currency_of_the_books(session, loss):
    """A cap or loss in another currency is refused: there is no road, or a lossy one."""
    for how in ({"absolute": 50, "cap": loss}, {"loss": loss}):
        with pytest.raises(InvalidTarget, match="another currency"):
            session.plan(**how)


def test_a_loss_that_is_too_large_is_refused():
    """A named loss is what is paid, or it is refused; it is never cut in silence."""
    session = opened(budget=Budget(mu=20))
    with pytest.raises(InvalidTarget, match="more than one question can hold"):
        session.count(loss=Gdp(15))

    assert not session.spent
    assert 7 == pytest.approx(session.count(loss=Gdp(7)).paid.mu)


KEPT = StoredPromise(relative=0.1, absolute=50.0, floor=50.0, beta=0.05, critical=2.0, grains=1 << 50)


@pytest.mark.parametrize(
    ("covered", "relative", "absolute", "beta"),
    [
        (True, 0.1, 50.0, 0.05),
        (True, 0.2, 50.0, 0.05),
        (True, 0.1, 60.0, 0.05),
        (True, 0.1, 50.0, 0.1),
        (False, 0.05, 50.0, 0.05),
        (False, 0.0, 50.0, 0.05),
        (False, 0.1, 49.0, 0.05),
        (False, 0.1, 0.0, 0.05),
        (False, 0.1, 50.0, 0.04),
    ],
)
def test_what_a_kept_promise_covers(covered, relative, absolute, beta):
    """A looser target in every part, and none that is tighter in one."""
    assert covered is KEPT.covers(relative, absolute, beta, limit=1 << 60)


def test_a_capped_promise_covers_the_same_ask_under_the_same_cap():
    """Asked again under a cap that is no larger, what was stopped by the cap stands."""
    capped = StoredPromise(relative=0.1, absolute=10.0, floor=50.0, beta=0.05, critical=2.0, grains=1 << 50)

    assert capped.covers(0.1, 10.0, 0.05, limit=1 << 50)
    assert not capped.covers(0.1, 10.0, 0.05, limit=(1 << 50) + 1)
    assert not capped.covers(0.1, 9.0, 0.05, limit=1 << 40)


def test_nothing_left_says_so(session):
    """When the budget is spent no width fits, and the plan says it before anything is asked."""
    session.count(loss=session.remaining)

    plan = session.plan(where="x < 6", absolute=50)

    assert not plan.fits
    assert "does not fit in what is left" in plan.advice


HOPELESS = {
    "count": lambda s, **how: s.count(absolute=1, **how),
    "count by group": lambda s, **how: s.count(**BY, absolute=1, **how),
    "sum": lambda s, **how: s.sum("x", lower=0, upper=10, absolute=1, **how),
    "two at once": lambda s, **how: s.sql(
        "SELECT COUNT(*) AS n, SUM(CLAMP(x, 0, 10)) AS t FROM data", absolute=1, **how
    ),
    "a count beside a mean": lambda s, **how: s.sql(
        "SELECT COUNT(*) AS n, AVG(CLAMP(x, 0, 10)) AS m FROM data", absolute=1, **how
    ),
}


@pytest.mark.parametrize("budget", [Budget(mu=1), Budget(rho=0.5), Budget(epsilon=1)])
@pytest.mark.parametrize("name", HOPELESS)
def test_a_hopeless_question_is_refused_free_in_the_words_of_its_plan(name, budget):
    """What no group can meet under its cap costs nothing: not its answer, its choice of groups or its search."""
    session, cap = opened(budget=budget), budget.currency(1e-3)
    ask = HOPELESS[name]
    with pytest.raises(OutOfReach) as refused:
        ask(session, cap=cap)

    assert 0 == session.spent.farthings
    assert [] == session.history()
    assert 'on_miss="spend"' in refused.value.next_step
    made = planned(session, name, cap)
    assert made.hopeless
    assert made.advice == refused.value.next_step


def test_hopeless_questions_pay_for_no_groups_either():
    """No search for keys and no choice of the largest is paid where no group can meet the target after it."""
    session = opened(budget=Budget(epsilon=1, delta=1e-6, keys_delta=1e-7))
    with pytest.raises(OutOfReach):
        session.count("k", keys="private", absolute=1, found_above=5_000)
    with pytest.raises(OutOfReach):
        session.most_common("k", k=1, keys=BY["keys"], absolute=1)

    assert [] == session.history()


def planned(session, name, cap):
    """Return the plan of a hopeless question."""
    text = {
        "count": "SELECT COUNT(*) AS n FROM data",
        "sum": "SELECT SUM(CLAMP(x, 0, 10)) AS t FROM data",
        "two at once": "SELECT COUNT(*) AS n, SUM(CLAMP(x, 0, 10)) AS t FROM data",
        "a count beside a mean": "SELECT COUNT(*) AS n, AVG(CLAMP(x, 0, 10)) AS m FROM data",
    }.get(name, "SELECT k, COUNT(*) AS n FROM data GROUP BY k")
    how = {"keys": BY["keys"]} if name == "count by group" else {}
    return session.plan(text, absolute=1, cap=cap, **how)


def test_a_relative_target_is_never_hopeless(session):
    """Groups that are large enough meet it."""
    assert not session.plan(relative=0.001, absolute=0.01, cap=Gdp(0.001)).hopeless


MEANS = {
    "mean": "SELECT k, AVG(CLAMP(x, 0, 10)) AS m FROM data GROUP BY k",
    "variance": "SELECT k, VARIANCE(CLAMP(x, 0, 10)) AS v FROM data GROUP BY k",
    "several": "SELECT k, COUNT(*) AS n, AVG(CLAMP(x, 0, 10)) AS m, STDDEV(CLAMP(x, 0, 10)) AS s FROM data GROUP BY k",
}


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("name", MEANS)
def test_what_depends_on_the_data_is_said_and_given_up_early(name, simultaneous):
    """The plan promises no group its target; none is met, a ninth of the cap's loss is paid, in the plan's words."""
    session, how = opened(), {"keys": KEYS, "relative": 1e-4, "simultaneous": simultaneous}
    made = session.plan(MEANS[name], **how)
    answer = session.sql(MEANS[name], **how)

    assert not made.reachable
    assert not made.hopeless
    assert "depends on what it holds" in made.advice
    assert made.advice in answer.about
    assert not answer.met.any()
    assert answer.paid.amount < made.cap.amount / 9
    assert not session.sql(MEANS[name], **how).paid
    assert session.sql(MEANS[name], **how, on_miss="spend").paid.amount > made.cap.amount / 2
