"""What `farthing attack` does: runs attacks on what was named, and shows what they found."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from farthing.cli import show
from farthing.cli.input import typed
from farthing.cli.input.attack_target import TypedTarget, opened_target
from farthing.cli.input.charts import chart_path
from farthing.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from farthing.attacks import AttackResult
    from farthing.attacks.running import AttackReport
    from farthing.cli.input.options.attack import AttackOptions

_WIDTH: Final = 150


def run(target: str, given: AttackOptions, *, as_json: bool, chart: str | None) -> int:
    """Attack, show, and return the exit code."""
    from farthing import attacks, charts

    drawn = chart_path(chart)
    order, names = TypedTarget(target, given), given.name or ()
    effort = attacks.Effort(given.queries, given.seed, given.compiler)
    with opened_target(order, effort) as opened, _progress(len(names)) as tell:
        report = attacks.run(opened, names or None, effort, progress=tell)
    if as_json:
        show.echo_json(report.to_dict())
    else:
        _show(report, order.hint)
    if drawn is not None:
        charts.save(report.chart(), drawn)
    return report.exit_code


def demo(seed: int, *, as_json: bool, chart: str | None) -> int:
    """Run all cases, show them, and return the exit code."""
    from farthing import charts
    from farthing.attacks.demonstration import cases, curves
    from farthing.attacks.picture import demonstration_chart

    drawn = chart_path(chart)
    todo = cases(seed)
    results = []
    with _progress(len(todo)) as tell:
        for case in todo:
            tell(f"{case.target}: {case.attack}")
            results.append(case.run())
        found = curves(seed)
    broken = {case.target for case, result in zip(todo, results, strict=True) if result.verdict == "broken"}
    wronged = sorted(broken & {case.target for case in todo if case.honest})
    missed = sorted({case.target for case in todo if not case.honest} - broken)
    code = 10 if wronged else 11 if missed else 0
    if as_json:
        rows = [
            {"system": case.target, "honest": case.honest} | result.to_dict()
            for case, result in zip(todo, results, strict=True)
        ]
        show.echo_json({"attacks": rows, "curves": found, "wronged": wronged, "missed": missed, "exit_code": code})
    else:
        _show_demo([case.target for case in todo], results, found, wronged, missed)
    if drawn is not None:
        charts.save(demonstration_chart(found, results), drawn)
    return code


def replay(answers: str, people: str, epsilon: str | None, *, as_json: bool) -> int:
    """Replay a recorded attack, show it, and return the exit code."""
    from farthing import attacks

    claim = attacks.UNSTATED if epsilon is None else attacks.Claim(typed.amount("--claim-epsilon", epsilon))
    found = attacks.replay(answers, people, claim=claim)
    if as_json:
        show.echo_json(found.to_dict() | {"exit_code": attacks.EXIT_CODES[found.verdict]})
        return attacks.EXIT_CODES[found.verdict]
    out = show.console(width=_WIDTH)
    heads = (("ids", False), ("people", True), ("answers", True), ("noise", True), ("wrong", True))
    rows = [
        (f"{part.range_low} to {part.range_high}", f"{part.people:,}", f"{part.answers:,}", f"{part.noise_sd:.2f}",
         f"{part.wrong:,}")
        for part in found.parts
    ]  # fmt: skip
    out.print(show.columns_table(heads, rows))
    out.print(f"{found.people - found.wrong:,} of {found.people:,} secrets guessed right, in {found.seconds:.1f} s")
    out.print(f"epsilon at least {found.epsilon_lower:.3g} for a change of one bit, {found.confidence:.1%} sure")
    out.print(f"verdict  {found.verdict.upper()}")
    return attacks.EXIT_CODES[found.verdict]


def secrets(path: str, n: int, attributes: int, seed: int | None) -> None:
    """Write people with random secrets to a new file."""
    from farthing import attacks

    if Path(path).exists():
        raise InvalidOption(
            "this file exists",
            rule="secrets that were loaded into a system are not drawn again",
            got=path,
            next_step="name another file, or remove it",
        )
    attacks.secrets(n, seed, path, attributes=attributes)
    show.console().print(
        f"wrote {path}: {n:,} people. Load it as the table people, then\n"
        f"farthing attack run TARGET --secrets {path} --claim-epsilon 1"
    )


@contextmanager
def _progress(steps: int) -> Iterator[Callable[[str], None]]:
    """Show what is being done, on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task, done = bar.add_task("attack", total=steps or None), iter(range(10**9))
        yield lambda what: bar.update(task, description=what, completed=next(done))


def _chance(p_value: float) -> str:
    """Return a p-value in words: none is told to be less than the level that verdicts are made for."""
    from farthing.attacks.verdict import shown_chance

    return f"p = {p_value:.2g}" if shown_chance(p_value) == p_value else f"p < {shown_chance(p_value):g}"


def _cells(result: AttackResult) -> tuple[str, ...]:
    """Return what a table shows of one attack."""
    low, high = result.interval
    guessed = f"{result.accuracy:.1%}" if high - low < 1 else "-"
    between = f"{low:.1%} .. {high:.1%}" if high - low < 1 else "-"
    return (
        result.attack,
        f"{result.answered:,} of {result.sent:,}",
        guessed,
        between,
        f"{result.cap:.1%}",
        f"{result.epsilon_lower:.2f}",
        result.verdict.upper() if result.verdict == "broken" else result.verdict,
    )


_HEADS: Final = (
    ("attack", False),
    ("answered", True),
    ("right", True),
    ("95% interval", True),
    ("claim allows", True),
    ("epsilon >=", True),
    ("verdict", False),
)


def _show(report: AttackReport, hint: str) -> None:
    """Print a report: a row an attack, then the verdict."""
    out = show.console(width=_WIDTH)
    out.print(show.columns_table(_HEADS, [_cells(result) for result in report.results]))
    stated = "" if report.stated else " (none was stated)"
    out.print(f"target   {report.target}")
    out.print(f"claim    {report.claim}{stated}")
    out.print(f"epsilon  at least {report.epsilon_lower:.3g} for a change of one bit, {report.confidence:.1%} sure")
    for reason in report.reasons[:3]:
        out.print(f"refused  {reason}")
    if hint and not any(result.answered for result in report.results):
        out.print(f"hint     {hint}")
    if report.needs:
        out.print(f"needs    {report.needs}")
    out.print(f"verdict  {report.verdict.upper()}, {_chance(report.p_value)} if the claim were kept")


def _show_demo(
    names: Sequence[str],
    results: Sequence[AttackResult],
    curves: Mapping[str, Mapping[int, float]],
    wronged: Sequence[str],
    missed: Sequence[str],
) -> None:
    """Print which attack broke what, and how accuracy grows with questions."""
    out = show.console(width=_WIDTH)
    told = [("", *names)[place] for place in range(len(names))]
    rows = [
        ("" if name == before else name, *_cells(result))
        for name, before, result in zip(names, told, results, strict=True)
    ]
    out.print(show.columns_table((("system", False), *_HEADS), rows))
    out.print("Secrets guessed right by the attack of Cohen and Nissim, after so many questions:")
    marks = list(next(iter(curves.values())))
    heads = (("system", False), *((f"{mark:,}", True) for mark in marks))
    out.print(show.columns_table(heads, [(name, *(f"{curve[mark]:.0%}" for mark in marks))
                                         for name, curve in curves.items()]))  # fmt: skip
    out.print(f"{show.many(len(set(names)), 'system')}, {show.many(len(results), 'attack')}")
    out.print(f"honest, and called broken: {', '.join(wronged) or 'none'}")
    out.print(f"broken, and not found to be: {', '.join(missed) or 'none'}")
