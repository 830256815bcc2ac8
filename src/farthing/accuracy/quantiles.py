"""Quantiles at a named accuracy: a noisy bisection over the leaves of a value range, paid threshold by threshold.

The q-quantile is the first leaf t at which D(t) = #(x <= t) - q n is no longer negative. At each threshold D is
measured with Gaussian noise and refined in looks, until its sign is sure or |D| is surely within the rank target. Each
step halves the range of the value; it stops when a threshold is good, or the range as narrow as was asked, or at the
cap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from scipy.special import ndtri

from farthing.accuracy.ranks import WHOLE, Asked, NoisyRanks, Ranks
from farthing.errors import InvalidTarget
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, ROUNDING_VARIANCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Measure = Callable[[Int64, Int64, Int64], Float64]
    MeasureCount = Callable[[Int64, Int64], Float64]

FIRST_GRAINS: Final = 16
"""The first look where nothing is known: 2^-52 of mu^2, enough to see a sum of 10^8."""

RATIO: Final = 1.5
"""Growth of information from look to look at one threshold."""

CLEARLY: Final = 4.0
"""A count is roughly known when it is this many times its noise."""

RESTART: Final = 0.25
"""A threshold's first look has this part of the information at which the one before was settled."""

START: Final = 4.0
"""The first look with a count has this part of it as its half-width, turned over."""

COUNT_SHARE: Final = 0.1
"""Part of beta that the count may use up."""

LAST_SHARE: Final = 0.6
"""Part of a threshold's beta that is kept for its last look, where most of the money goes."""

COUNT_CAP: Final = 8
"""Each of the two measurements of the count may pay a group's cap divided by this."""

HOPELESS: Final = 4
"""A group is given up when one threshold could cost more than this many caps."""

_UP: Final = 1 + 1e-9


__all__ = ["Asked", "Descent", "NoisyRanks", "QuantileState", "Ranks"]


class QuantileState(NamedTuple):
    """What a descent ends with, one entry a group; all of it released.

    Attributes:
        value: float64, the quantile.
        lower, upper: float64, an interval that holds the true quantile of the bounded, clamped rows.
        met: bool, whether a target was reached.
        paid: int64, grains of mu^2 that a member of the group has paid.
        by_rank: bool, whether it was the rank target: then `value` has a rank that is within it.
        rows: float64, the count that was measured for the rank target; NaN without one.
    """

    value: Float64
    lower: Float64
    upper: Float64
    met: Flags
    paid: Int64
    by_rank: Flags
    rows: Float64


@dataclass(frozen=True, slots=True)
class Descent:
    """The plan of a noisy bisection, the same for all groups of a question.

    A group is done as soon as one of its targets is met: the rank of `asked`, or a value interval with half-width at
    most max(relative |value|, absolute).

    Attributes:
        asked: which quantile, and its rank target.
        beta: allowed chance of a miss, a group.
        cap_grains: the most that a group may pay.
        relative: of the value, in [0, 1).
        absolute: in units of the value.

    Guarantee: with probability at least 1 - beta, [lower, upper] holds the quantile, and where `by_rank` the rank of
        `value` is within the rank target of q: at most (q + rank) n rows lie below it, at least (q - rank) n.
    Proof: docs/proofs/accuracy.quantiles.md.
    Assumes: `measure` and `measure_count` add independent Gaussian noise of the scale that the grains pay for.
    Rounds: the rank target down to what the released count allows.

    >>> descent = Descent(Asked(0.5, 0.0, 1024.0, leaves_log2=10, rank=0.05), beta=0.05, cap_grains=1 << 52)
    >>> exact = lambda thresholds, grains, groups: thresholds + 1 - 512.0  # one row a leaf, no noise
    >>> state = descent.run(exact, lambda grains, groups: np.full(len(groups), 1024.0), groups=1)
    >>> state.value.tolist(), state.met.tolist(), state.by_rank.tolist()
    ([512.0], [True], [True])
    """

    asked: Asked
    beta: float
    cap_grains: int
    relative: float = 0.0
    absolute: float = 0.0

    def __post_init__(self) -> None:
        if not (self.asked.rank or self.relative or self.absolute):
            raise InvalidTarget(
                "there is no accuracy target",
                rule="a rank, a relative or an absolute target",
                next_step="say how far off the rank may be, as in rank=0.01",
            )
        if not 0 <= self.relative < 1 or not self.absolute >= 0 or not 0 < self.beta < 1:
            raise InvalidTarget(
                "the target is out of range",
                rule="0 <= relative < 1, absolute >= 0, 0 < beta < 1",
                got=f"relative={self.relative}, absolute={self.absolute}, beta={self.beta}",
                next_step="relative=0.05 is 5 %",
            )
        if not 1 <= self.cap_grains <= MOST_GRAINS:
            raise InvalidTarget(
                "the cap is out of range",
                rule=f"1 <= cap_grains <= {MOST_GRAINS}",
                got=self.cap_grains,
                next_step="cap a group at what is left of the budget",
            )

    def run(
        self,
        measure: Measure,
        measure_count: MeasureCount | None = None,
        *,
        groups: int,
        progress: Callable[[int, int, int, float], None] | None = None,
    ) -> QuantileState:
        """Follow the plan; every decision is made from what the two functions returned.

        Args:
            measure: (thresholds int64[n], grains int64[n], groups int64[n]) -> float64[n], fresh noisy D of these
                groups, in rows: `Ranks.lane` of sensitivity `asked.sensitivity`, times 2^-20, plus noise of standard
                deviation sensitivity / sqrt(grains 2^-56).
            measure_count: (grains, groups) -> float64[n], fresh noisy rows of these groups, of sensitivity
                `asked.max_rows`; needed with a rank target.
            groups: how many.
            progress: called after each round of looks as progress(looks, groups, done, widest half-width).
        """
        run = _Run.of(self, groups)
        if self.asked.rank:
            if measure_count is None:
                raise InvalidTarget(
                    "a rank target needs the count", rule="measure_count", got="none", next_step="pass measure_count"
                )
            run.count(measure_count)
        looks = 0
        while (active := np.flatnonzero(run.active)).size:
            run.look(measure, active)
            looks += 1
            if progress is not None:
                state = run.state()
                progress(looks, groups, groups - int(run.active.sum()), float((state.upper - state.lower).max()) / 2)
        return run.state()

    def z(self, look: Int64) -> Float64:
        """Return the one-sided critical values of a threshold's early looks, counted from 0."""
        share = self.beta * self._descending / self.asked.leaves_log2 * (1 - LAST_SHARE)
        return np.asarray(-ndtri(_spent(share, look)))

    @property
    def z_last(self) -> float:
        """The one-sided critical value of a threshold's last look."""
        return float(-ndtri(self.beta * self._descending / self.asked.leaves_log2 * LAST_SHARE))

    @property
    def _descending(self) -> float:
        """Return the part of beta that the thresholds share."""
        return 1 - COUNT_SHARE if self.asked.rank else 1.0

    @property
    def per_grain(self) -> float:
        """Information on D, in rows, that one grain buys."""
        return float(GRAIN) / (self.asked.sensitivity / WHOLE) ** 2 / ROUNDING_VARIANCE

    @property
    def count_per_grain(self) -> float:
        """Information on the count that one grain buys."""
        return float(GRAIN) / self.asked.max_rows**2 / ROUNDING_VARIANCE

    @property
    def count_width(self) -> float:
        """How far the count may be off, as a share of it: where a better one would cost what it saves."""
        return float(
            min(0.5, (self.asked.slack * self.asked.max_rows / (2 * self.asked.sensitivity / WHOLE)) ** (2 / 3))
        )

    def last_grains(self, slack: Float64) -> Int64:
        """Return the grains whose half-width is half of the slack, in rows: they settle any threshold."""
        with np.errstate(divide="ignore", over="ignore"):
            grains = np.ceil((2 * self.z_last / slack) ** 2 / self.per_grain * _UP)
        return np.minimum(grains, float(MOST_GRAINS)).astype(np.int64)

    def count_grains(self, rows: int) -> int:
        """Return the grains that count a group of so many rows as well as its rank target is worth."""
        z = float(-ndtri(_spent(self.beta * COUNT_SHARE, 0)))
        return min(math.ceil((z / (self.count_width * rows)) ** 2 / self.count_per_grain), MOST_GRAINS)

    @property
    def worst(self) -> int:
        """The most that a group pays: its cap, since nothing is known of its rows beforehand."""
        return self.cap_grains

    def typical(self, rows: int) -> int:
        """Return about what a group of so many rows pays, if they are spread evenly from lower to upper.

        >>> asked = Asked(0.5, 0.0, 1024.0, leaves_log2=10, rank=0.05)
        >>> few, many = (Descent(asked, 0.05, 1 << 60).typical(rows) for rows in (10_000, 20_000))
        >>> 2 < few / many < 8
        True
        """
        share = self.asked.steps / WHOLE - 0.37 / self.asked.leaves

        def evenly(thresholds: Int64, _grains: Int64, _groups: Int64) -> Float64:
            return np.asarray(rows * ((thresholds + 1) / self.asked.leaves - share))

        def full(_grains: Int64, groups: Int64) -> Float64:
            return np.full(len(groups), float(rows))

        return int(self.run(evenly, full, groups=1).paid[0])


def _spent(beta: float, look: Any) -> Any:
    """Return the share of beta for a look counted from 0: 1/2, 1/6, 1/12, ... add up to 1."""
    return beta / ((look + 1) * (look + 2))


@dataclass(slots=True)
class _Run:
    """Where each group stands; all arrays have one entry a group."""

    plan: Descent
    low: Int64
    high: Int64
    paid: Int64
    rows: Float64
    slack: Float64  # rows by which D may be off zero; 0 without a rank target
    active: Flags
    good: Flags  # the present threshold is within the rank target
    mean: Float64  # of D at the present threshold
    here: Int64  # grains at the present threshold
    looks: Int64  # at the present threshold
    first: Int64  # grains of a threshold's first look

    @classmethod
    def of(cls, plan: Descent, groups: int) -> _Run:
        """Return the start: the whole range, nothing measured."""
        none, nothing, no = np.zeros(groups, np.int64), np.zeros(groups), np.zeros(groups, np.bool_)
        run = cls(
            plan=plan, low=none.copy(), high=none + plan.asked.leaves - 1, paid=none.copy(), rows=nothing + np.nan,
            slack=nothing.copy(), active=~no, good=no.copy(), mean=nothing.copy(), here=none.copy(),
            looks=none.copy(), first=none + min(FIRST_GRAINS, plan.cap_grains),
        )  # fmt: skip
        run.active = ~run.narrow(np.arange(groups))
        return run

    def count(self, measure_count: MeasureCount) -> None:
        """Measure the rows of each group: roughly, then as well as the rough count says is worth it.

        Only the last measurement is read, so its own critical value covers it, however its size was chosen.
        """
        plan = self.plan
        most = max(1, plan.cap_grains // COUNT_CAP)
        rough = self._rough_count(measure_count, most)
        self.rows, half = np.zeros(len(self.low)), np.full(len(self.low), np.inf)
        active, attempt = np.flatnonzero(self.active), 0
        while active.size:
            z = float(-ndtri(_spent(plan.beta * COUNT_SHARE, attempt)))
            wanted = (z / (plan.count_width * rough[active])) ** 2 / plan.count_per_grain
            grains = np.clip(wanted, 1, most).astype(np.int64)
            self.rows[active] = measure_count(grains, active)
            self.paid[active] += grains
            half[active] = z / np.sqrt(grains * plan.count_per_grain)
            again = (half[active] > 2 * plan.count_width * self.rows[active]) & (grains < most)
            rough[active] = np.maximum(np.minimum(rough[active] / 2, self.rows[active]), half[active] / z)
            active, attempt = active[again & (self.paid[active] + most <= plan.cap_grains // 2)], attempt + 1
        self.slack = plan.asked.slack * np.maximum(self.rows - half, 0.0)
        self._begin(np.maximum(self.rows + half, 1.0))

    def _rough_count(self, measure_count: MeasureCount, most: int) -> Float64:
        """Return the rows as they are first seen clearly above the noise, at least one noise each."""
        rows, ahead, active = np.zeros(len(self.low)), min(FIRST_GRAINS, most), np.flatnonzero(self.active)
        while True:
            grains = np.asarray(ahead - self.paid[active])
            rows[active] += (measure_count(grains, active) - rows[active]) * (grains / ahead)
            self.paid[active] = ahead
            noise = 1 / math.sqrt(ahead * self.plan.count_per_grain)
            active = active[rows[active] < CLEARLY * noise]
            if not active.size or ahead == most:
                return np.maximum(rows, noise)
            ahead = min(2 * ahead, most)

    def _begin(self, rows: Float64) -> None:
        """Choose the first look by the most rows there may be; give up groups whose target is far beyond the cap."""
        plan = self.plan
        first = (START * plan.z_last / rows) ** 2 / plan.per_grain
        self.first = np.clip(first, min(FIRST_GRAINS, plan.cap_grains), plan.cap_grains).astype(np.int64)
        if not (plan.relative or plan.absolute):
            self.active &= plan.last_grains(plan.asked.slack * rows) <= min(HOPELESS * plan.cap_grains, MOST_GRAINS - 1)

    def look(self, measure: Measure, at: Int64) -> None:
        """Take one look at the present threshold of the groups `at`; move on where it settles them."""
        plan, here = self.plan, self.here[at]
        most = np.minimum(plan.last_grains(self.slack[at]), plan.cap_grains - self.paid[at] + here)
        grown = np.ceil(np.minimum(here * RATIO, float(MOST_GRAINS))).astype(np.int64)
        ahead = np.minimum(np.where(here > 0, grown, self.first[at]), most)
        fresh = measure(self.middle[at], ahead - here, at)
        self.mean[at] += (fresh - self.mean[at]) * ((ahead - here) / ahead)
        self.paid[at] += ahead - here
        self.here[at] = ahead
        z = np.where(ahead == most, plan.z_last, plan.z(self.looks[at]))
        self.looks[at] += 1
        self._settle(at, z / np.sqrt(ahead * plan.per_grain), ahead == most)

    def _settle(self, at: Int64, half: Float64, last: Flags) -> None:
        """Move to the next threshold where the sign is sure; stop where a target or the cap is reached."""
        mean, middle = self.mean[at], self.middle[at]
        good = np.abs(mean) + half <= self.slack[at]
        left, right = ~good & (mean > half), ~good & (mean < -half)
        self.high[at[left]], self.low[at[right]] = middle[left], middle[right] + 1
        moved = left | right
        self.good[at] = good
        self.active[at] = ~good & (moved | ~last) & (self.paid[at] < self.plan.cap_grains) & ~self.narrow(at)
        on = at[moved]
        self.first[on] = np.maximum((self.here[on] * RESTART).astype(np.int64), 1)
        self.here[on], self.looks[on], self.mean[on] = 0, 0, 0.0

    @property
    def middle(self) -> Int64:
        """The present thresholds."""
        return (self.low + self.high) // 2

    def narrow(self, at: Int64) -> Flags:
        """Return which ranges need no further bisection: one leaf, or within the value target."""
        return np.asarray((self.low[at] == self.high[at]) | self.within(at))

    def within(self, at: Int64) -> Flags:
        """Return where every number in the range is within the value target of its middle."""
        lower, upper = self.plan.asked.edge(self.low[at]), self.plan.asked.edge(self.high[at] + 1)
        least: Float64 = np.where((lower <= 0) & (upper >= 0), 0.0, np.minimum(np.abs(lower), np.abs(upper)))
        return np.asarray((upper - lower) / 2 <= np.maximum(self.plan.relative * least, self.plan.absolute))

    def state(self) -> QuantileState:
        """Return what there is to tell."""
        asked = self.plan.asked
        lower, upper = asked.ends(self.low, self.high)
        by_rank = (self.good | (self.low == self.high)) if asked.rank else np.zeros(len(self.low), np.bool_)
        middle = (asked.edge(self.low) + asked.edge(self.high + 1)) / 2
        value = np.where(self.good, asked.edge(self.middle + 1), middle)
        met = by_rank | self.within(np.arange(len(self.low)))
        return QuantileState(value, lower, upper, met, self.paid, by_rank, self.rows)
