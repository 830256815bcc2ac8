"""What a group's outputs need: the cheapest grains in each lane, and how far intervals are from their targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from farthing.accuracy.formulas import CurvedStatistic, at_least
from farthing.accuracy.statistics import Linear, added
from farthing.accuracy.stop_rule import two_sided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from farthing.accuracy.statistics import Statistic

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

PILOT: Final = 0.05
"""A pilot ends when it has cost this part of the price that it predicts, or this, for a coarse relative target r:"""

PILOT_COARSE: Final = 0.7
"""PILOT_COARSE r^2, so that its answers are within half of themselves."""

_DOUBT: Final = 2.0  # denominators and answers count as at least this many of their standard deviations
_CLEARLY: Final = 4.0  # standard deviations from 0 at which a denominator is clear
_SEEN: Final = 2.0  # standard deviations from 0 at which an answer is clear enough for a relative target
_SURE: Final = 2.0  # standard deviations by which denominators and answers may be larger than they seem
_HOPE: Final = 1.5  # by how many standard deviations a denominator may be larger than it seems
_LITTLE: Final = 0.4  # of what it holds, what a group that is vague needs yet at least
_SHORT: Final = 1.25  # times what is left, a claim needs that is paused
_LATE: Final = 0.2  # of a claim's stages are left when it is paused and its group given up for that
_HALF: Final = 0.5  # the same where the cap is to be spent whatever comes
_SLIGHTLY: Final = 1.001
_NEARLY: Final = 1 + 1e-9
_WIDER: Final = 1.001  # times what the target allows
ROUNDS: Final = 8
"""Rounds of the ascent on several outputs' prices."""

_FEW_ROUNDS: Final = 3  # the same where the price is to be known roughly
_BLOCK: Final = 1 << 13  # groups whose arrays fit in cache together
IN_TURN: Final = 1 << 15
"""Groups that are measured to their end before others: so many that what is known of them fits in cache."""

_UNKNOWN: Final = 1e40  # the variance of what was not measured, in those of a grain
_TINY: Final = 1e-100
_HUGE: Final = 1e60


@dataclass(frozen=True)
class JointPrices:
    """The targets of several outputs over shared lanes, in arrays.

    Attributes:
        statistics: one an output.
        relative, absolute: float64[outputs, 1], the targets; both 0 for an output that only comes along.
        worth: float64[lanes, 1], the information in value units that a grain buys.
        cap: the most grains a group may hold.
        patience: a group is given up that surely needs more than so many times what it may still pay.
    """

    statistics: tuple[Statistic, ...]
    relative: Floats
    absolute: Floats
    worth: Floats
    cap: int
    patience: float = 1.0

    @cached_property
    def asked(self) -> Flags:
        """Which outputs have a target, bool[outputs, 1]."""
        return np.asarray((self.relative > 0) | (self.absolute > 0))

    @cached_property
    def named_loss(self) -> bool:
        """Whether none has: the cap is what was named."""
        return not bool(self.asked.any())

    @cached_property
    def pilot(self) -> float:
        """Return the part of its predicted price at which a pilot ends."""
        return float(min(max(PILOT, PILOT_COARSE * self.relative.max() ** 2), 1.0))

    @cached_property
    def used(self) -> Flags:
        """Which lanes any statistic reads, bool[lanes]."""
        lanes = {lane for statistic in self.statistics for lane in statistic.reads}
        return np.isin(np.arange(len(self.worth)), sorted(lanes))

    def allowed(self, truth: Floats) -> Floats:
        """Return how far answers may be from those truths."""
        size = np.where(np.isfinite(truth), np.abs(truth), 0.0)
        return np.asarray(np.maximum(self.relative * size, self.absolute))

    def variances(self, information: Ints) -> Floats:
        """Return the variances of lanes measured with those grains; very large where there are none."""
        return np.asarray(1 / np.maximum(information, 1 / _UNKNOWN) / self.worth)

    @cached_property
    def counts(self) -> list[int]:
        """The lanes that statistics divide by."""
        return sorted({lane for statistic in self.statistics for lane in statistic.counts})

    @cached_property
    def spreads(self) -> list[Any]:
        """The variances that formulas divide by, or have roots of."""
        formulas = (statistic for statistic in self.statistics if isinstance(statistic, CurvedStatistic))
        return list(dict.fromkeys(spread for formula in formulas for spread in formula.spreads))

    def unclear(self, means: Floats, information: Ints, variances: Floats) -> tuple[Floats, Floats]:
        """Return what a pilot has to know of groups, of everything that they were measured with.

        Returns:
            How many times what they hold groups need yet that are too vague for a price, float64[groups], 0 for others;
            and what unclear denominators still need, float64[lanes, groups].

        Vague is a group with a relative target for an answer that is not yet clearly there. A denominator is clear at
        `_CLEARLY` standard deviations. Both hope that what is not clear yet is larger than it seems.
        """
        needs, vague = np.zeros(means.shape), np.zeros(means.shape[1])
        if self.spreads:
            vague[at_least(means, variances, self.spreads, _DOUBT)[1] < _CLEARLY] = _LITTLE
        for statistic, relative, absolute in self._each():
            if relative:
                size, spread = self._spread(statistic, means, variances, (relative, absolute))
                clear = statistic.width(np.maximum(size, _SEEN * spread), relative, absolute)
                vague[clear > statistic.width(size, relative, absolute) * _SLIGHTLY] = _LITTLE
        for lane in self.counts:
            signal = means[lane] / np.sqrt(variances[lane])
            more = np.maximum((_CLEARLY / (np.maximum(signal, 0.0) + _HOPE)) ** 2 - 1, 1.0)
            np.multiply(information[lane], more, out=needs[lane], where=signal < _CLEARLY)
        return vague, needs

    def roughly(self, means: Floats, variances: Floats, beta: float, groups: Flags) -> Floats:
        """Return the grains that some groups seem to want, float64[lanes, groups], not to the last digit; 0 of others.

        For a named loss groups differ in proportions alone: what is wanted in all is the cap.
        """
        if groups.all():
            return self.wanted(means, variances, beta, rounds=_FEW_ROUNDS)
        found = np.zeros(means.shape)
        found[:, groups] = self.wanted(means[:, groups], variances[:, groups], beta, rounds=_FEW_ROUNDS)
        return found

    def doubt(self, values: Floats, variances: Floats) -> Floats:
        """Return by what part one standard deviation of denominators and answers changes the clock that is needed.

        The two add: an answer that seems smaller often has a denominator that seems larger.
        """
        spread = np.sqrt(variances[self.counts])
        few = (spread / np.maximum(values[self.counts], spread)).max(axis=0, initial=0.0)
        if self.spreads:
            few = few + 1 / np.maximum(at_least(self._doubted(values, variances), variances, self.spreads, 0.0)[1], 1.0)
        most = np.zeros(values.shape[1])
        for statistic, relative, absolute in self._each():
            size, spread = self._spread(statistic, values, variances, (relative, absolute))
            width = np.maximum(statistic.width(size, relative, absolute), _TINY)
            most = np.maximum(most, statistic.width(size + spread, relative, absolute) / width - 1)
        return np.asarray(few + np.minimum(most, 1.0))

    def _each(self) -> zip[tuple[Statistic, float, float]]:
        """Return every statistic with its target."""
        return zip(self.statistics, self.relative[:, 0].tolist(), self.absolute[:, 0].tolist(), strict=True)

    @staticmethod
    def _spread(
        statistic: Statistic, values: Floats, variances: Floats, target: tuple[float, float]
    ) -> tuple[Floats, Floats]:
        """Return a statistic's magnitude and standard deviation."""
        size = statistic.size(values)
        squares = statistic.squared_slopes(values, statistic.width(size, *target))
        return size, np.sqrt(added(square * variances[lane] for lane, square in squares.items()))

    def _doubted(self, means: Floats, variances: Floats) -> Floats:
        """Return lanes of which no denominator, a variance too, is smaller than could be told apart from zero."""
        if not self.counts and not self.spreads:
            return means
        values = means.copy()
        for lane in self.counts:
            values[lane] = np.maximum(values[lane], _DOUBT * np.sqrt(variances[lane]))
        return at_least(values, variances, self.spreads, _DOUBT)[0] if self.spreads else values

    def _widths(self, values: Floats, variances: Floats) -> Iterator[tuple[Statistic, Floats]]:
        """Give the statistics that are asked, each with the half-width that its target allows of doubted lanes."""
        for statistic, relative, absolute in self._each():
            if relative or (absolute and not statistic.even):
                size, spread = self._spread(statistic, values, variances, (relative, absolute))
                yield statistic, statistic.width(np.maximum(size, _DOUBT * spread), relative, absolute)
            elif absolute or self.named_loss:
                yield statistic, np.asarray(absolute)

    def wanted(
        self, means: Floats, variances: Floats, beta: float, straight: float = 1.0, rounds: int = ROUNDS
    ) -> Floats:
        """Return the grains, float64[lanes, groups], that one fixed measurement for all targets seems to need.

        With `straight` below 1 the lanes' shares are nearer to those of sharper targets, where answers are straighter.

        Denominators and answers are not taken to be smaller than could be told apart from zero: what is wanted early
        on is too little rather than too much.
        """
        values = self._doubted(means, variances)
        z, needs = two_sided(beta), []
        for statistic, width in self._widths(values, variances):
            if self.named_loss:  # of which each output asks for the same multiple of what all of it could buy alone
                squares = statistic.squared_slopes(values, width)
                each = (np.sqrt(square / (self.worth[lane] * max(self.cap, 1))) for lane, square in squares.items())
                half = np.asarray(z * added(each))
            else:
                half = width
            squares = statistic.squared_slopes(values, half * straight)
            with np.errstate(over="ignore"):  # beyond all numbers is beyond what there is
                per = (z / np.maximum(half, _TINY)) ** 2 * (half > 0)
                needs.append(
                    {lane: np.minimum(per * (square / self.worth[lane]), _HUGE) for lane, square in squares.items()}
                )
        grains = _cheapest(needs, means.shape, rounds)
        return grains * (self.cap / np.maximum(grains.sum(axis=0), _TINY)) if self.named_loss else grains

    def straight(self, means: Floats, variances: Floats, tick: Floats, beta: float) -> Floats:
        """Return the ticks, float64[groups], that targets seem to need in a shape of so much information a tick."""
        values, z, most = self._doubted(means, variances), two_sided(beta), np.zeros(means.shape[1])
        for statistic, width in self._widths(values, variances):
            squares = statistic.squared_slopes(values, width)
            with np.errstate(over="ignore"):
                per = (z / np.maximum(width, _TINY)) ** 2 * (width > 0)
                np.maximum(most, per * added(square / tick[lane] for lane, square in squares.items()), out=most)
        return np.minimum(most, _HUGE)

    def sure(self, beta: float) -> Floats:
        """Return the grains, float64[lanes, 1], that every group pays for these targets; 0 where that is not known.

        Counts and sums with absolute targets cost the same in every group, and a named loss is paid by all.
        """
        nothing = np.zeros((len(self.worth), 1))
        if self.named_loss:
            return np.where(self.used[:, None], self.cap / max(int(self.used.sum()), 1), 0.0)
        known = [place for place, (one, r, a) in enumerate(self._each()) if a and not r and isinstance(one, Linear)]
        if not known:
            return nothing
        few = replace(
            self,
            statistics=tuple(self.statistics[place] for place in known),
            relative=self.relative[known],
            absolute=self.absolute[known],
        )
        return few.wanted(nothing, nothing, beta)

    def wanted_of(self, means: Floats, information: Ints, beta: float, straight: float = 1.0) -> Floats:
        """Return the same from what was measured."""
        return in_blocks(lambda m, i: self.wanted(m, self.variances(i), beta, straight), means, information)

    def price(self, means: Floats, information: Ints, beta: float) -> Floats:
        """Return the grains in all lanes together that are wanted, float64[groups]."""
        return np.asarray(self.wanted_of(means, information, beta).sum(axis=0))

    def hope(self, means: Floats, information: Ints) -> Floats:
        """Return the part of the price that is surely needed, float64[groups] in (0, 1].

        Every denominator and every answer may be larger than it seems by `_SURE` of its standard deviations.
        """

        def look(means: Floats, information: Ints) -> Floats:
            variances = self.variances(information)
            values, more = self._doubted(means, variances), np.ones(means.shape[1])
            for lane in self.counts:
                most = np.maximum(means[lane], 0.0) + _SURE * np.sqrt(variances[lane])
                more = np.maximum(more, most / values[lane])
            if self.spreads:
                _, seems, then = at_least(values, variances, self.spreads, _DOUBT)
                more = more * (np.maximum(seems, 0.0) + _SURE) / then
            wide = np.ones(means.shape[1])
            for statistic, relative, absolute in self._each():
                size, spread = self._spread(statistic, values, variances, (relative, absolute))
                seems = statistic.width(np.maximum(size, _DOUBT * spread), relative, absolute)
                most = statistic.width(size + _SURE * spread, relative, absolute)
                wide = np.maximum(wide, most / np.maximum(seems, _TINY))
            return np.asarray((more * wide) ** -2)

        return in_blocks(look, means, information)

    def beyond(self, price: Floats, means: Floats, information: Ints, room: Any) -> Flags:
        """Return which groups surely need more than they may still pay, as far as patience goes; bool[groups]."""
        if self.named_loss:
            return np.zeros(means.shape[1], np.bool_)
        most = self.patience * np.broadcast_to(room, price.shape)
        found = np.asarray(price > most)  # hope is 1 at most
        if len(some := np.flatnonzero(found)):
            found[some] = price[some] * self.hope(means[:, some], information[:, some]) > most[some]
        return found

    def short(self, needed: Floats, left: Ints, rest: float) -> Flags:
        """Return which claims cannot end within what is left, late enough for that to be known; bool[groups].

        Args:
            needed: float64[groups], the ticks that seem to be needed yet.
            left: int64[groups], the ticks that may be bought.
            rest: the part of the claim's stages that is to come.
        """
        if self.named_loss or rest > (_LATE if self.patience <= 1 else _HALF):
            return np.zeros(needed.shape, np.bool_)
        return np.asarray(needed > _SHORT * left)

    def intervals(self, values: Floats, variances: Floats, beta: float) -> tuple[Floats, Floats]:
        """Return lower and upper ends, float64[outputs, groups]."""
        ends = [statistic.interval(values, variances, beta) for statistic in self.statistics]
        return np.stack([low for low, _ in ends]), np.stack([high for _, high in ends])

    def plain(self, means: Floats, information: Ints, beta: float) -> tuple[Floats, Floats]:
        """Return the intervals of all measurements of a lane taken together."""

        def ends(means: Floats, information: Ints) -> Floats:
            return np.stack(self.intervals(means, self.variances(information), beta))

        lower, upper = in_blocks(ends, means, information)
        return lower, upper

    def judged(self, means: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Flags]:
        """Return the values that serve best within intervals, and which intervals are within their targets.

        A value serves if it is within max(r |x|, a) of every x of the interval: it lies between the bounds that the two
        ends give, which leave room if the output is met. The best estimate is moved there, and into the interval.
        """

        def judge(means: Floats, lower: Floats, upper: Floats) -> Floats:
            known = np.isfinite(upper - lower)
            above, below = self.allowed(upper), self.allowed(lower)
            met = known & (~self.asked | (upper - lower <= (above + below) * _NEARLY))
            fit = met & self.asked
            least = np.where(fit, np.maximum(upper - above, lower), lower)
            most = np.where(fit, np.minimum(lower + below, upper), upper)
            best = np.stack([statistic.estimate(means) for statistic in self.statistics])
            return np.concatenate([np.clip(best, np.minimum(least, most), most), met])

        found, many = in_blocks(judge, means, lower, upper), len(self.statistics)
        return found[:many], found[many:] > 0

    def ratio(self, lower: Floats, upper: Floats) -> Floats:
        """Return by what factor intervals are too wide for their targets, float64[outputs, groups]."""
        allowed = self.allowed(lower) + self.allowed(upper)
        return np.asarray(np.where(self.asked, (upper - lower) / np.maximum(allowed, _TINY), 0.0))

    def outside(self, lower: Floats, upper: Floats, groups: Flags) -> tuple[Floats, Floats]:
        """Return intervals of which those of some groups are made wider until an output is not within its target."""
        if not groups.any():
            return lower, upper
        ratio = self.ratio(lower, upper).max(axis=0)
        more = np.where(groups & (ratio > 0) & (ratio <= _WIDER), _WIDER / np.maximum(ratio, _TINY), 1.0)
        spare = (more - 1) * np.where(np.isfinite(upper - lower), upper - lower, 0.0) / 2
        return lower - spare, upper + spare

    def excess(self, values: Floats, variances: Floats, beta: float, doubt: Floats | float = 0.0) -> Floats:
        """Return the largest such factor of a group at these lanes, and by the part `doubt` more, to spare."""
        most = np.zeros(values.shape[1])
        for statistic, relative, absolute in self._each():
            if relative or absolute:
                low, high = statistic.interval(values, variances, beta)
                width = high - low
                if relative:
                    ends = (np.maximum(relative * np.abs(end), absolute) for end in (low, high))
                    allowed = added(ends)
                    known = np.isfinite(width)
                    ratio = np.where(known, width / np.where(known, np.maximum(allowed, _TINY), 1.0), np.inf)
                else:
                    ratio = width / (2 * absolute)
                np.maximum(most, ratio, out=most)
        return np.asarray(most * (1 + doubt))


def balanced(needs: Floats) -> Floats:
    """Return the cheapest grains with which all outputs are within their targets.

    Args:
        needs: float64[outputs, lanes, groups], c with output o within its target where the sum of c[o, l]/grains[l]
            over lanes is at most 1.

    Returns:
        float64[lanes, groups]: least in sum for one output (Cauchy and Schwarz); for several, feasible always, and
        within a percent of the least after a few rounds of ascent on the prices of the outputs.

    >>> balanced(np.array([[[1.0], [4.0]]])).tolist()
    [[3.0], [6.0]]
    """
    return _cheapest([dict(enumerate(need)) for need in needs], needs.shape[1:], ROUNDS)


def _cheapest(needs: list[dict[int, Floats]], shape: tuple[int, ...], rounds: int) -> Floats:
    """Return the same from the lanes that each output reads, after so many rounds; 0 in lanes that none reads."""
    prices = [added(np.sqrt(each) for each in need.values()) ** 2 for need in needs]
    grains, loads = np.zeros(shape), [np.zeros(shape[-1])]
    for _ in range(rounds if len(needs) > 1 else 1):
        grains[:] = 0.0
        for price, need in zip(prices, needs, strict=True):
            for lane, each in need.items():
                grains[lane] += price * each
        np.sqrt(grains, out=grains)
        over = 1 / np.maximum(grains, _TINY)
        loads = [added(each * over[lane] for lane, each in need.items()) for need in needs]
        prices = [price * (load * load) for price, load in zip(prices, loads, strict=True)]
    grains *= reduce(np.maximum, loads)
    return grains


def in_parts(wanted: Floats, used: Flags, parts: int) -> Ints:
    """Return wanted grains as a shape: whole numbers about `parts` in sum, at least 1 in every lane in use."""
    share = wanted / np.maximum(wanted.sum(axis=0), _TINY)
    return np.where(used[:, None], np.maximum(np.rint(parts * share), 1), 0).astype(np.int64)


def turns(groups: int) -> Iterator[slice]:
    """Give so many groups a part at a time, at least one.

    >>> [part.stop - part.start for part in turns(IN_TURN)], list(turns(0))
    ([32768], [slice(0, 32768, None)])
    """
    return (slice(start, start + IN_TURN) for start in range(0, max(groups, 1), IN_TURN))


def run_of(groups: Ints) -> slice | Ints:
    """Return groups as a slice, which copies nothing, if they follow one another; else as they are.

    >>> run_of(np.array([3, 4, 5])), run_of(np.array([3, 5])).tolist()
    (slice(3, 6, None), [3, 5])
    """
    follow = len(groups) and groups[-1] - groups[0] == len(groups) - 1 and (np.diff(groups) == 1).all()
    return slice(int(groups[0]), int(groups[-1]) + 1) if follow else groups


def in_blocks(function: Callable[..., Floats], *arrays: NDArray[Any]) -> Floats:
    """Apply a function to blocks of groups, the last axis of all arrays, so that its arrays stay in cache."""
    groups = arrays[0].shape[-1]
    starts = range(0, max(groups, 1), _BLOCK)
    pieces = [function(*(array[..., start : start + _BLOCK] for array in arrays)) for start in starts]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=-1)
