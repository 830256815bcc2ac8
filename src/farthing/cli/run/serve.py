"""What `farthing serve` does: declares data sets, finds out who may ask, and serves until it is told to stop."""

from __future__ import annotations

import json
import logging
import os
import secrets
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farthing.cli import show
from farthing.cli.input import config as settings
from farthing.cli.input.session import default_keys, open_session
from farthing.errors import DataError, FarthingError, InvalidOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.cli.input.config import Config
    from farthing.server.datasets import ServedTable
    from farthing.server.running import Address


def serve(
    configs: Sequence[str],
    host: str,
    port: int,
    postgres: int | None,
    *,
    tokens: str,
    token_file: str | None,
    demo: bool,
) -> None:
    """Serve the data sets of some settings to the people of a file of tokens, or the demo."""
    require_server()
    from farthing.server.running import Address

    where = Address(host, port, postgres)
    if demo:
        _serve_demo(configs, where, token_file)
    else:
        _serve_settings(configs or [None], where, tokens, token_file)


def _serve_settings(configs: Sequence[str | None], where: Address, tokens: str, token_file: str | None) -> None:
    """Serve the data sets of some settings."""
    from farthing.server.people import Register
    from farthing.server.running import serve as served

    if token_file is not None:
        raise InvalidOption(
            "--token-file without --demo",
            rule="a token is shown once, when `farthing token add` makes it",
            got=token_file,
            next_step="farthing token add alice --role analyst",
        )
    read = [settings.read(config) for config in configs]
    declared = [data_set(config) for config in read]
    names = [one.name for one in declared]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidOption(
            f"two data sets are called {twice!r}",
            rule="each has a name of its own",
            next_step="change table.name in one of the settings",
        )
    place = Path(tokens)
    if not place.exists():
        raise InvalidOption(
            "nobody has a token",
            rule="people need a token to ask",
            got=place,
            next_step="farthing token add alice --role analyst",
        )
    history = any(config.serve.get("open_history", False) for config in read)
    served(
        {one.name: one for one in declared},
        Register(place),
        where,
        open_history=history,
        ready=partial(_ready, where.host),
    )


def _serve_demo(configs: Sequence[str], where: Address, token_file: str | None) -> None:
    """Serve real flights from a ledger that is forgotten at the end."""
    if configs:
        raise InvalidOption(
            "settings and --demo were both given",
            rule="the demo serves its own data set",
            got=configs[0],
            next_step="drop one of them",
        )
    from farthing.server.demo import PEOPLE, flights
    from farthing.server.people import Register
    from farthing.server.running import serve as served

    with tempfile.TemporaryDirectory(prefix="farthing-serve-", ignore_cleanup_errors=True) as folder:
        one = flights(Path(folder) / "flights.ledger")
        people = Register()
        tokens = {name: people.add(name, role) for name, role in PEOPLE.items()}
        if token_file is None:
            for name, token in tokens.items():
                show.say(f"{name:<8} {token}")
        else:
            _write(Path(token_file), tokens)
        served({one.name: one}, people, where, ready=partial(_ready, where.host))


def data_set(config: Config) -> ServedTable:
    """Return the data set that some settings declare; it is opened once, to see that its table and ledger are there."""
    from farthing.privacy.budget import Budget
    from farthing.server.datasets import ServedTable

    with open_session(config) as session:
        keys, columns = default_keys(config, session), session.schema
    askers = config.serve.get("askers")
    return ServedTable(
        name=config.name,
        opened=partial(open_session, config, keys=keys),
        budget=Budget(**config.budget),
        unit=config.unit,
        columns=columns,
        keys=keys,
        defaults=dict(config.target),
        askers=None if askers is None else frozenset(map(str, askers)),
    )


def _ready(host: str, port: int, wire: int | None) -> None:
    """Tell where the server listens; from now on each request is one line on stderr."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("farthing.server").setLevel(logging.INFO)
    show.say(f"farthing answers on http://{host}:{port}")
    if wire is not None:
        show.say(f"and on the PostgreSQL wire, host {host}, port {wire}")


def _write(place: Path, tokens: dict[str, str]) -> None:
    """Write the demo's tokens where only the owner of the file reads them."""
    problem: FarthingError | None = None
    beside = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            json.dump(tokens, file, indent=1)
        beside.replace(place)
    except OSError:
        problem = DataError(
            "the file of tokens cannot be written",
            got=place,
            rule="--token-file names a file in a folder that can be written to",
            next_step="name another one",
        )
    if problem is not None:
        raise problem


def require_server() -> None:
    """Refuse where the extra is missing."""
    from importlib.util import find_spec

    missing: list[Any] = [name for name in ("starlette", "uvicorn", "argon2", "pygwire") if find_spec(name) is None]
    if missing:
        raise DataError(
            "the server is not installed",
            rule="the server is an extra",
            got=f"without {', '.join(missing)}",
            next_step="python -m pip install 'farthing[server]'",
        )
