"""Races: which of many noisy numbers is the largest, decided exactly, without ever drawing them in full.

Each contender is centre + noise, the noise a monotone function of one uniform number with infinitely many bits, of
which 64 are looked at. In float64 every contender is enclosed in an interval. Those whose intervals do not settle the
race read on in the *same* bits, in ball arithmetic, until they differ: nothing is redrawn, equal centres are told apart
by their bits alone, and a contender that is 800 behind wins with its true tiny chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import NoiseError
from farthing.noise.bits import fork_safe_lock, system_bits
from farthing.noise.certified import GUARD, MOST_BITS, TAIL
from farthing.noise.gaussian import Gaussian
from farthing.noise.laplace import ExponentialLaw, Gumbel

if TYPE_CHECKING:
    from collections.abc import Callable

    from flint import arb

    from farthing.noise.bits import BitSource
    from farthing.noise.certified import Floats, Integers, Law, Parameter

MARGIN: Final = 2.0**-34
"""How far a standard variable in float64, added to its centre, can be from the truth: 2^-35 for every law (see
`farthing.noise.laplace` and `gaussian`), doubled for the addition. A centre's own error, below 2^-50 of it, comes on
top.
"""

CHUNK: Final = 1 << 18
"""Contenders enclosed at a time."""

LEAD_BITS: Final = 10
"""Leads are told to a step of 2^-10 of the standard noise."""

_BALLS: Final = fork_safe_lock()


@dataclass(frozen=True, slots=True)
class Laplace:
    """The standard Laplace law: P[beyond t] = exp(-t)/2 on either side. For races only, never shown."""

    def floats(self, beyond: Floats, side: Floats, at: slice) -> None:  # noqa: ARG002  of the protocol
        """Overwrite the tail probability by the point beyond which it lies."""
        beyond *= 2.0
        np.log(beyond, out=beyond)
        np.copysign(beyond, side, out=beyond)

    def slack(self, at: slice) -> Parameter:  # noqa: ARG002  of the protocol
        """Return how far `floats` can be from the truth."""
        return MARGIN / 2

    def ball(self, beyond: arb, *, upper: bool, index: int) -> arb:  # noqa: ARG002  of the protocol
        """Return the same in balls."""
        distance = -(2 * beyond).log()
        return distance if upper else -distance


LAWS: Final[dict[str, Law]] = {
    "exponential": ExponentialLaw(1.0, 0.0),
    "gaussian": Gaussian(1.0, 0.0),
    "gumbel": Gumbel(1.0, 0.0),
    "laplace": Laplace(),
}
"""The standard laws that race."""


@dataclass(slots=True)
class Noisy:
    """centre + log(many) + size * noise, its bits read as far as a comparison needs. The value is secret: not shown.

    Attributes:
        law: the standard law of the noise.
        centre, size: exact numbers; size 0 is a number without noise.
        word: the first 64 bits, as an int64: the sign is the side, the rest the probability beyond.
        bits: where further bits come from.
        many: a whole number: a contender that stands for so many equal ones.
    """

    law: Law
    centre: Fraction
    size: Fraction
    word: int
    bits: BitSource
    many: int = 1
    _more: int = 0
    _width: int = 64

    @classmethod
    def draw(cls, noise: str, centre: Fraction, size: Fraction, bits: BitSource | None = None) -> Noisy:
        """Return a fresh noisy number."""
        source = system_bits() if bits is None else bits
        return cls(LAWS[noise], centre, size, int(source.words(1).view(np.int64)[0]), source)

    def ball(self) -> arb:
        """Return a ball that holds the number, from the bits read so far; it may be without end."""
        from flint import arb, ctx, fmpq

        upper = self.word >= 0
        prefix = (self.word if upper else ~self.word) << (self._width - 64) | self._more
        with _BALLS, ctx.workprec(self._width + GUARD):
            centre = arb(fmpq(self.centre.numerator, self.centre.denominator))
            if self.many > 1:
                centre += arb(self.many).log()
            if not self.size:
                return centre
            beyond = arb(2 * prefix + 1, 1) / (1 << (self._width + 1))
            size = arb(fmpq(self.size.numerator, self.size.denominator))
            return centre + size * self.law.ball(beyond, upper=upper, index=0)

    def read_on(self) -> None:
        """Read as many bits again as were read before."""
        if self._width >= MOST_BITS:
            raise NoiseError(
                "no number of random bits settles the race",
                rule=f"at most {MOST_BITS} bits a contender",
                next_step="report this: it should never happen",
            )
        for fresh in self.bits.words(self._width // 64).tolist():
            self._more = self._more << 64 | fresh
        self._width *= 2

    def exceeds(self, other: Noisy) -> bool:
        """Tell whether this number is the larger one, reading on in both until that is certain."""
        while True:
            mine, others = self.ball(), other.ball()
            if mine > others:
                return True
            if mine < others:
                return False
            self.read_on()
            other.read_on()

    def ahead_of(self, other: Noisy) -> float:
        """Return the middle of the step of 2^-LEAD_BITS that holds the difference, reading on until one is certain."""
        from flint import ctx

        while True:
            mine, others = self.ball(), other.ball()
            with _BALLS, ctx.workprec(self._width + GUARD):
                step = ((mine - others) * (1 << LEAD_BITS)).floor().unique_fmpz()
            if step is not None:
                return (int(step) + 0.5) / (1 << LEAD_BITS)
            self.read_on()
            other.read_on()

    def interval(self) -> tuple[float, float]:
        """Return float64 bounds of the number, from the bits read so far."""
        ball = self.ball()
        if not ball.is_finite():
            return -math.inf, math.inf
        return math.nextafter(float(ball.lower()), -math.inf), math.nextafter(float(ball.upper()), math.inf)


@dataclass(frozen=True, slots=True)
class Field:
    """The contenders of one or more races.

    Attributes:
        noise: the name of the law, one of `LAWS`.
        centres: float64[races, contenders], each within 2^-50 of itself, plus 2^-40, of the exact one.
        exact: returns the exact centre of one contender, by race and place.
        slack: what every centre may be off besides, where a sum has cancelled.
        many: returns how many equal contenders one stands for, by race and place, in a Gumbel race: its centre is the
            exact one plus the logarithm of that; None for one each.
    """

    noise: str
    centres: Floats
    exact: Callable[[int, int], Fraction]
    slack: float = 0.0
    many: Callable[[int, int], int] | None = None

    def contender(self, race: int, place: int, word: int, bits: BitSource) -> Noisy:
        """Return a contender whose first bits are known."""
        many = 1 if self.many is None else self.many(race, place)
        return Noisy(LAWS[self.noise], self.exact(race, place), Fraction(1), word, bits, many)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Contenders of one race that may still be among the first."""

    places: Integers
    words: Integers
    low: Floats
    high: Floats

    def take(self, chosen: Integers | np.typing.NDArray[np.bool_]) -> _Kept:
        """Return some of them."""
        return _Kept(self.places[chosen], self.words[chosen], self.low[chosen], self.high[chosen])

    def join(self, other: _Kept) -> _Kept:
        """Return these and others."""
        return _Kept(
            np.concatenate([self.places, other.places]),
            np.concatenate([self.words, other.words]),
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
        )

    def first(self, k: int) -> _Kept:
        """Return those that are not surely behind k others."""
        if len(self.low) <= k:
            return self
        return self.take(self.high >= np.partition(self.low, len(self.low) - k)[-k])


def leaders(field: Field, k: int = 1, bits: BitSource | None = None) -> Integers:
    """Return the places of the k largest of centre + noise in each race, largest first, exactly.

    Args:
        field: the contenders.
        k: how many, from 1 to the number of contenders.
        bits: where the bits come from; by default the operating system.

    Returns:
        int64[races, k].

    Guarantee: the law of the order statistics' places under real-valued independent noise, whatever float64 does.
    Proof: docs/proofs/mechanisms.select.md, "The race".
    Assumes: secret uniform bits; each law's float64 errs by at most 2^-35 where U >= 2^-22. Timing is not hidden.
    Rounds: nothing.

    >>> field = Field("gumbel", np.array([[0.0, -900.0, -2000.0]]), lambda _, place: Fraction((0, -900, -2000)[place]))
    >>> leaders(field, 2).tolist()
    [[0, 1]]
    """
    source = system_bits() if bits is None else bits
    races, contenders = field.centres.shape
    out = np.empty((races, k), np.int64)
    if contenders > CHUNK:
        for race in range(races):
            out[race] = _settle(field, race, _survivors(field, race, k, source), k, source)
        return out
    step = max(1, CHUNK // contenders)
    for start in range(0, races, step):
        _settle_block(field, start, out[start : start + step], source)
    return out


def leads(field: Field, k: int = 1, bits: BitSource | None = None) -> tuple[Integers, Floats]:
    """Return the places of the k largest of centre + noise in a single race, and how far each is ahead of the next.

    Args:
        field: one race of more than k contenders.
        k: how many.
        bits: where the bits come from; by default the operating system.

    Returns:
        int64[k], and float64[k]: the middle of the step of 2^-LEAD_BITS in which the exact lead lies.

    Guarantee: the law of the order statistics' places and of their exact differences, rounded, whatever float64 does.
    Proof: docs/proofs/mechanisms.select.md, "The race".
    Assumes: secret uniform bits; each law's float64 errs by at most 2^-35 where U >= 2^-22. Timing is not hidden.
    Rounds: each lead, to a public grid, once it is certain.

    >>> field = Field("gumbel", np.array([[0.0, -900.0, -2000.0]]), lambda _, place: Fraction((0, -900, -2000)[place]))
    >>> places, ahead = leads(field, 2)
    >>> places.tolist(), bool(800 < ahead[0] < 1000 < ahead[1] < 1200)
    ([0, 1], True)
    """
    source = system_bits() if bits is None else bits
    kept = _survivors(field, 0, k + 1, source)
    order, runners = _ordered(field, 0, kept, k + 1, source)
    for place in order:
        if place not in runners:
            runners[place] = field.contender(0, int(kept.places[place]), int(kept.words[place]), source)
    ahead = [runners[one].ahead_of(runners[other]) for one, other in pairwise(order)]
    return np.asarray(kept.places[order[:k]]), np.array(ahead, np.float64)


def first_above(field: Field, bar: Noisy, bits: BitSource | None = None) -> int | None:
    """Return the place of the first contender of a single race that exceeds the bar, or None.

    Args:
        field: one race, its contenders in order.
        bar: a noisy number, drawn before.
        bits: where the bits come from.

    Guarantee: the place has exactly the law of comparing exact noisy numbers, one after the other, with the bar.
    Proof: docs/proofs/mechanisms.select.md, "The race": here the bar is one more contender.
    Assumes: secret uniform bits; each law's float64 errs by at most 2^-35 where U >= 2^-22. Timing is not hidden.
    Rounds: nothing.
    """
    found = _passing(field, bar, bits)
    return None if found is None else found[0]


def first_lead(field: Field, bar: Noisy, bits: BitSource | None = None) -> tuple[int, float] | None:
    """Return the place of the first contender of a single race that exceeds the bar, and by how much, or None.

    Args:
        field: one race, its contenders in order.
        bar: a noisy number, drawn before.
        bits: where the bits come from.

    Returns:
        the place, and the middle of the step of 2^-LEAD_BITS in which the exact lead over the bar lies.

    Guarantee: the law of comparing exact noisy numbers with the bar, and of the exact lead, rounded.
    Proof: docs/proofs/mechanisms.select.md, "The race".
    Assumes: secret uniform bits; each law's float64 errs by at most 2^-35 where U >= 2^-22. Timing is not hidden.
    Rounds: the lead, to a public grid, once it is certain.
    """
    found = _passing(field, bar, bits)
    return None if found is None else (found[0], found[1].ahead_of(bar))


def _passing(field: Field, bar: Noisy, bits: BitSource | None) -> tuple[int, Noisy] | None:
    """Return the first contender that exceeds the bar, with its place, or None."""
    source = system_bits() if bits is None else bits
    centres = field.centres[0]
    for start in range(0, len(centres), CHUNK):
        words = source.words(len(centres[start : start + CHUNK])).view(np.int64)
        low, high = enclose(field.noise, centres[start : start + CHUNK], words, field.slack)
        lower, upper = bar.interval()
        for place in np.flatnonzero(high >= lower).tolist():
            runner = field.contender(0, start + place, int(words[place]), source)
            if low[place] > upper or runner.exceeds(bar):
                return start + place, runner
    return None


def enclose(noise: str, centres: Floats, words: Integers, slack: float = 0.0) -> tuple[Floats, Floats]:
    """Return float64 bounds of centre + noise from 64 bits of each; without end where float64 does not tell."""
    with np.errstate(all="ignore"):  # infinities and NaN arise in the tails alone, which are overwritten
        side = np.multiply(words, 2.0**-64)
        place = np.abs(side)
        tails = place < TAIL
        LAWS[noise].floats(place, side, slice(None))
        place += centres
        error = np.abs(centres) * 2.0**-50
        error += MARGIN + slack
    low, high = place - error, place + error
    low[tails], high[tails] = -np.inf, np.inf
    return low, high


def _settle_block(field: Field, start: int, out: Integers, bits: BitSource) -> None:
    """Write the leaders of a block of races: by float64 where one contender is surely first, else one by one."""
    races, k = out.shape
    centres = field.centres[start : start + races]
    words = bits.words(centres.size).view(np.int64).reshape(centres.shape)
    low, high = enclose(field.noise, centres, words, field.slack)
    bound = np.partition(low, low.shape[1] - k, axis=1)[:, -k]
    open_ = high >= bound[:, None]
    hard = np.arange(races)
    if k == 1:
        out[:, 0] = np.argmax(low, axis=1)
        hard = np.flatnonzero(open_.sum(axis=1) > 1)
    for race in hard.tolist():
        at = np.flatnonzero(open_[race])
        kept = _Kept(at, words[race, at], low[race, at], high[race, at])
        out[race] = _settle(field, start + race, kept, k, bits)


def _survivors(field: Field, race: int, k: int, bits: BitSource) -> _Kept:
    """Return who may still be among the first k of a long race, looking at a chunk at a time."""
    centres = field.centres[race]
    kept = _Kept(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))
    for start in range(0, len(centres), CHUNK):
        part = centres[start : start + CHUNK]
        words = bits.words(len(part)).view(np.int64)
        fresh = _Kept(np.arange(start, start + len(part)), words, *enclose(field.noise, part, words, field.slack))
        kept = kept.join(fresh.first(k)).first(k)
    return kept


def _settle(field: Field, race: int, kept: _Kept, k: int, bits: BitSource) -> Integers:
    """Return the first k of those kept, in order."""
    return np.asarray(kept.places[_ordered(field, race, kept, k, bits)[0]])


def _ordered(field: Field, race: int, kept: _Kept, k: int, bits: BitSource) -> tuple[list[int], dict[int, Noisy]]:
    """Return which of those kept are the first k, in order, and the noisy numbers that were needed for that.

    Runs of overlapping intervals are sorted by exact comparison.
    """
    runners: dict[int, Noisy] = {}
    for hard in np.flatnonzero(np.isinf(kept.high)).tolist():  # the tails: read off in balls, once
        runners[hard] = field.contender(race, int(kept.places[hard]), int(kept.words[hard]), bits)
        kept.low[hard], kept.high[hard] = runners[hard].interval()
    order = np.argsort(-kept.low, kind="stable")
    reach = np.maximum.accumulate(kept.high[order][::-1])[::-1]  # the most that any later one can be
    starts = [0, *(np.flatnonzero(kept.low[order][:-1] > reach[1:]) + 1).tolist(), len(order)]
    found: list[int] = []
    for begin, end in pairwise(starts):
        if len(found) >= k:
            break
        run = order[begin:end].tolist()
        if len(run) > 1:
            for place in run:
                if place not in runners:
                    runners[place] = field.contender(race, int(kept.places[place]), int(kept.words[place]), bits)
            run.sort(key=cmp_to_key(partial(_order, runners)))
        found += run
    return found[:k], runners


def _order(runners: dict[int, Noisy], one: int, other: int) -> int:
    """Say which of two comes first, for sorting."""
    return -1 if runners[one].exceeds(runners[other]) else 1
