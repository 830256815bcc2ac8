"""The questions about many tables at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, Required, TypedDict, Unpack, overload

from farthing.session.answering.release_options import MODELS, ROWS, AskedRows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from farthing.planning.products import ProductPlan
    from farthing.planning.release import ReleasePlan
    from farthing.planning.synthetic import SyntheticPlan
    from farthing.privacy.loss import Booked, Loss
    from farthing.query import Bounds
    from farthing.released import Release
    from farthing.released_products import ProductRelease
    from farthing.released_synthetic import SyntheticProducts, SyntheticRelease
    from farthing.session.answering.online import Online
    from farthing.session.answering.product_request import ProductRequest
    from farthing.session.answering.release_request import ReleaseRequest
    from farthing.session.answering.synthetic_request import SyntheticRequest
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import QuestionReader
    from farthing.workloads import Marginals, Products


class Wanted(TypedDict, total=False):
    """Which rows, how accurate, how sure, at what price at most. One of absolute, rms, loss is given.

    Keys:
        keys: the public values of each column: {"sex": [...], "age": range(100)}, or "table.column" of a declared
            public table, or "enum".
        where: a predicate, as SQL text or an ibis expression.
        name: the name of the answer column, default "count".
        bounds: contribution bounds of this question, instead of the session's.
        relative: the half-width as a fraction of the cell, with absolute= for small cells: the target is the larger
            of the two. A coarse look at all tables decides how precisely each is measured.
        absolute: the half-width of every cell's interval, > 0; over its weight where a table has one.
        rms: the root mean squared error of a cell, over all cells of all tables, > 0.
        loss: a loss to pay instead (Gdp or Zcdp, in the ledger's currency): the mean error is as small as it allows.
        confidence: the chance that an interval holds its truth, in [0.5, 1); default 0.95.
        simultaneous: whether all intervals hold at once instead of each; default False.
        together: whether the intervals of all releases of these rows hold together, those before and those to come,
            whatever decides on their targets; default False.
        max_epsilon: the most epsilon that this question may cost.
        at_most: the most that this ask may be charged, such as the `worst_price` of its plan, see `How`.
        cap: the most it may cost: a loss, or "all" of what is left; default a tenth of the budget.
        mechanism: "auto" (the default) or what `contest` calls a way to measure; models of the data have other
            options, see `Named`, and so has "rows", see `ForRows`.
    """

    keys: Any
    where: Any
    name: str
    bounds: Bounds | None
    relative: float
    absolute: float
    rms: float
    loss: Booked | None
    confidence: float
    simultaneous: bool
    together: bool
    max_epsilon: float | None
    at_most: Booked | None
    cap: Loss | str | None
    mechanism: str


class Named(TypedDict, total=False):
    """The options of a release by a model, whose error is told with the answer and not known before it.

    Keys:
        keys, where, name, bounds: which rows, see `Wanted`.
        loss: what it costs, in the ledger's currency.
        confidence: the chance that the error of a table is between the ends that are told, in [0.5, 1); default 0.95.
        simultaneous: whether all are at once instead of each; default False.
        at_most: the most that this ask may be charged, see `How`.
        mechanism: "tree", "adaptive", "mwem", "projection" or "small database".
    """

    keys: Any
    where: Any
    name: str
    bounds: Bounds | None
    loss: Required[Booked]
    confidence: float
    simultaneous: bool
    at_most: Booked | None
    mechanism: Required[Literal["tree", "adaptive", "mwem", "projection", "small database"]]


class ForRows(TypedDict, total=False):
    """The options of a release that rows are to be made of, by the default or by "adaptive": those of `Named`.

    Keys:
        mechanism: "rows".
    """

    keys: Any
    where: Any
    name: str
    bounds: Bounds | None
    loss: Required[Booked]
    confidence: float
    simultaneous: bool
    at_most: Booked | None
    mechanism: Required[Literal["rows"]]


class Releases(Protocol):
    """Many statistics at once."""

    _context: Context
    _reader: QuestionReader

    @overload
    def release(  # type: ignore[overload-overlap]  # its mechanism is named
        self, workload: Marginals, **wanted: Unpack[Named]
    ) -> SyntheticRelease: ...

    @overload
    def release(  # type: ignore[overload-overlap]  # its mechanism is named
        self, workload: Products, **wanted: Unpack[Named]
    ) -> SyntheticProducts: ...

    @overload
    def release(  # type: ignore[overload-overlap]  # its mechanism is named
        self, workload: Marginals, **wanted: Unpack[ForRows]
    ) -> Release | SyntheticRelease: ...

    @overload
    def release(self, workload: Marginals, **wanted: Unpack[Wanted]) -> Release: ...

    @overload
    def release(self, workload: Products, **wanted: Unpack[Wanted]) -> ProductRelease: ...

    def release(
        self, workload: Marginals | Products, **wanted: Any
    ) -> Release | ProductRelease | SyntheticRelease | SyntheticProducts:
        """Count by many sets of columns at once, at the least loss; all tables agree with each other.

        A row counts if its value is listed in every column of the workload. With a unit column, each unit counts in at
        most `max_groups` combinations of all columns, with at most `max_rows` rows in each; all tables tell of the same
        rows. Asking again is free, so are tables that follow from those that were released before; a sharper release
        costs the difference.

        Args:
            workload: which tables: `farthing.workloads.marginals(columns, ways=2)`.
            **wanted: the rows, the goal and the price, see `Wanted`.

        Raises:
            InvalidTarget, InvalidKeys, InvalidBounds, InvalidOption, UnsupportedQuery: nothing is charged.
            BudgetExceeded: the price does not fit; OutOfReach: the goal costs more than the cap. Nothing is charged.

        >>> import pyarrow as pa
        >>> import farthing
        >>> from farthing.workloads import marginals
        >>> rides = pa.table({"zone": ["a"] * 900 + ["b"] * 40, "late": [True, False] * 470})
        >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> keys = {"zone": ["a", "b"], "late": [True, False]}
        >>> release = s.release(marginals(["zone", "late"], ways=2), keys=keys, absolute=60)
        >>> bool(abs(release["zone"].value[0] - 900) < 100)
        True
        """
        from farthing.session.answering import products, release, synthetic
        from farthing.session.answering.release_request import ReleaseRequest
        from farthing.workloads import Products

        if wanted.get("mechanism") in (*MODELS, ROWS):
            model = self._model(workload, wanted)
            return release.release(model) if isinstance(model, ReleaseRequest) else synthetic.release(model)
        if isinstance(workload, Products):
            return products.release(self._products(workload, wanted))
        return release.release(self._tables(workload, wanted))

    @overload
    def plan_release(  # type: ignore[overload-overlap]  # its mechanism is named
        self, workload: Marginals | Products, **wanted: Unpack[Named]
    ) -> SyntheticPlan: ...

    @overload
    def plan_release(  # type: ignore[overload-overlap]  # its mechanism is named
        self, workload: Marginals, **wanted: Unpack[ForRows]
    ) -> ReleasePlan | SyntheticPlan: ...

    @overload
    def plan_release(self, workload: Marginals, **wanted: Unpack[Wanted]) -> ReleasePlan: ...

    @overload
    def plan_release(self, workload: Products, **wanted: Unpack[Wanted]) -> ProductPlan: ...

    def plan_release(self, workload: Marginals | Products, **wanted: Any) -> ReleasePlan | ProductPlan | SyntheticPlan:
        """Price a release before anything is paid. Touches no data and is free.

        Args:
            workload: as in `release`.
            **wanted: as in `release`.

        >>> import pyarrow as pa
        >>> import farthing
        >>> from farthing.workloads import marginals
        >>> s = farthing.Session(pa.table({"a": [1, 2] * 250}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.plan_release(marginals(["a"], ways=1), keys={"a": [1, 2]}, absolute=50).fits
        True
        """
        from farthing.session.answering import products, release, synthetic
        from farthing.session.answering.release_request import ReleaseRequest
        from farthing.workloads import Products

        if wanted.get("mechanism") in (*MODELS, ROWS):
            model = self._model(workload, wanted)
            return release.plan(model) if isinstance(model, ReleaseRequest) else synthetic.plan(model)
        if isinstance(workload, Products):
            return products.plan(self._products(workload, wanted))
        return release.plan(self._tables(workload, wanted))

    def online(
        self,
        *,
        keys: Any,
        absolute: float,
        queries: int,
        rows: int,
        confidence: float = 0.95,
        where: Any = None,
        bounds: Bounds | None = None,
        at_most: Booked | None = None,
    ) -> Online:
        """Return an object that answers queries one by one, all within one error at once, most of them free.

        By private multiplicative weights. Nothing is charged before the first query, and then the price of one run; a
        run ends where a query had to be measured, and the next query starts, and pays, another.

        Args:
            keys: the listed values of each column; all their combinations are the domain, at most 2^20 cells.
            absolute: the error of every answer, in rows, >= 1.
            queries: how many queries there will be at most.
            rows: an upper bound on the rows of the table. The promise hangs on it, privacy does not.
            confidence: the chance that all answers are within the error.
            where: a predicate, as SQL text or an ibis expression.
            bounds: contribution bounds, instead of the session's.
            at_most: the most that all runs together may be charged: a run that would pass it is refused.

        Raises:
            InvalidOption, InvalidKeys, InvalidTarget: nothing is charged.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"a": [1, 2] * 5000}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> online = s.online(keys={"a": [1, 2]}, absolute=4000, queries=100, rows=20_000)
        >>> answer = online.ask(a=[1])
        >>> answer.lower <= 5000 <= answer.upper
        True
        """
        from farthing.session.answering.online import opened_online

        promise = {"absolute": absolute, "queries": queries, "rows": rows, "confidence": confidence}
        about = {"where": where, "bounds": bounds, "at_most": at_most}
        return opened_online(self._context, self._reader, keys, promise, about)

    def _model(self, workload: object, wanted: Mapping[str, Any]) -> SyntheticRequest | ReleaseRequest:
        """Return a release by a model, or for rows perhaps by residuals, read and checked."""
        from farthing.session.answering import synthetic_products, synthetic_request
        from farthing.workloads import Products

        if wanted["mechanism"] == ROWS:
            found = synthetic_request.for_rows(self._context, self._reader, workload, wanted)
            return self._tables(workload, found) if isinstance(found, dict) else found
        if isinstance(workload, Products):
            return synthetic_products.read(self._context, self._reader, workload, *AskedRows.of(wanted))
        return synthetic_request.read(self._context, self._reader, workload, *AskedRows.of(wanted))

    def _tables(self, workload: object, wanted: Mapping[str, Any]) -> ReleaseRequest:
        """Return a release of tables, read and checked."""
        from farthing.session.answering import release_request

        return release_request.read(self._context, self._reader, workload, *self._asked(wanted))

    def _products(self, workload: Products, wanted: Mapping[str, Any]) -> ProductRequest:
        """Return a release of products, read and checked."""
        from farthing.session.answering import product_request

        return product_request.read(self._context, self._reader, workload, *self._asked(wanted))

    def _asked(self, wanted: Mapping[str, Any]) -> tuple[AskedRows, Mapping[str, Any]]:
        """Return which rows, and the goal with the price, where defaults stand."""
        rows, how = AskedRows.of(wanted)
        return rows, self._reader.wanted(how) if how.get("rms") is None else how
