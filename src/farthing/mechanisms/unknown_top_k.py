"""Top-k where the options are not known beforehand: fewer may come back, and only what comes back is paid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from farthing.errors import InvalidBudget
from farthing.mechanisms.exponential import Exponential
from farthing.mechanisms.scores import (
    B,
    chance,
    checked_scores,
    field_of,
    priced,
    rate_of,
    refused,
    repeated,
    spread_of,
    whole,
)
from farthing.noise.races import leaders
from farthing.privacy.balls import ball, upper, working
from farthing.rounding import up

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from farthing.noise.bits import BitSource
    from farthing.privacy.base import Loss
    from farthing.privacy.numbers import Number

    Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Found:
    """What a choice from unknown options came to.

    Attributes:
        places: int64[at most k], the chosen among the counts that were passed, best first.
        stopped: whether the stop was drawn, which says that no more stand out.
    """

    places: Int64
    stopped: bool

    @property
    def peels(self) -> int:
        """How many choices were made: one for each option that came back, one for the stop."""
        return len(self.places) + self.stopped


@dataclass(frozen=True, slots=True)
class UnknownTopK:
    """Choose up to k options from the largest k_bar counts, until a stop is chosen in their stead.

    The stop races with the (k_bar + 1)-th count and a lead, `lead`. Options that one unit could bring among the first
    k_bar, or push out of them, lie at most R above that count: that one of them beats the stop has chance delta.

    Attributes:
        k: the most options that come back.
        k_bar: how many of the largest counts take part, >= k.
        epsilon: the price of one choice, > 0; exact.
        delta: the chance, for a whole call, in (0, 1); exact.
        moved: the most options that one unit counts in; None if there is no bound. It lowers the lead.

    Guarantee: but for outcomes of chance `delta`, one epsilon-bounded-range choice for each option that comes back and
        one for the stop, each made after those before it.
    Proof: docs/proofs/mechanisms.select.md, "Unknown options"; after [DurfeeR19].
    Assumes: the counts passed are the largest, ties among them broken without regard to the data; keys leave in the
        order of the choice only; counts that are missing are 0; exact races.
    Rounds: the rate down, the lead up.

    >>> top = UnknownTopK(k=3, k_bar=5, epsilon=1, delta=1e-6).choose([900, 400, 3, 2, 1, 1])
    >>> top.places.tolist(), top.stopped, top.peels
    ([0, 1], True, 3)
    """

    k: int
    k_bar: int
    epsilon: Number
    delta: Number
    moved: int | None = None

    def __post_init__(self) -> None:
        priced(self.epsilon)
        chance(self.delta)
        whole(self.k_bar, "k_bar", least=whole(self.k, "k"))
        if self.moved is not None:
            whole(self.moved, "moved")

    @property
    def lead(self) -> float:
        """How far, in standard noise, the stop starts ahead of the (k_bar + 1)-th count, rounded up.

        It is epsilon + log(d (1 - delta)/delta): d options at most R ahead of that count beat the stop with chance
        d e^(epsilon - lead)/(1 + d e^(epsilon - lead)) = delta.
        """
        most = self.k_bar if self.moved is None else min(self.moved, self.k_bar)
        lost = chance(self.delta)
        with working() as flint:
            ahead = max(Fraction(0), upper(ball(flint, most * (1 - lost) / lost).log()))
        return up(priced(self.epsilon) + ahead)

    def price(self, currency: type[B], peels: int | None = None) -> B:
        """Return the price of a call in a ledger's currency, but for outcomes of chance `delta`, booked beside it.

        In Gaussian DP those that were made are priced together, however many that is: docs/proofs/privacy.residue.md.

        Args:
            currency: Pure, Zcdp or Gdp.
            peels: `Found.peels`; at most k, which is what is reserved.

        >>> from farthing.privacy import Pure
        >>> UnknownTopK(10, 50, 0.5, 1e-6).price(Pure), UnknownTopK(10, 50, 0.5, 1e-6).price(Pure, peels=3)
        (Pure(epsilon=5), Pure(epsilon=1.5))
        """
        made = self.k if peels is None else peels
        if not 0 <= made <= self.k:
            raise InvalidBudget(
                "the number of choices is out of range", rule="0 <= peels <= k", got=made, next_step="pass Found.peels"
            )
        return repeated(Exponential(self.epsilon).loss, made, currency)

    @property
    def loss(self) -> Loss:
        """The loss of all k choices in zCDP, but for outcomes of chance `delta`: rho and that delta."""
        from farthing.privacy.loss import Zcdp

        return Zcdp.of_parts(amount=self.price(Zcdp).amount, slack=chance(self.delta))

    def needed(self, confidence: float, sensitivity: Number = 1, *, monotone: bool = True) -> float:
        """Return how far ahead of the (k_bar + 1)-th count an option must be to beat the stop with the confidence.

        >>> UnknownTopK(10, 50, 0.5, 1e-6).needed(0.95)
        42.3...
        """
        rate = rate_of(self.epsilon, spread_of(sensitivity, monotone=monotone))
        return (self.lead + math.log(confidence / (1 - confidence))) / rate

    def choose(
        self, counts: ArrayLike, sensitivity: Number = 1, *, monotone: bool = True, bits: BitSource | None = None
    ) -> Found:
        """Return the chosen places, and whether the stop was drawn.

        Args:
            counts: int64 or float64[at most k_bar + 1], the largest counts, falling, each > 0; fewer where fewer
                options exist.
            sensitivity: the most that one unit moves a count.
            monotone: whether adding a unit moves no count down.
            bits: where random bits come from; by default the operating system.

        Raises:
            NoiseError: counts that are not positive numbers, do not fall, or are too many.
        """
        table = self._counts(counts)
        given = min(len(table), self.k_bar)
        # Options that do not exist count 0 and race like the rest; to choose one of them is to stop.
        padded = np.concatenate([table, np.zeros(self.k_bar + 1 - len(table), table.dtype)])
        lift = np.zeros(len(padded))
        lift[-1] = self.lead
        rate = rate_of(self.epsilon, spread_of(sensitivity, monotone=monotone))
        order = leaders(field_of(padded, rate, "gumbel", lift), self.k, bits)[0]
        stops = np.flatnonzero(order >= given)
        return Found(order[: stops[0]], stopped=True) if len(stops) else Found(order, stopped=False)

    def _counts(self, counts: ArrayLike) -> NDArray[np.int64] | NDArray[np.float64]:
        """Return the counts as they may race, or refuse them."""
        if np.ndim(counts) == 1 and not np.size(counts):
            return np.zeros(0, np.int64)
        table = checked_scores(counts, one_row=True)
        if len(table) > self.k_bar + 1:
            raise refused(f"at most k_bar + 1 = {self.k_bar + 1} counts", len(table))
        if not (table > 0).all() or (np.diff(table) > 0).any():
            raise refused("counts of options that exist, falling", "other counts")
        return table
