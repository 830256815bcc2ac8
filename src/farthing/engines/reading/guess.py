"""A first proposal of how a CSV file is to be read, for its owner to check; no session guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from farthing.engines.reading.lines import blocks, clean, header
from farthing.engines.reading.records import converter, fields, typed
from farthing.errors import DataError
from farthing.query.reading import Csv
from farthing.query.schema import Type

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

_SAMPLE: Final = 1 << 18
"""How many bytes are looked at."""

_DELIMITERS: Final = (",", ";", "\t", "|")
_SURE: Final = 0.99
"""The share of the values that have to be of a type: a few odd ones do not decide it."""

_NO_VALUES: Final = ("NA", "N/A", "NULL", "null", "NaN", "nan", "None", "\\N", "-", "?")
_WHOLE: Final = r"^[+-]?(0|[1-9][0-9]{0,17})$"
_FORMS: Final = (
    (Type.FLOAT, r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"),
    (Type.BOOLEAN, r"^(?i:true|false)$"),
    (Type.DATE, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
    (Type.TIMESTAMP, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9:]+)?$"),
)
_DATES: Final = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y")


def guess(path: str | Path, file: str) -> Csv:
    """Return how a CSV file seems to be written, by its header and its first quarter of a megabyte.

    Numbers with leading zeros are text, as codes are; so are days of which day or month might come first. What it
    returns depends on rows: show it to the owner alone, who makes it public by keeping it.

    Args:
        path: the table as its owner names it, a file or a pattern.
        file: its first file.
    """
    block = next(blocks(file), b"")
    block = block[: block.rfind(b"\n", 0, _SAMPLE) + 1] or block
    found = [_split(path, delimiter, file, block) for delimiter in _DELIMITERS]
    reading, names, texts = max(found, key=lambda each: (len(each[1]) > 1, each[2].num_rows, len(each[1])))
    if not texts.num_rows:
        return reading
    dates = next((form for form in _DATES if any(_only(column, form) for column in texts.columns)), None)
    columns = {name: str(_type(texts.column(place), dates)) for place, name in enumerate(names)}
    return Csv(path, columns=columns, delimiter=reading.delimiter, dates=dates)


def _split(path: str | Path, delimiter: str, file: str, block: bytes) -> tuple[Csv, tuple[str, ...], pa.Table]:
    """Return the reading with a delimiter, the names, and the fields of a block."""
    from farthing.engines.reading.source import names_of

    reading = Csv(path, delimiter=delimiter)
    try:
        names = names_of(file, header(file), reading)
    except DataError:
        if delimiter == _DELIMITERS[0]:
            raise
        names = ()
    width = max(len(names), 1)
    return reading, names, fields(clean(block, reading.quote, delimiter), reading, width, range(width))


def _values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the texts of a column that stand for a value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = column.drop_null()
    return texts.filter(pc.invert(pc.is_in(texts, pa.array(_NO_VALUES))))


def _type(column: pa.ChunkedArray, dates: str | None) -> Type:
    """Return the type that nearly all values of a column have."""
    import pyarrow.compute as pc

    values = _values(column)
    least = _SURE * len(values)
    kind = next((kind for kind, form in _FORMS if len(values) and _matching(values, form) >= least), Type.STRING)
    if kind is Type.FLOAT and not pc.any(pc.match_substring_regex(values, r"[.eE]")).as_py():
        return Type.INTEGER if _matching(values, _WHOLE) >= least else Type.STRING
    if dates is not None and (kind is Type.DATE or len(values)) and kind in {Type.DATE, Type.STRING}:
        return Type.DATE if _only(column, dates) else Type.STRING
    return kind


def _matching(values: pa.ChunkedArray, form: str) -> int:
    """Return how many texts have a form."""
    import pyarrow.compute as pc

    return int(pc.sum(pc.match_substring_regex(values, form)).as_py() or 0)


def _only(column: pa.ChunkedArray, form: str) -> bool:
    """Return whether nearly all values of a column are dates of a form, and not of its twin."""
    twins = [other for other in _DATES if set(other) == set(form) and other[2] == form[2]]
    values = _values(column)
    kept = [other for other in twins if len(values) and _parsed(values, other) >= _SURE * len(values)]
    return kept == [form]


def _parsed(values: pa.ChunkedArray, form: str) -> int:
    """Return how many texts are dates of a form."""
    import pyarrow as pa

    connection = converter()
    try:
        connection.register("lines", pa.table({"c": values}))
        sql = typed("c", "day", Type.DATE, Csv("", dates=form))
        return int(connection.execute(f"SELECT COUNT(day) FROM (SELECT {sql} FROM lines)").fetchone()[0])
    finally:
        connection.close()
