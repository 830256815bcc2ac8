"""Every SQL text that is sent to a private table is total: nothing in it can fail, whatever a row holds."""

import ast
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hostile import predicates, scalars
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sent import Sent
from sources import nodes
from sweeps import sweep

import farthing
from farthing.engines import open_table
from farthing.engines.bounded import bounded
from farthing.engines.duck import measures
from farthing.engines.duck.engine import DuckDBEngine
from farthing.engines.duck.functions import Text
from farthing.engines.duck.scalars import DuckScalars
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type
from farthing.query.aggregates import Count, CountUnits, Mean, NamedAggregate, Quantile, Sum, Variance
from farthing.query.counts import CountValues
from farthing.query.crossing import Crossing
from farthing.query.expressions import Column, Compare, Literal, Operator, type_of
from farthing.query.joins import Join
from farthing.query.pairs import Pair
from farthing.query.part import QueryPart
from farthing.query.per_row import (
    FRAMED,
    PLACES,
    SortKey,
    Stacked,
    StackedPart,
    Window,
    Windowed,
    WindowFrame,
    WindowKind,
)
from farthing.query.per_unit import Feature, FeatureKind, PerUnit

DUCK = Path(farthing.__file__).parent / "engines" / "duck"
FAR = [None, 0, 2**62, -(2**62)]
COLUMNS = {
    "tiny": pa.array([None, 0, 127, -128], pa.int8()),
    "small": pa.array([None, 0, 1, 65535], pa.uint16()),
    "whole": pa.array([None, 0, 2**63 - 1, -(2**63)], pa.int64()),
    "huge": pa.array([None, 0, 1, 2**64 - 1], pa.uint64()),
    "single": pa.array([None, 0, float("nan"), float("inf")], pa.float32()),
    "real": pa.array([None, 5e-324, float("nan"), -1.7e308], pa.float64()),
    "money": pa.array([None, Decimal("0.01"), Decimal(1), Decimal("-9999999999.99")], pa.decimal128(12, 2)),
    "word": pa.array([None, "", "person\0' --", "1e400"], pa.string()),
    "yes": pa.array([None, True, False, True], pa.bool_()),
    "day": pa.array([None, 0, 2**31 - 2, -(2**31) + 2], pa.int32()).cast(pa.date32()),
    "second": pa.array([None, 0, 2**40, -(2**40)], pa.timestamp("s")),
    "micro": pa.array(FAR, pa.timestamp("us")),
    "nano": pa.array(FAR, pa.timestamp("ns")),
    "zoned": pa.array(FAR, pa.timestamp("us", "UTC")),
    "kind": pa.array([None, "a", "b", "a"]).dictionary_encode(),
    "many": pa.array([None, [1], [], [None]], pa.list_(pa.int64())),
    "u": pa.array([None, 1, 1, 2], pa.int64()),
}
SIDE = pa.table({"k": ["", "a", None], "w": [1.5, float("nan"), 2.0]})
OWNED = pa.table({"u": [1, 1, None], "z": [1, 2**63 - 1, 3]})
ENGINE = open_table(pa.table(COLUMNS), name="data", public={"side": SIDE}, protected={"owned": OWNED})
SCHEMA = Schema(tuple(column for column in ENGINE.schema.columns if column[1] is not Type.OTHER))
NATIVE = {each.view: each.native for each in (ENGINE._catalog.own, *ENGINE._catalog.joined.values())}
VALUES = {
    kind: scalars(SCHEMA, kind, 3)
    for kind in (Type.INTEGER, Type.FLOAT, Type.STRING, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP)
}
NUMBERS = VALUES[Type.INTEGER] | VALUES[Type.FLOAT]
ANY = st.one_of(*VALUES.values(), st.sampled_from([Column("many"), Column("kind"), Column("huge")]))
ENDS = st.sampled_from([(0.0, 1.0), (-1e9, 1e-3), (-5.0, -4.5)])
SIDES = st.sampled_from(
    [(), (), (Join("side", Compare(Column("word"), Operator.EQ, Column("side.k")), left=True, fan_out=2),)]
)
PARTS = st.sampled_from([None, QueryPart("kind", (Literal("a"), Literal("b")), 1)])
KEYED = {"whole": [0, None], "word": ["", None], "yes": [True], "money": [1.0, 2.5]}
METADATA = {"_describe": "names and types", "_apart": "types of tables without rows", "_hash_function": "constants",
            "_locked": "settings, and views that read nothing"}  # fmt: skip


@st.composite
def aggregates(draw):
    """Draw what is asked of a number, or of anything that is counted."""
    value, ends = draw(NUMBERS), draw(ENDS)
    kinds = [
        Count(),
        Count(draw(ANY)),
        CountUnits(),
        CountValues(draw(ANY)),
        Sum(value, *ends),
        Mean(value, *ends),
        Variance(value, *ends),
    ]
    kinds.append(Pair("correlation", value, draw(NUMBERS), ends, draw(ENDS)))
    return draw(st.sampled_from([*kinds, Quantile.of(value, type_of(value, SCHEMA), 0.5, *ends)]))


@st.composite
def derived(draw):
    """Draw rows made of a unit's rows, of any values."""
    whole, real, text, moment = (VALUES[kind] for kind in (Type.INTEGER, Type.FLOAT, Type.STRING, Type.TIMESTAMP))
    one, key = draw(st.one_of(whole, real, text, moment)), draw(st.one_of(real, text, moment, VALUES[Type.DATE]))
    found = [Feature(FeatureKind.SUM, draw(whole)), Feature(FeatureKind.SUM, draw(real)), Feature(FeatureKind.COUNT)]
    found += [
        Feature(FeatureKind.MEAN, draw(NUMBERS)),
        Feature(FeatureKind.MAX, one),
        Feature(FeatureKind.DISTINCT, one),
    ]
    found += [Feature(FeatureKind.LAST, one, key), Feature(FeatureKind.COUNT, draw(ANY))]
    by = draw(st.sampled_from([(), (("k0", one),)]))
    features = tuple((f"f{place}", each) for place, each in enumerate(found))
    return PerUnit("made", None, draw(SIDES), draw(st.none() | predicates(SCHEMA, 3)), by, features)


@st.composite
def beside_windows(draw):
    """Draw rows beside windows by the unit, of any values and in any order."""
    whole, real, text, moment = (VALUES[kind] for kind in (Type.INTEGER, Type.FLOAT, Type.STRING, Type.TIMESTAMP))
    keys = st.builds(SortKey, st.one_of(whole, real, text, moment), st.booleans(), st.booleans())
    over = {"by": draw(st.sampled_from([(), (Column("word"),)])), "order": (draw(keys),)}
    kinds = [*(WindowKind.SUM, WindowKind.SUM, WindowKind.ROW_NUMBER, WindowKind.MEAN, WindowKind.LAG), *WindowKind]
    values = [draw(whole), *(draw(real) for _ in kinds[1:])]
    frames = [None, WindowFrame(-3, 0), *(draw(st.sampled_from([None, WindowFrame(0, 2)])) for _ in kinds[2:])]
    windows = [
        Window(
            kind, None if kind in PLACES else value, **over, frame=WindowFrame(None, None) if kind in FRAMED else frame
        )
        for kind, value, frame in zip(kinds, values, frames, strict=True)
    ]
    columns = (("of", draw(ANY)), ("at", draw(moment)))
    told = tuple((f"f{place}", each) for place, each in enumerate(windows))
    return Windowed("made", None, draw(SIDES), draw(st.none() | predicates(SCHEMA, 3)), columns, told)


@st.composite
def stacked(draw):
    """Draw the rows of two SELECTs, of any values."""
    kinds = (Type.INTEGER, Type.FLOAT, Type.INTEGER, Type.FLOAT, Type.TIMESTAMP, Type.STRING)
    parts = [
        StackedPart(
            None, draw(SIDES), draw(st.none() | predicates(SCHEMA, 3)), tuple(draw(VALUES[kind]) for kind in kinds)
        )
        for _ in range(2)
    ]
    return Stacked("made", tuple(f"f{place}" for place in range(len(kinds))), tuple(parts))


def of_units(one):
    """Return a question of derived rows, with what else it is asked with."""
    outputs = tuple(NamedAggregate(f"o{n}", Sum(Column(f"f{n}"), 0.0, 9.0)) for n in range(4))
    groupings = (("g", Column("f4")),)
    asked = {"derived": (one,), "source": "made"}
    own = Query("data", (), None, None, outputs, PrivacyUnit("u"), Bounds(1, 2), **asked)
    join = Join("made", Compare(Column("u"), Operator.EQ, Column("made.u")), public=False)
    return [
        (own, "measure", ()),
        (replace(own, by=("g",), outputs=(), groupings=groupings), "found", ()),
        (replace(own, source=None, joins=(join,), outputs=(NamedAggregate("a", Count()),)), "measure", ()),
    ]


@st.composite
def questions(draw):
    """Draw a question, the way in which an engine is asked it, and what else that takes."""
    one, where, unit = draw(aggregates()), draw(st.none() | predicates(SCHEMA, 3)), draw(st.sampled_from([None, "u"]))
    joins = draw(SIDES)
    if unit is not None and draw(st.booleans()):
        joins = (Join("owned", Compare(Column("whole"), Operator.EQ, Column("owned.z")), public=False),)
    way = draw(st.sampled_from(["spread", "found", "asked", "crossed"]))
    by, keys, groupings = (), None, ()
    if way in {"found", "spread"} and draw(st.booleans()):
        by, groupings = ("g",), (("g", draw(st.one_of(*VALUES.values()))),)
    elif way in {"found", "crossed"} or draw(st.booleans()):
        by = (draw(st.sampled_from([*KEYED])),)
        keys = None if way in {"found", "crossed"} else Keys.of(by, {by[0]: KEYED[by[0]]}, SCHEMA)
    outputs = () if by and keys is None else (NamedAggregate("a", one),)
    made = Query("data", by, keys, where, outputs, PrivacyUnit(unit), Bounds(1, 2), draw(PARTS), groupings, joins)
    match way, one:
        case "asked", Quantile():
            return made, "histogram", (one,)
        case "asked", _:
            return made, "measure", ()
        case "found", _:
            return made, "found", ()
        case "crossed", _:
            lists = (Keys.of(by, {by[0]: KEYED[by[0]]}, SCHEMA),)
            return replace(made, joins=()), "crossed", (Crossing(lists, ((), (0,))),)
        case _:
            return made, "spread", (draw(st.none() | ANY),)


def texts(ask):
    """Return every text that an ask sends to the embedded engine."""
    seen, run = [], DuckDBEngine._run

    def listening(self, query, question, *how):
        """Note a text before it runs."""
        seen.append(question.sql)
        return run(self, query, question, *how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DuckDBEngine, "_run", listening)
        ask()
    return seen


def faults(question):
    """Ask a question of the table and return what could fail in what was sent."""
    query, way, more = question
    sent = texts(lambda: getattr(ENGINE, way)(query, *more, 5))
    assert sent
    return [fault for sql in sent for fault in Sent(sql, NATIVE).faults()]


@given(st.one_of(derived(), beside_windows(), stacked()))
@settings(max_examples=sweep(6, 15), deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
def test_nothing_that_makes_rows_of_units_can_fail(one):
    """Sums, means, choices, counts and windows of any values, and UNION ALL: the texts are as total as all others."""
    for question in of_units(one):
        assert [] == faults(question)


@given(questions())
@settings(max_examples=sweep(40, 80), deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
def test_nothing_that_is_sent_can_fail(question):
    """Any question, asked in any way: each cast is TRY_CAST or listed as total, each function is listed; it runs."""
    assert [] == faults(question)


SPREAD = bounded(Query("data", (), None, None, (), PrivacyUnit(), Bounds()))


def test_a_bare_cast_of_a_text_is_found(monkeypatch):
    """Planted: the spread casts its value whatever it is, as it did."""
    monkeypatch.setattr(
        DuckScalars, "number", lambda self, scalar: Text(f"CAST({self.scalar(scalar).sql} AS DOUBLE)", Type.FLOAT)
    )
    sql = measures.spreading(SPREAD, Column("word"), ENGINE._catalog, 5).sql

    assert "CAST(VARCHAR COLUMN AS DOUBLE)" in set(Sent(sql, NATIVE).faults())


@pytest.mark.parametrize("text", [
    'SELECT CAST(c0 AS BIGINT) FROM (SELECT r."real" AS c0 FROM farthing_table AS r)',
    'SELECT CAST(r."word" AS DATE) FROM farthing_table AS r',
    "SELECT CAST(CASE WHEN r.\"yes\" THEN 'x' ELSE '1' END AS DOUBLE) FROM farthing_table AS r",
    "SELECT CAST(least(r.\"word\", '1') AS INTEGER) FROM farthing_table AS r",
    'SELECT CAST(CAST(r."whole" AS HUGEINT) * 5 AS BIGINT) FROM farthing_table AS r',
    'SELECT error(r."word") FROM farthing_table AS r',
    "SELECT strptime(r.\"word\", '%d') FROM farthing_table AS r",
    'SELECT r."word"::DOUBLE FROM farthing_table AS r',
    'SELECT r."whole" // r."u" FROM farthing_table AS r',
    'SELECT r."whole" % CAST(r."u" AS HUGEINT) FROM farthing_table AS r',
    'SELECT r."whole" // 0 FROM farthing_table AS r',
    'WITH made AS (SELECT max(r."word") AS f0 FROM farthing_table AS r) SELECT CAST(r."f0" AS DATE) FROM made AS r',
    'WITH made AS (SELECT CAST(r."real" AS BIGINT) AS f0 FROM farthing_table AS r) SELECT r."f0" FROM made AS r',
])  # fmt: skip
def test_what_may_fail_is_found(text):
    """Casts of texts, of large numbers and of reals, functions that raise, and divisors of 0 are each seen."""
    assert list(Sent(text, NATIVE).faults())


EXECUTES = {"execute", "executemany", "query", "from_query"}
SQL = {f"{each}.sql" for each in ("cursor", "connection", "self._connection", "duckdb")}


def test_texts_are_sent_in_one_place():
    """In the folder of the embedded engine SQL is executed by `_run`, and by what reads no row."""
    found = {
        function.name
        for path in DUCK.glob("*.py")
        for function in nodes(path)
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Attribute) and (call.attr in EXECUTES or ast.unparse(call) in SQL)
        if not (isinstance(call.value, ast.Name) and call.value.id == "join")
    }

    assert {"_run", *METADATA} == found
