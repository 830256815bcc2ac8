"""A mean or a variance alone under a pure budget: looks on one Laplace chain, in one shape, until one is good enough.

Rows, sum and squares are shown in public proportions at levels of a fixed grid. The first look whose interval is within
the target is the last, and of all looks the last alone is paid: what was shown coarsely before costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.joint_prices import Flags, Floats, Ints, in_blocks
from farthing.accuracy.laplace_intervals import laplace_interval
from farthing.accuracy.laplace_reach import LaplaceReach
from farthing.accuracy.laplace_state import STANDS, LaplaceState, ShownLanes
from farthing.accuracy.ratio_looks import BETAS
from farthing.accuracy.ratio_shapes import tilts
from farthing.accuracy.reach import ENDS, judged_at
from farthing.accuracy.statistics import RatioStatistic, VarianceStatistic

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.laplace_prices import LaplacePrices

    Show = Callable[[Ints, Ints], Ints]
    Progress = Callable[[LaplaceState, int], None]

GROWTH: Final = 1.03
"""Of the level, from one look of the grid to the next."""

KINDS: Final = (RatioStatistic, VarianceStatistic)

RATIO_PARTS: Final[tuple[int, ...]] = (1, 2)
"""The parts of a level that go to rows and sum."""

VARIANCE_PARTS: Final[tuple[int, ...]] = (5, 7, 8)
"""The parts that go to rows, sum and squares."""

SINGLE: Final = 0.91
"""The part of beta at which a look's interval is made, where what a target allows hardly changes within its width."""

TILTED: Final = 1.6
"""Where what a target allows changes by the part t of itself, the interval is made at exp(-TILTED t^2) times SINGLE."""

USUAL: Final = 0.05
UNSURE: Final = 0.2
"""For a beta above USUAL, that part is multiplied by (USUAL/beta)^UNSURE."""

MOST_TILT: Final = 0.8
"""The largest t that this is held against simulations for: rules for coarser targets are made for a sharper one."""

OTHER_SIDE: Final = 0.55
"""t is multiplied by this at the far end from 0, where a relative target rules and the tangent bends the other way."""

COARSEST_SPREAD: Final = 0.6
"""The coarsest relative target that a rule for a variance is made for; for its root half of that."""

FUTILE_SHARE: Final = 0.02
"""The part of beta for groups that are given up: shared by the looks at which they may be, of earlier asks, too."""

NO_ROOM_SHARE: Final = 0.01
"""The part of beta at which a group is told that may pay no more than it has paid."""

_BEGINS: Final = 14  # the first look is 2^-14 of the cap: earlier ones, of very wide noise, would take long to draw
_FIRST: Final = 1 << 20  # farthings of the first look, at least
_SURELY: Final = 2.0  # a group is given up where even a large count would need so many times what it may pay,
_LATE: Final = 2.1  # and it has paid that over this: what vague numbers say of prices misleads
_JUMPS: Final = (32, 8, 3)  # looks that are skipped where none of them would be the last
_FAR: Final = 4.0  # standard deviations of what a jump adds
_HALVINGS: Final = 60
_NEARLY: Final = 1 + 1e-9
_TINY: Final = 1e-100
_UNKNOWN: Final = 1e40  # the scale of what was not shown, where only prices are told
_FOREVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class LaplaceLooks:
    """How the groups of one mean, variance or standard deviation are shown until they are within their target.

    Attributes:
        prices: the target that the rule is made for: the one that is asked, or a sharper one.
        told: the failure probability at which a look's interval is made.
        parts: the parts of a level that each lane gets.
        least: the fewest farthings of a lane.

    Guarantee: the interval of every group misses with probability beta at most, for targets and caps that do not depend
        on earlier answers of the question.
    Proof: docs/proofs/accuracy.laplace_looks.md; what choosing the last look costs is computed, not proved.
    Assumes: `show` carries one chain of two-sided geometric noise on for each lane, independent of the others, as
        `mechanisms.laplace.LaplaceChain` does.
    Rounds: levels to whole farthings.
    """

    prices: LaplacePrices
    told: float
    parts: tuple[int, ...]
    least: int

    @classmethod
    def of(cls, prices: LaplacePrices, least: int, held: float = 0.0) -> LaplaceLooks | None:
        """Return the rule of a question; None for questions other than a mean or a variance alone with a target.

        Args:
            prices: the targets.
            least: the fewest farthings of a lane.
            held: the failure probability of the looks that are gone on from, which is not raised; 0 for none.
        """
        only, (relative, absolute) = prices.statistics[0], prices.targets[0]
        parts = _parts(prices)
        if (
            parts is None
            or not isinstance(only, KINDS)
            or not (relative or absolute)
            or not BETAS[0] <= prices.beta <= BETAS[1]
        ):
            return None
        tilt, most = _tilt(only, relative, absolute)
        part = min(1.0, most / max(tilt, _TINY))
        share = SINGLE * math.exp(-TILTED * (part * tilt) ** 2) if isinstance(only, RatioStatistic) else SINGLE
        told = prices.beta * share * min(1.0, USUAL / prices.beta) ** UNSURE
        told = min(told, held) if held else told
        return cls(replace(prices, targets=((part * relative, part * absolute),)), told, parts, least)

    @property
    def target(self) -> tuple[float, float]:
        """The relative and the absolute target that the rule is made for."""
        return self.prices.targets[0]

    def run(
        self, state: LaplaceState, show: Show, progress: Callable[[LaplaceState, int], None] | None
    ) -> LaplaceState:
        """Show every group until its interval is within the target, it is given up, or the cap is reached.

        Args:
            state: what was shown before, by looks in this shape or not at all; its promise is the present one. Groups
                that the last one gave up stand at a look that was fixed beforehand, and are judged there first.
            show: shows some groups again, as `LaplaceMeasures.run` has it.
            progress: told (the state, groups done) after looks at which groups were done.
        """
        groups = state.claimed.level.shape[1]
        shape = np.array(self.parts)[:, None]
        value, ticks = state.claimed.value.copy(), state.claimed.level[0] // self.parts[0]
        lower, upper = np.full((1, groups), -np.inf), np.full((1, groups), np.inf)
        most = self.prices.cap // sum(self.parts)
        active, public, reach = np.arange(groups), (state.made == STANDS) & (ticks > 0), self.reach
        stands, stop = public.copy(), FUTILE_SHARE / (ENDS * max(state.promises, 1))

        def now() -> LaplaceState:
            """Return what was shown."""
            return replace(
                state, claimed=ShownLanes(value.copy(), shape * ticks), shape=np.where(ticks > 0, shape, 0),
                lower=lower.copy(), upper=upper.copy(), looked=self.told, made=np.where(stands, STANDS, 0),
            )  # fmt: skip

        while len(active):
            low, high, fits = self._intervals(value[:, active], ticks[active], self.told)
            fits &= ticks[active] > 0
            ends = public[active] & ~fits
            ends[ends] = self._hopeless(value[:, active[ends]], ticks[active[ends]], most, reach)
            stuck = ~fits & ~ends & (ticks[active] >= most) & (ticks[active] > 0)
            stands[active] = ends
            for some, beta in ((ends, stop), (stuck, NO_ROOM_SHARE)):
                if some.any():
                    again = self._intervals(value[:, active[some]], ticks[active[some]], beta * self.prices.beta)
                    low[some], high[some] = again[0], again[1]
            lower[0, active], upper[0, active] = low, high
            done = fits | ends | (ticks[active] >= most)
            if progress is not None and done.any() and ticks.any():
                progress(now(), groups - int((~done).sum()))
            active = active[~done]
            if len(active):
                after = self._next(value[:, active], ticks[active], most)
                public[active] = np.isin(after, _public(most))
                value[:, active] = show(shape * after, active)
                ticks[active] = after
        return now()

    def typical(self, size: float) -> int:
        """Return about the farthings that a group of `size` rows pays from scratch."""
        (only,) = self.prices.statistics
        values = np.zeros((len(self.parts), 1))
        for lane, value in only.profile(size).items():
            values[lane] = value
        least, most = 1.0, float(self.prices.cap // sum(self.parts))
        for _ in range(_HALVINGS):
            middle = math.sqrt(least * max(most, 1.0))
            wide = self._wide(values, self._scales(np.array([middle])))[0][0] > 1
            least, most = (middle, most) if wide else (least, middle)
        return int(min(self.prices.cap, max(1.0, most * sum(self.parts))))

    def _scales(self, ticks: Ints | Floats) -> Floats:
        """Return the scales of noise after so many ticks, float64[lanes, n]; infinite before any."""
        return self.prices.scales(np.array(self.parts)[:, None] * ticks)

    def _intervals(self, value: Ints, ticks: Ints, beta: float) -> tuple[Floats, Floats, Flags]:
        """Return the lower and upper ends of looks, float64[n], and where they are within the target, bool[n]."""

        def ends(value: Ints, ticks: Ints) -> Floats:
            excess, low, high = self._wide(self.prices.values(value), self._scales(ticks[0]), beta)
            return np.stack([excess, low, high])

        excess, low, high = in_blocks(ends, value, ticks[None])
        if isinstance(self.prices.statistics[0], RatioStatistic):
            low, high = np.clip(low, *self._range), np.clip(high, *self._range)
        return low, high, np.asarray(excess <= _NEARLY)

    def _wide(self, values: Floats, scales: Floats, beta: float | None = None) -> tuple[Floats, Floats, Floats]:
        """Return by what factor looks are too wide to be the last, and their ends; infinite where nothing is known.

        A mean's set is not cut to the range for that: else noise that pushes it over an end would end looks early.
        """
        (only,), steps = self.prices.statistics, 2 * np.array(self.prices.step)[:, None]
        if isinstance(only, RatioStatistic):
            only = replace(only, lower=-math.inf, upper=math.inf)
        low, high = laplace_interval(only, values, scales, steps, self.told if beta is None else beta)
        known = np.isfinite(high - low)
        seen = np.where(known, low, 0.0)[None], np.where(known, high, 1.0)[None]
        return np.where(known, self.prices.prices.ratio(*seen)[0], np.inf), low, high

    @property
    def _range(self) -> tuple[float, float]:
        """The least and the largest that the answer can be; a sample variance may be more."""
        (only,) = self.prices.statistics
        if isinstance(only, RatioStatistic):
            return only.lower, only.upper
        assert isinstance(only, VarianceStatistic)  # noqa: S101  # `of` makes sure
        return 0.0, only.half if only.root else only.half**2

    @property
    def reach(self) -> LaplaceReach:
        """What groups have to hold to be within their target."""
        scale = self._scales(np.ones(1))[:, 0]
        return LaplaceReach.of(self.prices.statistics[0], scale, self.prices.beta, lambda *look: self._wide(*look)[0])

    def _hopeless(self, value: Ints, ticks: Ints, most: int, reach: LaplaceReach) -> Flags:
        """Return which groups surely need more than they may pay, or have paid it."""

        def price(value: Ints, ticks: Ints) -> Floats:
            values, late = self.prices.values(value), _LATE * ticks[0] >= most
            needed = self.prices.needed(values, self._scales(ticks[0]), self.told).sum(axis=0)
            return np.where(reach.too_small(values, ticks[0], most), np.inf, np.where(late, needed, 0.0))

        if not len(ticks):
            return np.zeros(0, np.bool_)
        return np.asarray((in_blocks(price, value, ticks[None]) > _SURELY * self.prices.cap) | (ticks >= most))

    def _next(self, value: Ints, ticks: Ints, most: int) -> Ints:
        """Return the ticks of the next looks: of the grid, farther where none between would be the last."""
        steps = in_blocks(self._skipped, value, ticks[None]).astype(np.int64)
        index = np.floor(np.log(np.maximum(ticks, 1)) / math.log(GROWTH) + 1e-6).astype(np.int64)
        first = max(-(-self.least // min(self.parts)), _FIRST // sum(self.parts), most >> _BEGINS)
        after = np.where(ticks > 0, np.maximum(_grid()[index + steps], ticks + 1), first)
        fixed = _public(most)
        limit = np.append(fixed, _FOREVER)[np.searchsorted(fixed, ticks, side="right")]
        return np.asarray(np.minimum(after, np.minimum(limit, most)))

    def _skipped(self, value: Ints, ticks: Ints) -> Floats:
        """Return how many looks of the grid further the next ones are; ticks are int64[1, n]."""
        values, scales = self.prices.values(value), np.minimum(self._scales(ticks[0]), _UNKNOWN)
        doubt = self.prices.prices.doubt(values, 2 * scales**2)
        steps, rest, (least, most) = np.ones(ticks.shape[1]), np.flatnonzero(ticks[0] > 0), self._range
        for jump in _JUMPS:
            growth = GROWTH**jump
            spread = _FAR * doubt[rest] * math.sqrt(1 - growth**-2)
            excess, low, high = self._wide(values[:, rest], scales[:, rest] / growth)
            vague = (low <= least) & (high >= most) & (excess > 1)  # nothing is known then, either
            short = vague | (excess > 1 + spread)
            steps[rest[short]], rest = jump, rest[~short]
        return steps


def _parts(prices: LaplacePrices) -> tuple[int, ...] | None:
    """Return the parts of a level that lanes get; None for questions other than a mean or a variance alone."""
    only, parts = prices.statistics[0], VARIANCE_PARTS
    if isinstance(only, RatioStatistic):
        known, parts = only.centred, RATIO_PARTS
    elif isinstance(only, VarianceStatistic):
        known = not (only.root and prices.targets[0][1])  # near 0 a root may change by any part
    else:
        return None
    if not known or len(prices.statistics) > 1 or sorted(only.reads) != list(range(len(prices.unit))):
        return None
    return tuple(part for _, part in sorted(zip(only.reads, parts, strict=True)))


def _tilt(only: RatioStatistic | VarianceStatistic, relative: float, absolute: float) -> tuple[float, float]:
    """Return how much of itself the width that a target allows changes within it, at most; and the most it may.

    >>> mean = RatioStatistic(0, 1, 50.0, 0.0, 100.0)
    >>> [round(_tilt(mean, *target)[0], 2) for target in ((0.1, 0.0), (0.3, 0.0), (0.0, 5.0))]
    [0.22, 0.67, 0.2]
    """
    if isinstance(only, VarianceStatistic):
        return relative * (2 if only.root else 1), COARSEST_SPREAD
    half, shape = only.half, (RATIO_PARTS[0] / RATIO_PARTS[1]) ** 2
    found = tilts(relative, absolute / half, shape, only.centre / half)
    value = np.linspace(-1, 1, len(found)) + only.centre / half
    other = (found * np.sign(value) < 0) & (relative * np.abs(value) >= absolute / half)
    return float(np.abs(np.where(other, OTHER_SIDE, 1.0) * found).max()), MOST_TILT


@cache
def _grid() -> Ints:
    """Return the ticks of all looks that there can be."""
    looks = math.ceil(60 * math.log(2) / math.log(GROWTH)) + 1
    ticks = np.floor(GROWTH ** np.arange(looks + max(_JUMPS) + 2) + 0.5)
    return np.asarray(np.minimum(ticks, float(_FOREVER)), np.int64)


def _public(most: int) -> Ints:
    """Return the ticks at which groups may be given up, rising; the last is all that a group may pay."""
    return np.unique(np.maximum(judged_at(np.array(most)), 1))
