"""Tables drawn towards what tables over fewer columns tell, as far as their own noise is large: released numbers alone.

What three columns tell beyond each two of them is often small, and its noise is not. The part of a table that is
mean-zero along every column is drawn towards that of a model of the pairs, by one factor for all tables: the share of
its squared length that noise does not explain.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]
    Told = Callable[[tuple[int, ...]], tuple[Float64, float]]


def shrunk(
    tables: Mapping[tuple[int, ...], Float64],
    told: Told,
    sizes: tuple[int, ...],
    modelled: Callable[[tuple[int, ...]], Float64],
) -> dict[tuple[int, ...], Float64]:
    """Return tables whose own parts are drawn towards those of a model.

    Args:
        tables: the released counts, by columns in rising order.
        told: the released counts by some columns, and their standard deviation.
        sizes: how many values each column has.
        modelled: the counts by some columns as a model of tables over fewer columns tells them.
    """
    own = own_variances(told, sizes)
    apart = {columns: centred(table - modelled(columns)) for columns, table in tables.items()}
    noise = sum(table.size * own(columns) for columns, table in tables.items())
    length = sum(float((part**2).sum()) for part in apart.values())
    kept = max(0.0, 1 - noise / length) if length > 0 else 1.0
    return {columns: table - (1 - kept) * apart[columns] for columns, table in tables.items()}


def own_variances(told: Told, sizes: tuple[int, ...]) -> Callable[[tuple[int, ...]], float]:
    """Return what gives the part of a cell's variance that no table over fewer columns has.

    >>> import numpy as np
    >>> own = own_variances(lambda columns: (np.zeros(()), 3.0 if columns else 4.0), (2,))
    >>> own((0,))  # 9, less the total's 16 over 2 squared
    5.0
    """

    @cache
    def own(columns: tuple[int, ...]) -> float:
        """Return the part of some columns."""
        rest = 0.0
        for many in range(len(columns)):
            for fewer in combinations(columns, many):
                rest += own(fewer) / math.prod(sizes[at] for at in columns if at not in fewer) ** 2
        return max(0.0, told(columns)[1] ** 2 - rest)

    return own


def centred(table: Float64) -> Float64:
    """Return the part of a table that is mean-zero along every axis.

    >>> import numpy as np
    >>> centred(np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
