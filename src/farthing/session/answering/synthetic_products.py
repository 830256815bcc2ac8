"""A release of products by a model as it is asked: which sums of cells, for which loss; read and checked."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import InvalidOption
from farthing.mechanisms.linear_queries import MatrixQueries
from farthing.released_synthetic import ToldProduct
from farthing.session.answering.product_request import answers_of, check_axes, named_axes
from farthing.session.answering.release_options import AskedRows, Read, identity_of, rows_and_goal
from farthing.session.answering.synthetic_request import HELD, SyntheticRequest, check_domain, refuse_size, request_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.privacy.loss import Booked
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import QuestionReader
    from farthing.workloads import Products
    from farthing.workloads.products import Axis

MOST_WEIGHTS: Final = 1 << 23
"""The most weights of all answers together, zeros among them."""


@dataclass(frozen=True, slots=True)
class SyntheticProductsRequest(SyntheticRequest):
    """A release of products by a model, read and checked.

    Attributes:
        places: which of the query's groupings each axis is.
    """

    places: Mapping[Axis, int]

    @property
    def products(self) -> tuple[ToldProduct, ...]:
        """The products of the workload, each about cells by its own axes."""
        sizes, found = {axis: self.sizes[place] for axis, place in self.places.items()}, []
        for product in self.workload.products:
            weights = product.matrix(sizes)
            scale = float(abs(weights).max())
            places = tuple(self.places[axis] for axis in product.axes)
            found.append(ToldProduct(product, places, MatrixQueries(weights / scale), scale))
        return tuple(found)

    @property
    def queries(self) -> MatrixQueries:
        """All answers as queries on the whole domain, in proportion to their weights."""
        told = self.products
        most = max(one.scale * one.product.weight for one in told)
        cells = np.unravel_index(np.arange(math.prod(self.sizes)), self.sizes)
        parts = []
        for one in told:
            shape = [self.sizes[place] for place in one.places]
            own = (
                np.ravel_multi_index([cells[place] for place in one.places], shape)
                if shape
                else np.zeros_like(cells[0])
            )
            weights = np.asarray(one.queries.weights, np.float64) * (one.scale * one.product.weight / most)
            parts.append(weights[:, own])
        return MatrixQueries(np.concatenate(parts))

    @property
    def counted(self) -> set[tuple[int, ...]]:
        """The tables that are counted: that by all axes, and that of each product."""
        return {tuple(range(len(self.sizes))), *(tuple(sorted(one.places)) for one in self.products)}

    def question(self, loss: Booked) -> str:
        """Return its identity in the ledger."""
        workload = hashlib.sha256(repr(self.workload.products).encode()).hexdigest()
        facts = [workload, self.mechanism, loss.farthings]
        return identity_of(self.context, self.query, self.lists, "synthetic", facts)


def read(
    context: Context,
    reader: QuestionReader,
    workload: Products,
    rows: AskedRows,
    options: Mapping[str, Any],
) -> SyntheticProductsRequest:
    """Return a release of products by a model, read and checked; nothing is charged.

    Args:
        context: the data and the books.
        reader: reads keys, columns and conditions.
        workload: what is wanted.
        rows: which rows; keys of each column that is not cut into bins.
        options: mechanism, loss, confidence, simultaneous, max_epsilon, cap, at_most.
    """
    mechanism = str(options["mechanism"])
    if mechanism not in HELD:
        raise InvalidOption(
            f"{mechanism!r} is for tables",
            rule="prefixes, ranges, conditions, matrices and their products by a model are for "
            + ", ".join(map(repr, HELD)),
            got=repr(workload)[:80],
            next_step=f'mechanism="{HELD[0]}", or a workload of marginals',
        )
    names, values, _ = named_axes(reader, workload, rows.keys)
    columns = tuple(sorted(names.values()))
    check_axes(columns)

    def read_rows(under: AskedRows) -> Read:
        """Return the rows, with the values of bins and conditions beside the listed ones."""
        listed = named_axes(reader, workload, under.keys)[2]
        return under.read(reader, columns, keys=listed, groupings=values, taken=("condition", "row"))

    goal = (lambda given: request_of(mechanism, given)), {"loss": context.loss(1)}
    (query, lists), request = rows_and_goal(reader, rows, options, read_rows, goal)
    places = {axis: columns.index(name) for axis, name in names.items()}
    asked = SyntheticProductsRequest(context, query, lists, workload, request, mechanism, rows.name, places)
    _check_sizes(asked)
    return asked


def _check_sizes(asked: SyntheticProductsRequest) -> None:
    """Refuse a domain and answers that cannot be held, with their size, the limit, and what would do."""
    check_domain(asked, 'mechanism="auto" never holds the domain of several products')
    sizes = {axis: asked.sizes[place] for axis, place in asked.places.items()}
    weights = answers_of(asked.workload, sizes) * math.prod(asked.sizes)
    instead = 'mechanism="auto" needs no matrix of all of it; fewer edges, or fewer listed values'
    refuse_size(f"{asked.mechanism!r}", weights, MOST_WEIGHTS, instead, counted="weights: answers times cells")
    assert asked.queries.cells == math.prod(asked.sizes)  # noqa: S101  # what cannot be made is refused here, free
