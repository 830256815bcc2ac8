"""The questions whose answer is a choice: which groups are the largest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from farthing.session.answering.bounds import bounded
from farthing.session.core.ceiling import ceiling
from farthing.session.questions.pipeline import all_counted
from farthing.session.reading.request import Request

if TYPE_CHECKING:
    from farthing.chosen import Chosen
    from farthing.privacy.loss import Loss
    from farthing.privacy.numbers import Number
    from farthing.query import AutoBounds, Bounds
    from farthing.release import Answer
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import QuestionReader


class Choices(Protocol):
    """The choices that protected data can be asked for."""

    _context: Context
    _reader: QuestionReader

    def top_k(
        self,
        by: Any,
        k: int = 10,
        *,
        value: Any = None,
        lower: float | None = None,
        upper: float | None = None,
        keys: Any = None,
        where: Any = None,
        bounds: Bounds | AutoBounds | None = None,
        within: float | None = None,
        confidence: float = 0.95,
        order_correct: float | None = None,
        epsilon: Number | None = None,
        cap: Loss | str | None = None,
        max_epsilon: float | None = None,
    ) -> Chosen:
        """Choose the k largest groups privately, by their rows or by a value that is added up; best first where told.

        Only the names of the groups leave, not their numbers: that is much cheaper where a unit is in many groups. The
        planner takes the selection that is cheapest in the ledger's currency; a joint choice, which it often is under a
        pure budget, tells no order. Asking again is free.

        Args:
            by: a grouping column, several, or {new name: expression}.
            k: how many groups.
            value: what is added up, a numeric column or expression; None counts rows.
            lower: values below it count as it; by default that of the bounds.
            upper: values above it count as it; by default that of the bounds.
            keys: the public groups, see `Where`; "private" chooses from the groups that exist, at a price in delta.
            where: a predicate, as SQL text or an ibis expression.
            bounds: contribution bounds of this question, instead of the session's.
            within: all chosen are at most so much below the true k-th largest, with the confidence.
            confidence: the chance of that.
            order_correct: refine the counts instead, until released intervals prove the order with this chance.
            epsilon: the price of one of the k choices, instead of an accuracy.
            cap: the most this may cost: a loss, or "all" of what is left; default a tenth of the budget, and no limit
                where epsilon= names the price.
            max_epsilon: the same as an epsilon.

        Raises:
            InvalidTarget, InvalidKeys, InvalidBounds, UnsupportedQuery: nothing is charged.
            BudgetExceeded: the price does not fit; nothing is charged.

        >>> import pyarrow as pa
        >>> import farthing
        >>> rides = pa.table({"zone": ["a"] * 900 + ["b"] * 40 + ["c"] * 600})
        >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> list(s.top_k("zone", k=2, keys={"zone": ["a", "b", "c"]}, within=200))
        ['a', 'c']
        """
        from farthing.session.choosing import proven_order, top_k

        context, about = self._context, {"keys": keys, "where": where}
        given = self._reader.bounds if bounds is None else bounds
        added = (value, lower, upper)

        def choice() -> top_k.TopKRequest:
            """Return what is wanted of the choice; refuse one without quality and price."""
            return top_k.TopKRequest(k, epsilon, within, order_correct, confidence)

        def asked(**stand_ins: Any) -> Request:
            """Return what is wanted of the counts, once the choice is stated or a stand-in is."""
            absolute = within or 1.0 if stand_ins or choice() else 1.0
            return Request.of(absolute=absolute, confidence=confidence, cap=cap, max_epsilon=max_epsilon)

        read, request = all_counted(self._reader, by=by, added=added, about=about, given=given, how={}, wanted=asked)
        wanted = choice()
        limit = request.cap if max_epsilon is None else context.budget.loss(max_epsilon)
        most = top_k.cap_of(context, limit, default=epsilon is None)
        question, paid = bounded(context, read, given, request)
        if order_correct is not None and not question.private:
            made = proven_order.in_order(context, question, wanted, request, most)
        else:
            made = top_k.choose(context, question, wanted, most)
        return replace(made, paid=made.paid + paid) if paid else made

    def most_common(
        self,
        by: Any,
        k: int = 10,
        *,
        value: Any = None,
        lower: float | None = None,
        upper: float | None = None,
        keys: Any = None,
        where: Any = None,
        name: str | None = None,
        bounds: Bounds | AutoBounds | None = None,
        **how: Any,
    ) -> Answer:
        """Choose the k largest groups within the absolute target, then release their numbers at the target.

        Args:
            by: a grouping column, several, or {new name: expression}.
            k: how many groups.
            value: what is added up, a numeric column or expression; None counts rows.
            lower: values below it count as it; by default that of the bounds.
            upper: values above it count as it; by default that of the bounds.
            keys: the public groups, see `Where`.
            where: a predicate, as SQL text or an ibis expression.
            name: the name of the answer column.
            bounds: contribution bounds of this question, instead of the session's.
            **how: the target, with absolute=, and the price, see `How`.

        Raises:
            InvalidTarget, InvalidKeys, InvalidBounds, UnsupportedQuery: nothing is charged.
            BudgetExceeded: the worst price does not fit; nothing is charged.

        >>> import pyarrow as pa
        >>> import farthing
        >>> rides = pa.table({"zone": ["a"] * 900 + ["b"] * 40 + ["c"] * 600})
        >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.most_common("zone", k=2, keys={"zone": ["a", "b", "c"]}, absolute=100).keys.column("zone").to_pylist()
        ['a', 'c']
        """
        from farthing.session.choosing import most_common

        given, about = self._reader.bounds if bounds is None else bounds, {"keys": keys, "where": where, "name": name}
        added = (value, lower, upper)
        read, request = all_counted(
            self._reader, by=by, added=added, about=about, given=given, how=how, wanted=Request.of
        )
        with ceiling(self._context, request.at_most):
            question, paid = bounded(self._context, read, given, request)
            answer = most_common.most_common(self._context, question, k, request)
        return replace(answer, paid=answer.paid + paid) if paid else answer
