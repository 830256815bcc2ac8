"""Records of clean lines: fields by pyarrow, types by casts that cannot fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from farthing.query.reading import Csv


_MARK: Final = b"\xef\xbb\xbf"
"""The byte order mark."""


def fields(data: bytes, reading: Csv, width: int, wanted: Sequence[int]) -> pa.Table:
    """Return the wanted columns of clean lines, as text, named c0, c1, ...; lines of another width are dropped."""
    import pyarrow as pa
    import pyarrow.csv as pc

    names = [f"c{place}" for place in range(width)]
    chosen = [names[place] for place in wanted]
    if not data.strip(b"\r\n"):
        return pa.table({name: pa.array([], pa.string()) for name in chosen})
    if data.startswith(_MARK):
        data = b"\n" + data  # an empty line: pyarrow would drop the mark, which is text like any other inside a file
    return pc.read_csv(
        pa.BufferReader(data),
        pc.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=names),
        pc.ParseOptions(
            delimiter=reading.delimiter,
            quote_char=reading.quote or False,
            double_quote=True,
            escape_char=False,
            newlines_in_values=False,
            ignore_empty_lines=True,
            invalid_row_handler=lambda _: "skip",
        ),
        pc.ConvertOptions(
            check_utf8=False,  # `lines.clean` has seen to it
            column_types=dict.fromkeys(names, pa.string()),
            null_values=list(reading.null),
            strings_can_be_null=bool(reading.null),
            quoted_strings_can_be_null=True,
            include_columns=chosen,
        ),
    )


def arrow_types() -> Mapping[Type, Any]:
    """Return the Arrow type of each type of a column."""
    import pyarrow as pa

    return {
        Type.STRING: pa.string(),
        Type.INTEGER: pa.int64(),
        Type.FLOAT: pa.float64(),
        Type.BOOLEAN: pa.bool_(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
    }


def typed(column: str, name: str, kind: Type, reading: Csv) -> str:
    """Return the SQL that reads a text column in its type, NULL where it has no value of that type, for every text.

    >>> from farthing.query.reading import Csv
    >>> typed("c1", "age", Type.FLOAT, Csv("a.csv"))
    'TRY_CAST(c1 AS DOUBLE) AS "age"'
    """
    native = {Type.DATE: "DATE", Type.TIMESTAMP: "TIMESTAMP"}.get(kind)
    form = {Type.DATE: reading.dates, Type.TIMESTAMP: reading.timestamps}.get(kind)
    if form is None:
        read = _number(column, kind, reading) if kind in _MARKED else _READ[kind].format(column)
    else:
        escaped = form.replace("'", "''")
        read = f"TRY_CAST(TRY_STRPTIME({column}, '{escaped}') AS {native})"
    if native is not None:
        read = _YEARS.format(read, native, "" if kind is Type.DATE else " 23:59:59.999999")
    quoted = name.replace('"', '""')
    return f'{read} AS "{quoted}"'


_READ: Final = {
    Type.STRING: "{}",
    Type.INTEGER: "CASE WHEN NOT CONTAINS({0}, '.') THEN TRY_CAST({0} AS BIGINT) END",
    Type.FLOAT: "TRY_CAST({} AS DOUBLE)",
    Type.BOOLEAN: "TRY_CAST({} AS BOOLEAN)",
    Type.DATE: "TRY_CAST({} AS DATE)",
    Type.TIMESTAMP: "TRY_CAST(TRY_CAST({} AS TIMESTAMP WITH TIME ZONE) AS TIMESTAMP)",
}
_MARKED: Final = (Type.INTEGER, Type.FLOAT)
_SPACES: Final = ("\u00a0", "\u202f", "\u2009")
"""Spaces that break no line, and the thin one, as they part thousands."""


def _number(column: str, kind: Type, reading: Csv) -> str:
    """Return the SQL that reads numbers: with other marks than a decimal point, only what has them in their places.

    So with a decimal comma 1.5 is not read as 15.
    """
    decimal, parts = reading.decimal, reading.parts
    if (decimal, parts) == (".", ""):
        return _READ[kind].format(column)
    text = f"TRIM({column})"
    for space in _SPACES if parts == " " else ():
        text = f"REPLACE({text}, '{space}', ' ')"
    mark, point = parts.replace("'", "''"), f"[{decimal}]"
    whole = "[0-9]+" if not parts else f"([0-9]{{1,3}}([{mark}][0-9]{{3}})+|[0-9]+)"
    form = f"[+-]?{whole}" if kind is Type.INTEGER else \
        f"([+-]?{whole}({point}[0-9]*)?|[+-]?{point}[0-9]+)([eE][+-]?[0-9]{{1,3}})?"  # fmt: skip
    bare = f"REPLACE({text}, '{mark}', '')" if parts else text
    native = "BIGINT" if kind is Type.INTEGER else "DOUBLE"
    pointed = f"REPLACE({bare}, ',', '.')" if decimal == "," else bare
    return f"CASE WHEN regexp_full_match({text}, '{form}') THEN TRY_CAST({pointed} AS {native}) END"


_YEARS: Final = "CASE WHEN {0} BETWEEN {1} '0001-01-01' AND {1} '9999-12-31{2}' THEN {0} END"
"""Days and times of the years that every calendar of a computer has."""


def converter() -> Any:
    """Return a DuckDB that casts text, in UTC, and reads nothing."""
    import duckdb

    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
            "threads": "1",
        },
    )
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute("SET temp_directory = ''")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection
