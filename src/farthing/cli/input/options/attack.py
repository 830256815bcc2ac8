"""What is attacked, as it was typed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from farthing.cli.input import options

CLAIM = "Claim"
PEOPLE = "People"
TARGET = "Target"
ATTACK = "Attack"


@dataclass(frozen=True, slots=True)
class AttackOptions:
    """What is attacked and how, as it was typed; None for what was left out."""

    secrets: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The people with their secrets, as they were loaded.", rich_help_panel=PEOPLE
        ),
    ] = None
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Their table in SQL. Default: people.", rich_help_panel=PEOPLE)
    ] = None
    where: Annotated[
        str | None,
        typer.Option(
            metavar="SQL", help="True for those who have the secret. Default: 'secret = 1'.", rich_help_panel=PEOPLE
        ),
    ] = None
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="COLUMN", help="The column that identifies them. Default: id.", rich_help_panel=PEOPLE
        ),
    ] = None
    claim_epsilon: options.ClaimEpsilon = None
    claim_delta: Annotated[
        str | None, typer.Option(metavar="1e-6", help="The delta that goes with it.", rich_help_panel=CLAIM)
    ] = None
    claim_change: Annotated[
        str | None,
        typer.Option(
            metavar="person",
            help="What the promise hides: person, added or taken away (the default), or bit, one secret that changes.",
            rich_help_panel=CLAIM,
        ),
    ] = None
    name: Annotated[
        list[str] | None,
        typer.Option("--attack", metavar="NAME", help="An attack; repeat it for several.", rich_help_panel=ATTACK),
    ] = None
    queries: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="About how many questions each attack asks. Default: 8 for each person.",
            rich_help_panel=ATTACK,
        ),
    ] = None
    seed: options.AttackSeed = 0
    compiler: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How subsets are expressed: vectors, ids, hashes, equalities or marginals.",
            rich_help_panel=ATTACK,
        ),
    ] = None
    speaks: Annotated[
        str | None,
        typer.Option(
            metavar="sql",
            help="sql, which a URL gets, or vector, which a module:function gets: 0 or 1 a person.",
            rich_help_panel=TARGET,
        ),
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'NAME: VALUE'", help="A header that is sent to a URL with each question.", rich_help_panel=TARGET
        ),
    ] = None
    field: Annotated[
        str, typer.Option(metavar="NAME", help="Where the number is in a JSON reply.", rich_help_panel=TARGET)
    ] = "answer"
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.001, help="For one answer.", rich_help_panel=TARGET)
    ] = 30.0
