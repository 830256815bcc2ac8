"""Delta and Iceberg tables are the rows of one version, whoever reads them."""

import datetime as dt
import json
import os
import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from farthing import Budget, Gdp, Session
from farthing.engines.opening import arrow_of, source_of
from farthing.engines.reading import lakehouse, version
from farthing.engines.sources import Files, Lake
from farthing.errors import DataError
from farthing.session.table_check import checked

NEEDED = os.environ.get("FARTHING_REQUIRE_ENGINES")
WHEN = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)
ROWS = pa.table({"a": [1, 2, 3], "s": ["x", "y", None], "w": [WHEN, None, WHEN]})


def library(name):
    """Return a library; without it the tests say that they did not run."""
    if NEEDED:
        return __import__(name)
    return pytest.importorskip(name, reason=f"NOT TESTED: {name} is not installed")


def told(path):
    """Return the kind of a table's source, and its rows."""
    source = source_of(path)
    return type(source), in_order(arrow_of(source))


def in_order(*tables):
    """Return the rows of Arrow tables as texts, column by column, sorted; times have no zone."""
    found = []
    for row in (row for table in tables for row in table.to_pylist()):
        plain = {name: one.replace(tzinfo=None) if isinstance(one, dt.datetime) else one for name, one in row.items()}
        found.append(tuple(str(plain[name]) for name in sorted(plain)))
    return sorted(found)


@pytest.fixture
def iceberg(tmp_path):
    """An Iceberg table with two files, and its folder."""
    library("pyiceberg")
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    yield table, Path(table.location().removeprefix("file://"))
    catalog.close()


@pytest.mark.parametrize("how", ["files", "partitions", "later columns", "deleted"])
def test_a_delta_table_is_its_current_version(tmp_path, how):
    """Appended, partitioned, with a column that came later, and with rows deleted."""
    delta, path = library("deltalake"), tmp_path / "t"
    if how == "partitions":
        delta.write_deltalake(path, ROWS, partition_by=["s"])
        wanted = Lake, in_order(ROWS)
    elif how == "later columns":
        delta.write_deltalake(path, ROWS.drop_columns(["a"]))
        delta.write_deltalake(path, ROWS, mode="append", schema_mode="merge")
        wanted = Lake, in_order(ROWS.set_column(0, "a", pa.nulls(3, pa.int64())), ROWS)
    else:
        delta.write_deltalake(path, ROWS)
        delta.write_deltalake(path, ROWS, mode="append")
        wanted = Files, in_order(ROWS, ROWS)
    if how == "deleted":
        delta.DeltaTable(path).delete("a = 1")
        wanted = Files, in_order(ROWS.slice(1), ROWS.slice(1))

    assert told(path) == wanted
    assert {"a", "s", "w"} == {column.name for column in checked(str(path), unit=None, keys={}).columns}


ODD = ("x y", "a:b", "p%q", "é", "a+b", "c#d", "a%41", "a/b", None)


@pytest.mark.parametrize("folder", ["plain", "a b", "p%q", "é", "a+b", "c#d"])
def test_odd_letters_in_partitions_and_folders(tmp_path, folder):
    """The log writes them as a URI does, and what it writes are names in which values are escaped already."""
    delta, path = library("deltalake"), tmp_path / folder
    rows = pa.table({"a": range(len(ODD)), "s": ODD})
    delta.write_deltalake(path, rows, partition_by=["s"])

    assert told(path) == (Lake, in_order(rows))


def test_an_iceberg_table_is_its_current_version(iceberg):
    """Appended, rewritten without some rows, and with columns renamed crosswise, so that files name others."""
    table, path = iceberg
    assert told(path) == (Files, in_order(ROWS, ROWS))
    table.delete("a = 1")
    assert told(path) == (Files, in_order(ROWS.slice(1), ROWS.slice(1)))
    for old, new in (("a", "b"), ("s", "a"), ("b", "s")):
        with table.update_schema() as change:
            change.rename_column(old, new)
    crossed = ROWS.slice(1).rename_columns(["s", "a", "w"])
    assert told(path) == (Lake, in_order(crossed, crossed))


def told_anew(table, **changed):
    """Write into an Iceberg table's description what is told otherwise."""
    latest = Path(table.metadata_location.removeprefix("file://"))
    about = json.loads(latest.read_text("utf-8"))
    for snapshot in about["snapshots"]:
        snapshot["schema-id"] = about["current-schema-id"]
    about["schemas"] = [one for one in about["schemas"] if one["schema-id"] == about["current-schema-id"]]
    latest.write_text(json.dumps(about | changed), "utf-8")


@pytest.mark.parametrize("how", ["crossed", "dropped"])
def test_columns_of_an_iceberg_table_that_has_forgotten_its_former_schemas(iceberg, how):
    """Names that were crossed, or given anew to another column: files tell by numbers what they hold."""
    from pyiceberg.types import LongType

    table, path = iceberg
    if how == "crossed":
        for old, new in (("a", "b"), ("s", "a"), ("b", "s")):
            with table.update_schema() as change:
                change.rename_column(old, new)
        wanted = ROWS.rename_columns(["s", "a", "w"])
    else:
        with table.update_schema() as change:
            change.delete_column("a")
        with table.update_schema() as change:
            change.add_column("a", LongType())
        wanted = ROWS.set_column(0, "a", pa.nulls(3))
    told_anew(table)

    assert told(path) == (Lake, in_order(wanted, wanted))


@pytest.mark.parametrize("later", [False, True], ids=["one schema", "two schemas"])
def test_an_iceberg_file_without_numbers_and_without_names_is_refused(iceberg, tmp_path, later):
    """Nothing tells its columns, and none of them is taken for NULL."""
    from pyiceberg.types import LongType

    table, path = iceberg
    pq.write_table(ROWS, tmp_path / "other.parquet")
    table.add_files([f"file://{tmp_path}/other.parquet"])
    if later:
        with table.update_schema() as change:
            change.add_column("z", LongType())
    told_anew(table, properties={})

    with pytest.raises(DataError, match="Iceberg table cannot be read"):
        source_of(path)


def puffin(file, places):
    """Return a file of the third version of Iceberg with the deletion vector of a data file: numbers below 2^16."""
    framed = roaring(places)
    blob = struct.pack(">I", len(framed)) + framed + struct.pack(">I", zlib.crc32(framed))
    about = {
        "type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": 4,
        "length": len(blob), "properties": {"referenced-data-file": file, "cardinality": str(len(places))},
    }  # fmt: skip
    footer = json.dumps({"blobs": [about], "properties": {}}).encode()
    return b"PFA1" + blob + b"PFA1" + footer + struct.pack("<II", len(footer), 0) + b"PFA1"


@pytest.mark.parametrize("forgotten", [False, True], ids=["two schemas", "one schema"])
def test_fields_within_an_iceberg_column_are_told_by_numbers(iceberg, forgotten):
    """One that was dropped and named anew is another: files that hold the former make the column left out."""
    from pyiceberg.types import LongType

    table, path = iceberg
    whole = ROWS.append_column("c", pa.array([{"b": 1, "d": 2}] * 3))
    with table.update_schema() as change:
        change.union_by_name(whole.schema)
    table.overwrite(whole)
    assert "c" in {name for row in arrow_of(source_of(path)).to_pylist() for name in row}
    with table.update_schema() as change:
        change.delete_column(("c", "d"))
    with table.update_schema() as change:
        change.add_column(("c", "d"), LongType())
    if forgotten:
        told_anew(table)

    assert told(path) == (Lake, in_order(ROWS))


def delete_places(table, file, places, how="parquet"):
    """Delete rows of an Iceberg table's file by their places, as Spark and Trino do: by a file and its manifest."""
    from pyiceberg import manifest as of

    class Deletes(of.ManifestWriterV2):
        def content(self):
            return of.ManifestContent.DELETES

    folder = Path(table.location().removeprefix("file://"))
    if how == "parquet":
        pq.write_table(pa.table({"file_path": [file] * len(places), "pos": places}), folder / "deletes.parquet")
    else:
        (folder / "deletes.puffin").write_bytes(puffin(file, places))
    snapshot, io = table.current_snapshot(), table.io
    args = (
        table.spec(),
        table.schema(),
        io.new_output(f"{table.location()}/metadata/deletes.avro"),
        snapshot.snapshot_id,
    )
    listed = snapshot.manifests(io)
    with Deletes(*args, "deflate") as writer:
        about = of.DataFile.from_args(
            content=of.DataFileContent.POSITION_DELETES, file_path=f"{table.location()}/deletes.{how}",
            file_format=of.FileFormat[how.upper()], partition=of.Record(), record_count=len(places),
            file_size_in_bytes=1,
        )  # fmt: skip
        writer.add(
            of.ManifestEntry.from_args(
                status=of.ManifestEntryStatus.ADDED, snapshot_id=snapshot.snapshot_id, data_file=about
            )
        )
    Path(snapshot.manifest_list.removeprefix("file://")).unlink()
    numbers = (snapshot.snapshot_id, snapshot.parent_snapshot_id, snapshot.sequence_number)
    with of.write_manifest_list(2, io.new_output(snapshot.manifest_list), *numbers, "deflate") as whole:
        whole.add_manifests([*listed, writer.to_manifest_file()])


@pytest.mark.parametrize("how", ["parquet", "puffin"])
def test_rows_of_an_iceberg_table_that_are_deleted_by_their_places(iceberg, how):
    """Of one of two files alike: by places, which count from its first row, or by a vector of them."""
    table, path = iceberg
    file = next(iter(table.scan().plan_files())).file.file_path
    delete_places(table, file, [0, 2], how)
    version = lakehouse.version_of(path)

    assert told(path) == (Lake, in_order(ROWS, ROWS.slice(1, 1)))
    assert any(name.endswith(f"deletes.{how}") for name in version.beside)


def test_an_iceberg_table_whose_columns_and_parts_changed(iceberg):
    """Wider, added, dropped, and parts by a column from now on: old files lack what new ones have."""
    from pyiceberg.types import LongType

    table, path = iceberg
    narrow = pa.table({"n": pa.array([7], pa.int32())})
    with table.update_schema() as change:
        change.union_by_name(narrow.schema)
        change.delete_column("w")
    table.append(pa.table({"a": [9], "s": ["z"], "n": pa.array([8], pa.int32())}))
    with table.update_schema() as change:
        change.update_column("n", LongType())
    with table.update_spec() as change:
        change.add_identity("s")
    table.append(pa.table({"a": [9, 9], "s": ["y", None], "n": [2**40, None]}))
    old = [(str(row["a"]), "None", str(row["s"])) for row in ROWS.to_pylist()]

    new = [("9", "8", "z"), ("9", str(2**40), "y"), ("9", "None", "None")]
    assert told(path) == (Lake, sorted(old + old + new))


def test_files_that_an_iceberg_table_took_over(iceberg, tmp_path):
    """Without numbers of columns: told by the names that the table keeps for them."""
    table, path = iceberg
    pq.write_table(ROWS.drop_columns(["w"]), tmp_path / "other.parquet")
    table.add_files([f"file://{tmp_path}/other.parquet"])
    with table.update_schema() as change:
        change.rename_column("a", "b")
    both = ROWS.rename_columns(["b", "s", "w"])

    assert told(path) == (Lake, in_order(both, both, both.set_column(2, "w", pa.nulls(3))))


def test_an_iceberg_table_without_rows_or_without_numbers(iceberg):
    """No file is a table, too; and what needs a reader that is not here is refused when it is opened."""
    table, path = iceberg
    table.delete()
    assert told(path) == (Lake, [])
    (path / "metadata" / "99999-x.metadata.json").write_text("{}", "utf-8")
    with pytest.raises(DataError, match="Iceberg table cannot be read"):
        source_of(path)


def test_questions_are_of_the_version_that_was_opened(tmp_path):
    """What is appended later is no part of the table; a ledger of it tells the two versions apart."""
    delta, path = library("deltalake"), tmp_path / "t"
    many = pa.table({"s": ["x"] * 500, "p": ["q"] * 500})
    delta.write_deltalake(path, many, partition_by=["p"])
    books = {"budget": Budget(mu=9), "ledger": tmp_path / "t.ledger"}
    with Session(path, **books) as session:
        delta.write_deltalake(path, many, mode="append")
        assert session.count(where="p = 'q' AND s = 'x'", loss=Gdp(1)).value == pytest.approx(500, abs=10)
    with pytest.raises(DataError, match="not those that were asked before"):
        Session(path, **books).count(loss=Gdp(1))


def test_text_that_is_not_utf8_is_null_in_its_row(tmp_path):
    """As in Parquet, and never an error."""
    delta, path = library("deltalake"), tmp_path / "t"
    odd = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ann", b"b\xff"], pa.binary()).buffers())
    (path / "p=q").mkdir(parents=True)
    pq.write_table(pa.table({"s": odd}), path / "p=q" / "one.parquet")
    delta.convert_to_deltalake(path, partition_by=delta.Schema([delta.Field("p", "string")]), partition_strategy="hive")

    assert told(path)[1] == [("q", "None"), ("q", "ann")]


@pytest.mark.parametrize("last", [2_000, 2_001, -1], ids=["fits", "does not fit", "before 1970"])
def test_no_time_decides_between_an_answer_and_an_error(tmp_path, last):
    """Nanoseconds are told down to the microsecond, and milliseconds too far from 1970 are NULL: neither fails."""
    delta, path = library("deltalake"), tmp_path / "t"
    (path / "p=q").mkdir(parents=True)
    fine = pa.array([1_000, last, None], pa.timestamp("ns"))
    coarse = pa.array([last, 2**63 - 1, -(2**63)], pa.timestamp("ms"))
    pq.write_table(pa.table({"t": fine, "c": coarse}), path / "p=q" / "one.parquet")
    delta.convert_to_deltalake(path, partition_by=delta.Schema([delta.Field("p", "string")]), partition_strategy="hive")
    found = arrow_of(source_of(path))

    assert found.column("t").cast(pa.int64()).to_pylist() == [1, last // 1000, None]
    assert found.column("c").cast(pa.int64()).to_pylist() == [last * 1000, None, None]


def test_values_that_may_not_fit_are_refused(tmp_path):
    """A file of whole numbers where the table declares texts, and of wider ones than it declares: for any value."""
    delta, path = library("deltalake"), tmp_path / "t"
    delta.write_deltalake(path, pa.table({"a": pa.array([1], pa.int32()), "s": ["x"], "p": ["q"]}), partition_by=["p"])
    (file,) = path.rglob("*.parquet")
    pq.write_table(pa.table({"a": pa.array([1], pa.int64()), "s": [1]}), file)

    with pytest.raises(DataError, match="other types than it declares") as refused:
        source_of(path)
    assert refused.value.got == "a, s"


def needing(path, *features):
    """Write into a Delta table of one version that its readers need features; return what that version says."""
    log = path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for line in lines:
        if "protocol" in line:
            needed = {"minReaderVersion": 3, "minWriterVersion": 7}
            line["protocol"] = needed | {"readerFeatures": features, "writerFeatures": features}
    log.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return lines


def roaring(rows):
    """Return the bitmap of rows, numbers below 2^16, that both formats have."""
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *rows)
    return struct.pack("<IQI", 1681511377, 1, 0) + bitmap


def vector(rows):
    """Return the deletion vector of rows of a file, inline, as Delta's protocol has it: a bitmap in letters of Z85."""
    blob = roaring(rows)
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    numbers = struct.unpack(f">{-(-len(blob) // 4)}I", blob.ljust(-(-len(blob) // 4) * 4, b"\0"))
    text = "".join(letters[number // 85**place % 85] for number in numbers for place in range(4, -1, -1))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(blob), "cardinality": len(rows)}


def delete(path, rows):
    """Delete rows of the first file of a Delta table by a vector, as Spark does."""
    removed(path, next(line["add"] for line in needing(path, "deletionVectors") if "add" in line), rows)


def removed(path, add, rows):
    """Delete rows of a file of a Delta table by a vector."""
    last = len(list((path / "_delta_log").glob("*.json")))
    changed = [
        {"remove": {"path": add["path"], "deletionTimestamp": last, "dataChange": True}},
        {"add": add | {"deletionVector": vector(rows)}},
    ]
    log = path / "_delta_log" / f"{last:020}.json"
    log.write_text("\n".join(map(json.dumps, changed)), "utf-8")


def test_rows_that_a_deletion_vector_names_are_no_rows(tmp_path):
    """Of many batches of a file, by their places; a column that came later is NULL, odd text too, and no error."""
    delta, path = library("deltalake"), tmp_path / "a table"
    odd = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ann", b"b\xff"], pa.binary()).buffers())
    rows = pa.table({"a": range(200_000), "s": pa.concat_arrays([odd, pa.array(["x"] * 199_998)])})
    path.mkdir()
    pq.write_table(rows, path / "one.parquet")
    delta.convert_to_deltalake(path)
    gone = [1, 2, 40_000, 65_535]
    delete(path, gone)
    source = source_of(path)
    found = arrow_of(source)

    assert type(source) is Lake
    assert found.column("a").to_pylist() == [row for row in range(200_000) if row not in gone]
    assert found.column("s").to_pylist()[:2] == ["ann", "x"]
    assert source.load(("s",)).read_all().num_rows == 200_000 - len(gone)


@pytest.mark.parametrize("name", ["a b/o ne.parquet", "p%q/é.parquet", "é/a#b.parquet", "q+r/p%q.parquet"])
def test_rows_are_deleted_whatever_the_letters_of_the_path(tmp_path, name):
    """By a link to the folder, too: the log and the vectors name one file alike."""
    delta, path = library("deltalake"), tmp_path / name
    path.parent.mkdir()
    pq.write_table(pa.table({"a": range(3)}), path)
    delta.convert_to_deltalake(path.parent)
    delete(path.parent, [1])
    (tmp_path / "link").symlink_to(path.parent)

    assert told(path.parent) == told(tmp_path / "link") == (Lake, [("0",), ("2",)])


def test_rows_deleted_from_a_file_that_is_not_listed_are_refused(tmp_path):
    """The library takes the name a:b.parquet for an address and spells it in another way: its rows would be counted."""
    delta, path = library("deltalake"), tmp_path / "t"
    path.mkdir()
    pq.write_table(pa.table({"a": range(3)}), path / "a:b.parquet")
    delta.convert_to_deltalake(path)
    delete(path, [1])

    with pytest.raises(DataError, match="deleted from a file that it does not list") as refused:
        source_of(path)
    assert refused.value.got == "a:b.parquet"


def test_errors_say_no_value_that_a_folder_is_named_for(tmp_path):
    """Of a file that is gone, or cut off, or not listed: parts of paths are values of rows."""
    delta, path = library("deltalake"), tmp_path / "t"
    delta.write_deltalake(path, pa.table({"a": [1], "p": ["secret"]}), partition_by=["p"])
    (file,) = path.rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-1])
    found = [refused(lambda: source_of(path))]
    file.unlink()
    found.append(refused(lambda: source_of(path)))
    found.append(refused(lambda: lakehouse._require_listed(frozenset({f"{path}/p=secret/{file.name}"}), ())))

    assert [f"{path}/p=.../{file.name}"] * 3 == [each.got for each in found]


def refused(opened):
    """Return what is refused."""
    with pytest.raises(DataError) as error:
        opened()
    return error.value


@pytest.mark.parametrize("spelled", ["{}", "file:{}", "file://{}", "../{.name}"])
def test_files_of_a_delta_table_may_be_elsewhere(tmp_path, spelled):
    """As those of a shallow clone are, whose addresses are whole."""
    delta, path = library("deltalake"), tmp_path / "t"
    delta.write_deltalake(path, pa.table({"a": [1]}))
    (file,) = path.rglob("*.parquet")
    log, other = path / "_delta_log" / f"{0:020}.json", file.rename(tmp_path / "other.parquet")
    log.write_text(log.read_text("utf-8").replace(file.name, spelled.format(other)), "utf-8")

    assert told(path) == (Files, [("1",)])


def test_deleted_rows_need_their_file_among_those_of_the_version():
    """Letter by letter; a file without deleted rows is fine."""
    lakehouse._require_listed(frozenset({"/t/one.parquet"}), ("/t/one.parquet", "/t/two.parquet"))
    with pytest.raises(DataError, match="does not list"):
        lakehouse._require_listed(frozenset({"/t/o%20ne.parquet"}), ("/t/o ne.parquet",))


def test_a_ledger_tells_rows_before_and_after_a_deletion_vector_apart(tmp_path):
    """The files are the same: the version's own entry in the log is not."""
    delta, path = library("deltalake"), tmp_path / "t"
    delta.write_deltalake(path, ROWS)
    needing(path, "deletionVectors")
    books = {"budget": Budget(mu=9), "ledger": tmp_path / "t.ledger"}
    Session(path, **books).count(loss=Gdp(1))
    delete(path, [1])

    with pytest.raises(DataError, match="not those that were asked before"):
        Session(path, **books).count(loss=Gdp(1))


@pytest.mark.parametrize("features", [["catalogManaged"], ["deletionVectors", "of tomorrow"]])
def test_what_is_not_read_is_refused(tmp_path, features):
    """A table that needs what nobody here knows is refused when it is opened."""
    delta, path = library("deltalake"), tmp_path / "t"
    delta.write_deltalake(path, ROWS)
    needing(path, *features)

    with pytest.raises(DataError, match="Delta table cannot be read"):
        source_of(path)


def test_deletion_vectors_of_a_partitioned_table(tmp_path):
    """Rows of one of its files are left out; the column that is part of the path is beside those that are left."""
    delta, path = library("deltalake"), tmp_path / "t"
    delta.write_deltalake(path, pa.table({"a": range(4), "p": ["x", "x", "x", None]}), partition_by=["p"])
    (add,) = (line["add"] for line in needing(path, "deletionVectors") if "p=x" in str(line.get("add")))
    removed(path, add, [0, 2])

    assert told(path) == (Lake, [("1", "x"), ("3", "None")])


def mapped(path, mode, named, reader=2):
    """Let a Delta table of one version tell its columns otherwise: by name in its files, or by number."""
    log = path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for line in lines:
        if "protocol" in line:
            needed = {"readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]} if reader == 3 else {}
            line["protocol"] = {"minReaderVersion": reader, "minWriterVersion": 7 if reader == 3 else 5} | needed
        if "metaData" in line:
            about = line["metaData"]
            schema = json.loads(about["schemaString"])
            for number, field in enumerate(schema["fields"], 1):
                told = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
                field |= {"name": named[field["name"]], "metadata": told}
            about["schemaString"] = json.dumps(schema)
            about["partitionColumns"] = [named[name] for name in about["partitionColumns"]]
            about["configuration"] = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "3"}
    log.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return lines


@pytest.mark.parametrize("reader", [2, 3])
@pytest.mark.parametrize("parted", [[], ["s"]], ids=["whole", "partitioned"])
def test_columns_that_were_renamed(tmp_path, reader, parted):
    """Crosswise, so that files hold others under their names; what Spark calls name mode."""
    delta, path = library("deltalake"), tmp_path / "t"
    rows = pa.table({"a": [1, 2], "s": [3, 4], "w": ["x", None]})
    delta.write_deltalake(path, rows, partition_by=parted or None)
    mapped(path, "name", {"a": "s", "s": "a", "w": "v"}, reader)

    assert told(path) == (Lake, in_order(rows.rename_columns(["s", "a", "v"])))
    with Session(path, budget=Budget(mu=9), ledger=None) as session:
        assert session.count(where="a >= 3", loss=Gdp(7)).value == pytest.approx(2, abs=1.5)


def test_names_of_a_delta_table_differ_in_more_than_upper_and_lower_case(tmp_path):
    """As Spark has it: a file may spell a column in another way, but not two of them."""
    delta, path = library("deltalake"), tmp_path / "t"
    delta.write_deltalake(path, pa.table({"S": ["x"], "P": ["q"]}), partition_by=["P"])
    (file,) = path.rglob("*.parquet")
    pq.write_table(pa.table({"s": ["x"], "p": [1], "P": [2]}), file)  # what is beside the file is not read in it
    assert told(path) == (Lake, [("q", "x")])
    pq.write_table(pa.table({"s": ["x"], "S": ["y"]}), file)

    with pytest.raises(DataError, match="two columns of a file have the same name"):
        source_of(path)


def test_columns_that_are_told_by_numbers(tmp_path):
    """Whatever their names in a file; a column whose number no file has is NULL, also where its name is there."""
    delta, path = library("deltalake"), tmp_path / "t"
    path.mkdir()
    numbers = {"x": b"2", "s": b"1", "w": b"9"}
    fields = [pa.field(name, pa.int64(), metadata={"PARQUET:field_id": number}) for name, number in numbers.items()]
    pq.write_table(pa.table([[1, 2], [3, 4], [5, 6]], schema=pa.schema(fields)), path / "one.parquet")
    delta.convert_to_deltalake(path)
    mapped(path, "id", {"x": "a", "s": "s", "w": "w"})

    assert told(path) == (Lake, [("3", "1", "None"), ("4", "2", "None")])


def test_a_ledger_tells_a_table_before_and_after_columns_were_renamed_crosswise_apart(tmp_path):
    """No data file changes, nor the names and types; the version's entry in the log does."""
    delta, path = library("deltalake"), tmp_path / "t"
    delta.write_deltalake(path, pa.table({"a": [1, 2], "s": [3, 4]}))
    first = mapped(path, "name", {"a": "a", "s": "s"})
    books = {"budget": Budget(mu=9), "ledger": tmp_path / "t.ledger"}
    Session(path, **books).count(loss=Gdp(1))
    about = next(line for line in first if "metaData" in line)
    schema = json.loads(about["metaData"]["schemaString"])
    for field, name in zip(schema["fields"], ("s", "a"), strict=True):
        field["metadata"]["delta.columnMapping.physicalName"] = name
    about["metaData"]["schemaString"] = json.dumps(schema)
    (path / "_delta_log" / f"{1:020}.json").write_text(json.dumps(about), "utf-8")

    with pytest.raises(DataError, match="not those that were asked before"):
        Session(path, **books).count(loss=Gdp(1))


def test_a_ledger_tells_values_of_parts_apart(tmp_path):
    """A commit adds the same files again, each with the value of the other: no file changes, nor the values."""
    delta, path = library("deltalake"), tmp_path / "t"
    days = pa.array([0, 2**31 - 1], pa.date32())
    delta.write_deltalake(path, pa.table({"a": [1, 2], "p": ["x", "y"]}), partition_by=["p"])
    books = {"budget": Budget(mu=9), "ledger": tmp_path / "t.ledger"}
    Session(path, **books).count(loss=Gdp(1))
    log = path / "_delta_log" / f"{0:020}.json"
    one, two = (line for line in map(json.loads, log.read_text("utf-8").splitlines()) if "add" in line)
    parts = "partitionValues"
    one["add"][parts], two["add"][parts] = two["add"][parts], one["add"][parts]
    (path / "_delta_log" / f"{1:020}.json").write_text("\n".join(map(json.dumps, (one, two))), "utf-8")

    assert told(path) == (Lake, [("1", "y"), ("2", "x")])
    with pytest.raises(DataError, match="not those that were asked before"):
        Session(path, **books).count(loss=Gdp(1))
    assert len({*(version.DataFile("f", {"p": day}).mark()[0] for day in days)}) == 2  # one is beyond Python's calendar


def test_a_table_without_rows(tmp_path):
    """It is a table, of which counts are told: that it has no file must not be told by a refusal."""
    delta, path = library("deltalake"), tmp_path / "t"
    delta.write_deltalake(path, ROWS)
    delta.DeltaTable(path).delete()

    assert told(path) == (Lake, [])
    with Session(path, budget=Budget(mu=9), ledger=None) as session:
        assert session.count(loss=Gdp(7)).value == pytest.approx(0, abs=1.5)


def test_lists_are_as_they_are_or_left_out(tmp_path):
    """Never another value, which would make one unit of two: within them columns may have been renamed, too."""
    delta, path = library("deltalake"), tmp_path / "t"
    rows = pa.table({"a": [1, 2], "l": [[{"b": 1}], None], "k": [b"x", b"y"], "p": ["x", "x"]})
    delta.write_deltalake(path, rows, partition_by=["p"])
    assert told(path) == (Lake, in_order(rows))
    log = path / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text("utf-8").replace(r"\"name\":\"b\"", r"\"name\":\"c\""), "utf-8")

    assert told(path) == (Lake, in_order(rows.drop_columns(["l"])))


def test_folders_that_hold_no_table(tmp_path, monkeypatch):
    """No table, an empty log, no library, an address elsewhere: refused with what to do."""
    with pytest.raises(DataError, match="a folder is not a table"):
        source_of(tmp_path)
    (tmp_path / "_delta_log").mkdir()
    monkeypatch.setattr(lakehouse, "find_spec", lambda _: None)
    with pytest.raises(DataError, match="not installed") as refused:
        source_of(tmp_path)
    assert "farthing[lakehouse]" in refused.value.next_step
    monkeypatch.undo()
    library("deltalake")
    with pytest.raises(DataError, match="Delta table cannot be read"):
        source_of(tmp_path)
    with pytest.raises(ValueError, match=r"^$"):
        version.local(["s3://bucket/file.parquet"])
