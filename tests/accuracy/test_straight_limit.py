"""The bound where ranks rise evenly: no set of chances and looks that keeps what it is made of pays less."""

import numpy as np
import pytest
from accuracy.runs import bench
from scipy.integrate import quad
from scipy.special import ndtr

from farthing.limits.quantiles import divergence

BETA = 0.05


@pytest.mark.parametrize(("mean", "deviation", "off"), [(0.0, 1.0, 0.0), (0.3, 0.2, 0.25), (-0.5, 2.0, 0.4)])
def test_what_a_look_near_a_place_is_worth_is_a_mean(mean, deviation, off):
    """Of the squared margin of a normal place, beside the integral."""

    def worth(d):
        return (1 - d) ** 2 * np.exp(-(((d - mean) / deviation) ** 2) / 2) / deviation / np.sqrt(2 * np.pi)

    assert bench("straight_limit").near(mean, deviation, off) == pytest.approx(quad(worth, off, 1)[0])


def _fixed(place):
    """Return the least fixed information, all looks in the middle of what is believed, that keeps every inequality."""
    near, off = bench("straight_limit").near, np.linspace(-3, 1, 81)
    known = np.geomspace(place**-2, 60, 600)
    worth = np.array([[near(0.0, k**-0.5, each) for each in off] for k in known])
    held = np.cumsum(worth[:-1] * np.diff(known)[:, None], axis=0) / 2
    chance = ndtr(-off * np.sqrt(known[1:, None]))
    needed = np.where(chance > BETA, divergence(chance, BETA), 0.0)
    return float(known[1:][(held >= needed).all(axis=1)][0] - known[0])


@pytest.mark.thorough
def test_what_keeps_the_inequalities_pays_more_than_the_bound(monkeypatch):
    """A fixed size pays more, but not a quarter more, and whatever numbers make the bound; less than one would be that
    takes half of what looks may tell.
    """
    script, fixed = bench("straight_limit"), _fixed(5.0)
    limit = script.straight_limit(5.0, grow=1.04)
    others = [script.straight_limit(5.0, grow=1.06, **each) for each in ({"end": 0.2}, {"first": 0.4}, {"part": 1.0})]
    near = script.near
    monkeypatch.setattr(script, "near", lambda *at: near(*at) / 2)

    assert max(fixed / 1.25, *others) < limit < fixed < script.straight_limit(5.0, part=1.9, grow=1.06)
