"""The least that a rule pays which keeps the rank of a quantile on all data, wherever the quantile may lie."""

from __future__ import annotations

import math
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
    here = max(
        float(np.max(2 * np.where(share < 1 - beta, divergence(1 - share, beta), 0.0) / far**2)),
        _either_side(rows.astype(np.int64), q, rank, beta),
    )
    beside = 2 * np.where(share < 1 - beta, divergence(1 - beta, share), 0.0) / far**2
    best = int(np.argmax(beside))
    return QuantileLimit(here * _SHAVE, float(beside[best]) * _SHAVE, int(far[best]), np.sort(order[: best + 1]))


@dataclass(frozen=True, slots=True)
class SearchLimit:
    """What a rank target costs at least in the mean over data with one lump, each in another leaf.

    Attributes:
        mu_squared: the least mean price of a rule of Gaussian measurements of sums over rows.
        of_ranks: the same, of a rule that measures nothing but ranks, whose looks cost what one row moves D.
        epsilon: the least mean price of a rule that is epsilon-DP ex post.
        below: the rows in the first leaf; 0 where there are no such data, and nothing is claimed.
        lump: the rows in the lump; the others are in the last leaf.
    """

    mu_squared: float
    of_ranks: float
    epsilon: float
    below: int
    lump: int


def search_limit(places: int, rows: int, q: float, *, rank: float, beta: float) -> SearchLimit:
    """Return the least that finding a lump costs that makes its leaf the only right one, in the mean over its places.

    Args:
        places: in how many leaves it may be, all but the first and the last; two or more.
        rows: how many rows there are, each a privacy unit of its own; the rule may know it.
        q: from 0 to 1; it and `rank` are the decimal numbers that Python prints.
        rank: how far off the rank may be, as a share of the rows.
        beta: the chance of a miss that is allowed on any data.

    Guarantee: no rule, and no mu-GDP mechanism, that tells a right leaf with probability at least 1 - beta on each of
        these data pays less than `mu_squared` (`of_ranks`, `epsilon`) in the mean over the places; it may know
        everything but the place.
    Proof: docs/proofs/limits.quantiles.md, "Anywhere".
    Assumes: a leaf is right if at most (q + rank) n rows are below it and at least (q - rank) n up to it.
    Rounds: down; the lump up.

    >>> limit = search_limit(65_534, 10_000, 0.5, rank=0.05, beta=0.05)
    >>> limit.below, limit.lump, f"{limit.mu_squared:.3e}", f"{limit.epsilon:.5f}"
    (4499, 1002, '2.059e-05', '0.01047')
    """
    if (
        not 0 <= q <= 1
        or not 0 < beta < 0.5
        or not 0 < rank <= 0.5
        or isinstance(places, bool)
        or isinstance(rows, bool)
        or not 2 <= places <= _MOST_ROWS
        or not 1 <= rows < _MOST_ROWS
        or (places % 1 or rows % 1)
    ):
        raise InvalidOption(
            "a limit of a search is of rows and places",
            rule="whole numbers: two places or more, one row to 2^50; 0 <= q <= 1; 0 < rank <= 0.5; 0 < beta < 0.5",
            got=f"places={places}, rows={rows}, q={q}, rank={rank}, beta={beta}",
            next_step="say how many leaves the range has, but for both ends, and about how many rows there are",
        )
    low, high = (_decimal(q) - _decimal(rank)) * rows, (_decimal(q) + _decimal(rank)) * rows
    below, upto = math.ceil(low) - 1, math.floor(high) + 1  # leaves before the lump are wrong, and those behind it
    if below < 0 or upto > rows or places * (1 - beta) <= 1:
        return SearchLimit(0.0, 0.0, 0.0, 0, 0)
    lump, most = upto - below, float(max(q, 1 - q))
    nats = float(divergence(1 - beta, 1 / places)) * _SHAVE
    sure = (1 - beta) * math.log((1 - beta) * places) * _SHAVE
    return SearchLimit(2 * nats / lump**2, 8 * nats * most**2 / lump**2, sure / lump, below, lump)


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


def one_side(counts: Int64, q: float, rank: float) -> tuple[Int64, Int64]:
    """Return how many rows more or less make all leaves above a threshold wrong, and all others, int64[leaves - 1].

    >>> [rows.tolist() for rows in one_side(np.array([40, 20, 40]), 0.5, 0.2)]  # 43 of 61 rows are 70.5 %
    [[43, 15], [15, 43]]
    """
    upto, n = np.cumsum(counts).astype(object)[:-1], int(counts.sum())
    low, high = _decimal(q) - _decimal(rank), _decimal(q) + _decimal(rank)
    most, least = high.numerator * n - high.denominator * upto, low.denominator * upto - low.numerator * n
    up = _least(most, high.numerator, high.denominator - high.numerator, n - upto)
    down = _least(least, low.denominator - low.numerator, low.numerator, upto)
    return up, down


def _least(short: NDArray[np.object_], gone: int, added: int, there: NDArray[np.object_]) -> Int64:
    """Return the least number of rows that covers what is short: each that goes counts `gone`, each more `added`."""
    fewer = np.maximum(short // gone + 1, 0)
    more = np.maximum(short // added + 1, 0)
    return np.asarray(np.where(fewer <= there, np.minimum(fewer, more), more), np.int64)


def _either_side(counts: Int64, q: float, rank: float, beta: float) -> float:
    """Return the best bound from one threshold: what is told lies above it with some chance, or else not above it."""
    if len(counts) < 2:
        return 0.0
    up, down = one_side(counts, q, rank)
    farther = np.maximum(up, down).astype(np.float64)
    near = farther <= 2 * farther.min()  # others are rarely better
    chance = np.linspace(0.01, 0.99, 99)[:, None]
    found = np.minimum(_told(chance, up[near], beta), _told(1 - chance, down[near], beta))
    return float(np.max(found, initial=0.0))


def _told(chance: Float64, rows: Int64, beta: float) -> Float64:
    """Return the least price of telling leaves with a chance that are all wrong so many rows away: no price at none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(chance > beta, 2 * divergence(chance, beta) / rows.astype(np.float64) ** 2, 0.0)


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
