"""Prices before anything is spent."""

from farthing.planning.frame import Frame
from farthing.planning.plan import Plan, Pricing

__all__ = ["Frame", "Plan", "Pricing"]
