"""A publication as files."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from farthing.folders import named, taken, writing
from farthing.publication.record import record
from farthing.publication.statement import statement
from farthing.query import outward
from farthing.tabular import csv_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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


def moved(near: Path, folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into an empty folder and name it: a new folder has all of them, or is not there.

    Raises:
        DataError: it cannot be written.
        InvalidOption: the folder came to be in the meantime.
    """
    with writing(folder):
        if folder.is_dir() and any(each.name != near.name for each in folder.iterdir()):
            raise taken(folder)
        for path, data in files.items():
            (near / path).parent.mkdir(parents=True, exist_ok=True)
            (near / path).write_bytes(data)
    named(near, folder)


def _parquet(table: PrintedTable) -> bytes:
    """Return a table as Parquet, with what is said of it in the schema's metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table.rows, sink)
    made: bytes = sink.getvalue().to_pybytes()
    return made
