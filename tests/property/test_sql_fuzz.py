"""Random SQL: read or refused, never a crash; one meaning however it is spelled; the same numbers on both engines."""

# ruff: noqa: DTZ001  times in questions have no zone

from __future__ import annotations

import datetime as dt
import random
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from sweeps import sweep

from farthing.engines import open_table
from farthing.engines.memory.engine import MemoryEngine
from farthing.errors import FarthingError
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, Schema, Type
from farthing.query.aggregates import Quantile
from farthing.query.expressions import type_of
from farthing.sql import parse
from farthing.sql.reader import READER

pytestmark = pytest.mark.thorough

KINDS = {
    Type.STRING: ["zone", "name"],
    Type.FLOAT: ["fare", "tip"],
    Type.INTEGER: ["seats", "month"],
    Type.BOOLEAN: ["paid"],
    Type.DATE: ["day"],
    Type.TIMESTAMP: ["at"],
}
SCHEMA = Schema.of({"rider": Type.INTEGER} | {name: kind for kind, names in KINDS.items() for name in names})
BESIDE = {"zones": Schema.of({"zone": Type.STRING, "borough": Type.STRING, "lift": Type.FLOAT})}
CONSTANTS = {
    Type.STRING: ["", "a", "ORD", "O'Hare", "12", "-1.5", "2013-01-31", "é", "%_"],
    Type.FLOAT: ["0.5", "1e3", "2.25", "1e-9", "123456789.125"],
    Type.INTEGER: ["0", "1", "2", "7", "1000000007"],
    Type.DATE: ["2013-01-31", "2012-02-29"],
    Type.TIMESTAMP: ["2013-01-31 10:20:30", "1969-12-31 23:59:59.5"],
}
UNITS = ["year", "quarter", "month", "week", "day"]
PARTS = ["year", "quarter", "month", "week", "day", "doy", "dow", "isodow"]


class Writer:
    """Writes random questions as sqlglot trees; with `wild`, some that are outside of the language."""

    def __init__(self, seed, *, wild=False):
        self.random = random.Random(seed)
        self.wild = wild

    def one(self, *choices):
        """Return one of some things."""
        return self.random.choice(choices)

    def chance(self, share):
        """Return True with a probability."""
        return self.random.random() < share

    def constant(self, kind):
        """Return a constant."""
        if kind is Type.BOOLEAN:
            return exp.Boolean(this=self.chance(0.5))
        text = self.one(*CONSTANTS[kind])
        if kind in (Type.INTEGER, Type.FLOAT):
            number = exp.Literal.number(text)
            return exp.Neg(this=number) if self.chance(0.2) else number
        literal = exp.Literal.string(text)
        return literal if kind is Type.STRING else exp.cast(literal, kind.value)

    def call(self, name, *arguments):
        """Return a call of a function, in any case."""
        return exp.Anonymous(this=self.one(name.upper(), name.lower()), expressions=list(arguments))

    def scalar(self, kind, depth):
        """Return a value of a type."""
        if self.wild and self.chance(0.02):
            return self.outside(depth)
        if depth <= 0 or self.chance(0.3):
            named = exp.column(self.one(*KINDS[kind]), quoted=self.chance(0.2))
            return named if self.chance(0.7) else self.constant(kind)
        if self.chance(0.15):
            branch = exp.If(this=self.predicate(depth - 1), true=self.scalar(kind, depth - 1))
            default = self.one(None, exp.null(), self.scalar(kind, depth - 1))
            return exp.Case(ifs=[branch], default=default)
        if self.chance(0.1):
            return self.call("coalesce", self.scalar(kind, depth - 1), self.scalar(kind, depth - 1))
        return getattr(self, kind.value)(depth - 1)

    def integer(self, depth):
        """Return a whole number."""
        whole = [self.scalar(Type.INTEGER, depth) for _ in range(2)]
        moment = self.scalar(self.one(Type.DATE, Type.TIMESTAMP), depth)
        return self.one(
            exp.Add(this=exp.paren(whole[0]), expression=exp.paren(whole[1])),
            exp.Sub(this=exp.paren(whole[0]), expression=exp.paren(whole[1])),
            exp.Mul(this=exp.paren(whole[0]), expression=exp.paren(whole[1])),
            exp.Mod(this=exp.paren(whole[0]), expression=exp.paren(whole[1])),
            self.call("div", *whole),
            self.call("abs", whole[0]),
            self.call("length", self.scalar(Type.STRING, depth)),
            exp.Extract(this=exp.var(self.one(*PARTS)), expression=moment),
            exp.cast(self.scalar(self.one(Type.STRING, Type.FLOAT, Type.BOOLEAN), depth), "bigint"),
            self.call("date_diff", exp.Literal.string("day"), moment, self.scalar(Type.DATE, depth)),
        )

    def float(self, depth):
        """Return a real number."""
        real = [self.scalar(self.one(Type.FLOAT, Type.FLOAT, Type.INTEGER), depth) for _ in range(2)]
        return self.one(
            exp.Add(this=exp.paren(real[0]), expression=exp.paren(self.scalar(Type.FLOAT, depth))),
            exp.Div(this=exp.paren(real[0]), expression=exp.paren(real[1])),
            exp.Mul(this=exp.paren(self.scalar(Type.FLOAT, depth)), expression=exp.paren(real[1])),
            self.call(self.one("floor", "ceil", "round", "trunc", "abs", "sign"), self.scalar(Type.FLOAT, depth)),
            self.call("sqrt", real[0]),
            self.call(self.one("least", "greatest"), self.scalar(Type.FLOAT, depth), real[1]),
            self.call("clamp", self.scalar(Type.FLOAT, depth), exp.Literal.number("-1"), exp.Literal.number("9.5")),
            exp.cast(self.scalar(Type.STRING, depth), "double"),
            exp.Neg(this=exp.paren(self.scalar(Type.FLOAT, depth))),
        )

    def string(self, depth):
        """Return a text."""
        text = self.scalar(Type.STRING, depth)
        return self.one(
            self.call(self.one("upper", "lower", "ltrim", "rtrim"), text),
            exp.DPipe(this=exp.paren(text), expression=exp.paren(self.scalar(Type.STRING, depth)), safe=True),
            self.call("concat", text, self.scalar(Type.STRING, depth)),
            self.call("substr", text, exp.Literal.number("1"), self.scalar(Type.INTEGER, depth)),
            self.call("left", text, exp.Literal.number("2")),
            self.call("nullif", text, self.constant(Type.STRING)),
            exp.cast(self.scalar(self.one(Type.INTEGER, Type.DATE), depth), "varchar"),
        )

    def boolean(self, depth):
        """Return a truth value."""
        return self.one(
            exp.paren(self.predicate(depth)),
            self.call(self.one("starts_with", "contains"), self.scalar(Type.STRING, depth), self.constant(Type.STRING)),
        )

    def date(self, depth):
        """Return a date."""
        return self.one(
            self.call("date_trunc", exp.Literal.string(self.one(*UNITS)), self.scalar(Type.DATE, depth)),
            exp.cast(self.scalar(self.one(Type.TIMESTAMP, Type.STRING), depth), "date"),
        )

    def timestamp(self, depth):
        """Return a time."""
        unit = exp.Literal.string(self.one(*UNITS, "hour", "second"))
        return self.call("date_trunc", unit, self.scalar(Type.TIMESTAMP, depth))

    def predicate(self, depth):
        """Return a condition."""
        if depth > 0 and self.chance(0.3):
            parts = [exp.paren(self.predicate(depth - 1)) for _ in range(self.random.randint(1, 3))]
            return exp.Not(this=parts[0]) if len(parts) == 1 else self.one(exp.and_, exp.or_)(*parts)
        kind = self.one(*(kind for kind in KINDS if kind is not Type.BOOLEAN))
        value, other = self.scalar(kind, depth - 1), self.scalar(kind, depth - 1)
        compared = self.one(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
        return self.one(
            compared(this=exp.paren(value), expression=exp.paren(other)),
            exp.In(this=exp.column(self.one(*KINDS[kind])), expressions=[self.constant(kind) for _ in range(2)]),
            exp.Between(this=exp.paren(value), low=self.constant(kind), high=exp.paren(other)),
            exp.Is(this=exp.paren(value), expression=exp.null()),
            exp.Like(this=exp.column("name"), expression=exp.Literal.string(self.one("a%", "%_é", ""))),
            exp.column("paid"),
            exp.Is(this=exp.column("paid"), expression=exp.Boolean(this=self.chance(0.5))),
            exp.NullSafeEQ(this=exp.paren(value), expression=exp.paren(other)),
        )  # fmt: skip

    def outside(self, depth):
        """Return what is not part of the language, or not where it stands."""
        return self.one(
            self.call("random"),
            self.call("now"),
            exp.CurrentDate(),
            self.call("steal", exp.column("fare")),
            exp.column("fares"),
            exp.null(),
            exp.select("1").subquery(),
            self.call("sum", exp.column("fare")),
            exp.Window(this=self.call("row_number")),
            exp.Star(),
            self.call("sqrt"),
            exp.Interval(this=exp.Literal.string("1"), unit=exp.var("DAY")),
            exp.BitwiseAnd(this=exp.column("seats"), expression=exp.column("month")),
            self.scalar(self.one(*KINDS), depth - 1),
            exp.Placeholder(),
            exp.Literal.number("9" * 30),
        )

    def aggregate(self, depth):
        """Return an aggregate."""
        value = self.call(
            "clamp", self.scalar(self.one(Type.FLOAT, Type.INTEGER), depth),
            exp.Literal.number("-10"), exp.Literal.number(self.one("50", "7.5")),
        )  # fmt: skip
        names = ("sum", "avg", "var_pop", "variance", "stddev", "stddev_pop", "min", "max", "median")
        found = self.one(
            self.call("count", exp.Star()),
            self.call("count", exp.column(self.one(*SCHEMA.names))),
            self.call("count", self.scalar(self.one(*KINDS), depth)),
            self.call("count", exp.Distinct(expressions=[exp.column("rider")])),
            self.call("count", exp.Distinct(expressions=[self.scalar(self.one(*KINDS), depth)])),
            *(self.call(name, value) for name in names),
            self.call("percentile_cont", value, exp.Literal.number("0.9")),
        )
        distinct = isinstance(found.expressions[0], exp.Distinct)
        if self.chance(0.2) and not distinct:
            return exp.Filter(this=found, expression=exp.Where(this=self.predicate(depth)))
        return found

    def computed(self, depth):
        """Return an aggregate, or arithmetic with some that is one."""
        if not self.chance(0.15):
            return self.aggregate(depth)
        value = self.call("clamp", self.scalar(Type.FLOAT, depth), exp.Literal.number("0"), exp.Literal.number("9"))
        rows, there = self.call("count", exp.Star()), self.call("count", self.scalar(self.one(*KINDS), depth))
        ones = exp.Case(ifs=[exp.If(this=self.predicate(depth), true=exp.Literal.number("1"))])
        share = exp.Mul(this=exp.Literal.number("100.0"), expression=there)
        return self.one(
            exp.Div(this=share, expression=rows),
            exp.Sub(this=exp.Literal.number("1"), expression=exp.Div(this=there, expression=rows)),
            exp.Sub(this=self.call("sum", value), expression=there),
            exp.Div(this=exp.paren(exp.Add(this=self.call("sum", value), expression=rows)), expression=rows),
            exp.Mul(this=self.call("avg", value), expression=exp.Literal.number("0.5")),
            self.call("sum", ones),
            self.call("avg", exp.paren(self.predicate(depth))),
        )  # fmt: skip

    def source(self, depth):
        """Return what stands in FROM: the table, or subqueries of it that keep its columns."""
        if not self.chance(0.3):
            return "rides"
        inside = exp.select("*").from_(self.source(depth))
        if self.chance(0.5):
            inside = inside.where(self.predicate(depth))
        if self.chance(0.5):
            kind = self.one(*KINDS)
            renamed = self.one(*KINDS[kind])
            others = [exp.column(name) for name in SCHEMA.names if name != renamed]
            inside.set("expressions", [*others, exp.alias_(self.scalar(kind, depth), renamed)])
        elif self.chance(0.4):
            renamed = self.one("fare", "seats")
            others = [exp.column(name) for name in SCHEMA.names if name != renamed]
            inside.set("expressions", [*others, exp.alias_(self.window(renamed, depth), renamed)])
        elif self.chance(0.4):
            columns = [exp.column(name) for name in SCHEMA.names]
            both = [exp.select(*columns).from_(self.source(depth)).where(self.predicate(depth)) for _ in range(2)]
            inside = exp.union(*both, distinct=False)
        return inside.subquery("rides")

    def window(self, renamed, depth):
        """Return a window by the unit, of the type of a column."""
        kind = Type.FLOAT if renamed == "fare" else Type.INTEGER
        value = self.scalar(kind, depth)
        function = self.one("lag", "sum", "max", "row_number" if renamed == "seats" else "first_value")
        order = exp.Ordered(
            this=exp.column(self.one("day", "fare", "zone", "paid")), desc=self.chance(0.5), nulls_first=False
        )
        return exp.Window(
            this=self.call(function, *([] if function == "row_number" else [value])),
            partition_by=[exp.column("rider"), *([exp.column("zone")] if self.chance(0.3) else [])],
            order=exp.Order(expressions=[order]),
        )

    def query(self):
        """Return a question."""
        depth = self.random.randint(0, 3)
        groups = [self.scalar(self.one(*KINDS), self.one(0, 1, 2)) for _ in range(self.random.choice((0, 1, 1, 2)))]
        aggregates = [self.computed(depth) for _ in range(self.random.choice((1, 1, 2, 4)))]
        items = [exp.alias_(value, f"g{place}") for place, value in enumerate(groups)]
        items += [exp.alias_(value, f"a{place}") for place, value in enumerate(aggregates)]
        self.random.shuffle(items)
        select = exp.select(*items).from_(self.source(depth))
        if self.chance(0.25):
            table = exp.to_table("zones")
            on = exp.EQ(this=exp.column("zone", "rides"), expression=exp.column("zone", "zones"))
            select = select.join(table, on=on, join_type=self.one("", "left"))
            select = select.transform(self.qualified)
        if self.chance(0.6):
            select = select.where(self.predicate(depth))
            select = select.transform(self.qualified) if select.args.get("joins") else select
        if groups:
            select = select.group_by(*(f"g{place}" for place in range(len(groups))))
        if self.chance(0.3):
            select = select.having(exp.GT(this=exp.column("a0"), expression=exp.Literal.number("3")))
        if self.chance(0.3):
            select = select.order_by(exp.Ordered(this=exp.column("a0"), desc=self.chance(0.5), nulls_first=False))
        return select.limit(5) if self.chance(0.2) else select

    @staticmethod
    def qualified(node):
        """Return a column `zone` as that of the protected table: a joined one has it, too."""
        if isinstance(node, exp.Column) and node.name == "zone" and not node.table:
            return exp.column("zone", "rides")
        return node


def read(text):
    """Return what a text asks for."""
    return parse(
        text, table="rides", schema=SCHEMA, tables=BESIDE, public=frozenset(BESIDE), unit="rider",
        bounds=Bounds(lower=0, upper=9),
    )  # fmt: skip


def asked(text):
    """Return what a text asks for, or None where it is refused: by an error of ours that says the rule and a way on."""
    try:
        return read(text)
    except FarthingError as problem:
        refusal = problem
    assert refusal.rule
    assert refusal.next_step
    return None


def respelled(text):
    """Yield other spellings of a text: by lines, with comments, and with other letters for the keywords."""
    (tree,) = READER.parse(text)
    yield tree.sql(dialect=READER, pretty=True)
    yield f"-- first\n{text.replace(' FROM ', ' /* here */ FROM ')};"
    yield tree.sql(dialect=READER, identify=True).replace("SELECT", "select").replace(" AS ", " as ")


def check_spellings(first, count):
    """Check that random questions are read or refused, and that every spelling is read alike."""
    accepted = 0
    for seed in range(first, first + count):
        text = Writer(seed, wild=seed % 4 == 0).query().sql(dialect=READER)
        found = asked(text)
        if found is not None:
            accepted += 1
            for other in respelled(text):
                assert found == asked(other), (text, other)
    assert accepted > 0.7 * count


def test_random_questions_are_read_or_refused():
    """No question crashes; an accepted one has one meaning, however it is laid out."""
    check_spellings(0, sweep(150, 500))


@pytest.mark.slow
def test_twenty_thousand_random_questions():
    """The same, for longer."""
    check_spellings(10**6, 20_000)


def broken(text, chooser):
    """Return a text with a piece of it lost, repeated, moved or replaced."""
    start, end = sorted(chooser.randrange(len(text)) for _ in range(2))
    piece = text[start : min(end, start + 12)]
    odd = ["(", ")", "'", '"', "`", ",", ";", "--", "/*", "*", "::", "=>", "->", "[", "{", "$1", "?", ":", ".", "\x00"]
    odd += [" SELECT ", " FROM ", " OVER ()", " WITH ", " UNION ", " IS ", " NOT ", " CASE ", " EXPLAIN ", " EXISTS "]
    odd += [" OPTIONS (", " LIMIT ", " DISTINCT ", " INTERVAL ", "9" * 400, "\U0001f600", "\u202e", " GROUP BY ALL "]
    return chooser.choice(
        [
            text[:start] + text[start + len(piece) :],
            text[:start] + piece + text[start:],
            text[:start] + chooser.choice(odd) + text[start:],
            text[:start] + chooser.choice(odd) + text[start + len(piece) :],
            text[:start],
        ]
    )


def check_broken(first, count):
    """Check that broken text is read or refused."""
    for seed in range(first, first + count):
        chooser = random.Random(seed)
        text = Writer(seed).query().sql(dialect=READER)
        if seed % 3 == 0:
            text = text.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_rows = 3)", 1)
        for _ in range(chooser.randint(1, 3)):
            text = broken(text, chooser) or "SELECT"
        asked(text)


def test_broken_text_is_read_or_refused():
    """Lost brackets, open quotes, stray words: a refusal, or a question, and nothing else."""
    check_broken(0, sweep(150, 500))


@pytest.mark.slow
def test_twenty_thousand_broken_texts():
    """The same, for longer."""
    check_broken(10**6, 20_000)


PLAIN = [
    "SELECT zone, COUNT(*) AS n FROM rides WHERE month = 3 AND fare > 2.5 GROUP BY zone HAVING n > 5 LIMIT 3",
    "SELECT EXTRACT(YEAR FROM day) AS y, COUNT(DISTINCT rider) AS n FROM rides GROUP BY EXTRACT(YEAR FROM day)",
    "SELECT CASE WHEN fare > 9 THEN 'hi' ELSE 'lo' END AS c, COUNT(fare) AS n FROM rides GROUP BY 1",
    "SELECT SUM(fare) AS s, MIN(tip) AS l, MAX(tip) AS h FROM rides WHERE zone IN ('a', 'b') OR name IS NULL",
    "SELECT date_trunc('month', at) AS m, COUNT(*) AS n FROM rides GROUP BY 1",
    "SELECT COUNT(*) AS n FROM rides WHERE CAST(name AS BIGINT) > 5 AND COALESCE(seats, 0) < 4",
    "SELECT zones.borough AS b, AVG(fare) AS f FROM rides JOIN zones ON rides.zone = zones.zone GROUP BY 1",
    "SELECT VAR_SAMP(fare) AS v, STDDEV_POP(fare) AS d, VAR_POP(tip) AS w FROM rides WHERE name LIKE 'a%'",
    "SELECT UPPER(zone) AS u, COUNT(*) AS n FROM rides WHERE NOT day BETWEEN '2013-01-01' AND '2013-02-01' GROUP BY 1",
]


@pytest.mark.parametrize("text", PLAIN)
@pytest.mark.parametrize("dialect", ["postgres", "bigquery"])
def test_other_dialects_ask_the_same(text, dialect):
    """What sqlglot writes for PostgreSQL and BigQuery is the question that it was in DuckDB."""
    (other,) = sqlglot.transpile(text, read="duckdb", write=dialect)

    assert read(text) == read(other), other


def rows(seed, count=24):
    """Return rows of a table, some of them odd."""
    chooser = random.Random(seed)
    values = {
        Type.STRING: ["a", "ORD", "", "12", " b ", "é", None],
        Type.FLOAT: [0.0, -0.0, 0.5, 2.25, -3.5, 1e200, float("inf"), float("nan"), None],
        Type.INTEGER: [0, 1, 2, 3, -7, 2**62, None],
        Type.BOOLEAN: [True, False, None],
        Type.DATE: [dt.date(2013, 1, 31), dt.date(2012, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31), None],
        Type.TIMESTAMP: [dt.datetime(2013, 1, 31, 10, 20, 30, 5), dt.datetime(1969, 12, 31, 23, 59, 59), None],
    }
    made = [{name: chooser.choice(values[kind]) for name, kind in SCHEMA.columns} for _ in range(count)]
    return [{**row, "rider": chooser.choice([1, 2, 3, 4, None])} for row in made]


ARROW = {
    Type.STRING: pa.string(), Type.FLOAT: pa.float64(), Type.INTEGER: pa.int64(), Type.BOOLEAN: pa.bool_(),
    Type.DATE: pa.date32(), Type.TIMESTAMP: pa.timestamp("us"),
}  # fmt: skip
ZONES = [
    {"zone": "a", "borough": "x", "lift": 1.5},
    {"zone": "a", "borough": "y", "lift": None},
    {"zone": "ORD", "borough": None, "lift": 2.0},
]


def arrow(found, schema):
    """Return rows as Arrow."""
    return pa.table({name: pa.array([row[name] for row in found], ARROW[kind]) for name, kind in schema.columns})


@cache
def engines(seed):
    """Return both engines of one table."""
    from farthing.engines.memory.engine import Beside

    found = rows(seed)
    memory = MemoryEngine(found, SCHEMA, "rides", beside={"zones": Beside(ZONES, BESIDE["zones"])})
    return memory, open_table(arrow(found, SCHEMA), "rides", public={"zones": arrow(ZONES, BESIDE["zones"])})


def question(found, max_rows, memory):
    """Return a question with the groups that its rows are in, by the memory engine, as keys."""
    from farthing.engines.engine import scope

    columns = scope(memory, found.joins, unit="rider", derived=found.derived, source=found.source)
    named = dict(found.groupings)
    search = Query(
        "rides", found.by, None, found.where, (), PrivacyUnit("rider"), Bounds(10**4, max_rows), None,
        found.groupings, found.joins, found.derived, found.source,
    )  # fmt: skip
    keys = None
    if found.by:
        kinds = {name: type_of(named[name], columns) if name in named else columns.require(name) for name in found.by}
        listed = memory.found(search, hash_key=1).keys
        if not len(listed):
            return None
        keys = Keys.of(found.by, listed, Schema.of(kinds))
    return Query(
        "rides", found.by, keys, found.where, found.outputs, PrivacyUnit("rider"), Bounds(10**4, max_rows), None,
        found.groupings, found.joins, found.derived, found.source,
    )  # fmt: skip


def check_engines(first, count):
    """Check that both engines give the same measures and histograms for random questions."""
    compared = 0
    for seed in range(first, first + count):
        text = Writer(seed).query().sql(dialect=READER)
        found = asked(text)
        memory, duck = engines(seed % 5)
        query = None if found is None else question(found, 10**4 if seed % 2 else 2, memory)
        if query is None:
            continue
        compared += 1
        if query.measures:
            expected, got = (engine.measure(query, hash_key=1) for engine in (memory, duck))
            assert expected.tolist() == got.tolist(), text
        for output in query.outputs:
            if isinstance(output.aggregate, Quantile) and seed % 2:
                expected, got = (engine.histogram(query, output.aggregate, hash_key=1) for engine in (memory, duck))
                assert cells(expected) == cells(got), text
    assert compared > 0.6 * count


def cells(histogram):
    """Return the cells of a histogram, in order."""
    return sorted(np.stack([histogram.groups, histogram.leaves, histogram.counts], axis=1).tolist())


def test_both_engines_agree_on_random_questions():
    """Before noise, DuckDB's numbers are those of plain Python, row by row."""
    check_engines(0, sweep(60, 150))


@pytest.mark.slow
def test_both_engines_agree_on_many_random_questions():
    """The same, for longer."""
    check_engines(10**6, 20_000)


def test_a_grouping_column_may_be_counted():
    """COUNT(day) beside GROUP BY day is zero or the rows of the day, on both engines."""
    memory, duck = engines(0)
    query = question(read("SELECT day, COUNT(day) AS n FROM rides GROUP BY day"), 10**4, memory)

    assert memory.measure(query, hash_key=1).tolist() == duck.measure(query, hash_key=1).tolist()
