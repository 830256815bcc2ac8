"""Several quantiles of one column in the same groups, looked for together: their ranks are measured in one vector.

Each look asks for the rows below one threshold of every quantile that is not settled yet. Noise that is correlated as
the thresholds are nested costs little more for nine of them than for one (`mechanisms.joint_ranks`). A quantile that is
settled is asked no more, so that looks become cheaper as they go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.accuracy.joint_quantile_run import JointRun, JointTrail
from farthing.accuracy.quantile_bisection import QuantileBisection
from farthing.errors import InvalidTarget
from farthing.mechanisms.gaussian import GRAIN, MOST_GRAINS, GaussianMeasurements, Measured
from farthing.mechanisms.joint_ranks import JointRanks, rank_strategy

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.joint_quantile_run import Measure, MeasureCount
    from farthing.accuracy.quantile_ranks import QuantileGoal, Ranks
    from farthing.mechanisms.exponential import BitSource
    from farthing.mechanisms.joint_ranks import RankStrategy

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

EXPECTED: Final = 23.0
"""About the information, times the squared slack, that all looks for one quantile have together,"""

MORE: Final = 4.0
"""and by how much it is more with each doubling of how many there are, since they are not done at the same time."""

_MOST_RATIO: Final = 64.0  # of the widest slack to the narrowest: beyond, the widest is measured better than it needs


class JointQuantilesState(NamedTuple):
    """What a run ends with, [groups, quantiles]; all of it released.

    Attributes:
        value: float64, the quantiles.
        lower, upper: float64, an interval that holds each.
        met: bool, whether the rank of `value` is surely within the target.
        waits: bool[groups], whether what is held does not suffice, and nothing more could be measured.
        trail: what was measured, for a later run.
    """

    value: Float64
    lower: Float64
    upper: Float64
    met: Flags
    waits: Flags
    trail: JointTrail


@dataclass(frozen=True)
class JointQuantiles:
    """The plan of a joint search, the same for all groups of a question.

    Attributes:
        asked: the quantiles, with their rank targets.
        beta: allowed chance of a miss, for each quantile of each group.
        cap_grains: the most that a group may pay for all of them, in all runs.

    Guarantee: with probability at least 1 - beta, for each quantile by itself: where `met` the rank of its value is
        within its target of q, and [lower, upper] holds the quantile. So for each of several runs, one after the other
        on the same trail.
    Proof: docs/proofs/accuracy.joint_quantiles.md.
    Assumes: measurements add Gaussian noise, fresh each time, of no more than the variance that their price tells;
        targets that were named without looking at what is held.
    Rounds: rank targets down to what the released count allows.
    """

    asked: tuple[QuantileGoal, ...]
    beta: float
    cap_grains: int

    def __post_init__(self) -> None:
        if not (0 < self.beta < 1 and 1 <= self.cap_grains <= MOST_GRAINS and all(one.rank for one in self.asked)):
            raise InvalidTarget(
                "several quantiles at once need rank targets",
                rule=f"a rank target each, 0 < beta < 1, 1 <= cap_grains <= {MOST_GRAINS}",
                got=f"{[one.rank for one in self.asked]}, {self.beta}, {self.cap_grains}",
                next_step="ask for rank=0.01",
            )

    @property
    def many(self) -> int:
        """How many quantiles there are."""
        return len(self.asked)

    @property
    def leaves(self) -> int:
        """How many leaves the range has."""
        return self.asked[0].leaves

    @property
    def reach(self) -> int:
        """The most rows of one unit in a group."""
        return self.asked[0].max_rows

    @cached_property
    def scales(self) -> tuple[float, ...]:
        """The noise that each rank may have, in proportion to the others."""
        least = min(one.slack for one in self.asked)
        return tuple(min(one.slack / least, _MOST_RATIO) for one in self.asked)

    @cached_property
    def price(self) -> float:
        """What it costs in mu^2, times the squared rows, to know each rank with its slack as the noise."""
        whole = self.strategy(tuple(range(self.many)), tuple(range(self.many)))
        slack = np.array([one.slack for one in self.asked])
        return float((self.reach * whole.length * whole.spread / slack).max() ** 2)

    def strategy(self, which: tuple[int, ...], order: tuple[int, ...]) -> RankStrategy:
        """Return how the ranks of some quantiles are measured, whose thresholds lie in this order."""
        return rank_strategy(
            tuple(self.asked[one].lane_steps for one in which), order, tuple(self.scales[one] for one in which)
        )

    @cached_property
    def plans(self) -> tuple[QuantileBisection, ...]:
        """The plan of each quantile alone: how it is searched, and bet on."""
        return tuple(QuantileBisection(one, self.beta, self.cap_grains) for one in self.asked)

    def run(
        self,
        measure: Measure | None,
        measure_count: MeasureCount | None,
        *,
        groups: int,
        held: JointTrail | None = None,
        settled: Flags | None = None,
        progress: Callable[[int, int, int, float], None] | None = None,
    ) -> JointQuantilesState:
        """Follow the plan; every decision is made from what the two functions returned, now or in earlier runs.

        Args:
            measure: (strategy, thresholds int64[n, ranks], grains int64[n], groups int64[n]) -> float64[n, ranks].
                None: go as far as what is held leads.
            measure_count: (grains, groups) -> float64[n], fresh noisy rows.
            groups: how many.
            held: what earlier runs of this question measured.
            settled: bool[groups, quantiles], what is left alone.
            progress: called after each round of looks as progress(looks, groups, done, widest half-width).
        """
        none = np.zeros((groups, self.many), np.bool_)
        trail = JointTrail.nothing(groups, self.many) if held is None else held
        run, looks = JointRun.of(self, trail, none if settled is None else settled), 0
        while True:
            run.read()
            wanted = run.wanted()
            if not wanted.open.any():
                break
            if measure is None or measure_count is None:
                run.waits = np.asarray(wanted.open.any(axis=1))
                break
            run.look(wanted, measure, measure_count)
            looks += 1
            if progress is not None:
                state = self._state(run)
                done = groups - int(run.open.any(axis=1).sum())
                progress(looks, groups, done, float((state.upper - state.lower).max() / 2))
        return self._state(run)

    def _state(self, run: JointRun) -> JointQuantilesState:
        """Return what there is to tell."""
        told = [plan.state(one) for plan, one in zip(self.plans, run.runs, strict=True)]
        value, lower, upper, met = (
            np.stack([getattr(one, name) for one in told], axis=1) for name in ("value", "lower", "upper", "met")
        )
        return JointQuantilesState(value, lower, upper, met, run.waits, run.trail)

    def typical(self, rows: int) -> int:
        """Return about what a group of so many rows pays, at what looks cost on the way."""
        beside = max(one.beside_count for one in self.plans)
        looks = self.price * beside * (EXPECTED + MORE * math.log2(self.many)) / rows**2 / float(GRAIN)
        return min(math.ceil(looks), MOST_GRAINS)


@dataclass(frozen=True, slots=True)
class NoisyJointRanks:
    """Exact ranks behind noise: what a joint search looks through.

    Attributes:
        ranks: raw; never leaves this object.
        reach: the most rows of one unit in a group.
        bits: where random bits come from; None is the system's stream cipher.

    Guarantee: a measurement of a group at n grains is mu-GDP with mu^2 = n 2^-56 for a unit in that group; over any
        adaptive sequence they add up, and a unit in K groups pays for the K most expensive.
    Proof: docs/proofs/accuracy.joint_quantiles.md, "What one row moves"; docs/proofs/mechanisms.gaussian.md.
    Assumes: add/remove one unit adds or removes at most `reach` rows of a group; exact sampler.
    Rounds: sigma up.
    """

    ranks: Ranks
    reach: int
    bits: BitSource | None = None

    def measure(self, strategy: RankStrategy, thresholds: Int64, grains: Int64, groups: Int64) -> Float64:
        """Return fresh noisy #(leaf <= threshold) - q n of some groups and quantiles, in rows."""
        rising = np.sort(thresholds, axis=1)
        upto = self.ranks.below(rising.ravel(), np.repeat(groups, rising.shape[1])).reshape(rising.shape)
        edges = np.column_stack([np.zeros_like(groups), upto, self.ranks.rows[groups]])
        return JointRanks(self.reach, self.bits).measure(strategy, np.diff(edges, axis=1).T, grains)

    def measure_count(self, grains: Int64, groups: Int64) -> Float64:
        """Return fresh noisy rows of some groups."""
        lane = GaussianMeasurements(self.ranks.rows[groups], self.reach, bits=self.bits)
        return lane.measure(Measured.nothing(len(groups)), np.asarray(grains, np.int64)).values
