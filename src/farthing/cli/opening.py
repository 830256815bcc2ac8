"""From settings to an open session, and from options to a question."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from farthing.cli import keys as typed_keys
from farthing.cli import options
from farthing.cli.keys import Sources
from farthing.cli.wanted import PRIVATE, Wanted
from farthing.errors import InvalidBounds, InvalidKeys, InvalidOption, LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from farthing.cli.config import Config
    from farthing.query.bounding import AutoBounds, Bounds
    from farthing.query.schema import Schema
    from farthing.session import Session
    from farthing.sql import Asked

BOUNDS: Final = ("max_groups", "max_rows", "lower", "upper")

Books = Literal["existing", "new", "memory"]


@contextmanager
def opened(config: Config, books: Books = "existing", *, same_data: bool = False) -> Iterator[Session]:
    """Open the session that a config describes, and close it at the end.

    A ledger that is gone is not made again, except by `init` ("new"): its charges may have been spent already.
    """
    from farthing.privacy.budget import Budget
    from farthing.query.bounding import Bounds
    from farthing.session import Session

    budget, bounds = Budget(**config.budget), Bounds(**config.bounds)
    place = config.ledger_place
    if books == "existing" and isinstance(place, Path) and not place.exists():
        raise LedgerError(
            "the ledger is not where the settings say",
            rule="a new ledger would forget what was spent",
            got=place,
            next_step="restore it; if nothing was ever asked, `farthing init --force` makes a new one",
        )
    _refuse_exposed(config)
    with Session(
        config.source(config.name, config.table),
        unit=config.unit,
        budget=budget,
        bounds=bounds,
        ledger=None if books == "memory" else place,
        name=config.name,
        version=config.version,
        same_data=same_data,
        public={name: config.source(name, path) for name, path in config.public.items()},
        protected={name: config.source(name, path) for name, path in config.protected.items()},
    ) as session:
        _refuse_unitless(config, session)
        yield session


def _refuse_exposed(config: Config) -> None:
    """Refuse a protected table that is declared public as well."""
    for name, path in config.public.items():
        if any(typed_keys.same_file(Path(config.path_of(path)), table) for table in protected(config)):
            raise InvalidOption(
                f"the public table {name!r} is a protected table",
                rule="a public table holds facts that anyone may know",
                got=path,
                next_step="declare it under [protected], or drop it from [public]",
            )


def _refuse_unitless(config: Config, session: Session) -> None:
    """Refuse protected tables in which nothing tells whose the rows are."""
    for name in config.protected:
        columns = session.tables[name]
        if config.unit not in columns:
            raise InvalidOption(
                f"the protected table {name!r} has no column {config.unit!r}"
                if config.unit != "row"
                else f"a protected table {name!r} beside one whose rows are the units",
                rule="protected tables are joined by the unit column, which all of them have",
                got=", ".join(columns),
                next_step="declare it as public if its facts are, or drop it",
            )


def protected(config: Config) -> list[str]:
    """Return the paths of all protected tables of a config."""
    return [config.table_path, *(config.path_of(path) for path in config.protected.values())]


def sources(config: Config, session: Session, folder: Path) -> Sources:
    """Return where keys may come from; relative paths start at a folder."""
    tables = session.tables
    return Sources(folder, protected(config), {name: tables[name] for name in config.public})


@dataclass(frozen=True, slots=True)
class Question:
    """A question as far as it can be read before anything is asked.

    Attributes:
        asked: what the SQL says.
        where: its keys and bounds, for the session.
        how: its target and price, for the session.
    """

    asked: Asked
    where: dict[str, Any]
    how: Any


def question(sql: str, wanted: Wanted, config: Config, session: Session) -> Question:
    """Return a question with the keys and bounds of its options, and for what they leave out the config's."""
    from farthing.query.bounding import Bounds
    from farthing.query.schema import Schema, Type
    from farthing.sql import parse

    bounds = question_bounds(wanted, config)
    tables = {name: Schema.of({column: Type(kind) for column, kind in columns.items()})
              for name, columns in session.tables.items()}  # fmt: skip
    asked = parse(
        sql,
        table=config.name,
        schema=schema_of(session),
        tables=tables,
        public=frozenset(config.public),
        unit=None if config.unit == "row" else config.unit,
        bounds=bounds if isinstance(bounds, Bounds) else Bounds(lower=0, upper=1),  # stands in until they are chosen
    )
    how = wanted.how(asked)
    if isinstance(bounds, Bounds):
        given = {name: getattr(asked.options, name) or getattr(bounds, name) for name in ("max_groups", "max_rows")}
        require_bounds(Bounds(**given), config, grouped=bool(asked.by))
    keys = question_keys(wanted, kinds(asked, session), config, session)
    return Question(asked, {"keys": keys, "bounds": bounds}, how)


def schema_of(session: Session) -> Schema:
    """Return the columns of the protected table."""
    from farthing.query.schema import Schema, Type

    return Schema.of({name: Type(kind) for name, kind in session.schema.items()})


def kinds(asked: Asked, session: Session) -> dict[str, str]:
    """Return the types of the grouping columns, by the names that their keys have."""
    from farthing.query.expressions import Column, type_of
    from farthing.query.schema import Schema, Type

    joined = {f"{join.table}.{name}": kind for join in asked.joins for name, kind in session.tables[join.table].items()}
    schema = Schema.of({name: Type(kind) for name, kind in (session.schema | joined).items()})
    values = dict(asked.groupings)
    return {name: type_of(values.get(name, Column(name)), schema).value for name in asked.by}


def question_keys(wanted: Wanted, by: Mapping[str, str], config: Config, session: Session) -> Any:
    """Return the keys of a question's grouping columns, given with their types; None without such columns."""
    if wanted.private:
        if not by:
            raise InvalidKeys(
                "--keys private without GROUP BY",
                rule="keys belong to grouping columns",
                next_step="add GROUP BY, or drop it",
            )
        return PRIVATE
    given = group_keys(wanted.keys or (), session.schema | dict(by), sources(config, session, Path.cwd()))
    there = sources(config, session, config.folder)
    for column, kind in by.items():
        values = config.keys.get(column)
        if column not in given and values is not None:
            given[column] = typed_keys.read(column, values, kind, there) if isinstance(values, str) else values
    missing = [column for column in by if column not in given]
    if missing:
        raise InvalidKeys(
            f"GROUP BY {', '.join(missing)} without keys",
            rule="the groups of an answer are public: which ones exist in the data is private",
            next_step=f"{_how_to_list(missing[0])}; or list them under [keys] in farthing.toml; --keys private finds "
            "them at a price",
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
                f"keys for {column!r}, which is no column of the table",
                next_step=options.nearest(column, known),
                rule="keys are given for columns of the table, or aliases of GROUP BY",
            )
        found[column] = typed_keys.read(column, values, known[column], places)
    return found


def question_bounds(wanted: Wanted, config: Config) -> Bounds | AutoBounds:
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
    return options.auto_bounds(wanted.bounds)


def listed_bounds(wanted: Wanted, config: Config) -> Bounds:
    """Return the bounds that the options name, and for what they leave out the config's."""
    from farthing.query.bounding import Bounds

    given: dict[str, Any] = {name: getattr(wanted, name) for name in BOUNDS if getattr(wanted, name) is not None}
    for end in ("lower", "upper"):
        if end in given:
            given[end] = options.clamp(f"--{end}", given[end])
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


def require_bounds(bounds: Bounds, config: Config, *, grouped: bool) -> None:
    """Refuse a unit column without the bounds that it needs."""
    missing = ["--max-rows 20"] if bounds.max_rows is None else []
    missing += ["--max-groups 5"] if bounds.max_groups is None and grouped else []
    if config.unit != "row" and missing:
        raise InvalidBounds(
            f"the privacy unit {config.unit!r} needs bounds",
            rule="at most max_groups groups a unit, and at most max_rows of its rows in each",
            next_step=f"add {' '.join(missing)} with numbers that fit the data, or set [bounds] in farthing.toml; "
            "--bounds auto chooses them at a price",
        )
