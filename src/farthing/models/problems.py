"""The two problems: regularised ridge and logistic regression on points of the unit ball, solved without noise.

Both minimise F(theta) = (1/N) sum of the rows' losses + (lambda/2) |theta|^2 with a *public* N: one row more adds its
own loss over N and changes nothing else. What is found here is exact, and private: only `stops` and `vectors` read it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from farthing.errors import DataError

if TYPE_CHECKING:
    from farthing.models.rows import Float64

FLAT: Final = 1e-11
"""A minimiser is found when its gradient is shorter than this."""

_STEPS: Final = 200


class Problem(Protocol):
    """A strongly convex problem whose rows are points of the unit ball."""

    @property
    def rows(self) -> int:
        """The public number of rows N."""

    @property
    def regularisation(self) -> float:
        """The strong convexity lambda."""

    @property
    def curvature(self) -> float:
        """The most that N rows add to the trace of the second derivative."""

    @property
    def radius(self) -> float:
        """A length that the optimum does not pass if there are at most N rows."""

    @property
    def idle(self) -> float:
        """The most excess risk that the hypothesis 0 has if there are at most N rows."""

    def excess(self, theta: Float64) -> float:
        """Return F(theta) less the least F."""

    def minimiser(self) -> Float64:
        """Return where F is least within the ball of length `radius`."""

    def pull(self, length: float) -> float:
        """Return the longest gradient of one row's loss at a hypothesis of some length."""

    def moves(self, length: float, ceiling: float) -> float:
        """Return the most that one row moves min(sqrt(excess), ceiling) of a hypothesis of some length."""


@dataclass(frozen=True, slots=True)
class Ridge:
    """F = (1/N) sum (v - <theta, z>)^2 / 2 + (lambda/2) |theta|^2, with |z| <= 1 and |v| <= 1.

    Attributes:
        points: float64[rows, columns].
        responses: float64[rows].
        rows: the public number N.
        regularisation: lambda.
    """

    points: Float64
    responses: Float64
    rows: int
    regularisation: float
    _hessian: Float64 = field(init=False, repr=False)
    _best: Float64 = field(init=False, repr=False)

    def __post_init__(self) -> None:
        hessian = self.points.T @ self.points / self.rows + self.regularisation * np.eye(self.points.shape[1])
        object.__setattr__(self, "_hessian", hessian)
        object.__setattr__(self, "_best", np.linalg.solve(hessian, self.points.T @ self.responses / self.rows))

    @property
    def curvature(self) -> float:
        """The most that N rows add to the trace of the second derivative: |z|^2 <= 1."""
        return 1.0

    @property
    def radius(self) -> float:
        """A length that the optimum of at most N rows does not pass: lambda |theta*|^2 / 2 <= F(0) <= 1/2."""
        return 1 / math.sqrt(self.regularisation)

    @property
    def idle(self) -> float:
        """The most excess risk of the hypothesis 0: F(0), each row's loss there being v^2/2 <= 1/2."""
        return 0.5

    def excess(self, theta: Float64) -> float:
        """Return F(theta) less the least F: a quadratic form of the distance from the optimum."""
        away = theta - self._best
        return max(0.0, float(away @ self._hessian @ away) / 2)

    def minimiser(self) -> Float64:
        """Return where F is least within the ball of length `radius`, which matters only beyond N rows."""
        if float(np.linalg.norm(self._best)) <= self.radius:
            return self._best
        values, vectors = np.linalg.eigh(self._hessian)
        tilt = vectors.T @ (self.points.T @ self.responses) / self.rows
        return vectors @ _shortened(values, tilt, self.radius)

    def pull(self, length: float) -> float:
        """Return |v - <theta, z>| |z| <= 1 + |theta|."""
        return 1 + length

    def moves(self, length: float, ceiling: float) -> float:
        """Return (1 + |theta|)/(N sqrt(2 lambda)) + ceiling/(2 lambda N)."""
        slope = self.pull(length) / (self.rows * math.sqrt(2 * self.regularisation))
        return slope + ceiling / (2 * self.regularisation * self.rows)


def _shortened(values: Float64, tilt: Float64, radius: float) -> Float64:
    """Return tilt / (values + m) for the m >= 0 that makes it as long as the radius, from below, by bisection."""
    low, high = 0.0, float(np.linalg.norm(tilt)) / radius
    for _ in range(_STEPS):
        middle = (low + high) / 2
        long = float(np.linalg.norm(tilt / (values + middle))) > radius
        low, high = (middle, high) if long else (low, middle)
    shortened: Float64 = tilt / (values + high)
    return shortened


@dataclass(frozen=True, slots=True)
class Logistic:
    """F = (1/N) sum log(1 + exp(-s <theta, z>)) + (lambda/2) |theta|^2, with |z| <= 1 and signs s.

    Attributes:
        points: float64[rows, columns], each times the sign of its label.
        rows: the public number N.
        regularisation: lambda.
    """

    points: Float64
    rows: int
    regularisation: float
    _best: Float64 = field(init=False, repr=False)
    _least: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_best", self._newton())
        object.__setattr__(self, "_least", self._risk(self._best))

    @property
    def curvature(self) -> float:
        """The most that N rows add to the trace of the second derivative: p (1 - p) |z|^2 <= 1/4."""
        return 0.25

    @property
    def radius(self) -> float:
        """Not needed: gradients of this loss are no longer than 1 anywhere."""
        return math.inf

    @property
    def idle(self) -> float:
        """The most excess risk of the hypothesis 0: F(0), each row's loss there being log 2."""
        return math.log(2)

    def excess(self, theta: Float64) -> float:
        """Return F(theta) less the least F."""
        return max(0.0, self._risk(theta) - self._least)

    def minimiser(self) -> Float64:
        """Return where F is least."""
        return self._best

    def pull(self, length: float) -> float:
        """Return 1: the derivative of log(1 + exp(-m)) lies in (-1, 0)."""
        del length
        return 1.0

    def moves(self, length: float, ceiling: float) -> float:
        """Return 1/(N sqrt(2 lambda)), for every hypothesis."""
        del length, ceiling
        return 1 / (self.rows * math.sqrt(2 * self.regularisation))

    def _risk(self, theta: Float64) -> float:
        """Return F(theta)."""
        losses = float(np.logaddexp(0.0, -(self.points @ theta)).sum()) / self.rows
        return losses + self.regularisation / 2 * float(theta @ theta)

    def _newton(self) -> Float64:
        """Return the minimiser, by Newton steps that are halved until they descend."""
        from scipy.special import expit

        theta: Float64 = np.zeros(self.points.shape[1])
        risk = self._risk(theta)
        for _ in range(_STEPS):
            chance = expit(-(self.points @ theta))
            gradient = self.regularisation * theta - self.points.T @ chance / self.rows
            if float(np.linalg.norm(gradient)) <= FLAT:
                return theta
            weighted = self.points * (chance * (1 - chance) / self.rows)[:, None]
            hessian = self.points.T @ weighted + self.regularisation * np.eye(len(theta))
            theta, risk = self._descended(theta, np.linalg.solve(hessian, gradient), risk)
        raise DataError(
            "the minimiser could not be found to full precision",
            rule=f"a gradient shorter than {FLAT:g}",
            next_step="raise the regularisation",
        )

    def _descended(self, theta: Float64, step: Float64, risk: float) -> tuple[Float64, float]:
        """Return the hypothesis a Newton step on, or a half, a quarter ... of one, and its risk."""
        for _ in range(_STEPS):
            after = theta - step
            found = self._risk(after)
            if found <= risk + FLAT**1.25:  # near the optimum the risk is flat to its last digits
                return after, found
            step = step / 2
        return theta, risk
