"""What `farthing mcp` does: opens a data set, or a way to a server, and gives agents tools over it."""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

from farthing.cli.input import config as settings
from farthing.errors import DataError, InvalidOption

if TYPE_CHECKING:
    from farthing.server.agents import Counter


def mcp(config: str | None, url: str | None, agent: str) -> None:
    """Serve the tools on stdin and stdout until they are closed."""
    require_mcp()
    from farthing.server.agents import tools

    tools(counter_of(config, url, agent)).run("stdio")


def counter_of(config: str | None, url: str | None, agent: str) -> Counter:
    """Return where the tools take their questions."""
    from farthing.server.agents import LocalCounter, RemoteCounter

    if url is not None:
        from farthing.client import Wire

        token = os.environ.get("FARTHING_TOKEN", "")
        if config is not None or not token:
            raise InvalidOption(
                "settings and --url were both given" if config is not None else "there is no token",
                rule="--url asks a server, with the token in the environment as FARTHING_TOKEN",
                got=config or "",
                next_step="set FARTHING_TOKEN, and name no settings",
            )
        return RemoteCounter(Wire.to(url, token))
    from farthing.cli.run.serve import data_set
    from farthing.server.people import Person
    from farthing.server.service import Service
    from farthing.server.tickets import Tickets

    one = data_set(settings.read(config))
    person = Person(agent, "analyst", "", datetime.now(UTC))
    return LocalCounter(Service({one.name: one}, Tickets(secrets.token_bytes(32))), person)


def require_mcp() -> None:
    """Refuse where the extra is missing."""
    if find_spec("mcp") is None:
        raise DataError(
            "the tools for agents are not installed",
            rule="they are an extra",
            got="without mcp",
            next_step="python -m pip install 'farthing[mcp]'",
        )
