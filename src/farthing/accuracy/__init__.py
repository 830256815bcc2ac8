"""Accuracy targets, the calibrated rule that stops each group, and what to print: mathematics on numbers only."""

from farthing.accuracy.baselines import doubling_cost, oracle_cost
from farthing.accuracy.report import IntervalReport, reported
from farthing.accuracy.schedule import Schedule, StopRule
from farthing.accuracy.stop_rule import critical_value
from farthing.accuracy.target import Target

__all__ = [
    "IntervalReport",
    "Schedule",
    "StopRule",
    "Target",
    "critical_value",
    "doubling_cost",
    "oracle_cost",
    "reported",
]
