"""Targets: systems of other people behind one interface, toys to break, and farthing itself."""

from farthing.attacks.diffix import Diffix
from farthing.attacks.targets.adapters import Database, Endpoint, Function, SqlFunction
from farthing.attacks.targets.budgeted import Floats, Honest, LeakyLedger, OffByTwo
from farthing.attacks.targets.claimed import Claimed
from farthing.attacks.targets.forked import Forked
from farthing.attacks.targets.ours import FarthingSession, equal_share
from farthing.attacks.targets.plain import Adversarial, Exact, FreshGaussian, Rounded, Subsample, Suppressed, each

__all__ = [
    "Adversarial",
    "Claimed",
    "Database",
    "Diffix",
    "Endpoint",
    "Exact",
    "FarthingSession",
    "Floats",
    "Forked",
    "FreshGaussian",
    "Function",
    "Honest",
    "LeakyLedger",
    "OffByTwo",
    "Rounded",
    "SqlFunction",
    "Subsample",
    "Suppressed",
    "each",
    "equal_share",
]
