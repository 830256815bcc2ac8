"""Public group keys: what is accepted, what is refused and how, and the identity of a list."""

# ruff: noqa: DTZ001  times in questions have no zone

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from work import calls_of

from farthing.errors import InvalidKeys, UnsupportedQuery
from farthing.query import Keys, Schema, Type

SCHEMA = Schema.of(
    {
        "i": Type.INTEGER,
        "s": Type.STRING,
        "f": Type.FLOAT,
        "m": Type.DECIMAL,
        "b": Type.BOOLEAN,
        "d": Type.DATE,
        "t": Type.TIMESTAMP,
        "o": Type.OTHER,
    }
)


@pytest.mark.parametrize(
    ("column", "given", "expected"),
    [
        ("i", [3, 1, None], [3, 1, None]),
        ("i", range(2, 5), [2, 3, 4]),
        ("i", np.array([1, 2], np.uint8), [1, 2]),
        ("i", np.array([2**63], np.uint64), [2**63]),
        ("i", [1, 2**64 - 1, None, 2**63], [1, 2**64 - 1, None, 2**63]),
        ("f", [1, 2**63], [1.0, 2.0**63]),
        ("i", pd.Series([1, 2]), [1, 2]),
        ("i", pl.Series([1, 2]), [1, 2]),
        ("i", pa.chunked_array([[1], [2]]), [1, 2]),
        ("s", ("b", "a", "", None), ["b", "a", "", None]),
        ("s", pd.Series(["x", "y"], dtype="category"), ["x", "y"]),
        ("s", pl.Series(["x", "y"], dtype=pl.Categorical), ["x", "y"]),
        ("s", np.array(["x", "y"]), ["x", "y"]),
        ("s", [None], [None]),
        ("f", [1, 2], [1.0, 2.0]),
        ("f", [-0.0], [0.0]),
        ("m", [1.5, 2], [1.5, 2.0]),
        ("b", [True, False, None], [True, False, None]),
        ("d", [dt.date(2013, 1, 1)], [dt.date(2013, 1, 1)]),
        ("t", [dt.date(2013, 1, 1), dt.datetime(2013, 1, 2)], [dt.datetime(2013, 1, 1), dt.datetime(2013, 1, 2)]),
        ("t", pd.date_range("2013-01-01", periods=1), [dt.datetime(2013, 1, 1)]),
    ],
)
def test_lists_of_every_kind(column, given, expected):
    """A list, range or array of the column's type becomes the keys, in order."""
    assert expected == Keys.of((column,), {column: given}, SCHEMA).column(column).to_pylist()


@pytest.mark.parametrize(
    ("by", "given", "words"),
    [
        (("i",), None, "GROUP BY without keys.*pass keys="),
        (("i", "s"), {"i": [1]}, "GROUP BY without keys.*'s'"),
        (("i",), {"i": [1], "s": ["x"]}, "not a grouping column"),
        (("i",), {"i": []}, "empty"),
        (("i",), {"i": [1, 2, 1]}, "repeated keys.*i=1"),
        (("i",), {"i": [None, None]}, "repeated keys"),
        (("f",), {"f": [0.0, -0.0]}, "repeated keys"),
        (("f",), {"f": [1.0, float("nan")]}, "NaN"),
        (("i",), {"i": ["1"]}, "wrong type.*integer.*string"),
        (("i",), {"i": [1.0]}, "wrong type"),
        (("i",), {"i": [True]}, "wrong type"),
        (("i",), {"i": [1, "x"]}, "wrong type"),
        (("i",), {"i": [2**64]}, "wrong type"),
        (("i",), {"i": [-1, 2**63]}, "wrong type"),
        (("i",), {"i": [2**63, True]}, "wrong type"),
        (("i",), {"i": [2**63, 1.0]}, "wrong type"),
        (("i",), {"i": [2**63, "1"]}, "wrong type"),
        (("s",), {"s": [1]}, "wrong type"),
        (("s",), {"s": ["\ud800"]}, "wrong type"),
        (("d",), {"d": ["2013-01-01"]}, "wrong type"),
        (("t",), {"t": [dt.datetime(2013, 1, 1, tzinfo=dt.UTC)]}, "wrong type"),
        (("s",), {"s": "ORD"}, "not a list"),
        (("s",), ["ORD"], "neither lists nor a table"),
        (("s",), 5, "neither lists nor a table"),
        (("o",), {"o": [1]}, "cannot be grouped"),
        ((), {"s": ["x"]}, "without grouping columns"),
        (("i", "s"), [{"i": 1, "s": "x"}, {"i": 1, "s": "x"}], "repeated keys.*i=1, s='x'"),
        (("i", "s"), [{"i": 1, "s": "x"}, {"i": 1}], "not a table"),
        (("i", "s"), pd.DataFrame({"i": [1, "a"], "s": ["x", "y"]}), "not a table"),
        (("i", "f"), {"i": range(100_000), "f": range(100_000)}, "too many groups"),
    ],
)
def test_refused_keys(by, given, words):
    """Keys that are missing, repeated, empty, NaN or of the wrong type are refused with the reason."""
    with pytest.raises(InvalidKeys, match=words):
        Keys.of(by, given, SCHEMA)


def test_unknown_column_is_named_with_its_neighbour():
    """An unknown grouping column is refused by name."""
    schema = Schema.of({"dest": Type.STRING})
    with pytest.raises(UnsupportedQuery, match=r"'dset'.*did you mean 'dest'"):
        Keys.of(("dset",), {"dset": ["ORD"]}, schema)


def test_no_grouping_columns_have_no_keys():
    """Without grouping columns there are no keys."""
    assert Keys.of((), None, SCHEMA) is None


def test_cross_product_varies_the_first_column_slowest():
    """Several lists are combined in full."""
    keys = Keys.of(("s", "i"), {"i": [1, 2, 3], "s": ["x", None]}, SCHEMA)

    assert len(keys) == 6
    assert keys.names == ("s", "i")
    assert ["x", "x", "x", None, None, None] == keys.column("s").to_pylist()
    assert [1, 2, 3, 1, 2, 3] == keys.column("i").to_pylist()


def test_tables_of_combinations_are_one_thing():
    """pandas, Polars, Arrow and plain rows give the same keys, whatever the order of their columns."""
    rows = [{"i": 2, "s": "x"}, {"i": 1, "s": None}]
    tables = [
        rows,
        pd.DataFrame(rows),
        pl.DataFrame(rows),
        pa.Table.from_pylist(rows),
        pa.table({"s": ["x", None], "i": [2, 1]}),
    ]
    prints = {Keys.of(("i", "s"), table, SCHEMA).fingerprint for table in tables}

    assert len(prints) == 1


def test_fingerprint_follows_values_order_and_names():
    """Equal lists have equal fingerprints; any change, of order too, shows."""
    lists = [["a", "b"], ["b", "a"], ["ab", ""], ["a", None], ["a", ""], ["a"], [None, "a"]]
    prints = [Keys.of(("s",), {"s": given}, SCHEMA).fingerprint for given in lists]
    sliced = pa.array(["z", "a", "b"]).slice(1)

    assert len(set(prints)) == len(lists)
    assert prints[0] == Keys.of(("s",), {"s": sliced}, SCHEMA).fingerprint
    assert prints[0] == Keys.of(("s",), {"s": pa.chunked_array([["a"], ["b"]])}, SCHEMA).fingerprint
    assert prints[0] != Keys.of(("z",), {"z": ["a", "b"]}, Schema.of({"z": Type.STRING})).fingerprint


def test_a_million_keys_are_read_in_vectors():
    """A million integer keys take no call for each."""
    made = []

    assert calls_of(lambda: made.append(Keys.of(("i",), {"i": range(1_000_000)}, SCHEMA))) < 10_000
    assert len(made[0]) == 1_000_000
