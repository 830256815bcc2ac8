"""Means, variances, several aggregates: one pass over the rows, several measures refined in stages."""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.accuracy.joint_pivot import Pivot
from farthing.accuracy.joint_prices import run_of
from farthing.accuracy.joint_state import JointState
from farthing.mechanisms.gaussian import GaussianMeasurements
from farthing.planning.joint_measures import JointMeasuresPricing, plan_joint_measures
from farthing.progress import Progress
from farthing.query.measures import Rows, Total
from farthing.release import Cells
from farthing.session.answering.gaussian_count import parameter_of
from farthing.session.answering.looks import BegunLooks
from farthing.session.answering.method import AskOutcome
from farthing.session.core.merging import merge
from farthing.session.core.records import read_blob, unreadable, write_blob
from farthing.session.core.shield import hand_over
from farthing.trace import MOST_GROUPS, MOST_LOOKS, TraceLook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from farthing.ledger.entry import Receipt
    from farthing.planning import Frame, Plan
    from farthing.privacy.loss import Booked
    from farthing.progress import Watcher
    from farthing.query import Query
    from farthing.session.core.context import Context
    from farthing.session.core.door import Door

_FORMAT = b"farthing-joint-2"
_CENTRED_FORMAT = b"farthing-joint-3"  # some lanes are of values less a constant: older versions must not read it
_LOOKS_FORMAT = b"farthing-joint-4"  # a claim that ended at a look: older versions must not go on from it
_JOINT_LOOKS_FORMAT = b"farthing-joint-5"  # the same of several answers together, of which versions before knew none
_FIRST_FORMAT = b"farthing-joint-1"
_LANES = ("means", "information")
_CLAIMED = ("shape", "shown", "clock", "guess", "planned")
_PAUSED = ("base", "begun", "done")
_OUTPUTS = ("value", "lower", "upper", "met")
_LESS = "less"
_CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class JointMeasuresMethod:
    """A question whose answers are functions of several measures.

    Attributes:
        query: the question, arranged.
        state: what was released of it, or None.
        blob: the same, as the ledger keeps it.
    """

    query: Query
    state: JointState | None
    blob: bytes | None = None

    @classmethod
    def of(cls, query: Query, blob: bytes | None) -> JointMeasuresMethod:
        """Return the method of a question."""
        if blob is None:
            return cls(query, None)
        state, less = state_of(blob)
        if len(state.means) != len(query.measures):
            raise unreadable(ValueError())
        return cls(query, measured_from(query, state, less or (0.0,) * len(state.means)), blob)

    def plan(self, frame: Frame) -> Plan[JointMeasuresPricing]:
        """Return the plan, given what was released before."""
        return plan_joint_measures(frame, self.state)

    def stored_answer(self, plan: Plan[JointMeasuresPricing]) -> AskOutcome:
        """Return the answer of a free plan: what was released before."""
        assert self.state is not None  # noqa: S101  # a plan is free where something stands
        return _outcome(self.state, self.state, plan.worst_price, None)

    def measured(
        self, context: Context, plan: Plan[JointMeasuresPricing], receipt: Receipt, watcher: Watcher | None
    ) -> AskOutcome:
        """Ask the engine, draw noise, and price what was drawn as the receipt says."""
        query, pricing = self.query, plan.pricing
        lanes = MeasureLanes.of(context.engine, query, receipt)
        empty = JointState.nothing(len(lanes.mechanisms), len(query.outputs), query.groups)
        before = empty if self.state is None else self.state
        looks: deque[TraceLook] = deque(maxlen=MOST_LOOKS * len(query.outputs))

        def keep(state: JointState, done: int) -> None:
            """Keep what a claim told, and tell the asker of it."""
            paid = parameter_of(state.paid - before.paid, plan.worst_price)
            looks.extend(
                output_looks(query, (state.value, state.lower, state.upper), state.stages - before.stages, paid)
            )
            if watcher is not None:
                hand_over(watcher, Progress(state.stages, query.groups, done, math.inf))

        paid = BegunLooks(receipt, before.paid, pricing.coin.max_groups, pricing.coin.loss)

        def measure(grains: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
            """Begin a look, then measure it."""
            paid.begin(grains, groups)
            return lanes.measure(grains, groups)

        after = pricing.joint.run(before, measure, keep)
        price = paid.price(after.paid - before.paid)
        return replace(_outcome(before, after, price, blob_of(after, subtracted(query))), looks=tuple(looks))

    def merged(self, current: bytes | None, outcome: AskOutcome, receipt: Receipt) -> bytes:
        """Return what the ledger is to keep: see `merging`."""
        assert outcome.blob is not None  # noqa: S101  # something was measured
        return merge(current, outcome.blob, receipt, read=self.blob)


@dataclass(frozen=True, slots=True)
class MeasureLanes:
    """The measures of a question, each with its Gaussian noise.

    Guarantee: any sequence of measurements, chosen adaptively from what was shown, is mu-GDP for mu^2 = the sum over
        the `max_groups` most expensive groups of all grains spent on the group's measures.
    Proof: [SmithT22]; one unit moves each measure of a kept group by at most its sensitivity, and each measurement of
        one measure of one group is one Gaussian step.
    Assumes: an engine that keeps the contract of `engines.Engine.measure`; exact sampler.
    Rounds: as `mechanisms.gaussian.GaussianMeasurements`.

    Attributes:
        mechanisms: one for each measure.
    """

    mechanisms: tuple[GaussianMeasurements, ...]

    @classmethod
    def of(cls, engine: Door, query: Query, receipt: Receipt) -> MeasureLanes:
        """Ask the engine once for all measures."""
        truth = engine.measure(query, receipt)
        return cls(
            tuple(
                GaussianMeasurements(
                    truth[place], measure.sensitivity(query.max_rows), query.max_groups, step_log2=measure.step_log2
                )
                for place, measure in enumerate(query.measures)
            )
        )

    def measure(self, grains: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return fresh noisy values, float64[measures, n], of n groups at these grains; 0 is not measured."""
        values, at = np.zeros(grains.shape), run_of(groups)
        for place, mechanism in enumerate(self.mechanisms):
            wanted = grains[place] > 0
            if wanted.all():
                values[place] = mechanism.fresh(grains[place], at)
            elif wanted.any():
                values[place, wanted] = mechanism.fresh(grains[place, wanted], groups[wanted])
        return values


def subtracted(query: Query) -> tuple[float, ...]:
    """Return what each row is less by in every lane of a question: 0 but for squares."""
    return tuple(getattr(measure, "less", 0.0) for measure in query.measures)


def measured_from(query: Query, state: JointState, less: tuple[float, ...]) -> JointState:
    """Return a state whose rows were less by so much in every lane as one of the lanes that the question has now.

    Older versions measured plain squares: Q, where it is Q - m N now. What they told stands. Their claims are left out,
    since with N in it the errors of the new lane would not be independent of those of N; what they measured is a pilot,
    which is in no interval.
    """
    means, now = state.means.copy(), subtracted(query)
    for place, (measure, old, new) in enumerate(zip(query.measures, less, now, strict=True)):
        if new != old and isinstance(measure, Total):
            means[place] -= (new - old) * means[query.measures.index(Rows(measure.value))]
    return state if less == now else replace(state, means=means, pivot=None, critical=0.0)


def blob_of(state: JointState, less: tuple[float, ...] = ()) -> bytes:
    """Return the blob that the ledger stores, with what the rows of its lanes are less by, where they are."""
    columns: dict[str, Any] = {}
    for name in (*_LANES, *_OUTPUTS):
        columns |= {f"{name}{place}": row for place, row in enumerate(getattr(state, name))}
    if state.pivot is not None:
        paused = _PAUSED if (state.pivot.done < 1).any() else ()
        for name in (*_CLAIMED, *paused):
            rows = np.atleast_2d(getattr(state.pivot, name))
            columns |= {f"{name}{place}": row for place, row in enumerate(rows)}
    facts = {name: getattr(state, name) for name in ("stages", "beta", "since", "promise")}
    facts |= {_LESS: less} if any(less) else {}
    facts |= {_CRITICAL: state.critical} if state.critical else {}
    plain = _CENTRED_FORMAT if any(less) else _FORMAT
    form = plain if not state.critical else _LOOKS_FORMAT if len(state.value) == 1 else _JOINT_LOOKS_FORMAT
    return write_blob(columns, {form: json.dumps(facts).encode()})


def state_of(blob: bytes) -> tuple[JointState, tuple[float, ...]]:
    """Return the state in a blob, and what the rows of its lanes are less by (nothing said: by nothing).

    The first format kept no claims. A blob that is not ours is refused.
    """
    columns, facts = read_blob(blob, _JOINT_LOOKS_FORMAT, _LOOKS_FORMAT, _CENTRED_FORMAT, _FORMAT, _FIRST_FORMAT)

    def rows(name: str) -> NDArray[Any]:
        """Return the rows of one array."""
        found = [column for key, column in columns.items() if key.rstrip("0123456789") == name]
        if not found:
            raise unreadable(KeyError(name))
        return np.array(found)

    pivot = None
    if "clock0" in columns:
        shape, shown, clock, guess, planned = map(rows, _CLAIMED)
        paused = map(rows, _PAUSED) if "done0" in columns else (shown, clock, np.ones_like(clock))
        base, begun, done = paused
        pivot = Pivot(shape, shown, clock[0], guess, planned[0], base, begun[0], done[0])
    state = JointState(
        **{name: rows(name) for name in (*_LANES, *_OUTPUTS)},
        stages=int(facts["stages"]),
        beta=float(facts["beta"]),
        since=int(facts.get("since", 0)),
        promise=tuple(facts.get("promise", ())),
        pivot=pivot,
        critical=float(facts.get(_CRITICAL, 0.0)),
    )
    return state, tuple(facts.get(_LESS, ()))


def _outcome(before: JointState, after: JointState, price: Booked, blob: bytes | None) -> AskOutcome:
    """Return what released measurements tell."""
    cells = tuple(Cells(*row) for row in zip(after.value, after.lower, after.upper, after.met, strict=True))
    return AskOutcome(cells, parameter_of(after.paid - before.paid, price), price, blob)


def output_looks(
    query: Query, told: tuple[NDArray[np.float64], ...], number: int, paid: NDArray[np.float64]
) -> Iterator[TraceLook]:
    """Give one look for each output, unless there are too many groups to keep it.

    Args:
        query: the question.
        told: float64[outputs, groups], values, lower and upper ends.
        number: which look it is.
        paid: float64[groups], what members of each group have paid.
    """
    every = np.arange(query.groups)
    if len(every) <= MOST_GROUPS:
        for output, value, lower, upper in zip(query.outputs, *told, strict=True):
            yield TraceLook(output.name, number, every, value.copy(), lower.copy(), upper.copy(), paid)
