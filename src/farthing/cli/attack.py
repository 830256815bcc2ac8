"""`farthing attack`: attack a system of your own, get a verdict; replay a real attack; see all of them in a demo."""

from __future__ import annotations

from typing import Annotated

import typer

from farthing.cli import flags
from farthing.cli.failing import explained

CLAIM = "Claim"
PEOPLE = "People"
TARGET = "Target"
ATTACK = "Attack"

Epsilon = Annotated[
    str | None,
    typer.Option(
        "--claim-epsilon", metavar="1", help="The epsilon that the target promises, > 0.", rich_help_panel=CLAIM
    ),
]
Seed = Annotated[
    int, typer.Option(metavar="N", min=0, help="Of everything that is drawn for the attack.", rich_help_panel=ATTACK)
]

attack = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="""Attack a system that answers questions about people, and get a verdict.

    The attacks are those that broke real systems: linear reconstruction,
    averaging, differencing, everything on one person, noise in floating point,
    membership inference, and the two attacks on Diffix.

    Start here:
      farthing attack demo                        which attack breaks what
      farthing attack secrets people.csv          load this into your system
      farthing attack run https://me/sql --secrets people.csv --claim-epsilon 1

    Exit codes: 0 holds, 10 broken, 11 undecided; 2 usage, 4 data or files.
    """,
)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(attack, name="attack")


@attack.command()
def demo(*, seed: Seed = 0, as_json: flags.Json = False, chart: flags.Chart = None) -> None:
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
        from farthing.cli.attacking import demo

        code = demo(seed, as_json=as_json, chart=chart)
    raise typer.Exit(code)


@attack.command()
def run(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="An http(s) URL, a database URL, module:function, farthing.toml or its folder, or a built-in name.",
        ),
    ],
    *,
    secrets: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The people with their secrets, as they were loaded.", rich_help_panel=PEOPLE
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Their table in SQL: people.", rich_help_panel=PEOPLE)
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="True for those who have the secret: 'secret = 1'.", rich_help_panel=PEOPLE),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="What tells them apart: id.", rich_help_panel=PEOPLE)
    ] = None,
    claim_epsilon: Epsilon = None,
    claim_delta: Annotated[
        str | None, typer.Option(metavar="1e-6", help="The delta that goes with it.", rich_help_panel=CLAIM)
    ] = None,
    claim_change: Annotated[
        str | None,
        typer.Option(
            metavar="person",
            help="What the promise hides: person, added or taken away (the default), or bit, one secret that changes.",
            rich_help_panel=CLAIM,
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--attack", metavar="NAME", help="An attack; repeat it for several.", rich_help_panel=ATTACK),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="About so many questions an attack: 8 a person.", rich_help_panel=ATTACK),
    ] = None,
    seed: Seed = 0,
    compiler: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How subsets are said: vectors, ids, hashes, equalities or marginals.",
            rich_help_panel=ATTACK,
        ),
    ] = None,
    speaks: Annotated[
        str | None,
        typer.Option(
            metavar="sql",
            help="sql, which a URL gets, or vector, which a module:function gets: 0 or 1 a person.",
            rich_help_panel=TARGET,
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(metavar="'NAME: VALUE'", help="Sent to a URL with each question.", rich_help_panel=TARGET),
    ] = None,
    field: Annotated[
        str, typer.Option(metavar="NAME", help="Where the number is in a JSON reply.", rich_help_panel=TARGET)
    ] = "answer",
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.001, help="For one answer.", rich_help_panel=TARGET)
    ] = 30.0,
    as_json: flags.Json = False,
    chart: flags.Chart = None,
) -> None:
    """Attack one system, and say whether it keeps what it claims.

    Guesses the secrets of people whose secrets were drawn by coin tosses, from
    the system's answers alone. So many right guesses either fit the claim or
    refute it: "broken" is wrong at most once in a thousand runs. Without a
    claim the system is judged against epsilon 1 for one secret.

    A farthing.toml is attacked with its whole budget, on books in memory: the
    ledger is left alone.

    Built-in: exact, rounded, suppressed, subsample, fresh-noise, diffix-birch,
    diffix-cedar, diffix-dogwood, honest, leaky-ledger, off-by-two, float-noise,
    farthing.

    Examples:
      farthing attack secrets people.csv
      farthing attack run https://me/sql --secrets people.csv --claim-epsilon 1
      farthing attack run postgresql+psycopg://me@host/db --secrets people.csv
      farthing attack run mine:answer --secrets people.csv --attack linear --json
      farthing attack run rounded --chart rounded.svg
    """
    with explained(as_json=as_json):
        from farthing.cli.attacked import Order
        from farthing.cli.attacking import run

        order = Order(
            target=target,
            secrets=secrets,
            facts={"table": table, "secret": where, "id": id_column},
            claim=(claim_epsilon, claim_delta, claim_change),
            speaks=speaks,
            headers=tuple(header or ()),
            field=field,
            timeout_s=timeout,
        )
        code = run(order, name or (), queries, seed, compiler, as_json=as_json, chart=chart)
    raise typer.Exit(code)


@attack.command()
def replay(
    *,
    answers: Annotated[
        str, typer.Option(metavar="FILE", help="The recorded answers, CSV or Parquet.", rich_help_panel=flags.DATA)
    ],
    people: Annotated[
        str, typer.Option(metavar="FILE", help="The people and their secrets.", rich_help_panel=flags.DATA)
    ],
    claim_epsilon: Epsilon = None,
    as_json: flags.Json = False,
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
        from farthing.cli.attacking import replay

        code = replay(answers, people, claim_epsilon, as_json=as_json)
    raise typer.Exit(code)


@attack.command()
def secrets(
    path: Annotated[str, typer.Argument(metavar="FILE", help="A .csv or .parquet file, which must not exist yet.")],
    *,
    n: Annotated[int, typer.Option("--n", metavar="200", min=1, help="How many people.")] = 200,
    attributes: Annotated[
        int, typer.Option(metavar="1000", min=0, help="Columns a1, a2, ... for the membership attack.")
    ] = 0,
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="The same people again; for tests.")] = None,
) -> None:
    """Draw people with random secrets, to load into the system to attack.

    Columns: id, age, sex, area, and secret, a fair coin. Load the whole file
    into a table "people" of a copy of your system, and give the same file to
    `farthing attack run`, which scores its guesses by it.

    Examples:
      farthing attack secrets people.csv
      farthing attack secrets people.parquet --n 1000 --attributes 1000
    """
    with explained():
        from farthing.cli.attacking import secrets

        secrets(path, n, attributes, seed)
