"""Looks that are begun, in the ledger, before they are measured: what a question's price is while it is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from farthing.accuracy.joint_prices import run_of
from farthing.ledger.rules import whole
from farthing.mechanisms.gaussian import worst_cost
from farthing.planning.gaussian_count import GaussianCountPricing
from farthing.planning.joint_chains import JointChainsPricing
from farthing.planning.joint_measures import JointMeasuresPricing
from farthing.planning.joint_quantiles import JointQuantilePricing
from farthing.planning.laplace_count import LaplaceCountPricing
from farthing.planning.laplace_measures import LaplaceMeasuresPricing
from farthing.planning.quantile import QuantileBisectionPricing
from farthing.planning.quantile_chains import QuantileChainsPricing
from farthing.planning.share_of_total import ShareOfTotalPricing
from farthing.session.core.transaction import begin_look

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from farthing.ledger.entry import Receipt
    from farthing.mechanisms.gaussian import Measured
    from farthing.planning import Pricing
    from farthing.privacy.loss import Booked
    from farthing.session.answering.refinement_loop import Measurements


def in_looks(pricing: Pricing) -> bool:
    """Return whether a question is measured in several looks, each of which is begun before: one look is its price."""
    match pricing:
        case JointMeasuresPricing() | JointQuantilePricing() | JointChainsPricing():
            return True
        case QuantileBisectionPricing() | QuantileChainsPricing():
            return True
        case ShareOfTotalPricing():
            return not pricing.shares.steady
        case LaplaceMeasuresPricing():
            return not pricing.joint.steady
        case GaussianCountPricing() | LaplaceCountPricing():
            return len(pricing.schedule.looks) > 1
        case _:
            return False


class BegunLooks:
    """The grains that groups pay on one receipt, and what they come to.

    Args:
        receipt: what they are measured on.
        before: int64[groups], the grains that members of each group had paid before.
        max_groups: the most groups that one unit can move.
        loss: returns the loss of so many grains.

    Guarantee: when `begin` returns, the ledger holds that so much may have been measured.
    Proof: docs/proofs/ledger.store.md, "Look by look": the price is that of the sum, as `settle` will be told it.
    Assumes: every measurement on the receipt is begun here first.
    Rounds: the price up to whole farthings.
    """

    def __init__(
        self, receipt: Receipt, before: NDArray[np.int64], max_groups: int, loss: Callable[[int], Booked]
    ) -> None:
        self._receipt, self._before, self._most, self._loss = receipt, before, max_groups, loss
        self._new = np.zeros_like(before)
        self._largest = self._begun = 0

    def begin(self, grains: NDArray[np.int64], groups: NDArray[np.int64]) -> None:
        """Begin a look at some groups, int64[n], each of which pays so many grains more: int64[n], or int64[lanes, n].

        Fewer than none are refused in any lane: their sum would hide what the others are measured with. Nothing is
        written, or added up, where the most expensive group times the groups of a unit was begun already: a unit pays
        no more than that, fresh or as an increase.
        """
        whole("grains", int(grains.min(initial=0)))
        grains = np.atleast_2d(grains).sum(axis=0)
        at = run_of(groups)
        if isinstance(at, slice) or (np.diff(groups) > 0).all():  # each once
            self._new[at] += grains
        else:
            np.add.at(self._new, groups, grains)
        self._largest = max(self._largest, int(self._new[at].max(initial=0)))
        if self._loss(self._most * self._largest).farthings > self._begun:
            self._begun = begin_look(self._receipt, self.price(self._new)).farthings

    def price(self, new: NDArray[np.int64]) -> Booked:
        """Return the price of grains, int64[groups], that were paid on this receipt."""
        most = self._most
        if self._receipt.exclusive:
            return self._loss(worst_cost(self._before + new, most) - worst_cost(self._before, most))
        return self._loss(worst_cost(new, most))


@dataclass(frozen=True, slots=True)
class BegunMeasurements:
    """Measurements, each of which is begun before it is made.

    Attributes:
        mechanism: what measures.
        looks: where looks are begun.
    """

    mechanism: Measurements
    looks: BegunLooks

    def measure(self, state: Measured, grains: NDArray[np.int64], groups: NDArray[np.int64] | None = None) -> Measured:
        """Begin a look, then measure it."""
        self.looks.begin(grains, np.arange(len(grains)) if groups is None else groups)
        return self.mechanism.measure(state, grains, groups)

    def unit_for(self, grains: int) -> int:
        """Return the exponent of the mechanism's unit."""
        return self.mechanism.unit_for(grains)
