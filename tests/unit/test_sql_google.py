"""GoogleSQL's clause as pasted, EXPLAIN before it, and positions that stay right after both are cut out."""

from __future__ import annotations

import pytest

from farthing.errors import InvalidBounds, UnsupportedQuery
from farthing.query import Schema, Type
from farthing.query.aggregates import Count, Mean, NamedAggregate
from farthing.query.expressions import Column
from farthing.sql import Options, parse

SCHEMA = Schema.of({"uid": Type.STRING, "city": Type.STRING, "x": Type.FLOAT})

PASTED = """SELECT WITH DIFFERENTIAL_PRIVACY
  OPTIONS (epsilon = 1, delta = 1e-10, max_groups_contributed = 1, privacy_unit_column = uid)
  city, COUNT(*) AS n, AVG(x, contribution_bounds_per_group => (0, 100)) AS a
FROM t GROUP BY city"""


def read(text, unit="uid"):
    """Parse a question over t."""
    return parse(text, table="t", schema=SCHEMA, unit=unit)


def with_options(options):
    """Return what a list of options sets."""
    return read(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS ({options}) COUNT(*) FROM t").options


def test_a_pasted_query_runs():
    """A query for BigQuery is understood whole."""
    asked = read(PASTED)

    assert (NamedAggregate("n", Count()), NamedAggregate("a", Mean(Column("x"), 0.0, 100.0))) == asked.outputs
    assert ("city", "n", "a") == asked.columns
    assert Options(epsilon=1.0, delta=1e-10, max_groups=1, unit="uid") == asked.options
    assert not asked.explain


def test_our_options_stand_beside_theirs():
    """Targets are options, too; every one of them is a number, whole where it counts."""
    options = with_options(
        "relative_error = 0.05, absolute_error = 50, confidence = .99, max_epsilon = +0.5, max_rows = 20, "
        "max_groups = 3, delta = 0"
    )

    assert options == Options(
        relative=0.05, absolute=50.0, confidence=0.99, max_epsilon=0.5, max_rows=20, max_groups=3, delta=0.0
    )
    assert Options() == with_options("")
    assert Options() == read("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM t").options


def test_the_bounds_of_a_count_are_rows():
    """COUNT(*, contribution_bounds_per_group => (0, 4)) counts at most four rows of a unit."""
    asked = read("SELECT COUNT(*, contribution_bounds_per_group => (0, 4)) FROM t")

    assert (4, Count()) == (asked.options.max_rows, asked.outputs[0].aggregate)
    with pytest.raises(UnsupportedQuery, match="two bounds on rows"):
        read(
            "SELECT COUNT(*, contribution_bounds_per_group => (0, 4)), "
            "COUNT(x, contribution_bounds_per_group => (0, 5)) FROM t"
        )


@pytest.mark.parametrize("text", ["EXPLAIN SELECT COUNT(*) FROM t", "explain\n" + PASTED])
def test_explain_asks_for_a_price(text):
    """EXPLAIN is a flag; the rest is read as always."""
    assert read(text).explain


REFUSED = [
    ("epsilon = -1", "epsilon = -1", 11),
    ("epsilon = 0", "epsilon = 0", 11),
    ("epsilon = 'a'", "epsilon = A", 11),
    ("epsilon = 1e999", "epsilon = 1E999", 11),
    ("epsilon = NaN", "epsilon = NAN", 11),
    ("delta = 1", "delta = 1", 9),
    ("confidence = 95", "confidence = 95", 14),
    ("relative_error = 1", "relative_error = 1", 18),
    ("max_groups_contributed = 1.5", "max_groups_contributed = 1.5", 26),
    ("max_groups_contributed = 0", "max_groups_contributed = 0", 26),
    ("max_groups = 2, max_groups_contributed = 3", "option max_groups_contributed twice", 17),
    ("max_rows_contributed = 3", "option max_rows_contributed", 1),
    ("group_selection_strategy = LAPLACE_THRESHOLD", "option group_selection_strategy", 1),
    ("surprise = 3", "option surprise", 1),
    ("privacy_unit_column = city", "privacy_unit_column = city", 23),
    ("epsilon 1", "syntax", 9),
    ("epsilon = 1 delta = 2", "syntax", 13),
    ("epsilon = 1, , delta = 2", "syntax", 16),
]


@pytest.mark.parametrize(("options", "construct", "column"), REFUSED)
def test_other_options_are_refused_at_their_place(options, construct, column):
    """An unknown option, a value that it cannot have, another unit: refused with line and column."""
    with pytest.raises(UnsupportedQuery) as caught:
        with_options(options)

    assert construct == caught.value.construct
    assert (1, column + len("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (")) == caught.value.position
    assert caught.value.next_step


@pytest.mark.parametrize("tail", ["", " (", " (epsilon", " (epsilon =", " (epsilon = 1", " (epsilon = 1,", " x"])
def test_an_unfinished_clause_is_a_syntax_error(tail):
    """A clause that ends too soon is refused like any other text."""
    with pytest.raises(UnsupportedQuery):
        read("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS" + tail)


def test_the_unit_is_the_session_s():
    """A row as unit has no column; a qualified column is the column."""
    with pytest.raises(UnsupportedQuery, match="one row"):
        read(PASTED, unit=None)
    assert read(PASTED.replace("= uid", "= t.uid")).options.unit == "uid"


def test_older_spellings_say_the_newer_one():
    """ANONYMIZATION and ANON_COUNT are refused with what replaced them."""
    with pytest.raises(UnsupportedQuery, match="WITH DIFFERENTIAL_PRIVACY") as caught:
        read("SELECT WITH ANONYMIZATION OPTIONS (epsilon = 1) ANON_COUNT(*) FROM t")
    assert (1, 13) == caught.value.position
    with pytest.raises(UnsupportedQuery, match="SUM") as caught:
        read("SELECT city,\n ANON_SUM(x CLAMPED BETWEEN 0 AND 1) FROM t")
    assert ("aggregate ANON_SUM", (2, 2)) == (caught.value.construct, caught.value.position)
    with pytest.raises(UnsupportedQuery, match="SELECT WITH DIFFERENTIAL_PRIVACY"):
        read("SELECT WITH KINDNESS COUNT(*) FROM t")


def test_places_are_those_of_the_text_as_asked():
    """What is wrong after the clause is found at its own line and column."""
    with pytest.raises(UnsupportedQuery) as caught:
        read("EXPLAIN " + PASTED.replace("GROUP BY city", "GROUP BY ciyt"))
    assert (4, 17) == caught.value.position
    with pytest.raises(InvalidBounds, match="line 3, column 24"):
        read(PASTED.replace(", contribution_bounds_per_group => (0, 100)", ""))
    with pytest.raises(UnsupportedQuery) as caught:
        read("EXPLAIN " + PASTED.replace("GROUP BY city", "GROUP city"))
    assert ("syntax", 4) == (caught.value.construct, caught.value.position[0])
