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

OWN: Final = 4
"""Of what two groups that are left alone pay, one part in so many goes to their own numbers, the rest to their lead."""


@dataclass(frozen=True, slots=True, eq=False)
class RankingState:
    """What was released for a ranking: public, enough to go on from.

    Attributes:
        pilot: float64[groups], the means of the pilot, in answer units.
        pilot_grains: its information.
        foreseen: (k, apart) as they were when the pilot was read.
        means: float64[groups], the means of the looks at their own numbers, without the pilot.
        information: int64[groups], the grains of these looks, without the pilot.
        blocks: runs of places, best first, each the groups that hold them.
        rivals: int64[groups], for two groups whose lead was measured as one number the other one; -1 for the others.
        leads: float64[groups], the mean of these measurements of a group's lead over its rival; 0 for the others.
        lead_information: int64[groups], the grains that members of either of the two paid for them.
        step_log2: the steps of the means, 2^step_log2 in answer units, where a chain is carried on from them.
    """

    pilot: Floats
    pilot_grains: int
    foreseen: tuple[int, float]
    means: Floats
    information: Ints
    blocks: tuple[Ints, ...]
    rivals: Ints
    leads: Floats
    lead_information: Ints
    step_log2: int = 0

    @classmethod
    def begun(cls, pilot: Floats, pilot_grains: int, foreseen: tuple[int, float]) -> RankingState:
        """Return the state after a pilot: all groups in one block.

        >>> RankingState.begun(np.array([9.0, 4.0]), 64, (1, 0.0)).paid.tolist()
        [64, 64]
        """
        groups = len(pilot)
        nothing, none = np.zeros(groups), np.zeros(groups, np.int64)
        return cls(pilot, pilot_grains, foreseen, nothing, none, (np.arange(groups),), none - 1, nothing, none)

    @property
    def held(self) -> Ints:
        """The grains that a member of each group has paid for looks, int64[groups]."""
        return np.asarray(self.information + self.lead_information)

    @property
    def paid(self) -> Ints:
        """The grains that a member of each group has paid, int64[groups]."""
        return np.asarray(self.held + self.pilot_grains)

    @property
    def clocks(self) -> Ints:
        """What the leads within a block are known with, int64[groups]: their variance is two over it, in grains."""
        return np.asarray(self.information + 2 * self.lead_information)

    @property
    def ordered(self) -> Floats:
        """The best numbers, float64[groups]: of two whose lead was measured, all that is known of the lead is in them.

        >>> pair = np.array([1, 0]), np.array([6.0, -6.0]), np.array([1, 1])
        >>> means = np.array([50.0, 50.0])
        >>> RankingState(means, 1, (1, 0.0), means, np.array([2, 2]), (np.arange(2),), *pair).ordered.tolist()
        [51.5, 48.5]
        """
        both = np.flatnonzero(self.lead_information)
        own, other = self.means[both], self.means[self.rivals[both]]
        part = 2 * self.lead_information[both] / self.clocks[both]
        shown = self.means.copy()
        shown[both] = (own + other + (own - other) * (1 - part) + self.leads[both] * part) / 2
        return shown


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
    Assumes: `measure` adds independent Gaussian noise of variance 1/(grains per_grain) to every group, and `lead` to
        every lead; or `measure` carries on a chain of Laplace noise, of which the pilot's is independent.
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
        return self._open(self.places(now), now)

    def shown(self, now: RankingState) -> Floats:
        """Return the numbers, float64[groups], by which groups of a block are shown in order, and told as tied."""
        return now.means if self.relative else now.ordered

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
        lead: Callable[[Ints, Ints, Ints], Floats] | None = None,
    ) -> RankingState:
        """Look at groups that are not settled until all are, or the cap is reached.

        Args:
            now: what was released before, or None.
            groups: how many there are.
            measure: returns fresh noisy values float64[n], in answer units, of n groups, from grains int64[n] and group
                indices int64[n]; or, for Laplace noise, what a chain shows once so many grains more were paid.
            pilot: the same for the pilot; None for the same noise.
            lead: returns fresh noisy leads float64[n] of n groups over n others, as noisy as one group's value is, from
                grains that members of both pay, and the indices of both; None where leads are not measured as one.
        """
        state = self._pilot(groups, pilot or measure) if now is None else now
        places = self.places(state)
        while unsettled := self._open(places, state):
            level = self._next_look(state, unsettled)
            if not level:
                break
            low = [number for number in unsettled if state.held[state.blocks[number][0]] < level]
            state = self._look(state, low, level, measure, None if self.relative else lead)
            state = replace(state, blocks=tuple(_cut(places, state, low)))
        return state

    def _open(self, places: RankingPlaces, now: RankingState) -> list[int]:
        """Return which blocks are not settled. Relative ties are about two numbers, so they are judged by these."""
        if not self.relative:
            return places.open(now.blocks, now.ordered, now.clocks)
        blocks = [block[np.argsort(-now.means[block], kind="stable")] for block in now.blocks]
        return places.open(blocks, now.means, now.information)

    def _next_look(self, now: RankingState, unsettled: list[int]) -> int:
        """Return the grains of the next look at the blocks that hold the least; 0 where the cap allows none."""
        level = min(int(now.held[now.blocks[number][0]]) for number in unsettled)
        later = looks(max(level + 1, now.pilot_grains), self.cap_grains - now.pilot_grains, self.law)
        return int(later[0]) if len(later) else 0

    def _pilot(self, groups: int, measure: Callable[[Ints, Ints], Floats]) -> RankingState:
        """Look at all groups alike until it is about clear what their places will cost."""
        most, everyone = max(1, int(self.cap_grains * PILOT)), np.arange(groups)
        grains = min(FIRST_GRAINS, most)
        shown = measure(np.full(groups, grains, np.int64), everyone)
        while True:
            now = RankingState.begun(shown, grains, (self.k, self.apart))
            if 2 * grains > most or not self.places(now).vague():
                return now
            again = measure(np.full(groups, grains, np.int64), everyone)
            shown = again if self.law is LAPLACE else (shown + again) / 2
            grains *= 2

    def _look(
        self,
        now: RankingState,
        low: list[int],
        level: int,
        measure: Callable[[Ints, Ints], Floats],
        lead: Callable[[Ints, Ints, Ints], Floats] | None,
    ) -> RankingState:
        """Raise some blocks to a level; of those of two groups, mostly what is known of their lead."""
        pairs = np.array([now.blocks[n] for n in low if lead and len(now.blocks[n]) == 2], np.int64).reshape(-1, 2)
        groups = np.concatenate([now.blocks[number] for number in low])
        bought = level - now.held[groups]
        bought = np.where(np.isin(groups, pairs), bought // OWN, bought)
        means, information = now.means.copy(), now.information.copy()
        shown = measure(bought, groups)
        information[groups] += bought
        part = bought / information[groups]
        means[groups] = shown if self.law is LAPLACE else means[groups] + (shown - means[groups]) * part
        now = replace(now, means=means, information=information)
        return now if lead is None or not len(pairs) else _leading(now, pairs, level, lead)


def _leading(now: RankingState, pairs: Ints, level: int, lead: Callable[[Ints, Ints, Ints], Floats]) -> RankingState:
    """Raise pairs of groups, int64[n, 2], to a level by measuring the leads of the first ones over the second ones."""
    first, second = pairs.T
    rivals, leads, information = now.rivals.copy(), now.leads.copy(), now.lead_information.copy()
    bought = level - now.held[first]
    total = information[first] + bought
    mean = leads[first] + (lead(bought, first, second) - leads[first]) * (bought / total)
    rivals[first], rivals[second] = second, first
    leads[first], leads[second] = mean, -mean
    information[pairs] = total[:, None]
    return replace(now, rivals=rivals, leads=leads, lead_information=information)


def _cut(places: RankingPlaces, now: RankingState, low: list[int]) -> list[Ints]:
    """Return the blocks, of which some were looked at, cut wherever their order is settled."""
    shown, clocks, blocks = now.ordered, now.clocks, list[Any]()
    for number, block in enumerate(now.blocks):
        blocks += places.cut(block, shown, int(clocks[block[0]])) if number in low else [block]
    return blocks
