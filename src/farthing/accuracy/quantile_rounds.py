"""Where a search under a pure budget looks for a quantile by value: rounds of a few thresholds, shown together.

What is proved holds whatever thresholds were chosen, so the choice may err. Each threshold says how likely the quantile
lies at it or below; between two of them that share grows with the place. A search round cuts the range where these
shares are cut into equal parts: so it looks into each lump that may hold the quantile, and not into the gaps between.
Where thresholds as near as the target asks most likely hold it, a round of two of them is to prove that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.normal import ndtr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.accuracy.quantile_value import ValueTarget

    Int64 = NDArray[np.int64]
    Float64 = NDArray[np.float64]
    Flags = NDArray[np.bool_]

SURE: Final = 0.7
"""A round is to prove something where two thresholds near enough hold the quantile between them this likely."""

INNER: Final = 8
"""Between two thresholds so many places are tried for the lower one of the two."""

UNLIKELY: Final = 0.02
"""Two thresholds are not tried that hold the quantile less likely;"""

DOUBT: Final = 0.5
"""others count as much more expensive as one over this power of how likely they do."""

WIDE: Final = 0.25
"""A bin is worth to be cut if it is wider than this part of what the target allows."""

NONE: Final = np.iinfo(np.int64).max
"""No threshold."""

_FAR: Final = 1e18


class NearPair(NamedTuple):
    """Two thresholds that are near enough to be an answer, one entry a group.

    Attributes:
        low, high: int64, the thresholds; what is proved already may be one of them.
        needs: float64, about the noise that proves both, turned over; more where they are less likely right.
        likely: float64, how likely the quantile is between them.
    """

    low: Int64
    high: Int64
    needs: Float64
    likely: Float64


@dataclass(frozen=True, eq=False)
class SeenPlaces:
    """What the searches of some groups saw; thresholds rise, and both ends of the range are among them.

    Attributes:
        places: int64[places, groups]; `NONE` last.
        off: float64[places, groups], how far D seems to be off what is looked for.
        noise: float64[places, groups], its standard deviation.
        low, high: int64[groups], the thresholds that are proved to lie below the quantile, and not below it.
        target: what is looked for.
        far: by how many noises of a bin a threshold has to be off to be proved below the quantile, and above.
    """

    places: Int64
    off: Float64
    noise: Float64
    low: Int64
    high: Int64
    target: ValueTarget
    far: tuple[float, float]

    @cached_property
    def rows(self) -> Float64:
        """How far D is likely to be off: it rises."""
        return _rising(np.where(self.places < NONE, self.off, _FAR))

    @cached_property
    def chance(self) -> Float64:
        """How likely the quantile lies at each threshold or below."""
        odds = np.where(self.places < NONE, self.off / self.noise, np.inf)
        odds = np.where(self.places <= self.low, -np.inf, np.where(self.places >= self.high, np.inf, odds))
        return _rising(ndtr(odds))

    @cached_property
    def _last(self) -> int:
        """The last threshold of the range."""
        return self.target.asked.leaves - 1

    @cached_property
    def parts(self) -> tuple[Float64, Float64]:
        """How likely the quantile is in the two likeliest bins together, and the most rows of one that is wide."""
        left, right = np.minimum(self.places[:-1], self._last), np.minimum(self.places[1:], self._last)
        wide = right - left > np.maximum(WIDE * (self.target.last(left) - left), 1)
        chances, rows = np.diff(self.chance, axis=0), np.where(wide, np.diff(self.rows, axis=0), 0.0)
        two = np.argsort(chances, axis=0)[-2:]
        return np.take_along_axis(chances, two, 0).sum(axis=0), np.take_along_axis(rows, two, 0).max(axis=0)

    def needs(self, low: Int64, high: Int64) -> Float64:
        """Return about what it takes to prove pairs of thresholds, one over the noise of a bin: nothing for proved."""
        needs = np.zeros(low.shape)
        for place, side, far in ((low, -1, self.far[0]), (high, 1, self.far[1])):
            known = place <= self.low if side < 0 else place >= self.high
            off = side * self._between(self.rows, place)
            with np.errstate(divide="ignore"):
                each = np.where(known, 0.0, np.where(off > 0, far / np.maximum(off, 0.0), np.inf))
            needs = np.maximum(needs, each)
        return needs

    def likely(self, low: Int64, high: Int64) -> Float64:
        """Return how likely pairs of thresholds hold the quantile between them."""
        return np.asarray(self._between(self.chance, high) - self._between(self.chance, low))

    @cached_property
    def window(self) -> NearPair:
        """The two thresholds, near enough, that are cheapest to prove, all in all."""
        low = self._tried
        high = np.minimum(self.target.last(low), self.high)
        likely = self.likely(low, high)
        needs = np.where(likely > UNLIKELY, self.needs(low, high) / np.maximum(likely, UNLIKELY) ** DOUBT, np.inf)
        best, columns = needs.argmin(axis=0), np.arange(len(self.low))
        return NearPair(*(one[best, columns] for one in (low, high, needs, likely)))

    @cached_property
    def _tried(self) -> Int64:
        """Places for the lower one of two thresholds."""
        left = np.minimum(self.places[:-1], self._last - 1)
        right = np.minimum(self.places[1:], self._last)
        inner = [left + (right - left) * part // INNER for part in range(INNER)]
        tried = np.clip(np.vstack([self.low[None], *inner]), self.low, self._last - 1)
        return np.vstack([tried, np.maximum(2 * tried - self.target.last(tried), self.low)])

    @cached_property
    def most(self) -> Float64:
        """The rows that are likely between two thresholds near enough, at most."""
        low = self._tried
        high = np.minimum(self.target.last(low), self.high)
        apart = self._between(self.rows, high) - self._between(self.rows, low)
        return np.asarray(np.where(self.likely(low, high) > 0, apart, 0.0).max(axis=0))

    def spread(self, many: int) -> Int64:
        """Return so many thresholds a group between which the quantile is about equally likely, rising."""
        columns, chance = np.arange(len(self.low))[None], self.chance
        wanted = np.repeat(((np.arange(many) + 1) / (many + 1))[:, None], len(self.low), axis=1)
        last = np.clip((chance[None] <= wanted[:, None]).sum(axis=1) - 1, 0, len(chance) - 2)
        below, above = chance[last, columns], chance[last + 1, columns]
        part = np.clip((wanted - below) / np.maximum(above - below, 1e-12), 0.0, 1.0)
        left, right = self.places[last, columns], np.minimum(self.places[last + 1, columns], self._last)
        place = np.rint(left + part * (right - left)).astype(np.int64)
        return np.asarray(np.clip(place, self.low + 1, np.maximum(self.high - 1, self.low + 1)))

    @cached_property
    def _in_line(self) -> Int64:
        """The thresholds of all groups, one group after the other."""
        return (np.minimum(self.places, self._last + 1) + (self._last + 3) * np.arange(len(self.low))).T.ravel()

    def _between(self, values: Float64, place: Int64) -> Float64:
        """Return values at places: a straight line between those at thresholds."""
        columns = np.arange(len(self.low))[None]
        apart = self._last + 3  # so that the thresholds of all groups rise in one line
        counted = np.searchsorted(self._in_line, place + apart * columns, "right") - len(self.places) * columns
        last = np.clip(counted - 1, 0, len(self.places) - 2)
        left, right = self.places[last, columns], np.minimum(self.places[last + 1, columns], self._last)
        part = np.clip((place - left) / np.maximum(right - left, 1), 0.0, 1.0)
        below, above = values[last, columns], values[last + 1, columns]
        return np.asarray(np.where(part <= 0, below, below + part * (above - below)))


def _rising(values: Float64) -> Float64:
    """Return the mean of the least rising values above, and of the largest below.

    >>> _rising(np.array([[0.0], [3.0], [1.0], [4.0]])).ravel().tolist()
    [0.0, 2.0, 2.0, 4.0]
    """
    above = np.maximum.accumulate(values, axis=0)
    below = np.minimum.accumulate(values[::-1], axis=0)[::-1]
    return np.asarray((above + below) / 2)
