"""Lower limits: the least error at a loss, and the least loss at an error, of any unbiased mechanism.

`group_lower_bound` for one group, `for_query` for a released answer, `unbiased_error` for a workload, `MeanPoint` for
the mean of points in an ellipsoid; `gamma_f` and `gamma_2` are the norms behind the last two. Of any mechanism, biased
or not: `sizes_limit` and `answers_limit` in the mean over truths, `quantile_limit` and `search_limit` for a rank
target, `ranking_limit` for the order of the largest, `unknown_lead_limit` for two groups in order whose lead nobody
knows. Proofs and words: docs/proofs/limits.unbiased.md, docs/proofs/limits.any_rule.md,
docs/proofs/limits.quantiles.md, docs/proofs/limits.ranking.md, docs/explanation/what-nobody-can-do.md.

>>> f"{group_lower_bound([100], relative=0.1)[0]:.5f}"
'0.00498'
"""

from farthing.limits.any_rule import SizesLimit, answers_limit, sizes_limit
from farthing.limits.closed import Norms, identity_and_total, marginals, prefix_sums
from farthing.limits.divergence import chi_square
from farthing.limits.ellipsoid import MeanPoint, ShapedNoise
from farthing.limits.factorization import Bracket, bracket_2, bracket_f, estimated_seconds, gamma_2, gamma_f
from farthing.limits.groups import group_lower_bound
from farthing.limits.quantiles import QuantileLimit, SearchLimit, quantile_limit, search_limit
from farthing.limits.query import Limit, for_query
from farthing.limits.ranking import RankingLimit, ranking_limit
from farthing.limits.ranking_sizes import unknown_lead_limit
from farthing.limits.tables import marginals_error
from farthing.limits.unbiased import UnbiasedError, differences, unbiased_error

__all__ = [
    "Bracket",
    "Limit",
    "MeanPoint",
    "Norms",
    "QuantileLimit",
    "RankingLimit",
    "SearchLimit",
    "ShapedNoise",
    "SizesLimit",
    "UnbiasedError",
    "answers_limit",
    "bracket_2",
    "bracket_f",
    "chi_square",
    "differences",
    "estimated_seconds",
    "for_query",
    "gamma_2",
    "gamma_f",
    "group_lower_bound",
    "identity_and_total",
    "marginals",
    "marginals_error",
    "prefix_sums",
    "quantile_limit",
    "ranking_limit",
    "search_limit",
    "sizes_limit",
    "unbiased_error",
    "unknown_lead_limit",
]
