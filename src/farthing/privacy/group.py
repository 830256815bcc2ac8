"""Group privacy: what a promise for one unit is for k of them at once.

It is not composition. k releases about one unit add up (k rho); one release that must cover k units moves k times as
far (k^2 rho). docs/explanation/group-privacy.md tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from farthing.errors import InvalidBudget
from farthing.privacy.balls import ball, upper, working
from farthing.privacy.numbers import squared, within_unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.privacy.base import Loss
    from farthing.privacy.numbers import Number


def units(k: int) -> int:
    """Return a group size; refuse what is not a whole number >= 1."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InvalidBudget(
            "a group has a whole number of units", rule="k >= 1", got=repr(k), next_step="for_group(3), for three units"
        )
    return k


def approx_group_delta(epsilon: Number, delta: Number, k: int) -> Fraction:
    """Return the delta of an (epsilon, delta)-DP mechanism for k units at k epsilon, rounded up.

    Guarantee: (epsilon, delta)-DP for one unit implies (k epsilon, the returned delta)-DP for k units.
    Proof: delta (1 + e^eps + ... + e^((k-1) eps)) [Vadhan17, Lemma 2.2]; docs/proofs/privacy.group.md.
    Assumes: k units are k steps from neighbour to neighbour.
    Rounds: up, in the last of 192 bits.

    >>> float(approx_group_delta(0, 0.125, 3))
    0.375
    """
    e, d = squared(epsilon, "epsilon"), Fraction(delta)
    if e == 0 or k == 1:
        return d * k
    with working() as flint:
        x = ball(flint, e)
        return upper(ball(flint, d) * (k * x).expm1() / x.expm1())


def renyi_group(order: Fraction, k: int, divergence: Callable[[Fraction], Fraction]) -> tuple[Fraction, Fraction]:
    """Return (order / k, tau): the Renyi bound for k units that a bound for one unit up to `order` gives.

    Guarantee: if D_a <= divergence(a) between neighbours for every a <= order, then D_(order/k) <= tau between data
        sets k steps apart, tau = order * sum over j < k of divergence(order - j) / (order - j).
    Proof: docs/proofs/privacy.group.md, from the triangle inequality of [BunS16, Lemma 5.2]; k^2 rho a for zCDP.
    Assumes: order > k.
    Rounds: nothing; fractions in, fractions out.

    >>> renyi_group(Fraction(8), 2, lambda a: a / 10)
    (Fraction(4, 1), Fraction(8, 5))
    """
    total = sum((divergence(order - j) / (order - j) for j in range(k)), Fraction(0))
    return order / k, order * total


@dataclass(frozen=True, slots=True)
class GroupGuarantee:
    """What a promise for one unit says about k units, as (epsilon, delta), with the road that was taken.

    Attributes:
        loss: the loss of one unit.
        k: the number of units.
        epsilon, delta: what holds for the k units together.
        road: "curve" when the loss itself was restated for the group and converted once; "generic" when one unit's
            (epsilon, delta) went through the formula for approximate differential privacy.
        generic: the epsilon that the generic formula gives at the same delta, or None when it gives none.
    """

    loss: Loss
    k: int
    epsilon: float
    delta: float
    road: str
    generic: float | None

    def __str__(self) -> str:
        promise = f"epsilon {self.epsilon:.4g} at delta {self.delta:g}"
        text = f"{self.k} units of {self.loss!r}: {promise}, by the {self.road} road"
        if self.road == "curve" and self.generic is not None:
            text += f" (the generic formula would say {self.generic:.4g})"
        return text


def guarantee(loss: Loss, k: int, *, delta: float) -> GroupGuarantee:
    """Return the least known (epsilon, delta) promise for k units at once.

    Use it from rows to a user who has k of them, from days to a month in one release, from people to households.

    Guarantee: k units are (epsilon, delta)-indistinguishable whenever one unit is protected by `loss`.
    Proof: docs/proofs/privacy.group.md; both roads are sound, so the smaller may be quoted.
    Assumes: k units are k steps from neighbour to neighbour; 0 < delta < 1.
    Rounds: epsilon up.

    >>> from farthing.privacy import Gdp
    >>> print(guarantee(Gdp(0.2), 3, delta=1e-6))
    3 units of Gdp(mu=0.2): epsilon 2.756 at delta 1e-06, by the curve road (the generic formula would say 2.795)
    """
    within_unit(delta)
    generic = generic_epsilon(loss, units(k), delta)
    try:
        curve = loss.for_group(k).epsilon(delta)
    except InvalidBudget:
        if generic is None:
            raise
        return GroupGuarantee(loss, k, generic, delta, "generic", generic)
    if generic is not None and generic < curve:
        return GroupGuarantee(loss, k, generic, delta, "generic", generic)
    return GroupGuarantee(loss, k, curve, delta, "curve", generic)


def generic_epsilon(loss: Loss, k: int, delta: float) -> float | None:
    """Return k eps for the least eps at which one unit's (eps, delta(eps)) gives the group `delta`, or None.

    Guarantee: k units are (the returned epsilon, delta)-indistinguishable.
    Proof: [Vadhan17, Lemma 2.2] at one point of the unit's own curve; any point is safe.
    Assumes: as `guarantee`.
    Rounds: up; the search stops within a relative 1e-9 of the least point.

    >>> from farthing.privacy import Gdp
    >>> round(generic_epsilon(Gdp(0.2), 3, 1e-6), 3)
    2.795
    """
    wanted = within_unit(delta)

    def fits(epsilon: float) -> bool:
        return approx_group_delta(epsilon, loss.delta(epsilon), k) <= wanted

    low, high = 0.0, 1.0
    while not fits(high):
        low, high = high, 2 * high
        if high * k > GROUP_LIMIT:
            return None
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return k * high * (1 + 2.0**-50)


GROUP_LIMIT = 1e4
"""Beyond this epsilon for the group the generic formula is not searched further."""
