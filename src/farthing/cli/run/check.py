"""What `farthing check` does: reads a table for its owner, and says how, and what would be cut."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farthing.cli import show
from farthing.cli.input import config as settings
from farthing.cli.input.keys import same_file
from farthing.cli.input.question import group_keys
from farthing.cli.input.session import default_keys, opened, sources
from farthing.cli.run.init import people
from farthing.errors import DataError, InvalidOption
from farthing.urls import is_address, name_at, shown_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from farthing.cli.input.config import Config
    from farthing.session.table_check import TableCheck

_NOTICE = (
    "Exact numbers of private rows, for the owner of the table alone: nothing was charged, and nothing is protected."
)


def check(table: str | None, unit: str | None, keys: Sequence[str], config: str | None, *, as_json: bool) -> None:
    """Print what is found, and write down how a CSV is read where that is not declared yet."""
    from farthing.session.table_check import checked

    chosen = _settings(table, config)
    if is_address(chosen.table):
        raise InvalidOption(
            "only files can be checked",
            rule="check reads Parquet and CSV files",
            got=shown_address(chosen.table),
            next_step="look at the table on its server",
        )
    new = _proposals(chosen)
    chosen = replace(chosen, csv={**chosen.csv, **new})
    whose = chosen.unit if unit is None else unit
    source = chosen.source(chosen.name, chosen.table)
    found = checked(source, unit=None if whose == "row" else whose, keys=_lists(chosen, keys))
    written = _written(new, config) if new and (table is None or _named(table, config)) else None
    if as_json:
        show.echo_json(found.to_dict() | {"written": None if written is None else str(written)})
        return
    _tell(found, chosen, whose)
    if written is not None:
        named = " and ".join(f"[csv.{name}]" for name in new)
        show.say(f"wrote {named} into {written}; check it, it decides how every line is read")


def _settings(table: str | None, config: str | None) -> Config:
    """Return the settings of the table: those of farthing.toml where it names this one, else only its path."""
    if table is None or _named(table, config):
        return settings.read(config)
    stem = name_at(table) if is_address(table) else Path(table).name.split(".")[0]
    name = "".join(letter if letter.isalnum() else "_" for letter in stem) or "data"
    return settings.Config(Path.cwd(), table, name, "row", {"epsilon": 1.0}, "unused")


def _named(table: str, config: str | None) -> bool:
    """Return whether there are settings, of this table."""
    if config is None and not Path(settings.FILE).is_file():
        return False
    path = settings.read(config).table_path
    return table == path or same_file(Path(table), path)


def _proposals(chosen: Config) -> dict[str, dict[str, Any]]:
    """Return how CSV tables of which nothing is declared seem to be written, by name."""
    from farthing.session.table_files import proposed

    tables = {chosen.name: chosen.table, **chosen.public, **chosen.protected}
    found = {name: proposed(chosen.path_of(path)) for name, path in tables.items()
             if name not in chosen.csv and not is_address(path)}  # fmt: skip
    return {name: reading.settings() for name, reading in found.items() if reading is not None}


def _written(readings: Mapping[str, Mapping[str, Any]], config: str | None) -> Path:
    """Write how CSV tables are read at the end of the settings, whole or not at all; return where."""
    file = settings.find(config)
    part = file.with_name(f"{file.name}.part")
    sections = "\n".join(settings.reading(name, how) for name, how in readings.items())
    with suppress(OSError):
        part.write_text(f"{file.read_text(encoding='utf-8').rstrip()}\n\n{sections}", encoding="utf-8")
        part.chmod(file.stat().st_mode & 0o777)
        return part.replace(file)
    part.unlink(missing_ok=True)
    raise DataError(
        "the settings cannot be written",
        rule="check writes how a CSV is read into the settings that name it",
        got=file,
        next_step="check the permissions of the folder, or add the section by hand, as `farthing init` writes it",
    )


def _lists(chosen: Config, given: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Return the keys of the options and the settings, as lists."""
    from farthing.session.table_check import values_of

    with opened(chosen, "memory") as session:
        found = {name: keys for name, keys in default_keys(chosen, session).items() if name in session.schema}
        found |= group_keys(given, session.schema, sources(chosen, session, Path.cwd()))
    lists: dict[str, Sequence[Any]] = {}
    for name, keys in found.items():
        place, _, column = keys.partition(".") if isinstance(keys, str) else ("", "", "")
        lists[name] = values_of(chosen.source(place, chosen.public[place]), column) if place else list(keys)
    return lists


def _tell(found: TableCheck, chosen: Config, whose: str) -> None:
    """Print everything."""
    out = show.console()
    out.print(_NOTICE, soft_wrap=True)
    out.print(_read(found), soft_wrap=True, markup=False)
    heads = [("column", False), ("type", False), ("missing", True), ("unread", True), ("least", True),
             ("greatest", True), ("lower", True), ("upper", True), ("cut", True)]  # fmt: skip
    out.print(show.columns_table(heads, [_row(column) for column in found.columns]))
    for column in found.columns:
        if column.examples:
            out.print(
                f"{column.name}: not a value of type {column.type}: {', '.join(column.examples)}",
                soft_wrap=True,
                markup=False,
            )
    for cut in found.cuts:
        told = "; ".join(f"{most} cuts {share:.2%}" for most, share in cut.most)
        out.print(f"{cut.bound}, of {show.many(cut.units, 'unit')} of {whose}: {told}", soft_wrap=True, markup=False)
    for keys in found.keys:
        examples = f" ({', '.join(keys.examples)})" if keys.examples else ""
        out.print(f"keys of {keys.column}: {keys.listed} listed, {keys.without} without a row{examples}; "
                  f"{keys.outside:.2%} of the rows have another value", soft_wrap=True, markup=False)  # fmt: skip
    if whose == "row":
        for name in people([column.name for column in found.columns]):
            out.print(f"{name} seems to name people: farthing check {chosen.table} --unit {name}", soft_wrap=True)


def _read(found: TableCheck) -> str:
    """Return how many rows were read, and how."""
    rows = show.many(found.rows, "row")
    if found.reading is None:
        return f"{rows} of Parquet"
    how = found.reading
    mark = {"\t": "tab", ",": "comma", ";": "semicolon"}.get(str(how.delimiter), repr(how.delimiter))
    parts = f", {how.parts!r} between thousands" if how.parts else ""
    left = f"{show.many(found.dropped, 'line')} dropped{f': {found.left_out}' if found.dropped else ''}"
    return f"{rows} of CSV ({how.encoding}, {mark}, decimal mark {how.decimal!r}{parts}); {left}"


def _row(column: Any) -> tuple[str, ...]:
    """Return the line of a column."""
    clamps = (column.lower, column.upper)
    unread = "" if column.unread is None else str(column.unread)
    ends = ("" if end is None else str(end)[:10] for end in (column.least, column.greatest))
    lower, upper = ("" if clamp is None else f"{clamp:g}" for clamp in clamps)
    cut = "" if column.beyond is None else f"{column.beyond:.1%}"
    return (column.name, column.type, str(column.missing), unread, *ends, lower, upper, cut)
