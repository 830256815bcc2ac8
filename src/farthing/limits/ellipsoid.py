"""The mean of points in an ellipsoid: the least unbiased error, and the noise that comes near it.

K = U B is the image of the unit ball, each of n records is a point of K, and the answer is their mean. Neighbours
replace one record, so that the mean moves by a difference of two points over n.
docs/proofs/limits.unbiased.md, section 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.errors import InvalidBudget
from farthing.limits import checks
from farthing.limits.checks import SHAVE
from farthing.limits.divergence import chi_square
from farthing.privacy.loss import Approx, Gdp, Pure, Zcdp
from farthing.rounding import down

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from farthing.privacy.base import Loss

    Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ShapedNoise:
    """Noise U Z: a mechanism for the mean of points, with its error beside the least.

    Attributes:
        name: the law of Z.
        loss: what the mechanism costs.
        covariance: float64[d, d], of the answer.
        error: the root of the mean squared Euclidean distance from the truth.
        least: the least error of any unbiased mechanism of that loss.
    """

    name: str
    loss: Loss
    covariance: Float64
    error: float
    least: float

    @property
    def ratio(self) -> float:
        """The error over the least."""
        return self.error / self.least if self.least > 0 else math.inf

    def __str__(self) -> str:
        return (
            f"{self.name} noise shaped by U has error {self.error:.6g} at {self.loss!r}; the least error of any "
            f"unbiased mechanism is {self.least:.6g}; this is {self.ratio:.4g} times that"
        )


@dataclass(frozen=True, slots=True, eq=False)
class MeanPoint:
    """The problem: the mean of n points of the ellipsoid K = U B.

    Attributes:
        U: float64[d, k], any finite matrix, of any rank above 0.
        records: n >= 1, public.

    >>> from farthing.privacy.loss import Zcdp
    >>> problem = MeanPoint([[2, 0], [0, 1]], records=100)
    >>> print(problem.gaussian(Zcdp(0.02)))
    Gaussian noise shaped by U has error 0.223607 at Zcdp(rho=0.02);
    the least error of any unbiased mechanism is 0.110687; this is 2.02 times that
    """

    U: Float64
    records: int

    def __init__(self, U: ArrayLike, records: int) -> None:
        object.__setattr__(self, "U", checks.matrix(U, "U"))
        object.__setattr__(self, "records", checks.whole(records, "records"))

    @property
    def size(self) -> float:
        """The square root of tr U'U: the least sqrt(tr V) of an ellipsoid V^(1/2) B that holds K."""
        return math.sqrt(math.fsum((self.U**2).ravel().tolist()))

    @property
    def rank(self) -> int:
        """The dimension of K: noise is only needed along these directions."""
        return int(np.linalg.matrix_rank(self.U))

    def least_error(self, loss: Loss) -> float:
        """Return the least root mean squared error of any unbiased mechanism: size/(n chi).

        Guarantee: no unbiased mechanism of that loss has a smaller error, on any data.
        Proof: docs/proofs/limits.unbiased.md, section 7.
        Assumes: unbiased on all data; neighbours replace one record; the loss is not Approx.
        Rounds: down.

        >>> f"{MeanPoint([[1]], records=1).least_error(Zcdp(0.5)):.4f}"
        '0.7629'
        """
        if isinstance(loss, Approx):
            raise InvalidBudget(
                "no bound for the mean of points is known here under (epsilon, delta)",
                rule="the loss is Zcdp, Gdp, Pure or BoundedRange",
                got=repr(loss),
                next_step="unbiased_error bounds workloads over histograms under Approx",
            )
        return self.size / self.records / math.sqrt(chi_square(loss)) * SHAVE

    def gaussian(self, loss: Zcdp | Gdp) -> ShapedNoise:
        """Return Gaussian noise: covariance (2/n)^2/(2 rho) U U', within 2 sqrt((e^(2 rho) - 1)/(2 rho)) of the least.

        Guarantee: the mean plus this noise costs the loss, for replace-one neighbours.
        Proof: docs/proofs/limits.unbiased.md, section 7.
        Assumes: exact arithmetic: this states errors, `farthing.mechanisms` draws noise.
        Rounds: nothing of the loss; the error is a float64.
        """
        self._kind(loss, Zcdp, Gdp)
        return self._shaped("Gaussian", loss, 1 / (down(loss.amount) * (2 if isinstance(loss, Zcdp) else 1)))

    def laplace(self, loss: Pure) -> ShapedNoise:
        """Return Laplace noise in each of the r directions of K: covariance (2/n)^2 2 r/epsilon^2 U U'.

        Guarantee: the mean plus this noise costs the loss, for replace-one neighbours.
        Proof: docs/proofs/limits.unbiased.md, section 7.
        Assumes: exact arithmetic: this states errors, `farthing.mechanisms` draws noise.
        Rounds: nothing of the loss; the error is a float64.
        """
        self._kind(loss, Pure)
        return self._shaped("Laplace", loss, 2 * self.rank / down(loss.amount) ** 2)

    def ball(self, loss: Pure) -> ShapedNoise:
        """Return noise of density exp(-epsilon n |z|/2) in r directions: covariance (2/n)^2 (r + 1)/epsilon^2 U U'.

        The mechanism of the norm of K [HardtT10]; for r > 1 it errs less than Laplace noise.

        Guarantee: the mean plus this noise costs the loss, for replace-one neighbours.
        Proof: docs/proofs/limits.unbiased.md, section 7.
        Assumes: exact arithmetic: this states errors, `farthing.mechanisms` draws noise.
        Rounds: nothing of the loss; the error is a float64.
        """
        self._kind(loss, Pure)
        return self._shaped("ball-shaped", loss, (self.rank + 1) / down(loss.amount) ** 2)

    def _shaped(self, name: str, loss: Loss, variance: float) -> ShapedNoise:
        """Return the noise whose covariance is (2/n)^2 variance U U': the mean moves by at most 2/n in the ball."""
        step = 2 / self.records
        error = step * math.sqrt(variance) * self.size
        return ShapedNoise(name, loss, step**2 * variance * (self.U @ self.U.T), error, self.least_error(loss))

    def _kind(self, loss: Loss, *kinds: type[Loss]) -> None:
        """Refuse a loss that this noise does not have."""
        if not isinstance(loss, kinds) or loss.slack or not loss:
            raise InvalidBudget(
                "this noise has no loss of that kind",
                rule=f"the loss is {' or '.join(kind.__name__ for kind in kinds)}, above 0",
                got=repr(loss),
                next_step="gaussian takes Zcdp or Gdp; laplace and ball take Pure",
            )
