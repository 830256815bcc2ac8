"""Counts by zone with OpenDP's context over a Polars scan."""

from __future__ import annotations

import sys
from typing import Any

import turns


def price() -> None:
    """Tell what its own compositor and conversion charge for the questions of `turns`."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    scale = dp.accuracy_to_discrete_gaussian_scale(float(turns.WITHIN), 1 - turns.CONFIDENCE)
    one = (dp.atom_domain(T=int), dp.absolute_distance(T=int)) >> dp.m.then_gaussian(scale)
    every = dp.c.make_composition([one] * turns.QUESTIONS)
    epsilon, _ = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(every), turns.DELTA).map(1)
    turns.told(epsilon=epsilon, how="discrete Gaussian noise, zCDP and its conversion")


def counts(path: str, unit: str) -> None:
    """Ask in turns."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    table = pl.scan_parquet(path)
    keys = pl.LazyFrame({"zone": pl.Series(range(turns.ZONES), dtype=pl.Int32)})
    who: dict[str, Any] = {"identifier": pl.col("rider")} if unit == "rider" else {}

    def ask() -> list[float]:
        query = dp.Context.compositor(
            data=table,
            privacy_unit=dp.unit_of(contributions=1, **who),
            privacy_loss=dp.loss_of(epsilon=turns.EPSILON),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=200_000_000)],
        ).query()
        if unit == "rider":  # keep="sample", the default, raises in 0.16.0
            query = query.truncate_per_group(turns.MOST_ROWS, by=["zone"])
            query = query.truncate_num_groups(turns.MOST_ZONES, by=["zone"], keep="first")
        answer = query.group_by("zone").agg(dp.len(signed=True)).with_keys(keys).release().collect()
        return answer.sort("zone")["len"].to_list()

    turns.serve(ask)


if __name__ == "__main__":
    price() if sys.argv[1] == "price" else counts(*turns.arguments())
