"""`farthing token list`: who has a token."""

from __future__ import annotations

from farthing.cli.failing import explained
from farthing.cli.input import options


def list(*, tokens: options.Tokens = "farthing.tokens", as_json: options.BareJson = False) -> None:  # noqa: A001  # as it is typed
    """Show who has a token, with which role, and until when.

    Examples:
      farthing token list
    """
    with explained(as_json=as_json):
        from farthing.cli.run.token import list as listed

        listed(tokens, as_json=as_json)
