"""`farthing compare`: how many counts one budget returns at a target, method by method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from farthing.cli import flags  # noqa: TC001  typer reads the annotations
from farthing.cli.failing import explained

if TYPE_CHECKING:
    from farthing.experiments import Comparison, Plan


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(compare)


def compare(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Two epsilons, four tasks and fewer sessions: under a minute.")
    ] = False,
    task: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="equal, zipf300, zipf1e6, flights, flights-tailnum or flights-hour."),
    ] = None,
    relative: Annotated[
        str, typer.Option(metavar="10%", help="The target: each count within this part of the truth, 95 %.")
    ] = "10%",
    trials: Annotated[
        str | None, typer.Option(metavar="1000", help="Sessions in each cell. Default: 1000; fewer if quick.")
    ] = None,
    seed: Annotated[str, typer.Option(metavar="1", help="Everything drawn follows from it.")] = "1",
    as_json: flags.Json = False,
    chart: flags.Chart = None,
) -> None:
    """Compare how many counts one budget returns at a named accuracy.

    Reruns the experiment of Rogers, Samorodnitsky, Wu and Ramdas (2023) on counts
    that are made up or public: find the largest count not yet returned, release
    it within 10 % of the truth, go on until (epsilon, 1e-6) is spent. Shows the
    mean number of counts returned, and how many of them are within the target.
    Spends nothing.

    Examples:
      farthing compare --quick
      farthing compare --task zipf1e6 --relative 5% --chart zipf.svg
    """
    with explained(as_json=as_json):
        from farthing import charts

        path = None if chart is None else charts.require_format(chart)
        if path is not None:
            charts.require_charts()
        plan = _plan(tuple(task or ()), relative, trials, seed, quick=quick)
        found = _run(plan)
        if path is not None:
            from farthing.experiments.picture import returned_chart

            charts.save(returned_chart(found, next(iter(found.cells))), path)
        if as_json:
            from farthing.cli import show
            from farthing.experiments.tables import plain

            show.echo_json(plain(found))
        else:
            _show(found)


def _plan(names: tuple[str, ...], relative: str, trials: str | None, seed: str, *, quick: bool) -> Plan:
    """Return what to run from what was typed."""
    from farthing.cli import options
    from farthing.experiments import TASKS, Plan
    from farthing.experiments.runner import EPSILONS, FULL_TRIALS, QUICK_EPSILONS

    default = tuple(name for name in TASKS if "-" not in name) if quick else TASKS
    usual = None if quick else FULL_TRIALS
    return Plan(
        tasks=tuple(dict.fromkeys(names)) or default,
        epsilons=QUICK_EPSILONS if quick else EPSILONS,
        relative=options.fraction("--relative", relative),
        trials=usual if trials is None else _whole("--trials", trials, 1, 1000),
        seed=_whole("--seed", seed, 0, 1),
    )


def _whole(option: str, text: str, least: int, usual: int) -> int:
    """Return a whole number that was typed, of at most nine digits."""
    from farthing.errors import InvalidOption

    typed = text.strip()
    if not typed.isascii() or not typed.isdigit() or len(typed) > 9 or int(typed) < least:
        raise InvalidOption(
            f"{option} is not such a number",
            rule=f"a whole number >= {least}, of at most nine digits",
            got=text,
            next_step=f"write it as in {option} {usual}",
        )
    return int(text)


def _run(plan: Plan) -> Comparison:
    """Run a comparison; a bar on the terminal shows how far it is."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from farthing.experiments import compare as run

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task("compare", total=None)
        return run(plan, told=lambda name, at, of: bar.update(line, description=name, completed=at, total=of))


def _show(found: Comparison) -> None:
    """Print one table a task: what each method returned at each epsilon, and the share within the target."""
    from farthing.cli import show
    from farthing.experiments.tables import ACCOUNTED, NAMES, rows

    out, plan = show.console(), found.plan
    out.print(
        f"counts returned within {100 * plan.relative:g} % under (epsilon, {plan.delta:g}), "
        "and the share of them that truly is"
    )
    for name, title in found.titles.items():
        out.print(f"\n{name}: {title}", style="bold")
        out.print(show.columns_table([("epsilon", True), *((each, True) for each in NAMES)], rows(found, name)))
        out.print(
            "what is accounting, and what is mechanism: the releases of `unified` under three accountings, and ours"
        )
        out.print(
            show.columns_table([("epsilon", True), *((each, True) for each in ACCOUNTED)], rows(found, name, ACCOUNTED))
        )
    for name in found.skipped:
        out.print(f"{name} skipped: its flights are an extra, python -m pip install 'farthing[demo]'")
    out.print("losses of different counts add: a user may be in all of them; `oracle` knows every count", style="dim")
