"""From one measure of privacy loss to another, each by its theorem, each rounded against the user.

Every function returns a float that is certified to lie on the safe side of the exact value (ball arithmetic, then one
directed rounding): a loss or a delta is never understated, what a budget buys is never overstated. The functions with a
plural name take arrays.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from farthing.privacy.convert.gdp import gdp_delta, gdp_epsilon, gdp_from_epsilon
from farthing.privacy.convert.pure import (
    approx_delta,
    approx_epsilon,
    bounded_range_delta,
    bounded_range_epsilon,
    bounded_range_gdp,
    bounded_range_renyi,
    bounded_range_zcdp,
    geometric_zcdp,
    pure_delta,
    pure_epsilon,
    pure_gdp,
    pure_renyi,
    pure_zcdp,
)
from farthing.privacy.convert.zcdp import (
    renyi_delta,
    renyi_epsilon,
    renyi_from_epsilon,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_epsilon_classic,
    zcdp_from_epsilon,
    zcdp_from_epsilon_classic,
)
from farthing.privacy.numbers import Number

if TYPE_CHECKING:
    from farthing.privacy.convert.arrays import gdp_deltas, gdp_epsilons, zcdp_deltas, zcdp_epsilons

__all__ = [
    "Number",
    "approx_delta",
    "approx_epsilon",
    "bounded_range_delta",
    "bounded_range_epsilon",
    "bounded_range_gdp",
    "bounded_range_renyi",
    "bounded_range_zcdp",
    "gdp_delta",
    "gdp_deltas",
    "gdp_epsilon",
    "gdp_epsilons",
    "gdp_from_epsilon",
    "geometric_zcdp",
    "pure_delta",
    "pure_epsilon",
    "pure_gdp",
    "pure_renyi",
    "pure_zcdp",
    "renyi_delta",
    "renyi_epsilon",
    "renyi_from_epsilon",
    "zcdp_delta",
    "zcdp_deltas",
    "zcdp_epsilon",
    "zcdp_epsilon_classic",
    "zcdp_epsilons",
    "zcdp_from_epsilon",
    "zcdp_from_epsilon_classic",
]

_ARRAYS = ("gdp_deltas", "gdp_epsilons", "zcdp_deltas", "zcdp_epsilons")


def __getattr__(name: str) -> Any:
    """Import the functions for arrays the first time one is used: scipy is slow to load, and books need none of it."""
    if name not in _ARRAYS:
        raise AttributeError(f"module 'farthing.privacy.convert' has no attribute {name!r}")
    return getattr(import_module("farthing.privacy.convert.arrays"), name)
