"""The noise of a ranking: Gaussian measurements that are averaged, or Laplace chains under a pure budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.noise_laws import GAUSSIAN, LAPLACE
from farthing.accuracy.ranking import FEWEST_GRAINS
from farthing.mechanisms.gaussian import GaussianMeasurements, Measured, highest_level
from farthing.mechanisms.laplace import Shown
from farthing.planning.gaussian_count import coin_of
from farthing.planning.laplace_count import Grid
from farthing.privacy.loss import Pure
from farthing.query.aggregates import Count, CountUnits
from farthing.session.answering.laplace_count import chain_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.jumps import Floats, Ints
    from farthing.accuracy.noise_laws import NoiseLaw
    from farthing.accuracy.ranking import RankingState
    from farthing.ledger.entry import Receipt
    from farthing.mechanisms.gaussian import Coin
    from farthing.planning import Frame
    from farthing.privacy.loss import Booked
    from farthing.query import Query
    from farthing.session.core.context import Context

    Measure = Callable[[Ints, Ints], Floats]
    Lead = Callable[[Ints, Ints, Ints], Floats]

_FEWEST_FARTHINGS: Final = 1 << 26
_EXACT: Final = 1 << 53
"""Values below it are whole numbers of steps as float64, too: a chain is carried on from what was kept of it."""


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Gaussian measurements, each paid for itself.

    Attributes:
        coin: how information turns into loss.

    Guarantee: as `GaussianMeasurements`, of what each group holds of its own number and of its lead together.
    Proof: docs/proofs/mechanisms.gaussian.md, "The lead of two groups".
    Assumes: one unit is in one group, or its counts are never negative; else leads are not measured.
    Rounds: as `GaussianMeasurements`.
    """

    coin: Coin

    law: NoiseLaw = GAUSSIAN
    fewest: int = FEWEST_GRAINS
    least: str = "1.125 * 2^-36 of mu^2"

    @property
    def per_grain(self) -> float:
        """The information of a grain."""
        return self.coin.per_grain

    @property
    def step_log2(self) -> int:
        """The steps of what is kept: none."""
        return 0

    def loss(self, grains: int) -> Booked:
        """Return the loss of so many grains."""
        return self.coin.loss(grains)

    def level(self, loss: Booked, top: tuple[int, ...]) -> int:
        """Return the grains that every group can be raised to for a loss, given what the largest have."""
        return self.coin.level(loss, top)

    def carried(self, before: RankingState | None, *, exclusive: bool = True) -> RankingState | None:
        """Return what a run goes on from: whatever was measured, whoever else measures."""
        del exclusive
        return before

    def lines(
        self, context: Context, query: Query, receipt: Receipt, before: RankingState | None
    ) -> tuple[Measure, Measure, Lead | None]:
        """Ask the engine, and return how looks are measured, and the pilot, and leads where a unit moves one way."""
        del before
        step_log2 = query.measures[0].step_log2
        mechanism = GaussianMeasurements(
            context.engine.measure(query, receipt)[0], query.sensitivity, query.max_groups, step_log2=step_log2
        )

        def measure(grains: Ints, groups: Ints) -> Floats:
            """Return fresh noisy values of some groups."""
            return mechanism.measure(Measured.nothing(len(groups)), grains, groups).values

        one_way = query.max_groups == 1 or isinstance(query.aggregate, Count | CountUnits)
        return measure, measure, mechanism.fresh_leads if one_way else None


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Two Laplace chains, of which the last levels are paid: one of the pilot, one of the looks.

    Attributes:
        grid: the steps of the noise.

    Guarantee: everything shown is epsilon-DP ex post, for epsilon = the sum over the `max_groups` most expensive groups
        of the last levels of both chains.
    Proof: docs/proofs/mechanisms.laplace.md for a chain, docs/proofs/session.answering.laplace_count.md for the books.
    Assumes: a pure ledger; a chain is carried on only by the holder of an exclusive receipt (`carried`).
    Rounds: as `mechanisms.laplace.LaplaceChain`.
    """

    grid: Grid

    law: NoiseLaw = LAPLACE
    fewest: int = _FEWEST_FARTHINGS
    least: str = "2^-14 of epsilon"

    @property
    def per_grain(self) -> float:
        """One over the noise's scale, in answer units, at a farthing of epsilon."""
        return self.grid.per_farthing

    @property
    def step_log2(self) -> int:
        """The steps of what is kept."""
        return self.grid.step_log2

    def loss(self, grains: int) -> Booked:
        """Return the loss of so many farthings."""
        return Pure.of_farthings(grains)

    def level(self, loss: Booked, top: tuple[int, ...]) -> int:
        """Return the farthings that every group can be raised to for a loss, given what the largest have."""
        return min(highest_level(loss.farthings, top), self.grid.finest)

    def carried(self, before: RankingState | None, *, exclusive: bool = True) -> RankingState | None:
        """Return what a run goes on from; None where a line has to be begun, which then pays in full."""
        if before is None or not exclusive:
            return None
        return before if np.abs(np.ldexp(before.means, -self.step_log2)).max() < _EXACT else None

    def lines(
        self, context: Context, query: Query, receipt: Receipt, before: RankingState | None
    ) -> tuple[Measure, Measure, Lead | None]:
        """Ask the engine, and return how looks are carried on, and the pilot; leads are not measured."""
        truth = context.engine.measure(query, receipt)
        chain = chain_of(truth[0], query.measures[0].step_log2, self.grid)

        def line(value: Ints, level: Ints) -> Measure:
            """Return how one line of looks goes on."""

            def measure(farthings: Ints, groups: Ints) -> Floats:
                """Return what is shown of some groups once each has paid so many farthings more."""
                last = Shown(value[groups], level[groups], self.step_log2)
                now = chain.measure(last, level[groups] + farthings, groups)
                value[groups], level[groups] = now.value, now.farthings
                return np.ldexp(now.value.astype(np.float64), self.step_log2)

            return measure

        def none() -> Ints:
            return np.zeros(query.groups, np.int64)

        if before is None:
            return line(none(), none()), line(none(), none()), None
        value = np.rint(np.ldexp(before.means, -self.step_log2)).astype(np.int64)
        return line(value, before.information.copy()), line(none(), none()), None


def noise_of(context: Context, query: Query, frame: Frame, stored: RankingState | None) -> GaussianNoise | LaplaceNoise:
    """Return the noise of a ranking in these books."""
    if context.budget.currency is not Pure:
        return GaussianNoise(coin_of(frame))
    if stored is None:
        return LaplaceNoise(Grid.of(query, frame.budget.total, flat=False))
    return LaplaceNoise(Grid.at(query, stored.step_log2))
