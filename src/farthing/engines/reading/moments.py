"""Moments of any unit as moments of microseconds: those that these cannot tell are NULL, and fail nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

_MICROS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DAY: Final = 86_400_000_000
_MOST: Final = 2**63 - 1


def moments(values: Any, kind: pa.DataType) -> Any:
    """Return days or times of any unit as times of microseconds, of a type with a zone or without.

    Guarantee: no value fails: a moment more than 292,000 years from 1970 is NULL.
    Proof: it is told by a comparison of whole numbers of 64 bits, before they are multiplied.
    Assumes: nothing.
    Rounds: moments finer than a microsecond, down to it.

    >>> import pyarrow as pa
    >>> far = pa.array([0, 1, -(2**63)], pa.int64()).cast(pa.timestamp("ms"))
    >>> moments(far, pa.timestamp("us")).cast(pa.int64()).to_pylist()
    [0, 1000, None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    days = pa.types.is_date32(values.type)
    ticks = values.cast(pa.int32()).cast(pa.int64()) if days else values.cast(pa.int64())
    if not days and values.type.unit == "ns":
        micros = pa.array(np.asarray(ticks.fill_null(0)) // 1000, pa.int64(), mask=np.asarray(ticks.is_null()))
    else:
        each = _DAY if days else _MICROS[values.type.unit]
        near = pc.and_(pc.less_equal(ticks, _MOST // each), pc.greater_equal(ticks, -(_MOST // each)))
        micros = pc.multiply(pc.if_else(near, ticks, None), each)
    return micros.cast(kind)
