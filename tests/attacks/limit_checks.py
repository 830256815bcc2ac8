"""Checks of limits that any rule is held to: none is above what somebody pays who knows more, or errs as often."""

from __future__ import annotations

import math

import numpy as np

from farthing.limits import answers_limit, search_limit, sizes_limit
from farthing.limits.quantiles import one_side
from farthing.normal import ndtri

BETA = 0.05


def any_rule() -> tuple[str, ...]:
    """Hold limits of sizes and answers to one who measures once, and those of a search to its data and to a coin."""
    return _sizes() + _answers() + _searches() + _thresholds()


def _sizes() -> tuple[str, ...]:
    """Whoever knows the size pays the whole of what the limits are parts of."""
    found = [(relative, sizes_limit(relative, beta=BETA)) for relative in (0.05, 0.3)]
    return tuple(
        f"counts within {relative} cost {limit} at least, which is not what one who knows them pays"
        for relative, limit in found
        if not (0.99 < limit.mu_squared <= 1 and 0.97 < limit.epsilon <= 1)
    )


def _answers() -> tuple[str, ...]:
    """Two counts, each measured by itself within its width."""
    z = -float(ndtri(BETA / 2))
    limit, once = answers_limit([[1.0, 0.0], [0.0, 1.0]], [10.0, 20.0], beta=BETA), (z / 10) ** 2
    return (f"two counts cost {limit:.4g} at least, and {once:.4g} if measured",) * (limit > once * (1 + 1e-9))


def _searches() -> tuple[str, ...]:
    """A coin that tells the lump's leaf, and each other one as often: and the lump is the least there is."""
    said, places, rows = [], 8, 1_000
    for q, rank in ((0.5, 0.125), (0.75, 0.0625)):
        limit = search_limit(places, rows, q, rank=rank, beta=BETA)
        coin = math.log((1 - BETA) * (places - 1) / BETA) / limit.lump
        fewest = next(k for k in range(1, rows) if _alone(k, q, rank, rows))
        if limit.lump != fewest or not limit.epsilon <= coin <= 3 * limit.epsilon:
            said.append(f"a lump of {limit.lump} rows, {fewest} at least, costs {limit.epsilon:.4g}; a coin {coin:.4g}")
    return tuple(said)


def _alone(lump: int, q: float, rank: float, rows: int) -> bool:
    """Return whether such a lump can make its leaf the only right one."""
    return any(
        below < (q - rank) * rows and below + lump > (q + rank) * rows and below + lump <= rows for below in range(rows)
    )


def _thresholds() -> tuple[str, ...]:
    """Rows that go, until no leaf above the first one is right: the first one then holds too many."""
    said, rows = [], 100
    for q, rank in ((0.5, 0.125), (0.75, 0.0625)):
        told = int(one_side(np.array([rows // 2, rows // 2]), q, rank)[0][0])
        fewest = next(k for k in range(1, rows) if rows // 2 > (q + rank) * (rows - k))
        if told != fewest:
            said.append(f"{fewest} rows make what lies above a threshold wrong, and {told} are told")
    return tuple(said)
