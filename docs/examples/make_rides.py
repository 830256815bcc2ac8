"""Make the two tables of the documentation: rides.csv, as if it were private, and zones.csv, a public list of zones.

    python docs/examples/make_rides.py

Every number is invented. A fixed seed makes the same files each time; a test compares them with those in this folder.
"""

# ruff: noqa: INP001  a script, no package

from __future__ import annotations

import csv
import random
from pathlib import Path

SEED = 20240601
RIDES = 4000
RIDERS = 900
ZONES = {"centre": 48, "harbour": 22, "airport": 15, "park": 8, "hills": 4, "garden": 2, "island": 1, "quarry": 0}
"""Zones and their weights; nobody ever rides to the quarry, but the public list has it."""


def rides() -> list[tuple[str, str, int, float]]:
    """Return rides as (rider, zone, month, minutes)."""
    rng = random.Random(SEED)  # noqa: S311  invented data, no secret
    riders = [f"r{number:03d}" for number in range(RIDERS)]
    activity = [1 / (rank + 20) for rank in range(RIDERS)]
    rows = []
    for rider in rng.choices(riders, activity, k=RIDES):
        zone = rng.choices(list(ZONES), list(ZONES.values()))[0]
        rows.append((rider, zone, rng.randint(1, 12), round(rng.lognormvariate(2.5, 0.6), 1)))
    return rows


def write(folder: Path) -> None:
    """Write both files into a folder."""
    with (folder / "rides.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("rider", "zone", "month", "minutes"), *rides()])
    with (folder / "zones.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([("id",), *((zone,) for zone in ZONES)])


if __name__ == "__main__":
    write(Path(__file__).parent)
