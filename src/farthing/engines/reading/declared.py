"""Which files a path or pattern names, and that CSV files among them are declared."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.reading.version import shown
from farthing.errors import DataError, InvalidOption
from farthing.query import outward
from farthing.query.reading import CSV_NAMES
from farthing.urls import is_address

if TYPE_CHECKING:
    from collections.abc import Mapping

PARQUET: Final = (".parquet", ".pq")
"""How the names of Parquet files end."""


def require_declared(tables: Mapping[str, Any]) -> None:
    """Refuse CSV files, by their names alone, of which nothing says how they are read; see `Csv`.

    Whether a line would be left out may depend on one row, so it must not decide what everybody is told.

    Raises:
        InvalidOption: a table is the path or pattern of CSV files.
        DataError: no file is there, or none matches the pattern.
    """
    for name, table in tables.items():
        if isinstance(table, str | Path) and is_csv(str(table)):
            if not any(os.path.exists(file) for file in matching(str(table))):  # noqa: PTH110  # of no name it fails
                raise missing(table)
            raise InvalidOption(
                f"nothing says how the CSV table {name!r} is read",
                rule="lines that do not fit how a CSV is read are left out, so its owner says how",
                got=table,
                next_step="`farthing check` proposes it to the owner, and writes it into farthing.toml as "
                f"[csv.{outward.dumped(name)}]; in Python it is farthing.Csv(path), with what it proposes",
            )


def is_csv(table: str) -> bool:
    """Return whether a table is of CSV files, by the names of what it finds: some are, and none is Parquet.

    Raises:
        DataError: no file matches the pattern.
    """
    files = () if is_address(table) or os.path.isdir(table) else matching(table)  # noqa: PTH112  # of no name it fails
    kinds = {kind for name in files for kind in (CSV_NAMES, PARQUET) if name.lower().endswith(kind)}
    return kinds == {CSV_NAMES}


def matching(named: str) -> tuple[str, ...]:
    """Return the files that a path or pattern names, as absolute paths."""
    if "\0" in named:
        raise missing(named)
    if not glob.has_magic(named) or os.path.exists(named):  # noqa: PTH110  # of no name it fails
        return (str(Path(named).absolute()),)
    found = tuple(sorted(str(Path(name).absolute()) for name in glob.glob(named, recursive=True)))  # noqa: PTH207  # absolute globs
    if not found:
        raise DataError(
            "no file matches",
            got=named,
            next_step="check the pattern and the working folder",
            rule="a pattern matches at least one file",
        )
    return found


def missing(path: str | Path) -> DataError:
    """Return the refusal of a file that is not there."""
    return DataError(
        "no such file",
        got=shown(path),
        next_step="check the path and the working folder",
        rule="a table is a file that exists",
    )
