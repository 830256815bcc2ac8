"""What several close leads cost together: whatever is measured, each group's members pay for all that it is part of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.optimize import minimize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

GROUPS: Final = 12
"""So many groups are looked at, at most: the bound holds for any of them."""

_FAR: Final = 3  # times the smallest lead: larger ones cost little more beside it
_POWERS: Final = (8, 64, 256)  # the largest of what leads need, more and more closely
_STEPS: Final = 120
_SWEEPS: Final = 40
_NEVER: Final = 2.0**-20  # the least that is measured of anything: what the search begins with is not singular
_SHAVE: Final = 1 - 1e-9


def leads_together(ranked: Ints, k: int) -> float:
    """Return a part of what one unit of evidence costs, by which several leads of groups in order cost it together.

    Args:
        ranked: int64[groups], the rows of each group, falling.
        k: how many first places are wanted.

    Guarantee: for all symmetric positive semidefinite matrices L there is a way v to add rows to groups, or take them
        away, that turns round one of the first k leads, with v'Lv at most the largest of L's diagonal over the result.
    Proof: docs/proofs/limits.ranking.md, "Several leads".
    Assumes: nothing: how ways and weights were found does not matter.
    Rounds: down.

    >>> one = leads_together(np.array([300, 200, 0]), 1)
    >>> round(one * 101**2, 3), round(leads_together(np.array([300, 200, 100]), 2) * 101**2, 1)
    (1.0, 1.3)
    """
    first, second, rows = _leads(ranked, k)
    near, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    turned = np.zeros((len(rows), len(near)))
    turned[np.arange(len(rows)), places[: len(rows)]] = -1
    turned[np.arange(len(rows)), places[len(rows) :]] = 1
    weights, ways, vectors = _searched(turned, rows.astype(np.float64))
    ways = _whole(ways, turned, rows, ranked[near])
    return float(weights.sum() / _most(np.einsum("j,ji,jl->il", weights, ways, ways), vectors) * _SHAVE)


def _leads(ranked: Ints, k: int) -> tuple[Ints, Ints, Ints]:
    """Return close leads by their groups, and how many rows turn each round.

    They are those over the next group, and those of the last wanted one over all later ones, if none of these is tied.
    """
    last, most = min(k, len(ranked) - 1), np.arange(len(ranked))
    first = np.concatenate([most[:last], np.full(len(ranked) - last - 1, last - 1)])
    rows = ranked[first] - ranked[1:] + 1
    rows[last:] *= rows[last - 1] > 1
    close = np.flatnonzero((rows > 1) & (rows <= _FAR * rows[rows > 1].min()))
    order = close[np.argsort(rows[close], kind="stable")]
    while len(np.unique([first[order], order + 1])) > GROUPS:
        order = order[:-1]
    return first[order], order + 1, rows[order]


def _searched(turned: Floats, rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Return weights of the leads, the hardest way to turn each round, and rows of unit length, all for what is best.

    What is best to measure is sought as U U', with rows of unit length: all groups pay the same.
    """
    groups, gaps = turned.shape[1], rows / rows.min()

    def needs(free: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return U, how long its rows were, the solutions of Lx = e for each lead, and what each lead needs."""
        shape = free.reshape(groups, groups)
        lengths = np.sqrt((shape * shape).sum(axis=1, keepdims=True))
        vectors = shape / lengths
        solved = np.linalg.solve(vectors @ vectors.T + _NEVER * np.eye(groups), turned.T).T
        return vectors, lengths, solved, (solved * turned).sum(axis=1) / gaps**2

    def price(free: Floats, power: int) -> tuple[float, Floats]:
        """Return about the largest need, and its gradient."""
        vectors, lengths, solved, need = needs(free)
        parts = (need / need.max()) ** power
        value = float(need.max() * parts.sum() ** (1 / power))
        slope = value * parts / parts.sum() / need / gaps**2
        change = -2 * ((solved * slope[:, None]).T @ solved) @ vectors
        change -= (change * vectors).sum(axis=1, keepdims=True) * vectors
        return value, (change / lengths).ravel()

    free = np.eye(groups).ravel() + 0.01 * np.cos(np.arange(groups * groups))
    for power in _POWERS:
        free = minimize(price, free, args=(power,), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x
    vectors, _, solved, need = needs(free)
    ways = solved * (rows / (need * gaps**2))[:, None]
    weights = (need / need.max()) ** (_POWERS[-1] + 1)
    return weights / weights.sum(), ways, vectors


def _whole(ways: Floats, turned: Floats, rows: Ints, ranked: Ints) -> Floats:
    """Return ways in whole rows, none of which takes away more rows than there are, each turning its lead round."""
    whole = np.maximum(np.rint(ways), -ranked)
    short = rows - (whole * turned).sum(axis=1)
    return np.asarray(whole + np.maximum(short, 0)[:, None] * (turned > 0))


def _most(formed: Floats, vectors: Floats) -> float:
    """Return at least what tr(formed L) is for any L with ones on its diagonal: the sum of a diagonal above it."""
    vectors = vectors.copy()
    for _ in range(_SWEEPS):
        for group, row in enumerate(formed):
            pulled = row @ vectors - row[group] * vectors[group]
            length = float(np.sqrt(pulled @ pulled))
            vectors[group] = pulled / length if length else vectors[group]
    diagonal = np.sqrt(((formed @ vectors) ** 2).sum(axis=1)) + 1e-12 * np.trace(formed)
    root = np.sqrt(diagonal)
    return float(diagonal.sum() * max(1.0, np.linalg.eigvalsh(formed / root[:, None] / root).max()))
