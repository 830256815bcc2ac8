"""Means, variances, ratios, several aggregates under a pure budget: a pilot, then claims, each on a Laplace chain."""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.accuracy.laplace_state import LaplaceState, ShownLanes
from farthing.accuracy.share_of_total import MIDDLE
from farthing.mechanisms.gaussian import worst_cost
from farthing.mechanisms.laplace import LaplaceChain, Shown
from farthing.planning.laplace_count import Grid
from farthing.planning.laplace_measures import LaplaceMeasuresPricing, lanes_of, plan_laplace_measures
from farthing.privacy.loss import Pure
from farthing.progress import Progress
from farthing.release import Cells
from farthing.session.answering.joint_measures import output_looks
from farthing.session.answering.laplace_count import chain_of, epsilons
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

    Int64 = NDArray[np.int64]

_FORMAT = b"farthing-laplace-joint-1"
_CHAINS = ("pilot", "claimed")
_ROWS = ("shape", "lower", "upper")
_COLUMNS = ("rung", "made")


@dataclass(frozen=True, slots=True)
class LaplaceMeasuresMethod:
    """A question under a pure budget whose answers are functions of several measures.

    Attributes:
        query: the question, arranged.
        blob: what the ledger keeps of it, or None.
        state: what was shown of it, or None.
        grids: the steps that it was shown in, or None.
    """

    query: Query
    blob: bytes | None
    state: LaplaceState | None
    grids: tuple[Grid, ...] | None

    @classmethod
    def of(cls, query: Query, blob: bytes | None) -> LaplaceMeasuresMethod:
        """Return the method of a question."""
        if blob is None:
            return cls(query, None, None, None)
        state, steps = state_of(blob)
        lanes = lanes_of(query)
        if not len(state.shape) == len(lanes) == len(steps):
            raise unreadable(ValueError())
        pairs = zip(lanes, steps, strict=True)
        return cls(query, blob, state, tuple(Grid.measured_at(query, measure, step) for measure, step in pairs))

    @property
    def anew(self) -> LaplaceMeasuresMethod:
        """The method of a line that begins again, on chains of its own; what stands is only merged with.

        Guarantee: nothing that was shown before is carried on: all that it measures is charged, whatever its receipt.
        Proof: docs/proofs/session.answering.laplace_count.md.
        Assumes: nothing.
        Rounds: nothing.
        """
        return replace(self, state=None, grids=None)

    def plan(self, frame: Frame) -> Plan[LaplaceMeasuresPricing]:
        """Return the plan, given what was shown before."""
        return plan_laplace_measures(frame, self.state, self.grids)

    def stored_answer(self, plan: Plan[LaplaceMeasuresPricing]) -> AskOutcome:
        """Return the answer of a free plan: what was shown before."""
        state = self.state or self._nothing
        return _outcome(plan, state, 0 * state.paid, plan.worst_price)

    @property
    def _nothing(self) -> LaplaceState:
        """The state before any look."""
        return LaplaceState.nothing(len(lanes_of(self.query)), len(self.query.outputs), self.query.groups)

    def measured(
        self, context: Context, plan: Plan[LaplaceMeasuresPricing], receipt: Receipt, watcher: Watcher | None
    ) -> AskOutcome:
        """Ask the engine, show pilots and claims, and price the last looks.

        The chains are carried on by one line of looks: whoever does not hold it alone begins others, and pays in full.

        Guarantee: everything shown is epsilon-DP ex post, for epsilon = the sum over the K most expensive groups of all
            last levels of the group's lanes, pilot and claim; the charges of a question sum to that of every line.
        Proof: docs/proofs/mechanisms.laplace.md for a chain; docs/proofs/accuracy.laplace_measures.md (claim 5);
            docs/proofs/session.answering.laplace_count.md for the books.
        Assumes: a pure ledger; an exclusive receipt means that no other line of looks leaves from what is stored.
        Rounds: nothing.
        """
        query, pricing = self.query, plan.pricing
        before = self.state if self.state is not None and receipt.exclusive else self._nothing
        lanes = MeasureChains.of(context.engine, query, receipt, pricing, before)
        looks: deque[TraceLook] = deque(maxlen=MOST_LOOKS * len(query.outputs))
        begun = BegunLooks(receipt, before.paid, query.max_groups, Pure.of_farthings)

        def keep(state: LaplaceState, done: int) -> None:
            """Keep what a rung told, and tell the asker of it."""
            number = len(looks) // len(query.outputs) + 1
            looks.extend(output_looks(query, pricing.joint.told(state)[:3], number, epsilons(state.paid - before.paid)))
            if watcher is not None:
                hand_over(watcher, Progress(number, query.groups, done, math.inf))

        def shown(chain: int, levels: Int64, groups: Int64) -> Int64:
            """Begin a look of a chain, then show it."""
            begun.begin(lanes.increase(chain, levels, groups), groups)
            return lanes.show(chain, levels, groups)

        after = pricing.joint.run(
            before, lambda levels, groups: shown(0, levels, groups), lambda levels, groups: shown(1, levels, groups),
            keep,
        )  # fmt: skip
        paid = after.paid - before.paid
        outcome = _outcome(plan, after, paid, begun.price(paid))
        return replace(outcome, blob=blob_of(after, pricing.grids), looks=tuple(looks))

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep, one line of looks: see `merging`."""
        assert outcome.blob is not None  # noqa: S101  # something was measured
        met = all(cells.met.all() for cells in outcome.columns)
        return merge(current, outcome.blob, receipt, read=self.blob, worth=partial(self._worth, outcome.blob, met=met))

    def _worth(self, ours: bytes, theirs: bytes, *, met: bool) -> bool:
        """Tell whether a line, met or not, keeps the promise of another one, or has cost as much."""
        (mine, _), (other, _) = state_of(ours), state_of(theirs)
        named = any(mine.promise[2:]) is not any(other.promise[2:])
        pairs = [*zip(mine.promise, other.promise, strict=True)]
        sharper = all(new <= old for new, old in (pairs[0], *pairs[2:]))  # between them is the cap
        paid, before = (worst_cost(state.paid, self.query.max_groups) for state in (mine, other))
        return paid >= before or (met and sharper and not named)


class MeasureChains:
    """The measures of a question, each on two Laplace chains of its own.

    Guarantee: everything shown, however levels and groups were chosen, is epsilon-DP ex post for epsilon = the sum of
        the `max_groups` largest sums of a group's last levels, over lanes and both chains.
    Proof: docs/proofs/accuracy.laplace_measures.md (claim 5).
    Assumes: an engine that keeps the contract of `engines.Engine.measure`; exact sampler; one line of looks.
    Rounds: as `mechanisms.laplace.LaplaceChain`.

    Args:
        chains: for each measure one chain; the two lines of looks that leave from it draw noise of their own.
        before: what was shown before.
        places: int64[groups], which total each group is part of, where the last chain is of totals; else None. A unit
            moves a total once for each of its groups: so each of these pays what moving it once costs.
    """

    def __init__(self, chains: tuple[LaplaceChain, ...], before: LaplaceState, places: Int64 | None = None) -> None:
        self._chains, self._places = chains, places
        self._last = [ShownLanes(last.value.copy(), last.level.copy()) for last in (before.pilot, before.claimed)]

    @classmethod
    def of(
        cls, engine: Door, query: Query, receipt: Receipt, pricing: LaplaceMeasuresPricing, before: LaplaceState
    ) -> MeasureChains:
        """Ask the engine once for all measures, and add up those of each total."""
        truths, places = list(engine.measure(query, receipt)), pricing.joint.places
        if places is not None:
            truths.append(np.zeros(int(places.max()) + 1, np.int64))
            np.add.at(truths[-1], places, truths[0])
        lanes = zip(truths, lanes_of(query), pricing.grids, strict=True)
        return cls(tuple(chain_of(truth, measure.step_log2, grid) for truth, measure, grid in lanes), before, places)

    def increase(self, chain: int, levels: Int64, groups: Int64) -> Int64:
        """Return by how much a look at these levels raises what each group has paid, int64[n]."""
        return np.asarray((levels - self._last[chain].level[:, groups]).sum(axis=0), np.int64)

    def show(self, chain: int, levels: Int64, groups: Int64) -> Int64:
        """Return what one of the two lines shows of some groups at these levels, int64[measures, n]."""
        last = self._last[chain]
        for place, mechanism in enumerate(self._chains):
            once, cells, back = groups, groups, np.arange(len(groups))
            if self._places is not None and place == len(self._chains) - 1:  # each total is shown once
                cells, first, back = np.unique(self._places[groups], return_index=True, return_inverse=True)
                once = groups[first]
            before = Shown(last.value[place, once], last.level[place, once], mechanism.step_log2)
            now = mechanism.measure(before, levels[place][np.searchsorted(groups, once)], cells)
            last.value[place, groups], last.level[place, groups] = now.value[back], now.farthings[back]
        return last.value[:, groups]


def blob_of(state: LaplaceState, grids: tuple[Grid, ...]) -> bytes:
    """Return the blob that the ledger stores."""
    columns: dict[str, Any] = {}
    for chain in _CHAINS:
        for part, rows in getattr(state, chain)._asdict().items():
            columns |= {f"{chain}_{part}{place}": row for place, row in enumerate(rows)}
    for name in _ROWS:
        columns |= {f"{name}{place}": row for place, row in enumerate(getattr(state, name))}
    columns |= {name: getattr(state, name) for name in _COLUMNS}
    facts = {"promises": state.promises, "beta": state.beta, "promise": state.promise, "looked": state.looked}
    facts |= {"steps": [grid.step_log2 for grid in grids]}
    return write_blob(columns, {_FORMAT: json.dumps(facts).encode()})


def state_of(blob: bytes) -> tuple[LaplaceState, tuple[int, ...]]:
    """Return the state in a blob, and the steps of its lanes; a blob that is not ours is refused."""
    columns, facts = read_blob(blob, _FORMAT)

    def rows(name: str) -> NDArray[Any]:
        """Return the rows of one array."""
        found = [column for key, column in columns.items() if key.rstrip("0123456789") == name]
        if not found:
            raise unreadable(KeyError(name))
        return np.array(found)

    pilot, claimed = (ShownLanes(rows(f"{chain}_value"), rows(f"{chain}_level")) for chain in _CHAINS)
    state = LaplaceState(
        pilot, claimed, rows("shape"), rows("lower"), rows("upper"), rows("rung")[0], rows("made")[0],
        int(facts["promises"]), float(facts["beta"]), tuple(facts["promise"]),
        float(facts.get("looked", 0.0)),  # older versions have none
    )  # fmt: skip
    return state, tuple(int(step) for step in facts["steps"])


def _outcome(plan: Plan[LaplaceMeasuresPricing], state: LaplaceState, paid: Int64, price: Booked) -> AskOutcome:
    """Return what was shown, at a price in farthings, of which each group's own are `paid`."""
    pricing = plan.pricing
    value, lower, upper, met = pricing.joint.told(state)
    if pricing.joint.places is not None:  # shares: 0 to 1 where nothing is known
        lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
        value = np.clip(np.full_like(value, MIDDLE) if pricing.known and not state.promises else value, lower, upper)
    scaled = [pricing.factor * one for one in (value, lower, upper)]
    cells = tuple(Cells(*row) for row in zip(*scaled, met | pricing.known, strict=True))
    return AskOutcome(cells, epsilons(paid), price)
