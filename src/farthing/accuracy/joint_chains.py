"""Several quantiles of one column under a pure budget, looked for together: their thresholds cut the rows into bins.

Each row is in one bin. So all bins are shown for what one costs, and the rows below each threshold are a sum of them:
the noise of nine deciles is at most 2.3 times that of one of them alone, for the same epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.joint_chain_run import JointChainRun, JointChainTrail
from farthing.accuracy.quantile_bisection import state_of
from farthing.accuracy.quantile_chains import QuantileChains
from farthing.accuracy.quantile_trail import Trail
from farthing.mechanisms.laplace import LaplaceChain, Shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.quantile_ranks import QuantileGoal, Ranks
    from farthing.accuracy.quantile_trail import ShowBins, ShownBins
    from farthing.mechanisms.exponential import BitSource

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

TYPICAL: Final = 1.8
"""About what a search for several costs, times what one for the most expensive of them by itself does."""


class JointChainsState(NamedTuple):
    """What a run ends with, [groups, quantiles]; all of it released.

    Attributes:
        value: float64, the quantiles.
        lower, upper: float64, an interval that holds each.
        met: bool, whether the rank of `value` is surely within the target.
        waits: bool[groups], whether what is held does not suffice, and nothing more could be shown.
        trail: what was shown, for a later run.
    """

    value: Float64
    lower: Float64
    upper: Float64
    met: Flags
    waits: Flags
    trail: JointChainTrail


@dataclass(slots=True, eq=False)
class EndedSearch:
    """Where the search for one quantile ended: what `state_of` reads."""

    low: Int64
    high: Int64
    least: Int64
    most: Int64
    middle: Int64
    good: Flags
    rows: Float64
    goal: Float64
    waits: Flags
    spent: Int64
    trail: Trail

    @classmethod
    def of(cls, run: JointChainRun, number: int) -> EndedSearch:
        """Return that of one quantile of a run."""
        groups = len(run.spent)
        return cls(
            run.low[number], run.high[number], run.least[number], run.most[number], run.middle[number],
            run.good[number], np.zeros(groups), np.zeros(groups), run.waits, run.spent, Trail.nothing(groups),
        )  # fmt: skip

    def within(self, at: Int64) -> Flags:
        """Return no group: there is no value target."""
        return np.zeros(len(at), np.bool_)


@dataclass(frozen=True)
class JointChains:
    """The plan of a joint search under a pure budget, the same for all groups of a question.

    Attributes:
        asked: the quantiles, with their rank targets.
        beta: allowed chance of a miss, for each quantile of each group.
        cap: the farthings of epsilon that a group may pay for all of them, in all runs.
        spend: whether groups that are too small for their target go on to their cap.

    Guarantee: with probability at least 1 - beta, for each quantile by itself: where `met` the rank of its value is
        within its target of q, and [lower, upper] holds the quantile. So for each of several runs, one after the other
        on the same trail.
    Proof: docs/proofs/accuracy.joint_chains.md, claims 2 to 4.
    Assumes: `show` carries on Laplace chains, as `ShownJointRanks` does; targets and caps that were named without
        looking at what is held.
    Rounds: reaches up.

    >>> from farthing.accuracy.quantile_ranks import QuantileGoal
    >>> deciles = tuple(QuantileGoal(k / 10, 0.0, 1024.0, leaves_log2=10, rank=0.05) for k in range(1, 10))
    >>> together = JointChains(deciles, beta=0.05, cap=1 << 50)
    >>> alone = sum(one.typical(1000) for one in together.plans)
    >>> round(together.typical(1000) / alone, 1)
    0.2
    """

    asked: tuple[QuantileGoal, ...]
    beta: float
    cap: int
    spend: bool = False

    @property
    def many(self) -> int:
        """How many quantiles there are."""
        return len(self.asked)

    @cached_property
    def plans(self) -> tuple[QuantileChains, ...]:
        """The plan of each quantile alone."""
        return tuple(QuantileChains(one, self.beta, self.cap, self.spend) for one in self.asked)

    def run(
        self,
        show: ShowBins | None,
        *,
        groups: int,
        held: JointChainTrail | None = None,
        settled: Flags | None = None,
        progress: Callable[[int, int, int, float], None] | None = None,
    ) -> JointChainsState:
        """Follow the plan; every decision is made from what `show` returned, now or in earlier runs.

        Args:
            show: (held, farthings, groups) -> int64[thresholds + 1, n], rows in the bins of these groups, as chains
                show them that were at `held` and go on to so many farthings; None to measure nothing: then `waits` says
                which groups need more.
            groups: how many.
            held: what earlier runs of this question were shown.
            settled: bool[groups, quantiles], what is left alone.
            progress: called after each round of looks as progress(looks, groups, done, widest half-width).
        """
        none = np.zeros((groups, self.many), np.bool_)
        trail = JointChainTrail.nothing(groups, self.many) if held is None else held
        run, looks = JointChainRun.of(self, trail, none if settled is None else settled), 0
        while (active := np.flatnonzero(run.open)).size:
            run.look(active, show)
            looks += 1
            if progress is not None:
                state = self._state(run)
                done = groups - int(run.open.sum())
                progress(looks, groups, done, float((state.upper - state.lower).max() / 2))
        return self._state(run)

    def typical(self, rows: float) -> int:
        """Return about the farthings that a group of so many rows pays."""
        return math.ceil(min(TYPICAL * max(one.typical(rows) for one in self.plans), self.cap))

    def _state(self, run: JointChainRun) -> JointChainsState:
        """Return what there is to tell."""
        told = [state_of(one, EndedSearch.of(run, number)) for number, one in enumerate(self.asked)]
        value, lower, upper, met = (
            np.stack([getattr(one, name) for one in told], axis=1) for name in ("value", "lower", "upper", "met")
        )
        return JointChainsState(value, lower, upper, met, run.waits, run.trail)


@dataclass(frozen=True, slots=True, eq=False)
class ShownJointRanks:
    """The rows in the bins between thresholds, shown by Laplace chains: what a joint search looks through.

    Attributes:
        ranks: raw; never leaves this object.
        max_rows: the most rows of one unit in a group.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: what the bins of a round showed of a group is epsilon-DP ex post for the epsilon of its last look; of a
        group, rounds add up, and a unit in K groups pays for the K most expensive.
    Proof: docs/proofs/accuracy.joint_chains.md, claim 1; docs/proofs/mechanisms.laplace.md for a chain.
    Assumes: add/remove one unit moves at most `max_rows` rows of a group, each of which is in one bin; a chain is
        carried on once.
    Rounds: rates down.
    """

    ranks: Ranks
    max_rows: int
    bits: BitSource | None = None

    def show(self, held: ShownBins, farthings: Int64, groups: Int64) -> Int64:
        """Carry on the chains of the bins of some groups, int64[quantiles + 1, n]: see `JointChains.run`."""
        places = held.places
        bins = (places >= 0).sum(axis=0) + 1
        rising = np.sort(np.where(places >= 0, places, (1 << self.ranks.leaves_log2) - 1), axis=0)
        upto = np.stack([self.ranks.below(one, groups) for one in rising])
        edges = np.vstack([np.zeros_like(groups), upto, self.ranks.rows[groups]])
        used = np.arange(len(places) + 1)[:, None] < bins
        truth, last = np.diff(edges, axis=0), np.zeros((len(places) + 1, len(groups)), np.int64)
        level, wanted = (np.broadcast_to(one, last.shape)[used] for one in (held.farthings, farthings))
        chain = LaplaceChain(truth[used], self.max_rows, bits=self.bits)
        last[used] = chain.measure(Shown(np.where(level > 0, held.shown[used], 0), level), wanted).value
        return last
