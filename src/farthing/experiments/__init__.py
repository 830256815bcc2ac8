"""The experiment of Rogers, Samorodnitsky, Wu and Ramdas (2023), rerun: how far one budget goes, method by method.

`compare(Plan(...))` plays simulated sessions on made-up or public counts; nothing here touches private data.
"""

from farthing.experiments.laws import TASKS, Task
from farthing.experiments.methods import METHODS, Method
from farthing.experiments.runner import Cell, Comparison, Plan, compare

__all__ = ["METHODS", "TASKS", "Cell", "Comparison", "Method", "Plan", "Task", "compare"]


def __dir__() -> list[str]:
    return sorted(__all__)
