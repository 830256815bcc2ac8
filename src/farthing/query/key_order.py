"""The groups of a question by their keys: which are alike in some columns, and in which order they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.plain_arrays import numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One key of an order of groups: a grouping column."""

    column: str
    descending: bool = False
    nulls_first: bool = False

    def __str__(self) -> str:
        return self.column + " DESC" * self.descending + " NULLS FIRST" * self.nulls_first


def partitions(column: Callable[[str], Any], names: Sequence[str], groups: int) -> Ints:
    """Return numbers 0, 1, ... that groups have in common which are alike in some columns, int64[groups].

    Args:
        column: the values of a grouping column, an Arrow array.
        names: the columns.
        groups: how many groups there are.
    """
    places = np.zeros(groups, np.int64)
    for name in names:
        codes = numbers_of(column(name).dictionary_encode(null_encoding="encode").indices).astype(np.int64)
        places = _finer(places, codes)
    return places


def ranks(column: Callable[[str], Any], order: Sequence[OrderKey], groups: int) -> Ints:
    """Return the places of groups in an order, equal ones alike, int64[groups].

    >>> import pyarrow as pa
    >>> months = {"month": pa.array([3, None, 1, 3])}
    >>> ranks(months.__getitem__, [OrderKey("month")], 4).tolist()
    [1, 2, 0, 1]
    """
    places = np.zeros(groups, np.int64)
    for key in order:
        places = _finer(places, _ranked(column(key.column), key))
    return places


def _finer(places: Ints, codes: Ints) -> Ints:
    """Return numbers that groups have in common which are alike in two, in the order of the first, then the second."""
    both = places * (int(codes.max(initial=0)) + 1) + codes
    return np.asarray(np.unique(both, return_inverse=True)[1].reshape(-1), np.int64)


def _ranked(column: Any, key: OrderKey) -> Ints:
    """Return the places of values in an order, equal ones alike, int64[groups]."""
    import pyarrow.compute as pc

    found = column.dictionary_encode()
    values = found.dictionary
    order = pc.array_sort_indices(values, order="descending" if key.descending else "ascending")
    places = np.empty(len(values) + 1, np.int64)
    places[numbers_of(order)] = np.arange(1, len(values) + 1)
    places[-1] = 0 if key.nulls_first else len(values) + 1
    return np.asarray(places[numbers_of(pc.fill_null(found.indices, len(values))).astype(np.int64)])
