"""What leaves of a release of products: sums of cells with intervals. Never an exact count."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import InvalidOption, UnsupportedQuery
from farthing.tabular import Tabular
from farthing.workloads.factors import ConditionFactor, ListedFactor, MatrixFactor, PrefixFactor, RangeFactor
from farthing.workloads.products import Products

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.limits import Limit
    from farthing.planning.products import ProductPlan
    from farthing.planning.release import Candidate
    from farthing.privacy.loss import Booked
    from farthing.workloads.factors import Axis, Factor
    from farthing.workloads.products import WorkloadProduct

    Float64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ProductTable(Tabular):
    """The answers of one product, with an interval for each.

    Attributes:
        name: the answer column.
        words: the product in words.
        value: float64[answers of each factor], the answers. They are signed and not whole.
        half_width: as shaped, the half-widths of the intervals.
        target: the half-width that was asked of every answer, or infinity.
        paid: what members paid in this ask: mu or rho.
        labels: what tells the answers of each factor apart, as Arrow arrays by column, a mapping for each factor.
    """

    name: str
    words: str
    value: Float64
    half_width: Float64
    target: float
    paid: float
    labels: tuple[Mapping[str, pa.Array], ...]

    @property
    def lower(self) -> Float64:
        """The lower ends of the intervals, shaped as the answers."""
        return self.value - self.half_width

    @property
    def upper(self) -> Float64:
        """The upper ends of the intervals, shaped as the answers."""
        return self.value + self.half_width

    @property
    def met(self) -> NDArray[np.bool_]:
        """Whether each interval is as narrow as was asked, shaped as the answers."""
        return np.asarray(self.half_width <= self.target * (1 + 1e-9))

    def to_arrow(self) -> pa.Table:
        """Return one row an answer: what tells them apart, <name>, <name>_lower, <name>_upper, met, paid."""
        import pyarrow as pa

        places = np.unravel_index(np.arange(self.value.size), self.value.shape) if self.labels else ()
        columns: dict[str, Any] = {
            column: values.take(pa.array(at))
            for labels, at in zip(self.labels, places, strict=True)
            for column, values in labels.items()
        }
        columns |= {self.name: self.value.reshape(-1), f"{self.name}_lower": self.lower.reshape(-1)}
        columns |= {f"{self.name}_upper": self.upper.reshape(-1), "met": self.met.reshape(-1)}
        return pa.table(columns | {"paid": np.full(self.value.size, self.paid)})

    @property
    def caption(self) -> str:
        """What is shown, in one line."""
        return f"{self.name}: {self.words}, each within +/-{self.half_width.max():.4g}"

    @property
    def footer(self) -> tuple[str, ...]:
        """The line below the answers: what is shown."""
        return (self.caption,)


@dataclass(frozen=True, eq=False, repr=False)
class ProductRelease(Tabular, Mapping[str, ProductTable]):
    """Many sums of cells at once: a mapping from the words of each product of the workload to a `ProductTable`.

    Each interval holds the sum *of the bounded data* with the stated confidence, whatever it is; all of them at once
    where that was asked. `release[prefixes("age", edges)]` finds a product by the workload itself.

    Attributes:
        name: the answer column of every table.
        workload: what was asked.
        paid: the loss of this ask, in the ledger's currency; zero when asking again.
        remaining: what the ledger had left right after this ask.
        delta: the delta at which epsilons of this ledger are stated.
        about: what the numbers are about, in words: the privacy unit and its bounds.

    >>> import pyarrow as pa
    >>> import farthing
    >>> from farthing.workloads import prefixes
    >>> s = farthing.Session(pa.table({"age": [20, 40, 70] * 300}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> release = s.release(prefixes("age", [0, 18, 65, 120]), absolute=50)
    >>> release["prefixes of age"].to_arrow().column_names
    ['age_to', 'count', 'count_lower', 'count_upper', 'met', 'paid']
    >>> bool(abs(release["prefixes of age"].value[1] - 600) < 120)
    True
    """

    name: str
    workload: Products
    paid: Booked
    remaining: Booked
    delta: float
    about: str
    _keys: Mapping[Axis, pa.Array]
    _values: tuple[Float64, ...]
    _plan: ProductPlan
    _refine: Callable[..., ProductRelease]
    _limit: Callable[[], Limit]

    def __getitem__(self, product: str | Products) -> ProductTable:
        """Return the answers of a product, by its words or by itself as a workload.

        Raises:
            UnsupportedQuery: the workload has no such product.
        """
        products = self.workload.products
        wanted = product.products[0].factors if isinstance(product, Products) and len(product.products) == 1 else None
        for number, one in enumerate(products):
            if one.words == product or one.factors == wanted:
                return self._table(number, one)
        raise UnsupportedQuery(
            f"the release has no product {product!r}",
            construct="unknown product",
            rule="the words of a product of the workload, or the product itself",
            got=repr(product)[:80],
            next_step="the products are " + "; ".join(one.words for one in products[:8]),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(one.words for one in self.workload.products)

    def __len__(self) -> int:
        return len(self.workload.products)

    @property
    def rmse(self) -> float:
        """The root mean squared error of an answer, all answers alike."""
        return self._plan.rmse

    @property
    def mechanism(self) -> str:
        """How it was measured."""
        return self._plan.mechanism

    @property
    def contest(self) -> tuple[Candidate, ...]:
        """What each way would have paid for the same goal, or reached with the same loss; from nothing."""
        return self._plan.contest

    @property
    def confidence(self) -> float:
        """The chance that an interval holds its truth."""
        return self._plan.goal.confidence

    @property
    def goal(self) -> str:
        """What was asked, in words."""
        return self._plan.goal.words

    def optimality(self) -> Limit:
        """Return the least loss that any unbiased mechanism could have paid for this, beside what was paid in all.

        >>> import pyarrow as pa
        >>> import farthing
        >>> from farthing.workloads import prefixes
        >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> release = s.release(prefixes("a", range(9)), rms=30)
        >>> bool(1 <= release.optimality().ratio < 1.01)
        True
        """
        return self._limit()

    def refine(self, **changes: Any) -> ProductRelease:
        """Return a sharper release of the same products, for the difference.

        Args:
            **changes: any of absolute, rms, confidence, simultaneous, loss, max_epsilon, cap; what is left out stays.
                From an error of every answer to a mean one, or back, it is a release of its own, paid from nothing.

        >>> import pyarrow as pa
        >>> import farthing
        >>> from farthing.workloads import prefixes
        >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> release = s.release(prefixes("a", range(9)), absolute=60)
        >>> release.refine(absolute=50).rmse < release.rmse
        True
        """
        return self._refine(**changes)

    def to_arrow(self) -> pa.Table:
        """Return one row an answer of all products: its product and its number in it, then as `ProductTable`."""
        import pyarrow as pa

        parts = []
        for words in self:
            table = (
                self[words].to_arrow().select([self.name, f"{self.name}_lower", f"{self.name}_upper", "met", "paid"])
            )
            numbers = {"product": [words] * len(table), "answer": np.arange(len(table))}
            columns = {name: table.column(name) for name in table.column_names}
            parts.append(pa.table(numbers | columns))
        return pa.concat_tables(parts).combine_chunks()

    def to_parquet(self, folder: str | Path) -> list[Path]:
        """Write the answers of each product as a Parquet file into a folder; return the files.

        Raises:
            InvalidOption: the folder has one of the files already.
        """
        import pyarrow.parquet as pq

        directory = Path(folder)
        files = [directory / f"{number:03d}-{_plain(words)}.parquet" for number, words in enumerate(self, 1)]
        there = next((file for file in files if file.exists()), None)
        if there is not None:
            raise InvalidOption(
                "a file of the release is there already",
                rule="files are not written over",
                got=there.name,
                next_step="name a new folder",
            )
        directory.mkdir(parents=True, exist_ok=True)
        for file, words in zip(files, self, strict=True):
            pq.write_table(self[words].to_arrow(), file)
        return files

    @property
    def caption(self) -> str:
        """The promise in one line."""
        many = sum(len(one) for one in self._values)
        return (
            f"{many:,} answers, {self.goal}, {self.confidence:.4g} confidence, "
            f"root mean squared error {self.rmse:.4g}, by {self.mechanism}"
        )

    @property
    def price(self) -> str:
        """The price in one line: this ask and what is left."""
        text, left = f"paid {self.paid!r}", f"left {self.remaining!r}"
        if self.delta:
            text += f" = epsilon {self.paid.epsilon(self.delta):.4g} at delta {self.delta:g}"
            left += f" = epsilon {self.remaining.epsilon(self.delta):.4g}"
        return f"{text}; {left}"

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the answers: the promise, the price, what they are about."""
        return self.caption, self.price, self.about

    def _table(self, number: int, product: WorkloadProduct) -> ProductTable:
        """Return the answers of a product."""
        labels = tuple(self._labels(factor) for factor in product.factors)
        shape = tuple(len(next(iter(one.values()))) for one in labels)
        absolute = self._plan.goal.absolute
        return ProductTable(
            self.name,
            replace(product, weight=1.0).words,
            self._values[number].reshape(shape),
            self._plan.half_widths[number].reshape(shape),
            math.inf if absolute is None else absolute / product.weight,
            self.paid.value,
            labels,
        )

    def _labels(self, factor: Factor) -> dict[str, pa.Array]:
        """Return what tells the answers of a factor apart."""
        import pyarrow as pa

        match factor:
            case ListedFactor():
                return {factor.column: self._keys[factor.column]}
            case PrefixFactor():
                return {f"{factor.bins.column}_to": pa.array(factor.bins.edges[1:])}
            case RangeFactor():
                first, last = np.triu_indices(len(factor.bins.edges) - 1)
                edges = np.array(factor.bins.edges)
                stem = factor.bins.column
                return {f"{stem}_from": pa.array(edges[first]), f"{stem}_to": pa.array(edges[last + 1])}
            case ConditionFactor():
                return {"condition": pa.array([factor.truth.condition])}
            case MatrixFactor():
                return {"row": pa.array(np.arange(len(factor.entries)))}


def _plain(words: str) -> str:
    """Return the words of a product as part of a file's name: letters, digits, dashes."""
    return "".join(letter if letter.isalnum() else "_" for letter in words)[:80]
