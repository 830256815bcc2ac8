"""What leaves as a table, and the one way in which all of it is shown and handed on: text, HTML, Arrow, frames, CSV.

A result says what its rows are (`to_arrow`) and which lines stand below them (`footer`); `Tabular` does the rest.
Released values only. Texts pass `farthing.query.outward`, so that no key gives orders to a terminal, a page or a sheet.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, runtime_checkable

from farthing.errors import FarthingError
from farthing.query import outward

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    import polars as pl
    import pyarrow as pa

METADATA: Final = b"farthing"
"""Under which key of a schema's metadata a table tells of itself, as JSON."""

SHOWN_ROWS: Final = 12
"""How many rows a repr shows of what may have very many."""


class Lines:
    """What is told in lines, not rows: a notebook shows its text as it is.

    >>> class Found(Lines):
    ...     def __repr__(self) -> str:
    ...         return "<found>"
    >>> Found()._repr_html_()
    '<pre>&lt;found&gt;</pre>'
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the notebook's view: the same lines."""
        return f"<pre>{html_text(str(self))}</pre>"


@runtime_checkable
class Tabular(Protocol):
    """A result that is a table. Whoever inherits it writes `to_arrow` and `footer`, and has all else.

    Attributes:
        most_shown: how many rows are shown as text and in notebooks; None for all of them.
        missing: how a missing value is shown.

    >>> import pyarrow as pa
    >>> class Found(Tabular):
    ...     @property
    ...     def footer(self) -> tuple[str, ...]:
    ...         return ("paid Gdp(mu=0.1)",)
    ...     def to_arrow(self) -> pa.Table:
    ...         return pa.table({"zone": ["a", None], "n": [1234.5, 2.0]})
    >>> Found()
    zone      n
    a     1,234
    NULL      2
    paid Gdp(mu=0.1)
    >>> print(Found().to_csv(), end="")
    "zone","n"
    "a",1234.5
    ,2
    """

    __slots__ = ()
    most_shown: ClassVar[int | None] = SHOWN_ROWS
    missing: ClassVar[str] = "NULL"

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the rows: the promise, the price, what the numbers are about."""
        ...

    def to_arrow(self) -> pa.Table:
        """Return the rows."""
        ...

    def shown(self) -> pa.Table:
        """Return the rows as they are shown, where that is less than all that is known of them."""
        return self.to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars data frame.

        Raises:
            FarthingError: Polars is not installed.
        """
        frame = _polars().from_arrow(self.to_arrow())
        made: pl.DataFrame = frame
        return made

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the rows as CSV; with a path write them there, too.

        Texts that a spreadsheet would take for formulas begin with an apostrophe.

        Args:
            path: a file, which is replaced; or None.
        """
        data = csv_bytes(self.to_arrow(), outward.cell)
        if path is not None:
            Path(path).write_bytes(data)
        return data.decode()

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as plain dictionaries, for JSON."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def __repr__(self) -> str:
        return text(self.shown(), *self.footer, most=self.most_shown, missing=self.missing)

    def _repr_html_(self) -> str:
        """Return the notebook's view: the rows, and the lines below them."""
        return html(self.shown(), *self.footer, most=self.most_shown, missing=self.missing)


def text(table: pa.Table, *notes: str, most: int | None = SHOWN_ROWS, missing: str = "NULL") -> str:
    """Return the first rows in columns, numbers to the right, and the notes below them, each one line."""
    names = [outward.line(name) for name in table.column_names]
    cells = _cells(table, most, missing)
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    sides = [str.rjust if right else str.ljust for right in _numeric(table)]
    lines = ["  ".join(side(cell, width) for side, cell, width in zip(sides, line, widths, strict=True)).rstrip()
             for line in (names, *cells)]  # fmt: skip
    return "\n".join([*lines, *_more(table, most), *map(outward.line, notes)])


def html(table: pa.Table, *notes: str, most: int | None = SHOWN_ROWS, missing: str = "NULL") -> str:
    """Return the first rows as a table of HTML, and the notes below it."""
    head = "".join(f"<th>{escape(outward.line(name))}</th>" for name in table.column_names)
    begins = ["<td style='text-align:right'>" if right else "<td>" for right in _numeric(table)]
    body = "".join(
        "<tr>" + "".join(f"{td}{escape(cell)}</td>" for td, cell in zip(begins, line, strict=True)) + "</tr>"
        for line in _cells(table, most, missing)
    )
    below = "<br>".join(escape(outward.line(line)) for line in (*_more(table, most), *notes))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{below}</p>"


def html_text(text: str) -> str:
    """Return other people's text as HTML, which shows it and obeys none of it; it may have several lines.

    >>> html_text("<b>1 & 2</b>")
    '&lt;b&gt;1 &amp; 2&lt;/b&gt;'
    """
    return escape(outward.lines(text))


def csv_bytes(table: pa.Table, guarded: Callable[[str], str]) -> bytes:
    """Return rows as CSV in UTF-8; names, and cells that are not numbers or times, as a guard gives them."""
    import pyarrow as pa
    import pyarrow.csv as pc

    kinds = pa.types
    for place, field in enumerate(table.schema):
        if not (kinds.is_temporal(field.type) or kinds.is_primitive(field.type) or kinds.is_decimal(field.type)):
            texts = [None if value is None else guarded(str(value)) for value in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    sink = pa.BufferOutputStream()
    named = table.rename_columns([guarded(name) for name in table.column_names])
    pc.write_csv(named, sink, pc.WriteOptions(quoting_style="needed"))
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _polars() -> Any:
    """Return Polars, or say how it is installed."""
    from importlib.util import find_spec

    if find_spec("polars") is None:
        raise FarthingError(
            "Polars is not installed",
            next_step="python -m pip install 'farthing[polars]'",
            rule="Polars is an extra",
        )
    import polars as pl

    return pl


def _numeric(table: pa.Table) -> list[bool]:
    """Return which columns stand to the right: all but texts."""
    import pyarrow as pa

    kinds = pa.types
    return [not (kinds.is_string(kind) or kinds.is_large_string(kind)) for kind in table.schema.types]


def _cells(table: pa.Table, most: int | None, missing: str) -> list[list[str]]:
    """Return the rows that are shown, as texts; of columns of one name each has its own."""
    columns = [
        column.slice(0, most).to_pylist() if most is not None else column.to_pylist() for column in table.columns
    ]
    return [[_cell(cell, missing) for cell in line] for line in zip(*columns, strict=True)]


def _more(table: pa.Table, most: int | None) -> list[str]:
    """Return the line that says how many rows are not shown."""
    rest = 0 if most is None else table.num_rows - most
    return [f"... {rest:,} more {'row' if rest == 1 else 'rows'}"] if rest > 0 else []


def _cell(value: object, missing: str) -> str:
    """Return one cell as text: numbers with few digits, truth values as yes and no."""
    match value:
        case None:
            return missing
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
        case _:
            return outward.line(str(value))
