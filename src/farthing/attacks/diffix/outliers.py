"""Flattening: the largest users are replaced by typical ones, and the noise grows with the typical one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from farthing.attacks.diffix.evaluation import Array
    from farthing.attacks.diffix.noise import StickyNoise


@dataclass(frozen=True, slots=True)
class Flattened:
    """A sum without its outliers.

    Attributes:
        total: the sum.
        unit: the noise of one layer, in units of the sum: about what a large but typical user adds.
    """

    total: float
    unit: float


def by_groups(contributions: Array, noise: StickyNoise, users: Any) -> Flattened:
    """Give the 1 to 2 largest users the mean of the next 1 to 3, on either side of zero (Birch and Cedar).

    Args:
        contributions: what each user adds, one number a user.
        noise: decides how many.
        users: what the decision hangs on: the set of users.
    """
    outliers = noise.whole(1, 2, "outliers", users)
    top = noise.whole(1, 3, "top", users)
    above, tops = _replaced(np.maximum(contributions, 0), outliers, top)
    below, bottoms = _replaced(np.maximum(-contributions, 0), outliers, top)
    return Flattened(above - below, max((above + below) / len(contributions), 0.5 * max(tops, bottoms)))


def _replaced(sizes: Array, outliers: int, top: int) -> tuple[float, float]:
    """Return a sum whose largest were replaced by the mean of the next, and this mean."""
    ordered = np.sort(sizes)[::-1]
    group = ordered[outliers : outliers + top]
    mean = float(group.mean()) if group.size else 0.0
    return float(ordered[outliers:].sum()) + mean * min(outliers, len(ordered)), mean


def by_moments(contributions: Array) -> Flattened:
    """Cut what lies further than four deviations from the mean, each side with its own deviation (Dogwood)."""
    low, mean, high = float(contributions.min()), float(contributions.mean()), float(contributions.max())
    spread = float(contributions.std())
    width = high - low
    above = mean + 4 * spread * ((high - mean) / width if width else 0.0)
    below = mean - 4 * spread * ((mean - low) / width if width else 0.0)
    cut = max(0.0, high - above) + min(0.0, low - below)
    total = float(contributions.sum()) - cut
    return Flattened(total, max(abs(total / len(contributions)), abs(above) / 2, abs(below) / 2))
