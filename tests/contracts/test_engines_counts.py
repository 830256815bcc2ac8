"""Counts on engines that are asked through constants in the text: what is printed, and what two of them answer.

A warehouse of yours is held to the same by one command, with its extra of ibis installed:

    FARTHING_WAREHOUSE="snowflake://..." pytest -m "thorough or slow" tests/contracts -k warehouse

The golden files are written anew, to be read before they are committed, by

    FARTHING_GOLDEN=write pytest -m "thorough or not thorough" tests/contracts/test_engines_counts.py -k printed
"""

from __future__ import annotations

import datetime as dt
import os
import random
import re
from collections import Counter
from pathlib import Path

import ibis
import pyarrow as pa
import pytest
import sqlglot
import warehouses
from questions import agreed

from farthing.engines import open_table
from farthing.engines.bounded import bounded
from farthing.engines.foreign import clickhouse, values
from farthing.engines.foreign.engine import _backend_of
from farthing.engines.foreign.keys import listed
from farthing.engines.foreign.measures import found, measuring
from farthing.engines.foreign.rows import IbisCatalog, IbisRelation, IbisRows
from farthing.engines.foreign.values import LONGEST, MD5
from farthing.engines.memory.engine import MemoryEngine
from farthing.errors import UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type, counting
from farthing.query.aggregates import Count, CountUnits, CountValues, NamedAggregate
from farthing.query.expressions import (
    And,
    Call,
    Cast,
    Column,
    Compare,
    FunctionName,
    In,
    IsNull,
    Literal,
    Not,
    Operator,
    Or,
)
from farthing.query.expressions.signatures import CASTS, SIGNATURES
from farthing.query.part import QueryPart

WRITE = "FARTHING_GOLDEN"
"""The environment variable that has the golden files written anew, where it is not empty."""

GOLDEN = Path(__file__).parent.parent / "golden" / "warehouses"
SCHEMA = Schema.of(warehouses.KINDS)
VALUES = {"u": ["", "ann", "bob", "Ann", "'é\\"], "v": [1, 2, 2**63 - 1], "s": ["", "a", "A", "'", "\\n", "%", "日本"],
          "i": [0, 1, -1, 2**53 + 1], "b": [True, False],
          "d": [dt.date(2013, 1, 31), dt.date(2024, 2, 29)]}  # fmt: skip
WHERE = (
    None,
    Compare(Column("i"), Operator.GE, Literal(0)),
    Or((IsNull(Column("s")), In(Column("s"), (Literal("a"), Literal("'"), Literal("\\n"))))),
    And((Compare(Column("d"), Operator.LT, Literal(dt.date(2020, 1, 1))), Not(IsNull(Column("b"))))),
)
TYPES = (Type.FLOAT, Type.INTEGER, Type.STRING, Type.DATE, Type.TIMESTAMP, Type.BOOLEAN)
COUNTS = tuple(NamedAggregate(f"o{n}", each) for n, each in enumerate((Count(), CountUnits(), Count(Column("i")))))
VALUED = (*COUNTS, *(NamedAggregate(f"v{name}", CountValues(Column(name))) for name in "sd"))
ALIVE = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]
IN_PROCESS = ("datafusion", "clickhouse", "warehouse")
WAREHOUSES = ("bigquery", "databricks", "snowflake", "trino")


def asked(by, lists, unit, bounds, *, where=None, part=None, outputs=COUNTS):
    """Return a question of counts."""
    keys = None if lists is None and by else Keys.of(by, lists, SCHEMA)
    return Query("data", by, keys, where, outputs, PrivacyUnit(unit), bounds, part)


PRINTED = {
    "keys with a quote, a backslash and NULL": asked(("s",), {"s": ["a'\\", None]}, "u", Bounds(1, 2), where=WHERE[1]),
    "two keys, a day and truth values": asked(
        ("b", "i"), {"b": [True, None], "i": [1]}, "v", Bounds(2, 1), where=WHERE[3]
    ),
    "each row a unit": asked((), None, None, Bounds()),
    "a part of a partition": asked((), None, "u", Bounds(1, 3), part=QueryPart("i", (Literal(0), Literal(1)), 1)),
    "different values": asked(("b",), {"b": [True, False]}, "u", Bounds(1, 2), outputs=VALUED[3:4]),
    "groups that are found": asked(("s",), None, "u", Bounds(2, 1), outputs=()),
}


def printed(name):
    """Return what a backend would be sent for each question."""
    backend = _backend_of(warehouses.Printed(name))
    native = {Type.STRING: "string", Type.INTEGER: "int64", Type.BOOLEAN: "boolean", Type.DATE: "date"}
    table, _ = backend.opened(
        ibis.table({column: native[kind] for column, kind in warehouses.KINDS.items()}, name="rides")
    )
    catalog, texts = IbisCatalog(IbisRelation(table, SCHEMA), {}), {}
    for title, query in PRINTED.items():
        one = bounded(query)
        made = found if one.finds else measuring
        texts[title] = backend.text(made(one, catalog, backend, 7), listed(one))
    return texts, backend


@pytest.mark.parametrize("name", ["trino", *(pytest.param(name, marks=ALIVE) for name in MD5 if name != "trino")])
def test_what_is_printed_stays_as_it_is_read(name):
    """The texts of each dialect are those of the golden file, sqlglot reads them, and they name the table alone."""
    texts, backend = printed(name)
    shown = "".join(f"-- {title}\n{text};\n\n" for title, text in texts.items())
    for text in texts.values():
        tree = sqlglot.parse_one(text, dialect=backend._connection.compiler.dialect)
        ours = {each.alias for each in tree.find_all(sqlglot.exp.CTE)}

        assert isinstance(tree, sqlglot.exp.Select)
        assert {"rides"} == {table.name for table in tree.find_all(sqlglot.exp.Table) if table.name} - ours
        assert 1 >= text.count("farthing_keys` AS (") + text.count('farthing_keys" AS (')
    assert not re.search(r"\b(uniq|uniqCombined\w*|approx\w*|hll\w*|ndv)\s*\(", shown, re.IGNORECASE)  # estimates
    if os.environ.get(WRITE):
        (GOLDEN / f"{name}.sql").write_text(shown)
    assert (GOLDEN / f"{name}.sql").read_text() == shown


@pytest.mark.thorough
@pytest.mark.parametrize("name", WAREHOUSES)
def test_what_each_function_is_printed_as_stays_as_it_is_read(name):
    """Each function, cast and comparison of reals is that of the golden file, and sqlglot prints it as it reads it."""
    backend = _backend_of(warehouses.Printed(name))
    dialect, shown = backend._connection.compiler.dialect, ""
    for tree in spelled():
        text = backend.text(scalar_on(backend, tree), {})
        shown += f"-- {tree}\n{text};\n\n"

        assert text == sqlglot.parse_one(text, dialect=dialect).sql(dialect=dialect)
    if os.environ.get(WRITE):
        (GOLDEN / f"{name}_functions.sql").write_text(shown)
    assert (GOLDEN / f"{name}_functions.sql").read_text() == shown


@pytest.mark.parametrize("name", sorted(MD5))
def test_words_within_windows_are_spelled(name):
    """What a window goes by is spelled like all else: ibis keeps it in a tuple, which sqlglot does not walk."""
    backend, table = _backend_of(warehouses.Printed(name)), ibis.table({"i": "int64"}, name="rides")
    window = ibis.window(group_by=backend.integers("+", table.i, table.i), order_by=table.i)
    text = backend.text(table.mutate(n=ibis.row_number().over(window)), {})

    assert "PARTITION BY" in text
    assert "WORD_" not in text.upper()


def test_different_values_are_counted_at_one_place():
    """Each backend says how it counts to the last one; `nunique` of ibis is an estimate on some."""
    folder = Path(clickhouse.__file__).parent
    told = {path.stem: path.read_text("utf-8").count(".nunique(") for path in folder.glob("*.py")}
    assert {name: count for name, count in told.items() if count} == dict.fromkeys(
        ("values", "postgres", "spark", "sqlite"), 1
    )


@pytest.mark.thorough
def test_clickhouse_counts_to_the_last_value():
    """100,000 values are 100,000; the count that ibis would send is some hundreds off."""
    here, name = warehouses.connection("clickhouse"), "many_values"
    here.con.command(f"CREATE TABLE {name} (i Nullable(Int64)) ENGINE = Memory")
    here.con.command(f"INSERT INTO {name} SELECT number FROM numbers(100000)")
    table = here.table(name)
    found = here.to_pyarrow(
        table.aggregate(ours=clickhouse.ClickHouseBackend(here).different(table.i), planted=table.i.nunique())
    ).to_pylist()[0]
    here.con.command(f"DROP TABLE {name}")

    assert found["ours"] == 100_000
    assert found["planted"] != 100_000


def scalar_on(backend, tree):
    """Return the rows of a table of one column of each type with the value of a scalar or predicate."""
    kinds = {
        "real": "float64",
        "whole": "int64",
        "word": "string",
        "day": "date",
        "moment": "timestamp",
        "yes": "boolean",
    }
    opened, _ = backend.opened(ibis.table(kinds, name="rides"))
    schema = Schema.of(dict(zip(kinds, TYPES, strict=True)))
    query = bounded(Query("data", (), None, None, counting("n"), PrivacyUnit(), Bounds()))
    rows = IbisRows(query, IbisCatalog(IbisRelation(opened, schema), {}), backend)
    compared = isinstance(tree, Compare)
    rows.show(rows.scalars.predicate(tree) if compared else rows.scalars.scalar(tree).expr, "v")
    return rows.table()


def allows(backend, tree):
    """Tell whether a scalar is answered on a backend."""
    try:
        scalar_on(backend, tree)
    except UnsupportedQuery:
        return False
    return True


def calls(function):
    """Yield a call of a function for each type of its argument, or of its second where the first is a constant."""
    signature, names = (
        SIGNATURES[function],
        dict(zip(TYPES, ("real", "whole", "word", "day", "moment", "yes"), strict=True)),
    )
    places = range(len(signature.takes) - signature.optional if signature.constant != 1 else len(signature.takes))
    told = {FunctionName.ROUND: 2, FunctionName.LIKE: "a%"}.get(function, "year")
    for kind in signature.takes[0 if signature.constant != 0 else 1]:
        columns = [names[kind if kind in signature.takes[place] else min(signature.takes[place])] for place in places]
        yield Call(function, tuple(
            Literal(told) if place == signature.constant else Column(columns[place]) for place in places
        ))  # fmt: skip


def spelled():
    """Yield one call of each function and type of its argument, each cast, and each comparison of reals."""
    names = dict(zip(TYPES, ("real", "whole", "word", "day", "moment", "yes"), strict=True))
    for function in FunctionName:
        yield from sorted(calls(function), key=str)  # they come from a set
    for kind, sources in CASTS.items():
        yield from (Cast(Column(names[source]), kind) for source in sorted(sources) if source in names)
    yield from (Compare(Column("real"), sign, Literal(0.5)) for sign in Operator)


def test_the_table_of_what_each_engine_allows_is_the_one_that_is_shown():
    """Each engine's row on the page is what its dialect allows: of every function, for every type of its argument."""
    functions = list(FunctionName)
    shown = []
    for name in sorted(MD5):
        backend = _backend_of(warehouses.Printed(name))
        here = sum(all(allows(backend, tree) for tree in calls(each)) for each in functions)
        reals = "yes" if allows(backend, Column("real")) else "refused"
        shown.append(f"| {warehouses.COMPILERS[name]} | {here} of {len(functions)} | {reals} |")
    page = Path(__file__).parents[2] / "docs" / "reference" / "engines.md"

    assert "\n".join(shown) in page.read_text()


def test_constants_that_are_too_long_are_refused():
    """Keys that no engine reads in one text are refused by name, before anything is asked."""
    backend = _backend_of(warehouses.Printed("trino"))
    keys = pa.table({"i": range(1000), "k0": ["x" * (LONGEST // 1000)] * 1000})

    with pytest.raises(UnsupportedQuery, match="too long for the trino backend"):
        backend.beside(keys, "farthing_keys")


def worlds(seed):
    """Return rows and a question, from a seed."""
    chance = random.Random(seed)
    rows = [
        {name: chance.choice([*some, None]) for name, some in VALUES.items()} for _ in range(chance.choice((0, 30)))
    ]
    by = tuple(sorted(chance.sample("sibd", chance.choice((0, 1, 2)))))
    lists = {name: chance.sample([*VALUES[name], None], chance.choice((1, 2, 3))) for name in by}
    unit = chance.choice(("u", "u", "v", None))
    part = QueryPart("i", (Literal(0), Literal(1)), chance.choice((0, 1))) if chance.random() < 0.3 else None
    bounds = Bounds(chance.choice((1, 2, 4)), chance.choice((1, 2)))
    return rows, asked(by, lists or None, unit, bounds, where=chance.choice(WHERE), part=part, outputs=VALUED)


def counted(kind, rows, query):
    """Return the counts of an engine, and of the slow one with the same hash."""
    engine = open_table(warehouses.table_on(kind, rows, warehouses.KINDS), name="data")
    engine.fingerprint(query)
    slow = agreed(
        engine,
        lambda hashes: MemoryEngine(rows, SCHEMA, keyed_hash=hashes),
        lambda memory: memory.measure(query, 7).tolist(),
    )
    return engine.measure(query, 7).tolist(), slow


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=ALIVE) for kind in IN_PROCESS])
def test_counts_are_the_slow_engines(kind):
    """Rows, units and values, by keys with NULL, under bounds, conditions and in parts: the same on hostile values."""
    for seed in range(14):
        ours, slow = counted(kind, *worlds(seed))

        assert ours == slow, seed


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=ALIVE) for kind in IN_PROCESS[:2]])
def test_a_hash_without_its_key_is_seen(kind, monkeypatch):
    """Another key keeps other groups, as many of each; with the key left out it would not."""
    rows = [{"u": str(n), "i": g} for n in range(120) for g in range(4)]
    kinds = {"u": Type.STRING, "i": Type.INTEGER}
    engine = open_table(warehouses.table_on(kind, rows, kinds), name="data")
    keys = Keys.of(("i",), {"i": range(4)}, engine.schema)
    query = Query("data", ("i",), keys, None, counting("n"), PrivacyUnit("u"), Bounds(1, 1))
    first, second, again = (engine.measure(query, key)[0].tolist() for key in (1, 2, 1))

    assert 120 == sum(first) == sum(second)
    assert first == again != second
    assert min(first) > 10
    monkeypatch.setattr(values, "_text", lambda value: ibis.literal("k" if value.isdigit() else value))
    assert engine.measure(query, 1)[0].tolist() == engine.measure(query, 2)[0].tolist()


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=ALIVE) for kind in IN_PROCESS[:2]])
def test_groups_are_found(kind):
    """Groups that exist are found with their units; rows without a unit count nowhere."""
    rows = [{"u": "a", "s": "x"}, {"u": "b", "s": "x"}, {"u": None, "s": "y"}]
    engine = open_table(warehouses.table_on(kind, rows, {"u": Type.STRING, "s": Type.STRING}), name="data")
    groups = engine.found(Query("data", ("s",), None, None, (), PrivacyUnit("u"), Bounds(1, 1)), 3)

    assert Counter({"x": 2}) == Counter(dict(zip(groups.keys["s"].to_pylist(), groups.units.tolist(), strict=True)))
