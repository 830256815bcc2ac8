"""A refined maximum: all scores are measured better and better, until the best one's lead is plain to see."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidTarget
from farthing.mechanisms.gaussian import MOST_GRAINS, Coin, GaussianMeasurements, Measured, worst_cost
from farthing.mechanisms.scores import checked_scores, refused, whole
from farthing.mechanisms.winning import chance_within
from farthing.privacy.loss import Gdp, Zcdp

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from farthing.noise.bits import BitSource

LOOK: Final = 1.35
"""The factor by which the information rises from look to look."""

LAST_SHARE: Final = 0.6
"""The part of beta that the last look, which always answers, may use; the earlier looks share the rest."""

OVERSHOT: Final = 64.0
"""The first look has the information of the last over this: it sees leads of about 8 times `within`."""

GRID: Final = 2.0**-8
"""What rounding to the grid can move a difference by, in its standard deviations: counted at every look."""


@dataclass(frozen=True, slots=True)
class LeadSchedule:
    """At which information to look, and by how much the best must lead there.

    Attributes:
        information: of each look, rising, in 1 over the square of the scores' unit.
        leads: how far the largest value must be ahead of the second to stop there, in the scores' unit; 0 at the last.
    """

    information: tuple[float, ...]
    leads: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Refined:
    """What a refined maximum came to; all of it may be shown.

    Attributes:
        index: the chosen option.
        measured: the noisy values of all options, which can be refined further.
        looks: how many looks it took.
        grains: the price for one unit, in 2^-56 of mu^2.
    """

    index: int
    measured: Measured
    looks: int
    grains: int

    def price(self, currency: type[Gdp | Zcdp]) -> Gdp | Zcdp:
        """Return what was paid, in a ledger's currency."""
        return Coin(currency, 1, 1).loss(self.grains)


@dataclass(frozen=True, slots=True)
class RefinedMax:
    """Choose an option within `within` of the best with a confidence, paying less the farther the best is ahead.

    All scores are measured with Gaussian noise, at information that rises from look to look. A look is the last if the
    largest value leads by enough to prove that its option is good enough, and at the latest where even a bare lead
    would do. The noisy values themselves are part of the answer.

    Attributes:
        within: how much worse than the best the chosen option may be, > 0, in the scores' unit.
        confidence: with what chance, whatever the scores, in (1/2, 1).
        sensitivity: the most that one unit moves a score, a whole number.
        moved: the most scores that one unit moves at all.

    Guarantee: mu-GDP for mu^2 = `Refined.grains` 2^-56 as it came out, under a filter that knows it before each look.
    Proof: [DongRS22, Cor. 3.3; SmithT22]; docs/proofs/mechanisms.gaussian.md; the confidence in
        docs/proofs/mechanisms.select.md, "The refined maximum".
    Assumes: as `GaussianMeasurements`; options do not depend on the data.
    Rounds: information up, to whole grains; leads up.

    >>> refined = RefinedMax(within=50).choose([3000, 100, 7])
    >>> refined.index, refined.looks, refined.price(Gdp) < RefinedMax(within=50).most(3, Gdp)
    (0, 1, True)
    """

    within: float
    confidence: float = 0.95
    sensitivity: int = 1
    moved: int = 1

    def __post_init__(self) -> None:
        whole(self.sensitivity, "sensitivity")
        whole(self.moved, "moved")
        check_target(self.within, self.confidence)

    def schedule(self, options: int) -> LeadSchedule:
        """Return the looks for a number of options."""
        last, steps, lead = _standard(options, self.confidence)
        information = tuple(last * LOOK**-step / self.within**2 for step in range(steps, -1, -1))
        leads = [max(0.0, lead * math.sqrt(2 / each) - self.within) for each in information[:-1]]
        return LeadSchedule(information, (*leads, 0.0))

    def most(self, options: int, currency: type[Gdp | Zcdp] = Gdp) -> Gdp | Zcdp:
        """Return the price of the last look: what is reserved.

        >>> RefinedMax(within=50).most(10)
        Gdp(mu=0.0742153)
        """
        return Coin(currency, 1, 1).loss(
            min(self.moved, options) * self._grains(self.schedule(options).information[-1])
        )

    def choose(self, scores: ArrayLike, *, bits: BitSource | None = None) -> Refined:
        """Return the chosen option with what was measured.

        Args:
            scores: int64[options], at least two, larger is better.
            bits: where random bits come from; by default the operating system.

        Raises:
            NoiseError: scores that are not whole numbers.
        """
        table = checked_scores(scores, at_least=2, one_row=True)
        if table.dtype.kind != "i":
            raise refused("whole scores: what is measured lies on a grid", table.dtype)
        mechanism = GaussianMeasurements(table, self.sensitivity, self.moved, bits)
        plan, state, reached, look = self.schedule(len(table)), Measured.nothing(len(table)), 0, 0
        for look, (information, lead) in enumerate(zip(plan.information, plan.leads, strict=True), 1):  # noqa: B007
            grains = self._grains(information)
            state = mechanism.measure(state, np.full(len(table), grains - reached))
            reached = grains
            second, first = np.partition(state.values, len(table) - 2)[-2:]
            if first - second >= lead:
                break
        return Refined(int(np.argmax(state.mean)), state, look, worst_cost(state.information, self.moved))

    def _grains(self, information: float) -> int:
        """Return the grains of an information, rounded up."""
        grains = math.ceil(information / Coin(Gdp, 1, self.sensitivity).per_grain)
        if grains > MOST_GRAINS:
            raise InvalidTarget(
                "options this close cannot be told apart",
                rule="noise of mu = 8 or less an option",
                got=f"within={self.within}",
                next_step="raise within, or lower the confidence",
            )
        return grains


def check_target(within: float, confidence: float) -> None:
    """Refuse what is not a target for a choice."""
    if isinstance(within, bool) or not (isinstance(within, int | float) and 0 < within < math.inf):
        raise InvalidTarget(
            "no choice can be that close",
            rule="within is a finite number > 0",
            got=repr(within),
            next_step="say how much worse than the best an option may be",
        )
    if isinstance(confidence, bool) or not (isinstance(confidence, int | float) and 0.5 < confidence <= 1 - 1e-9):
        raise InvalidTarget(
            "the confidence is out of range",
            rule="0.5 < confidence <= 1 - 1e-9",
            got=confidence,
            next_step="0.95 is usual",
        )


@lru_cache(maxsize=256)
def _standard(options: int, confidence: float) -> tuple[float, int, float]:
    """Return, for `within` 1: the last information, the steps before it, and the lead in sd of a difference.

    With all others exactly 1 behind (the worst case) a look that stops has a wrong leader only if some other's noise is
    `lead` sd of a difference ahead of the best one's; the last look only if it is 1 ahead. The chances add up to beta.
    """
    beta = 1 - confidence
    last = _quantile(options, beta * LAST_SHARE) ** 2
    steps = max(1, math.floor(math.log(OVERSHOT) / math.log(LOOK)))
    lead = _quantile(options, beta * (1 - LAST_SHARE) / steps)
    return last, steps, lead / math.sqrt(2)


def _quantile(options: int, beta: float) -> float:
    """Return x with P[some of the other options' normal noise is x ahead of the first one's] <= beta, with a margin."""
    wanted, low, high = beta * (1 - 1e-6), 0.0, 80.0
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (low, middle) if 1 - chance_within("gaussian", 1, options, middle) <= wanted else (middle, high)
    return high + 2 * GRID
