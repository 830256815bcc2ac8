"""The critical value of the stopping rule: the least c whose intervals cover every truth.

The rule stops at the first look with `c/sqrt(t) <= r max(Y, 0)`, or at t_max; where answers are *signed*, with
`c/sqrt(t) <= r |Y|`. Its looks form a Markov chain on
(index, signal), see `jumps`, and `docs/proofs/accuracy.stop_rule.md` proves the two facts used here:

- *Visits do not depend on the truth.* Given the signal y at index i, the earlier path is a bridge, so the chance
  `q_i(y)` that the chain looks at i without having stopped is the same for every truth: one backward-kernel recursion
  serves all of them.
- *Misses are Gaussian tails.* A truth with signal mu_i = x sqrt(t_i) reaches y at index j with density
  `q_j(y) phi(y - mu_j)`, and from there stops at i without covering x with a probability in closed form.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from farthing.accuracy.critical_search import MARGIN, computed_once, largest, least_critical
from farthing.accuracy.jumps import Floats, JumpMap, lines
from farthing.accuracy.noise_laws import GAUSSIAN, NoiseLaw
from farthing.normal import ndtr

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
_FINENESS: Final = 0.7  # mean node spacing over the standard deviation of the shortest jump's kernel
_PIECE: Final = 96  # nodes that share one kernel matrix
_DENSITY: Final = 1 / math.sqrt(2 * math.pi)
_WIDE: Final = 12.0  # standard deviations
_SURE: Final = 7.0  # standard deviations beyond c at which a look is not in doubt
_QUITE: Final = 0.985  # of what looks far apart would allow, so that rounding does not matter
_TAIL_NODES, _TAIL_WEIGHTS = np.polynomial.legendre.leggauss(64)
_TAIL: Final = 10.0  # standard deviations that the quadrature of a tail covers
_HALVINGS: Final = 60

ABSURD: Final = 1e-7
"""The most likely that a group is told more than ten times the larger of its truth and its floor."""


two_sided = GAUSSIAN.two_sided
"""z with P[|N(0,1)| > z] = beta."""


def step_ratio(relative: float) -> float:
    """Return g, the growth of information from one look to the next, for a relative target in (0, 1)."""
    return 1.005 if 0.003 < relative <= 0.03 else 1.01 if 0.03 < relative <= 0.15 else 1.02


def tamed(relative: float, beta: float, law: NoiseLaw = GAUSSIAN) -> float:
    """Return the relative target that a rule is made for: the one that is asked, or less where that lets noise stop it.

    Early looks are noisy, and there are hundreds of them: where c/r is small, one of them is passed by noise alone.

    Guarantee: the boundary c/r is at least the law's `least_signal`, since c >= z; the chance that a group is told more
        than ten times the larger of its truth and its floor is below `ABSURD`.
    Proof: docs/proofs/accuracy.stop_rule.md, "Absurd values"; docs/proofs/accuracy.laplace_stop_rule.md, likewise;
    computed by
        recursion, not proved in closed form.
    Assumes: noise of that law; at most 2,100 looks, each with 1.02 times the information of the one before; Laplace
        noise: at most 30 doublings of epsilon, as a ledger's chain has.
    Rounds: nothing.

    >>> tamed(0.3, 0.05), round(tamed(0.5, 0.05), 3), round(tamed(0.5, 0.001), 3)
    (0.3, 0.316, 0.5)
    """
    return min(relative, law.two_sided(beta) / law.least_signal)


@dataclass(frozen=True, slots=True)
class _Atoms:
    """Nodes y at index j with their visit mass, and the look that each leads to; float64[atoms] all."""

    signal: Floats
    mass: Floats
    root: Floats  # sqrt(tau_j)
    next_root: Floats  # sqrt(tau_i) of the next look
    growth: Floats  # sqrt(t_i / t_j)
    spread: Floats  # standard deviation of the next signal given this one


@dataclass(frozen=True, slots=True)
class GaussianLookChain:
    """The rule's looks as a Markov chain, with the chance of every visit.

    Attributes:
        relative: r in (0, 1).
        critical: c.
        span: index of the first look.
        map: the jump map; its boundary is c/r.
        reach: signals are followed to within this many standard deviations.
        atoms: the visits, as nodes with masses.
        signed: whether signals of -b and below stop too, and jumps are by |y|.

    >>> chain = GaussianLookChain.run(0.1, 1.98, span=320, jumps=JumpMap(19.8, 1.02), beta=0.05, largest=50.0)
    >>> round(chain.miss(0.0), 4), round(chain.miss(18.8), 4)
    (0.0477, 0.0495)
    """

    relative: float
    critical: float
    span: int
    map: JumpMap
    reach: float
    atoms: _Atoms
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
    ) -> GaussianLookChain:
        """Follow the chain from index `span` to 0, for truths whose signal at the end is at most `largest`."""
        reach = two_sided(beta * 1e-5)
        atoms = _visits(jumps, span, reach, largest, signed=signed)
        return cls(relative, critical, span, jumps, reach, atoms, signed)

    def miss(self, signal: float) -> float:
        """Return P[the interval misses the truth], by the truth's signal x sqrt(t_max) >= 0."""
        if signal + self.reach < self.map.boundary:  # it is out of reach of stopping before the end
            return float(2 * ndtr(-self.critical))
        return sum(float(self._tails(*visits).sum()) for visits in self._arriving(signal))

    def absurd(self, signal: float, times: float = 10.0) -> float:
        """Return P[what is told is more than `times` the larger of the truth and the floor], by the truth's signal.

        The chain must be followed with a `beta` of about 1e-15, so that its reach is beyond the boundary.
        """
        told = 1 - self.relative**2
        total = 0.0
        for mass, mean, spread, truth, root in self._arriving(signal):
            beyond = np.maximum(times * np.maximum(truth, self.critical * root) / told, self.map.boundary)
            chance = ndtr((mean - beyond) / spread) + (ndtr((-beyond - mean) / spread) if self.signed else 0.0)
            total += float((mass * chance).sum())
        return total

    def _arriving(self, signal: float) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
        """Return (mass, mean, spread, truth's signal, root) of what a look shows: of the first one, and of all others.

        With chance `mass` the chain arrives from an atom, and then sees N(mean, spread^2).
        """
        atoms = self.atoms
        first = np.array([self.map.ratio ** (-self.span / 2)])
        away = atoms.signal - signal * atoms.root
        mean = signal * atoms.next_root + away / atoms.growth
        top = (np.abs(mean) if self.signed else mean) + self.reach * atoms.spread
        near = (np.abs(away) < self.reach) & ((top > self.map.boundary) | (atoms.next_root == 1.0))
        mass = atoms.mass[near] * np.exp(-0.5 * away[near] ** 2) * _DENSITY
        root = atoms.next_root[near]
        start = (np.ones(1), signal * first, np.ones(1), signal * first, first)
        return start, (mass, mean[near], atoms.spread[near], signal * root, root)

    def misses(self, signals: Floats) -> Floats:
        """Return the miss rates of several truths."""
        return np.array([self.miss(float(signal)) for signal in signals])

    def _tails(self, mass: Floats, mean: Floats, spread: Floats, truth: Floats, root: Floats) -> Floats:
        """Return, per atom, the chance of going to a look with N(mean, spread^2), stopping there, and missing."""
        r, c, end = self.relative, self.critical, root == 1.0
        index = np.rint(-2 * np.log(root) / math.log(self.map.ratio))
        b = np.where(end, c / r, self.map.line(index))
        missed = ndtr((mean - np.maximum(b, truth / (1 - r))) / spread)  # stopped too high
        late = truth > b * (1 + r)
        if late.any():  # stopped too low
            missed[late] += _between(b[late], truth[late] / (1 + r), mean[late], spread[late])
        if self.signed:  # stopped on the wrong side of zero; at the end, that is part of being below
            missed += np.where(end, 0.0, ndtr((-b - mean) / spread))
        if end.any():  # the last look below a*/r: Y +- a*
            mid, sd, mu = mean[end], spread[end], truth[end]
            wide = ndtr((np.minimum(c / r, mu - c) - mid) / sd)
            missed[end] += wide + _between(mu + c, np.maximum(c / r, mu + c), mid, sd)
        return np.asarray(mass * missed)


def _between(low: Floats, high: Floats, mean: Floats, spread: Floats) -> Floats:
    """Return P[low <= N(mean, spread^2) < high], zero if high < low, from the tail that loses no digits."""
    below, above = (low - mean) / spread, (high - mean) / spread
    flip = below > 0
    first, second = np.where(flip, -above, below), np.where(flip, -below, above)
    return np.asarray(np.maximum(ndtr(second) - ndtr(first), 0.0))


def _ranges(jumps: JumpMap, reach: float, *, signed: bool) -> list[tuple[int, float, float]]:
    """Return (level, low, high) of the ranges of signals where one level's jump is taken, rising."""
    highs = jumps.thresholds.tolist()
    last = len(highs) - 1
    above = [(level, highs[level + 1], highs[level]) for level in reversed(range(last))]
    below = [(level, -high, -low) for level, low, high in reversed(above)] if signed else []
    whole = [*below, (last, -highs[last] if signed else -reach, highs[last]), *above]
    parts = []
    for level, low, high in whole:  # where looks before the zone stop, a range ends, too
        cuts = [low, *(at for at in (-jumps.boundary, jumps.boundary) if low < at < high), high]
        parts += [(level, start, end) for start, end in pairwise(cuts)]
    return parts


def _nodes(jumps: JumpMap, reach: float, *, signed: bool) -> tuple[Floats, Floats, list[tuple[int, slice]]]:
    """Place Gauss-Legendre nodes on each level's range of signals: rising signals, weights, (level, slice) pieces."""
    points: list[Floats] = []
    weights: list[Floats] = []
    pieces: list[tuple[int, slice]] = []
    stops = sorted({0, *jumps.public})
    gap = min((far - near for near, far in pairwise(stops)), default=jumps.levels[-1])  # jumps that a public look cuts
    used = 0
    for level, low, high in _ranges(jumps, reach, signed=signed):
        shortest = min((jumps.levels[max(level - 1, 0)] + 1) // 2, gap)
        panel = _FINENESS * len(_NODES) * math.sqrt(1 - jumps.ratio**-shortest)
        edges = np.linspace(low, high, math.ceil((high - low) / panel) + 1)
        half = np.diff(edges)[:, None] / 2
        points.append((edges[:-1, None] + half * (1 + _NODES)).ravel())
        weights.append((half * _WEIGHTS).ravel())
        end = used + points[-1].size
        pieces += [(level, slice(start, min(start + _PIECE, end))) for start in range(used, end, _PIECE)]
        used = end
    return np.concatenate(points), np.concatenate(weights), pieces


def _visits(jumps: JumpMap, span: int, reach: float, largest: float, *, signed: bool) -> _Atoms:
    """Run the recursion of q_i from the first look to the last; list every (node, next look)."""
    y, w, pieces = _nodes(jumps, reach, signed=signed)
    root = jumps.ratio ** (-np.arange(span + 1) / 2)
    levels = np.array([level for level, _ in pieces], dtype=np.int64)
    lows, highs = [float(y[here.start]) for _, here in pieces], [float(y[here.stop - 1]) for _, here in pieces]
    line = jumps.line(np.arange(span + 1)).tolist()
    least = max(jumps.boundary - reach, 0.0)
    kernels: dict[tuple[int, int], tuple[slice, Floats]] = {}
    chances = {span: np.ones(len(y))}
    parts: list[tuple[Floats, Floats, int, int]] = []
    for j in range(span, 0, -1):
        chance = chances.pop(j, None)
        if chance is None:
            continue
        near = least * root[j] - reach  # below it are truths that cannot stop before the end: the last look's rate
        far = min(largest * root[j] + reach, line[j])  # no truth that is asked about gets there, or every run stops
        reached = slice(bisect_left(highs, max(near, -line[j]) if signed else near), bisect_right(lows, far))
        indices = jumps.landing(np.full_like(levels[reached], j), levels[reached]).tolist()
        masses = w * chance
        for (_, here), i in zip(pieces[reached], indices, strict=True):
            mass = masses[here]
            parts.append((y[here], mass, j, i))
            if i > 0:
                key = (here.start, j - i)
                if key not in kernels:
                    kernels[key] = _kernel(y, here, root[j] / root[i], reach)
                rows, kernel = kernels[key]
                if i not in chances:
                    chances[i] = np.zeros(len(y))
                chances[i][rows] += kernel @ mass
    return _gather(parts, root)


def _kernel(y: Floats, here: slice, shrink: float, reach: float) -> tuple[slice, Floats]:
    """Return the density of the earlier signal y[here] given the later one, for the later ones that matter."""
    spread = math.sqrt(1 - shrink * shrink)
    source = y[here]
    rows = slice(
        int(y.searchsorted((source[0] - reach * spread) / shrink)),
        int(y.searchsorted((source[-1] + reach * spread) / shrink)),
    )
    away = (source[None, :] - y[rows, None] * shrink) / spread
    return rows, np.exp(-0.5 * away * away) * (_DENSITY / spread)


def _gather(parts: list[tuple[Floats, Floats, int, int]], root: Floats) -> _Atoms:
    """Join the pieces into flat arrays."""
    sizes = [len(signal) for signal, _, _, _ in parts]
    here = np.repeat(root[[j for _, _, j, _ in parts]], sizes) if parts else np.zeros(0)
    there = np.repeat(root[[i for _, _, _, i in parts]], sizes) if parts else np.zeros(0)
    signal = np.concatenate([signal for signal, _, _, _ in parts]) if parts else np.zeros(0)
    mass = np.concatenate([mass for _, mass, _, _ in parts]) if parts else np.zeros(0)
    return _Atoms(signal, mass, here, there, there / here, np.sqrt(1 - (here / there) ** 2))


@computed_once
def critical_value(
    relative: float,
    beta: float,
    span: int,
    ratio: float,
    public: tuple[int, ...] = (),
    *,
    jumps: bool = True,
    signed: bool = False,
    likely: float = 0.0,
    even: bool = False,
) -> float:
    """Return the least c that covers every truth with probability 1 - beta, for the chain that is really run.

    Args:
        relative: r in [0, 1).
        beta: allowed chance of a miss, in [1e-12, 0.5].
        span: index of the first look; 0 for a single look.
        ratio: g, the growth of information from one index to the next.
        public: indices that no jump passes.
        jumps: False for the plain rule: it looks at every index, and has one line at c/r.
        signed: True for a rule that stops by |Y|, for truths of either sign.
        likely: a c that is tried first, where one is known that should do; 0 for none.
        even: as in `lines`.

    Guarantee: P[|value - truth| > max(r |truth|, a*)] <= beta for every truth >= 0; for every truth, if `signed`.
    Proof: docs/proofs/accuracy.stop_rule.md.
    Assumes: Gaussian noise, looks at `t_max g^-j`, the jump map of `jumps`.
    Rounds: up: calibrated at beta (1 - MARGIN), and swept again at the value returned.

    >>> round(critical_value(0.0, 0.05, 0, 1.02), 3)
    1.96
    >>> round(critical_value(0.1, 0.05, 640, 1.02), 3)
    1.988
    """
    if relative == 0.0 or span == 0:
        return two_sided(beta)
    if relative <= looks_apart(beta, ratio):
        return _apart(relative, beta, ratio)
    about = lines(relative, two_sided(beta), ratio, even=even or not jumps)
    most = _swept(relative, beta, ratio) * about.near / about.boundary * ratio ** (about.zone / 2)

    def run(c: float) -> GaussianLookChain:
        plain = JumpMap(c / relative, ratio, public, jumps=False)
        laid = lines(relative, c, ratio, public, even=even) if jumps else plain
        return GaussianLookChain.run(
            relative, c, span=span, jumps=laid, beta=beta, largest=most * laid.boundary, signed=signed
        )

    return least_critical(
        run,
        relative=relative,
        span=span,
        beta=beta,
        most=most,
        start=lambda aim: max(two_sided(aim), likely),
        slope=lambda c: -c - 1 / c,
    )


def _swept(relative: float, beta: float, ratio: float) -> float:
    """Return up to how many times the kink a*/r truths are swept: further than `_WIDE` beyond it they only repeat."""
    return min(largest(relative), (1 + relative) ** 2 * ratio**2 * (1 + _WIDE * relative / two_sided(beta)))


def looks_apart(beta: float, ratio: float) -> float:
    """Return the largest r at which a truth has one look in doubt at most, and is told surely at the next.

    >>> round(looks_apart(0.05, 1.02), 6)
    0.001072
    """
    z = two_sided(beta)
    return _QUITE * (math.sqrt(ratio) - 1) * z / (2 * (z + _SURE))


def _apart(relative: float, beta: float, ratio: float) -> float:
    """Return a c that suffices where looks are so far apart: no recursion, whatever r is.

    Guarantee, proof: as `critical_value`; docs/proofs/accuracy.stop_rule.md, "Looks far apart".
    """
    aim, low, high = beta * (1 - MARGIN), two_sided(beta), 2 * two_sided(beta)
    for _ in range(_HALVINGS):
        c = (low + high) / 2
        later = c * math.sqrt(ratio) * (1 - relative * (c + _SURE) / c)
        missed = float(ndtr(-c * (1 - relative))) + _either(c, later, ratio**-0.5)
        low, high = (c, high) if missed > aim else (low, c)
    return high


def _either(first: float, second: float, correlation: float) -> float:
    """Return P[Z > first or Z' > second] for two standard Gaussian variables that are correlated."""
    z = first - _TAIL + _TAIL * (1 + _TAIL_NODES) / 2
    late = ndtr((correlation * z - second) / math.sqrt(1 - correlation**2))
    inside = _TAIL_WEIGHTS * np.exp(-z * z / 2) * _DENSITY * late
    return float(ndtr(-first) + inside.sum() * _TAIL / 2)
