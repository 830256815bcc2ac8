"""What every script of this folder shares: it answers one line on standard input with one line of JSON, in turns.

A script is started as `python ask_PEER.py FILE UNIT`, imports its library, opens the table, and then asks the same
question once for each line that it reads: a count of rides by 265 zones, epsilon 1, each row a unit (UNIT `row`) or a
rider with at most 5 zones and 20 rows in each (`rider`). The first line it writes says how long it took to get ready.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STARTED = time.perf_counter()
ZONES = 265
MOST_ZONES, MOST_ROWS = 5, 20
EPSILON = 1.0
QUESTIONS, WITHIN, CONFIDENCE, DELTA = 100, 100, 0.95, 1e-6
"""The prices: so many counts, each within so much, so often, under one promise."""


def arguments() -> tuple[str, str]:
    """Return the file and the unit."""
    path, unit = sys.argv[1:]
    return path, unit


def told(**facts: Any) -> None:
    """Write one line."""
    print(json.dumps(facts), flush=True)


def serve(ask: Callable[..., Sequence[float]], opened: Callable[[], Any] | None = None) -> None:
    """Ask at each line; tell the seconds and the counts by zone. What `opened` makes before is not timed."""
    table = [opened()] if opened else []
    told(ready=time.perf_counter() - STARTED)
    for _ in sys.stdin:
        start = time.perf_counter()
        counts = ask(*table)
        seconds = time.perf_counter() - start
        told(seconds=seconds, counts=[float(count) for count in counts])
        table = [opened()] if opened else []
