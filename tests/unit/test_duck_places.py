"""Keys that count up: the place of a row's key is computed, and is the one that a look at the list gives."""

from unittest.mock import PropertyMock, patch

import numpy as np
import pyarrow as pa
import pytest

from farthing.engines import open_table
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, counting
from farthing.query.aggregates import NamedAggregate, Quantile
from farthing.query.expressions import Column

LISTS = {
    "from below zero": {"k": range(-3, 5)},
    "of all that the type holds": {"k": range(-128, 128)},
    "far from all rows": {"k": range(2**62, 2**62 + 3)},
    "one key": {"k": [0]},
    "two columns": {"k": range(-2, 3), "m": range(4)},
    "two columns, one key each": {"m": [3], "k": [1]},
    "the last of 64 bits, behind another column": {"m": range(-1, 5), "k": [2**63 - 2, 2**63 - 1]},
    "the first of 64 bits, behind another column": {"m": range(-1, 5), "k": [-(2**63), 1 - 2**63]},
}
NOT_IN_ALL = {name for name in LISTS if "64" in name} | {"far from all rows"}
"""Lists of which some type has no row."""

OTHERS = {
    "downward": {"k": [2, 1, 0]},
    "with a gap": {"k": [0, 1, 3]},
    "with NULL": {"k": [0, 1, None]},
    "from one end of 64 bits to the other": {"k": [-(2**63), 2**63 - 1]},
    "not a product": [{"k": 0, "m": 0}, {"k": 0, "m": 1}, {"k": 1, "m": 1}, {"k": 1, "m": 0}],
}


def _engine(kind):
    """Return an engine of rows with the least and the greatest value of a type among their keys."""
    chance, info = np.random.default_rng(11), np.iinfo(kind.to_pandas_dtype())
    keys = [*chance.integers(max(-6, info.min), 8, 400).tolist(), int(info.min), int(info.max), None]
    return open_table(pa.table({
        "u": pa.array(chance.integers(0, 30, len(keys))),
        "k": pa.array(keys, kind),
        "m": pa.array(chance.integers(-1, 5, len(keys)), pa.int16()),
        "x": pa.array(chance.random(len(keys))),
    }), name="t")  # fmt: skip


def _query(engine, given):
    """Return a count by keys: at most 2 groups of a unit, and 3 rows in each."""
    by = tuple(given) if isinstance(given, dict) else tuple(given[0])
    keys = Keys.of(by, given, engine.schema)
    return Query("t", by, keys, None, counting("n"), PrivacyUnit("u"), Bounds(2, 3))


def _asked(engine, query):
    """Return the measures and the histogram of a question."""
    median = Quantile(Column("x"), 0.5, 0, 1)
    ranks = Query(*(query.table, query.by, query.keys, None, (NamedAggregate("o", median),), query.unit, query.bounds))
    found = engine.histogram(ranks, median, 9)
    return engine.measure(query, 9).tolist(), [part.tolist() for part in (found.groups, found.leaves, found.counts)]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64()], ids=str)
@pytest.mark.parametrize("name", LISTS)
def test_a_computed_place_is_the_place_in_the_list(kind, name):
    """Of every whole number of a type, and the same groups of each unit are kept; nothing overflows."""
    engine = _engine(kind)
    query = _query(engine, LISTS[name])
    computed = _asked(engine, query)
    with patch.object(Keys, "ranges", PropertyMock(return_value=None)):
        looked_up = _asked(engine, query)

    assert query.keys.ranges is not None
    assert looked_up == computed
    assert any(sum(row) for row in computed[0]) or name in NOT_IN_ALL


@pytest.mark.parametrize("name", OTHERS)
def test_other_lists_are_looked_up(name):
    """They have no ranges, and were they taken for such, the test above would see it."""
    engine = _engine(pa.int64())
    query = _query(engine, OTHERS[name])
    truth = _asked(engine, query)
    wrong = tuple(range(-1, len(query.keys) - 1) if place == 0 else range(1) for place in range(len(query.by)))

    assert query.keys.ranges is None
    with patch.object(Keys, "ranges", PropertyMock(return_value=wrong)):
        assert _asked(engine, query) != truth
