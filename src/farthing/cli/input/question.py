"""From options to a question: its keys, its bounds, its target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.cli.input import keys as typed_keys
from farthing.cli.input import typed
from farthing.cli.input.options.question import PRIVATE, QuestionOptions
from farthing.cli.input.session import sources
from farthing.errors import InvalidBounds, InvalidKeys, InvalidOption, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from farthing.cli.input.config import Config
    from farthing.cli.input.keys import Sources
    from farthing.query.bounding import AutoBounds, Bounds
    from farthing.query.expressions import Scalar
    from farthing.query.schema import Schema
    from farthing.session import Session
    from farthing.sql import Asked

BOUNDS: Final = ("max_groups", "max_rows", "lower", "upper")


@dataclass(frozen=True, slots=True)
class TypedQuestion:
    """A question as far as it can be read before anything is asked.

    Attributes:
        asked: what the SQL says.
        where: its keys and bounds, for the session.
        how: its target and price, for the session.
    """

    asked: Asked
    where: dict[str, Any]
    how: Any


def question(sql: str, wanted: QuestionOptions, config: Config, session: Session) -> TypedQuestion:
    """Return a question with the keys and bounds of its options, and for what they leave out the config's."""
    return whole(lambda left: _question(sql, wanted, config, session, left))


def _question(
    sql: str, wanted: QuestionOptions, config: Config, session: Session, left: frozenset[str]
) -> TypedQuestion:
    """Return a question; without checking the parts of which it is known that they are left out."""
    from farthing.query.bounding import Bounds
    from farthing.query.per_unit import one_row
    from farthing.sql import parse

    bounds, unit = question_bounds(wanted, config), None if config.unit == "row" else config.unit
    known = bounds if isinstance(bounds, Bounds) and "clamps" not in left else Bounds(lower=0, upper=1)  # stands in
    asked = parse(
        sql,
        table=config.name,
        schema=schema_of(session),
        tables=tables_of(session),
        public=frozenset(config.public),
        unit=unit,
        bounds=known,
    )
    how = wanted.how(asked, default=bool(config.target), left="target" in left)
    whole = one_row(asked.derived, asked.source, asked.joins, asked.where)
    if isinstance(bounds, Bounds) and "bounds" not in left and not whole:
        given = {name: getattr(asked.options, name) or getattr(bounds, name) for name in ("max_groups", "max_rows")}
        require_bounds(Bounds(**given), config, grouped=bool(asked.by))
    by = {} if "keys" in left else kinds(asked, session, unit)
    findable, expressions = not asked.sets, dict(asked.groupings)
    keys = question_keys(wanted, by, config, session, findable=findable, expressions=expressions)
    return TypedQuestion(asked, {"keys": keys, "bounds": bounds}, how)


def schema_of(session: Session) -> Schema:
    """Return the columns of the protected table."""
    from farthing.query.schema import Schema, Type

    return Schema.of({name: Type(kind) for name, kind in session.schema.items()})


def tables_of(session: Session) -> dict[str, Schema]:
    """Return the columns of the tables that may be joined, by name."""
    from farthing.query.schema import Schema, Type

    return {name: Schema.of({column: Type(kind) for column, kind in columns.items()})
            for name, columns in session.tables.items()}  # fmt: skip


def kinds(asked: Asked, session: Session, unit: str | None) -> dict[str, str]:
    """Return the types of the grouping columns, by the names that their keys have."""
    from farthing.query.expressions import Column, type_of
    from farthing.query.per_unit import columns_of_source, scoped

    known = scoped(schema_of(session), tables_of(session), unit, asked.derived)
    schema = columns_of_source(known, asked.source, asked.joins)
    values = dict(asked.groupings)
    return {name: type_of(values.get(name, Column(name)), schema).value for name in asked.by}


def question_keys(
    wanted: QuestionOptions,
    by: Mapping[str, str],
    config: Config,
    session: Session,
    *,
    findable: bool = True,
    expressions: Mapping[str, Scalar] | None = None,
) -> Any:
    """Return the keys of a question's grouping columns, given with their types; None without such columns.

    Args:
        wanted: the options of the question.
        by: the types of the columns.
        config: the settings, which may list keys too.
        session: what is asked.
        findable: whether the question could find groups privately.
        expressions: what the grouping columns are that the table does not have.
    """
    if findable and wanted.private:
        if not by:
            raise InvalidKeys(
                "--keys private without GROUP BY",
                rule="keys belong to grouping columns",
                next_step="add GROUP BY, or drop it",
            )
        return PRIVATE
    if by and wanted.private:
        raise InvalidKeys(
            "--keys private for many tables at once",
            rule="the values of each column are listed: they are public",
            next_step=f"{_how_to_list(next(iter(by)))}; `farthing ask` finds the groups of one column, at a price",
        )
    from farthing.session.reading.defaults import with_defaults

    given = group_keys(wanted.keys or (), session.schema | dict(by), sources(config, session, Path.cwd()))
    there = sources(config, session, config.folder)

    def listed(column: str, values: Any, kind: str = "") -> Any:
        """Return the keys that the config lists, or says where to find."""
        known = kind or session.schema[column]
        return typed_keys.read(column, values, known, there) if isinstance(values, str) else values

    computed = expressions or {}
    for column, kind in by.items():
        if column in config.keys and column not in given and not (column in computed and column in session.schema):
            given[column] = listed(column, config.keys[column], kind)
    given = with_defaults(given, tuple(by), computed, config.keys, listed=listed, schema=schema_of(session))
    missing = [column for column in by if column not in given]
    if missing:
        found = "; --keys private finds them at a price" if findable else ""
        raise InvalidKeys(
            f"{'GROUP BY ' if findable else ''}{', '.join(missing)} without keys",
            rule="the groups of an answer are public: which ones exist in the data is private",
            next_step=f"{_how_to_list(missing[0])}; or list them under [keys] in farthing.toml{found}",
            missing="keys",
        )
    return given or None


def _how_to_list(column: str) -> str:
    """Return how the keys of a column are written."""
    return f"--keys {column}=A,B,C or --keys {column}=@FILE:COLUMN"


def group_keys(given: Sequence[str], known: Mapping[str, str], places: Sources) -> dict[str, Any]:
    """Return the keys of --keys options, typed as their columns."""
    found: dict[str, Any] = {}
    for option in given:
        column, values = typed_keys.split(option)
        if column in found:
            raise InvalidKeys(
                f"--keys names {column!r} twice",
                next_step="put all values in one option",
                rule="one --keys option a column",
            )
        if column not in known:
            raise InvalidKeys(
                f"keys for {column!r}, which is not a column of the table",
                next_step=typed.nearest(column, known),
                rule="keys are given for columns of the table, or aliases of GROUP BY",
            )
        found[column] = typed_keys.read(column, values, known[column], places)
    return found


def question_bounds(wanted: QuestionOptions, config: Config) -> Bounds | AutoBounds:
    """Return the bounds of a question: those of its options, and for what they leave out the config's; or auto."""
    if wanted.bounds is None:
        return listed_bounds(wanted, config)
    named = [f"--{name.replace('_', '-')}" for name in BOUNDS if getattr(wanted, name) is not None]
    if named:
        raise InvalidOption(
            "--bounds auto and bounds were both given",
            rule="bounds are chosen, or they are named",
            got=", ".join(named),
            next_step="drop one of them",
        )
    return typed.auto_bounds(wanted.bounds)


def listed_bounds(wanted: QuestionOptions, config: Config) -> Bounds:
    """Return the bounds that the options name, and for what they leave out the config's."""
    from farthing.query.bounding import Bounds

    given: dict[str, Any] = {name: getattr(wanted, name) for name in BOUNDS if getattr(wanted, name) is not None}
    for end in ("lower", "upper"):
        if end in given:
            given[end] = typed.clamp(f"--{end}", given[end])
    whole = dict(config.bounds) | given
    lone = [name for name in ("lower", "upper") if name in whole]
    if len(lone) == 1:
        raise InvalidBounds(
            f"--{lone[0]} alone",
            rule="values are clamped into [lower, upper]: both are given, or neither",
            got=f"--{lone[0]} {whole[lone[0]]:g}",
            next_step="--lower 0 --upper 200",
        )
    return Bounds(**whole)


def require_bounds(bounds: Bounds, config: Config, *, grouped: bool, findable: bool = True) -> None:
    """Refuse a unit column without the bounds that it needs; some questions could have them found at a price."""
    missing = ["--max-rows 20"] if bounds.max_rows is None else []
    missing += ["--max-groups 5"] if bounds.max_groups is None and grouped else []
    if config.unit != "row" and missing:
        raise InvalidBounds(
            f"the privacy unit {config.unit!r} needs bounds",
            rule="at most max_groups groups a unit, and at most max_rows of its rows in each",
            next_step=f"add {' '.join(missing)} with numbers that fit the data, or set [bounds] in farthing.toml"
            + ("; --bounds auto chooses them at a price" if findable else ""),
            missing="bounds",
        )


def groupings(texts: Iterable[str]) -> dict[str, str]:
    """Return grouping columns by name: columns as they are, expressions by the name before "="."""
    found: dict[str, str] = {}
    for text in texts:
        name, _, expression = (part.strip() for part in text.partition("="))
        if not name or name in found:
            raise InvalidOption(
                "--by names a column twice" if name else "--by names no column",
                rule="COLUMN, or NAME=EXPRESSION",
                got=text,
                next_step="--by zone, or --by month=\"DATE_TRUNC('month', day)\"",
            )
        found[name] = expression or _quoted(name)
    return found


def kinds_of(by: dict[str, str], session: Session) -> dict[str, str]:
    """Return the types of grouping columns."""
    from farthing.query.expressions import type_of
    from farthing.sql import parse_scalar

    schema = schema_of(session)
    return {name: type_of(parse_scalar(text, schema), schema).value for name, text in by.items()}


def _quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'
