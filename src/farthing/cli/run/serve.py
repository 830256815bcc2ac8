"""What `farthing serve` does: declares data sets, finds out who may ask, and serves until it is told to stop."""

from __future__ import annotations

import json
import logging
import os
import secrets
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.cli import show
from farthing.cli.input import config as settings
from farthing.cli.input.session import default_keys, open_session
from farthing.errors import DataError, FarthingError, InvalidOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.cli.input.config import Config
    from farthing.server.clock import PublicClock
    from farthing.server.datasets import ServedTable
    from farthing.server.people import PeopleSource
    from farthing.server.running import Address

_PARTS: Final = ("starlette", "uvicorn", "argon2", "pygwire")
"""What the extra brings, beside what only an issuer needs."""


def serve(
    configs: Sequence[str],
    host: str,
    port: int,
    postgres: int | None,
    *,
    tokens: str,
    token_file: str | None,
    demo: bool,
    workers: int = 1,
) -> None:
    """Serve the data sets of some settings to the people of a file of tokens, or the demo."""
    require_server()
    from farthing.server.running import Address

    where = Address(host, port, postgres)
    if demo:
        _serve_demo(configs, where, token_file, workers)
    else:
        _serve_settings(configs or [None], where, tokens, token_file, workers)


def _serve_settings(
    configs: Sequence[str | None], where: Address, tokens: str, token_file: str | None, workers: int
) -> None:
    """Serve the data sets of some settings."""
    from farthing.server.workers import serve_many

    if token_file is not None:
        raise InvalidOption(
            "--token-file without --demo",
            rule="a token is shown once, when `farthing token add` makes it",
            got=token_file,
            next_step="farthing token add alice --role analyst",
        )
    if workers == 1:
        _settings_served(configs, where, tokens, ready=partial(_ready, where.host))
        return
    _declared([settings.read(config) for config in configs])  # what cannot be served is told once, and here
    work = partial(work_of_one, configs, where, tokens)
    serve_many(work, where, workers, ready=partial(_ready, where.host))


def work_of_one(configs: Sequence[str | None], where: Address, tokens: str, *, started: Any, **how: Any) -> None:
    """Serve as one of several processes, on their sockets."""

    def ready(*_: Any) -> None:
        """Note that it has begun."""
        _log()
        started.set()

    _settings_served(configs, where, tokens, ready=ready, **how)


def _settings_served(configs: Sequence[str | None], where: Address, tokens: str, *, ready: Any, **how: Any) -> None:
    """Serve the data sets of some settings in this process."""
    from farthing.server.running import Conduct
    from farthing.server.running import serve as served
    from farthing.server.shared import Shared

    read = [settings.read(config) for config in configs]
    declared = _declared(read)
    conduct = Conduct(
        open_history=any(config.serve.get("open_history", False) for config in read),
        clock=_clock(read),
        shared=Shared.beside(read[0].ledger_place),
        **how,
    )
    served({one.name: one for one in declared}, _people(read, Path(tokens)), where, conduct, ready=ready)


def _declared(read: Sequence[Config]) -> Sequence[ServedTable]:
    """Return the data sets of some settings."""
    declared = [data_set(config) for config in read]
    names = [one.name for one in declared]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidOption(
            f"two data sets are called {twice!r}",
            rule="each has a name of its own",
            next_step="change table.name in one of the settings",
        )
    return declared


def _people(read: Sequence[Config], place: Path) -> PeopleSource:
    """Return who may come in: by the file of tokens, and by the issuer of the settings where there is one."""
    from farthing.server.oidc import Entrance, Issuer
    from farthing.server.people import Register

    issuers = [config.oidc for config in read if config.oidc]
    if any(issuer != issuers[0] for issuer in issuers):
        raise InvalidOption(
            "the settings name several issuers",
            rule="a server has one [oidc] section, or the same in all settings",
            next_step="write it into one of them",
        )
    if not issuers and not place.exists():
        raise InvalidOption(
            "nobody has a token",
            rule="people need a token to ask",
            got=place,
            next_step="farthing token add alice --role analyst",
        )
    if not issuers:
        return Register(place)
    given: dict[str, Any] = {"issuer": "", "audience": ""} | dict(issuers[0])
    if "algorithms" in given:
        given["algorithms"] = tuple(map(str, given["algorithms"]))
    require_server("joserfc")
    return Entrance(Register(place), Issuer(**given))


def _clock(read: Sequence[Config]) -> PublicClock | None:
    """Return the slowest clock that the settings name."""
    from farthing.server.clock import PublicClock

    clocks = [PublicClock.of(config.serve["clock"]) for config in read if "clock" in config.serve]
    return max(clocks, key=lambda clock: clock.period_s, default=None)


def _serve_demo(configs: Sequence[str], where: Address, token_file: str | None, workers: int) -> None:
    """Serve real flights from a ledger that is forgotten at the end."""
    if workers != 1:
        raise InvalidOption(
            "--workers and --demo were both given",
            rule="the demo is one process",
            got=workers,
            next_step="drop one of them",
        )
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
    _log()
    show.say(f"farthing answers on http://{host}:{port}")
    if wire is not None:
        show.say(f"and on the PostgreSQL wire, host {host}, port {wire}")


def _log() -> None:
    """Let each request be one line on stderr."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("farthing.server").setLevel(logging.INFO)


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


def require_server(*more: str) -> None:
    """Refuse where the extra is missing."""
    from importlib.util import find_spec

    missing: list[Any] = [name for name in (*_PARTS, *more) if find_spec(name) is None]
    if missing:
        raise DataError(
            "the server is not installed",
            rule="the server is an extra",
            got=f"without {', '.join(missing)}",
            next_step="python -m pip install 'farthing[server]'",
        )
