"""The audit of the whole: every mechanism through a session, beside a planted bug that the same test sees."""

import pytest

from farthing import audit
from farthing.audit import itself
from farthing.audit.battery import lanes

LANES = lanes()
GATE = (
    "count, Gaussian noise",
    "sum, geometric noise",
    "mean",
    "count, a chain of four looks",
    "parts of a partition",
    "two questions, their difference",
)
BY_NAME = {lane.name: lane for lane in LANES}


@pytest.mark.statistical
@pytest.mark.parametrize("lane", GATE)
def test_lanes_hold_and_see_their_bugs(lane):
    """A few of the lanes: the mechanism keeps its promise and its planted bug is seen."""
    seen = itself.judged(BY_NAME[lane], 12_000, 1 - 1e-10)

    assert not seen.broken
    assert seen.caught


@pytest.mark.statistical
def test_keys_of_lone_units():
    """Keys found privately keep their delta; half of it would be refuted."""
    seen = itself.lone_keys(20_000, 1 - 1e-10)

    assert not seen.broken
    assert seen.caught


def test_every_kind_of_question_has_a_lane():
    """Counts in every currency, sums, means, quantiles, relative noise, refinement, bounds, parts, choices."""
    names = " ".join(lane.name for lane in LANES)

    assert len(LANES) == len({lane.name for lane in LANES})
    for kind in (
        "zCDP",
        "geometric",
        "mean",
        "variance",
        "quantile",
        "asinh",
        "two-stage",
        "refined",
        "parts",
        "top-k",
    ):
        assert kind in names


@pytest.mark.slow
@pytest.mark.statistical
def test_the_quick_audit_holds():
    """The page of the command: everything holds, every planted bug is seen, in about a minute."""
    told = []
    page = audit.self_audit(seed=3, progress=lambda *step: told.append(step))

    assert "holds" == page.verdict, str(page)
    assert told[-1][1] == told[-1][2]
