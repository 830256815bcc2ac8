"""Made-up rows: what their numbers do to tables, what a member pays beside them, and how looks share them out."""

import json
import tracemalloc
from itertools import product
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from farthing import Budget, Gdp, Session
from farthing.limits.tables import Residuals, tables_of
from farthing.mechanisms.gaussian import Coin
from farthing.mechanisms.residuals import NoiseShape, Residual, ResidualMeasurements, put_together, residual_table
from farthing.mechanisms.shared_noise import Information, SharedNoise, crossed, pressed, summed
from farthing.planning import release_patterns
from farthing.planning.one_thread import one_thread
from farthing.planning.release import design_for
from farthing.planning.release_patterns import SharedProgram, few_enough, most_rows
from farthing.planning.release_plan import Goal
from farthing.planning.release_rows import RowTree
from farthing.planning.release_shaped import ShapedDesign, ShapeProgram
from farthing.session.answering.release import WORST_MOST, _raised, limit_of
from farthing.session.answering.release_booking import LOOKS, _alike
from farthing.session.answering.release_record import Kept
from farthing.session.core.records import write_blob
from farthing.workloads import marginals

BASIS = Residuals((3, 2, 4), ((0, 1), (0, 2), (1, 2)), (1.0, 1.0, 1.0))
WEIGHTS = {0: np.array([1, 2, 4]), 1: np.array([1, 1]), 2: np.array([3, 1, 1, 2])}
PATTERNS = (
    np.array([[1.0, 0, 0], [0, 0, 1], [0.5, 0.5, 0]]),
    np.array([[1.0, 0], [0, 1], [1.75, -0.75]]),
    np.array([[1.0, 0, 0, 0], [0, 1 / 3, 1 / 3, 1 / 3], [-0.5, 0.25, 0.25, 1.0]]),
)
NOISE = SharedNoise(PATTERNS, np.array([4.0, 9.0, 25.0]))
NOISES = {subset: 2.0 + number for number, subset in enumerate(BASIS.subsets)}
ROWS = np.array(list(product(range(3), range(2), range(4))))

LARGE, SMALL = 5_000, 40
RANDOM = np.random.default_rng(15)
COMMON = (("a", 0.85, 6), ("b", 0.8, 5), ("c", 0.9, 2), ("d", 0.85, 3))
TABLE = pa.table({name: np.minimum(RANDOM.geometric(p, 40_000) - 1, size - 1) for name, p, size in COMMON})
KEYS = {name: range(size) for name, _, size in COMMON}
TWO, FEW = marginals(list(KEYS)), marginals(["a", "b"]) + marginals(["c", "d"])
HOW = {"keys": KEYS, "relative": 0.1, "absolute": 50, "cap": "all"}


@pytest.mark.parametrize("weights", [WEIGHTS, {place: np.ones(len(each), np.int64) for place, each in WEIGHTS.items()}])
def test_numbers_of_rows_come_out_in_every_table_alike(weights):
    """Put together from moved residuals, each table holds every made-up row as often as its number says."""
    numbers, along = np.array([3.0, -2.0, 0.5]), NOISE.along(weights)
    moved = {s: summed(numbers, [along[place] for place in s]) for s in BASIS.subsets}
    tables = {s: residual_table(each, [weights[place] for place in s]) for s, each in moved.items()}
    for table in BASIS.tables:
        exact = summed(numbers, [NOISE.patterns[place] for place in table])
        assert put_together(table, dict(enumerate(BASIS.sizes)), tables, weights) == pytest.approx(exact)


def test_what_a_row_pays_is_what_the_whole_covariance_says():
    """The closed form is that of the covariance of all cells written out, with and without made-up rows."""
    told, along = Information(NOISES, WEIGHTS), NOISE.along(WEIGHTS)
    base, made = [], []
    for subset in BASIS.subsets:
        shape = [BASIS.sizes[place] - 1 for place in subset]
        base.append(np.full(int(np.prod(shape)), NOISES[subset]))
        made.append(np.array([summed(unit, [along[p] for p in subset]).reshape(-1) for unit in np.eye(3)]).T)
    whole = np.diag(np.concatenate(base)) + np.concatenate(made) @ np.diag(NOISE.scales / 7) @ np.concatenate(made).T
    every = SharedNoise(tuple(np.eye(n)[ROWS[:, i]] for i, n in enumerate(BASIS.sizes)), np.ones(len(ROWS)))
    each = every.along(WEIGHTS)
    moved = np.concatenate(
        [np.array([summed(u, [each[p] for p in s]).reshape(-1) for u in np.eye(len(ROWS))]).T for s in BASIS.subsets]
    )
    assert told.of(ROWS) == pytest.approx((moved**2 / np.concatenate(base)[:, None]).sum(axis=0))
    exact = (moved * np.linalg.solve(whole, moved)).sum(axis=0)
    assert told.left(ROWS, NOISE, 7.0) == pytest.approx(exact)
    assert (exact < told.of(ROWS)).all()


def test_the_spread_of_a_table_is_the_variance_of_its_numbers():
    """The sum of squares over rows, and the transpose of the sum gives the same products."""
    for table in BASIS.tables:
        squares = [NOISE.patterns[place] ** 2 for place in table]
        exact = sum(n * np.outer(one, other) for n, one, other in zip(NOISE.scales, *squares, strict=True))
        assert NOISE.spread(table) == pytest.approx(exact, rel=2e-3)
        assert (NOISE.spread(table) >= exact).all()
        weights = RANDOM.random(exact.shape)
        assert (weights * exact).sum() == pytest.approx(NOISE.scales @ pressed(weights, squares))


def told_errors(joined, many=70, looks=2):
    """Return errors of tables measured in looks, over what is told: numbers by look, or by residual."""
    measuring = ResidualMeasurements({s: np.zeros([BASIS.sizes[i] for i in s], np.int64) for s in BASIS.subsets})
    weights = {place: np.ones(size, np.int64) for place, size in enumerate(BASIS.sizes)}
    shapes = {s: NoiseShape(tuple(weights[i] for i in s), np.zeros([BASIS.sizes[i] for i in s])) for s in BASIS.subsets}
    grains, along, found = np.full(len(BASIS.subsets), 2.0**46), NOISE.along(weights), []
    noise = SharedNoise(NOISE.patterns, NOISE.scales * 2.0**56)
    for _ in range(many):
        state = {s: Residual.nothing([BASIS.sizes[i] for i in s]) for s in BASIS.subsets}
        for _ in range(looks):
            numbers = noise.drawn(2**46 // looks)
            for s in BASIS.subsets:
                numbers = numbers if joined else noise.drawn(2**46 // looks)
                moved = summed(numbers, [along[place] for place in s])
                state[s] = measuring.measure(s, state[s], 2**46 // looks, shapes[s], moved)
        tables = {s: residual_table(each.mean) for s, each in state.items()}
        found.append([put_together(t, dict(enumerate(BASIS.sizes)), tables).reshape(-1) for t in BASIS.tables])
    design = ShapedDesign(BASIS, 1, grains, weights, shapes, noise)
    return np.concatenate(
        [np.array([one[n] for one in found]) / np.sqrt(each.reshape(-1)) for n, each in enumerate(design.by_table)],
        axis=1,
    )


@pytest.mark.thorough
def test_the_noise_of_each_cell_is_as_told():
    """Means of 0 and deviations of 1, at six deviations of theirs; numbers drawn for each residual are found."""
    errors = told_errors(joined=True)
    assert abs(errors.mean(axis=0)).max() < 6 / np.sqrt(len(errors))
    assert abs(errors.std(axis=0) - 1).max() < 6 / np.sqrt(2 * len(errors))
    assert abs(told_errors(joined=False).std(axis=0) - 1).max() > 6 / np.sqrt(2 * len(errors))


@pytest.mark.parametrize("noise", [None, SharedNoise(NOISE.patterns, NOISE.scales * 2.0**53)])
def test_no_signs_have_a_larger_variance_than_is_told(noise):
    """Over all signs of the cells of each table, the variance of the signed sum is at most what is told."""
    weights = {place: np.ones(size, np.int64) for place, size in enumerate(BASIS.sizes)}
    shapes = {s: NoiseShape(tuple(weights[i] for i in s), np.zeros([BASIS.sizes[i] for i in s])) for s in BASIS.subsets}
    design = ShapedDesign(BASIS, 1, np.full(len(BASIS.subsets), 2.0**46), weights, shapes, noise)
    for number, table in enumerate(BASIS.tables):
        shape = [BASIS.sizes[place] for place in table]
        whole = np.zeros((np.prod(shape), np.prod(shape)))
        for subset in (s for s in BASIS.subsets if set(s) <= set(table)):
            each = [
                np.eye(n) - 1 / n if i in subset else np.ones((n, n)) / n**2 for i, n in zip(table, shape, strict=True)
            ]
            whole += design.noises[subset] * np.kron(*each)
        if noise is not None:
            rows = np.array([np.outer(*(noise.patterns[i][k] for i in table)).reshape(-1) for k in range(3)])
            whole += rows.T @ np.diag(noise.scales / 2.0**46) @ rows
        signs = np.array(list(product((-1, 1), repeat=len(whole))))
        largest = float(((signs @ whole) * signs).sum(axis=1).max())
        assert largest <= design.signed(number) <= 2 * largest
        assert np.diag(whole) == pytest.approx(design.by_table[number].reshape(-1), rel=2e-3)


def program():
    """Return what noise is chosen from where most rows are alike and the other cells small."""
    counts = {s: np.full([BASIS.sizes[i] for i in s], float(SMALL)) for s in BASIS.subsets}
    for table in counts.values():
        table.reshape(-1)[0] = LARGE
    return ShapeProgram(BASIS, 2, counts, tuple(np.maximum(0.1 * counts[table], 50) ** 2 / 4 for table in BASIS.tables))


def test_every_cell_keeps_its_width_and_members_of_large_cells_pay_little():
    """With made-up rows no cell is noisier than allowed, no row pays above the books, and common ones pay a third."""
    asked = program()
    even = BASIS.variances(BASIS.least_largest()[0]).max() / 625
    best = asked.best(int(1.02 * even * 4 * 2**56))
    assert best.shared is not None
    assert best.excess(asked.widest) <= 1
    paid, booked = best.paid(ROWS), best.total * 2.0**-56
    assert paid.max() <= booked * (1 + 1e-9)
    assert paid[0] < booked / 3
    assert all(abs(each.sum(axis=1) - 1).max() < 1e-12 for each in best.shared.patterns)
    assert min(each.min() for each in best.shared.patterns) < -0.01
    assert asked.mean_loss(best) < 0.6 * booked


def test_the_search_goes_down_the_slope_of_what_rows_pay():
    """Slopes in variances and in shares are those of the mean loss, at noise as large as a norm of the room allows."""
    told, power, step = Information(NOISES, WEIGHTS), 5.0, 1e-5
    room = tuple(1 + RANDOM.random([BASIS.sizes[place] for place in table]) for table in BASIS.tables)
    search = SharedProgram(BASIS.tables, room, (1.0,) * 3, told, RowTree(BASIS.sizes, {(): np.array(9.0)}, {}))

    def paid(patterns, logs):
        """Return the mean loss of all rows, over that without made-up rows."""
        full = [
            summed(np.exp(logs), [patterns[i] ** 2 for i in table]) / own
            for table, own in zip(BASIS.tables, room, strict=True)
        ]
        height = sum((each**power).sum() for each in full) ** (1 / power)
        left = told.left(ROWS, SharedNoise(patterns, np.exp(logs) / height), 1.0)
        return height, left.mean() / told.of(ROWS).mean()

    logs, small = np.log(NOISE.scales), [each.astype(np.float32) for each in PATTERNS]
    height, own, shares = search.slopes(small, NOISE.scales.astype(np.float32), ROWS, power)
    before, start = paid(PATTERNS, logs)
    assert height == pytest.approx(before, rel=1e-4)
    for row, unit in enumerate(np.eye(len(logs))):
        assert own[row] == pytest.approx((paid(PATTERNS, logs + step * unit)[1] - start) / step, rel=2e-2, abs=1e-4)
    for place, slope in enumerate(shares):
        move = RANDOM.normal(size=slope.shape)
        move -= move.mean(axis=1, keepdims=True)
        moved = tuple(each + step * move if i == place else each for i, each in enumerate(PATTERNS))
        assert (slope * move).sum() == pytest.approx((paid(moved, logs)[1] - start) / step, rel=2e-2, abs=1e-4)


def test_noise_shrinks_where_it_moves_cells_together_and_members_pay_enough():
    """No variance grows, the mean row pays what is enough, and cells move together less than if all noise shrank alike;
    where rows pay more than enough already, the noise stays.
    """
    told, own = Information(NOISES, WEIGHTS), (2.0, 3.0, 5.0)
    tree = RowTree(BASIS.sizes, {(): np.array(9.0)}, {})
    search = SharedProgram(
        BASIS.tables, tuple(np.ones([BASIS.sizes[i] for i in t]) for t in BASIS.tables), own, told, tree
    )
    patterns = [np.eye(n)[ROWS[:, i]] for i, n in enumerate(BASIS.sizes)]
    numbers, rows = np.linspace(200.0, 2000.0, len(ROWS)), tree.members[:500]
    parts = [
        crossed(np.ones(len(ROWS)), [patterns[i] for i in table]) / np.sqrt(own[at])
        for at, table in enumerate(BASIS.tables)
    ]
    moved = np.concatenate(parts, axis=1)

    def together(variances):
        """Return the mean square of covariances over own variances, cell by cell."""
        return float(((moved.T @ np.diag(variances) @ moved) ** 2).mean())

    def paid(variances):
        """Return what the mean row pays, over that without made-up rows."""
        return told.left(rows, SharedNoise(tuple(patterns), variances), 1.0).mean() / told.of(rows).mean()

    assert numbers @ search.together(patterns) @ numbers == pytest.approx(together(numbers))
    calmed = search.calmed(patterns, numbers)
    assert (calmed <= numbers).all()
    assert paid(numbers) < 0.2
    assert 0.28 < paid(calmed) <= 0.3 + 1e-9
    alike = next(one * numbers for one in np.geomspace(1e-4, 1, 400) if paid(one * numbers) <= 0.3)
    assert together(calmed) < 0.9 * together(alike) < 0.1 * together(numbers)
    few = numbers / 20_000
    assert paid(few) > 0.3
    assert np.array_equal(search.calmed(patterns, few), few)


def test_sums_over_subsets_of_any_size_and_their_slopes():
    """Of three columns, too: the sum of products over the noise, what was not measured left out, and its slopes."""
    noises = {(): 2.0, (0,): 3.0, (2,): np.inf, (0, 1): 5.0, (1, 2): 7.0, (0, 1, 2): 11.0}
    told, one, step = Information(noises, WEIGHTS), dict(enumerate(RANDOM.normal(size=(3, 4)))), 1e-6

    def exact(along):
        """Return the sum, subset by subset."""
        return sum(np.prod([along[place] for place in s], axis=0) / noise for s, noise in noises.items())

    found, slopes = told.slopes(one)
    assert found == pytest.approx(exact(one))
    for place in range(3):
        more = {**one, place: one[place] + step}
        assert slopes[place] == pytest.approx((exact(more) - exact(one)) / step, abs=1e-5)


@pytest.mark.parametrize("unit", [2.0**-60, 2.0**80])
def test_the_search_knows_no_unit(unit, monkeypatch):
    """Where all variances are as many times larger, so is the noise that is found, whatever the target."""
    monkeypatch.setattr(release_patterns, "_TURNS", 20)
    asked, found = program(), []
    for times in (1.0, unit):
        told = Information({subset: noise * times for subset, noise in NOISES.items()}, WEIGHTS)
        own = tuple(times * each for each in (2.0, 3.0, 5.0))
        found.append(SharedProgram(BASIS.tables, tuple(each * times for each in asked.widest), own, told, asked.tree))
    one, other = (each.best(1.0) for each in found)
    assert one.scales * unit == pytest.approx(other.scales)
    for table, room in zip(BASIS.tables, asked.widest, strict=True):
        assert (one.spread(table) <= room).all()


def test_memory_grows_with_the_values_of_a_column_and_not_with_their_square(monkeypatch):
    """The search for a column of 5,000 values and a pair, and what its rows are in residuals, hold few numbers each."""
    monkeypatch.setattr(release_patterns, "_TURNS", 2)
    basis = Residuals((5_000, 3, 2), ((0,), (1, 2)), (1.0, 1.0))
    counts = {s: np.linspace(9_000, 1, int(np.prod([basis.sizes[i] for i in s]))) for s in basis.subsets}
    counts = {s: each.reshape([basis.sizes[i] for i in s]) for s, each in counts.items()}
    weights = {place: np.ones(size, np.int64) for place, size in enumerate(basis.sizes)}
    room = tuple(10.0 + np.zeros([basis.sizes[i] for i in table]) for table in basis.tables)
    tree = RowTree(basis.sizes, counts, {})
    search = SharedProgram(basis.tables, room, (1.0, 1.0), Information(dict.fromkeys(counts, 1.0), weights), tree)
    tracemalloc.start()
    try:
        search.best(1.0).along(weights)
        assert tracemalloc.get_traced_memory()[1] < 4 * 5_000**2
    finally:
        tracemalloc.stop()


def test_linear_algebra_has_its_threads_back_when_the_last_block_is_left():
    """Inside there is one thread, also while another block is open; afterwards there are as many as before."""

    def threads():
        """Return how many each library takes."""
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    before, (one, other) = threads(), (one_thread(), one_thread())
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert set(threads()) <= {1}
    with pytest.raises(ZeroDivisionError), one_thread():
        raise ZeroDivisionError
    assert set(threads()) <= {1}
    other.__exit__(None, None, None)
    assert threads() == before


def test_rows_are_made_up_where_tables_are_small_enough(monkeypatch):
    """By sizes alone: beyond a number of cells or of shares, noise differs by cell, and the search is not begun."""
    assert few_enough((6_900, 2), ((0,), (1,)), ((), (0,), (1,)))
    assert not few_enough((12_000, 2), ((0,), (1,)), ((), (0,), (1,)))
    assert not few_enough((600, 600), ((0, 1),), ((), (0,), (1,), (0, 1)))
    asked, most = program(), int(1.02 * BASIS.variances(BASIS.least_largest()[0]).max() / 625 * 4 * 2**56)
    monkeypatch.setattr(release_patterns, "MOST_SHARES", 9 * most_rows(BASIS.sizes, BASIS.subsets) - 1)
    monkeypatch.setattr(SharedProgram, "best", lambda *_: pytest.fail("the search was begun"))
    assert asked.best(most).shared is None


def test_made_up_rows_of_older_versions_are_read():
    """Rows that were kept as groups of values are shared out as they were."""
    said = {"residuals": [[2, [0], [2], 7]], "weights": [{"0": [1, 1, 1]}], "wanted": [[9]], "shared": [[2, 1]]}
    numbers = np.array([5.0, 6.0, 0, 0, 0, 2, -1, 1, 1, 0, 4, 8])
    blob = write_blob({"mean": numbers}, {b"farthing-residuals-3": json.dumps(said).encode()})
    (one,) = Kept.from_bytes(blob).shaped
    assert one.shared.same(SharedNoise((np.array([[0, 0, 1.0], [0.5, 0.5, 0]]),), np.array([4.0, 8.0])))
    assert (one.state[0,].mean.tolist(), one.wanted) == ([5.0, 6.0], {(0,): 9})
    (again,) = Kept.from_bytes(Kept(shaped=(one,)).to_bytes()).shaped
    assert again.alike(one)


def test_rows_of_a_tree_follow_its_pairs():
    """Columns that depend on one another do so in the rows; a pair within the noise counts as none."""
    pair = np.array([[900.0, 100.0], [50.0, 950.0]])
    counts = {(): np.array(2000.0), (0,): pair.sum(axis=1), (1,): pair.sum(axis=0), (0, 1): pair}
    rows = RowTree((2, 2), counts, {}).rows(4_000)
    assert np.array_equal(rows, RowTree((2, 2), counts, {}).rows(4_000))
    seen = np.histogram2d(*rows.T, bins=2)[0] / 2
    assert seen == pytest.approx(pair, abs=60)
    apart = RowTree((2, 2), counts, {(0, 1): 1_000.0})
    assert apart.pair(0, 1) == pytest.approx(np.outer(*apart.parts))


@given(st.dictionaries(st.integers(0, 9), st.integers(1 << 20, 1 << 50), min_size=1))
def test_looks_alike_have_about_the_same_part_of_everything(more):
    """Each look has an eighth of everything, up to one grain, in one order; and nothing is left."""
    looks = list(_alike(more))
    assert len(looks) == LOOKS
    assert all(abs(grains * LOOKS - more[key]) < LOOKS for part in looks for key, grains in part)
    assert {key: sum(dict(part)[key] for part in looks) for key in more} == more


@given(
    st.lists(st.integers(1 << 30, 1 << 50), min_size=1, max_size=5),
    st.sampled_from([0.125, 0.5, 1.0]),
    st.floats(-1e-9, 1e-9),
    st.integers(-2, 2),
)
def test_residuals_that_share_noise_are_all_made_sharper_or_none(wanted, part, away, grains):
    """A target whose level is what is held, but for a few grains, adds nothing or a thousandth to each of them."""
    wanted = np.array(wanted, np.float64)
    held, level = np.floor(wanted * part) + grains, part * (1 + away)
    more = _raised(held, wanted, level, together=True) - held
    assert not more.any() or (more >= held * 2.0**-10).all()
    assert not more.any() or (held + more >= wanted * level).all()
    assert more.any() or (held >= wanted * level * (1 - 1e-11)).all()


@pytest.fixture(name="session")
def _session():
    """Open the table with a large budget."""
    with Session(TABLE, budget=Budget(mu=6), name="data") as opened:
        yield opened


@pytest.mark.thorough
def test_one_draw_of_numbers_serves_all_residuals_of_a_look(session, monkeypatch):
    """A release draws numbers of made-up rows once a look, and the median row pays less than half of the books."""
    real, draws = SharedNoise.drawn, []
    monkeypatch.setattr(SharedNoise, "drawn", lambda noise, grains: draws.append(grains) or real(noise, grains))
    release = session.release(TWO, **HOW)
    assert len(draws) == LOOKS
    floor = session.plan_release(TWO, keys=KEYS, absolute=50, cap="all").worst_price
    assert release.paid.amount <= floor.amount * WORST_MOST * (1 + 1e-6)
    rows = np.stack([TABLE.column(name).to_numpy() for name in KEYS], axis=1)
    design = release._plan.design
    assert np.median(design.paid(rows)) < 0.5 * design.total * 2.0**-56
    assert release._plan.design.shared is not None
    assert 1 <= release.optimality().ratio
    assert session.plan_release(FEW, **HOW).free


@pytest.mark.thorough
def test_some_tables_are_made_sharper_by_themselves(session):
    """Residuals that share noise are sharpened all together; a sharper release of a few tables begins with nothing."""
    session.release(TWO, **HOW)
    few = {**HOW, "absolute": 30}
    sharper = session.release(FEW, **few)
    assert sharper["a", "b"].met.all()
    assert session.plan_release(FEW, **few).free
    whole = session.release(TWO, **few)
    assert whole._plan.design.shared is not None
    kept = Kept.from_bytes(blob_of(session))
    assert [len(one.state) for one in kept.shaped] == [11, 7]
    again = Kept.from_bytes(kept.to_bytes())
    assert all(one.alike(other) for one, other in zip(kept.shaped, again.shaped, strict=True))
    parts = {round(one.grains / kept.shaped[0].wanted[subset], 2) for subset, one in kept.shaped[0].state.items()}
    assert parts == {1.0}


def blob_of(session):
    """Return what the ledger keeps of the first question."""
    ledger = session._context.ledger
    return next(stored for entry in ledger.entries() if (stored := ledger.load(entry.question)) is not None).blob


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(0, 3), st.booleans(), st.data())
def test_no_workload_of_tables_is_told_to_be_better_than_the_best(sizes, ways, up_to, data):
    """Whatever the sizes, the ways and the goal, the price is at least that of the best unbiased mechanism."""
    basis = tables_of(sizes, min(ways, len(sizes)), up_to=up_to)
    goals = [
        Goal(30.0, None, None, 0.95, 0.05),
        Goal(None, 9.0, None, 0.95, 0.05),
        Goal(None, None, Gdp(1), 0.95, 0.05),
    ]
    goal, reach = data.draw(st.sampled_from(goals)), data.draw(st.integers(1, 3))
    coin = Coin(Gdp, 1, reach)
    design = design_for(basis, coin, goal, np.zeros(len(basis.subsets)), reach)
    plan = SimpleNamespace(design=design, aimed=basis, goal=goal, most_rows=reach, coin=coin, pilot=0)
    assert 1 <= limit_of(plan).ratio
