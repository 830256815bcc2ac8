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
        read = (_READ if reading.decimal == "." else _COMMA).get(kind, _READ[kind]).format(column)
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
_THOUSANDS: Final = r"[+-]?([0-9]{{1,3}}([.][0-9]{{3}})+|[0-9]+)"
_POWER: Final = "([eE][+-]?[0-9]{{1,3}})?"
_COMMA: Final = {
    Type.INTEGER: f"CASE WHEN regexp_full_match({{0}}, '{_THOUSANDS}') "
    "THEN TRY_CAST(replace({0}, '.', '') AS BIGINT) END",
    Type.FLOAT: f"CASE WHEN regexp_full_match({{0}}, '({_THOUSANDS}(,[0-9]*)?|[+-]?,[0-9]+){_POWER}') "
    "THEN TRY_CAST(replace(replace({0}, '.', ''), ',', '.') AS DOUBLE) END",
}
"""Numbers with a decimal comma: points part thousands or are none, so that 1.5 is not read as 15."""

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
