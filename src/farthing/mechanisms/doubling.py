"""Doubling: fresh noise at every look, every look paid. The baseline that noise reduction is measured against."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from farthing.errors import InvalidBudget
from farthing.mechanisms.refinement import GaussianRefinement, LaplaceRefinement
from farthing.mechanisms.scores import priced
from farthing.mechanisms.stopping import Look, epsilon_of, mu_squared_of, run_until
from farthing.privacy.loss import Gdp, Pure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import ArrayLike

    from farthing.mechanisms.stopping import Level, Stop
    from farthing.noise.bits import BitSource
    from farthing.privacy.numbers import Number

L = TypeVar("L", Gdp, Pure)


@dataclass(slots=True, eq=False)
class Doubling:
    """Answers with fresh, independent noise at every look; what was shown before is thrown away, and was paid.

    Attributes:
        true_values: a number, or numbers[answers]; never leave this object.
        sensitivity: the most that one unit moves them: in the L2 norm for "gaussian", L1 for "laplace" noise.
        noise: "gaussian" with levels of mu, whose squares add, or "laplace" with levels of epsilon, which add.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: the losses of the looks, added in their currency; the stop may depend on what was shown.
    Proof: docs/proofs/privacy.filters.md, adaptive composition; each look is a mechanism of `refinement` with one look.
    Assumes: the sensitivity is true; levels and stops are chosen from what was shown.
    Rounds: as `GaussianRefinement` and `LaplaceRefinement`.

    >>> baseline = Doubling(500, noise="laplace")
    >>> looks = [baseline.refine(level) for level in Doubling.levels(0.125, 0.5)]
    >>> baseline.loss
    Pure(epsilon=0.875)
    """

    true_values: InitVar[ArrayLike]
    sensitivity: Number = 1
    noise: Literal["gaussian", "laplace"] = "gaussian"
    bits: BitSource | None = field(default=None, repr=False, kw_only=True)
    values: Any = field(default=0, init=False)
    loss: Gdp | Pure = field(init=False)
    looks: int = field(default=0, init=False)
    _level: Fraction | int = field(default=0, init=False, repr=False)
    _true_values: ArrayLike = field(init=False, repr=False)

    def __post_init__(self, true_values: ArrayLike) -> None:
        if self.noise not in {"gaussian", "laplace"}:
            raise InvalidBudget(
                "the noise is unknown",
                rule='"gaussian" or "laplace"',
                got=self.noise,
                next_step='noise="gaussian", or noise="laplace"',
            )
        self._true_values = true_values
        fresh = self._fresh()
        self.values, self.loss = fresh.values, fresh.loss

    @staticmethod
    def levels(first: Number, most: Number, factor: Number = 2) -> tuple[Fraction, ...]:
        """Return first, first * factor, ... up to `most`.

        >>> [float(level) for level in Doubling.levels(0.25, 1)]
        [0.25, 0.5, 1.0]
        """
        level, end, ratio = priced(first, "first"), priced(most, "most"), priced(factor, "factor")
        if ratio <= 1:
            raise InvalidBudget("the levels do not rise", rule="factor > 1", got=factor, next_step="factor=2")
        found = []
        while level <= end:
            found.append(level)
            level *= ratio
        return tuple(found)

    def refine(self, level: Level) -> Any:
        """Return the values at a level, freshly drawn and paid on top of all before; one not above the last is free."""
        wanted = self._worth(level)
        if wanted > self._level:
            fresh = self._fresh()
            self.values = fresh.refine(level)
            self.loss, self.looks, self._level = self.loss + fresh.loss, self.looks + 1, wanted
        return self.values

    @property
    def look(self) -> Look[Any]:
        """What was released so far."""
        return Look(self.values, self.loss, self.looks)

    def run(self, levels: Sequence[Level], stop: Stop | None = None) -> Look[Any]:
        """Look again at rising levels until `stop` likes what was shown; return the last look."""
        return run_until(self, levels, stop, self._worth)

    def _worth(self, level: Level) -> Fraction:
        """Return a level in the coin that adds up."""
        return mu_squared_of(level) if self.noise == "gaussian" else epsilon_of(level)

    def _fresh(self) -> GaussianRefinement | LaplaceRefinement:
        """Return a refinement that has shown nothing."""
        kind = GaussianRefinement if self.noise == "gaussian" else LaplaceRefinement
        return kind(self._true_values, self.sensitivity, bits=self.bits)
