"""The density of the product X V in ball arithmetic, for certificates of its divergences.

The same sums over v = log(|X|/c) as in `product`, at a complex u = log(|Y|/c). What trapezoids leave out of the
integral, and what lies beyond their ends and those of u, is bounded: docs/proofs/mechanisms.two_stage.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import InvalidBudget
from farthing.privacy.certified import POINT, Cover

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.privacy.balls import Ball

WIDEST: Final = 0.3
"""The widest strips of u and of v in which the densities are bounded, as |Im|; both together are below pi/4."""

MOST_EXCESS: Final = 200.0
"""Orders a with a (a - 1)/(2 sigma^2) above this have no certificate: too much would have to be integrated."""

PANEL: Final = 0.5
WIDE_BITS: Final = 8
LEVEL: Final = 40.0
"""Depths, in e-folds, are rounded up to whole multiples of this, so that grids are used again."""


@dataclass(frozen=True, slots=True)
class ProductNodes:
    """Nodes v = j h, and both laws of X on them.

    Attributes:
        step: h.
        inverse: 1/|X| at node j.
        laws: by the sign of X, the factors of the laws at x and x + 1.
    """

    step: float
    inverse: dict[int, Ball] = field(default_factory=dict)
    laws: dict[int, tuple[tuple[Ball, Ball], tuple[Ball, Ball]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProductBalls:
    """The laws of Y = X V at the counts x and x + 1, for outputs above zero (piece 0) and below (piece 1).

    Attributes:
        x: the smaller count, >= 0.
        sigma: standard deviation of X.
        relative: r, the standard deviation of V.
    """

    x: float
    sigma: float
    relative: float
    _grids: dict[tuple[int, int], ProductNodes] = field(default_factory=dict, repr=False, compare=False)

    @property
    def unit(self) -> float:
        """The unit c of the coordinates."""
        return max(self.x, self.sigma)

    @property
    def strips(self) -> tuple[float, float]:
        """How far from the real line u and v may be."""
        return min(WIDEST, 3 * self.relative), min(WIDEST, 4 * self.relative, 6 * self.sigma / (self.x + 1))

    def densities(self, u: Ball, piece: int, bits: int) -> tuple[Ball, Ball]:
        """Return the densities of log(|Y|/c) at x and at x + 1 on one side of zero."""
        import flint

        wide = float(u.real.rad()) > POINT
        if not (u.is_finite() and abs(u.imag) < self.strips[0] and float(u.real.rad()) < PANEL):
            return flint.acb("nan"), flint.acb("nan")
        depth = (WIDE_BITS if wide else bits + 10) * math.log(2) - self._height(float(u.real.mid()), piece) + 10
        depth = LEVEL * math.ceil(depth / LEVEL)
        grid = self._grid(flint, depth)
        low, high, beyond = self._window(flint, u, grid.step, depth)
        output, totals = u.exp() * self.unit, [flint.acb(0), flint.acb(0)]
        second = -1 / (2 * flint.arb(self.relative) ** 2)
        for j in range(math.ceil(low / grid.step), math.floor(high / grid.step) + 1):
            inverse, laws = self._node(flint, grid, j)
            size = output * inverse
            for sign, law in zip((1, -1), laws, strict=True):
                factor = (second * (size - (sign if not piece else -sign)) ** 2).exp()
                totals[0] += law[0] * factor
                totals[1] += law[1] * factor
        around = flint.arb(0, 1) * (beyond + self._aliased(flint, u, grid.step))
        scale = output / (2 * flint.arb.pi() * self.relative * self.sigma)
        here, there = (scale * (total * grid.step + flint.acb(around, around)) for total in totals)
        return here, there

    def _grid(self, flint: Any, depth: float) -> ProductNodes:
        """Return the grid whose trapezoids err by less than e^-depth, where bounds of the strips allow."""
        excess = sum(float(each) for each in self._growth(flint)) + 10
        step = 2.0 ** math.floor(math.log2(2 * math.pi * self.strips[1] / (depth + excess)))
        return self._grids.setdefault((int(depth), flint.ctx.prec), ProductNodes(step))

    def _node(self, flint: Any, grid: ProductNodes, j: int) -> tuple[Ball, tuple[tuple[Ball, Ball], tuple[Ball, Ball]]]:
        """Return 1/|X| and the factors of the laws of X at a node, kept."""
        if j not in grid.laws:
            size = flint.arb(j * grid.step).exp() * self.unit
            first = -1 / (2 * flint.arb(self.sigma) ** 2)
            centres = flint.arb(self.x), flint.arb(self.x) + 1
            above = (first * (size - centres[0]) ** 2).exp(), (first * (size - centres[1]) ** 2).exp()
            below = (first * (size + centres[0]) ** 2).exp(), (first * (size + centres[1]) ** 2).exp()
            grid.inverse[j], grid.laws[j] = 1 / size, (above, below)
        return grid.inverse[j], grid.laws[j]

    def _growth(self, flint: Any) -> tuple[Ball, Ball]:
        """Return the logarithms of how much the factors of the integrand may exceed 1 in the strips."""
        off, turn = flint.arb(self.strips[1]), flint.arb(self.strips[0]) + self.strips[1]
        one = (flint.arb(self.x) + 1) ** 2 * off.sin() ** 2 / (2 * flint.arb(self.sigma) ** 2 * (2 * off).cos())
        return one, turn.sin() ** 2 / (2 * flint.arb(self.relative) ** 2 * (2 * turn).cos())

    def _aliased(self, flint: Any, u: Ball, step: float) -> Ball:
        """Return a bound of the error of the trapezoids, 4 M / (e^(2 pi d/h) - 1), M over the strip [TrefethenW14]."""
        off, turn = flint.arb(self.strips[1]), flint.arb(self.strips[0]) + self.strips[1]
        wide, turned = (2 * off).cos(), (2 * turn).cos()
        first, second = self._growth(flint)
        last = (flint.arb(self.x) + 1) / wide + 2 * self.sigma / wide.sqrt()
        share = turn.cos() / turned + 2 * self.relative / turned.sqrt()
        length = abs((last * share / self.unit).log() - u.real) + 3
        return 4 * (first + second).exp() * length / ((2 * flint.arb.pi() * off / step).exp() - 1)

    def _window(self, flint: Any, u: Ball, step: float, depth: float) -> tuple[float, float, Ball]:
        """Return ends of v, and a bound of the trapezoids beyond them."""
        r = flint.arb(self.relative)
        ratio = max(3.0, (2 + math.sqrt(4 + 3.3 * 2 * self.relative**2 * depth)) / 1.65) + 1e-3
        low = float(u.real.lower()) - math.log(ratio) - 1e-9
        far = math.sqrt(2 * depth + 0.11 / self.relative**2) + 1
        high = math.log((self.x + 1 + self.sigma * far) / self.unit) + 1e-9
        least = 0.82 * flint.arb(ratio) ** 2 - 2 * flint.arb(ratio) + 1
        below = 2 * (-least / (2 * r**2)).exp() * (step + r**2 / 2)
        above = 2 * (flint.arb(0.055) / r**2 - flint.arb(far) ** 2 / 2).exp() * (step + 1)
        return low, high, below + above

    def _height(self, u: float, piece: int) -> float:
        """Return about the highest exponent over v: a float, on which only the effort depends."""
        spots = [self.x, math.sqrt(self.unit * math.exp(u) * self.sigma / self.relative), self.unit * math.exp(u)]
        spots += [max(1e-300, self.x + k * self.sigma / 2) for k in range(-20, 21)] + [math.sqrt(spots[0] * spots[2])]
        best = -math.inf
        for size in (each for each in spots if each > 0):
            turned = min(1e100, self.unit * math.exp(u) / size) * (-1 if piece else 1)
            for sign in (1, -1):
                off = (size - sign * self.x) / self.sigma
                best = max(best, -off * off / 2 - ((turned - sign) / self.relative) ** 2 / 2)
        return best

    def cover(self, order: float, least: float, *, reverse: bool) -> Cover:
        """Return where to integrate so that at most `least` of a moment, and of the mass, is left out.

        The law of Y given X is the same at x and at x + 1, and p^a q^(1-a) is convex in both: so what is left out of a
        moment is at most what is left out of X around x + a (or x + 1 - a), times e^(a (a - 1)/(2 sigma^2)).
        """
        import flint

        excess = flint.arb(order) * (flint.arb(order) - 1) / (2 * flint.arb(self.sigma) ** 2)
        if not excess < MOST_EXCESS:
            raise InvalidBudget(
                "the order is too high for a certificate",
                rule=f"order (order - 1) / (2 sigma^2) < {MOST_EXCESS:g}",
                got=order,
                next_step="a lower order, or the measured value",
            )
        tilted = self.x + 1 - order if reverse else self.x + order
        means = (abs(tilted), self.x, self.x + 1)

        def left(bound: Callable[[Any, Ball, tuple[float, float]], Ball], u: float) -> Ball:
            """Return a bound of what is beyond u, by the best of some cuts."""
            size = flint.arb(u).exp() * self.unit
            cuts = (self.sigma * math.exp(k / 2) for k in range(-160, 60))
            return excess.exp() * min(
                (sum((bound(flint, size, (cut, mean)) for mean in means), flint.arb(0)) for cut in cuts),
                key=lambda found: float(found.upper()),
            )

        ends, outside = [], flint.arb(0)
        for bound, step in ((self._near, -1.0), (self._far, 1.0)):
            u = step
            while float((beyond := left(bound, u)).upper()) > least / 2:
                u += step
            ends.append(u)
            outside += beyond
        count = math.ceil((ends[1] - ends[0]) / PANEL)
        edges = tuple(ends[0] + (ends[1] - ends[0]) * i / count for i in range(count + 1))
        return Cover((edges, edges), flint.arb(outside.upper()))

    def _near(self, flint: Any, size: Ball, at: tuple[float, float]) -> Ball:
        """Return a bound of P[|X V| < size] for X around a mean: |X| < cut, or |V| < size/cut."""
        cut, mean = flint.arb(at[0]), flint.arb(at[1])
        share = size / cut
        return self._slab(flint, cut, mean, flint.arb(self.sigma)) + self._slab(
            flint, share, flint.arb(1), flint.arb(self.relative)
        )

    def _slab(self, flint: Any, half: Ball, mean: Ball, spread: Ball) -> Ball:
        """Return a bound of P[|N(mean, spread^2)| < half]: its width times the highest density in it."""
        gap = (mean - half) / spread
        top = (-(gap**2) / 2).exp() if gap > 0 else flint.arb(1)
        return 2 * half / (spread * (2 * flint.arb.pi()).sqrt()) * top

    def _far(self, flint: Any, size: Ball, at: tuple[float, float]) -> Ball:
        """Return a bound of P[|X V| > size] for X around a mean: |X| > cut, or |V| > size/cut."""
        cut, mean = flint.arb(at[0]), flint.arb(at[1])
        root = flint.arb(2).sqrt()
        return ((cut - mean) / (self.sigma * root)).erfc() + ((size / cut - 1) / (self.relative * root)).erfc()
