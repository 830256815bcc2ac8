"""From settings to an open session."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from farthing.cli.input import keys as typed_keys
from farthing.cli.input.keys import Sources
from farthing.errors import InvalidOption, LedgerError
from farthing.folders import shares_files
from farthing.urls import is_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from farthing.cli.input.config import Config
    from farthing.session import Session

Books = Literal["existing", "new", "memory"]


@contextmanager
def opened(
    config: Config, books: Books = "existing", *, same_data: bool = False, allotment: str | None = None
) -> Iterator[Session]:
    """Open the session that a config describes, on the whole budget or on a share of it, and close it at the end."""
    with open_session(config, books, same_data=same_data, allotment=allotment) as session:
        yield session


def open_session(config: Config, books: Books = "existing", **more: Any) -> Session:
    """Open the session that a config describes; `more` are further arguments of a session.

    A ledger that is gone is not made again, except by `init` ("new"): its charges may have been spent already.
    """
    from farthing.accuracy.target import Target
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
    session = Session(
        config.source(config.name, config.table),
        unit=config.unit,
        budget=budget,
        bounds=bounds,
        ledger=None if books == "memory" else place,
        name=config.name,
        version=config.version,
        target=Target(**config.target) if config.target else None,
        public={name: config.source(name, path) for name, path in config.public.items()},
        protected={name: config.source(name, path) for name, path in config.protected.items()},
        **more,
    )
    try:
        _refuse_unitless(config, session)
    except BaseException:
        session.close()
        raise
    return session


def default_keys(config: Config, session: Session) -> dict[str, Any]:
    """Return the keys that the settings list for columns of the table, typed as these."""
    there = sources(config, session, config.folder)
    return {
        column: typed_keys.read(column, values, session.schema[column], there) if isinstance(values, str) else values
        for column, values in config.keys.items()
        if column in session.schema
    }


def _refuse_exposed(config: Config) -> None:
    """Refuse a protected file that is declared public as well; tables by address are told apart by their server."""
    for name, path in config.public.items():
        place = config.path_of(path)
        if is_address(path):
            continue
        if any(place == each or shares_files(place, each) for each in protected(config)):
            raise InvalidOption(
                f"the public table {name!r} is a protected table, or has a file of one",
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


def read_files(config: Config, keys: Sequence[str]) -> list[str]:
    """Return the paths and patterns of the files that a question reads: its tables, and its keys' files."""
    tables = [*protected(config), *(config.path_of(path) for path in config.public.values())]
    listed = [config.path_of(value[1:].rpartition(":")[0]) for value in _file_keys(config.keys.values())]
    typed = [str(Path.cwd() / value[1:].rpartition(":")[0])
             for value in _file_keys(each.partition("=")[2] for each in keys)]  # fmt: skip
    return [*tables, *listed, *typed]


def _file_keys(values: Iterable[object]) -> list[str]:
    """Return those keys that name a column of a file."""
    return [value for value in values if isinstance(value, str) and value.startswith("@")]


def sources(config: Config, session: Session, folder: Path) -> Sources:
    """Return where keys may come from; relative paths start at a folder."""
    tables = session.tables
    return Sources(folder, protected(config), {name: tables[name] for name in config.public})
