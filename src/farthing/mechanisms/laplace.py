"""The Laplace chain: noise reduction under a pure budget, with two-sided geometric noise on integer answers.

Each look shows every group's answer with less noise, so correlated with what was shown before that only the last look
is paid. The finer noise is drawn from the latest noise alone, which is the shown value less the truth: no secret is
kept between looks, the public `Shown` is all there is, and an answer can be sharpened next week.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from farthing.errors import InvalidBudget, NoiseError
from farthing.mechanisms.gaussian import worst_cost
from farthing.mechanisms.scores import restated
from farthing.noise.gradual import LARGEST, coarser_geometric, finer_geometric
from farthing.privacy.loss import Pure
from farthing.rounding import FARTHING
from farthing.sealed import Sealed, opened, sealed

if TYPE_CHECKING:
    from farthing.noise.bits import BitSource
    from farthing.privacy.base import Loss

Int64 = np.typing.NDArray[np.int64]
Float64 = np.typing.NDArray[np.float64]
B = TypeVar("B", bound="Loss")

MOST_FARTHINGS: Final = 1 << 50
"""The finest level of a group: epsilon 1024. Below it every level has a rate of its own."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a chain has shown last: public, free to keep, all that the next look needs.

    Attributes:
        value: int64[groups], the shown values in steps; 0 where nothing was shown.
        farthings: int64[groups], each group's level: the epsilon of its last look in units of 2^-40; 0 before any.
        step_log2: a step is 2^step_log2 in answer units.
    """

    value: Int64
    farthings: Int64
    step_log2: int = 0

    @classmethod
    def nothing(cls, groups: int, step_log2: int = 0) -> Shown:
        """Return the state before any look."""
        return cls(np.zeros(groups, np.int64), np.zeros(groups, np.int64), step_log2)

    @property
    def values(self) -> Float64:
        """The shown values, float64[groups], in answer units; 0 where nothing was shown."""
        return np.ldexp(self.value.astype(np.float64), self.step_log2)

    def take(self, groups: Int64) -> Shown:
        """Return the state of some groups, in the order of their indices."""
        return Shown(self.value[groups], self.farthings[groups], self.step_log2)


@dataclass(frozen=True, slots=True)
class LaplaceChain:
    """Show integer answers with two-sided geometric noise that gets finer from look to look, group by group.

    Attributes:
        truth: int64[groups], the exact answers in steps; never leaves this object.
        sensitivity: the most steps that one privacy unit can move one group's answer, a whole number >= 1.
        max_groups: the most groups one privacy unit can move at all.
        bits: where random bits come from; None is the system's stream cipher.
        step_log2: a step is 2^step_log2 in answer units.

    Guarantee: everything shown, however each look's groups and levels were chosen from what was shown before, is
        epsilon-DP ex post for epsilon = the sum of the `max_groups` largest last levels; `loss` says it.
    Proof: docs/proofs/mechanisms.laplace.md; [KoufogiannisHP16; LigettNRWW17].
    Assumes: add/remove one unit moves at most `max_groups` answers by at most `sensitivity` each; one line of looks: a
        state is carried on once; a pure ledger (in another currency a chain is charged its cap: `price_of_cap`).
    Rounds: rates down, so that a look costs no more than its farthings.

    >>> chain = LaplaceChain(np.array([500, 20]))
    >>> coarse = chain.measure(Shown.nothing(2), np.array([1 << 36, 1 << 36]))
    >>> fine = chain.measure(coarse, np.array([1 << 46, 1 << 46]))
    >>> fine.value.tolist(), chain.loss(fine)
    ([500, 20], Pure(epsilon=64))
    """

    truth: Int64 | Sealed = field(repr=False)
    sensitivity: int = 1
    max_groups: int = 1
    bits: BitSource | None = None
    step_log2: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", sealed(self.truth))

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(opened(self.truth))

    def measure(self, state: Shown, farthings: Int64, groups: Int64 | None = None) -> Shown:
        """Return what is shown of some groups after one more look at each.

        Args:
            state: what was shown last of these groups, in their order.
            farthings: int64[len(groups)], the *level* that each group is raised to (not the increase): the epsilon
                that it has cost in all after this look. Above the group's last level, at most `MOST_FARTHINGS`.
            groups: int64 indices of the groups to look at, each at most once; None for all of them.

        Raises:
            InvalidBudget: a level that does not rise, or is too fine.
            NoiseError: a state of other steps, or answers of 2^61 steps or more.
        """
        truth: Int64 = opened(self.truth) if groups is None else opened(self.truth)[groups]
        self._check(state, farthings, truth)
        before = rates_of(state.farthings, self.sensitivity)
        noise = finer_geometric(state.value - truth, before, rates_of(farthings, self.sensitivity), self.bits)
        return Shown(truth + noise, np.array(farthings, np.int64), self.step_log2)

    def path(self, levels: Int64) -> tuple[Shown, ...]:
        """Return a whole run for every group, coarse to fine, drawn from its end: each look adds noise to the next.

        The joint law is that of as many calls of `measure`. Whoever shows a beginning of it pays its last level.

        Args:
            levels: int64[looks], rising levels, in farthings.
        """
        truth: Int64 = opened(self.truth)
        groups = len(truth)
        looks = [self.measure(Shown.nothing(groups), np.full(groups, levels[-1]))]
        noise, rates = looks[0].value - truth, rates_of(levels, self.sensitivity)
        for place in range(len(levels) - 2, -1, -1):
            noise = coarser_geometric(noise, float(rates[place + 1]), float(rates[place]), self.bits)
            looks.append(Shown(truth + noise, np.full(groups, levels[place]), self.step_log2))
        return tuple(reversed(looks))

    def loss(self, state: Shown) -> Pure:
        """Return what the whole run has cost, its last levels, for `state` of all groups: an ex-post loss."""
        return Pure.of_farthings(worst_cost(state.farthings, self.max_groups))

    def _check(self, state: Shown, farthings: Int64, truth: Int64) -> None:
        """Refuse levels that do not rise, and states of another chain."""
        rising = len(truth) == len(state.value) == len(farthings) and (farthings > state.farthings).all()
        if not rising or (len(farthings) and int(farthings.max()) > MOST_FARTHINGS):
            raise InvalidBudget(
                "a look must be finer than the last",
                rule="each group's level is above its last one, and at most epsilon 1024",
                got="other levels",
                next_step="leave out groups that are fine enough: what was shown of them is free",
            )
        if state.step_log2 != self.step_log2 and state.farthings.any():
            raise NoiseError(
                "the state is counted in other steps",
                rule=f"steps of 2^{self.step_log2}",
                got=f"2^{state.step_log2}",
                next_step="carry a chain on with the steps that it began with",
            )
        for each in (state.value, truth):
            if len(each) and not -(LARGEST >> 1) < each.min() <= each.max() < LARGEST >> 1:
                raise NoiseError("answers are too large", rule="below 2^61 steps", next_step="take coarser steps")


def rates_of(farthings: Int64, sensitivity: int) -> Float64:
    """Return the decay of the noise per step at each level: at most farthings * 2^-40 / sensitivity, 0 at 0.

    Rounds: down. Levels are exact in float64, the quotient errs by 2^-53 of itself, and the next float below covers it.

    >>> float(rates_of(np.array([3 << 40]), 3)[0]) <= 1.0
    True
    """
    return np.nextafter(farthings * float(FARTHING) / sensitivity, 0.0)


def price_of_cap(cap: Loss, currency: type[B]) -> B:
    """Return what a chain is charged in a ledger's currency, of which `cap` is the most that it may cost.

    Only a pure ledger may book the last level in its place: in zCDP or GDP that would be an underpayment, see the
    proof page.

    Guarantee: a chain that never passes its cap, stopped however it was, has the price.
    Proof: docs/proofs/mechanisms.laplace.md, "In another ledger".
    Assumes: the chain's `loss` stays within the cap.
    Rounds: up.

    >>> from farthing.privacy.loss import Zcdp
    >>> price_of_cap(Pure(1), Zcdp).rho < 0.5
    True
    """
    return restated(cap, currency)
