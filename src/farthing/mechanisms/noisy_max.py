"""Noisy maxima: the option whose score plus noise is the largest, by an exact race."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.mechanisms.noises import Noise, known, loss_of, noise_rate, noisy_field
from farthing.mechanisms.scores import B, checked_scores, priced, restated
from farthing.mechanisms.winning import winning_chances
from farthing.noise.races import leaders

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from farthing.noise.bits import BitSource
    from farthing.privacy.loss import BoundedRange, Gdp, Pure
    from farthing.privacy.numbers import Number

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NoisyMax:
    """Choose the option with the largest score + noise.

    Attributes:
        epsilon: the price of a choice, > 0; exact. Of Gaussian noise it is 2 mu, so that it is epsilon^2/8-zCDP.
        noise: "laplace", "exponential", "gumbel" or "gaussian".

    Guarantee: `loss`: epsilon-DP for Laplace and exponential noise, epsilon-bounded range for Gumbel, (epsilon/2)-GDP
        for Gaussian.
    Proof: docs/proofs/mechanisms.select.md, "Noisy maxima"; [DingKSSWXZ21] for exponential noise.
    Assumes: `sensitivity`, `monotone` and `moved` as stated; options do not depend on the data; exact races.
    Rounds: the rate down, so a choice costs no more than its price.

    >>> NoisyMax(1).choose([0, 900, 0])
    1
    """

    epsilon: Number
    noise: Noise = "laplace"

    def __post_init__(self) -> None:
        priced(self.epsilon)
        known(self.noise)

    @property
    def loss(self) -> BoundedRange | Gdp | Pure:
        """The loss of one choice."""
        return loss_of(self.noise, self.epsilon)

    def price(self, currency: type[B]) -> B:
        """Return the tightest known price of one choice in a ledger's currency; Gaussian noise has no pure price."""
        return restated(self.loss, currency)

    def choose(
        self,
        scores: ArrayLike,
        sensitivity: Number = 1,
        *,
        monotone: bool = False,
        moved: int | None = None,
        bits: BitSource | None = None,
    ) -> int | Int64:
        """Return the chosen option: its index, or for rows of scores that of each row.

        Args:
            scores: int64 or float64[..., options], larger is better; a float64 is the exact number it is.
            sensitivity: the most that one unit moves a score.
            monotone: whether one unit moves all scores the same way. Whoever knows R, how far apart the changes of two
                scores can be, passes `sensitivity=R, monotone=True`, without `moved`.
            moved: the most scores of a row that one unit moves at all; it matters for Gaussian noise only.
            bits: where random bits come from; by default the operating system.

        Raises:
            NoiseError: scores that are not numbers, or none.
        """
        table = checked_scores(scores)
        field = noisy_field(table, self.noise, self.epsilon, sensitivity=sensitivity, monotone=monotone, moved=moved)
        chosen = leaders(field, bits=bits)[:, 0].reshape(table.shape[:-1])
        return int(chosen) if chosen.ndim == 0 else chosen

    def probabilities(
        self, scores: ArrayLike, sensitivity: Number = 1, *, monotone: bool = False, moved: int | None = None
    ) -> Float64:
        """Return the probability of each option of one row, float64[options], to about 10 digits.

        >>> NoisyMax(2, "gumbel").probabilities([0, 1]).tolist()
        [0.2689414213699951, 0.7310585786300049]
        """
        table = checked_scores(scores, one_row=True)
        rate = noise_rate(self.noise, self.epsilon, len(table), sensitivity, monotone=monotone, moved=moved)
        return winning_chances(self.noise, rate * (table - table.max()).astype(np.float64))


@dataclass(frozen=True, slots=True)
class PermuteAndFlip:
    """Try the options in random order, keep each with probability exp(rate * (score - best)), until one is kept.

    It is the noisy maximum with exponential noise, and is drawn as such. Its expected regret is at most that of the
    exponential mechanism of the same epsilon, and down to half of it; but its bounded range is wider than epsilon, so
    that under zCDP and GDP the exponential mechanism is the better buy.

    Attributes:
        epsilon: the price of a choice, > 0; exact.

    Guarantee: epsilon-DP. Its bounded range can be epsilon + log(2 - e^-epsilon).
    Proof: [McKennaS20; DingKSSWXZ21]; docs/proofs/mechanisms.select.md, "Noisy maxima" and "Permute and flip".
    Assumes: as `NoisyMax`.
    Rounds: the rate down, so a choice costs no more than epsilon.

    >>> PermuteAndFlip(1).choose([0, 900, 0])
    1
    """

    epsilon: Number

    def __post_init__(self) -> None:
        priced(self.epsilon)

    @property
    def loss(self) -> BoundedRange | Gdp | Pure:
        """The loss of one choice."""
        return self._race.loss

    def price(self, currency: type[B]) -> B:
        """Return the tightest known price of one choice in a ledger's currency.

        >>> from farthing.privacy import Pure, Zcdp
        >>> PermuteAndFlip(1).price(Pure), PermuteAndFlip(1).price(Zcdp)
        (Pure(epsilon=1), Zcdp(rho=0.462117))
        """
        return self._race.price(currency)

    def choose(
        self, scores: ArrayLike, sensitivity: Number = 1, *, monotone: bool = False, bits: BitSource | None = None
    ) -> int | Int64:
        """Return the chosen option; the arguments are those of `NoisyMax.choose`."""
        return self._race.choose(scores, sensitivity, monotone=monotone, bits=bits)

    def probabilities(self, scores: ArrayLike, sensitivity: Number = 1, *, monotone: bool = False) -> Float64:
        """Return the probability of each option of one row, float64[options].

        >>> PermuteAndFlip(2).probabilities([0, 1]).tolist()
        [0.1839397205857..., 0.8160602794142...]
        """
        return self._race.probabilities(scores, sensitivity, monotone=monotone)

    @property
    def _race(self) -> NoisyMax:
        return NoisyMax(self.epsilon, "exponential")
