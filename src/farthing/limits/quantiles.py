"""The least that a rule pays which keeps the rank of a quantile on all data, wherever the quantile may lie."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import rel_entr

from farthing.errors import InvalidOption

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

_SHAVE: Final = 1 - 1e-9
_MOST_ROWS: Final = 1 << 50
_NEAREST: Final = Fraction(1, 1 << 12)
"""Where a target ends nearer to an end of the range, as a share of the rows, nothing is claimed."""


@dataclass(frozen=True, slots=True)
class QuantileLimit:
    """What a rank target costs at some data, and beside them.

    Attributes:
        here: the least mean price, as mu squared, at these very data, of any rule that keeps the target on all data.
        beside: the same, in the mean over `lumps` data sets that have `rows` rows more, all in one leaf, each in
            another; 0.0 where there are none.
        rows: how many rows more.
        lumps: the leaves of these lumps, int64.
    """

    here: float
    beside: float
    rows: int
    lumps: Int64


def quantile_limit(counts: ArrayLike, q: float, *, rank: float, beta: float) -> QuantileLimit:
    """Return the least that a rule pays for a quantile within a rank target, each row a privacy unit of its own.

    Args:
        counts: int64[leaves], the rows in each leaf of the range, fewer than 2^50 in all.
        q: from 0 to 1; it and `rank` are the decimal numbers that Python prints.
        rank: how far off the rank may be, as a share of the rows.
        beta: the chance of a miss that is allowed on any data.

    Returns:
        The limits; both are 0.0 where the target includes an end of the range, which may then be right for all data, or
        ends within 2^-12 of it.

    Guarantee: no rule of Gaussian measurements, and no mu-GDP mechanism, that tells a right leaf with probability at
        least 1 - beta on all data pays less than `here` at these, or less than `beside` in the mean over the lumps.
    Proof: docs/proofs/limits.quantiles.md.
    Assumes: a leaf is right if at most (q + rank) n rows are below it and at least (q - rank) n up to it.
    Rounds: down; rows up.

    >>> limit = quantile_limit([1] * 1000, 0.5, rank=0.05, beta=0.05)
    >>> limit.rows, len(limit.lumps), f"{limit.here:.1e}"
    (129, 18, '3.3e-04')
    """
    rows = np.asarray(counts)
    if (
        rows.dtype.kind not in "iu"
        or rows.ndim != 1
        or not rows.size
        or (rows < 0).any()
        or rows.sum(dtype=np.float64) >= _MOST_ROWS
        or not 0 <= q <= 1
        or not 0 < beta < 0.5
        or not 0 < rank <= 0.5
    ):
        raise InvalidOption(
            "a limit of a quantile is of rows in leaves",
            rule="counts of at least one leaf, none negative, below 2^50 in all; 0 <= q <= 1; 0 < rank <= 0.5; "
            "0 < beta < 0.5",
            got=f"{rows.shape}, q={q}, rank={rank}, beta={beta}",
            next_step="count the rows in each leaf of the range",
        )
    if min(_decimal(q) - _decimal(rank), 1 - _decimal(q) - _decimal(rank)) < _NEAREST:
        return QuantileLimit(0.0, 0.0, 0, np.zeros(0, np.int64))
    more, share = rows_more(rows.astype(np.int64), q, rank), 1 / np.arange(1, len(rows) + 1)
    order = np.argsort(more, kind="stable")
    far = more[order].astype(np.float64)
    here = 2 * np.where(share < 1 - beta, divergence(1 - share, beta), 0.0) / far**2
    beside = 2 * np.where(share < 1 - beta, divergence(1 - beta, share), 0.0) / far**2
    best = int(np.argmax(beside))
    return QuantileLimit(
        float(np.max(here)) * _SHAVE, float(beside[best]) * _SHAVE, int(far[best]), np.sort(order[: best + 1])
    )


def rows_more(counts: Int64, q: float, rank: float) -> Int64:
    """Return how many rows more in each leaf make all other leaves wrong, int64[leaves].

    >>> rows_more(np.array([40, 20, 40]), 0.5, 0.2).tolist()  # leaf 1 is right as it is: 40 rows more in leaf 0
    [101, 34, 101]
    """
    upto, n = np.cumsum(counts).astype(object), int(counts.sum())  # of Python's whole numbers: none is rounded
    before, low, high = upto - counts, _decimal(q) - _decimal(rank), _decimal(q) + _decimal(rank)
    right = (high.numerator * n - high.denominator * upto) // (high.denominator - high.numerator)
    left = (low.denominator * before - low.numerator * n) // low.numerator  # more make leaves to the left wrong
    right[-1], left[0] = 0, 0
    return np.asarray(np.maximum(np.maximum(left, right), 0) + 1, np.int64)


def _decimal(number: float) -> Fraction:
    """Return the decimal number that a float is printed as."""
    return Fraction(str(float(number)))


def divergence(chance: ArrayLike, other: ArrayLike) -> Float64:
    """Return the Kullback-Leibler divergence of coins that show heads with these chances, of the first from the second.

    >>> divergence([0.5, 0.95], [0.5, 0.05]).round(3).tolist()
    [0.0, 2.65]
    """
    p, r = np.broadcast_arrays(np.asarray(chance, np.float64), np.asarray(other, np.float64))
    return np.asarray(rel_entr(p, r) + rel_entr(1 - p, 1 - r))
