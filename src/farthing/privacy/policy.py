"""Group-wise losses: what a member of a group of x records loses, as a function of x that may be published.

A *policy* says how the loss falls with the size of the group. It is a promise about every size at once, fixed before
anything is drawn; what must not be published is its value at a private count. docs/how-to/larger-groups.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, overload

import numpy as np

from farthing.errors import InvalidBudget, InvalidTarget
from farthing.privacy.group import units
from farthing.privacy.loss import Gdp, Zcdp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]

LARGEST_SIZE: Final = 1 << 52
"""The largest group: sizes, and sums of two, are whole numbers that float64 holds exactly."""

UP: Final = 1 + 2.0**-44
"""Covers the float errors of a distance, 2^-48 of it at most: distances are rounded up."""

_SQUARED_UP: Final = 1 + 2.0**-50


class Step(Protocol):
    """How far apart one mechanism keeps the outputs of two sizes of a group.

    `distance` bounds the square root of 2 rho between any two sizes that `members` members can lie apart, one of them
    being `sizes`; it never grows with the size.
    """

    @property
    def gaussian(self) -> bool:
        """Whether the distance is a mu of Gaussian DP too, not only of zCDP."""
        ...

    def distance(self, sizes: Integers, members: int) -> Floats:
        """Return the distance for each size, rounded up."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """The same loss at every size: what a mechanism without group-wise protection promises.

    Attributes:
        mu: sqrt(2 rho), the distance between neighbours, >= 0.
        gaussian: whether it is mu-GDP too.

    >>> Policy.of(Constant(0.5)).rho([0, 10**9]).round(6)
    array([0.125, 0.125])
    """

    mu: float
    gaussian: bool = True

    def __post_init__(self) -> None:
        Gdp(self.mu)  # refuses what is not a loss

    def distance(self, sizes: Integers, members: int) -> Floats:
        """Return members * mu, whatever the size."""
        return np.full(sizes.shape, self.mu * members * UP)


@dataclass(frozen=True, slots=True)
class Brackets:
    """A stated policy: a size class and its rho, one after the other, such as a steward writes down.

    Attributes:
        sizes: the least size of each class, rising, from 0.
        rhos: the zCDP of a member of each class, never rising.

    >>> Policy.of(Brackets((0, 100), (0.5, 0.125))).rho([5, 99, 100, 10**6]).round(6)
    array([0.5  , 0.5  , 0.125, 0.125])
    """

    sizes: tuple[int, ...]
    rhos: tuple[float, ...]

    @property
    def gaussian(self) -> bool:
        """False: a stated rho is not mu."""
        return False

    def __post_init__(self) -> None:
        for rho in self.rhos:
            Zcdp(rho)  # refuses what is not a loss
        starts, losses = np.asarray(self.sizes), np.asarray(self.rhos)
        if not len(starts) or starts.shape != losses.shape or starts[0] != 0 or (np.diff(starts) <= 0).any():
            raise InvalidBudget(
                "size classes do not cover every size once",
                rule="rising sizes from 0, and one rho for each",
                got=f"{self.sizes}, {self.rhos}",
                next_step="Brackets((0, 100, 10_000), (0.5, 0.1, 0.001))",
            )
        if (np.diff(losses) > 0).any():
            raise InvalidBudget(
                "a policy rises with the size of the group",
                rule="v(x) never grows with x: a larger group is at least as well protected",
                got=self.rhos,
                next_step="state the larger rho for the smaller class too",
            )

    def distance(self, sizes: Integers, members: int) -> Floats:
        """Return the sum of the distances of `members` steps, from the size down (the policy never rises)."""
        top = np.maximum(sizes, members)
        ends = [*self.sizes[1:], LARGEST_SIZE * 4]
        total = np.zeros(sizes.shape)
        for start, end, rho in zip(self.sizes, ends, self.rhos, strict=True):
            # Steps from t to t-1 for t in (top - members, top]; each costs what the class of t states.
            steps = np.clip(np.minimum(top, end - 1) - np.maximum(top - members, start - 1), 0, None)
            total += steps * np.sqrt(2 * rho)
        return np.asarray(total * UP)


@dataclass(frozen=True, slots=True)
class Policy:
    """The loss of a member of a group of x records, for every x: zCDP, and Gaussian DP where it is known.

    Calling it is the same as `rho`. Policies of several releases by the same groups add with `+`; a record that lies
    in differently sized groups of several releases adds them by `along`.

    Attributes:
        steps: the mechanisms that were run on the groups, each with its distance between sizes.
        members: how many members of the group are protected at once.

    Guarantee: between data sets that differ by `members` members of one group, of which one has x records in it, both
        Renyi divergences of every order a are at most a * rho(x); mu(x)-GDP where `mu` is not refused.
    Proof: docs/proofs/mechanisms.relative.md, "Policies"; composition [BunS16, Lemma 2.3; DongRS22, Cor. 3.3].
    Assumes: each step's distance holds for its mechanism and never grows with the size.
    Rounds: up.

    >>> from farthing.mechanisms import LinearLog
    >>> policy = LinearLog(sigma=0.1, x0=50).policy
    >>> policy([10, 1000]).round(8)
    array([2.000e-02, 5.005e-05])
    >>> policy.for_group(2).rho([1000]) / policy.rho([1000]) < 4.01
    array([ True])
    """

    steps: tuple[Step, ...]
    members: int = 1

    @classmethod
    def of(cls, *steps: Step) -> Policy:
        """Return the policy of one mechanism, or of several on the same groups."""
        return cls(steps)

    def __post_init__(self) -> None:
        units(self.members)
        if not self.steps:
            raise InvalidBudget(
                "the policy has no steps", rule="one step at least", next_step="Policy.of(Constant(0.1))"
            )

    def __call__(self, sizes: ArrayLike) -> Floats:
        """Return rho for each size."""
        return self.rho(sizes)

    def rho(self, sizes: ArrayLike) -> Floats:
        """Return the zCDP of a member of a group of each size; float64, rounded up.

        Args:
            sizes: whole numbers from 0 to 2^52; an absent group (0) is protected as one of 1 is.
        """
        return self._squared(sizes) / 2

    def mu(self, sizes: ArrayLike) -> Floats:
        """Return the Gaussian DP parameter for each size; float64, rounded up. Refused where only zCDP is known."""
        if not self.gaussian:
            raise InvalidBudget(
                "this policy is known in zCDP only",
                rule="no theorem leads from zCDP to Gaussian DP",
                got=self.steps,
                next_step="charge policy.rho in a zCDP ledger",
            )
        return np.asarray(np.sqrt(self._squared(sizes)) * _SQUARED_UP)

    @property
    def gaussian(self) -> bool:
        """Whether `mu` is known."""
        return all(step.gaussian for step in self.steps)

    @overload
    def loss(self, size: int, currency: type[Zcdp] = ...) -> Zcdp: ...
    @overload
    def loss(self, size: int, currency: type[Gdp]) -> Gdp: ...
    def loss(self, size: int, currency: type[Zcdp | Gdp] = Zcdp) -> Zcdp | Gdp:
        """Return the loss of a member of a group of one size, as a value that composes and converts.

        >>> Policy.of(Constant(0.5)).loss(1000, Gdp)
        Gdp(mu=0.5)
        """
        if currency is Gdp:
            return Gdp(float(self.mu(size)))
        if currency is Zcdp:
            return Zcdp(float(self.rho(size)))
        raise InvalidBudget(
            "a policy has no price in this currency",
            rule="Zcdp or Gdp: Gaussian noise has no pure loss",
            got=getattr(currency, "__name__", currency),
            next_step="policy.loss(size, Zcdp)",
        )

    def worst(self, currency: type[Zcdp | Gdp] = Zcdp) -> Zcdp | Gdp:
        """Return the loss at size 0, the largest: what a filter that must hold for everybody charges."""
        return self.loss(0, Gdp) if currency is Gdp else self.loss(0, currency)

    def for_group(self, k: int) -> Policy:
        """Return the policy of k members of the group at once: distances add along the k steps between the sizes."""
        return replace(self, members=self.members * units(k))

    def __add__(self, other: Policy) -> Policy:
        """Return the policy of both releases together, by the same groups."""
        if other.members != self.members:
            raise InvalidBudget(
                "policies for different numbers of members do not add",
                rule="the same number of members in each",
                got=f"{self.members} and {other.members}",
                next_step="add the policies first, then for_group",
            )
        return Policy((*self.steps, *other.steps), self.members)

    def _squared(self, sizes: ArrayLike) -> Floats:
        """Return the sum of squared distances, rounded up."""
        at = checked_sizes(sizes)
        total = np.zeros(at.shape)
        for step in self.steps:
            total += np.square(step.distance(at, self.members)) * _SQUARED_UP
        return np.asarray(total * (1 + len(self.steps) * 2.0**-51))


def along(policies: Iterable[Policy], sizes: Sequence[int], currency: type[Zcdp | Gdp] = Zcdp) -> Zcdp | Gdp:
    """Return the loss of a record that lies in a group of sizes[i] in release i: the sum along its groups.

    Guarantee: the releases together cost that record at most the returned loss, each chosen after those before it.
    Proof: adaptive composition for the fixed pair of data sets that differ in this record
        [BunS16, Lemma 2.3; DongRS22, Cor. 3.3]; docs/proofs/mechanisms.relative.md, "Policies".
    Assumes: the record lies in one group of each release.
    Rounds: up.

    >>> along([Policy.of(Constant(0.5)), Policy.of(Constant(0.5))], [10, 1000])
    Zcdp(rho=0.25)
    """
    chosen = tuple(policies)
    if len(chosen) != len(sizes):
        raise InvalidBudget(
            "a release without a size",
            rule="one size for each policy: the record's group in that release",
            got=f"{len(chosen)} policies, {len(sizes)} sizes",
            next_step="give the size of the record's group in every release",
        )
    amounts = (policy.loss(size, currency).amount for policy, size in zip(chosen, sizes, strict=True))
    return currency.of_amount(sum(amounts, Fraction(0)))


def checked_sizes(sizes: ArrayLike) -> Integers:
    """Return public group sizes as int64; refuse what is not a whole number from 0 to 2^52."""
    given = np.asarray(sizes)
    whole = given.dtype.kind in "iuf" and bool(np.all((given >= 0) & (given <= LARGEST_SIZE)))
    if not whole or (given.dtype.kind == "f" and not bool(np.all(np.floor(given) >= given))):
        raise InvalidTarget(
            "a group size is not a whole number in range",
            rule="0 <= size <= 2^52: a group has a whole number of members",
            got=given if given.size < 10 else given.dtype,
            next_step="give sizes as whole numbers",
        )
    return given.astype(np.int64)
