"""Asks whose table fails after they were charged: they stay charged, and their words tell nothing of a row."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.audit.findings import Finding
from farthing.audit.outcomes import asked
from farthing.privacy.budget import Budget
from farthing.privacy.loss import Gdp
from farthing.query import Bounds
from farthing.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.audit.outcomes import Outcome

ROWS: Final = 400
KEYS: Final = {"g": [0, 1]}
FILLS: Final = (0xFF, 0x00)
"""What the rows of a file are overwritten with: engines fail on either, each in its own words."""

_FOOTER: Final = 8
_SMALL: Final[dict[str, Any]] = {"loss": Gdp(0.1)}
_SEARCH: Final[dict[str, Any]] = {"keys": "private", "found_above": 50, "absolute": 20, "cap": "all"}

ASKS: Final[dict[str, Callable[[Session], Any]]] = {
    "count": lambda session: session.count(**_SMALL),
    "count with mechanism=": lambda session: session.count(relative=0.1, absolute=20, cap="all", mechanism="asinh"),
    "sum": lambda session: session.sum("x", lower=0, upper=1, **_SMALL),
    "mean": lambda session: session.mean("x", lower=0, upper=1, **_SMALL),
    "quantile": lambda session: session.quantile("x", 0.5, lower=0, upper=1, **_SMALL),
    "search for keys": lambda session: session.count("g", **_SEARCH),
    "report on bounds": lambda session: session.bounds_report(**_SMALL),
    "choice of listed groups": lambda session: session.top_k("g", k=1, keys=KEYS, epsilon=0.1),
    "choice of unlisted groups": lambda session: session.top_k("g", k=1, keys="private", epsilon=0.1),
}
"""One ask of every kind that books for itself."""


def failing() -> tuple[Finding, ...]:
    """Check every kind of ask on a file whose rows were ruined after it was opened.

    The failure is an output, and noise may have been drawn before it: the charge stays. What the caller is told must
    not depend on what the file holds: two ruins that make an engine fail in different ways look the same.
    """
    found: list[Finding] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        for name, ask in ASKS.items():
            one, two = (_ruined(path, ask, fill) for fill in FILLS)
            wrong = list(one.differences(two))
            if one.kind == "Answer" or one.kind.startswith("unexpected"):
                wrong.append(f"a table that cannot be read came to {one.kind}: {one.words}")
            if one.spent == "0":
                wrong.append("it failed after the charge, and cost nothing")
            if str(path.parent) in one.words:
                wrong.append(f"the words are the engine's: {one.words}")
            found += [Finding("failing", name, what) for what in wrong]
    return tuple(found)


def _ruined(path: Path, ask: Callable[[Session], Any], fill: int) -> Outcome:
    """Return what comes of an ask about a file whose rows are overwritten once it is open."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"u": range(ROWS), "g": [row % 2 for row in range(ROWS)], "x": [0.5] * ROWS})
    pq.write_table(table, path)
    budget = Budget(mu=10, delta=1e-3, keys_delta=1e-4)
    with Session(str(path), unit="u", budget=budget, bounds=Bounds(max_groups=1, max_rows=1)) as session:
        raw, about = path.read_bytes(), path.stat()
        footer = _FOOTER + int.from_bytes(raw[-_FOOTER:-4], "little")
        path.write_bytes(raw[:4] + bytes([fill]) * (len(raw) - footer - 4) + raw[-footer:])
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))  # no public fact tells that it changed
        return asked(session, ask).outcome
