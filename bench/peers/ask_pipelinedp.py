"""Counts by zone with PipelineDP on its local backend, which is one process of plain Python."""

from __future__ import annotations

import logging
import sys

import turns

logging.disable(logging.WARNING)


def price() -> None:
    """Tell how much noise its accountant gives each question at epsilon 1; to search for an epsilon takes minutes."""
    import pipeline_dp
    from pipeline_dp.aggregate_params import MechanismType

    accountant = pipeline_dp.PLDBudgetAccountant(total_epsilon=turns.EPSILON, total_delta=turns.DELTA)
    specs = [accountant.request_budget(MechanismType.GAUSSIAN) for _ in range(turns.QUESTIONS)]
    accountant.compute_budgets()
    deviation = specs[0].noise_standard_deviation
    turns.told(deviation=deviation, how="Gaussian noise, privacy loss distributions; all questions declared first")


def counts(path: str, unit: str) -> None:
    """Ask in turns."""
    import pipeline_dp
    import pyarrow.parquet as pq

    rider = unit == "rider"
    bounds = {
        "max_partitions_contributed": turns.MOST_ZONES if rider else 1,
        "max_contributions_per_partition": turns.MOST_ROWS if rider else 1,
    }

    def ask() -> list[float]:
        table = pq.read_table(path, columns=["rider", "zone"])
        people = table["rider"].to_pylist() if rider else range(table.num_rows)
        rows = list(zip(people, table["zone"].to_pylist(), strict=True))
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=turns.EPSILON, total_delta=turns.DELTA)
        params = pipeline_dp.AggregateParams(
            noise_kind=pipeline_dp.NoiseKind.LAPLACE, metrics=[pipeline_dp.Metrics.COUNT], **bounds
        )
        extractors = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda _: 0,
        )
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        lazy = engine.aggregate(rows, params, extractors, public_partitions=list(range(turns.ZONES)))
        accountant.compute_budgets()
        found = {zone: metrics.count for zone, metrics in lazy}
        return [found[zone] for zone in range(turns.ZONES)]

    turns.serve(ask)


if __name__ == "__main__":
    price() if sys.argv[1] == "price" else counts(*turns.arguments())
