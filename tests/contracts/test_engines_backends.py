"""The engine contract beyond counts: every measure, histogram, search, spread and join, on every real engine."""

# ruff: noqa: DTZ001  times in questions have no zone

from __future__ import annotations

import datetime as dt
import math
import os

import numpy as np
import pyarrow as pa
import pytest
from backends import FOREIGN, arrow, postgres, table_on
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from levels import ALPHA
from spark_servers import spark_session

from farthing.engines import open_table
from farthing.engines.engine import PARTS_SALT
from farthing.engines.memory.engine import Beside, MemoryEngine
from farthing.errors import DataError, UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type, counting
from farthing.query.aggregates import Count, CountUnits, Output, Quantile, Sum, Variance
from farthing.query.expressions import Call, Column, Compare, Function, Literal, Operator
from farthing.query.joins import Join
from farthing.query.part import Part

ENGINES = ["duckdb", *FOREIGN]
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")

KINDS = {"u": Type.STRING, "v": Type.INTEGER, "s": Type.STRING, "i": Type.INTEGER, "f": Type.FLOAT, "d": Type.DATE,
         "t": Type.TIMESTAMP, "z": Type.TIMESTAMP, "b": Type.BOOLEAN}  # fmt: skip
SCHEMA = Schema.of(KINDS)
TIMES = [dt.datetime(1, 1, 1), dt.datetime(2013, 3, 31, 2, 30, 1, 5), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)]
VALUES = {
    "u": ["", "ann", "bob", "cy", "Ann"],
    "v": [1, 2, 3, 2**63 - 1, -(2**63)],
    "s": ["", "a", "A", "é", "日本", "'", "%", "\\", " a"],
    "i": [0, 1, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63)],
    "f": [0.0, -0.0, 1.5, -2.5, 99.0, math.inf, -math.inf, math.nan, 1e300, 5e-324],
    "d": [dt.date(1, 1, 1), dt.date(2013, 1, 31), dt.date(9999, 12, 31)],
    "t": TIMES,
    "z": TIMES,
    "b": [True, False],
}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.sampled_from([None, *values]) for name, values in VALUES.items()}), max_size=30
)
CONFIG = settings(
    max_examples=int(os.environ.get("FARTHING_ENGINE_EXAMPLES", "6")),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def questions(outputs, where=True):
    """Return questions with the given outputs, that cut rows and groups or not."""

    @st.composite
    def drawn(draw):
        by = tuple(draw(st.lists(st.sampled_from("sifdtzb"), max_size=2, unique=True)))
        lists = {}
        for column in by:
            fit = [x for x in VALUES[column] if not (isinstance(x, float) and (math.isnan(x) or str(x) == "-0.0"))]
            lists[column] = draw(st.lists(st.sampled_from([None, *fit]), min_size=1, max_size=5, unique=True))
        keys = Keys.of(by, lists or None, SCHEMA)
        condition = Compare(Column("i"), Operator.GE, Literal(0)) if where and draw(st.booleans()) else None
        unit = draw(st.sampled_from([None, "u", "v"]))
        bounds = Bounds(draw(st.integers(1, 6)), draw(st.integers(1, 3)))
        part = None
        if draw(st.integers(0, 3)) == 0:
            part = Part("b", (Literal(value=True), Literal(value=False)), draw(st.integers(0, 1)))
        return Query("data", by, keys, condition, outputs, PrivacyUnit(unit), bounds, part=part)

    return drawn()


class Hashes:
    """An engine's own hash, asked for in batches: what is not known yet is guessed, noted, and the run repeated."""

    def __init__(self, engine):
        self.engine, self.known, self.missing = engine, {}, []

    def __call__(self, unit, place, key):
        places = place if isinstance(place, tuple) else (place,)
        found = self.known.get((unit, places, key))
        if found is None:
            self.missing.append((unit, places, key))
        return found or 0

    def fetch(self):
        """Ask the engine for all that is missing."""
        backend = self.engine._backend
        for key, many in {(key, len(places)) for _, places, key in self.missing}:
            asked = sorted({(u, p) for u, p, k in self.missing if k == key and len(p) == many}, key=repr)
            columns = {"n": pa.array(range(len(asked)), pa.int64()), "u": pa.array([u for u, _ in asked])}
            for at in range(len(asked[0][1])):
                columns[f"p{at}"] = pa.array([p[at] for _, p in asked], pa.int64())
            pairs = pa.table(columns)
            named = backend.beside(pairs, "pairs")
            places = [named[f"p{at}"] for at in range(len(asked[0][1]))]
            table = backend.run(named.select("n", h=backend.hash(named.u, places, key)), {"pairs": pairs})
            found = dict(zip(table["n"].to_pylist(), table["h"].to_pylist(), strict=True))
            self.known |= {(*one, key): found[n] + 2**63 + 1 for n, one in enumerate(asked)}
        self.missing = []


def agreed(engine, memory_of, ask):
    """Return what the slow engine says with the hash of the fast one."""
    hashes = Hashes(engine)
    for _ in range(4):
        answer = ask(memory_of(hashes))
        if not hashes.missing:
            return answer
        hashes.fetch()
    raise AssertionError("the hash is asked for ever new values")


MANY = (
    Output("n", Count()),
    Output("m", Count(Column("f"))),
    Output("units", CountUnits()),
    Output("total", Sum(Column("f"), -3.0, 10.0)),
    Output("var", Variance(Column("i"), 0, 5)),
)


def expected(engine, rows, ask):
    """Return the slow engine's answer, with the same choice of groups where there is one."""
    return agreed(engine, lambda hashes: MemoryEngine(rows, SCHEMA, keyed_hash=hashes), ask)


@pytest.mark.parametrize("kind", FOREIGN)
@CONFIG
@given(rows=ROWS, query=questions(MANY), key=st.sampled_from([0, 7, 2**64 - 1]))
def test_measures(kind, rows, query, key):
    """Every measure is that of the slow engine, given the same hash: cut or not, in parts or not."""
    engine = open_table(table_on(kind, rows, KINDS), name="data")

    assert engine.schema == SCHEMA
    truth = expected(engine, rows, lambda memory: memory.measure(query, key))
    assert truth.tolist() == engine.measure(query, key).tolist()


@pytest.mark.parametrize("kind", FOREIGN)
@CONFIG
@given(rows=ROWS, query=questions((Output("q", Quantile(Column("f"), 0.5, -5.0, 100.0, 4)),)), key=st.just(5))
def test_histograms(kind, rows, query, key):
    """Histograms are those of the slow engine, given the same hash."""
    engine = open_table(table_on(kind, rows, KINDS), name="data")
    quantile = query.aggregate
    truth = expected(engine, rows, lambda memory: memory.histogram(query, quantile, key))
    found = engine.histogram(query, quantile, key)

    assert [truth.groups.tolist(), truth.leaves.tolist(), truth.counts.tolist()] == [
        found.groups.tolist(),
        found.leaves.tolist(),
        found.counts.tolist(),
    ]


def searches(column_count=2):
    """Return searches for keys."""
    return st.builds(
        lambda by, unit, most: Query("data", tuple(by), None, None, (), PrivacyUnit(unit), Bounds(most, 1)),
        st.lists(st.sampled_from("sifdtzb"), min_size=1, max_size=column_count, unique=True),
        st.sampled_from([None, "u", "v"]),
        st.integers(1, 3),
    )


def told(found):
    """Return found groups as a comparable mapping."""
    keys = [tuple(map(repr, key.values())) for key in found.keys.to_pylist()]
    return dict(zip(keys, found.units.tolist(), strict=True))


@pytest.mark.parametrize("kind", ENGINES)
@CONFIG
@given(rows=ROWS, query=searches(), key=st.just(3))
def test_searches(kind, rows, query, key):
    """Without a cut the groups found are those of the slow engine; with one each unit keeps as many as it may."""
    engine = open_table(table_on(kind, rows, KINDS), name="data")
    from dataclasses import replace

    whole = replace(query, bounds=Bounds(10**6, 1))
    everything, cut = engine.found(whole, key), engine.found(query, key)
    slow = MemoryEngine(rows, SCHEMA)

    assert told(slow.found(whole, key)) == told(everything)
    assert everything.keys.schema.names == list(query.by)
    assert slow.found(query, key).units.sum() == cut.units.sum()
    assert all(n <= told(everything)[one] for one, n in told(cut).items())


@pytest.mark.parametrize("kind", FOREIGN)
@CONFIG
@given(rows=ROWS, query=questions(counting("n")), value=st.sampled_from([None, Column("f"), Column("i")]))
def test_spreads(kind, rows, query, value):
    """What units would contribute without bounds is what the slow engine tells."""
    engine = open_table(table_on(kind, rows, KINDS), name="data")
    truth = expected(engine, rows, lambda memory: memory.spread(query, value, 9))
    found = engine.spread(query, value, 9)

    for name in ("groups", "rows", "least", "greatest"):
        assert getattr(truth, name).tolist() == getattr(found, name).tolist(), name


ZONES = {"id": Type.INTEGER, "name": Type.STRING}
VISITS = {"u": Type.STRING, "cost": Type.FLOAT}
ZONE_ROWS = [{"id": 0, "name": "a"}, {"id": 1, "name": "b"}, {"id": 1, "name": "c"}, {"id": None, "name": "d"}]
VISIT_ROWS = [{"u": u, "cost": c} for u, c in [("ann", 1.5), ("ann", 2.0), ("bob", math.nan), (None, 3.0), ("cy", 4.0)]]
ON_ZONE = Compare(Column("i"), Operator.EQ, Column("zones.id"))
ON_UNIT = Compare(Column("u"), Operator.EQ, Column("visits.u"))


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize("shipped", [False, True])
@CONFIG
@given(rows=ROWS, left=st.booleans(), which=st.sampled_from(["zones", "row", "visits"]))
def test_joins(kind, shipped, rows, left, which):
    """Joins with public tables (on the backend or not), with a fan-out, and with protected ones of the same unit."""
    public = arrow(ZONE_ROWS, ZONES) if shipped else table_on(kind, ZONE_ROWS, ZONES)
    engine = open_table(
        table_on(kind, rows, KINDS),
        name="data",
        public={"zones": public},
        protected={"visits": table_on(kind, VISIT_ROWS, VISITS)},
    )
    zones, visits = Beside(ZONE_ROWS, Schema.of(ZONES)), Beside(VISIT_ROWS, Schema.of(VISITS), public=False)
    join, unit, value = {
        "zones": (Join("zones", ON_ZONE, left=left), "u", Column("f")),
        "row": (Join("zones", ON_ZONE, left=left, fan_out=1), None, Column("f")),
        "visits": (Join("visits", ON_UNIT, left=left, public=False), "u", Column("visits.cost")),
    }[which]
    outputs = (Output("n", Count()), Output("u", CountUnits()), Output("s", Sum(value, 0.0, 10.0)))
    query = Query("data", (), None, None, outputs, PrivacyUnit(unit), Bounds(max_rows=2), joins=(join,))

    slow = MemoryEngine(rows, SCHEMA, beside={"zones": zones, "visits": visits})

    assert frozenset({"zones"}) == engine.public
    assert "" == engine.fingerprint(query)
    assert slow.measure(query, 1).tolist() == engine.measure(query, 1).tolist()
    assert ["a", "b", "c", "d"] == engine.listed("name", "zones").to_pylist()


@pytest.mark.parametrize("kind", ENGINES)
@CONFIG
@given(rows=ROWS)
def test_groupings_by_expressions(kind, rows):
    """Groups may be expressions: their places are those of the slow engine."""
    engine = open_table(table_on(kind, rows, KINDS), name="data")
    grouping = (("tens", Call(Function.INTEGER_DIVIDE, (Column("i"), Literal(10)))),)
    keys = Keys.of(("tens",), {"tens": [0, None, -1, 900719925474099]}, Schema.of({"tens": Type.INTEGER}))
    query = Query("data", ("tens",), keys, None, counting("n"), PrivacyUnit("u"), Bounds(9, 2), groupings=grouping)

    assert MemoryEngine(rows, SCHEMA).measure(query, 1).tolist() == engine.measure(query, 1).tolist()


@pytest.mark.statistical
@pytest.mark.parametrize("kind", FOREIGN)
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
@pytest.mark.parametrize("kind", FOREIGN)
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


@pytest.mark.parametrize("kind", FOREIGN)
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


@pytest.mark.parametrize("kind", FOREIGN)
def test_engine_errors_are_constant(kind):
    """A table that is gone gives the one constant error, and the connection answers again afterwards."""
    gone = table_on(kind, [{"u": "secret"}], {"u": Type.STRING})
    engine = open_table(gone, name="data")
    query = Query("data", (), None, None, counting("n"), PrivacyUnit(), Bounds())
    if kind == "postgres":
        postgres().con.execute(f'DROP TABLE "{gone.get_name()}"')
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
