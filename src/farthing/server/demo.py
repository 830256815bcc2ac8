"""A server to try: real flights, an owner and two analysts with tokens of their own, and a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from farthing import flights as data
from farthing.server.datasets import ServedTable

if TYPE_CHECKING:
    from pathlib import Path

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

    folder = data.data_folder()
    table = _flights(folder)
    airports = data.listed(folder, "airports", "faa").to_pylist()
    carriers = data.listed(folder, "airlines", "carrier").to_pylist()
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


def _flights(folder: Path) -> pa.Table:
    """Return the flights, with the columns that people ask about."""
    import pyarrow as pa

    columns = (
        dict.fromkeys(_TEXTS, pa.string()) | dict.fromkeys(_NUMBERS, pa.int64()) | dict.fromkeys(_TIMES, pa.float64())
    )
    return data.flights(folder, columns)
