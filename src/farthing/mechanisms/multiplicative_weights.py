"""Multiplicative weights: MWEM, which measures the queries that its histogram answers worst, and the update it shares.

A histogram starts even. Each round a private choice names a group of queries that it answers badly, noise tells their
answers, and the histogram is reweighed towards them. What it costs depends on the number of rounds alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.linear_queries import distances, steps_of, uniform
from farthing.mechanisms.noisy_answers import chooser, noisy_answers, shared
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
        passes: how often all that was measured is learned again, each round.

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

    def __post_init__(self) -> None:
        whole(self.rounds, "rounds")
        whole(self.passes, "passes")

    @property
    def parts(self) -> tuple[Booked, Booked, Booked]:
        """What the total, each choice and each measurement cost."""
        share = Fraction(TOTAL_SHARE - 1, 2 * self.rounds)
        first, choice, measurement, _ = shared(self.loss, 1, share, share, (2 * self.rounds - 2) * share)
        return first, choice, measurement

    def run(
        self, counts: Sealed | Int64, queries: LinearQueries, *, bits: BitSource | None = None
    ) -> HistogramEstimate:
        """Return the histogram after all rounds, and what was chosen.

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
        learned: list[tuple[int, Float64]] = []
        for _ in range(self.rounds):
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
        return HistogramEstimate(weights, total, chosen=tuple(at for at, _ in learned))


def relearned(
    weights: Float64, learned: list[tuple[int, Float64]], queries: LinearQueries, total: float, passes: int
) -> Float64:
    """Return a histogram after learning what was measured, the newest first, so many times; released numbers alone."""
    for _ in range(passes):
        for at, measured in reversed(learned):
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
