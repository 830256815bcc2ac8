"""What the books promise to several privacy units at once, and to members of groups that are large."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

from farthing.errors import InvalidBudget
from farthing.privacy.group import approx_group_delta
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.privacy.policy import LARGEST_SIZE
from farthing.rounding import up
from farthing.session.answering.relative_count import PREFIX, releases
from farthing.session.core.transaction import stored_measurement
from farthing.tabular import Lines

if TYPE_CHECKING:
    from farthing.ledger.entry import Entry
    from farthing.planning.relative_count import RelativeNoise
    from farthing.privacy.budget import Budget
    from farthing.privacy.loss import Booked
    from farthing.privacy.unit import PrivacyUnit
    from farthing.session.answering.relative_count import RelativeRelease
    from farthing.session.core.context import Context

Of = Literal["budget", "spent"]
_MOST: Final = 2**31 - 1
_HOPELESS: Final = 700.0  # at this epsilon any delta of the books has grown past 1


@dataclass(frozen=True, slots=True)
class Guarantee(Lines):
    """What everything released, together, can tell about a group of privacy units.

    Guarantee: data sets that differ in `group` units are as hard to tell apart as `loss` says, and so with
        (epsilon, delta).
        It does not matter who asked, from which process, or in which order: answers that several analysts refine in
        turn, with looks of one between looks of another, are held too, however each was chosen from all of them.
    Proof: group privacy: [Vadhan17, Lemma 2.2] pure, [BunS16, Prop. 1.9] zCDP, [DongRS22, Thm 2.14] GDP; for a `size`
        docs/proofs/session.answering.relative_count.md, "Members of groups of a size"; interleaving (concurrent
        composition, arXiv:2309.05901) docs/proofs/privacy.filters.md, "Answers that stay open".
    Assumes: the ledger's charges bound its releases for one unit; with a `size`, that in every release by a
        relative-noise mechanism each group that these units are counted in has at least that size.
    Rounds: epsilon up.

    Attributes:
        group: how many units are hidden together.
        unit: whose presence is hidden: "row" or "column:<name>".
        of: "budget" for all that may ever be released, "spent" for what was charged so far.
        loss: the loss of the group, in the ledger's currency.
        epsilon, delta: the same as (epsilon, delta)-differential privacy.
        size: the size of the groups that these units are counted in, at least; None for any.
    """

    group: int
    unit: str
    of: Of
    loss: Booked
    epsilon: float
    delta: float
    size: int | None = None

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
        sized = (
            ""
            if self.size is None
            else (f", if every group that a relative-noise release counted them in has at least {self.size:,} in it")
        )
        return f"{released} hides {self.who}{sized}: {self.loss!r} = {shown}"


def guarantee(
    context: Context, unit: PrivacyUnit, *, group: int, size: int | None, of: Of | None, delta: float | None
) -> Guarantee:
    """Return the promise of a ledger to a group of units; see `Session.guarantee`."""
    _check(group, size, of)
    budget, books = context.budget, context.ledger
    if of is None:
        of = "budget" if size is None else "spent"
    keys = bool(budget.keys_coins if of == "budget" else books.terms.keys_delta - books.keys_delta_left)
    if keys and size is not None and group > 1:
        raise InvalidBudget(
            "nothing is known of several members of large groups after keys were found privately",
            rule="one member at a time, or any size",
            got=f"group={group}, size={size}",
            next_step="leave size= or group= out",
        )
    one = budget.total if of == "budget" else context.loss(books.spent)
    loss = one.for_group(group) if size is None else spent_at(context, size, group)
    if keys:
        return _with_keys(budget, unit, loss if group == 1 else one, loss, group=group, size=size, of=of, delta=delta)
    if budget.currency is Pure or not loss:
        return Guarantee(group, unit.label, of, loss, loss.value if budget.currency is Pure else 0.0, 0.0, size)
    at = budget.report_delta if delta is None else delta
    return Guarantee(group, unit.label, of, loss, loss.epsilon(at), at, size)


def spent_at(context: Context, size: int, group: int) -> Booked:
    """Return what was spent on `group` units together whose groups all have at least this size.

    Every entry counts as it was charged, restated for the group; a release by a relative-noise mechanism counts at the
    size. Of each partition the part that spent most counts. Everything that is read is public.

    Guarantee: as `Guarantee`.
    Proof: docs/proofs/session.answering.relative_count.md, "Members of groups of a size".
    Assumes: stored releases are those that the entries with their numbers were charged for.
    Rounds: up.
    """
    currency = context.budget.currency
    stored: dict[str, dict[int, RelativeRelease]] = {}
    whole, parts = Fraction(0), defaultdict[tuple[str, str], Fraction](Fraction)
    for entry in context.ledger.entries():
        amount = context.loss(entry.charged).for_group(group).amount
        noise = _noise(context, entry, stored)
        if noise is not None:
            amount = min(amount, together(noise, size, group, Gdp if currency is Gdp else Zcdp))
        if entry.partition is None:
            whole += amount
        else:
            parts[entry.partition, entry.part or ""] += amount
    most: dict[str, Fraction] = {}
    for (partition, _), amount in parts.items():
        most[partition] = max(most.get(partition, Fraction(0)), amount)
    return currency.of_amount(whole + sum(most.values(), Fraction(0)))


def together(noise: RelativeNoise, size: int, group: int, currency: type[Gdp | Zcdp]) -> Fraction:
    """Return what one release costs `group` units whose groups all have at least this size, as the currency adds up.

    If m of them are in one group, it moves by their distance d_m. All m together are at most group * max_groups, so the
    sum of d_m^2 is at most that number times the largest d_m^2 / m. Beyond 64 units several m are covered at once: d_m
    never falls.

    >>> from farthing.mechanisms import LinearLog
    >>> from farthing.planning.relative_count import RelativeNoise
    >>> noise = RelativeNoise("linear-log", LinearLog(0.05, 50.0), 0.1, 5.0, 0.05, sensitivity=1, max_groups=2)
    >>> alone, three = (together(noise, 10_000, k, Zcdp) for k in (1, 3))
    >>> round(float(three / alone), 2)
    9.0
    """
    best, before = Fraction(0), 0
    while before < group:
        most = min(group, max(before + 1, before * 65 // 64))
        best = max(best, noise.policy.for_group(most).loss(size, currency).amount / (before + 1))
        before = most
    return best * group * noise.max_groups


def _noise(context: Context, entry: Entry, stored: dict[str, dict[int, RelativeRelease]]) -> RelativeNoise | None:
    """Return the noise that an entry's release was drawn with; None for other entries, and where it is not known."""
    if not entry.question.rpartition("/")[2].startswith(PREFIX):
        return None
    if entry.question not in stored:
        found = stored_measurement(context, entry.question)
        stored[entry.question] = {} if found is None else releases(found.blob)
    released = stored[entry.question].get(entry.id)
    return None if released is None else released.noise


def _check(group: object, size: object, of: object) -> None:
    """Refuse a promise that there is none of."""
    if isinstance(group, bool) or not isinstance(group, int) or not 1 <= group <= _MOST:
        raise InvalidBudget(
            "a group has a whole number of units",
            rule=f"1 <= group <= {_MOST}",
            got=repr(group),
            next_step="group=1 is the plain guarantee; group=7 makes a week of days",
        )
    if of not in {None, "budget", "spent"}:
        raise InvalidBudget(
            "the guarantee is unknown",
            rule='of is "budget" or "spent"',
            got=repr(of),
            next_step='leave it out for "budget"',
        )
    if size is None:
        return
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= LARGEST_SIZE:
        raise InvalidBudget(
            "the size of a group is out of range",
            rule="1 <= size <= 2^52: with its members, a group has a whole number of them",
            got=repr(size),
            next_step="size=1000",
        )
    if of == "budget":
        raise InvalidBudget(
            "what is not asked yet has no price by size",
            rule="with a size, the promise is about what was spent",
            got='of="budget"',
            next_step="leave of= out, or leave size= out",
        )


def _with_keys(
    budget: Budget,
    unit: PrivacyUnit,
    one: Booked,
    loss: Booked,
    *,
    group: int,
    size: int | None,
    of: Of,
    delta: float | None,
) -> Guarantee:
    """Return a promise that includes keys found privately: the generic rule for (epsilon, delta) groups.

    `one` is the loss of one unit, `loss` that of the group.
    """
    if budget.currency is Pure:
        single, at = one.value, float(budget.delta or 0)
    else:
        if delta is not None:
            raise InvalidBudget(
                "the delta cannot be chosen",
                rule="part of it is set aside for keys, in a budget with keys_delta",
                got=delta,
                next_step="leave delta out",
            )
        single = up(Fraction(one.epsilon(float(budget.answers_delta) * (1 - 2.0**-50)))) if one else 0.0
        at = budget.report_delta
    grown = up(approx_group_delta(single, at, group)) if group * single < _HOPELESS else 1.0
    return Guarantee(group, unit.label, of, loss, group * single, min(1.0, grown), size)
