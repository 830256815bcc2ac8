"""What holds for every relative-noise mechanism, whatever its parameters."""

import numpy as np
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from farthing.mechanisms import Asinh, LinearLog, Log, PlainGaussian, Power
from farthing.noise.bits import seeded

sigmas = st.floats(2.0**-10, 4.0)
places = st.floats(2.0**-10, 2.0**20)
sensitivities = st.integers(1, 1000)
sizes = st.integers(0, 2**45)
mechanisms = st.one_of(
    st.builds(PlainGaussian, sigmas, sensitivities),
    st.builds(Log, sigmas, places, sensitivities),
    st.builds(LinearLog, sigmas, places, sensitivities),
    st.builds(Asinh, sigmas, places, sensitivities),
    st.builds(Power, st.integers(2, 8).map(lambda n: 1 / n), sigmas, places, sensitivities),
)


@given(mechanisms, st.lists(sizes, min_size=2, max_size=20))
def test_larger_groups_never_pay_more(mechanism, some):
    """The policy never grows with the size, in rho and in mu, but for the last float digit."""
    at = np.sort(np.array(some))
    assert (np.diff(mechanism.policy(at)) <= 1e-12 * mechanism.policy(at)[:-1]).all()
    assert (mechanism.policy(at) <= mechanism.policy.worst().rho * (1 + 1e-12)).all()


@given(mechanisms, sizes, st.integers(1, 50))
def test_the_policy_of_a_group_is_the_distance_of_the_transform(mechanism, size, members):
    """No neighbour, up or down, within `members` members is further than promised."""
    by = members * mechanism.sensitivity
    promised = float(mechanism.policy.for_group(members).mu(size))
    with ctx.workprec(300):
        here = mechanism.transform_ball(arb(size))
        for other in (max(size - by, 0), size + by, max(size - mechanism.sensitivity, 0), size + 1):
            moved = abs(mechanism.transform_ball(arb(other)) - here) / arb(mechanism.sigma)
            assert moved <= promised


@given(mechanisms, st.lists(sizes, max_size=10), st.integers(0, 2**32))
def test_a_release_is_its_indices(mechanism, counts, seed):
    """Nothing but the grid index of each group enters its value; the same bits give the same release."""
    steps = mechanism.indices(counts, seeded(seed))
    again = mechanism.value(np.ldexp(steps.astype(float), mechanism.grid_log2))
    assert again.tobytes() == mechanism.release(counts, seeded(seed)).tobytes()
    assert len(counts) == len(steps)
