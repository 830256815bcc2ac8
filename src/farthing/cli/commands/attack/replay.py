"""`farthing attack replay`: the recorded answers of a real attack, solved for the secrets."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli.failing import explained
from farthing.cli.input import options


def replay(
    *,
    answers: Annotated[
        str, typer.Option(metavar="FILE", help="The recorded answers, CSV or Parquet.", rich_help_panel=options.DATA)
    ],
    people: Annotated[
        str, typer.Option(metavar="FILE", help="The people and their secrets.", rich_help_panel=options.DATA)
    ],
    claim_epsilon: options.ClaimEpsilon = None,
    as_json: options.Json = False,
) -> None:
    """Solve the recorded answers of a real attack for the secrets.

    The answers are those of the attack of Cohen and Nissim on Diffix: columns
    range_low, range_high, exponent, multiplier, offset, answer. The people:
    range_low, range_high, client_id, status_is_c.

    Examples:
      farthing attack replay --answers answers.parquet --people people.parquet
      farthing attack replay --answers answers.csv --people people.csv --json
    """
    with explained(as_json=as_json):
        from farthing.cli.run.attack import replay

        code = replay(answers, people, claim_epsilon, as_json=as_json)
    raise typer.Exit(code)
