"""Divergences of two laws in ball arithmetic: what `evaluator` measures, between two ends that are certain.

Both densities are given as holomorphic functions of a coordinate u, in balls, and the mass beyond the ends of u by a
bound. `acb.integral` (Gauss-Legendre quadrature with errors from values on ellipses) encloses what is between them.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from farthing.errors import InvalidBudget
from farthing.privacy.balls import lower, upper, working
from farthing.rounding import down, up

if TYPE_CHECKING:
    from farthing.privacy.balls import Ball

SPARE: Final = 40
"""Bits of working precision beyond those that the densities are asked for."""

LEAST_PART: Final = 2.0**-30
"""How wide an enclosure may be, over the number that is looked for."""

POINT: Final = 1e-9
"""A ball of u up to this wide is a node of a panel."""

SMALLEST: Final = 2.0**-300
"""Numbers below are not told from zero."""


class CertainEnds(NamedTuple):
    """Two floats with a number between them.

    Attributes:
        lower, upper: the ends, rounded outward.
    """

    lower: float
    upper: float


class Cover(NamedTuple):
    """Where to integrate so that little is left out.

    Attributes:
        edges: for each piece of the line of outputs, rising points of u.
        outside: what is left out of the integral of P^order Q^(1 - order), and of Q, as a ball that is above both.
    """

    edges: tuple[tuple[float, ...], ...]
    outside: Ball


class HolomorphicPair(Protocol):
    """Two laws P and Q on pieces of a line, each density holomorphic in the piece's coordinate u."""

    def densities(self, u: Ball, piece: int, bits: int) -> tuple[Ball, Ball]:
        """Return the densities of Q and P in u as complex balls, right to about so many bits where u is a point.

        Of a wide ball of u they enclose all values; they are not finite where they are not holomorphic.
        """

    def cover(self, order: float, least: float, *, reverse: bool) -> Cover:
        """Return where to integrate so that at most `least` is left out."""


class CertifiedDivergences:
    """Divergences of a pair, each between two certain ends.

    Guarantee: the true divergence lies in the enclosure.
    Proof: docs/proofs/mechanisms.two_stage.md, "The certificate"; `acb.integral` is rigorous (arXiv:1802.07942).
    Assumes: python-flint encloses what it computes; densities and cover are those of the pair.
    Rounds: outward.
    """

    def __init__(self, pair: HolomorphicPair) -> None:
        self._pair = pair

    def renyi(self, order: float, *, reverse: bool = False, near: float) -> CertainEnds:
        """Return ends of D_order(P || Q), or of D_order(Q || P) if reverse.

        Args:
            order: above 1.
            reverse: whether P and Q change places.
            near: about what is expected, a measured value; only how narrow the ends are depends on it.
        """
        if not 1 < order < math.inf:
            raise InvalidBudget("the order is out of range", rule="1 < order", got=order, next_step="order=8")
        size = max(math.expm1(min(700.0, (order - 1) * max(near, 0.0))), SMALLEST)

        def excess(flint: Any, one: Ball, ratio: Ball, analytic: bool) -> Ball:
            return one * ((flint.arb(order) * ratio.log(analytic=analytic)).exp() - 1 - flint.arb(order) * (ratio - 1))

        with working(_bits(size / order) + SPARE) as flint:
            inside, outside = self._integral(flint, excess, order, size, reverse=reverse)
            most = (1 + inside.upper() + outside * flint.arb(order)).log() / (flint.arb(order) - 1)
            least = (1 + flint.arb(0).max(inside.lower())).log() / (flint.arb(order) - 1)
            return CertainEnds(down(lower(least)), up(upper(most)))

    def hockey_stick(self, epsilon: float, *, reverse: bool = False, near: float) -> CertainEnds:
        """Return ends of the least delta at epsilon for this pair; `reverse` and `near` as in `renyi`."""
        size = max(near, SMALLEST)

        def beyond(flint: Any, one: Ball, ratio: Ball, analytic: bool) -> Ball:
            return one * (ratio - flint.arb(epsilon).exp()).real_max(flint.acb(0), analytic=analytic)

        with working(_bits(size) + SPARE) as flint:
            inside, outside = self._integral(flint, beyond, 1.0, size, reverse=reverse)
            return CertainEnds(max(0.0, down(lower(inside))), up(upper(inside + outside)))

    def _integral(self, flint: Any, integrand: Any, order: float, size: float, *, reverse: bool) -> tuple[Ball, Ball]:
        """Return the integral over the cover of an integrand of (density, ratio), never negative; and what is left."""
        bits = _bits(size / max(1.0, order))
        cover = self._pair.cover(order, size * LEAST_PART / max(1.0, order), reverse=reverse)
        total = flint.arb(0)
        for piece, edges in enumerate(cover.edges):

            def at(u: Ball, analytic: bool, piece: int = piece) -> Ball:
                here, there = self._pair.densities(u, piece, bits)
                one, other = (there, here) if reverse else (here, there)
                return integrand(flint, one, other / one, analytic)

            for low, high in pairwise(edges):
                near = flint.arb(size * LEAST_PART / 256)
                part = flint.acb.integral(at, flint.acb(low), flint.acb(high), abs_tol=near, rel_tol=near / size)
                total += part.real
        return total, cover.outside


def _bits(size: float) -> int:
    """Return the bits that an integral of this size takes."""
    return 48 + max(0, math.ceil(-math.log2(size)))
