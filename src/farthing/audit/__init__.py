"""Lower bounds on the loss of anything, from samples and oracles; and the audit of farthing itself.

>>> import numpy as np
>>> from farthing import audit
>>> coins = np.tile([0, 1, 1, 1], 1000)  # a bit, told truly three times in four: epsilon is log(3)
>>> bool(0.8 < audit.two_samples(1 - coins, coins).epsilon_lower < np.log(3))
True
"""

from farthing.audit.battery import Lane, lanes
from farthing.audit.bookkeeping import books
from farthing.audit.bounding import bounded
from farthing.audit.bounds import LowerBound, renyi_lower, two_samples
from farthing.audit.charging import accounts
from farthing.audit.clock import Timing, timing
from farthing.audit.corpus import CORPUS, Case, check_corpus, odd_values
from farthing.audit.findings import Finding
from farthing.audit.fuzzing import fuzz
from farthing.audit.guessing import one_run
from farthing.audit.itself import self_audit
from farthing.audit.looks import Looks
from farthing.audit.noises import fork_safe, on_grid, uncorrelated, unseeded
from farthing.audit.oracles import NOISY, Question, all_neighbours, floor_of, neighbours, price_floor
from farthing.audit.outcomes import Outcome
from farthing.audit.rates import Rates
from farthing.audit.report import Check, Report, Row
from farthing.audit.ruins import failing
from farthing.audit.tables import Town, town
from farthing.audit.trials import Transcript, side_by_side

__all__ = [
    "CORPUS",
    "NOISY",
    "Case",
    "Check",
    "Finding",
    "Lane",
    "Looks",
    "LowerBound",
    "Outcome",
    "Question",
    "Rates",
    "Report",
    "Row",
    "Timing",
    "Town",
    "Transcript",
    "accounts",
    "all_neighbours",
    "books",
    "bounded",
    "check_corpus",
    "failing",
    "floor_of",
    "fork_safe",
    "fuzz",
    "lanes",
    "neighbours",
    "odd_values",
    "on_grid",
    "one_run",
    "price_floor",
    "renyi_lower",
    "self_audit",
    "side_by_side",
    "timing",
    "town",
    "two_samples",
    "uncorrelated",
    "unseeded",
]


def __dir__() -> list[str]:
    return sorted(__all__)
