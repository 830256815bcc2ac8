"""Relative targets of prefix sums, products and matrices: a pilot says how roughly each answer may be known."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from farthing import Budget, Session
from farthing.mechanisms import strategy
from farthing.mechanisms.strategy import StrategyMeasurements
from farthing.session.answering.product_record import KeptStrategies
from farthing.session.answering.products import _BookedProducts as BOOKED
from farthing.workloads import conditions, marginals, matrix, prefixes, ranges

EDGES = range(9)
SEX = {"sex": ["f", "m"]}
LARGE = pa.table({"x": np.arange(400_000) % 8, "sex": ["f", "m", "m"] * 133_333 + ["f"]})
PRE = prefixes("x", EDGES)
WORKLOADS = {
    "prefixes": (PRE, None),
    "product": (marginals(["sex"], ways=1) * PRE, SEX),
    "total and factors": (PRE + marginals(["sex"], ways=1), SEX),
    "matrix": (ranges("x", EDGES) + matrix(np.array([[1.0, 0.5]]), over="sex"), SEX),
    "weights": (3 * PRE + conditions(["x < 5"]), None),
}
GOAL = {"relative": 0.1, "absolute": 50}


def opened(table=LARGE):
    """Open a table with a large budget."""
    return Session(table, budget=Budget(mu=6), name="data")


@pytest.mark.parametrize(
    "name", ["product", *(pytest.param(name, marks=pytest.mark.thorough) for name in WORKLOADS if name != "product")]
)
def test_large_answers_cost_less(name):
    """Where all answers are large, far less is paid than for the absolute target; every answer is within its own."""
    workload, keys = WORKLOADS[name]
    with opened() as session:
        plan = session.plan_release(workload, keys=keys, **GOAL)
        absolute = session.plan_release(workload, keys=keys, absolute=50).worst_price
        release = session.release(workload, keys=keys, **GOAL)
        assert plan.worst_price.amount <= absolute.amount * 1.02
        assert release.paid.amount < absolute.amount / 50
        for words in release:
            assert release[words].met.all()
            assert (release[words].half_width <= 0.11 * abs(release[words].value) + 1).all()
        again = session.release(workload, keys=keys, **GOAL)
        assert 0 == again.paid.amount
        assert all((again[words].value == release[words].value).all() for words in release)
        finer = release.refine(relative=0.02, absolute=50)
        assert 0 < release.paid.amount < finer.paid.amount < absolute.amount


def test_one_small_answer_costs_what_the_absolute_target_does():
    """An answer that is nearly zero needs the floor: the price is that, and the pilot's sixty-fourth at most."""
    table = pa.table({"x": np.maximum(np.arange(40_000) % 8, 1)})
    with opened(table) as session:
        absolute = session.plan_release(PRE, absolute=50).worst_price
        release = session.release(PRE, **GOAL)
        assert absolute.amount < release.paid.amount <= absolute.amount * 1.02
        assert release["prefixes of x"].half_width.max() == pytest.approx(50, rel=1e-6)


def test_noise_of_answers_never_decides_how_precisely(monkeypatch):
    """With answers that come out far too large, designs and prices are the same: they follow from the pilot alone."""
    measured, sharpened, found, wrong, names = StrategyMeasurements.measure, BOOKED._sharpened, [], [0.0], []

    def noted(self, *given):
        """Note what is measured: the pilot or the answers."""
        names.append(given[3])
        return sharpened(self, *given)

    def shifted(self, number, state, grains):
        """Measure, and what is for the answers wrongly."""
        seen = measured(self, number, state, grains)
        return replace(seen, mean=seen.mean + wrong[0] * (names[-1] == "states"))

    monkeypatch.setattr(BOOKED, "_sharpened", noted)
    monkeypatch.setattr(StrategyMeasurements, "measure", shifted)
    monkeypatch.setattr(strategy, "rounded_gaussian", lambda s, **_: np.zeros(s.shape, np.int64))
    for wrong[0] in (0.0, 1e6):
        with opened() as session:
            release = session.release(PRE, **GOAL)
            found.append((release.paid.amount, release._plan.design.grains.tolist()))
            found.append(session.plan_release(PRE, relative=0.05, absolute=50).design.grains.tolist())
    assert {"pilot", "states"} == set(names)
    assert found[:2] == found[2:]


def test_records_without_a_pilot_are_read():
    """A record is the same after it was written and read; the pilot's measurements are added up like the others."""
    with opened() as session:
        session.release(PRE, **GOAL)
        question = session._ledger.history(1)[0].question
        kept = KeptStrategies.from_bytes(session._ledger.load(question).blob)
    again = KeptStrategies.from_bytes(kept.to_bytes())
    assert kept.pilot[0].grains == again.pilot[0].grains > 0
    assert np.array_equal(kept.pilot[0].mean, again.pilot[0].mean)
    nothing = KeptStrategies.nothing(kept.strategies)
    twice = KeptStrategies.from_bytes(kept.joined(nothing, kept.to_bytes()))
    assert twice.pilot[0].grains == 2 * kept.pilot[0].grains
    assert twice.states[0].mean == pytest.approx(kept.states[0].mean)
