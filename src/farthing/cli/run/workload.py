"""What `farthing workload` does: a file of questions, read, asked and shown."""

from __future__ import annotations

import re
import sys
import tomllib
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from farthing.cli import show
from farthing.cli.failing import in_flags
from farthing.cli.input import config as settings
from farthing.cli.input import typed
from farthing.cli.input.options.question import QuestionOptions
from farthing.cli.input.question import question
from farthing.cli.input.session import opened
from farthing.cli.run.progress import progress
from farthing.errors import DataError, FarthingError, InvalidOption

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from farthing.cli.input.config import Config
    from farthing.cli.input.options.workload import WorkloadOptions
    from farthing.session import Session
    from farthing.sql import Asked
    from farthing.workload import Workload

_NAMED: Final = re.compile(r"^\s*name:\s*(\S+)\s*$")
_UNFIT: Final = 3
_WHOLE: Final = ("max_groups", "max_rows", "found_above")
_REPEATED: Final = ("relative", "absolute", "rank", "keys")
_PRINTED: Final = {"adds_to": str, "whole": bool}
"""Settings of a question that say how `publish` prints it, and their types."""
PUBLICATION: Final = "publication"
"""The table of a .toml file that tells of the publication, and asks nothing."""


@dataclass(frozen=True, slots=True)
class FileQuestion:
    """A question of a file.

    Attributes:
        name: what it is called.
        sql: its text.
        options: its own options of `ask`, as they were typed.
        printed: how `publish` prints it.
    """

    name: str
    sql: str
    options: Mapping[str, Any] = field(default_factory=dict)
    printed: Mapping[str, Any] = field(default_factory=dict)


def workload(file: str, wanted: QuestionOptions, how: WorkloadOptions, config: str | None) -> None:
    """Answer what fits of a file's questions, and show it; exit code 3 where not all did."""
    most = show.MOST_ROWS if sys.stdout.isatty() else None
    if how.rows is not None:
        most = typed.rows(how.rows)
    asked, _ = questions(Path(file))
    chosen = settings.read(config)
    common, price = shared_price(wanted)
    with opened(chosen, allotment=how.allotment) as session:
        items = {each.name: item(each, own_options(each, common), chosen, session)[0] for each in asked}
        with progress() as tick:
            done = session.workload(
                items, order=how.order, strategy=how.strategy, dry_run=how.dry_run, progress=tick, **price
            )
    if how.as_json:
        show.echo_json(done.to_dict())
    else:
        _show(show.console(), done, most, wide=how.wide)
    for error in done.failed.values():
        raise typer.Exit(error.exit_code)
    if not done.complete:
        raise typer.Exit(_UNFIT)


def shared_price(wanted: QuestionOptions) -> tuple[QuestionOptions, dict[str, Any]]:
    """Return the options that every question has, and what all may cost together."""
    price: dict[str, Any] = {
        "cap": None if wanted.cap is None else typed.cap(wanted.cap),
        "max_epsilon": None if wanted.max_epsilon is None else typed.amount("--max-epsilon", wanted.max_epsilon),
    }
    return replace(wanted, cap=None, max_epsilon=None), price


def questions(file: Path) -> tuple[list[FileQuestion], Mapping[str, Any]]:
    """Return the questions of a file, and what it tells of the publication they are for.

    Raises:
        DataError, InvalidOption: it cannot be read.
    """
    problem = ""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = type(error).__name__
    if problem:
        raise DataError(
            "the questions cannot be read",
            rule="a text file in UTF-8",
            got=f"{file}: {problem}",
            next_step="name a .sql or a .toml file",
        )
    told: Mapping[str, Any] = {}
    match file.suffix.lower():
        case ".sql":
            found = [FileQuestion(name, sql) for name, sql in _statements(text)]
        case ".toml":
            found, told = _tables(text)
        case _:
            raise InvalidOption(
                "unknown kind of file", rule=".sql or .toml", got=file.name, next_step="farthing workload report.sql"
            )
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not found:
        raise InvalidOption(
            f"two questions are called {twice[0]!r}" if twice else "no question in the file",
            rule="at least one question, each with a name of its own",
            got=file.name,
            next_step="-- name: zones, above a statement, names it",
        )
    return found, told


def _statements(text: str) -> Iterator[tuple[str, str]]:
    """Give the statements of a SQL text with their names, q1, q2, ... where no comment names them."""
    from sqlglot import TokenType
    from sqlglot.errors import SqlglotError

    from farthing.sql.reader import READER

    tokens = None
    with suppress(SqlglotError, ValueError):
        tokens = list(READER.tokenize(text))
    if tokens is None:
        raise InvalidOption(
            "the file is not SQL",
            rule="SELECT statements with ; between them",
            got="quotes or comments that do not end",
            next_step="close them",
        )
    number, here = 0, []
    for token in [*tokens, None]:
        if token is not None and token.token_type is not TokenType.SEMICOLON:
            here.append(token)
            continue
        if here:
            number += 1
            named = [found[1] for comment in here[0].comments if (found := _NAMED.match(comment))]
            yield (named[-1] if named else f"q{number}"), text[here[0].start : here[-1].end + 1]
        here = []


def _tables(text: str) -> tuple[list[FileQuestion], Mapping[str, Any]]:
    """Return the questions of a TOML text, and what it tells of the publication."""
    problem = ""
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = str(error)
    if problem:
        raise InvalidOption(
            "the file is not TOML", rule="[name], and below it sql = '...'", got=problem, next_step="correct that line"
        )
    told = read.pop(PUBLICATION) if _is_told(read.get(PUBLICATION)) else {}
    found = []
    for name, table in read.items():
        if not isinstance(table, dict) or not isinstance(table.get("sql"), str):
            raise InvalidOption(
                f"{name!r} is not a question",
                rule="a table with sql, and the options of that question",
                got=repr(table)[:80],
                next_step=f"below the line [{name}] write a line sql = 'SELECT COUNT(*) AS n FROM rides'",
            )
        own = {key: value for key, value in table.items() if key != "sql"}
        printed = {key.replace("-", "_"): own.pop(key) for key in list(own) if key.replace("-", "_") in _PRINTED}
        for key, value in printed.items():
            if type(value) is not _PRINTED[key]:
                raise InvalidOption(
                    f"{key} of {name!r} has the wrong type",
                    rule="whole = true, or adds_to = 'the name of a question'",
                    got=repr(value)[:80],
                    next_step="correct the value in the file",
                )
        found.append(FileQuestion(name, table["sql"], own, printed))
    return found, told


def _is_told(table: object) -> bool:
    """Return whether a table of the file tells of the publication: it is one, and asks nothing."""
    return isinstance(table, dict) and "sql" not in table


def own_options(asked: FileQuestion, wanted: QuestionOptions) -> QuestionOptions:
    """Return the options of one question: its own, and the common ones where it has none."""
    own, name = asked.options, asked.name
    known = [field.name for field in fields(QuestionOptions)]
    given: dict[str, Any] = {}
    for key, value in own.items():
        field = key.replace("-", "_")
        if field not in known:
            raise InvalidOption(
                f"unknown option {key!r} of {name!r}",
                rule="the options of ask, without their --",
                got=key,
                next_step=typed.nearest(field, known),
            )
        listed = value if isinstance(value, list) else [value]
        if field in _REPEATED:
            given[field] = [str(each) for each in listed]
        else:
            given[field] = _typed(field, value)
    goals = ("relative", "absolute", "rank", "loss")
    cleared: dict[str, Any] = dict.fromkeys(goals) if any(goal in given for goal in goals) else {}
    return replace(wanted, **(cleared | given))


def _typed(field: str, value: Any) -> Any:
    """Return a value as its option takes it: whole numbers for bounds, texts for the others."""
    plain = isinstance(value, bool) or (field in _WHOLE and isinstance(value, int))
    return value if plain else str(value)


def item(
    asked: FileQuestion, wanted: QuestionOptions, config: Config, session: Session
) -> tuple[dict[str, Any], Asked]:
    """Return one question as a session takes it, and what its text asks; keys that are not its own are left out."""
    try:
        made = question(asked.sql, wanted, config, session)
    except FarthingError as error:
        error.within(f"in question {asked.name!r}")
        raise
    keys = made.where["keys"]
    if isinstance(keys, dict):
        keys = {column: values for column, values in keys.items() if column in made.asked.by} or None
    return {"ask": "sql", "text": asked.sql, **made.where, "keys": keys, **made.how}, made.asked


def _show(out: Console, done: Workload, most: int | None, *, wide: bool) -> None:
    """Print each answer, then what became of all questions, and the price."""
    for name, answer in done.answers.items():
        out.print(f"{name}: {done.plans[name].question}", style="bold")
        show.show_rows(out, answer, show.answer_rows(answer, most), wide=wide)
    heads = (
        ("name", False),
        ("question", False),
        ("state", False),
        ("worst price", True),
        ("paid", True),
        ("met", False),
    )
    show.show_entries(out, heads, [_line(row) for row in done.rows()], wide=wide)
    out.print(done.caption)
    for note in done.notes:
        out.print(in_flags(note))
    if done.allowed is not None:
        out.print(f"allowed {show.money(done.allowed, done.delta)}")
    out.print(f"paid {show.money(done.paid, done.delta)}")
    out.print(f"left {show.money(done.remaining, done.delta)}")


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    """Return one question as cells."""
    paid = "" if row["paid"] is None else f"{row['paid']:.4g}"
    met = "" if row["met"] is None else "yes" if row["met"] else "no"
    return row["name"], row["question"], row["state"], f"{row['worst_price']:.4g}", paid, met
