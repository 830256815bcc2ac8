"""Losses, budgets and filters as values: order, sums, refusals, rounding."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction

import pytest

from farthing.errors import BudgetExceeded, InvalidBudget
from farthing.privacy.budget import Budget
from farthing.privacy.filters import AdditiveFilter, filter_for
from farthing.privacy.loss import BoundedRange, Gdp, Loss, Pure, Zcdp


@pytest.mark.parametrize("kind", [Gdp, Zcdp, Pure, BoundedRange])
@pytest.mark.parametrize("bad", [-1, math.inf, math.nan, -math.inf, "1", None, True])
def test_a_loss_is_a_finite_number_from_zero(kind: type[Loss], bad: object) -> None:
    """Negative, infinite, NaN and non-numbers are refused."""
    with pytest.raises(InvalidBudget):
        kind(bad)  # type: ignore[call-arg]  # that is the point


def test_losses_add_within_one_currency() -> None:
    """Mu adds in squares, rho and epsilon add; currencies do not mix."""
    assert Gdp(5) == Gdp(3) + Gdp(4)
    assert Zcdp(0.75) == Zcdp(0.5) + Zcdp(0.25)
    assert Pure(0) == Pure(1) - Pure(2)
    assert Gdp(2) * 4 == Gdp(4)
    assert Zcdp(1) > Zcdp(0.5) >= Zcdp(0.5)
    assert not Pure(0)
    with pytest.raises(InvalidBudget, match="currencies"):
        Gdp(1) + Zcdp(1)  # type: ignore[operator]  # that is the point
    with pytest.raises(InvalidBudget, match="currencies"):
        assert Pure(1) < Gdp(1)
    assert Gdp(1) != Zcdp(1)


def test_losses_are_frozen_hashable_and_pickle() -> None:
    """A loss cannot be changed, equal losses hash alike, and pickling keeps it exact."""
    loss = Gdp(Fraction(1, 3))
    with pytest.raises(AttributeError):
        loss.amount = Fraction(0)
    assert 1 == len({Gdp(1), Gdp(1)})
    assert loss == pickle.loads(pickle.dumps(loss))


def test_farthings_round_up_and_floats_too() -> None:
    """A cost of a hair more than one farthing books two."""
    assert 2 == Zcdp.of_amount(Fraction(1, 1 << 40) + Fraction(1, 1 << 70)).farthings
    assert Fraction(Gdp.of_amount(Fraction(2)).mu) ** 2 >= 2
    assert Zcdp.of_amount(Fraction(1, 3)).rho >= Fraction(1, 3)


def test_conversions_by_name() -> None:
    """The roads that exist lead somewhere safe; those that do not are refused."""
    assert 1 / 8 == BoundedRange(1).to(Zcdp).value
    assert Pure(1).to(Zcdp).value == pytest.approx(math.tanh(0.5), rel=1e-12)
    assert Gdp(1).to(Zcdp) == Zcdp(0.5)
    assert Pure(1) == BoundedRange(1).to(Pure)
    assert BoundedRange(2).to(Gdp) == Pure(1).to(Gdp)
    for loss, kind in ((Zcdp(1), Gdp), (Gdp(1), Pure), (Zcdp(1), Pure)):
        with pytest.raises(InvalidBudget, match="no conversion"):
            loss.to(kind)


def test_groups() -> None:
    """K units at once: k epsilon, k^2 rho, k mu."""
    assert Pure(3) == Pure(1).for_group(3)
    assert Zcdp(9) == Zcdp(1).for_group(3)
    assert Gdp(3) == Gdp(1).for_group(3)
    with pytest.raises(InvalidBudget):
        Gdp(1).for_group(0)


def test_epsilon_wants_a_delta_between_zero_and_one() -> None:
    """Delta 0 with a Gaussian loss, or 1, is refused."""
    for bad in (0, 1, -1, math.nan):
        with pytest.raises(InvalidBudget):
            Gdp(1).epsilon(delta=bad)


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": math.inf},
        {"epsilon": math.nan},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": 2},
        {"epsilon": 1, "delta": -1e-6},
        {"epsilon": 1, "delta": 1e-30},
        {"rho": 0},
        {"mu": -0.5},
        {"mu": 1e-12},
        {"mu": 1, "delta": 1e-6, "keys_delta": 1e-6},
        {"epsilon": 1, "keys_delta": 1e-7},
        {"epsilon": True},
        {"epsilon": "1"},
    ],
)
def test_no_budget(terms: dict[str, object]) -> None:
    """Budgets that are none are refused with the rule."""
    with pytest.raises(InvalidBudget, match="rule:"):
        Budget(**terms)  # type: ignore[arg-type]  # that is the point


def test_budget_currencies() -> None:
    """(epsilon, delta) is kept in GDP, rho in zCDP, epsilon alone in pure."""
    assert Gdp is Budget(epsilon=1, delta=1e-6).currency
    assert Gdp is Budget(mu=0.5).currency
    assert Zcdp is Budget(rho=0.5).currency
    assert Pure is Budget(epsilon=1).currency
    assert Pure is Budget(epsilon=1, delta=0).currency
    assert Budget(epsilon=1, delta=1e-6).total.epsilon(delta=1e-6) <= 1
    assert "epsilon=1, delta=1e-06" == Budget(epsilon=1, delta=1e-6).describe()


def test_keys_delta_is_set_aside() -> None:
    """Mu comes from what keys_delta leaves."""
    whole = Budget(epsilon=1, delta=1e-6)
    less = Budget(epsilon=1, delta=1e-6, keys_delta=5e-7)

    assert less.total < whole.total
    assert less.total.epsilon(delta=5e-7) <= 1


def test_max_epsilon_as_a_loss() -> None:
    """An epsilon cap means the loss that reaches it at the budget's delta."""
    budget = Budget(epsilon=1, delta=1e-6)

    assert budget.loss(1) == budget.total
    assert budget.loss(0.1) < budget.total
    assert isinstance(Budget(rho=0.1).loss(0.5), Zcdp)
    assert Pure(0.5) == Budget(epsilon=1).loss(0.5)
    with pytest.raises(InvalidBudget):
        budget.loss(0)


def test_filter_says_no_before_and_keeps_its_state() -> None:
    """The filter refuses what would pass its total, and a refusal changes nothing."""
    books = filter_for(Budget(mu=1).total).spend(Gdp(Fraction(4, 5)))

    assert books.can_spend(Gdp(Fraction(3, 5)))
    assert not books.can_spend(Gdp(0.61))
    with pytest.raises(BudgetExceeded):
        books.spend(Gdp(0.61))
    assert books.spend(Gdp(Fraction(3, 5))).remaining.amount >= 0
    assert AdditiveFilter(total=Pure(1), spent=Pure(1)).remaining == Pure(0)
