"""`farthing freeze`: nothing more is charged, to one analyst or to anybody."""

from __future__ import annotations

from farthing.cli.failing import explained
from farthing.cli.input import options


def freeze(
    name: options.Whose = None,
    *,
    config: options.LedgerConfig = None,
    as_json: options.BareJson = False,
) -> None:
    """Charge nothing more, to one analyst or to anybody, until `thaw`.

    It holds at once, for every process and server on this ledger. What was
    released before stays free to ask again. It costs nothing, and is an entry
    of the history.

    Examples:
      farthing freeze
      farthing freeze alice
    """
    with explained(as_json=as_json):
        from farthing.cli.run.freeze import freeze

        freeze(name, config, as_json=as_json)
