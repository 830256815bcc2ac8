"""Ways to answer a workload of products: what is measured of which table, and how answers are made of it.

Each way is a handful of strategies and, for each product, the matrices that turn measurements into answers: R A = W, so
answers are unbiased. Which way is the cheapest depends on the goal; all are priced, from public facts alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.limits.strategies import factorized, union_at_least
from farthing.mechanisms.strategy import Strategy, applied, bits_of
from farthing.workloads.factors import ListedFactor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from farthing.workloads.products import Axis, Products, WorkloadProduct

    Float64 = NDArray[np.float64]

EACH: Final = "factors"
"""Each product by the best strategies of its factors."""

TOTAL: Final = "total and factors"
"""The total once, and of each product what is left of it."""

JOINT: Final = "matrix"
"""One strategy for all cells together."""

MOST_JOINT: Final = 256
"""The most cells of all axes together for which one strategy is sought."""

_MOST_ROWS: Final = 4_000


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """How measurements enter the answers of one product.

    Attributes:
        strategy: its number.
        back: for each factor float64[answers, measurements], or None for the measurements themselves.
    """

    strategy: int
    back: tuple[Float64 | None, ...]

    def of(self, mean: Float64) -> Float64:
        """Return float64[answers], what measurements add to the answers."""
        return np.asarray(applied(self.back, mean)).reshape(-1)

    def spread(self, strategy: Strategy) -> Float64:
        """Return float64[answers], the variance that measurements of variance 1 add to each."""
        parts = [
            np.ones(size) if back is None else (back**2).sum(axis=1)
            for size, back in zip(strategy.shape, self.back, strict=True)
        ]
        return np.asarray(reduce(np.multiply.outer, parts, np.ones(()))).reshape(-1)


@dataclass(frozen=True, eq=False)
class Way:
    """A way to answer a workload.

    Attributes:
        name: what people call it.
        axes: what the cells of each strategy's table are by.
        strategies: what is measured.
        wanted: for each product the numbers of its strategies, and the matrix of each factor that is answered by it.
        weights: how much errors count, by product: a number, or float64[answers].
    """

    name: str
    axes: tuple[tuple[Axis, ...], ...]
    strategies: tuple[Strategy, ...]
    wanted: tuple[tuple[tuple[int, tuple[Float64 | None, ...]], ...], ...]
    weights: tuple[float | Float64, ...]

    @cached_property
    def uses(self) -> tuple[tuple[Use, ...], ...]:
        """For each product, how answers are made of measurements.

        Guarantee: what is put together is unbiased: R A = W, in the order of rounding of float64.
        Proof: docs/proofs/mechanisms.strategy.md, section 3.
        Assumes: strategies that span what is wanted of them, as those of `ways_of` do.
        Rounds: to the nearest.
        """
        return tuple(
            tuple(Use(number, tuple(map(_back, wanted, self.strategies[number].floats))) for number, wanted in parts)
            for parts in self.wanted
        )

    @cached_property
    def lengths(self) -> Float64:
        """float64[strategies], the most that a row moves each, squared."""
        return np.array([strategy.length**2 for strategy in self.strategies])

    @cached_property
    def spreads(self) -> tuple[Any, ...]:
        """For each product float64[answers, strategies], what measurements of variance 1 add to an answer."""
        found = []
        for uses in self.uses:
            columns = {use.strategy: use.spread(self.strategies[use.strategy]) for use in uses}
            many = len(next(iter(columns.values())))
            found.append(np.stack([columns.get(at, np.zeros(many)) for at in range(len(self.strategies))], axis=1))
        return tuple(found)

    @cached_property
    def counted(self) -> Float64:
        """float64[strategies], what measurements of variance 1 add to the sum of squared errors as they count."""
        pairs = zip(self.weights, self.spreads, strict=True)
        return np.asarray(sum((_column(weight) ** 2 * spread).sum(axis=0) for weight, spread in pairs))

    @property
    def answers(self) -> int:
        """The number of answers."""
        return sum(len(spread) for spread in self.spreads)

    def least_squares(self) -> Float64:
        """Return float64[strategies], the shares of mu^2 at which the sum of squared errors is least.

        Guarantee: no shares give less, by Cauchy-Schwarz.
        Proof: docs/proofs/limits.tables.md, section 2, with one price a strategy.
        Assumes: nothing.
        Rounds: to the nearest.
        """
        roots = np.sqrt(self.counted * self.lengths)
        return np.asarray(roots / roots.sum())

    def least_largest(self) -> Float64:
        """Return float64[strategies], the shares of mu^2 at which the largest error, as errors count, is least."""
        rows = np.concatenate([
            _column(weight) ** 2 * spread * self.lengths
            for weight, spread in zip(self.weights, self.spreads, strict=True)
        ])  # fmt: skip
        if self.name != TOTAL:
            shares = rows.max(axis=0)
            return np.asarray(shares / shares.sum())
        low, high = 0.0, 1.0  # of the largest error, what the total may add to it where it adds the most
        first, others = rows[:, 0], rows[:, 1:]

        def needed(part: float) -> Float64:
            """Return the shares for a largest error of 1."""
            total = float(first.max()) / part
            return np.array([total, *(others / (1 - first / total)[:, None]).max(axis=0)])

        for _ in range(60):
            left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
            low, high = (low, right) if needed(left).sum() < needed(right).sum() else (left, high)
        shares = needed((low + high) / 2)
        return np.asarray(shares / shares.sum())


def _column(weight: float | Float64) -> Float64:
    """Return weights as a column: one for all answers, or one for each."""
    return np.asarray(weight, np.float64).reshape(-1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Ways:
    """All ways to answer a workload, and what any unbiased way has to pay.

    Attributes:
        ways: the ways, each for the goal.
        least: a lower bound on gamma_F or gamma_2 of the weighted workload.
        least_mean: a lower bound on gamma_F, also where the largest error counts.
    """

    ways: tuple[Way, ...]
    least: float
    least_mean: float


def ways_of(workload: Products, sizes: Mapping[Axis, int], *, largest: bool) -> Ways:
    """Return all ways to answer a workload.

    Args:
        workload: what is wanted.
        sizes: how many cells each axis has.
        largest: whether the largest error is to be least; else the sum of squares.
    """
    products = workload.products
    found, least = [_each(products, sizes, largest=largest)], 0.0
    for product in products:
        lowers = [factorized(W, largest=largest).lower for W in _matrices(product, sizes) if W is not None]
        cells = math.prod(sizes[f.axes[0]] for f in product.factors if _plain(f))
        least = max(least, product.weight * math.prod(lowers) * (1.0 if largest else math.sqrt(cells)))
    if len(products) > 1 and all(len(product.factors) == 1 for product in products):
        found.append(_with_total(products, sizes, largest=largest))
    if len(products) > 1 and math.prod(float(sizes[axis]) for axis in workload.axes) <= MOST_JOINT:
        joint, lower = _joint(workload, sizes, largest=largest)
        found.append(joint)
        least = max(least, lower)
    return Ways(tuple(found), least, max(_apart(products, sizes), 0.0 if largest else least))


def _plain(factor: Any) -> bool:
    """Return whether a factor is the cells of a column themselves."""
    return isinstance(factor, ListedFactor)


def _matrices(product: WorkloadProduct, sizes: Mapping[Axis, int]) -> list[Float64 | None]:
    """Return the matrix of each factor, None for cells themselves."""
    return [
        None if _plain(factor) else factor.matrix([sizes[axis] for axis in factor.axes]) for factor in product.factors
    ]


def _cells(product: WorkloadProduct, sizes: Mapping[Axis, int]) -> tuple[int, ...]:
    """Return the cells of each factor."""
    return tuple(math.prod(sizes[axis] for axis in factor.axes) for factor in product.factors)


def _back(W: Float64 | None, A: Float64 | None) -> Float64 | None:
    """Return R with R A = W; A is square but for the cells that W does not use, whose columns are zero."""
    if W is None:
        return None
    if A is None:
        return W
    used = abs(A).max(axis=0) > 0
    return np.asarray(np.linalg.solve(A[:, used].T, W[:, used].T).T)


def _strategy(cells: tuple[int, ...], matrices: Sequence[Float64 | None], *, largest: bool) -> Strategy:
    """Return the product of the best strategies of factors."""
    bits = bits_of(tuple(matrices))
    made = tuple(None if W is None else factorized(W, largest=largest, bits=bits).strategy for W in matrices)
    return Strategy.rounded(cells, made)


def _each(products: tuple[WorkloadProduct, ...], sizes: Mapping[Axis, int], *, largest: bool) -> Way:
    """Return the way that measures each product by itself."""
    strategies, wanted = [], []
    for number, product in enumerate(products):
        matrices = _matrices(product, sizes)
        strategy = _strategy(_cells(product, sizes), matrices, largest=largest)
        strategies.append(strategy)
        wanted.append(((number, tuple(matrices)),))
    axes = tuple(product.axes for product in products)
    return Way(EACH, axes, tuple(strategies), tuple(wanted), tuple(product.weight for product in products))


def _with_total(products: tuple[WorkloadProduct, ...], sizes: Mapping[Axis, int], *, largest: bool) -> Way:
    """Return the way that measures the total, and of each product what differs from its even share of it."""
    strategies: list[Strategy] = [Strategy((1,), (None,), 0)]
    wanted: list[tuple[tuple[int, tuple[Float64 | None, ...]], ...]] = []
    axes: list[tuple[Axis, ...]] = [()]
    for product in products:
        (W,), (cells,) = _matrices(product, sizes), _cells(product, sizes)
        W = np.eye(cells) if W is None else W
        even = W.mean(axis=1, keepdims=True)
        rest = W - even
        mine: list[tuple[int, tuple[Float64 | None, ...]]] = [(0, (even,))]
        if abs(rest).max() > 0:
            mine.append((len(strategies), (rest,)))
            strategies.append(_strategy((cells,), [rest], largest=largest))
            axes.append(product.axes)
        wanted.append(tuple(mine))
    weights = tuple(product.weight for product in products)
    return Way(TOTAL, tuple(axes), tuple(strategies), tuple(wanted), weights)


def _joint(workload: Products, sizes: Mapping[Axis, int], *, largest: bool) -> tuple[Way, float]:
    """Return the way that measures all cells together with one strategy, and the bound of the workload."""
    axes = workload.axes
    blocks = [product_matrix(product, axes, sizes) for product in workload.products]
    weights = tuple(product.weight for product in workload.products)
    found = factorized(np.concatenate([weight * W for weight, W in zip(weights, blocks, strict=True)]), largest=largest)
    strategy = Strategy.rounded((blocks[0].shape[1],), (found.strategy,))
    return Way(JOINT, (axes,), (strategy,), tuple(((0, (W,)),) for W in blocks), weights), found.lower


def product_matrix(product: WorkloadProduct, axes: tuple[Axis, ...], sizes: Mapping[Axis, int]) -> Float64:
    """Return float64[answers, cells of the axes], the answers of a product as sums of joint cells."""
    own, matrices = product.axes, _matrices(product, sizes)
    cells = _cells(product, sizes)
    small = reduce(
        _kron, [np.eye(n) if W is None else W for n, W in zip(cells, matrices, strict=True)], np.ones((1, 1))
    )
    shaped = small.reshape(len(small), *(sizes[axis] for axis in own))
    order = sorted(range(len(own)), key=lambda at: axes.index(own[at]))
    shaped = shaped.transpose(0, *(at + 1 for at in order))
    full = [sizes[axis] if axis in own else 1 for axis in axes]
    wide = np.broadcast_to(shaped.reshape(len(small), *full), (len(small), *(sizes[axis] for axis in axes)))
    return np.ascontiguousarray(wide.reshape(len(small), -1))


def _kron(one: Float64, other: Float64) -> Float64:
    """Return the Kronecker product of two matrices."""
    return np.asarray(np.kron(one, other), np.float64)


def _apart(products: tuple[WorkloadProduct, ...], sizes: Mapping[Axis, int]) -> float:
    """Return a lower bound on gamma_F of products about columns of their own; 0 for others, and for too many."""
    axes = [axis for product in products for axis in product.axes]
    rows = [math.prod(factor.answers([sizes[a] for a in factor.axes]) for factor in one.factors) for one in products]
    cells = [math.prod(_cells(product, sizes)) for product in products]
    if len(set(axes)) < len(axes) or sum(rows) > _MOST_ROWS or max(cells) > _MOST_ROWS:
        return 0.0
    blocks = [product.weight * product_matrix(product, product.axes, sizes) for product in products]
    return union_at_least([(W, np.full(W.shape[1], 1 / W.shape[1])) for W in blocks])
