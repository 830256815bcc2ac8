"""Accuracy-first differential privacy: name the accuracy, pay the least privacy loss for it.

>>> import pyarrow as pa
>>> import farthing
>>> rides = pa.table({"zone": ["a"] * 900 + ["b"] * 40})
>>> session = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
>>> answer = session.count(by="zone", keys={"zone": ["a", "b"]}, relative=0.1, absolute=50)
>>> len(answer.value)
2
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from farthing.version import VERSION

if TYPE_CHECKING:
    from farthing.accuracy.target import Target
    from farthing.chosen import Chosen, Ranking
    from farthing.client import connect
    from farthing.errors import (
        BudgetExceeded,
        DataError,
        FarthingError,
        InvalidBounds,
        InvalidBudget,
        InvalidKeys,
        InvalidTarget,
        LedgerError,
        LedgerMismatch,
        TargetMissed,
        UnsupportedQuery,
    )
    from farthing.planning import Plan
    from farthing.privacy.budget import Budget
    from farthing.privacy.loss import BoundedRange, Gdp, Loss, Pure, Zcdp
    from farthing.query.bounding import Bounds
    from farthing.query.calendar import calendar
    from farthing.query.reading import Csv
    from farthing.release import Answer
    from farthing.released import Release
    from farthing.released_products import ProductRelease
    from farthing.session import Progress, Session
    from farthing.trace import Trace
    from farthing.workload import Workload

__version__ = VERSION

_HOMES = {
    "Answer": "release",
    "BoundedRange": "privacy.loss",
    "Bounds": "query.bounding",
    "Budget": "privacy.budget",
    "BudgetExceeded": "errors",
    "Chosen": "chosen",
    "Csv": "query.reading",
    "DataError": "errors",
    "FarthingError": "errors",
    "Gdp": "privacy.loss",
    "InvalidBounds": "errors",
    "InvalidBudget": "errors",
    "InvalidKeys": "errors",
    "InvalidTarget": "errors",
    "LedgerError": "errors",
    "LedgerMismatch": "errors",
    "Loss": "privacy.loss",
    "Plan": "planning",
    "Progress": "session",
    "Pure": "privacy.loss",
    "Ranking": "chosen",
    "ProductRelease": "released_products",
    "Release": "released",
    "Session": "session",
    "Target": "accuracy.target",
    "TargetMissed": "errors",
    "Trace": "trace",
    "UnsupportedQuery": "errors",
    "Workload": "workload",
    "Zcdp": "privacy.loss",
    "calendar": "query.calendar",
    "connect": "client",
}

_PACKAGES = frozenset({"attacks", "audit", "limits", "models", "workloads"})

__all__ = [
    "Answer",
    "BoundedRange",
    "Bounds",
    "Budget",
    "BudgetExceeded",
    "Chosen",
    "Csv",
    "DataError",
    "FarthingError",
    "Gdp",
    "InvalidBounds",
    "InvalidBudget",
    "InvalidKeys",
    "InvalidTarget",
    "LedgerError",
    "LedgerMismatch",
    "Loss",
    "Plan",
    "ProductRelease",
    "Progress",
    "Pure",
    "Ranking",
    "Release",
    "Session",
    "Target",
    "TargetMissed",
    "Trace",
    "UnsupportedQuery",
    "Workload",
    "Zcdp",
    "__version__",
    "calendar",
    "connect",
]


def load_ipython_extension(shell: Any) -> None:
    """Give a notebook the magic `%%farthing`, by `%load_ext farthing`."""
    notebook = import_module("farthing.notebook").Notebook(shell)
    shell.register_magic_function(notebook.answered, magic_kind="cell", magic_name="farthing")


def __getattr__(name: str) -> Any:
    """Import a public name the first time it is used, so that `import farthing` is quick."""
    if name in _PACKAGES:
        return import_module(f"farthing.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'farthing' has no attribute {name!r}")
    value = getattr(import_module(f"farthing.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
