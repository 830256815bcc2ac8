"""Counts by zone with diffprivlib: a histogram of one column. It has no units of several rows."""

from __future__ import annotations

import math
import sys

import turns


def price() -> None:
    """Tell what its accountant charges for the questions of `turns`, at the least epsilon of its Laplace mechanism."""
    import diffprivlib

    epsilon = -math.log(1 - turns.CONFIDENCE) / turns.WITHIN
    accountant = diffprivlib.BudgetAccountant(slack=turns.DELTA)
    for _ in range(turns.QUESTIONS):
        accountant.spend(epsilon, 0)
    turns.told(epsilon=accountant.total()[0], how="Laplace noise, advanced composition")


def counts(path: str) -> None:
    """Ask in turns."""
    import diffprivlib
    import pyarrow.parquet as pq

    def ask() -> list[float]:
        column = pq.read_table(path, columns=["zone"])["zone"].to_numpy()
        edges = (-0.5, turns.ZONES - 0.5)
        return diffprivlib.tools.histogram(column, epsilon=turns.EPSILON, bins=turns.ZONES, range=edges)[0]

    turns.serve(ask)


if __name__ == "__main__":
    price() if sys.argv[1] == "price" else counts(turns.arguments()[0])
