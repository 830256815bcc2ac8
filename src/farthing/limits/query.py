"""The least loss that unbiased answers of some precision could have cost, from what was released alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.errors import InvalidBudget, InvalidOption
from farthing.limits import checks
from farthing.limits.checks import SHAVE
from farthing.limits.divergence import least_amount
from farthing.limits.factorization import UNIT

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from farthing.privacy.base import Loss

    Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False)
class Limit:
    """What was paid, beside the least that any unbiased mechanism could have.

    Attributes:
        least: the least loss, in the currency of what was paid, rounded down.
        paid: the loss that was paid.
        groups: how many groups, the most accurate first, the bound rests on.
    """

    least: Loss
    paid: Loss
    groups: int

    @property
    def ratio(self) -> float:
        """What was paid over the least, in what adds up: rho, mu squared or epsilon; inf over a least of 0."""
        return float(self.paid.amount / self.least.amount) if self.least.amount else math.inf

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        unit = " (in mu squared, which adds up)" if self.least.parameter == "mu" else ""
        said = (
            f"the least loss any unbiased mechanism could have paid for this is {self.least!r}; "
            f"you paid {self.ratio:.4g} times that{unit}"
        )
        if self.ratio < 1:
            said += "; less than the least: the answers are biased, or loss and deviations do not belong together"
        return said


def for_query(
    paid: Loss,
    *,
    sds: ArrayLike | None = None,
    half_widths: ArrayLike | None = None,
    confidence: float = 0.95,
    sensitivity: ArrayLike = 1.0,
    max_groups: int = 1,
    signed: bool = False,
) -> Limit:
    """Return the least loss of any unbiased mechanism whose answers deviate no more than these do.

    Args:
        paid: what was paid: Zcdp, Gdp or Pure; its kind is the currency of the result.
        sds: float64[groups], standard deviations of the answers, above 0.
        half_widths: in their place, half-widths of normal intervals: a half-width is ndtri((1 + confidence)/2) sds.
        confidence: of the half-widths, in (0, 1).
        sensitivity: the most one unit moves one group's answer; a number, or float64[groups].
        max_groups: in how many groups one unit can be.
        signed: whether a unit can move each of its groups either way (sums from -c to c), and not only up (counts).

    Guarantee: no unbiased mechanism with these deviations, on the data that was asked about, has a smaller loss.
    Proof: docs/proofs/limits.unbiased.md, section 8.
    Assumes: unbiased on that data and its neighbours, which add or remove one unit; deviations of at most these.
    Rounds: the least loss down.

    >>> from farthing.privacy.loss import Gdp
    >>> print(for_query(Gdp(0.1), sds=[10.0, 20.0]))
    the least loss any unbiased mechanism could have paid for this is Gdp(mu=0.0997513); you paid 1.005 times that
    (in mu squared, which adds up)
    """
    if paid.slack or not paid:
        raise InvalidBudget(
            "what was paid cannot be compared",
            rule="paid is Zcdp, Gdp or Pure, above 0 and without a delta of its own",
            got=repr(paid),
            next_step="give what the ledger booked, as Gdp(mu), Zcdp(rho) or Pure(epsilon)",
        )
    deviations = _deviations(sds, half_widths, confidence)
    steps = checks.positive(sensitivity, "sensitivity")
    if steps.shape not in {(), (1,), deviations.shape}:
        raise InvalidOption(
            "sensitivities and deviations differ in number",
            rule="one sensitivity for all groups, or one for each",
            got=f"{steps.size} for {deviations.size} groups",
            next_step="sensitivity=1",
        )
    precision = np.sort((steps / deviations) ** 2)[::-1]
    chi, groups = _chi_square_at_least(precision, min(checks.whole(max_groups, "max_groups"), len(precision)), signed)
    return Limit(type(paid).of_amount(least_amount(type(paid), chi)), paid, groups)


def _chi_square_at_least(precision: Float64, most: int, signed: bool) -> tuple[float, int]:
    """Return a lower bound on chi^2 and the number of groups it rests on, from precisions c^2/s^2, largest first.

    With signs: the sum over the `most` largest. Without: a unit in k of m groups, all subsets alike, has second
    moments with the eigenvalues k^2/m (once) and k (m-k)/(m (m-1)) (else); the diagonal of their root weighs the sum,
    and is largest at k = (m + sqrt(m))/2.
    """
    sums = np.cumsum(precision) * (1 - 4 * len(precision) * UNIT) * SHAVE
    if signed:
        return float(sums[most - 1]), most
    m = np.arange(1, len(precision) + 1, dtype=np.float64)
    found, best_k = np.zeros(len(m)), (m + np.sqrt(m)) / 2
    for k in (np.minimum(most, np.floor(best_k)), np.minimum(most, np.ceil(best_k))):
        rest = (m - 1) * np.sqrt(k * (m - k) / (m * np.maximum(m - 1, 1)))
        found = np.maximum(found, ((k / np.sqrt(m) + rest) / m) ** 2 * sums)
    best = int(np.argmax(found))
    return float(found[best]) * SHAVE, best + 1


def _deviations(sds: ArrayLike | None, half_widths: ArrayLike | None, confidence: float) -> Float64:
    """Return float64[groups] deviations, from either of the two ways to state them."""
    if (sds is None) is (half_widths is None):
        raise InvalidOption(
            "the precision of the answers is unclear",
            rule="sds, or half_widths with their confidence, not both",
            got="neither" if sds is None else "both",
            next_step="sds=[10.0, 20.0]",
        )
    if half_widths is None:
        return np.atleast_1d(checks.positive(sds if sds is not None else [], "sds")).ravel()
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise InvalidOption(
            "the confidence is out of range", rule="0 < confidence < 1", got=confidence, next_step="0.95 is usual"
        )
    from scipy.special import ndtri

    z = float(ndtri((1 + confidence) / 2))
    return np.atleast_1d(checks.positive(half_widths, "half_widths")).ravel() / z
