"""From settings to an open session, and from options to a question."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from farthing.cli import keys as typed_keys
from farthing.cli import options
from farthing.errors import InvalidBounds, InvalidKeys, InvalidTarget, LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from farthing.cli.config import Config
    from farthing.query.bounding import Bounds
    from farthing.session import How, Session


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options of `ask` and `plan` say, as they were typed; None where they say nothing."""

    relative: str | None = None
    absolute: str | None = None
    confidence: str | None = None
    simultaneous: bool = False
    loss: str | None = None
    max_epsilon: str | None = None
    cap: str | None = None
    on_miss: str | None = None
    max_groups: int | None = None
    max_rows: int | None = None
    keys: Sequence[str] = ()

    def how(self) -> How:
        """Return the target and the price."""
        if self.relative is None and self.absolute is None and self.loss is None:
            raise InvalidTarget(
                "no accuracy was asked for",
                rule="--relative, --absolute or both (or --loss, to name the price instead)",
                next_step="--relative 5% --absolute 50 means within 5 % or 50, whichever is larger",
            )
        how: How = {"simultaneous": self.simultaneous}
        if self.relative is not None:
            how["relative"] = options.fraction("--relative", self.relative)
        if self.absolute is not None:
            how["absolute"] = options.absolute(self.absolute)
        if self.confidence is not None:
            how["confidence"] = options.fraction("--confidence", self.confidence)
        if self.loss is not None:
            how["loss"] = options.loss("--loss", self.loss)
        if self.max_epsilon is not None:
            how["max_epsilon"] = options.amount("--max-epsilon", self.max_epsilon)
        if self.cap is not None:
            how["cap"] = options.cap(self.cap)
        if self.on_miss is not None:
            how["on_miss"] = options.on_miss(self.on_miss)
        return how


Books = Literal["existing", "new", "memory"]


@contextmanager
def opened(config: Config, books: Books = "existing") -> Iterator[Session]:
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
    with Session(
        config.table_path,
        unit=config.unit,
        budget=budget,
        bounds=bounds,
        ledger=None if books == "memory" else place,
        name=config.name,
        version=config.version,
    ) as session:
        yield session


def question(sql: str, wanted: Wanted, config: Config, session: Session) -> dict[str, Any]:
    """Return the keys and bounds of a question: the options', and for what they leave out the config's."""
    from farthing.query.schema import Schema, Type
    from farthing.sql import parse

    schema = Schema.of({name: Type(kind) for name, kind in session.schema.items()})
    by = parse(sql, table=config.name, schema=schema).by
    given = group_keys(wanted.keys, session.schema, config, Path.cwd())
    for column in by:
        if column not in given and column in config.keys:
            given[column] = of_config(column, config.keys[column], session.schema, config)
    missing = [column for column in by if column not in given]
    if missing:
        raise InvalidKeys(
            f"GROUP BY {', '.join(missing)} without keys",
            rule="the groups of an answer are public: which ones exist in the data is private",
            next_step=f"{typed_keys.HOW}; or list them under [keys] in farthing.toml",
        )
    return {"keys": given or None, "bounds": _bounds(wanted, config, grouped=bool(by))}


def group_keys(given: Sequence[str], schema: Mapping[str, str], config: Config, folder: Path) -> dict[str, Any]:
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
        found[column] = _listed(column, values, schema, config, folder)
    return found


def of_config(column: str, values: Any, schema: Mapping[str, str], config: Config) -> Any:
    """Return the keys that the config lists for a column."""
    return values if isinstance(values, list) else _listed(column, values, schema, config, config.folder)


def _listed(column: str, values: str, schema: Mapping[str, str], config: Config, folder: Path) -> Any:
    """Return the keys of one column from their text."""
    kind = _kind(column, schema)
    if values.startswith("@"):
        return typed_keys.from_file(column, values[1:], kind, folder=folder, table=config.table_path)
    return typed_keys.typed(column, values, kind)


def _kind(column: str, schema: Mapping[str, str]) -> str:
    """Return the type of a column; refuse an unknown one."""
    if column not in schema:
        raise InvalidKeys(
            f"keys for {column!r}, which is no column of the table",
            next_step="the columns are " + ", ".join(schema),
            rule="keys are given for columns of the table",
        )
    return schema[column]


def _bounds(wanted: Wanted, config: Config, *, grouped: bool) -> Bounds:
    """Return the bounds of a question; refuse a unit column without them."""
    from farthing.query.bounding import Bounds

    named = {"max_groups": wanted.max_groups, "max_rows": wanted.max_rows}
    bounds = Bounds(**dict(config.bounds) | {name: value for name, value in named.items() if value is not None})
    missing = ["--max-rows 20"] if bounds.max_rows is None else []
    missing += ["--max-groups 5"] if bounds.max_groups is None and grouped else []
    if config.unit != "row" and missing:
        raise InvalidBounds(
            f"the privacy unit {config.unit!r} needs bounds",
            rule="at most max_groups groups a unit, and at most max_rows of its rows in each",
            next_step=f"add {' '.join(missing)} with numbers that fit the data, or set [bounds] in farthing.toml",
        )
    return bounds
