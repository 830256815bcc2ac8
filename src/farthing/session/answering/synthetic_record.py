"""What the ledger keeps of a release by a model: the model, and how far its tables are from the truth, as measured."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.session.core.records import read_blob, write_blob
from farthing.synthetic import CliqueModel, HistogramModel, TreeModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.synthetic import RowModel

    Float64 = NDArray[np.float64]

_FORMAT: Final = b"farthing-synthetic-1"


def to_bytes(model: RowModel, apart: Float64) -> bytes:
    """Return the blob that the ledger stores: all numbers in a row, and what they are of."""
    if isinstance(model, TreeModel):
        about: list[Any] = [list(model.columns), list(model.parents)]
        arrays = [np.asarray(table, np.float64) for table in model.tables]
    elif isinstance(model, CliqueModel):
        about = [list(model.sizes), [[list(columns) for columns in block] for block in model.blocks]]
        arrays = [np.asarray(table, np.float64) for table in (*model.tables, *model.widths)]
    else:
        assert isinstance(model, HistogramModel)  # noqa: S101  # there are three kinds
        about, arrays = [list(model.sizes)], [np.asarray(model.weights, np.float64)]
    arrays.append(np.asarray(apart, np.float64))
    facts = [type(model).__name__, float(model.total), about, [list(array.shape) for array in arrays]]
    numbers = np.concatenate([array.reshape(-1) for array in arrays])
    return write_blob({"mean": numbers}, {_FORMAT: json.dumps(facts).encode()})


def from_bytes(blob: bytes) -> tuple[RowModel, Float64]:
    """Return what is in a blob; refuse one that is not ours."""
    columns, facts = read_blob(blob, _FORMAT)
    numbers, start, arrays = np.array(columns["mean"], np.float64), 0, []
    kind, total, about, shapes = facts
    for shape in shapes:
        size = math.prod(shape)
        arrays.append(numbers[start : start + size].reshape(shape))
        start += size
    *parts, apart = arrays
    if kind == TreeModel.__name__:
        return TreeModel(tuple(about[0]), tuple(about[1]), tuple(parts), float(total)), apart
    if kind == CliqueModel.__name__:
        blocks = tuple((tuple(given), tuple(own)) for given, own in about[1])
        many = len(blocks)
        return CliqueModel(tuple(about[0]), blocks, tuple(parts[:many]), tuple(parts[many:]), float(total)), apart
    return HistogramModel(tuple(about[0]), parts[0], float(total)), apart
