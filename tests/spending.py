"""Spend all that a ledger gives, as a program of its own or as a function."""

import sys
from pathlib import Path

from farthing.errors import FarthingError
from farthing.ledger.entry import Terms
from farthing.ledger.store import Ledger

TERMS = Terms("gdp", budget=1000, delta=0, keys_delta=0, unit="row", description="1000 farthings")


def spend(path: Path | str, name: str) -> int:
    """Reserve ten farthings at a time until the ledger refuses; return how many were given."""
    given = 0
    with Ledger.open(path, TERMS) as ledger:
        for number in range(200):
            try:
                ledger.reserve(increase=10, fresh=10, question=f"{name} {number}", version=0, label="COUNT(*)")
            except FarthingError:
                break
            given += 10
    return given


if __name__ == "__main__":
    sys.stdout.write(f"{spend(sys.argv[1], sys.argv[2])}\n")
