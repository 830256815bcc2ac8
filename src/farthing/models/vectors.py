"""What is released: an integer vector on a public grid, and how a hypothesis is read from its noisy values.

Two ways to a model. *Statistics*: the sums of z z' and z v, from which ridge regression follows. *Output*: the
minimiser itself, which moves little with one row because the problem is strongly convex.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from farthing.models.problems import Problem, Ridge
    from farthing.models.rows import Float64, Norm

Int64 = np.typing.NDArray[np.int64]

SUM_BITS: Final = 26
"""Products of a row are rounded to multiples of 2^-26 before they are summed, in integers."""

MOVE_BITS: Final = 20
"""A minimiser is rounded to a grid of which one row moves it by at most about 2^20 steps."""

_CHUNK: Final = 1 << 16


class Vector(Protocol):
    """An integer vector, what one row moves it by, and how it is read."""

    @property
    def truth(self) -> Int64:
        """The exact vector, in steps; private."""

    @property
    def step_log2(self) -> int:
        """A step is 2^step_log2."""

    def sensitivity(self, norm: Norm) -> int:
        """Return the most steps that one row moves the vector, in a norm."""

    def hypothesis(self, values: Float64) -> Float64:
        """Return the hypothesis that noisy values tell; it reads nothing else."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """The upper triangle of the sum of z z', then the sum of z v, each product rounded to the grid.

    Attributes:
        truth: int64[d (d+1)/2 + d], in steps of 2^-26.
        columns: d.
        rows: the public number N.
        regularisation: lambda.
        norm: the norm in which rows are at most 1.

    Guarantee: one row moves the vector by at most `sensitivity(norm)` steps.
    Proof: docs/proofs/models.regressions.md, "Statistics".
    Assumes: rows clamped to the unit ball of the norm, responses to [-1, 1]; add/remove one row.
    Rounds: each product to the nearest step, which the sensitivity counts; sums are exact.
    """

    truth: Int64 = field(repr=False)
    columns: int
    rows: int
    regularisation: float
    norm: Norm
    step_log2: int = -SUM_BITS

    @classmethod
    def of(cls, problem: Ridge, norm: Norm) -> Statistics:
        """Return the statistics of a problem's rows."""
        columns = problem.points.shape[1]
        first, _ = np.triu_indices(columns)
        total = np.zeros(len(first) + columns, np.int64)
        for start in range(0, len(problem.points), _CHUNK):
            points = problem.points[start : start + _CHUNK]
            responses = problem.responses[start : start + _CHUNK]
            for i in range(columns):
                at = int(np.searchsorted(first, i))
                products = points[:, i:] * points[:, i, None]
                total[at : at + columns - i] += np.rint(np.ldexp(products, SUM_BITS)).astype(np.int64).sum(axis=0)
            crossed = points * responses[:, None]
            total[len(first) :] += np.rint(np.ldexp(crossed, SUM_BITS)).astype(np.int64).sum(axis=0)
        return cls(total, columns, problem.rows, problem.regularisation, norm)

    def sensitivity(self, norm: Norm) -> int:
        """Return ceil(D 2^26 + what rounding adds): D = sqrt(2) in l2; in l1 2 for l1 rows, (d+1)/2 + sqrt(d) else."""
        entries = len(self.truth)
        if norm == "l2":
            return math.ceil(math.sqrt(2) * (1 << SUM_BITS) + math.sqrt(entries) / 2)
        spread = 2.0 if self.norm == "l1" else (self.columns + 1) / 2 + math.sqrt(self.columns)
        return math.ceil(spread * (1 << SUM_BITS) + entries / 2)

    def noisy(self, values: Float64) -> tuple[Float64, Float64]:
        """Return the noisy second derivative of F, and the noisy mean of z v."""
        columns = self.columns
        upper: Float64 = np.zeros((columns, columns))
        upper[np.triu_indices(columns)] = values[:-columns] / self.rows
        whole = upper + np.triu(upper, 1).T + self.regularisation * np.eye(columns)
        return whole, values[-columns:] / self.rows

    def hypothesis(self, values: Float64) -> Float64:
        """Return the solution of the noisy equations, with eigenvalues kept above half the regularisation."""
        hessian, tilt = self.noisy(values)
        found, vectors = np.linalg.eigh(hessian)
        theta: Float64 = vectors @ ((vectors.T @ tilt) / np.maximum(found, self.regularisation / 2))
        return theta


@dataclass(frozen=True, slots=True)
class Output:
    """The minimiser, rounded to the grid coordinate by coordinate.

    Attributes:
        truth: int64[d], in steps of 2^step_log2.
        moves: the most that one row moves the minimiser, in l2.
        step_log2: the exponent of the grid, from the public `moves`.

    Guarantee: one row moves the vector by at most `sensitivity(norm)` steps.
    Proof: docs/proofs/models.regressions.md, "Output"; after [ChaudhuriMS11].
    Assumes: rows clamped to the unit ball of l2 (l1 lies within), responses to [-1, 1]; add/remove one row; a gradient
        of at most `flat` where the solver stopped.
    Rounds: to the nearest step; rounding and the solver's error are counted.
    """

    truth: Int64 = field(repr=False)
    moves: float
    step_log2: int

    @classmethod
    def of(cls, problem: Problem) -> Output:
        """Return the minimiser of a problem: it moves by at most the longest pull over N lambda."""
        theta = problem.minimiser()
        moves = (problem.pull(problem.radius) / problem.rows + 2 * problem.flat) / problem.regularisation
        step_log2 = math.frexp(moves)[1] - MOVE_BITS
        return cls(np.rint(np.ldexp(theta, -step_log2)).astype(np.int64), moves, step_log2)

    def sensitivity(self, norm: Norm) -> int:
        """Return ceil(moves in steps + sqrt(d)) in l2, and sqrt(d) times that in l1."""
        root = math.sqrt(len(self.truth))
        steps: float = math.ldexp(self.moves, -self.step_log2) * (1 + 2.0**-30) + root
        return math.ceil(steps if norm == "l2" else steps * root)

    def hypothesis(self, values: Float64) -> Float64:
        """Return the noisy minimiser itself."""
        return values
