"""Where to begin the search for the critical value of a Laplace chain: a table of what it found, and a little more.

A hint decides how long a search takes, and nothing else: the truths are swept at the value that is returned, whatever
it was begun with. `python bench/speed/plans.py --table` prints the table again.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from farthing.accuracy.noise_laws import LAPLACE

BETAS: Final = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4, 1e-6, 1e-9, 1e-12)
"""The chances of a miss that the table has."""

BANDS: Final = {
    1.005: (0.0031, 0.006, 0.012, 0.02, 0.03),
    1.01: (0.0301, 0.05, 0.08, 0.11, 0.15),
    1.02: (0.1501, 0.2, 0.3, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 0.99, 0.9999),
}
"""The relative targets that it has, by the growth of looks."""

REACH: Final = 2.0
"""Targets up to so many times those that rules are made for are in it; for others the last one stands."""

_A_LITTLE: Final = 0.012  # of r, and more: so that it is mostly enough
_LEAST: Final = 2e-4

_TABLE: Final[dict[float, tuple[tuple[float, ...], ...]]] = {
    1.005: (
        (1.518, 1.186, 1.017, 0.959, 0.933),
        (1.307, 1.007, 0.867, 0.818, 0.795),
        (1.198, 0.907, 0.785, 0.746, 0.731),
        (1.126, 0.830, 0.721, 0.692, 0.682),
        (1.061, 0.751, 0.655, 0.637, 0.634),
        (1.031, 0.703, 0.614, 0.602, 0.605),
        (0.969, 0.604, 0.510, 0.516, 0.532),
        (0.969, 0.552, 0.438, 0.451, 0.477),
        (0.969, 0.501, 0.346, 0.356, 0.394),
        (0.969, 0.501, 0.283, 0.264, 0.303),
        (0.969, 0.501, 0.260, 0.211, 0.238),
    ),
    1.01: (
        (0.917, 0.925, 0.925, 0.925, 0.925),
        (0.765, 0.766, 0.782, 0.810, 0.810),
        (0.689, 0.694, 0.712, 0.733, 0.769),
        (0.630, 0.644, 0.664, 0.684, 0.714),
        (0.569, 0.593, 0.615, 0.640, 0.669),
        (0.530, 0.563, 0.589, 0.614, 0.644),
        (0.433, 0.483, 0.527, 0.557, 0.590),
        (0.362, 0.423, 0.480, 0.517, 0.554),
        (0.263, 0.333, 0.407, 0.454, 0.500),
        (0.181, 0.238, 0.322, 0.382, 0.439),
        (0.143, 0.175, 0.257, 0.322, 0.388),
    ),
    1.02: (
        (0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000),
        (0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000, 0.000),
        (0.748, 0.854, 0.854, 0.854, 0.854, 0.854, 0.854, 0.854, 0.854, 0.854, 0.854),
        (0.689, 0.741, 0.741, 0.741, 0.741, 0.741, 0.741, 0.741, 0.741, 0.741, 0.741),
        (0.637, 0.683, 0.831, 0.831, 0.831, 0.831, 0.831, 0.831, 0.831, 0.831, 0.831),
        (0.607, 0.653, 0.765, 0.765, 0.765, 0.765, 0.765, 0.765, 0.765, 0.765, 0.765),
        (0.536, 0.586, 0.680, 0.921, 1.437, 1.437, 1.437, 1.437, 1.437, 1.437, 1.437),
        (0.486, 0.539, 0.636, 0.811, 1.074, 1.783, 2.920, 2.920, 2.920, 2.920, 2.920),
        (0.407, 0.469, 0.573, 0.736, 0.885, 1.195, 2.135, 3.760, 5.377, 5.997, 6.142),
        (0.317, 0.388, 0.504, 0.670, 0.805, 0.995, 1.444, 3.187, 5.589, 6.530, 6.750),
        (0.247, 0.323, 0.447, 0.618, 0.752, 0.928, 1.223, 2.673, 5.806, 7.077, 7.374),
    ),
}


def hint(relative: float, beta: float, ratio: float) -> float:
    """Return a c that is about the least and rarely below it; 0 where nothing is known.

    >>> 3.06 < hint(0.1, 0.05, 1.01) < 3.07
    True
    """
    nodes, rows = BANDS.get(ratio), _TABLE.get(ratio)
    if (
        nodes is None
        or rows is None
        or not nodes[0] * 0.96 <= relative <= nodes[-1]
        or not BETAS[-1] <= beta <= BETAS[0]
    ):
        return 0.0
    single = LAPLACE.two_sided(beta)
    along = [np.interp(np.log(relative), np.log(nodes), row) for row in rows]
    excess = float(np.interp(np.log(single), np.log([LAPLACE.two_sided(each) for each in BETAS]), along))
    return single + (excess + _A_LITTLE) * relative + _LEAST
