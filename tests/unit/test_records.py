"""Records: what the ledger keeps of a question, and what it refuses to read."""

import numpy as np
import pyarrow as pa
import pytest
from rides import BY, opened

from farthing import LedgerError
from farthing.accuracy.stored_promise import StoredPromise
from farthing.mechanisms.gaussian import Measured
from farthing.session.core import records
from farthing.session.core.records import Record

KEPT = StoredPromise(relative=0.1, absolute=50.0, floor=50.0, beta=0.05, critical=1.99, grains=1 << 50, futility=3.1)


def record(groups=3):
    """Return a record with large, signed numbers."""
    mean = np.arange(groups, dtype=np.int64) - (1 << 40)
    return Record(Measured(mean, mean + (1 << 41), -12), KEPT, keys="abc")


def test_a_record_comes_back_as_it_was():
    """Every field survives the trip, integers and floats to the last bit."""
    there = record()
    back = Record.from_bytes(there.to_bytes())

    assert (there.kept, there.keys, there.measured.unit_log2) == (back.kept, back.keys, back.measured.unit_log2)
    assert np.array_equal(there.measured.mean, back.measured.mean)
    assert np.array_equal(there.measured.information, back.measured.information)
    assert np.int64 == back.measured.mean.dtype == back.measured.information.dtype


def test_equal_records_are_equal_bytes():
    """A merge may compare blobs."""
    assert record().to_bytes() == record().to_bytes()


def test_a_million_groups_are_small():
    """Means and informations of 1,000,000 groups take at most 16 MB, of which repeated informations compress."""
    rng = np.random.default_rng(5)
    mean = rng.integers(-(1 << 30), 1 << 30, 1_000_000)
    large = Record(Measured(mean, np.full(mean.size, 1 << 50), -12), KEPT, keys="abc")

    assert 9_000_000 > len(large.to_bytes())


@pytest.mark.parametrize("plain", [1, 1 << 20], ids=["as it is", "compressed"])
def test_columns_of_many_groups_come_back_as_they_were(plain, monkeypatch):
    """Values and types survive where small whole numbers are written small and nothing is compressed."""
    monkeypatch.setattr(records, "_MANY", plain)
    large = np.array([1 << 40, -(1 << 40), 7] * 9)
    columns = {f"a{bits}": large % (1 << bits) - (1 << bits - 1) for bits in (7, 15, 31)}
    columns |= {"ends": np.array([-128, 127, 0] * 9), "beyond": np.array([-129, 127, 0] * 9), "large": large}
    columns |= {"real": np.array([np.inf, -0.0, 0.1] * 9), "met": np.array([True, False, True] * 9)}
    blob = records.write_blob(columns, {b"form": b"{}"})
    back, _ = records.read_blob(blob, b"form")

    assert {name: column.dtype for name, column in columns.items()} == {name: back[name].dtype for name in columns}
    assert all(np.array_equal(columns[name], back[name]) for name in columns)
    small = {name: column for name, column in columns.items() if name in {"large", "real", "met"}}
    forms = [
        b"form" in records._read(records.write_blob(held, {b"form": b"{}"})).schema.metadata
        for held in (columns, small)
    ]
    assert forms == [plain > 1, True]  # an older version, which would compute in small types, does not know the form


@pytest.mark.parametrize("blob", [
    b"",
    b"not Arrow",
    record().to_bytes()[:200],
    record().to_bytes().replace(b"farthing-record-1", b"farthing-record-9"),
    record().to_bytes().replace(b'"grains"', b'"greens"'),
    record().to_bytes().replace(b'"floor"', b'"flaor"'),
], ids=["empty", "text", "cut off", "newer", "a field missing", "a field renamed"])  # fmt: skip
def test_blobs_that_are_no_records(blob):
    """Refused as a ledger error with a next step, never guessed."""
    with pytest.raises(LedgerError, match="stored measurement cannot be read") as error:
        Record.from_bytes(blob)

    assert error.value.next_step


def test_an_arrow_stream_of_others_is_no_record():
    """An Arrow table without our mark is refused."""
    sink = pa.BufferOutputStream()
    table = pa.table({"mean": [1], "information": [1]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)

    with pytest.raises(LedgerError):
        Record.from_bytes(sink.getvalue().to_pybytes())


def test_what_is_stored_was_released():
    """Nothing in a record is secret: its means are what the answer shows, its informations what the groups paid."""
    session = opened()
    answer = session.count(**BY, absolute=50)
    blob = session._ledger.load(session.history()[0].question).blob
    measured = Record.from_bytes(blob).measured

    assert np.array_equal(np.sort(answer.value), np.sort(measured.values))  # stored in an order of their own
    assert np.allclose(answer.group_paid**2, measured.information * 2.0**-56, rtol=1e-9)
