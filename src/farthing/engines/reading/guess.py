"""A first proposal of how a CSV file is to be read, for its owner to check; no session guesses."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from farthing.engines.reading.lines import blocks, clean, header, in_utf8
from farthing.engines.reading.records import converter, fields, typed
from farthing.errors import DataError
from farthing.query.reading import ENCODINGS, Csv
from farthing.query.schema import Type

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

_SAMPLE: Final = 1 << 18
"""How many bytes are looked at."""

_DELIMITERS: Final = (",", ";", "\t", "|")
_SURE: Final = 0.99
"""The share of the values that have to be of a type: a few odd ones do not decide it."""

_NO_VALUES: Final = (
    "NA",
    "N/A",
    "n/a",
    "na",
    "n.a.",
    "k. A.",
    "#N/A",
    "NULL",
    "null",
    "NaN",
    "nan",
    "None",
    "\\N",
    "-",
    "?",
)
_WHOLE: Final = r"^[+-]?(0|[1-9][0-9]{0,17})$"
_FORMS: Final = (
    (Type.FLOAT, r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"),
    (Type.BOOLEAN, r"^(?i:true|false)$"),
    (Type.DATE, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
    (Type.TIMESTAMP, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9:]+)?$"),
)
_PARTS: Final = r"^\s*[0-9]+([./-])[0-9]+[./-][0-9]+\s*$"
"""What every date of those below looks like: three numbers."""
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
    encoding = _encoding(file)
    found = [_split(Csv(path, delimiter=delimiter, encoding=encoding), file, block) for delimiter in _DELIMITERS]
    reading, names, texts = max(found, key=lambda each: (len(each[1]) > 1, each[2].num_rows, len(each[1])))
    if not texts.num_rows:
        return reading
    dated = [_dates_of(column) for column in texts.columns]
    dates = next((form for form in _DATES if any(_only(forms, form) for forms in dated)), None)
    found_by = {mark: [_type(_pointed(column, mark), dates) for column in texts.columns] for mark in (".", ",")}
    decimal = "," if Type.FLOAT in found_by[","] and Type.FLOAT not in found_by["."] else "."
    kinds = dict(zip(names, found_by[decimal], strict=True))
    null = ("", *_words([column for column, kind in zip(texts.columns, kinds.values(), strict=True)
                         if kind in (Type.INTEGER, Type.FLOAT)]))  # fmt: skip
    columns = {name: str(kind) for name, kind in kinds.items()}
    return replace(reading, columns=columns, null=null, dates=dates, decimal=decimal)


def _pointed(column: pa.ChunkedArray, mark: str) -> pa.ChunkedArray:
    """Return the texts of a column with a point before the decimals of numbers, if a comma is written there."""
    import pyarrow.compute as pc

    if mark == ".":
        return column
    number = pc.match_substring_regex(column, r"^[+-]?([0-9]{1,3}([.][0-9]{3})*|[0-9]+)(,[0-9]+)?$")
    return pc.if_else(number, pc.replace_substring(pc.replace_substring(column, ".", ""), ",", "."), column)


def _words(columns: list[pa.ChunkedArray]) -> list[str]:
    """Return the words that stand for no value in columns of numbers."""
    return [word for word in _NO_VALUES if any(word in column.unique().to_pylist() for column in columns)]


def _encoding(file: str) -> str:
    """Return the first encoding in which the whole file is text: in UTF-8, lines with other bytes would be left out."""
    return ENCODINGS[0] if all(map(_is_utf8, chain([header(file)], blocks(file)))) else ENCODINGS[-1]


def _is_utf8(data: bytes) -> bool:
    """Return whether a block of whole lines is UTF-8."""
    with suppress(UnicodeDecodeError):
        data.decode()
        return True
    return False


def _split(reading: Csv, file: str, block: bytes) -> tuple[Csv, tuple[str, ...], pa.Table]:
    """Return a reading, the names, and the fields of a block."""
    from farthing.engines.reading.source import names_of

    delimiter = str(reading.delimiter)
    try:
        names = names_of(file, header(file), reading)
    except DataError:
        if delimiter == _DELIMITERS[0]:
            raise
        names = ()
    width = max(len(names), 1)
    return (
        reading,
        names,
        fields(clean(in_utf8(block, reading.encoding), reading.quote, delimiter), reading, width, range(width)),
    )


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
        return Type.DATE if _only(_dates_of(column), dates) else Type.STRING
    return kind


def _matching(values: pa.ChunkedArray, form: str) -> int:
    """Return how many texts have a form."""
    import pyarrow.compute as pc

    return int(pc.sum(pc.match_substring_regex(values, form)).as_py() or 0)


def _only(forms: list[str], form: str) -> bool:
    """Return whether a form is among those of a column, and its twin is not."""
    return [other for other in forms if set(other) == set(form) and other[2] == form[2]] == [form]


def _dates_of(column: pa.ChunkedArray) -> list[str]:
    """Return the forms of dates that nearly all values of a column have."""
    import pyarrow as pa

    values = _values(column)
    if not len(values) or _matching(values, _PARTS) < _SURE * len(values):
        return []
    read = [typed("c", f"day{at}", Type.DATE, Csv("", dates=form)) for at, form in enumerate(_DATES)]
    counted = ", ".join(f"COUNT(day{at})" for at in range(len(_DATES)))
    connection = converter()
    try:
        connection.register("lines", pa.table({"c": values}))
        found = connection.execute(f"SELECT {counted} FROM (SELECT {', '.join(read)} FROM lines)").fetchone()
    finally:
        connection.close()
    return [form for form, many in zip(_DATES, found, strict=True) if many >= _SURE * len(values)]
