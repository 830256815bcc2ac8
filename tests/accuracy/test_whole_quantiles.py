"""Quantiles of whole numbers: each number is a leaf, ends are numbers, and promises hold as on any other grid."""

import ast
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from levels import ALPHA
from scipy.stats import binom

import farthing
from farthing import Budget, Gdp, Session, Zcdp
from farthing.accuracy.joint_chains import ShownJointRanks
from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.accuracy.quantile_chains import QuantileChains, ShownRanks
from farthing.accuracy.quantile_choice import ExponentialQuantile
from farthing.accuracy.quantile_ranks import NoisyRanks, QuantileGoal, Ranks
from farthing.noise.bits import seeded

LOWER, UPPER, BETA, GROUPS, ROWS = -3, 9, 0.2, 400, 4_000
DATA = {  # the part of the rows up to each number: 13 of them, so that some of 16 leaves are no number
    "even": np.arange(1, 14) / 13,
    "cliff": np.array([0.0, 0, 0.478, 0.478, 0.522, 0.522, 0.522, 0.522, 0.522, 0.522, 0.522, 0.522, 1]),
    "ends": np.array([0.479, *[0.479] * 11, 1]),
    "top": np.array([*[0.1] * 12, 1]),
    "one number": np.array([*[0.0] * 5, *[1.0] * 8]),
}
ASKED = {
    "by rank": {"rank": 0.02},
    "by value": {"absolute": 1.0},
    "by relative value": {"relative": 0.3, "absolute": 0.5},
    "by both": {"rank": 0.02, "absolute": 2.0},
}


def goal(q=0.5, rank=0.0):
    """A quantile of the whole numbers from LOWER to UPPER."""
    return QuantileGoal(q, LOWER, UPPER, 4, rank=rank, whole=True)


def rows_of(kind):
    """Return how many of the rows have each number."""
    return np.diff(np.rint(DATA[kind] * ROWS).astype(np.int64), prepend=0)


def ranks_of(kind):
    """Return groups that are all alike."""
    leaf = np.flatnonzero(rows_of(kind))
    cells = np.repeat(np.arange(GROUPS), len(leaf)), np.tile(leaf, GROUPS), np.tile(rows_of(kind)[leaf], GROUPS)
    return Ranks.of(*cells, groups=GROUPS, leaves_log2=4)


def misses(kind, q, asked, state):
    """Return which groups miss: the interval, or the rank or the value that was met."""
    upto = np.cumsum(rows_of(kind)) / ROWS
    truth = LOWER + int(np.argmax(upto >= q - 1e-12))
    place = np.rint(state.value).astype(int) - LOWER
    below = np.where(place > 0, upto[place - 1], 0.0)
    rank = asked.get("rank", 0.0)
    off = state.by_rank & ((below > q + rank + 1e-12) | (upto[place] < q - rank - 1e-12))
    near = np.maximum(asked.get("absolute", 0.0), asked.get("relative", 0.0) * abs(truth))
    far = state.met & ~state.by_rank & (np.abs(state.value - truth) > near + 1e-9)
    return (state.lower > truth) | (state.upper < truth) | off | far


def found(kind, q, asked, *, pure):
    """Return what a search of each group comes to."""
    target = {name: asked[name] for name in ("relative", "absolute") if name in asked}
    about = goal(q, asked.get("rank", 0.0))
    if pure:
        search = QuantileChains(about, BETA, 1 << 45, **target)
        show = (ShownJointRanks if search.by_value else ShownRanks)(ranks_of(kind), 1, seeded(3)).show
        return search.run(show, groups=GROUPS)
    noisy = NoisyRanks(ranks_of(kind), about, seeded(3))
    return QuantileBisection(about, BETA, 1 << 58, **target).run(noisy.measure, noisy.measure_count, groups=GROUPS)


KINDS = [pytest.param(kind, marks=() if kind == "cliff" else pytest.mark.thorough) for kind in DATA]


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ASKED)
def test_promises_are_kept(kind, way):
    """By rank, by value and by both; all ends are numbers that there are."""
    _holds(kind, ASKED[way], found(kind, 0.5, ASKED[way], pure=False))


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["by rank", "by value", "by relative value"])
def test_promises_are_kept_under_a_pure_budget(kind, way):
    """By rank or by value."""
    _holds(kind, ASKED[way], found(kind, 0.5, ASKED[way], pure=True))


def _holds(kind, asked, state):
    """Hold what a search came to against its promises."""
    assert misses(kind, 0.5, asked, state).sum() <= binom.isf(ALPHA, GROUPS, BETA)
    for each in (state.lower, state.upper, state.value[state.by_rank]):
        assert set(each.tolist()) <= set(range(LOWER, UPPER + 1))
    assert (state.lower <= state.value).all()
    assert (state.value <= state.upper).all()


@pytest.mark.statistical
def test_a_number_that_is_one_too_high_is_found(monkeypatch):
    """Planted: the value shown is where the next number begins, as on a grid of steps."""
    monkeypatch.setattr(QuantileGoal, "most", lambda self, leaf: self.least(leaf + 1))
    state = found("cliff", 0.5, {"rank": 0.02}, pure=False)

    assert misses("cliff", 0.5, {"rank": 0.02}, state).sum() > binom.isf(ALPHA, GROUPS, BETA)


def test_every_quantile_is_made_by_the_one_that_knows_its_type():
    """No module makes a quantile but by `Quantile.of`, which decides on the leaves."""
    trees = [ast.parse(path.read_text("utf-8")) for path in Path(farthing.__file__).parent.rglob("*.py")]
    calls = [ast.unparse(node.func) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    made = [call for call in calls if call.split(".")[0] == "Quantile"]

    assert {"Quantile.of"} == set(made)


def test_no_number_beyond_the_last_is_chosen():
    """One private choice takes numbers of the range alone, though 16 leaves have room for three more."""
    choice = ExponentialQuantile(goal(0.9))
    chosen = np.concatenate([choice.choose(ranks_of("even"), 1 << 20, seeded(seed)) for seed in range(20)])
    values = choice.values(chosen)

    assert set(range(LOWER, UPPER + 1)) == set(values.tolist())


COUNTED = {"mu": Budget(mu=5), "pure": Budget(epsilon=9)}


@pytest.mark.parametrize("budget", COUNTED)
def test_a_session_answers_in_whole_numbers(budget):
    """Asked of a session: the column's type alone decides, and CAST makes whole numbers of others."""
    ages = np.clip(np.random.default_rng(5).normal(42, 15, 30_000).round(), 0, 130)
    table = pa.table({"age": pa.array(ages.astype(int)), "real": ages})
    with Session(table, budget=COUNTED[budget]) as session:
        whole = session.quantile("age", 0.5, lower=0, upper=120, rank=0.02)
        near = {q: session.quantile("age", q, lower=0, upper=120, absolute=1) for q in (0.1, 0.9)}
        cast = session.sql("SELECT MAX(CLAMP(CAST(real AS INTEGER), 0, 120)) AS most FROM data", rank=0.02)
        moved = session.sql("SELECT MEDIAN(CLAMP(age, 18, 90)) - 18 AS after FROM data", rank=0.02)
        real = session.quantile("real", 0.5, lower=0, upper=120, rank=0.02)

    assert 40 <= whole.value <= 44
    for answer in (whole, cast):
        for each in (answer.value, answer.lower, answer.upper):
            assert each.is_integer()
    assert all(end.is_integer() for each in near.values() for end in (each.lower, each.upper))
    assert 22 <= moved.value <= 26
    assert not real.value.is_integer()


@pytest.mark.parametrize("currency", ["mu", "rho"])
def test_two_numbers_are_searched_group_by_group(currency):
    """However few there are, each group pays what it needs: one that is too small raises no other one's price."""
    table = pa.table({"g": ["large"] * 20_000 + ["middle"] * 1_000 + ["small"] * 20, "x": [0, 1] * 10_510})
    keys = {"g": ["large", "middle", "small", "none"]}
    budget, cap = (Budget(mu=2), Gdp(0.3)) if currency == "mu" else (Budget(rho=2), Zcdp(0.045))
    with Session(table, budget=budget) as session:
        plan = session.plan("SELECT g, MEDIAN(CLAMP(x, 0, 1)) AS m FROM data GROUP BY g", rank=0.1, keys=keys, cap=cap)
        answer = session.quantile("x", 0.5, lower=0, upper=1, rank=0.1, by="g", keys=keys, cap=cap)

    assert [True, True, False, False] == answer.met.tolist()
    large, middle, *_ = answer.to_arrow()["paid"].to_pylist()
    assert large < middle / 4
    assert any("bisection" in step for step in plan.steps)


@pytest.mark.parametrize("pure", [False, True])
def test_a_value_by_rank_lies_within_its_interval(pure):
    """Where looks settle the rank at the number just below the interval, the first number within it is right, too."""
    rows, groups = 5_000, 300
    leaf = np.random.default_rng(8).integers(0, 17, (groups, rows))
    key, count = np.unique((np.arange(groups)[:, None] << 5) + leaf, return_counts=True)
    ranks = Ranks.of(key >> 5, key & 31, count, groups=groups, leaves_log2=5)
    asked = QuantileGoal(0.75, 0, 16, 5, rank=0.49, whole=True)
    if pure:
        state = QuantileChains(asked, 0.05, 1 << 44).run(ShownRanks(ranks, 1, seeded(1)).show, groups=groups)
    else:
        noisy = NoisyRanks(ranks, asked, seeded(1))
        state = QuantileBisection(asked, 0.05, 1 << 55).run(noisy.measure, noisy.measure_count, groups=groups)

    assert state.met.all()
    assert (state.lower <= state.value).all()
    assert (state.value <= state.upper).all()
