"""Tables chosen one after the other: what a row moves, what rounds cost, junction trees against whole histograms."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.mechanisms import adaptive_tables
from farthing.mechanisms.adaptive_tables import AdaptiveTables, MeasuredTable, MeasuredTables, candidates_of
from farthing.privacy.loss import Gdp, Pure
from farthing.session.answering.synthetic_record import from_bytes, rounds_to_bytes, to_bytes
from farthing.synthetic import cliques as cliques_module
from farthing.synthetic.cliques import CliqueFit, clique_model
from farthing.synthetic.junction import Junction, agreed, cells_of, cliques_of, fitted, ordered, spread, sums
from farthing.synthetic.rows import tallies

pytestmark = pytest.mark.thorough

RANDOM = np.random.default_rng(7)
SIZES = (3, 2, 4, 2)
TRIPLES = tuple(combinations(range(4), 3))
EVERY = tuple(range(4))
CHAIN = RANDOM.dirichlet(np.ones(48)).reshape(SIZES) * 9_000
TABLES = st.lists(st.sets(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=5)


def histogram(rows=20_000):
    """Return a histogram in which the second and third column follow the first, and the last two go together."""
    first = RANDOM.integers(0, 3, rows)
    third = (first + RANDOM.integers(0, 2, rows)) % 4
    places = np.stack([first, first > 0, third, (third + RANDOM.integers(0, 4, rows) // 3) % 2], 1)
    return tallies(places.astype(np.int64), SIZES, EVERY)


HISTOGRAM = histogram()


@pytest.fixture(autouse=True, scope="module")
def few_rows():
    """Draw fewer rows of each model than a release does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cliques_module, "DRAWN", 1 << 13)
        yield


def counts_of(whole, tables=TRIPLES):
    """Return the counts by each candidate."""
    return {one: sums(whole, EVERY, one) for one in candidates_of(tables)}


def exact(tables, whole=CHAIN):
    """Return what is measured of tables without noise, nothing merged."""
    ones = tuple(sums(whole, EVERY, (at,)) for at in EVERY)
    told = [MeasuredTable(one, sums(whole, EVERY, one), 1.0) for one in tables]
    alone = [MeasuredTable((at,), one, 1.0) for at, one in enumerate(ones)]
    return MeasuredTables(ones, tuple(np.arange(size) for size in SIZES), (*alone, *told))


@given(rows=st.lists(st.integers(0, 47), min_size=1, max_size=3), weight=st.sampled_from([1.0, 7.0, 1e-3]))
@settings(max_examples=25)
def test_a_unit_moves_scores_by_no_more_than_is_priced(rows, weight):
    """In whole numbers, whichever cells its rows are in; which candidates have a score does not change."""
    rule = AdaptiveTables(Gdp(1), TRIPLES, (weight, 1.0, 1.0, 1.0), reach=len(rows))
    more = HISTOGRAM.reshape(-1).copy()
    np.add.at(more, rows, 1)
    model = CliqueFit(exact([(0, 2)]))
    before, after = (
        rule.scores(tuple(counts_of(one).values()), model, 30.0, 1) for one in (HISTOGRAM, more.reshape(SIZES))
    )

    assert before.keys() == after.keys()
    assert max(abs(after[at] - before[at]) for at in before) <= rule.moves


@pytest.mark.parametrize("loss", [Gdp(2), Pure(1)])
@pytest.mark.parametrize("at", [1, 2])
def test_a_run_goes_on_where_it_stopped_for_what_was_left(loss, at):
    """After any round: what is stored is read again, what was measured stays, and the prices add up to the loss."""
    rule, prices, told = AdaptiveTables(loss, TRIPLES), [], []

    def begun(price, before):
        """Note a round, and stop at one of them."""
        told.append(before)
        if len(told) == at + 1:
            raise KeyboardInterrupt
        prices.append(price.amount)

    with pytest.raises(KeyboardInterrupt):
        rule.run(counts_of(HISTOGRAM), 4, CliqueFit, begun=begun)
    stopped = told[-1]
    stored = from_bytes(rounds_to_bytes(stopped), type(loss))
    assert sum(prices) + stored.left.amount == loss.amount
    assert all(map(np.array_equal, stored.found.kept, stopped.found.kept))

    found = rule.run(counts_of(HISTOGRAM), 4, CliqueFit, going=stored, begun=begun)
    assert sum(prices) == loss.amount
    assert len(found.chosen) > len(stopped.found.chosen)
    for one, other in zip(stopped.found.tables, found.tables, strict=False):
        assert (one.columns, one.variance) == (other.columns, other.variance)
        assert np.array_equal(one.counts, other.counts)


def test_a_sensitivity_without_the_weights_is_seen(monkeypatch):
    """Planted: a score that is weighted is priced as one that is not."""
    monkeypatch.setattr(AdaptiveTables, "moves", property(lambda self: self.reach))
    with pytest.raises(AssertionError):
        test_a_unit_moves_scores_by_no_more_than_is_priced.hypothesis.inner_test([0], 1.0)


def test_what_is_told_worst_is_measured_and_learned():
    """At a large loss every table of the data is near; columns that follow one another are chosen first."""
    found = AdaptiveTables(Gdp(4), TRIPLES).run(counts_of(HISTOGRAM), 4, CliqueFit)
    model = CliqueFit(found)

    assert {*found.chosen[0]} & {0, 1, 2}
    assert len(found.chosen) <= adaptive_tables.ROUNDS * 4
    for one in TRIPLES:
        assert abs(model.counts(one) - sums(HISTOGRAM, EVERY, one)).sum() < 0.02 * HISTOGRAM.sum()
    rows = clique_model(found).rows(10_000, 3)
    assert abs(tallies(rows, SIZES, (0, 1)) * 2 - sums(HISTOGRAM, EVERY, (0, 1))).sum() < 0.03 * HISTOGRAM.sum()


def test_noise_is_halved_where_a_table_taught_less_than_its_noise():
    """Where columns are independent nothing is learned, so later tables are measured at four times the price."""
    even = np.full(SIZES, 400)
    found = AdaptiveTables(Gdp(0.5), TRIPLES).run(counts_of(even), 4, CliqueFit)
    chosen = [one.variance for one in found.tables[4:]]

    assert len(chosen) < adaptive_tables.ROUNDS * 4
    assert min(chosen) < chosen[0] / 3
    assert sorted(chosen, reverse=True) == chosen


def test_candidates_that_are_too_large_for_the_model_are_left_out(monkeypatch):
    """At every moment the cliques have at most the share of their limit that is spent; columns always fit."""
    monkeypatch.setattr(adaptive_tables, "MOST_CELLS", 15)
    rule = AdaptiveTables(Gdp(6), TRIPLES)
    truth = tuple(counts_of(HISTOGRAM).values())
    first = rule.scores(truth, CliqueFit(exact([])), 1.0, 0)
    assert [rule.candidates[at] for at in first] == [(0,), (1,), (2,), (3,)]
    found = rule.run(counts_of(HISTOGRAM), 4, CliqueFit)

    assert cells_of(cliques_of([one.columns for one in found.tables], SIZES), SIZES) <= 15
    assert not {*TRIPLES} & {*found.chosen}
    assert any(len(one) == 2 for one in found.chosen)


def test_what_is_rare_is_merged_and_shared_out_again():
    """A value that noise hides is in no table by itself, and has rows by its noisy share."""
    whole = np.zeros((5, 2), np.int64)
    whole[0], whole[1], whole[2] = 4_000, 3_000, 2
    tables = {(0,): whole.sum(1), (1,): whole.sum(0), (0, 1): whole}
    found = AdaptiveTables(Gdp(0.5), ((0, 1),)).run(tables, 2, CliqueFit)

    assert found.sizes == (3, 2)
    assert clique_model(found).rows(50_000)[:, 0].max() >= 2
    assert AdaptiveTables(Pure(1), ((0,),)).run({(0,): np.array([5, 90])}, 1, CliqueFit).chosen == ((0,),)


@given(tables=TABLES)
@settings(max_examples=30)
def test_cliques_hold_all_tables_and_hang_together(tables):
    """Each table is in one; what a clique shares with all before it is within the one that it hangs on."""
    tables = [tuple(sorted(one)) for one in tables]
    cliques, above = ordered(cliques_of(tables, SIZES))

    assert all(any({*one} <= {*clique} for clique in cliques) for one in tables)
    assert {at for clique in cliques for at in clique} == {*EVERY}
    for at, clique in enumerate(cliques[1:], 1):
        before = {*clique} & {one for other in cliques[:at] for one in other}
        assert before == ({*clique} & {*cliques[above[at]]} if above[at] >= 0 else set())


@given(tables=TABLES, seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_a_junction_tree_is_fitted_as_the_whole_histogram_is(tables, seed):
    """Step for step: its cliques are the sums of a histogram that is scaled to the same tables in the same order."""
    rng = np.random.default_rng(seed)
    aims = {tuple(sorted(one)): None for one in tables}
    aims = {one: rng.dirichlet(np.ones(math.prod(SIZES[at] for at in one))) * 100 for one in aims}
    aims = {one: aim.reshape([SIZES[at] for at in one]) for one, aim in aims.items()}
    found, whole = Junction([*aims, *((at,) for at in EVERY)], SIZES, 100.0), np.full(SIZES, 100 / 48)
    for power in (1, 1, 0.5):
        for one, aim in aims.items():
            found.scale(one, aim, power)
            now = sums(whole, EVERY, one)
            whole *= spread((aim / now) ** power, one, EVERY)
            whole *= 100 / whole.sum()

    for clique, held in zip(found.cliques, found.settled(), strict=True):
        assert np.allclose(held, sums(whole, EVERY, clique))


def test_tables_that_agree_are_fitted_and_others_are_made_to_agree():
    """Sums of one histogram stay as they are; noisy ones agree after, and what is surer moves less."""
    tables = [(0, 1), (1, 2), (2, 3)]
    one = exact(tables)
    same = agreed(one.tables, SIZES)
    assert all(np.allclose(table, sums(CHAIN, EVERY, columns)) for columns, table in same.items())
    model = fitted(same, SIZES, 9_000.0, 4)
    held = dict(zip(model.cliques, model.settled(), strict=True))
    assert all(np.allclose(held[columns], sums(CHAIN, EVERY, columns)) for columns in tables)

    noisy = [
        MeasuredTable(table.columns, table.counts + RANDOM.normal(size=table.counts.shape) * sd, sd**2)
        for table, sd in zip(one.tables, (1, 1, 1, 1, 5, 50, 5), strict=True)
    ]
    found = agreed(noisy, SIZES)
    for first, second in combinations(found, 2):
        both = tuple(at for at in first if at in second)
        assert np.allclose(sums(found[first], first, both), sums(found[second], second, both))
    assert abs(found[1,] - noisy[1].counts).max() < abs(sums(noisy[5].counts, (1, 2), (1,)) - found[1,]).max()


def test_tables_that_contradict_each_other_leave_numbers():
    """Cells that one table has and another has not, again and again: no infinity, no NaN, the total stays."""
    one, other = np.zeros((3, 2)), np.zeros((2, 4))
    one[0, 0], other[1, 3] = 100.0, 100.0
    model = fitted({(0, 1): one, (1, 2): other, (0,): np.array([0.0, 0.0, 100.0])}, SIZES, 100.0, 30)

    for held in model.settled():
        assert np.isfinite(held).all()
        assert (held >= 0).all()


def test_the_books_keep_a_model_of_cliques():
    """What is read is what was written, and makes the same rows."""
    model = clique_model(exact([(0, 1, 2), (2, 3)]))
    again, apart = from_bytes(to_bytes(model, np.array([3.0])), Gdp)

    assert apart.tolist() == [3.0]
    assert again.rows(500, 1).tolist() == model.rows(500, 1).tolist()
