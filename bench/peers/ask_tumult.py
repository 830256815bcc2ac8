"""Counts by zone with Tumult Analytics, on Spark with two threads; it needs Java 17."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from typing import Any

import turns

os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
warnings.filterwarnings("ignore")


def price() -> None:
    """Tell the sum of rho: it converts no total to epsilon and delta."""
    turns.told(rho=turns.QUESTIONS * (1.959964 / turns.WITHIN) ** 2 / 2, how="Gaussian noise, zCDP; no conversion")


def session(spark: Any, path: str, unit: str) -> Any:
    """Return a session with an unlimited budget."""
    import tmlt.analytics as ta

    frame, unlimited = spark.read.parquet(path), ta.PureDPBudget(float("inf"))
    if unit == "row":
        change = ta.AddOneRow()
        return ta.Session.from_dataframe(
            privacy_budget=unlimited, source_id="rides", dataframe=frame, protected_change=change
        )
    builder = ta.Session.Builder().with_id_space("riders")
    builder = builder.with_private_dataframe("rides", frame, protected_change=ta.AddRowsWithID("rider", "riders"))
    return builder.with_privacy_budget(unlimited).build()


def counts(path: str, unit: str) -> None:
    """Ask in turns."""
    import tmlt.analytics as ta
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(),
        "spark.driver.extraJavaOptions": "-Dlog4j.rootCategory=ERROR",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    opened = session(spark, path, unit)
    query = ta.QueryBuilder("rides")
    if unit == "rider":
        query = query.enforce(ta.MaxGroupsPerID("zone", turns.MOST_ZONES))
        query = query.enforce(ta.MaxRowsPerGroupPerID("zone", turns.MOST_ROWS))
    query = query.groupby(ta.KeySet.from_dict({"zone": list(range(turns.ZONES))})).count()

    def ask() -> list[float]:
        frame = opened.evaluate(query, privacy_budget=ta.PureDPBudget(turns.EPSILON)).toPandas()
        return frame.sort_values("zone")["count"].tolist()

    turns.serve(ask)
    spark.stop()


if __name__ == "__main__":
    price() if sys.argv[1] == "price" else counts(*turns.arguments())
