"""What must hold for the same bits, whatever they are: order, symmetry, independence of how a draw is asked for."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.noise import rounded_exponential, rounded_gaussian, rounded_gumbel, two_sided_geometric
from farthing.noise.bits import seeded

SIGMAS = st.floats(1e-6, 1e12)
OFFSETS = st.floats(-1, 1)
SEEDS = st.integers(0, 1 << 32)
quickly = settings(max_examples=60, deadline=None)


class Mirror:
    """The bits of another source with every sign turned: the same U on the other side."""

    def __init__(self, bits, block):
        self.bits, self.block = bits, block

    def words(self, count, /):
        block, self.block = self.block, 0
        words = self.bits.words(count)
        return ~words if block else words


@quickly
@given(sigma=SIGMAS, offsets=st.tuples(OFFSETS, OFFSETS), seed=SEEDS)
def test_a_larger_offset_never_gives_a_smaller_result(sigma, offsets, seed):
    """The result is monotone in the offset for the same bits, and moves by no more than the offset does, rounded."""
    for draw in (rounded_gaussian, rounded_exponential, rounded_gumbel):
        low, high = (draw(sigma, offset=offset, size=50, bits=seeded(seed)) for offset in sorted(offsets))

        assert (low <= high).all()
        assert (high - low <= 1 + np.ceil(max(offsets) - min(offsets))).all()


@quickly
@given(sigma=SIGMAS, offset=OFFSETS, seed=SEEDS)
def test_the_gaussian_is_symmetric(sigma, offset, seed):
    """Turning offset and sign bits turns the result."""
    result = rounded_gaussian(sigma, offset=offset, size=50, bits=seeded(seed))
    mirrored = rounded_gaussian(sigma, offset=-offset, size=50, bits=Mirror(seeded(seed), 1))

    assert (result == -mirrored).all()


@quickly
@given(rate=st.floats(1e-12, 100), seed=SEEDS)
def test_the_geometric_is_symmetric(rate, seed):
    """Turning the sign bits turns the result."""
    result = two_sided_geometric(rate, size=50, bits=seeded(seed))

    assert (result == -two_sided_geometric(rate, size=50, bits=Mirror(seeded(seed), 1))).all()


@quickly
@given(scales=st.tuples(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9)), seed=SEEDS)
def test_more_noise_lies_further_out(scales, seed):
    """For the same bits a larger scale never moves a result toward zero."""
    small, large = sorted(scales)
    for draw in (rounded_gaussian, rounded_exponential, rounded_gumbel):
        inner, outer = (draw(scale, size=50, bits=seeded(seed)) for scale in (small, large))
        assert (np.abs(inner) <= np.abs(outer)).all()
    steep, flat = (two_sided_geometric(1 / scale, size=50, bits=seeded(seed)) for scale in (small, large))

    assert (np.abs(steep) <= np.abs(flat)).all()


@quickly
@given(sigma=st.floats(0.1, 1e5), offset=OFFSETS, seed=SEEDS)
def test_scalars_and_arrays_ask_for_the_same_draw(sigma, offset, seed):
    """One sigma for all, or the same sigma for each: the same bits give the same results."""
    one = rounded_gaussian(sigma, offset=offset, size=40, bits=seeded(seed))
    each = rounded_gaussian(np.full(40, sigma), offset=np.full(40, offset), bits=seeded(seed))

    assert (one == each).all()
