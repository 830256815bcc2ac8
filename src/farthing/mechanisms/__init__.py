"""Randomised algorithms as values, each with its price. Only mechanisms draw noise."""

from farthing.mechanisms.gaussian import GaussianRefinement, Measured
from farthing.mechanisms.geometric import GeometricRelease

__all__ = ["GaussianRefinement", "GeometricRelease", "Measured"]
