"""The two problems: regularised ridge and logistic regression on points of the unit ball, solved without noise.

Both minimise F(theta) = (1/N) sum of the rows' losses + (lambda/2) |theta|^2 with a *public* N: one row more adds its
own loss over N and changes nothing else, up to N rows. Beyond, every row weighs a little less (`rows.weight`), so that
float64 always resolves the minimum: neither solver can fail, whatever the rows are. What is found here is exact, and
private: only `stops` and `vectors` read it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from farthing.models.rows import TAPER, weight

if TYPE_CHECKING:
    from farthing.models.rows import Float64

FLAT: Final = 1e-11
"""A minimiser is found when its gradient is shorter than this."""

_STEPS: Final = 200
_HALVINGS: Final = 50


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

    @property
    def flat(self) -> float:
        """The longest gradient at what the solver finds."""

    def pull(self, length: float) -> float:
        """Return the longest gradient, times N, by which one row more changes F's at a hypothesis of some length."""

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

    points: Float64 = field(repr=False)
    responses: Float64 = field(repr=False)
    rows: int
    regularisation: float
    _hessian: Float64 = field(init=False, repr=False)
    _tilt: Float64 = field(init=False, repr=False)
    _best: Float64 = field(init=False, repr=False)

    def __post_init__(self) -> None:
        each = weight(len(self.points), self.rows)
        hessian = self.points.T @ self.points * each + self.regularisation * np.eye(self.points.shape[1])
        tilt = self.points.T @ self.responses * each
        object.__setattr__(self, "_hessian", hessian)
        object.__setattr__(self, "_tilt", tilt)
        object.__setattr__(self, "_best", np.linalg.solve(hessian, tilt))

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
        return vectors @ _shortened(values, vectors.T @ self._tilt, self.radius)

    @property
    def flat(self) -> float:
        """The longest gradient at what the solver finds: linear equations, to a few last places of their terms."""
        return FLAT * (1 + self.radius)

    def pull(self, length: float) -> float:
        """Return |v - <theta, z>| |z| <= 1 + |theta|, and what other rows' weights change by."""
        return (1 + length) * (1 + TAPER)

    def moves(self, length: float, ceiling: float) -> float:
        """Return (1 + |theta|)/(N sqrt(2 lambda)) + ceiling/(2 lambda N), and what other rows' weights change by."""
        slope = self.pull(length) / (self.rows * math.sqrt(2 * self.regularisation))
        return slope + (1 + TAPER) * ceiling / (2 * self.regularisation * self.rows)


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

    points: Float64 = field(repr=False)
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

    @property
    def flat(self) -> float:
        """The longest gradient at what the solver finds."""
        return FLAT

    def pull(self, length: float) -> float:
        """Return 1: the derivative of log(1 + exp(-m)) lies in (-1, 0); and what other rows' weights change by."""
        del length
        return 1 + TAPER

    def moves(self, length: float, ceiling: float) -> float:
        """Return 1/(N sqrt(2 lambda)), for every hypothesis, and what other rows' weights change by."""
        del length, ceiling
        return (1 + TAPER) / (self.rows * math.sqrt(2 * self.regularisation))

    @property
    def _weight(self) -> float:
        """What each row weighs."""
        return weight(len(self.points), self.rows)

    def _risk(self, theta: Float64) -> float:
        """Return F(theta)."""
        losses = float(np.logaddexp(0.0, -(self.points @ theta)).sum()) * self._weight
        return losses + self.regularisation / 2 * float(theta @ theta)

    def _gradient(self, theta: Float64, columns: Float64) -> Float64:
        """Return the gradient of F; sums of contiguous columns are pairwise, so that their last digits hold."""
        from scipy.special import expit

        chance = expit(-(self.points @ theta)) * self._weight
        pulled: Float64 = np.array([(column * chance).sum() for column in columns])
        return self.regularisation * theta - pulled

    def _newton(self) -> Float64:
        """Return the minimiser, by at most so many Newton steps, each halved until the gradient gets shorter.

        Nothing is raised, however far it got: that would depend on rows.
        """
        from scipy.special import expit

        columns = np.ascontiguousarray(self.points.T)
        theta: Float64 = np.zeros(self.points.shape[1])
        slope = self._gradient(theta, columns)
        for _ in range(_STEPS):
            if float(np.linalg.norm(slope)) <= FLAT / 2:
                break
            chance = expit(-(self.points @ theta))
            weighted = self.points * (chance * (1 - chance) * self._weight)[:, None]
            hessian = self.points.T @ weighted + self.regularisation * np.eye(len(theta))
            theta, slope = self._descended(theta, np.linalg.solve(hessian, slope), slope, columns)
        return theta

    def _descended(self, theta: Float64, step: Float64, slope: Float64, columns: Float64) -> tuple[Float64, Float64]:
        """Return the hypothesis a Newton step on, or a half, a quarter ... of one, and its gradient, if it is shorter.

        The gradient tells it better than the risk, which is flat to its last digits near the optimum.
        """
        for _ in range(_HALVINGS):
            after = theta - step
            found = self._gradient(after, columns)
            if float(np.linalg.norm(found)) < float(np.linalg.norm(slope)):
                return after, found
            step = step / 2
        return theta, slope
