"""Sharing one loss among counts: never more than it, the worst error as small as can be, no count left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.accuracy.shared_loss import EXPLORED, SharedLoss
from farthing.accuracy.stop_rule import two_sided

PER_GRAIN = 2.0**-56


def batch(question, max_groups, mu, *, relative=0.05, absolute=20.0):
    """Return counts of several questions that share a loss."""
    count = len(question)
    return SharedLoss(
        question=np.array(question),
        max_groups=max_groups,
        per_grain=np.full(count, PER_GRAIN),
        relative=np.full(count, relative),
        absolute=np.full(count, absolute),
        critical=np.full(count, two_sided(0.05)),
        limit=int(mu**2 * 2**56),
    )


def run(made, sizes, seed=3):
    """Spend the loss on counts of these sizes, with repeatable noise."""
    rng = np.random.default_rng(seed)
    return made.run(lambda cells, grains: sizes[cells] + rng.normal(size=len(cells)) / np.sqrt(grains * PER_GRAIN))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 5)), min_size=1, max_size=5),
    st.floats(1e-4, 3),
    st.integers(0, 10**6),
)
def test_it_never_costs_more_than_the_limit(shape, mu, seed):
    """Whatever the questions, their bounds and the loss."""
    question = np.repeat(np.arange(len(shape)), [groups for groups, _ in shape])
    made = batch(question, tuple(most for _, most in shape), mu)
    sizes = np.random.default_rng(seed).uniform(0, 1e5, len(question))
    _, grains, spent = run(made, sizes, seed)

    assert made.cost(spent) <= made.limit
    assert (spent > grains).all()
    assert (grains > 0).all()


def test_the_worst_error_is_smaller_than_with_even_shares():
    """Counts of very different sizes: the worst is nearer its target than if all had the same noise."""
    sizes = np.maximum(1e5 * np.arange(1, 41) ** -1.2, 1)
    made = batch(range(40), (1,) * 40, 0.25, relative=0.01, absolute=5.0)
    worst = [made.off(*run(made, sizes, seed)[:2]).max() for seed in range(20)]
    even = made.off(sizes, np.full(40, made.limit // 40)).max()

    assert np.mean(worst) < 0.75 * even  # 0.69 in the mean of 20


def test_nobody_gets_less_than_a_quarter_of_an_even_share():
    """What was seen may be wrong: where not all can be met, a count that seems huge is measured too."""
    made = batch(range(50), (1,) * 50, 0.05)
    spent = np.full(50, made.first)
    seen = np.where(np.arange(50) == 7, 1e9, 0.0)
    grains = made.shared(seen, spent)
    even = (made.limit - made.cost(spent)) / 50

    assert (np.delete(grains, 7) >= even / 2).all()
    assert even / 4 * (1 + 1e-9) >= grains[7] >= even / 4
    assert 0.999 * made.limit < made.cost(grains) + made.cost(spent) <= made.limit


def test_where_a_unit_is_in_one_group_the_others_follow():
    """With one group a unit the most expensive count pays for all of its question."""
    made = batch([0] * 6 + [1] * 2, (1, 2), 0.2)
    sizes = np.array([10, 100, 1e3, 1e4, 1e5, 1e6, 50.0, 5e5])
    _, grains, _ = run(made, sizes)

    assert 1 == len(set(grains[:6].tolist()))
    assert grains[6] > grains[7]


def test_a_loss_that_is_enough_is_not_used_up():
    """All counts are met, at about the price of their targets, looking around included."""
    sizes = np.array([400.0, 4e3, 4e4])
    made = batch(range(3), (1,) * 3, 2.0, relative=0.05, absolute=20.0)
    values, grains, spent = run(made, sizes)
    least = (two_sided(0.05) / np.maximum(0.05 * sizes, 20)) ** 2 / PER_GRAIN

    assert (made.off(values, grains) <= 1.1).all()
    assert made.cost(spent) < 2 * least.sum()
    assert made.cost(spent) < made.limit * EXPLORED


def test_planted_without_a_limit_it_overspends(monkeypatch):
    """If the look around is forgotten in the sum, the limit is passed: the test above would see it."""
    made = batch(range(40), (1,) * 40, 0.1)
    monkeypatch.setattr(SharedLoss, "cost", _forgetful(SharedLoss.cost, made))
    sizes = np.full(40, 300.0)
    _, _, spent = run(made, sizes)

    assert sum(spent.tolist()) > made.limit


def _forgetful(real, whole):
    """Return a sum that is empty for what looking around cost."""

    def cost(self, grains):
        """Return the real sum, but nothing for small ones."""
        found = real(self, grains)
        return 0 if found < whole.limit * EXPLORED * 1.01 and self.limit == whole.limit else found

    return cost


def test_one_question_alone():
    """The counts of one question, taken out of the others."""
    made = batch([0, 0, 1, 1, 1], (1, 3), 0.1)
    part = made.of(slice(2, 5))

    assert ((3,), 6) == (part.max_groups, part.cost(np.array([1, 2, 3])))
    assert 5 + 6 == made.cost(np.array([5, 4, 1, 2, 3]))
    with np.errstate(all="raise"):
        assert np.inf == made.half_widths(np.zeros(5, np.int64))[0]


@pytest.mark.parametrize("mu", [1e-12, 1e-9])
def test_a_loss_too_small_for_a_look(mu):
    """There is no first look at less than a grain each."""
    assert 0 == batch(range(40), (1,) * 40, mu).first
