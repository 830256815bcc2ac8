"""The price of a release by a model, before it is paid: the loss that was named, all of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from farthing.mechanisms.noisy_answers import shared
from farthing.privacy.words import said, state
from farthing.query import outward
from farthing.tabular import Lines

if TYPE_CHECKING:
    from farthing.planning.release_plan import Candidate
    from farthing.privacy.loss import Booked

CHECK: Final = 9
"""One part in so many more of a loss measures the errors of a model."""


def of_models(loss: Booked) -> Booked:
    """Return what of a loss measures the model itself: all but what its errors are measured with."""
    return shared(loss, CHECK, 1)[0]


@dataclass(frozen=True, slots=True)
class SyntheticPlan(Lines):
    """The price of a release by a model.

    Attributes:
        question: what is released, in words.
        loss: what it costs from nothing.
        worst_price: what it costs now: the same, or nothing where it was released before.
        remaining: what the ledger has left.
        delta: the delta at which epsilons are stated.
        about: the privacy unit and its bounds, in words.
        confidence: the chance that the error of a table is between the ends that are told.
        contest: where the mechanism was chosen, what each of the two knows of a cell.

    >>> import pyarrow as pa
    >>> import farthing
    >>> from farthing.workloads import marginals
    >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> how = {"keys": {"a": [1, 2]}, "loss": farthing.Gdp(0.05), "mechanism": "mwem"}
    >>> s.plan_release(marginals(["a"], ways=1), **how).fits
    True
    """

    question: str
    loss: Booked
    worst_price: Booked
    remaining: Booked
    delta: float
    about: str
    confidence: float
    contest: tuple[Candidate, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the price fits in what is left."""
        return self.worst_price <= self.remaining

    @property
    def advice(self) -> str:
        """What to do about a plan that does not fit; "" when all is well."""
        return "" if self.fits else "name a smaller loss"

    @property
    def free(self) -> bool:
        """Whether what was released before already answers."""
        return not self.worst_price

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, for JSON."""
        return {
            "question": self.question,
            "worst_price": state(self.worst_price, self.delta),
            "remaining": state(self.remaining, self.delta),
            "confidence": self.confidence,
            "fits": self.fits,
            "free": self.free,
            "about": self.about,
            "advice": self.advice,
        } | ({"contest": {one.name: one.rmse for one in self.contest}} if self.contest else {})

    def __str__(self) -> str:
        lines = [
            f"{self.question}, at {self.loss!r} (named)",
            f"price        {said(self.worst_price, self.delta)}" + (" (already paid for: free)" if self.free else ""),
            f"left         {said(self.remaining, self.delta)}",
            "the error of each table is not known beforehand; it is told with the answer",
            *(f"{one.name}: root mean squared error of a cell {one.rmse:.4g}" for one in self.contest),
            self.about,
            *([f"note: this does not fit in what is left: {self.advice}"] if self.advice else []),
        ]
        return "\n".join(map(outward.line, lines))
