"""Ranking groups at the least loss: a coarse look at all, then looks at those whose place is not settled."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy.noise_laws import GAUSSIAN, LAPLACE, NoiseLaw
from farthing.accuracy.ranking_cores import Core, core_of
from farthing.accuracy.ranking_places import FIRST_GRAINS, PILOT, RankingPlaces, looks

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.accuracy.jumps import Floats, Ints

FEWEST_GRAINS: Final = int((FIRST_GRAINS - 1) / (1 - PILOT)) + 1
"""The least that a group may be allowed to pay: a look beside the pilot."""

_MOST: Final = 1 << 60
"""No look is finer."""

_LATER: Final = 1 / 16
"""Of the chance of an error, for lines that are begun after the first one, where a chain is not carried on."""


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
        leads: float64[groups], numbers that were found from leads within small blocks: those of a block differ by what
            they lead one another, and what they have in common says nothing; 0 where no leads were measured.
        lead_grains: int64[groups], the grains that members of each group paid for leads.
        lead_information: int64[groups], what these numbers are known with: their differences have the variance two
            over it, in grains.
        step_log2: the steps of the means, 2^step_log2 in answer units, where a chain is carried on from them.
        line: how many lines of looks were begun for the question before this one.
        lines: how many were begun in all, as far as is known here.
    """

    pilot: Floats
    pilot_grains: int
    foreseen: tuple[int, float]
    means: Floats
    information: Ints
    blocks: tuple[Ints, ...]
    leads: Floats
    lead_grains: Ints
    lead_information: Ints
    step_log2: int = 0
    line: int = 0
    lines: int = 1

    @classmethod
    def begun(cls, pilot: Floats, pilot_grains: int, foreseen: tuple[int, float], line: int = 0) -> RankingState:
        """Return the state after a pilot: all groups in one block.

        >>> RankingState.begun(np.array([9.0, 4.0]), 64, (1, 0.0)).paid.tolist()
        [64, 64]
        """
        groups = len(pilot)
        nothing, none = np.zeros(groups), np.zeros(groups, np.int64)
        blocks = (np.arange(groups),)
        return cls(pilot, pilot_grains, foreseen, nothing, none, blocks, nothing, none, none, line=line, lines=line + 1)

    @property
    def held(self) -> Ints:
        """The grains that a member of each group has paid for looks, int64[groups]."""
        return np.asarray(self.information + self.lead_grains)

    def held_by(self, block: Ints) -> int:
        """Return the most grains that a member of a group of a block has paid for looks."""
        return int(self.held[block].max())

    @property
    def paid(self) -> Ints:
        """The grains that a member of each group has paid, int64[groups]."""
        return np.asarray(self.held + self.pilot_grains)

    @property
    def clocks(self) -> Ints:
        """What the leads within a block are known with, int64[groups]: their variance is two over it, in grains."""
        return np.asarray(self.information + self.lead_information)

    @property
    def ordered(self) -> Floats:
        """The numbers by which groups are put in order, float64[groups]: what is known of their leads is in them.

        >>> own, found, two = np.array([50.0, 50.0]), np.array([53.0, 47.0]), np.array([2, 2])
        >>> RankingState(own, 1, (1, 0.0), own, two, (np.arange(2),), found, two // 2, two).ordered.tolist()
        [51.5, 48.5]
        """
        part = self.lead_information / np.maximum(self.clocks, 1)
        return np.asarray(self.means + (self.leads - self.means) * part)


@dataclass(frozen=True, slots=True)
class RankingContest:
    """What is wanted of a ranking, and what a group may pay for it.

    Attributes:
        k: how many places.
        beta: the chance that something that is told as settled is wrong, in any line of looks.
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
        foreseen, beta = (now.pilot, now.pilot_grains, now.foreseen), self.beta * part_of_line(now.line, self.law)
        return RankingPlaces(self.k, beta, self.per_grain, *foreseen, self.apart, self.relative, self.law)

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
        *,
        line: int = 0,
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
            line: how many lines of looks were begun before, where this one goes on from nothing.
        """
        state = self._pilot(groups, pilot or measure, line) if now is None else now
        places = self.places(state)
        while unsettled := self._open(places, state):
            level = self._next_look(state, unsettled)
            if not level:
                break
            low = [number for number in unsettled if state.held_by(state.blocks[number]) < level]
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
        level = min(now.held_by(now.blocks[number]) for number in unsettled)
        later = looks(max(level + 1, now.pilot_grains), self.cap_grains - now.pilot_grains, self.law)
        return int(later[0]) if len(later) else 0

    def _pilot(self, groups: int, measure: Callable[[Ints, Ints], Floats], line: int) -> RankingState:
        """Look at all groups alike until it is about clear what their places will cost."""
        most, everyone = max(1, int(self.cap_grains * PILOT)), np.arange(groups)
        grains = min(FIRST_GRAINS, most)
        shown = measure(np.full(groups, grains, np.int64), everyone)
        while True:
            now = RankingState.begun(shown, grains, (self.k, self.apart), line)
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
        """Raise some blocks to a level; of a few groups of each, mostly what is known of their leads."""
        each, bought = np.zeros((2, len(now.means)), np.int64)  # the grains of each lead of a group, and of its number
        for number in low:
            block = now.blocks[number]
            bought[block] = level - now.held_by(block)
        cores = [] if lead is None else self._cores(now, low)
        for block, core in cores:
            others = len(core.groups) - 1
            each[core.groups] = int(int(bought[block[0]]) * (1 - core.own)) // others
            bought[block] -= int(each[core.groups[0]]) * others
        groups = np.flatnonzero(bought)
        bought = bought[groups]
        means, information = now.means.copy(), now.information.copy()
        shown = measure(bought, groups)
        information[groups] += bought
        part = bought / information[groups]
        means[groups] = shown if self.law is LAPLACE else means[groups] + (shown - means[groups]) * part
        now = replace(now, means=means, information=information)
        measured = [core.groups for _, core in cores if each[core.groups[0]]]
        return now if lead is None or not measured else _leading(now, measured, each, lead)

    def _cores(self, now: RankingState, low: list[int]) -> list[tuple[Ints, Core]]:
        """Return those of some blocks that have a core, and it."""
        starts = np.cumsum([0, *(len(block) for block in now.blocks)])
        known = now.clocks + now.pilot_grains
        values = (now.ordered * now.clocks + now.pilot * now.pilot_grains) / known
        found = list[Any]()
        for number in low:
            block = now.blocks[number]
            begun = block[now.lead_information[block] > 0]
            noise = math.sqrt(2 / (int(known[block].min()) * self.per_grain))
            wanted = self.k - int(starts[number])
            core = core_of(block, wanted, values, noise, begun, whole=bool(self.apart or self.relative))
            found += [] if core is None else [(block, core)]
        return found


def part_of_line(line: int, law: NoiseLaw) -> float:
    """Return the part of the chance of an error that a line of looks has, given how many were begun before it.

    Gaussian measurements are all of one line. Which one of several chains is gone on from depends on their noise, so
    all of them together err with the whole chance at most.

    >>> [part_of_line(line, LAPLACE) for line in range(3)]
    [0.9375, 0.03125, 0.015625]
    """
    if law is not LAPLACE:
        return 1.0
    return _LATER / 2.0**line if line else 1 - _LATER


def _leading(
    now: RankingState, blocks: list[Ints], each: Ints, lead: Callable[[Ints, Ints, Ints], Floats]
) -> RankingState:
    """Measure every lead of two groups of a block, each with the grains `each`, int64[groups], of its groups."""
    first = np.concatenate([block[np.triu_indices(len(block), 1)[0]] for block in blocks])
    second = np.concatenate([block[np.triu_indices(len(block), 1)[1]] for block in blocks])
    shown, ahead = lead(each[first], first, second), np.zeros(len(now.means))
    np.add.at(ahead, first, shown)
    np.add.at(ahead, second, -shown)
    leads, grains, information = now.leads.copy(), now.lead_grains.copy(), now.lead_information.copy()
    for block in blocks:
        found = now.means[block].mean() + ahead[block] / len(block)
        bought = each[block] * len(block)
        grains[block] += bought - each[block]
        information[block] += bought
        leads[block] += (found - leads[block]) * (bought / information[block])
    return replace(now, leads=leads, lead_grains=grains, lead_information=information)


def _cut(places: RankingPlaces, now: RankingState, low: list[int]) -> list[Ints]:
    """Return the blocks, of which some were looked at, cut wherever their order is settled."""
    shown, blocks, beside = now.ordered, list[Any](), places.beside(now.blocks)
    for number, block in enumerate(now.blocks):
        by_leads = now.lead_information[block] > 0
        if number not in low:
            blocks.append(block)
        elif by_leads.all() or not by_leads.any():
            blocks += places.cut(block, shown, int(now.clocks[block[0]]), beside)
        else:
            core, grains = block[by_leads], now.information[block[0]]
            known = (shown, int(now.clocks[core[0]])), (now.means, int(grains))
            blocks += places.cut_core(block, by_leads, *known, beside)
    return blocks
