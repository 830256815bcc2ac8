"""Multiplicative weights: MWEM, which measures the queries that its histogram answers worst, and the update it shares.

A histogram starts even. Each round a private choice names a group of queries that it answers badly, noise tells their
answers, and the histogram is reweighed towards them. What it costs depends on the number of rounds alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidOption
from farthing.mechanisms.linear_queries import distances, steps_of, uniform
from farthing.mechanisms.noisy_answers import chooser, deviation, noisy_answers, shared
from farthing.mechanisms.projection import TOTAL_SHARE, HistogramEstimate, noisy_total
from farthing.mechanisms.scores import whole
from farthing.sealed import opened, sealed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.mechanisms.linear_queries import LinearQueries
    from farthing.noise.bits import BitSource
    from farthing.privacy.loss import Booked
    from farthing.sealed import Sealed

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

_MOST_TILT: Final = 30.0


@dataclass(frozen=True, slots=True)
class Mwem:
    """Multiplicative weights with the exponential mechanism: choose the worst group of queries, measure it, reweigh.

    Attributes:
        loss: what a release costs.
        rounds: how many groups are chosen, measured and learned, >= 1.
        reach: the most rows that one unit adds.
        passes: how often all that was measured is learned again, each round; 0 to learn the newest alone, once.
        averaged: whether the mean of the histograms before each round is returned, in place of the last one: it is
            further off on most data, and has a theorem.

    Guarantee: a release costs at most `loss`, shared among the total, the choices and the measurements.
    Proof: [HardtLM12]; docs/proofs/mechanisms.linear_queries.md, sections 2 and 4.
    Assumes: add/remove one unit adds or removes at most `reach` rows; queries do not depend on the data.
    Rounds: noise up, epsilon of the choices down.

    >>> from farthing.mechanisms.linear_queries import MatrixQueries
    >>> from farthing.privacy.loss import Gdp
    >>> found = Mwem(Gdp(5), rounds=3).run(np.array([900, 100]), MatrixQueries([[1, 0], [1, 1]]))
    >>> bool(found.weights[0] > found.weights[1]), len(found.chosen)
    (True, 3)
    """

    loss: Booked
    rounds: int = 10
    reach: int = 1
    passes: int = 10
    averaged: bool = False

    def __post_init__(self) -> None:
        whole(self.rounds, "rounds")
        whole(self.passes, "passes", least=0)

    @property
    def parts(self) -> tuple[Booked, Booked, Booked]:
        """What the total, each choice and each measurement cost."""
        share = Fraction(TOTAL_SHARE - 1, 2 * self.rounds)
        first, choice, measurement, _ = shared(self.loss, 1, share, share, (2 * self.rounds - 2) * share)
        return first, choice, measurement

    def run(
        self, counts: Sealed | Int64, queries: LinearQueries, *, bits: BitSource | None = None
    ) -> HistogramEstimate:
        """Return the histogram after all rounds, or the mean of those before them, and what was chosen.

        Args:
            counts: int64[cells], the histogram, plain or sealed.
            queries: what is asked.
            bits: where random bits come from.
        """
        first, choice, measurement = self.parts
        total = noisy_total(counts, first, self.reach, bits)
        truth, groups = queries.exact(opened(sealed(counts))), queries.groups
        moves = max(queries.total(group) for group in groups) * self.reach
        choosing, weights = chooser(choice), uniform(queries.cells, total)
        before = np.zeros_like(weights)
        learned: list[tuple[int, Float64]] = []
        for _ in range(self.rounds):
            before += weights / self.rounds
            scores = distances(truth, steps_of(queries.of(weights), queries), queries)
            at = int(choosing.choose(scores, moves, bits=bits))
            group = groups[at]
            noisy = noisy_answers(
                truth[group],
                measurement,
                squares=queries.squares(group) * self.reach**2,
                total=queries.total(group) * self.reach,
                bits=bits,
            )
            learned.append((at, noisy * queries.step))
            weights = relearned(weights, learned, queries, total, self.passes)
        found = before if self.averaged else weights
        return HistogramEstimate(found, total, chosen=tuple(at for at, _ in learned))

    def error(self, queries: LinearQueries, rows: float) -> float:
        """Return a bound of the largest error of a query, in rows, expected over the noise, whatever the data are.

        Proof: docs/proofs/mechanisms.linear_queries.md, section 4.
        Assumes: `averaged`; queries that are chosen one by one, of weights in [-1, 1], as `MatrixQueries`; one row or
            more.
        Rounds: to the nearest.

        Args:
            queries: what is asked.
            rows: how many rows there are.

        Raises:
            InvalidOption: of the last histogram, or of queries that are chosen in groups, no bound is known to us.

        >>> from farthing.mechanisms.linear_queries import MatrixQueries
        >>> from farthing.privacy.loss import Pure
        >>> rule = Mwem(Pure(1), rounds=30, passes=0, averaged=True)
        >>> bool(rule.error(MatrixQueries([[1, 0, 0]]), 100_000) < 50_000)
        True
        """
        first, choice, measurement = self.parts
        groups = queries.groups
        if not self.averaged or any(group.stop - group.start > 1 for group in groups):
            raise InvalidOption(
                "no bound on the error is known",
                rule="averaged=True, and queries that are chosen one by one",
                got=f"averaged={self.averaged}, {len(groups)} groups of {groups[-1].stop} queries",
                next_step="Mwem(loss, averaged=True) on MatrixQueries",
            )
        squares = [queries.squares(group) * self.reach**2 for group in groups]
        totals = [queries.total(group) * self.reach for group in groups]
        pairs = zip(squares, totals, strict=True)
        noise = max(deviation(measurement, squares=square, total=total) for square, total in pairs) * queries.step
        off = deviation(first, squares=self.reach**2, total=self.reach)
        again = 0 if not self.passes else self.passes * (self.rounds + 1) / 2 - 1
        learned = 4 * (rows + off) ** 2 * math.log(queries.cells) / self.rounds
        chosen = 2 * max(totals) * queries.step * math.log(len(groups)) / float(chooser(choice).epsilon)
        return math.sqrt(learned + (noise**2 + off**2) * (1 + 2 * again / 3)) + chosen + off + 2 * queries.step


def relearned(
    weights: Float64, learned: list[tuple[int, Float64]], queries: LinearQueries, total: float, passes: int
) -> Float64:
    """Return a histogram after learning what was measured, the newest first, so many times, or for 0 the newest alone;
    released numbers alone.
    """
    for _ in range(max(passes, 1)):
        for at, measured in reversed(learned if passes else learned[-1:]):
            missing = (measured - queries.part(at, weights)) / (2 * total)
            weights = reweighed(weights, queries.back_part(at, missing), total)
    return weights


def reweighed(weights: Float64, tilt: Float64, total: float) -> Float64:
    """Return weights times exp(tilt), scaled to the total.

    >>> reweighed(np.array([1.0, 1.0]), np.array([0.0, 0.0]), 10.0).tolist()
    [5.0, 5.0]
    """
    tilt = np.clip(tilt, -_MOST_TILT, _MOST_TILT)
    with np.errstate(under="ignore"):
        found = weights * np.exp(tilt - tilt.max())
    return np.asarray(np.maximum(found * (total / max(float(found.sum()), 1e-300)), 1e-300))
