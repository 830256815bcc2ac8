"""Noise reduction by name: answers that are shown again with less noise, where only the last look is paid."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import InvalidBudget
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, GaussianMeasurements, Measured
from farthing.mechanisms.laplace import MOST_FARTHINGS, LaplaceChain, Shown
from farthing.mechanisms.stopping import Gridded, Look, epsilon_of, mu_squared_of, on_grid, run_until
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.rounding import coins_down

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from farthing.mechanisms.stopping import Level, Stop
    from farthing.noise.bits import BitSource
    from farthing.privacy.numbers import Number


@dataclass(slots=True, eq=False)
class GaussianRefinement:
    """Answers with Gaussian noise that gets less from look to look: the Brownian mechanism, as averaging.

    Attributes:
        true_values: a number, or numbers[answers]; never leave this object.
        sensitivity: the most that one unit moves them, in the L2 norm, in their own units.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: mu-GDP for the mu of the finest look, however many looks there were and whatever stopped them.
    Proof: docs/proofs/mechanisms.gaussian.md; [WhitehouseRWR22] for the Brownian mechanism, which it is.
    Assumes: the sensitivity is true; levels and stops are chosen from what was shown.
    Rounds: sigma up. Answers that are not whole numbers, to a grid of 2^-12 of the sensitivity, which the price counts.

    >>> refinement = GaussianRefinement([500, 20], sensitivity=1)
    >>> shown = refinement.refine(mu=0.1)
    >>> finer = refinement.refine(mu=0.25)
    >>> refinement.loss
    Gdp(mu=0.25)
    """

    true_values: InitVar[ArrayLike]
    sensitivity: Number = 1
    bits: BitSource | None = field(default=None, repr=False, kw_only=True)
    loss: Gdp = field(default_factory=lambda: Gdp(0), init=False)
    looks: int = field(default=0, init=False)
    _grid: Gridded = field(init=False, repr=False)
    _state: Measured = field(init=False, repr=False)

    def __post_init__(self, true_values: ArrayLike) -> None:
        self._grid = on_grid(true_values, self.sensitivity, norm=2, whole=False)
        self._state = Measured.nothing(len(self._grid.steps))

    def refine(self, mu: Level | None = None, *, rho: Number | None = None, **others: object) -> Any:
        """Return the values at a level, which has cost mu (or rho in zCDP) in all; a level not above the last is free.

        A level is a number or a loss: `refine(0.5)`, `refine(rho=0.125)` and `refine(Gdp(0.5))` are the same.

        Raises:
            InvalidBudget: no level, two, of another kind, or one that is not finite, above 0 and at most mu = 8.
        """
        level = _one_level({"mu": mu, "rho": None if rho is None else Zcdp(rho)}, others)
        paid = mu_squared_of(level)
        grains = math.floor(paid / GRAIN)
        if not 0 < grains <= MOST_GRAINS:
            raise _out_of_range(level, "2^-28 <= mu <= 8")
        more = grains - int(self._state.information.max(initial=0))
        if more > 0:
            grid = self._grid
            mechanism = GaussianMeasurements(grid.steps, grid.sensitivity, bits=self.bits, step_log2=grid.step_log2)
            self._state = mechanism.measure(self._state, np.full(len(grid.steps), more))
            self.loss, self.looks = Gdp.of_amount(paid), self.looks + 1
        return self.values

    @property
    def values(self) -> Any:
        """The shown values, float64[answers] or a number: the mean of all measurements; 0 before the first."""
        return self._grid.shown(self._state.values)

    @property
    def look(self) -> Look[Gdp]:
        """What was released so far."""
        return Look(self.values, self.loss, self.looks)

    def run(self, levels: Sequence[Level], stop: Stop | None = None) -> Look[Gdp]:
        """Refine along rising levels of mu until `stop` likes what was shown; return the last look."""
        return run_until(self, levels, stop, mu_squared_of)


@dataclass(slots=True, eq=False)
class LaplaceRefinement:
    """Answers with Laplace noise that gets less from look to look: gradual release, under a pure budget.

    The noise of a look at epsilon is h N, N two-sided geometric, P[N = k] ~ exp(-epsilon h |k| / sensitivity). The grid
    h is 1 where `integer` is set, else a power of two below 2^-12 of the sensitivity: Laplace noise for all purposes,
    drawn without its floating-point leak. What is shown is a multiple of h, and h depends on nothing private.

    Attributes:
        true_value: a number, or numbers[answers]; never leave this object.
        sensitivity: the most that one unit moves them, in the L1 norm, in their own units.
        integer: whether the noise is whole: the two-sided geometric mechanism.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: ex post, epsilon-DP for the epsilon of the finest look, however many looks there were and whatever
        stopped them; in a pure ledger.
    Proof: docs/proofs/mechanisms.laplace.md; [KoufogiannisHP16; LigettNRWW17].
    Assumes: the sensitivity is true; levels and stops are chosen from what was shown.
    Rounds: rates down. Answers that are not whole numbers, to the grid, which the sensitivity counts.

    >>> refinement = LaplaceRefinement(500, integer=True)
    >>> first, second = refinement.refine(epsilon=0.1), refinement.refine(epsilon=0.3)
    >>> refinement.loss
    Pure(epsilon=0.3)
    >>> refinement.refine(epsilon=0.2) == second
    True
    """

    true_value: InitVar[ArrayLike]
    sensitivity: Number = 1
    integer: bool = False
    bits: BitSource | None = field(default=None, repr=False, kw_only=True)
    loss: Pure = field(default_factory=lambda: Pure(0), init=False)
    looks: int = field(default=0, init=False)
    _grid: Gridded = field(init=False, repr=False)
    _state: Shown = field(init=False, repr=False)

    def __post_init__(self, true_value: ArrayLike) -> None:
        self._grid = on_grid(true_value, self.sensitivity, norm=1, whole=self.integer)
        self._state = Shown.nothing(len(self._grid.steps), self._grid.step_log2)

    def refine(self, epsilon: Level | None = None, **others: object) -> Any:
        """Return the values at a level, which has cost epsilon in all; a level not above the last is free.

        A level is a number or a loss: `refine(0.5)` and `refine(Pure(0.5))` are the same.

        Raises:
            InvalidBudget: no level, of another kind, or one that is not finite, at least 2^-40 and at most 1024.
        """
        level = _one_level({"epsilon": epsilon}, others)
        paid = epsilon_of(level)
        farthings = coins_down(paid)
        if not 0 < farthings <= MOST_FARTHINGS:
            raise _out_of_range(level, "2^-40 <= epsilon <= 1024")
        if farthings > self._state.farthings.max(initial=0):
            chain = self._chain()
            self._state = chain.measure(self._state, np.full(chain.groups, farthings))
            self.loss, self.looks = Pure(paid), self.looks + 1
        return self.values

    @property
    def values(self) -> Any:
        """The shown values, a number or numbers[answers] (int64 where `integer` is set); 0 before the first look."""
        return self._grid.shown(self._state.value.copy() if self.integer else self._state.values)

    @property
    def look(self) -> Look[Pure]:
        """What was released so far."""
        return Look(self.values, self.loss, self.looks)

    def run(self, levels: Sequence[Level], stop: Stop | None = None) -> Look[Pure]:
        """Refine along rising levels of epsilon until `stop` likes what was shown; return the last look."""
        return run_until(self, levels, stop, epsilon_of)

    def _chain(self) -> LaplaceChain:
        """Return the chain on the grid. All answers go to one level, so it counts the L1 norm as one group would."""
        grid = self._grid
        return LaplaceChain(grid.steps, grid.sensitivity, bits=self.bits, step_log2=grid.step_log2)


def _one_level(levels: dict[str, Level | None], others: dict[str, object]) -> Level:
    """Return the one level that was named; refuse none, two, and those of other noise."""
    named = {name: level for name, level in levels.items() if level is not None}
    if len(named) != 1 or others:
        raise InvalidBudget(
            "one level is needed",
            rule=" or ".join(levels),
            got=", ".join(f"{name}={value}" for name, value in {**named, **others}.items()) or "no level",
            next_step=f"refine({next(iter(levels))}=0.5), say; Laplace noise has epsilon, Gaussian noise mu or rho",
        )
    return next(iter(named.values()))


def _out_of_range(level: object, rule: str) -> InvalidBudget:
    """Return the refusal of a level that has no noise."""
    return InvalidBudget("the level is out of range", rule=rule, got=level, next_step="name a level in this range")
