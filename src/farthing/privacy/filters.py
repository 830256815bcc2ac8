"""When to say no: a filter lets losses through only while their sum stays within a total fixed in advance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from farthing.errors import BudgetExceeded
from farthing.privacy.loss import Loss

if TYPE_CHECKING:
    from typing import Self

    from farthing.privacy.loss import Booked

L = TypeVar("L", bound=Loss)


@dataclass(frozen=True, slots=True)
class AdditiveFilter(Generic[L]):
    """Say yes while spent + next <= total, exactly; `spend` returns the next state.

    Attributes:
        total: the most that may ever be spent.
        spent: what was let through so far.

    Guarantee: everything let through is, together, as private as `total`, however each loss was chosen from the
        outputs before it.
    Proof: pure [RogersRUV16], zCDP [FeldmanZ21; WhitehouseRRW23], GDP [SmithT22]; docs/proofs/privacy.filters.md.
    Assumes: `can_spend` is asked before the release is drawn, and each loss bounds its release given the past.
    Rounds: nothing; exact fractions.

    >>> from farthing.privacy.loss import Gdp
    >>> books = AdditiveFilter(total=Gdp(1), spent=Gdp(0)).spend(Gdp(0.5))
    >>> books.can_spend(Gdp(0.86)), books.can_spend(Gdp(0.87))
    (True, False)
    """

    total: L
    spent: L

    def can_spend(self, loss: L) -> bool:
        """Tell whether a release of this loss may still be drawn; asking costs nothing."""
        return self.spent + loss <= self.total

    def spend(self, loss: L) -> Self:
        """Return the filter after a release of this loss; refuse what does not fit."""
        if not self.can_spend(loss):
            raise BudgetExceeded(
                "the loss does not fit in what is left",
                needed=loss,
                left=self.remaining,
                got=loss,
                rule="spent + next <= total",
                next_step="ask for a smaller loss",
            )
        return replace(self, spent=self.spent + loss)

    @property
    def remaining(self) -> L:
        """What may still be spent."""
        return self.total - self.spent


def filter_for(total: Booked) -> AdditiveFilter[Loss]:
    """Return the filter for a total, with nothing spent.

    >>> from farthing.privacy.loss import Zcdp
    >>> filter_for(Zcdp(0.5)).remaining
    Zcdp(rho=0.5)
    """
    return AdditiveFilter(total=total, spent=type(total).of_farthings(0))
