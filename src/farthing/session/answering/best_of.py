"""The best of many private candidates: a computation that somebody else declares private, booked like a question."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from farthing.errors import InvalidOption, InvalidTarget
from farthing.privacy.loss import BoundedRange, Gdp, Pure, Zcdp
from farthing.privacy.words import said
from farthing.session.core.booked_question import Bill
from farthing.session.core.shield import shielded
from farthing.session.core.transaction import answer_and_book
from farthing.tabular import Lines

if TYPE_CHECKING:
    from farthing.ledger.entry import Receipt
    from farthing.mechanisms.best_of_many import Best, BestOfMany, Candidate
    from farthing.privacy.base import Loss
    from farthing.privacy.loss import Booked
    from farthing.session.core.context import Context

_EMPTY: Final = b""


@dataclass(frozen=True, slots=True)
class BestOf(Lines):
    """The best of the candidates that counted, and what all of them cost.

    Attributes:
        result: what the run with the largest score returned, or None where no run that counted had a result.
        score: its score, or None likewise.
        runs: how many runs were made; how many of them counted is told to nobody.
        about: what one run was declared to lose, and the law of how many counted.
        paid: the loss of all of it.
        remaining: what the ledger had left right after it.
    """

    result: Any
    score: float | None
    runs: int
    about: str
    paid: Booked
    remaining: Booked

    def __str__(self) -> str:
        found = "no result" if self.score is None else f"a result with score {self.score:g}"
        return f"{found}: the best of at most {self.about}; paid {self.paid!r}; left {self.remaining!r}"


@dataclass(frozen=True, slots=True, eq=False)
class _BookedRuns:
    """All runs, as a transaction books them: their whole price, whatever comes of them."""

    context: Context
    rule: BestOfMany
    run: Candidate
    candidate: Loss
    price: Booked
    label: str

    @property
    def bill(self) -> Bill:
        """What it is charged."""
        fitting = "a smaller loss of a run may fit"
        return Bill(self.price, self.price, self.label, lambda: fitting, self.about, name="the best of many")

    @property
    def about(self) -> str:
        """What one run was declared to lose, and how many count, in words."""
        return f"{self.rule.runs:,} runs of {self.candidate!r} each, {self.rule.law}"

    def stored_answer(self) -> tuple[Best | None, Booked]:
        """Return nothing: there is always a bill."""
        raise NotImplementedError

    def measured(self, receipt: Receipt) -> tuple[tuple[Best | None, Booked], Booked]:
        """Make the runs: whatever ends them, they stay charged."""
        self.context.engine.outside(receipt)
        return (shielded(self.rule.choose, self.run), self.price), self.price

    def merged(self, *_: object) -> bytes:
        """Return what the ledger is to keep: nothing, since a result may be anything."""
        return _EMPTY


def best_of(context: Context, run: Candidate, loss: Loss, rule: BestOfMany, *, name: str, cap: Booked | None) -> BestOf:
    """Charge many runs of a private computation, make them, and return the best.

    Guarantee: what is released is as private as what the ledger charged, if one run is as private as was declared.
    Proof: docs/proofs/mechanisms.best_of_many.md; docs/proofs/session.answering.one_question.md for the books.
    Assumes: the declared loss, for the ledger's unit and for the score and the result together; independent runs.
    Rounds: the price up to whole farthings.

    Args:
        context: the data and the books.
        run: makes one run, and returns a score and a result.
        loss: of one run.
        rule: how many runs are made, and the law of how many count.
        name: what the books call it.
        cap: the most that all runs may cost, or None for all that is left.
    """
    if not callable(run) or not isinstance(loss, Pure | BoundedRange | Zcdp | Gdp) or loss.slack or not loss.amount:
        raise InvalidOption(
            "this is not a private computation with a declared price",
            rule="a function without arguments, and the loss of one call: a positive Pure, BoundedRange, Zcdp or Gdp",
            got=f"{type(run).__name__}, {loss!r}",
            next_step="session.best_of(lambda: (score, result), loss=farthing.Pure(0.1), runs=100)",
        )
    price = context.loss(rule.price(loss, context.budget.currency).farthings)
    delta = context.budget.report_delta
    if cap is not None and price > cap:
        raise InvalidTarget(
            "all runs together cost more than they may",
            rule=f"price <= {said(cap, delta)}",
            got=said(price, delta),
            next_step='allow more with cap= ("all" for what is left), or declare and spend less in each run',
        )
    question = f"best of many {secrets.token_hex(16)}"  # nobody asks it again
    booked = _BookedRuns(context, rule, run, loss, price, f"the best of many: {name}")
    best, paid = answer_and_book(context, question, lambda _: booked)
    left = context.loss(context.ledger.remaining)
    score, result = (None, None) if best is None else (best.score, best.result)
    return BestOf(result, score, rule.runs, booked.about, paid, left)
