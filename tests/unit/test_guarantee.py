"""What the books promise to groups of units."""

import pyarrow as pa
import pytest

from farthing import Bounds, Budget, Gdp, InvalidBudget, Session, Zcdp
from farthing.session import Guarantee

TABLE = pa.table({"u": range(400), "x": range(400)})


def opened(budget, **options):
    """Open a small table."""
    return Session(TABLE, budget=budget, **options)


def test_one_unit_has_the_plain_guarantee():
    """group=1 restates the budget as it was written."""
    promise = opened(Budget(epsilon=1, delta=1e-6)).guarantee()

    assert 1 == promise.group
    assert 1 == pytest.approx(promise.epsilon, rel=1e-4)
    assert 1e-6 == promise.delta
    assert "one row" in str(promise)


@pytest.mark.parametrize(("budget", "amount"), [
    (Budget(mu=0.5), 9 * 0.25),
    (Budget(rho=0.125), 9 * 0.125),
    (Budget(epsilon=0.5), 3 * 0.5),
])  # fmt: skip
def test_groups_lose_more(budget, amount):
    """A group of k has k times mu or epsilon, k^2 times rho."""
    promise = opened(budget).guarantee(group=3)

    assert amount == pytest.approx(float(promise.loss.amount), rel=1e-6)
    assert promise.epsilon == (promise.loss.epsilon(1e-6) if promise.delta else promise.loss.value)
    assert promise.delta == (0.0 if budget.epsilon else 1e-6)


def test_what_was_spent_has_a_guarantee_of_its_own():
    """of="spent" speaks of what was released so far."""
    session = opened(Budget(mu=1))
    nothing = session.guarantee(group=2, of="spent")
    session.count(loss=Gdp(0.25))

    assert (0.0, 0.0) == (nothing.epsilon, nothing.delta)
    assert 0.5 == pytest.approx(session.guarantee(group=2, of="spent").loss.mu, rel=1e-6)
    assert "released so far" in str(session.guarantee(of="spent"))


def test_a_group_is_told_by_its_unit():
    """Rows become a user with that many rows; values of a unit column are named."""
    rows = opened(Budget(mu=0.5)).guarantee(group=20)
    planes = opened(Budget(mu=0.5), unit="u", bounds=Bounds(max_rows=1)).guarantee(group=20)

    assert "any 20 rows together, such as a user with that many" in str(rows)
    assert "any 20 values of u together" in str(planes)
    assert "one u, with all its rows" in str(opened(Budget(mu=0.5), unit="u").guarantee())


def test_delta_is_chosen():
    """Epsilon at a larger delta is smaller."""
    session = opened(Budget(rho=0.5))

    assert session.guarantee(group=2, delta=1e-3).epsilon < session.guarantee(group=2).epsilon
    assert Zcdp(2).epsilon(1e-3) == session.guarantee(group=2, delta=1e-3).epsilon


def test_a_delta_set_aside_for_keys_grows_with_the_group():
    """A budget with keys_delta falls back on the rule for (epsilon, delta): delta (e^(k eps) - 1)/(e^eps - 1)."""
    session = opened(Budget(epsilon=1, delta=1e-6, keys_delta=1e-7))
    one, two = session.guarantee(), session.guarantee(group=2)

    assert (1, 1e-6) == (pytest.approx(one.epsilon, rel=1e-4), pytest.approx(one.delta, rel=1e-9))
    assert (2, 1e-6 * (2.718281828 + 1)) == (pytest.approx(two.epsilon, rel=1e-4), pytest.approx(two.delta, rel=1e-3))
    with pytest.raises(InvalidBudget, match="cannot be chosen"):
        session.guarantee(delta=1e-5)


@pytest.mark.parametrize("how", [
    {"group": 0}, {"group": -1}, {"group": 1.5}, {"group": True}, {"group": "2"}, {"group": 2**40},
    {"of": "month"}, {"delta": 0}, {"delta": 1.5},
])  # fmt: skip
def test_refused_guarantees(how):
    """No group of zero, no half unit, no unknown promise."""
    with pytest.raises(InvalidBudget):
        opened(Budget(mu=0.5)).guarantee(**how)


def test_a_guarantee_is_a_value():
    """Equal promises are equal; nothing in them changes."""
    session = opened(Budget(mu=0.5))

    assert session.guarantee(2) == session.guarantee(group=2)
    assert isinstance(session.guarantee(), Guarantee)
    with pytest.raises(AttributeError):
        session.guarantee().group = 3
