"""Randomised algorithms as values, each with its price. Only mechanisms draw noise."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from farthing.mechanisms.gaussian import GaussianMeasurements, Measured
from farthing.mechanisms.geometric import GeometricRelease

if TYPE_CHECKING:
    from farthing.mechanisms.best_of_many import Best, BestOfMany
    from farthing.mechanisms.brownian import BrownianMechanism
    from farthing.mechanisms.doubling import Doubling
    from farthing.mechanisms.exponential import Exponential
    from farthing.mechanisms.joint_top_k import JointTopK
    from farthing.mechanisms.laplace import LaplaceChain, Shown
    from farthing.mechanisms.learner import DecisionStumps, FiniteClass, FiniteClassLearner, Points, Thresholds
    from farthing.mechanisms.margin import LargeMargin
    from farthing.mechanisms.noisy_max import NoisyMax, PermuteAndFlip
    from farthing.mechanisms.reduced_threshold import ReducedAboveThreshold
    from farthing.mechanisms.refined_max import RefinedMax
    from farthing.mechanisms.refinement import GaussianRefinement, LaplaceRefinement
    from farthing.mechanisms.relative import Asinh, LinearLog, Log, PlainGaussian, Power
    from farthing.mechanisms.select import choose_mechanism, for_joint_regret, for_regret
    from farthing.mechanisms.stable_learner import GlobalStability
    from farthing.mechanisms.stopping import Look, PrivateTest, Stopped
    from farthing.mechanisms.threshold import AboveThreshold, Passed
    from farthing.mechanisms.top_k import TopK
    from farthing.mechanisms.two_stage import TwoStage
    from farthing.mechanisms.unknown_top_k import UnknownTopK

_HOMES = {
    "AboveThreshold": "threshold",
    "Asinh": "relative",
    "Best": "best_of_many",
    "BestOfMany": "best_of_many",
    "BrownianMechanism": "brownian",
    "DecisionStumps": "learner",
    "Doubling": "doubling",
    "Exponential": "exponential",
    "FiniteClass": "learner",
    "FiniteClassLearner": "learner",
    "GaussianRefinement": "refinement",
    "GlobalStability": "stable_learner",
    "JointTopK": "joint_top_k",
    "LaplaceChain": "laplace",
    "LaplaceRefinement": "refinement",
    "LargeMargin": "margin",
    "LinearLog": "relative",
    "Log": "relative",
    "Look": "stopping",
    "NoisyMax": "noisy_max",
    "Passed": "threshold",
    "PermuteAndFlip": "noisy_max",
    "PlainGaussian": "relative",
    "Points": "learner",
    "Power": "relative",
    "PrivateTest": "stopping",
    "ReducedAboveThreshold": "reduced_threshold",
    "RefinedMax": "refined_max",
    "Shown": "laplace",
    "Stopped": "stopping",
    "Thresholds": "learner",
    "TopK": "top_k",
    "TwoStage": "two_stage",
    "UnknownTopK": "unknown_top_k",
    "choose_mechanism": "select",
    "for_joint_regret": "select",
    "for_regret": "select",
}

__all__ = [
    "AboveThreshold",
    "Asinh",
    "Best",
    "BestOfMany",
    "BrownianMechanism",
    "DecisionStumps",
    "Doubling",
    "Exponential",
    "FiniteClass",
    "FiniteClassLearner",
    "GaussianMeasurements",
    "GaussianRefinement",
    "GeometricRelease",
    "GlobalStability",
    "JointTopK",
    "LaplaceChain",
    "LaplaceRefinement",
    "LargeMargin",
    "LinearLog",
    "Log",
    "Look",
    "Measured",
    "NoisyMax",
    "Passed",
    "PermuteAndFlip",
    "PlainGaussian",
    "Points",
    "Power",
    "PrivateTest",
    "ReducedAboveThreshold",
    "RefinedMax",
    "Shown",
    "Stopped",
    "Thresholds",
    "TopK",
    "TwoStage",
    "UnknownTopK",
    "choose_mechanism",
    "for_joint_regret",
    "for_regret",
]


def __getattr__(name: str) -> Any:
    """Import a mechanism the first time it is used: a session that only counts needs few of them."""
    if name not in _HOMES:
        raise AttributeError(f"module 'farthing.mechanisms' has no attribute {name!r}")
    value = getattr(import_module(f"farthing.mechanisms.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
