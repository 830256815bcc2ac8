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
from typing import TYPE_CHECKING

import pyarrow as pa

import farthing
from farthing import audit
from farthing.audit import corpus, itself

if TYPE_CHECKING:
    from collections.abc import Callable

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
                connection = session._context.engine._connection
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


def numbers() -> tuple[str, ...]:
    """Ask for sums whose truth is known, in ranges of all sizes: told within six half-widths."""
    found = []
    for power in (-40, 0, 12, 40):
        most = 10.0**power
        with farthing.Session(pa.table({"x": [most / 2] * 20_000}), budget=farthing.Budget(mu=4)) as session:
            answer = session.sum("x", lower=0, upper=most, relative=0.05)
        if not abs(answer.value - most * 10_000) < 3 * most * 1_000:
            found.append(f"a sum of {most * 10_000:g} is told as {answer.value:g}")
    return tuple(found)


def repeated() -> tuple[str, ...]:
    """Add up many equal values: a group's total is within a step of them, however many they are."""
    from farthing.engines import open_table
    from farthing.privacy.unit import PrivacyUnit
    from farthing.query import Bounds, Query
    from farthing.query.aggregates import Output, Sum
    from farthing.query.expressions import Column

    query = Query("data", (), None, None, (Output("s", Sum(Column("x"), 0, 100)),), PrivacyUnit(), Bounds())
    engine = open_table(pa.table({"x": [19.95] * 200_000}), name="data")
    off = float(engine.measure(query, 1)[0, 0]) * query.measures[0].step - 19.95 * 200_000
    return (f"off by {off:g}",) if abs(off) > query.measures[0].step else ()


def edges() -> tuple[str, ...]:
    """Hold numbers to their last digit: leaves of a quantile, whole scores, the promise of a relative error."""
    import numpy as np

    from farthing.accuracy.ranks import Asked
    from farthing.engines.contributions import leaf
    from farthing.mechanisms.relative import LinearLog
    from farthing.mechanisms.stopping import score_told
    from farthing.query.aggregates import Quantile
    from farthing.query.expressions import Column

    place = np.array([leaf(Quantile(Column("x"), 0.5, -26.63, 7.29), -9.67)])
    low, high = Asked(0.5, -26.63, 7.29).ends(place, place)
    sizes = np.geomspace(1, 1e6, 2_000)
    share = LinearLog.for_relative_error(0.6, x0=1, metric="mae").expected_error(sizes, "mae") / (0.6 * sizes)
    found = {
        "a value outside of its leaf": not low[0] <= -9.67 <= high[0],
        "a score that lost a unit": score_told(2**53 + 1) != 2**53 + 1,
        "an error above its promise": share.max() > 1,
    }
    return tuple(what for what, wrong in found.items() if wrong)


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
    "numbers": numbers,
    "repeated": repeated,
    "edges": edges,
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
