"""Top-k by one race: noise on every score once, and the k largest in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing.mechanisms.noises import Noise, known, loss_of, noisy_field
from farthing.mechanisms.scores import B, checked_scores, priced, repeated, restated, whole
from farthing.noise.races import leaders
from farthing.privacy.loss import BoundedRange, Gdp, Pure, Zcdp

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from farthing.noise.bits import BitSource
    from farthing.privacy.numbers import Number

    Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TopK:
    """Choose k options, best first, by one race.

    With Gumbel noise it is the exponential mechanism k times over, each time without those already chosen. Exponential
    noise is the better buy in a pure ledger. Gaussian noise costs the same whatever k is, since then all noisy scores
    could be shown.

    Attributes:
        k: how many options.
        epsilon: the price of one of the k choices, > 0, exact; of Gaussian noise 2 mu for all of them.
        noise: "gumbel", "exponential", "laplace" or "gaussian".

    Guarantee: Gumbel: k adaptive choices of epsilon-bounded range, so k epsilon-DP and k epsilon^2/8-zCDP. Exponential
        and Laplace: k epsilon-DP. Gaussian: (epsilon/2)-GDP.
    Proof: docs/proofs/mechanisms.select.md, "Top-k"; [DurfeeR19, Lemma 4.2] for Gumbel noise.
    Assumes: as `NoisyMax`.
    Rounds: the rate down, so the choices cost no more than their price.

    >>> TopK(2, 1).choose([0, 900, 1900, 0]).tolist()
    [2, 1]
    """

    k: int
    epsilon: Number
    noise: Noise = "gumbel"

    def __post_init__(self) -> None:
        whole(self.k, "k")
        priced(self.epsilon)
        known(self.noise)

    @property
    def loss(self) -> Gdp | Pure | Zcdp:
        """The loss of all k choices, in the currency that fits the noise best."""
        one = loss_of(self.noise, self.epsilon)
        if isinstance(one, Gdp):
            return one
        return one * self.k if isinstance(one, Pure) else self.price(Zcdp)

    def price(self, currency: type[B]) -> B:
        """Return the tightest known price of all k choices in a ledger's currency.

        >>> TopK(10, 1).price(Zcdp), TopK(10, 1, "gaussian").price(Zcdp)
        (Zcdp(rho=1.23302), Zcdp(rho=0.125))
        >>> round(float(TopK(10, 1).price(Gdp).amount / TopK(1, 1).price(Gdp).amount), 1)  # together they cost less
        7.0
        """
        one = loss_of(self.noise, self.epsilon)
        if isinstance(one, BoundedRange):
            return repeated(one, self.k, currency)
        return restated(one if isinstance(one, Gdp) else one * self.k, currency)

    def choose(
        self,
        scores: ArrayLike,
        sensitivity: Number = 1,
        *,
        monotone: bool = False,
        moved: int | None = None,
        bits: BitSource | None = None,
    ) -> Int64:
        """Return the indices of the chosen options, int64[..., k], best first.

        Args:
            scores: int64 or float64[..., options], larger is better, at least k of them.
            sensitivity: the most that one unit moves a score.
            monotone: whether one unit moves all scores the same way.
            moved: the most scores of a row that one unit moves at all; it matters for Gaussian noise only.
            bits: where random bits come from; by default the operating system.

        Raises:
            NoiseError: scores that are not numbers, or fewer than k.
        """
        table = checked_scores(scores, at_least=self.k)
        field = noisy_field(table, self.noise, self.epsilon, sensitivity=sensitivity, monotone=monotone, moved=moved)
        return leaders(field, self.k, bits).reshape((*table.shape[:-1], self.k))
