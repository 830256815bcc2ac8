"""The critical value for a chain of Laplace noise that gets finer: the least c whose intervals cover every truth.

The rule is that of `stopping`: stop at the first look with signal `y = Y epsilon >= b = c/r` (|y| where answers are
*signed*), or at the last. Again the chance `q_i(y)` that the chain looks at i without having stopped, given the signal
there, is free of the truth, for the earlier path is drawn from the later one by noise alone:

    Y_j given Y_i  =  Y_i with probability s^2, else Y_i + Lap(1/epsilon_j)        s = epsilon_j/epsilon_i < 1

Shown values stay or jump. On cells of Y whose edges rise by a whole root of the looks' ratio every boundary and every
threshold falls on an edge, staying is exact, and the jumps are running sums of exponentials. So are the misses: a truth
with signal mu_i has density `q_i(y) exp(-|y - mu_i|)/2` at look i. `docs/proofs/accuracy.laplace_stop_rule.md` has the
proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from farthing.accuracy.critical_hints import hint
from farthing.accuracy.critical_search import computed_once, largest, least_critical
from farthing.accuracy.jumps import Floats, Ints, JumpMap
from farthing.accuracy.noise_laws import LAPLACE

GATE: Final = 8
"""Every group looks when epsilon has grown by about this factor: the recursion begins at such a look."""

_FINENESS: Final = 0.15  # of signal: the width of a cell at the boundary
_CENTRE: Final = 0.05  # of signal at the last look: cells this near to zero are one
_MOST: Final = 690.0  # exponents beyond are of no consequence, and would overflow
_FAR: Final = 1e-5  # of beta: chances below are left out
_WIDE: Final = 3.0  # times the reach: truths that far beyond the kink see nothing of the last look
_TINY: Final = 0.001  # relative targets whose looks are apart
_ROUNDS: Final = 40  # of a contraction by less than a half


def gates(span: int, ratio: float) -> tuple[int, ...]:
    """Return the indices that no jump passes, rising, for a first look at `span`.

    >>> gates(1248, 1.01)
    (416, 832)
    """
    step = gate(ratio)
    return tuple(range(step, span, step))


def gate(ratio: float) -> int:
    """Return how many indices apart the gates are."""
    return 16 * round(2 * math.log(GATE) / math.log(ratio) / 16)


@dataclass(frozen=True, slots=True)
class _Look:
    """The signals that one look shows, in cells, with the chance q of coming there without having stopped.

    Attributes:
        index: j.
        root: epsilon_j over that of the last look.
        edges: float64[cells + 1], rising signals.
        chance: float64[cells], q.
        anchor: a, the boundary or the last edge: what is near enough to all edges that no exponent overflows.
        up: float64[cells + 1], the integral of q exp(y - a) / 2 from the first edge to each.
        down: float64[cells + 1], the integral of q exp(a - y) / 2 from each edge to the last.
    """

    index: int
    root: float
    edges: Floats
    chance: Floats
    anchor: float
    up: Floats
    down: Floats

    @classmethod
    def of(cls, index: int, root: float, edges: Floats, chance: Floats, boundary: float) -> _Look:
        """Return a look with its integrals."""
        anchor = min(boundary, float(edges[-1]))
        rise, fall = _power(edges - anchor) / 2, _power(anchor - edges) / 2
        up = np.concatenate([[0.0], np.cumsum(chance * np.diff(rise))])
        down = np.concatenate([np.cumsum((chance * -np.diff(fall))[::-1])[::-1], [0.0]])
        return cls(index, root, edges, chance, anchor, up, down)

    def above(self, truth: Floats, low: Floats, high: Floats) -> Floats:
        """Return the mass in [low, high), for truths with signals at or below `low`."""
        mass = np.maximum(self._beyond(low) - self._beyond(np.maximum(high, low)), 0.0)
        return np.asarray(_power(truth - self.anchor) * mass)

    def below(self, truth: Floats, low: Floats, high: Floats) -> Floats:
        """Return the mass in [low, high), for truths with signals at or above `high`."""
        mass = np.maximum(self._until(np.maximum(high, low)) - self._until(low), 0.0)
        return np.asarray(_power(self.anchor - truth) * mass)

    def _beyond(self, at: Floats) -> Floats:
        """Return the integral of q exp(a - y) / 2 from `at` on."""
        at, cell = self._cell(at)
        part = _power(self.anchor - at) - _power(self.anchor - self.edges[cell + 1])
        return np.asarray(self.down[cell + 1] + self.chance[cell] * part / 2)

    def _until(self, at: Floats) -> Floats:
        """Return the integral of q exp(y - a) / 2 up to `at`."""
        at, cell = self._cell(at)
        part = _power(at - self.anchor) - _power(self.edges[cell] - self.anchor)
        return np.asarray(self.up[cell] + self.chance[cell] * part / 2)

    def _cell(self, at: Floats) -> tuple[Floats, Ints]:
        """Return places, moved to within the edges, and their cells."""
        at = np.clip(at, self.edges[0], self.edges[-1])
        return at, np.clip(np.searchsorted(self.edges, at, side="right") - 1, 0, len(self.chance) - 1)


def _power(exponent: Floats) -> Floats:
    """Return exp, of what matters."""
    return np.exp(np.clip(exponent, -_MOST, _MOST))


@dataclass(frozen=True, slots=True)
class LaplaceLookChain:
    """The rule's looks on a chain of Laplace noise, with the chance of every visit.

    Attributes:
        relative: r in (0, 1).
        critical: c.
        map: the jump map; its boundary is c/r.
        looks: every look that may stop a truth that is asked about, the last one last.
        blind: how many gates lie before the first of them.
        reach: signals are followed to within this many noise scales.
        signed: whether signals of -b and below stop too.

    >>> jumps = JumpMap(31.0, 1.01, gates(832, 1.01), law=LAPLACE)
    >>> chain = LaplaceLookChain.run(0.1, 3.1, span=832, jumps=jumps, beta=0.05, largest=50.0)
    >>> chain.misses(np.array([0.0, 30.0, 60.0])).round(4).tolist()
    [0.045, 0.0481, 0.0452]
    """

    relative: float
    critical: float
    map: JumpMap
    looks: tuple[_Look, ...]
    blind: int
    reach: float
    signed: bool = False

    @classmethod
    def run(
        cls,
        relative: float,
        critical: float,
        *,
        span: int,
        jumps: JumpMap,
        beta: float,
        largest: float,
        signed: bool = False,
    ) -> LaplaceLookChain:
        """Follow the chain to index 0, for truths whose signal at the end is at most `largest`.

        It begins at the last gate at which all of them are far from stopping, or at `span`.
        """
        step, reach = gate(jumps.ratio), -math.log(beta * _FAR)
        many = 1 if jumps.boundary - largest / GATE > reach else 1 + math.ceil(math.log(largest / jumps.boundary, GATE))
        start = min(span, many * step)
        looks = _Walk.of(jumps, start, reach, largest, signed=signed).looks()
        return cls(relative, critical, jumps, looks, -(-(span - start) // step), reach, signed)

    def misses(self, signals: Floats) -> Floats:
        """Return P[the interval misses the truth], by the truths' signals x epsilon >= 0 at the last look."""
        r, b, c = self.relative, self.map.boundary, self.critical
        missed = self._early(signals)
        zero, endless = np.zeros_like(signals), np.full_like(signals, np.inf)
        for look in self.looks:
            truth = signals * look.root
            missed += look.above(truth, np.maximum(b, truth / (1 - r)), endless)  # stopped too high
            missed += look.below(truth, zero + b, truth / (1 + r))  # stopped too low
            if self.signed and look.index:  # on the wrong side of zero; at the end, that is part of being below
                missed += look.below(truth, -endless, zero - b)
        end = self.looks[-1]  # below the boundary at the last look: Y +- a*
        missed += end.below(signals, -endless, np.minimum(b, signals - c))
        missed += end.above(signals, signals + c, np.maximum(b, signals + c))
        unseen = signals < b - self.reach  # out of reach of stopping before the end
        return np.where(unseen, math.exp(-c) + self._early(signals), missed)

    def paid(self, signals: Floats) -> Floats:
        """Return the expected epsilon, over that of the last look, for truths that are far from stopping at first."""
        b = self.map.boundary
        total = np.zeros_like(signals)
        for look in self.looks:
            truth = signals * look.root
            low = np.full_like(signals, b if look.index else -np.inf)
            middle = np.maximum(truth, low)
            mass = look.above(truth, middle, np.full_like(signals, np.inf)) + look.below(truth, low, middle)
            total += look.root * mass
        return total

    def absurd(self, signal: float, times: float = 10.0) -> float:
        """Return P[what is told is more than `times` the larger of the truth and the floor], by the truth's signal.

        The chain must be followed from its first look: for a `largest` so large that no look is blind.
        """
        told, total, none = 1 - self.relative**2, 0.0, np.full(1, np.inf)
        for look in self.looks:
            truth = np.array([signal * look.root])
            beyond = np.maximum(times * np.maximum(truth, self.critical * look.root) / told, self.map.boundary)
            total += float(look.above(truth, beyond, none)[0])
            if self.signed:
                total += float(look.below(truth, -none, -beyond)[0])
        return total

    def _early(self, signals: Floats) -> Floats:
        """Return a bound on the chance of stopping at the blind looks, before the first of `looks`.

        Between two gates every run is like that after the first gate, by a truth nearer to zero: a truth of zero stops
        there with some chance, and a signal mu raises densities by e^mu at most.
        """
        if not self.blind:
            return np.zeros_like(signals)
        first = self.looks[0]
        early = [look for look in self.looks if look.index > first.index - gate(self.map.ratio)]
        b = np.array([self.map.boundary])
        stops = sum(float(look.above(b, b, b + np.inf)[0]) for look in early) * (2 if self.signed else 1)
        mu = signals[:, None] * first.root * float(GATE) ** -np.arange(self.blind)[None, :]
        return np.asarray(stops * _power(mu - b).sum(axis=1))


@dataclass(frozen=True, slots=True)
class _Walk:
    """The recursion of q over cells of Y; one unit of Y is one of signal at the last look.

    Attributes:
        map: the jump map.
        start: index of the first look.
        edges: float64[cells + 1], of Y.
        windows: of each index, the first and the last cell that matters there.
        signed: whether the negative side stops as well.
    """

    map: JumpMap
    start: int
    edges: Floats
    windows: tuple[tuple[int, int], ...]
    signed: bool

    @classmethod
    def of(cls, jumps: JumpMap, start: int, reach: float, largest: float, *, signed: bool) -> _Walk:
        """Lay out cells for truths with signals, at the last look, from the boundary less the reach up to `largest`."""
        b, least = jumps.boundary, max(jumps.boundary - reach, 0.0)
        root = jumps.ratio ** (-np.arange(start + 1) / 2)
        top, low = largest + reach / root[-1], least - reach / root[-1]
        fine = math.log(jumps.ratio) / 2
        fine /= max(1, math.ceil(b * fine / _FINENESS))
        least_edge = max(_CENTRE, low)
        powers = np.arange(math.floor(math.log(least_edge / b) / fine), math.ceil(math.log(top / b) / fine) + 1)
        positive = b * np.exp(fine * powers)
        edges = positive if low > _CENTRE else np.concatenate([-positive[::-1], positive])
        lows = np.searchsorted(edges, (least * root - reach) / root, side="right") - 1
        highs = np.searchsorted(edges, (largest * root + reach) / root, side="left")
        cells = len(edges) - 1
        windows = tuple(zip(np.clip(lows, 0, cells - 1).tolist(), np.clip(highs, 1, cells).tolist(), strict=True))
        return cls(jumps, start, edges, windows, signed)

    def looks(self) -> tuple[_Look, ...]:
        """Run from the first look to the last; return every look that is ever taken."""
        chances = {self.start: np.ones(len(self.edges) - 1)}
        taken = []
        for j in range(self.start, -1, -1):
            chance = chances.pop(j, None)
            if chance is None:
                continue
            root = self.map.ratio ** (-j / 2)
            low, high = self.windows[j]
            cut = slice(low, high)
            taken.append(_Look.of(j, root, self.edges[low : high + 1] * root, chance[cut], self.map.boundary))
            if j:
                self._spread(j, root, chance, chances)
        return tuple(taken)

    def _spread(self, j: int, root: float, chance: Floats, chances: dict[int, Floats]) -> None:
        """Add what look j's unstopped signals send to the looks after it."""
        signal = self.edges * root
        rise = _power(signal - min(self.map.boundary, float(signal[self.windows[j][1]])))
        fall = 1 / rise
        steps = np.diff(rise), -np.diff(fall)
        sums = rise[1:] + rise[:-1], fall[1:] + fall[:-1]
        for i, pieces in self._targets(j, signal).items():
            stays = (root / self.map.ratio ** (-i / 2)) ** 2
            low, high = self.windows[i]
            sent = chances.setdefault(i, np.zeros(len(chance)))
            for first, end in pieces:
                sent[first:end] += stays * chance[first:end]
                up = np.concatenate([[0.0], np.cumsum(chance[first:end] * steps[0][first:end])])
                down = np.concatenate([np.cumsum((chance[first:end] * steps[1][first:end])[::-1])[::-1], [0.0]])
                inside = fall[first : end + 1] * up + rise[first : end + 1] * down
                jumps = (1 - stays) / 4
                sent[first:end] += jumps * (inside[1:] + inside[:-1])
                if low < first:
                    sent[low:first] += (jumps * down[0]) * sums[0][low:first]
                if end < high:
                    sent[end:high] += (jumps * up[-1]) * sums[1][end:high]

    def _targets(self, j: int, signal: Floats) -> dict[int, list[tuple[int, int]]]:
        """Return the ranges of cells that go on from look j, by the look they go to."""
        b = self.map.boundary
        low, high = self.windows[j]
        end = min(high, int(np.searchsorted(signal, b * (1 - 1e-9))))
        if self.signed:
            low = max(low, int(np.searchsorted(signal, -b * (1 - 1e-9))))
        if low >= end:
            return {}
        middle = (signal[low:end] + signal[low + 1 : end + 1]) / 2
        level = self.map.level_of(np.abs(middle) if self.signed else middle)
        cuts = [0, *(np.flatnonzero(np.diff(level)) + 1).tolist(), end - low]
        targets = self.map.landing(np.full(len(cuts) - 1, j), level[cuts[:-1]])
        found: dict[int, list[tuple[int, int]]] = {}
        for first, last, target in zip(cuts[:-1], cuts[1:], targets.tolist(), strict=True):
            found.setdefault(target, []).append((low + first, low + last))
        return found


@computed_once
def critical_value(
    relative: float,
    beta: float,
    span: int,
    ratio: float,
    public: tuple[int, ...] = (),
    *,
    signed: bool = False,
    likely: float = 0.0,
) -> float:
    """Return the least c that covers every truth with probability 1 - beta, for the chain that is really run.

    Args:
        relative: r in [0, 1).
        beta: allowed chance of a miss, in [1e-12, 0.5].
        span: index of the first look; 0 for a single look.
        ratio: growth of the square of epsilon from one index to the next.
        public: indices that no jump passes, besides the gates.
        signed: True for a rule that stops by |Y|, for truths of either sign.
        likely: a c that is tried first, where one is known that should do; 0 for none.

    Guarantee: P[|value - truth| > max(r |truth|, a*)] <= beta for every truth >= 0; for every truth, if `signed`.
    Proof: docs/proofs/accuracy.laplace_stop_rule.md.
    Assumes: a chain of two-sided geometric noise that decays by at most `COARSEST` a step; looks at
        `epsilon_max ratio^(-j/2)`; the jump map of `jumps`, with gates.
    Rounds: up: calibrated at beta (1 - MARGIN), and swept again at the value returned.

    >>> round(critical_value(0.0, 0.05, 0, 1.02), 3)
    2.996
    >>> round(critical_value(0.1, 0.05, 832, 1.01), 2)
    3.07
    """
    if relative == 0.0 or span == 0:
        return LAPLACE.two_sided(beta)
    if relative <= _TINY:
        return _apart(beta, ratio)
    most = _swept(relative, beta, ratio)
    about = likely or (hint(relative, beta, ratio) if span >= gate(ratio) else 0.0)

    def run(c: float) -> LaplaceLookChain:
        jumps = JumpMap(c / relative, ratio, tuple(sorted({*gates(span, ratio), *public})), law=LAPLACE)
        top = most * jumps.boundary
        return LaplaceLookChain.run(relative, c, span=span, jumps=jumps, beta=beta, largest=top, signed=signed)

    return least_critical(
        run,
        relative=relative,
        span=span,
        beta=beta,
        most=most,
        start=lambda aim: max(LAPLACE.two_sided(aim), about),
        slope=lambda _: -1.0,
    )


def _swept(relative: float, beta: float, ratio: float) -> float:
    """Return up to how many times the kink a*/r truths are swept: further beyond it they only repeat."""
    far = 1 + _WIDE * -math.log(beta * _FAR) * relative / LAPLACE.two_sided(beta)
    return min(largest(relative), max((1 + relative) ** 2 * math.sqrt(ratio) * far, 1.0001 * (1 + relative) * ratio))


def _apart(beta: float, ratio: float) -> float:
    """Return a c that suffices where r is tiny: looks are then so many noise scales apart that one at most is in doubt.

    Proof page, "Looks far apart".
    """
    critical = LAPLACE.two_sided(beta)
    for _ in range(_ROUNDS):
        changed = (1 - 1 / ratio) * (2 + critical / 2)
        excess = math.exp(4 * _TINY * critical) * (1 + changed) + 2 * math.exp(-2 * critical)
        critical = LAPLACE.two_sided(beta / excess)
    return critical
