"""What the ledger keeps of a release by a model: the model, and how far its tables are from the truth, as measured.

Of a run that is not done: what was measured by some round, and the loss that is left of it.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.mechanisms.adaptive_tables import AdaptiveRounds, MeasuredTable, MeasuredTables
from farthing.session.core.records import read_blob, write_blob
from farthing.synthetic import CliqueModel, HistogramModel, TreeModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.privacy.loss import Booked
    from farthing.synthetic import RowModel

    Float64 = NDArray[np.float64]

_FORMAT: Final = b"farthing-synthetic-1"
_ROUNDS: Final = b"farthing-synthetic-rounds-1"


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


def rounds_to_bytes(going: AdaptiveRounds) -> bytes:
    """Return the blob of a run that is not done."""
    found = going.found
    arrays = [*found.ones, *(one.astype(np.float64) for one in found.kept), *(one.counts for one in found.tables)]
    facts = {
        "shapes": [list(array.shape) for array in arrays],
        "tables": [[list(one.columns), one.variance] for one in found.tables],
        "left": str(Fraction(going.left.amount)),
        "price": str(Fraction(going.price.amount)),
    }
    numbers = np.concatenate([array.reshape(-1) for array in arrays])
    return write_blob({"mean": numbers}, {_ROUNDS: json.dumps(facts).encode()})


def from_bytes(blob: bytes, currency: type[Booked]) -> tuple[RowModel, Float64] | AdaptiveRounds:
    """Return what is in a blob, of a run that is done or not; refuse one that is not ours.

    Args:
        blob: what the ledger stores.
        currency: of the ledger.
    """
    columns, facts = read_blob(blob, _FORMAT, _ROUNDS)
    numbers = np.array(columns["mean"], np.float64)
    if isinstance(facts, dict):
        return _rounds(facts, _arrays(numbers, facts["shapes"]), currency)
    kind, total, about, shapes = facts
    *parts, apart = _arrays(numbers, shapes)
    if kind == TreeModel.__name__:
        return TreeModel(tuple(about[0]), tuple(about[1]), tuple(parts), float(total)), apart
    if kind == CliqueModel.__name__:
        blocks = tuple((tuple(given), tuple(own)) for given, own in about[1])
        many = len(blocks)
        return CliqueModel(tuple(about[0]), blocks, tuple(parts[:many]), tuple(parts[many:]), float(total)), apart
    return HistogramModel(tuple(about[0]), parts[0], float(total)), apart


def _arrays(numbers: Float64, shapes: list[list[int]]) -> list[Float64]:
    """Return the numbers as arrays of these shapes, one after the other."""
    found, start = [], 0
    for shape in shapes:
        size = math.prod(shape)
        found.append(numbers[start : start + size].reshape(shape))
        start += size
    return found


def _rounds(facts: dict[str, Any], arrays: list[Float64], currency: type[Booked]) -> AdaptiveRounds:
    """Return a run that is not done."""
    many = (len(arrays) - len(facts["tables"])) // 2
    pairs = zip(facts["tables"], arrays[2 * many :], strict=True)
    tables = tuple(MeasuredTable(tuple(columns), counts, float(variance)) for (columns, variance), counts in pairs)
    kept = tuple(places.astype(np.int64) for places in arrays[many : 2 * many])
    left, price = (currency.of_amount(Fraction(facts[name])) for name in ("left", "price"))
    return AdaptiveRounds(MeasuredTables(tuple(arrays[:many]), kept, tables), left, price)
