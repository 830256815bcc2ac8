"""A comparison as plain values, as rows of a table, and as Markdown."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from farthing.experiments.methods import METHODS
from farthing.privacy.loss import Gdp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from farthing.experiments.runner import Cell, Comparison

NAMES = tuple(method.name for method in METHODS if not method.like)
"""The methods of the main tables."""

ACCOUNTED = ("unified", *(method.name for method in METHODS if method.like), "farthing")
"""One mechanism under three accountings, then ours: what is accounting, and what is mechanism."""


def plain(found: Comparison) -> dict[str, Any]:
    """Return a comparison as plain values: tasks, then epsilons, then methods."""
    plan = found.plan
    return {
        "relative": plan.relative,
        "confidence": plan.confidence,
        "delta": plan.delta,
        "seed": plan.seed,
        "tasks": {
            task: {f"{epsilon:g}": _methods(found, task, epsilon) for epsilon in plan.epsilons} for task in found.cells
        },
        "titles": found.titles,
        "skipped": list(found.skipped),
    }


def _methods(found: Comparison, task: str, epsilon: float) -> dict[str, Any]:
    """Return one row of plain values by method."""
    return {
        name: {
            "returned": cell.returned,
            "within": cell.within,
            "standard_error": cell.error,
            "trials": cell.trials,
            "rho_needed": rho_needed(found, task, epsilon, name),
            "choice": cell.choice.said(),
        }
        for name, cell in found.cells[task][epsilon].items()
    }


def rho_needed(found: Comparison, task: str, epsilon: float, name: str, goal: str = "unified") -> float | None:
    """Return the budget at which a method returns what the goal's method returns at this epsilon.

    The epsilon is interpolated between those that were run, in logarithms; beyond them there is no number. It is stated
    as rho = mu^2/2 of the Gaussian noise that it allows, a currency that all methods share.
    """
    wanted = found.cells[task][epsilon][goal].returned
    points = [(at, row[name].returned) for at, row in found.cells[task].items()]
    for (low, few), (high, many) in pairwise(points):
        if 0 < few <= wanted <= many and few < many:
            part = math.log(wanted / few) / math.log(many / few)
            reached = math.exp((1 - part) * math.log(low) + part * math.log(high))
            return Gdp.from_epsilon(reached, delta=found.plan.delta).mu ** 2 / 2
    return None


def rows(found: Comparison, task: str, names: Sequence[str] = NAMES) -> list[list[str]]:
    """Return the cells of a table: one line an epsilon, what each method returned and the share within the target."""
    return [[f"{epsilon:g}", *(_said(row[name]) for name in names)] for epsilon, row in found.cells[task].items()]


def accounting(found: Comparison, task: str) -> str:
    """Return as Markdown what one mechanism returns under three accountings, and what ours returns."""
    row = found.cells[task]
    trials = min(cell.trials for cells in row.values() for cell in cells.values())
    lines = [
        [f"{at:g}", *(f"{cells[name].returned:,.2f} ± {cells[name].error:.2f}" for name in ACCOUNTED)]
        for at, cells in row.items()
    ]
    told = f"**{task}**: within {100 * found.plan.relative:g} %, {trials:,} sessions a cell, ± one standard error."
    return f"{told}\n\n{_table(['epsilon', *ACCOUNTED], lines)}"


def markdown(found: Comparison, *, brief: bool = False) -> str:
    """Return the tables of all tasks as Markdown."""
    plan, parts = found.plan, []
    for task, title in found.titles.items():
        trials = min(cell.trials for row in found.cells[task].values() for cell in row.values())
        parts += [
            f"**{task}**: {title}; within {100 * plan.relative:g} %, {trials:,} sessions a cell.",
            _table(["epsilon", *NAMES], rows(found, task)),
        ]
        if not brief and task != "equal":
            parts += [
                "The rho at which each returns what `unified` returns at that epsilon:",
                _table(["epsilon", *NAMES], _needs(found, task)),
            ]
        if not brief:
            parts += ["The public choices of the methods:", _table(["epsilon", *NAMES[:-1]], _choices(found, task))]
    return "\n\n".join(parts)


def _said(cell: Cell) -> str:
    """Return one cell in words."""
    return f"{_number(cell.returned)} ({'–' if cell.within is None else f'{100 * cell.within:.1f} %'})"


def _number(value: float) -> str:
    """Return a mean number of counts, with the decimals that matter."""
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def _needs(found: Comparison, task: str) -> list[list[str]]:
    """Return rows of rho needed."""
    needed = {at: [rho_needed(found, task, at, name) for name in NAMES] for at in found.plan.epsilons}
    return [[f"{at:g}", *("–" if rho is None else f"{rho:.3g}" for rho in line)] for at, line in needed.items()]


def _choices(found: Comparison, task: str) -> list[list[str]]:
    """Return rows of choices."""
    return [
        [
            f"{at:g}",
            *(", ".join(_word(*pair) for pair in row[name].choice.said().items()) or "–" for name in NAMES[:-1]),
        ]
        for at, row in found.cells[task].items()
    ]


def _word(name: str, value: float | str) -> str:
    """Return one public number in words."""
    if name == "currency":
        return str(value)
    return name if value is True else f"{name} {value:.3g}"


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    shown = [heads, ["---:"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in shown)


__all__ = ["ACCOUNTED", "NAMES", "accounting", "markdown", "plain", "rho_needed", "rows"]
