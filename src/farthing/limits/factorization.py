"""The factorization norms of a workload, as lower bounds that hold after rounding, without a semidefinite solver.

    gamma_f(W) = min ||R||_F ||A||_(1->2),    gamma_2(W) = min ||R||_(2->inf) ||A||_(1->2)    over R A = W.

Both are largest nuclear norms of W with its rows and columns weighted: gamma_f(W) = max ||W D_w^(1/2)||_* over column
weights w of sum 1, gamma_2(W) = max ||D_u^(1/2) W D_w^(1/2)||_* over row weights u as well. Any weights give a lower
bound (equal ones the bound by singular values), and the singular vectors there give a factorization, an upper bound.
So every round has both sides, and stopping early only leaves them further apart.
docs/proofs/limits.unbiased.md, section 3.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidOption
from farthing.limits import checks
from farthing.limits.checks import SHAVE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Float64 = NDArray[np.float64]

TOLERANCE: Final = 1e-6
"""The iteration ends when the upper bound is within this part of the lower one."""

SECONDS: Final = 60.0
"""How long it may take unless more is allowed."""

ROUND_SECONDS: Final = 1.5e-9
"""Seconds of one round for each unit of rows x columns x min(rows, columns): one core, about 2020."""

LEAST_WEIGHT: Final = 1e-9
"""What all weights share evenly, so that none is 0: it costs at most this part of the bound."""

UNIT: Final = 2.0**-53
"""The unit roundoff of float64."""

FAILED: Final = "a decomposition that failed"


@dataclass(frozen=True, slots=True)
class Bracket:
    """A norm between two bounds.

    Attributes:
        lower: the certified side: surely at most the norm, rounding included.
        upper: what the factorization found attains, to within rounding of float64.
        rounds: how many singular value decompositions were made.
        seconds: how long it took.
        ended: "close", or why the two sides are further apart: "time", "request" (of `progress`), or `FAILED`.

    >>> print(Bracket(2.0, 2.1, 7, 0.1, "seconds"))
    between 2 and 2.1: ended by seconds after 7 rounds, 5 % apart
    """

    lower: float
    upper: float
    rounds: int
    seconds: float
    ended: str

    @property
    def gap(self) -> float:
        """How far apart the sides are, as a part of the lower one; inf when nothing is known."""
        return self.upper / self.lower - 1 if self.lower > 0 else (math.inf if self.upper > 0 else 0.0)

    def __str__(self) -> str:
        if self.ended == "close":
            return f"{self.lower:.6g}, to within {max(self.gap, 1e-15):.1g}"
        how = f"ended by {self.ended} after {self.rounds} rounds, {100 * self.gap:.2g} % apart"
        return f"between {self.lower:.6g} and {self.upper:.6g}: {how}"

    def __mul__(self, other: Bracket) -> Bracket:
        """Return the bracket of a Kronecker product: both norms multiply."""
        ended = self.ended if self.ended != "close" else other.ended
        lower = max(0.0, self.lower * other.lower * SHAVE)
        total = self.seconds + other.seconds
        return Bracket(lower, self.upper * other.upper / SHAVE, self.rounds + other.rounds, total, ended)


def gamma_f(
    *factors: ArrayLike,
    tolerance: float = TOLERANCE,
    seconds: float = SECONDS,
    progress: Callable[[Bracket], object] | None = None,
) -> float:
    """Return gamma_f of a workload, from below: gamma_f^2/chi^2 bounds the total variance of unbiased answers.

    Args:
        *factors: the matrix, float64[queries, cells]; several mean their Kronecker product, which is never formed.
        tolerance: how far, as a part, the result may lie below the norm.
        seconds: stop after this time with the bound reached, which holds as it is.
        progress: called after every round with a `Bracket`; returning False stops there.

    Guarantee: the result is at most the norm.
    Proof: docs/proofs/limits.unbiased.md, sections 3 and 4; [NikolovT24] for its meaning.
    Assumes: IEEE float64 sums and products, in any order; the entries are the float64 nearest to what was given.
    Rounds: down, by an a posteriori bound on all rounding errors.

    >>> prefix = [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    >>> f"{gamma_f(prefix) ** 2:.3f}"
    '6.874'
    """
    return bracket_f(*factors, tolerance=tolerance, seconds=seconds, progress=progress).lower


def gamma_2(
    *factors: ArrayLike,
    tolerance: float = TOLERANCE,
    seconds: float = SECONDS,
    progress: Callable[[Bracket], object] | None = None,
) -> float:
    """Return gamma_2 of a workload, from below: gamma_2^2/chi^2 bounds the largest variance of unbiased answers.

    Arguments, guarantee and rounding are those of `gamma_f`.

    >>> f"{gamma_2([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]):.4f}"
    '1.3261'
    """
    return bracket_2(*factors, tolerance=tolerance, seconds=seconds, progress=progress).lower


def bracket_f(
    *factors: ArrayLike,
    tolerance: float = TOLERANCE,
    seconds: float = SECONDS,
    progress: Callable[[Bracket], object] | None = None,
) -> Bracket:
    """Return gamma_f between its two bounds; see `gamma_f`."""
    limits = _Limits(tolerance, seconds, progress)
    return _product([_bracket(W, limits, both=False) for W in _matrices(factors, limits)])


def bracket_2(
    *factors: ArrayLike,
    tolerance: float = TOLERANCE,
    seconds: float = SECONDS,
    progress: Callable[[Bracket], object] | None = None,
) -> Bracket:
    """Return gamma_2 between its two bounds; see `gamma_2`."""
    limits = _Limits(tolerance, seconds, progress)
    return _product([_bracket(W, limits, both=True) for W in _matrices(factors, limits)])


def estimated_seconds(W: ArrayLike) -> float:
    """Return about how long one round takes for a matrix; some 10 to 100 rounds are usual, one gives a bound.

    >>> estimated_seconds([[1.0] * 1000] * 1000)
    1.5
    """
    rows, columns = np.shape(W)
    return ROUND_SECONDS * float(rows * columns * min(rows, columns))


@dataclass(frozen=True, slots=True)
class _Limits:
    """When to stop."""

    tolerance: float
    seconds: float
    progress: Callable[[Bracket], object] | None

    def __post_init__(self) -> None:
        checks.positive([self.tolerance], "tolerance")
        checks.positive([self.seconds], "seconds")


def _matrices(factors: tuple[ArrayLike, ...], limits: _Limits) -> list[Float64]:
    """Return the factors as matrices; refuse those of which not even one round fits in the time, before any work."""
    if not factors:
        raise InvalidOption(
            "no workload was given", rule="at least one matrix", got="nothing", next_step="gamma_f([[1, 0], [1, 1]])"
        )
    matrices = [checks.matrix(W, "the workload") for W in factors]
    cost = max(map(estimated_seconds, matrices))
    if cost > limits.seconds:
        rows, columns = max(matrices, key=estimated_seconds).shape
        raise InvalidOption(
            f"a workload of {rows:,} x {columns:,} takes about {cost:,.0f} s a round, and some 10 to 100 rounds",
            rule=f"one round fits in seconds={limits.seconds:g}",
            got=f"{rows:,} x {columns:,}",
            next_step=f"allow seconds={10 * cost:.0f}, give the factors of a Kronecker product one by one, "
            "or use a closed form: farthing.limits.prefix_sums, marginals, identity_and_total",
        )
    return matrices


def _product(brackets: list[Bracket]) -> Bracket:
    """Return the bracket of the Kronecker product of factors."""
    first, *rest = brackets
    for bracket in rest:
        first = first * bracket
    return first


def _bracket(W: Float64, limits: _Limits, *, both: bool) -> Bracket:
    """Weigh columns, and rows if `both`, until the two sides meet or a limit is reached."""
    started = time.monotonic()
    size = float(np.abs(W).max())
    if size <= 0:
        return Bracket(0.0, 0.0, 0, 0.0, "close")
    unit = 2.0 ** math.frexp(size)[1]  # a power of two: dividing by it is exact
    W = W / unit
    surely, upper = without_decomposition(W, both=both)
    search = WeightSearch(W, both=both, upper=upper)
    rounds, ended = 0, "close"
    while ended == "close" and (rounds == 0 or search.upper > search.lower * (1 + limits.tolerance)):
        try:
            search.step()
        except np.linalg.LinAlgError:
            ended = FAILED
            break
        rounds += 1
        spent = time.monotonic() - started
        now = Bracket(search.lower * unit, search.upper * unit, rounds, spent, "close")
        if limits.progress is not None and limits.progress(now) is False:
            ended = "request"
        elif spent > limits.seconds:
            ended = "time"
    try:
        lower = max(surely, certified(W, search.rows_best, search.columns_best))
    except np.linalg.LinAlgError:
        lower, ended = surely, FAILED
    return Bracket(lower * unit, max(lower, search.upper) * unit, rounds, time.monotonic() - started, ended)


class WeightSearch:
    """The weights under way: W D_w^(1/2), or D_u^(1/2) W D_w^(1/2), its best nuclear norm and factorization.

    With G = U S V' the weighted matrix and f its nuclear norm, the parts (V S V')_jj/f of the columns are their weights
    where the norm is largest. Each round moves the weights to parts^2/weights, which is exact in one round for a
    diagonal W, and to the parts themselves, a shorter step, whenever the longer one has overshot.
    """

    __slots__ = ("W", "both", "columns", "columns_best", "lower", "rows", "rows_best", "upper")

    def __init__(self, W: Float64, *, both: bool, upper: float) -> None:
        self.both = both
        # gamma_f of a tall W depends on W'W only, and so does the R of its QR decomposition.
        tall = not both and len(W) > W.shape[1]
        self.W: Float64 = np.asarray(np.linalg.qr(W, mode="r")) if tall else W
        self.rows: Float64 | None = np.full(len(W), 1 / len(W)) if both else None
        self.columns: Float64 = np.full(W.shape[1], 1 / W.shape[1])
        self.rows_best, self.columns_best = self.rows, self.columns
        self.lower, self.upper = 0.0, upper

    def decomposed(self, G: Float64) -> tuple[Float64, Float64, Float64]:
        """Return the singular value decomposition of the weighted matrix."""
        U, S, Vt = np.linalg.svd(G, full_matrices=False)
        return U, S, Vt

    def step(self) -> None:
        """Decompose once: improve both sides, and move the weights."""
        U, S, Vt = self.decomposed(weighted(self.W, self.rows, self.columns))
        f = float(S.sum())
        power = 2 if f >= self.lower else 1
        if f > self.lower:
            self.lower, self.rows_best, self.columns_best = f, self.rows, self.columns
        across = S @ Vt**2 / f / self.columns
        worst = float(across.max())
        if self.rows is not None:
            down = U**2 @ S / f / self.rows
            worst *= float(down.max())
            self.rows = moved(self.rows, down, power)
        self.columns = moved(self.columns, across, power)
        self.upper = min(self.upper, f * math.sqrt(worst))


def moved(weights: Float64, ratio: Float64, power: int) -> Float64:
    """Return new weights of sum 1, none of them nearly 0."""
    new = weights * ratio**power
    shared: Float64 = (1 - LEAST_WEIGHT) * new / new.sum() + LEAST_WEIGHT / len(new)
    return shared


def weighted(W: Float64, rows: Float64 | None, columns: Float64) -> Float64:
    """Return D_u^(1/2) W D_w^(1/2); without row weights W D_w^(1/2)."""
    G: Float64 = W * np.sqrt(columns)
    return G if rows is None else G * np.sqrt(rows)[:, None]


def without_decomposition(W: Float64, *, both: bool) -> tuple[float, float]:
    """Return bounds that need no decomposition: one entry or column alone; A or R the identity."""
    columns, rows = (float(np.sqrt((W**2).sum(axis)).max()) for axis in (0, 1))
    if both:
        return float(np.abs(W).max()), min(rows, columns) / SHAVE
    return columns * SHAVE, float(np.linalg.norm(W)) / SHAVE


def certified(W: Float64, rows: Float64 | None, columns: Float64) -> float:
    """Return a number that is surely at most the nuclear norm of the weighted matrix, for weights of sum 1.

    ||G||_* >= <U V', G>/(||U|| ||V||) for any U and V; the computed singular vectors make it nearly an equality. Each
    term has an error bound for sums and products of float64 in any order [Higham02, sec. 3.1], gamma = N u/(1 - N u).

    Guarantee: the result is a lower bound on gamma_f (without row weights) or gamma_2 (with them).
    Proof: docs/proofs/limits.unbiased.md, section 4.
    Assumes: IEEE float64 without underflow that matters: entries of W at most 1, the largest at least 1/2.
    Rounds: down.
    """
    G = weighted(W, rows, columns)
    U, S, Vt = np.linalg.svd(G, full_matrices=False)
    count = (sum(G.shape) + 16) * UNIT
    error = len(S) * count / (1 - count) * float(np.linalg.norm(G)) * 1.1
    inner = math.fsum(np.einsum("ik,ik->k", U, G @ Vt.T).tolist()) - error
    spread = norm_at_most(U) * norm_at_most(Vt.T)
    total = math.fsum(columns.tolist()) * (1.0 if rows is None else math.fsum(rows.tolist()))
    return max(0.0, inner / (spread * math.sqrt(total)) * SHAVE)


def norm_at_most(U: Float64) -> float:
    """Return an upper bound on the spectral norm of a matrix with nearly orthonormal columns: 1 and a little."""
    gram = np.abs(U.T @ U)
    if not float(gram.diagonal().max()) <= 1.1:
        raise np.linalg.LinAlgError("singular vectors that are not of length 1")
    error = 1.2 * len(gram) * (len(U) + len(gram) + 2) * UNIT
    return math.sqrt(float(gram.sum(axis=1).max()) + error) / SHAVE
