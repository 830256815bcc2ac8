"""What a choice costs in Gaussian DP while something is left after it: close to its zCDP price, not pi/2 times that.

A release of bounded range is not Gaussian, and alone costs up to pi/2 of what Gaussian noise of the same variance of
the loss costs. What may still be spent after it counts as noise that smooths this out: the more is left, the less a
choice takes. `ResidueFilter` keeps books by that rule; `choices` prices several choices as one loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar, cast

from farthing.privacy import convert
from farthing.privacy.additive import ZERO, GdpFilter, priced, split
from farthing.privacy.loss import BoundedRange, Gdp, Loss, Pure
from farthing.privacy.numbers import exact, squared

if TYPE_CHECKING:
    from typing import Self

    from farthing.privacy.additive import Priced
    from farthing.privacy.numbers import Number

L = TypeVar("L", bound=Loss)

LEAST_KAPPA: Final = Fraction(1, 16)
"""Below this much left, in units of the squared range, a choice costs what it costs alone."""

MOST_KAPPA: Final = Fraction(4)
"""More left than this changes nothing any more: the certificate ends here, 1.1 % above the limit of 1/4."""

_GRID: Final = 1 << 80


@lru_cache(maxsize=4096)
def choice_price(eta: Number, after: Number) -> Fraction:
    """Return the mu^2 that a choice takes out of a total of which at least `after` is left when it has paid.

    Args:
        eta: the bounded range of the choice, >= 0.
        after: a mu^2 that is still unspent after the choice has paid; whoever prices by it must see to that.

    Guarantee: if all later releases together are sqrt(v)-GDP for some v >= after, then the choice and they are
        sqrt(v + price)-GDP, however they were chosen from what the choice showed.
    Proof: docs/proofs/privacy.residue.md; the rule is that of residue filters (arXiv:2602.15815).
    Assumes: the choice is of eta-bounded range given the past; the certificate of the constants on that page.
    Rounds: up, to 2^-80.

    >>> alone, later = choice_price(Fraction(1, 10), 0), choice_price(Fraction(1, 10), Fraction(1, 10))
    >>> round(float(alone * 400), 3), round(float(later * 400), 3)
    (1.571, 1.011)
    """
    size = exact(eta, "eta")
    alone = convert.bounded_range_gdp(size)
    left = squared(after, "after")
    if not size or left < LEAST_KAPPA * size**2:
        return alone
    kappa = min(left / size**2, MOST_KAPPA)
    return min(alone, _up(size**2 * (Fraction(1, 4) + 1 / (90 * kappa + Fraction(9, 2)))))


def choices_price(eta: Number, many: int) -> Fraction:
    """Return the mu^2 of several choices of one bounded range together, each made after those before it.

    Guarantee: the choices are together sqrt(price)-GDP, also where other releases that pay for themselves come between.
    Proof: docs/proofs/privacy.residue.md: the last choice pays what it costs alone, each other one what it costs
        while the prices of those after it are kept back.
    Assumes: each choice is of eta-bounded range given the past.
    Rounds: up.

    >>> round(float(choices_price(Fraction(1, 100), 10) / (10 * choice_price(Fraction(1, 100), 0))), 3)
    0.696
    """
    total, step = Fraction(0), Fraction(0)
    for made in range(many):
        again = choice_price(eta, total)
        if again == step and total >= MOST_KAPPA * exact(eta, "eta") ** 2:  # all earlier ones cost the same
            return total + (many - made) * step
        total, step = total + again, again
    return total


def choices(loss: BoundedRange, many: int, currency: type[L]) -> L:
    """Return the price of several choices of one bounded range, in a ledger's currency.

    Guarantee: the choices together have the price.
    Proof: docs/proofs/privacy.residue.md, "Several choices as one loss", in Gaussian DP; elsewhere prices add.
    Assumes: each choice is of that bounded range given the past.
    Rounds: up.

    >>> choices(BoundedRange(0.1), 1, Gdp) == BoundedRange(0.1).to(Gdp)
    True
    """
    if currency is Gdp:
        return cast("L", Gdp.of_amount(choices_price(loss.amount, many)))
    return loss.to(currency) * many


@dataclass(frozen=True, slots=True)
class ResidueFilter(GdpFilter):
    """The Gaussian DP filter in which a choice pays by what is left after it: nearly always its zCDP price.

    Gaussian releases pay mu^2 as in `GdpFilter`. A `BoundedRange` or `Pure` loss pays `choice_price` of what is left;
    only the last ones of a budget pay up to pi/2 times as much. What was spent says how much is left; what the releases
    so far are worth by themselves is `holds`: a little more, and never more than their prices one by one.

    Attributes:
        settled: the mu^2 of earlier releases that those after them smooth out for good.
        recent: the other releases, in order: the range of a choice, and the mu^2 of Gaussian noise; one of them is 0.

    Guarantee: everything let through is mu-GDP, but for events of mass `set_aside`; and so it is for mu^2 = `holds` at
        the end, if nothing is asked that lets it pass a number that was fixed before.
    Proof: docs/proofs/privacy.residue.md; a residue filter in the sense of arXiv:2602.15815.
    Assumes: asked before the draw; each part is mu_i-GDP, of eta_i-bounded range or epsilon_i-DP given the past, but
        for events of mass delta_i.
    Rounds: prices of choices up.

    >>> from farthing.privacy.loss import BoundedRange, Gdp
    >>> books = ResidueFilter(Gdp(1)).spend(BoundedRange(0.1)).spend(Gdp(0.5))
    >>> books.spent.amount < GdpFilter(Gdp(1)).spend(BoundedRange(0.1)).spend(Gdp(0.5)).spent.amount
    True
    >>> books.holds == books.spent, ResidueFilter(Gdp(1)).spend(BoundedRange(0.1)).holds == BoundedRange(0.1).to(Gdp)
    (True, True)
    """

    settled: Fraction = ZERO
    recent: tuple[tuple[Fraction, Fraction], ...] = ()

    def spend(self, loss: Priced, *, delta: Number = 0) -> Self:
        """Return the filter after a release of this loss; refuse what does not fit."""
        after = super(ResidueFilter, self).spend(loss, delta=delta)
        size = _range_of(loss)
        gained = ZERO if size else priced(split(loss)[0], Gdp).amount
        settled, recent = _settled(self.settled, (*self.recent, (size, gained)))
        return replace(after, settled=settled, recent=recent)

    @property
    def holds(self) -> Gdp:
        """What everything let through so far is worth by itself: the least total that could have let it through.

        A choice that Gaussian noise or other choices came after is priced by these, whatever may still be spent.
        """
        needed = ZERO
        for size, gained in reversed(self.recent):
            needed = before_choice(size, needed) if size else needed + gained
        return Gdp.of_amount(self.settled + needed)

    def _asked(self, loss: Priced, delta: Number) -> tuple[Gdp, Fraction]:
        """Return the price while so much is left, and the mass of the events left out of it."""
        rest, own = split(loss)
        if isinstance(rest, Pure):
            rest = BoundedRange.of_amount(2 * rest.amount)
        left_out = own + exact(delta, "delta")
        if not isinstance(rest, BoundedRange):
            return priced(rest, Gdp), left_out
        return Gdp.of_amount(choice_cost(rest.amount, self.total.amount - self.spent.amount)), left_out


def before_choice(eta: Fraction, after: Fraction) -> Fraction:
    """Return the least mu^2 that has to be there before a choice so that at least `after` is there when it has paid.

    >>> before_choice(Fraction(1), Fraction(0)) == choice_price(1, 0)
    True
    """
    kept = max(after, LEAST_KAPPA * eta**2)
    return min(after + choice_price(eta, 0), kept + choice_price(eta, kept))


def _range_of(loss: Priced) -> Fraction:
    """Return the range of a choice, 0 for what is none."""
    rest, _ = split(loss)
    return 2 * rest.amount if isinstance(rest, Pure) else rest.amount if isinstance(rest, BoundedRange) else ZERO


def _settled(
    settled: Fraction, recent: tuple[tuple[Fraction, Fraction], ...]
) -> tuple[Fraction, tuple[tuple[Fraction, Fraction], ...]]:
    """Return the same with the earliest releases settled whose price no later one can change: enough comes after."""
    later = sum((gained if not size else size**2 / 4 for size, gained in recent), ZERO)
    first = 0
    for size, gained in recent:
        later -= gained if not size else size**2 / 4
        enough = MOST_KAPPA * size**2
        if later < enough:
            break
        settled += choice_price(size, enough) if size else gained
        first += 1
    return settled, recent[first:]


def choice_cost(eta: Fraction, left: Fraction) -> Fraction:
    """Return the mu^2 that a choice takes where so much is left before it; what it costs alone where that is more.

    Guarantee: with c the result, c >= choice_price(eta, left - c), or c is the price of the choice alone.
    Proof: each turn prices by less than what will be left, since prices fall as more is left.
    Assumes: nothing.
    Rounds: up.
    """
    price = choice_price(eta, 0)
    for _ in range(3):
        if price > left:
            break
        price = choice_price(eta, left - price)
    return price


def _up(amount: Fraction) -> Fraction:
    """Return an amount rounded up to a grid on which sums stay short."""
    return Fraction(math.ceil(amount * _GRID), _GRID)


__all__ = ["ResidueFilter", "before_choice", "choice_cost", "choice_price", "choices", "choices_price"]
