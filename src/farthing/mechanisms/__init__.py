"""Randomised algorithms as values, each with its price. Only mechanisms draw noise."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from farthing.mechanisms.gaussian import GaussianRefinement, Measured
from farthing.mechanisms.geometric import GeometricRelease

if TYPE_CHECKING:
    from farthing.mechanisms.relative import Asinh, LinearLog, Log, PlainGaussian, Power
    from farthing.mechanisms.two_stage import TwoStage

_HOMES = {
    "Asinh": "relative",
    "LinearLog": "relative",
    "Log": "relative",
    "PlainGaussian": "relative",
    "Power": "relative",
    "TwoStage": "two_stage",
}

__all__ = [
    "Asinh",
    "GaussianRefinement",
    "GeometricRelease",
    "LinearLog",
    "Log",
    "Measured",
    "PlainGaussian",
    "Power",
    "TwoStage",
]


def __getattr__(name: str) -> Any:
    """Import a mechanism the first time it is used: a session that only counts needs few of them."""
    if name not in _HOMES:
        raise AttributeError(f"module 'farthing.mechanisms' has no attribute {name!r}")
    value = getattr(import_module(f"farthing.mechanisms.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
