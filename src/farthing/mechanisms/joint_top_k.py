"""Top-k in one joint choice: a set of k options at once, by the exponential mechanism over all sets of k.

The loss of a set is the best score that it leaves out less three times the worst one that it takes. It depends on these
two options alone, so that sets fall into k (options - k) + 1 classes: a race of the classes, each with the number of
its sets, and then a uniform set of the class that won, draw the choice exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.mechanisms.exponential import uniform_below
from farthing.mechanisms.scores import B, checked_scores, priced, rate_of, refused, restated, spread_of, whole
from farthing.noise.races import Field, leaders
from farthing.privacy.loss import BoundedRange

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.noise.bits import BitSource
    from farthing.privacy.numbers import Number

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

MOST_CLASSES: Final = 1 << 22
"""Classes of sets that race: more would take too long."""

TAKEN: Final = 3
"""How much more the worst option that is taken counts than the best one that is left out.

A promise about what is taken costs (TAKEN + 1)/TAKEN as much as if nothing else counted.
"""

_LOG_GAMMA: Final = 2.0**-40
"""What a logarithm of a factorial may be off, relative to that of all options; scipy's is good to 2^-48 of itself."""


@dataclass(frozen=True, slots=True)
class JointTopK:
    """Choose a set S of k options with P[S] proportional to exp(-rate * (best outside of S - 3 * worst in S)).

    It pays for one choice among all sets, where a race pays for k choices: less noise at the same price wherever more
    than a few options are wanted. It tells no order.

    Attributes:
        k: how many options.
        epsilon: the price of the whole set, > 0; exact.

    Guarantee: epsilon-bounded range, so also epsilon-DP.
    Proof: docs/proofs/mechanisms.select.md, "A joint choice"; the idea, with another loss, is of [GillenwaterJMR22].
    Assumes: `sensitivity` and `monotone` as stated; options do not depend on the data; exact races.
    Rounds: the rate down, so the choice costs no more than epsilon.

    >>> JointTopK(2, 1).choose([0, 900, 1900, 0]).tolist()
    [1, 2]
    """

    k: int
    epsilon: Number

    def __post_init__(self) -> None:
        whole(self.k, "k")
        priced(self.epsilon)

    @property
    def loss(self) -> BoundedRange:
        """The loss of the whole set."""
        return BoundedRange(priced(self.epsilon))

    def price(self, currency: type[B]) -> B:
        """Return the tightest known price of the set in a ledger's currency.

        >>> from farthing.privacy import Pure
        >>> JointTopK(10, 1).price(Pure)
        Pure(epsilon=1)
        """
        return restated(self.loss, currency)

    def rate(self, sensitivity: Number = 1, *, monotone: bool = False) -> float:
        """Return what a loss is multiplied by: epsilon over the range of its change, rounded down.

        >>> JointTopK(5, 1).rate(), JointTopK(5, 1).rate(monotone=True)
        (0.125, 0.25)
        """
        return rate_of(self.epsilon, (1 + TAKEN) * spread_of(sensitivity, monotone=monotone))

    def choose(
        self, scores: Any, sensitivity: Number = 1, *, monotone: bool = False, bits: BitSource | None = None
    ) -> Int64:
        """Return the indices of the chosen options in rising order, int64[k]: which is the best is not told.

        Args:
            scores: int64 or float64[options], larger is better, at least k of them.
            sensitivity: the most that one unit moves a score.
            monotone: whether one unit moves all scores the same way.
            bits: where random bits come from; by default the operating system.

        Raises:
            NoiseError: scores that are not numbers, fewer than k, or more classes than `MOST_CLASSES`.
        """
        table = checked_scores(scores, at_least=self.k, one_row=True)
        if len(table) == self.k:
            return np.arange(self.k)
        if not serves(self.k, len(table)):
            raise refused(f"at most {MOST_CLASSES:,} classes of sets, k (options - k)", f"{self.k}, {len(table):,}")
        rate = self.rate(sensitivity, monotone=monotone)
        order = np.argsort(-table, kind="stable")
        race = _classes(table[order], self.k, rate)
        out, low = divmod(int(leaders(race, bits=bits)[0, 0]), len(table) - self.k)
        return np.sort(order[_members(self.k, out, self.k + low, bits)])

    def probabilities(
        self, scores: Any, sensitivity: Number = 1, *, monotone: bool = False
    ) -> dict[frozenset[int], float]:
        """Return the probability of each set of k options, in float64: for few options.

        >>> {min(one): round(share, 4) for one, share in JointTopK(1, 4).probabilities([0, 1]).items()}
        {0: 0.1192, 1: 0.8808}
        """
        from itertools import combinations

        table = checked_scores(scores, at_least=self.k + 1, one_row=True).astype(np.float64)
        rate = self.rate(sensitivity, monotone=monotone)
        sets = [frozenset(each) for each in combinations(range(len(table)), self.k)]
        mass = [rate * (TAKEN * min(table[list(one)]) - max(table[list({*range(len(table))} - one)])) for one in sets]
        weight = np.exp(np.array(mass) - max(mass))
        return dict(zip(sets, (weight / weight.sum()).tolist(), strict=True))


def serves(k: int, options: int) -> bool:
    """Tell whether a joint choice can be drawn: k and the number of options are public."""
    return 0 < k * (options - k) < MOST_CLASSES


def chance_jointly(k: int, options: int, distance: float) -> float:
    """Return a lower bound of the chance that all chosen are close enough to the true k-th best.

    Nothing that is left out is then more than `TAKEN` times as far above the true k-th.

    Args:
        k: how many are chosen.
        options: from how many, more than k.
        distance: how far below the k-th a chosen option may be, times the rate and `TAKEN`.

    Guarantee: at all scores the chance is at least that; a distance that is log(k + 1) less would not serve.
    Proof: docs/proofs/mechanisms.select.md, "A joint choice".
    Assumes: more than k options.
    Rounds: nothing; `distance_jointly` is raised by 2^-40.

    >>> round(chance_jointly(10, 1000, distance_jointly(10, 1000, 0.95)), 6)
    0.95
    """
    return 1 / (1 + math.exp(min(_log_others(k, options) - distance, 700.0)))


def distance_jointly(k: int, options: int, confidence: float) -> float:
    """Return the least distance at which `chance_jointly` reaches the confidence, rounded up."""
    wanted = confidence + min(1e-9, (1 - confidence) / 1000)
    return max(0.0, _log_others(k, options) + math.log(wanted / (1 - wanted))) * (1 + 2.0**-40)


def _log_others(k: int, options: int) -> float:
    """Return the logarithm of the number of sets of k other than the best one."""
    return math.log(math.comb(options, k) - 1)


def _classes(falling: NDArray[Any], k: int, rate: float) -> Field:
    """Return the race of the classes of sets: a row for the best option left out, a column for the worst one taken.

    Rows are options 0 ... k - 1, columns k ... options - 1; one cell after them stands for the best set.
    """
    above, below = falling[:k] - falling[k], falling[k - 1] - falling[k:]
    behind = above.astype(np.float64)[:, None] + TAKEN * below.astype(np.float64)[None]
    centres = np.append((_log_sets(k, len(falling)) - rate * behind).ravel(), 0.0)

    def exact(_: int, place: int) -> Fraction:
        out, low = divmod(place, len(falling) - k)
        if out == k:
            return Fraction(0)
        first, kth, next_, last = (Fraction(falling[at].item()) for at in (out, k - 1, k, k + low))
        return -Fraction(rate) * (first - next_ + TAKEN * (kth - last))

    def sets(_: int, place: int) -> int:
        out, low = divmod(place, len(falling) - k)
        return 1 if out == k else math.comb(k + low - out - 1, k - 1 - out)

    return Field("gumbel", centres[None], exact, _slack(len(falling)), sets)


def _slack(options: int) -> float:
    """Return what the logarithm of a number of sets, and its sum with a rate times a loss, may be off in float64."""
    return _LOG_GAMMA * (math.lgamma(options + 2) + 1)


def _log_sets(k: int, options: int) -> Float64:
    """Return the logarithms of how many sets leave out one option first and take another last, float64[k, options - k].

    Those above the first left out are all taken; of those between the two, as many as are missing.
    """
    from scipy.special import gammaln

    between = np.arange(k, options)[None] - np.arange(k)[:, None] - 1.0
    missing = k - 1.0 - np.arange(k)[:, None]
    return np.asarray(gammaln(between + 1) - gammaln(missing + 1) - gammaln(between - missing + 1))


def _members(k: int, out: int, low: int, bits: BitSource | None) -> Int64:
    """Return a uniform set of a class, as places in the falling order of scores, by Floyd's sampling."""
    if out == k:
        return np.arange(k)
    between, missing = low - out - 1, k - 1 - out
    taken: set[int] = set()
    most = np.arange(between - missing + 1, between + 1)
    for last, drawn in zip((most - 1).tolist(), uniform_below(most, bits).tolist(), strict=True):
        taken.add(last if drawn in taken else drawn)
    return np.array([*range(out), *(out + 1 + place for place in sorted(taken)), low], np.int64)
