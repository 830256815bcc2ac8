"""Intervals of counts that shared a loss, and of looks on the way: what they promise, and what they do not."""

import numpy as np
import pytest
from levels import ALPHA
from scipy.stats import binom

import farthing
from farthing.accuracy.shared_loss import SharedLoss
from farthing.accuracy.stop_rule import two_sided

PER_GRAIN = 2.0**-56
BETA = 0.05


def shared(sizes, mu, runs, seed=11):
    """Share a loss among counts, again and again; give values, half-widths, grains and all grains spent."""
    count = len(sizes)
    batch = SharedLoss(
        question=np.zeros(count, np.int64),
        max_groups=(count,),
        per_grain=np.full(count, PER_GRAIN),
        relative=np.full(count, 0.02),
        absolute=np.full(count, 10.0),
        critical=np.full(count, two_sided(BETA)),
        limit=int(mu**2 * 2**56),
    )
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        yield (
            batch,
            *batch.run(lambda cells, grains: sizes[cells] + rng.normal(size=len(cells)) / np.sqrt(grains * PER_GRAIN)),
        )


@pytest.mark.statistical
def test_counts_that_share_a_loss_are_covered():
    """The last measurement alone is told, and covers; told as sure as all that was spent on it, it does not."""
    sizes = 1e5 * np.arange(1, 2001) ** -0.8
    tried = missed = bold = 0
    for batch, values, grains, spent in shared(sizes, 3.0, 30):
        away = np.abs(values - sizes)
        tried += len(sizes)
        missed += int((away > batch.half_widths(grains)).sum())
        bold += int((away > batch.half_widths(spent)).sum())  # planted: the measurements before it counted in
        assert batch.cost(spent) <= batch.limit
    least, most = binom.ppf(ALPHA / 2, tried, BETA), binom.isf(ALPHA / 2, tried, BETA)

    assert least <= missed <= most
    assert bold > most


@pytest.mark.statistical
def test_a_look_on_the_way_is_no_promise():
    """The first look and the answer cover with the confidence; all looks at once do not, and nobody says so."""
    groups, size = 900, 1500
    table = {"g": np.repeat(np.arange(groups), size)}
    import pyarrow as pa

    session = farthing.Session(pa.table(table), budget=farthing.Budget(mu=1))
    answer = session.count(by="g", keys={"g": list(range(groups))}, relative=0.1, absolute=40)
    trace = answer.trace()
    missed = (trace.lower > size) | (trace.upper < size)
    most = binom.isf(ALPHA, groups, BETA)

    assert missed[trace.look == 1].sum() <= most
    assert missed[trace.final].sum() <= most
    ever = np.bincount(trace.group, missed, groups) > 0
    assert ever.sum() > missed[trace.final].sum()
    half = (trace.upper - trace.lower)[trace.look == 1] / 2
    first = np.abs(trace.value[trace.look == 1] - size)
    assert (first > half / 2).sum() > most  # planted: half as wide
