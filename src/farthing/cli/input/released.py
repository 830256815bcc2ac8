"""The workload of `farthing release`: from options, or from a file of parts that are joined."""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.cli.input.options.release import ReleaseOptions

FACTORS: Final = ("marginals", "prefixes", "ranges", "conditions", "matrix")
"""What a part of a file may be made of; several in one part are multiplied."""

_TERMS: Final = (*FACTORS, "ways", "up_to", "over", "weight")


def workload(wanted: ReleaseOptions) -> Any:
    """Return the workload that was typed: a file's, or the union of all that options name."""
    if wanted.workload is not None:
        others = [wanted.columns, wanted.prefixes, wanted.ranges, wanted.conditions]
        if any(others) or wanted.up_to or wanted.marginals is not None:
            raise _refused(
                "--workload beside other tables",
                "a file holds all of the workload",
                "put them into it",
                wanted.workload,
            )
        return from_file(Path(wanted.workload))
    from farthing.workloads import conditions, marginals, prefixes, ranges

    parts: list[Any] = []
    if wanted.columns is not None:
        parts.append(marginals(_names(wanted.columns), ways=_ways(wanted.marginals), up_to=wanted.up_to))
    elif wanted.marginals is not None or wanted.up_to:
        raise _refused("--marginals without --columns", "tables are over columns", "--columns zone,month", "none")
    parts += [prefixes(*_binned("--prefixes", text)) for text in wanted.prefixes or ()]
    parts += [ranges(*_binned("--ranges", text)) for text in wanted.ranges or ()]
    parts += [conditions(wanted.conditions)] if wanted.conditions else []
    return _joined(parts)


def columns_of(workload: Any) -> tuple[str, ...]:
    """Return the columns whose values are listed."""
    from farthing.workloads import Marginals

    if isinstance(workload, Marginals):
        return workload.columns
    return tuple(axis for axis in workload.axes if isinstance(axis, str))


def from_file(path: Path) -> Any:
    """Return the workload of a file: its [[part]] tables joined, the factors in each multiplied.

    Raises:
        InvalidOption: no such file, no TOML, or a part that is none.
    """
    try:
        told = tomllib.loads(path.read_text())
    except (OSError, ValueError):
        told = {}
    parts = told.get("part")
    if not isinstance(parts, list) or not parts or set(told) != {"part"} or not all(isinstance(p, dict) for p in parts):
        raise _refused(
            "the file has no workload", "TOML of one or more [[part]] tables", "see farthing release --help", path.name
        )
    return _joined([_part(part) for part in parts])


def _part(part: dict[str, Any]) -> Any:
    """Return one part of a file."""
    from farthing.workloads import conditions, marginals, matrix

    unknown = set(part) - set(_TERMS)
    factors: list[Any] = []
    if unknown or not set(part) & set(FACTORS):
        got = ", ".join(sorted(unknown)) or "no factor"
        raise _refused("a part of the file is not understood", ", ".join(_TERMS), "leave it out", got)
    if "marginals" in part:
        factors.append(marginals(part["marginals"], ways=part.get("ways", 2), up_to=bool(part.get("up_to"))))
    if "matrix" in part:
        factors.append(matrix(part["matrix"], over=part.get("over", ())))
    for name in ("prefixes", "ranges"):
        factors += _of_bins(name, part.get(name, {}))
    factors += [conditions(part["conditions"])] if "conditions" in part else []
    if not factors:
        raise _refused("a part of the file is empty", "at least one factor", "add one", ", ".join(part))
    found = factors[0]
    for factor in factors[1:]:
        found = found * factor
    return part["weight"] * found if "weight" in part else found


def _of_bins(name: str, given: Any) -> list[Any]:
    """Return the prefixes or ranges of a part: edges by column."""
    from farthing.workloads import prefixes, ranges

    if not isinstance(given, dict):
        raise _refused(
            f"{name} names no columns", "edges by column", f"{name} = {{minutes = [0, 10, 60]}}", repr(given)[:60]
        )
    return [(prefixes if name == "prefixes" else ranges)(column, edges) for column, edges in given.items()]


def _joined(parts: Sequence[Any]) -> Any:
    """Return the union of workloads; refuse none."""
    if not parts:
        raise _refused(
            "nothing to release", "tables, prefix sums, ranges or conditions", "--columns zone,month", "none"
        )
    found = parts[0]
    for part in parts[1:]:
        found = found + part
    return found


def _names(text: str) -> list[str]:
    """Return names with commas between them."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def _ways(text: str | None) -> int:
    """Return how many columns each table has."""
    ways = "2" if text is None else text.strip()
    if not ways.isdecimal() or not ways.isascii() or len(ways) > 3:
        raise InvalidOption(
            "--marginals is not a number of columns",
            rule="a whole number, 0 for the total",
            got=text,
            next_step="--marginals 2 for all two-way tables",
        )
    return int(ways)


def _binned(option: str, text: str) -> tuple[str, list[float]]:
    """Return a column and its edges, as in minutes=0,10,60."""
    column, _, edges = text.partition("=")
    try:
        found = [float(edge) for edge in edges.split(",")]
    except ValueError:
        found = []
    if not column.strip() or not found:
        raise _refused(f"{option} has no edges", "a column and its edges", f"{option} minutes=0,10,60", text[:60])
    return column.strip(), found


def _refused(what: str, rule: str, next_step: str, got: str) -> InvalidOption:
    """Return the refusal of a workload that was typed."""
    return InvalidOption(what, rule=rule, got=got, next_step=next_step)
