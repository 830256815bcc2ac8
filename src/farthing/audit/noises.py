"""Noise as it leaves: on a public grid, independent from answer to answer, from process to process, and of any seed."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.audit.findings import Finding
from farthing.privacy.budget import Budget
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.privacy.loss import Booked

GROUPS: Final = 5_000
DEVIATIONS: Final = 7.0
"""How many standard deviations a correlation of independent noises may stray: 3e-12 at a single look."""

GRID_LOG2: Final = 30
"""Counts and sums leave as whole multiples of a public grain, no finer than 2^-30 of the range of a value."""

FORKS: Final = 4
FORK_SECONDS: Final = 60.0

_LEDGERS: Final[tuple[tuple[Budget, Booked], ...]] = (
    (Budget(mu=100), Gdp(1)),
    (Budget(rho=100), Zcdp(0.5)),
    (Budget(epsilon=100), Pure(1)),
)

_FORKED: Final = """
import os, sys
import pyarrow as pa
import farthing
def ask():
    session = farthing.Session(pa.table({"k": [0]}), budget=farthing.Budget(mu=10))
    return session.count("k", keys={"k": range(4)}, loss=farthing.Gdp(1)).value.tolist()
ask()
pipes = []
for _ in range(int(sys.argv[1])):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, repr(ask()).encode())
        os._exit(0)
    os.close(write)
    pipes.append(read)
print(ask())
for read in pipes:
    with os.fdopen(read) as end:
        print(end.read())
"""


def on_grid() -> tuple[Finding, ...]:
    """Check that counts and sums leave on one public grid, whatever the truth is.

    Noise that is added in floating point has a fine structure of its own for each truth, which tells it.
    """
    found: list[Finding] = []
    sizes = (0, 1, 2, 3, 1 << 10)
    table = _repeated(sizes)
    keys = {"k": range(len(sizes) * GROUPS // 10)}
    for budget, loss in _LEDGERS:
        with Session(table, budget=budget) as session:
            asked = {
                "COUNT(*)": session.count("k", keys=keys, loss=loss).value,
                "SUM(x) in [0, 4]": session.sum("x", lower=0, upper=4, by="k", keys=keys, loss=loss).value,
            }
        found += [
            Finding("public grid", f"{name}, {loss!r}", "outputs are not multiples of a public grain")
            for name, values in asked.items()
            if not _gridded(values)
        ]
    return tuple(found)


def uncorrelated(
    first: Callable[[], NDArray[np.float64]] | None = None, second: Callable[[], NDArray[np.float64]] | None = None
) -> tuple[Finding, ...]:
    """Check that the noises of two different questions, and of neighbouring groups, do not move together.

    Args:
        first: draws float64[n] noises; by default those of one count in thousands of empty groups.
        second: draws the noises of another question; by default of a different count on the same session.
    """
    if first is None or second is None:
        session = Session(_repeated((0,)), budget=Budget(mu=100))
        keys = {"k": range(GROUPS)}

        def noises(where: str) -> Callable[[], NDArray[np.float64]]:
            """Return how the noises of a count are drawn."""
            return lambda: np.asarray(session.count("k", keys=keys, where=where, loss=Gdp(1)).value)

        first, second = noises("k < -1"), noises("k < -2")
    one, two = _ranks(first()), _ranks(second())
    pairs = {
        "two questions": (one, two),
        "neighbouring groups": (one[:-1], one[1:]),
        "a lag of two": (one[:-2], one[2:]),
    }
    limit = DEVIATIONS / np.sqrt(len(one))
    return tuple(
        Finding("independent noise", name, f"rank correlation {told:.4f}, independent noise stays below {limit:.4f}")
        for name, (left, right) in pairs.items()
        if abs(told := float(np.corrcoef(left, right)[0, 1])) > limit
    )


def unseeded() -> tuple[Finding, ...]:
    """Check that no noise comes twice, also after textbook generators were seeded alike."""
    saved = _states()
    first, second = _after_seeding(), _after_seeding()
    _restore(*saved)
    if np.array_equal(first, second):
        return (Finding("unseeded noise", "COUNT(*) twice", "the same noise came again"),)
    return ()


def fork_safe(workers: int = FORKS) -> tuple[Finding, ...]:
    """Check that processes never share a stream: one asks once, forks, and all of them ask the same; so does another.

    They run on their own. Where processes cannot fork, two that are started apart are compared.
    """
    forks = workers if hasattr(import_module("os"), "fork") else 0
    noises: list[str] = []
    for many in (forks, 0):
        command = [sys.executable, "-W", "ignore", "-c", _FORKED, str(many)]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=FORK_SECONDS, check=False)  # noqa: S603
        except subprocess.TimeoutExpired:
            return (Finding("fork", "COUNT(*) in forked workers", f"no answer within {FORK_SECONDS:g} s"),)
        told = [line for line in ended.stdout.splitlines() if line]
        if ended.returncode or len(told) != many + 1:
            return (Finding("fork", "COUNT(*) in forked workers", f"only {len(told)} of {many + 1} answered"),)
        noises += told
    if len(set(noises)) < len(noises):
        return (Finding("fork", "COUNT(*) in forked workers", "two processes drew the same noise"),)
    return ()


def _repeated(sizes: tuple[int, ...]) -> Any:
    """Return a table with columns k and x where group k has sizes[k % len(sizes)] rows with x = 1."""
    import pyarrow as pa

    each = np.tile(np.asarray(sizes), GROUPS // 10)
    groups = np.repeat(np.arange(len(each)), each) if each.any() else np.zeros(1, np.int64)
    return pa.table({"k": groups, "x": np.ones(len(groups), np.int64)})


def _gridded(values: NDArray[np.float64]) -> bool:
    """Tell whether all are whole multiples of 2^-GRID_LOG2."""
    return bool(np.all(np.mod(np.ldexp(values, GRID_LOG2), 1.0) <= 0))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks, which have bounded moments whatever the noise."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(np.float64)


def _after_seeding() -> NDArray[np.float64]:
    """Return noises drawn after textbook generators were seeded."""
    import_module("random").seed(0)
    import_module("numpy.random").seed(0)
    return _noises()


def _noises() -> NDArray[np.float64]:
    """Return the noises of a few empty groups, from a new session."""
    with Session(_repeated((0,)), budget=Budget(mu=10)) as session:
        values: NDArray[np.float64] = session.count("k", keys={"k": range(-8, -1)}, loss=Gdp(1)).value
    return values


def _states() -> tuple[Any, Any]:
    """Return the states of the textbook generators."""
    return import_module("random").getstate(), import_module("numpy.random").get_state()


def _restore(plain: Any, numpy: Any) -> None:
    """Put the textbook generators back."""
    import_module("random").setstate(plain)
    import_module("numpy.random").set_state(numpy)
