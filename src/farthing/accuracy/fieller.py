"""Fieller's set: the quotients that two noisy numbers do not refute; its proof is with the shared measures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from farthing.accuracy.jumps import Floats


def fieller(
    top: Floats, bottom: Floats, top_var: Floats, bottom_var: Floats, z: Floats | float
) -> tuple[Floats, Floats]:
    """Return the numbers q with |top - q bottom| <= z sqrt(top_var + q^2 bottom_var), the whole line if unbounded.

    The line is returned, too, where the denominator is not surely positive.

    >>> [float(end) for end in fieller(np.array(0.0), np.array(10.0), np.array(4.0), np.array(25.0), 1.0)]
    [-0.23094010767585033, 0.23094010767585033]
    """
    left = bottom * bottom - z * z * bottom_var
    sure = (left > 0) & (bottom > 0)
    safe = np.where(sure, left, 1.0)
    reach = z * np.sqrt(top * top * bottom_var + safe * top_var)
    return (
        np.where(sure, (top * bottom - reach) / safe, -np.inf),
        np.where(sure, (top * bottom + reach) / safe, np.inf),
    )
