"""How much a unit counts in each of its groups, where it has fewer than it may: more, as far as its price and delta go.

A rule that finds groups is priced for a unit in `max_groups` groups, by 1 in each. A unit in k of them could count by
more than 1 without moving more. What it may count by is a public table, so that an engine adds it up in one query.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from farthing.errors import InvalidBounds

if TYPE_CHECKING:
    from collections.abc import Callable

Shares = tuple[tuple[int, int], ...]
"""(most, share), both rising and falling: a unit counts by the first share whose `most` is at least the number of the
groups that it counts in. Empty where every unit counts by 1 in each."""

ONE: Final = 1 << 10
"""What a unit counts by that counts by 1, in the shares of Gaussian rules: shares are whole numbers."""

EXACT: Final = 16
"""Up to so many groups each number has a share of its own; beyond, the numbers of a step of an eighth have one."""


def steps(max_groups: int) -> list[int]:
    """Return the numbers of groups at which shares change, the last one `max_groups`.

    >>> steps(22)
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22]
    """
    ends = [min(EXACT, max_groups)]
    while ends[-1] < max_groups:
        ends.append(min(max_groups, ends[-1] + ends[-1] // 8))
    return [*range(1, ends[0]), *ends]


def shares_of(max_groups: int, most: Callable[[int], int], *, one: int) -> Shares:
    """Return what a unit counts by, never less than 1; empty where it is always 1.

    Args:
        max_groups: the most groups that one unit counts in.
        most: the largest share that k groups allow; what is below `one` is taken for `one`.
        one: the share of a unit that counts by 1.

    >>> import math
    >>> shares_of(4, lambda k: math.isqrt(4 * 100 // k) * 10, one=100)
    ((1, 200), (2, 140), (3, 110), (4, 100))
    """
    found: list[tuple[int, int]] = []
    for groups in steps(max_groups):
        share = max(one, most(groups))
        if found and found[-1][1] <= share:
            found[-1] = (groups, found[-1][1])  # with more groups a unit never counts by more
        else:
            found.append((groups, share))
    return () if found == [(max_groups, one)] else tuple(found)


def check_shares(shares: Shares, max_groups: int) -> None:
    """Refuse shares, in 1/ONE, of which a unit's move more in L2 than 1 in each of max_groups groups.

    Raises:
        InvalidBounds: they do, or are not in order.
    """
    rising = all(before < after for (before, _), (after, _) in itertools.pairwise(((0, 0), *shares)))
    fitting = all(share > 0 and most * share**2 <= max_groups * ONE**2 for most, share in shares)
    if shares and not (rising and fitting and shares[-1][0] == max_groups):
        raise InvalidBounds(
            "the shares are not those of a rule",
            rule=f"groups rise to max_groups, and groups * share^2 <= max_groups * {ONE}^2",
            got=str(shares)[:200],
            next_step="use GaussianKeys.plan",
        )
