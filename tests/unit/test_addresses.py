"""Tables by address: what is one, what is refused, and that PostgreSQL and Spark are asked as by their own frames."""

from __future__ import annotations

import glob
import json
from itertools import product
from pathlib import Path

import ledger_servers
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spark_servers
from typer.testing import CliRunner

import farthing
from farthing.cli.app import app
from farthing.cli.input.keys import Sources, from_file
from farthing.engines import addresses, open_table
from farthing.engines.addresses import Addresses, _Kind
from farthing.errors import DataError, InvalidKeys
from farthing.urls import name_at

BUDGET = ("--epsilon", "1", "--delta", "1e-6")
ROWS = pa.table({"rider": [n % 500 for n in range(9_000)], "zone": ["abc"[n % 3] for n in range(9_000)]})


def run(*args):
    """Run the command line in this process."""
    return CliRunner().invoke(app, list(args))


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://me@127.0.0.1:1/city", "names no table"),
        ("postgresql://me@127.0.0.1:1/city#", "names no table"),
        ("postgresql://me:secret@127.0.0.1:1/city#trips", "holds a password"),
        ("postgresql://me@127.0.0.1:1/city?password=secret#trips", "holds a password"),
        ("postgresql://me@127.0.0.1:1/city?connect_timeout=2#trips", "cannot be opened"),
        ("mysql://me@127.0.0.1/city#trips", "not a local file"),
        ("mysql://me:secret@127.0.0.1/city#trips", "not a local file"),
        ("mysql://me:secret@127.0.0.1/city", "not a local file"),
        ("postgresql://me:se#secret@127.0.0.1:1/city#trips", "cannot be opened"),
        ("postgresql://secret:12?secret@127.0.0.1:1/city#trips", "cannot be opened"),
        ("postgresql://me:p@secret:1@127.0.0.1:1/city#trips", "holds a password"),
        ("postgresql://me:secret/x@127.0.0.1:1/city#trips", "cannot be opened"),
        ("postgresql://me@127.0.0.1:1/city?password=x@secret#trips", "holds a password"),
    ],
)
def test_addresses_that_are_refused(address, words):
    """No table, a password, a server that is not there, another kind of server; no error shows a password."""
    with pytest.raises(DataError, match=words) as refused:
        open_table(address)
    checked = run("check", address)
    with pytest.raises(DataError, match="does not exist") as of_keys:
        from_file("zone", f"{address}:zone", "string", Sources(Path.cwd(), ()))
    assert "secret" not in f"{refused.value} {checked.output} {of_keys.value}"
    assert refused.value.__cause__ is None
    assert 2 == checked.exit_code


def test_a_table_has_the_last_name_of_its_address():
    """The schema and the folder are left out."""
    addresses = (
        "postgres://h/d#trips",
        "postgres://h/d#s.trips",
        "spark://h:1#/data/trips.parquet",
        "spark://h:1#d.trips",
    )
    assert {"trips"} == set(map(name_at, addresses))


@pytest.fixture
def server():
    """Give the address of a database with a protected and a public table, in a schema of their own."""
    with ledger_servers.fresh_schema() as url, ledger_servers.raw(url) as raw:
        base, _, schema = url.partition("?schema=")
        raw.execute(f"CREATE SCHEMA {schema}")
        raw.execute("CREATE TABLE trips AS SELECT i % 500 AS rider, (ARRAY['a','b','c'])[1 + i % 3] AS zone "
                    "FROM generate_series(0, 8999) i")  # fmt: skip
        raw.execute("CREATE TABLE \"Zones\" AS SELECT * FROM (VALUES ('a', 'north'), ('b', 'south')) z(id, area)")
        yield base.replace("+psycopg", ""), schema


@pytest.mark.thorough
def test_init_and_ask_on_postgresql(server, tmp_path, monkeypatch):
    """Whose privacy is asked for beside a column of people; then tables are joined, and answers are near the truth."""
    monkeypatch.chdir(tmp_path)
    base, schema = server
    trips, zones = f"{base}#{schema}.trips", f"{base}#{schema}.Zones"
    refused = run("init", trips, *BUDGET)
    bounds = ("--max-groups", "3", "--max-rows", "18", "--public", f"zones={zones}", "--keys", "zone=zones.id")
    done = run("init", trips, "--unit", "rider", *BUDGET, *bounds)

    assert (2, 0) == (refused.exit_code, done.exit_code), done.output
    assert "--unit rider" in refused.stderr
    assert f'path = "{trips}"' in Path("farthing.toml").read_text(encoding="utf-8")
    assert 2 == run("check").exit_code
    for question, keys in (
        ("SELECT zone, COUNT(*) AS n FROM trips GROUP BY zone", ()),
        ("SELECT area, COUNT(*) AS n FROM trips JOIN zones ON zone = id GROUP BY area", ("--keys", "area=north,south")),
    ):
        asked = run("ask", question, "--absolute", "2000", *keys, "--json")
        assert 0 == asked.exit_code, asked.output
        counts = [row["n"] for row in json.loads(asked.stdout)["answers"]]
        assert all(abs(count - 3_000) < 8_000 for count in counts)  # eight half-widths of the noise
    assert 2 == len(json.loads(run("history", "--json").stdout)["history"])


@pytest.mark.thorough
def test_tables_at_one_server_are_one_connection(server):
    """A table of another kind beside them is refused or sent; a schema that has no such table is one error."""
    base, schema = server
    trips = f"{base}#{schema}.trips"
    engine = open_table(trips, protected={"again": trips}, public={"zones": f"{base}#{schema}.Zones"})
    exact = farthing.Session(
        ROWS, name="rides", budget=farthing.Budget(mu=1), public={"zones": f"{base}#{schema}.Zones"}
    )

    assert {"again": ("rider", "zone"), "zones": ("id", "area")} == {
        name: kinds.names for name, kinds in engine.tables.items()
    }
    assert ("id", "area") == tuple(exact.tables["zones"])
    engine.close()
    exact.close()
    with pytest.raises(DataError, match="not on the backend"):
        open_table(ROWS, name="rides", protected={"trips": trips})
    with pytest.raises(DataError, match="TableNotFound"):
        open_table(f"{base}#{schema}.nothing")


@pytest.mark.thorough
def test_no_spelling_makes_a_protected_table_public(server, tmp_path, monkeypatch):
    """Schemes, letters, schemas and search paths: the server tells which table it is. Other tables are public."""
    base, schema = server
    trips = f"{base}#{schema}.trips"
    on_path = f"{base}?options=-csearch_path%3D{schema}"
    spellings = (
        trips,
        f"{base.replace('postgresql://', 'postgres://')}#{schema}.trips",
        f"{base}#{schema}.%74rips",
        f"{base}?connect_timeout=9#{schema}.trips",
        f"{on_path}#trips",
    )
    for other in spellings:
        for mine, beside in ((trips, {}), (f"{base}#{schema}.Zones", {"rides": trips})):
            with pytest.raises(DataError, match="the public table 'pub' is a protected table"):
                open_table(mine, name="mine", public={"pub": other}, protected=beside)
    open_table(trips, public={"pub": f"{base}#{schema}.Zones"}).close()
    monkeypatch.chdir(tmp_path)
    refused = run("init", trips, "--unit", "rider", *BUDGET, "--public", f"pub={on_path}#trips")
    assert "the public table 'pub' is a protected table" in refused.stderr
    assert not Path("farthing.toml").exists()


SHARING = {
    "VIEW once": "SELECT * FROM trips",
    "VIEW twice": "SELECT zone FROM once WHERE rider > 3",
    "VIEW counted": 'SELECT area, (SELECT count(*) FROM twice) AS n FROM "Zones"',
    "MATERIALIZED VIEW kept": "SELECT DISTINCT zone FROM trips",
}


@pytest.mark.thorough
def test_what_shares_rows_with_a_protected_table_is_not_public(server):
    """Views of views, subqueries in them, copies that are refreshed, partitions and heirs, both ways; others are."""
    base, schema = server
    with ledger_servers.raw(f"{base}?schema={schema}") as raw:
        for name, text in SHARING.items():
            raw.execute(f"CREATE {name} AS {text}")
        raw.execute('CREATE VIEW areas AS SELECT area FROM "Zones"')
        raw.execute("CREATE TABLE old_trips () INHERITS (trips)")
        raw.execute("CREATE TABLE whole (rider int, zone text) PARTITION BY LIST (zone)")
        raw.execute("CREATE TABLE part_a PARTITION OF whole FOR VALUES IN ('a')")
        raw.execute("CREATE TABLE part_b PARTITION OF whole FOR VALUES IN ('b')")
        raw.execute("CREATE RULE loud AS ON INSERT TO part_b DO ALSO SELECT 1 FROM part_a")
    sharing = [("trips", name.rpartition(" ")[2]) for name in SHARING]
    sharing += [("twice", "kept"), ("trips", "old_trips"), ("whole", "part_a"), ("once", "old_trips")]
    for pair in sharing:
        for mine, other in (pair, pair[::-1]):
            with pytest.raises(DataError, match="'pub' is a protected table, or has rows of one"):
                open_table(f"{base}#{schema}.{mine}", name="mine", public={"pub": f"{base}#{schema}.{other}"})
    for mine, other in (("trips", "areas"), ("once", "Zones"), ("part_a", "part_b"), ("old_trips", "whole")):
        open_table(f"{base}#{schema}.{mine}", name="mine", public={"pub": f"{base}#{schema}.{other}"}).close()


@pytest.mark.thorough
def test_an_address_that_names_the_database_is_refused(server):
    """The database is named before the #; named again behind it, the server's catalog knows no such table."""
    base, schema = server
    database = base.rpartition("/")[2]
    trips, again = f"{base}#{schema}.trips", f"{base}#{database}.{schema}.trips"
    for mine, beside in (
        (trips, {"public": {"pub": again}}),
        (again, {"public": {"pub": trips}}),
        (f"{base}#{schema}.Zones", {"public": {"pub": again}, "protected": {"rides": trips}}),
    ):
        with pytest.raises(DataError, match="names more than a schema and a table"):
            open_table(mine, name="mine", **beside)


@pytest.mark.thorough
def test_what_the_server_cannot_tell_apart_is_refused(server):
    """A table that is gone when the server is asked which one it is, on either side."""
    base, schema = server
    trips, gone = f"{base}#{schema}.trips", f"{base}#{schema}.gone"
    tables = Addresses()
    tables.at(trips)
    for mine, other in ((trips, gone), (gone, trips)):
        with pytest.raises(DataError, match="cannot tell which table"):
            tables.refuse_exposed([mine], {"pub": other})
    tables.close()


KEPT = {
    "VIEW stats": "SELECT most_common_vals::text AS vals FROM pg_catalog.pg_stats",
    "VIEW sizes": "SELECT relname::text, reltuples FROM (SELECT * FROM pg_catalog.pg_class) AS c",
    "VIEW over": "SELECT * FROM sizes",
    "SEQUENCE ids": "bigint",
}


@pytest.mark.thorough
def test_what_the_server_keeps_about_its_tables_is_not_public(server):
    """Statistics hold the most common values of a table's rows, pg_class their number, a sequence too."""
    base, schema = server
    with ledger_servers.raw(f"{base}?schema={schema}") as raw:
        for name, text in KEPT.items():
            raw.execute(f"CREATE {name} AS {text}")
    names = [f"{schema}.{name.rpartition(' ')[2]}" for name in KEPT]
    for other in (*names, "pg_catalog.pg_stats", "pg_toast.pg_toast_2619", "information_schema.sequences"):
        with pytest.raises(DataError, match="'pub' reads the server's own tables"):
            open_table(f"{base}#{schema}.trips", name="mine", public={"pub": f"{base}#{other}"})
    open_table(f"{base}#{schema}.sizes", name="mine", public={"pub": f"{base}#{schema}.Zones"}).close()


@pytest.mark.thorough
def test_no_word_of_the_driver_comes_through(server):
    """A public view whose rows fail is read whole beside a local table; the driver quotes the value."""
    base, schema = server
    with ledger_servers.raw(f"{base}?schema={schema}") as raw:
        raw.execute("CREATE VIEW failing AS SELECT CAST(zone || 'quoted' AS int) AS zone FROM trips")
    with pytest.raises(DataError, match="cannot be opened") as refused:
        open_table(ROWS, name="rides", public={"bad": f"{base}#{schema}.failing"})
    assert "quoted" not in str(refused.value)
    assert refused.value.__cause__ is None is refused.value.__context__


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")  # of Spark's sockets
def test_init_and_ask_on_spark(tmp_path, monkeypatch):
    """A Parquet path and a view of the Spark of this process; another master is refused while this one runs."""
    spark = spark_servers.spark_session()
    monkeypatch.chdir(tmp_path)
    pq.write_table(ROWS, tmp_path / "trips.parquet")
    spark.read.parquet(str(tmp_path / "trips.parquet")).createOrReplaceTempView("spark_trips")
    place = f"spark://{spark.sparkContext.master}"
    for address in (f"{place}#{tmp_path}/trips.parquet", f"{place}#spark_trips"):
        made = run("init", address, "--unit", "rider", *BUDGET, "--max-rows", "18", "--force", "--name", "t")
        assert 0 == made.exit_code, made.output
        Path("t.ledger").unlink()
        Path("t.ledger-head").unlink()
    file = f"{place}#{tmp_path}/trips.parquet"
    for mine, other in ((file, f"{place}#{tmp_path}//trips.parquet"), (file, f"{place}#spark_trips")):
        with pytest.raises(DataError, match="the public table 'pub' is a protected table"):
            open_table(mine, public={"pub": other})
    assert ("rider", "zone") == open_table(ROWS, name="mine", public={"pub": file}).tables["pub"].names
    local = tmp_path / "trips.parquet"
    for mine, other in (
        (local, file),
        (local, f"{place}#spark_trips"),
        (file, local),
        (file, f"{tmp_path}/t*.parquet"),
    ):
        with pytest.raises(DataError, match="the public table 'pub' is a protected table"):
            open_table(mine, public={"pub": other})
    with pytest.raises(DataError, match="another Spark runs"):
        open_table("spark://elsewhere:7077#trips")
    session = farthing.Session(f"{place}#spark_trips", unit="rider", budget=farthing.Budget(mu=1))
    answer = session.count(absolute=2000, bounds=farthing.Bounds(max_rows=18))
    assert abs(answer.value - 9_000) < 8_000
    session.close()


def test_a_file_is_the_same_at_an_address(tmp_path, monkeypatch):
    """A protected file is no public table where Spark reads it, nor the other way round, by whatever name."""

    def files(_, table):
        return tuple(map(glob.escape, glob.glob(table)))  # noqa: PTH207  relative

    read = _Kind(
        lambda _: None,
        lambda _, table: pq.read_table(glob.glob(table)[0]),  # noqa: PTH207
        lambda _, table: frozenset([table]),
        lambda table: table,
        files,
    )
    monkeypatch.setitem(addresses._OPENED, "spark", read)
    rows, others = tmp_path / "rows[1].parquet", tmp_path / "others.parquet"
    for file in (rows, others):
        pq.write_table(ROWS, file)
    (tmp_path / "link.parquet").symlink_to(rows)
    (tmp_path / "hard.parquet").hardlink_to(rows)
    monkeypatch.chdir(tmp_path)
    local = [rows, str(rows), "rows[1].parquet", "./link.parquet", "hard.parquet", f"{tmp_path}/r*.parquet"]
    far = [
        f"spark://h:1#{glob.escape(str(rows))}",
        "spark://h:1#./link.parquet",
        f"SPARK://h:1#{tmp_path}/hard.parquet",
    ]
    for mine, other in [*product(local, far), *product(far, local)]:
        with pytest.raises(DataError, match="the public table 'pub' is a protected table, or has rows of one"):
            open_table(mine, name="mine", public={"pub": other})
    found = open_table(rows, name="mine", public={"pub": "spark://h:1#./others.parquet"})
    assert ("rider", "zone") == found.tables["pub"].names


def test_keys_are_not_read_from_a_file_that_spark_protects(tmp_path):
    """The command line knows the path that an address names, and asks no Spark for it."""
    pq.write_table(ROWS, tmp_path / "trips.parquet")
    for address in (f"spark://h:1#{tmp_path}/trips.parquet", f"spark://h:1#file://{tmp_path}"):
        with pytest.raises(InvalidKeys, match="would be read from the protected table"):
            from_file("zone", "trips.parquet:zone", "string", Sources(tmp_path, (address,)))


SPELT = (
    "{}/t.csv", "{}", "{}/", "{}/./t.csv", "{}/../*/t.csv", "{}/t%2Ecsv", "{}/{{t,x}}.csv", "{}/{{x,{{y,t}}.csv}}",
    "{}/t.{{csv,}}", "{}/[s-u].csv", "{}/?.csv", "{}/[!a].csv", "{}/*", "{}/{{,x/}}t.csv", "{}/.h*/link.csv",
    "{}/*/link.csv",
)  # fmt: skip
FILED = ("", "//", "//localhost", "file:", "file://", "file://localhost", "FILE:", "File://LOCALHOST")
UNTOLD = (
    "{}/[^a].csv", "{}/\\t.csv", "{}/{{t,x.csv", "{}/t}}.csv", "{}/[{{t,x}}].csv", "{}/[]t].csv", "{}/[a&&b].csv",
    "file:t.csv", "file:d/t.csv", "file://other{}/t.csv", "//other{}/t.csv", "viewfs:{}/t.csv", "dbfs:{}/t.csv",
    "{{file,hdfs}}:{}/t.csv", "city.trips", "trips", "{}/{{t" + "," * 13 + "x}}.csv",
)  # fmt: skip


def test_a_protected_file_gives_no_keys_however_spark_spells_it(tmp_path):
    """Schemes in any case, hosts, braces, escapes, patterns; what cannot be read in one way gives none either."""
    (tmp_path / "d" / ".hidden").mkdir(parents=True)
    (tmp_path / "d" / "t.csv").write_text("zone\n1\n")
    (tmp_path / "d" / ".hidden" / "link.csv").symlink_to(tmp_path / "d" / "t.csv")
    (tmp_path / "zones.csv").write_text("zone\n1\n")
    spelt = [start + ending.format(tmp_path / "d") for start in FILED for ending in SPELT]
    untold = [each.format(tmp_path / "d") for each in UNTOLD]
    for protected, says in [*((each, "would be") for each in spelt), *((each, "") for each in untold)]:
        with pytest.raises(InvalidKeys, match=f"{says}.*read from the protected table"):
            from_file("zone", "d/t.csv:zone", "integer", Sources(tmp_path, (f"spark://local[2]#{protected}",)))
    for protected in untold:
        with pytest.raises(InvalidKeys, match="does not tell its files"):
            from_file("zone", "zones.csv:zone", "integer", Sources(tmp_path, (f"Spark://h:1#{protected}",)))
    others = [*spelt, f"hdfs://h{tmp_path}/zones.csv", "S3A://b/zones.csv"]
    for address in (*(f"spark://local[2]#{each}" for each in others), "postgresql://me@h/city#public.trips"):
        assert from_file("zone", "zones.csv:zone", "integer", Sources(tmp_path, (address,))).to_pylist() == [1]


@pytest.mark.parametrize("name", ["a" * 5_000, "b" * 300, "a\0b"], ids=["long path", "long name", "NUL"])
@pytest.mark.parametrize("end", [".parquet", ".csv", "*.parquet", "/*.pq"])
def test_names_that_no_file_has_are_no_such_file(tmp_path, name, end):
    """The system's own words are not what is told: a path too long, or with a NUL, names nothing."""
    for table in (f"{tmp_path}/{name}{end}", farthing.Csv(f"{tmp_path}/{name}{end}")):
        for beside in ({}, {"public": {"beside": table}}):
            with pytest.raises(DataError, match=r"no such file|no file matches"):
                open_table(ROWS if beside else table, name="mine", **beside)
