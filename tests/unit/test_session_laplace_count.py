"""Counts and sums under a pure budget: refined on a chain, charged for the last look."""

import io
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from farthing import Bounds, Budget, Pure, Session
from farthing.accuracy.stored_promise import StoredPromise
from farthing.errors import BudgetExceeded
from farthing.ledger.store import Ledger
from farthing.mechanisms.gaussian import Measured
from farthing.session.core.records import Record

SIZES = (20, 400, 5_000, 60_000)
KEYS = {"g": [0, 1, 2, 3]}
BY = {"by": "g", "keys": KEYS}


@pytest.fixture(scope="module")
def table():
    """Four groups of very different sizes, each row with a value."""
    rng = np.random.default_rng(5)
    return pa.table({"g": np.repeat(np.arange(4), SIZES), "v": rng.integers(-3, 30, sum(SIZES)).astype(float)})


def paid(answer):
    """Return each group's own epsilon in this ask."""
    return answer.to_pandas()["paid"].to_numpy()


def test_larger_groups_pay_less(table):
    """The price falls with the size; the charge is the largest group price, since a row is in one group."""
    session = Session(table, budget=Budget(epsilon=1))
    answer = session.count(**BY, relative=0.1, absolute=40)

    assert answer.met.all()
    assert 0.002 > paid(answer)[3] > 0
    assert session.spent == Pure.of_farthings(round(max(paid(answer)) * 2**40))
    assert "in looks that get finer" in session.plan(**BY, relative=0.2, absolute=40, where="g >= 0").steps[0]


def test_refining_charges_the_difference(table):
    """Refined in two steps or asked at once: the last look is the price."""
    steps, once = (Session(table, budget=Budget(epsilon=2)) for _ in range(2))
    first = steps.count(**BY, relative=0.1, absolute=200, cap="all")
    last = first.refine(absolute=80).refine(absolute=20)
    once.count(**BY, relative=0.1, absolute=20, cap="all")

    assert once.spent.value == pytest.approx(steps.spent.value, rel=1e-9)  # the smallest group goes to the last look
    assert last.paid < steps.spent
    assert np.abs(last.value[0] - SIZES[0]) < 200


def test_asking_again_or_looser_is_free(table):
    """Also for some of the groups; the same value is told."""
    session = Session(table, budget=Budget(epsilon=1))
    answer = session.count(**BY, relative=0.1, absolute=40)
    again = session.count(**BY, relative=0.2, absolute=50)
    part = session.count(by="g", keys={"g": [3, 1]}, relative=0.1, absolute=40)

    assert not again.paid
    assert not part.paid
    assert answer.value[1] == part.value[1]


def test_sums_of_stopped_cells_are_free(table):
    """A total of cells that stopped by what they showed is told from them, where that is accurate enough."""
    session = Session(table, budget=Budget(epsilon=1))
    session.count(**BY, relative=0.1, absolute=40)
    total = session.count(where="g IN (0, 1)", absolute=500)

    assert not total.paid
    assert total.lower <= 420 <= total.upper
    assert session.count(where="g IN (0, 1)", absolute=30).paid


def test_a_loss_is_spent_whole_and_an_absolute_target_stays_whole(table):
    """One look where no group can stop by itself; whole numbers."""
    session = Session(table, budget=Budget(epsilon=1))
    answer = session.count(**BY, absolute=40)

    assert np.array_equal(answer.value, np.rint(answer.value))
    assert "once" in session.plan(**BY, absolute=30).steps[0]
    assert Pure(0.25) == session.count(where="g > 1", loss=Pure(0.25)).paid


def test_sums_of_either_sign(table):
    """Clamps may be negative; several groups a unit are paid for together."""
    session = Session(table, unit="v", bounds=Bounds(max_groups=2, max_rows=4), budget=Budget(epsilon=20))
    answer = session.sum("v", lower=-3, upper=30, **BY, relative=0.2, absolute=2_000, cap="all")
    top = np.sort(paid(answer))[-2:]

    assert answer.met.all()
    assert session.spent.value == pytest.approx(top.sum(), rel=1e-9)


def test_a_cap_gives_small_groups_up(table):
    """What is out of reach of the cap is told so, and pays less than the cap."""
    session = Session(table, budget=Budget(epsilon=1))
    answer = session.count(**BY, relative=0.02, cap=Pure(0.01))

    assert [False, False] == answer.met[:2].tolist()
    assert answer.met[3]
    assert paid(answer)[0] < 0.01
    assert session.spent <= Pure(0.01)


def test_the_interval_closes_in(table):
    """Progress is told look by look, from released numbers."""
    seen = []
    Session(table, budget=Budget(epsilon=1)).count(**BY, relative=0.1, absolute=40, progress=seen.append)
    widths = [now.half_width for now in seen]

    assert widths == sorted(widths, reverse=True)
    assert 4 == seen[-1].done


def test_a_failure_begins_another_line(table, monkeypatch):
    """After a failed refinement the stored values are not carried on: the next one is paid in full."""
    session = Session(table, budget=Budget(epsilon=5))
    first = session.count(**BY, relative=0.1, absolute=100, cap="all")
    with monkeypatch.context() as planted:
        planted.setattr("farthing.session.answering.laplace_count.refine", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            first.refine(absolute=50)
    before = session.spent
    again = first.refine(absolute=50)

    assert max(paid(again)) == pytest.approx((session.spent - before).value)
    assert (session.spent - before).value == pytest.approx(3.064 / 50, rel=0.01)  # all of it, not the increase
    assert not first.refine(absolute=50).paid


@pytest.mark.parametrize(
    ("ask", "inner", "floor"),
    [
        pytest.param(
            lambda s, **how: s.count(**BY, **how),
            "laplace_count._LaplaceLooks.measure",
            50,
            marks=pytest.mark.thorough,
        ),
        (lambda s, **how: s.mean("v", lower=0, upper=30, **BY, **how), "laplace_measures.MeasureChains.show", 1),
    ],
    ids=["count", "mean"],
)
def test_a_line_that_begins_again_takes_no_better_one_away(table, monkeypatch, ask, inner, floor):
    """After a failure, what was paid for stays free, though somebody buys a little of a sharper answer in between."""
    session, coarse = Session(table, budget=Budget(epsilon=20)), {"relative": 0.1, "absolute": floor, "cap": "all"}
    ask(session, **coarse)
    with monkeypatch.context() as planted:
        planted.setattr(f"farthing.session.answering.{inner}", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ask(session, relative=0.02, absolute=floor / 10, cap="all")
    little = ask(session, relative=0.01, absolute=floor / 50, max_epsilon=0.005, on_miss="spend")
    again = ask(session, **coarse)
    sharper = ask(session, relative=0.05, absolute=floor / 2, cap="all")

    assert 0 < little.paid.value <= 0.005
    assert not little.met.all()
    assert not again.paid
    assert again.met.all()
    assert sharper.paid
    assert not ask(session, relative=0.05, absolute=floor / 2, cap="all").paid


@pytest.mark.thorough
@pytest.mark.parametrize("first", [{"relative": 0.2, "absolute": 100}, {"absolute": 100}], ids=["looks", "one look"])
def test_after_an_interrupted_ask_all_that_is_left_still_answers(table, first):
    """What stands after an interrupted ask is no use to a line that begins again, and does not make it dearer."""
    session = Session(table, budget=Budget(epsilon=1))
    session.count(**BY, **first, cap="all")
    asks, again = [], {"relative": 0.1, "absolute": 5, "cap": "all"}

    def stop(_):
        asks.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.count(**BY, **again, progress=stop)
    left = session.plan(**BY, **again).worst_price
    answer = session.count(**BY, **again)
    finer = session.plan(**BY, relative=0.05, absolute=5, cap="all")

    assert asks
    assert answer.paid
    assert answer.paid <= left
    assert finer.fits
    assert session.count(**BY, relative=0.05, absolute=5, cap="all", on_miss="spend").paid
    assert session.spent <= Pure(1)


def test_what_others_hold_is_said(table):
    """While one ask holds all that is left, another is told that the rest comes back, and when."""
    session, told, large = Session(table, budget=Budget(epsilon=1)), [], {"by": "g", "keys": {"g": [2, 3]}}

    def nested(_):
        if not told:
            with pytest.raises(BudgetExceeded, match="nothing is left while other questions are answered") as refused:
                session.count(relative=0.1, cap="all")
            told.append(refused.value.next_step)

    session.count(**large, relative=0.1, cap="all", progress=nested)

    assert "they hold Pure(epsilon=1): ask again when they are answered, the rest comes back" in told[0]
    assert session.count(relative=0.1, cap="all").paid


def test_an_old_record_is_read_and_refined(table, monkeypatch):
    """One look of an earlier version: a chain of length one, at its farthings and on its own steps."""
    session = Session(table, budget=Budget(epsilon=1))
    first = session.count(**BY, absolute=40)
    honest = Ledger.load

    def old(self, question):
        stored = honest(self, question)
        if stored is None:
            return None
        record = Record.from_bytes(stored.blob)
        plain = StoredPromise(0.0, 40.0, 40.0, 0.05, 0.0, record.kept.grains)
        assert isinstance(record.measured, Measured)
        blob = Record(record.measured, plain, record.keys, record.listed).to_bytes()
        return replace(stored, blob=blob)

    monkeypatch.setattr(Ledger, "load", old)
    again = session.count(**BY, absolute=40)
    finer = session.count(**BY, absolute=20, relative=0.1)

    assert not again.paid
    assert np.array_equal(first.value, again.value)
    assert np.array_equal(finer.value, np.rint(finer.value))
    assert finer.paid.value == pytest.approx(session.spent.value - first.paid.value)


def test_the_limit_beside_a_chain(table):
    """What any unbiased mechanism would have had to pay, of the groups that met the target."""
    answer = Session(table, budget=Budget(epsilon=1)).count(**BY, relative=0.1, absolute=40)

    assert 1 < answer.optimality().ratio < 1.6
    assert answer.doubling is None


def test_answers_too_large_for_the_steps_are_held():
    """A limit on sizes: no wrapped integers, and no row decides an error. Coarser steps are rounded to."""
    from farthing.planning.laplace_count import Grid
    from farthing.sealed import opened
    from farthing.session.answering.laplace_count import chain_of

    fine = opened(chain_of(np.array([1 << 55, 3, -(1 << 55)]), 0, Grid(1, 1 << 10, -10)).truth)
    coarse = opened(chain_of(np.array([15, 16, -24, 1 << 40]), 0, Grid(1, 1 << 31, 5)).truth)

    assert [1 << 60, 3 << 10, -(1 << 60)] == fine.tolist()
    assert [0, 1, -1, 1 << 35] == coarse.tolist()


def test_the_command_line_refines(tmp_path, table, monkeypatch):
    """`farthing ask --relative` on a ledger without a delta."""
    import pyarrow.parquet as pq
    from typer.testing import CliRunner

    from farthing.cli.app import app

    monkeypatch.chdir(tmp_path)
    pq.write_table(table, "rows.parquet")
    runner = CliRunner()
    assert 0 == runner.invoke(app, ["init", "rows.parquet", "--epsilon", "1"]).exit_code
    question = ["SELECT COUNT(*) AS n FROM rows", "--relative", "5%", "--absolute", "100", "--json"]
    asked = runner.invoke(app, ["ask", *question])

    assert 0 == asked.exit_code, asked.output
    assert json.load(io.StringIO(asked.stdout))["paid"]["epsilon"] > 0


@pytest.mark.parametrize("absolute", [0.9, 0.3, 0.01])
def test_a_whole_number_is_bought_exactly_and_no_dearer(absolute, table):
    """Within less than one means the count itself, 95 times in 100: epsilon 3.66, however much is allowed."""
    with Session(table, budget=Budget(epsilon=500)) as session:
        answer = session.count(absolute=absolute, cap="all")
        again = session.plan(absolute=absolute / 2)

        assert 3.6 < answer.paid.value < 3.7
        assert answer.met
        assert again.free
        assert all(0 <= row["paid"] < 4 for row in again.prices)
