"""What leaves: answers with their intervals and their price. Never a raw aggregate."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from farthing.cells import Cells, GroupLoss
from farthing.errors import InvalidTarget, UnsupportedQuery
from farthing.privacy.words import state
from farthing.query import outward
from farthing.query.rounding import UNROUNDED
from farthing.tabular import METADATA, Tabular

__all__ = ["Answer", "Cells", "GroupLoss"]

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from farthing.accuracy.contribution_report import Share
    from farthing.accuracy.target import Target
    from farthing.limits import Limit
    from farthing.privacy.loss import Booked
    from farthing.query.aftermath import Aftermath
    from farthing.query.comparison import ComputedNumber
    from farthing.trace import Trace

Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answer(Tabular):
    """The answer to one question: numbers with intervals, and what they cost.

    Each interval holds the truth *of the bounded data* with the stated confidence, whatever the truth is, for each
    group and aggregate by itself (all at once if the target says `simultaneous`). Counts and sums are signed: noise can
    push an empty group below zero, and clamping it would bias every total.

    Attributes:
        names: the answer columns, one for each aggregate.
        columns: their numbers, as arrays.
        keys: the public keys of the rows, an Arrow table; None for a single number.
        paid_by_group: float64[groups], each group's own loss in this ask: mu, rho or epsilon. It does not add up.
        target: what was asked for of the first aggregate, or None where a loss or a rank was given instead.
        goal: what was asked for of all, in words.
        confidence: the chance that an interval of this answer holds its truth, by itself.
        paid: the loss of this ask, in the ledger's currency; zero when asking again.
        remaining: what the ledger had left right after this ask.
        delta: the delta at which epsilons of this ledger are stated.
        about: what the numbers are about, in words: the privacy unit and its bounds.
        facts: what was asked, as plain values: version, data, question, unit, bounds, keys, targets, confidence.
        kept: the share of all rows that the bounds keep, with an interval at this confidence, where a bounds report of
            the same question was paid for before; else None.
        computed: the columns that are computed of released ones, as LAG is, with how many of their intervals each holds
            on: see `confidence_of`.

    >>> import pyarrow as pa
    >>> import farthing
    >>> s = farthing.Session(pa.table({"x": [1, 2, 3]}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> a = s.count(absolute=50)
    >>> bool(a.lower < a.upper), a.met
    (True, True)
    """

    names: tuple[str, ...]
    columns: tuple[Cells, ...]
    keys: pa.Table | None
    paid_by_group: Float64
    target: Target | None
    goal: str
    confidence: float
    paid: Booked
    remaining: Booked
    delta: float
    about: str
    _doubling: Callable[[], Booked | None]
    _refine: Callable[..., Answer]
    _strict: Float64
    _by_size: bool
    _optimality: Callable[[], Limit]
    _trace: Callable[[], Trace]
    _shown: tuple[str, ...] = ()
    _data_set: str = ""
    _together: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    kept: Share | None = None
    computed: Mapping[str, int] = field(default_factory=dict)

    @property
    def confidence_together(self) -> float:
        """The chance that this answer's interval and those of all answers to the question before it hold their truth.

        Whoever decides by the last answer whether, and how much more sharply, to ask again has this, not `confidence`:
        the chances of a miss more than add up. Asking again free of charge adds none. With together=True it never falls
        below the confidence asked. Under a pure budget the targets have to be fixed beforehand.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": [1, 2, 3]}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> first = s.count(absolute=100)
        >>> sharper = first.refine(absolute=50)
        >>> first.confidence_together, round(sharper.confidence_together, 3), sharper.confidence
        (0.95, 0.888, 0.95)
        """
        return self.confidence if self._together is None else min(round(self._together, 12), 1.0)

    def confidence_of(self, name: str) -> float:
        """Return the chance that an interval of one column holds its truth, by itself.

        It is `confidence` where the number was measured. What is computed of released numbers, as LAG is, holds where
        all of their intervals do: the chances of a miss of as many add up, unless they all hold at once anyway.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"m": [1, 2, 2]}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> text = "SELECT m, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY m) AS more FROM data GROUP BY m"
        >>> answer = s.sql(text, keys={"m": [1, 2]}, absolute=50)
        >>> answer.confidence_of("n"), answer.confidence_of("more")
        (0.95, 0.9)
        """
        many = 1 if self.target is not None and self.target.simultaneous else self.computed.get(name, 1)
        return round(max(0.0, 1 - many * (1 - self.confidence)), 12)

    @property
    def name(self) -> str:
        """The name of the first answer column."""
        return self.names[0]

    @property
    def cells(self) -> Cells:
        """The numbers of the first answer column."""
        return self.columns[0]

    def __getitem__(self, name: str) -> Cells:
        """Return the numbers of an answer column.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": [1, 2, 3]}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.count(absolute=50)["count"].met
        array([ True])
        """
        if name not in self.names:
            raise UnsupportedQuery(
                f"the answer has no column {name!r}",
                construct="unknown column",
                rule="columns are named as in the question",
                next_step="the columns are " + ", ".join(self.names),
            )
        return self.columns[self.names.index(name)]

    @property
    def value(self) -> Any:
        """The answers: float64[groups], or one float without groups."""
        return self._shaped(self.cells.value)

    @property
    def estimate(self) -> Any:
        """Estimates of the truths, for totals and rankings: float64[groups], or one float without groups.

        A value is the number that surely meets a relative target wherever its interval holds the truth: it is low by up
        to the square of the target. An estimate of a Gaussian count or sum is right on average, within a tenth of its
        half-width at every truth; it has no target of its own. Elsewhere it is the value.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(5000)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> a = s.count(relative=0.3, absolute=30)
        >>> bool(a.value < a.estimate < a.upper)
        True
        """
        return self._shaped(self.cells.estimate)

    @property
    def lower(self) -> Any:
        """The lower ends of the intervals: float64[groups], or one float without groups."""
        return self._shaped(self.cells.lower)

    @property
    def upper(self) -> Any:
        """The upper ends of the intervals: float64[groups], or one float without groups."""
        return self._shaped(self.cells.upper)

    @property
    def met(self) -> Any:
        """Whether all aggregates reached their targets: bool[groups], or one bool without groups."""
        return self._shaped(np.logical_and.reduce([cells.met for cells in self.columns]))

    @property
    def group_paid(self) -> Any:
        """Each group's own loss in this ask (mu, rho or epsilon): float64[groups], or one float without groups.

        After a refine it may be above `paid`, which is what the most expensive group's total rose by: others caught up.
        What it says of a member's loss, without a delta: `privacy.ex_post.RenyiStatement`.
        """
        return self._shaped(self.paid_by_group)

    @property
    def doubling(self) -> Booked | None:
        """What the doubling baseline would have paid, computed from these released answers.

        None where it says nothing: for a named loss, and for several aggregates.
        """
        return self._doubling()

    @property
    def group_loss(self) -> GroupLoss:
        """What this ask costs the members of each group, as promised (strict) and as paid (ex post).

        >>> import pyarrow as pa
        >>> import farthing
        >>> rides = pa.table({"zone": ["a"] * 90_000 + ["b"] * 400})
        >>> s = farthing.Session(rides, budget=farthing.Budget(rho=1))
        >>> zones = {"by": "zone", "keys": {"zone": ["a", "b"]}}
        >>> large, small = s.count(**zones, relative=0.1, absolute=50, mechanism="linear-log").group_loss.strict
        >>> bool(large < small / 1_000)
        True
        """
        return GroupLoss(self._strict, self.paid_by_group, self.paid.parameter, self._by_size)

    def optimality(self) -> Limit:
        """Return the least loss that any unbiased mechanism could have paid for this, beside what was paid for it.

        From released values alone, over all groups and all asks that sharpened them; `str()` says it in words.

        Raises:
            UnsupportedQuery: no limit is known, as for means, variances, quantiles and several aggregates at once.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> bool(1 <= s.count(absolute=50).optimality().ratio < 1.1)
        True
        """
        return self._optimality()

    def trace(self) -> Trace:
        """Return how this ask closed in on its target: every look, with its interval and what was paid by then.

        Looks are kept of at most 1,000 groups, the last 64 of them; else, and for a free answer, the answer alone is
        told. Only a group's last interval is promised: see `Trace`.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> s.count(absolute=50).trace().to_arrow().column_names
        ['column', 'look', 'value', 'lower', 'upper', 'paid', 'final']
        """
        return self._trace()

    def _shaped(self, column: NDArray[Any]) -> Any:
        """Return an array as it is, or its only entry where there are no groups."""
        return column if self.keys is not None else column[0].item()

    def refine(self, *unnamed: Any, **changes: Any) -> Answer:
        """Return a sharper answer to the same question, paying about the difference.

        A quantile that was one private choice, as at a named loss, is asked from scratch.

        Args:
            *unnamed: refused: what is changed has a name.
            **changes: any of relative, absolute, confidence, simultaneous, together, loss, max_epsilon, cap, on_miss,
                progress; what is left out stays as it was asked. With mechanism= a sharper answer is a release of
                its own.

        Raises:
            InvalidTarget: something without a name, or an option out of range; nothing is charged.
            BudgetExceeded: the difference does not fit in what is left; nothing is charged.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": [1, 2, 3]}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> a = s.count(absolute=100)
        >>> sharper = a.refine(absolute=50)
        >>> bool(sharper.upper - sharper.lower < a.upper - a.lower)
        True
        """
        if unnamed:
            raise InvalidTarget(
                "refine was not told what to change",
                rule="relative=, absolute=, confidence=, share=, loss=, cap=, ...",
                got=", ".join(map(repr, unnamed))[:80],
                next_step="answer.refine(relative=0.05), or answer.refine(absolute=50)",
            )
        return self._refine(**changes)

    def is_of(self, data_set: str) -> bool:
        """Return whether it was answered from that declared version of the data; True where nothing was measured."""
        return self._data_set in {"", data_set}

    def arranged(self, aftermath: Aftermath, shown: tuple[str, ...] = ()) -> Answer:
        """Return the same answer as HAVING, ORDER BY, LIMIT, ROUND and LAG leave it: free, of released numbers alone.

        Args:
            aftermath: which groups are shown, in which order, and what is computed beside them.
            shown: the columns in the order of the SELECT list; by default the keys, then the aggregates.
        """
        if aftermath.comparisons:
            return self._with(aftermath.comparisons).arranged(replace(aftermath, comparisons=()), shown)
        rounded = dict(aftermath.rounded)
        columns = tuple(cells.rounded(rounded.get(name)) for name, cells in zip(self.names, self.columns, strict=True))
        if aftermath.shows_all or self.keys is None:
            return replace(self, columns=columns, _shown=shown)
        values: dict[str, Float64] = {}
        estimates: dict[str, Float64] = {}
        for name, cells, before in zip(self.names, columns, self.columns, strict=True):
            for end, one in {"": cells, UNROUNDED: before}.items():
                values |= {name + end: one.value, f"{name}_lower{end}": one.lower, f"{name}_upper{end}": one.upper}
                estimates |= {name + end: one.estimate}
        places, keys = aftermath.arranged(values, self.keys, estimates), self.keys
        return replace(
            self,
            _trace=lambda: self.trace().keep(places, keys.take(places)),
            columns=tuple(cells.keep(places) for cells in columns),
            keys=self.keys.take(places),
            paid_by_group=self.paid_by_group[places],
            _strict=self._strict[places],
            _shown=shown,
        )

    def _with(self, comparisons: tuple[ComputedNumber, ...]) -> Answer:
        """Return the same answer with columns that are computed of its own."""
        own = dict(zip(self.names, self.columns, strict=True))
        reached = np.ones(len(self.paid_by_group), np.bool_)
        for one in comparisons:
            value, lower, upper, estimate = one.told(own, self.keys)
            own[one.name] = Cells(value, lower, upper, reached, estimate)
        counts = {one.name: len(one.cells) for one in comparisons}
        return replace(self, names=tuple(own), columns=tuple(own.values()), computed=counts)

    def to_arrow(self, *, estimate: bool = False) -> pa.Table:
        """Return the rows: the keys; <name>, <name>_lower, <name>_upper for each aggregate; met, paid; kept if known.

        What was asked stands as JSON in the schema's metadata, under the key "farthing", and goes into Parquet with it.

        Args:
            estimate: whether each aggregate has <name>_estimate, too.
        """
        import pyarrow as pa

        keys = () if self.keys is None else tuple(self.keys.column_names)
        columns: dict[str, Any] = {}
        for name in self._shown or (*keys, *self.names):
            if self.keys is not None and name in keys:
                columns[name] = self.keys.column(name)
                continue
            cells = self[name]
            told = {name: cells.value, f"{name}_lower": cells.lower, f"{name}_upper": cells.upper}
            told |= {f"{name}_estimate": cells.estimate} if estimate else {}
            columns |= (
                {one: pa.array(told[one], mask=np.isnan(told[one])) for one in told} if name in self.computed else told
            )
        reached = np.logical_and.reduce([cells.met for cells in self.columns])
        columns |= {"met": reached, "paid": self.paid_by_group}
        if self.kept is not None and "kept" not in columns:
            columns["kept"] = np.full(len(reached), self.kept.value)
        table = pa.table(columns)
        return table.replace_schema_metadata({METADATA: outward.dumped(self.facts)}) if self.facts else table

    def chart(self, path: str | Path | None = None, *, column: str | None = None) -> Any:
        """Return an altair chart of one answer column, by default the first; with a path save it too.

        Args:
            path: an .svg, .png or .html file, or None.
            column: the name of an answer column.
        """
        from farthing import charts
        from farthing.picture import still

        name = self.name if column is None else column
        shown = replace(self, names=(name,), columns=(self[name],), _shown=())
        keys = tuple(self.keys.column_names) if self.keys is not None else ()
        picture = charts.answer_chart(
            shown.to_arrow(estimate=True), keys=keys, name=name, title=shown.caption, parameter=self.paid.parameter
        )
        if path is not None:
            charts.save(picture, path)
        return still(picture)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values, for JSON: its rows, its price, its promise; losses with their epsilon.

        >>> import pyarrow as pa
        >>> import farthing
        >>> s = farthing.Session(pa.table({"x": [1, 2, 3]}), budget=farthing.Budget(epsilon=1, delta=1e-6))
        >>> list(s.count(absolute=50).to_dict())[:3]
        ['answers', 'paid', 'remaining']
        """
        doubling = self.doubling
        return {
            "answers": self.rows(),
            "paid": state(self.paid, self.delta),
            "remaining": state(self.remaining, self.delta),
            "target": None if self.target is None else asdict(self.target),
            "goal": self.goal,
            "confidence": self.confidence,
            "confidence_together": self.confidence_together,
            "about": self.about,
            "doubling": None if doubling is None else state(doubling, self.delta),
            "kept": None if self.kept is None else self.kept._asdict(),
        }

    @property
    def caption(self) -> str:
        """The promise in one line: target, confidence, and how many groups met it."""
        reached = np.logical_and.reduce([cells.met for cells in self.columns])
        named = self.goal.endswith("(named)")
        goal = "at the loss you named" if named else self.goal
        by = "" if named else f", met by {int(reached.sum()):,} of {len(reached):,}"
        sure = f"{self.confidence:.4g} confidence"
        if self.confidence_together < self.confidence:
            sure += f" ({self.confidence_together:.4g} together with earlier answers)"
        counted = "" if self.kept is None else f"; counts about {self.kept} of the rows"
        measured = ", ".join(name for name in self.names if name not in self.computed)
        less = {name: self.confidence_of(name) for name in self.computed}
        told = ", ".join(f"{name} {chance:.4g}" for name, chance in less.items() if chance < self.confidence)
        return f"{measured} {goal}, {sure}{by}{counted}" + (
            f"; computed of them, with confidence: {told}" if told else ""
        )

    @property
    def price(self) -> str:
        """The price in one line: this ask and what is left."""
        left = self.remaining
        text = f"paid {self.paid!r}"
        if self.delta:
            text += f" = epsilon {self.paid.epsilon(self.delta):.4g} at delta {self.delta:g}"
        return f"{text}; left {left!r}" + (f" = epsilon {left.epsilon(self.delta):.4g}" if self.delta else "")

    @property
    def footer(self) -> tuple[str, ...]:
        """The three lines below the rows: the promise, the price, and what the numbers are about."""
        return self.caption, self.price, self.about
