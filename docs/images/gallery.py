"""Draw the pictures of the gallery that no other page has: python docs/images/gallery.py [FOLDER]."""  # noqa: INP001  no package

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import farthing
from farthing import attacks, charts
from farthing.cli.app import app
from farthing.mechanisms import Exponential, PermuteAndFlip
from farthing.privacy.profile import gaussian, two_sided_geometric

RIDES = Path(__file__).parents[1] / "examples" / "rides.csv"
ZONES = ["centre", "harbour", "airport", "park", "hills", "garden", "island", "quarry"]
SCORES = [120.0, 110.0, 100.0, 60.0, 20.0]


def rides() -> farthing.Session:
    """Return a session over the invented rides, with books that are in memory."""
    table = farthing.Csv(RIDES, columns={"month": "integer", "minutes": "float"})
    return farthing.Session(table, name="rides", budget=farthing.Budget(epsilon=5, delta=1e-6))


def months() -> Any:
    """A count by month."""
    return rides().count(by="month", keys={"month": range(1, 13)}, relative=0.1, absolute=20, cap="all").chart()


def means() -> Any:
    """A mean by zone, of which the smallest zones miss the target that the cap allows."""
    keys = {"zone": ZONES}
    return rides().mean("minutes", lower=0, upper=60, by="zone", keys=keys, absolute=2, cap="all").chart()


def losses() -> Any:
    """The privacy loss of two mechanisms of one mu."""
    laws = {"Gaussian noise, mu 0.5": gaussian(0.5), "geometric noise, epsilon 0.5": two_sided_geometric(0.5, 8)}
    return charts.loss_chart(laws, np.linspace(0, 2, 201))


def chances() -> Any:
    """How likely each of five scores is chosen."""
    found = {
        "exponential": Exponential(0.1).probabilities(SCORES, 1, monotone=True).tolist(),
        "permute and flip": PermuteAndFlip(0.1).probabilities(SCORES, 1, monotone=True).tolist(),
    }
    return charts.selection_chart(SCORES, found, title="epsilon 0.1, sensitivity 1, monotone")


def reconstruction() -> Any:
    """One attack on one system: rounded counts, and half of them."""
    people = attacks.secrets(200, seed=1)
    systems = (attacks.targets.Rounded(people, 5), attacks.targets.FreshGaussian(people.bits, sigma=3))
    return attacks.picture.accuracy_chart([attacks.linear(system, queries=1600) for system in systems])


def prices() -> Any:
    """What several ways to choose the three largest zones cost."""
    chosen = rides().top_k("zone", k=3, keys={"zone": ZONES}, within=300, cap="all")
    found = {name: price.value for name, price in chosen.compared}
    return charts.prices_chart(found, parameter=chosen.paid.parameter, title=chosen.caption)


def policies(path: Path) -> None:
    """What members of groups of each size lose, as the command line draws it."""
    wish = ["groups", "--sizes", "1,10,100,1000,1000000", "--relative", "0.1", "--x0", "50"]
    ended = CliRunner().invoke(app, [*wish, "--chart", str(path)])
    if ended.exit_code:
        raise SystemExit(ended.output)


PICTURES = {
    "gallery-months": months,
    "gallery-means": means,
    "gallery-losses": losses,
    "gallery-chances": chances,
    "gallery-prices": prices,
    "gallery-reconstruction": reconstruction,
}


def main() -> None:
    """Write every picture as SVG."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, draw in PICTURES.items():
        charts.save(draw(), folder / f"{name}.svg")
    policies(folder / "gallery-policies.svg")


if __name__ == "__main__":
    main()
