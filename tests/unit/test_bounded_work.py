"""Whatever is asked, a plan is made or refused with little work, and nothing is paid for the refusal."""

import itertools
import math

import ibis
import numpy as np
import pyarrow as pa
import pytest
from work import calls_of

import farthing
from farthing.accuracy import stop_rule
from farthing.accuracy.jumps import JumpMap
from farthing.accuracy.schedule import Schedule
from farthing.accuracy.stop_rule import GaussianLookChain, critical_value, looks_apart, two_sided
from farthing.errors import FarthingError, InvalidKeys, InvalidTarget, UnsupportedQuery
from farthing.query.expressions import MOST_CHOICES

TABLE = pa.table({"zone": ["a"] * 60 + ["b"] * 40, "value": list(range(100))})
BUDGETS = [farthing.Budget(epsilon=1), farthing.Budget(epsilon=1, delta=1e-6), farthing.Budget(rho=0.05)]
EXTREMES = [0.0, 1e-320, 1e-300, 1e-150, 1e-12, 1e-3, 0.999, 1.0, 1e150, 1e300, 1e308, 10**400, math.nan]


def session(budget=BUDGETS[1]):
    """Return a session of a small table."""
    return farthing.Session(TABLE, budget=budget, name="numbers")


@pytest.mark.parametrize("budget", BUDGETS, ids=["pure", "gdp", "zcdp"])
@pytest.mark.parametrize("ranges", [None, (0, 1e-320), (0, 1e-149), (-1e100, 1e100), (0, 1e150), (0, 1e308)])
def test_every_target_is_planned_or_refused_in_words(budget, ranges):
    """No target and no range makes a plan fail with anything but an error of this library."""
    asked = session(budget)
    number = "COUNT(*)" if ranges is None else f"SUM(CLAMP(value, {ranges[0]!r}, {ranges[1]!r}))"
    for absolute, relative in itertools.product(EXTREMES, [0.0, 1e-320, 1e-13, 1e-12, 1e-6]):
        try:
            assert str(asked.plan(f"SELECT {number} AS n FROM numbers", absolute=absolute, relative=relative))
        except FarthingError:
            assert not asked.spent


@pytest.mark.parametrize(
    "target", [{"absolute": 1e-300}, {"absolute": 1e308}, {"absolute": 10**400}, {"relative": 1e-13}]
)
def test_targets_that_no_answer_can_have_are_refused(target):
    """A target that floats cannot hold is refused with its rule, before anything is asked or paid."""
    asked = session()

    with pytest.raises(InvalidTarget):
        asked.count(**target)
    assert not asked.spent


@pytest.mark.parametrize("absolute", [5, 50, 1e6])
def test_a_pure_count_takes_an_absolute_target_after_a_relative_one(absolute):
    """A chain that was begun for a relative target alone is asked again for any distance."""
    asked = session(farthing.Budget(epsilon=1))
    asked.count(relative=0.1)

    assert np.isfinite(asked.count(absolute=absolute, on_miss="spend").value)


def test_no_relative_target_makes_the_recursion_large():
    """Below the last target that needs the recursion its arrays stay small, at any confidence."""
    for beta in (1e-12, 1e-6, 0.05, 0.5):
        relative = looks_apart(beta, 1.02) * 1.01
        boundary = two_sided(beta) / relative
        most = stop_rule._swept(relative, beta, 1.02) * boundary
        chain = GaussianLookChain.run(
            relative, two_sided(beta), span=1600, jumps=JumpMap(boundary, 1.02), beta=beta, largest=most
        )

        assert chain.atoms.mass.size < 2_000_000


@pytest.mark.parametrize("beta", [1e-9, 0.01, 0.05, 0.3])
def test_looks_far_apart_need_no_more_than_the_recursion_says(beta):
    """The closed bound for tiny relative targets covers, by the recursion, and is within a percent of its c."""
    relative = looks_apart(beta, 1.02)
    closed, exact = (critical_value(r, beta, 640, 1.02) for r in (relative * 0.999, relative * 1.001))
    boundary = closed / relative
    chain = GaussianLookChain.run(
        relative, closed, span=640, jumps=JumpMap(boundary, 1.02), beta=beta, largest=1.05 * boundary
    )
    signals = boundary * (1 - relative) * 1.02 ** (np.arange(4) / 2)

    assert chain.misses(signals).max() <= beta
    assert exact <= closed <= 1.01 * exact


@pytest.mark.parametrize("relative", [1e-3, 1e-6, 1e-12])
def test_a_tiny_relative_target_has_as_few_looks_as_any(relative):
    """The looks of a schedule are a few thousand whatever the target is."""
    made = Schedule.plan(relative, 0.0, 0.05, per_grain=2.0**-56, cap_grains=2**62)

    assert len(made.looks) < 3_000


@pytest.mark.parametrize("keys", [range(10**9), range(-(10**30), 10**30, 7)])
def test_too_many_keys_are_counted_before_they_are_made(keys):
    """A range of keys that is too long is refused by its length."""
    with pytest.raises(InvalidKeys, match="too many groups"):
        session().count(by="value", keys={"value": keys}, absolute=10)


def test_products_of_keys_are_counted_before_they_are_made():
    """Two lists of keys whose product is too long are refused by their lengths."""
    with pytest.raises(InvalidKeys, match="too many groups"):
        session().count(by=["zone", "value"], keys={"zone": ["a", "b"], "value": range(10**8)}, absolute=10)


@pytest.mark.parametrize("road", ["sql", "ibis"])
def test_lists_of_constants_have_a_stated_limit(road):
    """One constant more than the limit is refused by every reader of conditions, and the limit itself is not."""
    for many, refused in ((MOST_CHOICES, False), (MOST_CHOICES + 1, True)):
        values = list(range(many))
        where = f"value IN ({', '.join(map(str, values))})" if road == "sql" else ibis._.value.isin(values)
        asked = session()
        if refused:
            with pytest.raises(UnsupportedQuery, match=f"{MOST_CHOICES:,}"):
                asked.count(where=where, absolute=50)
            assert not asked.spent
        else:
            assert asked.count(where=where, absolute=50).paid


def test_constants_are_read_a_few_times():
    """A plan and its ask call 700 functions a constant at most, where reading it each time anew took 1,450."""

    def work(many):
        text = f"SELECT COUNT(*) AS n FROM numbers WHERE value IN ({', '.join(map(str, range(many)))})"
        with session() as asked:
            asked.sql(text, absolute=50)  # what is made once is made
            again = text.replace("IN (0, ", "IN (-1, ")
            return calls_of(lambda: (asked.plan(again, absolute=40), asked.sql(again, absolute=40)))

    assert work(900) - work(300) < 600 * 700


@pytest.mark.parametrize("bound", [True, False])
def test_deep_ibis_expressions_are_refused_by_name(bound):
    """An expression of thousands of levels is refused in words, whether it was bound to a table or not."""
    deep = ibis.table({"value": "int64"}, name="other").value if bound else ibis._.value
    for _ in range(3000):
        deep += 1

    with pytest.raises(UnsupportedQuery, match="deep nesting") as caught:
        session().count(where=deep > 3, absolute=10)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_lists_on_one_column_are_looked_up_in_bounded_work():
    """Twelve of them take no more than some times the work of four: it was 2^8 times."""
    session = farthing.Session(pa.table({"g": [str(i % 40) for i in range(200)]}), budget=farthing.Budget(mu=1))

    def plan(many):
        lists = (", ".join(f"'{x}'" for x in range(first, 39)) for first in range(many))
        where = " AND ".join(f"g IN ({each})" for each in lists)
        return lambda: session.plan(f"SELECT COUNT(*) AS n FROM data WHERE {where}", absolute=100)

    plan(2)()
    assert calls_of(plan(12)) < 12 * calls_of(plan(4))
