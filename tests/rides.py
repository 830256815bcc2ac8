"""A small table that the tests of the session ask, and ways to open it."""

import numpy as np
import pyarrow as pa

from farthing import Budget, Session

BUDGET = Budget(mu=1)
SIZES = (0, 40, 400, 4_000)
KEYS = {"k": ["none", "few", "some", "many"]}
BY = {"by": "k", "keys": KEYS}
TABLE = pa.table({
    "k": np.repeat(KEYS["k"], SIZES),
    "u": np.arange(sum(SIZES)) // 4,
    "x": np.arange(sum(SIZES)) % 10,
})  # fmt: skip


def opened(**options):
    """Open the table, with a budget of mu = 1 unless told otherwise."""
    return Session(TABLE, **({"budget": BUDGET} | options))


def same(first, second):
    """Tell whether two answers show the same numbers."""
    return all(
        np.array_equal(getattr(first, name), getattr(second, name)) for name in ("value", "lower", "upper", "met")
    )
