"""`farthing thaw`: one analyst, or everybody, may be charged again."""

from __future__ import annotations

from farthing.cli.failing import explained
from farthing.cli.input import options


def thaw(
    name: options.Whose = None,
    *,
    config: options.LedgerConfig = None,
    as_json: options.BareJson = False,
) -> None:
    """Let one analyst, or everybody, be charged again after `freeze`.

    Whoever was frozen by name stays so until they are thawed by name.

    Examples:
      farthing thaw
      farthing thaw alice
    """
    with explained(as_json=as_json):
        from farthing.cli.run.thaw import thaw

        thaw(name, config, as_json=as_json)
