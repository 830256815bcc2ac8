"""Arrow arrays made and read without pyarrow's detour over pandas are those that pyarrow makes and reads."""

import math
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing.plain_arrays import arrow_array, numbers_of

LISTS = [
    [], [1, 2], [1, None], [True, False], [1.5, float("nan")], [1, 2.5], ["a", None, "é\x00"], [None, None],
    [-(2**63), 2**63 - 1], ["a"] * 3, (1, 2), range(5), range(5, 0, -2), [np.int8(3)], [b"a", None],
    np.arange(6, dtype=np.int16)[::2], np.array([1.0, np.nan], np.float32), np.array([True]), np.array(["a", "b"]),
    np.array(["2020-01-01"], "datetime64[us]"), np.zeros(0, np.uint8),
    np.ma.masked_array([1, 2], mask=[True, False]),
]  # fmt: skip
BROKEN = [
    [1, "a"],
    [1, True],
    [2**63],
    np.array([1, 2], ">i4"),
    np.array([1, "a"], object),
    [2**64],
    ["\ud800"],
    np.zeros((2, 2)),
]
COLUMNS = [
    pa.array([1, 2, 3]).slice(1), pa.array([1.5, 2.5]), pa.array([], pa.int32()), pa.chunked_array([[1], [2, 3]]),
    pa.array([True, False, True]).slice(1), pa.array([1, None]), pa.chunked_array([], pa.int64()),
]  # fmt: skip

FRESH = """
import sys

import farthing
budget = farthing.Budget(epsilon=9, delta=1e-6)
with farthing.Session(sys.argv[1], budget=budget, ledger=sys.argv[2], name="t") as session:
    for absolute in (50, 50):  # the second is read from what was kept
        session.count(by="zone", keys={"zone": range(9)}, absolute=absolute)
print(*sorted({"pandas", "scipy", "sqlglot", "ibis", "polars", "pyarrow.dataset"} & set(sys.modules)))
"""


def plain(values):
    """Return the values as Python has them, NaN as its text."""
    return ["NaN" if isinstance(value, float) and math.isnan(value) else value for value in values]


@pytest.mark.parametrize("given", LISTS, ids=repr)
def test_a_list_becomes_the_array_that_pyarrow_makes(given):
    """The type, the values and the places of NULL are the same."""
    made, expected = arrow_array(given), pa.array(np.array(given) if isinstance(given, range) else given)
    assert made.type == expected.type
    assert made.null_count == expected.null_count
    assert plain(made.to_pylist()) == plain(expected.to_pylist())
    made.validate(full=True)


@pytest.mark.parametrize("given", BROKEN, ids=repr)
def test_a_list_that_pyarrow_refuses_is_refused_alike(given):
    """The kind of the error is the same, since callers tell kinds apart."""
    with pytest.raises(Exception) as theirs:
        pa.array(given)
    with pytest.raises(theirs.type):
        arrow_array(given)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_a_column_is_read_as_numpy_reads_it(column):
    """Slices, chunks, truths, no values, and NULL, which becomes NaN as pyarrow says."""
    expected = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    assert plain(numbers_of(column).tolist()) == plain(expected.tolist())


@pytest.mark.thorough
def test_a_count_in_a_fresh_process_imports_no_heavy_library(tmp_path):
    """Of pandas, scipy, sqlglot, ibis, polars and pyarrow's datasets, a count by listed numbers needs none."""
    pq.write_table(pa.table({"zone": np.arange(9000) % 9}), tmp_path / "t.parquet")
    command = [sys.executable, "-c", FRESH, str(tmp_path / "t.parquet"), str(tmp_path / "a.ledger")]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    assert told.stdout.split() == []
