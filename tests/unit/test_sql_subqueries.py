"""Subqueries and WITH: what they are of the one flat question, and what is refused because it mixes units."""

from __future__ import annotations

import pyarrow as pa
import pytest

import farthing
from farthing.errors import FarthingError, UnsupportedQuery
from farthing.query import Schema, Type
from farthing.query.aggregates import Count
from farthing.sql import parse
from farthing.sql.subqueries import MOST_SELECTS

RIDES = Schema.of({"rider": Type.STRING, "zone": Type.INTEGER, "fare": Type.FLOAT, "day": Type.DATE})
TABLES = {
    "zones": Schema.of({"id": Type.INTEGER, "borough": Type.STRING, "day": Type.DATE}),
    "visits": Schema.of({"rider": Type.STRING, "shop": Type.STRING, "spent": Type.FLOAT}),
}


def read(text, unit="rider"):
    """Parse a question over the rides and the tables beside them."""
    return parse(text, table="rides", schema=RIDES, tables=TABLES, public=frozenset({"zones"}), unit=unit)


SAME = [
    ("FROM (SELECT * FROM rides WHERE fare > 3) AS v WHERE zone < 9", "FROM rides WHERE zone < 9 AND fare > 3"),
    ('FROM (SELECT fare AS "f" FROM "public"."rides") AS "v" WHERE "v"."f" > 3', "FROM rides WHERE fare > 3"),
    ("FROM (SELECT fare AS zone FROM rides) WHERE zone > 3", "FROM rides WHERE fare > 3"),
    ("FROM (SELECT zone AS fare, fare AS zone FROM rides) WHERE zone > fare", "FROM rides WHERE fare > zone"),
    ("FROM (SELECT fare > 3 AS high FROM rides ORDER BY fare) WHERE high", "FROM rides WHERE fare > 3"),
    ("FROM (SELECT fare + 1 AS f FROM (SELECT fare * 2 AS fare FROM rides)) WHERE f > 3",
     "FROM rides WHERE fare * 2 + 1 > 3"),
    ("FROM ((SELECT * FROM (rides) AS r)) AS v(a, b) WHERE b = 2", "FROM rides WHERE zone = 2"),
    ("FROM (SELECT v.* FROM rides v) w WHERE w.zone = 2", "FROM rides WHERE zone = 2"),
    ("FROM (WITH q AS (SELECT * FROM rides WHERE zone = 2) SELECT * FROM q) v", "FROM rides WHERE zone = 2"),
    ("FROM rides JOIN (SELECT id AS i FROM zones WHERE borough = 'x') z ON zone = i",
     "FROM rides JOIN zones ON zone = id AND borough = 'x'"),
    ("FROM rides LEFT JOIN (SELECT id AS zone FROM zones WHERE borough = 'x') z USING (zone)",
     "FROM rides LEFT JOIN zones ON zone = id AND borough = 'x'"),
    ("FROM (SELECT rider AS who FROM rides) v JOIN (SELECT rider AS r FROM visits WHERE spent > 1) w ON v.who = w.r",
     "FROM rides JOIN visits ON rides.rider = visits.rider AND spent > 1"),
]  # fmt: skip


@pytest.mark.parametrize(("nested", "flat"), SAME)
def test_a_subquery_is_the_flat_question(nested, flat):
    """Projections, filters and joins below are the same rows and the same question as one SELECT."""
    one, other = (read(f"SELECT COUNT(*) AS n {text}") for text in (nested, flat))

    assert (one.joins, one.outputs) == (other.joins, other.outputs)
    assert (one.where and one.where.canonical()) == (other.where and other.where.canonical())


@pytest.mark.parametrize("before", ["", "unused AS (SELECT * FROM rides), "])
def test_with_names_steps(before):
    """WITH, step by step, with new names of columns; the answer's columns are called as the text calls them."""
    asked = read(
        f"WITH {before}a(x, y) AS (SELECT zone, fare FROM rides), b AS MATERIALIZED (SELECT x, y FROM a WHERE y > 2) "
        "SELECT q.x, AVG(CLAMP(y, 0, 9)) FROM b AS q WHERE x < 5 GROUP BY q.x"
    )

    flat = read("SELECT zone AS x, AVG(CLAMP(fare, 0, 9)) AS avg_y FROM rides WHERE zone < 5 AND fare > 2 GROUP BY 1")
    assert (("x",), ("x", "avg_y")) == (asked.by, asked.columns)
    assert (flat.where, flat.outputs, flat.groupings) == (asked.where, asked.outputs, asked.groupings)


def test_a_select_above_a_question_shows_its_answer():
    """What tools wrap around a question chooses columns, groups and their order; what is not shown is not asked."""
    asked = read(
        "WITH final AS (SELECT zone, COUNT(*) AS n, AVG(CLAMP(fare, 0, 9)) AS a FROM rides GROUP BY 1 HAVING a > 1) "
        "SELECT v.n, zone FROM (SELECT * FROM final) AS v WHERE v.n > 10 ORDER BY 1 DESC LIMIT 7"
    )
    flat = read(
        "SELECT zone, COUNT(*) AS n, AVG(CLAMP(fare, 0, 9)) AS a FROM rides GROUP BY zone "
        "HAVING a > 1 AND n > 10 ORDER BY n DESC LIMIT 7"
    )
    unread = read("SELECT n FROM (SELECT COUNT(*) AS n, AVG(CLAMP(fare, 0, 9)) AS a FROM rides) AS v LIMIT 1000")

    assert (("n", "zone"), flat.aftermath, flat.outputs) == (asked.columns, asked.aftermath, asked.outputs)
    assert [Count()] == [output.aggregate for output in unread.outputs]


def test_a_select_above_a_question_may_give_new_names():
    """Groups, numbers and the ends of their intervals move together, in HAVING and ORDER BY, too."""
    asked = read(
        'SELECT "_"."n" AS "c1", zone AS "c0" FROM (SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone '
        'HAVING n_lower > 3) AS "_" WHERE n > 5 ORDER BY n DESC'
    )
    flat = read(
        "SELECT zone AS c0, COUNT(*) AS c1 FROM rides GROUP BY 1 HAVING c1_lower > 3 AND c1 > 5 ORDER BY c1 DESC"
    )

    assert (("c0",), ("c1", "c0")) == (asked.by, asked.columns)
    assert (flat.aftermath, flat.outputs, flat.groupings) == (asked.aftermath, asked.outputs, asked.groupings)


REFUSED = [
    ("SELECT COUNT(*) FROM (SELECT * FROM rides LIMIT 10) v", "LIMIT in a subquery", (1, 49)),
    ("SELECT COUNT(*) FROM (SELECT * FROM rides OFFSET 10) v", "OFFSET in a subquery", (1, 50)),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT zone FROM rides) v", "DISTINCT in a subquery", (1, 30)),
    ("SELECT COUNT(*) FROM (SELECT zone FROM rides GROUP BY zone) v", "GROUP BY in a subquery", (1, 55)),
    ("SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM rides) v", "an aggregate in a subquery", (1, 28)),
    ("SELECT COUNT(*) FROM (SELECT RANK() OVER () AS n FROM rides) v", "a window (OVER) of several units", (1, 30)),
    ("SELECT COUNT(*) FROM (SELECT MAX(fare) OVER () AS n FROM rides) v", "a window (OVER) of several units", None),
    ("SELECT COUNT(*) FROM (SELECT * FROM rides QUALIFY zone = 1) v", "QUALIFY without a window", (1, 43)),
    ("SELECT COUNT(*) FROM (SELECT * FROM rides UNION SELECT * FROM rides) v", "UNION in a subquery", (1, 43)),
    ("SELECT COUNT(*) FROM (SELECT * FROM rides EXCEPT SELECT * FROM rides) v", "EXCEPT in a subquery", (1, 43)),
    ("SELECT COUNT(*) FROM (SELECT * FROM rides USING SAMPLE 3) v", "SAMPLE", None),
    ("SELECT COUNT(*) FROM (VALUES (1)) v", "a table function", None),
    ("SELECT COUNT(*) FROM (SELECT 1 AS x) v", "SELECT without FROM", None),
    ("SELECT COUNT(*) FROM (SELECT fare + 1 FROM rides) v", "a value without a name in a subquery", (1, 30)),
    ("SELECT COUNT(*) FROM (SELECT zone AS a, fare AS a FROM rides) v WHERE a > 1", "ambiguous column 'a'", (1, 71)),
    ("SELECT COUNT(*) FROM (SELECT zone FROM rides) v WHERE fare > 1", "unknown column", (1, 55)),
    ("SELECT COUNT(*) FROM (SELECT zone FROM rides) v WHERE rides.zone > 1", "table 'rides'", (1, 55)),
    ("SELECT COUNT(*) FROM (SELECT zone FROM rides) v(a, b)", "more names than columns", None),
    ("SELECT COUNT(*) FROM (SELECT * FROM zones) v", "table 'zones'", (1, 30)),
    ("SELECT COUNT(*) FROM (SELECT * FROM secrets) v", "table 'secrets'", (1, 37)),
    ("SELECT COUNT(*) FROM other.rides", "a table of another schema", None),
    ("SELECT COUNT(*) FROM rides WHERE zone IN (SELECT zone FROM rides r WHERE r.fare > rides.fare)", "a subquery",
     (1, 34)),
    ("SELECT COUNT(*) FROM rides WHERE EXISTS (SELECT 1 FROM rides r WHERE r.rider = rides.rider)", "a subquery", None),
    ("SELECT COUNT(*) FROM rides r, LATERAL (SELECT r.fare AS f) v", "JOIN without ON", None),
    ("SELECT COUNT(*) FROM rides r JOIN (SELECT * FROM rides) v ON r.rider = v.rider", "JOIN of a subquery of 'rides'",
     None),
    ("WITH v AS (SELECT * FROM rides) SELECT COUNT(*) FROM v a JOIN v b ON a.rider = b.rider",
     "JOIN of a subquery of 'rides'", None),
    ("SELECT COUNT(*) FROM rides r JOIN (SELECT * FROM rides r JOIN zones ON zone = id) v ON TRUE",
     "JOIN of a subquery of 'rides'", None),
    ("SELECT COUNT(*) FROM rides JOIN (SELECT shop AS rider FROM visits) v ON v.rider = rides.rider",
     "JOIN of 'visits' without the unit column", None),
    ("SELECT COUNT(*) FROM (SELECT zone AS rider FROM rides) r JOIN visits ON visits.rider = r.rider",
     "type mismatch", None),
    ("SELECT COUNT(*) FROM (SELECT day AS d, UPPER(rider) AS rider FROM rides) r JOIN visits USING (rider)",
     "JOIN of 'visits' without the unit column", None),
    ("SELECT COUNT(*) FROM rides LEFT JOIN (SELECT id, COALESCE(borough, 'x') AS b FROM zones) z ON zone = id",
     "a value computed on the right of LEFT JOIN", None),
    ("SELECT COUNT(*) FROM (SELECT zone FROM rides JOIN zones z ON zone = id) v JOIN zones ON zone = id",
     "table 'zones' twice", None),
    ("WITH rides AS (SELECT * FROM rides) SELECT COUNT(*) FROM rides", "WITH of the name 'rides'", (1, 6)),
    ("WITH Zones AS (SELECT * FROM rides) SELECT COUNT(*) FROM Zones", "WITH of the name 'Zones'", None),
    ("WITH a AS (SELECT * FROM rides), A AS (SELECT * FROM rides) SELECT COUNT(*) FROM a", "WITH of the name 'A' twice",
     (1, 34)),
    ("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM rides) SELECT COUNT(*) FROM a", "WITH that reads 'b'", (1, 26)),
    ("WITH RECURSIVE a AS (SELECT * FROM rides) SELECT COUNT(*) FROM a", "WITH RECURSIVE", (1, 6)),
    ("WITH a AS (SELECT COUNT(*) AS n FROM a) SELECT * FROM a", "WITH that reads 'a'", (1, 38)),
    ("WITH a AS (SELECT * FROM a) SELECT COUNT(*) FROM a", "WITH that reads 'a'", (1, 26)),
    ("SELECT * FROM (SELECT * FROM rides) v", "SELECT *", (1, 8)),
    ("SELECT * FROM (SELECT COUNT(*) AS n FROM rides LIMIT 3) v WHERE n > 3",
     "WHERE, ORDER BY or OFFSET of an answer that LIMIT cut", None),
    ("SELECT n + 1 FROM (SELECT COUNT(*) AS n FROM rides) v", "a value computed of an answer",
     (1, 8)),
    ("WITH f AS (SELECT COUNT(*) AS n FROM rides), g AS (SELECT * FROM f) SELECT COUNT(*) FROM g",
     "an aggregate in a subquery", (1, 19)),
    ("WITH f AS (SELECT COUNT(*) AS n FROM rides) SELECT COUNT(*) FROM rides JOIN f ON TRUE",
     "an aggregate in a subquery", None),
    ("SELECT n AS zone FROM (SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone) v", "a new name that is taken", None),
    ("SELECT n, n FROM (SELECT COUNT(*) AS n FROM rides) v", "a column twice", None),
    ("SELECT DISTINCT n FROM (SELECT COUNT(*) AS n FROM rides) v", "DISTINCT", None),
    ("SELECT n FROM (SELECT COUNT(*) AS n FROM rides) v GROUP BY n", "an aggregate in a subquery", None),
    ("SELECT n FROM (SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) AS n FROM rides) v",
     "WITH DIFFERENTIAL_PRIVACY in a subquery", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "construct", "position"), REFUSED)
def test_what_mixes_units_is_refused_by_name(text, construct, position):
    """Whatever makes one row of several, or keeps rows for what others have, says its name and what to write."""
    with pytest.raises(UnsupportedQuery) as caught:
        read(text)

    assert construct == caught.value.construct
    assert position is None or position == caught.value.position
    assert caught.value.next_step
    assert caught.value.rule


def nested(depth, inner="SELECT * FROM rides"):
    """Return a question of subqueries within each other."""
    return f"SELECT COUNT(*) FROM {'(SELECT * FROM ' * (depth - 1)}({inner}) AS v{')' * (depth - 1)}"


def test_deep_wide_and_growing_questions_are_refused():
    """A thousand levels, a megabyte, many steps, and values of values that double at each step: at once, by name."""
    steps = [f"s{at} AS (SELECT * FROM s{at - 1})" for at in range(1, MOST_SELECTS + 5)]
    many = f"WITH s0 AS (SELECT * FROM rides), {', '.join(steps)} SELECT COUNT(*) FROM s9"
    growing = [f"s{at} AS (SELECT x + x AS x FROM s{at - 1})" for at in range(1, 40)]
    growth = f"WITH s0 AS (SELECT fare AS x FROM rides), {', '.join(growing)} SELECT COUNT(*) FROM s39 WHERE x > 1"
    wide = " OR ".join(["x = 1"] * 5_000)
    large = " + ".join(["fare"] * 900)
    broad = f"SELECT COUNT(*) FROM (SELECT {large} AS x FROM rides) v WHERE {wide}"

    assert read(nested(30)).where is None
    for text in (nested(1_000), "SELECT 1" + " " * 2**20, many, growth, broad):
        with pytest.raises(UnsupportedQuery) as caught:
            read(text)
        assert caught.value.next_step
        assert caught.value.position


def test_refusals_of_subqueries_are_free_and_asking_the_flat_question_again_is():
    """A refused subquery charges nothing; the flat question after the nested one is the same one, which is paid."""
    table = pa.table({"zone": [1, 2, 2] * 400, "fare": [1.0, 5.0, 9.0] * 400})
    with farthing.Session(table, budget=farthing.Budget(epsilon=1, delta=1e-6), name="rides") as session:
        with pytest.raises(FarthingError):
            session.sql("SELECT COUNT(*) FROM (SELECT * FROM rides LIMIT 5) v", absolute=50)
        assert [] == list(session.history())
        keys = {"zone": [1, 2]}
        text = 'SELECT "v"."zone" AS "zone", COUNT(*) AS "count" FROM (SELECT * FROM rides WHERE fare > 2) AS "v" '
        answer = session.sql(text + 'GROUP BY "v"."zone" LIMIT 1000', keys=keys, absolute=50)
        again = session.sql("SELECT zone, COUNT(*) FROM rides WHERE fare > 2 GROUP BY 1", keys=keys, absolute=50)

    assert not again.paid
    assert answer.paid
    assert ["zone", "count", "count_lower", "count_upper", "met", "paid"] == answer.to_arrow().column_names
    assert abs(answer.value[1] - 800) < 200
