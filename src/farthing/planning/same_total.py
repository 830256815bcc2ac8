"""Products that are measured apart and count the same rows: their totals are one number, and are told as one."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.strategy import applied
from farthing.planning.ways import EACH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from farthing.mechanisms.strategy import Strategy
    from farthing.planning.ways import Way

    Float64 = NDArray[np.float64]

_CLOSE: Final = 1e-9


def answers_of(way: Way, means: Sequence[Float64], variances: Sequence[float]) -> tuple[Float64, ...]:
    """Return the answers of each product, float64[answers]; where products are measured apart, all of one total.

    Every total of all rows that the measurements of a product give is replaced by the mean of these totals, weighted by
    their precisions, and answers move as they depend on it.

    Guarantee: post-processing; unbiased, and no answer's variance is larger than without it.
    Proof: docs/proofs/mechanisms.strategy.md, section 4.
    Assumes: each strategy's measurements have independent errors of one variance.
    Rounds: to the nearest.

    Args:
        way: how the products were measured.
        means: by strategy, what was measured, as its measurements are shaped.
        variances: by strategy, their variance.
    """
    values = [np.asarray(sum(use.of(means[use.strategy]) for use in uses), np.float64) for uses in way.uses]
    parts = {number: rows for number, one in enumerate(way.strategies) if (rows := _total_of(one)) is not None}
    if way.name != EACH or len(parts) < 2:
        return tuple(values)
    totals = {number: float(applied(rows, means[number]).reshape(-1)[0]) for number, rows in parts.items()}
    lengths = {number: float(np.prod([(row**2).sum() for row in rows])) for number, rows in parts.items()}
    precisions = {number: 1 / (variances[number] * lengths[number]) for number in parts}
    same = sum(totals[number] * precisions[number] for number in parts) / sum(precisions.values())
    for number, rows in parts.items():
        (use,) = way.uses[number]
        pairs = zip(use.back, rows, strict=True)
        along = reduce(
            np.multiply.outer, [row[0] if back is None else back @ row[0] for back, row in pairs], np.ones(())
        )
        values[number] = values[number] + along.reshape(-1) / lengths[number] * (same - totals[number])
    return tuple(values)


def _total_of(strategy: Strategy) -> list[Float64] | None:
    """Return for each factor float64[1, measurements], how the total follows from them; None where it does not."""
    found = []
    for size, matrix in zip(strategy.sizes, strategy.floats, strict=True):
        every = np.ones((1, size))
        row = every if matrix is None else np.linalg.lstsq(matrix.T, every[0], rcond=None)[0][None, :]
        if matrix is not None and abs(row @ matrix - every).max() > _CLOSE:
            return None
        found.append(row)
    return found
