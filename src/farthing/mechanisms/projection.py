"""The projection mechanism: noisy answers of all queries, then the histogram that comes closest to them.

The noise has far more directions than a histogram of few rows: projecting onto what some histogram of that many rows
could have answered takes most of it off, whatever the data are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.mechanisms.linear_queries import held
from farthing.mechanisms.noisy_answers import deviation, noisy_answers, shared
from farthing.mechanisms.scores import whole
from farthing.privacy.loss import Pure
from farthing.sealed import opened, sealed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.mechanisms.linear_queries import LinearQueries
    from farthing.noise.bits import BitSource
    from farthing.privacy.loss import Booked
    from farthing.sealed import Sealed

    Float64 = NDArray[np.float64]
    Int64 = NDArray[np.int64]

TOTAL_SHARE: Final = 16
"""One part in so many of a loss tells how many rows there are."""


@dataclass(frozen=True, slots=True, eq=False)
class HistogramEstimate:
    """A histogram that was made of released numbers: public.

    Attributes:
        weights: float64[cells], >= 0.
        total: how many rows there are, as it was measured.
        measured: float64[queries], the noisy answers it was made of, where there are any of all queries.
        chosen: which groups of queries were measured, in order, where they were chosen.
    """

    weights: Float64
    total: float
    measured: Float64 | None = None
    chosen: tuple[int, ...] = ()


def noisy_total(counts: Sealed | Int64, loss: Booked, reach: int, bits: BitSource | None) -> float:
    """Return how many rows there are, with noise, at least 1.

    Guarantee: it costs at most `loss`.
    Proof: docs/proofs/mechanisms.linear_queries.md, section 2.
    Assumes: one unit adds at most `reach` rows.
    Rounds: noise up.

    >>> from farthing.privacy.loss import Gdp
    >>> noisy_total(np.array([5, 5]), Gdp(1), 1, None) >= 1
    True
    """
    rows = np.minimum(np.asarray(opened(sealed(counts)), np.int64).reshape(-1), 1 << 40).sum(keepdims=True)
    return max(1.0, float(noisy_answers(rows, loss, squares=reach**2, total=reach, bits=bits)[0]))


@dataclass(frozen=True, slots=True)
class IndependentNoise:
    """Add independent noise to the answer of every query: Gaussian, or geometric (rounded Laplace) if the loss is pure.

    Attributes:
        loss: what a release costs.
        reach: the most rows that one unit adds.

    Guarantee: a release costs at most `loss`.
    Proof: [DworkMNS06; DongRS22]; docs/proofs/mechanisms.linear_queries.md, section 2.
    Assumes: add/remove one unit adds or removes at most `reach` rows; queries do not depend on the data.
    Rounds: noise up.

    >>> from farthing.mechanisms.linear_queries import MatrixQueries
    >>> from farthing.privacy.loss import Gdp
    >>> IndependentNoise(Gdp(1)).run(np.array([90, 10]), MatrixQueries([[1, 0], [1, 1]])).shape
    (2,)
    """

    loss: Booked
    reach: int = 1

    def run(self, counts: Sealed | Int64, queries: LinearQueries, *, bits: BitSource | None = None) -> Float64:
        """Return the noisy answers, float64[queries].

        Args:
            counts: int64[cells], the histogram, plain or sealed.
            queries: what is asked.
            bits: where random bits come from.
        """
        found = noisy_answers(
            queries.exact(opened(sealed(counts))),
            self.loss,
            squares=queries.squares() * self.reach**2,
            total=queries.total() * self.reach,
            bits=bits,
        )
        return found * queries.step

    def deviation(self, queries: LinearQueries) -> float:
        """Return the standard deviation of each answer."""
        squares, total = queries.squares() * self.reach**2, queries.total() * self.reach
        return deviation(self.loss, squares=squares, total=total) * queries.step


@dataclass(frozen=True, slots=True)
class CellNoise:
    """Answer every query from the histogram with independent noise in every cell: its size does not depend on queries.

    Attributes:
        loss: what a release costs.
        reach: the most rows that one unit adds.

    Guarantee: a release costs at most `loss`.
    Proof: [DworkMNS06; DongRS22]; docs/proofs/mechanisms.linear_queries.md, section 2.
    Assumes: as `IndependentNoise`.
    Rounds: noise up.

    >>> from farthing.mechanisms.linear_queries import MatrixQueries
    >>> from farthing.privacy.loss import Pure
    >>> CellNoise(Pure(1)).run(np.array([90, 10]), MatrixQueries([[1, 0], [1, 1], [0, 1]])).shape
    (3,)
    """

    loss: Booked
    reach: int = 1

    def run(self, counts: Sealed | Int64, queries: LinearQueries, *, bits: BitSource | None = None) -> Float64:
        """Return the noisy answers, float64[queries]; arguments as of `IndependentNoise.run`."""
        cells = held(opened(sealed(counts)), queries.cells)
        noisy = noisy_answers(cells, self.loss, squares=self.reach**2, total=self.reach, bits=bits)
        return queries.of(noisy)

    def deviation(self, queries: LinearQueries) -> float:
        """Return the root mean square of the answers' standard deviations."""
        return deviation(self.loss, squares=self.reach**2, total=self.reach) * math.sqrt(queries.energy)


@dataclass(frozen=True, slots=True)
class Projection:
    """Noisy answers of all queries, projected onto those of all histograms of as many rows, by Frank-Wolfe.

    Attributes:
        loss: what a release costs.
        reach: the most rows that one unit adds.
        rounds: steps of pairwise Frank-Wolfe: their number is fixed, whatever they reach.

    Guarantee: a release costs at most `loss`, whatever the projection does.
    Proof: [NikolovTZ13]; docs/proofs/mechanisms.linear_queries.md, sections 2 and 3; projecting reads released numbers.
    Assumes: as `IndependentNoise`.
    Rounds: noise up.

    >>> from farthing.mechanisms.linear_queries import MatrixQueries
    >>> from farthing.privacy.loss import Gdp
    >>> found = Projection(Gdp(1)).run(np.array([90, 10]), MatrixQueries([[1, 0], [1, 1]]))
    >>> bool(found.weights.min() >= 0)
    True
    """

    loss: Booked
    reach: int = 1
    rounds: int = 200

    def __post_init__(self) -> None:
        whole(self.rounds, "rounds")

    def run(
        self, counts: Sealed | Int64, queries: LinearQueries, *, bits: BitSource | None = None
    ) -> HistogramEstimate:
        """Return the projected histogram, with the noisy answers; arguments as of `IndependentNoise.run`."""
        total = noisy_total(counts, shared(self.loss, 1, TOTAL_SHARE - 1)[0], self.reach, bits)
        noise = self._ways(queries, queries.groups[-1].stop, total)[0][1]
        measured = noise.run(counts, queries, bits=bits)
        return HistogramEstimate(closest(measured, queries, total, self.rounds), total, measured)

    def error(self, queries: LinearQueries, many: int, rows: float) -> float:
        """Return a bound of the root mean squared error of a query, in rows, expected over the noise.

        It is the least of what the noise has, and of what the projection leaves of it after infinitely many rounds;
        under a pure loss of noise on answers and of noise in cells, whichever is less. `run` takes that way, too.

        Args:
            queries: what is asked.
            many: how many queries there are.
            rows: how many rows there are.

        Rounds: leaves out what the total's own noise adds, at most its deviation; `run` chooses at that total.
        """
        return self._ways(queries, many, rows)[0][0]

    def _ways(self, queries: LinearQueries, many: int, rows: float) -> list[tuple[float, IndependentNoise | CellNoise]]:
        """Return the ways to put noise, with a bound of the error each, the least first: public numbers."""
        rest, log = shared(self.loss, 1, TOTAL_SHARE - 1)[1], math.log(2 * queries.cells)
        squares = queries.squares() * queries.step**2
        alone, cells = IndependentNoise(rest, self.reach), CellNoise(rest, self.reach)
        sigma = alone.deviation(queries)
        if not isinstance(self.loss, Pure):
            return [(_left(sigma, sigma * math.sqrt(2 * log * squares), many, rows), alone)]
        scale = self.reach / float(rest.amount)
        root = math.sqrt(min(log / max(squares, 1e-12), 1.0) / 2)
        answers = scale * queries.total() * queries.step * (log / root + 2 * root * squares)
        within = 2 * math.sqrt(2 * queries.cells * log) * scale * squares
        ways: list[tuple[float, IndependentNoise | CellNoise]] = [
            (_left(sigma, answers, many, rows), alone),
            (_left(cells.deviation(queries), within, many, rows), cells),
        ]
        return sorted(ways, key=lambda way: way[0])


def _left(noise: float, reach: float, many: int, rows: float) -> float:
    """Return a bound of the root mean squared error of a query after projecting, in rows.

    Args:
        noise: the root mean square of the noise.
        reach: a bound of the mean of the most that the noise has in common with the answers of one row.
        many: how many queries there are.
        rows: how many rows there are.
    """
    return min(noise, math.sqrt(4 * rows * reach / many))


def closest(measured: Float64, queries: LinearQueries, total: float, rounds: int) -> Float64:
    """Return the histogram of so many rows whose answers come closest to those measured, by pairwise Frank-Wolfe.

    Mass moves from the worst cell that has any to the best cell, as far as is best on that line. A fixed number of
    rounds, from released numbers alone.

    >>> from farthing.mechanisms.linear_queries import MatrixQueries
    >>> closest(np.array([3.0, 10.0]), MatrixQueries([[1, 0], [1, 1]]), 10.0, 50).round(6).tolist()
    [3.0, 7.0]
    """
    weights = np.zeros(queries.cells)
    weights[int(np.argmax(queries.back(measured)))] = total
    answers = queries.of(weights)
    for _ in range(rounds):
        slope = queries.back(answers - measured)
        best = int(np.argmin(slope))
        worst = int(np.argmax(np.where(weights > 0, slope, -np.inf)))
        move = np.zeros(queries.cells)
        move[best] += 1.0
        move[worst] -= 1.0
        change = queries.of(move)
        curve = float(change @ change)
        if curve <= 0.0:
            break
        step = min(max(float(change @ (measured - answers)) / curve, 0.0), float(weights[worst]))
        weights, answers = np.maximum(weights + step * move, 0.0), answers + step * change
    return weights
