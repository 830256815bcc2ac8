"""One vector at falling noise: looks that are paid by their last (reduction), or each for itself (doubling)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from farthing.errors import InvalidBudget
from farthing.mechanisms.gaussian import GaussianMeasurements, Measured
from farthing.mechanisms.laplace import LaplaceChain, Shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.models.purses import Purse
    from farthing.models.rows import Float64
    from farthing.models.vectors import Vector

Method = Literal["reduction", "doubling", "theory"]


@dataclass(slots=True)
class VectorLooks:
    """Looks at a vector, each at a level above the last one.

    Attributes:
        vector: what is looked at.
        purse: what levels cost.
        fresh: whether each look has noise of its own and its own price (doubling), or sharpens the last (reduction).
        bits: where random bits come from.
        paid: coins paid for all looks so far.

    Guarantee: everything shown up to a look costs `paid` coins, whenever the looks end.
    Proof: docs/proofs/models.regressions.md, "Prices"; docs/proofs/mechanisms.gaussian.md,
    docs/proofs/mechanisms.laplace.md.
    Assumes: the vector's sensitivity; all coordinates are looked at together, so that a look at c coins costs c,
        however a row's move is spread over the coordinates.
    Rounds: as the mechanisms do, up.
    """

    vector: Vector
    purse: Purse
    fresh: bool
    bits: Any = None
    paid: int = 0
    _state: Measured | Shown | None = field(default=None, repr=False)

    def price(self, coins: int) -> int:
        """Return the coins paid after a look at this level."""
        return self.paid + coins if self.fresh else coins

    def show(self, coins: int) -> Float64:
        """Return the noisy values at a level, float64[len(vector)], in the vector's units."""
        if not self.fresh and coins <= self.paid:
            raise InvalidBudget(
                "a look must be finer than the last",
                rule="levels rise",
                got=coins,
                next_step="leave out the levels that do not rise",
            )
        if self.fresh:
            self._state = None
        shown = self._gaussian(coins) if self.purse.gaussian else self._chain(coins)
        self.paid = self.price(coins)
        self._state = shown
        return shown.values

    def _gaussian(self, coins: int) -> Measured:
        """Return the average after a measurement that raises the information to `coins`."""
        truth, steps = self.vector.truth, self.vector.step_log2
        mechanism = GaussianMeasurements(truth, self.vector.sensitivity("l2"), 1, self.bits, steps)
        state = self._state if isinstance(self._state, Measured) else Measured.nothing(len(truth)).times(steps)
        return mechanism.measure(state, np.full(len(truth), coins) - state.information)

    def _chain(self, coins: int) -> Shown:
        """Return the next look of a chain."""
        truth, steps = self.vector.truth, self.vector.step_log2
        chain = LaplaceChain(truth, self.vector.sensitivity("l1"), 1, self.bits, steps)
        state = self._state if isinstance(self._state, Shown) else Shown.nothing(len(truth), steps)
        return chain.measure(state, np.full(len(truth), coins))


def rising(levels: Sequence[float], purse: Purse) -> tuple[int, ...]:
    """Return a caller's levels, epsilons or mus, in coins; refuse levels that do not rise from above 0."""
    usable = all(isinstance(each, int | float) and not isinstance(each, bool) and 0 < each < 1e6 for each in levels)
    coins = tuple(purse.coins(each) for each in levels) if usable else ()
    if not coins or coins[0] < 1 or any(b <= a for a, b in pairwise(coins)):
        raise InvalidBudget(
            "the levels do not rise",
            rule="at least one level, each a finite number > 0 above the one before",
            got=repr(tuple(levels)),
            next_step="levels=(0.1, 0.2, 0.4), or leave them out",
        )
    return coins
