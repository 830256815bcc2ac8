"""Random subqueries: DuckDB runs the nested text itself, and both engines count the same of the flat question."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

from farthing.engines import open_table
from farthing.engines.memory.engine import Beside, MemoryEngine
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type
from farthing.query.expressions import type_of
from farthing.sql import parse
from farthing.sql.tables import TableReader

SCHEMA = Schema.of({"u": Type.INTEGER, "a": Type.INTEGER, "b": Type.INTEGER, "s": Type.STRING})
BESIDE = {
    "zones": Schema.of({"id": Type.INTEGER, "name": Type.STRING}),
    "visits": Schema.of({"u": Type.INTEGER, "cost": Type.INTEGER}),
}
ZONES = [{"id": 1, "name": "x"}, {"id": 2, "name": "y"}, {"id": 2, "name": "X"}, {"id": None, "name": "z"}]
VISITS = [{"u": 1, "cost": 3}, {"u": 1, "cost": 5}, {"u": 2, "cost": None}, {"u": None, "cost": 1}]
SCOPE = Schema.of(
    dict(SCHEMA.columns) | {f"{table}.{name}": kind for table, kinds in BESIDE.items() for name, kind in kinds.columns}
)
MOST = 10**4


class Nester:
    """Writes a FROM of random subqueries, keeping the names and types of its columns."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.steps = 0

    def one(self, *choices):
        """Return one of some things."""
        return self.random.choice(choices)

    def whole(self, columns):
        """Return a whole number."""
        numbers = [name for name, kind in columns.items() if kind is Type.INTEGER] or ["7"]
        first, second = self.one(*numbers), self.one(*numbers, "2", "0")
        return self.one(
            first,
            f"{first} + {second}",
            f"{first} * 2 - {second}",
            f"COALESCE({first}, 5)",
            f"CASE WHEN {self.condition(columns)} THEN {first} ELSE 0 END",
        )

    def text(self, columns):
        """Return a text."""
        texts = [name for name, kind in columns.items() if kind is Type.STRING] or ["'k'"]
        return self.one(self.one(*texts), f"UPPER({self.one(*texts)})", f"COALESCE({self.one(*texts)}, 'x')")

    def condition(self, columns):
        """Return a condition."""
        name, kind = self.one(*columns.items())
        other = "1" if kind is Type.INTEGER else "'x'"
        return self.one(
            f"{name} >= {other}", f"{name} IS NULL", f"NOT {name} = {other}", f"({name} < {other} OR u > 1)"
        )

    def rows(self, depth):
        """Return what stands in FROM, and the names and types of its columns; the unit is always u."""
        if depth == 0:
            return self.one("t", "main.t AS t", '(SELECT * FROM "t")'), dict(SCHEMA.columns)
        inside, columns = self.rows(depth - 1)
        self.steps += 1
        alias, join = f"v{self.steps}", ""
        seen = dict(columns)
        if depth == 2 and self.one(1, 0, 0):
            seen |= {"id": Type.INTEGER, "name": Type.STRING}
            what = self.one("zones", "(SELECT id, name FROM zones WHERE name <> 'X')")
            join = f" {self.one('JOIN', 'LEFT JOIN')} {what} AS z ON z.id = {alias}.u"
        elif depth == 2 and self.one(1, 0, 0):
            seen |= {"cost": Type.INTEGER}
            what = self.one("visits", "(SELECT u AS who, cost FROM visits WHERE cost > 3)")
            unit = "who" if "who" in what else "u"
            join = f" {self.one('JOIN', 'LEFT JOIN')} {what} AS w ON w.{unit} = {alias}.u"
            seen["cost"] = Type.INTEGER
        free = {(f"{alias}.u" if name == "u" else name): kind for name, kind in seen.items()}
        where = self.one("", f" WHERE {self.condition(free)}".replace(" u >", f" {alias}.u >"))
        made = {"u": f"{alias}.u", "g": self.text(free)}
        made |= {name: self.whole(free).replace(" u >", f" {alias}.u >") for name in ("p", "q")}
        items = ", ".join(f"{value} AS {name}" for name, value in made.items())
        return f"(SELECT {items} FROM {inside} AS {alias}{join}{where})".replace("t AS t AS", "t AS"), {
            name: Type.STRING if name == "g" else Type.INTEGER for name in made
        }

    def query(self):
        """Return a question: counts by a text, or of all rows."""
        inside, columns = self.rows(self.one(1, 2, 3))
        number = self.one(*(name for name, kind in columns.items() if kind is Type.INTEGER))
        counts = f"COUNT(*) AS n, COUNT({number}) AS m, COUNT(*) FILTER (WHERE {number} > 1) AS f"
        head, source = self.one((f"WITH c AS (SELECT * FROM {inside} AS d) ", "c"), ("", inside))
        return f"{head}SELECT g, {counts} FROM {source} AS top WHERE top.u IS NOT NULL GROUP BY top.g"


def rows(seed, count=30):
    """Return rows of a table."""
    chooser = random.Random(seed)
    return [
        {"u": chooser.choice([1, 2, 3, None]), "a": chooser.choice([0, 1, 2, -7, None]),
         "b": chooser.choice([1, 5, None]), "s": chooser.choice(["x", "X", "", "y", None])} for _ in range(count)
    ]  # fmt: skip


def arrow(found, schema):
    """Return rows as Arrow."""
    kinds = {Type.INTEGER: pa.int64(), Type.STRING: pa.string()}
    return pa.table({name: pa.array([row[name] for row in found], kinds[kind]) for name, kind in schema.columns})


def own(text, tables):
    """Return what DuckDB itself says to a text, by group."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(f"{name}_arrow", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_arrow")
        return {group: list(counts) for group, *counts in connection.execute(text).fetchall()}


def check(seeds):
    """Check that both engines count of the flat questions what DuckDB counts of the nested texts."""
    beside = {"zones": ZONES, "visits": VISITS}
    found = rows(1)
    tables = {"t": arrow(found, SCHEMA)} | {name: arrow(some, BESIDE[name]) for name, some in beside.items()}
    places = {name: Beside(some, BESIDE[name], public=name == "zones") for name, some in beside.items()}
    engines = [
        MemoryEngine(found, SCHEMA, "t", beside=places),
        open_table(tables["t"], "t", public={"zones": tables["zones"]}, protected={"visits": tables["visits"]}),
    ]
    compared = 0
    for seed in seeds:
        text = Nester(seed).query()
        asked = parse(text, table="t", schema=SCHEMA, tables=BESIDE, public=frozenset({"zones"}), unit="u")
        assert type_of(dict(asked.groupings)["g"], SCOPE) is Type.STRING
        expected = own(text, tables)
        listed = list(dict.fromkeys(["x", *expected]))
        keys = Keys.of(("g",), {"g": listed}, Schema.of({"g": Type.STRING}))
        query = Query("t", ("g",), keys, asked.where, asked.outputs, PrivacyUnit("u"), Bounds(MOST, MOST), None,
                      asked.groupings, asked.joins)  # fmt: skip
        for engine in engines:
            measured = engine.measure(query, hash_key=1)
            groups = query.keys.table.column("g").to_pylist()
            got = {group: measured[:, place].tolist() for place, group in enumerate(groups)}
            assert {group: expected.get(group, [0, 0, 0]) for group in listed} == got, text
        compared += any(expected.values())
    assert compared > len(seeds) / 2


@pytest.mark.thorough
def test_a_nested_text_counts_what_duckdb_counts():
    """Names, filters and joins at any depth: the flat question has the rows that the nested text has, in each group."""
    check(range(60))


def test_a_forgotten_filter_is_seen(monkeypatch):
    """Where the conditions of subqueries are lost, counts differ."""
    monkeypatch.setattr(TableReader, "_both", lambda _self, _rows, condition, _node: condition)
    with pytest.raises(AssertionError):
        check(range(60))
