"""How a CSV file is read: fixed and public, so that no row decides how another one is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import DataError
from farthing.query.schema import Type

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TYPES: Final = (Type.STRING, Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP)
"""The types that a column of a CSV file can be declared to have."""

MAX_LINE: Final = 1 << 20
"""The most bytes of one line; a longer one is dropped."""

WESTERN: Final = "windows-1252"
ENCODINGS: Final = (
    "utf-8", "latin-1", WESTERN, "windows-1250", "windows-1251", "windows-1253", "windows-1254", "windows-1257",
    "iso-8859-2", "iso-8859-5", "iso-8859-7", "iso-8859-9", "iso-8859-15", "cp437", "cp850", "koi8-r", "mac-roman",
)  # fmt: skip
"""How the letters of a CSV file can be written: in UTF-8, or each in one byte, the first 128 as ASCII has them."""

THOUSANDS: Final = ("", ".", ",", "'", " ", "_")
"""What may part the thousands of a number; a space may be one that breaks no line."""

DECLARE: Final = (
    'a column of a CSV is text unless it is declared: farthing.Csv(path, columns={"age": "integer"}), or '
    "[csv.TABLE.columns] in farthing.toml"
)
"""What to do where a number is needed and a column of a CSV is text."""

CSV_NAMES: Final = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
"""How the names of CSV files end."""

_TABBED: Final = (".tsv", ".tsv.gz")


@dataclass(frozen=True, slots=True)
class Csv:
    """A CSV table and how it is read. Nothing about the reading is found out from the rows.

    The first line of each file names the columns, and is public. Every further line is one record by itself: it ends
    with LF or CRLF, and a line break inside quotes is not allowed. A line is dropped, alone, if it has another number
    of fields than the header, a quote out of place (RFC 4180), a NUL, a CR that ends no line, bytes that are not UTF-8,
    or more than 1 MiB. Empty lines are not records. A value that is not of its column's type is NULL.

    Attributes:
        path: a file, or a pattern of files with one header.
        columns: types by column: string, integer, float, boolean, date or timestamp; text where nothing is declared.
        delimiter: one ASCII character; None: a tab for .tsv, else a comma.
        quote: one ASCII character around fields that hold a delimiter or, doubled, itself; "" where there is none.
        null: the texts that are NULL, in every column.
        dates: how dates are written, as strptime has it; None: ISO 8601, 2013-02-28.
        timestamps: the same of timestamps; None: ISO 8601, in UTC unless a zone is written.
        encoding: utf-8, or one in which every byte is a letter, such as latin-1, windows-1252 or iso-8859-15.
        decimal: what stands before the decimals of numbers, "." or ",".
        thousands: what may part the thousands of numbers: ".", ",", "'", " ", "_", or "" where they are not
            parted; None: "." beside a decimal ",", else "".

    Raises:
        DataError: a setting is none of these.

    Guarantee: the rows of a table are a function of each line by itself: adding a line adds at most one row, and
        changes no other.
    Proof: docs/proofs/query.reading.md.
    Assumes: the header lines are public, and every further line belongs to one unit at most.
    Rounds: nothing; numbers are the nearest doubles.

    >>> Csv("rides.csv", columns={"minutes": "float"}).delimiter
    ','
    """

    path: str | Path
    columns: Mapping[str, str] = field(default_factory=dict)
    delimiter: str | None = None
    quote: str = '"'
    null: tuple[str, ...] = ("",)
    dates: str | None = None
    timestamps: str | None = None
    encoding: str = field(default=ENCODINGS[0], repr=False)
    decimal: str = field(default=".", repr=False)
    thousands: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.delimiter is None:
            object.__setattr__(self, "delimiter", "\t" if str(self.path).lower().endswith(_TABBED) else ",")
        _marks(self.delimiter, self.quote)
        if isinstance(self.null, str) or not all(isinstance(word, str) for word in self.null):
            raise _wrong("null", "a list of texts", self.null, 'null=("", "NA")')
        object.__setattr__(self, "null", tuple(self.null))
        for name in ("dates", "timestamps"):
            given = getattr(self, name)
            if given is not None and not (isinstance(given, str) and "%" in given):
                raise _wrong(name, "a format as of strptime", given, f'{name}="%d/%m/%Y"')
        if self.encoding not in ENCODINGS:
            raise _wrong("the encoding", "one of " + ", ".join(ENCODINGS), self.encoding, 'encoding="latin-1"')
        if self.decimal not in (".", ","):
            raise _wrong("the decimal mark", "a point or a comma", self.decimal, 'decimal=","')
        if self.thousands is not None and (self.thousands not in THOUSANDS or self.thousands == self.decimal):
            rule = "a point, comma, apostrophe, space or underscore, or nothing, and not the decimal mark"
            raise _wrong("the mark between thousands", rule, self.thousands, 'thousands=","')
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        for column, kind in self.columns.items():
            if kind not in TYPES:
                raise _wrong(
                    f"the type of {column!r}", "one of " + ", ".join(TYPES), kind, 'columns={"age": "integer"}'
                )

    def type_of(self, column: str) -> Type:
        """Return the declared type of a column; text where nothing is declared."""
        return Type(self.columns.get(column, Type.STRING))

    @property
    def parts(self) -> str:
        """What may part thousands, as it is declared or usual; "" where they are not parted."""
        return ("." if self.decimal == "," else "") if self.thousands is None else self.thousands

    def settings(self) -> dict[str, Any]:
        """Return everything but the path, as plain values that make the same reading."""
        given: dict[str, Any] = {"delimiter": self.delimiter, "quote": self.quote, "null": list(self.null)}
        given |= {name: getattr(self, name) for name in ("dates", "timestamps") if getattr(self, name) is not None}
        given |= {} if self.encoding == ENCODINGS[0] else {"encoding": self.encoding}
        given |= {} if self.decimal == "." else {"decimal": self.decimal}
        given |= {} if self.thousands is None else {"thousands": self.thousands}
        return given | {"columns": {column: str(kind) for column, kind in self.columns.items()}}


def _marks(delimiter: str | None, quote: str) -> None:
    """Refuse delimiters and quotes that a line could not be told apart by."""
    for name, mark in (("delimiter", delimiter), ("quote", quote)):
        if name == "quote" and mark == "":
            continue
        single = isinstance(mark, str) and len(mark) == 1 and mark.isascii()
        if not single or str(mark) in "\r\n\0" or str(mark).isalnum():
            raise _wrong(name, "one ASCII character, no letter, digit, line break or NUL", mark, f'{name}=";"')
    if delimiter == quote:
        raise _wrong("quote", "another character than the delimiter", quote, "quote='\"'")


def _wrong(what: str, rule: str, got: object, example: str) -> DataError:
    """Return the error of a setting."""
    return DataError(f"{what} of a CSV table is wrong", rule=rule, got=repr(got), next_step=f"for example {example}")
