"""Run the comparison: tune each method's public choice on another seed, then play many sessions of each cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from farthing.errors import InvalidOption
from farthing.experiments import laws
from farthing.experiments.chance import stream
from farthing.experiments.methods import METHODS, Method
from farthing.experiments.setting import Played, Setting
from farthing.experiments.tuned import stored
from farthing.tabular import Tabular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from farthing.experiments.choice import PublicChoice

EPSILONS: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
"""The epsilons of the full comparison."""

QUICK_EPSILONS: Final = (0.1, 1.0)
"""The epsilons of the quick one."""

DELTA: Final = 1e-6
FULL_TRIALS: Final = 1000
QUICK_WORK: Final = 300_000
"""Counts released in one cell of the quick comparison: trials are as many as that allows, from 20 to 1,000."""

NEAR: Final = (0.75, 0.87, 1.15, 1.3)
"""After a coarse sweep, eagerness is tried at these multiples of the best."""

_TUNING_WORK: Final = 20_000
_CELLS: Final = 2_000_000  # numbers held at a time


@dataclass(frozen=True, slots=True)
class ExperimentPlan:
    """What to run.

    Attributes:
        tasks: names out of `laws.TASKS`.
        epsilons: the promises to compare at.
        relative: the target, in (0, 1).
        confidence: how surely it is met.
        trials: sessions a cell; None for as many as a quick run can afford.
        seed: everything drawn follows from it.
        delta: of all promises.
    """

    tasks: tuple[str, ...] = laws.TASKS
    epsilons: tuple[float, ...] = EPSILONS
    relative: float = 0.1
    confidence: float = 0.95
    trials: int | None = FULL_TRIALS
    seed: int = 1
    delta: float = DELTA

    def __post_init__(self) -> None:
        if not 0.01 <= self.relative <= 0.5:
            raise InvalidOption(
                "the target of a comparison is out of range",
                rule="a relative error from 1 % to 50 %",
                got=f"{self.relative:g}",
                next_step="10% is the paper's",
            )
        if self.trials is not None and not 1 <= self.trials <= 100_000:
            raise InvalidOption(
                "the number of trials is out of range",
                rule="1 to 100,000",
                got=self.trials,
                next_step="1000 reproduces the documentation",
            )


@dataclass(frozen=True, slots=True)
class Cell:
    """One method at one promise on one task.

    Attributes:
        returned: mean number of counts returned at the target in one session.
        error: the standard error of that mean.
        within: share of the returned counts that are within the target of the truth; None if none was returned.
        trials: sessions played.
        choice: the public numbers it was tuned to.
    """

    returned: float
    error: float
    within: float | None
    trials: int
    choice: PublicChoice

    @classmethod
    def of(cls, played: Played, choice: PublicChoice) -> Cell:
        """Summarise sessions."""
        trials, total = len(played.returned), int(played.returned.sum())
        error = float(np.std(played.returned) / math.sqrt(trials))
        share = float(played.within.sum()) / total if total else None
        return cls(total / trials, error, share, trials, choice)


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Tabular):
    """All cells of a run.

    Attributes:
        plan: what was run.
        titles: what each task is, by name.
        cells: by task, epsilon and method.
        skipped: tasks whose data are not installed.
    """

    plan: ExperimentPlan
    titles: dict[str, str]
    cells: dict[str, dict[float, dict[str, Cell]]]
    skipped: tuple[str, ...]

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the cells: the target, how much was played, and what was left out."""
        plan = self.plan
        target = f"within {100 * plan.relative:g} %, {plan.confidence:.4g} confidence, delta {plan.delta:g}"
        left_out = (f"skipped, since their data are not installed: {', '.join(self.skipped)}",) if self.skipped else ()
        return f"{target}, seed {plan.seed}", *left_out

    def to_arrow(self) -> pa.Table:
        """Return one row for each task, epsilon and method: what a session returned on average."""
        import pyarrow as pa

        kinds = {"task": pa.string(), "epsilon": pa.float64(), "method": pa.string(), "returned": pa.float64()}
        kinds |= {"error": pa.float64(), "within": pa.float64(), "trials": pa.int64()}
        rows = [
            {"task": task, "epsilon": at, "method": name, "returned": cell.returned, "error": cell.error,
             "within": cell.within, "trials": cell.trials}
            for task, promises in self.cells.items()
            for at, methods in promises.items()
            for name, cell in methods.items()
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, pa.schema(kinds.items()))


def compare(plan: ExperimentPlan, *, told: Callable[[str, int, int], None] | None = None) -> Comparison:
    """Run a comparison.

    Args:
        plan: what to run.
        told: called before each cell with its name, its number from 0 and the number of cells.

    >>> found = compare(Plan(tasks=("equal",), epsilons=(1.0,), trials=2))
    >>> found.cells["equal"][1.0]["oracle"].returned
    145.0
    """
    tasks = {name: laws.task(name) for name in plan.tasks}
    found = {name: task for name, task in tasks.items() if task is not None}
    todo = [(task, epsilon, method) for task in found.values() for epsilon in plan.epsilons for method in METHODS]
    cells: dict[str, dict[float, dict[str, Cell]]] = {name: {at: {} for at in plan.epsilons} for name in found}
    for number, (task, epsilon, method) in enumerate(todo):
        if told is not None:
            told(f"{task.name}, epsilon {epsilon:g}, {method.name}", number, len(todo))
        setting = Setting(task, epsilon, plan.delta, plan.relative, plan.confidence)
        cells[task.name][epsilon][method.name] = run_cell(setting, method, plan.trials, plan.seed)
    skipped = tuple(name for name, task in tasks.items() if task is None)
    return Comparison(plan, {name: task.title for name, task in found.items()}, cells, skipped)


def run_cell(setting: Setting, method: Method, trials: int | None, seed: int) -> Cell:
    """Tune a method and play its sessions in one cell."""
    choice = tuned(setting, method, seed)
    many = max(20, min(1000, QUICK_WORK // _work(setting))) if trials is None else trials
    return Cell.of(played(setting, method, choice, many, seed=seed, role="played"), choice)


def tuned(setting: Setting, method: Method, seed: int) -> PublicChoice:
    """Return a method's public choice: that of the stored sweep where there is one, else that of a sweep.

    A method that is like another has the choice of that one.
    """
    method = next((each for each in METHODS if each.name == method.like), method)
    known = stored().get((setting.task.name, f"{setting.epsilon:g}", method.name))
    standard = Setting(setting.task, setting.epsilon, DELTA, 0.1, 0.95)
    return known if known is not None and setting == standard else sweep(setting, method, seed)


def sweep(setting: Setting, method: Method, seed: int) -> PublicChoice:
    """Return the choice that returns most on average, in sessions drawn from another seed than those reported."""
    choices = method.choices(setting)
    if len(choices) == 1:
        return choices[0]
    trials = max(8, min(300, _TUNING_WORK // _work(setting)))

    def mean(choice: PublicChoice) -> float:
        return float(played(setting, method, choice, trials, seed=seed, role="tuned").returned.mean())

    best = max(choices, key=mean)
    near = [best._replace(eagerness=best.eagerness * factor) for factor in NEAR] if setting.task.picked else []
    return max([best, *near], key=mean)


def played(setting: Setting, method: Method, choice: PublicChoice, trials: int, *, seed: int, role: str) -> Played:
    """Play sessions in parts that fit into memory."""
    drawn = method.like or method.name
    rng = stream(seed, role, setting.task.name, f"{setting.epsilon:g} {setting.relative:g}", drawn)
    return Played.together([method.play(setting, choice, part, rng) for part in _parts(setting, trials)])


def _work(setting: Setting) -> int:
    """Return about how many counts one session releases or chooses among, weighed by what they take."""
    drawn = max(setting.most(setting.gaussian_affordable), setting.most(setting.laplace_affordable))
    return drawn + (setting.task.size // 16 if setting.task.picked else 0)


def _parts(setting: Setting, trials: int) -> Iterator[int]:
    """Yield numbers of trials that add up, each small enough to hold."""
    wide = max(setting.task.size, _work(setting))
    step = max(1, _CELLS // wide)
    for start in range(0, trials, step):
        yield min(step, trials - start)


Plan = ExperimentPlan
"""The name by which users know it."""
