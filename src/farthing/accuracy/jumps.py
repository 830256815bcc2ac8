"""Which look comes next: a public map from the index of a look and what it showed to the index of the next one.

Looks are numbered backwards: index j has information `g^-j * t_max` (Laplace noise: its root is proportional to
epsilon), so index 0 is the last look there is. What a look shows is its *signal* `y = Y sqrt(t)`, with noise of scale 1
at every look; a group stops when y reaches the boundary `b = c/r`. Seen from y, the signal after the information grew
by `w^2` is `y w`, give or take noise (`sqrt(w^2 - 1)` if Gaussian, as the truth has a flat prior; see `laws`), so a
jump of m steps is harmless up to a threshold on y for each m. Jumps take whole *levels* 1, 2, 3, 4, 6, 8, 12, ... and
land on multiples of a power of two, so that different groups meet at the same looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from farthing.accuracy.noise_laws import GAUSSIAN, NoiseLaw

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVELS: Final = (1, *(step for p in range(1, 11) for step in (2**p, 3 * 2 ** (p - 1))))
"""The step counts a jump may have: 1, 2, 3, 4, 6, 8, 12, ..., 1024, 1536."""


_EVEN: Final = 0.1  # relative targets up to this one have one line
_RISE: Final = 0.75  # of the higher line, for c = 1 and r = 1
_FAR: Final = 0.2  # of the rise, before the zone
_LOWEST: Final = 6.45  # no line is lower: noise alone would pass it too often
_ZONE: Final = 2.0  # of information: how far the zone reaches, but for r


def stride(level: int) -> int:
    """Return the power of two on whose multiples a jump of at most `level` steps lands.

    >>> [stride(level) for level in (1, 2, 3, 4, 6, 8, 12)]
    [1, 1, 1, 2, 2, 4, 4]
    """
    return 1 << max(level.bit_length() - 2, 0)


@dataclass(frozen=True, slots=True)
class JumpMap:
    """The next look from the index of this one and its signal.

    Attributes:
        boundary: b = c/r, the signal at which a group stops; > 0.
        ratio: g > 1, information of a look over that of the look one index later.
        public: indices that no jump may pass without looking, in any order.
        jumps: False to visit every index.
        law: the law of the noise.
        near: the signal at which a group stops at the looks nearest to the last one; `boundary` where that is more.
        zone: the largest index of these looks; 0 for none.
        levels: the step counts in use; computed.
        thresholds: float64[levels], falling: level i is allowed while the signal is at most thresholds[i]; computed.

    >>> fine = JumpMap(boundary=20.0, ratio=1.02)
    >>> fine.targets(np.array([400, 400, 400, 3]), np.array([0.0, 15.0, 19.9, 0.0])).tolist()
    [256, 384, 399, 0]
    """

    boundary: float
    ratio: float
    public: tuple[int, ...] = ()
    jumps: bool = True
    law: NoiseLaw = GAUSSIAN
    near: float = 0.0
    zone: int = 0
    levels: tuple[int, ...] = field(init=False)
    thresholds: Floats = field(init=False, compare=False, repr=False)
    _strides: Ints = field(init=False, compare=False, repr=False)
    _barriers: Ints = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "near", max(self.near, self.boundary))
        levels, thresholds = [1], [self.near]
        for level in LEVELS[1:] if self.jumps else ():
            threshold = self.law.threshold(self.boundary, self.ratio, level)
            if threshold <= 0:
                break
            levels.append(level)
            thresholds.append(threshold)
        object.__setattr__(self, "levels", tuple(levels))
        object.__setattr__(self, "thresholds", np.array(thresholds))
        object.__setattr__(self, "_strides", np.array([stride(level) for level in levels], dtype=np.int64))
        object.__setattr__(self, "_barriers", np.array(sorted({0, *self.public}), dtype=np.int64))

    def line(self, index: Ints) -> Floats:
        """Return the signals at which a group stops, by the index of the look: at the last look every group does.

        >>> JumpMap(boundary=20.0, ratio=1.02, near=21.0, zone=70).line(np.array([1, 70, 71])).tolist()
        [21.0, 21.0, 20.0]
        """
        return np.where(index <= self.zone, self.near, self.boundary)

    def level_of(self, signal: Floats) -> Ints:
        """Return, per group, the position in `levels` of the longest allowed jump.

        >>> JumpMap(boundary=20.0, ratio=1.02).level_of(np.array([20.0, 19.0, 10.0, -3.0])).tolist()
        [0, 1, 10, 14]
        """
        rising = -self.thresholds[1:]
        return np.asarray(np.searchsorted(rising, -np.maximum(signal, 0.0), side="right"), dtype=np.int64)

    def landing(self, index: Ints, level: Ints) -> Ints:
        """Return the next index from index > 0 by level position: the farthest round index that may be reached.

        >>> jumps = JumpMap(boundary=20.0, ratio=1.02, public=(192,))
        >>> jumps.landing(np.array([200, 192, 10]), np.array([6, 6, 6])).tolist()
        [192, 180, 0]
        """
        steps = np.array(self.levels, dtype=np.int64)[level]
        strides = self._strides[level]
        farthest = -((steps - index) // strides) * strides
        barrier = self._barriers[np.searchsorted(self._barriers, index, side="left") - 1]
        return np.asarray(np.maximum(farthest, barrier), dtype=np.int64)

    def targets(self, index: Ints, signal: Floats) -> Ints:
        """Return the index of the next look for groups at index > 0 whose signal is below the boundary."""
        return self.landing(index, self.level_of(signal))


def lines(
    relative: float, critical: float, ratio: float, public: tuple[int, ...] = (), *, even: bool = False
) -> JumpMap:
    """Return where Gaussian looks stop, and which look comes next, for a relative target and its c.

    Early stops near the last look make its interval wider, which the smallest groups pay for. So at loose targets these
    looks have a higher line than c/r, and earlier ones a little higher; c comes out nearer to that of a single look.

    Args:
        relative: r in (0, 1).
        critical: c.
        ratio: g, the growth of information from one index to the next.
        public: indices that no jump passes.
        even: True for the higher line at all looks: for a rule that goes on wherever an earlier one did.
    """
    if relative <= _EVEN:
        return JumpMap(critical / relative, ratio, public)
    rise = _RISE * relative / critical**2
    far = max(critical * (1 + (rise if even else rise * _FAR)) / relative, _LOWEST)
    zone = math.ceil(math.log(_ZONE * ((1 + relative) / (1 - relative)) ** 2) / math.log(ratio))
    return JumpMap(far, ratio, public, near=critical * (1 + rise) / relative, zone=0 if even else zone)


def critical_of(line: float, relative: float) -> float:
    """Return the c whose even `lines` are this one, or as low as lines may be.

    >>> round(critical_of(lines(0.2, 1.97, 1.02, even=True).boundary, 0.2), 9)
    1.97
    """
    c = line * relative
    return c if relative <= _EVEN else (c + math.sqrt(max(c * c - 4 * _RISE * relative, 0.0))) / 2
