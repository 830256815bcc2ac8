"""The exact counts by several sets of columns, of the same bounded rows: one question to the engine, sealed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from farthing.query.crossing import Crossing
from farthing.sealed import Sealed, sealed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from farthing.ledger.entry import Receipt
    from farthing.query import Query
    from farthing.query.keys import Keys
    from farthing.session.core.context import Context


def crossed_counts(
    context: Context, query: Query, lists: tuple[Keys, ...], sets: Iterable[tuple[int, ...]], receipt: Receipt
) -> Sealed:
    """Return the counts by each set of places of columns, as a sealed mapping; a set within another is its sum."""
    wanted = set(sets)
    rest = sorted(wanted, key=lambda one: (-len(one), one))
    largest = tuple(one for at, one in enumerate(rest) if not any(set(one) <= set(other) for other in rest[:at]))
    counted = dict(zip(largest, context.engine.crossed(query, Crossing(lists, largest), receipt), strict=True))
    found = {}
    for subset in wanted:
        table = min((one for one in largest if set(subset) <= set(one)), key=lambda one: counted[one].size)
        axes = tuple(axis for axis, place in enumerate(table) if place not in subset)
        found[subset] = np.asarray(counted[table].sum(axis=axes), np.int64)
    return sealed(found)
