"""What a SELECT computes of the columns of a question below it is read as if it stood there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from farthing import Budget, Session
from farthing.errors import UnsupportedQuery
from farthing.query import Schema, Type
from farthing.sql import parse

SCHEMA = Schema.of({"zone": Type.STRING, "late": Type.BOOLEAN, "fare": Type.FLOAT, "month": Type.INTEGER})
COUNTS = (
    "SELECT zone, COUNT(*) AS n, COUNT(*) FILTER (WHERE late) AS l, AVG(CLAMP(fare, 0, 9)) AS a FROM t GROUP BY zone"
)
SAME = {
    "l * 1.0 / n": "COUNT(*) FILTER (WHERE late) / COUNT(*)",
    "100 * c.l / NULLIF(c.n, 0)": "100 * COUNT(*) FILTER (WHERE late) / COUNT(*)",
    "n - l": "COUNT(*) - COUNT(*) FILTER (WHERE late)",
    "a * 2 + 1": "AVG(CLAMP(fare, 0, 9)) * 2 + 1",
    "a - l / n": "AVG(CLAMP(fare, 0, 9)) - COUNT(*) FILTER (WHERE late) / COUNT(*)",
    "n * 1.0 / SUM(n) OVER ()": "COUNT(*) / SUM(COUNT(*)) OVER ()",
    "100.0 * n / (SELECT SUM(n) FROM c)": "100 * COUNT(*) / SUM(COUNT(*)) OVER ()",
    "l / (SELECT SUM(l) FROM c)": "COUNT(*) FILTER (WHERE late) / SUM(COUNT(*) FILTER (WHERE late)) OVER ()",
    "RATIO_TO_REPORT(n) OVER ()": "COUNT(*) / SUM(COUNT(*)) OVER ()",
}
REFUSED = {
    "SQRT(a)": "a value computed of an answer",
    "n / k": "a value computed of an answer",
    "fare / n": "a value computed of an answer",
    "zone || 'x'": "a value computed of an answer",
    "n / (SELECT SUM(n) FROM d)": "a share of a total of other rows",
    "n / (SELECT SUM(n) FROM c WHERE n > 5)": "a share of a total of other rows",
    "RANK(n) OVER (ORDER BY zone)": "RANK over groups (OVER)",
    "SUM(n) OVER (ORDER BY n)": "aggregate COUNT in ORDER BY",
    "SUM(n) OVER (ORDER BY zone ROWS 1 PRECEDING)": "a moving window over groups",
    "a / SUM(a) OVER ()": "a share of a total",
}


def read(text):
    """Return what a text asks for."""
    return parse(text, table="t", schema=SCHEMA)


@pytest.mark.parametrize("above", SAME)
def test_it_is_read_as_if_it_stood_below(above):
    """In a subquery and as a table of WITH: the same aggregate, and nothing else is asked.

    The name of a subquery in FROM is no table, which another FROM could name.
    """
    below = read(f"SELECT zone, {SAME[above]} AS x FROM t GROUP BY zone")
    for text in (
        f"WITH c AS ({COUNTS}) SELECT zone, {above} AS x FROM c",
        f"SELECT zone, {above} AS x FROM ({COUNTS}) AS c",
    )[: 1 if "FROM c" in above else 2]:
        asked = read(text)
        assert ("zone", "x") == asked.columns
        assert [one.aggregate.canonical() for one in below.outputs] == [
            one.aggregate.canonical() for one in asked.outputs
        ]


@pytest.mark.parametrize("above", REFUSED)
def test_other_values_are_refused(above):
    """What is no arithmetic of the answer's numbers, by name."""
    with pytest.raises(UnsupportedQuery) as refused:
        read(f"WITH c AS ({COUNTS}) SELECT zone, {above} AS x FROM c")

    assert refused.value.construct.startswith(REFUSED[above])


def test_columns_of_columns_and_new_names():
    """Through several SELECTs, whose columns have new names, with conditions and an order on what was computed."""
    text = f"""WITH c AS ({COUNTS}), d AS (SELECT zone AS z, n AS m, l * 1.0 / n AS r FROM c)
               SELECT z, 100 * r AS pct, m FROM d WHERE m > 10 ORDER BY pct DESC LIMIT 5"""
    asked = read(text)

    assert ("z", "pct", "m") == asked.columns
    assert {"m": "COUNT(*)", "pct": "AVG(CASE WHEN late = TRUE THEN 100 ELSE 0 END in [0, 100])"} == {
        one.name: str(one.aggregate) for one in asked.outputs
    }
    assert "pct" == asked.aftermath.order[0].key.name
    assert "m > 10" == str(asked.aftermath.having)


@pytest.mark.parametrize("cut", ["LIMIT 3", "HAVING COUNT(*) > 5", "WHERE"])
def test_a_share_of_groups_that_were_cut_is_refused(cut):
    """SQL would add up the groups that are left."""
    below, above = (COUNTS, " WHERE n > 5") if cut == "WHERE" else (f"{COUNTS} {cut}", "")
    with pytest.raises(UnsupportedQuery, match="a number of several groups of an answer that was cut"):
        read(f"SELECT zone, n / SUM(n) OVER () AS x FROM ({below}) AS c{above}")


def test_a_share_keeps_its_total_whatever_its_columns_are_called():
    """Above it they may be renamed, also into each other, and it may be computed with again: one total a zone."""
    below = "SELECT zone AS a, 7 - month AS b, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY a) AS s FROM t GROUP BY 1, 2"
    for a, b in (("a", "b"), ("b", "a"), ("late", "zone"), ("c", "d")):
        renamed = f"SELECT a AS {a}, b AS {b}, s FROM ({below}) AS g"
        for text in (renamed, f"SELECT {a}, {b}, 100 * s AS p FROM ({renamed}) AS h"):
            (share,) = (output.aggregate for output in read(text).outputs)
            assert (a,) == share.over


def test_the_alias_of_a_subquery_is_no_table():
    """A subquery beside it that names it adds up a table of that name, or none: its columns are that table's."""
    for name in ("t", "c"):
        with pytest.raises(UnsupportedQuery):
            read(f"SELECT zone, n / (SELECT SUM(n) FROM {name}) AS x FROM ({COUNTS}) AS {name}")
    with pytest.raises(UnsupportedQuery, match="a share of a total"):
        read("SELECT late, m / (SELECT COUNT(late) FROM t) AS x FROM "
             "(SELECT zone AS late, COUNT(zone) AS m FROM t GROUP BY zone) AS c")  # fmt: skip
    (share,) = read(f"WITH c AS ({COUNTS}) SELECT zone, n / (SELECT SUM(n) FROM c) AS x FROM c AS d").outputs
    assert "COUNT(*) / SUM(COUNT(*)) OVER ()" == str(share.aggregate)


@pytest.mark.parametrize("text", [
    'WITH c AS (SELECT zone, COUNT(*) AS "n", COUNT(fare) AS "N" FROM t GROUP BY zone) SELECT zone, n / l AS x FROM c',
    f"SELECT zone, l / n AS a, n / SUM(n) OVER () AS A FROM ({COUNTS}) AS c",
    f"SELECT zone, l / n AS x, n / SUM(n) OVER () AS X FROM ({COUNTS}) AS c",
])  # fmt: skip
def test_names_that_differ_in_capitals_only_are_refused_where_columns_are_computed_with(text):
    """Which of them is meant is a matter of dialect: it is refused with its place."""
    with pytest.raises(UnsupportedQuery, match=r"differ in capitals|taken") as refused:
        read(text)
    assert refused.value.position[1] > 10


def test_names_that_are_taken_and_texts_that_grow():
    """An alias is new; columns of columns of columns cannot double without end."""
    with pytest.raises(UnsupportedQuery, match="taken"):
        read(f"SELECT zone, n / SUM(n) OVER () AS l FROM ({COUNTS}) AS c")
    grown = "WITH c0 AS (SELECT zone, COUNT(*) AS m0 FROM t GROUP BY zone)"
    grown += "".join(f", c{at} AS (SELECT zone, m{at - 1} + m{at - 1} AS m{at} FROM c{at - 1})" for at in range(1, 40))
    with pytest.raises(UnsupportedQuery, match=r"grow|deep"):
        read(f"{grown} SELECT zone, m39 + 1 AS x FROM c39")


def test_numbers_are_near_the_truth():
    """Each number is within its target; what is not shown is not paid."""
    rows = pa.table(
        {"zone": np.repeat(["a", "b"], [6_000, 2_000]), "late": np.arange(8_000) % 4 == 0, "fare": np.ones(8_000)}
    )
    text = f"WITH c AS ({COUNTS}) SELECT zone, l * 1.0 / n AS late, n * 1.0 / SUM(n) OVER () AS share FROM c"
    with Session(rows, name="t", budget=Budget(mu=20, delta=1e-6)) as session:
        answer = session.sql(text, keys={"zone": ["a", "b"]}, absolute=0.05, confidence=0.999999).to_arrow()

    assert [
        "zone",
        "late",
        "late_lower",
        "late_upper",
        "share",
        "share_lower",
        "share_upper",
        "met",
        "paid",
    ] == answer.column_names
    assert np.abs(np.array(answer["late"]) - 0.25).max() <= 0.05
    assert np.abs(np.array(answer["share"]) - [0.75, 0.25]).max() <= 0.05
