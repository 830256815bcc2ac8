"""Side doors: what fails after its charge, what is booked and cut, the engine's own doors, workers, large losses."""

import multiprocessing
import os

import numpy as np
import pyarrow as pa
import pytest
from attacks import mutant_checks

from farthing import Bounds, Budget, Gdp, Session, audit
from farthing.audit import bounding, charging, ruins
from farthing.errors import UnsupportedQuery
from farthing.ledger.store import Ledger
from farthing.mechanisms.keys import GaussianKeys
from farthing.session.choosing.top_k import SelectionOffer

pytestmark = pytest.mark.thorough

STILL_OPEN = (
    "SELECT COUNT(*) AS n FROM query('SELECT 1')",
    "SELECT COUNT(*) AS n FROM query_table('rides')",
    "SELECT COUNT(*) AS n FROM duckdb_settings()",
    "SELECT COUNT(*) AS n FROM duckdb_memory()",
    "SELECT COUNT(*) AS n FROM duckdb_temporary_files()",
    "SELECT COUNT(*) AS n FROM duckdb_views()",
    "SELECT COUNT(*) AS n FROM farthing_table",
    "SELECT COUNT(*) AS n FROM data WHERE x > getvariable('v')",
    "SET VARIABLE v = 1",
    "EXPLAIN ANALYZE SELECT COUNT(*) AS n FROM data",
    "PRAGMA database_list",
    "PRAGMA enable_profiling",
    "CREATE MACRO sqrt(a) AS a",
    "CREATE TABLE t AS SELECT * FROM data",
    "SELECT COUNT(*) AS n FROM data WHERE SQRT(x) > (SELECT 1)",
    "SELECT COUNT(*) AS n FROM data WHERE error('x') IS NULL",
)
"""What a locked connection still runs: it must not come through the SQL door."""


def test_a_failed_ask_stays_charged_and_tells_nothing():
    """Every kind of ask on a file that was ruined after it was opened."""
    assert () == audit.failing()


def test_a_forgotten_refund_is_found_for_every_kind(monkeypatch):
    """Books that give back what a failed ask was charged: counts, searches, reports, choices are all found."""
    monkeypatch.setattr(Ledger, "fail", lambda ledger, receipt: ledger.settle(receipt, 0, None))

    assert set(ruins.ASKS) == {finding.question for finding in audit.failing()}


def test_what_is_charged_is_what_it_costs():
    """Noise, choices, searches, spreads and parts are charged their price by the theory of each."""
    assert () == audit.accounts()


def test_a_forgotten_delta_is_found(monkeypatch):
    """Searches and choices whose delta is not booked, or whose delta is never asked for, are found."""
    reserve = Ledger.reserve
    monkeypatch.setattr(Ledger, "reserve", lambda ledger, **how: reserve(ledger, **how | {"delta": 0}))

    assert charging.searches_cost_their_delta()
    assert charging.choices_of_unlisted_groups_add_up()
    assert charging.the_delta_of_searches_ends()


def test_a_forgotten_price_is_found(monkeypatch):
    """Searches, reports and choices that are reserved at next to nothing, and settled at nothing, are found."""
    reserve, settle = Ledger.reserve, Ledger.settle
    free = {"increase": 1, "fresh": 1}  # at nothing the door to the rows stays shut
    monkeypatch.setattr(Ledger, "reserve", lambda ledger, **how: reserve(ledger, **how | free))
    monkeypatch.setattr(
        Ledger, "settle", lambda ledger, receipt, _, *stored, **how: settle(ledger, receipt, 0, *stored, **how)
    )

    assert charging.spreads_cost_what_they_say()
    assert charging.chosen_bounds_are_in_the_price()
    assert charging.choices_add_up() or charging.choices_of_unlisted_groups_add_up()
    assert charging.what_is_told_is_booked()


@pytest.mark.statistical
def test_a_lower_threshold_is_found(monkeypatch):
    """Keys that are told one unit too early: the delta of lone units passes what was booked."""
    found = GaussianKeys.found
    monkeypatch.setattr(GaussianKeys, "found", lambda rule, units: found(rule, units + 2))

    assert mutant_checks.keys()


def test_a_cheaper_choice_is_found(monkeypatch):
    """A choice of three booked as one."""
    price = SelectionOffer.__init__

    def cheaper(made, mechanism, cost, compared):
        k = getattr(mechanism, "k", 1)
        price(made, mechanism, type(cost).of_farthings(cost.farthings // k), compared)

    monkeypatch.setattr(SelectionOffer, "__init__", cheaper)

    assert charging.choices_add_up()


def test_contributions_are_bounded():
    """Groups, rows, values, parts and predicates, with noise far below what a bug would change."""
    assert () == audit.bounded()


@pytest.mark.parametrize(
    ("bounds", "found"),
    [(Bounds(max_groups=8, max_rows=3), "groups_are_cut"), (Bounds(max_groups=2, max_rows=12), "rows_are_cut")],
)
def test_bounds_that_do_not_hold_are_found(monkeypatch, bounds, found):
    """Units that count in more groups, or with more rows, than was declared."""
    monkeypatch.setattr(bounding, "AT_MOST", bounds)

    assert found in {finding.question for finding in audit.bounded()}


def test_the_engine_is_locked():
    """Files, copies, other databases, extensions, settings and variables of the process are out of its reach."""
    assert () == mutant_checks.lockdown()


@pytest.mark.parametrize("text", STILL_OPEN)
def test_what_a_locked_engine_still_runs_does_not_get_there(text):
    """Statements, state and functions of tables are refused by name, free of charge."""
    with Session(pa.table({"x": [1, 2]}), budget=Budget(mu=1)) as session:
        with pytest.raises(UnsupportedQuery):
            session.sql(text, absolute=1)
        assert not session.spent


def worker(answers):
    """Ask a question of its own, and tell what came."""
    with Session(pa.table({"k": [0]}), budget=Budget(mu=10)) as session:
        where = f"k > -{os.getpid()}"
        answers.put(session.count("k", keys={"k": range(8)}, loss=Gdp(1), where=where).value.tolist())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_worker_processes_draw_noises_of_their_own():
    """Workers that were forked after noise was drawn, and their parent, have no noise in common."""
    with Session(pa.table({"k": [0]}), budget=Budget(mu=10)) as session:
        mine = session.count("k", keys={"k": range(8)}, loss=Gdp(1)).value.tolist()
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    workers = [context.Process(target=worker, args=(answers,)) for _ in range(3)]
    for each in workers:
        each.start()
    told = [mine, *(answers.get(timeout=60) for _ in workers)]
    for each in workers:
        each.join(60)

    assert 4 == len({tuple(noise[1:]) for noise in told})


def test_means_at_a_large_loss_stay_within_it():
    """A mean for which mu 6 is named, 2^61 grains, is not one farthing above what was reserved."""
    for _ in range(20):
        with Session(pa.table({"x": [5.0] * 40}), budget=Budget(mu=60)) as session:
            paid = session.mean("x", lower=-10, upper=20, loss=Gdp(6)).paid
            assert paid <= Gdp(6)
            assert paid.value > 5.99


def test_a_mean_spends_a_named_loss_where_it_matters():
    """Of a mean in the middle of its range only the sum matters: its noise is within a third of the least there is."""
    groups, size, mu = 2_000, 40, 2.0
    table = pa.table({"k": np.repeat(np.arange(groups), size), "x": [0.5] * (groups * size)})
    with Session(table, budget=Budget(mu=40)) as session:
        told = session.mean("x", lower=0, upper=1, by="k", keys={"k": range(groups)}, loss=Gdp(mu)).value

    least = 0.5 / mu / size
    assert least * 0.9 < np.std(told) < least * 1.33


def test_nothing_is_left_in_the_engine_after_a_question():
    """Rows, keys, variables and temporary tables of one question are gone at the next."""
    table = pa.table({"g": [1, 2], "x": [1, 2]})
    with Session(table, budget=Budget(mu=1)) as session:
        session.count("g", keys={"g": [1, 2]}, loss=Gdp(0.1))
        connection = session._engine._connection
        with connection.cursor() as cursor:
            cursor.execute("SET VARIABLE v = 1")
            cursor.execute("CREATE TEMP TABLE t AS SELECT 1 AS x")
        with connection.cursor() as cursor:
            assert [(None,)] == cursor.execute("SELECT getvariable('v')").fetchall()
            assert [] == cursor.execute("SELECT table_name FROM duckdb_tables()").fetchall()
            assert [] == cursor.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
