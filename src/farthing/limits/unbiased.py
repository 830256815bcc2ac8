"""The least error of unbiased answers to many linear questions at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from farthing.errors import InvalidOption
from farthing.limits import checks
from farthing.limits.checks import SHAVE
from farthing.limits.divergence import chi_square
from farthing.limits.factorization import SECONDS, TOLERANCE, Bracket, bracket_2, bracket_f
from farthing.privacy.loss import Approx, Gdp, Zcdp
from farthing.rounding import up

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from farthing.privacy.base import Loss

ADD_REMOVE, REPLACE_ONE = "add-remove", "replace-one"
NEIGHBOURS = (ADD_REMOVE, REPLACE_ONE)


@dataclass(frozen=True, slots=True)
class UnbiasedError:
    """The least error of any unbiased mechanism for a workload, at a loss.

    Attributes:
        total: the least sum of the variances of all answers, rounded down.
        worst: the least that the largest variance can be, rounded down.
        gaussian_total, gaussian_worst: what Gaussian noise of the best shape found has, for Zcdp and Gdp; else None.
        norm_f, norm_2: the norms the bounds rest on, each between its two sides.
        loss: the loss of the mechanism.
        neighbours: "add-remove" or "replace-one".
    """

    total: float
    worst: float
    gaussian_total: float | None
    gaussian_worst: float | None
    norm_f: Bracket
    norm_2: Bracket
    loss: Loss
    neighbours: str

    @property
    def where(self) -> str:
        """On which data the bound holds, in words."""
        if isinstance(self.loss, Approx):
            return "on all data"
        return "on any data" if self.neighbours == ADD_REMOVE else "on any data with a record in each cell but one"

    def __str__(self) -> str:
        said = (
            f"no unbiased mechanism of {self.loss!r} ({self.neighbours}) has a total variance below {self.total:.6g}, "
            f"or every variance below {self.worst:.6g}, {self.where}"
        )
        if self.gaussian_total is not None and self.total > 0:
            said += f"; Gaussian noise of the best shape has {self.gaussian_total / self.total:.4g} times that total"
        for norm in (self.norm_f, self.norm_2):
            said += f"; a norm is only known to lie {norm}" if norm.ended != "close" else ""
        return said


def unbiased_error(
    W: ArrayLike,
    loss: Loss,
    *,
    times: tuple[ArrayLike, ...] = (),
    neighbours: Literal["add-remove", "replace-one"] = "add-remove",
    tolerance: float = TOLERANCE,
    seconds: float = SECONDS,
    progress: Callable[[Bracket], object] | None = None,
) -> UnbiasedError:
    """Return the least total and the least largest variance of unbiased answers W x to a histogram x.

    Args:
        W: the workload, float64[queries, cells]: one record in cell j adds column j to the answers.
        loss: what the mechanism may cost: Zcdp, Gdp, Pure, BoundedRange, or Approx.
        times: further factors, when the workload is the Kronecker product of W and these; for add-remove.
        neighbours: what the loss protects: a record added or removed, or a record replaced by another.
        tolerance: as for `gamma_f`, for each of the two norms.
        seconds: likewise.
        progress: likewise.

    Guarantee: no unbiased mechanism of that loss has a smaller error; under Approx, none whose error on all data is.
    Proof: docs/proofs/limits.unbiased.md, sections 1, 3 and 5; [NikolovT24].
    Assumes: unbiased on all data; for replace-one, data with a record in every cell but at most one.
    Rounds: total and worst down.

    >>> from farthing.privacy.loss import Zcdp
    >>> error = unbiased_error([[1, 0], [1, 1]], Zcdp(0.05))
    >>> f"{error.total:.2f} {error.worst:.2f}"
    '24.89 12.68'
    """
    checks.choice(neighbours, "neighbours", NEIGHBOURS)
    if neighbours == REPLACE_ONE:
        if times:
            raise InvalidOption(
                "Kronecker products are for add-remove neighbours",
                rule="differences of columns are not a Kronecker product",
                got=neighbours,
                next_step="multiply the factors out with numpy.kron",
            )
        W = differences(W)
    chi = chi_square(loss)
    f = bracket_f(W, *times, tolerance=tolerance, seconds=seconds, progress=progress)
    two = bracket_2(W, *times, tolerance=tolerance, seconds=seconds, progress=progress)
    total, worst = (norm.lower**2 / chi * SHAVE for norm in (f, two))
    gaussian = [norm.upper**2 / _twice_rho(loss) if isinstance(loss, Zcdp | Gdp) else None for norm in (f, two)]
    return UnbiasedError(total, worst, gaussian[0], gaussian[1], f, two, loss, neighbours)


def differences(W: ArrayLike) -> NDArray[np.float64]:
    """Return the differences of every two columns: how a record that is replaced moves the answers.

    >>> differences([[1, 0, 0], [1, 1, 0]]).tolist()
    [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]
    """
    array = checks.matrix(W, "the workload")
    first, second = np.triu_indices(array.shape[1], 1)
    if not len(first):
        raise InvalidOption(
            "a record cannot be replaced by another",
            rule="replace-one needs two cells",
            got="one cell",
            next_step='neighbours="add-remove"',
        )
    return array[:, first] - array[:, second]


def _twice_rho(loss: Zcdp | Gdp) -> float:
    """Return what the variance of Gaussian noise is divided by: 2 rho = mu^2."""
    return up(loss.amount) * (2 if isinstance(loss, Zcdp) else 1)
