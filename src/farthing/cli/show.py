"""Answers, plans and books as tables for people, and as plain values for machines."""

from __future__ import annotations

import math
import sys
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from farthing.advice import Face, told
from farthing.privacy.words import state
from farthing.query import outward

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from farthing.privacy.loss import Booked
    from farthing.release import Answer

MOST_ROWS: Final = 30
"""How many rows a terminal shows, unless told otherwise."""

_PIPE_WIDTH: Final = 10_000


def console(*, quiet: bool = False, width: int | None = None) -> Console:
    """Return where tables go: stdout, in colour on a terminal, plain and unfolded in a pipe.

    Text is printed as it is, `[red]` too, and what a terminal would act on as an escape.
    """
    from rich.console import Console

    class GuardedConsole(Console):
        """A console whose texts are guarded; its own colours are not text."""

        def render_str(self, text: str, **how: Any) -> Text:
            """Return a text for the terminal."""
            return super().render_str(outward.lines(text), **how)

    out = GuardedConsole(highlight=False, markup=False, emoji=False, quiet=quiet)
    wide = (width or out.width) if out.is_terminal else (width or _PIPE_WIDTH)
    out.width = min(out.width, wide) if out.is_terminal else wide
    return out


def say(text: str, *, err: bool = False) -> None:
    """Print lines of text on stdout or stderr at once, where no table is needed: a program may wait for them."""
    stream = sys.stderr if err else sys.stdout
    stream.write(outward.lines(text) + "\n")
    stream.flush()


def many(number: int, thing: str) -> str:
    """Return how many there are of a thing.

    >>> many(1, "table"), many(1200, "table")
    ('1 table', '1,200 tables')
    """
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def echo_json(value: Any) -> None:
    """Print plain values on stdout, and nothing else."""
    sys.stdout.write(outward.dumped(value, indent=2 if sys.stdout.isatty() else None) + "\n")


def echo_csv(table: pa.Table) -> None:
    """Print rows as CSV on stdout: texts that a spreadsheet would take for formulas begin with an apostrophe."""
    from farthing import tabular

    on_screen = sys.stdout.isatty()

    def guarded(text: str) -> str:
        return outward.cell(outward.line(text) if on_screen else text)

    sys.stdout.flush()
    sys.stdout.buffer.write(tabular.csv_bytes(table, guarded))
    sys.stdout.buffer.flush()


def money(loss: Booked, delta: float) -> str:
    """Return a loss in words.

    >>> from farthing.privacy.loss import Gdp
    >>> money(Gdp(0.25), 1e-6)
    'epsilon 1.061 at delta 1e-06 (mu 0.25)'
    """
    return _words(state(loss, delta), f" at delta {delta:g}")


def short(loss: Booked, delta: float) -> str:
    """Return a loss in words, where delta was said before.

    >>> from farthing.privacy.loss import Gdp
    >>> short(Gdp(0.25), 1e-6)
    'epsilon 1.061 (mu 0.25)'
    """
    return _words(state(loss, delta), "")


def price(facts: dict[str, float]) -> str:
    """Return a loss in words from its plain values."""
    return _words(facts, f" at delta {facts['delta']:g}")


def _words(facts: dict[str, float], at: str) -> str:
    """Return a loss in words: its epsilon, and its own parameter if that is another."""
    own = next(iter(facts))
    return f"epsilon {facts['epsilon']:.4g}" + ("" if own == "epsilon" else f"{at} ({own} {facts[own]:.4g})")


def answer_rows(answer: Answer, most: int | None, *, ordered: bool = False) -> list[int]:
    """Return which rows to show: all in their order; of too many the first of an ORDER BY, or the largest answers."""
    import numpy as np

    groups = len(answer.cells.value)
    if most is None or groups <= most:
        return list(range(groups))
    if ordered:
        return list(range(most))
    return [int(i) for i in np.argsort(-answer.cells.estimate, kind="stable")[:most]]


def answer_table(
    answer: Answer, rows: Sequence[int], shown: Sequence[str] | None = None, *, ending: bool = True
) -> Table:
    """Return rows of an answer as a table: keys, answers with intervals, met or not, what each group paid.

    Args:
        answer: what is shown.
        rows: which of its rows.
        shown: the names of the answer columns, None for all.
        ending: whether what was met and paid stands behind them.
    """
    import pyarrow as pa

    table = _table()
    whole = answer.to_arrow()
    wanted = answer.names if shown is None else shown
    names = [name for name in whole.column_names if name in wanted or _is_key(answer, name)]
    chosen = whole.take(pa.array(rows, pa.int64())).to_pylist()  # there may be none
    digits: dict[str, int] = {}
    for name in names:
        if name not in answer.names:
            table.add_column(name, no_wrap=True)
            continue
        table.add_column(name, justify="right", no_wrap=True)
        table.add_column(f"{answer.confidence_of(name) * 100:.6g}% interval", justify="right", no_wrap=True)
        digits[name] = digits_of(
            [(row[f"{name}_upper"] - row[f"{name}_lower"]) / 2 for row in chosen if row[f"{name}_lower"] is not None]
        )
    if ending:
        table.add_column("met", no_wrap=True)
        table.add_column(f"paid ({answer.paid.parameter})", justify="right", no_wrap=True)
    for place, row in zip(rows, chosen, strict=True):
        cells = [cell for name in names for cell in _cells(row, name, digits.get(name))]
        style = None if row["met"] else "yellow"
        last = (_reached(answer, place), f"{row['paid']:.4g}") if ending else ()
        table.add_row(*cells, *last, style=style)
    return table


def show_rows(out: Console, answer: Answer, rows: Sequence[int], *, wide: bool = False) -> None:
    """Print rows of an answer; where they are wider than a terminal in several tables, each with the keys."""
    whole = answer_table(answer, rows)
    if wide or not out.is_terminal or len(answer.names) == 1 or _width(out, whole) <= out.width:
        _print_whole(out, whole)
        return
    for table in _side_by_side(out, answer, rows):
        _print_whole(out, table)


def _side_by_side(out: Console, answer: Answer, rows: Sequence[int]) -> list[Table]:
    """Return the columns of an answer in as few tables as fit the width."""
    tables: list[Table] = []
    here: list[str] = []
    for name in answer.names:
        if here and _width(out, answer_table(answer, rows, [*here, name], ending=False)) > out.width:
            tables.append(answer_table(answer, rows, here, ending=False))
            here = []
        here.append(name)
    last = answer_table(answer, rows, here)
    if _width(out, last) <= out.width:
        return [*tables, last]
    return [*tables, answer_table(answer, rows, here, ending=False), answer_table(answer, rows, [])]


def _is_key(answer: Answer, name: str) -> bool:
    """Return whether a column of an answer holds keys."""
    return answer.keys is not None and name in answer.keys.column_names


def _cells(row: dict[str, Any], name: str, digits: int | None) -> tuple[str, ...]:
    """Return a key as its cell, or an answer as its cell and that of its interval."""
    if digits is None:
        return ("NULL" if row[name] is None else str(row[name]),)
    low, high = row[f"{name}_lower"], row[f"{name}_upper"]
    if low is None:
        return "NULL", ""
    if row[name] is None:
        return "NULL", f"{number(low, digits)} .. {number(high, digits)}"
    return number(row[name], digits), f"{number(low, digits)} .. {number(high, digits)}"


def _reached(answer: Answer, place: int) -> str:
    """Return whether a group met its targets, and which of several columns did not."""
    missed = [name for name, cells in zip(answer.names, answer.columns, strict=True) if not cells.met[place]]
    if not missed:
        return "yes"
    return "no" if len(answer.names) == 1 else f"no: {', '.join(missed)}"


def show_answer(out: Console, answer: Answer, most: int | None, *, ordered: bool = False, wide: bool = False) -> None:
    """Print an answer: its table, its promise and its price."""
    rows = answer_rows(answer, most, ordered=ordered)
    show_rows(out, answer, rows, wide=wide)
    groups = len(answer.cells.value)
    if len(rows) < groups:
        which = f"first {len(rows):,}" if ordered else f"{len(rows):,} largest"
        out.print(f"the {which} of {groups:,} groups; --rows all shows every one", style="dim")
    out.print(answer.caption)
    out.print(f"paid {money(answer.paid, answer.delta)}")
    out.print(f"left {money(answer.remaining, answer.delta)}")
    out.print(told(answer.about, Face.TERMINAL), style="dim")


def _print_whole(out: Console, table: Table) -> None:
    """Print a table at its own width: on a narrow terminal lines go on below, rather than lose digits."""
    narrow = out.width
    out.width = max(narrow, _width(out, table))
    out.print(table, crop=False)
    out.width = narrow


def _width(out: Console, table: Table) -> int:
    """Return how wide a table is when nothing of it is folded."""
    return out.measure(table, options=out.options.update(max_width=_PIPE_WIDTH)).maximum


def show_entries(
    out: Console, heads: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]], *, wide: bool = False
) -> None:
    """Print a table of texts of which one column, "question", is long: on a narrow terminal on lines of its own.

    Args:
        out: where to.
        heads: title, and whether the column holds numbers.
        rows: the cells.
        wide: show one line a row, however narrow the terminal.
    """
    table = columns_table(heads, rows)
    if wide or not out.is_terminal or _width(out, table) <= out.width:
        _print_whole(out, table)
        return
    long = next(place for place, (title, _) in enumerate(heads) if title == "question")
    short = [place for place in range(len(heads)) if place != long and any(row[place] for row in rows)]
    beside = columns_table([heads[place] for place in short], [[row[place] for place in short] for row in rows])
    lines = _lines(out, beside)
    for line in lines[: -len(rows)]:
        out.print(line)
    for line, row in zip(lines[-len(rows) :], rows, strict=True):
        out.print(line, style="bold")
        out.print(
            "\n".join(wrap(outward.line(row[long]), out.width - 6, initial_indent="   ", subsequent_indent="   "))
        )


def _lines(out: Console, table: Table) -> list[str]:
    """Return a table as plain lines, one a row, without the empty ones around it."""
    from io import StringIO

    from rich.console import Console

    plain = Console(file=StringIO(), width=_PIPE_WIDTH, color_system=None, markup=False, highlight=False, emoji=False)
    with plain.capture() as taken:
        plain.print(table)
    return [line.rstrip()[: max(out.width, 1)] for line in taken.get().splitlines() if line.strip()]


def facts_table(facts: Sequence[tuple[str, str]]) -> Table:
    """Return names and values side by side."""
    table = _table(header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, value)
    return table


def columns_table(heads: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table of texts; a head is a title and whether the column holds numbers."""
    table = _table()
    for title, numeric in heads:
        table.add_column(title, justify="right" if numeric else "left", no_wrap=numeric, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def number(x: float, digits: int) -> str:
    """Return a number with thousands apart, and never a negative zero.

    >>> number(17283.4, 0), number(-0.2, 0)
    ('17,283', '0')
    """
    text = f"{x:,.{digits}f}"
    return text.removeprefix("-") if not text.strip("-0.,") else text


def digits_of(half_widths: Sequence[float]) -> int:
    """Return how many decimals an interval is worth: two figures of the narrowest half-width."""
    least = min((width for width in half_widths if width > 0 and math.isfinite(width)), default=1.0)
    return max(0, min(6, 1 - math.floor(math.log10(least))))


def _table(*, header: bool = True) -> Table:
    """Return an empty table in the one style of the command line."""
    from rich import box
    from rich.table import Table

    class LineTable(Table):
        """A table whose heads and cells each stay one line."""

        def add_column(self, header: Any = "", *more: Any, **how: Any) -> None:
            """Add a column."""
            super().add_column(outward.line(header), *more, **how)

        def add_row(self, *cells: Any, **how: Any) -> None:
            """Add a row of texts."""
            super().add_row(*map(outward.line, cells), **how)

    return LineTable(box=box.SIMPLE_HEAD if header else None, show_header=header, pad_edge=False, header_style="bold")
