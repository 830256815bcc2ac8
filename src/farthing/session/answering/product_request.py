"""A release of products as it is asked: which sums of which rows, how accurate, at what price; read and checked."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import InvalidKeys, InvalidOption
from farthing.mechanisms.strategy import MOST_CELLS
from farthing.planning.ways import EACH, JOINT, TOTAL
from farthing.query.expressions import Case, Compare, Literal, Operator
from farthing.session.answering.release_booking import BaseReleaseRequest
from farthing.session.answering.release_options import (
    MOST_COLUMNS,
    AskedRows,
    Read,
    identity_of,
    refuse_pure,
    rows_and_goal,
    wanted,
)
from farthing.workloads.factors import Bins, Truth

if TYPE_CHECKING:
    from farthing.query.expressions import Scalar
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import QuestionReader
    from farthing.workloads import Products
    from farthing.workloads.products import Axis

MOST_ANSWERS: Final = 10**7
"""The most answers of one release of products."""

MECHANISMS: Final = ("auto", EACH, TOTAL, JOINT)


@dataclass(frozen=True, slots=True)
class ProductRequest(BaseReleaseRequest):
    """A release of products, read and checked; its query is by all axes.

    Attributes:
        places: which of the query's groupings each axis is.
        mechanism: the way that was named, or None for the cheapest.
    """

    places: Mapping[Axis, int]
    mechanism: str | None

    @property
    def sizes(self) -> dict[Axis, int]:
        """How many cells each axis has."""
        return {axis: len(self.lists[place]) for axis, place in self.places.items()}

    @property
    def largest(self) -> bool:
        """Whether the largest error is to be least; else the mean one."""
        return self.errors[0] is not None

    def question(self, way: str) -> str:
        """Return its identity in the ledger: rows, cells, workload, which error is to be least, and the way."""
        facts = [hashlib.sha256(repr(self.workload.products).encode()).hexdigest(), self.largest, way]
        return identity_of(self.context, self.query, self.lists, "products", facts)


def read(
    context: Context,
    reader: QuestionReader,
    workload: Products,
    rows: AskedRows,
    options: Mapping[str, Any],
) -> ProductRequest:
    """Return a release of products, read and checked; nothing is charged.

    Args:
        context: the data and the books.
        reader: reads keys, columns and conditions.
        workload: what is wanted.
        rows: which rows; keys of each column that is not cut into bins.
        options: relative, absolute, rms, loss, confidence, simultaneous, max_epsilon, cap, mechanism.
    """
    refuse_pure(context)
    names, values, _ = named_axes(reader, workload, rows.keys)
    columns = tuple(sorted(names.values()))
    check_axes(columns)
    ends = tuple(f"{one}{end}" for one in columns for end in ("_from", "_to"))

    def read_rows(under: AskedRows) -> Read:
        """Return the rows, with the values of bins and conditions beside the listed ones."""
        listed = named_axes(reader, workload, under.keys)[2]
        return under.read(reader, columns, keys=listed, groupings=values, taken=("condition", "row", *ends))

    goal = (lambda given: wanted(given, MECHANISMS)), {"absolute": 1.0}
    (query, lists), (request, errors, relative) = rows_and_goal(reader, rows, options, read_rows, goal)
    places = {axis: columns.index(name) for axis, name in names.items()}
    named = options.get("mechanism")
    return ProductRequest(
        context=context,
        query=query,
        lists=lists,
        workload=workload,
        request=request,
        errors=errors,
        name=rows.name,
        relative=relative,
        many=_check_sizes(workload, {axis: len(lists[place]) for axis, place in places.items()}),
        what="answer",
        places=places,
        mechanism=None if named == "auto" else named,
    )


def check_axes(columns: tuple[str, ...]) -> None:
    """Refuse more columns than engines tell apart."""
    if len(columns) > MOST_COLUMNS:
        raise InvalidOption(
            "a release is of at most so many columns and conditions",
            rule=f"at most {MOST_COLUMNS} columns, bins and conditions in all products together",
            got=f"{len(columns)}",
            next_step="release fewer at once",
        )


def named_axes(
    reader: QuestionReader, workload: Products, keys: Any
) -> tuple[dict[Axis, str], dict[str, Scalar], dict[str, Any]]:
    """Return a name for each axis, what those are that are not columns, and the values of all of them."""
    taken = set(reader.engine.schema.names)
    names: dict[Axis, str] = {}
    values: dict[str, Scalar] = {}
    listed: dict[str, Any] = {}
    for axis in workload.axes:
        if isinstance(axis, str):
            names[axis] = axis
            continue
        stem = f"{axis.column}_from" if isinstance(axis, Bins) else f"condition_{len(names) + 1}"
        while stem in taken:
            stem += "_"
        taken.add(stem)
        names[axis] = stem
        if isinstance(axis, Bins):
            values[stem] = _bin_of(reader.value(axis.column), axis.edges)
            listed[stem] = list(axis.edges[:-1])
        else:
            values[stem] = Case(((reader.condition(axis.condition), Literal(value=True)),), Literal(value=False))
            listed[stem] = [False, True]
            same = [one.condition for one in names if isinstance(one, Truth) and values[names[one]] == values[stem]]
            _refuse_twice(same)
    given = {} if keys is None else keys
    if isinstance(given, Mapping) and set(given) & set(listed):
        raise InvalidKeys(
            "keys for what has bins or is a condition",
            rule="keys are for the other columns of the workload",
            got=", ".join(sorted(set(given) & set(listed))),
            next_step="leave them out",
        )
    return names, values, {**given, **listed} if isinstance(given, Mapping) else given


def _refuse_twice(same: list[str]) -> None:
    """Refuse a condition that is another one in other letters: both would be paid for, and differ."""
    if len(same) > 1:
        raise InvalidOption(
            "a condition is in the workload twice",
            rule="each condition once, however it is written",
            got=" and ".join(map(repr, same)),
            next_step="leave one out: a weight of 2 makes its error count twice",
        )


def _bin_of(value: Scalar, edges: tuple[float, ...]) -> Scalar:
    """Return the lower edge of a value's bin; below all of them the last edge, which is listed nowhere, else NULL."""
    below = [
        (Compare(value, Operator.LT, Literal(edge)), Literal(at))
        for at, edge in zip((edges[-1], *edges), edges, strict=False)
    ]
    last = (Compare(value, Operator.LE, Literal(edges[-1])), Literal(edges[-2]))
    return Case((*below[:-1], last))


def _check_sizes(workload: Products, sizes: Mapping[Axis, int]) -> int:
    """Return the number of answers; refuse more cells or answers than a release can hold, and other matrices."""
    for product in workload.products:
        cells = math.prod(sizes[axis] for axis in product.axes)
        if cells > MOST_CELLS:
            raise InvalidOption(
                "too many cells",
                rule=f"at most {MOST_CELLS:,} cells a product",
                got=f"{cells:,} in {product.words}",
                next_step="fewer factors, fewer listed values, or wider bins",
            )
        for factor in product.factors:
            factor.matrix([sizes[axis] for axis in factor.axes])
    answers = answers_of(workload, sizes)
    if answers > MOST_ANSWERS:
        raise InvalidOption(
            "too many answers", rule=f"at most {MOST_ANSWERS:,} answers", got=f"{answers:,}", next_step="fewer edges"
        )
    return answers


def answers_of(workload: Products, sizes: Mapping[Axis, int]) -> int:
    """Return the number of answers."""
    return sum(
        math.prod(factor.answers([sizes[axis] for axis in factor.axes]) for factor in product.factors)
        for product in workload.products
    )
