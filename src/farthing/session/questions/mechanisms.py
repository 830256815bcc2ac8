"""Mechanisms of the caller's own, booked like questions: of a whole session, and of no part of a partition.

What a part's questions read is cut to the part by the engine. A mechanism of the caller's own reads what it likes, so a
part, whose price is shared with the other parts, cannot book it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.privacy.loss import Loss
    from farthing.session.answering.best_of import BestOf
    from farthing.session.core.context import Context


class OwnMechanisms(Protocol):
    """What a session books of mechanisms that it cannot see into."""

    _context: Context

    def best_of(
        self,
        run: Callable[[], tuple[Any, Any]],
        *,
        loss: Loss,
        runs: int,
        law: str = "logarithmic",
        name: str = "runs of a mechanism of the caller's",
        cap: Loss | str | None = None,
    ) -> BestOf:
        """Make many runs of a private computation of yours, and release the best of those that count.

        How many count is drawn, secretly, so that all of them together cost two or three times what one does: the best
        of a hundred models costs as much as two. All runs are made, and a run that raises counts as one without a
        result: neither their number, nor an error, is told.

        The session cannot see what `run` does. You declare `loss`, and it is believed: of one run, for one unit of this
        session, for its score and its result together. Runs must be independent: fresh noise, and nothing that one
        leaves to the next. What `run` itself prints, writes, logs, or takes in time is released by `run`, not by this.

        Args:
            run: takes nothing, and returns a score, larger is better, and a result.
            loss: of one run: Pure, BoundedRange, Zcdp or Gdp.
            runs: how many runs are made.
            law: "uniform" (three times a pure loss), "logarithmic" (twice), or "steep" (one and a half times); a
                steeper law lets fewer runs count.
            name: what the books call it.
            cap: the most that all runs may cost: a loss, "all" for all that is left; a tenth of the budget by default.

        Raises:
            InvalidOption, InvalidBudget: not a private computation, or no theorem on its loss; nothing is charged.
            InvalidTarget, BudgetExceeded: it does not fit; nothing is charged.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": [1, 2]}), budget=farthing.Budget(epsilon=1))
        >>> best = s.best_of(lambda: (7, "a model"), loss=farthing.Pure(0.04), runs=100)
        >>> best.result, best.paid
        ('a model', Pure(epsilon=0.08))
        """
        from farthing.mechanisms.best_of_many import BestOfMany
        from farthing.session.answering.best_of import best_of
        from farthing.session.choosing.top_k import cap_of

        most = cap_of(self._context, cap, default=True)
        return best_of(self._context, run, loss, BestOfMany(runs, law), name=name, cap=most)
