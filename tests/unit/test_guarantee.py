"""What the books promise to groups of units."""

from functools import lru_cache
from itertools import combinations_with_replacement

import pyarrow as pa
import pytest

from farthing import Bounds, Budget, Gdp, InvalidBudget, InvalidTarget, Pure, Session, Zcdp
from farthing.mechanisms import Asinh, LinearLog
from farthing.planning.relative_count import RelativeNoise
from farthing.session import Guarantee
from farthing.session.guarantee import together

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


RELATIVE = {"relative": 0.1, "absolute": 20, "cap": "all"}
BY_X = {"by": "x", "keys": {"x": [1, 2]}}


@pytest.mark.parametrize("budget", [Budget(mu=8), Budget(rho=32)])
@pytest.mark.parametrize("group", [1, 3])
def test_members_of_large_groups_lose_less(budget, group):
    """Relative releases count at the size, in all groups of a unit; everything else as it was charged."""
    with opened(budget, unit="u", bounds=Bounds(max_groups=2, max_rows=1)) as session:
        refined = session.count(absolute=50).paid
        kind = type(refined)
        released = [session.count(**BY_X, **RELATIVE, mechanism=name) for name in ("asinh", "linear-log", "asinh")]
        policies = [session.plan(**BY_X, **RELATIVE, mechanism=name).pricing.noise.policy for name in ("asinh",
                    "linear-log")]  # fmt: skip
        promise = session.guarantee(group, size=5_000)
        expected = refined.for_group(group).amount + 2 * sum(
            policy.for_group(group).loss(5_000, kind).amount for policy in policies
        )

        assert not released[2].paid
        assert float(expected) == pytest.approx(float(promise.loss.amount), rel=1e-9)
        assert promise.loss < session.guarantee(group, of="spent").loss
        assert (5_000, "spent") == (promise.size, promise.of)
        assert promise.loss.epsilon(1e-6) == promise.epsilon
        assert "if every group that a relative-noise release counted them in has at least 5,000 in it" in str(promise)


def test_the_smallest_size_is_the_plain_promise():
    """At size 1 nothing is won, and larger sizes never lose more."""
    with opened(Budget(mu=8)) as session:
        session.count(**BY_X, **RELATIVE, mechanism="asinh")
        losses = [session.guarantee(size=size).loss for size in (1, 10, 100, 10**6, 2**52)]

        assert losses[0].amount == pytest.approx(float(session.spent.amount), rel=1e-9)
        assert losses == sorted(losses, reverse=True)
        assert losses[-1] < losses[0]


def test_every_release_counts_at_its_own_noise():
    """A sharper release that replaced a coarser one did not undo it: both count, with what each was drawn with."""
    with opened(Budget(mu=8)) as session:
        first = session.count(**BY_X, **RELATIVE, mechanism="linear-log")
        one = session.guarantee(size=10_000).loss
        first.refine(relative=0.05, absolute=10)
        both = session.guarantee(size=10_000).loss

    assert 5 == pytest.approx(float(both.amount / one.amount), rel=0.02)  # 1 + (0.1 / 0.05)^2


def test_parts_count_at_their_maximum():
    """A unit is in one part, so of several parts the one that spent most at this size counts."""
    table = pa.table({"u": range(400), "z": ["a", "b"] * 200, "x": [1, 2, 2, 1] * 100})
    with Session(table, budget=Budget(mu=8)) as session:
        parts = session.partition("z", ["a", "b"])
        parts["a"].count(**BY_X, **RELATIVE, mechanism="linear-log")  # expensive for small groups, cheap for large ones
        cheap = session.guarantee(size=10**6).loss
        refined = parts["b"].count(absolute=60)
        outside = session.count(absolute=60)

        assert cheap < refined.paid < session.guarantee(size=1).loss
        assert refined.paid + outside.paid == session.guarantee(size=10**6).loss


def test_other_ledgers_have_no_size():
    """Without relative releases the size changes nothing; a pure ledger has none of them."""
    for budget in (Budget(mu=1), Budget(epsilon=2)):
        with opened(budget) as session:
            session.count(absolute=30)

            assert session.guarantee(2, of="spent").loss == session.guarantee(2, size=10**6).loss
    with opened(Budget(epsilon=2)) as session, pytest.raises(InvalidTarget):
        session.count(**BY_X, **RELATIVE, mechanism="asinh")


def test_keys_that_were_found_keep_their_delta():
    """What a search for keys spent of delta is not spent again on epsilon; several members then have no size."""
    table = pa.table({"k": ["a"] * 5_000 + ["b"] * 9_000})
    for budget in (Budget(epsilon=6, delta=1e-6, keys_delta=5e-7), Budget(epsilon=6, delta=5e-7, keys_delta=5e-7)):
        with Session(table, budget=budget) as session:
            before = session.guarantee(of="spent")
            session.count("k", keys="private", absolute=500, found_above=1_000)
            spent, sized = session.guarantee(of="spent"), session.guarantee(size=1_000)

            assert 0 == before.delta + before.epsilon if isinstance(session.spent, Pure) else before.epsilon == 0
            assert budget.delta == pytest.approx(spent.delta)
            assert spent.epsilon == sized.epsilon > 0
            with pytest.raises(InvalidBudget, match="keys were found privately"):
                session.guarantee(2, size=1_000)


@pytest.mark.parametrize("how", [
    {"size": 0}, {"size": -5}, {"size": 1.5}, {"size": True}, {"size": "9"}, {"size": 2**53},
    {"size": 10, "of": "budget"}, {"size": 10, "group": 0},
])  # fmt: skip
def test_refused_sizes(how):
    """No empty group, no half member, no price by size of what is not asked yet."""
    with pytest.raises(InvalidBudget):
        opened(Budget(mu=0.5)).guarantee(**how)


def costliest(noise, size, group, kind):
    """Return the most expensive way to spread `group` units over groups, each in at most max_groups of them."""

    @lru_cache
    def squared(many):
        return noise.policy.for_group(many).loss(size, kind).amount

    most = 0
    for used in range(1, group * noise.max_groups + 1):
        for shares in combinations_with_replacement(range(1, group + 1), used):
            if sum(shares) <= group * noise.max_groups:
                most = max(most, sum(map(squared, shares)))
    return most


@pytest.mark.parametrize("size", [1, 4, 60])
@pytest.mark.parametrize(("mechanism", "x0"), [(Asinh, 0.5), (Asinh, 40.0), (LinearLog, 3.0)])
def test_several_units_are_covered_however_they_are_spread(mechanism, x0, size):
    """The bound is never below the most expensive of all ways, tried one by one, and at most twice it."""
    noise = RelativeNoise("any", mechanism(0.1, x0), 0.1, 5.0, 0.05, sensitivity=2, max_groups=2)
    for group in (1, 2, 4):
        dearest, bound = costliest(noise, size, group, Zcdp), together(noise, size, group, Zcdp)

        assert dearest <= bound <= 2 * dearest


def test_all_in_one_group_is_not_always_the_dearest():
    """The planted mistake: k units in the same groups cost less than k units in different small ones."""
    noise = RelativeNoise("asinh", Asinh(0.1, 0.5), 0.1, 5.0, 0.05, sensitivity=1, max_groups=2)

    assert 2 * noise.policy.for_group(6).loss(1).amount < costliest(noise, 1, 6, Zcdp)


def test_very_many_units_are_quick():
    """A million units at once: several are covered by one evaluation, at most 2 % above what each would give."""
    noise = RelativeNoise("linear-log", LinearLog(0.05, 50.0), 0.1, 5.0, 0.05, sensitivity=1, max_groups=1)
    exact = max(noise.policy.for_group(m).loss(10_000).amount / m for m in range(1, 3_001)) * 3_000

    assert exact <= together(noise, 10_000, 3_000, Zcdp) <= exact * 1.02
    assert together(noise, 10_000, 10**6, Zcdp) > together(noise, 10_000, 10**5, Zcdp)
