"""No question that a plan calls answerable fails by its own noise, whatever the range of its values."""

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from sweeps import sweep

from farthing import Bounds, Budget, FarthingError, Gdp, Pure, Session

KINDS = (
    *("COUNT(*)", "SUM(x)", "AVG(x)", "VAR_POP(x)", "STDDEV(x)", "COUNT(*), SUM(x), AVG(x)", "MEDIAN(x)"),
    "AVG(x) - COUNT(x)",
)
PURE = ("COUNT(*)", "SUM(x)", "MEDIAN(x)")
BUDGETS = (Budget(mu=1), Budget(mu=8), Budget(rho=0.5), Budget(epsilon=1, delta=1e-6))
PURE_BUDGETS = (Budget(epsilon=1), Budget(epsilon=0.01), Budget(epsilon=300))
EXPONENTS = (-300, -160, -100, -50, -49.9, -25, -10, 0, 6, 11, 24.9, 25.1, 37, 49.9, 50, 75, 149, 151, 300)
ROWS = 400


def case(seed):
    """Return one question of a random kind, range, target, budget and unit."""
    rng = random.Random(seed)
    pure, unit = rng.random() < 0.35, rng.random() < 0.4
    kind = rng.choice(PURE if pure else KINDS)
    upper = 10.0 ** (rng.choice(EXPONENTS) if rng.random() < 0.7 else rng.uniform(-50, 50))
    lower = rng.choice([0.0, -upper, -upper / 3, upper / 2, upper * (1 - 1e-9), upper * 1e-30])
    named = Pure(0.01) if pure else Gdp(0.2) if "mu" in str(budget := rng.choice(BUDGETS[:2])) else None
    chosen = rng.choice(PURE_BUDGETS) if pure else budget
    scale = 1.0 if "COUNT" in kind else min(upper, 1e100)
    targets = [{"relative": 0.1}, {"absolute": scale * rng.choice([1e-9, 0.01, 1, 1e6, 1e30])}, {"loss": named}]
    targets[:2] = [{"rank": 0.1}] if kind == "MEDIAN(x)" else targets[:2]
    bounds = Bounds(max_rows=rng.choice([1, 20, 10**6, 2**31 - 1])) if unit else None
    return kind, lower, upper, chosen, rng.choice(targets), bounds


def opened(lower, upper, budget, bounds):
    """Open values all over a range."""
    noise = np.random.default_rng(5)
    values = np.where(noise.random(ROWS) < 0.5, lower, upper)
    table = pa.table({"x": values, "u": np.arange(ROWS) % 90})
    return Session(table, budget=budget, **({} if bounds is None else {"unit": "u", "bounds": bounds}))


def refusal(work):
    """Return the words of a refusal, or what was answered."""
    try:
        return "", work()
    except FarthingError as refused:
        return f"{type(refused).__name__}: {refused}", None


@pytest.mark.thorough
@pytest.mark.parametrize("chunk", sweep(range(2), range(6)))
def test_what_a_plan_calls_answerable_is_answered(chunk):
    """Ranges, kinds, targets, budgets, units: what a plan refuses is refused alike and free, or it answers."""
    answered = 0
    for seed in range(chunk * 25, chunk * 25 + 25):
        kind, lower, upper, budget, target, bounds = case(seed)
        about = f"{seed}: {kind} in [{lower}, {upper}] of {budget}, {target}, {bounds}"
        with opened(lower, upper, budget, bounds) as session:
            text, how = f"SELECT {kind} FROM data", {"lower": lower, "upper": upper, **target}
            how = {name: value for name, value in how.items() if kind != "COUNT(*)" or name not in {"lower", "upper"}}
            told, plan = refusal(lambda: session.plan(text, **how))  # noqa: B023  # called at once
            said, answer = refusal(lambda: session.sql(text, on_miss="spend", **how))  # noqa: B023
            assert said == told, about
            if plan is None:
                assert session.spent.value == 0, about
                continue
            answered += 1
            shown = answer.to_arrow().to_pydict()
            assert all(math.isfinite(v) for column in shown.values() for v in column if isinstance(v, float)), about
    assert answered >= 8


@pytest.mark.parametrize("power", range(0, 51, 5))
@pytest.mark.parametrize("kind", ["SUM(x)", "AVG(x)", "STDDEV(x)"])
def test_wide_ranges_are_answered_as_well_as_narrow_ones(kind, power):
    """A sum, a mean and a standard deviation in [0, 10^k] at 5 %: the units of the values change nothing."""
    most = 10.0 ** min(power, 24 if kind == "STDDEV(x)" else 50)
    table = pa.table({"x": np.linspace(0, most, 50_000)})
    with Session(table, budget=Budget(mu=2)) as session:
        answer = session.sql(f"SELECT {kind} FROM data", lower=0, upper=most, relative=0.05)

    assert answer.met


def test_a_range_that_cannot_be_added_up_is_refused_free():
    """What floating point could not square is refused by plan and ask in the same words, free of charge."""
    for lower, upper in [(0.0, 1e-60), (0.0, 1e60), (1e51, 1.1e51)]:
        with Session(pa.table({"x": [1.0, 2.0]}), budget=Budget(mu=2)) as session:
            ask = {"lower": lower, "upper": upper, "relative": 0.1}
            told = [refusal(lambda: way("SELECT SUM(x) FROM data", **ask))[0] for way in (session.plan, session.sql)]  # noqa: B023

            assert told[0] == told[1]
            assert "too small to be added up" in told[0] or "too large to be added up" in told[0]
            assert session.spent.value == 0
