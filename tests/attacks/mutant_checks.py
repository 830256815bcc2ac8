"""The checks that mutants are put to: oracles and lanes of the audit by name, and the doors of the engine.

    python tests/attacks/mutant_checks.py books accounts

runs checks in turn on the farthing that is imported, prints one JSON object a check, and stops at the first that fails.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import farthing
from farthing import audit
from farthing.audit import corpus, itself

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

TRIALS = 20_000
CONFIDENCE = 1 - 1e-10

ATTACKS = (
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM glob('{folder}/*')",
    "COPY (SELECT 1) TO '{folder}/leak.csv'",
    "EXPORT DATABASE '{folder}/leak'",
    "ATTACH '{folder}/other.db'",
    "ATTACH '{folder}/other.db' AS other (READ_ONLY)",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SELECT * FROM read_csv('https://127.0.0.1/x.csv')",
    "CREATE PERSISTENT SECRET s (TYPE http)",
    "SET threads = 1",
    "SET GLOBAL memory_limit = '1GB'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET temp_directory = '{folder}'",
    "RESET allowed_paths",
    "COPY (SELECT 1 AS x) TO '{rows}'",
    "SELECT * FROM secret_frame",
)
"""What a locked engine must refuse, past our SQL door."""


def lane(name: str) -> tuple[str, ...]:
    """Run one lane of the audit."""
    (one,) = (each for each in audit.lanes() if each.name == name)
    seen = itself.judged(one, TRIALS, CONFIDENCE)
    return (f"{name}: {seen.parameter} {seen.claimed:.4g} claimed, at least {seen.found:.4g} lost",) * seen.broken


def keys() -> tuple[str, ...]:
    """Ask for the keys of lone units."""
    seen = itself.lone_keys(TRIALS, CONFIDENCE)
    return (f"delta {seen.claimed:.4g} claimed, at least {seen.found:.4g} lost",) * seen.broken


def oracle(check: Callable[[], tuple[audit.Finding, ...]]) -> tuple[str, ...]:
    """Run one oracle of the audit."""
    return tuple(map(str, check()))


def lockdown() -> tuple[str, ...]:
    """Try every door of the engine of a session on a file and of one on a table; return what opened."""
    with tempfile.TemporaryDirectory() as folder:
        rows, file = Path(folder) / "rows.csv", Path(folder) / "secret.csv"
        rows.write_text("x\n1\n2\n")
        file.write_text("x\n1\n2\n")
        opened = []
        for table in (str(rows), pa.table({"x": [1, 2]})):
            with farthing.Session(table, budget=farthing.Budget(mu=1)) as session:
                connection = session._engine._connection
                opened += [
                    text for text in ATTACKS if opens(connection, text.format(folder=folder, file=file, rows=rows))
                ]
        left = sorted(path.name for path in Path(folder).iterdir() if path not in {rows, file})
    return (*opened, *(f"wrote {name}" for name in left))


def opens(connection: object, text: str) -> bool:
    """Tell whether a statement runs on a cursor of a connection, with a table of the process in sight."""
    import duckdb

    secret_frame = pa.table({"x": [1]})
    cursor = connection.cursor()
    try:
        cursor.execute(text).fetchall()
    except duckdb.Error:
        return False
    finally:
        cursor.close()
    return secret_frame is not None


def door() -> tuple[str, ...]:
    """Ask for rows with a receipt that cost nothing."""
    from farthing.errors import LedgerError
    from farthing.privacy.unit import PrivacyUnit
    from farthing.query import Query, counting

    query = Query("data", (), None, None, counting("n"), PrivacyUnit(), farthing.Bounds())
    with farthing.Session(pa.table({"x": [1, 2]}), budget=farthing.Budget(mu=1)) as session:
        free = session._ledger.reserve(increase=0, fresh=0, question="q", version=0, label="q")
        try:
            session._context.engine.measure(query, free)
        except LedgerError:
            return ()
    return ("rows were read for nothing",)


SIZES = (73_913, 4_021, 917)


def shown(frame: FrameType | None) -> bool:
    """Tell whether a local variable of a frame, or of those above, is the exact sizes, or shows them."""
    while frame is not None:
        for value in list(frame.f_locals.values()):
            exact = getattr(getattr(value, "mechanism", value), "truth", value)
            if isinstance(exact, np.ndarray) and exact.ravel().tolist() == list(SIZES):
                return True
        frame = frame.f_back
    return False


def frames() -> tuple[str, ...]:
    """Walk the frames above a callback, and those of an error in the middle of a measurement, for exact numbers."""
    from unittest import mock

    from farthing.mechanisms.gaussian import GaussianMeasurements

    table, found = pa.table({"g": np.repeat(list("abc"), SIZES)}), list[bool]()
    how = {"by": "g", "keys": {"g": list("abc")}, "absolute": 50}
    with farthing.Session(table, budget=farthing.Budget(mu=1)) as session:
        session.count(**how, progress=lambda _: found.append(shown(sys._getframe())))
    with (
        farthing.Session(table, budget=farthing.Budget(mu=1)) as session,
        mock.patch.object(GaussianMeasurements, "unit_for", None),  # fails once the numbers are there
    ):
        try:
            session.count(**how)
        except TypeError as error:
            measured = any(frame.name == "refine" for frame in extract_tb(error.__traceback__))
    return ("exact numbers above a callback",) * any(found) + ("the measurement's frames behind an error",) * measured


CHECKS: dict[str, Callable[[], tuple[str, ...]]] = {
    "forks": partial(oracle, audit.fork_safe),
    "grid": partial(oracle, audit.on_grid),
    "independent": partial(oracle, audit.uncorrelated),
    "books": partial(oracle, audit.books),
    "accounts": partial(oracle, audit.accounts),
    "bounded": partial(oracle, audit.bounded),
    "failing": partial(oracle, audit.failing),
    "corpus": partial(oracle, partial(audit.check_corpus, corpus.SHAPES)),
    "errors": partial(oracle, partial(audit.check_corpus, corpus.ERRORS)),
    "escapes": partial(oracle, partial(audit.check_corpus, corpus.ESCAPES)),
    "keys": keys,
    "lockdown": lockdown,
    "door": door,
    "frames": frames,
    "count": partial(lane, "count, Gaussian noise"),
    "geometric": partial(lane, "count, geometric noise"),
    "asinh": partial(lane, 'count with mechanism="asinh"'),
    "chain": partial(lane, "count, a chain of four looks"),
    "mean": partial(lane, "mean"),
    "two at once": partial(lane, "count and sum at once"),
    "ranks": partial(lane, "quantile by noisy ranks"),
    "exponential": partial(lane, "quantile by the exponential mechanism"),
}


def say(facts: dict[str, object]) -> None:
    """Print a line."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def main(names: list[str]) -> None:
    """Run checks in turn until one fails; an oracle that breaks off has failed as well."""
    say({"farthing": farthing.__file__})
    for name in names:
        begun = time.perf_counter()
        try:
            found = CHECKS[name]()
        except Exception as error:  # noqa: BLE001  # a bug may raise anything
            found = (f"{type(error).__name__}: {error}",)
        seconds = time.perf_counter() - begun
        say({"check": name, "found": [what[:300] for what in found[:3]], "seconds": seconds})
        if found:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
