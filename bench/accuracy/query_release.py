"""The table of the open problem on query release, beside the same cells measured: error against n, k, T and the loss.

Statistical queries of random signs over T cells; n rows spread over 2, 8, 32 or 128 cells, of which the worst counts:
the table is about the worst data. Each mechanism runs at several values of one parameter, the others fixed; a slope is
that of log error against log parameter by least squares, with a 95 % interval. Then the online mechanism on 10,000
adaptive queries, and with `--data DIR` synthetic rows of real tables.

    python bench/accuracy/query_release.py [--runs 5] [--markdown FILE] [--picture FILE.svg] [--data DIR]
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import time
from pathlib import Path

import numpy as np
import pyarrow.csv
from scipy import stats

from farthing import Budget, Session
from farthing.mechanisms.boosted_queries import BoostedQueries
from farthing.mechanisms.linear_queries import MatrixQueries, uniform
from farthing.mechanisms.multiplicative_weights import Mwem
from farthing.mechanisms.online_weights import OnlineRule, OnlineRun
from farthing.mechanisms.projection import IndependentNoise, Projection, noisy_total
from farthing.mechanisms.small_database import SmallDatabase
from farthing.privacy import Gdp, Pure
from farthing.sealed import sealed
from farthing.workloads import Marginals, marginals

BASE = {"n": 2_000, "k": 512, "T": 512, "loss": 0.25}
SWEEPS = {
    "n": (500, 1_000, 2_000, 4_000, 8_000),
    "k": (64, 128, 256, 512, 1_024),
    "T": (128, 256, 512, 1_024, 2_048),
    "loss": (0.0625, 0.125, 0.25, 0.5, 1.0),
}
SPREADS = (2, 8, 32, 128)
SMALL = {"n": 2_000, "k": 64, "T": 8, "loss": 0.25}


def problem(at, used, seed):
    """Return queries of random signs, and a histogram of n rows in some of the cells."""
    rng = np.random.default_rng(seed)
    queries = MatrixQueries(rng.choice([-1.0, 1.0], (at["k"], at["T"])))
    return queries, np.bincount(rng.choice(rng.permutation(at["T"])[:used], at["n"]), minlength=at["T"])


def mwem(loss, at):
    """Return MWEM at the number of rounds that balances its theorem."""
    rounds = (loss.value * at["n"] * math.sqrt(math.log(at["T"])) / (8 * math.log(at["k"]))) ** (2 / 3)
    return Mwem(loss, int(np.clip(rounds, 2, 60)), passes=4)


MECHANISMS = {
    "Laplace, pure": lambda loss, _: IndependentNoise(Pure(loss)),
    "Gaussian, approximate": lambda loss, _: IndependentNoise(Gdp(loss)),
    "projection, pure": lambda loss, _: Projection(Pure(loss), rounds=200),
    "projection, approximate": lambda loss, _: Projection(Gdp(loss), rounds=200),
    "MWEM, pure": lambda loss, at: mwem(Pure(loss), at),
    "MWEM, approximate": lambda loss, at: mwem(Gdp(loss), at),
    "boosting, approximate": lambda loss, at: BoostedQueries(Gdp(loss), error=0.02 * at["n"], drawn=8, passes=4),
    "SmallDB, pure": lambda loss, _: SmallDatabase(Pure(loss), rows=8),
}


def error(name, at, seed):
    """Return the root mean squared and the largest error, in shares of the rows, each of the worst data."""
    found = []
    spreads = (
        (2, 4) if name.startswith("SmallDB") else (64,) if "projection" not in name and "MWEM" not in name else SPREADS
    )
    for used in spreads:
        queries, counts = problem(at, used, seed)
        made = MECHANISMS[name](at["loss"], at).run(counts, queries)
        answers = made if isinstance(made, np.ndarray) else queries.of(made.weights)
        apart = abs(answers - queries.exact(counts) * queries.step) / at["n"]
        found.append((float(np.sqrt((apart**2).mean())), float(apart.max())))
    return np.max(found, axis=0)


def base_of(name):
    """Return the parameters that stay fixed."""
    return SMALL if name.startswith("SmallDB") else BASE


def swept(name, parameter, runs):
    """Return parameter values and errors of all runs, [runs x values, (value, rms, largest)]."""
    small = name.startswith("SmallDB")
    values = (4, 5, 6, 8, 10) if small and parameter == "T" else SWEEPS[parameter]
    seeds = [1000 * run + hash_of(parameter) for run in range(3 * runs if small else runs)]
    return np.array(
        [(value, *error(name, base_of(name) | {parameter: value}, seed)) for value in values for seed in seeds]
    )


def hash_of(text):
    """Return a number of a text, the same everywhere."""
    return sum(map(ord, text))


def slope(values, errors):
    """Return the slope of log errors against log values, and the half-width of its 95 % interval."""
    fitted = stats.linregress(np.log(values), np.log(np.maximum(errors, 1e-9)))
    return fitted.slope, stats.t.ppf(0.975, len(values) - 2) * fitted.stderr


def measured(runs):
    """Return all points, and the lines of the table of slopes."""
    points, lines = [], []
    for name in MECHANISMS:
        cells = []
        for parameter in SWEEPS:
            rows = swept(name, parameter, runs)
            points += [(name, parameter, *row) for row in rows.tolist()]
            column = 2 if name.startswith(("SmallDB", "MWEM")) else 1
            found, half = slope(rows[:, 0], rows[:, column])
            cells.append(f"{found:+.2f} ± {half:.2f}")
        usual = np.mean([error(name, base_of(name), run) for run in range(runs)], axis=0)
        lines.append(f"| {name} | {usual[0]:.4f} | {usual[1]:.4f} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return points, lines


def beside_theorem(loss, runs):
    """Print the largest error of MWEM's averaged form beside its bound, and of the last histogram, as rows grow."""
    points = []
    for rows in (10_000, 31_623, 100_000, 316_228, 1_000_000):
        at, found = {"n": rows, "k": 64, "T": 64}, []
        rules = [Mwem(loss, rounds=round(2 ** (half / 2)), passes=0, averaged=True) for half in range(4, 21)]
        best = min(rules, key=lambda rule: rule.error(problem(at, 2, 0)[0], rows))
        for used in (2, 8, 32):
            for run in range(runs):
                queries, counts = problem(at, used, run)
                truth = queries.exact(counts) * queries.step
                both = [best, Mwem(loss, rounds=min(best.rounds, 60), passes=4)]
                answers = [queries.of(rule.run(counts, queries).weights) for rule in both]
                found.append([used, *(abs(answer - truth).max() / rows for answer in answers)])
        found = np.array(found)
        worst = np.max([found[found[:, 0] == used].mean(axis=0) for used in (2, 8, 32)], axis=0)[1:]
        points.append((rows, *worst, best.error(queries, rows) / rows))
        told = " | ".join(f"{value:.4f}" for value in points[-1][1:])
        print(f"| {type(loss).__name__} | {rows:,} | {best.rounds} | {told} |", flush=True)
    slopes = [slope(*np.array(points)[:, [0, column]].T) for column in (1, 2, 3)]
    print(" | ".join(f"{found:+.2f} ± {half:.2f}" for found, half in slopes), flush=True)


def online(absolute, cells=1 << 12, queries=10_000, rows=1_000_000):
    """Return what an online run of adaptive queries came to: the worst error, the runs, and what they cost."""
    rng = np.random.default_rng(3)
    counts = rng.multinomial(rows, rng.dirichlet(np.full(cells, 0.02)))
    rule = OnlineRule(absolute, queries, cells, rows, currency=Gdp)
    truth = sealed(counts)
    total = noisy_total(truth, rule.opening, 1, None)
    weights, run, runs, ended, worst = uniform(cells, total), None, 0, 0, 0.0
    wanted = rng.choice([-1.0, 1.0], cells)
    for _ in range(queries):
        if run is None or run.ended:
            run = OnlineRun(rule, truth, weights, total)
            runs += 1
        query = MatrixQueries(wanted[None])
        answer = run.ask(query)
        worst = max(worst, abs(answer - float(query.exact(counts)[0]) * query.step))
        ended, weights = ended + run.ended, run.weights
        flipped = rng.choice(cells, 400, replace=False)  # the next query depends on the answer: away from what is known
        wanted = np.where(rng.random(cells) < 0.5, wanted, rng.choice([-1.0, 1.0], cells))
        wanted[flipped] = np.sign(answer - float(weights @ wanted) + 0.5) * np.where(
            weights[flipped] > total / cells, 1.0, -1.0
        )
    paid = Gdp.of_amount(rule.run.amount * runs + rule.opening.amount)
    return rule, worst, runs, ended, paid


def online_line(absolute):
    """Return what an online run came to, in words."""
    rule, worst, runs, ended, paid = online(absolute=absolute)
    return (
        f"online: 10,000 adaptive queries on 2^12 cells, 1,000,000 rows: worst error {worst:,.0f}, promised "
        f"{absolute:,.0f}; {ended:,} measured, {runs:,} runs paid (the theorem allows {rule.updates:,}): {paid!r}"
    )


def loaded(folder, name):
    """Return a table of whole numbers from 0, and the sizes of its columns."""
    with gzip.open(folder / f"{name}.csv.gz") as file:
        table = pyarrow.csv.read_csv(file)
    domain = folder / f"{name}-domain.json"
    if domain.exists():
        sizes = json.loads(domain.read_text())
        return table.select(list(sizes)), sizes
    return table, {column: int(table.column(column).to_numpy().max()) + 1 for column in table.column_names}


def variation(table, rows, workload, sizes):
    """Return the mean total variation between the tables of two data sets."""
    found = []
    for columns in workload.tables:
        shape = tuple(sizes[name] for name in columns)
        one, other = (
            np.bincount(
                np.ravel_multi_index([each.column(name).to_numpy() for name in columns], shape),
                minlength=math.prod(shape),
            )
            / each.num_rows
            for each in (table, rows)
        )
        found.append(abs(one - other).sum() / 2)
    return float(np.mean(found))


def synthetic(folder, name, how, rows):
    """Print how near synthetic rows of a real table are in all three-way tables of at most 10,000 cells."""
    most, epsilon, delta = 10_000, 1.0, 1e-9
    table, sizes = loaded(folder, name)
    every = marginals(list(sizes), ways=3)
    kept = tuple(one for one in every.tables if math.prod(sizes[column] for column in one) <= most)
    workload, keys = Marginals(kept, (1.0,) * len(kept)), {column: range(size) for column, size in sizes.items()}
    started = time.perf_counter()
    with Session(table, budget=Budget(epsilon=epsilon, delta=delta), name="data") as session:
        asked = {"mechanism": how} if how else {"cap": "all"}
        release = session.release(workload, keys=keys, loss=session.remaining, **asked)
    for many in rows:
        found = release.synthetic(many or table.num_rows)
        apart = variation(table, found.table, workload, sizes)
        print(
            f"{name}, {how or 'residuals'}: {len(kept)} three-way tables, {found.table.num_rows:,} rows: "
            f"total variation {apart:.4f}, told at most {found.upper.mean():.4f} on average; "
            f"{time.perf_counter() - started:.0f} s",
            flush=True,
        )


def picture(points, path):
    """Draw the errors of all mechanisms against each parameter."""
    import altair as alt
    import vl_convert

    rows = [
        {"mechanism": name, "parameter": parameter, "value": value, "error": rms}
        for name, parameter, value, rms, _ in points
        if not name.startswith("SmallDB")
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("value:Q", scale=alt.Scale(type="log"), title=None),
        y=alt.Y("mean(error):Q", scale=alt.Scale(type="log"), title="root mean squared error, share of rows"),
        color=alt.Color("mechanism:N", legend=alt.Legend(orient="top", columns=3, title=None)),
    )
    chart = (
        (base.mark_line() + base.mark_point(filled=True))
        .properties(width=200, height=170)
        .facet(facet=alt.Facet("parameter:N", title=None), columns=2)
        .resolve_scale(x="independent")
        .configure_axis(grid=False)
    )
    path.write_text(vl_convert.vegalite_to_svg(chart.to_json()), encoding="utf-8")


def main():
    """Print everything; write the table and the picture where they are wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    head = [
        "| mechanism | error, mean square | error, largest | " + " | ".join(f"slope in {one}" for one in SWEEPS) + " |"
    ]
    head.append("| --- |" * 1 + " --- |" * (2 + len(SWEEPS)))
    print("\n".join(head))
    points, lines = measured(given.runs)
    for loss in (Pure(1), Gdp(1)):
        beside_theorem(loss, given.runs)
    told = [online_line(absolute) for absolute in (50_000.0, 100_000.0)]
    print("\n".join(told), flush=True)
    if given.markdown:
        given.markdown.write_text("\n".join([*head, *lines, "", *told]) + "\n")
    if given.picture:
        picture(points, given.picture)
    if given.data:
        synthetic(given.data, "adult", "rows", (None, 488_420))
        synthetic(given.data, "nltcs", "rows", (None, 1_000_000))
        synthetic(given.data, "adult", None, (None,))
        synthetic(given.data, "adult", "tree", (None,))
        synthetic(given.data, "nltcs", "tree", (None,))
        synthetic(given.data, "nltcs", "adaptive", (None,))


if __name__ == "__main__":
    main()
