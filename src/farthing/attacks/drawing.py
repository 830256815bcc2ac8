"""The table of random secrets that an owner loads into a system of their own, so that a verdict on it is valid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.attacks.coins import Coins
from farthing.attacks.target import People
from farthing.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

AREAS: Final = 20
"""How many areas the made-up people live in."""


def secrets(
    n: int, seed: int | None = None, path: str | Path | None = None, *, attributes: int = 0, **facts: Any
) -> People:
    """Draw people with secrets that are fair coins, and ids, ages, sexes and areas that tell nothing about them.

    Load the file into the system, attack it, and hand the same file to the attack, which scores its guesses by it.

    Args:
        n: how many people.
        seed: of the secrets; None draws them from the operating system, so that nobody knows them before.
        path: a .csv or .parquet file to write, with the secrets in the column "secret".
        attributes: how many columns a1, a2, ... of fair coins they have as well, for `membership`.
        **facts: of `People`, such as table="loans".

    >>> people = secrets(4, seed=0)
    >>> people.count("age = 30")
    'SELECT COUNT(*) FROM people WHERE age = 30 AND secret = 1'
    >>> people.to_arrow().column_names
    ['id', 'age', 'sex', 'area', 'secret']
    """
    if n < 1:
        raise DataError("the number of people is out of range", rule="n >= 1", got=n, next_step="attacks.secrets(200)")
    known = Coins(seed, "people", n)
    columns: dict[str, Any] = {
        "id": np.arange(1, n + 1),
        "age": 18 + known.integers(70, n),
        "sex": np.where(known.bits(n), "F", "M"),
        "area": 1 + known.integers(AREAS, n),
    }
    columns |= {f"a{number + 1}": row for number, row in enumerate(known.bits(attributes, n).astype(np.int64))}
    people = People(Coins(seed, "secrets", n).bits(n), columns, **facts)
    if path is not None:
        _write(people.to_arrow(), Path(path))
    return people


def _write(table: pa.Table, path: Path) -> None:
    """Write a CSV or Parquet file."""
    from pyarrow import csv, parquet

    if path.suffix.lower() not in (".csv", ".parquet"):
        raise DataError(
            "unknown kind of file", rule=".csv or .parquet", got=path.name, next_step="path='people.parquet'"
        )
    try:
        if path.suffix.lower() == ".csv":
            csv.write_csv(table, path)
        else:
            parquet.write_table(table, path)
    except OSError as error:
        raise DataError(
            "the people cannot be written", rule="a folder that exists", got=str(error), next_step="another path"
        ) from error
