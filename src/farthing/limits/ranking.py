"""The least that a rule pays which tells the largest groups in order, and is right on all data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidOption
from farthing.limits.quantiles import divergence
from farthing.limits.ranking_leads import leads_together

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_SHAVE: Final = 1 - 1e-9
_MOST_ROWS: Final = 1 << 50


@dataclass(frozen=True, slots=True)
class RankingLimit:
    """What the first places of some groups cost at least.

    Attributes:
        mu_squared: the least mean price of a rule of Gaussian measurements, or of a mu-GDP mechanism.
        epsilon: the least mean price of a rule that is epsilon-DP ex post.
        rows: how many rows more or less in one group make the order wrong; 0 where nothing is claimed.
        measured: the least mean price, as mu squared, of a rule of Gaussian measurements; by all close leads if asked.
    """

    mu_squared: float
    epsilon: float
    rows: int
    measured: float = 0.0


def ranking_limit(counts: ArrayLike, k: int, *, beta: float, together: bool = False) -> RankingLimit:
    """Return the least that a rule pays for the first k places in order, each row a privacy unit of its own.

    Args:
        counts: int64[groups], the rows of each group, fewer than 2^50 in all.
        k: how many places, fewer than there are groups or as many.
        beta: the chance of a wrong order that is allowed on any data.
        together: whether `measured` is by all close leads together, which takes up to a second; else by one of them.

    Returns:
        The limits; zeros where all of the first k places are tied with the next ones: any order of them is right.

    Guarantee: no rule of Gaussian measurements of sums over rows, and no mu-GDP mechanism, that tells a wrong order
        with probability at most beta on all data, and the right one with probability at least 1 - beta at these, pays
        less than `mu_squared` at these in the mean, and no such rule of measurements less than `measured`; no rule that
        is epsilon-DP ex post pays less than `epsilon`.
    Proof: docs/proofs/limits.ranking.md.
    Assumes: an order is right if no group stands before a larger one; groups after place k have none.
    Rounds: down.

    >>> limit = ranking_limit([10_500, 10_000, 3_000], 2, beta=0.05)
    >>> limit.rows, f"{limit.mu_squared:.2e}", f"{limit.epsilon:.5f}"
    (501, '2.11e-05', '0.00529')
    >>> several = ranking_limit([10_500, 10_000, 9_500], 2, beta=0.05, together=True)
    >>> f"{several.measured / several.mu_squared:.1f}"
    '1.3'
    """
    rows = np.asarray(counts)
    if (
        rows.dtype.kind not in "iu"
        or rows.ndim != 1
        or rows.size < 2
        or (rows < 0).any()
        or rows.sum(dtype=np.float64) >= _MOST_ROWS
        or not 1 <= k <= rows.size
        or not 0 < beta < 0.5
    ):
        raise InvalidOption(
            "a limit of a ranking is of the rows of groups",
            rule="counts of at least two groups, none negative, below 2^50 in all; 1 <= k <= groups; 0 < beta < 0.5",
            got=f"{rows.shape}, k={k}, beta={beta}",
            next_step="count the rows of each group",
        )
    ranked = np.sort(rows.astype(np.int64))[::-1]
    leads = (ranked[:-1] - ranked[1:])[:k]
    if not leads.any():
        return RankingLimit(0.0, 0.0, 0)
    moved = int(leads[leads > 0].min()) + 1
    apart = float(divergence(1 - beta, beta)) * _SHAVE
    one = 2 * apart / moved**2
    several = 2 * apart * leads_together(ranked, k) if together else one
    return RankingLimit(one, apart / moved, moved, max(one, several))
