"""Relative targets of products: a coarse pilot tells about how large each answer is, and nothing else.

As of tables: what is measured for the answers gets its precision from the pilot alone, never from what it measures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from farthing.planning.products import ProductDesign, design_for
from farthing.planning.release_pilot import MOST, SURE, next_look
from farthing.planning.same_total import answers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from farthing.mechanisms.gaussian import Coin
    from farthing.mechanisms.strategy import StrategyState
    from farthing.planning.release_plan import Goal
    from farthing.planning.ways import Way

    Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ProductPilot:
    """What a pilot of products is allowed, and what follows from what it told.

    Attributes:
        way: how products are measured.
        coin: how information turns into loss.
        goal: the relative and the absolute target.
        reach: the most rows that one unit adds.
    """

    way: Way
    coin: Coin
    goal: Goal
    reach: int

    @property
    def most(self) -> Float64:
        """float64[strategies], what the pilot costs at most."""
        nothing = np.zeros(len(self.way.strategies))
        return self._level(design_for(self.way, self.coin, self.goal, nothing, self.reach).total / MOST)

    def next(self, told: Sequence[StrategyState]) -> Float64 | None:
        """Return float64[strategies], the grains of the pilot after its next look; None where it has told enough."""
        paid, most = np.array([state.grains for state in told], np.float64), self.most
        total = float(paid.sum())
        wanted = next_look(total, float(most.sum()), lambda: self.design(told, np.zeros_like(paid)).total)
        if wanted is None:
            return None
        return np.maximum(paid, most if wanted >= most.sum() else self._level(wanted))

    def design(self, told: Sequence[StrategyState], held: Float64) -> ProductDesign:
        """Return the cheapest design that has every answer within its own target, going by the pilot.

        Guarantee: its grains depend on the pilot and not on any answer, and are at most those of the absolute target.
        Proof: docs/proofs/planning.release_pilot.md.
        Assumes: `told` is the pilot's alone.
        Rounds: grains up.

        Args:
            told: what the pilot measured of each strategy.
            held: float64[strategies] on top of which it is.
        """
        every = design_for(self.way, self.coin, self.goal, held, self.reach)
        made = replace(design_for(self._aimed(told), self.coin, self.goal, held, self.reach), way=self.way)
        return made if made.total < every.total else every

    def _level(self, grains: float) -> Float64:
        """Return float64[strategies], the grains of a pilot that costs about so much in all."""
        return np.ceil(self.way.least_largest() * grains)

    def _aimed(self, told: Sequence[StrategyState]) -> Way:
        """Return the way with a weight for each answer, by which the absolute target means its own."""
        absolute = self.goal.absolute
        assert absolute is not None  # noqa: S101  # a relative target has a floor
        pilot = ProductDesign(self.way, self.reach, np.array([state.grains for state in told], np.float64))
        values = answers_of(self.way, [state.mean for state in told], pilot.noises)
        weights = []
        for value, variance, weight in zip(values, pilot.variances, self.way.weights, strict=True):
            least = abs(value) - SURE * np.sqrt(variance)
            weights.append(weight * absolute / np.maximum(self.goal.relative * least, absolute))
        return replace(self.way, weights=tuple(weights))
