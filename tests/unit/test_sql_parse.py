"""SQL to a question: what is understood, and what is refused by which name, where."""

# ruff: noqa: DTZ001  times in questions have no zone

from __future__ import annotations

import datetime as dt

import pytest
from work import calls_of

from farthing.errors import UnsupportedQuery
from farthing.query import Schema, Type, counting
from farthing.query.expressions import And, Column, Compare, In, IsNull, Literal, Not, Operator
from farthing.sql import parse, parse_predicate
from farthing.sql.instead import NEVER

SCHEMA = Schema.of(
    {
        "dest": Type.STRING,
        "dep_delay": Type.FLOAT,
        "month": Type.INTEGER,
        "day": Type.DATE,
        "at": Type.TIMESTAMP,
        "ok": Type.BOOLEAN,
        "Year": Type.INTEGER,
    }
)


def read(text):
    """Parse a question over the flights."""
    return parse(text, table="flights", schema=SCHEMA)


@pytest.mark.parametrize(
    ("text", "by", "name"),
    [
        ("SELECT dest, COUNT(*) AS flights FROM flights GROUP BY dest", ("dest",), "flights"),
        ("select count(*) from flights", (), "count"),
        ("select count() from flights", (), "count"),
        ("select count(1) from flights", (), "count"),
        ("select count(*) n from FLIGHTS;", (), "n"),
        ("SELECT dest, COUNT(*) FROM flights GROUP BY 1", ("dest",), "count"),
        ("SELECT COUNT(*) FROM flights GROUP BY month, DEST", ("month", "dest"), "count"),
        ("SELECT f.dest, COUNT(*) FROM flights AS f GROUP BY f.dest", ("dest",), "count"),
        ('SELECT flights."dest", COUNT(*) "my n" FROM "flights" GROUP BY dest', ("dest",), "my n"),
        ("SELECT `dest`, COUNT(*) AS n FROM `flights` GROUP BY `dest`", ("dest",), "n"),
        ("SELECT year, COUNT(*) FROM flights -- all\nGROUP BY /* by */ year", ("Year",), "count"),
        ("SELECT COUNT(*), dest, month FROM flights GROUP BY ALL", ("dest", "month"), "count"),
        ("FROM flights SELECT dest, COUNT(*) GROUP BY dest", ("dest",), "count"),
    ],
)
def test_understood_questions(text, by, name):
    """Grouping columns by name or place, aliases, qualifiers, case and comments are understood."""
    asked = read(text)

    assert by == asked.by
    assert counting(name) == asked.outputs
    assert (name, None, (), ()) == (asked.name, asked.where, asked.groupings, asked.joins)


COMPARISONS = [
    ("dep_delay > 15", Compare(Column("dep_delay"), Operator.GT, Literal(15))),
    ("15.0 < dep_delay", Compare(Literal(15.0), Operator.LT, Column("dep_delay"))),
    ("month <> -1", Compare(Column("month"), Operator.NE, Literal(-1))),
    ("month != 1e3", Compare(Column("month"), Operator.NE, Literal(1000.0))),
    ("dep_delay <= 1.5", Compare(Column("dep_delay"), Operator.LE, Literal(1.5))),
    ("dest = 'O''Hare'", Compare(Column("dest"), Operator.EQ, Literal("O'Hare"))),
    ("dest = '--'", Compare(Column("dest"), Operator.EQ, Literal("--"))),
    ("day >= '2013-01-31'", Compare(Column("day"), Operator.GE, Literal(dt.date(2013, 1, 31)))),
    ("day >= DATE '2013-01-31'", Compare(Column("day"), Operator.GE, Literal(dt.date(2013, 1, 31)))),
    ("at < date '2013-01-31'", Compare(Column("at"), Operator.LT, Literal(dt.datetime(2013, 1, 31)))),
    ("at < '2013-01-31 12:30'", Compare(Column("at"), Operator.LT, Literal(dt.datetime(2013, 1, 31, 12, 30)))),
    ("ok", Compare(Column("ok"), Operator.EQ, Literal(value=True))),
    ("NOT ok", Not(Compare(Column("ok"), Operator.EQ, Literal(value=True)))),
    ("(dest) IS NOT NULL", Not(IsNull(Column("dest")))),
    ("month NOT IN (1, 2)", Not(In(Column("month"), (Literal(1), Literal(2))))),
    ("dest NOT LIKE 'A%'", Not(parse_predicate("dest LIKE 'A%'", SCHEMA))),
    ("dest !~~ 'A%'", Not(parse_predicate("dest LIKE 'A%'", SCHEMA))),
    ("dest NOT ILIKE 'A%'", Not(parse_predicate("dest ILIKE 'A%'", SCHEMA))),
    ("month NOT BETWEEN 1 AND 2", Not(parse_predicate("month BETWEEN 1 AND 2", SCHEMA))),
    ("ok and month = 1 and (dest is null)", None),
    ("floor(100*power(month*2, 0.7)) = floor(100*power(month*2, 0.7)+0.5)", None),
    ("dep_delay / 0 > 1", None),
    ("upper(dest) LIKE 'A%' OR NOT starts_with(dest, 'B')", None),
    ("CAST(dest AS INT) = 5 AND try_cast(dest AS BIGINT) = 5 AND dest::integer = 5", None),
    ("ok IS TRUE AND NOT ok IS FALSE AND (month > 1) IS NOT TRUE", None),
    ("dest IS NOT DISTINCT FROM 'x' AND dest IS DISTINCT FROM 'y'", None),
    ("CASE month WHEN 1 THEN 'a' WHEN 2 THEN NULL ELSE 'b' END = 'a'", None),
    ("if(ok, month, NULL) BETWEEN abs(-3) AND least(12, month)", None),
    ("day - DATE '2013-01-01' > 5", None),
    ("coalesce(day, '2013-01-01') < '2014-01-01'", None),
]


@pytest.mark.parametrize(("text", "expected"), COMPARISONS)
def test_understood_predicates(text, expected):
    """Predicates become the closed language, the same after WHERE and on their own."""
    alone = parse_predicate(text, SCHEMA)

    assert alone == read(f"SELECT COUNT(*) FROM flights WHERE {text}").where
    assert expected is None or expected == alone


def test_chains_are_flat():
    """A long chain of ANDs is one expression, not a tower."""
    parsed = parse_predicate(" and ".join(["ok"] * 500), SCHEMA)

    assert isinstance(parsed, And)
    assert len(parsed.operands) == 500


REFUSED = [
    ("SELECT * FROM flights", "SELECT *", (1, 8)),
    ("SELECT dest FROM flights GROUP BY dest", "SELECT without an aggregate", (1, 1)),
    ("SELECT dest, COUNT(*) FROM flights", "column 'dest' outside of GROUP BY", (1, 8)),
    ("SELECT COUNT(*) FROM flights WHERE dest IN (SELECT 'x')", "a subquery", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE dest NOT LIKE ANY ('A%', 'B%')", "ANY or ALL", None),
    ("SELECT (SELECT 1), COUNT(*) FROM flights", "a subquery", (1, 16)),
    ("SELECT DISTINCT dest, COUNT(*) FROM flights GROUP BY dest", "DISTINCT", (1, 8)),
    ("SELECT COUNT(*) OVER () FROM flights", "a window (OVER)", (1, 8)),
    ("SELECT COUNT(*) FROM flights GROUP BY 2", "GROUP BY 2", (1, 39)),
    ("SELECT COUNT(*) FROM flights GROUP BY dest WITH ROLLUP", "WITH ROLLUP", (1, 44)),
    ("SELECT COUNT(*) AS dest FROM flights GROUP BY dest", "alias 'dest'", (1, 20)),
    ("WITH x AS (SELECT 1) SELECT COUNT(*) FROM flights", "SELECT without FROM", (1, 19)),
    ("SELECT COUNT(*) FROM flights UNION SELECT 1", "UNION", (1, 30)),
    ("SELECT COUNT(*) FROM flights; SELECT 1", "several statements", (1, 29)),
    ("DROP TABLE flights", "DROP statement", (1, 1)),
    ("PRAGMA database_list", "PRAGMA statement", (1, 1)),
    ("COPY flights TO 'x'", "COPY statement", (1, 1)),
    ("SET threads = 1", "SET statement", (1, 1)),
    ("INSTALL httpfs", "INSTALL statement", (1, 1)),
    ("SELECT COUNT(*) FROM read_csv('/etc/passwd')", "a table function", (1, 17)),
    ("SELECT COUNT(*) FROM '/etc/passwd'", "table '/etc/passwd'", (1, 22)),
    ("SELECT COUNT(*) FROM fligths", "table 'fligths'", (1, 22)),
    ("SELECT COUNT(*) FROM other.flights", "a table of another schema", (1, 22)),
    ("SELECT COUNT(*) FROM flights TABLESAMPLE 10%", "SAMPLE", (1, 22)),
    ("SELECT COUNT(*) FROM flights\nJOIN airports USING (dest)", "JOIN of table 'airports'", (2, 6)),
    ("SELECT COUNT(*) FROM flights, airports", "JOIN without ON", (1, 31)),
    ("SELECT COUNT(*) OVER () FROM flights", "a window (OVER)", (1, 8)),
    ("SELECT COUNT(DISTINCT dest, day) FROM flights", "COUNT(DISTINCT ...) of several values", (1, 8)),
    ("SELECT SUM(DISTINCT month) FROM flights", "DISTINCT", (1, 21)),
    ("SELECT UPPER(dest), COUNT(*) FROM flights", "a value outside of GROUP BY", (1, 8)),
    ("SELECT 1, COUNT(*) FROM flights", "a value outside of GROUP BY", (1, 8)),
    ("SELECT COUNT(*) % 2 FROM flights", "arithmetic with an aggregate", (1, 8)),
    ("SELECT SQRT(AVG(month)) FROM flights", "SQRT of an aggregate", (1, 8)),
    ("SELECT SUM(CLAMP(COUNT(*), 0, 1)) FROM flights", "aggregate COUNT in an aggregate", (1, 18)),
    ("SELECT COUNT(*) FROM flights WHERE COUNT(*) > 1", "aggregate COUNT in WHERE", (1, 36)),
    ("SELECT COUNT(*) FROM flights GROUP BY COUNT(*)", "aggregate COUNT in GROUP BY", (1, 39)),
    ("SELECT COUNT(*) FROM flights GROUP BY 1", "GROUP BY 1", (1, 39)),
    ("SELECT COUNT(*) FROM flights GROUP BY 'x'", "GROUP BY of a constant", None),
    ("SELECT COUNT(*) FROM flights GROUP BY dest, DEST", "GROUP BY dest twice", (1, 45)),
    ("SELECT COUNT(ok) FROM flights GROUP BY CUBE (dest)", "grouping sets of anything but COUNT(*)", (1, 31)),
    ("SELECT GROUPING(dest), COUNT(*) FROM flights GROUP BY dest", "GROUPING without grouping sets", (1, 8)),
    ("SELECT month m, day m, COUNT(*) FROM flights GROUP BY 1, 2", "alias 'm'", (1, 58)),
    ("SELECT COUNT(*) n, COUNT(ok) n FROM flights", "alias 'n'", (1, 17)),
    ("SELECT MODE(month) FROM flights", "function MODE", (1, 8)),
    ("SELECT MEDAIN(month), COUNT(*) FROM flights", "function MEDAIN", (1, 8)),
    ("SELECT COUNT(*) FROM flights QUALIFY ROW_NUMBER() OVER () > 1", "a window (OVER)", (1, 38)),
    ("SELECT COUNT(*) FROM flights WHERE list_filter(dest, x -> x)", "function list_filter", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE abs(x -> x) > 1", "a lambda", None),
    ("SELECT COUNT(*) FROM flights WHERE random() < 1", "function RANDOM", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE day < now()", "function NOW", (1, 42)),
    ("SELECT COUNT(*) FROM flights WHERE day < current_date", "function CURRENT_DATE", None),
    ("SELECT COUNT(*) FROM flights WHERE day < current_timestamp", "function CURRENT_TIMESTAMP", None),
    ("SELECT COUNT(*) FROM flights WHERE read_text('x') = 'y'", "function READ_TEXT", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE getenv('x') = 'y'", "function GETENV", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE exists (SELECT 1)", "a subquery", (1, 51)),
    ("SELECT COUNT(*) FROM flights WHERE month = ANY (SELECT 1)", "ANY or ALL", None),
    ("SELECT COUNT(*) FROM flights WHERE month = $1", "a parameter", None),
    ("SELECT COUNT(*) FROM flights WHERE dest ILIKE 'Ä%'", "ILIKE of other letters than ASCII", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE dest LIKE 'a!%' ESCAPE '!'", "LIKE with ESCAPE", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE dest LIKE dest", "argument of LIKE", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE dest ~ 'a'", "a regular expression", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE day > INTERVAL '1 day'", "INTERVAL", None),
    ("SELECT COUNT(*) FROM flights WHERE month & 1 = 1", "operator BitwiseAnd", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE log(month) > 1", "function LOG", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE sqrt(month, 2) > 1", "SQRT with 2 arguments", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE abs(x => month) > 1", "a named argument", None),
    ("SELECT COUNT(*) FROM flights WHERE dest + 1 > 2", "string in ADD", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE CAST(dep_delay AS VARCHAR) = '1'", "CAST of float to string", (1, 41)),
    ("SELECT COUNT(*) FROM flights WHERE dest::decimal(9, 2) > 1", "CAST to DECIMAL(9, 2)", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE dest::int[] = 1", "CAST to INT[]", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE extract(dayofweek FROM day) = 1", "EXTRACT of dayofweek", None),
    ("SELECT COUNT(*) FROM flights WHERE date_trunc(day, WEEK) = day", "DATE_TRUNC to WEEK", None),
    ("SELECT COUNT(*) FROM flights WHERE date_trunc('fortnight', day) = day", "DATE_TRUNC to fortnight", None),
    ("SELECT COUNT(*) FROM flights WHERE date_diff('month', day, day) = 1", "DATE_DIFF in months", None),
    ("SELECT COUNT(*) FROM flights WHERE CASE WHEN ok THEN NULL END = 1", "CASE without a value", None),
    ("SELECT COUNT(*) FROM flights WHERE trim(dest, 'x') = 'a'", "TRIM of other letters", (1, 41)),
    ('SELECT COUNT(*) FROM flights WHERE dest = "ORD"', "unknown column", (1, 43)),
    ("EXPLAIN ANALYZE SELECT COUNT(*) FROM flights", "EXPLAIN ANALYZE", (1, 1)),
    ("CALL pragma_version()", "CALL statement", (1, 1)),
    ("SELECT COUNT(*)", "SELECT without FROM", (1, 8)),
    ("SELECT COUNT(*) FROM flights WHERE dset = 'x'", "unknown column", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE o.dest = 'x'", "table 'o'", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE dest > 5", "type mismatch", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE steal(dest)", "function steal", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE month = 1 AND dest = NULL", "NULL as a value", (1, 50)),
    ("SELECT COUNT(*) FROM flights WHERE dep_delay > 1e999", "a number out of range", (1, 48)),
    ("SELECT COUNT(*) FROM flights WHERE month > 99999999999999999999", "number out of range", (1, 44)),
    ("SELECT COUNT(*) FROM flights WHERE day > '2013-13-01'", "date '2013-13-01'", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE ok IS 3", "IS of anything but NULL, TRUE or FALSE", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE dest IN (month)", "IN without a list of constants", (1, 36)),
    ("SELECT COUNT(*) FROM flights WHERE", "syntax", (1, 30)),
    ("SELECT COUNT(*\nFROM flights", "syntax", None),
    ("SELECT COUNT(*) FROM flights WHERE dest = 'x", "syntax", None),
    ("", "an empty question", None),
    (" ; ", "an empty question", (1, 2)),
]


@pytest.mark.parametrize(("text", "construct", "position"), REFUSED)
def test_everything_else_is_refused_by_name(text, construct, position):
    """A refusal names the construct, its line and column, the rule and the next step."""
    with pytest.raises(UnsupportedQuery) as caught:
        read(text)

    assert construct == caught.value.construct
    assert position is None or position == caught.value.position
    assert caught.value.rule
    assert caught.value.next_step
    assert position is None or f"line {position[0]}, column {position[1]}" in str(caught.value)


def test_neighbours_are_named():
    """An unknown column names the nearest one, and the rule that it breaks."""
    with pytest.raises(UnsupportedQuery, match=r"rule: a question names columns .* did you mean 'dest'"):
        read("SELECT dst, COUNT(*) FROM flights GROUP BY dst")


@pytest.mark.parametrize("name", sorted({*NEVER} - {"GROUPING", "GROUPING_ID"}))
def test_what_to_write_instead_is_said_of_every_function_that_has_no_place(name):
    """Also of aggregates that others have: none is taken for a function whose name is like it."""
    with pytest.raises(UnsupportedQuery) as caught:
        read(f"SELECT {name}(month) FROM flights")

    assert caught.value.next_step == NEVER[name]
    assert "lists" in caught.value.rule or "listed" in caught.value.rule


@pytest.mark.parametrize(
    ("written", "meant"), [("AVGG", "AVG"), ("MEDAIN", "MEDIAN"), ("BIT_AND", None), ("ENTROPY", None)]
)
def test_a_function_is_named_that_was_nearly_written(written, meant):
    """Names that are less alike mean something else."""
    with pytest.raises(UnsupportedQuery) as caught:
        read(f"SELECT {written}(month) FROM flights")

    assert caught.value.next_step == (f"did you mean {meant}?" if meant else "look for one of that list that will do")


@pytest.mark.parametrize(
    "text", ["SELECT 1", "ok; ok", "ok GROUP BY dest", "exists (select 1)", "dest", "1", "", "DROP TABLE x"]
)
def test_a_predicate_is_a_predicate(text):
    """Text for where= cannot smuggle anything else in."""
    with pytest.raises(UnsupportedQuery):
        parse_predicate(text, SCHEMA)


HEAD = "SELECT COUNT(*) FROM flights WHERE "


@pytest.mark.parametrize(
    "text",
    [
        "x" * 1_000_000,
        HEAD + "(" * 10_000 + "ok" + ")" * 10_000,
        HEAD + "NOT " * 10_000 + "ok",
        HEAD + "month = " + "- " * 10_000 + "1",
        HEAD + "CASE WHEN " * 5_000 + "ok",
        HEAD + "ok" + "::int" * 10_000,
        HEAD + "month = " + "interval " * 5_000 + "1",
        HEAD + "month" + " IS NULL" * 5_000,
        HEAD + "month = 1" + " + 1" * 10_000,
        HEAD + "dest = 'a'" + " || 'b'" * 10_000,
        HEAD + " and ".join(["ok"] * 9_000) + " and dset",
        HEAD + "month" + " = 1" * 10_000,
        HEAD + "month" + "[1]" * 10_000,
        HEAD + "a" + ".a" * 10_000,
        "SELECT " + "ARRAY[{'a':" * 5_000,
        "SELECT COUNT(*) FROM flights" + " JOIN flights" * 5_000,
        "SELECT COUNT(*) FROM flights" + " UNION SELECT 1" * 5_000,
        "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 5_000,
        "SELECT COUNT(*) FROM flights WHERE dest = '\ud800'",
    ],
    ids=range(19),
)
def test_huge_or_deep_text_is_refused_cleanly(text):
    """Text made to exhaust a parser is refused like any other, with work that grows no faster than the text."""

    def refused():
        with pytest.raises(UnsupportedQuery) as caught:
            read(text)
        assert caught.value.position or "syntax" == caught.value.construct

    assert calls_of(refused) < 100_000 + 100 * len(text)
