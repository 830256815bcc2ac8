"""The promise that released measurements keep, so that they can be reread for free or sharpened soundly."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from farthing.accuracy.jumps import JumpMap
from farthing.accuracy.laws import LAWS
from farthing.accuracy.schedule import Futility, Schedule
from farthing.accuracy.stopping import step_ratio

_CLEARLY: Final = 1 + 1e-9
_NEARLY: Final = 1 + 1e-12  # equal targets may differ in the last bits of their floats


@dataclass(frozen=True, slots=True)
class Kept:
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
    def of(cls, schedule: Schedule, beta: float, *, share: float = 1.0) -> Kept:
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

    def at(self, beta: float, per_grain: float) -> Kept:
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
        narrow = self.floor <= absolute * _NEARLY or (self.absolute <= absolute * _NEARLY and limit <= self.grains)
        return self.relative <= relative and self.beta <= beta * _NEARLY and narrow

    def schedule(self, per_grain: float) -> Schedule:
        """Return the last look of the rule, enough to read what was released under it."""
        boundary = self.critical / self.relative if self.relative > 0 else math.inf
        return Schedule(
            relative=self.relative,
            absolute=self.floor if self.floor * _CLEARLY < self.absolute else self.absolute,
            critical=self.critical,
            per_grain=per_grain,
            looks=np.array([self.grains], np.int64),
            jumps=JumpMap(boundary, step_ratio(self.relative), law=LAWS[self.law]),
            futility=Futility(self.futility, ()) if self.futility else None,
            capped=self.floor > self.absolute * _NEARLY,
            signed=self.signed,
            law=LAWS[self.law],
        )
