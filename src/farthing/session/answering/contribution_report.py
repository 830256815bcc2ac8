"""What the bounds of a question cut, estimated privately, and bounds chosen from that: booked like any answer."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.accuracy.contribution_report import NoisySpread, auto_bounds, report, warns
from farthing.accuracy.stop_rule import two_sided
from farthing.errors import InvalidBounds, InvalidTarget
from farthing.mechanisms.gaussian import GRAIN, Coin, GaussianMeasurements, Measured
from farthing.mechanisms.geometric import GeometricRelease, rate_of
from farthing.privacy.loss import Booked, Gdp, Pure, Zcdp
from farthing.query import Bounds
from farthing.query.aggregates import Count, Counts, NamedAggregate, Quantile, Sum
from farthing.query.expressions import Case, Literal
from farthing.query.expressions.walking import walk
from farthing.query.measures import Rows, Total
from farthing.session.answering import reuse
from farthing.session.answering.one_question import frame_of
from farthing.session.core.booked_question import Bill
from farthing.session.core.merging import merge
from farthing.session.core.records import read_blob, write_blob
from farthing.session.core.transaction import answer_and_book, stored_measurement
from farthing.tabular import Tabular

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from farthing.accuracy.contribution_report import ChosenBounds, ContributionReport, Share
    from farthing.ledger.entry import Receipt, Stored
    from farthing.query import Query
    from farthing.query.aggregates import Aggregate
    from farthing.query.expressions import Scalar
    from farthing.session.core.context import Context
    from farthing.session.reading.reader import CheckedQuestion
    from farthing.session.reading.request import Request

_FORMAT = b"farthing-spread-1"
_PLACES = ("groups", "rows", "least", "greatest")

_SHARES: Final = {
    "units_groups": "units that lose a group",
    "groups": "pairs of unit and group",
    "rows": "rows of a unit's fullest group",
    "units_value": "units with a value outside",
    "value": "size of the extreme values",
}
_VALUES: Final = frozenset({"units_value", "value"})

DEFAULT_SHARE: Final = 100
"""A spread may cost one part in so many of the budget unless it is told otherwise."""


@dataclass(frozen=True, slots=True, repr=False)
class Cut(Tabular):
    """What bounds cut: an estimate that was paid for once, and is read again free of charge.

    Attributes:
        report: the shares of units, rows and value that are cut, with intervals; `str()` says it in words.
        paid: the loss of this ask; zero when asking again.
        rows_cut: whether rows of a unit can be cut at all; not where each row is one.
    """

    report: ContributionReport
    paid: Booked
    rows_cut: bool = True

    def to_arrow(self) -> pa.Table:
        """Return one row a share: what is cut of what, with its interval; no row where nothing is known."""
        import pyarrow as pa

        names = [name for name in _SHARES if self.rows_cut or name in _VALUES]
        found = {name: share for name in names if (share := getattr(self.report, name)) is not None}
        ends = {"share": "value", "lower": "lower", "upper": "upper"}
        columns = {column: [getattr(share, end) for share in found.values()] for column, end in ends.items()}
        numbers = {column: pa.array(values, pa.float64()) for column, values in columns.items()}
        return pa.table({"cut": pa.array([_SHARES[name] for name in found], pa.string())} | numbers)

    @property
    def footer(self) -> tuple[str, ...]:
        """The lines below the shares: how they are estimated, and the price."""
        return tuple(str(self).splitlines())

    def __str__(self) -> str:
        lines = str(self.report).splitlines()
        return "\n".join([*(lines if self.rows_cut else lines[2:]), f"paid {self.paid!r}"])


def cut(
    context: Context, question: CheckedQuestion, value: Scalar | None, *, loss: Booked | None, confidence: float
) -> Cut:
    """Return what the bounds of a question cut."""
    query = _known(question)
    spread, paid = _spread(context, query, value, loss)
    bounds = query.bounds
    shares = report(
        spread,
        max_groups=query.max_groups,
        max_rows=query.max_rows,
        lower=None if value is None else bounds.lower,
        upper=None if value is None else bounds.upper,
        confidence=confidence,
    )
    return Cut(shares, paid, rows_cut=not query.unit.is_row)


def chosen(
    context: Context, question: CheckedQuestion, request: Request, loss: Booked | None, *, free: bool
) -> tuple[Bounds, Booked]:
    """Return the bounds with the least total error for what is asked, cut and noise together, and what that cost.

    Args:
        context: the data and the books.
        question: under any bounds.
        request: what is wanted of it.
        loss: what may be paid for a spread.
        free: whether nothing may be paid now: a plan spends nothing.
    """
    query = _known(question)
    value = _clamped(query)
    if free and stored_measurement(context, _identity(context, query, value)) is None:
        raise InvalidBounds(
            "the bounds are not chosen yet, and choosing them costs",
            rule="a plan spends nothing",
            got="Bounds.auto",
            next_step="ask session.bounds_report first, or plan with bounds=Bounds(max_groups=, max_rows=)",
        )
    spread, paid = _spread(context, query, value, loss)
    cap = frame_of(context, query, request, 1).cap or context.loss(context.ledger.remaining)
    target = request.target(query.outputs[0].name)
    least = 0.0 if target is None else target.absolute
    beta = request.beta(query.groups)

    def noise(bounds: ChosenBounds) -> float:
        """Return the half-width that the whole cap buys, or the one that is asked for where that is wider."""
        most = 1.0 if bounds.lower is None or bounds.upper is None else max(abs(bounds.lower), abs(bounds.upper))
        groups = min(bounds.max_groups, query.groups)
        return max(_width(cap, groups, beta) * bounds.max_rows * most, least)

    best = auto_bounds(spread, noise, groups=query.groups, of_values=value is not None)
    return Bounds(max_groups=best.max_groups, max_rows=best.max_rows, lower=best.lower, upper=best.upper), paid


def _width(cap: Booked, groups: int, beta: float) -> float:
    """Return the half-width of what moves by one in so many groups of a unit, at this price and failure probability."""
    if isinstance(cap, Pure):
        return groups * math.log(1 / beta) / float(cap.amount)
    return two_sided(beta) * math.sqrt(groups / (float(cap.amount) * (1 if cap.parameter == "mu" else 2)))


def _known(question: CheckedQuestion) -> Query:
    """Return the query of a question; refuse one whose groups are not known yet."""
    if question.private:
        raise InvalidBounds(
            "a report on bounds needs groups that are known",
            rule="the report and Bounds.auto need the keys",
            got='keys="private"',
            next_step="list the keys, or pass bounds=Bounds(max_groups=, max_rows=)",
        )
    return question.query


def _clamped(query: Query) -> Scalar | None:
    """Return the number that a question clamps, or None: a count has no clamps to choose, whatever it counts."""
    aggregate = query.aggregate
    return None if isinstance(aggregate, Counts) else getattr(aggregate, "value", None)


def kept(context: Context, query: Query, request: Request) -> tuple[Share | None, str]:
    """Return the share of rows that bounds keep, and a warning where they cut more than is asked for, or "".

    Both come from spreads that were released before, of the question itself or of another one about the same rows in
    the same groups. A share is told where all numbers are of the same rows; of units, of different values and of rows
    under a condition a spread tells nothing.
    """
    rows = [None if query.unit.is_row else _rows_of(output.aggregate) for output in query.outputs]
    found = [None if of is None else next(_spreads(context, query, of), None) for of in rows]
    shares: list[Share] = []
    warned: list[str] = []
    for output, stored in zip(query.outputs, found, strict=True):
        if stored is None:
            continue
        asked, target = output.aggregate, request.target(output.name)
        told = report(
            _read(stored.blob),
            max_groups=query.max_groups,
            max_rows=query.max_rows,
            lower=getattr(asked, "lower", None),
            upper=getattr(asked, "upper", None),
            confidence=(1 + request.confidence) / 2,  # a share of rows comes of two of them
        )
        shares.append(told.kept)
        # A mean is not off by what is cut, and sums are not measured in rows.
        if target is not None and (isinstance(asked, Count) or (isinstance(asked, Sum) and not target.absolute)):
            warned.append(warns(told, target, groups=query.groups))
    same = None not in found and len(set(rows)) == 1
    return shares[0] if same else None, next(filter(None, warned), "")


def _rows_of(aggregate: Aggregate) -> Count | None:
    """Return the count of the rows that an aggregate is of; None where it is of anything else, or of several.

    >>> from farthing.query.aggregates import CountUnits, Mean, Ratio
    >>> from farthing.query.expressions import Column
    >>> str(_rows_of(Mean(Column("fare"), 0, 9))), _rows_of(Ratio(CountUnits(), Count()))
    ('COUNT(fare)', None)
    """
    if isinstance(aggregate, Quantile):
        return Count(aggregate.value)
    if not all(isinstance(measure, Rows | Total) for measure in aggregate.measures):
        return None
    values = {measure.value for measure in aggregate.measures if isinstance(measure, Rows | Total)}
    if len(values) > 1:
        return None
    (value,) = values
    return None if value is not None and _has_condition(value) else Count(value)


def _has_condition(value: Scalar) -> bool:
    """Return whether a value depends on a condition."""
    return any(isinstance(part, Case) for part, _ in walk(value))


def _spreads(context: Context, query: Query, rows: Count) -> Iterator[Stored]:
    """Give the spreads that were released about some rows of a question: its own, of the value, of rows alone.

    The last only where every row has the value.
    """
    values = (rows.value, None) if isinstance(rows.value, Literal) else (rows.value,)
    others = ((replace(query, outputs=(NamedAggregate("rows", Count(of)),)), of) for of in values)
    for about, of in ((query, _clamped(query)), *others):
        stored = stored_measurement(context, _identity(context, about, of))
        if stored is not None:
            yield stored


def _identity(context: Context, query: Query, value: Scalar | None) -> str:
    """Return the identity of a spread in the ledger: the bounds are not part of it."""
    plain = replace(query, bounds=Bounds(max_groups=1, max_rows=1)).arranged()
    keys = "" if plain.keys is None else plain.keys.fingerprint
    about = json.dumps([plain.family(), keys, "" if value is None else f"rows with {value.canonical()}"])
    return reuse.identity(context.data_set, "spread", about)


def _spread(context: Context, query: Query, value: Scalar | None, loss: Booked | None) -> tuple[NoisySpread, Booked]:
    """Return a noisy spread and what it cost now: a stored one if it is as fine as what is asked.

    Guarantee: mu-GDP for mu^2 = 4/sigma^2, or under a pure budget epsilon-DP; booked before anything is drawn.
    Proof: [DongRS22, Cor. 3.3; GhoshRS12]; docs/proofs/session.answering.contribution_report.md: one unit moves one
        place of each of four histograms by one.
    Assumes: an engine that keeps the contract of `engines.Engine.spread`.
    Rounds: the price up to whole farthings.
    """
    currency = context.budget.currency
    price = context.budget.currency.of_amount(context.budget.total.amount / DEFAULT_SHARE) if loss is None else loss
    if type(price) is not currency or not price:
        raise InvalidTarget(
            "a spread is paid in the ledger's currency",
            rule=f"loss={currency.__name__}(...), as the ledger is kept",
            got=repr(loss),
            next_step="name the loss in the ledger's currency, or none",
        )
    pure = currency is Pure
    coin = Coin(Gdp if currency is Gdp else Zcdp, 1, 1)
    each = (price.farthings if pure else coin.grains(price)) // len(_PLACES)
    if not each:
        raise InvalidTarget(
            "the price is too small for a spread",
            rule="at least one grain, 2^-56 of mu^2 (2^-40 of epsilon), for each of its four histograms",
            got=repr(price),
            next_step="name a larger loss",
        )
    many = each * len(_PLACES)
    whole = context.loss(many if pure else coin.loss(many).farthings)
    question = _identity(context, query, value)
    spread, paid = answer_and_book(
        context, question, lambda stored: _BookedSpread(context, query, value, each, whole, stored)
    )
    kept = stored_measurement(context, question)
    return (spread if kept is None else _read(kept.blob)), paid


@dataclass(frozen=True, slots=True)
class _BookedSpread:
    """A spread, as a transaction books it: each is paid whole, and the finest is kept.

    Attributes:
        context: the data and the books.
        query: the question, under any bounds.
        value: whose sizes are told, or None.
        each: what each histogram costs, in grains, or under a pure budget in farthings.
        price: of all of them.
        stored: what was released before, or None.
    """

    context: Context
    query: Query
    value: Scalar | None
    each: int
    price: Booked
    stored: Stored | None

    @property
    def bill(self) -> Bill | None:
        """The price; None where a spread as fine was released before."""
        if self.stored is not None and self._fine(self.stored.blob):
            return None
        label = f"how much units contribute to {self.query.table}"
        return Bill(self.price, self.price, label, lambda: "pass a smaller loss=", name="the report")

    def stored_answer(self) -> tuple[NoisySpread, Booked]:
        """Return the spread that was released before."""
        assert self.stored is not None  # noqa: S101  # there is no bill
        return _read(self.stored.blob), self.context.loss(0)

    def measured(self, receipt: Receipt) -> tuple[tuple[NoisySpread, Booked], Booked]:
        """Measure four histograms."""
        truth = self.context.engine.spread(self.query, self.value, receipt)
        noisy = {name: _noisy(getattr(truth, name), self.each, pure=self._pure) for name in _PLACES}
        sigma = self._sigma * (1 + 2.0**-40)
        spread = NoisySpread(**noisy, sigma=sigma, geometric=self._pure)
        return (spread, self.price), self.price

    @property
    def _pure(self) -> bool:
        """Whether the noise is two-sided geometric."""
        return isinstance(self.price, Pure)

    @property
    def _sigma(self) -> float:
        """The standard deviation of the noise, or a little more."""
        return math.sqrt(2) / rate_of(self.each, 1) if self._pure else float((self.each * float(GRAIN)) ** -0.5)

    def merged(self, current: bytes | None, answer: tuple[NoisySpread, Booked], receipt: Receipt) -> bytes:
        """Return the spread that is kept: the one that stands, unless ours is finer."""
        spread = answer[0]
        facts = json.dumps({"sigma": spread.sigma, "geometric": spread.geometric}).encode()
        ours = write_blob(_padded({name: getattr(spread, name) for name in _PLACES}), {_FORMAT: facts})
        return merge(current, ours, receipt, read=None, serves=self._fine, full=True)

    def _fine(self, blob: bytes) -> bool:
        """Return whether a spread is as fine as what is asked."""
        return bool(_read(blob).sigma <= self._sigma * (1 + 1e-9))


def _noisy(truth: Any, each: int, *, pure: bool) -> Any:
    """Return a histogram with noise on every place, at so many farthings of epsilon, or grains."""
    if pure:
        return GeometricRelease(truth).release(each).astype(np.float64)
    places = len(truth)
    return GaussianMeasurements(truth).measure(Measured.nothing(places), np.full(places, each, np.int64)).values


def _padded(columns: dict[str, Any]) -> dict[str, Any]:
    """Return columns of one length: NaN beyond a histogram's end."""
    longest = max(map(len, columns.values()))
    padding = {name: np.full(longest - len(column), np.nan) for name, column in columns.items()}
    return {name: np.concatenate([column, padding[name]]) for name, column in columns.items()}


def _read(blob: bytes) -> NoisySpread:
    """Return a spread that was stored."""
    columns, facts = read_blob(blob, _FORMAT)
    places = {name: columns[name][~np.isnan(columns[name])] for name in _PLACES}
    return NoisySpread(**places, sigma=facts["sigma"], geometric=facts.get("geometric", False))
