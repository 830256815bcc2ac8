"""`farthing ask` and `farthing plan`: one question, answered or priced."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from farthing import charts
from farthing.cli import config as settings
from farthing.cli import options, show
from farthing.cli.opening import Wanted, opened, question
from farthing.errors import InvalidOption, TargetMissed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from farthing.release import Answer
    from farthing.session import Progress


@dataclass(frozen=True, slots=True)
class Output:
    """How an answer is shown, as it was typed."""

    as_json: bool = False
    as_csv: bool = False
    chart: str | None = None
    rows: str | None = None

    def checked(self) -> tuple[int | None, Path | None]:
        """Return the most rows to show and the chart's path; refuse what cannot be done, before anything is paid."""
        if self.as_json and self.as_csv:
            raise InvalidOption("--json and --csv were both given", rule="one shape on stdout", next_step="drop one")
        most = show.MOST_ROWS if sys.stdout.isatty() else None
        if self.rows is not None:
            most = options.rows(self.rows)
        return most, chart_path(self.chart)


def chart_path(chart: str | None) -> Path | None:
    """Return where a chart goes, once it is sure that it can be drawn and written."""
    if chart is None:
        return None
    path = charts.require_format(chart)
    charts.require_charts()
    return path


def ask(sql: str, wanted: Wanted, output: Output, config: str | None) -> None:
    """Answer a question and show it."""
    most, chart = output.checked()
    how = wanted.how()
    chosen = settings.read(config)
    with opened(chosen) as session:
        asked = question(sql, wanted, chosen, session)
        try:
            with progress() as how["progress"]:
                answer = session.sql(sql, **asked, **how)
        except TargetMissed as missed:
            if not output.as_json:  # it was paid for: show it, then say what it missed
                _present(missed.answer, output, most, chart)
            raise
        _present(answer, output, most, chart)


def plan(sql: str, wanted: Wanted, config: str | None, *, as_json: bool) -> None:
    """Price a question and show the plan."""
    how = wanted.how()
    chosen = settings.read(config)
    with opened(chosen) as session:
        made = session.plan(sql, **question(sql, wanted, chosen, session), **how)
    if as_json:
        show.echo_json(made.to_dict())
    else:
        sys.stdout.write(f"{made}\n")


def _present(answer: Answer, output: Output, most: int | None, chart: Path | None) -> None:
    """Show an answer in the shape that was asked for, then draw it."""
    if output.as_json:
        show.echo_json(show.plain(answer))
    elif output.as_csv:
        _csv(answer)
    else:
        show.show_answer(show.console(), answer, most)
    if chart is not None:
        answer.chart(chart)


def _csv(answer: Answer) -> None:
    """Print the rows as CSV on stdout, and the price on stderr."""
    import pyarrow.csv as pc

    sys.stdout.flush()
    pc.write_csv(answer.to_arrow(), sys.stdout.buffer, pc.WriteOptions(quoting_style="needed"))
    sys.stdout.buffer.flush()
    sys.stderr.write(
        f"paid {show.money(answer.paid, answer.delta)}; left {show.money(answer.remaining, answer.delta)}\n"
    )


@contextmanager
def progress() -> Iterator[Callable[[Progress], None] | None]:
    """Give a callback that draws a bar on stderr while groups are refined; None when stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("refining"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("groups, look {task.fields[look]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("refining", total=None, look=0)
        yield lambda seen: bar.update(task, total=seen.groups, completed=seen.done, look=seen.look)
