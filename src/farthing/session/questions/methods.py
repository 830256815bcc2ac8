"""Every question, as a method: what a Session and each Part of a partition can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict, Unpack

from farthing.query.aggregates import Count, CountUnits, Mean, Quantile, Sum, Variance
from farthing.query.counts import CountValues
from farthing.session.answering import contribution_report
from farthing.session.questions.choices import Choices
from farthing.session.questions.comparisons import Comparisons
from farthing.session.questions.pipeline import all_read, priced, text_read
from farthing.session.questions.releases import Releases
from farthing.session.reading.checks import several_quantiles
from farthing.session.reading.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from farthing.planning import Plan
    from farthing.planning.release import ReleasePlan
    from farthing.privacy.loss import Booked, Loss
    from farthing.progress import Progress
    from farthing.query import AutoBounds, Bounds
    from farthing.release import Answer
    from farthing.session.answering.bounds import Read
    from farthing.session.answering.contribution_report import Cut
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import Aggregates, CheckedQuestion, QuestionReader


class How(TypedDict, total=False):
    """How accurate, how sure, and at what price at most: the options of every question.

    With several aggregates, relative, absolute and rank may each be one number for all, or {name: number}.

    Keys:
        relative: wanted half-width as a fraction of the truth, 0 <= relative < 1.
        absolute: wanted half-width in answer units, > 0; the target is the larger of the two.
        rank: for quantiles, how far the rank of the answer may be off, as a share of its group's rows.
        confidence: the chance that the promise holds, in [0.5, 1); default 0.95.
        simultaneous: whether it holds for all groups at once instead of for each; default False.
        together: whether it holds for all answers of this question together, whatever decides on the next one (under
            a pure budget: if the targets were fixed beforehand). It costs more. Default False: each answer by itself.
        share: for a count or sum by groups, the part of the groups that have to be within the target: as soon as they
            are, the others stop too, not met. Their looks up to there are paid. Default 1, all.
        loss: a loss to pay instead of a target (Gdp, Zcdp or Pure, in the ledger's currency).
        max_epsilon: the most epsilon that this question may cost.
        cap: the most this question may cost: a loss, or "all" of what is left; default a tenth of the budget.
        at_most: the most that this ask may be charged, such as the `worst_price` of its plan: where it would be more by
            now, because of what others asked or because an ask of it failed, it is refused, free. It limits the price
            and nothing else; `cap` is planned with.
        nonnegative: show answers below zero as zero; it biases totals, and the answer says so. Refused where the truth
            may be negative. Default False.
        on_miss: what to do with groups that miss their target: "return" (default), "drop" or "raise". A target that no
            group can meet under the cap is refused, free; "spend" pays for what the cap allows, and returns it.
        found_above: with keys="private", the size from which groups are found with the confidence.
        progress: called after every look with a `Progress`.
        mechanism: release a count once, with noise that grows with it, instead of refining it: "asinh", "linear-log",
            "log", "power", "two-stage" or "gaussian"; members of larger groups lose less. It goes with relative=.
    """

    relative: float | Mapping[str, float]
    absolute: float | Mapping[str, float]
    rank: float | Mapping[str, float]
    confidence: float
    simultaneous: bool
    together: bool
    share: float
    loss: Booked | None
    max_epsilon: float | None
    cap: Loss | str | None
    at_most: Booked | None
    nonnegative: bool
    on_miss: str
    found_above: int
    progress: Callable[[Progress], None] | None
    mechanism: str | None


class Where(TypedDict, total=False):
    """About what: the groups and the rows of a question.

    Keys:
        keys: the public groups of `by`: {"dest": [...]} with one list a column (their cross product; a range, a
            calendar, or "airports.faa" for a column of a declared public table), or a table of combinations. Listed
            groups without rows answer like any other; groups not listed are not answered. "private" finds the groups.
        where: a predicate, as SQL text or an ibis expression.
        name: the name of the answer column.
        bounds: contribution bounds of this question, instead of the session's.
    """

    keys: Any
    where: Any
    name: str
    bounds: Bounds | AutoBounds | None


class Asking(Where, How, total=False):
    """All options of a question: see `Where` and `How`."""


_WHERE = ("keys", "where", "name", "bounds")
By: TypeAlias = "str | Sequence[str] | Mapping[str, Any] | None"
"""A grouping column, several, or {new name: expression}, as in {"decade": "floor(age / 10) * 10"}."""


class Questions(Choices, Comparisons, Releases, Protocol):
    """The questions that protected data can be asked. Every method prices, reserves, measures, settles and tells.

    All of them raise:
        InvalidTarget, InvalidKeys, InvalidBounds, UnsupportedQuery: nothing is charged.
        BudgetExceeded: the worst price does not fit; OutOfReach: the cap meets no group's target. Nothing is charged.
        PriceRisen: the worst price is above `at_most`. Nothing is charged.
        TargetMissed: with on_miss="raise"; paid for, and the answer is attached.
    """

    _context: Context
    _reader: QuestionReader

    def count(self, by: By = None, *, value: Any = None, **asking: Unpack[Asking]) -> Answer:
        """Count rows, or the rows where a value is there; by public groups if `by` is given.

        Args:
            by: a grouping column, several, or {new name: expression}.
            value: count only rows where this column or expression is not NULL.
            **asking: the groups and rows, see `Where`; the target and the price, see `How`.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.count(where="x < 100", absolute=40).met
        True
        """
        aggregate = Count() if value is None else Count(self._reader.scalar(value))
        return self._ask(lambda _: aggregate, "count", by, asking)

    def count_distinct(self, by: By = None, *, value: Any = None, **asking: Unpack[Asking]) -> Answer:
        """Count privacy units, COUNT(DISTINCT unit), or the different values of a column or an expression.

        Where each row is a unit, units are rows. Of the values that one unit has in a group, `max_rows` count, the same
        ones each time; a value that several units have counts once. NULL and NaN are not values.

        Args:
            by: a grouping column, several, or {new name: expression}.
            value: whose different values are counted; None counts units.
            **asking: the groups and rows, see `Where`; the target and the price, see `How`.

        >>> import pyarrow as pa
        >>> import farthing
        >>> visits = pa.table({"who": ["a", "a", "b"] * 100, "page": [1, 2, 1] * 100})
        >>> bounds = farthing.Bounds(max_groups=1, max_rows=1)
        >>> budget = farthing.Budget(epsilon=1, delta=1e-6)
        >>> s = farthing.Session(visits, unit="who", budget=budget, bounds=bounds)
        >>> s.count_distinct(absolute=50).met, s.count_distinct(value="page", absolute=50).met
        (True, True)
        """
        aggregate = CountUnits() if value is None else CountValues(self._reader.scalar(value))
        return self._ask(lambda _: aggregate, "count", by, asking)

    def sum(
        self,
        value: Any,
        *,
        lower: float | None = None,
        upper: float | None = None,
        by: By = None,
        **asking: Unpack[Asking],
    ) -> Answer:
        """Add up values, each clamped into [lower, upper] first. NULL and NaN do not count.

        Args:
            value: a numeric column, or an expression as SQL text or ibis.
            lower: values below it count as it; by default that of the bounds.
            upper: values above it count as it; by default that of the bounds.
            by: a grouping column, several, or {new name: expression}.
            **asking: the groups and rows, see `Where`; the target and the price, see `How`.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"fare": [12.5, 8.0] * 500}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.sum("fare", lower=0, upper=50, absolute=2_000).met
        True
        """
        reader, scalar = self._reader, self._reader.value(value)
        return self._ask(lambda bounds: Sum(scalar, *reader.range(lower, upper, bounds)), "sum", by, asking)

    def mean(
        self,
        value: Any,
        *,
        lower: float | None = None,
        upper: float | None = None,
        by: By = None,
        **asking: Unpack[Asking],
    ) -> Answer:
        """Average values, each clamped into [lower, upper] first. NULL and NaN do not count.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"fare": [12.5, 8.0] * 5000}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.mean("fare", lower=0, upper=50, absolute=2).met
        True
        """
        reader, scalar = self._reader, self._reader.value(value)
        return self._ask(lambda bounds: Mean(scalar, *reader.range(lower, upper, bounds)), "mean", by, asking)

    def variance(
        self,
        value: Any,
        *,
        lower: float | None = None,
        upper: float | None = None,
        sample: bool = False,
        root: bool = False,
        by: By = None,
        **asking: Unpack[Asking],
    ) -> Answer:
        """Return the variance of values, each clamped into [lower, upper] first.

        Args:
            value: a numeric column, or an expression as SQL text or ibis.
            lower: values below it count as it; by default that of the bounds.
            upper: values above it count as it; by default that of the bounds.
            sample: divide by n - 1 instead of n.
            root: the standard deviation instead of the variance.
            by: a grouping column, several, or {new name: expression}.
            **asking: the groups and rows, see `Where`; the target and the price, see `How`.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"fare": [12.5, 8.0] * 5000}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.variance("fare", lower=0, upper=20, root=True, absolute=2).met
        True
        """
        reader, scalar = self._reader, self._reader.value(value)

        def made(bounds: Bounds) -> Variance:
            """Return the aggregate under given bounds."""
            return Variance(scalar, *reader.range(lower, upper, bounds), sample, root)

        return self._ask(made, "stddev" if root else "variance", by, asking)

    def quantile(
        self,
        value: Any,
        q: float | Sequence[float],
        *,
        lower: float | None = None,
        upper: float | None = None,
        by: By = None,
        **asking: Unpack[Asking],
    ) -> Answer:
        """Return the q-quantile of values, each clamped into [lower, upper] first, or several at once.

        The target is an error of the value (relative=, absolute=) or of its rank (rank=0.01: one row in a hundred).
        Several by rank share their counts; their columns are quantile_0.25 and so on.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"age": [*range(100)] * 50}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.quantile("age", (0.25, 0.5, 0.75), lower=0, upper=120, rank=0.05).names
        ('quantile_0.25', 'quantile_0.5', 'quantile_0.75')
        """
        reader, scalar = self._reader, self._reader.value(value)
        kind = reader.type(scalar)

        def made(bounds: Bounds) -> Aggregates:
            """Return the aggregate, or several, under given bounds."""
            ends = reader.range(lower, upper, bounds)
            each = {ending: Quantile.of(scalar, kind, one, *ends) for ending, one in several_quantiles(q).items()}
            return each.get("", each)

        return self._ask(made, "quantile", by, asking)

    def histogram(self, value: Any, edges: Sequence[float], *, by: By = None, **asking: Unpack[Asking]) -> Answer:
        """Count rows in the bins [edge, next edge), the last one closed; of every group if `by` is given.

        Args:
            value: a numeric column, or an expression as SQL text or ibis.
            edges: rising numbers; values outside of them are in no bin.
            by: further grouping columns, with their keys: a cross table.
            **asking: the groups and rows, see `Where`; the target and the price, see `How`.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"age": [*range(100)] * 50}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.histogram("age", [0, 18, 65, 120], absolute=50).to_arrow().column_names[:3]
        ['age_from', 'age_to', 'count']
        """
        about, given = _about(asking), self._given(asking.get("bounds"))

        def asked(under: Bounds, keys: Any, left: frozenset[str]) -> CheckedQuestion:
            """Return the question under given bounds, with keys; without keys one of as many groups."""
            named = about | {"bounds": under, "keys": keys}
            if "keys" in left:
                return self._reader.call(Count(), "count", by=by, **named)
            return self._reader.histogram(value, edges, by=by, **named)

        read, request = all_read(given, about.get("keys"), _how(asking), asked, self._wanted)
        return self._answered(read, given, request)

    def sql(
        self,
        text: str,
        *,
        keys: Any = None,
        bounds: Bounds | AutoBounds | None = None,
        lower: float | None = None,
        upper: float | None = None,
        **how: Unpack[How],
    ) -> Any:
        """Answer one SELECT of aggregates over the protected table; see the SQL reference for what is in.

        Args:
            text: the SQL, such as "SELECT dest, COUNT(*) AS flights FROM flights GROUP BY dest".
            keys: the public groups, see `Where`.
            bounds: contribution bounds of this question, instead of the session's.
            lower: values below it count as it, in aggregates that name no clamps of their own.
            upper: values above it count as it, likewise.
            **how: the target and the price, see `How`.

        Returns:
            The `Answer`; for EXPLAIN SELECT ..., which spends nothing, the `Plan`.

        Raises:
            UnsupportedQuery: outside the language; says what, where, and what to write instead.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.sql("SELECT COUNT(*) AS n FROM data", absolute=40).name
        'n'
        """
        given = self._given(bounds)
        read, request, explain = text_read(self._reader, self._context.budget, text, (keys, given, lower, upper), how)
        return priced(self._context, read, given, request) if explain else self._answered(read, given, request)

    def plan(
        self,
        text: str | None = None,
        *,
        by: By = None,
        lower: float | None = None,
        upper: float | None = None,
        **asking: Unpack[Asking],
    ) -> Plan | ReleasePlan:
        """Price a question, as SQL text or as in `count`, before anything is paid. Touches no data and is free.

        Args:
            text: as in `sql`, or None for a count.
            by: as in `count`.
            lower: as in `sql`.
            upper: as in `sql`.
            **asking: the groups and rows, see `Where`; the target and the price, see `How`.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.plan("SELECT COUNT(*) FROM data", absolute=100).worst_price
        Gdp(mu=0.0195996)
        """
        given = self._given(asking.get("bounds"))
        if text is None:
            read, request = self._call(lambda _: Count(), "count", by, asking)
        else:
            under = asking.get("keys"), given, lower, upper
            read, request, _ = text_read(self._reader, self._context.budget, text, under, _how(asking))
        return priced(self._context, read, given, request)

    def bounds_report(
        self,
        value: Any = None,
        *,
        loss: Booked | None = None,
        confidence: float = 0.95,
        by: By = None,
        keys: Any = None,
        where: Any = None,
        bounds: Bounds | None = None,
    ) -> Cut:
        """Estimate privately what the contribution bounds of a question cut: shares of units, rows and value.

        Answers speak of the bounded data; what bounds cut is in no interval. The estimate is measured once and kept:
        reports on other bounds of the same question are free, and so are warnings in its answers.

        Args:
            value: a numeric column or expression whose clamps are asked about too, or None.
            loss: what it may cost, in the ledger's currency; None for a hundredth of the budget.
            confidence: the chance that each share's interval holds.
            by: the groups of the question.
            keys: their public keys.
            where: its predicate.
            bounds: the bounds that are reported on; by default the session's.

        >>> import pyarrow as pa
        >>> import farthing
        >>> visits = pa.table({"who": [n // 8 for n in range(8000)]})
        >>> s = farthing.Session(visits, unit="who", budget=farthing.Budget(mu=1), bounds=farthing.Bounds(max_rows=4))
        >>> cut = s.bounds_report(loss=farthing.Gdp(0.2))
        >>> bool(0.3 < cut.report.rows.upper)
        True
        """
        scalar = None if value is None else self._reader.value(value)
        question = self._reader.call(Count(scalar), "count", by=by, keys=keys, where=where, bounds=bounds)
        return contribution_report.cut(self._context, question, scalar, loss=loss, confidence=confidence)

    def _call(self, made: Callable[[Bounds], Aggregates], name: str, by: By, asking: Any) -> tuple[Read, Request]:
        """Return how one aggregate is read under given bounds, on which it may depend, and what is wanted of it."""
        about, given = _about(asking), self._given(asking.get("bounds"))

        def asked(under: Bounds, keys: Any, _: frozenset[str]) -> CheckedQuestion:
            """Return the question under bounds, with keys."""
            return self._reader.call(made(under), name, by=by, **(about | {"bounds": under, "keys": keys}))

        return all_read(given, about.get("keys"), _how(asking), asked, self._wanted)

    def _wanted(self, **how: Any) -> Request:
        """Return what is wanted, with the session's target where none is named."""
        return Request.of(**self._reader.wanted(how))

    def _ask(self, made: Callable[[Bounds], Aggregates], name: str, by: By, asking: Any) -> Answer:
        """Answer one aggregate, which may depend on the bounds."""
        read, request = self._call(made, name, by, asking)
        return self._answered(read, self._given(asking.get("bounds")), request)

    def _given(self, bounds: Bounds | AutoBounds | None) -> Bounds | AutoBounds:
        """Return the bounds of a question: its own, or the session's."""
        return self._reader.bounds if bounds is None else bounds


def _about(asking: Any) -> dict[str, Any]:
    """Return the options that say about what."""
    return {name: asking[name] for name in _WHERE if name in asking}


def _how(asking: Any) -> dict[str, Any]:
    """Return the options that say how."""
    return {name: value for name, value in asking.items() if name not in _WHERE}
