"""Ranking groups at the least loss: a coarse look at all, then looks at those whose place is not settled."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy.noise_laws import GAUSSIAN, LAPLACE, NoiseLaw
from farthing.accuracy.ranking_places import FIRST_GRAINS, PILOT, RankingPlaces, looks

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.jumps import Floats, Ints

FEWEST_GRAINS: Final = int((FIRST_GRAINS - 1) / (1 - PILOT)) + 1
"""The least that a group may be allowed to pay: a look beside the pilot."""

_MOST: Final = 1 << 60
"""No look is finer."""


@dataclass(frozen=True, slots=True, eq=False)
class RankingState:
    """What was released for a ranking: public, enough to go on from.

    Attributes:
        pilot: float64[groups], the means of the pilot, in answer units.
        pilot_grains: its information.
        foreseen: (k, apart) as they were when the pilot was read.
        means: float64[groups], the means of the looks, without the pilot.
        information: int64[groups], the grains of the looks, without the pilot.
        blocks: runs of places, best first, each the groups that hold them.
        step_log2: the steps of the means, 2^step_log2 in answer units, where a chain is carried on from them.
    """

    pilot: Floats
    pilot_grains: int
    foreseen: tuple[int, float]
    means: Floats
    information: Ints
    blocks: tuple[Ints, ...]
    step_log2: int = 0

    @property
    def paid(self) -> Ints:
        """The grains that a member of each group has paid, int64[groups]."""
        return np.asarray(self.information + self.pilot_grains)


@dataclass(frozen=True, slots=True)
class RankingContest:
    """What is wanted of a ranking, and what a group may pay for it.

    Attributes:
        k: how many places.
        beta: the chance that something that is told as settled is wrong.
        per_grain: information (1/variance, in answer units) that one grain buys.
        cap_grains: the most grains that a group may hold.
        apart, relative: leads that do not matter, in answer units or as a part of the larger one; 0 for none.
        law: the law of the noise; grains are then farthings of epsilon, and per_grain is one over its scale at one.

    Guarantee: as `RankingPlaces`, over the whole life of a ranking at one beta, with ties or without.
    Proof: docs/proofs/accuracy.ranking_places.md.
    Assumes: `measure` adds independent Gaussian noise of variance 1/(grains per_grain) to every group; or carries on a
        chain of Laplace noise, of which the pilot's is independent.
    Rounds: nothing.

    >>> rng, truth = np.random.default_rng(1), np.array([40.0, 900.0, 600.0])
    >>> contest = RankingContest(2, 0.05, 2.0**-56, 1 << 54)
    >>> end = contest.run(None, 3, lambda grains, groups: rng.normal(truth[groups], 2.0**28 / grains**0.5))
    >>> [block.tolist() for block in end.blocks[:2]]
    [[1], [2]]
    """

    k: int
    beta: float
    per_grain: float
    cap_grains: int
    apart: float = 0.0
    relative: float = 0.0
    law: NoiseLaw = GAUSSIAN

    def places(self, now: RankingState) -> RankingPlaces:
        """Return the rule, given what the pilot showed."""
        foreseen = (now.pilot, now.pilot_grains, now.foreseen)
        return RankingPlaces(self.k, self.beta, self.per_grain, *foreseen, self.apart, self.relative, self.law)

    def unsettled(self, now: RankingState) -> list[int]:
        """Return which blocks are not settled."""
        return self.places(now).open(now.blocks, now.means, now.information)

    def goes_on(self, now: RankingState) -> bool:
        """Return whether something is not settled that the cap allows to look at again."""
        unsettled = self.unsettled(now)
        return bool(unsettled) and self._next_look(now, unsettled) > 0

    def enough(self, now: RankingState) -> int:
        """Return a cap, in grains, that settles all places for sure if leads below `apart` do not matter; 0 for none.

        Of groups in the order shown, each is told as tied with the later ones once no lead of noise is as large.
        """
        places, later = self.places(now), looks(now.pilot_grains, _MOST, self.law).tolist()
        groups = np.concatenate([now.blocks[number] for number in self.unsettled(now)])
        first = bisect_left(later, x=1, key=lambda level: places.surely_tied(groups, level))
        return later[first] + now.pilot_grains if first < len(later) else 0

    def run(
        self,
        now: RankingState | None,
        groups: int,
        measure: Callable[[Ints, Ints], Floats],
        pilot: Callable[[Ints, Ints], Floats] | None = None,
    ) -> RankingState:
        """Look at groups that are not settled until all are, or the cap is reached.

        Args:
            now: what was released before, or None.
            groups: how many there are.
            measure: returns fresh noisy values float64[n], in answer units, of n groups, from grains int64[n] and group
                indices int64[n]; or, for Laplace noise, what a chain shows once so many grains more were paid.
            pilot: the same for the pilot; None for the same noise.
        """
        state = self._pilot(groups, pilot or measure) if now is None else now
        places = self.places(state)
        while unsettled := places.open(state.blocks, state.means, state.information):
            level = self._next_look(state, unsettled)
            if not level:
                break
            state = self._look(state, unsettled, level, places, measure)
        return state

    def _next_look(self, now: RankingState, unsettled: list[int]) -> int:
        """Return the grains of the next look at the blocks that hold the least; 0 where the cap allows none."""
        level = min(int(now.information[now.blocks[number][0]]) for number in unsettled)
        later = looks(max(level + 1, now.pilot_grains), self.cap_grains - now.pilot_grains, self.law)
        return int(later[0]) if len(later) else 0

    def _pilot(self, groups: int, measure: Callable[[Ints, Ints], Floats]) -> RankingState:
        """Look at all groups alike until it is about clear what their places will cost."""
        most, everyone = max(1, int(self.cap_grains * PILOT)), np.arange(groups)
        grains = min(FIRST_GRAINS, most)
        shown = measure(np.full(groups, grains, np.int64), everyone)
        start = (np.zeros(groups), np.zeros(groups, np.int64), (everyone,))
        while True:
            now = RankingState(shown, grains, (self.k, self.apart), *start)
            if 2 * grains > most or not self.places(now).vague():
                return now
            again = measure(np.full(groups, grains, np.int64), everyone)
            shown = again if self.law is LAPLACE else (shown + again) / 2
            grains *= 2

    def _look(
        self,
        now: RankingState,
        unsettled: list[int],
        level: int,
        places: RankingPlaces,
        measure: Callable[[Ints, Ints], Floats],
    ) -> RankingState:
        """Raise the unsettled blocks that hold less to a level, and cut them."""
        low = [number for number in unsettled if now.information[now.blocks[number][0]] < level]
        groups = np.concatenate([now.blocks[number] for number in low])
        bought = level - now.information[groups]
        means, information = now.means.copy(), now.information.copy()
        shown = measure(bought, groups)
        means[groups] = shown if self.law is LAPLACE else means[groups] + (shown - means[groups]) * (bought / level)
        information[groups] = level
        blocks = list[Any]()
        for number, block in enumerate(now.blocks):
            blocks += places.cut(block, means, level) if number in low else [block]
        return replace(now, means=means, information=information, blocks=tuple(blocks))
