"""`farthing attack demo`: every attack on every kind of system."""

from __future__ import annotations

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options


def demo(*, seed: options.AttackSeed = 0, as_json: options.Json = False, chart: options.Chart = None) -> None:
    """Run every attack on every kind of system, and show which broke what.

    Attacks exact answers, rounding, suppression, samples, noise without a
    budget, three versions of Diffix, three systems with bugs, an honest
    mechanism, and farthing. Takes about half a minute.

    Exit codes: 0 if all that should break broke and nothing else, 10 if an
    honest system was called broken, 11 if a broken one was not.

    Examples:
      farthing attack demo
      farthing attack demo --chart attacks.svg
      farthing attack demo --json > attacks.json
    """
    with explained(as_json=as_json):
        from farthing.cli.run.attack import demo

        code = demo(seed, as_json=as_json, chart=chart)
    raise typer.Exit(code)
