"""What answers are charged beside what their noise, their choices and their searches must cost: exact, no sampling."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt, tanh
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.audit.bounds import SLACK
from farthing.audit.findings import Finding
from farthing.errors import BudgetExceeded
from farthing.privacy.budget import Budget
from farthing.privacy.loss import Gdp, Pure, Zcdp
from farthing.query import Bounds
from farthing.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from farthing.privacy.loss import Loss

UNITS: Final = 4_000
GROUPS: Final = 4
CERTAIN: Final = 1.959964
"""Standard deviations of a Gaussian interval at 95 %, rounded down."""

WIDE: Final = 20.0
"""Half-widths that are asked for, in what one unit moves."""

SEARCHES: Final = 10
"""A search may use one part in so many of the delta that is set aside for keys."""

KEYS_DELTA: Final = 1e-3

NEARLY: Final = Fraction(1, 10**6)
"""What whole farthings and whole coins may make of a ratio."""


def accounts() -> tuple[Finding, ...]:
    """Check what is charged against what must be, by the theory of the mechanism that is told.

    Gaussian answers within a target cost what their noise needs, for every bound on contributions and every clamp; what
    is told as paid is what is booked; a choice of k costs k choices, a search its delta, a spread its price; parts cost
    their maximum; the last farthing is the last; and losses by group follow from what was released.
    """
    checks: tuple[Callable[[], str], ...] = (
        answers_cost_what_their_noise_needs,
        named_losses_are_spent,
        what_is_told_is_booked,
        choices_add_up,
        choices_of_unlisted_groups_add_up,
        searches_cost_their_delta,
        the_delta_of_searches_ends,
        spreads_cost_what_they_say,
        chosen_bounds_are_in_the_price,
        parts_cost_their_maximum,
        the_last_farthing_is_the_last,
        losses_follow_from_what_was_released,
    )
    return tuple(Finding("accounts", check.__name__, what) for check in checks if (what := check()))


def answers_cost_what_their_noise_needs() -> str:
    """To tell a number to +-a at 95 % with Gaussian noise costs mu = 1.96 R sqrt(K) max(|l|, |u|) / a, and no less."""
    for groups, rows, lower, upper in ((4, 1, 0, 1), (1, 3, 10, 100), (1, 1, -100, 10)):
        moved = rows * sqrt(groups)
        by: dict[str, Any] = {"by": "g", "keys": {"g": range(GROUPS)}, "cap": "all"}
        for budget in (Budget(mu=10), Budget(rho=50)):
            bounds = Bounds(max_groups=groups, max_rows=rows)
            with _session(bounds, budget) as counted, _session(bounds, budget) as added:
                counted.count(absolute=WIDE * moved, **by)
                added.sum("x", lower=lower, upper=upper, absolute=WIDE * moved * max(abs(lower), abs(upper)), **by)
                least = (CERTAIN / WIDE) ** 2 / (1 if counted.spent.parameter == "mu" else 2)
                for spent in (counted.spent, added.spent):
                    if spent.amount < least * (1 - SLACK):
                        return f"{spent!r}, too little: {groups} groups, {rows} rows, [{lower}, {upper}]"
    return ""


def named_losses_are_spent() -> str:
    """A loss that is named is spent whole, but for what is less than one step of the noise."""
    for budget, loss in ((Budget(mu=10), Gdp(1)), (Budget(rho=10), Zcdp(0.5)), (Budget(epsilon=10), Pure(1))):
        with _session(budget=budget) as session:
            session.count(loss=loss)
            if not loss.value * (1 - 1e-3) <= session.spent.value <= loss.value:
                return f"{loss!r} was named, {session.spent!r} is charged"
    return ""


def what_is_told_is_booked() -> str:
    """The price that an answer tells is what the books charge for it, and a loss that is named is spent."""
    named: dict[str, Any] = {"lower": 0, "upper": 1, "loss": Gdp(0.2)}
    asks: dict[str, Callable[[Session], Any]] = {
        "count": lambda session: session.count(loss=Gdp(0.2)),
        "count to a relative target": lambda session: session.count(where="x < 1", relative=0.1, absolute=20),
        "sum": lambda session: session.sum("x", **named),
        "mean": lambda session: session.mean("x", **named),
        "variance": lambda session: session.variance("x", **named),
        "quantile": lambda session: session.quantile("x", 0.5, **named),
        "quantile to a rank": lambda session: session.quantile("x", 0.4, lower=0, upper=1, rank=0.2),
        "count with mechanism=": lambda session: session.count(relative=0.1, absolute=20, mechanism="asinh"),
        "choice": lambda session: session.top_k("g", k=2, keys={"g": range(GROUPS)}, epsilon=0.1),
        "most common": lambda session: session.most_common(
            "g", k=2, keys={"g": range(GROUPS)}, absolute=200, cap="all"
        ),
        "keys": lambda session: session.count("g", keys="private", found_above=200, absolute=200, cap="all"),
    }
    with _session() as session:
        for name, ask in asks.items():
            before = session.spent.amount
            paid = ask(session).paid
            if session.spent.amount - before != paid.amount or not paid:
                return f"{name}: told {paid!r}, booked {float(session.spent.amount - before):.6g}"
        if sum(entry.charged for entry in session.history()) != session.spent.farthings:
            return "the entries do not add up to what is spent"
    return ""


def choices_add_up() -> str:
    """Choices of k listed groups at epsilon each cost k epsilon in a pure ledger; in Gaussian DP their divergence."""
    for budget in (Budget(epsilon=100), Budget(mu=10)):
        spent = []
        for k in (1, 3):
            with _session(budget=budget) as session:
                session.top_k("g", k=k, keys={"g": range(GROUPS)}, epsilon=0.5)
                spent.append(session.spent)
        one, three = spent
        pure = isinstance(one, Pure)
        least = 3 * one.amount if pure else 3 * 0.5 * tanh(0.125)  # twice the relative entropy, as of Gaussian noise
        if three.amount < least * (1 - NEARLY) or (pure and one != Pure(0.5)):
            return f"one choice cost {one!r}, three {three!r}"
    return ""


def choices_of_unlisted_groups_add_up() -> str:
    """Choices among groups that nobody listed cost one choice for each that came, one for the stop, and their delta."""
    with _session(budget=Budget(epsilon=100, delta=KEYS_DELTA, keys_delta=KEYS_DELTA)) as session:
        came = len(session.top_k("g", k=GROUPS + 1, keys="private", epsilon=1))
        least, left = Pure(came + (came <= GROUPS)), _delta_left(session)
        if session.spent < least:
            return f"{came} groups and the stop cost {session.spent!r}, not {least!r}"
    return "" if left <= KEYS_DELTA * (1 - 1 / SEARCHES + NEARLY) else f"delta {left:g} of {KEYS_DELTA:g} is left"


def searches_cost_their_delta() -> str:
    """A search for keys is booked with its delta; asked again it finds the same, for no more delta."""
    how: dict[str, Any] = {"keys": "private", "found_above": 200, "absolute": 200, "cap": "all"}
    with _session() as session:
        first = session.count("g", **how)
        left = _delta_left(session)
        again = session.count("g", **how)
        if left > KEYS_DELTA * (1 - 1 / SEARCHES + NEARLY) or not first.paid:
            return f"delta {left:g} of {KEYS_DELTA:g} is left, paid {first.paid!r}"
        if again.paid or _delta_left(session) < left:
            return f"the same search cost {again.paid!r} more"
        alone = session.spent
    with _session() as listed:
        listed.count("g", **how | {"keys": {"g": range(GROUPS)}, "found_above": None})
        return "" if listed.spent < alone else f"found keys cost {alone!r}, listed ones {listed.spent!r}"


def the_delta_of_searches_ends() -> str:
    """As many searches as the delta is enough for find keys, and not one more."""
    with _session(budget=Budget(mu=20, delta=1e-2, keys_delta=KEYS_DELTA)) as session:
        try:
            for place in range(SEARCHES + 1):
                where = f"x < {place + 1}"
                session.count("g", keys="private", where=where, found_above=400, absolute=400, cap=Gdp(1))
        except BudgetExceeded:
            return "" if place == SEARCHES else f"only {place} searches were granted"
    return f"{SEARCHES + 1} searches, each a part in {SEARCHES} of the delta, were granted"


def spreads_cost_what_they_say() -> str:
    """A report on bounds costs the loss that is named, once; a finer one costs its own."""
    with _session() as session:
        paid = [session.bounds_report("x", loss=Gdp(mu)).paid for mu in (0.1, 0.1, 0.2)]
        spent = session.spent
    told = paid[0].value >= 0.1 * (1 - SLACK) and not paid[1] and paid[2].value >= 0.2 * (1 - SLACK)
    whole = sum(one.amount for one in paid)
    return "" if told and spent.amount == whole else f"told {paid}, booked {spent!r}"


def chosen_bounds_are_in_the_price() -> str:
    """Bounds that are chosen from the data cost what choosing costs, beside the answer."""
    with _session() as session:
        answer = session.count(bounds=Bounds.auto(Gdp(0.3)), absolute=400, cap="all")
        spent = session.spent
    if answer.paid == spent and spent.value > 0.3 * (1 - SLACK):
        return ""
    return f"a spread of mu 0.3 and an answer cost {spent!r}, told {answer.paid!r}"


def parts_cost_their_maximum() -> str:
    """What is asked of parts costs what the most expensive part was asked, and no less."""
    with _session() as session:
        for mu, part in zip((0.3, 0.4, 0.1), session.partition(by="g", keys=range(3)).values(), strict=True):
            part.count(loss=Gdp(mu))
        return "" if _near(session.spent, 0.4) else f"parts at mu 0.3, 0.4 and 0.1 cost {session.spent!r}"


def the_last_farthing_is_the_last() -> str:
    """Where a little of the budget is left, nothing is sold that costs a little more."""
    with _session(budget=Budget(mu=1)) as session:
        session.count(loss=Gdp(sqrt(1 - 2.0**-22)))
        try:
            session.count(where="x < 1", loss=Gdp(2.0**-10.75))
        except BudgetExceeded:
            return "" if session.spent <= Gdp(1) else f"{session.spent!r} of Gdp(1)"
        return f"{session.spent!r} of Gdp(1) were granted"


def losses_follow_from_what_was_released() -> str:
    """What members of a group lose is told by its released size: equal groups differ as their noisy sizes do."""
    groups = range(200)
    table = {"g": [group for group in groups for _ in range(400)]}
    with Session(_arrow(table), budget=Budget(mu=40)) as session:
        answer = session.count("g", keys={"g": groups}, relative=0.1, absolute=2, cap="all", mechanism="asinh")
    values, losses = np.asarray(answer.value), np.asarray(answer.paid_by_group)
    order = np.argsort(values)
    far = losses[order[:20]].mean() > losses[order[-20:]].mean()
    return "" if far else f"losses of equal groups are {losses.min():.6g} to {losses.max():.6g}, whatever was released"


def _session(bounds: Bounds | None = None, budget: Budget | None = None) -> Session:
    """Open a session on units of one row in one of a few groups each, with much to spend."""
    units = range(UNITS)
    table = {"u": units, "g": [unit % GROUPS for unit in units], "x": [unit % 2 * 0.5 for unit in units]}
    return Session(
        _arrow(table),
        unit="u",
        bounds=bounds or Bounds(max_groups=1, max_rows=1),
        budget=budget or Budget(mu=10, delta=1e-2, keys_delta=KEYS_DELTA),
    )


def _arrow(columns: dict[str, Any]) -> Any:
    """Return columns as a table."""
    import pyarrow as pa

    return pa.table(columns)


def _delta_left(session: Session) -> float:
    """Return what is left of the delta that was set aside for keys."""
    return float(session.status()["keys_delta"]["left"])


def _near(spent: Loss, mu: float) -> bool:
    """Tell whether a loss is this, but for whole farthings."""
    return abs(spent.value - mu) < NEARLY
