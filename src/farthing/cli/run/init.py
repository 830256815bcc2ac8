"""What `farthing init` does: check a table, a promise and its books, and write them down."""

from __future__ import annotations

import glob
import math
import re
import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from farthing.cli import show
from farthing.cli.input import config as settings
from farthing.cli.input import keys as typed_keys
from farthing.cli.input import typed
from farthing.cli.input.config import Config
from farthing.cli.input.question import group_keys, schema_of
from farthing.cli.input.session import opened, sources
from farthing.errors import DataError, InvalidBudget, InvalidKeys, InvalidOption
from farthing.urls import is_address, name_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from farthing.cli.input.options.init import InitOptions
    from farthing.session import Session

_SAMPLES: Final = {
    "string": "A,B,C",
    "integer": "1..12",
    "boolean": "true,false",
    "date": "2013-01-01,2013-01-02",
}
"""Keys that show how values of a type are written; the data are never looked at to find real ones."""


_NOUNS: Final = (
    "user|customer|client|patient|person|member|account|household|employee|student|driver|rider|subscriber|visitor"
    "|passenger|patron|donor|voter|citizen|guest|tenant|pupil|resident|traveller|traveler|cardholder"
)
_PERSON: Final = re.compile(
    rf"(?i)^({_NOUNS}|uid|ssn|mrn|imei|msisdn|user[ _-]?name|login|e-?mail([ _-]?address)?)$"
    rf"|({_NOUNS}|card|device)[ _-]?(id|ids|no|nr|num|number|key|uuid|guid|hash)$"
)


def people(columns: Iterable[str]) -> list[str]:
    """Return the columns whose names say that they tell people apart.

    >>> people(["rider", "zone", "user_id", "card_type", "userid", "minutes", "Customer No"])
    ['rider', 'user_id', 'userid', 'Customer No']
    """
    return [name for name in columns if _PERSON.search(name)]


def init(table: str, wish: InitOptions, *, force: bool) -> None:
    """Check everything, write farthing.toml, and say what to do next."""
    file = Path(settings.FILE)
    if file.exists() and not force:
        raise InvalidOption(
            "there is a farthing.toml here already",
            got=file.absolute(),
            next_step="edit it, use another folder, or replace it with --force",
            rule="init replaces settings only with --force",
        )
    made = _read(_config(table, wish))
    if not wish.drop_lines:
        _require_whole(made)
    _check(made, wish.keys or (), said=wish.unit is not None)
    if wish.parquet:
        made = _converted(made, force=force)
    written = None
    with suppress(OSError):
        written = file.write_text(settings.text(made), encoding="utf-8")
    if written is None:
        raise DataError(
            "farthing.toml cannot be written",
            got=file.absolute(),
            rule="init writes into the current folder",
            next_step="change to a folder you may write in",
        )
    with opened(made, "new") as session:
        _tell(made, session)


def _config(table: str, wish: InitOptions) -> Config:
    """Return the settings that were typed, with this folder as theirs."""
    called = wish.name or _stem(table)
    given = {"max_groups": wish.max_groups, "max_rows": wish.max_rows}
    return Config(
        folder=Path.cwd(),
        table=_beside(table),
        name=called,
        unit=wish.unit or "row",
        budget=_budget(wish),
        ledger=_beside(wish.ledger or f"{called}.ledger"),
        version=wish.data_version,
        bounds={bound: value for bound, value in given.items() if value is not None},
        keys=dict(typed_keys.split(option) for option in wish.keys or ()),
        public=_tables("--public", wish.public or ()),
        protected=_tables("--protected", wish.protected or ()),
    )


def _budget(wish: InitOptions) -> dict[str, float]:
    """Return the arguments of the budget, and refuse none at all."""
    texts = {name: getattr(wish, name) for name in ("epsilon", "delta", "rho", "mu", "keys_delta")}
    given = {name: text for name, text in texts.items() if text is not None}
    if not given.keys() & {"epsilon", "rho", "mu"}:
        raise InvalidBudget(
            "no budget was given",
            rule="exactly one of --epsilon, --rho, --mu",
            next_step="--epsilon 1 --delta 1e-6 is usual; it is the total for all questions ever",
        )
    return {name: typed.amount("--" + name.replace("_", "-"), text) for name, text in given.items()}


def _read(made: Config) -> Config:
    """Return settings with a proposal of how each CSV table is read."""
    from farthing.session.table_files import proposed

    tables = {made.name: made.table, **made.public, **made.protected}
    found = {name: proposed(made.path_of(path)) for name, path in tables.items() if not is_address(path)}
    return replace(made, csv={name: reading.settings() for name, reading in found.items() if reading is not None})


def _require_whole(made: Config) -> None:
    """Refuse CSV tables of which lines would be left out, as long as nobody said that they may be."""
    from farthing.session.table_check import left_out_of

    for name in made.csv:
        paths = {made.name: made.table, **made.public, **made.protected}
        lost = left_out_of(made.source(name, paths[name]))
        if lost.dropped:
            raise InvalidOption(
                f"{show.many(lost.dropped, 'line')} of {lost.lines:,} in {paths[name]} would be left out",
                rule="a line is one record, with as many fields as the header; no other line decides how it is read",
                got=lost,
                next_step=f"mend the file (farthing check {shlex.quote(paths[name])} tells more), or leave them out: "
                "--drop-lines",
            )


def _converted(made: Config, *, force: bool) -> Config:
    """Write the protected CSV table as Parquet in this folder, and return settings that name that file."""
    from farthing.query.reading import Csv
    from farthing.session.table_files import convert

    reading, place = made.source(made.name, made.table), Path(f"{made.name}.parquet")
    if not isinstance(reading, Csv):
        raise InvalidOption(
            "--parquet for a table that is not a CSV file",
            rule="--parquet writes a CSV table as Parquet",
            got=made.table,
            next_step="drop --parquet",
        )
    if place.exists() and not force:
        raise InvalidOption(
            "there is a Parquet file of that name",
            rule="init replaces a file only with --force",
            got=place,
            next_step=f"farthing init {place}, or replace it with --force",
        )
    convert(reading, place)
    return replace(made, table=str(place), csv={name: each for name, each in made.csv.items() if name != made.name})


def _check(made: Config, keys: Sequence[str], *, said: bool) -> None:
    """Open table and promise with books in memory first, so that a mistake leaves no file behind."""
    with opened(made, "memory") as session:
        if not said:
            _require_unit(list(session.schema))
        listed = group_keys(keys, session.schema, sources(made, session, made.folder))
        for column, values in listed.items():
            _check_keys(column, values, session)
    with opened(made, "new"):
        pass


def _require_unit(columns: list[str]) -> None:
    """Refuse to take each row for somebody beside a column that names people, unless that was said."""
    found = next(iter(people(columns)), None)
    if found is not None:
        raise InvalidOption(
            f"whose privacy is protected was not said, and {found!r} seems to name people",
            rule="each row is taken for somebody of his own only where no column names people, or where it is said",
            got="no --unit",
            next_step=f"--unit {shlex.quote(found)} protects each of them with all rows; --unit row each row alone",
        )


def _check_keys(column: str, values: object, session: Session) -> None:
    """Refuse keys that are not of their column's type, or repeated."""
    from farthing.query.keys import Keys

    if not isinstance(values, str):
        Keys.of((column,), {column: values}, schema_of(session))
        return
    table, _, name = values.partition(".")
    kind, public = session.schema[column], session.tables[table][name]
    if kind != public and {kind, public} - {"float", "decimal"}:
        raise InvalidKeys(
            f"keys of {column!r} have the wrong type",
            rule=f"keys of a column have its type, {kind}",
            got=f"{values} is {public}",
            next_step="name another column, or give the keys as a list",
        )


def _tables(option: str, given: Sequence[str]) -> dict[str, str]:
    """Return declared tables by name: NAME=FILE, or FILE for the name that the file has."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, path = (part.strip() for part in text.partition("="))
        name, path = (name, path) if equals else (_stem(text), text)
        if not name or not path or name in found:
            raise InvalidOption(
                f"{option} names a table twice" if name in found else f"{option} names no table",
                rule="NAME=FILE, each name once",
                got=text,
                next_step=f"{option} zones=zones.csv",
            )
        found[name] = _beside(path)
    return found


def _tell(made: Config, session: Session) -> None:
    """Print what was found, and a question to start with."""
    out = show.console()
    out.print(f"wrote {settings.FILE}: table {made.name} ({made.table}), {_whose(made)}, books in {made.ledger}")
    rows = [(column, kind) for column, kind in session.schema.items()]
    out.print(show.columns_table([("column", False), ("type", False)], rows))
    for name, columns in session.tables.items():
        kind = "public" if name in made.public else "protected"
        out.print(f"{kind} table {name}: {', '.join(f'{column} ({has})' for column, has in columns.items())}",
                  soft_wrap=True)  # fmt: skip
    if made.csv:
        named = " and ".join(f"[csv.{name}]" for name in made.csv)
        out.print(f"Types and dialect were proposed from the first lines of the CSV; check them under {named}.",
                  soft_wrap=True, markup=False)  # fmt: skip
    for line in _examples(made, session):
        out.print(line, soft_wrap=True)


def _whose(made: Config) -> str:
    """Return the privacy unit in words."""
    return "each row is one privacy unit" if made.unit == "row" else f"each {made.unit} is one privacy unit"


def _examples(made: Config, session: Session) -> list[str]:
    """Return questions to paste, at an accuracy that a tenth of the budget pays for."""
    table, lines = _quoted(made.name), ["Ask, for example:"]
    rows = "" if made.unit == "row" or "max_rows" in made.bounds else " --max-rows 20"
    groups = "" if made.unit == "row" or "max_groups" in made.bounds else " --max-groups 5"
    width = _affordable(made, session)
    lines.append(f"  farthing ask {_shell(f'SELECT COUNT(*) FROM {table}')} --absolute {_round(width)}{rows}")
    column = _column(made, session.schema)
    if column is None:
        return lines
    spread = 1 if made.unit == "row" else math.sqrt(made.bounds.get("max_groups", 5))
    sql = f"SELECT {_quoted(column)}, COUNT(*) AS n FROM {table} GROUP BY {_quoted(column)}"
    end = f"--relative 10% --absolute {_round(width * spread)}{groups}{rows}"
    if column in made.keys:
        return [*lines, f"  farthing ask {_shell(sql)} {end}"]
    sample = shlex.quote(f"{column}={_SAMPLES[session.schema[column]]}")
    return [
        *lines,
        f"  farthing ask {_shell(sql)} --keys {sample} {end}",
        f"and put the {column} values that you know to be public in --keys: a list, a range, or @FILE:COLUMN.",
    ]


def _affordable(made: Config, session: Session) -> float:
    """Return the half-width of a total count that a tenth of the budget pays for, at the bounds given."""
    from farthing.query.bounding import Bounds

    bounds = Bounds(max_rows=made.bounds.get("max_rows", 20))
    return session.plan(f"SELECT COUNT(*) FROM {_quoted(made.name)}", bounds=bounds, absolute=1e-6).half_width


def _column(made: Config, schema: Mapping[str, str]) -> str | None:
    """Return a column to group by: one with keys, else the first of the likeliest type, by the types alone."""
    if made.keys:
        return next(iter(made.keys))
    usable = {column: kind for column, kind in schema.items() if column != made.unit}
    return next((column for kind in _SAMPLES for column, has in usable.items() if has == kind), None)


def _round(x: float) -> str:
    """Return the next number of the form 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(x))
    return f"{next(step * power for step in (1, 2, 5, 10) if step * power >= x):.10g}"


def _quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else '"' + name.replace('"', '""') + '"'


def _shell(text: str) -> str:
    """Return a text as one word of a shell, in double quotes where they suffice."""
    return shlex.quote(text) if re.search(r'["$`\\!]', text) else f'"{text}"'


def _stem(table: str) -> str:
    """Return the name that a table has in SQL unless it is told another: a server's, or the file's up to a dot."""
    stem = name_at(table) if is_address(table) else Path(table).name.split(".")[0]
    return "data" if not stem or glob.has_magic(stem) else stem


def _beside(path: str) -> str:
    """Return a path relative to this folder if it lies in it, with forward slashes; a URL as it is."""
    if is_address(path):
        return path
    given = Path(path)
    if given.is_absolute() and given.is_relative_to(Path.cwd()):
        given = given.relative_to(Path.cwd())
    return given.as_posix()
