"""The looks of one question: when to look, when to stop, and what the last look can promise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy import laplace_stop_rule
from farthing.accuracy.jumps import JumpMap, critical_of, lines
from farthing.accuracy.noise_laws import GAUSSIAN, NoiseLaw
from farthing.accuracy.stop_rule import critical_value, step_ratio, tamed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Floats, Ints

FIRST_GRAINS: Final = GAUSSIAN.first
"""The first look costs about this many grains: 2^-52 of mu^2, enough to place a count of 10^8 within half of itself."""

FUTILITY_SHARE: Final = 1 / 50
"""Part of beta spent on giving up; small, since every group pays for it with a larger c."""

HOPELESS: Final = 4
"""Groups are given up only where their half-width would be more than the root of it times the target: Gaussian noise
would cost this many caps. Half as accurate may be worth its price."""

MEETING_RANGE: Final = 1024
"""Over this factor below the last look meetings are close together; further down each has twice the information."""

_ALIGNED: Final = 16  # the first look and the public looks lie on this common sub-grid
_ABOUT: Final = 1.25  # boundaries this near to each other may both be the least that there is
_A_LITTLE_MORE: Final = 1.0001  # what public looks may ask of c
_UP: Final = 1 + 2.0**-40  # t_max is rounded up past every float error, so that a* <= a when no cap binds


@dataclass(frozen=True, slots=True)
class StopRule:
    """What an answer was stopped by, kept with it so that a refinement can continue soundly.

    Attributes:
        relative: r.
        critical: c.
        last: grains of its last look.
    """

    relative: float
    critical: float
    last: int


@dataclass(frozen=True, slots=True)
class Futility:
    """When to give a group up: at a few public looks, if its own target would cost more than the cap.

    Attributes:
        width: z such that Y +- z/sqrt(t) covers at all public looks at once, but for FUTILITY_SHARE of beta.
        indices: the public looks, rising information, counted backwards from the last look.
    """

    width: float
    indices: tuple[int, ...]

    @classmethod
    def plan(cls, relative: float, beta: float, span: int, ratio: float, law: NoiseLaw = GAUSSIAN) -> Futility | None:
        """Choose up to three public looks, or None where giving up could not save much.

        >>> Futility.plan(0.1, 0.05, 2784, 1.01).indices
        (288, 176, 64)
        """
        wanted = 3
        width = law.two_sided(beta * FUTILITY_SHARE / wanted)
        earliest = ((width + 1) * relative / law.two_sided(beta)) ** 2  # a group of zero is given up there, most times
        shares = [earliest * 3**k for k in range(wanted)]
        steps = [-math.log(share) / math.log(ratio) for share in shares if share < 0.7]
        indices = sorted({_ALIGNED * round(step / _ALIGNED) for step in steps}, reverse=True)
        chosen = tuple(index for index in indices if 0 < index < span)
        return cls(width, chosen) if chosen else None


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """The looks of one question, the same for all its groups, and the rule by which each group stops alone.

    Attributes:
        relative: r of the target, in [0, 1).
        absolute: a of the target, in the units of the answer; >= 0.
        critical: c, calibrated so that every truth is covered.
        per_grain: information (1/variance) that one grain of cost buys; precision (1/scale) where the noise is Laplace,
            whose grains are farthings.
        looks: int64, rising (neighbours below 1/(g - 1) grains may be equal: they are one look): the total grains of
            each look; the last is the most a group can pay.
        jumps: the jump map, on indices counted backwards from the last look.
        futility: when a group is given up, or None.
        capped: whether the cap binds, so that `floor` is above the absolute target.
        signed: whether answers may be negative, so that groups stop and jump by |Y|; else by max(Y, 0).
        meeting: the public looks at which enough groups may be done, counted backwards; every group looks there.
        law: the law of the noise.

    Guarantee: a group that follows `next_look` until `stopped` or `futile`, on measurements of this law, is covered by
        `report.reported` with probability at least 1 - beta, whatever its truth >= 0; whatever its truth, if `signed`.
    Proof: docs/proofs/accuracy.schedule.md; for Laplace noise docs/proofs/accuracy.laplace_stop_rule.md.
    Assumes: Y is the mean of Gaussian measurements, of variance 1/(grains * per_grain), or what a Laplace chain shows,
        of scale 1/(grains * per_grain); looks and jumps see nothing but Y.
    Rounds: the last look up, so that the floor is at most the absolute target; c up.

    >>> plan = Schedule.plan(0.1, 100.0, 0.05, per_grain=2.0**-56, cap_grains=2**50)
    >>> plan.capped, plan.floor <= 100.0, int(plan.looks[-1]), len(plan.looks)
    (False, True, 28442182546335, 2817)
    >>> bool(plan.stopped(plan.looks[-1:], np.array([3.0]))[0])
    True
    """

    relative: float
    absolute: float
    critical: float
    per_grain: float
    looks: Ints = field(repr=False)
    jumps: JumpMap = field(repr=False)
    futility: Futility | None
    capped: bool
    signed: bool = False
    meeting: tuple[int, ...] = ()
    law: NoiseLaw = GAUSSIAN

    @classmethod
    def plan(
        cls,
        relative: float,
        absolute: float,
        beta: float,
        *,
        per_grain: float,
        cap_grains: int,
        futility: bool = True,
        after: StopRule | None = None,
        signed: bool = False,
        meets: int = 0,
        law: NoiseLaw = GAUSSIAN,
    ) -> Schedule:
        """Lay out the looks for max(relative |x|, absolute) at failure probability beta.

        Args:
            relative: r in [0, 1).
            absolute: a >= 0.
            beta: allowed chance of a miss a group.
            per_grain: information that one grain buys.
            cap_grains: the most grains a group may pay; >= 1.
            futility: whether hopeless groups may be given up when the cap binds.
            after: the rule of an earlier, looser answer to the same question that this one refines: the new rule is
                made to go on wherever the earlier one did.
            signed: whether answers may be negative, as sums may.
            meets: where not 0, groups may be stopped by what others showed, for the so-manieth time in the life of
                the question: at meetings only.
            law: the law of the noise.
        """
        asked = relative
        relative = tamed(asked, beta, law)
        ratio = step_ratio(relative)
        wanted = _grains_for(law.two_sided(beta), absolute, per_grain, law)
        span = _span(min(wanted, cap_grains), ratio, law) if relative > 0 else 0
        even = meets > 0
        own = _critical(relative, beta, span, ratio, (), signed=signed, law=law, even=even)
        least = _going_on(after, relative, own, law=law, even=even, held_back=relative < asked)
        if least > 0 and not even:
            even, own = True, _critical(relative, beta, span, ratio, (), signed=signed, law=law, even=True)
        critical = max(own, least)
        last = _grains_for(critical, absolute, per_grain, law)
        capped = last > cap_grains
        hopeless = last > law.growth(HOPELESS) * cap_grains and futility and span > 0
        giving_up = Futility.plan(relative, beta, span, ratio, law) if hopeless else None
        meeting = meetings(span, ratio) if meets and relative > 0 else ()
        if meeting:
            early = giving_up.indices if giving_up is not None else ()
            chances = len(early) + (1 if meets == 1 else len(meeting))
            giving_up = Futility(law.two_sided(beta * FUTILITY_SHARE / chances), early)
        public = tuple(sorted({*meeting, *(giving_up.indices if giving_up else ())}, reverse=True))
        if giving_up is not None:
            spare = beta * (1 - FUTILITY_SHARE)
            likely = own * law.two_sided(spare) / law.two_sided(beta) * _A_LITTLE_MORE
            own = _critical(relative, spare, span, ratio, public, signed=signed, law=law, likely=likely, even=even)
            critical = max(own, least)
            last = _grains_for(critical, absolute, per_grain, law)
            capped = last > cap_grains
        last = int(min(max(last, after.last if after is not None else 0), cap_grains))
        jumps = _lines(relative, critical, ratio, _barriers(span, ratio, public, law), law=law, even=even)
        looks = _looks(last, span, law.growth(ratio))
        return cls(relative, absolute, critical, per_grain, looks, jumps, giving_up, capped, signed, meeting, law)

    @property
    def floor(self) -> float:
        """Return a*, the half-width of an interval at the last look: the absolute target, or what the cap allows."""
        return self.critical / float(self.precision(int(self.looks[-1])))

    @property
    def strictest(self) -> float:
        """Return c of its highest line: what the half-width is made of at which a group surely stops."""
        return self.jumps.near * self.relative if self.relative > 0 else self.critical

    @property
    def first_look(self) -> int:
        """Return the grains of the first look."""
        return int(self.looks[0])

    @property
    def meetings(self) -> Ints:
        """Return the grains of the meetings, rising; the last look is the last one."""
        return self.looks[[*(len(self.looks) - 1 - index for index in self.meeting), -1]]

    @property
    def rule(self) -> StopRule:
        """Return what to keep with the answer for a later refinement."""
        return StopRule(self.relative, self.critical, int(self.looks[-1]))

    def precision(self, information: Any) -> Any:
        """Return one over the noise's scale, in the units of the answer, after so many grains."""
        return self.law.precision(information, self.per_grain)

    def typical(self, truth: Floats) -> Ints:
        """Return about how many grains a group of that size pays (for plans; a group may pay up to the last look).

        >>> plan = Schedule.plan(0.1, 100.0, 0.05, per_grain=2.0**-56, cap_grains=2**50)
        >>> [round(float(x), 2) for x in plan.typical(np.array([0.0, 2_000.0, 10_000.0])) / plan.looks[-1]]
        [1.0, 0.25, 0.01]
        """
        size = np.abs(truth)
        early = self.relative * size > self.floor
        needed = np.where(early, self.jumps.boundary / np.where(early, size, 1.0), self.critical / self.floor)
        grains = np.minimum(np.ceil(self.law.amount(needed, self.per_grain)), self.looks[-1]).astype(np.int64)
        if self.futility is None or not self.futility.indices:
            return np.asarray(grains)
        given_up = self.looks[len(self.looks) - 1 - self.futility.indices[0]]
        return np.asarray(np.where(self.relative * size < self.floor, given_up, grains))

    def half_width(self, truth: Floats) -> Floats:
        """Return about the half-width that a group of that size ends with; wide for one that is given up."""
        width = np.maximum(self.relative * np.abs(truth), self.floor)
        if self.futility is None or not self.futility.indices:
            return width
        wide = self.futility.width / self.precision(self.typical(truth))
        return np.where(self.relative * np.abs(truth) < self.floor, wide, width)

    def next_look(self, information: Ints, value: Floats) -> Ints:
        """Return the total grains of each group's next look, for groups that have not stopped.

        Args:
            information: int64[groups], total grains so far; 0 for none; need not be grains of a look.
            value: float64[groups], the precision-weighted mean Y so far; anything where information is 0.
        """
        known = np.where(information > 0, value, 0.0)
        return np.asarray(self.looks[self.leap(self.behind(information), information, known)])

    def behind(self, information: Ints) -> Ints:
        """Return how many looks lie behind groups that have that many grains."""
        return np.asarray(np.searchsorted(self.looks, information, side="right"))

    def leap(self, behind: Ints, information: Ints, value: Floats) -> Ints:
        """Return the number (from 0) of each group's next look, for a caller that keeps track of `behind`."""
        signal = self._signal(information, value)
        table: Ints = _leaps(self.jumps, len(self.looks))
        return np.asarray(table[behind * len(self.jumps.levels) + self.jumps.level_of(signal)])

    def _signal(self, information: Ints, value: Floats) -> Floats:
        """Return what a look showed, in its own standard deviations; without its sign where that may be either."""
        signal = (np.abs(value) if self.signed else value) * self.precision(information)
        return np.asarray(signal, dtype=np.float64)

    def line(self, information: Ints) -> Floats:
        """Return the signals at which groups with so many grains stop."""
        zone = self.looks[max(len(self.looks) - 1 - self.jumps.zone, 0)]
        near = (self.jumps.zone > 0) & (information >= zone)
        return np.where(near, self.jumps.near, self.jumps.boundary)

    def stopped(self, information: Ints, value: Floats) -> NDArray[np.bool_]:
        """Return which groups have met the rule or reached the last look."""
        signal = self._signal(information, value)
        met = (signal >= self.line(information)) & (information > 0)
        return np.asarray(met | (information >= self.looks[-1]))

    def futile(self, information: Ints, value: Floats) -> NDArray[np.bool_]:
        """Return which groups are to be given up: at a public look, their relative target costs more than the cap."""
        if self.futility is None:
            return np.zeros(information.shape, dtype=np.bool_)
        public = np.isin(information, self.looks[[len(self.looks) - 1 - i for i in self.futility.indices]])
        most = np.abs(value) + self.futility.width / self.precision(np.maximum(information, 1))
        hopeless = public & (self.relative * most < self.floor)
        return np.asarray(hopeless & (information < self.looks[-1]))


def meetings(span: int, ratio: float) -> tuple[int, ...]:
    """Return the meetings of a schedule, counted backwards from the last look, rising information.

    >>> meetings(2848, 1.01)[-3:], len(meetings(2848, 1.01))
    ((48, 32, 16), 76)
    """
    close = math.log(MEETING_RANGE) / math.log(ratio)
    double = _ALIGNED * max(1, round(math.log(2) / math.log(ratio) / _ALIGNED))
    near = range(_ALIGNED, min(span, math.ceil(close)), _ALIGNED)
    far = range(near[-1] + double, span, double) if near else ()
    return tuple(sorted({*near, *far}, reverse=True))


def _critical(  # what the looks are
    relative: float,
    beta: float,
    span: int,
    ratio: float,
    public: tuple[int, ...],
    *,
    signed: bool,
    law: NoiseLaw,
    likely: float = 0.0,
    even: bool = False,
) -> float:
    """Return the critical value of a rule under a law of noise; `likely` is tried first."""
    if law is GAUSSIAN:
        return critical_value(relative, beta, span, ratio, public, signed=signed, likely=likely, even=even)
    return laplace_stop_rule.critical_value(relative, beta, span, ratio, public, signed=signed, likely=likely)


def _lines(
    relative: float, critical: float, ratio: float, public: tuple[int, ...], *, law: NoiseLaw, even: bool
) -> JumpMap:
    """Return where looks stop, and which comes next, under a law of noise."""
    if relative == 0:
        return JumpMap(math.inf, ratio, public, law=law)
    if law is GAUSSIAN:
        return lines(relative, critical, ratio, public, even=even)
    return JumpMap(critical / relative, ratio, public, law=law)


def _going_on(  # two rules
    after: StopRule | None, relative: float, own: float, *, law: NoiseLaw, even: bool, held_back: bool
) -> float:
    """Return the least c of an even rule that goes on wherever an earlier one did; 0 where `own` does, or none need.

    Args:
        after: the earlier rule.
        relative: r of the new one.
        own: its c.
        law: the law of the noise.
        even: whether the new rule is even anyway.
        held_back: whether the new rule is made for less than was asked: then both lines may be as low as they may be.
    """
    if after is None or not (0 < relative <= after.relative or (held_back and after.relative > 0)):
        return 0.0
    highest = _lines(after.relative, after.critical, step_ratio(after.relative), (), law=law, even=False).near
    if _lines(relative, own, step_ratio(relative), (), law=law, even=even).boundary >= highest:
        return 0.0
    least = critical_of(highest, relative) if law is GAUSSIAN else highest * relative
    return least if relative <= after.relative or least <= _ABOUT * own else 0.0


def _barriers(span: int, ratio: float, public: tuple[int, ...], law: NoiseLaw) -> tuple[int, ...]:
    """Return the indices that no jump passes."""
    return public if law is GAUSSIAN else tuple(sorted({*laplace_stop_rule.gates(span, ratio), *public}))


def _grains_for(critical: float, absolute: float, per_grain: float, law: NoiseLaw) -> float:
    """Return the grains that bring c over the precision down to `absolute`; infinite for 0."""
    if absolute == 0:
        return math.inf
    grains = float(law.amount(critical / absolute, per_grain)) * _UP
    return grains if math.isinf(grains) else float(max(1, math.ceil(grains)))


def _span(last: float, ratio: float, law: NoiseLaw) -> int:
    """Return the index of the first look: the last aligned one that has at least the law's first grains.

    A Laplace chain begins at a gate, if it passes any.
    """
    steps = math.log(max(last / law.first, 1)) / math.log(law.growth(ratio))
    aligned = _ALIGNED if law is GAUSSIAN or steps < laplace_stop_rule.gate(ratio) else laplace_stop_rule.gate(ratio)
    return aligned * math.floor(steps / aligned)


@lru_cache(maxsize=64)
def _leaps(jumps: JumpMap, looks: int) -> Ints:
    """Tabulate the jump map: the number of the next look, by looks behind (rows) and level of the signal, flattened."""
    behind = np.arange(looks)[:, None]
    index = looks - np.maximum(behind, 1)  # of the last look behind, counted backwards from 0
    target = jumps.landing(np.maximum(index, 1), np.arange(len(jumps.levels))[None, :])
    return np.where(behind > 0, looks - 1 - target, 0).ravel()


def _looks(last: int, span: int, growth: float) -> Ints:
    """Return round(last / growth^j) for j = span ... 0; the last is exact. Tiny neighbours may be equal: one look."""
    looks = np.rint(last / growth ** np.arange(span, -1, -1.0)).astype(np.int64)
    looks[-1] = last
    return looks
