"""What every plan begins with: the question in words, what may be spent on it, and what is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from farthing.errors import InvalidKeys, InvalidTarget
from farthing.planning.plan import Plan, Pricing
from farthing.privacy.loss import Booked, Gdp, Loss, Pure, Zcdp
from farthing.privacy.words import said
from farthing.query.aggregates import Quantile
from farthing.query.running_total import OverGroups
from farthing.query.words import about, describe
from farthing.rounding import coins_down

if TYPE_CHECKING:
    from farthing.accuracy.target import Target
    from farthing.privacy.budget import Budget
    from farthing.query.query import Query

P = TypeVar("P", bound=Pricing)

DEFAULT_SHARE: Final = Fraction(1, 10)
"""The part of the budget that one question may use unless it is told otherwise."""


class PlanRequest(Protocol):
    """What an analyst wants of a question."""

    @property
    def loss(self) -> Booked | None:
        """The loss that was named, or None."""

    @property
    def confidence(self) -> float:
        """The chance that each interval holds its truth."""

    @property
    def share(self) -> float:
        """The part of the groups that have to be within their target, 1 for all."""

    @property
    def numbers(self) -> int:
        """How many aggregates share a simultaneous confidence."""

    @property
    def spend(self) -> bool:
        """Whether the price is to be paid also where targets are out of reach."""

    def target(self, name: str) -> Target | None:
        """Return the accuracy that is asked of one output; None where a loss was named."""

    def rank_of(self, name: str) -> float | None:
        """Return the rank error that is allowed to one output, or None."""

    def goal(self, query: Query) -> str:
        """Return the targets in words."""

    def beta(self, many: int) -> float:
        """Return the failure probability allowed to each of the many numbers of an answer."""


MOST_BYTES: Final = 950_000_000
"""The largest record of a question: SQLite and PostgreSQL hold about 2^30 bytes in one value."""

_COUNT_BYTES: Final = 24  # of each group: a mean, the information that it holds, and what it claims
_LANE_BYTES: Final = 64
_SHARE_BYTES: Final = 72  # of a share of a total: two lanes of a group and of its total, with what they hold
_OUTPUT_BYTES: Final = 25
_QUANTILE_BYTES: Final = 8192  # a hundred and sixty looks at thresholds and the count
_JOINT_QUANTILE_BYTES: Final = 24_576  # of each of several: three times as many, since looks are shared and smaller


LEFT_OVER: Final = 2
"""Farthings that a cap of all that is left leaves: what was rounded up then must not be missing when the same is asked
more sharply. They are nothing that another question could be answered with."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One question with its target or price, before it is known how it will be measured.

    Attributes:
        query: the question; its bounds give the sensitivities.
        targets: the accuracy asked of each output, or None where a loss was named.
        ranks: the rank error allowed to each output, or None.
        goal: the target of each output in words, or the named loss.
        confidence: as asked.
        beta: the failure probability that is left to each group (and output, where all must hold at once).
        cap: the most this question may cost, or None for all that is left.
        budget: the ledger's total.
        remaining: what the ledger has left.
        share: the part of the groups that have to be within their target, 1 for all.
        spend: whether the price is to be paid also where targets are out of reach.
        whole: whether the cap is all that is left.
    """

    query: Query
    targets: tuple[Target | None, ...]
    ranks: tuple[float | None, ...]
    goal: str
    confidence: float
    beta: float
    cap: Booked | None
    budget: Budget
    remaining: Booked
    share: float = 1.0
    spend: bool = False
    whole: bool = False

    @classmethod
    def of(
        cls,
        query: Query,
        *,
        request: PlanRequest,
        limit: Loss | str | None,
        parts: int,
        budget: Budget,
        remaining: Booked,
    ) -> Frame:
        """Return the frame of a question.

        Args:
            query: the question.
            request: the target or the named loss.
            limit: the most that this question and its parts may cost: a loss, "all", or None for a tenth of the budget.
            parts: among how many questions this limit is shared.
            budget: the ledger's total.
            remaining: what the ledger has left.

        Raises:
            InvalidTarget: a loss in another currency than the ledger's, less than one farthing, or more than its limit.
        """
        require_storable(query)
        named = request.loss if request.loss is not None else limit
        if isinstance(named, Loss) and type(named) is not budget.currency:
            raise InvalidTarget(
                "the loss is in another currency than the ledger",
                rule=f"this ledger is kept in {budget.currency.__name__}",
                got=type(named).__name__,
                next_step=_in_currency(named, budget, "cap" if request.loss is None else "loss"),
            )
        _refuse_above(request.loss, limit, budget)
        whole = named == "all"
        cap = None if whole and parts == 1 else _cap(remaining if whole else named, budget, parts, whole=whole)
        targets = tuple(request.target(output.name) for output in query.outputs)
        ranks = tuple(request.rank_of(output.name) for output in query.outputs)
        beta = request.beta(query.groups * max(len(query.outputs), request.numbers))
        goal = request.goal(query)
        share, spend = request.share, request.spend
        return cls(query, targets, ranks, goal, request.confidence, beta, cap, budget, remaining, share, spend, whole)

    @property
    def of_leavings(self) -> Frame:
        """The same where nothing stands of the question: what "all" leaves is nothing to ask it with."""
        if not self.whole or self.remaining.farthings > LEFT_OVER:
            return self
        return replace(self, remaining=self.budget.currency.of_farthings(0))

    @property
    def target(self) -> Target | None:
        """The accuracy asked of the first output; None where a loss was named."""
        return self.targets[0]

    @property
    def gaussian(self) -> type[Gdp | Zcdp]:
        """The currency of Gaussian noise in this ledger."""
        return Gdp if self.budget.currency is Gdp else Zcdp

    def plan(self, *, pricing: P, **parts: Any) -> Plan[P]:
        """Return the plan of this question, given what depends on how it will be measured."""
        return Plan(
            question=describe(self.query),
            target=self.target,
            goal=self.goal,
            confidence=self.confidence,
            remaining=self.remaining,
            delta=self.budget.report_delta,
            about=about(self.query),
            pricing=pricing,
            **parts,
        )


def require_storable(query: Query) -> None:
    """Refuse a question whose measurements would not fit into the ledger, before anything is paid.

    What is kept of each group is known from the question; it is compressed, so that it is less than is counted here.
    """
    if not query.outputs:  # a release, which counts its cells itself
        return
    if all(isinstance(output.aggregate, Quantile) for output in query.outputs):
        several = len(query.outputs) > 1
        each = (_JOINT_QUANTILE_BYTES if several else _QUANTILE_BYTES) * len(query.outputs)
    elif isinstance(query.aggregate, OverGroups):
        each = _SHARE_BYTES * len(query.outputs)
    elif len(query.outputs) == len(query.measures) == 1:
        each = _COUNT_BYTES
    else:
        each = _LANE_BYTES * len(query.measures) + _OUTPUT_BYTES * len(query.outputs)
    listed = 0 if query.keys is None or query.cuts_groups else query.keys.table.nbytes
    if query.groups * each + listed > MOST_BYTES:
        raise InvalidKeys(
            "the answer would be too large to keep",
            rule=f"what is measured of a question is kept, in at most {MOST_BYTES:,} bytes",
            got=f"{query.groups:,} groups of {each} bytes each, and their keys",
            next_step="ask for fewer groups at a time",
        )


def _in_currency(named: Loss, budget: Budget, option: str) -> str:
    """Return how a loss is named in the ledger's currency: of an epsilon, the loss that costs it.

    >>> from farthing.privacy.budget import Budget
    >>> _in_currency(Pure(0.1), Budget(epsilon=1, delta=1e-6), "loss")
    'loss=farthing.Gdp(0.02753) costs epsilon 0.1 at delta 1e-06'
    """
    currency, delta = budget.currency, budget.report_delta
    if not isinstance(named, Pure) or not named or not delta:
        return f"name a {currency.__name__}: {option}=farthing.{currency.__name__}(0.05)"
    worth, epsilon = budget.loss(named.amount), float(named.amount)
    amount = (worth.value if isinstance(worth, Gdp | Zcdp) else float(worth.amount)) * (1 - 5e-4)  # never above it
    return f"{option}=farthing.{currency.__name__}({amount:.4g}) costs epsilon {epsilon:.4g} at delta {delta:g}"


def _refuse_above(loss: Loss | None, limit: Loss | str | None, budget: Budget) -> None:
    """Refuse a named loss above the limit that was named beside it."""
    booked = Gdp | Zcdp | Pure
    if (
        isinstance(loss, booked)
        and isinstance(limit, booked)
        and type(loss) is type(limit)
        and loss.amount > limit.amount
    ):
        raise InvalidTarget(
            "the loss that was named is more than the question may cost",
            rule=f"loss <= {said(limit, budget.report_delta)}",
            got=said(loss, budget.report_delta),
            next_step="name a smaller loss, or leave out cap= and max_epsilon=: a named loss needs no limit",
        )


def _cap(named: Loss | str | None, budget: Budget, parts: int, *, whole: bool) -> Booked:
    """Return the most that a question may cost, in whole farthings: what was named, or a tenth of the budget.

    Where that is the `whole` of what is left and nothing is, it is one farthing, which does not fit.
    """
    amount = named.amount if isinstance(named, Loss) else budget.total.amount * DEFAULT_SHARE
    cap = budget.currency.of_farthings(coins_down(amount / parts))
    if not cap and whole:
        return budget.currency.of_farthings(1)
    if not cap:
        raise InvalidTarget(
            "the price allowed is less than one farthing",
            rule="a question costs at least 2^-40",
            got=repr(budget.currency.of_amount(amount)),
            next_step="allow more",
        )
    return cap
