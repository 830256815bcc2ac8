"""Attacks on anything that answers questions about people, and verdicts on what it promises.

A target answers how many of some people have a secret. An attack asks it, guesses the secrets, and says whether so many
right guesses are possible under the target's claim. Docs: docs/reference/attacks.md.

>>> from farthing import attacks
>>> people = attacks.secrets(100, seed=1)
>>> attacks.linear(attacks.targets.Rounded(people.bits, 5)).verdict
'broken'
"""

from farthing.attacks import tables, targets
from farthing.attacks.averaging import averaged_accuracy, averaging, refinement_gain
from farthing.attacks.coins import Coins
from farthing.attacks.differencing import before_after, differencing, pair_accuracy
from farthing.attacks.drawing import secrets
from farthing.attacks.exhaustive import consistent, exhaustive
from farthing.attacks.linear import expected_accuracy, linear, solve
from farthing.attacks.membership import found_p_value, membership, tracing_power
from farthing.attacks.noise_exploitation import noise_exploitation
from farthing.attacks.picture import accuracy_chart
from farthing.attacks.published import cohen_nissim, dick_joseph_schutzman
from farthing.attacks.replay import replay
from farthing.attacks.result import AttackResult, Guesses, exact_interval, judged
from farthing.attacks.running import ATTACKS, EXIT_CODES, USUAL, Effort, Report, run
from farthing.attacks.single import precision, single_target
from farthing.attacks.target import UNSTATED, Asked, Claim, People, Question, Refused, Target
from farthing.attacks.values import Hidden
from farthing.attacks.verdict import CONFIDENCE, epsilon_lower, innocent, needed, p_value

__all__ = [
    "ATTACKS",
    "CONFIDENCE",
    "EXIT_CODES",
    "UNSTATED",
    "USUAL",
    "Asked",
    "AttackResult",
    "Claim",
    "Coins",
    "Effort",
    "Guesses",
    "Hidden",
    "People",
    "Question",
    "Refused",
    "Report",
    "Target",
    "accuracy_chart",
    "averaged_accuracy",
    "averaging",
    "before_after",
    "cohen_nissim",
    "consistent",
    "dick_joseph_schutzman",
    "differencing",
    "epsilon_lower",
    "exact_interval",
    "exhaustive",
    "expected_accuracy",
    "found_p_value",
    "innocent",
    "judged",
    "linear",
    "membership",
    "needed",
    "noise_exploitation",
    "p_value",
    "pair_accuracy",
    "precision",
    "refinement_gain",
    "replay",
    "run",
    "secrets",
    "single_target",
    "solve",
    "tables",
    "targets",
    "tracing_power",
]


def __dir__() -> list[str]:
    return sorted(__all__)
