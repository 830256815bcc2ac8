"""What `farthing ask` does: answers one question, and shows the answer."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from farthing.cli import show
from farthing.cli.failing import in_flags
from farthing.cli.input import config as settings
from farthing.cli.input import typed
from farthing.cli.input.charts import chart_path
from farthing.cli.input.question import question
from farthing.cli.input.session import opened, read_files
from farthing.cli.repeats import KeptRepeats, recorded
from farthing.cli.run.plan import refuse_paid_plan, tell_plan
from farthing.cli.run.progress import progress
from farthing.errors import FarthingError, InvalidOption, OutOfReach, TargetMissed
from farthing.urls import is_address

if TYPE_CHECKING:
    from pathlib import Path

    from farthing.cli.input.options.ask import AskOptions
    from farthing.cli.input.options.question import QuestionOptions
    from farthing.cli.input.question import TypedQuestion
    from farthing.release import Answer
    from farthing.session import Session


def ask(sql: str, wanted: QuestionOptions, output: AskOptions, config: str | None) -> None:
    """Answer a question and show it; show the plan of an EXPLAIN."""
    most, chart = _checked(output)
    watched = KeptRepeats.begun()
    watched.watch([settings.find(config)])
    chosen = settings.read(config)
    read = read_files(chosen, wanted.keys or ())
    watched.books = None if isinstance(chosen.ledger_place, str) or any(map(is_address, read)) else chosen.ledger_place
    watched.watch(read)
    with opened(chosen, allotment=output.allotment) as session:
        made = question(sql, wanted, chosen, session)
        _refuse_misfit(output, made)
        if made.asked.explain:
            refuse_paid_plan(wanted)
            tell_plan(session.plan(sql, **made.where, **made.how), as_json=output.as_json)
            return
        shown = AnswerShape(output, most, chart, ordered=bool(made.asked.aftermath.order))
        if not watched.renewed:
            _answer(sql, made, shown, session)
        again = _again(sql, made, shown, watched, session)
    watched.keep(*again)


def _answer(sql: str, made: TypedQuestion, shown: AnswerShape, session: Session) -> None:
    """Ask, pay, and show the answer."""
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
        if not shown.output.as_json:  # it was paid for: show it, then say what it missed
            shown.present(missed.answer)
        raise
    shown.present(answer)


def _again(
    sql: str, made: TypedQuestion, shown: AnswerShape, watched: KeptRepeats, session: Session
) -> tuple[bytes, bytes, str | None]:
    """Return what the same command would print now, where that is free and all that it does; and for which books."""
    if watched.running is None or shown.draws:
        return b"", b"", None
    with suppress(FarthingError):
        before = watched.witness
        plan = session.plan(sql, **made.where, **made.how)
        if not plan.worst_price:
            answer = session.sql(sql, **made.where, **made.how, at_most=plan.worst_price)
            watched.rows = answer.to_arrow().num_rows
            with recorded() as (out, err):
                shown.present(answer)
            return out.getvalue(), err.getvalue(), before
    return b"", b"", None


def _checked(output: AskOptions) -> tuple[int | None, Path | None]:
    """Return the most rows to show and the chart's path; refuse what cannot be done, before anything is paid."""
    if output.as_json and output.as_csv:
        raise InvalidOption("--json and --csv were both given", rule="one format on stdout", next_step="drop one")
    if output.column is not None and output.chart is None and output.trace_chart is None:
        raise InvalidOption(
            "--column without --chart",
            rule="it names the column that is drawn",
            got=output.column,
            next_step="add --chart answer.svg, or drop it",
        )
    most = show.MOST_ROWS if sys.stdout.isatty() else None
    if output.rows is not None:
        most = typed.rows(output.rows)
    chart_path(output.trace_chart)
    return most, chart_path(output.chart)


def _refuse_misfit(output: AskOptions, made: TypedQuestion) -> None:
    """Refuse to draw a column that the answer will not have, or to show a plan as rows."""
    names = [each.name for each in made.asked.outputs]
    if output.column is not None and output.column not in names:
        raise InvalidOption(
            "--column names no column of the answer",
            rule="a chart shows one aggregate",
            got=output.column,
            next_step=typed.nearest(output.column, names),
        )
    given = {
        "--csv": output.as_csv,
        "--chart": output.chart is not None,
        "--trace": output.trace,
        "--trace-chart": output.trace_chart is not None,
    }
    if made.asked.explain and any(given.values()):
        raise InvalidOption(
            "EXPLAIN has no rows to write or draw",
            rule="it shows the price and asks nothing",
            got=next(name for name, there in given.items() if there),
            next_step="drop EXPLAIN, or that option",
        )


def _on_terminal() -> bool:
    """Return whether somebody is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _paid_anyway(refused: OutOfReach) -> bool:
    """Ask, on a terminal, whether to pay for a target that no group can meet; elsewhere it is not paid."""
    if not _on_terminal():
        return False
    show.say(f"{refused.what}: {in_flags(refused.got)}; {in_flags(refused.next_step)}", err=True)
    return typer.confirm("pay the cap nevertheless, and see what accuracy that gives?", default=False, err=True)


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """How an answer is shown, checked.

    Attributes:
        output: as it was typed.
        most: the most rows of a table, None for all.
        chart: where a chart goes, or None.
        ordered: whether the question gave its rows an order.
    """

    output: AskOptions
    most: int | None
    chart: Path | None
    ordered: bool

    @property
    def draws(self) -> bool:
        """Whether pictures are written, too."""
        return self.chart is not None or self.output.trace_chart is not None

    def present(self, answer: Answer) -> None:
        """Show an answer in the shape that was asked for, then draw it."""
        if self.output.as_json:
            show.echo_json(answer.to_dict() | ({"trace": traced(answer)} if self.output.trace else {}))
        elif self.output.as_csv:
            _csv(answer)
        else:
            show.show_answer(show.console(), answer, self.most, ordered=self.ordered, wide=self.output.wide)
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
