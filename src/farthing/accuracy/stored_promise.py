"""The promise that released measurements keep, so that they can be reread for free or sharpened soundly."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.accuracy.jumps import Floats, Ints, JumpMap, lines
from farthing.accuracy.noise_laws import GAUSSIAN, LAWS
from farthing.accuracy.report import NEARLY, half_widths
from farthing.accuracy.schedule import Futility, Schedule
from farthing.accuracy.stop_rule import step_ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CLEARLY: Final = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class StoredPromise:
    """The promise that a question's released measurements keep: the rule they were stopped by.

    Attributes:
        relative: r; 0 for an absolute target or a named loss.
        absolute: a, as it was asked (the tightest so far).
        floor: a*, the half-width that every group not given up has reached.
        beta: the failure probability a group.
        critical: c, the calibrated constant.
        grains: the information at which every group stopped at the latest; farthings where the noise is Laplace.
        futility: z of the intervals of groups given up, 0 when none could be.
        signed: whether groups were stopped by |Y|, as sums are.
        share: the part of the groups that were refined until they stopped; the rest was stopped with these.
        law: the name of the noise's law.
    """

    relative: float
    absolute: float
    floor: float
    beta: float
    critical: float
    grains: int
    futility: float = 0.0
    signed: bool = False
    share: float = 1.0
    law: str = "gaussian"

    @classmethod
    def of(cls, schedule: Schedule, beta: float, *, share: float = 1.0) -> StoredPromise:
        """Return the promise that measurements stopped by a schedule keep, at the chance of a miss it is made for."""
        return cls(
            relative=schedule.relative,
            absolute=schedule.absolute,
            floor=schedule.floor,
            beta=beta,
            critical=schedule.critical,
            grains=int(schedule.looks[-1]),
            futility=schedule.futility.width if schedule.futility else 0.0,
            signed=schedule.signed,
            share=share,
            law=schedule.law.name,
        )

    def at(self, beta: float, per_grain: float) -> StoredPromise:
        """Return the same promise at another failure probability, where that is known.

        Under an absolute target every group ends at the last look, whatever was shown: its mean is plainly Gaussian
        there, and serves at any confidence. A relative rule is calibrated for one.
        """
        if self.relative > 0:
            return self
        law = LAWS[self.law]
        critical = law.two_sided(beta)
        return replace(
            self, beta=beta, critical=critical, floor=critical / float(law.precision(self.grains, per_grain))
        )

    def covers(self, relative: float, absolute: float, beta: float, limit: int, share: float = 1.0) -> bool:
        """Tell whether it keeps a promise that is asked for now, or was stopped by as large a cap on the way to it."""
        if self.share < share:
            return False
        narrow = self.floor <= absolute * NEARLY or (self.absolute <= absolute * NEARLY and limit <= self.grains)
        return self.relative <= relative and self.beta <= beta * NEARLY and narrow

    def schedule(self, per_grain: float) -> Schedule:
        """Return the last look of the rule, enough to read what was released under it."""
        ratio, law = step_ratio(self.relative), LAWS[self.law]
        boundary = self.critical / self.relative if self.relative > 0 else math.inf  # given-up groups are below it
        if self.share < 1 and boundary < math.inf and law is GAUSSIAN:  # at meetings any group may have been stopped
            boundary = lines(self.relative, self.critical, ratio, even=True).boundary
        return Schedule(
            relative=self.relative,
            absolute=self.floor if self.floor * _CLEARLY < self.absolute else self.absolute,
            critical=self.critical,
            per_grain=per_grain,
            looks=np.array([self.grains], np.int64),
            jumps=JumpMap(boundary, ratio, law=law),
            futility=Futility(self.futility, ()) if self.futility else None,
            capped=self.floor > self.absolute * NEARLY,
            signed=self.signed,
            law=law,
        )


@dataclass(frozen=True, slots=True, eq=False)
class OwnPromises:
    """Claims that groups keep from an earlier rule of their question, since they met a later target as they stood.

    Attributes:
        half: float64[groups], half-widths of their intervals; NaN for groups that the question's latest rule stopped.
        beta: float64[groups], the failure probabilities of these intervals; NaN likewise.
    """

    half: Floats
    beta: Floats

    @classmethod
    def none(cls, groups: int) -> OwnPromises:
        """Return no claims of their own."""
        return cls(np.full(groups, np.nan), np.full(groups, np.nan))

    def take(self, groups: Ints) -> OwnPromises:
        """Return those of some groups, in the order of their indices."""
        return OwnPromises(self.half[groups], self.beta[groups])

    @property
    def any(self) -> bool:
        """Whether a group has a claim of its own."""
        return not bool(np.isnan(self.half).all())


@dataclass(frozen=True, slots=True, eq=False)
class HeldIntervals:
    """The released intervals of a question's groups, each by the claim that its group keeps.

    Attributes:
        kept: the latest rule, which holds for all groups without a claim of their own.
        own: the others' claims.
        values: float64[groups], the means.
        information: int64[groups], grains.
    """

    kept: StoredPromise
    own: OwnPromises
    values: Floats
    information: Ints

    def claims(self, kept: StoredPromise, beta: float, per_grain: float) -> OwnPromises:
        """Return half-width and failure probability of every group's interval; infinite widths above `beta`.

        Args:
            kept: the latest rule, at that failure probability where it is known there.
            beta: the failure probability that is asked.
            per_grain: information that one grain buys.
        """
        schedule = kept.schedule(per_grain)
        futile = ~schedule.stopped(self.information, self.values)
        half = half_widths(self.values, self.information, schedule, futile)
        mine = ~np.isnan(self.own.half)
        half = np.where(mine, self.own.half, half)
        chance = np.where(mine, self.own.beta, kept.beta)
        return OwnPromises(np.where(chance <= beta * NEARLY, half, np.inf), chance)

    def serving(self, claims: OwnPromises, relative: float, absolute: float, *, room: float = 1.0) -> NDArray[np.bool_]:
        """Return bool[groups], which of the claims answer a target as they stand.

        A group that waits at its floor is chosen by what it showed there. So it must show what would stop the new rule,
        too: `room` times the interval that it has.

        Args:
            claims: the intervals, as `claims` gives them.
            relative: r of the target.
            absolute: a of it.
            room: c of the new rule over c of the latest one, where that is more than 1.

        Guarantee: where the others go on by a rule calibrated for the target, the interval that is told of a group in
            the end misses its truth with probability beta at most.
        Proof: docs/proofs/accuracy.schedule.md, "A target of another kind"; simulated, not proved in full.
        Assumes: targets that were named without looking at the answers between them.
        Rounds: nothing.
        """
        size = np.abs(self.values)
        waits = np.isnan(self.own.half) & (self.kept.relative * size < claims.half)
        wide = claims.half * np.where(waits, max(room, 1.0), 1.0)
        return np.asarray((claims.half <= absolute * NEARLY) | (wide <= relative * size * NEARLY))
