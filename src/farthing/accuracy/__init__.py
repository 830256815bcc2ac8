"""Accuracy targets, the calibrated rule that stops each group, and what to print: mathematics on numbers only."""

from farthing.accuracy.baselines import doubling_cost, oracle_cost
from farthing.accuracy.report import Report, reported
from farthing.accuracy.schedule import Rule, Schedule
from farthing.accuracy.stopping import critical_value
from farthing.accuracy.target import Target

__all__ = ["Report", "Rule", "Schedule", "Target", "critical_value", "doubling_cost", "oracle_cost", "reported"]
