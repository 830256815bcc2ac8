"""What `farthing compare` does: runs the experiment, and shows its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from farthing.cli import show
from farthing.cli.input import typed
from farthing.cli.input.charts import chart_path
from farthing.errors import InvalidOption

if TYPE_CHECKING:
    from farthing.experiments import Comparison, Plan


def compare(
    names: tuple[str, ...],
    relative: str,
    trials: str | None,
    seed: str,
    *,
    quick: bool,
    as_json: bool,
    chart: str | None,
) -> None:
    """Run the comparison; print its tables or JSON, and draw when asked."""
    path = chart_path(chart)
    plan = _plan(names, relative, trials, seed, quick=quick)
    found = _run(plan)
    if path is not None:
        from farthing import charts
        from farthing.experiments.picture import returned_chart

        charts.save(returned_chart(found, next(iter(found.cells))), path)
    if as_json:
        from farthing.experiments.tables import plain

        show.echo_json(plain(found))
    else:
        _show(found)


def _plan(names: tuple[str, ...], relative: str, trials: str | None, seed: str, *, quick: bool) -> Plan:
    """Return what to run from what was typed."""
    from farthing.experiments import TASKS, Plan
    from farthing.experiments.runner import EPSILONS, FULL_TRIALS, QUICK_EPSILONS

    default = tuple(name for name in TASKS if "-" not in name) if quick else TASKS
    usual = None if quick else FULL_TRIALS
    return Plan(
        tasks=tuple(dict.fromkeys(names)) or default,
        epsilons=QUICK_EPSILONS if quick else EPSILONS,
        relative=typed.fraction("--relative", relative),
        trials=usual if trials is None else _whole("--trials", trials, 1, 1000),
        seed=_whole("--seed", seed, 0, 1),
    )


def _whole(option: str, text: str, least: int, usual: int) -> int:
    """Return a whole number that was typed, of at most nine digits."""
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
