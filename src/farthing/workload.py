"""What leaves of many questions under one budget: the answers, and what the others would have cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from farthing.errors import UnsupportedQuery
from farthing.privacy.words import said, state
from farthing.tabular import Tabular

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from farthing.errors import FarthingError
    from farthing.planning import Plan
    from farthing.privacy.loss import Booked
    from farthing.release import Answer


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Workload(Tabular):
    """The answers of a workload, in the order in which they were asked, and what is unanswered.

    Attributes:
        answers: by name.
        unanswered: by name, the plans of the questions that did not fit: their prices, and in `fitting` what would.
        failed: by name, the error that ended the workload, if one did; what was answered before stands.
        plans: by name, all plans as they were before the first question was asked, in the caller's order.
        paid: what the answers cost together; a question that failed counts with its worst price, which stays charged.
        allowed: what the workload was allowed, or None for all that is left.
        remaining: what the ledger had left at the end.
        delta: the delta at which epsilons of this ledger are stated.
        dry: whether nothing was asked; `answers` is empty then, and `unanswered` holds what would not fit.
        short: by name, what to do about a question whose cap is too small for its target, where that would show: in a
            dry run, or in an answer that did not meet it. Such a question fits and is answered all the same.

    >>> import pyarrow as pa
    >>> import farthing
    >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> done = s.workload(["SELECT COUNT(*) AS n FROM data", {"ask": "count", "where": "x < 100"}], absolute=50)
    >>> list(done.answers), list(done.unanswered), done.complete
    (['q1', 'q2'], [], True)
    """

    most_shown: ClassVar[int | None] = None
    missing: ClassVar[str] = ""

    answers: Mapping[str, Answer]
    unanswered: Mapping[str, Plan]
    plans: Mapping[str, Plan]
    paid: Booked
    allowed: Booked | None
    remaining: Booked
    delta: float
    failed: Mapping[str, FarthingError] = field(default_factory=dict)
    dry: bool = False
    short: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Answer:
        """Return the answer of a question, by its name."""
        return self.answers[name] if name in self.answers else self._absent(name)

    def _absent(self, name: str) -> NoReturn:
        """Refuse the answer of a question that has none, and say where its plan is."""
        asked = name in self.plans
        raise UnsupportedQuery(
            f"the workload has no answer of {name!r}" if asked else f"the workload has no question {name!r}",
            construct="unknown question",
            rule="answers are called by the names of the questions that were answered",
            got=self.caption,
            next_step=f".plans[{name!r}] is its plan" if asked else "the questions are " + ", ".join(self.plans),
        )

    def __iter__(self) -> Iterator[str]:
        """Give the names of the questions that were answered, in the order in which they were."""
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def complete(self) -> bool:
        """Whether every question was answered; of a dry run, whether all fit at their worst prices.

        Whether an answer met its target is in the answer; `short` has what was too expensive for its own cap.
        """
        return not self.unanswered and not self.failed

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per question, in the caller's order: name, question, state, worst price, paid, whether met.

        The state is "answered", "free", "unanswered", "failed" or, of a dry run, "fits"; "out of reach" where no group
        can meet the target within the question's own cap: it is asked only with on_miss="spend".
        """
        return [self._row(name, plan) for name, plan in self.plans.items()]

    def _row(self, name: str, plan: Plan) -> dict[str, Any]:
        """Return what became of one question."""
        answer, now = self.answers.get(name), self.unanswered.get(name, plan)
        if answer is not None:
            told = "answered" if answer.paid else "free"
        elif name in self.failed:
            told = "failed"
        elif self._hopeless(name):
            told = "out of reach"
        elif name in self.unanswered:
            told = "unanswered"
        else:
            told = "free" if plan.free else "fits"
        return {
            "name": name,
            "question": plan.question,
            "goal": plan.goal,
            "state": told,
            "worst_price": now.worst_price.value,
            "paid": None if answer is None else answer.paid.value,
            "met": None if answer is None else bool(all_met(answer)),
            "fitting": now.fitting if told == "unanswered" else "",
            "short": self.short.get(name, ""),
        }

    def _hopeless(self, name: str) -> bool:
        """Return whether a target is out of reach whatever a group holds: an absolute one, below what the cap buys."""
        return self.plans[name].hopeless and name in self.short

    @property
    def notes(self) -> list[str]:
        """One line for each question that does not fit, or whose cap is too small for its target: what would do."""
        unfit = [f"{name}: {plan.fitting}" for name, plan in self.unanswered.items() if name not in self.short]
        return unfit + [f"{name}: {self._best(name)}{advice}" for name, advice in self.short.items()]

    def _best(self, name: str) -> str:
        """Return how near a question comes whose target is out of reach, in words."""
        if not self._hopeless(name):
            return ""
        width = self.plans[name].half_width
        return f"out of reach, at best +/-{width:.4g}; " if isfinite(width) else "out of reach; "

    def to_arrow(self) -> pa.Table:
        """Return one row per question, as `rows` does."""
        import pyarrow as pa

        kinds = {"worst_price": pa.float64(), "paid": pa.float64(), "met": pa.bool_()}
        names = ("name", "question", "goal", "state", "worst_price", "paid", "met", "fitting", "short")
        return pa.Table.from_pylist(self.rows(), pa.schema([(name, kinds.get(name, pa.string())) for name in names]))

    def to_dict(self) -> dict[str, Any]:
        """Return the workload as plain values, for JSON; each answer in the shape of `Answer.to_dict`."""
        return {
            "questions": self.rows(),
            "answers": {name: answer.to_dict() for name, answer in self.answers.items()},
            "unanswered": {name: plan.to_dict() for name, plan in self.unanswered.items()},
            "failed": {name: str(error) for name, error in self.failed.items()},
            "paid": state(self.paid, self.delta),
            "allowed": None if self.allowed is None else state(self.allowed, self.delta),
            "remaining": state(self.remaining, self.delta),
            "complete": self.complete,
            "dry": self.dry,
        }

    @property
    def caption(self) -> str:
        """How many questions were answered, in one line."""
        if self.dry:
            return f"{len(self.plans) - len(self.unanswered)} of {len(self.plans)} questions fit, at their worst prices"
        ended = "".join(f"; ended by {name}: {error}" for name, error in self.failed.items())
        return f"{len(self.answers)} of {len(self.plans)} questions answered{ended}"

    @property
    def price(self) -> str:
        """The price in one line: the whole workload, what it was allowed, and what is left."""
        allowed = "" if self.allowed is None else f" of {self.allowed!r} allowed"
        return f"paid {said(self.paid, self.delta)}{allowed}; left {said(self.remaining, self.delta)}"

    def shown(self) -> pa.Table:
        """Return the rows without what stands in the lines below them."""
        table = self.to_arrow().select(["name", "question", "goal", "state", "worst_price", "paid", "met"])
        return table.rename_columns([name.replace("_", " ") for name in table.column_names])

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the rows: how many were answered, what would do for the others, the price."""
        return self.caption, *self.notes, self.price


def all_met(answer: Answer) -> bool:
    """Return whether every group of every column met its target."""
    return all(bool(cells.met.all()) for cells in answer.columns)
