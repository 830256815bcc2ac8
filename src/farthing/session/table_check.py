"""What the owner of a table should see before a session opens it: what is read, and what bounds and keys would cut.

Everything here is exact and private. It reads rows as they are, charges nothing and protects nobody: it is for who may
see the rows anyway. No session calls it.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from farthing.engines.opening import source_of
from farthing.engines.reading import text
from farthing.engines.reading.left_out import LinesLeftOut, left_out
from farthing.engines.reading.lines import DAMAGED, damaged
from farthing.engines.reading.source import CsvFiles
from farthing.errors import DataError
from farthing.query.reading import Csv
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from farthing.engines.sources import RowSource

_T = TypeVar("_T")

_SHARES: Final = (0.5, 0.95, 0.99, 1.0)
"""Of how many units nothing is cut, where a bound is proposed."""

_BEYOND: Final = 0.01
"""The share of the values that may lie beyond each clamp that is proposed."""

_TYPES: Final = {
    "is_boolean": Type.BOOLEAN,
    "is_integer": Type.INTEGER,
    "is_floating": Type.FLOAT,
    "is_decimal": Type.DECIMAL,
    "is_date": Type.DATE,
    "is_timestamp": Type.TIMESTAMP,
}
"""What a type of Arrow is called here; the rest is text, or has no name."""

MOST_NAMED: Final = 5
"""How many values are named as examples."""


@dataclass(frozen=True, slots=True)
class ColumnCheck:
    """A column: its type, and how many of its rows have a value.

    Attributes:
        name: the column.
        type: the type that is read.
        missing: rows without a value.
        unread: rows of a CSV whose text does not fit the type, and counts as missing.
        examples: a few of these texts.
        least: the least value; None where there is none, or it is text.
        greatest: the greatest one.
        lower: a clamp below which few values lie; None where it is not a number.
        upper: a clamp above which few values lie.
        beyond: the share of the values that these clamps cut.
    """

    name: str
    type: str
    missing: int
    unread: int | None
    examples: tuple[str, ...]
    least: Any
    greatest: Any
    lower: float | None
    upper: float | None
    beyond: float | None


@dataclass(frozen=True, slots=True)
class CutCheck:
    """What a bound for each unit cuts.

    Attributes:
        bound: max_rows or max_groups, with the column that is grouped by.
        units: how many units there are.
        most: (bound, share of the rows or pairs of unit and group that it cuts), from tight to none.
    """

    bound: str
    units: int
    most: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """Keys of a column beside its values.

    Attributes:
        column: the column.
        listed: how many keys are listed.
        without: how many of them no row has.
        examples: a few of these.
        outside: the share of the rows whose value is not listed.
    """

    column: str
    listed: int
    without: int
    examples: tuple[str, ...]
    outside: float


@dataclass(frozen=True, slots=True)
class TableCheck:
    """What was found.

    Attributes:
        reading: how a CSV was read; None for Parquet.
        rows: how many rows were read.
        left_out: the lines of a CSV that do not fit; None for Parquet.
        columns: each column.
        cuts: what bounds for each unit cut, where a unit is named.
        keys: the keys that were given.
    """

    reading: Csv | None
    rows: int
    left_out: LinesLeftOut | None
    columns: tuple[ColumnCheck, ...]
    cuts: tuple[CutCheck, ...]
    keys: tuple[KeyCheck, ...]

    @property
    def dropped(self) -> int:
        """How many lines of a CSV do not fit, and are left out."""
        return 0 if self.left_out is None else self.left_out.dropped

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        parts = {name: [asdict(part) for part in getattr(self, name)] for name in ("columns", "cuts", "keys")}
        reading = None if self.reading is None else self.reading.settings()
        lines, examples = (None, ()) if self.left_out is None else (self.left_out.lines, self.left_out.examples)
        found = {"reading": reading, "rows": self.rows, "lines": lines, "dropped": self.dropped, "examples": examples}
        return {name: _plain(value) for name, value in (found | parts).items()}


def checked(table: str | Csv, *, unit: str | None, keys: Mapping[str, Sequence[Any]]) -> TableCheck:
    """Read a whole table, and say what is in it.

    Args:
        table: a path or pattern of Parquet files, or a CSV with its reading.
        unit: the column that tells units apart; None: each row is one.
        keys: lists of keys by column.

    Raises:
        DataError: it cannot be read, or has no such column.
    """
    return _whole(table, lambda source: _checked(source, unit=unit, keys=keys))


def _checked(source: RowSource, *, unit: str | None, keys: Mapping[str, Sequence[Any]]) -> TableCheck:
    """Return what is in a table."""
    csv = source if isinstance(source, CsvFiles) else None
    found = _csv_columns(csv) if csv is not None else dict(_columns(source))
    for name in (*keys, *(() if unit is None else (unit,))):
        if name not in found:
            raise DataError(
                f"there is no column {name!r}",
                rule="a unit and keys are columns of the table",
                got=", ".join(found),
                next_step="name one of these",
            )
    texts = {} if csv is None else _csv_columns(_as_text(csv))
    rows = len(next(iter(found.values())))
    cuts = (
        ()
        if unit is None
        else (_rows_cut(found[unit]), *(_groups_cut(found[unit], name, found[name]) for name in keys))
    )
    return TableCheck(
        reading=None if csv is None else csv.reading,
        rows=rows,
        left_out=None if csv is None else left_out(csv),
        columns=tuple(_column(name, values, texts.get(name)) for name, values in found.items()),
        cuts=cuts,
        keys=tuple(_keys(name, found[name], listed) for name, listed in keys.items()),
    )


def left_out_of(table: str | Csv) -> LinesLeftOut:
    """Return which lines of a CSV do not fit how it is read.

    Raises:
        DataError: it cannot be read.
    """
    return _whole(table, lambda source: left_out(cast("CsvFiles", source)))  # what a Csv is opened as


def values_of(table: str | Csv, column: str) -> list[Any]:
    """Return the different values of a column of a public table.

    Raises:
        DataError: it cannot be read.
    """

    def values(source: RowSource) -> list[Any]:
        """Return those of an open table."""
        found = _csv_columns(source) if isinstance(source, CsvFiles) else dict(_columns(source))
        return list(found[column].unique().drop_null().to_pylist())

    return _whole(table, values)


def _whole(table: str | Csv, read: Callable[[RowSource], _T]) -> _T:
    """Return what is read of a table; its owner is told where that cannot be read to its end."""
    import pyarrow as pa

    source = source_of(table)
    with suppress(pa.ArrowInvalid, *DAMAGED):
        return read(source)
    raise damaged(table.path if isinstance(table, Csv) else table)


def _as_text(csv: CsvFiles) -> CsvFiles:
    """Return the same files, each column read as text, every text a value that is not declared as none."""
    return replace(csv, reading=replace(csv.reading, columns={}))


def _csv_columns(csv: CsvFiles) -> dict[str, pa.ChunkedArray]:
    """Return the columns of CSV files."""
    read = csv.load(csv.names).read_all()
    return dict(zip(read.schema.names, read.columns, strict=True))


def _columns(source: RowSource) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Give the columns of Parquet files, or of a table that they are files of, each read by itself."""
    names = source.load(None).schema.names if source.scan() is None else text.types(source.files).names
    for name in names:
        yield name, source.load((name,)).read_all().column(name)


def _column(name: str, values: pa.ChunkedArray, texts: pa.ChunkedArray | None) -> ColumnCheck:
    """Return what is told of a column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if pa.types.is_floating(kind):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, kind), values)
    ends = {"min": None, "max": None}
    if number or pa.types.is_temporal(kind):
        ends = {end: value.as_py() for end, value in pc.min_max(values).items()}
    odd = None if texts is None else texts.filter(pc.and_(pc.is_null(values), pc.is_valid(texts)))
    lower, upper, beyond = _clamps(values) if number else (None, None, None)
    return ColumnCheck(
        name=name,
        type=_type(kind),
        missing=values.null_count,
        unread=None if odd is None else len(odd),
        examples=() if odd is None else tuple(odd.unique()[:MOST_NAMED].to_pylist()),
        least=ends["min"],
        greatest=ends["max"],
        lower=lower,
        upper=upper,
        beyond=beyond,
    )


def _type(kind: pa.DataType) -> str:
    """Return the name of a type."""
    import pyarrow as pa

    named = next((str(name) for test, name in _TYPES.items() if getattr(pa.types, test)(kind)), None)
    return named or (str(Type.STRING) if text.is_text(kind) else str(kind))


def _clamps(values: pa.ChunkedArray) -> tuple[float | None, float | None, float | None]:
    """Return round clamps that few values lie beyond, and the share that does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    finite = values.drop_null().cast(pa.float64(), safe=False)
    finite = finite.filter(pc.is_finite(finite))
    if not len(finite):
        return None, None, None
    low, high = pc.quantile(finite, q=[_BEYOND, 1 - _BEYOND]).to_pylist()
    lower, upper = _rounded(low, ROUND_FLOOR), _rounded(high, ROUND_CEILING)
    outside = pc.sum(pc.or_(pc.less(finite, lower), pc.greater(finite, upper))).as_py()
    return lower, upper, outside / len(finite)


def _rounded(value: float, side: str) -> float:
    """Return a number of two digits, on one side.

    >>> _rounded(1234.5, ROUND_CEILING), _rounded(-0.0371, ROUND_FLOOR), _rounded(5e-324, ROUND_FLOOR)
    (1300.0, -0.038, 5e-324)
    """
    return float(Context(prec=2, rounding=side).create_decimal(repr(value)))


def _rows_cut(units: pa.ChunkedArray) -> CutCheck:
    """Return what max_rows cuts, rows without a unit left out."""
    import numpy as np
    import pyarrow.compute as pc

    counts = pc.value_counts(units.drop_null()).field("counts")
    return _cut("max_rows", np.asarray(counts, np.int64))


def _groups_cut(units: pa.ChunkedArray, name: str, groups: pa.ChunkedArray) -> CutCheck:
    """Return what max_groups cuts where rows are grouped by a column."""
    import numpy as np
    import pyarrow as pa

    pairs = pa.table({"unit": units, "group": groups}).group_by(["unit", "group"]).aggregate([]).drop_null()
    counts = pairs.group_by("unit").aggregate([("group", "count")]).column("group_count")
    return _cut(f"max_groups by {name}", np.asarray(counts, np.int64))


def _cut(bound: str, counts: Any) -> CutCheck:
    """Return what bounds cut of so many contributions of each unit."""
    import numpy as np

    if not len(counts):
        return CutCheck(bound, 0, ())
    proposed = sorted({int(most) for most in np.quantile(counts, _SHARES, method="higher")})
    total = int(counts.sum())
    return CutCheck(bound, len(counts), tuple((m, float(np.maximum(counts - m, 0).sum() / total)) for m in proposed))


def _keys(name: str, values: pa.ChunkedArray, listed: Sequence[Any]) -> KeyCheck:
    """Return what is told of the keys of a column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pa.array(list(listed)).cast(values.type)
    without = known.filter(pc.invert(pc.is_in(known, value_set=values.unique())))
    inside = pc.sum(pc.is_in(values, value_set=known)).as_py() or 0
    shown = tuple(map(str, without[:MOST_NAMED].to_pylist()))
    return KeyCheck(name, len(known), len(without), shown, 1 - inside / len(values) if len(values) else 0.0)


def _plain(value: Any) -> Any:
    """Return what JSON holds."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    finite = isinstance(value, float) and math.isfinite(value)
    return value if value is None or finite or isinstance(value, int | str) else str(value)
