"""What does not fit into memory goes into a private folder that is gone with its process, or nowhere."""

import os
import signal
import stat
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pytest

import farthing
from farthing.engines import open_table, spill
from farthing.engines.duck import database
from farthing.errors import DataError

TABLE = pa.table({"u": np.arange(300_000) % 150_000, "g": np.arange(300_000) % 1000})


@pytest.fixture
def where(tmp_path, monkeypatch):
    """Return the folder in which private folders are made."""
    folder = tmp_path / "spill"
    folder.mkdir()
    monkeypatch.setenv(spill.SETTING, str(folder))
    return folder


def test_the_folder_is_private_and_named_at_random(where):
    """Two engines have one each, of mode 0700; closing removes them, and closing twice is fine."""
    engines = [open_table(TABLE) for _ in range(2)]
    found = sorted(where.iterdir())
    assert 2 == len(found)
    assert {0o700} == {stat.S_IMODE(folder.stat().st_mode) for folder in found}
    assert all(folder.name.removeprefix("farthing-spill-").isascii() for folder in found)
    names = {engine._connection.execute("SELECT current_setting('temp_directory')").fetchone()[0] for engine in engines}
    assert {str(folder) for folder in found} == names
    for engine in engines:
        engine.close()
        engine.close()
    assert [] == list(where.iterdir())
    with pytest.raises(DataError, match="closed"):
        engines[0].check(after_failure=True)


def test_an_engine_that_is_forgotten_removes_its_folder(where):
    """Without a close."""
    engine = open_table(TABLE)
    assert 1 == len(list(where.iterdir()))
    del engine
    assert [] == list(where.iterdir())


def test_rows_are_spilt_there_and_nowhere_else(where, monkeypatch):
    """With little memory: files appear in the private folder while a question is answered, and the answer is right."""
    monkeypatch.setitem(database._SETTINGS, "memory_limit", "40MB")
    monkeypatch.setitem(database._SETTINGS, "threads", "1")
    seen, engine = set(), open_table(TABLE)
    private = next(where.iterdir())
    with engine._connection.cursor() as cursor:
        cursor.register("many", TABLE)
        cursor.execute("CREATE TEMP TABLE t AS SELECT u, g, md5(u::VARCHAR || i) AS x FROM many, range(8) AS r(i)")
        seen |= {file.parent for file in where.rglob("*") if file.is_file()}
    assert {private} == seen
    engine.close()
    assert [] == list(where.iterdir())


KILLED = """
import os, signal, sys
import pyarrow as pa
from farthing.engines import open_table
engine = open_table(pa.table({"u": [1]}))
print(engine._database.get().spill.path, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_left_is_removed_by_the_next(where):
    """Its folder stays as long as it lives, whoever starts meanwhile; other people's and other things stay too."""
    other = where / "farthing-spill-file"
    other.touch()
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        folder = where / os.path.basename(process.stdout.readline().strip())  # noqa: PTH119
        (folder / "rows.tmp").write_text("4,780 unit ids")
        open_table(TABLE).close()
        assert folder.exists()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert folder.exists()
    open_table(TABLE).close()
    assert [other] == list(where.iterdir())


def test_a_folder_that_is_swept_before_it_is_locked_is_made_anew(where, monkeypatch):
    """Two that start at once: neither works in a folder that is gone."""
    lock = spill._locked

    def late(folder, *, wait):
        if wait and not list(where.glob("second*")):
            (where / "second").touch()
            folder.rmdir()
            folder.touch()  # so that it can be opened
            handle = lock(folder, wait=True)
            folder.unlink()
            return handle
        return lock(folder, wait=wait)

    monkeypatch.setattr(spill, "_locked", late)
    engine = open_table(TABLE)
    assert engine._database.get().spill.path.is_dir()


def test_nothing_is_spilt_where_none_is_said(where, monkeypatch):
    """No folder is made, and the engine has none."""
    monkeypatch.setenv(spill.SETTING, "none")
    engine = open_table(TABLE)
    assert [] == list(where.iterdir())
    assert "" == engine._connection.execute("SELECT current_setting('temp_directory')").fetchone()[0]
    session = farthing.Session(TABLE, budget=farthing.Budget(mu=1))
    assert 300_000 == pytest.approx(session.count(absolute=100).value, abs=1000)


def test_a_folder_that_is_not_there_is_refused(where, monkeypatch):
    """Before anything is asked, with the way out."""
    monkeypatch.setenv(spill.SETTING, str(where / "missing"))
    with pytest.raises(DataError, match="no room") as told:
        open_table(TABLE)
    assert "FARTHING_SPILL=none" in told.value.next_step
    monkeypatch.delenv(spill.SETTING)
    monkeypatch.setattr(tempfile, "tempdir", str(where))
    engine = open_table(TABLE)
    assert 1 == len(list(where.iterdir()))
    engine.close()
