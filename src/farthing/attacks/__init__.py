"""Attacks on anything that answers questions about people, and verdicts on what it promises.

A target answers how many of some people have a secret. An attack asks it, guesses the secrets, and says whether so many
right guesses are possible under the target's claim. Docs: docs/reference/attacks.md.

>>> from farthing import attacks
>>> people = attacks.secrets(100, seed=1)
>>> attacks.linear(attacks.targets.Rounded(people.bits, 5)).verdict
'broken'
"""

from farthing.attacks import targets
from farthing.attacks.averaging import averaged_accuracy, averaging, refinement_gain
from farthing.attacks.coins import Coins
from farthing.attacks.differencing import before_after, differencing, pair_accuracy
from farthing.attacks.drawing import secrets
from farthing.attacks.exhaustive import consistent, exhaustive
from farthing.attacks.linear import expected_accuracy, linear, solve
from farthing.attacks.picture import accuracy_chart
from farthing.attacks.result import AttackResult, Guesses, exact_interval, judged
from farthing.attacks.single import precision, single_target
from farthing.attacks.target import UNSTATED, Asked, Claim, People, Question, Refused, Target
from farthing.attacks.verdict import CONFIDENCE, epsilon_lower, innocent, needed, p_value

__all__ = [
    "CONFIDENCE",
    "UNSTATED",
    "Asked",
    "AttackResult",
    "Claim",
    "Coins",
    "Guesses",
    "People",
    "Question",
    "Refused",
    "Target",
    "accuracy_chart",
    "averaged_accuracy",
    "averaging",
    "before_after",
    "consistent",
    "differencing",
    "epsilon_lower",
    "exact_interval",
    "exhaustive",
    "expected_accuracy",
    "innocent",
    "judged",
    "linear",
    "needed",
    "p_value",
    "pair_accuracy",
    "precision",
    "refinement_gain",
    "secrets",
    "single_target",
    "solve",
    "targets",
]
