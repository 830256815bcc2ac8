"""A ride table for the speed benchmarks, the same for the same number of rows.

Columns: rider int64 (rows/20 riders, heavy-tailed), zone int32 (265 zones, from a handful of rows to a fifth of all),
place int32 (up to 1,000,000 places, all about equally busy), fare float64.

    python bench/data.py 10000000 rides.parquet
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ZONES = 265
PLACES = 1_000_000
CHUNK = 5_000_000


def _cumulative(weights: np.ndarray) -> np.ndarray:
    """Return the cumulative distribution of weights."""
    return np.cumsum(weights / weights.sum())


def write(rows: int, path: Path) -> None:
    """Write the table, in row groups of a million, zstd."""
    rng = np.random.default_rng(20240601)
    riders = max(rows // 20, 10)
    rider_cdf = _cumulative(1.0 / (np.arange(riders) + 50.0) ** 0.8)
    zone_cdf = _cumulative(1.0 / (np.arange(ZONES) + 2.0) ** 1.6)
    names = rng.permutation(riders).astype(np.int64)
    schema = pa.schema([("rider", pa.int64()), ("zone", pa.int32()), ("place", pa.int32()), ("fare", pa.float64())])
    with pq.ParquetWriter(path, schema, compression="zstd") as out:
        for start in range(0, rows, CHUNK):
            n = min(CHUNK, rows - start)
            rider = names[np.minimum(np.searchsorted(rider_cdf, rng.random(n)), riders - 1)]
            zone = np.minimum(np.searchsorted(zone_cdf, rng.random(n)), ZONES - 1).astype(np.int32)
            place = rng.integers(0, PLACES, n, dtype=np.int32)
            fare = np.exp(rng.normal(2.6, 0.6, n)).round(2)
            table = pa.table([rider, zone, place, fare], schema=schema)
            out.write_table(table, row_group_size=1_000_000)


def rides(rows: int, folder: Path | None = None) -> Path:
    """Return the table's path, written on first use."""
    home = folder or Path(tempfile.gettempdir()) / "farthing-bench"
    home.mkdir(parents=True, exist_ok=True)
    path = home / f"rides-{rows}.parquet"
    if not path.exists():
        draft = path.with_suffix(".draft")
        write(rows, draft)
        draft.rename(path)
    return path


if __name__ == "__main__":
    write(int(float(sys.argv[1])), Path(sys.argv[2]))
