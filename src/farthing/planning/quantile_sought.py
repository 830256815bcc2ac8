"""What earlier answers of a quantile looked for and found, and which groups they still serve."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.accuracy.quantile_ranks import QuantileGoal
from farthing.accuracy.quantile_value import ValueTarget, within
from farthing.errors import InvalidTarget
from farthing.query.aggregates import Quantile
from farthing.rounding import digits_up

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from farthing.accuracy.quantile_bisection import QuantileState
    from farthing.accuracy.quantile_trail import Trail
    from farthing.planning.frame import Frame

    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

_NEARLY = 1 + 1e-9


def goal_of(aggregate: Quantile, max_rows: int, rank: float | None) -> QuantileGoal:
    """Return what is looked for: the quantile, its rank target if there is one, and the values that are told apart."""
    one = aggregate
    return QuantileGoal(one.q, one.lower, one.upper, one.leaves_log2, max_rows, rank or 0.0, one.whole)


def refuse_too_fine(frame: Frame) -> None:
    """Refuse a target of the value that no values meet, since they are told apart less finely: public facts show it."""
    aggregate = frame.query.aggregate
    assert isinstance(aggregate, Quantile)  # noqa: S101  # callers plan quantiles
    if frame.target is None or frame.ranks[0] is not None or frame.spend:
        return
    asked = goal_of(aggregate, frame.query.max_rows, None)
    if not ValueTarget(asked, frame.target.relative, frame.target.absolute).reachable:
        raise InvalidTarget(
            "the target is finer than the values that are told apart",
            rule=f"values are told apart on {asked.leaves:,} steps from lower to upper, and no answer is nearer than "
            "half a step; nothing is paid for a target that no group can meet",
            got=f"{frame.goal}, from {asked.lower:g} to {asked.upper:g}, where half a step is {asked.step / 2:.3g}",
            next_step=f"absolute={digits_up(asked.step / 2):.6g}, or bounds that are nearer to each other",
        )


@dataclass(frozen=True, slots=True)
class QuantileSought:
    """What is looked for: stored beside the answer, so that a later ask knows whether it serves.

    Attributes:
        rank, relative, absolute: the targets; 0 for none.
        beta: the failure probability a group.
        cap: the most that a group could pay, in the coins of its road.
        spend: whether groups that were too small for the target went on to it.
        steps: the rank that the interval is about, in 2^-20: at the ends that moves with the target; -1 if not kept.
    """

    rank: float
    relative: float
    absolute: float
    beta: float
    cap: int
    spend: bool = False
    steps: int = -1

    def about_the_same(self, asked: QuantileSought) -> bool:
        """Tell whether its interval is about the rank that is asked for."""
        return self.rank == asked.rank or (self.steps >= 0 and self.steps == asked.steps)

    def serves(self, asked: QuantileSought, *, met: bool) -> bool:
        """Tell whether an answer to this is one to what is asked, given whether all groups met it."""
        pairs = ((self.rank, asked.rank), (self.relative, asked.relative), (self.absolute, asked.absolute))
        if not any(theirs for _, theirs in pairs):  # a named loss: more of it is another answer
            return not any(mine for mine, _ in pairs) and self.cap >= asked.cap
        as_tight = all(bool(mine) == bool(theirs) and mine <= theirs for mine, theirs in pairs)
        return as_tight and self.beta <= asked.beta and (met or (self.cap >= asked.cap and self.spend >= asked.spend))

    def facts(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class QuantileFound:
    """One answer: public, free to keep; one entry a group.

    Attributes:
        sought: what was looked for.
        value: float64, the quantile.
        lower, upper: float64, the interval that holds it.
        met: bool, whether a target was reached.
        by_rank: bool, whether it was the rank target, of which `value` tells.
    """

    sought: QuantileSought
    value: Float64
    lower: Float64
    upper: Float64
    met: Flags
    by_rank: Flags

    @classmethod
    def of(cls, sought: QuantileSought, state: QuantileState, served: QuantileFound | None) -> QuantileFound:
        """Return what a bisection found, and for groups that an earlier answer serves what that one did."""
        columns = (state.value, state.lower, state.upper, state.met, state.by_rank)
        if served is None:
            return cls(sought, *columns)
        earlier = (served.value, served.lower, served.upper, served.met, served.by_rank)
        return cls(sought, *(np.where(served.met, old, new) for old, new in zip(earlier, columns, strict=True)))

    def serves(self, asked: QuantileSought) -> bool:
        """Tell whether it answers what is asked, as a whole."""
        return self.sought.serves(asked, met=bool(self.met.all()))

    def serving(self, asked: QuantileSought) -> QuantileFound:
        """Return the answer as one to what is asked: `met` says for which groups its intervals and ranks are one.

        An interval serves at its own failure probability, and for the rank that it is about; where only it does, and
        not the rank, its middle is told.
        """
        sure = self.sought.beta <= asked.beta * _NEARLY
        by_rank = self.met & self.by_rank & (0 < self.sought.rank <= asked.rank)
        narrow = within(self.lower, self.upper, asked.relative * _NEARLY, asked.absolute * _NEARLY)
        narrow &= bool(asked.relative or asked.absolute) and self.sought.about_the_same(asked)
        told = by_rank | (self.met & ~self.by_rank)  # there the value was the middle already, but for rounding
        value = np.where(told, self.value, (self.lower + self.upper) / 2)
        return QuantileFound(asked, value, self.lower, self.upper, sure & (by_rank | narrow), by_rank)


@dataclass(frozen=True, slots=True, eq=False)
class QuantileStanding:
    """What stands of a quantile.

    Attributes:
        found: its answers, newest last.
        trail: what a bisection measured for them; None if there is nothing.
    """

    found: tuple[QuantileFound, ...] = ()
    trail: Trail | None = None

    def answer(self, asked: QuantileSought) -> QuantileFound | None:
        """Return the newest answer that serves as a whole, one that met its own target first; or None.

        Where it met no sharper target of its own, a group is told what any answer tells that serves it.
        """
        serving = [one for one in reversed(self.found) if one.serves(asked)]
        found = next((one for one in serving if one.met.all()), serving[0] if serving else None)
        if found is None or found.met.all() or (served := self.served(asked)) is None:
            return found
        return _over(found, served)

    def served(self, asked: QuantileSought) -> QuantileFound | None:
        """Return what earlier answers tell of the groups that they serve, which are those met; None for none of them.

        Of two that serve, the newer one is told.
        """
        found = None
        for one in self.found:
            again = one.serving(asked)
            found = again if found is None else _over(found, again)
        return found if found is not None and found.met.any() else None

    @property
    def newest(self) -> QuantileFound:
        """The newest answer."""
        return self.found[-1]

    def then(self, found: QuantileFound, trail: Trail | None) -> QuantileStanding:
        """Return what stands after one more answer, without those that it serves for, and with another trail."""
        return QuantileStanding(_without_older(self.found, found), trail)


def _over(older: QuantileFound, newer: QuantileFound) -> QuantileFound:
    """Return the newer answer where it serves, the older one elsewhere."""
    columns = ((older.value, newer.value), (older.lower, newer.lower), (older.upper, newer.upper))
    value, lower, upper = (np.where(newer.met, new, old) for old, new in columns)
    by_rank = np.where(newer.met, newer.by_rank, older.by_rank)
    return QuantileFound(newer.sought, value, lower, upper, older.met | newer.met, by_rank)


def _without_older(found: Sequence[QuantileFound], last: QuantileFound) -> tuple[QuantileFound, ...]:
    """Return answers, but those that the last one serves for in each group that they served; then the last one."""
    return (*(one for one in found if not (last.serves(one.sought) and (last.met | ~one.met).all())), last)
