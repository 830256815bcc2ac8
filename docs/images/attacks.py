"""Draw the pictures of docs/explanation/eleven-broken-systems.md: docs/images/attacks.py [FOLDER]."""  # noqa: INP001  no package

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import altair as alt

from farthing import Budget, attacks, charts
from farthing.attacks import targets
from farthing.attacks.demonstration import cases, curves
from farthing.attacks.picture import accuracy_chart, queries_chart

RUNS = 6
ATTRIBUTES = (100, 250, 500, 1_000, 2_000)
CANDIDATES = 200
SYSTEMS = {
    "exact": lambda people, _: targets.Exact(people),
    "rounded to 5": lambda people, _: targets.Rounded(people, 5),
    "a sample of half": lambda people, _: targets.Subsample(people),
    "fresh noise, sigma 10": lambda people, _: targets.FreshGaussian(people, 10),
    "farthing, epsilon 1": lambda people, count: ours(people, count + 1),
}
COLOURS = ["#D55E00", "#E69F00", "#CC79A7", "#009E73", "#0B4F7D"]


def ours(people: Any, questions: int) -> Any:
    """Return a farthing session over the people, with an equal share of the budget for each question."""
    session = targets.FarthingSession.over(people, Budget(epsilon=1, delta=1e-6)).session
    return targets.FarthingSession(session, people, loss=targets.equal_share(session, questions))


def by_queries() -> Any:
    """Diffix and farthing: accuracy against the number of questions, the mean of several tables."""
    runs = [curves(seed, most=4) for seed in range(RUNS)]
    means = {name: {mark: sum(run[name][mark] for run in runs) / RUNS for mark in runs[0][name]} for name in runs[0]}
    return queries_chart(means, title=f"73 clients, their secrets by one attack: mean of {RUNS} tables")


def members() -> Any:
    """Membership: the share of members found at a false-positive rate of one in a hundred."""
    rows = []
    for name, make in SYSTEMS.items():
        for count in ATTRIBUTES:
            if name.startswith("farthing") and count > ATTRIBUTES[-2]:
                continue
            people = attacks.secrets(CANDIDATES, seed=count, attributes=count)
            result = attacks.membership(make(people, count))
            rows.append({"system": name, "attributes": count, "found": result.details["true_positives"]})
    law = [
        {"attributes": count, "found": attacks.tracing_power(count, CANDIDATES // 2)} for count in range(50, 2_001, 50)
    ]
    x = alt.X("attributes:Q", title="counts that were asked for, one an attribute")
    y = alt.Y("found:Q", title="members found", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    names = alt.Scale(domain=list(SYSTEMS), range=COLOURS)
    lines = (
        alt.Chart(alt.Data(values=rows))
        .mark_line(point=True, strokeWidth=2.5)
        .encode(x=x, y=y, color=alt.Color("system:N", title=None, scale=names, sort=list(SYSTEMS)))
    )
    curve = alt.Chart(alt.Data(values=law)).mark_line(color="#666666", strokeDash=[4, 4]).encode(x=x, y=y)
    title = "Who is in a group of about 100, at one false alarm in a hundred; dashed: the law for exact answers"
    return alt.layer(curve, lines).properties(width=440, height=260, title=title)


def all_of_them() -> Any:
    """Every attack of the demo."""
    return accuracy_chart([case.run() for case in cases()])


PICTURES = {"attacks-queries": by_queries, "attacks-members": members, "attacks-all": all_of_them}


def main() -> None:
    """Write the pictures as SVG."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, draw in PICTURES.items():
        charts.save(draw(), folder / f"{name}.svg")


if __name__ == "__main__":
    main()
