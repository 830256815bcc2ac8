"""How many runs count, and which result is best, have the law that is priced."""

import numpy as np
import pytest
from levels import dkw_band

from farthing.mechanisms import BestOfMany
from farthing.mechanisms.best_of_many import LAWS, _factors
from farthing.noise.bits import seeded

pytestmark = pytest.mark.thorough
COUNT = 4000


def chances(many):
    """Return the chances that 1 ... runs runs count."""
    weights = np.cumprod([1.0, *(float(each) for each in _factors(many.runs, many.shape, many._fading))])
    return weights / weights.sum()


def gap(seen, law):
    """Return how far the shares of what was seen are from a law, at worst, in sums."""
    shares = np.bincount(seen, minlength=len(law)) / len(seen)
    return np.abs(np.cumsum(shares) - np.cumsum(law)).max()


@pytest.mark.statistical
@pytest.mark.parametrize("law", ["logarithmic", "steep", "uniform"])
def test_the_number_that_count_fits(law):
    """It fits its own law and no other, and so does the best of uniform scores; that of all runs does not."""
    many, bits, rng = BestOfMany(12, law), seeded(77), np.random.default_rng(1)
    seen = np.array([many._drawn(bits) for _ in range(COUNT)])
    best = np.array([many.choose(lambda: (rng.integers(4), None), bits=bits).score for _ in range(COUNT)], int)

    def of_best(law_of_count):
        return np.diff(np.polynomial.polynomial.polyval(np.arange(5) / 4, np.append(0.0, law_of_count)))

    others = [np.append(0, chances(BestOfMany(12, other))) for other in LAWS if other != law]
    assert gap(seen, np.append(0, chances(many))) < dkw_band(COUNT)
    assert min(gap(seen, other) for other in others) > dkw_band(COUNT)
    assert gap(best, of_best(chances(many))) < dkw_band(COUNT)
    assert gap(best, of_best(np.eye(12)[-1])) > dkw_band(COUNT)
