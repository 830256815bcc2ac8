"""Many questions at once, as a method: what a Session and each Part of a partition can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from farthing.session.questions.methods import Questions

if TYPE_CHECKING:
    from farthing.privacy.loss import Loss
    from farthing.workload import Workload


class Batches(Questions, Protocol):
    """Several questions under one budget, and each of them alone."""

    def workload(
        self,
        items: Any,
        *,
        order: str = "given",
        strategy: str = "each",
        cap: Loss | str | None = None,
        max_epsilon: float | None = None,
        dry_run: bool = False,
        **how: Any,
    ) -> Workload:
        """Answer as many questions as the budget allows, and tell what the others would cost.

        All are read and planned before the first is asked, so nothing is charged where one cannot be read or stands
        there twice. A question that does not fit is passed over; what each uses less than its worst price is there for
        those after it.

        Args:
            items: SQL texts, dictionaries of arguments ({"ask": "sum", "value": "fare", ...}; without "ask" a count, or
                SQL where there is a "text"), or (name, one of these); or a mapping of names. Others are q1, q2, ...
            order: "given" asks in the order of the list, "cheapest" by the worst price, free ones first.
            strategy: "each" brings every question to its own target; "together" spends one loss, the cap, on counts and
                sums so that the worst of their errors, in targets, is as small as it can be; "largest" spends it on
                the largest counts: it picks one, brings it to its target, and goes on while the loss lasts. Only the
                counts that were picked are told; what picking them cost is in the workload's `paid` alone.
            cap: the most that all may cost together: a loss, or "all" of what is left, the default. The cap of one
                question is its own, as in `count`: a tenth of the budget unless its item names another.
            max_epsilon: the same as an epsilon.
            dry_run: plan only, which spends nothing.
            **how: the common target, and the other options of `How`; items that name a target have their own.

        Raises:
            InvalidTarget, InvalidKeys, InvalidBounds, UnsupportedQuery: nothing is charged.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> items = {"all": "SELECT COUNT(*) AS n FROM data", "low": {"where": "x < 100", "absolute": 30}}
        >>> done = s.workload(items, absolute=50, order="cheapest")
        >>> done["low"].met, done.complete
        (True, True)
        """
        from farthing.session.batches.workload import workload

        return workload(
            self._context, self._reader, items,
            order=order, strategy=strategy, cap=cap, max_epsilon=max_epsilon, dry_run=dry_run, how=how,
        )  # fmt: skip
