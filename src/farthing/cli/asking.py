"""`farthing ask` and `farthing plan`: one question, answered or priced."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from farthing import charts
from farthing.cli import config as settings
from farthing.cli import options, show
from farthing.cli.failing import in_flags
from farthing.cli.opening import opened, question
from farthing.errors import InvalidOption, OutOfReach, TargetMissed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from farthing.cli.opening import Question
    from farthing.cli.wanted import Wanted
    from farthing.planning import Plan
    from farthing.release import Answer
    from farthing.session import Progress


@dataclass(frozen=True, slots=True)
class Output:
    """How an answer is shown, as it was typed."""

    as_json: bool = False
    as_csv: bool = False
    chart: str | None = None
    column: str | None = None
    rows: str | None = None
    trace: bool = False
    trace_chart: str | None = None

    def checked(self) -> tuple[int | None, Path | None]:
        """Return the most rows to show and the chart's path; refuse what cannot be done, before anything is paid."""
        if self.as_json and self.as_csv:
            raise InvalidOption("--json and --csv were both given", rule="one shape on stdout", next_step="drop one")
        if self.column is not None and self.chart is None and self.trace_chart is None:
            raise InvalidOption(
                "--column without --chart",
                rule="it names the column that is drawn",
                got=self.column,
                next_step="add --chart answer.svg, or drop it",
            )
        most = show.MOST_ROWS if sys.stdout.isatty() else None
        if self.rows is not None:
            most = options.rows(self.rows)
        chart_path(self.trace_chart)
        return most, chart_path(self.chart)

    def suits(self, made: Question) -> None:
        """Refuse to draw a column that the answer will not have, or to show a plan as rows."""
        names = [output.name for output in made.asked.outputs]
        if self.column is not None and self.column not in names:
            raise InvalidOption(
                "--column names no column of the answer",
                rule="a chart is of one aggregate",
                got=self.column,
                next_step=options.nearest(self.column, names),
            )
        given = {
            "--csv": self.as_csv,
            "--chart": self.chart is not None,
            "--trace": self.trace,
            "--trace-chart": self.trace_chart is not None,
        }
        if made.asked.explain and any(given.values()):
            raise InvalidOption(
                "EXPLAIN has no rows to write or draw",
                rule="it tells the price and asks nothing",
                got=next(name for name, there in given.items() if there),
                next_step="drop EXPLAIN, or that option",
            )


def chart_path(chart: str | None) -> Path | None:
    """Return where a chart goes, once it is sure that it can be drawn and written."""
    if chart is None:
        return None
    path = charts.require_format(chart)
    charts.require_charts()
    return path


def ask(sql: str, wanted: Wanted, output: Output, config: str | None) -> None:
    """Answer a question and show it; show the plan of an EXPLAIN."""
    most, chart = output.checked()
    chosen = settings.read(config)
    with opened(chosen) as session:
        made = question(sql, wanted, chosen, session)
        output.suits(made)
        if made.asked.explain:
            _refuse_paid_plan(wanted)
            _tell_plan(session.plan(sql, **made.where, **made.how), as_json=output.as_json)
            return
        shown = Shown(output, most, chart, ordered=bool(made.asked.aftermath.order))
        try:
            with progress() as tick:
                answer = session.sql(sql, **made.where, **made.how, progress=tick)
        except OutOfReach as refused:
            if not _paid_anyway(refused):
                raise
            anyway = made.how | {"on_miss": "spend"}
            with progress() as tick:
                answer = session.sql(sql, **made.where, **anyway, progress=tick)
        except TargetMissed as missed:
            if not output.as_json:  # it was paid for: show it, then say what it missed
                shown.present(missed.answer)
            raise
        shown.present(answer)


def _on_terminal() -> bool:
    """Return whether somebody is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _paid_anyway(refused: OutOfReach) -> bool:
    """Ask, on a terminal, whether to pay for a target that no group can meet; elsewhere it is not paid."""
    if not _on_terminal():
        return False
    show.say(f"{refused.what}: {in_flags(refused.got)}; {in_flags(refused.next_step)}", err=True)
    return typer.confirm("pay the cap nevertheless, and see what it buys?", default=False, err=True)


def plan(sql: str, wanted: Wanted, config: str | None, *, as_json: bool) -> None:
    """Price a question and show the plan."""
    _refuse_paid_plan(wanted)
    chosen = settings.read(config)
    with opened(chosen) as session:
        made = question(sql, wanted, chosen, session)
        _tell_plan(session.plan(sql, **made.where, **made.how), as_json=as_json)


def _refuse_paid_plan(wanted: Wanted) -> None:
    """Refuse to choose bounds for a plan: that is paid for, and plans are free."""
    if wanted.bounds is not None:
        raise InvalidOption(
            "--bounds auto with a plan",
            rule="a plan is free, and choosing bounds is paid for",
            got=f"--bounds {wanted.bounds}",
            next_step="name the bounds, as in --max-groups 5 --max-rows 20; `farthing bounds` tells what they cut",
        )


def _tell_plan(made: Plan, *, as_json: bool) -> None:
    """Print a plan."""
    if as_json:
        show.echo_json(made.to_dict())
    else:
        told, note, advice = str(made).rpartition("\nnote: ")
        show.say(f"{told}{note}{in_flags(advice) if note else advice}")


@dataclass(frozen=True, slots=True)
class Shown:
    """How an answer is shown, checked.

    Attributes:
        output: as it was typed.
        most: the most rows of a table, None for all.
        chart: where a chart goes, or None.
        ordered: whether the question gave its rows an order.
    """

    output: Output
    most: int | None
    chart: Path | None
    ordered: bool

    def present(self, answer: Answer) -> None:
        """Show an answer in the shape that was asked for, then draw it."""
        if self.output.as_json:
            show.echo_json(show.plain(answer) | ({"trace": traced(answer)} if self.output.trace else {}))
        elif self.output.as_csv:
            _csv(answer)
        else:
            show.show_answer(show.console(), answer, self.most, ordered=self.ordered)
        if self.output.trace and not self.output.as_json:
            show.say(f"\n{answer.trace().text()}", err=self.output.as_csv)
        if self.chart is not None:
            answer.chart(self.chart, column=self.output.column)
        if self.output.trace_chart is not None:
            answer.trace().chart(self.output.trace_chart, column=self.output.column)


def traced(answer: Answer) -> list[dict[str, Any]]:
    """Return every look as plain values; an interval that was not told yet has no ends."""
    rows = answer.trace().rows()
    return [{name: None if value in {math.inf, -math.inf} else value for name, value in row.items()} for row in rows]


def _csv(answer: Answer) -> None:
    """Print the rows as CSV on stdout, and the price on stderr."""
    show.echo_csv(answer.to_arrow())
    paid, left = (show.money(loss, answer.delta) for loss in (answer.paid, answer.remaining))
    show.say(f"paid {paid}; left {left}", err=True)


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
        TextColumn("groups, look {task.fields[look]}{task.fields[closing]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("refining", total=None, look=0, closing="")
        yield lambda seen: bar.update(
            task, total=seen.groups, completed=seen.done, look=seen.look, closing=closing(seen)
        )


def closing(seen: Progress) -> str:
    """Return how near a refinement has come: the group furthest from its target, and what was paid so far.

    >>> from farthing import Gdp, Progress
    >>> closing(Progress(look=3, groups=8, done=2, half_width=412.3, furthest=412.3, target=50.0, paid=Gdp(0.01)))
    ': +/-412 on the way to +/-50, paid mu 0.01'
    """
    if seen.furthest is None or seen.target is None:
        return ""
    paid = "" if seen.paid is None else f", paid {seen.paid.parameter} {seen.paid.value:.3g}"
    return f": +/-{_short(seen.furthest)} on the way to +/-{_short(seen.target)}{paid}"


def _short(width: float) -> str:
    """Return a half-width with three figures."""
    return f"{width:,.0f}" if width >= 100 else f"{width:.3g}"
