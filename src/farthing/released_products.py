"""What leaves of a release of products: sums of cells with intervals. Never an exact count."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from farthing.errors import UnsupportedQuery
from farthing.released_tables import BaseRelease, ReleasedTable, labels_of
from farthing.workloads.products import Products

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.planning.products import ProductPlan
    from farthing.workloads.factors import Axis
    from farthing.workloads.products import WorkloadProduct

    Float64 = NDArray[np.float64]


class ProductTable(ReleasedTable):
    """The answers of one product, with an interval for each; an axis a factor."""


@dataclass(frozen=True, eq=False, repr=False)
class ProductRelease(BaseRelease, Mapping[str, ProductTable]):
    """Many sums of cells at once: a mapping from the words of each product of the workload to a `ProductTable`.

    `release[prefixes("age", edges)]` finds a product by the workload itself.

    Attributes:
        workload: what was asked.

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

    workload: Products
    _plan: ProductPlan
    _keys: Mapping[Axis, pa.Array]
    _values: tuple[Float64, ...]

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
    def parts(self) -> list[tuple[str, ProductTable]]:
        """The products of the workload, each with its words."""
        return [(words, self[words]) for words in self]

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

    @property
    def caption(self) -> str:
        """The promise in one line."""
        many = sum(len(one) for one in self._values)
        return (
            f"{many:,} answers, {self.goal}, {self.sure}, root mean squared error {self.rmse:.4g}, by {self.mechanism}"
        )

    def _table(self, number: int, product: WorkloadProduct) -> ProductTable:
        """Return the answers of a product."""
        labels = tuple(labels_of(factor, self._keys) for factor in product.factors)
        shape = tuple(len(next(iter(one.values()))) for one in labels)
        absolute, relative = self._plan.goal.absolute, self._plan.goal.relative
        value = self._values[number].reshape(shape)
        target = math.inf if absolute is None else np.maximum(absolute, relative * abs(value)) / product.weight
        return ProductTable(
            self.name,
            labels,
            value,
            self._plan.half_widths[number].reshape(shape),
            target,
            self.paid.value,
            self.paid.parameter,
            f"{self.name}: {replace(product, weight=1.0).words}",
        )
