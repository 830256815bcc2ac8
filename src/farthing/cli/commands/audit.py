"""`farthing audit --self`: lower bounds on the loss of every mechanism as installed, and the oracles, on one page."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options


def audit(
    *,
    itself: Annotated[bool, typer.Option("--self", help="Audit the farthing that is installed.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Some minutes instead of one: more of everything.")] = False,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Ask the same random questions again; noise has no seed.")
    ] = None,
    as_json: options.BareJson = False,
) -> None:
    """Try to prove that farthing leaks more than it books.

    Draws every mechanism thousands of times on two tables that differ in one
    person, and bounds its loss from below; runs the same tests on planted bugs,
    to show what they would have seen; then checks that neighbours get equal
    answers, errors and prices, and that no interval is too good for its price.
    Needs no data and spends nothing.

    Exit codes: 0 holds, 10 broken, 11 undecided (a planted bug was not seen).

    Examples:
      farthing audit --self
      farthing audit --self --json > audit.json
      farthing audit --self --full --seed 7
    """
    with explained(as_json=as_json):
        from farthing.cli.run.audit import audit

        code = audit(seed, itself=itself, full=full, as_json=as_json)
    raise typer.Exit(code)
