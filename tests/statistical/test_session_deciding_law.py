"""Refining until an interval excludes the truth: the default's chances of a miss add up, together=True holds."""

import numpy as np
import pyarrow as pa
import pytest
from accuracy.runs import surely_above
from levels import ALPHA
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from farthing import Bounds, Budget, Session
from farthing.accuracy.claim_chances import next_chance, together

pytestmark = pytest.mark.thorough

GROUPS, ROWS, ASKS = 3_000, 60, 11
VALUES = np.random.default_rng(17).integers(0, 101, (GROUPS, ROWS)).astype(float)
TABLE = pa.table({"g": np.repeat(np.arange(GROUPS), ROWS), "v": VALUES.ravel(), "u": np.arange(GROUPS * ROWS)})
BY = {"by": "g", "keys": {"g": list(range(GROUPS))}, "cap": "all"}
GAMES = {
    "count": (lambda s, width, **how: s.count(**BY, absolute=40 * width, **how), np.full(GROUPS, ROWS)),
    "sum": (lambda s, width, **how: s.sum("v", lower=0, upper=100, **BY, absolute=4e3 * width, **how), VALUES.sum(1)),
    "mean": (lambda s, width, **how: s.mean("v", lower=0, upper=100, **BY, absolute=30 * width, **how), VALUES.mean(1)),
    "variance": (
        lambda s, width, **how: s.variance("v", lower=0, upper=100, **BY, absolute=500 * width, **how),
        VALUES.var(1),
    ),
}


def ever_missed(game, *, together, asks=ASKS):
    """Return of how many groups some interval missed, where each ask is a little sharper than the one before."""
    ask, truth = GAMES[game]
    missed = np.zeros(GROUPS, np.bool_)
    with Session(TABLE, unit="u", bounds=Bounds(max_groups=1, max_rows=1), budget=Budget(mu=200)) as session:
        for number in range(asks):
            answer = ask(session, 0.8**number, together=together)
            missed |= (answer.lower > truth) | (answer.upper < truth)
    return int(missed.sum()), answer


@pytest.mark.statistical
@pytest.mark.parametrize("game", GAMES)
def test_together_holds_whatever_decides(game):
    """After many asks at most 5 % of the groups have an interval that missed; the answer tells 95 % or more."""
    count, answer = ever_missed(game, together=True)

    assert not surely_above(count, GROUPS, 0.05, ALPHA)
    assert 0.95 <= answer.confidence_together < 0.96


@pytest.mark.statistical
@pytest.mark.parametrize("game", ["count", "mean"])
def test_each_by_itself_does_not_hold_together(game):
    """The default misses more than 5 % in the same game: the test above could fail; what the answer tells is true."""
    count, answer = ever_missed(game, together=False)

    assert surely_above(count, GROUPS, 0.05, ALPHA)
    assert answer.confidence_together == pytest.approx(together((0.05,) * ASKS))
    assert binom.sf(count - 1, GROUPS, ASKS * 0.05) > ALPHA


def worst_case(chances, runs, seed, cells=120):
    """Return how often a claim misses where somebody who sees the error chooses each next width at best for a miss.

    The policy is found backwards, by a recursion of its own; then it is played.
    """
    z, value, policy = -ndtri(np.array(chances) / 2), np.zeros(cells), []
    angles = np.linspace(0, np.pi / 2, 33)[1:]
    for k in range(len(z) - 1, 0, -1):
        edges = np.linspace(-z[k], z[k], 2 * cells + 1)
        start = (np.arange(cells) + 0.5) / cells * z[k - 1]
        below = ndtr((edges - np.cos(angles)[:, None, None] * start[:, None]) / np.sin(angles)[:, None, None])
        worth = 1 - below[..., -1] + below[..., 0] + np.diff(below) @ np.concatenate([value[::-1], value])
        policy.append(angles[worth.argmax(axis=0)])
        value = worth.max(axis=0)
    rng = np.random.default_rng(seed)
    error = rng.standard_normal(runs)
    missed = np.abs(error) > z[0]
    for k, chosen in enumerate(reversed(policy), start=1):
        cell = np.minimum((np.abs(error) / z[k - 1] * cells).astype(int), cells - 1)
        error = np.cos(chosen[cell]) * error + np.sin(chosen[cell]) * rng.standard_normal(runs)
        missed |= np.abs(error) > z[k]
    return int(missed.sum())


@pytest.mark.statistical
def test_chances_hold_against_whoever_chooses_the_widths():
    """Eleven widths chosen by the error of a count: 5 % miss at most; with shares that only add up to that, more do."""
    runs, chances = 100_000, ()
    for _ in range(ASKS):
        chances = (*chances, next_chance(chances, 0.05))
    plain = tuple(0.05 / ((k + 1) * (k + 2)) for k in range(ASKS))

    assert not surely_above(worst_case(chances, runs, 1), runs, 0.05, ALPHA)
    assert surely_above(worst_case(plain, runs, 2), runs, 0.05, ALPHA)
