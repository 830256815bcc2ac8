"""Counts by zone with farthing: its noise for a price is asked for by `loss=`, so that the promise is the peers'."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import turns


def price() -> None:
    """Tell what real sessions paid for the questions of `turns`: each within 100, and within 10 % or 100."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from data import rides

    import farthing

    def paid(**target: float) -> float:
        session = farthing.Session(
            rides(1_000_000), name="rides", budget=farthing.Budget(epsilon=50, delta=turns.DELTA)
        )
        for zone in range(turns.QUESTIONS):
            session.count(
                where=f"zone = {zone}", cap="all", absolute=turns.WITHIN, confidence=turns.CONFIDENCE, **target
            )
        return float(session.spent.epsilon(turns.DELTA))

    turns.told(epsilon=paid(), how="Gaussian noise, exact Gaussian accounting")
    turns.told(epsilon=paid(relative=0.1), how="the same, each within 10 % or 100")


def counts(path: str, unit: str) -> None:
    """Ask in turns, each time in a session that never asked before, on a durable ledger of its own."""
    import farthing

    folder = Path(tempfile.mkdtemp())
    options = {}
    if unit == "rider":
        bounds = farthing.Bounds(max_groups=turns.MOST_ZONES, max_rows=turns.MOST_ROWS)
        options = {"unit": "rider", "bounds": bounds}
    keys = {"zone": list(range(turns.ZONES))}

    def opened() -> farthing.Session:
        ledger = folder / f"{len(list(folder.glob('*.ledger')))}.ledger"
        return farthing.Session(path, name="rides", budget=farthing.Budget(epsilon=50), ledger=ledger, **options)

    def ask(session: farthing.Session) -> list[float]:
        return session.count(by="zone", keys=keys, loss=farthing.Pure(turns.EPSILON), cap="all").value.tolist()

    turns.serve(ask, opened)


if __name__ == "__main__":
    price() if sys.argv[1] == "price" else counts(*turns.arguments())
