"""Workloads whose factorization norms need no iteration, however large: sums of symmetric or banded singular values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidOption
from farthing.limits import checks
from farthing.limits.checks import SHAVE

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_SUBSETS: Final = 200_000
"""A marginal workload is refused when it has more parts than that."""

MOST_CELLS: Final = 100_000_000
"""The longest line of prefix sums: its singular values are an array."""


@dataclass(frozen=True, slots=True)
class Norms:
    """Lower bounds on both norms of a workload, rounded down.

    Attributes:
        gamma_f, gamma_2: at most the norms.
        exact_f, exact_2: whether they are the norms themselves, to within rounding.
    """

    gamma_f: float
    gamma_2: float
    exact_f: bool
    exact_2: bool


def identity_and_total(n: int) -> Norms:
    """Return the norms of n counts and their total: gamma_f^2 = (sqrt(n+1) + n - 1)^2/n, gamma_2^2 = 2n/(n+1).

    Proof: docs/proofs/limits.unbiased.md, section 6.

    >>> identity_and_total(8)
    Norms(gamma_f=3.5355..., gamma_2=1.3333..., exact_f=True, exact_2=True)
    """
    n = checks.whole(n, "n")
    f = (math.sqrt(n + 1) + (n - 1)) / math.sqrt(n)
    return Norms(f * SHAVE, math.sqrt(2 * n / (n + 1)) * SHAVE, exact_f=True, exact_2=True)


def prefix_sums(n: int) -> Norms:
    """Return the bound by singular values, 1/(2 sin((2k-1) pi/(4n+2))), on the norms of n running totals.

    `gamma_f` of the matrix itself is up to 4 % sharper.

    Proof: docs/proofs/limits.unbiased.md, section 6.

    >>> f"{prefix_sums(64).gamma_f ** 2:.3f}"
    '266.376'
    """
    n = checks.whole(n, "n")
    if n > MOST_CELLS:
        raise InvalidOption(
            "too many cells", rule=f"at most {MOST_CELLS:,}", got=f"{n:,}", next_step="bound a shorter line"
        )
    angles = (2 * np.arange(1, n + 1) - 1) * (math.pi / (4 * n + 2))
    total = float((0.5 / np.sin(angles)).sum()) * SHAVE
    return Norms(total / math.sqrt(n) * SHAVE, total / n * SHAVE, exact_f=n == 1, exact_2=n == 1)


def marginals(sizes: Sequence[int], ways: int) -> Norms:
    """Return the norms of all tables over `ways` of the columns, by the Fourier transform.

    gamma_f is exact for any sizes; gamma_2 when all columns have the same size, else a bound.

    Args:
        sizes: how many values each column takes.
        ways: how many columns each table has; 0 is the total, len(sizes) all cells.

    Proof: docs/proofs/limits.unbiased.md, section 6.

    >>> norms = marginals([2, 2, 2, 2], 2)
    >>> f"{norms.gamma_f**2:.3f} {norms.gamma_2:.4f}"
    '59.118 1.5695'
    """
    columns = [checks.whole(size, "each size") for size in sizes]
    parts = sum(math.comb(len(columns), size) for size in range(min(max(ways, 0), len(columns)) + 1))
    if not 0 <= ways <= len(columns) or not columns or parts > MOST_SUBSETS:
        raise InvalidOption(
            "the marginals are out of range",
            rule=f"0 <= ways <= number of columns, at least one column, at most {MOST_SUBSETS:,} parts",
            got=f"ways={ways} of {len(columns)} columns, {parts:,} parts",
            next_step="fewer ways or fewer columns",
        )
    cells = math.prod(columns)
    total = math.fsum(
        math.prod(columns[i] - 1 for i in chosen) * math.sqrt(_eigenvalue(columns, chosen, ways) / cells)
        for size in range(ways + 1)
        for chosen in combinations(range(len(columns)), size)
    )
    queries = _elementary(columns, ways)
    same = len(set(columns)) == 1
    return Norms(total * SHAVE, total / math.sqrt(queries) * SHAVE, exact_f=True, exact_2=same)


def _eigenvalue(columns: list[int], chosen: tuple[int, ...], ways: int) -> int:
    """Return the eigenvalue of W'W for the waves along the chosen columns.

    Each table S that holds them adds the product of the sizes outside of S.
    """
    others = [size for i, size in enumerate(columns) if i not in chosen]
    return _elementary(others, len(columns) - ways)


def _elementary(numbers: list[int], degree: int) -> int:
    """Return the elementary symmetric polynomial: the sum of all products of `degree` of the numbers."""
    sums = [1] + [0] * degree
    for number in numbers:
        for k in range(degree, 0, -1):
            sums[k] += number * sums[k - 1]
    return sums[degree]
