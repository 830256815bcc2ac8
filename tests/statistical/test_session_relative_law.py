"""Relative noise through the Session: intervals hold the truth, and values are within the target, at every size.

Size: a cell is refuted when its misses exceed the exact binomial quantile at the stated rate; all cells of a test share
ALPHA. Power: noise that is 5 % larger than the intervals know is refuted in some cell, and so is an interval whose
half-width is sigma in place of what sigma inverts to (`test_planted_laws_are_caught`).
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from levels import ALPHA
from scipy.stats import binom

from farthing import Budget, Session
from farthing.accuracy.stop_rule import two_sided
from farthing.planning.relative_count import KINDS, RelativeCountPricing
from farthing.session.answering.relative_count import RelativeRelease

MECHANISMS = ["asinh", "linear-log", "log", "power", "gaussian", "two-stage"]
DRAWS = 60_000
SIZES = (0, 7, 50, 200, 400, 30_000, 20_000_000)  # the target is tightest at 200
BETA = 0.05
TARGET = {"relative": 0.1, "absolute": 20, "cap": "all"}
COPIES = 300
SHOWN = (0, 5, 90, 700)


def test_every_mechanism_is_looked_at():
    """The cases below are all that there are."""
    assert set(KINDS) == set(MECHANISMS)


def noise_of(mechanism):
    """Return the noise that a session would draw with."""
    with Session(pa.table({"k": [1]}), budget=Budget(mu=8)) as session:
        pricing = session.plan(**TARGET, mechanism=mechanism).pricing
    assert isinstance(pricing, RelativeCountPricing)
    return pricing.noise


def refuted(misses, cells):
    """Return the cells whose misses refute a rate of at most BETA; none are in a healthy farthing."""
    return [cell for cell, missed in misses.items() if binom.sf(missed.sum() - 1, len(missed), BETA) < ALPHA / cells]


def looked_at(noise, drawn, interval=None):
    """Return the cells in which the intervals miss the truth, or values their target, too often."""
    misses = {}
    for size in SIZES:
        one = RelativeRelease(noise, RelativeRelease.draw(drawn, np.full(DRAWS, size)).steps)
        lower, upper = one.interval(BETA) if interval is None else interval(one)
        misses["interval", size] = (size < lower) | (upper < size)
        misses["target", size] = np.abs(one.values - size) > max(noise.relative * size, noise.absolute)
    return refuted(misses, len(misses))


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_law_of_a_release(mechanism):
    """At sizes from 0 to 20 million, intervals hold the size, and values are within the target, as often as asked."""
    noise = noise_of(mechanism)

    assert [] == looked_at(noise, noise)


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_law_through_the_session(mechanism):
    """The same of what a session answers: of hundreds of groups of each size, from exact counts of a table."""
    sizes = np.repeat(SHOWN, COPIES)
    table = pa.table({"k": np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)})
    with Session(table, budget=Budget(mu=8)) as session:
        answer = session.count("k", keys={"k": range(len(sizes))}, **TARGET, mechanism=mechanism)
    outside = (answer.lower > sizes) | (sizes > answer.upper)
    off = np.abs(answer.value - sizes) > np.maximum(0.1 * sizes, 20)
    misses = {(name, size): column[sizes == size] for name, column in (("interval", outside), ("target", off))
              for size in SHOWN}  # fmt: skip

    assert answer.met.all()
    assert [] == refuted(misses, len(misses))


def wider(noise, times):
    """Return noise of a larger sigma on the same grid, which the intervals do not know of."""
    return replace(noise, mechanism=replace(noise.mechanism, sigma=noise.mechanism.sigma * times))


def not_inverted(one):
    """Return intervals that add z sigma to the value itself: the planted mistake."""
    reach = two_sided(BETA) * one.noise.mechanism.sigma
    return one.values - reach, one.values + reach


@pytest.mark.parametrize("mechanism", MECHANISMS[:-1])
def test_planted_laws_are_caught(mechanism):
    """Noise 5 % too large is refuted, as intervals and as targets; so are intervals that do not invert sigma."""
    noise = noise_of(mechanism)
    too_much = {kind for kind, _ in looked_at(noise, wider(noise, 1.05))}

    assert {"interval", "target"} == too_much
    assert (looked_at(noise, noise, not_inverted) == []) is (mechanism == "gaussian")


def test_a_planted_second_stage_is_caught():
    """Two stages whose second is 10 % too large miss their target where it is tightest."""
    noise = noise_of("two-stage")
    drawn = replace(noise, mechanism=replace(noise.mechanism, relative=noise.mechanism.relative * 1.1))

    assert {("interval", 200), ("target", 200)} <= set(looked_at(noise, drawn))
