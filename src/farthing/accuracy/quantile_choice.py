"""Quantiles by one private choice: the exponential mechanism over leaves, and which of the two roads is cheaper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.quantile_ranks import WHOLE, QuantileGoal
from farthing.errors import InvalidTarget
from farthing.mechanisms.exponential import BitSource, Exponential, choose_runs, uniform_below
from farthing.mechanisms.gaussian import MOST_GRAINS, Coin
from farthing.normal import ndtri
from farthing.privacy.loss import BoundedRange, Gdp, Pure, Zcdp
from farthing.privacy.residue import choices
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_bisection import QuantileBisection
    from farthing.accuracy.quantile_ranks import Ranks
    from farthing.privacy.loss import Booked

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

COUNT_SHARE: Final = 0.1
"""Part of beta that the count beside a choice may use up."""

MOST_WIDTH: Final = 0.25
"""That count may be off by no more than this share of it."""


@dataclass(frozen=True, slots=True)
class ExponentialQuantile:
    """Choose a leaf t with P[t] proportional to exp(-epsilon * distance(t) / R).

    The distance is how many rows q n lies from the ranks of leaf t, [#(x < t), #(x <= t)]. Adding a unit moves the
    distances of leaves left and right of the quantile by opposite signs, so that no two changes differ by more than
    R = 2 max(q, 1 - q) max_rows: for the median that is max_rows, half of what the sensitivity 1 of counts suggests.

    Attributes:
        asked: which quantile; `asked.rank` only says what MIN and MAX mean here.

    Guarantee: epsilon-bounded range a group; a unit in K groups pays for K choices.
    Proof: docs/proofs/accuracy.quantile_bisection.md.
    Assumes: as `mechanisms.exponential.Exponential`; leaves do not depend on the data.
    Rounds: as the mechanism; the price up to whole farthings.

    >>> quantile = ExponentialQuantile(QuantileGoal(0.5, 0.0, 1024.0, leaves_log2=10))
    >>> price = quantile.price(100, beta=0.05)
    >>> round(price * 2.0**-40, 4), quantile.rows_off(price, beta=0.05) <= 100
    (0.0987, True)
    """

    asked: QuantileGoal

    @property
    def spread(self) -> int:
        """R, in units of 2^-20 rows."""
        return 2 * self.asked.sensitivity

    def price(self, rows: float, *, beta: float) -> int:
        """Return the least farthings of epsilon a group that keep the chosen leaf's distance below `rows`.

        Args:
            rows: > 0; for a rank target, the slack times the least number of rows.
            beta: the chance of a miss, in (0, 1).
        """
        _check(rows, beta)
        return max(1, math.ceil(self._odds(beta) * self.spread / WHOLE / rows / FARTHING * (1 + 2.0**-40)))

    def rows_off(self, farthings: int, *, beta: float) -> float:
        """Return the distance in rows that the chosen leaf keeps to with probability 1 - beta."""
        return self._odds(beta) * self.spread / WHOLE / float(farthings * FARTHING)

    def _odds(self, beta: float) -> float:
        """Return log((m - 1)(1 - beta)/beta): one leaf of the m has distance 0."""
        return math.log(max((self.asked.leaves - 1) * (1 - beta) / beta, 1 + 1e-9))

    def choose(self, ranks: Ranks, farthings: int, bits: BitSource | None = None) -> Int64:
        """Return the chosen leaf of each group, int64[groups]."""
        runs = _Runs.of(ranks, self.asked.leaves)
        goal = ranks.rows[runs.group] * self.asked.steps
        distance = np.maximum(np.maximum(runs.before * WHOLE - goal, goal - runs.upto * WHOLE), 0)
        mechanism = Exponential(farthings * FARTHING)
        chosen = choose_runs(
            mechanism, -distance, runs.width.astype(np.float64), runs.starts, spread=self.spread, bits=bits
        )
        return runs.first[chosen] + uniform_below(runs.width[chosen], bits)

    def values(self, leaves: Int64) -> Float64:
        """Return the value shown for a chosen leaf: its middle."""
        return self.asked.middle(leaves, leaves)


class _Runs(NamedTuple):
    """Leaves of equal distance, side by side: each leaf with rows alone, each gap between them together."""

    group: Int64
    first: Int64
    width: Int64
    before: Int64  # rows in leaves below the run
    upto: Int64  # rows in leaves up to its end
    starts: Int64

    @classmethod
    def of(cls, ranks: Ranks, leaves: int) -> _Runs:
        """Cut each group's leaves, so many, into runs; runs without leaves are left out."""
        begins = ranks.starts
        cell_group = ranks.cells >> ranks.leaves_log2
        # A gap before each cell, the cell, and a gap at the end of each group.
        ends = np.arange(ranks.groups)
        group = np.concatenate([cell_group, cell_group, ends])
        leaf = ranks.cells & ((1 << ranks.leaves_log2) - 1)
        previous = np.concatenate([[0], leaf[:-1] + 1]) if len(leaf) else leaf
        opening = np.zeros(len(leaf), np.bool_)
        opening[begins[:-1][np.diff(begins) > 0]] = True
        previous = np.where(opening, 0, previous)
        tail = np.zeros(ranks.groups, np.int64)
        tail[cell_group] = leaf + 1  # rising within a group: the last one stays
        base = ranks.sums[begins[:-1]]
        below = ranks.sums[:-1] - base[cell_group]
        upto = ranks.sums[1:] - base[cell_group]
        first = np.concatenate([previous, leaf, tail])
        width = np.concatenate([leaf - previous, np.ones(len(leaf), np.int64), leaves - tail])
        rows = np.concatenate([below, below, ranks.rows]), np.concatenate([below, upto, ranks.rows])
        order = np.lexsort((first, group))
        order = order[width[order] > 0]
        starts = np.searchsorted(group[order], ends)
        return cls(group[order], first[order], width[order], rows[0][order], rows[1][order], starts)


class QuantilePrices(NamedTuple):
    """What the two roads cost for the same rank target, by formula.

    Attributes:
        cheaper: "descent" or "exponential".
        descent: the price of a noisy bisection, its count included; None where the currency has none.
        exponential: the price of one choice, with the same count.
    """

    cheaper: str
    descent: Booked | None
    exponential: Booked | None


def compare(descent: QuantileBisection, currency: type[Booked], *, rows: int, max_groups: int = 1) -> QuantilePrices:
    """Return which road is cheaper for groups of so many rows, a public guess of the typical size.

    Args:
        descent: the plan, with its target.
        currency: of the books.
        rows: of a typical group.
        max_groups: K.

    A value target has one road only: the exponential mechanism promises ranks, not values.

    >>> from farthing.accuracy.quantile_bisection import QuantileBisection
    >>> fine = QuantileBisection(QuantileGoal(0.5, 0.0, 1.0, leaves_log2=16, rank=0.1), beta=0.05, cap_grains=1 << 60)
    >>> coarse = QuantileBisection(QuantileGoal(0.5, 0.0, 1.0, leaves_log2=3, rank=0.1), beta=0.05, cap_grains=1 << 60)
    >>> [compare(plan, currency, rows=10_000).cheaper for plan in (fine, coarse) for currency in (Gdp, Zcdp, Pure)]
    ['descent', 'descent', 'exponential', 'descent', 'exponential', 'exponential']
    """
    asked = descent.asked
    if not asked.rank:
        if currency is Pure:
            raise InvalidTarget(
                "the exponential mechanism promises ranks, not values",
                rule="a rank target",
                got=f"relative={descent.relative}, absolute={descent.absolute}",
                next_step="ask for rank=0.01",
            )
        return QuantilePrices("descent", _gaussian(descent.typical(rows), currency, max_groups), None)
    beta = descent.beta * (1 - COUNT_SHARE)  # the count takes its part on either road
    chosen = Fraction(ExponentialQuantile(asked).price(asked.slack * rows, beta=beta)) * FARTHING
    if currency is Pure:
        return QuantilePrices("exponential", None, Pure.of_amount(chosen * max_groups))
    picked = choices(BoundedRange.of_amount(chosen), max_groups, currency)
    bisected = _gaussian(descent.typical(rows), currency, max_groups)
    picked = picked + _gaussian(_count_grains(descent, rows), currency, max_groups)
    return QuantilePrices("descent" if bisected <= picked else "exponential", bisected, picked)


def _count_grains(descent: QuantileBisection, rows: int) -> int:
    """Return the grains that count a group of so many rows as well as its rank target is worth to one choice."""
    counted = descent.asked.slack * descent.asked.max_rows
    width = float(min(MOST_WIDTH, (counted / (2 * descent.asked.lane_sensitivity / WHOLE)) ** (2 / 3)))
    z = -float(ndtri(descent.beta * COUNT_SHARE / 2))  # half of it: a count may take a second try
    return min(math.ceil((z / (width * rows)) ** 2 / descent.count_per_grain), MOST_GRAINS)


def _gaussian(grains: int, currency: type[Booked], max_groups: int) -> Gdp | Zcdp:
    """Return the loss of a unit that pays so many grains in each of its groups."""
    return Coin(Gdp if currency is Gdp else Zcdp, max_groups, 1).loss(grains * max_groups)


def _check(rows: float, beta: float) -> None:
    """Refuse what is not a target."""
    if not (rows > 0 and 0 < beta < 1):
        raise InvalidTarget(
            "the rank target is out of range",
            rule="rows > 0, 0 < beta < 1",
            got=f"{rows}, {beta}",
            next_step="rank=0.01, beta=0.05",
        )
