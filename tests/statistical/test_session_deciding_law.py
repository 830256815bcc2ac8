"""Refining until an interval excludes the truth: the default's chances of a miss add up, together=True holds."""

import numpy as np
import pyarrow as pa
import pytest
from accuracy.runs import surely_above
from levels import ALPHA
from scipy.stats import binom

from farthing import Bounds, Budget, Session

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
    assert answer.confidence_together == pytest.approx(1 - ASKS * 0.05)
    assert binom.sf(count - 1, GROUPS, ASKS * 0.05) > ALPHA
