"""The plan of a count with relative noise: one release, whose price falls with the size of the group."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from farthing.errors import InvalidTarget, UnsupportedQuery
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.privacy.policy import LARGEST_SIZE
from farthing.privacy.words import said
from farthing.query.aggregates import Count, CountUnits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from farthing.mechanisms.transformed import Transformed
    from farthing.mechanisms.two_stage import TwoStage
    from farthing.planning.frame import Frame
    from farthing.planning.plan import Plan
    from farthing.privacy.loss import Booked
    from farthing.privacy.policy import Policy
    from farthing.query.aggregates import NamedAggregate

    Mechanism: TypeAlias = Transformed | TwoStage

KINDS: Final = {
    "asinh": "Asinh",
    "linear-log": "LinearLog",
    "log": "Log",
    "power": "Power",
    "two-stage": "TwoStage",
    "gaussian": "PlainGaussian",
}
"""The mechanisms of `mechanism=`, and their names in `farthing.mechanisms`."""

LEAST_BETA: Final = 1e-9
"""The smallest failure probability a group for which noise is chosen."""

_WIDEST: Final = 2.0**45  # the largest x0 that is tried when something that fits is looked for
_TOLERANCE: Final = 1 + 1e-12
_STEEP: Final = ("asinh", "log")  # transforms that are steep at 0, where noise is priced
_FAR_MORE: Final = 2.0


@dataclass(frozen=True, slots=True)
class RelativeNoise:
    """A relative-noise mechanism, set to a target, for the groups of one question.

    Guarantee: one release is worth at most `worst` for every unit, and at most max_groups times `policy` at a size for
        a unit whose groups all have that size.
    Proof: docs/proofs/session.answering.relative_count.md.
    Assumes: one unit moves at most `max_groups` counts by at most `sensitivity` each.
    Rounds: up.

    Attributes:
        name: a key of `KINDS`.
        mechanism: the mechanism, for members who add one.
        relative, absolute: the error is within the larger of relative * truth and absolute...
        beta: ... but for this chance, in each group.
        sensitivity: the most that one unit adds to a group.
        max_groups: the most groups that one unit is counted in.
    """

    name: str
    mechanism: Mechanism
    relative: float
    absolute: float
    beta: float
    sensitivity: int
    max_groups: int

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> RelativeNoise:
        """Return the noise that `facts` told of."""
        return cls(**{**facts, "mechanism": _kind(facts["name"])(**facts["mechanism"])})

    @property
    def facts(self) -> dict[str, Any]:
        """Everything about it, as plain values."""
        return {name: getattr(self, name) for name in self.__slots__} | {"mechanism": self.settings}

    @property
    def settings(self) -> dict[str, float]:
        """The parameters of the mechanism."""
        made: Any = self.mechanism
        return asdict(made)

    @property
    def policy(self) -> Policy:
        """The loss of a unit in one group, by the group's size: `sensitivity` members of the group move at once."""
        return self.mechanism.policy.for_group(self.sensitivity)

    def worst(self, currency: type[Gdp | Zcdp]) -> Gdp | Zcdp:
        """Return the most that a release costs any unit: the policy at its most expensive size, in all of its groups.

        In whole farthings, as it is booked.
        """
        return currency.of_farthings((self.policy.worst(currency) * self.max_groups).farthings)

    def covers(self, relative: float, absolute: float, beta: float) -> bool:
        """Tell whether a release with this noise meets another target."""
        pairs = ((self.relative, relative), (self.absolute, absolute), (self.beta, beta))
        return all(mine <= asked * _TOLERANCE for mine, asked in pairs)

    def coarser(self, times: float) -> RelativeNoise:
        """Return the noise for a count in units that are so many times as large: its absolute error is as much larger.

        All transforms take a count over x0 or an offset, so only these grow; where noise is on the count itself or on
        its root, it grows too.
        """
        made: Any = self.mechanism
        on_count = {"gaussian": 1.0, "two-stage": 1.0, "power": getattr(made, "power", 0.0)}
        grown = {name: getattr(made, name) * times for name in ("x0", "offset") if hasattr(made, name)}
        grown["sigma"] = made.sigma * times ** on_count.get(self.name, 0.0)
        return replace(self, mechanism=replace(made, **grown), absolute=self.absolute * times)

    def __str__(self) -> str:
        shown = [f"{name} {value:.4g}" for name, value in self.settings.items() if name != "sensitivity"]
        return f"{self.name} noise ({', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class RelativeCountPricing:
    """One release of counts with relative noise.

    Attributes:
        asked: the aggregate in words.
        noise: the mechanism and its target.
        currency: Gdp or Zcdp.
        beta: the failure probability of each interval.
    """

    asked: str
    noise: RelativeNoise
    currency: type[Gdp | Zcdp]
    beta: float

    @property
    def steps(self) -> tuple[str, ...]:
        """What will be measured, in words, in order."""
        return (f"{self.asked} with {self.noise}, once",)

    @property
    def gives_up(self) -> bool:
        """Nothing is given up: there is one release."""
        return False

    def price(self, size: float) -> Booked:
        """Return what the members of a group of this size are promised to lose at most."""
        return self.noise.policy.loss(max(0, math.floor(size)), self.currency)

    def width(self, size: float) -> float:
        """Return the half-width that holds the error at this size as often as was asked."""
        return float(self.noise.mechanism.expected_error([size], ("ci", 1 - self.beta))[0])

    def affordable(self, remaining: Booked) -> float:
        """Return the absolute error at which the release would fit, at the same relative one; infinite if none."""
        start = self.noise.absolute

        def fits(log2: float) -> bool:
            """Tell whether the price at 2^log2 times the absolute error fits."""
            return bool(self.noise.coarser(2.0**log2).worst(self.currency) <= remaining)

        low, high = 0.0, math.log2(_WIDEST * self.noise.relative / start)
        if fits(0.0):
            return start
        if not remaining or not fits(high):
            return math.inf
        while high - low > 1e-4:
            middle = (low + high) / 2
            low, high = (low, middle) if fits(middle) else (middle, high)
        return float(start * 2.0**high)


def require(
    name: str | None, outputs: Sequence[NamedAggregate], currency: type[Booked], *, private: bool = False
) -> None:
    """Refuse a mechanism for what it cannot release, before anything is charged.

    Args:
        name: the mechanism, or None.
        outputs: what is asked of every group.
        currency: of the ledger.
        private: whether the groups are to be found privately.
    """
    if name is None:
        return
    if private:
        raise UnsupportedQuery(
            "a relative-noise mechanism on groups that are not known yet",
            construct="mechanism",
            rule="keys are listed: a release that is too expensive for them is refused, after the search was paid",
            got="keys='private'",
            next_step="count with keys='private' first, then list the groups that were found",
        )
    if currency is Pure:
        raise InvalidTarget(
            "relative noise cannot be booked under a pure budget",
            rule="its noise is Gaussian on a transformed count, which has no pure loss",
            got=f"mechanism={name!r} with delta = 0",
            next_step="drop mechanism=, or open the ledger with Budget(epsilon=, delta=1e-6)",
        )
    others = [str(output.aggregate) for output in outputs if not isinstance(output.aggregate, Count | CountUnits)]
    if others or len(outputs) != 1:
        raise UnsupportedQuery(
            "a relative-noise mechanism releases one count",
            construct="mechanism",
            rule="COUNT(*), COUNT(value) or COUNT(DISTINCT unit), alone",
            got=", ".join(others or [str(output.aggregate) for output in outputs]),
            next_step="drop mechanism=: refinement answers it, and groups that need less pay less",
        )


def plan_relative_count(frame: Frame, name: str, standing: Iterable[RelativeNoise]) -> Plan[RelativeCountPricing]:
    """Return the plan of a release with relative noise: free where what was released before meets the target."""
    require(name, frame.query.outputs, frame.budget.currency)
    target, currency = frame.target, frame.gaussian
    if target is None or not target.relative:
        raise _no_relative(name)
    absolute = target.absolute or target.relative
    serving = [noise for noise in standing if noise.covers(target.relative, absolute, frame.beta)]
    free = bool(serving)
    if serving:
        noise = max(serving, key=lambda noise: noise.worst(currency).amount)
    else:
        noise = _noise(name, target.relative, absolute, frame)
    worst = noise.worst(currency)
    price = currency.of_farthings(0) if free else worst
    made = frame.plan(
        cap=frame.cap or frame.remaining,
        target_price=worst,
        worst_price=price,
        fresh_price=price,
        half_width=math.inf,
        reachable=True,
        free=free,
        pricing=RelativeCountPricing(str(frame.query.aggregate), noise, currency, frame.beta),
    )
    if price > (frame.cap or frame.budget.total):
        raise _over_the_cap(made, frame.cap or frame.budget.total)
    more = "" if free else _dearer(noise, frame)
    return made.with_note(_about(noise, worst, made.delta, floor=not target.absolute) + more)


def _dearer(noise: RelativeNoise, frame: Frame) -> str:
    """Return what is to be said where the worst size, which the ledger books, costs far more than it has to."""
    if noise.name not in _STEEP:
        return ""
    other = _noise("linear-log", noise.relative, noise.absolute, frame)
    times = float(noise.worst(frame.gaussian).amount / other.worst(frame.gaussian).amount)
    if times < _FAR_MORE:
        return ""
    unit = "mu squared" if frame.gaussian is Gdp else "rho"
    return f"; the ledger books that size: {times:.3g} times (in {unit}) what linear-log noise costs for this target"


def _about(noise: RelativeNoise, worst: Booked, delta: float, *, floor: bool) -> str:
    """Return what must be said of numbers with relative noise."""
    expensive = f"without absolute=, {100 * noise.relative:g} % is meant down to groups of 1; " if floor else ""
    falls = float(noise.policy.rho(LARGEST_SIZE)) < float(noise.policy.rho(0))
    larger = "larger groups lose less" if falls else "larger groups lose the same"
    return f"{expensive}{noise}, priced at the size where it costs most, {said(worst, delta)}; {larger}"


def _noise(name: str, relative: float, absolute: float, frame: Frame) -> RelativeNoise:
    """Return the noise that meets a target at every size."""
    if frame.beta < LEAST_BETA:
        raise InvalidTarget(
            "the confidence a group is too close to 1 for relative noise",
            rule=f"a failure probability of at least {LEAST_BETA:g} for each group",
            got=f"{frame.beta:.3g}",
            next_step="leave simultaneous= out, or lower the confidence",
        )
    mechanism = _fitted(name, relative, absolute / relative, frame.beta)
    query = frame.query
    return RelativeNoise(name, mechanism, relative, absolute, frame.beta, query.sensitivity, query.max_groups)


@lru_cache(maxsize=256)
def _fitted(name: str, relative: float, x0: float, beta: float) -> Mechanism:
    """Return the mechanism whose error is within relative * max(x, x0) but for a chance of beta, at every size."""
    made: Mechanism = _kind(name).for_relative_error(relative, x0=x0, metric=("ci", 1 - beta))
    return made


def _kind(name: str) -> Any:
    """Return the class of a mechanism."""
    from farthing import mechanisms

    return getattr(mechanisms, KINDS[name])


def _no_relative(name: str) -> InvalidTarget:
    """Return the refusal of a mechanism without a relative error."""
    return InvalidTarget(
        "a relative-noise mechanism without a relative error",
        rule="mechanism= goes with relative=, and absolute= for the error that is fine at small sizes",
        got=f"mechanism={name!r}",
        next_step=f"mechanism={name!r}, relative=0.1, absolute=50; without mechanism= any target or loss will do",
    )


def _over_the_cap(made: Plan, cap: Booked) -> InvalidTarget:
    """Return the refusal of a release that costs more than its question may; it cannot be made in part."""
    return InvalidTarget(
        "the release costs more than the question may",
        rule="relative noise is charged at the size where it costs most, whatever the groups' sizes are",
        got=f"{said(made.worst_price, made.delta)}; allowed {said(cap, made.delta)}",
        next_step=f'cap="all" or max_epsilon= raises what it may cost; {replace(made, remaining=cap).fitting}',
    )
