"""`farthing audit --self`: lower bounds on the loss of every mechanism as installed, and the oracles, on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from farthing.cli.failing import explained

if TYPE_CHECKING:
    from farthing.audit import Report


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


def audit(
    *,
    itself: Annotated[bool, typer.Option("--self", help="Audit the farthing that is installed.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Some minutes instead of one: more of everything.")] = False,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Ask the same random questions again; noise has no seed.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
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
        from farthing.errors import InvalidOption

        if not itself:
            raise InvalidOption(
                "nothing was named to be audited",
                rule="--self audits the farthing that is installed",
                next_step="farthing audit --self; samples of your own are audited in Python, with farthing.audit",
            )
        report = _audited(seed, full=full)
        if as_json:
            from farthing.cli.show import echo_json

            echo_json(report.to_dict())
        else:
            _show(report)
    raise typer.Exit(report.exit_code)


def _audited(seed: int | None, *, full: bool) -> Report:
    """Return the report, with a progress bar on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    from farthing.audit import self_audit

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("audit", total=None)

        def tell(what: str, done: int, steps: int) -> None:
            """Move the bar."""
            bar.update(task, description=what, completed=done, total=steps)

        return self_audit(quick=not full, seed=seed, progress=tell)


def _show(report: Report) -> None:
    """Print the page."""
    from farthing.cli.show import columns_table, console

    out = console()
    heads = (
        ("mechanism", False),
        ("", False),
        ("claimed", True),
        ("found at least", True),
        ("verdict", False),
        ("sees from", True),
        ("planted bug", False),
        ("seen", False),
    )
    rows = [
        (
            row.name,
            row.parameter,
            f"{row.claimed:.4g}",
            f"{row.found:.4g}",
            "BROKEN" if row.broken else "holds",
            f"x {row.sees:.3g}" if row.found else "-",
            row.bug,
            "yes" if row.caught else "NO",
        )
        for row in report.rows
    ]
    out.print(columns_table(heads, rows))
    for line in report.lines():
        out.print(line)
