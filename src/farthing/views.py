"""How an answer looks: its first rows, as text or in a notebook, with lines below. Released values only."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from farthing.query import outward

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_ROWS: Final = 12
"""How many rows are shown."""


def text(table: pa.Table, *notes: str) -> str:
    """Return the first rows in columns, and the notes below them, each one line."""
    rows = table.slice(0, SHOWN_ROWS).to_pylist()
    cells = [[_cell(cell) for cell in row.values()] for row in rows]
    names = [outward.line(name) for name in table.column_names]
    widths = [max(len(name), *(len(line[i]) for line in cells)) if cells else len(name) for i, name in enumerate(names)]
    lines = ["  ".join(name.rjust(width) for name, width in zip(names, widths, strict=True))]
    lines += ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    if table.num_rows > SHOWN_ROWS:
        lines.append(f"... {table.num_rows - SHOWN_ROWS:,} more rows")
    return "\n".join([*lines, *map(outward.line, notes)])


def html(table: pa.Table, *notes: str) -> str:
    """Return the first rows as a table of HTML, and the notes below it."""
    head = "".join(f"<th>{escape(outward.line(name))}</th>" for name in table.column_names)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:right'>{escape(_cell(cell))}</td>" for cell in row.values()) + "</tr>"
        for row in table.slice(0, SHOWN_ROWS).to_pylist()
    )
    more = table.num_rows - SHOWN_ROWS
    lines = [*([f"... {more:,} more rows"] if more > 0 else []), *notes]
    below = "<br>".join(escape(outward.line(line)) for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{below}</p>"


def _cell(value: object) -> str:
    """Return one cell as text: numbers with few digits, truth values as yes and no."""
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
        case None:
            return "NULL"
        case _:
            return outward.line(str(value))
