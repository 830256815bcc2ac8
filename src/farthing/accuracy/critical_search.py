"""The search for the critical value of a rule: sweep the truths, raise c until the worst of them is covered."""

from __future__ import annotations

import os
import threading
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.accuracy.jumps import Floats, JumpMap

MARGIN: Final = 0.003
"""c is calibrated at beta (1 - MARGIN): room for truths between the sweep's points and for quadrature error."""

_LOOSE: Final = 0.02  # of log(miss/aim): where a search begins further below, it is begun again lower
_SLACK: Final = 2e-4  # of log(miss/aim) in the root search; part of MARGIN


P = ParamSpec("P")
T = TypeVar("T")


class _Turns:
    """Who computes what just now: a lock for each value that is being computed. A forked child begins without any."""

    def __init__(self) -> None:
        self._lock, self._held = threading.Lock(), dict[Any, threading.Lock]()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def of(self, key: Any) -> threading.Lock:
        """Return the lock of one value."""
        with self._lock:
            return self._held.setdefault(key, threading.Lock())

    def over(self, key: Any) -> None:
        """Forget the lock of a value that is known."""
        with self._lock:
            self._held.pop(key, None)

    def _forget(self) -> None:
        """Forget locks that threads of the parent hold."""
        self._lock, self._held = threading.Lock(), {}


def computed_once(work: Callable[P, T]) -> Callable[P, T]:
    """Return a function that remembers 256 values; of threads that want one at the same time one computes it."""
    known, turns = lru_cache(maxsize=256)(work), _Turns()

    @wraps(work)
    def found(*given: P.args, **named: P.kwargs) -> T:
        """Return a value."""
        key = (given, tuple(sorted(named.items())))
        try:
            with turns.of(key):
                return known(*given, **named)  # type: ignore[arg-type]  # what cannot be hashed is refused there
        finally:
            turns.over(key)

    return found


class Calibrated(Protocol):
    """A rule's looks, followed for one c."""

    @property
    def map(self) -> JumpMap:
        """The jump map; its boundary is c/r."""

    def misses(self, signals: Floats) -> Floats:
        """Return P[the interval misses the truth], by the truths' signals at the last look."""


def least_critical(
    run: Callable[[float], Calibrated],
    *,
    relative: float,
    span: int,
    beta: float,
    most: float,
    start: Callable[[float], float],
    slope: Callable[[float], float],
) -> float:
    """Return the least c at which no truth misses with a probability above beta (1 - MARGIN).

    Args:
        run: follows the rule's looks for one c.
        relative: r.
        span: index of the first look.
        beta: allowed chance of a miss.
        most: up to how many times the kink a*/r truths are swept.
        start: c of a single look, by its chance of a miss: no rule has less.
        slope: about d log(miss) / dc of a single look.
    """
    aim = beta * (1 - MARGIN)
    critical = start(aim)
    chain, lowered = run(critical), False
    while True:
        signals = _sweep(chain.map, relative, span, most, critical / relative)
        excess = np.log(chain.misses(signals) / aim)
        if excess.max() < -_LOOSE and not lowered:  # it began too high
            critical, lowered = critical - float(excess.max()) / slope(critical), True
            chain = run(critical)
            continue
        if excess.max() <= _SLACK:
            return critical
        worst = signals[_peaks(excess)] / chain.map.boundary
        raised, followed = _raise(run, worst, aim, critical, float(excess.max()), slope(critical))
        least = critical * (1 + 1e-6)
        critical, chain = (raised, followed) if raised >= least else (least, run(least))


def largest(relative: float) -> float:
    """Return up to how many times the kink a*/r truths are swept: beyond, the chain only shifts."""
    return 1.3 * (1 + relative) ** 2


def _sweep(jumps: JumpMap, relative: float, span: int, most: float, last: float) -> Floats:
    """Return the signals to try: the cusps of the miss rate, and a few truths below and above them.

    Raising a truth past `b (1 - r) g^(j/2)` turns stopping at look j from a miss into a hit: there the miss rate has
    its local maxima (figure in the proof page), the highest between (1 - r) and (1 + r) times the kink.
    """
    index = np.arange(span + 1)
    low, high = jumps.boundary * (1 - relative), jumps.near * (1 + relative)
    below = np.concatenate([[0.0], low - np.linspace(min(8.0, low), 0.0, 9)])
    if last < jumps.boundary:  # the last look has a line of its own
        below = np.append(below, last * (1 - relative))
    cusps = np.sort(jumps.line(index) * (1 - relative) * jumps.ratio ** (index / 2))
    kink = cusps[cusps <= high * jumps.ratio]
    above = cusps[(cusps > high * jumps.ratio) & (cusps <= most * jumps.boundary)]
    return np.concatenate([below, _thinned(kink, 32), _thinned(above, 24 if jumps.zone else 12)])


def _thinned(points: Floats, most: int) -> Floats:
    """Return at most `most` of the points, evenly by rank, the first and the last among them."""
    keep = np.unique(np.linspace(0, len(points) - 1, min(most, len(points))).round().astype(np.int64))
    return points[keep]


def _peaks(excess: Floats) -> NDArray[np.intp]:
    """Return the positions of the three highest local maxima."""
    padded = np.pad(excess, 1, constant_values=-np.inf)
    local = np.flatnonzero((excess >= padded[:-2]) & (excess >= padded[2:]))
    return local[np.argsort(-excess[local])][:3]


def _raise(  # noqa: PLR0917  # one step of a root search
    run: Callable[[float], Calibrated], worst: Floats, aim: float, low: float, excess: float, slope: float
) -> tuple[float, Calibrated]:
    """Return c > low at which the worst truths, as signals over the boundary, miss with probability aim; its looks."""
    critical, chain = low, None
    for _ in range(12):
        previous, critical = critical, critical - (excess - _SLACK / 2) / slope
        chain = run(critical)
        before, excess = excess, float(np.log(chain.misses(worst * chain.map.boundary) / aim).max())
        if 0 <= excess <= _SLACK:
            break
        slope = min((excess - before) / (critical - previous), slope / 4)
    assert chain is not None  # noqa: S101  # the loop runs
    return critical, chain
