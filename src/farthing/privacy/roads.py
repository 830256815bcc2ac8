"""The map of conversions: every theorem that leads from one kind of loss to another, and the shortest road by value."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from farthing.errors import InvalidBudget
from farthing.privacy import convert
from farthing.privacy.base import CONVERSIONS, Explanation, L, Loss, Rule
from farthing.privacy.loss import Approx, BoundedRange, Gdp, Pure, Zcdp
from farthing.privacy.numbers import within_unit
from farthing.privacy.renyi import ORDERS, Rdp, Tcdp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from farthing.privacy.numbers import Number


def _at(loss: Loss, delta: Fraction | None) -> Loss | None:
    """Return (epsilon, delta) at the delta asked for; without one only where the loss needs none."""
    if delta is None and not isinstance(loss, Pure | BoundedRange | Approx):
        return None
    wanted = loss.slack if delta is None else delta
    return _approx(loss.epsilon(wanted), wanted)


def _approx(epsilon: float, delta: Fraction) -> Approx:
    return Approx.of_parts(amount=Fraction(epsilon), slack=delta)


def _pure(loss: Loss) -> Fraction:
    """Return rho of a loss that is bounded by its amount."""
    return Fraction(convert.pure_zcdp(loss.amount))


def _classic(loss: Zcdp, delta: Fraction | None) -> Loss | None:
    return None if delta is None else _approx(loss.epsilon(delta, route="classic"), delta)


def _line(loss: Zcdp, _: Fraction | None) -> Loss | None:
    """Return the line of zCDP at the usual orders; what leaves events out has none."""
    return None if loss.slack else Rdp.of_curve((order, loss.amount * order) for order in ORDERS)


def _short_line(loss: Tcdp, _: Fraction | None) -> Loss | None:
    """Return the line up to omega, which is included since divergences are continuous from below."""
    orders = [order for order in ORDERS if order < loss.omega]
    last = [loss.omega] if isinstance(loss.omega, Fraction) else []
    return Rdp.of_curve((order, loss.amount * order) for order in (*orders, *last))


def _truncated(loss: Zcdp, _: Fraction | None) -> Loss | None:
    return None if loss.slack else Tcdp.of_parts(amount=loss.amount, omega=math.inf)


RULES: Final = (
    Rule(Pure, Approx, _at, "log(e^eps - delta (1 + e^eps))", "[KairouzOV15]"),
    Rule(Pure, Zcdp, lambda loss, _: Zcdp.of_amount(_pure(loss)), "eps tanh(eps/2)", "[BunS16, Prop. 3.3]"),
    Rule(
        Pure, Gdp, lambda loss, _: Gdp.of_amount(convert.pure_gdp(loss.amount)), "-2 ndtri(1/(1+e^eps))", "[LiuSJK22]"
    ),
    Rule(Pure, BoundedRange, lambda loss, _: BoundedRange.of_amount(2 * loss.amount), "2 eps", "[DurfeeR19]"),
    Rule(
        Pure,
        Rdp,
        lambda loss, _: Rdp.of_curve((order, Fraction(convert.pure_renyi(loss.amount, order))) for order in ORDERS),
        "randomised response, order by order",
        "[KairouzOV15]",
    ),
    Rule(BoundedRange, Pure, lambda loss, _: Pure.of_amount(loss.amount), "eta", "[DurfeeR19]"),
    Rule(BoundedRange, Approx, _at, "eta + 2 log(1 - sqrt(delta (1 - e^-eta)))", "[DongDR20]"),
    Rule(BoundedRange, Zcdp, lambda loss, _: Zcdp.of_amount(loss.amount**2 / 8), "eta^2/8", "[CesarR21]"),
    Rule(
        BoundedRange,
        Zcdp,
        lambda loss, _: Zcdp.of_amount(Fraction(convert.bounded_range_zcdp(loss.amount))),
        "u - 1 - log u, u = eta/(e^eta - 1)",
        "[DongDR20]",
        route="tight",
    ),
    Rule(
        BoundedRange,
        Gdp,
        lambda loss, _: Gdp.of_amount(convert.bounded_range_gdp(loss.amount)),
        "-2 ndtri(1/(1+e^(eta/2)))",
        "[LiuSJK22]",
    ),
    Rule(
        BoundedRange,
        Rdp,
        lambda loss, _: Rdp.of_curve(
            (order, Fraction(convert.bounded_range_renyi(loss.amount, order))) for order in ORDERS
        ),
        "two outputs eta apart, order by order",
        "[DongDR20]",
    ),
    Rule(Gdp, Approx, _at, "Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) = delta", "[DongRS22, Cor. 2.13]"),
    Rule(Gdp, Zcdp, lambda loss, _: Zcdp.of_amount(loss.amount / 2), "mu^2/2", "[DongRS22, Cor. B.6]"),
    Rule(Zcdp, Approx, _at, "the best order a > 1", "[CanonneKS20, Cor. 13]"),
    Rule(Zcdp, Approx, _classic, "rho + 2 sqrt(rho log(1/delta))", "[BunS16, Prop. 1.3]", route="classic"),
    Rule(Zcdp, Rdp, _line, "a rho at each order a", "[BunS16, Def. 1.1]"),
    Rule(Zcdp, Tcdp, _truncated, "(rho, infinity)", "[BunDRS18]"),
    Rule(Tcdp, Approx, _at, "the best order 1 < a <= omega", "[CanonneKS20, Cor. 13]"),
    Rule(Tcdp, Rdp, _short_line, "a rho at each order a <= omega", "[BunDRS18]"),
    Rule(
        Tcdp,
        Zcdp,
        lambda loss, _: None if isinstance(loss.omega, Fraction) else Zcdp.of_amount(loss.amount),
        "rho, if omega is infinite",
        "[BunDRS18]",
    ),
    Rule(Rdp, Approx, _at, "tau + log(1 - 1/a) - log(a delta)/(a - 1), best order", "[CanonneKS20, Prop. 12]"),
    Rule(Approx, Approx, _at, "log(e^eps - share (1 + e^eps))", "[KairouzOV15]"),
    Rule(
        Approx,
        Pure,
        lambda loss, _: None if loss.slack else Pure.of_amount(loss.amount),
        "eps, if delta is 0",
        "[DworkMNS06]",
    ),
    Rule(
        Approx,
        Zcdp,
        lambda loss, _: Zcdp.of_parts(amount=_pure(loss), slack=loss.slack),
        "delta-approximately eps tanh(eps/2)",
        "[BunS16, sec. 8]",
    ),
)
"""Every theorem, by source."""


def find(loss: Loss, kind: type[L], *, delta: Number | None = None, route: str = "") -> Explanation[L]:
    """Return the best of all roads from a loss to a kind.

    Guarantee: whatever has `loss` also has the result.
    Proof: each rule is a theorem, so a chain of rules is one; the least of several true statements is true.
    Assumes: the rules; docs/proofs/privacy.convert.md.
    Rounds: every step against the user.
    """
    wanted = None if delta is None else Fraction(delta) if delta == 0 else within_unit(delta)
    if type(loss) is kind and wanted is None:
        return Explanation(loss, loss, (), ())
    roads = sorted(_roads(loss, kind, wanted, route, ()), key=lambda road: len(road[1]))
    if not roads:
        raise _no_road(type(loss), kind, wanted, route)
    best = roads[0]
    for road in roads[1:]:
        best = road if road[0] < best[0] else best
    return Explanation(loss, best[0], best[1], tuple(road for road in roads if road is not best))


def _roads(
    loss: Loss, kind: type[L], delta: Fraction | None, route: str, so_far: tuple[Rule, ...]
) -> Iterator[tuple[L, tuple[Rule, ...]]]:
    """Yield every road that visits no kind twice; a named route must be on it."""
    visited = {rule.source for rule in so_far} | {type(loss)}
    for rule in RULES:
        if rule.source is not type(loss) or rule.route not in {"", route}:
            continue
        again = rule.target in visited and (so_far or rule.target is not kind)
        if again or (rule.target is Approx and kind is not Approx):  # through (epsilon, delta) no road is short
            continue
        result = rule.step(loss, delta)
        if result is None:
            continue
        road = (*so_far, rule)
        if isinstance(result, kind):
            if not route or any(each.route == route for each in road):
                yield result, road
        else:
            yield from _roads(result, kind, delta, route, road)


def reachable(kind: type[Loss]) -> set[type[Loss]]:
    """Return the kinds to which some road leads.

    >>> sorted(each.__name__ for each in reachable(Zcdp))
    ['Approx', 'Rdp', 'Tcdp']
    """
    seen, edge = {kind}, {kind}
    while edge:
        edge = {rule.target for rule in RULES if rule.source in edge and not _conditional(rule)} - seen
        seen |= edge
        edge -= {Approx}  # through (epsilon, delta) no road is short, and none is taken
    return seen - {kind}


def _conditional(rule: Rule) -> bool:
    """Tell whether a rule holds for some losses of its source only."""
    return ", if " in rule.formula


def advice(given: type[Loss], wanted: type[Loss]) -> str:
    """Return which conversion brings two kinds of loss together."""
    if wanted in reachable(given):
        return f"state the {given.__name__} as loss.to({wanted.__name__})"
    if given in reachable(wanted):
        return f"state the {wanted.__name__} as loss.to({given.__name__}); no road leads the other way"
    common = (reachable(given) | {given}) & (reachable(wanted) | {wanted})
    names = sorted(each.__name__ for each in common)
    return f"state both as {' or '.join(names)}" if names else "state both in one currency first"


def _no_road(given: type[Loss], wanted: type[Loss], delta: Fraction | None, route: str) -> InvalidBudget:
    """Return the refusal to convert where no theorem leads, saying where theorems do lead."""
    if wanted is Approx and delta is None:
        return InvalidBudget(
            f"{given.__name__} needs a delta to be stated as (epsilon, delta)",
            rule="loss.to(Approx, delta=...)",
            got="no delta",
            next_step="1e-6 is usual",
        )
    onward = ", ".join(sorted(each.__name__ for each in reachable(given))) or "nowhere"
    sources = ", ".join(sorted({rule.source.__name__ for rule in RULES if wanted in reachable(rule.source)})) or "none"
    named = f" by the route {route!r}" if route else ""
    return InvalidBudget(
        f"no conversion leads from {given.__name__} to {wanted.__name__}{named}",
        rule="a loss is restated only by a theorem",
        got=given.__name__,
        next_step=f"from {given.__name__} a loss can be converted to {onward}; to {wanted.__name__} from {sources}",
    )


CONVERSIONS.find, CONVERSIONS.advice = find, advice
