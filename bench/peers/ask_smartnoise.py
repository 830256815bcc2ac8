"""Counts by zone with SmartNoise SQL over a pandas frame. Its max_ids bounds rows, not groups: rows as units only."""

from __future__ import annotations

import math
import sys
import warnings
from typing import Any

import turns

warnings.filterwarnings("ignore")
ASKED = "SELECT zone, COUNT(*) AS c FROM S.T GROUP BY zone"


def meta(rows: int) -> Any:
    """Return the description of the table."""
    return {"": {"S": {"T": {"row_privacy": True, "censor_dims": False, "rows": rows, "zone": {"type": "int"}}}}}


def price() -> None:
    """Tell what its odometer charges for the questions of `turns`."""
    import pandas as pd
    import snsql

    epsilon = -math.log(1 - turns.CONFIDENCE) / turns.WITHIN
    privacy = snsql.Privacy(epsilon=epsilon, delta=turns.DELTA / turns.QUESTIONS)
    reader = snsql.from_df(pd.DataFrame({"zone": [1, 2]}), privacy=privacy, metadata=meta(2))
    asked = [f"SELECT COUNT(*) AS c FROM S.T WHERE zone = {zone}" for zone in range(turns.QUESTIONS)]
    turns.told(epsilon=float(reader.get_privacy_cost(asked)[0]), how="Laplace noise, advanced composition")


def counts(path: str) -> None:
    """Ask in turns."""
    import pandas as pd
    import snsql

    def ask() -> list[float]:
        frame = pd.read_parquet(path, columns=["zone"])
        privacy = snsql.Privacy(epsilon=turns.EPSILON, delta=turns.DELTA)
        answer = snsql.from_df(frame, privacy=privacy, metadata=meta(len(frame))).execute(ASKED)
        found = dict(answer[1:])
        return [found.get(zone, 0) for zone in range(turns.ZONES)]

    turns.serve(ask)


if __name__ == "__main__":
    price() if sys.argv[1] == "price" else counts(turns.arguments()[0])
