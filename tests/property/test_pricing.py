"""Prices: a tighter question never costs less, a larger group never pays more, increases never pass fresh prices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rides import BY, KEYS, TABLE

from farthing import Bounds, Budget, Session
from farthing.accuracy.stored_promise import StoredPromise
from farthing.mechanisms.gaussian import Coin, Measured, worst_cost
from farthing.mechanisms.geometric import half_width, price_of
from farthing.privacy.loss import Gdp
from farthing.session.core.records import Record

pytestmark = pytest.mark.thorough

BUDGETS = (Budget(epsilon=1, delta=1e-6), Budget(mu=0.5), Budget(rho=0.1))
ROWS = [Session(TABLE, budget=budget) for budget in BUDGETS]
UNITS = Session(TABLE, unit="u", budget=Budget(mu=0.5))
PURE = Session(TABLE, budget=Budget(epsilon=1))

SETTLED = settings(deadline=None)

# Few relative targets and powers of two for the rest: the calibration of each takes a quarter of a second.
RELATIVE = st.sampled_from([None, 0.1, 0.2])
ABSOLUTE = st.integers(3, 9).map(lambda power: 2.0**power)
CONFIDENCE = st.sampled_from([0.9, 0.95])
WIDE = st.floats(5, 1e6)
GRAINS = st.lists(st.integers(0, 1 << 62), min_size=1, max_size=12)


def worst(session, **how):
    """Return the worst price of a question in farthings."""
    return session.plan(**({"by": "k", "keys": KEYS, "cap": "all"} | how)).worst_price.farthings


@SETTLED
@given(st.sampled_from(ROWS), WIDE, WIDE, st.floats(0.5, 0.999999), st.floats(0.5, 0.999999))
def test_a_tighter_absolute_target_never_costs_less(session, a, b, c, d):
    """Neither a smaller error nor a larger confidence is ever cheaper."""
    loose = worst(session, absolute=max(a, b), confidence=min(c, d))
    tight = worst(session, absolute=min(a, b), confidence=max(c, d))

    assert loose <= tight


@settings(SETTLED, max_examples=25)
@given(RELATIVE, ABSOLUTE, ABSOLUTE, CONFIDENCE, CONFIDENCE)
def test_a_tighter_target_never_costs_less(relative, a, b, c, d):
    """The same with a relative target beside it."""
    how = {} if relative is None else {"relative": relative}
    loose = worst(ROWS[0], absolute=max(a, b), confidence=min(c, d), **how)
    tight = worst(ROWS[0], absolute=min(a, b), confidence=max(c, d), **how)

    assert loose <= tight


@SETTLED
@given(WIDE, WIDE, st.floats(0.5, 0.999999))
def test_a_tighter_pure_target_never_costs_less(a, b, confidence):
    """Two-sided geometric noise too."""
    assert worst(PURE, absolute=max(a, b), confidence=confidence) <= worst(
        PURE, absolute=min(a, b), confidence=confidence
    )


@SETTLED
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 50), st.integers(1, 50), WIDE)
def test_wider_bounds_are_never_cheaper(groups, more_groups, rows, more_rows, absolute):
    """What hides more of a unit costs more, for one and the same error."""
    low = Bounds(max_groups=min(groups, more_groups), max_rows=min(rows, more_rows))
    high = Bounds(max_groups=max(groups, more_groups), max_rows=max(rows, more_rows))

    assert worst(UNITS, absolute=absolute, bounds=low) <= worst(UNITS, absolute=absolute, bounds=high)


@settings(SETTLED, max_examples=25)
@given(st.sampled_from(ROWS), RELATIVE, ABSOLUTE, WIDE, WIDE)
def test_larger_groups_never_pay_more(session, relative, absolute, size, other):
    """The price of a group falls with its size, from the worst price down."""
    plan = session.plan(**BY, relative=relative or 0.0, absolute=absolute)

    assert plan.price(max(size, other)) <= plan.price(min(size, other)) <= plan.price(0)
    assert plan.price(0).farthings <= plan.worst_price.farthings


@settings(SETTLED, max_examples=15)
@given(st.sampled_from(BUDGETS), st.lists(ABSOLUTE, min_size=2, max_size=4))
def test_an_increase_is_never_dearer_than_a_fresh_question(budget, targets):
    """Whatever was released before, going on costs at most what starting from scratch would, and both are kept."""
    with Session(TABLE, budget=budget) as session:
        for absolute in targets:
            plan = session.plan(**BY, absolute=absolute)
            before = session.spent
            paid = session.count(**BY, absolute=absolute, on_miss="spend").paid

            assert plan.worst_price <= plan.fresh_price
            assert paid.farthings <= plan.worst_price.farthings
            assert before + paid == session.spent


@settings(SETTLED, max_examples=15)
@given(st.lists(ABSOLUTE, min_size=1, max_size=4))
def test_detours_cost_nothing(targets):
    """Any way to the finest target pays what the finest costs alone, but for a farthing an ask."""
    with Session(TABLE, budget=BUDGETS[1]) as session:
        for absolute in targets:
            session.count(**BY, absolute=absolute, on_miss="spend")
        direct = worst(ROWS[1], absolute=min(targets), cap=None)

        assert 0 <= session.spent.farthings - direct <= len(targets)


@SETTLED
@given(GRAINS, GRAINS, st.integers(1, 12))
def test_worst_cost_is_subadditive_and_monotone(some, others, max_groups):
    """Q(S + T) <= Q(S) + Q(T), and Q grows: what the ledger's proof needs of it."""
    groups = min(len(some), len(others))
    s, t = (np.array(grains[:groups]) >> 2 for grains in (some, others))

    both = worst_cost(s + t, max_groups)
    assert max(worst_cost(s, max_groups), worst_cost(t, max_groups)) <= both
    assert both <= worst_cost(s, max_groups) + worst_cost(t, max_groups)


@SETTLED
@given(GRAINS, st.integers(1, 12))
def test_worst_cost_is_the_definition(grains, max_groups):
    """The sum of the largest, in Python's own integers."""
    assert sum(sorted(grains)[-max_groups:]) == worst_cost(np.array(grains), max_groups)


@SETTLED
@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=6), st.integers(1, 1 << 44))
def test_the_level_is_affordable_and_the_most(top, grains):
    """Raising the largest groups to the level costs at most the loss, and one more grain each would cost more."""
    coin = Coin(Gdp, max_groups=len(top), sensitivity=1)
    level = coin.level(coin.loss(grains), tuple(top))

    assert sum(max(level - has, 0) for has in top) <= grains < sum(max(level + 1 - has, 0) for has in top)


@SETTLED
@given(st.integers(1, 1 << 45), st.integers(1, 1000), st.floats(1e-9, 0.5))
def test_geometric_prices_and_widths_are_inverse(farthings, sensitivity, beta):
    """What a width costs is at most what bought it."""
    assert price_of(half_width(farthings, sensitivity, beta), sensitivity, beta) <= farthings


KEPT = st.builds(
    StoredPromise,
    relative=st.floats(0, 0.9),
    absolute=st.floats(0, 1e9),
    floor=st.floats(1e-3, 1e9),
    beta=st.floats(1e-12, 0.5),
    critical=st.floats(0.5, 10),
    grains=st.integers(1, 1 << 62),
    futility=st.floats(0, 10),
)
INT64 = st.integers(-(1 << 62), 1 << 62)


@SETTLED
@given(KEPT, st.lists(st.tuples(INT64, st.integers(0, 1 << 62)), min_size=1, max_size=50), st.integers(-60, 60))
def test_records_round_trip(kept, cells, unit):
    """What is stored is what is loaded, to the last bit."""
    mean, information = (np.array(column, np.int64) for column in zip(*cells, strict=True))
    back = Record.from_bytes(Record(Measured(mean, information, unit), kept, "keys").to_bytes())

    assert (kept, "keys", unit) == (back.kept, back.keys, back.measured.unit_log2)
    assert np.array_equal(mean, back.measured.mean)
    assert np.array_equal(information, back.measured.information)
