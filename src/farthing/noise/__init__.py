"""Exact noise on the integer grid, from secret bits. Only mechanisms draw it."""

from farthing.noise.gaussian import rounded_gaussian
from farthing.noise.laplace import rounded_exponential, rounded_gumbel, two_sided_geometric

__all__ = ["rounded_exponential", "rounded_gaussian", "rounded_gumbel", "two_sided_geometric"]
