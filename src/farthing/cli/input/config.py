"""farthing.toml: which table, whose privacy, how much of it, and where the books are."""

from __future__ import annotations

import glob
import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import tomlkit
from tomlkit.items import KeyType, SingleKey

from farthing.errors import DataError, FarthingError, InvalidOption
from farthing.query import outward
from farthing.urls import is_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tomlkit.items import Table

    from farthing.query.reading import Csv

FILE: Final = "farthing.toml"

_SETTINGS: Final[dict[str, dict[str, tuple[type, ...]]]] = {
    "table": {"path": (str,), "name": (str,), "version": (str,), "unit": (str,)},
    "budget": dict.fromkeys(("epsilon", "delta", "rho", "mu", "keys_delta"), (int, float)),
    "bounds": {"max_groups": (int,), "max_rows": (int,), "lower": (int, float), "upper": (int, float)},
    "ledger": {"path": (str,)},
    "target": {"relative": (int, float), "absolute": (int, float), "confidence": (int, float), "simultaneous": (bool,)},
    "serve": {"askers": (list,), "open_history": (bool,), "clock": (str,)},
    "oidc": dict.fromkeys(("issuer", "audience", "name", "role"), (str,)) | {"algorithms": (list,), "roles": (dict,)},
}
_NAMED: Final[dict[str, tuple[type, ...]]] = {
    "keys": (list, str),
    "public": (str,),
    "protected": (str,),
    "csv": (dict,),
}
"""Sections whose names the owner chooses: columns, and tables."""
_READING: Final[dict[str, tuple[type, ...]]] = {
    "delimiter": (str,),
    "quote": (str,),
    "null": (list,),
    "dates": (str,),
    "timestamps": (str,),
    "encoding": (str,),
    "decimal": (str,),
    "thousands": (str,),
    "columns": (dict,),
}
"""How a CSV file is read, in [csv.TABLE]."""
_KINDS: Final = {
    bool: "true or false",
    dict: "a section",
    list: "a list",
    str: "text",
    int: "a whole number",
    float: "a number",
}
_REQUIRED: Final = (("table", "path"), ("table", "name"), ("ledger", "path"))


@dataclass(frozen=True, slots=True)
class Config:
    """What `farthing init` wrote and every later command reads.

    Attributes:
        folder: the folder of the file; relative paths start here.
        table: a Parquet or CSV path or glob, or the address of a table on a server.
        name: the table's name in SQL.
        version: the owner's name for this state of the data.
        unit: the column whose values are the privacy unit, or "row".
        budget: the arguments of the budget, as written.
        ledger: the path of the books.
        bounds: max_groups, max_rows, lower and upper, as far as given.
        keys: public group keys by column: a list, or text as in --keys.
        public: paths of the tables that may be joined and that give keys, by their names in SQL.
        protected: paths of further tables with the unit column that may be joined, by their names in SQL.
        csv: how the tables that are CSV files are read, by their names in SQL; the arguments of `Csv`.
        target: the accuracy of questions that name none; the arguments of `Target`.
        serve: what only the server reads: who may ask, whether analysts see each other's questions, when answers leave.
        oidc: whose tokens the server takes beside its own; the arguments of `Issuer`.
    """

    folder: Path
    table: str
    name: str
    unit: str
    budget: Mapping[str, float]
    ledger: str
    version: str = "1"
    bounds: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, Any] = field(default_factory=dict)
    public: Mapping[str, str] = field(default_factory=dict)
    protected: Mapping[str, str] = field(default_factory=dict)
    csv: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    serve: Mapping[str, Any] = field(default_factory=dict)
    oidc: Mapping[str, Any] = field(default_factory=dict)

    def source(self, name: str, path: str) -> str | Csv:
        """Return what a session opens as a table: its path, read as [csv.NAME] says."""
        from farthing.query.reading import Csv

        place = self.path_of(path)
        return Csv(place, **self.csv[name]) if name in self.csv else place

    @property
    def table_path(self) -> str:
        """The table's path, with the folder before it, or its address."""
        return self.path_of(self.table)

    def path_of(self, table: str) -> str:
        """Return a table's path, with the folder before it, or its address; no letter of the folder is a pattern's."""
        if is_address(table):
            return table
        folder = str(self.folder)
        return str(Path(glob.escape(folder) if glob.has_magic(table) else folder) / table)

    @property
    def ledger_place(self) -> Path | str:
        """Where the books are: a path, with the folder before it, or a server's URL as it is written."""
        return self.ledger if is_address(self.ledger) else self.folder / self.ledger


def find(path: str | None) -> Path:
    """Return the config file that is named, or the one in the current folder."""
    chosen = Path(path) if path is not None else Path(FILE)
    if chosen.is_dir():
        chosen /= FILE
    if not chosen.is_file():
        raise InvalidOption(
            f"there is no {chosen.name} here" if path is None else "no such config file",
            got=chosen.absolute().parent if path is None else chosen,
            next_step="make one with `farthing init TABLE --epsilon 1 --delta 1e-6`, or name one with --config",
            rule="ask, plan and status read farthing.toml",
        )
    return chosen


def read(path: str | None) -> Config:
    """Return the settings of a config file, checked.

    Raises:
        InvalidOption: no file, no TOML, or a setting that is unknown, missing or of the wrong type.
    """
    file = find(path)
    problem: FarthingError | None = None
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        problem = InvalidOption(
            f"{file} is not TOML",
            got=error,
            next_step="quote texts, and write name = value",
            rule="a config file is TOML",
        )
    except (OSError, UnicodeDecodeError):
        problem = DataError(
            "the config file cannot be read",
            got=file,
            rule="a config file is a readable UTF-8 text",
            next_step="check the path and its permissions",
        )
    if problem is not None:
        raise problem
    _check(file, settings)
    table = settings["table"]
    return Config(
        folder=file.absolute().parent,
        table=table["path"],
        name=table["name"],
        unit=table.get("unit", "row"),
        version=table.get("version", "1"),
        budget=settings["budget"],
        ledger=settings["ledger"]["path"],
        bounds=settings.get("bounds", {}),
        keys=settings.get("keys", {}),
        public=settings.get("public", {}),
        protected=settings.get("protected", {}),
        csv=settings.get("csv", {}),
        target=settings.get("target", {}),
        serve=settings.get("serve", {}),
        oidc=settings.get("oidc", {}),
    )


def _check(file: Path, settings: dict[str, Any]) -> None:
    """Refuse settings that are unknown, missing or of the wrong type."""
    for section, values in settings.items():
        _known(file, section, [*_SETTINGS, *_NAMED], "section")
        if not isinstance(values, dict):
            raise InvalidOption(
                f"{section!r} in {file} is not a section",
                next_step=f"write [{section}] on its own line",
                rule="settings are written in sections",
            )
        for name, value in values.items():
            if section not in _NAMED:
                _known(file, name, list(_SETTINGS[section]), f"setting of [{section}]")
            kinds = _NAMED.get(section) or _SETTINGS[section][name]
            if (isinstance(value, bool) and bool not in kinds) or not isinstance(value, kinds):
                rule = 'a list, or "@FILE:COLUMN"' if section == "keys" else _KINDS[kinds[-1]]
                raise _wrong_type(f"{section}.{name}", file, rule, value)
    for section, name in _REQUIRED:
        if name not in settings.get(section, {}):
            raise InvalidOption(
                f"{file} does not say {section}.{name}",
                next_step=f'add {name} = "..." to [{section}]',
                rule="a config file states it",
            )
    if not settings.get("budget"):
        raise InvalidOption(
            f"{file} has no budget",
            next_step="add [budget] with epsilon = 1.0 and delta = 1e-6",
            rule="a config file states its budget",
        )
    _check_readings(file, settings)


def _check_readings(file: Path, settings: dict[str, Any]) -> None:
    """Refuse sections on CSV tables that are not there, and settings that are unknown or of the wrong type."""
    tables = [settings["table"]["name"], *settings.get("public", {}), *settings.get("protected", {})]
    for table, reading in settings.get("csv", {}).items():
        _known(file, table, tables, "table of [csv]")
        for name, value in reading.items():
            _known(file, name, list(_READING), f"setting of [csv.{table}]")
            if not isinstance(value, _READING[name]):
                raise _wrong_type(f"csv.{table}.{name}", file, _KINDS[_READING[name][0]], value)


def _wrong_type(name: str, file: Path, rule: str, value: object) -> InvalidOption:
    """Return the error of a setting of the wrong type."""
    return InvalidOption(
        f"{name} in {file} has the wrong type",
        rule=rule,
        got=repr(value),
        next_step="correct the value in the file",
    )


def _known(file: Path, name: str, known: list[str], what: str) -> None:
    """Refuse a name that is not known, with the nearest that is."""
    if name not in known:
        near = get_close_matches(name, known, n=1)
        raise InvalidOption(
            f"unknown {what} in {file}",
            rule=f"one of {', '.join(known)}",
            got=name,
            next_step=f"did you mean {near[0]}?" if near else "remove it",
        )


def text(config: Config) -> str:
    """Return a config as the text of its file, with comments that explain it."""
    about = {
        "path": "Parquet or CSV, a pattern such as rides/*.parquet, or an address such as postgresql://me@host/db#rides",
        "name": "the table's name in SQL",
        "unit": "whose privacy: a column (a person, a plane), or row if each row is somebody",
        "version": "change it when the data change: answers are kept for each version",
    }
    table = {"path": config.table, "name": config.name, "unit": config.unit, "version": config.version}
    return "\n".join([
        _section(_HEAD, {}),
        _section((), {"table": _table(table, about=about)}),
        _section(_BUDGET, {"budget": _table(config.budget)}),
        _section(_BOUNDS, {"bounds": _table(config.bounds, "max_groups = 5", "max_rows = 20")}),
        _section(_PUBLIC, {"public": _table(config.public, 'zones = "zones.csv"')}),
        _section((), {"protected": _table(config.protected, 'payments = "payments.parquet"')}),
        *(reading(name, how) for name, how in config.csv.items()),
        _section(_LEDGER, {"ledger": _table({"path": config.ledger})}),
        _section(_KEYS, {"keys": _table(config.keys, *_SAMPLES)}),
    ])  # fmt: skip


_HEAD: Final = (
    "Settings of farthing in this folder: `farthing ask`, `plan` and `status` read them.",
    "Paths are relative to this file.",
)
_BUDGET: Final = (
    "The total that may ever be spent. It is fixed in the ledger; changing it here only leads to an error.",
)
_BOUNDS: Final = (
    "The most that one unit contributes: max_groups groups, and max_rows rows in each. What is above is cut",
    "before counting, so choose bounds that most units keep. Each ask may pass its own.",
)
_PUBLIC: Final = (
    "Tables that questions may join. Public ones hold facts that anyone may know, and give keys; protected ones",
    "have the unit column, and are as private as the table.",
)
_LEDGER: Final = ("The books: every charge, and every released number. Keep this file as carefully as the data.",)
_KEYS: Final = (
    "Public groups, by column or alias of GROUP BY: a list, whole numbers or dates from .. to, a column of a",
    "public table or file.",
    "Groups that are not listed are not answered; listed groups without rows are.",
)
_CSV: Final = (
    "first lines, so check it. Types are string, integer, float, boolean, date and timestamp; a value of another",
    "form is NULL.",
)
_SAMPLES: Final = (
    'dest = ["ATL", "ORD"]',
    'month = "1..12"',
    'day = "2013-01-01..2013-12-31"',
    'zone = "zones.id"',
    'area = "@areas.csv:id"',
)


def reading(name: str, how: Mapping[str, Any]) -> str:
    """Return the sections that say how a CSV table is read."""
    given = {what: value for what, value in how.items() if what != "columns"}
    body = _table(given)
    if "dates" not in given:
        body.add(tomlkit.comment('dates = "%d/%m/%Y"  # where days are not written as 2013-02-28'))
    body.add(tomlkit.nl())
    body.add("columns", _table(how.get("columns", {})))
    tables = tomlkit.table(is_super_table=True)
    tables.add(_name(name), body)
    called = outward.dumped(name)
    about = f"How the CSV table {called} is read, line by line. It is fixed and public: init proposed it from the"
    return _section((about, *_CSV), {"csv": tables})


def _section(about: Sequence[str], named: Mapping[str, Table]) -> str:
    """Return a part of the file: comments, and a section below them."""
    part = tomlkit.document()
    for name, body in named.items():
        part.add(name, body)
    return "".join(f"# {line}\n" for line in about) + tomlkit.dumps(part)


def _table(values: Mapping[str, Any], *samples: str, about: Mapping[str, str] | None = None) -> Table:
    """Return a section of settings with a comment beside each; of none, samples that are commented out."""
    body = tomlkit.table()
    for name, value in values.items():
        item = tomlkit.value(outward.dumped(value))  # escaped as in JSON: a terminal may show the file
        if about:
            item.comment(about[name])
            item.trivia.comment_ws = "  "
        body.add(_name(name), item)
    for sample in () if values else samples:
        body.add(tomlkit.comment(sample))
    return body


def _name(name: str) -> SingleKey:
    """Return a name as a key, in quotes where it needs them."""
    bare = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return SingleKey(name) if bare else SingleKey(name, KeyType.Basic, original=outward.dumped(name))
