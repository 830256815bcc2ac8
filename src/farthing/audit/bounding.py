"""Bounded truths beside what is told at hardly any noise: clamps, cuts, missing values, parts, predicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.audit.findings import Finding
from farthing.privacy.budget import Budget
from farthing.privacy.loss import Gdp
from farthing.query import Bounds
from farthing.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

UNITS: Final = 300
WIDE: Final = 8
"""Groups of a unit, of which two may count."""

DEEP: Final = 12
"""Rows of a unit in a group, of which three may count."""

AT_MOST: Final = Bounds(max_groups=2, max_rows=3)
FINE: Final[dict[str, Any]] = {"loss": Gdp(6)}
LEDGERS: Final = 4
SAME: Final = 3.0
"""How far noise moves the sizes of groups of the same units: some nine of its standard deviations."""

FAR: Final = 12.0
"""Standard deviations that no noise strays."""


def bounded() -> tuple[Finding, ...]:
    """Check that what a unit adds is bounded as declared, by questions whose noise is far below the difference.

    Units in too many groups, rows or parts add what is allowed; values beyond their clamps add the clamp; NULL and NaN
    add nothing; rows that a predicate leaves out do not count; which groups of a unit count is a secret of each ledger.
    """
    checks: tuple[Callable[[], str], ...] = (
        groups_are_cut,
        rows_are_cut,
        different_values_are_cut,
        values_are_clamped,
        squares_are_centred,
        missing_values_add_nothing,
        quantiles_are_cut,
        predicates_hold,
        a_unit_is_in_one_part,
        a_unit_is_in_one_part_beside_tables,
        ledgers_cut_by_keys_of_their_own,
    )
    return tuple(Finding("bounded", check.__name__, what) for check in checks if (what := check()))


def groups_are_cut() -> str:
    """Units in eight groups count in two."""
    with _heavy() as session:
        told = float(np.sum(session.count_distinct("g", keys={"g": range(WIDE)}, **FINE).value))
    return _far(told, 2 * UNITS, 0.5 * WIDE)


def rows_are_cut() -> str:
    """Units of twelve rows in a group count three of them there."""
    with _heavy() as session:
        told = float(np.sum(session.count("g", keys={"g": range(WIDE)}, **FINE).value))
        added = float(np.sum(session.sum("x", lower=0, upper=1, by="g", keys={"g": range(WIDE)}, **FINE).value))
    return _far(told, 6 * UNITS, 3 * WIDE) or _far(added, 6 * UNITS, 3 * WIDE)


def different_values_are_cut() -> str:
    """Of twelve different values of a unit in a group three count there; a value that all units have counts once."""
    with _heavy() as session:
        by: dict[str, Any] = {"by": "g", "keys": {"g": range(WIDE)}, **FINE}
        told = float(np.sum(session.count_distinct(value="n", **by).value))
        shared = float(np.sum(session.count_distinct(value="x", **by).value))
    return _far(told, 6 * UNITS, 3 * WIDE) or _far(shared, WIDE, 3 * WIDE)


def values_are_clamped() -> str:
    """Values beyond the clamps add the clamp, infinities too."""
    with _rows([1e9, float("inf"), -1e9, float("-inf")] * UNITS) as session:
        told = float(session.sum("x", lower=-10, upper=20, **FINE).value)
        mean = float(session.mean("x", lower=-10, upper=20, **FINE).value)
    return _far(told, 2 * UNITS * 20 - 2 * UNITS * 10, 20) or _far(mean, 5.0, 1.0)


def squares_are_centred() -> str:
    """Squares are less half of the largest, so that a row adds no more than that: equal values have no variance."""
    with _rows([5.0] * UNITS) as session:
        return _far(float(session.variance("x", lower=-10, upper=20, **FINE).value), 0.0, 1.0)


def missing_values_add_nothing() -> str:
    """NULL and NaN are not values: they add neither a bound nor themselves, and are not counted."""
    with _rows([None, float("nan")] * UNITS + [60.0]) as session:
        told = float(session.sum("x", lower=50, upper=100, **FINE).value)
        there = float(session.count(value="x", **FINE).value)
        mean = session.mean("x", lower=50, upper=100, **FINE)
    if not np.isfinite(told) or not np.isfinite(float(mean.value)):
        return f"{told}, {mean.value}"
    return _far(told, 60, 100) or _far(there, 1, 1)


def quantiles_are_cut() -> str:
    """A unit of many rows has three of them in a quantile."""
    rows = {"u": [*range(UNITS), *[UNITS] * 100 * UNITS], "g": 0, "x": [*[0.0] * UNITS, *[1.0] * 100 * UNITS]}
    with _session(rows) as session:
        told = float(session.quantile("x", 0.5, lower=0, upper=1, **FINE).value)
    return "" if told < 0.5 else f"one unit of many rows has moved a median from 0 to {told:.3g}"


def predicates_hold() -> str:
    """Rows that a predicate leaves out do not count, and each predicate is a question of its own."""
    with _rows([float(place) for place in range(UNITS)]) as session:
        told = [float(session.count(where=f"x < {most}", **FINE).value) for most in (0, 100, 200)]
        part = session.partition(by="k", keys=[0, 1])
        halves = [float(part[key].count(where="x < 100", loss=Gdp(2)).value) for key in (0, 1)]
    wrong = (_far(value, truth, 3) for value, truth in zip([*told, *halves], (0, 100, 200, 50, 50), strict=True))
    return next(filter(None, wrong), "")


def a_unit_is_in_one_part() -> str:
    """A unit with rows in two parts counts in one of them only, where both are charged as one."""
    table = {"u": [*range(UNITS), *range(UNITS)], "g": [*[0] * UNITS, *[1] * UNITS], "x": 0.5}
    with _session(table) as session:
        parts = session.partition(by="g", keys=[0, 1])
        told = sum(float(part.count_distinct(**FINE).value) for part in parts.values())
    return _far(told, UNITS, 2)


def a_unit_is_in_one_part_beside_tables() -> str:
    """The same where each part is asked beside a public table that drops the rows of all others."""
    import pyarrow as pa

    table = {"u": [*range(UNITS)] * WIDE, "g": np.repeat(np.arange(WIDE), UNITS), "x": 0.5}
    beside = {f"only{place}": pa.table({"id": [place]}) for place in range(WIDE)}
    with _session(table, beside) as session:
        told = 0.0
        for place, part in session.partition(by="g", keys=range(WIDE)).items():
            text = f"SELECT COUNT(DISTINCT t.u) AS n FROM data t JOIN only{place} o ON t.g = o.id"
            told += float(part.sql(text, **FINE).value)
    return _far(told, UNITS, 2 * WIDE)


def ledgers_cut_by_keys_of_their_own() -> str:
    """Which groups of a unit count is chosen by a hash with a key of each ledger: nobody knows it beforehand."""
    told = []
    for _ in range(LEDGERS):
        with _heavy() as session:
            told.append(np.asarray(session.count_distinct("g", keys={"g": range(WIDE)}, **FINE).value))
    apart = float(np.abs(np.stack(told[1:]) - told[0]).max())
    return "" if apart > SAME else "all ledgers keep the same groups of each unit"


def _heavy() -> Session:
    """Open a session on units with twelve rows in each of eight groups, where three in two may count."""
    units = np.repeat(np.arange(UNITS), WIDE * DEEP)
    rows = {"u": units, "g": np.tile(np.repeat(np.arange(WIDE), DEEP), UNITS), "n": np.arange(len(units))}
    return _session(rows | {"x": np.ones(len(units))})


def _session(columns: dict[str, Any], beside: dict[str, Any] | None = None) -> Session:
    """Open a session on units, beside public tables; a column may be one value."""
    import pyarrow as pa

    size = len(columns["u"])
    full = {name: [column] * size if isinstance(column, int | float) else column for name, column in columns.items()}
    return Session(pa.table(full), unit="u", bounds=AT_MOST, budget=Budget(mu=60), public=beside)


def _rows(values: list[float | None]) -> Session:
    """Open a session on rows that are units, with a column k of 0 and 1 in turns."""
    import pyarrow as pa

    table = pa.table({"x": pa.array(values, pa.float64()), "k": [place % 2 for place in range(len(values))]})
    return Session(table, budget=Budget(mu=60))


def _far(told: float, truth: float, sensitivity: float) -> str:
    """Say how far an answer is from its bounded truth, where noise of mu 2 cannot explain it."""
    away = abs(told - truth)
    return "" if away <= FAR * sensitivity / 2 else f"told {told:.6g}, the bounded truth is {truth:.6g}"
