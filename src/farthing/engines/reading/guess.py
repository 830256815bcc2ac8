"""A first proposal of how a CSV file is to be read, for its owner to check; no session guesses."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from farthing.engines.reading.lines import blocks, clean, header, in_utf8
from farthing.engines.reading.marks import marks_of
from farthing.engines.reading.records import converter, fields, typed
from farthing.errors import DataError
from farthing.query.reading import ENCODINGS, WESTERN, Csv
from farthing.query.schema import Type

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

_SAMPLE: Final = 1 << 18
"""How many bytes are looked at."""

_DELIMITERS: Final = (",", ";", "\t", "|")
_NUMBERS: Final = (Type.INTEGER, Type.FLOAT)
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
_NUMBER: Final = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_FORMS: Final = (
    (Type.FLOAT, _NUMBER),
    (Type.BOOLEAN, r"^(?i:true|false)$"),
    (Type.DATE, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
    (Type.TIMESTAMP, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9:]+)?$"),
)
_PARTS: Final = r"^[0-9]+([./-])[0-9]+[./-][0-9]+$"
"""What every date of those below looks like: three numbers."""
_TIMED: Final = r"^[0-9]+([./-])[0-9]+[./-][0-9]+ [0-9]+:[0-9]{2}(:[0-9]{2})?( ?[AaPp][Mm])?$"
"""The same with a time."""
_LONG: Final = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y")
_SHORT: Final = tuple(form.replace("%Y", "%y") for form in _LONG if not form.startswith("%Y"))
"""With years of two digits."""
_TIMES: Final = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p")


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
    split = [_split(Csv(path, delimiter=delimiter, encoding=encoding), file, block) for delimiter in _DELIMITERS]
    reading, names, texts = max(split, key=lambda each: (len(each[1]) > 1, each[2].num_rows, len(each[1])))
    if not texts.num_rows:
        return reading
    dates, timestamps = _form(texts.columns, Type.DATE), _form(texts.columns, Type.TIMESTAMP)
    marks, doubtful = marks_of([_values(column) for column in texts.columns])
    found = [_type(marks.pointed(_values(column)), dates, timestamps) for column in texts.columns]
    kinds = {name: Type.STRING if place in doubtful and kind in _NUMBERS else kind
             for place, (name, kind) in enumerate(zip(names, found, strict=True))}  # fmt: skip
    null = ("", *_words([column for column, kind in zip(texts.columns, kinds.values(), strict=True)
                         if kind in _NUMBERS]))  # fmt: skip
    columns = {name: str(kind) for name, kind in kinds.items()}
    usual = {"": None, ".": None} if marks.decimal == "," else {"": None}
    thousands = usual.get(marks.thousands, marks.thousands)
    how: dict[str, Any] = {"decimal": marks.decimal, "thousands": thousands, "dates": dates, "timestamps": timestamps}
    return replace(reading, columns=columns, null=null, **how)


def _words(columns: list[pa.ChunkedArray]) -> list[str]:
    """Return the words that stand for no value in columns of numbers."""
    return [word for word in _NO_VALUES if any(word in column.unique().to_pylist() for column in columns)]


def _encoding(file: str) -> str:
    """Return the first encoding in which the whole file is text: in UTF-8, lines with other bytes would be left out."""
    return ENCODINGS[0] if all(map(_is_utf8, chain([header(file)], blocks(file)))) else WESTERN


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

    texts = pc.utf8_trim_whitespace(column.drop_null())
    return texts.filter(pc.invert(pc.is_in(texts, pa.array(_NO_VALUES))))


def _type(values: pa.ChunkedArray, dates: str | None, timestamps: str | None) -> Type:
    """Return the type that nearly all values of a column have."""
    import pyarrow.compute as pc

    least = _SURE * len(values)
    kind = next((kind for kind, form in _FORMS if len(values) and _matching(values, form) >= least), Type.STRING)
    if kind is Type.FLOAT:
        numbers = values.filter(pc.match_substring_regex(values, _NUMBER))
        if not pc.any(pc.match_substring_regex(numbers, r"[.eE]")).as_py():
            return Type.INTEGER if _matching(numbers, _WHOLE) >= least else Type.STRING
    for of, form in ((Type.DATE, dates), (Type.TIMESTAMP, timestamps)):
        if form is not None and len(values) and kind in {of, Type.STRING}:
            read = Type.STRING if kind is of else kind
            kind = of if _only(_forms_of(values, of), form) else read
    return kind


def _matching(values: pa.ChunkedArray, form: str) -> int:
    """Return how many texts have a form."""
    import pyarrow.compute as pc

    return int(pc.sum(pc.match_substring_regex(values, form)).as_py() or 0)


def _only(forms: list[str], form: str) -> bool:
    """Return whether a form is among those of a column, and its twin is not."""
    return [other for other in forms if set(other) == set(form) and other[2] == form[2]] == [form]


def _form(columns: list[pa.ChunkedArray], kind: Type) -> str | None:
    """Return the form of days, or of times, that some column surely has."""
    found = [_forms_of(_values(column), kind) for column in columns]
    return next((form for forms in found for form in forms if _only(forms, form)), None)


def _forms_of(values: pa.ChunkedArray, kind: Type) -> list[str]:
    """Return the forms of days, or of times, that nearly all values of a column have."""
    import pyarrow as pa

    least = _SURE * len(values)
    if not len(values) or _matching(values, _PARTS if kind is Type.DATE else _TIMED) < least:
        return []
    forms = _LONG if _matching(values, r"^[0-9]{4}|[0-9]{4}($| )") >= least else _SHORT
    if kind is Type.TIMESTAMP:
        forms = tuple(f"{form} {time}" for form in forms for time in _TIMES)
    read = [typed("c", f"day{at}", kind, Csv("", dates=form, timestamps=form)) for at, form in enumerate(forms)]
    counted = ", ".join(f"COUNT(day{at})" for at in range(len(forms)))
    connection = converter()
    try:
        connection.register("lines", pa.table({"c": values}))
        found = connection.execute(f"SELECT {counted} FROM (SELECT {', '.join(read)} FROM lines)").fetchone()
    finally:
        connection.close()
    return [form for form, many in zip(forms, found, strict=True) if many >= least]
