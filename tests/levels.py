"""One false-alarm budget for every statistical test of the suite.

The chance that a healthy farthing fails any statistical test in one run is at most FAMILY_ALPHA. Each looks at its data
with finite-sample bounds (Dvoretzky-Kiefer-Wolfowitz-Massart, exact binomial), since asymptotic p-values mean nothing
this far out. `tests/unit/test_levels.py` counts the tests.
"""

from math import log, sqrt

FAMILY_ALPHA = 1e-9
TESTS = 560
ALPHA = FAMILY_ALPHA / TESTS


def dkw_band(n: int, alpha: float = ALPHA) -> float:
    """Return the half-width that an empirical CDF of n draws leaves with probability at most alpha (DKW-Massart)."""
    return sqrt(log(2 / alpha) / (2 * n))
