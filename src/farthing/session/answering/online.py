"""Queries one by one, by private multiplicative weights: the price of a run is paid when it starts, and few start."""

from __future__ import annotations

import math
import os
import secrets
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.errors import InvalidOption, InvalidTarget, PriceRisen
from farthing.mechanisms.linear_queries import MOST_CELLS, MatrixQueries, uniform
from farthing.mechanisms.online_weights import OnlineRule, OnlineRun
from farthing.mechanisms.projection import noisy_total
from farthing.privacy.words import said
from farthing.query.words import about
from farthing.sealed import opened, sealed
from farthing.session.answering.crossed_counts import crossed_counts
from farthing.session.answering.release_options import MOST_COLUMNS, reach_of
from farthing.session.core.booked_question import Bill
from farthing.session.core.ceiling import ceiling
from farthing.session.core.shield import shielded
from farthing.session.core.transaction import answer_and_book
from farthing.session.reading.request import Request
from farthing.tabular import Lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from farthing.ledger.entry import Receipt
    from farthing.privacy.loss import Booked
    from farthing.query import Query
    from farthing.query.keys import Keys
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import QuestionReader

    Float64 = NDArray[np.float64]

_EMPTY: Final = b""


@dataclass(frozen=True, slots=True)
class OnlineAnswer(Lines):
    """The answer of one online query.

    Attributes:
        value: the number of rows, weighted.
        lower, upper: between which the truth is, of all answers at once with the confidence.
        measured: whether it ended a run, and was told from the data; else it followed from what was told before, free.
        paid: what this query was charged: the price of a run where it started one, else zero.
    """

    value: float
    lower: float
    upper: float
    measured: bool
    paid: Booked

    def __str__(self) -> str:
        how = "measured" if self.measured else "from what was measured before"
        return f"{self.value:,.0f}, from {self.lower:,.0f} to {self.upper:,.0f}; {how}; paid {self.paid!r}"


@dataclass(eq=False)
class Online(Lines):
    """Adaptive queries on a domain, all within one error at once; most are answered free of charge.

    A public histogram answers. A secret watch tells where it is off by more than is promised, and by how much: the
    histogram learns from it. A run of the watch is paid when it starts, and ends with that.
    What was learned is in memory and forgotten with the object; what was charged stays.

    Attributes:
        rule: what is promised, and what follows from it.
        asked: how many queries were answered.
        measured: how many of them were measured.
        paid: what all of it was charged.
        at_most: what all of it may be charged, or None for no limit but the budget.

    >>> import pyarrow as pa
    >>> import farthing
    >>> rides = pa.table({"zone": ["a"] * 9000 + ["b"] * 400})
    >>> s = farthing.Session(rides, budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> online = s.online(keys={"zone": ["a", "b"]}, absolute=4000, queries=100, rows=20_000)
    >>> first, again = online.ask(zone=["a"]), online.ask(zone=["a"])
    >>> first.lower <= 9000 <= first.upper, again.lower <= 9000 <= again.upper
    (True, True)
    """

    rule: OnlineRule
    columns: tuple[str, ...]
    about: str
    _context: Context
    _query: Query
    _lists: tuple[Keys, ...]
    _words: str
    at_most: Booked | None = None
    asked: int = 0
    measured: int = 0
    paid: Booked = field(init=False)
    _total: float = 0.0
    _weights: Float64 = field(init=False, repr=False)
    _run: OnlineRun | None = field(default=None, repr=False)
    _one: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _process: int = field(default_factory=os.getpid, repr=False)

    def __post_init__(self) -> None:
        self.paid = self._context.loss(0)
        self._weights = uniform(self.rule.cells, 1.0)

    @property
    def price(self) -> Booked:
        """What the next run costs, the first one with the number of rows."""
        return self.rule.run if self._total else self.rule.run + self.rule.opening

    @property
    def histogram(self) -> Float64:
        """The public histogram, float64[values of each column]: what all queries that were not measured follow from."""
        return self._weights.reshape([len(keys) for keys in self._lists]).copy()

    def ask(self, weights: Any = None, **among: Any) -> OnlineAnswer:
        """Answer one query: the rows whose values are among those listed, or a weighted sum of all cells.

        Args:
            weights: numbers in [-1, 1], shaped as the domain: the values of each column, in the order of the columns.
            **among: values by column, `zone=["a"]`: a row counts if it has one of them in every column named.

        Raises:
            InvalidOption: weights that are none, columns or values that are not listed; nothing is charged.
            InvalidTarget: more queries, or runs, than were promised.
            BudgetExceeded: the next run does not fit; PriceRisen: it would pass `at_most`. Nothing is charged.
        """
        query = MatrixQueries(self._weights_of(weights, among))
        if self._process != os.getpid():  # a run was paid once, by the process that goes on with it
            self._process, self._one, self._run = os.getpid(), threading.Lock(), None
        with self._one:
            return self._told(query)

    def _told(self, query: MatrixQueries) -> OnlineAnswer:
        """Answer a query, nobody else asking: a run is paid for one measurement."""
        if self.asked >= self.rule.queries:
            raise InvalidTarget(
                "all queries that were promised are answered",
                rule=f"at most {self.rule.queries:,} queries, as was said when it was opened",
                got="one more",
                next_step="open another with session.online(...)",
            )
        paid = self._context.loss(0)
        if self._run is None or self._run.ended:
            paid = self._started()
        assert self._run is not None  # noqa: S101  # it was started
        value = self._answered(query)
        self.asked += 1
        if self._run.ended:
            self.measured += 1
            self._weights = self._run.weights
        reach = self.rule.margin if self._run.ended else self.rule.absolute
        return OnlineAnswer(value, value - reach, value + reach, self._run.ended, paid)

    def _answered(self, query: MatrixQueries) -> float:
        """Return the run's answer; a run that is interrupted in between is over, and stays paid."""
        assert self._run is not None  # noqa: S101  # it was started
        done = False
        try:
            value: float = shielded(self._run.ask, query)
            done = True
        finally:
            self._run.ended = self._run.ended or not done
        return value

    def _started(self) -> Booked:
        """Start a run, at its whole price; the first one with the number of rows."""
        if self.measured >= self.rule.updates:
            raise InvalidTarget(
                "more runs ended than the theorem allows",
                rule=f"at most {self.rule.updates:,} where the table has at most {self.rule.rows:,} rows",
                got=f"{self.measured:,}",
                next_step="open another with a larger rows=",
            )
        if self.at_most is not None and self.paid.farthings + _whole(self).farthings > self.at_most.farthings:
            raise self._passed(self.at_most)
        question = f"online {secrets.token_hex(16)}"  # nobody asks it again
        run, total, price = answer_and_book(self._context, question, lambda _: _BookedRun(self))
        self._run, self._total, self._weights = run, total, run.weights
        self.paid = self.paid + price
        return price

    def _passed(self, most: Booked) -> PriceRisen:
        """Return the refusal of a run that would pass what all runs may be charged."""
        needed, delta = (
            self._context.loss(self.paid.farthings + _whole(self).farthings),
            self._context.budget.report_delta,
        )
        return PriceRisen(
            "the next run does not fit in what is left of at_most",
            needed=needed,
            left=most,
            rule="all runs together are charged at most that; nothing was charged for this one",
            got=f"{said(needed, delta)} with those before, at most {said(most, delta)}",
            next_step="ask what the histogram tells for free, or open another with a larger at_most=",
        )

    def _weights_of(self, weights: Any, among: Mapping[str, Any]) -> Float64:
        """Return the weights of a query, float64[1, cells]."""
        sizes = [len(keys) for keys in self._lists]
        if weights is None and among:
            return _product(self._lists, self.columns, among).reshape(1, -1)
        given = np.asarray(weights)
        if among or given.shape not in {tuple(sizes), (math.prod(sizes),)} or given.dtype.kind not in "iufb":
            raise InvalidOption(
                "this is not a query on the domain",
                rule=f"weights in [-1, 1] of shape {tuple(sizes)}, by {', '.join(self.columns)}; or values by column",
                got="both" if among and weights is not None else f"{type(weights).__name__} of shape {given.shape}",
                next_step=f"online.ask({self.columns[0]}=[...])",
            )
        return given.reshape(1, -1)

    def __repr__(self) -> str:
        rule = self.rule
        done = f"{self.asked:,} of {rule.queries:,} queries answered, {self.measured:,} measured"
        promise = f"each within {rule.absolute:g} at {rule.confidence:.4g} confidence together"
        return f"<farthing online: {done}, {promise}; paid {self.paid!r}; the next run costs {self.price!r}>"


@dataclass(frozen=True, slots=True, eq=False)
class _BookedRun:
    """One run, as a transaction books it: its whole price, whatever it will answer."""

    online: Online

    @property
    def bill(self) -> Bill:
        """What it is charged."""
        price = _whole(self.online)
        rule, label = self.online.rule, self.online._words  # noqa: SLF001  # its own
        target = f"within {rule.absolute:g}, {rule.confidence:.4g}"
        return Bill(price, price, label, lambda: "a wider error may fit", target, name="the next run")

    def stored_answer(self) -> tuple[OnlineRun, float, Booked]:
        """Return nothing: a run always has a bill."""
        raise NotImplementedError

    def measured(self, receipt: Receipt) -> tuple[tuple[OnlineRun, float, Booked], Booked]:
        """Count, tell the number of rows where that was not told yet, and start the watch."""
        own = self.online
        every = tuple(range(len(own.columns)))
        counts = crossed_counts(own._context, own._query, own._lists, {every}, receipt)  # noqa: SLF001  # its own
        cells = sealed(opened(counts)[every].reshape(-1))
        total, weights = own._total, own._weights  # noqa: SLF001  # its own
        if not total:
            total = noisy_total(cells, own.rule.opening, own.rule.reach, None)
            weights = uniform(own.rule.cells, total)
        price = _whole(own)
        return (OnlineRun(own.rule, cells, weights, total), total, price), price

    def merged(self, *_: object) -> bytes:
        """Return what the ledger is to keep: nothing, since a run is in memory only."""
        return _EMPTY


def _whole(online: Online) -> Booked:
    """Return the price of the next run in whole farthings, rounded up."""
    return online._context.loss(online.price.farthings)  # noqa: SLF001  # its own


def opened_online(
    context: Context,
    reader: QuestionReader,
    keys: Any,
    promise: Mapping[str, Any],
    about_what: Mapping[str, Any],
) -> Online:
    """Return an object that answers adaptive queries; nothing is charged before the first.

    Guarantee: what all answers together cost is what the ledger charged: the price of each run when it started.
    Proof: docs/proofs/mechanisms.online_weights.md; docs/proofs/session.answering.one_question.md for the books.
    Assumes: an engine that keeps the contract of `engines.Engine`; the ledger is durable.
    Rounds: prices up to whole farthings.

    Args:
        context: the data and the books.
        reader: reads keys and conditions.
        keys: the listed values of each column: they make the domain.
        promise: absolute, queries, rows, confidence.
        about_what: where, bounds, at_most.
    """
    at_most = Request.of(absolute=1.0, at_most=about_what.get("at_most")).at_most
    with ceiling(context, at_most):  # refuses another currency
        pass
    names = tuple(sorted(keys)) if hasattr(keys, "keys") and all(isinstance(one, str) for one in keys) else ()
    if not 1 <= len(names) <= MOST_COLUMNS:
        raise InvalidOption(
            "online queries need a domain",
            rule=f"keys: a mapping with the listed values of 1 to {MOST_COLUMNS} columns",
            got=type(keys).__name__,
            next_step='session.online(keys={"hour": range(24)}, absolute=500, queries=1000, rows=50_000)',
        )
    query, shown = reader.crossing(names, keys=keys, where=about_what.get("where"), bounds=about_what.get("bounds"))
    lists = tuple(one.arranged() for one in shown)
    cells = math.prod(map(len, lists))
    if cells > MOST_CELLS:
        raise InvalidOption(
            "the domain is too large for online queries",
            rule=f"at most {MOST_CELLS:,} cells",
            got=f"{cells:,}",
            next_step="fewer columns or values; session.release(...) of tables never holds the domain",
        )
    reach = reach_of(query, lists)
    rule = OnlineRule(**promise, cells=cells, reach=reach, currency=context.budget.currency)
    words = f"online queries by {', '.join(names)} FROM {query.table} [{cells:,} cells]"
    return Online(rule, names, about(query), context, query, lists, words, at_most)


def _product(lists: tuple[Keys, ...], columns: tuple[str, ...], among: Mapping[str, Any]) -> Float64:
    """Return float64[values of each column], 1 where every named column has one of the values named for it."""
    found = np.ones(())
    unknown = sorted(set(among) - set(columns))
    for keys, column in zip(lists, columns, strict=True):
        listed = keys.column(column).to_pylist()
        wanted = among.get(column)
        inside = np.ones(len(listed)) if wanted is None else np.array([float(value in wanted) for value in listed])
        unknown += [] if wanted is None else [repr(value) for value in wanted if value not in listed]
        found = np.multiply.outer(found, inside)
    if unknown:
        raise InvalidOption(
            "a query names what is not in the domain",
            rule="columns and values that are listed in keys",
            got=", ".join(map(str, unknown))[:80],
            next_step=f"the columns are {', '.join(columns)}",
        )
    return found
