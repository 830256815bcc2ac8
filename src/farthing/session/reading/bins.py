"""The bins of a histogram, as groups with listed keys."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from farthing.errors import InvalidKeys
from farthing.query.expressions import And as Both
from farthing.query.expressions import Case, Compare, Literal, Operator

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from farthing.query.expressions import Scalar


def binned(value: Scalar, name: str, edges: Sequence[float]) -> tuple[dict[str, Scalar], pa.Table]:
    """Return the groupings and keys of a histogram: bins [edge, next edge), the last one closed."""
    import pyarrow as pa

    given = [float(edge) for edge in edges] if isinstance(edges, Sequence) or hasattr(edges, "__iter__") else []
    if len(given) < 2 or any(not low < high for low, high in pairwise(given)):
        raise InvalidKeys(
            "the edges of a histogram do not rise",
            rule="at least two finite numbers, each larger than the one before",
            got=repr(edges)[:80],
            next_step="edges=[0, 10, 20, 50]",
        )
    bins = list(pairwise(given))
    tests = [
        Both(
            (
                Compare(value, Operator.GE, Literal(low)),
                Compare(value, Operator.LE if high == given[-1] else Operator.LT, Literal(high)),
            )
        )
        for low, high in bins
    ]
    ends = {f"{name}_from": [low for low, _ in bins], f"{name}_to": [high for _, high in bins]}
    groupings: dict[str, Scalar] = {
        column: Case(tuple((test, Literal(end)) for test, end in zip(tests, values, strict=True)))
        for column, values in ends.items()
    }
    return groupings, pa.table(ends)


def crossed(ends: pa.Table, lists: Mapping[str, Any]) -> Any:
    """Return the cross product of listed keys and bins, as a table; the bins vary fastest."""
    import pyarrow as pa

    table = ends
    for name, given in reversed(list(lists.items())):
        values = pa.array(given) if not hasattr(given, "to_arrow") else given.to_arrow()
        rows = table.num_rows
        places = [place for place in range(len(values)) for _ in range(rows)]
        table = pa.table(
            {name: values.take(pa.array(places))}
            | {
                column: pa.concat_arrays([table.column(column).combine_chunks()] * len(values))
                for column in table.column_names
            }
        )
    return table
