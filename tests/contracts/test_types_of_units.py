"""Every type that PostgreSQL has, as the type of the unit: asked, or refused before anything is charged."""

from __future__ import annotations

import pytest
from backends import postgres
from spark_servers import spark_session

import farthing
from farthing.errors import UnsupportedQuery
from farthing.privacy.unit import PrivacyUnit
from farthing.query import Bounds, Keys, Query, counting

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")]

BUDGET = farthing.Budget(epsilon=1, delta=1e-6)
BOUNDS = Bounds(max_groups=1, max_rows=2)
WHOLE = "2020-01-01"
ASKED = {
    '"char"': "ab", "bigint": "12", "boolean": "tf", "bytea": "ab", "character": "ab", "character varying": "ab",
    "cidr": ("10.0.0.0/8", "11.0.0.0/8"), "date": (WHOLE, "2021-01-01"), "datemultirange": ("{}", "{[2020-01-01,)}"),
    "daterange": ("empty", "[2020-01-01,)"), "double precision": "12", "inet": ("10.0.0.1", "10.0.0.2"),
    "int2vector": "12", "int4multirange": ("{}", "{[1,2)}"), "int4range": ("empty", "[1,2)"),
    "int8multirange": ("{}", "{[1,2)}"), "int8range": ("empty", "[1,2)"), "integer": "12",
    "interval": ("1 day", "2 days"), "json": ("1", "[]"), "jsonb": ("1", "[]"),
    "macaddr": ("08:00:2b:01:02:03", "08:00:2b:01:02:04"), "macaddr8": ("08:00:2b:01:02:03", "08:00:2b:01:02:04"),
    "money": "12", "name": "ab", "numeric": "12", "nummultirange": ("{}", "{[1,2)}"), "numrange": ("empty", "[1,2)"),
    "oid": "12", "oidvector": "12", "pg_lsn": ("0/1", "0/2"), "real": "12", "smallint": "12", "text": "ab",
    "tid": ("(0,1)", "(0,2)"), "time with time zone": ("01:00+00", "02:00+00"),
    "time without time zone": ("01:00", "02:00"), "timestamp with time zone": (WHOLE, "2021-01-01"),
    "timestamp without time zone": (WHOLE, "2021-01-01"), "tsmultirange": ("{}", "{[2020-01-01,)}"),
    "tsrange": ("empty", "[2020-01-01,)"), "tstzmultirange": ("{}", "{[2020-01-01,)}"),
    "tstzrange": ("empty", "[2020-01-01,)"), "xid8": "12",
    "line": ("{1,2,3}", "{1,2,4}"), "point": ("(0,0)", "(0,1)"), "polygon": ("((0,0),(1,1))", "((0,0),(1,2))"),
    "uuid": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"),
    "text[]": ("{a}", "{b}"), "jsonb[]": ("{}", "{1}"), "pg_temp.mood": ("sad", "glad"),
    "pg_temp.pair": ("(1,a)", "(2,a)"), "pg_temp.small": "12",
}  # fmt: skip
"""Types whose values are told apart, with two values of each."""

REFUSED = (
    "aclitem", "bit", "bit varying", "box", "cid", "circle", "jsonpath", "lseg", "path", "pg_snapshot",
    "refcursor", "tsquery", "tsvector", "txid_snapshot", "xid", "xml", "json[]", "xml[]", "point[]", "pg_temp.odd",
    "pg_temp.text_of_json",
)  # fmt: skip

NOT_OF_TABLES = ("gtsvector", "pg_brin_bloom_summary", "pg_brin_minmax_multi_summary", "pg_dependencies",
                 "pg_mcv_list", "pg_ndistinct", "pg_node_tree")  # fmt: skip
"""Types of the server's own books."""

UNREAD = ("regclass", "regcollation", "regconfig", "regdictionary", "regnamespace", "regoper", "regoperator", "regproc",
          "regprocedure", "regrole", "regtype")  # fmt: skip
"""Types of which ibis cannot open a table."""


def executed(*texts):
    """Run statements, in a transaction of their own; return the rows of the last."""
    with postgres().con.transaction(), postgres().con.cursor() as cursor:
        for text in texts:
            cursor.execute(text)
        return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="module", autouse=True)
def types():
    """Make types of every kind that users make, for as long as the tests run."""
    made = {
        "mood": "TYPE pg_temp.mood AS ENUM ('sad', 'glad')",
        "pair": "TYPE pg_temp.pair AS (number int, word text)",
        "odd": "TYPE pg_temp.odd AS (number int, word json)",
        "small": "DOMAIN pg_temp.small AS int",
        "text_of_json": "DOMAIN pg_temp.text_of_json AS json",
    }
    executed(*(f"CREATE {text}" for text in made.values()))
    yield
    executed(*(f"DROP {text.split()[0]} pg_temp.{name} CASCADE" for name, text in made.items()))


def session_on(kind, values=()):
    """Return a session on a table whose unit is of a type; each of two values is a unit in both zones."""
    executed(
        "DROP TABLE IF EXISTS units_of_a_type",
        f"CREATE TEMPORARY TABLE units_of_a_type (u {kind}, zone text)",
        *(f"INSERT INTO units_of_a_type VALUES ('{value}', '{zone}')" for value in values for zone in "ab"),
    )
    return farthing.Session(postgres().table("units_of_a_type"), unit="u", budget=BUDGET)


def test_every_type_of_the_server_is_listed():
    """The lists above have all types of the server's own."""
    found = executed(r"""
        SELECT pg_catalog.format_type(t.oid, NULL) FROM pg_catalog.pg_type t
        WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype IN ('b', 'r', 'm', 'e')
          AND t.typname NOT LIKE '\_%'
    """)
    assert {*ASKED, *REFUSED, *NOT_OF_TABLES, *UNREAD} >= {name for (name,) in found}


@pytest.mark.parametrize("kind", ASKED)
def test_units_of_a_type_are_told_apart(kind):
    """With a bound of one group both units count once each, in the group that the hash chose."""
    with session_on(kind, ASKED[kind]) as session:
        engine = session._engine
        counts = engine.measure(counted(engine), 7)

    assert 2 == counts.sum()


def counted(engine):
    """Return a count by zone with one group a unit."""
    keys = Keys.of(("zone",), {"zone": ["a", "b"]}, engine.schema)
    query = Query("units_of_a_type", ("zone",), keys, None, counting("n"), PrivacyUnit("u"), Bounds(1, 1))
    engine.fingerprint(query)
    return query


@pytest.mark.parametrize("kind", REFUSED)
def test_units_that_cannot_be_told_apart_are_refused_free(kind):
    """A count is refused by the type alone, which is public; a column of it that is no unit does not matter."""
    with session_on(kind) as session:
        with pytest.raises(UnsupportedQuery, match="cannot be told apart") as refused:
            session.count(absolute=100, bounds=BOUNDS)

        assert "view" in refused.value.next_step
        assert 0 == session.spent.amount
    with farthing.Session(postgres().table("units_of_a_type"), unit="zone", budget=BUDGET) as session:
        session.count(absolute=100, bounds=BOUNDS)


@pytest.mark.xdist_group("spark")
def test_maps_of_spark_are_refused_free():
    """Spark groups by no map."""
    frame = spark_session().sql("SELECT map('a', 1) AS u, 'a' AS zone")
    with farthing.Session(frame, unit="u", budget=BUDGET) as session:
        with pytest.raises(UnsupportedQuery, match="cannot be told apart"):
            session.count(absolute=100, bounds=BOUNDS)

        assert 0 == session.spent.amount
