"""What the books promise to several privacy units at once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

from farthing.errors import InvalidBudget
from farthing.privacy.group import approx_group_delta
from farthing.privacy.loss import Pure
from farthing.rounding import up

if TYPE_CHECKING:
    from farthing.privacy.budget import Budget
    from farthing.privacy.loss import Booked
    from farthing.privacy.unit import PrivacyUnit

Of = Literal["budget", "spent"]
_MOST: Final = 2**31 - 1
_HOPELESS: Final = 700.0  # at this epsilon any delta of the books has grown past 1


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What everything released, together, can tell about a group of privacy units.

    Guarantee: data sets that differ in `group` units are as hard to tell apart as `loss` says, and so with
        (epsilon, delta).
    Proof: group privacy: [Vadhan17, Lemma 2.2] pure, [BunS16, Prop. 1.9] zCDP, [DongRS22, Thm 2.14] GDP.
    Assumes: the ledger's charges bound its releases for one unit.
    Rounds: epsilon up.

    Attributes:
        group: how many units are hidden together.
        unit: whose presence is hidden: "row" or "column:<name>".
        of: "budget" for all that may ever be released, "spent" for what was charged so far.
        loss: the loss of the group, in the ledger's currency.
        epsilon, delta: the same as (epsilon, delta)-differential privacy.
    """

    group: int
    unit: str
    of: Of
    loss: Booked
    epsilon: float
    delta: float

    @property
    def who(self) -> str:
        """Who is hidden, in words."""
        if self.unit == "row":
            return "one row" if self.group == 1 else f"any {self.group:,} rows together, such as a user with that many"
        name = self.unit.removeprefix("column:")
        one = f"one {name}, with all its rows"
        return one if self.group == 1 else f"any {self.group:,} values of {name} together, with all their rows"

    def __str__(self) -> str:
        released = "everything ever released" if self.of == "budget" else "everything released so far"
        shown = f"epsilon {self.epsilon:.4g}" + (f" at delta {self.delta:g}" if self.delta else "")
        return f"{released} hides {self.who}: {self.loss!r} = {shown}"


def guarantee(
    budget: Budget, unit: PrivacyUnit, spent: Booked, *, group: int, of: Of, delta: float | None
) -> Guarantee:
    """Return the promise of a ledger to a group of units; see `Session.guarantee`."""
    if isinstance(group, bool) or not isinstance(group, int) or not 1 <= group <= _MOST:
        raise InvalidBudget(
            "a group has a whole number of units",
            rule=f"1 <= group <= {_MOST}",
            got=repr(group),
            next_step="group=1 is the plain guarantee; group=7 makes a week of days",
        )
    if of not in {"budget", "spent"}:
        raise InvalidBudget(
            "no such guarantee", rule='of is "budget" or "spent"', got=repr(of), next_step='leave it out for "budget"'
        )
    loss = (budget.total if of == "budget" else spent).for_group(group)
    if budget.currency is Pure and of == "budget" and budget.keys_coins:
        one = budget.total.value
        at = up(approx_group_delta(one, float(budget.delta or 0), group)) if group * one < _HOPELESS else 1.0
        return Guarantee(group, unit.label, of, loss, loss.value, min(1.0, at))
    if budget.currency is Pure or not loss:
        return Guarantee(group, unit.label, of, loss, loss.value if budget.currency is Pure else 0.0, 0.0)
    if of == "budget" and budget.keys_coins:
        return _with_keys(budget, unit, loss, group=group, delta=delta)
    at = budget.report_delta if delta is None else delta
    return Guarantee(group, unit.label, of, loss, loss.epsilon(at), at)


def _with_keys(budget: Budget, unit: PrivacyUnit, loss: Booked, *, group: int, delta: float | None) -> Guarantee:
    """Return the promise of a budget that sets delta aside for keys: the generic rule for (epsilon, delta) groups."""
    if delta is not None:
        raise InvalidBudget(
            "the delta cannot be chosen",
            rule="part of it is set aside for keys, in a budget with keys_delta",
            got=delta,
            next_step="leave delta out",
        )
    one = up(Fraction(budget.total.epsilon(float(budget.answers_delta) * (1 - 2.0**-50))))
    at = up(approx_group_delta(one, budget.report_delta, group)) if group * one < _HOPELESS else 1.0
    return Guarantee(group, unit.label, "budget", loss, group * one, min(1.0, at))
