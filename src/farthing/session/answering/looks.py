"""Looks that are begun, in the ledger, before they are measured: what a question's price is while it is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from farthing.mechanisms.gaussian import worst_cost
from farthing.session.core.transaction import begin_look

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.ledger.entry import Receipt
    from farthing.mechanisms.gaussian import Coin
    from farthing.privacy.loss import Booked


class BegunLooks:
    """The grains that groups pay on one receipt, and what they come to.

    Args:
        receipt: what they are measured on.
        before: int64[groups], the grains that members of each group had paid before.
        coin: how grains turn into loss.

    Guarantee: when `begin` returns, the ledger holds that so much may have been measured.
    Proof: docs/proofs/ledger.store.md, "Look by look": the price is that of the sum, as `settle` will be told it.
    Assumes: every measurement on the receipt is begun here first.
    Rounds: the price up to whole farthings.
    """

    def __init__(self, receipt: Receipt, before: NDArray[np.int64], coin: Coin) -> None:
        self._receipt, self._before, self._coin = receipt, before, coin
        self._new = np.zeros_like(before)

    def begin(self, grains: NDArray[np.int64], groups: NDArray[np.int64]) -> None:
        """Begin a look at some groups, int64[n], each of which pays so many grains more."""
        np.add.at(self._new, groups, grains)
        begin_look(self._receipt, self.price(self._new))

    def price(self, new: NDArray[np.int64]) -> Booked:
        """Return the price of grains, int64[groups], that were paid on this receipt."""
        most = self._coin.max_groups
        if self._receipt.exclusive:
            return self._coin.loss(worst_cost(self._before + new, most) - worst_cost(self._before, most))
        return self._coin.loss(worst_cost(new, most))
