"""A release through the Session: tables that agree, prices that add up, free repeats, and everything refused."""

import math
import pickle
import threading
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import farthing
from farthing import Bounds, Budget, BudgetExceeded, Gdp, Pure, Session, Zcdp
from farthing.engines.duck.engine import DuckDBEngine
from farthing.errors import (
    DataError,
    FarthingError,
    InvalidKeys,
    InvalidOption,
    InvalidTarget,
    OutOfReach,
    UnsupportedQuery,
)
from farthing.limits import marginals_error
from farthing.mechanisms import residuals
from farthing.mechanisms.residuals import ResidualMeasurements
from farthing.session.answering import release as releasing
from farthing.workloads import Marginals, conditions, marginals

SIZES = {"a": 5, "b": 4, "c": 3, "d": 1}
ROWS = 20_000
RANDOM = np.random.default_rng(7)
TABLE = pa.table({name: pa.array(RANDOM.integers(0, size, ROWS)) for name, size in SIZES.items()})
KEYS = {name: list(range(size))[::-1] for name, size in SIZES.items()}
COUNTS = np.zeros(tuple(SIZES.values()), np.int64)
np.add.at(COUNTS, tuple(TABLE.column(name).to_numpy() for name in SIZES), 1)
TWO = marginals(list(SIZES), ways=2)


def opened(table=TABLE, **options):
    """Open the table with a large budget."""
    return Session(table, **{"budget": Budget(mu=6), "name": "data"} | options)


def exact(columns):
    """Return the counts by some columns, in the order of the listed keys."""
    axes = tuple(at for at, name in enumerate(SIZES) if name not in columns)
    table = COUNTS.sum(axis=axes)
    order = sorted(columns, key=list(SIZES).index)
    table = table[tuple(slice(None, None, -1) for _ in order)]
    return table.transpose([order.index(name) for name in columns])


def test_tables_are_the_counts_within_their_intervals():
    """Values are in the order of the columns that are named and of the keys that were listed, near the truth."""
    with opened() as session:
        release = session.release(TWO, keys=KEYS, absolute=10, confidence=0.999999, cap="all")
        for columns in [*release, ("b", "a"), ("c",), "a", ("d", "c")]:
            names = (columns,) if isinstance(columns, str) else columns
            table = release[columns]
            assert tuple(table.keys) == names
            assert table.value.shape == tuple(SIZES[name] for name in names)
            assert (abs(table.value - exact(names)) <= 10).all()
            assert bool((table.lower <= exact(names)).all() & (exact(names) <= table.upper).all())
            assert table.met.all()
            assert table.half_width.max() <= 10 * (1 + 1e-9)
        assert release[()].value == pytest.approx(ROWS, abs=10)


def test_the_arrow_table_has_one_row_a_cell():
    """Columns, interval, met and paid; the first column varies slowest, in the order of its keys."""
    with opened() as session:
        release = session.release(marginals(["a", "b"]), keys={"a": KEYS["a"], "b": KEYS["b"]}, absolute=30, name="n")
        table = release["a", "b"].to_arrow()

    assert table.column_names == ["a", "b", "n", "n_lower", "n_upper", "met", "paid"]
    assert table.column("a").to_pylist() == [a for a in KEYS["a"] for _ in KEYS["b"]]
    assert table.column("b").to_pylist() == KEYS["b"] * 5
    assert table.column("n").to_numpy() == pytest.approx(release["a", "b"].value.reshape(-1))
    assert set(table.column("paid").to_pylist()) == {release.paid.value}
    assert release["a", "b"].to_polars().shape == release["a", "b"].to_pandas().shape == (20, 7)
    assert len(release["a", "b"].rows()) == 20


def test_all_tables_agree():
    """Every total that two tables share is the same number, whatever the noise."""
    with opened() as session:
        release = session.release(TWO, keys=KEYS, absolute=40)
        for one, other in combinations(release, 2):
            shared = tuple(name for name in one if name in other)
            sums = [
                release[table].value.sum(axis=tuple(at for at, name in enumerate(table) if name not in shared))
                for table in (one, other)
            ]
            assert sums[0] == pytest.approx(sums[1], abs=1e-6)
        assert release.histogram().value.sum(axis=(2, 3)) == pytest.approx(release["a", "b"].value, abs=1e-6)


def test_the_price_is_the_closed_form():
    """A named loss buys the least mean error; an error of every cell the least largest one; both are near the limit."""
    with opened() as session:
        named = session.release(TWO, keys=KEYS, loss=Gdp(0.5))
        assert named.rmse == pytest.approx(marginals_error(list(SIZES.values())) / 0.5, rel=1e-3)
        assert 1 <= named.optimality().ratio <= 1.14
    with opened() as session:
        every = session.release(TWO, keys=KEYS, absolute=60)
        assert 1 <= every.optimality().ratio <= 1.003
        ours, *others = every.contest
        assert ours.name == "residuals"
        assert all(ours.price < other.price for other in others)
        assert ours.price.value == pytest.approx(every.paid.value, rel=1e-6)
    with opened() as session:
        mean = session.release(TWO, keys=KEYS, rms=20)
        assert mean.rmse == pytest.approx(20, rel=1e-6)
        assert mean.paid.value == pytest.approx(marginals_error(list(SIZES.values())) / 20, rel=1e-3)


@pytest.mark.parametrize("loss", [Gdp(0.1), Gdp(1 / 3), Zcdp(0.003)])
def test_a_named_loss_is_never_above_itself(loss):
    """A loss that is no whole number of farthings buys what the farthings below it do; it was refused as too much."""
    with opened(budget=Budget(rho=5) if isinstance(loss, Zcdp) else Budget(mu=5)) as session:
        paid = session.release(TWO, keys=KEYS, loss=loss).paid
        assert paid.amount <= loss.amount
        assert float(paid.amount) == pytest.approx(float(loss.amount), rel=1e-9)


def test_what_was_released_is_free_and_the_rest_costs_the_difference():
    """Repeats, looser targets and smaller tables are free; sharper ones cost what is missing, for any goal."""
    with opened() as session:
        first = session.release(TWO, keys=KEYS, absolute=60)
        again = session.release(TWO, keys={name: values[::-1] for name, values in KEYS.items()}, absolute=60)
        fewer = session.release(marginals(list(SIZES), ways=1), keys=KEYS, absolute=110)
        assert not again.paid
        assert not fewer.paid
        assert first["a", "b"].value == pytest.approx(again["a", "b"].value[::-1, ::-1])
        sharper = first.refine(absolute=30)
        mean = sharper.refine(rms=5)
        total = sum(one.paid.amount for one in (first, sharper, mean))
        assert float(session.spent.amount) == pytest.approx(float(total))
        assert float(sharper.paid.amount) == pytest.approx(3 * float(first.paid.amount), rel=1e-6)
    with opened() as session:
        whole = session.release(TWO, keys=KEYS, rms=5)
        assert 0.999999 <= float(total) / float(whole.paid.amount) <= 1.4


def test_a_plan_says_what_is_paid():
    """The planned price is the price; nothing is spent by planning, and a refusal says the same words."""
    with opened(budget=Budget(epsilon=1, delta=1e-6)) as session:
        plan = session.plan_release(TWO, keys=KEYS, absolute=400)
        release = session.release(TWO, keys=KEYS, absolute=400)
        assert plan.worst_price == release.paid
        assert not plan.free
        assert session.plan_release(TWO, keys=KEYS, absolute=400).free
        assert "within 400" in str(plan)
        assert plan.to_dict()["reachable"]
        small = session.plan_release(TWO, keys=KEYS, absolute=4)
        with pytest.raises(OutOfReach) as refused:
            session.release(TWO, keys=KEYS, absolute=4)
        assert refused.value.needed == small.worst_price
        assert small.fitting in str(refused.value)
        assert len(session.history()) == 1
        width = float(small.fitting.split("=")[1].split(" ")[0])
        assert session.release(TWO, keys=KEYS, absolute=width)["a"].met.all()


def test_the_data_are_asked_once(monkeypatch):
    """One question to the engine for a release, none for a free one."""
    asked = []
    real = DuckDBEngine.crossed
    monkeypatch.setattr(DuckDBEngine, "crossed", lambda *given: asked.append(given[2].sets) or real(*given))
    with opened() as session:
        session.release(marginals(list(SIZES), ways=3, up_to=True), keys=KEYS, absolute=60)
        session.release(TWO, keys=KEYS, absolute=60)

    assert len(asked) == 1
    assert len(asked[0]) == 4  # the largest tables: the others are sums of them


@pytest.mark.parametrize("bounds", [Bounds(1, 1), Bounds(2, 3), Bounds(10**6, 1)])
def test_a_unit_of_several_rows_pays_for_its_reach(bounds):
    """The price is that of one row, times the squared number of rows that a unit may add."""
    table = TABLE.append_column("u", pa.array(np.arange(ROWS) // 7))
    with opened(table, unit="u", bounds=bounds) as session, opened() as rows:
        plan = session.plan_release(TWO, keys=KEYS, absolute=60, cap="all")
        one = rows.plan_release(TWO, keys=KEYS, absolute=60)
        reach = bounds.max_rows * min(bounds.max_groups, 60)
        assert float(plan.worst_price.amount) == pytest.approx(reach**2 * float(one.worst_price.amount), rel=1e-9)
        assert plan.design.variances == pytest.approx(one.design.variances)


@pytest.mark.parametrize("budget", [Budget(rho=5), Budget(mu=5), Budget(epsilon=10, delta=1e-6)])
def test_every_gaussian_currency(budget):
    """The same noise costs rho = mu^2/2."""
    with opened(budget=budget) as session:
        release = session.release(TWO, keys=KEYS, absolute=60)
        amount = float(release.paid.amount) * (2 if isinstance(release.paid, Zcdp) else 1)
        assert math.sqrt(amount) == pytest.approx(math.sqrt(float(release._plan.design.total * 2.0**-56)), rel=1e-5)


def test_simultaneous_intervals_are_wider_and_weights_sharpen():
    """All cells at once cost more; a table of weight 2 has half the half-width."""
    with opened() as session:
        each = session.plan_release(TWO, keys=KEYS, absolute=60)
        every = session.plan_release(TWO, keys=KEYS, absolute=60, simultaneous=True)
        assert each.worst_price < every.worst_price
        assert "at once" in every.goal.words
        weighted = marginals(["a", "b"], ways=1) + 2 * marginals(["a", "b"], ways=2)
        release = session.release(weighted, keys={"a": KEYS["a"], "b": KEYS["b"]}, absolute=60)
        assert release["a", "b"].half_width == pytest.approx(30)
        assert release["a", "b"].met.all()
        assert release["a"].half_width.max() <= 60


def test_two_at_once_keep_what_both_paid(monkeypatch):
    """Whoever is passed by pays for what it measured, and the ledger keeps both: the next answer is sharper."""
    with opened() as session:
        real, gate = releasing._counts, threading.Event()

        def slow(*given):
            """Let another release of the same rows in between."""
            if not gate.is_set():
                gate.set()
                session.release(TWO, keys=KEYS, absolute=60)
            return real(*given)

        monkeypatch.setattr(releasing, "_counts", slow)
        paid = session.release(TWO, keys=KEYS, absolute=60).paid
        assert session.spent.amount == 2 * paid.amount
        plan = session.plan_release(TWO, keys=KEYS, absolute=60 / math.sqrt(2) * 1.001)
        assert plan.free


def test_a_failure_is_charged_and_shows_nothing(monkeypatch):
    """An engine that fails leaves the price of the first look and no number; the next ask pays, and is answered."""
    with opened() as session:
        price = session.plan_release(TWO, keys=KEYS, absolute=60).worst_price
        with monkeypatch.context() as broken:
            broken.setattr(
                type(session._engine),
                "crossed",
                lambda *_: (_ for _ in ()).throw(DataError("gone", rule="", next_step="")),
            )
            with pytest.raises(DataError):
                session.release(TWO, keys=KEYS, absolute=60)
        assert 0 < session.spent.amount < price.amount / 60
        assert session.release(TWO, keys=KEYS, absolute=60).paid == price


def test_parts_and_conditions_are_releases_of_their_own():
    """A part of a partition and a condition tell of their own rows; parts are charged in parallel."""
    with opened() as session:
        parts = session.partition(by="c", keys=[0, 1, 2])
        paid = [
            parts[c].release(marginals(["a", "b"]), keys={"a": KEYS["a"], "b": KEYS["b"]}, absolute=30) for c in parts
        ]
        for c, release in zip(parts, paid, strict=True):
            assert release["a", "b"].value == pytest.approx(COUNTS[::-1, ::-1, c, 0], abs=80)
        assert session.spent == max(release.paid for release in paid)
    with opened() as session:
        release = session.release(marginals(["a"], ways=1), keys={"a": KEYS["a"]}, where="c = 1", absolute=30)
        assert release["a"].value == pytest.approx(COUNTS[::-1, :, 1].sum(axis=(1, 2)), abs=80)


def test_rows_that_are_listed_nowhere_count_nowhere():
    """A row whose value is not listed in one column is in no table, so that tables agree."""
    with opened() as session:
        keys = KEYS | {"c": [0, 1]}
        release = session.release(TWO, keys=keys, absolute=10, cap="all")
        assert release["a", "b"].value == pytest.approx(COUNTS[::-1, ::-1, :2, 0].sum(axis=2), abs=25)


def test_words_and_files(tmp_path):
    """The text names the tables, the promise and the price; each table becomes a file, and none is written over."""
    with opened() as session:
        release = session.release(TWO, keys=KEYS, absolute=60)
    text = repr(release)
    assert "6 tables, 59 cells" in text
    assert "every cell within 60" in text
    assert "<table>" in release._repr_html_()
    assert "count by a, b" in repr(release["a", "b"])
    assert "<table>" in release["a", "b"]._repr_html_()
    assert ("a", "b") in release
    assert ("a", "x") not in release
    assert len(release) == 6
    files = release.to_parquet(tmp_path / "tables")
    assert pq.read_table(files[0]).equals(release["a", "b"].to_arrow())
    with pytest.raises(InvalidOption, match="already"):
        release.to_parquet(tmp_path / "tables")
    with pytest.raises(UnsupportedQuery, match="no table"):
        release["a", "b", "c"]
    with pytest.raises((TypeError, AttributeError)):
        pickle.dumps(release)


REFUSED = {
    "not a workload": (InvalidOption, lambda s: s.release(["a"], keys=KEYS, absolute=60)),
    "the total alone": (InvalidOption, lambda s: s.release(marginals(["a"], ways=0), keys={}, absolute=60)),
    "a column without keys": (InvalidKeys, lambda s: s.release(TWO, keys={"a": [1]}, absolute=60)),
    "keys of another column": (InvalidKeys, lambda s: s.release(TWO, keys=KEYS | {"x": [1]}, absolute=60)),
    "private keys": (InvalidKeys, lambda s: s.release(TWO, keys="private", absolute=60)),
    "repeated keys": (InvalidKeys, lambda s: s.release(TWO, keys=KEYS | {"a": [1, 1]}, absolute=60)),
    "keys of another type": (InvalidKeys, lambda s: s.release(TWO, keys=KEYS | {"a": ["x"]}, absolute=60)),
    "an unknown column": (UnsupportedQuery, lambda s: s.release(marginals(["x"], ways=1), keys={"x": [1]}, absolute=9)),
    "no goal": (InvalidTarget, lambda s: s.release(TWO, keys=KEYS)),
    "two goals": (InvalidTarget, lambda s: s.release(TWO, keys=KEYS, absolute=60, rms=3)),
    "a goal and a price": (InvalidTarget, lambda s: s.release(TWO, keys=KEYS, absolute=60, loss=Gdp(0.1))),
    "a negative goal": (InvalidTarget, lambda s: s.release(TWO, keys=KEYS, rms=-3)),
    "a goal that is no number": (InvalidTarget, lambda s: s.release(TWO, keys=KEYS, absolute=math.nan)),
    "a mapping": (InvalidTarget, lambda s: s.release(TWO, keys=KEYS, absolute={"a": 3})),
    "another currency": (InvalidTarget, lambda s: s.release(TWO, keys=KEYS, loss=Zcdp(0.1))),
    "a relative target without a floor": (InvalidTarget, lambda s: s.release(TWO, keys=KEYS, relative=0.1)),
    "a relative target that is none": (InvalidTarget, lambda s: s.release(TWO, keys=KEYS, relative=2, absolute=60)),
    "an unknown option": (InvalidTarget, lambda s: s.release(TWO, keys=KEYS, absolute=60, abs=3)),
    "an unknown mechanism": (InvalidTarget, lambda s: s.release(TWO, keys=KEYS, absolute=60, mechanism="magic")),
    "a taken name": (UnsupportedQuery, lambda s: s.release(TWO, keys=KEYS, absolute=60, name="a")),
    "out of reach": (OutOfReach, lambda s: s.release(TWO, keys=KEYS, absolute=1)),
    "more than is left": (BudgetExceeded, lambda s: s.release(TWO, keys=KEYS, loss=Gdp(7))),
    "absurdly sharp": (OutOfReach, lambda s: s.release(TWO, keys=KEYS, rms=1e-100, cap="all")),
    "bounds that are none": (FarthingError, lambda s: s.release(TWO, keys=KEYS, absolute=60, bounds=3)),
    "an empty workload": (InvalidOption, lambda _: Marginals((), ())),
    "a table twice": (InvalidOption, lambda _: marginals(["a", "b"]) + marginals(["b", "a"])),
    "a column twice": (InvalidOption, lambda _: marginals(["a", "a"])),
    "no columns": (InvalidOption, lambda _: marginals([])),
    "columns as a text": (InvalidOption, lambda _: marginals("ab")),
    "too many ways": (InvalidOption, lambda _: marginals(["a"], ways=2)),
    "ways that are none": (InvalidOption, lambda _: marginals(["a"], ways=True)),
    "too many tables": (InvalidOption, lambda _: marginals([f"c{at}" for at in range(100)], ways=50)),
    "a weight of nothing": (InvalidOption, lambda _: 0 * marginals(["a", "b"])),
    "a weight that is no number": (TypeError, lambda _: "2" * marginals(["a", "b"])),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_costs_nothing(case):
    """Each refusal is an error of its own kind, and leaves the books as they were."""
    kind, ask = REFUSED[case]
    with opened() as session:
        with pytest.raises(kind) as refused:
            ask(session)
        assert not session.history()
        assert refused.value.__cause__ is None


ROWS_OF = {"keys": KEYS, "mechanism": "rows"}

ADVISED = {
    "rows with a target": (lambda s: s.release(TWO, absolute=60, **ROWS_OF), "the error of 'rows' is not known"),
    "rows of no tables": (lambda s: s.release(["a"], loss=Gdp(1), **ROWS_OF), "'rows' is for tables"),
    "chosen bounds": (lambda s: s.release(TWO, keys=KEYS, absolute=60, bounds=Bounds.auto()), "bounds are not chosen"),
    "a function": (lambda s: s.release(TWO, keys=KEYS, absolute=60, bounds=Bounds.auto), "is a function"),
    "private keys": (lambda s: s.release(TWO, keys="private", absolute=60), "do not find their groups"),
    "a number": (lambda s: s.release(conditions(["a * 2"]), absolute=60), r"true or false.*, as in \(a \* 2\) > 0"),
    "an epsilon": (lambda s: s.release(TWO, keys=KEYS, loss=Pure(1)), r"loss=farthing.Gdp\(.* costs epsilon 1 at"),
    "a capped epsilon": (lambda s: s.release(TWO, keys=KEYS, absolute=9, cap=Pure(1)), r"cap=farthing.Gdp\(.* costs"),
    "a rho": (lambda s: s.release(TWO, keys=KEYS, loss=Zcdp(1)), r"name a Gdp: loss=farthing.Gdp\("),
    "the cap": (lambda s: s.release(TWO, keys=KEYS, absolute=2), r"under the cap.* would fit; .*raises the cap"),
    "all of it": (lambda s: s.release(TWO, keys=KEYS, absolute=2, cap="all"), "of what is left.*; no more is left to"),
}


@pytest.mark.parametrize("case", ADVISED)
def test_a_refusal_names_what_was_typed_and_what_would_do(case):
    """The mechanism, bounds, keys and losses as they were named, and a way on that is there."""
    ask, words = ADVISED[case]
    with opened(budget=Budget(epsilon=1, delta=1e-6)) as session, pytest.raises(FarthingError, match=words):
        ask(session)


def test_a_plan_that_does_not_reach_says_what_would():
    """In its text and in its facts, in the words of the refusal; a model's plan, too. One that reaches says nothing."""
    with opened(budget=Budget(epsilon=1, delta=1e-6)) as session:
        small = session.plan_release(TWO, keys=KEYS, absolute=2)
        assert str(small).endswith(f"note: this is out of reach: {small.advice}")
        assert small.to_dict()["advice"] == small.advice
        with pytest.raises(OutOfReach) as refused:
            session.release(TWO, keys=KEYS, absolute=2)
        assert refused.value.next_step == small.advice
        model = {"keys": KEYS, "mechanism": "tree"}
        assert "note: this does not fit" in str(session.plan_release(TWO, loss=Gdp(3), **model))
        fine = session.plan_release(TWO, keys=KEYS, absolute=400), session.plan_release(TWO, loss=Gdp(0.01), **model)
        assert ["", ""] == [one.to_dict()["advice"] for one in fine]
        assert not any("note:" in str(one) for one in fine)


def test_a_pure_budget_is_refused():
    """Laplace noise is another mechanism; said before anything is charged."""
    with opened(budget=Budget(epsilon=1)) as session:
        with pytest.raises(UnsupportedQuery, match="delta"):
            session.release(TWO, keys=KEYS, absolute=60)
        assert not session.history()


def test_a_large_domain_is_planned_without_its_cells():
    """All two-way tables of twelve columns of fifty values, 2e20 cells together, are priced by their sizes."""
    columns = [f"c{at}" for at in range(12)]
    table = pa.table({name: pa.array([1]) for name in columns})
    with opened(table) as session:
        plan = session.plan_release(marginals(columns), keys=dict.fromkeys(columns, range(50)), absolute=100)

    assert plan.design.basis.cells.sum() == 66 * 2500
    with opened(table) as session, pytest.raises(InvalidOption, match="too many cells"):
        session.plan_release(marginals(columns, ways=6), keys=dict.fromkeys(columns, range(50)), absolute=100)


def test_the_package_offers_workloads():
    """`farthing.workloads` and `farthing.Release` are public."""
    assert farthing.workloads.marginals is marginals
    assert farthing.Release.__name__ == "Release"


LARGE = pa.table({
    name: pa.array(np.repeat(np.arange(60), 20_000) // step % size)
    for name, size, step in (("a", 5, 1), ("b", 4, 5), ("c", 3, 20))
})  # fmt: skip
FEW = {"a": range(5), "b": range(4), "c": range(3)}
THREE = marginals(["a", "b", "c"])


def relative_prices(table, absolute, **how):
    """Return what a relative target cost, what its absolute part alone would, and the release."""
    with opened(table) as session, opened(table) as other:
        release = session.release(THREE, keys=FEW, relative=0.1, absolute=absolute, cap="all", **how)
        floor = other.release(THREE, keys=FEW, absolute=absolute, cap="all")
        assert session.spent == release.paid
        return float(release.paid.amount), float(floor.paid.amount), release


def test_a_relative_target_costs_little_more_where_cells_are_small_and_much_less_where_they_are_large():
    """Small cells: the absolute target and a sixty-fourth for looking. Large ones: what their tenth allows."""
    small, floor, release = relative_prices(TABLE.select(["a", "b", "c"]), absolute=200)
    assert floor < small < 1.02 * floor
    assert release["a", "b"].half_width.max() <= 200 * (1 + 1e-9)

    large, floor, release = relative_prices(LARGE, absolute=50)
    with opened(LARGE) as session:
        least = session.release(THREE, keys=FEW, absolute=0.1 * 60_000)  # the least cell has 60,000 rows
    assert large < floor / 1_000
    assert large < 3 * float(least.paid.amount)
    assert all(release[table].met.all() for table in release)
    allowed = {("a", "b"): 6_000, ("a", "c"): 8_000, ("b", "c"): 10_000}
    assert all(release[table].half_width.max() <= width for table, width in allowed.items())
    assert "within 10 % or 50" in release.goal
    assert 1 <= release.optimality().ratio < 3


def test_a_relative_target_is_planned_at_its_worst_and_asked_again_for_nothing():
    """The plan names the most; what was looked at before is known to the next plan, whose price is then exact."""
    with opened(LARGE) as session:
        plan = session.plan_release(THREE, keys=FEW, relative=0.1, absolute=50)
        release = session.release(THREE, keys=FEW, relative=0.1, absolute=50)
        assert release.paid < plan.worst_price
        assert session.plan_release(THREE, keys=FEW, relative=0.1, absolute=50).free
        assert not session.release(THREE, keys=FEW, relative=0.2, absolute=50).paid
        sharper = session.plan_release(THREE, keys=FEW, relative=0.05, absolute=50)
        refined = release.refine(relative=0.05)
        assert refined["a", "b"].half_width.max() < release["a", "b"].half_width.min()
        assert refined.paid <= sharper.worst_price
        assert float(refined.paid.amount) < 6 * float(release.paid.amount)
        assert session.spent.amount == release.paid.amount + refined.paid.amount


def drawn(truth, sigma, noise):
    """Return noisy whole numbers, from noise that can be repeated."""
    return np.rint(truth + sigma * noise.normal(size=truth.shape)).astype(np.int64), np.zeros_like(truth)


def test_what_is_measured_never_decides_how_precisely(monkeypatch):
    """The noise of the answers changes neither designs nor prices: they follow from the pilot alone."""
    real = ResidualMeasurements.measure

    def shifted(self, subset, state, grains, *more):
        """Measure; what is for the answer, which is measured last, comes out far too large."""
        seen = real(self, subset, state, grains, *more)
        return seen if looking[0] else replace(seen, mean=seen.mean + 1e6)

    looking, found = [True], []
    piloted = releasing._BookedTables._piloted
    for wrong in (False, True):
        with monkeypatch.context() as patched, opened(LARGE) as session:

            def noted(given, measuring, receipt, wrong=wrong):
                """Look with the pilot, and note when that is over."""
                made = piloted(given, measuring, receipt)
                looking[0] = not wrong
                found.append(made[0].design.grains.tolist())
                return made

            looking[0] = True
            noise = np.random.default_rng(3)
            patched.setattr(releasing._BookedTables, "_piloted", noted)
            patched.setattr(residuals, "on_own_grid", lambda x, s, _, noise=noise: drawn(x, s, noise))
            patched.setattr(residuals, "rounded_gaussian", lambda s, **_: np.rint(s).astype(np.int64))
            patched.setattr(ResidualMeasurements, "measure", shifted)
            release = session.release(THREE, keys=FEW, relative=0.1, absolute=50)
            found.append(float(release.paid.amount))
            found.append(session.plan_release(THREE, keys=FEW, relative=0.05, absolute=50).design.grains.tolist())

    assert found[:3] == found[3:]
