"""What an analyst wants of one question, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from farthing.accuracy.quantile_ranks import LEAST_RANK
from farthing.accuracy.target import Target
from farthing.errors import InvalidTarget
from farthing.planning.relative_count import KINDS
from farthing.privacy.loss import Booked, Loss
from farthing.query.aggregates import Quantile, Single, least
from farthing.query.bounding import Bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from farthing.progress import Progress
    from farthing.query import NamedAggregate, Query
    from farthing.query.comparison import ComputedNumber

Width: TypeAlias = float | Mapping[str, float]
"""An error allowed: one for all aggregates of a question, or one for each by the name of its column."""

SPEND: Final = "spend"
"""Pay for a target that no group can meet, too, and return what comes."""

ON_MISS: Final = ("return", "drop", "raise", SPEND)
_INNER: Final = ("shares", "numbers")
_NEVER_NONE: Final = frozenset({"confidence", "simultaneous", "together", "nonnegative", "on_miss", "share"})
WIDTHS: Final = ("relative", "absolute", "rank")
_SWITCHES: Final = {
    "simultaneous": "simultaneous=True holds all numbers of an answer together at the confidence",
    "together": "together=True holds all answers of a question together at the confidence",
    "nonnegative": "nonnegative=True shows answers below zero as zero",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A target or a loss, and the terms of the ask.

    Attributes:
        relative, absolute, rank: the errors allowed, as they were given, or None.
        loss: the loss named instead, or None.
        confidence: the chance that each interval holds its truth.
        simultaneous: whether all must hold at once.
        together: whether all answers of the question must hold together, those before and those to come, whatever
            decides on their targets (under a pure budget: if the targets were fixed beforehand).
        share: the part of the groups that have to be within the target; the others are stopped with them. 1 for all.
        nonnegative: whether answers below zero are shown as zero; only where the truth is not negative.
        max_epsilon: the most epsilon this question may cost, or None.
        cap: the most this question may cost: a loss, "all", or None for a tenth of the budget.
        at_most: the most that this one ask may be charged, as its plan told, or None.
        on_miss: "return", "drop", "raise" or "spend".
        found_above: the size from which groups are found, with keys="private"; None for twice the absolute target.
        progress: called after every look.
        mechanism: the relative-noise mechanism that releases the count, or None to refine it.
        shares: among how many questions the price allowed is shared, this one included.
        numbers: how many aggregates the whole question has, among which a simultaneous confidence is shared.
    """

    relative: Width | None = None
    absolute: Width | None = None
    rank: Width | None = None
    loss: Booked | None = None
    confidence: float = 0.95
    simultaneous: bool = False
    together: bool = False
    share: float = 1.0
    nonnegative: bool = False
    max_epsilon: float | None = None
    cap: Loss | str | None = None
    at_most: Booked | None = None
    on_miss: str = "return"
    found_above: int | None = None
    progress: Callable[[Progress], None] | None = None
    mechanism: str | None = None
    shares: int = 1
    numbers: int = 1

    @classmethod
    def of(cls, **options: Any) -> Request:
        """Return the request of a method call; the options are those of `How`.

        Raises:
            InvalidTarget: no target and no loss, both, or an option out of range.
        """
        _refuse_unknown(options)
        asked = cls(**{name: value for name, value in options.items() if value is not None or name in _NEVER_NONE})
        _check_terms(asked)
        widths = [getattr(asked, name) for name in WIDTHS]
        if asked.loss is not None and any(width is not None for width in widths):
            raise InvalidTarget(
                "a target and a loss were both given",
                rule="name the accuracy or name the price, not both",
                next_step="drop loss=, or drop relative= and absolute=; max_epsilon= limits the price of a target",
            )
        if asked.loss is None and all(width is None for width in widths):
            raise InvalidTarget(
                "no accuracy was asked for",
                rule="relative= or absolute= (or loss=)",
                got="neither",
                next_step="relative=0.1, absolute=100 means within 10 % or 100, whichever is larger",
                missing="target",
            )
        pairs = zip(WIDTHS, widths, strict=True)
        plain = {name: width for name, width in pairs if width is not None and not isinstance(width, Mapping)}
        plain.pop("rank", None)
        checked = Target(**(plain or {"absolute": 1.0}), confidence=asked.confidence, simultaneous=asked.simultaneous)
        return replace(asked, confidence=checked.confidence)

    @property
    def spend(self) -> bool:
        """Whether the price is to be paid also where targets are out of reach."""
        return self.on_miss == SPEND

    def target(self, name: str) -> Target | None:
        """Return the accuracy that is asked of one output; None where a loss or only a rank was named.

        Raises:
            InvalidTarget: the errors were given by name, and this name has none.
        """
        if self.loss is not None:
            return None
        relative, absolute = (_of(getattr(self, width), name) for width in ("relative", "absolute"))
        if relative is None and absolute is None and self.rank_of(name) is None:
            raise _no_target(name, self)
        if relative is None and absolute is None:
            return None  # the rank alone is asked for
        return Target(relative or 0.0, absolute or 0.0, self.confidence, self.simultaneous)

    def rank_of(self, name: str) -> float | None:
        """Return the rank error that is allowed to a quantile, as a share of its group's rows, or None."""
        rank = _of(self.rank, name)
        if rank is None:
            return None
        if isinstance(rank, bool) or not isinstance(rank, int | float) or not LEAST_RANK <= rank < 0.5:
            raise InvalidTarget(
                "rank is out of range",
                rule="2^-12 <= rank < 1/2: how far the rank of the answer may be off, as a share of the rows",
                got=repr(rank),
                next_step="rank=0.01 for one in a hundred",
            )
        return float(rank)

    def check(self, query: Query) -> None:
        """Refuse errors that are given for aggregates that are not asked."""
        names = {output.name for output in query.outputs}
        for width in (self.relative, self.absolute, self.rank):
            unknown = sorted(set(width) - names) if isinstance(width, Mapping) else []
            if unknown:
                raise InvalidTarget(
                    f"an error is given for {unknown[0]!r}, which is not asked",
                    rule="an error by name belongs to a column of the answer",
                    got=", ".join(unknown),
                    next_step="the columns are " + ", ".join(sorted(names)),
                )
        self._check_ranks(query)
        self.check_signs(query.outputs)
        if self.share < 1:
            _check_share(query)

    def check_computed(self, comparisons: Iterable[ComputedNumber]) -> None:
        """Refuse targets of what is computed of released numbers, and groups left out where others are told of them."""
        for one in comparisons:
            columns = ", ".join(dict.fromkeys(name for name, _ in one.cells))
            widths = [getattr(self, width) for width in WIDTHS]
            if any(isinstance(width, Mapping) and one.name in width for width in widths):
                raise InvalidTarget(
                    f"a target for {one.name!r}, which is computed of released numbers",
                    rule="a target belongs to what is measured; the interval of what is computed follows from it",
                    got=f"{one.name!r} is computed of {columns}",
                    next_step=f"name a target for {columns}; its intervals add up in {one.name!r}",
                )
            if self.on_miss == "drop" and any(where is not None for _, where in one.cells):
                raise InvalidTarget(
                    "groups that are left out where others are told of them",
                    rule=f"{one.name!r} tells of groups before or after, by the listed keys",
                    got='on_miss="drop"',
                    next_step="leave on_miss= out: met says which groups are within the target",
                )

    def check_search(self, *, private: bool) -> None:
        """Refuse the size from which groups are found where none are to be found."""
        if self.found_above is not None and not private:
            raise InvalidTarget(
                "found_above= where no groups are to be found",
                rule='it says from which size groups are found, with keys="private"',
                got=f"found_above={self.found_above!r}",
                next_step='leave it out, or pass keys="private" in place of the list',
            )

    def check_signs(self, outputs: Iterable[NamedAggregate]) -> None:
        """Refuse to show as zero what is below zero, where that may be the truth: its interval would not hold it."""
        signed = [output.aggregate for output in outputs if least(output.aggregate) < 0]
        if self.nonnegative and signed:
            raise InvalidTarget(
                "nonnegative= for an answer that may be negative",
                rule="nonnegative=True is for counts, and for values whose lower is at least 0; never for a difference",
                got=str(signed[0]),
                next_step="drop nonnegative=True; or pass lower=0, if no value is negative",
            )

    def _check_ranks(self, query: Query) -> None:
        """Refuse rank targets of anything but quantiles, and aggregates that only a rank was given for."""
        ranked = {output.name for output in query.outputs if isinstance(output.aggregate, Quantile)}
        given = (
            set(self.rank) if isinstance(self.rank, Mapping) else ranked or {output.name for output in query.outputs}
        )
        for name in given - ranked if self.rank is not None else ():
            raise InvalidTarget(
                f"a rank target for {name!r}, which is not a quantile",
                rule="rank= is for quantiles, MIN, MAX and MEDIAN; relative= and absolute= for all others",
                got=repr(self.rank),
                next_step="absolute=50, or relative=0.05",
            )
        if self.loss is None:
            for output in query.outputs:
                if output.name not in ranked and _of(self.relative, output.name) is None is _of(
                    self.absolute, output.name
                ):
                    raise _no_target(output.name, self)

    def about(self, query: Query, numbers: int) -> Request:
        """Return the request as far as it speaks of one part of a question that has so many outputs in all."""
        names = {output.name for output in query.outputs}
        widths = {name: getattr(self, name) for name in WIDTHS}
        mine: dict[str, Any] = {
            name: {key: value for key, value in width.items() if key in names} if isinstance(width, Mapping) else width
            for name, width in widths.items()
        }
        return replace(self, **mine, numbers=numbers)

    def goal(self, query: Query) -> str:
        """Return the target of each output in words, or the named loss."""
        if self.loss is not None:
            return f"at {self.loss!r} (named)"
        each = {output.name: self._goal(output) for output in query.outputs}
        if len(set(each.values())) == 1:
            part = "" if self.share >= 1 else f" for {100 * self.share:.6g} % of the groups"
            return f"within {next(iter(each.values()))}{part}"
        return "within " + "; ".join(f"{goal} of {name}" for name, goal in each.items())

    def _goal(self, output: NamedAggregate) -> str:
        """Return the target of one output in words."""
        rank = self.rank_of(output.name) if isinstance(output.aggregate, Quantile) else None
        target = self.target(output.name)
        words = [] if rank is None else [f"{100 * rank:.6g} % of the ranks"]
        return " or ".join([*words, *([] if target is None else [str(target)])])

    def changed(self, **changes: Any) -> Request:
        """Return the request with some options replaced, for a refine: what is left out stays."""
        kept: dict[str, Any] = {field: getattr(self, field) for field in self.__slots__ if field not in _INNER}
        kept["at_most"] = None  # it confirmed one price, of the ask that was made
        if "loss" in changes:
            kept |= dict.fromkeys(WIDTHS) | {"share": 1.0}
        elif any(name in changes for name in WIDTHS):
            kept["loss"] = None
        if "max_epsilon" in changes:
            kept["cap"] = None
        if "cap" in changes:
            kept["max_epsilon"] = None
        return replace(Request.of(**(kept | changes)), shares=self.shares, numbers=self.numbers)

    def beta(self, many: int) -> float:
        """Return the failure probability allowed to each of the many numbers of an answer; refuse one too small."""
        return Target(absolute=1.0, confidence=self.confidence, simultaneous=self.simultaneous).beta(many)

    def many(self, query: Query) -> int:
        """Return of how many numbers the confidence is said at once: 1 where it is for each by itself."""
        return query.groups * max(len(query.outputs), self.numbers) if self.simultaneous else 1

    def without_progress(self) -> Request:
        """Return the request without its callback, so that an answer keeps nothing alive."""
        return replace(self, progress=None)


def _check_share(query: Query) -> None:
    """Refuse a share of the groups where there are none, or where groups are not refined one by one in looks."""
    (first, *others) = query.outputs
    if others or not isinstance(first.aggregate, Single) or query.groups < 2:
        raise InvalidTarget(
            "share= is for one count or sum by groups",
            rule="the groups of one count or sum are refined side by side, until enough of them are within the target",
            got=", ".join(str(output.aggregate) for output in query.outputs) + f", {query.groups:,} groups",
            next_step="leave share= out; or ask for the count or the sum in a question of its own, with by= and keys=",
        )


def _no_target(name: str, asked: Request) -> InvalidTarget:
    """Return the refusal of an aggregate without a target."""
    return InvalidTarget(
        f"no accuracy was asked for {name!r}",
        rule="relative= or absolute= for every aggregate: one number, or {name: number}",
        got=f"relative={asked.relative!r}, absolute={asked.absolute!r}",
        next_step=f"absolute={{{name!r}: 2.5, ...}} gives each aggregate its own, in its own units",
    )


def _of(width: Width | None, name: str) -> float | None:
    """Return the error allowed to one output."""
    return width.get(name) if isinstance(width, Mapping) else width


def _refuse_unknown(options: dict[str, object]) -> None:
    """Refuse options that do not exist, naming them."""
    known = [name for name in Request.__slots__ if name not in _INNER]
    unknown = sorted(set(options) - set(known))
    if unknown:
        bounds = [name for name in unknown if name in Bounds.__slots__]
        near = get_close_matches(unknown[0], known, n=1)
        advice = f"did you mean {near[0]}=?" if near else "leave it out"
        raise InvalidTarget(
            f"unknown option {', '.join(unknown)}",
            rule="the target and the price are named by " + ", ".join(known),
            next_step=f"pass bounds=Bounds({', '.join(f'{name}=' for name in bounds)})" if bounds else advice,
        )


def _check_terms(asked: Request) -> None:
    """Refuse terms of the wrong kind."""
    _check_losses(asked)
    for name, meaning in _SWITCHES.items():
        if not isinstance(getattr(asked, name), bool):
            raise InvalidTarget(
                f"{name} is neither true nor false",
                rule=meaning,
                got=repr(getattr(asked, name)),
                next_step="leave it out to switch it off",
            )
    if asked.on_miss not in ON_MISS:
        raise InvalidTarget(
            "unknown on_miss", rule=" or ".join(ON_MISS), got=repr(asked.on_miss), next_step="choose one of them"
        )
    if asked.progress is not None and not callable(asked.progress):
        raise InvalidTarget(
            "progress is not a function",
            rule="progress=f, called as f(Progress)",
            got=repr(asked.progress),
            next_step="pass a function of one argument, or leave it out",
        )
    _check_share_terms(asked)
    _check_mechanism(asked)


def _check_losses(asked: Request) -> None:
    """Refuse losses and limits that are none, or two limits."""
    loss, cap = asked.loss, asked.cap
    if loss is not None and (not isinstance(loss, Booked) or not loss):
        raise InvalidTarget(
            "loss is not a loss above 0",
            rule="loss=Gdp(mu), Zcdp(rho) or Pure(epsilon)",
            got=repr(loss),
            next_step="for example loss=farthing.Gdp(0.05)",
        )
    if cap is not None and cap != "all" and (not isinstance(cap, Booked) or not cap):
        raise InvalidTarget(
            "cap is not a loss above 0",
            rule='cap="all", or Gdp(mu), Zcdp(rho), Pure(epsilon)',
            got=repr(cap),
            next_step="for example cap=farthing.Gdp(0.05)",
        )
    if asked.at_most is not None and not isinstance(asked.at_most, Booked):
        raise InvalidTarget(
            "at_most is not a loss",
            rule="at_most=Gdp(mu), Zcdp(rho) or Pure(epsilon): what the ask may be charged, as its plan told",
            got=repr(asked.at_most),
            next_step="at_most=plan.worst_price",
        )
    if cap is not None and asked.max_epsilon is not None:
        raise InvalidTarget("cap and max_epsilon were both given", rule="one limit an ask", next_step="drop one")


def _check_share_terms(asked: Request) -> None:
    """Refuse a share that is none, or that goes with no target."""
    share = asked.share
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InvalidTarget(
            "share is out of range",
            rule="0 < share <= 1: the part of the groups that have to be within the target",
            got=repr(share),
            next_step="share=0.95 for 95 % of the groups; leave it out for all",
        )
    if share < 1 and (asked.loss is not None or asked.mechanism is not None or asked.rank is not None):
        raise InvalidTarget(
            "share= goes with a target that groups are refined to",
            rule="relative=, absolute= or both, without loss=, rank= and mechanism=",
            got=f"share={share!r}",
            next_step="drop share=, or ask with relative=0.1, absolute=50, share=0.95",
        )


def _check_mechanism(asked: Request) -> None:
    """Refuse a mechanism that does not exist, or a target that it cannot have."""
    if asked.mechanism is not None and (not isinstance(asked.mechanism, str) or asked.mechanism not in KINDS):
        raise InvalidTarget(
            "the mechanism is unknown",
            rule=", ".join(KINDS),
            got=repr(asked.mechanism),
            next_step="choose one of them; without mechanism= the answer is refined until it is within its target",
        )
    if asked.mechanism is not None and (asked.relative is None or asked.rank is not None):
        raise InvalidTarget(
            "a relative-noise mechanism without a relative error",
            rule="mechanism= goes with relative=, and absolute= for the error that is fine at small sizes",
            got=f"mechanism={asked.mechanism!r}",
            next_step="relative=0.1, absolute=50; or drop mechanism=",
        )
