"""The engine contract beyond counts: every measure, histogram, search, spread and join, on every real engine."""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import replace
from functools import cache, partial

import googlesql
import numpy as np
import printed_on_duckdb
import pyarrow as pa
import pytest
import warehouses
from backends import FOREIGN, GATED, IN_PROCESS, SPOKEN, SPOKEN_IN_SHORT, arrow, kept, postgres, sqlite, table_on
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from levels import ALPHA
from questions import (
    KINDS,
    PUBLIC,
    REQUESTS,
    SCHEMA,
    VISIT_ROWS,
    VISITS,
    agreed,
    asked,
    broken,
    expected,
    memory,
    told,
    without,
    worlds,
)
from questions_per_unit import asked_per_row, asked_per_unit
from spark_servers import spark_session
from sweeps import seeded, sweep

from farthing.engines import open_table
from farthing.engines.bounded import PARTS_SALT, bounded
from farthing.engines.duck import engine as duck_engine
from farthing.engines.duck import measures as duck_measures
from farthing.engines.foreign import engine as foreign_engine
from farthing.engines.foreign.total import PRINTED
from farthing.engines.memory import engine as memory_engine
from farthing.engines.memory.per_unit import feature
from farthing.errors import DataError, UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Type, counting
from farthing.query import query as query_module
from farthing.query.aggregates import Count, CountUnits, NamedAggregate, Sum
from farthing.query.expressions import And, Column, Compare, Literal, Operator
from farthing.query.joins import Join
from farthing.query.part import QueryPart

ENGINES = ["duckdb", pytest.param("polars", marks=pytest.mark.slow), *FOREIGN]
pytestmark = [pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"), pytest.mark.thorough]

EXAMPLES = sweep(2, 60)
SLOW = dict.fromkeys(("spark", *IN_PROCESS, *SPOKEN, "warehouse"), 1 / 3)
SHORT = [*IN_PROCESS, *(pytest.param(kind, marks=marks) for kind, marks in SPOKEN_IN_SHORT.items())]
CONFIG = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@cache
def beside(kind, name):
    """Return a public table of the generator on an engine, made once; one is there, one travels with the question."""
    kinds, rows = PUBLIC[name]
    return table_on(kind, rows, kinds) if name == "zones" else arrow(kept(kind, rows), kinds)


def opened(kind, rows, visits):
    """Return the engine of rows: with a public table of its own, one that is shipped, and a protected one."""
    if kind == "memory":
        return memory(rows, visits)
    return open_table(
        table_on(kind, rows, KINDS),
        name="data",
        public={name: beside(kind, name) for name in PUBLIC},
        protected={"visits": table_on(kind, visits, VISITS)},
    )


def holds(kind, one, rows, draw):
    """Return what an engine says otherwise than the slow one, and where removing a unit does more than it may."""
    rows, visits = kept(kind, rows), kept(kind, VISIT_ROWS)
    fewer = without(draw, one.queries[0].unit, rows, visits)
    engines = [opened(kind, *tables) for tables in ((rows, visits), fewer)]
    full, less = ([told(engine, one, query) for query in one.queries] for engine in engines)
    wrong = [] if bool(engines[0].fingerprint(one.queries[0])) == bounded(one.queries[0]).chooses else ["fingerprint"]
    for query, found in zip(one.queries, full, strict=True) if kind != "memory" else ():
        truth = agreed(
            engines[0],
            lambda hashes: memory(
                rows, visits, hashes, {name: kept(kind, found) for name, (_, found) in PUBLIC.items()}
            ),
            partial(told, one=one, query=query),
            keys=one.ask == "found",
        )
        if expected(one, query, truth) != expected(one, query, found):
            wrong.append(f"{truth} became {found}: {query}")
    return [*wrong, *broken(one, full, less)]


@st.composite
def one_measure(draw, ask, palette):
    """Return two questions of one request, of means: all aggregates of all parts at once take seconds to plan."""
    whole = draw(asked(ask, palette))
    return replace(whole, queries=tuple(replace(one, outputs=one.outputs[4:5]) for one in whole.queries[:2]))


def pairs():
    """Return what is asked of which engine: of Spark, which takes seconds an example, measures alone in the gate."""
    found = []
    for ask in REQUESTS:
        for kind in ("memory", *ENGINES):
            name, marks = (kind, []) if isinstance(kind, str) else (kind.values[0], list(kind.marks))
            late = [pytest.mark.slow] if name == "spark" and ask != "measure" else []
            found.append(pytest.param(name, ask, marks=marks + late, id=f"{ask}-{name}"))
    return found


def checked(kind, ask, examples, questions=asked):
    """Hold one engine to the slow one and to the FLOOR on so many tables and questions."""

    @seeded
    @settings(CONFIG, max_examples=examples, phases=(Phase.generate,), database=None)
    @given(world=worlds(), data=st.data())
    def each(world, data):
        palette, rows = world
        assert [] == holds(kind, data.draw(questions(ask, palette)), rows, data.draw)

    each()


@pytest.mark.parametrize(("kind", "ask"), pairs())
def test_answers_and_floor(kind, ask):
    """Every answer is the slow engine's with the same hash; a unit moves one part, few groups, each by little."""
    share = {"postgres": 1, "sqlite": 1 / 2, **SLOW}  # Spark takes seconds an example
    checked(kind, ask, max(1, int(EXAMPLES * share.get(kind, 4))))


@pytest.mark.parametrize(("kind", "ask"), pairs())
def test_answers_and_floor_of_rows_made_of_units(kind, ask):
    """The same of questions of rows that are made of one unit's rows each, nested and joined."""
    share = {"postgres": 1 / 2, "sqlite": 1 / 3, **SLOW, "spark": 1 / 6}
    checked(kind, ask, max(1, int(EXAMPLES * share.get(kind, 3))), asked_per_unit)


@pytest.mark.parametrize("kind", ["memory", *ENGINES])
@pytest.mark.parametrize("ask", sweep(["measure"], REQUESTS))
def test_answers_and_floor_of_rows_beside_windows(kind, ask):
    """The same of rows beside what windows by the unit tell of them, and of the rows of several tables."""
    share = {"memory": 1, "duckdb": 3, "postgres": 1 / 2, "sqlite": 1 / 3, **SLOW, "spark": 1 / 6}
    checked(kind, ask, max(1, int(EXAMPLES * share.get(kind, 1))), asked_per_row)


@pytest.mark.parametrize(
    ("ask", "questions"),
    [("found", asked), ("found", asked_per_unit), ("measure", asked_per_unit), ("measure", asked_per_row)],
)
def test_sqlite_in_short(ask, questions):
    """A few questions; what SQLite is asked above takes minutes."""
    checked("sqlite", ask, 1, questions)


@pytest.mark.parametrize("ask", REQUESTS)
def test_lazy_frames_of_polars_in_short(ask):
    """A few questions of every request; the whole generator's is in the slow tier."""
    checked("polars", ask, 2)


def called(sql):
    """Return the words before brackets of a text, without its constants and names."""
    plain = re.sub(r"'(?:[^'\\]|''|\\.)*'", "''", sql)
    return {word.upper() for word in re.findall(r"([A-Za-z_][A-Za-z_0-9]*)\s*\(", re.sub(r'"[^"]*"', "", plain))}


@pytest.mark.parametrize("kind", SHORT)
@pytest.mark.parametrize(("ask", "questions"), [("found", asked), ("found", asked_per_unit), ("measure", one_measure)])
def test_engines_in_process_in_short(kind, ask, questions, monkeypatch):
    """A few questions, and what is sent is of listed functions; the whole generator's is in the slow tier."""
    backend = opened(kind, [], [])._backend
    sent, text = [], type(backend).text
    monkeypatch.setattr(type(backend), "text", lambda *args: sent.append(text(*args)) or sent[-1])
    checked(kind, ask, 1, questions)
    listed = {name for word in backend.dialect.words.values() for name in called(word)} | {*PRINTED}

    assert set() == {name for sql in sent for name in called(sql)} - listed


@pytest.mark.parametrize("kind", IN_PROCESS)
def test_rows_that_are_units_are_told_apart_exactly(kind):
    """100,000 rows beside a table count as 100,000 units: an estimate of how many differ would miss by hundreds."""
    rows = [{"i": 0}] * 100_000
    engine = open_table(table_on(kind, rows, {"i": Type.INTEGER}), name="data", public={"zones": beside(kind, "zones")})
    joins = (Join("zones", Compare(Column("i"), Operator.EQ, Column("zones.id")), fan_out=1),)
    outputs = (NamedAggregate("n", CountUnits()),)
    query = Query("data", (), None, None, outputs, PrivacyUnit(), Bounds(), joins=joins)

    assert [[100_000]] == engine.measure(query, 7).tolist()


@pytest.mark.parametrize("kind", IN_PROCESS)
def test_keys_of_times_and_reals_travel_as_they_are(kind):
    """A key in the year 1 or 9999, to the microsecond, and a real of all its digits each meet their own row."""
    times = [dt.datetime(1, 1, 1), dt.datetime(2013, 3, 31, 2, 30, 1, 5), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]  # noqa: DTZ001
    reals = [0.1, 1 / 3, 5e-324]
    rows = [{"t": time, "f": real} for time, real in zip(times, reals, strict=True)]
    engine = open_table(table_on(kind, rows, {"t": Type.TIMESTAMP, "f": Type.FLOAT}), name="data")
    for name, listed in (("t", times), ("f", reals)):
        keys = Keys.of((name,), {name: listed}, engine.schema)
        query = Query("data", (name,), keys, None, counting("n"), PrivacyUnit(), Bounds())
        engine.fingerprint(query)

        assert [[1, 1, 1]] == engine.measure(query, 7).tolist()


@pytest.mark.parametrize("kind", IN_PROCESS)
def test_thousands_of_keys_travel(kind):
    """A question that was prepared is answered: 4,000 constants of a text are no 4,000 steps of a plan."""
    rows = [{"u": "a", "i": 3}, {"u": "b", "i": 3999}, {"u": "c", "i": 4000}]
    engine = open_table(table_on(kind, rows, {"u": Type.STRING, "i": Type.INTEGER}), name="data")
    keys = Keys.of(("i",), {"i": range(4000)}, engine.schema)
    query = Query("data", ("i",), keys, None, counting("n"), PrivacyUnit("u"), Bounds(1, 1))
    engine.fingerprint(query)
    counts = engine.measure(query, 7)[0]

    assert [3, 3999] == counts.nonzero()[0].tolist()


@pytest.mark.parametrize("kind", ENGINES)
def test_tables_are_told(kind):
    """Columns and their types, which tables are public, and the values of a public one."""
    engine = opened(kind, [], VISIT_ROWS)

    assert engine.schema == SCHEMA
    assert frozenset(PUBLIC) == engine.public
    assert {*PUBLIC, "visits"} == set(engine.tables)
    assert ["a", "b", "c", "d"] == engine.listed("name", "zones").to_pylist()
    assert [1.0] == engine.listed("w", "sides").to_pylist()


@pytest.mark.parametrize("kind", ENGINES)
def test_spreads_of_rows_beside_a_table(kind):
    """Where rows are units, what one row becomes by a join is one unit's: spreads are the slow engine's."""
    rows = [dict.fromkeys(KINDS) | {"i": place, "f": 2.0**place} for place in (0, 1, 1, 7)]
    joins = (Join("zones", Compare(Column("i"), Operator.EQ, Column("zones.id")), fan_out=2),)
    query = Query("data", (), None, None, counting("n"), PrivacyUnit(), Bounds(), joins=joins)
    spreads = [engine.spread(query, Column("f"), 3) for engine in (opened(kind, rows, []), memory(rows, []))]

    assert [1, 2] == spreads[0].rows[:2].tolist()
    for name in ("groups", "rows", "least", "greatest"):
        assert getattr(spreads[0], name).tolist() == getattr(spreads[1], name).tolist()


def after_joins(steps):
    """Choose homes from the rows that joins have left."""
    home, *rest, where = steps
    return (*rest, home, where)


def after_where(steps):
    """Choose homes from the rows that count."""
    home, *rest = steps
    return (*rest, home)


def everywhere(steps):
    """Count a unit in each of its parts."""
    home, *rest, where = steps
    here = home.parts[home.place]
    return (*rest, replace(where, condition=here if where.condition is None else And((where.condition, here))))


def max_groups_forgotten(steps):
    """Leave the steps alone; groups are not cut."""
    return steps


PLANTED = [
    *(
        (kind, bug)
        for bug in (after_joins, everywhere)
        for kind in sweep(("memory", "duckdb"), ("memory", "duckdb", "postgres"))
    ),
    *(("memory", after_where), ("postgres", after_where)),  # DuckDB's text of that does not run
    *(("memory", max_groups_forgotten), ("duckdb", max_groups_forgotten)),
]


@pytest.mark.parametrize(("kind", "bug"), PLANTED)
def test_a_planted_bug_breaks_the_floor(kind, bug, monkeypatch):
    """Homes chosen too late, or not at all, in the one description: engines agree, and the FLOOR still sees it."""

    def planted(query):
        honest = bounded(query)
        whole = replace(honest, max_groups=None) if bug is max_groups_forgotten else honest
        return replace(whole, steps=bug(whole.steps)) if honest.parted else whole

    for engine in (memory_engine, duck_engine, foreign_engine):
        monkeypatch.setattr(engine, "bounded", planted)
    with pytest.raises(AssertionError, match="moved"):
        checked(kind, "measure", 100)


@pytest.mark.parametrize("kind", ["memory", "duckdb"])
def test_one_row_a_unit_where_it_has_several_breaks_the_floor(kind, monkeypatch):
    """Planted: every question of derived rows is taken for one of one row a unit; the FLOOR sees units move more."""
    monkeypatch.setattr(query_module, "one_row", lambda derived, *_: bool(derived))
    with pytest.raises(AssertionError, match="moved"):
        checked(kind, "measure", 60, asked_per_unit)


def test_the_share_of_one_group_in_several_is_caught(monkeypatch):
    """Planted: where groups are found every unit counts as if it kept one, so that it moves more than it may."""
    monkeypatch.setattr(duck_measures, "_many", lambda _, shares: ["1 AS many"] if shares else [])
    with pytest.raises(AssertionError, match=r"moved|Counter"):
        checked("duckdb", "found", 60)


def test_a_window_that_forgets_the_unit_breaks_the_floor(monkeypatch):
    """Planted: windows over the rows of all units; the FLOOR sees other units move."""

    def mixed(each, rows, unit, scope):
        rows = list(rows)
        told = windowed(each, [(0, row) for _, row in rows], unit, scope)
        keys = [name for name, _ in each.columns]
        units = {repr([row[key] for key in keys]): row[unit] for row in windowed(each, rows, unit, scope)}
        return [row | {unit: units[repr([row[key] for key in keys])]} for row in told]

    windowed = memory_engine.windowed
    monkeypatch.setattr(memory_engine, "windowed", mixed)
    with pytest.raises(AssertionError, match="moved"):
        checked("memory", "measure", 60, asked_per_row)


def test_a_union_that_makes_two_units_of_one_breaks_the_floor(monkeypatch):
    """Planted: the unit of a row is told by its SELECT, too, so that the bounds hold each SELECT by itself."""

    def apart(each, parts, unit, scopes):
        told = [stacked(replace(each, branches=(one,)), [rows], unit, [scope])
                for one, rows, scope in zip(each.branches, parts, scopes, strict=True)]  # fmt: skip
        return [row | {unit: f"{place} {row[unit]}"} for place, rows in enumerate(told) for row in rows]

    stacked = memory_engine.stacked
    monkeypatch.setattr(memory_engine, "stacked", apart)
    with pytest.raises(AssertionError, match="moved"):
        checked("memory", "measure", 60, asked_per_row)


def test_rows_that_mix_units_break_the_floor(monkeypatch):
    """Planted: every unit's row tells of the rows of all units; the FLOOR sees other units move."""

    def mixed(each, rows, unit, scope):
        rows = list(rows)
        whole = {name: feature(one, [row for _, row in rows], scope) for name, one in each.features}
        return [row | whole for row in gathered(each, rows, unit, scope)]

    gathered = memory_engine.gathered
    monkeypatch.setattr(memory_engine, "gathered", mixed)
    with pytest.raises(AssertionError, match="moved"):
        checked("memory", "measure", 60, asked_per_unit)


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_an_engine_with_an_order_of_its_own_is_caught(kind, monkeypatch):
    """Where one engine alone chooses homes after joins, its answers are not the slow engine's."""

    def planted(query):
        honest = bounded(query)
        return replace(honest, steps=after_joins(honest.steps)) if honest.parted else honest

    for engine in (duck_engine, foreign_engine):
        monkeypatch.setattr(engine, "bounded", planted)
    with pytest.raises(AssertionError, match=r"became|Counter"):  # another answer, or a unit in several parts
        checked(kind, "measure", 100)


@pytest.mark.parametrize("kind", ENGINES)
def test_a_unit_counts_in_one_part_whatever_is_joined(kind):
    """Of 8 parts, each asked beside a public table that drops all rows of the others, a unit counts in one."""
    parts, units = 8, 200
    rows = [{"u": f"u{n}", "i": place, "f": 1.0} for n in range(units) for place in range(parts)]
    kinds = {"u": Type.STRING, "i": Type.INTEGER, "f": Type.FLOAT}
    one = {f"z{place}": table_on(kind, [{"id": place}], {"id": Type.INTEGER}) for place in range(parts)}
    engine = open_table(table_on(kind, rows, kinds), name="data", public=one)
    outputs = (NamedAggregate("n", Count()), NamedAggregate("s", Sum(Column("f"), 0.0, 3.0)))
    sums = np.zeros(2, np.int64)
    for place in range(parts):
        part = QueryPart("i", tuple(map(Literal, range(parts))), place)
        join = Join(f"z{place}", Compare(Column("i"), Operator.EQ, Column(f"z{place}.id")))
        query = Query("data", (), None, None, outputs, PrivacyUnit("u"), Bounds(max_rows=1), part, joins=(join,))
        sums += engine.measure(query, 7)[:, 0]

    limits = [measure.sensitivity(1) for measure in query.measures]
    assert units == sums[0]
    assert all(sums <= np.multiply(units, limits))


@pytest.mark.statistical
@pytest.mark.parametrize(
    "kind",
    [
        "postgres",
        pytest.param("sqlite", marks=pytest.mark.slow),
        pytest.param("spark", marks=[pytest.mark.xdist_group("spark"), pytest.mark.slow]),
    ],
)
def test_kept_groups_are_chosen_evenly(kind):
    """Each group is kept as often as any other, other keys choose other groups, and a lazy hash would be seen."""
    units, groups, most = 6000, 6, 2
    rows = [{"u": n, "g": g} for n in range(units) for g in (0, 0, *range(groups))]
    engine = open_table(table_on(kind, rows, {"u": Type.INTEGER, "g": Type.INTEGER}), name="data")
    keys = Keys.of(("g",), {"g": range(groups)}, engine.schema)
    query = Query("data", ("g",), keys, None, counting("n"), PrivacyUnit("u"), Bounds(most, 1))
    counts = [engine.measure(query, key)[0] for key in (1, 2, 1)]
    band = math.sqrt(math.log(2 * groups * 2 / ALPHA) * units / 2)  # Hoeffding, for both keys and all groups

    assert all(most * units == count.sum() for count in counts)
    assert max(np.abs(count - units * most / groups).max() for count in counts) < band
    assert counts[0].tolist() == counts[2].tolist() != counts[1].tolist()
    assert abs(units - units * most / groups) > band  # all units keeping the same two groups


@pytest.mark.statistical
@pytest.mark.parametrize("kind", GATED)
def test_hash_keys_are_independent(kind):
    """What a unit keeps under one key tells nothing of another key, nor of its part; a hash without its key would."""
    units = 4000
    backend = open_table(table_on(kind, [{"u": 1}], {"u": Type.INTEGER}), name="data")._backend
    pairs = pa.table({"u": pa.array(range(units), pa.int64())})
    named = backend.beside(pairs, "pairs")
    bits = {}
    for key in (1, 2, 1 ^ PARTS_SALT, 2**63 + 1):
        first, second = (backend.hash(named.u, [named.u * 0 + place], key) for place in (0, 1))
        here = named.select("u", a=first, b=second)
        table = backend.run(here, {"pairs": pairs}).sort_by("u")
        bits[key] = np.array(table["a"].to_pylist()) < np.array(table["b"].to_pylist())
    band = math.sqrt(math.log(2 * 10 / ALPHA) * units / 2)

    assert all(abs(one.sum() - units / 2) < band for one in bits.values())
    assert all(abs((bits[1] == bits[key]).sum() - units / 2) < band for key in bits if key != 1)
    assert units / 2 > band  # agreement everywhere would be seen


@pytest.mark.parametrize("kind", GATED)
def test_fingerprints_and_refusals(kind):
    """The hash is named only where something is given up; what cannot run is refused by name before it does."""
    engine = open_table(table_on(kind, [], KINDS), name="data")
    keys = Keys.of(("s",), {"s": ["a", "b"]}, SCHEMA)

    def asked(unit, most, where=None):
        return Query("data", ("s",), keys, where, counting("n"), PrivacyUnit(unit), Bounds(most, 1))

    names = [engine.fingerprint(asked(unit, 1)) for unit in ("u", "v")]
    assert "" == engine.fingerprint(asked("u", 2)) == engine.fingerprint(asked(None, None))
    assert len({*names, ""}) == 3
    assert names[0] == engine.fingerprint(asked("u", 1))
    with pytest.raises(UnsupportedQuery) as caught:
        engine.fingerprint(asked("u", 2, Compare(Column("s"), Operator.EQ, Literal("a\0b"))))
    assert "NUL" == caught.value.construct


@pytest.mark.parametrize("kind", GATED)
def test_engine_errors_are_constant(kind):
    """A table that is gone gives the one constant error, and the connection answers again afterwards."""
    gone = table_on(kind, [{"u": "secret"}], {"u": Type.STRING})
    engine = open_table(gone, name="data")
    query = Query("data", (), None, None, counting("n"), PrivacyUnit(), Bounds())
    if kind in (*IN_PROCESS, "warehouse"):
        warehouses.connection(kind).drop_table(gone.get_name())
    elif kind == "databricks":
        spark_session().catalog.dropTempView(gone.get_name())
    elif kind in ("snowflake", "trino"):
        printed_on_duckdb.connection(kind).drop(gone.get_name())
    elif kind == "bigquery":
        del googlesql.connection().tables[gone.get_name()]
    elif kind in ("postgres", "sqlite"):
        {"postgres": postgres, "sqlite": sqlite}[kind]().con.execute(f'DROP TABLE "{gone.get_name()}"')
    else:
        session = spark_session()
        for view in session.catalog.listTables():
            session.catalog.dropTempView(view.name)
    with pytest.raises(DataError, match="the engine could not finish the query") as caught:
        engine.measure(query, 0)

    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    again = open_table(table_on(kind, [{"u": "x"}], {"u": Type.STRING}), name="data")
    assert [[1]] == again.measure(query, 0).tolist()


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("unit", [None, "u"])
def test_what_is_no_number_has_no_spread_of_values(kind, unit):
    """Texts of which one is no number, days and truth values: groups and rows are told, and nothing can fail."""
    kinds = {"u": Type.INTEGER, "s": Type.STRING, "d": Type.DATE, "b": Type.BOOLEAN}
    rows = [{"u": at // 2, "s": "x" if at == 3 else "1", "d": dt.date(2020, 1, 1), "b": True} for at in range(8)]
    engine = open_table(table_on(kind, rows, kinds), name="data")
    query = Query("data", (), None, None, (), PrivacyUnit(unit), Bounds(1, 1))
    for column in ("s", "d", "b"):
        spread = engine.spread(query, Column(column), 5)

        assert (8 if unit is None else 4) == spread.groups.sum() == spread.rows.sum()
        assert 0 == spread.least.sum() == spread.greatest.sum()
