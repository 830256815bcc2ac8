"""Mechanisms on a histogram: what a row moves, what parts cost, what is refused; and each bug planted."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InvalidOption, InvalidTarget, NoiseError
from farthing.mechanisms import (
    adaptive_tables,
    linear_queries,
    multiplicative_weights,
    online_weights,
    projection,
    small_database,
    spanning_tree,
)
from farthing.mechanisms.adaptive_tables import AdaptiveTables
from farthing.mechanisms.linear_queries import MatrixQueries, TableQueries, distances, steps_of, uniform
from farthing.mechanisms.multiplicative_weights import Mwem
from farthing.mechanisms.noisy_answers import chooser, noisy_answers, shared
from farthing.mechanisms.online_weights import OnlineRule, OnlineRun, learned
from farthing.mechanisms.projection import CellNoise, IndependentNoise, Projection, closest
from farthing.mechanisms.small_database import SmallDatabase, databases
from farthing.mechanisms.spanning_tree import SpanningTree, merged
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.sealed import sealed
from farthing.synthetic import cliques
from farthing.synthetic.cliques import CliqueFit

pytestmark = pytest.mark.thorough

LOSSES = (Gdp(0.5), Zcdp(0.1), Pure(1))
RANDOM = np.random.default_rng(5)
CELLS = 12
MATRIX = MatrixQueries(RANDOM.uniform(-1, 1, (7, CELLS)))
TABLES = TableQueries((3, 2, 2), ((0,), (0, 2), (1, 2)))
COUNTS = RANDOM.integers(0, 500, CELLS)


@pytest.mark.parametrize("queries", [MATRIX, TABLES], ids=["matrix", "tables"])
@given(rows=st.lists(st.integers(0, CELLS - 1), min_size=1, max_size=4))
@settings(max_examples=25)
def test_a_unit_moves_answers_and_distances_by_no_more_than_is_priced(queries, rows):
    """In whole steps, exactly, whichever cells its rows are in, beside whatever the model says."""
    more = COUNTS.copy()
    np.add.at(more, rows, 1)
    before, after = queries.exact(COUNTS), queries.exact(more)
    model = steps_of(queries.of(uniform(CELLS, 1234.5)), queries)
    moved = abs(distances(after, model, queries) - distances(before, model, queries))

    assert int(((after - before) ** 2).sum()) <= queries.squares() * len(rows) ** 2
    assert int(abs(after - before).sum()) <= queries.total() * len(rows)
    for group, by in zip(queries.groups, moved.tolist(), strict=True):
        assert int(((after - before)[group] ** 2).sum()) <= queries.squares(group) * len(rows) ** 2
        assert by <= queries.total(group) * len(rows)


def test_answers_are_those_of_the_weights():
    """Of a matrix to within its rounding, of tables exactly; `back` is the transpose of `of`, group by group too."""
    weights = RANDOM.uniform(0, 5, CELLS)
    whole = COUNTS.reshape(3, 2, 2)

    assert np.abs(MATRIX.exact(COUNTS) * MATRIX.step - MATRIX.weights @ COUNTS).max() < COUNTS.sum() * MATRIX.step
    parts = [whole.sum(axis=(1, 2)), whole.sum(axis=1).reshape(-1), whole.sum(axis=0).reshape(-1)]
    assert TABLES.exact(COUNTS).tolist() == np.concatenate(parts).tolist()
    for queries in (MATRIX, TABLES):
        values = RANDOM.normal(size=queries.groups[-1].stop)
        assert np.isclose(values @ queries.of(weights), queries.back(values) @ weights)
        for at, group in enumerate(queries.groups):
            assert np.allclose(queries.part(at, weights), queries.of(weights)[group])
            assert np.isclose(values[group] @ queries.part(at, weights), queries.back_part(at, values[group]) @ weights)


@pytest.mark.parametrize("bad", [[[float("nan")]], [[2.0]], [], [["a"]], [1.0], [[]]])
def test_what_is_not_a_query_is_refused(bad):
    """Numbers in [-1, 1], a row a query: neither NaN, nor texts, nor none."""
    with pytest.raises(InvalidOption, match="not queries"):
        MatrixQueries(bad)


def test_what_is_too_large_is_refused_with_what_would_do():
    """The size, the limit, and another mechanism."""
    with pytest.raises(InvalidOption, match=r"1,048,576.*2,097,152.*tree"):
        TableQueries((2,) * 21, ((0,),))
    with pytest.raises(InvalidOption, match=r"262,144.*mwem"):
        SmallDatabase(Pure(1), rows=12).run(COUNTS, MATRIX)
    assert databases(CELLS, 2) == 78


def parts_of(mechanism, monkeypatch, run):
    """Return what all draws of a run cost: losses of measurements, and of choices."""
    seen = []
    measure, choose = noisy_answers, chooser

    def measuring(truth, loss, **how):
        """Note a measurement; its sensitivity is that of what is measured."""
        seen.append(loss)
        return measure(truth, loss, **how)

    def choosing(loss):
        """Note every choice of a chooser."""
        made = choose(loss)

        class Noted:
            def choose(self, *what, **how):
                seen.append(made.price(type(loss)))
                return made.choose(*what, **how)

        return Noted()

    for module in (projection, multiplicative_weights, spanning_tree, adaptive_tables, small_database):
        if hasattr(module, "noisy_answers"):
            monkeypatch.setattr(module, "noisy_answers", measuring)
        if hasattr(module, "chooser"):
            monkeypatch.setattr(module, "chooser", choosing)
    run(mechanism)
    return sum((loss.amount for loss in seen), Fraction(0))


PAIRS = {
    (0,): np.array([50, 40, 9]),
    (1,): np.array([60, 39]),
    (2,): np.array([1, 98]),
    (0, 1): np.array([[50, 0], [10, 30], [0, 9]]),
    (0, 2): np.array([[1, 49], [0, 40], [0, 9]]),
    (1, 2): np.array([[1, 59], [0, 39]]),
}
RUNS = {
    "independent": (IndependentNoise, lambda it: it.run(COUNTS, MATRIX)),
    "cells": (CellNoise, lambda it: it.run(COUNTS, MATRIX)),
    "projection": (lambda loss: Projection(loss, rounds=5), lambda it: it.run(COUNTS, TABLES)),
    "mwem": (lambda loss: Mwem(loss, rounds=3), lambda it: it.run(COUNTS, TABLES)),
    "small database": (lambda loss: SmallDatabase(loss, rows=2), lambda it: it.run(COUNTS, MATRIX)),
    "tree": (SpanningTree, lambda it: it.run(PAIRS, 3)),
    "adaptive": (
        lambda loss: AdaptiveTables(loss, ((0, 1), (0, 2), (1, 2))), lambda it: it.run(PAIRS, 3, CliqueFit)
    ),
}  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES, ids=["gdp", "zcdp", "pure"])
@pytest.mark.parametrize("name", RUNS)
def test_all_that_is_drawn_costs_at_most_the_loss(name, loss, monkeypatch):
    """Measurements and choices together, and nearly all of it is used."""
    monkeypatch.setattr(cliques, "DRAWN", 1 << 12)
    make, run = RUNS[name]
    spent = parts_of(make(loss), monkeypatch, run)

    assert 0.999 * loss.amount <= spent <= loss.amount


@pytest.mark.parametrize(
    ("queries", "loss", "cells"),
    [
        (MATRIX, Gdp(0.5), False),
        (MatrixQueries(np.ones((1, CELLS))), Pure(1), False),
        (MatrixQueries(np.ones((40, CELLS))), Pure(1), True),
    ],
    ids=["not pure", "few queries", "many queries"],
)
def test_pure_noise_is_put_where_it_is_less(queries, loss, cells, monkeypatch):
    """Many queries under a pure budget are answered from noisy cells, at the price of what a unit moves in all."""
    asked, real = [], projection.noisy_answers
    monkeypatch.setattr(projection, "noisy_answers", lambda truth, *given, **how: asked.append((len(truth), how))
                        or real(truth, *given, **how))  # fmt: skip
    Projection(loss, reach=3, rounds=2).run(COUNTS, queries)

    size, how = asked[-1]
    assert size == (CELLS if cells else len(queries.groups))
    assert (how["squares"], how["total"]) == ((9, 3) if cells else (9 * queries.squares(), 3 * queries.total()))


@pytest.mark.parametrize("queries", [MATRIX, TABLES], ids=["matrix", "tables"])
def test_energy_is_what_noise_in_cells_does(queries):
    """It is the mean over queries of the squared weights, which the answers of single cells have."""
    rows = np.array([queries.of(cell) for cell in np.eye(CELLS)])
    assert queries.energy == pytest.approx(float((rows**2).sum() / rows.shape[1]))


def test_a_part_that_is_paid_twice_is_seen(monkeypatch):
    """Planted: parts that add up to more than the loss."""
    monkeypatch.setattr(spanning_tree, "SHARES", (Fraction(1, 2),) * 3)
    real = spanning_tree.shared
    monkeypatch.setattr(spanning_tree, "shared", lambda loss, *parts: tuple(
        type(loss).of_amount(loss.amount * part) for part in parts) if len(set(parts)) == 1 and len(parts) == 3
        and parts[0] == Fraction(1, 2) else real(loss, *parts))  # fmt: skip

    assert parts_of(SpanningTree(Gdp(1)), monkeypatch, lambda it: it.run(PAIRS, 3)) > 1


@pytest.mark.parametrize("loss", LOSSES, ids=["gdp", "zcdp", "pure"])
def test_shares_add_up_and_choices_cost_no_more_than_theirs(loss):
    """Exactly, in every currency."""
    parts = shared(loss, 1, Fraction(2, 3), 5)

    assert sum(part.amount for part in parts) == loss.amount
    assert 0.999 * parts[1].amount <= chooser(parts[1]).price(type(loss)).amount <= parts[1].amount


def test_projection_is_the_nearest_histogram():
    """Against a convex program's optimality condition: no cell gives a better direction."""
    queries = MatrixQueries(RANDOM.uniform(-1, 1, (40, CELLS)))
    measured = queries.of(COUNTS.astype(float)) + RANDOM.normal(0, 30, 40)
    found = closest(measured, queries, float(COUNTS.sum()), 2_000)
    slope = queries.back(queries.of(found) - measured)

    assert np.isclose(found.sum(), COUNTS.sum())
    assert found.min() >= 0
    assert float(found @ (slope - slope.min())) < 1e-3 * abs(slope).max() * COUNTS.sum()


def test_mwem_learns_what_it_measures_and_small_databases_are_the_closest():
    """At a large loss: the tables it measured, and the database whose answers are nearest."""
    found = Mwem(Gdp(6), rounds=12, passes=40).run(COUNTS * 100, TABLES)
    assert np.abs(TABLES.of(found.weights) - TABLES.exact(COUNTS * 100)).max() < 0.02 * COUNTS.sum() * 100

    counts = np.array([30_000, 0, 10_000, 0])
    best = SmallDatabase(Gdp(6), rows=4).run(counts, MatrixQueries(np.eye(4)))
    assert np.allclose(best.weights / best.total, counts / 40_000)


def test_the_theorems_of_the_largest_error_have_the_exponents_of_the_post():
    """SmallDB at its best size: -1/3 in the rows and the loss. Online: loss by rows by error squared stays as it is."""
    queries = MatrixQueries(RANDOM.choice([-1.0, 1.0], (2, 200_000)))
    sizes = np.unique(np.geomspace(1, 600, 60).astype(int)).tolist()

    def best(loss, rows):
        """Return the least bound over sizes of the database, in shares of the rows."""
        return min(SmallDatabase(Pure(loss), rows=size).error(queries, rows) for size in sizes) / rows

    for change in ((1, 10**5), (100, 10**3)):
        assert np.log(best(*change) / best(1, 10**3)) / np.log(100) == pytest.approx(-1 / 3, abs=0.05)

    def price(error, rows):
        """Return the mu of all runs that the theorem allows."""
        rule = OnlineRule(error * rows, 1_000, 64, rows, currency=Gdp)
        return float(np.sqrt(float(rule.run.amount) * rule.updates))

    assert np.log(price(0.1, 10**7) / price(0.1, 10**5)) / np.log(100) == pytest.approx(-1, abs=0.02)
    assert np.log(price(0.2, 10**6) / price(0.05, 10**6)) / np.log(4) == pytest.approx(
        -2, abs=0.15
    )  # beside logarithms


def slope(run, *, largest, sizes=(500, 8_000), cells=64):
    """Return the slope of log error, the largest or the mean square, in the rows, of the worst of several data."""
    rng = np.random.default_rng(3)
    queries, found = MatrixQueries(rng.choice([-1.0, 1.0], (128, cells))), []
    for rows in sizes:
        worst = 0.0
        for used in (2, 8, 32):
            counts = np.bincount(rng.choice(used, rows), minlength=cells)
            apart = abs(queries.of(run(rows).run(counts, queries).weights) - queries.exact(counts) * queries.step)
            worst = max(worst, float(apart.max() if largest else np.sqrt((apart**2).mean())) / rows)
        found.append(worst)
    return float(np.log(found[1] / found[0]) / np.log(sizes[1] / sizes[0]))


@pytest.mark.parametrize(
    ("run", "exponent"),
    [
        (lambda _: Projection(Gdp(0.1), rounds=100), -1 / 2),
        (lambda _: Projection(Pure(0.1), rounds=100), -1 / 2),
        (lambda rows: Mwem(Pure(1), rounds=round((rows / 19) ** (2 / 3)), passes=4), -1 / 3),
    ],
    ids=["projection", "pure projection", "mwem"],
)
def test_errors_fall_with_the_rows_at_least_as_the_post_says(run, exponent):
    """The worst of the data falls by the exponent of its cell, or faster."""
    assert slope(run, largest=exponent > -1 / 2) < exponent + 0.12


def test_the_pure_bound_grows_with_the_fourth_root_of_the_fewer():
    """Few rows, where projecting decides: k^(1/4) while queries are fewer than cells, T^(1/4) where cells are."""

    def bound(many, cells):
        """Return the bound for random signs and hardly a row."""
        queries = MatrixQueries(np.random.default_rng(1).choice([-1.0, 1.0], (many, cells)))
        return Projection(Pure(1)).error(queries, many, 1e-3)

    assert bound(1024, 2048) / bound(64, 2048) == pytest.approx(2, rel=1e-6)
    logs = (np.log(1024) / np.log(64)) ** 0.25
    assert bound(2048, 512) / bound(2048, 32) == pytest.approx(2 * logs, rel=1e-6)


@pytest.mark.parametrize("size", [(64, 512), (4, 512)])
def test_pure_noise_has_no_more_in_common_with_a_row_than_its_bound(size):
    """The mean of the most that noise on answers has in common with a row is below what the bound of few rows holds."""
    queries = MatrixQueries(np.random.default_rng(1).choice([-1.0, 1.0], size))
    noise = [IndependentNoise(Pure(15 / 16)).run(np.zeros(size[1], np.int64), queries) for _ in range(40)]
    found = np.mean([abs(queries.back(one)).max() for one in noise])
    reach = Projection(Pure(1)).error(queries, size[0], 1e-3) ** 2 * size[0] / 4e-3

    assert reach / 12 < found < reach


def test_errors_that_do_not_fall_are_seen():
    """Power: noise that grows with the rows leaves a slope of zero."""
    with pytest.raises(AssertionError):
        test_errors_fall_with_the_rows_at_least_as_the_post_says(
            lambda rows: Projection(Gdp(50 / rows), rounds=100), -1 / 2
        )


def test_the_tree_keeps_pairs_that_go_together():
    """Two equal columns are joined by an edge before anything else, and what is rare is merged."""
    a = np.diag([4000, 3000, 0])
    tables = {(0,): a.sum(1), (1,): a.sum(0), (2,): np.array([3500, 3500]), (0, 1): a,
              (0, 2): np.outer(a.sum(1), [1, 1]) // 2, (1, 2): np.outer(a.sum(0), [1, 1]) // 2}  # fmt: skip
    found = SpanningTree(Gdp(2)).run(tables, 3)

    assert found.edges[0] == (0, 1)
    assert len(found.edges) == 2
    assert found.kept[0].tolist() == [0, 1, 2]
    assert merged(np.array([1.0, 9.0]), 3.0).tolist() == [1, 0]
    assert SpanningTree(Gdp(2)).run({(0,): np.array([5])}, 1).edges == ()


@pytest.mark.parametrize("currency", [Gdp, Zcdp, Pure])
def test_an_online_run_is_paid_before_it_answers_and_ends_with_one_measurement(currency):
    """Its price is that of the watch, what ended it is told within the margin; after its end it answers nothing."""
    rule = OnlineRule(absolute=300, queries=50, cells=4, rows=2_000, currency=currency)
    run = OnlineRun(rule, sealed(np.array([1500, 0, 0, 500])), uniform(4, 2000.0), 2000.0)
    even, first = MatrixQueries([[1, 1, 1, 1]]), MatrixQueries([[1, 0, 0, 0]])

    assert abs(run.ask(even) - 2000) < 300
    assert not run.ended
    assert abs(run.ask(first) - 1500) < rule.margin < 50
    assert run.ended
    assert run.weights[0] > 500
    with pytest.raises(NoiseError, match="ended"):
        run.ask(even)
    assert rule.run == Pure(rule.epsilon).to(currency)


def test_the_potential_falls_by_what_the_theorem_says():
    """Every update with the right sign takes eta^2/2 off the divergence from the truth."""
    rule = OnlineRule(absolute=400, queries=50, cells=8, rows=2_000)
    truth = RANDOM.dirichlet(np.ones(8))
    weights = uniform(8, 2000.0)
    for _ in range(200):
        query = MatrixQueries(RANDOM.choice([-1.0, 1.0], (1, 8)))
        gap = float(query.of(truth * 2000 - weights)[0])
        if abs(gap) < rule.gap:
            continue
        after = learned(weights, query, float(query.of(truth * 2000)[0]), rule, 2000.0)
        fell = float((truth * np.log(after / weights)).sum())
        assert fell >= (rule.gap / rule.rows) ** 2 / 2 * (1 - 1e-9)
        weights = after


@pytest.mark.parametrize("bad", [{"absolute": 0.5}, {"queries": 0}, {"rows": 0}, {"confidence": 1.0}])
def test_an_online_promise_out_of_range_is_refused(bad):
    """A promise needs an error, queries and rows."""
    with pytest.raises(InvalidTarget, match="no usable promise"):
        OnlineRule(**({"absolute": 100, "queries": 10, "cells": 4, "rows": 1000} | bad))


def test_a_threshold_without_its_margin_is_seen(monkeypatch):
    """Planted: were runs to end at smaller gaps, the potential would fall by less than `updates` counts on."""
    rule = OnlineRule(absolute=400, queries=50, cells=8, rows=2_000)
    assert rule.threshold - rule.margin - rule.off >= rule.gap
    assert rule.threshold + rule.margin <= rule.absolute

    monkeypatch.setattr(online_weights.OnlineRule, "threshold", property(lambda self: self.gap))
    assert rule.threshold - rule.margin - rule.off < rule.gap


def test_weights_that_are_not_rounded_are_seen(monkeypatch):
    """Planted: sensitivities told for weights of half the size."""
    monkeypatch.setattr(linear_queries.MatrixQueries, "total", lambda *_: 1 << 15)
    with pytest.raises(AssertionError):
        test_a_unit_moves_answers_and_distances_by_no_more_than_is_priced.hypothesis.inner_test(MATRIX, [0, 1, 2])
