"""Strategies: what to measure with equal noise so that a workload is answered at its factorization norm, or nearly.

The weight search of `limits.factorization` has a factorization W = R A at every round, and the one with the least upper
bound is taken. Its lower bound is certified, so how far a strategy is from the best is known, whatever was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.limits.checks import SHAVE
from farthing.limits.factorization import UNIT, WeightSearch, certified, without_decomposition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64 = NDArray[np.float64]

CLOSE: Final = 1e-6
"""The search ends when both sides are within this part of each other."""

_WORK: Final = 2e10
_ROUNDS: Final = (8, 64)  # by work: no clock decides, so that a plan and an ask find the same strategy
_FLAT: Final = 1e-4
_MOST_BITS: Final = 24


@dataclass(frozen=True, slots=True, eq=False)
class Factorization:
    """What to measure for a workload.

    Attributes:
        strategy: float64[measurements, cells], of columns of length at most 1; every row of W is a sum of its rows.
        lower: surely at most the norm of the workload: gamma_F, or gamma_2 where largest errors count.
    """

    strategy: Float64
    lower: float


def factorized(W: Float64, *, largest: bool, bits: int = _MOST_BITS) -> Factorization:
    """Return a strategy for a workload, the best that was found; the same for the same matrix, always.

    Args:
        W: float64[answers, cells], finite, not all zero.
        largest: whether the largest error is to be least; else the sum of squares.
        bits: to how many bits the strategy will be rounded: it spans W with as much to spare.

    Guarantee: `lower` is at most gamma_F (gamma_2) of W.
    Proof: docs/proofs/limits.unbiased.md, sections 3 and 4.
    Assumes: as `limits.gamma_f`.
    Rounds: lower down; the strategy to the nearest.

    >>> found = factorized(np.tril(np.ones((4, 4))), largest=False)
    >>> f"{found.lower**2:.3f}"
    '6.874'
    """
    return _factorized(W.shape, np.ascontiguousarray(W).tobytes(), largest=largest, bits=bits)


@lru_cache(maxsize=64)
def _factorized(shape: tuple[int, ...], entries: bytes, *, largest: bool, bits: int) -> Factorization:
    """Return a strategy for the matrix in these bytes."""
    W = np.frombuffer(entries, np.float64).reshape(shape)
    used = abs(W).max(axis=0) > 0
    unit = 2.0 ** np.frexp(abs(W).max())[1]
    small: Float64 = W[:, used] / unit
    search, best = _searched(small, largest=largest)
    surely = without_decomposition(small, both=largest)[0]
    lower = max(surely, certified(small, search.rows_best, search.columns_best)) * unit
    strategy = np.zeros((small.shape[1], W.shape[1]))
    strategy[:, used] = _square(small, *best, bits)
    return Factorization(strategy, lower)


class _QuickSearch(WeightSearch):
    """A search that decomposes tall matrices by their inner products: many times faster, and only a little less exact.

    It decides which weights are tried. What is told of them is computed, or certified, from the weights themselves.
    """

    __slots__ = ()

    def decomposed(self, G: Float64) -> tuple[Float64, Float64, Float64]:
        """Return the singular value decomposition, to about the root of the rounding unit."""
        if len(G) < 4 * G.shape[1]:
            return super().decomposed(G)
        squares, V = np.linalg.eigh(G.T @ G)
        S = np.sqrt(np.maximum(squares, squares[-1] * 1e-14))
        return G @ (V / S), S, V.T


def _searched(W: Float64, *, largest: bool) -> tuple[WeightSearch, tuple[Float64 | None, Float64]]:
    """Return the search at its end, and the weights of rows and columns whose factorization was the best."""
    work = float(W.shape[0] * W.shape[1] * min(W.shape))
    rounds = int(np.clip(_WORK / work, *_ROUNDS))
    search = _QuickSearch(W, both=largest, upper=np.inf)
    best, least = (search.rows, search.columns), np.inf
    for _ in range(rounds):
        now = search.rows, search.columns
        search.step()
        if search.upper < least:
            least, best = search.upper, now
        if search.upper <= search.lower * (1 + CLOSE):
            break
    return search, best


def _square(W: Float64, rows: Float64 | None, columns: Float64, bits: int) -> Float64:
    """Return the strategy at some weights, float64[cells, cells], of columns of length at most 1, of full rank."""
    G = W * np.sqrt(columns) if rows is None else W * np.sqrt(columns) * np.sqrt(rows)[:, None]
    _, S, Vt = np.linalg.svd(G, full_matrices=False)
    A = np.sqrt(S)[:, None] * Vt / np.sqrt(columns)
    X = A.T @ A
    X /= X.diagonal().max()
    spare = max(CLOSE, 4 * 2.0**-bits)
    if float(np.linalg.eigvalsh(X)[0]) < _FLAT:  # what W does not span is measured a little, so that rounding is safe
        X = (1 - spare) * X + spare * np.eye(len(X))
    return np.asarray(np.linalg.cholesky(X).T)


def union_at_least(parts: list[tuple[Float64, Float64]]) -> float:
    """Return a lower bound on gamma_F of a union of workloads, each about columns of its own.

    With weights of cells that are products over the columns, the rows of two workloads W and V have the inner products
    (W w)(V v)', so the nuclear norm needs no cell of both: it is the sum of roots of the eigenvalues of W D W'.

    Args:
        parts: a matrix, float64[answers, cells], and weights of its cells, >= 0 and of sum 1, for each workload.

    Guarantee: the result is at most gamma_F of the union.
    Proof: docs/proofs/limits.strategies.md, section 3.
    Assumes: symmetric eigenvalues in float64 err by at most 32 (rows + 8) units of the trace.
    Rounds: down.

    >>> one = np.array([[0.0, 1.0]])
    >>> round(union_at_least([(one, np.array([0.5, 0.5]))] * 4) ** 2, 2)
    6.85
    """
    means = np.concatenate([W @ w for W, w in parts])
    inner = np.outer(means, means)
    start = 0
    for W, w in parts:
        end = start + len(W)
        inner[start:end, start:end] = (W * w) @ W.T
        start = end
    error = 32 * (len(inner) + 8) * UNIT * float(inner.trace())
    found = float(np.sqrt(np.maximum(np.linalg.eigvalsh(inner) - error, 0.0)).sum())
    return max(0.0, found * SHAVE)
