"""The tables of a publication: answers as they are printed, with what has to be said below them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import InvalidOption
from farthing.publication.sums import Member, fitted, joined, nonnegative, whole
from farthing.query import outward
from farthing.tabular import METADATA

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from farthing.release import Answer

    Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TableShape:
    """How the numbers of a table are printed.

    Attributes:
        whole: counts as whole numbers.
        nonnegative: numbers below zero as zero, where the truth is not negative.
        adds_to: the table to whose rows the rows of this one add up; "" for none.
    """

    whole: bool = False
    nonnegative: bool = False
    adds_to: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """An answer that is to be printed.

    Attributes:
        name: what the table is called.
        sql: what was asked.
        answer: the numbers, as they were released.
        shape: how they are printed.
        counts: the columns that hold counts.
        positive: the columns of which the truth is not negative.
        additive: the columns of which parts add up.
    """

    name: str
    sql: str
    answer: Answer
    shape: TableShape
    counts: frozenset[str] = frozenset()
    positive: frozenset[str] = frozenset()
    additive: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class PrintedTable:
    """A table as it is printed.

    Attributes:
        name: what it is called.
        sql: what was asked.
        caption: its promise in one line.
        rows: keys; each number with its interval; met; note.
        footnotes: what has to be said of it.
        confidence: the chance that an interval holds its truth.
        treated: what was done to the released numbers, in words.
    """

    name: str
    sql: str
    caption: str
    rows: pa.Table
    footnotes: tuple[str, ...]
    confidence: float
    treated: tuple[str, ...]


@dataclass(slots=True, eq=False)
class _Numbers:
    """The numbers of one column while they are treated."""

    released: Float64
    lower: Float64
    upper: Float64
    printed: Float64
    said: list[str] = field(default_factory=list)
    noted: dict[str, NDArray[np.bool_]] = field(default_factory=dict)


def printed(sheets: Sequence[Sheet]) -> list[PrintedTable]:
    """Return tables as they are printed: summed up, none below zero and whole where that was asked.

    Raises:
        InvalidOption: a table does not add up to the one it names.
    """
    numbers = {
        (sheet.name, name): _Numbers(cells.value, cells.lower, cells.upper, cells.value)
        for sheet in sheets
        for name, cells in zip(sheet.answer.names, sheet.answer.columns, strict=True)
    }
    _add_up(sheets, numbers)
    for sheet in sheets:
        for name in sheet.answer.names:
            _treated(sheet, name, numbers[sheet.name, name])
    return [_printed(sheet, [numbers[sheet.name, name] for name in sheet.answer.names]) for sheet in sheets]


def forest(sheets: Iterable[tuple[str, TableShape]]) -> None:
    """Refuse tables that add up to one that is not there, in a circle, or to one of another shape.

    Raises:
        InvalidOption: says which.
    """
    shapes = dict(sheets)
    for name, shape in shapes.items():
        above = shape.adds_to
        if above and above not in shapes:
            raise _no_sum(name, above, "adds_to names another question of the file", ", ".join(shapes))
        seen = {name}
        while above:
            if above in seen:
                raise _no_sum(name, above, "tables add up in one direction", "a circle")
            seen.add(above)
            if (shapes[above].whole, shapes[above].nonnegative) != (shape.whole, shape.nonnegative):
                rule = "whole and nonnegative are the same for tables that add up"
                raise _no_sum(name, above, rule, f"they differ between {name!r} and {above!r}")
            above = shapes[above].adds_to


def _add_up(sheets: Sequence[Sheet], numbers: Mapping[tuple[str, str], _Numbers]) -> None:
    """Replace the numbers of tables that are to add up by ones that do."""
    forest((sheet.name, sheet.shape) for sheet in sheets)
    for tree in _trees(sheets):
        for column in dict.fromkeys(name for sheet in tree for name in sheet.answer.names if name in sheet.additive):
            tied = [sheet for sheet in tree if column in sheet.additive]
            tables = {sheet.name: _member(sheet, column, sheets) for sheet in tied}
            found = fitted(tables)
            if tree[0].shape.nonnegative:
                found = nonnegative(tables, found)
            if tree[0].shape.whole and column in tied[0].counts:
                found = whole(tables, found)
            for name, values in found.items():
                _adjusted(column, numbers[name, column], values)


def _trees(sheets: Sequence[Sheet]) -> list[list[Sheet]]:
    """Return the tables that hang together, those to which others add up first among them; none that stands alone."""
    above = {sheet.name: sheet.shape.adds_to for sheet in sheets}
    found: dict[str, list[Sheet]] = {}
    for sheet in sheets:
        top = sheet.name
        while above[top]:
            top = above[top]
        found.setdefault(top, []).append(sheet)
    return [tree for tree in found.values() if len(tree) > 1]


def _adjusted(column: str, mine: _Numbers, values: Float64) -> None:
    """Print numbers that add up in place of those that were released, and say so."""
    most = float(np.abs(values - mine.released).max(initial=0.0))
    mine.printed = values
    mine.said.append(
        f"{column} was adjusted, by at most {most:.4g}, so that tables add up: the nearest numbers that do, each in "
        f"units of its own error. {column}_released is the number as it was released: the target is a promise about "
        "that one, the interval one about the truth"
    )


def _member(sheet: Sheet, column: str, sheets: Sequence[Sheet]) -> Member:
    """Return a column of a table as a part of a forest."""
    cells, above = sheet.answer[column], next((one for one in sheets if one.name == sheet.shape.adds_to), None)
    half = (cells.upper - cells.lower) / 2
    if not (np.isfinite(half).all() and (half > 0).all() and np.isfinite(cells.estimate).all()):
        raise _no_sum(sheet.name, sheet.shape.adds_to, "every number of it was measured", "some were not")
    if above is None:
        return Member(cells.estimate, half**2, "", np.zeros(len(half), dtype=np.int64))
    at = _places(sheet, above)
    if at is None or column not in above.additive:
        rule = "every row belongs to one row there, and every row there has one; both have the column"
        raise _no_sum(sheet.name, above.name, rule, f"column {column!r}")
    return Member(cells.estimate, half**2, above.name, at)


def _places(sheet: Sheet, above: Sheet) -> NDArray[np.int64] | None:
    """Return of which row of the table above each row is a part."""
    if sheet.answer.keys is None:
        return None
    names = [] if above.answer.keys is None else above.answer.keys.column_names
    if not set(names) <= set(sheet.answer.keys.column_names):
        return None
    return joined(_tuples(above, names), _tuples(sheet, names))


def _tuples(sheet: Sheet, names: Sequence[str]) -> list[tuple[object, ...]]:
    """Return the keys of some columns, row by row; () for all rows of none."""
    if not names or sheet.answer.keys is None:
        return [()] * len(sheet.answer.cells.value)
    return list(zip(*(sheet.answer.keys.column(name).to_pylist() for name in names), strict=True))


def _treated(sheet: Sheet, name: str, mine: _Numbers) -> None:
    """Round a column and raise it to zero, as its shape says, and tell what that does."""
    added = bool(mine.said)
    if name in sheet.positive:
        mine.noted["could be none"] = (mine.lower <= 0) & (name in sheet.counts)
    if sheet.shape.nonnegative and name in sheet.positive:
        below = mine.released < 0
        raised = np.maximum(mine.printed, 0.0)
        mine.noted["below zero as released"] = below
        if not added:
            mine.said.append(_bias(name, sheet.answer.confidence, mine, float((raised - mine.printed).sum())))
            mine.printed = raised
        else:
            mine.said.append(
                f"{int(below.sum())} of {len(below)} numbers of {name} were below zero as released; none is now"
            )
        mine.lower, mine.upper = np.maximum(mine.lower, 0.0), np.maximum(mine.upper, 0.0)
    if sheet.shape.whole and name in sheet.counts:
        mine.printed = np.round(mine.printed) + 0.0
        mine.lower, mine.upper = np.floor(mine.lower), np.ceil(mine.upper)
        mine.said.append(f"{name} is rounded to whole numbers, its interval outward")


def _bias(name: str, confidence: float, mine: _Numbers, rise: float) -> str:
    """Return what it does to show numbers below zero as zero: what it did here, and what it does on average."""
    from scipy.special import ndtri

    half = float(((mine.upper - mine.lower) / 2).max(initial=0.0))
    most = half / float(ndtri((1 + confidence) / 2)) / math.sqrt(2 * math.pi)
    return (
        f"{int((mine.released < 0).sum())} of {len(mine.released)} numbers of {name} were below zero and are shown as "
        f"zero, which raises their sum by {rise:.4g}; where the truth is zero, the number shown is too high by about "
        f"{most:.3g} at most, on average"
    )


def _printed(sheet: Sheet, columns: Sequence[_Numbers]) -> PrintedTable:
    """Return a table with its notes."""
    import pyarrow as pa

    answer = sheet.answer
    rows: dict[str, Any] = (
        {} if answer.keys is None else {name: answer.keys.column(name) for name in answer.keys.column_names}
    )
    for name, mine in zip(answer.names, columns, strict=True):
        rows |= {name: mine.printed, f"{name}_lower": mine.lower, f"{name}_upper": mine.upper}
        if not np.array_equal(mine.printed, mine.released):
            rows[f"{name}_released"] = mine.released
    met = np.logical_and.reduce([cells.met for cells in answer.columns])
    rows |= {"met": met, "note": pa.array(_notes(answer, columns), pa.string())}
    said = [line for mine in columns for line in mine.said]
    footnotes = (answer.caption, *said, *_missed(met), _about(answer))
    facts = dict(answer.facts) | {"name": sheet.name, "sql": sheet.sql, "footnotes": list(footnotes)}
    table = pa.table(rows).replace_schema_metadata({METADATA: outward.dumped(facts)})
    return PrintedTable(sheet.name, sheet.sql, answer.caption, table, footnotes, answer.confidence, tuple(said))


def _missed(met: NDArray[np.bool_]) -> list[str]:
    """Return what is said of rows that missed their target."""
    missed = int((~met).sum())
    words = "did not reach the target within the price that was allowed; their intervals hold all the same"
    return [f"{missed:,} of {len(met):,} rows {words}"] if missed else []


def _about(answer: Answer) -> str:
    """Return what the numbers are about, without what was said to the one who asked, and without their files."""
    asker = ("nothing was measured", "nothing more was charged", "a larger cap", "nothing is left", "books in ")
    return "; ".join(part for part in answer.about.split("; ") if not part.startswith(asker))


def _notes(answer: Answer, columns: Sequence[_Numbers]) -> list[str]:
    """Return the note of each row."""
    many = len(answer.names) > 1
    found: list[list[str]] = [[] for _ in answer.cells.value]
    for name, cells, mine in zip(answer.names, answer.columns, columns, strict=True):
        of = f"{name}: " if many else ""
        for words, where in {"target missed": ~cells.met, **mine.noted}.items():
            for row in np.flatnonzero(where):
                found[row].append(of + words)
    return ["; ".join(notes) for notes in found]


def _no_sum(name: str, above: str, rule: str, got: str) -> InvalidOption:
    """Return the refusal of tables that do not add up."""
    return InvalidOption(
        f"{name!r} cannot add up to {above!r}",
        rule=rule,
        got=got,
        next_step="mend adds_to, or leave it out; `farthing release` makes tables that share several totals",
    )
