"""Boosting for queries: many rough histograms, each made for the queries that those before it answered badly.

Each round draws queries, those more often that were answered badly so far, measures them, and makes a histogram that
answers them. The answer of a query is the median over all rounds. Queries of any kind are boosted alike: nothing but
their answers is asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidOption
from farthing.mechanisms.linear_queries import distances, steps_of, uniform
from farthing.mechanisms.multiplicative_weights import relearned
from farthing.mechanisms.noisy_answers import drawer, noisy_answers, shared
from farthing.mechanisms.projection import TOTAL_SHARE, noisy_total
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

EDGE: Final = 0.25
"""A histogram serves its round if the queries that it answers badly weigh at most 1/2 less so much."""

STEP: Final = 0.5 * math.log((1 + 2 * EDGE) / (1 - 2 * EDGE))
"""By how much the logarithm of a query's weight rises in a round in which it was answered badly, or falls."""

_MOST: Final = 1 << 52
_LIMIT: Final = 1 << 61


@dataclass(frozen=True, slots=True)
class BoostedQueries:
    """Boosting for queries: histograms that each serve most queries, of which the median serves all.

    Attributes:
        loss: what a release costs.
        error: a query is answered well by a histogram that is at most so many rows off, >= 0.
        rounds: how many histograms are made, >= 1; see `rounds_for`.
        drawn: how many queries are drawn and measured for each, >= 1.
        reach: the most rows that one unit adds.
        passes: how often what was measured is learned for a histogram.

    Guarantee: a release costs at most `loss`, shared among the total, the draws and the measurements.
    Proof: [DworkRV10]; docs/proofs/mechanisms.linear_queries.md, sections 2 and 6.
    Assumes: add/remove one unit adds or removes at most `reach` rows; queries do not depend on the data.
    Rounds: noise up, epsilon of the draws down.

    >>> from farthing.mechanisms.linear_queries import MatrixQueries
    >>> from farthing.privacy.loss import Gdp
    >>> queries = MatrixQueries([[1, 0], [1, 1]])
    >>> BoostedQueries(Gdp(50), error=10, rounds=5).run(np.array([900, 100]), queries).round(-2).tolist()
    [900.0, 1000.0]
    """

    loss: Booked
    error: float
    rounds: int = 40
    drawn: int = 16
    reach: int = 1
    passes: int = 10

    def __post_init__(self) -> None:
        for name in ("rounds", "drawn", "passes"):
            whole(getattr(self, name), name)
        if not (isinstance(self.error, (int, float)) and 0 <= self.error < math.inf):
            raise InvalidOption(
                "the error of a histogram is not a number of rows",
                rule="error= is a finite number >= 0",
                got=repr(self.error),
                next_step="error=100: a query is answered well within 100 rows",
            )

    @property
    def parts(self) -> tuple[Booked, Booked, Booked]:
        """What the total, each draw and each measurement cost."""
        many = 2 * self.rounds * self.drawn
        share = Fraction(TOTAL_SHARE - 1, many)
        first, draw, measurement, _ = shared(self.loss, 1, share, share, (many - 2) * share)
        return first, draw, measurement

    def margin(self, queries: LinearQueries) -> float:
        """Return how many rows beyond `error` a query has to be off until it counts as answered badly altogether.

        Guarantee: if in every round the queries that are more than `error` off weigh at most 1/4, and rounds are at
            least `rounds_for`, every answer is within `error` and this of the truth.
        Proof: [DworkRV10]; docs/proofs/mechanisms.linear_queries.md, section 6.
        Assumes: queries that are groups of their own, as those of a matrix.
        Rounds: up.
        """
        return self._margin(queries) * queries.step

    def run(self, counts: Sealed | Int64, queries: LinearQueries, *, bits: BitSource | None = None) -> Float64:
        """Return the median answers of all rounds, float64[queries].

        Args:
            counts: int64[cells], the histogram, plain or sealed.
            queries: what is asked.
            bits: where random bits come from.
        """
        first, draw, measurement = self.parts
        total, truth = noisy_total(counts, first, self.reach, bits), queries.exact(opened(sealed(counts)))
        drawing, moves = drawer(draw), self._moves(queries)
        badly, well = np.zeros(len(queries.groups), np.int64), self._steps(queries)
        found = []
        for _ in range(self.rounds):
            places = np.atleast_1d(drawing.choose(np.tile(badly, (self.drawn, 1)), moves * self.rounds, bits=bits))
            weights = self._made(truth, queries, total, (places, measurement), bits)
            found.append(queries.of(weights))
            apart = distances(truth, steps_of(found[-1], queries), queries)
            badly = badly + np.clip(apart - well, 0, self._margin(queries))
        return np.asarray(np.median(found, axis=0), np.float64)

    def _made(  # what a histogram is made of
        self,
        truth: Int64,
        queries: LinearQueries,
        total: float,
        drawn: tuple[Int64, Booked],
        bits: BitSource | None,
    ) -> Float64:
        """Return a histogram that answers the queries that were drawn, each measured at a loss."""
        learned = []
        for at in drawn[0].tolist():
            group = queries.groups[at]
            noisy = noisy_answers(
                truth[group],
                drawn[1],
                squares=queries.squares(group) * self.reach**2,
                total=queries.total(group) * self.reach,
                bits=bits,
            )
            learned.append((at, noisy * queries.step))
        return relearned(uniform(queries.cells, total), learned, queries, total, self.passes)

    def _moves(self, queries: LinearQueries) -> int:
        """Return the most that one unit moves the distance of a query, in steps."""
        return max(queries.total(group) for group in queries.groups) * self.reach

    def _steps(self, queries: LinearQueries) -> int:
        """Return the error in steps."""
        return int(min(self.error / queries.step, float(_LIMIT)))

    def _margin(self, queries: LinearQueries) -> int:
        """Return the margin in steps: so that a round moves the logarithm of a weight by 2 `STEP` at most."""
        rate = float(drawer(self.parts[1]).rate(self._moves(queries) * self.rounds))
        return min(math.ceil(2 * STEP / rate), _MOST)


def rounds_for(queries: int) -> int:
    """Return after how many rounds no query is left that most histograms answer badly.

    >>> rounds_for(512)
    44
    """
    return math.floor(2 * math.log(queries) / -math.log(1 - 4 * EDGE**2)) + 1
