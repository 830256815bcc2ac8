"""The exponential mechanism over finite options: choose one with probability weight * exp(rate * score), exactly.

One uniform number with lazily extended bits picks the option, against the running sums of weight * exp(rate * score).
In float64 the sums are known within a margin; a draw that falls within the margin of a border is settled in ball
arithmetic from the same bits, read further. Scores count relative to the best one of their row, so nothing overflows,
and what underflows is within the margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import NoiseError
from farthing.mechanisms.scores import B, checked_scores, field_of, priced, rate_of, refused, restated, spread_of
from farthing.noise.bits import BitSource, system_bits
from farthing.noise.races import leaders
from farthing.privacy.balls import ball, working
from farthing.privacy.loss import BoundedRange

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from farthing.privacy.numbers import Number

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]

__all__ = ["BitSource", "Exponential", "choose_runs", "uniform_below"]

MOST_OPTIONS: Final = 1 << 20
"""Options a row that running sums serve: more would stretch their margin, and longer rows run a Gumbel race instead."""

MOST_BITS: Final = 1 << 13
"""Bits of one uniform number that are read before a draw is given up: to be undecided there is rarer than 2^-6000."""

_BLOCK: Final = 1 << 19  # cells settled at a time
_GUARD: Final = 64  # working precision of the balls beyond the bits that were read
_LARGEST: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Exponential:
    """Choose among options with P[i] proportional to weight_i * exp(epsilon * score_i / R).

    R is the range of the score change: how far apart the changes of two scores can be when one unit is added. It is
    2 * sensitivity in general. It is the sensitivity alone where adding a unit moves all scores the same way
    (`monotone`), and whoever knows R itself passes it as `sensitivity=R, monotone=True`.

    Attributes:
        epsilon: the bounded range of one choice, > 0; exact.

    Guarantee: epsilon-bounded range, so also epsilon-DP; k rows that one unit can move cost k choices.
    Proof: [DurfeeR19; CesarR21]; docs/proofs/mechanisms.exponential.md for R and for the draw.
    Assumes: R as stated; options and weights do not depend on the data; numpy's exp errs by at most 2^-40 relative.
    Rounds: the rate down, so a choice costs no more than epsilon.

    >>> choices = Exponential(1).choose(np.array([[0, 900], [900, 0]]))
    >>> choices.tolist()
    [1, 0]
    """

    epsilon: Number

    def __post_init__(self) -> None:
        priced(self.epsilon)

    @property
    def loss(self) -> BoundedRange:
        """The loss of one choice."""
        return BoundedRange(self.epsilon)

    def price(self, currency: type[B]) -> B:
        """Return the tightest known price of one choice in a ledger's currency.

        >>> from farthing.privacy import Pure, Zcdp
        >>> Exponential(1).price(Pure), Exponential(1).price(Zcdp)
        (Pure(epsilon=1), Zcdp(rho=0.123302))
        """
        return restated(self.loss, currency)

    def rate(self, sensitivity: Number = 1, *, monotone: bool = False) -> float:
        """Return epsilon over the range of the score change, rounded down.

        >>> Exponential(1).rate(), Exponential(1).rate(monotone=True)
        (0.5, 1.0)
        """
        return rate_of(self.epsilon, spread_of(sensitivity, monotone=monotone))

    def choose(
        self,
        scores: ArrayLike,
        sensitivity: Number = 1,
        *,
        monotone: bool = False,
        weights: ArrayLike | None = None,
        bits: BitSource | None = None,
    ) -> int | Int64:
        """Return the chosen option: its index, or for rows of scores that of each row.

        Args:
            scores: int64 or float64[..., options], larger is better; a float64 is the exact number it is.
            sensitivity: the most that one unit moves a score.
            monotone: whether one unit moves all scores of a row the same way.
            weights: float64[options] or like the scores, each 0 or from 2^-60 to 2^62; 1 by default. An option of
                weight 0 is never chosen.
            bits: where random bits come from; by default the operating system.

        Returns:
            The index of one row's choice, or int64[...] of them.

        Raises:
            NoiseError: scores or weights that are not numbers, a row without an option, too many weighted options.
        """
        rate = self.rate(sensitivity, monotone=monotone)
        table = checked_scores(scores)
        if table.shape[-1] > MOST_OPTIONS and weights is None:
            chosen = leaders(field_of(table, rate, "gumbel"), bits=bits)[:, 0].reshape(table.shape[:-1])
        else:
            chosen = self._by_sums(table, 1.0 if weights is None else weights, rate, bits)
        return int(chosen) if chosen.ndim == 0 else chosen

    def _by_sums(self, scores: NDArray[Any], weights: ArrayLike, rate: float, bits: BitSource | None) -> Int64:
        """Return the choices of rows of scores, each by one uniform number among running sums."""
        if scores.shape[-1] > MOST_OPTIONS:
            raise refused(f"at most {MOST_OPTIONS} options a row with weights", scores.shape[-1])
        table, weight = _checked(scores, weights)
        rows, flat = table.reshape(-1, table.shape[-1]), weight.reshape(-1, table.shape[-1])
        out = np.empty(len(rows), np.int64)
        step = max(1, _BLOCK // table.shape[-1])
        for start in range(0, len(rows), step):
            at = slice(start, start + step)
            out[at] = _settle(rows[at], flat[at], rate, system_bits() if bits is None else bits)
        return out.reshape(table.shape[:-1])

    def probabilities(
        self,
        scores: ArrayLike,
        sensitivity: Number = 1,
        *,
        monotone: bool = False,
        weights: ArrayLike | None = None,
    ) -> Float64:
        """Return the probability of each option, float64 like the scores, within 2^-30 relative or 2^-1000.

        >>> Exponential(2).probabilities([0, 1]).tolist()
        [0.2689414213699951, 0.7310585786300049]
        """
        table, weight = _checked(checked_scores(scores), 1.0 if weights is None else weights)
        mass = _mass(table, weight, self.rate(sensitivity, monotone=monotone))
        return np.asarray(mass / mass.sum(axis=-1, keepdims=True))


def choose_runs(
    mechanism: Exponential,
    scores: Int64,
    weights: Float64,
    starts: Int64,
    *,
    spread: Number,
    bits: BitSource | None = None,
) -> Int64:
    """Return the chosen option of each run of a flat array, as its place in the array.

    Args:
        mechanism: the exponential mechanism.
        scores: int64[options], those of all runs, one run after the other.
        weights: float64[options].
        starts: int64[runs], where each run begins, rising; no run is empty.
        spread: R, the range of the score change.
        bits: where random bits come from.

    Guarantee: each run is a choice of the mechanism.
    Proof: docs/proofs/mechanisms.exponential.md; filling up with options of weight 0 changes no probability.
    Assumes: as the mechanism.
    Rounds: as the mechanism.

    >>> scores, starts = np.array([0, 900, 900, 0, 0]), np.array([0, 2])
    >>> choose_runs(Exponential(1), scores, np.ones(5), starts, spread=1).tolist()
    [1, 2]
    """
    lengths = np.diff(starts, append=len(scores))
    size = np.frexp((lengths - 1).astype(np.float64))[1]  # the least power of two that holds the run
    out = np.empty(len(starts), np.int64)
    for log2 in np.unique(size).tolist():  # runs of like length side by side: at most 20 rounds
        runs = np.flatnonzero(size == log2)
        for part in np.array_split(runs, -(-(len(runs) << log2) // _BLOCK)):
            place = np.arange(1 << log2)
            inside = place < lengths[part, None]
            at = starts[part, None] + np.where(inside, place, 0)
            weight = np.where(inside, weights[at], 0.0)
            chosen = np.asarray(mechanism.choose(scores[at], spread, monotone=True, weights=weight, bits=bits))
            out[part] = starts[part] + chosen
    return out


def uniform_below(most: Int64, bits: BitSource | None = None) -> Int64:
    """Return whole numbers that are exactly uniform on 0 ... most - 1, one for each entry, by redrawing.

    Guarantee: each number below `most` has the same chance, exactly.
    Proof: docs/proofs/mechanisms.exponential.md: what is thrown away is independent of everything else.
    Assumes: secret uniform bits.
    Rounds: nothing.

    >>> uniform_below(np.array([1, 1])).tolist()
    [0, 0]
    """
    source = system_bits() if bits is None else bits
    width = np.frexp((most - 1).astype(np.float64))[1]  # bits of the largest number
    out, left = np.zeros(len(most), np.int64), np.arange(len(most))
    while left.size:
        fresh = (source.words(left.size) >> np.uint64(1)).astype(np.int64) >> (63 - width[left])
        out[left] = fresh
        left = left[fresh >= most[left]]
    return out


def _checked(table: NDArray[Any], weights: ArrayLike) -> tuple[NDArray[Any], Float64]:
    """Return scores and weights of one shape, or refuse them. No error tells a score."""
    given = np.asarray(weights)
    if given.dtype.kind not in "iuf":
        raise refused("weights are numbers", given.dtype)
    if given.ndim and given.shape[-1] != table.shape[-1]:
        raise refused("one weight for each option", given.shape[-1])
    weight = np.broadcast_to(given.astype(np.float64), table.shape)
    counts = (weight >= 2.0**-60) & (weight <= _LARGEST)
    if not (counts | (weight == 0)).all():
        raise refused("each weight is 0, or from 2^-60 to 2^62", "other weights")
    if not counts.any(axis=-1).all():
        raise refused("each row has an option with a weight", "a row without")
    return table, weight


def _gaps(table: NDArray[Any], weight: Float64) -> NDArray[Any]:
    """Return how far each score is below the best of its row that has any weight, <= 0; exact for integers."""
    best = np.where(weight > 0, table, table.dtype.type(-_LARGEST)).max(axis=-1, keepdims=True)
    return np.asarray(np.minimum(table, best) - best)


def _mass(table: NDArray[Any], weight: Float64, rate: float) -> Float64:
    """Return weight * exp(rate * gap), to a relative error below 2^-39, or below 2^-1000 of the weight."""
    with np.errstate(under="ignore"):
        mass = np.exp(rate * _gaps(table, weight).astype(np.float64))
        mass *= weight
    return np.asarray(mass)


def _settle(table: NDArray[Any], weight: Float64, rate: float, bits: BitSource) -> Int64:
    """Return the choices of a block of rows: in float64 where the margin allows, else in balls."""
    words = bits.words(len(table))
    sums = np.cumsum(_mass(table, weight, rate), axis=1)
    total = sums[:, -1:]
    wanted = np.ldexp(words.astype(np.float64), -64)[:, None] * total
    chosen = np.minimum((sums <= wanted).sum(axis=1), table.shape[1] - 1).astype(np.int64)
    borders = np.take_along_axis(sums, np.stack([np.maximum(chosen - 1, 0), chosen], axis=1), axis=1)
    near = np.abs(borders - wanted) <= (2.0**-36 + table.shape[1] * 2.0**-51) * total
    for row in np.flatnonzero(near.any(axis=1)).tolist():
        chosen[row] = _settle_one(table[row], weight[row], rate, int(words[row]), bits)
    return np.asarray(chosen)


def _settle_one(table: NDArray[Any], weight: Float64, rate: float, prefix: int, bits: BitSource) -> int:
    """Choose one option in ball arithmetic, reading on in the same uniform number for as long as it takes."""
    width = 64
    while width <= MOST_BITS:
        chosen = _cell(table, weight, rate, prefix, width)
        if chosen is not None:
            return chosen
        for fresh in bits.words(width // 64).tolist():
            prefix = prefix << 64 | fresh
        width *= 2
    raise NoiseError(
        "no number of random bits settles the choice",
        rule=f"at most {MOST_BITS} bits a choice",
        next_step="report this: it should never happen",
    )


def _cell(table: NDArray[Any], weight: Float64, rate: float, prefix: int, width: int) -> int | None:
    """Return the one option that every U in [prefix, prefix + 1] / 2^width chooses, or None."""
    with working(width + _GUARD) as flint:
        best = max(Fraction(u) for u, w in zip(table.tolist(), weight.tolist(), strict=True) if w > 0)
        step, sums, total = flint.arb(rate), [], flint.arb(0)
        for score, heavy in zip(table.tolist(), weight.tolist(), strict=True):
            if heavy > 0:
                total += heavy * (step * ball(flint, Fraction(score) - best)).exp()
            sums.append(total)
        wanted = total * flint.arb(2 * prefix + 1, 1) / (flint.arb(2) ** (width + 1))
        last = int(np.flatnonzero(weight)[-1])  # its border is the total, which U < 1 never reaches
        for place in np.flatnonzero(weight).tolist():
            if place == last or not sums[place] < wanted:
                return place if place == last or wanted < sums[place] else None
    return None
