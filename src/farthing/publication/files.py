"""A publication as files, and a folder that is there whole or not at all."""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from farthing.errors import DataError, InvalidOption
from farthing.publication.record import record
from farthing.publication.statement import statement
from farthing.query import outward
from farthing.tabular import csv_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from farthing.publication.facts import Imprint, Standing
    from farthing.publication.tables import PrintedTable

SUMS: Final = "SHA256SUMS"


def written(tables: Sequence[PrintedTable], imprint: Imprint, standing: Standing) -> dict[str, bytes]:
    """Return the files of a publication by their paths in its folder; the same tables make the same bytes."""
    found: dict[str, bytes] = {}
    names = file_names([table.name for table in tables])
    for table, name in zip(tables, names, strict=True):
        found[f"tables/{name}.csv"] = csv_bytes(table.rows, outward.cell)
        found[f"tables/{name}.parquet"] = _parquet(table)
    found["statement.html"] = statement(tables, names, imprint, standing).encode()
    facts = record(tables, names, imprint, standing)
    found["record.json"] = (outward.dumped(facts, indent=2) + "\n").encode()
    sums = (f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in sorted(found.items()))
    return found | {SUMS: "".join(sums).encode()}


def file_names(names: Sequence[str]) -> list[str]:
    """Return a file's name for each table: letters, digits, - and _; a number where two would be one.

    >>> file_names(["rides by zone", "rides/by/zone", "all"])
    ['rides-by-zone', 'rides-by-zone-2', 'all']
    """
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^\w-]+", "-", name, flags=re.ASCII).strip("-")[:80] or "table"
        number, chosen = 1, plain
        while chosen.lower() in {each.lower() for each in found}:
            number += 1
            chosen = f"{plain}-{number}"
        found.append(chosen)
    return found


def holds(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Return whether a folder holds exactly these files."""
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    return there == set(files) and all((folder / path).read_bytes() == data for path, data in files.items())


@contextmanager
def beside(folder: Path) -> Iterator[Path]:
    """Give an empty folder beside the one that is to be made; what is left of it at the end is removed.

    Raises:
        DataError: it cannot be made there.
    """
    near = folder.parent / f".{folder.name}.{secrets.token_hex(8)}"
    problem = ""
    try:
        near.mkdir()
    except OSError as error:
        problem = str(error.strerror)
    if problem:
        raise _unwritten(folder, problem)
    try:
        yield near
    finally:
        shutil.rmtree(near, ignore_errors=True)


def moved(near: Path, folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into an empty folder and rename it: the folder has all of them, or is not there.

    Raises:
        DataError: it cannot be written.
        InvalidOption: the folder came to be in the meantime.
    """
    problem = ""
    try:
        for path, data in files.items():
            (near / path).parent.mkdir(parents=True, exist_ok=True)
            (near / path).write_bytes(data)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        if folder.exists():
            raise taken(folder)
        near.rename(folder)
    except OSError as error:
        problem = str(error.strerror)
    if problem:
        raise _unwritten(folder, problem)


def taken(folder: Path) -> InvalidOption:
    """Return the refusal of a folder that has something else in it."""
    return InvalidOption(
        "the folder has other files in it",
        rule="a publication is a new folder; files are not written over",
        got=folder,
        next_step="name another folder, or move this one away",
    )


def _unwritten(folder: Path, problem: str) -> DataError:
    """Return the error of a folder that cannot be written."""
    return DataError(
        "the publication cannot be written",
        rule="a folder in one that is there, in which you may write",
        got=f"{folder}: {problem}",
        next_step="name another folder; what was answered is free when asked again",
    )


def _parquet(table: PrintedTable) -> bytes:
    """Return a table as Parquet, with what is said of it in the schema's metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table.rows, sink)
    made: bytes = sink.getvalue().to_pybytes()
    return made
