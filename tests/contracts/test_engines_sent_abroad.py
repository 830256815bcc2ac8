"""Every SQL text that is sent to PostgreSQL or Spark is total: nothing in it can fail, whatever a row holds."""

import ast
import warnings
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from backends import SERVERS, postgres
from hostile import predicates, scalars
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sent_foreign import SentAbroad
from sources import nodes
from spark_servers import spark_session
from sweeps import sweep

import farthing
from farthing.engines import open_table
from farthing.engines.foreign.functions import IbisFunctions
from farthing.engines.foreign.postgres import PostgresBackend
from farthing.engines.foreign.scalars import IbisScalars
from farthing.engines.foreign.spark import SparkBackend
from farthing.engines.foreign.terms import IbisTerm
from farthing.errors import DataError
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type
from farthing.query.aggregates import Count, CountUnits, Mean, NamedAggregate, Quantile, Sum, Variance
from farthing.query.counts import CountValues
from farthing.query.expressions import Cast, Column, Compare, Literal, Operator, type_of
from farthing.query.joins import Join
from farthing.query.pairs import Pair
from farthing.query.part import QueryPart
from farthing.query.per_row import (
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

pytestmark = [pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"), pytest.mark.thorough]
FOLDER = Path(farthing.__file__).parent / "engines" / "foreign"
NATIVE = {
    "postgres": {
        "unit": "BIGINT", "tiny": "SMALLINT", "middle": "INT", "whole": "BIGINT", "single": "FLOAT", "real": "DOUBLE",
        "money": "DECIMAL(12,2)", "digits": "DECIMAL", "word": "TEXT", "name": "VARCHAR(9)", "yes": "BOOLEAN",
        "day": "DATE", "moment": "TIMESTAMP", "zoned": "TIMESTAMPTZ", "many": "BIGINT[]", "raw": "BYTEA", "doc": "JSON",
    },
    "spark": {
        "unit": "BIGINT", "tiny": "TINYINT", "middle": "INT", "whole": "BIGINT", "single": "FLOAT", "real": "DOUBLE",
        "money": "DECIMAL(12,2)", "digits": "DECIMAL(38,38)", "word": "STRING", "yes": "BOOLEAN", "day": "DATE",
        "moment": "TIMESTAMP_NTZ", "zoned": "TIMESTAMP", "many": "ARRAY<BIGINT>", "raw": "BINARY",
    },
}  # fmt: skip
SPELLED = {"FLOAT": {"postgres": "real"}, "DOUBLE": {"postgres": "double precision"}}
SENT = {"postgres": PostgresBackend, "spark": SparkBackend}
CONFIG = settings(deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate], database=None)
EXAMPLES = {"postgres": sweep(14, 60), "spark": sweep(16, 40)}
ALSO = {"owned": {"unit": "BIGINT", "z": "BIGINT"}}
SIDE = pa.table({"k": ["", "a", None], "w": [1.5, float("nan"), 2.0]})


def made(kind, name, columns):
    """Return an empty table of a backend."""
    told = {column: SPELLED.get(native, {}).get(kind, native) for column, native in columns.items()}
    if kind == "postgres":
        connection = postgres()
        listed = ", ".join(f'"{column}" {native}' for column, native in told.items())
        connection.con.execute(f"DROP TABLE IF EXISTS {name}")
        connection.con.execute(f"CREATE TEMPORARY TABLE {name} ({listed})")
        return connection.table(name)
    listed = ", ".join(f"CAST(NULL AS {native}) AS `{column}`" for column, native in told.items())
    return spark_session().sql(f"SELECT {listed} LIMIT 0")


@cache
def opened(kind):
    """Return the engine of empty tables with a column of every type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return open_table(
            made(kind, "sent_data", NATIVE[kind]),
            name="data",
            public={"side": SIDE},
            protected={name: made(kind, f"sent_{name}", columns) for name, columns in ALSO.items()},
        )


@cache
def native(kind):
    """Return the parser's spelling of every column's type."""
    spelled = {"STRING": "VARCHAR", "TIMESTAMP_NTZ": "TIMESTAMP"}
    columns = {**NATIVE[kind], **ALSO["owned"], "w": "DOUBLE", "k": "VARCHAR"}
    return {column: spelled.get(told, told) for column, told in columns.items()} | {"zoned": "TIMESTAMPTZ"}


@cache
def values(kind):
    """Return strategies of scalars by their type, over all columns that can be asked about."""
    schema = Schema(tuple(column for column in opened(kind).schema.columns if column[1] is not Type.OTHER))
    kinds = (Type.INTEGER, Type.FLOAT, Type.STRING, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP)
    return {each: scalars(schema, each, 3) for each in kinds}, predicates(schema, 3)


@st.composite
def questions(draw, kind):
    """Draw a question, the way in which an engine is asked it, and what else that takes."""
    of, conditions = values(kind)
    numbers, everything = of[Type.INTEGER] | of[Type.FLOAT], st.one_of(*of.values())
    value, ends = draw(numbers), draw(st.sampled_from([(0.0, 1.0), (-1e9, 1e-3), (-5.0, -4.5)]))
    one = draw(st.sampled_from([Count(), Count(draw(everything)), CountUnits(), CountValues(draw(everything)),
                                Sum(value, *ends), Mean(value, *ends),
                                Variance(value, *ends), Pair("correlation", value, draw(numbers), ends, (-3.0, 1e6)),
                                Quantile.of(value, type_of(value, opened(kind).schema), 0.5, *ends)]))  # fmt: skip
    unit, where = draw(st.sampled_from([None, "unit"])), draw(st.none() | conditions)
    joins = draw(st.sampled_from([(), (Join("side", Compare(Column("word"), Operator.EQ, Column("side.k")), left=True,
                                            fan_out=2),)]))  # fmt: skip
    if unit is not None and draw(st.booleans()):
        joins = (Join("owned", Compare(Column("whole"), Operator.EQ, Column("owned.z")), public=False),)
    part = draw(st.sampled_from([None, QueryPart("yes", (Literal(value=True), Literal(value=False)), 1)]))
    way, by, keys, groupings = draw(st.sampled_from(["spread", "found", "asked"])), (), None, ()
    if way != "asked" and draw(st.booleans()):
        by, groupings = ("g",), (("g", draw(everything)),)
    elif way == "found" or draw(st.booleans()):
        listed = {"whole": [0, None], "word": ["", None], "yes": [True], "real": [1.0, 2.5]}
        by = (draw(st.sampled_from([*listed])),)
        keys = None if way == "found" else Keys.of(by, {by[0]: listed[by[0]]}, opened(kind).schema)
    outputs = () if by and keys is None else (NamedAggregate("a", one),)
    query = Query("data", by, keys, where, outputs, PrivacyUnit(unit), Bounds(1, 2), part, groupings, joins)
    match way, one:
        case "asked", Quantile():
            return query, "histogram", (one,)
        case "asked", _:
            return query, "measure", ()
        case "found", _:
            return query, "found", ()
    return query, "spread", (draw(st.none() | everything),)


def texts(kind, ask):
    """Return every text that an ask sends; Spark is not bothered with running it."""
    seen, send = [], SENT[kind]._send

    def listening(self, sql, *more):
        """Note a text before it runs."""
        seen.append(sql)
        if kind == "spark":
            raise RuntimeError("noted")
        return send(self, sql, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SENT[kind], "_send", listening)
        if kind == "spark":
            with pytest.raises(DataError):
                ask()
        else:
            ask()
    return seen


def faults(kind, question):
    """Ask a question of a backend and return what could fail in what was sent."""
    query, way, more = question
    sent = texts(kind, lambda: getattr(opened(kind), way)(query, *more, 5))
    assert sent
    return [fault for sql in sent for fault in SentAbroad(sql.replace("%%", "%"), native(kind), kind).faults()]


@pytest.mark.parametrize("kind", SERVERS)
def test_nothing_that_is_sent_can_fail(kind):
    """Any question, asked in any way: each cast and each function is listed as total; on PostgreSQL it runs."""

    @settings(CONFIG, max_examples=EXAMPLES[kind])
    @given(st.data())
    def each(data):
        assert [] == faults(kind, data.draw(questions(kind)))

    each()


@pytest.mark.parametrize("kind", SERVERS)
def test_nothing_that_makes_rows_of_units_can_fail(kind):
    """Sums, means, choices and counts of any values, of a unit's rows: the texts are as total as all others."""

    @settings(CONFIG, max_examples=max(1, EXAMPLES[kind] // 12))
    @given(st.data())
    def each(data):
        of, _ = values(kind)
        whole, real = data.draw(of[Type.INTEGER]), data.draw(of[Type.FLOAT])
        one, key = (data.draw(st.one_of(of[Type.STRING], of[Type.DATE], of[Type.FLOAT])) for _ in range(2))
        kinds = [FeatureKind.SUM, FeatureKind.SUM, FeatureKind.MEAN, FeatureKind.MAX, FeatureKind.DISTINCT]
        found = [Feature(name, value) for name, value in zip(kinds, (whole, real, real, one, one), strict=True)]
        found += [Feature(FeatureKind.LAST, one, key), Feature(FeatureKind.COUNT)]
        features = tuple((f"f{place}", each) for place, each in enumerate(found))
        kinds = [*kinds[:3], *WindowKind]
        over = {"order": (SortKey(one), SortKey(key, descending=True)), "frame": WindowFrame(-2, 0)}
        windows = [
            Window(kind, None if kind in PLACES else value, **over)
            for kind, value in zip(map(WindowKind, kinds), (whole, real, real, *([key, real] * 6)), strict=True)
        ]
        told = tuple((f"f{place}", each) for place, each in enumerate(windows))
        parts = tuple(StackedPart(None, (), None, (whole, real, data.draw(of[Type.FLOAT]), one)) for _ in range(2))
        rows = data.draw(
            st.sampled_from(
                [
                    PerUnit("made", None, (), None, (), features),
                    PerUnit("made", None, (), None, (("by0", one),), features),
                    Windowed("made", None, (), None, (("of", key),), told),
                    Stacked("made", ("f0", "f1", "f2", "of"), parts),
                ]
            )
        )
        outputs = tuple(NamedAggregate(f"o{n}", Sum(Column(f"f{n}"), 0.0, 9.0)) for n in range(3))
        query = Query(
            "data", (), None, None, outputs, PrivacyUnit("unit"), Bounds(1, 2), derived=(rows,), source="made"
        )
        assert [] == faults(kind, (query, "measure", ()))

    each()


def spread(column):
    """Return the question what a column's values are like."""
    return Query("data", (), None, None, (), PrivacyUnit(), Bounds()), "spread", (column,)


@pytest.mark.parametrize("kind", SERVERS)
def test_a_bare_cast_of_a_text_is_found(kind, monkeypatch):
    """Planted: the spread casts its value whatever it is."""
    monkeypatch.setattr(
        IbisScalars, "number", lambda self, scalar: IbisTerm(self.scalar(scalar).expr.cast("float64"), Type.FLOAT)
    )

    assert any("COLUMN AS DOUBLE" in fault for fault in faults(kind, spread(Column("word"))))


@pytest.mark.parametrize("kind", SERVERS)
def test_a_cast_without_its_pattern_is_found(kind, monkeypatch):
    """Planted: texts are cast to what they are asked as, whether they match or not."""
    bare = {Type.INTEGER: "int64", Type.TIMESTAMP: "timestamp"}

    def cast(self, operand, to):  # noqa: ARG001  # a method
        return IbisTerm(operand.expr.cast(bare[to]), to)

    monkeypatch.setattr(IbisFunctions, "cast", cast)
    where = Compare(Cast(Column("word"), Type.INTEGER), Operator.GT, Literal(1))
    query = Query("data", (), None, where, (NamedAggregate("n", Count()),), PrivacyUnit(), Bounds())
    found = texts(kind, lambda: opened(kind).measure(query, 5))

    assert any("AS BIGINT" in fault for sql in found for fault in SentAbroad(sql, native(kind), kind).faults())


@pytest.mark.parametrize("kind", SERVERS)
def test_a_function_that_is_not_listed_is_found(kind, monkeypatch):
    """Planted: letters are turned by a function that nobody looked at."""
    from farthing.engines.foreign.terms import call

    monkeypatch.setattr(SENT[kind], "textual", lambda self, word, *values: call(f"my_{word}", "int64", *values))  # noqa: ARG005
    from farthing.query.expressions import Call, FunctionName

    where = Compare(Call(FunctionName.LENGTH, (Column("word"),)), Operator.GT, Literal(1))
    query = Query("data", (), None, where, (NamedAggregate("n", Count()),), PrivacyUnit(), Bounds())
    seen = []
    monkeypatch.setattr(SENT[kind], "_send", lambda self, sql, *more: seen.append(sql) or [].pop())  # noqa: ARG005
    with pytest.raises(DataError):
        opened(kind).measure(query, 5)

    assert ["function MY_LENGTH"] == list(SentAbroad(seen[0], native(kind), kind).faults())


@pytest.mark.parametrize(("kind", "text"), [
    ("postgres", 'SELECT CAST(t0."word" AS DATE) FROM t AS t0'),
    ("postgres", 'SELECT CAST(t0."real" AS BIGINT) FROM t AS t0'),
    ("postgres", 'SELECT CAST(t0."digits" AS DOUBLE PRECISION) FROM t AS t0'),
    ("postgres", "SELECT to_number(t0.\"word\", '9') FROM t AS t0"),
    ("postgres", "SELECT CAST(pg_catalog.substring(t0.\"word\", '^(.*)$') AS BIGINT) FROM t AS t0"),
    ("postgres", 'SELECT floor(t0."real") FROM t AS t0'),  # another schema's, maybe
    ("postgres", 'SELECT t0."word"::int FROM t AS t0'),
    ("spark", "SELECT CAST(t0.word AS DOUBLE) FROM t AS t0"),
    ("spark", "SELECT CAST(t0.real AS BIGINT) FROM t AS t0"),
    ("spark", "SELECT to_timestamp_ntz(t0.word) FROM t AS t0"),
    ("spark", "SELECT element_at(t0.many, 3) FROM t AS t0"),
    ("spark", "SELECT assert_true(t0.yes) FROM t AS t0"),
])  # fmt: skip
def test_what_may_fail_is_found(kind, text):
    """Casts of texts, of large numbers and of reals, and functions that raise, are each seen."""
    assert list(SentAbroad(text, native(kind), kind).faults())


def test_texts_are_sent_in_one_place():
    """In the folder of other backends SQL runs in `_send`; elsewhere it is named only to learn types, or by ibis."""
    sending = {"execute", "executemany", "copy", "sql", "raw_sql", "toArrow", "collect", "to_pyarrow", "to_pandas",
               "to_polars", "toPandas", "fetchall", "foreachPartition", "toLocalIterator"}  # fmt: skip
    found = {
        f"{path.stem}.{function.name}"
        for path in FOLDER.glob("*.py")
        for function in nodes(path)
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in sending
        and "schema()" not in ast.unparse(call.func)
    }
    types = {"postgres.opened": "a text with its types, not run", "spark.opened": "the types of a frame, not run"}
    types |= {"sqlite.opened": "a text with its types, not run", "sqlite.__init__": "settings of the database",
              "sqlite._prepare": "EXPLAIN: prepared, not run", "sqlite._text": "a tree as text",
              "sqlite.run": "the types of an answer"}  # fmt: skip
    types |= {
        f"{name}": "a tree as text" for name in ("values.text", "dialect.text", "dialect.tree", "dialect._written")
    }
    types |= {"datafusion._prepare": "a plan, not run", "warehouse.text": "a tree as text"}
    types |= dict.fromkeys(("warehouse._prepare", "snowflake._prepare"), "a dry run, DESCRIBE, PREPARE or EXPLAIN")
    others = {
        "plain.run": "ibis' own",
        "values.run": "the same, its tables in the text",
        "warehouse.run": "the same",
        "frames.from_ibis": "whole columns, no expressions",
        "frames.read": "the same",
    }

    assert {*(f"{name}._send" for name in ("postgres", "spark", "sqlite", "datafusion")), *types, *others} == found
