"""How far from the least: what was paid for an answer, beside what any unbiased mechanism would have had to pay.

From released numbers alone. A refined value is the precision-weighted mean of its measurements, of variance one over
its information; when to stop was decided from it, which leaves a bias that the limit does not know of
(docs/explanation/what-nobody-can-do.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from farthing.errors import UnsupportedQuery
from farthing.mechanisms.gaussian import Measured, worst_cost
from farthing.mechanisms.laplace import rates_of
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.privacy.policy import LARGEST_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.limits import Limit
    from farthing.planning.gaussian_count import GaussianCountPricing
    from farthing.planning.laplace_count import LaplaceCountPricing
    from farthing.planning.relative_count import RelativeNoise
    from farthing.query import Query

    Floats = NDArray[np.float64]

_MOST_SIZES = 4096


def of_measured(query: Query, pricing: GaussianCountPricing, measured: Measured) -> Limit:
    """Return the limit of a refined count or sum: over all asks that paid for it.

    Groups that were given up count as paid for, and not as answers.
    """
    from farthing.limits import for_query

    step, information = query.measures[0].step, measured.information
    done = _done(query, pricing, measured)
    return for_query(
        pricing.coin.loss(worst_cost(information, query.max_groups)),
        sds=1 / np.sqrt(information[done] * pricing.coin.per_grain),
        sensitivity=query.sensitivity * step,
        max_groups=query.max_groups,
        signed=_signed(query),
    )


def of_chain(query: Query, pricing: LaplaceCountPricing, shown: Measured) -> Limit:
    """Return the limit of a count or sum under a pure budget: over all asks that paid for it, by the last looks."""
    from farthing.limits import for_query

    grid, done = pricing.grid, _done(query, pricing, shown)
    q = np.exp(-rates_of(shown.information[done], grid.sensitivity))
    return for_query(
        Pure.of_farthings(worst_cost(shown.information, query.max_groups)),
        sds=np.sqrt(2 * q) / (1 - q) * grid.step,
        sensitivity=grid.sensitivity * grid.step,
        max_groups=query.max_groups,
        signed=_signed(query),
    )


def _done(query: Query, pricing: GaussianCountPricing | LaplaceCountPricing, measured: Measured) -> NDArray[np.bool_]:
    """Return which groups were not given up; refuse where none is left."""
    done = pricing.schedule.stopped(measured.information, measured.values)
    if not done.any():
        refuse(query, "every group was given up, or stopped at the cap", "ask for a larger absolute error")
    return done


def of_relative(noise: RelativeNoise, values: Floats, currency: type[Gdp | Zcdp]) -> Limit:
    """Return the limit of a release with relative noise: its deviations at the released sizes, and its worst price.

    The smallest groups are the most accurate, and those that the limit rests on.
    """
    from farthing.limits import for_query

    sizes = np.sort(np.clip(values, 0.0, LARGEST_SIZE))[:_MOST_SIZES]
    return for_query(
        noise.worst(currency),
        sds=noise.mechanism.expected_error(sizes, "rmse"),
        sensitivity=noise.sensitivity,
        max_groups=noise.max_groups,
    )


def refuse(query: Query, what: str = "", advice: str = "") -> NoReturn:
    """Refuse to compare an answer for which no limit is known."""
    asked = ", ".join(str(output.aggregate) for output in query.outputs)
    raise UnsupportedQuery(
        what or "no least loss is known for this answer",
        construct="optimality",
        rule="counts and sums, one in a question, measured for it; not means, variances, quantiles or several at once",
        got=asked,
        next_step=advice or "ask for the count and the sum by themselves; farthing.limits has limits for workloads",
    )


def _signed(query: Query) -> bool:
    """Tell whether one unit can move a group as far down as up."""
    low, high = (getattr(query.aggregate, name, 0.0) for name in ("lower", "upper"))
    return bool(low < 0 and abs(low + high) <= 0)
