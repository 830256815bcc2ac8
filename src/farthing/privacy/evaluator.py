"""Divergences of two laws by quadrature: Renyi of any order, and the privacy profile, from log densities alone.

Every integrand is kept as a logarithm, so orders of 10^5 neither overflow nor drown. Panels of 16 Gauss-Legendre nodes
are halved until halving changes nothing that matters; the climb goes toward the largest *logarithm*, so a peak that is
e^1000 times higher than anything seen so far is found by its slope. Every result carries its estimated error: these are
measurements of a mechanism; `certified` has ends that are certain, and takes some thirty times as long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from farthing.errors import InvalidBudget

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Terms: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
    Panel: TypeAlias = tuple[int, float, float]

NODES: Final = 16
"""Gauss-Legendre nodes on a panel: exact for polynomials of degree 31."""

MOST_LEVELS: Final = 60
"""Halvings of one panel before the search gives up: a kink or a singularity is cornered long before."""

KINK: Final = 1e-8
"""The relative error at which the corner of a hockey stick is close enough: a halving there gains only a factor 4."""

LARGEST_ORDER: Final = 1e6
"""Orders above this are not evaluated: 10^-16 of the logarithms would show."""

FLOOR: Final = 800.0
"""Logarithms this far below the total count as absent."""

ROUNDING: Final = 1e-8
STALL: Final = math.log(3)
"""A change below 1e-8 of its panel that halving did not shrink by 3 is rounding: it counts as error, and stays.

Orders above 10^4 multiply the rounding of the log-ratio, and get as much more room.
"""

LUCK: Final = math.log(1e-7)
"""A panel settles only if the halving before moved it by less than this share of the total, too."""

STEEP: Final = 4.0
"""A panel whose highest node stands out from a neighbour by more than this in the log may hide a higher point."""


class Estimate(NamedTuple):
    """A number found by quadrature, and how far halving every panel once more would move it.

    Attributes:
        value: the number.
        error: the estimated absolute error, >= 0.
    """

    value: float
    error: float

    @property
    def upper(self) -> float:
        """The number with its error on the side that promises less."""
        return self.value + self.error


@dataclass(frozen=True, slots=True)
class Branch:
    """A piece of the line of outputs, in a coordinate u of its own, and both laws on it.

    Attributes:
        terms: float64[n] points u -> (log of the density of Q in u, log of the ratio P/Q), two float64[n].
        edges: rising points of u: the ends of what is integrated, and between them whatever deserves an end of a panel
            (singularities, kinks, the middle and the flanks of each bump).
    """

    terms: Terms
    edges: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Divergences:
    """Two laws P and Q, and how well an output tells them apart.

    Attributes:
        branches: the pieces of the line; together they hold all outputs but a negligible part.
        tolerance: the relative error at which halving stops.

    >>> import numpy as np
    >>> gauss = Branch(lambda u: (-u * u / 2 - np.log(2 * np.pi) / 2, u - 0.5), edges=(-40.0, 0.0, 40.0))
    >>> f"{Divergences((gauss,)).renyi(8).value:.9f}"  # N(1, 1) against N(0, 1): order / 2
    '4.000000000'
    """

    branches: tuple[Branch, ...]
    tolerance: float = 1e-10
    _seen: dict[Panel, tuple[Floats, Floats]] = field(default_factory=dict, repr=False, compare=False)

    def renyi(self, order: float, *, reverse: bool = False) -> Estimate:
        """Return D_order(P || Q), or D_order(Q || P) if reverse; 1 < order <= 10^6.

        What is integrated is Q (e^(a L) - 1 - a (e^L - 1)) with L = log P/Q: never negative, and as small as the
        divergence itself, so a divergence of 10^-17 keeps its digits.
        """
        if not 1 < order <= LARGEST_ORDER:
            raise InvalidBudget(
                "the order is out of range", rule=f"1 < order <= {LARGEST_ORDER:g}", got=order, next_step="order=8"
            )

        def integrand(log_density: Floats, log_ratio: Floats) -> Floats:
            return log_density + _log_excess(order, log_ratio)

        log_excess, error = self._integrate(integrand, reverse=reverse, tolerance=self.tolerance, order=order)
        if log_excess == -math.inf:
            return Estimate(0.0, 0.0)
        log_moment = float(np.logaddexp(0.0, log_excess))
        return Estimate(log_moment / (order - 1), error * math.exp(log_excess - log_moment) / (order - 1))

    def hockey_stick(self, epsilon: float, *, reverse: bool = False) -> Estimate:
        """Return the least delta at epsilon for this pair, the integral of max(0, P - e^epsilon Q); reverse swaps."""

        def integrand(log_density: Floats, log_ratio: Floats) -> Floats:
            beyond = np.maximum(log_ratio - epsilon, 0.0)
            with np.errstate(divide="ignore"):
                return log_density + epsilon + beyond + np.log(-np.expm1(-beyond))

        log_delta, error = self._integrate(integrand, reverse=reverse, tolerance=max(self.tolerance, KINK))
        return Estimate(math.exp(log_delta), error * math.exp(log_delta))

    def _integrate(
        self, integrand: Callable[[Floats, Floats], Floats], *, reverse: bool, tolerance: float, order: float = 0.0
    ) -> tuple[float, float]:
        """Return (log of the integral, its relative error); of a moment of some order, against its log."""

        def measure(panels: list[Panel]) -> tuple[Floats, Floats]:
            base, ratio = self._terms(panels)
            values = integrand(base + ratio, -ratio) if reverse else integrand(base, ratio)
            return _panel_sums(values, np.array([high - low for _, low, high in panels]))

        rounding = ROUNDING * max(1.0, order * 1e-4)
        panels = [(i, *ends) for i, branch in enumerate(self.branches) for ends in _pairs(branch.edges)]
        (whole, _), before = measure(panels), np.full(len(panels), math.inf)
        settled, errors = [np.array([-math.inf])], [np.array([-math.inf])]
        for _ in range(MOST_LEVELS):
            panels = [half for panel in panels for half in _halves(panel)]
            values, heights = measure(panels)
            halves = np.logaddexp(values[::2], values[1::2])
            changes = _log_difference(whole, halves)
            total = _log_sum([*settled, halves])
            allowed = total + math.log(tolerance * max(1.0, abs(total) if order else 1.0))
            noise = (changes < halves + math.log(rounding)) & (changes > before - STALL)
            hides = np.maximum(heights[::2], heights[1::2]) > allowed
            lucky = before > max(allowed, total + LUCK)  # one agreement after a large change may be chance
            open_ = hides | (((changes > allowed - math.log(64)) | lucky) & ~noise)
            settled.append(halves[~open_])
            errors.append(changes[~open_])
            again = np.repeat(open_, 2)
            panels = [panel for panel, more in zip(panels, again, strict=True) if more]
            whole, before = values[again], np.repeat(changes, 2)[again]
            if not panels:
                break
        else:
            settled.append(whole)
            errors.append(whole)
        total = _log_sum(settled)
        return total, math.exp(_log_sum(errors) - total) if total > -math.inf else 0.0

    def _terms(self, panels: list[Panel]) -> tuple[Floats, Floats]:
        """Return both laws on the nodes of the panels, float64[panels, NODES] twice, evaluating each panel once."""
        for i, branch in enumerate(self.branches):
            new = [panel for panel in panels if panel[0] == i and panel not in self._seen]
            if new:
                ends = np.array([panel[1:] for panel in new])
                middle, half = ends.mean(axis=1, keepdims=True), np.diff(ends, axis=1) / 2
                base, ratio = branch.terms((middle + half * _rule()[0]).ravel())
                shape = (len(new), NODES)
                self._seen.update(zip(new, zip(base.reshape(shape), ratio.reshape(shape), strict=True), strict=True))
        found = [self._seen[panel] for panel in panels]
        return np.array([base for base, _ in found]), np.array([ratio for _, ratio in found])


@cache
def _rule() -> tuple[Floats, Floats]:
    """Return the nodes on [-1, 1] and the logarithms of half their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return nodes, np.log(weights / 2)


def _pairs(edges: tuple[float, ...]) -> list[tuple[float, float]]:
    """Return the intervals between neighbouring edges."""
    return [(low, high) for low, high in pairwise(edges) if low < high]


def _halves(panel: Panel) -> tuple[Panel, Panel]:
    """Return a panel cut in the middle."""
    i, low, high = panel
    middle = (low + high) / 2
    return (i, low, middle), (i, middle, high)


def _panel_sums(values: Floats, widths: Floats) -> tuple[Floats, Floats]:
    """Return the log integral over each panel, and the log of what could hide between nodes where it is steep."""
    log_widths = np.log(widths)
    most = values.max(axis=1)
    shift = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        sums = np.log(np.exp(values - shift[:, None] + _rule()[1]).sum(axis=1)) + shift + log_widths
    top = values.argmax(axis=1)
    rows = np.arange(len(values))
    sides = (values[rows, np.clip(top + side, 0, NODES - 1)] for side in (-1, 1))
    jump = shift - np.maximum(np.minimum(*sides), shift - FLOOR)  # how steeply the highest node stands out
    hidden = np.where(np.isfinite(most) & (jump > STEEP), most + jump + log_widths, -math.inf)
    return sums, hidden


def _log_difference(one: Floats, other: Floats) -> Floats:
    """Return log |e^one - e^other|."""
    high, low = np.maximum(one, other), np.minimum(one, other)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(high > -math.inf, high + np.log(-np.expm1(low - high)), -math.inf)


def _log_sum(parts: list[Floats]) -> float:
    """Return the log of the sum of exponentials."""
    return float(np.logaddexp.reduce(np.concatenate(parts)))


def _log_excess(order: float, log_ratio: Floats) -> Floats:
    """Return log(e^(a L) - 1 - a (e^L - 1)), with all its digits also where L is tiny."""
    power = order * log_ratio
    large = power > 40.0  # where e^(a L) is all there is, but for the part of a (e^L - 1) that an order near 1 leaves
    small = np.abs(power) < 0.01
    middle = np.where(large | small, 1.0, power)
    plain = np.expm1(middle) - order * np.expm1(middle / order)
    series = sum((1 - order ** (1 - k)) * np.where(small, power, 0.0) ** k / math.factorial(k) for k in range(2, 8))
    top = np.where(large, power, 50.0)
    with np.errstate(divide="ignore", over="ignore"):
        rest = np.log1p(-np.exp(np.log(order) + top / order - top))
        return np.asarray(np.where(large, top + rest, np.log(np.where(small, series, plain))))
