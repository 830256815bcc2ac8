"""The share of each group in the total of several: groups and totals measured side by side."""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from farthing.accuracy.total_state import TotalState
from farthing.errors import UnsupportedQuery
from farthing.mechanisms.gaussian import GaussianMeasurements, Measured
from farthing.planning.share_of_total import ShareOfTotalPricing, plan_share_of_total, share_of
from farthing.progress import Progress
from farthing.query.running_total import RunningTotal
from farthing.release import Cells
from farthing.session.answering.gaussian_count import parameter_of
from farthing.session.answering.joint_measures import output_looks
from farthing.session.answering.looks import BegunLooks
from farthing.session.answering.method import AskOutcome
from farthing.session.core.merging import merge
from farthing.session.core.records import read_blob, unreadable, write_blob
from farthing.session.core.shield import hand_over
from farthing.trace import MOST_LOOKS, TraceLook

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from farthing.ledger.entry import Receipt
    from farthing.planning import Frame, Plan
    from farthing.privacy.loss import Booked
    from farthing.progress import Watcher
    from farthing.query import Query
    from farthing.session.core.context import Context
    from farthing.session.core.door import Door

_FORMAT = b"farthing-shares-1"
_LANES = ("own", "total", "grains", "shared")


@dataclass(frozen=True, slots=True)
class ShareOfTotalMethod:
    """A question whose answers are shares of a total.

    Attributes:
        query: the question, arranged.
        state: what was released of it, or None.
        blob: the same, as the ledger keeps it.
    """

    query: Query
    state: TotalState | None
    blob: bytes | None = None

    @classmethod
    def of(cls, query: Query, blob: bytes | None) -> ShareOfTotalMethod:
        """Return the method of a question."""
        return cls(query, None if blob is None else state_of(blob), blob)

    def plan(self, frame: Frame) -> Plan[ShareOfTotalPricing]:
        """Return the plan, given what was released before."""
        return plan_share_of_total(frame, self.state)

    def stored_answer(self, plan: Plan[ShareOfTotalPricing]) -> AskOutcome:
        """Return the answer of a free plan: what was released before, or what every share is within the target of."""
        state = TotalState.nothing(self.query.groups) if self.state is None else self.state
        return self._outcome(plan, state, state, plan.worst_price)

    def measured(
        self, context: Context, plan: Plan[ShareOfTotalPricing], receipt: Receipt, watcher: Watcher | None
    ) -> AskOutcome:
        """Ask the engine, draw noise, and price what was drawn as the receipt says."""
        query, pricing = self.query, plan.pricing
        lanes = TotalLanes.of(context.engine, query, receipt, pricing.shares.places)
        before = TotalState.nothing(query.groups) if self.state is None else self.state
        paid = BegunLooks(receipt, before.paid, pricing.coin.max_groups, pricing.coin.loss)
        every, looks = np.arange(query.groups), deque[TraceLook](maxlen=MOST_LOOKS)

        def measure(
            grains: NDArray[np.int64], shared: NDArray[np.int64]
        ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            """Begin a look, then measure it."""
            paid.begin(grains + shared, every)
            return lanes.measure(grains, shared)

        def keep(state: TotalState) -> None:
            """Keep what a claim told, and tell the asker of it."""
            cells = _cells(plan, state)
            told = tuple(one[None] for one in (cells.value, cells.lower, cells.upper))
            spent = parameter_of(state.paid - before.paid, plan.worst_price)
            number = int(state.repairs.max(initial=0)) + 1
            looks.extend(output_looks(query, told, number, spent))
            if watcher is not None:
                hand_over(watcher, Progress(number, query.groups, int(cells.met.sum()), math.inf))

        after = pricing.shares.run(before, measure, keep)
        price = paid.price(after.paid - before.paid)
        return replace(self._outcome(plan, before, after, price), blob=blob_of(after), looks=tuple(looks))

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep: see `merging`."""
        assert outcome.blob is not None  # noqa: S101  # something was measured
        return merge(current, outcome.blob, receipt, read=self.blob)

    @staticmethod
    def _outcome(plan: Plan[ShareOfTotalPricing], before: TotalState, after: TotalState, price: Booked) -> AskOutcome:
        """Return what released measurements tell."""
        return AskOutcome((_cells(plan, after),), parameter_of(after.paid - before.paid, price), price)


@dataclass(frozen=True, slots=True)
class TotalLanes:
    """The groups of a question and the totals that they are part of, each with its Gaussian noise.

    Guarantee: any sequence of measurements, chosen adaptively from what was shown, is mu-GDP for mu^2 = the sum over
        the `max_groups` most expensive groups of what their members pay: the grains of the group, and those for its
        total.
    Proof: docs/proofs/accuracy.share_of_total.md, claim 1. A unit that moves n groups of one total, each by c at most,
        moves the total by n c: its measurement costs (n/m)^2 of m times what each group pays for it, n times that at
        most, m being the most groups of one total that a unit can move.
    Assumes: an engine that keeps the contract of `engines.Engine.measure`; exact sampler.
    Rounds: as `mechanisms.gaussian.GaussianMeasurements`.

    Attributes:
        groups, totals: what measures the two.
        places: int64[groups], which total each group is part of.
        together: m.
    """

    groups: GaussianMeasurements
    totals: GaussianMeasurements
    places: NDArray[np.int64]
    together: int

    @classmethod
    def of(cls, engine: Door, query: Query, receipt: Receipt, places: NDArray[np.int64]) -> TotalLanes:
        """Ask the engine once for all groups, and add up those of each total."""
        truth, (measure,) = engine.measure(query, receipt)[0], query.measures
        totals = np.zeros(int(places.max()) + 1, np.int64)
        np.add.at(totals, places, truth)
        together = min(query.max_groups, int(np.bincount(places).max()))
        moved, step = measure.sensitivity(query.max_rows), measure.step_log2
        return cls(
            GaussianMeasurements(truth, moved, query.max_groups, step_log2=step),
            GaussianMeasurements(totals, moved * together, query.max_groups, step_log2=step),
            places,
            together,
        )

    def measure(
        self, grains: NDArray[np.int64], shared: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return fresh noisy values of groups and of their totals, float64[groups]; of no grains 0, not measured."""
        own, whole = np.zeros(len(grains)), np.zeros(len(grains))
        wanted = np.flatnonzero(grains)
        if len(wanted):
            nothing = Measured.nothing(len(wanted))
            own[wanted] = self.groups.measure(nothing, grains[wanted], wanted).values
        found, first = np.unique(self.places, return_index=True)
        found, first = found[shared[first] > 0], first[shared[first] > 0]
        if len(found):
            nothing = Measured.nothing(len(found))
            values = np.zeros(int(self.places.max()) + 1)
            values[found] = self.totals.measure(nothing, shared[first] * self.together, found).values
            whole = values[self.places]
        return own, whole


def refuse_pure_parts(query: Query) -> None:
    """Refuse running totals as parts of the whole under a pure budget: their interval is that of Gaussian noise."""
    asked = share_of(query)
    if isinstance(asked, RunningTotal) and asked.divided:
        raise UnsupportedQuery(
            "a running total over the whole under a pure budget",
            construct="a total over groups",
            rule="the part of a total that a running total is is told with Gaussian noise, which needs a delta",
            got="delta 0",
            next_step="ask for SUM(COUNT(*)) OVER (ORDER BY month) and SUM(COUNT(*)) OVER (), and divide the answers; "
            "or open the ledger with Budget(epsilon=, delta=1e-6)",
        )


def blob_of(state: TotalState) -> bytes:
    """Return the blob that the ledger stores."""
    columns = {f"{name}{lane}": row for name in _LANES for lane, row in enumerate(getattr(state, name))}
    return write_blob(columns | {"repairs": state.repairs}, {_FORMAT: json.dumps({}).encode()})


def state_of(blob: bytes) -> TotalState:
    """Return the state in a blob; a blob that is not ours is refused."""
    columns, _ = read_blob(blob, _FORMAT)
    try:
        lanes = {name: np.array([columns[f"{name}{lane}"] for lane in range(2)]) for name in _LANES}
        return TotalState(**lanes, repairs=columns["repairs"])
    except (KeyError, ValueError) as error:
        problem = error
    raise unreadable(problem)


def _cells(plan: Plan[ShareOfTotalPricing], state: TotalState) -> Cells:
    """Return the numbers that are shown."""
    value, lower, upper, met = plan.pricing.shares.judged(state)
    factor = plan.pricing.factor
    return Cells(factor * value, factor * lower, factor * upper, met)
