"""Synthetic rows and releases by a model: reports that hold, prices charged whole, what is refused; bugs planted."""

import math

import numpy as np
import pyarrow as pa
import pytest

import farthing
from farthing import Budget, BudgetExceeded, Gdp, Pure, Session
from farthing.errors import InvalidOption, InvalidTarget, UnsupportedQuery
from farthing.ledger.store import Ledger
from farthing.mechanisms.adaptive_tables import AdaptiveTables
from farthing.mechanisms.online_weights import OnlineRun
from farthing.planning.synthetic import SyntheticPlan
from farthing.session.answering import online as online_module
from farthing.session.answering import synthetic as synthetic_module
from farthing.session.answering.release_options import MODELS
from farthing.synthetic import HistogramModel, TreeModel, cliques
from farthing.synthetic import rows as rows_module
from farthing.synthetic.mixing import apportioned, shuffled
from farthing.synthetic.model import forest, furthest_pairs, neighbours, rake, simplex
from farthing.synthetic.rows import noise_reach, tallies
from farthing.synthetic.shrinking import centred, shrunk
from farthing.workloads import conditions, marginals, matrix, prefixes, ranges

pytestmark = pytest.mark.thorough

SIZES = {"a": 3, "b": 4, "c": 2}
ROWS = 6_000
RANDOM = np.random.default_rng(11)
A = RANDOM.integers(0, 3, ROWS)
TABLE = pa.table({"a": A, "b": (A + RANDOM.integers(0, 2, ROWS)) % 4, "c": (A > 0).astype(np.int64)})
KEYS = {name: list(range(size)) for name, size in SIZES.items()}
TWO = marginals(list(SIZES), ways=2)


@pytest.mark.parametrize(
    ("size", "columns", "ways", "taken"),
    [(2, 10, 3, "residuals"), (2, 21, 2, "adaptive"), (30, 2, 2, "residuals")],
)
def test_rows_are_made_by_what_is_public(size, columns, ways, taken):
    """Residuals where they know cells no less than the first tables of "adaptive", and rows can be raked; as told."""
    names = [f"c{at}" for at in range(columns)]
    table = pa.table({name: np.zeros(9, np.int64) for name in names})
    with Session(table, budget=Budget(mu=6), name="data") as session:
        keys = {name: range(size) for name in names}
        how = {"keys": keys, "loss": Gdp(0.3), "confidence": 0.9}
        plan = session.plan_release(marginals(names, ways=ways), mechanism="rows", **how)
        by_name = {one.name: one for one in plan.contest}
        assert isinstance(plan, SyntheticPlan) == (taken == "adaptive")
        assert not session.spent
        if size**columns > 1 << 20:
            return
        ours, first = by_name["residuals"], by_name["adaptive, first tables"]
        assert (ours.rmse <= first.rmse) == (taken == "residuals")
        assert first.rmse == pytest.approx(math.sqrt(4 * columns / 0.648) / 0.3, rel=1e-5)
        assert "adaptive, first tables" in str(plan)
        plain = session.plan_release(marginals(names, ways=ways), **how)
        assert ours.rmse == pytest.approx(plain.rmse, rel=1e-6)


def test_first_tables_that_are_known_better_are_taken(monkeypatch):
    """Where "adaptive" knew its first tables more precisely than residuals know all, it is taken, and told first."""
    monkeypatch.setattr(AdaptiveTables, "first_deviation", lambda *_: 1e-3)
    with opened() as session:
        plan = session.plan_release(TWO, keys=KEYS, loss=Gdp(0.5), mechanism="rows")
        assert [one.name for one in plan.contest] == ["adaptive, first tables", "residuals"]
        assert plan.to_dict()["contest"]["adaptive, first tables"] == 1e-3
        assert "residuals: root mean squared error" in str(plan)


def test_rows_by_residuals_are_the_release_itself():
    """The same tables at the same price as by default, free when asked again either way; targets are refused."""
    with opened() as session:
        release = session.release(TWO, keys=KEYS, loss=Gdp(0.5), mechanism="rows")
        assert isinstance(release, farthing.Release)
        assert session.release(TWO, keys=KEYS, loss=Gdp(0.5)).paid == Gdp(0)
        assert release.synthetic(400).table.num_rows == 400
        for wanted in ({"absolute": 50}, {"loss": Gdp(0.1), "rms": 3}, {}):
            with pytest.raises(InvalidTarget, match="loss="):
                session.release(TWO, keys=KEYS, mechanism="rows", **wanted)


def test_cells_are_rounded_beside_cells_that_differ_in_one_column():
    """Every cell once, each a step in one column from the one before."""
    for sizes in ((), (3,), (2, 3, 4), (5, 1, 2, 3)):
        order = neighbours(sizes)
        assert sorted(order.tolist()) == list(range(math.prod(sizes)))
        places = np.stack(np.unravel_index(order, sizes), axis=1) if sizes else np.zeros((1, 0))
        assert (abs(np.diff(places, axis=0)).sum(axis=1) == 1).all()


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Draw fewer rows of each model of cliques than a release does."""
    monkeypatch.setattr(cliques, "DRAWN", 1 << 13)


def opened(**options):
    """Open the table with a large budget."""
    return Session(TABLE, **{"budget": Budget(mu=6), "name": "data"} | options)


def errors(rows, release_total):
    """Return the true error of each two-way table of synthetic rows."""
    found = []
    for table in TWO.tables:
        both = [
            np.histogramdd(
                np.stack([one.column(name).to_numpy() for name in table], 1),
                bins=[np.arange(SIZES[name] + 1) for name in table],
            )[0]
            for one in (rows, TABLE)
        ]
        found.append(abs(both[0] * release_total / rows.num_rows - both[1]).sum() / (2 * release_total))
    return np.array(found)


@pytest.mark.parametrize(("mechanism", "rows"), [(None, 500), (None, 6_000), *((name, 500) for name in MODELS[:-1])])
def test_the_report_holds_the_true_error(mechanism, rows):
    """Of rows from tables with intervals, and from each model, few rows and many."""
    how = {"absolute": 80, "cap": "all"} if mechanism is None else {"loss": Gdp(1), "mechanism": mechanism}
    with opened() as session:
        found = session.release(TWO, keys=KEYS, confidence=0.999999, **how).synthetic(rows, seed=3)
    true = errors(found.table, found.total)

    assert found.table.num_rows == rows
    assert (found.lower <= true).all()
    assert (true <= found.upper).all()
    assert true.max() < 0.2
    assert found.report().num_rows == 3
    assert "synthetic rows, seed 3" in repr(found)


def test_a_report_without_the_noise_is_seen(monkeypatch):
    """Planted: the distance from the released tables told as that from the truth."""
    monkeypatch.setattr("farthing.synthetic.released.noise_reach", lambda *_: 0.0)
    with opened() as session:
        found = session.release(TWO, keys=KEYS, absolute=400, cap="all").synthetic(6_000)

    assert not (errors(found.table, found.total) <= found.upper).all()


def test_rows_are_a_function_of_the_release_and_the_seed():
    """The same for the same seed; another order for another; nothing is charged."""
    with opened() as session:
        release = session.release(TWO, keys=KEYS, absolute=80, cap="all")
        spent = session.spent
        one, same, other = release.synthetic(700), release.synthetic(700), release.synthetic(700, seed=1)
        assert session.spent == spent

    assert one.table.equals(same.table)
    assert not one.table.equals(other.table)
    assert release.synthetic().table.num_rows == round(float(release[()].value))


@pytest.mark.parametrize("how", [{"rows": 0}, {"rows": 1.5}, {"rows": 10**8}, {"rows": True}, {"rows": 5, "seed": -1}])
def test_numbers_of_rows_that_are_none_are_refused(how):
    """From one row to ten million, and a whole seed."""
    with opened() as session:
        release = session.release(TWO, keys=KEYS, absolute=80, cap="all")
    with pytest.raises(InvalidOption, match="a number of rows and a seed"):
        release.synthetic(**how)


def test_a_domain_too_large_for_a_histogram_is_modelled_as_a_forest(monkeypatch):
    """What goes together in released pairs goes together in the rows, and the report holds."""
    monkeypatch.setattr(rows_module, "MOST_CELLS", 8)
    with opened() as session:
        found = session.release(TWO, keys=KEYS, absolute=40, confidence=0.999999, cap="all").synthetic()
    true = errors(found.table, found.total)

    assert (true <= found.upper).all()
    assert true.max() < 0.2


@pytest.mark.parametrize("mechanism", MODELS)
def test_a_model_is_charged_its_loss_once(mechanism):
    """All of it before anything is read; asking again is free and tells the same; a pure ledger works, too."""
    keys, tables = {"a": KEYS["a"], "c": KEYS["c"]}, marginals(["a", "c"], ways=2)
    for budget, loss in ((Budget(mu=6), Gdp(0.5)), (Budget(epsilon=20), Pure(2))):
        how = {"keys": keys, "loss": loss, "mechanism": mechanism}
        with opened(budget=budget) as session:
            plan = session.plan_release(tables, **how)
            assert plan.worst_price == loss
            assert plan.fits
            assert "not known beforehand" in str(plan)
            release = session.release(tables, **how)
            assert release.paid == session.spent == loss
            again = session.release(tables, **how)
            assert again.paid.amount == 0
            assert session.plan_release(tables, **how).free
            assert again["a", "c"].equals(release["a", "c"])
            assert again.to_arrow().equals(release.to_arrow())
            assert session.plan_release(tables, **how).to_dict()["free"]
        lower, upper = release.errors
        assert (lower <= upper).all()
        assert sum(release["a", "c"]["count"].to_pylist()) == pytest.approx(ROWS, rel=0.05)
        assert list(release) == [("a", "c")]
        assert len(release) == 1
        assert mechanism in repr(release)
        with pytest.raises(UnsupportedQuery, match="no table"):
            release["b"]


def test_weights_make_another_question_where_they_are_read():
    """Tables chosen by their weights are not those chosen by others; the other models do not read them."""
    with opened() as session:
        for name, paid in (("adaptive", True), ("tree", False)):
            session.release(TWO, keys=KEYS, loss=Gdp(0.3), mechanism=name)
            weighted = (
                9.0 * marginals(["a", "b"], ways=2) + marginals(["a", "c"], ways=2) + marginals(["b", "c"], ways=2)
            )
            assert weighted.tables == TWO.tables
            assert bool(session.release(weighted, keys=KEYS, loss=Gdp(0.3), mechanism=name).paid) is paid


PRODUCTS = (
    ranges("b", [0, 1, 2, 3, 4]) * marginals(["c"], ways=1)
    + 3.0 * prefixes("b", [0, 2, 4])
    + conditions(["a = 1"])
    + matrix([[0.5, -2, 1], [1, 1, 1]], over="a")
)


def truths():
    """Return the exact answers of the products."""
    a, b, c = (TABLE.column(name).to_numpy() for name in "abc")
    between = [(low, high) for low in range(4) for high in range(low + 1, 5)]
    return [
        np.array(
            [((b >= low) & ((b < high) | (high == 4)) & (c == one)).sum() for low, high in between for one in (0, 1)]
        ),
        np.array([(b < 2).sum(), ROWS]),
        np.array([(a == 1).sum()]),
        np.array([[0.5, -2, 1], [1, 1, 1]]) @ np.bincount(a, minlength=3),
    ]


@pytest.mark.parametrize(("mechanism", "most"), [("mwem", 0.1), ("projection", 0.1), ("small database", 0.8)])
def test_products_are_told_by_mechanisms_that_hold_the_domain(mechanism, most):
    """For tables too small for a database, too: answers, their error with its ends, rows; paid once, pure or not."""
    keys, workload = {"a": KEYS["a"], "c": KEYS["c"]}, PRODUCTS
    if mechanism == "small database":
        keys, workload = {"c": KEYS["c"]}, prefixes("b", [0, 2, 4]) * marginals(["c"], ways=1)
    for budget, loss in ((Budget(mu=6), Gdp(2)), (Budget(epsilon=20), Pure(4))):
        how = {"keys": keys, "loss": loss, "mechanism": mechanism, "confidence": 0.999999}
        with opened(budget=budget) as session:
            assert session.plan_release(workload, **how).worst_price == loss
            found = session.release(workload, **how)
            assert found.paid == session.spent == loss
            again = session.release(workload, **how)
            assert (again.paid.amount, again.to_arrow()) == (0, found.to_arrow())
        lower, upper = found.errors
        assert upper.max() < most
        rows = found.synthetic(900)
        assert rows.table.num_rows == 900
        assert rows.report().num_rows == len(found) == len(found.to_arrow())
        assert (rows.upper >= lower).all()
        if workload is PRODUCTS:
            total = found._model.total
            true = [
                abs(found[words]["count"].to_numpy() - truth).mean() / total
                for words, truth in zip(found, truths(), strict=True)
            ]
            assert (lower <= true).all()
            assert (true <= upper).all()
    with pytest.raises(UnsupportedQuery, match="no product"):
        found["prefixes of z"]


def test_errors_of_products_are_priced_at_what_a_row_moves(monkeypatch):
    """Each at its largest column, in steps, at an equal share; a product is counted as its own axes have it."""
    real, seen = synthetic_module.noisy_answers, []
    monkeypatch.setattr(synthetic_module, "noisy_answers", lambda truth, loss, **how: seen.append((loss.amount, how))
                        or real(truth, loss, **how))  # fmt: skip
    with opened() as session:
        session.release(PRODUCTS, keys={"a": KEYS["a"], "c": KEYS["c"]}, loss=Gdp(2), mechanism="projection")

    moved = [round(one * (1 << 16)) for one in (6, 2, 1, (2 + 1) / 2)]
    assert [how["total"] for _, how in seen] == moved
    assert [how["squares"] for _, how in seen] == [one**2 for one in moved]
    assert sum(amount for amount, _ in seen) == Gdp(2).amount / 10


def test_products_that_do_not_fit_are_refused_free():
    """The size of the domain or of the matrix, the limit, and what would do."""
    with opened() as session:
        for workload, match in (
            (
                prefixes("a", range(300)) * prefixes("b", range(300)) * prefixes("c", range(300)),
                "1,048,576 cells.*auto",
            ),
            (ranges("a", range(50)) * prefixes("b", range(50)), "8,388,608 weights.*auto"),
        ):
            with pytest.raises(InvalidOption, match=match):
                session.release(workload, loss=Gdp(0.1), mechanism="projection")
        with pytest.raises(InvalidOption, match=r"262,144 databases.*mwem"):
            session.release(prefixes("a", range(60)), loss=Gdp(0.1), mechanism="small database")
        with pytest.raises(InvalidTarget, match="not known before it is paid"):
            session.release(prefixes("a", range(6)), absolute=50, mechanism="mwem")
        assert session.spent.amount == 0


def test_what_a_model_cannot_do_is_refused_free():
    """Targets, other workloads, domains that do not fit: each with its size, its limit and what would do."""
    wide = {name: list(range(40)) for name in "abc"} | {"d": list(range(40))}
    table = pa.table({name: [0, 1] for name in [*wide, *(f"c{at}" for at in range(31))]})
    with opened() as session:
        for how in ({"absolute": 50}, {"loss": Gdp(0.1), "rms": 5}, {}):
            with pytest.raises(InvalidTarget, match="not known before it is paid"):
                session.release(TWO, keys=KEYS, mechanism="tree", **how)
        with pytest.raises(InvalidOption, match="is for tables"):
            session.release(conditions(["a > 1"]), loss=Gdp(0.1), mechanism="tree")
        with pytest.raises(BudgetExceeded):
            session.release(TWO, keys=KEYS, loss=Gdp(7), mechanism="tree")
        assert session.spent.amount == 0
    with Session(table, budget=Budget(mu=1), name="data") as session:
        for name, match in (("projection", r"1,048,576 cells.*2,560,000.*tree"), ("mwem", "too large")):
            with pytest.raises(InvalidOption, match=match):
                session.release(marginals(list(wide)), keys=wide, loss=Gdp(0.1), mechanism=name)
        many = {f"c{at}": [0, 1] for at in range(31)}
        with pytest.raises(InvalidOption, match=r"4,096 tables.*4,991.*tree"):
            session.release(marginals(list(many), ways=3), keys=many, loss=Gdp(0.1), mechanism="adaptive")
        with pytest.raises(InvalidOption, match=r"262,144 databases.*mwem"):
            session.release(marginals(["a", "b"]), keys={n: wide[n] for n in "ab"}, loss=Gdp(0.1), mechanism=MODELS[-1])
        assert session.release(marginals(list(wide)), keys=wide, loss=Gdp(0.1), mechanism="tree").paid <= Gdp(0.1)


def online(session, **changes):
    """Open an online object on the domain of two columns."""
    keys = {"a": KEYS["a"], "b": KEYS["b"]}
    return session.online(**({"keys": keys, "absolute": 1500, "queries": 300, "rows": 8_000} | changes))


def test_online_queries_are_within_their_error_and_pay_for_runs_only():
    """Answers hold at once; a query that was not measured is free, and what was charged is the runs."""
    a, b = (TABLE.column(name).to_numpy() for name in "ab")
    with opened(budget=Budget(mu=40)) as session:
        asked = online(session)
        assert session.spent.amount == 0
        paid = []
        for at in range(60):
            values = [at % 3]
            found = asked.ask(a=values, b=[0, 1]) if at % 2 else asked.ask((np.arange(12) % 3 == at % 3).astype(float))
            truth = (np.isin(a, values) & (b < 2)).sum() if at % 2 else ((a * 4 + b) % 3 == at % 3).sum()
            assert found.lower <= truth <= found.upper
            paid.append(found.paid.amount)
        runs = sum(amount > 0 for amount in paid)
        assert asked.measured <= runs <= asked.measured + 1
        assert sum(paid) == session.spent.amount == asked.paid.amount
        assert runs < 10
        assert asked.histogram.shape == (3, 4)
        assert "60 of 300 queries" in repr(asked)


def test_online_refusals_charge_nothing():
    """Too many cells, values that are not listed, weights of another shape, more queries than were said."""
    with opened(budget=Budget(mu=40)) as session:
        asked = online(session, queries=1)
        for bad in ({"a": [7]}, {"z": [1]}, {}):
            with pytest.raises(InvalidOption):
                asked.ask(**bad)
        for bad in (np.ones(5), np.full(12, 2.0), "a"):
            with pytest.raises(InvalidOption):
                asked.ask(bad)
        with pytest.raises(InvalidOption, match="too large for online"):
            session.online(keys={"a": range(2000), "b": range(2000)}, absolute=50, queries=5, rows=100)
        with pytest.raises(InvalidOption, match="need a domain"):
            session.online(keys=[1, 2], absolute=50, queries=5, rows=100)
        assert session.spent.amount == 0
        asked.ask(a=[0])
        spent = session.spent
        with pytest.raises(InvalidTarget, match="all queries"):
            asked.ask(a=[0])
        assert session.spent == spent
    with opened(budget=Budget(mu=0.01)) as session, pytest.raises(BudgetExceeded):
        online(session).ask(a=[0])


def test_an_interrupted_answer_ends_its_run(monkeypatch):
    """What was decided and not told is never told again: the next query pays a new run."""
    with opened(budget=Budget(mu=40)) as session:
        asked = online(session)
        first = asked.ask(a=[0, 1, 2])
        real = OnlineRun.ask

        def stopped(self, query):
            """Answer, and be interrupted before it is told."""
            real(self, query)
            raise KeyboardInterrupt

        monkeypatch.setattr(OnlineRun, "ask", stopped)
        with pytest.raises(KeyboardInterrupt):
            asked.ask(a=[0])
        monkeypatch.setattr(OnlineRun, "ask", real)
        assert first.paid.amount > 0
        assert asked.ask(a=[0, 1, 2]).paid.amount > 0


def test_a_run_that_is_not_charged_is_seen(monkeypatch):
    """Planted: a run that starts free; the door to the rows stays shut."""
    monkeypatch.setattr(online_module, "_whole", lambda own: own._context.loss(0))
    with opened(budget=Budget(mu=40)) as session, pytest.raises(InvalidTarget, match="price of the next run is zero"):
        online(session).ask(a=[0])


def test_a_model_that_settles_below_its_loss_is_seen(monkeypatch):
    """Planted: half of the loss given back after it was used up."""
    real = Ledger.settle
    monkeypatch.setattr(
        Ledger, "settle", lambda self, receipt, price, *more, **how: real(self, receipt, price // 2, *more, **how)
    )
    with opened() as session:
        session.release(TWO, keys=KEYS, loss=Gdp(1), mechanism="tree")
        assert session.spent < Gdp(1)


def test_pieces_of_models():
    """Whole numbers add up, orders are orders, tables are kept, trees and histograms give their own tables."""
    weights = RANDOM.uniform(0, 1, 50)
    shares = apportioned(weights, 777)
    assert shares.sum() == 777
    assert abs(shares - 777 * weights / weights.sum()).max() <= 1
    assert apportioned(np.zeros(3), 3).tolist() == [1, 1, 1]
    assert sorted(shuffled(9, 2, 100).tolist()) == list(range(100))
    assert simplex(RANDOM.normal(size=(3, 3)), 5.0).sum() == pytest.approx(5)

    joint = RANDOM.dirichlet(np.ones(6)).reshape(2, 3) * 100
    raked = rake({(0,): joint.sum(1), (0, 1): joint}, (2, 3), 100.0, 8)
    assert np.allclose(raked.reshape(2, 3), joint)
    ones = [joint.sum(1), joint.sum(0)]
    assert furthest_pairs(ones, {(0, 1): (joint, 0.0)}, 100.0) == [(0, 1)]
    assert furthest_pairs(ones, {(0, 1): (joint, 1e9)}, 100.0) == []
    tree = forest(ones, {(0, 1): joint}, 100.0, [(0, 1)])
    for model in (tree, HistogramModel((2, 3), joint.reshape(-1), 100.0)):
        assert abs(tallies(model.rows(100_000), (2, 3), (0, 1)) / 1000 - joint).max() < 0.01
    assert TreeModel((0,), (-1,), (np.zeros((1, 2)),), 5.0).rows(4).sum() == 2


def test_wide_tables_are_drawn_to_what_pairs_tell():
    """All the way where noise explains all that is apart, not at all without noise; sums over fewer columns stay."""
    table, model = RANDOM.uniform(50, 60, (2, 3, 2)), np.full((2, 3, 2), 55.0)
    for sd, kept in ((0.0, 1.0), (1e6, 0.0)):

        def told(columns, sd=sd):
            """Return a deviation of the whole table alone."""
            return table, sd if len(columns) == 3 else 0.0

        found = shrunk({(0, 1, 2): table}, told, (2, 3, 2), lambda _: model)
        assert np.allclose(found[0, 1, 2], table - (1 - kept) * centred(table))
        assert np.allclose(found[0, 1, 2].sum(axis=0), table.sum(axis=0))


def test_the_reach_of_noise_is_that_of_a_table_of_independent_cells():
    """With all residuals alike in the table, its cells are independent, and both are known."""
    sizes, sd = (3, 4), 5.0
    parts = {(): sd**2 * 12, (0,): sd**2 * 4, (1,): sd**2 * 3, (0, 1): sd**2}
    expected = sd * 12 * math.sqrt(2 / math.pi) + sd * math.sqrt(2 * math.log(20) * 12)

    assert noise_reach(parts, sizes, 0.05) == pytest.approx(expected)


def test_public_names():
    """What leaves is told by type, and exact numbers are in no repr."""
    with opened(budget=Budget(mu=40)) as session:
        asked = online(session)
        asked.ask(a=[0])
        assert "73" not in repr(asked._run.truth)
        assert isinstance(asked.paid, farthing.Gdp)
