"""Agreement with OpenDP's samplers, which share no code with ours."""

import numpy as np
import pytest
from levels import ALPHA, dkw_band
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features

from farthing.noise import rounded_gaussian, two_sided_geometric
from farthing.noise.bits import seeded

pytestmark = pytest.mark.thorough

enable_features("contrib")
N = 150_000
INTEGERS = vector_domain(atom_domain(T="i64"))


def two_sample_gap(x, y):
    """Return the largest distance between two empirical CDFs."""
    at = np.union1d(x, y)
    sides = [np.searchsorted(np.sort(side), at, side="right") / len(side) for side in (x, y)]
    return np.abs(sides[0] - sides[1]).max()


@pytest.mark.statistical
def test_the_geometric_agrees_with_opendp():
    """OpenDP's integer Laplace and our two-sided geometric are one law; 10 % off the scale is caught."""
    theirs = np.array(make_laplace(INTEGERS, l1_distance(T="i64"), scale=10.0)([0] * N))
    ours = two_sided_geometric(0.1, size=N, bits=seeded(21))
    band = 2 * dkw_band(N, ALPHA / 2)

    assert two_sample_gap(ours, theirs) < band
    assert two_sample_gap(two_sided_geometric(0.08, size=N, bits=seeded(21)), theirs) > band


@pytest.mark.statistical
def test_the_gaussian_agrees_with_opendp_at_large_sigma():
    """OpenDP's is the discrete Gaussian, ours the rounded one: at sigma 1,000 they differ by less than 1e-6."""
    theirs = np.array(make_gaussian(INTEGERS, l2_distance(T="f64"), scale=1000.0)([0] * N))
    ours = rounded_gaussian(1000.0, size=N, bits=seeded(22))
    band = 2 * dkw_band(N, ALPHA / 2)

    assert two_sample_gap(ours, theirs) < band + 1e-6
    assert two_sample_gap(rounded_gaussian(1250.0, size=N, bits=seeded(22)), theirs) > band
