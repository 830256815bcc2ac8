"""Quantiles under a pure budget: thresholds of which Laplace chains show the rows on both sides.

A scout guesses where to look (`quantile_scouts`); where it seems to have arrived, a fresh chain gets finer until it
proves that the rank is within the target, and pays for its last look only. By value, rounds of a few thresholds are
shown together, until two of them are proved that hold the quantile between them (`quantile_rounds`). What was shown is
left behind (`Trail`): a sharper question goes on from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy.quantile_bisection import QuantileState, state_of
from farthing.accuracy.quantile_chain_run import LEVELS, QuantileChainRun
from farthing.accuracy.quantile_round_run import QuantileRoundRun
from farthing.accuracy.quantile_trail import Trail
from farthing.errors import InvalidTarget
from farthing.mechanisms.laplace import MOST_FARTHINGS, LaplaceChain, Shown
from farthing.rounding import FARTHING

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.quantile_chain_run import Show, ShownSides
    from farthing.accuracy.quantile_ranks import QuantileGoal, Ranks
    from farthing.accuracy.quantile_trail import ShowBins
    from farthing.mechanisms.exponential import BitSource

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

INTERVAL_SHARE: Final = 0.1
"""Part of beta that the interval beside a rank may use up."""

FINER: Final = 0.7
"""Each next level of an attempt has this part of what the level before had."""

TYPICAL: Final = 13.0
"""About what a search needs, of even, normal and skewed data: epsilon times the slack."""

TYPICAL_VALUE: Final = 17.0
"""The same by value: epsilon times the rows within the target of the quantile."""

_LARGEST_SCALE: Final = 1 << 40  # the noise's scale in rows: what is shown is exact in float64, but for e^-8000


@dataclass(frozen=True, slots=True)
class QuantileChains:
    """The plan of a search for a quantile by rank or by value, the same for all groups of a question.

    By rank a group is done when its rank is proved; by value, when its interval has a half-width of at most
    max(relative |value|, absolute).

    Attributes:
        asked: which quantile, and its rank target, if there is one.
        beta: allowed chance of a miss, a group.
        cap: the farthings of epsilon that a group may pay, at most.
        spend: whether groups that are too small for their target go on to their cap.
        relative: of the value, in [0, 1); 0 for none.
        absolute: in units of the value; 0 for none.

    Guarantee: with probability at least 1 - beta, [lower, upper] holds the quantile, and where `by_rank` the rank of
        `value` is within the rank target of q: at most (q + rank) n rows lie below it, at least (q - rank) n. So for
        each of several runs, one after the other on the same trail.
    Proof: docs/proofs/accuracy.quantile_chains.md.
    Assumes: `show` carries on Laplace chains, as `ShownRanks` does; targets and caps that were named without looking
        at what is held.
    Rounds: reaches up, by one row for the steps of the noise.

    >>> from farthing.accuracy.quantile_ranks import QuantileGoal
    >>> goal = QuantileGoal(0.5, 0.0, 1024.0, leaves_log2=10, rank=0.05)
    >>> search = QuantileChains(goal, beta=0.05, cap=1 << 40)
    >>> exact = lambda place, held, farthings, groups: ((place + 1) * 8.0, 8192.0 - (place + 1) * 8.0)
    >>> state = search.run(exact, groups=1)
    >>> state.value.tolist(), state.met.tolist()
    ([512.0], [True])
    """

    asked: QuantileGoal
    beta: float
    cap: int
    spend: bool = False
    relative: float = 0.0
    absolute: float = 0.0

    def __post_init__(self) -> None:
        one = bool(self.asked.rank) != self.by_value
        if not one or not 0 < self.beta < 1 or not 1 <= self.cap <= MOST_FARTHINGS:
            raise InvalidTarget(
                "a pure budget finds quantiles by rank or by value",
                rule=f"a rank target or one of the value, 0 < beta < 1, 1 <= cap <= {MOST_FARTHINGS}",
                got=f"rank={self.asked.rank}, beta={self.beta}, cap={self.cap}",
                next_step="say how far off the rank may be, as in rank=0.01",
            )
        if not 0 <= self.relative < 1 or not self.absolute >= 0:
            raise InvalidTarget(
                "the target is out of range",
                rule="0 <= relative < 1, absolute >= 0",
                got=f"relative={self.relative}, absolute={self.absolute}",
                next_step="relative=0.05 is 5 %",
            )

    @property
    def by_value(self) -> bool:
        """Whether a narrow interval of the value is an answer."""
        return self.relative > 0 or self.absolute > 0

    def run(
        self,
        show: Show | ShowBins | None,
        *,
        groups: int,
        held: Trail | None = None,
        settled: Flags | None = None,
        progress: Callable[[int, int, int, float], None] | None = None,
    ) -> QuantileState:
        """Follow the plan; every decision is made from what `show` returned, now or in earlier runs.

        Args:
            show: (thresholds, held, farthings, groups) -> the rows at or below the thresholds of these groups and those
                above, as chains show them that were at `held` and go on to so many farthings. By value the rows in the
                bins of rounds, as `joint_chains.ShownJointRanks` shows them. None to measure nothing: then `waits` says
                which groups need more.
            groups: how many.
            held: what earlier runs of this question were shown.
            settled: bool[groups], groups that are left alone.
            progress: called after each round of looks as progress(looks, groups, done, widest half-width).
        """
        trail = Trail.nothing(groups) if held is None else held
        way: Any = QuantileRoundRun if self.by_value else QuantileChainRun
        run = way.of(self, trail, np.zeros(groups, np.bool_) if settled is None else settled, show)
        looks = 0
        while (active := np.flatnonzero(run.active)).size:
            run.look(active)
            looks += 1
            if progress is not None:
                state = state_of(self.asked, run)
                progress(looks, groups, groups - int(run.active.sum()), float((state.upper - state.lower).max()) / 2)
        return state_of(self.asked, run)

    @property
    def centre(self) -> float:
        """The share of the rows that is looked for."""
        return self.asked.lane_steps * 2.0**-20 + self.asked.beside

    @property
    def upper(self) -> float:
        """The largest share of the rows that may lie at or below the answer."""
        return min(self.centre + self.asked.slack, 1.0)

    @property
    def lower(self) -> float:
        """The least share."""
        return max(self.centre - self.asked.slack, 0.0)

    @property
    def lowest(self) -> int:
        """The first of `LEVELS` at which the noise can be drawn."""
        return int(np.searchsorted(LEVELS, math.ceil(self.asked.max_rows / FARTHING / _LARGEST_SCALE)))

    def share(self, part: Float64, later: Int64) -> Float64:
        """Return the chance of a miss that a chain with this part of beta may use up at a level, counted from 0."""
        each = (1 - FINER) * FINER ** np.maximum(later, 0)
        return np.asarray(self.beta * (1 - INTERVAL_SHARE) * part * each)

    def beside(self, chain: Int64, later: Int64) -> Float64:
        """Return the same for the interval, of any chain at any level."""
        each = 1.0 / ((chain + 1) * (chain + 2)) / ((later + 1) * (later + 2))
        return np.asarray(self.beta * INTERVAL_SHARE * each)

    def typical(self, rows: float) -> int:
        """Return about the farthings that a group of so many rows pays."""
        asked, share = self.asked, self.centre
        if self.by_value:
            value = asked.lower + share * (asked.upper - asked.lower)
            half = max(self.absolute, self.relative * abs(value) / (1 + self.relative))
            near = half / (asked.upper - asked.lower) * max(rows, 1.0)
            wanted = TYPICAL_VALUE * math.sqrt(2 * (share**2 + (1 - share) ** 2)) * asked.max_rows / max(near, 1e-9)
        else:
            wanted = TYPICAL * 2 * max(share, 1 - share) * asked.max_rows / (asked.slack * max(rows, 1.0))
        return math.ceil(min(wanted / FARTHING, self.cap))


@dataclass(frozen=True, slots=True, eq=False)
class ShownRanks:
    """The rows on both sides of thresholds, shown by Laplace chains: what a search looks through.

    Attributes:
        ranks: raw; never leaves this object.
        max_rows: the most rows of one unit in a group.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: what a chain showed of a group is epsilon-DP ex post for the epsilon of its last look; of a group, the
        chains' epsilons add up, and a unit in K groups pays for the K most expensive.
    Proof: docs/proofs/accuracy.quantile_chains.md; docs/proofs/mechanisms.laplace.md for a chain.
    Assumes: add/remove one unit moves at most `max_rows` rows of a group, each of which is on one side of a threshold;
        a chain is carried on once.
    Rounds: rates down.

    >>> from farthing.accuracy.quantile_chain_run import ShownSides
    >>> from farthing.accuracy.quantile_ranks import Ranks
    >>> ranks = Ranks.of(np.array([0, 0]), np.array([0, 3]), np.array([300, 500]), groups=1, leaves_log2=2)
    >>> none, at = ShownSides(np.zeros(1), np.zeros(1), np.zeros(1, np.int64)), np.array([0])
    >>> below, above = ShownRanks(ranks, 1).show(np.array([2]), none, np.array([1 << 46]), at)
    >>> below.tolist(), above.tolist()
    ([300.0], [500.0])
    """

    ranks: Ranks
    max_rows: int
    bits: BitSource | None = None

    def show(self, thresholds: Int64, held: ShownSides, farthings: Int64, groups: Int64) -> tuple[Float64, Float64]:
        """Carry on chains, one for each of some groups: see `QuantileChains.run`."""
        below = self.ranks.below(thresholds, groups)
        truth = np.concatenate([below, self.ranks.rows[groups] - below])
        last = np.concatenate([held.below, held.above]).astype(np.int64)
        level = np.concatenate([held.farthings, held.farthings])
        chain = LaplaceChain(truth, self.max_rows, bits=self.bits)
        shown = chain.measure(Shown(np.where(level > 0, last, 0), level), np.concatenate([farthings, farthings]))
        sides = shown.value.astype(np.float64)
        return sides[: len(groups)], sides[len(groups) :]
