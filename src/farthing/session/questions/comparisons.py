"""The questions that compare: one number over another, one group less another, the order of the largest groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from farthing.errors import InvalidKeys, LedgerMismatch
from farthing.query.pairs import Pair
from farthing.session.questions.pipeline import all_counted, all_read, answered, planned
from farthing.session.reading.difference import refuse_clamps, signed_sum
from farthing.session.reading.ratio import over, range_of_side, ranged
from farthing.session.reading.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from farthing.chosen import Ranking
    from farthing.privacy.loss import Loss
    from farthing.query import AutoBounds, Bounds
    from farthing.query.aggregates import Aggregate
    from farthing.release import Answer
    from farthing.session.answering.bounds import Read
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion, QuestionReader


class Comparisons(Protocol):
    """The comparisons that protected data can be asked for."""

    _context: Context
    _reader: QuestionReader

    def ratio(
        self,
        top: Any,
        bottom: Any = None,
        *,
        top_range: tuple[float, float] | None = None,
        bottom_range: tuple[float, float] | None = None,
        by: Any = None,
        keys: Any = None,
        where: Any = None,
        name: str = "ratio",
        bounds: Bounds | AutoBounds | None = None,
        explain: bool = False,
        **how: Any,
    ) -> Any:
        """Divide one count or sum by another: the part of the rows that meet a condition, or SUM(tip) / SUM(fare).

        The target is an error of the ratio: absolute=0.01 is one in a hundred. Both numbers are measured in the
        proportion that is cheapest for it. Where the bottom is zero there is no ratio, and no number is wrong.

        Args:
            top: a condition, whose rows are counted; with `top_range`, a numeric column or expression, which is added
                up. Only the rows of a bottom condition count.
            bottom: likewise; None for all rows.
            top_range: (lower, upper), the clamps of the values above the line.
            bottom_range: the clamps of those below; lower is at least 0.
            by: a grouping column, several, or {new name: expression}.
            keys: the public groups, see `Where`.
            where: a predicate, as SQL text or an ibis expression.
            name: the name of the answer column.
            bounds: contribution bounds of this question, instead of the session's.
            explain: return the plan instead, which spends nothing.
            **how: the target and the price, see `How`.

        Returns:
            The `Answer`; the `Plan` where explain=True.

        >>> import pyarrow as pa
        >>> import farthing
        >>> rides = pa.table({"zone": ["a", "b"] * 5000, "minutes": [*range(50)] * 200})
        >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.ratio("minutes > 30", where="zone = 'a'", absolute=0.03).met
        True
        """
        about = {"by": by, "keys": keys, "where": where, "name": name}

        def made(_: Bounds, left: frozenset[str]) -> Aggregate:
            """Return the ratio."""
            sides = ((top, top_range), (bottom, bottom_range))
            return over(self._reader, *(ranged(self._reader, *side) if "clamps" in left else side for side in sides))

        return self._compared(made, about, bounds, how, explain=explain)

    def correlation(
        self,
        x: Any,
        y: Any,
        *,
        x_range: tuple[float, float] | None = None,
        y_range: tuple[float, float] | None = None,
        by: Any = None,
        keys: Any = None,
        where: Any = None,
        name: str = "correlation",
        bounds: Bounds | AutoBounds | None = None,
        explain: bool = False,
        **how: Any,
    ) -> Any:
        """Return how much two values rise together, from -1 to 1: CORR(x, y), each clamped into its range first.

        Args:
            x: a numeric column, or an expression as SQL text or ibis.
            y: likewise; rows count where both values are there.
            x_range: (lower, upper), what x is clamped into; by default that of the bounds.
            y_range: what y is clamped into, likewise.
            by: a grouping column, several, or {new name: expression}.
            keys: the public groups, see `Where`.
            where: a predicate, as SQL text or an ibis expression.
            name: the name of the answer column.
            bounds: contribution bounds of this question, instead of the session's.
            explain: return the plan instead, which spends nothing.
            **how: the target and the price, see `How`.

        Returns:
            The `Answer`; the `Plan` where explain=True.

        >>> import pyarrow as pa
        >>> import farthing
        >>> rides = pa.table({"km": [*range(20)] * 2000, "fare": [2.5 * km for km in range(20)] * 2000})
        >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.correlation("km", "fare", x_range=(0, 20), y_range=(0, 50), absolute=0.2, cap="all").met
        True
        """
        about = {"by": by, "keys": keys, "where": where, "name": name}
        return self._compared(self._paired("correlation", x, y, x_range, y_range), about, bounds, how, explain=explain)

    def covariance(
        self,
        x: Any,
        y: Any,
        *,
        x_range: tuple[float, float] | None = None,
        y_range: tuple[float, float] | None = None,
        sample: bool = False,
        by: Any = None,
        keys: Any = None,
        where: Any = None,
        name: str = "covariance",
        bounds: Bounds | AutoBounds | None = None,
        explain: bool = False,
        **how: Any,
    ) -> Any:
        """Return the covariance of two values, each clamped into its range first: COVAR_POP(x, y), or COVAR_SAMP.

        Args:
            x: a numeric column, or an expression as SQL text or ibis.
            y: likewise; rows count where both values are there.
            x_range: (lower, upper), what x is clamped into; by default that of the bounds.
            y_range: what y is clamped into, likewise.
            sample: divide by n - 1 instead of n.
            by: a grouping column, several, or {new name: expression}.
            keys: the public groups, see `Where`.
            where: a predicate, as SQL text or an ibis expression.
            name: the name of the answer column.
            bounds: contribution bounds of this question, instead of the session's.
            explain: return the plan instead, which spends nothing.
            **how: the target and the price, see `How`.

        Returns:
            The `Answer`; the `Plan` where explain=True.

        >>> import pyarrow as pa
        >>> import farthing
        >>> rides = pa.table({"km": [*range(20)] * 2000, "fare": [2.5 * km for km in range(20)] * 2000})
        >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.covariance("km", "fare", x_range=(0, 20), y_range=(0, 50), absolute=20, cap="all").met
        True
        """
        about = {"by": by, "keys": keys, "where": where, "name": name}
        made = self._paired("covariance", x, y, x_range, y_range, sample=sample)
        return self._compared(made, about, bounds, how, explain=explain)

    def slope(
        self,
        y: Any,
        x: Any,
        *,
        x_range: tuple[float, float] | None = None,
        y_range: tuple[float, float] | None = None,
        by: Any = None,
        keys: Any = None,
        where: Any = None,
        name: str = "slope",
        bounds: Bounds | AutoBounds | None = None,
        explain: bool = False,
        **how: Any,
    ) -> Any:
        """Return by how much y rises where x is larger by 1, by the line of least squares: REGR_SLOPE(y, x).

        Args:
            y: a numeric column, or an expression as SQL text or ibis.
            x: likewise; rows count where both values are there.
            x_range: (lower, upper), what x is clamped into; by default that of the bounds.
            y_range: what y is clamped into, likewise.
            by: a grouping column, several, or {new name: expression}.
            keys: the public groups, see `Where`.
            where: a predicate, as SQL text or an ibis expression.
            name: the name of the answer column.
            bounds: contribution bounds of this question, instead of the session's.
            explain: return the plan instead, which spends nothing.
            **how: the target and the price, see `How`.

        Returns:
            The `Answer`; the `Plan` where explain=True.

        >>> import pyarrow as pa
        >>> import farthing
        >>> rides = pa.table({"km": [*range(20)] * 2000, "fare": [2.5 * km for km in range(20)] * 2000})
        >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.slope("fare", "km", x_range=(0, 20), y_range=(0, 50), absolute=0.5, cap="all").met
        True
        """
        about = {"by": by, "keys": keys, "where": where, "name": name}
        return self._compared(self._paired("slope", x, y, x_range, y_range), about, bounds, how, explain=explain)

    def difference(
        self,
        by: Any,
        groups: Sequence[Any],
        *,
        value: Any = None,
        lower: float | None = None,
        upper: float | None = None,
        where: Any = None,
        name: str = "difference",
        bounds: Bounds | AutoBounds | None = None,
        explain: bool = False,
        **how: Any,
    ) -> Any:
        """Subtract the count, or the sum of a value, of one group from another's; the target is of the difference.

        It is measured as one signed sum, which is half the price of the same accuracy from two counts, and a quarter
        where a unit may be in both groups. The two numbers themselves do not leave.

        Args:
            by: the grouping column, several, or {new name: expression}.
            groups: two of its values, or two tuples: the answer is of the first less the second.
            value: what is added up, a numeric column or expression; None counts rows.
            lower: values below it count as it; by default that of the bounds.
            upper: values above it count as it; by default that of the bounds.
            where: a predicate, as SQL text or an ibis expression.
            name: the name of the answer column.
            bounds: contribution bounds of this question: `max_rows` bounds the rows of a unit in both groups together.
            explain: return the plan instead, which spends nothing.
            **how: the target and the price, see `How`.

        Returns:
            The `Answer`, one number; the `Plan` where explain=True.

        >>> import pyarrow as pa
        >>> import farthing
        >>> rides = pa.table({"zone": ["a"] * 900 + ["b"] * 400})
        >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> answer = s.difference("zone", ("a", "b"), relative=0.2, absolute=50)
        >>> answer.met
        True
        """
        if "keys" in how:
            raise InvalidKeys(
                "a difference has no keys",
                rule="it lists its two groups in groups=",
                got="keys=",
                next_step='drop keys=, as in session.difference("zone", ("harbour", "park"), absolute=50)',
            )
        refuse_clamps(value, lower, upper)

        def made(under: Bounds, _: frozenset[str]) -> Aggregate:
            """Return the aggregate under given bounds."""
            return signed_sum(self._reader, by, groups, value, ends=(lower, upper), bounds=under)

        return self._compared(made, {"where": where, "name": name}, bounds, how, explain=explain)

    def ranking(
        self,
        by: Any,
        k: int = 10,
        *,
        value: Any = None,
        lower: float | None = None,
        upper: float | None = None,
        keys: Any = None,
        where: Any = None,
        bounds: Bounds | None = None,
        confidence: float = 0.95,
        apart: float | None = None,
        apart_relative: float | None = None,
        cap: Loss | str | None = None,
        max_epsilon: float | None = None,
        **unknown: Any,
    ) -> Ranking:
        """Tell the k largest groups in the right order, and their numbers, refining only what is not settled.

        All groups are looked at coarsely; those whose place is clear are left, the others are measured again, until the
        first k places are right with the confidence, or the cap is reached. Asking again is free, and a larger cap goes
        on from there.

        Args:
            by: a grouping column, several, or {new name: expression}.
            k: how many places.
            value: what is added up, a numeric column or expression; None counts rows.
            lower: values below it count as it; by default that of the bounds.
            upper: values above it count as it; by default that of the bounds.
            keys: the public groups, see `Where`.
            where: a predicate, as SQL text or an ibis expression.
            bounds: contribution bounds of this question, instead of the session's.
            confidence: the chance that everything that is told as settled is right, at once.
            apart: groups may be told as tied where their order is wrong by less than this, in answer units.
            apart_relative: the same as a part of the larger one, 0.05 for 5 %; of counts, and sums of no sign.
            cap: the most this may cost: a loss, or "all" of what is left; default a tenth of the budget.
            max_epsilon: the same as an epsilon.
            **unknown: refused; a ranking has no relative= and no absolute=.

        Raises:
            InvalidTarget, InvalidKeys, InvalidBounds, UnsupportedQuery: nothing is charged.
            BudgetExceeded: the cap does not fit in what is left; nothing is charged.

        >>> import pyarrow as pa
        >>> import farthing
        >>> rides = pa.table({"zone": ["a"] * 9000 + ["b"] * 40 + ["c"] * 6000})
        >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> list(s.ranking("zone", k=2, keys={"zone": ["a", "b", "c"]}))
        ['a', 'c']
        """
        from farthing.session.choosing import ranking
        from farthing.session.choosing.ranking_record import RankingRequest

        ranking.refuse_unknown(unknown)
        refuse_clamps(value, lower, upper)
        given, about = self._reader.bounds if bounds is None else bounds, {"keys": keys, "where": where}
        wanted = RankingRequest(k, confidence, apart or 0.0, apart_relative or 0.0)
        how = {"absolute": 1.0, "confidence": confidence, "cap": cap, "max_epsilon": max_epsilon}
        added = (value, lower, upper)
        read, request = all_counted(
            self._reader, by=by, added=added, about=about, given=given, how=how, wanted=Request.of, default="value"
        )
        return ranking.rank(self._context, read, given, wanted, request)

    def refine(self, answer: Answer, *unnamed: Any, **changes: Any) -> Answer:
        """Return a sharper answer to a question of this data: the same as `answer.refine`.

        Raises:
            LedgerMismatch: the answer is about another declared version of the data; nothing is charged.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.refine(s.count(absolute=100), absolute=50).met
        True
        """
        if not answer.is_of(self._context.data_set):
            raise LedgerMismatch(
                "the answer is about another state of the data",
                rule="an answer is refined on the table, columns, unit and version that it was asked of",
                got=f"{', '.join(answer.names)} of another session",
                next_step="ask the question from scratch; or open the session with the version= of the answer",
            )
        return answer.refine(*unnamed, **changes)

    def _paired(
        self,
        kind: str,
        x: Any,
        y: Any,
        x_range: tuple[float, float] | None,
        y_range: tuple[float, float] | None,
        *,
        sample: bool = False,
    ) -> Callable[[Bounds, frozenset[str]], Aggregate]:
        """Return what makes an aggregate of two values under given bounds."""
        reader, first, second = self._reader, self._reader.value(x), self._reader.value(y)

        def made(under: Bounds, _: frozenset[str]) -> Aggregate:
            """Return the aggregate."""
            ends = [
                reader.range(None, None, under) if given is None else range_of_side(name, given)
                for name, given in (("x", x_range), ("y", y_range))
            ]
            return Pair(kind, first, second, ends[0], ends[1], sample)

        return made

    def _compared(
        self,
        made: Callable[[Bounds, frozenset[str]], Aggregate],
        about: dict[str, Any],
        bounds: Bounds | AutoBounds | None,
        how: dict[str, Any],
        *,
        explain: bool,
    ) -> Any:
        """Answer one aggregate, or plan it; `made` makes it under bounds, with stand-ins for what is left out."""
        given = self._reader.bounds if bounds is None else bounds
        named, options = about["name"], {key: value for key, value in about.items() if key != "name"}

        def asked(under: Bounds, keys: Any, left: frozenset[str]) -> CheckedQuestion:
            """Return the question under given bounds, with keys."""
            return self._reader.call(made(under, left), named, **(options | {"bounds": under, "keys": keys}))

        read, request = all_read(given, about.get("keys"), how, asked, Request.of)
        return planned(self._context, read, given, request) if explain else self._answered(read, given, request)

    def _answered(self, read: Read, given: Bounds | AutoBounds, request: Request) -> Answer:
        """Answer a question that was read."""
        return answered(self._context, read, given, request)
