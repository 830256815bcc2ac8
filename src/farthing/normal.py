"""The standard normal law: its chances and its quantiles, of arrays from scipy.

Scipy is loaded when it is first needed: importing it takes twice as long as numpy does, and a count by groups needs two
quantiles of single numbers, which Python's own library has.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, Final

_STANDARD: Final = NormalDist()


def ndtr(z: Any) -> Any:
    """Return P[Z <= z], of one number or of each.

    >>> round(float(ndtr(-1.0)), 6)
    0.158655
    """
    from scipy.special import ndtr as of

    return of(z)


def ndtri(chance: Any) -> Any:
    """Return the z with P[Z <= z] = chance, of one number or of each; infinite for the chances 0 and 1.

    Guarantee: the relative error is at most 2^-40, where it is measured at 2^-50 (1 + |z|) at most.
    Proof: measured against balls, for chances from 1e-300: tests/unit/test_normal.py.
    Assumes: `statistics.NormalDist` (algorithm AS 241) for one number, scipy for arrays.
    Rounds: nothing; neither is rounded to a side.

    >>> round(ndtri(0.975), 6)
    1.959964
    """
    if isinstance(chance, float) and 0 < chance < 1:
        return _STANDARD.inv_cdf(chance)
    from scipy.special import ndtri as of

    return of(chance)
