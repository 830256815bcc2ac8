"""The Brownian mechanism by its own construction: a whole path of noise first, shown from its coarse end.

`GaussianRefinement` has the same law, keeps no secret and is priced to the last digit; this one is here to be compared
with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import InvalidBudget
from farthing.mechanisms.gaussian import GRAIN, GUARD_BITS, MOST_GRAINS, GaussianMeasurements, Measured
from farthing.mechanisms.stopping import Look, likes, mu_squared_of, on_grid, require_public, rising
from farthing.noise.gaussian import rounded_gaussian
from farthing.privacy.loss import Gdp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from farthing.mechanisms.stopping import Level, Stop
    from farthing.noise.bits import BitSource
    from farthing.privacy.numbers import Number


@dataclass(frozen=True, slots=True, eq=False)
class BrownianMechanism:
    """Answers plus Brownian motion at falling times: f + B(T_1), f + B(T_2), ..., with T = sensitivity^2 / mu^2.

    Attributes:
        true_values: a number, or numbers[answers]; never leave this object.
        sensitivity: the most that one unit moves them, in the L2 norm, in their own units.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: a whole path is mu-GDP for the mu of its finest look. A beginning of it, stopped by what it shows, is
        mu-GDP for the mu of its last look in real numbers; what rounding to the grid adds to that is not priced, so
        this is for comparing and not for releasing.
    Proof: [WhitehouseRWR22; RogersSRW23, Def. 4.4]; docs/proofs/mechanisms.gaussian.md.
    Assumes: the sensitivity is true; the levels are fixed before the path is drawn.
    Rounds: as `GaussianRefinement`; the coarser looks are the finest one and noise on its grid, h < sigma/2^10.

    >>> path = BrownianMechanism([500, 20]).path([0.1, 0.5])
    >>> [look.loss for look in path]
    [Gdp(mu=0.1), Gdp(mu=0.5)]
    """

    true_values: ArrayLike = field(repr=False)
    sensitivity: Number = 1
    bits: BitSource | None = field(default=None, repr=False, kw_only=True)

    def path(self, levels: Sequence[Level]) -> tuple[Look[Gdp], ...]:
        """Return a whole path at rising levels of mu, coarse to fine, drawn from its fine end."""
        squares = [mu_squared_of(level) for level in rising(levels, mu_squared_of)]
        grid, grains = on_grid(self.true_values, self.sensitivity, norm=2, whole=False), math.floor(squares[-1] / GRAIN)
        if not 0 < math.floor(squares[0] / GRAIN) <= grains <= MOST_GRAINS:
            raise InvalidBudget(
                "the level is out of range", rule="2^-28 <= mu <= 8", got=levels, next_step="name levels in this range"
            )
        mechanism = GaussianMeasurements(grid.steps, grid.sensitivity, bits=self.bits, step_log2=grid.step_log2)
        state = mechanism.measure(Measured.nothing(len(grid.steps)), np.full(len(grid.steps), grains))
        unit, value = state.unit_log2 + GUARD_BITS, state.mean >> GUARD_BITS  # one measurement: on its own grid
        times = [grid.sensitivity**2 * math.ldexp(1.0, 2 * grid.step_log2) / float(square) for square in squares]
        looks: list[Any] = [np.ldexp(value.astype(np.float64), unit)]
        for later, earlier in zip(reversed(times), reversed(times[:-1]), strict=False):
            spread = math.ldexp(math.sqrt(earlier - later), -unit)
            value = value + rounded_gaussian(spread, size=len(value), bits=self.bits)
            looks.append(np.ldexp(value.astype(np.float64), unit))
        return tuple(
            Look(grid.shown(shown), Gdp.of_amount(square), number)
            for number, (shown, square) in enumerate(zip(reversed(looks), squares, strict=True), 1)
        )

    def run(self, levels: Sequence[Level], stop: Stop | None = None) -> Look[Gdp]:
        """Draw a path, and show it until `stop` likes what was shown; return the last look shown."""
        require_public(stop)
        path = self.path(levels)
        return next((look for look in path if likes(stop, look)), path[-1])
