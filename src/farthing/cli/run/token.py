"""What `farthing token` does: gives tokens, lists who has one, and ends them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farthing.cli import show
from farthing.cli.run.serve import require_server

if TYPE_CHECKING:
    from farthing.server.people import Person


def add(
    name: str,
    role: str,
    share: str | None,
    days: int | None,
    *,
    tokens: str,
    config: str | None,
    as_json: bool,
) -> None:
    """Make a token, give its share of the budget, and show it."""
    require_server()
    from farthing.server.people import Register

    lasts = None if days is None else timedelta(days=days)
    people = Register(Path(tokens))
    people.check(name, role, lasts)
    if share is not None:
        from farthing.cli.run.allot import give

        give(name, share, None, config)
    token = people.add(name, role, lasts=lasts)
    if as_json:
        show.echo_json({"name": name, "role": role, "share": share, "token": token})
    else:
        show.say(token)
        show.say(f"This is shown once. It is for {name}, with the role {role}.", err=True)


def list(tokens: str, *, as_json: bool) -> None:  # noqa: A001  # as the command is typed
    """Show who has a token."""
    require_server()
    from farthing.server.people import Register

    people = [_facts(person) for person in Register(Path(tokens)).everybody()]
    if as_json:
        show.echo_json({"tokens": people})
        return
    heads = [("name", False), ("role", False), ("made", False), ("until", False), ("state", False)]
    lines = [[str(person[head] or "") for head, _ in heads] for person in people]
    show.console().print(show.columns_table(heads, lines) if lines else "nobody has a token yet")


def revoke(name: str, tokens: str, *, as_json: bool) -> None:
    """End somebody's token."""
    require_server()
    from farthing.server.people import Register

    Register(Path(tokens)).revoke(name)
    if as_json:
        show.echo_json({"name": name, "revoked": True})
    else:
        show.say(f"the token of {name} has ended")


def _facts(person: Person) -> dict[str, Any]:
    """Return somebody as plain values."""
    return {
        "name": person.name,
        "role": person.role,
        "made": f"{person.made:%Y-%m-%d %H:%M}",
        "until": None if person.until is None else f"{person.until:%Y-%m-%d %H:%M}",
        "state": person.state(),
    }
